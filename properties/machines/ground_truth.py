"""The ground that a store is held against: what was appended, and so what must be found in queues and on the disk.

It knows no model. `beside.py` adds one for dispatch.
"""

from __future__ import annotations

from collections import Counter
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from gapless.impl.environment.simulated import SimulatedDisk
from gapless.impl.records.record import properties_bytes, tag_code
from gapless.impl.store.core import Core, Settings

if TYPE_CHECKING:
    from gapless.impl.dispatch.batches import DispatchBatch
    from gapless.impl.recorder.recorder import Recorder

TOPIC = "T"
FIRST_TIME = 1_700_000_000_000  # ms
ENTRY = Struct(">qiq")  # position, size, tag code (reference A.5)


class Departs(Exception):  # noqa: N818 - it names a finding.
    """The implementation and its model are not of one mind, or a consumer would see what is not so."""


def expect(holds: object, otherwise: str) -> None:
    """Raises Departs."""
    if not holds:
        raise Departs(otherwise)


class Message(NamedTuple):
    """What was appended, and what must be in its queue for it."""

    queue: int
    number: int
    position: int
    size: int
    entry: bytes

    @property
    def end(self) -> int:
        """Where its record ends in the log."""
        return self.position + self.size


class Ground:
    """A store on a simulated disk, and what was appended to it.

    `recorder`: told of every step, in every life · `queues`: those of one topic · `log`: every message that is in the
    log, in order; `of`: the same by queue · `sometimes`: how often what runs should come upon was seen.
    """

    def __init__(self, settings: Settings, queues: int, recorder: Recorder | None = None) -> None:
        self.settings = settings
        self.recorder = recorder
        self.disk = SimulatedDisk()
        self.core = Core.open(self.disk, settings, recorder)
        self.queues = [self.core.queues.named(TOPIC, queue) for queue in range(queues)]
        self.log: list[Message] = []
        self.of: list[list[Message]] = [[] for _ in range(queues)]
        self.sometimes: Counter[str] = Counter()
        self._appended = 0

    # -- the log -----------------------------------------------------------------------------------------------------

    def append(self, of: int) -> Message:
        """A message at the end of a queue; its tag and its length differ from its neighbours'."""
        self._appended += 1
        return self._append(of, f"tag{self._appended}" if self._appended % 3 else "")

    def _append(self, of: int, tag: str) -> Message:
        queue, code = self.queues[of], tag_code(tag) if tag else 0
        properties, number = properties_bytes({"TAGS": tag}) if tag else b"", queue.next
        body, time = bytes(self._appended * 7 % 23), FIRST_TIME + self._appended
        position, size = self.core.append(queue, body, properties, time)
        message = Message(of, number, position, size, ENTRY.pack(position, size, code))
        self.log.append(message)
        self.of[of].append(message)
        return message

    def claim(self, of: int, number: int) -> Message:
        """A message whose record says that it has this number, whatever is due."""
        self.queues[of].next = number
        return self._append(of, "")

    def take_back(self, message: Message, due: int) -> None:
        """The last message is taken out of the log, as if it had never been there; `due`: its queue's next number."""
        log = self.core.log
        data, base = log.view(message.position)
        data[message.position - base :][: message.size] = 0
        log.end, self.queues[message.queue].next = message.position, due
        self.log.pop()
        self.of[message.queue].pop()

    def flush_log(self) -> None:
        """All that was appended is on disk."""
        self.core.flush()

    def ends_before(self, of: int, position: int) -> int:
        """How many messages of a queue end before a position."""
        return sum(message.end <= position for message in self.of[of])

    # -- the queues --------------------------------------------------------------------------------------------------

    def names(self) -> dict[int, int]:
        """From the store's own index of a queue to ours."""
        return {queue.index: of for of, queue in enumerate(self.queues)}

    def rows(self, batch: DispatchBatch) -> list[tuple[int, ...]]:
        """Of each entry of a batch: our index of its queue, number, position, size."""
        names = self.names()
        return [(names[index], *rest) for index, *rest in batch.rows.tolist()]

    def read(self, of: int, upto: int) -> None:
        """A consumer reads the entries before a commit position that it was told, in this life."""
        count, per_file, queue = upto, self.queues[of].per_file, self.queues[of]
        files = range(0, count, per_file)
        found = b"".join([queue.slots(low, min(count, low + per_file)).tobytes() for low in files])
        if found != self._entries(of, 0, upto):
            for message in self.of[of][:upto]:
                there = ENTRY.unpack_from(found, message.number * ENTRY.size)
                expect(
                    there == ENTRY.unpack(message.entry),
                    f"{queue.name}: consumers find {there} as entry {message.number} (position, size, tag code), and "
                    f"the message is {ENTRY.unpack(message.entry)}",
                )

    def _entries(self, of: int, low: int, high: int) -> bytes:
        return b"".join([message.entry for message in self.of[of][low:high]])

    def look(self) -> None:
        """What consumers see are the messages: asked after steps that write where entries lie, or show more of them."""
        for of, queue in enumerate(self.queues):
            expect(queue.committed <= len(self.of[of]), f"{queue.name}: consumers see more than was appended")
            self.read(of, queue.committed)

    def look_at_the_disk(self) -> None:
        """The disk itself has the entries that count as flushed."""
        for of, queue in enumerate(self.queues):
            for base in queue.segments.bases:
                content, low = self.disk.tree.find(queue.segments.path(base)), base // ENTRY.size
                high = min(queue.flushed, low + queue.per_file)
                if content is not None and low < high:
                    found = content.durable[: (high - low) * ENTRY.size].tobytes()
                    safe = found == self._entries(of, low, high)
                    expect(safe, f"{queue.name}: entries {low} to {high} count as safe, and are not on disk")

    # -- another life ------------------------------------------------------------------------------------------------

    def open_again(self, disk: SimulatedDisk, *, at_least: int) -> None:
        """The store is opened from what was left of its disk: all before `at_least` must be in the log."""
        self.disk, self.core = disk, Core.open(disk, self.settings, self.recorder)
        end = self.core.log.end
        expect(end >= at_least, f"the log was safe up to {at_least}, and ends at {end} when it is opened again")
        self.log = [message for message in self.log if message.end <= end]
        self.queues = [self.core.queues.named(TOPIC, of) for of in range(len(self.queues))]
        for of, queue in enumerate(self.queues):
            self.of[of] = [message for message in self.of[of] if message.end <= end]
            expect(queue.next == len(self.of[of]), f"{queue.name}: the next message gets number {queue.next}")
