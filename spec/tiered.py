"""One queue in tiered storage: its entries and its messages, copied out of the broker's store in batches.

A queue has two sequences of files of its own there, and metadata that says how far each of them is committed. The
messages lie in a log of this queue alone, in the order of their numbers; an entry says where in it a message lies.
Source: docs/rocketmq-tiered.md.
"""

from dataclasses import dataclass

from gapless.spec.language import Number, Position, assume, replace, require


@dataclass(frozen=True, slots=True)
class State:
    """The ends of the files, and of the entries that were followed to their messages."""

    start: Position = Position(0)  # of the queue's tiered log: messages below have expired
    log_end: Position = Position(0)  # exclusive end of its files, as far as they are committed
    first: Number = Number(0)  # of the first entry in the files
    end: Number = Number(0)  # exclusive end of the entries that are committed
    read: Number = Number(0)  # exclusive end of the entries that were followed
    reached: Position = Position(0)  # where the last message ends that an entry named


def open(s: State, start: Position, number: Number) -> State:  # noqa: A001 - the step's name in every trace.
    """A queue is found in tiered storage: its log begins at `start`, its entries at `number`.

    Source: docs/rocketmq-tiered.md#layout.
    """
    require(s.log_end == 0 and s.end == 0, "tiered-queue-is-new", because="the tiered queue is new",
        otherwise="two queues are taken for one")
    require(0 <= start and 0 <= number, "tiered-queue-begins-at-0-or-behind",
        because="a queue and its log begin at 0 or behind it", otherwise="its messages cannot be asked for")
    return replace(s, start=start, log_end=start, first=number, end=number, read=number, reached=start)


def find_log_file(s: State, base: Position, committed: int, length: int) -> State:
    """A file of the tiered log: `length` bytes from `base` on, of which `committed` are committed by the metadata.

    Source: docs/rocketmq-tiered.md#metadata; FlatAppendFile.
    """
    require(base == s.log_end, "tiered-log-file-begins-where-the-one-before-it-ends",
        because="a file of the tiered log begins where the one before it ends",
        otherwise="messages between them are lost, or two lie at one place")
    require(0 <= committed and committed <= length, "tiered-log-file-holds-what-its-metadata-says",
        because="the file holds all that the metadata says is committed",
        otherwise="messages are deleted on the broker's disk, and are nowhere else")
    return replace(s, log_end=Position(base + committed))


def find_queue_file(s: State, number: Number, committed: int, length: int) -> State:
    """A file of the tiered queue: `length` entries from `number` on, of which `committed` are committed.

    Source: docs/rocketmq-tiered.md#metadata; FlatAppendFile.
    """
    require(number == s.end, "tiered-queue-file-begins-where-the-one-before-it-ends",
        because="a file of the tiered queue begins where the one before it ends",
        otherwise="entries between them are lost, and consumers pass over their messages")
    require(0 <= committed and committed <= length, "tiered-queue-file-holds-what-its-metadata-says",
        because="the file holds all entries that the metadata says are committed",
        otherwise="consumers ask for messages and receive none")
    return replace(s, end=Number(number + committed))


def find_entry(
    s: State, number: Number, position: Position, size: int, tag: int, lies: bool, whole: bool, owned: bool,
    its_number: Number, its_position: Position, its_size: int, its_tag: int, same: bool, intact: bool,
) -> State:
    """Entry `number` says where its message lies, how long it is, and the code of its tag.

    `lies`: a record begins there · `whole`: its parts add up · `owned`: it has the topic and the queue id of this queue
    · `its_number` …: what the message itself says · `same`: the broker's own log, where it still holds the message, has
    the same bytes, but for the place · `intact`: the body has its checksum.

    Source: docs/rocketmq-tiered.md#upload; MessageStoreDispatcherImpl.doScheduleDispatch.
    """
    require(number == s.read and number < s.end, "no-tiered-entry-before-it-is-missing",
        because="the entry follows the one before it, and is committed",
        otherwise="a message is in tiered storage and no consumer ever receives it")
    require(s.reached <= position, "tiered-messages-lie-in-the-order-of-their-entries",
        because="messages lie in the order of their entries",
        otherwise="consumers receive a message twice, and another one never")
    require(lies, "tiered-entry-names-a-message",
        because="a message lies where the entry says", otherwise="consumers ask for the message and receive none")
    require(whole, "tiered-message-is-whole",
        because="the message is whole", otherwise="consumers ask for the message and receive none")
    require(owned, "tiered-message-is-of-its-queue",
        because="the message is of this topic and queue", otherwise="consumers receive messages of another queue")
    require(its_number == number, "tiered-message-has-the-number-of-its-entry",
        because="the message has the number of its entry",
        otherwise="consumers receive another message in its place, one twice, or none")
    require(its_position == position, "tiered-message-names-its-place",
        because="the message names its place in the tiered log",
        otherwise="it was written elsewhere than its entry says, or over another one")
    require(its_size == size, "tiered-entry-has-the-size-of-its-message",
        because="the entry has the size of its message",
        otherwise="consumers receive a message cut short, or none")
    require(its_tag == tag, "tiered-entry-has-the-tag-code-of-its-message",
        because="the entry has the tag code of its message",
        otherwise="consumers that filter by tag miss the message, or receive one they did not ask for")
    require(same, "tiered-message-is-the-brokers-own",
        because="the broker's own log has the same message",
        otherwise="what a consumer receives depends on where the broker reads it")
    require(intact, "tiered-body-has-its-checksum",
        because="the body has its checksum", otherwise="consumers receive damaged data")
    assume(0 < size, because="a message that is whole has a size")
    return replace(s, read=Number(number + 1), reached=Position(position + size))


def outlive(s: State, number: Number, position: Position) -> State:
    """Entry `number`, old among younger ones, points at `position`, where its message once lay.

    Source: docs/rocketmq-tiered.md#expiry; FlatMessageFile.getConsumeQueueMinOffset.
    """
    require(number == s.read and number < s.end, "no-old-tiered-entry-before-it-is-missing",
        because="the entry follows the one before it, and is committed",
        otherwise="a message is in tiered storage and no consumer ever receives it")
    require(position < s.start, "message-of-the-old-tiered-entry-has-expired",
        because="the message of the old entry lay below the log's start",
        otherwise="an entry that is needed counts as old")
    require(s.reached == s.start, "old-tiered-entries-come-first",
        because="no younger entry comes before it", otherwise="consumers ask for the message and receive none")
    return replace(s, read=Number(number + 1))


def entries_are_followed_in_order(s: State) -> bool:
    """Otherwise a message is in tiered storage and no consumer ever receives it."""
    return 0 <= s.first and s.first <= s.read and s.read <= s.end


def the_log_goes_on_from_its_start(s: State) -> bool:
    """Otherwise messages that have expired are asked for."""
    return 0 <= s.start and s.start <= s.reached and s.start <= s.log_end


def entries_are_followed_one_by_one(before: State, after: State) -> bool:
    """Otherwise an entry is passed over."""
    is_new = before.log_end == 0 and before.end == 0
    return is_new or after.read == before.read or after.read == before.read + 1


def what_is_committed_stays(before: State, after: State) -> bool:
    """Otherwise messages that the broker no longer has are lost."""
    is_new = before.log_end == 0 and before.end == 0
    return is_new or (before.log_end <= after.log_end and before.end <= after.end)


def messages_do_not_overlap(before: State, after: State) -> bool:
    """Otherwise one is written over another."""
    is_new = before.log_end == 0 and before.end == 0
    return is_new or before.reached <= after.reached


# What can be done, from whatever state.


INITIAL = State()
ACTIONS = (open, find_log_file, find_queue_file, find_entry, outlive)
INVARIANTS = (entries_are_followed_in_order, the_log_goes_on_from_its_start)
STEP_PROPERTIES = (entries_are_followed_one_by_one, what_is_committed_stays, messages_do_not_overlap)
