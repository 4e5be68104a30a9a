"""Traces from any broker, checked by the specs: good ones conform, broken ones depart with place and story.

Stories are written as calls, `append(1, 340)`, and become events one position apart.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from gapless import check
from gapless.native.objects import object_code
from gapless.spec.catalog import PROFILES, SPECS, Spec
from gapless.spec.language import ASSUMED
from gapless.traces.check import InputCheck
from gapless.traces.engines.engine import Answer, Engine, Item
from gapless.traces.engines.local import Local
from gapless.traces.events import parquet as event_parquet
from gapless.traces.events import reading, schema
from gapless.traces.inputs import Input
from gapless.traces.judging import batches
from gapless.traces.judging.columns import Traces, gathered, hashed, packed_whole, repeated
from gapless.traces.judging.judge import Judge
from gapless.traces.options import Options
from gapless.traces.problems import Unreadable
from gapless.traces.replay import kernels
from gapless.traces.replay.event_rules import OF_EVENTS, REFUSED, SEEN
from gapless.traces.replay.exact import Event as StoryStep
from gapless.traces.replay.kernels import Loop
from gapless.traces.replay.notation import TURNED_AWAY
from gapless.traces.report.outputs.verdict_table import TableRows
from gapless.traces.report.parts import Parts
from gapless.traces.report.values import SourceRow
from gapless.traces.sources.event_files import stretches
from gapless.traces.sources.event_files.file import MANY, EventFile
from gapless.traces.sources.event_files.source import SOURCE
from tests.support.event_files import (
    LOG,
    ODD,
    QUEUE,
    UnplacedEvent,
    append,
    cut,
    in_log,
    index,
    mixed_traces,
    opened,
    record,
    step,
    table_in,
    write,
)
from tests.support.night import by_day
from tests.support.walks import EVERY_PROFILE, SOME_READINGS, drawing, walk

FEWER = settings(max_examples=max(1, settings().max_examples // 5))


@dataclass(frozen=True)
class JudgedFile:
    """The results of one file: its row, with the verdict, and its part of the report."""

    source: SourceRow
    parts: Parts

    @property
    def total(self) -> int:
        """Count the breaches of a rule."""
        return self.parts.violations

    def __getattr__(self, name: str) -> Any:
        return getattr(self.parts, name)


class Apart(Local):
    """Tasks that know nothing of one another, though they run here."""

    def is_alone(self, sizes: Sequence[int]) -> bool:  # noqa: ARG002 - never
        """Pretend to be several processes."""
        return False

    def each(self, task: Callable[[Item], Answer], items: Sequence[Item], sizes: Sequence[int]) -> Iterator[Answer]:  # noqa: ARG002 - no progress
        """See `Engine`."""
        return map(task, items)


def check_events(
    path: Path,
    options: Options,
    *,
    trace: str | None = None,
    engine: Engine | None = None,
    table: TableRows | None = None,
) -> JudgedFile:
    """Check a file of events. Raises Unreadable.

    Without an engine, it is read by one process as a whole, and stretch by stretch as if by several: both must agree.
    """
    wanted = replace(options, trace=trace, listed=table is not None)
    check = InputCheck(Input(path, path, SOURCE), wanted)
    recording = EventFile(path, path, wanted, table)
    check._judge(recording, engine or Local(1))
    judged = JudgedFile(check.source, check.parts)
    if engine is None and table is None and len(recording.splits) > 1:
        assert check_events(path, options, trace=trace, engine=Apart()) == judged
    return judged


def checked(
    path: Path, events: Iterable[UnplacedEvent], profile: str = "strict", *, suffix: str = ".ndjson", **more: Any
) -> JudgedFile:
    """Write the events to a file, and check it."""
    file = path / f"events{suffix}"
    schema.write_events(file, [event(at) for at, event in enumerate(events)])
    return check_events(file, Options(profile=profile, **more))


def only_rule(judged: JudgedFile) -> str:
    """The one rule that is broken."""
    (finding,) = judged.findings
    assert judged.source.verdict == "departs"
    assert judged.total == finding.count
    return str(finding.needs)


# -- good traces ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".ndjson", ".parquet"])
@pytest.mark.parametrize("profile", PROFILES)
def test_good_traces_conform(tmp_path: Path, profile: str, suffix: str) -> None:
    judged = checked(tmp_path, [*QUEUE, *LOG], profile, suffix=suffix)
    assert judged.source.verdict == "conforms"
    assert judged.source.kind == "event-trace"
    assert judged.source.records == sum(judged.events.values()) == 15
    assert judged.traces == 2
    assert judged.coverage == {
        "queue.open": 1, "queue.append": 2, "queue.index": 2, "queue.settle": 1,
        "log.open": 1, "log.append": 3, "log.flush": 1, "log.acknowledge": 1, "log.roll": 1, "log.crash": 1,
        "log.checkpoint": 1,
    }  # fmt: skip
    assert {line.partition(":")[0] for line in judged.not_exercised} == {
        f"{spec}.{action}" for spec in ("queue", "log") for action in SPECS[spec].actions
    } - judged.coverage.keys()
    assert not judged.findings


def test_events_of_many_traces_may_be_mingled(tmp_path: Path) -> None:
    traces = [[step_(trace) for step_ in MINGLED] for trace in ("A/0", "B/0", "ä\x1b/1")]
    mingled = [event for events in zip(*traces, strict=True) for event in events]
    assert checked(tmp_path, mingled).coverage == {"queue.open": 3, "queue.append": 6, "queue.index": 6}
    broken = [*mingled, index(2, 0, trace="B/0"), index(2, 0, trace="ä\x1b/1")]
    (finding,) = checked(tmp_path, broken).findings
    assert (finding.trace, finding.count, finding.traces) == ("B/0", 2, ["B/0", "ä\\x1b/1"])
    assert finding.where.offset == 2 + len(mingled)


MINGLED: list[Callable[[str], UnplacedEvent]] = [
    lambda trace: opened(trace=trace),
    lambda trace: append(0, 0, trace=trace),
    lambda trace: append(1, 340, trace=trace),
    lambda trace: index(0, 0, trace=trace),
    lambda trace: index(1, 340, trace=trace),
]


def test_a_trace_may_begin_in_mid_life(tmp_path: Path) -> None:
    piece = [opened(1000, 4096), append(1000, 5000), index(1000, 5000), step("outlive", 999, 4000)]
    assert checked(tmp_path, piece).source.verdict == "conforms"


def test_a_folder_of_files_is_judged_file_by_file(tmp_path: Path) -> None:
    """And so are those that fit a pattern; what is hidden is not looked at, and a folder of other things is none."""
    names = ("a.ndjson", "b.ndjson.gz", "c.parquet", ".hidden.ndjson", "_SUCCESS.ndjson", "readme.md")
    for name in names:
        if name.endswith("md"):
            (tmp_path / name).write_text("nothing to judge")
        else:
            schema.write_events(tmp_path / name, [event(at) for at, event in enumerate(QUEUE)])
    whole = check([tmp_path])
    assert [Path(source.path).name for source in whole.sources] == list(names[:3])
    assert (whole.verdict, whole.counts.traces) == ("conforms", 3)
    notes = [note for source in whole.sources for note in source.notes]
    assert "1 file of the folder left out, by its name no events: readme.md" in notes
    assert [Path(source.path).name for source in check([tmp_path / "[a-z]*.ndjson*"]).sources] == list(names[:2])
    assert check([tmp_path / "*.json"]).verdict == "unreadable"
    (tmp_path / "folder").mkdir()
    (source,) = check([tmp_path]).sources
    assert source.reasons[0].startswith("not a RocketMQ store")
    assert source.reasons[0].endswith("such as date=2026-11-27, unlike folder: name them, or a pattern")


# -- broken traces -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "rule", "row"),
    [
        ([*QUEUE[:4], index(1, 680)], "the entry points at its message", 4),
        ([*QUEUE[:3], index(1, 340)], "no entry before it is missing", 3),
        ([*QUEUE[:5], index(1, 340)], "no entry before it is missing", 5),
        ([*QUEUE[:2], append(2, 680)], "the numbers of a queue follow one another", 2),
        ([*QUEUE[:4], step("settle", 680)], "every message has its entry", 4),
        ([opened(3, 0)], "a log that begins at 0 holds its queues from number 0", 0),
        ([*LOG[:2], record(200)], "the record begins where the last one ends", 2),
        ([*LOG[:4], in_log("crash", 100)], "what was flushed survives", 4),
        ([*LOG[:3], in_log("acknowledge", 100)], "the bytes are on disk", 3),
        ([*LOG, in_log("checkpoint", 10)], "what was flushed is still in the log", 9),
        ([*LOG[:2], record(2**63 - 1)], "the record begins where the last one ends", 2),
    ],
)
@pytest.mark.parametrize("suffix", [".ndjson", ".parquet"])
def test_broken_traces_depart_with_place_and_story(
    tmp_path: Path, events: list[UnplacedEvent], rule: str, row: int, suffix: str
) -> None:
    judged = checked(tmp_path, events, suffix=suffix)
    assert only_rule(judged) == rule
    (finding,) = judged.findings
    line = "line" if suffix == ".ndjson" else "row"
    number = row + 2 if suffix == ".ndjson" else row
    assert (finding.where.file, finding.where.offset, finding.position) == (f"events{suffix}", number, row)
    assert SPECS[finding.spec].rules[finding.rule].because == rule
    assert finding.story[0].endswith(f"departs at events{suffix}, {line} {number}.")
    again = f"gapless explain {tmp_path}/events{suffix} --trace {finding.trace}"
    assert finding.story[-1] == f"Again: {again}"
    assert len(finding.story) <= 25


def test_a_file_is_reported_alike_whether_kernels_are_compiled_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "events.ndjson"
    schema.write_events(path, [event(at) for at, event in enumerate(mixed_traces([*range(len(ODD))] * 2, mingled=3))])
    reports = {}
    for few in (0, 1 << 60):
        with monkeypatch.context() as patch:
            patch.setattr(Loop, "few", few)
            if few:
                patch.setattr(object_code, "files", frozenset)
            kernels._kernel.cache_clear()
            reports[few] = check([path]).model_dump(exclude={"seconds"})
            used = kernels.kernel("queue").loop
            assert isinstance(used, Loop)
            assert (used._native is None) == (few > 0)
    kernels._kernel.cache_clear()
    assert reports[0] == reports[1 << 60]
    assert reports[0]["findings"]


def test_the_story_of_a_broken_trace(tmp_path: Path) -> None:
    (finding,) = checked(tmp_path, [*QUEUE[:4], index(1, 680)]).findings
    assert "\n".join(finding.story) == (
        "queue TopicTest/3 departs at events.ndjson, line 6.\n"
        "\n"
        "  1. append(number=1, count=1, position=340, size=340, tag=0)   "
        "end 1 → 2, positions[1] 0 → 340, sizes[1] 0 → 340\n"
        "  2. index(number=1, position=680, size=340, tag=0)             not allowed\n"
        "\n"
        'index breaks the rule "the entry points at its message".\n'
        "Here: number = 1, position = 680, positions[1] = 340.\n"
        "Consequence: consumers receive another message in its place, one twice, or none.\n"
        "3 of 5 events are not the last to change a value that the rule reads, and are left out.\n"
        f"Again: gapless explain {tmp_path}/events.ndjson --trace TopicTest/3"
    )
    assert finding.message == (
        'TopicTest/3, line 6: index breaks the rule "the entry points at its message": '
        "number = 1, position = 680, positions[1] = 340"
    )


def test_what_is_to_be_typed_again_can_be_pasted_whatever_letters_names_have(tmp_path: Path) -> None:
    folder = tmp_path / "a b\nc\x1b[1m'd\\"
    folder.mkdir()
    name = "T\nä\u202e\x9f/'3"
    steps = [opened(trace=name), append(2, 0, trace=name)]
    (finding,) = checked(folder, steps).findings
    again = finding.story[-1]
    assert again.isprintable()
    typed = subprocess.run(
        ["/bin/bash", "-c", f"printf '%s\\0' {again.removeprefix('Again: gapless explain ')}"],
        capture_output=True, check=True,
    )  # fmt: skip
    assert typed.stdout.decode().split("\0")[:-1] == [f"{folder}/events.ndjson", "--trace", name]


def test_departures_of_one_kind_are_one_finding_with_a_count(tmp_path: Path) -> None:
    broken = [[opened(trace=f"T/{n}"), append(n % 2 + 1, 0, trace=f"T/{n}")] for n in range(40)]
    strange = [opened(trace="S/0"), step("append", 0, 0, 0, 0, 0, trace="S/0")]
    judged = checked(tmp_path, [event for events in (*broken, strange) for event in events])
    assert {finding.needs: finding.count for finding in judged.findings} == {
        "the numbers of a queue follow one another": 40,
        "a record holds a message": 1,
    }
    assert judged.total == 41
    assert judged.findings[0].traces == [f"T/{n}" for n in range(5)]


def test_what_a_profile_allows_is_counted_and_changes_no_verdict(tmp_path: Path) -> None:
    recreated = [*QUEUE[:4], append(0, 680), index(0, 680)]
    assert only_rule(checked(tmp_path, recreated, "strict")) == "the numbers of a queue follow one another"
    judged = checked(tmp_path, recreated, "rocketmq")
    assert judged.source.verdict == "conforms"
    assert judged.anomalies == {"append_to_a_queue_made_anew": 1}
    (finding,) = judged.findings
    assert (finding.severity, finding.where.offset, judged.total) == ("anomaly", 6, 0)


def test_ignored_rules_and_other_topics_do_not_count(tmp_path: Path) -> None:
    broken = [*QUEUE[:4], index(1, 680), *LOG[:3]]
    assert (
        checked(tmp_path, broken, ignored=frozenset({"queue/entry-points-at-its-message"})).source.verdict == "conforms"
    )
    judged = checked(tmp_path, broken, topic="TopicTest")
    assert (judged.source.verdict, judged.traces) == ("departs", 2)
    judged = checked(tmp_path, broken, topic="Topic")
    assert (judged.source.verdict, judged.traces) == ("conforms", 1)


def test_one_trace_alone(tmp_path: Path) -> None:
    checked(tmp_path, [*QUEUE[:4], index(1, 680), *LOG])
    options = Options(profile="strict")
    assert check_events(tmp_path / "events.ndjson", options, trace="commitlog").source.verdict == "conforms"
    assert check_events(tmp_path / "events.ndjson", options, trace="TopicTest/3").source.verdict == "departs"
    judged = check_events(tmp_path / "events.ndjson", options, trace="missing")
    assert judged.source.verdict == "inconclusive"
    assert judged.source.reasons == [
        "no trace called missing in it: nothing was checked; there: TopicTest/3, commitlog"
    ]


# -- refused, unknown, seen ----------------------------------------------------------------------------------------


def test_a_refusal_that_the_model_shares_conforms(tmp_path: Path) -> None:
    refused = [opened(), append(5, 0, outcome="refused"), append(0, 0), index(1, 0, outcome="refused"), index(0, 0)]
    judged = checked(tmp_path, refused)
    assert judged.source.verdict == "conforms"
    assert judged.coverage == {"queue.open": 1, "queue.append": 1, "queue.index": 1}
    assert judged.events == {"queue": 5}


def test_a_broker_that_refuses_what_is_allowed_departs(tmp_path: Path) -> None:
    judged = checked(tmp_path, [opened(), append(0, 0), append(1, 340, outcome="refused")])
    assert only_rule(judged) == OF_EVENTS[REFUSED][0]
    (finding,) = judged.findings
    assert finding.here == {"number": 1, "count": 1, "end": 1}
    assert finding.message == "TopicTest/3, line 4: append was refused, though the spec allows it"
    assert any(line.startswith("  1. append(number=0,") and "end 0 → 1" in line for line in finding.story)
    assert any(line.startswith("  2. append(number=1,") and line.endswith(TURNED_AWAY) for line in finding.story)


def test_a_broker_may_refuse_what_only_a_deviation_or_an_ignored_rule_allows(tmp_path: Path) -> None:
    recreated = [*QUEUE[:4], append(0, 680, outcome="refused"), index(1, 340)]
    assert checked(tmp_path, recreated, "rocketmq").source.verdict == "conforms"
    entry = [*QUEUE[:4], index(1, 680, outcome="refused")]
    ignored = frozenset({"queue/entry-points-at-its-message"})
    assert checked(tmp_path, entry, ignored=ignored).source.verdict == "conforms"
    allowed = [opened(), append(0, 0, outcome="refused")]
    assert checked(tmp_path, allowed, ignored=frozenset({f"queue/{REFUSED}"})).source.verdict == "conforms"


@pytest.mark.parametrize(
    "later",
    [
        [append(0, 340), index(0, 340)],  # it did not happen
        [append(1, 340), index(0, 0), index(1, 340)],  # it did
        [append(0, 340, outcome="unknown"), append(0, 680, outcome="unknown"), append(1, 1020), index(0, 340)],
        [],  # never known
    ],
)
@EVERY_PROFILE
def test_an_unknown_outcome_is_settled_by_what_follows(
    tmp_path: Path, later: list[UnplacedEvent], profile: str
) -> None:
    judged = checked(tmp_path, [opened(), append(0, 0, outcome="unknown"), *later], profile)
    assert judged.source.verdict == "conforms"
    assert not judged.anomalies, "an explanation without deviations is preferred"


def test_what_no_unknown_outcome_explains_departs(tmp_path: Path) -> None:
    maybe = [opened(), append(0, 0, outcome="unknown"), append(1, 340, outcome="unknown")]
    judged = checked(tmp_path, [*maybe, index(2, 0)])
    assert only_rule(judged) == "the message of the entry is in the log"
    assert any(line.startswith("3 states were possible") for line in judged.findings[0].story)
    settled = checked(tmp_path, [opened(), append(0, 0, outcome="unknown"), append(0, 9), append(0, 0)])
    assert only_rule(settled) == "the numbers of a queue follow one another"
    assert not any("possible" in line for line in settled.findings[0].story), "by then one state was left"


def test_too_many_unknown_outcomes_are_inconclusive(tmp_path: Path) -> None:
    flushes = [in_log("flush", at, outcome="unknown") for at in range(100)]
    judged = checked(tmp_path, [in_log("open", 0, 1024), record(0), *flushes, in_log("flush", 101)])
    assert judged.source.verdict == "inconclusive"
    (reason,) = judged.source.reasons
    assert reason.startswith(
        "1 of 1 traces have so many steps of unknown outcome that more than 64 states are possible"
    )
    assert "commitlog after line 68 for one" in reason
    fewer = checked(tmp_path, [in_log("open", 0, 1024), record(0), *flushes[:60], in_log("flush", 101)])
    assert only_rule(fewer) == "the bytes are written"


def test_equal_states_are_one_however_they_came_about(tmp_path: Path) -> None:
    same = [in_log("flush", 100, outcome="unknown")] * 500
    judged = checked(tmp_path, [in_log("open", 0, 1024), record(0), *same, in_log("acknowledge", 100)])
    assert judged.source.verdict == "conforms"


def test_what_the_broker_saw_is_compared_with_the_model(tmp_path: Path) -> None:
    seen = [
        opened(saw={"end": 0, "first": 0}),
        append(0, 0, saw={"end": 1}),
        append(5, 0, outcome="refused", saw={"end": 1}),
    ]
    assert checked(tmp_path, seen).source.verdict == "conforms"
    judged = checked(tmp_path, [*seen, append(1, 340, saw={"end": 3, "indexed": 0})])
    assert only_rule(judged) == OF_EVENTS[SEEN][0]
    (finding,) = judged.findings
    assert finding.here == {"end": 2, "end seen": 3}
    assert any(line.endswith("taken, but another state was recorded after it") for line in finding.story)
    assert any(line.startswith("  1. append(number=0,") for line in finding.story), "the step that made the value"
    assert (
        checked(tmp_path, [*seen, append(1, 340, saw={"end": 3})], ignored=frozenset({f"queue/{SEEN}"})).source.verdict
        == "conforms"
    )


def test_what_was_seen_settles_an_unknown_outcome(tmp_path: Path) -> None:
    undone = [opened(), append(0, 0, outcome="unknown", saw={"end": 0})]
    assert checked(tmp_path, [*undone, append(0, 340)]).source.verdict == "conforms"
    assert only_rule(checked(tmp_path, [*undone, index(0, 0)])) == "the message of the entry is in the log"


# -- what cannot be judged -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([], "no event in it: nothing was checked"),
        (
            [append(0, 0), index(0, 0)],
            "1 of 1 queue traces do not begin with open, and were not judged; TopicTest/3 at line 2",
        ),
        (
            [*QUEUE, append(0, 0, trace="B/0")],
            "1 of 2 queue traces do not begin with open, and were not judged; B/0 at line 8",
        ),
        ([opened(outcome="unknown")], "no step in it that was surely taken"),
    ],
)
def test_nothing_checked_is_inconclusive(tmp_path: Path, events: list[UnplacedEvent], reason: str) -> None:
    judged = checked(tmp_path, events)
    assert judged.source.verdict == "inconclusive"
    assert judged.source.reasons[0].startswith(reason)
    assert not judged.findings


def test_no_trace_of_the_topic_is_inconclusive(tmp_path: Path) -> None:
    judged = checked(tmp_path, QUEUE, topic="Other")
    assert judged.source.verdict == "inconclusive"
    assert judged.source.reasons == ["no trace of topic Other in it: nothing was checked; there: TopicTest"]


def test_events_out_of_their_order_are_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    events = [opened()(7), opened(trace="B/0")(3), append(0, 0)(7), append(1, 340)(6)]
    schema.write_events(path, events[:3])
    assert check_events(path, Options()).source.verdict == "conforms"
    schema.write_events(path, events)
    with pytest.raises(Unreadable, match="line 5: position 6 of TopicTest/3 is lower than the one before"):
        check_events(path, Options())


def test_unreadable_files_are_reported_before_anything_is_judged(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    schema.write_events(path, [event(at) for at, event in enumerate([*QUEUE[:4], index(1, 680)])])
    path.write_text(path.read_text() + "{}\n")
    with pytest.raises(Unreadable, match="line 7: "):
        check_events(path, Options())


# -- compiled and plain --------------------------------------------------------------------------------------------


@SOME_READINGS
@FEWER  # an example reads a file twice, and there are four for every spec
@given(data=st.data())
def test_both_readings_of_a_file_say_the_same(
    tmp_path_factory: pytest.TempPathFactory, spec: Spec, profile: str, data: st.DataObject
) -> None:
    """An empty `saw` sends a trace to the plain functions; nothing else may change by that."""
    path = tmp_path_factory.mktemp("events") / "events.parquet"
    offers = list(walk(spec, profile, drawing(data), length=10, edges=(2**62, 2**63 - 1, -(2**63))))
    offers = [offer for offer in offers if (*offer.path, offer.event)[0][0] == "open"][-3:]
    traces = [(spec, [*offer.path, offer.event]) for offer in offers]
    compiled, plain = judged_with(path, profile, None, traces), judged_with(path, profile, {}, traces)
    assert compiled.source.verdict == plain.source.verdict
    assert compiled.coverage == plain.coverage
    assert compiled.anomalies == plain.anomalies
    assert [finding.story for finding in compiled.findings] == [finding.story for finding in plain.findings]
    assert compiled.events == plain.events
    broken = [offer.rule for offer in offers if offer.rule is not None]
    assert compiled.total == sum(not rule.endswith(f"/{ASSUMED}") for rule in broken)


def judged_with(
    path: Path, profile: str, saw: dict[str, int] | None, traces: list[tuple[Spec, list[StoryStep]]]
) -> JudgedFile:
    """Traces one after the other in a file, every step with the same `saw`."""
    events = [
        step(action, *args, spec=spec.name, trace=f"T/{number}", saw=saw)
        for number, (spec, steps) in enumerate(traces)
        for action, args in steps
    ]
    schema.write_events(path, [event(at) for at, event in enumerate(events)])
    return check_events(path, Options(profile=profile))


def test_numbers_far_apart_and_slices_of_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that leads out of the kernel's window is judged by the plain functions, and counted once."""
    monkeypatch.setattr(batches, "SLICE", 3)
    far = [opened(), step("append", 0, 10**9, 0, 340, 0), append(10**9, 340), append(0, 680), index(0, 680)]
    events = [
        event
        for n in range(3)
        for event in [opened(trace=f"T/{n}"), append(0, 0, trace=f"T/{n}"), index(0, 0, trace=f"T/{n}")]
    ]
    judged = checked(tmp_path, [*events, *far], "rocketmq")
    assert judged.source.verdict == "conforms"
    assert judged.coverage == {"queue.open": 4, "queue.append": 6, "queue.index": 4}
    assert judged.events == {"queue": 14}
    assert judged.anomalies == {"append_to_a_queue_made_anew": 1}
    assert [finding.where.offset for finding in judged.findings] == [14]


@pytest.mark.parametrize("outcome", ["ok", "unknown"])
def test_an_environment_that_breaks_its_promise_is_no_violation(tmp_path: Path, outcome: str) -> None:
    def cache(action: str, *args: int, **more: Any) -> UnplacedEvent:
        return step(action, *args, spec="half_cache", trace="halves", **more)

    events = [cache("open", 0, 0, 2), cache("append", 0, 7), cache("flush", 1, outcome=outcome), cache("restart", 0)]
    judged = checked(tmp_path, events)
    assert judged.source.verdict == ("inconclusive" if outcome == "ok" else "conforms")
    assert ("an environment that breaks its promise" in " ".join(judged.source.reasons)) == (outcome == "ok")


def test_an_interrupted_check_tells_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> list[Any]:
        raise KeyboardInterrupt

    monkeypatch.setattr(Judge, "_exact", interrupted)
    exact = [opened(trace="B/0", saw={})]
    assert checked(tmp_path, [*QUEUE, *exact]).source.verdict == "inconclusive"
    judged = checked(tmp_path, [*QUEUE[:4], index(1, 680), *exact])
    assert only_rule(judged) == "the entry points at its message"
    assert re.match(r"interrupted after 0 of [\d,]+ bytes", judged.source.reasons[0])


def test_the_example_of_the_essay_is_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    essay = (Path(__file__).parents[2] / "traces" / "README.md").read_text(encoding="utf-8")
    lines, story, *_ = re.findall(r"```(?:json|text)\n(.*?)```", essay, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("example.ndjson").write_text(lines, encoding="utf-8")
    (finding,) = check_events(Path("example.ndjson"), Options(profile="strict")).findings
    assert "\n".join(finding.story) + "\n" == story


def test_a_check_says_the_same_twice(tmp_path: Path) -> None:
    events = [*QUEUE[:4], index(1, 680), *LOG, append(0, 0, trace="B/0")]
    found = checked(tmp_path, events)
    assert found == check_events(tmp_path / "events.ndjson", Options(profile="strict"))
    assert found.source.verdict == "departs"


# -- stretches -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".ndjson", ".parquet"])
@FEWER
@given(
    kinds=st.lists(st.integers(0, len(ODD) - 1), min_size=1, max_size=12),
    mingled=st.sampled_from([1, 1, 2, 3, 12]),
    rows=st.integers(1, 9),
    size=st.sampled_from([1, 300, 2000]),
)
def test_stretches_change_nothing(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, kinds: list[int], mingled: int, rows: int, size: int
) -> None:
    """Results and table do not depend on the cuts of a file, nor on the order of its traces."""
    folder = tmp_path_factory.mktemp("events")
    path = folder / f"events{suffix}"
    schema.write_events(path, [event(at) for at, event in enumerate(mixed_traces(kinds, mingled=mingled))])
    if suffix == ".parquet":
        cut(path, rows)
    whole, pieces = (
        (check_events(path, Options(split=split), table=TableRows(made(folder / name), "0")), table_in(folder / name))
        for name, split in (("whole", 1 << 30), ("pieces", size))
    )
    assert pieces == whole
    assert whole[0].listed == len(whole[1]) == len(kinds)


@pytest.mark.parametrize("mingled", [1, 3, 40])
def test_short_traces_are_judged_in_the_row_groups_where_they_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mingled: int
) -> None:
    """Only traces that continue in the next row group are put together; results are the same, row by row."""
    events = mixed_traces([number * 7 % len(ODD) for number in range(120)], mingled=mingled)
    path = tmp_path / "events.parquet"
    write(path, events)
    cut(path, 17)  # which falls into the middle of traces
    table = TableRows(made(tmp_path / "whole"), "0")
    whole = check_events(path, Options(), table=table), table_in(tmp_path / "whole")
    apart: list[int] = []

    def counted(traces: Traces, chosen: Any, stretch: int) -> Any:
        apart.append(len(traces.names) if chosen is None else int(chosen.sum()))
        return packed_whole(traces, chosen, stretch)

    def reading_counted(path: Path, stretch: reading.EventStretch, of: Any, **how: Any) -> Any:
        yield from reads(path, stretch, of, **how)
        read.append(stretch.number)

    read: list[int] = []
    reads = reading.coded
    monkeypatch.setattr(stretches, "packed_whole", counted)
    monkeypatch.setattr(reading, "coded", reading_counted)
    footer = parquet.read_metadata(path)
    groups = footer.num_row_groups
    size = sum(footer.row_group(number).total_byte_size for number in range(groups)) // 4
    judged = check_events(path, Options(split=size), table=TableRows(made(tmp_path / "pieces"), "0"))
    assert (judged, table_in(tmp_path / "pieces")) == whole
    assert whole[0].listed == len(whole[1]) == 120
    assert len(apart) >= groups
    assert 0 < sum(apart) < 120 or mingled > 1
    assert len(read) == len(set(read)) or mingled > 1  # nothing is read again for a trace that one stretch holds


def test_a_row_group_of_few_rows_and_very_many_bytes_is_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text of a GiB takes 33 KiB in a file, and seven GiB where its page becomes texts."""
    path = tmp_path / "events.parquet"
    write(path, [opened(trace="t" * 300_000)])
    assert path.stat().st_size < 300_000 // 4
    assert check([path]).verdict == "conforms"
    monkeypatch.setattr(event_parquet, "LARGEST", 1 << 18)
    event_parquet._footer.cache_clear()
    (source,) = check([path]).sources
    assert source.verdict == "unreadable"
    assert "row group 0 has 0 MiB for its rows (1), and" in source.reasons[0]


def test_a_name_that_stands_twice_in_a_dictionary_is_one_trace() -> None:
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int32()), pa.array(["A", "B", "A"]))
    batch = schema.from_events([one(at) for at, one in enumerate([opened(trace="A"), opened(), append(0, 0)])])
    batch = batch.set_column(batch.schema.get_field_index("trace"), "trace", twice)
    (whole,) = gathered([batch])
    assert whole.names.to_pylist() == ["A", "B"]
    (quick,) = gathered([batch], looked_up=False)
    assert len(repeated([hashed(quick)])) == 1


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.mark.parametrize("suffix", [".ndjson", ".parquet"])
def test_a_file_has_as_many_stretches_as_its_size_asks_for(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"events{suffix}"
    schema.write_events(path, [event(at) for at, event in enumerate(mixed_traces([0, 1, 9] * 5, mingled=1))])
    if suffix == ".parquet":
        cut(path, 5)
    one, many = reading.stretches(path, 1 << 30), reading.stretches(path, 1)
    assert len(one) == 1
    assert len(many) == (11 if suffix == ".parquet" else 55)
    assert [stretch.first for stretch in many] == [True, *[False] * (len(many) - 1)]
    assert [stretch.last for stretch in many] == [*[False] * (len(many) - 1), True]
    every = [event for stretch in many for batch in reading.read(path, stretch) for event in schema.to_events(batch)]
    assert every == list(reading.read_events(path))


def test_what_continues_in_the_next_stretch_is_judged_there_without_reading_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traces that lie in one run each are read once, wherever the file is cut; those that are mingled, twice."""
    read: list[int] = []
    reads = reading.coded

    def counted(path: Path, stretch: reading.EventStretch, of: Any, **how: Any) -> Any:
        yield from reads(path, stretch, of, **how)
        read.append(stretch.number)

    monkeypatch.setattr(reading, "coded", counted)
    for mingled, times in ((1, 1), (3, 2)):
        path = tmp_path / f"{mingled}.ndjson"
        schema.write_events(path, [event(at) for at, event in enumerate(mixed_traces([0] * 9, mingled=mingled))])
        read.clear()
        judged = check_events(path, Options(split=500), engine=Apart())
        assert judged.traces == 9
        assert judged.source.verdict == "conforms"
        assert len(set(read)) == len(reading.stretches(path, 500)) > 3
        assert len(read) == times * len(set(read))


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("split", [None, 500])
def test_a_processor_that_would_be_idle_reads_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int, split: int | None
) -> None:
    """In this process, one task reads the whole file, or each reads its stretch."""
    ahead: list[bool] = []
    reads = reading.coded

    def reading_ahead(path: Path, stretch: reading.EventStretch, of: Any, **how: Any) -> Any:
        ahead.append(how.get("ahead", False))
        return reads(path, stretch, of, **how)

    monkeypatch.setattr(reading, "coded", reading_ahead)
    path = tmp_path / "events.parquet"
    monkeypatch.setattr(event_parquet, "ROWS", 20)
    schema.write_events(path, [event(at) for at, event in enumerate(mixed_traces([0] * 9, mingled=9))])
    assert check_events(path, Options(split=split), engine=Local(jobs)).source.verdict == "conforms"
    assert any(ahead) == (jobs > 1)


def test_traces_that_go_through_the_whole_file_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Except the beginnings of the first two stretches, which are probed, and traces with stories."""
    read: list[int] = []
    reads = reading.coded

    def counted(path: Path, stretch: reading.EventStretch, of: Any, **how: Any) -> Any:
        yield from reads(path, stretch, of, **how)
        read.append(stretch.number)

    monkeypatch.setattr(reading, "coded", counted)
    path, names = tmp_path / "events.ndjson", ("A/0", "B/0", "C/0")
    events = [opened(trace=trace) for trace in names]
    events += [step(number, 340 * number, trace=t) for number in range(60) for step in (append, index) for t in names]
    schema.write_events(path, [event(at) for at, event in enumerate(events)])
    judged = check_events(path, Options(split=6000), engine=Local(1))
    assert (judged.traces, judged.source.verdict) == (3, "conforms")
    assert read == list(range(len(reading.stretches(path, 6000))))
    assert len(read) > MANY
    schema.write_events(path, [event(at) for at, event in enumerate([*events[:-2], *events[-1:]])])
    assert check_events(path, Options(split=6000)).source.verdict == "conforms"
    schema.write_events(path, [event(at) for at, event in enumerate([*events[:200], *events[201:]])])
    assert only_rule(check_events(path, Options(split=6000))) == only_rule(check_events(path, Options()))


@pytest.mark.parametrize("split", [1, 700, 1 << 30])
def test_the_first_thing_that_is_wrong_is_reported_wherever_the_file_is_cut(tmp_path: Path, split: int) -> None:
    path = tmp_path / "events.ndjson"
    events = [event(at) for at, event in enumerate(mixed_traces([0] * 6, mingled=2))]
    schema.write_events(path, events)
    whole = path.read_text().splitlines(keepends=True)
    for row in (17, 11):
        whole[row] = whole[row].replace('"index"', '"indeed"')
        path.write_text("".join(whole))
        with pytest.raises(Unreadable, match=f"line {row + 1}: action is 'indeed'"):
            check_events(path, Options(split=split))
    schema.write_events(path, [*events[:12], events[13], events[12], *events[14:16], events[17], events[16]])
    check_events(path, Options(split=split))  # of other traces
    schema.write_events(path, [*events[:12], events[14], *events[12:14], *events[15:]])
    with pytest.raises(Unreadable, match="line 15: position 12 of T/4 is lower than the one before"):
        check_events(path, Options(split=split))


def test_what_was_seen_of_half_a_trace_counts_for_nothing(tmp_path: Path) -> None:
    """An interrupt between the first reading and the second: the cut of the file causes no finding."""

    class Impatient(Local):
        def each(self, task: Any, items: Any, sizes: Any) -> Any:
            if "again" in asked:
                raise KeyboardInterrupt
            asked.append("again")
            return super().each(task, items, sizes)

    asked: list[str] = []

    path = tmp_path / "events.ndjson"
    schema.write_events(path, [event(at) for at, event in enumerate(mixed_traces([0] * 9, mingled=3))])
    judged = check_events(path, Options(split=2000), engine=Impatient())
    assert re.match(r"interrupted after [\d,]+ of [\d,]+ bytes", judged.source.reasons[0])
    assert (judged.traces, judged.findings) == (0, [])


@pytest.mark.parametrize("mingled", by_day([1, 4], 1 / 2))
def test_processes_change_nothing(tmp_path: Path, mingled: int) -> None:
    path = tmp_path / "events.ndjson"
    events = mixed_traces([*range(len(ODD))] * 3, mingled=mingled)
    schema.write_events(path, [event(at) for at, event in enumerate(events)])
    one, two = (
        check([path], jobs=jobs, split=1500, verdicts=tmp_path / str(jobs)).model_dump(exclude={"seconds"})
        for jobs in (1, 2)
    )
    assert two == one
    assert table_in(tmp_path / "2") == table_in(tmp_path / "1") != []
