"""Stores of other layouts that rows of the table check conform, and what is theirs is judged."""

from pathlib import Path

import pytest

from benchmarks.bigstore import Shape
from benchmarks.layouts import LAYOUTS
from gapless import check

STEPS = {  # a step that only such a store takes, and how often it is taken for each record
    "index": ("hash_index.look_up", 1),
    "dledger": ("dledger_index.find_unit", 1),
    "tiered": ("tiered.find_entry", 1),
    "timers": ("timer.schedule", 0.5),
    "compacted": ("compaction.find_entry", 1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_store_of_each_layout_conforms(layout: str, tmp_path: Path) -> None:
    LAYOUTS[layout](tmp_path / "store", Shape(600, file_size=1 << 20))
    report = check([tmp_path / "store"], jobs=1)
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    step, times = STEPS[layout]
    assert report.coverage[step] == 600 * times
