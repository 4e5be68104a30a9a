"""Compares compiled readings of a spec with the plain functions: on traces, and on states.

A spec is replayed by the plain functions, by its kernel as Python runs it, and, of some specs, by native code; of some,
every state within a bound is searched plainly and by native code. Where a compiled reading decides, it must decide as
the plain functions do: the same event, the same rule, the same state. Where it does not, it has refused the spec.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import numpy as np

from gapless.properties.campaign import CaseTally, described
from gapless.properties.exploration.search import explore
from gapless.properties.fuzzing import wild_specs
from gapless.properties.fuzzing.differential import Disagreement
from gapless.properties.fuzzing.differential import loaded as loaded_from_file
from gapless.spec.catalog import Spec, State, spec_from
from gapless.spec.language import Bound, Map, Refused, every_map
from gapless.spec.reading.checking import checked
from gapless.spec.reading.vocabulary import ForeignWords
from gapless.traces.judging.batches import Begun, state_of
from gapless.traces.replay import kernels
from gapless.traces.replay.kernels import EXACT, Cells, Ints, Kernel, ReplayResult

TRACES, EVENTS = 6, 8  # of one spec
WINDOWS = (range(-32, 96), range(-32, 96), range(-32, 96), range(-1, 5))  # keys that a kernel has room for
NATIVE, EXPLORED, TEXT = 64, 256, 64  # specs of which one is compiled, explored, checked by the vocabulary
STATES = 400  # that are explored of one
FEW = (0, 1, 2, 3, 5, -1, -2, 7)
FAR = tuple(
    sign * near + off
    for near in (10**9, 2**31, 2**32, 2**32, 2**33, 2**53, 2**59, 2**60 - 2, 2**60, 2**63 - 2)
    for sign in (1, -1)
    for off in (-1, 0, 0, 1)
)
DECIDED, LEFT = "traces that a kernel decides", "traces that a kernel leaves to the plain functions"
REFUSED, OBSTACLES = "traces that a kernel refuses", "specs that are not compiled"
COMPILED, SEARCHED = "specs that are compiled to native code", "specs that are searched by native code"
WANTED = (DECIDED, LEFT, REFUSED, OBSTACLES, COMPILED)

Trace = list[tuple[str, tuple[int, ...]]]


def loaded(text: str) -> Spec:
    """The spec that a text states, without a file: nothing of it is kept but what many specs begin with."""
    head, first, rest = text.partition("def step_0")
    module = ModuleType("fuzzed")
    vars(module).update(_begun(head), __name__="fuzzed")
    exec(compile(first + rest, "fuzzed", "exec"), vars(module))  # noqa: S102 - our own text
    return spec_from(module)


@cache
def _begun(head: str) -> dict[str, Any]:
    """The names that a spec has at its top, its state among them: to make a class takes longer than all the rest."""
    module = ModuleType("fuzzed")
    sys.modules["fuzzed"] = module  # where dataclasses look for it
    exec(compile(head, "fuzzed", "exec"), vars(module))  # noqa: S102 - our own text
    return vars(module)


def judge(number: int) -> Counter[str]:
    """Judge the spec of a number, and count its outcomes. Raises Disagreement."""
    text = wild_specs.spec(number)
    spec, random, seen = loaded(text), Random(~number), Counter[str]()  # noqa: S311 - nothing is kept secret by it
    if number % TEXT == 0:
        _check_vocabulary(text)
    traces = [_trace(spec, random) for _ in range(TRACES)]
    plain = [_plain(spec, trace) for trace in traces]
    of = kernels._kernel.__wrapped__(spec, frozenset())  # noqa: SLF001 - what is kept of one is of no use to the next
    _compare(of, traces, plain, seen, "Python", number)
    if of.obstacle:
        seen[OBSTACLES] += 1
    elif number % NATIVE == 0:
        native = kernels.native_reading(spec, lambda: of.steps)
        compiled = Kernel(spec, of.reasons, native.code)
        _compare(compiled, traces, plain, Counter(), "native", number)
        seen[COMPILED] += 1
    if number % EXPLORED == 0:
        _explore(spec, seen)
    return seen


# -- traces --------------------------------------------------------------------------------------------------------


def _trace(spec: Spec, random: Random) -> Trace:
    """Some events: mostly of small numbers, so that something happens, and sometimes of such as lie near 64 bits."""
    names, trace = list(spec.actions), []
    wild = random.random() < 0.5
    for _ in range(EVENTS):
        name = random.choice(names)
        args = []
        for parameter in spec.parameters[name]:
            if parameter in spec.flags[name]:
                args.append(random.randrange(2))
            else:
                args.append(random.choice(FAR if wild and random.random() < 0.5 else FEW))
        trace.append((name, tuple(args)))
    return trace


RunResult = tuple[int, str, State]
"""The event that is refused, or -1, the rule, and the state before it."""


def _plain(spec: Spec, trace: Trace) -> RunResult:
    state = spec.initial
    for at, (name, args) in enumerate(trace):
        try:
            state = spec.actions[name](state, *args)
        except Refused as refused:
            return at, f"{spec.name}/{refused.rule}", state
    return -1, "", state


class _ReplayInParts:
    """Traces as a kernel replays them, in two parts: up to an event, and on from the state there."""

    def __init__(self, of: Kernel, traces: Sequence[Trace], window: range, cut: int) -> None:
        self.of, self.cut = of, cut
        begun = Begun.new(of.spec, len(traces))
        self.first = self._part([trace[:cut] for trace in traces], window, begun.state, None)
        self.then = self._part([trace[cut:] for trace in traces], window, self.first.state, self.first.cells)

    def _part(self, traces: Sequence[Trace], window: range, state: Ints, cells: Cells | None) -> ReplayResult:
        spec, events = self.of.spec, [event for trace in traces for event in trace]
        args = np.zeros((len(spec.arguments), len(events)), np.int64)
        rows = {name: row for row, name in enumerate(spec.arguments)}
        for at, (name, values) in enumerate(events):
            for parameter, value in zip(spec.parameters[name], values, strict=True):
                args[rows[parameter], at] = value
        return self.of.replay(
            np.cumsum([0, *map(len, traces)], dtype=np.int64),
            np.array([spec.codes[name] for name, _ in events], np.int8),
            args,
            state,
            origins=np.full(len(traces), window[0], np.int64),
            widths=np.full(len(traces), len(window), np.int64),
            cells=cells,
            resumable=True,
            profile="strict",
        )

    def outcome(self, trace: int) -> RunResult | None:
        """The outcome of one trace; None where it is left to the plain functions."""
        is_stopped = bool(self.first.bad_why[trace])
        found, before = (self.first, 0) if is_stopped else (self.then, self.cut)
        assert found.cells is not None  # noqa: S101 - for the type checker: they were asked for
        why, length = int(found.bad_why[trace]), self.cut if is_stopped else EVENTS - self.cut
        if why == EXACT:
            return None
        one = np.arange(len(found.bad_why)) == trace
        state = state_of(self.of.spec, found.state[:, trace], found.cells.of(one))
        if not why:
            return -1, "", state
        return before + int(found.bad_at[trace]) - trace * length, self.of.reasons[why - 1].rule, state


def _compare(
    of: Kernel, traces: Sequence[Trace], plain: Sequence[RunResult], seen: Counter[str], how: str, number: int
) -> None:
    """Compare what a kernel replays with what the plain functions do."""
    found = _ReplayInParts(of, traces, WINDOWS[number % len(WINDOWS)], number % EVENTS)
    for at, (trace, (where, rule, state)) in enumerate(zip(traces, plain, strict=True)):
        outcome = found.outcome(at)
        if outcome is None:
            seen[LEFT] += 1
            continue
        seen[REFUSED if outcome[1] else DECIDED] += 1
        if outcome[:2] != (where, rule):
            raise Disagreement(f"{how}: {outcome[:2]} and not {(where, rule)} of {trace}")
        if not _same(outcome[2], state):
            raise Disagreement(f"{how}: {outcome[2]} and not {state} behind {trace}")


def _same(one: State, other: State) -> bool:
    for field in fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, Map):
            if any(a[key] != b[key] for key in {*a.entries, *b.entries}) or a.default != b.default:
                return False
        elif int(a) != int(b):
            return False
    return True


# -- states --------------------------------------------------------------------------------------------------------


def _explore(spec: Spec, seen: Counter[str]) -> None:
    """Every state within a bound, plainly and by native code: as many of them, and the same steps."""
    numbers: dict[str, Any] = {
        name: (0, 1) if any(name in some for some in spec.flags.values()) else (0, 1, 2, -1) for name in spec.arguments
    }
    numbers |= {"y0": (0, 1, 4), "y1": (-1, 2), "z": every_map((0, 1), (0, 5), 0)}
    for step, names in spec.parameters.items():  # what the second argument is tried with depends on the first
        if names[:2] == ("x0", "x1") and not {"x0", "x1"} & set(spec.flags[step]):
            numbers[f"{step}.x1"] = _depending
    bound = Bound(says="small numbers", within=_is_small, numbers=numbers)
    plain, native = (explore(spec, bound, limit=STATES, how=how) for how in ("plain", "native"))
    for what in ("states", "accepted", "refused"):
        one, other = (_counted(found, what) for found in (plain, native))
        if one != other:
            raise Disagreement(f"explored: {what}: {other} by native code, and {one}")
    seen[SEARCHED] += 1


def _depending(x0: int) -> Sequence[int]:
    return (*range(x0 % 4), -1)


def _counted(found: Any, what: str) -> Any:
    return len(found.graph.states) if what == "states" else getattr(found, what)


def _is_small(s: Any) -> bool:
    return bool(-3 <= s.a <= 4 and -3 <= s.b <= 8)


# -- many ----------------------------------------------------------------------------------------------------------


def _check_vocabulary(text: str) -> None:
    """Raise ForeignWords where a spec says what the language has not: then the rest would be no evidence."""
    with tempfile.TemporaryDirectory() as folder:
        spec = loaded_from_file(text, Path(folder))
        try:
            checked.__wrapped__(spec)
        except ForeignWords as foreign:  # what constants alone come to is drawn as it comes
            if not all(complaint.word.endswith("more than 64 bits") for complaint in foreign.complaints):
                raise


def chunk(first: int, count: int, one: Callable[[int], Counter[str]] = judge) -> CaseTally:
    """Test so many specs, from a number on; the first that fails is reported with its text."""
    tally = CaseTally()
    for number in range(first, first + count):
        try:
            tally.counts.update(one(number))
            tally.cases += 1
        except Exception as error:  # noqa: BLE001 - whatever a spec within the vocabulary does to a reader, it is reported
            tally.counts["disagreements"] += 1
            if not tally.failures:
                tally.failures.append(f"spec {number}: {described(error)}\n\n{wild_specs.spec(number)}")
    return tally


def unseen(tally: CaseTally) -> list[str]:
    """List the outcomes that many specs should show and did not: a fuzzer that never sees one is blind for it."""
    return [name for name in WANTED if not tally.counts[name]]
