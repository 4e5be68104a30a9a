"""Ops and the check service's cursors, judged from rows: an op is whole wherever it is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.native import INTS, INTS8, TABLE, handed, native, record
from gapless.traces.judging import building
from gapless.traces.judging.building import STEPS, Events
from gapless.traces.replay.exact import Event
from gapless.traces.replay.kernels import Kernel, ReplayResult, kernel
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.store.names import HALF_TOPIC, OP_TOPIC
from gapless.traces.sources.rocketmq.transactions.lineage import BY_OP, BY_OP_OF_EARLIER, BY_VERSION
from gapless.traces.sources.rocketmq.transactions.parameters import (
    NO_ROWS,
    NO_SETTLED,
    Judgement,
    Terms,
    Totals,
    add_counts,
)
from gapless.traces.sources.rocketmq.transactions.transaction_rows import (
    COLUMNS,
    COUNT,
    HALF,
    KEY,
    KIND,
    LIST,
    MARK,
    NAMES,
    NUMBER,
    OP,
    PLACE,
    SIZE,
    TIMES,
)

BAD_OPS = 64  # refused ops of one split that are reported one by one
CURSORS = f"{HALF_TOPIC}/0"  # the trace of the check service's cursors


def op_trace(number: int, queue: int = 0, topic: str = OP_TOPIC) -> str:
    """Returns the trace name of one op: its batcher's other content is unknown."""
    return f"{topic}/{queue}+{number}"


def op_with_marks(rows: Ints, op: int) -> Ints:
    """The rows of an op: its own, and those of its marks."""
    return rows[:, op : op + 1 + max(int(rows[COUNT, op]), 0)]


def events_of_op(rows: Ints, given: Terms) -> list[Event]:
    """Returns one op for exact replay, from its opening on: `rows` are its own and those of its marks."""
    op, marks = rows[:, 0], rows[:, 1:].T.tolist()
    steps = STEPS["op_batch"]
    opened = [steps.open(max_size=given.max_size, interval=0), *([steps.restart()] if given.restarted else [])]
    entries = [steps.enqueue(number=mark[NAMES], length=mark[SIZE], known=1) for mark in marks]
    last = marks[-1][SIZE] if marks else 0
    written = steps.write(count=len(marks), size=op[SIZE], last=last, legible=op[COUNT] >= 0, listed=op[LIST])
    return [*opened, *entries, written]


def strays(rows: Ints) -> Iterator[tuple[int, int, int, int]]:
    """Marks whose half was not found: (position of the op, its number, its queue, the half's number)."""
    for row in rows.T[rows[KIND] == MARK].tolist() if rows.shape[1] else []:
        yield row[PLACE], row[NUMBER], row[TIMES], row[NAMES]


def covered(of: Kernel, replayed: ReplayResult) -> dict[str, int]:
    """Returns the number of accepted events by action."""
    return {name: int(count) for name, count in zip(of.spec.actions, replayed.covered, strict=True) if count}


def by_power_of_two(values: Ints) -> dict[int, int]:
    """Counts the values up to 1, 2, 4 and so on."""
    return counted(1 << np.ceil(np.log2(np.maximum(values, 1))).astype(np.int64))


def counted(values: Ints) -> dict[int, int]:
    """Counts the occurrences of each value."""
    return {int(value): int(count) for value, count in zip(*np.unique(values, return_counts=True), strict=True)}


# -- cursors -------------------------------------------------------------------------------------------------------


class CursorCodes(NamedTuple):
    """Codes of the actions of `checkpoint`."""

    half: int
    op: int
    resolve: int
    advance: int


class CursorArguments(NamedTuple):
    """Rows of their arguments."""

    number: int
    reach: int
    how: int
    by: int
    to: int


def pass_halves(totals: Totals, rows: Ints, halves: Ints, resolved: Ints, terms: Terms) -> Ints:
    """Let the half cursor pass halves, given by their rows. Returns those that it may not pass."""
    chosen = halves[rows[NUMBER, halves] < terms.half_cursor]
    if not len(chosen):
        return NO_ROWS
    of = kernel("checkpoint", terms.ignored)
    events, starts = Events.room(of.spec, 4 * len(chosen)), np.zeros(len(chosen) + 1, np.int64)
    names = building.codes(of.spec, CursorCodes), building.rows(of.spec, CursorArguments)
    _half_events(handed(rows), handed(chosen), handed(resolved), *names, starts, events.action, events.args)
    numbers = rows[NUMBER, chosen]
    replayed = _replay_cursors(of, events, starts, numbers, numbers, numbers, terms)
    totals.covered["checkpoint"] = covered(of, replayed)
    return np.ascontiguousarray(rows[:, chosen[replayed.bad_at >= 0]])


def pass_late_halves(totals: Totals, halves: Ints, terms: Terms) -> Ints:
    """The same for halves that were judged before the cursor was known: key, number, position, how it is resolved."""
    rows = np.zeros((COLUMNS, halves.shape[1]), np.int64)
    rows[[KEY, NUMBER, PLACE]] = halves[:3]
    rows[KIND] = HALF
    return pass_halves(totals, rows, np.arange(halves.shape[1]), np.ascontiguousarray(halves[3]), terms)


def _replay_cursors(
    of: Kernel, events: Events, starts: Ints, halves: Ints | int, ops: Ints | int, numbers: Ints, terms: Terms
) -> ReplayResult:
    """Replays pieces of `checkpoint`; each claims that everything before its half and its op is resolved."""
    state = building.states(
        of.spec, len(numbers), opened=1, expired=1, half_end=halves, half_cursor=halves, op_end=ops, op_cursor=ops
    )
    return of.replay(
        starts, events.action, events.args, state,
        origins=numbers, widths=np.ones_like(numbers), profile=terms.profile,
    )  # fmt: skip


@native(
    lambda _rows, chosen, *_: len(chosen),
    kinds=(TABLE, INTS, INTS, record(CursorCodes), record(CursorArguments), INTS, INTS8, TABLE),
)
def _half_events(
    rows: Ints, chosen: Ints, resolved: Ints, codes: CursorCodes, into: CursorArguments,
    starts: Ints, action: npt.NDArray[np.int8], args: Ints,
) -> None:  # fmt: skip
    """The events of `checkpoint` as the half cursor passes the halves in `chosen` rows: a trace for each half.

    In its trace, what resolves a half has the next number that there is: of ops the first, of versions the second.
    """
    n = 0
    for i in range(len(chosen)):
        starts[i] = n
        number = rows[NUMBER, chosen[i]]
        action[n] = codes.half
        args[into.number, n] = number
        n += 1
        how = resolved[chosen[i]]
        if how == BY_OP or how == BY_OP_OF_EARLIER:  # noqa: PLR1714, SIM109 - a set would be made, and counted
            action[n] = codes.op
            args[into.number, n] = number
            args[into.reach, n] = number + (how == BY_OP)
            n += 1
        elif how == BY_VERSION:
            action[n] = codes.half
            args[into.number, n] = number + 1
            n += 1
        if how:
            action[n] = codes.resolve
            args[into.number, n] = number
            args[into.how, n] = how
            args[into.by, n] = number + (how == BY_VERSION)
            n += 1
        action[n] = codes.advance
        args[into.to, n] = number + 1
        n += 1
    starts[len(chosen)] = n


def _pass_ops(totals: Totals, rows: Ints, ops: Ints, reach: Ints, terms: Terms) -> list[tuple[int, int, int]]:
    """Lets the op cursor pass ops, if it fits the half cursor. Returns those that it may not pass."""
    first = rows[KEY, ops] == 0
    return pass_late_ops(totals, np.stack([*rows[[KEY, NUMBER, PLACE]][:, ops], reach])[:, first], terms)


def pass_late_ops(totals: Totals, ops: Ints, terms: Terms) -> list[tuple[int, int, int]]:
    """The same for ops of queue 0, by key, number, position, and how far they reach."""
    _key, numbers, places, reach = ops[:, ops[1] < terms.op_cursor]
    if not len(numbers) or terms.half_cursor < 0:
        return []
    of = kernel("checkpoint", terms.ignored)
    events, codes = Events.room(of.spec, 3 * len(numbers)), of.spec.codes
    events.action[:] = np.tile([codes["op"], codes["consume_op"], codes["advance_ops"]], len(numbers))
    events.column("number")[:] = np.repeat(numbers, 3)
    events.column("reach")[0::3] = reach
    events.column("to")[2::3] = numbers + 1
    starts = np.arange(0, 3 * len(numbers) + 1, 3, dtype=np.int64)
    replayed = _replay_cursors(of, events, starts, terms.half_cursor, numbers, numbers, terms)
    add_counts(totals.covered.setdefault("checkpoint", {}), covered(of, replayed))
    for n, deviation in enumerate(of.spec.deviations):
        if replayed.deviated[n]:
            place = int(places[int(replayed.deviated_at[n]) // 3])
            totals.anomalies[deviation.step.__name__] = (int(replayed.deviated[n]), place, place, CURSORS)
    early = np.flatnonzero(replayed.bad_at >= 0)[:BAD_OPS]
    return list(zip(places[early].tolist(), numbers[early].tolist(), reach[early].tolist(), strict=True))


# -- ops -----------------------------------------------------------------------------------------------------------


class OpCodes(NamedTuple):
    """Codes of the actions of `op_batch`."""

    enqueue: int
    write: int


class OpArguments(NamedTuple):
    """Rows of their arguments."""

    number: int
    length: int
    known: int
    count: int  # type: ignore[assignment]  # it has the name of its argument
    size: int
    last: int
    legible: int
    listed: int


def judge_ops(rows: Ints, terms: Terms) -> Judgement:
    """Judge the ops among rows, each with its marks behind it."""
    ops = np.flatnonzero(rows[KIND] == OP)
    totals = Totals()
    if not len(ops):
        return Judgement(totals, NO_ROWS, NO_SETTLED)
    of = kernel("op_batch", terms.ignored)
    counts = np.maximum(rows[COUNT, ops], 0)
    events = Events.room(of.spec, int(counts.sum()) + len(ops))
    starts, reach = np.zeros(len(ops) + 1, np.int64), np.zeros(len(ops), np.int64)
    names = building.codes(of.spec, OpCodes), building.rows(of.spec, OpArguments)
    _op_events(handed(rows), ops, _by_name(rows, ops, counts), *names, starts, events.action, events.args, reach)
    state = building.states(of.spec, len(ops), opened=1, max_size=terms.max_size, restarted=int(terms.restarted))
    replayed = of.replay(starts, events.action, events.args, state, widths=counts, profile=terms.profile)
    totals.covered["op_batch"] = covered(of, replayed)
    for number, deviation in enumerate(of.spec.deviations):
        if count := int(replayed.deviated[number]):
            op = ops[int(np.searchsorted(starts, replayed.deviated_at[number], side="right")) - 1]
            place, name = int(rows[PLACE, op]), op_trace(int(rows[NUMBER, op]), int(rows[KEY, op]))
            totals.anomalies[deviation.step.__name__] = (count, place, place, name)
    totals.numbers |= {"ops": len(ops), "marks": int(counts.sum())}
    totals.batches = by_power_of_two(counts)
    bad = np.flatnonzero(replayed.bad_at >= 0)
    more = [of.reasons[why - 1].rule for why in replayed.bad_why[bad[BAD_OPS:]].tolist() if why > 0]
    return Judgement(
        totals,
        NO_ROWS,
        NO_SETTLED,
        bad_ops=[op_with_marks(rows, op).copy() for op in ops[bad[:BAD_OPS]].tolist()],
        more_bad_ops=Counter(more),
        early_ops=_pass_ops(totals, rows, ops, reach, terms),
        unpassed_ops=np.stack([*rows[[KEY, NUMBER, PLACE]][:, ops], reach])[:, rows[KEY, ops] == 0]
        if terms.watched
        else NO_SETTLED,
        listed_ops=np.stack([rows[NUMBER, ops], counts + 1, rows[KEY, ops]])[:, (replayed.bad_at < 0) & terms.listed],
    )


def _by_name(rows: Ints, ops: Ints, counts: Ints) -> Ints:
    """The marks of every op, op by op, in the order of the halves that they name: which row behind its op each is."""
    first = np.cumsum(counts) - counts
    behind = np.arange(int(counts.sum())) - np.repeat(first, counts)
    names = rows[NAMES, np.repeat(ops, counts) + 1 + behind]
    return behind[np.lexsort((names, np.repeat(np.arange(len(ops)), counts)))]


@native(
    lambda rows, *_: rows.shape[1],
    kinds=(TABLE, INTS, INTS, record(OpCodes), record(OpArguments), INTS, INTS8, TABLE, INTS),
)
def _op_events(
    rows: Ints, ops: Ints, by_name: Ints, codes: OpCodes, into: OpArguments,
    starts: Ints, action: npt.NDArray[np.int8], args: Ints, reach: Ints,
) -> None:  # fmt: skip
    """The events of `op_batch`, a trace for each op of the rows `ops`: every entry, and the op that takes them all.

    A half is known by its place among those that the op names, `by_name`. `reach` [ops]: the end of these halves.
    """
    n = first = 0
    for i in range(len(ops)):
        starts[i] = n
        op = ops[i]
        count = max(rows[COUNT, op], 0)
        reach[i] = 0
        last = 0
        place = 0
        for k in range(count):
            m = op + 1 + by_name[first + k]
            if k > 0 and rows[NAMES, m] != rows[NAMES, op + 1 + by_name[first + k - 1]]:
                place = k
            args[into.number, n + by_name[first + k]] = place
        first += count
        for m in range(op + 1, op + 1 + count):
            action[n] = codes.enqueue
            args[into.length, n] = rows[SIZE, m]
            args[into.known, n] = 1
            reach[i] = max(reach[i], rows[NAMES, m] + 1)
            last = rows[SIZE, m]
            n += 1
        action[n] = codes.write
        args[into.count, n] = count
        args[into.size, n] = rows[SIZE, op]
        args[into.last, n] = last
        args[into.legible, n] = int(rows[COUNT, op] >= 0)
        args[into.listed, n] = rows[LIST, op]
        n += 1
    starts[len(ops)] = n


ENTRIES = (_half_events, _op_events)
"""All that is compiled of it."""
