"""Random walks over transactions on a disk that fills and fails, and whose old files expire.

The models of the other walks need all of the log; here it loses its beginning, and steps end in the midst. So what is
judged is what producers can observe: each transaction has one final at most, and only if it was requested; what was
answered and is on disk stays, unless it expires; a decision that was refused for want of room is none. Once faults
stop, `max_checks + 2` rounds leave no half undecided, no decided half without its op, and no half that the cursor has
not passed.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gapless.impl.dispatch.pool import rebuild
from gapless.impl.records.errors import Refused as NotTaken
from gapless.impl.records.errors import Stopped, StoreError
from gapless.impl.records.input_checks import sound
from gapless.impl.records.record import Messages, Record
from gapless.impl.store.core import Settings
from gapless.impl.transactions import names
from gapless.impl.transactions.half_table import COMMITTED, GONE, UNDECIDED
from gapless.impl.transactions.settings import TransactionSettings
from gapless.properties.machines.mismatch import expect
from gapless.properties.reference_store.transactional.abstraction import opened, records
from gapless.properties.reference_store.transactional.models import key_of, named_by
from gapless.properties.reference_store.transactional.transaction_pair import GROUP, START, TIMEOUT
from gapless.properties.simulation.choices import Choose, one_of
from gapless.properties.simulation.simulated_disk import PowerLost, SimulatedDisk

LIVES, STEPS = 4, 50
FAULTS = (
    (errno.ENOSPC, "create"), (errno.ENOSPC, "create"), (errno.ENOSPC, "reserve"), (errno.ENOSPC, "write"),
    (errno.EIO, "sync"), (errno.EIO, "create"), (errno.EIO, "write"), (errno.EIO, "delete"),
)  # fmt: skip
"""What goes wrong, and where."""


@dataclass(slots=True)
class TransactionFacts:
    """The known facts about one transaction from outside.

    `final`: where its final lies, once a commit was answered · `is_safe`: what was answered is on disk · `is_over`: it
    was rolled back, and an op on disk says so.
    """

    asked: set[str] = field(default_factory=set)
    final: int = -1
    is_safe: bool = False
    rolled_back: bool = False
    is_over: bool = False


class FaultyWalk:
    """One store, through all its lives. `choose` is asked all that may happen either way."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.tally: Counter[str] = Counter()
        self.story: list[str] = []
        self.facts: dict[str, TransactionFacts] = {}
        self.now = START
        self.max_checks, self.op_bytes = 1 + choose(3), (7, 20, 4096)[choose(3)]
        self.files = Settings(file_size=(4096, 2048)[choose(2)], queue_file_size=400, workers=1)
        self.disk = SimulatedDisk(page=512)

    def run(self) -> FaultyWalk:
        """All lives, and rest in the end. What it raises has the story so far as a note."""
        try:
            self._open()
            for life in range(LIVES):
                self._live(is_last=life == LIVES - 1)
            self._come_to_rest()
        except Exception as error:
            error.add_note("\n".join(self.story))
            raise
        return self

    # -- lives -------------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        """The store is open; where the disk does not let it, once it does."""
        settings = TransactionSettings(
            max_checks=self.max_checks, transaction_timeout=TIMEOUT, op_batch_bytes=self.op_bytes, cache_capacity=3
        )
        for _ in range(2):
            try:
                self.core, self.tx = opened(self.disk, self.files, settings)
            except StoreError:
                self.tally["not opened"] += 1
                self.disk.heal()
                self.disk.unlock()
            else:
                break
        self._judge()

    def _live(self, *, is_last: bool) -> None:
        """The last life runs until rest, if it can."""
        operation = self.choose(60)
        self.disk.lose_power_after(operation if self.choose(2) else 0)
        try:
            for _ in range(1 + self.choose(STEPS)):
                self._step()
        except PowerLost:
            self.tally["power lost in a step"] += 1
        except Stopped:
            self.tally["stopped"] += 1
        else:
            if is_last:
                self.disk.before_each = None
                return
        self._crash(power=self.choose(3) > 0)

    def _crash(self, *, power: bool) -> None:
        self.disk.before_each = None
        self.story.append("power lost" if power else "process killed")
        self.tally["power" if power else "kill"] += 1
        self.disk = self.disk.crash(self.choose) if power else self.disk.kill(self.choose)
        for facts in self.facts.values():
            facts.rolled_back = facts.is_over  # without its op a rollback is none
        self._open()

    def _step(self) -> None:
        steps: tuple[tuple[int, Callable[[], None]], ...] = (
            (6, self._prepare), (2, self._prepare_many), (8, self._decide), (3, self._decide_many), (3, self._write_op),
            (3, self._check), (2, self._park), (3, self._advance), (3, self._flush), (3, self._expire),
            (3, self._fail), (1, self._heal),
        )  # fmt: skip
        step = one_of(self.choose, steps)
        self.tally[step.__name__] += 1
        self.story.append(step.__name__)
        try:
            step()
        except (Stopped, NotTaken):
            raise
        except StoreError:
            self.tally[f"no room in {step.__name__}"] += 1
        self.now += self.choose(2000)
        self._judge()

    # -- steps -------------------------------------------------------------------------------------------------------

    def _key(self, number: int) -> str:
        return self.tx.half(number).properties[names.KEY]

    def _prepare(self) -> None:
        self.tx.counts()  # what a step before this one left in the log counts
        end = self.tx.table.end
        self.facts[self.tx.next_key()] = TransactionFacts()
        try:
            self.tx.prepare("orders", self.choose(3), b"x" * self.choose(40), {}, GROUP, self.now)
        except Stopped:
            raise
        except StoreError:
            expect(self.tx.table.end == end, "there was no room for a half, and there is one")
            raise

    def _prepare_many(self) -> None:
        count = 1 + self.choose(8)
        for at in range(count):
            self.facts[self.tx.next_key(at)] = TransactionFacts()
        some = Messages.of_list([("orders", self.choose(3), b"many", {}) for _ in range(count)])
        self.tx.prepare_many(sound(some), GROUP, self.now)

    def _some(self) -> int:
        """A half that is in the log, of whichever version; -1 where there is none."""
        table = self.tx.table
        there = [n for n in range(table.base, table.end) if table.position[n - table.base] >= self.core.log.start]
        there = [n for n in there if table.status[n - table.base] != GONE]
        return there[self.choose(len(there))] if there else -1

    def _decide(self) -> None:
        number = self._some()
        if number < 0:
            return
        facts, commits = self.facts[self._key(number)], self.choose(2) > 0
        was_open = self._is_open(number)
        facts.asked.add("commit" if commits else "roll back")
        try:
            if commits:
                facts.final = self.tx.commit(number, self.now).position
            else:
                self.tx.roll_back(number, self.now)
                facts.rolled_back = True
        except NotTaken:
            expect(not was_open, f"half {number} is open, and cannot be decided")
        except Stopped:
            raise
        except StoreError:
            is_same = self._is_open(number) == was_open
            expect(is_same, f"half {number}: there was no room for its decision, and it is decided")
            raise

    def _is_open(self, number: int) -> bool:
        table = self.tx.table
        at = table.newest(number) - table.base
        return bool(table.status[at] == UNDECIDED and table.position[at] >= self.core.log.start)

    def _decide_many(self) -> None:
        numbers = {number for _ in range(4) if (number := self._some()) >= 0 and self._is_open(number)}
        decide, what = (self.tx.commit_many, "commit") if self.choose(2) else (self.tx.roll_back_many, "roll back")
        for number in numbers:
            self.facts[self._key(number)].asked.add(what)
        decide(np.array(sorted(numbers), np.int64), self.now)

    def _write_op(self) -> None:
        waiting = self.tx.counts().waiting
        try:
            self.tx.write_op(self.now)
        except StoreError:
            expect(len(self.tx.batcher) == waiting, "an op could not be written, and what it was to name waits no more")
            raise

    def _check(self) -> None:
        self.tx.put_back(self.tx.due(self.now), self.now)

    def _park(self) -> None:
        self.tx.park(self.tx.due(self.now), self.now)

    def _advance(self) -> None:
        self.tx.advance()
        try:
            self.tx.save()
        except NotTaken:
            self.tally["not safe yet"] += 1

    def _flush(self) -> None:
        """All is on disk: what was answered is safe, and an op that is there is there for good."""
        self.core.flush()
        for facts in self.facts.values():
            facts.is_safe |= facts.final >= 0
        for record in records(self.core):
            if record.topic == names.OP_TOPIC:
                for number in named_by(record):
                    self._is_over(number)

    def _is_over(self, number: int) -> None:
        table = self.tx.table
        if table.base <= number < table.end and table.position[number - table.base] >= self.core.log.start:
            facts = self.facts[self._key(number)]
            facts.is_over |= facts.rolled_back

    def _expire(self) -> None:
        """Old files go, or all but the newest."""
        rebuild(self.core.dispatch, self.core.limit, workers=1)
        before = self.core.log.start
        try:
            self.core.expire(
                self.now - 5000 * self.choose(4), most=(1 << 62, self.files.file_size or 0)[self.choose(2)]
            )
        except Stopped:
            raise
        except StoreError:
            if self.core.dispatch.error is not None:
                raise Stopped("dispatch has stopped: a store takes nothing any more") from None
            self.tally["a file could not be deleted"] += 1
        self.tally["expired"] += self.core.log.start > before

    def _fail(self) -> None:
        """The disk fills, or fails, now and then from now on."""
        error, verb = FAULTS[self.choose(len(FAULTS))]
        self.story.append(f"{verb}: {errno.errorcode[error]}")
        self.disk.fail(error, verb=verb, times=1 + self.choose(3))

    def _heal(self) -> None:
        self.disk.heal()

    # -- what is judged ----------------------------------------------------------------------------------------------

    def _judge(self) -> None:
        """Check that each record of the log was requested, once, and that no safe one is missing."""
        found: dict[str, Record] = {}
        for record in records(self.core):
            key = key_of(record)
            if not record.sys_flag & names.COMMITTED:
                continue
            expect(key not in found, f"{key} has two finals: {found.get(key)} and {record}")
            facts = self.facts.get(key)
            expect(facts and "commit" in facts.asked, f"{record}: no producer asked for it")
            expect(facts and not facts.is_over, f"{record}: it was rolled back, by an op on disk")
            found[key] = record
        for key, facts in self.facts.items():
            is_there = key in found or facts.final < self.core.log.start
            expect(is_there or not facts.is_safe, f"{key}: its final, at {facts.final}, was on disk, and is lost")
            if key in found:
                facts.final = found[key].position
            elif not is_there:
                facts.final = -1  # it was lost with the power
        self._judge_table(found)

    def _judge_table(self, found: dict[str, Record]) -> None:
        """A half is committed if its final is there."""
        table = self.tx.table
        for number in range(table.base, table.end):
            at = number - table.base
            if table.status[at] in {UNDECIDED, COMMITTED} and table.position[at] >= self.core.log.start:
                key = self._key(number)
                gone = 0 <= self.facts[key].final < self.core.log.start
                expect(
                    (key in found or gone) == (table.status[at] == COMMITTED),
                    f"half {number}, {key}: its status is {table.status[at]}",
                )

    # -- rest --------------------------------------------------------------------------------------------------------

    def _come_to_rest(self) -> None:
        """Nothing fails any more, and nothing expires. Producers answer, or never."""
        self.story.append("rest")
        self.disk.heal()
        decide = (self.tx.commit_many, self.tx.roll_back_many, None)[self.choose(3)]
        for _ in range(self.max_checks + 2):
            self.now += TIMEOUT + 1
            self.tx.write_ops(self.now)
            self.tx.park(self.tx.due(self.now), self.now)
            _, new = self.tx.put_back(self.tx.due(self.now), self.now)
            if decide is not None:
                for number in new.tolist():
                    self.facts[self._key(number)].asked.add("commit" if decide == self.tx.commit_many else "roll back")
                decide(new, self.now)
        self.tx.write_ops(self.now)
        self._flush()
        self._advance()
        self._judge()
        counts = self.tx.counts()
        expect(counts.undecided == 0, f"{counts.undecided} halves are undecided after {self.max_checks + 2} rounds")
        expect(counts.waiting == 0, f"{counts.waiting} decided halves have no op")
        expect(
            self.tx.half_cursor == self.tx.table.end, f"the half cursor is {self.tx.half_cursor} of {self.tx.table.end}"
        )
        self.core.close(self.now)
