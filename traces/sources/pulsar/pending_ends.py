"""Transactions that wait, at an orderly close, for an end that their coordinator was to bring about.

A transaction that is open has its timer, and one that is decided is ended as soon as all that take part know of it.
Only a close says that nothing of this came about: a coordinator that was killed may have done more than was recorded.
Time counts within one load, for a coordinator that is not loaded is not late.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.spec.coordinator import FOR_EVER
from gapless.spec.deadline import TaskKind
from gapless.traces.sources.pulsar.history import StepColumns, joined, steps_of
from gapless.traces.sources.pulsar.joined import OK, REFUSED, SLOTS, UNKNOWN, Epoch
from gapless.traces.sources.pulsar.lines import Ints, Lines

TICK = 100  # ms, of the clock that times transactions out (docs/pulsar.md#timeouts)
RETRY = 1000  # ms until all that take part are asked again (docs/pulsar.md#end)
MILLISECOND = 1000  # microseconds


def pending_ends(lines: Lines, epochs: Sequence[Epoch], of: StepColumns) -> tuple[list[str], Ints, StepColumns] | None:
    """Return the tasks whose time had come: their numbers as names, the name of each step, and the steps.

    `of`: all steps of the coordinator, in order.
    """
    worst: dict[int, tuple[int, int, int, int]] = {}  # late, task, due, line
    for begin, end, line in _closed(lines, epochs):
        for number, task, due in _waiting(lines, of, line, begin):
            late = end - max(due, begin)
            if 0 < late and late > worst.get(number, (0,))[0]:
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
    source, number = lines.ints("epoch", "source"), lines.ints("epoch", "ep")
    time, line = lines.ints("epoch", "t") // MILLISECOND, lines.ints("epoch", "line")
    for epoch in epochs:
        mine = (source == epoch.source) & (number == epoch.number)
        ready, closing = np.flatnonzero(mine & (event == 0)), np.flatnonzero(mine & (event == 1))
        if len(ready) and len(closing):
            yield int(time[ready[0]]), int(time[closing[0]]), int(line[closing[0]])


def _waiting(lines: Lines, of: StepColumns, line: int, begin: int) -> Iterator[tuple[int, int, int]]:
    """Yield the transactions that wait at a line: the number of each, what it waits for, and when that was due.

    A step of unknown outcome may have been taken: what it is about counts as ended.
    """
    codes, args = of.spec.codes, of.spec.arguments
    there = (of.key < line * SLOTS) & (of.outcome != REFUSED)

    def numbers(*actions: str, some: Ints | np.bool_ = np.True_) -> tuple[Ints, Ints]:
        (rows,) = np.nonzero(there & np.isin(of.action, [codes[name] for name in actions]) & some)
        return of.args[args.index("number"), rows], rows

    began, rows = numbers("begin")
    start, life = of.args[args.index("time"), rows], of.args[args.index("life"), rows]
    decided, by = numbers("decide", "time_out")
    unknown, _ = numbers("decide", "time_out", some=of.outcome == UNKNOWN)
    ended = np.isin(began, np.concatenate([numbers("finish")[0], unknown]))
    is_open = ~ended & ~np.isin(began, decided) & (life < FOR_EVER)
    yield from zip(
        began[is_open].tolist(), np.full(int(is_open.sum()), TaskKind.OPEN).tolist(),
        (start + life)[is_open].tolist(), strict=True,
    )  # fmt: skip
    since = _times(lines, of.line[by])
    pending = set(began[~ended].tolist())
    for number, time in zip(decided.tolist(), since.tolist(), strict=True):
        if number in pending:
            yield number, int(TaskKind.END), max(time, begin)


def _times(lines: Lines, wanted: Ints) -> Ints:
    """Return the ms at which these lines were written."""
    kinds = ("log", "replay", "table")
    line = np.concatenate([lines.ints(kind, "line") for kind in kinds])
    time = np.concatenate([lines.ints(kind, "t") for kind in kinds])
    order = np.argsort(line)
    found: Ints = time[order][line[order].searchsorted(wanted)] // MILLISECOND
    return found
