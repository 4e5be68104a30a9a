"""Follows trace topics: compares trace messages with the log as they arrive; they describe earlier records.

The log is read a second time, with the keys of its messages. An answer names a position: the records there are read
again. A delivery names a message by its key alone: it is looked for among recent keys, and at the end in the whole log
if it was not found. Answers are counted; repeated ones are recognised among the newest only.

Source: docs/rocketmq-traces.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from gapless.traces.options import Options
from gapless.traces.sources.rocketmq.clients import trace_bodies as bodies
from gapless.traces.sources.rocketmq.clients.deliveries import look_for_deliveries
from gapless.traces.sources.rocketmq.clients.evidence import (
    ClientEvidence,
    PromiseResult,
    PromiseTally,
    SegmentMessages,
    judge_messages,
)
from gapless.traces.sources.rocketmq.clients.promises import FORGOTTEN, PromiseCheckpoint
from gapless.traces.sources.rocketmq.clients.recent_keys import RecentKeys
from gapless.traces.sources.rocketmq.clients.requests.request_rows import AnsweredSends
from gapless.traces.sources.rocketmq.clients.trace_topic_evidence import (
    counts_of,
    deliveries_of,
    no_evidence,
    promises_of,
)
from gapless.traces.sources.rocketmq.clients.trace_topics import (
    TraceReader,
    TraceTopicAnswers,
    trace_topics,
    trace_topics_among,
)
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.lookup import among, distinct
from gapless.traces.sources.rocketmq.layouts.layout import LayoutFollower
from gapless.traces.sources.rocketmq.log import scan
from gapless.traces.sources.rocketmq.report_rows import TraceTopicRow
from gapless.traces.sources.rocketmq.segments.log_reader import AT_ONCE, LogPoint, LogReader
from gapless.traces.sources.rocketmq.segments.results import Subject
from gapless.traces.sources.rocketmq.segments.splits import ScannedSegment, Split, SplitReader
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.file_access import Space, file_of
from gapless.traces.sources.rocketmq.store.files import LogFile
from gapless.traces.sources.rocketmq.store.names import HALF_TOPICS

RECENT = 1 << 18  # answers, decisions and deliveries that are recognised when they are repeated
KEYS = 1 << 20  # of messages of late
UNSEEN = 1 << 16  # messages that were handed out and not seen yet, that are looked for
DOUBTS = 1000  # answers without their record that are reported one by one
TOGETHER = 1 << 16  # bytes between two answers that are looked at in one go

LOST, OTHER = FORGOTTEN[:2]  # rules that an answer breaks where no record lies, or another one
MessagesOfSpan = tuple[SegmentMessages, tuple[int, int]]
"""The messages of a segment, and the log positions of its begin and end."""


@dataclass
class TraceProgress:
    """The trace messages that were read up to a log position.

    `counts`: of a `TraceTopicRow` · `topics`: named in answers · `lost`: answers without
    a record, by position · `unseen`: as in `ClientEvidence.handed`.
    """

    reached: LogPoint
    names: tuple[str, ...] = ()
    queues: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    tally: PromiseTally = field(default_factory=PromiseTally)
    topics: tuple[str, ...] = ()
    lost: AnsweredSends = field(default_factory=AnsweredSends.empty)
    unseen: Ints = field(default_factory=lambda: np.zeros((2, 0), np.int64))
    answered: RecentKeys = field(default_factory=lambda: RecentKeys(RECENT))
    decided: dict[int, RecentKeys] = field(default_factory=dict)  # by what was asked for
    handed: RecentKeys = field(default_factory=lambda: RecentKeys(RECENT))

    def copy(self) -> TraceProgress:
        """Returns an independent copy."""
        return replace(
            self, counts=self.counts.copy(), tally=self.tally.copy(), answered=self.answered.copy(),
            handed=self.handed.copy(), decided={what: keys.copy() for what, keys in self.decided.items()},
        )  # fmt: skip


class TraceFollower(LayoutFollower):
    """Follows the trace topics of one store, as if they were a layout: what it knows is evidence for a check."""

    def __init__(self, options: Options, start: int, saved: TraceProgress | None = None) -> None:
        super().__init__(options, start, saved)
        self.space, self.again = Space(), Space()
        self.progress = saved.copy() if saved else TraceProgress(LogPoint(start))
        self.keys = RecentKeys(KEYS)

    # -- what is new ---------------------------------------------------------------------------------------------------

    def follow(self, store: StoreDirectory, reached: int, queues: Collection[Subject]) -> bool:
        """Implements `LayoutFollower`: reads further trace messages."""
        progress = self.progress
        if progress.queues != len(queues):
            progress.queues = len(queues)
            progress.names = trace_topics_among({topic for topic, _ in queues}, store)
        if progress.reached.at < store.start:
            progress.reached = progress.reached._replace(at=store.start)
        if not progress.names:
            progress.reached = LogPoint(reached)
            return False
        file = file_of(store, progress.reached.at)
        if progress.reached.at >= reached or file is None:
            return False
        before = len(progress.lost) + len(progress.tally.doubts)
        self._read(store, file, reached)
        self.departed |= len(progress.lost) + len(progress.tally.doubts) > before
        return progress.reached.at < reached

    def _read(self, store: StoreDirectory, file: LogFile, end: int) -> None:
        """Read on in one log file."""
        reading = LogReader(self.progress.reached, self.space)
        for messages, span in _messages(reading.segments(store, file, end, keys=True), self.space):
            self._add(store, messages, span)
        self.progress.reached = reading.point

    def _add(self, store: StoreDirectory, messages: SegmentMessages, span: tuple[int, int]) -> None:
        """Adds one segment: the keys of its messages, and the reports of its trace messages."""
        half = messages.of_subject(lambda topic, _: topic in HALF_TOPICS) == 1
        seen = ~((messages.row >= 0) & half[messages.row]) if len(half) else messages.row < 0
        keys = distinct(messages.keys[[0, 3]][:, seen].ravel())
        self.keys.add(keys)
        self._see(among(self.progress.unseen[0], keys))
        reader = TraceReader(store)
        for topic in self.progress.names:
            mine = messages.of_subject(partial(_is_of, topic)) == 1
            places = distinct(messages.rows[scan.PLACE, mine]) if len(mine) else np.zeros(0, np.int64)
            if len(places):
                reader.read(topic, places)
        if reader.messages:
            answers = reader.answers(self.progress.names)
            sends = self._new_answers(store, answers)
            here = sends.position >= span[0]  # mostly all of them: clients send traces soon
            if here.any():
                self._promise([self._promises(sends.some(here), messages, span)], sends.some(here))
            self._look_back(store, sends.some(~here))

    def _new_answers(self, store: StoreDirectory, answers: TraceTopicAnswers) -> AnsweredSends:
        """Reads trace messages and returns their new answers, by position."""
        progress, what = self.progress, answers.rows[bodies.WHAT]
        promised, untimely = promises_of(store, answers)
        progress.counts.update(counts_of(answers, untimely))
        for name, asked in (("commits", bodies.COMMIT_ASKED), ("rollbacks", bodies.ROLL_BACK_ASKED)):
            known = progress.decided.setdefault(asked, RecentKeys(RECENT))
            keys = distinct(answers.rows[bodies.KEY, what == asked])
            progress.counts[name] += int((~known.has(keys)).sum())
            known.add(keys)
        self._deliver(deliveries_of(store, answers))
        both = promised.key * np.int64(31) + promised.position  # a number for each pair
        sends = promised.some(~progress.answered.has(both))
        progress.answered.add(both)
        progress.topics = tuple(dict.fromkeys((*progress.topics, *answers.topics)))
        if len(sends):
            sends.topic[:] = np.array([progress.topics.index(topic) for topic in answers.topics], np.int64)[sends.topic]
        progress.counts["promised"] += len(sends)
        return sends

    def _deliver(self, handed: Ints) -> None:
        """Messages that consumers were handed."""
        progress = self.progress
        new = handed[:, ~progress.handed.has(handed[0])]
        progress.handed.add(new[0])
        progress.counts["delivered"] += new.shape[1]
        progress.unseen = np.concatenate([progress.unseen, new], axis=1)
        self._see(self.keys.has(progress.unseen[0]))
        order = np.argsort(progress.unseen[1], kind="stable")[-UNSEEN:]  # the oldest count as not seen from now on
        progress.unseen = progress.unseen[:, np.sort(order)]

    def _see(self, seen: npt.NDArray[np.bool_]) -> None:
        """Counts and removes the messages that were found, among those that wait to be seen."""
        progress = self.progress
        if seen.any():
            progress.counts["readable"] += int(seen.sum())
            progress.unseen = progress.unseen[:, ~seen]

    # -- answers -------------------------------------------------------------------------------------------------------

    def _look_back(self, store: StoreDirectory, sends: AnsweredSends) -> None:
        """Reads again the records at answered positions that were passed, unless they have expired."""
        expired = sends.position < store.start
        self.progress.counts["expired"] += int(expired.sum())
        sends = sends.some(~expired)
        for begin, end in _stretches(sends.position, store):
            some = sends.some(slice(begin, end))
            first, last = int(some.position[0]), int(some.position[-1])
            promises: list[PromiseResult] = []
            if (file := file_of(store, first)) is not None:
                low = first - file.wrapped - file.base
                split = Split(file, low, min(last + 1 - file.base, file.length), exact=False)
                promises = [self._promises(some, *found) for found in self._read_again(store, split)]
            self._promise(promises, some)

    def _read_again(self, store: StoreDirectory, split: Split) -> Iterator[MessagesOfSpan]:
        """Reads messages that were passed."""
        return _messages(SplitReader(store, split, self.again, keys=True).segments(), self.again)

    def _promises(self, sends: AnsweredSends, messages: SegmentMessages, span: tuple[int, int]) -> PromiseResult:
        """Compares the records of one stretch with the answers that name positions in it."""
        evidence = replace(no_evidence(), sends=sends, topics=self.progress.topics)
        return judge_messages(evidence, messages, span, self.options, later=False)

    def _promise(self, promises: Sequence[PromiseResult], sends: AnsweredSends) -> None:
        """Adds the results of some answers: those without a result, or without a record, are lost."""
        progress = self.progress
        looked_up = np.zeros(len(sends), np.bool_)
        for promised in promises:
            looked_up[promised.low : promised.high] = True
            looked_up[promised.lost] = False
            self._keep(promised)
        if looked_up.all():
            return
        progress.lost = progress.lost.with_others(sends.some(~looked_up))
        progress.lost = progress.lost.some(np.argsort(progress.lost.position, kind="stable"))
        progress.tally.more[LOST] += max(0, len(progress.lost) - DOUBTS)
        progress.lost = progress.lost.some(slice(DOUBTS))

    def _keep(self, promised: PromiseResult) -> None:
        tally = self.progress.tally
        tally.add(promised)
        tally.more[OTHER] += len(tally.doubts[DOUBTS:])
        del tally.doubts[DOUBTS:]

    # -- what it comes to ----------------------------------------------------------------------------------------------

    def snapshot(self) -> TraceProgress:
        """Implements `LayoutFollower`."""
        return self.progress.copy()

    def known(self, store: StoreDirectory, reached: int) -> tuple[ClientEvidence, PromiseCheckpoint] | None:  # noqa: ARG002 - all that was read
        """Implements `LayoutFollower`: the evidence for a check of `store`; None if there are no traces.

        Once the broker has stopped, the rest is read, and unseen messages are looked for in the whole log.
        """
        if store.live or not self.progress.names:
            return self._evidence(store, looked_for=False)
        rest = TraceFollower(self.options, store.start, self.progress)
        rest.keys = self.keys.copy()
        rest._read_all(store)
        return rest._evidence(store, looked_for=True)

    def _read_all(self, store: StoreDirectory) -> None:
        """Read on as far as records follow one another."""
        before = None
        while before != self.progress.reached and self.progress.reached.exact:
            before = self.progress.reached
            if file := file_of(store, before.at):
                self._read(store, file, file.base + file.length)

    def _evidence(self, store: StoreDirectory, *, looked_for: bool) -> tuple[ClientEvidence, PromiseCheckpoint] | None:
        progress = self.progress
        if not progress.counts["messages"]:
            return None
        names = trace_topics(store) or progress.names
        counts = {name: progress.counts[name] for name in TraceTopicRow.model_fields if name in progress.counts}
        unseen = progress.unseen[:, np.argsort(progress.unseen[0], kind="stable")]
        row = TraceTopicRow(source="", topics=", ".join(names), **counts)
        evidence = replace(no_evidence(), sends=progress.lost, topics=progress.topics, testimony=row, handed=unseen)
        seen, half = np.zeros(unseen.shape[1], np.bool_), np.full(unseen.shape[1], -1, np.int64)
        if looked_for and unseen.shape[1]:
            self._look_for(store, evidence, seen, half)
        known = PromiseCheckpoint(
            progress.tally, progress.counts["delivered"] - len(seen), progress.counts["readable"], seen, half,
        )  # fmt: skip
        return evidence, known

    def _look_for(
        self, store: StoreDirectory, evidence: ClientEvidence, seen: npt.NDArray[np.bool_], half: Ints
    ) -> None:
        """Look for messages that were handed out in all of the log that was read."""
        for file in store.files:
            end = min(file.length, self.progress.reached.at - file.base)
            for low in range(0, end, AT_ONCE):
                split = Split(file, low, min(low + AT_ONCE, end), exact=low == 0)
                for messages, _span in self._read_again(store, split):
                    found = look_for_deliveries(evidence, messages)
                    seen[found.seen] = True
                    half[found.halves] = found.places


def _messages(segments: Iterable[ScannedSegment], space: Space) -> Iterator[MessagesOfSpan]:
    """Yields the messages of segments that are scanned with their keys."""
    for scanned in segments:
        columns = scanned.columns
        if columns.count and columns.keys is not None:
            messages = SegmentMessages(columns.log, columns.keys, columns.rows, columns.subjects(), space)
            yield messages, (scanned.start, scanned.end)


def _is_of(topic: str, one: str, _queue: int) -> int:
    return one == topic


def _stretches(positions: Ints, store: StoreDirectory) -> Iterator[tuple[int, int]]:
    """Yields ranges of rising positions that are close to one another in one log file."""
    if len(positions):
        within = positions - store.start
        apart = (
            (np.diff(positions) > TOGETHER)
            | (np.diff(within // store.file_size) > 0)
            | (np.diff(within // AT_ONCE) > 0)
        )
        edges = [0, *(np.flatnonzero(apart) + 1).tolist(), len(positions)]
        yield from pairwise(edges)
