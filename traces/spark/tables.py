"""The table of events that Spark reads, and how the parts of any table are put into tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from gapless.spec.catalog import Spec
from gapless.traces.check import own_specs
from gapless.traces.events import reading
from gapless.traces.events.reading import EventStretch
from gapless.traces.events.schema import EventSchema, with_specs
from gapless.traces.files.remote import path_of
from gapless.traces.inputs import named
from gapless.traces.problems import UsageError, shown
from gapless.traces.sources.tables import Spans, TablePart

EVENT_FORMAT = "gapless-events"  # the name of the table of events
STRETCH = 16 << 20  # bytes that one task reads
TOGETHER = 64  # small parts at most that one task reads: each is a file to open


def in_tasks(parts: Iterable[TablePart], size: int) -> Iterator[list[TablePart]]:
    """Group the parts, in order, to tasks of `size` bytes: to start a task takes longer than to read a part."""
    task: list[TablePart] = []
    room = size
    for part in parts:
        cost = max(part.bytes, size // TOGETHER)
        if task and cost > room:
            yield task
            task, room = [], size
        task.append(part)
        room -= cost
    if task:
        yield task


@dataclass(frozen=True)
class EventTable:
    """Events of files; `specs`: those that a user brings."""

    paths: tuple[Path, ...]
    specs: tuple[Spec, ...]
    split: int

    @property
    def events(self) -> EventSchema:
        """The events that may occur."""
        return with_specs(self.specs)

    @property
    def columns(self) -> pa.Schema:
        """See `SparkTable`."""
        return self.events.columns.remove_metadata()

    def parts(self, asked: frozenset[str]) -> Iterator[tuple[TablePart, Spans]]:
        """See `SparkTable`."""
        for path in self.paths:
            for stretch in reading.stretches(path, self.split):
                part = TablePart(str(path), stretch.low, stretch.high, stretch.bytes)
                yield part, reading.spans(path, stretch, asked)

    def read(self, part: TablePart, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        """See `SparkTable`."""
        stretch = EventStretch(0, part.low, part.high, part.bytes, first=False, last=False)
        return reading.selected(path_of(part.path), columns, stretch, self.events)


def event_table(paths: Sequence[Path], specs: Sequence[str] = (), split: int | None = None) -> EventTable:
    """Make the table of event files, of folders of them, and of patterns. Raises UsageError if there are none."""
    own = own_specs(specs)
    inputs = [one for path in paths for one in named(path.absolute())]
    for one in inputs:
        if one.source is None or one.source.kind != "event-trace":
            raise UsageError(f"{shown(one.path)}: no file of events, and no folder of such")
    return EventTable(tuple(one.found for one in inputs), own, split or STRETCH)
