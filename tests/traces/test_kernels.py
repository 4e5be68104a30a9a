"""The compiled reading of a spec agrees with the plain one: same verdict, same reason, same state, or EXACT.

A kernel begins with empty Maps, so a state is reached by walking there. A walk offers events to the plain functions,
keeps those that are taken, and remembers each with the events before it; the kernel then replays every one of these.
Values are drawn from those that matter where the walk is: the state's own, their neighbours, and the ends of 64 bits.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.spec.catalog import PROFILES, SPECS, Spec, State
from gapless.spec.language import Map, Number, Refused, all_between, require
from gapless.traces.replay import kernels
from gapless.traces.replay.exact import Event, named
from gapless.traces.replay.kernels import EXACT, UNKNOWN_ACTION, Kernel, Reason, Replayed, kernel

Choose = Callable[[Sequence[int]], int]

SMALL = (0, 1, 2, 3, 8, 9, 40, 100)
HUGE = tuple(sign * 2**power - near for power in (60, 61, 62, 63) for sign in (1, -1) for near in (-1, 0, 1))
LIKELY = {"broker": 3 * ("prepare", "flush", "answer", "run", "commit", "dispatch")}
"""Steps that a walk takes more often: consumers see a message in the eighth step at the earliest."""
WINDOW = range(-8, 392)  # the keys that Maps may hold, unless a test says otherwise
INT64 = range(-(2**63), 2**63)
EDGES = tuple(value for value in HUGE if value in INT64)


@dataclass(frozen=True)
class Offer:
    """An event offered after `path`, and what the plain functions said: taken or refused."""

    path: tuple[Event, ...]
    event: Event
    after: State  # where it is refused, the state before it
    rule: str | None  # why it is refused
    deviations: tuple[str, ...]  # those that path and event needed

    @property
    def taken(self) -> tuple[Event, ...]:
        """The events that the state is made of."""
        return self.path if self.rule else (*self.path, self.event)


def walk(spec: Spec, profile: str, choose: Choose, *, length: int, edges: Sequence[int] = ()) -> Iterator[Offer]:
    """Offer `length` events one after the other, going on from those that are taken."""
    state = spec.initial
    path: tuple[Event, ...] = ()
    deviations: tuple[str, ...] = ()
    names = [*spec.actions, *LIKELY.get(spec.name, ())]
    for turn in range(length):
        name = names[choose(range(len(names)))] if turn else names[0]  # unopened, there is little to do
        near = values_near(spec, state) + tuple(edges)
        args = tuple(near[choose(range(len(near)))] for _ in spec.parameters[name])
        if mood := choose(range(4)):  # 0: any arguments; 1: likely ones, but one is beside it; else: likely ones
            args = sensible(spec, state, name, args)
            odd = choose(range(len(args))) if args and mood == 1 else -1
            args = tuple(value + choose((-1, 1)) if at == odd else value for at, value in enumerate(args))
            args = tuple(max(INT64[0], min(INT64[-1], value)) for value in args)
        event = (name, args)
        try:
            after, deviation = spec.step(state, name, named(spec.name, event), profile)
        except Refused as refused:
            yield Offer(path, event, state, f"{spec.name}/{refused.rule}", deviations)
            continue
        deviations += (deviation,) if deviation else ()
        yield Offer(path, event, after, None, deviations)
        state, path = after, (*path, event)


def values_near(spec: Spec, state: State) -> tuple[int, ...]:
    """Values that the guards may compare with: small ones, their constants, the state's own and the neighbours."""
    own = {int(getattr(state, field)) for field in spec.scalars}
    stored = {int(v) for field in spec.maps for v in list(getattr(state, field).entries.values())[-3:]}
    near = {value + step for value in own | stored for step in (-1, 0, 1)}
    return tuple(sorted(value for value in near | set(SMALL) | constants(spec) if value in INT64))


@cache
def constants(spec: Spec) -> frozenset[int]:
    """The numbers that the kernel compares with."""
    questions = re.findall(r"^ +if (.*):$", kernel(spec.name).source, re.MULTILINE)
    return frozenset(int(text) for question in questions for text in re.findall(r"\b\d+\b", question))


def sensible(spec: Spec, state: State, action: str, drawn: tuple[int, ...]) -> tuple[int, ...]:
    """The drawn arguments, but for those that the next step is likely to be taken with."""
    expected: dict[tuple[str, str], Callable[[], int]] = {
        ("append", "position"): lambda: state.end if spec.name == "log" else drawn[2],
        ("append", "claimed"): lambda: state.end,
        ("append", "number"): lambda: state.end,
        ("append", "known"): lambda: 1,
        ("append", "fits"): lambda: 1,
        ("append", "intact"): lambda: 1,
        ("append", "sealed"): lambda: 1,
        ("roll", "position"): lambda: state.end,
        ("roll", "size"): lambda: state.base + state.file_size - state.end,
        ("roll", "marked"): lambda: 1,
        ("index", "number"): lambda: state.indexed,
        ("index", "position"): lambda: 0 if drawn[1] < 2 else state.positions[state.indexed],  # 0: a blank slot
        ("index", "size"): lambda: 2**31 - 1 if drawn[1] < 2 else state.sizes[state.indexed],
        ("index", "tag"): lambda: 0 if drawn[1] < 2 else state.tags[state.indexed],
        ("expire", "number"): lambda: state.first + (state.first < state.indexed),
        ("find_file", "full"): lambda: drawn[1],
        ("acknowledge", "number"): lambda: state.end - 1,
        ("acknowledge", "position"): lambda: state.positions[state.end - 1],
        ("acknowledge", "same"): lambda: drawn[2] % 2,
    } | OF.get(spec.name, nothing_more)(spec, state, drawn)
    known = (expected.get((action, parameter)) for parameter in spec.parameters[action])
    values = (value if guess is None else guess() for guess, value in zip(known, drawn, strict=True))
    return tuple(value if value in INT64 else 0 for value in values)


def of_transactions(spec: Spec, state: State, drawn: tuple[int, ...]) -> dict[tuple[str, str], Callable[[], int]]:
    """The same for halves, ops and cursors: `drawn` chooses between the newest version and the one before it."""
    some = drawn[0] if drawn else 0
    if spec.name == "checkpoint":
        return {
            ("half", "number"): lambda: state.half_end,
            ("resolve", "number"): lambda: state.half_cursor + some % 2,
            ("advance", "to"): lambda: state.half_cursor + 1,
            ("op", "number"): lambda: state.op_end,
            ("op", "reach"): lambda: state.half_cursor + some % 2,
            ("consume_op", "number"): lambda: state.op_cursor,
            ("advance_ops", "to"): lambda: state.op_cursor + 1,
        }
    if spec.name == "op_batch":
        return {
            ("open", "max_size"): lambda: abs(some) % 3,
            ("open", "interval"): lambda: abs(drawn[1]) % 3,
            ("enqueue", "length"): lambda: 1 + abs(drawn[1]) % 3,
            ("enqueue", "known"): lambda: 1,
            ("write", "count"): lambda: state.count if abs(some) % 3 else 1,
            ("write", "size"): lambda: state.size if abs(some) % 3 else state.size - state.count + 1,
            ("write", "last"): lambda: state.longest,
            ("write", "legible"): lambda: 1,
            ("write", "listed"): lambda: some % 2,
            ("tick", "time"): lambda: state.clock + abs(some) % 3,
        }
    version = state.newest - (some % 3 == 0)
    return {
        ("open", "start"): lambda: max(some, 0),
        ("open", "max_checks"): lambda: abs(drawn[1]) % 3,
        ("open", "witnessed"): lambda: int(drawn[2] % 4 == 0),
        ("ask_to_commit", "number"): lambda: state.newest + some % 2,
        ("ask_to_roll_back", "number"): lambda: state.newest + some % 2,
        ("prepare", "number"): lambda: state.newest + 1,
        ("outlive", "number"): lambda: state.newest + 1,
        ("check", "number"): lambda: state.newest + 1,
        ("check", "parent"): lambda: version,
        ("check", "position"): lambda: max(drawn[2], 0) if drawn[4] % 7 else -1,
        ("check", "times"): lambda: state.times[version] + 1 if drawn[3] % 5 else 0,
        ("check", "asked"): lambda: int(drawn[4] % 3 > 0),
        ("check", "same"): lambda: 1,
        ("commit", "number"): lambda: version,
        ("commit", "half"): lambda: state.positions[version],
        ("commit", "same"): lambda: 1,
        ("commit", "twice"): lambda: 1,
        ("roll_back", "number"): lambda: version,
        ("mark", "number"): lambda: version,
        ("park", "number"): lambda: version,
        ("park", "times"): lambda: state.max_checks,
        ("park", "same"): lambda: 1,
        ("park", "aged"): lambda: int(drawn[4] % 4 == 0),
        ("acknowledge", "number"): lambda: version,
        ("ask_back", "number"): lambda: version,
        ("ask_back", "half"): lambda: state.positions[version],
    }


def of_dispatch(_spec: Spec, state: State, drawn: tuple[int, ...]) -> dict[tuple[str, str], Callable[[], int]]:
    """The same for one queue and its workers: `drawn` chooses among the numbers that are not visible."""
    some = state.committed + abs(drawn[0]) % 3
    gap = next(n for n in count(state.committed) if state.bits[n] == 0)
    return {
        ("open", "overlap"): lambda: drawn[1] % 2,
        ("scan", "number"): lambda: state.scanned,
        ("take", "number"): lambda: some,
        ("write", "number"): lambda: state.at if drawn[0] % 2 else some,
        ("commit", "to"): lambda: gap,
        ("flush", "to"): lambda: state.committed,
        ("crash", "kept"): lambda: gap if drawn[0] % 2 else state.committed,
    }


def of_a_cache(_spec: Spec, state: State, drawn: tuple[int, ...]) -> dict[tuple[str, str], Callable[[], int]]:
    """The same for halves: one that waits in line, one that is not in the cache, or any near the end of the log."""
    some = abs(drawn[0])
    waiting = [half for _, half in sorted(state.line.entries.items())] or [state.end - 1]
    near = [max(state.end - 1 - some % 3, state.start), state.end - 1, state.flushed - 1]
    missed = [half for half in near if half not in waiting] or near
    return {
        ("open", "capacity"): lambda: 2 - (drawn[1] % 3 == 0),
        ("append", "number"): lambda: state.end,
        ("put", "number"): lambda: (
            next((n for n in near if state.puts[n] == 0), state.end - 1) if some % 5 else near[0]
        ),
        ("evict", "number"): lambda: waiting[-(some % 2)],
        ("hit", "number"): lambda: waiting[-1] if some % 3 else state.end,
        ("read", "number"): lambda: missed[-1],
        ("wait", "number"): lambda: missed[0],
        ("deny", "number"): lambda: state.end + some % 2 - (some % 5 == 0),
        ("flush", "to"): lambda: state.end - some % 2,
        ("restart", "kept"): lambda: state.end + (some % 4 > 0),
    }


def of_a_broker(_spec: Spec, state: State, drawn: tuple[int, ...]) -> dict[tuple[str, str], Callable[[], int]]:
    """The same for one transaction and the end of its log."""
    written = ("prepare", "check", "commit", "mark", "park")
    return {
        **{(action, "position"): lambda: state.end for action in written},
        ("open", "max_checks"): lambda: abs(drawn[0]) % 3,
        ("prepare", "number"): lambda: abs(drawn[0]) % 2,
        ("prepare", "group"): lambda: abs(drawn[2]) % 3,
        ("check", "times"): lambda: state.checks + 1,
        ("check", "group"): lambda: state.group + (drawn[2] % 5 == 0),
        ("commit", "queue"): lambda: state.meant + (drawn[1] % 5 == 0),
        ("park", "times"): lambda: state.checks,
        ("flush", "to"): lambda: state.end,
        ("dispatch", "position"): lambda: state.final,
        ("crash", "kept"): lambda: state.flushed,
    }


def of_a_ring(_spec: Spec, state: State, drawn: tuple[int, ...]) -> dict[tuple[str, str], Callable[[], int]]:
    """The same for batches near the pointer."""
    return {
        ("open", "slots"): lambda: 1 + drawn[0] % 3,
        ("cut", "batch"): lambda: state.cut,
        ("decode", "batch"): lambda: state.next + abs(drawn[0]) % 3,
        ("dispatch", "batch"): lambda: state.next,
    }


def of_coordinators(_spec: Spec, state: State, drawn: tuple[int, ...]) -> dict[tuple[str, str], Callable[[], int]]:
    """The same for a coordinator: `drawn` chooses between its newest transaction and the one before it."""
    some = drawn[0] if drawn else 0
    number = state.end - 1 - (some % 3 == 0)
    status = int(state.log[number])
    return {
        ("open", "limit"): lambda: some % 3,
        ("recover", "limit"): lambda: some % 4 - 1,
        ("load", "number"): lambda: number,
        ("load", "status"): lambda: status,
        ("begin", "number"): lambda: state.end,
        ("begin", "life"): lambda: (1, 99, 100, 1000)[drawn[2] % 4],
        ("hand", "number"): lambda: number,
        ("add", "number"): lambda: number,
        ("decide", "number"): lambda: number,
        ("decide", "to"): lambda: 2 + drawn[1] % 2,
        ("time_out", "number"): lambda: number,
        ("time_out", "time"): lambda: state.times[number] + state.lives[number] - drawn[1] % 2,
        ("finish", "number"): lambda: number,
        ("finish", "to"): lambda: status + 2,
        ("acknowledge", "number"): lambda: number,
        ("acknowledge", "status"): lambda: status,
    }


def of_permits(_spec: Spec, state: State, drawn: tuple[int, ...]) -> dict[tuple[str, str], Callable[[], int]]:
    """The same for a client: requests 0 to 2, and time that passes."""
    some = (drawn[0] if drawn else 0) % 3
    numbers = {(action, "number"): lambda: some for action in ("wait", "acquire", "reply", "time_out", "late_reply")}
    return numbers | {
        ("open", "permits"): lambda: 1 + some % 2,
        ("open", "timeout"): lambda: drawn[1] % 3,
        ("tick", "time"): lambda: state.clock + some,
        ("rest", "within"): lambda: some % 2,
    }


def nothing_more(_spec: Spec, _state: State, _drawn: tuple[int, ...]) -> dict[tuple[str, str], Callable[[], int]]:
    return {}


OF = {
    **dict.fromkeys(("transaction", "checkpoint", "op_batch"), of_transactions),
    "dispatch": of_dispatch,
    "ring": of_a_ring,
    "half_cache": of_a_cache,
    "broker": of_a_broker,
    "coordinator": of_coordinators,
    "permits": of_permits,
}


def compiled(
    of: Kernel, offers: Sequence[Offer], profile: str, *, origin: int = WINDOW[0], width: int = len(WINDOW)
) -> Replayed:
    """Every offer as a trace of its own, all in one call; the keys of Maps lie in `origin:origin + width`."""
    spec = of.spec
    traces = [[*offer.path, offer.event] for offer in offers]
    events = [event for trace in traces for event in trace]
    args = np.full((len(spec.arguments), len(events)), 77, np.int64)  # what an action does not take, it must not read
    for at, event in enumerate(events):
        for name, value in named(spec.name, event).items():
            args[spec.arguments.index(name), at] = value
    begin = [[int(getattr(spec.initial, name))] * len(traces) for name in spec.scalars]
    return of.replay(
        np.cumsum([0, *(len(trace) for trace in traces)], dtype=np.int64),
        np.array([spec.codes[name] for name, _ in events], np.int8),
        args,
        np.array(begin, np.int64).reshape(len(spec.scalars), len(traces)),
        origins=np.full(len(traces), origin, np.int64),
        widths=np.full(len(traces), width, np.int64),
        profile=profile,
    )


def disagreements(of: Kernel, offers: Sequence[Offer], found: Replayed) -> Iterator[str]:
    """Where the kernel says otherwise than the plain functions, and does not leave it to them."""
    begin = 0
    for at, offer in enumerate(offers):
        last = begin + len(offer.path)
        begin = last + 1
        why, where = int(found.bad_why[at]), int(found.bad_at[at])
        if why == EXACT:
            continue
        said = None if why == 0 else (of.reasons[why - 1].action, of.reasons[why - 1].rule, where)
        expected = None if offer.rule is None else (offer.event[0], offer.rule, last)
        if said != expected:
            yield f"{offer}: the kernel says {said}, expected {expected}"
            continue
        state = {name: int(value) for name, value in zip(of.spec.scalars, found.state[:, at], strict=True)}
        for name, value in state.items():
            if value != getattr(offer.after, name):
                yield f"{offer}: the kernel has {name} = {value}, expected {getattr(offer.after, name)}"


def assert_agreement(
    of: Kernel, offers: Sequence[Offer], profile: str, *, origin: int = WINDOW[0], width: int = len(WINDOW)
) -> Replayed:
    """Hold the kernel against the plain functions."""
    found = compiled(of, offers, profile, origin=origin, width=width)
    for disagreement in disagreements(of, offers, found):
        pytest.fail(disagreement)
    return found


NOBODY = "nobody"  # a profile that allows no deviation at all
WALKS = {"transaction": 1500, "half_cache": 1000, "broker": 1200, "coordinator": 500}
"""Some of their needs are met four steps after the beginning."""
LONG = {"coordinator": 40, "broker": 40}  # steps of a walk; elsewhere 20
WALKED = (NOBODY, "rocketmq", "pulsar")  # between them, they meet everything


def broker(spec: Spec) -> str:
    """The profile of the broker whose deviations the spec knows."""
    return next((name for deviation in spec.deviations for name in sorted(deviation.profiles)), NOBODY)


EVERY_PROFILE = pytest.mark.parametrize("profile", [*PROFILES, NOBODY])
EVERY_SPEC = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)


def drawing(data: st.DataObject) -> Choose:
    return lambda options: data.draw(st.sampled_from(options))


def walks(spec: Spec, profile: str, count: int = 0) -> list[Offer]:
    """The same random walks every time, by default as many as meet everything."""
    chance = random.Random(f"{spec.name} {profile}")
    return [
        offer
        for _ in range(count or WALKS.get(spec.name, 300))
        for offer in walk(spec, profile, chance.choice, length=LONG.get(spec.name, 20))
    ]


# -- agreement -----------------------------------------------------------------------------------------------------


@EVERY_PROFILE
@EVERY_SPEC
@given(data=st.data())
def test_small_values_get_the_same_answer_and_a_decision(spec: Spec, profile: str, data: st.DataObject) -> None:
    offers = list(walk(spec, profile, drawing(data), length=12))
    found = assert_agreement(kernel(spec.name), offers, profile)
    if EXACT in found.bad_why:
        numbers = {named(spec.name, event).get("number", 0) for offer in offers for event in offer.taken}
        assert not all(WINDOW[0] <= number <= WINDOW[-1] for number in numbers)
        return
    taken = Counter(name for offer in offers for name, _ in offer.taken)
    assert found.covered.tolist() == [taken[name] for name in spec.actions]
    deviated = Counter(name for offer in offers for name in offer.deviations)
    assert found.deviated[:-1].tolist() == [deviated[d.step.__name__] for d in spec.deviations]


@EVERY_PROFILE
@EVERY_SPEC
@given(data=st.data())
def test_values_at_the_ends_of_64_bits_get_the_same_answer(spec: Spec, profile: str, data: st.DataObject) -> None:
    assert_agreement(kernel(spec.name), list(walk(spec, profile, drawing(data), length=10, edges=EDGES)), profile)


@EVERY_PROFILE
@EVERY_SPEC
@given(data=st.data(), origin=st.integers(-2, 6), width=st.integers(0, 4))
def test_a_narrow_window_never_makes_a_wrong_answer(
    spec: Spec, profile: str, data: st.DataObject, origin: int, width: int
) -> None:
    offers = list(walk(spec, profile, drawing(data), length=12))
    assert_agreement(kernel(spec.name), offers, profile, origin=origin, width=width)


def test_sums_of_large_arguments_do_not_wrap_around() -> None:
    """Each argument has room to spare in 64 bits; what a guard adds up has not."""
    near = 2**62 - 1
    opened = ("open", (near, near))
    state = SPECS["log"].step(SPECS["log"].initial, *_named("log", opened), NOBODY)[0]
    event = ("append", (near, near, near, 1, 1, 1, 1, 0))
    with pytest.raises(Refused) as refused:
        SPECS["log"].step(state, *_named("log", event), NOBODY)
    offer = Offer((opened,), event, state, f"log/{refused.value.rule}", ())
    assert_agreement(kernel("log"), [offer], NOBODY)


def _named(spec: str, event: Event) -> tuple[str, dict[str, int]]:
    return event[0], named(spec, event)


@EVERY_PROFILE
@EVERY_SPEC
def test_every_action_deviation_and_reason_is_met_on_walks(spec: Spec, profile: str) -> None:
    """Agreement says nothing of what no walk meets: on these all agree, and nothing is left out."""
    offers = walks(spec, profile)
    of = kernel(spec.name)
    assert_agreement(of, offers, profile)
    assert {name for offer in offers for name, _ in offer.taken} == set(spec.actions)
    assert {name for offer in offers for name in offer.deviations} == {d.step.__name__ for d in spec.allowed(profile)}
    refused = {(offer.event[0], offer.rule) for offer in offers if offer.rule}
    assert refused <= {(reason.action, reason.rule) for reason in of.reasons if is_of_the_action(reason)}


@EVERY_SPEC
def test_every_reason_is_met_on_walks(spec: Spec) -> None:
    """Some only behind a deviation."""
    every = {(r.action, r.rule) for r in kernel(spec.name).reasons if is_of_the_action(r)}
    offers = [offer for profile in WALKED for offer in walks(spec, profile)]
    assert {(offer.event[0], offer.rule) for offer in offers if offer.rule} == every


def is_of_the_action(reason: Reason) -> bool:
    """Whether a need is the action's own; those of a deviation are never told."""
    return reason.step == reason.action


# -- a Map that is written, forgotten and read in one step ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Page:
    """The state of a spec that is made up for this."""

    found: int = 0  # what the last writer read
    there: int = 0  # what was read later
    full: int = 0  # whether every line had something written
    lines: Map[Number, int] = Map(0)


def write_and_forget(s: Page, first: Number, low: Number, then: Number, asked: Number) -> Page:
    """The last effect that reaches a key says what is there, be it in a guard, a quantifier or a new value."""
    before = s.lines.forget_from(then)
    lines = s.lines.set(first, 7).forget_from(low).set(then, before[asked] + 8)
    require(lines[first] < 20, "there-is-room", because="there is room", otherwise="a line runs over")
    full = 1 if all_between(0, 4, lambda n: lines[Number(n)] > 0) else 0
    return replace(s, lines=lines, full=full, found=lines[asked])


def write_and_clear(s: Page, first: Number, low: Number, asked: Number) -> Page:
    """A cleared Map has forgotten what was written before, and not what is written after."""
    lines = s.lines.set(low, 3).cleared().set(first, 5).forget_from(low)
    return replace(s, lines=lines, found=lines[asked])


def read(s: Page, asked: Number) -> Page:
    """What lies there now."""
    return replace(s, there=s.lines[asked])


LINES = st.integers(0, 3)
A_STEP = st.tuples(st.booleans(), LINES, LINES, LINES, LINES)


@given(steps=st.lists(A_STEP, min_size=1, max_size=4), origin=st.sampled_from([0, 0, 1]), asked=LINES)
def test_effects_on_a_map_take_place_in_order(
    steps: list[tuple[bool, int, int, int, int]], origin: int, asked: int
) -> None:
    module = ModuleType("page")
    vars(module).update(INITIAL=Page(), ACTIONS=(write_and_forget, write_and_clear, read), DEVIATIONS=())
    spec = Spec(module)
    of = uncompiled(Kernel(spec, (), "", lambda *_: None), kernels._Writer(spec).source())
    trace: list[Event] = [
        ("write_and_clear", (a, b, d)) if clear else ("write_and_forget", (a, b, c, d)) for clear, a, b, c, d in steps
    ]
    trace.append(("read", (asked,)))
    state, taken = spec.initial, 0
    for name, values in trace:
        try:
            state, _ = spec.step(state, name, dict(zip(spec.parameters[name], values, strict=True)), NOBODY)
        except Refused:
            break
        taken += 1
    found = replay_one(of, trace, origin=origin, width=4)
    if found.bad_why[0] == EXACT:
        assert origin, "all keys lie in the window"
        return
    assert found.bad_at[0] == (taken if taken < len(trace) else -1)
    assert found.state[:, 0].tolist() == [state.found, state.there, state.full]


def replay_one(of: Kernel, trace: Sequence[Event], *, origin: int, width: int) -> Replayed:
    """One trace from the spec's initial state."""
    spec = of.spec
    args = np.full((len(spec.arguments), len(trace)), 77, np.int64)
    for at, (name, values) in enumerate(trace):
        for parameter, value in zip(spec.parameters[name], values, strict=True):
            args[spec.arguments.index(parameter), at] = value
    return of.replay(
        np.array([0, len(trace)]),
        np.array([spec.codes[name] for name, _ in trace], np.int8),
        args,
        np.zeros((len(spec.scalars), 1), np.int64),
        origins=np.array([origin]),
        widths=np.array([width]),
        profile=NOBODY,
    )


# -- disagreement --------------------------------------------------------------------------------------------------


def uncompiled(of: Kernel, source: str) -> Kernel:
    """A kernel with another source, run as plain Python: slow, and good enough for a few events."""
    names: dict[str, Any] = {}
    exec(source.replace("from numba import njit", "njit = lambda *f, **_: f[0] if f else njit"), names)  # noqa: S102
    return replace(of, source=source, loop=names["replay"])


def without_guard(source: str, leaves: Sequence[int]) -> str:
    """The source, but these reasons are never given: the question before each always has the other answer."""
    lines = source.splitlines()
    for number in leaves:
        leaf = next(at for at, line in enumerate(lines) if line.strip() == f"why = {number}")
        if lines[leaf - 1].strip() != "else:":
            indent = lines[leaf - 1][: len(lines[leaf - 1]) - len(lines[leaf - 1].lstrip())]
            lines[leaf - 1] = f"{indent}if False:"
            continue
        indent = lines[leaf - 1].removesuffix("else:")
        asked = max(at for at in range(leaf) if lines[at].startswith(f"{indent}if "))
        lines[asked] = f"{indent}if True:"
    return "\n".join(lines)


@EVERY_SPEC
def test_a_kernel_that_lacks_one_guard_is_found_out(spec: Spec) -> None:
    of = kernel(spec.name)
    refused = [(profile, offer) for profile in WALKED for offer in walks(spec, profile) if offer.rule]
    for action, rule in {(r.action, r.rule): r for r in of.reasons if is_of_the_action(r)}:
        met = [(profile, offer) for profile, offer in refused if (offer.event[0], offer.rule) == (action, rule)]
        profile = met[0][0]
        offers = [offer for its_profile, offer in met if its_profile == profile][:9]
        leaves = [n for n, reason in enumerate(of.reasons, 1) if (reason.action, reason.rule) == (action, rule)]
        whole, broken = uncompiled(of, of.source), uncompiled(of, without_guard(of.source, leaves))
        assert not any(disagreements(of, offers, compiled(whole, offers, profile)))
        assert any(disagreements(of, offers, compiled(broken, offers, profile))), rule


@EVERY_SPEC
def test_a_kernel_that_forgets_a_step_is_found_out(spec: Spec) -> None:
    of, profile = kernel(spec.name), broker(spec)
    offers = walks(spec, profile, 120)
    for name in spec.scalars:
        forgetful = re.sub(rf"^( +)s_{name} = t\d+$", r"\1pass", of.source, flags=re.MULTILINE)
        if forgetful != of.source:
            broken = uncompiled(of, forgetful)
            assert any(disagreements(of, offers, compiled(broken, offers, profile))), name


def test_an_action_that_the_spec_does_not_have_is_told() -> None:
    of = kernel("log")
    nothing = np.zeros((len(of.spec.arguments), 1), np.int64)
    begin = np.zeros((len(of.spec.scalars), 1), np.int64)
    found = of.replay(np.array([0, 1]), np.array([99], np.int8), nothing, begin, profile=NOBODY)
    assert found.bad_why.tolist() == [UNKNOWN_ACTION]
