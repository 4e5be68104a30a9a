"""The life of vouchers: issued, given to others, and redeemed or cancelled once.

As TLA+'s VoucherLifeCycle has it.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NewType

from gapless.spec.language import Bound, Map, applies, implies, replace, require

Voucher = NewType("Voucher", int)
VOUCHERS = 3


class Status(IntEnum):
    """The stages of a voucher."""

    PHANTOM = 0
    VALID = 1
    REDEEMED = 2
    CANCELLED = 3


class Life(IntEnum):
    """The stages of the machine that leads a voucher through its life."""

    NEW = 0
    WORKING = 1
    DONE = 2


@dataclass(frozen=True, slots=True)
class State:
    """All vouchers."""

    status: Map[Voucher, Status] = Map(Status.PHANTOM)
    life: Map[Voucher, Life] = Map(Life.NEW)


def issue(s: State, voucher: Voucher) -> State:
    """A voucher is issued."""
    require(
        s.life[voucher] == Life.NEW,
        "voucher-is-new",
        because="the voucher is new",
        otherwise="one voucher is issued twice",
    )
    return replace(s, status=s.status.set(voucher, Status.VALID), life=s.life.set(voucher, Life.WORKING))


def transfer(s: State, voucher: Voucher) -> State:
    """A voucher goes to another owner."""
    applies(s.status[voucher] == Status.VALID)
    return s


def redeem(s: State, voucher: Voucher) -> State:
    """A voucher is redeemed."""
    require(
        s.status[voucher] == Status.VALID,
        "redeemed-voucher-is-valid",
        because="the voucher is valid",
        otherwise="one voucher is paid for twice",
    )
    return replace(s, status=s.status.set(voucher, Status.REDEEMED), life=s.life.set(voucher, Life.DONE))


def cancel(s: State, voucher: Voucher) -> State:
    """A voucher is cancelled."""
    require(
        s.status[voucher] == Status.VALID,
        "cancelled-voucher-is-valid",
        because="the voucher is valid",
        otherwise="what was redeemed is cancelled",
    )
    return replace(s, status=s.status.set(voucher, Status.CANCELLED), life=s.life.set(voucher, Life.DONE))


def the_life_fits_the_status(s: State, voucher: Voucher) -> bool:
    """Otherwise a voucher is used that does not live."""
    return (s.life[voucher] == Life.NEW) == (s.status[voucher] == Status.PHANTOM) and (
        s.life[voucher] == Life.WORKING
    ) == (s.status[voucher] == Status.VALID)


def what_is_done_is_final(before: State, after: State, voucher: Voucher) -> bool:
    """Otherwise a voucher is used again."""
    return implies(before.life[voucher] == Life.DONE, after.status[voucher] == before.status[voucher])


INITIAL = State()
ACTIONS = (issue, transfer, redeem, cancel)
INVARIANTS = (the_life_fits_the_status,)
STEP_PROPERTIES = (what_is_done_is_final,)
BOUND = Bound(says="three vouchers", within=lambda s: True, numbers={"voucher": range(VOUCHERS)})
