"""The steps of a recorded coordinator as events, in the order in which they took effect.

Most lines are written at the step that they record. Two kinds of step leave a choice, and the broker gets the benefit
of the doubt. The limit is checked somewhere between a call and its answer: an admitted request is assumed to be checked
when fewest transactions were active, an ignored one when most were. And a record takes effect between its line and the
answer: only the answer shows if it did.
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
    FAILED,
    GIVEN,
    IGNORED,
    INFERRED,
    NEVER,
    NEW,
    OK,
    SLOTS,
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
    """Steps of one trace: each is placed at `key`, and recorded by `line`; `args`: [arguments of the spec, steps]."""

    spec: Spec
    key: Ints
    line: Ints
    action: npt.NDArray[np.int8]
    outcome: npt.NDArray[np.int8]
    args: Ints

    def taken(self, order: Ints) -> StepColumns:
        """Return the same steps in this order."""
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
    """Build steps of one kind."""
    columns = np.zeros((len(spec.arguments), len(key)), np.int64)
    for name, values in args.items():
        columns[spec.arguments.index(name)] = values
    outcomes = np.broadcast_to(np.asarray(outcome, np.int8), len(key))
    return StepColumns(spec, key, line, np.full(len(key), spec.codes[action], np.int8), outcomes, columns)


steps = partial(steps_of, SPEC)


def joined(parts: Sequence[StepColumns]) -> StepColumns:
    """Concatenate the steps of all parts."""
    return StepColumns(
        parts[0].spec,
        np.concatenate([part.key for part in parts]),
        np.concatenate([part.line for part in parts]),
        np.concatenate([part.action for part in parts]),
        np.concatenate([part.outcome for part in parts]),
        np.concatenate([part.args for part in parts], axis=1),
    )


def ordered(parts: Sequence[StepColumns]) -> StepColumns:
    """Sort the steps by their keys; equal keys keep their order."""
    whole = joined(parts)
    return whole.taken(np.argsort(whole.key, kind="stable"))


def batch(recorded: StepColumns, traces: Sequence[str], source: str, trace: Ints | None = None) -> pa.RecordBatch:
    """Build events of the steps. Their position is their line, or that of a later step that must come before.

    `trace`: for each step the index of its trace; without it all are of the first.
    """
    return schema.from_columns(
        recorded.spec.name,
        source=source,
        traces=traces,
        trace=trace,
        position=np.maximum.accumulate(recorded.line),
        action=recorded.action,
        args=recorded.args,
        outcome=recorded.outcome,
    )


def of_coordinator(lines: Lines, epochs: Sequence[Epoch], *, alone: bool) -> StepColumns:
    """Return the steps of one coordinator. `alone`: it is the only one, so client lines are about its transactions."""
    return _History(lines, epochs, alone=alone).steps()


class _History:
    """One coordinator: its log, the requests, and the answers."""

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
        """Return the rows of that kind that belong to epochs of this coordinator."""
        key = pair(self.lines.ints(kind, "source"), self.lines.ints(kind, "ep"))
        return np.flatnonzero(np.isin(key, self.keys))

    def steps(self) -> StepColumns:
        """Return all steps, in order."""
        parts = [self._beginning(), *self._epochs(), *self._records(), *self._requests(), *self._promises()]
        return ordered(parts)

    # -- loading -------------------------------------------------------------------------------------------------------

    def _beginning(self) -> StepColumns:
        """Return the steps before the recording: the first limit."""
        first = min(self.loaded or self.epochs, key=lambda epoch: epoch.opening)
        limit = 0 if self.loaded and len(self._table(first)[0]) else first.limit
        return steps("open", _at(first.opening), np.array([first.opening]), limit=limit)

    def _epochs(self) -> list[StepColumns]:
        """Return the steps of each load: the transactions that it found, and the limit from then on."""
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
        """Return the number, status, beginning and life of every transaction that was found."""
        tables: Any = self.lines.kinds["table"]
        rows = tables.slice(epoch.row, 1).column("rows").combine_chunks().flatten()
        txn, start, ttl = (
            rows.field(name).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
            for name in ("txn", "start", "ttl")
        )
        status: Any = pc.index_in(rows.field("st"), value_set=pa.array(STATUSES)).fill_null(-1)
        return txn, status.to_numpy(zero_copy_only=False).astype(np.int64), start, ttl

    def _found(self, line: int, txn: Ints, status: Ints, start: Ints, ttl: Ints) -> list[StepColumns]:
        """Return inferred steps of transactions from before the recording."""
        order = np.argsort(txn)
        txn, status, start, ttl = txn[order], status[order], start[order], ttl[order]
        key, lines = _at(line, -2, len(txn)), np.full(len(txn), line)
        decided, ended = status > Status.OPEN, status >= Status.COMMITTED
        self.at_first = int((~ended).sum())
        way = np.where(ended, status - 2, status)
        request = self.asked_by.earlier(len(txn))
        begun = [
            steps("admit", key, lines, INFERRED, request=request),
            steps("begin", key, lines, INFERRED, number=txn, request=request, time=start, life=ttl),
        ]
        turns = np.arange(2 * len(txn)).reshape(2, -1).T.reshape(-1)  # each is admitted, and begins
        return [
            joined(begun).taken(turns),
            steps("decide", key[decided], lines[decided], INFERRED, number=txn[decided], to=way[decided]),
            steps("finish", key[ended], lines[ended], INFERRED, number=txn[ended], to=status[ended]),
        ]

    # -- what the log says ---------------------------------------------------------------------------------------------

    def _records(self) -> list[StepColumns]:
        r = self.records
        new, updates = r.kind == NEW, (r.kind == UPDATE) & (r.expected != r.new)  # others change nothing
        adds = ~new & (r.kind != UPDATE)
        finishes, decides = updates & ~r.begins_an_end, updates & r.begins_an_end
        by_clock = decides & r.by_clock & (r.new == Status.ABORTING)
        decides &= ~by_clock

        def recorded(action: str, some: npt.NDArray[np.bool_], **args: Ints) -> StepColumns:
            outcome: Ints | int = OK if action == "begin" else r.outcome[some]  # what begins is never rejected
            chosen = {name: values[some] for name, values in args.items()}
            return steps(action, r.key[some], r.line[some], outcome, number=r.txn[some], **chosen)

        return [
            recorded("begin", new, request=self.asked_by.of_record, time=r.start, life=r.ttl),
            recorded("add", adds),
            recorded("decide", decides, to=r.new),
            recorded("time_out", by_clock, time=r.mod),
            recorded("finish", finishes, to=r.new),
        ]

    # -- who asked to begin --------------------------------------------------------------------------------------------

    def _requests(self) -> list[StepColumns]:
        """Return admitted, ignored, and failed requests, each at the place most favourable to the broker."""
        c, r = self.calls, self.records
        admitted, ignored = c.opens & (c.admitted < NEVER), c.opens & (c.outcome == IGNORED)
        silent = silent_calls(c) & (self._limits(c.epoch) != 0)
        until = self._until(c.epoch)
        own = np.full(len(c.line), NEVER)  # where the record is that it led to
        own[self.asked_by.call] = r.line[self.asked_by.record]
        latest = np.where(c.answer == NEVER, c.line, np.minimum(c.admitted, own))
        lost = admitted & (c.outcome == FAILED) & (c.answer < until)

        def recorded(action: str, key: Ints, line: Ints, some: npt.NDArray[np.bool_], outcome: int = OK) -> StepColumns:
            return steps(action, key, line[some], outcome, request=self.asked_by.of_call[some])

        return [
            self._unlimited(),
            recorded("admit", self._placed(c.line, latest, until, np.minimum, admitted), c.line, admitted),
            recorded("admit", self._placed(c.line, c.line, until, np.minimum, silent), c.line, silent, UNKNOWN),
            recorded("ignore", self._placed(c.line, c.answer, until, np.maximum, ignored), c.answer, ignored),
            recorded("burn", c.answer[lost] * SLOTS, c.answer, lost),
        ]

    def _unlimited(self) -> StepColumns:
        """Admit every transaction that began without a limit: no line says that its request passed it."""
        r = self.records
        new = (r.kind == NEW) & (self._limits(r.epoch) == 0) & ~self.asked_by.admitted
        return steps("admit", r.key[new] - 1, r.line[new], INFERRED, request=self.asked_by.of_record[new])

    def _limits(self, epoch: Ints) -> Ints:
        """Return the limit of each epoch."""
        return np.array([e.limit for e in self.epochs], np.int64)[np.searchsorted(self.keys, epoch)]

    def _until(self, epoch: Ints) -> Ints:
        """Return the line up to which the log belongs to each epoch: where it is read for a later one.

        An instance that was replaced answers from what it knew then.
        """
        reads = np.array([*(e.table for e in self.loaded), NEVER], np.int64)
        known = np.array([e.ready or e.opening for e in self.epochs], np.int64)
        until = reads[np.searchsorted(reads, known, side="right")]
        return np.asarray(until[np.searchsorted(self.keys, epoch)], np.int64)

    def _placed(self, low: Ints, high: Ints, until: Ints, best: np.ufunc, some: npt.NDArray[np.bool_]) -> Ints:
        """Return the place between two lines with the best number of active transactions, for some requests."""
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
        borders = np.concatenate([[-NEVER], at, [NEVER]]) * SLOTS
        found = np.clip(low * SLOTS, borders[chosen] + 1, borders[chosen + 1] - 1)
        return np.asarray(np.minimum(found, until * SLOTS - 3), np.int64)

    # -- answers to clients -------------------------------------------------------------------------------------------

    def _promises(self) -> list[StepColumns]:
        c = self.calls
        given = c.opens & (c.outcome == GIVEN)
        request = self.asked_by.of_call[given]
        parts = [steps("hand", c.answer[given] * SLOTS, c.answer[given], number=c.txn[given], request=request)]
        if self.alone:
            parts.append(self._ends("end_call", "end_ret", "e", "act", ("COMMIT", "ABORT")))
            parts.append(self._ends("op_call", "op_done", "i", "op", ("commit", "abort")))
        return parts

    def _ends(self, asked: str, answered: str, by: str, word: str, words: Sequence[str]) -> StepColumns:
        """Return ends that were requested, and acknowledged."""
        lines = self.lines
        question, answer = matched(
            pair(lines.ints(asked, "source"), lines.ints(asked, by)),
            pair(lines.ints(answered, "source"), lines.ints(answered, by)),
        )
        way = lines.codes(asked, word, words)[question]
        well = (lines.codes(answered, "res", ("ok",))[answer] == 0) & (way >= 0)
        line = lines.ints(answered, "line")[answer[well]]
        number = lines.ints(asked, "txn")[question[well]]
        return steps("acknowledge", line * SLOTS, line, number=number, status=Status.COMMITTED + way[well])


def _at(line: int, offset: int = 0, count: int = 1) -> Ints:
    """Return the place of a line, moved by `offset`, for so many steps."""
    return np.full(count, line * SLOTS + offset, np.int64)
