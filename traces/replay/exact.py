"""Exact replay: a trace through a spec's plain functions, and the shortest story where it is refused.

This is the arbiter. The compiled kernels judge everything; what they refuse, or cannot decide, is replayed here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from inspect import signature
from typing import NamedTuple

from gapless.spec.catalog import AnySpec, Spec, State, resolve_spec, waiving
from gapless.spec.language import Refused
from gapless.traces.replay import provenance
from gapless.traces.replay.event_rules import OF_EVENTS, REFUSED
from gapless.traces.replay.notation import (
    ASKED,
    BROKER_REFUSED,
    NOT_ALLOWED,
    SEEN_OTHERWISE,
    SEEN_THERE,
    SHOWN_AS_NOT_TAKEN,
    SHOWN_AS_TAKEN,
    TURNED_AWAY,
    Change,
    breach,
    by_name,
    call_of,
    changes,
    changes_text,
    column,
    consequence,
    of_field,
    values_text,
)

REMEMBERED = 100_000  # events before a refusal that a story may contain: bounds memory for traces of any length

CLAIMED = " (not allowed, but assumed for what follows)"

Event = tuple[str, tuple[int, ...]]
Element = tuple[str, int | None]
"""A field of a state, or an element of a Map."""


@dataclass(frozen=True)
class StoryStep:
    """One step of a story: the event, and its changes as (name, before, after).

    `number`: of the event in its trace, from 1 · `outcome`: the broker's answer ·
    `claimed`: the step was refused, and the model took over what the broker claims · `made`: of the changes, those of
    the values that the broken rule reads · `done`: False for a step of unknown outcome that is shown as not taken ·
    `shows`: the sentence that states the outcome of an earlier step, which this one shows.
    """

    number: int
    event: Event
    changes: tuple[Change, ...]
    outcome: str = "ok"
    claimed: bool = False
    made: tuple[Change, ...] = ()
    done: bool = True
    shows: str = ""


@dataclass(frozen=True)
class Departure:
    """A refused event, with all data that a report needs to explain it.

    `of` is the spec, `rule` the id of the rule that is broken (SPEC/RULE), `because` what is needed, and `otherwise`
    what follows from breaking it; `here` the values it looks at, a counterexample first; `steps` the accepted events
    that made those values; `left_out` how many other events there were before it; `outcome` the broker's answer.
    """

    of: Spec
    event: Event
    number: int
    rule: str
    because: str
    otherwise: str
    here: dict[str, int]
    steps: tuple[StoryStep, ...]
    left_out: int
    state: State
    outcome: str = "ok"

    @property
    def spec(self) -> str:
        """The name of its spec."""
        return self.of.name


@dataclass
class Outcome:
    """The end of a replay: the state, accepted events by action, anomalies by deviation, the departure if any."""

    state: State
    covered: dict[str, int] = field(default_factory=dict)
    deviations: dict[str, int] = field(default_factory=dict)
    departure: Departure | None = None


class PastStep(NamedTuple):
    """A step that was taken, or taken over, and the state before it."""

    event: Event
    before: State
    claimed: bool = False


def named(spec: AnySpec, event: Event) -> dict[str, int]:
    """Return an event's arguments by name."""
    action, args = event
    return dict(zip(resolve_spec(spec).parameters[action], args, strict=True))


def replay(
    spec: AnySpec,
    state: State,
    events: Iterable[Event],
    *,
    profile: str,
    ignored: frozenset[str] = frozenset(),
    beyond: bool = False,
    before: int = 0,
    history: deque[PastStep] | None = None,
) -> Outcome:
    """Take every event from `state` on, up to the first refusal, after `beyond` that can be taken over.

    Then the departure is that of the last event, if that is refused. `before`: how many events led to `state` ·
    `history`: the last of those, to which others are added.
    """
    of, outcome = resolve_spec(spec), Outcome(state)
    history = deque(maxlen=REMEMBERED) if history is None else history
    number, last, claimed = before, None, None
    with waiving(of.name, ignored):
        for event in events:
            args, last = named(of, event), None
            try:
                after, deviation = of.step(outcome.state, event[0], args, profile)
            except Refused as refusal:
                last = event, refusal
                claimed = of.taken_over(outcome.state, event[0], args, refusal.rule) if beyond else None
                if claimed is None:
                    break
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
        if last is not None:
            if claimed is not None:  # and so the last step of the history is the one that is explained
                number, state = number - 1, history.pop().before
            outcome.departure = _departure(of, history, number, outcome.state if claimed is None else state, *last)
    return outcome


def _departure(
    spec: Spec, history: Sequence[PastStep], taken: int, state: State, event: Event, refusal: Refused
) -> Departure:
    args, rule = named(spec, event), f"{spec.name}/{refusal.rule}"
    reads = provenance.refused_for(spec.actions[event[0]], state, args)
    steps = that_made(history, taken, state, elements(reads))
    return Departure(
        of=spec,
        event=event,
        number=taken + 1,
        rule=rule,
        because=refusal.because,
        otherwise=refusal.otherwise,
        here=here_of(spec, reads, args, state),
        steps=steps,
        left_out=taken - len(steps),
        state=state,
    )


def elements(reads: provenance.Reads) -> set[Element]:
    """Return the fields and map elements among the reads."""
    return {(read.name, read.key) for read in reads if read.of == "field"}


def here_of(spec: AnySpec, reads: provenance.Reads, args: Mapping[str, int], state: State) -> dict[str, int]:
    """Return the values read, by name: first a counterexample, then arguments, then fields.

    An argument that shares its name with a field is distinguished from it; if one is named, so is the other.
    """
    order = {name: place for place, name in enumerate(args)}
    fields = sorted((r for r in reads if r.of == "field" and not r.counterexample), key=lambda r: (r.name, r.key or 0))
    found = [read for read in reads if read.counterexample]
    asked = sorted((r for r in reads if r.of == "argument" and not r.counterexample), key=lambda r: order[r.name])
    of, here = resolve_spec(spec), dict[str, int]()
    for read in (*found, *asked, *fields):
        if read.of != "bound" and read.key is None and read.name in args and read.name in of.scalars:
            here |= {read.name + ASKED: args[read.name], read.name: int(getattr(state, read.name))}
        elif read.of == "argument" and read.name in of.maps:
            here[read.name + ASKED] = read.value
        else:
            here[read.label] = read.value
    return here


def lookup(state: State, name: str, key: int | None) -> int:
    """Return the value of a state's field, or of an element."""
    value = getattr(state, name)
    return int(value if key is None else value[key])


def is_changed(before: State, after: State, name: str, key: int | None) -> bool:
    """True if a field has another value after a step, or an element of a Map. An untouched Map is not compared."""
    return getattr(before, name) is not getattr(after, name) and lookup(before, name, key) != lookup(after, name, key)


def changes_of(some: Iterable[Element], before: State, after: State) -> tuple[Change, ...]:
    """The changes of some fields and map elements, by name; those that stay as they are have none."""
    found = []
    for name, key in sorted(some, key=lambda element: (element[0], element[1] or 0)):
        old, new = lookup(before, name, key), lookup(after, name, key)
        if old != new:
            label = name if key is None else f"{name}[{key}]"
            found.append((label, of_field(before, name, old), of_field(before, name, new)))
    return tuple(found)


def that_made(history: Sequence[PastStep], taken: int, state: State, wanted: set[Element]) -> tuple[StoryStep, ...]:
    """Return the last step that changed each of the values that the failed need reads.

    `history`: the last of the `taken` events that led to `state`, each with the state before it.
    """
    steps: list[StoryStep] = []
    after = state
    for number, (event, before, claimed) in zip(range(taken, 0, -1), reversed(history), strict=False):
        made = {w for w in wanted if is_changed(before, after, *w)}
        if made:
            steps.append(
                StoryStep(number, event, changes(before, after), claimed=claimed, made=changes_of(made, before, after))
            )
            wanted -= made
        if not wanted:
            break
        after = before
    return tuple(reversed(steps))


def call(spec: AnySpec, event: Event) -> str:
    """Format an event in the notation of stories: `append(number=17, position=40112)`."""
    kinds = signature(resolve_spec(spec).actions[event[0]]).parameters
    values = {name: by_name(kinds[name].annotation, value) for name, value in named(spec, event).items()}
    return call_of(event[0], values)


def life(spec: AnySpec, events: Iterable[Event], *, profile: str, ignored: frozenset[str] = frozenset()) -> list[str]:
    """Return a line for every step of a trace up to the first refusal, with its changes."""
    of = resolve_spec(spec)
    state, lines = of.initial, []
    with waiving(of.name, ignored), suppress(Refused):  # the finding has the story of a refusal
        for event in events:
            after, deviation = of.step(state, event[0], named(of, event), profile)
            note = f" ({deviation.replace('_', ' ')})" if deviation else ""
            note += " (inferred from its op)" if event[0] == "roll_back" else ""
            lines.append((call(of, event), changes_text(changes(state, after)) + note))
            state = after
    width = column(lines)
    return [f"{n:>3}. {text:<{width}}   {what}" for n, (text, what) in enumerate(lines, 1)]


def story(
    departure: Departure,
    *,
    title: str,
    also: Sequence[str] = (),
    where: Callable[[int], str] | None = None,
    again: str = "",
) -> list[str]:
    """Return the departure as lines: the steps before it, the refusal and its reason, and how to see it `again`.

    `where` returns the place in the source of a step's number.
    """

    def at(event: Event, number: int) -> str:
        return call(departure.of, event) + (f" at {where(number)}" if where else "")

    calls = [(at(step.event, step.number), became_of(step)) for step in departure.steps]
    calls.append((at(departure.event, departure.number), departed(departure)))
    width = column(calls)
    lines = [title, ""]
    lines += [f"  {n}. {text:<{width}}   {what}" for n, (text, what) in enumerate(calls, 1)]
    lines += ["", *reasons(departure, also)]
    if left := departure.left_out:
        are = "is" if left == 1 else "are"
        not_last = f"{are} not the last to change a value that the rule reads, and {are} left out"
        lines += [f"{left:,} of {departure.number:,} events {not_last}."]
    return [*lines, f"Again: {again}"] if again else lines


def reasons(departure: Departure, also: Sequence[str] = ()) -> Iterator[str]:
    """Yield the rule that the last step breaks, the values at hand, and the consequence."""
    yield f"{breach(departure.event[0], departure.because)}."
    if here := values_text(in_words(departure)):
        yield f"Here: {here}."
    yield from also
    yield from consequence(departure.otherwise)


def in_words(departure: Departure) -> dict[str, int | str]:
    """The values at hand, each by its name if it has one."""
    return {name: _in_words(departure, name, value) for name, value in departure.here.items()}


def became_of(step: StoryStep) -> str:
    """Return the result of a step that led to a departure."""
    became = _became_of(step)
    if not step.shows:
        return became
    return f"{became}; {step.shows}" if step.outcome == "refused" else f"{became} ({step.shows})"


def _became_of(step: StoryStep) -> str:
    if step.outcome == "refused":
        return BROKER_REFUSED
    if not step.done:
        return SHOWN_AS_NOT_TAKEN
    return (
        changes_text(step.changes)
        + CLAIMED * step.claimed
        + (f" ({SHOWN_AS_TAKEN})" if step.outcome == "unknown" else "")
    )


def departed(departure: Departure) -> str:
    """Return the result of the step that departs: who took it, and who does not allow it."""
    rule = departure.rule.partition("/")[2]
    if rule not in OF_EVENTS:
        return NOT_ALLOWED
    return TURNED_AWAY if rule == REFUSED else SEEN_OTHERWISE[departure.outcome]


def _in_words(departure: Departure, name: str, value: int) -> int | str:
    of, field = departure.of, name.removesuffix(SEEN_THERE).partition("[")[0]
    if hasattr(of.initial, field):
        return of_field(of.initial, field, value)
    asked = signature(of.actions[departure.event[0]]).parameters.get(name.removesuffix(ASKED))
    return by_name(asked.annotation, value) if asked else value
