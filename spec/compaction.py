"""One compacted queue: a log of its own keeps the newest message of each key, and entries of its own name them.

Consumers of the topic are served from here. The log is cut into files, each with a file of entries of its own. All
files but the last are written again now and then, without the messages that a later one of the same key has made old,
and without those whose body is empty.

Source: docs/rocketmq.md#compaction.
"""

from dataclasses import dataclass

from gapless.spec.language import Number, Position, assume, implies, replace, require


@dataclass(frozen=True, slots=True)
class State:
    """The last file, and the entries and messages that were followed."""

    files: int = 0  # that were found
    base: Position = Position(0)  # of the file that is read
    reached: Position = Position(0)  # where the last record ends that an entry named
    end: Number = Number(0)  # behind the last message that is kept
    begun: bool = False  # the file that is read has an entry
    first: Number = Number(0)  # of the first message in it
    missed: Number = Number(0)  # behind the newest message that was missed
    misses: int = 0  # how many were missed


def find_files(s: State, base: Position, records: bool, entries: bool) -> State:
    """The next file: its first byte is at `base`. `records`, `entries`: there is such a file of records, of entries.

    Source: docs/rocketmq.md#compaction; CompactionLog.TopicPartitionLog.sanityCheck.
    """
    require(s.files == 0 or s.reached <= base, "compacted-file-begins-behind-the-one-before-it",
        because="a file begins behind the records of the one before it",
        otherwise="two messages lie at one place, and consumers receive one of them twice")
    require(records and entries, "compacted-records-and-entries-go-together",
        because="every file of records has its file of entries, and every file of entries its records",
        otherwise="the broker does not start, or consumers ask for messages and receive none")
    assume(0 <= base, because="names of files are numbers")
    assume(s.missed == 0, because="a message is missed once all files were read")
    return replace(s, files=s.files + 1, base=base, reached=base, begun=False, first=Number(0))


def find_entry(
    s: State, number: Number, position: Position, size: int, tag: int, time: int, count: int, lies: bool, whole: bool,
    owned: bool, its_number: Number, its_position: Position, its_size: int, its_tag: int, its_time: int, keyed: bool,
    same: bool, intact: bool,
) -> State:
    """Entry `number` names the place, the size, the tag code and the store time of its message.

    `count`: how many messages it stands for · `lies`: a record begins there · `whole`: its parts add up · `owned`: it
    has the topic and the queue id of this queue · `its_number` …: what the message itself says · `keyed`: it has a key
    · `same`: the broker's own log, where it still holds the message, has the same bytes, but for the place ·
    `intact`: the body has its checksum.

    Source: docs/rocketmq.md#compaction; CompactionLog.CompactionAppendMessageCallback.doAppend.
    """
    require(0 < s.files and s.end <= number, "compacted-numbers-rise",
        because="messages are in the order of their numbers, each once",
        otherwise="consumers receive a message twice, or never come to the end of the queue")
    require(position == s.reached, "compacted-message-follows-the-one-before-it",
        because="the message begins where the one before it ends, or its file begins",
        otherwise="the entry names another message, or none")
    require(lies, "compacted-entry-names-a-message",
        because="a message lies where the entry says", otherwise="consumers ask for the message and receive none")
    require(whole, "compacted-message-is-whole",
        because="the message is whole", otherwise="consumers ask for the message and receive none")
    require(owned, "compacted-message-is-of-its-queue",
        because="the message is of this topic and queue", otherwise="consumers receive messages of another queue")
    require(its_number == number, "compacted-message-has-the-number-of-its-entry",
        because="the message has the number of its entry",
        otherwise="consumers receive another message in its place, one twice, or none")
    require(its_position == position, "compacted-message-names-its-place",
        because="the message names its place in the compacted log",
        otherwise="it was written elsewhere than its entry says, or over another one")
    require(its_size == size and count == 1, "compacted-entry-has-the-size-of-its-message",
        because="the entry stands for one message, and has its size",
        otherwise="consumers receive a message cut short, or none")
    require(its_tag == tag, "compacted-entry-has-the-tag-code-of-its-message",
        because="the entry has the tag code of its message",
        otherwise="consumers that filter by tag miss the message, or receive one they did not ask for")
    require(its_time == time, "compacted-entry-has-the-time-of-its-message",
        because="the entry has the time at which its message was stored",
        otherwise="consumers that begin at a time begin elsewhere")
    require(keyed, "compacted-message-has-a-key",
        because="the message has a key", otherwise="it is kept for ever, for no later one can take its place")
    require(same, "compacted-message-is-the-brokers-own",
        because="the broker's own log has the same message",
        otherwise="consumers receive messages that were never sent")
    require(intact, "compacted-body-has-its-checksum",
        because="the body has its checksum", otherwise="consumers receive damaged data")
    assume(0 < size, because="a message that is whole has a size")
    assume(0 <= number, because="a broker takes nothing else for an entry")
    assume(s.missed == 0, because="a message is missed once all files were read")
    first = s.first if s.begun else number
    return replace(s, reached=Position(position + size), end=Number(number + 1), begun=True, first=first)


def find_position(s: State, number: Number, given: bool, hollow: bool) -> State:
    """All up to message `number` was compacted, as the broker wrote down, now or one compaction ago.

    `given`: the queue has had a message of this number · `hollow`: its body is empty, or the broker's own log does not
    contain it any more.

    Source: docs/rocketmq.md#compaction-position; CompactionPositionMgr, CompactionLog.compactAndReplace.
    """
    require(given, "compacted-up-to-a-message-of-the-queue",
        because="the last message that was compacted has been in the queue",
        otherwise="messages to come count as compacted, and older ones of their keys come back")
    require(hollow or not s.begun or number < s.first, "compacted-up-to-the-last-file-at-most",
        because="nothing in the last file was compacted yet",
        otherwise="messages there count as compacted, and older ones of their keys come back")
    return s


def miss(s: State, number: Number, hollow: bool, later: Number) -> State:
    """Message `number` has a key, and is not among those that are kept.

    `hollow`: its body is empty · `later`: the number of the next message with the same key, or -1.

    Source: docs/rocketmq.md#compaction; CompactionLog.shouldRetainMsg.
    """
    require(not s.begun or number < s.first, "message-that-was-not-compacted-is-kept",
        because="a message that was not compacted yet is kept",
        otherwise="consumers of the compacted topic never receive it")
    require(hollow or 0 <= later, "newest-message-of-its-key-is-kept",
        because="a later message has its key, or its body is empty",
        otherwise="consumers take an older message for the newest of this key, or find none")
    require(hollow or not s.begun or later < s.first, "message-is-kept-until-a-later-one-is-compacted",
        because="a later message of its key was compacted",
        otherwise="consumers take an older message for the newest of this key, or find none")
    return replace(s, missed=s.missed if number < s.missed else Number(number + 1), misses=s.misses + 1)


def start(s: State, numbered: bool, sized: bool) -> State:
    """The broker's next start takes every file of the queue.

    `numbered`: each is called by a number · `sized`: all have one length.

    Source: docs/rocketmq.md#compaction-start; MappedFileQueue.doLoad, CompactionStore.load.
    """
    require(numbered, "compacted-files-are-called-by-numbers",
        because="every file is called by a number",
        otherwise="the broker does not start, or consumers of the queue receive nothing")
    require(sized, "compacted-files-have-one-length",
        because="every file has the length that all are born with",
        otherwise="the broker starts without what the queue keeps: consumers receive nothing")
    return s


def records_lie_in_the_file_that_is_read(s: State) -> bool:
    """Otherwise an entry names a place in another file."""
    return 0 <= s.files and 0 <= s.base and s.base <= s.reached


def the_first_message_of_a_file_is_one_that_is_kept(s: State) -> bool:
    """Otherwise it is unknown which messages were compacted."""
    return 0 <= s.end and implies(s.begun, 0 <= s.first and s.first < s.end)


def what_was_not_compacted_is_never_missed(s: State) -> bool:
    """Otherwise consumers never receive it."""
    return 0 <= s.missed and implies(s.begun, s.missed <= s.first)


def entries_rise(before: State, after: State) -> bool:
    """Otherwise consumers receive a message twice."""
    return before.end <= after.end


def records_do_not_overlap(before: State, after: State) -> bool:
    """Otherwise one is written over another."""
    return before.files == 0 or before.reached <= after.reached


def what_is_missed_changes_nothing_that_is_kept(before: State, after: State) -> bool:
    """Otherwise a message that is lost hides another one."""
    return implies(before.misses != after.misses, before.end == after.end and before.reached == after.reached)


# What can be done, from whatever state.


INITIAL = State()
ACTIONS = (find_files, find_entry, find_position, miss, start)
INVARIANTS = (
    records_lie_in_the_file_that_is_read,
    the_first_message_of_a_file_is_one_that_is_kept,
    what_was_not_compacted_is_never_missed,
)
STEP_PROPERTIES = (
    entries_rise,
    records_do_not_overlap,
    what_is_missed_changes_nothing_that_is_kept,
)
