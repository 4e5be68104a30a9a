"""An allocator of two resources: clients ask for some of them, get them one by one or together, and return them.

As TLA+'s SimpleAllocator has it, with two resources.
"""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Bound, Map, all_between, applies, implies, replace, require

Client = NewType("Client", int)
Resource = NewType("Resource", int)
CLIENTS = 3
FIRST = Resource(0)
SECOND = Resource(1)


@dataclass(frozen=True, slots=True)
class State:
    """The clients, what each still wants, and what each has."""

    clients: int = CLIENTS  # which no step changes
    wanted: Map[Client, Resource, bool] = Map(False)
    given: Map[Client, Resource, bool] = Map(False)


def request(s: State, client: Client, first: bool, second: bool) -> State:
    """A client asks for resources."""
    applies(0 <= client < s.clients and (first or second))
    require(
        not s.wanted[client, FIRST] and not s.wanted[client, SECOND],
        "client-waits-for-nothing",
        because="the client waits for nothing",
        otherwise="a request is forgotten",
    )
    require(
        not s.given[client, FIRST] and not s.given[client, SECOND],
        "client-has-nothing",
        because="the client has nothing",
        otherwise="two clients wait for each other",
    )
    return replace(s, wanted=s.wanted.set(client, FIRST, first).set(client, SECOND, second))


def allocate(s: State, client: Client, first: bool, second: bool) -> State:
    """A client gets resources."""
    applies(0 <= client < s.clients and (first or second))
    require(
        implies(first, s.wanted[client, FIRST]) and implies(second, s.wanted[client, SECOND]),
        "client-wants-them",
        because="the client waits for them",
        otherwise="a resource is given away for nothing",
    )
    require(
        implies(first, is_free(s, FIRST)) and implies(second, is_free(s, SECOND)),
        "they-are-free",
        because="no client has them",
        otherwise="two clients use one resource",
    )
    return replace(
        s,
        wanted=s.wanted.set(client, FIRST, s.wanted[client, FIRST] and not first).set(
            client, SECOND, s.wanted[client, SECOND] and not second
        ),
        given=s.given.set(client, FIRST, s.given[client, FIRST] or first).set(
            client, SECOND, s.given[client, SECOND] or second
        ),
    )


def give_back(s: State, client: Client, first: bool, second: bool) -> State:
    """A client returns resources."""
    applies(0 <= client < s.clients and (first or second))
    require(
        implies(first, s.given[client, FIRST]) and implies(second, s.given[client, SECOND]),
        "client-has-them",
        because="the client has them",
        otherwise="another client loses what it uses",
    )
    return replace(
        s,
        given=s.given.set(client, FIRST, s.given[client, FIRST] and not first).set(
            client, SECOND, s.given[client, SECOND] and not second
        ),
    )


def is_free(s: State, resource: Resource) -> bool:
    """True if no client has a resource."""
    return all_between(0, s.clients, lambda c: not s.given[Client(c), resource])


def one_client_has_a_resource(s: State, a: Client, b: Client, resource: Resource) -> bool:
    """Otherwise two clients use it at once."""
    return a == b or not (s.given[a, resource] and s.given[b, resource])


def only_clients_have_resources(s: State, client: Client, resource: Resource) -> bool:
    """Otherwise a stranger has one, and it is taken for free."""
    return implies(s.given[client, resource], 0 <= client < s.clients)


INITIAL = State()
ACTIONS = (request, allocate, give_back)
INVARIANTS = (one_client_has_a_resource, only_clients_have_resources)
BOUND = Bound(
    says="all states",
    within=lambda s: True,
    numbers={
        "client": range(CLIENTS),
        "first": (0, 1),
        "second": (0, 1),
        "a": range(CLIENTS),
        "b": range(CLIENTS),
        "resource": range(2),
    },
)
