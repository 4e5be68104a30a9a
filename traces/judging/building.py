"""Events made and read by name, independent of the order of arguments and the codes of actions.

`STEPS["queue"].rebuild()` is an event for exact replay. `Events` are columns, as kernels take them; a kernel that
writes such columns gets codes and rows by name: `codes(spec, Codes).append`, `rows(spec, Rows).number`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from gapless.spec.catalog import SPECS, Spec
from gapless.traces.replay.exact import Event

Ints = npt.NDArray[np.int64]
Names = TypeVar("Names", bound=NamedTuple)


class EventMaker:
    """The steps of one spec, each a function that makes an event of its arguments."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec

    def __getattr__(self, action: str) -> Callable[..., Event]:
        if action not in self._spec.parameters:
            raise AttributeError(action)
        names = self._spec.parameters[action]

        def step(**given: int) -> Event:
            if given.keys() != set(names):
                raise _others(action, names, given)
            return action, tuple(int(given[name]) for name in names)

        setattr(self, action, step)
        return step

    def each(self, action: str, **given: Sequence[int]) -> list[Event]:
        """Make many events of one step; `given`: of each argument the values for all of them."""
        names = self._spec.parameters[action]
        if given.keys() != set(names):
            raise _others(action, names, given)
        return [(action, args) for args in zip(*(given[name] for name in names), strict=True)]


def _others(action: str, names: Sequence[str], given: Iterable[str]) -> TypeError:
    return TypeError(f"{action} takes {', '.join(names)}; given: {', '.join(given)}")


STEPS: Mapping[str, EventMaker] = {name: EventMaker(spec) for name, spec in SPECS.items()}


def codes(spec: Spec, names: type[Names]) -> Names:
    """Return the codes of the actions that are the fields of a named tuple."""
    return names._make(spec.codes[name] for name in names._fields)


def rows(spec: Spec, names: type[Names]) -> Names:
    """Return the rows of the arguments that are the fields of a named tuple."""
    return names._make(spec.arguments.index(name) for name in names._fields)


@dataclass(frozen=True, eq=False)
class Events:
    """Events of one spec in columns. `args`: a row for each argument of the spec, of which each step has some."""

    spec: Spec
    action: npt.NDArray[np.int8]
    args: Ints

    @classmethod
    def room(cls, spec: Spec, count: int) -> Events:
        """Allocate room for so many events, all zeros."""
        return cls(spec, np.zeros(count, np.int8), np.zeros((len(spec.arguments), count), np.int64))

    @classmethod
    def of(cls, spec: Spec, events: Sequence[Event]) -> Events:
        """Convert these events to columns. Raises OverflowError for a value of more than 64 bits."""
        made = cls.room(spec, len(events))
        made.action[:] = [spec.codes[action] for action, _ in events]
        for action in {action for action, _ in events}:
            (places,) = np.nonzero(made.action == spec.codes[action])
            values = np.array([values for one, values in events if one == action], np.int64)
            for name, column in zip(spec.parameters[action], values.T, strict=True):
                made.column(name)[places] = column
        return made

    def column(self, argument: str) -> Ints:
        """Return one argument of all events, to be read or written."""
        column: Ints = self.args[self.spec.arguments.index(argument)]
        return column

    def at(self, number: int) -> Event:
        """Return one event."""
        action = list(self.spec.actions)[self.action[number]]
        return action, tuple(int(self.column(name)[number]) for name in self.spec.parameters[action])

    def put(self, number: int, event: Event) -> None:
        """Write one event."""
        action, values = event
        self.action[number] = self.spec.codes[action]
        for name, value in zip(self.spec.parameters[action], values, strict=True):
            self.column(name)[number] = value


def states(spec: Spec, count: int, **values: Ints | Sequence[int] | int) -> Ints:
    """Return initial states of traces for a kernel: the initial one of the spec, except for these values."""
    found = np.empty((len(spec.scalars), count), np.int64)
    for row, name in enumerate(spec.scalars):
        found[row] = values.get(name, int(getattr(spec.initial, name)))
    return found
