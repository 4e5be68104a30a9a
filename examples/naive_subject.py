"""The naive store as a subject: what the machines of gapless ask for, in its own words.

`python -m gapless.properties.machines.crashes --subject examples.naive_subject:NaiveSubject` tries it under crashes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, cast

from examples.naive_store import Message, NaiveError, NaiveStore, Part, Queue, Refused, Stopped, encode, size_of
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
from gapless.spec import log
from gapless.spec.language import Position

ONE_CHECKSUM = "one checksum covers all of a record"


class NaiveBatch:
    """A part of the log, as the machines see it."""

    def __init__(self, part: Part) -> None:
        self.part, self.low, self.high = part, part.low, part.high
        self.entries = [((m.topic, m.queue), m.number, m.position, m.size) for m in part.messages]

    def __repr__(self) -> str:
        return f"the log from {self.low} to {self.high}"


class NaiveSubject(Subject):
    """A naive store on a disk of the machine."""

    errors = SubjectErrors(any=NaiveError, refused=Refused, stopped=Stopped, damaged=NaiveError)
    files = {"log": "log/*"}  # noqa: RUF012 - the protocol says that it stays.
    absent = {  # noqa: RUF012 - as above.
        "append_many": "messages are appended one by one",
        "make_ready": "a file is made when it is needed",
        "checkpoint": "the whole log is read at every start",
        "claim": "no other process writes its files",
        "find": "no other process writes its files",
        **dict.fromkeys(("find_file", "outlived", "rebuild", "on_disk"), "queues are in memory"),
        "restart": "dispatch begins again with the store",
        "record": "it writes no traces",
    }
    flawless = {  # noqa: RUF012 - as above.
        "known": "records have no magic number",
        "fits": "the body is what is left of a record",
        "sealed": ONE_CHECKSUM,
    }

    def __init__(self) -> None:
        self.store: NaiveStore
        self.is_open = False
        self.batches: dict[int, NaiveBatch] = {}  # by identity: of this life

    # -- a life ------------------------------------------------------------------------------------------------------

    def open(self, disk: SimulatedDisk, layout: SubjectLayout) -> None:
        self.store = NaiveStore(
            disk,
            layout.file_size,
            synchronous=layout.synchronous,
            together=layout.batch_records,
            flying=layout.in_flight,
            overlap=layout.overlap,
            retries=3 if layout.retries is None else layout.retries,
        )
        self.is_open, self.batches = True, {}
        for name in layout.queues:
            self.store.queue(*name)

    def close(self, now: int) -> None:  # noqa: ARG002 - it keeps no such time.
        self.store.close()

    def die(self) -> None:
        self.is_open = False

    # -- the log -----------------------------------------------------------------------------------------------------

    def append(self, message: NewMessage, now: int, number: int | None = None) -> MessagePlace:  # noqa: ARG002 - see `absent`.
        properties = dict(message.properties)
        placed = self.store.append(*message.queue, message.body, message.tag, properties, now)
        return MessagePlace(placed.position, placed.size, placed.number)

    def roll(self) -> None:
        self.store.roll()

    def flush(self) -> int:
        return self.store.flush()

    def acknowledge(self, to: int) -> None:
        self.store.acknowledge(to)

    def expire(self, before: int) -> int:
        return self.store.expire(before)

    def read(self, position: int) -> StoredMessage:
        if position not in self.store.messages:
            raise Refused(f"no record begins at {position}")
        return stored(self.store.messages[position])

    def records(self) -> Iterator[StoredMessage]:
        return map(stored, self.store.messages.values())

    def size(self, message: NewMessage) -> int:
        return size_of(*message.queue, message.body, message.tag, dict(message.properties))

    def flawed(self, flaw: str, message: NewMessage, at: int, time: int) -> int:
        store = self.store
        kept, end, base = store.in_file().data.copy(), store.end, store.end - store.end % store.file_size
        found = Message(end + (flaw == "claimed"), self.size(message), 0, time, *message.queue, "", {}, message.body)
        record = bytearray(encode(found))
        record[-1] ^= flaw == "intact"
        room = store.in_file().data[at - base : at - base + len(record)]
        room[:] = record[: len(room)]
        store.end = base
        list(store.whole_records(base))
        stopped, store.end, store.in_file().data[:] = store.end, end, kept
        return stopped

    def as_log(self) -> log.State:
        if not self.is_open:
            return log.INITIAL
        s = self.store
        return log.State(
            file_size=s.file_size,
            start=Position(s.start),
            base=Position(s.end - s.end % s.file_size),
            end=Position(s.end),
            flushed=Position(s.flushed),
            acknowledged=Position(s.acknowledged),
            clock=s.newest,
            newest=s.newest,
        )

    # -- dispatch ----------------------------------------------------------------------------------------------------

    def scan(self) -> NaiveBatch | None:
        return self.known(self.store.scan())

    def take(self, batch: SubjectBatch | None = None) -> NaiveBatch | None:
        return self.known(self.store.take(None if batch is None else part_of(batch)))

    def known(self, part: Part | None) -> NaiveBatch | None:
        """A batch is the same whenever it is met."""
        return None if part is None else self.batches.setdefault(id(part), NaiveBatch(part))

    def build(self, batch: SubjectBatch) -> None:
        self.store.build(part_of(batch))

    def spoil(self, batch: SubjectBatch) -> None:
        for name, number, *_ in batch.entries:
            self.store.queues[name].entries[number] = (-1, -1, "rubbish")

    def wrote(self, batch: SubjectBatch) -> None:
        self.store.wrote(part_of(batch))

    def failed(self, batch: SubjectBatch, error: Exception) -> bool:
        return self.store.failed(part_of(batch), error)

    def commit(self, queue: QueueName) -> int:
        return self.store.commit(self.queue(queue))

    def flush_queues(self) -> None:
        self.store.flush_queues()

    # -- queues ------------------------------------------------------------------------------------------------------

    def tag_code(self, tag: str) -> int:
        return zlib.crc32(tag.encode())

    def queues(self) -> list[QueueName]:
        return [*self.store.queues]

    def queue(self, name: QueueName) -> Queue:
        """One of its queues."""
        return self.store.queues[name]

    def reach(self, queue: QueueName) -> QueueReach:
        found = self.queue(queue)
        return QueueReach(found.first, found.committed, found.flushed, found.scanned, found.next)

    def entries(self, queue: QueueName, low: int, high: int) -> list[QueueEntry]:
        there = (self.queue(queue).entries.get(number, (0, 0, "")) for number in range(low, high))
        return [(position, size, self.tag_code(tag)) for position, size, tag in there]

    def taken(self, queue: QueueName) -> list[int]:
        return sorted(self.queue(queue).taken)

    def written(self, queue: QueueName) -> list[int]:
        return sorted(self.queue(queue).written)

    def progress(self) -> DispatchProgress:
        s = self.store
        return DispatchProgress(s.scanned, s.dispatched, s.full, not s.parts, 0)


def part_of(batch: Any) -> Part:
    """The store's own part of the log behind a batch."""
    return cast("NaiveBatch", batch).part


def stored(m: Message) -> StoredMessage:
    """A message of the store's in the words of the machines."""
    message = NewMessage((m.topic, m.queue), m.body, m.tag, m.properties)
    return StoredMessage(message, m.position, m.size, m.number, m.time)
