"""Runs of a store under a workload, step by step, on a simulated disk: without threads, by the senders' clock.

Who steps next, and what goes wrong and when, is drawn from the seed, so the same seed gives the same bytes.
"""

from __future__ import annotations

import errno
import random
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from gapless.impl.dispatch.batches import DispatchBatch
from gapless.impl.dispatch.pool import finish
from gapless.impl.records.errors import DiskFull, StoreError
from gapless.impl.records.record import properties_bytes
from gapless.impl.store.core import Core
from gapless.impl.workloads.trial import Trial
from gapless.impl.workloads.workload import BEGIN, Fate, PlannedSend, Result, messages_of
from gapless.properties.simulation.choices import plainest
from gapless.properties.simulation.simulated_disk import PowerLost, SimulatedDisk
from gapless.runs.stepwise_transactions import Answer, StepwiseTransactions

TIMES = 3  # that each fault of the disk occurs in a run, where it has so many messages
SOON = 6  # operations of the disk within which the power is lost, or a flush fails
FILES = 4  # that find no room, at most, before there is some again
SLOW = 0.02  # how likely a slow worker is done at a step, where another is done at the first


class Stepwise:
    """One run. `disk`: what the store lies on, and at the end what it left."""

    def __init__(self, trial: Trial) -> None:
        self.disk = SimulatedDisk()
        self._trial = trial
        self._chance = random.Random(trial.workload.seed)  # noqa: S311 - a seed is no secret
        self._sends: Iterator[PlannedSend] = trial.workload.sends()
        self._plan = self._planned(trial.workload.messages)
        self._going = True
        self._power = ""  # the fault by which the power will be lost
        self._now = BEGIN
        self._waiting: deque[tuple[int, Answer]] = deque()  # answers, and up to where the log is to be flushed for each
        self._tx: StepwiseTransactions | None = None
        if trial.workload.transactions:
            self._tx = StepwiseTransactions(trial, self._chance, self._wait, self._flush)
        self._whole = False  # all was sent
        self._taken: list[DispatchBatch] = []  # by workers
        self._slow: set[int] = set()  # the batches, by their positions, that a slow worker holds

    def _planned(self, messages: int) -> dict[int, list[str]]:
        """Before which message each fault of the disk is on its way."""
        plan: dict[int, list[str]] = {}
        for fault in ("crash", "torn", "eio", "enospc"):
            if fault in self._trial.faults:
                for at in self._chance.sample(range(messages), min(TIMES, messages)):
                    plan.setdefault(at, []).append(fault)
        return plan

    def run(self) -> None:
        """Send all, or as much as is wanted. When the power is lost or the disk fails, the store is opened again."""
        while True:
            core = Core.open(self.disk, self._trial.settings, self._trial.recorder)
            try:
                if self._tx:
                    self._tx.open(core, self.disk)
                self._live(core)
                core.close(self._now)
            except (PowerLost, StoreError) as end:
                self._lose(core, end)
            else:
                self._answer(core.log.end)
                return

    def _lose(self, core: Core, end: BaseException) -> None:
        """The machine starts again, and its disk is what was left of it. Who waits for an answer gets none."""
        fault = self._power if isinstance(end, PowerLost) else "eio"
        self._trial.met[fault] += 1
        core.abandon()
        while self._waiting:
            self._waiting.popleft()[1]("unknown")
        self.disk = self.disk.crash(self._chance.randrange if fault == "torn" else plainest)
        self._power = ""

    # -- one session -------------------------------------------------------------------------------------------------

    def _live(self, core: Core) -> None:
        """Steps in any order, until there is nothing more to send."""
        self._taken.clear()
        self._slow.clear()
        steps = {
            self._append: 8.0,
            self._scan: 2.0,
            self._take: 3.0,
            self._finish: 4.0,
            self._flush: 2.0 if self._trial.settings.synchronous else 0.1,
            self._flush_queues: 0.1,
            self._write_checkpoint: 0.05,
        }
        if self._tx:
            steps |= {self._decide: 4.0, self._write_op: 1.0, self._check: 1.0}
        while self._going:
            (step,) = self._chance.choices([*steps], [*steps.values()])
            step(core)
        self.disk.heal()
        for batch in self._taken:
            core.dispatch.build(batch)
            finish(core.dispatch, batch, None)
        if self._tx:
            self._now = self._tx.finish(core, self._now, rest=self._whole)

    def _append(self, core: Core) -> None:
        group = list(islice(self._sends, self._trial.together))
        self._whole = not group
        self._going = bool(group) and self._trial.proceeds(self._trial.sent)
        for at, send in enumerate(group, self._trial.sent):
            for fault in self._plan.get(at, ()):
                self._arm(fault)
            self._now = send.time
        self._trial.sent += len(group)
        halves = [send for send in group if send.fate is not Fate.SEND]
        plain = [send for send in group if send.fate is Fate.SEND]
        try:
            self._append_all(core, plain)
        except DiskFull:
            self._trial.met["enospc"] += 1
            self._trial.tell_no_room(plain)
        except BaseException:
            self._trial.tell(plain, "unknown")
            raise
        if self._tx and halves:
            self._unless_full(lambda tx: tx.begin(halves, self._now))

    def _append_all(self, core: Core, group: list[PlannedSend]) -> None:
        if len(group) == 1:
            send = group[0]
            queue = core.queues.named(send.topic, send.queue)
            extra, number = properties_bytes(send.properties), queue.next
            position, size = core.append(queue, send.body, extra, self._now)
            self._wait(position + size, partial(self._sent, send, number, position))
        elif group:
            placed = core.append_many(messages_of(group), self._now)
            for send, (position, size, _, number) in zip(group, placed.T.tolist(), strict=True):
                self._wait(position + size, partial(self._sent, send, number, position))

    def _arm(self, fault: str) -> None:
        """The fault occurs soon."""
        if fault == "eio":
            self.disk.fail(errno.EIO, verb="sync", forget=True)
        elif fault == "enospc":
            self.disk.fail(errno.ENOSPC, verb="create", times=1 + self._chance.randrange(FILES))
        elif not self._power:
            self._power = fault
            self.disk.lose_power_at(self.disk.operations + 1 + self._chance.randrange(SOON))

    def _decide(self, core: Core) -> None:  # noqa: ARG002 - all steps are called alike
        self._unless_full(lambda tx: tx.decide(self._now))

    def _write_op(self, core: Core) -> None:  # noqa: ARG002 - as above
        self._unless_full(lambda tx: tx.write_op(self._now))

    def _check(self, core: Core) -> None:
        self._unless_full(lambda tx: tx.check(core, self._now))

    def _unless_full(self, step: Callable[[StepwiseTransactions], None]) -> None:
        """A step of transactions, which another one makes up for where the disk is full."""
        try:
            if self._tx:
                step(self._tx)
        except DiskFull:
            self._trial.met["enospc"] += 1

    def _scan(self, core: Core) -> None:
        try:
            core.scan()
        except DiskFull:
            self._trial.met["enospc"] += 1

    def _take(self, core: Core) -> None:
        batch = core.dispatch.take()
        if batch is not None:
            self._taken.append(batch)
            if "slow-worker" in self._trial.faults and self._trial.occurs("slow-worker", self._chance.random()):
                self._slow.add(batch.low)

    def _finish(self, core: Core) -> None:
        """Some worker is done with its batch, or fails."""
        if not self._taken:
            return
        batch = self._chance.choice(self._taken)
        if batch.low in self._slow and self._chance.random() > SLOW:
            return
        self._taken.remove(batch)
        self._slow.discard(batch.low)
        error = None
        fails = "failing-worker" in self._trial.faults and not batch.attempts
        if fails and self._trial.occurs("failing-worker", self._chance.random()):
            error = OSError(errno.EIO, "a fault that was asked for")
        else:
            core.dispatch.build(batch)
        finish(core.dispatch, batch, error)

    def _flush(self, core: Core) -> None:
        """The log is flushed, and all who waited for it are answered."""
        flushed = core.flush()
        core.acknowledge(flushed)
        self._answer(flushed)

    def _flush_queues(self, core: Core) -> None:
        core.flush_queues()

    def _write_checkpoint(self, core: Core) -> None:
        core.write_checkpoint(self._now)

    # -- answers to producers ----------------------------------------------------------------------------------------

    def _wait(self, end: int, answer: Answer) -> None:
        self._waiting.append((end, answer))

    def _answer(self, flushed: int) -> None:
        while self._waiting and self._waiting[0][0] <= flushed:
            self._waiting.popleft()[1]("ok")

    def _sent(self, send: PlannedSend, number: int, position: int, result: Result) -> None:
        place = (number, position) if result == "ok" else (None, None)
        self._trial.client.tell(send, result, *place)
