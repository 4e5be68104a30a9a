"""Pictures of findings: they show what was recorded, no more than a page has room for, and say it in words, too."""

import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless import check
from gapless.spec.catalog import SPECS
from gapless.traces.judging.findings import pictures
from gapless.traces.report import drawings
from gapless.traces.report.page.html import html
from gapless.traces.report.pictures.bitmap import WIDTH, Bitmap, BitmapShapes
from gapless.traces.report.pictures.swimlane import LaneStep, Swimlane, SwimlaneShapes
from gapless.traces.report.values import Report
from tests.support import pulsar_recordings
from tests.support.event_files import step, write
from tests.support.rocketmq.damage import Pick
from tests.support.rocketmq.recordings import copy_of
from tests.support.rocketmq.transaction_damage import final_of_another_body


def queue_of(folder: Path, *, given: int, written: Sequence[int], then: tuple[str, int], visible: int = 0) -> Report:
    """A queue of so many numbers: some are written, some visible, and `then` comes what departs."""

    def of(action: str, *args: int) -> Any:
        return step(action, *args, spec="dispatch", trace="orders/1")

    events = [of("open", 0, 1), *(of("scan", number) for number in range(given))]
    for number in written:
        events += [of("take", number), of("write", number)]
    events += [of("commit", visible)] if visible else []
    events += [of(*then)]
    path = folder / "queue.ndjson"
    write(path, events)
    return check([path])


def bitmap(report: Report) -> Bitmap:
    (finding,) = report.violations
    assert isinstance(finding.picture, Bitmap)
    return finding.picture


def swimlane(report: Report) -> Swimlane:
    (finding,) = report.violations
    assert isinstance(finding.picture, Swimlane)
    return finding.picture


# The bitmap of a queue


def test_a_bitmap_marks_the_gap_that_the_commit_position_would_pass(tmp_path: Path) -> None:
    report = queue_of(tmp_path, given=7, written=[0, 1, 2, 4, 5], then=("commit", 6), visible=3)
    shown = bitmap(report)
    assert shown.cells == "wwwgwwg."
    assert (shown.first, shown.gap, shown.asked) == (0, 3, None)
    assert shown.marks == {"flushed": 0, "committed": 3, "scanned": 7, "commit to": 6}
    page = html(report)
    assert page.count('class="cell gap"') == 2, "in the picture and in its legend"
    assert "<title>3: the gap: given, and not taken</title>" in page
    assert "committed up to 3" in page
    assert "the gap is at 3" in page


def test_a_bitmap_without_a_gap_has_none(tmp_path: Path) -> None:
    shown = bitmap(queue_of(tmp_path, given=3, written=[0, 1], then=("write", 2)))
    assert (shown.cells, shown.gap, shown.asked) == ("wwg.", None, 2)


def test_a_bitmap_of_a_long_queue_shows_what_is_near(tmp_path: Path) -> None:
    written = [number for number in range(200) if number != 150]
    shown = bitmap(queue_of(tmp_path, given=200, written=written, then=("commit", 200), visible=150))
    assert len(shown.cells) <= pictures.CELLS + 1
    assert shown.first == 150 - pictures.BEFORE
    assert shown.cells[shown.gap - shown.first] == "g" if shown.gap else False


def test_a_number_far_behind_what_is_visible_is_on_the_picture(tmp_path: Path) -> None:
    shown = bitmap(queue_of(tmp_path, given=100, written=range(100), then=("take", 100), visible=0))
    assert (shown.first, shown.asked, shown.gap) == (100 - pictures.BEFORE, 100, None)
    assert shown.cells == "w" * pictures.BEFORE + ".."


@given(
    st.integers(0, 1 << 60),
    st.text("wtg.", min_size=1, max_size=pictures.CELLS + 1),
    st.dictionaries(st.text(max_size=9), st.integers(0, 1 << 60), max_size=4),
    st.none() | st.integers(0, 1 << 60),
    st.none() | st.integers(0, 1 << 60),
)
def test_whatever_a_bitmap_holds_it_stays_in_its_frame(
    first: int, cells: str, marks: dict[str, int], gap: int | None, asked: int | None
) -> None:
    drawn = BitmapShapes(Bitmap(first=first, cells=cells, marks=marks, gap=gap, asked=asked), "x")
    assert all(0 <= cell.x and cell.x + drawn.width <= WIDTH + 0.1 for cell in drawn.cells)
    for flag in (*drawn.flags, *drawn.below):
        assert 0 <= flag.x <= WIDTH
        assert 0 < flag.y < drawn.height


# The life of a transaction


def test_a_swimlane_shows_the_whole_life_of_a_transaction(tmp_path: Path) -> None:
    store = copy_of("immunity", tmp_path)
    planted = final_of_another_body(store, Pick("any", "3"))
    report = check([store])
    shown = swimlane(report)
    assert [(step.lane, step.call.partition("(")[0]) for step in shown.steps] == [
        ("half", "open"), ("half", "prepare"), ("final", "commit"), ("op", "mark"), ("versions", "check"),
        ("final", "commit"),
    ]  # fmt: skip
    assert [step.departs for step in shown.steps] == [False] * 5 + [True]
    assert shown.lanes == ["half", "versions", "final", "op"]
    assert shown.axis == "byte of the log"
    assert shown.steps[-1].at == planted.places[0].offset
    assert [step.at for step in shown.steps] == sorted(step.at for step in shown.steps)
    assert [step.state for step in shown.steps] == [
        "not there", "PREPARED", "COMMITTED", "COMMITTED", "COMMITTED", "",
    ]  # fmt: skip
    page = html(report)
    assert "6 steps, the last of which departs" in page
    assert re.findall(r'<li class="([a-z-]+)" title', page) == ["gone", "begun", *["committed"] * 3, "departs"]
    assert f"byte {planted.places[0].offset:,}</small>" in page


def test_a_swimlane_of_a_recorded_coordinator_counts_lines() -> None:
    report = check([pulsar_recordings.recording("broker-restart-batch")])
    shown = report.violations[0].picture
    assert isinstance(shown, Swimlane)
    assert shown.axis == "line of trace.ndjson"
    assert [step.at for step in shown.steps] == [4428, 4429, 4493, 4563, 4633, 4648, 8910, 8910]
    assert [step.lane for step in shown.steps][-3:] == ["answers", "coordinator", "coordinator"]
    assert [step.state for step in shown.steps] == [
        "OPEN", "OPEN", "OPEN", "COMMITTING", "COMMITTED", "COMMITTED", "gone", "OPEN",
    ]  # fmt: skip
    (row,) = report.coordinators
    assert row.loaded == [(8, 0, 0), (8910, 30, 12), (9318, 17, 13)], "the README tells of 12 of 30"
    assert row.limits[0][1] == 40
    assert len(row.active) <= 160
    assert max(back for _, _, back in row.active) == 13
    page = html(report)
    assert "30 active, 12 of them had ended before" in page
    assert 'class="odd"' in page


def test_no_transaction_came_back_that_had_not_ended() -> None:
    (row,) = check([pulsar_recordings.recording("broker-limit")]).coordinators
    assert all(back == 0 for _, _, back in row.active)
    assert max(active for _, active, _ in row.active) == row.most_active == 20
    assert {limit for _, limit in row.limits} == {5}


@pytest.mark.parametrize("spec", pictures.LANES)
def test_every_step_of_a_spec_with_lanes_has_one(spec: str) -> None:
    lanes = [action for actions in pictures.LANES[spec].values() for action in actions]
    assert sorted(lanes) == sorted(action for action in SPECS[spec].actions if action != "end")


STEPS = st.builds(
    LaneStep,
    lane=st.sampled_from(["half", "final", "a lane with a long name"]),
    at=st.integers(0, 1 << 62),
    call=st.text(max_size=40),
    becomes=st.text(max_size=40),
    state=st.sampled_from(["", "gone", "OPEN", "a state of a user's", "<b>"]),
)


@given(st.lists(STEPS, min_size=2, max_size=pictures.STEPS))
def test_every_step_of_a_life_has_a_box_with_its_number_and_a_colour(steps: list[LaneStep]) -> None:
    lanes = ["half", "final", "a lane with a long name"]
    boxes = SwimlaneShapes(Swimlane(axis="line", lanes=lanes, steps=steps), "x").boxes
    assert [box.step for box in boxes] == steps
    assert [box.number for box in boxes] == [*range(1, len(steps) + 1)]
    assert all(box.tone and (box.state or box.step.departs) for box in boxes)


# How many were active


POINT = st.tuples(st.integers(0, 1 << 40), st.integers(0, 1 << 40), st.integers(0, 99))
POINTS = st.lists(POINT.map(lambda point: (*point[:2], min(point[1:]))), min_size=2)  # some of all that are active


@given(POINTS, st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(-1, 1 << 40)), max_size=9))
def test_whatever_was_active_the_curve_stays_in_its_frame(
    points: list[tuple[int, int, int]], limits: list[tuple[int, int]]
) -> None:
    marks = [(at, "loaded") for at, _ in limits]
    curve = drawings.Curve("a", "A", "line", "active", "odd", sorted(points), sorted(limits), sorted(marks))
    for path in (curve.whole, curve.odd_area, curve.limit):
        xs = [float(x) for x in re.findall(r"[MH](-?[\d.]+)", path)]
        ys = [float(y) for y in re.findall(r"V(-?[\d.]+)", path)]
        assert all(curve.left <= x <= drawings.RIGHT for x in xs)
        assert all(curve.top <= y <= curve.bottom for y in ys)
    ticks = [x for x, _, _ in curve.ticks]
    assert all(after - before >= drawings.TICK for before, after in itertools.pairwise(ticks))
    assert curve.description
