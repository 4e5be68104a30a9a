"""All small cases, by their names."""

from __future__ import annotations

from gapless.properties.campaign import CaseTally
from gapless.properties.reference_store.orders import coordination_orders, transaction_orders
from gapless.properties.reference_store.orders.every_order import explore, how_many

CASES = {case.name: case for case in (*transaction_orders.CASES, *coordination_orders.CASES)}
Part = tuple[str, slice]
"""The name of a case, and some of its orders."""

AT_ONCE = 250
"""Orders that one process tries before it tells of them: a minute or two, for most cases."""


def parts(name: str, stride: int) -> list[slice]:
    """The orders of a case, so many at a time."""
    number = how_many([len(steps) for steps in CASES[name].actors])
    return [slice(low, low + AT_ONCE * stride) for low in range(0, number, AT_ONCE * stride)]


def one(part: Part, stride: int) -> CaseTally:
    """Judge a part of a case."""
    name, some = part
    return explore(CASES[name], stride, some=some)
