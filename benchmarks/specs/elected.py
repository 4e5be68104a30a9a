"""Leaders that most nodes have voted for: a count."""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Map, applies, count_between, replace, require

Node = NewType("Node", int)
NODES = 5


@dataclass(frozen=True, slots=True)
class State:
    """The votes of a term."""

    term: int = 0
    led: bool = False
    votes: Map[Node, bool] = Map(False)


def vote(s: State, node: Node, term: int) -> State:
    """A node votes."""
    applies(0 <= node < NODES)
    require(term == s.term, "vote-is-of-the-term", because="the vote is of the term", otherwise="an old vote counts")
    require(not s.votes[node], "vote-is-the-first", because="the vote is the node's first", otherwise="it votes twice")
    return replace(s, votes=s.votes.set(node, True))


def lead(s: State, term: int) -> State:
    """The candidate leads."""
    require(
        term == s.term and NODES < 2 * count_between(0, NODES, lambda n: s.votes[Node(n)]),
        "most-nodes-voted",
        because="most nodes voted for the leader",
        otherwise="a term has two leaders",
    )
    return replace(s, led=True)


def end_term(s: State) -> State:
    """A new term begins."""
    return replace(s, term=s.term + 1, led=False, votes=s.votes.cleared())


def leader_has_most_votes(s: State) -> bool:
    """Otherwise a term has two leaders."""
    return not s.led or NODES < 2 * count_between(0, NODES, lambda n: s.votes[Node(n)])


INITIAL = State()
ACTIONS = (vote, lead, end_term)
INVARIANTS = (leader_has_most_votes,)
