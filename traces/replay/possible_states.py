"""Exact replay of one recorded trace, with every state that is possible after the recorded events.

It handles what a kernel cannot: refused steps, which the model must refuse too; steps with an unknown outcome, with
every state that is still possible; and observations of the broker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any, NamedTuple

from gapless.spec.catalog import Spec, State, waiving
from gapless.spec.language import ASSUMED, Refused
from gapless.traces.options import Options
from gapless.traces.replay.event_rules import OF_EVENTS, REFUSED, SEEN
from gapless.traces.replay.exact import (
    REMEMBERED,
    Departure,
    Element,
    Event,
    PastStep,
    StoryStep,
    elements,
    here_of,
    named,
    replay,
    that_made,
)
from gapless.traces.replay.notation import SEEN_THERE
from gapless.traces.replay.provenance import allowed_for
from gapless.traces.replay.remembered_quantifiers import RememberingReader, digests, noting, quantifies, reading

STATES = 64  # possible states that are kept for one trace
DECIDED = 8  # unknown outcomes of one story, the latest, for which the step that shows it is searched
REPLAYED = 100_000  # events that are replayed again for that


class TraceEvent(NamedTuple):
    """One event of a trace, with its row in the file."""

    event: Event
    outcome: str
    saw: dict[str, int] | None
    position: int
    row: int


class World(NamedTuple):
    """One state that is still possible, and its assumptions; linked lists, newest first."""

    state: State
    anomalies: int = 0  # how many deviations it needs
    deviated: Any = None  # ((deviation, event), those before it)
    undone: Any = None  # (number of an event with unknown outcome that did not happen, those before it)

    def deviating(self, deviation: str, taken: TraceEvent) -> World:
        """Return the same world with one deviation more."""
        return self._replace(anomalies=self.anomalies + 1, deviated=((deviation, taken), self.deviated))

    @property
    def not_done(self) -> frozenset[int]:
        """The numbers of the events with unknown outcome that did not happen."""
        numbers, link = set(), self.undone
        while link is not None:
            numbers.add(link[0])
            link = link[1]
        return frozenset(numbers)

    def without(self, number: int) -> World:
        """Return the same world in which event `number` did not happen."""
        return self._replace(undone=(number, self.undone))


class TooMany(Exception):  # noqa: N818 - an outcome, not an error.
    """More states are possible than are kept."""


class BrokenPromise(Exception):  # noqa: N818 - an outcome, not an error.
    """The environment did not do what the spec assumes of it: from here on the broker promises nothing."""


class Departs(Exception):  # noqa: N818 - an outcome, not an error.
    """No state that is still possible explains the event; the story is for the first of them."""

    def __init__(self, why: str | Refused, number: int, taken: TraceEvent, world: World, also: tuple[str, ...]) -> None:
        super().__init__(why)
        self.rule = why if isinstance(why, str) else None  # None: a need of the spec is not met
        self.why = why
        self.number = number
        self.taken = taken
        self.world = world
        self.also = also

    def departure(self, replayed: Replay, events: Iterator[TraceEvent]) -> Departure:
        """Explain it as data: the path that leads to the world, and the rule that is broken there."""
        known, path = list[TraceEvent](), replayed.past
        if path is None:
            known = list(islice(events, self.number))
            path = replayed.followed(known, self.world)
        departure = self._of_the_need(replayed, path) if self.rule is None else self._of_the_event(replayed, path)
        steps = [replace(step, number=number, outcome=out) for step, number, out in path.placed(departure.steps)]
        steps = replayed.with_deciders(steps, known, self)
        return replace(
            departure,
            number=self.number + 1,
            steps=tuple(steps),
            left_out=self.number - len(steps),
            outcome=self.taken.outcome,
        )

    def in_brief(self, replayed: Replay) -> Departure:
        """Explain it as data without values, and without the steps that led to it: in no time, whatever was before."""
        spec, why = replayed.spec, self.why
        if isinstance(why, str):
            rule, (because, otherwise) = why, OF_EVENTS[why]
        else:
            rule, because, otherwise = why.rule, why.because, why.otherwise
        rule = f"{spec.name}/{rule}"
        return Departure(spec, self.taken.event, self.number + 1, rule, because, otherwise, {}, (), self.number, None)

    def _of_the_need(self, replayed: Replay, path: TakenPath) -> Departure:
        """Explain a step that was taken, but that a need of the spec does not allow."""
        spec, options = replayed.spec, replayed.options
        outcome = replay(
            spec, self.world.state, [self.taken.event],
            profile=options.profile, ignored=options.ignored, before=path.count, history=path.steps,
        )  # fmt: skip
        assert outcome.departure is not None  # noqa: S101 - the same functions refused it a moment ago
        return outcome.departure

    def _of_the_event(self, replayed: Replay, path: TakenPath) -> Departure:
        """Explain a step that was refused though it is allowed, or an impossible observation after it."""
        assert self.rule is not None  # noqa: S101 - for the type checker: it is a rule of events
        spec, state, event = replayed.spec, self.world.state, self.taken.event
        if self.rule == SEEN:
            differs = {name: seen for name, seen in (self.taken.saw or {}).items() if getattr(state, name) != seen}
            here = {name: int(getattr(state, name)) for name in differs}
            here |= {name + SEEN_THERE: seen for name, seen in differs.items()}
            wanted: set[Element] = {(name, None) for name in differs}
        else:
            args = named(spec, event)
            reads = allowed_for(spec.actions[event[0]], state, args)
            here, wanted = here_of(spec, reads, args, state), elements(reads)
        steps = that_made(path.steps, path.count, path.reached, wanted)
        return Departure(
            spec, event, path.count + 1, f"{spec.name}/{self.rule}", *OF_EVENTS[self.rule],
            here, steps, path.count - len(steps), state,
        )  # fmt: skip


class TakenPath:
    """The last events that were taken, with the state before each, and the state that they led to.

    `count`: how many were taken in all · `reached`: the state after the last one.
    """

    def __init__(self, reached: State) -> None:
        self.count = 0
        self.reached = reached
        self.steps: deque[PastStep] = deque(maxlen=REMEMBERED)
        self._places: deque[tuple[int, str]] = deque(maxlen=REMEMBERED)

    def add(self, number: int, taken: TraceEvent, after: State, *, claimed: bool = False) -> None:
        """Add event `number` of the trace; `claimed`: it departs, and was taken over."""
        self.steps.append(PastStep(taken.event, self.reached, claimed))
        self._places.append((number, taken.outcome))
        self.count += 1
        self.reached = after

    def placed(self, steps: Sequence[StoryStep]) -> Iterator[tuple[StoryStep, int, str]]:
        """Yield the steps of a story, each with its number in the trace and its outcome."""
        for step in steps:
            yield step, *self._places[step.number - 1 - self.count]


class Replay:
    """One trace, with every state that is possible after the events so far."""

    def __init__(self, spec: Spec, options: Options) -> None:
        self.spec = spec
        self.options = options
        self.worlds = [World(spec.initial)]
        self.number = 0
        self.covered: dict[str, int] = {}
        self.claimed = False  # an event departed, and was taken over
        self.past: TakenPath | None = None  # from the first story on, where no outcome is unknown
        self.refusal: Refused | None = None  # of the last event, in the first of the states
        self.unpromised = False  # some state refuses the event only for what the environment did
        self._certain = True  # no outcome was unknown: one state is possible
        self._reader: RememberingReader | None = None

    def remember(self) -> None:
        """Remember what is slow to find of large states: for a trace with many events, of which none was taken yet."""
        self.worlds = [World(noting(self.spec))]
        self._reader = RememberingReader() if quantifies(self.spec) else None

    def take(self, taken: TraceEvent) -> None:
        """Compute the states that are possible after the event. Raises Departs, TooMany, BrokenPromise."""
        before, self.unpromised, self.refusal = self.worlds, False, None
        match taken.outcome:
            case "ok" | "inferred":
                after = self._accepting(taken)
            case "unknown":
                after = [*self._accepting(taken), *(world.without(self.number) for world in before)]
                self.past, self._certain = None, False
            case _:
                after = [world for world in before if self._refuses(world, taken)]
        if not after and self.unpromised:
            raise BrokenPromise
        if not after:
            raise Departs(self._why_not(), self.number, taken, before[0], self._also())
        if taken.saw is not None and not self._ignores(SEEN):
            seen = [w for w in after if all(getattr(w.state, name) == value for name, value in taken.saw.items())]
            if not seen:
                raise Departs(SEEN, self.number, taken, after[0], self._also())
            after = seen
        if taken.outcome in {"ok", "inferred"}:
            self.covered[taken.event[0]] = self.covered.get(taken.event[0], 0) + 1
            if self.past is not None:
                self.past.add(self.number + 1, taken, after[0].state)
        self.worlds = _distinct(after, self.spec)
        self.number += 1
        if len(self.worlds) > STATES:
            raise TooMany

    def take_over(self, taken: TraceEvent, rule: str) -> bool:
        """Continue after an event that departs, with the state that the broker claims; False if that is unknown."""
        spec, (action, _) = self.spec, taken.event
        args, name = named(spec, taken.event), rule.partition("/")[2]
        claimed = [(world, spec.taken_over(world.state, action, args, name)) for world in self.worlds]
        after = [world._replace(state=state) for world, state in claimed if state is not None]
        if not after:
            return False
        if self.past is not None:
            self.past.add(self.number + 1, taken, after[0].state, claimed=True)
        self.worlds = _distinct(after, spec)
        self.number += 1
        self.claimed = True
        return True

    def _accepting(self, taken: TraceEvent) -> list[World]:
        """Return the worlds after the step, if it can be taken."""
        found = []
        action, args = taken.event[0], named(self.spec, taken.event)
        with waiving(self.spec.name, self.options.ignored), reading(self._reader):
            for world in self.worlds:
                try:
                    state, deviation = self.spec.step(world.state, action, args, self.options.profile)
                except Refused as refusal:
                    self.unpromised |= refusal.rule == ASSUMED
                    self.refusal = self.refusal or refusal
                    continue
                after = world._replace(state=state)
                found.append(after.deviating(deviation, taken) if deviation else after)
        return found

    def _refuses(self, world: World, taken: TraceEvent) -> bool:
        """True if the design refuses the step too: with all its needs, and the deviations of real brokers."""
        if self._ignores(REFUSED):
            return True
        try:
            self.spec.actions[taken.event[0]](world.state, *taken.event[1])
        except Refused:
            return True
        return False

    def _why_not(self) -> str | Refused:
        """Return why no state explains the last event: the need that is not met, or that it was refused."""
        return self.refusal or REFUSED

    def _ignores(self, rule: str) -> bool:
        return f"{self.spec.name}/{rule}" in self.options.ignored

    def _also(self) -> tuple[str, ...]:
        """Return what the story must state about the states that it does not show."""
        if len(self.worlds) == 1:
            return ()
        possible = (
            f"{len(self.worlds)} states were possible, since earlier outcomes are unknown; none of them allows this."
        )
        return possible, "The story shows one of them."

    def deviations(self) -> Iterator[tuple[str, TraceEvent]]:
        """Yield the deviations that every explanation needs, newest first."""
        link = self.worlds[0].deviated
        while link is not None:
            yield link[0]
            link = link[1]

    def followed(self, known: Sequence[TraceEvent], world: World) -> TakenPath:
        """Return the path of those events that were taken in `world`. Where it is the only one, it is remembered."""
        path, undone = TakenPath(self.spec.initial), world.not_done
        with waiving(self.spec.name, self.options.ignored):
            for number, taken in enumerate(known):
                if taken.outcome != "refused" and number not in undone:
                    after, claimed = self._after(path.reached, taken.event)
                    path.add(number + 1, taken, after, claimed=claimed)
        if self._certain:
            self.past = path
        return path

    def with_deciders(self, steps: Sequence[StoryStep], known: Sequence[TraceEvent], last: Departs) -> list[StoryStep]:
        """Return the steps of a story in order, with those that show the outcome of an unknown step.

        Without them a reader could explain the last step by the other outcome. `known`: the events before the last.
        """
        found = {step.number: step for step in steps}
        deciders = list(self._deciders(found, known, last))
        for unknown, decider, _ in deciders:
            for number in (unknown, decider):
                event, outcome, *_ = known[number - 1]
                done = number != unknown or number in found
                found.setdefault(number, StoryStep(number, event, (), outcome, done=done))
        for unknown, decider, how in deciders:
            place, step = sorted(found).index(unknown) + 1, found[decider]
            shows = f"{how} shows that step {place} was {'taken' if found[unknown].done else 'not taken'}"
            found[decider] = replace(step, shows=f"{step.shows}, and {shows}" if step.shows else shows)
        return [found[number] for number in sorted(found)]

    def _deciders(
        self, story: Container[int], known: Sequence[TraceEvent], last: Departs
    ) -> Iterator[tuple[int, int, str]]:
        """Yield steps of unknown outcome, each with the event that shows it and a phrase for that event's outcome."""
        if self.claimed:
            return  # events that break a rule themselves show nothing
        undone, candidates = last.world.not_done, list[int]()
        for number in range(len(known), 0, -1):
            if known[number - 1].outcome == "unknown" and (number in story or number - 1 in undone):
                candidates.append(number)
        for number in sorted(candidates[: min(DECIDED, REPLAYED // len(known))] if known else ()):
            if found := self._decider(number, known, last, taken=number - 1 not in undone):
                yield number, *found

    def _decider(
        self, unknown: int, known: Sequence[TraceEvent], last: Departs, *, taken: bool
    ) -> tuple[int, str] | None:
        """Return the first event that no state explains if a step had the other outcome, and a phrase for it.

        None if there is none, or if the last event departs whatever that step's outcome was.
        """
        other, found = Replay(self.spec, self.options), None
        for number, event in enumerate([*known, last.taken], 1):
            if number == unknown and taken:
                continue
            try:
                other.take(event._replace(outcome="ok") if number == unknown else event)
            except Departs as departs:
                if number in (unknown, len(known) + 1):
                    return None
                found = found or (number, _evidence(departs.rule))
            except (TooMany, BrokenPromise):
                return None
        return found

    def _after(self, state: State, event: Event) -> tuple[State, bool]:
        """Return the state after an event of a path, and True if it was taken over as the broker claims it."""
        args = named(self.spec, event)
        try:
            return self.spec.step(state, event[0], args, self.options.profile)[0], False
        except Refused as refusal:
            return self.spec.taken_over(state, event[0], args, refusal.rule), True


def _evidence(rule: str | None) -> str:
    """Return a phrase for the outcome of an event that only one outcome of an earlier step explains."""
    if rule == SEEN:
        return "the state recorded after it"
    return f"that it was {'refused' if rule == REFUSED else 'taken'} here"


def _distinct(worlds: list[World], spec: Spec) -> list[World]:
    """Return one world for every state, those with the fewest deviations first."""
    if len(worlds) == 1:
        return worlds
    worlds.sort(key=lambda world: world.anomalies)
    alike: dict[tuple[int, ...], list[World]] = {}  # by what is compared fast, for Maps are slow to compare
    for world in worlds:
        fast = (*(getattr(world.state, name) for name in spec.scalars), *digests(world.state, spec.maps))
        others = alike.setdefault(fast, [])
        if all(world.state != other.state for other in others):
            others.append(world)
    return list(chain.from_iterable(alike.values()))
