"""The table of a queue database, compared with the judged queues: the first and last number of each.

Entries and table are written together, so they agree after any stop (docs/rocketmq.md#rocksdb-queues). Two things are
no departure: a least number that was not requested since messages expired, and a table that reaches beyond the end of
the log. The next start corrects both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.traces.judging import building
from gapless.traces.judging.building import STEPS
from gapless.traces.replay.exact import Event
from gapless.traces.replay.kernels import kernel
from gapless.traces.sources.rocketmq.blame.queues import DISPATCHED_BEYOND
from gapless.traces.sources.rocketmq.blame.situation import switch
from gapless.traces.sources.rocketmq.joining.findings import QueueProgress, StoreFindings
from gapless.traces.sources.rocketmq.queues.joined_queues import QueueJudge, first_from
from gapless.traces.sources.rocketmq.queues.queue_database import QueueDatabase
from gapless.traces.sources.rocketmq.segments.results import Subject, name_of
from gapless.traces.sources.rocketmq.store.files import FARTHEST
from gapless.traces.sources.rocketmq.store.links import is_behind

QUEUE = STEPS["queue"]


class EndsTableJudge:
    """The table of the store's queue database; `beyond` are last entries that point beyond the log."""

    def __init__(self, judged: StoreFindings, joined: QueueJudge, database: QueueDatabase) -> None:
        self.judged = judged
        self.joined = joined
        self.database = database
        self.beyond: list[tuple[int, str]] = []

    def judge(self) -> None:
        """Compares every queue that is still judged with the table."""
        queues = [
            (subject, run)
            for subject, run in sorted(self.judged.queues.items())
            if not run.ended and not run.batches and not is_behind(self.judged.store.broken, *subject)
        ]
        reached = [self._reached(subject, run) for subject, run in queues]
        traces = [list(self._table_events(*queue, end)) for queue, end in zip(queues, reached, strict=True)]
        begins = [
            end - any(action == "index" for action, _ in trace) for end, trace in zip(reached, traces, strict=True)
        ]
        refused = self._refused([run for _, run in queues], begins, traces)
        for (subject, run), begin, trace, is_refused in zip(queues, begins, traces, refused, strict=True):
            table_events = [event for event in trace if event[0].startswith("tell")]
            if begin in (run.indexed, run.indexed - 1):  # otherwise entries are there that the table does not know yet
                self.judged.joint(self.judged.end, "queue", name_of(subject), table_events)
            if not is_refused:
                for action, _ in table_events:
                    self.judged.cover("queue", {action: 1})
                continue
            outcome = self.joined.replayed(self.joined.state(run, indexed=begin, end=begin), trace)
            if outcome.departure:
                run.breach = self.judged.find(name_of(subject), run.last, outcome.departure, database=self.database)
        self._beyond_the_end()

    def _reached(self, subject: Subject, run: QueueProgress) -> int:
        """Returns the last entry of the queue by the table.

        All messages below the dispatch position have their entries. A start that dispatches the log again begins below
        existing entries: then the table keeps the old ends of queues without a new message.
        """
        last, least = self.database.last.get(subject), run.indexed
        if self.database.dispatched < self.judged.end:
            least = self._first_from(self.database.dispatched, subject, run)
        return last.number + 1 if last and least <= last.number + 1 <= run.indexed else least

    def _first_from(self, position: int, subject: Subject, run: QueueProgress) -> int:
        """The number of the first message with an entry that lies at a position or behind it."""

        def place(number: int) -> int:
            slot = self.joined.slot(subject, number)
            return slot[0] if slot is not None else FARTHEST

        return first_from(range(max(run.first, run.blank), run.indexed), position, place)

    def _table_events(self, subject: Subject, run: QueueProgress, end: int) -> Iterator[Event]:
        """Yields the table's events for a queue that ends at `end`, after the steps of its last entry."""
        last, first = self.database.last.get(subject), self.database.first.get(subject)
        if first is not None and first.position >= self.judged.store.start:
            yield QUEUE.tell_first(number=first.number)
        if last is None:
            if end > run.first and subject in self.database.queues:
                yield QUEUE.tell_last(number=-1, position=0)
            return
        if last.number < end - 1 and end <= run.first and self._is_below_the_log:
            return
        if last.position >= self.judged.end and self.database.dispatched > self.judged.end:
            self.beyond.append((last.position, name_of(subject)))
            return
        slot = self.joined.slot(subject, end - 1) if end > run.first else None
        if slot is not None:
            position, size, tag = slot
            yield QUEUE.append(number=end - 1, count=1, position=position, size=size, tag=tag)
            yield QUEUE.index(number=end - 1, position=position, size=size, tag=tag)
        elif last.number == end - 1:
            return  # its message has expired, so its position is unknown
        yield QUEUE.tell_last(number=last.number, position=last.position)

    @property
    def _is_below_the_log(self) -> bool:
        """True if the whole database was below the log's start, which expired before more was on disk."""
        return not self.judged.store.clean and self.database.dispatched <= self.judged.store.start

    def _refused(
        self, runs: Sequence[QueueProgress], begins: Sequence[int], traces: Sequence[Sequence[Event]]
    ) -> list[bool]:
        """Returns which traces a kernel refuses, each from the state of its queue before its last entry."""
        options = self.joined.options
        of = kernel("queue", options.ignored)
        try:
            events = building.Events.of(SPECS["queue"], list(chain.from_iterable(traces)))
        except OverflowError:  # a damaged table may contain anything
            return [True] * len(traces)
        claims = building.states(
            SPECS["queue"], len(traces), start=self.judged.store.start, first=[run.first for run in runs],
            indexed=begins, end=begins, blank=[run.blank for run in runs],
        )  # fmt: skip
        replayed = of.replay(
            np.array([0, *accumulate(map(len, traces))], np.int64), events.action, events.args, claims,
            origins=np.array(begins, np.int64), widths=np.ones(len(traces), np.int64), profile=options.profile,
        )  # fmt: skip
        refused: list[bool] = (replayed.bad_at >= 0).tolist()
        return refused

    def _beyond_the_end(self) -> None:
        """Judges a dispatch position beyond the log's end."""
        dispatched = self.database.dispatched
        if dispatched > self.judged.end:
            named = switch(on=bool(self.beyond))
            self.judged.blame(DISPATCHED_BEYOND, named, dispatched=dispatched, end=self.judged.end)
