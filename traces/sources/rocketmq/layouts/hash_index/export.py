"""The keys that are found in the hash index, made again for an export."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.traces.judging.building import STEPS, Events
from gapless.traces.options import Options
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.layouts.hash_index.index_files import FOLDER, index_in
from gapless.traces.sources.rocketmq.layouts.hash_index.worker import found_keys, sought
from gapless.traces.sources.rocketmq.layouts.layout import ExportedEvents, LayoutExporter, SegmentView
from gapless.traces.sources.rocketmq.segments.splits import Sought


class KeyExporter(LayoutExporter):
    """Exports the keys of records that the index has, behind all records."""

    def __init__(self, judged: StoreFindings, options: Options) -> None:
        super().__init__(judged, options)
        self.keys = [np.zeros(0, np.int64)]

    def sought(self) -> Sequence[Sought]:
        """Asks for the keys of records, if the index is judged."""
        return sought(self.judged.store, self.options)

    def of_segment(self, view: SegmentView) -> Sequence[ExportedEvents]:
        """Remembers the keys of a segment that have their items."""
        index = index_in(view.store)
        if index and self.sought() and view.columns.count:
            self.keys.append(found_keys(index, view.columns, view.start, view.end))
        return ()

    def at_end(self) -> Iterator[ExportedEvents]:
        """Yields a search for each of the keys."""
        index, keys, end = index_in(self.judged.store), np.concatenate(self.keys), self.judged.end
        if not index or not index.whole or not len(keys):
            return
        found = Events.room(SPECS["hash_index"], len(keys) + 1)
        found.put(0, STEPS["hash_index"].open(slots=1))
        found.action[1:] = found.spec.codes["look_up"]
        found.column("position")[1:], found.column("found")[1:] = keys, 1
        yield ExportedEvents(found, [f"{FOLDER}/"], None, np.full(len(found.action), end))


EXPORTER = KeyExporter
