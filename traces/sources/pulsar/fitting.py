"""Consistency of a recording's lines. If they are inconsistent, some are lost or altered: that is no pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from gapless.traces.sources.pulsar.joined import Epoch, pair
from gapless.traces.sources.pulsar.lines import Ints, Lines

ONE_EACH = {  # the field that tells lines of these kinds apart, and what they are of
    "call": ("c", "call"),
    "adm": ("c", "call"),
    "ret": ("c", "call"),
    "end_call": ("e", "end"),
    "end_ret": ("e", "end"),
    "op_call": ("i", "operation"),
}
ASKED_BY = {"adm": "call", "ret": "call", "end_ret": "end_call", "op_done": "op_call"}


def misfits(lines: Lines, found: Mapping[int, Sequence[Epoch]]) -> Iterator[str]:
    """Yield the reasons why not all of it can be judged."""
    if not found:
        yield "no coordinator is loaded in it: nothing was checked"
        return
    yield from _of_no_epoch(lines, found)
    yield from _repeated(lines)
    yield from _unasked(lines)
    yield from _unwritten(lines)
    yield from _cut_off(lines, found)


def _of_no_epoch(lines: Lines, found: Mapping[int, Sequence[Epoch]]) -> Iterator[str]:
    known = np.array([epoch.key for epochs in found.values() for epoch in epochs], np.int64)
    for kind in ("call", "log", "replay"):
        strange = ~np.isin(pair(lines.ints(kind, "source"), lines.ints(kind, "ep")), known)
        yield from _located(lines, kind, np.flatnonzero(strange), "of an epoch that was never opened")


def _repeated(lines: Lines) -> Iterator[str]:
    for kind, (field, what) in ONE_EACH.items():
        key = pair(lines.ints(kind, "source"), lines.ints(kind, field))
        _, first = np.unique(key, return_index=True)
        again = np.setdiff1d(np.arange(len(key)), first)
        yield from _located(lines, kind, again, f"the second of its kind for one {what}")


def _unasked(lines: Lines) -> Iterator[str]:
    for kind, asked in ASKED_BY.items():
        field = ONE_EACH[asked][0]
        there = pair(lines.ints(asked, "source"), lines.ints(asked, field))
        strange = ~np.isin(pair(lines.ints(kind, "source"), lines.ints(kind, field)), there)
        yield from _located(lines, kind, np.flatnonzero(strange), "an answer to no call")


WRITTEN = (  # what is never answered well without a record: a call, its record, and the status that both name
    ("add_part", "ADD_PARTITION", ""),
    ("add_sub", "ADD_SUBSCRIPTION", ""),
    ("update", "UPDATE", "COMMITTED"),
    ("update", "UPDATE", "ABORTED"),
)


def _unwritten(lines: Lines) -> Iterator[str]:
    answered = pair(lines.ints("ret", "source"), lines.ints("ret", "c"))[lines.codes("ret", "res", ("ok",)) == 0]
    well = np.isin(pair(lines.ints("call", "source"), lines.ints("call", "c")), answered)
    for call, record, status in WRITTEN:
        asked = _of(lines, "call", call, status)[well[_rows(lines, "call", call, status)]]
        there = _of(lines, "log", record, status)
        short = _count(there, asked) < _count(asked, asked)
        if short.any():
            txn = int(asked[short][0]) & (1 << 40) - 1
            what = f"{call} calls{f' to {status}' if status else ''}"
            yield f"transaction {txn}: more {what} were answered well than records of them are there"


def _rows(lines: Lines, kind: str, op: str, status: str) -> Ints:
    mine = lines.codes(kind, "op", (op,)) == 0
    return np.flatnonzero(mine & (lines.codes(kind, "new", (status,)) == 0) if status else mine)


def _of(lines: Lines, kind: str, op: str, status: str) -> Ints:
    """Return the epoch and transaction of every such line."""
    return pair(lines.ints(kind, "ep"), lines.ints(kind, "txn"))[_rows(lines, kind, op, status)]


def _count(among: Ints, values: Ints) -> Ints:
    """Count the occurrences of each value."""
    among = np.sort(among)
    return np.searchsorted(among, values, "right") - np.searchsorted(among, values, "left")


def _cut_off(lines: Lines, found: Mapping[int, Sequence[Epoch]]) -> Iterator[str]:
    last = {epochs[-1].source for epochs in found.values()} | set(np.unique(lines.ints("op_call", "source")).tolist())
    for source in sorted(lines.sources[number] for number in last):
        if source not in lines.ended:
            yield f"{source} does not end in order: its last lines may be missing, and what they tell was not judged"


def _located(lines: Lines, kind: str, rows: Ints, what: str) -> Iterator[str]:
    if len(rows):
        line = int(lines.ints(kind, "line")[rows[0]])
        more = f" (and {len(rows) - 1:,} more are)" if len(rows) > 1 else ""
        yield f"line {line}, of kind {kind}, is {what}{more}: lines are lost or altered"
