"""The work of a check for each queue is counted: time is unreliable on a busy machine."""

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from gapless import check
from gapless.traces.sources.rocketmq.queues import joined_queues as queues
from gapless.traces.sources.rocketmq.segments import splits
from gapless.traces.sources.rocketmq.store.file_access import read_entries
from gapless.traces.sources.rocketmq.store.files import ENTRY, QueueFile
from gapless.traces.sources.rocketmq.store.opening import open_store
from tests.support.rocketmq.recordings import recording
from tests.support.rocketmq.store_builder import StoreBuilder
from tests.support.rocketmq.stores import Record

TOPICS, QUEUES = 40, 5


def laid(rounds: int, *, log_file_size: int = 1 << 20, expired: int = 0) -> StoreBuilder:
    """A store of many queues, in each of which lie so many messages; its oldest log files may have expired."""
    builder = StoreBuilder(log_file_size=log_file_size, queue_file_size=6000, expired=expired)
    for _ in range(rounds):
        for topic in range(TOPICS):
            for queue in range(QUEUES):
                builder.append(Record(f"topic-{topic}", queue=queue, body=b"message"))
    return builder


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often each path was opened or listed."""
    counts: Counter[str] = Counter()

    def counted(function: Any) -> Any:
        def call(path: Any, *more: Any, **named: Any) -> Any:
            counts[os.fsdecode(path)] += 1
            return function(path, *more, **named)

        return call

    for name in ("open", "scandir", "listdir"):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))
    return counts


@pytest.mark.parametrize(("log_file_size", "expired"), [(1 << 20, 0), (1 << 14, 0), (1 << 14, 2)])
def test_every_queue_is_listed_once_and_read_once_for_each_split_that_it_has_messages_in(
    log_file_size: int, expired: int, tmp_path: Path, opened: Counter[str]
) -> None:
    builder = laid(5, log_file_size=log_file_size, expired=expired)
    of_splits = Counter(
        f"{topic}/{queue}"
        for topic, queue, split in {(r.topic, r.queue, r.position // log_file_size) for r in builder.records}
        if split >= expired
    )
    store = builder.write(tmp_path / "store")
    opened.clear()

    assert check(store, jobs=1).verdict == "conforms"
    listed, read = Counter[str](), Counter[str]()
    for path, count in opened.items():
        match path.partition("/consumequeue/")[2].split("/"):
            case [topic, queue]:
                listed[f"{topic}/{queue}"] += count
            case [topic, queue, _]:
                read[f"{topic}/{queue}"] += count
    assert listed == dict.fromkeys((f"topic-{t}/{q}" for t in range(TOPICS) for q in range(QUEUES)), 1)
    assert read == of_splits


def test_no_queue_of_a_whole_store_is_replayed_in_plain_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replay(*_: Any, **__: Any) -> None:
        pytest.fail("a queue was replayed by itself")

    store = laid(3, log_file_size=1 << 14, expired=1).write(tmp_path / "store")
    monkeypatch.setattr(queues, "replay", replay)
    report = check(store, jobs=1)
    assert report.verdict == "conforms"
    assert report.coverage["queue.open"] == report.coverage["queue.settle"] == TOPICS * QUEUES
    assert report.coverage["queue.find_file"] == TOPICS * QUEUES
    assert report.coverage["queue.outlive"]


def test_a_queue_that_departs_is_found_among_many(tmp_path: Path) -> None:
    store = laid(2).write(tmp_path / "store")
    (cut,) = (store / "consumequeue" / "topic-7" / "3").iterdir()
    cut.write_bytes(cut.read_bytes()[:-20])
    report = check(store, jobs=1)
    assert [(found.rule, found.trace) for found in report.findings] == [
        ("queue/file-of-the-consume-queue-has-its-full-length", "topic-7/3")
    ]
    assert report.coverage["queue.find_file"] == TOPICS * QUEUES - 1


@pytest.mark.parametrize("size", [str(2**31 - 1), str(2**31), str(10**30), "9" * 5000, "6000²", "6e3", ""])
def test_a_queue_file_size_that_no_broker_takes_is_passed_over(size: str, tmp_path: Path) -> None:
    """A broker keeps its own where Java reads no number of 32 bits; and it does not start where files have another."""
    store = laid(1).write(tmp_path / "store")
    (tmp_path / "broker.conf").write_text(f"mappedFileSizeConsumeQueue={size}\n", encoding="latin-1")
    assert check(store, jobs=1).verdict == "conforms"


def test_room_for_names_is_made_without_room_for_records(tmp_path: Path) -> None:
    """There are more subjects, with longer names, than a scan begins with room for; its records fit."""
    builder = StoreBuilder(log_file_size=1 << 20)
    for topic in range(1200):
        builder.append(Record(f"{topic:0200}", body=b"message"))
    store = builder.write(tmp_path / "store")
    opened = open_store(store)
    (split,) = splits.splits(opened)
    (scanned,) = splits.SplitReader(opened, split).segments()
    assert scanned.columns.subjects() == [(f"{topic:0200}", 0) for topic in range(1200)]
    assert scanned.columns.room.log.shape[1] == splits.Columns((split.high - split.low) // 160 + 64).room.log.shape[1]
    assert check(store, jobs=1).verdict == "conforms"


def test_a_segment_in_which_many_queues_wait_for_their_entries_is_read_again_once(
    tmp_path: Path, opened: Counter[str]
) -> None:
    builder = laid(2)
    for topic in range(TOPICS):
        builder.append(Record(f"topic-{topic}", body=b"waits"), dispatched=False)
    store = builder.write(tmp_path / "store", clean=False)
    opened.clear()

    report = check(store, jobs=1)
    assert report.verdict == "conforms"
    assert sum("waits for its entry" in note for note in report.sources[0].notes) == TOPICS
    assert max(count for path, count in opened.items() if "/topic-" in path) <= 2


def test_a_store_of_very_many_queues_is_read_in_larger_splits(tmp_path: Path) -> None:
    """Each split opens a file of nearly every queue; its bytes stay bounded."""
    store = open_store(laid(1).write(tmp_path / "store"))
    log = replace(store.files[0], length=1 << 30)
    sizes = []
    for count in (1, 15_000, 10**6):
        of_many = dict.fromkeys((("topic", queue) for queue in range(count)), ())
        first, *_ = splits.splits(replace(store, files=(log,), queues=of_many, limit=1 << 30))
        sizes.append(first.bytes)
    assert sizes == [splits.SPLIT, 15_000 * splits.A_VISIT, splits.MOST]


def test_slots_are_read_out_of_whichever_files_have_them(tmp_path: Path) -> None:
    """The later of overlapping files counts, one of them too long; others have gaps between them."""
    queue, chance, expected = ("orders", 0), Random(1), bytearray(800)
    files = tuple(QueueFile(base, length) for base, length in ((100, 100), (200, 140), (300, 20), (500, 100)))
    folder = tmp_path / "consumequeue" / "orders" / "0"
    folder.mkdir(parents=True)
    for base, length, _at in files:
        data = chance.randbytes(length)
        (folder / f"{base:020d}").write_bytes(data)
        expected[base : base + length] = data
    store = replace(open_store(recording("normal")), path=str(tmp_path), queues={queue: files})
    for number in range(30):
        for count in range(1, 30 - number):
            into = bytearray(count * ENTRY)
            read_entries(store, *queue, number, memoryview(into))
            assert into == expected[number * ENTRY : (number + count) * ENTRY]
