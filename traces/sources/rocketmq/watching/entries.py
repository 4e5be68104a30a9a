"""Entries that were judged, looked at again: who overwrites one later is found out.

Files that are mapped into memory tell nobody that they change, so the bytes are read again. What is recent is read at
every look, within a budget; what is older in turns. Of each stretch of a queue a checksum is kept, and where in the
log its messages lie: where the checksum is another, these are judged again.
"""

from __future__ import annotations

import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from gapless.traces.problems import Unreadable
from gapless.traces.sources.rocketmq.segments.tasks import SplitResult, Subject
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


@dataclass
class SeenEntries:
    """All that is looked at again."""

    clock: Callable[[], float] = time.monotonic
    open: dict[Subject, Block] = field(default_factory=dict)  # that may still grow
    recent: deque[Block] = field(default_factory=deque)
    older: deque[Block] = field(default_factory=deque)
    turn: int = 0  # at which of the recent ones that are too many for one look
    start: int = 0  # where the log began when what has expired was let go of

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
        """The queue was deleted, or made anew."""
        self.open.pop(subject, None)
        self.recent = deque(block for block in self.recent if block.subject != subject)
        self.older = deque(block for block in self.older if block.subject != subject)

    def forget_all(self) -> None:
        """The log was cut off, or is another one."""
        self.open.clear()
        self.recent.clear()
        self.older.clear()

    def changed(self, store: StoreDirectory) -> list[Block]:
        """Which blocks are not what they were, of those that it is time to look at."""
        self._age(store.start)
        return [block for block in self._due() if self.is_changed(store, block)]

    def is_changed(self, store: StoreDirectory, block: Block) -> bool:
        """Whether a block is not what it was."""
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


def read(store: StoreDirectory, block: Block) -> bytes:
    """The entries of a block as they are now; zeros where no file has them."""
    data = np.zeros((block.high - block.low) * ENTRY, np.uint8)
    with suppress(Unreadable):
        file_access.read_entries(store, *block.subject, block.low, data.data)
    return data.tobytes()
