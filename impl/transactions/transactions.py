"""Transactions over a log, without threads and without a clock: one step a call, and time is passed in.

`now`, everywhere: ms since 1970, for the records that a step writes. How long a half has waited is measured without
what the clock was set by (`ahead`).

A half is appended to a topic that no consumer reads; a commit appends its message again, to the user's queue; an op
names halves that were decided; an undecided half is put back, and its producer asked. Each step is one of
`spec/transaction.py`, `op_batch.py`, `half_cache.py` and `checkpoint.py`, and the files are those of a RocketMQ broker
(docs/rocketmq-transactions.md). Where that broker differs from its design, this is the design: a half is decided once,
of all its versions the newest is, and no op is lost in a clean stop.

One thread at a time takes a step, and no other thread appends meanwhile. Ctrl-C may come in the midst of one: the log
is looked at before the next one, and what is there counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import cast

import numpy as np

from gapless.impl.files.log import CommitLog
from gapless.impl.files.queues import ConsumeQueues
from gapless.impl.records import record as r
from gapless.impl.records.errors import Refused, StoreError
from gapless.impl.records.record import Ints, Messages, Record, of_bytes
from gapless.impl.transactions import names, scan_kernel
from gapless.impl.transactions.copies import append_copies
from gapless.impl.transactions.copy_kernel import AS_COPY, AS_FINAL, AS_VERSION
from gapless.impl.transactions.finals import final_of, refusal
from gapless.impl.transactions.half_table import (
    COMMITTED,
    GONE,
    NAMED,
    PARKED,
    REPLACED,
    ROLLED_BACK,
    UNDECIDED,
    WAITS,
)
from gapless.impl.transactions.new_halves import half_of, halves_of, require_room
from gapless.impl.transactions.recovery import found_in, recover
from gapless.impl.transactions.settings import CommitResult, HalfPlace, TransactionCounts, TransactionSettings
from gapless.impl.transactions.state import CursorKeeper, TransactionState

AT_ONCE = 8192  # halves that are put back or set aside in one step, at most


class Transactions(TransactionState):
    """The transactions of one store. Created by `open`.

    The cursors are saved in `consumerOffset.json`, once what they rely on is on disk.
    """

    @classmethod
    def open(
        cls,
        log: CommitLog,
        queues: ConsumeQueues,
        cursors: CursorKeeper,
        settings: TransactionSettings | None = None,
        now: int | None = None,
    ) -> Transactions:
        """The transactions that a log has, as a scan from the half cursor on finds them. Raises Damaged, StoreError.

        What was decided has its op, or waits for one. A rollback whose op is not there is undecided again. `now`: no
        half is younger than that, though the clock was ahead when it was stored.
        """
        found = cls(log, queues, cursors, settings)
        recover(found)
        if now is not None:
            np.minimum(found.table.time, now, out=found.table.time)
        found._needed = log.end
        return found

    # -- what producers ask ------------------------------------------------------------------------------------------

    def prepare(
        self,
        topic: str,
        queue: int,
        body: bytes,
        properties: Mapping[str, str],
        group: str,
        now: int,
        *,
        flag: int = 0,
        born: int | None = None,
    ) -> HalfPlace:
        """The half is in the log, where no consumer looks, and in the cache. `now`, `born`: ms.

        Raises Refused if no record can contain it, or no final of it, DiskFull, Stopped: then there is no half.
        """
        self._settle()
        packed = half_of(topic, queue, properties, group, self.next_key())
        require_room(self.log, len(body), len(packed))
        of, number, time = self.table.group_index(group), self.halves_queue.next, now - self.ahead

        def prepared(placed: Ints) -> None:
            position, size = placed[:2, 0].tolist()
            self._prepared(number, position, size, of, time)

        self._under_way = (scan_kernel.HALF, self.log.end, prepared)
        self.keys += 1
        position, size = self.log.append(self.halves_queue, body, packed, now, flag=flag, born=born)
        self._prepared(number, position, size, of, time)
        self._under_way = None
        return HalfPlace(number, position, size)

    def next_key(self, ahead: int = 0) -> str:
        """The key of the half that is prepared next, or so many after that."""
        return f"{self.key_prefix}{self.keys + ahead:016X}"

    def _prepared(self, number: int, position: int, size: int, group: int, time: int) -> None:
        self.table.add_one(number, position, size, time, group)
        self.cache.put(number, self.log.last(position, size))

    def commit(self, number: int, now: int) -> CommitResult:
        """The message is in the user's queue, once; an op that names its half is due.

        `number`: of whichever version of the half. Raises Refused where the half was rolled back, set aside, has
        expired or is not remembered, and where the op batch is full and cannot be written; DiskFull, Stopped.
        """
        at = self._open_version(number, COMMITTED)
        if at < 0:
            return self._committed_before(number)
        self._make_room(now)
        number = at + self.table.base
        record = self._record(number)
        kind = record.sys_flag
        flag, born, born_host, store_host, reconsumed = record.sent()
        if kind & (r.BORN_V6 | r.STORE_V6) or store_host != self.log.host:
            return self._commit_as_many(number, now)
        target, packed = final_of(record)
        queue = self.queues.named(*target)

        def committed(placed: Ints) -> None:
            self._decided([number], COMMITTED, now, placed[0])

        self._under_way = (scan_kernel.FINAL, self.log.end, committed)
        position, _ = self.log.append(
            queue, record.body, packed, now, flag=flag, kind=kind | names.COMMITTED, born=born, born_host=born_host,
            reconsumed=reconsumed, half=record.position,
        )  # fmt: skip
        final = CommitResult(position, queue.next - 1)
        self.table.by[at], self.table.status[at], self.table.op[at] = position, COMMITTED, WAITS
        self.batcher.enter((number,), now - self.ahead)
        self._under_way = None
        self._write_if_full(now)
        return final

    def _commit_as_many(self, number: int, now: int) -> CommitResult:
        """A broker with another address took this half."""
        placed = self._append(np.array([number]), AS_FINAL, now)
        self._write_if_full(now)
        return CommitResult(int(placed[0, 0]), int(placed[3, 0]))

    def _committed_before(self, number: int) -> CommitResult:
        position = int(self.table.by[self.table.newest(number) - self.table.base])
        try:
            return CommitResult(position, self.log.at(position).number)
        except Refused:
            if position >= self.log.start:
                raise
            return CommitResult(position, -1)

    def roll_back(self, number: int, now: int) -> None:
        """The message will never be seen; an op that names its half is due, and says so after a crash.

        Asked again, it is as asked once. Raises as `commit` does, Refused where it was committed.
        """
        at = self._open_version(number, ROLLED_BACK)
        if at >= 0:
            self._make_room(now)
            self.cache.take(at + self.table.base)
            self._decided([at + self.table.base], ROLLED_BACK, now)
            self._write_if_full(now)

    def _open_version(self, number: int, decision: int) -> int:
        """The place in the table of a half's newest version, if it is undecided; -1 if it was decided before.

        Raises Refused where it can be decided no more.
        """
        self._settle()
        at = self.table.newest(number) - self.table.base
        status = self.table.status[at]
        if status == UNDECIDED and self.table.position[at] >= self.log.start:
            return at
        if status == decision:
            return -1
        raise refusal(number, int(status))

    def _decided(self, numbers: list[int], decision: int, now: int, by: Ints | None = None) -> None:
        """Decided halves wait for their op. A second call for the same halves changes nothing."""
        at = np.array(numbers, np.int64) - self.table.base
        if by is not None:
            self.table.by[at] = by
        self.table.status[at] = decision
        new = self.table.op[at] != NAMED
        self.table.op[at[new]] = WAITS
        waiting = [number for number, is_new in zip(numbers, new.tolist(), strict=True) if is_new]
        self.batcher.enter(waiting, now - self.ahead)

    def _record(self, number: int) -> Record:
        """The record of a half, from the cache or the log."""
        raw = self.cache.take(number)
        if raw is None:
            position = int(self.table.position[number - self.table.base])
            try:
                return self.log.at(position)
            except Refused as error:
                if position >= self.log.start:
                    raise
                raise refusal(number, GONE) from error
        return cast("Record", of_bytes(raw))  # it was cut from the log as it was written

    # -- many at once ------------------------------------------------------------------------------------------------

    def prepare_many(self, messages: Messages, group: str, now: int) -> tuple[Ints, Ints]:
        """Prepare many halves: their numbers and positions. Raises as `append_many` does.

        `messages`: as `sound` returns them.
        """
        self._settle()
        halves = halves_of(self.log, messages, group, self.key_prefix, self.keys)
        of, first, time = self.table.group_index(group), self.halves_queue.next, now - self.ahead

        def prepared(placed: Ints) -> None:
            count = placed.shape[1]
            numbers = np.arange(first, first + count)
            self.table.add(numbers, placed[0], placed[1], time, 0, of)
            for number in numbers[max(count - self.cache.capacity, 0) :].tolist():
                position, size = placed[:2, number - first].tolist()
                self.cache.put(number, self.log.last(position, size))

        self._under_way = (scan_kernel.HALF, self.log.end, prepared)
        self.keys += len(messages.queue_index)
        placed = self.log.append_many([self.halves_queue], halves, now)
        prepared(placed)
        self._under_way = None
        return placed[3], placed[0]

    def commit_many(self, numbers: Ints, now: int) -> Ints:
        """Commit many halves: the positions of their messages. All are refused if one is.

        Where DiskFull or Stopped ends it, those that went before are committed: the call can be repeated.
        """
        newest, new = self._open_versions(numbers, COMMITTED)
        while len(new):
            self._make_room(now)
            some, new = np.split(new, [self.batcher.fitting(new)])
            self._append(some, AS_FINAL, now)
            self._write_if_full(now)
        return self.table.by[newest - self.table.base].copy()

    def roll_back_many(self, numbers: Ints, now: int) -> None:
        """Roll back many halves, with the errors of `commit_many`."""
        _, new = self._open_versions(numbers, ROLLED_BACK)
        while len(new):
            self._make_room(now)
            some, new = np.split(new, [self.batcher.fitting(new)])
            for number in some.tolist():
                self.cache.take(number)
            self._decided(some.tolist(), ROLLED_BACK, now)
            self._write_if_full(now)

    def _open_versions(self, numbers: Ints, decision: int) -> tuple[Ints, Ints]:
        """The newest versions of these halves, and those among them that are undecided, each once."""
        self._settle()
        newest = self.table.newest_of(np.asarray(numbers, np.int64))
        at = newest - self.table.base
        status = self.table.status[at]
        open_ = (status == UNDECIDED) & (self.table.position[at] >= self.log.start)
        wrong = ~open_ & (status != decision)
        if wrong.any():
            first = int(wrong.argmax())
            raise refusal(int(numbers[first]), int(status[first]))
        _, first_at = np.unique(newest, return_index=True)
        once = newest[np.sort(first_at)]
        return newest, once[self.table.status[once - self.table.base] == UNDECIDED]

    # -- ops ---------------------------------------------------------------------------------------------------------

    def op_is_due(self, now: int) -> bool:
        """True if decided halves are to be named by now: they are full, or one has waited for the interval."""
        return self.batcher.is_due(now - self.ahead)

    def write_op(self, now: int) -> bool:
        """An op is in the log that names all that waits; False where nothing does. Raises DiskFull, Stopped.

        After a start more may wait than one op takes: then it names those that came first.

        Where it cannot be written, all continues to wait.
        """
        self._settle()
        numbers, body = self.batcher.batch()
        if not numbers:
            return False
        op = self.ops_queue.next

        def written(_placed: Ints) -> None:
            self.reaches[op] = max(numbers) + 1
            self.table.op[np.array(numbers, np.int64) - self.table.base] = NAMED
            self.batcher.written(numbers)

        self._under_way = (scan_kernel.OP, self.log.end, written)
        self.log.append(self.ops_queue, body, names.OP_PROPERTIES, now)
        written(np.zeros((4, 0), np.int64))
        self._under_way = None
        return True

    def write_ops(self, now: int) -> None:
        """Ops are in the log that name all that waits. Raises as `write_op` does."""
        while self.write_op(now):
            pass

    def _make_room(self, now: int) -> None:
        """Make room in the op batch for a decision. Raises DiskFull, Stopped; nothing is decided."""
        while self.batcher.is_full:
            self.write_op(now)

    def _write_if_full(self, now: int) -> None:
        """Write a full batch at once. An error is tried again at, and reported to, the next decision."""
        if self.batcher.is_full:
            with suppress(StoreError):
                self._make_room(now)

    # -- the check round ---------------------------------------------------------------------------------------------

    def due(self, now: int) -> Ints:
        """The numbers of undecided halves that have been left alone for long enough: they are asked about, or parked.

        Those of producers without a group are not among them: they could not be asked.
        """
        self._settle()
        table, latest = self.table, now - self.ahead - self.settings.transaction_timeout
        return table.where(
            lambda part: (table.status[part] == UNDECIDED) & (table.time[part] < latest) & (table.group[part] >= 0),
            self.half_cursor,
        )

    def put_back(self, numbers: Ints, now: int) -> tuple[Ints, Ints]:
        """New versions of these halves are in the log, their counters raised: their producers are to be asked now.

        At most `AT_ONCE` of them, those that are undecided still and have checks left. Returns the numbers that were
        put back, and those of their new versions. Raises DiskFull, Stopped.
        """
        some = self._still(numbers, spent=False)
        first = self.halves_queue.next
        if len(some):
            self._append(some, AS_VERSION, now)
        return some, np.arange(first, first + len(some))

    def park(self, numbers: Ints, now: int) -> Ints:
        """Copies of these halves, whose checks are spent, are set aside: they can be decided no more. As `put_back`."""
        some = self._still(numbers, spent=True)
        if len(some):
            self._append(some, AS_COPY, now)
        return some

    def _still(self, numbers: Ints, *, spent: bool) -> Ints:
        self._settle()
        numbers = numbers[:AT_ONCE]
        at = numbers - self.table.base
        is_spent = self.table.checks[at] >= self.settings.max_checks
        there = self.table.position[at] >= self.log.start
        some: Ints = numbers[(self.table.status[at] == UNDECIDED) & (is_spent == spent) & there]
        return some

    def advance(self) -> None:
        """Both cursors move on as far as halves, and then ops, are done with."""
        self._settle()
        first, oldest = self.halves_queue.first, self.log.segments.bases[:1]
        if first > self.half_cursor and oldest >= [self.log.start]:  # what has expired is gone once its files are
            self.table.room(first)
            self.table.status[max(self.half_cursor - self.table.base, 0) : first - self.table.base] = GONE
        moved = self.table.resolved_from(self.half_cursor)
        before = (self.half_cursor, self.op_cursor)
        self.half_cursor = moved
        while (reach := self.reaches.get(self.op_cursor)) is not None and reach <= moved:
            self.op_cursor += 1
        for op in [op for op in self.reaches if op < self.op_cursor]:
            del self.reaches[op]
        if before != (self.half_cursor, self.op_cursor):
            self._needed = self.log.end

    def move_behind(self, now: int) -> None:
        """Open halves at the half cursor are put back behind all finished halves, for the next owner.

        They are those whose producers could not be asked. A broker looks at nothing but ops: from the cursor on it asks
        about every version again, replaced or not, and a producer that answers twice commits twice. The last check of
        each is left to be asked. Raises as `put_back` does.
        """
        self.advance()
        table = self.table
        done = table.where(lambda part: np.isin(table.status[part], (REPLACED, PARKED)), self.half_cursor)
        if not len(done):
            return
        few = self.settings.max_checks - 1
        undecided = table.where(
            lambda part: (table.status[part] == UNDECIDED) & (table.checks[part] < few), self.half_cursor
        )
        undecided = undecided[undecided < done[-1]]
        for low in range(0, len(undecided), AT_ONCE):
            self.put_back(undecided[low : low + AT_ONCE], now)
        self.advance()

    @property
    def can_be_saved(self) -> bool:
        """True if all that the cursors rely on is on disk."""
        return self.log.flushed >= self._needed

    def save(self) -> None:
        """Both cursors are in their file. Raises Refused where what they rely on is not on disk; DiskFull, StoreError.

        Otherwise a crash could take an op, and leave a cursor that has passed what it named.
        """
        if not self.can_be_saved:
            raise Refused(f"the cursors rely on what lies before {self._needed}: flush the log first")
        group = names.CHECKING_GROUP
        for topic, cursor in ((names.HALF_TOPIC, self.half_cursor), (names.OP_TOPIC, self.op_cursor)):
            if self.cursors.get(group, topic, 0) != cursor:
                self.cursors.put(group, topic, 0, cursor)
        self.cursors.write()
        self.table.forget(self.half_cursor)

    # -- what is there -----------------------------------------------------------------------------------------------

    def undecided(self, numbers: Ints) -> Ints:
        """The versions among these that are undecided, and have not expired."""
        self._settle()
        at = numbers - self.table.base
        some: Ints = numbers[(self.table.status[at] == UNDECIDED) & (self.table.position[at] >= self.log.start)]
        return some

    def half(self, number: int) -> Record:
        """The half itself, as it lies in the log, for a decision about it. Raises Refused."""
        self._settle()
        return self.log.at(int(self.table.position[self.table.at(number)]))

    def group_of(self, number: int) -> str:
        """The group of a half's producer; empty where it has none. Raises Refused."""
        group = int(self.table.group[self.table.at(number)])
        return self.table.groups[group] if group >= 0 else ""

    def counts(self) -> TransactionCounts:
        """The counts so far."""
        self._settle()
        table, cache, batcher = self.table, self.cache, self.batcher
        undecided = table.where(lambda part: table.status[part] == UNDECIDED, self.half_cursor)
        return TransactionCounts(
            len(undecided), len(batcher), batcher.ops, batcher.named, self.put_back_count, self.parked_count,
            len(cache), cache.puts, cache.hits, cache.misses, cache.evicted, self.half_cursor, self.op_cursor,
        )  # fmt: skip

    # -- what an interrupt leaves ------------------------------------------------------------------------------------

    def _append(self, numbers: Ints, how: int, now: int) -> Ints:
        """Copies of these halves are in the log, and the table knows: int64 [4, n], as `CommitLog.append_many`."""
        first, time = self.halves_queue.next, now - self.ahead
        at = numbers - self.table.base

        def copied(placed: Ints) -> None:
            count = placed.shape[1]
            here, some = at[:count], numbers[:count]
            if how == AS_FINAL:
                self._decided(some.tolist(), COMMITTED, now, placed[0])
                return
            if how == AS_VERSION:
                new = np.arange(first, first + count)
                self.table.add(new, placed[0], placed[1], time, self.table.checks[here] + 1, self.table.group[here])
                self.table.by[here] = new
                self.put_back_count += int((self.table.status[here] == UNDECIDED).sum())
                self.table.status[here] = REPLACED
                return
            self.table.by[here] = placed[0]
            self.parked_count += int((self.table.status[here] == UNDECIDED).sum())
            self.table.status[here] = PARKED

        kind = {AS_FINAL: scan_kernel.FINAL, AS_VERSION: scan_kernel.HALF, AS_COPY: scan_kernel.COPY}[how]
        self._under_way = (kind, self.log.end, copied)
        placed = append_copies(self, numbers, how, now)
        copied(placed)
        self._under_way = None
        return placed

    def _settle(self) -> None:
        """Apply the rest of a step that was cut off, from the log: only we write records of these kinds."""
        if self._under_way is None:
            return
        kind, begin, done = self._under_way
        self.log.settle()
        rows = found_in(self.log, begin, self.log.end)
        rows = rows[:, rows[scan_kernel.KIND] == kind]
        if rows.shape[1]:
            done(rows[[scan_kernel.POSITION, scan_kernel.SIZE]])
        self._under_way = None
