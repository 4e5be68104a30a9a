"""Traces that continue from one batch of a stream to the next, kept in one place.

No event is kept, but the states that are possible (`open_traces`), and the verdict so far. There is no story.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from gapless.traces.judging.columns import Traces
from gapless.traces.judging.streaming.open_traces import OpenTraces
from gapless.traces.options import Options
from gapless.traces.problems import Unreadable, shown


@dataclass
class ResumableTraces:
    """All traces that are kept in one place, by spec. `source`: their name in the verdict table."""

    source: str
    open: dict[str, OpenTraces] = field(default_factory=dict)

    def take(self, some: Iterable[Traces], options: Options) -> list[pa.RecordBatch]:
        """Judge events of several traces, and return the rows of the verdict table that change. Raises Unreadable."""
        changed = []
        for traces in some:
            one = self.open.setdefault(traces.spec.name, OpenTraces(traces.spec, options))
            places = one.take(traces)
            if falls := one.tally.falls:
                raise Unreadable(
                    f"position {falls.position} of {shown(falls.trace)} is lower than the one before: expected the "
                    "events of a trace in the order in which they took effect, also from one file to the next"
                )
            one.forget_stories()
            changed.append(one.rows(self.source, places))
        return changed

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the verdict table, of all traces."""
        return (one.rows(self.source) for one in self.open.values())
