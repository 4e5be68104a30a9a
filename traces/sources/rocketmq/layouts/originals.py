"""Messages of another log, compared with their originals in the broker's own log, by number.

Source: docs/rocketmq-tiered.md#upload, docs/rocketmq.md#compaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gapless.traces.options import Options
from gapless.traces.sources.rocketmq.blame.situation import switch
from gapless.traces.sources.rocketmq.blame.store import DIFFERS
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.joining.findings import QueueProgress, StoreFindings
from gapless.traces.sources.rocketmq.layouts.copied_records import CopiedEntries, differences, repeated
from gapless.traces.sources.rocketmq.log.records import HEADER
from gapless.traces.sources.rocketmq.segments.results import name_of
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.file_access import own_space
from gapless.traces.sources.rocketmq.store.files import ENTRY, SLOT, LogFile, Maps, Queue, read_exactly

BORN, STORED = slice(40, 48), slice(56, 64)  # of a record: when it was sent, and stored, if its sender has IPv4
BLOCK = 1 << 18  # entries that are read at once


class Buffers:
    """Memory and mapped files that are used for one queue after the other."""

    def __init__(self) -> None:
        self.space, self.maps = own_space(), Maps()


class Originals:
    """The messages of one queue in the broker's own log. `compared`: the number of equal messages.

    `elsewhere`: the name of the other log · `once`: every number was given to one message alone
    """

    def __init__(
        self, judged: StoreFindings, options: Options, queue: Queue, elsewhere: str, rooms: Buffers, *, once: bool
    ) -> None:
        self.judged = judged
        self.options = options
        self.once = once
        self.store = judged.store
        self.queue = queue
        self.elsewhere = elsewhere
        self.rooms = rooms
        self.compared = 0
        self.others = False  # messages of the other log differ, and that was reported

    @property
    def run(self) -> QueueProgress | None:
        """The judged queue; None if the log or the queue departs, or if the log has no message of it."""
        run = self.judged.queues.get(self.queue)
        departs = bool(self.judged.damage) or any(found.spec == "log" for found in self.judged.breaches)
        return None if run is None or run.ended or departs else run

    def differ(self, files: Sequence[LogFile], numbers: Ints, positions: Ints, sizes: Ints) -> Ints:
        """Returns the first byte in which each message at `positions` differs from its original, or -1.

        It is -1 without an original, too. If the log itself departs, nothing is compared: each fault is reported once.
        """
        differ = np.full(len(numbers), -1, np.int64)
        if self.run is None or not len(numbers):
            return differ
        places, theirs = self.places(numbers)
        (both,) = np.nonzero(theirs > 0)
        fits = theirs[both] == sizes[both]
        differ[both[~fits]] = 0
        same_size = both[fits]
        differ[same_size] = differences(
            files, positions[same_size], self.store.files, places[same_size], sizes[same_size], self.rooms.maps
        )
        self.compared += int((differ[both] < 0).sum())
        (others,) = np.nonzero(differ >= 0)
        if len(others):
            first = int(others[0])
            other = not self.once and self._is_another(files, int(positions[first]), int(places[first]))
            values = {"queue": name_of(self.queue), "elsewhere": self.elsewhere, "number": int(numbers[first])}
            if not self.judged.judges(DIFFERS, switch(on=other), count=int(not self.others), **values):
                self.others = True
                differ[others] = -1
        return differ

    @property
    def _is_sound(self) -> bool:
        """True if the queue and its messages conform, and no rule was ignored."""
        run = self.run
        if run is None or run.restarted or run.batches:
            return False
        return not (self.options.ignored or self.judged.anomalies or self.store.extended)

    def repeated(self, files: Sequence[LogFile], entries: CopiedEntries, keys: Ints | None = None) -> Ints | None:
        """Returns the store times of the messages of these entries, if each equals its original.

        They must follow one another, and each must be the same byte for byte. None if one is not: then each is
        compared separately. `keys`: room for the digest of the keys of each, if it is wanted.
        """
        numbers, positions, sizes, tags = entries
        if not len(numbers) or not self._is_sound or (positions[1:] != positions[:-1] + sizes[:-1]).any():
            return None
        places, theirs, own_tags = self._entries(numbers)
        if (theirs != sizes).any() or (own_tags != tags).any():
            return None
        found = repeated(files, entries, self.queue, self.store.files, places, self.rooms.maps, keys)
        self.compared += 0 if found is None else len(numbers)
        return found

    def places(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Returns positions and sizes of the originals of these rising numbers; size 0 without one."""
        places, sizes, _ = self._entries(numbers)
        return places, sizes

    def _entries(self, numbers: Ints) -> Ints:
        """Returns positions, sizes and tag codes in the entries of these numbers."""
        entries = np.zeros((3, len(numbers)), np.int64)
        run = self.run
        if run is None:
            return entries
        for at, slots in self._slots(numbers):
            for row, name in enumerate(("position", "size", "tag")):
                entries[row, at : at + len(slots)] = slots[name]
        places, sizes, _ = entries
        there = (numbers >= max(run.first, run.blank)) & (numbers < run.indexed)
        there &= (places >= self.store.start) & (places + sizes <= self.judged.end)
        entries[1] = np.where(there, sizes, 0)
        return entries

    def _slots(self, numbers: Ints) -> Iterator[tuple[int, np.ndarray]]:
        """Yields the entries of these numbers, block by block, with the index of each block's first."""
        edges = np.flatnonzero(np.diff(numbers // BLOCK)) + 1
        for at, some in zip([0, *edges.tolist()], np.split(numbers, edges), strict=True):
            if not len(some):
                continue
            low, high = int(some[0]), int(some[-1]) + 1
            data = np.zeros((high - low) * ENTRY, np.uint8)
            file_access.read_entries(self.store, *self.queue, low, data.data)
            slots = data.view(SLOT)
            yield at, slots if len(some) == len(slots) else slots[some - low]

    def _is_another(self, files: Sequence[LogFile], position: int, place: int) -> bool:
        """True if two messages of one number were sent at different times, so neither is a damaged copy."""
        theirs, own = header_in(files, position), header_in(self.store.files, place)
        return theirs[STORED] != own[STORED] and theirs[BORN] != own[BORN]


def header_in(files: Sequence[LogFile], position: int) -> bytes:
    """Reads the bytes of a record up to its body, at a position of a log."""
    file = next(file for file in files if file.base <= position < file.base + file.length)
    data = np.zeros(min(HEADER, file.base + file.length - position), np.uint8)
    read_exactly(file, position - file.base, data.data)
    return data.tobytes()
