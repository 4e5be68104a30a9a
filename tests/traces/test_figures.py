"""Every finding has a picture: small, escaped, the same each time, and in words for readers who do not see it."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from gapless import check
from gapless.spec.catalog import SPECS, Spec
from gapless.traces import report
from gapless.traces.judging.findings import pictures
from gapless.traces.judging.findings.timelines import COLUMNS, ROWS, timeline_of
from gapless.traces.replay.exact import Departure, StoryStep
from gapless.traces.replay.exact import replay as replayed
from gapless.traces.report.page.html import html
from gapless.traces.report.pictures.entries import LETTER, LogRecord, QueueEntries, QueueEntriesShapes, QueueEntry
from gapless.traces.report.pictures.figures import figure
from gapless.traces.report.pictures.kinds import SHAPES, Picture
from gapless.traces.report.pictures.swimlane import LaneStep, Swimlane
from gapless.traces.report.pictures.timeline import Timeline, TimelineCell, TimelineColumn, TimelineRow
from gapless.traces.report.values import Report
from tests.support import pulsar_recordings
from tests.support.event_files import QUEUE, append, index, opened, write
from tests.support.rocketmq import damage, transaction_damage
from tests.support.rocketmq.damage import Pick
from tests.support.rocketmq.recordings import copy_of, recording_as_left

LARGEST = 8_000  # bytes of a figure
HOSTILE = "<script>alert('x')</script>/&\"شارع🎉" + "長" * 60


def outline_of(picture: Picture) -> ET.Element:
    """The figure of a picture, after the checks that every figure must pass."""
    drawn = figure(picture, "picture-1")
    assert drawn == figure(type(picture).model_validate_json(picture.model_dump_json()), "picture-1")
    assert len(drawn.encode()) < LARGEST
    outline = ET.fromstring(drawn)  # noqa: S314 - our own figure
    assert outline.tag == "figure"
    assert outline.get("aria-label")
    assert outline.findtext("figcaption/b")
    for svg in outline.iter("svg"):
        assert svg.get("aria-hidden") or (svg.findtext("title") and svg.findtext("desc"))
    assert not list(outline.iter("script"))
    return outline


# Of every source


def faulty(name: str, store: str = "lmq", seed: str = "7") -> Callable[[Path], Report]:
    """A check of a store with one planted fault."""
    of = damage if hasattr(damage, name) else transaction_damage

    def checked(room: Path) -> Report:
        path = copy_of(store, room)
        getattr(of, name)(path, Pick("any", seed))
        return check([path])

    return checked


def recorded(room: Path) -> Report:
    """A check of events of which one was refused, one seen otherwise, and one breaks a rule."""
    wrong = [append(0, 0), index(0, 9)]
    write(room / "odd.ndjson", [opened(trace="a"), append(0, 0, trace="a", outcome="refused"), *QUEUE[:1], *wrong])
    return check([room / "odd.ndjson"])


CASES: dict[str, Callable[[Path], Report]] = {
    **{
        name: faulty(name)
        for name in (
            "entry_removed", "entry_zeroed", "entry_repeated", "entry_of_wrong_size", "entry_of_wrong_tag",
            "entry_into_the_middle", "entry_past_the_end", "entry_of_another_queue", "queue_emptied_from_here",
            "queue_file_cut_short", "number_left_out", "wrong_position", "body_flipped", "tail_lost",
        )
    },
    **{
        name: faulty(name, "immunity", "3")
        for name in ("final_of_another_body", "mark_lost", "parked_too_early", "op_names_no_half")
    },
    "events": recorded,
    "coordinator": lambda _: check([pulsar_recordings.recording("broker-restart-batch")]),
    "ghosts": lambda _: check([recording_as_left("lab/ghosts")]),
    "hazard": lambda _: check([recording_as_left("odd/ghosts_before_5.5.0")]),
    "blank slots": lambda _: check([recording_as_left("lab/blank_slots")]),
}  # fmt: skip
ENTRIES = [name for name in CASES if name.startswith("entry_") or name in ("queue_emptied_from_here", "hazard")]


@pytest.mark.parametrize("case", CASES)
def test_every_finding_has_a_picture(case: str, tmp_path: Path) -> None:
    report = CASES[case](tmp_path)
    found = [*report.violations, *report.hazards]
    for finding in found:
        assert finding.picture is not None, finding.rule
        outline_of(finding.picture)
        assert case not in ENTRIES or finding.picture.kind == "entries"
    page = html(report)
    for article in re.findall(r"<article.*?</article>", page, re.DOTALL):
        assert article.index("</h3>") < article.index("<figure") < article.index('class="versus"')
    assert len(re.findall(r"<article", page)) == len(found) > 0 or case == "blank slots"


def entries_of(case: str, room: Path) -> QueueEntries:
    picture = CASES[case](room).findings[0].picture
    assert isinstance(picture, QueueEntries)
    return picture


def test_a_wrong_entry_stands_between_its_sound_neighbours(tmp_path: Path) -> None:
    shown = entries_of("entry_into_the_middle", tmp_path)
    assert [(entry.number, entry.kind) for entry in shown.entries] == [
        (34, "sound"), (35, "sound"), (36, "wrong"), (37, "sound"), (38, "sound"),
    ]  # fmt: skip
    (message,) = [record for record in shown.records if record.wanted == 36]
    at = shown.entries[2].at
    assert at is not None
    assert message.position < at < message.position + message.size
    drawn = QueueEntriesShapes(shown, "x")
    kinds = [arrow.kind for arrow in drawn.arrows]
    assert sorted(kinds) == ["departs", "sound", "sound", "sound", "sound", "wanted"]
    assert kinds[-1] == "departs", "it is drawn over the others"


@pytest.mark.parametrize(
    ("case", "kind", "note"),
    [
        ("entry_zeroed", "missing", "an empty slot"),
        ("entry_repeated", "wrong", "repeats entry 36"),
        ("entry_of_wrong_size", "wrong", "size 550"),
        ("entry_of_another_queue", "wrong", "wrong position"),
        ("hazard", "old", "old bytes"),
    ],
)
def test_a_broken_entry_says_what_is_wrong_with_it(case: str, kind: str, note: str, tmp_path: Path) -> None:
    shown = entries_of(case, tmp_path)
    broken = next(entry for entry in shown.entries if entry.kind not in ("sound", "later", "empty"))
    assert broken.kind == kind
    assert note in broken.notes
    if case == "entry_of_another_queue":
        assert any(record.queue == "payments/2" for record in shown.records)


# Of every spec


def departures(spec: Spec) -> Iterator[Departure]:
    """A departure of each step that can be refused in the initial state, or after the first step."""
    first = next(iter(spec.actions))
    for begun, (action, names) in product(([], [(first, (0,) * len(spec.parameters[first]))]), spec.parameters.items()):
        for value in (0, -1, 7):
            events = [*begun, (action, (value,) * len(names))]
            outcome = replayed(spec, spec.initial, events, profile="strict")
            if outcome.departure:
                yield outcome.departure
                break


@pytest.mark.parametrize("name", SPECS)
def test_every_spec_has_a_timeline(name: str) -> None:
    found = list(departures(SPECS[name]))
    for departure in found:
        shown = timeline_of(departure)
        outline = outline_of(shown)
        last = shown.rows[-1]
        assert "departs" in figure(shown, "x")
        assert any(cell.wrong for cell in last.cells) or not shown.columns
        assert last.call in (outline.findtext(".//caption") or "")
    assert found


def of_retries(events: list[tuple[str, tuple[int, ...]]]) -> Timeline:
    """The timeline of a queue whose last event departs."""
    departure = replayed("queue", SPECS["queue"].initial, events, profile="strict").departure
    assert departure is not None
    return timeline_of(departure)


def test_a_timeline_shows_the_values_that_the_rule_reads_and_marks_the_one_at_fault() -> None:
    shown = of_retries([("open", (0, 0)), ("append", (0, 1, 5, 340, 0)), ("index", (0, 9, 340, 0))])
    assert [(column.name, column.kind) for column in shown.columns] == [
        ("position", "argument"), ("positions[0]", "state"),
    ]  # fmt: skip
    append_row, index_row = shown.rows
    assert [(cell.before, cell.value) for cell in append_row.cells] == [(None, None), (0, 5)]
    assert [(cell.value, cell.wrong) for cell in index_row.cells] == [(9, True), (5, False)]
    assert (shown.before, append_row.number, index_row.number) == (2, 2, 3)
    page = figure(shown, "x")
    assert "2 events fine, then this one" in page
    assert "1 of them shown; 1 left out" in page


def test_a_counterexample_is_at_fault_rather_than_how_far_a_rule_looks() -> None:
    events = [("open", (0, 0)), ("half", (0,)), ("advance", (1,))]
    departure = replayed("checkpoint", SPECS["checkpoint"].initial, events, profile="strict").departure
    assert departure is not None
    shown = timeline_of(departure)
    wrong = [c.name for c, cell in zip(shown.columns, shown.rows[-1].cells, strict=True) if cell.wrong]
    assert wrong == ["how[0]"]


def test_a_step_that_is_allowed_and_refused_has_no_value_at_fault(tmp_path: Path) -> None:
    path = tmp_path / "refused.ndjson"
    write(path, [opened(), append(0, 0, outcome="refused")])
    (finding,) = check([path]).violations
    assert isinstance(finding.picture, Timeline)
    assert not any(cell.wrong for cell in finding.picture.rows[-1].cells)
    assert finding.picture.rows[-1].fate


def test_events_that_break_a_rule_before_are_no_fine_ones() -> None:
    shown = Timeline(columns=[], rows=[TimelineRow(number=9, call="load()", cells=[])], before=8, broken=2)
    page = figure(shown, "x")
    assert "8 events, 2 of which break a rule, then this one" in page
    assert "they change no value that the rule reads" in page
    assert "fine" not in page


# For any text and number


NUMBERS = st.integers(0, 2**63 - 1)
NAMES = st.text(st.characters(exclude_categories=["C"]), max_size=40) | st.just(HOSTILE)


@given(
    st.lists(st.builds(QueueEntry, number=NUMBERS, kind=st.sampled_from(["sound", "wrong", "missing", "old", "later"]),
             at=st.none() | NUMBERS, notes=st.lists(NAMES, max_size=2)), min_size=1, max_size=7),
    st.lists(st.builds(LogRecord, position=NUMBERS, size=st.integers(0, 2**31), label=NAMES, queue=NAMES,
             wanted=st.none() | NUMBERS), max_size=7),
    NAMES,
)  # fmt: skip
def test_entries_stay_in_their_frame(entries: list[QueueEntry], records: list[LogRecord], title: str) -> None:
    picture = QueueEntries(title=title or "x", entries=entries, records=records, end=1 << 40)
    drawn = QueueEntriesShapes(picture, "x")
    for box in (*drawn.entries, *drawn.records):
        assert 0 <= box.x
        assert box.x + box.width <= drawn.width
        assert all(cell_len(line) * LETTER <= box.width for line in box.lines)
        assert len(box.lines) * drawn.line + 4 <= drawn.tall
    assert all(0 <= place <= drawn.width for arrow in drawn.arrows for place in (arrow.x, arrow.to))
    drawn_as = ET.fromstring(figure(picture, "x"))  # noqa: S314 - our own figure
    assert not list(drawn_as.iter("script"))


@pytest.mark.parametrize(
    "picture",
    [
        QueueEntries(
            title=HOSTILE, entries=[QueueEntry(number=0, kind="wrong", at=9, notes=[HOSTILE])], end=99,
            records=[LogRecord(position=0, size=9, label=HOSTILE, queue=HOSTILE, wanted=0)],
        ),
        Swimlane(
            axis=HOSTILE, lanes=[HOSTILE],
            steps=[LaneStep(lane=HOSTILE, at=1, call=HOSTILE, becomes=HOSTILE, state=HOSTILE, departs=True)],
        ),
        Timeline(
            columns=[TimelineColumn(name=HOSTILE, kind="state")], before=1,
            rows=[TimelineRow(number=2, call=HOSTILE, fate=HOSTILE, cells=[TimelineCell(value=HOSTILE, wrong=True)])],
        ),
    ],
    ids=lambda picture: picture.kind,
)  # fmt: skip
def test_names_are_shown_and_never_obeyed(picture: Picture) -> None:
    outline_of(picture)


def test_each_kind_has_its_template() -> None:
    folder = Path(report.__file__).parent / "templates"
    assert {f"picture_{kind}.html.j2" for kind in SHAPES} == {path.name for path in folder.glob("picture_*")}


def test_a_life_whose_beginning_is_left_out_has_the_state_that_its_first_change_began_in() -> None:
    (departure, *_) = departures(SPECS["coordinator"])
    args = (112,) * len(SPECS["coordinator"].parameters["finish"])
    steps = [StoryStep(n, ("add", (112,)), ()) for n in range(1, 40)]
    steps.append(StoryStep(40, ("finish", args), (), made=(("table[112]", "COMMITTING", "COMMITTED"),)))
    steps.append(StoryStep(41, ("unload", ()), (), made=(("table[112]", "COMMITTED", "ABSENT"),)))
    axis = pictures.Axis("event", lambda step: step.number)
    shown = pictures.swimlane_of(replace(departure, event=("load", (112, 1)), steps=tuple(steps)), axis)
    assert shown is not None
    states = [step.state for step in shown.steps]
    assert states == [*["COMMITTING"] * (pictures.STEPS - 3), "COMMITTED", "gone", "OPEN"]
    assert shown.left_out == 42 - pictures.STEPS
    outline_of(shown)


def test_a_timeline_of_many_steps_and_values_is_bounded() -> None:
    (departure, *_) = departures(SPECS["queue"])
    steps = tuple(StoryStep(n, ("append", (n, 1, n, 340, 0)), (("end", n, n + 1),)) for n in range(1, 500))
    many = {f"positions[{n}]": n for n in range(40)}
    shown = timeline_of(replace(departure, steps=steps, here=many, number=500))
    assert len(shown.rows) == ROWS + 1
    assert len(shown.columns) == COLUMNS
    assert shown.rows[-2].number == 499, "the last steps are nearest to the finding"
    outline_of(shown)


def test_as_many_findings_have_pictures_as_have_stories(tmp_path: Path) -> None:
    (finding,) = recorded(tmp_path).violations[:1]
    report = recorded(tmp_path)
    page = html(report.model_copy(update={"findings": [finding] * 1000}))
    assert len(page.encode()) < 1_000_000
    assert 0 < page.count("<figure") == page.count("<article") < 1000
