"""Arguments that a step is likely to take: values near those of the state, moved until fewer needs are in the way."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from gapless.spec.catalog import Spec, State, needs
from gapless.spec.language import Map, Refused
from gapless.spec.reading.map_keys import numbers_of

SMALL = (0, 1, 2, 3)
LAST = 3  # of the keys of one Map, the newest: an old one is seldom due


def values_near(spec: Spec, state: State) -> list[int]:
    """Small values, the state's own, and the neighbours of these; the smallest first."""
    own = {int(getattr(state, name)) for name in spec.scalars}
    for name in spec.maps:
        kept: Map[Any, int] = getattr(state, name)
        for key in sorted(kept.entries)[-LAST:]:
            own |= {*numbers_of(key), int(kept[key])}
    return sorted(
        {*SMALL, *(value + step for value in own for step in (-1, 0, 1))}, key=lambda value: (abs(value), value)
    )


def likely(spec: Spec, state: State, action: str, args: Sequence[int], profile: str) -> tuple[int, ...]:
    """Arguments that the step takes, or that more of its needs let pass than these: one is changed after another."""
    best, reached = tuple(args), _reached(spec, state, action, args, profile)
    for at, name in enumerate(spec.parameters[action]):
        tried = (1, 0) if name in spec.flags[action] else values_near(spec, state)
        for value in tried:
            if reached == TAKEN:
                return best
            other = (*best[:at], value, *best[at + 1 :])
            if (found := _reached(spec, state, action, other, profile)) > reached:
                best, reached = other, found
    return best


TAKEN = 1 << 30


def _reached(spec: Spec, state: State, action: str, args: Sequence[int], profile: str) -> int:
    """The number of needs that let the step pass; `TAKEN` if all do."""
    try:
        spec.step(state, action, dict(zip(spec.parameters[action], args, strict=True)), profile)
    except Refused as refused:
        order = _order(spec, action)
        return order.index(refused.rule) if refused.rule in order else len(order)
    return TAKEN


@cache
def _order(spec: Spec, action: str) -> tuple[str, ...]:
    """The rules of a step, in the order in which they are asked."""
    return tuple(need.rule for need in needs(spec.actions[action]))
