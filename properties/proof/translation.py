"""Translation validation: the generated kernel, read by Z3, is the spec.

A kernel is source that the compiler wrote (`traces/replay/kernels.py`). Here that very source is run, for one event, on
values that are not known, and held against the plain function run on the same: both accept or both refuse, for the same
reason, and the states that they lead to are equal, from any state and with any arguments.

What numba adds, integers of 64 bits, is met by a second proof: nothing that the source computes reaches 2⁶³, as long as
what goes in lies within the kernel's bound; and what a step makes lies within it again, or the kernel gives up and
hands the trace to exact replay. Windows are taken to be wide enough, for beyond them kernels give up as well.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from math import prod
from typing import Any

import z3

from gapless.properties.proof import symbolic
from gapless.properties.proof.induction import LOST, Obligation, Question, Theory
from gapless.properties.proof.symbolic import State, Unknown, UnknownMap, number, truth
from gapless.properties.proof.terms import TRUE, all_of, any_of, negated
from gapless.spec.catalog import Spec
from gapless.spec.language import Deviation, Refused
from gapless.traces.replay.kernel_source import LIMIT
from gapless.traces.replay.kernels import EXACT, Kernel, kernel, run_by_python

SENTENCE = "the_kernel_is_the_spec"
COVERED = "the ways through the kernel cover every input, and no two overlap"
WORD = 2**63


@dataclass(frozen=True)
class TranslatedStep:
    """An action, alone or with one of the deviations that may stand in for it."""

    action: str
    deviation: Deviation[Any] | None = None

    @property
    def name(self) -> str:
        """As it stands in the ledger."""
        return self.deviation.step.__name__ if self.deviation else self.action


def steps(spec: Spec) -> Iterator[TranslatedStep]:
    """Every action alone, and with each of its deviations."""
    for action in spec.actions:
        yield TranslatedStep(action)
    for deviation in spec.deviations:
        yield TranslatedStep(deviation.instead_of.__name__, deviation)


class _Windows:
    """The Maps, as the kernel sees them: columns, beginning as `maps`, and all keys inside."""

    def __init__(self, maps: list[UnknownMap]) -> None:
        self.maps = maps
        self.begun = len(maps)  # the kernel empties every column before the first event: here they begin full

    def __setitem__(self, place: tuple[slice, int], value: int) -> None:
        if self.begun:
            self.begun -= 1
        else:
            self.maps[place[1]] = self.maps[place[1]].cleared()


class _Columns:
    """An array of one row, as far as a kernel looks: by (row, 0)."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __getitem__(self, place: tuple[int, int]) -> Any:
        return self.values[place[0]]

    def __setitem__(self, place: tuple[int, int], value: Any) -> None:
        self.values[place[0]] = value


class _Compiled:
    """A kernel's source, made to run on terms."""

    def __init__(self, of: Kernel) -> None:
        self.of = of
        self.names = run_by_python(of.source)
        self.names |= {"at": self._at, "put": self._put, "forget": self._forget}
        for name, parameters, body in HOLDS.findall(of.source):
            self.names[name] = self._quantifier(name, parameters, body)

    @staticmethod
    def _at(windows: _Windows, place: Any, _width: int, column: int, _default: int) -> Unknown:
        return windows.maps[column][place]

    @staticmethod
    def _put(windows: _Windows, place: Any, _width: int, column: int, _default: int, value: Any, _escape: Any) -> None:
        windows.maps[column] = windows.maps[column].set(place, value)

    @staticmethod
    def _forget(windows: _Windows, place: Any, _width: int, column: int, _default: int) -> None:
        windows.maps[column] = windows.maps[column].forget_from(place)

    def _quantifier(self, name: str, parameters: str, body: str) -> Callable[..., Unknown]:
        """The loop over numbers as a quantifier over the same body."""
        text = f"def {name}(n, {parameters}):\n{textwrap.indent(textwrap.dedent(body), '    ')}    return True\n"
        exec(compile(text, name, "exec"), self.names)  # noqa: S102 - the compiler's own text
        holds = self.names[name]
        return lambda low, high, *rest: symbolic.Reading().all_between(low, high, lambda n: holds(n, *rest))

    def run(
        self, step: TranslatedStep, state: State, args: dict[str, Unknown]
    ) -> Callable[[], tuple[int, dict[str, Any]]]:
        """One event, as a function of nothing: why it was refused, and the state afterwards."""
        spec = self.of.spec
        code = spec.codes[step.action]
        allowed = [deviation is step.deviation for deviation in spec.deviations]
        before = [Unknown(number(getattr(state, name))) for name in spec.scalars]
        given = [Unknown(number(args.get(name, 0))) for name in spec.arguments]

        def once() -> tuple[int, dict[str, Any]]:
            scalars = _Columns([*before])
            windows = _Windows([getattr(state, name) for name in spec.maps])
            columns = _Columns([*given])
            why, counts = [0], [0] * (len(allowed) + 1)
            self.names["replay"](
                [0, 1], [code], columns, scalars, [0] * len(before), [0], [1], windows, allowed,
                [0], why, [0] * len(spec.actions), counts, list(counts), [0], [0], [0], [], [False], [0], [], [],
            )  # fmt: skip
            values = dict(zip(spec.scalars, scalars.values, strict=True))
            return why[0], values | dict(zip(spec.maps, windows.maps, strict=True))

        return once


HOLDS = re.compile(
    r"^def (holds_\d+)\(low, high, (.*?)\):\n.*?    for n in range\(low, high\):\n(.*?)    return True\n",
    re.MULTILINE | re.DOTALL,
)


@cache
def _compiled(of: Kernel) -> _Compiled:
    return _Compiled(of)


def within(theory: Theory, args: dict[str, Unknown]) -> list[Any]:
    """That all that goes in lies within the kernel's bound."""
    values = [*(getattr(theory.before, name) for name in theory.spec.scalars), *args.values()]
    return [all_of(-LIMIT < number(value), number(value) < LIMIT) for value in values]


@lru_cache(maxsize=2)  # both questions about a step ask for them, one after the other
def runs(of: Kernel, step: TranslatedStep, theory: Theory) -> list[tuple[tuple[Any, ...], int, dict[str, Any]]]:
    """Every way through the kernel with one event: what must be so, why it is refused, the state."""
    args, _ = theory.ways(of.spec.actions[step.action])
    once = _compiled(of).run(step, theory.before, args)
    return [(facts, *_of(outcome)) for facts, outcome in symbolic.walked(once, given=within(theory, args))]


def _of(outcome: Any) -> tuple[int, dict[str, Any]]:
    assert not isinstance(outcome, Refused)  # noqa: S101 - a kernel refuses by a number
    return outcome  # type: ignore[no-any-return]


def expected(spec: Spec, step: TranslatedStep, theory: Theory) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every way through the plain functions: a deviation is tried where its action refuses."""
    for way in theory.ways(spec.actions[step.action])[1]:
        if way.accepted or step.deviation is None:
            yield way.facts, way.outcome
            continue
        for other in theory.ways(step.deviation.step)[1]:
            yield (*way.facts, *other.facts), other.outcome if other.accepted else way.outcome


def obligations(spec: Spec) -> Iterator[Obligation]:
    """That one event of every action is read by the kernel as by the spec."""
    for step in steps(spec):
        yield Obligation(spec, SENTENCE, step.name, partial(differs, step=step, of=None))
        yield Obligation(spec, COVERED, step.name, partial(uncovered, step=step, of=None), otherwise=LOST)


def differs(theory: Theory, step: TranslatedStep, of: Kernel | None = None) -> Question:
    """A state and arguments with which the kernel does otherwise than the spec, and does not give up."""
    of = of or kernel(theory.spec)
    args, _ = theory.ways(of.spec.actions[step.action])
    plain = [(_answers(facts), all_of(*facts), outcome) for facts, outcome in expected(of.spec, step, theory)]
    cases = []
    for facts, why, state in runs(of, step, theory):
        otherwise, ours = {(question, not answer) for question, answer in _answers(facts)}, all_of(*facts)
        for others, theirs, outcome in plain if why != EXACT else ():
            if others.isdisjoint(otherwise):
                same = _same(of, why, state, outcome)
                cases += [] if same.eq(TRUE) else [all_of(ours, theirs, negated(same))]
    return Question((*within(theory, args), any_of(*cases)), theory.before, args)


def uncovered(theory: Theory, step: TranslatedStep, of: Kernel | None = None) -> Question:
    """A state and arguments for which no way through the kernel is walked, or two are."""
    of = of or kernel(theory.spec)
    args, _ = theory.ways(of.spec.actions[step.action])
    ways = [facts for facts, _, _ in runs(of, step, theory)]
    return Question((*within(theory, args), symbolic.uncovered(ways)), args=args)


def _answers(facts: Sequence[Any]) -> frozenset[tuple[int, bool]]:
    """The questions, by Z3's number, and their answers: two ways that answer one otherwise have no case in common."""
    return frozenset(
        (fact.children()[0].get_id(), False) if z3.is_not(fact) else (fact.get_id(), True) for fact in facts
    )


def _same(of: Kernel, why: int, state: dict[str, Any], outcome: Any) -> Any:
    """That the kernel's answer is that of the plain function."""
    if why == 0 and not isinstance(outcome, Refused):
        return symbolic.same_state(type(of.spec.initial)(**state), outcome)
    refused = why > 0 and isinstance(outcome, Refused)
    return truth(refused and of.reasons[why - 1].rule == f"{of.spec.name}/{outcome.rule}")


# -- 64 bits -------------------------------------------------------------------------------------------------------


def largest(of: Kernel, step: TranslatedStep, theory: Theory) -> int:
    """How large anything can be that the kernel computes with one event, if all that goes in lies within its bound."""
    found = 0
    for facts, _, state in runs(of, step, theory):
        values = [value.term if isinstance(value, UnknownMap) else number(value) for value in state.values()]
        found = max(found, *(_magnitude(part) for term in (*facts, *values) for part in _parts(term)), 0)
    return found


def _parts(term: Any) -> Iterator[Any]:
    """A term, and all that it is made of, but for the bodies of quantifiers' functions."""
    yield term
    for child in term.children():
        yield from _parts(child)


SUMS = {z3.Z3_OP_ADD, z3.Z3_OP_SUB, z3.Z3_OP_UMINUS}


def _magnitude(term: Any) -> int:
    """How far from 0 a term can be; what goes in and what Maps hold lies within the bound."""
    if not z3.is_int(term):
        return 0
    if z3.is_var(term):
        return 2 * LIMIT  # a number between two ends, each of them a sum of two at most
    if z3.is_int_value(term):
        return abs(int(term.as_long()))
    kind, parts = term.decl().kind(), [_magnitude(child) for child in term.children()]
    if kind in SUMS:
        return sum(parts)
    if kind == z3.Z3_OP_MUL:
        return prod(parts)
    return max(parts[1:]) if kind == z3.Z3_OP_ITE else LIMIT
