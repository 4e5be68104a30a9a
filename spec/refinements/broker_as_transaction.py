"""A broker, seen as its transaction: what the part of its log that is on disk says of it.

So a crash is a stutter: what it takes was never there. A step shows when its record is flushed; a rollback, which has
no record of its own, with the op that tells of it. What a producer asks for shows at once.
"""

from gapless.spec import broker, transaction
from gapless.spec.broker import Counter
from gapless.spec.language import Number, Position, filled, seen_as
from gapless.spec.transaction import NOWHERE, Phase


def transaction_of(s: broker.State) -> transaction.State:
    """The newest version on disk is the newest, and decided if a record on disk tells of that."""
    newest = s.versions[Counter(s.stored - 1)]
    commits = filled(0, newest, newest + 1, lambda _: 1 if s.on_disk == Phase.COMMITTED else 0)
    return seen_as(
        transaction.INITIAL,
        max_checks=s.max_checks,
        witnessed=1 if s.lives > 0 else 0,
        phase=s.on_disk,
        newest=newest,
        checks=s.times[newest],
        finals=commits[newest],
        positions=filled(NOWHERE, 0, newest + 1, lambda n: s.positions[Number(n)]),
        times=filled(0, 0, newest + 1, lambda n: s.times[Number(n)]),
        commits=commits,
        rollbacks=filled(0, newest, newest + 1, lambda _: 1 if s.on_disk == Phase.ROLLED_BACK else 0),
        marks=filled(0, newest, newest + 1, lambda _: 1 if s.op != NOWHERE and s.op < s.flushed else 0),
        commits_asked=s.commits_asked,
        rollbacks_asked=s.rollbacks_asked,
    )


def open(s: broker.State, max_checks: int, file_size: int) -> transaction.State:  # noqa: A001 - as the step
    """The transaction is looked at, and all that its producer asks for is known."""
    return transaction.open(transaction_of(s), Position(0), max_checks, 1)


def ask_to_commit(s: broker.State, number: Number) -> transaction.State:
    """The producer asks."""
    return transaction.ask_to_commit(transaction_of(s), number)


def ask_to_roll_back(s: broker.State, number: Number) -> transaction.State:
    """The producer asks."""
    return transaction.ask_to_roll_back(transaction_of(s), number)


def flush(s: broker.State) -> transaction.State:
    """The part of the transaction in a record that is on disk now, if it is one of its records."""
    begun = transaction_of(s)
    here = s.flushed
    number = s.versions[s.stored]
    if s.positions[number] == here:
        return _version(begun, number, here, s.stored)
    if s.final == here:
        half = begun.positions[begun.newest]
        return transaction.commit(begun, begun.newest, half, here, True, False)  # noqa: FBT003
    if s.op == here:
        decided = transaction.roll_back(begun, begun.newest) if s.phase == Phase.ROLLED_BACK else begun
        return transaction.mark(decided, begun.newest)
    if s.parked == here:
        return transaction.park(begun, begun.newest, here, s.checks, True, False)  # noqa: FBT003
    return begun


def _version(begun: transaction.State, number: Number, here: Position, times: int) -> transaction.State:
    """The half, or what it was put back as."""
    if times == 0:
        return transaction.prepare(begun, number, here, True)  # noqa: FBT003
    return transaction.check(begun, number, begun.newest, here, times, True, True)  # noqa: FBT003


CONCRETE = broker
ABSTRACT = transaction
SEES = transaction_of
STEPS = (open, ask_to_commit, ask_to_roll_back, flush)
