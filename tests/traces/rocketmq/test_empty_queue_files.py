"""Empty files at the end of a queue: what the next start makes of them is foretold, and what it made is explained."""

from pathlib import Path

import pytest

from gapless import Report, check
from tests.support.rocketmq.damage import (
    Fault,
    Pick,
    empty_file_behind_a_full_one,
    empty_file_behind_one_with_room,
    empty_files_behind,
    name_of,
)
from tests.support.rocketmq.recordings import copy_of, recording
from tests.support.rocketmq.store_builder import StoreBuilder
from tests.support.rocketmq.stores import Record

SIZE, FULL = 400, 20  # bytes and entries of a queue's file
RULE = "queue/message-of-the-entry-is-in-the-log"


def laid(folder: Path, *messages: int, clean: bool = True, waiting: int = 0, log_file_size: int = 1 << 16) -> Path:
    """A store of queues with so many messages each; the last `waiting` have no entry yet."""
    builder = StoreBuilder(queue_file_size=SIZE, log_file_size=log_file_size)
    order = [queue for queue, count in enumerate(messages) for _ in range(count)]
    for at, queue in enumerate(order):
        builder.append(Record("orders", queue=queue, body=b"message"), dispatched=at < len(order) - waiting)
    return builder.write(folder / "store", clean=clean)


def add_empty(store: Path, queue: int, *bases: int, length: int = SIZE) -> list[str]:
    """Add files of zeros to a queue, and return their names."""
    folder = store / f"consumequeue/orders/{queue}"
    folder.mkdir(parents=True, exist_ok=True)
    for base in bases:
        (folder / f"{base:020}").write_bytes(bytes(length))
    return [f"consumequeue/orders/{queue}/{base:020}" for base in bases]


def story_of(report: Report) -> str:
    """The story of the one hazard."""
    (hazard,) = report.hazards
    assert (report.verdict, hazard.rule) == ("conforms", RULE)
    return " ".join(hazard.story)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    ("queue", "bases", "slots", "following"),
    [
        (0, [400], "slot 20", 21),
        (0, [400, 800], "slot 20", 21),
        (0, [400, 800, 1200], "slot 20", 21),
        (0, [400, 800, 1200, 1600], "slots 20 to 40", 41),
        (1, [800, 1200, 1600], "slots 30 to 40", 41),
        (2, [0], "slot 0", 1),
    ],
    ids=["one", "two", "three", "four", "three behind one with room", "only file of a queue"],
)
def test_an_empty_file_is_a_hazard(
    queue: int, bases: list[int], slots: str, following: int, *, clean: bool, tmp_path: Path
) -> None:
    """A start reads the last three files; what it takes was seen of brokers of three lines."""
    store = laid(tmp_path, FULL, FULL + FULL // 2, clean=clean)
    names = add_empty(store, queue, *bases)
    report = check(store, jobs=1)
    story = story_of(report)
    assert f"next start takes {slots} for " in story
    assert f"gets number {following}, " in story
    assert f"Delete {', '.join(names)} before the start" in story
    (hazard,) = report.hazards
    assert (hazard.trace, hazard.count) == (f"orders/{queue}", 1)
    assert hazard.where.file in names or slots == "slots 30 to 40"
    for name in names:
        (store / name).unlink()
    assert not check(store, jobs=1).hazards


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    ("queue", "bases", "length"),
    [(1, [800], SIZE), (1, [800, 1200], SIZE), (0, [400], 0), (1, [], 0)],
    ids=["one behind one with room", "two behind it", "of no bytes", "the last file's own room"],
)
def test_a_file_that_the_start_deletes_is_none(
    queue: int, bases: list[int], length: int, *, clean: bool, tmp_path: Path
) -> None:
    store = laid(tmp_path, FULL, FULL + FULL // 2, clean=clean)
    add_empty(store, queue, *bases, length=length)
    report = check(store, jobs=1)
    assert (report.verdict, report.hazards) == ("conforms", [])


def test_entries_that_wait_are_written_into_the_empty_file(tmp_path: Path) -> None:
    """An unclean start dispatches them before it looks at the file."""
    store = laid(tmp_path, FULL, FULL + 1, clean=False, waiting=1)
    add_empty(store, 1, 400)
    report = check(store, jobs=1)
    assert (report.verdict, report.hazards) == ("conforms", [])
    assert any("at its next start" in note for note in report.sources[0].notes)


def test_a_start_that_may_fail_writes_nothing(tmp_path: Path) -> None:
    store = laid(tmp_path, FULL, FULL, clean=False, waiting=1)
    add_empty(store, 0, 400)
    report = check(store, jobs=1)
    assert "The newest entry, one of orders/1, is missing: RocketMQ 5.3.3 does not start then" in story_of(report)
    assert not any("at its next start" in note for note in report.sources[0].notes)
    assert any("unless it fails: see the hazards" in note for note in report.sources[0].notes)


def test_no_start_writes_what_is_missing_where_another_file_stops_it(tmp_path: Path) -> None:
    store = laid(tmp_path, FULL, FULL, clean=False, waiting=1)
    assert any("at its next start" in note for note in check(store, jobs=1).sources[0].notes)
    (store / "commitlog" / "notes.txt").write_text("mine")
    report = check(store, jobs=1)
    assert report.hazards
    assert not any("at its next start" in note for note in report.sources[0].notes)


@pytest.mark.parametrize("last", [39, 34])
def test_blank_slots_are_entries_to_a_start(last: int, tmp_path: Path) -> None:
    """A queue that begins with number 25 has blanks in the first five slots of its file."""
    builder = StoreBuilder(queue_file_size=SIZE, log_file_size=1 << 16, end=1 << 16)
    builder.numbers["orders", 0] = 25
    for _ in range(25, last + 1):
        builder.append(Record("orders", body=b"message"))
    store = builder.write(tmp_path / "store")
    add_empty(store, 0, 800)
    report = check(store, jobs=1)
    if last == 39:
        assert "takes slot 40 for an entry; the next message of the queue gets number 41" in story_of(report)
    else:
        assert (report.verdict, report.hazards) == ("conforms", [])


def test_many_queues_have_one_hazard(tmp_path: Path) -> None:
    store = laid(tmp_path, *[FULL] * 9)
    for queue in range(9):
        add_empty(store, queue, 400)
    (hazard,) = check(store, jobs=1).hazards
    assert (hazard.count, len(hazard.traces)) == (9, 5)


def test_a_file_with_other_bytes_further_on_is_not_to_be_deleted(tmp_path: Path) -> None:
    store = laid(tmp_path, FULL)
    (name,) = add_empty(store, 0, 400)
    (store / name).write_bytes(bytes(100).ljust(SIZE, b"x"))
    story = story_of(check(store, jobs=1))
    assert f"{name} has other bytes further on: keep a copy of it" in story


def test_the_last_file_of_a_queue_whose_messages_expired_keeps_its_numbers(tmp_path: Path) -> None:
    store = laid(tmp_path, 5)
    (name,) = add_empty(store, 1, 400)
    assert f"Without {name} the queue's numbers begin at 0 again" in story_of(check(store, jobs=1))


def test_the_reported_store_is_sound_and_the_next_start_is_foretold() -> None:
    story = story_of(check(recording("reports/empty_last_file_after_clean_5.5.0"), jobs=1))
    assert "takes slot 100 for an entry; the next message of the queue gets number 101" in story
    assert "Delete consumequeue/orders/0/00000000000000002000 before the start: it has no entry" in story


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        *((empty_files_behind, name) for name in ("v4", "normal_533", "normal", "unclean", "varied 4")),
        *((empty_file_behind_a_full_one, f"varied {seed}") for seed in (4, 7, 9)),
    ],
    ids=name_of,
)
def test_stores_of_each_line_have_the_hazard_where_it_lies(damage: Fault, name: str, tmp_path: Path) -> None:
    store = copy_of(name, tmp_path)
    before = check([store])
    where = damage(store, Pick("any", name))
    report = check([store])
    (hazard,) = report.hazards
    assert (hazard.rule, hazard.where.file, hazard.where.offset) == (RULE, where.file, where.offset)
    assert (report.verdict, report.violations) == (before.verdict, before.violations)


@pytest.mark.parametrize("name", ["v4", "normal_533", "normal", "unclean", "varied 4"])
def test_an_empty_file_that_a_start_deletes_is_none_in_stores_of_each_line(name: str, tmp_path: Path) -> None:
    store = copy_of(name, tmp_path)
    empty_file_behind_one_with_room(store, Pick("any", name))
    assert not check([store]).hazards


@pytest.mark.parametrize("version", ["4.9.7", "5.3.3", "5.5.0"])
def test_what_a_start_made_of_an_empty_file_is_explained(version: str) -> None:
    """The next message got number 101, behind an entry of zeros, and consumers do not reach it."""
    report = check(recording(f"reports/empty_last_file_started_{version}"), jobs=1)
    (found,) = report.violations
    assert (found.rule, found.trace, found.count) == ("queue/numbers-of-a-queue-follow-one-another", "orders/0", 1)
    assert (found.here["number"], found.here["end"]) == (101, 100)
    assert "Slot 100 is empty, and a file of the queue begins there." in found.story
    (first, *_) = [line for line in found.story if line.startswith("Cause 1 of ")]
    assert "a start took empty slots of that file for entries" in first


@pytest.mark.parametrize("waiting", [0, 1])
def test_a_broker_before_5_looks_at_no_empty_file_where_the_newest_entry_is_missing(
    waiting: int, tmp_path: Path
) -> None:
    store = laid(tmp_path, FULL, FULL, clean=False, waiting=waiting)
    add_empty(store, 0, 400)
    topics = store / "config/topics.json"
    topics.write_text(topics.read_text().replace('"stateVersion": 0, ', ""))
    report = check(store, jobs=1)
    assert len(report.hazards) == 1 - waiting
    assert any("at its next start" in note for note in report.sources[0].notes) == bool(waiting)
