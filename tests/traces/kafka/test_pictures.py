"""Pictures of Kafka's logs and producers: what they show, and that they stay small, however much was written."""

import re
from functools import cache
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless import check
from gapless.spec.catalog import SPECS
from gapless.traces.judging.building import STEPS, Events
from gapless.traces.replay.exact import replay
from gapless.traces.report.page.html import html
from gapless.traces.report.page.log_map import FRAME, log_maps
from gapless.traces.report.pictures.figures import figure
from gapless.traces.report.pictures.lanes import LaneItem, StepKind, TransactionLanes, TransactionLanesShapes
from gapless.traces.report.pictures.sequences import HEIGHT, WIDTH, SequencedBatch, SequenceLine, SequenceLineShapes
from gapless.traces.report.redaction import redacted
from gapless.traces.report.values import Mark, Report
from gapless.traces.sources.kafka.joining.findings import PartitionSummary
from gapless.traces.sources.kafka.joining.sequences import BEFORE, BEHIND, sequence_line
from gapless.traces.sources.kafka.log_marks import SEGMENTS, marks
from gapless.traces.sources.kafka.transactions.lanes import LANES, LaneName, lanes_of
from tests.support.command_line import ROOT
from tests.support.kafka.damage import damaged
from tests.support.kafka.recordings import defect, recording

EXAMPLE = ROOT / "examples/kafka"
PRODUCER, STEP = SPECS["producer"], STEPS["producer"]


def line_of(report: Report) -> SequenceLine:
    (finding,) = report.violations
    assert isinstance(finding.picture, SequenceLine)
    return finding.picture


def test_a_batch_that_was_written_twice_is_red_between_those_before_and_behind() -> None:
    shown = line_of(check([EXAMPLE / "damaged"], jobs=1))
    assert [(one.kind, one.first, one.sequence) for one in shown.batches[5:9]] == [
        ("sound", 30, 20), ("sound", 34, 24), ("departs", 38, 24), ("later", 42, 32),
    ]  # fmt: skip
    assert (shown.expected, shown.left_out, shown.markers) == (28, 0, [])
    shapes = SequenceLineShapes(shown, "p")
    assert shapes.lines[-1].tone == "departs"
    assert ("departs", "not allowed: epoch 0, sequences 24 to 27, offsets 38 to 41") in shapes.legend
    assert ("expected", "sequence 28: the next one") in shapes.legend


@pytest.mark.parametrize(
    ("kind", "drawn"), [("snapshot_sequence", "snapshot"), ("sequence_gap", "append"), ("snapshot_time", None)]
)
def test_a_picture_is_drawn_where_its_rule_reads_what_it_shows(kind: str, drawn: str | None, tmp_path: Path) -> None:
    assert damaged(recording("3.5.2-txn") / "n1", tmp_path / "n1", kind, 3)
    (finding,) = check([tmp_path / "n1"], jobs=1).violations
    picture = finding.picture
    assert (picture.action if isinstance(picture, SequenceLine) else None) == drawn
    if isinstance(picture, SequenceLine):
        (refused,) = [one for one in picture.batches if one.kind == "departs"]
        assert str(refused.sequence) in str(finding.here)


def test_of_a_hundred_thousand_batches_the_nearest_are_shown() -> None:
    count = 100_000
    events = Events.room(PRODUCER, count)
    events.action[:] = PRODUCER.codes["append"]
    for name in ("sequence", "first", "last"):
        events.column(name)[:] = np.arange(count)
    bad = count - 100
    events.column("sequence")[bad] += 5
    opened = STEP.open(
        at=0, known=1, epoch=0, sequence=bad - 1, offset=-1, delta=0, time=0, coordinator=-1, transaction=-1,
        compacted=0, checked=1,
    )  # fmt: skip
    departure = replay("producer", PRODUCER.initial, [opened, events.at(bad)], profile="kafka").departure
    assert departure is not None
    shown = sequence_line(events, 0, bad, count, departure)
    assert shown is not None
    assert len(shown.batches) == BEFORE + 1 + BEHIND
    assert (shown.left_out, shown.expected) == (bad - BEFORE, bad)
    assert len(shown.model_dump_json()) < 10_000


BATCHES = st.builds(
    lambda kind, epoch, first, count, sequence: SequencedBatch(
        kind=kind, epoch=epoch, first=first, last=first + count, sequence=sequence, last_sequence=sequence + count
    ),
    st.sampled_from(["sound", "later"]),
    *(st.integers(0, most) for most in (9, 2**62, 2**31, 2**31)),
)


@given(
    st.lists(BATCHES, max_size=9), BATCHES, st.lists(st.integers(0, 2**62), max_size=3), st.none() | st.integers(0, 9)
)
def test_whatever_was_written_it_stays_in_its_frame(
    batches: list[SequencedBatch], last: SequencedBatch, markers: list[int], expected: int | None
) -> None:
    refused = last.model_copy(update={"kind": "departs"})
    picture = SequenceLine(action="append", batches=[*batches, refused], markers=markers, expected=expected)
    shapes = SequenceLineShapes(picture, "p")
    for line in shapes.lines:
        assert 0 <= min(line.x, line.to_x) <= max(line.x, line.to_x) <= WIDTH
        assert 0 <= min(line.y, line.to_y) <= max(line.y, line.to_y) <= HEIGHT
    assert all(0 <= x <= WIDTH for x, _ in shapes.markers)
    assert {tone for tone, _ in shapes.legend} >= {line.tone for line in shapes.lines}


# The log's map


def test_a_partition_has_its_segments_its_points_and_its_finding() -> None:
    report = check([EXAMPLE / "damaged"], jobs=1)
    mine = [(mark.kind, mark.low, mark.high, mark.label) for mark in report.marks if mark.log == "orders-0"]
    needs = report.violations[0].needs
    assert mine == [
        ("file", 0, 73, f"{0:020d}.log"), ("log", 0, 73, "73 records"), ("point", 0, 0, "start"),
        ("point", 73, 73, "high watermark"), ("point", 73, 73, "recovery point"), ("point", 73, 73, "stable offset"),
        ("point", 71, 71, "last index entry"), ("point", 73, 73, "end"), ("finding", 38, 38, f"orders-0/2: {needs}"),
    ]  # fmt: skip
    maps = log_maps(report, 9, {"finding-1"})
    assert maps[0].name == "orders-0", "the log with a finding comes first"
    assert [len(one.pins) for one in maps] == [1, 0, 0, 0, 0, 0]
    labels = [point.label for point in maps[0].points]
    assert labels == ["start: 0", "last index entry: 71", "high watermark, recovery point, stable offset, end: 73"]
    page = html(report)
    assert all(label in page for label in labels)


def test_a_log_that_departs_has_its_end_in_the_report_too(tmp_path: Path) -> None:
    assert damaged(EXAMPLE / "whole", tmp_path / "n1", "drop", 3)
    report = check([tmp_path / "n1"], jobs=1)
    (row,) = [row for row in report.partitions if row.verdict == "departs"]
    assert row.end == {one.partition: one.end for one in example().partitions}[row.partition]


def test_a_log_of_a_hundred_thousand_segments_has_a_small_picture() -> None:
    one = PartitionSummary("orders-0", end=10**7, records=10**7, bases=list(range(0, 10**7, 100)))
    found = marks("data", [one] * 50, [])
    assert len(found) <= 8 * (SEGMENTS + 8)
    assert {mark.high for mark in found if mark.kind == "file"} >= {10**7}


@cache
def example() -> Report:
    return check([EXAMPLE / "whole"], jobs=1)


@given(
    st.dictionaries(
        st.sampled_from(["start", "stable offset", "end", "high watermark", "recovery point"]), st.integers(0, 1000)
    )
)
def test_labels_of_points_do_not_lie_on_one_another(points: dict[str, int]) -> None:
    report = example()
    file = Mark(source=report.sources[0].path, log="orders-0", low=0, high=1000, kind="file", label="0.log")
    made = [{"kind": "point", "low": at, "high": at, "label": name} for name, at in points.items()]
    marked = report.model_copy(update={"marks": [file, *(file.model_copy(update=one) for one in made)]})
    (picture,) = log_maps(marked, 1, set())
    assert sum(label.label.count(", ") + 1 for label in picture.points) == len(points)
    lines: dict[int, float] = {}
    for label in picture.points:
        wide = 7.3 * len(label.label)
        left = label.x - wide * (label.anchor == "end")
        assert left >= lines.get(label.line, FRAME.left - 1)
        lines[label.line] = left + wide
        assert label.y <= picture.height


# A transaction over its partitions


def test_a_late_batch_is_red_in_the_lane_of_its_partition(tmp_path: Path) -> None:
    report = check([defect("3.5.2-stale", tmp_path) / "n1"], jobs=1)
    (finding,) = report.violations
    shown = finding.picture
    assert isinstance(shown, TransactionLanes)
    (late,) = [item for item in shown.items if item.fate == "departs"]
    assert (shown.lanes[late.lane], late.kind) == ("orders-0", "data")
    shapes = TransactionLanesShapes(shown, "p")
    assert [word for _, word, _ in shapes.decisions] == ["commit", "commit", "abort"]
    assert shapes.shapes[-1].tone == "departs"
    assert shapes.legend[-2][2] == "not allowed: orders-0: records at offsets 9 to 10, epoch 0"
    assert html(report).count("not allowed: orders-0: records at offsets 9 to 10") >= 3
    assert "bills" not in html(redacted(report, "a key"))


def test_of_a_long_trace_over_many_partitions_some_are_shown() -> None:
    parts = 40
    step = STEPS["kafka_transaction"]
    events = [step.write(part=part, first=7, last=7, epoch=0) for part in range(parts)]
    names = [LaneName(f"orders-{part}", is_read=True) for part in range(parts)]
    shown = lanes_of(events, parts - 1, names, left_out=10**6)
    assert len(shown.lanes) == LANES
    assert shown.lanes[-1] == "orders-39"
    assert (shown.lanes_left_out, TransactionLanesShapes(shown, "p").note) == (
        parts - LANES, f"; 1,000,000 earlier steps left out; {parts - LANES} partitions left out",
    )  # fmt: skip


ITEMS = st.builds(
    LaneItem,
    kind=st.sampled_from(get_args(StepKind)),
    fate=st.sampled_from(["sound", "later"]),
    lane=st.integers(-1, 2),
    at=st.integers(0, 20),
    says=st.text(max_size=5),
)


@given(st.lists(ITEMS, max_size=20), ITEMS, st.lists(st.text(max_size=250), min_size=3, max_size=3))
def test_whatever_a_transaction_did_it_stays_in_its_frame(
    items: list[LaneItem], last: LaneItem, names: list[str]
) -> None:
    refused = last.model_copy(update={"fate": "departs"})
    shapes = TransactionLanesShapes(TransactionLanes(lanes=names, items=[*items, refused]), "p")
    for shape in shapes.shapes:
        places = [float(number) for number in re.findall(r"[0-9.]+", shape.path)]
        assert all(0 <= place <= WIDTH for place in places)
    assert all(shapes.left <= x <= WIDTH for x, _, _ in shapes.decisions)
    assert all(0 < y < shapes.height for _, y in shapes.labels)
    assert figure(shapes.picture, "p")
