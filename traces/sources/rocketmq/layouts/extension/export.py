"""The events of units, made again for an export."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gapless.traces.judging.building import Events
from gapless.traces.sources.rocketmq.layouts.layout import ExportedEvents, LayoutExporter, SegmentView
from gapless.traces.sources.rocketmq.segments.results import name_of


class UnitExporter(LayoutExporter):
    """Exports the units that entries name, as far as they are judged."""

    def of_segment(self, view: SegmentView) -> Iterator[ExportedEvents]:
        """Yields the units of one segment."""
        units, judged = view.entries.units, self.judged
        if units is None:
            return
        traces = np.repeat(np.arange(len(units.queues)), np.diff(units.starts))
        low = np.array([judged.queues[q].recreated_at if q in judged.queues else 0 for q in units.queues], np.int64)
        high = np.array([judged.unread.get(queue, judged.end) for queue in units.queues], np.int64)
        (kept,) = np.nonzero((units.positions >= low[traces]) & (units.positions < high[traces]))
        events = Events(units.events.spec, units.events.action[kept], np.ascontiguousarray(units.events.args[:, kept]))
        yield ExportedEvents(events, [name_of(queue) for queue in units.queues], traces[kept], units.positions[kept])


EXPORTER = UnitExporter
