"""The files around the logs: what is written is read, and what is missing, empty or half written is named."""

import shutil
import struct
from pathlib import Path

import pytest

from gapless.traces.sources.kafka.files import directory as folders
from gapless.traces.sources.kafka.files.checkpoints import broker_epoch, epoch_checkpoint, offset_checkpoint
from gapless.traces.sources.kafka.files.directory import data_directories, is_of_a_broker
from gapless.traces.sources.kafka.files.indexes import aborted_index, offset_index, time_index
from gapless.traces.sources.kafka.files.metadata import cluster_metadata
from gapless.traces.sources.kafka.files.names import PartitionName, partition_name
from gapless.traces.sources.kafka.files.snapshots import producer_snapshot
from tests.support.kafka.directories import (
    METADATA,
    TOPIC_ID,
    data_directory,
    framed,
    offsets,
    setting,
    snapshot,
    topic,
)
from tests.support.kafka.logs import batch


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A data directory."""
    return data_directory(tmp_path / "above" / "n1")


# -- folders


def test_a_data_directory_is_found_by_each_of_its_names(directory: Path) -> None:
    (whole,) = data_directories(directory)
    assert (whole.path, whole.node, whole.cluster, whole.directory, whole.is_stopped) == (
        directory,
        3,
        "abc",
        "d",
        True,
    )
    assert [str(one.name) for one in whole.partitions()] == ["__cluster_metadata-0", "orders-0"]
    assert data_directories(directory.parent) == data_directories(directory.parent.parent) == [whole]
    (part,) = data_directories(directory / "orders-0")
    assert [str(one.name) for one in part.partitions()] == ["orders-0"]
    assert part.path == directory
    shutil.copytree(directory, directory.with_name("n2"))
    assert [one.path.name for one in data_directories(directory.parent)] == ["n1", "n2"]


def test_a_folder_of_a_broker_has_nothing_but_data_directories(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    above = directory.parent
    assert is_of_a_broker(directory)
    assert is_of_a_broker(directory / "orders-0")
    assert is_of_a_broker(above)
    shutil.copytree(directory, directory.with_name("n2"))
    assert is_of_a_broker(above)
    monkeypatch.setattr(folders, "FOLDERS", 1)
    assert not is_of_a_broker(above)  # of very many folders none is looked into
    monkeypatch.undo()
    (above / "photos").mkdir()
    assert not is_of_a_broker(above)
    with pytest.raises(FileNotFoundError):
        data_directories(above / "gone")


def test_other_folders_are_none(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / "00000000000000000000").write_bytes(b"")
    assert data_directories(tmp_path) == []
    assert data_directories(tmp_path / "commitlog" / "00000000000000000000") == []


def test_a_copy_without_its_properties_is_read(directory: Path) -> None:
    (directory / "meta.properties").unlink()
    (directory / ".kafka_cleanshutdown").unlink()
    (found,) = data_directories(directory)
    assert (found.node, found.cluster, found.is_stopped) == (-1, "", False)


def test_names_of_partitions() -> None:
    assert partition_name("a-b.c-12") == PartitionName("a-b.c", 12)
    for name in ("orders", "orders-", "-1", "orders-01", "orders-0.deadbeef-delete", "a b-0", f"x-{2**31}"):
        assert partition_name(name) is None


def test_files_of_a_partition(directory: Path) -> None:
    folder = directory / "orders-0"
    for name in ("00000000000000000000.log.deleted", "00000000000000000001.timeindex.cleaned", "a.tmp"):
        (folder / name).write_bytes(b"")
    (folder / "00000000000000000003.log.swap").write_bytes(b"")
    (folder / "00000000000000000004.index").write_bytes(b"")
    orders = next(one for one in data_directories(directory)[0].partitions() if one.name.topic == "orders")
    found = orders.files()
    assert [segment.base for segment in found.segments] == [0, 3, 6]
    assert [segment.aborted_index is not None for segment in found.segments] == [False, True, False]
    assert all(segment.offset_index and segment.time_index for segment in found.segments)
    assert [segment.size for segment in found.segments] == [segment.log.stat().st_size for segment in found.segments]
    assert [offset for offset, _ in found.snapshots] == [0, 3, 6, 9]
    assert found.topic_id == "AAECAwQFBgcICQoLDA0ODw"
    assert [file.name for file in found.swaps] == ["00000000000000000003.log.swap"]
    assert len(found.ignored) == 2
    assert [file.name for file in found.lone] == ["00000000000000000004.index", "a.tmp"]


def test_folders_of_partitions_that_leave(directory: Path) -> None:
    for suffix in ("delete", "future", "stray", "other"):
        (directory / f"orders-1.{'0' * 32}-{suffix}").mkdir()
    (found,) = data_directories(directory)
    assert [(str(one.name), one.suffix) for one in found.leaving()] == [
        ("orders-1", "delete"),
        ("orders-1", "future"),
        ("orders-1", "stray"),
    ]
    assert [str(one.name) for one in found.partitions()] == ["__cluster_metadata-0", "orders-0"]


# -- indexes and snapshots


def test_indexes_end_before_their_blanks(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(struct.pack(">iiii", 3, 4096, 256, 8192) + bytes(24))
    found = offset_index(path, 100)
    assert (found.offset.tolist(), found.position.tolist(), found.blanks, found.fault) == (
        [103, 356],
        [4096, 8192],
        3,
        "",
    )
    path.write_bytes(struct.pack(">qiqi", 5, 1, 6, 256) + bytes(13))
    times = time_index(path, 100)
    assert (times.time.tolist(), times.offset.tolist(), times.blanks, times.rest) == ([5, 6], [101, 356], 1, 1)
    assert times.fault
    path.write_bytes(struct.pack(">hqqqq", 0, 7, 3, 5, 6))
    aborted = aborted_index(path)
    assert [column.tolist() for column in (aborted.producer, aborted.first, aborted.last, aborted.stable)] == [
        [7], [3], [5], [6],
    ]  # fmt: skip


def test_an_index_with_a_hole_at_its_end_is_not_read_in_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(struct.pack(">ii", 3, 4096))
    with path.open("r+b") as file:
        file.truncate(10 << 20)
    found = offset_index(path, 0)
    assert (found.offset.tolist(), found.blanks) == ([3], (10 << 17) - 1)


def test_snapshots(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(snapshot((7, 1, 9, 20, 3, 1000, 4, -1), (8, 0, -1, -1, 0, 5, 2, 17)))
    found = producer_snapshot(path, 21)
    assert (len(found), found.fault, found.offset) == (2, "", 21)
    assert [found.producer.tolist(), found.epoch.tolist(), found.sequence.tolist()] == [[7, 8], [1, 0], [9, -1]]
    assert [found.last.tolist(), found.delta.tolist(), found.time.tolist()] == [[20, -1], [3, 0], [1000, 5]]
    assert [found.coordinator.tolist(), found.first_open.tolist()] == [[4, 2], [-1, 17]]


@pytest.mark.parametrize("at", range(0, 56, 5))
def test_a_damaged_snapshot_has_a_fault_and_no_producers(tmp_path: Path, at: int) -> None:
    path, whole = tmp_path / "a", snapshot((7, 1, 9, 20, 3, 1000, 4, -1))
    path.write_bytes(whole[:at])
    assert producer_snapshot(path, 0).fault
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
    assert producer_snapshot(path, 0).fault
    assert len(producer_snapshot(path, 0)) == 0


# -- checkpoints


CHECKPOINTS = {
    "empty": (b"", {}, False),
    "no lines": (offsets(), {}, False),
    "two": (offsets("a 0 5", "b-c 12 900"), {("a", 0): 5, ("b-c", 12): 900}, False),
    "half": (offsets("a 0 5", "b 0 7")[:-5], {("a", 0): 5}, True),
    "a version": (b"1\n0\n", {}, True),
    "no count": (b"0\n", {}, True),
    "text": (b"0\n1\na 0 x\n", {}, True),
    "too large": (b"0\n1\na 0 9999999999999999999\n", {}, True),
    "bytes": (b"\xff\xfe\0\0\n", {}, True),
}


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_checkpoints(tmp_path: Path, name: str) -> None:
    data, expected, is_faulty = CHECKPOINTS[name]
    path = tmp_path / "a"
    path.write_bytes(data)
    found = offset_checkpoint(path)
    assert found is not None
    assert found.offsets == {PartitionName(*partition): offset for partition, offset in expected.items()}
    assert bool(found.fault) is is_faulty


def test_checkpoints_of_epochs(tmp_path: Path) -> None:
    path = tmp_path / "a"
    assert offset_checkpoint(path) is None
    assert epoch_checkpoint(path) is None
    path.write_bytes(offsets("0 0", "2 6"))
    found = epoch_checkpoint(path)
    assert found is not None
    assert (found.epoch.tolist(), found.start.tolist(), found.fault) == ([0, 2], [0, 6], "")
    path.write_bytes(offsets("0 0", "2 6")[:-2])
    found = epoch_checkpoint(path)
    assert found is not None
    assert (found.epoch.tolist(), bool(found.fault)) == ([0], True)


def test_the_file_of_a_stop_in_order(directory: Path) -> None:
    path = directory / ".kafka_cleanshutdown"
    assert broker_epoch(path) == 13
    for text in ("", "{", "[1]", '{"brokerEpoch": "x"}', '{"brokerEpoch": true}'):
        path.write_text(text)
        assert broker_epoch(path) == -1


# -- metadata


def test_metadata(directory: Path) -> None:
    found = cluster_metadata(directory)
    assert found is not None
    assert (found.features, found.next_producer, found.fault) == ({"transaction.version": 2}, 3000, "")
    assert found.topics["orders"].settings == {"cleanup.policy": "delete"}
    state = found.partitions[PartitionName("orders", 0)]
    assert (state.replicas, state.in_sync, state.leader, state.epoch, state.was_recovering) == ([1, 2], [2], 2, 1, True)
    assert not found.may_be_compacted("orders")
    assert found.may_be_compacted("__consumer_offsets")
    assert found.may_be_compacted("unknown")
    shutil.rmtree(directory / "__cluster_metadata-0")
    assert cluster_metadata(directory) is None


def test_a_topic_that_was_compacted_once_stays_so(directory: Path) -> None:
    more = [setting(2, "orders", "cleanup.policy", policy) for policy in ("compact,delete", None)]
    log = directory / "__cluster_metadata-0" / f"{0:020}.log"
    log.write_bytes(batch(0, [*METADATA, *more]))
    found = cluster_metadata(directory)
    assert found is not None
    assert found.topics["orders"].settings == {}
    assert found.may_be_compacted("orders")


def test_a_history_that_begins_late_says_nothing_of_before(directory: Path) -> None:
    folder = directory / "__cluster_metadata-0"
    (folder / f"{0:020}.log").rename(folder / f"{900:020}.log")
    (folder / f"{900:020}-{3:010}.checkpoint").write_bytes(batch(0, [topic("bills", bytes(16)), *METADATA]))
    (folder / f"{950:020}-{3:010}.checkpoint").write_bytes(batch(0, [topic("later", bytes(16))]))
    found = cluster_metadata(directory)
    assert found is not None
    assert found.topics.keys() == {"orders", "bills"}
    assert found.may_be_compacted("orders")


def test_a_topic_that_is_made_again_is_another_one(directory: Path) -> None:
    again = [framed(9, TOPIC_ID + b"\0"), topic("orders", bytes(16)), setting(4, "", "min.insync.replicas", "2")]
    (directory / "__cluster_metadata-0" / f"{0:020}.log").write_bytes(batch(0, [*METADATA, *again]))
    found = cluster_metadata(directory)
    assert found is not None
    assert (found.topics["orders"].generations, found.topics["orders"].is_removed) == (2, False)
    assert (found.partitions, found.defaults) == ({}, {"min.insync.replicas": "2"})


@pytest.mark.parametrize("cut", [3, 20, 40])
def test_a_record_that_ends_too_early_is_a_fault(directory: Path, cut: int) -> None:
    value = METADATA[2].value
    assert value is not None
    short = framed(3, value[3 : 3 + min(cut, len(value) - 6)])
    (directory / "__cluster_metadata-0" / f"{0:020}.log").write_bytes(batch(0, [METADATA[1], short]))
    found = cluster_metadata(directory)
    assert found is not None
    assert found.fault
    assert found.may_be_compacted("orders")
