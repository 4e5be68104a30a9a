"""Stores whose index of messages is a table in RocksDB: docs/rocketmq.md#index-rocksdb."""

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rocksdict import Rdict

from gapless import check
from gapless.traces.report.values import Finding, Report
from gapless.traces.sources.rocketmq.layouts.key_table.rows import NONE, ROW, _once
from tests.support.rocketmq import half_tables
from tests.support.rocketmq.recordings import recording_as_left

FIRST = "layouts/indexdb_first_5.5.0"
LAST, LAST_TIME = b"lastOffsetPy", b"lastStoreTimeStamp"
HOUR = 3_600_000
TABLES = {  # records, and rows of the table, as counted by the library alone, without its two keys that are no rows
    "indexdb_first_5.5.0": (219, 628),
    "indexdb_lives_5.5.0": (381, 1_037),
    "indexdb_kill_clean_5.5.0": (526, 1_501),
    "indexdb_kill_clean_5.4.0": (514, 1_450),
    "indexdb_switched_5.5.0": (492, 1_037),
    "indexdb_killed_5.5.0": (489, 733),
}
Fault = Callable[[Rdict, dict[bytes, bytes]], int]


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_a_broker_wrote_conforms(name: str) -> None:
    records, rows = TABLES[name]
    report = check([recording_as_left(f"layouts/{name}")])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    (source,) = report.sources
    assert source.records == records
    assert any(note.startswith(f"the table of keys has {rows:,} rows, and ends at") for note in source.notes)
    assert report.coverage["index_table.find_row"] == rows
    assert report.coverage["index_table.find_last"] == 1


def test_records_before_the_table_was_switched_on_and_behind_its_end_are_reported_of() -> None:
    """Those of the life in which it was off later on, the next start put into it."""
    (switched,) = check([recording_as_left("layouts/indexdb_switched_5.5.0")]).sources
    assert any(note.startswith("114 records are without rows in the table of keys") for note in switched.notes)
    (killed,) = check([recording_as_left("layouts/indexdb_killed_5.5.0")]).sources
    assert any("behind the end of the table of keys" in note for note in killed.notes)


def _rows(table: Rdict) -> dict[bytes, bytes]:
    return {key: value for key, value in half_tables.rows(table).items() if key not in (LAST, LAST_TIME)}


def _position(key: bytes) -> int:
    return int.from_bytes(key[-8:], "big")


def _moved(table: Rdict, rows: dict[bytes, bytes], key: bytes, new: bytes) -> None:
    del table[key]
    table[new] = rows[key]


def _some(rows: dict[bytes, bytes], kind: bytes, n: int = 7) -> bytes:
    return [key for key in rows if b"@" + kind + b"@" in key][n]


def _no_row(table: Rdict, rows: dict[bytes, bytes]) -> int:
    key = _some(rows, b"K")
    del table[key]
    return _position(key)


def _no_rows_of_a_record(table: Rdict, rows: dict[bytes, bytes]) -> int:
    position = _position(_some(rows, b"U", 20))
    for key in rows:
        if _position(key) == position:
            del table[key]
    return position


def _other_key(table: Rdict, rows: dict[bytes, bytes]) -> int:
    key = _some(rows, b"K")
    _moved(table, rows, key, key.replace(b"@K@", b"@K@x"))
    return _position(key)


def _foreign_position(table: Rdict, rows: dict[bytes, bytes]) -> int:
    key, other = _some(rows, b"T"), _some(rows, b"U", 30)
    table[key[:-8] + other[-8:]] = rows[key]
    return _position(other)


def _nowhere(table: Rdict, rows: dict[bytes, bytes]) -> int:
    key = _some(rows, b"U")
    table[key[:-8] + (_position(key) + 1).to_bytes(8, "big")] = rows[key]
    return _position(key) + 1


def _beyond_the_log(table: Rdict, rows: dict[bytes, bytes]) -> int:
    key = _some(rows, b"U")
    table[key[:-8] + (1 << 40).to_bytes(8, "big")] = rows[key]
    return 1 << 40


def _other_time(table: Rdict, rows: dict[bytes, bytes]) -> int:
    key = _some(rows, b"K", 3)
    table[key] = (int.from_bytes(rows[key], "big") + 1).to_bytes(8, "big")
    return _position(key)


def _other_hour(table: Rdict, rows: dict[bytes, bytes]) -> int:
    key = _some(rows, b"T", 3)
    _moved(table, rows, key, (int.from_bytes(key[:8], "big") - HOUR).to_bytes(8, "big") + key[8:])
    return _position(key)


def _twice(table: Rdict, rows: dict[bytes, bytes]) -> int:
    key = _some(rows, b"U", 3)
    table[(int.from_bytes(key[:8], "big") + HOUR).to_bytes(8, "big") + key[8:]] = rows[key]
    return _position(key)


def _end_beyond(table: Rdict, _rows: dict[bytes, bytes]) -> int:
    table[LAST] = (1 << 40).to_bytes(8, "big")
    return 1 << 40


def _end_elsewhere(table: Rdict, rows: dict[bytes, bytes]) -> int:
    at = max(map(_position, rows)) - 1
    table[LAST] = at.to_bytes(8, "big")
    return at


def _end_time(table: Rdict, rows: dict[bytes, bytes]) -> int:
    table[LAST_TIME] = (max(int.from_bytes(time, "big") for time in rows.values()) + 5).to_bytes(8, "big")
    return max(map(_position, rows))


FAULTS: dict[str, tuple[str, Fault]] = {
    "no row": ("key-of-a-record-has-its-row", _no_row),
    "no rows of a record": ("key-of-a-record-has-its-row", _no_rows_of_a_record),
    "another key": ("row-has-a-key-of-its-record", _other_key),
    "another record": ("row-has-a-key-of-its-record", _foreign_position),
    "no record": ("row-of-a-key-leads-to-a-record", _nowhere),
    "beyond the log": ("row-of-a-key-leads-to-a-record", _beyond_the_log),
    "another time": ("row-of-a-key-has-the-time-of-its-record", _other_time),
    "another hour": ("row-stands-in-the-hour-of-its-record", _other_hour),
    "twice": ("row-stands-in-the-hour-of-its-record", _twice),
    "end beyond the log": ("table-of-keys-ends-at-a-record", _end_beyond),
    "end at no record": ("table-of-keys-ends-at-a-record", _end_elsewhere),
    "time of the end": ("table-of-keys-ends-at-the-time-of-its-record", _end_time),
}


def _copy(tmp_path: Path, name: str = FIRST) -> Path:
    return Path(shutil.copytree(recording_as_left(name), tmp_path / "copy")) / "store"


def _violations(report: Report) -> list[Finding]:
    return [one for one in report.findings if one.severity == "violation"]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_table_is_found_where_it_is(fault: str, tmp_path: Path) -> None:
    rule, plant = FAULTS[fault]
    store = _copy(tmp_path)
    with half_tables.opened(store, "default") as table:
        position = plant(table, _rows(table))
    report = check([store.parent])
    assert report.verdict == "departs"
    (found,) = _violations(report)
    assert found.rule == f"index_table/{rule}"
    assert found.where.file.startswith("commitlog/" if rule == "key-of-a-record-has-its-row" else "rocksdbstore/")
    assert found.where.offset == position
    again = check([store.parent], trace=found.trace)
    assert [(one.rule, one.where) for one in _violations(again)] == [(found.rule, found.where)]


def test_a_row_that_departs_is_named(tmp_path: Path) -> None:
    store = _copy(tmp_path)
    with half_tables.opened(store, "default") as table:
        rows = _rows(table)
        _other_key(table, rows)
        key = _some(rows, b"K")
    (found,) = _violations(check([store.parent]))
    assert key[8:-9].decode().replace("@K@", "@K@x") in found.message


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        (_other_time, r"with time (\d+).*; the record's time is (\d+)\)"),
        (_other_hour, r"in hour (\d+) with time.*; the record's time is (\d+)\)"),
        (_end_time, r"\(the table says (\d+), its record (\d+)\)"),
    ],
)
def test_both_times_are_reported_where_they_differ(plant: Fault, expected: str, tmp_path: Path) -> None:
    store = _copy(tmp_path)
    with half_tables.opened(store, "default") as table:
        plant(table, _rows(table))
    (found,) = _violations(check([store.parent]))
    times = re.search(expected, found.message)
    assert times, found.message
    row, record = map(int, times.groups())
    assert 0 < abs(row - record) < 2 * HOUR


def test_what_a_table_did_not_record_is_no_violation(tmp_path: Path) -> None:
    """A killed broker loses the newest rows, and the end that was written with them: the next start writes them."""
    store = _copy(tmp_path)
    (store / "abort").touch()
    with half_tables.opened(store, "default") as table:
        rows = _rows(table)
        places = sorted({_position(key) for key in rows})
        end = places[len(places) // 2]
        for key in rows:
            if _position(key) > end:
                del table[key]
        table[LAST] = end.to_bytes(8, "big")
        table[LAST_TIME] = next(rows[key] for key in rows if _position(key) == end)
    report = check([store.parent])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    assert any("behind the end of the table of keys" in note for note in report.sources[0].notes)


def test_rows_that_a_broker_of_several_lives_lacks_are_undecided(tmp_path: Path) -> None:
    """`messageIndexEnable` may have been off for a time; a record with some of its rows is another matter."""
    store = _copy(tmp_path, "layouts/indexdb_lives_5.5.0")
    with half_tables.opened(store, "default") as table:
        _no_rows_of_a_record(table, _rows(table))
    assert check([store.parent]).verdict == "inconclusive"
    with half_tables.opened(store, "default") as table:
        _no_row(table, _rows(table))
    (found,) = _violations(check([store.parent]))
    assert found.rule == "index_table/key-of-a-record-has-its-row"


def test_a_row_that_no_broker_writes_is_not_passed_over(tmp_path: Path) -> None:
    store = _copy(tmp_path)
    with half_tables.opened(store, "default") as table:
        table[b"abc"] = b"1"
    report = check([store.parent])
    assert report.verdict == "inconclusive"
    assert "which no broker writes" in report.model_dump_json()


@pytest.mark.parametrize("position", [-(2**63), 2**63 - 1])
def test_a_row_for_a_place_that_is_no_broker_s_is_not_passed_over(position: int, tmp_path: Path) -> None:
    store = _copy(tmp_path)
    with half_tables.opened(store, "default") as table:
        key = _some(_rows(table), b"K")
        table[key[:-8] + position.to_bytes(8, "big", signed=True)] = table[key]
    report = check([store.parent])
    assert report.verdict == "inconclusive"
    assert f"a row for position {position:,}, which no broker writes" in report.sources[0].reasons[0]


@pytest.mark.parametrize("gone", ["MANIFEST-*", "*.sst", "CURRENT"])
def test_a_database_that_lacks_a_file_is_no_traceback(gone: str, tmp_path: Path) -> None:
    store = _copy(tmp_path)
    for path in (store / "rocksdbstore").glob(gone):
        path.unlink()
    report = check([store.parent])
    assert report.verdict == "inconclusive", report.model_dump_json(indent=1)
    assert "rocksdbstore/" in report.model_dump_json()


def test_a_database_that_is_damaged_at_random_is_never_a_traceback(tmp_path: Path) -> None:
    """A table's checksums tell; where a byte that flips is of no account, all rows are there."""
    chance, verdicts = random.Random(7), set()
    store = _copy(tmp_path)
    (table,) = (store / "rocksdbstore").glob("*.sst")
    whole = table.read_bytes()
    for _ in range(12):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        table.write_bytes(damaged)
        verdicts.add(check([store.parent]).verdict)
    assert verdicts <= {"inconclusive", "conforms"}
    assert "inconclusive" in verdicts


def test_a_word_that_stands_twice_in_a_record_is_one_row() -> None:
    """The broker puts one row over the other. Two records may have the same text, and a record no row at all."""
    position = np.array([0, 7, 7, 7, 7, 9, 12, 12, 12, 12])
    text = np.array([1, 2, 3, 2, 4, 2, 5, 6, 6, 6])
    kind = np.array([ROW] * 5 + [NONE] + [ROW] * 4)
    rows = _once(np.stack([position, position, text, kind]))
    assert rows[0].tolist() == [0, 7, 7, 7, 9, 12, 12]
    assert rows[2].tolist() == [1, 2, 3, 4, 2, 5, 6]
