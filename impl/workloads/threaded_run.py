"""Runs of a store under a workload, with threads and on the real disk; `stepwise.py` has those on a simulated one."""

from __future__ import annotations

import errno
import random
import time
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from gapless.impl.dispatch.batches import DispatchBatch
from gapless.impl.records.errors import DiskFull
from gapless.impl.store.core import Core
from gapless.impl.store.store import Store
from gapless.impl.workloads.producers import ROUNDS, SETTINGS
from gapless.impl.workloads.threaded_transactions import ThreadedTransactions
from gapless.impl.workloads.trial import Trial
from gapless.impl.workloads.workload import BEGIN, Fate, PlannedSend, messages_of

NAP = 0.02  # seconds that a slow worker takes


class _SendersClock:
    """The senders' clock. Time passes by it, too: the same seed gives the same store."""

    def __init__(self) -> None:
        self.now = BEGIN

    def __call__(self) -> int:
        return self.now

    passed = __call__


def run_threaded(trial: Trial, folder: Path) -> None:
    """Send the workload to a store in `folder`; the store stops in order in any case. Raises StoreError."""
    clock, workload = _SendersClock(), trial.workload
    sends, began = workload.sends(), time.monotonic()
    with Store.open(folder, trial.settings, clock=clock, recorder=trial.recorder) as store:
        if trial.faults:
            _plant(store.core, trial, random.Random(workload.seed))  # noqa: S311 - a seed is no secret
        transactions = ThreadedTransactions(store, trial) if workload.transactions else None
        while trial.proceeds(trial.sent) and (group := list(islice(sends, trial.together))):
            if workload.rate:
                time.sleep(max(0.0, began + trial.sent / workload.rate - time.monotonic()))
            clock.now = group[-1].time
            _send(store, [send for send in group if send.fate is Fate.SEND], trial)
            if transactions:
                transactions.send([send for send in group if send.fate is not Fate.SEND], clock.now)
            trial.sent += len(group)
        if transactions and trial.sent == workload.messages:
            for _ in range(ROUNDS):
                clock.now += SETTINGS.check_interval
                transactions.check()


def _send(store: Store, group: list[PlannedSend], trial: Trial) -> None:
    """Append messages, and note what was answered. Raises StoreError, for what a producer can do nothing about."""
    if not group:
        return
    places: Iterable[tuple[int, int]]
    try:
        if len(group) == 1:
            send = group[0]
            position, number, _ = store.append(send.topic, send.queue, send.body, properties=send.properties)
            places = [(number, position)]
        else:
            positions, numbers = store.append_batch(messages_of(group))
            places = zip(numbers.tolist(), positions.tolist(), strict=True)
    except DiskFull:
        trial.tell_no_room(group)
    except BaseException:
        trial.tell(group, "unknown")
        raise
    else:
        for send, (number, position) in zip(group, places, strict=True):
            trial.client.tell(send, "ok", number, position)


def _plant(core: Core, trial: Trial, chance: random.Random) -> None:
    """Some of the batches meet a worker that is slow, or fails."""
    build = core.dispatch.build

    def build_perhaps(batch: DispatchBatch) -> None:
        if "slow-worker" in trial.faults and trial.occurs("slow-worker", chance.random()):
            time.sleep(NAP)
        if "failing-worker" in trial.faults and not batch.attempts and trial.occurs("failing-worker", chance.random()):
            raise OSError(errno.EIO, "a fault that was asked for")
        build(batch)

    core.dispatch.build = build_perhaps  # type: ignore[method-assign]  # the seam through which a fault comes in
