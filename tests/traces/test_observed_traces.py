"""Traces with observations are judged in columns as by exact replay."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from gapless import check
from gapless.traces.events import schema
from gapless.traces.judging import judge, observed_traces
from gapless.traces.judging.observed_traces import ObservedTraces
from gapless.traces.replay.possible_states import Departs, Replay
from tests.support.event_files import (
    ODD,
    UnplacedEvent,
    append,
    in_log,
    index,
    mixed_traces,
    opened,
    record,
    step,
    table_in,
)

BY_NONE = 1 << 40  # traces, more than there are


def observed(chance: Random, traces: int) -> list[list[UnplacedEvent]]:
    """Queues and logs, with what was seen and refused; some of that is wrong."""
    found = []
    for number in range(traces):
        name, end, indexed = f"T/{number}", 0, 0
        if number % 5 == 4:
            events = [in_log("open", 0, 1024, trace=name), *(record(100 * n, trace=name) for n in range(3))]
            events += [in_log("flush", 200, trace=name, saw={"flushed": chance.choice((200, 200, 100))})]
            found.append([*events, in_log("acknowledge", 300, trace=name, outcome="refused")])
            continue
        events = [opened(trace=name)]
        for _ in range(chance.randrange(12)):
            seen: dict[str, Any] = {}
            kind = chance.random()
            if kind < 0.5:
                end += 1
                if chance.random() < 0.5:
                    seen = {"saw": {"end": end + (chance.random() < 0.05), "indexed": indexed}}
                events.append(append(end - 1, 340 * (end - 1), trace=name, **seen))
            elif kind < 0.8 and indexed < end:
                seen = {"saw": {"indexed": indexed + 1}} if chance.random() < 0.5 else {}
                events.append(index(indexed, 340 * indexed + (chance.random() < 0.02), trace=name, **seen))
                indexed += 1
            elif kind < 0.95:
                wrong, seen = end + (chance.random() < 0.9), {"end": end + (chance.random() < 0.05)}
                events.append(append(wrong, 340 * wrong, trace=name, outcome="refused", saw=seen))
            elif kind < 0.97:
                seen = {"saw": {"end": end}} if chance.random() < 0.3 else {}
                events.append(append(end, 340 * end, trace=name, outcome="unknown", **seen))
            else:
                events.append(step("settle", 340 * end, trace=name, saw={}))
        found.append(events)
    return found


def checked(path: Path, rows: Path, profile: str) -> tuple[dict[str, Any], list[Any]]:
    report = check([path], jobs=1, verdicts=rows, profile=profile)
    return report.model_dump(exclude={"seconds"}), table_in(rows)


@pytest.mark.parametrize(("seed", "profile"), [(1, "strict"), (2, "rocketmq")])
def test_columns_and_exact_replay_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, profile: str
) -> None:
    events = [event for trace in observed(Random(seed), 200) for event in trace]
    odd = mixed_traces([*range(len(ODD))] * 2, mingled=1)
    path = tmp_path / "events.ndjson"
    schema.write_events(path, [one(at) for at, one in enumerate([*events, *odd])])
    replayed: list[Replay] = []
    begin = Replay.__init__

    def counted(self: Replay, *of: Any) -> None:
        replayed.append(self)
        begin(self, *of)

    monkeypatch.setattr(Replay, "__init__", counted)
    found = []
    for enough in (1, BY_NONE):
        monkeypatch.setattr(observed_traces, "ENOUGH", enough)
        found.append((checked(path, tmp_path / f"{enough}", profile), len(replayed)))
    (by_columns, few), (exactly, all_) = found
    assert by_columns == exactly
    assert {row["verdict"] for row in exactly[1]} == {"conforms", "departs", "inconclusive"}
    assert 2 * few < all_ - few, "most need no exact replay"


@pytest.mark.parametrize("wrong", [{"saw": {"end": 2}}, {"outcome": "refused"}])
def test_a_wrong_observation_or_refusal_is_found_in_columns_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any]
) -> None:
    """The one trace that is wrong has its story, and no other is replayed exactly."""
    events: list[UnplacedEvent] = []
    for number in range(99):
        more: dict[str, Any] = wrong if number == 40 else {"saw": {"end": 1}}
        name = f"T/{number}"
        events += [opened(trace=name), append(0, 0, trace=name, **more)]
        events += [append(5, 9, trace=name, outcome="refused", saw={"end": 1})] * (number != 40)
    path = tmp_path / "events.ndjson"
    schema.write_events(path, [one(at) for at, one in enumerate(events)])
    replayed: list[str] = []
    exact = judge.Judge._exact

    def noted(self: Any, traces: Any, tally: Any, trace: int, *more: Any) -> None:
        replayed.append(traces.name(trace))
        exact(self, traces, tally, trace, *more)

    monkeypatch.setattr(judge.Judge, "_exact", noted)
    report = check([path], jobs=1)
    assert (report.verdict, [one.trace for one in report.findings], replayed) == ("departs", ["T/40"], ["T/40"])


def alike(path: Path, wrong: dict[str, Any], fine: dict[str, Any]) -> Path:
    """A file of 99 queues, the last of which begins first: in 90 of them an event is wrong, and others follow it."""
    names = [f"T/{number:02}" for number in range(99)]
    events = [one for name in names for one in (opened(trace=name), append(0, 0, trace=name, saw={"end": 1}))]
    for name in reversed(names):
        events += [append(1, 340, trace=name, **(wrong if name >= "T/09" else fine))]
        events += [index(0, 0, trace=name)] * (name >= "T/09")
    schema.write_events(path, [one(at) for at, one in enumerate(events)])
    return path


@pytest.mark.parametrize(
    "wrong", [{"saw": {"end": 7}}, {"outcome": "refused"}, {"outcome": "refused", "saw": {"end": 9}}]
)
def test_of_many_wrong_observations_or_refusals_the_first_is_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any]
) -> None:
    path, replayed = alike(tmp_path / "events.ndjson", wrong, {"saw": {"end": 2}}), list[str]()
    exact = judge.Judge._exact

    def noted(self: Any, traces: Any, tally: Any, trace: int, *more: Any) -> None:
        replayed.append(traces.name(trace))
        exact(self, traces, tally, trace, *more)

    monkeypatch.setattr(judge.Judge, "_exact", noted)
    by_columns = checked(path, tmp_path / "columns", "strict")
    few = replayed.copy()
    monkeypatch.setattr(observed_traces, "ENOUGH", BY_NONE)
    assert by_columns == checked(path, tmp_path / "exact", "strict")
    (finding,) = by_columns[0]["findings"]
    assert (finding["count"], finding["traces"]) == (90, ["T/98", "T/97", "T/96", "T/95", "T/94"])
    assert set(few) <= {"T/98", *(f"T/{n:02}" for n in range(9))}, "those that are right are few behind the others"


def test_what_kernels_call_seen_otherwise_and_the_plain_functions_do_not_is_no_departure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "events.ndjson"
    events = [one for n in range(99) for one in (opened(trace=f"T/{n}"), append(0, 0, trace=f"T/{n}", saw={"end": 1}))]
    schema.write_events(path, [one(at) for at, one in enumerate(events)])
    true, compare = checked(path, tmp_path / "true", "strict"), ObservedTraces._compare

    def confused(self: ObservedTraces, some: Any) -> None:
        self.state += 1
        compare(self, some)

    monkeypatch.setattr(ObservedTraces, "_compare", confused)
    found = checked(path, tmp_path / "false", "strict")
    assert found[0]["verdict"] == true[0]["verdict"] == "conforms"
    assert (found[0]["coverage"], found[1]) == (true[0]["coverage"], true[1])
    assert any("99" in note and "kernel" in note for note in found[0]["sources"][0]["notes"])


def test_of_departures_by_exact_replay_the_first_has_a_story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time for stories does not grow with their number: the trace that departs first comes last here."""
    events = [one for n in range(50) for one in (opened(trace=f"T/{n}"), append(0, 0, trace=f"T/{n}"))]
    events += [one for n in reversed(range(50)) for one in [append(1, 340, trace=f"T/{n}", saw={"end": 7})]]
    path = tmp_path / "events.ndjson"
    schema.write_events(path, [one(at) for at, one in enumerate(events)])
    rows: list[int] = []
    departure = Departs.departure

    def noted(self: Departs, *of: Any) -> Any:
        rows.append(self.taken.row)
        return departure(self, *of)

    monkeypatch.setattr(Departs, "departure", noted)
    (finding,) = check([path], jobs=1).findings
    assert (finding.count, finding.trace, finding.where.offset) == (50, "T/49", 102)
    assert finding.traces == ["T/49", "T/48", "T/47", "T/46", "T/45"]
    assert rows == sorted(rows, reverse=True), "only what comes before all that were known"
