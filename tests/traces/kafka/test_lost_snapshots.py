"""A log that has lost its snapshots of producers is a hazard of the next start."""

import shutil
from pathlib import Path

import pytest

from gapless import check
from gapless.traces.report.values import Where
from gapless.traces.sources.kafka.explain import hazard
from gapless.traces.sources.kafka.judging.lost_snapshots import RULE, LostSnapshots
from tests.support.kafka.recordings import recording


def without_snapshots(path: Path, room: Path, but: int = -1) -> Path:
    """A copy of a data directory in which one partition has no snapshot, but for the one at an offset."""
    copy = room / path.name
    shutil.copytree(path, copy)
    for file in (copy / "orders-0").glob("*.snapshot"):
        if int(file.stem) != but:
            file.unlink()
    return copy


@pytest.mark.parametrize(("but", "hazards"), [(-1, 1), (160, 0)])
def test_a_log_without_snapshots_is_read_as_a_whole_by_the_next_start(but: int, hazards: int, tmp_path: Path) -> None:
    path = recording("4.4.0-power") / "cut"
    before, report = check(path, jobs=1), check(without_snapshots(path, tmp_path, but), jobs=1)
    assert (report.verdict, len(report.hazards)) == (before.verdict, hazards)
    assert not before.hazards
    for found in report.hazards:
        assert (found.rule, found.trace, found.position) == (RULE, "orders-0", 320)
        assert found.message == "orders-0, offset 320: no snapshot of its producers is left"
        assert found.otherwise.startswith("the next start reads the whole log, ")


def test_at_rest_the_lack_of_a_snapshot_is_a_violation_and_no_hazard(tmp_path: Path) -> None:
    report = check(without_snapshots(recording("4.4.0-power") / "n1", tmp_path), jobs=1)
    assert [found.rule for found in report.violations] == [RULE]
    assert not report.hazards


def test_producers_of_a_stopped_broker_are_forgotten_with_the_last_snapshot() -> None:
    lost = LostSnapshots("a-0", RULE, 7, Where(file="a-0/00000000000000000007.log", offset=0), 100, is_forgotten=True)
    found = hazard(Path("n1"), [lost])
    assert "a batch that is sent again is written twice" in found.otherwise
    assert found.story[-1] == "Again: gapless explain n1 --trace a-0"
