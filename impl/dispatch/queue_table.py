"""The queues in columns that kernels read: their names, their ends, where their slots and bitmaps lie."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TypeVar

import numpy as np

from gapless.impl.dispatch import scan_kernel as s
from gapless.impl.dispatch.bitmap import widen
from gapless.impl.files.queues import MAPPED, ConsumeQueue, ConsumeQueues
from gapless.impl.records.record import Bytes, Ints

Array = TypeVar("Array", Ints, Bytes)

CROWDS = 8  # times as many queues as stay in memory: so many may be in flight
ROOM_AT_FIRST = 64  # numbers of a queue's bitmap, a power of 2; it doubles


class QueueTable:
    """The queues that the scanner has met in this session.

    `columns`: a row for each queue, by its index · `places`, `subjects`, `names`: from a record's topic and queue id to
    the queue's index · `bits`: the bitmaps, one behind the other. What was outgrown stays unused.
    """

    def __init__(self, queues: ConsumeQueues, room: int = ROOM_AT_FIRST, most: int = MAPPED) -> None:
        self.queues = queues
        self.room = room
        self.most = self._crowd = most  # queues whose slots stay in memory, unless more are in flight
        self.limit = CROWDS * most  # queues that are in flight; where there are more, some are to become visible first
        self.columns: Ints = np.zeros((16, s.COLUMNS), np.int64)
        self.places: Ints = np.full(64, -1, np.int64)
        self.subjects: Ints = np.zeros((32, s.S_COLUMNS), np.int64)
        self.names: Bytes = np.zeros(1024, np.uint8)
        self.bits: Bytes = np.zeros(4096, np.uint8)
        self._met: set[int] = set()
        self._open_slots: dict[int, deque[tuple[int, Bytes]]] = defaultdict(deque)
        self._subjects = self._names = self._bits = 0  # how much of the arrays is used

    def meet(self, topic: bytes, queue_id: int) -> None:
        """A queue is named for the first time. Raises Refused where no folder can have its topic's name."""
        queue = self.queues.find(topic, queue_id)
        if queue.index not in self._met:
            self._adopt(queue)
        name, at, row = np.frombuffer(topic, np.uint8), self._names, self._subjects
        self._names, self._subjects = at + len(name), row + 1
        self.names = _doubled(self.names, self._names)
        self.names[at : self._names] = name
        self.subjects = _doubled(self.subjects, self._subjects)
        key = s.hash_of(name, 0, len(name), queue_id)
        self.subjects[row, [s.S_HASH, s.S_AT, s.S_LENGTH, s.S_ID, s.INDEX]] = key, at, len(name), queue_id, queue.index
        if 2 * self._subjects > len(self.places):
            self.places, row = np.full(2 * len(self.places), -1, np.int64), 0
        for each in range(row, self._subjects):
            at, length, own_id = self.subjects[each, [s.S_AT, s.S_LENGTH, s.S_ID]].tolist()
            met = self.places, self.subjects, self.names
            self.places[s.place_of(read_only(self.names), at, at + length, own_id, *met)] = each

    def _adopt(self, queue: ConsumeQueue) -> None:
        self._met.add(queue.index)
        self.columns = _doubled(self.columns, queue.index + 1)
        self.begin(queue, queue.committed)
        row = self.columns[queue.index]
        row[s.BATCH] = -1
        if queue.first < queue.committed:
            row[s.NEWEST] = queue.last_position()
        self.widen(queue)

    def has(self, queue: ConsumeQueue) -> bool:
        """True if the scanner has met the queue."""
        return queue.index in self._met

    def begin(self, queue: ConsumeQueue, number: int) -> None:
        """The next number that the queue takes is `number`, and nothing of it is in flight."""
        row = self.columns[queue.index]
        row[s.SCANNED] = row[s.COMMITTED] = queue.scanned = queue.committed = number
        row[s.NEWEST], row[s.FROM], row[s.UPTO] = -1, 0, 0

    def reserve(self, queue: ConsumeQueue, number: int) -> bool:
        """There are slots for the queue's entries from `number` on. Raises DiskFull, StoreError.

        False where too many queues are in flight: an operating system has room for some 65,000 mapped files.
        """
        if len(self._open_slots) >= self._crowd:
            self._let_go()
        if len(self._open_slots) >= self.limit and queue.index not in self._open_slots:
            return False
        slots, upto = queue.reserve(number)
        row, open_slots = self.columns[queue.index], self._open_slots[queue.index]
        row[s.ADDRESS], row[s.FROM], row[s.UPTO] = slots.ctypes.data, number, upto
        # Workers write by address: the slots stay in memory until all are visible, even if the file is closed.
        while open_slots and open_slots[0][0] <= row[s.COMMITTED]:
            open_slots.popleft()
        open_slots.append((upto, slots))
        return True

    def _let_go(self) -> None:
        """Release the slots of queues without entries in flight: they are read again when needed."""
        for index in list(self._open_slots):
            row = self.columns[index]
            if row[s.SCANNED] == row[s.COMMITTED]:
                row[s.FROM] = row[s.UPTO] = 0
                del self._open_slots[index]
        self._crowd = min(max(self.most, 2 * len(self._open_slots)), self.limit)

    def widen(self, queue: ConsumeQueue) -> None:
        """The queue's bitmap has twice the room."""
        row = self.columns[queue.index]
        room = max(self.room, 2 * int(row[s.ROOM]))
        self.bits = _doubled(self.bits, self._bits + room)
        widen(self.bits, row, self._bits, room)
        self._bits += room


def read_only(data: Bytes) -> Bytes:
    """The same bytes, not to be written to: so a kernel is compiled once, whatever file they come from."""
    view = data.view()
    view.flags.writeable = False
    return view


def _doubled(array: Array, least: int) -> Array:
    """The array, or a longer copy filled up with zeros, with at least so many rows."""
    if least <= len(array):
        return array
    longer = np.zeros((max(least, 2 * len(array)), *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
