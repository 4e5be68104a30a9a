"""The implementation as a subject: its steps as the machines take them, and what its state means."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import numpy as np

from gapless.impl.dispatch.batches import DispatchBatch
from gapless.impl.files.checkpoint import NOWHERE
from gapless.impl.files.queues import BLANK_SLOT, ENTRY, ConsumeQueue
from gapless.impl.recorder.recorder import ROW, StoreRecorder
from gapless.impl.records import kernels
from gapless.impl.records.errors import Damaged, Refused, Stopped, StoreError
from gapless.impl.records.record import (
    ENTRY_BYTES,
    MAGIC_BLANK,
    Messages,
    Record,
    encode,
    properties_bytes,
    tag_code,
)
from gapless.impl.store.core import Core, Settings
from gapless.properties.reference_store.recorded_conformance import require_conformance
from gapless.properties.simulation.simulated_disk import SimulatedDisk
from gapless.properties.subject import (
    DispatchProgress,
    MessagePlace,
    NewMessage,
    QueueEntry,
    QueueName,
    QueueReach,
    StoredMessage,
    Subject,
    SubjectBatch,
    SubjectErrors,
    SubjectLayout,
)
from gapless.spec import log as log_spec
from gapless.spec.language import Position

HEADER = 91  # bytes of a record with neither body, topic nor properties (docs/rocketmq.md#record)
CHECKSUM = 20  # bytes of its checksum, where it carries one (docs/rocketmq.md#property-crc)
RUBBISH = 0xEE  # every byte of what a crash or a failure leaves behind


class ReferenceBatch:
    """A batch of dispatch, with its entries by the names of their queues."""

    def __init__(self, batch: DispatchBatch, names: Sequence[QueueName]) -> None:
        self.batch = batch
        self.low, self.high = batch.low, batch.high
        self.entries = [(names[index], *rest) for index, *rest in batch.rows.tolist()]

    def __repr__(self) -> str:
        return repr(self.batch)


class ReferenceStore(Subject):
    """A `Core`, and a recorder if one was given or `record` was called."""

    errors = SubjectErrors(any=StoreError, refused=Refused, stopped=Stopped, damaged=Damaged)
    files = {"log": "commitlog/*", "queues": "consumequeue/*"}  # noqa: RUF012 - the protocol says that it stays.

    def __init__(self, recorder: StoreRecorder | None = None) -> None:
        self.recorder = recorder
        self.found: Core | None = None
        self._batches: dict[int, ReferenceBatch] = {}  # by identity: those of this life
        self._recording = False  # whether every store that is found is recorded
        self._last: tuple[ConsumeQueue, int, int]  # queue and position of the last message, the newest time before it

    @property
    def core(self) -> Core:
        """The store. Raises StoreError where none is open."""
        if self.found is None:
            raise StoreError("no store is open")
        return self.found

    # -- a life ------------------------------------------------------------------------------------------------------

    def open(self, disk: SimulatedDisk, layout: SubjectLayout) -> None:
        core = Core.open(disk, _settings(layout), self.recorder)
        self.found, self._disk, self._batches = core, disk, {}
        for name in layout.queues:
            core.queues.named(*name)
        if layout.retries is not None:
            core.dispatch = core.new_dispatch(
                core.dispatch.dispatched, retries=layout.retries, room=layout.bitmap or 1, recorder=self.recorder
            )
        self._layout = layout

    def close(self, now: int) -> None:
        self.core.close(now)

    def die(self) -> None:
        if self.recorder is not None:
            self.recorder.take()  # what it has not read yet goes with this disk
        self.found = None

    # -- the log -----------------------------------------------------------------------------------------------------

    def append(self, message: NewMessage, now: int, number: int | None = None) -> MessagePlace:
        core, queue = self.core, self.core.queues.named(*message.queue)
        if number is not None:
            queue.next = number
        newest = core.log.newest
        placed = core.append(queue, message.body, properties_bytes(_properties(message)), now)
        self._last = queue, placed[0], newest
        return MessagePlace(*placed, queue.next - 1)

    def append_many(self, messages: Sequence[NewMessage], now: int) -> list[MessagePlace]:
        columns = Messages.of_list([(*m.queue, m.body, _properties(m)) for m in messages])
        rows = self.core.append_many(columns, now).T.tolist()
        return [MessagePlace(position, size, number) for position, size, _, number in rows]

    def take_back(self, due: int) -> None:
        core, (queue, position, newest) = self.core, self._last
        data, base = core.log.view(position)
        data[position - base :] = 0
        core.log.end, core.log.newest, queue.next = position, newest, due
        if self.recorder is not None:
            del self.recorder.tape[-ROW:]

    def roll(self) -> None:
        self.core.log.roll()

    def flush(self) -> int:
        return self.core.flush()

    def make_ready(self) -> None:
        self.core.log.make_ready()

    def acknowledge(self, to: int) -> None:
        self.core.acknowledge(to)

    def checkpoint(self, now: int) -> int:
        self.core.write_checkpoint(now)
        return self.core.checkpoint.log

    def expire(self, before: int) -> int:
        return self.core.expire(before)

    def read(self, position: int) -> StoredMessage:
        return _stored(self.core.log.at(position))

    def records(self) -> Iterator[StoredMessage]:
        """Every record of the log, from its start to its end. Raises Refused where no record begins."""
        log = self.core.log
        at = log.start
        while at < log.end:
            data, base = log.view(at)
            if data[at - base + 4 : at - base + 8].tobytes() == MAGIC_BLANK.to_bytes(4, "big"):
                at = base + log.file_size
                continue
            record = log.at(at)
            yield _stored(record)
            at += record.size

    def size(self, message: NewMessage) -> int:
        carried = CHECKSUM if self.core.log.sealing else 0
        packed = "".join(f"{name}\x01{value}\x02" for name, value in _properties(message).items())
        return HEADER + carried + len(message.queue[0].encode()) + len(message.body) + len(packed.encode())

    def as_log(self) -> log_spec.State:
        """The commit log. The file being written is the one in which its end lies."""
        if self.found is None:
            return log_spec.INITIAL
        log = self.found.log
        return log_spec.State(
            file_size=log.file_size,
            start=Position(log.start),
            base=Position(log.end - log.end % log.file_size),
            end=Position(log.end),
            flushed=Position(log.flushed),
            acknowledged=Position(self.found.acknowledged),
            clock=log.newest,
            newest=log.newest,
        )

    def flawed(self, flaw: str, message: NewMessage, at: int, time: int) -> int:
        log = self.core.log
        base = log.end - log.end % log.file_size
        data = log.view(base)[0].copy() if base in log.segments.bases else np.zeros(log.file_size, np.uint8)
        record = _with_flaw(flaw, encode(*message.queue, 0, log.end, message.body, store_time=time))
        room = data[at - base : at - base + len(record)]
        room[:] = np.frombuffer(record, np.uint8)[: len(room)]
        stopped, *_ = kernels.scan(data, base, log.end - base, 0, kernels.CRC_TABLES, NOWHERE, 0)
        return int(base + stopped)

    # -- dispatch ----------------------------------------------------------------------------------------------------

    def scan(self) -> ReferenceBatch | None:
        return self._known(self.core.scan())

    def take(self, batch: SubjectBatch | None = None) -> ReferenceBatch | None:
        return self._known(self.core.dispatch.take(None if batch is None else _ours(batch)))

    def _known(self, batch: DispatchBatch | None) -> ReferenceBatch | None:
        if batch is None:
            return None
        if id(batch) not in self._batches:
            self._batches[id(batch)] = ReferenceBatch(batch, self.queues())
        return self._batches[id(batch)]

    def build(self, batch: SubjectBatch) -> None:
        self.core.dispatch.build(_ours(batch))

    def spoil(self, batch: SubjectBatch) -> None:
        for address in _ours(batch).slots.tolist():
            ctypes.memset(address, RUBBISH, ENTRY_BYTES)

    def wrote(self, batch: SubjectBatch) -> None:
        self.core.dispatch.wrote(_ours(batch))

    def failed(self, batch: SubjectBatch, error: Exception) -> bool:
        return self.core.dispatch.failed(_ours(batch), error)

    def commit(self, queue: QueueName) -> int:
        return self.core.dispatch.commit(self._queue(queue))

    def commit_all(self, batch: SubjectBatch) -> None:
        self.core.dispatch.commit_all(_ours(batch))

    def flush_queues(self) -> None:
        self.core.flush_queues()

    def restart(self, kept: Mapping[QueueName, int], position: int) -> None:
        core = self.core
        for name, count in kept.items():
            queue = self._queue(name)
            queue.scanned = queue.committed = count
            for base in queue.segments.bases:
                low, high = max(count, base // ENTRY_BYTES), base // ENTRY_BYTES + queue.per_file
                if low < high:
                    queue.slots(low, high)[:] = RUBBISH
        core.dispatch = core.new_dispatch(
            position, retries=self._layout.retries or 0, room=self._layout.bitmap or 1, recorder=self.recorder
        )
        self._batches = {}

    # -- queues ------------------------------------------------------------------------------------------------------

    def tag_code(self, tag: str) -> int:
        return tag_code(tag) if tag else 0

    def queues(self) -> list[QueueName]:
        return [] if self.found is None else [(queue.topic, queue.id) for queue in self.found.queues.all]

    def _queue(self, name: QueueName) -> ConsumeQueue:
        return self.core.queues.named(*name)

    def reach(self, queue: QueueName) -> QueueReach:
        found = self._queue(queue)
        return QueueReach(found.first, found.committed, found.flushed, found.scanned, found.next)

    def entries(self, queue: QueueName, low: int, high: int) -> list[QueueEntry]:
        found: list[QueueEntry] = self._queue(queue).entries(low, high).tolist()
        return found

    def taken(self, queue: QueueName) -> list[int]:
        return self.core.dispatch.taken(self._queue(queue))

    def written(self, queue: QueueName) -> list[int]:
        return self.core.dispatch.written(self._queue(queue))

    def progress(self) -> DispatchProgress:
        dispatch = self.core.dispatch
        return DispatchProgress(
            dispatch.scanned, dispatch.dispatched, dispatch.full, dispatch.idle, self.core.checkpoint.log
        )

    def outlived(self, queue: QueueName) -> list[tuple[int, int]]:
        found = self._queue(queue)
        low = found.segments.bases[0] // ENTRY_BYTES if found.segments.bases else found.first
        there = enumerate(found.entries(low, found.first).tolist(), low)
        return [(number, position) for number, (position, size, _) in there if size != BLANK_SLOT]

    def on_disk(self, queue: QueueName, low: int, high: int) -> list[QueueEntry]:
        found, safe = self._queue(queue), list[QueueEntry]()
        for base in found.segments.bases:
            content, first = self._disk.tree.find(found.segments.path(base)), base // ENTRY_BYTES
            begin, end = max(low, first), min(high, first + found.per_file)
            if content is not None and begin < end:
                slots = content.durable[(begin - first) * ENTRY_BYTES : (end - first) * ENTRY_BYTES]
                safe += np.frombuffer(slots.tobytes(), ENTRY).tolist()
        return safe

    # -- as it may be found ------------------------------------------------------------------------------------------

    def find(
        self, disk: SimulatedDisk, layout: SubjectLayout, message: NewMessage, number: int, start: int, time: int
    ) -> MessagePlace:
        settings = _settings(layout)
        record = encode(*message.queue, number, start, message.body, store_time=time)
        file = disk.create(f"commitlog/{start:020d}", layout.file_size)
        file.data[: len(record)] = bytearray(record)
        recorder = StoreRecorder() if self._recording else None
        core = Core.open(disk, settings, recorder)
        self.replay()
        self.found, self.recorder, self._disk, self._batches = core, recorder, disk, {}
        return MessagePlace(start, len(record), number)

    def find_file(self, disk: SimulatedDisk, layout: SubjectLayout, length: int) -> None:
        settings = _settings(layout)
        Core.open(disk, settings).close(0)
        disk.create(f"consumequeue/y/0/{0:020d}", length)
        size = settings.queue_file_size or 0
        disk.create(f"consumequeue/y/0/{size:020d}", size)  # a last one may be empty: it was being made
        Core.open(disk, settings).abandon()

    def rebuild(self) -> None:
        disk, settings = self.core.disk, self.core.settings
        self.core.close(self.core.log.newest)
        for topic in disk.folders("consumequeue"):
            for number in disk.folders(f"consumequeue/{topic}"):
                for name in disk.names(f"consumequeue/{topic}/{number}"):
                    disk.delete(f"consumequeue/{topic}/{number}/{name}")
        self.found, self._batches = Core.open(disk, settings, self.recorder), {}

    # -- what it records ---------------------------------------------------------------------------------------------

    def record(self) -> None:
        self.recorder, self._recording = StoreRecorder(), True

    def replay(self) -> Counter[str]:
        recorder, self.recorder = self.recorder, None
        if self.found is not None:
            self.found.recorder = self.found.log.recorder = self.found.dispatch.recorder = None
        return Counter() if recorder is None else require_conformance(recorder)


def _settings(layout: SubjectLayout) -> Settings:
    return Settings(
        file_size=layout.file_size,
        queue_file_size=layout.queue_entries * ENTRY_BYTES,
        synchronous=layout.synchronous,
        workers=1,
        batch_records=layout.batch_records,
        in_flight=layout.in_flight,
        overlap=layout.overlap,
        checksums=layout.checksums,
    )


def _ours(batch: SubjectBatch) -> DispatchBatch:
    return cast("ReferenceBatch", batch).batch


def _properties(message: NewMessage) -> dict[str, str]:
    return {**({"TAGS": message.tag} if message.tag else {}), **message.properties}


def _name(record: Record) -> QueueName:
    return record.topic, record.queue


def _stored(record: Record) -> StoredMessage:
    properties = {name: value for name, value in record.properties.items() if name != "TAGS"}
    if record.sys_flag:
        properties["sys_flag"] = str(record.sys_flag)  # no message is sent with any
    message = NewMessage(_name(record), record.body, record.tag, properties)
    return StoredMessage(message, record.position, record.size, record.number, record.store_time)


def _with_flaw(flaw: str, record: bytes) -> bytes:
    """The record with a flaw of a kind that `log.append` names."""
    match flaw:
        case "claimed":
            return record[:28] + (int.from_bytes(record[28:36], "big") + 1).to_bytes(8, "big") + record[36:]
        case "known":
            return record[:4] + b"\x01" + record[5:]
        case "fits":
            return record[:84] + (int.from_bytes(record[84:88], "big") + 1).to_bytes(4, "big") + record[88:]
        case "intact":
            return record[:8] + bytes([record[8] ^ 1]) + record[9:]
        case "sealed":  # properties may carry a checksum of all before them: here a wrong one
            sealed = b"__CRC32#\x010000000000\x02"
            size = (len(record) + len(sealed)).to_bytes(4, "big")
            return size + record[4:-2] + len(sealed).to_bytes(2, "big") + sealed
    return record
