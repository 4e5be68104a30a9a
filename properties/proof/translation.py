"""Translation validation: the steps of a kernel, read by Z3, are the spec.

A kernel's steps are functions that are made as syntax trees (`traces/replay/step_functions.py`). Those very functions,
which native code is made of, are run here for one event on values that are not known, and compared with the plain
function run on the same: both accept or both refuse, for the same reason, and the states that they lead to are equal,
from any state and with any arguments.

Integers of 64 bits are met by guards (`spec/reading/trees/ranges.py`), which the functions contain: a kernel gives up
where a number may leave 64 bits. `word_size.py` shows of each step that this is never needed. Windows are taken to be
wide enough, for beyond them kernels give up as well. A spec of which no kernel is made has nothing to show here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any

import z3

from gapless.native import by_python
from gapless.properties.proof import symbolic
from gapless.properties.proof.induction import LOST, Obligation, Question, Theory
from gapless.properties.proof.symbolic import State, Unknown, UnknownMap, number, truth
from gapless.properties.proof.terms.boolean_terms import TRUE, all_of, any_of, negated
from gapless.spec.catalog import Spec
from gapless.spec.language import Deviation, Refused, Takeover
from gapless.spec.reading.trees.ranges import LIMIT
from gapless.traces.replay import loop
from gapless.traces.replay.kernels import EXACT, Kernel, code_of, kernel
from gapless.traces.replay.loop import CLAIMED
from gapless.traces.replay.map_columns import columns_of
from gapless.traces.replay.step_functions import StepFunctions

SENTENCE = "the_kernel_is_the_spec"
COVERED = "the ways through the kernel cover every input, and no two overlap"


@dataclass(frozen=True)
class TranslatedStep:
    """An action, alone or with one of the deviations or takeovers that may stand in for it."""

    action: str
    deviation: Deviation[Any] | None = None
    takeover: Takeover[Any] | None = None

    @property
    def stand_in(self) -> Deviation[Any] | Takeover[Any] | None:
        """The step that is tried where the action refuses."""
        return self.deviation or self.takeover

    @property
    def name(self) -> str:
        """The name in the ledger."""
        return self.stand_in.step.__name__ if self.stand_in else self.action

    def is_tried(self, refused: Refused) -> bool:
        """True if the stand-in is tried behind this refusal."""
        return self.takeover is None or self.takeover.rule == refused.rule


def steps(spec: Spec) -> Iterator[TranslatedStep]:
    """Every action alone, and with each of its deviations and takeovers."""
    for action in spec.actions:
        yield TranslatedStep(action)
    for deviation in spec.deviations:
        yield TranslatedStep(deviation.instead_of.__name__, deviation)
    for takeover in spec.takeovers:
        yield TranslatedStep(takeover.instead_of.__name__, takeover=takeover)


class _Columns:
    """An array of one row, as far as a kernel looks: by (row, 0), or by row."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __getitem__(self, place: int | tuple[int, int]) -> Any:
        return self.values[place[0] if isinstance(place, tuple) else place]

    def __setitem__(self, place: int, value: Any) -> None:
        self.values[place] = value


class _KernelSteps:
    """The steps of a kernel, made to run on terms. Maps are columns of unbounded height, from key 0 on."""

    def __init__(self, of: Kernel) -> None:
        self.of = of
        self.names: dict[str, Any] = {
            "at": self._at, "put": self._put, "forget": self._forget, "clear": self._clear,
            "at_pair": self._at_pair, "put_pair": self._put_pair, "clear_pairs": self._clear,
            "stood_in": by_python(loop.stood_in), "taken_over": by_python(loop.taken_over),
        }  # fmt: skip
        exec(code_of(of.steps), self.names)  # noqa: S102 - the compiler's own
        one_number: dict[str, Any] = dict(self.names)
        bodies = StepFunctions((), tuple(of.steps.quantifiers.values()), {})
        exec(code_of(bodies), one_number)  # noqa: S102 - the compiler's own
        for name, body in of.steps.quantifiers.items():
            quantifier = self._quantifier(name.partition("_")[0], one_number[body.name])
            self.names[name] = one_number[name] = quantifier

    @staticmethod
    def _at(windows: dict[int, UnknownMap], place: Any, _width: int, column: int, _default: int) -> Unknown:
        return windows[column][place]

    @staticmethod
    def _put(
        windows: dict[int, UnknownMap], place: Any, _width: int, column: int, _default: int, value: Any, _escape: Any
    ) -> None:
        windows[column] = windows[column].set(place, value)

    @staticmethod
    def _at_pair(
        windows: dict[int, UnknownMap], first: Any, second: Any, _width: int, column: int, _default: int
    ) -> Unknown:
        return windows[column][first, second]

    @staticmethod
    def _put_pair(
        windows: dict[int, UnknownMap], first: Any, second: Any, _width: int, column: int, _default: int, value: Any,
        _escape: Any,
    ) -> None:  # fmt: skip
        windows[column] = windows[column].set(first, second, value)

    @staticmethod
    def _forget(windows: dict[int, UnknownMap], place: Any, _width: int, column: int, _default: int) -> None:
        windows[column] = windows[column].forget_from(place)

    @staticmethod
    def _clear(windows: dict[int, UnknownMap], _width: int, column: int, _default: int) -> None:
        windows[column] = windows[column].cleared()

    @staticmethod
    def _quantifier(word: str, holds: Callable[..., Any]) -> Callable[..., Unknown]:
        """The loop over numbers as a quantifier, or a count, over the same body."""
        reading = symbolic.Quantification()
        read = reading.count_between if word == "count" else reading.all_between
        return lambda low, high, *rest: read(low, high, lambda n: holds(n, *rest))

    def run(
        self, step: TranslatedStep, state: State, args: dict[str, Unknown]
    ) -> Callable[[], tuple[int, dict[str, Any]]]:
        """One event, as a function of nothing: why it was refused, and the state afterwards."""
        spec = self.of.spec
        code = spec.codes[step.action]
        allowed = [deviation is step.deviation for deviation in spec.deviations]
        before = [Unknown(number(getattr(state, name))) for name in spec.scalars]
        given = [Unknown(number(args.get(name, 0))) for name in spec.arguments]
        claims = [0] if step.takeover else []

        def once() -> tuple[int, dict[str, Any]]:
            scalars, escape = _Columns([*before]), [0]
            windows = {column: getattr(state, name) for name, column in columns_of(spec).of.items()}
            counts = [0] * (len(allowed) + 1)
            why = self.names["step"](
                code, 0, 0, scalars, _Columns([*given]), windows, 0, 0, escape, allowed, counts, list(counts), [0], [],
                [*claims],
            )  # fmt: skip
            why = 0 if why == CLAIMED else why
            values = dict(zip(spec.scalars, scalars.values, strict=True))
            return (EXACT if escape[0] else why), values | {
                name: windows[column] for name, column in columns_of(spec).of.items()
            }

        return once


@cache
def _compiled(of: Kernel) -> _KernelSteps:
    return _KernelSteps(of)


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
    """Every way through the plain functions: what stands in for an action is tried where that refuses."""
    for way in theory.ways(spec.actions[step.action])[1]:
        if way.accepted or step.stand_in is None or not step.is_tried(way.outcome):
            yield way.facts, way.outcome
            continue
        for other in theory.ways(step.stand_in.step)[1]:
            yield (*way.facts, *other.facts), other.outcome if other.accepted else way.outcome


def obligations(spec: Spec) -> Iterator[Obligation]:
    """That one event of every action is read by the kernel as by the spec."""
    for step in () if kernel(spec).obstacle else steps(spec):
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
