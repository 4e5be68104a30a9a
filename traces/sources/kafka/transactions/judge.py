"""Judges the transactions of one cluster: each transactional id over its partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gapless.spec.catalog import SPECS
from gapless.spec.language import ASSUMED
from gapless.traces.judging.building import Ints
from gapless.traces.options import Options
from gapless.traces.replay.kernels import ReplayResult
from gapless.traces.report.pictures.lanes import TransactionLanes
from gapless.traces.report.values import Where
from gapless.traces.sources.kafka.files.names import TRANSACTION_TOPIC, PartitionName
from gapless.traces.sources.kafka.joining.findings import LogFindings, PlacedDeparture, WaitingTransaction
from gapless.traces.sources.kafka.joining.places import PlaceFinder
from gapless.traces.sources.kafka.joining.states import some
from gapless.traces.sources.kafka.judging.parts import SegmentPart
from gapless.traces.sources.kafka.transactions.hazards import waiting_ids
from gapless.traces.sources.kafka.transactions.lanes import BEFORE, BEHIND, LaneName, lanes_of
from gapless.traces.sources.kafka.transactions.leftovers import Leftovers
from gapless.traces.sources.kafka.transactions.markers import MarkerTable
from gapless.traces.sources.kafka.transactions.partitions import PartitionItems, Replica
from gapless.traces.sources.kafka.transactions.table import CoordinatorTable
from gapless.traces.sources.kafka.transactions.trace_events import TraceEvents, TraceMaker
from gapless.traces.sources.kafka.transactions.traces import (
    DepartingTrace,
    JudgedTraces,
    TraceBlock,
    departures,
    replayed,
)

SPEC = SPECS["kafka_transaction"]
PARTS = 8
"""Partitions that a story names."""


class TableReplica(NamedTuple):
    """A replica of a partition of the table. `is_whole`: nothing is missing at its end · `starts`: see `Replica`."""

    name: PartitionName
    parts: Sequence[SegmentPart]
    is_whole: bool
    starts: Ints | None


class IdJudge:
    """Judges some transactional ids of one cluster, and adds them to those of others."""

    def __init__(
        self, found: LogFindings, options: Options, replicas: Sequence[Replica], tables: Sequence[TableReplica],
        table: CoordinatorTable,
    ) -> None:  # fmt: skip
        self.found, self.options = found, options
        self.replicas, self.tables, self.table = replicas, tables, table
        self.names = [f"{TRANSACTION_TOPIC}/{name}" for name in table.names]

    def judge(self, items: PartitionItems, judged: JudgedTraces, *, exported: bool) -> None:
        """Judge all of them. `items`: of their producers."""
        if not self.names:
            return
        matching = MarkerTable(self.table, items)
        if Leftovers(matching).settle():
            self.found.doubt("markers of very many producers fit no decision: some of them are not judged")
        made = TraceMaker(matching).made()
        judged.add(self.names, made.starts, made.events, self.options)
        if exported:
            judged.blocks.append(TraceBlock(self.names, made.starts, made.events, self.table.offset[made.row]))
        self._replay(judged, made)
        self._report_waiting(judged)

    def _report_waiting(self, judged: JudgedTraces) -> None:
        """Report the transactions that should be over, of ids that do not depart."""
        for one in waiting_ids(self.table, self.tables[0].starts):
            name, table = self.names[one.number], self.tables[int(self.table.table[one.row])]
            if name not in judged.departed:
                offset = int(self.table.offset[one.row])
                where = place_of(table.parts, offset)
                self.found.hazards.append(WaitingTransaction(name, one.rule, offset, where, one.age))

    def _replay(self, judged: JudgedTraces, made: TraceEvents) -> None:
        found = replayed(made.events, made.starts, made.parts.widths, self.found, self.options)
        self._count_anomalies(made, found)
        for one in departures(found, made.events, made.starts, self.options):
            self._report(judged, made, one)

    def _count_anomalies(self, made: TraceEvents, replayed: ReplayResult) -> None:
        for number, deviation in enumerate(SPEC.deviations):
            if replayed.deviated[number]:
                event, name = int(replayed.deviated_at[number]), deviation.step.__name__
                trace = int(made.starts.searchsorted(event, side="right")) - 1
                where, offset, _ = self._place(made, trace, event)
                count = int(replayed.deviated[number])
                self.found.anomaly(SPEC.name, name, count, self.names[trace], offset, where)

    def _report(self, judged: JudgedTraces, made: TraceEvents, one: DepartingTrace) -> None:
        """Report how a trace departs."""
        trace, departure, name = one.number, one.departure, self.names[one.number]
        where, offset, partition = self._place(made, trace, one.event)
        if departure.rule.endswith(f"/{ASSUMED}"):
            self.found.doubt(f"{name} is judged up to {where.file}+{where.offset}: from there on its offsets go back")
            return
        judged.departed.add(name)
        parts = tuple(self._parts(made, trace))
        picture = self._picture(made, trace, one.event)
        self.found.report(PlacedDeparture(name, partition, offset, where, departure, picture, parts))

    def _picture(self, made: TraceEvents, trace: int, bad: int) -> TransactionLanes:
        """The events around one that departs, by partition."""
        low, high = made.starts[trace : trace + 2].tolist()
        first = max(low, bad - BEFORE)
        names = [
            LaneName("partitions elsewhere" if part < 0 else str(self.replicas[part].name), not is_shadow and part >= 0)
            for part, is_shadow in made.parts.names(trace)
        ]
        shown = list(some(made.events, first, min(high, bad + BEHIND + 1)))
        return lanes_of(shown, bad - first, names, left_out=first - low)

    def _place(self, made: TraceEvents, trace: int, event: int) -> tuple[Where, int, str]:
        """The place of an event, and its partition: a batch of that, or else a row of the table."""
        action, args = made.events.at(event)
        named = dict(zip(SPEC.parameters[action], args, strict=True))
        if action in ("write", "mark"):
            part, is_shadow = made.parts.names(trace)[named["part"]]
            if not is_shadow:
                offset = named["first" if action == "write" else "offset"]
                return place_of(self.replicas[part].parts, offset), offset, str(self.replicas[part].name)
        row = int(made.row[event])
        table, offset = self.tables[int(self.table.table[row])], int(self.table.offset[row])
        return place_of(table.parts, offset), offset, str(table.name)

    def _parts(self, made: TraceEvents, trace: int) -> Iterator[str]:
        """Sentences on the numbers of partitions."""
        for number, (part, is_shadow) in enumerate(made.parts.names(trace)[:PARTS]):
            if part < 0:
                yield f"Part {number} stands for partitions that were not read."
            elif is_shadow:
                yield f"Part {number} is {self.replicas[part].name}, where its markers may be gone."
            else:
                yield f"Part {number} is {self.replicas[part].name}."


def place_of(parts: Sequence[SegmentPart], offset: int) -> Where:
    """Return the place of the batch that has an offset in a partition."""
    part = next((one for one in reversed(parts) if one.offset <= offset), parts[0])
    return PlaceFinder(part).at_offset(offset)
