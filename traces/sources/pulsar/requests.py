"""The requests of recorded clients and their answers, as steps of `permits`.

One line records a request, and one its answer; that it took a permit is inferred. The number of permits is a constant
of the client, but several clients may share one recording and do not sign their lines: so it is set to the maximum of
concurrent requests, and a breach of the limit is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.traces.sources.pulsar.history import StepColumns, ordered, steps_of
from gapless.traces.sources.pulsar.joined import INFERRED, SLOTS
from gapless.traces.sources.pulsar.lines import Ints, Lines

ASKING = ("open", "commit", "abort")  # operations that are one request; those of others hide in them
MILLISECOND = 1000

steps = partial(steps_of, SPECS["permits"])


def of_clients(lines: Lines) -> Iterator[tuple[str, StepColumns]]:
    """Yield the steps of every source that is a client with requests."""
    asks = lines.codes("op_call", "op", ASKING) >= 0
    source, number = lines.ints("op_call", "source"), lines.ints("op_call", "i")
    done_by, done = lines.ints("op_done", "source"), lines.ints("op_done", "i")
    for client in np.unique(source[asks]).tolist():
        asked = np.flatnonzero((source == client) & asks)
        answered = np.flatnonzero((done_by == client) & np.isin(done, number[asked]))  # others: see `fitting.py`
        yield lines.sources[client], _of_client(lines, asked, answered)


def _of_client(lines: Lines, asked: Ints, answered: Ints) -> StepColumns:
    begin, end = lines.ints("op_call", "line")[asked], lines.ints("op_done", "line")[answered]
    number = lines.ints("op_done", "i")[answered]
    silence = lines.codes("op_done", "err", ("TimeoutException",))[answered] == 0
    first = np.append(begin, end).min(keepdims=True)
    asked_at, answered_at = _clock(lines, asked, answered)
    return ordered(
        [
            steps("open", first * SLOTS - 2, first, permits=_most(begin, end), timeout=0),
            steps("tick", begin * SLOTS - 1, begin, time=asked_at),
            steps("acquire", begin * SLOTS, begin, INFERRED, number=lines.ints("op_call", "i")[asked]),
            steps("tick", end * SLOTS - 1, end, time=answered_at),
            steps("reply", end[~silence] * SLOTS, end[~silence], number=number[~silence]),
            steps("time_out", end[silence] * SLOTS, end[silence], number=number[silence]),
        ]
    )


def _clock(lines: Lines, asked: Ints, answered: Ints) -> tuple[Ints, Ints]:
    """Return the time of every line in ms. A clock that is set back counts as standing still: no fault of a client."""
    kinds = (("op_call", asked), ("op_done", answered))
    order = np.argsort(np.concatenate([lines.ints(kind, "line")[rows] for kind, rows in kinds]), kind="stable")
    time = np.concatenate([lines.ints(kind, "t")[rows] for kind, rows in kinds]) // MILLISECOND
    time[order] = np.maximum.accumulate(time[order])
    return time[: len(asked)], time[len(asked) :]


def _most(begin: Ints, end: Ints) -> int:
    """Return the maximum of concurrent requests."""
    change = np.append(np.ones(len(begin), np.int64), np.full(len(end), -1))
    return max(1, int(np.cumsum(change[np.argsort(np.append(begin, end), kind="stable")]).max(initial=0)))
