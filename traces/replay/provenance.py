"""Values that remember where they were read: a story then names the numbers that an unmet need looked at.

One more reading of a spec's functions: they are called on real values, each of which carries the arguments, fields and
map elements that it comes from. The last question that a step asks before it refuses is the unmet need; for a
quantifier, it is the answer to its first counterexample.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from inspect import signature
from typing import Any, Literal, NamedTuple

from gapless.spec.catalog import State
from gapless.spec.language import Map, Reader, Refused, reader
from gapless.spec.reading.map_keys import element, numbers_of
from gapless.spec.reading.quantification import counterexample
from gapless.spec.reading.trees.map_effects import Effect, Window
from gapless.spec.reading.trees.terms import SIGNS
from gapless.traces.replay.notation import FOR, of_field


class Read(NamedTuple):
    """One value that was read.

    `of`: its kind; `bound` is the variable of a quantifier · `key`: of a Map's element · `counterexample`: it was read
    where a quantifier fails · `when`: in which of two states, if there are two.
    """

    of: Literal["argument", "field", "bound"]
    name: str
    key: Any
    value: int
    counterexample: bool = False
    when: str = ""

    @property
    def label(self) -> str:
        """The name, if no argument can be confused with a field."""
        place = self.name if self.key is None else element(self.name, self.key)
        return f"{FOR if self.of == 'bound' else ''}{place}{self.when}"


Reads = tuple[Read, ...]


class ProvenanceReader(Reader):
    """Records the reads of each question while a spec's function runs, and evaluates quantifiers."""

    def __init__(self) -> None:
        self.last: Reads = ()  # what the last question looked at
        self.every: dict[Read, None] = {}  # what all questions looked at, in order

    def ask(self, question: ProvenanceValue) -> bool:
        """Answer the question, and note what it reads."""
        self.last = question.reads
        self.every |= dict.fromkeys(question.reads)
        return bool(question.value)

    def all_between(self, low: Any, high: Any, holds: Callable[[Any], Any]) -> ProvenanceValue:
        """Evaluate `holds(n)` for every `n` between; if one fails, note the reads at the first that does."""
        bounds, outside = reads_of(low, high), self.every
        for n in range(plain(low), plain(high)):
            self.last, self.every = (), {}
            if not holds(n):
                self.every = outside
                return ProvenanceValue(0, united(_counterexample(holds, n, self.last), bounds), self)
        self.every = outside
        return ProvenanceValue(1, bounds, self)

    def count_between(self, low: Any, high: Any, holds: Callable[[Any], Any]) -> ProvenanceValue:
        """Count the `n` between for which `holds(n)`; noted are the reads at those."""
        outside, found, reads = self.every, 0, [reads_of(low, high)]
        for n in range(plain(low), plain(high)):
            self.last, self.every = (), {}
            if holds(n):
                found += 1
                reads.append(self.last)
        self.every = outside
        return ProvenanceValue(found, united(*reads), self)

    def for_every_number(self, holds: Callable[..., Any], state: State) -> ProvenanceValue:
        """True if a property holds for all numbers; if not, with all that it reads at the first for which it does not.

        All of it: a premise explains why the conclusion is needed. The numbers are named even if a key shows them.
        """
        found = counterexample(holds, _unwatched(state))
        if found is None:
            return ProvenanceValue(1, (), self)
        outside, self.last, self.every = self.every, (), {}
        bool(holds(state, *found.values()))
        numbers = (Read("bound", name, None, n, counterexample=True) for name, n in found.items())
        reads, self.every = united(numbers, (read._replace(counterexample=True) for read in self.every)), outside
        return ProvenanceValue(0, reads, self)

    def accepts(self, step: Callable[..., State], *args: Any) -> bool:
        """Return True if the step may be taken; the reads of its needs are noted."""
        try:
            step(*args)
        except Refused:
            return False
        return True

    def state(self, state: State, when: str = "") -> State:
        """Return the same state with recorded reads; `when` tells two states of one field apart."""
        found: dict[str, Any] = {}
        for f in fields(state):
            value = getattr(state, f.name)
            if isinstance(value, Map):
                found[f.name] = ProvenanceMap(value, f.name, self, when)
            else:
                found[f.name] = ProvenanceValue(value, (Read("field", f.name, None, int(value), when=when),), self)
        return type(state)(**found)

    def arguments(self, args: Mapping[str, int]) -> list[ProvenanceValue]:
        """Return arguments with recorded reads."""
        return [
            ProvenanceValue(value, (Read("argument", name, None, int(value)),), self) for name, value in args.items()
        ]


def _unwatched(state: State) -> State:
    """The state that was watched, as it was."""
    found = {f.name: getattr(state, f.name) for f in fields(state)}
    return type(state)(
        **{name: value.kept if isinstance(value, ProvenanceMap) else plain(value) for name, value in found.items()}
    )


def _counterexample(holds: Callable[[Any], Any], n: int, reads: Reads) -> Iterator[Read]:
    """Yield the reads for this `n`, and `n` itself unless a key already shows it."""
    if all(read.key is None or n not in numbers_of(read.key) for read in reads):
        yield Read("bound", next(iter(signature(holds).parameters)), None, n, counterexample=True)
    yield from (read._replace(counterexample=True) for read in reads)


def united(*reads: Iterable[Read]) -> Reads:
    """Combine reads, each once; those at a counterexample first."""
    every = dict.fromkeys(read for some in reads for read in some)
    return tuple(read for read in every if read.counterexample or read._replace(counterexample=True) not in every)


class ProvenanceValue:
    """A value, and the reads that it comes from."""

    __slots__ = ("reads", "value", "watch")

    def __init__(self, value: int, reads: Reads, watch: ProvenanceReader) -> None:
        self.value = value
        self.reads = reads
        self.watch = watch

    def __bool__(self) -> bool:
        return self.watch.ask(self)

    def __neg__(self) -> ProvenanceValue:
        return ProvenanceValue(-self.value, self.reads, self.watch)

    def __index__(self) -> int:
        return int(self.value)

    def __hash__(self) -> int:
        return hash(self.value)


def plain(value: Any) -> Any:
    """Return the value alone."""
    return value.value if isinstance(value, ProvenanceValue) else value


def reads_of(*values: Any) -> Reads:
    """Return the reads that the values come from."""
    return united(*(value.reads for value in values if isinstance(value, ProvenanceValue)))


def _overloaded(name: str) -> Iterator[Callable[[ProvenanceValue, Any], ProvenanceValue]]:
    apply = getattr(operator, name)
    yield lambda a, b: ProvenanceValue(apply(plain(a), plain(b)), reads_of(a, b), a.watch)
    yield lambda a, b: ProvenanceValue(apply(plain(b), plain(a)), reads_of(b, a), a.watch)


for _name in SIGNS.values():
    _forward, _reflected = _overloaded(_name)
    setattr(ProvenanceValue, f"__{_name}__", _forward)
    if hasattr(operator, f"i{_name}"):
        setattr(ProvenanceValue, f"__r{_name}__", _reflected)


class ProvenanceMap(Window):
    """A Map whose elements record their reads; a step's writes keep those of the written values."""

    def __init__(
        self, kept: Map[Any, int], field: str, watch: ProvenanceReader, when: str, *, empty: bool = False,
        effects: tuple[Effect, ...] = (),
    ) -> None:  # fmt: skip
        super().__init__(field, kept.default, empty=empty, effects=effects)
        self.kept = kept
        self.watch = watch
        self.when = when

    def there(self, key: Any) -> ProvenanceValue:
        """Return the element of the state."""
        pair = isinstance(key, tuple)
        place = tuple(map(int, map(plain, key))) if pair else int(plain(key))
        value = self.kept[place]
        read = Read("field", self.field, place, int(value), when=self.when)
        return ProvenanceValue(value, united(reads_of(*(key if pair else (key,))), (read,)), self.watch)

    def like(self, *, empty: bool, effects: tuple[Effect, ...]) -> ProvenanceMap:
        """Return the same Map with other effects."""
        return ProvenanceMap(self.kept, self.field, self.watch, self.when, empty=empty, effects=effects)


def _watching(watch: ProvenanceReader, function: Callable[..., Any], *args: Any) -> Any:
    token = reader.set(watch)
    try:
        return function(*args)
    finally:
        reader.reset(token)


def refused_for(step: Callable[..., State], state: State, args: Mapping[str, int]) -> Reads:
    """Return the reads of the step's first unmet need."""
    watch = ProvenanceReader()
    try:
        _watching(watch, step, watch.state(state), *watch.arguments(args))
    except Refused:
        return watch.last
    return ()


def allowed_for(step: Callable[..., State], state: State, args: Mapping[str, int]) -> Reads:
    """Return the reads of all needs of a step that may be taken."""
    watch = ProvenanceReader()
    _watching(watch, step, watch.state(state), *watch.arguments(args))
    return tuple(watch.every)


def broken_for(holds: Callable[..., Any], states: Sequence[State], free: Mapping[str, int]) -> dict[str, int | str]:
    """Return the values that a broken property reads, by name: in one state, or before and after a step."""
    watch, when = ProvenanceReader(), ("",) if len(states) == 1 else (" before", "")
    seen = [watch.state(state, name) for state, name in zip(states, when, strict=True)]
    if _watching(watch, holds, *seen, *free.values()):
        return {}
    last = states[-1]
    return {r.label: of_field(last, r.name, r.value) if r.of == "field" else r.value for r in watch.last}
