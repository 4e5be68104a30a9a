"""Every rule, read off the specs: its id, its sentence, what goes wrong without it, and where it comes from."""

from __future__ import annotations

import re
from functools import cache
from inspect import getdoc

from pydantic import BaseModel, ConfigDict

from gapless.spec.catalog import SPECS, rule_id
from gapless.traces.replay.kernels import kernel

REFUSED = "the broker refuses only what is not allowed"
SEEN = "what the broker saw is what its steps made"
OF_EVENTS = {  # rules about what a recorded event says beside its step, with what goes wrong without them
    REFUSED: "a client is turned away for no reason, and what it wanted done stays undone",
    SEEN: "the broker goes on from a state that its own steps do not lead to",
}


class Rule(BaseModel):
    """One rule. A *need* is a guard of a step; an *invariant* holds in every state; a *step property* across one."""

    model_config = ConfigDict(frozen=True)

    id: str
    spec: str
    kind: str
    because: str
    otherwise: str
    established: str
    source: str


@cache
def rules() -> tuple[Rule, ...]:
    """All rules, by spec and in the order of the spec's text."""
    found: dict[str, Rule] = {}
    for spec in SPECS.values():
        needs = [reason for reason in reversed(kernel(spec.name).reasons) if reason.step == reason.action]
        for reason in sorted(needs, key=lambda r: list(spec.actions).index(r.action)):
            step = spec.actions[reason.action]
            identity = rule_id(spec.name, reason.because)
            found.setdefault(
                identity,
                Rule(
                    id=identity,
                    spec=spec.name,
                    kind=f"need of {reason.action}",
                    because=reason.because,
                    otherwise=reason.otherwise,
                    established="replay of every event, compiled and exact",
                    source=_source(getdoc(step) or ""),
                ),
            )
        for deviation in spec.deviations:
            sentence = deviation.step.__name__.replace("_", " ")
            found[rule_id(spec.name, sentence)] = Rule(
                id=rule_id(spec.name, sentence),
                spec=spec.name,
                kind=f"deviation from {deviation.instead_of.__name__}, an anomaly under {_listed(deviation.profiles)}",
                because=sentence,
                otherwise="it is counted; any other profile refuses it as the action does",
                established="replay of every event, compiled and exact",
                source=deviation.seen,
            )
        for kind, group in (("invariant", spec.module.INVARIANTS), ("step property", spec.module.STEP_PROPERTIES)):
            for function in group:
                sentence = function.__name__.replace("_", " ")
                doc = getdoc(function) or ""
                found[rule_id(spec.name, sentence)] = Rule(
                    id=rule_id(spec.name, sentence),
                    spec=spec.name,
                    kind=kind,
                    because=sentence,
                    otherwise=re.sub(r"^Otherwise ", "", doc).rstrip("."),
                    established="Z3, from any state; exploration within bounds; Hypothesis, on random walks",
                    source="design section 3",
                )
        for sentence, otherwise in OF_EVENTS.items():
            found[rule_id(spec.name, sentence)] = Rule(
                id=rule_id(spec.name, sentence),
                spec=spec.name,
                kind="of recorded events",
                because=sentence,
                otherwise=otherwise,
                established="exact replay of event traces that record refusals, or what was seen",
                source="design section 4 (outcome, saw)",
            )
    return tuple(found.values())


def _listed(profiles: frozenset[str]) -> str:
    return " and ".join(sorted(profiles))


def _source(doc: str) -> str:
    """What follows *Source:* in a step's docstring."""
    match = re.search(r"Source:\s*(.*)", doc, re.DOTALL)
    return " ".join(match[1].split()).rstrip(".") if match else "design section 3"
