"""A naive store: a log in files of one size, and queues in dicts that are rebuilt at every start.

It is tested against the specs of gapless by `naive_subject.py`, and knows nothing of them. A record is its size, the
CRC-32 of all that follows, its position, its number and its time, and then topic, queue, tag and properties as JSON,
and the body. A file that is full ends in a blank. A synchronous store shows consumers only what is on disk.

The disk that it is given has files of a fixed length, mapped into memory (`create`, `open`, `sync`, `delete`), and
small files that are replaced as a whole (`read`, `write`).
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

HEAD = struct.Struct(">IIqqqH")  # size, CRC-32 of all behind it, position, number, time in ms, bytes of JSON
COVERED = 8  # from here on, the CRC-32 covers a record
BLANK = 0xFFFFFFFF  # in place of a size: the log continues in the next file
ROOM = 8  # bytes that are kept for the blank


class NaiveError(Exception):
    """Whatever a naive store raises."""


class Refused(NaiveError):  # noqa: N818 - it names a finding.
    """It cannot be done, and nothing has changed."""


class Stopped(NaiveError):  # noqa: N818 - as above.
    """The disk or a worker failed, and nothing more is promised."""


class Damaged(NaiveError):  # noqa: N818 - as above.
    """The log holds something else than belongs there."""


class Message(NamedTuple):
    """A message in the log."""

    position: int
    size: int
    number: int
    time: int
    topic: str
    queue: int
    tag: str
    properties: dict[str, str]
    body: bytes

    @property
    def end(self) -> int:
        """The end of its record."""
        return self.position + self.size


@dataclass
class Queue:
    """A queue. `entries`: position, size and tag by number; consumers see those before `committed`."""

    first: int = 0
    next: int = 0
    scanned: int = 0
    committed: int = 0
    flushed: int = 0
    entries: dict[int, tuple[int, int, str]] = field(default_factory=dict)
    taken: set[int] = field(default_factory=set)
    written: set[int] = field(default_factory=set)


@dataclass(eq=False)
class Part:
    """A part of the log that a worker builds at a time. `state`: waiting, taken or written."""

    low: int
    high: int
    messages: list[Message]
    state: str = "waiting"
    attempts: int = 0


class NaiveStore:
    """The store on a disk. It is open once it is made."""

    def __init__(
        self, disk: Any, file_size: int, *, synchronous: bool, together: int, flying: int, overlap: bool, retries: int
    ) -> None:
        if file_size <= ROOM:
            raise Refused(f"files of {file_size} bytes are too small for a record")
        try:
            disk.lock()
        except BlockingIOError as error:
            raise Refused("the store is open already") from error
        self.disk, self.file_size, self.synchronous = disk, file_size, synchronous
        self.together, self.most, self.overlap, self.retries = together, flying, overlap, retries
        self.start = self.end = self.newest = 0
        self.file: Any = None  # the one in which the log ends, None where it is still to be made
        self.messages: dict[int, Message] = {}  # by position
        self.queues: dict[tuple[str, int], Queue] = {}
        self.parts: list[Part] = []  # not yet visible with all before them
        self.full, self.trouble, self.gave_up = False, "", ""
        try:
            self.recover()
        except OSError as error:
            disk.unlock()
            raise NaiveError(f"it does not open: {error}") from error
        self.flushed = self.acknowledged = self.scanned = self.dispatched = self.end
        self.newest = max((message.time for message in self.messages.values()), default=0)

    def close(self) -> None:
        """A clean stop: all is on disk, and consumers see all."""
        self.flush()
        while part := self.take() or (self.scan() and self.take()):
            self.build(part)
            self.wrote(part)
            for name in names(part):
                self.commit(self.queues[name])
        self.flush_queues()
        self.disk.unlock()

    # -- the log -----------------------------------------------------------------------------------------------------

    def recover(self) -> None:
        """Read the log up to the first record that is not whole; what follows it is zeros before anything new comes."""
        begun = json.loads(self.disk.read("begin") or b'{"start": 0, "first": []}')
        self.start = self.end = begun["start"]
        for topic, queue, first in begun["first"]:
            self.queues[topic, queue] = Queue(first, first, first, first, first)
        lengths = self.disk.names("log")
        while lengths.get(f"{self.end:020d}") == self.file_size:
            base, self.file = self.end, self.disk.open(self.path(self.end), write=True)
            for message in self.whole_records(base):
                self.found(message)
            if self.end == base + self.file_size:
                self.file.sync()
                continue
            self.file.data[self.end - base :] = 0
            self.file.sync()
            return
        if f"{self.end:020d}" in lengths:
            self.disk.delete(self.path(self.end))  # it was being made
        self.file = self.disk.create(self.path(self.end), self.file_size)

    def whole_records(self, base: int) -> Iterator[Message]:
        """The records of the file from `base` on; `end` is behind the last one, or where the next file begins."""
        data = bytes(self.file.data)
        while (message := decode(data[self.end - base :], self.end)) is not None:
            yield message
            self.end = message.end
        if int.from_bytes(data[self.end - base :][:4], "big") == BLANK:
            self.end = base + self.file_size

    def found(self, message: Message) -> None:
        """A message that was in the log at the start has its entry."""
        self.messages[message.position] = message
        queue = self.queue(message.topic, message.queue)
        queue.entries[message.number] = (message.position, message.size, message.tag)
        queue.next = queue.scanned = queue.committed = queue.flushed = message.number + 1

    def append(self, topic: str, queue: int, body: bytes, tag: str, properties: dict[str, str], now: int) -> Message:
        """A message goes to the log's end."""
        self.must_run(self.trouble)
        size = size_of(topic, queue, body, tag, properties)
        if size + ROOM > self.file_size:
            raise Refused(f"{size} bytes fit into no file")
        if self.end % self.file_size + size + ROOM > self.file_size:
            self.roll()
        file, to, at = self.in_file(), self.queue(topic, queue), self.end % self.file_size
        message = Message(self.end, size, to.next, max(now, self.newest), topic, queue, tag, properties, body)
        file.data[at : at + size] = bytearray(encode(message))
        self.messages[message.position] = message
        self.end, self.newest, to.next = message.end, message.time, to.next + 1
        return message

    def roll(self) -> None:
        """A blank fills the file, which is flushed, and the next one begins."""
        self.must_run(self.trouble)
        at = self.end % self.file_size
        self.in_file().data[at : at + 4] = bytearray(BLANK.to_bytes(4, "big"))
        self.sync()
        self.end = self.flushed = self.end - at + self.file_size
        self.file = None

    def in_file(self) -> Any:
        """The file in which the log ends."""
        if self.file is None:
            try:
                self.file = self.disk.create(self.path(self.end), self.file_size)
            except OSError as error:
                raise NaiveError(f"no new file: {error}") from error
        return self.file

    def flush(self) -> int:
        """All that is in the log is on disk."""
        self.must_run(self.trouble)
        self.sync()
        self.flushed = self.end
        return self.end

    def sync(self) -> None:
        """Put the file with the log's end on disk. If that fails, its contents are unknown: a second try may lie."""
        try:
            if self.file is not None:
                self.file.sync()
        except OSError as error:
            self.trouble = str(error)
            raise Stopped(f"the log was flushed: {error}") from error

    def acknowledge(self, to: int) -> None:
        """Acknowledge to producers that all before `to` is safe."""
        if to > self.flushed:
            raise Refused(f"only what lies before {self.flushed} is safe")
        self.acknowledged = max(self.acknowledged, to)

    def expire(self, before: int) -> int:
        """Files whose messages are all older than `before` are gone, if all in them is safe and visible."""
        self.must_run(self.trouble)
        self.flush_queues()
        done, start = min(self.dispatched, self.flushed), self.start
        kept = min((m.position for m in self.messages.values() if m.time >= before), default=self.end)
        for base in range(start, min(kept, done - 1) + 1, self.file_size):
            start = base
        try:
            if start > self.start:
                self.forget(start)
            for name in [name for name in self.disk.names("log") if int(name) < self.start]:
                self.disk.delete(f"log/{name}")
        except OSError as error:
            raise NaiveError(f"not all files could go: {error}") from error
        return self.start

    def forget(self, start: int) -> None:
        """The log begins at `start`; where queues begin then is known on disk before any file goes."""
        gone = [message for message in self.messages.values() if message.position < start]
        first = {name: queue.first for name, queue in self.queues.items()}
        first |= {(message.topic, message.queue): message.number + 1 for message in gone}
        begun = {"start": start, "first": [(*name, number) for name, number in first.items()]}
        self.disk.write("begin", json.dumps(begun).encode())
        self.start = start
        for name, number in first.items():
            self.queues[name].first = number
        for message in gone:
            del self.messages[message.position], self.queues[message.topic, message.queue].entries[message.number]

    def path(self, base: int) -> str:
        """The file that begins at a position."""
        return f"log/{base:020d}"

    def must_run(self, trouble: str) -> None:
        """Raise what went wrong before."""
        if trouble:
            raise Stopped(trouble)

    # -- queues ------------------------------------------------------------------------------------------------------

    def queue(self, topic: str, number: int) -> Queue:
        """Return a queue, made on first use."""
        return self.queues.setdefault((topic, number), Queue())

    def scan(self) -> Part | None:
        """The next part of the log, of so many messages; their numbers are given."""
        self.must_run(self.gave_up)
        limit = self.flushed if self.synchronous else self.end
        self.full = len(self.parts) >= self.most
        if self.full or self.scanned >= limit:
            return None
        ready = [m for m in self.messages.values() if m.position >= self.scanned and m.end <= limit][: self.together]
        part = Part(self.scanned, ready[-1].end if ready else limit, ready)
        for message in ready:
            self.queues[message.topic, message.queue].scanned = message.number + 1
        self.scanned = part.high
        self.parts.append(part)
        return part

    def may_take(self, part: Part) -> bool:
        """True if a worker may build it: if workers must not overlap, no other one is at its queues."""
        if part.state != "waiting":
            return False
        if self.overlap or part.attempts:
            return True
        busy = [other for other in self.parts if other.state == "taken" or other.attempts]
        return not any(names(part) & names(other) for other in busy if other.state != "written")

    def take(self, part: Part | None = None) -> Part | None:
        """A worker takes this part, or the oldest that it may."""
        self.must_run(self.gave_up)
        if part is None:
            part = next((other for other in self.parts if self.may_take(other)), None)
        elif part not in self.parts or not self.may_take(part):
            raise Refused("no worker may take it")
        if part is not None:
            part.state = "taken"
            for message in part.messages:
                self.queues[message.topic, message.queue].taken.add(message.number)
        return part

    def build(self, part: Part) -> None:
        """The entries are written, where no consumer looks yet."""
        for message in part.messages:
            entries = self.queues[message.topic, message.queue].entries
            entries[message.number] = (message.position, message.size, message.tag)

    def wrote(self, part: Part) -> None:
        """The worker is done."""
        self.must_run(self.gave_up)
        if part not in self.parts or part.state != "taken":
            raise Refused("no worker has it")
        part.state = "written"
        for message in part.messages:
            self.queues[message.topic, message.queue].written.add(message.number)
        self.settle()

    def failed(self, part: Part, why: Exception) -> bool:
        """The worker could not do it; whether another one tries again."""
        self.must_run(self.gave_up)
        if part not in self.parts or part.state != "taken":
            raise Refused("no worker has it")
        part.state, part.attempts = "waiting", part.attempts + 1
        if part.attempts > self.retries:
            self.gave_up = f"the log from {part.low} on could not be built: {why}"
        return not self.gave_up

    def commit(self, queue: Queue) -> int:
        """Consumers see all entries that no gap stands before."""
        self.must_run(self.gave_up)
        while queue.committed in queue.written:
            queue.committed += 1
        self.settle()
        return queue.committed

    def settle(self) -> None:
        """All before `dispatched` is visible."""
        while self.parts and self.is_visible(self.parts[0]):
            self.dispatched = self.parts.pop(0).high

    def is_visible(self, part: Part) -> bool:
        """True if consumers see all of it."""
        seen = (message.number < self.queues[message.topic, message.queue].committed for message in part.messages)
        return part.state == "written" and all(seen)

    def flush_queues(self) -> None:
        """Entries are as safe as their messages: they are built again from them."""
        for queue in self.queues.values():
            while queue.flushed < queue.committed:
                position, size, _ = queue.entries[queue.flushed]
                if position + size > self.flushed:
                    break
                queue.flushed += 1


def names(part: Part) -> set[tuple[str, int]]:
    """The queues that a part is of."""
    return {(message.topic, message.queue) for message in part.messages}


def about(topic: str, queue: int, tag: str, properties: dict[str, str]) -> bytes:
    """Format a record's fields besides the body."""
    return json.dumps([topic, queue, tag, properties], separators=(",", ":")).encode()


def size_of(topic: str, queue: int, body: bytes, tag: str, properties: dict[str, str]) -> int:
    """The bytes of a record."""
    return HEAD.size + len(about(topic, queue, tag, properties)) + len(body)


def encode(message: Message) -> bytes:
    """The record of a message."""
    fields = about(message.topic, message.queue, message.tag, message.properties)
    head = HEAD.pack(message.size, 0, message.position, message.number, message.time, len(fields))
    covered = head[COVERED:] + fields + message.body
    return head[:4] + zlib.crc32(covered).to_bytes(4, "big") + covered


def decode(data: bytes, position: int) -> Message | None:
    """The message whose record lies here, if it is whole, and of this place."""
    if len(data) < HEAD.size:
        return None
    size, crc, named, number, time, length = HEAD.unpack_from(data)
    whole = HEAD.size + length <= size <= len(data) and named == position
    if not whole or zlib.crc32(data[COVERED:size]) != crc:
        return None
    rest = data[HEAD.size : size]
    topic, queue, tag, properties = json.loads(rest[:length])
    return Message(position, size, number, time, topic, queue, tag, properties, rest[length:])
