"""Reduces the events of a trace to a short story of where it departs.

Three ways are tried in turn: only the steps of the report's story; all events, reduced by delta debugging (Zeller and
Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002); and only the step that departs, in a given
state. The result breaks the same rule by the same step with the same values, and no other rule before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from gapless.spec.catalog import END, Spec, State, waiving
from gapless.spec.language import Map, Refused, replace
from gapless.spec.reading.map_keys import element
from gapless.traces.options import Options
from gapless.traces.replay.exact import Departure, named
from gapless.traces.replay.possible_states import BrokenPromise, Departs, Replay, TooMany, TraceEvent
from gapless.traces.stories.playing import elements_of
from gapless.traces.stories.story import Story

MANY = 160  # events, of which parts are left out one after the other: the work grows with their square
LONG = 12  # steps of a story; with more, one that begins in a given state is easier to read


class NotATale(Exception):  # noqa: N818 - it names a finding.
    """The events of the trace alone do not depart, or need more of the state than a story can contain."""


def shortest(spec: Spec, events: Sequence[TraceEvent], options: Options) -> Story:
    """Return a story of the first event that departs. Raises NotATale."""
    replayed, end = Replay(spec, options), -1
    for end, taken in enumerate(events):  # noqa: B007 - the last is the one that departs
        try:
            replayed.take(taken)
        except Departs as found:
            departure = found.departure(replayed, iter(events))
            break
        except (TooMany, BrokenPromise):
            raise NotATale("its events are not judged to their end") from None
    else:
        raise NotATale("its events conform: the departure comes from other evidence, such as files next to them")
    before, last = list(events[:end]), events[end]
    steps = [*before[:1], *(before[step.number - 1] for step in departure.steps if step.number > 1)]

    def departs(steps: Sequence[TraceEvent]) -> bool:
        return _departs(Story(spec, options.profile, (*steps, last), {}), departure)

    if departs(steps):
        return Story(spec, options.profile, (*_without(steps, departs), last), {})
    if len(before) <= MANY and len(some := _without(before, departs)) < LONG:
        return Story(spec, options.profile, (*some, last), {})
    return _in_a_state(spec, replayed.worlds[0].state, last, departure, options)


def _departs(story: Story, expected: Departure) -> bool:
    """True if the last step departs as expected, and no other."""
    replayed = Replay(story.begun, Options(profile=story.profile))
    *before, last = story.steps
    try:
        for taken in before:
            replayed.take(taken)
    except (Departs, TooMany, BrokenPromise):
        return False
    try:
        replayed.take(last)
    except Departs as departs:
        found = departs.departure(replayed, iter(story.steps))
        return (found.rule, _at_hand(found)) == (expected.rule, _at_hand(expected))
    except (TooMany, BrokenPromise):
        return False
    return False


def _at_hand(departure: Departure) -> dict[str, int]:
    """The values that a shorter story must have, too: at rest not those of plain fields, most of which are counts."""
    plain = departure.of.scalars if departure.event[0] == END else ()
    return {name: value for name, value in departure.here.items() if name not in plain}


def _without(events: Sequence[TraceEvent], departs: Callable[[Sequence[TraceEvent]], bool]) -> list[TraceEvent]:
    """Drop the events that can be left out: halves first, then smaller and smaller parts."""
    kept, size = list(events), max(1, len(events) // 2)
    while size:
        at = 0
        while at < len(kept):
            fewer = kept[:at] + kept[at + size :]
            if departs(fewer):
                kept = fewer
            else:
                at += size
        size //= 2
    return kept


class _KeyRecorder(Map[Any, int]):
    """A Map that records the keys at which it is read."""

    __slots__ = ("noted",)
    noted: set[Any]

    def __getitem__(self, key: Any) -> int:
        self.noted.add(key)
        return super().__getitem__(key)

    def set(self, *place: Any) -> Map[Any, int]:
        """See `Map`; reads of the result are recorded, too."""
        return _noting(super().set(*place), self.noted)


def _noting(kept: Map[Any, int], noted: set[Any]) -> _KeyRecorder:
    found = _KeyRecorder(kept.default, kept.entries)
    object.__setattr__(found, "noted", noted)  # a Map is frozen
    return found


def _in_a_state(spec: Spec, state: State, last: TraceEvent, departure: Departure, options: Options) -> Story:
    """Return the step that departs alone, in as much of the state as it reads. Raises NotATale."""
    noted: dict[str, set[Any]] = {name: set() for name in spec.maps}
    watched = replace(state, **{name: _noting(getattr(state, name), noted[name]) for name in spec.maps})
    with waiving(spec.name, options.ignored), suppress(Refused):
        spec.step(watched, last.event[0], named(spec, last.event), options.profile)
    every = elements_of(state, spec.initial)
    looked_at = {element(name, key) for name, keys in noted.items() for key in keys} | set(spec.scalars)
    given = {name: value for name, value in every.items() if name in looked_at}
    if not _departs(Story(spec, options.profile, (last,), given), departure):
        raise NotATale("no few steps, and no few values of a state, show it")
    for name in list(given):
        fewer = {other: value for other, value in given.items() if other != name}
        if _departs(Story(spec, options.profile, (last,), fewer), departure):
            given = fewer
    return Story(spec, options.profile, (last,), given)
