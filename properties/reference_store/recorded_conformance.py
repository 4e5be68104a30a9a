"""Conformance of what a run recorded: the checker replays it.

The machines compare a store with its specs while it runs, by looking into it. A recording is what the store says of
itself; the compiled kernels replay it without looking at the store. Each sees what the other may miss.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from gapless.impl.recorder.recorder import ORIGIN
from gapless.traces.check import check
from gapless.traces.events import schema

CONFORMS = "conforms"
NOTHING = "nothing recorded"
"""What a recording may give: it conforms; or no store was ever open, and nothing was recorded."""


class RecordsBatches(Protocol):
    """A recorder of a run."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All that was recorded so far, as batches of events, trace by trace."""


class Nonconformance(Exception):  # noqa: N818 - it names a finding.
    """The specs do not allow what a store recorded."""


def require_conformance(recorder: RecordsBatches) -> Counter[str]:
    """The verdict on a recording, and its number of `events`.

    Raises Nonconformance, with the checker's story; RecorderFailure if the recorder could not read what it records.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recorded.parquet"
        events = schema.write(path, recorder.batches(), origin=ORIGIN)
        if not events:
            return Counter([NOTHING])
        report = check(path, engine="local", jobs=1)
    if report.verdict != CONFORMS:
        reasons = [reason for source in report.sources for reason in source.reasons]
        stories = [
            "\n".join(line for line in finding.story if not line.startswith("Again: "))  # the file is gone by then
            for finding in report.findings
            if finding.severity == "violation"
        ]
        raise Nonconformance("\n\n".join([f"the recording {report.verdict}", *reasons, *stories]))
    return Counter({CONFORMS: 1, "events": events})
