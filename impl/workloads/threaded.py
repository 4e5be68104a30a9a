"""Runs of a store under a workload, with threads and on the real disk: what they leave is a store, and what was told.

`stepwise.py` has those on a disk that can be lost.
"""

from __future__ import annotations

import errno
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from gapless.impl.dispatch.batches import Batch
from gapless.impl.environment.simulated import SteppedClock
from gapless.impl.recorder.recorder import Recorder
from gapless.impl.records.errors import DiskFull
from gapless.impl.records.record import Messages
from gapless.impl.store.core import Core, Settings
from gapless.impl.store.store import Store
from gapless.impl.workloads.workload import BEGIN, ClientLog, Send, Workload

FAULTS = {
    "crash": "the power is lost, and with it all that was not flushed",
    "torn": "the power is lost, and of what was not flushed any pages and sectors survive",
    "eio": "the disk fails while it flushes, and the machine starts again",
    "enospc": "the disk has no room for another file, for a while",
    "slow-worker": "a worker takes its time, and the others go on",
    "failing-worker": "a worker fails, and its batch is tried again",
}
OF_THE_DISK = frozenset({"crash", "torn", "eio", "enospc"})
"""Faults that no real disk has on demand."""

MET_BY = 0.1  # of the batches: how many meet a worker that is slow, or one that fails
NAP = 0.02  # seconds that a slow worker takes

Told = Callable[[int], bool]
"""Is told how many messages were sent so far, and says whether to go on. Where not, the run stops in order."""


@dataclass
class Ran:
    """What happened in a run. `sent`: messages · `met`: how often each fault occurred."""

    sent: int = 0
    met: dict[str, int] = field(default_factory=dict)

    def meet(self, fault: str) -> None:
        """A fault occurred."""
        self.met[fault] = self.met.get(fault, 0) + 1


def with_threads(
    workload: Workload,
    folder: Path,
    settings: Settings,
    ran: Ran,
    *,
    together: int,
    faults: frozenset[str],
    recorder: Recorder,
    client: ClientLog,
    told: Told,
) -> None:
    """Send the workload to a store in `folder`, `together` messages at a time; the store stops in order in any case.

    Raises StoreError.
    """
    clock = SteppedClock(BEGIN)
    sends = workload.sends()
    began = time.monotonic()
    with Store.open(folder, settings, clock=clock, recorder=recorder) as store:
        if faults:
            _plant(store.core, faults, random.Random(workload.seed), ran)  # noqa: S311 - a seed is no secret
        while told(ran.sent) and (group := list(islice(sends, together))):
            if workload.rate:
                time.sleep(max(0.0, began + ran.sent / workload.rate - time.monotonic()))
            clock.now = group[-1].time
            _send(store, group, client)
            ran.sent += len(group)


def _send(store: Store, group: list[Send], client: ClientLog) -> None:
    """Append messages, and note what was answered. Raises StoreError, for what a producer can do nothing about."""
    places: Iterator[tuple[int, int]]
    try:
        if len(group) == 1:
            send = group[0]
            position, number, _ = store.append(send.topic, send.queue, send.body, properties=send.properties)
            places = iter([(number, position)])
        else:
            messages = Messages.of_list([(send.topic, send.queue, send.body, send.properties) for send in group])
            positions, numbers = store.append_batch(messages)
            places = zip(numbers.tolist(), positions.tolist(), strict=True)
    except DiskFull:
        for send in group:  # of many, some may have found room
            client.tell(send, "fail" if len(group) == 1 else "unknown")
    except BaseException:
        for send in group:
            client.tell(send, "unknown")
        raise
    else:
        for send, (number, position) in zip(group, places, strict=True):
            client.tell(send, "ok", number, position)


def _plant(core: Core, faults: frozenset[str], chance: random.Random, ran: Ran) -> None:
    """Some of the batches meet a worker that is slow, or fails."""
    build = core.dispatch.build

    def build_perhaps(batch: Batch) -> None:
        if "slow-worker" in faults and chance.random() < MET_BY:
            ran.meet("slow-worker")
            time.sleep(NAP)
        if "failing-worker" in faults and not batch.attempts and chance.random() < MET_BY:
            ran.meet("failing-worker")
            raise OSError(errno.EIO, "a fault that was asked for")
        build(batch)

    core.dispatch.build = build_perhaps  # type: ignore[method-assign]  # the seam through which a fault comes in
