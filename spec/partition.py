"""One partition of a topic, as a broker of Kafka keeps it: batches end to end in segments, with indexes.

Each batch carries the epoch of the leader that wrote it. Source: docs/kafka.md.
"""

from dataclasses import dataclass

from gapless.spec.language import Number, Position, assume, greatest, implies, replace, require

NOWHERE = -1  # where Kafka writes -1: no epoch, no time, no offset
HEAD = 61  # bytes of a batch before its records
REACH = 2147483647  # an index has four bytes for how far an offset lies behind its segment's name


@dataclass(frozen=True, slots=True)
class State:
    """The log's offsets, the epoch of its leader, and the segment that is written with its indexes."""

    opened: bool = False
    compacted: bool = False  # the topic was compacted once, or may have been: offsets may be missing
    start: Number = Number(0)  # of the log: what lay below was deleted
    stable: Number = Number(0)  # exclusive end of what is decided: readers of committed transactions stop here
    high: Number = Number(0)  # the high watermark: exclusive end of what every replica in sync has
    end: Number = Number(0)  # exclusive end of the offsets that were given
    cleaned: Number = Number(0)  # exclusive end of what the cleaner went through
    flushed: Number = Number(0)  # the recovery point: exclusive end of what is on disk
    saved: Number = Number(0)  # the last snapshot of its producers was taken here
    epoch: int = NOWHERE  # of the leader
    since: Number = Number(0)  # where the leader's epoch begins
    first: Number = Number(NOWHERE)  # the first offset of the last batch
    segment: Number = Number(0)  # the name of the segment that is written
    reached: Position = Position(0)  # exclusive end of the batches in its file
    indexed: Number = Number(0)  # exclusive end of the offsets that its index names
    index_reached: Position = Position(0)  # behind the last position that its index names
    newest: int = NOWHERE  # the greatest time of a batch in the segment
    timed: int = NOWHERE  # the time of the last entry in its time index
    newer: bool = False  # the last batch has the greatest time, and is the first that has it


def open(  # noqa: A001 - the step's name in every trace.
    s: State, start: Number, segment: Number, offset: Number, position: Position, epoch: int, since: Number,
    newest: int, timed: int, compacted: bool,
) -> State:
    """A log that begins at `start` is read from `offset` on, at `position` of `segment`.

    `epoch`, `since`: of the leader before that offset · `newest`, `timed`: of what lies before it in the segment.

    Source: docs/kafka.md#segments.
    """
    require(not s.opened, "log-of-the-partition-is-not-open-yet",
        because="the log of the partition is not open yet", otherwise="two logs are taken for one")
    require(segment <= offset, "segment-is-named-by-its-first-offset-or-one-before",
        because="a segment is named by its first offset or by one before it",
        otherwise="a consumer that asks for an offset finds nothing")
    assume(0 <= start and start <= offset and since <= offset, because="a reader begins within the log")
    assume(0 <= position and NOWHERE <= timed and timed <= newest, because="a reader knows what it has passed")
    return replace(
        s, opened=True, compacted=compacted, start=start, stable=start, high=start, end=offset, cleaned=start,
        flushed=start, saved=start, epoch=epoch, since=since, first=Number(NOWHERE), segment=segment, reached=position,
        indexed=offset, index_reached=position, newest=newest, timed=timed, newer=False,
    )


def lead(s: State, epoch: int, since: Number) -> State:
    """A leader of `epoch` takes over, and its offsets begin at `since`; on a compacted log some may be missing.

    Source: docs/kafka.md#epochs; LeaderEpochFileCache.assign.
    """
    require(s.epoch < epoch, "epoch-of-the-leader-goes-up",
        because="the epoch of the leader goes up", otherwise="two leaders write under one epoch, and replicas differ")
    require((s.compacted and s.end < since) or since == s.end, "epoch-begins-where-the-log-ends",
        because="an epoch begins where the log ends",
        otherwise="a follower cuts its log off at the wrong offset: committed records are lost, or replicas differ")
    return replace(s, epoch=epoch, since=since, end=since)


def append(
    s: State, first: Number, last: Number, count: int, epoch: int, position: Position, size: int, time: int,
    sound: bool, whole: bool, ordered: bool, dated: bool,
) -> State:
    """A batch of `count` records, at `position`, takes the offsets from `first` to `last`.

    `time`: its greatest time. `sound`, `whole`, `ordered` and `dated` say of its bytes that they have their checksum,
    that its records end where the batch does, that their offsets go up within it, and that one of them has that time.

    Source: docs/kafka.md#batches, #append; UnifiedLog.append, DefaultRecordBatch.
    """
    require(position == s.reached, "batch-begins-where-the-one-before-it-ends",
        because="a batch begins where the one before it ends",
        otherwise="bytes between them belong to no batch: records are lost")
    require(HEAD <= size, "batch-has-room-for-its-head",
        because="a batch has room for its head", otherwise="a reader finds no batch behind it")
    require(sound, "batch-has-its-checksum",
        because="the batch has its checksum", otherwise="consumers refuse it, and never come past it")
    require((s.compacted and s.end < first) or first == s.end, "offsets-follow-one-another",
        because="the offsets of batches follow one another",
        otherwise="a record is lost, or two records have one offset")
    require(first <= last, "batch-takes-an-offset",
        because="a batch takes an offset", otherwise="the next batch takes the same one")
    require(last - s.segment <= REACH, "offset-fits-its-segment",
        because="an offset lies so near its segment's name that an index has room for it",
        otherwise="an index names another offset")
    require((s.compacted and 0 <= count and count <= last - first) or count == last - first + 1,
        "batch-has-a-record-for-each-offset",
        because="the batch has a record for each of its offsets, or fewer if the topic was compacted",
        otherwise="a record is lost, or two records have one offset")
    require(s.epoch <= epoch, "epoch-of-batches-does-not-go-back",
        because="the epoch of batches does not go back",
        otherwise="a leader that was replaced still writes: what it was sent is lost")
    require(epoch == s.epoch, "batch-has-the-epoch-of-its-leader",
        because="the batch has the epoch that leads at its offset",
        otherwise="a follower cuts its log off at the wrong offset: committed records are lost, or replicas differ")
    require(whole, "records-end-where-their-batch-ends",
        because="the records of a batch end where it ends", otherwise="consumers refuse it, and never come past it")
    require(ordered, "offsets-of-a-batch-go-up",
        because="the offsets of a batch's records go up, within those of the batch",
        otherwise="consumers receive a record twice, or pass over one")
    require(dated, "time-of-a-batch-is-that-of-a-record",
        because="the greatest time of a batch is that of one of its records",
        otherwise="who looks for a time begins elsewhere, and records are deleted too early or too late")
    return replace(
        s, first=first, end=Number(last + 1), reached=Position(position + size), newest=greatest(s.newest, time),
        newer=s.newest < time,
    )


def index(s: State, offset: Number, position: Position, begins: Number) -> State:
    """An entry of the index: the last offset of the batch that was read last, and where to begin reading for it.

    `begins`: the first offset of the batch that begins at `position`; -1 if none does. It may be an earlier batch,
    where several were written at once. Of a compacted batch the entry may name a record that is left.

    Source: docs/kafka.md#indexes; LogSegment.append, OffsetIndex.append.
    """
    require(0 <= begins, "index-entry-points-at-a-batch",
        because="an index entry points at a batch", otherwise="consumers that begin there receive an error, or nothing")
    require(begins <= offset, "index-entry-points-at-its-offset-or-before-it",
        because="an index entry points at its offset or before it", otherwise="consumers pass over records")
    require((s.compacted and s.first <= offset and offset < s.end) or offset + 1 == s.end, "index-entry-ends-a-batch",
        because="an index entry names the last offset of a batch", otherwise="consumers pass over records")
    require(s.indexed <= offset, "index-entries-go-up",
        because="the offsets of index entries go up", otherwise="who looks an offset up finds another entry")
    require(s.index_reached <= position, "positions-of-index-entries-go-up",
        because="the positions of index entries go up", otherwise="consumers pass over records")
    assume(position < s.reached, because="an entry is read behind the batch that it points at")
    return replace(s, indexed=Number(offset + 1), index_reached=Position(position + 1))


def index_time(s: State, time: int, offset: Number) -> State:
    """An entry of the time index, read behind the batch that has its offset: nothing before that is as new.

    Source: docs/kafka.md#indexes; TimeIndex.maybeAppend.
    """
    require(s.timed < time, "times-of-index-entries-go-up",
        because="the times of a time index go up", otherwise="who looks a time up finds another entry")
    require(s.first <= offset and offset < s.end, "time-index-entry-names-an-offset-of-its-batch",
        because="an entry of the time index names an offset of a batch",
        otherwise="consumers that begin at a time pass over records")
    require(time == s.newest, "time-index-entry-has-the-time-of-its-batch",
        because="the entry has the greatest time so far",
        otherwise="consumers that begin at a time pass over records, and a segment is deleted too early or too late")
    require(s.newer, "time-index-entry-names-the-first-batch-of-its-time",
        because="no batch before it in the segment is as new",
        otherwise="consumers that begin at a time pass over records")
    return replace(s, timed=time)


def seal(s: State) -> State:
    """The segment's indexes are closed: it is full, or the broker stops in order.

    Source: docs/kafka.md#indexes; LogSegment.onBecomeInactiveSegment.
    """
    require(s.timed == s.newest, "last-time-index-entry-has-the-greatest-time",
        because="the last entry of the time index has the greatest time of the segment",
        otherwise="the segment is deleted while it has records that are to be kept")
    return s


def roll(s: State, segment: Number, rest: int) -> State:
    """The next segment begins; `rest` bytes lie behind the last whole batch of the one before it.

    Source: docs/kafka.md#segments; UnifiedLog.roll.
    """
    require(rest == 0, "full-segment-is-whole-batches",
        because="a segment that is full consists of whole batches",
        otherwise="records are lost, and no reader comes past the end of the segment")
    require((s.compacted and s.end < segment) or segment == s.end, "segment-is-named-by-the-offset-that-comes-next",
        because="a segment is named by the offset that comes next",
        otherwise="records are lost, or two records have one offset")
    return replace(
        s, end=segment, segment=segment, reached=Position(0), indexed=segment, index_reached=Position(0),
        newest=NOWHERE, timed=NOWHERE, newer=False,
    )


def flush(s: State, to: Number) -> State:
    """Everything below the recovery point is on disk.

    Source: docs/kafka.md#checkpoints; LogManager.checkpointLogRecoveryOffsets.
    """
    require(to <= s.end, "recovery-point-stays-within-the-log",
        because="the recovery point stays within the log", otherwise="records that were on disk are lost")
    require(s.flushed <= to, "recovery-point-goes-on",
        because="the recovery point goes on", otherwise="a start reads again what is known to be whole")
    return replace(s, flushed=to)


def save(s: State, at: Number, sound: bool) -> State:
    """A snapshot of the producers was taken at offset `at`; `sound` says that it has its checksum.

    Source: docs/kafka.md#snapshots; ProducerStateManager.takeSnapshot.
    """
    require(sound, "snapshot-has-its-checksum",
        because="a snapshot has its checksum", otherwise="a broker that starts reads all segments from the first on")
    require(at <= s.end, "snapshot-lies-within-the-log",
        because="a snapshot is taken within the log", otherwise="records that a broker knew of are lost")
    return replace(s, saved=Number(greatest(s.saved, at)))


def raise_watermark(s: State, to: Number, undecided: Number) -> State:
    """Every replica in sync has what lies below `to`: consumers may read it.

    `undecided`: the first offset of the earliest transaction that is open, or -1. Readers of committed transactions
    stop there.

    Source: docs/kafka.md#watermark; UnifiedLog.maybeIncrementHighWatermark, lastStableOffset.
    """
    require(to <= s.end, "high-watermark-stays-within-the-log",
        because="the high watermark never passes the end of the log",
        otherwise="records that consumers have read are lost")
    require(s.high <= to, "high-watermark-goes-on",
        because="the high watermark goes on", otherwise="consumers ask for what they have read, and are refused")
    stable = _stable(s, to, undecided)
    require(s.stable <= stable, "stable-offset-goes-on",
        because="the stable offset goes on",
        otherwise="consumers have read records of a transaction that is not decided")
    return replace(s, high=to, stable=stable)


def _stable(s: State, to: Number, undecided: Number) -> Number:
    """The first offset that is not decided, though never below the start of the log."""
    decided = to if undecided < 0 or to < undecided else undecided
    return Number(greatest(s.start, decided))


def delete(s: State, to: Number) -> State:
    """The log begins at `to` now: retention deleted what lay below, or a client asked for it.

    Source: docs/kafka.md#retention; UnifiedLog.maybeIncrementLogStartOffset.
    """
    require(s.start <= to, "log-start-goes-on",
        because="the start of the log only rises", otherwise="deleted records come back")
    require(to <= s.high, "only-what-is-committed-is-deleted",
        because="nothing at or above the high watermark is deleted",
        otherwise="a record is deleted before any consumer could read it")
    return replace(s, start=to, stable=Number(greatest(s.stable, to)))


def clean(s: State, to: Number, again: Number) -> State:
    """The cleaner went through everything below `to`: of each key the last record is left.

    `again`: the last offset whose record has a key that comes again below `to`; -1 if there is none. Below the log's
    start nothing is cleaned.

    Source: docs/kafka.md#cleaning; LogCleanerManager.cleanableOffsets.
    """
    require(s.cleaned <= to, "cleaner-goes-on",
        because="the cleaner goes on", otherwise="the cleaner begins again, and never comes to the end")
    require(to <= s.stable, "cleaner-stays-below-the-stable-offset",
        because="the cleaner never passes the stable offset",
        otherwise="records of a transaction that is not decided take the place of older ones")
    require(again < s.start, "cleaner-leaves-a-key-once",
        because="of each key the cleaner leaves one record",
        otherwise="a record that was replaced stays for ever, and who reads the topic from its start receives it")
    return replace(s, cleaned=to)


def crash(
    s: State, kept: Number, segment: Number, position: Position, epoch: int, since: Number, newest: int, timed: int
) -> State:
    """The page cache is lost: what lies below `kept` survives, the last of it at `position` of `segment`.

    Source: docs/kafka.md#recovery; LogLoader.recoverLog.
    """
    require(s.flushed <= kept, "what-was-flushed-survives",
        because="what was flushed survives", otherwise="a disk forgot what it had stored")
    assume(s.high <= kept, because="a replica that is in sync still has what is committed")
    return replace(_cut(s, kept, segment, position, epoch, since, newest, timed), flushed=kept)


def truncate(
    s: State, to: Number, segment: Number, position: Position, epoch: int, since: Number, newest: int, timed: int
) -> State:
    """A follower cuts off what its leader does not have: what lies below `to` stays.

    Source: docs/kafka.md#truncation; UnifiedLog.truncateTo.
    """
    require(s.high <= to, "what-is-committed-stays",
        because="what lies below the high watermark stays", otherwise="records that consumers have read are lost")
    flushed = s.flushed if s.flushed < to else to
    return replace(_cut(s, to, segment, position, epoch, since, newest, timed), flushed=flushed)


def _cut(
    s: State, to: Number, segment: Number, position: Position, epoch: int, since: Number, newest: int, timed: int
) -> State:
    """The log without what lies at `to` or behind it."""
    assume(to <= s.end and segment <= to and 0 <= position, because="what is left is the beginning of what was there")
    assume(epoch <= s.epoch and since <= s.since and since <= to, because="epochs go with their offsets")
    assume(since == s.since or epoch < s.epoch, because="an epoch that is left begins where it began")
    assume(NOWHERE <= timed and timed <= newest, because="the time index is cut off with its segment")
    return replace(
        s, end=to, saved=s.saved if s.saved < to else to, epoch=epoch, since=since, first=Number(NOWHERE),
        segment=segment, reached=position, indexed=to, index_reached=position, newest=newest, timed=timed, newer=False,
    )


def offsets_are_ordered(s: State) -> bool:
    """Otherwise consumers read what can be taken back: start, stable offset, high watermark, end."""
    return 0 <= s.start and s.start <= s.stable and s.stable <= s.high and s.high <= s.end


def the_cleaner_stays_below_the_stable_offset(s: State) -> bool:
    """Otherwise records of a transaction that is aborted later take the place of older ones."""
    return s.cleaned <= s.stable


def what_is_on_disk_was_written(s: State) -> bool:
    """Otherwise a start takes for whole what is not there."""
    return s.flushed <= s.end and s.saved <= s.end


def an_epoch_begins_within_the_log(s: State) -> bool:
    """Otherwise a follower cuts its log off at the wrong offset."""
    return s.since <= s.end


def a_segment_contains_what_its_name_says(s: State) -> bool:
    """Otherwise an offset is looked for in another segment."""
    return s.segment <= s.end and s.first < s.end and 0 <= s.reached


def indexes_name_what_was_written(s: State) -> bool:
    """Otherwise consumers begin behind the records that they ask for."""
    within = s.segment <= s.indexed and s.indexed <= s.end and s.index_reached <= s.reached
    return within and NOWHERE <= s.timed and s.timed <= s.newest


def a_time_is_new_that_a_batch_has(s: State) -> bool:
    """Otherwise a segment's first time index entry is taken for one that names no batch."""
    return implies(s.newer, NOWHERE < s.newest)


def an_offset_is_written_once(before: State, after: State) -> bool:
    """Otherwise two records have one offset, and a consumer receives one of them."""
    written = after.first != before.first and after.first != NOWHERE
    return implies(written, before.end <= after.first and after.first < after.end)


def an_index_has_room_for_every_offset(before: State, after: State) -> bool:
    """Otherwise it names another one."""
    written = after.first != before.first and after.first != NOWHERE
    return implies(written, after.end - 1 - after.segment <= REACH)


def what_is_cut_off_is_the_end_alone(before: State, after: State) -> bool:
    """Otherwise offsets are given again that still have records."""
    return implies(before.opened and after.end < before.end, after.first == NOWHERE)


def nothing_below_the_watermark_is_lost(before: State, after: State) -> bool:
    """Otherwise records that consumers have read are lost."""
    return implies(before.opened, before.high <= after.end and before.high <= after.high)


def what_was_stable_stays_stable(before: State, after: State) -> bool:
    """Otherwise consumers have read records of a transaction that is not decided."""
    return implies(before.opened, before.stable <= after.stable and before.cleaned <= after.cleaned)


def deleted_records_stay_away(before: State, after: State) -> bool:
    """Otherwise consumers receive them again."""
    return implies(before.opened, before.start <= after.start)


def epochs_and_their_starts_rise_together(before: State, after: State) -> bool:
    """Otherwise a follower cuts its log off at the wrong offset."""
    same = before.epoch == after.epoch and before.since == after.since
    rises = before.epoch < after.epoch and before.since <= after.since
    cut = after.epoch < before.epoch and after.since <= before.since and after.first == NOWHERE
    return implies(before.opened, same or rises or cut)


def a_compacted_topic_stays_so(before: State, after: State) -> bool:
    """Otherwise a log in which offsets are missing by right is called broken."""
    return implies(before.opened, after.opened and before.compacted == after.compacted)


def all_is_committed(s: State) -> bool:
    """Otherwise a record that the only replica has is shown to no consumer."""
    return s.high == s.end


def all_is_on_disk(s: State) -> bool:
    """Otherwise a broker that stopped in order can still lose a record."""
    return s.flushed == s.end


def a_snapshot_is_at_the_end(s: State) -> bool:
    """Otherwise a start reads the log for what it knew of its producers."""
    return s.start == s.end or s.saved == s.end


INITIAL = State()
ACTIONS = (
    open, lead, append, index, index_time, seal, roll, flush, save, raise_watermark, delete, clean, crash, truncate,
)
INVARIANTS = (
    offsets_are_ordered, the_cleaner_stays_below_the_stable_offset, what_is_on_disk_was_written,
    an_epoch_begins_within_the_log, a_segment_contains_what_its_name_says, indexes_name_what_was_written,
    a_time_is_new_that_a_batch_has,
)
STEP_PROPERTIES = (
    an_offset_is_written_once, an_index_has_room_for_every_offset, what_is_cut_off_is_the_end_alone,
    nothing_below_the_watermark_is_lost, what_was_stable_stays_stable, deleted_records_stay_away,
    epochs_and_their_starts_rise_together, a_compacted_topic_stays_so,
)
AT_REST = (all_is_committed, all_is_on_disk, a_snapshot_is_at_the_end)
