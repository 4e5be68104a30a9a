"""Transaction commit, as an observer of all managers sees it: what two-phase commit and Paxos Commit implement.

After Gray and Lamport, "Consensus on Transaction Commit", as TLA+'s TCommit has it.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NewType

from gapless.spec.language import Bound, Map, all_between, applies, replace, require

Manager = NewType("Manager", int)
MANAGERS = 3


class Stage(IntEnum):
    """The stages of a manager."""

    WORKING = 0
    PREPARED = 1
    COMMITTED = 2
    ABORTED = 3


@dataclass(frozen=True, slots=True)
class State:
    """The managers."""

    managers: int = MANAGERS  # which no step changes
    stage: Map[Manager, Stage] = Map(Stage.WORKING)


def prepare(s: State, manager: Manager) -> State:
    """A manager prepares."""
    applies(0 <= manager < s.managers)
    require(
        s.stage[manager] == Stage.WORKING,
        "manager-works",
        because="the manager is working",
        otherwise="it returns from what it decided",
    )
    return replace(s, stage=s.stage.set(manager, Stage.PREPARED))


def commit(s: State, manager: Manager) -> State:
    """A manager commits."""
    applies(0 <= manager < s.managers)
    require(
        s.stage[manager] == Stage.PREPARED,
        "manager-is-prepared",
        because="the manager is prepared",
        otherwise="it commits what it cannot keep",
    )
    require(
        all_between(
            0, s.managers, lambda m: s.stage[Manager(m)] == Stage.PREPARED or s.stage[Manager(m)] == Stage.COMMITTED
        ),
        "all-are-prepared",
        because="all managers are prepared",
        otherwise="one of them may still abort",
    )
    return replace(s, stage=s.stage.set(manager, Stage.COMMITTED))


def abort(s: State, manager: Manager) -> State:
    """A manager aborts."""
    applies(0 <= manager < s.managers)
    applies(s.stage[manager] == Stage.WORKING or s.stage[manager] == Stage.PREPARED)
    require(
        all_between(0, s.managers, lambda m: s.stage[Manager(m)] != Stage.COMMITTED),
        "none-has-committed",
        because="no manager has committed",
        otherwise="one manager has committed what another one aborts",
    )
    return replace(s, stage=s.stage.set(manager, Stage.ABORTED))


def no_two_outcomes(s: State, a: Manager, b: Manager) -> bool:
    """Otherwise one manager has committed what another one has aborted."""
    return not (s.stage[a] == Stage.COMMITTED and s.stage[b] == Stage.ABORTED)


def only_managers_take_part(s: State, manager: Manager) -> bool:
    """Otherwise a stranger's stage counts."""
    return 0 <= manager < s.managers or s.stage[manager] == Stage.WORKING


INITIAL = State()
ACTIONS = (prepare, commit, abort)
INVARIANTS = (no_two_outcomes, only_managers_take_part)
BOUND = Bound(
    says="all states",
    within=lambda s: True,
    numbers={"manager": range(MANAGERS), "a": range(MANAGERS), "b": range(MANAGERS)},
)
