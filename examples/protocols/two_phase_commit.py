"""Two-phase commit: a coordinator asks managers to prepare, and sends all of them one outcome.

After Gray and Lamport, "Consensus on Transaction Commit", as TLA+'s TwoPhase and Stateright's 2pc have it. Messages are
never lost, and arrive in any order, more than once.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NewType

from gapless.spec.language import Bound, Map, Refines, all_between, applies, implies, replace, require

Manager = NewType("Manager", int)
MANAGERS = 3


class Stage(IntEnum):
    """The stages of a manager; those of the coordinator are the same without PREPARED."""

    WORKING = 0
    PREPARED = 1
    COMMITTED = 2
    ABORTED = 3


@dataclass(frozen=True, slots=True)
class State:
    """The managers, the coordinator, and the messages that were sent."""

    managers: int = MANAGERS  # which no step changes
    stage: Map[Manager, Stage] = Map(Stage.WORKING)
    promised: Map[Manager, bool] = Map(False)  # a manager sent that it is prepared
    received: Map[Manager, bool] = Map(False)  # the coordinator received that
    outcome: Stage = Stage.WORKING  # of the coordinator, and sent to all


def prepare(s: State, manager: Manager) -> State:
    """A manager prepares, and sends that."""
    applies(0 <= manager < s.managers)
    require(
        s.stage[manager] == Stage.WORKING,
        "manager-works-when-it-prepares",
        because="the manager is working",
        otherwise="it promises what it gave up",
    )
    return replace(s, stage=s.stage.set(manager, Stage.PREPARED), promised=s.promised.set(manager, True))


def give_up(s: State, manager: Manager) -> State:
    """A manager decides to abort before it promised anything."""
    applies(0 <= manager < s.managers)
    require(
        s.stage[manager] == Stage.WORKING,
        "manager-works-when-it-gives-up",
        because="the manager has promised nothing",
        otherwise="it breaks its promise, and the others commit",
    )
    return replace(s, stage=s.stage.set(manager, Stage.ABORTED))


def receive(s: State, manager: Manager) -> State:
    """The coordinator receives a promise."""
    applies(0 <= manager < s.managers)
    applies(s.outcome == Stage.WORKING)
    require(
        s.promised[manager],
        "promise-was-sent",
        because="the promise was sent",
        otherwise="the coordinator counts on a manager that never prepared",
    )
    return replace(s, received=s.received.set(manager, True))


def commit(s: State) -> State:
    """The coordinator decides to commit, and sends that."""
    applies(s.outcome == Stage.WORKING)
    require(
        all_between(0, s.managers, lambda m: s.received[Manager(m)]),
        "all-have-promised",
        because="all managers have promised",
        otherwise="one manager commits what another one has given up",
    )
    return replace(s, outcome=Stage.COMMITTED)


def abort(s: State) -> State:
    """The coordinator decides to abort, and sends that."""
    require(
        s.outcome == Stage.WORKING,
        "outcome-is-final",
        because="the outcome is still open",
        otherwise="some managers have received the other outcome",
    )
    return replace(s, outcome=Stage.ABORTED)


def learn(s: State, manager: Manager) -> State:
    """A manager receives the outcome."""
    applies(0 <= manager < s.managers)
    require(
        s.outcome != Stage.WORKING,
        "outcome-was-sent",
        because="the outcome was sent",
        otherwise="a manager decides for all",
    )
    return replace(s, stage=s.stage.set(manager, s.outcome))


def no_two_outcomes(s: State, a: Manager, b: Manager) -> bool:
    """Otherwise one manager has committed what another one has aborted."""
    return not (s.stage[a] == Stage.COMMITTED and s.stage[b] == Stage.ABORTED)


def only_managers_take_part(s: State, manager: Manager) -> bool:
    """Otherwise a stranger's stage counts."""
    return 0 <= manager < s.managers or s.stage[manager] == Stage.WORKING


def a_manager_that_works_has_promised_nothing(s: State, manager: Manager) -> bool:
    """Otherwise it can give up what it promised."""
    return not (s.stage[manager] == Stage.WORKING and s.promised[manager])


def what_was_received_was_promised(s: State, manager: Manager) -> bool:
    """Otherwise the coordinator invents promises."""
    return implies(s.received[manager], s.promised[manager])


def managers_commit_what_was_decided(s: State, manager: Manager) -> bool:
    """Otherwise a manager commits by itself."""
    return implies(s.stage[manager] == Stage.COMMITTED, s.outcome == Stage.COMMITTED)


def a_promise_is_broken_only_by_the_outcome(s: State, manager: Manager) -> bool:
    """Otherwise a manager aborts what it promised to commit."""
    return implies(s.stage[manager] == Stage.ABORTED and s.promised[manager], s.outcome == Stage.ABORTED)


def who_commits_has_all_promises(s: State) -> bool:
    """Otherwise the coordinator commits too early."""
    return implies(s.outcome == Stage.COMMITTED, all_between(0, s.managers, lambda m: s.received[Manager(m)]))


def the_coordinator_is_never_prepared(s: State) -> bool:
    """Otherwise managers receive an outcome that is none."""
    return s.outcome == Stage.WORKING or s.outcome == Stage.COMMITTED or s.outcome == Stage.ABORTED


def a_stage_is_one_of_four(s: State, manager: Manager) -> bool:
    """Otherwise a manager is where it never comes from again."""
    return Stage.WORKING <= s.stage[manager] <= Stage.ABORTED


INITIAL = State()
ACTIONS = (prepare, give_up, receive, commit, abort, learn)
INVARIANTS = (
    no_two_outcomes,
    only_managers_take_part,
    a_manager_that_works_has_promised_nothing,
    what_was_received_was_promised,
    managers_commit_what_was_decided,
    a_promise_is_broken_only_by_the_outcome,
    who_commits_has_all_promises,
    the_coordinator_is_never_prepared,
    a_stage_is_one_of_four,
)
REFINES = (Refines("transaction_commit.py", steps={prepare: "prepare", give_up: "abort", learn: ("commit", "abort")}),)
BOUND = Bound(
    says="all states",
    within=lambda s: True,
    numbers={"manager": range(MANAGERS), "a": range(MANAGERS), "b": range(MANAGERS)},
)
