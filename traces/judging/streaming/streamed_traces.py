"""Traces of a stream, between its batches: the states that are possible, and the verdicts so far; no row is kept.

A batch has the rows of several traces, sorted by trace and position. A trace whose rows arrive late, behind others that
were judged, is unreadable from then on: it cannot be known what they would have changed.
"""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gapless.spec.catalog import text_of
from gapless.traces.judging.columns import Traces
from gapless.traces.judging.findings.trace_stories import BARE, UNOPENED
from gapless.traces.judging.streaming.open_traces import CONFORMS, DEPARTS, OpenTraces, Places
from gapless.traces.judging.streaming.sorted_traces import UNSORTED, RowBatch, TraceQuestion, unreadable, with_stories
from gapless.traces.problems import EngineFailure, shown

FORM = 1  # of what is kept; raised when it changes
LATE = "Position {}: it arrived after rows that come behind it, or twice."
UNDECIDED = "So much is unknown that too many states are possible, or its environment breaks its promise."


def digest_of(question: TraceQuestion) -> str:
    """Summarise all that decides what is kept: a stream that continues must be asked the same."""
    options = question.options
    parts = [str(FORM), text_of(question.spec.module), options.profile, *sorted(options.ignored)]
    return sha256("\0".join(parts).encode()).hexdigest()[:16]


class StreamedTraces:
    """Some traces of a stream; it travels from batch to batch."""

    def __init__(self, question: TraceQuestion) -> None:
        self.question = question
        self.open = OpenTraces(question.spec, question.options)
        self.unreadable: dict[bytes, tuple[str, int]] = {}  # the reason, and how many rows there were

    def take(self, rows: pa.RecordBatch) -> list[pa.RecordBatch]:
        """Judge more rows, and return those of `RESULT` that change: one for each trace with rows."""
        batch = RowBatch(self.question, rows)
        names = batch.names()
        faults = {at: self.unreadable[name][0] for at, name in enumerate(names) if name in self.unreadable}
        faults = self._late(batch, names) | faults
        if batch.encoded() is None:
            faults = batch.faults() | faults
        counts = np.bincount(batch.of, minlength=len(names))
        found = []
        for at, why in faults.items():
            before = self.unreadable.get(names[at], ("", self._events(names[at])))[1]
            self.unreadable[names[at]] = why, before + int(counts[at])
            found.append(unreadable(self.question, names[at], before + int(counts[at]), why))
        return found + [self._judged(traces) for traces in batch.sound(faults)]

    def _late(self, batch: RowBatch, names: list[bytes]) -> dict[int, str]:
        """Find the traces that continue with a row that does not come behind all judged ones."""
        places = self._places(names)
        first = np.searchsorted(batch.of, np.arange(len(names)))
        position = batch.position.fill_null(0).to_numpy(zero_copy_only=False)[first]
        known = np.flatnonzero(places >= 0)
        late = known[position[known] <= self.open.known.last[places[known]]]
        return {int(at): LATE.format(position[at]) for at in late}

    def _places(self, names: list[bytes]) -> Places:
        """Return the rows of traces among the open ones; -1 for the new."""
        texts = pa.array([name.decode(errors="backslashreplace") for name in names], pa.string())
        found: Places = pc.index_in(texts, self.open.names).fill_null(-1).to_numpy().astype(np.int64)
        return found

    def _events(self, name: bytes) -> int:
        """Return how many events of a trace were judged."""
        (place,) = self._places([name]).tolist()
        return int(self.open.known.events[place]) if place >= 0 else 0

    def _judged(self, traces: Traces) -> pa.RecordBatch:
        one, source = self.open, self.question.source
        places = one.take(traces)
        if one.tally.falls:
            raise EngineFailure(UNSORTED)
        verdicts = one.rows(source, places)
        one.forget_stories()
        return with_stories(
            verdicts, self._reasons(places, verdicts) if self.question.stories else [None] * len(places)
        )

    def _reasons(self, places: Places, verdicts: pa.RecordBatch) -> list[str | None]:
        """Return for each trace that does not conform why, in one sentence: there are no rows for a story."""
        known, found = self.open.known, list[str | None]()
        for place, row in zip(places.tolist(), verdicts.to_pylist(), strict=True):
            if known.verdict[place] == DEPARTS:
                found.append(
                    f"{row['spec']} {shown(row['trace'])} departs at position {row['position']}: it breaks the rule "
                    f"{row['rule']}. Rows of a stream are not kept, so there is no story."
                )
            elif row["verdict"] == "conforms":
                found.append(None)
            elif not known.judged[place]:
                found.append(UNOPENED)
            else:
                found.append(BARE if known.verdict[place] == CONFORMS else UNDECIDED)
        return found
