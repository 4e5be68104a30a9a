"""The client log: the requests of producers to the broker, and the answers they received.

A store shows what the broker did; only its clients know what it promised. `traces/README.md` tells the form of the log
as an essay, `request_lines.py` tells it to the machine, and what is read are columns: one row for every message sent,
for every decision on a half, for every back-check received.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from gapless.traces.events.lines.plain_lines import lines_in
from gapless.traces.events.lines.whole_lines import cut, next_block
from gapless.traces.problems import NothingThere, Unreadable, os_problem, shown
from gapless.traces.sources.rocketmq.clients.requests.any_requests import read_requests, unreadable
from gapless.traces.sources.rocketmq.clients.requests.plain_requests import AT_ONCE, RequestReader
from gapless.traces.sources.rocketmq.clients.requests.request_rows import Checks, Ends, Resumes, RowBuffer, Sends

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
    lines, done = 0, 0
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            reader = _LogReader(path, plain=RequestReader.pays(size))
            for block, count in _blocks(path, file):
                reader.read(block, lines, count, size / done if done else 1)
                lines += count
                done += len(block)
    except OSError as error:
        raise Unreadable(os_problem(error)) from error
    if not lines:
        raise NothingThere(f"{shown(path)}: the client log is empty")
    return reader.log(lines)


class _LogReader:
    """Reads blocks of lines into columns: plain lines natively, all others one by one."""

    def __init__(self, path: Path, *, plain: bool) -> None:
        self._path = path
        self._topics: dict[str, int] = {}
        self._sends, self._ends, self._checks = RowBuffer(Sends), RowBuffer(Ends), RowBuffer(Checks)
        self._resumes = RowBuffer(Resumes)
        self._plain = RequestReader(self._topics, self._sends, self._ends, self._checks) if plain else None

    def read(self, block: bytes, before: int, count: int, times: float) -> None:
        """Reads a block of so many lines. `before`, `times`: as in `RequestReader.read`. Raises Unreadable.

        Where unusual lines are frequent, ever more lines are read one by one before a plain one is tried again.
        """
        at, line, unusual = 0, 0, 1
        while line < count:
            if self._plain is None:
                unusual = count
            else:
                read, at = self._plain.read(block, at, before + line, count - line, times)
                unusual, line = 1 if read >= AT_ONCE else 2 * unusual, line + read
            some: list[bytes] = []
            while len(some) < min(unusual, count - line):
                end = block.index(b"\n", at)
                some.append(block[at:end])
                at = end + 1
            if some:
                self._add(some, before + line, times)
                line += len(some)

    def _add(self, some: list[bytes], before: int, times: float) -> None:
        """Reads lines one by one."""
        every: tuple[RowBuffer[Any], ...] = self._sends, self._ends, self._checks, self._resumes
        for growing, part in zip(every, read_requests(self._path, some, before, self._topics), strict=True):
            growing.add(part, times)

    def log(self, lines: int) -> ClientLog:
        """All that was read, of so many lines."""
        sends = self._sends.rows
        return ClientLog(
            sends=sends,
            ends=self._ends.rows,
            checks=self._checks.rows,
            resumes=self._resumes.rows,
            topics=tuple(self._topics),
            complete=bool((sends.key != 0).all()),
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
            raise unreadable(path, lines + 1, _no_end(left))


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
