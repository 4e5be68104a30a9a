"""Transactions that wait, at an orderly close, for an end that their coordinator was to bring about.

A transaction that is open has its timer, and one that is decided is ended as soon as all that take part know of it.
Only a close says that nothing of this came about: a coordinator that was killed may have done more than was recorded.
Time counts within one load, for a coordinator that is not loaded is not late.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.spec.coordinator import FOR_EVER
from gapless.spec.deadline import TaskKind
from gapless.traces.sources.pulsar.history import StepColumns, joined, steps_of
from gapless.traces.sources.pulsar.joined import OK, REFUSED, SLOTS, UNKNOWN, Epoch, first_of, pair
from gapless.traces.sources.pulsar.lines import Ints, Lines

TICK = 100  # ms, of the clock that times transactions out (docs/pulsar.md#timeouts)
RETRY = 1000  # ms until all that take part are asked again (docs/pulsar.md#end)
MILLISECOND = 1000  # microseconds
FAR = np.iinfo(np.int64).max


def pending_ends(lines: Lines, epochs: Sequence[Epoch], of: StepColumns) -> tuple[list[str], Ints, StepColumns] | None:
    """Return the tasks whose time had come: their numbers as names, the name of each step, and the steps.

    `of`: all steps of the coordinator, in order.
    """
    worst: dict[int, tuple[int, int, int, int]] = {}  # late, task, due, line
    waiting, closed = _WaitingTasks(lines, of), list(_closed(lines, epochs))
    found = {line: list(waiting.at(line, begin, end)) for begin, end, line in sorted(closed, key=itemgetter(2))}
    for _, _, line in closed:
        for number, task, due, late in found[line]:
            if late > worst.get(number, (0,))[0]:
                worst[number] = late, task, due, line
    if not worst:
        return None
    late, task, due, line = np.array(list(worst.values()), np.int64).T
    parts = [
        steps_of(SPECS["deadline"], "open", line, line, OK, task=task, due=due, period=_period(task)),
        steps_of(SPECS["deadline"], "live", line, line, OK, time=late),
        steps_of(SPECS["deadline"], "wait", line, line, OK),
    ]
    whole, turns = joined(parts), np.arange(3 * len(late)).reshape(3, -1).T.reshape(-1)
    return [*map(str, worst)], np.repeat(np.arange(len(late)), 3), whole.taken(turns)


def _period(task: Ints) -> Ints:
    return np.where(task == TaskKind.OPEN, TICK, RETRY)


def _closed(lines: Lines, epochs: Sequence[Epoch]) -> Iterator[tuple[int, int, int]]:
    """Yield the loads that ended in order: when each was ready and when it began to close, in ms, and that line."""
    event = lines.codes("epoch", "ev", ("ready", "closing"))
    key = pair(lines.ints("epoch", "source"), lines.ints("epoch", "ep"))
    time, line = lines.ints("epoch", "t") // MILLISECOND, lines.ints("epoch", "line")
    ready, closing = (first_of(key, np.flatnonzero(event == code)) for code in range(2))
    for epoch in epochs:
        if epoch.key in ready and epoch.key in closing:
            at = closing[epoch.key]
            yield int(time[ready[epoch.key]]), int(time[at]), int(line[at])


class _WaitingTasks:
    """The transactions that wait at the lines of a recording, which are asked for in order.

    A step of unknown outcome may have been taken: what it is about counts as ended. Each task is a column: `since` and
    `until`, the keys of the steps between which it waits; its number, its kind, and when it is due, which is 0 for the
    time of the load.
    """

    def __init__(self, lines: Lines, of: StepColumns) -> None:
        codes, args = of.spec.codes, of.spec.arguments
        number = of.args[args.index("number")]
        there = of.outcome != REFUSED

        def rows(*actions: str) -> Ints:
            return np.flatnonzero(there & np.isin(of.action, [codes[name] for name in actions]))

        begun, decided, finished = rows("begin"), rows("decide", "time_out"), rows("finish")
        unknown = decided[of.outcome[decided] == UNKNOWN]
        ended = np.sort(np.concatenate([finished, unknown]))
        due = of.args[args.index("time"), begun] + of.args[args.index("life"), begun]
        timed = of.args[args.index("life"), begun] < FOR_EVER
        first_end = _FirstKeys(number[ended], of.key[ended])
        first_decision = _FirstKeys(number[decided], of.key[decided])
        first_begin = _FirstKeys(number[begun], of.key[begun])
        is_open = begun[timed]
        since = np.concatenate([of.key[is_open], np.maximum(of.key[decided], first_begin.of(number[decided]))])
        until = np.concatenate([
            np.minimum(first_end.of(number[is_open]), first_decision.of(number[is_open])),
            first_end.of(number[decided]),
        ])  # fmt: skip
        kinds = (np.full(len(is_open), TaskKind.OPEN), np.full(len(decided), TaskKind.END))
        self.tasks = np.stack([
            since, until, np.concatenate([number[is_open], number[decided]]), np.concatenate(kinds),
            np.concatenate([due[timed], _times(lines, of.line[decided])]),
        ])  # fmt: skip
        self.order = np.argsort(since, kind="stable")
        self.taken = 0
        self.active = np.zeros(0, np.int64)

    def at(self, line: int, begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield the tasks that are late at a line: the number of each, its kind, when it was due, and how late it is.

        `begin`, `end`: the time of the load and of the line, in ms.
        """
        key = line * SLOTS
        reached = int(np.searchsorted(self.tasks[0, self.order], key))
        active = np.sort(np.concatenate([self.active, self.order[self.taken : reached]]))
        self.active, self.taken = active[self.tasks[1, active] >= key], reached
        _, _, number, kind, due = self.tasks[:, self.active]
        due = np.where(kind == TaskKind.END, np.maximum(due, begin), due)
        late = end - np.maximum(due, begin)
        for at in np.flatnonzero(late > 0).tolist():
            yield int(number[at]), int(kind[at]), int(due[at]), int(late[at])


class _FirstKeys:
    """The first key of every number that has one."""

    def __init__(self, number: Ints, key: Ints) -> None:
        order = np.lexsort((key, number))
        self.numbers, first = np.unique(number[order], return_index=True)
        self.keys = key[order][first]

    def of(self, number: Ints) -> Ints:
        """Return the key of each; one that never comes where a number has none."""
        if not len(self.numbers):
            return np.full(len(number), FAR)
        at = np.minimum(np.searchsorted(self.numbers, number), len(self.numbers) - 1)
        return np.where(self.numbers[at] == number, self.keys[at], FAR)


def _times(lines: Lines, wanted: Ints) -> Ints:
    """Return the ms at which these lines were written."""
    kinds = ("log", "replay", "table")
    line = np.concatenate([lines.ints(kind, "line") for kind in kinds])
    time = np.concatenate([lines.ints(kind, "t") for kind in kinds])
    order = np.argsort(line)
    found: Ints = time[order][line[order].searchsorted(wanted)] // MILLISECOND
    return found
