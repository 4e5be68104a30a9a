"""What recorded clients asked and were answered, as the steps of `permits`.

A line tells when a request was made, and one when it was answered; that it took a permit is inferred. How many permits
there are is a constant of the client, but several clients may share one recording and do not sign their lines: so as
many are supposed as were ever out at once, and whether there were too many is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from gapless.traces import schema
from gapless.traces.pulsar.history import BESIDE, INFERRED, Steps, ordered
from gapless.traces.pulsar.history import steps as steps_of
from gapless.traces.pulsar.lines import Ints, Lines
from gapless.traces.specs import SPECS

SPEC = SPECS["permits"]
ASKING = ("open", "commit", "abort")  # operations whose request goes out alone; those of others are hidden in them
MILLISECOND = 1000


def batch(told: Steps, trace: str, source: str) -> pa.RecordBatch:
    """The steps as events; their position is the line."""
    return schema.from_columns(
        SPEC.name,
        source=source,
        traces=[trace],
        position=np.maximum.accumulate(told.line),
        action=told.action,
        args=told.args,
        outcome=told.outcome,
    )


def of_clients(lines: Lines) -> Iterator[tuple[str, Steps]]:
    """The steps of every source that is a client."""
    for source in np.unique(lines.ints("op_call", "source")).tolist():
        found = _of_client(lines, int(source))
        if found is not None:
            yield lines.sources[int(source)], found


def _of_client(lines: Lines, source: int) -> Steps | None:
    asked = np.flatnonzero((lines.ints("op_call", "source") == source) & np.isin(lines.words("op_call", "op"), ASKING))
    other = lines.ints("op_call", "i")[
        (lines.ints("op_call", "source") == source) & ~np.isin(lines.words("op_call", "op"), ASKING)
    ]
    mine = (lines.ints("op_done", "source") == source) & ~np.isin(lines.ints("op_done", "i"), other)
    done = np.flatnonzero(mine)
    if not len(asked):
        return None
    line, number = lines.ints("op_call", "line")[asked], lines.ints("op_call", "i")[asked]
    end, answered = lines.ints("op_done", "line")[done], lines.ints("op_done", "i")[done]
    timed_out = lines.words("op_done", "err")[done] == "TimeoutException"
    start = int(line.min())
    return ordered(
        [
            _steps("open", np.array([start * BESIDE - 2]), np.array([start]), permits=_most(line, end), timeout=0),
            _steps("tick", line * BESIDE - 1, line, time=lines.ints("op_call", "t")[asked] // MILLISECOND),
            _steps("acquire", line * BESIDE, line, INFERRED, number=number),
            _steps("tick", end * BESIDE - 1, end, time=lines.ints("op_done", "t")[done] // MILLISECOND),
            _steps("reply", end[~timed_out] * BESIDE, end[~timed_out], number=answered[~timed_out]),
            _steps("time_out", end[timed_out] * BESIDE, end[timed_out], number=answered[timed_out]),
        ]
    )


def _most(begin: Ints, end: Ints) -> int:
    """How many requests were out at once."""
    order = np.argsort(np.concatenate([begin, end]), kind="stable")
    change = np.concatenate([np.ones(len(begin), np.int64), -np.ones(len(end), np.int64)])[order]
    return max(1, int(np.cumsum(change).max(initial=0)))


def _steps(action: str, key: Ints, line: Ints, outcome: int = 0, **args: Ints | int) -> Steps:
    return steps_of(action, key, line, outcome, spec=SPEC, **args)
