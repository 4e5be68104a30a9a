"""The result of random walks for users: coverage by step and rule, the shortest run that breaks something, and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gapless.properties.exploration.graph import called
from gapless.properties.exploration.json_report import WalkReport
from gapless.properties.exploration.summary import story_of, worst
from gapless.properties.exploration.walks import Walks, rules_of
from gapless.traces.problems import pasted


def report(one: Walks) -> WalkReport:
    """The content of `--json`."""
    run = one.broken
    return WalkReport(
        spec=one.spec.name,
        bound=one.bound.says,
        seed=one.seed,
        walks=one.count,
        steps=one.steps,
        states=one.met,
        accepted={name: one.coverage.accepted[name] for name in one.spec.actions},
        refused={
            name: {rule: one.coverage.refused[name, rule] for step, rule in rules_of(one.spec) if step == name}
            for name in one.spec.actions
        },
        never_taken=one.coverage.never_taken(one.spec),
        never_refused=[f"{step}: {rule}" for step, rule in one.coverage.never_refused(one.spec)],
        path=[called(one.spec, call) for call in run.broken.path] if run else [],
        story=story(one),
    )


def exit_code(found: Iterable[Walks]) -> int:
    """1 if a property is broken; else 3 if a step was never taken; 0 says that these walks broke nothing."""
    return worst(1 if one.broken else 3 if one.coverage.never_taken(one.spec) else 0 for one in found)


def story(one: Walks) -> list[str]:
    """The run that breaks a property, shortened; empty if none does."""
    if one.broken is None:
        return []
    again = f"gapless explore {pasted(one.spec.called)} --walks {one.count} --seed {one.seed}"
    return story_of(one.spec, one.broken.broken, one.broken.states, again)


def lines(one: Walks) -> Iterator[str]:
    """The lines of the report: how far it walked, how often each step was taken, and which rules refused it."""
    outcome = "a property is BROKEN" if one.broken else "nothing is broken on these walks"
    walked = f"{one.count:,} walks, {one.steps:,} steps, {one.met:,} states met (seed {one.seed})"
    yield f"{one.spec.name}: {walked}: {outcome}"
    width = max(map(len, one.spec.actions))
    for name in one.spec.actions:
        refused = ", ".join(
            f"{one.coverage.refused[step, rule]:,} by {rule}" for step, rule in rules_of(one.spec) if step == name
        )
        yield f"  {name:<{width}}  taken {one.coverage.accepted[name]:,}" + (f", refused {refused}" if refused else "")
    if never := one.coverage.never_taken(one.spec):
        yield f"{one.spec.name}: never taken: {', '.join(never)}. Nothing is known of them."
