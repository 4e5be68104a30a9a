"""One queue of one topic: every message of the log once, in order, found through its entry."""

from dataclasses import dataclass

from gapless.spec.language import Map, Number, Position, all_between, assume, implies, replace, require

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
AT_REST = (every_message_has_its_entry,)
