"""Ordered parallel dispatch: readers see the entries of a broker's queues, in whatever order workers write."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.impl.dispatch.batches import DispatchBatch
from gapless.impl.dispatch.dispatch import Dispatch
from gapless.impl.dispatch.pool import Pool, rebuild
from gapless.impl.dispatch.scan_kernel import NUMBER, POSITION, QUEUE
from gapless.impl.environment.operating_system import RealDisk
from gapless.impl.files.log import CommitLog
from gapless.impl.files.queues import BLANK_SLOT
from gapless.impl.files.segments import Segments
from gapless.impl.records.errors import Damaged, DiskFull, NotAStore, Refused, Stopped, StoreError
from gapless.impl.store import core
from gapless.properties.faults.planted.dispatch_faults import STEP_FAULTS
from gapless.properties.faults.planted.fault_injection import InjectedFault
from gapless.spec.language import Refused as SpecRefused
from tests.support.dispatching import FILE, Judge, Run, entries_in, log_of, memory_queues, numbered
from tests.support.night import NIGHT
from tests.support.rocketmq import stores
from tests.support.rocketmq.recordings import COUNTS, recording
from tests.support.rocketmq.stores import Record, properties

MIXED = [(topic, queue) for _ in range(12) for topic, queue in (("a", 0), ("b", 0), ("a", 0), ("a", 1), ("c", 7))]


# What brokers wrote


@pytest.mark.parametrize("name", COUNTS)
def test_entries_are_those_that_the_broker_wrote(name: str) -> None:
    """Every entry of the recording's consume queues, byte by byte; and every record has one, by the plain reader."""
    store = recording(name)
    disk = RealDisk(store)
    (log_size,) = set(disk.names("commitlog").values())
    log = CommitLog(Segments.load(disk, "commitlog", log_size))
    records = stores.read_log(store)
    log.end = log.flushed = records[-1].end
    files = {path.relative_to(store).as_posix(): path.read_bytes() for path in store.glob("consumequeue/*/*/*")}
    (queue_size,) = {len(data) for data in files.values()}
    every = [*product((1, 2, 8), (1, 7, 1 << 14))]
    ways = every if NIGHT and len(records) < 1500 else every[::4]
    for workers, batch_records in ways:
        queues = memory_queues(queue_size)
        dispatch = Dispatch(
            log, queues, position=log.start, batch_records=batch_records, verify=True, lmq=name == "lmq"
        )
        rebuild(dispatch, log.end, workers)
        assert dispatch.idle
        assert dispatch.dispatched == log.end
        made = {path: file.data.tobytes() for path, file in queues.disk.files.items()}  # type: ignore[attr-defined]
        compared = sum(_same_entries(theirs, made.get(path, b""), log.start) for path, theirs in files.items())
        beyond = sum(len(numbers) for numbers in stores.expected_queues(records).values()) - compared
        assert 0 <= beyond <= (1 if name in {"kill9", "unclean"} else 0)
        assert entries_in(queues) == stores.expected_queues(records)


def _same_entries(theirs: bytes, ours: bytes, start: int) -> int:
    """Count the entries of a file; those whose messages have expired are not rebuilt."""
    count = 0
    for at in range(0, len(theirs), 20):
        position, size, _tag = stores.ENTRY.unpack_from(theirs, at)
        if size not in {0, BLANK_SLOT} and position >= start:
            assert ours[at : at + 20] == theirs[at : at + 20]
            count += 1
    return count


# Whatever the order of steps


@pytest.mark.parametrize("seed", range(20))
def test_every_step_is_one_that_the_spec_allows(seed: int) -> None:
    """Ten schedules each: with failures, crashes and flushes, judged step by step, and to the end."""
    for one in range(10):
        Run(Dispatch, 10 * seed + one).go()


@pytest.mark.parametrize("fault", STEP_FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_found(fault: InjectedFault) -> None:
    with fault.planted(), pytest.raises((AssertionError, SpecRefused, StoreError)):
        take_schedules(core.Dispatch, 100)  # type: ignore[attr-defined]


def take_schedules(kind: type[Dispatch], count: int) -> None:
    for seed in range(count):
        Run(kind, seed).go()


def test_the_example_of_the_proposal() -> None:
    """Entries 1, 2 and 5 are written, and consumers see two; 3 and 4 come, and they see five."""
    log, _ = log_of(numbered([("a", 0)] * 6))
    dispatch = Dispatch(log, memory_queues(), position=0, batch_records=1)
    m1, m2, m3, m4, m5, _m6 = [dispatch.scan(log.end) for _ in range(6)]
    (queue,) = dispatch._queues.all
    for batch in (m5, m1, m2):
        write(dispatch, batch)
    assert dispatch.commit(queue) == queue.committed == 2
    assert dispatch.written(queue) == [4]
    for batch in (m4, m3):
        write(dispatch, batch)
        dispatch.commit(queue)
    assert queue.committed == 5
    assert dispatch.dispatched == m5.high if m5 else False


def write(dispatch: Dispatch, batch: DispatchBatch | None) -> None:
    assert batch is not None
    dispatch.take(batch)
    dispatch.build(batch)
    dispatch.wrote(batch)


def test_no_more_is_in_flight_than_there_is_room_for() -> None:
    log, _ = log_of(numbered(MIXED))
    dispatch = Dispatch(log, memory_queues(), position=0, batch_records=5, in_flight=3)
    batches = [dispatch.scan(log.end) for _ in range(3)]
    first, *others = [batch for batch in batches if batch is not None]
    assert (dispatch.full, dispatch.scan(log.end), dispatch.full) == (False, None, True)
    for batch in others:  # the first of them holds all up
        write(dispatch, batch)
        dispatch.commit_all(batch)
        assert (dispatch.scan(log.end), dispatch.full) == (None, True)
    write(dispatch, first)
    dispatch.commit_all(first)
    assert dispatch.idle
    assert (dispatch.scan(log.end) is None, dispatch.full) == (False, False)


def test_only_so_many_queues_are_in_flight_as_fit_in_memory() -> None:
    log, _ = log_of(numbered([("orders", queue) for _ in range(3) for queue in range(20)]))
    queues = memory_queues()
    dispatch = Dispatch(log, queues, position=0)
    dispatch._table.most, dispatch._table._crowd, dispatch._table.limit = 1, 1, 6
    first = dispatch.scan(log.end)
    assert first is not None
    assert len(first.runs) == 6
    assert (dispatch.scan(log.end), dispatch.full) == (None, True)
    write(dispatch, first)
    dispatch.commit_all(first)
    assert dispatch.scan(log.end) is not None
    rest = Dispatch(log, queues, position=dispatch.dispatched)
    rest._table.most, rest._table._crowd, rest._table.limit = 1, 1, 6
    rebuild(rest, log.end, workers=2)
    assert {name: list(entries) for name, entries in entries_in(queues).items()} == {
        ("orders", queue): [0, 1, 2] for queue in range(20)
    }


def test_steps_that_are_not_possible_are_refused_and_change_nothing() -> None:
    log, _ = log_of(numbered(MIXED))
    dispatch = Dispatch(log, memory_queues(), position=0, batch_records=5, overlap=False)
    first, second = dispatch.scan(log.end), dispatch.scan(log.end)
    assert first is not None
    assert second is not None
    dispatch.take(first)
    for step in (
        lambda: dispatch.take(first),  # it is taken
        lambda: dispatch.take(second),  # it has a queue in common with the first
        lambda: dispatch.wrote(second),  # no worker took it
        lambda: dispatch.failed(second, RuntimeError()),
    ):
        with pytest.raises(Refused):
            step()
    assert dispatch.take() is None
    dispatch.build(first)
    dispatch.wrote(first)
    assert dispatch.take() is second
    assert first.rows[:, QUEUE].tolist() == [0, 1, 0, 2, 3]
    assert first.rows[0, POSITION] == 0


# A worker that fails


class FailingDispatch(Dispatch):
    """A dispatch whose first builds of batches with a position fail."""

    position, times = 0, 0

    def build(self, batch: DispatchBatch) -> None:
        """Build as a worker would, or fail."""
        if batch.low <= self.position < batch.high and self.times:
            self.times -= 1
            raise RuntimeError("the worker fell over")
        super().build(batch)


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_a_failing_worker_is_tried_again(workers: int) -> None:
    log, records = log_of(numbered(MIXED))
    dispatch = FailingDispatch(log, memory_queues(), position=0, batch_records=7, retries=3)
    dispatch.position, dispatch.times = records[20].position, 3
    rebuild(dispatch, log.end, workers)
    assert dispatch.times == 0
    assert entries_in(dispatch._queues) == stores.expected_queues(records)


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_a_worker_that_fails_for_good_stops_dispatch_and_no_hole_is_passed(workers: int) -> None:
    log, records = log_of(numbered(MIXED))
    dispatch = FailingDispatch(log, memory_queues(), position=0, batch_records=7, retries=3)
    dispatch.position, dispatch.times = records[20].position, 4
    with pytest.raises(RuntimeError, match="the worker fell over"):
        rebuild(dispatch, log.end, workers)
    assert dispatch.dispatched <= records[20].position
    for step in (lambda: dispatch.scan(log.end), dispatch.take, lambda: dispatch.commit(dispatch._queues.all[0])):
        with pytest.raises(Stopped, match="the worker fell over"):
            step()
    seen = entries_in(dispatch._queues)
    hole = dispatch._queues.named(records[20].topic, records[20].queue)
    assert hole.committed <= records[20].number
    for name, entries in stores.expected_queues(records).items():
        assert seen.get(name, {}) == {number: entries[number] for number in range(len(seen.get(name, {})))}


class Flaky(Dispatch):
    """A build in ten fails."""

    chance = Random(5)

    def build(self, batch: DispatchBatch) -> None:
        """Build as a worker would, or fail."""
        if self.chance.random() < 0.1:
            raise RuntimeError("the worker fell over")
        super().build(batch)


@pytest.mark.parametrize("overlap", [False, True])
def test_threads_take_only_steps_that_the_spec_allows(overlap: bool) -> None:  # noqa: FBT001 - a case
    log, records = log_of(numbered(MIXED * 10), size=1 << 16)
    queues, expected = memory_queues(), stores.expected_queues(records)
    judge = Judge(queues, expected, overlap=overlap)
    dispatch = Flaky(log, queues, position=0, batch_records=4, overlap=overlap, retries=20, recorder=judge)
    rebuild(dispatch, log.end, 4)
    judge.compare(dispatch)
    assert entries_in(queues) == expected


# Stop, and start again


def test_a_pool_is_stopped_at_any_point_and_another_continues() -> None:
    log, records = log_of(numbered(MIXED * 20), size=1 << 16)
    queues, position, chance = memory_queues(), 0, Random(1)
    for _ in range(200):
        dispatch = Dispatch(log, queues, position=position, batch_records=chance.choice((3, 50)))
        pool = Pool(dispatch, limit=lambda: log.end, workers=3)
        pool.start()
        if chance.random() < 0.5:
            pool.wait(lambda: False, timeout=chance.random() / 1000)
        pool.stop()
        position = dispatch.dispatched
        for queue in queues.all:
            queue.scanned = queue.committed
        if position == log.end:
            break
    assert position == log.end
    assert entries_in(queues) == stores.expected_queues(records)


def test_a_pool_follows_the_log_and_pauses() -> None:
    log, records = log_of(numbered(MIXED))
    end, log.end = log.end, 0
    dispatch = Dispatch(log, memory_queues(), position=0, batch_records=2)
    pool = Pool(dispatch, limit=lambda: log.end)
    pool.start()
    for upto in (records[3].end, records[30].end):
        log.end = upto
        pool.wake()
        assert pool.wait(lambda upto=upto: dispatch.dispatched >= upto, timeout=10)  # type: ignore[misc]
    with pool.paused():
        log.end = end
        before = dispatch.scanned
        time.sleep(0.05)
        assert dispatch.scanned == before
    assert pool.wait(lambda: dispatch.dispatched == end, timeout=10)
    assert not pool.wait(lambda: False, timeout=0.01)
    pool.stop()
    assert entries_in(dispatch._queues) == stores.expected_queues(records)


def test_a_pool_whose_scan_fails_says_so() -> None:
    log, records = log_of(numbered(MIXED))
    data, _ = log.view(0)
    data[records[9].position + 4] = 0
    pool = Pool(Dispatch(log, memory_queues(), position=0), limit=lambda: log.end)
    pool.start()
    with pytest.raises(Damaged, match=rf"commitlog/0{{20}}\+{records[9].position}: "):
        pool.wait(lambda: False, timeout=10)
    with pytest.raises(Damaged):
        pool.stop()
    assert not pool._working
    assert pool.dispatch.dispatched == records[9].position


# Records of every kind

KINDS = [
    Record("a", b"x", properties({"TAGS": "größe", "KEYS": "k"})),
    Record("a", b"x" * 3, properties({"TAGS": "\U0001f600"}), sys_flag=stores.BORN_IPV6, born_host=b"\1" * 20),
    Record("a", b"", properties({"TAGS": "x"}), sys_flag=stores.STORE_IPV6, store_host=b"\2" * 20),
    Record("a", b"y", b"TAGS\x01no end"),
    Record("a", b"y", b"TAGS\x01one\x02TAGS\x01two\x02TAGS\x01\x02\x02A\x02\x01b\x02"),
    Record("a", b"y", b"TAGSX\x01one\x02XTAGS\x01two\x02TAG\x01three\x02"),
    Record("t" * 200, b"z" * 40, properties({"TAGS": "paid"})),
    *(
        Record(stores.SCHEDULE_TOPIC, b"", properties({"DELAY": str(level), "TAGS": "t"}), store_time=10**12,
        queue=level) for level in (0, 1, 2, 18, 19, 99)
    ),
    Record(
        stores.SCHEDULE_TOPIC, properties=properties({"DELAY": "3"}), store_time=10**12, queue=5,
        sys_flag=stores.BORN_IPV6 | stores.STORE_IPV6, born_host=b"\1" * 20, store_host=b"\2" * 20,
    ),
    Record("a", properties=properties({"DELAY": "3", "TAGS": "t"}), store_time=10**12),
    Record("a", sys_flag=stores.PREPARED),
    Record("a", sys_flag=stores.ROLLED_BACK),
    Record("a", sys_flag=stores.COMMITTED),
]  # fmt: skip


def renumbered(records: Iterable[Record]) -> Iterator[Record]:
    following: dict[tuple[str, int], int] = defaultdict(int)
    for record in records:
        yield replace(record, number=following[record.topic, record.queue] if record.is_queued else 0)
        following[record.topic, record.queue] += record.is_queued


def dispatched(log: CommitLog, **settings: Any) -> Dispatch:
    """All of a log, by one worker."""
    dispatch = Dispatch(log, settings.pop("queues", memory_queues()), position=log.start, **settings)
    rebuild(dispatch, log.end, 1)
    assert dispatch.dispatched == log.end
    return dispatch


def test_records_of_every_kind_have_the_entries_that_brokers_give_them() -> None:
    log, records = log_of(renumbered(KINDS * 2))
    made = entries_in(dispatched(log, verify=True)._queues)
    expected = stores.expected_queues(records)
    assert made == expected
    assert len({entry.tag_code for entries in expected.values() for entry in entries.values()}) > 8


@given(st.lists(st.sampled_from(KINDS), max_size=30), st.integers(1, 9), st.randoms(use_true_random=False))
def test_any_log_gives_its_queues(kinds: list[Record], batch_records: int, chance: Random) -> None:
    """Batches are cut at any size, files end anywhere, and batches are written in any order."""
    log, records = log_of(renumbered(kinds), size=1024)
    dispatch = Dispatch(log, memory_queues(60), position=0, batch_records=batch_records, in_flight=99, verify=True)
    batches = []
    while (batch := dispatch.scan(log.end)) is not None:
        batches.append(batch)
    chance.shuffle(batches)
    for batch in batches:
        write(dispatch, batch)
    for queue in dispatch._queues.all:
        dispatch.commit(queue)
    assert dispatch.idle
    assert entries_in(dispatch._queues) == stores.expected_queues(records)


def light(names: str, numbers: str, **fields: Any) -> Record:
    pairs = {"INNER_MULTI_DISPATCH": names, "INNER_MULTI_QUEUE_OFFSET": numbers, "TAGS": "t"}
    return Record("a", properties=properties(pairs), **fields)


def test_light_queues_get_entries_too() -> None:
    many = ",".join(f"%LMQ%{index}" for index in range(300))  # more than a batch has room for
    log, records = log_of(
        [
            light("%LMQ%0,%LMQ%x", "0,0"),
            light("other,%LMQ%x,%LMQ%a/b,%LMQ%y", "0,1,0,nothing", number=1),
            replace(light("%LMQ%0", "1"), topic="%RETRY%a"),
            light(many, ",".join(["1", *["0"] * 299]), number=2),
        ]
    )
    dispatch = dispatched(log, lmq=True, batch_records=1)
    assert {queue.name: queue.committed for queue in dispatch._queues.all} == {
        "a/0": 3, "%LMQ%x/0": 2, "%RETRY%a/0": 1, **{f"%LMQ%{index}/0": 2 if not index else 1 for index in range(300)},
    }  # fmt: skip
    seen = entries_in(dispatch._queues)
    assert [seen["%LMQ%0", 0][number].position for number in (0, 1)] == [records[0].position, records[3].position]
    assert seen["%LMQ%x", 0][1] == seen["a", 0][1]
    assert {queue.name for queue in dispatched(log)._queues.all} == {"a/0", "%RETRY%a/0"}  # only the requested ones


def test_a_record_that_names_a_light_queue_twice_is_damage_and_has_no_effect() -> None:
    log, _ = log_of([light("%LMQ%x,%LMQ%x", "0,1")])
    dispatch = Dispatch(log, memory_queues(), position=0, lmq=True)
    for _ in range(2):
        with pytest.raises(Damaged, match="names each light queue once"):
            dispatch.scan(log.end)
    assert all(queue.scanned == 0 for queue in dispatch._queues.all)


# Where a log begins, and where queues do


def test_a_log_whose_first_files_have_expired_begins_its_queues_where_it_does() -> None:
    start = 5 * FILE
    shifted = [replace(record, number=record.number + 13) for record in numbered([("a", 0)] * 5)]
    log, records = log_of([*shifted, Record("b", number=0)], start=start)
    dispatch = dispatched(log)
    queue = dispatch._queues.named("a", 0)
    assert (queue.first, queue.committed, queue.flushed) == (13, 18, 13)
    assert entries_in(dispatch._queues) == stores.expected_queues(records)
    blank = queue.slots(8, 13)
    assert {bytes(slot) for slot in blank} == {stores.PRE_BLANK}


@pytest.mark.parametrize(("start", "position"), [(0, 0), (FILE, 1)])
def test_a_queue_that_begins_too_late_is_damage(start: int, position: int) -> None:
    """A queue begins in the middle only if the log lost its first files, and is scanned from its start."""
    log, records = log_of([Record("b"), Record("a", number=13)], start=start)
    at = records[position].position if position else start
    dispatch = Dispatch(log, memory_queues(), position=at)
    while at < records[1].position:
        assert dispatch.scan(records[1].position) is not None
        at = dispatch.scanned
    with pytest.raises(Damaged, match=rf"\+{records[1].position - start}: the record has number 13 of queue a/0"):
        dispatch.scan(log.end)


def test_files_that_go_before_they_are_dispatched_are_missed() -> None:
    log, _ = log_of(numbered(MIXED), size=1024)
    dispatch = Dispatch(log, memory_queues(), position=0)
    log.start = 1024
    with pytest.raises(Damaged, match="dispatch is at position 0, and the log begins at 1024"):
        dispatch.scan(log.end)


def test_a_topic_recreated_begins_at_0() -> None:
    twice = [*numbered([("a", 0)] * 11), *numbered([("a", 0)] * 3)]
    log, records = log_of(twice)
    dispatch = Dispatch(log, memory_queues(), position=0, batch_records=100)
    first = dispatch.scan(log.end)
    assert first is not None
    assert first.high == records[11].position  # what is in flight of the old queue comes first
    assert dispatch.scan(log.end) is None
    assert dispatch.full
    write(dispatch, first)
    dispatch.commit_all(first)
    rebuild(dispatch, log.end, 1)
    assert entries_in(dispatch._queues) == stores.expected_queues(records[11:])


def test_what_is_visible_is_passed_when_the_log_is_walked_again() -> None:
    log, records = log_of(numbered(MIXED))
    queues = memory_queues()
    dispatched(log, queues=queues)
    for queue in queues.all:
        queue.committed = queue.scanned = min(queue.committed, 5)  # so many had survived
    before = {name: file.data.copy() for name, file in queues.disk.files.items()}  # type: ignore[attr-defined]
    dispatch = Dispatch(log, queues, position=0, batch_records=9)
    given = []
    while (batch := dispatch.scan(log.end)) is not None:
        given += list(map(tuple, batch.rows[:, [QUEUE, NUMBER]].tolist()))
        write(dispatch, batch)
        dispatch.commit_all(batch)
    assert min(number for _, number in given) == 5
    assert entries_in(queues) == stores.expected_queues(records)
    after = queues.disk.files  # type: ignore[attr-defined]
    assert all((file.data == before[name]).all() for name, file in after.items())


# What may be scanned, and what may be flushed


def test_nothing_is_scanned_beyond_the_limit() -> None:
    log, records = log_of(numbered(MIXED), size=1024)
    ends = [record.end for record in records]
    for limit in range(0, log.end + 1, 7):
        dispatch = Dispatch(log, memory_queues(), position=0, in_flight=99)
        while dispatch.scan(limit) is not None:
            pass
        reached = max([0, *(end for end in ends if end <= limit)])
        assert reached <= dispatch.scanned <= limit  # behind the last record there may be a blank
        assert sum(queue.scanned for queue in dispatch._queues.all) == sum(end <= limit for end in ends)


def test_entries_are_flushed_as_far_as_their_records_are() -> None:
    log, records = log_of(numbered([("a", 0)] * 30))
    for number in range(31):
        dispatch = dispatched(log, queues=(queues := memory_queues()))
        (queue,) = queues.all
        safe = records[number].position if number < 30 else log.end
        assert dispatch.flush(queue, safe) == queue.flushed == number
        if number:
            assert dispatch.flush(queue, safe - 1) == number  # it does not go back
        files = queues.disk.files  # type: ignore[attr-defined]
        synced = sum(file.synced is not None for file in files.values())
        assert synced == max(-(-number // 8), 3)  # a file is synced before the next one is made


def test_a_flush_that_fails_stops_dispatch() -> None:
    log, _ = log_of(numbered(MIXED))
    dispatch = dispatched(log)
    queue = dispatch._queues.all[0]
    queue.files = refuse  # type: ignore[assignment, method-assign]
    with pytest.raises(StoreError, match=r"consumequeue/a/0: .*Input/output error"):
        dispatch.flush(queue, log.end)
    assert queue.flushed == 0
    with pytest.raises(Stopped):
        dispatch.flush(queue, log.end)


def test_a_full_disk_is_reported_where_it_is_met_and_then_continues() -> None:
    log, records = log_of(numbered([("a", 0)] * 20))
    queues = memory_queues()
    queues.disk.room = 1  # type: ignore[attr-defined]
    dispatch = Dispatch(log, queues, position=0)
    batch = dispatch.scan(log.end)
    assert batch is not None
    assert batch.rows[:, NUMBER].tolist() == [*range(8)]  # one file's worth
    for _ in range(2):
        with pytest.raises(DiskFull, match="make room"):
            dispatch.scan(log.end)
    queues.disk.room = 9  # type: ignore[attr-defined]
    rebuild(dispatch, log.end, 1)
    assert entries_in(queues) == stores.expected_queues(records)


def test_a_pool_waits_for_room_on_the_disk() -> None:
    log, records = log_of(numbered([("a", 0)] * 20))
    queues = memory_queues()
    queues.disk.room = 1  # type: ignore[attr-defined]
    pool = Pool(Dispatch(log, queues, position=0), limit=lambda: log.end)
    pool.start()
    with pytest.raises(DiskFull):
        pool.wait(lambda: False, timeout=10)
    assert pool.error is None
    queues.disk.room = 9  # type: ignore[attr-defined]
    deadline = time.monotonic() + 10
    while pool.dispatch.dispatched < log.end and time.monotonic() < deadline:
        time.sleep(0.01)
    pool.stop()
    assert entries_in(queues) == stores.expected_queues(records)


# Damage


@pytest.mark.parametrize("when", ["before the scan", "before the build"])
def test_no_damage_makes_entries_of_nothing(when: str) -> None:
    """Every byte of a record is changed: a protected one is reported with its place; no other entry suffers."""
    log, records = log_of(renumbered(KINDS[:7]))
    victim = records[3]
    data, _ = log.view(0)
    whole = stores.expected_queues(records)
    body, topic = 84, 88 + len(victim.body)
    secured = {*range(12), *range(28, 36), *range(body, topic + 1), topic + 2, topic + 3}
    for at, flip in product(range(victim.size), (0x01, 0x80, 0xFF)):
        dispatch = Dispatch(log, memory_queues(), position=0, verify=True)
        batch = dispatch.take(dispatch.scan(log.end)) if when == "before the build" else None
        data[victim.position + at] ^= flip
        try:
            if batch is not None:
                dispatch.build(batch)
                dispatch.wrote(batch)
                dispatch.commit_all(batch)
            rebuild(dispatch, log.end, 1)
        except StoreError as error:
            place = re.match(r"commitlog/0{20}\+(\d+): ", str(error))
            assert place is not None
            assert int(place[1]) >= victim.position
        else:
            assert at not in secured
        data[victim.position + at] ^= flip
        for name, entries in entries_in(dispatch._queues).items():
            for number, entry in entries.items():
                assert entry == whole.get(name, {}).get(number) or entry.position == victim.position


@pytest.mark.parametrize("lmq", [False, True])
def test_garbage_is_reported_and_nothing_is_read_beyond_it(lmq: bool) -> None:  # noqa: FBT001 - a case
    """Lengths of all kinds in headers that are records' by their magic number; a reader that believes them falls."""
    chance, reports = Random(3), []
    for _ in range(300):
        log, records = log_of(renumbered([*KINDS[:9], light("%LMQ%0,%LMQ%1", "0,0"), *KINDS[:3]]), size=2048)
        data, _ = log.view(0)
        for _ in range(chance.choice((1, 3))):
            at = chance.choice(records).position + chance.choice((0, 4, 36, 84, 88, chance.randrange(90)))
            data[at : at + 4] = list(
                chance.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\0", chance.randbytes(4)))
            )
        try:
            dispatched(log, verify=True, lmq=lmq)
        except StoreError as error:
            reports.append(str(error))
    assert len(reports) > 200
    assert all(message.startswith("commitlog/0") for message in reports)


def test_an_inner_batch_is_no_record_for_these_queues() -> None:
    log, records = log_of([Record("a"), Record("a", number=1, sys_flag=stores.INNER_BATCH)])
    dispatch = Dispatch(log, memory_queues(), position=0)
    assert dispatch.scan(log.end) is not None
    with pytest.raises(NotAStore, match=rf"\+{records[1].position}: the record is an inner batch"):
        dispatch.scan(log.end)


def refuse(_low: int, _high: int) -> None:
    raise OSError(5, "Input/output error")
