"""Folders of partitions, as Hive and Spark write them: their files are inputs, and nothing else is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gapless import check
from gapless.traces.inputs import named
from tests.support.event_files import QUEUE, mixed_traces, write

FILES = (
    "city=Zürich/part-0.ndjson",
    "date=2026-11-27/hour=03/part-00000-5f.snappy.parquet",
    "date=2026-11-27/hour=03/part-00001-5f.ndjson.gz",
    "date=2026-11-27/hour=12/part-00000.ndjson.zst",
    "date=2026-11-28/hour=__HIVE_DEFAULT_PARTITION__/a.jsonl",
    "e.ndjson",
    "_day=1/part.ndjson",
)
HIDDEN = (
    "_SUCCESS",
    "date=2026-11-27/_SUCCESS",
    "date=2026-11-27/hour=03/.part-00000-5f.snappy.parquet.crc",
    "date=2026-11-27/hour=03/_temporary/0/part.ndjson",
    "_temporary/0/date=1/part.ndjson",
    "_metadata",
    ".date=2026-11-26/part.ndjson",
    "date=2026-11-27/.part-9.ndjson",
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    folder = tmp_path / "table"
    for name in (*FILES, *HIDDEN):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name in FILES:
            write(path, QUEUE)
        else:
            path.write_bytes(b"\0")
    return folder


def names(path: Path) -> list[str]:
    return [str(one.path).rpartition("table/")[2] for one in named(path)]


def test_files_of_all_partitions_are_read_in_the_order_of_their_names(table: Path) -> None:
    assert names(table) == sorted(FILES)
    report = check(table)
    assert (report.verdict, report.counts.traces) == ("conforms", len(FILES))
    assert [source.path for source in report.sources] == [str(table / name) for name in sorted(FILES)]
    assert not [note for source in report.sources for note in source.notes if "left out" in note]


def test_a_partition_is_named_alone_or_by_a_pattern(table: Path) -> None:
    day = sorted(name for name in FILES if name.startswith("date=2026-11-27/"))
    assert names(table / "date=2026-11-27") == day
    assert names(table / "date=*-27") == day
    assert names(table / "date=*" / "hour=03") == day[:2]
    assert names(table / "date=*") == sorted(name for name in FILES if name.startswith("date="))


def test_one_file_in_a_partition_that_departs_is_named(table: Path) -> None:
    write(table / "date=2026-11-27/hour=12/part-00000.ndjson.zst", mixed_traces([1], mingled=1))
    report = check(table)
    assert report.verdict == "departs"
    assert [finding.source for finding in report.findings] == [
        str(table / "date=2026-11-27/hour=12/part-00000.ndjson.zst")
    ]


def test_what_is_no_events_is_left_out_with_a_note(table: Path) -> None:
    (table / "date=2026-11-28" / "readme.md").write_text("nothing to judge")
    notes = [note for source in check(table).sources for note in source.notes]
    assert "1 file of the folder left out, by its name no events: date=2026-11-28/readme.md" in notes


def test_a_folder_that_is_no_partition_is_not_passed_over(table: Path) -> None:
    (table / "date=2026-11-28" / "more").mkdir()
    (source,) = check(table).sources
    assert source.verdict == "unreadable"
    assert source.reasons[0].endswith(
        "; files of events are read of a folder in which all others are partitions, such as date=2026-11-27, unlike "
        "date=2026-11-28/more: name them, or a pattern"
    )


def test_links_are_followed_once(table: Path) -> None:
    """A link to a folder above is no end without an end, and one to a partition is no second recording."""
    (table / "date=2026-11-27" / "again=1").symlink_to(table)
    (table / "city=2026").symlink_to(table / "date=2026-11-28")
    elsewhere = table.parent / "elsewhere" / "x=1"
    elsewhere.mkdir(parents=True)
    write(elsewhere / "far.ndjson", QUEUE)
    (elsewhere / "back=1").symlink_to(elsewhere.parent)
    (table / "far=1").symlink_to(elsewhere.parent)
    assert names(table) == sorted([*FILES, "far=1/x=1/far.ndjson"])
    (note,) = {note for source in check(table).sources for note in source.notes if "link" in note}
    assert note == (
        "3 links left out, which lead to a folder that is read already: city=2026, date=2026-11-27/again=1, "
        "far=1/x=1/back=1"
    )


def test_a_link_that_leads_nowhere_is_named(table: Path) -> None:
    (table / "date=2026-11-30").symlink_to(table / "gone")
    (source,) = check(table).sources
    assert source.reasons[0].endswith("unlike date=2026-11-30: name them, or a pattern")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_partition_that_may_not_be_read_is_named(table: Path) -> None:
    (table / "date=2026-11-28").chmod(0)
    (source,) = check(table).sources
    assert source.verdict == "unreadable"
    assert "date=2026-11-28: Permission denied" in source.reasons[0]


def test_partitions_without_files_are_nothing_to_judge(tmp_path: Path) -> None:
    (tmp_path / "date=2026-11-28" / "hour=03").mkdir(parents=True)
    (tmp_path / "_SUCCESS").touch()
    (source,) = check(tmp_path).sources
    assert (source.verdict, source.reasons) == ("inconclusive", ["there is no file in it: nothing was checked"])
