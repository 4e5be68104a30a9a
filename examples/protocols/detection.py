"""Termination detection among nodes that send messages: what EWD 998 implements.

As TLA+'s AsyncTerminationDetection has it. It begins with all nodes active: every other beginning is reached from
there.
"""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Bound, Map, all_between, applies, implies, replace, require

Node = NewType("Node", int)
NODES = 4


@dataclass(frozen=True, slots=True)
class State:
    """The nodes, the messages on their way to each, and what was found out."""

    nodes: int = NODES  # which no step changes
    passive: Map[Node, bool] = Map(False)
    pending: Map[Node, int] = Map(0)
    detected: bool = False


def terminated(s: State) -> bool:
    """True if no node does anything any more."""
    return all_between(0, s.nodes, lambda n: s.passive[Node(n)] and s.pending[Node(n)] == 0)


def send(s: State, sender: Node, receiver: Node) -> State:
    """An active node sends a message."""
    applies(0 <= sender < s.nodes and 0 <= receiver < s.nodes)
    require(
        not s.passive[sender],
        "sender-is-active",
        because="the sender is active",
        otherwise="work begins again after it was found to have ended",
    )
    return replace(s, pending=s.pending.set(receiver, s.pending[receiver] + 1))


def receive(s: State, node: Node) -> State:
    """A node receives a message, and is active again."""
    applies(0 <= node < s.nodes)
    require(
        s.pending[node] > 0,
        "message-was-sent",
        because="a message is on its way",
        otherwise="a node becomes active by itself",
    )
    return replace(s, passive=s.passive.set(node, False), pending=s.pending.set(node, s.pending[node] - 1))


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


def messages_are_counted(s: State, node: Node) -> bool:
    """Otherwise a message is received that was never sent."""
    return s.pending[node] >= 0


def ended_work_stays_so(before: State, after: State) -> bool:
    """Otherwise what was detected is not true any more."""
    return implies(terminated(before), terminated(after))


INITIAL = State()
ACTIONS = (send, receive, rest, detect)
INVARIANTS = (what_is_detected_is_so, messages_are_counted)
STEP_PROPERTIES = (ended_work_stays_so,)
BOUND = Bound(
    says="at most three messages on their way to a node",
    within=lambda s: all_between(0, NODES, lambda n: s.pending[n] <= 3),
    numbers={"node": range(NODES), "sender": range(NODES), "receiver": range(NODES)},
)
