"""The replay of a story: the result of every step, and differences from what the story states."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gapless.spec.catalog import State
from gapless.spec.language import Map
from gapless.spec.reading.map_keys import element
from gapless.traces.options import Options
from gapless.traces.replay.exact import Departure, call, departed, reasons
from gapless.traces.replay.notation import FOR, column, of_field
from gapless.traces.replay.possible_states import BrokenPromise, Departs, Replay, TooMany, TraceEvent
from gapless.traces.replay.trace_history import described_steps
from gapless.traces.stories.story import FIRST_LINE, Story

HERE = "Here: "
NOT_REACHED = "not reached: the step above departs"


@dataclass(frozen=True)
class Playback:
    """The results of a story's steps. `before`: the state before the step that departs, or after the last."""

    departure: Departure | None
    becomes: tuple[str, ...]
    closing: tuple[str, ...]
    before: State


def played(story: Story) -> Playback:
    """Play the story up to its end, or to the first step that departs."""
    spec, options = story.begun, Options(profile=story.profile)
    replayed, departure, closing = Replay(spec, options), None, list[str]()
    for taken in story.steps:
        try:
            replayed.take(taken)
        except Departs as departs:
            departure = departs.departure(replayed, iter(story.steps))
            closing = list(reasons(departure, departs.also))
            break
        except BrokenPromise:
            closing = ["The environment breaks its promise here: what the system does then is not judged."]
            break
        except TooMany:
            closing = ["So many outcomes are unknown that too many states are possible here to judge it."]
            break
    becomes = [what for _, _, what in described_steps(spec, story.steps, options)]
    if len(becomes) < len(story.steps):
        becomes.append(departed(departure) if departure else "not judged")
        becomes += [NOT_REACHED] * (len(story.steps) - len(becomes))
    return Playback(departure, tuple(becomes), tuple(closing), replayed.worlds[0].state)


def differences(story: Story) -> Iterator[str]:
    """Yield a sentence for each difference between the story's statements and the results; none: it is as stated."""
    found = played(story)
    for line, becomes in zip(story.claims, found.becomes, strict=True):
        departs = found.departure is not None and becomes == departed(found.departure)
        if not _agrees(line.becomes, becomes) and (line.becomes or departs or becomes in (NOT_REACHED, "not judged")):
            yield f"line {line.line} says {line.becomes or 'that the step is allowed'!r}, and it is {becomes!r}"
    for line in story.closing:
        if not any(_closes(line.becomes, actual) for actual in found.closing):
            actual = f"and there is {found.closing[0]!r}" if found.closing else "and nothing departs"
            yield f"line {line.line} says {line.becomes!r}, {actual}"


def _agrees(stated: str, becomes: str) -> bool:
    """True if a story states the result of a step, or some of its changes."""
    return stated == becomes or (bool(stated) and {*stated.split(", ")} <= {*becomes.split(", ")})


def _closes(stated: str, actual: str) -> bool:
    """True if a line behind the steps is as stated; of the values at hand a story may state some."""
    return stated == actual or (
        stated.startswith(HERE) and actual.startswith(HERE) and _values(stated) <= _values(actual)
    )


def _values(line: str) -> set[str]:
    return {*re.split(r"[,;:] ", line.removeprefix(HERE).removeprefix(FOR).rstrip("."))}


def text_of(story: Story, spec_name: str = "", notes: Sequence[str] = ()) -> str:
    """Format the story as a file, with the results of its steps; `notes` are lines for people, at its end.

    `spec_name`: how the file names the spec, if that is not one of ours.
    """
    found = played(story)
    lines = [FIRST_LINE, f"spec: {spec_name or story.spec.name}", f"profile: {story.profile}"]
    if story.given:
        state = story.begun.initial
        lines.append(f"given: {', '.join(_given(state, name, value) for name, value in story.given.items())}")
    calls = [_call(story, taken) for taken in story.steps]
    width = column([(one, "") for one in calls])
    lines.append("")
    lines += [
        f"{n:>3}. {one:<{width}}   {what}" for n, (one, what) in enumerate(zip(calls, found.becomes, strict=True), 1)
    ]
    return "\n".join([*lines, *_apart(found.closing), *_apart([f"# {note}".rstrip() for note in notes])]) + "\n"


def _apart(lines: Sequence[str]) -> Iterable[str]:
    """Return lines below an empty one."""
    return ["", *lines] if lines else []


def _call(story: Story, taken: TraceEvent) -> str:
    """Format a step with the broker's answer, and its observations."""
    saw = ", ".join(f"{name}={of_field(story.spec.initial, name, value)}" for name, value in (taken.saw or {}).items())
    outcome = "" if taken.outcome == "ok" else f" {taken.outcome}"
    return call(story.spec, taken.event) + outcome + (f" saw({saw})" if saw else "")


def _given(state: State, name: str, value: int) -> str:
    """Format a value of the state that the story begins in, by its name if it has one."""
    return f"{name} = {of_field(state, name.partition('[')[0], value)}"


def elements_of(state: State, initial: State) -> dict[str, int]:
    """Return the differences of a state from the initial one, by field or FIELD[KEY]."""
    found: dict[str, int] = {}
    for name in state.__dataclass_fields__:
        value, begun = getattr(state, name), getattr(initial, name)
        if isinstance(value, Map):
            keys = sorted({*value.entries, *begun.entries})
            found |= {element(name, key): int(value[key]) for key in keys if value[key] != begun[key]}
        elif value != begun:
            found[name] = int(value)
    return found
