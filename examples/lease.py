"""A lease with fencing tokens: a service hands out the right to write, and a storage is written to.

The worker with the lease writes. But a worker may stop for any time: its lease runs out, another worker gets it, and
the first one, when it continues, still believes that the lease is its own. So every lease has a token, a number that
only grows, and the storage refuses a token that is older than what it has seen.
"""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Bound, Map, accepts, implies, replace, require

Worker = NewType("Worker", int)
Token = NewType("Token", int)


@dataclass(frozen=True, slots=True)
class State:
    """The lease as the service knows it, and what the storage has seen."""

    taken: bool = False  # true while a worker has the lease
    last: Token = Token(0)  # that of the newest lease; 0 before the first
    tokens: Map[Worker, Token] = Map(Token(0))  # of each worker: that of the lease it was given last
    seen: Token = Token(0)  # that of the last write; 0 before the first


def grant(s: State, worker: Worker, token: Token) -> State:
    """The service gives the lease to a worker."""
    require(
        not s.taken,
        "lease-is-free",
        because="the lease is free",
        otherwise="two workers have it at once, and neither knows",
    )
    require(
        token == s.last + 1,
        "tokens-are-counted",
        because="tokens are counted",
        otherwise="a lease that is over is taken for the newest",
    )
    return replace(s, taken=True, last=token, tokens=s.tokens.set(worker, token))


def expire(s: State) -> State:
    """The lease's time is over. Its worker does not know that yet."""
    return replace(s, taken=False)


def write(s: State, worker: Worker, token: Token) -> State:
    """The storage takes what a worker writes, with the token of its lease."""
    require(
        0 < token and token == s.tokens[worker],
        "token-was-given-to-the-worker",
        because="the token was given to the worker",
        otherwise="a worker that guesses a number writes",
    )
    require(
        s.seen <= token,
        "token-is-no-older-than-the-last-write",
        because="the token is no older than that of the last write",
        otherwise="a worker whose lease is long over overwrites what its successor wrote",
    )
    return replace(s, seen=token)


def no_token_is_newer_than_the_last_lease(s: State, worker: Worker) -> bool:
    """Otherwise a worker writes with a lease that was never given."""
    return 0 <= s.tokens[worker] and s.tokens[worker] <= s.last


def what_was_written_was_allowed(s: State) -> bool:
    """Otherwise the storage refuses the worker with the next lease."""
    return 0 <= s.seen and s.seen <= s.last


def writes_never_go_back(before: State, after: State) -> bool:
    """Otherwise a worker whose lease is long over overwrites what its successor wrote."""
    return before.seen <= after.seen


def a_taken_lease_is_not_given_again(before: State, after: State) -> bool:
    """Otherwise two workers have it at once, and neither knows."""
    return implies(before.taken and after.taken, after.last == before.last)


def tokens_grow_one_by_one(before: State, after: State) -> bool:
    """Otherwise a lease that is over is taken for the newest."""
    return after.last == before.last or after.last == before.last + 1


def a_new_lease_lets_its_worker_write(s: State, worker: Worker, token: Token) -> bool:
    """Otherwise a lease is worth nothing."""
    return not accepts(grant, s, worker, token) or accepts(write, grant(s, worker, token), worker, token)


def a_lease_that_is_over_is_free(s: State, worker: Worker) -> bool:
    """Otherwise the next worker waits for ever."""
    return accepts(grant, expire(s), worker, Token(s.last + 1))


def a_write_shuts_out_older_leases(s: State, worker: Worker, token: Token, other: Worker, older: Token) -> bool:
    """Otherwise a worker whose lease is long over overwrites what its successor wrote."""
    writes = accepts(write, s, worker, token)
    return not writes or token <= older or not accepts(write, write(s, worker, token), other, older)


def a_worker_that_wrote_can_write_again(s: State, worker: Worker, token: Token) -> bool:
    """Otherwise a lease is good for one write."""
    return not accepts(write, s, worker, token) or accepts(write, write(s, worker, token), worker, token)


def a_granted_lease_is_taken(before: State, after: State) -> bool:
    """Otherwise another worker gets it at the same time."""
    return implies(before.last < after.last, after.taken)


def no_worker_has_the_lease(s: State) -> bool:
    """Otherwise the next worker waits for ever."""
    return not s.taken


INITIAL = State()
ACTIONS = (grant, expire, write)
INVARIANTS = (no_token_is_newer_than_the_last_lease, what_was_written_was_allowed)
STEP_PROPERTIES = (
    writes_never_go_back,
    a_taken_lease_is_not_given_again,
    a_granted_lease_is_taken,
    tokens_grow_one_by_one,
)
ENABLED = (
    a_new_lease_lets_its_worker_write,
    a_worker_that_wrote_can_write_again,
    a_write_shuts_out_older_leases,
    a_lease_that_is_over_is_free,
)
AT_REST = (no_worker_has_the_lease,)
BOUND = Bound(
    says="two workers, three leases",
    within=lambda s: s.last <= 3,
    numbers={"worker": (0, 1), "token": range(5)},
)
