"""A table of halves is watched, too: with the counts of a check at the end, and of a running broker one look behind."""

import shutil
from pathlib import Path
from random import Random

import pytest

from gapless.traces.sources.rocketmq.layouts.half_table import follow
from gapless.traces.watch import StoreWatch
from tests.support.night import by_day
from tests.support.rocketmq import half_tables
from tests.support.rocketmq.half_tables import position_of, row
from tests.support.rocketmq.played_store import PlayedStore
from tests.support.rocketmq.recordings import copy_of, recording
from tests.support.rocketmq.watched import (
    Clock,
    Heard,
    checked,
    follower_of,
    layout_of,
    same,
    until_idle,
    watch,
    watch_all_of,
)

FIRST = "layouts/halfdb_first_5.5.0"
REPORTED = 0.1, 1.0, 4.0, 100.0  # seconds between two looks: after the last, a report is made
RECORDED = ["halfdb_lives_5.5.0", "halfdb_first_5.5.0", "halfdb_killed_5.5.0"]


def played_of(source: Path, folder: Path) -> PlayedStore:
    played = PlayedStore(source, folder)
    shutil.copy(source.parent / "broker.conf", folder.parent)
    return played


@pytest.mark.parametrize("name", by_day(RECORDED, 1 / 3))
def test_the_report_is_that_of_a_check_wherever_the_log_is_cut(name: str, tmp_path: Path) -> None:
    chance, clock, heard = Random(name), Clock(), Heard()
    played = played_of(recording(f"layouts/{name}"), tmp_path / "store")

    def behind(written: int) -> None:
        played.dispatch(written - chance.choice((0, 300, 5_000)))

    watched = watch_all_of(played, heard, clock, chance, behind, most=20_000, passes=REPORTED)
    clock.now += 3
    until_idle(watched)
    assert layout_of(watched, "half_table").at == watched.status.position
    assert layout_of(watched, "half_table").records.columns > 50
    played.stop()
    until_idle(watched)
    same(watched.end(), checked(tmp_path / "store"))
    assert not heard.found


def running(tmp_path: Path, heard: Heard, clock: Clock) -> tuple[PlayedStore, StoreWatch]:
    """A running store: its broker has written all of its log and its table."""
    source = copy_of(FIRST, tmp_path)
    played = played_of(source, tmp_path / "played/store")
    played.append(played.end)
    played.dispatch(played.end)
    shutil.copy(source / "checkpoint", tmp_path / "played/store")
    shutil.copytree(source / "rocksdbstore", tmp_path / "played/store/rocksdbstore")
    return played, watch(tmp_path / "played/store", heard, clock)


def report(watched: StoreWatch, clock: Clock) -> None:
    """Another report, as is made where anything is new: nothing is at rest yet."""
    until_idle(watched)
    follower_of(watched).front.news_at = clock.now
    watched._report()


def test_the_table_of_a_running_broker_is_judged_once_the_log_is_read_beyond_it(tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    _played, watched = running(tmp_path, heard, clock)
    for _ in range(2):
        report(watched, clock)
    first, second = ([note for note in one.sources[0].notes if "table of halves" in note] for one in heard.reports)
    assert "is judged once the log has been read beyond it" in first[0]
    assert second == ["the table of halves has 14 rows, and ends at 45,780"]
    assert heard.reports[1].coverage["half_table.find_row"] == 14
    assert not heard.found


def test_a_table_that_is_ahead_of_what_was_read_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows may be gone for ops that are not read yet: otherwise halves would seem to be forgotten."""
    heard, clock = Heard(), Clock()
    _played, watched = running(tmp_path, heard, clock)
    monkeypatch.setattr(follow, "_end", lambda _store, at: at + 1)
    for _ in range(3):
        report(watched, clock)
    assert not [one for one in heard.reports if one.coverage["half_table.find_row"]]


@pytest.mark.parametrize("fault", ["half-that-is-undecided-has-its-row", "row-has-the-size-of-its-half"])
def test_a_fault_in_the_table_of_a_running_broker_is_reported(fault: str, tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    played, watched = running(tmp_path, heard, clock)
    with half_tables.opened(played.folder) as table:
        rows = half_tables.rows(table)
        key = list(rows)[-1]
        del table[key]
        if fault.startswith("row"):
            table[key] = row(0, int.from_bytes(rows[key][4:], "big") + 1)
    for _ in range(2):
        report(watched, clock)
    (found,) = heard.found
    assert (found.rule, found.where.offset) == (f"half_table/{fault}", position_of(key))
    assert heard.reports[1].verdict == "departs"
