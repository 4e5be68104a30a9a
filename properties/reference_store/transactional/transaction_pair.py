"""The implementation's transactions and the models of them: each step is taken by both, or refused by both.

Time is a number. The disk may be lost at any moment; then the log that is left tells the models how far they are, and
nothing that was acknowledged may be missing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gapless.impl.records.errors import Refused as NotTaken
from gapless.impl.records.input_checks import sound
from gapless.impl.records.record import Messages, Record
from gapless.impl.store.core import Core, Settings
from gapless.impl.store.groups import GroupCursors
from gapless.impl.transactions import names
from gapless.impl.transactions.settings import TransactionSettings
from gapless.properties.machines.mismatch import Mismatch, expect
from gapless.properties.reference_store.transactional.abstraction import compare, opened, records, saved_cursors
from gapless.properties.reference_store.transactional.client_lines import ClientLines
from gapless.properties.reference_store.transactional.models import (
    AskedDecisions,
    TransactionModels,
    from_log,
    key_of,
    times_of,
)
from gapless.properties.simulation.choices import Choose
from gapless.properties.simulation.simulated_disk import SimulatedDisk
from gapless.spec import transaction
from gapless.spec.language import Number, Position, Refused
from gapless.spec.transaction import Phase

START = 1_700_000_000_000  # ms
TIMEOUT, INTERVAL = 1000, 3000  # ms
GROUP = "billing"


@dataclass(frozen=True, slots=True)
class PairSettings:
    """The layout of the store, and its transactions."""

    op_bytes: int = 20
    capacity: int = 3  # of the half cache
    max_checks: int = 2
    file_size: int = 4096
    page: int = 512  # bytes that the disk keeps or loses as one
    sector: int = 512  # bytes of which it keeps all or nothing


@dataclass
class TransactionPair:
    """One store and its models. `reported_end`: what producers know, by its exclusive end in the log.

    `preparing`: keys of halves that a crash may have left, or not · `decided`: the final reports to producers ·
    `client`: what they would write down themselves.
    """

    chosen: PairSettings
    tally: Counter[str] = field(default_factory=Counter)
    preparing: set[str] = field(default_factory=set)
    decided: dict[str, Phase] = field(default_factory=dict)
    client: ClientLines = field(default_factory=ClientLines)

    def start(self) -> None:
        """A new store."""
        self.now, self.asked, self.reported_end = START, AskedDecisions(), 0
        self.files = Settings(file_size=self.chosen.file_size, queue_file_size=400, workers=1)
        self.disk = SimulatedDisk(page=self.chosen.page, sector=self.chosen.sector)
        self.models = self._fresh()
        self.models.tick(self.now)
        self._open()

    def _fresh(self) -> TransactionModels:
        return TransactionModels(self.chosen.max_checks, self.chosen.op_bytes, INTERVAL, self.chosen.capacity)

    def _open(self) -> None:
        settings = TransactionSettings(
            max_checks=self.chosen.max_checks, transaction_timeout=TIMEOUT, op_batch_bytes=self.chosen.op_bytes,
            op_batch_interval=INTERVAL, cache_capacity=self.chosen.capacity,
        )  # fmt: skip
        self.core, self.tx = opened(self.disk, self.files, settings)
        while self.tx.op_is_due(self.now):  # what a crash took is written again at once
            self.write_op()

    # -- steps -------------------------------------------------------------------------------------------------------

    def compare(self) -> None:
        """Whole states are the same."""
        compare(self.tx, list(records(self.core)), self.models)
        saved = saved_cursors(self.disk)
        expect(saved == self.models.saved, f"the file says {saved}, expected {self.models.saved}")

    def _new(self, low: int) -> list[Record]:
        """The records from `low` on."""
        return list(records(self.core, low))

    def prepare(self, queue: int, size: int, flag: int) -> None:
        """A half, of a body of `size` bytes."""
        low = self.core.log.end
        line = self._begins(0, queue, b"x" * size)
        self.tx.prepare("orders", queue, b"x" * size, {"TAGS": "new"}, GROUP, self.now, flag=flag)
        for half in self._new(low):
            self.models.prepare(half, self.asked)
            self.client.answered(line, qoff=half.number, phys=half.position)

    def _begins(self, at: int, queue: int, body: bytes) -> dict[str, Any]:
        """The half that comes after `at` others is asked for."""
        key = self.tx.next_key(at)
        self.preparing.add(key)
        return self.client.sends(key, "orders", queue, body)

    def prepare_many(self, aims: list[tuple[int, bool]]) -> None:
        """Halves: the queue of each, and whether it has a tag."""
        low = self.core.log.end
        lines = [self._begins(at, queue, b"many") for at, (queue, _) in enumerate(aims)]
        some = [("orders", queue, b"many", {"TAGS": "m"} if tagged else {}) for queue, tagged in aims]
        self.tx.prepare_many(sound(Messages.of_list(some)), GROUP, self.now)
        for half, line in zip(self._new(low), lines, strict=True):
            self.client.answered(line, qoff=half.number, phys=half.position)
            # of a batch, those go into the cache that stay there
            self.models.prepare(half, self.asked, cached=half.number >= self.tx.table.end - self.chosen.capacity)

    def _asks(self, number: int, decision: Phase) -> dict[str, Any]:
        """A producer asks for it: whichever version it names, the newest is meant."""
        newest = self.models.halves[self.models.keys[number]].newest
        self.models.ask(number, decision, self.asked)
        half = self.models.records[newest]
        return self.client.decides(half, decision, from_check=times_of(half) > 0)

    def decide(self, number: int, decision: Phase) -> None:
        """Both decide it, or both refuse; decided the same way before, it stays as it was."""
        key = self.models.keys.get(number)
        known = key is not None and number >= self.tx.table.base
        state = self.models.halves[key] if key is not None else None
        again = known and state is not None and state.phase == decision
        low, refused = self.core.log.end, ""
        line = self._asks(number, decision) if known else None
        try:
            if decision == Phase.COMMITTED:
                answer = self.tx.commit(number, self.now)
                final = self.core.log.at(answer.position)
                expect(key_of(final) == key and final.number == answer.number, f"the answer names {final}")
            else:
                self.tx.roll_back(number, self.now)
            if line is not None:
                self.client.answered(line)
        except NotTaken as error:
            refused = str(error)
            if line is not None:
                self.client.refused(line)
        new = self._new(low)
        if again or not known:
            expect(bool(refused) != again, f"half {number}, {decision!r}: expected the answer of before, {refused}")
            expect(not new, f"half {number} was decided, and then came {new}")
            self.tally["again" if again else "unknown"] += 1
            return
        self._follow(new, number, decision, refused)

    def _follow(self, new: list[Record], number: int, decision: Phase, refused: str) -> None:
        """The models take what the log got."""
        try:
            if decision == Phase.ROLLED_BACK:
                self.models.roll_back(number)
            for record in new:
                if record.topic == names.OP_TOPIC:
                    self.models.write_op(record)
                else:
                    self.models.commit(record)
        except Refused:
            if not refused:
                raise
            self.tally["refused"] += 1
            return
        state = self.models.halves[self.models.keys[number]]
        if refused and decision == Phase.COMMITTED:
            expect(state.phase != Phase.PREPARED, f"half {number} is open, and refused: {refused}")
        else:
            expect(not refused, f"the model decides half {number}, and the implementation says {refused}")
            self.tally[decision.name] += 1

    def decide_many(self, numbers: list[int], decision: Phase) -> None:
        """Decide all of these, as `decide`, or none."""
        known = [n for n in numbers if n in self.models.keys and n >= self.tx.table.base]
        states = [self.models.halves[self.models.keys[n]] for n in known]
        legal = len(known) == len(numbers) and all(s.phase in (Phase.PREPARED, decision) for s in states)
        opened = list(dict.fromkeys(s.newest for s in states if s.phase == Phase.PREPARED))
        lines = [self._asks(number, decision) for number in dict.fromkeys(s.newest for s in states)] if legal else []
        low, step = self.core.log.end, self.tx.commit_many
        try:
            if decision == Phase.COMMITTED:
                step(np.array(numbers, np.int64), self.now)
            else:
                self.tx.roll_back_many(np.array(numbers, np.int64), self.now)
        except NotTaken as error:
            expect(not legal, f"{decision!r} of {numbers}: {error}")
            expect(not self._new(low), "a batch was refused, and something is in the log")
            return
        expect(legal, f"{decision!r} of {numbers} was accepted")
        for line in lines:
            self.client.answered(line)
        todo = iter(opened)
        for record in self._new(low):
            if record.topic != names.OP_TOPIC:
                self.models.commit(record)
                continue
            while decision == Phase.ROLLED_BACK and len(self.models.waiting) < len(record.body.split(b",")) - 1:
                self.models.roll_back(next(todo))
            self.models.write_op(record)
        for number in todo:
            if decision == Phase.ROLLED_BACK:
                self.models.roll_back(number)

    def pass_time(self, ms: int) -> None:
        """So many ms, and the op is written in the one in which it is due."""
        end = self.now + ms
        while self.tx.batcher and self.models.batcher.since + INTERVAL <= end:
            due = self.models.batcher.since + INTERVAL
            expect(due == self.now or not self.tx.op_is_due(due - 1), "an op is due that is neither full nor old")
            self.now = due
            self.models.tick(self.now)
            expect(self.tx.op_is_due(self.now), f"no op is due, and {self.models.waiting} have waited for long enough")
            self.write_op()
        self.now = end
        self.models.tick(self.now)

    def write_op(self) -> None:
        """An op names what waits."""
        low = self.core.log.end
        wrote = self.tx.write_op(self.now)
        new = self._new(low)
        expect(wrote == bool(new), f"{new} came of an op")
        for record in new:
            self.models.write_op(record)

    def due(self) -> list[int]:
        """The halves that have been left alone for long enough."""
        return [int(number) for number in self.tx.due(self.now)]

    def put_back(self, numbers: list[int]) -> list[Record]:
        """Put back these halves: both put back the same ones, as new versions, which are returned."""
        low = self.core.log.end
        some, _ = self.tx.put_back(np.array(numbers, np.int64), self.now)
        left = [number for number in numbers if number not in some]
        self._require_refused(left, "put back")
        new = self._new(low)
        self.tally["put back"] += len(new)
        for half in new:
            self.models.prepare(half, self.asked, cached=False)
            self.client.is_asked(half)
        return new

    def park(self, numbers: list[int]) -> None:
        """Set aside these halves: both set aside the same ones."""
        low = self.core.log.end
        some = self.tx.park(np.array(numbers, np.int64), self.now)
        self._require_refused([number for number in numbers if number not in some], "set aside")
        for copy in self._new(low):
            self.models.park(copy)
            self.tally["set aside"] += 1

    def _require_refused(self, numbers: list[int], what: str) -> None:
        """The implementation does not do it; neither does the model."""
        for number in numbers:
            s = self.models.halves[self.models.keys[number]]
            times, end = s.times[Number(number)], Position(self.core.log.end)
            try:
                if what == "put back":
                    next_number = Number(self.tx.table.end)
                    transaction.check(s, next_number, Number(number), end, times + 1, True, True)  # noqa: FBT003
                else:
                    transaction.park(s, Number(number), end, times, True, False)  # noqa: FBT003
            except Refused:
                self.tally[f"not {what}"] += 1
                continue
            raise Mismatch(f"half {number} could be {what}, and is not")

    def advance(self) -> None:
        """Both cursors move on."""
        self.tx.advance()
        self.models.advance(self.tx.half_cursor, self.tx.op_cursor)

    def flush(self) -> None:
        """All is on disk, and producers know of their decisions."""
        self.core.flush()
        self.core.acknowledge(self.core.log.end)
        self.models.flush(records(self.core))
        self.reported_end = self.core.log.end
        self.client.tell()
        for key, s in self.models.halves.items():
            if s.phase in {Phase.COMMITTED, Phase.PARKED} or s.marks[s.newest]:
                self.decided[key] = Phase(s.phase)

    def save(self) -> None:
        """Both save the cursors, or both refuse."""
        flushed = self.core.log.flushed  # a file that is full was flushed, too
        self.models.flush(record for record in records(self.core) if record.position < flushed)
        try:
            self.tx.save()
        except NotTaken:
            self.tally["not safe yet"] += 1
            expect(flushed < self.core.log.end, "all is on disk, and the cursors are not saved")
            return
        self.models.save()

    # -- crashes and rest --------------------------------------------------------------------------------------------

    def crash(self, choose: Choose, *, power: bool) -> None:
        """The process or the power is gone, and the store is found again."""
        self.tally["power" if power else "kill"] += 1
        self.client.lose()
        before = [record.position for record in records(self.core)] if not power else []
        self.disk = self.disk.crash(choose) if power else self.disk.kill(choose)
        old, self.models = self.models, self._fresh()
        core = Core.open(self.disk, self.files)
        found = list(records(core))
        expect(
            core.log.end >= self.reported_end,
            f"the log ends at {core.log.end}, and producers know of {self.reported_end}",
        )
        expect(before == [record.position for record in found][: len(before)], "a kill took records")
        core.abandon()
        self._keep_names(old, found)
        self.models.tick(self.now)
        self.core = core
        cursors = GroupCursors(self.disk, core.queues.all)
        saved = (
            cursors.get(names.CHECKING_GROUP, names.HALF_TOPIC, 0) or 0,
            cursors.get(names.CHECKING_GROUP, names.OP_TOPIC, 0) or 0,
        )
        from_log(self.models, found, self.asked, saved)
        self._open()
        self.compare()
        for key, phase in self.decided.items():
            state = self.models.halves.get(key)
            expect(state and state.phase == phase, f"{key} was {phase!r}, as reported to its producer, and is {state}")

    def _keep_names(self, old: TransactionModels, found: list[Record]) -> None:
        """Check that every record of the log has its origin: each half was prepared here."""
        known = set(old.halves) | self.preparing
        for record in found:
            if record.topic in (names.HALF_TOPIC, names.PARKED_TOPIC) or record.sys_flag & names.COMMITTED:
                expect(key_of(record) in known, f"{record} is of no known sender")

    def come_to_rest(self, answer: Phase | None, again: Choose) -> None:
        """Producers answer so, or never: after so many rounds every half is decided or set aside.

        `again`: how each half is decided again, which changes nothing.
        """
        for _ in range(self.chosen.max_checks + 2):
            self.pass_time(TIMEOUT + 1)
            self.write_op()
            self.park(self.due())
            for half in self.put_back(self.due()):
                if answer is not None:
                    self.decide(half.number, answer)
            self.compare()
        for number in range(self.tx.table.end):  # what is over is over
            self.decide(number, (Phase.COMMITTED, Phase.ROLLED_BACK)[again(2)])
        self.compare()
        self.write_op()
        self.advance()
        self.flush()
        self.save()
        self.compare()
        left = [s for s in self.models.halves.values() if s.phase == Phase.PREPARED]
        expect(not left, f"{left} are open, after {self.chosen.max_checks + 2} rounds")
        expect(self.tx.half_cursor == self.tx.table.end, "the half cursor has not passed all")
        self.core.close(self.now)
