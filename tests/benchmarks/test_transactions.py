"""The costs of transactions in docs/figures.md are the measured ones."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from benchmarks import transactions
from tests.house.project import ROOT

PAGE = (ROOT / "docs/figures.md").read_text()


@pytest.mark.parametrize("rate", [1, 30, 10_000])
def test_ops_are_as_the_page_says(rate: int) -> None:
    found = transactions.batching(rate)
    assert transactions.batching_row(found) in PAGE.splitlines()
    assert rate < 100 or found.halves_per_op >= 100


def test_hits_are_as_the_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "CAPACITY", 200)
    for times in (1, 2):
        shown = next(line for line in PAGE.splitlines() if line.startswith(f"| {times} × |"))
        any_order, eldest = (int(cell.strip(" %")) for cell in shown.split("|")[2:4])
        assert transactions.hit_rate(times, "eldest") == eldest / 100
        assert abs(transactions.hit_rate(times, "any") - any_order / 100) < 0.1


def test_a_message_is_visible_after_its_commit(tmp_path: Path) -> None:
    assert len(transactions.visible(0, tmp_path, 3)) == 3


def test_the_picture_has_a_point_for_every_rate() -> None:
    found = [transactions.BatchCost(rate, rate, 1, 160, 2, 3) for rate in transactions.RATES]
    for text in (transactions.plot(found), (ROOT / "docs" / "transactions.svg").read_text()):
        points = ET.fromstring(text).findall(".//{*}circle")  # noqa: S314 - it is our own
        assert len(points) == 3 * len(transactions.RATES)
