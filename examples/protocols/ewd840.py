"""Dijkstra's detection of termination on a ring (EWD 840), round which a token goes.

As TLA+'s EWD840 has it. A node is passive when it has done its work, and a message makes it active at once. A node
that has sent one turns black, and so does the token when it leaves that node. Node 0 knows that all are passive when a
white token has come back, and it is white and passive itself.
"""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import (
    Bound,
    Claim,
    Helpful,
    Map,
    all_between,
    applies,
    every_map,
    implies,
    replace,
    require,
    some_between,
)

Node = NewType("Node", int)
NODES = 3


@dataclass(frozen=True, slots=True)
class State:
    """The nodes, and the token."""

    nodes: int = 1  # which no step changes
    active: Map[Node, bool] = Map(False)
    black: Map[Node, bool] = Map(False)
    token: Node = Node(0)  # the node that has it
    token_is_black: bool = True


def begin(s: State, nodes: int, token: Node, active: Map[Node, bool], black: Map[Node, bool]) -> State:
    """It begins with any nodes active, in any colours, and the token anywhere."""
    applies(0 <= token < nodes)
    return replace(s, nodes=nodes, token=token, active=active, black=black)


def start_round(s: State) -> State:
    """Node 0 sends a white token round, since the last round has found out nothing."""
    applies(s.token == 0)
    require(
        s.token_is_black or s.black[Node(0)],
        "last-round-was-in-vain",
        because="the token or node 0 is black",
        otherwise="it goes round for ever",
    )
    return replace(s, token=Node(s.nodes - 1), token_is_black=False, black=s.black.set(Node(0), False))


def pass_on(s: State, node: Node) -> State:
    """A node passes the token on, black if it has sent a message itself."""
    applies(0 < node and s.token == node)
    require(
        not s.active[node] or s.black[node] or s.token_is_black,
        "node-has-done-its-work",
        because="the node is passive, or the round is in vain anyway",
        otherwise="its work is overlooked",
    )
    return replace(
        s,
        token=Node(node - 1),
        token_is_black=s.token_is_black or s.black[node],
        black=s.black.set(node, False),
    )


def send(s: State, sender: Node, receiver: Node) -> State:
    """An active node sends a message; it turns black if that goes to a node that the token has passed."""
    applies(0 <= sender < s.nodes and 0 <= receiver < s.nodes and sender != receiver)
    require(
        s.active[sender],
        "sender-is-active",
        because="the sender is active",
        otherwise="work begins again after it was found to have ended",
    )
    return replace(
        s,
        active=s.active.set(receiver, True),
        black=s.black.set(sender, s.black[sender] or sender < receiver),
    )


def rest(s: State, node: Node) -> State:
    """A node has done its work."""
    applies(0 <= node < s.nodes)
    applies(s.active[node])
    return replace(s, active=s.active.set(node, False))


def detected(s: State) -> bool:
    """True if node 0 knows that all are passive."""
    return s.token == 0 and not s.token_is_black and not s.black[Node(0)] and not s.active[Node(0)]


def what_is_detected_is_so(s: State) -> bool:
    """Otherwise results are read while a node still writes them."""
    return implies(detected(s), all_between(0, s.nodes, lambda n: not s.active[Node(n)]))


def the_token_is_on_the_ring(s: State) -> bool:
    """Otherwise no round comes to its end."""
    return 0 <= s.token < s.nodes


def what_the_token_has_passed_is_passive_or_will_be_noticed(s: State) -> bool:
    """Otherwise a message that went behind the token is overlooked."""
    return (
        s.token_is_black
        or all_between(s.token + 1, s.nodes, lambda n: not s.active[Node(n)])
        or some_between(0, s.token + 1, lambda n: s.black[Node(n)])
    )


def all_are_passive(s: State) -> bool:
    """True if all nodes have done their work; then no message can make one active again."""
    return all_between(0, s.nodes, lambda n: not s.active[Node(n)])


def the_round_is_in_vain(s: State) -> bool:
    """True if the token is black, or will be before it is back."""
    return s.token_is_black or some_between(0, s.token + 1, lambda n: s.black[Node(n)])


def steps_before_it_is_detected(s: State) -> int:
    """The steps of the token, at most: this round, one that turns all nodes white, and one that stays white."""
    if not the_round_is_in_vain(s):
        return s.token
    passed_are_white = all_between(s.token + 1, s.nodes, lambda n: not s.black[Node(n)])
    return s.token + (s.nodes if passed_are_white else 2 * s.nodes)


def the_token_is_back(s: State) -> bool:
    """True if node 0 has the token."""
    return s.token == 0


def the_token_is_on_its_way(s: State) -> bool:
    """True if another node has the token."""
    return s.token != 0


def who_has_the_token(s: State) -> Node:
    """The node that has the token."""
    return s.token


INITIAL = State()
INITIALS = (begin,)
ACTIONS = (start_round, pass_on, send, rest)
INVARIANTS = (
    what_is_detected_is_so,
    the_token_is_on_the_ring,
    what_the_token_has_passed_is_passive_or_will_be_noticed,
)
CLAIMS = (
    Claim(
        "termination is detected",
        otherwise="all have done their work, and no one reads the results",
        pending=all_are_passive,
        done=detected,
        fair={start_round: "node 0 tries again", pass_on: "a node that may pass the token on does"},
        rank=steps_before_it_is_detected,
        helpful=(
            Helpful(start_round, when=the_token_is_back),
            Helpful(pass_on, when=the_token_is_on_its_way, args={"node": who_has_the_token}),
        ),
    ),
    Claim(
        "the work ends, and that is detected",
        otherwise="no one reads the results",
        done=detected,
        fair={
            start_round: "node 0 tries again",
            pass_on: "a node that may pass the token on does",
            rest: "a node does its work",
        },
        disturbances={send: "the work is finite"},
    ),
)
BOUND = Bound(
    says="all states",
    within=lambda s: True,
    numbers={
        "nodes": (NODES,),
        "token": range(NODES),
        "active": every_map(range(NODES), (False, True), False),
        "black": every_map(range(NODES), (False, True), False),
        "node": range(NODES),
        "sender": range(NODES),
        "receiver": range(NODES),
    },
)
