"""One queue of one topic: every message of the log once, in order, found through its entry."""

from dataclasses import dataclass

from gapless.spec.language import Map, Number, Position, accepts, all_between, assume, implies, replace, require

BLANK_SLOT = 0x7FFFFFFF  # the size in the slots that fill a new file up to the queue's first entry


@dataclass(frozen=True, slots=True)
class State:
    """The queue's messages as the log has them, and its entries as the consume queue has them."""

    start: Position = Position(0)  # where the log begins: messages below have expired
    first: Number = Number(0)  # the lowest number whose message is kept (RocketMQ: min)
    indexed: Number = Number(0)  # exclusive end of the entries
    end: Number = Number(0)  # exclusive end of the numbers given (RocketMQ: max)
    blank: Number = Number(0)  # exclusive end of the slots with a blank; 0 where none does
    positions: Map[Number, Position] = Map(Position(0))  # of message n: where its record lies
    sizes: Map[Number, int] = Map(0)  # of message n: bytes of its record
    tags: Map[Number, int] = Map(0)  # of message n: its tag code
    entry_positions: Map[Number, Position] = Map(Position(0))  # of entry n: where it points
    entry_sizes: Map[Number, int] = Map(0)  # of entry n: the size it gives
    entry_tags: Map[Number, int] = Map(0)  # of entry n: the tag code it gives


def open(s: State, number: Number, start: Position) -> State:  # noqa: A001 - the step's name in every trace.
    """A queue is found whose first message in the log is `number`; the log begins at `start`.

    Source: docs/rocketmq.md#cl3.
    """
    require(s.end == 0, "queue-is-new", because="the queue is new", otherwise="two queues are taken for one")
    require(0 <= number, "numbers-begin-at-0",
        because="numbers begin at 0", otherwise="a message can never be asked for")
    require(implies(start == 0, number == 0), "log-that-begins-at-0-holds-its-queues-from-number-0",
        because="a log that begins at 0 holds its queues from number 0",
        otherwise="the first messages of the queue are lost")
    return replace(s, start=start, first=number, indexed=number, end=number)


def append(s: State, number: Number, count: int, position: Position, size: int, tag: int) -> State:
    """A record of this queue is in the log, and carries `number`; an inner batch takes `count` numbers at once.

    Source: docs/rocketmq.md#append, #cl3; ConsumeQueueStore.assignQueueOffset, increaseQueueOffset.
    """
    require(number == s.end, "numbers-of-a-queue-follow-one-another",
        because="the numbers of a queue follow one another",
        otherwise="a message is lost, or two messages share a number")
    require(1 <= count, "record-holds-a-message",
        because="a record holds a message", otherwise="the next message takes the same number")
    return replace(
        s,
        end=Number(number + count),
        positions=s.positions.set(number, position),
        sizes=s.sizes.set(number, size),
        tags=s.tags.set(number, tag),
    )


def index(s: State, number: Number, position: Position, size: int, tag: int) -> State:
    """Entry `number` of the consume queue: where its message lies, how long it is, and the code of its tag.

    Source: docs/rocketmq.md#entry, #cq1; ConsumeQueue.putMessagePositionInfo.
    """
    require(number < s.end, "message-of-the-entry-is-in-the-log",
        because="the message of the entry is in the log",
        otherwise="consumers are sent to a message that does not exist")
    require(number == s.indexed, "no-entry-before-it-is-missing",
        because="no entry before it is missing", otherwise="a message is in the log and no consumer ever receives it")
    require(position == s.positions[number], "entry-points-at-its-message",
        because="the entry points at its message",
        otherwise="consumers receive another message in its place, one twice, or none")
    require(size == s.sizes[number], "entry-has-the-size-of-its-message",
        because="the entry has the size of its message",
        otherwise="consumers receive a message cut short, or with foreign bytes behind it")
    require(tag == s.tags[number], "entry-has-the-tag-code-of-its-message",
        because="the entry has the tag code of its message",
        otherwise="consumers that filter by tag miss the message, or receive one they did not ask for")
    return replace(
        s,
        indexed=Number(number + 1),
        entry_positions=s.entry_positions.set(number, position),
        entry_sizes=s.entry_sizes.set(number, size),
        entry_tags=s.entry_tags.set(number, tag),
    )


def index_batch(s: State, number: Number, count: int, position: Position, size: int, tag: int) -> State:
    """An entry of a queue whose entries stand for `count` numbers each, from `number` on: those of one inner batch.

    Source: docs/rocketmq.md#batch-queues; BatchConsumeQueue.putBatchMessagePositionInfo.
    """
    require(s.indexed <= number, "entry-comes-behind-those-before-it",
        because="the entry comes behind those before it", otherwise="who looks a number up finds another, or none")
    require(number + count == s.end, "entry-ends-where-its-batch-ends",
        because="the entry ends where its batch ends", otherwise="consumers pass over messages, or ask again for some")
    assume(count <= 32767 and all_between(number + 1, s.end,
            lambda n: s.positions[Number(n)] == 0 and s.sizes[Number(n)] == 0 and s.tags[Number(n)] == 0),
        because="a batch is counted in two bytes, and its entry follows right behind it")
    return replace(index(s, number, position, size, tag), indexed=Number(number + count))


def find_file(s: State, base: Position, length: int, full: int) -> State:
    """A file of the consume queue is found: `length` bytes from `base` on, where files are born with `full`.

    Source: docs/rocketmq.md#files; MappedFileQueue.doLoad.
    """
    require(length == full, "file-of-the-consume-queue-has-its-full-length",
        because="a file of the consume queue has its full length",
        otherwise="the broker refuses to start, and the entries beyond the cut are lost")
    return s


def outlive(s: State, number: Number, position: Position) -> State:
    """Entry `number`, old among younger ones, points at `position`, where its message once lay.

    Source: docs/rocketmq.md#expiry, #cq1.
    """
    require(number < s.first, "message-of-the-old-entry-has-expired",
        because="the message of the old entry has expired", otherwise="an entry that is needed counts as old")
    require(position < s.start, "message-of-the-old-entry-lay-below-the-logs-start",
        because="the message of the old entry lay below the log's start",
        otherwise="the log has lost a message that its queue still names")
    return s


def expire(s: State, number: Number, start: Position) -> State:
    """The log's oldest files are deleted: it begins at `start` now, the queue's messages at `number`.

    Source: docs/rocketmq.md#expiry.
    """
    require(s.start <= start, "logs-start-moves-on",
        because="the log's start moves on", otherwise="deleted messages come back")
    require(s.first <= number, "first-number-moves-on",
        because="the first number moves on", otherwise="deleted messages come back")
    require(number <= s.indexed, "messages-were-indexed",
        because="the messages were indexed", otherwise="a message goes before it was seen")
    require(all_between(s.first, number, lambda n: s.positions[Number(n)] < start),
        "every-message-that-goes-lay-below-the-logs-new-start",
        because="every message that goes lay below the log's new start",
        otherwise="a message that is in the log is out of its queue")
    return replace(s, start=start, first=number)


def rebuild(s: State) -> State:
    """The consume queue is removed, to be built again from the log.

    Source: docs/rocketmq.md#cq4.
    """
    return replace(
        s,
        indexed=s.first,
        entry_positions=s.entry_positions.cleared(),
        entry_sizes=s.entry_sizes.cleared(),
        entry_tags=s.entry_tags.cleared(),
    )


def truncate(s: State, number: Number) -> State:
    """The log's end is cut off, by a crash or to follow another broker: the messages from `number` on are gone.

    Their entries go with them. Source: docs/rocketmq.md#cq5, #ring-truncation.
    """
    assume(s.first <= number and number <= s.end, because="what is cut off is the end of what was there")
    return replace(
        s,
        indexed=s.indexed if s.indexed < number else number,
        end=number,
        positions=s.positions.forget_from(number),
        sizes=s.sizes.forget_from(number),
        tags=s.tags.forget_from(number),
        entry_positions=s.entry_positions.forget_from(number),
        entry_sizes=s.entry_sizes.forget_from(number),
        entry_tags=s.entry_tags.forget_from(number),
    )


def settle(s: State, upto: Position) -> State:
    """Dispatch is done with the log up to `upto`: all of it after a clean stop.

    Source: docs/rocketmq.md#cq1, #recovery-unclean.
    """
    require(s.indexed == s.end or upto <= s.positions[s.indexed], "every-message-has-its-entry",
        because="every message has its entry", otherwise="a message is in the log and no consumer ever receives it")
    require(implies(0 < s.blank, s.blank < s.end), "entry-follows-the-blank-slots",
        because="an entry follows the blank slots", otherwise="the entries of a whole queue are lost")
    return s


def tell_last(s: State, number: Number, position: Position) -> State:
    """The broker's own table has `number` as the queue's last entry, and its message at `position`.

    Source: docs/rocketmq.md#rocksdb-queues; RocksDBConsumeQueueOffsetTable.
    """
    require(number + 1 == s.indexed, "table-names-the-last-entry",
        because="the table names the last entry",
        otherwise="the next message gets a number that another one has, or numbers are given to no message")
    require(position == s.entry_positions[number], "table-knows-where-the-last-entry-points",
        because="the table knows where the last entry points",
        otherwise="a start that cuts the log off keeps an entry whose message is gone, or drops one that is needed")
    return s


def tell_first(s: State, number: Number) -> State:
    """The broker's own table says that no entry below `number` is of use.

    Source: docs/rocketmq.md#rocksdb-queues; RocksDBConsumeQueueOffsetTable.
    """
    require(number <= s.first, "table-hides-no-message",
        because="the table hides no message", otherwise="a consumer that begins at the least number misses messages")
    return s


def account(s: State, number: Number, sent: bool) -> State:
    """Message `number` is looked up among all that clients say they sent; `sent` says that it is there.

    Source: docs/design.md#inferred; what clients were promised, traces/README.md.
    """
    require(sent, "client-sent-the-message",
        because="a client sent the message", otherwise="consumers act on a message that was never sent")
    return s


def acknowledge(s: State, number: Number, position: Position, same: bool) -> State:
    """The broker reported to a producer that its message has `number` and lies at `position`.

    `same` says that what lies there is what the producer sent, in the topic and queue that it was sent to.

    Source: docs/rocketmq.md#cx1, docs/rocketmq-protocol.md#send; what clients were promised, traces/README.md.
    """
    require(0 < s.sizes[number] and position == s.positions[number],
        "message-that-was-acknowledged-is-in-the-log-where-the-answer-said",
        because="the message that was acknowledged is in the log, where the answer placed it",
        otherwise="a producer believes that its message is safe, and no consumer ever receives it")
    require(same, "message-that-was-acknowledged-is-what-its-producer-sent",
        because="the message that was acknowledged is what its producer sent",
        otherwise="a producer believes that its message is safe, and consumers receive another one")
    return s


def numbers_are_ordered(s: State) -> bool:
    """Otherwise consumers ask below the queue's minimum or beyond its maximum, and wait for ever."""
    return 0 <= s.first and s.first <= s.indexed and s.indexed <= s.end


def an_entry_is_its_message(s: State, number: Number) -> bool:
    """Otherwise a consumer receives something else than the message it asked for."""
    return implies(
        s.first <= number and number < s.indexed,
        s.entry_positions[number] == s.positions[number]
        and s.entry_sizes[number] == s.sizes[number]
        and s.entry_tags[number] == s.tags[number],
    )


def entries_have_messages(s: State, number: Number) -> bool:
    """Otherwise a consumer is sent to a message that does not exist."""
    message = s.positions[number] == 0 and s.sizes[number] == 0 and s.tags[number] == 0
    entry = s.entry_positions[number] == 0 and s.entry_sizes[number] == 0 and s.entry_tags[number] == 0
    return implies(s.end <= number, message) and implies(s.indexed <= number, entry)


def blanks_come_before_all_messages(s: State) -> bool:
    """Otherwise an entry that consumers need is lost."""
    return 0 <= s.blank and s.blank <= s.first


def a_queue_of_a_whole_log_begins_at_number_0(before: State, after: State) -> bool:
    """Otherwise the first messages of the queue are lost."""
    return implies(before.end == 0 and after.start == 0, after.first == 0)


def a_message_keeps_its_place(before: State, after: State, number: Number) -> bool:
    """Otherwise a consumer that reads the same number twice receives two different messages."""
    return implies(
        before.end <= after.end and number < before.end,
        after.positions[number] == before.positions[number],
    )


def what_left_the_queue_stays_away(before: State, after: State) -> bool:
    """Otherwise deleted messages come back."""
    return implies(0 < before.end, before.start <= after.start and before.first <= after.first)


def what_leaves_the_queue_has_left_the_log(before: State, after: State, number: Number) -> bool:
    """Otherwise a message that is in the log is out of its queue."""
    return implies(
        0 < before.end and before.first <= number and number < after.first,
        before.positions[number] < after.start,
    )


def every_message_has_its_entry(s: State) -> bool:
    """Otherwise a message is in the log and no consumer ever receives it."""
    return s.indexed == s.end


# What can be done: of what becomes of a message, from whatever state. A helper's name says which steps it takes.


def _appended(s: State, position: Position, size: int, tag: int) -> State:
    return append(s, s.end, 1, position, size, tag)


def _batch_and_next(s: State, count: int, number: Number, position: Position) -> State:
    return append(append(s, s.end, count, position, 1, 0), number, 1, position, 1, 0)


def an_inner_batch_owns_all_its_numbers(s: State, count: int, number: Number, position: Position) -> bool:
    """Otherwise two messages share a number, and consumers receive one of them."""
    return implies(1 <= count, accepts(_batch_and_next, s, count, number, position) == (number == s.end + count))


def _indexed(
    s: State, position: Position, size: int, tag: int, entry_position: Position, entry_size: int, entry_tag: int
) -> State:
    return index(_appended(s, position, size, tag), s.end, entry_position, entry_size, entry_tag)


def an_entry_is_taken_if_it_is_what_was_sent(
    s: State, position: Position, size: int, tag: int, entry_position: Position, entry_size: int, entry_tag: int
) -> bool:
    """Otherwise a whole store is called broken, or consumers receive something else."""
    same = entry_position == position and entry_size == size and entry_tag == tag
    taken = accepts(_indexed, s, position, size, tag, entry_position, entry_size, entry_tag)
    return implies(s.indexed == s.end, taken == same)


def _batch_indexed(s: State, count: int, size: int, entry_count: int, entry_size: int) -> State:
    return index_batch(append(s, s.end, count, Position(1), size, 0), s.end, entry_count, Position(1), entry_size, 0)


def an_entry_stands_for_the_whole_batch_and_no_more(
    s: State, count: int, size: int, entry_count: int, entry_size: int
) -> bool:
    """Otherwise consumers pass over messages, or ask for the same ones again."""
    taken = accepts(_batch_indexed, s, count, size, entry_count, entry_size)
    asked = s.indexed == s.end and 1 <= count and count <= 32767
    return implies(asked, taken == (entry_count == count and entry_size == size))


def _behind_a_batch(s: State, count: int, number: Number) -> State:
    batch = append(_batch_indexed(s, count, 1, count, 1), Number(s.end + count), 1, Position(2), 1, 0)
    return index(batch, number, Position(2), 1, 0)


def an_entry_follows_that_of_a_whole_batch(s: State, count: int, number: Number) -> bool:
    """Otherwise a message behind a batch is never received, or one within it twice."""
    asked = s.indexed == s.end and 1 <= count and count <= 32767
    return implies(asked, accepts(_behind_a_batch, s, count, number) == (number == s.end + count))


def _two_entries(s: State, first: Number, second: Number) -> State:
    two = _appended(_appended(s, Position(0), 1, 0), Position(1), 1, 0)
    one = index(two, first, two.positions[first], two.sizes[first], two.tags[first])
    return index(one, second, two.positions[second], two.sizes[second], two.tags[second])


def entries_come_in_the_order_of_their_messages(s: State, first: Number, second: Number) -> bool:
    """Otherwise a consumer passes a message that has no entry yet, and never comes back."""
    in_order = first == s.end and second == first + 1
    return implies(s.indexed == s.end, accepts(_two_entries, s, first, second) == in_order)


def _stopped(s: State, position: Position, upto: Position) -> State:
    return settle(_appended(s, position, 1, 0), upto)


def a_stop_leaves_no_message_behind(s: State, position: Position, upto: Position) -> bool:
    """Otherwise a message is in the log and no consumer ever receives it."""
    return implies(s.indexed == s.end, accepts(_stopped, s, position, upto) == (upto <= position))


def what_is_at_rest_may_stop(s: State, upto: Position) -> bool:
    """Otherwise a queue with all its entries is called broken, or one of blanks alone is called whole."""
    holds_blanks_alone = 0 < s.blank and s.end <= s.blank
    return implies(every_message_has_its_entry(s), accepts(settle, s, upto) == (not holds_blanks_alone))


def _acknowledged(s: State, position: Position, size: int, claimed: Position, same: bool) -> State:
    return acknowledge(_appended(s, position, size, 0), s.end, claimed, same)


def a_producer_is_told_where_its_message_lies(
    s: State, position: Position, size: int, claimed: Position, same: bool
) -> bool:
    """Otherwise a producer believes that its message is safe, and consumers receive another one, or none."""
    return implies(0 < size, accepts(_acknowledged, s, position, size, claimed, same) == (claimed == position and same))


def nobody_is_told_of_what_is_not_there(s: State, number: Number, position: Position) -> bool:
    """Otherwise a producer believes that its message is safe, and no consumer ever receives it."""
    return implies(s.end <= number, not accepts(acknowledge, s, number, position, True))  # noqa: FBT003 - an event's flag


def what_nobody_sent_is_noticed(s: State, number: Number, sent: bool) -> bool:
    """Otherwise consumers act on a message that was never sent."""
    return accepts(account, s, number, sent) == sent


def _last_claimed(s: State, position: Position, size: int, tag: int, number: Number, claimed: Position) -> State:
    return tell_last(_indexed(s, position, size, tag, position, size, tag), number, claimed)


def the_table_names_the_last_entry_and_no_other(
    s: State, position: Position, size: int, tag: int, number: Number, claimed: Position
) -> bool:
    """Otherwise a whole store is called broken, or the next message gets a number that another one has."""
    is_last = number == s.end and claimed == position
    return implies(s.indexed == s.end, accepts(_last_claimed, s, position, size, tag, number, claimed) == is_last)


def the_table_may_lag_behind_the_first_message(s: State, number: Number) -> bool:
    """Otherwise a table unused since messages expired is called wrong, or one that hides some is not."""
    return accepts(tell_first, s, number) == (number <= s.first)


def a_file_has_neither_more_nor_less_than_its_bytes(s: State, base: Position, more: int, full: int) -> bool:
    """Otherwise a broker that finds it refuses to start, or entries are lost."""
    return accepts(find_file, s, base, full + more, full) == (more == 0)


def all_that_has_entries_may_expire(s: State, start: Position) -> bool:
    """Otherwise a disk runs full of messages that everybody has read."""
    lies_below = all_between(s.first, s.indexed, lambda n: s.positions[Number(n)] < start)
    everything = implies(s.start <= start and lies_below, accepts(expire, s, s.indexed, start))
    return everything and accepts(expire, s, s.first, s.start)


def _outlived(s: State, number: Number, start: Position, old: Number) -> State:
    return outlive(expire(s, number, start), old, s.positions[old])


def an_entry_may_outlive_its_message(s: State, number: Number, start: Position, old: Number) -> bool:
    """Otherwise a file that still holds young entries is called broken."""
    goes = s.first <= old and old < number and accepts(expire, s, number, start)
    return implies(goes, accepts(_outlived, s, number, start, old))


def an_entry_of_what_is_kept_is_not_old(s: State, number: Number, position: Position) -> bool:
    """Otherwise the log has lost a message that its queue still names."""
    return implies(s.first <= number or s.start <= position, not accepts(outlive, s, number, position))


def _continued(s: State, kept: Number, number: Number) -> State:
    return append(truncate(s, kept), number, 1, Position(0), 1, 0)


def a_queue_goes_on_where_it_was_cut_off(s: State, kept: Number, number: Number) -> bool:
    """Otherwise numbers are given to no message, or a broker cannot start again after a crash."""
    was_there = s.first <= kept and kept <= s.end
    return accepts(_continued, s, kept, number) == (was_there and number == kept)


def _found(s: State, number: Number, start: Position, old: Number) -> State:
    return outlive(open(s, number, start), old, Position(start - 1))


def a_log_that_lost_its_beginning_has_a_queue_of_any_number(
    s: State, number: Number, start: Position, old: Number
) -> bool:
    """Otherwise a store whose oldest files were deleted cannot be judged."""
    known = s.end == 0 and start != 0 and 0 <= number
    return implies(known, accepts(_found, s, number, start, old) == (old < number))


def the_first_queue_of_a_log_is_found(s: State, number: Number) -> bool:
    """Otherwise a new store is called broken, or its first messages are lost."""
    return implies(s.end == 0, accepts(open, s, number, Position(0)) == (number == 0))


INITIAL = State()
ACTIONS = (
    open, find_file, append, index, index_batch, outlive, expire, rebuild, truncate,
    settle, tell_last, tell_first, account, acknowledge,
)
INVARIANTS = (numbers_are_ordered, an_entry_is_its_message, entries_have_messages, blanks_come_before_all_messages)
STEP_PROPERTIES = (
    a_queue_of_a_whole_log_begins_at_number_0, a_message_keeps_its_place,
    what_left_the_queue_stays_away, what_leaves_the_queue_has_left_the_log,
)
ENABLED = (
    an_inner_batch_owns_all_its_numbers, an_entry_is_taken_if_it_is_what_was_sent,
    an_entry_stands_for_the_whole_batch_and_no_more, an_entry_follows_that_of_a_whole_batch,
    entries_come_in_the_order_of_their_messages, a_stop_leaves_no_message_behind, what_is_at_rest_may_stop,
    a_producer_is_told_where_its_message_lies, nobody_is_told_of_what_is_not_there, what_nobody_sent_is_noticed,
    the_table_names_the_last_entry_and_no_other, the_table_may_lag_behind_the_first_message,
    a_file_has_neither_more_nor_less_than_its_bytes, all_that_has_entries_may_expire,
    an_entry_may_outlive_its_message, an_entry_of_what_is_kept_is_not_old, a_queue_goes_on_where_it_was_cut_off,
    a_log_that_lost_its_beginning_has_a_queue_of_any_number, the_first_queue_of_a_log_is_found,
)
AT_REST = (every_message_has_its_entry,)
