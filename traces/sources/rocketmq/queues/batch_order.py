"""The entries of batch queues in the order of their files: brokers look numbers up there by bisection.

Each message was compared with the entry of its number. What remains is that entries are in order, each once, and that
none overlaps the next one. Entries behind that of the queue's last message are left from a crash.

Source: docs/rocketmq.md#batch-queues.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gapless.traces.judging.building import STEPS
from gapless.traces.replay.exact import Event
from gapless.traces.sources.rocketmq.joining.findings import QueueProgress, StoreFindings
from gapless.traces.sources.rocketmq.queues.batch_queues import Units, units_of
from gapless.traces.sources.rocketmq.queues.joined_queues import QueueJudge
from gapless.traces.sources.rocketmq.segments.results import Subject, name_of

QUEUE = STEPS["queue"]


class BatchOrder:
    """Judges the order of the entries of all batch queues."""

    def __init__(self, judged: StoreFindings, joined: QueueJudge) -> None:
        self.judged = judged
        self.joined = joined

    def judge(self) -> None:
        """Compares every queue that is still judged with the order of its files."""
        for subject, run in sorted(self.judged.queues.items()):
            files = self.judged.store.batched.get(subject)
            if files and not run.ended and run.indexed > run.first:
                units, _ = units_of(Path(self.judged.store.path), subject, files)
                self._judge_queue(subject, run, units)

    def _judge_queue(self, subject: Subject, run: QueueProgress, units: Units) -> None:
        numbers, counts = units["number"].astype(np.int64), units["count"].astype(np.int64)
        mine = (run.first <= numbers) & (numbers < run.indexed)
        last = int(np.flatnonzero(mine & (numbers == numbers[mine].max()))[0])  # what lies behind it is left over
        highest = np.maximum.accumulate(numbers[: last + 1])
        for at in np.flatnonzero(numbers[1 : last + 1] <= highest[:-1]).tolist():
            self._find(subject, run, units, at + 1, end=int(highest[at]) + 1)
            return
        for at in np.flatnonzero(numbers[:last] + counts[:last] > numbers[1 : last + 1]).tolist():
            if mine[at]:
                self._find(subject, run, units, at, end=int(numbers[at]))
                return

    def _find(self, subject: Subject, run: QueueProgress, units: Units, at: int, end: int) -> None:
        """Reports an entry that is out of order, or overlaps the next, after the entries up to `end`."""
        number, count = int(units["number"][at]), int(units["count"][at])
        position, size, tag = (int(units[name][at]) for name in ("position", "size", "tag"))
        entry = QUEUE.index_batch(number=number, count=count, position=position, size=size, tag=tag)
        outcome = self.joined.replayed(
            self.joined.state(run, indexed=end, end=end), [*self._behind(units, at, end), entry]
        )
        if outcome.departure:
            run.breach = self.judged.find(name_of(subject), position, outcome.departure)

    def _behind(self, units: Units, at: int, end: int) -> Sequence[Event]:
        """Returns the message of the entry, unless it is out of order: then no message matters."""
        number = int(units["number"][at])
        if number < end:
            return []
        count = int(units["number"][at + 1]) - number
        position, size, tag = (int(units[name][at]) for name in ("position", "size", "tag"))
        return [QUEUE.append(number=number, count=count, position=position, size=size, tag=tag)]
