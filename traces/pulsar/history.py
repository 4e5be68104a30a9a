"""What a recorded coordinator did, as the steps of `coordinator`, in the order in which they took effect.

Most lines are written beside the step that they tell of. Two kinds of step leave a choice, and the broker is given the
benefit of it. The limit is asked somewhere between a call and its answer: a request that was admitted asked when fewest
were active, one that was ignored when most were. And a record's effect comes between its line and the answer. Whether
a record that was written took effect is known from the answer to who asked for it, and otherwise not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gapless.spec.coordinator import Status
from gapless.traces import schema
from gapless.traces.pulsar.lines import Ints, Lines
from gapless.traces.schema import OUTCOMES
from gapless.traces.specs import SPECS, Spec

SPEC = SPECS["coordinator"]
OK, REFUSED, UNKNOWN, INFERRED = (OUTCOMES.index(name) for name in ("ok", "refused", "unknown", "inferred"))
NEVER = np.int64(2**60)  # a line that never comes
BESIDE = 4  # between two lines there is room for what is placed beside them


@dataclass
class Steps:
    """Steps of one coordinator, in any order: each is placed at `key`, and told of by `line`."""

    key: Ints
    line: Ints
    action: npt.NDArray[np.int8]
    outcome: npt.NDArray[np.int8]
    args: Ints  # [arguments of the spec, steps]


def steps(
    action: str, key: Ints, line: Ints, outcome: Ints | int = OK, *, spec: Spec = SPEC, **args: Ints | int
) -> Steps:
    """Steps of one kind. They are shown in the order of `key`, and where that is equal, as they are given."""
    count = len(key)
    columns = np.zeros((len(spec.arguments), count), np.int64)
    for name, values in args.items():
        columns[spec.arguments.index(name)] = values
    return Steps(
        key,
        line,
        np.full(count, spec.codes[action], np.int8),
        np.broadcast_to(np.asarray(outcome, np.int8), count),
        columns,
    )


def ordered(parts: Sequence[Steps]) -> Steps:
    """All steps in their order."""
    key = np.concatenate([part.key for part in parts])
    order = np.argsort(key, kind="stable")
    return Steps(
        key[order],
        np.concatenate([part.line for part in parts])[order],
        np.concatenate([part.action for part in parts])[order],
        np.concatenate([part.outcome for part in parts])[order],
        np.concatenate([part.args for part in parts], axis=1)[:, order],
    )


def batch(told: Steps, trace: str, source: str) -> pa.RecordBatch:
    """The steps as events. Their position is the line, or that of a later one which they cannot come before."""
    return schema.from_columns(
        SPEC.name,
        source=source,
        traces=[trace],
        position=np.maximum.accumulate(told.line),
        action=told.action,
        args=told.args,
        outcome=told.outcome,
    )


@dataclass(frozen=True)
class Epoch:
    """One time that a coordinator was loaded: by whom, with which limit, and the lines that tell of it.

    `table`: what it held then, the row of the lines of that kind; -1 if it was never said · `ready`: 0 if it failed.
    """

    source: int
    number: int
    limit: int
    opening: int
    table: int
    ready: int


def coordinators(lines: Lines) -> dict[int, list[Epoch]]:
    """Every coordinator of the recording, with its epochs in their order."""
    kinds = lines.words("epoch", "ev")
    number, source, tc = lines.ints("epoch", "ep"), lines.ints("epoch", "source"), lines.ints("epoch", "tc", 0)
    line, limit = lines.ints("epoch", "line"), lines.ints("epoch", "M", 0)
    tables = list(zip(*(lines.ints("table", name).tolist() for name in ("source", "ep", "line")), strict=True))
    ready = {
        (int(s), int(n)): int(at)
        for s, n, at in zip(*(c[kinds == "ready"].tolist() for c in (source, number, line)), strict=True)
    }
    found: dict[int, list[Epoch]] = {}
    for at in np.flatnonzero(kinds == "opening").tolist():
        mine = int(source[at]), int(number[at])
        till = ready.get(mine, 0)
        rows = [row for row, (s, n, there) in enumerate(tables) if (s, n) == mine and line[at] < there <= till]
        epoch = Epoch(*mine, int(limit[at]), int(line[at]), rows[0] if rows else -1, till)
        found.setdefault(int(tc[at]), []).append(epoch)
    return found


def of_coordinator(lines: Lines, epochs: Sequence[Epoch], *, alone: bool) -> Steps:
    """The steps of one coordinator. `alone`: there is no other, so that what clients say is of its transactions."""
    return _History(lines, epochs, alone=alone).steps()


class _History:
    """One coordinator's lines, joined: calls with their answers, records with what was answered for them."""

    def __init__(self, lines: Lines, epochs: Sequence[Epoch], *, alone: bool) -> None:
        self.lines = lines
        self.alone = alone
        self.mine = {(epoch.source, epoch.number): epoch for epoch in epochs}
        self.loaded = [epoch for epoch in epochs if epoch.ready]
        self.calls = _Calls(lines, self._of_mine("call"))
        self.records = _Records(lines, self._of_mine("log"), self._of_mine("replay"), self.loaded, self.calls)

    def _of_mine(self, kind: str) -> Ints:
        """The rows of that kind that belong to epochs of this coordinator."""
        key = _pair(self.lines.ints(kind, "source"), self.lines.ints(kind, "ep"))
        mine = np.array([_pair(np.int64(s), np.int64(n)) for s, n in self.mine], np.int64)
        return np.flatnonzero(np.isin(key, mine))

    def steps(self) -> Steps:
        """All that happened, in its order."""
        parts = [self._beginning(), *self._epochs(), *self._records(), *self._requests(), *self._promises()]
        return ordered(parts)

    # -- loading -------------------------------------------------------------------------------------------------------

    def _beginning(self) -> Steps:
        limit = self.loaded[0].limit if self.loaded else next(iter(self.mine.values())).limit
        first = min(epoch.opening for epoch in self.mine.values())
        return steps("open", _at(first), np.array([first]), limit=limit)

    def _epochs(self) -> list[Steps]:
        """What each load found, and the limit that holds from then on."""
        parts: list[Steps] = []
        for number, epoch in enumerate(self.loaded):
            line, txn, status, start, ttl = self._table(epoch)
            if number == 0 and len(txn):
                parts += self._found(line, txn, status, start, ttl)
            if number:
                parts.append(steps("unload", _at(line, -1), np.array([line])))
            parts.append(steps("load", _at(line, 0, len(txn)), np.full(len(txn), line), number=txn, status=status))
            parts.append(steps("recover", _at(epoch.ready), np.array([epoch.ready]), limit=epoch.limit))
        return parts

    def _table(self, epoch: Epoch) -> tuple[int, Ints, Ints, Ints, Ints]:
        """The line, and of every transaction: its number, status, beginning and life."""
        if epoch.table < 0:
            return epoch.ready, *(np.zeros(0, np.int64) for _ in range(4))  # type: ignore[return-value]
        rows = self.lines.kinds["table"].slice(epoch.table, 1).column("rows").combine_chunks().flatten()
        txn, start, ttl = (rows.field(n).fill_null(0).to_numpy(zero_copy_only=False) for n in ("txn", "start", "ttl"))
        status = _coded(np.asarray(rows.field("st").fill_null("").to_numpy(zero_copy_only=False), np.str_))
        line = int(self.lines.ints("table", "line")[epoch.table])
        return line, txn.astype(np.int64), status, start.astype(np.int64), ttl.astype(np.int64)

    def _found(self, line: int, txn: Ints, status: Ints, start: Ints, ttl: Ints) -> list[Steps]:
        """What was there before the recording began: it is taken for granted."""
        order = np.argsort(txn)
        txn, status, start, ttl = txn[order], status[order], start[order], ttl[order]
        key, told = _at(line, -2, len(txn)), np.full(len(txn), line)
        decided, ended = status > Status.OPEN, status >= Status.COMMITTED
        way = np.where(ended, status - 2, status)
        begun = _turned(
            steps("admit", key, told, INFERRED),
            steps("begin", key, told, INFERRED, number=txn, time=start, life=ttl),
        )
        return [
            begun,
            steps("decide", key[decided], told[decided], INFERRED, number=txn[decided], to=way[decided]),
            steps("finish", key[ended], told[ended], INFERRED, number=txn[ended], to=status[ended]),
        ]

    # -- what the log says ---------------------------------------------------------------------------------------------

    def _records(self) -> list[Steps]:
        r = self.records
        key, new, number = r.key, r.op == "NEW", r.txn
        parts = [
            steps("begin", key[new], r.line[new], number=number[new], time=r.start[new], life=r.ttl[new]),
            steps("add", key[r.adds], r.line[r.adds], r.outcome[r.adds], number=number[r.adds]),
        ]
        updates = (r.op == "UPDATE") & (r.expected != r.new)  # else it changes nothing
        decides, finishes = updates & r.decides, updates & ~r.decides
        by_clock = decides & r.by_clock & (r.new == Status.ABORTING)
        decides &= ~by_clock
        for name, chosen, more in (
            ("decide", decides, {"to": r.new[decides]}),
            ("time_out", by_clock, {"time": r.mod[by_clock]}),
            ("finish", finishes, {"to": r.new[finishes]}),
        ):
            parts.append(steps(name, key[chosen], r.line[chosen], r.outcome[chosen], number=number[chosen], **more))
        return parts

    # -- who asked to begin --------------------------------------------------------------------------------------------

    def _requests(self) -> list[Steps]:
        """Requests that were admitted, ignored, or came to nothing, each where that speaks for the broker."""
        c, r = self.calls, self.records
        opens = c.op == "open"
        limited = opens & (c.admitted < NEVER)
        ignored = opens & (c.res == "ignored")
        until = self._until(c.source, c.epoch)
        began = {int(n): int(at) for n, at in zip(r.txn[r.op == "NEW"], r.line[r.op == "NEW"], strict=True)}
        own = np.array([began.get(n, NEVER) for n in c.txn[limited].tolist()], np.int64)
        latest = np.where(c.answer[limited] == NEVER, c.line[limited], np.minimum(c.admitted[limited], own))
        admit_at = self._placed(c.line[limited], latest, until[limited], np.minimum)
        ignore_at = self._placed(c.line[ignored], c.answer[ignored], until[ignored], np.maximum)
        lost = limited & (c.res == "err") & (c.answer < until)
        return [
            self._unlimited(),
            steps("admit", admit_at, c.line[limited]),
            steps("ignore", ignore_at, c.answer[ignored]),
            steps("burn", _keys(c.answer[lost]), c.answer[lost]),
        ]

    def _unlimited(self) -> Steps:
        """Where there is no limit, nobody says that a request passed it: whatever began was admitted."""
        r = self.records
        unlimited = np.array([self.mine[source, number].limit == 0 for source, number in r.epochs], np.bool_)
        new = (r.op == "NEW") & unlimited
        return steps("admit", r.key[new] - 1, r.line[new], INFERRED)

    def _until(self, source: Ints, epoch: Ints) -> Ints:
        """Up to which line the log is the business of that epoch: until it is read for another.

        What an instance answers that was replaced, it answers from what it knew then.
        """
        own = {(e.source, e.number): e.opening for e in self.mine.values()}
        reads = np.array([self._table(e)[0] for e in self.loaded] + [NEVER], np.int64)
        opened = np.array([own[s, n] for s, n in zip(source.tolist(), epoch.tolist(), strict=True)], np.int64)
        mine = {(e.source, e.number): at for at, e in enumerate(self.loaded)}
        following = [mine.get(key, -1) + 1 for key in zip(source.tolist(), epoch.tolist(), strict=True)]
        later = np.searchsorted(reads, opened)
        return np.asarray(reads[np.where(np.array(following, np.int64) > 0, following, later)], np.int64)

    def _placed(self, low: Ints, high: Ints, until: Ints, best: np.ufunc) -> Ints:
        """For each request, a place between two lines at which the number of active transactions is best for it."""
        at, certain, change = self.records.changes()
        low, high = np.minimum(low, until - 1), np.minimum(high, until - 1)
        active = np.concatenate([np.zeros(1, np.int64), np.cumsum(change)])
        first = np.minimum(np.searchsorted(certain, low), np.searchsorted(at, high))  # changes that are surely done
        last = np.searchsorted(at, high)  # and those that may be
        sign = 1 if best is np.minimum else -1
        padded = np.concatenate([sign * active * (len(active) + 1) + np.arange(len(active)), [0]])
        pairs = np.stack([first, last + 1], axis=1).reshape(-1)
        chosen = np.minimum.reduceat(padded, pairs)[::2] % (len(active) + 1) if len(low) else first
        borders = np.concatenate([[-NEVER], _keys(at), [NEVER * BESIDE]])
        found: Ints = np.clip(_keys(low), borders[chosen] + 1, borders[chosen + 1] - 1)
        return np.minimum(found, _keys(until) - 3)

    # -- what clients were told ----------------------------------------------------------------------------------------

    def _promises(self) -> list[Steps]:
        c = self.calls
        given = (c.op == "open") & (c.res == "ok")
        parts = [steps("hand", _keys(c.answer[given]), c.answer[given], number=c.txn[given])]
        if not self.alone:
            return parts
        for asked, answered, by, word, ends in (
            ("end_call", "end_ret", "e", "act", {"COMMIT": Status.COMMITTED, "ABORT": Status.ABORTED}),
            ("op_call", "op_done", "i", "op", {"commit": Status.COMMITTED, "abort": Status.ABORTED}),
        ):
            at, txn, act = self.lines.ints(asked, by), self.lines.ints(asked, "txn"), self.lines.words(asked, word)
            row = {
                (int(s), int(n)): k for k, (s, n) in enumerate(zip(self.lines.ints(asked, "source"), at, strict=True))
            }
            done = np.flatnonzero(self.lines.words(answered, "res") == "ok")
            who = zip(self.lines.ints(answered, "source")[done], self.lines.ints(answered, by)[done], strict=True)
            told = np.array([row.get((int(s), int(n)), -1) for s, n in who], np.int64)
            known = (told >= 0) & np.isin(act[told], list(ends)) if len(told) else np.zeros(0, np.bool_)
            line = self.lines.ints(answered, "line")[done][known]
            told = told[known]
            status = np.array([ends[word] for word in act[told].tolist()], np.int64)
            parts.append(steps("acknowledge", _keys(line), line, number=txn[told], status=status))
        return parts


class _Calls:
    """Every call of the coordinator with its answer, if there is one."""

    def __init__(self, lines: Lines, rows: Ints) -> None:
        self.line = lines.ints("call", "line")[rows]
        self.source = lines.ints("call", "source")[rows]
        self.epoch = lines.ints("call", "ep")[rows]
        self.op = lines.words("call", "op")[rows]
        self.new = _coded(lines.words("call", "new")[rows])
        self.expected = _coded(lines.words("call", "exp")[rows])
        self.by_clock = lines.ints("call", "timeout", 0)[rows] > 0
        self.kind = np.array([CALLS.index(word) if word in CALLS else -1 for word in self.op.tolist()], np.int64)
        number = lines.ints("call", "c")[rows]
        key = _pair(self.source, number)
        place = np.argsort(key, kind="stable")

        def joined(kind: str) -> tuple[Ints, Ints]:
            """Of that kind: rows that belong to a call, and that call."""
            theirs = _pair(lines.ints(kind, "source"), lines.ints(kind, "c"))
            at = np.minimum(np.searchsorted(key[place], theirs), max(len(key) - 1, 0))
            hit = np.flatnonzero(key[place][at] == theirs) if len(key) else np.zeros(0, np.int64)
            return hit, place[at[hit]] if len(key) else hit

        self.txn = lines.ints("call", "txn")[rows].copy()
        self.answer = np.full(len(rows), NEVER)
        self.res = np.full(len(rows), "", "<U10")
        self.rejected = np.zeros(len(rows), np.bool_)
        self.admitted = np.full(len(rows), NEVER)
        said, call = joined("ret")
        self.answer[call] = lines.ints("ret", "line")[said]
        self.res[call] = lines.words("ret", "res")[said]
        self.rejected[call] = lines.words("ret", "err")[said] == "InvalidTxnStatusException"
        opened = self.op[call] == "open"
        self.txn[call[opened]] = lines.ints("ret", "txn")[said[opened]]
        said, call = joined("adm")
        self.admitted[call] = lines.ints("adm", "line")[said]


CALLS = ("open", "add_part", "add_sub", "update")
KINDS = ("NEW", "ADD_PARTITION", "ADD_SUBSCRIPTION", "UPDATE")  # of the records that these calls write


class _Records:
    """Every record of the log, in its order: as it was acknowledged, or else as it was found when the log was read."""

    def __init__(self, lines: Lines, rows: Ints, read: Ints, loaded: Sequence[Epoch], calls: _Calls) -> None:
        found = self._unacknowledged(lines, rows, read)
        kinds = (("log", rows), ("replay", found))

        def ints(name: str) -> Ints:
            return np.concatenate([lines.ints(kind, name, 0)[some] for kind, some in kinds])

        def words(name: str) -> npt.NDArray[np.str_]:
            return np.concatenate([lines.words(kind, name)[some] for kind, some in kinds])

        self.line, self.source, self.epoch = ints("line"), ints("source"), ints("ep")
        self.key = _keys(self.line)
        tables = {(e.source, e.number): int(lines.ints("table", "line")[e.table]) for e in loaded if e.table >= 0}
        for at in range(len(rows), len(self.line)):  # they were there before the table that holds them
            whole = tables.get((int(self.source[at]), int(self.epoch[at])), int(self.line[at]))
            self.key[at] = min(self.key[at], whole * BESIDE - 2)
        self.op, self.txn = words("op"), ints("txn")
        self.expected, self.new = _coded(words("exp")), _coded(words("new"))
        self.decides = self._which()
        self.start, self.ttl, self.mod = ints("start"), ints("ttl"), ints("mod")
        self.adds = np.char.startswith(self.op, "ADD")
        self.answer = np.full(len(self.line), NEVER)
        self.outcome = np.full(len(self.line), UNKNOWN, np.int8)
        self.by_clock = np.zeros(len(self.line), np.bool_)
        self._answered(calls, len(rows))

    def _which(self) -> npt.NDArray[np.bool_]:
        """Whether a record is the beginning of an end. One that can be neither is told as what can never be taken.

        It says from where it goes to where: an end that begins with an outcome is no beginning, and so on.
        """
        begins = (self.expected == Status.OPEN) & ((self.new == Status.COMMITTING) | (self.new == Status.ABORTING))
        ends = (self.new >= Status.COMMITTED) & (self.new == self.expected + 2)
        return begins | (~ends & (self.new >= Status.COMMITTED))

    @staticmethod
    def _unacknowledged(lines: Lines, rows: Ints, read: Ints) -> Ints:
        """Records that were found in the log, once each, and of which nobody said that they are in it."""
        known = np.unique(_positions(lines.words("log", "pos")[rows]))
        there = _positions(lines.words("replay", "pos")[read])
        _, first = np.unique(there, return_index=True)
        first = np.sort(first)
        return read[first[~np.isin(there[first], known)]]

    def _answered(self, calls: _Calls, acknowledged: int) -> None:
        """What was answered to who asked for a record: the first that asked for it has the first record."""
        asked: dict[tuple[int, ...], list[int]] = {}
        for call in np.flatnonzero((calls.res == "ok") | calls.rejected).tolist():
            key = (
                *(int(c[call]) for c in (calls.source, calls.epoch, calls.kind, calls.txn, calls.expected, calls.new)),
            )
            asked.setdefault(key, []).append(call)
        kind = np.array([KINDS.index(word) for word in self.op.tolist()], np.int64)
        written: dict[tuple[int, ...], list[int]] = {}
        for at in range(acknowledged):
            key = (*(int(c[at]) for c in (self.source, self.epoch, kind, self.txn, self.expected, self.new)),)
            written.setdefault(key, []).append(at)
        for key, records in written.items():
            answers = sorted(asked.get(key, ()), key=lambda call: int(calls.answer[call]))
            rejected = {bool(calls.rejected[call]) for call in answers}
            if len(answers) == len(records):
                for at, call in zip(records, answers, strict=True):
                    self.outcome[at] = REFUSED if calls.rejected[call] else OK
                    self.answer[at] = calls.answer[call]
            elif len(rejected) == 1:
                self.outcome[records] = REFUSED if rejected.pop() else OK
            self.by_clock[records] = bool(answers) and all(calls.by_clock[call] for call in answers)

    @property
    def epochs(self) -> list[tuple[int, int]]:
        """Who wrote, or read, each record."""
        return list(zip(self.source.tolist(), self.epoch.tolist(), strict=True))

    def changes(self) -> tuple[Ints, Ints, Ints]:
        """When slots are taken and freed: after which line, certainly by which, and by how many."""
        freed = (self.op == "UPDATE") & (self.new >= Status.COMMITTED) & (self.outcome != REFUSED)
        change = np.where(self.op == "NEW", 1, np.where(freed, -1, 0))
        rows = np.flatnonzero(change)
        rows = rows[np.argsort(self.key[rows], kind="stable")]
        at = self.key[rows] // BESIDE
        following = np.append(at[1:], NEVER)
        certain = np.maximum.accumulate(np.minimum(self.answer[rows], following)) if len(rows) else at
        return at, certain, change[rows]


def _turned(*parts: Steps) -> Steps:
    """Steps that take turns: the first of each, then the second of each."""
    whole = ordered(parts)
    count = len(parts[0].key)
    order = np.arange(len(parts) * count).reshape(len(parts), count).T.reshape(-1)
    joined = np.concatenate([part.action for part in parts])
    return Steps(
        whole.key,
        np.concatenate([part.line for part in parts])[order],
        joined[order],
        np.concatenate([part.outcome for part in parts])[order],
        np.concatenate([part.args for part in parts], axis=1)[:, order],
    )


def _positions(words: npt.NDArray[np.str_]) -> npt.NDArray[np.str_]:
    """Positions in the log, one way: what is alone in its batch is written with and without its place there."""
    return np.array([word.removesuffix(":0/1") for word in words.tolist()], np.str_)


def _pair(high: Ints | np.int64, low: Ints | np.int64) -> Ints:
    """Two numbers as one."""
    return np.asarray((high << 40) + low, np.int64)


def _keys(line: Ints) -> Ints:
    return np.asarray(line * BESIDE, np.int64)


def _at(line: int, beside: int = 0, count: int = 1) -> Ints:
    """The place of a line, or one beside it, for so many steps."""
    return np.full(count, line * BESIDE + beside, np.int64)


CODES = {status.name: int(status) for status in Status}


def _coded(words: npt.NDArray[np.str_]) -> Ints:
    """Statuses as numbers; -1 for what is none."""
    return np.array([CODES.get(word, -1) for word in words.tolist()], np.int64)
