"""Events as NDJSON: a header, then a line for each event, and a newline at the end of each."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import pyarrow as pa

from gapless.traces.events.event import NAME, VERSION, NoEvent, Origin, Vocabulary, parsed, rows, text_of
from gapless.traces.events.lines.plain_lines import lines_in
from gapless.traces.events.lines.whole_lines import cut, next_block
from gapless.traces.events.parquet import check_version
from gapless.traces.problems import Unreadable, shown

HEADER = {"schema": NAME, "version": VERSION}
ORIGIN = tuple(field.name for field in fields(Origin))  # what else it may say
BLOCK = 4 << 20  # bytes that are read at once
LONGEST = 1 << 20  # bytes of a line, its newline one of them: a longer one is no event
SHORT = 60  # bytes of a line that is no header that are shown

Events = TypeVar("Events")


def stretches(path: Path, file: BinaryIO, size: int) -> Iterator[tuple[int, int | None, int]]:
    """Split the lines after the header into stretches of about `size` bytes.

    Yields the first byte, the byte after the last, and the number of bytes of each stretch.
    """
    _header(path, file)
    low, end = file.tell(), file.seek(0, os.SEEK_END)
    while low + size < end and (high := _line_from(file, low + size)) < end:
        yield low, high, high - low
        low = high
    yield low, None, end - low


def _line_from(file: BinaryIO, at: int) -> int:
    """Find the first line that begins at or after byte `at`."""
    file.seek(at - 1)
    while (line := file.readline(LONGEST)) and not line.endswith(b"\n"):
        pass
    return file.tell()


def read(
    path: Path, file: BinaryIO, low: int, high: int | None, events: Callable[[bytes, int], Events]
) -> Iterator[Events]:
    """Read the lines from byte `low` to `high` in blocks, each converted by `events`.

    `low` is 0 for the whole file. `events` takes a block and its number of lines.

    Raises Unreadable; NoEvent with the number of the event in the file.
    """
    if not low:
        _header(path, file)
        low = file.tell()
    file.seek(low)
    row = 0
    try:
        while block := next_block(file, BLOCK if high is None else min(BLOCK, high - file.tell()), LONGEST):
            whole, left = cut(block, LONGEST)
            lines = lines_in(whole)
            if lines:
                yield events(whole, lines)
            row += lines
            _require_nothing(left)
    except NoEvent as wrong:
        raise NoEvent(_events_before(file, low) + row + wrong.row, wrong.what) from wrong.__cause__


def _require_nothing(left: int) -> None:
    """Raise NoEvent if anything follows the sound lines."""
    if left > LONGEST:
        raise NoEvent(0, f"the line has more than {LONGEST:,} bytes, so it is no event")
    if left:
        raise NoEvent(0, "the last line is cut off, expected a newline at its end: remove it, or add the newline")


def _events_before(file: BinaryIO, low: int) -> int:
    """Count the lines before byte `low`, without the header. Used only to locate an error."""
    file.seek(0)
    return sum(lines_in(file.read(min(BLOCK, low - at))) for at in range(0, low, BLOCK)) - 1


def origin(path: Path, file: BinaryIO) -> Origin:
    """Read the metadata of all events from the header. Raises Unreadable."""
    header = _header(path, file)
    return Origin(**{key: header[key] for key in ORIGIN if header.get(key) is not None})


def _header(path: Path, file: BinaryIO) -> dict[str, Any]:
    """Read the first line; the file then stands at the first event. Raises Unreadable."""
    line = file.readline(LONGEST)
    try:
        header = parsed(line)
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("schema") != NAME or not line.endswith(b"\n"):
        raise Unreadable(
            f"{shown(path)}, line 1: {_instead(line)}, expected {text_of(HEADER)}, as every file of events begins "
            "(gapless schema events describes it)"
        )
    check_version(path, str(header.get("version", "unknown")))
    if strange := [key for key in header if key not in (*HEADER, *ORIGIN)]:
        raise Unreadable(
            f"{shown(path)}, line 1: the header has a key {strange[0]!r}, expected schema, version, and perhaps "
            f"{' and '.join(ORIGIN)} (gapless schema events describes the lines)"
        )
    for key in ORIGIN:
        if not isinstance(header.get(key), str | None) or header.get(key) == "":
            raise Unreadable(
                f"{shown(path)}, line 1: {key} is {text_of(header[key])}, expected a name, or no {key} at all "
                "(gapless schema events describes the lines)"
            )
    return header


def _instead(line: bytes) -> str:
    """Describe a first line that is no header: parts of it may be invisible in an editor."""
    if not line:
        return "the file is empty"
    if line.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "it begins with a byte order mark; write it as UTF-8 without one"
    start = shown(line[:SHORT].decode(errors="replace").rstrip("\n"))
    lacks = "" if line.endswith(b"\n") else ", and no newline ends it"
    lacks += ", as a client log does (gapless check STORE --client FILE)" if line.startswith(b'{"op":') else ""
    return f"it begins {start}{'…' if len(line) > SHORT else ''}{lacks}"


def write(file: BinaryIO, batches: Iterable[pa.RecordBatch], vocabulary: Vocabulary, of: Origin) -> int:
    """Write batches of the vocabulary's schema, and return the number of events."""
    count = 0
    metadata = {key: value for key, value in asdict(of).items() if value}
    file.write(f"{text_of(HEADER | metadata)}\n".encode())
    for batch in batches:
        file.write(b"".join(f"{text_of(row)}\n".encode() for row in rows(batch, vocabulary)))
        count += batch.num_rows
    return count
