"""The ground truth: what was appended, and therefore what must be found in queues and on the disk.

It knows no model; `dispatch_refinement.py` adds that of dispatch. Throughout, `q` is the number of a queue, from 0.
"""

from __future__ import annotations

from collections import Counter
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from gapless.impl.records.record import properties_bytes, tag_code
from gapless.impl.store.core import Core, Settings
from gapless.properties.machines.mismatch import expect
from gapless.properties.simulation.simulated_disk import SimulatedDisk

if TYPE_CHECKING:
    from gapless.impl.dispatch.batches import DispatchBatch
    from gapless.impl.recorder.recorder import Recorder

TOPIC = "T"
FIRST_TIME = 1_700_000_000_000  # ms
ENTRY = Struct(">qiq")  # position, size, tag code (docs/rocketmq.md#entry)


class AppendedMessage(NamedTuple):
    """A message that was appended, and the entry that its queue must have for it."""

    queue: int
    number: int
    position: int
    size: int
    entry: bytes

    @property
    def end(self) -> int:
        """Where its record ends in the log."""
        return self.position + self.size


class GroundTruth:
    """A store on a simulated disk, and what was appended to it.

    `recorder`: records every life · `queues`: those of one topic · `log`: every message that is in the log, in order;
    `by_queue`: the same for each queue · `sometimes`: how often the situations occurred that runs should come upon.
    """

    def __init__(self, settings: Settings, queues: int, recorder: Recorder | None = None) -> None:
        self.settings = settings
        self.recorder = recorder
        self.disk = SimulatedDisk()
        self.core = Core.open(self.disk, settings, recorder)
        self.queues = [self.core.queues.named(TOPIC, queue) for queue in range(queues)]
        self.log: list[AppendedMessage] = []
        self.by_queue: list[list[AppendedMessage]] = [[] for _ in range(queues)]
        self.sometimes: Counter[str] = Counter()
        self._appended = 0

    # -- the log -----------------------------------------------------------------------------------------------------

    def append(self, q: int) -> AppendedMessage:
        """Append a message to a queue; its tag and its length differ from its neighbours'."""
        self._appended += 1
        return self._append(q, f"tag{self._appended}" if self._appended % 3 else "")

    def _append(self, q: int, tag: str) -> AppendedMessage:
        queue, code = self.queues[q], tag_code(tag) if tag else 0
        properties, number = properties_bytes({"TAGS": tag}) if tag else b"", queue.next
        body, time = bytes(self._appended * 7 % 23), FIRST_TIME + self._appended
        position, size = self.core.append(queue, body, properties, time)
        message = AppendedMessage(q, number, position, size, ENTRY.pack(position, size, code))
        self.log.append(message)
        self.by_queue[q].append(message)
        return message

    def claim(self, q: int, number: int) -> AppendedMessage:
        """Append a message whose record claims this number, whatever number is due."""
        self.queues[q].next = number
        return self._append(q, "")

    def take_back(self, message: AppendedMessage, due: int) -> None:
        """Remove the last message from the log without a trace; `due`: its queue's next number."""
        log = self.core.log
        data, base = log.view(message.position)
        data[message.position - base :][: message.size] = 0
        log.end, self.queues[message.queue].next = message.position, due
        self.log.pop()
        self.by_queue[message.queue].pop()

    def flush_log(self) -> None:
        """Flush all that was appended."""
        self.core.flush()

    def ends_before(self, q: int, position: int) -> int:
        """How many messages of a queue end before a position."""
        return sum(message.end <= position for message in self.by_queue[q])

    # -- the queues --------------------------------------------------------------------------------------------------

    def names(self) -> dict[int, int]:
        """Our number of a queue by the store's own index of it."""
        return {queue.index: q for q, queue in enumerate(self.queues)}

    def rows(self, batch: DispatchBatch) -> list[tuple[int, ...]]:
        """Of each entry of a batch: our number of its queue, its own number, position, size."""
        names = self.names()
        return [(names[index], *rest) for index, *rest in batch.rows.tolist()]

    def read(self, q: int, upto: int) -> None:
        """A consumer reads the entries before a commit position that it was told in this life."""
        count, per_file, queue = upto, self.queues[q].per_file, self.queues[q]
        files = range(0, count, per_file)
        found = b"".join([queue.slots(low, min(count, low + per_file)).tobytes() for low in files])
        if found != self._entries(q, 0, upto):
            for message in self.by_queue[q][:upto]:
                there = ENTRY.unpack_from(found, message.number * ENTRY.size)
                expect(
                    there == ENTRY.unpack(message.entry),
                    f"{queue.name}: consumers find {there} as entry {message.number} (position, size, tag code), and "
                    f"the message is {ENTRY.unpack(message.entry)}",
                )

    def _entries(self, q: int, low: int, high: int) -> bytes:
        return b"".join([message.entry for message in self.by_queue[q][low:high]])

    def look(self) -> None:
        """Consumers see the messages: checked after steps that write into queue files, or make entries visible."""
        for q, queue in enumerate(self.queues):
            expect(queue.committed <= len(self.by_queue[q]), f"{queue.name}: consumers see more than was appended")
            self.read(q, queue.committed)

    def look_at_the_disk(self) -> None:
        """The disk itself holds the entries that count as flushed."""
        for q, queue in enumerate(self.queues):
            for base in queue.segments.bases:
                content, low = self.disk.tree.find(queue.segments.path(base)), base // ENTRY.size
                high = min(queue.flushed, low + queue.per_file)
                if content is not None and low < high:
                    found = content.durable[: (high - low) * ENTRY.size].tobytes()
                    safe = found == self._entries(q, low, high)
                    expect(safe, f"{queue.name}: entries {low} to {high} count as safe, and are not on disk")

    # -- another life ------------------------------------------------------------------------------------------------

    def open_again(self, disk: SimulatedDisk, *, at_least: int) -> None:
        """Open the store from what was left of its disk: all before `at_least` must be in the log."""
        self.disk, self.core = disk, Core.open(disk, self.settings, self.recorder)
        end = self.core.log.end
        expect(end >= at_least, f"the log was safe up to {at_least}, and ends at {end} when it is opened again")
        self.log = [message for message in self.log if message.end <= end]
        self.queues = [self.core.queues.named(TOPIC, q) for q in range(len(self.queues))]
        for q, queue in enumerate(self.queues):
            self.by_queue[q] = [message for message in self.by_queue[q] if message.end <= end]
            expect(queue.next == len(self.by_queue[q]), f"{queue.name}: the next message gets number {queue.next}")
