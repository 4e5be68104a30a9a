"""Consumer groups continue from the committed offset, after a crash as well, in a broker's format."""

import errno
import json
import threading
from pathlib import Path

import pytest

from gapless import check
from gapless.impl.environment.operating_system import RealDisk
from gapless.impl.files import cursors
from gapless.impl.records.errors import Damaged, DiskFull, Refused, Stopped
from gapless.impl.store.core import Settings
from gapless.impl.store.store import Store
from gapless.properties.simulation.simulated_disk import SimulatedDisk

SMALL = Settings(file_size=8192, queue_file_size=400, pre_allocate=False)

OF_A_BROKER = """{
	"dataVersion":{"counter":3,"stateVersion":0,"timestamp":1700000000000},
	"offsetTable":{
		"RMQ_SYS_TRANS_HALF_TOPIC@CID_RMQ_SYS_TRANS":{0:12
		},
		"orders@billing":{0:5,1:2},
		"odd \\"topic\\", 7:@x":{3:4}
	}
}"""


def fill(store: Store, count: int = 100) -> None:
    for number in range(count):
        store.append("orders", number % 2, b"%d" % number, tag=f"t{number % 3}")
    for queue in range(2):
        assert store.wait_for("orders", queue, (count - 1) // 2)


def test_a_group_continues_where_it_committed(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        fill(store)
        group = store.group("billing")
        assert [record.number for record in group.poll("orders", 0, 10)] == list(range(10))
        assert [record.number for record in group.poll("orders", 0, 10)] == list(range(10, 20))
        assert group.commit("orders", 0) == group.cursor("orders", 0) == 20
        assert len(group.poll("orders", 0, 5)) == 5
        assert group.commit("orders", 1, 7, durable=False) == 7
        assert store.group("billing").position("orders", 0) == 20
        assert store.group("other").position("orders", 0) == 0
    text = (tmp_path / cursors.CURSORS).read_text()
    assert '"orders@billing":{' in text
    assert "0:20," in text  # without quotes, as a broker writes it
    assert check([tmp_path], profile="strict").verdict == "conforms"
    with Store.open(tmp_path, SMALL) as store:
        group = store.group("billing")
        assert (group.position("orders", 0), group.position("orders", 1)) == (20, 7)
        assert len(group.poll("orders", 0, 1000)) == 30
        assert group.poll("orders", 0) == []


def test_columns_are_polled_by_tag(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        fill(store)
        group = store.group("billing")
        first, second = (group.poll_batch("orders", 0, 25, tag="t0").numbers.tolist() for _ in range(2))
        assert first + second == list(range(0, 50, 3))
        group.seek("orders", 0, 48)
        assert group.poll_batch("orders", 0).numbers.tolist() == [48, 49]


def test_what_a_broker_has_written_is_kept(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        fill(store)
    file = tmp_path / cursors.CURSORS
    file.write_text(OF_A_BROKER)
    with Store.open(tmp_path, SMALL) as store:
        assert file.read_text() == OF_A_BROKER
        group = store.group("billing")
        assert (group.cursor("orders", 0), group.cursor("orders", 1)) == (5, 2)
        group.commit("orders", 1, 3)
    table, others = cursors.read(RealDisk(tmp_path), cursors.CURSORS)
    assert table == {
        "RMQ_SYS_TRANS_HALF_TOPIC@CID_RMQ_SYS_TRANS": {0: 12},
        "orders@billing": {0: 5, 1: 3},
        'odd "topic", 7:@x': {3: 4},
    }
    assert others == {"dataVersion": {"counter": 3, "stateVersion": 0, "timestamp": 1700000000000}}


def test_with_light_queues_cursors_stand_in_a_file_of_their_own(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        fill(store)
    file = tmp_path / cursors.CURSORS_WITH_LIGHT_QUEUES
    file.write_text(json.dumps({"offsetTable": {"orders@billing": {"0": 9}}, "lmqOffsetTable": {"a": 1}}))
    with Store.open(tmp_path, SMALL) as store:
        assert store.group("billing").cursor("orders", 0) == 9
        store.group("billing").commit("orders", 0, 10)
    assert cursors.read(RealDisk(tmp_path), cursors.CURSORS_WITH_LIGHT_QUEUES) == (
        {"orders@billing": {0: 10}},
        {"lmqOffsetTable": {"a": 1}},
    )
    assert not (tmp_path / cursors.CURSORS).exists()


def test_a_committed_cursor_survives_a_loss_of_power_and_messages_that_come_again_are_not_passed_by() -> None:
    disk = SimulatedDisk()
    loose = Settings(file_size=8192, queue_file_size=400, flush_interval=10**6, queue_flush_interval=10**6)
    store = Store.open(disk, loose)
    fill(store, 20)
    store.flush()
    fill(store, 20)
    assert store.wait_for("orders", 0, 19)
    assert len(store.group("billing").poll("orders", 0, 15)) == 15
    group = store.group("billing")
    group.commit("orders", 0, 15)
    group.commit("orders", 1, 4)
    store.abandon()
    disk = disk.crash()
    with Store.open(disk, loose) as store:
        assert store.range("orders", 0) == (0, 10)
        fill(store, 20)
        assert store.wait_for("orders", 0, 19)
        group = store.group("billing")
        assert (group.cursor("orders", 0), group.cursor("orders", 1)) == (10, 4)


def test_cursors_are_within_what_is_kept(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL, clock=iter(range(10**6)).__next__) as store:
        fill(store, 300)
        group = store.group("billing")
        group.commit("orders", 0, 3)
        store.expire(store.core.log.newest)
        low = store.range("orders", 0)[0]
        assert group.cursor("orders", 0) == low > 3
        assert group.poll("orders", 0, 1)[0].number == low
        for wrong in (-1, 151):
            with pytest.raises(Refused, match="expected a number up to 150"):
                group.commit("orders", 0, wrong)


def test_a_file_that_is_none_is_left_alone(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        fill(store)
    file = tmp_path / cursors.CURSORS
    for content in ('{"offsetTable":{"orders@billing":{0:5,1', "[]", '{"offsetTable":{"a@b":{0:-1}}}', "\xff"):
        file.write_text(content, encoding="latin-1")
        with Store.open(tmp_path, SMALL) as store:
            with pytest.raises(Damaged, match=r"consumerOffset.json: no table of consumer groups"):
                store.group("billing")
            assert len(store.read("orders", 0, 0)) == 32
        assert file.read_text(encoding="latin-1") == content


def test_a_full_disk_refuses_a_commit_and_the_next_one_takes_it_along() -> None:
    disk = SimulatedDisk()
    with Store.open(disk, SMALL) as store:
        fill(store)
        group = store.group("billing")
        disk.fail(errno.ENOSPC, verb="write", path=cursors.CURSORS, times=1)
        with pytest.raises(DiskFull):
            group.commit("orders", 0, 5)
        group.commit("orders", 1, 6)
    assert cursors.read(disk, cursors.CURSORS)[0] == {"orders@billing": {0: 5, 1: 6}}


def test_many_threads_commit(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        fill(store)
        groups = [store.group(f"g{number}") for number in range(4)]
        threads = [
            threading.Thread(target=lambda group=group: [group.commit("orders", 0, to) for to in range(20)])
            for group in groups
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    table, _ = cursors.read(RealDisk(tmp_path), cursors.CURSORS)
    assert table == {f"orders@g{number}": {0: 19} for number in range(4)}


def test_a_closed_store_takes_no_cursor(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        fill(store)
        group = store.group("billing")
        for name in ("", "a@b", "a\nb"):
            with pytest.raises(Refused, match="expected a name without"):
                store.group(name)
    with pytest.raises(Stopped):
        group.commit("orders", 0, 3)
    with pytest.raises(Stopped):
        store.group("billing")
    assert not (tmp_path / cursors.CURSORS).exists()
