"""A file of events with millions of short traces, one after the other: a message of a queue each, and its entry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from gapless.spec.catalog import SPECS
from gapless.traces.events import schema
from gapless.traces.events.event import ROWS

EVENTS = ("open", "append", "index", "settle")  # of every trace
AT_ONCE = ROWS // len(EVENTS)  # traces in a row group
SIZE = 340  # bytes of a message


def make(path: Path, traces: int) -> None:
    """Write so many traces to `path`, in row groups as every recorder writes them."""
    schema.write(path, _batches(traces))


def _batches(traces: int) -> Iterator[pa.RecordBatch]:
    for low in range(0, traces, AT_ONCE):
        count = min(AT_ONCE, traces - low)
        yield schema.from_columns(
            "queue",
            source="benchmark",
            traces=[f"orders/{number:08d}" for number in range(low, low + count)],
            trace=np.repeat(np.arange(count), len(EVENTS)),
            position=np.arange(low * len(EVENTS), (low + count) * len(EVENTS)),
            action=np.tile(np.array([SPECS["queue"].codes[name] for name in EVENTS], np.int8), count),
            args=_arguments(count),
        )


def _arguments(count: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Each queue begins with number 0, in a log of its own that holds one message."""
    spec = SPECS["queue"]
    args = np.zeros((len(spec.arguments), count * len(EVENTS)), np.int64)
    for at, name in enumerate(EVENTS):
        for argument in spec.parameters[name]:
            value = {"count": 1, "size": SIZE}.get(argument, 0)
            args[spec.arguments.index(argument), at :: len(EVENTS)] = SIZE if name == "settle" else value
    return args
