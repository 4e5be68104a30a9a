"""Joined lines of a recorded coordinator: calls with their answers, and records with the answers to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gapless.spec.coordinator import Status
from gapless.traces.events.event import OUTCOMES
from gapless.traces.sources.pulsar.lines import Ints, Lines

Flags = npt.NDArray[np.bool_]

OK, REFUSED, UNKNOWN, INFERRED = (OUTCOMES.index(name) for name in ("ok", "refused", "unknown", "inferred"))
NEVER = 2**56  # a line that never comes
SLOTS = 4  # places per line: steps may be placed between two lines

STATUSES = tuple(status.name for status in Status)  # their index is their value
CALLS = ("open", "add_part", "add_sub", "update")
RECORDS = ("NEW", "ADD_PARTITION", "ADD_SUBSCRIPTION", "UPDATE")  # that these calls write
NEW, UPDATE = RECORDS.index("NEW"), RECORDS.index("UPDATE")
ANSWERS = ("ok", "err", "ignored")
GIVEN, FAILED, IGNORED = range(len(ANSWERS))


@dataclass(frozen=True)
class Epoch:
    """One load of a coordinator: by whom, with which limit, and the lines about it.

    `table`: the line of the transactions that it found · `row`: the row of that line, -1 if it is missing · `ready`: 0
    if it failed.
    """

    source: int
    number: int
    limit: int
    opening: int
    table: int
    row: int
    ready: int

    @property
    def key(self) -> int:
        """The epoch in one number."""
        return int(pair(np.int64(self.source), np.int64(self.number)))


def coordinators(lines: Lines) -> dict[int, list[Epoch]]:
    """Return every coordinator of the recording, with its epochs in order."""
    events = lines.codes("epoch", "ev", ("opening", "ready"))
    key = pair(lines.ints("epoch", "source"), lines.ints("epoch", "ep"))
    source, number, tc = lines.ints("epoch", "source"), lines.ints("epoch", "ep"), lines.ints("epoch", "tc", 0)
    line, limit = lines.ints("epoch", "line"), lines.ints("epoch", "M", 0)
    ready = dict(zip(key[events == 1].tolist(), line[events == 1].tolist(), strict=True))
    table, of_table = lines.ints("table", "line"), pair(lines.ints("table", "source"), lines.ints("table", "ep"))
    tables: dict[int, list[int]] = {}
    for row, of in enumerate(of_table.tolist()):
        tables.setdefault(of, []).append(row)
    found: dict[int, list[Epoch]] = {}
    for at in np.flatnonzero(events == 0).tolist():
        end = ready.get(int(key[at]), 0)
        rows = (row for row in tables.get(int(key[at]), ()) if line[at] < table[row] <= end)
        row = next(rows, -1)
        there = int(table[row]) if row >= 0 else -1
        epoch = Epoch(int(source[at]), int(number[at]), int(limit[at]), int(line[at]), there, row, end)
        found.setdefault(int(tc[at]), []).append(epoch)
    return found


class Calls:
    """Every call of the coordinator with its answer, if there is one."""

    def __init__(self, lines: Lines, rows: Ints) -> None:
        self.line = lines.ints("call", "line")[rows]
        self.epoch = pair(lines.ints("call", "source"), lines.ints("call", "ep"))[rows]
        self.kind = lines.codes("call", "op", CALLS)[rows]
        self.opens = self.kind == NEW
        self.expected = lines.codes("call", "exp", STATUSES)[rows]
        self.new = lines.codes("call", "new", STATUSES)[rows]
        self.by_clock = lines.ints("call", "timeout", 0)[rows] > 0
        self.txn = lines.ints("call", "txn")[rows]
        self.answer = np.full(len(rows), NEVER)
        self.outcome = np.full(len(rows), -1)
        self.rejected = np.zeros(len(rows), np.bool_)
        self.admitted = np.full(len(rows), NEVER)
        key = pair(lines.ints("call", "source"), lines.ints("call", "c"))[rows]
        call, ret = matched(key, pair(lines.ints("ret", "source"), lines.ints("ret", "c")))
        self.answer[call] = lines.ints("ret", "line")[ret]
        self.outcome[call] = lines.codes("ret", "res", ANSWERS)[ret]
        self.rejected[call] = lines.codes("ret", "err", ("InvalidTxnStatusException",))[ret] == 0
        self.txn[call] = np.where(self.opens[call], lines.ints("ret", "txn")[ret], self.txn[call])
        call, adm = matched(key, pair(lines.ints("adm", "source"), lines.ints("adm", "c")))
        self.admitted[call] = lines.ints("adm", "line")[adm]


class Records:
    """Every record of the log, in order: as it was acknowledged, or as it was found when the log was read."""

    def __init__(self, lines: Lines, rows: Ints, read: Ints, loaded: Sequence[Epoch], calls: Calls) -> None:
        later = _unacknowledged(lines, rows, read, loaded[0].key if loaded else 0)

        def both(name: str) -> Ints:
            return np.concatenate([lines.ints("log", name, 0)[rows], lines.ints("replay", name, 0)[later]])

        def coded(name: str, words: Sequence[str]) -> Ints:
            return np.concatenate([lines.codes("log", name, words)[rows], lines.codes("replay", name, words)[later]])

        self.line, self.txn = both("line"), both("txn")
        self.start, self.ttl, self.mod = both("start"), both("ttl"), both("mod")
        self.kind, self.expected, self.new = coded("op", RECORDS), coded("exp", STATUSES), coded("new", STATUSES)
        self.epoch = pair(both("source"), both("ep"))
        self.key = self.line * SLOTS
        self._found(len(rows), loaded)
        self.answer = np.full(len(self.line), NEVER)
        self.outcome = np.full(len(self.line), UNKNOWN, np.int64)
        self.by_clock = np.zeros(len(self.line), np.bool_)
        self._answered(calls, len(rows))

    def _found(self, acknowledged: int, loaded: Sequence[Epoch]) -> None:
        """Place records that a load found: in the time of the epoch before, and before the load's table."""
        later = acknowledged + np.argsort(self.epoch[acknowledged:], kind="stable")
        keys = self.epoch[later]
        left = set(keys.tolist())
        for before, epoch in pairwise(loaded):
            if epoch.key in left:
                left.discard(epoch.key)
                mine = later[slice(*np.searchsorted(keys, (epoch.key, epoch.key + 1)))]
                self.epoch[mine] = before.key
                self.key[mine] = np.minimum(self.key[mine], epoch.table * SLOTS - 2)

    def _answered(self, calls: Calls, acknowledged: int) -> None:
        """Match answers with records: of equal records, the first answer is for the first.

        If their numbers differ, and the answers do too, the match is unknown.
        """
        asked = np.flatnonzero((calls.outcome == GIVEN) | calls.rejected)
        asked = asked[np.argsort(calls.answer[asked], kind="stable")]
        written = np.arange(acknowledged)
        names = ("epoch", "kind", "txn", "expected", "new")
        keys = [np.concatenate([getattr(calls, name)[asked], getattr(self, name)[written]]) for name in names]
        group = _grouped(keys)
        of_call, of_record = group[: len(asked)], group[len(asked) :]
        count = int(group.max(initial=-1)) + 1
        answers, records = np.bincount(of_call, minlength=count), np.bincount(of_record, minlength=count)
        rejections = np.bincount(of_call, calls.rejected[asked], count)
        by_clock = np.bincount(of_call, calls.by_clock[asked], count)
        self.outcome[written[(rejections[of_record] == 0) & (answers[of_record] > 0)]] = OK
        self.outcome[written[(rejections == answers)[of_record] & (answers[of_record] > 0)]] = REFUSED
        self.by_clock[written] = ((by_clock == answers) & (answers > 0))[of_record]
        even = answers == records
        call = asked[even[of_call]][np.argsort(of_call[even[of_call]], kind="stable")]
        record = written[even[of_record]][np.argsort(of_record[even[of_record]], kind="stable")]
        self.answer[record] = calls.answer[call]
        self.outcome[record] = np.where(calls.rejected[call], REFUSED, OK)

    @property
    def begins_an_end(self) -> Flags:
        """True for records that begin an end. A record that fits neither phase becomes an impossible step.

        A record has its old and new status: an end that begins with an outcome is no beginning, and so on.
        """
        begins = (self.expected == Status.OPEN) & ((self.new == Status.COMMITTING) | (self.new == Status.ABORTING))
        ends = (self.new >= Status.COMMITTED) & (self.new == self.expected + 2)
        return np.asarray(begins | (~ends & (self.new >= Status.COMMITTED)))

    def changes(self) -> tuple[Ints, Ints, Ints]:
        """Return when slots are taken and freed: the earliest line, the latest line, and the change.

        The answer comes after the change, and records are applied one after the other.
        """
        freed = (self.kind == UPDATE) & (self.new >= Status.COMMITTED) & (self.outcome != REFUSED)
        change = np.where(self.kind == NEW, 1, np.where(freed, -1, 0))
        rows = np.flatnonzero(change)
        rows = rows[np.argsort(self.key[rows], kind="stable")]
        at = self.key[rows] // SLOTS
        certain = np.minimum(self.answer[rows], np.append(at[1:], NEVER)[: len(rows)])
        return at, np.maximum.accumulate(certain), change[rows]


def pair(high: Ints | np.int64, low: Ints | np.int64) -> Ints:
    """Combine two numbers to one."""
    return np.asarray((high << 40) + low, np.int64)


def first_of(key: Ints, rows: Ints) -> dict[int, int]:
    """Return the first of these rows with each key."""
    return dict(zip(key[rows][::-1].tolist(), rows[::-1].tolist(), strict=True))


def matched(key: Ints, theirs: Ints) -> tuple[Ints, Ints]:
    """Join rows by key: the rows of ours and of theirs with equal keys."""
    if not len(key):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = np.argsort(key, kind="stable")
    at = np.minimum(np.searchsorted(key[order], theirs), len(key) - 1)
    hit = np.flatnonzero(key[order][at] == theirs)
    return order[at[hit]], hit


def _grouped(keys: Sequence[Ints]) -> Ints:
    """Return the same number for rows that are equal in all keys."""
    order = np.lexsort(list(keys))
    differs = np.zeros(len(order), np.bool_)
    for key in keys:
        differs[1:] |= key[order][1:] != key[order][:-1]
    found = np.empty(len(order), np.int64)
    found[order] = np.cumsum(differs)
    return found


def _unacknowledged(lines: Lines, rows: Ints, read: Ints, first: int) -> Ints:
    """Return records that were found in the log, once each, without an acknowledgement.

    Records up to where the log was read for the `first` epoch are from before the recording. A record alone in its
    batch may be written with or without its place there.
    """

    def positions(kind: str, some: Ints) -> Any:
        column: Any = lines.kinds[kind].column("pos").combine_chunks()
        column = column.take(pa.array(some))
        return pc.replace_substring_regex(column, pattern=":0/1$", replacement="")

    at_first = pair(lines.ints("replay", "source"), lines.ints("replay", "ep"))[read] == first
    before = _places(positions("replay", read[at_first])).max(initial=-1)
    read = read[~at_first]
    there = positions("replay", read)
    names = there.dictionary_encode()
    _, once = np.unique(names.indices.to_numpy(), return_index=True)
    known: Flags = pc.is_in(names.dictionary, value_set=positions("log", rows)).to_numpy(zero_copy_only=False)
    found = np.sort(once[~known])
    return np.asarray(read[found[_places(there)[found] > before]], np.int64)


def _places(positions: Any) -> Ints:
    """Combine ledger and entry of places in the log to one number, which grows."""
    parts: Any = pc.extract_regex(positions, r"^(?P<ledger>\d{1,9}):(?P<entry>\d{1,9})(?::|$)")
    ledger, entry = (
        pc.struct_field(parts, name).fill_null("0").cast(pa.int64()).to_numpy(zero_copy_only=False)
        for name in ("ledger", "entry")
    )
    return pair(ledger.astype(np.int64), entry.astype(np.int64))
