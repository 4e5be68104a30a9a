"""Detection of faults planted in a spec: by a proof, a step that cannot happen any more, or comparison.

Properties speak of one spec; comparison needs the spec as it is, without the fault, and the author of a new spec has
none. So a fault that only comparison shows is counted apart, and counts for nothing in the score: there the properties
are thin. A fault that no property catches either makes no difference, which is proved (in every state the step accepts
the same, and leads to the same), or is argued for (`equivalent_mutants.py`), or is a hole that calls for a property.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.table import Table

from gapless.properties.campaign import command
from gapless.properties.exploration.adaptive_bounds import bound_for
from gapless.properties.exploration.bounds import NoBound, arguments
from gapless.properties.exploration.search import explore
from gapless.properties.faults import operators
from gapless.properties.faults.equivalent_mutants import ARGUED
from gapless.properties.faults.operators import Fault
from gapless.properties.processes import workers
from gapless.properties.proof import counterexamples, cut_equivalence, equivalence, induction, liveness, refinement
from gapless.properties.proof.counterexamples import settled
from gapless.properties.proof.induction import CAN_HAPPEN, Obligation, theory
from gapless.spec.catalog import SPECS, Spec, State
from gapless.spec.language import Refused

Check = Literal["refuted", "unproved", "never", "explored"]

CHUNK = 8  # faults that one process judges at a time, of one spec mostly

QUICK = ((range(-1, 4), 2**32),)  # keys and numbers among which examples are looked for first


ROOT = Path(__file__).resolve().parents[2]
BAR = 0.85  # of the faults that make a difference, so many must be caught by properties alone
CHECKS: dict[Check, str] = {
    "refuted": "a proof fails: there is an example",
    "unproved": "a proof fails: Z3 does not know",
    "never": "a step cannot happen any more",
    "explored": "exploration, compared with the spec as it is, finds a step that is taken, or refused, otherwise; with "
    "`--properties` it is asked only of faults that no property catches",
}
COMPARISON: Check = "explored"  # all other checks ask properties

HEADS = [
    "spec",
    "planted",
    "no difference",
    "by properties",
    "share",
    "by comparison only",
    "nobody",
    "argued",
    *CHECKS,
]


@dataclass(frozen=True)
class MutantVerdict:
    """The verdict on one fault: its refutation, or the reason why it makes no difference."""

    spec: str
    fault: Fault
    refuted: str = ""  # the step and the property that breaks
    unproved: str = ""  # the step and the property that is not proved any more, nor refuted
    never: str = ""  # the step that cannot happen any more
    explored: str = ""  # what exploration finds otherwise than in the spec as it is
    same: bool = False  # proved: in every state, every step that has the fault accepts the same and leads to the same

    @property
    def caught(self) -> bool:
        """True if anything catches it."""
        return bool(self.by)

    @property
    def by(self) -> tuple[Check, ...]:
        """The checks that catch it."""
        return tuple(check for check in CHECKS if getattr(self, check))

    @property
    def by_properties(self) -> bool:
        """True if a check catches it that needs no spec without the fault."""
        return any(check != COMPARISON for check in self.by)

    @property
    def makes_a_difference(self) -> bool:
        """True if there is anything to catch."""
        return not self.same

    @property
    def survives(self) -> bool:
        """True if it makes a difference, and no property catches it."""
        return self.makes_a_difference and not self.by_properties

    @property
    def why(self) -> str:
        """The argument for a fault that no property catches; empty where there is none."""
        return ARGUED.get((self.spec, self.fault.name), "")


def judge(spec: Spec, fault: Fault, *, compared: bool = True) -> MutantVerdict:
    """Judge a fault: by properties first, the quick ways first; then, apart, by comparison with the spec.

    Without `compared`, only what no property catches is compared.
    """
    mutant = operators.planted(spec, fault)
    names = touched(spec, fault)
    try:
        found = _proved(spec, fault, mutant, names)
    except TypeError as error:  # a state is known in part and unknown in part: this is no spec that Z3 can read
        found = MutantVerdict(spec.name, fault, unproved=f"Z3 cannot read it: {error}")
    return replace(found, explored=otherwise(spec, mutant, names)) if compared or found.survives else found


def _proved(spec: Spec, fault: Fault, mutant: Spec, names: frozenset[str]) -> MutantVerdict:
    """Judge a mutant by proofs. If nothing refutes it at once, all its proofs are tried again."""
    shown = list(obligations(mutant, names))
    refuted = quickly(shown)
    never = next((o.step for o in shown if o.wanted == "sat" and settled(o).verdict != "proved"), "")
    if refuted or never:
        return MutantVerdict(spec.name, fault, refuted=refuted, never=never)
    if no_difference(spec, mutant, names):
        return MutantVerdict(spec.name, fault, same=True)
    for obligation in shown:
        if obligation.wanted == "unsat":
            verdict = settled(obligation).verdict
            if verdict != "proved":
                refuted, unproved = (
                    label(obligation) if verdict == wanted else "" for wanted in ("refuted", "unknown")
                )
                return MutantVerdict(spec.name, fault, refuted=refuted, unproved=unproved)
    return MutantVerdict(spec.name, fault)


def label(obligation: Obligation) -> str:
    """A step, and what must be shown of it."""
    return f"{obligation.step}: {obligation.invariant}"


def touched(spec: Spec, fault: Fault) -> frozenset[str]:
    """The actions and deviations that a fault may change, with those that stand in for a changed action."""
    names = operators.behind_steps(spec)[fault.function]
    return names | {d.step.__name__ for d in spec.deviations if d.instead_of.__name__ in names}


def obligations(spec: Spec, names: frozenset[str]) -> Iterator[Obligation]:
    """All that must be shown of a spec and has to do with steps of these names."""
    for weak in (False, True) if spec.deviations else (False,):
        steps = [step for step in theory(spec, weak, None).steps if step.__name__ in names]
        for obligation in induction.inductive(spec, weak=weak, only=steps):
            if not (weak and obligation.invariant == CAN_HAPPEN and obligation.steps[0] in spec.actions.values()):
                yield obligation  # an action that can happen by the design can happen
    for more in (induction.exclusive, liveness.obligations, refinement.obligations, cut_equivalence.obligations):
        yield from (o for o in more(spec) if names & set(o.step.split()))
    yield from induction.enabled(spec)


def quickly(all_of_it: Sequence[Obligation]) -> str:
    """An obligation that an example in small numbers speaks against: all of one step are asked at once."""
    asked = [o for o in all_of_it if o.wanted == "unsat" and o.holds]
    for window, bound in QUICK:
        for _, some in groupby(asked, key=lambda o: (o.step, o.weak)):
            result = counterexamples.refuted(list(some), window, bound)
            if result:
                return label(result.obligation)
    return ""


def no_difference(spec: Spec, mutant: Spec, names: frozenset[str]) -> bool:
    """True if every step with the fault is proved equal to the step without it."""
    weak = bool(spec.deviations)
    pairs = zip(theory(spec, weak, None).steps, theory(mutant, weak, None).steps, strict=True)
    here, there = (partial(theory, one, weak) for one in (spec, mutant))
    return all(equivalence.same(one, other, here, there) for one, other in pairs if one.__name__ in names)


# -- exploration ---------------------------------------------------------------------------------------------------


def otherwise(spec: Spec, mutant: Spec, names: frozenset[str]) -> str:
    """The first step within the bounds of exploration that is taken or refused otherwise than in the spec."""
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
    """The result of a step: the next state, or the need that refuses it."""
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


def judged(chosen: Sequence[tuple[str, int]], jobs: int = 2, *, compared: bool = True) -> Iterator[MutantVerdict]:
    """Judge each of the faults, named by spec and number, one after the other.

    Without `compared`, what properties catch is not compared with the spec as it is, and found out sooner.
    """
    chunks = [chosen[at : at + CHUNK] for at in range(0, len(chosen), CHUNK)]
    if jobs == 1:
        for chunk in chunks:
            yield from _judged_here(chunk, compared=compared)
        return
    with workers(jobs) as pool:
        for some in pool.map(partial(_judged_here, compared=compared), chunks):
            yield from some


def _judged_here(chosen: Sequence[tuple[str, int]], *, compared: bool) -> list[MutantVerdict]:
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


def table(found: Sequence[MutantVerdict]) -> Table:
    """The number of faults that each kind of check catches, and that it alone catches."""
    lines = Table(*HEADS)
    for row in _rows(found):
        lines.add_row(*row)
    return lines


def _rows(found: Sequence[MutantVerdict]) -> Iterator[list[str]]:
    for name in (*dict.fromkeys(one.spec for one in found), "all"):
        yield _row(name, _numbers([one for one in found if name in {one.spec, "all"}]))


def _numbers(mine: Sequence[MutantVerdict]) -> tuple[int, ...]:
    """The cells of a row without the share, which follows from them."""
    real = [one for one in mine if one.makes_a_difference or one.caught]
    survive = [one for one in real if one.survives]
    apart = [sum(one.caught for one in survive), sum(not one.caught for one in survive)]
    apart += [sum(bool(one.why) for one in survive), *(sum(check in one.by for one in real) for check in CHECKS)]
    return len(mine), len(mine) - len(real), sum(one.by_properties for one in real), *apart


def _row(name: str, numbers: Sequence[int]) -> list[str]:
    cells = [f"{number}" for number in numbers]
    return [name, *cells[:SHARE_AT], f"{_share(numbers):.0%}", *cells[SHARE_AT:]]


SHARE_AT = HEADS.index("share") - 1  # among a row's numbers, which have no name before them


def _share(numbers: Sequence[int]) -> float:
    planted, same, noticed, *_ = numbers
    return noticed / (planted - same) if planted > same else 0.0


def wrong_arguments(found: Sequence[MutantVerdict]) -> list[str]:
    """Complaints about arguments for these faults: missing ones, unneeded ones, those of no fault."""
    complaints = [f"{one.spec}: {one.fault.name}: no property catches it, and no argument says why" for one in found
            if one.survives and not one.why]  # fmt: skip
    complaints += [f"{one.spec}: {one.fault.name}: it is argued for, and need not be" for one in found
             if one.why and not one.survives]  # fmt: skip
    names = {spec: {fault.name for fault in operators.faults(SPECS[spec])} for spec in {one.spec for one in found}}
    return complaints + [
        f"{spec}: {name}: it is argued for, and no such fault is planted"
        for spec, name in ARGUED
        if spec in names and name not in names[spec]
    ]


PAGE = Path("properties/faults/spec_mutants.md")
INTRODUCTION = """# Faults that were planted, and what became of them

Made by `python -m gapless.properties.faults.spec_mutants --properties --write`, which takes half an hour of a core; the
names of specs behind it renew the entries of these. A fault is a missing guard, a comparison that is off by one or at
the wrong boundary, or an effect that forgets a field. *No difference* is proved by Z3: wherever what is left of the
invariants holds, every step accepts the same, and leads to the same state.
"""


@dataclass(frozen=True)
class SpecOnPage:
    """The entries of the page about one spec."""

    numbers: tuple[int, ...]  # of its row
    survivors: tuple[tuple[str, bool], ...]  # faults that no property catches, and whether comparison does
    same: tuple[str, ...]  # faults that make no difference
    digest: str = ""  # of the text in which they were planted


def page(found: Sequence[MutantVerdict], before: str = "") -> str:
    """The counts by check, the faults that no property catches, and those that make no difference.

    Entries of other specs stay: after a change of one spec, the others need no new verdicts.
    """
    entries = _read(before)
    entries |= {name: _entry([one for one in found if one.spec == name]) for name in {one.spec for one in found}}
    entries = {name: entries[name] for name in SPECS if name in entries}
    every_one = [sum(column) for column in zip(*(one.numbers for one in entries.values()), strict=True)]
    table = [HEADS, ["---"] * len(HEADS), *(_row(name, one.numbers) for name, one in entries.items())]
    rows = ["| " + " | ".join(row) + " |" for row in (*table, _row("all", every_one))]
    meanings = [
        "- *by properties*: it is noticed with the faulty spec alone.",
        "- *by comparison only*: it shows only in comparison with the spec as it is: the properties are thin there.",
        "- *nobody*: it shows nowhere within the bounds of exploration either.",
        *(f"- *{check}*: {meaning}." for check, meaning in CHECKS.items()),
    ]
    share = f"{_share(every_one):.1%} of the faults that make a difference are caught by properties; {BAR:.0%} must be."
    texts = "\n".join(f"{TEXT} {name} {one.digest} -->" for name, one in entries.items() if one.digest)
    parts = ["\n".join(rows), texts, *_older(entries), "\n".join(meanings), share, "## No property catches them"]
    parts += ["\n".join(_survivors(entries)), "## They make no difference"]
    parts += ["\n".join(f"- {name}: {_escaped(fault)}" for name, one in entries.items() for fault in one.same)]
    return INTRODUCTION + "\n" + "\n\n".join(parts) + "\n"


def _entry(mine: Sequence[MutantVerdict]) -> SpecOnPage:
    survivors = tuple((one.fault.name, one.caught) for one in mine if one.survives)
    same = tuple(one.fault.name for one in mine if one.same and not one.caught)
    return SpecOnPage(_numbers(mine), survivors, same, operators.text_digest(SPECS[mine[0].spec]))


def _read(text: str) -> dict[str, SpecOnPage]:
    """The entries of a page for each existing spec."""
    numbers, survivors, same = dict[str, tuple[int, ...]](), list[tuple[str, str, bool]](), list[tuple[str, str]]()
    digests: dict[str, str] = {}
    for line in text.splitlines():
        name, _, fault = line.strip(" -").replace("\\_", "_").partition(": ")
        if line.startswith("| "):
            name, *cells = line.strip("| ").split(" | ")
            numbers |= {name: tuple(int(cell) for cell in cells if cell[-1] != "%")} if name in SPECS else {}
        elif line.startswith(TEXT):
            spec, digests[spec] = line.split()[-3:-1]
        elif line.startswith("  - "):
            survivors.append((name, fault.removesuffix(COMPARED), fault.endswith(COMPARED)))
        else:
            same.append((name, fault))
    return {
        spec: SpecOnPage(
            row,
            tuple((fault, caught) for name, fault, caught in survivors if name == spec),
            tuple(fault for name, fault in same if name == spec),
            digests.get(spec, ""),
        )
        for spec, row in numbers.items()
    }


def _older(entries: Mapping[str, SpecOnPage]) -> Iterator[str]:
    """The specs of which the page says nothing, or something of what they were."""
    old = [name for name in SPECS if name not in entries or entries[name].digest != operators.text_digest(SPECS[name])]
    if old:
        yield f"{OLDER} {', '.join(old)}."


def _survivors(entries: Mapping[str, SpecOnPage]) -> Iterator[str]:
    """Those that no property catches, by the reason why that may be."""
    survive = [(ARGUED.get((name, fault), ""), name, fault, caught)
               for name, one in entries.items() for fault, caught in one.survivors]  # fmt: skip
    survive.sort(key=lambda one: one[0])
    for why, some in groupby(survive, key=lambda one: one[0]):
        yield f"- {why or 'No reason is given yet'}:"
        yield from (f"  - {name}: {_escaped(fault)}{COMPARED * caught}" for _, name, fault, caught in some)


COMPARED = " (by comparison)"
OLDER = "Not judged since they came, or since their text changed:"
TEXT = "<!-- text of"  # a spec, and the digest of what it was when it was judged


def _escaped(fault: str) -> str:
    return fault.replace("_", "\\_")


def share_caught(found: Sequence[MutantVerdict]) -> float:
    """The share of the faults that properties alone catch, of those that make a difference."""
    return _share(_numbers(found))


def main() -> int:
    """Plant every fault in every spec, and tell what catches each.

    1 where properties catch fewer than they must, or an argument for what they do not catch is missing or idle.
    """
    parser = command("gapless.properties.faults.spec_mutants", main.__doc__)
    parser.add_argument("spec", nargs="*", help="of these specs only")
    parser.add_argument("--sample", type=int, default=0, help="only so many faults, the same ones each time")
    parser.add_argument("--write", action="store_true", help="write them into properties/faults/spec_mutants.md")
    parser.add_argument(
        "--all", action="store_true", help="tell of every fault, not only of those that no property catches"
    )
    parser.add_argument("--properties", action="store_true", help="compare only what no property catches")
    asked = parser.parse_args()
    out = Console(soft_wrap=True, highlight=False)
    found = []
    for one in judged(
        sample(asked.sample) if asked.sample else every(asked.spec), asked.jobs, compared=not asked.properties
    ):
        found.append(one)
        if asked.all or not one.by_properties:
            fate = ", ".join(f"{check}: {getattr(one, check)}" for check in one.by)
            why = "proved to make no difference" if one.same else "NO PROPERTY CATCHES IT"
            argued = f" (argued: {one.why})" if one.why else ""
            out.print(f"{one.spec}: {one.fault.name}: {fate or why}{argued}", markup=False)
    out.print(table(found))
    if asked.write:
        before = (ROOT / PAGE).read_text(encoding="utf-8")
        (ROOT / PAGE).write_text(page(found, before), encoding="utf-8")
    wrong = wrong_arguments(found)
    for line in wrong:
        out.print(line, markup=False)
    share = share_caught(found)
    out.print(f"{share:.1%} of the faults that make a difference are caught by properties; {BAR:.0%} must be.")
    return 1 if share < BAR or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
