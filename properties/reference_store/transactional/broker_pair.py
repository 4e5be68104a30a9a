"""A whole store and `spec/broker.py`: one transaction from its producer to the consumers of its queue.

In the spec each record takes one byte of the log, so a position is how many records lie before it. What the producer
alone knows (what it asked for, whether it has paid) is the model's; all else is read from the store: its log by the
bytes, its table of halves, and what consumers see.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from typing import Any

import immutables
import numpy as np

from gapless.impl.dispatch.pool import rebuild
from gapless.impl.records.errors import Refused as NotTaken
from gapless.impl.records.record import Record, properties_bytes
from gapless.impl.store.core import Core, Settings
from gapless.impl.store.groups import GroupCursors
from gapless.impl.transactions import names
from gapless.impl.transactions.settings import TransactionSettings
from gapless.impl.transactions.transactions import Transactions
from gapless.properties.machines.mismatch import expect
from gapless.properties.reference_store.transactional.abstraction import PHASES, records
from gapless.properties.reference_store.transactional.models import key_of, named_by, times_of
from gapless.properties.simulation.choices import Choose
from gapless.properties.simulation.simulated_disk import SimulatedDisk
from gapless.spec import broker
from gapless.spec.broker import Counter as Checks
from gapless.spec.language import Map, Number, Position, Refused, replace
from gapless.spec.transaction import Phase

NOW = 1_700_000_000_000  # ms
ROOM = 1 << 20  # bytes of the model's one file
GROUPS = ("", "billing", "shipping")  # by the numbers that the spec has for them; none has number 0
TOPIC = "orders"


class BrokerPair:
    """A store on a simulated disk, and the model. `key`: of the transaction that is looked at, once it was begun."""

    def __init__(self, max_checks: int, file_size: int, op_bytes: int) -> None:
        self.disk = SimulatedDisk(page=512)
        self.files = Settings(file_size=file_size, queue_file_size=400, workers=1, synchronous=True)
        self.settings = TransactionSettings(max_checks=max_checks, transaction_timeout=0, op_batch_bytes=op_bytes)
        self.model = broker.open(broker.INITIAL, max_checks, ROOM)
        self.key = ""
        self.now = NOW
        self.tally: Counter[str] = Counter()
        self._open()

    def _open(self) -> None:
        self._known: list[Record] = []
        self._read = 0  # exclusive end of these
        self.core = Core.open(self.disk, self.files)
        cursors = GroupCursors(self.disk, self.core.queues.all)
        self.tx = Transactions.open(self.core.log, self.core.queues, cursors, self.settings)

    # -- steps -------------------------------------------------------------------------------------------------------

    def append(self) -> None:
        """A record of another sender."""
        queue = self.core.queues.named("stocks", 0)
        self.core.append(queue, b"other", properties_bytes({}), self._tick())
        self._others()

    def append_half(self) -> None:
        """A half of another sender, who never decides it."""
        self.tx.prepare(TOPIC, 0, b"other", {}, GROUPS[1], self._tick())
        self._others()

    def prepare(self, group: int, queue: int) -> None:
        """The half, or one of another sender if it exists already."""
        if self.model.phase != Phase.ABSENT:
            self.append_half()
            return
        half = self.tx.prepare(TOPIC, queue, b"ours", {}, GROUPS[group], self._tick())
        self.key = key_of(self.tx.half(half.number))
        self.model = broker.prepare(self.model, Number(half.number), self._at(half.position), group, queue)
        self.compare()

    def answer(self) -> None:
        """The half is reported safe to the producer, as soon as it is."""
        first = next((record for record in self._ours() if record.topic == names.HALF_TOPIC), None)

        def is_answered() -> bool:
            if first is None or times_of(first):
                return False
            self.core.acknowledge(first.position + first.size)
            return True

        self._both(is_answered, lambda: broker.answer(self.model))

    def producer(self, step: Callable[[broker.State], broker.State]) -> None:
        """The producer does something of its own, where producers do so; no store knows of it."""
        try:
            self.model = step(self.model)
        except Refused:
            self.tally["a producer does not"] += 1
        self.compare()

    def check(self) -> None:
        """The newest version is put back, where it may be."""
        newest, group = self.model.newest, self.model.group

        def put_back() -> bool:
            return newest >= 0 and len(self.tx.put_back(np.array([newest]), self._tick())[0]) > 0

        number, times = Number(self.tx.table.end), Checks(self.model.checks + 1)
        position = self._end()
        self._both(put_back, lambda: broker.check(self.model, number, position, times, group))

    def commit(self, number: int) -> None:
        """The request of the producer arrives: it names some version, and means the newest."""
        s = self.model
        if s.commits_asked[s.newest] <= s.commits[s.newest]:
            return

        def committed() -> bool:
            end = self.core.log.end
            self.tx.commit(number, self._tick())
            return self.core.log.end > end

        position = self._end()
        self._both(committed, lambda: broker.commit(self.model, position, self.model.meant))

    def roll_back(self, number: int) -> None:
        """Likewise."""
        s = self.model
        if s.rollbacks_asked[s.newest] <= s.rollbacks[s.newest]:
            return

        def rolled_back() -> bool:
            waiting = len(self.tx.batcher)
            self.tx.roll_back(number, self._tick())
            return len(self.tx.batcher) > waiting or self.core.log.end > before

        before = self.core.log.end
        self._both(rolled_back, lambda: broker.roll_back(self.model))

    def mark(self) -> None:
        """An op is written, where a decided half waits for it."""
        position = self._end()

        def marked() -> bool:
            return self.tx.write_op(self._tick())

        self._both(marked, lambda: broker.mark(self.model, position))

    def park(self) -> None:
        """The newest version is set aside, where its checks are spent."""
        newest, position, times = self.model.newest, self._end(), self.model.checks

        def parked() -> bool:
            return newest >= 0 and len(self.tx.park(np.array([newest]), self._tick())) > 0

        self._both(parked, lambda: broker.park(self.model, position, times))

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

        position = self.model.final
        self._both(shown, lambda: broker.dispatch(self.model, position))

    def crash(self, choose: Choose, *, power: bool) -> None:
        """The power or the process is gone; the store is found again."""
        self.tally["power" if power else "kill"] += 1
        self.disk = self.disk.crash(choose) if power else self.disk.kill(choose)
        self._open()
        self._follow_the_disk(self._end())
        self.model = broker.crash(self.model)
        if self._visible():  # the queues were built again from the log
            self.model = broker.dispatch(self.model, self.model.final)
        self.compare()

    # -- both --------------------------------------------------------------------------------------------------------

    def _both(self, step: Callable[[], bool], modelled: Callable[[], broker.State]) -> None:
        """Both take the step, or both refuse. A full file of the log is flushed by the way."""
        before = self.model
        try:
            taken = step()
        except NotTaken:
            taken = False
        try:
            self.model = modelled()
        except Refused as refused:
            expect(not taken, f"the store did it, and the model says: {refused.because}")
            self.tally[f"not {step.__name__}"] += 1
        else:
            expect(taken, f"the model does it, and the store does not; before: {before}")
            self.tally[step.__name__] += 1
            if self._end() > self.model.end and step.__name__ in {"committed", "rolled_back"}:  # the op batch was full
                self.model = broker.mark(self.model, self.model.end)
        self.compare()

    def _others(self) -> None:
        """The last record is none of the transaction's."""
        self.model = broker.append(self.model, Position(self._end() - 1))
        self.compare()

    def _tick(self) -> int:
        self.now += 1
        return self.now

    def _follow_the_disk(self, flushed: Position) -> None:
        """So many records are on disk: the model flushes them one by one."""
        while self.model.flushed < flushed:
            self.model = broker.flush(self.model)

    # -- what the store is in ----------------------------------------------------------------------------------------

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
        state = self.as_broker()
        expect(_plain(state) == _plain(self.model), f"the store is {state}, expected {self.model}")

    def as_broker(self) -> broker.State:
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


def _plain(s: broker.State) -> broker.State:
    """Maps without entries that say nothing."""
    maps: dict[str, Any] = {}
    for name in ("versions", "positions", "times", "commits", "rollbacks", "marks", "commits_asked", "rollbacks_asked"):
        found = getattr(s, name)
        kept = {key: value for key, value in found.entries.items() if value != found.default}
        maps[name] = Map(found.default, immutables.Map(kept))
    return replace(s, **maps)
