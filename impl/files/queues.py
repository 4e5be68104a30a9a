"""Consume queues: for every (topic, queue id), an entry of 20 bytes for each message, at the place of its number.

Byte layout: docs/rocketmq.md#entry. Who may see which entries is dispatch's business; this is where they lie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from threading import Lock

import numpy as np
import numpy.typing as npt

from gapless.impl.environment.operating_system import Disk, File
from gapless.impl.files.segments import MappedFiles, Segments, asked, zero_from
from gapless.impl.records.errors import Damaged, NotAStore, Refused
from gapless.impl.records.input_checks import queue_number
from gapless.impl.records.record import ENTRY_BYTES, LONGEST_V1_TOPIC, Bytes, topic_bytes

ENTRY = np.dtype([("position", ">i8"), ("size", ">i4"), ("tag", ">i8")])
BLANK_SLOT = 0x7FFFFFFF  # the size in slots that fill a new queue's file up to its first entry
LEAST_ROOM = 4096  # bytes of a queue's file for which there is room on the disk from the start
MAPPED = 1024  # files of queues in memory: an operating system does not have room for any number of mappings

FOLDER = "consumequeue"
LIGHT = "%LMQ%"  # how the names of light queues begin

Stands = Callable[[int, int, int], bool]
"""Whether the log has, for entry `number`, its message at `position` with `size`."""


class ConsumeQueue:
    """One queue of one topic.

    `index`: its place among all queues · `prefix`: its topic as records have it, length first · `first`: the lowest
    number whose message is kept · `next`: the number that the next message takes; `found`: what that was when the store
    was opened · `scanned`, `committed`, `flushed`: exclusive ends of the numbers that dispatch gave, of the entries
    that readers see (the commit position), and of those that survive a crash · `restarts`: how often its numbers began
    at 0 again · `recovered`: how far its entries reached when the store was opened · `reach`: where in the log the
    message of the last entry that was found ends, as the entries alone say; 0 where there is none.
    """

    def __init__(self, index: int, topic: str, queue_id: int, segments: Segments) -> None:
        name = topic_bytes(topic)
        self.index = index
        self.topic = topic
        self.id = queue_id
        self.name = f"{topic}/{queue_id}"
        self.prefix = len(name).to_bytes(1 + (len(name) > LONGEST_V1_TOPIC), "big") + name
        self.is_light = topic.startswith(LIGHT)  # its messages are other queues', too
        self.segments = segments
        self.per_file = segments.size // ENTRY_BYTES
        self.first = self.next = self.scanned = self.committed = self.flushed = self.found = 0
        self.restarts = self.recovered = self.reach = 0
        self._last = 0  # where the message of the last recovered entry lies
        self._is_followed = False  # something lies behind the entries that were recovered

    # -- writing -----------------------------------------------------------------------------------------------------

    def reserve(self, number: int) -> tuple[Bytes, int]:
        """There is room for entry `number` and some more: uint8 [n, 20], their slots, and where their numbers end.

        A queue's file is sparse: it has its full length, and room on the disk for twice what it needs. Raises DiskFull,
        StoreError.
        """
        base = self._base(number)
        path, length = self.segments.path(base), self.segments.size
        is_new = base not in self.segments.bases
        if is_new and self.segments.bases and base != self.segments.next_base():
            raise Damaged(f"{path}: expected the file of {self.segments.next_base()} first")
        if is_new and self.segments.bases:  # the name of the one before is durable, and so there is never a hole
            asked(self.segments.file(base - length, write=True).sync, self.segments.path(base - length))
        is_first = is_new and not self.segments.bases
        file = self.segments.create(base, durable=not is_first) if is_new else self.segments.whole(base, write=True)
        needed = (number + 1) * ENTRY_BYTES - base
        room = min(max(LEAST_ROOM, 1 << needed.bit_length()), length)
        self.segments.reserve(base, room)
        slots = entries(file.data[:room])
        if is_first:  # slots before the queue's first entry, where it does not begin a file, say that they are blank
            slots[: number - base // ENTRY_BYTES] = (0, BLANK_SLOT, 0)
        low = number - base // ENTRY_BYTES
        return file.data[low * ENTRY_BYTES : len(slots) * ENTRY_BYTES], base // ENTRY_BYTES + len(slots)

    def files(self, low: int, high: int) -> list[File]:
        """The files that entries `low:high` lie in. Raises StoreError."""
        bases = range(self._base(low), high * ENTRY_BYTES, self.segments.size)
        return [self.segments.file(base, write=True) for base in bases]

    def restart(self) -> None:
        """The topic was deleted and made again: numbers start at 0, and the old entries are gone."""
        self.restarts += 1
        self.segments.delete_from(0)
        self.first = self.scanned = self.committed = self.flushed = self.recovered = 0

    # -- reading -----------------------------------------------------------------------------------------------------

    def slots(self, low: int, high: int) -> Bytes:
        """uint8 [high - low, 20]: entries of one file, as they lie there."""
        base = self._base(low)
        data = self.segments.whole(base).data
        return data[low * ENTRY_BYTES - base : high * ENTRY_BYTES - base].reshape(-1, ENTRY_BYTES)

    def in_use(self, number: int) -> int:
        """The bytes in use of the file of an entry. Raises StoreError.

        What follows is zeros, maybe without room yet. On a full tmpfs, who reads those is killed by a signal.
        """
        base = self._base(number)
        return asked(self.segments.file(base).used, self.segments.path(base))

    def slots_in_use(self, low: int, used: int) -> Bytes:
        """uint8 [n, 20]: the slots from `low` on in the first `used` bytes of its file; one cut off comes alone."""
        base = self._base(low)
        found = self.segments.whole(base).data[low * ENTRY_BYTES - base : used]
        whole = found[: len(found) // ENTRY_BYTES * ENTRY_BYTES]
        return (whole if len(whole) else completed(found)).reshape(-1, ENTRY_BYTES)

    def entries(self, low: int, high: int) -> npt.NDArray[np.void]:
        """Entries `low:high` as (position, size, tag)."""
        parts = [self.slots(*part).view(ENTRY).reshape(-1) for part in self._parts(low, high)]
        return np.concatenate(parts) if parts else np.zeros(0, ENTRY)

    def last_position(self) -> int:
        """The position of the last visible entry's message."""
        if self.committed == self.recovered:
            return self._last
        return int(self.entries(self.committed - 1, self.committed)["position"][0])

    def _parts(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        """The same numbers, cut where files end."""
        while low < high:
            end = min(high, (low // self.per_file + 1) * self.per_file)
            yield low, end
            low = end

    def _base(self, number: int) -> int:
        return number // self.per_file * self.segments.size

    # -- found again -------------------------------------------------------------------------------------------------

    def recover(self, start: int, upto: int, stands: Stands) -> None:
        """Find the last entry whose message lies before `upto` in the log; what follows it is to be written again.

        After a crash the slots behind it may contain anything, so an entry counts if the log has its message, or began
        above it (at `start`): then it is old, and its file has been safe for long.
        """
        end = self.reach = self._last = 0
        self._is_followed = False
        for base in reversed(self.segments.bases):
            found = self._slots_in_use(base)
            position, size = found["position"], found["size"]
            self.reach = self.reach or _reach(found)
            likely = np.flatnonzero((0 < size) & (size != BLANK_SLOT) & (0 <= position) & (position < upto))
            numbers = likely + base // ENTRY_BYTES
            for number, at in zip(numbers[::-1].tolist(), likely[::-1].tolist(), strict=True):
                if position[at] < start or stands(number, int(position[at]), int(size[at])):
                    end, self._last = number + 1, int(position[at])
                    break
            self._is_followed |= bool(found[max(end - base // ENTRY_BYTES, 0) :].view(np.uint8).any())
            if end:
                break
            self._is_followed = True  # a file without an entry of ours
        self.next = self.scanned = self.committed = self.flushed = self.recovered = end
        self.forget_below(start)

    def _slots_in_use(self, base: int) -> npt.NDArray[np.void]:
        """The slots of a file, as (position, size, tag), but for zeros at its end."""
        return entries(completed(self.segments.file(base).data[: self.in_use(base // ENTRY_BYTES)]))

    def forget_below(self, start: int) -> None:
        """Messages below `start` have left the log: `first` moves on to the first that has not."""
        low = max(self.first, self.segments.bases[0] // ENTRY_BYTES if self.segments.bases else 0)
        for part_low, part_high in self._parts(low, self.committed):
            found = self.slots(part_low, part_high).view(ENTRY).reshape(-1)
            gone = (found["position"] < start) | (found["size"] == BLANK_SLOT)
            if not gone[-1]:
                self.first = part_low + int(gone.argmin())
                return
        self.first = max(self.first, self.committed)

    def truncate(self) -> bool:
        """Slots from `scanned` on are zeros, and later files are gone: what a crash took away never comes back.

        Returns whether any were not: for that to last, the disk is to be synced. Raises StoreError.
        """
        followed, self._is_followed = self._is_followed, False
        base = self._base(self.scanned) if self.scanned else -self.segments.size
        if followed:
            self.segments.delete_from(base + self.segments.size)
        if followed and base in self.segments.bases:
            file = self.segments.file(base, write=True)
            used = asked(file.used, self.segments.path(base))
            zero_from(file.data[:used], self.scanned * ENTRY_BYTES - base)
        return followed

    def delete_expired(self) -> None:
        """Delete files whose entries have all expired, but for the last one (docs/rocketmq.md#expiry).

        Once no message of a queue is left, its next number is known from its last entry alone.
        """
        for base in [base for base in self.segments.bases[:-1] if self._has_expired(base)]:
            self.segments.delete(base)

    @property
    def has_expired_files(self) -> bool:
        """True if `delete_expired` has anything to do."""
        return len(self.segments.bases) > 1 and self._has_expired(self.segments.bases[0])

    def _has_expired(self, base: int) -> bool:
        end = (base + self.segments.size) // ENTRY_BYTES
        return end <= self.first and end < self.flushed


def names_of_queues(disk: Disk) -> Iterator[tuple[str, str]]:
    """The folders of queues: of which topic, and what they are called. Raises StoreError."""
    for topic in asked(lambda: disk.folders(FOLDER), FOLDER):
        folder = f"{FOLDER}/{topic}"
        yield from ((topic, name) for name in asked(partial(disk.folders, folder), folder))


def _reach(found: npt.NDArray[np.void]) -> int:
    """The end of the last of these entries' messages; 0 if the first slot is empty or the last one blank."""
    written = found["size"] > 0
    count = len(found) if written.all() else int(written.argmin())
    if not count or found["size"][count - 1] == BLANK_SLOT:
        return 0
    return int(found["position"][count - 1]) + int(found["size"][count - 1])


def completed(slots: Bytes) -> Bytes:
    """Slots, the last of which is cut off where its file has no room yet: the rest of it is zeros."""
    cut = -len(slots) % ENTRY_BYTES
    return np.concatenate([slots, np.zeros(cut, np.uint8)]) if cut else slots


def entries(data: Bytes) -> npt.NDArray[np.void]:
    """The slots of a file."""
    return data[: len(data) // ENTRY_BYTES * ENTRY_BYTES].view(ENTRY)


class ConsumeQueues:
    """All queues of a store. `all`: in the order in which they were met."""

    def __init__(self, disk: Disk, file_size: int) -> None:
        self.disk = disk
        self.file_size = file_size
        self.all: list[ConsumeQueue] = []
        self._mapped = MappedFiles(MAPPED)
        self._named: dict[tuple[str, int], ConsumeQueue] = {}
        self._meeting = Lock()

    def load(self) -> None:
        """Meet the queues that have a folder. Raises NotAStore, WrongFileSize, Damaged."""
        for topic, name in names_of_queues(self.disk):
            try:
                number = int(name) if name.isdecimal() and str(int(name)) == name else -1
                self.named(topic, number)
            except Refused as error:
                raise NotAStore(
                    f"{FOLDER}/{topic}/{name}: expected the number of a queue, in the folder of a topic; move it "
                    "elsewhere"
                ) from error

    def find(self, topic: bytes, queue_id: int) -> ConsumeQueue:
        """The queue that a record names, created if necessary. Raises Refused, for no folder's name."""
        return self.named(topic.decode(errors="backslashreplace"), queue_id)

    def named(self, topic: str, queue_id: int) -> ConsumeQueue:
        """The queue of a topic. Raises Refused where brokers would have no such topic."""
        return self._named.get((topic, queue_id)) or self._meet(topic, queue_number(queue_id))

    def _meet(self, topic: str, queue_id: int) -> ConsumeQueue:
        with self._meeting:  # who appends may meet a queue that a worker meets
            for met in self.all[len(self._named) :]:  # an interrupt came between the two
                self._named[met.topic, met.id] = met
            if (topic, queue_id) in self._named:
                return self._named[topic, queue_id]
            topic_bytes(topic)
            try:
                segments = Segments.load(self.disk, f"{FOLDER}/{topic}/{queue_id}", self.file_size, self._mapped)
            except Damaged as error:
                raise Damaged(f"{error}, or remove the folder {FOLDER}: it is built again from the log") from error
            found = ConsumeQueue(len(self.all), topic, queue_id, segments)
            self.all.append(found)
            self._named[topic, queue_id] = found
            return found

    def known(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """The queue, if anybody met it."""
        return self._named.get((topic, queue_id))

    def count_mapped(self) -> int:
        """The approximate number of their files in memory."""
        return self._mapped.count()

    def clear(self) -> None:
        """All entries are gone, to be built again from the log."""
        for queue in self.all:
            queue.restart()
            queue.next = 0

    def close(self) -> None:
        """Files are not used any more."""
        for queue in self.all:
            queue.segments.close()
