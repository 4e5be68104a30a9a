"""All rules: those of the specs, and those about the outcome and observations of an event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from gapless.spec.catalog import SPECS, Rule, Spec, id_of
from gapless.traces.replay.event_rules import OF_AN_EVENT, OF_EVENTS
from gapless.traces.replay.kernels import kernel


@cache
def rules(more: tuple[Spec, ...] = ()) -> tuple[Rule, ...]:
    """List the rules of our specs and of `more`, by spec and in the order of its text.

    Needs that a composed spec always meets are left out.
    """
    return tuple(rule for spec in (*SPECS.values(), *more) for rule in _rules_of(spec))


@cache
def _rules_of(spec: Spec) -> tuple[Rule, ...]:
    can_fail = {reason.rule for reason in kernel(spec).reasons}
    found = [rule for rule in spec.rules.values() if not is_a_need(rule) or rule.id in can_fail]
    found += (
        Rule(f"{spec.name}/{name}", OF_AN_EVENT, because, {"": otherwise}, "docs/design.md#events (outcome, saw)")
        for name, (because, otherwise) in OF_EVENTS.items()
    )
    return tuple(found)


def claimed(spec: Spec) -> Iterator[Rule]:
    """List the claims in a spec's own file as rules, and the specs that it refines: no check looks at them."""
    for claim in getattr(spec.module, "CLAIMS", ()):
        name = f"{spec.name}/{id_of(claim.sentence.replace(' ', '_').replace(',', ''))}"
        yield Rule(name, RANKED if claim.rank else UNRANKED, claim.sentence, {"": claim.otherwise}, spec.source)
    for one in getattr(spec.module, "REFINES", ()):
        because = f"each step is a step of {one.spec}, or changes nothing there"
        yield Rule(f"{spec.name}/refines-{Path(one.spec).stem}", REFINES, because, {"": ""}, spec.source)


RANKED, UNRANKED, REFINES = "claim, with a rank", "claim", "refinement"


def is_a_need(rule: Rule) -> bool:
    """True if it is a need of a step, and not, for example, an invariant."""
    return rule.kind.startswith("need of")


@cache
def _of_steps(spec: Spec) -> Mapping[str, frozenset[str]]:
    """Return the ids of the needs of every step of a spec, by SPEC.STEP, as coverage has it."""
    found: dict[str, set[str]] = {}
    for rule in _rules_of(spec):
        if is_a_need(rule):
            for step in rule.otherwise:
                found.setdefault(f"{rule.spec}.{step}", set()).add(rule.id)
    return {step: frozenset(ids) for step, ids in found.items()}


def judged(
    coverage: Mapping[str, int], ignored: frozenset[str], more: tuple[Spec, ...] = ()
) -> tuple[frozenset[str], dict[str, int]]:
    """Return the rules that were checked, and by spec the number of events without a checked rule.

    A step that was taken was checked for all its needs, except ignored ones.
    """
    checked: set[str] = set()
    unchecked: dict[str, int] = {}
    specs = {**SPECS, **{spec.name: spec for spec in more}} if more else SPECS
    for step, count in coverage.items():
        name = step.partition(".")[0]
        needs = _of_steps(specs[name]) if name in specs else {}
        if count and (left := needs.get(step, frozenset()) - ignored):
            checked |= left
        else:
            unchecked[name] = unchecked.get(name, 0) + count
    return frozenset(checked), unchecked


def established(rule: Rule) -> str:
    """State how we know that the rule is right."""
    if rule.kind in ("invariant", "step property", "enabled") and rule.spec not in SPECS:
        return f"gapless prove {rule.source}, from any state; gapless explore, within bounds; nothing in a check"
    if rule.kind in ("invariant", "step property"):
        return "Z3, from any state; exploration within bounds; Hypothesis, on random walks"
    if rule.kind in (RANKED, UNRANKED):
        by_rank = f"; gapless prove {rule.source}, by rank" * (rule.kind == RANKED)
        return f"gapless explore {rule.source}, on all states within the bound{by_rank}; nothing in a check"
    if rule.kind == REFINES:
        return f"gapless prove {rule.source}, from any state; nothing in a check"
    if rule.kind == OF_AN_EVENT:
        return "exact replay of event traces that record refusals, or what was seen"
    return "replay of every event, compiled and exact"
