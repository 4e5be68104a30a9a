"""Follows the hash index: compares its new items with their records, behind the log.

A broker writes an item, lets its slot point to it, and then counts it in the header; all keys of a record come before
those of the next one. So the last counted item shows the record up to which all are present. The rest, up to the end
of the log, is judged once the broker has stopped. Of a full file, slots and header are judged once; of the current
file, items alone.

Source: docs/rocketmq.md#index; IndexFile.putKey.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from gapless.traces.options import Options
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.layouts.hash_index import index_files
from gapless.traces.sources.rocketmq.layouts.hash_index.coverage import IndexCoverage, by_item
from gapless.traces.sources.rocketmq.layouts.hash_index.file_replay import FileReplay
from gapless.traces.sources.rocketmq.layouts.hash_index.index_files import FOLDER, Index, IndexFile, Opener, index_in
from gapless.traces.sources.rocketmq.layouts.hash_index.judge import IndexCheckpoint, replay_up_to
from gapless.traces.sources.rocketmq.layouts.hash_index.worker import INDEX_KEYS, indexed
from gapless.traces.sources.rocketmq.layouts.layout import LayoutFollower, Opens
from gapless.traces.sources.rocketmq.segments import log_reader
from gapless.traces.sources.rocketmq.segments.log_reader import LogPoint, LogReader
from gapless.traces.sources.rocketmq.segments.results import Subject
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.file_access import Space, file_of
from gapless.traces.sources.rocketmq.store.files import LogFile


@dataclass
class IndexPart:
    """The index matches of the records of a part of the log up to `end`. A new part begins where a file ends."""

    end: int
    found: IndexCoverage


@dataclass(frozen=True)
class IndexProgress:
    """The progress in an index.

    `conform`: as in `IndexCheckpoint` · `files`: those that were seen, by name.
    """

    reached: LogPoint
    sections: tuple[IndexPart, ...] = ()
    conform: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    files: Mapping[str, IndexFile] = field(default_factory=dict)


class IndexFollower(LayoutFollower):
    """The index of one store that is followed."""

    def __init__(self, options: Options, start: int, saved: IndexProgress | None = None) -> None:
        super().__init__(options, start, saved)
        self.space = Space()
        progress = saved or IndexProgress(LogPoint(start))
        self.reached = progress.reached
        self.sections = [IndexPart(section.end, section.found.copy()) for section in progress.sections]
        self.conform, self.files = dict(progress.conform), dict(progress.files)
        self.replays: dict[str, FileReplay] = {}
        self.full: set[str] = set()  # of `files`, those to which nothing comes any more, nor to their headers

    def snapshot(self) -> IndexProgress:
        """Implements `LayoutFollower`."""
        sections = tuple(IndexPart(section.end, section.found.copy()) for section in self.sections)
        return IndexProgress(self.reached, sections, dict(self.conform), dict(self.files))

    def known(self, store: StoreDirectory, reached: int) -> IndexCheckpoint:
        """Implements `LayoutFollower`: matches all up to the log's judged end if no broker writes the index."""
        found = IndexCoverage()
        for section in self.sections:
            found.join(section.found)
        index = index_in(store)
        if index and index.reach is None:
            reading = LogReader(self.reached, self.space)
            while reading.point.at < reached and (file := file_of(store, reading.point.at)):
                self._match(store, index, reading, file, reached, found)
        return IndexCheckpoint(found, self.conform, self.replays)

    # -- files ---------------------------------------------------------------------------------------------------------

    def opens(self, *, running: bool) -> Opens:
        """Implements `LayoutFollower`: files that were opened before are not read again."""
        return self.opened if running else partial(self._opened, self._counted)

    def opened(self, folder: Path, settings: Mapping[str, str], log: Sequence[LogFile]) -> Index | None:
        """Opens the index that a broker is writing. Raises Unreadable, FileNotFoundError."""
        found = self._opened(self._written, folder, settings, log)
        self.files = {file.name: file for file in found.files} if found else {}
        self.full = {file.name for file in (found.files[:-1] if found else ()) if file.items == file.room}
        return replace(found, reach=self.reached.at) if found else None

    def _opened(self, opens: Opener, folder: Path, settings: Mapping[str, str], log: Sequence[LogFile]) -> Index | None:
        found = index_files.index_of(folder, settings, log, opens)
        self._notice_deletions(found.files if found else (), log[0].base)
        return found

    def _written(self, path: Path, length: int, slots: int, log: Sequence[LogFile]) -> IndexFile:
        known = self._known_file(path, length, slots)
        as_it_was = known.name in self.conform or known.name in self.full
        return known if as_it_was else index_files.written(known, log)

    def _counted(self, path: Path, length: int, slots: int, log: Sequence[LogFile]) -> IndexFile:
        known = self._known_file(path, length, slots)
        return known if known.name in self.conform else index_files.counted(known, log)

    def _known_file(self, path: Path, length: int, slots: int) -> IndexFile:
        known = self.files.get(f"{FOLDER}/{path.name}")
        return known if known and known.slots == slots else index_files.begun_file(path, length, slots)

    def _notice_deletions(self, now: Sequence[IndexFile], start: int) -> None:
        """Forgets deleted files: expired ones, and those that a broker drops when it starts after a kill.

        Records whose items were in the latter may have others later: they are compared with the index again.
        """
        there, gone, end = {file.name: file for file in now}, False, start
        for name, file in sorted(self.files.items()):
            if not gone and name in there and there[name].items >= file.items:
                end = max(end, int(file.highs.max(initial=start)))
                continue
            gone = gone or name in there or int(file.highs.max(initial=-1)) >= start
            self._forget(name)
        if gone:
            self.sections = [section for section in self.sections if section.end <= end]
            self.reached = LogPoint(self.sections[-1].end if self.sections else start)
        self.sections = [section for section in self.sections if section.end > start]

    def _forget(self, name: str) -> None:
        self.full.discard(name)
        for known in (self.files, self.replays, self.conform):
            known.pop(name, None)

    # -- what is new ---------------------------------------------------------------------------------------------------

    def follow(self, store: StoreDirectory, reached: int, queues: Collection[Subject]) -> bool:  # noqa: ARG002 - it has keys of all
        """Implements `LayoutFollower`: compares new items with the log."""
        index = self.opened(Path(store.path), store.settings, store.files)
        if index is None:
            return False
        if self.reached.at < store.start:
            self.reached = LogPoint(store.start)
        before = store.files[-1].wrapped  # bytes of a header before each record, which may not be cut from it
        ends = sorted({int(file.highs.max()) - before for file in index.files[:-1] if len(file.highs)})
        whole, enough = min(reached, _last_position(index) - before), self.reached.at + log_reader.AT_ONCE
        file = file_of(store, self.reached.at)
        while self.reached.at < min(whole, enough) and file is not None:  # files of an index may be small, and many
            end = min([whole, *ends[bisect_right(ends, self.reached.at) :][:1]])
            at = self.reached
            self._add(store, index, file, end, ends)
            file = file_of(store, self.reached.at) if self.reached != at else None
        self._replay(index)
        return self.reached.at < whole and file is not None

    def _add(self, store: StoreDirectory, index: Index, file: LogFile, end: int, ends: Sequence[int]) -> None:
        """Compares the next records with the index, up to a log position."""
        if not self.sections or self.sections[-1].end in ends:
            self.sections.append(IndexPart(self.reached.at, IndexCoverage()))
        section, reading = self.sections[-1], LogReader(self.reached, self.space)
        before = _strange(section.found)
        self._match(store, index, reading, file, end, section.found)
        self.reached = reading.point
        section.end = self.reached.at
        self.departed |= _strange(section.found) != before

    def _match(
        self, store: StoreDirectory, index: Index, reading: LogReader, file: LogFile, end: int, found: IndexCoverage
    ) -> None:
        """Reads on in one log file, and adds the matches of its records with the index to `found`."""
        for scanned in reading.segments(store, file, end, sought=(INDEX_KEYS,)):
            found.add(indexed(index, scanned.columns, scanned.start, scanned.end), index.files)

    def _replay(self, index: Index) -> None:
        """Replay the items of records that are known now; of a file that is full, its slots and its header."""
        for file in index.files:
            behind = len(file.lows) > 0 and int(file.lows.min()) >= self.reached.at
            if file.name in self.conform or behind or self._is_refused(file.name):
                continue
            replayed = self.replays.setdefault(file.name, FileReplay(file.slots, self.options))
            whole = replay_up_to(self.reached.at, replayed, file, self._odd(file.name))
            self.departed |= replayed.refused
            ended = whole and not replayed.refused and len(file.highs) > 0
            if ended and file is not index.files[-1] and int(file.highs.max()) < self.reached.at:
                finished = replayed.copy()
                finished.finish(file, clean=True)
                if finished.refused:
                    self.departed = True
                else:
                    self.conform[file.name] = finished.counts()
                    del self.replays[file.name]

    def _is_refused(self, name: str) -> bool:
        known = self.replays.get(name)
        return known is not None and known.refused

    def _odd(self, name: str) -> Ints:
        odd = [section.found.odd_items(name) for section in self.sections if name in section.found.odd]
        return by_item(np.concatenate([np.zeros((2, 0), np.int64), *odd], axis=1))


def _last_position(index: Index) -> int:
    """Returns the position in the last item; 0 without one. Raises Unreadable."""
    last = next((file for file in reversed(index.files) if file.items > 1), None)
    return int(last.read(last.items - 1, last.items)["position"][0]) if last else 0


def _strange(found: IndexCoverage) -> int:
    """The number of items and records that depart."""
    return len(found.partly) + sum(int(odd.shape[1]) for odd in found.odd.values())


FOLLOWER = IndexFollower
