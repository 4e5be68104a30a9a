"""A random walk over transactions: each step is taken by the implementation and by the models, or refused by both.

All that may happen either way is asked of `choose`, so that a walk is a list of choices. Time is a number. The power
may fail at any use of the disk; then the log that is left tells the models how far they are, and nothing that was
acknowledged may be missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gapless.impl.records.errors import Refused as NotTaken
from gapless.impl.records.input_checks import sound
from gapless.impl.records.record import Messages, Record
from gapless.impl.store.core import Core, Settings
from gapless.impl.store.groups import GroupCursors
from gapless.impl.transactions import names
from gapless.impl.transactions.settings import TransactionSettings
from gapless.impl.transactions.transactions import Transactions
from gapless.properties.machines.mismatch import Mismatch, expect
from gapless.properties.ours.transactional.as_specs import compare, records, saved_cursors
from gapless.properties.ours.transactional.models import AskedDecisions, TransactionModels, from_log, key_of
from gapless.properties.simulation.choices import Choose
from gapless.properties.simulation.simulated_disk import PowerLost, SimulatedDisk
from gapless.spec.language import Refused
from gapless.spec.transaction import Phase

START = 1_700_000_000_000  # ms
STEPS = 40  # of one life
TIMEOUT, INTERVAL = 1000, 3000  # ms
GROUP = "billing"


@dataclass
class TransactionWalk:
    """One store, and what its producers know. `told`: what they were told, by its exclusive end in the log."""

    choose: Choose
    lives: int = 4
    tally: Counter[str] = field(default_factory=Counter)
    story: list[str] = field(default_factory=list)
    preparing: set[str] = field(default_factory=set)  # keys of halves that a crash may have left, or not

    def run(self) -> TransactionWalk:
        """All lives, and rest in the end. Raises Mismatch with the story so far."""
        self.now, self.asked, self.told = START, AskedDecisions(), 0
        self.op_bytes, self.capacity = (7, 20, 4096)[self.choose(3)], (3, 0, 1, 8000)[self.choose(4)]
        self.max_checks = 1 + self.choose(3)
        self.files = Settings(file_size=(4096, 2048)[self.choose(2)], queue_file_size=400, workers=1)
        self.disk = SimulatedDisk(page=(512, 4096)[self.choose(2)])
        self.models = self._fresh()
        self.models.tick(self.now)
        self.decided: dict[str, Phase] = {}  # what producers were told for good
        try:
            self._open()
            for _ in range(self.lives):
                self._live()
            self._come_to_rest()
        except (Refused, Mismatch) as error:
            raise Mismatch(f"{error}\n" + "\n".join(self.story)) from error
        return self

    def _fresh(self) -> TransactionModels:
        return TransactionModels(self.max_checks, self.op_bytes, INTERVAL, self.capacity)

    # -- lives -------------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        self.core = Core.open(self.disk, self.files)
        cursors = GroupCursors(self.disk, self.core.queues.all)
        settings = TransactionSettings(
            max_checks=self.max_checks, transaction_timeout=TIMEOUT, op_batch_bytes=self.op_bytes,
            op_batch_interval=INTERVAL, cache_capacity=self.capacity,
        )  # fmt: skip
        self.tx = Transactions.open(self.core.log, self.core.queues, cursors, settings)
        while self.tx.op_is_due(self.now):  # what a crash took is written anew at once
            self._write_op()

    def _live(self) -> None:
        left = self.choose(40)

        def count_down() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise PowerLost(self.disk.last)

        self.disk.before_each = count_down if self.choose(3) else None
        try:
            for _ in range(1 + self.choose(STEPS)):
                self._step()
        except PowerLost:
            self.tally["power lost in a step"] += 1
        self.disk.before_each = None
        power = self.choose(3) > 0
        self._crash(power=power)

    def _crash(self, *, power: bool) -> None:
        """The process or the power is gone, and the store is found again."""
        self.story.append("power lost" if power else "process killed")
        self.tally["power" if power else "kill"] += 1
        before = [record.position for record in records(self.core)] if not power else []
        self.disk = self.disk.crash(self.choose) if power else self.disk.kill(self.choose)
        old, self.models = self.models, self._fresh()
        core = Core.open(self.disk, self.files)
        found = list(records(core))
        expect(core.log.end >= self.told, f"the log ends at {core.log.end}, and producers know of {self.told}")
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
        self._compare()
        for key, phase in self.decided.items():
            state = self.models.halves.get(key)
            expect(state and state.phase == phase, f"{key} was {phase!r}, as its producer was told, and is {state}")

    def _keep_names(self, old: TransactionModels, found: list[Record]) -> None:
        """What the log says that nobody did is a mismatch: every half was prepared by somebody."""
        known = set(old.halves) | self.preparing
        for record in found:
            if record.topic in (names.HALF_TOPIC, names.PARKED_TOPIC) or record.sys_flag & names.COMMITTED:
                expect(key_of(record) in known, f"{record} is nobody's")

    # -- steps -------------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        steps: tuple[tuple[int, Callable[[], None]], ...] = (
            (6, self._prepare), (2, self._prepare_many), (8, self._commit), (4, self._roll_back),
            (2, self._decide_many), (3, self._tick), (3, self._check), (2, self._park), (2, self._write_op),
            (3, self._advance), (3, self._flush), (2, self._save),
        )  # fmt: skip
        ways = [step for weight, step in steps for _ in range(weight)]
        step = ways[self.choose(len(ways))]
        self.tally[step.__name__] += 1
        self.story.append(step.__name__)
        step()
        self._compare()

    def _compare(self) -> None:
        compare(self.tx, list(records(self.core)), self.models)
        saved = saved_cursors(self.disk)
        expect(saved == self.models.saved, f"the file says {saved}, expected {self.models.saved}")

    def _new(self, low: int) -> list[Record]:
        """The records from `low` on."""
        return list(records(self.core, low))

    def _prepare(self) -> None:
        low, queue = self.core.log.end, self.choose(3)
        self.preparing.add(f"{self.tx.key_prefix}{self.tx.keys:016X}")
        self.tx.prepare("orders", queue, b"x" * self.choose(40), {"TAGS": "new"}, GROUP, self.now, flag=self.choose(2))
        for half in self._new(low):
            self.models.prepare(half, self.asked)

    def _prepare_many(self) -> None:
        low, count = self.core.log.end, 1 + self.choose(6)
        self.preparing |= {f"{self.tx.key_prefix}{self.tx.keys + i:016X}" for i in range(count)}
        some = [("orders", self.choose(3), b"many", {"TAGS": "m"} if self.choose(2) else {}) for _ in range(count)]
        self.tx.prepare_many(sound(Messages.of_list(some)), GROUP, self.now)
        for half in self._new(low):
            # of a batch, those go into the cache that stay there
            self.models.prepare(half, self.asked, cached=half.number >= self.tx.table.end - self.capacity)

    def _any(self) -> int:
        """A half, of whichever version, or none."""
        way = self.choose(6)
        parked = [s.newest for s in self.models.halves.values() if s.phase == Phase.PARKED]
        if way == 0 and parked:
            return parked[self.choose(len(parked))]
        return self.choose(self.tx.table.end + 2) if way == 1 else self._open_one()

    def _open_one(self) -> int:
        undecided = [s.newest for s in self.models.halves.values() if s.phase == Phase.PREPARED]
        return undecided[self.choose(len(undecided))] if undecided else self.choose(self.tx.table.end + 1)

    def _commit(self) -> None:
        self._decide(self._any(), Phase.COMMITTED)

    def _roll_back(self) -> None:
        self._decide(self._any(), Phase.ROLLED_BACK)

    def _decide(self, number: int, decision: Phase) -> None:
        """Both decide it, or both refuse; decided the same way before, it stays as it was."""
        key = self.models.keys.get(number)
        known = key is not None and number >= self.tx.table.base
        state = self.models.halves[key] if key is not None else None
        again = known and state is not None and state.phase == decision
        low, refused = self.core.log.end, ""
        if known and not again:
            self.models.ask(number, decision, self.asked)
        try:
            if decision == Phase.COMMITTED:
                answer = self.tx.commit(number, self.now)
                final = self.core.log.at(answer.position)
                expect(key_of(final) == key and final.number == answer.number, f"the answer names {final}")
            else:
                self.tx.roll_back(number, self.now)
        except NotTaken as error:
            refused = str(error)
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

    def _decide_many(self) -> None:
        numbers = [self._open_one() for _ in range(1 + self.choose(4))]
        decision = (Phase.COMMITTED, Phase.ROLLED_BACK)[self.choose(2)]
        known = [n for n in numbers if n in self.models.keys and n >= self.tx.table.base]
        states = [self.models.halves[self.models.keys[n]] for n in known]
        legal = len(known) == len(numbers) and all(s.phase in (Phase.PREPARED, decision) for s in states)
        opened = list(dict.fromkeys(s.newest for s in states if s.phase == Phase.PREPARED))
        if legal:
            for number in opened:
                self.models.ask(number, decision, self.asked)
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

    def _tick(self) -> None:
        """Time goes by, and ops are written when they are due."""
        self._pass((100, 1000, 1500, 4000)[self.choose(4)])

    def _pass(self, ms: int) -> None:
        """So many ms, and the op is written in the one in which it is due."""
        end = self.now + ms
        while self.tx.batcher and self.models.batcher.since + INTERVAL <= end:
            due = self.models.batcher.since + INTERVAL
            expect(due == self.now or not self.tx.op_is_due(due - 1), "an op is due that is neither full nor old")
            self.now = due
            self.models.tick(self.now)
            expect(self.tx.op_is_due(self.now), f"no op is due, and {self.models.waiting} have waited for long enough")
            self._write_op()
        self.now = end
        self.models.tick(self.now)

    def _write_op(self) -> None:
        low = self.core.log.end
        wrote = self.tx.write_op(self.now)
        new = self._new(low)
        expect(wrote == bool(new), f"{new} came of an op")
        for record in new:
            self.models.write_op(record)

    def _check(self) -> None:
        """Some halves that are due are put back, and asked about."""
        due = self.tx.due(self.now)
        low = self.core.log.end
        self.tx.put_back(due[: 1 + self.choose(len(due) + 1)], self.now)
        for half in self._new(low):
            self.models.prepare(half, self.asked, cached=False)

    def _park(self) -> None:
        low = self.core.log.end
        self.tx.park(self.tx.due(self.now), self.now)
        for copy in self._new(low):
            self.models.park(copy)

    def _advance(self) -> None:
        self.tx.advance()
        self.models.advance(self.tx.half_cursor, self.tx.op_cursor)

    def _flush(self) -> None:
        """All is on disk, and producers know of their decisions."""
        self.core.flush()
        self.core.acknowledge(self.core.log.end)
        self.models.flush(records(self.core))
        self.told = self.core.log.end
        for key, s in self.models.halves.items():
            if s.phase in {Phase.COMMITTED, Phase.PARKED} or s.marks[s.newest]:
                self.decided[key] = Phase(s.phase)

    def _save(self) -> None:
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

    # -- rest --------------------------------------------------------------------------------------------------------

    def _come_to_rest(self) -> None:
        """Producers answer now, or never: after so many rounds every half is decided or set aside."""
        self.story.append("rest")
        answers = self.choose(3)  # all commit, all roll back, none answers
        for _ in range(self.max_checks + 2):
            self._pass(TIMEOUT + 1)
            self._write_op()
            self._park()
            due = self.tx.due(self.now)
            low = self.core.log.end
            self.tx.put_back(due, self.now)
            new = self._new(low)
            for half in new:
                self.models.prepare(half, self.asked, cached=False)
            for half in new if answers < 2 else ():
                self._decide(half.number, (Phase.COMMITTED, Phase.ROLLED_BACK)[answers])
            self._compare()
        for number in range(self.tx.table.end):  # what is over is over
            self._decide(number, (Phase.COMMITTED, Phase.ROLLED_BACK)[self.choose(2)])
        self._compare()
        self._write_op()
        self._advance()
        self._flush()
        self._save()
        self._compare()
        left = [s for s in self.models.halves.values() if s.phase == Phase.PREPARED]
        expect(not left, f"{left} are open, after {self.max_checks + 2} rounds")
        expect(self.tx.half_cursor == self.tx.table.end, "the half cursor has not passed all")
        self.core.close(self.now)
