"""Both depths of reading: heads alone, and records too; the report says which ran and what it leaves out."""

from pathlib import Path

import pytest

from gapless import Report, check
from gapless.traces.options import DEPTHS, Depth
from gapless.traces.problems import UsageError
from gapless.traces.sources.kafka import check as kafka_check
from gapless.traces.sources.kafka.summary import DEPTH_NOTES, OF_RECORDS
from tests.support.kafka.damage import damaged
from tests.support.kafka.recordings import recording

SEED = 6
NAME = "3.5.2-txn"


def unread_lines(report: Report) -> set[str]:
    """Return the rules that a report lists as not exercised because no record was read."""
    return {line.partition(":")[0] for line in report.not_exercised if "records were not read" in line}


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_whole_directory_conforms_at_both_depths(depth: Depth) -> None:
    report = check(recording(NAME) / "n1", depth=depth, jobs=1)
    assert report.verdict == "conforms"
    assert report.sources[0].notes[0] == DEPTH_NOTES[depth]
    assert unread_lines(report) == (OF_RECORDS if depth == "shallow" else set())


def test_rules_about_records_count_as_checked_only_where_they_were_read() -> None:
    shallow, deep = (check(recording("3.5.2-compact") / "n1", depth=depth, jobs=1).counts for depth in DEPTHS)
    assert shallow.rules == deep.rules - len(OF_RECORDS)
    assert shallow.events == deep.events


@pytest.mark.parametrize("kind", ["unpackable", "record_length"])
def test_a_fault_within_records_is_found_by_deep_reading_alone(kind: str, tmp_path: Path) -> None:
    assert damaged(recording(NAME) / "n1", tmp_path / "n1", kind, SEED)
    assert check(tmp_path / "n1", depth="shallow", jobs=1).verdict == "conforms"
    report = check(tmp_path / "n1", depth="deep", jobs=1)
    assert report.verdict == "departs"
    assert report.violations[0].story[-1].endswith("--depth deep")


@pytest.mark.parametrize("kind", ["record_bit", "drop", "sequence_gap", "index_position"])
def test_a_fault_outside_of_records_is_found_at_both_depths(kind: str, tmp_path: Path) -> None:
    assert damaged(recording(NAME) / "n1", tmp_path / "n1", kind, SEED)
    found = [[one.rule for one in check(tmp_path / "n1", depth=depth, jobs=1).violations] for depth in DEPTHS]
    assert found[0] == found[1] != []


def test_an_input_that_is_larger_is_read_shallowly_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_check, "DEEP", 1)
    assert check(recording(NAME) / "n1", jobs=1).sources[0].notes[0] == DEPTH_NOTES["shallow"]
    assert check(recording(NAME) / "n1", depth="deep", jobs=1).sources[0].notes[0] == DEPTH_NOTES["deep"]


def test_a_depth_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="depth: deeper, expected shallow or deep"):
        check(recording(NAME) / "n1", depth="deeper", jobs=1)  # type: ignore[arg-type]


def test_a_source_without_depths_says_that_it_reads_everything(tmp_path: Path) -> None:
    events = tmp_path / "events.ndjson"
    events.write_text(
        '{"schema":"gapless-events","version":1}\n'
        '{"source":"a","spec":"partition","trace":"a-0","position":1,"action":"raise_watermark","args":{"to":0,"undecided":-1}}\n'
    )
    assert "--depth shallow changes nothing here: all of it is read" in check(events, depth="shallow").sources[0].notes
