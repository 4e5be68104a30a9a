"""Termination detection among nodes that wake one another without delay: what EWD 840 implements.

As TLA+'s SyncTerminationDetection has it. It begins with all nodes active: every other beginning is reached from there.
"""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Bound, Map, all_between, applies, implies, replace, require

Node = NewType("Node", int)
NODES = 7


@dataclass(frozen=True, slots=True)
class State:
    """The nodes, and what was found out."""

    nodes: int = NODES  # which no step changes
    passive: Map[Node, bool] = Map(False)
    detected: bool = False


def terminated(s: State) -> bool:
    """True if no node does anything any more."""
    return all_between(0, s.nodes, lambda n: s.passive[Node(n)])


def wake(s: State, sender: Node, receiver: Node) -> State:
    """An active node makes another one active."""
    applies(0 <= sender < s.nodes and 0 <= receiver < s.nodes)
    require(
        not s.passive[sender],
        "sender-is-active",
        because="the sender is active",
        otherwise="work begins again after it was found to have ended",
    )
    return replace(s, passive=s.passive.set(receiver, False))


def rest(s: State, node: Node) -> State:
    """A node has done its work."""
    applies(0 <= node < s.nodes)
    applies(not s.passive[node])
    return replace(s, passive=s.passive.set(node, True))


def detect(s: State) -> State:
    """It is found out that all work has ended."""
    require(terminated(s), "all-have-ended", because="all work has ended", otherwise="results are read too early")
    return replace(s, detected=True)


def what_is_detected_is_so(s: State) -> bool:
    """Otherwise results are read while a node still writes them."""
    return implies(s.detected, terminated(s))


INITIAL = State()
ACTIONS = (wake, rest, detect)
INVARIANTS = (what_is_detected_is_so,)
BOUND = Bound(
    says="all states",
    within=lambda s: True,
    numbers={"node": range(NODES), "sender": range(NODES), "receiver": range(NODES)},
)
