"""Exact replay: a trace through a spec's plain functions, and the shortest story where it is refused.

This is the arbiter. The compiled kernels judge everything; what they refuse, or cannot decide, is replayed here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from inspect import signature
from typing import Any

from gapless.spec.language import Map, Refused, waived
from gapless.traces.kernels import Reason, kernel
from gapless.traces.specs import SPECS, State

REMEMBERED = 100_000  # events back from a refusal that a story may tell of: bounds memory, whatever a trace's length

Event = tuple[str, tuple[int, ...]]

Change = tuple[str, int | str, int | str]
"""What a step changed, from what, to what; a value that has a name is called by it."""


@dataclass(frozen=True)
class Step:
    """One step of a story: the event, and what it changed, as (what, before, after)."""

    number: int
    event: Event
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Departure:
    """A refused event: everything that a report needs to tell why, as data.

    `because` and `otherwise` are the need and what follows from breaking it; `here` the values it looks at; `steps`
    the accepted events that made those values; `left_out` how many events do not matter.
    """

    spec: str
    event: Event
    number: int
    because: str
    otherwise: str
    here: dict[str, int]
    steps: tuple[Step, ...]
    left_out: int
    state: State


@dataclass
class Outcome:
    """What a replay ends in: the state, accepted events by action, anomalies by deviation, the departure if any."""

    state: State
    covered: dict[str, int] = field(default_factory=dict)
    deviations: dict[str, int] = field(default_factory=dict)
    departure: Departure | None = None


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
) -> Outcome:
    """Take every event from `state` on, up to the first that is refused."""
    of = SPECS[spec]
    outcome = Outcome(state)
    history: deque[tuple[Event, State]] = deque(maxlen=REMEMBERED)
    number = 0
    token = waived.set(ignored)
    try:
        for event in events:
            try:
                after, deviation = of.step(outcome.state, event[0], named(spec, event), profile)
            except Refused as refusal:
                outcome.departure = _departure(spec, history, number, outcome.state, event, refusal)
                return outcome
            history.append((event, outcome.state))
            number += 1
            outcome.state = after
            outcome.covered[event[0]] = outcome.covered.get(event[0], 0) + 1
            if deviation:
                outcome.deviations[deviation] = outcome.deviations.get(deviation, 0) + 1
    finally:
        waived.reset(token)
    return outcome


def _departure(
    spec: str, history: Sequence[tuple[Event, State]], taken: int, state: State, event: Event, refusal: Refused
) -> Departure:
    args = named(spec, event)
    reason = reason_of(spec, event[0], refusal.because)
    looked_at = {(name, _value(key, args, state)) for name, key in reason.fields} if reason else set()
    steps = _that_made(history, taken, state, looked_at)
    here = {name: value for name, value in args.items() if not reason or name in reason.arguments}
    here |= {_label(name, key): _lookup(state, name, key) for name, key in sorted(looked_at, key=str)}
    return Departure(
        spec=spec,
        event=event,
        number=taken + 1,
        because=refusal.because,
        otherwise=refusal.otherwise,
        here=here,
        steps=steps,
        left_out=taken - len(steps),
        state=state,
    )


def reason_of(spec: str, action: str, because: str) -> Reason | None:
    """What the kernel compiler knows of a need: which fields it looks at."""
    for reason in kernel(spec).reasons:
        if reason.step == action and reason.because == because:
            return reason
    return None


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
    history: Sequence[tuple[Event, State]], taken: int, state: State, looked_at: set[tuple[str, int | None]]
) -> tuple[Step, ...]:
    """The last step that changed each of the values that the failed need looks at."""
    wanted = {w for w in looked_at if not isinstance(getattr(state, w[0]), Map) or w[1] is not None}
    steps: list[Step] = []
    after = state
    for number, (event, before) in zip(range(taken, 0, -1), reversed(history), strict=False):
        made = {w for w in wanted if _lookup(before, *w) != _lookup(after, *w)}
        if made:
            steps.append(Step(number, event, changes(before, after)))
            wanted -= made
        if not wanted:
            break
        after = before
    return tuple(reversed(steps))


def changes(before: State, after: State) -> tuple[Change, ...]:
    """Every field and every map value that differs."""
    found: list[Change] = []
    for f in fields(before):
        old, new = getattr(before, f.name), getattr(after, f.name)
        if isinstance(old, Map):
            keys = {k for k, v in new.entries.items() if old[k] != v} | {k for k in old.entries if k not in new.entries}
            found.extend((f"{f.name}[{key}]", *_both(old, new, key)) for key in sorted(keys)[:3])
        elif old != new:
            found.append((f.name, called(old), called(new)))
    return tuple(found)


def _both(old: Map[int, int], new: Map[int, int], key: int) -> tuple[int | str, int | str]:
    """The value at `key` before and after, called by its name if the Map's values have names."""
    kind = type(old.default)
    return _by_name(kind, int(old[key])), _by_name(kind, int(new[key]))


def called(value: int) -> int | str:
    """The value's name if it has one, such as PREPARED; otherwise the number."""
    return value.name if isinstance(value, IntEnum) else int(value)


def call(spec: str, event: Event) -> str:
    """An event in the notation of stories: `append(number=17, position=40112)`."""
    kinds = signature(SPECS[spec].actions[event[0]]).parameters
    told = ((name, _by_name(kinds[name].annotation, value)) for name, value in named(spec, event).items())
    return f"{event[0]}({', '.join(f'{name}={value}' for name, value in told)})"


def _by_name(kind: Any, value: int) -> int | str:
    """The name that `kind` has for the value, if it has one."""
    if isinstance(kind, type) and issubclass(kind, IntEnum) and value in set(kind):
        return kind(value).name
    return value


def life(spec: str, events: Iterable[Event], *, profile: str, ignored: frozenset[str] = frozenset()) -> list[str]:
    """Every step of a trace up to the first that is refused, a line each, with what it changed."""
    of = SPECS[spec]
    state, told = of.initial, []
    token = waived.set(ignored)
    try:
        for event in events:
            after, deviation = of.step(state, event[0], named(spec, event), profile)
            note = f" ({deviation.replace('_', ' ')})" if deviation else ""
            note += " (inferred from its op)" if event[0] == "roll_back" else ""
            told.append((call(spec, event), _told(changes(state, after)) + note))
            state = after
    except Refused:
        pass  # its story is told with the finding
    finally:
        waived.reset(token)
    width = min(max((len(text) for text, _ in told), default=0), 76)
    return [f"{n:>3}. {text:<{width}}   {what}" for n, (text, what) in enumerate(told, 1)]


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
    calls = [
        (call(departure.spec, step.event) + (f" at {where(step.number)}" if where else ""), _told(step.changes))
        for step in departure.steps
    ]
    calls.append(
        (call(departure.spec, departure.event) + (f" at {where(departure.number)}" if where else ""), "refused")
    )
    width = min(max(len(text) for text, _ in calls), 76)
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
        return _by_name(step[name].annotation, value)
    field_ = getattr(of.initial, name.partition("[")[0], value)
    return _by_name(type(field_.default if isinstance(field_, Map) else field_), value)


def _told(changes: tuple[Change, ...]) -> str:
    return ", ".join(f"{name} {before} → {after}" for name, before, after in changes) or "nothing changes"
