"""A run of a store under a workload: what was asked for, where it is written, and what happened so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gapless.impl.recorder.recorder import StoreRecorder
from gapless.impl.store.core import Settings
from gapless.impl.workloads.workload import ClientLogWriter, PlannedSend, Result, Workload

FAULTS = {
    "crash": "the power is lost, and with it all that was not flushed",
    "torn": "the power is lost, and of what was not flushed any pages and sectors survive",
    "eio": "the disk fails while it flushes, and the machine starts again",
    "enospc": "the disk has no room for another file, for a while",
    "slow-worker": "a worker takes its time, and the others go on",
    "failing-worker": "a worker fails, and its batch is tried again",
}
DISK_FAULTS = frozenset({"crash", "torn", "eio", "enospc"})
"""Faults that no real disk has on demand."""

MET_BY = 0.1  # of the batches: how many meet a worker that is slow, or one that fails


@dataclass
class Trial:
    """One run. `together`: messages in one append · `sent`: messages so far · `met`: how often each fault occurred.

    `proceeds`: called with the number of messages sent; where it returns False, the run stops in order.
    """

    workload: Workload
    settings: Settings
    together: int
    faults: frozenset[str]
    recorder: StoreRecorder
    client: ClientLogWriter
    proceeds: Callable[[int], bool] = lambda _sent: True
    sent: int = 0
    met: Counter[str] = field(default_factory=Counter)

    def occurs(self, fault: str, chance: float) -> bool:
        """True if a worker's fault occurs now; `chance`: from 0 to 1, drawn by the caller."""
        happens = chance < MET_BY
        self.met[fault] += happens
        return happens

    def tell(self, sends: Sequence[PlannedSend], result: Result) -> None:
        """Log the same outcome for several sends, whose places are unknown."""
        for send in sends:
            self.client.tell(send, result)

    def tell_no_room(self, sends: Sequence[PlannedSend]) -> None:
        """The disk was full: of many messages in one append, some may have found room."""
        self.tell(sends, "fail" if len(sends) == 1 else "unknown")
