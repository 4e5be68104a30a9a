"""The check service, seen as the transaction of the half that is followed: an op in the log is its mark."""

from gapless.spec import check_service, transaction
from gapless.spec.check_service import State, is_version, waits
from gapless.spec.language import Number, Position, filled, seen_as
from gapless.spec.transaction import NOWHERE, Phase


def transaction_of(s: State) -> transaction.State:
    """Version n lies at position n; it is marked once an op in the log names it."""
    return seen_as(
        transaction.INITIAL,
        max_checks=s.max_checks,
        phase=s.phase,
        newest=s.newest,
        checks=s.checks,
        finals=1 if s.phase == Phase.COMMITTED else 0,
        positions=filled(NOWHERE, 0, s.half_end, lambda n: Position(n) if is_version(s, Number(n)) else NOWHERE),
        times=filled(0, 0, s.half_end, lambda n: s.times[Number(n)] if is_version(s, Number(n)) else 0),
        commits=filled(0, 0, s.half_end, lambda n: 1 if n == s.newest and s.phase == Phase.COMMITTED else 0),
        rollbacks=filled(0, 0, s.half_end, lambda n: 1 if n == s.newest and s.phase == Phase.ROLLED_BACK else 0),
        marks=filled(0, 0, s.half_end, lambda n: 1 if n == s.newest and 0 <= s.op else 0),
    )


def open(s: State, max_checks: int) -> transaction.State:  # noqa: A001 - the step's name
    """The transaction is looked at."""
    return transaction.open(transaction_of(s), Position(0), max_checks, 0)


def prepare(s: State) -> transaction.State:
    """The half is in the log."""
    return transaction.prepare(transaction_of(s), s.half_end, Position(s.half_end), True)  # noqa: FBT003


def put_back(s: State) -> transaction.State:
    """The half is put back, and its producer is asked."""
    seen = transaction_of(s)
    there = Position(s.half_end)
    return transaction.check(seen, s.half_end, s.newest, there, s.checks + 1, True, True)  # noqa: FBT003


def commit(s: State) -> transaction.State:
    """The final is in the user's queue."""
    here = Position(s.newest)
    return transaction.commit(transaction_of(s), s.newest, here, here, True, False)  # noqa: FBT003


def roll_back(s: State) -> transaction.State:
    """The message will never be seen."""
    return transaction.roll_back(transaction_of(s), s.newest)


def write(s: State) -> transaction.State:
    """An op names the half, if that waited for one."""
    return transaction.mark(transaction_of(s), s.newest) if waits(s, s.newest) else transaction_of(s)


def park(s: State) -> transaction.State:
    """The half is set aside."""
    here = Position(s.newest)
    return transaction.park(transaction_of(s), s.newest, here, s.checks, True, False)  # noqa: FBT003


def crash(s: State) -> transaction.State:
    """The unwritten ops are lost."""
    return transaction.crash(transaction_of(s))


CONCRETE = check_service
ABSTRACT = transaction
SEES = transaction_of
STEPS = (open, prepare, put_back, commit, roll_back, write, park, crash)
