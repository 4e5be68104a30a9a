"""A whole store and `spec/broker.py`: one transaction from its producer to the consumers of its queue.

In the spec each record takes one byte of the log, so a position is how many records lie before it. What the producer
alone knows (what it asked for, whether it has paid) is the model's; all else is read from the store: its log by the
bytes, its table of halves, and what consumers see.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import wraps

import numpy as np

from gapless.impl.dispatch.pool import rebuild
from gapless.impl.records.errors import Refused as NotTaken
from gapless.impl.records.record import Record, properties_bytes
from gapless.impl.store.core import Settings
from gapless.impl.transactions import names
from gapless.impl.transactions.settings import TransactionSettings
from gapless.properties.machines.mismatch import expect
from gapless.properties.machines.spec_refinement import SpecRefinement
from gapless.properties.reference_store.transactional.abstraction import PHASES, opened, records
from gapless.properties.reference_store.transactional.models import key_of, named_by, times_of
from gapless.properties.simulation.choices import Choose
from gapless.properties.simulation.simulated_disk import SimulatedDisk
from gapless.spec import broker
from gapless.spec.broker import Counter as Checks
from gapless.spec.language import Number, Position, Refused, replace
from gapless.spec.transaction import Phase

NOW = 1_700_000_000_000  # ms
ROOM = 1 << 20  # bytes of the model's one file
GROUPS = ("", "billing", "shipping")  # by the numbers that the spec has for them; none has number 0
TOPIC = "orders"


class BrokerPair(SpecRefinement[broker.State]):
    """A store on a simulated disk, and the model. `key`: of the transaction that is looked at, once it was begun."""

    refused = (NotTaken,)

    def __init__(self, max_checks: int, file_size: int, op_bytes: int) -> None:
        super().__init__(broker.open(broker.INITIAL, max_checks, ROOM))
        self.disk = SimulatedDisk(page=512)
        self.files = Settings(file_size=file_size, queue_file_size=400, workers=1, synchronous=True)
        self.settings = TransactionSettings(max_checks=max_checks, transaction_timeout=0, op_batch_bytes=op_bytes)
        self.key = ""
        self.now = NOW
        self._open()

    def _open(self) -> None:
        self._known: list[Record] = []
        self._read = 0  # exclusive end of these
        self.core, self.tx = opened(self.disk, self.files, self.settings)

    # -- steps -------------------------------------------------------------------------------------------------------

    def append(self, *, half: bool) -> None:
        """A record of another sender; a half of theirs is never decided."""
        if half:
            self.tx.prepare(TOPIC, 0, b"other", {}, GROUPS[1], self._tick())
        else:
            queue = self.core.queues.named("stocks", 0)
            self.core.append(queue, b"other", properties_bytes({}), self._tick())
        self.take(broker.append, self._end() - 1)
        self.compare()

    def prepare(self, group: int, queue: int) -> None:
        """The half, or one of another sender if it exists already."""
        if self.model.phase != Phase.ABSENT:
            self.append(half=True)
            return
        half = self.tx.prepare(TOPIC, queue, b"ours", {}, GROUPS[group], self._tick())
        self.key = key_of(self.tx.half(half.number))
        self.take(broker.prepare, half.number, self._at(half.position), group, queue)
        self.compare()

    def answer(self) -> None:
        """The half is reported safe to the producer, as soon as it is."""
        first = next((record for record in self._ours() if record.topic == names.HALF_TOPIC), None)

        def answered() -> bool:
            if first is None or times_of(first):
                return False
            self.core.acknowledge(first.position + first.size)
            return True

        self.offer(answered, broker.answer)

    def run(self) -> None:
        """The producer runs its local transaction."""
        self._producer(broker.run)

    def ask_to_commit(self) -> None:
        """The producer asks to commit; whichever version it names, the newest is meant."""
        self._producer(broker.ask_to_commit, self.model.newest)

    def ask_to_roll_back(self) -> None:
        """The producer asks to roll back."""
        self._producer(broker.ask_to_roll_back, self.model.newest)

    def _producer(self, action: Callable[..., broker.State], *arguments: int) -> None:
        """The producer does something of its own, where producers do so; no store knows of it."""
        try:
            self.model = action(self.model, *arguments)
        except Refused:
            self.tally["a producer does not"] += 1
        self.compare()

    def check(self) -> None:
        """The newest version is put back, and a producer asked, where that may be."""
        s, number, position = self.model, self.tx.table.end, self._end()
        self.offer(
            lambda: s.newest >= 0 and len(self.tx.put_back(np.array([s.newest]), self._tick())[0]) > 0,
            *(broker.check, number, position, s.checks + 1, s.group),
        )

    def commit(self, back: int = 0) -> None:
        """The request of the producer arrives: it names a version, so far back, and means the newest."""
        s, end, position = self.model, self.core.log.end, self._end()

        def committed() -> bool:
            self.tx.commit(self._version(back), self._tick())
            return self.core.log.end > end

        if s.commits_asked[s.newest] > s.commits[s.newest]:
            self._offer_with_op(committed, broker.commit, position, s.meant)

    def roll_back(self, back: int = 0) -> None:
        """Likewise."""
        s, end, waiting = self.model, self.core.log.end, len(self.tx.batcher)

        def rolled_back() -> bool:
            self.tx.roll_back(self._version(back), self._tick())
            return len(self.tx.batcher) > waiting or self.core.log.end > end

        if s.rollbacks_asked[s.newest] > s.rollbacks[s.newest]:
            self._offer_with_op(rolled_back, broker.roll_back)

    def _version(self, back: int) -> Number:
        s = self.model
        return s.versions[Checks(max(s.checks - back, 0))]

    def _offer_with_op(self, step: Callable[[], bool], action: Callable[..., broker.State], *arguments: int) -> None:
        """Offer a decision: where the op batch was full, its op is written, too."""

        @wraps(action)
        def decided(s: broker.State, *given: int) -> broker.State:
            s = action(s, *given)
            return broker.mark(s, s.end) if self._end() > s.end else s

        self.offer(step, decided, *arguments)

    def mark(self) -> None:
        """An op is written, where a decided half waits for it."""
        self.offer(lambda: self.tx.write_op(self._tick()), broker.mark, self._end())

    def park(self) -> None:
        """The newest version is set aside, where its checks are spent."""
        s, position = self.model, self._end()
        self.offer(
            lambda: s.newest >= 0 and len(self.tx.park(np.array([s.newest]), self._tick())) > 0,
            *(broker.park, position, s.checks),
        )

    def flush(self) -> None:
        """All is on disk."""
        self.core.flush()
        self.compare()

    def dispatch(self) -> None:
        """Records on disk are shown to consumers."""
        before = self._visible()

        def shown() -> bool:
            rebuild(self.core.dispatch, self.core.limit, workers=1)
            return self._visible() > before

        self.offer(shown, broker.dispatch, self.model.final)

    def crash(self, choose: Choose, *, power: bool) -> None:
        """The power or the process is gone; the store is found again."""
        self.tally["power" if power else "kill"] += 1
        self.disk = self.disk.crash(choose) if power else self.disk.kill(choose)
        self._open()
        self._follow_the_disk(self._end())
        self.take(broker.crash)
        if self._visible():  # the queues were built again from the log
            self.take(broker.dispatch, self.model.final)
        self.compare()

    def rest(self) -> None:
        """The producer answers what it knows, until all is at rest."""
        for _ in range(self.settings.max_checks + 2):
            runs = self.model.runs
            answer = (self.ask_to_commit, self.commit) if runs else (self.ask_to_roll_back, self.roll_back)
            for step in (self.park, self.check, *answer, self.mark, self.flush, self.dispatch):
                step()
        self.require(broker.AT_REST)

    # -- the state of the store --------------------------------------------------------------------------------------

    def _tick(self) -> int:
        self.now += 1
        return self.now

    def _follow_the_disk(self, flushed: Position) -> None:
        """So many records are on disk: the model flushes them one by one."""
        while self.model.flushed < flushed:
            self.take(broker.flush)

    @property
    def _log(self) -> list[Record]:
        """All records. Those that were read in this life are not read again."""
        for record in records(self.core, self._read):
            self._known.append(record)
            self._read = record.position + record.size
        return self._known

    def _ours(self) -> list[Record]:
        return [record for record in self._log if self.key and key_of(record) == self.key]

    def _at(self, position: int) -> Position:
        """The number of records before it."""
        return Position(bisect_left(self._log, position, key=lambda record: record.position))

    def _end(self) -> Position:
        return self._at(self.core.log.end)

    def _visible(self) -> int:
        """Entries of the final in the user's queue that consumers see."""
        final = [record.position for record in self._ours() if record.topic == TOPIC]
        shown = [queue.entries(queue.first, queue.committed) for queue in self.core.queues.all if queue.topic == TOPIC]
        return sum(int((entries["position"] == position).sum()) for entries in shown for position in final)

    def compare(self) -> None:
        """Whole states are the same. Raises Mismatch."""
        self._follow_the_disk(self._at(self.core.log.flushed))
        super().compare()

    def as_spec(self) -> broker.State:
        """The store as a state of the spec."""
        model = self.model
        s = replace(
            broker.INITIAL, lives=model.lives, file_size=model.file_size, max_checks=self.settings.max_checks,
            flushed=self._at(self.core.log.flushed), end=self._end(), acknowledged=model.acknowledged,
            commits_asked=model.commits_asked, rollbacks_asked=model.rollbacks_asked, seen=model.seen,
            runs=model.runs, gave_up=model.gave_up, visible=self._visible(),
        )  # fmt: skip
        for record in self._log:
            s = self._with_record(s, record, self._at(record.position))
        if s.newest >= self.tx.table.base and self.key:
            phase = PHASES[int(self.tx.table.status[s.newest - self.tx.table.base])]
            if phase == Phase.ROLLED_BACK:
                s = replace(s, phase=phase, rollbacks=s.rollbacks.set(s.newest, 1))
            expect(s.phase == phase, f"the table says {phase!r}, and the log {s.phase!r}")
        return s

    def _with_record(self, s: broker.State, record: Record, place: Position) -> broker.State:
        """The state in which this record is in the log, too."""
        is_safe = place < s.flushed
        if record.topic == names.OP_TOPIC:
            if s.newest not in named_by(record):
                return s
            on_disk = (s.phase if s.phase == Phase.COMMITTED else Phase.ROLLED_BACK) if is_safe else s.on_disk
            return replace(s, marks=s.marks.set(s.newest, s.marks[s.newest] + 1), op=place, on_disk=on_disk)
        if key_of(record) != self.key or not self.key:
            return s
        if record.topic == names.HALF_TOPIC:
            return self._with_version(s, record, place)
        if record.topic == names.PARKED_TOPIC:
            return replace(s, phase=Phase.PARKED, parked=place, on_disk=Phase.PARKED if is_safe else s.on_disk)
        return replace(
            s, phase=Phase.COMMITTED, finals=s.finals + 1, commits=s.commits.set(s.newest, s.commits[s.newest] + 1),
            final=place, went=record.queue, on_disk=Phase.COMMITTED if is_safe else s.on_disk,
        )  # fmt: skip

    def _with_version(self, s: broker.State, record: Record, place: Position) -> broker.State:
        number, times, is_safe = Number(record.number), Checks(times_of(record)), place < s.flushed
        queue, group = int(record.properties[names.REAL_QUEUE]), GROUPS.index(record.properties[names.PRODUCER_GROUP])
        first = times == 0
        return replace(
            s, phase=Phase.PREPARED, newest=number, checks=times, versions=s.versions.set(times, number),
            positions=s.positions.set(number, place), times=s.times.set(number, times),
            stored=Checks(s.stored + is_safe), on_disk=Phase.PREPARED if is_safe else s.on_disk,
            group=group if first else s.group, asked=group, meant=queue if first else s.meant, went=queue,
        )  # fmt: skip
