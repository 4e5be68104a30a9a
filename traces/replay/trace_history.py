"""The history of one recorded trace: every step, its changes, and the outcomes that were not observed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gapless.spec.catalog import Spec, waiving
from gapless.traces.options import Options
from gapless.traces.replay.exact import call, named
from gapless.traces.replay.notation import BROKER_REFUSED, changes, changes_text, column
from gapless.traces.replay.possible_states import BrokenPromise, Departs, Replay, TooMany, TraceEvent

LONGEST_HISTORY = 400  # steps shown of one trace: the first and the last of more


def trace_history(spec: Spec, events: Sequence[TraceEvent], options: Options) -> list[str]:
    """Return a line for each step of a trace, up to where it departs, if it does.

    If outcomes are unknown, several states are possible; the history is for one with the fewest deviations.
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
    """Yield every step up to where the trace departs: its number from 1, the call, and its result.

    `ends`: only so many of the first and the last. To find the changes of a step, all of a Map is read, so that the
    time for all steps of a long trace grows with its square.
    """
    replayed = Replay(spec, options)
    for taken in events:
        try:
            replayed.take(taken)
        except (Departs, TooMany, BrokenPromise):
            break
    undone, state = replayed.worlds[0].not_done, spec.initial
    for number, taken in enumerate(events[: replayed.number]):
        is_shown = ends is None or not ends <= number < replayed.number - ends
        what, after = "", state
        if taken.outcome == "refused":
            what = BROKER_REFUSED
        elif number in undone:
            what = "its outcome is unknown; here it did not happen"
        else:
            with waiving(spec.name, options.ignored):
                after, deviation = spec.step(state, taken.event[0], named(spec, taken.event), options.profile)
            if is_shown:
                what = changes_text(changes(state, after)) + _notes(taken, deviation)
        state = after
        if is_shown:
            yield number + 1, call(spec, taken.event), what


def _notes(taken: TraceEvent, deviation: str | None) -> str:
    """Return the notes on a step besides its changes."""
    sentences = {
        "unknown": "its outcome is unknown; here it happened",
        "inferred": "inferred from later events",
    }
    notes = [note for note in (sentences.get(taken.outcome), deviation and deviation.replace("_", " ")) if note]
    return f" ({'; '.join(notes)})" if notes else ""
