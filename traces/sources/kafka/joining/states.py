"""Events and states of partitions and producers, taken out of columns one by one."""

from __future__ import annotations

from collections.abc import Iterable

from gapless.spec.catalog import SPECS, State
from gapless.traces.judging import building
from gapless.traces.judging.building import Events, Ints
from gapless.traces.replay.exact import Event


def some(events: Events, low: int, high: int) -> Iterable[Event]:
    """Yields the events `low:high`, one by one."""
    return (events.at(number) for number in range(low, high))


def state_of(spec: str, column: Ints) -> State:
    """Returns a state by its scalars."""
    initial, names = SPECS[spec].initial, SPECS[spec].scalars
    kinds = {name: type(getattr(initial, name)) for name in names}
    return type(initial)(**{name: kinds[name](int(value)) for name, value in zip(names, column, strict=True)})


def column_of(spec: str, state: State) -> Ints:
    """Returns the scalars of a state as a column: int64 [scalars, 1]."""
    return building.states(SPECS[spec], 1, **{name: int(getattr(state, name)) for name in SPECS[spec].scalars})
