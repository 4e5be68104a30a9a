"""Compiled readings of random specs say what the plain functions say; readings that are wrong are found out."""

from __future__ import annotations

from typing import Any

import pytest

from gapless.native import function
from gapless.properties.fuzzing import compiled_differential
from gapless.properties.fuzzing.compiled_differential import COMPILED, DECIDED, LEFT, OBSTACLES, REFUSED, chunk
from gapless.traces.replay import loop, step_functions
from gapless.traces.replay.step_functions import StepTrees
from tests.support.night import NIGHT

COUNT = 5_000 if NIGHT else 130  # specs; two of 65 are compiled


def test_compiled_readings_agree_with_the_plain_functions_on_random_specs() -> None:
    """130 here; 100,000 in a night: `python -m gapless.properties.fuzzing`."""
    found = chunk(1, COUNT)
    assert not found.failures, found.failures
    assert found.cases == COUNT
    assert all(found.counts[what] for what in (COMPILED, DECIDED, LEFT, OBSTACLES, REFUSED))
    assert found.counts[DECIDED] + found.counts[REFUSED] > found.counts[LEFT]


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_numbers_that_leave_64_bits_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_functions, "guarded", lambda tree: tree)
    monkeypatch.setattr(compiled_differential, "NATIVE", 1 << 60)
    assert "Disagreement: Python" in chunk(130, 5).failures[0]


def test_a_map_that_is_written_into_its_own_field_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StepTrees, "obstacle", "")
    monkeypatch.setattr(compiled_differential, "NATIVE", 1 << 60)
    assert "Disagreement: Python" in chunk(110, 4).failures[0]


@function
def row_of(windows: Any, first: Any, second: Any, width: Any, column: Any) -> Any:
    """Look for the first key alone."""
    for row in range(width):
        if windows[row * loop.COLUMNS + column + 1] == first:
            return row
    return loop.chosen(first, second, width)


def test_a_table_that_knows_the_first_key_alone_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "row_of", row_of)
    monkeypatch.setattr(compiled_differential, "NATIVE", 1 << 60)
    assert "Disagreement: Python" in chunk(24, 4).failures[0]
