"""The few words every spec is written in.

A spec file imports this module and nothing else of ours. Its functions are read five ways (called, called next to
an implementation, proved, compiled, shown as a story), so a word that plain Python cannot overload, such as
*every number between two bounds*, asks the reader that is at work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, NewType, TypeVar, TypeVarTuple, overload

import immutables

__all__ = [
    "Bound",
    "Claim",
    "Deviation",
    "Helpful",
    "Map",
    "Number",
    "Position",
    "Refines",
    "Refused",
    "Takeover",
    "accepts",
    "all_between",
    "applies",
    "assume",
    "count_between",
    "every_map",
    "filled",
    "greatest",
    "implies",
    "in_turn",
    "replace",
    "require",
    "seen_as",
    "some_between",
]

Position = NewType("Position", int)
"""A byte offset in the commit log, counted from the log's birth. Ends are exclusive."""

Number = NewType("Number", int)
"""The index of a message in its queue (RocketMQ: queueOffset). Ends are exclusive."""

K = TypeVar("K")
B = TypeVar("B")
Keys = TypeVarTuple("Keys")
V = TypeVar("V")
S = TypeVar("S")


class Refused(Exception):  # noqa: N818 - a refusal is an outcome to compare, not an error.
    """The step may not be taken here.

    `rule` is the id, within its spec, of the rule that is not met, or `APPLIES` or `ASSUMED`, which are no rules.
    `because` says what is needed, `otherwise` what goes wrong in a broker that takes the step anyway.
    """

    def __init__(self, rule: str, because: str, otherwise: str) -> None:
        self.rule = rule  # exploration refuses more often than it does anything else: as little here as can be
        self.because = because
        self.otherwise = otherwise

    def __str__(self) -> str:
        return self.because


APPLIES = "step-applies-here"
ASSUMED = "environment-keeps-its-promise"

ELSEWHERE = Refused(
    APPLIES, "each step leads to where the next one begins", "a wrong state is shown between them"
)

waived: ContextVar[frozenset[str]] = ContextVar("waived", default=frozenset())
"""The ids of suspended rules of the spec at work: `require` lets them pass."""


def require(condition: bool, rule: str, *, because: str, otherwise: str) -> None:
    """Refuse the step unless `condition` holds: a rule, which is what the broker owes, and what a trace can break.

    `rule` is its id within the spec. It never changes, whatever becomes of the sentences, and may stand in several
    steps. `because` states the need positively ("the number was given"); a report prints it as *write breaks the
    rule "the number was given"*. `otherwise` says what goes wrong without it. Raises `Refused`.
    """
    if condition is True:
        return  # what is met is met for every reader: neither a term nor a piece of source is `True` itself
    if rule in waived.get():
        return  # asked before the condition is, so that a reader that forks does not fork here
    if not condition:
        raise Refused(rule, because, otherwise)


def applies(condition: bool) -> None:
    """Refuse the step unless it is for this case: no rule, for elsewhere another step is the one to take.

    So a deviation says what it is made for. Raises `Refused`.
    """
    require(condition, APPLIES, because="the step applies here", otherwise="the trace tells of what cannot be")


def assume(condition: bool, *, because: str) -> None:
    """Refuse the step unless the environment (disk, clock, client) grants `condition`; no broker owes it.

    Proofs build on it, and list it. A trace in which it is false breaks no rule: from there on nothing is
    promised, so what follows is inconclusive. What a broker could itself cause is not assumed, but required: a disk
    that loses flushed bytes, and a broker that never flushed them, look alike in a trace. Raises `Refused`.
    """
    require(condition, ASSUMED, because=because, otherwise="the broker promises nothing")


if TYPE_CHECKING:
    from dataclasses import replace  # type checkers know this one, and check changes by the state's fields
else:

    def replace(s: Any, **changes: Any) -> Any:
        """The same state but for `changes`: what `dataclasses.replace` makes, in half the time."""
        kind = type(s)
        read, write, write_named = _slots(kind)
        after = object.__new__(kind)
        for put, value in zip(write, read(s), strict=False):
            put(after, value)
        for name, value in changes.items():
            write_named[name](after, value)
        return after


@cache
def _slots(kind: type) -> tuple[Callable[..., Any], tuple[Callable[..., None], ...], dict[str, Callable[..., None]]]:
    """The fields of a state: how to read all, in order, and how to write each by name."""
    names = [f.name for f in fields(kind)]
    write = {name: getattr(kind, name).__set__ for name in names}
    read = attrgetter(*names) if len(names) > 1 else lambda s: (getattr(s, names[0]),)
    return read, tuple(write.values()), write


def implies(premise: bool, conclusion: bool) -> bool:
    """True if `premise` is false or `conclusion` is true."""
    return not premise or conclusion


def greatest(a: int, b: int) -> int:
    """The greater of two numbers."""
    return a if a >= b else b


class Reader:
    """A reader of specs that calls no function on numbers, and so reads some words its own way.

    A reader of steps alone meets no word for properties, nor one for refinements: it refuses them, by TypeError.
    """

    def all_between(self, low: Any, high: Any, holds: Callable[[Any], Any]) -> Any:
        """`holds(n)` for every `n` with `low <= n < high`."""
        raise NotImplementedError

    def count_between(self, low: Any, high: Any, holds: Callable[[Any], Any]) -> Any:
        """The number of those `n` with `low <= n < high` for which `holds(n)`."""
        raise NotImplementedError

    def for_every_number(self, holds: Callable[..., Any], state: Any) -> Any:
        """True if `holds(state, …)` for all values of the parameters behind the state."""
        raise NotImplementedError

    def accepts(self, step: Callable[..., Any], *_args: Any) -> Any:
        """True if `step(*args)` is accepted."""
        raise TypeError(f"a step cannot ask whether {step.__name__} is accepted: write `require(…)` of the state")

    def filled(self, _default: Any, _low: Any, _high: Any, _value: Callable[[Any], Any]) -> Any:
        """The map of `value(n)` for every `n` with `low <= n < high`, and of `default`."""
        raise TypeError("a step fills no Map: write `set`, one key at a time")

    def in_turn(self, _low: Any, _high: Any, _stands: Callable[[Any], Any], _step: Callable[..., Any]) -> Any:
        """`step(…, n)` for every `n` with `low <= n < high`, one after the other, from `stands(low)` on."""
        raise TypeError("a step takes no other steps in turn: write the next state, `replace(s, …)`")

    def lifted(self, _state: Any) -> Any:
        """A state of numbers as one of what the reader reads."""
        raise TypeError("a step stands for no other spec's state: write `replace`")


reader: ContextVar[Reader | None] = ContextVar("reader", default=None)


def all_between(low: int, high: int, holds: Callable[[int], bool]) -> bool:
    """True if `holds(n)` for every `n` with `low <= n < high`."""
    at_work = reader.get()
    if at_work is not None:
        return at_work.all_between(low, high, holds)  # type: ignore[no-any-return]
    return all(holds(n) for n in range(low, high))


def some_between(low: int, high: int, holds: Callable[[int], bool]) -> bool:
    """True if `holds(n)` for some `n` with `low <= n < high`."""
    return not all_between(low, high, lambda n: not holds(n))


def count_between(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The number of those `n` with `low <= n < high` for which `holds(n)` is true."""
    at_work = reader.get()
    if at_work is not None:
        return at_work.count_between(low, high, holds)  # type: ignore[no-any-return]
    return sum(1 for n in range(low, high) if holds(n))


def accepts(step: Callable[..., Any], *args: Any) -> bool:
    """True if `step(*args)`, the state first, is accepted: TLA+'s ENABLED. A word for properties, not for steps."""
    at_work = reader.get()
    if at_work is not None:
        return at_work.accepts(step, *args)  # type: ignore[no-any-return]
    try:
        step(*args)
    except Refused:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Map(Generic[*Keys, V]):
    """A total map of one key or two: every key has a value, and all but finitely many have `default`."""

    default: V
    entries: immutables.Map[Any, V] = immutables.Map()  # two keys are a tuple

    @overload
    def __getitem__(self: Map[K, V], key: K) -> V: ...
    @overload
    def __getitem__(self: Map[K, B, V], key: tuple[K, B]) -> V: ...
    def __getitem__(self, key: Any) -> V:
        """The value at `key`."""
        return self.entries.get(key, self.default)

    def set(self, *place: *tuple[*Keys, V]) -> Map[*Keys, V]:
        """The same map, but for the value at a key, or at two: `set(key, value)`, `set(first, second, value)`."""
        value: Any = place[-1]
        key: Any = place[0] if len(place) == 2 else place[:-1]
        if value != self.default:
            return Map(self.default, self.entries.set(key, value))
        return Map(self.default, self.entries.delete(key)) if key in self.entries else self

    def cleared(self) -> Map[*Keys, V]:
        """The map that holds its default everywhere."""
        return Map(self.default)

    def forget_from(self: Map[K, V], low: K) -> Map[K, V]:
        """The map that holds its default from `low` on; one of a single key."""
        return Map(self.default, immutables.Map({key: value for key, value in self.entries.items() if key < low}))


def filled(default: V, low: int, high: int, value: Callable[[int], V]) -> Map[Any, V]:
    """The map of `value(n)` for every `n` with `low <= n < high`, and of `default`. A word for refinements."""
    at_work = reader.get()
    if at_work is not None:
        return at_work.filled(default, low, high, value)  # type: ignore[no-any-return]
    entries = {n: value(n) for n in range(low, high)}
    return Map(default, immutables.Map({n: entry for n, entry in entries.items() if entry != default}))


def in_turn(low: int, high: int, stands: Callable[[int], S], step: Callable[[S, int], S]) -> S:
    """Run `step(…, n)` for every `n` with `low <= n < high`, one after the other, from `stands(low)`.

    `stands(n)` says where it stands once all before `n` are taken. If a step leads elsewhere, `Refused` is raised: so a
    reader that cannot count up to `high` shows it of any one step, by induction. A word for refinements.
    """
    at_work = reader.get()
    if at_work is not None:
        return at_work.in_turn(low, high, stands, step)  # type: ignore[no-any-return]
    s = stands(low)
    for n in range(low, high):
        s = step(s, n)
        if s != stands(n + 1):
            raise ELSEWHERE
    return s


def seen_as(initial: S, **found: Any) -> S:
    """The state of another spec that a state stands for: its initial one, but for what is found. For refinements."""
    at_work = reader.get()
    begins: S = initial if at_work is None else at_work.lifted(initial)
    return replace(begins, **found)  # type: ignore[type-var] # every state is a dataclass


@dataclass(frozen=True, slots=True)
class Deviation(Generic[S]):
    """A step that the design forbids and a named real broker takes.

    `step` takes the arguments of the action it stands in for and is tried only where that refuses. A profile in
    `profiles` counts it as an anomaly; any other refuses it as the action did. `seen` cites who does it, and where.
    `amount`: the field of the state that says how much, where that matters.
    """

    step: Callable[..., S]
    instead_of: Callable[..., S]
    profiles: frozenset[str]
    seen: str
    amount: str = ""


@dataclass(frozen=True, slots=True)
class Takeover(Generic[S]):
    """A continuation behind a broken rule: the model takes over the broker's claim, without a check.

    `step` takes the arguments of the action that was refused for `rule`, the id of a rule within the spec. The refusal
    is a departure all the same. In the state that `step` makes, nothing that came before is a reason to refuse what
    comes later: whatever is refused from there on is a departure in its own right.
    """

    step: Callable[..., S]
    instead_of: Callable[..., S]
    rule: str


@dataclass(frozen=True, slots=True)
class Bound:
    """The limits within which a spec is explored. No proof uses them.

    `says`: the bound in words · `within(s)`: whether steps are taken from a state; one beyond is judged, and not left ·
    `numbers`: what each argument is tried with, by its name (`number`) or with its step (`append.size`), which takes
    precedence; a function of earlier arguments, by their names, says it for each of their values · `worth`: of a step,
    which of its arguments are tried together.
    """

    says: str
    within: Callable[[Any], bool]
    numbers: Mapping[str, Sequence[Any] | Callable[..., Sequence[Any]]]
    worth: Mapping[str, Callable[[Any], bool]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Helpful:
    """A step that brings nearer what a claim waits for. Its functions take the state, and the claim's number.

    `when`: it is the one to take · `args`: of its arguments, those that are not the claim's number of the same name.
    """

    step: Callable[..., Any]
    when: Callable[..., bool]
    args: Mapping[str, Callable[..., int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Claim:
    """Liveness: whenever something is `pending`, it is `done` in the end, however the steps are interleaved.

    `otherwise`: what goes wrong without it · `done`, `pending` (always, if none is given): of the state, and of one
    number, for each of which it is claimed · `fair`: the steps of which each call that stays possible is taken in the
    end (weak fairness), with the reason for each · `disturbances`: the steps that come to an end, as a crash does,
    with the reason for each · `rank`: how far it is from being done, never below 0 · `helpful`: the steps that lower
    the rank; no other step, but for disturbances, raises it. Rank and helpful steps are for a proof.
    """

    sentence: str
    otherwise: str
    done: Callable[..., bool]
    pending: Callable[..., bool] | None = None
    fair: Mapping[Callable[..., Any], str] = field(default_factory=dict)
    disturbances: Mapping[Callable[..., Any], str] = field(default_factory=dict)
    rank: Callable[..., int] | None = None
    helpful: tuple[Helpful, ...] = ()

    @property
    def functions(self) -> tuple[Callable[..., bool], ...]:
        """Its functions that decide whether a state is pending or done."""
        return tuple(function for function in (self.pending, self.done) if function is not None)

    @property
    def assumes(self) -> tuple[str, ...]:
        """Its assumptions: each fair step is taken in the end, and disturbances come to an end."""
        fair = (f"{step.__name__} is taken in the end: {reason}" for step, reason in self.fair.items())
        ends = (f"{step.__name__} comes to an end: {reason}" for step, reason in self.disturbances.items())
        return (*fair, *ends)


@dataclass(frozen=True, slots=True)
class Refines:
    """Refinement: every step here is a step of another spec, which says less, or changes nothing there.

    `spec`: its file, next to this one, or one of ours by name · `steps`: the names of the steps, one or several, of
    which each step here may be one; a step that is not listed changes nothing there · `sees`: functions of the state,
    and for a Map of a key, that give those fields which this spec has not under the same name · `args`: functions of
    the state, and of arguments of the step by their names, that give `"step.argument"` where no argument has its name.
    """

    spec: str
    steps: Mapping[Callable[..., Any], str | tuple[str, ...]]
    sees: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    args: Mapping[str, Callable[..., int]] = field(default_factory=dict)


def every_map(keys: Sequence[int], values: Sequence[V], default: V) -> Sequence[Map[Any, V]]:
    """Every Map that has one of the values at each of the keys, and `default` elsewhere. A word for bounds."""
    found: list[Map[Any, V]] = [Map(default)]
    for key in keys:
        found = [entries.set(key, value) for entries in found for value in values]
    return found
