"""What catches a fault that is planted in a spec: a proof, a step that cannot happen any more, or exploration.

A fault that none of them catches is a survivor: either the spec says too little, or the fault makes no difference. The
second is proved: in every state the step accepts the same, and leads to the same.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.table import Table

from gapless.properties.exploration.bounds import NoBound, arguments
from gapless.properties.exploration.growing import bound_for
from gapless.properties.exploration.search import explore
from gapless.properties.faults import operators
from gapless.properties.faults.operators import Fault
from gapless.properties.proof import counterexamples, cut_anywhere, equivalence, induction, liveness, refinement
from gapless.properties.proof.counterexamples import settled
from gapless.properties.proof.induction import CAN_HAPPEN, Obligation, theory
from gapless.spec.catalog import SPECS, Spec, State
from gapless.spec.language import Refused

Check = Literal["refuted", "unproved", "never", "explored"]

CHUNK = 8  # faults that one process judges at a time, of one spec mostly

QUICK = ((range(-1, 4), 2**32),)  # keys and numbers among which examples are looked for first


ROOT = Path(__file__).resolve().parents[2]
BAR = 0.95  # of the faults that make a difference, so many must be caught
CHECKS: dict[Check, str] = {
    "refuted": "a proof fails: there is an example",
    "unproved": "a proof fails: Z3 does not know",
    "never": "a step cannot happen any more",
    "explored": "exploration finds a step that is taken, or refused, otherwise",
}

HEADS = ["spec", "planted", "no difference", "caught", *CHECKS, *(f"{check} alone" for check in CHECKS), "survive"]

SAME: dict[tuple[str, str], str] = {}
"""Of a spec and a fault: why it makes no difference, where Z3 does not prove that by itself."""


@dataclass(frozen=True)
class Judged:
    """What became of one fault: what refutes it, or why it makes no difference."""

    spec: str
    fault: Fault
    refuted: str = ""  # the step and the property that breaks
    unproved: str = ""  # the step and the property that is not proved any more, nor refuted
    never: str = ""  # the step that cannot happen any more
    explored: str = ""  # what exploration finds otherwise than in the spec as it is
    same: bool = False  # proved: in every state, every step that has the fault accepts the same and leads to the same

    @property
    def caught(self) -> bool:
        """Whether anything catches it."""
        return bool(self.by)

    @property
    def by(self) -> tuple[Check, ...]:
        """The checks that catch it."""
        return tuple(check for check in CHECKS if getattr(self, check))

    @property
    def makes_a_difference(self) -> bool:
        """Whether there is anything to catch."""
        return not self.same and (self.spec, self.fault.name) not in SAME


def judge(spec: Spec, fault: Fault, *, compared: bool = True) -> Judged:
    """What catches a fault: properties first, the quick ways first; then, apart, comparison with the spec as it is."""
    mutant = operators.planted(spec, fault)
    names = touched(spec, fault)
    explored = otherwise(spec, mutant, names) if compared else ""
    try:
        return replace(_proved(spec, fault, mutant, names), explored=explored)
    except TypeError as error:  # a state is known in part and unknown in part: this is no spec that Z3 can read
        return Judged(spec.name, fault, unproved=f"Z3 cannot read it: {error}", explored=explored)


def _proved(spec: Spec, fault: Fault, mutant: Spec, names: frozenset[str]) -> Judged:
    """What proofs say of a mutant. What nothing refutes at once has all its proofs tried again."""
    shown = list(obligations(mutant, names))
    refuted = quickly(shown)
    never = next((o.step for o in shown if o.wanted == "sat" and settled(o).verdict != "proved"), "")
    if refuted or never:
        return Judged(spec.name, fault, refuted=refuted, never=never)
    if no_difference(spec, mutant, names):
        return Judged(spec.name, fault, same=True)
    for obligation in shown:
        if obligation.wanted == "unsat":
            verdict = settled(obligation).verdict
            if verdict != "proved":
                refuted, unproved = (told(obligation) if verdict == said else "" for said in ("refuted", "unknown"))
                return Judged(spec.name, fault, refuted=refuted, unproved=unproved)
    return Judged(spec.name, fault)


def told(obligation: Obligation) -> str:
    """A step, and what must be shown of it."""
    return f"{obligation.step}: {obligation.invariant}"


def touched(spec: Spec, fault: Fault) -> frozenset[str]:
    """The actions and deviations that a fault may change, those that stand in for a changed action among them."""
    names = operators.behind_steps(spec)[fault.function]
    return names | {d.step.__name__ for d in spec.deviations if d.instead_of.__name__ in names}


def obligations(spec: Spec, names: frozenset[str]) -> Iterator[Obligation]:
    """All that must be shown of a spec and has to do with steps of these names."""
    for weak in (False, True) if spec.deviations else (False,):
        steps = [step for step in theory(spec, weak, None).steps if step.__name__ in names]
        for obligation in induction.inductive(spec, weak=weak, only=steps):
            if not (weak and obligation.invariant == CAN_HAPPEN and obligation.steps[0] in spec.actions.values()):
                yield obligation  # an action that can happen by the design can happen
    for more in (induction.exclusive, liveness.obligations, refinement.obligations, cut_anywhere.obligations):
        yield from (o for o in more(spec) if names & set(o.step.split()))
    yield from induction.enabled(spec)


def quickly(all_of_it: Sequence[Obligation]) -> str:
    """An obligation that an example in small numbers speaks against: all of one step are asked at once."""
    asked = [o for o in all_of_it if o.wanted == "unsat" and o.holds]
    for window, bound in QUICK:
        for _, some in groupby(asked, key=lambda o: (o.step, o.weak)):
            result = counterexamples.refuted(list(some), window, bound)
            if result:
                return told(result.obligation)
    return ""


def no_difference(spec: Spec, mutant: Spec, names: frozenset[str]) -> bool:
    """Whether it is proved that every step with the fault comes to the same as without."""
    weak = bool(spec.deviations)
    pairs = zip(theory(spec, weak, None).steps, theory(mutant, weak, None).steps, strict=True)
    here, there = (partial(theory, one, weak) for one in (spec, mutant))
    return all(equivalence.same(one, other, here, there) for one, other in pairs if one.__name__ in names)


# -- exploration ---------------------------------------------------------------------------------------------------


def otherwise(spec: Spec, mutant: Spec, names: frozenset[str]) -> str:
    """The first step, within the bounds in which a spec is explored, that is not taken, or refused, as in the spec."""
    actions = {d.instead_of.__name__ for d in spec.deviations if d.step.__name__ in names} | names & set(spec.actions)
    for profile in (None, *sorted(set[str]().union(*(d.profiles for d in spec.deviations)))):
        for state in states(spec, profile):
            for action in sorted(actions):
                for args in calls(spec, profile, action):
                    if outcome(spec, state, action, args, profile) != outcome(mutant, state, action, args, profile):
                        return f"{action}({', '.join(map(str, args))})"
    return ""


@cache
def states(spec: Spec, profile: str | None) -> tuple[State, ...]:
    """The states of a spec within its bound, as exploration meets them; none where it has no bound."""
    try:
        graph = explore(spec, bound_for(spec, profile), profile=profile).graph
    except NoBound:
        return ()
    return tuple(state for number, state in enumerate(graph.states) if number not in graph.beyond)


@cache
def calls(spec: Spec, profile: str | None, action: str) -> tuple[tuple[int, ...], ...]:
    """The arguments that exploration tries a step with."""
    return tuple(arguments(bound_for(spec, profile), spec, action))


def outcome(spec: Spec, state: State, action: str, args: tuple[int, ...], profile: str | None) -> object:
    """What becomes of a step: the state it leads to, or the need that refuses it."""
    try:
        return spec.actions[action](state, *args)
    except Refused as refusal:
        reason = refusal.rule
    for deviation in spec.stand_ins(action, profile) if profile else ():
        try:
            return deviation.step(state, *args), deviation.step.__name__
        except Refused as refusal:
            reason += refusal.rule
    return reason


# -- all of them ---------------------------------------------------------------------------------------------------


def judged(chosen: Sequence[tuple[str, int]], jobs: int = 2, *, compared: bool = True) -> Iterator[Judged]:
    """What catches each of the faults, named by spec and number, as it is found out.

    Without `compared`, mutants are not compared with the spec as it is: what properties catch is found out sooner.
    """
    chunks = [chosen[at : at + CHUNK] for at in range(0, len(chosen), CHUNK)]
    if jobs == 1:
        for chunk in chunks:
            yield from _judged_here(chunk, compared=compared)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:  # Z3 survives no fork
        for some in pool.map(partial(_judged_here, compared=compared), chunks):
            yield from some


def _judged_here(chosen: Sequence[tuple[str, int]], *, compared: bool) -> list[Judged]:
    found = []
    for name, number in chosen:
        found.append(judge(SPECS[name], operators.faults(SPECS[name])[number], compared=compared))
        induction.theory.cache_clear()  # what is known of one mutant is of no use to the next
    return found


def every(names: Sequence[str] = ()) -> list[tuple[str, int]]:
    """All faults of these specs, by default of all."""
    return [(name, n) for name in names or SPECS for n in range(len(operators.faults(SPECS[name])))]


def sample(count: int) -> list[tuple[str, int]]:
    """So many of all faults, the same ones each time until a spec changes, and then mostly the same."""

    def lot(one: tuple[str, int]) -> str:
        name = operators.faults(SPECS[one[0]])[one[1]].name
        return hashlib.sha256(f"{one[0]} {name}".encode()).hexdigest()

    return sorted(sorted(every(), key=lot)[:count])


def table(found: Sequence[Judged]) -> Table:
    """How many faults each kind of check catches, and how many it alone catches."""
    lines = Table(*HEADS)
    for row in _rows(found):
        lines.add_row(*row)
    return lines


def _rows(found: Sequence[Judged]) -> Iterator[list[str]]:
    for name in (*dict.fromkeys(one.spec for one in found), "all"):
        mine = [one for one in found if name in {one.spec, "all"}]
        real = [one for one in mine if one.makes_a_difference or one.caught]
        numbers = [len(mine), len(mine) - len(real), sum(one.caught for one in real)]
        numbers += [sum(check in one.by for one in real) for check in CHECKS]
        numbers += [sum(one.by == (check,) for one in real) for check in CHECKS]
        yield [name, *map(str, [*numbers, sum(not one.caught for one in real)])]


PAGE = Path("properties/faults/spec_mutants.md")
INTRODUCTION = """# Faults that were planted, and what became of them

Made by `python -m gapless.properties.faults.spec_mutants --write`, which takes some minutes. A fault is a missing
guard, a comparison that is off by one or at the wrong boundary, or an effect that forgets a field. *No difference* is
proved by Z3: wherever what is left of the invariants holds, every step accepts the same, and leads to the same state.
"""


def page(found: Sequence[Judged]) -> str:
    """How many are caught by what, those that make no difference, and those that survive."""
    rows = ["| " + " | ".join(row) + " |" for row in (HEADS, ["---"] * len(HEADS), *_rows(found))]
    meanings = [f"- *{check}*: {meaning}." for check, meaning in CHECKS.items()]
    meanings.append("- *alone*: nothing else catches it. All checks but *unproved* are tried on every fault.")
    same = [f"- {_name(one)}" for one in found if one.same and not one.caught]
    same += [
        f"- {_name(one)}: {SAME[one.spec, one.fault.name]}." for one in found if (one.spec, one.fault.name) in SAME
    ]
    survive = [f"- {_name(one)}" for one in found if one.makes_a_difference and not one.caught]
    share = f"{share_caught(found):.1%} of the faults that make a difference are caught; {BAR:.0%} must be."
    parts = ["\n".join(rows), "\n".join(meanings), share]
    parts += ["## They survive", "\n".join(survive), "## They make no difference", "\n".join(same)]
    return INTRODUCTION + "\n" + "\n\n".join(parts) + "\n"


def _name(one: Judged) -> str:
    return f"{one.spec}: {one.fault.name.replace('_', chr(92) + '_')}"


def share_caught(found: Sequence[Judged]) -> float:
    """Of the faults that make a difference, the share that some check catches."""
    real = [one for one in found if one.makes_a_difference or one.caught]
    return sum(one.caught for one in real) / len(real) if real else 0.0


def main() -> int:
    """Plant every fault in every spec, and tell what catches each; 1 where fewer are caught than must be."""
    parser = argparse.ArgumentParser(prog="python -m gapless.properties.faults.spec_mutants", description=main.__doc__)
    parser.add_argument("spec", nargs="*", help="of these specs only")
    parser.add_argument("--sample", type=int, default=0, help="only so many faults, the same ones each time")
    parser.add_argument("--write", action="store_true", help="write properties/faults/spec_mutants.md")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="tell of every fault, not only of those that survive")
    parser.add_argument("--properties", action="store_true", help="do not compare mutants with the spec as it is")
    asked = parser.parse_args()
    out = Console(soft_wrap=True, highlight=False)
    found = []
    for one in judged(
        sample(asked.sample) if asked.sample else every(asked.spec), asked.jobs, compared=not asked.properties
    ):
        found.append(one)
        if asked.all or not one.caught:
            fate = ", ".join(f"{check}: {getattr(one, check)}" for check in one.by)
            why = SAME.get((one.spec, one.fault.name), "proved to make no difference" if one.same else "SURVIVES")
            out.print(f"{one.spec}: {one.fault.name}: {fate or why}", markup=False)
    out.print(table(found))
    if asked.write:
        (ROOT / PAGE).write_text(page(found), encoding="utf-8")
    share = share_caught(found)
    out.print(f"{share:.1%} of the faults that make a difference are caught; {BAR:.0%} must be.")
    return 0 if share >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
