"""Hypothesis drives one queue and its model: every step is always offered, and both take it, or both refuse.

The rules are the steps of `spec/queue.py`, except those in `NO_COUNTERPART`. Both states are compared inside each step.
A message is appended with any number, as another program might have written it; where the model refuses it, dispatch
must refuse to go on, and the record is taken back. In the end, the checker replays what the store recorded
(`recorded_conformance.py`), up to where a topic was deleted and created again, which is no step of the design.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from gapless.impl.files.queues import BLANK_SLOT, ConsumeQueue
from gapless.impl.recorder.recorder import ROW, Recorder
from gapless.impl.records.errors import StoreError
from gapless.impl.records.record import encode, tag_code
from gapless.impl.store.core import Core, Settings
from gapless.properties.machines import as_spec
from gapless.properties.machines.mismatch import Mismatch
from gapless.properties.machines.recorded_conformance import require_conformance
from gapless.properties.simulation.simulated_disk import SimulatedDisk
from gapless.spec import queue
from gapless.spec.deviations import queue as deviations
from gapless.spec.language import Number, Position, Refused

NO_COUNTERPART = {
    "account": "an implementation does not know what clients say they sent",
    "truncate": "a store that begins again is another queue, and open tells what is left; crashes are tried elsewhere",
}

FILE_SIZE, QUEUE_FILE = 1024, 100  # bytes: some four records, five entries
TOPIC, NAME = "x", "x/0"
BODIES = st.integers(0, 200)  # bytes
TAGS = st.sampled_from(("", "a", "Ärger"))
AWAY = st.sampled_from((0,) * 9 + (-1, 1))  # from the number that is due
STARTS = st.sampled_from((0, 0, 1, 3))  # files that a log has lost at its beginning
LENGTHS = st.sampled_from((QUEUE_FILE,) * 3 + (0, 20, 2 * QUEUE_FILE))
WHICH = st.integers(0, 30)


class QueueMachine(RuleBasedStateMachine):
    """One queue of a store on a simulated disk, and the model."""

    model = queue.INITIAL
    core: Core | None = None
    recorder: Recorder | None = None  # of the open store, as long as only steps of the design were taken

    @initialize()
    def start(self) -> None:
        """Nothing is there yet."""
        self.model, self.core, self.recorder = queue.INITIAL, None, None
        self.now = 1_700_000_000_000
        self.settings = Settings(
            file_size=FILE_SIZE, queue_file_size=QUEUE_FILE, workers=1, batch_records=1, in_flight=1 << 20
        )

    # -- the steps of the model --------------------------------------------------------------------------------------

    @rule(number=st.integers(-1, 7), files=STARTS)
    def open(self, number: int, files: int) -> None:
        """A queue is found whose first message is `number`, in a log that has lost so many files.

        The model's queue is empty then; the queue that is found has its first message and entry already.
        """
        start = Position(files * FILE_SIZE)
        record = encode(TOPIC, 0, number, start, b"first", store_time=self.now)

        def opened(s: queue.State) -> queue.State:
            s = queue.open(s, Number(number), start)
            s = queue.append(s, Number(number), 1, start, len(record), 0)
            return queue.index(s, Number(number), start, len(record), 0)

        self.both(opened, lambda: self._find(start, record))

    @rule(away=AWAY, body=BODIES, tag=TAGS)
    def append(self, away: int, body: int, tag: str) -> None:
        """A record of the queue is in the log, and the scanner meets it."""
        number = Number(self.model.end + away)
        while number == 0 < self.model.end and self.model.indexed < self.model.end:
            self.index()  # dispatch starts a queue again when nothing of it is in flight
        if number == 0 < self.model.end:
            self._stop_recording()
        at: list[int] = []
        appended = self.offered(lambda: at.extend(self._append(number, body, tag)))
        position, size = at or (0, 0)
        self.both(lambda s: _appended(s, number, Position(position), size, tag_code(tag)), lambda: self._scan(appended))

    @rule()
    def index(self) -> None:
        """The next entry is built, and readers see it."""
        number = self.model.indexed
        seen: list[tuple[int, int, int]] = []
        built = self.offered(lambda: seen.append(self._build(number)))
        position, size, tag = seen[0] if seen else (0, 0, 0)
        self.both(lambda s: queue.index(s, number, Position(position), size, tag), lambda: _again(built))

    @rule(length=LENGTHS)
    def find_file(self, length: int) -> None:
        """A file of the queue is found with some length when the store is opened again."""
        self.both(lambda s: queue.find_file(s, Position(0), length, QUEUE_FILE), lambda: self._reopen(length))

    @rule(which=WHICH)
    def outlive(self, which: int) -> None:
        """An entry whose message has expired is still in its file."""
        found = self.queue
        low = found.segments.bases[0] // 20 if found and found.segments.bases else 0
        old = range(low, self.model.first)
        if found is None or not old:
            self.both(lambda s: queue.outlive(s, s.first, Position(0)), lambda: _again(StoreError("no entry is old")))
            return
        number = old[which % len(old)]
        ((position, size, _),) = found.entries(number, number + 1).tolist()
        if size != BLANK_SLOT:
            self.both(lambda s: queue.outlive(s, Number(number), Position(position)), lambda: None)

    @rule(which=WHICH)
    def expire(self, which: int) -> None:
        """The log's oldest files are deleted, as far as that is allowed."""
        if self.core is None or not self.core.log.end:
            return
        times = [record.store_time for record in as_spec.records(self.core)]
        self.core.flush()
        start = Position(self.core.expire(times[which % len(times)]))
        left = self.queue
        first = left.first if left is not None else self.model.first
        self.both(lambda s: queue.expire(s, Number(first), start), lambda: None)

    @rule()
    def rebuild(self) -> None:
        """The consume queue is deleted and built again from the log."""

        def rebuilt(s: queue.State) -> queue.State:
            s = queue.rebuild(s)
            for number in range(s.first, s.end):
                n = Number(number)
                s = queue.index(s, n, s.positions[n], s.sizes[n], s.tags[n])
            return s

        if self.core is not None:
            self.both(rebuilt, self._rebuild)

    @rule()
    def settle(self) -> None:
        """Dispatch reports how far it is."""
        if self.core is not None:
            upto = Position(self.core.dispatch.dispatched)
            self.both(lambda s: queue.settle(s, upto), lambda: None)

    @rule(which=WHICH, away=st.sampled_from((0, 0, 0, 1)), other=st.booleans())
    def acknowledge(self, which: int, away: int, other: bool) -> None:  # noqa: FBT001 - Hypothesis gives all by name.
        """A producer was told where its message is, or something else, and looks there."""
        s = self.model
        number = Number(s.first + which % (s.end - s.first + 1))
        position = Position(s.positions[number] + away)
        self.both(
            lambda s: queue.acknowledge(s, number, position, not other),
            lambda: self._look(number, position, other=other),
        )

    def teardown(self) -> None:
        """What was recorded conforms."""
        self._stop_recording()

    # -- both sides --------------------------------------------------------------------------------------------------

    def both(self, model: Callable[[queue.State], queue.State], implementation: Callable[[], object]) -> None:
        """Both step to the same state, or both refuse and stay as they were."""
        refused: object = None
        try:
            after = model(self.model)
        except Refused as error:
            after, refused = self.model, error
        why = self.offered(implementation)
        if (why is None) != (refused is None):
            raise Mismatch(f"the model: {refused or 'steps'}; the implementation: {why or 'steps'}")
        event("refused" if refused else "taken")
        self.model = after
        found = self.queue
        if found is not None and self.core is not None:
            state = as_spec.queue(self.core, found)
            if state != as_spec.without_expired(after):
                raise Mismatch(f"the queue is {state}, expected {as_spec.without_expired(after)}")

    @staticmethod
    def offered(step: Callable[[], object]) -> StoreError | None:
        """Why the implementation refuses the step; None if it takes it."""
        try:
            step()
        except StoreError as error:
            return error
        return None

    @property
    def queue(self) -> ConsumeQueue | None:
        """The queue, where the store has met it."""
        return self.core.queues.known(TOPIC, 0) if self.core is not None else None

    # -- the implementation ------------------------------------------------------------------------------------------

    def _core(self) -> Core:
        """The store; a new one if none is open."""
        if self.core is None:
            self.disk, self.recorder = SimulatedDisk(), Recorder()
            self.core = Core.open(self.disk, self.settings, self.recorder)
        return self.core

    def _find(self, start: int, record: bytes) -> None:
        if self.core is not None and self.core.log.end:
            Core.open(self.disk, self.settings)  # refused: it has a writer
        disk = SimulatedDisk()
        file = disk.create(f"commitlog/{start:020d}", FILE_SIZE)
        file.data[: len(record)] = bytearray(record)
        recorder = Recorder()
        core = Core.open(disk, self.settings, recorder)
        self._stop_recording()
        self.core, self.disk, self.recorder = core, disk, recorder

    def _append(self, number: int, body: int, tag: str) -> tuple[int, int]:
        """A record that carries `number`, whatever the store would have given it."""
        core = self._core()
        self.now += 10
        found, self.newest = core.queues.named(TOPIC, 0), core.log.newest
        found.next = number
        properties = f"TAGS\x01{tag}\x02".encode() if tag else b""
        return core.append(found, bytes(body), properties, self.now)

    def _scan(self, appended: StoreError | None) -> None:
        """The scanner meets the record; what it refuses is taken back."""
        _again(appended)
        core = self._core()
        low = core.dispatch.scanned
        try:
            while core.dispatch.scanned < core.log.end:
                if core.scan() is None:
                    raise Mismatch(f"the scanner stops at {core.dispatch.scanned}, and the log ends at {core.log.end}")
        except StoreError:
            end = next(record.position for record in as_spec.records(core) if record.position >= low)
            data, base = core.log.view(end)
            data[end - base :] = 0
            core.log.end, core.log.newest = end, self.newest
            core.queues.named(TOPIC, 0).next = self.model.end
            if self.recorder is not None:
                del self.recorder.tape[-ROW:]
            raise

    def _build(self, number: int) -> tuple[int, int, int]:
        core, built = self._core(), 0
        while not built:  # a batch that covers a blank has no entry
            batch = core.dispatch.take()
            if batch is None:
                raise StoreError("nothing waits to be built")
            core.dispatch.build(batch)
            core.dispatch.wrote(batch)
            core.dispatch.commit_all(batch)
            built = len(batch.rows)
        ((position, size, tag),) = core.queues.named(TOPIC, 0).entries(number, number + 1).tolist()
        return position, size, tag

    def _reopen(self, length: int) -> None:
        """A copy of the store, stopped in order, with a queue file of some length."""
        disk = SimulatedDisk() if self.core is None else self.disk.kill()
        Core.open(disk, self.settings).close(self.now)
        path = "consumequeue/y/0/00000000000000000000"
        disk.create(path, length)
        disk.create(f"consumequeue/y/0/{QUEUE_FILE:020d}", QUEUE_FILE)  # a last one may be empty: it was being made
        Core.open(disk, self.settings).abandon()

    def _rebuild(self) -> None:
        core = self._core()
        core.close(self.now)
        for topic in core.disk.folders("consumequeue"):
            for number in core.disk.folders(f"consumequeue/{topic}"):
                for name in core.disk.names(f"consumequeue/{topic}/{number}"):
                    core.disk.delete(f"consumequeue/{topic}/{number}/{name}")
        self.core = Core.open(core.disk, self.settings, self.recorder)

    def _stop_recording(self) -> None:
        """Check what was recorded so far, and record nothing more."""
        if self.recorder is not None:
            require_conformance(self.recorder)
        if self.core is not None:
            self.core.recorder = self.core.log.recorder = self.core.dispatch.recorder = None
        self.recorder = None

    def _look(self, number: int, position: int, *, other: bool) -> None:
        core = self._core()
        found = core.log.at(position)
        if (found.number, other) != (number, False):
            raise StoreError(f"at {position} lies number {found.number}")


def _appended(s: queue.State, number: Number, position: Position, size: int, tag: int) -> queue.State:
    """The model's step; as in a broker's store, a topic may have been deleted and created again."""
    try:
        return queue.append(s, number, 1, position, size, tag)
    except Refused as refused:
        try:
            return deviations.append_to_a_queue_made_anew(s, number, 1, position, size, tag)
        except Refused:
            raise refused from None


def _again(why: StoreError | None) -> None:
    if why is not None:
        raise why
