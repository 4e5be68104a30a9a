"""A broker, seen as its log: every record takes one byte of its one file, whatever it says."""

from gapless.spec import broker, log
from gapless.spec.broker import Counter
from gapless.spec.language import Number, Position, seen_as


def log_of(s: broker.State) -> log.State:
    """The log, of which the broker tells how far it reaches, and how much of it is safe."""
    return seen_as(log.INITIAL, file_size=s.file_size, end=s.end, flushed=s.flushed, acknowledged=s.acknowledged)


def _appended(s: broker.State, position: Position) -> log.State:
    return log.append(log_of(s), position, 1, position, True, True, True, True, 0)


def open(s: broker.State, max_checks: int, file_size: int) -> log.State:  # noqa: A001 - as the step
    """An empty log is found."""
    return log.open(log_of(s), Position(0), file_size)


def append(s: broker.State, position: Position) -> log.State:
    """One record more."""
    return _appended(s, position)


def prepare(s: broker.State, number: Number, position: Position, group: int, queue: int) -> log.State:
    """The half is a record."""
    return _appended(s, position)


def answer(s: broker.State) -> log.State:
    """The half, as it was sent, is acknowledged."""
    return log.acknowledge(log_of(s), Position(s.positions[s.versions[Counter(0)]] + 1))


def check(s: broker.State, number: Number, position: Position, times: Counter, group: int) -> log.State:
    """The half that is put back is a record."""
    return _appended(s, position)


def commit(s: broker.State, position: Position, queue: int) -> log.State:
    """The final is a record."""
    return _appended(s, position)


def mark(s: broker.State, position: Position) -> log.State:
    """The op is a record."""
    return _appended(s, position)


def park(s: broker.State, position: Position, times: int) -> log.State:
    """The copy is a record."""
    return _appended(s, position)


def flush(s: broker.State) -> log.State:
    """One record more is on disk."""
    return log.flush(log_of(s), Position(s.flushed + 1))


def crash(s: broker.State) -> log.State:
    """The flushed records are left."""
    return log.crash(log_of(s), s.flushed)


CONCRETE = broker
ABSTRACT = log
SEES = log_of
STEPS = (open, append, prepare, answer, check, commit, mark, park, flush, crash)
