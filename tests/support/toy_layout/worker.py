"""Counts the records that a scan finds for it, three rows each."""

from __future__ import annotations

from gapless.traces.options import Options
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.layouts.layout import SegmentView, WorkerSide
from gapless.traces.sources.rocketmq.segments.splits import RecordSlice, Sought
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory

ROWS = 3  # of each record: more than there is room for at first


def find(seen: RecordSlice, rows: Ints, filled: int) -> int:
    """Appends the position of each record; less than 0 without room."""
    end = filled + ROWS * len(seen.places)
    if end > rows.shape[1]:
        return -1
    rows[0, filled:end] = (seen.base + seen.places).repeat(ROWS)
    return end


SOUGHT = Sought("toy records", 1, find)


def sought(_store: StoreDirectory, _options: Options) -> tuple[Sought, ...]:
    """Asks for all records."""
    return (SOUGHT,)


def examine(view: SegmentView, _options: Options) -> list[int]:
    """Returns the positions of the segment's records."""
    (rows,) = view.columns.found[SOUGHT.name]
    positions: list[int] = rows[::ROWS].tolist()
    return positions


WORKER = WorkerSide(sought, examine=examine)
