"""Walks through a spec: events are offered to its plain functions, and accepted ones are taken.

Values are drawn from those that matter where the walk is: the state's own, their neighbours, and those that the guards
compare with. `walks` are the same every time; `walk` asks its caller, such as Hypothesis by `drawing`.
"""

from __future__ import annotations

import ast
import random
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any

import pytest
from hypothesis import strategies as st

from gapless.properties.exploration.bounds import arguments, bound_of
from gapless.spec.catalog import PROFILES, SPECS, Spec, State
from gapless.spec.language import Refused
from gapless.spec.reading.trees.ranges import LIMIT
from gapless.traces.replay.exact import Event, named
from gapless.traces.replay.kernels import kernel
from tests.support.night import NIGHT, by_day

Choose = Callable[[Sequence[Any]], Any]
SMALL = (0, 1, 2, 3, 8, 9, 40, 100)
LIKELY = {
    "broker": 3 * ("prepare", "flush", "flush", "answer", "run", "ask_to_commit", "commit", "dispatch"),
    "check_service": 3 * ("enqueue", "write", "resolve", "advance", "consume_op", "advance_ops"),
    "dispatch": ("scan", "take", "write", "commit", "end", "end"),
    "kafka_transaction": 4 * ("add", "write", "decide", "mark", "mark", "received"),
}
"""Steps that a walk takes more often: consumers see a message in the ninth step of a broker at the earliest, and in
the fifth of a queue, and those of Kafka in the sixth of a transaction."""
INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True)
class Offer:
    """An event offered after `path`, and the answer of the plain functions: taken or refused."""

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
        unopened = turn == 0 and choose(range(20)) > 0  # then there is little to do
        name = names[0 if unopened else choose(range(len(names)))]
        near = values_near(spec, state) + tuple(edges)
        args = tuple(near[choose(range(len(near)))] for _ in spec.parameters[name])
        mood = choose(("any", "likely", "likely", "likely, but one", "taken", "taken, but one"))
        if mood.startswith("likely"):
            args = likely_arguments(spec, state, name, args)
        elif mood.startswith("taken"):
            args = taken_arguments(spec, state, name, profile, choose) or args
        if args and mood.endswith("but one"):
            odd = choose(range(len(args)))
            args = (*args[:odd], args[odd] + choose((-1, 1)), *args[odd + 1 :])
        args = tuple(within(spec, name, *each) for each in zip(spec.parameters[name], args, strict=True))
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
    steps = kernel(spec.name).steps.functions[:-1]  # the last one tells actions apart
    asked = (node.test for function in steps for node in ast.walk(function) if isinstance(node, ast.If))
    numbers = (one.value for test in asked for one in ast.walk(test) if isinstance(one, ast.Constant))
    return frozenset(value for value in numbers if isinstance(value, int) and abs(value) < LIMIT)


def within(spec: Spec, action: str, parameter: str, value: int) -> int:
    """The value that an event may have for this: flags are 1 or 0, and numbers have 64 bits."""
    return value % 2 if parameter in spec.flags[action] else max(INT64[0], min(INT64[-1], value))


def taken_arguments(spec: Spec, state: State, action: str, profile: str, choose: Choose) -> tuple[int, ...] | None:
    """Return arguments of the explored range with which the step is taken here, if a few tries find some."""
    every = explored_arguments(spec, action)
    first: int = choose(range(len(every)))
    for at in range(min(len(every), 40)):
        args: tuple[int, ...] = every[(first + 7 * at) % len(every)]
        with suppress(Refused):
            spec.step(state, action, named(spec.name, (action, args)), profile)
            return args
    return None


@cache
def explored_arguments(spec: Spec, action: str) -> list[tuple[int, ...]]:
    """Every tuple of arguments that exploration tries."""
    return arguments(bound_of(spec), spec, action)


def likely_arguments(spec: Spec, state: State, action: str, drawn: tuple[int, ...]) -> tuple[int, ...]:
    """The drawn arguments, but for those that the next step is likely to be taken with."""
    expected: dict[tuple[str, str], Callable[[], int]] = {
        ("append", "position"): lambda: state.end if spec.name in {"log", "broker"} else drawn[2],
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
        ("index_batch", "number"): lambda: state.indexed,
        ("index_batch", "count"): lambda: max(1, state.end - state.indexed) if drawn[1] % 2 else 1,
        ("index_batch", "position"): lambda: state.positions[state.indexed],
        ("index_batch", "size"): lambda: state.sizes[state.indexed],
        ("index_batch", "tag"): lambda: state.tags[state.indexed],
        ("expire", "number"): lambda: state.first + (state.first < state.indexed),
        ("find_file", "full"): lambda: drawn[1],
        ("truncate", "number"): lambda: state.end - drawn[0] % 2,
        ("tell_last", "number"): lambda: state.indexed - 1,
        ("tell_last", "position"): lambda: state.entry_positions[state.indexed - 1],
        ("tell_first", "number"): lambda: state.first - drawn[0] % 2,
        ("acknowledge", "number"): lambda: state.end - 1,
        ("acknowledge", "position"): lambda: state.positions[state.end - 1],
        ("acknowledge", "same"): lambda: drawn[2] % 2,
    } | LIKELY_ARGUMENTS.get(spec.name, nothing_more)(spec, state, drawn)
    known = (expected.get((action, parameter)) for parameter in spec.parameters[action])
    values = (value if guess is None else guess() for guess, value in zip(known, drawn, strict=True))
    return tuple(value if value in INT64 else 0 for value in values)


def of_transactions(spec: Spec, state: State, drawn: tuple[int, ...]) -> dict[tuple[str, str], Callable[[], int]]:
    """The same for halves, ops and cursors: `drawn` chooses between the newest version and the one before it."""
    some = drawn[0] if drawn else 0
    if spec.name == "op_batch":
        return {
            ("open", "max_size"): lambda: abs(some) % 3,
            ("open", "interval"): lambda: abs(drawn[1]) % 3,
            ("enqueue", "length"): lambda: 1 + abs(drawn[1]) % 3,
            ("enqueue", "known"): lambda: 1,
            ("write", "count"): lambda: state.entered - state.written if abs(some) % 3 else 1,
            ("write", "size"): lambda: state.size if abs(some) % 3 else state.longest,
            ("write", "last"): lambda: state.longest,
            ("write", "legible"): lambda: 1,
            ("write", "listed"): lambda: some % 2,
            ("name", "number"): lambda: state.entries[state.written - 1],
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
        ("check", "position"): lambda: max(state.positions[version], 0) + max(drawn[2], 1) if drawn[4] % 7 else -1,
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
        ("park", "times"): lambda: state.times[version],
        ("park", "same"): lambda: 1,
        ("park", "aged"): lambda: int(drawn[4] % 4 == 0),
        ("acknowledge", "number"): lambda: version,
        ("ask_back", "number"): lambda: version,
        ("ask_back", "half"): lambda: state.positions[version],
    }


def of_cursors(_spec: Spec, state: State, drawn: tuple[int, ...]) -> dict[tuple[str, str], Callable[[], int]]:
    """The same for two cursors, with the batcher or without it: `drawn` chooses among what is not passed."""
    some = abs(drawn[0]) if drawn else 0
    how = 1 + abs(drawn[1]) % 4 if len(drawn) > 1 else 0
    by = {1: state.op_end - 1, 2: state.half_end - 1, 3: state.copy_end}
    return {
        ("open", "half"): lambda: some,
        ("open", "max_checks"): lambda: some % 3,
        ("half", "number"): lambda: state.half_end,
        ("resolve", "number"): lambda: state.half_cursor + some % 3,
        ("resolve", "how"): lambda: how,
        ("resolve", "by"): lambda: -1 if drawn[2] % 4 == 0 else by.get(how, state.op_end - 1),
        ("enqueue", "number"): lambda: state.newest if some % 3 == 0 else state.half_end - 1 - some % 2,
        ("enqueue", "length"): lambda: 1 + drawn[1] % 3,
        ("flush", "half"): lambda: state.half_end - (some % 5 == 0),
        ("flush", "op"): lambda: state.op_end - (drawn[1] % 5 == 0),
        ("flush", "copy"): lambda: state.copy_end - (drawn[2] % 5 == 0),
        ("crash", "half"): lambda: state.half_flushed if some % 3 else state.half_end,
        ("crash", "op"): lambda: state.op_flushed if drawn[1] % 3 else state.op_end,
        ("advance", "to"): lambda: state.half_cursor + 1,
        ("op", "number"): lambda: state.op_end,
        ("op", "reach"): lambda: state.half_cursor + drawn[1] % 3,
        ("consume_op", "number"): lambda: state.op_cursor,
        ("advance_ops", "to"): lambda: state.op_cursor + 1,
    }


def of_dispatch(_spec: Spec, state: State, drawn: tuple[int, ...]) -> dict[tuple[str, str], Callable[[], int]]:
    """The same for one queue and its workers: `drawn` chooses among the numbers that are not visible."""
    some = state.committed + abs(drawn[0] if drawn else 0) % 3
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
    new = next((n for n in near if state.puts[n] == 0), state.end - 1) if some % 5 else near[0]
    found = waiting[-1] if some % 3 else state.end
    return {
        ("open", "start"): lambda: max(drawn[1] - abs(drawn[0]) % 3, 0),
        ("open", "number"): lambda: abs(drawn[1]),
        ("open", "capacity"): lambda: 2 - (drawn[1] % 3 == 0),
        ("append", "number"): lambda: state.end,
        ("put", "number"): lambda: new,
        ("put", "message"): lambda: state.messages[new] + (drawn[1] % 7 == 0),
        ("acknowledge", "number"): lambda: state.end - 1,
        ("evict", "number"): lambda: waiting[-(some % 2)],
        ("hit", "number"): lambda: found,
        ("hit", "message"): lambda: state.copies[found] + (drawn[1] % 7 == 0),
        ("read", "number"): lambda: missed[-1],
        ("read", "message"): lambda: state.messages[missed[-1]] + (drawn[1] % 7 == 0),
        ("wait", "number"): lambda: missed[0],
        ("deny", "number"): lambda: state.end + some % 2 - (some % 5 == 0),
        ("flush", "to"): lambda: state.end - some % 2,
        ("restart", "kept"): lambda: state.end + (some % 4 > 0),
    }


def of_a_lookup(_spec: Spec, state: State, drawn: tuple[int, ...]) -> dict[tuple[str, str], Callable[[], int]]:
    """The same for halves without a cache: any near the end of the log, or of what can be read."""
    some = abs(drawn[0])
    near = state.end - 1 - some % 3
    return {
        ("open", "start"): lambda: max(drawn[1] - some % 3, 0),
        ("open", "number"): lambda: abs(drawn[1]),
        ("append", "number"): lambda: state.end,
        ("find", "number"): lambda: near,
        ("find", "message"): lambda: state.messages[near] + (drawn[1] % 3 == 0),
        ("wait", "number"): lambda: near + some % 2,
        ("deny", "number"): lambda: state.end - (some % 5 == 0),
        ("flush", "to"): lambda: state.end - some % 2,
        ("restart", "kept"): lambda: state.end + (some % 4 > 0),
    }


def of_a_broker(_spec: Spec, state: State, drawn: tuple[int, ...]) -> dict[tuple[str, str], Callable[[], int]]:
    """The same for one transaction and the end of its log."""
    written = ("append", "prepare", "check", "commit", "mark", "park")
    newest = state.newest - (bool(drawn) and drawn[0] % 7 == 0)
    return {
        **{(action, "position"): lambda: state.end for action in written},
        ("open", "max_checks"): lambda: abs(drawn[0]) % 3,
        ("open", "file_size"): lambda: 40 - 8 * (drawn[1] % 4),
        ("ask_to_commit", "number"): lambda: newest,
        ("ask_to_roll_back", "number"): lambda: newest,
        ("check", "number"): lambda: state.newest + 1 + abs(drawn[0]) % 2,
        ("prepare", "number"): lambda: abs(drawn[0]) % 2,
        ("prepare", "group"): lambda: abs(drawn[2]) % 3,
        ("check", "times"): lambda: state.checks + 1,
        ("check", "group"): lambda: state.group + (drawn[2] % 5 == 0),
        ("commit", "queue"): lambda: state.meant + (drawn[1] % 5 == 0),
        ("park", "times"): lambda: state.checks,
        ("dispatch", "position"): lambda: state.final,
    }


def of_a_ring(_spec: Spec, state: State, drawn: tuple[int, ...]) -> dict[tuple[str, str], Callable[[], int]]:
    """The same for batches near the pointer."""
    return {
        ("open", "slots"): lambda: 1 + drawn[0] % 3,
        ("cut", "batch"): lambda: state.cut,
        ("decode", "batch"): lambda: state.next + abs(drawn[0]) % 3,
        ("dispatch", "batch"): lambda: state.next,
    }


def _some_request(state: State, some: int) -> int:
    """A request that waits, or else one that is new, among the first hundred."""
    return next((r for r in range(100) if state.pending[r] == (some % 2) and state.fates[r] <= 1), 0)


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
        **{(step, "request"): lambda: _some_request(state, some) for step in ("admit", "ignore", "burn", "begin")},
        ("hand", "request"): lambda: state.owners[number],
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


def of_an_index(_spec: Spec, state: State, drawn: tuple[int, ...]) -> dict[tuple[str, str], Callable[[], int]]:
    """The same for a file of a hash index: items that belong there, and now and then one that does not."""
    slot, wrong = abs(drawn[0]) % 3, drawn[0] % 7 == 0
    return {
        ("open", "slots"): lambda: 3,
        ("put", "slot"): lambda: slot,
        ("put", "previous"): lambda: state.heads[slot] + wrong,
        ("put", "position"): lambda: state.last + drawn[1] % 3 - (drawn[1] % 11 == 0),
        ("find_slot", "slot"): lambda: slot,
        ("find_slot", "head"): lambda: state.heads[slot] + wrong,
        ("find_header", "used"): lambda: state.used + wrong,
        ("find_header", "items"): lambda: state.items,
        ("find_header", "first"): lambda: state.first,
        ("find_header", "last"): lambda: state.last - (drawn[1] % 5 == 0),
    }


def of_entries(spec: Spec, state: State, drawn: tuple[int, ...]) -> dict[tuple[str, str], Callable[[], int]]:
    """The same for entries whose messages, or units, say what they say: the one that comes next."""
    name = "find_unit" if "find_unit" in spec.actions else "find_entry"
    given = {**dict(zip(spec.parameters[name], drawn, strict=False)), "count": 1, "size": max((*drawn, 0)[0], 0)}
    given |= {"number": state.read if spec.name == "tiered" else state.end}
    given |= {} if name == "find_unit" else {"position": state.reached}
    its = {its: given.get(its.removeprefix("its_"), 0) for its in spec.parameters[name] if its.startswith("its_")}
    right = given | its | dict.fromkeys(spec.flags[name], 1)
    entry = {(name, one): lambda value=right[one]: value for one in spec.parameters[name] if one in right}
    return {**entry, ("outlive", "number"): lambda: given["number"], ("outlive", "position"): lambda: state.start - 1}


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


def constant(value: int) -> Callable[[], int]:
    """Return a function of this value."""
    return lambda: value


def of_a_partition(_spec: Spec, state: State, drawn: tuple[int, ...]) -> dict[tuple[str, str], Callable[[], int]]:
    """The same for Kafka's log: the batch that comes next, and indexes that name it."""
    many, wrong = abs(drawn[0]) % 2 if drawn else 0, bool(drawn) and drawn[0] % 11 == 0
    cut = {"segment": state.segment, "position": 0, "epoch": state.epoch, "since": state.since}
    return {
        **{("open", name): constant(value) for name, value in {"start": 0, "segment": 0, "offset": 0}.items()},
        ("open", "epoch"): lambda: -1,
        ("open", "since"): lambda: 0,
        ("open", "timed"): lambda: -1,
        ("lead", "epoch"): lambda: state.epoch + 1,
        ("lead", "since"): lambda: state.end + wrong,
        ("append", "first"): lambda: state.end,
        ("append", "last"): lambda: state.end + many,
        ("append", "count"): lambda: 1 + many,
        ("append", "epoch"): lambda: state.epoch,
        ("append", "position"): lambda: state.reached,
        ("append", "size"): lambda: 61,
        **{("append", flag): lambda: not wrong for flag in ("sound", "whole", "ordered", "dated")},
        ("index", "offset"): lambda: state.end - 1,
        ("index", "position"): lambda: state.reached - 61 * (not wrong),
        ("index", "begins"): lambda: state.first,
        ("index_time", "time"): lambda: state.newest,
        ("index_time", "offset"): lambda: state.end - 1,
        ("roll", "segment"): lambda: state.end,
        ("roll", "rest"): lambda: int(wrong),
        ("flush", "to"): lambda: state.end,
        ("save", "at"): lambda: state.end,
        ("raise_watermark", "to"): lambda: state.end - many,
        ("raise_watermark", "undecided"): lambda: -1 if wrong else state.end - 2 * many,
        ("delete", "to"): lambda: state.start + many,
        ("clean", "to"): lambda: state.stable,
        ("crash", "kept"): lambda: state.end - many,
        ("truncate", "to"): lambda: state.end - many,
        **{(step, name): constant(value) for step in ("crash", "truncate") for name, value in cut.items()},
        **{(step, name): lambda: -1 for step in ("crash", "truncate") for name in ("newest", "timed")},
    }


def of_a_kafka_transaction(
    _spec: Spec, state: State, drawn: tuple[int, ...]
) -> dict[tuple[str, str], Callable[[], int]]:
    """The same for a transactional id of Kafka: partitions 0 and 1, epochs as they come, markers as decided."""
    some = abs(drawn[0]) if drawn else 0
    part, wrong, protocol = some % 2, some % 11 == 0, 1 + some // 2 % 2
    named, read = (part if of[part] == 1 or wrong else 1 - part for of in (state.added, state.committed))
    end = state.reached[named]
    return {
        ("open", "phase"): lambda: (-1, 0, 0, 1)[some % 4],
        ("open", "epoch"): lambda: -1 if some % 4 == 0 else 0,
        ("init", "pid"): lambda: state.pid + wrong,
        ("init", "epoch"): lambda: state.epoch + 1 - wrong,
        **{(step, "part"): lambda: part for step in ("add", "crash")},
        **{(step, "part"): lambda: named for step in ("write", "mark")},
        ("received", "part"): lambda: read,
        ("add", "epoch"): lambda: state.epoch,
        ("write", "first"): lambda: end,
        ("write", "last"): lambda: end + some % 3,
        ("write", "epoch"): lambda: state.epoch - wrong,
        ("decide", "protocol"): lambda: protocol,
        ("decide", "epoch"): lambda: state.epoch + (protocol == 2) + wrong,
        ("decide", "whole"): lambda: not wrong,
        ("time_out", "epoch"): lambda: state.epoch + 1,
        ("time_out", "whole"): lambda: 1,
        ("mark", "commit"): lambda: int(state.phase == 2) if some % 5 else 0,
        ("mark", "epoch"): lambda: state.epoch,
        ("mark", "offset"): lambda: end,
        ("complete", "pid"): lambda: state.pid,
        ("complete", "epoch"): lambda: state.epoch,
        ("crash", "kept"): lambda: end - some % 2,
        ("received", "offset"): lambda: state.began[read],
    }


def of_group_offsets(_spec: Spec, state: State, drawn: tuple[int, ...]) -> dict[tuple[str, str], Callable[[], int]]:
    """The same for the offset of a group: producers 0 and 1, records as they come."""
    some = abs(drawn[0]) if drawn else 0
    placed = ("commit", "commit_in_transaction", "mark", "tombstone", "expire")
    return {
        ("open", "at"): lambda: 0,
        **{(step, "at"): lambda: state.end + some % 2 for step in placed},
        **{(step, "pid"): lambda: some % 2 for step in ("commit_in_transaction", "mark", "settle")},
        ("commit", "offset"): lambda: some % 7,
        ("commit_in_transaction", "offset"): lambda: some % 7,
        ("expire", "limit"): lambda: 0,
        ("expire", "idle"): lambda: some % 3 - 1,
        ("receive", "offset"): lambda: state.offset,
    }


def of_a_producer(_spec: Spec, state: State, drawn: tuple[int, ...]) -> dict[tuple[str, str], Callable[[], int]]:
    """The same for a producer: the batch that comes next, and snapshots of what is known."""
    more = abs(drawn[0]) % 3 if drawn else 0
    as_known = ("epoch", "sequence", "offset", "delta", "time", "coordinator", "transaction")
    return {
        ("open", "known"): lambda: 0,
        ("open", "offset"): lambda: -1,
        ("open", "transaction"): lambda: -1,
        ("open", "sequence"): lambda: -1,
        ("open", "at"): lambda: more,
        ("append", "epoch"): lambda: state.epoch if state.known and more else state.epoch + 1,
        ("append", "sequence"): lambda: state.sequence + 2 - more if state.known and more else 0,
        ("append", "first"): lambda: state.end,
        ("append", "last"): lambda: state.end + more,
        ("mark", "epoch"): lambda: state.epoch + more,
        ("mark", "offset"): lambda: state.end,
        ("mark", "coordinator"): lambda: state.coordinator + more - 1 + (more == 0),
        ("snapshot", "at"): lambda: state.end + more,
        **{("snapshot", name): constant(getattr(state, name)) for name in as_known},
        ("expire", "limit"): lambda: 0,
        ("expire", "idle"): lambda: more - 1,
        ("forget", "start"): lambda: state.offset + more,
    }


def of_an_aborted_index(_spec: Spec, state: State, drawn: tuple[int, ...]) -> dict[tuple[str, str], Callable[[], int]]:
    """The same for an index of aborted transactions: the abort that comes next, and its entry."""
    more = abs(drawn[0]) % 3 if drawn else 0
    wrong = bool(drawn) and drawn[0] % 11 == 0
    return {
        ("abort", "first"): lambda: state.end + more - 1 + (state.end == 0),
        ("abort", "last"): lambda: state.end + more + 1,
        ("abort", "stable"): lambda: state.end + more + 2 - more % 2,
        ("enter", "producer"): constant(state.producer),
        ("enter", "first"): lambda: state.first + wrong,
        ("enter", "last"): lambda: state.end - 1,
        ("enter", "stable"): constant(state.stable),
    }


def of_a_partition_client(
    _spec: Spec, state: State, drawn: tuple[int, ...]
) -> dict[tuple[str, str], Callable[[], int]]:
    """The same for a client of a partition: the records that come next, and answers about them."""
    more = abs(drawn[0]) % 3 if drawn else 0
    wrong = bool(drawn) and drawn[0] % 11 == 0
    return {
        ("show", "first"): lambda: state.end + more,
        ("show", "last"): lambda: state.end + 2 * more,
        ("acknowledge", "offset"): lambda: state.end - 1 + wrong,
        ("receive", "first"): lambda: state.position - wrong,
        ("receive", "last"): lambda: state.end - 1 - (more == 1 and state.position < state.end - 1),
        ("stop", "at"): lambda: state.position + more,
    }


def nothing_more(_spec: Spec, _state: State, _drawn: tuple[int, ...]) -> dict[tuple[str, str], Callable[[], int]]:
    return {}


LIKELY_ARGUMENTS = {
    **dict.fromkeys(("transaction", "op_batch"), of_transactions),
    **dict.fromkeys(("checkpoint", "check_service"), of_cursors),
    "dispatch": of_dispatch,
    "ring": of_a_ring,
    "half_cache": of_a_cache,
    "lookup": of_a_lookup,
    "hash_index": of_an_index,
    "broker": of_a_broker,
    "coordinator": of_coordinators,
    "permits": of_permits,
    "group_offsets": of_group_offsets,
    "kafka_transaction": of_a_kafka_transaction,
    "partition": of_a_partition,
    "producer": of_a_producer,
    "aborted_index": of_an_aborted_index,
    "partition_client": of_a_partition_client,
    **dict.fromkeys(("tiered", "compaction", "dledger_index"), of_entries),
}
NO_BROKER = "nobody"  # a profile that allows no deviation at all
WALKS = {
    "broker": 1600,
    "check_service": 1500,
    "checkpoint": 900,
    "coordinator": 1500,
    "dispatch": 800,
    "half_cache": 1000,
    "kafka_transaction": 600,
    "op_batch": 900,
    "queue": 1200,
    "transaction": 2500,
}
"""Walks of each spec; elsewhere 300."""
LONG = {"broker": 70, "check_service": 60, "checkpoint": 40, "coordinator": 40, "dispatch": 40}
"""Steps of a walk; elsewhere 20."""


def broker(spec: Spec) -> str:
    """The profile of the broker whose deviations the spec knows."""
    profiles = sorted({name for deviation in spec.deviations for name in deviation.profiles})
    return max(profiles, key=lambda profile: len(spec.allowed(profile)), default=NO_BROKER)


EVERY_PROFILE = pytest.mark.parametrize("profile", [*PROFILES, NO_BROKER])
_ALL = [pytest.param(spec, id=name, marks=pytest.mark.xdist_group(f"walks of {name}")) for name, spec in SPECS.items()]
EVERY_SPEC = pytest.mark.parametrize("spec", _ALL)
"""The tests of a spec are run by one process, for walks take a while."""
SOME_SPECS = pytest.mark.parametrize("spec", _ALL if NIGHT else by_day([one for one in _ALL if one.id != "broker"]))
"""By day without `broker`, which has the steps of others, and takes longer than all of these."""


def profiles_of(spec: Spec) -> list[str]:
    """One profile for each set of deviations that some profile allows: the others say the same of this spec."""
    return list({spec.allowed(profile): profile for profile in (*PROFILES, NO_BROKER)}.values())


_READINGS = [
    pytest.param(spec, profile, id=f"{name}-{profile}", marks=pytest.mark.xdist_group(f"walks of {name}"))
    for name, spec in SPECS.items()
    for profile in profiles_of(spec)
]
EVERY_READING = pytest.mark.parametrize(("spec", "profile"), _READINGS)
"""Every spec with every set of deviations."""
SOME_READINGS = pytest.mark.parametrize(("spec", "profile"), by_day(_READINGS))


def drawing(data: st.DataObject) -> Choose:
    return lambda options: data.draw(st.sampled_from(options))


@cache
def walks(spec: Spec, profile: str, count: int = 0) -> list[Offer]:
    """The same random walks every time, by default as many as meet everything."""
    chance = random.Random(f"{spec.name} {profile}")
    return [
        offer
        for _ in range(count or WALKS.get(spec.name, 300))
        for offer in walk(spec, profile, chance.choice, length=LONG.get(spec.name, 20))
    ]


def some_of_each(offers: Sequence[Offer], most: int) -> list[Offer]:
    """So many offers at most of each action that are taken, deviate or are refused alike: the last ones."""
    alike: defaultdict[object, deque[Offer]] = defaultdict(lambda: deque(maxlen=most))
    for offer in offers:
        alike[offer.event[0], offer.rule, offer.deviations].append(offer)
    return [offer for some in alike.values() for offer in some]
