"""Kafka's deviations from the design of a partition's log, and what each step must take and refuse."""

from gapless.spec import partition
from gapless.spec.language import Deviation, Number, Position, accepts, applies, implies, replace, require
from gapless.spec.partition import HEAD, NOWHERE, REACH, State


def open_anew(
    s: State, start: Number, segment: Number, offset: Number, position: Position, epoch: int, since: Number,
    newest: int, timed: int, compacted: bool,
) -> State:
    """The topic was deleted and created again: its offsets begin at 0, and nothing of the old log is left."""
    applies(s.opened)
    require(offset == 0, "log-created-again-begins-at-offset-0",
        because="a log made again begins at offset 0", otherwise="records are lost")
    return partition.open(
        replace(s, opened=False), start, segment, offset, position, epoch, since, newest, timed, compacted
    )


def elect_uncleanly(
    s: State, to: Number, segment: Number, position: Position, epoch: int, since: Number, newest: int, timed: int
) -> State:
    """A replica that was not in sync was elected, and this one cuts off what the new leader never had."""
    applies(to < s.high)
    require(s.start <= to, "unclean-election-leaves-what-was-not-deleted",
        because="what is cut off lies behind the start of the log", otherwise="the partition is lost")
    left = replace(
        s, stable=s.stable if s.stable < to else to, high=to, cleaned=s.cleaned if s.cleaned < to else to,
    )
    return partition.truncate(left, to, segment, position, epoch, since, newest, timed)

# What can be done, from whatever state. A helper's name says which steps it takes.


def a_log_may_be_read_from_anywhere(
    s: State, start: Number, segment: Number, offset: Number, position: Position, epoch: int, since: Number,
    newest: int, timed: int, compacted: bool,
) -> bool:
    """Otherwise a log whose oldest segments were deleted cannot be judged."""
    within = 0 <= start and start <= offset and segment <= offset and since <= offset
    passed = 0 <= position and NOWHERE <= timed and timed <= newest
    taken = accepts(partition.open, s, start, segment, offset, position, epoch, since, newest, timed, compacted)
    return taken == (not s.opened and within and passed)


def _batch(s: State, first: Number, last: Number, epoch: int, position: Position, size: int, time: int) -> State:
    return partition.append(
        s, first, last, last - first + 1, epoch, position, size, time, True, True, True, True
    )


def _next_batch(s: State, last: Number, size: int, time: int) -> State:
    return _batch(s, s.end, last, s.epoch, s.reached, size, time)


def _fits(s: State, last: Number, size: int) -> bool:
    """True if the next batch may have the offsets up to `last`."""
    return s.end <= last and last - s.segment <= REACH and HEAD <= size


def a_batch_is_taken_if_it_is_whole(
    s: State, first: Number, last: Number, count: int, epoch: int, position: Position, size: int, time: int,
    sound: bool, whole: bool, ordered: bool, dated: bool,
) -> bool:
    """Otherwise a whole batch is called broken, or consumers receive what was never sent."""
    follows = first == s.end or (s.compacted and s.end < first)
    counted = count == last - first + 1 or (s.compacted and 0 <= count and count <= last - first)
    lies = position == s.reached and HEAD <= size and first <= last and last - s.segment <= REACH
    right = sound and whole and ordered and dated
    taken = accepts(
        partition.append, s, first, last, count, epoch, position, size, time, sound, whole, ordered, dated
    )
    return taken == (follows and counted and lies and right and epoch == s.epoch)


def _opened_with_a_batch(
    s: State, start: Number, segment: Number, offset: Number, position: Position, epoch: int, since: Number,
    compacted: bool, first: Number, last: Number, its_epoch: int, its_position: Position,
) -> State:
    found = partition.open(s, start, segment, offset, position, epoch, since, NOWHERE, NOWHERE, compacted)
    return _batch(found, first, last, its_epoch, its_position, HEAD, 0)


def the_first_batch_continues_what_was_claimed(
    s: State, start: Number, segment: Number, offset: Number, position: Position, epoch: int, since: Number,
    compacted: bool, first: Number, last: Number, its_epoch: int, its_position: Position,
) -> bool:
    """Otherwise a log that is read in pieces is judged otherwise than as a whole."""
    open_to_it = accepts(partition.open, s, start, segment, offset, position, epoch, since, NOWHERE, NOWHERE, compacted)
    follows = first == offset or (compacted and offset < first)
    lies = its_position == position and first <= last and last - segment <= REACH
    taken = accepts(
        _opened_with_a_batch, s, start, segment, offset, position, epoch, since, compacted,
        first, last, its_epoch, its_position,
    )  # fmt: skip
    return taken == (open_to_it and follows and lies and its_epoch == epoch)


def _opened_empty(s: State, start: Number, offset: Number) -> State:
    return partition.open(s, start, start, offset, Position(0), NOWHERE, start, NOWHERE, NOWHERE, True)  # noqa: FBT003 - an event's flag


def _opened_and_raised(s: State, start: Number, offset: Number, to: Number, again: Number) -> State:
    return partition.delete(partition.raise_watermark(_opened_empty(s, start, offset), to, Number(NOWHERE)), again)


def a_watermark_is_raised_from_the_start_of_the_log(
    s: State, start: Number, offset: Number, to: Number, again: Number
) -> bool:
    """Otherwise a piece of a log is accused of what lies before it."""
    new = not s.opened and 0 <= start and start <= offset
    raised = start <= to and to <= offset and start <= again and again <= to
    return accepts(_opened_and_raised, s, start, offset, to, again) == (new and raised)


def _opened_and_flushed(s: State, start: Number, offset: Number, to: Number, cleaned: Number) -> State:
    return partition.clean(partition.flush(_opened_empty(s, start, offset), to), cleaned, Number(NOWHERE))


def nothing_is_clean_or_on_disk_below_the_start_of_a_log(
    s: State, start: Number, offset: Number, to: Number, cleaned: Number
) -> bool:
    """Otherwise a piece of a log is accused of what lies before it."""
    new = not s.opened and 0 <= start and start <= offset
    right = start <= to and to <= offset and cleaned == start
    return accepts(_opened_and_flushed, s, start, offset, to, cleaned) == (new and right)


def _led(s: State, epoch: int, since: Number, first: Number, last: Number, its_epoch: int) -> State:
    return _batch(partition.lead(s, epoch, since), first, last, its_epoch, s.reached, HEAD, 0)


def a_leader_writes_where_its_epoch_begins(
    s: State, epoch: int, since: Number, first: Number, last: Number, its_epoch: int
) -> bool:
    """Otherwise a leader is refused, or one that was replaced still writes."""
    leads = s.epoch < epoch and (since == s.end or (s.compacted and s.end < since))
    follows = first == since or (s.compacted and since < first)
    lies = first <= last and last - s.segment <= REACH
    led = accepts(partition.lead, s, epoch, since) == leads
    taken = accepts(_led, s, epoch, since, first, last, its_epoch)
    return led and taken == (leads and follows and lies and its_epoch == epoch)


def _two_batches(s: State, last: Number, size: int, first: Number, position: Position, epoch: int) -> State:
    return _batch(_next_batch(s, last, size, 0), first, first, epoch, position, HEAD, 0)


def batches_lie_end_to_end(
    s: State, last: Number, size: int, first: Number, position: Position, epoch: int
) -> bool:
    """Otherwise bytes between two batches belong to none, or two records have one offset."""
    follows = first == last + 1 or (s.compacted and last + 1 < first)
    lies = position == s.reached + size and first - s.segment <= REACH and epoch == s.epoch
    taken = accepts(_two_batches, s, last, size, first, position, epoch)
    return implies(_fits(s, last, size), taken == (follows and lies))


def _indexed(s: State, last: Number, size: int, offset: Number, position: Position, begins: Number) -> State:
    return partition.index(_next_batch(s, last, size, 0), offset, position, begins)


def an_index_entry_is_taken_if_consumers_find_its_offset(
    s: State, last: Number, size: int, offset: Number, position: Position, begins: Number
) -> bool:
    """Otherwise a whole index is called broken, or consumers pass over records."""
    found = 0 <= begins and begins <= offset and s.index_reached <= position and position < s.reached + size
    ends = offset == last or (s.compacted and s.end <= offset and offset < last)
    taken = accepts(_indexed, s, last, size, offset, position, begins)
    return implies(_fits(s, last, size) and 0 <= s.end, taken == (found and ends))


def an_index_entry_is_read_behind_its_batch(s: State, offset: Number, position: Position, begins: Number) -> bool:
    """Otherwise an entry that names another batch is taken for this one's."""
    taken = accepts(partition.index, s, offset, position, begins)
    ends = offset + 1 == s.end or (s.compacted and s.first <= offset and offset < s.end)
    lies = s.index_reached <= position and position < s.reached
    return taken == (0 <= begins and begins <= offset and ends and s.indexed <= offset and lies)


def _two_indexed(s: State, last: Number, position: Position, offset: Number, again: Position) -> State:
    return partition.index(_indexed(s, last, HEAD, last, position, s.end), offset, again, s.end)


def one_batch_has_one_index_entry(
    s: State, last: Number, position: Position, offset: Number, again: Position
) -> bool:
    """Otherwise who looks an offset up finds another entry."""
    one = accepts(_indexed, s, last, HEAD, last, position, s.end)
    return implies(one and _fits(s, last, HEAD), not accepts(_two_indexed, s, last, position, offset, again))


def _indexed_twice(s: State, last: Number, position: Position, again: Position) -> State:
    one = _indexed(s, last, HEAD, last, position, s.end)
    return _indexed(one, Number(last + 1), HEAD, Number(last + 1), again, last)


def positions_in_an_index_go_up(s: State, last: Number, position: Position, again: Position) -> bool:
    """Otherwise consumers pass over records, or a whole index is called broken."""
    one = _fits(s, Number(last + 1), HEAD) and accepts(_indexed, s, last, HEAD, last, position, s.end)
    lawful = position < again and again < s.reached + HEAD + HEAD
    return implies(one and s.end <= last, accepts(_indexed_twice, s, last, position, again) == lawful)


def _timed(s: State, last: Number, newest: int, time: int, offset: Number) -> State:
    return partition.index_time(_next_batch(s, last, HEAD, newest), time, offset)


def the_time_index_names_the_first_batch_of_its_time(
    s: State, last: Number, newest: int, time: int, offset: Number
) -> bool:
    """Otherwise consumers that begin at a time pass over records, or a whole index is called broken."""
    named = s.end <= offset and offset <= last and s.newest < newest and time == newest
    return implies(_fits(s, last, HEAD), accepts(_timed, s, last, newest, time, offset) == named)


def a_time_index_entry_is_read_behind_its_batch(s: State, time: int, offset: Number) -> bool:
    """Otherwise an entry that names another batch is taken for this one's."""
    within = s.first <= offset and offset < s.end
    right = within and s.timed < time and time == s.newest and s.newer
    return accepts(partition.index_time, s, time, offset) == right


def _timed_twice(s: State, last: Number, newest: int, later: int, time: int) -> State:
    return _timed(_timed(s, last, newest, newest, last), Number(last + 1), later, time, Number(last + 1))


def times_in_an_index_go_up(s: State, last: Number, newest: int, later: int, time: int) -> bool:
    """Otherwise consumers that begin at a time pass over records."""
    one = s.newest < newest and s.end <= last and _fits(s, Number(last + 1), HEAD)
    return implies(one, accepts(_timed_twice, s, last, newest, later, time) == (newest < later and time == later))


def _sealed(s: State, last: Number, newest: int) -> State:
    return partition.seal(_timed(s, last, newest, newest, last))


def _sealed_without(s: State, last: Number, newest: int) -> State:
    return partition.seal(_next_batch(s, last, HEAD, newest))


def the_greatest_time_of_a_segment_is_in_its_index(s: State, last: Number, newest: int) -> bool:
    """Otherwise the segment is deleted while it has records that are to be kept."""
    one = s.end <= last and _fits(s, last, HEAD)
    as_it_is = accepts(partition.seal, s) == (s.timed == s.newest)
    entered = implies(one and s.newest < newest, accepts(_sealed, s, last, newest))
    left_out = implies(one, accepts(_sealed_without, s, last, newest) == (newest <= s.newest and s.timed == s.newest))
    return as_it_is and entered and left_out


def _rolled(s: State, segment: Number, rest: int, first: Number, last: Number, position: Position) -> State:
    return _batch(partition.roll(s, segment, rest), first, last, s.epoch, position, HEAD, 0)


def the_next_segment_begins_with_the_next_batch(
    s: State, segment: Number, rest: int, first: Number, last: Number, position: Position
) -> bool:
    """Otherwise records between two segments are lost, or a whole log is called broken."""
    named = rest == 0 and (segment == s.end or (s.compacted and s.end < segment))
    follows = first == segment or (s.compacted and segment < first)
    lies = position == 0 and first <= last and last - segment <= REACH
    rolled = accepts(partition.roll, s, segment, rest) == named
    return rolled and accepts(_rolled, s, segment, rest, first, last, position) == (named and follows and lies)


def _rolled_and_indexed(s: State, last: Number, position: Position, time: int) -> State:
    rolled = partition.roll(s, s.end, 0)
    return partition.seal(partition.index_time(_indexed(rolled, last, HEAD, last, position, s.end), time, last))


def _rolled_and_sealed(s: State) -> State:
    return partition.seal(partition.roll(s, s.end, 0))


def the_next_segment_has_indexes_of_its_own(s: State, last: Number, position: Position, time: int) -> bool:
    """Otherwise the next segment's indexes are judged by those of the one before it."""
    one = 0 <= s.end and s.end <= last and last - s.end <= REACH
    empty = accepts(_rolled_and_sealed, s)
    lawful = 0 <= position and position < HEAD and time == 0
    return empty and implies(one, accepts(_rolled_and_indexed, s, last, position, time) == lawful)


def a_snapshot_is_taken_within_the_log(s: State, at: Number, sound: bool) -> bool:
    """Otherwise a whole snapshot is called broken, or a lost end is not noticed."""
    return accepts(partition.save, s, at, sound) == (sound and at <= s.end)


def what_is_on_disk_goes_on(s: State, to: Number) -> bool:
    """Otherwise a disk is accused that lost nothing, or records that were on disk are lost unnoticed."""
    return accepts(partition.flush, s, to) == (s.flushed <= to and to <= s.end)


def _flushed_and_crashed(s: State, to: Number, kept: Number, again: Number) -> State:
    crashed = partition.crash(
        partition.flush(s, to), kept, s.segment, Position(0), s.epoch, s.since, NOWHERE, NOWHERE
    )
    return partition.flush(crashed, again)


def a_crash_leaves_what_was_flushed_and_that_is_on_disk(s: State, to: Number, kept: Number, again: Number) -> bool:
    """Otherwise a loss of power stops a broker, or a loss of what was on disk is not noticed."""
    flushed = s.flushed <= to and to <= s.end
    left = to <= kept and kept <= s.end and s.high <= kept and s.segment <= kept and s.since <= kept
    return accepts(_flushed_and_crashed, s, to, kept, again) == (flushed and left and again == kept)


def _left(
    s: State, kept: Number, segment: Number, position: Position, epoch: int, since: Number, newest: int, timed: int
) -> bool:
    """True if a log may end so that once ended as `s` does."""
    lies = s.high <= kept and kept <= s.end and segment <= kept and 0 <= position
    led = epoch <= s.epoch and since <= s.since and since <= kept and (since == s.since or epoch < s.epoch)
    return lies and led and NOWHERE <= timed and timed <= newest


def a_log_is_cut_off_behind_what_is_committed(
    s: State, to: Number, segment: Number, position: Position, epoch: int, since: Number, newest: int, timed: int
) -> bool:
    """Otherwise a follower cannot follow its leader, or records that consumers have read are lost."""
    left = _left(s, to, segment, position, epoch, since, newest, timed)
    crashed = accepts(partition.crash, s, to, segment, position, epoch, since, newest, timed)
    cut = accepts(partition.truncate, s, to, segment, position, epoch, since, newest, timed)
    return cut == left and crashed == (left and s.flushed <= to)


def _cut_and_continued(
    s: State, to: Number, segment: Number, position: Position, epoch: int, first: Number, its_epoch: int,
    its_position: Position,
) -> State:
    cut = partition.truncate(s, to, segment, position, epoch, Number(0), NOWHERE, NOWHERE)
    return _batch(cut, first, first, its_epoch, its_position, HEAD, 0)


def a_log_goes_on_where_it_was_cut_off(
    s: State, to: Number, segment: Number, position: Position, epoch: int, first: Number, its_epoch: int,
    its_position: Position,
) -> bool:
    """Otherwise a follower is accused of following its leader."""
    left = _left(s, to, segment, position, epoch, Number(0), NOWHERE, NOWHERE)
    follows = first == to or (s.compacted and to < first)
    lies = its_position == position and first - segment <= REACH and its_epoch == epoch
    taken = accepts(_cut_and_continued, s, to, segment, position, epoch, first, its_epoch, its_position)
    return taken == (left and follows and lies)


def _cut_and_indexed(s: State, to: Number, newest: int, timed: int, position: Position, time: int) -> State:
    cut = partition.truncate(s, to, to, Position(HEAD), s.epoch, s.since, newest, timed)
    written = _next_batch(cut, to, HEAD, time)
    return partition.index_time(partition.index(written, to, position, to), time, to)


def indexes_go_on_where_they_were_cut_off(
    s: State, to: Number, newest: int, timed: int, position: Position, time: int
) -> bool:
    """Otherwise a follower's indexes are called broken that are whole."""
    left = 0 <= to and _left(s, to, to, Position(HEAD), s.epoch, s.since, newest, timed)
    lawful = HEAD <= position and position < HEAD + HEAD and newest < time
    return implies(left, accepts(_cut_and_indexed, s, to, newest, timed, position, time) == lawful)


def _cut_and_sealed(s: State, newest: int, timed: int) -> State:
    return partition.seal(partition.truncate(s, s.end, s.end, Position(0), s.epoch, s.since, newest, timed))


def the_greatest_time_of_what_is_left_is_known(s: State, newest: int, timed: int) -> bool:
    """Otherwise a follower's time index is called broken that is whole."""
    left = NOWHERE <= timed and timed <= newest
    return implies(left, accepts(_cut_and_sealed, s, newest, timed) == (timed == newest))


def _cut_and_flushed(s: State, to: Number, flushed: Number) -> State:
    return partition.flush(partition.truncate(s, to, to, Position(0), s.epoch, s.since, NOWHERE, NOWHERE), flushed)


def what_was_on_disk_before_a_cut_is_on_disk(s: State, to: Number, flushed: Number) -> bool:
    """Otherwise a follower is accused of forgetting what it cut off."""
    left = s.high <= to and to <= s.end and s.since <= to
    lawful = flushed == to or (s.flushed <= flushed and flushed <= to)
    return implies(left, accepts(_cut_and_flushed, s, to, flushed) == lawful)


def consumers_read_what_every_replica_has(s: State, to: Number, undecided: Number) -> bool:
    """Otherwise consumers wait for ever for what is committed, or read what can be taken back."""
    stable = to if undecided < 0 or to < undecided else undecided
    stays = s.stable <= stable or s.stable == s.start
    return accepts(partition.raise_watermark, s, to, undecided) == (s.high <= to and to <= s.end and stays)


def _raised_and_cleaned(s: State, to: Number, undecided: Number, cleaned: Number) -> State:
    return partition.clean(partition.raise_watermark(s, to, undecided), cleaned, Number(NOWHERE))


def the_cleaner_stops_at_what_is_not_decided(s: State, to: Number, undecided: Number, cleaned: Number) -> bool:
    """Otherwise a cleaner is accused of doing its work, or one that goes too far is not."""
    stable = to if undecided < 0 or to < undecided else undecided
    raised = accepts(partition.raise_watermark, s, to, undecided)
    lawful = s.cleaned <= cleaned and (cleaned <= stable or cleaned <= s.start)
    return accepts(_raised_and_cleaned, s, to, undecided, cleaned) == (raised and lawful)


def _cleaned_twice(s: State, to: Number, again: Number) -> State:
    return partition.clean(partition.clean(s, to, Number(NOWHERE)), again, Number(NOWHERE))


def the_cleaner_goes_on(s: State, to: Number, again: Number) -> bool:
    """Otherwise the cleaner begins again, and never comes to the end."""
    return accepts(_cleaned_twice, s, to, again) == (s.cleaned <= to and to <= again and again <= s.stable)


def the_cleaner_leaves_one_record_of_a_key(s: State, to: Number, again: Number) -> bool:
    """Otherwise a cleaner is accused of what lies below the log's start, or an old record stays unnoticed."""
    lawful = s.cleaned <= to and to <= s.stable
    return accepts(partition.clean, s, to, again) == (lawful and again < s.start)


def _deleted_twice(s: State, to: Number, again: Number) -> State:
    return partition.delete(partition.delete(s, to), again)


def what_is_committed_may_be_deleted(s: State, to: Number, again: Number) -> bool:
    """Otherwise a disk runs full, or a record is deleted that no consumer could read."""
    return accepts(_deleted_twice, s, to, again) == (s.start <= to and to <= again and again <= s.high)


def a_topic_may_be_made_anew(s: State, start: Number, offset: Number, compacted: bool) -> bool:
    """Otherwise a broker on which a topic was deleted is accused."""
    taken = accepts(
        open_anew, s, start, Number(0), offset, Position(0), NOWHERE, Number(0), NOWHERE, NOWHERE, compacted
    )
    return taken == (s.opened and start == 0 and offset == 0)


def _elected(s: State, to: Number, again: Number) -> State:
    left = elect_uncleanly(s, to, s.start, Position(0), NOWHERE, Number(0), NOWHERE, NOWHERE)
    return partition.raise_watermark(left, again, Number(NOWHERE))


def an_unclean_election_loses_what_was_committed(s: State, to: Number, again: Number) -> bool:
    """Otherwise a broker is accused of its settings, or a loss below the log's start is not noticed."""
    lawful = s.start <= to and to < s.high and again == to
    return implies(0 <= s.epoch and 0 <= s.since, accepts(_elected, s, to, again) == lawful)


def _elected_and_cleaned(s: State, to: Number, again: Number) -> State:
    left = elect_uncleanly(s, to, s.start, Position(0), NOWHERE, Number(0), NOWHERE, NOWHERE)
    return partition.clean(left, again, Number(NOWHERE))


def what_is_clean_and_stable_is_cut_off_with_its_log(s: State, to: Number, again: Number) -> bool:
    """Otherwise the cleaner is accused behind an unclean election, or goes too far unnoticed."""
    lawful = s.start <= to and to < s.high
    cleaned = (s.cleaned <= again or to <= again) and again <= s.stable and again <= to
    taken = accepts(_elected_and_cleaned, s, to, again)
    return implies(0 <= s.epoch and 0 <= s.since, taken == (lawful and cleaned))


KAFKA = frozenset({"kafka", "kafka-3.5"})
DEVIATIONS = (
    Deviation(open_anew, partition.open, KAFKA,
        "docs/kafka.md#created-again: a topic deleted and created again has its offsets from 0 on"),
    Deviation(elect_uncleanly, partition.truncate, KAFKA,
        "docs/kafka.md#unclean: unclean.leader.election.enable lets a replica lead that lacks committed records"),
)
GIVEN_UP = (
    partition.nothing_below_the_watermark_is_lost,
    partition.what_was_stable_stays_stable,
    partition.deleted_records_stay_away,
    partition.epochs_and_their_starts_rise_together,
    partition.a_compacted_topic_stays_so,
)
ENABLED = (
    a_log_may_be_read_from_anywhere, a_batch_is_taken_if_it_is_whole, the_first_batch_continues_what_was_claimed,
    a_watermark_is_raised_from_the_start_of_the_log, nothing_is_clean_or_on_disk_below_the_start_of_a_log,
    a_leader_writes_where_its_epoch_begins, batches_lie_end_to_end,
    an_index_entry_is_taken_if_consumers_find_its_offset, an_index_entry_is_read_behind_its_batch,
    one_batch_has_one_index_entry, positions_in_an_index_go_up, the_time_index_names_the_first_batch_of_its_time,
    a_time_index_entry_is_read_behind_its_batch, times_in_an_index_go_up,
    the_greatest_time_of_a_segment_is_in_its_index, the_next_segment_begins_with_the_next_batch,
    the_next_segment_has_indexes_of_its_own, a_snapshot_is_taken_within_the_log, what_is_on_disk_goes_on,
    a_crash_leaves_what_was_flushed_and_that_is_on_disk, a_log_is_cut_off_behind_what_is_committed,
    a_log_goes_on_where_it_was_cut_off, indexes_go_on_where_they_were_cut_off,
    the_greatest_time_of_what_is_left_is_known, what_was_on_disk_before_a_cut_is_on_disk,
    consumers_read_what_every_replica_has, the_cleaner_stops_at_what_is_not_decided, the_cleaner_goes_on,
    the_cleaner_leaves_one_record_of_a_key,
    what_is_committed_may_be_deleted, a_topic_may_be_made_anew, an_unclean_election_loses_what_was_committed,
    what_is_clean_and_stable_is_cut_off_with_its_log,
)
