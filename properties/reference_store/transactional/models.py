"""The models of a store's transactions: a state for each half, and for batcher, cache and cursors.

A step of the store is steps of several specs at once: a half that is put back is a `check` of its transaction, a new
half for the cache and the cursors. All of them must take it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gapless.impl.records.record import Record
from gapless.impl.transactions import names
from gapless.properties.machines.mismatch import Mismatch, expect
from gapless.spec import checkpoint, half_cache, op_batch, transaction
from gapless.spec.checkpoint import How
from gapless.spec.language import Number, Position, Refused
from gapless.spec.transaction import NO_NUMBER, Phase

Key = str
"""UNIQ_KEY of a half: all its versions, its final and its copy have it."""


def key_of(record: Record) -> Key:
    """The transaction of a record."""
    return record.properties.get(names.KEY, "")


def times_of(record: Record) -> int:
    """The number of times that the half was put back."""
    return int(record.properties.get(names.CHECK_TIMES, "0"))


def same_but(one: Record, other: Record, *left_out: str) -> bool:
    """True if two records have the same content, but for some properties."""
    pairs = [{n: v for n, v in each.properties.items() if n not in left_out} for each in (one, other)]
    facts = [
        (each.body, each.flag, each.born_time, each.born_host, each.store_host, each.reconsumed)
        for each in (one, other)
    ]
    return pairs[0] == pairs[1] and facts[0] == facts[1]


def named_by(op: Record) -> list[int]:
    """The halves that an op names."""
    return [int(number) for number in op.body.decode().split(",")[:-1]]


@dataclass
class AskedDecisions:
    """The requests to commit and to roll back each half, by its producer: a crash leaves them untouched."""

    commits: dict[tuple[Key, int], int] = field(default_factory=dict)
    rollbacks: dict[tuple[Key, int], int] = field(default_factory=dict)


@dataclass
class TransactionModels:
    """The states of all specs. Raises Refused where one does not take a step."""

    max_checks: int
    op_bytes: int
    interval: int
    capacity: int
    halves: dict[Key, transaction.State] = field(default_factory=dict)
    keys: dict[int, Key] = field(default_factory=dict)  # of each version
    records: dict[int, Record] = field(default_factory=dict)  # of each version
    waiting: list[int] = field(default_factory=list)
    ops: list[list[int]] = field(default_factory=list)  # what each op names
    copies: dict[Key, int] = field(default_factory=dict)  # the number of each copy that was set aside
    batcher: op_batch.State = op_batch.INITIAL
    cache: half_cache.State = half_cache.INITIAL
    cursors: checkpoint.State = checkpoint.INITIAL
    saved: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        self.batcher = op_batch.open(op_batch.INITIAL, self.op_bytes, self.interval)
        self.cache = half_cache.open(half_cache.INITIAL, Number(0), Number(0), self.capacity)
        self.cursors = checkpoint.open(checkpoint.INITIAL, Number(0), Number(0))

    # -- steps -------------------------------------------------------------------------------------------------------

    def ask(self, number: int, decision: Phase, asked: AskedDecisions) -> None:
        """A producer asks to decide a half: its newest version counts."""
        key = self.keys[number]
        state, newest = self.halves[key], self.halves[key].newest
        if decision == Phase.COMMITTED:
            self.halves[key] = transaction.ask_to_commit(state, newest)
            asked.commits[key, newest] = asked.commits.get((key, newest), 0) + 1
        else:
            self.halves[key] = transaction.ask_to_roll_back(state, newest)
            asked.rollbacks[key, newest] = asked.rollbacks.get((key, newest), 0) + 1

    def prepare(self, half: Record, asked: AskedDecisions, *, cached: bool = True) -> None:
        """A new half, or the version that a half was put back as."""
        key, number, position = key_of(half), Number(half.number), Position(half.position)
        state = self.halves.get(key)
        if state is None:
            state = transaction.open(transaction.INITIAL, Position(0), self.max_checks, 1)
            marked = half.properties.get(names.MARKER) == "true"
            state = transaction.prepare(state, number, position, marked)
        else:
            parent = state.newest
            same = same_but(half, self.records[parent], names.CHECK_TIMES)
            state = transaction.check(state, number, parent, position, times_of(half), True, same)  # noqa: FBT003
        for _ in range(asked.commits.get((key, number), 0)):
            state = transaction.ask_to_commit(state, number)
        for _ in range(asked.rollbacks.get((key, number), 0)):
            state = transaction.ask_to_roll_back(state, number)
        self.halves[key], self.keys[number], self.records[number] = state, key, half
        self.cursors = checkpoint.half(self.cursors, number)
        self.cache = half_cache.flush(half_cache.append(self.cache, number, number + 1), Number(number + 1))
        if cached and self.capacity:
            if self.cache.size == self.capacity:
                self.cache = half_cache.evict(self.cache, Number(self.line()[0]))
            self.cache = half_cache.put(self.cache, number, number + 1)

    def line(self) -> list[int]:
        """The halves in the cache, the eldest first."""
        places = range(self.cache.front, self.cache.back)
        found = (self.cache.line[Number(place)] for place in places)
        return [number for number in found if number != half_cache.NO_NUMBER]

    def commit(self, final: Record, *, found: bool = True) -> None:
        """The final is in the log. `found`: its half was read through the cache."""
        key = key_of(final)
        state = self.halves[key]
        half = self.records[state.newest]
        same = same_but(final, half, names.REAL_TOPIC, names.REAL_QUEUE)
        target = half.properties[names.REAL_TOPIC], int(half.properties[names.REAL_QUEUE])
        same &= target == (final.topic, final.queue) and final.sys_flag == half.sys_flag | names.COMMITTED
        aims = {names.REAL_TOPIC, names.REAL_QUEUE} & final.properties.keys()
        number, position = state.newest, Position(final.half)
        done = transaction.commit(state, number, position, Position(final.position), same and not aims, False)  # noqa: FBT003
        if found:
            self.read(number)
        self.enqueue(number)
        self.halves[key] = done

    def read(self, number: int) -> None:
        """A decision is given the half: from the cache, or from disk."""
        cached = self.cache.places[Number(number)] != half_cache.NOWHERE
        step = half_cache.hit if cached else half_cache.read
        self.cache = step(self.cache, Number(number), number + 1)

    def roll_back(self, number: int) -> None:
        """The half will never be seen."""
        key = self.keys[number]
        state = self.halves[key]
        done = transaction.roll_back(state, state.newest)
        if self.cache.places[state.newest] != half_cache.NOWHERE:
            self.read(state.newest)
        self.enqueue(state.newest)
        self.halves[key] = done

    def enqueue(self, number: int) -> None:
        """A decided half waits for its op."""
        self.batcher = op_batch.enqueue(self.batcher, Number(number), len(f"{number},"), True)  # noqa: FBT003
        self.waiting.append(number)

    def write_op(self, op: Record) -> None:
        """An op is in the log."""
        body, numbers = op.body, named_by(op)
        last = len(f"{numbers[-1]},") if numbers else 0
        legible, listed = op.tag == "d" and body == b"".join(b"%d," % n for n in numbers), body.endswith(b",")
        self.batcher = op_batch.write(self.batcher, len(numbers), len(body), last, legible, listed)
        for number in numbers:
            self.batcher = op_batch.name(self.batcher, Number(number))
            key = self.keys[number]
            self.halves[key] = transaction.mark(self.halves[key], Number(number))
        self.cursors = checkpoint.op(self.cursors, Number(op.number), Number(max(numbers) + 1))
        self.waiting = [number for number in self.waiting if number not in numbers]
        self.ops.append(numbers)

    def park(self, copy: Record) -> None:
        """A half is set aside."""
        key = key_of(copy)
        state = self.halves[key]
        same = same_but(copy, self.records[state.newest])
        number, position = state.newest, Position(copy.position)
        self.halves[key] = transaction.park(state, number, position, times_of(copy), same, False)  # noqa: FBT003
        self.copies[key] = copy.number

    def tick(self, now: int) -> None:
        """Time goes by."""
        self.batcher = op_batch.tick(self.batcher, now)

    def advance(self, half: int, op: int, *, far: bool = True) -> None:
        """The check service has moved its cursors to here; `far`: as far as it could."""
        cursors = self.cursors
        named = {number: at for at, numbers in enumerate(self.ops) for number in numbers}
        for number in range(cursors.half_cursor, half):
            found = self._resolution(number, named)
            expect(found, f"the half cursor is {half}, and half {number} is open")
            if found:
                cursors = checkpoint.resolve(cursors, Number(number), *found)
        cursors = checkpoint.advance(cursors, Number(half))
        for done in range(cursors.op_cursor, op):
            cursors = checkpoint.consume_op(cursors, Number(done))
        self.cursors = cursors = checkpoint.advance_ops(cursors, Number(op))
        if far:
            stays = half == cursors.half_end or self._resolution(half, named) is None
            expect(stays, f"the half cursor stays at {half}, which is done with")
            stays = op == cursors.op_end or cursors.reaches[Number(op)] > half
            expect(stays, f"the op cursor stays at {op}, which is done with")

    def _resolution(self, number: int, named: Mapping[int, int]) -> tuple[How, Number] | None:
        state = self.halves[self.keys[number]]
        if number in named:
            return How.OP, Number(named[number])
        if number != state.newest:
            later = (version for version, key in self.keys.items() if key == self.keys[number] and version > number)
            return How.VERSION, Number(min(later))
        if state.phase == Phase.PARKED:
            return How.COPY, Number(self.copies[self.keys[number]])
        return None

    def flush(self, records: Iterable[Record]) -> None:
        """These records are on disk."""
        ends = {names.HALF_TOPIC: 0, names.OP_TOPIC: 0, names.PARKED_TOPIC: 0}
        for record in records:
            if record.topic in ends:
                ends[record.topic] = record.number + 1
        half, op, copy = (Number(end) for end in ends.values())
        s = self.cursors
        copy = Number(max(min(copy, s.copy_end), s.copy_flushed))
        self.cursors = checkpoint.flush(s, Number(max(half, s.half_flushed)), Number(max(op, s.op_flushed)), copy)

    def save(self) -> None:
        """Both cursors are in their file."""
        self.cursors = checkpoint.save(self.cursors)
        self.saved = (self.cursors.half_saved, self.cursors.op_saved)


def from_log(
    fresh: TransactionModels, records: Sequence[Record], asked: AskedDecisions, saved: tuple[int, int]
) -> None:
    """The state after a crash, from the log: every record is a step, and `fresh` has to take it.

    A rollback is known by its op alone. What was decided and has no op waits for one again.
    """
    finals: list[int] = []
    for record in records:
        if record.topic == names.HALF_TOPIC:
            fresh.prepare(record, asked, cached=False)
        elif record.topic == names.PARKED_TOPIC:
            fresh.park(record)
        elif record.topic == names.OP_TOPIC:
            _replay_op(fresh, record, finals)
        elif record.sys_flag & names.COMMITTED:
            fresh.commit(record, found=False)
            finals.append(fresh.halves[key_of(record)].newest)
    fresh.batcher = op_batch.crash(fresh.batcher)
    waiting, fresh.waiting = fresh.waiting, []
    for number in waiting:
        fresh.enqueue(number)
    fresh.advance(*saved, far=False)
    fresh.flush(records)
    fresh.save()


def _replay_op(fresh: TransactionModels, op: Record, finals: Sequence[int]) -> None:
    """An op that a crash has left: what it names and no final explains was rolled back."""
    fresh.batcher = op_batch.crash(fresh.batcher)
    before, fresh.waiting = fresh.waiting, []
    for number in named_by(op):
        if number in before:
            fresh.enqueue(number)
        else:
            expect(number not in finals, f"op {op.number} names half {number}, which an op has named before")
            fresh.roll_back(number)
    left = [number for number in before if number not in fresh.waiting]
    expect(not left, f"op {op.number} does not name {left}, which waited for longer")
    fresh.write_op(op)


__all__ = ["NO_NUMBER", "AskedDecisions", "Mismatch", "Phase", "Refused", "TransactionModels", "from_log", "key_of"]
