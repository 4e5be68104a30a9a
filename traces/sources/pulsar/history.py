"""What a recorded coordinator did, as the steps of `coordinator`, in the order in which they took effect.

Most lines are written beside the step that they tell of. Two kinds of step leave a choice, and the broker is given the
benefit of it. The limit is asked somewhere between a call and its answer: a request that was admitted asked when fewest
were active, one that was ignored when most were. And a record's effect comes between its line and the answer. Whether
a record that was written took effect is known from the answer to who asked for it, and otherwise not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gapless.spec.catalog import SPECS, Spec
from gapless.spec.coordinator import Status
from gapless.traces.events import schema
from gapless.traces.sources.pulsar.joined import (
    BESIDE,
    FAILED,
    GIVEN,
    IGNORED,
    INFERRED,
    NEVER,
    NEW,
    OK,
    STATUSES,
    UNKNOWN,
    UPDATE,
    Calls,
    Epoch,
    Records,
    matched,
    pair,
)
from gapless.traces.sources.pulsar.lines import Ints, Lines
from gapless.traces.sources.pulsar.requesters import RequestNumbers, silent_calls

SPEC = SPECS["coordinator"]


@dataclass
class StepColumns:
    """Steps of one trace: each is placed at `key`, and told of by `line`; `args`: [arguments of the spec, steps]."""

    spec: Spec
    key: Ints
    line: Ints
    action: npt.NDArray[np.int8]
    outcome: npt.NDArray[np.int8]
    args: Ints

    def taken(self, order: Ints) -> StepColumns:
        """The same steps in this order."""
        return StepColumns(
            self.spec,
            self.key[order],
            self.line[order],
            self.action[order],
            self.outcome[order],
            self.args[:, order],
        )


def steps_of(
    spec: Spec, action: str, key: Ints, line: Ints, outcome: Ints | int = OK, /, **args: Ints | int
) -> StepColumns:
    """Steps of one kind."""
    columns = np.zeros((len(spec.arguments), len(key)), np.int64)
    for name, values in args.items():
        columns[spec.arguments.index(name)] = values
    outcomes = np.broadcast_to(np.asarray(outcome, np.int8), len(key))
    return StepColumns(spec, key, line, np.full(len(key), spec.codes[action], np.int8), outcomes, columns)


steps = partial(steps_of, SPEC)


def joined(parts: Sequence[StepColumns]) -> StepColumns:
    """All steps, part by part."""
    return StepColumns(
        parts[0].spec,
        np.concatenate([part.key for part in parts]),
        np.concatenate([part.line for part in parts]),
        np.concatenate([part.action for part in parts]),
        np.concatenate([part.outcome for part in parts]),
        np.concatenate([part.args for part in parts], axis=1),
    )


def ordered(parts: Sequence[StepColumns]) -> StepColumns:
    """All steps by their keys, and where these are equal, as they are given."""
    whole = joined(parts)
    return whole.taken(np.argsort(whole.key, kind="stable"))


def batch(told: StepColumns, trace: str, source: str) -> pa.RecordBatch:
    """The steps as events. Their position is the line, or that of a later one which they cannot come before."""
    return schema.from_columns(
        told.spec.name,
        source=source,
        traces=[trace],
        position=np.maximum.accumulate(told.line),
        action=told.action,
        args=told.args,
        outcome=told.outcome,
    )


def of_coordinator(lines: Lines, epochs: Sequence[Epoch], *, alone: bool) -> StepColumns:
    """The steps of one coordinator. `alone`: there is no other, so that what clients say is of its transactions."""
    return _History(lines, epochs, alone=alone).steps()


class _History:
    """One coordinator: what its log says, who asked, and what was answered."""

    def __init__(self, lines: Lines, epochs: Sequence[Epoch], *, alone: bool) -> None:
        self.lines = lines
        self.alone = alone
        self.epochs = sorted(epochs, key=lambda epoch: epoch.key)
        self.keys = np.array([epoch.key for epoch in self.epochs], np.int64)
        self.loaded = [epoch for epoch in epochs if epoch.ready]
        self.calls = Calls(lines, self._of_mine("call"))
        self.records = Records(lines, self._of_mine("log"), self._of_mine("replay"), self.loaded, self.calls)
        self.asked_by = RequestNumbers(self.calls, self.records, self._limits(self.records.epoch) == 0)
        self.at_first = 0  # transactions that were active before the recording began

    def _of_mine(self, kind: str) -> Ints:
        """The rows of that kind that belong to epochs of this coordinator."""
        key = pair(self.lines.ints(kind, "source"), self.lines.ints(kind, "ep"))
        return np.flatnonzero(np.isin(key, self.keys))

    def steps(self) -> StepColumns:
        """All that happened, in its order."""
        parts = [self._beginning(), *self._epochs(), *self._records(), *self._requests(), *self._promises()]
        return ordered(parts)

    # -- loading -------------------------------------------------------------------------------------------------------

    def _beginning(self) -> StepColumns:
        """The first limit; none for what was there before the recording began."""
        first = min(self.loaded or self.epochs, key=lambda epoch: epoch.opening)
        limit = 0 if self.loaded and len(self._table(first)[0]) else first.limit
        return steps("open", _at(first.opening), np.array([first.opening]), limit=limit)

    def _epochs(self) -> list[StepColumns]:
        """What each load found, and the limit that holds from then on."""
        parts: list[StepColumns] = []
        for number, epoch in enumerate(self.loaded):
            txn, status, start, ttl = self._table(epoch)
            line = epoch.table
            if number == 0 and len(txn):
                parts += self._found(line, txn, status, start, ttl)
            parts.append(steps("unload", _at(line, -1), np.array([line])))
            parts.append(steps("load", _at(line, 0, len(txn)), np.full(len(txn), line), number=txn, status=status))
            parts.append(steps("recover", _at(epoch.ready), np.array([epoch.ready]), limit=epoch.limit))
        return parts

    def _table(self, epoch: Epoch) -> tuple[Ints, Ints, Ints, Ints]:
        """Of every transaction that was found: its number, status, beginning and life."""
        tables: Any = self.lines.kinds["table"]
        rows = tables.slice(epoch.row, 1).column("rows").combine_chunks().flatten()
        txn, start, ttl = (
            rows.field(name).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
            for name in ("txn", "start", "ttl")
        )
        status: Any = pc.index_in(rows.field("st"), value_set=pa.array(STATUSES)).fill_null(-1)
        return txn, status.to_numpy(zero_copy_only=False).astype(np.int64), start, ttl

    def _found(self, line: int, txn: Ints, status: Ints, start: Ints, ttl: Ints) -> list[StepColumns]:
        """What was there before the recording began: it is taken for granted."""
        order = np.argsort(txn)
        txn, status, start, ttl = txn[order], status[order], start[order], ttl[order]
        key, told = _at(line, -2, len(txn)), np.full(len(txn), line)
        decided, ended = status > Status.OPEN, status >= Status.COMMITTED
        self.at_first = int((~ended).sum())
        way = np.where(ended, status - 2, status)
        request = self.asked_by.earlier(len(txn))
        begun = [
            steps("admit", key, told, INFERRED, request=request),
            steps("begin", key, told, INFERRED, number=txn, request=request, time=start, life=ttl),
        ]
        turns = np.arange(2 * len(txn)).reshape(2, -1).T.reshape(-1)  # each is admitted, and begins
        return [
            joined(begun).taken(turns),
            steps("decide", key[decided], told[decided], INFERRED, number=txn[decided], to=way[decided]),
            steps("finish", key[ended], told[ended], INFERRED, number=txn[ended], to=status[ended]),
        ]

    # -- what the log says ---------------------------------------------------------------------------------------------

    def _records(self) -> list[StepColumns]:
        r = self.records
        new, updates = r.kind == NEW, (r.kind == UPDATE) & (r.expected != r.new)  # others change nothing
        adds = ~new & (r.kind != UPDATE)
        finishes, decides = updates & ~r.begins_an_end, updates & r.begins_an_end
        by_clock = decides & r.by_clock & (r.new == Status.ABORTING)
        decides &= ~by_clock

        def told(action: str, some: npt.NDArray[np.bool_], **args: Ints) -> StepColumns:
            outcome: Ints | int = OK if action == "begin" else r.outcome[some]  # what begins is never rejected
            chosen = {name: values[some] for name, values in args.items()}
            return steps(action, r.key[some], r.line[some], outcome, number=r.txn[some], **chosen)

        return [
            told("begin", new, request=self.asked_by.of_record, time=r.start, life=r.ttl),
            told("add", adds),
            told("decide", decides, to=r.new),
            told("time_out", by_clock, time=r.mod),
            told("finish", finishes, to=r.new),
        ]

    # -- who asked to begin --------------------------------------------------------------------------------------------

    def _requests(self) -> list[StepColumns]:
        """Requests that were admitted, ignored, or came to nothing, each where that speaks for the broker."""
        c, r = self.calls, self.records
        admitted, ignored = c.opens & (c.admitted < NEVER), c.opens & (c.said == IGNORED)
        silent = silent_calls(c) & (self._limits(c.epoch) != 0)
        until = self._until(c.epoch)
        own = np.full(len(c.line), NEVER)  # where the record is that it led to
        own[self.asked_by.call] = r.line[self.asked_by.record]
        latest = np.where(c.answer == NEVER, c.line, np.minimum(c.admitted, own))
        lost = admitted & (c.said == FAILED) & (c.answer < until)

        def told(action: str, key: Ints, line: Ints, some: npt.NDArray[np.bool_], outcome: int = OK) -> StepColumns:
            return steps(action, key, line[some], outcome, request=self.asked_by.of_call[some])

        return [
            self._unlimited(),
            told("admit", self._placed(c.line, latest, until, np.minimum, admitted), c.line, admitted),
            told("admit", self._placed(c.line, c.line, until, np.minimum, silent), c.line, silent, UNKNOWN),
            told("ignore", self._placed(c.line, c.answer, until, np.maximum, ignored), c.answer, ignored),
            told("burn", c.answer[lost] * BESIDE, c.answer, lost),
        ]

    def _unlimited(self) -> StepColumns:
        """Where there is no limit, nobody says that a request passed it: whatever began was admitted."""
        r = self.records
        new = (r.kind == NEW) & (self._limits(r.epoch) == 0) & ~self.asked_by.told
        return steps("admit", r.key[new] - 1, r.line[new], INFERRED, request=self.asked_by.of_record[new])

    def _limits(self, epoch: Ints) -> Ints:
        """The limit of each epoch."""
        return np.array([e.limit for e in self.epochs], np.int64)[np.searchsorted(self.keys, epoch)]

    def _until(self, epoch: Ints) -> Ints:
        """Up to which line the log is the business of each epoch: until it is read for a later one.

        What an instance answers that was replaced, it answers from what it knew then.
        """
        reads = np.array([*(e.table for e in self.loaded), NEVER], np.int64)
        known = np.array([e.ready or e.opening for e in self.epochs], np.int64)
        until = reads[np.searchsorted(reads, known, side="right")]
        return np.asarray(until[np.searchsorted(self.keys, epoch)], np.int64)

    def _placed(self, low: Ints, high: Ints, until: Ints, best: np.ufunc, some: npt.NDArray[np.bool_]) -> Ints:
        """For some requests, a place between two lines at which the number of active transactions is best for them."""
        at, certain, change = self.records.changes()
        until = until[some]
        low, high = np.minimum(low[some], until - 1), np.minimum(high[some], until - 1)
        active = self.at_first + np.concatenate([np.zeros(1, np.int64), np.cumsum(change)])
        last = np.searchsorted(at, high)  # the changes that may be done by then
        first = np.minimum(np.searchsorted(certain, low), last)  # those that surely are
        sign = 1 if best is np.minimum else -1
        worth = np.append(sign * active * (len(active) + 1) + np.arange(len(active)), 0)
        spans = np.stack([first, last + 1], axis=1).reshape(-1)
        chosen = np.minimum.reduceat(worth, spans)[::2] % (len(active) + 1) if len(spans) else first
        borders = np.concatenate([[-NEVER], at, [NEVER]]) * BESIDE
        found = np.clip(low * BESIDE, borders[chosen] + 1, borders[chosen + 1] - 1)
        return np.asarray(np.minimum(found, until * BESIDE - 3), np.int64)

    # -- what clients were told ----------------------------------------------------------------------------------------

    def _promises(self) -> list[StepColumns]:
        c = self.calls
        given = c.opens & (c.said == GIVEN)
        request = self.asked_by.of_call[given]
        parts = [steps("hand", c.answer[given] * BESIDE, c.answer[given], number=c.txn[given], request=request)]
        if self.alone:
            parts.append(self._ends("end_call", "end_ret", "e", "act", ("COMMIT", "ABORT")))
            parts.append(self._ends("op_call", "op_done", "i", "op", ("commit", "abort")))
        return parts

    def _ends(self, asked: str, answered: str, by: str, word: str, words: Sequence[str]) -> StepColumns:
        """Ends that were asked for, and answered well."""
        lines = self.lines
        question, answer = matched(
            pair(lines.ints(asked, "source"), lines.ints(asked, by)),
            pair(lines.ints(answered, "source"), lines.ints(answered, by)),
        )
        way = lines.codes(asked, word, words)[question]
        well = (lines.codes(answered, "res", ("ok",))[answer] == 0) & (way >= 0)
        line = lines.ints(answered, "line")[answer[well]]
        number = lines.ints(asked, "txn")[question[well]]
        return steps("acknowledge", line * BESIDE, line, number=number, status=Status.COMMITTED + way[well])


def _at(line: int, beside: int = 0, count: int = 1) -> Ints:
    """The place of a line, or one beside it, for so many steps."""
    return np.full(count, line * BESIDE + beside, np.int64)
