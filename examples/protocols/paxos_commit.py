"""Paxos Commit: the promise of each manager is itself agreed upon by three acceptors, two of which suffice.

After Gray and Lamport, "Consensus on Transaction Commit", as TLA+'s PaxosCommit has it, with the ballots 0 and 1. Each
manager opens ballot 0 of its own instance; in ballot 1 a leader finishes it, where the manager does not. What an
acceptor remembers follows from what it has sent, and is not written down again.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NewType

from gapless.spec.language import Bound, Map, all_between, applies, implies, replace, require

Manager = NewType("Manager", int)
Acceptor = NewType("Acceptor", int)
MANAGERS = 2
ACCEPTORS = 3


class Stage(IntEnum):
    """The stages of a manager."""

    WORKING = 0
    PREPARED = 1
    COMMITTED = 2
    ABORTED = 3


class Value(IntEnum):
    """The values that an instance agrees upon."""

    NONE = 0
    PREPARED = 1
    ABORTED = 2


class Answer(IntEnum):
    """The answers of an acceptor to a leader: the value that it has accepted."""

    NOT_SENT = 0
    NOTHING = 1
    PREPARED = 2
    ABORTED = 3


@dataclass(frozen=True, slots=True)
class State:
    """The managers, and all messages that were ever sent."""

    managers: int = MANAGERS  # which no step changes
    stage: Map[Manager, Stage] = Map(Stage.WORKING)
    first: Map[Manager, Value] = Map(Value.NONE)  # proposed in ballot 0, by the manager (2a)
    opened: Map[Manager, bool] = Map(False)  # a leader opened ballot 1 (1a)
    answer: Map[Manager, Acceptor, Answer] = Map(Answer.NOT_SENT)  # to that (1b)
    second: Map[Manager, Value] = Map(Value.NONE)  # proposed in ballot 1, by the leader (2a)
    first_vote: Map[Manager, Acceptor, bool] = Map(False)  # for what was proposed in ballot 0 (2b)
    second_vote: Map[Manager, Acceptor, bool] = Map(False)  # for what was proposed in ballot 1 (2b)
    commit_sent: bool = False
    abort_sent: bool = False


def prepare(s: State, manager: Manager) -> State:
    """A manager prepares, and proposes that."""
    applies(0 <= manager < s.managers)
    require(
        s.stage[manager] == Stage.WORKING,
        "manager-works-when-it-prepares",
        because="the manager is working",
        otherwise="it proposes two values in one ballot",
    )
    return replace(s, stage=s.stage.set(manager, Stage.PREPARED), first=s.first.set(manager, Value.PREPARED))


def give_up(s: State, manager: Manager) -> State:
    """A manager decides to abort, and proposes that."""
    applies(0 <= manager < s.managers)
    require(
        s.stage[manager] == Stage.WORKING,
        "manager-works-when-it-gives-up",
        because="the manager is working",
        otherwise="it proposes two values in one ballot",
    )
    return replace(s, stage=s.stage.set(manager, Stage.ABORTED), first=s.first.set(manager, Value.ABORTED))


def open_ballot(s: State, manager: Manager) -> State:
    """A leader opens ballot 1 in the instance of a manager."""
    applies(0 <= manager < s.managers)
    return replace(s, opened=s.opened.set(manager, True))


def reply(s: State, manager: Manager, acceptor: Acceptor) -> State:
    """An acceptor promises to take part in ballot 0 no more, and sends what it has accepted there."""
    applies(0 <= manager < s.managers and 0 <= acceptor < ACCEPTORS)
    applies(s.opened[manager])
    require(
        s.answer[manager, acceptor] == Answer.NOT_SENT and not s.second_vote[manager, acceptor],
        "ballot-is-newer",
        because="the acceptor takes part in no newer ballot",
        otherwise="it answers twice, and differently",
    )
    accepted = Answer.PREPARED if s.first[manager] == Value.PREPARED else Answer.ABORTED
    return replace(
        s, answer=s.answer.set(manager, acceptor, accepted if s.first_vote[manager, acceptor] else Answer.NOTHING)
    )


def propose(s: State, manager: Manager, absent: Acceptor) -> State:
    """The leader proposes a value in ballot 1, with the answers of all acceptors but one."""
    applies(0 <= manager < s.managers and 0 <= absent < ACCEPTORS)
    require(
        s.second[manager] == Value.NONE,
        "leader-proposes-once",
        because="the leader has proposed nothing yet",
        otherwise="it proposes two values in one ballot",
    )
    one = s.answer[manager, Acceptor((absent + 1) % ACCEPTORS)]
    other = s.answer[manager, Acceptor((absent + 2) % ACCEPTORS)]
    require(
        one != Answer.NOT_SENT and other != Answer.NOT_SENT,
        "majority-has-answered",
        because="two acceptors have answered",
        otherwise="the leader does not know what was agreed upon",
    )
    prepared = one == Answer.PREPARED or other == Answer.PREPARED
    return replace(s, second=s.second.set(manager, Value.PREPARED if prepared else Value.ABORTED))


def vote_first(s: State, manager: Manager, acceptor: Acceptor) -> State:
    """An acceptor accepts what was proposed in ballot 0."""
    applies(0 <= manager < s.managers and 0 <= acceptor < ACCEPTORS)
    applies(s.first[manager] != Value.NONE)
    require(
        s.answer[manager, acceptor] == Answer.NOT_SENT and not s.second_vote[manager, acceptor],
        "no-newer-ballot",
        because="the acceptor takes part in no newer ballot",
        otherwise="it breaks the promise that it gave to the leader",
    )
    return replace(s, first_vote=s.first_vote.set(manager, acceptor, True))


def vote_second(s: State, manager: Manager, acceptor: Acceptor) -> State:
    """An acceptor accepts what was proposed in ballot 1."""
    applies(0 <= manager < s.managers and 0 <= acceptor < ACCEPTORS)
    applies(s.second[manager] != Value.NONE)
    return replace(s, second_vote=s.second_vote.set(manager, acceptor, True))


def commit(s: State) -> State:
    """All managers have prepared, and this is sent."""
    require(
        all_between(0, s.managers, lambda m: decided(s, Manager(m), Value.PREPARED)),
        "all-are-decided",
        because="it is decided of all managers that they have prepared",
        otherwise="one manager commits what another one has given up",
    )
    return replace(s, commit_sent=True)


def abort(s: State, manager: Manager) -> State:
    """A manager has given up, and this is sent."""
    applies(0 <= manager < s.managers)
    require(
        decided(s, manager, Value.ABORTED),
        "one-is-decided",
        because="it is decided of the manager that it has given up",
        otherwise="one manager aborts what another one has committed",
    )
    return replace(s, abort_sent=True)


def learn_commit(s: State, manager: Manager) -> State:
    """A manager receives that all commit."""
    applies(0 <= manager < s.managers)
    require(s.commit_sent, "commit-was-sent", because="that was sent", otherwise="a manager decides for all")
    return replace(s, stage=s.stage.set(manager, Stage.COMMITTED))


def learn_abort(s: State, manager: Manager) -> State:
    """A manager receives that all abort."""
    applies(0 <= manager < s.managers)
    require(s.abort_sent, "abort-was-sent", because="that was sent", otherwise="a manager decides for all")
    return replace(s, stage=s.stage.set(manager, Stage.ABORTED))


def decided(s: State, manager: Manager, value: Value) -> bool:
    """True if two acceptors have accepted a value in one ballot."""
    return (s.first[manager] == value and accepted_first(s, manager)) or (
        s.second[manager] == value and accepted_second(s, manager)
    )


def accepted_first(s: State, m: Manager) -> bool:
    """True if two acceptors have accepted what was proposed in ballot 0."""
    return two(s.first_vote[m, Acceptor(0)], s.first_vote[m, Acceptor(1)], s.first_vote[m, Acceptor(2)])


def accepted_second(s: State, m: Manager) -> bool:
    """True if two acceptors have accepted what was proposed in ballot 1."""
    return two(s.second_vote[m, Acceptor(0)], s.second_vote[m, Acceptor(1)], s.second_vote[m, Acceptor(2)])


def two(a: bool, b: bool, c: bool) -> bool:
    """True if two of three are."""
    return (a and b) or (a and c) or (b and c)


def no_two_outcomes(s: State, a: Manager, b: Manager) -> bool:
    """Otherwise one manager has committed what another one has aborted."""
    return not (s.stage[a] == Stage.COMMITTED and s.stage[b] == Stage.ABORTED)


def only_managers_take_part(s: State, manager: Manager) -> bool:
    """Otherwise a stranger's stage counts."""
    return 0 <= manager < s.managers or s.stage[manager] == Stage.WORKING


def a_manager_that_works_has_proposed_nothing(s: State, manager: Manager) -> bool:
    """Otherwise it proposes two values in one ballot."""
    return implies(s.stage[manager] == Stage.WORKING, s.first[manager] == Value.NONE)


def proposals_are_values(s: State, manager: Manager) -> bool:
    """Otherwise acceptors vote for nothing."""
    return 0 <= s.first[manager] <= Value.ABORTED and 0 <= s.second[manager] <= Value.ABORTED


def votes_are_for_proposals(s: State, manager: Manager, acceptor: Acceptor) -> bool:
    """Otherwise an acceptor votes for what was never proposed."""
    return implies(
        0 <= acceptor < ACCEPTORS,
        implies(s.first_vote[manager, acceptor], s.first[manager] != Value.NONE)
        and implies(s.second_vote[manager, acceptor], s.second[manager] != Value.NONE),
    )


def answers_tell_the_vote(s: State, manager: Manager, acceptor: Acceptor) -> bool:
    """Otherwise the leader does not know what may be decided."""
    return implies(
        0 <= acceptor < ACCEPTORS,
        0 <= s.answer[manager, acceptor] <= Answer.ABORTED
        and implies(s.answer[manager, acceptor] == Answer.NOTHING, not s.first_vote[manager, acceptor])
        and implies(
            s.answer[manager, acceptor] == Answer.PREPARED,
            s.first_vote[manager, acceptor] and s.first[manager] == Value.PREPARED,
        )
        and implies(
            s.answer[manager, acceptor] == Answer.ABORTED,
            s.first_vote[manager, acceptor] and s.first[manager] == Value.ABORTED,
        ),
    )


def may_vote_first(s: State, manager: Manager, acceptor: Acceptor) -> bool:
    """True if an acceptor has voted in ballot 0, or still may."""
    return s.first_vote[manager, acceptor] or s.answer[manager, acceptor] == Answer.NOT_SENT


def the_leader_proposes_what_may_be_decided(s: State, manager: Manager) -> bool:
    """Otherwise both ballots decide, and differently."""
    return (
        s.second[manager] == Value.NONE
        or s.second[manager] == s.first[manager]
        or not two(
            may_vote_first(s, manager, Acceptor(0)),
            may_vote_first(s, manager, Acceptor(1)),
            may_vote_first(s, manager, Acceptor(2)),
        )
    )


def the_leader_invents_no_promise(s: State, manager: Manager) -> bool:
    """Otherwise all commit what one manager has never prepared."""
    return implies(s.second[manager] == Value.PREPARED, s.first[manager] == Value.PREPARED)


def who_commits_has_all_decisions(s: State) -> bool:
    """Otherwise it is sent too early that all commit."""
    return implies(s.commit_sent, all_between(0, s.managers, lambda m: decided(s, Manager(m), Value.PREPARED)))


def who_aborts_has_one_decision(s: State) -> bool:
    """Otherwise it is sent without reason that all abort."""
    return implies(s.abort_sent, not all_between(0, s.managers, lambda m: not decided(s, Manager(m), Value.ABORTED)))


def one_outcome_is_sent(s: State) -> bool:
    """Otherwise managers receive two."""
    return not (s.commit_sent and s.abort_sent)


def managers_commit_what_was_sent(s: State, manager: Manager) -> bool:
    """Otherwise a manager commits by itself."""
    return implies(s.stage[manager] == Stage.COMMITTED, s.commit_sent)


def a_promise_is_broken_only_by_what_was_sent(s: State, manager: Manager) -> bool:
    """Otherwise a manager aborts what it promised to commit."""
    return implies(s.stage[manager] == Stage.ABORTED, s.abort_sent or s.first[manager] == Value.ABORTED)


INITIAL = State()
ACTIONS = (
    prepare,
    give_up,
    open_ballot,
    reply,
    propose,
    vote_first,
    vote_second,
    commit,
    abort,
    learn_commit,
    learn_abort,
)
INVARIANTS = (
    no_two_outcomes,
    only_managers_take_part,
    a_manager_that_works_has_proposed_nothing,
    proposals_are_values,
    votes_are_for_proposals,
    answers_tell_the_vote,
    the_leader_proposes_what_may_be_decided,
    the_leader_invents_no_promise,
    who_commits_has_all_decisions,
    who_aborts_has_one_decision,
    one_outcome_is_sent,
    managers_commit_what_was_sent,
    a_promise_is_broken_only_by_what_was_sent,
)
BOUND = Bound(
    says="all states",
    within=lambda s: True,
    numbers={
        "manager": range(MANAGERS),
        "acceptor": range(ACCEPTORS),
        "absent": range(ACCEPTORS),
        "a": range(MANAGERS),
        "b": range(MANAGERS),
    },
)
