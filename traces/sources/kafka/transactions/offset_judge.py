"""Judges the offsets that groups committed, in one partition of `__consumer_offsets`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.traces.judging.building import Events, Ints
from gapless.traces.options import Options
from gapless.traces.sources.kafka.files.names import OFFSETS_TOPIC, PartitionName
from gapless.traces.sources.kafka.joining.findings import LogFindings, PlacedDeparture
from gapless.traces.sources.kafka.judging.offset_piece import OffsetPiece
from gapless.traces.sources.kafka.judging.parts import SegmentPart
from gapless.traces.sources.kafka.judging.transaction_items import TransactionItems
from gapless.traces.sources.kafka.log.tables import different
from gapless.traces.sources.kafka.transactions.judge import place_of
from gapless.traces.sources.kafka.transactions.offset_events import offset_events
from gapless.traces.sources.kafka.transactions.traces import (
    DepartingTrace,
    JudgedGroups,
    JudgedTraces,
    TraceBlock,
    departing,
)

SPEC = SPECS["group_offsets"]
WITH_PRODUCER = tuple(name for name, arguments in SPEC.parameters.items() if "pid" in arguments)
"""The steps that name a producer."""


class OffsetReplica(NamedTuple):
    """A replica of a partition of `__consumer_offsets`; see `Replica`."""

    name: PartitionName
    parts: Sequence[SegmentPart]
    start: int
    items: TransactionItems
    piece: OffsetPiece


class OffsetJudge:
    """Judges the offsets in one partition. `decided`: producers whose markers are surely there."""

    def __init__(self, found: LogFindings, options: Options, replica: OffsetReplica, decided: Ints) -> None:
        self.found, self.options, self.replica = found, options, replica
        offsets = replica.piece.offsets
        self.made = offset_events(offsets, replica.items, replica.start, decided)
        self.names = [f"{OFFSETS_TOPIC}/{replica.piece.names[key]}" for key in self.made.keys.tolist()]

    def judge(self, judged: JudgedTraces, *, exported: bool) -> None:
        """Judge all groups."""
        made = self.made
        if not self.names:
            return
        judged.add(self.names, made.starts, made.events, self.options)
        if judged.groups is not None:
            replica = self.replica
            judged.groups.append(JudgedGroups(replica.name, replica.parts, replica.start, self.names, made))
        if exported:
            judged.blocks.append(TraceBlock(self.names, made.starts, made.events, np.clip(made.at, 0, self.last)))
        dense = dense_events(made.events, made.starts)
        for one in departing(made.events, made.starts, self.found, self.options, dense):
            self._report(judged, one)

    @property
    def last(self) -> int:
        """The position of the last record."""
        return int(self.replica.piece.offsets.at.max())

    def _report(self, judged: JudgedTraces, one: DepartingTrace) -> None:
        """Report how a trace departs."""
        name = self.names[one.number]
        judged.departed.add(name)
        offset = min(int(self.made.at[one.event]), self.last)
        where = place_of(self.replica.parts, offset)
        self.found.report(PlacedDeparture(name, str(self.replica.name), offset, where, one.departure))


def dense_events(events: Events, starts: Ints) -> tuple[Events, Ints]:
    """The same events with positions and producers counted from 0 in each trace, and how many there are.

    Which numbers they are does not matter to a step, and Maps of a kernel have a place for each number between.
    """
    lengths = np.diff(starts)
    dense = Events(SPEC, events.action, events.args.copy())
    trace = np.repeat(np.arange(len(lengths)), lengths)
    dense.column("at")[:] = np.arange(len(trace)) - starts[trace]
    (rows,) = np.nonzero(np.isin(events.action, [SPEC.codes[name] for name in WITH_PRODUCER]))
    pairs, of = different(trace[rows], events.column("pid")[rows])
    dense.column("pid")[rows] = of - pairs[0].searchsorted(trace[rows])
    return dense, lengths + 1
