"""A commit log: records laid end to end in files of one size, never lost once acknowledged."""

from dataclasses import dataclass

from gapless.spec.language import Position, greatest, implies, replace, require

BLANK = 8  # bytes: the size and magic number that end every file but the last
RESTART = 1000  # ms: no broker stops and starts again in less


@dataclass(frozen=True, slots=True)
class State:
    """The begin and end of the log, and the part of it that is safe."""

    file_size: int = 0  # bytes of every file; 0 until the log is opened, then no step changes it
    start: Position = Position(0)  # where the log begins: what lay below has expired
    base: Position = Position(0)  # where the file being written begins
    end: Position = Position(0)  # exclusive end of the records
    flushed: Position = Position(0)  # exclusive end of what survives a crash
    acknowledged: Position = Position(0)  # exclusive end of what is reported safe to producers
    clock: int = 0  # ms, the store time of the last record
    newest: int = 0  # ms, the latest store time of any record


def open(s: State, position: Position, file_size: int) -> State:  # noqa: A001 - the step's name in every trace.
    """A log is found that begins at `position`; older files, if any, have expired.

    Source: docs/rocketmq.md#cl2; MappedFileQueue.load.
    """
    require(s.file_size == 0, "log-is-not-open-yet",
        because="the log is not open yet", otherwise="two logs are taken for one")
    require(file_size > BLANK, "file-holds-more-than-a-blank",
        because="a file holds more than a blank", otherwise="no record can ever be appended")
    return replace(
        s,
        file_size=file_size,
        start=position,
        base=position,
        end=position,
        flushed=position,
        acknowledged=position,
    )


def append(
    s: State,
    position: Position,
    size: int,
    claimed: Position,
    known: bool,
    fits: bool,
    intact: bool,
    sealed: bool,
    time: int,
) -> State:
    """A record is written at the log's end.

    `claimed` is the position that the record names as its own; `known`, `fits`, `intact` and `sealed` say of its
    bytes that the magic number is one of ours, that the parts add up to `size` (the last property reaching the end of
    the list of properties), that the body has its CRC and that the properties, if they carry a CRC, have theirs.

    Source: docs/rocketmq.md#record, #cl1, #cl4; CommitLog.doAppend, checkMessageAndReturnSize.
    """
    require(position == s.end, "record-begins-where-the-last-one-ends",
        because="the record begins where the last one ends",
        otherwise="bytes between two records belong to no record: messages are lost")
    require(known, "record-carries-a-known-magic-number",
        because="the record carries a known magic number",
        otherwise="a broker that starts here takes this for the end of the log and drops all that follows")
    require(fits, "parts-of-the-record-add-up-to-its-size",
        because="the parts of the record add up to its size",
        otherwise="a broker that starts here drops it and all that follows, or hands out a message that was never sent")
    require(0 < size, "record-has-bytes",
        because="the record has bytes", otherwise="a reader that steps from record to record stands still")
    require(position + size + BLANK <= s.base + s.file_size, "record-leaves-room-for-the-blank-in-its-file",
        because="the record leaves room for the blank in its file",
        otherwise="a record spans two files and can be read from neither")
    require(claimed == position, "record-names-its-own-position",
        because="the record names its own position",
        otherwise="the record was meant for another place: what belongs here is lost")
    require(intact, "body-has-its-checksum",
        because="the body has its checksum", otherwise="consumers receive other bytes than the producer sent")
    require(sealed, "record-has-the-checksum-that-its-properties-carry",
        because="the record has the checksum that its properties carry",
        otherwise="consumers receive other properties than the producer sent")
    require(s.clock <= time, "clock-does-not-step-back",
        because="the clock does not step back", otherwise="a search by time may miss messages")
    return replace(s, end=Position(position + size), clock=time, newest=greatest(s.newest, time))


def roll(s: State, position: Position, size: int, marked: bool) -> State:
    """A blank of `size` bytes fills the file, and the next one begins; `marked` says that it carries its mark.

    Source: docs/rocketmq.md#blank, #cl1; CommitLog.doAppend (END_OF_FILE).
    """
    require(position == s.end, "blank-begins-where-the-last-record-ends",
        because="the blank begins where the last record ends",
        otherwise="bytes between the last record and the blank belong to no record: messages are lost")
    require(marked, "file-that-is-full-ends-in-a-blank",
        because="a file that is full ends in a blank",
        otherwise="a broker that starts here takes this for the end of the log and drops all later files")
    require(BLANK <= size and position + size == s.base + s.file_size, "blank-reaches-the-end-of-its-file",
        because="the blank reaches the end of its file",
        otherwise="a reader that steps over the blank does not find the next file")
    end = Position(position + size)
    return replace(s, base=end, end=end)


def flush(s: State, to: Position) -> State:
    """Everything before `to` is on disk."""
    require(s.flushed <= to, "flushed-position-moves-on",
        because="the flushed position moves on", otherwise="safe bytes count as unsafe")
    require(to <= s.end, "bytes-are-written",
        because="the bytes are written", otherwise="bytes that do not exist count as safe")
    return replace(s, flushed=to)


def acknowledge(s: State, to: Position) -> State:
    """The broker reports to producers that everything before `to` is safe."""
    require(s.acknowledged <= to, "acknowledged-position-moves-on",
        because="the acknowledged position moves on", otherwise="a producer hears of it twice, or never")
    require(to <= s.flushed, "bytes-are-on-disk",
        because="the bytes are on disk", otherwise="a crash loses what a producer was promised")
    return replace(s, acknowledged=to)


def crash(s: State, kept: Position) -> State:
    """The page cache is lost: a prefix at least as long as what was flushed survives."""
    require(s.flushed <= kept, "what-was-flushed-survives",
        because="what was flushed survives", otherwise="a disk forgot what it had stored")
    require(s.base <= kept, "full-files-survive",
        because="full files survive", otherwise="a file that was flushed whole is lost")
    require(kept <= s.end, "nothing-is-invented",
        because="nothing is invented", otherwise="consumers receive messages that were never sent")
    return replace(s, end=kept, flushed=kept)


def checkpoint(s: State, time: int) -> State:
    """The checkpoint file says: every record stored up to `time` is on disk.

    Source: docs/rocketmq.md#checkpoint; StoreCheckpoint.physicMsgTimestamp (seen to lag behind the last record even
    after a clean stop, and never to be ahead of it).
    """
    require(time <= s.newest, "what-was-flushed-is-still-in-the-log",
        because="what was flushed is still in the log",
        otherwise="the end of the log is lost, acknowledged messages with it")
    return s


def refer(s: State, position: Position) -> State:
    """An entry of a consume queue names a record at `position`.

    Source: docs/rocketmq.md#cq5; ConsumeQueueStore.truncateDirty.
    """
    require(position < s.end, "records-that-queues-name-are-in-the-log",
        because="the records that queues name are in the log",
        otherwise="the end of the log is lost, acknowledged messages with it")
    return s


def omit(s: State, position: Position, since: Position, until: Position, pause: int) -> State:
    """The record at `position` carries no checksum of itself, and others of its log do.

    Whether records carry one is a setting, which holds for one life of a broker, and for all records of that life.
    `since`, `until`: the store says that all records between these positions carry one; equal if it says nothing.
    `pause`: ms between the record and the nearest one that carries its checksum, or without a restart between them 0.

    Source: docs/rocketmq.md#property-crc; CommitLog.DefaultAppendMessageCallback.
    """
    require(implies(since <= position, until <= position), "record-carries-the-checksum-that-its-store-promises",
        because="the record carries a checksum where its store says that all do",
        otherwise="consumers receive other properties than the producer sent")
    require(RESTART <= pause, "record-carries-a-checksum-as-others-of-its-life-do",
        because="the record carries a checksum as others of the broker's same life do",
        otherwise="consumers receive other properties than the producer sent")
    return s


def positions_are_ordered(s: State) -> bool:
    """Otherwise bytes are reported safe that a crash can take away."""
    return s.acknowledged <= s.flushed and s.flushed <= s.end


def the_log_ends_in_its_last_file(s: State) -> bool:
    """Otherwise a record spans files, and no reader finds it whole."""
    return s.start <= s.base and s.base <= s.end and implies(s.base < s.end, s.end + BLANK <= s.base + s.file_size)


def a_file_has_room(s: State) -> bool:
    """Otherwise no record can ever be appended."""
    return s.file_size == 0 or BLANK < s.file_size


def the_newest_time_is_a_bound(s: State) -> bool:
    """Otherwise a checkpoint could accuse a log that lost nothing."""
    return s.clock <= s.newest


def nothing_acknowledged_is_lost(before: State, after: State) -> bool:
    """Otherwise a message that was reported safe is lost."""
    return implies(before.file_size > 0, before.acknowledged <= after.end)


def what_was_acknowledged_stays_acknowledged(before: State, after: State) -> bool:
    """Otherwise a message is reported safe twice, or never."""
    return implies(before.file_size > 0, before.acknowledged <= after.acknowledged)


def the_clock_never_steps_back(before: State, after: State) -> bool:
    """Otherwise a search by time may miss messages."""
    return before.clock <= after.clock


def the_file_size_never_changes(before: State, after: State) -> bool:
    """Otherwise a position no longer says which file it lies in."""
    return implies(before.file_size > 0, after.file_size == before.file_size)


def every_record_is_on_disk(s: State) -> bool:
    """Otherwise a message that was taken can still be lost."""
    return s.flushed == s.end


# What can be done: of what becomes of a record, from whatever state. A helper's name says which steps it takes.


INITIAL = State()
ACTIONS = (open, append, roll, flush, acknowledge, crash, checkpoint, refer, omit)
INVARIANTS = (positions_are_ordered, the_log_ends_in_its_last_file, a_file_has_room, the_newest_time_is_a_bound)
STEP_PROPERTIES = (
    nothing_acknowledged_is_lost,
    what_was_acknowledged_stays_acknowledged,
    the_clock_never_steps_back,
    the_file_size_never_changes,
)
AT_REST = (every_record_is_on_disk,)
