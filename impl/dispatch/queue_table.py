"""What dispatch knows of the queues, in columns that kernels read: names, ends, where slots and bitmaps lie."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from gapless.impl.dispatch.bitmap import widen
from gapless.impl.dispatch.scan_kernel import (
    ADDRESS,
    BATCH,
    COLUMNS,
    COMMITTED,
    FROM,
    INDEX,
    NEWEST,
    ROOM,
    S_AT,
    S_COLUMNS,
    S_HASH,
    S_ID,
    S_LENGTH,
    SCANNED,
    UPTO,
    hash_of,
    place_of,
)
from gapless.impl.records.record import Bytes, Ints

if TYPE_CHECKING:
    from gapless.impl.files.queues import ConsumeQueue, Queues

Array = TypeVar("Array", Ints, Bytes)

ROOM_AT_FIRST = 64  # numbers of a queue's bitmap, a power of 2; it doubles


class Known:
    """The queues that the scanner has met in this life.

    `columns`: a row for each queue, by its index · `table`, `subjects`, `names`: from a record's topic and queue id to
    the queue's index · `bits`: the bitmaps, one behind the other. What was outgrown stays unused.
    """

    def __init__(self, queues: Queues, room: int = ROOM_AT_FIRST) -> None:
        self.queues = queues
        self.room = room
        self.columns: Ints = np.zeros((16, COLUMNS), np.int64)
        self.table: Ints = np.full(64, -1, np.int64)
        self.subjects: Ints = np.zeros((32, S_COLUMNS), np.int64)
        self.names: Bytes = np.zeros(1024, np.uint8)
        self.bits: Bytes = np.zeros(4096, np.uint8)
        self._met: set[int] = set()
        self._held: dict[int, deque[tuple[int, Bytes]]] = defaultdict(deque)
        self._subjects = self._names = self._bits = 0  # how much of the arrays is used

    def meet(self, topic: bytes, queue_id: int) -> None:
        """A queue is named for the first time in this life. Raises Refused where its topic can be no folder's name."""
        queue = self.queues.find(topic, queue_id)
        if queue.index not in self._met:
            self._adopt(queue)
        self._subjects += 1
        self.subjects = _doubled(self.subjects, self._subjects)
        self.names = _doubled(self.names, self._names + len(topic))
        name = np.frombuffer(topic, np.uint8)
        self.names[self._names : self._names + len(name)] = name
        subject = self.subjects[self._subjects - 1]
        subject[S_HASH] = hash_of(name, 0, len(name), queue_id)
        subject[S_AT], subject[S_LENGTH], subject[S_ID], subject[INDEX] = self._names, len(name), queue_id, queue.index
        self._names += len(name)
        if 2 * self._subjects > len(self.table):
            self.table = np.full(2 * len(self.table), -1, np.int64)
            again = range(self._subjects)
        else:
            again = range(self._subjects - 1, self._subjects)
        for s in again:
            at, length = self.subjects[s, S_AT], self.subjects[s, S_LENGTH]
            queue_id = self.subjects[s, S_ID]
            place = place_of(read_only(self.names), at, at + length, queue_id, self.table, self.subjects, self.names)
            self.table[place] = s

    def _adopt(self, queue: ConsumeQueue) -> None:
        self._met.add(queue.index)
        self.columns = _doubled(self.columns, queue.index + 1)
        self.begin(queue, queue.committed)
        row = self.columns[queue.index]
        row[BATCH] = -1
        if queue.first < queue.committed:
            newest = queue.slots(queue.committed - 1, queue.committed)[0, :8]
            row[NEWEST] = int.from_bytes(newest.tobytes(), "big", signed=True)
        self.widen(queue)

    def has(self, queue: ConsumeQueue) -> bool:
        """Whether the scanner has met the queue."""
        return queue.index in self._met

    def begin(self, queue: ConsumeQueue, number: int) -> None:
        """The next number that the queue takes is `number`, and nothing of it is in flight."""
        row = self.columns[queue.index]
        row[SCANNED] = row[COMMITTED] = queue.scanned = queue.committed = number
        row[NEWEST], row[FROM], row[UPTO] = -1, 0, 0

    def reserve(self, queue: ConsumeQueue, number: int) -> None:
        """There are slots for the queue's entries from `number` on. Raises DiskFull, StoreError."""
        row, held = self.columns[queue.index], self._held[queue.index]
        row[ADDRESS], row[UPTO] = queue.reserve(number)
        row[FROM] = number
        # Workers write by address: what lies there stays in memory until all of it is visible, whoever closes the file.
        while held and held[0][0] <= row[COMMITTED]:
            held.popleft()
        held.append((int(row[UPTO]), queue.slots(number, number + 1)))

    def widen(self, queue: ConsumeQueue) -> None:
        """The queue's bitmap has twice the room."""
        row = self.columns[queue.index]
        room = max(self.room, 2 * int(row[ROOM]))
        self.bits = _doubled(self.bits, self._bits + room)
        widen(self.bits, row, self._bits, room)
        self._bits += room


def read_only(data: Bytes) -> Bytes:
    """The same bytes, not to be written to: so a kernel is compiled once, whatever file they come from."""
    view = data.view()
    view.flags.writeable = False
    return view


def _doubled(array: Array, least: int) -> Array:
    """The array, or a longer one that begins with it and goes on with zeros, of at least so many rows."""
    if least <= len(array):
        return array
    longer = np.zeros((max(least, 2 * len(array)), *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
