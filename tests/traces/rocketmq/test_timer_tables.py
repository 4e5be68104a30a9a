"""Stores whose timers are a table in RocksDB: docs/rocketmq.md#timers-rocksdb."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from rocksdict import Rdict

from gapless import check
from gapless.traces.report.values import Finding, Report
from tests.support.rocketmq import half_tables
from tests.support.rocketmq.recordings import recording_as_left

FIRST = "layouts/timerrocks_5.5.0"
NUMBER, TIME = b"sys_topic_scan_offset_checkpoint", b"timeline_checkpoint"
TABLES = {  # records, rows of the table, messages that it knows, and timers that were delivered again
    "timerrocks_5.5.0": (278, 106, 159, 0),
    "timerrocks_lives_5.5.0": (347, 126, 204, 0),
    "timerrocks_kill_clean_5.5.0": (449, 68, 200, 68),
    "timerrocks_kill_clean_5.4.0": (451, 68, 200, 65),
    "timerrocks_switched_5.5.0": (279, 55, 152, 0),
}
Rows = dict[bytes, bytes]
Fault = Callable[[Rdict, Rows, int], int]


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_a_broker_wrote_conforms(name: str) -> None:
    records, rows, counted, again = TABLES[name]
    report = check([recording_as_left(f"layouts/{name}")])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    (source,) = report.sources
    assert source.records == records
    assert f"the table of timers has {rows} rows, and has read {counted} messages" in source.notes
    assert report.coverage["timer_table.find_row"] == rows
    found = [one for one in report.findings if one.rule == "timer_table/deliver-timer-again"]
    assert sum(one.count for one in found) == again


def test_a_killed_broker_has_an_empty_table_and_reads_all_again() -> None:
    report = check([recording_as_left("layouts/timerrocks_killed_5.5.0")])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)


def test_timers_in_the_wheel_need_no_row() -> None:
    (source,) = check([recording_as_left("layouts/timerrocks_switched_5.5.0")]).sources
    assert any("they are in the timer wheel" in note for note in source.notes)


def _rows(table: Rdict) -> Rows:
    return {key: value for key, value in half_tables.rows(table).items() if key not in (NUMBER, TIME)}


def _time(table: Rdict) -> int:
    time = table[TIME]
    assert isinstance(time, bytes)
    return int.from_bytes(time, "big")


def _place(value: bytes) -> int:
    return int.from_bytes(value[4:], "big")


def _due(key: bytes) -> int:
    return int.from_bytes(key[:8], "big")


def _pending(rows: Rows, time: int, n: int = 2) -> bytes:
    """A row whose time is to come."""
    return [key for key in rows if _due(key) > time][n]


def _no_row(table: Rdict, rows: Rows, time: int) -> int:
    key = _pending(rows, time)
    del table[key]
    return _place(rows[key])


def _twice_at_another_time(table: Rdict, rows: Rows, time: int) -> int:
    key = _pending(rows, time)
    table[(_due(key) + 1000).to_bytes(8, "big") + key[8:]] = rows[key]
    return _place(rows[key])


def _another_message(table: Rdict, rows: Rows, time: int) -> int:
    key, other = _pending(rows, time), _pending(rows, time, 5)
    table[key] = rows[other]
    return _place(rows[other])


def _nowhere(table: Rdict, rows: Rows, time: int) -> int:
    key = _pending(rows, time)
    table[key] = rows[key][:4] + (_place(rows[key]) + 4).to_bytes(8, "big")
    return _place(rows[key]) + 4


def _another_key(table: Rdict, rows: Rows, time: int) -> int:
    key = _pending(rows, time)
    table[key[:8] + _pending(rows, time, 9)[8:-1] + b"x"] = rows[key]
    return _place(rows[key])


def _another_size(table: Rdict, rows: Rows, time: int) -> int:
    key = _pending(rows, time)
    table[key] = (int.from_bytes(rows[key][:4], "big") + 1).to_bytes(4, "big") + rows[key][4:]
    return _place(rows[key])


def _late(table: Rdict, rows: Rows, time: int) -> int:
    """Mark a time as over whose message was never delivered."""
    key = _pending(rows, time, 0)
    table[TIME] = (_due(key) + 1).to_bytes(8, "big")
    return _place(rows[key])


def _number(table: Rdict, _rows: Rows, _time: int) -> int:
    table[NUMBER] = (10_000).to_bytes(8, "big")
    return 10_000


FAULTS: dict[str, tuple[str, Fault]] = {
    "no row": ("timer-that-waits-has-its-row", _no_row),
    "twice, at another time": ("row-of-a-timer-names-a-message-that-waits", _twice_at_another_time),
    "another message": ("row-of-a-timer-names-a-message-that-waits", _another_message),
    "no message": ("row-of-a-timer-names-a-message-that-waits", _nowhere),
    "another key": ("row-of-a-timer-names-a-message-that-waits", _another_key),
    "another size": ("row-of-a-timer-has-the-size-of-its-message", _another_size),
    "not delivered": ("timer-is-delivered-when-its-time-has-come", _late),
    "read too far": ("timers-are-read-up-to-those-that-wait", _number),
}
OF_MESSAGES = ("timer-that-waits-has-its-row", "timer-is-delivered-when-its-time-has-come")


def _violations(report: Report) -> list[Finding]:
    return [one for one in report.findings if one.severity == "violation"]


def _copy(tmp_path: Path, name: str = FIRST) -> Path:
    return Path(shutil.copytree(recording_as_left(name), tmp_path / "copy")) / "store"


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_table_is_found_where_it_is(fault: str, tmp_path: Path) -> None:
    rule, plant = FAULTS[fault]
    store = _copy(tmp_path)
    with half_tables.opened(store, "timer") as table:
        position = plant(table, _rows(table), _time(table))
    report = check([store.parent])
    found = {one.rule: one for one in _violations(report)}
    assert set(found) == {f"timer_table/{rule}"}, report.model_dump_json(indent=1)
    where = found[f"timer_table/{rule}"].where
    assert where.file.startswith("commitlog/" if rule in OF_MESSAGES else "rocksdbstore/")
    assert where.offset == position
    again = check([store.parent], trace=found[f"timer_table/{rule}"].trace)
    assert [one.rule for one in _violations(again)] == [f"timer_table/{rule}"]


def test_what_the_row_says_is_reported_next_to_what_the_message_says(tmp_path: Path) -> None:
    """Both times, and both sizes."""
    for plant, field in ((_twice_at_another_time, 0), (_another_size, 1)):
        store = _copy(tmp_path / str(field))
        with half_tables.opened(store, "timer") as table:
            plant(table, _rows(table), _time(table))
        message = _violations(check([store.parent]))[0].message
        numbers = [tuple(map(int, one)) for one in re.findall(r"time (\d+) and (\d+) bytes", message)]
        rows, its = numbers[:-1], numbers[-1]
        assert len({row[field] for row in rows} - {its[field]}) == 1, message
        assert {row[1 - field] for row in rows} == {its[1 - field]}, message


def test_a_row_of_a_timer_that_was_cancelled_is_found(tmp_path: Path) -> None:
    """Cancelling a timer whose time is over deletes nothing, so its row is no violation."""
    store = _copy(tmp_path)
    key, value = _cancelled(store)
    with half_tables.opened(store, "timer") as table:
        table[key] = value
    (found,) = _violations(check([store.parent]))
    assert found.rule == "timer_table/timer-that-is-cancelled-has-no-row"
    assert (found.where.file, found.where.offset) == ("rocksdbstore/RocksDB:timer", _place(value))


def _cancelled(store: Path) -> tuple[bytes, bytes]:
    """The row that a timer which was cancelled would have: the first that lies far ahead."""
    data = (store / "commitlog" / f"{0:020d}").read_bytes()
    at = data.index(b"TIMER_DEL_UNIQKEY\x01", 0)
    times = dict[bytes, int]()
    while at >= 0:
        record = data.rindex(b"\xda\xa3\x20\xa7", 0, at) - 4
        end = record + int.from_bytes(data[record : record + 4], "big")
        pairs = dict(pair.split(b"\x01", 1) for pair in data[record + 89 : end].split(b"\x02") if b"\x01" in pair)
        time = int(next(value for name, value in pairs.items() if name.endswith(b"TIMER_OUT_MS")))
        times[pairs[b"TIMER_DEL_UNIQKEY"].partition(b"+")[2]] = time
        at = data.find(b"TIMER_DEL_UNIQKEY\x01", at + 1)
    key, time = max(times.items(), key=lambda item: item[1])
    record = data.rindex(b"\xda\xa3\x20\xa7", 0, data.index(b"UNIQ_KEY\x01" + key)) - 4
    return time.to_bytes(8, "big") + key, data[record : record + 4] + record.to_bytes(8, "big")


def test_a_row_that_a_broker_of_several_lives_lacks_is_undecided(tmp_path: Path) -> None:
    """`timerRocksDBEnable` may have been off when its message was read, and its wheel unit may be gone."""
    store = _copy(tmp_path, "layouts/timerrocks_lives_5.5.0")
    with half_tables.opened(store, "timer") as table:
        _no_row(table, _rows(table), _time(table))
    report = check([store.parent])
    assert report.verdict == "inconclusive", report.model_dump_json(indent=1)
    assert "no row of the table of timers names" in report.model_dump_json()


def test_a_row_that_no_broker_writes_is_not_passed_over(tmp_path: Path) -> None:
    store = _copy(tmp_path)
    with half_tables.opened(store, "timer") as table:
        table[b"abc"] = b"1"
    report = check([store.parent])
    assert report.verdict == "inconclusive"
    assert any("which no broker writes" in reason for reason in report.sources[0].reasons), report.sources[0].reasons


def test_a_table_that_is_gone_or_damaged_is_no_traceback(tmp_path: Path) -> None:
    store = _copy(tmp_path)
    (table,) = (store / "rocksdbstore").glob("*.sst")
    whole = table.read_bytes()
    table.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    assert check([store.parent]).verdict == "inconclusive"
    shutil.rmtree(store / "rocksdbstore")
    report = check([store.parent])
    assert report.verdict == "inconclusive"
    assert "timers in rocksdbstore/" in report.model_dump_json()


@pytest.mark.parametrize("gone", ["all", "number"])
def test_a_table_that_is_far_behind_its_log_is_undecided(gone: str, tmp_path: Path) -> None:
    """Its broker stopped in order, so a lag is legal only if it was off, or slow."""
    store = _copy(tmp_path)
    with half_tables.opened(store, "timer") as table:
        for key in [NUMBER] if gone == "number" else [*_rows(table), NUMBER, TIME]:
            del table[key]
    report = check([store.parent])
    assert report.verdict == "inconclusive", report.model_dump_json(indent=1)
    assert any("more than 10 s before the log's end" in reason for reason in report.sources[0].reasons)
