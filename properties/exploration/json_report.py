"""Results of exploration as JSON, for `--json`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict, Field

from gapless.properties.exploration.graph import called, differing
from gapless.properties.exploration.liveness import stories
from gapless.properties.exploration.liveness.eventually import ClaimResult, ClaimVerdict
from gapless.properties.exploration.search import Exploration, SearchResult
from gapless.properties.exploration.summary import TRAPS, again, story


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Trap(_Model):
    """States that are never left again, or one without a possible step, and a shortest path there."""

    size: int
    state: dict[str, int | str] = Field(description="what differs from the state where exploration began")
    path: list[str]


class ClaimReport(_Model):
    """A claim of what happens in the end."""

    sentence: str
    assumes: list[str] = Field(description="who takes which step in the end, and which steps come to an end")
    result: ClaimVerdict
    needs_assumptions: bool | None = Field(description="of what holds: some run refutes it without its assumptions")
    why: str = Field(description="of what is undecided")
    story: list[str] = Field(description="the run that refutes it, a line each")


class SpecReport(_Model):
    """The exploration of one spec."""

    spec: str
    bound: str
    profile: str | None
    result: SearchResult
    states: int = Field(description="states within the bound")
    unfolded: int = Field(description="the same, with those that symmetry leaves out; equal without symmetry")
    beyond: int = Field(description="states next to them that the bound cuts off: judged, and not left")
    transitions: int = Field(description="accepted steps between states within the bound")
    tried: int = Field(description="accepted and refused steps")
    accepted: dict[str, int] = Field(description="by action and deviation")
    never: list[str] = Field(description="steps that were never accepted")
    deadlocks: list[Trap]
    deadlocks_total: int
    terminal: list[Trap]
    terminal_total: int
    claims: list[ClaimReport] = Field(description="decided where no property is broken")
    native: bool = Field(description="explored by native code, which finds the same as the plain functions")
    story: list[str] = Field(description="the shortest way to what is broken, a line each")
    seconds: float


class WalkReport(_Model):
    """The walks through the states of one spec."""

    spec: str
    bound: str
    seed: int
    walks: int
    steps: int
    states: int = Field(description="different states that were met; there may be more")
    accepted: dict[str, int] = Field(description="by step")
    refused: dict[str, dict[str, int]] = Field(description="by step, and by rule")
    never_taken: list[str]
    never_refused: list[str] = Field(description="steps, each with a rule that refused it in no walk")
    path: list[str] = Field(description="the calls that break a property, shortened; empty if none is broken")
    story: list[str]


class ExplorationReport(_Model):
    """The exploration of several specs; `schema` is raised when a key changes its meaning or goes."""

    schema_: int = Field(1, alias="schema")
    explored: list[SpecReport]
    walks: list[WalkReport] = Field(default=[], description="with --walks, in place of the others")


def report(found: Iterable[Exploration]) -> ExplorationReport:
    """The content of `--json`."""
    return ExplorationReport(schema=1, explored=[_spec_report(one) for one in found])


def _spec_report(one: Exploration) -> SpecReport:
    graph = one.graph
    return SpecReport(
        spec=one.spec.name,
        bound=one.bound.says,
        profile=one.profile,
        result=one.result,
        states=one.states,
        unfolded=one.unfolded,
        beyond=len(graph.beyond),
        transitions=one.transitions,
        tried=one.tried,
        accepted=dict(one.accepted),
        never=list(one.never),
        deadlocks=[_trap(one, [state]) for state in graph.deadlocks[:TRAPS]],
        deadlocks_total=len(graph.deadlocks),
        terminal=[_trap(one, states) for states in graph.terminal[:TRAPS]],
        terminal_total=len(graph.terminal),
        claims=[_claim_report(one, claim) for claim in one.claims],
        native=one.native,
        story=story(one),
        seconds=round(one.seconds, 3),
    )


def _claim_report(one: Exploration, found: ClaimResult) -> ClaimReport:
    assumes = list(found.claim.assumes)
    return ClaimReport(
        sentence=found.claim.sentence,
        assumes=assumes,
        result=found.verdict,
        needs_assumptions=found.without is not None if assumes and found.verdict == "holds" else None,
        why=found.why,
        story=stories.story(one.spec, one.graph, found, again(one)),
    )


def _trap(one: Exploration, states: Sequence[int]) -> Trap:
    calls = one.graph.path(one.graph.way(states[0]))
    state = differing(one.spec.initial, one.graph.states[states[0]])
    return Trap(size=len(states), state=state, path=[called(one.spec, call) for call in calls])
