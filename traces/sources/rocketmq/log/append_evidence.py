"""The written part of a log file: its end, and the number of its records, estimated from a few pages.

A broker creates a file at its full length and may fill it with zeros, so neither its length nor its room on disk tells
how much it holds. The estimate reads some seventy pages, of a file of any size; no verdict depends on it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from gapless.traces.sources.rocketmq.log.dledger_entries import DLEDGER_MAGIC
from gapless.traces.sources.rocketmq.log.records import MAGIC_V1, MAGIC_V2

PAGE = 4096
BEHIND = (0, 1 << 12, 1 << 14, 1 << 17, 1 << 20, 1 << 22)  # bytes: zeros within a body end no log
SAMPLE = 1 << 16  # bytes at the beginning of a file, in which records are counted
TYPICAL = 256  # bytes of a record where none can be counted
PLENTY = 10_000_000  # records: more are not counted


def records_in(paths: Iterable[Path], begin: int = 0) -> int:
    """Estimate the records in files of a log, from log position `begin` on, up to `PLENTY`."""
    found = 0
    for path in paths:
        with suppress(OSError, ValueError):
            low = max(begin - int(path.name), 0)
            found += max(written_end(path, low) - low, 0) // _record_size(path)
        if found > PLENTY:
            break
    return found


def written_end(path: str | Path, known: int = 0) -> int:
    """Find the offset behind the last byte that is not zero; at least `known`, from where it looks. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        return _end(handle, known, os.fstat(handle).st_size)
    finally:
        os.close(handle)


def _end(handle: int, known: int, length: int) -> int:
    low, step = known // PAGE * PAGE, PAGE
    while low < length and (found := _looked(handle, low, length)) >= 0:  # the end is near, as a rule
        known = max(known, found)
        low, step = low + step, 2 * step
    low, high = max(known - 1, 0) // PAGE * PAGE, min(low, length)
    while high - low > PAGE:
        middle = low + max((high - low) // 2 // PAGE, 1) * PAGE
        found = _looked(handle, middle, high)
        if found >= 0:
            known, low = max(known, found), max(middle, (found - 1) // PAGE * PAGE)
        else:
            high = middle
    return known


def _looked(handle: int, at: int, high: int) -> int:
    """Look at pages from `at` on, some of them below `high`; the end of the last that is written, or -1."""
    for behind in reversed(BEHIND):
        if at + behind < high:
            page = os.pread(handle, PAGE, at + behind).rstrip(b"\0")
            if page:
                return at + behind + len(page)
    return -1


def _record_size(path: Path) -> int:
    """Measure the mean size of the first records of a file, in bytes."""
    with path.open("rb") as file:
        data = file.read(SAMPLE)
    at = count = 0
    while at + 8 <= len(data):
        first, second = (int.from_bytes(data[low : low + 4], "big") for low in (at, at + 4))
        size = first if second in (MAGIC_V1, MAGIC_V2) else second if first == DLEDGER_MAGIC else 0
        if size <= 0:
            break
        at += size
        count += 1
    return at // count if count else TYPICAL
