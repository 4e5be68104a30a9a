"""Active transactions of a coordinator, over the lines of a recording, in a few hundred points."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gapless.spec.coordinator import Status
from gapless.traces.sources.pulsar.history import SPEC, StepColumns
from gapless.traces.sources.pulsar.joined import REFUSED
from gapless.traces.sources.pulsar.lines import Ints

POINTS = 160  # of a curve: of the steps between two, the most active moment is kept
LOADS = 40  # of one coordinator that are marked


class Activity(NamedTuple):
    """A curve, by line of the recording.

    `active`: line, active transactions, and how many of them had ended and came back · `limits`: line, limit that
    applies from there on · `loads`: line, transactions that came back, and how many of them had ended before.
    """

    active: list[tuple[int, int, int]]
    limits: list[tuple[int, int]]
    loads: list[tuple[int, int, int]]


def activity(recorded: StepColumns) -> Activity:
    """Compute the curve of one coordinator from its steps in order."""
    action, number = recorded.action, recorded.args[SPEC.arguments.index("number")]
    taken = recorded.outcome != REFUSED
    begun, finished = taken & (action == SPEC.codes["begin"]), taken & (action == SPEC.codes["finish"])
    ends = np.flatnonzero(finished)
    of, first = np.unique(number[ends], return_index=True)
    ended = dict(zip(of.tolist(), ends[first].tolist(), strict=True))
    change, back, loads = np.zeros(len(action), np.int64), np.zeros(len(action), np.int64), []
    change[begun] += 1
    change[ends[first]] -= 1
    turns = np.flatnonzero(action == SPEC.codes["unload"]).tolist()
    for low, high in zip(turns, [*turns[1:], len(action)], strict=True):
        found, revived = _came_back(recorded, low, high, ended)
        returned = dict.fromkeys(revived.values(), 1)
        for row in ends[slice(*np.searchsorted(ends, (low, high)))].tolist():
            if revived.pop(int(number[row]), None) is not None:
                returned[row] = -1
        for row, by in returned.items():
            back[row] += by
        if high < len(action):
            back[high] -= sum(returned.values())
        loads.append((int(recorded.line[low]), found, sum(by > 0 for by in returned.values())))
    limits = np.flatnonzero(np.isin(action, [SPEC.codes["open"], SPEC.codes["recover"]]))
    limit = recorded.args[SPEC.arguments.index("limit")]
    return Activity(
        _condensed(np.maximum.accumulate(recorded.line), np.cumsum(change) + np.cumsum(back), np.cumsum(back)),
        [(int(recorded.line[row]), int(limit[row])) for row in limits[:LOADS].tolist()],
        loads[:LOADS],
    )


def _came_back(recorded: StepColumns, low: int, high: int, ended: dict[int, int]) -> tuple[int, dict[int, int]]:
    """Count the active transactions that a load found; return the rows of those that had ended, by number."""
    status = recorded.args[SPEC.arguments.index("status")][low:high]
    load = (recorded.action[low:high] == SPEC.codes["load"]) & (status < Status.COMMITTED)
    rows = np.flatnonzero(load) + low
    number = recorded.args[SPEC.arguments.index("number")]
    return len(rows), {
        int(number[row]): row for row in rows.tolist() if ended.get(int(number[row]), len(recorded.action)) < row
    }


def _condensed(line: Ints, active: Ints, back: Ints) -> list[tuple[int, int, int]]:
    """Reduce the curve to a limited number of points: each the most active moment of its stretch."""
    borders = np.linspace(0, len(line), min(POINTS, len(line)) + 1).astype(np.int64)
    rows: Sequence[int] = [int(a + np.argmax(active[a:b])) for a, b in itertools.pairwise(borders) if b > a]
    return [(int(line[row]), int(active[row]), int(back[row])) for row in rows]
