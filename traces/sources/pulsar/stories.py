"""The story of a transaction that departs: its own steps, and the loads and unloads of its coordinator."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from gapless.spec.catalog import State, waiving
from gapless.spec.language import Refused
from gapless.traces.judging.columns import Traces
from gapless.traces.judging.tallies import Suspect, Tally
from gapless.traces.options import Options
from gapless.traces.replay.exact import Departure, StoryStep, changes_of, named
from gapless.traces.replay.notation import changes
from gapless.traces.replay.possible_states import TraceEvent

STEPS = 12  # of one transaction, that a story tells of
TURNING = ("unload", "recover")  # steps of the coordinator that a story of one transaction tells of too
SEEN = ("log", "table")  # how far a transaction is: a picture shows it at every step


def extend_stories(traces: Traces, tally: Tally, options: Options) -> None:
    """Extend the story of a transaction to its whole life, with the loads of its coordinator meanwhile."""
    for signature, cluster in tally.clusters.items():
        first = cluster.first[0]
        if first.departure is not None:
            extended = _whole_life(traces, first, first.departure, options)
            tally.clusters[signature] = replace(cluster, first=(replace(first, departure=extended), *cluster.first[1:]))


def _whole_life(traces: Traces, suspect: Suspect, departure: Departure, options: Options) -> Departure:
    """Return the same departure with all steps of its subject, numbered as in the file."""
    trace = traces.names.to_pylist().index(suspect.at.trace)
    subject = named(departure.spec, departure.event).get("number")
    seen = [] if subject is None else [(name, subject) for name in SEEN if name in departure.of.maps]
    steps: deque[StoryStep] = deque(maxlen=STEPS)
    turns: dict[str, StoryStep] = {}
    for taken, before, after, claimed in _path(traces, trace, suspect.at.row, options):
        about = named(departure.spec, taken.event).get("number")
        made = changes_of(seen, before, after)
        step = StoryStep(taken.row + 1, taken.event, (), taken.outcome, claimed, made)
        if taken.event[0] in TURNING and steps:
            turns[taken.event[0]] = replace(step, changes=changes(before, after))
        elif subject is not None and about == subject:
            steps.append(replace(step, changes=changes(before, after)))
    rows = [taken.row for taken in traces.taken(trace)]
    needed = [replace(step, number=rows[step.number - 1] + 1) for step in departure.steps]
    if subject is None:
        chosen = needed
    else:
        by_number = {step.number: step for step in (*needed, *turns.values(), *steps)}
        chosen = [by_number[number] for number in sorted(by_number)]
    return replace(
        departure, number=suspect.at.row + 1, steps=tuple(chosen), left_out=departure.number - 1 - len(chosen)
    )


def _path(traces: Traces, trace: int, row: int, options: Options) -> Iterator[tuple[TraceEvent, State, State, bool]]:
    """Yield the events before `row` that were taken.

    Each with the states before and after, and True if it was taken over.
    """
    spec, state = traces.spec, traces.spec.initial
    for taken in traces.taken(trace):
        if taken.row >= row:
            return
        if taken.outcome == "refused":
            continue
        claimed = False
        try:
            with waiving(spec.name, options.ignored):
                after, _ = spec.step(state, taken.event[0], named(spec.name, taken.event), options.profile)
        except Refused as refusal:
            after = spec.taken_over(state, taken.event[0], named(spec.name, taken.event), refusal.rule)
            if after is None or taken.outcome == "unknown":  # it was not taken
                continue
            claimed = True
        yield taken, state, after, claimed
        state = after
