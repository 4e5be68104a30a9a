"""Word size: no number of a compiled step leaves 64 bits, proved of every step, or refuted by an example.

What goes in lies within the kernel's bound, and all invariants hold. The analysis of intervals
(`spec/reading/trees/ranges.py`) is asked first, as the compiler asks it: where it finds nothing, there is nothing to
prove. Of what it cannot exclude, Z3 is asked. Where an operation can leave 64 bits, the kernel leaves such events to
exact replay, which is slow: so a remedy is named.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import z3

from gapless.properties.proof import symbolic
from gapless.properties.proof.counterexamples import Result, decoded_values
from gapless.properties.proof.induction import Obligation, Question, Theory, ask
from gapless.properties.proof.symbolic import Unknown, number
from gapless.properties.proof.terms.boolean_terms import all_of, any_of
from gapless.spec.catalog import Spec
from gapless.spec.reading.trees.decision_trees import Branch, Tree, constant_map
from gapless.spec.reading.trees.ranges import LIMIT, Offence, guarded, offences, quantifiers, terms_of
from gapless.spec.reading.trees.terms import (
    APPLIED,
    Argument,
    At,
    Constant,
    Count,
    Every,
    Field,
    Negative,
    Operation,
    Pair,
    Quantifier,
    Term,
    Variable,
)
from gapless.traces.replay.notation import call_of, values_text
from gapless.traces.replay.step_functions import StepTrees, trees_of

SENTENCE = "no_intermediate_value_leaves_64_bits"
REMEDY = (
    "a kernel leaves such events to the plain functions, which are slow: require that {names} small before, or count "
    "in larger units"
)


@cache
def _trees(spec: Spec) -> StepTrees | None:
    try:
        return None if constant_map(*spec.steps, *spec.at_rest) else trees_of(spec)
    except (TypeError, RecursionError):  # which the other obligations tell of
        return None


def obligations(spec: Spec) -> Iterator[Obligation]:
    """That no step of a spec, nor one that stands in for it, computes a number of more than 64 bits."""
    found = _trees(spec)
    if found is None:
        return
    named = [(name, spec.actions[name], tree) for name, tree in found.actions.items()]
    named += [(step.__name__, step, tree) for step, tree in found.stand_ins()]
    for name, step, tree in named:
        asked = partial(_question, step=step, tree=tree)
        yield Obligation(spec, SENTENCE, name, asked, steps=(step,), settled=partial(settled, step=step, tree=tree))


def settled(obligation: Obligation, *, step: Any, tree: Tree, work: int, seed: int) -> Result:
    """The result: proved, or refuted by numbers with which an operation leaves 64 bits."""
    began = time.perf_counter()

    def result(verdict: Any, spent: int, why: str = "") -> Result:
        return Result(obligation, verdict, 1000 * (time.perf_counter() - began), spent, why=why)

    if guarded(tree) is tree:
        return result("proved", 0)
    spent, unknown = 0, ""
    question = obligation.question()
    try:
        for beyond in _offences(obligation.spec, tree, question):
            answer = ask((*question.terms, *beyond.facts, beyond.is_beyond), work=work, seed=seed)
            spent += answer.work
            if answer.verdict == "sat":
                return result("refuted", spent, _overflow_example(step, question, beyond, answer.model))
            unknown = unknown or answer.why
    except TooManyWays:
        unknown = f"it has more than {WAYS:,} ways"
    return result("unknown", spent, unknown) if unknown else result("proved", spent)


def _question(theory: Theory, *, step: Any, tree: Tree) -> Question:
    """That all invariants hold and all that goes in lies within the bound; `tree` is asked about in `settled`."""
    del tree
    args, _ = theory.ways(step)
    values = [getattr(theory.before, name) for name in theory.spec.scalars]
    bounds = [all_of(-LIMIT < number(value), number(value) < LIMIT) for value in (*values, *args.values())]
    return Question((*theory.known, *bounds), theory.before, args)


@dataclass(frozen=True)
class Beyond:
    """A term that may be too large behind some answers: as a formula, and what must be so for it to be computed."""

    term: Term
    is_beyond: Any
    facts: tuple[Any, ...]
    value: Any


def _offences(spec: Spec, tree: Tree, question: Question) -> Iterator[Beyond]:
    """The operations that intervals cannot exclude, each with every way there. Raises TooManyWays."""
    terms = _Terms(spec, question)
    pending: list[tuple[Tree, tuple[Any, ...]]] = [(tree, ())]
    for _ in range(WAYS):
        if not pending:
            return
        one, facts = pending.pop()
        for offence, bound in (*offences(one, {}), *(part for term in terms_of(one) for part in _in_bodies(term))):
            terms.inputs = []
            value = number(terms.value(offence))
            yield Beyond(offence, any_of(value >= bound, value <= -bound), (*facts, *terms.inputs), value)
        if isinstance(one, Branch):
            asked = symbolic.truth(terms.value(one.question))
            pending += (one.no, (*facts, z3.Not(asked))), (one.yes, (*facts, asked))
    raise TooManyWays


class TooManyWays(Exception):  # noqa: N818 - its name says all.
    """A step has more ways than are looked through."""


WAYS = 4_000


def _in_bodies(term: Term) -> Iterator[Offence]:
    """List the operations within quantifiers that may be too large."""
    for every in quantifiers(term):
        pending: list[Tree] = [every.body]
        while pending:
            one = pending.pop()
            yield from offences(one, {})
            pending += [one.yes, one.no] if isinstance(one, Branch) else []


class _Terms:
    """Terms as Z3 knows them. `inputs`: the bounds of the Maps' values that were looked up."""

    def __init__(self, spec: Spec, question: Question) -> None:
        self.spec, self.question = spec, question
        self.inputs: list[Any] = []

    def value(self, term: Term) -> Any:  # noqa: C901, PLR0911 - a kind of term a line
        """The term of a term."""
        match term:
            case Constant(value):
                return value
            case Field(name):
                return Unknown(number(getattr(self.question.before, name)))
            case Argument(name):
                return Unknown(number(self.question.args[name]))
            case Variable(name):
                return self._input(Unknown(z3.Int(f"{name}!")), 2 * LIMIT)
            case At(name, key):
                return self._input(getattr(self.question.before, name)[self.value(key)], LIMIT)
            case Negative(operand):
                return 0 - self.value(operand)
            case Operation(sign, left, right):
                return APPLIED[sign](self.value(left), self.value(right))
            case Pair(first, second):
                return self.value(first), self.value(second)
            case Count(variable=variable):
                return self._input(Unknown(z3.Int(f"counted {variable.name} {len(self.inputs)}")), 2 * LIMIT)
            case Every(low, high, variable, body):
                n = z3.Int(f"{variable.name}!")
                between = all_of(number(self.value(low)) <= n, n < number(self.value(high)))
                return Unknown(z3.ForAll([n], z3.Implies(between, self._holds(body))))
        raise TypeError(f"{term} is no word of a step")

    def _input(self, value: Unknown, bound: int) -> Unknown:
        self.inputs.append(all_of(-bound < value.number, value.number < bound))
        return value

    def _holds(self, body: Tree) -> Any:
        """That the outcome of a tree is true."""
        if isinstance(body, Branch):
            asked = symbolic.truth(self.value(body.question))
            return z3.If(asked, self._holds(body.yes), self._holds(body.no))
        return symbolic.truth(self.value(body.outcome) if isinstance(body.outcome, Term) else body.outcome is not False)


def _overflow_example(step: Any, question: Question, beyond: Beyond, model: Any) -> str:
    """The example in a sentence, and the remedy."""
    args = decoded_values(question.args, model)
    state: dict[str, int | str] = {
        name: int(str(model.eval(number(getattr(question.before, name)), model_completion=True)))
        for name in sorted(one.name for one in beyond.term.reads if isinstance(one, Field))
    }
    value = model.eval(beyond.value, model_completion=True)
    where = f", in a state with {values_text(state)}" if state else ""
    text = f"In {call_of(step.__name__, _given(args))}{where}, `{text_of(beyond.term)}` is {value}"
    names = sorted({f"`{text_of(one)}`" for one in beyond.term.reads})
    listed = f"{', '.join(names[:-1])} and {names[-1]} are" if len(names) > 1 else f"{''.join(names)} is"
    return f"{text}: {REMEDY.format(names=listed)}"


def _given(args: Mapping[str, int]) -> dict[str, int | str]:
    return {name: int(value) for name, value in args.items()}


def text_of(term: Term) -> str:  # noqa: PLR0911 - a kind of term a case
    """A term as a user writes it."""
    match term:
        case Constant(value):
            return str(value)
        case Field(name):
            return f"s.{name}"
        case At(name, key):
            keys = (key.first, key.second) if isinstance(key, Pair) else (key,)
            return f"s.{name}[{', '.join(map(text_of, keys))}]"
        case Negative(operand):
            return f"-{_within(operand, CLOSEST)}"
        case Operation(sign, left, right):
            own = CLOSER.get(sign, 0)
            return f"{_within(left, own)} {sign} {_within(right, own + 1)}"
        case Quantifier(low, high, variable):
            word = "count_between" if isinstance(term, Count) else "all_between"
            return f"{word}({text_of(low)}, {text_of(high)}, lambda {variable.name}: …)"
    return getattr(term, "name", repr(term))


CLOSER = {"+": 1, "-": 1, "*": 2, "//": 2, "%": 2}
CLOSEST = 3
"""Precedence of signs: an operand of a lower one stands in parentheses."""


def _within(term: Term, close: int) -> str:
    is_looser = isinstance(term, Operation) and CLOSER.get(term.sign, 0) < close
    return f"({text_of(term)})" if is_looser else text_of(term)
