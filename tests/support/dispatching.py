"""A small world to dispatch in: files without a disk, logs made to measure, and a judge who knows the spec."""

from __future__ import annotations

import errno
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from gapless.impl.dispatch.batches import DispatchBatch
from gapless.impl.dispatch.dispatch import Dispatch
from gapless.impl.environment.mapped_file import Bytes
from gapless.impl.environment.memory import FileInMemory, MemoryDisk
from gapless.impl.files.log import CommitLog
from gapless.impl.files.queues import ConsumeQueues
from gapless.impl.files.segments import Segments
from gapless.impl.records.errors import StoreError
from gapless.spec import dispatch as spec
from gapless.spec.language import Number
from tests.support.rocketmq import stores
from tests.support.rocketmq.stores import Entry, Record, properties

FILE = 8192
OF_NUMBERS = (
    spec.the_commit_position_never_passes_a_gap,
    spec.every_entry_is_written_once,
    spec.the_bitmap_tells_what_is_written,
    spec.what_is_written_was_taken_once,
    spec.what_is_taken_was_given,
    spec.one_worker_is_at_the_queue_unless_they_may_overlap,
)
SLOTS = 8  # of a queue's file, in what is made here: files end often


# A world without a disk


class MemoryFile(FileInMemory):
    """A file that nothing outlives. `synced`: the bytes that survive."""

    synced: Bytes | None = None

    def reserve(self, low: int, high: int) -> None:
        """There is room for all of it."""
        assert 0 <= low < high <= len(self.data)

    def sync(self) -> None:
        """The bytes as they are now are what survives."""
        self.synced = self.data.copy()


class SmallDisk(MemoryDisk):
    """A disk in memory. `room`: how many more files it holds."""

    def __init__(self) -> None:
        super().__init__(MemoryFile)
        self.room = 1 << 30

    def create(self, path: str, length: int, *, durable: bool = True) -> FileInMemory:
        """A file of zeros, while there is room."""
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.room -= 1
        return super().create(path, length, durable=durable)

    def open(self, path: str, *, write: bool) -> FileInMemory:  # noqa: ARG002 - tests damage what is only read.
        """A file that was created."""
        return super().open(path, write=True)


def memory_queues(size: int = 20 * SLOTS) -> ConsumeQueues:
    return ConsumeQueues(SmallDisk(), size)


def log_of(records: Iterable[Record], start: int = 0, size: int = FILE) -> tuple[CommitLog, list[Record]]:
    """A log that holds these records, each at the place that is its own; and the records, placed."""
    disk, placed = SmallDisk(), list[Record]()
    data, base, at = disk.create(f"commitlog/{start:020d}", size).data, start, 0
    for record in records:
        if at + record.size + 8 > size:
            blank = (size - at).to_bytes(4, "big") + stores.BLANK.to_bytes(4, "big")
            data[at : at + 8] = np.frombuffer(blank, np.uint8)
            base, at = base + size, 0
            data = disk.create(f"commitlog/{base:020d}", size).data
        placed.append(replace(record, position=base + at))
        data[at : at + record.size] = np.frombuffer(stores.encode(placed[-1]), np.uint8)
        at += record.size
    log = CommitLog(Segments.load(disk, "commitlog", size))
    log.end = log.flushed = base + at
    return log, placed


def numbered(queues: Iterable[tuple[str, int]], **fields: Any) -> Iterator[Record]:
    """A record for each, with the next number of its queue."""
    following: dict[tuple[str, int], int] = defaultdict(int)
    for index, (topic, queue) in enumerate(queues):
        tags = properties({"KEYS": f"k{index}", "TAGS": "paid" * (index % 3)} if index % 3 else {"KEYS": "k"})
        body = bytes([index % 251]) * (index % 40)
        yield Record(topic, body, tags, queue=queue, number=following[topic, queue], **fields)
        following[topic, queue] += 1


def entries_in(queues: ConsumeQueues) -> dict[tuple[str, int], dict[int, Entry]]:
    """Return the entries that readers see: those below the commit positions."""
    return {
        (queue.topic, queue.id): {
            queue.first + place: Entry(*map(int, entry))
            for place, entry in enumerate(queue.entries(queue.first, queue.committed).tolist())
        }
        for queue in queues.all
    }


# A judge


class Judge:
    """A recorder that takes every step on the spec, too, and lets the spec refuse.

    `expected`: what is to stand in each entry, by the index of its queue.
    """

    def __init__(
        self, queues: ConsumeQueues, expected: dict[tuple[str, int], dict[int, Entry]], *, overlap: bool
    ) -> None:
        self.queues = queues
        self.expected = expected
        self.overlap = overlap
        self.states: dict[int, spec.State] = {}

    def scanned(self, runs: npt.NDArray[np.int64]) -> None:
        """Numbers are given in order."""
        for index, low, high in runs.tolist():
            if index not in self.states:
                self.states[index] = spec.open(spec.State(), Number(low), int(self.overlap))
            for number in range(low, high):
                self.states[index] = spec.scan(self.states[index], Number(number))

    def taken(self, runs: npt.NDArray[np.int64]) -> None:
        """Workers come as they may; one that is alone at a queue comes to its first number."""
        for index, low, high in runs.tolist():
            for number in range(low, high if self.overlap else low + 1):
                self.states[index] = spec.take(self.states[index], Number(number))

    def wrote(self, runs: npt.NDArray[np.int64]) -> None:
        """Entries are those of their messages; one that is alone comes to each when it has written the one before."""
        for index, low, high in runs.tolist():
            queue = self.queues.all[index]
            for number, entry in enumerate(queue.entries(low, high).tolist(), low):
                if low < number and not self.overlap:
                    self.states[index] = spec.take(self.states[index], Number(number))
                self.states[index] = spec.write(self.states[index], Number(number))
                assert Entry(*entry) == self.expected[queue.topic, queue.id][number], "an entry is its message"

    def committed(self, queue_index: int, to: int) -> None:
        """The commit position passes no gap."""
        self.states[queue_index] = spec.commit(self.states[queue_index], Number(to))

    def queue_flushed(self, queue_index: int, to: int) -> None:
        """Make flushed entries visible."""
        self.states[queue_index] = spec.flush(self.states[queue_index], Number(to))

    def crashed(self) -> None:
        """A new life begins with what is visible now."""
        for index, state in self.states.items():
            self.states[index] = spec.crash(state, Number(self.queues.all[index].committed))

    def compare(self, dispatch: Dispatch) -> None:
        """Both know the same."""
        for queue in self.queues.all:
            s = self.states.get(queue.index)
            if s is None:
                assert queue.committed == queue.scanned == queue.flushed == 0
                continue
            assert (queue.scanned, queue.committed, queue.flushed) == (s.scanned, s.committed, s.flushed)
            ahead = [Number(number) for number in range(s.committed, s.scanned)]
            assert dispatch.written(queue) == [number for number in ahead if s.bits[number]]
            assert dispatch.being_written(queue) == [] or self.overlap or s.at >= 0
            if self.overlap:
                assert dispatch.taken(queue) == [number for number in ahead if s.taken[number]]
            for number in ahead:
                assert all(holds(s, number) for holds in OF_NUMBERS)


# A run


class Run:
    """One schedule of dispatch, chosen by a seed: who takes which step when, what fails, when it starts again."""

    def __init__(self, kind: type[Dispatch], seed: int) -> None:
        self.chance = Random(seed)
        pick = self.chance.choice
        names = [pick((("a", 0), ("a", 1), ("b", 0))[: 1 + seed % 3]) for _ in range(pick((5, 20, 40)))]
        self.log, self.records = log_of(numbered(names), size=2048)
        self.queues = memory_queues()
        self.expected = stores.expected_queues(self.records)
        self.settings: dict[str, Any] = {
            "overlap": pick((True, False)),
            "batch_records": pick((1, 1, 2, 5)),
            "in_flight": pick((1, 2, 4)),
            "retries": pick((0, 2)),
        }
        self.kind = kind
        self.judge = Judge(self.queues, self.expected, overlap=self.settings["overlap"])
        self.dispatch = self._begin(0)
        self.busy: list[DispatchBatch] = []
        self.failures: dict[int, int] = defaultdict(int)  # of the batch at a position
        self.ends = [0, *(record.end for record in self.records)]
        self.limit = self.safe = pick(self.ends[:4])
        self.poisoned = pick((-1, -1, -1, pick(self.records).position))  # what lies there can never be built
        self.bad_disk = pick((False, False, False, True))

    def _begin(self, position: int) -> Dispatch:
        return self.kind(self.log, self.queues, position=position, recorder=self.judge, **self.settings)

    def go(self) -> None:
        """Take steps, and then all that are left. Raises what is amiss."""
        steps = (self._scan, self._scan, self._take, self._take, self._end, self._end, self._commit, self._look)
        seldom = (self._flush, self._flush, self._restart, self._lose_power)
        for _ in range(self.chance.choice((30, 120))):
            self.chance.choice(steps if self.chance.random() < 0.9 else seldom)()
            if self.dispatch.error is not None:
                return self._check_what_is_left()
            self.judge.compare(self.dispatch)
        self.limit = self.safe = self.ends[-1]
        for _ in range(4 * len(self.records) + 20):
            for step in (self._scan, self._take, self._end, self._commit):
                step()
                if self.dispatch.error is not None:
                    return self._check_what_is_left()
            self.judge.compare(self.dispatch)
        assert self.dispatch.dispatched == self.limit, "all is dispatched in the end"
        assert self.dispatch.idle
        return self._check_what_is_left()

    def _check_what_is_left(self) -> None:
        for name, entries in entries_in(self.queues).items():
            assert entries == {number: self.expected[name][number] for number in entries}, "what is visible is right"
        done = self.dispatch.dispatched
        for name, entries in self.expected.items():
            queue = self.queues.named(*name)
            due = [number for number, entry in entries.items() if entry.position + entry.size <= done]
            assert len(due) <= queue.committed, "what counts as dispatched is visible"
        if self.dispatch.error is not None:
            assert self.failures[self.poisoned] > self.settings["retries"] or self.bad_disk, "it stops for a reason"

    def _scan(self) -> None:
        batch = self.dispatch.scan(self.limit)
        assert self.dispatch.scanned <= self.limit, "what may be lost is not scanned"
        assert batch is not None or self.dispatch.full or self.dispatch.scanned >= self.limit, "a scan continues"

    def _take(self) -> None:
        batch = self.dispatch.take()
        if batch is not None:
            self.busy.append(batch)

    def _end(self) -> None:
        """A worker ends, well or badly."""
        if not self.busy:
            return
        batch = self.busy.pop(self.chance.randrange(len(self.busy)))
        fails = batch.low <= self.poisoned < batch.high
        may = self.failures[batch.low] < self.settings["retries"] and self.chance.random() < 0.2
        if fails or may:
            place = self.poisoned if fails else batch.low
            self.failures[place] += 1
            again = self.dispatch.failed(batch, RuntimeError("the worker fell over"))
            assert again == (self.failures[place] <= self.settings["retries"]), "it stops after the last try"
            return
        self.dispatch.build(batch)
        self.dispatch.wrote(batch)
        if self.chance.random() < 0.5:
            self.dispatch.commit_all(batch)

    def _commit(self) -> None:
        for queue in self.queues.all:
            self.dispatch.commit(queue)

    def _look(self) -> None:
        """The log grows, and more of it is safe."""
        grown = [end for end in self.ends if end >= self.limit]
        self.limit = grown[min(len(grown) - 1, self.chance.randrange(3))]
        if self.chance.random() < 0.3:
            self.safe = self.chance.choice([end for end in self.ends if self.safe <= end <= self.limit])

    def _flush(self) -> None:
        for queue in self.queues.all:
            file = queue.segments.file
            if self.bad_disk:
                queue.files = _refuse  # type: ignore[assignment, method-assign]
            with suppress(StoreError):
                self.dispatch.flush(queue, self.safe)
            for number in range(queue.flushed):
                entry = self.expected[queue.topic, queue.id][number]
                assert entry.position + entry.size <= self.safe, "no entry outlives its record"
                on_disk = file(number * 20).synced  # type: ignore[attr-defined]
                at = number * 20 % queue.segments.size
                assert on_disk is not None, "what is flushed is on disk"
                assert on_disk[at : at + 20].tobytes() == entry.encode(), "what is flushed is on disk"
            if self.dispatch.error is not None:
                return

    def _restart(self) -> None:
        """Start a new dispatch at the point where the old one had completed everything."""
        self.busy.clear()
        self.safe = self.limit
        self.judge.crashed()
        self.failures.clear()
        for queue in self.queues.all:
            queue.scanned = queue.flushed = queue.committed  # a new life keeps what it finds
            for base in queue.segments.bases:
                queue.segments.file(base).sync()
        self.dispatch = self._begin(self.dispatch.dispatched)

    def _lose_power(self) -> None:
        """A new dispatch finds what was flushed, and goes through the log from its start."""
        for queue in self.queues.all:
            queue.committed = queue.flushed
        self._restart()
        self.dispatch = self._begin(0)


def _refuse(_low: int, _high: int) -> None:
    raise OSError(5, "Input/output error")
