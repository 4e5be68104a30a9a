"""The columns of a table that are taken for the parts of events, without Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gapless.spec.catalog import SPECS
from gapless.traces.spark.dataframes import EventColumns

HOW = {"trace": "trace", "position": "position", "action": "action"}
CASES: list[tuple[list[str], dict[str, Any], dict[str, str]]] = [
    (["trace", "position", "action", "number"], {}, {**HOW, "args_number": "`number`"}),
    (["trace", "seq", "action", "position"], {"position": "seq"},
     {**HOW, "position": "seq", "args_position": "`position`"}),
    (["Trace", "position", "action", "Outcome", "SAW"], {}, {**HOW, "outcome": "Outcome", "saw": "SAW"}),
    (["trace", "position", "action", "num", "size"], {"args": {"number": "num"}},
     {**HOW, "args_number": "num", "args_size": "`size`"}),
    (["trace", "position", "action", "size"], {"args": {"number": "Size"}}, {**HOW, "args_number": "Size"}),
    (["trace", "position", "action", "outcome"], {"outcome": "action"}, {**HOW, "outcome": "action"}),
]  # fmt: skip


@pytest.mark.parametrize(("there", "given", "expected"), CASES)
def test_a_column_is_one_part_of_an_event(there: list[str], given: dict[str, Any], expected: dict[str, str]) -> None:
    """A column of the name is taken in any case, unless it is another part: an outcome that is passed over accuses."""
    columns = EventColumns(**{**HOW, "args": None, "outcome": None, "saw": None} | given)
    table: Any = SimpleNamespace(columns=there)
    assert columns.of(table, SPECS["queue"]) == expected
