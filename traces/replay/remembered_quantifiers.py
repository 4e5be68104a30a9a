"""Exact replay of *every number between* in the time of what changed since it was true before.

The plain function is asked, for every number, on the state itself. But it is not asked twice for the same: what it says
of a number can only change with the values that it read, and these are noted. So a coordinator that is loaded again and
again is not asked about every transaction that ever was, each time.

Maps note which keys were written, in a chain that each step continues. What was true is noted in the chain, so that
every state that came of that one knows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import cache
from types import CellType, CodeType, FunctionType
from typing import Any

import immutables

from gapless.spec import language
from gapless.spec.catalog import Spec, State, made_of
from gapless.spec.language import Map, Reader, reader, replace
from gapless.spec.reading.map_keys import key_counts
from gapless.spec.reading.quantification import counterexample


class MapWrite:
    """A write to a Map, and those before it; the first is none. `true`: by its code, what was true of every number."""

    __slots__ = ("before", "key", "true")

    def __init__(self, key: int = 0, before: MapWrite | None = None) -> None:
        self.key, self.before = key, before
        self.true: dict[CodeType, Truth] | None = None


NOT_NOTED = MapWrite()
"""In place of the writes to a Map about which no question is asked."""


class Truth:
    """A fact about every number from `low` to `high`: the Maps that it is about, and the numbers of the state."""

    def __init__(self, low: int, high: int, maps: set[str], numbers: dict[str, int]) -> None:
        self.low, self.high, self.maps, self.numbers = low, high, maps, numbers


class NotingMap(Map[int, int]):
    """A Map that notes which keys are written. `digest`: of all elements; those of other Maps have mostly others."""

    __slots__ = ("digest", "last")

    last: MapWrite
    digest: int

    def __init__(self, default: int, entries: immutables.Map[int, int], last: MapWrite, digest: int) -> None:
        super().__init__(default, entries)
        object.__setattr__(self, "last", last)
        object.__setattr__(self, "digest", digest)

    def set(self, key: int, value: int) -> NotingMap:
        """The same Map, but for the value at `key`."""
        digest = self.digest ^ self._of(key, self[key]) ^ self._of(key, value)
        last = MapWrite(key, self.last) if self.last is not NOT_NOTED else self.last
        return NotingMap(self.default, super().set(key, value).entries, last, digest)

    def cleared(self) -> NotingMap:
        """The Map that holds its default everywhere."""
        return self.forget_from(min(self.entries)) if self.entries else self

    def forget_from(self, low: int) -> NotingMap:
        """The Map that holds its default from `low` on."""
        last, digest = self.last, self.digest
        for key, value in self.entries.items():
            if key >= low:
                digest ^= self._of(key, value)
                last = MapWrite(key, last) if last is not NOT_NOTED else last
        return NotingMap(self.default, super().forget_from(low).entries, last, digest)

    def _of(self, key: int, value: int) -> int:
        return 0 if value == self.default else hash((key, value))

    def since(self, code: CodeType) -> tuple[frozenset[int], Truth | None]:
        """Return the keys that were written since something was true, and what; None if it never was."""
        keys, link = list[int](), self.last
        while link.true is None or code not in link.true:
            if link.before is None:
                return frozenset(), None
            keys.append(link.key)
            link = link.before
        return frozenset(keys), link.true[code]

    def note(self, code: CodeType, truth: Truth | None, *, alone: bool) -> None:
        """Note what is true of this Map, if anything is; forget the writes before if no other question is asked."""
        if truth is not None:
            self.last.true = {**(self.last.true or {}), code: truth}
        if alone:
            self.last.before = None


class RememberingReader(Reader):
    """Reads *every number between* of states with such Maps; all other words as if there were no reader.

    `maps`: by the code of a question, the Maps that it was ever about.
    """

    def __init__(self) -> None:
        self.maps: dict[CodeType, set[str]] = {}

    def all_between(self, low: int, high: int, holds: Callable[[int], bool]) -> bool:
        """`holds(n)` for every `n` with `low <= n < high`."""
        asked = _RangeQuestion(holds, self.maps)
        if asked.state is None or low >= high:
            return all(holds(n) for n in range(low, high))
        return asked.is_true(low, high)

    def count_between(self, low: int, high: int, holds: Callable[[int], bool]) -> int:
        """The number of those `n` with `low <= n < high` for which `holds(n)`: nothing is remembered of it."""
        return sum(1 for n in range(low, high) if holds(n))

    def for_every_number(self, holds: Callable[..., Any], state: State) -> bool:
        """True if `holds(state, …)` for all values of the parameters behind the state."""
        return counterexample(holds, state) is None

    def accepts(self, step: Callable[..., State], *args: Any) -> Any:
        """True if `step(*args)` is accepted."""
        return _without_a_reader(language.accepts, step, *args)

    def filled(self, *args: Any) -> Any:
        """The map of `value(n)` for every `n` with `low <= n < high`, and of `default`."""
        return _without_a_reader(language.filled, *args)

    def in_turn(self, *args: Any) -> Any:
        """`step(…, n)` for every `n` with `low <= n < high`, one after the other, from `stands(low)` on."""
        return _without_a_reader(language.in_turn, *args)

    def lifted(self, state: State) -> State:
        """A state of numbers as it is."""
        return state


def _without_a_reader(word: Callable[..., Any], *args: Any) -> Any:
    with reading(None):
        return word(*args)


@contextmanager
def reading(some: Reader | None) -> Iterator[None]:
    """Let a reader read the words of specs within the context, if there is one."""
    token = reader.set(some)
    try:
        yield
    finally:
        reader.reset(token)


class _RangeQuestion:
    """A question about every number, of one state. `state`: None where it is not about one, and numbers alone."""

    def __init__(self, holds: Callable[[int], bool], about: dict[CodeType, set[str]]) -> None:
        self.holds, self.about = holds, about
        self.state: State = None
        self.reads: set[tuple[str, Any]] = set()  # the elements that were read since they were looked at
        self.numbers: dict[str, int] = {}  # all else that was read
        if not isinstance(holds, FunctionType):
            return
        cells, found = [], []
        for name, cell in zip(holds.__code__.co_freevars, holds.__closure__ or (), strict=True):
            if isinstance(cell.cell_contents, int):
                self.numbers[GIVEN + name] = cell.cell_contents
                cells.append(cell)
            else:
                found.append(cell.cell_contents)
                cells.append(CellType(_NotedState(cell.cell_contents, self)))
        if len(found) == 1 and _notes(found[0]):
            self.state, self.code = found[0], holds.__code__
            self.noted = FunctionType(self.code, holds.__globals__, "noted", holds.__defaults__, tuple(cells))

    def is_true(self, low: int, high: int) -> bool:
        """True of every number between; it is asked of those for which it may have changed."""
        known, changed = self._known()
        maps, numbers = set(self.about.get(self.code, ())), known.numbers if known else {}
        begin, end = (known.low, known.high) if known else (high, high)
        maybe = (n for n in changed if begin <= n < end and low <= n < high)
        for n in (*maybe, *range(low, min(begin, high)), *range(max(end, low), high)):
            self.reads.clear()
            if not self.noted(n):
                return False
            maps |= {name for name, _ in self.reads}
            if any(key != n for _, key in self.reads):  # it may change with what is written elsewhere
                return all(map(self.holds, range(low, high)))
        truth = Truth(low, high, maps, {**numbers, **self.numbers})
        self.about.setdefault(self.code, set()).update(maps)
        for one in fields(self.state):
            kept = getattr(self.state, one.name)
            if isinstance(kept, NotingMap):
                kept.note(self.code, truth if one.name in maps else None, alone=len(self.about) == 1)
        return True

    def _known(self) -> tuple[Truth | None, set[int]]:
        """The fact that is still known, if there is one, and the numbers about which it says nothing any more."""
        changed, found = set[int](), dict[str, Truth | None]()
        first = None
        for name in self.about.get(self.code, ()):
            keys, truth = getattr(self.state, name).since(self.code)
            found[name] = truth
            if truth is not None:
                first = first or truth
                changed |= keys if name in truth.maps else frozenset()
        if first is None or any(found.get(name) is not first for name in first.maps):
            return None, set()
        now = {
            name: self.numbers[name] if name.startswith(GIVEN) else getattr(self.state, name) for name in first.numbers
        }
        return (first, changed) if now == first.numbers else (None, set())


GIVEN = "given: "  # begins the names of numbers that are no fields of the state


def _notes(state: object) -> bool:
    """True if the Maps of a state note their writes."""
    slots = getattr(type(state), "__slots__", ())
    return any(isinstance(getattr(state, name), NotingMap) for name in slots)


class _NotedState:
    """A state that notes what is read of it."""

    def __init__(self, state: State, asked: _RangeQuestion) -> None:
        self._state, self._asked = state, asked

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._state, name)
        if isinstance(value, Map):
            return _NotedMap(name, value, self._asked)
        self._asked.numbers[name] = value
        return value


class _NotedMap:
    """A Map that notes which of its elements are read."""

    def __init__(self, name: str, kept: Map[Any, int], asked: _RangeQuestion) -> None:
        self._name, self._kept, self._asked = name, kept, asked

    def __getitem__(self, key: Any) -> int:
        self._asked.reads.add((self._name, key))
        return self._kept[key]


@cache
def quantifies(spec: Spec) -> bool:
    """True if a step of a spec asks about every number between two."""
    every = {function for step in spec.steps for function in made_of(step)}
    return any("all_between" in function.__code__.co_names for function in every if isinstance(function, FunctionType))


def noting(spec: Spec) -> State:
    """Return the initial state of a spec, with Maps that note their writes, if its steps quantify."""
    counts = key_counts(type(spec.initial))
    maps = {
        name: _noting(getattr(spec.initial, name), asked=quantifies(spec)) for name in spec.maps if counts[name] == 1
    }
    return replace(spec.initial, **maps) if maps else spec.initial


def _noting(kept: Map[int, int], *, asked: bool) -> NotingMap:
    found = NotingMap(kept.default, immutables.Map(), MapWrite() if asked else NOT_NOTED, 0)
    for key, value in kept.entries.items():
        found = found.set(key, value)
    return found


def digests(state: State, maps: Iterable[str]) -> tuple[int, ...]:
    """Return what tells most states apart that differ in these Maps, in no time."""
    return tuple(getattr(getattr(state, name), "digest", 0) for name in maps)
