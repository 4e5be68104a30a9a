"""Judges what clients saw of one partition by `partition_client`: records acknowledged, and the sessions of readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gapless.spec import catalog
from gapless.spec.catalog import SPECS
from gapless.traces.options import Options
from gapless.traces.problems import shown
from gapless.traces.replay.exact import Departure, named
from gapless.traces.report.values import Where
from gapless.traces.sources.kafka.clients.client_log import AnsweredRecords, AnswerLog
from gapless.traces.sources.kafka.clients.losses import permitted_loss
from gapless.traces.sources.kafka.clients.outcomes import CONTROL, LAST, LEADER, POSITION, SEGMENT, AnsweredBatches
from gapless.traces.sources.kafka.clients.view_traces import (
    NONE,
    Runs,
    SentTraces,
    committed_runs,
    sent_traces,
    session_trace,
)
from gapless.traces.sources.kafka.joining.findings import LogFindings, PlacedDeparture
from gapless.traces.sources.kafka.transactions.gathering import PartitionPlace
from gapless.traces.sources.kafka.transactions.traces import departing

SPEC = SPECS["partition_client"]
ONCE = catalog.rule("partition_client/reader-receives-a-record-once").id
EVERY = catalog.rule("partition_client/reader-receives-every-committed-record").id
FOREIGN = "is it of another cluster?"
FIRST_EPOCH = 0
"""The epoch of a partition's first leader: what has it was never written a second time."""


class ViewedPartition(NamedTuple):
    """A partition that answers are about. `copies`: all replicas that are there · `placed`: the one that is read."""

    number: int
    copies: Sequence[PartitionPlace]
    placed: PartitionPlace
    batches: AnsweredBatches

    @property
    def start(self) -> int:
        """The offset from which on nothing was deleted or compacted."""
        terms = self.placed.terms
        return max(terms.start, terms.log_start, terms.judged_from)


@dataclass
class ViewJudge:
    """Judges the answers about all partitions.

    `there`: answers that name a record of the logs · `last`: the last line that acknowledges one · `departed`: with
    the line of an answer about what lies behind a log's end, 0 for others.
    """

    log: AnswerLog
    found: LogFindings
    options: Options
    there: int = 0
    last: int = 0
    departed: list[tuple[PlacedDeparture, int]] = field(default_factory=list)
    doubted: dict[tuple[str, str], str] = field(default_factory=dict)

    def judge(self, viewed: ViewedPartition) -> None:
        """Judge the answers about a partition."""
        self._judge_sent(viewed)
        self._judge_sessions(viewed)

    def finish(self) -> None:
        """Report what departs, unless the client log is about other logs."""
        if self.departed and not self.there:
            self.found.doubt(f"no answer in {shown(self.log.path.name)} names a record of these logs: {FOREIGN}")
            return
        for one, line in self.departed:
            if line > self.last:
                self.doubted.setdefault((one.partition, "end"), f"{one.partition}: {ends_early(self.log, line)}")
            else:
                self.found.report(one)
        for doubt in self.doubted.values():
            self.found.doubt(doubt)

    # -- records that were acknowledged --------------------------------------------------------------------------------

    def _judge_sent(self, viewed: ViewedPartition) -> None:
        sent, batches = self.log.sent, viewed.batches
        sent = sent.of((sent.partition == viewed.number) & (sent.offset >= viewed.start))
        batch = batches.at(sent.offset)
        sent = sent.of((batch == NONE) | np.append(batches.is_full, True)[batch])
        made = sent_traces(batches, sent)
        is_record = batches.is_record(made.batch)
        self.there += int(is_record.sum())
        self.last = max(self.last, int(sent.line[is_record].max(initial=0)))
        for one in departing(made.events, made.starts, self.found, self.options):
            row = sent.of(np.array([one.number]))
            self._judge_lost(viewed, row, made, one.number, one.departure)

    def _judge_lost(
        self, viewed: ViewedPartition, row: AnsweredRecords, made: SentTraces, number: int, departure: Departure
    ) -> None:
        offset, line, client = (int(column[0]) for column in (row.offset, row.line, row.client))
        by_all, batch = bool(self.log.by_all[line]), int(made.batch[number])
        reason = self._loss(viewed, offset, batch, by_all=by_all)
        name = self.log.transactions[client]
        what = f"line {line:,} of {shown(self.log.path.name)}: {shown(name)} has the answer that a record lies at"
        if reason:
            self._doubt(viewed, departure.rule, f"{what} offset {offset:,}, where the log has no record: {reason}")
            return
        also = f"The answer is in {what} offset {offset:,}.", self._found(viewed, offset)
        self._report(viewed, offset, departure, also, line)

    def _loss(self, viewed: ViewedPartition, offset: int, batch: int, *, by_all: bool) -> str:
        """The reason for which a record at an offset may be lost by right; empty if it may not."""
        batches = viewed.batches
        if not batches.is_whole:
            return "its log cannot be read to the end"
        if batch != NONE and batches.column(LEADER)[batch] == FIRST_EPOCH:
            return ""
        if batch == NONE and offset < batches.end and viewed.placed.terms.is_whole:
            return ""
        return permitted_loss(viewed.copies, by_all=by_all)

    @staticmethod
    def _found(viewed: ViewedPartition, offset: int) -> str:
        """A sentence on what the log has at an offset where no record is."""
        batches = viewed.batches
        batch = int(batches.at(np.array([offset]))[0])
        if batch != NONE and batches.column(CONTROL)[batch]:
            return f"At offset {offset:,} lies a marker."
        if offset >= batches.end:
            return f"The log ends at offset {batches.end:,}, though the logs have records of later answers."
        return f"No batch has offset {offset:,}."

    # -- sessions of readers -------------------------------------------------------------------------------------------

    def _judge_sessions(self, viewed: ViewedPartition) -> None:
        sessions = self.log.sessions
        (mine,) = np.nonzero(sessions.partition == viewed.number)
        if not len(mine):
            return
        gone = ~viewed.batches.is_full & (viewed.batches.column(LAST) >= viewed.start)
        if gone.any():
            self.found.note(f"{viewed.placed.name}: sessions of readers are not compared: records of batches are gone")
            return
        received, committed = self.log.received, committed_runs(viewed.batches)
        received = received.of(np.isin(received.session, mine))
        received = received.of(np.argsort(received.session, kind="stable"))
        low, high = (received.session.searchsorted(mine, side=side) for side in ("left", "right"))
        for session, begin, end in zip(mine.tolist(), low.tolist(), high.tolist(), strict=True):
            self._judge_session(viewed, session, received.of(np.arange(begin, end)), committed)

    def _judge_session(self, viewed: ViewedPartition, session: int, rows: AnsweredRecords, committed: Runs) -> None:
        sessions, batches = self.log.sessions, viewed.batches
        is_record = batches.is_record(batches.at(rows.offset))
        self.there += int(is_record.sum())
        hidden = is_record & ~committed.have(rows.offset)  # another spec judges what is aborted, or not decided
        rows = rows.of(~hidden & (rows.offset >= viewed.start))
        begins_with_log = viewed.start == 0 and sessions.begin[session] == 0
        if not len(rows.offset) and not begins_with_log:
            return
        begin = 0 if begins_with_log else int(rows.offset[0])
        events = session_trace(committed, begin, int(sessions.stop[session]), rows.offset)
        for one in departing(events, np.array([0, len(events.action)]), self.found, self.options):
            self._judge_departed(viewed, session, rows, one.departure)

    def _judge_departed(
        self, viewed: ViewedPartition, session: int, rows: AnsweredRecords, departure: Departure
    ) -> None:
        rule, args = departure.rule, named(SPEC.name, departure.event)
        if rule == EVERY:
            offset = int(departure.state.position)
            behind = np.flatnonzero(rows.offset > offset)
            row = int(behind[0]) if len(behind) else NONE
        else:
            offset = args["first"] if rule == ONCE else self._first_absent(viewed, args["first"], args["last"])
            row = int(np.flatnonzero(rows.offset == offset)[0])
        reason = self._may_differ(viewed, rows, offset, row, rule)
        line = self._line(session, rows, offset, row, rule)
        if reason:
            self._doubt(viewed, rule, f"{line}: {reason}")
            return
        also = () if rule in (ONCE, EVERY) else (self._found(viewed, offset),)
        self._report(viewed, offset, departure, (f"{line[:1].upper()}{line[1:]}.", *also), int(rows.line[row]))

    @staticmethod
    def _first_absent(viewed: ViewedPartition, first: int, last: int) -> int:
        offsets = np.arange(first, last + 1)
        return int(offsets[~viewed.batches.is_record(viewed.batches.at(offsets))][0])

    def _may_differ(self, viewed: ViewedPartition, rows: AnsweredRecords, offset: int, row: int, rule: str) -> str:
        """The reason for which the log may have been another one when the reader read it; empty if it was this one."""
        batches = viewed.batches
        batch = int(batches.at(np.array([offset]))[0])
        if rule not in (ONCE, EVERY):
            return self._loss(viewed, offset, batch, by_all=True)
        if batch != NONE and batches.column(LEADER)[batch] == FIRST_EPOCH:
            return ""
        same = rows.of(rows.offset == offset) if rule == ONCE else rows.of(np.arange(row, row + (row != NONE)))
        if len(same.line) > (rule == ONCE) and self._has_epochs(viewed, same):
            return ""
        return permitted_loss(viewed.copies, by_all=True)

    @staticmethod
    def _has_epochs(viewed: ViewedPartition, rows: AnsweredRecords) -> bool:
        """True if records were received under the epochs that the log has for them: it is the same log up to there."""
        batch = viewed.batches.at(rows.offset)
        return bool(((batch != NONE) & (viewed.batches.column(LEADER)[batch] == rows.epoch)).all())

    def _line(self, session: int, rows: AnsweredRecords, offset: int, row: int, rule: str) -> str:
        """The lines of the client log that the log contradicts, in words."""
        sessions, file = self.log.sessions, shown(self.log.path.name)
        number, name = int(sessions.number[session]), shown(self.log.consumers[int(sessions.consumer[session])])
        who = name if number == NONE else f"session {number} of {name}"
        mine = rows.line[rows.offset == offset].tolist()
        if rule == ONCE and len(mine) > 1:
            return f"lines {mine[0]:,} and {mine[1]:,} of {file}: {who} received offset {offset:,} twice"
        if rule != EVERY:
            what = f"offset {offset:,}, where the log has no record"
            return f"line {int(rows.line[row]):,} of {file}: {who} received {what}"
        if row != NONE:
            later = int(rows.offset[row])
            return f"line {int(rows.line[row]):,} of {file}: {who} received offset {later:,}, and never {offset:,}"
        at, line = int(sessions.stop[session]), int(sessions.line[session])
        return f"line {line:,} of {file}: {who} has position {at:,}, and never received offset {offset:,}"

    # -- reporting -----------------------------------------------------------------------------------------------------

    def _doubt(self, viewed: ViewedPartition, rule: str, text: str) -> None:
        self.doubted.setdefault((str(viewed.placed.name), rule), f"{viewed.placed.name}: {text}")

    def _report(
        self, viewed: ViewedPartition, offset: int, departure: Departure, also: Sequence[str], line: int
    ) -> None:
        where = place_of(viewed.placed.terms.folder, viewed.batches, offset)
        placed = PlacedDeparture(
            viewed.placed.terms.name, str(viewed.placed.name), offset, where, departure, batch=tuple(also),
            client=str(self.log.path),
        )  # fmt: skip
        self.departed.append((placed, line if offset >= viewed.batches.end else 0))


def ends_early(log: AnswerLog, line: int) -> str:
    """The doubt about an answer behind the last one that acknowledges a record of the logs."""
    return (
        f"line {line:,} of {shown(log.path.name)} does not fit, and no later send is in the logs: was the directory "
        "copied, or its broker stopped, before the client log ends?"
    )


def place_of(folder: str, batches: AnsweredBatches, offset: int) -> Where:
    """The place of the batch with an offset; the end of its segment where none has it."""
    batch = int(batches.at(np.array([offset]))[0])
    if batch != NONE:
        segment, at = (int(batches.column(of)[batch]) for of in (SEGMENT, POSITION))
        return Where(file=f"{folder}/{batches.files[segment].log.name}", offset=at)
    segment = max(number for number, one in enumerate(batches.files) if one.base <= max(offset, batches.files[0].base))
    return Where(file=f"{folder}/{batches.files[segment].log.name}", offset=batches.files[segment].size)
