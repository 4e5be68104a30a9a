"""Z3's examples in small numbers: a state, a step, and its consequence, replayed by the plain functions.

An example is looked for within a window of keys, in which *for every number* is a finite list and Z3 has nothing to
guess; the smallest values come first. It is then a state like any other, and the plain functions have the last word
on it: whatever they do not confirm is not an example.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from functools import partial
from inspect import getdoc, signature
from itertools import product
from typing import Any, Literal, get_args, get_origin, get_type_hints

import immutables
import z3

from gapless.properties.proof import induction, symbolic
from gapless.properties.proof.induction import Obligation, Question, ask
from gapless.properties.proof.symbolic import State, Unknown, UnknownMap
from gapless.properties.proof.terms.boolean_terms import all_of, any_of, negated
from gapless.spec.catalog import Spec
from gapless.spec.language import Map, Refused, waived
from gapless.spec.reading.map_keys import element
from gapless.traces.replay.notation import (
    by_name,
    call_of,
    called,
    changes,
    changes_text,
    column,
    follows,
    of_field,
    values_text,
)
from gapless.traces.replay.provenance import broken_for

WINDOWS = (range(-1, 3), range(-1, 5), range(-1, 10), range(-2, 20))  # keys that an example may be about
VALUES = (1, 2, 4, 9, 20, 64, 2**32)  # how large its other numbers may be
SOON = 1_000_000  # Z3's own measure of work by which all that holds of our specs is proved
MARGIN = 3  # keys around the window that the plain functions are asked about too

Verdict = Literal["proved", "refuted", "unknown"]


@dataclass(frozen=True)
class Example:
    """A state that satisfies all invariants, steps from it, and the values (`free`) that break a property."""

    before: State
    args: Mapping[str, Any]
    after: State
    free: Mapping[str, int]


@dataclass(frozen=True)
class Run:
    """Steps from the initial state, and the example that follows them: a state, a step, a broken property."""

    steps: tuple[tuple[Callable[..., State], Mapping[str, int], State, State], ...]  # with the states around them
    example: Example


@dataclass(frozen=True)
class Result:
    """The verdict on an obligation: `work` in Z3's own measure, `ms` on this machine, maybe an example."""

    obligation: Obligation
    verdict: Verdict
    ms: float
    work: int
    example: Example | None = None
    why: str = ""  # where it is unknown


def settled(  # noqa: C901, PLR0911 - an answer a case
    obligation: Obligation, *, work: int = induction.WORK, seed: int = 0
) -> Result:
    """Prove the obligation, or find the example that speaks against it. What neither succeeds in is unknown."""
    if obligation.settled is not None:
        found: Result = obligation.settled(obligation, work=work, seed=seed)
        return found
    began = time.perf_counter()

    def result(verdict: Verdict, spent: int, example: Example | None = None, why: str = "") -> Result:
        return Result(obligation, verdict, 1000 * (time.perf_counter() - began), spent, example, why)

    if obligation.wanted == "sat":
        small, spent = smallest(obligation, work=work, seed=seed)
        if small:
            return result("proved", spent, small)
    spent, why, terms = 0, "", obligation.question().terms
    for allowed in dict.fromkeys((min(work, SOON), work)):  # examples are found sooner among small numbers
        answer = ask(terms, work=allowed, seed=seed)
        spent, why = spent + answer.work, answer.why
        if answer.verdict == "unsat" and obligation.wanted == "sat":
            return result("refuted", spent, why="there is no state in which all invariants hold and it is accepted")
        if answer.verdict == "unsat":
            return result("proved", spent)
        if obligation.otherwise and answer.verdict == "sat":
            return result("refuted", spent, why=obligation.otherwise)
        if obligation.wanted == "unsat" and allowed <= SOON:
            small, more = smallest(obligation, work=work, seed=seed)
            spent += more
            if small:
                return result("refuted", spent, small)
    return result("unknown", spent, why=why or "Z3's example has no version in small numbers")


def smallest(obligation: Obligation, *, work: int = induction.WORK, seed: int = 0) -> tuple[Example | None, int]:
    """The smallest example that the plain functions confirm, and the work it took to find."""
    spent = 0
    for window in WINDOWS:
        question = obligation.question(window)
        if question.before is None:  # it is about no state
            return None, spent
        for bound in VALUES:
            asked = (*question.terms, *small([obligation], [question], window, bound))
            for more in ((), _stored_keys_within(obligation.spec, question, window)):
                answer = ask((*asked, *more), work=work, seed=seed)
                spent += answer.work
                if answer.model is None:
                    break
                model = answer.model
                if obligation.wanted == "unsat":  # it will be shown
                    model = _plainest(obligation.spec, question, window, (*asked, *more), model)
                found = _decoded(obligation, question, model, window)
                if found:
                    return found, spent
    return None, spent


def refuted(
    obligations: Sequence[Obligation], window: range, bound: int, *, work: int = induction.WORK
) -> Result | None:
    """One of several obligations of a step with an example in small numbers, all asked at once."""
    began = time.perf_counter()
    questions = [obligation.question(window) for obligation in obligations]
    shared = sum(all(a is b for a in column) for b, *column in zip(*(q.terms for q in questions), strict=False))
    wrong = [all_of(*question.terms[shared:]) for question in questions]
    asked = (*questions[0].terms[:shared], *small(obligations, questions, window, bound), any_of(*wrong))
    for more in ((), _stored_keys_within(obligations[0].spec, questions[0], window)):
        answer = ask((*asked, *more), work=work)
        if answer.model is None and not more:
            return None
        if answer.model is None:
            break
        for obligation, question, case in zip(obligations, questions, wrong, strict=True):
            if z3.is_true(answer.model.eval(case, model_completion=True)):
                found = _decoded(obligation, question, answer.model, window)
                if found:
                    return Result(obligation, "refuted", 1000 * (time.perf_counter() - began), answer.work, found)
    if len(obligations) == 1:
        return None  # what was found is not confirmed; each alone may have an example that is
    return next(filter(None, (refuted([one], window, bound, work=work) for one in obligations)), None)


def small(obligations: Sequence[Obligation], questions: Sequence[Question], window: range, bound: int) -> list[Any]:
    """Limits for questions of some obligations: keys lie in the window, and numbers within the bound."""
    free = {name: value for question in questions for name, value in question.free.items()}
    found = [*_values_within(replace(questions[0], free=free), window, bound)]
    for obligation, question in zip(obligations, questions, strict=True):
        found += _keys_within(obligation, question, window)
    return found


def _plainest(spec: Spec, question: Question, window: range, asked: Sequence[Any], model: Any) -> Any:
    """A model in which as much as possible is initial: values that do not matter are not shown."""
    solver = z3.Solver()
    solver.set("rlimit", induction.WORK)
    solver.add(*asked)
    cells: list[tuple[Any, int]] = []
    for field in fields(question.before):
        value, plain = getattr(question.before, field.name), getattr(spec.initial, field.name)
        if isinstance(value, UnknownMap):
            cells += [(symbolic.number(value[key]), int(plain.default)) for key in symbolic.places(value, window)]
        else:
            cells.append((symbolic.number(value), int(plain)))
    given: list[UnknownMap] = [value for value in question.args.values() if isinstance(value, UnknownMap)]
    cells += [(symbolic.number(entries[key]), 0) for entries in given for key in symbolic.places(entries, window)]
    natural = [min(0, usual) <= cell for cell, usual in cells]
    for wish in (*natural, *(cell == usual for cell, usual in cells)):
        if solver.check(wish) == z3.sat:
            model = solver.model()
            solver.add(wish)
    return model


# -- small numbers -------------------------------------------------------------------------------------------------


def _keys(spec: Spec, of: Any) -> list[str]:
    """The fields of a state, or the parameters of a function, that have the type of a key."""
    return [name for name, hint in get_type_hints(of).items() if hint in spec.key_types]


def _keys_within(obligation: Obligation, question: Question, window: range) -> Iterator[Any]:
    """That all keys lie in the window, and the one behind each too."""
    spec = obligation.spec
    keys = [getattr(question.before, name) for name in _keys(spec, type(question.before))]
    for step in obligation.steps[:1]:
        keys += [question.args[name] for name in _keys(spec, step) if name in question.args]
    if obligation.holds:
        keys += [question.free[name] for name in _keys(spec, obligation.holds) if name in question.free]
    for key in keys:
        term = symbolic.number(key)
        yield window[0] <= term
        yield term < window[-1]


def _stored_keys_within(spec: Spec, question: Question, window: range) -> tuple[Any, ...]:
    """That a key which a Map holds lies in the window too, or is the Map's default.

    What Z3 chose of a key beyond the window is not decoded, so an example that rests on it is not confirmed.
    """
    hints = get_type_hints(type(question.before)).items()
    kept = [name for name, hint in hints if get_origin(hint) is Map and get_args(hint)[-1] in spec.key_types]
    return tuple(
        any_of(term == entries.default, all_of(window[0] <= term, term < window[-1]))
        for entries in (getattr(question.before, name) for name in kept)
        for term in (symbolic.number(entries[key]) for key in symbolic.places(entries, window))
    )


def _values_within(question: Question, window: range, bound: int) -> Iterator[Any]:
    """Limits: all numbers are small, and the values of Maps in the window, too."""
    values = [*question.args.values(), *question.free.values()]
    for field in fields(question.before):
        value = getattr(question.before, field.name)
        values.append(value)
    values += [one[key] for one in values if isinstance(one, UnknownMap) for key in symbolic.places(one, window)]
    for value in values:
        if not isinstance(value, UnknownMap):
            term = symbolic.number(value)
            yield -bound <= term
            yield term <= bound


def decoded_values(values: Mapping[str, Any], model: Any, window: range = range(0)) -> dict[str, Any]:
    """The values of some terms in a model, by name; those of a Map at the keys of the window."""
    return {
        name: _decoded_map(value, 0, model, window) if isinstance(value, UnknownMap) else _plain(value, model)
        for name, value in values.items()
    }


def _decoded_map(value: UnknownMap, default: int, model: Any, window: range) -> Map[Any, int]:
    """A Map in a model, at the keys of the window."""
    entries = {key: _plain(value[key], model) for key in symbolic.places(value, window)}
    return Map(default, immutables.Map({key: entry for key, entry in entries.items() if entry != default}))


def _plain(value: Any, model: Any) -> int:
    found = model.eval(value.term if isinstance(value, Unknown) else value, model_completion=True)
    return bool(z3.is_true(found)) if z3.is_bool(found) else int(found.as_long())


def confirmed_at(
    obligation: Obligation, question: Question, model: Any, window: range, before: State
) -> Example | None:
    """The example of a model, in a state that is known already, if the plain functions confirm it."""
    args, free = decoded_values(question.args, model, window), decoded_values(question.free, model)
    return _confirmed(obligation, before, args, free, window)


def _decoded(obligation: Obligation, question: Question, model: Any, window: range) -> Example | None:
    """The example that a model stands for, if the plain functions confirm it."""
    plain = partial(_plain, model=model)
    given: dict[str, Any] = {}
    for field in fields(question.before):
        value = getattr(question.before, field.name)
        if isinstance(value, UnknownMap):
            given[field.name] = _decoded_map(value, int(value.default or 0), model, window)
        else:
            given[field.name] = _of_kind(getattr(obligation.spec.initial, field.name), plain(value))
    return confirmed_at(obligation, question, model, window, type(question.before)(**given))


def _of_kind(like: Any, value: int) -> int:
    """The value with its name, where values of its kind have names."""
    return type(like)(value) if isinstance(like, IntEnum) and value in set(type(like)) else value


def _so(holds: Callable[..., bool], *args: Any) -> bool:
    """True if a property holds; with a refused step in it, it is false, as Z3 reads it."""
    try:
        return holds(*args)
    except Refused:
        return False


def _confirmed(
    obligation: Obligation, before: State, args: dict[str, int], free: dict[str, int], window: range
) -> Example | None:
    """The example, if the plain functions say so too."""
    if not obligation.begins and not _is_good(obligation, before, window):
        return None
    after = before
    for step in obligation.steps:
        if not _tried(obligation.spec, step, before, args):
            return None
        token = waived.set(frozenset({obligation.dropped[1]}) if obligation.dropped else frozenset())
        try:
            after = step(before, *args.values())
        except Refused:
            return None
        finally:
            waived.reset(token)
    if obligation.holds and _so(obligation.holds, *(before, after)[2 - obligation.states :], *free.values()):
        return None
    if obligation.confirms and not obligation.confirms(before, {**args, **free}, after):
        return None
    return Example(before, args, after, free)


def _is_good(obligation: Obligation, state: State, window: range) -> bool:
    """True if all invariants hold: when called, around the window, and in Z3's reading, for every number."""
    of = induction.theory(obligation.spec, obligation.weak, None)
    if not all(_holds_around(invariant, state, window) for invariant in of.invariants):
        return False
    known = symbolic.symbolic(state)
    with symbolic.read(of.reading):
        every = [of.reading.everywhere(invariant, known) for invariant in of.invariants]
    return ask((negated(all_of(*every)),)).verdict == "unsat"


def _holds_around(invariant: Callable[..., Any], state: State, window: range) -> bool:
    around = range(window[0] - MARGIN, window[-1] + MARGIN)
    return all(invariant(state, *values) for values in product(around, repeat=len(signature(invariant).parameters) - 1))


def _tried(spec: Spec, step: Callable[..., State], state: State, args: Mapping[str, int]) -> bool:
    """True if the step is tried here: an action always, a deviation where its action refuses."""
    for deviation in spec.deviations:
        if deviation.step is step:
            try:
                deviation.instead_of(state, *args.values())
            except Refused:
                return True
            return False
    return True


# -- shown ---------------------------------------------------------------------------------------------------------


def story(result: Result, run: Run | None = None) -> list[str]:
    """The example as lines, in the notation of all stories: from the beginning, where a run is known to lead there."""
    obligation, example = result.obligation, run.example if run else result.example
    assert example is not None  # noqa: S101 - only a found example is shown
    last = [(step, example.args, example.before, example.after) for step in obligation.steps]
    taken = [*(run.steps if run else ()), *last]
    calls = [
        (call_of(step.__name__, _arguments(step, args)), changes_text(changes(before, after)))
        for step, args, before, after in taken
    ]
    width = column(calls)
    lines = [_title(obligation), ""]
    if run:
        lines += ["  From the beginning:"]
    elif not obligation.begins:
        lines += [f"  In a state with {_state(obligation.spec, example.before)}, which may not be reachable,"]
    lines += [f"  {n}. {call:<{width}}   {effect}" for n, (call, effect) in enumerate(calls, 1)]
    return [*lines, *([""] if lines[-1] else []), *_broken(obligation, example)]


def _title(obligation: Obligation) -> str:
    name, sentence = obligation.spec.name, obligation.invariant.replace("_", " ")
    if obligation.title:
        return f"{name}: {obligation.title}."
    if obligation.step == induction.INITIAL:
        return f'{name}: the initial state breaks the property "{sentence}".'
    if obligation.step == induction.ALWAYS:
        return f'{name}: some states break the property "{sentence}".'
    return f'{name}: {obligation.step} breaks the property "{sentence}".'


def _broken(obligation: Obligation, example: Example) -> Iterator[str]:
    """The broken property, with its values."""
    if obligation.holds is not None:
        at = values_text(example.free)
        yield f"Broken: {obligation.invariant.replace('_', ' ')}{f', for {at}' if at else ''}."
        states = (example.before, example.after)[2 - obligation.states :]
        if here := values_text(broken_for(obligation.holds, states, example.free)):
            yield f"Here: {here}."
        yield follows(getdoc(obligation.holds) or "")
    elif obligation.confirms:
        yield f"{obligation.confirms(example.before, {**example.args, **example.free}, example.after)}."


def _arguments(step: Callable[..., State], args: Mapping[str, Any]) -> dict[str, int | str]:
    kinds = signature(step).parameters
    numbers = {name: value for name, value in args.items() if not isinstance(value, Map)}  # its effect shows a Map
    return {name: by_name(kinds[name].annotation, int(value)) for name, value in numbers.items()}


def _state(spec: Spec, state: State) -> str:
    """The differences of a state from the initial one."""
    values: dict[str, int | str] = {}
    for field in fields(state):
        value, plain = getattr(state, field.name), getattr(spec.initial, field.name)
        if isinstance(value, Map):
            entries = sorted(value.entries.items())
            values |= {element(field.name, key): of_field(state, field.name, entry) for key, entry in entries}
        elif value != plain:
            values[field.name] = called(value)
    return values_text(values) or "nothing in it yet"
