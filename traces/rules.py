"""Every rule: those that the specs state, and those about what a recorded event says beside its step."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from gapless.spec.catalog import SPECS, Rule, Spec
from gapless.traces.replay.event_rules import OF_AN_EVENT, OF_EVENTS
from gapless.traces.replay.kernels import kernel


@cache
def rules(more: tuple[Spec, ...] = ()) -> tuple[Rule, ...]:
    """All rules of our specs and of `more`, by spec and in the order of its text.

    Needs are left out that a composed spec always meets.
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


def is_a_need(rule: Rule) -> bool:
    """Whether it is a need of a step, and not an invariant, say."""
    return rule.kind.startswith("need of")


@cache
def _of_steps(spec: Spec) -> Mapping[str, frozenset[str]]:
    """The ids of the needs of every step of a spec, by SPEC.STEP, as coverage has it."""
    found: dict[str, set[str]] = {}
    for rule in _rules_of(spec):
        if is_a_need(rule):
            for step in rule.otherwise:
                found.setdefault(f"{rule.spec}.{step}", set()).add(rule.id)
    return {step: frozenset(ids) for step, ids in found.items()}


def judged(
    coverage: Mapping[str, int], ignored: frozenset[str], more: tuple[Spec, ...] = ()
) -> tuple[frozenset[str], dict[str, int]]:
    """The rules that were held against something, and how many events by spec were held against none.

    A step that was taken was held against all its needs, but for those that do not count.
    """
    held: set[str] = set()
    unheld: dict[str, int] = {}
    specs = {spec.name: spec for spec in (*SPECS.values(), *more)}
    for step, count in coverage.items():
        name = step.partition(".")[0]
        needs = _of_steps(specs[name]) if name in specs else {}
        if count and (left := needs.get(step, frozenset()) - ignored):
            held |= left
        else:
            unheld[name] = unheld.get(name, 0) + count
    return frozenset(held), unheld


def established(rule: Rule) -> str:
    """How we know whether the rule holds."""
    if rule.kind in ("invariant", "step property", "enabled") and rule.spec not in SPECS:
        return f"gapless prove {rule.source}, from any state; gapless explore, within bounds; nothing in a check"
    if rule.kind in ("invariant", "step property"):
        return "Z3, from any state; exploration within bounds; Hypothesis, on random walks"
    if rule.kind == OF_AN_EVENT:
        return "exact replay of event traces that record refusals, or what was seen"
    return "replay of every event, compiled and exact"
