"""Data directories whose index of aborted transactions was lost, of real brokers."""

import json
import tarfile
from pathlib import Path

import pytest

from gapless import check
from tests.support.kafka.recordings import ARCHIVES

MISSING = "aborted_index/every-abort-is-in-the-index"
SHORT = 25  # lines of a story


@pytest.mark.parametrize("name", ["3.5.2-lostindex", "4.4.0-lostindex"])
def test_a_lost_index_is_reported_before_readers_receive_aborted_records(name: str, tmp_path: Path) -> None:
    with tarfile.open(ARCHIVES / "found" / f"{name}.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
        archive.extractall(tmp_path)  # noqa: S202 - our own archives
    for directory in ("before", "n1"):
        report = check(tmp_path / name / directory, jobs=1)
        (found,) = report.violations
        assert (report.verdict, found.rule, found.trace, found.count) == ("departs", MISSING, "orders-0", 3)
        assert (found.where.file, found.where.offset) == ("orders-0/00000000000000000000.txnindex", 0)
        assert len(found.story) <= SHORT
    lines = (tmp_path / name / "client.ndjson").read_text(encoding="utf-8").splitlines()
    reads = [line["offsets"] for line in map(json.loads, lines) if line["op"] == "read"]
    assert [len(offsets) for offsets in reads] == [120, 240]  # with the index, and after the start without it
