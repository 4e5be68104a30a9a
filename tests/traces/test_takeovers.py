"""Replay after a departure: the model takes over what the broker claims, and reports nothing twice."""

from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from gapless.spec.catalog import Spec
from gapless.traces.check import check
from gapless.traces.events import schema
from gapless.traces.judging import judge
from gapless.traces.judging.judge import MOMENTS
from gapless.traces.replay.possible_states import Departs
from gapless.traces.report.values import Report
from tests.support.event_files import UnplacedEvent, step

ABORTING, COMMITTED, ABORTED, OPEN, COMMITTING = 3, 4, 5, 1, 2


def events_of(*calls: tuple[str, *tuple[int, ...]], **more: Any) -> list[UnplacedEvent]:
    return [step(action, *args, spec="coordinator", trace="tc0", **more) for action, *args in calls]


def lived(number: int) -> list[UnplacedEvent]:
    """Return a transaction that begins, is committed, and is acknowledged to its client."""
    return events_of(
        ("admit", number), ("begin", number, number, 0, 9), ("hand", number, number), ("decide", number, COMMITTING),
        ("finish", number, COMMITTED), ("acknowledge", number, COMMITTED),
    )  # fmt: skip


BEFORE = [*events_of(("open", 0)), *lived(0), *lived(1), *events_of(("admit", 2), ("begin", 2, 2, 0, 9), ("unload",))]


def checked(path: Path, events: list[UnplacedEvent]) -> Report:
    schema.write_events(path / "events.ndjson", [event(at) for at, event in enumerate(events)])
    return check(path / "events.ndjson")


def test_what_comes_back_is_reported_each_time_and_nothing_follows_from_it(tmp_path: Path) -> None:
    """Two committed transactions come back open: they take slots, are aborted, and their clients hear so."""
    back = events_of(("load", 0, OPEN), ("load", 1, COMMITTING), ("load", 2, OPEN), ("recover", 0))
    after = events_of(
        ("add", 0), ("time_out", 0, 50), ("finish", 0, ABORTED), ("acknowledge", 0, ABORTED), ("finish", 1, COMMITTED),
        ("admit", 3), ("begin", 3, 3, 0, 9), ("unload",), ("load", 2, OPEN), ("load", 3, OPEN), ("recover", 0),
    )  # fmt: skip
    found = checked(tmp_path, [*BEFORE, *back, *after])
    (finding,) = found.findings
    assert (finding.rule, finding.count) == ("coordinator/transaction-comes-back-as-it-was", 2)
    assert (
        "Other steps break it too, and are assumed for what follows: load(number=1, status=COMMITTING)."
        in finding.story
    )
    assert found.coverage["coordinator.recover"] == 2
    assert found.coverage["coordinator.load"] == 3  # those two are not among what was accepted
    unloads = 2  # of which nothing is asked
    assert found.counts.events == len(BEFORE) + len(back) + len(after) - unloads
    assert [line for line in found.not_exercised if line.startswith("coordinator.load: 2 such steps in events.ndjson")]


@pytest.mark.parametrize(
    ("calls", "rule"),
    [
        ([("load", 0, OPEN), ("load", 2, OPEN), ("load", 2, COMMITTED)], "transaction-comes-back-as-it-was"),
        ([("load", 0, OPEN), ("recover", 0)], "every-active-transaction-comes-back"),  # 2 is forgotten
        (
            [("load", 0, OPEN), ("load", 2, OPEN), ("recover", 0), ("acknowledge", 0, COMMITTED)],
            "outcome-that-is-told-is-in-the-log",
        ),
    ],
)
def test_what_departs_in_its_own_right_is_reported_too(
    tmp_path: Path, calls: list[tuple[str, *tuple[int, ...]]], rule: str
) -> None:
    found = checked(tmp_path, [*BEFORE, *events_of(*calls)])
    assert f"coordinator/{rule}" == found.findings[-1].rule
    assert found.findings_total == 2
    story = found.findings[-1].story
    if rule == "outcome-that-is-told-is-in-the-log":  # of a transaction that was taken over
        assert any(line.endswith("(not allowed, but assumed for what follows)") for line in story), story


def test_what_cannot_be_taken_over_ends_the_trace(tmp_path: Path) -> None:
    found = checked(tmp_path, [*BEFORE, *events_of(("load", 0, 9), ("load", 1, OPEN), ("recover", 0))])
    assert found.findings_total == 1


def test_a_claim_that_was_refused_or_is_unknown_is_not_taken_over(tmp_path: Path) -> None:
    refused = events_of(("load", 0, OPEN), outcome="refused") + events_of(
        ("load", 0, COMMITTED), ("load", 2, OPEN), ("recover", 0)
    )
    assert checked(tmp_path, [*BEFORE, *refused]).verdict == "conforms"


def test_a_trace_that_departed_stays_so_that_cannot_be_followed_further(tmp_path: Path) -> None:
    """The unknown outcomes of fourteen requests make more states possible than are kept."""
    back = events_of(("load", 0, OPEN), ("load", 1, COMMITTED), ("load", 2, OPEN), ("recover", 0))
    unknown = events_of(*(("admit", number) for number in range(3, 17)), outcome="unknown")
    events = [event(at) for at, event in enumerate([*BEFORE, *back, *unknown])]
    schema.write_events(tmp_path / "events.ndjson", events)
    report = check(tmp_path / "events.ndjson", verdicts=tmp_path / "verdicts")
    assert any("possible" in reason for reason in report.sources[0].reasons)
    (row,) = [row for file in (tmp_path / "verdicts").glob("*.parquet") for row in parquet.read_table(file).to_pylist()]
    assert (row["verdict"], row["rule"]) == ("departs", "coordinator/transaction-comes-back-as-it-was")


@pytest.mark.parametrize("lives", [1, 12])
def test_the_cost_of_departures_grows_with_their_number_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lives: int
) -> None:
    """The first story alone replays what led to it: 211 stories of 30,000 lines took more than a quarter of an hour."""
    full, explain = list[Departs](), Departs.departure
    taken, step_of = list[str](), Spec.step

    def counted(departs: Departs, *how: Any) -> Any:
        full.append(departs)
        return explain(departs, *how)

    def noted(spec: Spec, state: Any, action: str, *how: Any) -> Any:
        taken.append(action)
        return step_of(spec, state, action, *how)

    monkeypatch.setattr(judge, "followed", lambda *_: None)  # by a kernel, if there is a compiled one
    monkeypatch.setattr(Departs, "departure", counted)
    monkeypatch.setattr(Spec, "step", noted)
    ended, events = range(60), events_of(("open", 0))
    for number in ended:
        events += lived(number)
    for life in range(lives):
        status = COMMITTING if life % 2 else OPEN
        events += events_of(("unload",), *(("load", number, status) for number in ended), ("recover", 0))
    found = checked(tmp_path, events)
    assert len(full) == min(lives, MOMENTS) == len(found.findings)
    assert len(taken) < 2 * len(events) + len(full)
    assert sum(finding.count for finding in found.findings) == found.findings_total == 60 * lives
