"""Transactions of a store, as programs use them: decided once, found again, asked about, and through interrupts."""

import asyncio
import errno
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest

from gapless.impl.environment.operating_system import wall_clock
from gapless.impl.recorder.recorder import StoreRecorder
from gapless.impl.transactions import names
from gapless.properties.machines.interrupts.interrupter import Interrupter
from gapless.properties.simulation.simulated_disk import SimulatedDisk
from gapless.store import (
    DiskFull,
    ProducerGroup,
    Refused,
    Settings,
    Stopped,
    Store,
    StoreError,
    TransactionSettings,
    UndecidedHalf,
)
from gapless.traces.check import check
from tests.support.night import by_day
from tests.support.rocketmq.transaction_broker import TransactionBroker

SMALL = Settings(file_size=1 << 16, queue_file_size=4000)
QUICK = TransactionSettings(check_interval=20, transaction_timeout=0, op_batch_interval=50, max_checks=3)
SLOW = TransactionSettings(check_interval=1 << 30, transaction_timeout=0, op_batch_interval=1 << 30)
SLOW_FEW = replace(SLOW, max_checks=3)
BODIES = [b"%d" % number for number in range(20)]


def conforms(folder: Path, **more: Any) -> None:
    report = check([folder], profile="strict", **more)
    assert report.verdict == "conforms", report.findings


def until(what: Callable[[], object]) -> None:
    """Some time later it is so."""
    end = monotonic() + 10
    while not what():
        assert monotonic() < end, "it never happens"
        sleep(0.002)


def bodies(store: Store, topic: str = "orders", queue: int = 0) -> list[bytes]:
    low, high = store.range(topic, queue)
    return [record.body for record in store.read(topic, queue, low, 1000)] if high > low else []


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path, SMALL) as found:
        yield found
    conforms(tmp_path)


@pytest.fixture
def tx(store: Store) -> Iterator[ProducerGroup]:
    with store.transactions("billing", settings=SLOW) as group:
        yield group


def test_leaving_the_block_commits_and_raising_rolls_back(store: Store, tx: ProducerGroup) -> None:
    with tx.begin("orders", 0, b"paid", tag="new", properties={"KEYS": "a"}, flag=7, born=5):
        store.flush()
        assert store.range("orders", 0) == (0, 0)
    assert store.wait_for("orders", 0, 0)
    seen = store.get("orders", 0, 0)
    assert (seen.body, seen.tag, seen.flag, seen.born_time, seen.properties["KEYS"]) == (b"paid", "new", 7, 5, "a")
    assert not {names.REAL_TOPIC, names.REAL_QUEUE} & seen.properties.keys()

    class FailedError(Exception):
        pass

    with pytest.raises(FailedError), tx.begin("orders", 0, b"not paid"):
        raise FailedError
    assert tx.begin("orders", 0, b"last").commit().number == 1
    assert tx.counts().undecided == 0


def test_the_example_in_the_readme_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parents[2] / "impl/README.md").read_text()
    example = next(part for part in text.split("```python\n")[1:] if "store.transactions(" in part).split("```")[0]
    monkeypatch.chdir(tmp_path)
    charged: list[int] = []
    exec(example, {"was_it_paid": lambda _: True, "charge_the_card": lambda: charged.append(1)})  # noqa: S102 - ours
    assert charged == [1]
    with Store.open("data") as store:
        assert bodies(store) == [b"paid"]


def test_a_half_is_decided_once(tx: ProducerGroup) -> None:
    first, second = tx.begin("orders", 0, b"1"), tx.begin("orders", 0, b"2")
    done = first.commit()
    assert first.commit() == done
    with pytest.raises(Refused, match="half 0 was committed"):
        first.roll_back()
    assert not second.roll_back().durable
    assert second.roll_back(wait=True).durable
    with pytest.raises(Refused, match="half 1 was rolled back"):
        second.commit()
    with pytest.raises(Refused, match="there is none"):
        tx.commit(2)


def test_a_half_that_cannot_be_is_refused_and_its_block_is_not_entered(store: Store, tx: ProducerGroup) -> None:
    end = store.core.log.end
    for topic, body, properties in (
        ("orders", bytes(1 << 16), {}),
        (names.HALF_TOPIC, b"", {}),
        ("a/b", b"", {}),
        ("orders", b"", {"UNIQ_KEY": "mine"}),
        ("orders", b"", {"DELAY": "3"}),
    ):
        with pytest.raises(Refused), tx.begin(topic, 0, body, properties=properties):
            pytest.fail("the block is entered")
    with pytest.raises(Refused):
        tx.begin_batch([("orders", 0, b"", {}), ("orders", 0, b"", {"TRAN_MSG": "true"})])
    assert store.core.log.end == end
    tx.begin("orders", 0, b"sound")


@pytest.mark.parametrize("topic", names.OWN_TOPICS)
def test_no_user_writes_to_the_topics_of_the_store(store: Store, tx: ProducerGroup, topic: str) -> None:
    """A record there decided another producer's half at the next start."""
    half, end = tx.begin("orders", 0, b"open"), store.core.log.end
    for attempt in (
        lambda: store.append(topic, 0, b"0,", tag="d"),
        lambda: store.append_batch([("orders", 0, b"", {}), (topic, 0, b"0,", {"TAGS": "d"})]),
        lambda: asyncio.run(store.append_async(topic, 0, b"0,", tag="d")),
        lambda: asyncio.run(store.append_batch_async([(topic, 0, b"0,", {})])),
        lambda: tx.begin(topic, 0, b""),
        lambda: tx.begin_batch([(topic, 0, b"", {})]),
        lambda: store.group("spy").poll(topic, 0),
        lambda: store.group("spy").poll_batch(topic, 0),
    ):
        with pytest.raises(Refused, match=f"topic '{topic}' is the store's own"):
            attempt()
    assert store.core.log.end == end
    half.commit()


@pytest.mark.parametrize("topic", names.OWN_TOPICS)
def test_a_restore_writes_to_the_topics_of_the_store(tmp_path: Path, topic: str) -> None:
    with Store.open(tmp_path, SMALL) as store:
        restored = store.append(topic, 0, b"restored", allow_system=True)
        assert store.at(restored.position).body == b"restored"
        with pytest.raises(Refused, match="the store's own"):
            store.append(topic, 0, b"not restored")
        store.append_batch([(topic, 0, b"restored too", {})], allow_system=True)
        assert store.wait_for(topic, 0, 1)
        assert bodies(store, topic) == [b"restored", b"restored too"]


def test_batches_do_what_single_calls_do(store: Store, tx: ProducerGroup) -> None:
    numbers = tx.begin_batch([("orders", at % 3, body, {"TAGS": "t"}) for at, body in enumerate(BODIES)])
    assert numbers.tolist() == list(range(20))
    positions = tx.commit_batch(numbers[::2])
    assert [store.at(position).body for position in positions.tolist()] == BODIES[::2]
    assert tx.commit_batch(numbers[::2]).tolist() == positions.tolist()
    tx.roll_back_batch(numbers[1::2], wait=True)
    end = store.core.log.end
    with pytest.raises(Refused, match="half 1 was rolled back"):
        tx.commit_batch(np.array([0, 1]))
    assert store.core.log.end == end
    counts = tx.counts()
    assert (counts.undecided, counts.named, counts.ops, counts.cache_hits) == (0, 20, 1, 20)


def test_a_producer_is_asked_until_it_knows(store: Store) -> None:
    asked: list[tuple[bytes, int, str, int, dict[str, str], int]] = []

    def knows_at_last(half: UndecidedHalf) -> bool | None:
        asked.append((half.body, half.queue, half.topic, half.checks, half.properties, half.number))
        if half.checks == 1:
            raise ValueError("the data base does not answer")
        return None if half.checks == 2 else half.body == b"yes"

    with store.transactions("billing", knows_at_last, QUICK) as tx:
        yes = tx.begin("orders", 1, b"yes", tag="t", properties={"KEYS": "k"})
        tx.begin("orders", 1, b"no")
        until(lambda: tx.counts().undecided == 0)
        assert store.wait_for("orders", 1, 0)
        assert yes.commit().number == 0
    assert bodies(store, queue=1) == [b"yes"]
    mine = [(checks, properties) for body, _, _, checks, properties, _ in asked if body == b"yes"]
    assert mine == [(times, {"TAGS": "t", "KEYS": "k"}) for times in (1, 2, 3)]


def test_a_producer_is_asked_about_what_no_crash_can_take(tmp_path: Path) -> None:
    """Its number would be another half's then, and who decides later would decide about that one."""
    safe: list[bool] = []
    opened: list[Store] = []

    def ask(half: UndecidedHalf) -> bool:
        safe.append(opened[0].core.log.flushed > half.record.position)
        return True

    settings = Settings(file_size=1 << 16, synchronous=True)
    with Store.open(tmp_path, settings) as store, store.transactions("billing", ask, SLOW) as tx:
        opened.append(store)
        tx.begin_batch([("orders", 0, b"paid", {})] * 3)
        sleep(0.002)
        store._service.check_round()  # type: ignore[union-attr]
    assert safe == [True] * 3


def test_who_never_knows_is_set_aside_and_who_is_not_there_is_not_asked(store: Store) -> None:
    with store.transactions("away", settings=QUICK) as away:
        waits = away.begin("orders", 0, b"waits")
        with store.transactions("billing", lambda _: None) as tx:
            given_up = tx.begin("orders", 0, b"given up")
            until(lambda: tx.counts().parked)
            with pytest.raises(Refused, match="set aside"):
                given_up.commit()
        assert store.wait_for(names.PARKED_TOPIC, 0, 0)
        assert bodies(store, names.PARKED_TOPIC) == [b"given up"]
        waits.commit()
    with pytest.raises(Refused, match="one store has one kind"):
        store.transactions("other", settings=SLOW)


def test_a_clean_stop_leaves_no_old_version_behind_the_cursor(tmp_path: Path) -> None:
    """A broker would ask about each again, and commit each again; halves without a producer stay open."""
    for life in range(5):
        with Store.open(tmp_path, SMALL) as store, store.transactions("billing", lambda _: None, SLOW_FEW) as tx:
            if life == 0:
                store.transactions("away").begin("orders", 0, b"away")
            tx.begin("orders", 0, b"asked about")
            sleep(0.002)
            store._service.check_round()  # type: ignore[union-attr]
        with Store.open(tmp_path, SMALL) as store:
            found = store.transactions("billing", settings=SLOW_FEW)._service.tx
            low = found.half_cursor
            keys = [found.half(number).properties[names.KEY] for number in range(low, found.table.end)]
            away = [found.half(number) for number in range(low, found.table.end) if found.group_of(number) == "away"]
        conforms(tmp_path)
        if life < 2:  # then its checks are spent but for one, and it holds the cursor again
            assert len(keys) == len({*keys})
        assert [(half.body, half.properties.get(names.CHECK_TIMES, "0")) for half in away] == [
            (b"away", str(min(life + 1, 2)))
        ]


def test_what_is_open_is_found_again_and_what_is_decided_stays(tmp_path: Path) -> None:
    store = Store.open(tmp_path, SMALL)
    tx = store.transactions("billing", settings=SLOW)
    for number in range(4):
        tx.begin("orders", 0, b"%d" % number)
    tx.commit(0)
    tx.roll_back(1, wait=True)
    tx.roll_back(2)
    store.flush()
    store.abandon()
    asked: list[int] = []
    with Store.open(tmp_path, SMALL) as store:
        with store.transactions("billing", lambda half: asked.append(half.number), SLOW) as tx:
            assert tx.commit(0).number == 0
            with pytest.raises(Refused, match="rolled back"):
                tx.commit(1)
            assert tx.commit(2).number == 1  # only its op would show the rollback
            assert tx.counts().undecided == 1
            store._service.check_round()  # type: ignore[union-attr]
            assert len(asked) == 1
        assert store.wait_for("orders", 0, 1)
        assert bodies(store) == [b"0", b"2"]
    with Store.open(tmp_path, SMALL) as store:
        tx = store.transactions("billing", settings=SLOW)
        with pytest.raises(Refused, match="not remembered"):
            tx.commit(0)
    conforms(tmp_path)


def test_a_clean_stop_names_what_was_decided_and_saves_the_cursors(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        tx = store.transactions("billing", settings=SLOW)
        for number in range(5):
            tx.begin("orders", 0, b"%d" % number).commit()
    with Store.open(tmp_path, SMALL) as store:
        assert bodies(store, names.OP_TOPIC) == [b"0,1,2,3,4,"]
        tx = store.transactions("billing", settings=SLOW)
        assert (tx.counts().half_cursor, tx.counts().op_cursor, tx.counts().waiting) == (5, 1, 0)
    with pytest.raises(Stopped):
        tx.begin("orders", 0, b"late")
    tx.close()
    conforms(tmp_path)


def test_a_full_disk_refuses_a_decision_and_nothing_is_dropped(
    store: Store, tx: ProducerGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    halves = [tx.begin("orders", 0, b"x") for _ in range(3)]
    halves[0].commit()

    def full(*_: object, **__: object) -> None:
        raise DiskFull("no room")

    with monkeypatch.context() as patched:
        patched.setattr(type(store.core.log), "append", full)
        with pytest.raises(DiskFull):
            halves[1].commit()
        with pytest.raises(DiskFull):
            halves[2].roll_back(wait=True)
        with pytest.raises(DiskFull):
            tx.begin("orders", 0, b"none")
    assert (tx.counts().undecided, tx.counts().waiting) == (1, 2)
    halves[1].commit()
    halves[2].roll_back(wait=True)
    assert tx.counts().waiting == 0


def test_in_asyncio_they_wait_without_a_thread(tmp_path: Path) -> None:
    async def pays(tx: ProducerGroup, number: int) -> None:
        async with await tx.begin_async("orders", number % 2, b"%d" % number):
            await asyncio.sleep(0)

    async def fails(tx: ProducerGroup) -> None:
        async with await tx.begin_async("orders", 0, b"failed") as order:
            assert (await tx.roll_back_async(order.half.number, wait=True)).durable
            raise KeyError

    async def all_of_them(tx: ProducerGroup) -> None:
        await asyncio.gather(*(pays(tx, number) for number in range(20)))
        with pytest.raises(KeyError):
            await fails(tx)

    with Store.open(tmp_path, Settings(file_size=1 << 16, synchronous=True)) as store:
        with store.transactions("billing", settings=SLOW) as tx:
            asyncio.run(all_of_them(tx))
        assert store.wait_for("orders", 0, 9)
        assert store.wait_for("orders", 1, 9)
        assert store.range("orders", 0) == (0, 10)
    conforms(tmp_path)


def test_what_is_recorded_of_them_conforms(tmp_path: Path) -> None:
    with StoreRecorder(tmp_path / "events.parquet") as recorder:
        for _ in range(2):
            with (
                Store.open(tmp_path / "store", SMALL, recorder=recorder) as store,
                store.transactions("billing", lambda _: True, SLOW) as tx,
            ):
                tx.begin("orders", 0, b"asked")
                tx.commit_batch(tx.begin_batch([("orders", 1, b"many", {})] * 5))
                store._service.check_round()  # type: ignore[union-attr]
    conforms(tmp_path / "events.parquet")
    conforms(tmp_path / "store")


def test_a_forked_child_leaves_them_alone(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store, store.transactions("billing", settings=SLOW) as tx:
        order = tx.begin("orders", 0, b"paid")
        child = os.fork()
        if not child:
            try:
                order.commit()
            except Stopped:
                tx.close()
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert order.commit().number == 0
    conforms(tmp_path)


def test_a_half_that_has_expired_is_passed_when_its_file_is_gone() -> None:
    """Before that, a crash would bring it back, undecided, and no round would find it again."""
    disk = SimulatedDisk()
    with Store.open(disk, replace(SMALL, file_size=4096, pre_allocate=False)) as opened:
        tx = opened.transactions("billing", settings=SLOW)
        tx.begin("orders", 0, b"forgotten")
        for _ in range(9):
            opened.append("orders", 0, bytes(1000))
        opened.flush()
        assert opened.wait_for("orders", 0, 8)
        cursors = []
        for times in (1, 0):  # the disk refuses, and then it does not
            disk.fail(errno.EMFILE, verb="delete", path="commitlog/*", times=times)
            with suppress(StoreError):
                opened.expire(wall_clock() + 1)
            assert opened.core.log.start > 4096
            tx._service.check_round()
            cursors.append((tx.counts().half_cursor, min(disk.names("commitlog"))[-4:]))
        assert cursors == [(0, "0000"), (1, "8192")]


def test_what_expires_while_its_producer_is_asked_stops_no_round(tmp_path: Path) -> None:
    """Found by the black-box machine: the others that were answered were left for the next round."""
    with Store.open(tmp_path, SMALL) as opened:

        def was_it_paid(half: UndecidedHalf) -> bool:
            position = half.record.position
            numbers = [opened.append("stocks", 0, bytes(1000)).number for _ in range(200)]
            opened.wait_for("stocks", 0, numbers[-1])
            opened.flush()
            opened.expire(wall_clock() + 1)
            return opened.core.log.start > position

        with opened.transactions("billing", was_it_paid, SLOW) as tx:
            tx.begin("orders", 0, b"first")
            sleep(0.002)
            tx._service.check_round()
            assert tx.counts().undecided == 0
            assert bodies(opened) == []


def test_in_a_forked_child_no_round_waits_for_one_of_the_parent(tmp_path: Path) -> None:
    """Found by the black-box machine: the thread that would have ended that round is not in the child."""
    with Store.open(tmp_path, SMALL) as store, store.transactions("billing", lambda _half: None, SLOW) as tx:
        with tx._service._round:
            child = os.fork()
            if not child:
                signal.alarm(10)
                try:
                    tx._service.check_round()
                except Stopped:
                    os._exit(0)
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0


def test_many_threads_decide_at_once(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        with store.transactions("billing", lambda _: None, QUICK) as tx:

            def work(mine: int) -> None:
                for number in range(40):
                    with tx.begin("orders", mine, b"%d" % number):
                        pass

            threads = [Thread(target=work, args=(mine,)) for mine in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for queue in range(4):
            assert store.wait_for("orders", queue, 39)
            assert bodies(store, queue=queue) == [b"%d" % number for number in range(40)]
    conforms(tmp_path)


@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize(
    "verb", by_day(["begin", "commit", "roll_back", "begin_batch", "commit_batch", "block"], 1 / 2)
)
def test_an_interrupt_anywhere_leaves_a_half_whole_and_decided_once(tmp_path: Path, verb: str) -> None:
    with Store.open(tmp_path, SMALL) as store, store.transactions("billing", settings=SLOW) as tx:

        def call() -> None:
            match verb:
                case "begin":
                    tx.begin("orders", 0, b"begun")
                case "begin_batch":
                    tx.begin_batch([("orders", 0, b"begun", {})] * 3)
                case "block":
                    with tx.begin("orders", 0, b"block"):
                        pass
                case "commit_batch":
                    tx.commit_batch(numbers)
                case _:
                    getattr(tx, verb)(int(numbers[0]))

        point = 0
        while True:
            point += 1
            numbers = tx.begin_batch([("orders", 0, b"open", {}), ("orders", 0, b"open", {})])
            before = tx.counts()
            interrupter = Interrupter(point)
            interrupter.call(call)
            if verb in {"commit", "commit_batch"}:
                tx.commit_batch(numbers)
                tx.commit(int(numbers[0]))
            elif verb == "roll_back":
                tx.roll_back(int(numbers[0]))
            after = tx.counts()
            table = store._service.tx.table  # type: ignore[union-attr]
            assert table.end == store.core.queues.named(names.HALF_TOPIC, 0).next
            assert (after.undecided <= before.undecided) or verb in {"begin", "begin_batch", "block"}
            if not interrupter.has_come:
                break
            point += 3 * (point > 200)
        store.flush()
    conforms(tmp_path)
    assert point > 20


def test_open_halves_of_a_broker_are_resolved(tmp_path: Path) -> None:
    broker = TransactionBroker()
    for number in range(6):
        broker.prepare(body=b"%d" % number, flag=number)
    broker.wait(2000)
    broker.commit(broker.halves[0])
    broker.flush_ops()
    broker.check()
    broker.roll_back(broker.halves[-1])
    broker.flush_ops()
    folder = broker.write(tmp_path)
    (tmp_path / "client.ndjson").unlink()
    with Store.open(folder) as store:
        with store.transactions(
            "PG_toy", lambda half: half.body != b"2", TransactionSettings(transaction_timeout=0)
        ) as tx:
            undecided = tx.counts().undecided
            store._service.check_round()  # type: ignore[union-attr]
            assert undecided == 4
            assert tx.counts().undecided == 0
        assert store.wait_for("orders", 0, 3)
        assert sorted(bodies(store)) == [b"0", b"1", b"3", b"4"]
    report = check([tmp_path], profile="rocketmq")
    assert report.verdict == "conforms", report.findings
