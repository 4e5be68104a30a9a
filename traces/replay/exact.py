"""Exact replay: a trace through a spec's plain functions, and the shortest story where it is refused.

This is the arbiter. The compiled kernels judge everything; what they refuse, or cannot decide, is replayed here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from inspect import signature
from typing import NamedTuple

from gapless.spec.catalog import SPECS, State, waiving
from gapless.spec.language import Map, Refused
from gapless.traces.replay.kernels import Reason, kernel
from gapless.traces.replay.notation import Change, by_name, call_of, changes, column, told

REMEMBERED = 100_000  # events back from a refusal that a story may tell of: bounds memory, whatever a trace's length

CLAIMED = " (refused, and taken over as claimed)"

Event = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class StoryStep:
    """One step of a story: the event, and what it changed, as (what, before, after).

    `claimed`: the step was refused, and the model took over what the broker claims.
    """

    number: int
    event: Event
    changes: tuple[Change, ...]
    claimed: bool = False


@dataclass(frozen=True)
class Departure:
    """A refused event: everything that a report needs to tell why, as data.

    `rule` is the id of the rule that is broken (SPEC/RULE), `because` what is needed, and `otherwise` what follows
    from breaking it; `here` the values it looks at; `steps` the accepted events that made those values; `left_out` how
    many events do not matter.
    """

    spec: str
    event: Event
    number: int
    rule: str
    because: str
    otherwise: str
    here: dict[str, int]
    steps: tuple[StoryStep, ...]
    left_out: int
    state: State


@dataclass
class Outcome:
    """What a replay ends in: the state, accepted events by action, anomalies by deviation, the departure if any."""

    state: State
    covered: dict[str, int] = field(default_factory=dict)
    deviations: dict[str, int] = field(default_factory=dict)
    departure: Departure | None = None


class PastStep(NamedTuple):
    """A step that was taken, or taken over, and the state before it."""

    event: Event
    before: State
    claimed: bool = False


def named(spec: str, event: Event) -> dict[str, int]:
    """An event's arguments by name."""
    action, args = event
    return dict(zip(SPECS[spec].parameters[action], args, strict=True))


def replay(
    spec: str,
    state: State,
    events: Iterable[Event],
    *,
    profile: str,
    ignored: frozenset[str] = frozenset(),
    beyond: bool = False,
) -> Outcome:
    """Take every event from `state` on, up to the first that is refused; or `beyond` those that can be taken over.

    Then the departure is that of the last event, if that is refused.
    """
    outcome = Outcome(state)
    history: deque[PastStep] = deque(maxlen=REMEMBERED)
    number = 0
    with waiving(spec, ignored):
        for event in events:
            args, outcome.departure = named(spec, event), None
            try:
                after, deviation = SPECS[spec].step(outcome.state, event[0], args, profile)
            except Refused as refusal:
                outcome.departure = _departure(spec, history, number, outcome.state, event, refusal)
                claimed = SPECS[spec].taken_over(outcome.state, event[0], args, refusal.rule) if beyond else None
                if claimed is None:
                    return outcome
                history.append(PastStep(event, outcome.state, claimed=True))
                number += 1
                outcome.state = claimed
                continue
            history.append(PastStep(event, outcome.state))
            number += 1
            outcome.state = after
            outcome.covered[event[0]] = outcome.covered.get(event[0], 0) + 1
            if deviation:
                outcome.deviations[deviation] = outcome.deviations.get(deviation, 0) + 1
    return outcome


def _departure(
    spec: str, history: Sequence[PastStep], taken: int, state: State, event: Event, refusal: Refused
) -> Departure:
    args, rule = named(spec, event), f"{spec}/{refusal.rule}"
    reason = _reason_of(spec, event[0], rule)
    looked_at = {(name, _value(key, args, state)) for name, key in reason.fields} if reason else set()
    steps = _that_made(history, taken, state, looked_at)
    here = {name: value for name, value in args.items() if not reason or name in reason.arguments}
    here |= {_label(name, key): _lookup(state, name, key) for name, key in sorted(looked_at, key=str)}
    return Departure(
        spec=spec,
        event=event,
        number=taken + 1,
        rule=rule,
        because=refusal.because,
        otherwise=refusal.otherwise,
        here=here,
        steps=steps,
        left_out=taken - len(steps),
        state=state,
    )


def _reason_of(spec: str, action: str, rule: str) -> Reason | None:
    """What the kernel compiler knows of a need: which fields it looks at."""
    return next((r for r in kernel(spec).reasons if (r.step, r.rule) == (action, rule)), None)


def _value(key: str, args: Mapping[str, int], state: State) -> int | None:
    """The value of a key's source, such as `a_number`: an argument or a field; None for a scalar, which has no key."""
    if not key:
        return None
    kind, _, name = key.partition("_")
    if kind == "a" and name in args:
        return args[name]
    return int(getattr(state, name)) if kind == "s" and hasattr(state, name) else None


def _label(name: str, key: int | None) -> str:
    return name if key is None else f"{name}[{key}]"


def _lookup(state: State, name: str, key: int | None) -> int:
    value = getattr(state, name)
    return int(value[key]) if isinstance(value, Map) else int(value)


def _that_made(
    history: Sequence[PastStep], taken: int, state: State, looked_at: set[tuple[str, int | None]]
) -> tuple[StoryStep, ...]:
    """The last step that changed each of the values that the failed need looks at."""
    wanted = {w for w in looked_at if not isinstance(getattr(state, w[0]), Map) or w[1] is not None}
    steps: list[StoryStep] = []
    after = state
    for number, (event, before, claimed) in zip(range(taken, 0, -1), reversed(history), strict=False):
        made = {w for w in wanted if _lookup(before, *w) != _lookup(after, *w)}
        if made:
            steps.append(StoryStep(number, event, changes(before, after), claimed))
            wanted -= made
        if not wanted:
            break
        after = before
    return tuple(reversed(steps))


def call(spec: str, event: Event) -> str:
    """An event in the notation of stories: `append(number=17, position=40112)`."""
    kinds = signature(SPECS[spec].actions[event[0]]).parameters
    values = {name: by_name(kinds[name].annotation, value) for name, value in named(spec, event).items()}
    return call_of(event[0], values)


def life(spec: str, events: Iterable[Event], *, profile: str, ignored: frozenset[str] = frozenset()) -> list[str]:
    """Every step of a trace up to the first that is refused, a line each, with what it changed."""
    state, lines = SPECS[spec].initial, []
    with waiving(spec, ignored), suppress(Refused):  # whose story is told with the finding
        for event in events:
            after, deviation = SPECS[spec].step(state, event[0], named(spec, event), profile)
            note = f" ({deviation.replace('_', ' ')})" if deviation else ""
            note += " (inferred from its op)" if event[0] == "roll_back" else ""
            lines.append((call(spec, event), told(changes(state, after)) + note))
            state = after
    width = column(lines)
    return [f"{n:>3}. {text:<{width}}   {what}" for n, (text, what) in enumerate(lines, 1)]


def story(
    departure: Departure,
    *,
    title: str,
    also: Sequence[str] = (),
    where: Callable[[int], str] | None = None,
    again: str,
) -> list[str]:
    """The departure as lines: what led to it, what was refused and why, what can be left out, how to see it again.

    `where`: tells of the number of a step in which place of its source it was recorded.
    """

    def at(event: Event, number: int) -> str:
        return call(departure.spec, event) + (f" at {where(number)}" if where else "")

    calls = [(at(step.event, step.number), told(step.changes) + CLAIMED * step.claimed) for step in departure.steps]
    calls.append((at(departure.event, departure.number), "refused"))
    width = column(calls)
    lines = [title, ""]
    lines += [f"  {n}. {text:<{width}}   {what}" for n, (text, what) in enumerate(calls, 1)]
    here = ", ".join(f"{k}={_in_words(departure, k, v)}" for k, v in departure.here.items())
    lines += ["", f"{departure.event[0]} needs: {departure.because}."]
    lines += [f"Here: {here}."] if here else []
    lines += also
    lines += [f"Otherwise {departure.otherwise}."]
    if departure.left_out:
        total = departure.number
        lines += [f"{departure.left_out:,} of {total:,} events do not matter to this and are left out."]
    return [*lines, f"Again: {again}"]


def _in_words(departure: Departure, name: str, value: int) -> int | str:
    of = SPECS[departure.spec]
    step = signature(of.actions[departure.event[0]]).parameters
    if name in step:
        return by_name(step[name].annotation, value)
    kept = getattr(of.initial, name.partition("[")[0], value)
    return by_name(type(kept.default if isinstance(kept, Map) else kept), value)
