"""Long traces cost what their stories cost: kernels follow them behind departures, and no question is asked twice."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from gapless.spec import coordinator
from gapless.spec.catalog import SPECS, Spec
from gapless.traces.check import check
from gapless.traces.events import schema
from gapless.traces.judging import followed_traces, judge
from gapless.traces.judging.judge import MOMENTS
from gapless.traces.options import Options
from gapless.traces.replay.kernels import Kernel, Loop, kernel
from gapless.traces.replay.possible_states import BrokenPromise, Departs, Replay, TooMany, TraceEvent
from gapless.traces.replay.remembered_quantifiers import NotingMap
from gapless.traces.report.values import Report
from tests.support.event_files import UnplacedEvent, step
from tests.support.night import NIGHT
from tests.support.pulsar_recordings import recording

OPEN, COMMITTING, ABORTING, COMMITTED, ABORTED = 1, 2, 3, 4, 5


@pytest.fixture
def follows(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Let kernels follow short traces, run by Python, and count those that were followed."""
    counts, follow = Counter[str](), followed_traces.followed

    def counted(*given: Any) -> Any:
        found = follow(*given)
        counts["followed" if found else "left"] += 1
        return found

    monkeypatch.setattr(Kernel, "is_native", True)
    monkeypatch.setattr(followed_traces, "SHORT", 0)
    monkeypatch.setattr(judge, "followed", counted)
    return counts


def events_of(*calls: tuple[Any, ...], **more: Any) -> list[UnplacedEvent]:
    return [step(action, *args, spec="coordinator", trace="tc0", **more) for action, *args in calls]


def lived(number: int) -> list[UnplacedEvent]:
    return events_of(
        ("admit", number),
        ("begin", number, number, 0, 9),
        ("decide", number, COMMITTING),
        ("finish", number, COMMITTED),
    )


def checked(path: Path, events: list[UnplacedEvent], **how: Any) -> Report:
    schema.write_events(path / "events.ndjson", [event(at) for at, event in enumerate(events)])
    return check(path / "events.ndjson", **how)


def without_times(report: Report) -> dict[str, Any]:
    return report.model_dump(exclude={"seconds", "compiling"})


def departing(chance: Random) -> list[UnplacedEvent]:
    """A coordinator that is loaded several times: some transactions come back as they were, some otherwise."""
    events, numbers = events_of(("open", 0)), 0
    refused = events_of(("finish", 0, ABORTED), outcome="refused")
    for _ in range(chance.randrange(1, 14)):
        for _ in range(chance.randrange(8)):
            events += [*lived(numbers), *(refused * chance.randrange(3))]
            numbers += 1
        events += events_of(("unload",))
        for number in chance.sample(range(numbers), chance.randrange(numbers + 1)):
            events += events_of(
                ("load", number, chance.choice((OPEN, COMMITTING, COMMITTED, COMMITTED, 7 - number % 2)))
            )
            events += refused * (chance.random() < 0.1)
        events += events_of(("recover", 0)) if chance.random() < 0.97 else []
        events += events_of(("add", 0)) if chance.random() < 0.1 else []
    return events


def test_a_followed_trace_gets_the_findings_of_exact_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, follows: Counter[str]
) -> None:
    for seed in range(100 if NIGHT else 6):
        events = departing(Random(seed))
        followed = without_times(checked(tmp_path, events))
        with monkeypatch.context() as patch:
            patch.setattr(judge, "followed", lambda *_: None)
            assert without_times(check(tmp_path / "events.ndjson")) == followed, seed
    assert follows["followed"] > follows["left"]


@pytest.mark.parametrize("name", ["broker-restart-batch", "coord-timeouts"] if NIGHT else ["coord-timeouts"])
def test_a_recording_with_steps_that_were_refused_is_followed(
    monkeypatch: pytest.MonkeyPatch, follows: Counter[str], name: str
) -> None:
    followed = without_times(check(recording(name)))
    assert follows["followed"]
    monkeypatch.setattr(judge, "followed", lambda *_: None)
    assert without_times(check(recording(name))) == followed


def test_the_plain_functions_take_no_steps_but_those_of_stories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, follows: Counter[str]
) -> None:
    """Each step was replayed: 10⁵ departures in 10⁶ lines took a minute."""
    taken, step_of = list[str](), Spec.step

    def noted(spec: Spec, state: Any, action: str, *how: Any) -> Any:
        taken.append(action)
        return step_of(spec, state, action, *how)

    monkeypatch.setattr(Spec, "step", noted)
    events = events_of(("open", 0))
    for number in range(60):
        events += lived(number)
    for life in range(30):
        status = COMMITTING if life % 2 else OPEN
        events += events_of(("unload",), *(("load", number, status) for number in range(60)), ("recover", 0))
    found = checked(tmp_path, events)
    assert (len(found.findings), found.findings_total) == (MOMENTS, 60 * 30)
    assert follows["followed"] == 1
    assert len(taken) <= 2 * MOMENTS  # what departs, and what made it so


def test_where_the_plain_functions_take_what_a_kernel_refuses_they_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, follows: Counter[str]
) -> None:
    def disagreed(*_: Any) -> Any:
        raise followed_traces.Contradiction

    events = [*events_of(("open", 0)), *lived(0), *events_of(("unload",), ("load", 0, OPEN))]
    right = checked(tmp_path, events)
    monkeypatch.setattr(followed_traces.FollowedTrace, "_refused", disagreed)
    found = checked(tmp_path, events)
    assert [one.story for one in found.findings] == [one.story for one in right.findings]
    assert any("please report this" in note for note in found.sources[0].notes)
    assert follows["followed"] == 2


# -- every number between ----------------------------------------------------------------------------------------------


def coordinators() -> Replay:
    return Replay(SPECS["coordinator"], Options(profile="pulsar"))


def replayed(events: list[UnplacedEvent], *, long: bool, replay: Replay | None = None) -> Iterator[Any]:
    """The result of each event, by exact replay of one state or several."""
    replay = replay or coordinators()
    if long:
        replay.remember()
    for at, made in enumerate(events):
        event = made(at)
        args = tuple(event.args[name] for name in SPECS["coordinator"].parameters[event.action])
        taken = TraceEvent((event.action, args), event.outcome, None, at, at)
        try:
            replay.take(taken)
            yield len(replay.worlds)
        except Departs as departs:
            yield departs.in_brief(replay).rule
            if not replay.take_over(taken, departs.in_brief(replay).rule):
                return
        except (TooMany, BrokenPromise) as end:
            yield type(end)
            return


@pytest.mark.parametrize("seed", range(12))
def test_what_is_remembered_changes_no_answer(seed: int) -> None:
    chance = Random(seed)
    events = departing(chance)
    for _ in range(3):  # what is unknown makes several states possible, each with what it remembers
        events.insert(
            chance.randrange(1, len(events)), *events_of(("admit", 10**6 + chance.randrange(4)), outcome="unknown")
        )
    assert list(replayed(events, long=True)) == list(replayed(events, long=False))


def writes(noted: NotingMap) -> int:
    """The writes that a Map remembers."""
    count, link = 0, noted.last.before
    while link is not None:
        count, link = count + 1, link.before
    return count


@pytest.mark.parametrize("unknown", [0, 1])
def test_a_coordinator_is_not_asked_about_all_its_transactions_at_every_load(
    monkeypatch: pytest.MonkeyPatch, unknown: int
) -> None:
    """One trace with 1,650 loads did not end within 83 s; nor did one of which two states are possible."""
    asked, is_back, compared = list[int](), coordinator.is_back, list[object]()

    def counted(s: Any, number: Any) -> bool:
        asked.append(number)
        return is_back(s, number)

    def equal(one: NotingMap, other: NotingMap) -> bool:
        compared.append(one)
        return one.entries == other.entries

    monkeypatch.setattr(coordinator, "is_back", counted)
    monkeypatch.setattr(NotingMap, "__eq__", equal)
    events, lives, each = events_of(("open", 0)), 30, 5
    events += events_of(*[("admit", 10**6)] * unknown, outcome="unknown")
    for life in range(lives):
        for number in range(each):
            events += lived(each * life + number)
        events += events_of(("unload",), ("recover", 0))
    replay = coordinators()
    *_, last = replayed(events, long=True, replay=replay)
    assert last == 1 + unknown
    assert all(writes(getattr(replay.worlds[0].state, name)) < 10 * each for name in SPECS["coordinator"].maps)
    assert len(asked) <= 3 * lives * each * last  # each when it is new, and when what the table has of it is gone
    assert len(compared) < len(events)


def test_a_transaction_that_is_forgotten_at_a_later_load_is_found() -> None:
    events = [*events_of(("open", 0)), *lived(0), *events_of(("admit", 1), ("begin", 1, 1, 0, 9))]
    events += events_of(("unload",), ("load", 1, OPEN), ("recover", 0), ("unload",), ("recover", 0))
    assert list(replayed(events, long=True))[-1] == "coordinator/every-active-transaction-comes-back"


def test_steps_that_look_at_whole_windows_count_for_more() -> None:
    """A kernel that Python runs is as slow as exact replay: where such steps are many, it is compiled."""
    loop = kernel("coordinator").loop
    assert isinstance(loop, Loop)
    wide = {name for name, code in SPECS["coordinator"].codes.items() if loop._wide[code]}
    assert {"unload", "recover"} <= wide
    assert not wide & {"begin", "load", "decide", "finish"}
