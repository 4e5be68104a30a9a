"""The table of halves, compared with the halves in its input: each undecided one has its row.

The table records the end of its input, which it reads in the order of the log. Later halves are not judged, and
neither are ops that may not have been read yet.

Source: docs/rocketmq-transactions.md#half-table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import numpy.typing as npt

from gapless.spec.catalog import STRICT
from gapless.traces.options import Options
from gapless.traces.problems import Unreadable
from gapless.traces.report.wording import plural
from gapless.traces.sources.rocketmq.blame.situation import place, switch
from gapless.traces.sources.rocketmq.blame.store import OF_DAMAGED_LOG
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.lookup import indices_among
from gapless.traces.sources.rocketmq.joining.batch_replay import StepEvents, replay_batch
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.layouts.half_table import blame as situations
from gapless.traces.sources.rocketmq.layouts.half_table.records import (
    IS_FINAL,
    IS_HALF,
    HalfRecords,
    TableHalves,
    TableOfHalves,
    half_records,
    rows_of,
)
from gapless.traces.sources.rocketmq.layouts.layout import JoinSide, LayoutJudge, covered
from gapless.traces.sources.rocketmq.layouts.message_database import HALVES
from gapless.traces.sources.rocketmq.layouts.message_tables import MessageDatabase, opened_database
from gapless.traces.sources.rocketmq.queues.queue_database import why_unreadable
from gapless.traces.sources.rocketmq.store.file_access import name_of_record
from gapless.traces.sources.rocketmq.store.names import TABLE_HALVES
from gapless.traces.sources.rocketmq.store.selection import selected_transaction
from gapless.traces.sources.rocketmq.store.settings import LARGEST_TIME, number_set

TIMEOUT = 6_000  # ms: transactionTimeOut, unless settings say otherwise
INTERVAL, CHECKS = 30_000, 15  # likewise transactionCheckInterval, in ms, and transactionCheckMax
HALF_TABLE = "rocksdbstore"  # begins the names of rows, as traces: their position follows
END = -1  # the trace of the table's end: all others are positions
Truths = npt.NDArray[np.bool_]


def includes_half_table(options: Options) -> bool:
    """True if the table of halves was selected: it belongs to no topic."""
    if options.topic is not None:
        return False
    one = selected_transaction(options) is not None
    return options.trace is None or one or options.trace.startswith(f"{HALF_TABLE}/")


@dataclass(frozen=True)
class HalfCheckpoint:
    """The halves that were read before: `records` up to log position `reached`.

    `rows`: the table of a running broker, as it was when the log ended before `reached`; None without a table.
    """

    records: TableHalves
    reached: int
    rows: TableOfHalves | None = None


class HalfTableJudge(LayoutJudge):
    """Judges the table of halves of a store after its log."""

    def __init__(self, judged: StoreFindings, options: Options) -> None:
        super().__init__(judged, options)
        self.known: HalfCheckpoint | None = None

    def restore(self, known: HalfCheckpoint) -> None:
        """Restores the halves that were read before."""
        self.known = known

    def settle(self) -> None:
        """Judges the table, if there is one, or the halves of its input."""
        there = TABLE_HALVES in self.judged.queues or TABLE_HALVES in self.store.queues
        if not includes_half_table(self.options) or not there:
            return
        rows = self.known.rows if self.known else None
        if rows is None and not self.judged.judges(situations.OTHER_MOMENT, switch(on=self.known is not None)):
            return
        records, reached = self._records()
        damaged = switch(on=reached < self.judged.end or bool(self.judged.damage))
        if not self.judged.judges(OF_DAMAGED_LOG, damaged, what="the table of halves is not judged", its="its"):
            return
        if rows is None:
            rows = self._rows()
        if rows is not None:
            HalfTableReplay(self.judged, self.options, records, rows).judge()

    def _records(self) -> tuple[HalfRecords, int]:
        """Returns the input of the table, and the end of the readable log."""
        if not self.known:
            return half_records(self.store, self.judged.end)
        more, reached = half_records(self.store, self.judged.end, self.known.reached)
        known = self.known.records.all_of_them(self.store.start)
        return HalfRecords(*np.concatenate([np.stack(known), np.stack(more)], axis=1)), reached

    def _rows(self) -> TableOfHalves | None:
        """Reads the table, if it is readable."""
        found = table_of(opened_database(self.judged))
        if not isinstance(found, str):
            return found
        self.judged.blame(situations.UNREADABLE, why=found)
        return None


def table_of(database: MessageDatabase) -> TableOfHalves | str:
    """Reads the table of halves in a database, or returns the reason why it is unreadable."""
    folder = database.folder
    why = "it is not there" if not (folder / "CURRENT").is_file() else why_unreadable(folder, "it is")
    if why:
        return why
    try:
        rows = rows_of(database.read(HALVES, lambda stretches: [*chain.from_iterable(stretches)]))
    except Unreadable as unreadable:
        return str(unreadable)
    return "it holds a row that no broker writes" if rows is None else rows


class HalfTableReplay:
    """One table, with the records in its input."""

    def __init__(self, judged: StoreFindings, options: Options, records: HalfRecords, rows: TableOfHalves) -> None:
        self.judged = judged
        self.store = judged.store
        self.options = options
        self.halves = HalfRecords(*np.stack(records)[:, (records.kind == IS_HALF) & (records.owner != 0)])
        self.others = HalfRecords(*np.stack(records)[:, records.kind != IS_HALF])
        live = rows.position >= self.store.start  # the halves of others have expired
        self.rows = TableOfHalves(rows.position[live], rows.owner[live], rows.checks[live], rows.size[live], rows.last)
        self.limit = number_set(self.store.settings, "transactionCheckMax") if self.store.settings_apply else 0
        self.checks = number_set(self.store.settings, "transactionCheckMax", CHECKS)
        self.interval = max(number_set(self.store.settings, "transactionCheckInterval", INTERVAL, most=LARGEST_TIME), 1)

    def judge(self) -> None:
        """Judges every half and every row."""
        steps = list(self._steps())
        traces = np.unique(np.concatenate([some.traces for some in steps]))
        if self.options.trace is not None:
            traces = self._wanted(traces)
            steps = [some.only(traces) for some in steps]
        if len(traces):
            replay_batch(self.judged, self.options, "half_table", steps, traces, self._name)
            for n, found in enumerate(self.judged.breaches):
                if found.spec == "half_table" and found.arguments.get("within") == 0:
                    self.judged.breaches[n] = replace(found, detail=f"the table ends at {self.rows.last}")
        rows = plural(len(self.rows.position), "row")
        self.judged.note(f"the table of halves has {rows}, and ends at {self.rows.last:,}")

    def _steps(self) -> Iterator[StepEvents]:
        halves, rows = self.halves, self.rows
        yield _of("prepare", halves.position, 0, {"position": halves.position, "size": halves.size})
        row_of = indices_among(rows.position, halves.position)
        passed = (halves.position <= rows.last) & (rows.last > 0)
        decided = np.isin(halves.position, self.others.position)
        ops = self.others.position[(self.others.kind != IS_FINAL) & (self.others.at < rows.last)]
        reported = np.where(row_of >= 0, np.isin(halves.position, ops), passed & decided)
        yield _of("decide", halves.position[reported], 1, {})
        yield from self._found()
        yield from self._missing(passed & (row_of < 0), decided)
        self._behind(~passed & (row_of < 0) & ~decided)
        yield from self._end()

    def _found(self) -> Iterator[StepEvents]:
        """Returns the rows' events. A row without a half may be of a part of the log that was lost with the power."""
        rows, half = self.rows, indices_among(self.halves.position, self.rows.position)
        nowhere = half < 0
        unsure = nowhere & ~self.judged.accuses_where(situations.NO_HALF, rows.position >= self.judged.end)
        self.judged.blame_for(situations.NO_HALF, rows.position[unsure])
        owner = np.zeros(len(half), np.int64)
        owner[~nowhere] = self.halves.owner[half[~nowhere]]
        within = rows.position <= rows.last
        kept = ~unsure
        args = {
            "size": rows.size[kept], "checks": rows.checks[kept], "limit": np.full(int(kept.sum()), self.limit),
            "owned": (nowhere | (owner == rows.owner))[kept], "within": within[kept],
        }  # fmt: skip
        yield _of("find_row", rows.position[kept], 2, args)

    def _behind(self, behind: Truths) -> None:
        """Notes undecided halves behind the table's end."""
        self.judged.blame(situations.BEHIND_THE_END, count=int(behind.sum()))

    def _missing(self, missing: Truths, decided: Truths) -> Iterator[StepEvents]:
        """Returns the events of halves without a row, with the flag that all their checks may be over."""
        spent = ~self._cannot_be_spent()
        unsure = missing & ~decided & ~spent & (not self.judged.accuses(situations.NO_ROW))
        self.judged.blame_for(situations.NO_ROW, self.halves.position[unsure])
        young = missing & ~decided & spent & self._are_young()
        self.judged.blame_for(
            situations.YOUNG, self.halves.position[young], checks=self.checks, seconds=self.interval / 1000
        )
        unsure |= young
        self.judged.blame_for(situations.GIVEN_UP, self.halves.position[missing & ~decided & spent & ~young])
        kept = missing & ~unsure
        yield _of("miss_row", self.halves.position[kept], 2, {"spent": spent[kept]})

    def _are_young(self) -> Truths:
        """Returns the mask of halves of a first life whose checks cannot be over by the end of the log.

        There is a round of checks at a start, when the table is still empty, and one each interval. The time that a
        broker ran after its last message is unknown, so this accuses no broker. A strict reading wants no reason.
        """
        known, profile = self.store.checkpoint, self.options.profile
        if not self.store.first_life or known is None or profile == STRICT:
            return np.zeros(len(self.halves.position), np.bool_)
        end = max(known.log, int(self.halves.born.max(initial=0)))
        return 1 + (end - self._due()) // self.interval < self.checks

    def _due(self) -> Ints:
        """Returns the time in ms of each half's first check."""
        timeout = number_set(self.store.settings, "transactionTimeOut", TIMEOUT, most=LARGEST_TIME)
        due: Ints = np.where(self.halves.due >= 0, self.halves.due, self.halves.born + timeout)
        return due

    def _cannot_be_spent(self) -> Truths:
        """Returns the mask of halves with fewer checks than allowed, as the row of an older one shows.

        A round of checks goes through all rows, oldest first, and skips immune ones. So a half behind another one, and
        immune as long, was checked at most one time more: if a round was in progress.
        """
        halves = self.halves
        cannot = np.zeros(len(halves.position), np.bool_)
        if not self.limit:
            return cannot
        due = self._due()
        row = indices_among(self.rows.position, halves.position)
        low = (row >= 0) & (self.rows.checks[row] < self.limit if len(self.rows.checks) else False)
        earliest = np.minimum.accumulate(np.where(low, due, np.iinfo(np.int64).max))
        cannot[1:] = earliest[:-1] <= due[1:]
        return cannot

    def _end(self) -> Iterator[StepEvents]:
        last = self.rows.last
        if not last or last < self.store.start:
            return
        there = bool(np.isin(last, self.halves.position))
        where = place(beyond=last >= self.judged.end)
        if not there and not self.judged.judges(situations.END_WITHOUT_HALF, where, last=last):
            return
        yield _of("find_end", np.array([END]), 0, {"position": np.array([last]), "there": np.array([there])})

    def _wanted(self, traces: Ints) -> Ints:
        """Returns the requested traces: by the key of a transaction, or by position."""
        one = selected_transaction(self.options)
        named = str(self.options.trace).rpartition("/")[2]
        if one is None:
            return traces[traces == int(named)] if named.isdecimal() else traces[:0]
        return np.array([trace for trace in traces.tolist() if trace >= 0 and self._name(trace) == one], np.int64)

    def _name(self, trace: int) -> str:
        if trace != END and indices_among(self.halves.position, np.array([trace]))[0] >= 0:
            return name_of_record(self.store, int(trace))
        return f"{HALF_TABLE}/{self.rows.last if trace == END else trace}"


def _of(step: str, traces: Ints, rank: int, args: dict[str, npt.NDArray[np.int64] | Truths]) -> StepEvents:
    about = traces
    return StepEvents(step, traces, np.full(len(traces), rank), about, args)


LAYOUT = JoinSide(HalfTableJudge, is_present=covered("half_table.find_row"))
