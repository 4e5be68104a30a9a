"""The election of Chang and Roberts: each initiator sends its number round a ring, and the smallest comes back.

As TLA+'s ChangRoberts has it. A number is under way at one place at most.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NewType

from gapless.spec.language import Bound, Map, all_between, applies, every_map, implies, replace, require

Node = NewType("Node", int)
NODES = 3


class Role(IntEnum):
    """The roles of a node."""

    LOST = 0
    CANDIDATE = 1
    WON = 2


@dataclass(frozen=True, slots=True)
class State:
    """The ring."""

    nodes: int = NODES  # which no step changes
    started: Map[Node, bool] = Map(False)
    initiator: Map[Node, bool] = Map(False)
    role: Map[Node, Role] = Map(Role.LOST)
    place: Map[Node, Node] = Map(Node(-1))  # of each number: the node that receives it next; -1 for none


def begin(s: State, initiator: Map[Node, bool], role: Map[Node, Role]) -> State:
    """It begins with any initiators, which are the candidates."""
    applies(
        all_between(
            0,
            s.nodes,
            lambda n: role[Node(n)] == (Role.CANDIDATE if initiator[Node(n)] else Role.LOST),
        )
    )
    return replace(s, initiator=initiator, role=role)


def after(s: State, node: Node) -> Node:
    """The next node on the ring."""
    return Node(0 if node + 1 == s.nodes else node + 1)


def start(s: State, node: Node) -> State:
    """A node starts; an initiator sends its number to the next node."""
    applies(0 <= node < s.nodes and not s.started[node])
    started = s.started.set(node, True)
    if s.initiator[node]:
        return replace(s, started=started, place=s.place.set(node, after(s, node)))
    return replace(s, started=started)


def receive(s: State, node: Node, number: Node) -> State:
    """A node receives a number: a smaller one, or one that is no matter to it any more, it sends on."""
    applies(0 <= node < s.nodes and 0 <= number < s.nodes and s.started[node])
    require(
        s.place[number] == node,
        "number-has-come",
        because="the number has come to the node",
        otherwise="a node loses against a number that was never sent",
    )
    if s.role[node] == Role.LOST:
        return replace(s, place=s.place.set(number, after(s, node)))
    if number < node:
        return replace(s, role=s.role.set(node, Role.LOST), place=s.place.set(number, after(s, node)))
    if number == node:
        return replace(s, role=s.role.set(node, Role.WON), place=s.place.set(number, Node(-1)))
    return replace(s, place=s.place.set(number, Node(-1)))


def only_one_wins(s: State, a: Node, b: Node) -> bool:
    """Otherwise there are two leaders."""
    return implies(are_nodes(s, a, b) and s.role[a] == Role.WON, a == b or s.role[b] == Role.LOST)


def the_smallest_initiator_wins(s: State, a: Node, b: Node) -> bool:
    """Otherwise another one is elected in the next round."""
    return implies(are_nodes(s, a, b) and s.role[a] == Role.WON and s.initiator[b], a <= b and s.initiator[a])


def are_nodes(s: State, a: Node, b: Node) -> bool:
    """True for two nodes of the ring."""
    return 0 <= a < s.nodes and 0 <= b < s.nodes


INITIAL = State()
INITIALS = (begin,)
ACTIONS = (start, receive)
INVARIANTS = (only_one_wins, the_smallest_initiator_wins)
BOUND = Bound(
    says="all states",
    within=lambda s: True,
    numbers={
        "initiator": every_map(range(NODES), (False, True), False),
        "role": every_map(range(NODES), (Role.LOST, Role.CANDIDATE), Role.LOST),
        "node": range(NODES),
        "number": range(NODES),
        "a": range(NODES),
        "b": range(NODES),
    },
)
