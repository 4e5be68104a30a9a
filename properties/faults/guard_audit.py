"""The guard audit: every need of every step is dropped in turn, and some property must break.

A need that can be dropped without harm is either not needed, or stays for a reason. Two reasons are found mechanically:
it judges what the event alone says, which leaves no mark in any state, so that the need itself is the rule; or other
needs refuse whatever it refuses, and it is there to say better what is wrong. All others are argued, one by one, below.
"""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, cast

import z3

from gapless.properties.campaign import command
from gapless.properties.faults import operators
from gapless.properties.processes import workers
from gapless.properties.proof import counterexamples, equivalence, induction, symbolic
from gapless.properties.proof.induction import CAN_HAPPEN, Obligation, Step, ask, theory
from gapless.properties.proof.symbolic import State, UnknownMap, Way
from gapless.spec.catalog import SPECS, Spec, needs
from gapless.spec.language import Refused
from gapless.spec.reading.checking import checked

WINDOW, VALUES = range(-1, 4), 2**32  # keys and numbers among which what breaks is looked for
WORK = 4_000_000  # that a proof may cost that a need makes no difference

Why = Literal["load-bearing", "judges the event alone", "tells an anomaly", "implied", "argued", "unneeded"]

NO_PARENT = "the state does not keep which version a version was made of: the need is the only judge of it"
OF_ITS_PART = "it is a need of op_batch's or checkpoint's own step, and is audited there: of one half, less is kept"
ARGUED: dict[tuple[str, str, str], str] = {
    ("check_service", "enqueue", "no-op-names-the-half-yet"): OF_ITS_PART,
    ("check_service", "write", "op-names-what-waits"): OF_ITS_PART,
    ("check_service", "resolve", "op-that-resolves-the-half-reaches-it"): OF_ITS_PART,
    ("check_service", "advance_ops", "op-cursor-passes-no-op-that-is-still-needed"): OF_ITS_PART,
    ("permits", "rest_in_a_deadlock", "step-applies-here"): (
        "the deviation is tried only where `rest` refuses, and there it always applies"
    ),
    ("producer", "go_on_behind_a_lost_marker", "step-applies-here"): (
        "a law says where it applies: in a later epoch, where a transaction is open"
    ),
    ("queue", "index_batch", "message-of-the-entry-is-in-the-log"): (
        "it is a need of `index`, and is audited there: a batch that ends where the queue ends begins before it"
    ),
    ("transaction", "put_back_after_a_decision", "half-that-is-put-back-is-in-the-log"): NO_PARENT,
    ("transaction", "put_back_after_parking", "half-that-is-put-back-is-in-the-log"): NO_PARENT,
    ("transaction", "put_back_an_old_version", "half-that-is-put-back-is-in-the-log"): NO_PARENT,
}
"""Of a spec, a step and a rule: why it stays though no property breaks without it, where only a human can say."""


@dataclass(frozen=True)
class Guard:
    """One need of one step, and what breaks without it, or why it stays all the same."""

    spec: str
    step: str
    rule: str
    why: Why
    says: tuple[str, ...]  # the properties that break; else the needs that refuse in its place, or the argument


def audit(spec: Spec) -> Iterator[Guard]:
    """Every need of every action and deviation. Raises ForeignWords."""
    for step in steps(checked(spec)):
        for rule in step.needs:
            yield step.without(rule)


def steps(spec: Spec) -> list[_AuditedStep]:
    """The actions and deviations of a spec."""
    return [_AuditedStep(spec, step) for step in spec.steps]


@dataclass(frozen=True)
class _AuditedStep:
    """One step, with all its needs. A deviation is taken where only the weak invariants are left."""

    spec: Spec
    step: Step

    @property
    def weak(self) -> bool:
        """True if it is a deviation."""
        return self.step not in self.spec.actions.values()

    @cached_property
    def obligations(self) -> Sequence[Sequence[Obligation]]:
        """The obligations of the step, but for its possibility: by the design, and with deviations."""
        found = [] if self.weak else [tuple(self.kept(weak=False))]
        if self.spec.deviations:
            others = (o for o in induction.exclusive(self.spec) if self.step in o.steps)
            found.append((*self.kept(weak=True), *others))
        return found

    def kept(self, *, weak: bool) -> Iterator[Obligation]:
        """The properties that it must keep."""
        every = induction.inductive(self.spec, weak=weak, only=(self.step,))
        return (obligation for obligation in every if obligation.invariant != CAN_HAPPEN)

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """Its needs, in the order of the text, those that are always met here among them."""
        return tuple(dict.fromkeys(need.rule for need in needs(self.step)))

    def without(self, rule: str) -> Guard:  # noqa: PLR0911 - a reason each
        """The consequence of dropping a need."""

        def guard(why: Why, *says: str) -> Guard:
            return Guard(self.spec.name, self.step.__name__, rule, why, says)

        change = _Change(self.spec, self.step, rule)
        if not change.refusals:
            return guard("implied")
        broken = self.broken(rule)
        if broken:
            return guard("load-bearing", *(name.replace("_", " ") for name in broken))
        if change.makes_no_difference():
            return guard("implied", *change.refused_instead())
        if change.leaves_no_mark():
            return guard("judges the event alone")
        if change.hides_an_anomaly():
            return guard("tells an anomaly")
        if noticed := self.noticed(rule):
            return guard("load-bearing", *(name.replace("_", " ") for name in noticed))
        argument = ARGUED.get((self.spec.name, self.step.__name__, rule))
        return guard("argued", argument) if argument else guard("unneeded")

    def noticed(self, rule: str) -> tuple[str, ...]:
        """The laws of ENABLED that break without the need in its function."""
        for fault in operators.faults(self.spec):
            behind = operators.behind_steps(self.spec).get(fault.function, frozenset())
            if fault.says == f"without {rule}" and self.step.__name__ in behind:
                asked = induction.enabled(operators.planted(self.spec, fault))
                return tuple(o.invariant for o in asked if counterexamples.refuted([o], WINDOW, VALUES))
        return ()

    def broken(self, rule: str) -> tuple[str, ...]:
        """The properties that break without a need, each shown by an example; by the design, if any does."""
        for obligations in self.obligations:
            asked = [replace(o, dropped=(self.step, rule)) for o in obligations]
            if counterexamples.refuted(asked, WINDOW, VALUES):
                return tuple(dict.fromkeys(o.invariant for o in asked if counterexamples.refuted([o], WINDOW, VALUES)))
        return ()


class _Change:
    """A step with and without a need, wherever what is left of the invariants holds."""

    def __init__(self, spec: Spec, step: Step, rule: str) -> None:
        weak = bool(spec.deviations)
        self.spec = spec
        self.step = step
        self.rule = rule
        self.theories = partial(theory, spec, weak), partial(theory, spec, weak, dropped=(step, rule))
        self.here, self.there = (one(None) for one in self.theories)
        self.known = (*self.here.known, *self.here.tried(step))

    @property
    def refusals(self) -> list[Way]:
        """The ways on which the need refuses."""
        ways = self.here.ways(self.step)[1]
        return [w for w in ways if isinstance(w.outcome, Refused) and w.outcome.rule == self.rule]

    def makes_no_difference(self) -> bool:
        """True if the step is proved to accept the same without the need."""
        return equivalence.same(self.step, self.step, *self.theories)

    def refused_instead(self) -> tuple[str, ...]:
        """The needs that refuse in its place; none where it is always met."""
        refused = z3.Or([z3.And(way.facts) for way in self.refusals])
        found: dict[str, None] = {}
        for way in reversed(self.there.ways(self.step)[1]):
            new = isinstance(way.outcome, Refused) and way.outcome.rule not in found
            if new and ask((*self.known, refused, *way.facts), work=WORK).verdict != "unsat":
                found[way.outcome.rule] = None
        return tuple(found)

    def leaves_no_mark(self) -> bool:
        """True if all that it lets through could have come about lawfully, from another event.

        So it is where the effect does not use what the event claims, and with another claim the step is accepted.
        """
        args, ways = self.here.ways(self.step)
        outcomes = [way.outcome for way in ways if way.accepted]
        if all(state is self.here.before for state in outcomes):
            return True
        used = set[str]().union(*(_constants(term) for state in outcomes for term in _terms(state)))
        claims = [value.term for value in args.values() if str(value.term) not in used]
        others = [z3.FreshConst(claim.sort(), "other") for claim in claims]
        lawful = z3.substitute(symbolic.taken(ways), *zip(claims, others, strict=True))
        never = z3.ForAll(others, z3.Not(lawful)) if others else z3.Not(lawful)
        return ask((*self.known, symbolic.taken(self.there.ways(self.step)[1]), never), work=WORK).verdict == "unsat"

    def hides_an_anomaly(self) -> bool:
        """True if all that it lets through is a deviation, which would then be lawful and uncounted."""
        stand_ins = [d.step for d in self.spec.deviations if d.instead_of is self.step]
        others = [z3.Not(symbolic.taken(self.here.ways(step)[1])) for step in stand_ins]
        more = (symbolic.taken(self.there.ways(self.step)[1]), z3.Not(symbolic.taken(self.here.ways(self.step)[1])))
        return bool(stand_ins) and ask((*self.known, *more, *others), work=WORK).verdict == "unsat"


def _terms(state: State) -> Iterator[Any]:
    for name in state.__dataclass_fields__:
        value = getattr(state, name)
        yield value.term if isinstance(value, UnknownMap) else symbolic.number(value)


def _constants(term: Any) -> set[str]:
    """The names of what is unknown in a term."""
    if z3.is_quantifier(term):
        return _constants(term.body())
    if z3.is_const(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED:
        return {str(term)}
    return set[str]().union(*map(_constants, term.children())) if z3.is_app(term) else set()


# -- the page ------------------------------------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[2]
PAGE = Path("properties/faults/guards.md")
BEGIN, END = "<!-- made by python -m gapless.properties.faults.guard_audit --write -->\n", "<!-- end -->\n"
COLUMNS: dict[Why, str] = {
    "load-bearing": "load-bearing",
    "judges the event alone": "judge the event alone",
    "tells an anomaly": "tell an anomaly",
    "implied": "implied",
    "argued": "argued",
}

INTRODUCTION = """# Every guard, and what breaks without it

Each rule of each step is dropped in turn; `step-applies-here` stands for all `applies` of a step together, and
`environment-keeps-its-promise` for all that it assumes.
Made by `python -m gapless.properties.faults.guard_audit --write`, which looks again at the specs that have changed.

- **load-bearing**: without it these properties break; Z3 finds an example of each, and the plain functions confirm it.
  What `ENABLED` says is asked where no other property breaks.
- **judges the event alone**: it leaves no mark in any state, for what it lets through is what the step would have come
  to, had the event claimed something else. The need itself is the rule.
- **tells an anomaly**: what it refuses is what a deviation stands for. Without it that would count as lawful.
- **implied**: proved: the step accepts the same without it, for these needs refuse instead; it says better what is
  wrong. Where none is named, it is always met.
- **argued**: no property breaks, and why it stays all the same takes a sentence.
"""


@dataclass(frozen=True)
class GuardAudit:
    """The guards of a spec, and the digest of the text that they are the guards of."""

    digest: str
    guards: tuple[Guard, ...]


def digest(spec: Spec) -> str:
    """The digest of an audit's input: change the code of a spec or its parts, and the audit is stale."""
    argued = sorted(item for item in ARGUED.items() if item[0][0] == spec.name)
    return hashlib.sha256(f"{operators.text_digest(spec)} {argued}".encode()).hexdigest()[:16]


def page(found: Mapping[str, GuardAudit]) -> str:
    """All guards, by spec."""
    parts = [INTRODUCTION]
    for name, audited in found.items():
        rows = "\n".join(f"| {g.step} | {g.rule} | {g.why} | {'; '.join(g.says)} |" for g in audited.guards)
        parts.append(f"## {name}\n\n<!-- {audited.digest} -->\n\n| step | rule | | |\n|---|---|---|---|\n{rows}\n")
    return "\n".join(parts)


def read(text: str) -> dict[str, GuardAudit]:
    """The guards of a page."""
    found: dict[str, GuardAudit] = {}
    for part in text.split("\n## ")[1:]:
        name, mark, *rows = [line for line in part.splitlines() if line]
        cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]
        guards = (
            Guard(name, step, need, cast("Why", why), tuple(filter(None, says.split("; "))))
            for step, need, why, says in cells
        )
        found[name] = GuardAudit(mark.split()[1], tuple(guards))
    return found


def summary(found: Mapping[str, GuardAudit]) -> str:
    """The number of guards of each spec by verdict, as a table."""
    lines = ["| spec | needs | " + " | ".join(COLUMNS.values()) + " |", "|---|" + "--:|" * (len(COLUMNS) + 1)]
    total: Counter[str] = Counter()
    for name, audited in found.items():
        counts = Counter(guard.why for guard in audited.guards)
        total += counts
        lines.append(_line(name, counts))
    return "\n".join([*lines, _line("all", total)]) + "\n"


def _line(name: str, counts: Counter[Any]) -> str:
    return f"| {name} | {counts.total()} | " + " | ".join(str(counts[why]) for why in COLUMNS) + " |"


def between_marks(text: str, what: str) -> str:
    """The text with `what` between the marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{what}\n{END}{after}"


def _audited(name: str) -> GuardAudit:
    spec = SPECS[name]
    return GuardAudit(digest(spec), tuple(audit(spec)))


def main() -> int:
    """Audit every spec that has changed since the page was made, and tell what is not needed."""
    parser = command("gapless.properties.faults.guard_audit", main.__doc__)
    parser.add_argument(
        "--write", action="store_true", help="write properties/faults/guards.md and the table of properties/README.md"
    )
    parser.add_argument("--fresh", action="store_true", help="audit the specs that have not changed too")
    asked = parser.parse_args()
    old = read((ROOT / PAGE).read_text(encoding="utf-8")) if (ROOT / PAGE).exists() and not asked.fresh else {}
    stale = [name for name, spec in SPECS.items() if name not in old or old[name].digest != digest(spec)]
    with workers(asked.jobs) as pool:
        new = dict(zip(stale, pool.map(_audited, stale), strict=True))
    found = {name: new.get(name) or old[name] for name in SPECS}
    if asked.write:
        readme = ROOT / "properties" / "README.md"
        (ROOT / PAGE).write_text(page(found), encoding="utf-8")
        readme.write_text(between_marks(readme.read_text(encoding="utf-8"), summary(found)), encoding="utf-8")
    unneeded = [g for audited in found.values() for g in audited.guards if g.why == "unneeded"]
    sys.stdout.write(summary(found))
    for g in unneeded:
        sys.stdout.write(f"{g.spec}: {g.step}: nothing breaks without “{g.rule}”: strengthen the spec, or drop it\n")
    return 1 if unneeded else 0


if __name__ == "__main__":
    sys.exit(main())
