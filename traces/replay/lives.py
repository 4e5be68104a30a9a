"""The life of one recorded trace: every step, what it changed, and what nobody saw of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gapless.spec.catalog import Spec, waiving
from gapless.traces.options import Options
from gapless.traces.replay.exact import call, named
from gapless.traces.replay.notation import changes, column, told
from gapless.traces.replay.possible_states import Departs, Replay, Taken, TooMany, Unpromised

TOLD = 400  # steps that are told of one trace: the first and the last of more


def life(spec: Spec, events: Sequence[Taken], options: Options) -> list[str]:
    """A line for each step of a trace, up to where it departs, if it does.

    Where several states are possible, for outcomes are unknown, it is told for one that needs the fewest deviations.
    """
    lines = list(told_steps(spec, events, options))
    width = column(lines)
    numbered = [f"{n:>3}. {text:<{width}}   {what}".rstrip() for n, (text, what) in enumerate(lines, 1)]
    if len(numbered) <= TOLD:
        return numbered
    left_out = f"     {len(numbered) - TOLD:,} steps are left out here"
    return [*numbered[: TOLD // 2], left_out, *numbered[-TOLD // 2 :]]


def told_steps(spec: Spec, events: Sequence[Taken], options: Options) -> Iterator[tuple[str, str]]:
    """Every step up to where the trace departs, as a call, and what is told of it."""
    replayed = Replay(spec, options)
    for taken in events:
        try:
            replayed.take(taken)
        except (Departs, TooMany, Unpromised):
            break
    undone, state = replayed.worlds[0].not_done, spec.initial
    for number, taken in enumerate(events[: replayed.number]):
        text = call(spec, taken.event)
        if taken.outcome == "refused":
            yield text, "the broker refused it, and so does the model"
        elif number in undone:
            yield text, "nobody was told what came of it; here it did not happen"
        else:
            with waiving(spec.name, options.ignored):
                after, deviation = spec.step(state, taken.event[0], named(spec, taken.event), options.profile)
            yield text, told(changes(state, after)) + _beside(taken, deviation)
            state = after


def _beside(taken: Taken, deviation: str | None) -> str:
    """What is to be known of a step beside its changes."""
    notes = {
        "unknown": "nobody was told what came of it; here it happened",
        "inferred": "nobody saw it; what came after shows it",
    }
    beside = [note for note in (notes.get(taken.outcome), deviation and deviation.replace("_", " ")) if note]
    return f" ({'; '.join(beside)})" if beside else ""
