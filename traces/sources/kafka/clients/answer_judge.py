"""Judges the answers to clients by the logs: each is a step of `kafka_transaction` in the partition that it names.

One transaction in one partition is one trace: a record, the decision as its marker has it, and the answer. What clients
saw of a partition is judged by `partition_client`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.spec.kafka_transaction import TxnStatus
from gapless.traces.judging.building import Events, Ints
from gapless.traces.options import Options
from gapless.traces.problems import shown
from gapless.traces.sources.kafka.clients.client_log import AnsweredRecords, AnswerLog
from gapless.traces.sources.kafka.clients.group_judge import GroupJudge
from gapless.traces.sources.kafka.clients.outcomes import EPOCH, PRODUCER, AnsweredBatches, Reach, answered_batches
from gapless.traces.sources.kafka.clients.view_judge import ViewedPartition, ViewJudge, ends_early, place_of
from gapless.traces.sources.kafka.files.names import PartitionName
from gapless.traces.sources.kafka.joining.findings import LogFindings, PlacedDeparture
from gapless.traces.sources.kafka.judging.event_order import EventOrder
from gapless.traces.sources.kafka.transactions.gathering import PartitionPlace
from gapless.traces.sources.kafka.transactions.traces import JudgedTraces, departing

SPEC = SPECS["kafka_transaction"]
NONE = -1
OPEN, ADD, WRITE, DECIDE, MARK, ANSWER, SLOTS = range(7)
"""The steps of a trace, in order."""
ENDS = ("abort", "commit")


class AnswerTraces(NamedTuple):
    """A trace for each row. `batch`: with its record · `answer`: 1 commit, 0 abort, -1 read."""

    batch: Ints
    offset: Ints
    answer: Ints
    client: Ints
    line: Ints


class AnswerJudge:
    """Judges all answers. `undecided`: records that were received before they were decided, with their lines."""

    def __init__(self, log: AnswerLog, found: LogFindings, options: Options) -> None:
        self.log, self.found, self.options = log, found, options
        self.views = ViewJudge(log, found, options)
        self.compared = 0
        self.undecided: list[tuple[PartitionName, PlacedDeparture, int]] = []

    def judge(self, places: Sequence[PartitionPlace], judged: JudgedTraces) -> None:
        """Judge the answers about these partitions, and about groups that were judged. Raises OSError."""
        for number, name in enumerate(self.log.partitions):
            copies = [one for one in places if one.name == name]
            if copies and all(is_first(one) for one in copies):
                if not self._is_rewritten(number):
                    self._judge(number, copies)
            elif copies:
                self.found.note(
                    f"answers of clients about {name} are not compared with its log: it is not known that its topic "
                    "was created only once"
                )
        self.views.finish()
        self._finish()
        groups = GroupJudge(self.log, self.found, self.options, self.views.last)
        for group in judged.groups or ():
            copies = [one for one in places if one.name == group.partition]
            if all(is_first(one) for one in copies):
                groups.judge(group, copies, judged.departed)
        groups.finish(is_ours=self.views.there > 0)
        self.compared += groups.compared
        self.found.note(f"{self.compared:,} answers of clients are compared with the logs ({shown(self.log.path)})")

    def _judge(self, number: int, copies: Sequence[PartitionPlace]) -> None:
        reach, log = self._reach(number), self.log
        looked = [(one, answered_batches(one.directory.partition(one.name).files().segments, reach)) for one in copies]
        known = [(one, batches) for one, batches in looked if batches is not None]
        if not known:
            return
        placed, batches = max(known, key=lambda one: (one[1].last_leader, one[1].end))
        written, received = (rows.of(rows.partition == number) for rows in (log.written, log.received))
        self.compared += int((log.sent.partition == number).sum()) + len(received.offset)
        ended = written._replace(line=log.end_line[written.client])
        traces = [
            _traces(batches, ended, log.ends[written.client]),
            _traces(batches, received, np.full(len(received.line), NONE)),
        ]
        together = AnswerTraces(*(np.concatenate(columns) for columns in zip(*traces, strict=True)))
        is_read = (together.answer == NONE) & placed.terms.is_whole
        judged = is_read | (_of(batches.marker, together.batch) != NONE)
        self._replay(placed, batches, AnswerTraces(*(column[judged] for column in together)))
        self.views.judge(ViewedPartition(number, copies, placed, batches))

    def _reach(self, number: int) -> Reach:
        """The offsets that answers about a partition name, and those that sessions of readers range over."""
        log, sessions = self.log, self.log.sessions
        sent, received = (rows.offset[rows.partition == number] for rows in (log.sent, log.received))
        mine = sessions.partition == number
        within = log.received.offset[(log.received.partition == number) & (log.received.session != NONE)]
        low = 0 if (sessions.begin[mine] == 0).any() else int(within.min(initial=0 if not len(within) else within[0]))
        high = max(int(sessions.stop[mine].max(initial=0)), int(within.max(initial=NONE)) + 1)
        return Reach(np.unique(np.concatenate([sent, received])), low, high)

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

    def _replay(self, placed: PartitionPlace, batches: AnsweredBatches, traces: AnswerTraces) -> None:
        events, starts = _events(batches, traces)
        for one in departing(events, starts, self.found, self.options):
            _, offset, answer, client, line = (int(column[one.number]) for column in traces)
            name = self.log.consumers[client] if answer == NONE else self.log.transactions[client]
            answered = "received it" if answer == NONE else f"has the answer that its {ENDS[answer]} succeeded"
            also = (
                f"Part 0 is {placed.name}.",
                f"The answer is in line {line:,} of {shown(self.log.path.name)}: {shown(name)} {answered}.",
            )
            where = place_of(placed.terms.folder, batches, offset)
            departed = PlacedDeparture(
                placed.terms.name, str(placed.name), offset, where, one.departure, batch=also, client=str(self.log.path)
            )
            if batches.marker[traces.batch[one.number]] == NONE:
                self.undecided.append((placed.name, departed, line))
            else:
                self.found.report(departed)

    def _finish(self) -> None:
        """Report records that were received too early, if a later send is in the logs: then they lay there by then.

        A log of consumers alone has no sends, and is taken to end before the directory was left.
        """
        doubted = dict[PartitionName, int]()
        for name, departed, line in self.undecided:
            if 0 < self.views.last < line:
                doubted.setdefault(name, line)
            else:
                self.found.report(departed)
        for name, line in doubted.items():
            self.found.doubt(f"{name}: {ends_early(self.log, line)}")


def is_first(placed: PartitionPlace) -> bool:
    """True if it is known that the topic was created once: offsets of another one may be in the answers."""
    cluster, topic = placed.cluster, placed.name.topic
    if cluster is None or cluster.begins > 0 or cluster.fault or topic not in cluster.topics:
        return False
    return cluster.topics[topic].generations == 1


def _of(column: Ints, batch: Ints) -> Ints:
    """A column's number for each batch; -1 where there is no batch."""
    return np.append(column, NONE)[batch]


def _traces(batches: AnsweredBatches, records: AnsweredRecords, answer: Ints) -> AnswerTraces:
    """One trace for each client and transaction of the log: that of its first record."""
    batch = batches.at(records.offset)
    (rows,) = np.nonzero(_of(batches.column(PRODUCER), batch) != NONE)
    batch = batch[rows]
    keys = np.stack([records.client[rows], batches.column(PRODUCER)[batch], batches.marker[batch]])
    _, first = np.unique(keys, axis=1, return_index=True)
    rows, batch = rows[first], batch[first]
    return AnswerTraces(batch, records.offset[rows], answer[rows], records.client[rows], records.line[rows])


def _events(batches: AnsweredBatches, traces: AnswerTraces) -> tuple[Events, Ints]:
    """The events of all traces, and where each begins."""
    order, count, batch, offset = EventOrder(SPEC), len(traces.batch), traces.batch, traces.offset
    epoch, marker = batches.column(EPOCH)[batch], batches.marker[batch]
    places = np.arange(count) * SLOTS
    order.add("open", places + OPEN, phase=TxnStatus.ONGOING, pid=batches.column(PRODUCER)[batch], epoch=epoch)
    order.add("add", places + ADD, part=0, epoch=epoch)
    order.add("write", places + WRITE, part=0, first=offset, last=offset, epoch=epoch)
    (ended,) = np.nonzero(marker != NONE)
    commit = batches.commit[batch][ended]
    order.add("decide", places[ended] + DECIDE, commit=commit, epoch=epoch[ended], protocol=1, whole=1)
    order.add("mark", places[ended] + MARK, part=0, commit=commit, epoch=epoch[ended], offset=marker[ended])
    is_read = traces.answer == NONE
    order.add("received", places[is_read] + ANSWER, part=0, offset=offset[is_read])
    order.add("acknowledge", places[~is_read] + ANSWER, commit=traces.answer[~is_read])
    events, keys, _ = order.events()
    return events, keys.searchsorted(np.arange(count + 1) * SLOTS)
