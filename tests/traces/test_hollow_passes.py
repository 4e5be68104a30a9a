"""No check passes without a judgement: for any selection of rules, one of them was checked."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless import Report, check
from gapless.spec.catalog import SPECS
from gapless.traces.events import schema
from gapless.traces.rules import rules
from tests.support import rooms
from tests.support.event_files import UnplacedEvent, append, index, opened, step
from tests.support.night import NIGHT
from tests.support.rocketmq.recordings import recording, recording_as_left

IDS = [rule.id for rule in rules()]
NAMES = st.lists(st.sampled_from([*SPECS, *IDS]), max_size=6)
FEW = st.lists(st.sampled_from(["log", "queue", *[i for i in IDS if i.startswith(("log/", "queue/"))]]), max_size=6)


def written(folder: Path, events: list[UnplacedEvent]) -> Path:
    """A file of these events."""
    schema.write_events(folder / "events.ndjson", [event(at) for at, event in enumerate(events)])
    return folder / "events.ndjson"


@cache
def trace() -> Path:
    """A trace of a queue with a refused step, and an observation after it."""
    events = [opened(), append(0, 0), index(0, 0, saw={"indexed": 1}), append(5, 340, outcome="refused")]
    return written(rooms.room("hollow"), events)


@cache
def whole(name: str) -> Report:
    return check(PATHS[name]())


PATHS: dict[str, Callable[[], Path]] = {
    "store": lambda: recording_as_left("pop_retry") / "store",
    "queues in a database": lambda: recording_as_left("odd/rocksdb_queues"),
    "trace": trace,
}


@pytest.mark.parametrize("name", PATHS if NIGHT else ["store", "trace"])  # processes open a database
@settings(max_examples=max(4, settings().max_examples // 3))  # each selection has kernels of its own to make
@given(only=st.one_of(NAMES, FEW), ignore=st.one_of(NAMES, FEW))
def test_what_conforms_was_judged_by_a_rule_that_is_left(name: str, only: list[str], ignore: list[str]) -> None:
    report = check(PATHS[name](), only=only, ignore=ignore)
    assert report.verdict in ("conforms", "inconclusive")
    if report.verdict == "conforms":
        left = {i for i in IDS if not only or i in only or i.split("/")[0] in only}
        left -= {i for i in IDS if i in ignore or i.split("/")[0] in ignore}
        taken = {step.split(".")[0] for step, count in report.coverage.items() if count}
        assert {i.split("/")[0] for i in left} & taken, "a spec of which steps were taken has a rule left"
        assert report.counts.rules > 0
        assert report.counts.events > 0 or name == "trace"
        assert report.counts.rules <= len(left)


@pytest.mark.parametrize(
    ("name", "only"),
    [
        ("store", ["coordinator"]),
        ("store", ["queue/numbers-are-ordered"]),  # an invariant of the spec: no recording shows whether it holds
        ("store", ["queue/client-sent-the-message"]),  # without a client log
        ("queues in a database", ["transaction"]),
        ("trace", ["log"]),
        ("trace", ["log/what-the-broker-saw-is-what-its-steps-made"]),
    ],
)
def test_a_check_that_is_left_with_nothing_is_inconclusive(name: str, only: list[str]) -> None:
    report = check(PATHS[name](), only=only)
    assert (report.verdict, report.counts.rules) == ("inconclusive", 0)
    assert any("nothing was judged" in reason or "not checked" in reason for reason in report.sources[0].reasons)


@pytest.mark.parametrize(
    "rule", ["broker-refuses-only-what-is-not-allowed", "what-the-broker-saw-is-what-its-steps-made"]
)
def test_a_rule_about_events_judges_where_an_event_says_it(rule: str, tmp_path: Path) -> None:
    assert check(trace(), only=[f"queue/{rule}"]).counts.rules == 1
    silent = written(tmp_path, [opened(), append(0, 0), index(0, 0)])
    assert check(silent, only=[f"queue/{rule}"]).verdict == "inconclusive"


def test_ignoring_every_rule_of_a_spec_leaves_its_events_unjudged() -> None:
    report, less = whole("store"), check(PATHS["store"](), ignore=["log"])
    assert less.verdict == "conforms"
    assert less.counts.by_spec["log"] == 0 < report.counts.by_spec["log"]
    assert less.counts.by_spec["queue"] == report.counts.by_spec["queue"] > 0


def test_one_topic_is_judged_and_counted_alone() -> None:
    store = recording("normal")
    one = check(store, topic="orders")
    assert one.verdict == "conforms"
    messages = sum(row.messages for row in one.queues)
    assert {row.topic for row in one.queues} == {"orders"}
    assert (
        one.coverage["queue.append"] == one.coverage["queue.index"] == messages < check(store).coverage["queue.append"]
    )


def test_a_step_without_a_rule_is_not_judged(tmp_path: Path) -> None:
    events = [opened(), append(0, 0), index(0, 0), step("rebuild"), index(0, 0)]
    report = check(written(tmp_path, events))
    assert (report.verdict, report.counts.events) == ("conforms", 4)


def test_who_saw_no_field_has_observed_nothing(tmp_path: Path) -> None:
    """No step of this trace has a need, and an empty `saw` is no evidence either."""
    events = [step("open", 0, spec="cursor", saw=saw) for saw in ({}, {}, {"end": 0})]
    for count, verdict in ((1, "inconclusive"), (2, "inconclusive"), (3, "conforms")):
        assert check(written(tmp_path, events[:count])).verdict == verdict
