"""Judges the answers to clients by the logs: each is a step of `kafka_transaction` in the partition that it names.

One transaction in one partition is one trace: a record, the decision as its marker has it, and the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.spec.kafka_transaction import TxnStatus
from gapless.traces.judging import building
from gapless.traces.judging.building import Events, Ints
from gapless.traces.options import Options
from gapless.traces.problems import shown
from gapless.traces.replay.exact import Event, replay
from gapless.traces.replay.kernels import kernel
from gapless.traces.report.values import Where
from gapless.traces.sources.kafka.clients.client_log import AnsweredRecords, AnswerLog
from gapless.traces.sources.kafka.clients.outcomes import RecordOutcomes, record_outcomes
from gapless.traces.sources.kafka.files.directory import SegmentFiles
from gapless.traces.sources.kafka.joining.findings import LogFindings, PlacedDeparture
from gapless.traces.sources.kafka.joining.states import some
from gapless.traces.sources.kafka.judging.event_order import EventOrder
from gapless.traces.sources.kafka.judging.producer_pieces import counts
from gapless.traces.sources.kafka.transactions.gathering import PartitionPlace

SPEC = SPECS["kafka_transaction"]
NONE = -1
OPEN, ADD, WRITE, DECIDE, MARK, ANSWER, SLOTS = range(7)
"""The steps of a trace, in order."""
ENDS = ("abort", "commit")


class AnswerTraces(NamedTuple):
    """A trace for each row. `at`: its record among those that were looked up · `answer`: 1 commit, 0 abort, -1 read."""

    at: Ints
    answer: Ints
    client: Ints
    line: Ints


class AnswerJudge:
    """Judges all answers."""

    def __init__(self, log: AnswerLog, found: LogFindings, options: Options) -> None:
        self.log, self.found, self.options = log, found, options
        self.compared = 0

    def judge(self, places: Sequence[PartitionPlace]) -> None:
        """Judge the answers about these partitions. Raises OSError."""
        for number, name in enumerate(self.log.partitions):
            copies = [one for one in places if one.name == name]
            if copies and all(_is_first(one) for one in copies):
                if not self._is_rewritten(number):
                    self._judge(number, copies)
            elif copies:
                self.found.note(
                    f"answers of clients about {name} are not compared with its log: it is not known that its topic "
                    "was created only once"
                )
        self.found.note(f"{self.compared:,} answers of clients are compared with the logs ({shown(self.log.path)})")

    def _judge(self, number: int, copies: Sequence[PartitionPlace]) -> None:
        written, received = (rows.of(rows.partition == number) for rows in (self.log.written, self.log.received))
        ended = written._replace(line=self.log.end_line[written.client])
        offsets = np.unique(np.concatenate([written.offset, received.offset]))
        looked = [(one, record_outcomes(_files(one), offsets)) for one in copies]
        known = [(one, found) for one, found in looked if found is not None]
        if not len(offsets) or not known:
            return
        placed, found = max(known, key=lambda one: (one[1].leader, one[1].end))
        self.compared += len(written.offset) + len(received.offset)
        traces = [
            _traces(found, offsets, ended, self.log.ends[written.client]),
            _traces(found, offsets, received, np.full(len(received.line), NONE)),
        ]
        together = AnswerTraces(*(np.concatenate(columns) for columns in zip(*traces, strict=True)))
        marker = found.marker[together.at]
        is_read = (together.answer == NONE) & placed.terms.is_whole
        judged = (marker != NONE) | is_read
        self._replay(placed, found, offsets, AnswerTraces(*(column[judged] for column in together)))

    def _is_rewritten(self, number: int) -> bool:
        """True if two records of a partition were acknowledged at one offset, which is a doubt."""
        sent = self.log.sent.of(self.log.sent.partition == number)
        offsets, count = np.unique(sent.offset, return_counts=True)
        if (count < 2).all():
            return False
        first = int(offsets[count > 1][0])
        earlier, later = sent.line[sent.offset == first][:2].tolist()
        self.found.doubt(
            f"{self.log.partitions[number]}: lines {earlier:,} and {later:,} of {shown(self.log.path.name)} "
            f"acknowledge two records at offset {first:,}: the first is lost, as by a loss of power, and answers about "
            "this partition are not judged"
        )
        return True

    def _replay(self, placed: PartitionPlace, found: RecordOutcomes, offsets: Ints, traces: AnswerTraces) -> None:
        count = len(traces.at)
        if not count:
            return
        events, starts = _events(found, offsets, traces)
        replayed = kernel(SPEC, self.options.ignored).replay(
            starts, events.action, events.args, building.states(SPEC, count), origins=np.zeros(count, np.int64),
            widths=np.ones(count, np.int64), profile=self.options.profile,
        )  # fmt: skip
        self.found.cover(SPEC.name, counts(SPEC, replayed.covered))
        for trace in np.flatnonzero(replayed.bad_at >= 0).tolist():
            low, high = starts[trace : trace + 2].tolist()
            self._report(placed, found, int(offsets[traces.at[trace]]), traces, trace, list(some(events, low, high)))

    def _report(
        self, placed: PartitionPlace, found: RecordOutcomes, offset: int, traces: AnswerTraces, trace: int,
        events: Sequence[Event],
    ) -> None:  # fmt: skip
        """Replay a trace by the plain functions, and report how it departs."""
        departure = replay(
            SPEC, SPEC.initial, events, profile=self.options.profile, ignored=self.options.ignored
        ).departure
        if departure is None:
            return
        at, answer, client, line = (int(column[trace]) for column in traces)
        segment = found.files[int(found.segment[at])]
        where = Where(file=f"{placed.terms.folder}/{segment.log.name}", offset=int(found.position[at]))
        name = self.log.consumers[client] if answer == NONE else self.log.transactions[client]
        answered = "received it" if answer == NONE else f"has the answer that its {ENDS[answer]} succeeded"
        also = (
            f"Part 0 is {placed.name}.",
            f"The answer is in line {line:,} of {shown(self.log.path.name)}: {shown(name)} {answered}.",
        )
        self.found.report(
            PlacedDeparture(placed.terms.name, str(placed.name), offset, where, departure, batch=also,
                            client=str(self.log.path))
        )  # fmt: skip


def _is_first(placed: PartitionPlace) -> bool:
    """True if it is known that the topic was created once: offsets of another one may be in the answers."""
    cluster, topic = placed.cluster, placed.name.topic
    if cluster is None or cluster.begins > 0 or cluster.fault or topic not in cluster.topics:
        return False
    return cluster.topics[topic].generations == 1


def _files(placed: PartitionPlace) -> Sequence[SegmentFiles]:
    return next(one.files().segments for one in placed.directory.partitions() if one.name == placed.name)


def _traces(found: RecordOutcomes, offsets: Ints, records: AnsweredRecords, answer: Ints) -> AnswerTraces:
    """One trace for each client and transaction of the log: that of its first record."""
    at = offsets.searchsorted(records.offset)
    (rows,) = np.nonzero(found.producer[at] != NONE)
    at = at[rows]
    keys = np.stack([records.client[rows], found.producer[at], found.marker[at]])
    _, first = np.unique(keys, axis=1, return_index=True)
    rows, at = rows[first], at[first]
    return AnswerTraces(at, answer[rows], records.client[rows], records.line[rows])


def _events(found: RecordOutcomes, offsets: Ints, traces: AnswerTraces) -> tuple[Events, Ints]:
    """The events of all traces, and where each begins."""
    order, count = EventOrder(SPEC), len(traces.at)
    offset, epoch, marker = offsets[traces.at], found.epoch[traces.at], found.marker[traces.at]
    places = np.arange(count) * SLOTS
    order.add("open", places + OPEN, phase=TxnStatus.ONGOING, pid=found.producer[traces.at], epoch=epoch)
    order.add("add", places + ADD, part=0, epoch=epoch)
    order.add("write", places + WRITE, part=0, first=offset, last=offset, epoch=epoch)
    (ended,) = np.nonzero(marker != NONE)
    commit = found.commit[traces.at][ended]
    order.add("decide", places[ended] + DECIDE, commit=commit, epoch=epoch[ended], protocol=1, whole=1)
    order.add("mark", places[ended] + MARK, part=0, commit=commit, epoch=epoch[ended], offset=marker[ended])
    is_read = traces.answer == NONE
    order.add("received", places[is_read] + ANSWER, part=0, offset=offset[is_read])
    order.add("acknowledge", places[~is_read] + ANSWER, commit=traces.answer[~is_read])
    events, keys, _ = order.events()
    return events, keys.searchsorted(np.arange(count + 1) * SLOTS)
