"""Z3's reading of a spec: its functions are run on values that are known only as terms.

A number is an `Unknown`, a `Map` an `UnknownMap`; every truth test forks the run (`spec/forking.py`). So a step
becomes its paths: what must be so for each, and the state or the refusal at its end. A predicate becomes one formula.
Nothing of a spec is written a second time, and nothing is assumed of a state but what the invariants say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property, lru_cache
from inspect import signature
from itertools import product
from operator import attrgetter
from typing import Any, TypeVar, get_args, get_origin

import z3

from gapless.properties.proof.boolean_terms import FALSE, TRUE, all_of, any_of, either, negated
from gapless.spec import forking
from gapless.spec.language import ELSEWHERE, Map, Reader, Refused, greatest, reader

State = Any
"""A frozen dataclass; each spec has its own."""

PRUNING = 20_000  # Z3's own measure of work that one question may cost while paths are looked for


class Unknown:
    """A number or a truth value that is known only as a Z3 term.

    A function is run once for each way through it, and every run begins like others. So what was `made` of a value is
    kept with it, by the operator and the other operand: what is written again is the same value, not a new term.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, term: Any) -> None:
        self.term = term
        self.made: dict[tuple[Any, ...], tuple[Any, Any]] = {}

    @cached_property
    def number(self) -> Any:
        """The value as an integer term; truth is 1 or 0, as in events."""
        return z3.If(self.term, z3.IntVal(1), z3.IntVal(0)) if z3.is_bool(self.term) else self.term

    @cached_property
    def truth(self) -> Any:
        """The value as a boolean term; all but 0 is true."""
        return self.term if z3.is_bool(self.term) else self.term != 0

    @cached_property
    def untruth(self) -> Any:
        """That it is not so."""
        return negated(self.truth)

    @cached_property
    def key(self) -> int:
        """The key of the value as a question: Z3 has each term once, as long as it is referenced."""
        return int(self.truth.get_id())

    @cached_property
    def plain(self) -> bool | None:
        """The answer, where it answers itself."""
        found = z3.simplify(self.truth)
        return bool(z3.is_true(found)) if z3.is_true(found) or z3.is_false(found) else None

    def __bool__(self) -> bool:
        return forking.decide(self)

    def __neg__(self) -> Unknown:
        return Unknown(-self.number)

    def __repr__(self) -> str:
        return f"Unknown({self.term})"


T = TypeVar("T")


def _once(made: dict[tuple[Any, ...], tuple[Any, Any]], how: str, other: Any, make: Callable[[], T]) -> T:
    """A value made of two others. Both are kept with it: an object's id is its own while it lives."""
    key = (how, other) if other.__class__ is int else (how, "of", id(other))
    found = made.get(key)
    if found is None:
        found = made[key] = make(), other
    return found[0]


def number(value: Any) -> Any:
    """The value as an integer term; truth is 1 or 0, as in events."""
    if isinstance(value, Unknown):
        return value.number
    return Unknown(value).number if z3.is_expr(value) else _literal(int(value))


def truth(value: Any) -> Any:
    """The value as a boolean term; what is not 0 is true."""
    if isinstance(value, Unknown):
        return value.truth
    if z3.is_expr(value):
        return Unknown(value).truth
    return TRUE if value else FALSE


@lru_cache(maxsize=1024)
def _literal(value: int) -> Any:
    return z3.IntVal(value)


def _overloaded(name: str) -> Callable[[Any, Any], Unknown]:
    def operator(a: Unknown, b: Any) -> Unknown:
        return _once(a.made, name, b, lambda: Unknown(getattr(a.number, name)(number(b))))

    return operator


for _name in ("add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Unknown, f"__{_name}__", _overloaded(f"__{_name}__"))
for _name in ("add", "sub", "mul"):
    setattr(Unknown, f"__r{_name}__", _overloaded(f"__r{_name}__"))


def _divided(name: str) -> Callable[[Any, Any], Unknown]:
    def by(dividend: Any, divisor: Any) -> Unknown:
        if isinstance(divisor, int) and divisor > 0:
            return Unknown(getattr(number(dividend), name)(number(divisor)))
        return _by_an_unknown(divisor, dividend)

    return by


def _by_an_unknown(_divisor: Any, _dividend: Any) -> Unknown:
    raise TypeError("divide by a positive constant: by other numbers, Python and Z3 do not round alike")


for _name, _z3 in (("floordiv", "div"), ("mod", "mod")):
    setattr(Unknown, f"__{_name}__", _divided(f"__{_z3}__"))
    setattr(Unknown, f"__r{_name}__", _by_an_unknown)


class UnknownMap:
    """A `Map` that is known only as a Z3 array from integers to integers; what was made of it is kept, too."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, default: int | None, term: Any) -> None:
        self.default = default
        self.term = term
        self.made: dict[tuple[Any, ...], tuple[Any, Any]] = {}

    def __eq__(self, _other: object) -> bool:
        raise TypeError("compare Maps key by key: an invariant speaks of all keys by a parameter")

    def __getitem__(self, key: Any) -> Unknown:
        return _once(self.made, "at", key, lambda: Unknown(z3.Select(self.term, number(key))))

    def set(self, key: Any, value: Any) -> UnknownMap:
        """The Map with an entry, as `Map.set`."""
        made: dict[tuple[Any, ...], tuple[Any, Any]] = _once(self.made, "set", key, dict)
        return _once(made, "to", value, lambda: self._of(z3.Store(self.term, number(key), number(value))))

    def cleared(self) -> UnknownMap:
        """The Map without its entries, as `Map.cleared`."""
        self._require_default()
        return _once(self.made, "cleared", None, lambda: self._of(z3.K(z3.IntSort(), number(self.default))))

    def forget_from(self, low: Any) -> UnknownMap:
        """The Map without keys from a number on, as `Map.forget_from`."""
        self._require_default()
        return _once(self.made, "forget from", low, lambda: self._of(self._kept(number(low))))

    def _kept(self, low: Any) -> Any:
        key = z3.Int("k!forgotten")  # bound at once, so that a second call makes the same term
        return z3.Lambda([key], z3.If(key < low, z3.Select(self.term, key), number(self.default)))

    def _require_default(self) -> None:
        if self.default is None:
            raise TypeError("a Map that makes an initial state is neither cleared nor forgotten: set what differs")

    def _of(self, term: Any) -> UnknownMap:
        return UnknownMap(self.default, term)


_depth: ContextVar[int] = ContextVar("depth", default=0)


@contextmanager
def _bound() -> Iterator[Any]:
    """A number that is about to be bound: named after its depth, so that a second question is the same."""
    depth = _depth.get()
    token = _depth.set(depth + 1)
    try:
        yield z3.Int(f"n!{depth}")
    finally:
        _depth.reset(token)


@dataclass(frozen=True)
class Quantification(Reader):
    """Z3's reading of *for every number*: as it stands, or, with a `window`, for every number of that window.

    The window serves the search for examples, where numbers are small anyway: there is no quantifier left, so that
    Z3 finds one or says that there is none.
    """

    window: range | None = None

    def all_between(self, low: Any, high: Any, holds: Callable[[Any], Any]) -> Unknown:
        """Read `all_between` of the spec language."""
        with _bound() as n:
            return Unknown(self._every([Unknown(n)], lambda n: _within(low, n, high, holds)))

    def for_every_number(self, holds: Callable[..., Any], state: State) -> Unknown:
        """The same for all values of the parameters behind the state."""
        return Unknown(self.everywhere(holds, state))

    def accepts(self, step: Callable[..., Any], *args: Any) -> Unknown:
        """Read `accepts` of the spec language."""
        tree = forking.decision_tree(step, *args, known=_asked_before, key=_as_a_term)
        return Unknown(_folded(tree, lambda _state: TRUE))  # whatever state it leads to

    def filled(self, default: Any, low: Any, high: Any, value: Callable[[Any], Any]) -> UnknownMap:
        """Read `filled` of the spec language."""
        with _bound() as key:
            inside = all_of(number(low) <= key, key < number(high))
            return UnknownMap(int(default), z3.Lambda([key], z3.If(inside, term(value, Unknown(key)), number(default))))

    def in_turn(
        self, low: Any, high: Any, stands: Callable[[Any], State], step: Callable[[State, Any], State]
    ) -> State:
        """Read `fold` of the spec language, by induction: any one step leads where the next one begins."""

        def run(n: Any, key: Any) -> Unknown:
            return Unknown(same_at(step(stands(n), n), stands(n + 1), key))

        with _bound() as n, _bound() as key:
            between = self._every(
                [Unknown(n), Unknown(key)], lambda n, key: _within(low, n, high, lambda n: run(n, key))
            )
        if not Unknown(between):
            raise ELSEWHERE
        return stands(greatest(low, high))

    def lifted(self, state: State) -> State:
        """Read a word of the spec language."""
        return symbolic(state)

    def everywhere(self, predicate: Callable[..., Any], *states: State) -> Any:
        """`predicate` of the states, for all values of the parameters behind them."""
        free = unknown_arguments(predicate, len(states), tag="every ")
        return self._every(list(free.values()), lambda *values: formula(predicate, *states, *values))

    def _every(self, names: list[Unknown], body: Callable[..., Any]) -> Any:
        if not names:
            return body()
        if self.window is None:
            return z3.ForAll([name.term for name in names], body(*names))
        cases = product(map(Unknown, map(z3.IntVal, self.window)), repeat=len(names))
        return all_of(*(body(*some) for some in cases))


def _within(low: Any, n: Unknown, high: Any, holds: Callable[[Any], Any]) -> Any:
    return z3.Implies(all_of(number(low) <= n.term, n.term < number(high)), formula(holds, n))


@contextmanager
def read(by: Quantification) -> Iterator[None]:
    """Within, the words of the spec language are read that way."""
    token = reader.set(by)
    try:
        yield
    finally:
        reader.reset(token)


# -- what is unknown -----------------------------------------------------------------------------------------------


def unknown_state(initial: State, tag: str = "") -> State:
    """A state of which nothing is known, of the kind that `initial` is; its terms are called after its fields."""
    found: dict[str, Any] = {}
    for field in fields(initial):
        value = getattr(initial, field.name)
        if isinstance(value, Map) and not isinstance(value.default, int):
            raise TypeError(f"{type(initial).__qualname__}.{field.name} is a Map of {value.default!r}: write numbers")
        found[field.name] = (
            UnknownMap(int(value.default), z3.Array(tag + field.name, z3.IntSort(), z3.IntSort()))
            if isinstance(value, Map)
            else Unknown((z3.Bool if isinstance(value, bool) else z3.Int)(tag + field.name))
        )
    return type(initial)(**found)


def unknown_arguments(step: Callable[..., Any], after: int = 1, tag: str = "its ") -> dict[str, Any]:
    """Arguments of which nothing is known, by name; the first `after` parameters, states, are left out."""
    parameters = list(signature(step).parameters.values())[after:]
    return {p.name: _unknown_argument(p.annotation, tag + p.name) for p in parameters}


def _unknown_argument(kind: Any, name: str) -> Any:
    """An argument of which nothing is known. Of a Map that makes an initial state, not even the default is."""
    if get_origin(kind) is Map:
        if get_args(kind)[-1] is not bool:
            return UnknownMap(None, z3.Array(name, z3.IntSort(), z3.IntSort()))
        flags, key = z3.Array(name, z3.IntSort(), z3.BoolSort()), z3.Int("k!flag")
        return UnknownMap(None, z3.Lambda([key], number(z3.Select(flags, key))))
    return Unknown((z3.Bool if kind in (bool, "bool") else z3.Int)(name))


def symbolic(state: State) -> State:
    """A concrete state as terms, for functions that expect maps of terms."""
    found: dict[str, Any] = {}
    for field in fields(state):
        value = getattr(state, field.name)
        if isinstance(value, Map):
            term = z3.K(z3.IntSort(), number(value.default))
            for key, entry in sorted(value.entries.items()):
                term = z3.Store(term, number(key), number(entry))
            found[field.name] = UnknownMap(int(value.default), term)
        else:
            found[field.name] = Unknown(number(value))
    return type(state)(**found)


# -- predicates ----------------------------------------------------------------------------------------------------


def _asked_before(path: forking.Path, question: Unknown) -> bool | None:
    """The answer where the question answers itself, or was asked before."""
    return path.asked_before(question) if question.plain is None else question.plain


_as_a_term = attrgetter("key")  # two questions are one if they are the same term: `==` of terms is a term


def formula(predicate: Callable[..., Any], *args: Any) -> Any:
    """`predicate(*args)` as one boolean term: its tree of questions, folded."""
    return _folded(forking.decision_tree(predicate, *args, known=_asked_before, key=_as_a_term))


def term(function: Callable[..., Any], *args: Any) -> Any:
    """`function(*args)`, a number, as one integer term."""
    return _folded(forking.decision_tree(function, *args, known=_asked_before, key=_as_a_term), number)


def _folded(tree: Any, leaf: Callable[[Any], Any] = truth) -> Any:
    if isinstance(tree, forking.Leaf):
        if isinstance(tree.outcome, Refused):
            return FALSE  # a step that is refused is false
        return leaf(tree.outcome)
    return _chosen(tree.question, _folded(tree.yes, leaf), _folded(tree.no, leaf))


def _chosen(question: Unknown, yes: Any, no: Any) -> Any:
    """`yes` or `no` as the question is answered, without needless cases.

    Z3's own `simplify` will not do: it orders terms by when they were made, so that a second question differs.
    """
    if yes.eq(no):
        return yes
    if yes.eq(TRUE):
        return question.truth if no.eq(FALSE) else any_of(question.truth, no)
    if yes.eq(FALSE):
        return question.untruth if no.eq(TRUE) else all_of(question.untruth, no)
    if no.eq(TRUE):
        return any_of(question.untruth, yes)
    if no.eq(FALSE):
        return all_of(question.truth, yes)
    return either(question.truth, yes, no) if z3.is_bool(yes) else z3.If(question.truth, yes, no)


# -- steps ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """One way through a step: what must be so for it, and the state or the refusal at its end."""

    facts: tuple[Any, ...]
    outcome: State | Refused

    @cached_property
    def walked(self) -> Any:
        """That it is walked, as one term: many obligations speak of it."""
        return all_of(*self.facts)

    @property
    def accepted(self) -> bool:
        """True if the step is taken."""
        return not isinstance(self.outcome, Refused)


class Pruner:
    """Finds the questions whose answer follows from what is given and those before: impossible paths are not walked.

    Paths are walked side by side: the common part of the last and the next is given to the solver once.
    """

    def __init__(self, given: Sequence[Any] = ()) -> None:
        self.solver = z3.Solver()
        self.solver.set("rlimit", PRUNING)
        self.solver.add(*given)
        self.asserted: list[Any] = []  # the facts of a path, each on a level of its own

    def __call__(self, path: forking.Path, question: Unknown) -> bool | None:
        """The answer, where there is only one."""
        answer = _asked_before(path, question)
        if answer is not None:
            return answer
        self._tell(facts_of(path))
        for possible in (True, False):
            if self.solver.check(question.truth if possible else question.untruth) == z3.unsat:
                return not possible
        return None

    def _tell(self, facts: Sequence[Any]) -> None:
        """Have the solver know these facts, and no others."""
        pairs = enumerate(zip(self.asserted, facts, strict=False))
        common = next((n for n, (old, new) in pairs if old is not new), min(len(self.asserted), len(facts)))
        self.solver.pop(len(self.asserted) - common)
        del self.asserted[common:]
        for fact in facts[common:]:
            self.solver.push()
            self.solver.add(fact)
            self.asserted.append(fact)


def facts_of(path: forking.Path) -> tuple[Any, ...]:
    """The conditions of a path: every answer, also those that follow from others."""
    return tuple(turn.question.truth if turn.answer else turn.question.untruth for turn in path.turns)


def walked(function: Callable[..., Any], *args: Any, given: Sequence[Any] = ()) -> list[tuple[tuple[Any, ...], Any]]:
    """Every way through a function, as what must be so for it and what it comes to, a refusal being one."""
    paths = forking.runs(function, *args, known=Pruner(given), key=_as_a_term)
    return [(facts_of(path), outcome) for path, outcome in paths]


def uncovered(found: Sequence[Sequence[Any]]) -> Any:
    """That none of several ways is walked, or two are: each is given by what must be so for it."""
    before, twice = FALSE, []  # no way is walked before the first
    for walked_here in (all_of(*facts) for facts in found):
        twice.append(all_of(walked_here, before))
        before = any_of(before, walked_here)
    return any_of(negated(before), *twice)


def ways(step: Callable[..., State], state: State, args: Sequence[Any] | Mapping[str, Any]) -> list[Way]:
    """Every way through `step`, refusals included; together they cover all inputs, none twice."""
    values = tuple(args.values()) if isinstance(args, Mapping) else tuple(args)
    return [Way(facts, outcome) for facts, outcome in walked(step, state, *values)]


def taken(found: Sequence[Way]) -> Any:
    """That one of the ways is taken on which the step is accepted."""
    return any_of(*(way.walked for way in found if way.accepted))


def same_at(one: State, other: State, *keys: Any) -> Any:
    """That two states are equal, their Maps at some keys."""
    parts = []
    for field in fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, UnknownMap):
            parts += [truth(a[key] == b[key]) for key in keys]
        else:
            parts.append(truth(a == b))
    return all_of(*parts)


def same_state(one: State, other: State) -> Any:
    """That two states are equal, field by field."""
    assert is_dataclass(one)  # noqa: S101 - for the type checker
    pairs = [(getattr(one, field.name), getattr(other, field.name)) for field in fields(one)]
    parts = [a.term == b.term if isinstance(a, UnknownMap) else truth(a == b) for a, b in pairs if a is not b]
    return all_of(*parts)
