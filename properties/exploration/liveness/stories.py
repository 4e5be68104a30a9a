"""Claims for users: the run that refutes one, as a way to a loop, and what is known of the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from gapless.properties.exploration.graph import Call, StateGraph, called, differing
from gapless.properties.exploration.liveness.eventually import ClaimResult
from gapless.properties.exploration.liveness.lasso import Lasso
from gapless.spec.catalog import Spec
from gapless.traces.replay.notation import changes, changes_text, column, values_text
from gapless.traces.replay.provenance import broken_for

SHOWN = 6  # calls of a loop that are named in one line


def story(spec: Spec, graph: StateGraph, found: ClaimResult, again: str) -> list[str]:
    """The run that refutes a claim, with what each step changes; empty where none does."""
    lasso, claim = found.lasso, found.claim
    if lasso is None:
        return []
    states = [graph.states[number] for number in (*lasso.stem, *lasso.loop[1:])]
    calls = (*lasso.stem_calls, *lasso.loop_calls)
    lines = _numbered(spec, calls, [changes_text(changes(a, b)) for a, b in pairwise(states)])
    stem = len(lasso.stem_calls)
    at, here = values_text(found.witness), states[stem]
    looked_at = broken_for(claim.done, [here], _given(found, claim.done)) or differing(spec.initial, here)
    begun = f"  In the initial state with {values_text(differing(spec.initial, states[0]))}:"
    return [
        f'{spec.name} breaks the claim "{claim.sentence}"{f", for {at}" if at else ""}.',
        "",
        *([begun] if spec.starts else []),
        *lines[:stem],
        *([f"  For ever, {_round(stem, len(calls))}:"] if lasso.loop else ["  For ever, nothing happens any more."]),
        *lines[stem:],
        "",
        _reason(found, lasso),
        f"Here: {values_text(looked_at) or 'all is as in the beginning'}.",
        f"Consequence: {claim.otherwise}.",
        f"Again: {again}",
    ]


def _round(stem: int, end: int) -> str:
    return f"step {end} again and again" if end == stem + 1 else f"steps {stem + 1} to {end} again and again"


def _numbered(spec: Spec, calls: Sequence[Call], effects: Sequence[str]) -> list[str]:
    """The steps of a run, each with what it changes."""
    steps = [(called(spec, call), effect) for call, effect in zip(calls, effects, strict=True)]
    width = column(steps)
    return [f"  {n}. {text:<{width}}   {what}" for n, (text, what) in enumerate(steps, 1)]


def _given(found: ClaimResult, function: object) -> dict[str, int]:
    """The number that a function of a claim takes, if it takes any."""
    takes = function.__code__.co_argcount > 1  # type: ignore[attr-defined]
    return dict(found.witness) if takes else {}


def _reason(found: ClaimResult, lasso: Lasso) -> str:
    """The reason why it is never done, though all that the claim assumes is so."""
    fair = _listed([step.__name__ for step in found.claim.fair])
    if not lasso.loop:
        what = f"No call of {fair}" if fair else "No step"
        return f"{what} is possible there, of those that the bound tries."
    if not fair:
        return "Some step is always taken, and it is never done."
    return f"Fair: each call of {fair} that the bound tries is taken on the way round, or is not possible somewhere."


def _listed(names: Sequence[str], last: str = " or ") -> str:
    *most, end = names or ("",)
    return f"{', '.join(most)}{last}{end}" if most else end


def remarks(spec: Spec, found: Sequence[ClaimResult]) -> Iterator[str]:
    """A line for each claim that is not refuted."""
    for one in found:
        if one.verdict == "undecided":
            yield f'{spec.name}: the claim "{one.claim.sentence}" is not decided: {one.why}.'
        if one.verdict == "holds":
            yield f"{spec.name}: in the end, {one.claim.sentence}{_assumed(spec, one)}."


def _assumed(spec: Spec, one: ClaimResult) -> str:
    """The assumptions of a claim that is true, and whether it needs them."""
    claim = one.claim
    if not claim.assumes:
        return ", in whichever order steps are taken"
    if one.without is None:
        return ", without its assumptions too: it is enough that some possible step is always taken"
    fair, ends = [step.__name__ for step in claim.fair], [step.__name__ for step in claim.disturbances]
    parts = [f"{_listed(fair, ' and ')} {'is' if len(fair) == 1 else 'are'} taken in the end"] if fair else []
    parts += [f"{_listed(ends, ' and ')} {'comes' if len(ends) == 1 else 'come'} to an end"] if ends else []
    return f", if {', and '.join(parts)}. Otherwise not: {_clipped(spec, one.without)}"


def _clipped(spec: Spec, lasso: Lasso) -> str:
    """A run in one line."""
    way = [called(spec, call) for call in lasso.stem_calls]
    before = f"after {_few(way)}, " if way else ""
    if not lasso.loop:
        return f"{before or 'in the beginning '}nothing happens any more"
    return f"{before}{_few([called(spec, call) for call in lasso.loop_calls])} for ever"


def _few(calls: Sequence[str]) -> str:
    return ", ".join(calls) if len(calls) <= SHOWN else f"{', '.join(calls[:SHOWN])} and {len(calls) - SHOWN} more"
