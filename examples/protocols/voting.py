"""Voting, of which Paxos is made: three acceptors vote in ballots, and what two of them vote for is chosen.

After Lamport, "How to Win a Turing Award", as TLA+'s Voting has it, with three acceptors.
"""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Bound, Map, all_between, applies, implies, replace, require

Acceptor = NewType("Acceptor", int)
Ballot = NewType("Ballot", int)
Value = NewType("Value", int)
ACCEPTORS = 3
BALLOTS = 2
NONE = Value(-1)


@dataclass(frozen=True, slots=True)
class State:
    """The votes, and the ballot in which each acceptor takes part at least."""

    vote: Map[Acceptor, Ballot, Value] = Map(Value(-1))  # -1 for none
    ballot: Map[Acceptor, Ballot] = Map(Ballot(-1))


def leave(s: State, acceptor: Acceptor, ballot: Ballot) -> State:
    """An acceptor takes part in no ballot before this one any more."""
    applies(0 <= acceptor < ACCEPTORS)
    require(
        s.ballot[acceptor] < ballot,
        "ballot-is-later",
        because="the ballot is a later one",
        otherwise="an acceptor returns to what it has left",
    )
    return replace(s, ballot=s.ballot.set(acceptor, ballot))


def cast(s: State, acceptor: Acceptor, ballot: Ballot, value: Value, absent: Acceptor, since: Ballot) -> State:
    """An acceptor votes: two acceptors show that no other value was chosen before, by their last votes in `since`."""
    applies(0 <= acceptor < ACCEPTORS and 0 <= absent < ACCEPTORS and 0 <= ballot and 0 <= value)
    applies(-1 <= since < ballot)
    require(
        s.ballot[acceptor] <= ballot,
        "acceptor-takes-part",
        because="the acceptor takes part in the ballot",
        otherwise="it breaks what it promised",
    )
    require(
        s.vote[acceptor, ballot] == NONE,
        "acceptor-votes-once",
        because="the acceptor has not voted in the ballot",
        otherwise="two values are chosen in one ballot",
    )
    require(
        all_between(
            0,
            ACCEPTORS,
            lambda a: s.vote[Acceptor(a), ballot] == NONE or s.vote[Acceptor(a), ballot] == value,
        ),
        "ballot-has-one-value",
        because="the others vote for the same value in the ballot",
        otherwise="two values are chosen in one ballot",
    )
    one = Acceptor((absent + 1) % ACCEPTORS)
    other = Acceptor((absent + 2) % ACCEPTORS)
    require(
        ballot <= s.ballot[one] and ballot <= s.ballot[other],
        "two-take-part",
        because="two acceptors have left all ballots before",
        otherwise="another value is chosen there later",
    )
    require(
        (since == -1 or s.vote[one, since] == value or s.vote[other, since] == value)
        and all_between(
            since + 1,
            ballot,
            lambda b: s.vote[one, Ballot(b)] == NONE and s.vote[other, Ballot(b)] == NONE,
        ),
        "last-vote-is-for-the-value",
        because="their last vote before was for the value, or they have never voted",
        otherwise="two values are chosen",
    )
    return replace(s, vote=s.vote.set(acceptor, ballot, value), ballot=s.ballot.set(acceptor, ballot))


def is_chosen(s: State, ballot: Ballot, value: Value) -> bool:
    """True if two acceptors have voted for a value."""
    return (
        (s.vote[Acceptor(0), ballot] == value and s.vote[Acceptor(1), ballot] == value)
        or (s.vote[Acceptor(0), ballot] == value and s.vote[Acceptor(2), ballot] == value)
        or (s.vote[Acceptor(1), ballot] == value and s.vote[Acceptor(2), ballot] == value)
    )


def one_value_is_chosen(s: State, a: Ballot, b: Ballot, value: Value, another: Value) -> bool:
    """Otherwise two clients are answered differently."""
    return implies(
        0 <= value and 0 <= another and is_chosen(s, a, value) and is_chosen(s, b, another), value == another
    )


def a_ballot_has_one_value(s: State, ballot: Ballot) -> bool:
    """Otherwise two values are chosen in it."""
    return (
        agree(s.vote[Acceptor(0), ballot], s.vote[Acceptor(1), ballot])
        and agree(s.vote[Acceptor(0), ballot], s.vote[Acceptor(2), ballot])
        and agree(s.vote[Acceptor(1), ballot], s.vote[Acceptor(2), ballot])
    )


def agree(one: Value, other: Value) -> bool:
    """True for two votes for one value, and where one of them is none."""
    return implies(one != NONE and other != NONE, one == other)


def who_votes_takes_part(s: State, acceptor: Acceptor, ballot: Ballot) -> bool:
    """Otherwise an acceptor votes in a ballot that it has left."""
    return implies(s.vote[acceptor, ballot] != NONE, 0 <= ballot <= s.ballot[acceptor])


INITIAL = State()
ACTIONS = (leave, cast)
INVARIANTS = (one_value_is_chosen, a_ballot_has_one_value, who_votes_takes_part)
BOUND = Bound(
    says="two values",
    within=lambda s: True,
    numbers={
        "acceptor": range(ACCEPTORS),
        "absent": range(ACCEPTORS),
        "ballot": range(BALLOTS),
        "since": range(-1, BALLOTS),
        "value": range(2),
        "another": range(2),
        "a": range(BALLOTS),
        "b": range(BALLOTS),
    },
)
