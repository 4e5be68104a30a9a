"""`config/topics.json`, by which a broker knows what it may serve: what we add to it, and what we leave alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from gapless.impl.environment.operating_system import RealDisk
from gapless.impl.files.folder import TOPICS, write_topics

NOW = 1_700_000_000_000
OTHER = {
    "topicName": "other",
    "readQueueNums": 8,
    "writeQueueNums": 8,
    "perm": 4,
    "order": True,
    "attributes": {"+a": "b"},
}


def counts(store: Path, topic: str) -> tuple[int, int]:
    found = table(store)["topicConfigTable"][topic]
    return found["readQueueNums"], found["writeQueueNums"]


def table(store: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((store / TOPICS).read_text())
    return found


def broker_wrote(store: Path, **topics: dict[str, object]) -> bytes:
    version = {"counter": 77, "stateVersion": 3, "timestamp": 5}
    (store / "config").mkdir()
    (store / TOPICS).write_text(json.dumps({"dataVersion": version, "topicConfigTable": topics, "more": 1}))
    return (store / TOPICS).read_bytes()


def test_a_new_store_gets_a_table_of_its_queues(tmp_path: Path) -> None:
    write_topics(RealDisk(tmp_path), [("orders", 3), ("orders", 0), ("créances", 0), ("%LMQ%a", 0)], NOW)
    assert counts(tmp_path, "orders") == (4, 4)
    assert sorted(table(tmp_path)["topicConfigTable"]) == ["créances", "orders"]
    assert table(tmp_path)["dataVersion"] == {"counter": 1, "stateVersion": 0, "timestamp": NOW}


def test_a_brokers_table_gets_what_it_lacks_and_keeps_the_rest(tmp_path: Path) -> None:
    broker_wrote(tmp_path, other=OTHER, orders={**OTHER, "topicName": "orders"})
    write_topics(RealDisk(tmp_path), [("orders", 9), ("new", 0)], NOW)
    found = table(tmp_path)
    assert found["topicConfigTable"]["other"] == OTHER
    made = {"topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "readQueueNums": 10, "writeQueueNums": 10}
    assert found["topicConfigTable"]["orders"] == {**OTHER, "topicName": "orders", **made}
    assert (counts(tmp_path, "new"), found["more"]) == ((1, 1), 1)
    assert found["dataVersion"] == {"counter": 78, "stateVersion": 3, "timestamp": NOW}


@pytest.mark.parametrize(
    ("known", "then"),
    [
        ({"readQueueNums": 4, "writeQueueNums": 2}, (4, 2)),
        ({"readQueueNums": 2, "writeQueueNums": 1}, (4, 1)),
        ({"readQueueNums": 2, "writeQueueNums": 2}, (4, 4)),
        ({"readQueueNums": 2, "writeQueueNums": 3}, (4, 4)),
        ({}, (16, 16)),
    ],
)
def test_queues_that_are_taken_out_of_use_stay_so(
    tmp_path: Path, known: dict[str, object], then: tuple[int, int]
) -> None:
    broker_wrote(tmp_path, orders={"topicName": "orders", **known})
    write_topics(RealDisk(tmp_path), [("orders", 3)], NOW)
    assert counts(tmp_path, "orders") == then


def test_a_table_that_lacks_nothing_is_not_written_again(tmp_path: Path) -> None:
    write_topics(RealDisk(tmp_path), [("orders", 3)], NOW)
    written = (tmp_path / TOPICS).read_bytes()
    write_topics(RealDisk(tmp_path), [("orders", 1)], NOW + 1)
    assert (tmp_path / TOPICS).read_bytes() == written


@pytest.mark.parametrize(
    "content",
    [b"{", b"[]", b"\xff", b"[" * 100_000, b'{"topicConfigTable": []}', b'{"topicConfigTable": {"orders": 4}}',
     b'{"topicConfigTable": {"orders": {"readQueueNums": "4"}}}', b'{"dataVersion": 1}',
     b'{"dataVersion": {"counter": {}}}'],
)  # fmt: skip
def test_a_file_that_is_not_a_brokers_is_left_alone(tmp_path: Path, content: bytes) -> None:
    broker_wrote(tmp_path)
    (tmp_path / TOPICS).write_bytes(content)
    write_topics(RealDisk(tmp_path), [("orders", 3)], NOW)
    assert (tmp_path / TOPICS).read_bytes() == content
