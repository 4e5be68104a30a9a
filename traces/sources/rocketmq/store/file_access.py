"""Bytes of a store's files, read: of the log around a place, of single records, of consume queues."""

from __future__ import annotations

import math
import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from contextvars import ContextVar
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from gapless.traces.problems import Gone
from gapless.traces.sources.rocketmq.columns.bytes import Bytes, Ints
from gapless.traces.sources.rocketmq.log import records
from gapless.traces.sources.rocketmq.log.dledger_entries import DLEDGER_BLANK, EntryHeader, entry_header
from gapless.traces.sources.rocketmq.log.scan import View, find_start
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import ENTRY, SLOT, LogFile, Queue, QueueFile, mapped, read_exactly
from gapless.traces.sources.rocketmq.store.names import UNIQ_KEY

SLACK = 1 << 16  # bytes read beyond what is wanted, for the record that begins in it and ends behind it
LARGEST = 256 << 20  # bytes: a record that claims more is not believed


class Space:
    """Memory that is used again from split to split: fresh pages would cost more than the scan that fills them."""

    def __init__(self) -> None:
        self.flat: dict[str, Bytes] = {}

    def array(self, name: str, shape: tuple[int, ...], kind: type[np.generic]) -> npt.NDArray[Any]:
        """Returns an uninitialised array of this shape; the same memory for the same name."""
        size = math.prod(shape) * np.dtype(kind).itemsize
        if name not in self.flat or len(self.flat[name]) < size:
            self.flat[name] = np.empty(size, np.uint8)
        return self.flat[name][:size].view(kind).reshape(shape)


_space: ContextVar[Space | None] = ContextVar("space", default=None)
"""The space of this thread's `judge`: what it gives is overwritten by the next split."""


def own_space() -> Space:
    """Returns the memory of this thread's `judge`, for exclusive use until its last split is judged."""
    space = _space.get()
    if space is None:
        space = Space()
        _space.set(space)
    return space


class FileWindow:
    """The bytes of a log file around a scan, read again if a record reaches beyond them."""

    def __init__(self, file: LogFile, space: Space | None = None) -> None:
        self.file = file
        self.space = space or Space()
        self.low = 0
        self.have = 0

    def read(self, low: int, high: int) -> None:
        """Loads the file's bytes from `low` to `high`, or to its end. Raises Unreadable if it shrank."""
        size = min(high, self.file.length) - low
        self.data: Bytes = self.space.array("bytes", (size,), np.uint8)
        self.low = low
        read_exactly(self.file, low, self.data.data)
        self.have = size

    def view(self, begin: int, stop: int) -> View:
        """Returns the loaded bytes for a scan of the records that begin in `begin:stop`."""
        low = self.low
        return View(
            self.data,
            self.file.base + low,
            begin - low,
            stop - low,
            self.file.length - low,
            self.have,
            self.file.wrapped,
        )


# -- single records ------------------------------------------------------------------------------------------------


def file_of(store: StoreDirectory, position: int) -> LogFile | None:
    """Returns the log file that contains a position, if it exists."""
    return next((f for f in reversed(store.files) if f.base <= position < f.base + f.length), None)


def header_at(file: LogFile, at: int) -> records.Header:
    """Reads the header of the record at offset `at` of a log file; all zeros if the file ends before it.

    If records have headers before them, a record begins with that header, which counts in its size, and the blank is
    reported as one of a plain log.
    """
    window = FileWindow(file)
    window.read(at, at + file.wrapped + records.HEADER)
    data = window.data.tobytes()
    if not file.wrapped:
        return records.header(data)
    if int.from_bytes(data[:4], "big") == DLEDGER_BLANK:
        return records.header(data[4:8] + records.MAGIC_BLANK.to_bytes(4, "big"))
    inner = records.header(data[file.wrapped :])
    return inner._replace(size=inner.size + file.wrapped, claimed=inner.claimed - file.wrapped)


def entry_at(store: StoreDirectory, position: int) -> EntryHeader | None:
    """Reads the header of the DLedger entry at a log position; None without a file."""
    for file in store.files:
        if file.wrapped and file.base <= position < file.base + file.length:
            window = FileWindow(file)
            window.read(position - file.base, position - file.base + file.wrapped)
            return entry_header(window.data.tobytes())
    return None


def header_of(store: StoreDirectory, position: int) -> records.Header:
    """Reads the header at a log position; all zeros without a file."""
    for file in store.files:
        if file.base <= position < file.base + file.length:
            return header_at(file, position - file.base)
    return records.header(b"")


def begins(file: LogFile, at: int) -> bool:
    """True if a record or the file's blank begins at offset `at` of a log file."""
    if at + records.BLANK > file.length:
        return False
    window = FileWindow(file)
    window.read(at, at + SLACK)
    return bool(find_start(window.view(at, at + 1)) == 0)


def record_at(store: StoreDirectory, position: int) -> records.PlainRecord | None:
    """Reads the record at a log position, field by field; None without one."""
    for file in store.files:
        if file.base <= position < file.base + file.length:
            at = position - file.base
            size = header_at(replace(file, wrapped=0), at).size
            if not records.SMALLEST <= size <= min(LARGEST, file.length - at):
                return None
            window = FileWindow(file)
            window.read(at, at + size)
            return records.plain(window.data.tobytes())
    return None


def name_of_record(store: StoreDirectory, position: int) -> str:
    """The key that a client gave the message at `position`, by which a transaction is called; or its place."""
    record = record_at(store, position)
    return (record.properties.get(UNIQ_KEY) if record else None) or f"@{position}"


def names_of_records(store: StoreDirectory, positions: Ints) -> Iterator[str]:
    """The keys of many records, file by file in the order of the log."""
    for file in store.files:
        inside = positions[(file.base <= positions) & (positions < file.base + file.length)] - file.base
        if len(inside):
            data = mapped(file)
            spans = np.zeros((2, len(inside)), np.int64)
            records.find_names(data, inside, spans)
            for place, (low, high) in zip(inside.tolist(), spans.T.tolist(), strict=True):
                yield os.fsdecode(data[low:high].tobytes()) if low < high else f"@{file.base + place}"


# -- consume queues ------------------------------------------------------------------------------------------------


def read_slot(store: StoreDirectory, topic: str, queue: int, number: int) -> tuple[int, int, int]:
    """Position, size and tag code in slot `number`; zeros where no file holds it."""
    data = np.zeros(ENTRY, np.uint8)
    read_entries(store, topic, queue, number, data.data)
    slot: tuple[int, int, int] = data.view(SLOT)[0].item()
    return slot


def read_all_entries(store: StoreDirectory, wanted: Iterable[tuple[Queue, int, memoryview]]) -> None:
    """`read_entries` of many queues: of each the slots from a number on.

    Most have all that is wanted of them in one file. What is common to all of them is asked once, or it would cost more
    than to open the file and read it.
    """
    plain = not (store.moment or store.database or store.batches or store.lights)
    for queue, number, into in wanted:
        files = store.queues.get(queue, ())
        if not (plain and len(files) == 1 and _is_read_at_once(store.path, queue, files[0], number * ENTRY, into)):
            read_entries(store, *queue, number, into)


def _is_read_at_once(root: str, queue: Queue, file: QueueFile, low: int, into: memoryview) -> bool:
    """True if all of `into` lies in one file and was read; otherwise `read_exactly` reports the reason."""
    begin = low - file.base
    if begin < 0 or begin + len(into) > file.length // ENTRY * ENTRY:
        return False
    try:
        handle = os.open(f"{root}/consumequeue/{queue[0]}/{queue[1]}/{file.base:020d}", os.O_RDONLY)
    except OSError:
        return False
    try:
        return os.preadv(handle, [into], begin) == len(into)
    except OSError:
        return False
    finally:
        os.close(handle)


def read_entries(store: StoreDirectory, topic: str, queue: int, number: int, into: memoryview) -> None:
    """Fill `into` with the slots from `number` on, 20 bytes each; what no file holds is left as it is.

    Of a store that a broker is still writing, the slots are read that were written when it was opened; a file that was
    deleted since has none.
    """
    subject = topic, queue
    if store.reader is not None:
        store.reader.read(subject, number, into)
        return
    files = store.queues.get(subject, ())
    if number < 0 or not files or (subject in store.batched and store.moment):
        return
    low, high = number * ENTRY, number * ENTRY + len(into)
    if store.moment:
        high = min(high, store.moment.entries.get(subject, 0) * ENTRY)
    first = max(0, bisect_right(files, low, key=lambda file: file.base) - 1)  # of hundreds, where each is small
    while first and files[first - 1].base + files[first - 1].length > low:
        first -= 1  # one that is longer than it should be
    for file in islice(files, first, None):
        if file.base >= high:
            break
        begin, end = max(low, file.base), min(high, file.base + file.length // ENTRY * ENTRY)
        if begin < end:
            with suppress(Gone) if store.moment else nullcontext():
                read_exactly(store.queue_file(subject, file), begin - file.base, into[begin - low : end - low])
