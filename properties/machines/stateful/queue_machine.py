"""Hypothesis drives one queue and its model: every step is always offered, and both take it, or both refuse.

The rules are the steps of `spec/queue.py`, except those in `NO_COUNTERPART`. Both states are compared inside each step.
A message is appended with any number, as another program might have written it; where the model refuses it, dispatch
must refuse to go on, and the record is taken back. In the end, the checker replays what the subject recorded, if it
records, up to where a topic was deleted and created again, which is no step of the design.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import immutables
from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from gapless.properties.machines.mismatch import Mismatch
from gapless.properties.machines.spec_refinement import NothingToDo, require_same
from gapless.properties.machines.stateful.subject_machine import SubjectMachine
from gapless.properties.simulation.simulated_disk import SimulatedDisk
from gapless.properties.subject import ENDLESS, MessagePlace, NewMessage, QueueEntry, SubjectLayout
from gapless.spec import queue
from gapless.spec.catalog import SPECS
from gapless.spec.deviations import queue as deviations
from gapless.spec.language import Map, Number, Position, Refused, replace

NO_COUNTERPART = {
    "index_batch": "an implementation writes no inner batches",
    "tell_last": "an implementation has no table of last entries",
    "tell_first": "as tell_last",
    "account": "an implementation does not know what clients say they sent",
    "truncate": "a store that begins again is another queue, and open tells what is left; crashes are tried elsewhere",
}

FILE_SIZE, QUEUE_ENTRIES = 1024, 5  # bytes: some four records; entries of a queue's file
QUEUE_FILE = 20 * QUEUE_ENTRIES  # bytes
NAME = ("x", 0)
BODIES = st.integers(0, 200)  # bytes
TAGS = st.sampled_from(("", "a", "Ärger"))
AWAY = st.sampled_from((0,) * 9 + (-1, 1))  # from the number that is due
STARTS = st.sampled_from((0, 0, 1, 3))  # files that a log has lost at its beginning
LENGTHS = st.sampled_from((QUEUE_FILE,) * 3 + (0, 20, 2 * QUEUE_FILE))
WHICH = st.integers(0, 30)
NOWHERE = MessagePlace(1 << 40, 1, 0)
"""Where a message would be that the subject refused: the model refuses it for some other reason, or they differ."""

T = TypeVar("T")


class QueueMachine(SubjectMachine):
    """One queue of a store on a simulated disk, and the model."""

    model = queue.INITIAL
    is_open = False

    @initialize()
    def start(self) -> None:
        """Nothing is there yet."""
        self.begin()
        self.model, self.is_open = queue.INITIAL, False
        self.disk = SimulatedDisk()
        self.now = 1_700_000_000_000
        self.layout = SubjectLayout(
            file_size=FILE_SIZE if self.has("roll") else ENDLESS,
            queue_entries=QUEUE_ENTRIES,
            batch_records=1,
            in_flight=1 << 20,
            overlap=self.has("overlap"),
        )

    # -- the steps of the model --------------------------------------------------------------------------------------

    @rule(number=st.integers(-1, 7), files=STARTS)
    def open(self, number: int, files: int) -> None:
        """A queue is found whose first message is `number`, in a log that has lost so many files.

        The model's queue is empty then; the queue that is found has its first message and entry already.
        """
        if not self.has("find"):
            return
        start = Position(files * FILE_SIZE)
        placed, found = self.offered(lambda: self._find(number, start))
        size = (placed or NOWHERE).size

        def opened(s: queue.State) -> queue.State:
            s = queue.open(s, Number(number), start)
            s = queue.append(s, Number(number), 1, start, size, 0)
            return queue.index(s, Number(number), start, size, 0)

        self.both(opened, found)

    @rule(away=AWAY, body=BODIES, tag=TAGS)
    def append(self, away: int, body: int, tag: str) -> None:
        """A record of the queue is in the log, and the scanner meets it."""
        if away and not self.has("claim"):
            return
        number = Number(self.model.end + away)
        while number == 0 < self.model.end and self.model.indexed < self.model.end:
            self.index()  # dispatch starts a queue again when nothing of it is in flight
        if number == 0 < self.model.end:
            self.subject.replay()
        placed, appended = self.offered(lambda: self._append(number if self.has("claim") else None, body, tag))
        position, size, _ = placed or NOWHERE
        code = self.subject.tag_code(tag)
        self.both(lambda s: _appended(s, number, Position(position), size, code), appended or self._scanned())

    @rule()
    def index(self) -> None:
        """The next entry is built, and readers see it."""
        number = self.model.indexed
        seen, built = self.offered(lambda: self._build(number))
        position, size, tag = seen or (0, 0, 0)
        self.both(lambda s: queue.index(s, number, Position(position), size, tag), built)

    @rule(length=LENGTHS)
    def find_file(self, length: int) -> None:
        """A file of the queue is found with some length when the store is opened again."""
        if self.has("find_file"):
            disk = self.disk.kill() if self.is_open else SimulatedDisk()
            _, found = self.offered(lambda: self.subject.find_file(disk, self.layout, length))
            self.both(lambda s: queue.find_file(s, Position(0), length, QUEUE_FILE), found)

    @rule(which=WHICH)
    def outlive(self, which: int) -> None:
        """An entry whose message has expired is still in its file."""
        if not self.has("outlived"):
            return
        old = self.subject.outlived(NAME) if self.knows_queue else []
        if old:
            number, position = old[which % len(old)]
            self.both(lambda s: queue.outlive(s, Number(number), Position(position)), None)
        else:
            self.both(lambda s: queue.outlive(s, s.first, Position(0)), NothingToDo("no entry is old"))

    @rule(which=WHICH)
    def expire(self, which: int) -> None:
        """The log's oldest files are deleted, as far as that is allowed."""
        if not self.has("expire") or not self.is_open or not self.subject.as_log().end:
            return
        times = [record.time for record in self.subject.records()]
        self.subject.flush()
        start = Position(self.subject.expire(times[which % len(times)]))
        first = self.subject.reach(NAME).first if self.knows_queue else self.model.first
        self.both(lambda s: queue.expire(s, Number(first), start), None)

    @rule()
    def rebuild(self) -> None:
        """The consume queue is deleted and built again from the log."""

        def rebuilt(s: queue.State) -> queue.State:
            s = queue.rebuild(s)
            for number in range(s.first, s.end):
                n = Number(number)
                s = queue.index(s, n, s.positions[n], s.sizes[n], s.tags[n])
            return s

        if self.has("rebuild") and self.is_open:
            _, found = self.offered(self.subject.rebuild)
            self.both(rebuilt, found)

    @rule()
    def settle(self) -> None:
        """Dispatch reports how far it is."""
        if self.is_open:
            upto = Position(self.subject.progress().dispatched)
            self.both(lambda s: queue.settle(s, upto), None)

    @rule(which=WHICH, away=st.sampled_from((0, 0, 0, 1)), other=st.booleans())
    def acknowledge(self, which: int, away: int, other: bool) -> None:  # noqa: FBT001 - Hypothesis gives all by name.
        """A producer got the place of its message, or another one, and looks there."""
        s = self.model
        number = Number(s.first + which % (s.end - s.first + 1))
        position = Position(s.positions[number] + away)
        _, found = self.offered(lambda: self._look(number, position, other=other))
        self.both(lambda s: queue.acknowledge(s, number, position, not other), found)

    def teardown(self) -> None:
        """Check that the recording conforms."""
        if hasattr(self, "subject"):
            self.subject.replay()

    # -- both sides --------------------------------------------------------------------------------------------------

    def both(self, model: Callable[[queue.State], queue.State], why: Exception | None) -> None:
        """The subject has taken a step, or refused it: `why`. The model does the same, and comes to the same state."""
        refused: object = None
        try:
            after = model(self.model)
        except Refused as error:
            after, refused = self.model, error
        if (why is None) != (refused is None):
            raise Mismatch(f"the model: {refused or 'steps'}; the implementation: {why or 'steps'}")
        event("refused" if refused else "taken")
        self.model = after
        if self.knows_queue:
            require_same(self.subject.as_queue(NAME), without_expired(after), "the queue: ")

    def offered(self, step: Callable[[], T]) -> tuple[T | None, Exception | None]:
        """The result of a step that the subject takes; or the reason why it refuses."""
        try:
            return step(), None
        except (self.subject.errors.any, NothingToDo) as error:
            return None, error

    @property
    def knows_queue(self) -> bool:
        """True if a store is open that has met the queue."""
        return self.is_open and NAME in self.subject.queues()

    # -- the subject -------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        """A store is open, a new one if there was none."""
        if not self.is_open:
            self.disk = SimulatedDisk()
            self.subject.open(self.disk, self.layout)
            self.is_open = True

    def _find(self, number: int, start: int) -> MessagePlace:
        if self.is_open and self.subject.as_log().end:
            self.subject.open(self.disk, self.layout)  # refused: it has a writer
        disk = SimulatedDisk()
        placed = self.subject.find(disk, self.layout, NewMessage(NAME, b"first"), number, start, self.now)
        self.disk, self.is_open = disk, True
        return placed

    def _append(self, number: int | None, body: int, tag: str) -> MessagePlace:
        """A record that carries `number`, whatever the store would have given it."""
        self._open()
        self.now += 10
        return self.subject.append(NewMessage(NAME, bytes(body), tag), self.now, number)

    def _scanned(self) -> Exception | None:
        """The scanner meets the record; what it refuses is taken back."""
        subject = self.subject
        try:
            while (at := subject.progress().scanned) < (end := subject.as_log().end):
                if subject.scan() is None:
                    raise Mismatch(f"the scanner stops at {at}, and the log ends at {end}")
        except subject.errors.any as error:
            if self.has("claim"):
                subject.take_back(self.model.end)
            return error
        return None

    def _build(self, number: int) -> QueueEntry:
        self._open()
        built = 0
        while not built:  # a batch that covers a blank has no entry
            batch = self.subject.take()
            if batch is None:
                raise NothingToDo("nothing waits to be built")
            self.subject.build(batch)
            self.subject.wrote(batch)
            self.subject.commit_all(batch)
            built = len(batch.entries)
        (entry,) = self.subject.entries(NAME, number, number + 1)
        return entry

    def _look(self, number: int, position: int, *, other: bool) -> None:
        self._open()
        found = self.subject.read(position)
        if (found.number, other) != (number, False):
            raise NothingToDo(f"at {position} lies number {found.number}")


def without_expired(s: queue.State) -> queue.State:
    """A queue without what has expired: the implementation may forget that."""
    maps = {name: getattr(s, name).entries.items() for name in SPECS["queue"].maps}
    left: dict[str, Any] = {
        name: Map(0, immutables.Map({n: value for n, value in some if n >= s.first})) for name, some in maps.items()
    }
    return replace(s, **left)


def _appended(s: queue.State, number: Number, position: Position, size: int, tag: int) -> queue.State:
    """The model's step; as in a broker's store, a topic may have been deleted and created again."""
    try:
        return queue.append(s, number, 1, position, size, tag)
    except Refused as refused:
        try:
            return deviations.append_to_a_queue_made_anew(s, number, 1, position, size, tag)
        except Refused:
            raise refused from None
