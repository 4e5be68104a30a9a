"""The client log: the requests of producers to the broker, and the answers they received.

A store shows what the broker did; only its clients know what it promised. `traces/README.md` tells the form of the log
as an essay, `request_lines.py` tells it to the machine, and what is read are columns: one row for every message sent,
for every decision on a half, for every back-check received.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError
from pydantic_core import from_json

from gapless.traces.events.plain_lines import PlainLines, lines_in
from gapless.traces.events.whole_lines import cut, next_block
from gapless.traces.problems import NothingThere, Unreadable, os_problem, shown, twice
from gapless.traces.sources.rocketmq.clients.plain_requests import KINDS, RequestReader, plain_block
from gapless.traces.sources.rocketmq.clients.request_lines import LINE, first_error, row_of
from gapless.traces.sources.rocketmq.clients.request_rows import Checks, Ends, Found, Resumes, RowBuffer, Sends

BLOCK = 1 << 20  # bytes that are read at once: what is found in them stays in a processor's cache
LONGEST = 16 << 20  # bytes of a line, its newline one of them: a longer one is no request


@dataclass(frozen=True, eq=False)
class ClientLog:
    """A client log as columns."""

    sends: Sends
    ends: Ends
    checks: Checks
    resumes: Resumes
    topics: tuple[str, ...]
    complete: bool  # every message has its key: a record without one was not sent by these clients
    lines: int


def read(path: Path) -> ClientLog:
    """A client log as columns. Raises Unreadable, and NothingThere for an empty file."""
    topics: dict[str, int] = {}
    sends, ends, checks, resumes = RowBuffer(Sends), RowBuffer(Ends), RowBuffer(Checks), RowBuffer(Resumes)
    every: tuple[RowBuffer[Any], ...] = sends, ends, checks, resumes
    lines = done = 0
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            plain = RequestReader(topics, sends, ends, checks) if RequestReader.pays(size) else None
            rare = PlainLines.pays(size)  # whether the blocks that are not for it may still be of plain lines
            for block, count in _blocks(path, file):
                times = size / done if done else 1
                if plain is None or not plain.read(block, lines, count, times):
                    found = _at_once(block, lines, topics, count, plain=rare)
                    for growing, part in zip(every, found or _by_line(path, block, lines, topics), strict=True):
                        growing.add(part, times)
                lines += count
                done += len(block)
    except OSError as error:
        raise Unreadable(os_problem(error)) from error
    if not lines:
        raise NothingThere(f"{shown(path)}: the client log is empty")
    return ClientLog(
        sends=sends.rows,
        ends=ends.rows,
        checks=checks.rows,
        resumes=resumes.rows,
        topics=tuple(topics),
        complete=bool((sends.rows.key != 0).all()),
        lines=lines,
    )


def _blocks(path: Path, file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Yields the file in blocks of whole lines, with their number. Raises Unreadable for an overlong line."""
    lines = 0
    while block := _block(file):
        whole, left = cut(block, LONGEST)
        count = lines_in(whole)
        lines += count
        if count:
            yield whole, count
        if left:
            raise _unreadable(path, lines, _no_end(left))


def _block(file: BinaryIO) -> bytes:
    """Reads the next block, up to the end of a line. That end is looked up first, so nothing is copied twice."""
    if not file.seekable():
        return next_block(file, BLOCK, LONGEST)
    begin = file.tell()
    file.seek(begin + BLOCK - 1)
    rest = file.readline(LONGEST + 1)
    file.seek(begin)
    return file.read(BLOCK - 1 + len(rest))


def _no_end(size: int) -> str:
    if size > LONGEST:
        return f"longer than {LONGEST:,} bytes, expected one request"
    return "the last line is cut off, expected a newline at its end: remove it, or copy the log again"


# -- line by line, to say what is wrong ----------------------------------------------------------------------------


def _by_line(path: Path, block: bytes, before: int, topics: dict[str, int]) -> Found:
    """Reads the lines one by one, up to the first wrong one. Raises Unreadable."""
    from gapless.traces.sources.rocketmq.clients import any_requests  # noqa: PLC0415 - with pyarrow, which loads slowly

    rows = []
    for at, line in enumerate(block.split(b"\n")[:-1], before):
        try:
            given = from_json(line, cache_strings="keys")
        except ValueError as error:
            why = str(error).replace("line 1 column", "column")
            raise _unreadable(path, at, f"not JSON ({why}), expected one request as an object") from error
        if name := _twice(line):
            raise _unreadable(path, at, f"the key {name!r} stands there twice, expected each once")
        try:
            rows.append(row_of(LINE.validate_python(given), at + 1))
        except ValidationError as error:
            raise _unreadable(path, at, first_error(error, given)) from error
    return any_requests.sorted_out(rows, topics)


def _twice(line: bytes) -> str | None:
    """A key that is read and stands twice in a sound line.

    It is not read again where no name is written twice, and none in other letters.
    """
    if not any(line.count(b'"%s"' % name.encode()) > 1 for name in (*KINDS, "msgId")) and b"\\" not in line:
        return None
    given = json.loads(line, object_pairs_hook=tuple, parse_int=str)  # an object is a tuple then, and a list is a list
    pairs = given if isinstance(given, tuple) else ()
    inner = [name for outer, value in pairs if outer == "ext" and isinstance(value, tuple) for name, _ in value]
    names = [name for name, _ in pairs if name in KINDS] + [name for name in inner if name == "msgId"]
    return twice(names)


def _unreadable(path: Path, before: int, what: str) -> Unreadable:
    return Unreadable(
        f"{shown(path)}, line {before + 1}: {shown(what)} (gapless schema client describes a line; "
        "without the log, the store can be judged alone)"
    )


# -- many lines at once --------------------------------------------------------------------------------------------


def _at_once(block: bytes, before: int, topics: dict[str, int], count: int, *, plain: bool) -> Found | None:
    """Reads the lines as columns, or returns None if anything is unusual: `_by_line` finds the error."""
    from gapless.traces.sources.rocketmq.clients import any_requests  # noqa: PLC0415 - as above

    return any_requests.at_once(block, before, plain_block(block, count) if plain else None, topics)
