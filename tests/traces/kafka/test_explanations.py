"""`gapless explain` of one producer: its own story or its life, and nothing of the others."""

import re
from pathlib import Path

import pytest

from gapless import check
from tests.support.kafka.damage import damaged
from tests.support.kafka.recordings import recording

SEED = 6
NAME = "3.5.2-txn"


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which one producer leaves out sequences."""
    room: Path = tmp_path_factory.mktemp("explained") / "n1"
    assert damaged(recording(NAME) / "n1", room, "sequence_gap", SEED)
    return room


def test_the_producer_that_departs_is_explained_and_no_other(broken: Path) -> None:
    (found,) = check(broken, jobs=1).violations
    partition, _, producer = found.trace.rpartition("/")
    alone = check(broken, trace=found.trace, jobs=1)
    assert [one.trace for one in alone.violations] == [found.trace]
    assert alone.violations[0].story == found.story
    others = {one for one in range(6) if str(one) != producer}
    verdicts = {one: check(broken, trace=f"{partition}/{one}", jobs=1).verdict for one in others}
    assert "departs" not in verdicts.values()


def test_the_life_of_a_producer_has_a_line_for_each_of_its_events() -> None:
    report = check(recording(NAME) / "n1", trace="orders-0/1", jobs=1)
    assert report.verdict == "conforms"
    assert report.counts.by_spec["producer"] == len(report.life)
    assert re.fullmatch(r" +1\. open\(at=0, known=0, .*", report.life[0])
    assert sum(" mark(" in line for line in report.life) > 0
    (row,) = report.parts["partitions"]
    assert row.model_dump()["stable"] is None


def test_a_producer_that_is_not_there_is_no_pass() -> None:
    report = check(recording(NAME) / "n1", trace="orders-0/7777", jobs=1)
    assert report.verdict == "inconclusive"
    assert report.sources[0].reasons == [
        "no batch of producer orders-0/7777 in it: gapless check --verdicts DIR lists the producers"
    ]
