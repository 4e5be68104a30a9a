"""All small cases, by their names."""

from __future__ import annotations

from gapless.properties.ours.orders import coordination_orders, transaction_orders
from gapless.properties.ours.orders.every_order import OrderTally, explore

CASES = {case.name: case for case in (*transaction_orders.CASES, *coordination_orders.CASES)}


def one(name: str, stride: int) -> OrderTally:
    """A case, by its name."""
    return explore(CASES[name], stride)
