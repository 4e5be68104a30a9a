"""Laws of `partition`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import partition
from gapless.spec.language import Number, Position, accepts, implies
from gapless.spec.partition import NOWHERE, State


def _opened_twice(s: State, start: Number, offset: Number) -> State:
    opened = partition.open(s, start, start, offset, Position(0), NOWHERE, start, NOWHERE, NOWHERE, False)  # noqa: FBT003 - an event's flag
    return partition.open(opened, start, start, offset, Position(0), NOWHERE, start, NOWHERE, NOWHERE, False)  # noqa: FBT003


def a_log_is_opened_once(s: State, start: Number, offset: Number) -> bool:
    """Otherwise two logs are taken for one."""
    return not accepts(_opened_twice, s, start, offset)


def _led_and_cut(s: State, epoch: int, begins: Number, since: Number) -> State:
    led = partition.lead(s, epoch, begins)
    return partition.truncate(led, led.end, led.end, Position(0), epoch, since, NOWHERE, NOWHERE)


def an_epoch_is_known_by_where_it_begins(s: State, epoch: int, begins: Number, since: Number) -> bool:
    """Otherwise a follower cuts its log off at the wrong offset."""
    led = accepts(partition.lead, s, epoch, begins) and 0 <= begins
    return implies(led, accepts(_led_and_cut, s, epoch, begins, since) == (since == begins))


def _saved(s: State, at: Number) -> State:
    return partition.save(s, at, True)  # noqa: FBT003 - an event's flag


def a_snapshot_at_the_end_is_there_at_rest(s: State, at: Number) -> bool:
    """Otherwise a broker that stopped in order is accused of what it did."""
    taken = accepts(_saved, s, at)
    counts = implies(taken and at == s.end, partition.a_snapshot_is_at_the_end(_saved(s, at)) if taken else True)
    missing = s.saved < s.end and s.start < s.end
    return counts and partition.a_snapshot_is_at_the_end(s) == (not missing)


def _truncated(s: State, to: Number) -> State:
    return partition.truncate(s, to, to, Position(0), s.epoch, s.since, NOWHERE, NOWHERE)


def a_snapshot_behind_a_cut_goes_with_it(s: State, to: Number) -> bool:
    """Otherwise a follower that cut its log off lacks a snapshot unnoticed, or is accused with one."""
    cut = accepts(_truncated, s, to) and s.start < to
    return implies(cut, (partition.a_snapshot_is_at_the_end(_truncated(s, to)) if cut else True) == (to <= s.saved))


def what_is_at_rest_is_committed_and_on_disk(s: State) -> bool:
    """Otherwise a record that no consumer sees, or that can still be lost, is left alone."""
    raised = accepts(partition.raise_watermark, s, s.high + 1, Number(NOWHERE))
    flushed = accepts(partition.flush, s, s.flushed + 1)
    return partition.all_is_committed(s) == (not raised) and partition.all_is_on_disk(s) == (not flushed)


ENABLED = (
    a_log_is_opened_once,
    an_epoch_is_known_by_where_it_begins,
    a_snapshot_at_the_end_is_there_at_rest,
    a_snapshot_behind_a_cut_goes_with_it,
    what_is_at_rest_is_committed_and_on_disk,
)
