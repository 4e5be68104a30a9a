"""Rows of a table have the verdicts that a check of files has, for any cut into batches."""

from __future__ import annotations

import itertools
import pickle
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.spec.catalog import SPECS
from gapless.traces.judging.streaming import sorted_traces
from gapless.traces.judging.streaming.sorted_traces import SortedTraces, TraceQuestion
from gapless.traces.judging.streaming.streamed_traces import StreamedTraces
from gapless.traces.options import Options
from gapless.traces.problems import EngineFailure
from tests.support.event_rows import Row, by_trace, columns, judged_as_files, traces

FEWER = settings(max_examples=settings().max_examples // 2)
PROFILES = st.sampled_from(["strict", "rocketmq"])


def in_order(rows: pa.Table) -> pa.Table:
    return rows.sort_by([("trace", "ascending"), ("position", "ascending")])


def judged(batches: Sequence[pa.RecordBatch], profile: str = "strict", spec: str = "queue", **how: Any) -> list[Row]:
    question = TraceQuestion(SPECS[spec], "table", Options(profile=profile, listed=True), **how)
    return [row for batch in SortedTraces(question).judged(batches) for row in batch.to_pylist()]


@FEWER
@given(made=traces(), profile=PROFILES, size=st.integers(1, 20), data=st.data())
def test_rows_have_the_verdicts_of_files(
    made: tuple[list[Row], set[str]], profile: str, size: int, data: st.DataObject
) -> None:
    rows, unreadable = made
    batches = in_order(columns(rows)).to_batches(size)
    with tempfile.TemporaryDirectory() as room, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_traces, "PIECE", data.draw(st.sampled_from([1, 7, 1 << 17])))
        patch.setattr(sorted_traces, "LONG", data.draw(st.sampled_from([1, 4, 1 << 16])))
        found = judged(batches, profile)
        assert by_trace(found) == judged_as_files(rows, unreadable, Path(room), profile)
    for row in found:
        assert (row["story"] is None) == (row["verdict"] == "conforms")


def streamed(rows: Sequence[Row], cuts: Sequence[int], profile: str) -> dict[str, Row]:
    """The last row of each trace, where each batch of a stream has the rows up to a position."""
    question = TraceQuestion(SPECS["queue"], "stream", Options(profile=profile, listed=True))
    kept, last = StreamedTraces(question), dict[str, Row]()
    for low, high in itertools.pairwise([-(10**9), *sorted(cuts), 10**9]):
        some = [row for row in rows if low <= (-5 if row["position"] is None else row["position"]) < high]
        if some:
            (batch,) = in_order(columns(some)).combine_chunks().to_batches()
            last |= {row["trace"]: row for found in kept.take(batch) for row in found.to_pylist()}
            kept = pickle.loads(pickle.dumps(kept))  # noqa: S301 - what we made a moment ago
    return last


@FEWER
@given(made=traces(), profile=PROFILES, cuts=st.lists(st.integers(-3, 30), max_size=4))
def test_a_stream_has_the_verdicts_of_files_in_the_end(
    made: tuple[list[Row], set[str]], profile: str, cuts: list[int]
) -> None:
    rows, unreadable = made
    with tempfile.TemporaryDirectory() as room:
        found = streamed(rows, cuts, profile)
        assert by_trace(list(found.values())) == judged_as_files(rows, unreadable, Path(room), profile)
    for row in found.values():
        assert (row["story"] is None) == (row["verdict"] == "conforms")


def step(at: int, action: str, trace: str = "T/1", **args: int) -> Row:
    return {"trace": trace, "position": at, "action": action, "args": args}


def message(number: int) -> Row:
    args = {"number": number, "count": 1, "position": 340 * number, "size": 340, "tag": 0}
    return {"trace": "T/1", "position": number + 1, "action": "append", "args": args}


OPENED = step(0, "open", number=0, start=0)


def test_a_trace_of_any_length_has_its_verdict_and_its_story() -> None:
    """The story of a trace that is not kept begins where its last batch does."""
    rows = [OPENED, *(message(number) for number in [*range(500), 501])]
    batches = in_order(columns(rows)).to_batches(50)
    whole, parts = judged(batches), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_traces, "PIECE", 100)
        patch.setattr(sorted_traces, "LONG", 100)
        parts = judged(batches)
    for found in (whole, parts):
        assert [(one["verdict"], one["position"], one["events"]) for one in found] == [("departs", 502, 502)]
        story = found[0]["story"]
        assert story.startswith("queue T/1 departs at position 502.\n")
        assert re.search(r"append\(number=499, .*\) at position 500 .*\n.* at position 502 +not allowed", story)
    assert "\nRows before position 500 are not kept, and none of them is shown." in parts[0]["story"]


def test_rows_that_are_not_sorted_are_no_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace that is cut in two would be accused of what it did not do."""
    table = columns([OPENED, step(0, "open", "T/2", number=0, start=0), message(0)])
    for batches in (table.to_batches(), table.to_batches(1), table.slice(0, 2).to_batches(1)[::-1]):
        for piece, long in ((1, 1), (1, 100), (100, 100)):
            monkeypatch.setattr(sorted_traces, "PIECE", piece)
            monkeypatch.setattr(sorted_traces, "LONG", long)
            with pytest.raises(EngineFailure, match="another order than by trace"):
                judged(batches)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_two_rows_of_one_position_are_noticed_where_batches_meet(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_traces, "PIECE", 1)
    monkeypatch.setattr(sorted_traces, "LONG", length)
    rows = [OPENED, message(0), message(0), message(1)]
    (found,) = judged(in_order(columns(rows)).to_batches(1))
    assert (found["verdict"], found["events"]) == ("unreadable", 4)
    assert found["story"] == "Position 1: two rows have it, so that no order is known."


def test_texts_that_are_no_text_make_their_traces_unreadable() -> None:
    """Spark's strings may have any bytes."""
    table = in_order(columns([OPENED, message(0), step(0, "open", "T/2", number=0, start=0)]))
    for name, garbled in (("action", [b"open", b"app\xff", b"open"]), ("trace", [b"T/1", b"T/1", b"T/\xff"])):
        at = table.schema.get_field_index(name)
        bad = table.set_column(at, name, pa.array(garbled, pa.binary()).view(pa.string()))
        found = {one["trace"]: (one["verdict"], one["story"]) for one in judged(bad.to_batches())}
        one, other = ("T/1", "T/2") if name == "action" else ("T/\\xff", "T/1")
        assert found[one][0] == "unreadable"
        assert "a text is not in UTF-8" in found[one][1]
        assert found[other][0] == "conforms"


def test_rows_that_arrive_late_or_twice_make_a_streamed_trace_unreadable_from_then_on() -> None:
    question = TraceQuestion(SPECS["queue"], "stream", Options(profile="strict", listed=True))
    for late in (message(1), message(0), OPENED):
        kept = StreamedTraces(question)
        verdicts = [
            (one["verdict"], one["events"], one["story"])
            for rows in ([OPENED, message(0)], [message(1), message(2)], [late], [message(3)])
            for found in kept.take(in_order(columns(rows)).combine_chunks().to_batches()[0])
            for one in found.to_pylist()
        ]
        why = f"Position {late['position']}: it arrived after rows that come behind it, or twice."
        expected = [("conforms", 2, None), ("conforms", 4, None), ("unreadable", 5, why), ("unreadable", 6, why)]
        assert verdicts == expected


def test_a_story_is_made_only_if_it_is_wanted() -> None:
    batches = in_order(columns([OPENED, message(1), step(0, "opne", "T/2")])).to_batches()
    found = {one["trace"]: one for one in judged(batches, stories=False)}
    assert (found["T/1"]["verdict"], found["T/1"]["story"]) == ("departs", None)
    assert found["T/2"]["story"].startswith("Position 0: action is 'opne', expected a step of queue")
