"""Every rule: those that the specs state, and those about what a recorded event says beside its step."""

from __future__ import annotations

from functools import cache

from gapless.spec.catalog import SPECS, Rule
from gapless.traces.replay.event_rules import OF_AN_EVENT, OF_EVENTS
from gapless.traces.replay.kernels import kernel


@cache
def rules() -> tuple[Rule, ...]:
    """All rules, by spec and in the order of the spec's text; but for needs that a composed spec always meets."""
    found: list[Rule] = []
    for spec in SPECS.values():
        can_fail = {reason.rule for reason in kernel(spec.name).reasons}
        found += (rule for rule in spec.rules.values() if not is_a_need(rule) or rule.id in can_fail)
        found += (
            Rule(f"{spec.name}/{name}", OF_AN_EVENT, because, {"": otherwise}, "docs/design.md#events (outcome, saw)")
            for name, (because, otherwise) in OF_EVENTS.items()
        )
    return tuple(found)


def is_a_need(rule: Rule) -> bool:
    """Whether it is a need of a step, and not an invariant, say."""
    return rule.kind.startswith("need of")


def established(rule: Rule) -> str:
    """How we know whether the rule holds."""
    if rule.kind in ("invariant", "step property"):
        return "Z3, from any state; exploration within bounds; Hypothesis, on random walks"
    if rule.kind == OF_AN_EVENT:
        return "exact replay of event traces that record refusals, or what was seen"
    return "replay of every event, compiled and exact"
