"""Recordings, damaged at random: each is judged as a walk through the spec, step by step, says it must be.

Both say the same of the file, and of each trace that departs the line at which it does.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from gapless import check
from gapless.spec.catalog import PROFILES
from tests.support.trace_mutants import Lines, WalkResult, differ, judged, recordings, walk, written

MUTANTS = int(os.environ.get("GAPLESS_FUZZ", "150"))
PARTS = 5  # tests, so that a night's mutants are spread


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[Lines]:
    return recordings(tmp_path_factory.mktemp("recorded"))


def test_the_recordings_conform(whole: list[Lines], tmp_path: Path) -> None:
    for lines in whole:
        profile = json.loads(lines[0])["profile"]
        assert profile in PROFILES
        assert walk(lines, profile).verdict == "conforms"
        assert check(written(tmp_path / "events.ndjson", lines)).verdict == "conforms"


@pytest.mark.parametrize("part", range(PARTS))
def test_mutants_are_judged_as_a_walk_judges_them(whole: list[Lines], tmp_path: Path, part: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(part, MUTANTS, PARTS):
        found = judged(whole, seed, tmp_path)
        assert not found.wrong, (seed, found)
        seen[found.walked] += 1
    assert {"conforms", "departs", "unreadable"} <= seen.keys(), "mutants of every kind were tried"


def test_a_verdict_or_a_place_that_is_another_is_reported(whole: list[Lines], tmp_path: Path) -> None:
    lines = [line for line in whole[0] if '"action":"index"' not in line or '"number":1,' not in line]
    assert lines != whole[0]
    report = check(written(tmp_path / "events.ndjson", lines))
    walked = walk(lines, json.loads(lines[0])["profile"])
    assert (walked.verdict, differ(report, walked)) == ("departs", None)
    assert differ(report, WalkResult()) == "the report says departs, the walk conforms"
    moved = WalkResult(departs={key: at + 1 for key, at in walked.departs.items()})
    assert "the walk" in str(differ(report, moved))
