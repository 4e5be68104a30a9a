"""The thread that sees to ops and checks, step by step: time is a number, and the thread's waiting lets it pass.

No thread is started here. `TransactionService` runs in this one; what it waits for lets time go by, and meanwhile
producers prepare and decide, a producer that is asked does not know or raises, the disk fills now and then, and the
clock is set. Then faults stop, and the store closes in order. What is checked: a check that is counted was asked, no
half is asked about before its time, no decided half waits for its op longer than the interval, each round moves the
cursor, the thread wakes when there is something to do and no more often, and in the end every half is decided or set
aside, and named by an op.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable
from queue import Empty
from typing import Any, TypeVar

import numpy as np

from gapless.impl.environment.operating_system import Clock
from gapless.impl.records.errors import DiskFull
from gapless.impl.store.core import Settings
from gapless.impl.store.transaction_service import TransactionService, UndecidedHalf
from gapless.impl.transactions.half_table import COMMITTED, NAMED, ROLLED_BACK, UNDECIDED
from gapless.impl.transactions.settings import TransactionSettings
from gapless.impl.transactions.transactions import Transactions
from gapless.properties.campaign import answers
from gapless.properties.machines.mismatch import expect
from gapless.properties.reference_store.transactional.abstraction import opened
from gapless.properties.reference_store.transactional.models import key_of, times_of
from gapless.properties.reference_store.transactional.transaction_pair import GROUP, START
from gapless.properties.simulation.choices import Choose
from gapless.properties.simulation.simulated_disk import SimulatedDisk

T = TypeVar("T")
AWAY = "nobody"  # a group without a producer
TIMEOUT, ROUND, INTERVAL = 2000, 5000, 3000  # ms
CHECKS = 2
BUSY = 60_000  # ms of a walk in which anything may happen; a quiet time follows in which all comes to rest
QUIET = ROUND * (CHECKS + 3)
PATIENCE = 50  # ms between two tries of what has failed
YEARS = 10 * 365 * 86_400_000  # ms
SETTINGS_OF_THE_CLOCK = (-YEARS, -3_600_000, -1, 3_600_000, YEARS)  # ms by which it is set


class _ObservedService(TransactionService):
    """After each round, whether or not it was broken off, its walk looks."""

    def __init__(self, walk: ServiceWalk, tx: Transactions) -> None:
        super().__init__(walk, tx)
        self._walk = walk

    def check_round(self) -> None:
        try:
            super().check_round()
        finally:
            self._walk.judge_round()


class _Clock:
    """The clock of a walk, which is set, and the ms that pass, which is what the walk counts."""

    def __init__(self, walk: ServiceWalk) -> None:
        self._walk = walk
        self.set_by = 0

    def __call__(self) -> int:
        return self.passed() + self.set_by

    def passed(self) -> int:
        """Time as it passes."""
        return int(self._walk.now)


class ServiceWalk:
    """One store and its service, until both are closed. `choose` is asked all that may happen either way.

    `asked`: by the key of a transaction, how often its producer was · `tally`: what was met · `early`: who was asked
    before it was time · `wakes`: how often the thread woke in quiet time · `faulty`: the disk fills now and then ·
    `hurried`: it has no quiet time, and closes in the midst of all.
    """

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.disk = SimulatedDisk(page=512)
        self.now: float = START
        self.asked: Counter[str] = Counter()
        self.tally: Counter[str] = Counter()
        self.story: list[str] = []
        self.early: list[str] = []
        self.wakes = 0
        self.faulty, self.hurried = choose(2) == 0, choose(3) == 0
        settings = TransactionSettings(
            max_checks=CHECKS, transaction_timeout=TIMEOUT, check_interval=ROUND, op_batch_interval=INTERVAL,
            op_batch_bytes=(7, 4096)[choose(2)], cache_capacity=3,
        )  # fmt: skip
        files = Settings(file_size=4096, queue_file_size=400, workers=1)
        self.core, self.tx = opened(self.disk, files, settings)
        self._set = _Clock(self)
        self.clock: Clock = self._set
        self._closing = False
        self._began: dict[str, int] = {}  # ms that had passed when each transaction began, by its key
        self._waits: tuple[int, float] = (
            0,
            self.now,
        )  # ops so far, and since when halves wait for the next one, if they do
        self.service = _ObservedService(self, self.tx)
        self.service._news = self  # type: ignore[assignment]  # noqa: SLF001 - it waits for us
        self.service.checks[GROUP] = self._ask

    def run(self) -> ServiceWalk:
        """Until the store is closed. What it raises has the story so far as a note."""
        try:
            self.service._run()  # noqa: SLF001 - it is what the thread does
            self.disk.heal()
            end = self.core.log.end
            self.service.end(self.core.flush)
            self.story.append(f"closed: {self.core.log.end - end} bytes more")
            self._judge_end()
        except Exception as error:
            error.add_note("\n".join(self.story))
            raise
        return self

    # -- what the service takes for its store ------------------------------------------------------------------------

    def _locked(self, what: Callable[[], T]) -> T:
        return what()

    def wait(self, position: int) -> None:
        """All before `position` is on disk."""
        if self.core.log.flushed < position:
            self.core.flush()

    # -- what its thread waits for -----------------------------------------------------------------------------------

    def put(self, _news: None) -> None:
        """There is news: it is seen at once."""

    def get(self, timeout: float) -> None:
        """Time goes by. Raises Empty."""
        expect(not self._closing, "the thread continues, though its store is closed")
        self._judge_wait()
        if self._is_quiet():
            self.disk.heal()
            self.wakes += 1
            most = 8 * (CHECKS + 3) + QUIET // PATIENCE * (self.service.trouble is not None)
            expect(self.wakes <= most, f"the thread woke {self.wakes} times in {self.now - START - BUSY:.0f} ms")
        else:
            self._happens()
        if self.choose(8) == 0:
            self._set.set_by += SETTINGS_OF_THE_CLOCK[self.choose(len(SETTINGS_OF_THE_CLOCK))]
            self.tally["the clock is set"] += 1
        self._judge_wait()
        self.now += max(1.0, timeout * 1000)
        self._closing = self.now >= START + BUSY + (0 if self.hurried else QUIET)
        raise Empty

    def _is_quiet(self) -> bool:
        return self.now >= START + BUSY

    # -- what happens meanwhile --------------------------------------------------------------------------------------

    def _happens(self) -> None:
        if self.faulty and self.choose(4) == 0:
            self.disk.fail(errno.ENOSPC, verb=("create", "reserve", "write")[self.choose(3)], times=1 + self.choose(3))
        for _ in range(self.choose(3)):
            group = AWAY if self.choose(6) == 0 else GROUP
            born = self.clock() - self.choose(2) * 1_000_000  # its producer's clock may be far behind
            self._began[self.tx.next_key()] = self._set.passed()
            self._step(lambda tx, now, g=group, b=born: tx.prepare("orders", 0, b"x", {}, g, now, born=b))  # type: ignore[misc]
        for _ in range(self.choose(2)):
            some = self.tx.undecided(np.arange(self.tx.table.base, self.tx.table.end))
            if len(some):
                number, decide = int(some[self.choose(len(some))]), (self.tx.commit, self.tx.roll_back)[self.choose(2)]
                self._step(lambda _tx, now, n=number, d=decide: d(n, now))  # type: ignore[misc]
        if self.choose(3) == 0:
            self.disk.heal()
        self._judge_counters()

    def _step(self, what: Callable[[Transactions, int], Any]) -> None:
        try:
            self.service.step(what)
        except DiskFull:
            self.tally["no room"] += 1

    def _ask(self, half: UndecidedHalf) -> bool | None:
        """A producer: it knows, or not yet, or raises. In quiet time it always knows."""
        if half.checks == 1 and self._waited(half) <= TIMEOUT:  # raised from here, it would be the producer's error
            self.early.append(f"half {half.number} was asked about too early")
        self.asked[key_of(half.record)] += 1
        self.story.append(f"{self._set.passed() - START} ms: asked about half {half.number}, check {half.checks}")
        answer = 3 if self._is_quiet() else self.choose(4)
        self.tally[("raises", "does not know", "rolls back", "commits")[answer]] += 1
        if answer == 0:
            raise ZeroDivisionError("its producer fails")
        return None if answer == 1 else answer == 3

    def _waited(self, half: UndecidedHalf) -> int:
        """The age of its transaction, in ms."""
        return self._set.passed() - self._began[key_of(half.record)]

    # -- what is judged ----------------------------------------------------------------------------------------------

    def _judge_wait(self) -> None:
        """No half waits for its op longer than the interval, as far as the disk lets the op be written."""
        batcher = self.tx.batcher
        if not batcher or batcher.ops != self._waits[0]:
            self._waits = batcher.ops, self.now
        waited = self.now - self._waits[1]
        expect(self.faulty or waited <= INTERVAL + 1, f"halves have waited for their op for {waited:.0f} ms")

    def _judge_counters(self) -> None:
        """Each version's counter is the one in its record; unless the disk failed, so often was its producer asked."""
        expect(not self.early, "".join(self.early[:1]))
        table = self.tx.table
        for number in self.tx.undecided(np.arange(table.base, table.end)).tolist():
            record = self.tx.half(number)
            counted = int(table.checks[number - table.base])
            expect(counted == times_of(record), f"half {number}: {counted} checks are counted, not {times_of(record)}")
            if not self.faulty:
                asked = self.asked[key_of(record)]
                expect(counted == asked, f"half {number}: {counted} checks are counted, its producer was asked {asked}")

    def judge_round(self) -> None:
        """A round has ended, perhaps in the midst."""
        expect(
            self.tx.half_cursor == self.tx.table.resolved_from(self.tx.half_cursor),
            f"the round is over, and the half cursor is left at {self.tx.half_cursor}",
        )

    def _judge_end(self) -> None:
        """All is decided, or set aside, and named; but for halves whose producers could not be asked."""
        expect(not self.early, "".join(self.early[:1]))
        table = self.tx.table
        for number in range(table.base, table.end):
            status, op = int(table.status[number - table.base]), int(table.op[number - table.base])
            away = self.tx.group_of(number) == AWAY
            expect(
                status != UNDECIDED or away or self.hurried,
                f"half {number} is left undecided, and its producer would know",
            )
            decided = status in {COMMITTED, ROLLED_BACK}
            expect(not decided or op == NAMED, f"half {number} was decided, and no op names it")
        expect(not len(self.tx.batcher), f"the store is closed, and {len(self.tx.batcher)} halves wait for their op")


def walk(seed: int) -> ServiceWalk:
    """The walk of a seed."""
    return ServiceWalk(answers(f"seed {seed}")).run()
