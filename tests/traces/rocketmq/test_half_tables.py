"""Stores whose halves a table in RocksDB tells of: docs/rocketmq-transactions.md#half-table."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rocksdict import Rdict

from gapless import check
from gapless.traces.sources.rocketmq.queues import rocksdb
from tests.support.command_line import gapless
from tests.support.rocketmq import half_tables
from tests.support.rocketmq.half_tables import END, position_of, row
from tests.support.rocketmq.recordings import recording_as_left

FIRST = "layouts/halfdb_first_5.5.0"
OUTCOMES = {  # as the clients tell it: commits and rollbacks that were answered, each once, and all other halves
    "halfdb_first_5.5.0": {"committed": 22, "rolled back": 24, "undecided": 14},
    "halfdb_lives_5.5.0": {"committed": 114, "rolled back": 37, "undecided": 29},
    "halfdb_killed_5.5.0": {"committed": 90, "rolled back": 39, "undecided": 51},
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_transactions_are_judged_as_any_others(name: str) -> None:
    report = check([recording_as_left(f"layouts/{name}")])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    (row_of_them,) = report.transactions
    assert row_of_them.outcomes == OUTCOMES[name]
    assert row_of_them.halves == sum(OUTCOMES[name].values())


def test_a_table_is_reported_of_with_what_it_leaves_out() -> None:
    """A table has 29 undecided halves: 15 were parked after four checks; a limit of 15 checks parks none."""
    (first,) = check([recording_as_left(FIRST)]).sources
    assert "the table of halves has 14 rows, and ends at 45,780" in first.notes
    (lives,) = check([recording_as_left("layouts/halfdb_lives_5.5.0")]).sources
    assert any(note.startswith("15 undecided halves have no row") for note in lives.notes)
    (killed,) = check([recording_as_left("layouts/halfdb_killed_5.5.0")]).sources
    assert any("51 undecided halves lie behind the end of the table" in note for note in killed.notes)


def test_links_to_a_database_are_made_once_for_its_three_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    link, calls = rocksdb._link, list[Path]()

    def counted(folder: Path, linked: Path) -> None:
        calls.append(folder)
        link(folder, linked)

    monkeypatch.setattr(rocksdb, "_link", counted)
    store = recording_as_left(FIRST) / "store"
    assert check([store.parent]).coverage["half_table.find_row"]
    assert calls.count(store / "rocksdbstore") == 1


def _deleted(table: Rdict, keys: list[bytes]) -> int:
    del table[keys[-1]]
    return position_of(keys[-1])


def _elsewhere(table: Rdict, keys: list[bytes]) -> int:
    value = half_tables.rows(table)[keys[3]]
    del table[keys[3]]
    at = position_of(keys[3]) + 1
    table[at.to_bytes(8, "big") + keys[3][8:]] = value
    return at


def _other_size(table: Rdict, keys: list[bytes]) -> int:
    value = half_tables.rows(table)[keys[2]]
    table[keys[2]] = row(int.from_bytes(value[:4], "big"), int.from_bytes(value[4:], "big") + 1)
    return position_of(keys[2])


def _other_key(table: Rdict, keys: list[bytes]) -> int:
    value = half_tables.rows(table)[keys[4]]
    del table[keys[4]]
    table[keys[4][:-1] + b"!"] = value
    return position_of(keys[4])


def _too_many_checks(table: Rdict, keys: list[bytes]) -> int:
    table[keys[1]] = row(16, int.from_bytes(half_tables.rows(table)[keys[1]][4:], "big"))
    return position_of(keys[1])


def _twice(table: Rdict, keys: list[bytes]) -> int:
    table[keys[5] + b"!"] = half_tables.rows(table)[keys[5]]
    return position_of(keys[5])


def _short_end(table: Rdict, keys: list[bytes]) -> int:
    table[END] = keys[-2][:8]
    return position_of(keys[-1])


def _other_end(table: Rdict, keys: list[bytes]) -> int:
    at = position_of(keys[-1]) + 3
    table[END] = at.to_bytes(8, "big")
    return at


FAULTS: dict[str, Callable[[Rdict, list[bytes]], int]] = {
    "half-that-is-undecided-has-its-row": _deleted,
    "row-points-at-a-half": _elsewhere,
    "row-has-the-size-of-its-half": _other_size,
    "row-has-topic-and-key-of-its-half": _other_key,
    "row-counts-no-more-checks-than-allowed": _too_many_checks,
    "half-has-one-row": _twice,
    "row-lies-up-to-the-end-of-the-table": _short_end,
    "table-ends-at-a-half": _other_end,
}


STATED = {  # by a row, and by what it is compared with
    "row-counts-no-more-checks-than-allowed": "with 16 of 15 checks",
    "row-lies-up-to-the-end-of-the-table": "(the table ends at ",
}


@pytest.mark.parametrize("rule", FAULTS)
def test_a_fault_in_the_table_is_found_where_it_is(rule: str, tmp_path: Path) -> None:
    store = _copy(tmp_path)
    with half_tables.opened(store) as table:
        position = FAULTS[rule](table, list(half_tables.rows(table)))
    report = check([store.parent])
    found = {one.rule: one for one in report.findings}
    assert f"half_table/{rule}" in found, report.model_dump_json(indent=1)
    where = found[f"half_table/{rule}"].where
    assert where.file.startswith("commitlog/" if rule == "half-that-is-undecided-has-its-row" else "rocksdbstore/")
    assert where.offset == position
    assert STATED.get(rule, "") in found[f"half_table/{rule}"].message


def test_a_half_that_stays_in_the_table_after_its_op_is_found(tmp_path: Path) -> None:
    """But where a check was counted it is no departure: a broker writes a row again that it had read before the op."""
    store = _copy(tmp_path)
    position, owner, size = _decided(store)
    rules = {}
    for checks in (0, 1):
        with half_tables.opened(store) as table:
            table[position.to_bytes(8, "big") + owner] = row(checks, size)
        rules[checks] = {one.rule for one in check([store.parent]).findings if one.severity == "violation"}
    assert rules == {0: {"half_table/half-that-is-decided-has-no-row"}, 1: set()}


def test_halves_without_their_table_are_not_reported_sound(tmp_path: Path) -> None:
    store = _copy(tmp_path)
    shutil.rmtree(store / "rocksdbstore")
    report = check([store.parent])
    assert report.verdict == "inconclusive"
    assert "table of halves" in report.model_dump_json()


@pytest.mark.parametrize("name", OUTCOMES)
def test_exported_events_conform_as_the_store_does(name: str, tmp_path: Path) -> None:
    """Cursors pass halves of the half topic alone, and no others are numbered as these are."""
    gapless("trace", recording_as_left(f"layouts/{name}"), "--out", tmp_path / "events.parquet")
    assert check([tmp_path / "events.parquet"]).verdict == "conforms"


def test_a_row_that_no_broker_writes_is_not_passed_over(tmp_path: Path) -> None:
    store = _copy(tmp_path)
    with half_tables.opened(store) as table:
        table[(-1).to_bytes(8, "big", signed=True) + b"@payments@1"] = row(1, 300)
    report = check([store.parent])
    assert report.verdict == "inconclusive"
    assert "a row that no broker writes" in report.model_dump_json()


@pytest.mark.parametrize("with_end", [False, True])
def test_a_table_that_was_emptied_is_not_reported_sound(tmp_path: Path, *, with_end: bool) -> None:
    """All rows are gone, and none is left that would show of the others that their checks cannot be over."""
    store = _copy(tmp_path)
    with half_tables.opened(store) as table:
        for key in [*half_tables.rows(table), *[END] * with_end]:
            del table[key]
    report = check([store.parent])
    assert report.verdict == "inconclusive", report.model_dump_json(indent=1)
    assert not [one for one in report.findings if one.severity == "violation"]
    (found,) = report.sources
    why = "lie behind the end of the table of halves" if with_end else "cannot have asked about them 15 times"
    assert any(why in reason for reason in found.reasons)
    assert not any("broker gives a half up" in note for note in found.notes)


def test_what_is_stated_of_a_table_that_cannot_be_read_fits_halves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not entries of queues: nothing can be checked without them where they are not."""
    store = _copy(tmp_path)
    (journal, *_) = [*(store / "rocksdbstore").glob("*.log")]
    journal.unlink()
    journal.mkdir()
    (report,) = check([store.parent]).sources
    (why,) = [reason for reason in report.reasons if "table of halves" in reason]
    assert why.endswith(f"{journal}: cannot be read (Is a directory); copy the folder again")
    monkeypatch.setitem(sys.modules, "rocksdict", None)
    (report,) = check([store.parent]).sources
    assert "queues" not in " ".join(report.reasons)
    assert "is not judged: it is in rocksdbstore/, a RocksDB database, and the package" in " ".join(report.reasons)


def _copy(tmp_path: Path) -> Path:
    """Copy the store of one life, to be changed, with its client log."""
    return Path(shutil.copytree(recording_as_left(FIRST), tmp_path / "copy")) / "store"


def _decided(store: Path) -> tuple[int, bytes, int]:
    """Position of a half that was committed, what a row's key has behind it, and the bytes of its record."""
    lines = [json.loads(line) for line in (store.parent / "client.ndjson").read_text().splitlines()]
    phys = next(one["phys"] for one in lines if one["op"] == "end" and one["decision"] == "commit")
    half = next(one for one in lines if one["op"] == "half" and one.get("phys") == phys)
    with (store / "commitlog" / f"{0:020d}").open("rb") as log:
        log.seek(phys)
        size = int.from_bytes(log.read(4), "big")
    return phys, f"@{half['topic']}@{half['uniq']}".encode(), size
