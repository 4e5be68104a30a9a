"""Reading of event files, whole or in stretches; each event is checked against the schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import pyarrow as pa

from gapless.traces.events import parquet
from gapless.traces.events.compressed import decompressed
from gapless.traces.events.encoded_batch import EncodedBatch
from gapless.traces.events.event import NoEvent, Origin
from gapless.traces.events.files import codec_of, is_parquet
from gapless.traces.events.lines import ndjson
from gapless.traces.events.lines.plain_lines import PlainLines
from gapless.traces.events.schema import OURS, Event, EventSchema
from gapless.traces.files.remote import RemotePath, store_error
from gapless.traces.problems import Unreadable, shown

Events = TypeVar("Events")
PACKED = 16  # times fewer bytes are in a compressed file, or thereabouts


@dataclass(frozen=True)
class EventStretch:
    """Consecutive events of a file that are read together: row groups of Parquet, or lines of NDJSON.

    `low:high`: the row groups, or the bytes; for the last lines, `high` is None: they reach to the file's end ·
    `bytes`: how many there are to read · `first`, `last`: no events come before it, or after it.
    """

    number: int
    low: int
    high: int | None
    bytes: int
    first: bool
    last: bool


def stretches(path: Path, size: int) -> list[EventStretch]:
    """Split the whole file into stretches of about `size` bytes, in its order. Raises Unreadable."""
    cut = (parquet if is_parquet(path) else ndjson).stretches
    with _opened(path) as file:
        if codec_of(path):  # what is compressed is read from its start
            ndjson.origin(path, file)
            bounds: list[tuple[int, int | None, int]] = [(0, None, path.stat().st_size)]
        else:
            bounds = list(cut(path, file, size))
    last = len(bounds) - 1
    return [EventStretch(n, low, high, bytes_, n == 0, n == last) for n, (low, high, bytes_) in enumerate(bounds)]


def whole(some: Sequence[EventStretch]) -> EventStretch:
    """Return one stretch of all the stretches of a file."""
    return EventStretch(0, some[0].low, some[-1].high, sum(one.bytes for one in some), first=True, last=True)


def origin(path: Path) -> Origin:
    """Read the metadata of a file's events. Raises Unreadable."""
    with _opened(path) as file:
        return parquet.origin(path, file) if is_parquet(path) else ndjson.origin(path, file)


def read(path: Path, stretch: EventStretch | None = None, of: EventSchema = OURS) -> Iterator[pa.RecordBatch]:
    """Read the events of a file, or of a stretch, in its order, as batches of the schema.

    One batch is in memory at a time. Raises Unreadable.
    """
    return _read(path, stretch, of.sound, of.from_block, spared=of.leaves)


def selected(
    path: Path, columns: pa.Schema, stretch: EventStretch | None = None, of: EventSchema = OURS
) -> Iterator[pa.RecordBatch]:
    """Read some columns, in their order and types; otherwise like `read`.

    Of Parquet no other columns are read, and rows are not checked to be events. Raises Unreadable.
    """
    if is_parquet(path) and not of.has_all(columns):
        names = ["position", *(name for field in columns for name in _leaves(field))]  # one at least that is there
        yield from _read(path, stretch, partial(of.selected, columns=columns), of.from_block, names)
        return
    for batch in read(path, stretch, of):
        yield of.selected(batch, columns)


def _leaves(field: pa.Field[Any]) -> list[str]:
    """Return the Parquet names of a column, or of the fields in it."""
    kind: Any = field.type
    return [f"{field.name}.{inner.name}" for inner in kind] if pa.types.is_struct(kind) else [field.name]


def spans(path: Path, stretch: EventStretch, asked: frozenset[str]) -> dict[str, tuple[Any, Any]]:
    """Return the minimum and maximum of the columns `asked` for in a stretch.

    Only those that the file's statistics contain. Raises Unreadable.
    """
    if not asked or not is_parquet(path):
        return {}
    with _opened(path) as file:
        return parquet.spans(path, file, stretch.low, stretch.high, asked)


def coded(
    path: Path, stretch: EventStretch | None = None, of: EventSchema = OURS, *, ahead: bool = False
) -> Iterator[EncodedBatch]:
    """Read events dictionary-encoded, for the judge; otherwise like `read`. Raises Unreadable.

    `ahead`: a processor is idle: a thread reads the next batch.
    """
    size = path.stat().st_size if path.exists() else 0
    plain = not is_parquet(path) and PlainLines.pays(size * PACKED if codec_of(path) else size)
    return _read(
        path, stretch, of.coded, of.coded_lines if plain else of.coded_one_by_one, spared=of.leaves, ahead=ahead
    )


def _read(
    path: Path,
    stretch: EventStretch | None,
    of_rows: Callable[[pa.RecordBatch], Events],
    of_lines: Callable[[bytes, int], Events],
    columns: list[str] | None = None,
    spared: frozenset[str] = frozenset(),
    *,
    ahead: bool = False,
) -> Iterator[Events]:
    """Read the events of a file or a stretch, converted by these two functions."""
    low, high = (stretch.low, stretch.high) if stretch else (0, None)
    columnar = is_parquet(path)
    with _opened(path) as file:
        try:
            if columnar:
                yield from parquet.read(path, file, low, high, of_rows, columns, spared, ahead=ahead)
            else:
                yield from ndjson.read(path, file, low, high, of_lines)
        except NoEvent as wrong:
            kind, number = place(path, wrong.row)
            raise Unreadable(
                f"{shown(path)}, {kind} {number}: {shown(wrong)} (gapless schema events describes an event)"
            ) from wrong


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    ranges = isinstance(path, RemotePath) and is_parquet(path)  # which arrow knows better than a buffer
    try:
        with path.open("rb", buffering=0) if ranges else path.open("rb") as file:
            codec = codec_of(path)
            yield file if codec is None else decompressed(path, codec)
    except OSError as error:
        why = store_error(error, path) or error.strerror or error
        raise Unreadable(f"{shown(path)}: cannot be read ({why})") from error


def place(path: Path, row: int) -> tuple[str, int]:
    """Locate event `row` (from 0) as users count: a line of NDJSON from 1, or a row of Parquet from 0."""
    return ("row", row) if is_parquet(path) else ("line", row + 2)


def read_events(path: Path) -> Iterator[Event]:
    """Read the events of a file one by one. Raises Unreadable."""
    return chain.from_iterable(OURS.to_events(batch) for batch in read(path))
