"""One transaction, and what consumers can read of it: its finals, and no half of it before it is committed.

A half lies in a topic that no consumer subscribes to. It can be read all the same if a queue of consumers has an entry
for it, or for a copy of it that is no final. Source: docs/rocketmq-transactions.md#visible-halves.
"""

from dataclasses import dataclass

from gapless.spec.language import Number, Position, implies, replace, require


@dataclass(frozen=True, slots=True)
class State:
    """The halves and finals of the transaction in the log, and what else of it consumers can read."""

    halves: int = 0  # versions of the half
    finals: int = 0
    rollbacks: int = 0  # of a version
    shown: int = 0  # entries of consumers' queues that lead to a half, or to a copy of one


def prepare(s: State, position: Position) -> State:
    """A half is in the log at `position`: the first, or a version that was put back.

    Source: docs/proposals.md#invisible-half; docs/rocketmq-transactions.md#prepare.
    """
    return replace(s, halves=s.halves + 1)


def commit(s: State) -> State:
    """A final is in the log: consumers see it from now on.

    Source: docs/proposals.md#commit; docs/rocketmq-transactions.md#final.
    """
    return replace(s, finals=s.finals + 1)


def roll_back(s: State) -> State:
    """The transaction is rolled back: consumers will never see its message.

    Source: docs/proposals.md#decision; docs/rocketmq-transactions.md#end.
    """
    return replace(s, rollbacks=s.rollbacks + 1)


def show(s: State, number: Number, position: Position) -> State:
    """Entry `number` of a queue of consumers leads to `position`: to a half, or a copy that is no final.

    Source: docs/proposals.md#invisible-half; docs/rocketmq-transactions.md#visible-halves, #tx13.
    """
    require(0 < s.finals, "half-that-consumers-can-read-is-committed",
        because="a half that consumers can read is committed",
        otherwise="consumers receive a message that was never committed")
    return replace(s, shown=s.shown + 1)


def what_consumers_can_read_is_committed(s: State) -> bool:
    """Otherwise a consumer acts on a message that its producer may take back, or took back."""
    return implies(0 < s.shown, 0 < s.finals)


def all_is_counted_from_zero(s: State) -> bool:
    """Otherwise a half counts as committed by no final."""
    return 0 <= s.halves and 0 <= s.finals and 0 <= s.rollbacks and 0 <= s.shown


def what_is_in_the_log_stays_there(before: State, after: State) -> bool:
    """Otherwise a message that a consumer has acted on is gone, or a decision is."""
    stays = before.halves <= after.halves and before.finals <= after.finals
    return stays and before.rollbacks <= after.rollbacks and before.shown <= after.shown


def a_step_adds_one(before: State, after: State) -> bool:
    """Otherwise one final counts for several, or a half that consumers can read is not counted."""
    more = (after.halves - before.halves) + (after.finals - before.finals)
    return more + (after.rollbacks - before.rollbacks) + (after.shown - before.shown) == 1


# What can be done, from whatever state.


INITIAL = State()
ACTIONS = (prepare, commit, roll_back, show)
INVARIANTS = (what_consumers_can_read_is_committed, all_is_counted_from_zero)
STEP_PROPERTIES = (what_is_in_the_log_stays_there, a_step_adds_one)
