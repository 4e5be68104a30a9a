"""Finds the end of a growing log, from the last known end on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gapless.native import native
from gapless.traces.problems import Unreadable
from gapless.traces.sources.rocketmq.log.append_evidence import written_end
from gapless.traces.sources.rocketmq.log.records import BLANK
from gapless.traces.sources.rocketmq.log.scan import (
    INVALID,
    NOT_FORCED,
    ROLLED,
    SHORT,
    TAKEN,
    VIEW,
    View,
    claim,
    find_start,
)
from gapless.traces.sources.rocketmq.segments.splits import SPLIT, Split
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory, store_folder
from gapless.traces.sources.rocketmq.store.file_access import LARGEST, FileWindow, Space, file_of
from gapless.traces.sources.rocketmq.store.files import TWENTY_DIGITS, LogFile, read_exactly

FIRST_SPLIT = 1 << 20  # bytes of the first stretch: Python judges it within a second, and there is a verdict
CHUNK = 1 << 18  # bytes that are read at once to see how far the log reaches
MARKED = 4096  # bytes of a record that tell it from another one


def _work(view: View) -> int:
    """Estimate the records of a view: zeros up to its end are none, and are looked at over and over."""
    return len(view.data[view.begin : min(view.stop, view.have)].tobytes().rstrip(b"\0")) >> 10


@native(_work, kinds=(VIEW,))
def walk(view: View) -> tuple[int, int]:
    """Step over records from `view.begin` on. Returns why it ended, and where: as `scan`, which looks into them too."""
    b, base, at, _stop, limit, have, wrapped = view
    while True:
        why, size, _v2, _known, _fits = claim(b, base, limit, have, wrapped, NOT_FORCED, at)
        if why != TAKEN:
            return why, at
        at += wrapped + size


class Stretch(NamedTuple):
    """The new part of a log: records that begin in `split`; `more`: others are known to follow at once."""

    split: Split
    more: bool

    @property
    def end(self) -> int:
        """Log position behind the last record."""
        return self.split.file.base + self.split.high

    def below(self, reach: int) -> Stretch | None:
        """Returns the part below a log position; None if it is empty."""
        if self.end <= reach:
            return self
        high = reach - self.split.file.base
        return Stretch(replace(self.split, high=high), more=False) if high > self.split.low else None


class Tail:
    """The end of a log."""

    def __init__(self) -> None:
        self.space = Space()
        self.most = FIRST_SPLIT

    def stretch(self, store: StoreDirectory, at: int) -> Stretch | None:
        """Returns about `most` bytes of records from position `at` on in one log file; None without any."""
        file = file_of(store, at)
        if file is None:
            return None
        begin = at - file.base
        why, place = self._walk(file, begin)
        high = place + 1 if why == ROLLED else place
        return Stretch(Split(file, begin, high, exact=True), more=why != INVALID) if high > begin else None

    def _walk(self, file: LogFile, begin: int) -> tuple[int, int]:
        """Returns why and where consecutive records end, from a file offset on; SHORT if more may follow."""
        window, at, wanted = FileWindow(file, self.space), begin, CHUNK
        while True:
            window.read(at, at + wanted)
            why, place = walk(window.view(at, at + wanted))
            place += window.low
            if why != SHORT or place - begin >= self.most:
                return why, place
            if place == at:  # a record that is longer than what was read
                if wanted > LARGEST:
                    return INVALID, place
                wanted *= 4
            else:
                at, wanted = place, min(8 * CHUNK, self.most)

    def beyond(self, store: StoreDirectory, at: int) -> Stretch | None:
        """Returns the stretch behind an unreadable place, up to the end of the records that follow."""
        file = file_of(store, at)
        if file is None:  # it is missing: the next one that is there
            following = next((one for one in store.files if one.base > at), None)
            return self.stretch(store, following.base) if following else None
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
        following = next((one for one in store.files if one.base > file.base), None)
        return self.stretch(store, following.base) if following else None

    def file_is_full(self, store: StoreDirectory, at: int) -> bool:
        """True if the log continues in a file that is not known yet."""
        return file_of(store, at) is None

    def is_written(self, store: StoreDirectory, at: int) -> bool:
        """True if there are bytes other than zeros at the position of the next record, or only files behind it."""
        file = file_of(store, at)
        if file is None and store.files[-1].base > at:
            return True
        if file is None or at - file.base + BLANK > file.length:
            return False
        header = np.zeros(BLANK, np.uint8)
        read_exactly(file, at - file.base, header.data)
        return bool(header.any())


def log_end(folders: Iterable[Path], known: int = 0) -> int | None:
    """Finds the present end of the log, from `known` on; None without a file of a log.

    Files that were created in advance do not count, and neither do the zeros at the end of the last one.
    """
    files = {
        int(path.name): path for folder in folders for path in _listed(folder) if TWENTY_DIGITS.fullmatch(path.name)
    }
    for base in sorted(files, reverse=True):
        with suppress(OSError):
            end = written_end(files[base], max(known - base, 0))
            if end or base <= known:
                return max(base + end, known)
    return max(min(files), known) if files else None


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def log_start(folders: Iterable[Path]) -> int:
    """Returns the position of a log's first file; 0 without one."""
    bases = (int(path.name) for folder in folders for path in _listed(folder) if TWENTY_DIGITS.fullmatch(path.name))
    return min(bases, default=0)


def log_folders_in(path: Path) -> list[Path]:
    """Returns the usual folders of the log of a store that was not opened yet."""
    folder = store_folder(path)
    return [folder / "commitlog", *folder.glob("dledger-*/data")] if folder else []


def written_up_to(store: StoreDirectory, known: int) -> int:
    """Measure where the log of a store ends now: at `known`, or behind it."""
    return log_end(log_folders(store), known) or known


def log_folders(store: StoreDirectory) -> list[Path]:
    """The folders with files of the log."""
    return list(dict.fromkeys(Path(file.path).parent for file in store.files))


class StoreLogGauge:
    """Implements `LogGauge`. `folders`: of the log, if they are known; else the usual ones are looked for."""

    def __init__(self, path: Path, folders: Sequence[Path] = ()) -> None:
        self.path, self.folders = path, folders

    def end(self, known: int) -> int | None:
        """Implements `LogGauge`."""
        self.folders = self.folders or log_folders_in(self.path)
        return log_end(self.folders, known)

    def start(self) -> int:
        """Implements `LogGauge`."""
        return log_start(self.folders)


class Anchor(NamedTuple):
    """The last judged record, which identifies the log: its position, and a digest of its bytes."""

    position: int
    digest: bytes

    def holds(self, store: StoreDirectory) -> bool:
        """True if the record is still in its place, or its file has expired."""
        if self.position < store.start:
            return True
        return anchor(store, self.position) == self


def anchor(store: StoreDirectory, position: int) -> Anchor | None:
    """Returns the anchor of the record at a position; None without one."""
    file = file_of(store, position)
    if file is None:
        return None
    at = position - file.base
    data = np.zeros(min(MARKED, file.length - at), np.uint8)
    try:
        read_exactly(file, at, data.data)
    except Unreadable:
        return None
    size = min(max(int.from_bytes(data[:4].tobytes(), "big", signed=True), 0), len(data)) if len(data) >= BLANK else 0
    return Anchor(position, hashlib.blake2b(data[:size].tobytes(), digest_size=16).digest())
