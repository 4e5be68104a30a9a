"""Z3's reading of a spec: its functions are run on values that are known only as terms.

A number is an `Unknown`, a `Map` an `UnknownMap`; every truth test forks the run (`spec/forking.py`). So a step
becomes its paths: what must be so for each, and the state or the refusal at its end. A predicate becomes one formula.
Nothing of a spec is written a second time, and nothing is assumed of a state but what the invariants say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property, reduce
from inspect import signature
from itertools import product
from operator import attrgetter
from typing import Any, get_args, get_origin

import z3

from gapless.properties.proof.terms.boolean_terms import FALSE, TRUE, all_of, any_of, either, negated
from gapless.properties.proof.terms.counts import counted
from gapless.properties.proof.terms.unknowns import Unknown, UnknownMap, any_array, empty_array, number, truth
from gapless.spec import forking
from gapless.spec.language import ELSEWHERE, Map, Reader, Refused, greatest, reader
from gapless.spec.reading.map_keys import key_count, key_counts, numbers_of

__all__ = ["Unknown", "UnknownMap", "number", "truth"]
"""The names of other modules that belong to this one; its own are all that stand here."""

State = Any
"""A frozen dataclass; each spec has its own."""

FEW = 24  # numbers that are counted one by one
PRUNING = 20_000  # Z3's own measure of work that one question may cost while paths are looked for


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

    def count_between(self, low: Any, high: Any, holds: Callable[[Any], Any]) -> Unknown:
        """Read `count_between` of the spec language: few numbers are counted one by one, others by the laws."""
        first, last = (z3.simplify(number(end)) for end in (low, high))
        if z3.is_int_value(first) and z3.is_int_value(last) and last.as_long() - first.as_long() <= FEW:
            return Unknown(_sum(formula(holds, n) for n in range(first.as_long(), last.as_long())))
        if self.window is not None:
            return Unknown(_sum(all_of(first <= n, n < last, formula(holds, n)) for n in self.window))
        with _bound() as n:
            return Unknown(counted(z3.Lambda([n], formula(holds, Unknown(n))), number(low), number(high)))

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

        def run(n: Any, *keys: Any) -> Unknown:
            return Unknown(same_at(step(stands(n), n), stands(n + 1), *keys))

        with _bound() as n, _bound() as key, _bound() as other:
            pairs = 2 in key_counts(type(stands(low))).values()
            bound = [Unknown(n), Unknown(key), *([Unknown(other)] if pairs else [])]
            between = self._every(bound, lambda n, *keys: _within(low, n, high, lambda n: run(n, *keys)))
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


def _sum(truths: Iterable[Any]) -> Any:
    """The number of some truth values that are true."""
    return z3.Sum([z3.IntVal(0), *(z3.If(one, z3.IntVal(1), z3.IntVal(0)) for one in truths)])


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
    counts = key_counts(type(initial))
    for field in fields(initial):
        value = getattr(initial, field.name)
        if isinstance(value, Map) and not isinstance(value.default, int):
            raise TypeError(f"{type(initial).__qualname__}.{field.name} is a Map of {value.default!r}: write numbers")
        found[field.name] = (
            UnknownMap(int(value.default), any_array(tag + field.name, counts[field.name]), counts[field.name])
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
        keys = key_count(kind)
        if get_args(kind)[-1] is not bool:
            return UnknownMap(None, any_array(name, keys), keys)
        bound = [z3.Int(f"k!{n}") for n in range(keys)]
        term = number(reduce(z3.Select, bound, any_array(name, keys, z3.BoolSort())))
        return UnknownMap(None, reduce(lambda inner, key: z3.Lambda([key], inner), reversed(bound), term), keys)
    return Unknown((z3.Bool if kind in (bool, "bool") else z3.Int)(name))


def symbolic(state: State) -> State:
    """A concrete state as terms, for functions that expect maps of terms."""
    found: dict[str, Any] = {}
    counts = key_counts(type(state))
    for field in fields(state):
        value = getattr(state, field.name)
        if isinstance(value, Map):
            keys = counts[field.name]
            entries = UnknownMap(int(value.default), empty_array(number(value.default), keys), keys)
            for key, entry in sorted(value.entries.items()):
                entries = entries.set(*numbers_of(key), entry)
            found[field.name] = entries
        else:
            found[field.name] = Unknown(number(value))
    return type(state)(**found)


def at_every_key(function: Callable[..., Any], keys: int) -> Any:
    """The array of a function's values at every key, or every two."""
    with _bound() as first:
        if keys == 1:
            return z3.Lambda([first], term(function, Unknown(first)))
        with _bound() as second:
            inner = z3.Lambda([second], term(function, Unknown(first), Unknown(second)))
        return z3.Lambda([first], inner)


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
    """That two states are equal, their Maps at some keys; those of two keys at all pairs of them.

    Two states are equal at all keys if they are at two that are unknown: see `unknown_keys`.
    """
    parts = []
    for field in fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, UnknownMap):
            parts += [truth(a[key] == b[key]) for key in places(a, keys)]
        else:
            parts.append(truth(a == b))
    return all_of(*parts)


def places(entries: UnknownMap, keys: Iterable[Any]) -> Iterator[Any]:
    """Some keys, or all pairs of them where a Map has two."""
    return iter(keys) if entries.keys == 1 else product(keys, repeat=2)


def unknown_keys(state: State, tag: str = "") -> tuple[Unknown, ...]:
    """Unknown keys, as many as a Map of a state has at most: what is true at these is true everywhere."""
    return tuple(
        Unknown(z3.Int(f"a key{tag}{'!' * n}")) for n in range(max(key_counts(type(state)).values(), default=1))
    )


def same_state(one: State, other: State) -> Any:
    """That two states are equal, field by field."""
    assert is_dataclass(one)  # noqa: S101 - for the type checker
    pairs = [(getattr(one, field.name), getattr(other, field.name)) for field in fields(one)]
    parts = [a.term == b.term if isinstance(a, UnknownMap) else truth(a == b) for a, b in pairs if a is not b]
    return all_of(*parts)
