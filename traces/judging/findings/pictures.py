"""Pictures of findings from the steps of a trace: the life of a transaction, the bitmap of a queue. Small, always."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from inspect import signature
from typing import NamedTuple

from gapless.spec import dispatch
from gapless.spec.catalog import SPECS, waiving
from gapless.spec.language import Map, Number
from gapless.traces.options import Options
from gapless.traces.replay.exact import Departure, Event, StoryStep, became_of, call, departed, named
from gapless.traces.replay.notation import by_name, changes
from gapless.traces.report.pictures.bitmap import Bitmap
from gapless.traces.report.pictures.swimlane import LaneStep, Swimlane

STEPS = 24  # of one swimlane: the last, for they are nearest to the finding
LIFE = 1000  # steps of a life that are kept: enough to know the states of the last ones
CELLS = 32  # numbers of one bitmap
BEFORE = 8  # of these, before the first number that consumers do not see
ABSENT, GONE = "not there", "gone"  # states of a subject before its first step, and when it is forgotten

LANES: dict[str, dict[str, tuple[str, ...]]] = {
    "transaction": {
        "producer": ("ask_to_commit", "ask_to_roll_back", "acknowledge"),
        "half": ("open", "prepare", "outlive"),
        "versions": ("check",),
        "back-checks": ("ask_back",),
        "parked": ("park",),
        "final": ("commit", "roll_back"),
        "op": ("mark",),
        "broker": ("restart", "crash"),
    },
    "coordinator": {
        "requests": ("admit", "ignore", "burn"),
        "answers": ("hand", "acknowledge"),
        "begun": ("begin",),
        "partitions": ("add",),
        "decision": ("decide", "time_out"),
        "outcome": ("finish",),
        "coordinator": ("open", "unload", "load", "recover"),
    },
}
"""The lanes of a spec, and the steps of each. Other specs have no swimlane."""

STATES = {"transaction": "phase", "coordinator": "table"}
"""The field that has the state of a swimlane's subject; of a Map, the element of the step's `number`."""


class Axis(NamedTuple):
    """The unit of a swimlane's places, and the place of a step."""

    name: str
    at: Callable[[StoryStep], int]


def swimlane_of(departure: Departure, axis: Axis, around: Sequence[StoryStep] = ()) -> Swimlane | None:
    """The swimlane of a departure; None where its spec has none, or one step would be all of it.

    `around`: the whole life of its subject up to the departure, where that is known; otherwise the story's steps.
    """
    if departure.spec not in LANES or departure.of is not SPECS[departure.spec]:  # a user's may have any name
        return None
    return _swimlane(departure, axis, around or departure.steps)


def _swimlane(departure: Departure, axis: Axis, before: Iterable[StoryStep]) -> Swimlane | None:
    lane_of = {action: lane for lane, actions in LANES[departure.spec].items() for action in actions}
    last = StoryStep(departure.number, departure.event, ())
    every = [(step, became_of(step)) for step in before] + [(last, departed(departure))]
    states = _states(departure, [step for step, _ in every])
    steps = [
        LaneStep(
            lane=lane_of[step.event[0]],
            at=axis.at(step),
            call=call(departure.of, step.event),
            becomes=becomes,
            departs=step is last,
            state=state,
        )
        for (step, becomes), state in list(zip(every, states, strict=True))[-STEPS:]
        if step.event[0] in lane_of
    ]
    if len(steps) < 2 or not steps[-1].departs:  # a picture of one step shows nothing
        return None
    met = {step.lane for step in steps}
    lanes = [lane for lane in LANES[departure.spec] if lane in met]
    return Swimlane(axis=axis.name, lanes=lanes, steps=steps, left_out=max(len(every) - STEPS, 0))


def _states(departure: Departure, steps: Sequence[StoryStep]) -> list[str]:
    """The state of the subject behind each step; that of the last is the one that it claims."""
    of, name = departure.of, STATES[departure.spec]
    field, element = getattr(of.initial, name), name
    if isinstance(field, Map):
        field, element = field.default, f"{name}[{named(of, departure.event).get('number')}]"
    absent = by_name(type(field), field)
    turns = [[one[1:] for one in (*step.made, *step.changes) if one[0] == element][:1] for step in steps]
    first = next((turn[0][0] for turn in turns if turn), "")  # steps before the first one here may have been left out
    found, state = list[str](), ABSENT if first == absent else str(first)
    for turn in turns:
        if turn:
            state = GONE if turn[0][1] == absent else str(turn[0][1])
        found.append(state)
    return [*found[:-1], _claimed(departure, type(field))]


def _claimed(departure: Departure, kind: type[int]) -> str:
    """The state that the last step names, if it names one."""
    parameters = signature(departure.of.actions[departure.event[0]]).parameters
    args = named(departure.of, departure.event)
    return next((str(by_name(kind, args[name])) for name, one in parameters.items() if one.annotation is kind), "")


def lived(departure: Departure, events: Iterable[Event], options: Options) -> tuple[StoryStep, ...]:
    """The last steps of a life, each with what it changed, up to the departure. `events`: those before it."""
    of, state = departure.of, departure.of.initial
    steps: deque[StoryStep] = deque(maxlen=LIFE)
    with waiving(of.name, options.ignored):
        for number, event in enumerate(events, 1):
            after, _ = of.step(state, event[0], named(of, event), options.profile)
            steps.append(StoryStep(number, event, changes(state, after)))
            state = after
    return tuple(steps)


def bitmap_of(departure: Departure) -> Bitmap | None:
    """The numbers around the commit position, the gap or the number that the step names.

    None where the spec knows of no bitmap. It wants the state, which does not travel with a departure.
    """
    state, args = departure.state, named(departure.of, departure.event)
    if not isinstance(state, dispatch.State):
        return None
    committed, scanned = int(state.committed), int(state.scanned)
    asked = args.get("number", args.get("to"))
    unwritten = next((n for n in range(committed, scanned) if not state.bits[Number(n)]), None)
    beyond = unwritten is not None and departure.event[0] == "commit" and args["to"] > unwritten
    first = max(int(state.start), committed - BEFORE)
    about = unwritten if beyond else asked
    if about is not None and about >= first + CELLS - 2:  # too far behind what is visible: show where it is
        first = about - BEFORE
    cells = "".join(_cell(departure, number) for number in range(first, first + CELLS))
    near = range(unwritten + 1, min(scanned, first + CELLS)) if unwritten is not None else ()
    behind = any(state.bits[Number(n)] for n in near)
    return Bitmap(
        first=first,
        cells=cells[: max(scanned - first, asked - first + 1 if asked is not None else 0, 1) + 1],
        marks={"flushed": int(state.flushed), "committed": committed, "scanned": scanned}
        | ({f"{departure.event[0]} to": args["to"]} if "to" in args else {}),
        gap=unwritten if behind or beyond else None,
        asked=args.get("number"),
    )


def _cell(departure: Departure, number: int) -> str:
    state = departure.state
    if number >= state.scanned:
        return "."
    if number < state.committed or state.bits[number]:
        return "w"
    return "t" if state.taken[number] else "g"
