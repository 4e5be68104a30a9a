"""A run from the initial state to a violation: a counterexample that is certainly reachable.

A counterexample to induction starts in any state that satisfies the invariants, and no trace may lead there. Here the
steps are unrolled from the initial state, one more at a time, up to a depth; keys and numbers are small, so that Z3
finds a run or says that there is none. The plain functions have the last word, as on every example.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any

import z3

from gapless.properties.proof import induction, symbolic
from gapless.properties.proof.counterexamples import Run, confirmed_at, decoded_values, small
from gapless.properties.proof.induction import Obligation, Question, Theory, ask
from gapless.properties.proof.symbolic import State, Unknown, UnknownMap, Way, number
from gapless.properties.proof.terms.boolean_terms import all_of, any_of
from gapless.spec.language import Refused

DEPTH = 7  # steps before the one that breaks something
WINDOW = range(-1, 5)  # keys of a run
VALUES = ((0, 1), (0, 3), (0, 9), (-9, 9))  # between which its numbers lie: plain ones first
WORK = 4_000_000  # Z3's own measure of work that one depth may cost


def run_to(obligation: Obligation, depth: int = DEPTH) -> Run | None:
    """The shortest run from the initial state to an example against an obligation; None where none was found."""
    question = obligation.question(WINDOW)
    if question.before is None or obligation.begins:
        return None
    unrolled = _UnrolledSteps(induction.theory(obligation.spec, obligation.weak, WINDOW), question)
    for count in range(depth + 1):
        chain = list(unrolled.chain(count))
        for low, high in VALUES:
            near = small([obligation], [question], WINDOW, high)
            asked = (*question.terms, *near, *unrolled.within(count, low, high), *chain)
            answer = ask(asked, work=WORK)
            if answer.model is not None:
                plainest = unrolled.plainest(asked, answer.model, count, low)
                if found := unrolled.replayed(obligation, plainest, count):
                    return found
            if answer.verdict == "unknown":
                return None
    return None


class _UnrolledSteps:
    """The steps of a spec, one after the other, as terms."""

    def __init__(self, of: Theory, question: Question) -> None:
        self.of = of
        self.question = question
        self.steps = of.steps

    @cached_property
    def step(self) -> tuple[Any, State]:
        """One step from the theory's state to another: that it is taken, `which` and with which arguments."""
        after = symbolic.unknown_state(self.of.spec.initial, "next ")
        cases = []
        for n, step in enumerate(self.steps):
            ways = self.of.ways(step)[1]
            taken = [all_of(way.walked, self._same(way.outcome, after)) for way in ways if way.accepted]
            cases.append(all_of(WHICH == n, *self.of.tried(step), any_of(*taken)))
        return any_of(*cases), after

    @cached_property
    def arguments(self) -> tuple[Unknown, ...]:
        """The arguments of all steps, each once: those that are called alike are one."""
        named = {str(value.term): value for step in self.steps for value in self.of.ways(step)[0].values()}
        return tuple(named.values())

    @staticmethod
    def _same(one: State, other: State) -> Any:
        """That two states are equal, as far as the window reaches: the plain functions look at the rest."""
        return symbolic.same_at(one, other, *WINDOW)

    def chain(self, count: int) -> Iterator[Any]:
        """That so many steps lead from the initial state to the one that the question is about."""
        states = [symbolic.unknown_state(self.of.spec.initial, f"{n}: ") for n in range(count)]
        states.append(self.question.before)
        yield self._begun(states[0])
        taken, after = self.step
        for n in range(count):
            pairs = [*_pairs(self.of.before, states[n]), *_pairs(after, states[n + 1]), (WHICH, _which(n))]
            yield z3.substitute(taken, *pairs, *((v.term, _argument(n, v)) for v in self.arguments))

    @cached_property
    def starts(self) -> tuple[tuple[dict[str, Any], list[Way]], ...]:
        """The arguments of each function of INITIALS, and the ways through it."""
        initial, found = symbolic.symbolic(self.of.spec.initial), []
        for start in self.of.spec.starts.values():
            args = symbolic.unknown_arguments(start, tag=f"{start.__name__}: ")
            with symbolic.read(self.of.reading):
                found.append((args, symbolic.ways(start, initial, args)))
        return tuple(found)

    def _begun(self, state: State) -> Any:
        """That a state is an initial one; where there are several, `BEGUN_BY` is the function that makes it."""
        if not self.starts:
            return self._same(symbolic.symbolic(self.of.spec.initial), state)
        return any_of(
            *(
                all_of(BEGUN_BY == n, way.walked, self._same(way.outcome, state))
                for n, (_, ways) in enumerate(self.starts)
                for way in ways
                if way.accepted
            )
        )

    def within(self, count: int, low: int, high: int) -> Iterator[Any]:
        """That what the steps are taken with lies between two numbers, that of the last step too."""
        for args, _ in self.starts:
            numbers = [
                value[key]
                for value in args.values()
                if isinstance(value, UnknownMap)
                for key in symbolic.places(value, WINDOW)
            ]
            for value in (*numbers, *(value for value in args.values() if isinstance(value, Unknown))):
                yield all_of(low <= number(value), number(value) <= high)
        for n in range(count):
            for value in self.arguments:
                term = number(Unknown(_argument(n, value)))
                yield all_of(low <= term, term <= high)
        for value in self.question.args.values():
            yield all_of(low <= number(value), number(value) <= high)

    def plainest(self, asked: Sequence[Any], model: Any, count: int, low: int) -> Any:
        """A model of the run in which each step is the first possible one, with the smallest arguments.

        So the same run is shown whatever Z3 finds first.
        """
        solver = z3.Solver()
        solver.set("rlimit", WORK)
        solver.add(*asked)

        def settle(term: Any, least: int) -> int:
            nonlocal model
            value = int(model.eval(term, model_completion=True).as_long())
            for smaller in range(least, value):
                if solver.check(term == smaller) == z3.sat:
                    model, value = solver.model(), smaller
                    break
            solver.add(term == value)
            return value

        if self.starts:
            args, _ = self.starts[settle(BEGUN_BY, 0)]
            for value in args.values():
                if isinstance(value, Unknown):
                    settle(number(value), low)
        for n in range(count):
            step = self.steps[settle(_which(n), 0)]
            for value in self.of.ways(step)[0].values():
                settle(number(Unknown(_argument(n, value))), low)
        for value in (*self.question.args.values(), *self.question.free.values()):
            settle(number(value), low)
        return model

    def replayed(self, obligation: Obligation, model: Any, count: int) -> Run | None:
        """The run that a model stands for, if the plain functions take every step of it."""
        state, steps = self.of.spec.initial, []
        if self.starts:
            at = model.eval(BEGUN_BY, model_completion=True).as_long()
            start, (given, _) = list(self.of.spec.starts.values())[at], self.starts[at]
            args = decoded_values(given, model, WINDOW)
            try:
                begun = start(state, *args.values())
            except Refused:
                return None
            steps.append((start, args, state, begun))
            state = begun
        for n in range(count):
            step = self.steps[model.eval(_which(n), model_completion=True).as_long()]
            args = decoded_values({name: _argument(n, value) for name, value in self.of.ways(step)[0].items()}, model)
            try:
                after = step(state, *args.values())
            except Refused:
                return None
            steps.append((step, args, state, after))
            state = after
        example = confirmed_at(obligation, self.question, model, WINDOW, state)
        return Run(tuple(steps), example) if example else None


WHICH = z3.Int("which")
BEGUN_BY = z3.Int("begun by")


def _which(n: int) -> Any:
    return z3.Int(f"{n}: which")


def _argument(n: int, value: Unknown) -> Any:
    return z3.Const(f"{n}: {value.term}", value.term.sort())


def _pairs(one: State, other: State) -> Iterator[tuple[Any, Any]]:
    for field in fields(one):
        yield getattr(one, field.name).term, getattr(other, field.name).term
