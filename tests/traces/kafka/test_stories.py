"""Stories of labelled faults: the file and byte, the batch and record, and the values that decide."""

import shutil
from pathlib import Path

import pytest

from gapless import Report, check
from tests.support.kafka.damage import damaged
from tests.support.kafka.recordings import recording

LINES = 25
SEED = 6


def judged(name: str, kind: str, room: Path) -> Report:
    """Return the report on a damaged copy of a recording."""
    label = damaged(recording(name) / "n1", room / "n1", kind, SEED)
    assert label is not None
    return check(room / "n1", jobs=1)


@pytest.mark.parametrize(
    ("name", "kind", "wanted"),
    [
        ("3.5.2-txn", "drop", ["Here: first: the step says ", "; end = ", "The batch has the offset"]),
        ("3.5.2-txn", "count_wrong", ["; last = ", "; count = ", "and its head says "]),
        ("3.5.2-txn", "time_wrong", ["The greatest time is ", ", of the record at offset "]),
        ("3.5.2-txn", "unpackable", ["Its records cannot be unpacked."]),
        ("3.5.2-txn", "record_length", ["Its record 1 does not end where its length says"]),
        ("3.5.2-txn", "sequence_gap", ["Here: sequence: the step says ", " of producer ", "sequences "]),
        ("3.5.2-txn", "outside", ["Here: transaction = "]),
        ("3.5.2-txn", "index_swapped", ["Here: offset = ", ", end = "]),
        ("3.5.2-txn", "snapshot_missing", ["Here: end = ", ", saved = "]),
        ("4.4.0-append-time", "watermark_ahead", ["Here: to = ", ", end = ", "append(first="]),
        (
            "3.9.2-coordinators",
            "key_again",
            ["Here: again = ", ", start = ", ", has the same key."],
        ),
        ("3.3.2-codecs-txn", "segment_missing", ["Here: segment: the step says ", "; end = "]),
    ],
)
def test_a_story_names_the_place_and_the_values_that_decide(
    name: str, kind: str, wanted: list[str], tmp_path: Path
) -> None:
    report = judged(name, kind, tmp_path)
    assert report.verdict == "departs"
    stories = [(finding, "\n".join(finding.story)) for finding in report.violations]
    assert any(all(some in story for some in wanted) for _, story in stories), stories
    for finding, story in stories:
        assert len(finding.story) <= LINES
        assert f"departs at {finding.where.file}+{finding.where.offset}, offset " in story


def counted_events(room: Path, partition: str, rule: str) -> int:
    """Turn a bit in the last batch, and return the number of events that the story of a rule counts."""
    log = next(room.glob(f"{partition}/*.log"))
    whole = log.read_bytes()
    log.unlink()  # it may be a link to the recording
    log.write_bytes(whole[:-61] + bytes([whole[-61] ^ 1]) + whole[-60:])
    (found,) = (one for one in check(room, jobs=1).violations if one.rule == rule and one.trace == partition)
    (line,) = (line for line in found.story if " events are not the last to change" in line)
    return int(line.split()[2])


def test_a_story_behind_an_index_entry_that_departs_has_its_history(tmp_path: Path) -> None:
    """The entry is left out, and nothing of what was before it."""
    rule = "partition/batch-has-its-checksum"
    assert damaged(recording("3.5.2-txn") / "n1", tmp_path / "n1", "index_position", SEED)
    (entry,) = check(tmp_path / "n1", jobs=1).violations
    shutil.copytree(recording("3.5.2-txn") / "n1", tmp_path / "whole")
    expected = counted_events(tmp_path / "whole", entry.trace, rule)
    assert counted_events(tmp_path / "n1", entry.trace, rule) == expected - 1
