"""How far a log reaches that is being written: found from where it was known to reach, by what is new."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gapless.traces.native import native
from gapless.traces.problems import Unreadable
from gapless.traces.sources.rocketmq.segments.splits import SPLIT, Split
from gapless.traces.sources.rocketmq.store.bytes import i32
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.file_access import LARGEST, FileWindow, Space
from gapless.traces.sources.rocketmq.store.files import LogFile, read_exactly
from gapless.traces.sources.rocketmq.store.records import BLANK
from gapless.traces.sources.rocketmq.store.scan import (
    INVALID,
    NOT_FORCED,
    ROLLED,
    SHORT,
    TAKEN,
    View,
    claim,
    find_start,
)

CHUNK = 1 << 18  # bytes that are read at once to see how far the log reaches
MARKED = 4096  # bytes of a record that tell it from another one


@native(lambda view: (view.stop - view.begin) >> 10)
def walk(view: View) -> tuple[int, int]:
    """Step over records from `view.begin` on. Returns why it ended, and where: as `scan`, which looks into them too."""
    b, base, at, _stop, limit, have, wrapped = view
    while True:
        why, size, _v2, _known, _fits = claim(b, base, limit, have, wrapped, NOT_FORCED, at)
        if why != TAKEN:
            return why, at
        at += wrapped + size


def warm() -> None:
    """Compile what walks."""
    walk(View(np.zeros(BLANK, np.uint8), 0, 0, BLANK, BLANK, BLANK, 0))


class Stretch(NamedTuple):
    """What is new in a log: records that begin in `split`; whether more is known to follow at once."""

    split: Split
    more: bool

    @property
    def end(self) -> int:
        """Log position behind the last record."""
        return self.split.file.base + self.split.high

    def below(self, reach: int) -> Stretch | None:
        """The part of it that lies below a log position; None where nothing does."""
        if self.end <= reach:
            return self
        high = reach - self.split.file.base
        return Stretch(replace(self.split, high=high), more=False) if high > self.split.low else None


class Tail:
    """The end of a log."""

    def __init__(self) -> None:
        self.space = Space()

    def stretch(self, store: StoreDirectory, at: int) -> Stretch | None:
        """The records from position `at` on, in one log file and no more than a split; None where there is none."""
        file = file_of(store, at)
        if file is None:
            return None
        begin = at - file.base
        why, place = self._walk(file, begin)
        high = place + 1 if why == ROLLED else place
        return Stretch(Split(file, begin, high, exact=True), more=why != INVALID) if high > begin else None

    def _walk(self, file: LogFile, begin: int) -> tuple[int, int]:
        """Why and where the records end that follow one another from a file offset on; SHORT where they may go on."""
        window, at, wanted = FileWindow(file, self.space), begin, CHUNK
        while True:
            window.read(at, at + wanted)
            why, place = walk(window.view(at, at + wanted))
            place += window.low
            if why != SHORT or place - begin >= SPLIT:
                return why, place
            if place == at:  # a record that is longer than what was read
                if wanted > LARGEST:
                    return INVALID, place
                wanted *= 4
            else:
                at, wanted = place, min(8 * CHUNK, SPLIT)

    def beyond(self, store: StoreDirectory, at: int) -> Stretch | None:
        """What goes on behind a place where no record can be read: from there on to where the next ones end."""
        file = file_of(store, at)
        if file is None:
            return None
        window, begin = FileWindow(file, self.space), at - file.base
        low = begin + 1
        while low < file.length:
            window.read(low, low + SPLIT)
            place = int(find_start(window.view(low, low + SPLIT)))
            if place >= 0:
                why, end = self._walk(file, window.low + place)
                return Stretch(Split(file, begin, end + 1 if why == ROLLED else end, exact=True), more=True)
            low += max(window.have - BLANK - file.wrapped, 1)
            if window.have < SPLIT or not window.data[: window.have].any():
                break
        following = file_of(store, file.base + file.length)
        return self.stretch(store, following.base) if following else None

    def file_is_full(self, store: StoreDirectory, at: int) -> bool:
        """Whether the log goes on in a file that is not known yet."""
        return file_of(store, at) is None

    def is_written(self, store: StoreDirectory, at: int) -> bool:
        """Whether there is anything but zeros where the next record would begin."""
        file = file_of(store, at)
        if file is None or at - file.base + BLANK > file.length:
            return False
        header = np.zeros(BLANK, np.uint8)
        read_exactly(file, at - file.base, header.data)
        return bool(header.any())


def file_of(store: StoreDirectory, position: int) -> LogFile | None:
    """The log file in which a position lies, if it is there."""
    return next((f for f in reversed(store.files) if f.base <= position < f.base + f.length), None)


def allocated(store: StoreDirectory, at_least: int) -> int:
    """About where the log ends: the last file that has room on disk. A broker may take a whole file's in advance."""
    for file in reversed(store.files):
        if file.base <= at_least:
            break
        with suppress(OSError):
            if blocks := Path(file.path).stat().st_blocks:
                return file.base + min(512 * blocks, file.length)
    return at_least


class Anchor(NamedTuple):
    """The last record that was judged, by which the log is known again: where it is, and a digest of its bytes."""

    position: int
    digest: bytes

    def holds(self, store: StoreDirectory) -> bool:
        """Whether the record still lies there; so it is said, too, where its file has expired."""
        if self.position < store.start:
            return True
        return anchor(store, self.position) == self


def anchor(store: StoreDirectory, position: int) -> Anchor | None:
    """The record that lies at a position; None where there is none."""
    file = file_of(store, position)
    if file is None:
        return None
    at = position - file.base
    data = np.zeros(min(MARKED, file.length - at), np.uint8)
    try:
        read_exactly(file, at, data.data)
    except Unreadable:
        return None
    size = min(max(i32(data, 0), 0), len(data)) if len(data) >= BLANK else 0
    return Anchor(position, hashlib.blake2b(data[:size].tobytes(), digest_size=16).digest())
