"""One queue that many workers build, seen as the queue that one builds: what is visible is indexed, in order."""

from gapless.spec import dispatch, queue
from gapless.spec.language import Number, Position, filled, greatest, in_turn, seen_as


def queue_of(s: dispatch.State) -> queue.State:
    """Message n lies at position n; it is in the log once it was scanned, and has its entry once that is visible."""
    return _with_entries_before(s, s.committed)


def _with_entries_before(s: dispatch.State, visible: Number) -> queue.State:
    return seen_as(
        queue.INITIAL,
        start=Position(s.start),
        first=s.start,
        indexed=visible,
        end=s.scanned,
        positions=filled(Position(0), s.start, s.scanned, Position),
        sizes=filled(0, s.start, s.scanned, lambda _: 1),
        entry_positions=filled(Position(0), s.start, visible, Position),
        entry_sizes=filled(0, s.start, visible, lambda _: 1),
    )


def open(s: dispatch.State, number: Number, overlap: int) -> queue.State:  # noqa: A001 - as in the spec.
    """The queue is found; overlap of workers makes no difference to its readers."""
    return queue.open(queue_of(s), number, Position(number))


def scan(s: dispatch.State, number: Number) -> queue.State:
    """The message is in the log."""
    return queue.append(queue_of(s), number, 1, Position(number), 1, 0)


def commit(s: dispatch.State, to: Number) -> queue.State:
    """Every entry before `to` becomes visible, one after the other."""
    return in_turn(s.committed, to, lambda n: _with_entries_before(s, Number(n)), _indexed)


def _indexed(before: queue.State, number: int) -> queue.State:
    return queue.index(before, Number(number), Position(number), 1, 0)


def crash(s: dispatch.State, kept: Number) -> queue.State:
    """Entries that survived become visible, one after the other; what lies beyond them is scanned again."""
    return queue.truncate(commit(s, Number(greatest(s.committed, kept))), kept)


CONCRETE = dispatch
ABSTRACT = queue
SEES = queue_of
STEPS = (open, scan, commit, crash)
