"""The page of how checks scale has the form that the command writes."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from benchmarks import __main__ as bench
from benchmarks import dispatched, performance
from benchmarks.bigstore import Extent
from benchmarks.performance import Figures, Line
from tests.house.project import ROOT

PAGE = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
CELLS = (r"\S.*", r"[\d,]+", r"[\d,]+\.\d\d", r"\d+%", r"\d+\.\d\d", r"[\d,]+", r"\S.*")


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Line]:
    """All rows of the command, measured on files that are never made."""
    made = tmp_path / "made"
    made.write_bytes(bytes(10))
    for name in ("_made", "_made_traces"):
        monkeypatch.setattr(bench, name, lambda *_: made)
    monkeypatch.setattr(performance, "extent", lambda _: Extent(performance.RECORDS, 10))
    monkeypatch.setattr(performance, "_dispatched", lambda *_: made)
    (tmp_path / f"traces-{performance.SPLIT}.ndjson").write_bytes(bytes(1000))
    return list(performance._lines(tmp_path, greatest=True))


def rows(text: str) -> list[list[str]]:
    """The cells of the table."""
    inside = text.partition(performance.BEGIN)[2].partition(performance.END)[0]
    found = [line.strip("| ").split(" | ") for line in inside.splitlines() if line.startswith("| ")]
    return found[1:]


@pytest.mark.skipif(dispatched.THERE != dispatched.PEERS, reason="not all peers are here")
def test_the_page_has_a_row_for_all_that_is_measured(lines: list[Line]) -> None:
    assert [row[:2] for row in rows(PAGE)] == [[line.name, f"{line.count:,}"] for line in lines]
    for row in rows(PAGE):
        for cell, form in zip(row, CELLS, strict=True):
            assert re.fullmatch(form, cell), row
    assert re.search(r"^Measured on \d{4}-\d\d-\d\d, \d+ cores of .+, \d+ GiB of memory, ", PAGE, re.MULTILINE)


def test_what_is_written_has_the_same_form(lines: list[Line]) -> None:
    figures = [Figures(line, (0.5, 0.4, 0.75), 300 << 20) for line in lines]
    text = performance.section(figures, performance.machine(3))
    assert [row[1:4] for row in rows(text)] == [[f"{line.count:,}", "0.50", "70%"] for line in lines]
    assert {performance.BEGIN, performance.END} <= set(PAGE.splitlines())
    assert text.splitlines()[4] in PAGE.splitlines(), "the head of the table"


def test_the_picture_has_a_point_for_every_row_but_those_of_others(lines: list[Line]) -> None:
    figures = [Figures(line, (0.5,), 0) for line in lines]
    shown = [line for line in lines if line.series != performance.OTHERS]
    for text in (performance.plot(figures), (ROOT / "docs/performance.svg").read_text(encoding="utf-8")):
        assert len(ET.fromstring(text).findall(".//{*}circle")) == len(shown)  # noqa: S314 - it is our own
