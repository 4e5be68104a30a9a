"""Delayed messages: what a level's cursor has passed came into its topic or was dropped; the rest is still there."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gapless import check
from gapless.traces.report.values import Report
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.packed_blocks import PackedBlocks
from gapless.traces.sources.rocketmq.columns.packed_columns import pack_columns
from gapless.traces.sources.rocketmq.layouts.delayed import judge as delayed
from gapless.traces.sources.rocketmq.layouts.delayed.records import COLUMNS, each_delayed_block
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from tests.support.rocketmq.played_store import PlayedStore
from tests.support.rocketmq.recordings import copy_of, recording, recording_as_left
from tests.support.rocketmq.stores import SCHEDULE_TOPIC, Record, log_files, read_log
from tests.support.rocketmq.transactions import HALF
from tests.support.rocketmq.watched import Clock, Heard, checked, same, until_idle, watch

LOST = "stage/passed-message-has-left-its-stage"
REPORTED = "reports/delayed_never_delivered_5.5.0"
LINES = [f"odd/delayed_lives_{version}" for version in ("4.9.7", "5.3.3", "5.5.0")]
FAR = 5  # the level of these stores whose messages wait for ten minutes: none was delivered
AGAIN = 34  # deliveries that a kill made twice, in each of them


def steps(report: Report) -> dict[str, int]:
    found = ("enter", "leave", "drop", "pass_by")
    return {step: report.coverage.get(f"stage.{step}", 0) for step in found}


def lost(report: Report) -> int:
    """The number of messages that never came out; there may be no other violation."""
    assert {found.rule for found in report.violations} <= {LOST}
    return sum(found.count for found in report.violations)


# -- what brokers left -------------------------------------------------------------------------------------------------


def expected(store: Path) -> dict[str, int]:
    """The steps of a store's delayed messages, by a reader that is not ours."""
    records = read_log(store)
    waiting = [record for record in records if record.topic == SCHEDULE_TOPIC]
    there = Counter(map(identity, waiting))
    came = [r for r in records if r.topic != SCHEDULE_TOPIC and r.property_map.get("REAL_TOPIC") == r.topic]
    cursors = levels(store)
    return {
        "enter": len(waiting),
        "leave": sum(there[identity(record)] > 0 for record in came),
        "drop": sum(record.property_map["REAL_TOPIC"] == HALF for record in waiting),
        "pass_by": sum(record.number < cursors.get(record.queue + 1, 0) for record in waiting),
    }


def identity(record: Record) -> tuple[object, ...]:
    named = record.property_map
    return named.get("REAL_TOPIC"), named.get("UNIQ_KEY"), record.born_time, record.reconsume_times, record.body


def levels(store: Path) -> dict[int, int]:
    text = (store / "config/delayOffset.json").read_text()
    table = text[text.index('"offsetTable"') :]
    return {int(level): int(to) for level, to in re.findall(r'"?(\d+)"?:(\d+)', table)}


@pytest.mark.parametrize("name", [*LINES, "odd_clients", "odd/settings_lowered_5.5.0"])
def test_what_brokers_deliver_conforms(name: str) -> None:
    """Senders' second tries, other levels, retries of consumers, a deleted topic, delayed halves, kill -9."""
    report = check([recording_as_left(name)])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    assert steps(report) == expected(recording(name))
    assert report.anomalies.get("leave_again", 0) == (AGAIN if name in LINES else 0)


def test_the_store_of_the_report_departs_by_the_six_that_never_came() -> None:
    """apache/rocketmq#9249: 30 s after their time, messages 0 to 5 of level 4 are in no topic."""
    report = check([recording_as_left(REPORTED)])
    (found,) = report.violations
    assert (report.verdict, found.rule, found.count, found.trace) == ("departs", LOST, 6, "delayed/4/0")
    assert found.traces == [f"delayed/4/{number}" for number in range(5)]
    assert (found.where.file, found.where.offset) == ("commitlog/" + "0" * 20, 5526)
    assert found.message.startswith(
        "delayed/4/0: message 0 of delay level 4, at 5526, was passed, and it is in no topic (the cursor of level 4 is "
        "10 in config/delayOffset.json"
    )
    assert steps(report) == {"enter": 10, "leave": 4, "drop": 0, "pass_by": 4}


def test_one_of_them_can_be_asked_for() -> None:
    store = recording_as_left(REPORTED)
    assert check([store], trace="delayed/4/3").verdict == "departs"
    assert check([store], trace="delayed/4/7").verdict == "conforms"
    assert check([store], trace="delayed/4/10").verdict == "inconclusive"
    assert not check([store], topic="orders").violations


# -- faults ------------------------------------------------------------------------------------------------------------


def moved(store: Path, level: int, to: int) -> None:
    """Set the cursor of a level."""
    table = ",".join(f"{one}:{at}" for one, at in (levels(store) | {level: to}).items())
    (store / "config/delayOffset.json").write_text(f'{{"offsetTable":{{{table}}}}}')


def deliveries(store: Path) -> list[Record]:
    """Deliveries that came once, of messages that were sent once."""
    records = read_log(store)
    came = [r for r in records if r.topic != SCHEDULE_TOPIC and r.property_map.get("REAL_TOPIC") == r.topic]
    times = Counter(map(identity, records))
    return [record for record in came if times[identity(record)] == 2]


def renamed(store: Path, record: Record) -> None:
    """Another record lies in its place: its key is another one."""
    (file,) = (file for file in log_files(store) if 0 <= record.position - int(file.name) < file.stat().st_size)
    data, at = bytearray(file.read_bytes()), record.position - int(file.name)
    key = data.index(b"UNIQ_KEY\x01", at) + len(b"UNIQ_KEY\x01")
    assert key < at + record.size
    data[key] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize("name", LINES)
def test_a_cursor_that_passes_what_waits_is_found(name: str, tmp_path: Path) -> None:
    store = copy_of(name, tmp_path)
    moved(store, FAR, 3)
    report = check([store.parent])
    assert (report.verdict, lost(report)) == ("departs", 3)
    first = next(r for r in read_log(store) if (r.topic, r.queue, r.number) == (SCHEDULE_TOPIC, FAR - 1, 0))
    (found,) = report.violations
    assert (found.trace, found.position) == (f"delayed/{FAR}/0", first.position)


@pytest.mark.parametrize("name", LINES)
def test_another_record_in_place_of_a_delivery_is_found(name: str, tmp_path: Path) -> None:
    store = copy_of(name, tmp_path)
    some = deliveries(store)[::7]
    assert len(some) > 3
    for record in some:
        renamed(store, record)
    report = check([store.parent])
    assert (report.verdict, lost(report)) == ("departs", len(some))


@pytest.mark.parametrize("name", LINES)
def test_a_cursor_that_lags_is_no_departure(name: str, tmp_path: Path) -> None:
    """A delivery may come again after a kill."""
    store = copy_of(name, tmp_path)
    for level, to in levels(store).items():
        moved(store, level, to // 2)
    assert check([store.parent]).verdict == "conforms"


def as_slave(store: Path) -> None:
    with (store.parent / "broker.conf").open("a") as settings:
        settings.write("brokerRole=SLAVE\n")


def with_a_pool(store: Path) -> None:
    with (store.parent / "broker.conf").open("a") as settings:
        settings.write("transientStorePoolEnable=true\n")


def killed(store: Path) -> None:
    (store / "abort").write_text("1")


def without_settings(store: Path) -> None:
    (store.parent / "broker.conf").unlink()


NOT_SURE: dict[str, tuple[Callable[[Path], None], str]] = {
    "a slave": (as_slave, "conforms"),
    "a pool": (with_a_pool, "inconclusive"),
    "a kill": (killed, "inconclusive"),
    "no settings": (without_settings, "inconclusive"),
}


@pytest.mark.parametrize("why", NOT_SURE)
def test_a_cursor_that_may_be_younger_than_the_log_is_no_departure(why: str, tmp_path: Path) -> None:
    damage, verdict = NOT_SURE[why]
    store = copy_of(LINES[-1], tmp_path)
    damage(store)
    text = "3 delayed messages are behind the cursor of a level and in no topic, the first is delayed/5/0"
    (source,) = check([store.parent]).sources
    assert not any("in no topic" in line for line in (*source.reasons, *source.notes))
    moved(store, FAR, 3)
    report = check([store.parent])
    (source,) = report.sources
    assert (report.verdict, lost(report)) == (verdict, 0)
    assert any(line.startswith(text) for line in (source.reasons if verdict == "inconclusive" else source.notes))


def test_in_a_copy_a_cursor_may_be_younger_than_the_log(tmp_path: Path) -> None:
    store = copy_of(LINES[-1], tmp_path)
    moved(store, FAR, 3)
    report = check([store.parent], copied=True)
    assert (report.verdict, lost(report)) == ("conforms", 0)
    assert any("3 delayed messages are behind the cursor" in note for note in report.sources[0].notes)


def test_after_a_kill_what_lies_before_a_later_delivery_is_accused(tmp_path: Path) -> None:
    """They are delivered one after the other: no power loss takes one from their middle."""
    store = copy_of(LINES[-1], tmp_path)
    killed(store)
    records = read_log(store)
    long_before = max(record.store_time for record in records) - delayed.RETRIED
    numbers = {identity(r): (r.queue, r.number) for r in records if r.topic == SCHEDULE_TOPIC}
    early = {numbers[identity(r)]: r for r in deliveries(store) if r.store_time < long_before}
    if not early:
        pytest.skip("this store is younger than what is asked for")
    (queue, number), record = min(early.items())
    assert any(queue == other and number < n for other, n in early)
    renamed(store, record)
    report = check([store.parent])
    assert (report.verdict, lost(report)) == ("departs", 1)


@pytest.mark.parametrize("name", LINES)
def test_messages_in_a_level_that_no_setting_has_are_a_hazard(name: str, tmp_path: Path) -> None:
    store = copy_of(name, tmp_path)
    config = store.parent / "broker.conf"
    config.write_text(config.read_text().replace("=1s 2s 3s 4s 10m", "=1s 2s 3s 4s"))
    report = check([store.parent])
    assert report.verdict == "conforms"
    (found,) = report.hazards
    assert found.message.startswith("messages of delay level 5 wait for their time, and messageDelayLevel names 4: ")
    assert found.where.file.startswith(f"consumequeue/{SCHEDULE_TOPIC}/{FAR - 1}/")


@pytest.mark.parametrize("setting", ["enableSlaveActingMaster=true"])
def test_what_another_broker_may_have_is_not_judged(setting: str, tmp_path: Path) -> None:
    store = copy_of(LINES[-1], tmp_path)
    with (store.parent / "broker.conf").open("a") as settings:
        settings.write(f"{setting}\n")
    moved(store, FAR, 3)
    report = check([store.parent])
    assert (report.verdict, steps(report)["enter"]) == ("conforms", 0)
    assert any("another broker may have them" in note for note in report.sources[0].notes)


def test_the_design_forbids_to_deliver_again() -> None:
    report = check([recording_as_left(LINES[-1])], profile="strict")
    again = [found for found in report.violations if found.rule == "stage/message-leaves-its-stage-once"]
    assert sum(found.count for found in again) == AGAIN - 1, "one of them came three times"
    assert "it was delivered 2 times" in again[0].message


# -- ways that lead to the same ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*LINES, REPORTED])
def test_workers_find_the_messages_that_one_more_pass_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared, passes = list[bool](), list[int]()
    of_workers = delayed.DelayedMessages.blocks

    def one_more(store: StoreDirectory, end: int, take: Callable[[Ints], object]) -> int:
        passes.append(end)
        return each_delayed_block(store, end, take)

    def blocks(messages: delayed.DelayedMessages) -> tuple[PackedBlocks, int]:
        found, reached = of_workers(messages)
        again = PackedBlocks(COLUMNS)
        end = each_delayed_block(messages.judged.store, messages.judged.end, lambda rows: again.add(pack_columns(rows)))
        compared.append(reached == end and np.array_equal(found.all_of(), again.all_of()))
        return found, reached

    monkeypatch.setattr(delayed, "each_delayed_block", one_more)
    monkeypatch.setattr(delayed.DelayedMessages, "blocks", blocks)
    check([recording_as_left(name)], jobs=1, split=4096)
    assert compared == [True]
    assert not passes


@pytest.mark.parametrize("name", [LINES[0], REPORTED])
def test_parts_say_what_all_at_once_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = check([recording_as_left(name)], jobs=1)
    monkeypatch.setattr(delayed, "IN_A_PART", 7)
    parts = check([recording_as_left(name)], jobs=1)
    assert (steps(parts), parts.anomalies, lost(parts)) == (steps(whole), whole.anomalies, lost(whole))


@pytest.mark.parametrize("name", [LINES[-1], REPORTED])
def test_a_watch_says_what_a_check_says(name: str, tmp_path: Path) -> None:
    played, clock, heard = PlayedStore(recording(name), tmp_path / "store"), Clock(), Heard()
    played.append(played.end // 2)
    played.dispatch(played.written)
    watched = watch(tmp_path / "store", heard, clock)
    until_idle(watched)
    played.append(played.end)
    played.stop()
    until_idle(watched)
    report = watched.end()
    same(report, checked(tmp_path / "store"))
    assert steps(report)["enter"] == expected(recording(name))["enter"]
