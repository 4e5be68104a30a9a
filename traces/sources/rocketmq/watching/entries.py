"""Reads judged entries again, to find those that are overwritten later.

Files that are mapped into memory send no notice of changes, so the bytes are read again: recent entries at every look,
within a budget, and older ones in turns. Of each stretch of a queue a checksum is kept, and the log positions of its
messages: if the checksum changes, these are judged again.
"""

from __future__ import annotations

import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import numpy as np

from gapless.traces.problems import Unreadable
from gapless.traces.sources.rocketmq.segments.results import SplitResult, Subject
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import ENTRY, LogFile

RECENT = 60.0  # seconds for which entries are looked at every time
GROWS = 8.0  # seconds for which a block grows: those of a slow queue would keep others recent
BLOCK = 2000  # entries of one block, at most
LOOK = 8 << 20  # bytes that one look reads of recent entries, at most
FILES = 400  # blocks that one look reads of recent entries, at most
OLDER = 32  # blocks that one look reads of older entries
KNOWN = 100_000  # blocks that are remembered; the oldest are forgotten


@dataclass(slots=True)
class Block:
    """Entries `low:high` of a queue, whose messages lie from `first` to `last` in one log file."""

    subject: Subject
    low: int
    high: int
    digest: int
    file: LogFile
    first: int
    last: int
    began: float  # when the first of them was judged
    seen: float  # when the last of them was


class SameEntries(NamedTuple):
    """Entries of a queue from number `low` on, as they were when all of them were what they had been."""

    low: int
    data: bytes

    def same_as(self, other: SameEntries) -> tuple[int, int]:
        """Returns the range of numbers in which both have the same entries; empty after any difference."""
        low = max(self.low, other.low)
        mine, its = self.data[(low - self.low) * ENTRY :], other.data[(low - other.low) * ENTRY :]
        size = min(len(mine), len(its))
        return (low, low + size // ENTRY) if mine[:size] == its[:size] else (0, 0)


Looked = dict[Subject, SameEntries]
NOTHING = SameEntries(0, b"")


@dataclass
class SeenEntries:
    """All that is looked at again."""

    clock: Callable[[], float] = time.monotonic
    open: dict[Subject, Block] = field(default_factory=dict)  # that may still grow
    recent: deque[Block] = field(default_factory=deque)
    older: deque[Block] = field(default_factory=deque)
    turn: int = 0  # at which of the recent ones that are too many for one look
    start: int = 0  # where the log began when what has expired was let go of
    looked: Looked = field(default_factory=dict)  # at the last look, the longest of each queue
    space: file_access.Space = field(default_factory=file_access.Space)

    def add(self, store: StoreDirectory, result: SplitResult) -> None:
        """Remember the entries of what was judged just now."""
        now, file = self.clock(), result.split.file
        for segment in result.segments:
            pieces = segment.pieces
            ends = pieces.indexed_ends.tolist()
            places = zip(pieces.numbers.tolist(), pieces.began.tolist(), pieces.last.tolist(), strict=True)
            for subject, indexed, (low, first, last) in zip(pieces.subjects, ends, places, strict=True):
                if indexed > low:
                    self._add(store, Block(subject, low, indexed, 0, file, first, last, now, now))

    def _add(self, store: StoreDirectory, new: Block) -> None:
        data = read(store, new)
        block = self.open.get(new.subject)
        grows = block is not None and block.high == new.low and block.file == new.file
        if block is not None and grows and new.high - block.low <= BLOCK and new.seen - block.began < GROWS:
            block.digest = zlib.crc32(data, block.digest)
            block.high, block.last, block.seen = new.high, new.last, new.seen
            return
        new.digest = zlib.crc32(data)
        self.open[new.subject] = new
        self.recent.append(new)

    def forget(self, subject: Subject) -> None:
        """Forgets a queue that was deleted or created again."""
        self.open.pop(subject, None)
        self.looked.pop(subject, None)
        self.recent = deque(block for block in self.recent if block.subject != subject)
        self.older = deque(block for block in self.older if block.subject != subject)

    def forget_all(self) -> None:
        """The log was cut off, or is another one."""
        self.open.clear()
        self.looked.clear()
        self.recent.clear()
        self.older.clear()

    def changed(self, store: StoreDirectory) -> list[Block]:
        """Returns the blocks that changed, among those that are due."""
        self._age(store.start)
        before, self.looked = self.looked, {}
        return [block for some in _together(self._due()) for block in self._changed_of(store, some, before)]

    def _changed_of(self, store: StoreDirectory, some: list[Block], before: Looked) -> list[Block]:
        """The same, of blocks that follow one another in their queue: to open its file costs more than to read it."""
        subject, low, high = some[0].subject, some[0].low, some[-1].high
        data = self.space.array("entries", ((high - low) * ENTRY,), np.uint8)
        data[:] = 0
        try:
            file_access.read_entries(store, *subject, low, data.data)
        except Unreadable:  # the subjects are in the entries
            return [block for block in some if self.is_changed(store, block)]
        now = SameEntries(low, data.tobytes())
        same = range(*now.same_as(before[subject])) if subject in before else range(0)
        slots = data.reshape(-1, ENTRY)
        found = [
            one
            for one in some
            if not (one.low in same and one.high - 1 in same)
            and zlib.crc32(slots[one.low - low : one.high - low].data) != one.digest
        ]
        if not found and len(now.data) > len(self.looked.get(subject, NOTHING).data):
            self.looked[subject] = now  # what is as it was a moment ago needs no checksum
        return found

    def is_changed(self, store: StoreDirectory, block: Block) -> bool:
        """True if a block differs from its recorded state."""
        return zlib.crc32(read(store, block)) != block.digest

    def _age(self, start: int) -> None:
        now = self.clock()
        while self.recent and now - self.recent[0].seen > RECENT:
            block = self.recent.popleft()
            if self.open.get(block.subject) is block:
                del self.open[block.subject]
            self.older.append(block)
        while len(self.older) > KNOWN:
            self.older.popleft()
        if start != self.start:  # what expired is not the oldest one: those are looked at in turns
            self.start = start
            self.recent = deque(block for block in self.recent if block.last >= start)
            self.older = deque(block for block in self.older if block.last >= start)
            self.open = {subject: block for subject, block in self.open.items() if block.last >= start}

    def _due(self) -> Iterator[Block]:
        budget = LOOK
        for block in islice(reversed(self.recent), FILES):  # the youngest first
            budget -= (block.high - block.low) * ENTRY
            if budget < 0:
                break
            yield block
        rest = max(0, len(self.recent) - FILES)
        for at in range(min(OLDER, rest)):  # the others of them in turns
            yield self.recent[(self.turn + at) % rest]
        self.turn += OLDER
        for _ in range(min(OLDER, len(self.older))):
            self.older.rotate(-1)
            yield self.older[-1]


def _together(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """Blocks, those that follow one another in their queue together."""
    some: list[Block] = []
    for block in sorted(blocks, key=lambda block: (block.subject, block.low)):
        if some and (block.subject != some[0].subject or block.low != some[-1].high):
            yield some
            some = []
        some.append(block)
    if some:
        yield some


def read(store: StoreDirectory, block: Block) -> bytes:
    """The entries of a block as they are now; zeros where no file has them."""
    data = np.zeros((block.high - block.low) * ENTRY, np.uint8)
    with suppress(Unreadable):
        file_access.read_entries(store, *block.subject, block.low, data.data)
    return data.tobytes()
