"""A lease with fencing tokens: one service hands out the right to write, and one storage is written to.

Whoever holds the lease writes. But a worker may stop for any time: its lease runs out, another worker gets it, and when
the first goes on it still believes that the lease is its own. So every lease has a token, a number that only grows, and
the storage refuses whatever is older than what it has seen.
"""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Bound, Map, implies, replace, require

Worker = NewType("Worker", int)
Token = NewType("Token", int)

NOBODY = Worker(-1)


@dataclass(frozen=True, slots=True)
class State:
    """Who holds the lease, and what the storage has seen."""

    holder: Worker = NOBODY
    last: Token = Token(0)  # of the leases that were given; 0 before the first
    tokens: Map[Worker, Token] = Map(Token(0))  # of each worker: that of the lease it was given last
    seen: Token = Token(0)  # the token of the last write; 0 before the first


def grant(s: State, worker: Worker, token: Token) -> State:
    """The service gives the lease to a worker."""
    require(0 <= worker, "worker-has-a-number", because="a worker has a number", otherwise="nobody knows who writes")
    require(
        s.holder == NOBODY,
        "lease-is-free",
        because="the lease is free",
        otherwise="two workers hold it at once, and neither knows",
    )
    require(
        token == s.last + 1,
        "tokens-are-counted",
        because="tokens are counted",
        otherwise="a lease that is over is taken for the newest",
    )
    return replace(s, holder=worker, last=token, tokens=s.tokens.set(worker, token))


def expire(s: State) -> State:
    """The lease's time is over. Whoever held it does not know that yet."""
    return replace(s, holder=NOBODY)


def write(s: State, worker: Worker, token: Token) -> State:
    """The storage takes what a worker writes, with the token of its lease."""
    require(
        0 < token and token == s.tokens[worker],
        "token-was-given-to-the-worker",
        because="the token was given to the worker",
        otherwise="whoever guesses a number writes",
    )
    require(
        s.seen <= token,
        "token-is-no-older-than-the-last-write",
        because="the token is no older than that of the last write",
        otherwise="a worker whose lease is long over overwrites what its successor wrote",
    )
    return replace(s, seen=token)


def the_holder_has_a_number(s: State) -> bool:
    """Otherwise nobody knows who writes."""
    return s.holder == NOBODY or 0 <= s.holder


def no_token_is_newer_than_the_last_lease(s: State, worker: Worker) -> bool:
    """Otherwise a worker writes with a lease that nobody gave."""
    return 0 <= s.tokens[worker] and s.tokens[worker] <= s.last


def what_was_written_was_allowed(s: State) -> bool:
    """Otherwise the storage refuses whoever gets the next lease."""
    return 0 <= s.seen and s.seen <= s.last


def writes_never_go_back(before: State, after: State) -> bool:
    """Otherwise a worker whose lease is long over overwrites what its successor wrote."""
    return before.seen <= after.seen


def a_lease_is_taken_from_nobody(before: State, after: State) -> bool:
    """Otherwise two workers hold it at once, and neither knows."""
    return implies(0 <= before.holder and 0 <= after.holder, after.holder == before.holder)


def tokens_grow_one_by_one(before: State, after: State) -> bool:
    """Otherwise a lease that is over is taken for the newest."""
    return after.last == before.last or after.last == before.last + 1


def nobody_holds_the_lease(s: State) -> bool:
    """Otherwise whoever comes next waits for ever."""
    return s.holder == NOBODY


INITIAL = State()
ACTIONS = (grant, expire, write)
INVARIANTS = (the_holder_has_a_number, no_token_is_newer_than_the_last_lease, what_was_written_was_allowed)
STEP_PROPERTIES = (writes_never_go_back, a_lease_is_taken_from_nobody, tokens_grow_one_by_one)
AT_REST = (nobody_holds_the_lease,)
BOUND = Bound(
    says="two workers, three leases",
    within=lambda s: s.last <= 3,
    numbers={"worker": (-1, 0, 1), "token": range(5)},
)
