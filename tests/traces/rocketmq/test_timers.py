"""The timer wheel: brokers' stores conform, and wrong units, slots and deliveries are found where they lie."""

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gapless import Report, check
from gapless.traces.sources.rocketmq.columns import packed_blocks
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.packed_blocks import PackedBlocks
from gapless.traces.sources.rocketmq.columns.packed_columns import pack_columns
from gapless.traces.sources.rocketmq.joining import batch_replay
from gapless.traces.sources.rocketmq.layouts import timer_messages
from gapless.traces.sources.rocketmq.layouts.timer_messages import TimerMessages
from gapless.traces.sources.rocketmq.layouts.timer_records import COLUMNS, each_timer_block
from gapless.traces.sources.rocketmq.layouts.timer_wheel import files as timer_files
from gapless.traces.sources.rocketmq.layouts.timer_wheel import parts as timer_parts
from gapless.traces.sources.rocketmq.layouts.timer_wheel.files import SLOTS, TURN, UNIT
from gapless.traces.sources.rocketmq.layouts.timer_wheel.parts import RowFacts
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from tests.support.night import by_day
from tests.support.rocketmq.recordings import RECORDINGS, copy_of, recording_as_left

RECORDED = {  # units of the timer log, those that are not the first of their message, and deliveries whose time is over
    "timer_lives_5.3.3": (303, 0, 227),
    "timer_lives_5.5.0": (295, 0, 214),
    "timer_far_5.3.3": (264, 0, 214),
    "timer_far_5.5.0": (376, 0, 310),
    "timer_again_5.3.3": (280, 0, 198),
    "timer_again_5.5.0": (279, 0, 211),
    "timer_killed_5.3.3": (239, 13, 0),
    "timer_killed_5.5.0": (206, 0, 0),
    "timer_precise_5.3.3": (310, 2, 0),
    "timer_precise_5.5.0": (321, 8, 0),
    "timer_snapshots_5.5.0": (75, 0, 42),
    "timer_snapshots_lives_5.5.0": (118, 0, 0),
}
TWICE = {"timer_again_5.3.3": 6, "timer_again_5.5.0": 17}  # messages that were delivered again after a kill
LIVES, FAR = "timer_lives_5.5.0", "timer_far_5.3.3"
SNAPSHOTS, NEWEST = "timer_snapshots_5.5.0", "timerwheel.3900"


TIMERS = [path.name.removesuffix(".tar.xz") for path in sorted((RECORDINGS / "layouts").glob("timer*.tar.xz"))]


@pytest.mark.parametrize(("name", "split"), [(LIVES, None), *((name, 4096) for name in TIMERS)])
def test_workers_find_the_messages_that_one_more_pass_finds(
    name: str, split: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes, compared = list[int](), list[bool]()

    def one_more(store: StoreDirectory, end: int, take: Callable[[Ints], object]) -> int:
        passes.append(end)
        return each_timer_block(store, end, take)

    def blocks(messages: TimerMessages) -> tuple[PackedBlocks, int]:
        found, reached = of_workers(messages)
        expected = PackedBlocks(COLUMNS)
        end = each_timer_block(
            messages.judged.store, messages.judged.end, lambda rows: expected.add(pack_columns(rows))
        )
        compared.append(reached == end and np.array_equal(found.all_of(), expected.all_of()))
        return found, reached

    of_workers = TimerMessages.blocks
    monkeypatch.setattr(timer_messages, "each_timer_block", one_more)
    monkeypatch.setattr(TimerMessages, "blocks", blocks)
    check([recording_as_left(f"layouts/{name}")], jobs=1, split=split)
    assert compared
    assert all(compared)
    assert not passes


def test_timers_of_a_damaged_log_are_those_that_one_more_pass_finds(tmp_path: Path) -> None:
    """Workers see units after damage that a reader cannot follow: then the wheel is not judged."""
    store = copy_of("layouts/timer_lives_5.5.0", tmp_path)
    log = min((store / "commitlog").iterdir())
    data = bytearray(log.read_bytes())
    second = int.from_bytes(data[:4], "big")
    data[second + 4] ^= 1  # the magic number of the second record, which shows by what else it says
    log.write_bytes(data)
    for ignore in ([], ["log/record-carries-a-known-magic-number"]):
        report = check([store.parent], ignore=ignore)
        assert any("its log is damaged" in note for source in report.sources for note in source.notes)


@pytest.mark.parametrize("name", RECORDED)
def test_the_wheel_of_a_broker_conforms(name: str) -> None:
    units, again, delivered = RECORDED[name]
    report = check([recording_as_left(f"layouts/{name}")])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    assert report.coverage["timer.schedule"] == units
    assert report.anomalies.get("schedule_again", 0) == again
    assert report.coverage["timer.deliver"] == delivered
    assert report.anomalies.get("deliver_again", 0) == TWICE.get(name, 0)
    assert report.coverage["timer.turn"] > 0
    assert report.coverage["timer.seek"] > 0


@pytest.mark.parametrize("setting", ["timerWheelSnapshotFlush=no", ""])
def test_a_wheel_next_to_snapshots_is_not_judged_where_no_setting_says_which_is_read(
    setting: str, tmp_path: Path
) -> None:
    store = copy_of(f"layouts/{SNAPSHOTS}", tmp_path)
    config = store.parent / "broker.conf"
    config.write_text(config.read_text().replace("timerWheelSnapshotFlush=true", setting))
    (store / "timerwheel").write_bytes(bytes(SLOTS * TURN.itemsize))
    report = check([store])
    assert report.verdict == "conforms"
    assert not report.coverage["timer.turn"]
    assert any("there are snapshots of it" in note for note in report.sources[0].notes)


def test_a_wheel_of_which_no_snapshot_was_taken_yet_is_not_judged(tmp_path: Path) -> None:
    """`timerwheel` is older than the setting then."""
    store = copy_of(f"layouts/{SNAPSHOTS}", tmp_path)
    for snapshot in store.glob("timerwheel.*"):
        snapshot.unlink()
    report = check([store])
    assert (report.verdict, report.coverage["timer.turn"]) == ("conforms", 0)
    assert any("no snapshot of it was taken" in note for note in report.sources[0].notes)


# --- what is wrong ------------------------------------------------------------------------------------------------


def log_file(store: Path, base: int = 0) -> Path:
    return store / "timerlog" / f"{base:020d}"


def unit(store: Path, at: int, base: int = 0) -> list[int]:
    """The fields of a unit."""
    data = log_file(store, base).read_bytes()[at : at + UNIT.itemsize]
    return list(struct.unpack(">iqiqiqiiq", data))


def written(store: Path, at: int, values: list[int], base: int = 0) -> None:
    path = log_file(store, base)
    data = bytearray(path.read_bytes())
    data[at : at + UNIT.itemsize] = struct.pack(">iqiqiqiiq", *values)
    path.write_bytes(data)


def changed(field: int, by: int) -> Callable[[Path], tuple[str, int]]:
    """One field of the first unit becomes greater by so much."""

    def damage(store: Path) -> tuple[str, int]:
        at = 0
        values = unit(store, at)
        values[field] += by
        written(store, at, values)
        return f"timerlog/{0:020d}", at

    return damage


def slot_of(store: Path, name: str = "timerwheel") -> int:
    """Return the place of the wheel's slot with the second latest time: the last unit of the latest may be new."""
    wheel = (store / name).read_bytes()
    times = [struct.unpack_from(">q", wheel, at)[0] for at in range(0, len(wheel), TURN.itemsize)]
    assert len(times) == SLOTS
    return times.index(sorted(times)[-2]) * TURN.itemsize


def slot_changed(
    at_field: int, value: int, kind: str = ">q", name: str = "timerwheel"
) -> Callable[[Path], tuple[str, int]]:
    def damage(store: Path) -> tuple[str, int]:
        at = slot_of(store, name)
        with (store / name).open("r+b") as wheel:
            wheel.seek(at + at_field)
            wheel.write(struct.pack(kind, value))
        return name, at

    return damage


FAULTS = {
    "a unit names another one before it": (LIVES, changed(1, 52), "unit-names-the-one-before-it"),
    "a unit that is none": (LIVES, changed(0, 1), "unit-is-whole"),
    "unknown marks": (LIVES, changed(2, 16), "unit-is-whole"),
    "a unit that rolls without need": (LIVES, changed(2, 2), "message-is-rolled-to-an-earlier-time"),
    "a unit that cancels without its message": (LIVES, changed(2, 4), "unit-cancels-if-its-message-does"),
    "a unit of another time": (LIVES, changed(4, 1), "unit-has-the-time-of-its-message"),
    "a unit of no message": (LIVES, changed(5, 1), "unit-names-a-message-that-waits"),
    "a unit of a message of another size": (LIVES, changed(6, 1), "unit-names-a-message-that-waits"),
    "a slot whose last unit is of another time": (LIVES, slot_changed(16, 0), "slot-names-the-newest-unit"),
    "a slot that was emptied": (LIVES, slot_changed(0, 0), "slot-names-the-newest-unit"),
    "a slot of a snapshot that was emptied": (SNAPSHOTS, slot_changed(0, 0, name=NEWEST), "slot-names-the-newest-unit"),
    "a slot that counts one too many": (FAR, slot_changed(24, 77, ">i"), "slot-counts-its-messages"),
    "a slot whose first unit is another": (FAR, slot_changed(8, 0), "slot-names-the-oldest-unit"),
}


def found(report: Report, rule: str) -> tuple[str, int]:
    (finding,) = [f for f in report.findings if f.rule == f"timer/{rule}"]
    assert finding.where is not None
    return finding.where.file, finding.where.offset


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_where_it_lies(name: str, tmp_path: Path) -> None:
    recorded, damage, rule = FAULTS[name]
    store = copy_of(f"layouts/{recorded}", tmp_path)
    place = damage(store)
    report = check([store])
    assert report.verdict == "departs"
    assert found(report, rule) == place, report.model_dump_json(indent=1)


@pytest.mark.parametrize("name", ["timer_killed_5.3.3", "timer_killed_5.5.0"])
@pytest.mark.parametrize("many", [1, 60])
def test_units_behind_the_end_of_the_log_are_a_hazard(name: str, many: int, tmp_path: Path) -> None:
    """The log may have lost its end with the power. A start keeps the units, and other messages come to lie there."""
    store = copy_of(f"layouts/{name}", tmp_path)
    end = next(mark.high for mark in check([store]).marks if mark.kind == "log")
    read, flushed = struct.unpack(">2q", (store / "config/timercheck").read_bytes()[:16])
    later = [
        at
        for at in range(0, min(flushed, log_file(store).stat().st_size - 68), 52)
        if sum(unit(store, at)[3:5]) >= read
    ]
    for at in later[:many]:
        written(store, at, [*unit(store, at)[:5], end + at, *unit(store, at)[6:]])
    report = check([store])
    assert not [one for one in report.findings if one.severity == "violation"]
    (hazard,) = report.hazards
    assert (hazard.rule, hazard.count) == ("timer/unit-names-a-message-that-waits", len(later[:many]))
    assert (hazard.where.file, hazard.where.offset) == (f"timerlog/{0:020d}", later[0])
    assert f"names a message at {end + later[0]}, behind the log's end, {end}" in hazard.message
    assert not check([store], copied=True).hazards, "the timer log was copied after the log"


def test_what_becomes_of_units_behind_the_end_of_the_log() -> None:
    """Before a start they are foretold; after it, one names a message that was written in the place of its own."""
    before = check([recording_as_left("reports/timer_units_beyond_before_5.5.0")])
    assert (before.verdict, [hazard.count for hazard in before.hazards]) == ("inconclusive", [4])
    assert "is delivered then, though it may have been delivered before" in " ".join(before.hazards[0].story)
    after = check([recording_as_left("reports/timer_units_beyond_after_5.5.0")])
    assert (after.verdict, after.hazards) == ("departs", [])
    (finding,) = after.violations
    assert finding.rule == before.hazards[0].rule
    assert "At 1611 is the record of rmq_sys_wheel_timer/0 number 2." in finding.story
    assert [line[:13] for line in finding.story if line.startswith("Cause ")] == ["Cause 1 of 2 ", "Cause 2 of 2 "]


def entry_of(store: Path, topic: str, number: int) -> tuple[int, int]:
    """Return the place of an entry's message in the log, and its size."""
    data = (store / "consumequeue" / topic / f"{0:020d}").read_bytes()
    position, size, _ = struct.unpack_from(">qiq", data, 20 * number)
    return position, size


def test_a_message_that_waits_and_has_no_unit_is_reported(tmp_path: Path) -> None:
    """Despite an orderly stop, the two newest units were never written; one cancels another message."""
    store = copy_of(f"layouts/{FAR}", tmp_path)
    files = sorted((store / "timerlog").iterdir())
    data = bytearray(files[-1].read_bytes())
    size = UNIT.itemsize
    first = max(at for at in range(0, len(data) - size, size) if data[at : at + 4] == b"\0\0\0\x34") - size
    _, before, _, when, delay, message, *_ = struct.unpack_from(">iqiqiqiiq", data, first)
    with (store / "timerwheel").open("r+b") as wheel:  # as it was before them
        wheel.seek((when + delay) // 1000 % SLOTS * TURN.itemsize + 16)
        wheel.write(struct.pack(">q", before))
    data[first : first + 2 * size] = bytes(2 * size)
    files[-1].write_bytes(data)
    report = check([store])
    assert report.verdict == "departs"
    assert [f.rule for f in report.findings] == ["timer/message-that-waits-has-its-unit"]
    assert report.findings[0].position == message


def test_a_message_that_was_due_and_is_not_in_its_topic_is_reported(tmp_path: Path) -> None:
    """A delivered timer carries its time; one with another time is no due one."""
    store = copy_of(f"layouts/{FAR}", tmp_path)
    (log, *_) = sorted((store / "commitlog").iterdir())
    data = bytearray(log.read_bytes())
    at = 0
    while True:
        size = int.from_bytes(data[at : at + 4], "big")
        record = bytes(data[at : at + size])
        if b"TIMER_OUT_MS" in record and b"rmq_sys_wheel_timer" not in record:
            break
        at += size
    place = record.index(b"TIMER_OUT_MS\x01") + len(b"TIMER_OUT_MS\x01") + 12
    data[at + place] ^= 1
    log.write_bytes(data)
    report = check([store])
    assert report.verdict == "departs"
    (finding,) = [f for f in report.findings if f.spec == "timer"]
    assert finding.rule == "timer/message-is-delivered-when-its-time-has-come"


def test_a_wheel_that_lags_behind_its_log_is_tolerated(tmp_path: Path) -> None:
    """The next start finds in the log what was written since the wheel was last on disk."""
    store = copy_of("layouts/timer_killed_5.5.0", tmp_path)
    check_file = store / "config" / "timercheck"
    data = bytearray(check_file.read_bytes())
    data[8:16] = bytes(8)
    check_file.write_bytes(data)
    (store / "timerwheel").write_bytes(bytes(SLOTS * TURN.itemsize))
    assert check([store]).verdict == "conforms"


def test_without_its_wheel_the_log_of_the_timers_is_judged(tmp_path: Path) -> None:
    store = copy_of(f"layouts/{LIVES}", tmp_path)
    (store / "timerwheel").unlink()
    report = check([store])
    assert report.verdict == "conforms"
    assert any("timerwheel is not judged: it is not there" in note for note in report.sources[0].notes)


def test_a_timer_log_without_a_unit_is_no_traceback(tmp_path: Path) -> None:
    """Its slots name units that are nowhere: the wheel was used before, and the broker's timers are a table since."""
    store = copy_of("layouts/timerrocks_5.5.0", tmp_path)
    for file in (store / "timerlog").iterdir():
        file.write_bytes(bytes(file.stat().st_size))
    assert found(check([store]), "slot-names-the-newest-unit")[0] == "timerwheel"


def test_messages_that_wait_without_a_timer_log_are_named(tmp_path: Path) -> None:
    report = check([copy_of("pop_retry", tmp_path)])
    assert any("no timerlog/: the timer wheel is not judged" in note for note in report.sources[0].notes)


@pytest.mark.parametrize("role", ["brokerRole=SLAVE", "brokerId=1", "enableSlaveActingMaster=true"])
def test_a_slave_that_lacks_what_its_master_delivered_is_tolerated(role: str, tmp_path: Path) -> None:
    """It learns which times are over before it has the copies."""
    store = copy_of(f"layouts/{FAR}", tmp_path)
    settings = store.parent / "broker.conf"
    lines = [line for line in settings.read_text().splitlines() if not line.startswith("brokerId")]
    settings.write_text("\n".join([*lines, role, ""]))
    assert check([store], config=settings).coverage["timer.deliver"] == 0


@pytest.mark.parametrize("name", ["timer_again_5.5.0", "timer_killed_5.3.3"])
def test_a_wheel_is_judged_alike_however_many_times_of_it_at_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same counts, anomalies and findings: of a store as it was left, and of one whose every unit is damaged."""
    for damaged, store in _left_and_damaged(name, tmp_path, _each_is_of_another_length):
        reports = []
        for at_once in (batch_replay.AT_ONCE, 1):
            with monkeypatch.context() as patched:
                patched.setattr(batch_replay, "AT_ONCE", at_once)
                reports.append(check([store]).model_dump(exclude={"seconds"}))
        assert reports[0] == reports[1]
        assert (reports[0]["verdict"] == "departs") is damaged


@pytest.mark.parametrize("name", by_day([*RECORDED], 1 / 3))
def test_a_wheel_is_judged_alike_in_one_part_and_in_many(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what departs: messages that lie elsewhere than units say, and units that are gone, in files of their own."""
    for _, store in _left_and_damaged(name, tmp_path, _some_are_of_others):
        reports = []
        for at_once, in_memory in ((timer_parts.IN_A_PART, packed_blocks.IN_MEMORY), (20, 0)):
            with monkeypatch.context() as patched:
                patched.setattr(timer_parts, "IN_A_PART", at_once)
                patched.setattr(timer_parts, "SAMPLED", 1)
                patched.setattr(timer_files, "AT_ONCE", at_once)
                patched.setattr(timer_files, "SAMPLED", 1)
                patched.setattr(packed_blocks, "IN_MEMORY", in_memory)
                parts = _counting(patched)
                reports.append(check([store], ignore=["timer/unit-is-whole"]).model_dump(exclude={"seconds"}))
                assert (len(parts) > 1) is (in_memory == 0)
        assert reports[0] == reports[1]


def _left_and_damaged(name: str, folder: Path, change: Callable[[np.ndarray], None]) -> Iterator[tuple[bool, Path]]:
    """A store as it was left, and one with changed units in the first file of its timer log; whether it is that one."""
    yield False, copy_of(f"layouts/{name}", folder / "left")
    store = copy_of(f"layouts/{name}", folder / "damaged")
    log = min((store / "timerlog").iterdir())
    units = np.frombuffer(log.read_bytes(), UNIT, log.stat().st_size // UNIT.itemsize).copy()
    change(units)
    with log.open("r+b") as file:
        file.write(units.tobytes())
    yield True, store


def _each_is_of_another_length(units: np.ndarray) -> None:
    units["length"][units["size"] == UNIT.itemsize] += 1


def _some_are_of_others(units: np.ndarray) -> None:
    units["length"][::7] += 1
    units["delay"][3::11] += 5000
    units["magic"][5::13] ^= 2  # rolled


def _counting(patched: pytest.MonkeyPatch) -> list[int]:
    """Count an item for each part of a wheel that is judged from now on."""
    found, of_part = list[int](), timer_parts.Groups.__init__

    def counting(groups: timer_parts.Groups, rows: RowFacts, *more: Any) -> None:
        found.append(len(rows.nth))
        of_part(groups, rows, *more)

    patched.setattr(timer_parts.Groups, "__init__", counting)
    return found
