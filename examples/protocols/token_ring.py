"""Dijkstra's ring that stabilizes by itself (EWD 426): whatever its counters are, one token remains in the end.

As TLA+'s TokenRing has it. A node has a token if its counter differs from that of the node before it, and node 0 if its
counter is that of the last node.
"""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Bound, Map, all_between, applies, every_map, implies, replace, require

Node = NewType("Node", int)
NODES = 3
VALUES = 6  # of a counter: no fewer than nodes


@dataclass(frozen=True, slots=True)
class State:
    """The counters of the ring."""

    nodes: int = 1  # which no step changes
    counter: Map[Node, int] = Map(0)


def begin(s: State, nodes: int, counter: Map[Node, int]) -> State:
    """It begins with any counters."""
    applies(0 < nodes and all_between(0, nodes, lambda n: 0 <= counter[Node(n)] < VALUES))
    return replace(s, nodes=nodes, counter=counter)


def renew(s: State) -> State:
    """Node 0 has a token, and sends a new value round."""
    last = s.counter[Node(s.nodes - 1)]
    require(
        s.counter[Node(0)] == last,
        "value-has-come-round",
        because="the last value has come round",
        otherwise="there are two tokens",
    )
    return replace(s, counter=s.counter.set(Node(0), (last + 1) % VALUES))


def pass_on(s: State, node: Node) -> State:
    """Another node has a token, and passes it on."""
    applies(0 < node < s.nodes)
    before = s.counter[Node(node - 1)]
    require(
        s.counter[node] != before,
        "node-has-a-token",
        because="the node before it has another value",
        otherwise="a node enters without a token",
    )
    return replace(s, counter=s.counter.set(node, before))


def counters_have_their_values(s: State) -> bool:
    """Otherwise the ring has no end."""
    return all_between(0, s.nodes, lambda n: 0 <= s.counter[Node(n)] < VALUES)


def is_uniform(s: State) -> bool:
    """True if node 0 alone has a token."""
    return all_between(0, s.nodes, lambda n: s.counter[Node(n)] == s.counter[Node(0)])


def one_token_is_passed_to_the_next_node(before: State, after: State) -> bool:
    """Otherwise a second token comes from nowhere."""
    return implies(
        is_uniform(before),
        all_between(1, before.nodes, lambda n: after.counter[Node(n)] == before.counter[Node(0)]),
    )


INITIAL = State()
INITIALS = (begin,)
ACTIONS = (renew, pass_on)
INVARIANTS = (counters_have_their_values,)
STEP_PROPERTIES = (one_token_is_passed_to_the_next_node,)
BOUND = Bound(
    says="all states",
    within=lambda s: True,
    numbers={"nodes": (NODES,), "counter": every_map(range(NODES), range(VALUES), 0), "node": range(NODES)},
)
