"""Replay of specs as users write them: by their plain functions, and by the kernel that is made of them.

    python -m benchmarks --only "user specs"

`specs/received.py` has a Map of two keys, `specs/elected.py` a count.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bigstore import Extent
from benchmarks.rows import answer
from gapless.spec.catalog import Spec
from gapless.traces.judging import building
from gapless.traces.judging.batches import ROWS
from gapless.traces.replay.kernels import Loop, kernel
from gapless.traces.replay.map_columns import columns_of
from gapless.traces.specs import load

LENGTH = 1_000  # events of a trace
PLAIN = 50  # times fewer events are replayed by the plain functions
CONSUMERS, VOTES = 3, 4  # of each message, and of each term

Event = tuple[str, tuple[int, ...]]


def rows(events: int) -> Iterator[tuple[str, list[str], Extent, bool, bool, bool, str]]:
    """The rows of the benchmarks: events stand where records do."""
    for name, word in (("received", "a Map of two keys"), ("elected", "a count")):
        plain = f"replay of {word}, plain functions"
        for says, how in ((plain, "plain"), (f"replay of {word}, kernel", "kernel")):
            count = (events // PLAIN if how == "plain" else events) // LENGTH * LENGTH
            program = f"from benchmarks import user_specs; user_specs.replay({name!r}, {how!r}, {count})"
            command = [sys.executable, "-c", program]
            yield says, command, Extent(count, 0), False, False, False, "" if how == "plain" else plain


def replay(name: str, how: str, events: int) -> None:
    """Replay so many events of a spec, all of which conform."""
    spec, trace = load(Path(__file__).parent / "specs" / f"{name}.py"), list(life(name))
    count = events // LENGTH
    seconds = by_plain_functions(spec, trace, count) if how == "plain" else by_kernel(spec, trace, count)
    answer(seconds, events)


def life(name: str) -> Iterator[Event]:
    """The events of one trace."""
    for turn in range(LENGTH):
        number, step = divmod(turn, CONSUMERS + 1 if name == "received" else VOTES + 2)
        if name == "received":
            yield ("receive", (step - 1, number)) if step else ("send", ())
        elif step < VOTES:
            yield "vote", (step, number)
        else:
            yield ("lead", (number,)) if step == VOTES else ("end_term", ())


def by_plain_functions(spec: Spec, trace: list[Event], count: int) -> float:
    """The seconds that so many traces take."""
    began = time.perf_counter()
    for _ in range(count):
        state = spec.initial
        for action, args in trace:
            state = spec.actions[action](state, *args)
    return time.perf_counter() - began


def by_kernel(spec: Spec, trace: list[Event], count: int) -> float:
    """The seconds that so many traces take; native code is there before."""
    Loop.few = 0
    of, columns = kernel(spec), {name: row for row, name in enumerate(spec.arguments)}
    args = np.zeros((len(columns), LENGTH), np.int64)
    for at, (action, given) in enumerate(trace):
        for name, value in zip(spec.parameters[action], given, strict=True):
            args[columns[name], at] = value
    codes = np.array([spec.codes[action] for action, _ in trace], np.int8)

    def replayed(some: int) -> Any:
        starts = np.arange(0, LENGTH * some + 1, LENGTH, dtype=np.int64)
        given = np.tile(codes, some), np.tile(args, some), building.states(spec, some)
        widths = np.full(some, ROWS * LENGTH if columns_of(spec).pairs else VOTES, np.int64)
        began = time.perf_counter()
        found = of.replay(starts, *given, widths=widths, profile="strict")
        assert not found.bad_why.any()  # noqa: S101 - all of them conform
        return time.perf_counter() - began

    replayed(1)
    return float(replayed(count))
