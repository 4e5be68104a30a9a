"""The torn end of a killed broker is no finding, also if there is another finding."""

import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from gapless import Report, check
from gapless.traces.sources.rocketmq.joining.findings import STORIES, StoreFindings
from gapless.traces.sources.rocketmq.log import alternative_ends
from gapless.traces.sources.rocketmq.log.alternative_ends import has_new_departures
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.opening import open_store
from tests.support.night import by_day
from tests.support.rocketmq.damage import (
    FAULTS,
    FILE_FAULTS,
    MISSING_ENTRIES,
    QUEUE_FAULTS,
    RECORD_FAULTS,
    Bench,
    Change,
    Fault,
    Pick,
    Place,
    body_flipped,
    entry_of_wrong_size,
    name_of,
    tail_torn_in_body,
    tail_torn_in_header,
    tail_torn_in_properties,
    tail_torn_in_topic,
    tail_with_a_hole_in_its_body,
    wrong_position,
)
from tests.support.rocketmq.played_database import PlayedDatabase
from tests.support.rocketmq.played_store import PlayedStore
from tests.support.rocketmq.queue_databases import changed
from tests.support.rocketmq.recordings import copy_of, recording
from tests.support.rocketmq.stores import entries_of, read_slots
from tests.support.rocketmq.transaction_damage import half_without_its_marker
from tests.support.rocketmq.watched import Clock, Heard, checked, same, until_idle, watch

POINTS = "queue/entry-points-at-its-message"
TORN: tuple[Change, ...] = (
    tail_torn_in_header,
    tail_torn_in_body,
    tail_torn_in_topic,
    tail_torn_in_properties,
    tail_with_a_hole_in_its_body,
)
KILLED = (
    *("halfdb_killed_5.5.0", "dledger_killed_5.3.3", "rocksdb_killed_5.5.0", "index_killed_5.5.0", "lmq_killed_5.3.3"),
    *("ext_killed_5.3.3", "batchcq_killed_5.3.3", "timer_killed_5.5.0", "timerrocks_killed_5.5.0"),
    *("indexdb_killed_5.5.0", "compacted_killed_5.3.3", "index_killed_4.9.7", "rocksdb_killed_5.3.3"),
)


def violations_of(report: Report) -> list[tuple[str, str | None, int | None, int]]:
    return sorted((found.rule, found.where.file, found.where.offset, found.count) for found in report.violations)


def judged(store: Path) -> Report:
    return check([store], engine="local", jobs=1)


def last_one_dropped(store: Path, pick: Pick) -> None:
    """A broker was killed before it wrote any byte of the last record."""
    bench = Bench(store, pick)
    last = bench.spot(bench.records[-1])
    tail_torn_in_body(store, pick)
    bench.overwrite(last.file, last.offset, bytes(last.length))


@pytest.mark.parametrize(
    ("fault", "torn", "store", "place"),
    by_day(
        [
            *product(FAULTS[: -len(MISSING_ENTRIES)], TORN, ("varied 1",), ("any",)),
            *product(QUEUE_FAULTS + RECORD_FAULTS + FILE_FAULTS, TORN, ("varied 2", "midlife"), ("first", "any")),
            *product(QUEUE_FAULTS + RECORD_FAULTS, TORN, ("unclean",), ("first", "any")),
        ],
        1 / 250,
    ),
    ids=name_of,
)
def test_next_to_a_torn_end_only_the_planted_fault_is_reported(
    fault: Fault, torn: Change, store: str, place: Place, tmp_path: Path
) -> None:
    """The report is that of a store whose last record was never begun."""
    seed = f"{fault.__name__} and {torn.__name__} in {store}"
    found = []
    for end in (last_one_dropped, torn):
        damaged = copy_of(store, tmp_path / end.__name__)
        end(damaged, Pick("any", seed))
        try:
            fault(damaged, Pick(place, seed))
        except (AssertionError, IndexError):
            pytest.skip("this store has no place for the fault")
        found.append(judged(damaged))
    dropped, report = found
    assert (report.verdict, violations_of(report)) == (dropped.verdict, violations_of(dropped))
    assert report.verdict == "departs" or fault in MISSING_ENTRIES + FILE_FAULTS


@pytest.mark.parametrize("name", by_day(KILLED, 1 / 6))
def test_a_store_that_grew_to_within_a_record_is_reported_of_a_wrong_entry_alone(name: str, tmp_path: Path) -> None:
    """A watch hears no more than a check."""
    chance, source = Random(name), recording(f"layouts/{name}")
    in_database = (source / "consumequeue/CURRENT").exists()
    played = (PlayedDatabase if in_database else PlayedStore)(source, tmp_path / "store")
    records = played.records()
    last = chance.randrange(len(records) // 2, len(records) - 1)
    early = records[chance.randrange(last // 2)]
    wrong = next(at for at, entry in enumerate(played.entries) if entry[0] == early)
    played.append(chance.randrange(records[last] + 80, records[last + 1]))
    played.dispatch(records[last])
    _position, file, place, entry = played.entries[wrong]
    if isinstance(played, PlayedDatabase):
        played.flush({wrong: changed(entry, position=1)})
        file = f"consumequeue/RocksDB:{file}"
    else:
        with (played.folder / file).open("r+b") as out:
            out.seek(place)
            out.write(bytes([*entry[:7], entry[7] ^ 1]))
    report = checked(played.folder)
    assert (report.verdict, violations_of(report)) == ("departs", [(POINTS, file, place, 1)])
    heard, clock = Heard(), Clock()
    watched = watch(played.folder, heard, clock)
    for _ in range(4):
        until_idle(watched)
        clock.now += 3
    same(watched.end(), report)
    assert [(found.rule, found.where.offset) for found in heard.found] == [(POINTS, place)]


def test_a_fault_in_a_transaction_is_reported_and_not_the_torn_end(tmp_path: Path) -> None:
    """If the log departs, no transaction is judged: here only its end does."""
    found = []
    for end in (last_one_dropped, tail_torn_in_properties):
        store = copy_of("unclean", tmp_path / end.__name__)
        half_without_its_marker(store, Pick("any", "7"))
        end(store, Pick("any", "7"))
        found.append(violations_of(judged(store)))
    assert found[0] == found[1]
    assert [rule for rule, *_ in found[1]] == ["transaction/half-carries-its-marker"]


@pytest.mark.parametrize(
    ("name", "fault"),
    by_day(
        [*product(("hole_before_5.5.0", "hole_after_4.9.7"), (entry_of_wrong_size, body_flipped, wrong_position))],
        1 / 2,
    ),
    ids=name_of,
)
def test_a_page_that_a_power_loss_took_is_no_finding_next_to_one(name: str, fault: Fault, tmp_path: Path) -> None:
    store = shutil.copytree(recording(f"odd/{name}"), tmp_path / "store")
    where = fault(store, Pick("first", name))
    report = judged(store)
    (found,) = report.violations
    assert (report.verdict, found.where.file, found.where.offset) == ("departs", where.file, where.offset)
    assert any("legal after a power loss" in reason for reason in report.sources[0].reasons)


# -- still reported ------------------------------------------------------------------------------------------------


def last_entry(store: Path) -> tuple[Bench, str, int]:
    """Return the place of the last record's entry."""
    bench = Bench(store, Pick("any", "the last"))
    (queue, number, _entry), *_ = entries_of(bench.records[-1])
    (slot,) = (slot for slot in read_slots(store, queue) if slot.number == number)
    return bench, slot.file, slot.offset


def test_a_wrong_entry_of_a_whole_last_record_is_reported(tmp_path: Path) -> None:
    """A log that is not torn ends behind its last record, whatever that one's entry is."""
    store = copy_of("unclean", tmp_path)
    bench, file, offset = last_entry(store)
    bench.overwrite(file, offset, (8).to_bytes(8, "big"))
    assert violations_of(judged(store)) == [(POINTS, file, offset, 1)]


def test_a_damaged_last_record_that_an_entry_names_is_reported_next_to_another_fault(tmp_path: Path) -> None:
    """After a clean stop the entry says that there was a record."""
    store = copy_of("varied 2", tmp_path)
    where = entry_of_wrong_size(store, Pick("first", "early"))
    bench, _file, _offset = last_entry(store)
    last = bench.spot(bench.records[-1])
    body = last.length - len(last.record.properties) - len(last.record.topic.encode()) - 5
    byte = (store / last.file).read_bytes()[last.offset + body]
    bench.overwrite(last.file, last.offset + body, bytes([byte ^ 1]))
    rules = ("queue/entry-has-the-size-of-its-message", "log/body-has-its-checksum")
    places = ((where.file, where.offset), (last.file, last.offset))
    assert violations_of(judged(store)) == sorted((rule, *place, 1) for rule, place in zip(rules, places, strict=True))


def test_what_is_left_of_a_file_is_not_loaded_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a log file of a gigabyte, all of it may lie after the torn page."""
    store, sizes = shutil.copytree(recording("kill9"), tmp_path / "store"), []
    log = sorted((store / "commitlog").iterdir())[1]
    log.write_bytes(log.read_bytes()[:600_000].ljust(700_000, b"\1").ljust(log.stat().st_size, b"\0"))
    opened, low = open_store(store), int(log.name) + 600_000
    page = alternative_ends._torn_page(opened, low, int(log.name) + 1_048_576)
    assert page == int(log.name) + 700_000 // 4096 * 4096
    read = file_access.FileWindow.read

    def noted(window: file_access.FileWindow, begin: int, end: int) -> None:
        sizes.append(end - begin)
        read(window, begin, end)

    monkeypatch.setattr(file_access.FileWindow, "read", noted)
    monkeypatch.setattr(alternative_ends, "AT_ONCE", 8192)
    assert alternative_ends._torn_page(opened, low, int(log.name) + 1_048_576) == page
    assert (max(sizes), len(sizes)) == (8192, 13)


def of_one_rule(positions: range, rule: str = "some/rule") -> StoreFindings:
    """Make a judgement with so many departures of one rule, listed as always."""
    found = StoreFindings(cast("StoreDirectory", None), end=0)
    departure: Callable[..., Any] = type("Refused", (), {"rule": rule, "spec": "some"})
    for position in positions:
        found.report("trace", position, departure())
    return found


def test_departures_that_are_only_counted_are_compared_by_their_count() -> None:
    """The listed ones depend on what came before."""
    many = of_one_rule(range(2 * STORIES))
    assert not has_new_departures(of_one_rule(range(STORIES, 2 * STORIES)), many)
    assert not has_new_departures(of_one_rule(range(1)), many)
    assert has_new_departures(of_one_rule(range(2 * STORIES + 1)), many)
    assert has_new_departures(of_one_rule(range(1), "another/rule"), many)
    assert has_new_departures(of_one_rule(range(1)), of_one_rule(range(1, 3)))
