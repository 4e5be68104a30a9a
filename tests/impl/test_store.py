"""The store: what a program that embeds it relies on, with new stores, real brokers' ones, and when things go wrong."""

import errno
import itertools
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gapless import check
from gapless.impl.files.queues import ConsumeQueue
from gapless.impl.records.errors import Damaged, InUse, NotAStore, Refused, Stopped, StoreError, WrongFileSize
from gapless.impl.records.record import Messages
from gapless.impl.store.core import Settings
from gapless.impl.store.store import Store
from gapless.properties.simulation.simulated_disk import SimulatedDisk
from tests.support.night import NIGHT
from tests.support.rocketmq import stores
from tests.support.rocketmq.recordings import COUNTS, LAB, recording
from tests.support.visible_messages import visible

SMALL = Settings(file_size=8192, queue_file_size=400, pre_allocate=False)
DELETED = {"temp", "gone", "ghost"}  # topics of the lab, with messages left in the log


def fill(store: Store, count: int, queues: int = 3) -> list[tuple[str, int, bytes]]:
    """Append so many messages of growing size, in turn to each queue."""
    sent = [("orders", number % queues, b"%d." % number * (number % 50)) for number in range(count)]
    for topic, queue, body in sent:
        store.append(topic, queue, body, tag="paid" if len(body) % 2 else "", properties={"KEYS": "k"})
    return sent


def read_all(store: Store) -> list[tuple[str, int, bytes]]:
    """Every message of every queue, in the order of the log; each queue's numbers follow one another."""
    found = []
    for queue in store.core.queues.all:
        low, high = store.range(queue.topic, queue.id)
        records = [record for number in range(low, high, 32) for record in store.read(queue.topic, queue.id, number)]
        if not queue.topic.startswith("%LMQ%"):
            assert [(r.topic, r.queue, r.number) for r in records] == [
                (queue.topic, queue.id, number) for number in range(low, high)
            ]
        found += records
    return [(r.topic, r.queue, r.body) for r in sorted(found, key=lambda r: r.position)]


def entries(folder: Path) -> dict[str, bytes]:
    """The content of every file of every queue."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted((folder / "consumequeue").rglob("*"))
        if file.is_file()
    }


def conforms(folder: Path, profile: str = "strict") -> int:
    """The store passes; returns how many records it has."""
    report = check([folder], profile=profile)
    assert report.verdict == "conforms", report.findings
    return report.sources[0].records


@pytest.fixture
def new(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path, SMALL) as store:
        yield store


def test_what_is_appended_is_read_and_the_strict_check_passes(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        sent = fill(store, 300)
        visible(store)
        assert read_all(store) == sent
        assert len(store.core.log.segments.bases) > 5
    assert not (tmp_path / "abort").exists()
    assert conforms(tmp_path) == 300
    with Store.open(tmp_path) as store:  # the sizes of files are as they are found
        assert read_all(store) == sent
        sent += fill(store, 30)
        visible(store)
        assert read_all(store) == sent
    assert conforms(tmp_path) == 330


def test_batches_are_read_too(tmp_path: Path) -> None:
    messages = [("orders", number % 4, b"%d" % number * 9, {"TAGS": f"t{number % 3}"}) for number in range(500)]
    with Store.open(tmp_path, SMALL) as store:
        positions, numbers = store.append_batch(Messages.of_list(messages))
        assert numbers.tolist() == [number // 4 for number in range(500)]
        assert [store.at(position).body for position in positions.tolist()] == [body for _, _, body, _ in messages]
        visible(store)
        assert read_all(store) == [message[:3] for message in messages]
    assert conforms(tmp_path) == 500


def test_a_store_without_a_message_has_nothing_to_check(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    report = check([tmp_path], profile="strict")
    assert report.verdict == "inconclusive"
    assert "no log file in it" in str(report.sources[0].reasons)


@pytest.mark.parametrize("queues", [1, 3])
def test_what_a_killed_program_had_appended_is_there(tmp_path: Path, queues: int) -> None:
    store = Store.open(tmp_path, SMALL)
    sent = fill(store, 200, queues)
    store.abandon()
    assert (tmp_path / "abort").exists()
    with Store.open(tmp_path) as store:
        assert read_all(store) == sent
        sent += fill(store, 20, queues)
    assert conforms(tmp_path) == 220


def test_a_torn_tail_is_cut_off_and_never_comes_back(tmp_path: Path) -> None:
    store = Store.open(tmp_path, SMALL)
    sent = fill(store, 20)
    end = store.core.log.end
    store.abandon()
    log = tmp_path / "commitlog" / f"{0:020d}"
    last = log.read_bytes()
    with log.open("r+b") as file:  # the last two records are torn: one byte of the first is missing
        torn = last.rindex(b"orders", 0, last.rindex(b"orders", 0, end))
        file.seek(torn)
        file.write(b"\0")
    with Store.open(tmp_path) as store:
        assert read_all(store) == sent[:-2]
        assert not any(log.read_bytes()[store.core.log.end :])
        assert fill(store, 5)
    assert conforms(tmp_path) == 23


# -- real brokers' stores ----------------------------------------------------------------------------------------------


def copied(name: str, folder: Path) -> Path:
    shutil.copytree(recording(name), folder / "store")
    return folder / "store"


@pytest.mark.parametrize("name", [*COUNTS, *LAB])
def test_a_brokers_store_is_read_appended_to_and_passes(tmp_path: Path, name: str) -> None:
    store = copied(name, tmp_path)
    before, records, clean = entries(store), stores.read_log(store), not (store / "abort").exists()
    with Store.open(store) as opened:
        if clean:
            assert {path: data for path, data in entries(store).items() if path in before} == before
        expected = stores.expected_queues(records)
        for (topic, queue), wanted in expected.items():
            low, high = opened.range(topic, queue)
            if topic not in DELETED:
                assert (low, high) == (min(wanted), max(wanted) + 1)
            read = [r for number in range(low, high, 32) for r in opened.read(topic, queue, number)]
            assert [r.position for r in read] == [wanted[number].position for number in range(low, high)]
        bodies = {record.position: record.body for record in records}
        assert all(opened.at(position).body == body for position, body in bodies.items())
        sent = fill(opened, 50)
        visible(opened)
        found = read_all(opened)
    assert [body for _, _, body in found[-50:]] == [body for _, _, body in sent]
    assert conforms(store, "rocketmq") == len(records) + 50


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("lab/extended", NotAStore, "consumequeue_ext: extended consume-queue entries"),
        ("lab/ghosts", Damaged, r"481326: no whole record begins here.*salvage=True"),
    ],
)
def test_a_brokers_store_that_is_not_to_be_written_to(
    tmp_path: Path, name: str, error: type[Exception], words: str
) -> None:
    store = copied(name, tmp_path)
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    with pytest.raises(error, match=words):
        Store.open(store)
    assert {path: path.read_bytes() for path in store.rglob("*") if path.is_file() and path.name != "lock"} == before


REBUILT = [*COUNTS, *LAB[:3]]  # delay levels changed in the fourth, the fifth has blanks
REBUILDERS = (
    [*itertools.product(REBUILT, (1, 2, 8))] if NIGHT else [*zip(REBUILT, itertools.cycle((1, 2, 8)), strict=False)]
)


@pytest.mark.parametrize(("name", "workers"), REBUILDERS)
def test_queues_rebuilt_are_the_same_to_the_byte(tmp_path: Path, name: str, workers: int) -> None:
    store = copied(name, tmp_path)
    before, start = entries(store), int(min(path.name for path in (store / "commitlog").iterdir()))
    size = len(next(iter(before.values())))
    shutil.rmtree(store / "consumequeue")
    settings = Settings(queue_file_size=size, workers=workers, batch_records=100, batch_bytes=10_000)
    Store.open(store, settings).close()
    after = entries(store)
    if start == 0:
        written = {path: data for path, data in before.items() if any(data)}
        assert {path: after[path] for path in written} == written
        assert {path for path, data in after.items() if any(data)} - written.keys() <= {
            path for path in after if path.split("/")[1] in DELETED
        }
        return
    for path, data in after.items():  # what was older than the log is a blank now
        for at in range(0, size, 20):
            old, new = stores.ENTRY.unpack_from(before[path], at), stores.ENTRY.unpack_from(data, at)
            assert old == new or (old[0] < start and data[at : at + 20] == stores.PRE_BLANK)


def test_a_queue_whose_folder_is_gone_is_built_again(tmp_path: Path) -> None:
    store = copied("normal", tmp_path)
    before = entries(store)
    shutil.rmtree(store / "consumequeue" / "orders" / "2")
    Store.open(store).close()
    assert entries(store) == before


# -- synchronous -------------------------------------------------------------------------------------------------------


def test_a_synchronous_append_returns_when_it_is_on_disk(tmp_path: Path) -> None:
    with Store.open(tmp_path, Settings(synchronous=True)) as store:
        for number in range(20):
            position, _, size = store.append("orders", 0, b"%d" % number)
            assert store.core.log.flushed >= position + size
            assert store.core.acknowledged >= position + size


def test_waiters_share_a_flush(tmp_path: Path) -> None:
    with Store.open(tmp_path, Settings(synchronous=True, file_size=1 << 20)) as store:
        syncs, flush = 0, store.core.log.flush
        gate = threading.Barrier(9)

        def counted() -> int:
            nonlocal syncs
            syncs += 1
            return flush()

        store.core.log.flush = counted  # type: ignore[method-assign]

        def work() -> None:
            gate.wait()
            for _ in range(25):
                store.append("orders", 0, b"x")

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        gate.wait()
        for thread in threads:
            thread.join()
        assert store.core.queues.named("orders", 0).next == 200
        assert 0 < syncs < 200
    assert conforms(tmp_path) == 200


def test_consumers_of_a_synchronous_store_see_nothing_that_a_crash_can_take(tmp_path: Path) -> None:
    with Store.open(tmp_path, Settings(synchronous=True)) as store:
        store.append("orders", 0, b"safe")
        unsafe = store.core.append(store.core.queues.named("orders", 0), b"unsafe", b"", 0)
        assert store.core.log.end == sum(unsafe)
        assert store.wait_for("orders", 0, 0)
        assert store.core.limit <= store.core.log.flushed
        store.flush()
        assert store.wait_for("orders", 0, 1)


# -- reading -----------------------------------------------------------------------------------------------------------


def test_reading_by_time_finds_the_first_message_that_is_not_older(tmp_path: Path) -> None:
    times = iter([0, *(1000 + 10 * number for number in range(100)), *[5000] * 1000])
    with Store.open(tmp_path, SMALL, clock=lambda: next(times, 5000)) as store:
        store.core.settings = SMALL
        fill(store, 40, 1)
        visible(store)
        stored = [record.store_time for record in store.read("orders", 0, 0, 40)]
        assert stored == sorted(stored)
        for time in (0, stored[0], stored[7], stored[7] + 1, stored[-1], stored[-1] + 1):
            expected = next((number for number, at in enumerate(stored) if at >= time), 40)
            assert store.number_at("orders", 0, time) == expected


@pytest.mark.parametrize(("number", "words"), [(-1, "expected one from 0 to 10"), (11, "expected one from 0 to 10")])
def test_a_number_that_is_not_in_the_queue_is_refused(new: Store, number: int, words: str) -> None:
    fill(new, 10, 1)
    visible(new)
    with pytest.raises(Refused, match=words):
        new.read("orders", 0, number)
    assert new.read("orders", 0, 10) == []
    assert new.read("nowhere", 0, 0) == []


def test_a_position_at_which_no_record_begins_is_refused(new: Store) -> None:
    at, _, size = new.append("orders", 0, b"x")
    for position in (at + 1, at + size, -1):
        with pytest.raises(Refused, match=r"position|no record begins here"):
            new.at(position)


# -- expiry ------------------------------------------------------------------------------------------------------------


def test_what_is_old_goes_file_by_file_and_the_rest_passes(tmp_path: Path) -> None:
    now = 1_000_000
    with Store.open(tmp_path, SMALL, clock=lambda: now) as store:
        fill(store, 100)
        now += 1000
        sent = fill(store, 100)
        visible(store)
        store.flush()
        start = store.expire(before=now)
        assert 0 < start == store.core.log.start
        assert min(path.name for path in (tmp_path / "commitlog").iterdir()) == f"{start:020d}"
        assert read_all(store)[-100:] == sent
        low, _ = store.range("orders", 0)
        with pytest.raises(Refused, match=f"expected one from {low}"):
            store.read("orders", 0, low - 1)
        assert store.expire(before=now + 10**9) <= store.core.log.end
    records = conforms(tmp_path)
    assert 0 < records < 200
    with Store.open(tmp_path) as store:
        assert len(read_all(store)) == records
        fill(store, 10)
    assert conforms(tmp_path) == records + 10


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["slots", "forget_below"])
def test_what_expires_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """After a reader has its entries, before it has their messages; or in the midst of the expiry."""
    with Store.open(tmp_path, SMALL, clock=itertools.count(0, 10).__next__) as store:
        fill(store, 300, queues=1)
        visible(store)
        store.flush()
        answers: list[object] = []

        def read() -> None:
            try:
                answers.append(store.read("orders", 0, 0))
            except Exception as error:  # noqa: BLE001 - whatever it is
                answers.append(error)

        def racing(queue: ConsumeQueue, *arguments: int) -> object:
            answer = None
            if method == "slots":
                answer = before(queue, *arguments)
                monkeypatch.undo()
                assert store.expire(1500) > 0
            else:
                monkeypatch.undo()
                read()
                answer = before(queue, *arguments)
            return answer

        before = getattr(ConsumeQueue, method)
        monkeypatch.setattr(ConsumeQueue, method, racing)
        if method == "slots":
            read()
        else:
            store.expire(1500)
        assert [(type(error), str(error)[:31]) for error in answers] == [(Refused, "orders/0: number 0 has expired ")]


def test_two_writers_keep_each_other_out(tmp_path: Path) -> None:
    with Store.open(tmp_path):
        with pytest.raises(InUse, match="lock: another writer holds it; stop the broker"):
            Store.open(tmp_path)
        code = f"from gapless.impl.store.store import Store; Store.open({str(tmp_path)!r})"
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert "InUse: lock: another writer" in other.stderr
    Store.open(tmp_path).close()


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_deleted_lock_admits_no_second_writer(tmp_path: Path, *, is_replaced: bool) -> None:
    """Not another store, for the folder is locked as well; and when a broker may write, the store has stopped."""
    store = Store.open(tmp_path, Settings(synchronous=True))
    store.append("orders", 0, b"safe")
    (tmp_path / "lock").unlink()
    if is_replaced:
        (tmp_path / "lock").write_bytes(b"lock")
    with pytest.raises(InUse, match="lock: another writer holds it"):
        Store.open(tmp_path)
    with pytest.raises(StoreError, match="its file `lock` was deleted or replaced from outside, and another may write"):
        store.append("orders", 0, b"never acknowledged")
    with pytest.raises(Stopped):
        store.append("orders", 0, b"nor this")
    with pytest.raises(StoreError):
        store.close()
    with Store.open(tmp_path) as again:
        assert [record.body for record in again.read("orders", 0, 0)][:1] == [b"safe"]


def test_a_closed_store_takes_no_more_steps(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    store.close()
    store.close()
    with pytest.raises(Stopped, match="closed"):
        store.append("orders", 0, b"")


@pytest.mark.parametrize(
    ("folders", "file", "length", "error", "words"),
    [
        ("", "thesis.tex", 0, NotAStore, "thesis.tex: expected a store"),
        ("photos", "", 0, NotAStore, "photos: expected a store"),
        ("batchconsumequeue/t", "", 0, NotAStore, "batch consume queues"),
        ("commitlog consumequeue/t/x", "", 0, NotAStore, "consumequeue/t/x: expected the number of a queue"),
        ("commitlog", f"commitlog/{0:020d}", 100, WrongFileSize, "100 bytes, and the settings say 8192"),
        ("commitlog consumequeue/t/0", f"consumequeue/t/0/{0:020d}", 30, WrongFileSize, "settings say 400"),
    ],
)
def test_a_foreign_folder_is_left_as_it_is(
    tmp_path: Path, folders: str, file: str, length: int, error: type[Exception], words: str
) -> None:
    for folder in folders.split():
        (tmp_path / folder).mkdir(parents=True)
    if file:
        (tmp_path / file).write_bytes(bytes(length))
    with pytest.raises(error, match=words):
        Store.open(tmp_path, SMALL)
    left = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert left.keys() - {"lock"} == ({file} if file else set())
    assert not file or left[file] == bytes(length)


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_that_lost_what_was_safe_is_not_cut_off(tmp_path: Path, clean: bool) -> None:  # noqa: FBT001
    store = Store.open(tmp_path, SMALL, clock=itertools.count(10**12, 100).__next__)
    sent = fill(store, 200)
    if clean:
        store.close()
    else:
        visible(store)
        store.flush()
        store.core.flush_queues()
        store.core.write_checkpoint(store.clock() + 10**6)
        store.abandon()
    log = max((tmp_path / "commitlog").iterdir())
    whole = log.read_bytes()
    log.write_bytes(bytes(8) + whole[8:])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(Damaged, match=r"salvage=True"):
        Store.open(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    with Store.open(tmp_path, Settings(salvage=True)) as store:
        found = read_all(store)
        assert found == sent[: len(found)]
        assert 100 < len(found) < 200
    assert conforms(tmp_path) == len(found)


def test_who_waits_while_the_store_closes_is_answered(tmp_path: Path) -> None:
    for _ in range(10):
        store = Store.open(tmp_path, Settings(synchronous=True, file_size=1 << 16, queue_file_size=400))
        answers: list[object] = []

        def work(store: Store = store, answers: list[object] = answers) -> None:
            try:
                while True:
                    answers.append(store.append("orders", 0, b"x"))
            except Stopped as stopped:
                answers.append(stopped)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        store.close()
        for thread in threads:
            thread.join(10)
            assert not thread.is_alive()
        assert sum(isinstance(answer, Stopped) for answer in answers) == 4


def _append_until_flushed(store: Store) -> None:
    store.append("orders", 0, b"too late")
    store.flush()


@pytest.mark.parametrize("synchronous", [True, False])
def test_a_disk_that_fails_stops_the_store_and_loses_nothing_that_was_promised(synchronous: bool) -> None:  # noqa: FBT001
    disk = SimulatedDisk()
    store = Store.open(disk, Settings(file_size=8192, queue_file_size=400, synchronous=synchronous, flush_interval=20))
    for number in range(30):
        store.append("orders", 0, b"%d" % number)
    store.flush()
    disk.fail(errno.EIO, verb="sync", path="commitlog/*", times=1)
    with pytest.raises(Stopped, match=r"commitlog/.*the disk failed"):
        _append_until_flushed(store)
    with pytest.raises(Stopped, match="the disk failed"):
        store.append("orders", 0, b"too late")
    with pytest.raises(Stopped):
        store.close()
    with Store.open(disk.crash()) as store:
        assert [record.body for record in store.read("orders", 0, 0, 30)] == [b"%d" % number for number in range(30)]
