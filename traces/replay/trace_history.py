"""The life of one recorded trace: every step, what it changed, and what nobody saw of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gapless.spec.catalog import Spec, waiving
from gapless.traces.options import Options
from gapless.traces.replay.exact import call, named
from gapless.traces.replay.notation import BROKER_REFUSED, changes, column, told
from gapless.traces.replay.possible_states import BrokenPromise, Departs, Replay, TooMany, TraceEvent

LONGEST_HISTORY = 400  # steps that are told of one trace: the first and the last of more


def trace_history(spec: Spec, events: Sequence[TraceEvent], options: Options) -> list[str]:
    """A line for each step of a trace, up to where it departs, if it does.

    Where several states are possible, for outcomes are unknown, it is told for one that needs the fewest deviations.
    """
    lines = list(described_steps(spec, events, options, LONGEST_HISTORY // 2))
    width = column([(call, what) for _, call, what in lines])
    numbered = [f"{number:>3}. {call:<{width}}   {what}".rstrip() for number, call, what in lines]
    if not lines or lines[-1][0] == len(lines):
        return numbered
    left_out = f"     {lines[-1][0] - len(lines):,} steps are left out here"
    return [*numbered[: LONGEST_HISTORY // 2], left_out, *numbered[LONGEST_HISTORY // 2 :]]


def described_steps(
    spec: Spec, events: Sequence[TraceEvent], options: Options, ends: int | None = None
) -> Iterator[tuple[int, str, str]]:
    """Every step up to where the trace departs: its number from 1, the call, and what is told of it.

    `ends`: only so many of the first and the last are told. What a step changes is found by looking through all of a
    Map, so that to tell of all steps of a long trace takes time that grows with its square.
    """
    replayed = Replay(spec, options)
    for taken in events:
        try:
            replayed.take(taken)
        except (Departs, TooMany, BrokenPromise):
            break
    undone, state = replayed.worlds[0].not_done, spec.initial
    for number, taken in enumerate(events[: replayed.number]):
        is_told = ends is None or not ends <= number < replayed.number - ends
        what, after = "", state
        if taken.outcome == "refused":
            what = BROKER_REFUSED
        elif number in undone:
            what = "its outcome is unknown; here it did not happen"
        else:
            with waiving(spec.name, options.ignored):
                after, deviation = spec.step(state, taken.event[0], named(spec, taken.event), options.profile)
            if is_told:
                what = told(changes(state, after)) + _beside(taken, deviation)
        state = after
        if is_told:
            yield number + 1, call(spec, taken.event), what


def _beside(taken: TraceEvent, deviation: str | None) -> str:
    """What is to be known of a step beside its changes."""
    notes = {
        "unknown": "its outcome is unknown; here it happened",
        "inferred": "inferred from later events",
    }
    beside = [note for note in (notes.get(taken.outcome), deviation and deviation.replace("_", " ")) if note]
    return f" ({'; '.join(beside)})" if beside else ""
