"""The audit of a spec, ours or a user's: needs that nothing depends on, and faults that no property notices.

A proof shows that all properties are true; it does not show that they are enough. So every need is dropped in turn
(`guard_audit.py`), and faults are planted in every step (`spec_mutants.py`): where no property breaks, the spec says
too little. A fault that only a comparison with the spec as it is would show is counted apart: a proof has nothing to
compare with, so there the properties are thin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gapless.properties.faults import guard_audit, operators, spec_mutants
from gapless.properties.faults.guard_audit import Guard
from gapless.properties.faults.spec_mutants import MutantVerdict
from gapless.properties.processes import workers
from gapless.properties.proof import induction, ledger
from gapless.spec.catalog import Spec
from gapless.spec.language import Refused
from gapless.spec.reading.checking import checked

Fate = Literal["a property breaks", "only a comparison shows it", "no check notices it", "it makes no difference"]
CHUNK = 8  # faults that a process judges at a time

Progress = Callable[[int, int], None]
"""Reports how many needs and faults were looked at, and how many there are."""


class UnprovedSpec(ValueError):  # noqa: N818 - its message says all.
    """A spec does not keep its own properties: what breaks them besides says nothing."""


@dataclass(frozen=True)
class SpecAudit:
    """The findings about one spec."""

    spec: Spec
    guards: tuple[Guard, ...]
    faults: tuple[MutantVerdict, ...]

    @property
    def unneeded(self) -> list[Guard]:
        """The needs that nothing holds up."""
        return [guard for guard in self.guards if guard.why == "unneeded"]

    def of(self, fate: Fate) -> list[MutantVerdict]:
        """The faults of which this became."""
        return [one for one in self.faults if fate_of(one) == fate]

    @property
    def sound(self) -> bool:
        """True if every need is needed, and every fault is noticed."""
        return not self.unneeded and not self.of("no check notices it")


def fate_of(one: MutantVerdict) -> Fate:
    """The fate of a fault."""
    if one.caught:
        return "a property breaks" if one.by_properties else "only a comparison shows it"
    return "no check notices it" if one.makes_a_difference else "it makes no difference"


def audits(specs: Sequence[Spec], jobs: int = 2, on_progress: Progress = lambda _done, _all: None) -> list[SpecAudit]:
    """Audit specs, in so many processes. Raises ForeignWords, NotProved."""
    of_proofs = ledger.prove(specs, ledger.ProofOptions(jobs=jobs)).obligations
    for spec in specs:
        if any(entry.spec == spec.name and entry.result != "proved" for entry in of_proofs):
            raise UnprovedSpec(
                f"{spec.called} is not proved, and whatever is planted there breaks something: prove it first"
            )
    faults = {checked(spec).name: len(operators.faults(spec)) for spec in specs}
    needs = {spec.name: sum(len(step.needs) for step in guard_audit.steps(spec)) for spec in specs}
    total, done = sum(faults.values()) + sum(needs.values()), 0
    with workers(jobs) as pool:
        of_needs = {spec.name: pool.submit(_guards, spec) for spec in specs}
        of_faults = {
            spec.name: [pool.submit(_judged, spec, low, low + CHUNK) for low in range(0, faults[spec.name], CHUNK)]
            for spec in specs
        }
        waiting: list[Future[Any]] = [*of_needs.values(), *chain.from_iterable(of_faults.values())]
        for future in as_completed(waiting):
            done += len(future.result())
            on_progress(done, total)
        return [
            SpecAudit(
                spec,
                of_needs[spec.name].result(),
                tuple(chain.from_iterable(future.result() for future in of_faults[spec.name])),
            )
            for spec in specs
        ]


def _guards(spec: Spec) -> tuple[Guard, ...]:
    return tuple(guard_audit.audit(spec))


def _judged(spec: Spec, low: int, high: int) -> list[MutantVerdict]:
    found = []
    for fault in operators.faults(spec)[low:high]:
        try:
            found.append(spec_mutants.judge(spec, fault))
        except (Refused, ArithmeticError, LookupError, ValueError) as error:  # a property cannot even be asked then
            found.append(
                MutantVerdict(spec.name, fault, unproved=f"it cannot be read: {type(error).__name__}: {error}")
            )
        induction.theory.cache_clear()  # what is known of one mutant is of no use to the next
    return found


# -- as JSON -------------------------------------------------------------------------------------------------------


class _AuditModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class NeedReport(_AuditModel):
    """One need of one step."""

    step: str
    rule: str
    why: str = Field(description="why it stays; unneeded: nothing holds it up")
    says: tuple[str, ...] = Field(description="the properties that break without it; else what refuses in its place")


class FaultReport(_AuditModel):
    """One planted fault."""

    function: str
    line: int
    says: str
    fate: Fate
    by: tuple[str, ...] = Field(description="the checks that notice it")


class SpecAuditReport(_AuditModel):
    """The audit of one spec."""

    spec: str
    needs: list[NeedReport]
    faults: list[FaultReport]


class AuditReport(_AuditModel):
    """The audit of several specs; `schema` is raised when a key changes its meaning or goes."""

    schema_: int = Field(1, alias="schema")
    audits: list[SpecAuditReport]


def report(found: Sequence[SpecAudit]) -> AuditReport:
    """The content of `--json`."""
    return AuditReport(schema=1, audits=[_report(one) for one in found])


def _report(found: SpecAudit) -> SpecAuditReport:
    needs = [NeedReport(step=one.step, rule=one.rule, why=one.why, says=one.says) for one in found.guards]
    faults = [
        FaultReport(function=one.fault.function, line=one.fault.line, says=one.fault.says, fate=fate_of(one), by=one.by)
        for one in found.faults
    ]
    return SpecAuditReport(spec=found.spec.name, needs=needs, faults=faults)
