"""Claims of an event `end`: the system is at rest, and nothing is lost, undecided or unwritten."""

from pathlib import Path

import pytest

from gapless.spec.catalog import SPECS
from gapless.spec.op_batch import INTERVAL, MAX_SIZE
from gapless.traces.check import check
from gapless.traces.events import schema
from gapless.traces.report.values import Report
from tests.support.command_line import gapless
from tests.support.event_files import UnplacedEvent, append, index, opened, step

Call = tuple[str, *tuple[int, ...]]

ROLLED_BACK: list[Call] = [("open", 0, 20), ("prepare", 0, 0, 1, 1), ("ask_to_roll_back", 0), ("roll_back",)]
COMMITTED: list[Call] = [
    *(("open", 0, 20), ("prepare", 0, 0, 1, 1), ("flush",), ("answer",), ("run",)),
    *(("ask_to_commit", 0), ("commit", 1, 1)),
]
ONE_BATCH: list[Call] = [
    ("open", 0, 0, 0, 0, -1, 0, -1, -1, 0), ("lead", 0, 0), ("append", 0, 0, 1, 0, 0, 70, 9, 1, 1, 1, 1),
]  # fmt: skip
WRITTEN: list[Call] = [("open", 0, 7, 0), ("add", 0, 0), ("write", 0, 0, 0, 0), ("decide", 0, 0, 1, 1)]
REST: dict[str, tuple[list[Call], dict[str, list[Call]]]] = {
    "log": (
        [("open", 0, 1024), ("append", 0, 100, 0, 1, 1, 1, 1, 9), ("flush", 100)],
        {"every-record-is-on-disk": [("open", 0, 1024), ("append", 0, 100, 0, 1, 1, 1, 1, 9)]},
    ),
    "queue": (
        [("open", 0, 0), ("append", 0, 1, 0, 340, 0), ("index", 0, 0, 340, 0)],
        {"every-message-has-its-entry": [("open", 0, 0), ("append", 0, 1, 0, 340, 0)]},
    ),
    "kafka_transaction": (
        [*WRITTEN, ("mark", 0, 0, 0, 1), ("complete", 7, 0)],
        {
            "nothing-hangs": WRITTEN,
            "every-decision-is-complete": [*WRITTEN, ("mark", 0, 0, 0, 1)],
        },
    ),
    "partition": (
        [*ONE_BATCH, ("flush", 1), ("raise_watermark", 1, -1), ("save", 1, 1)],
        {
            "all-is-committed": [*ONE_BATCH, ("flush", 1), ("save", 1, 1)],
            "all-is-on-disk": [*ONE_BATCH, ("raise_watermark", 1, -1), ("save", 1, 1)],
            "snapshot-is-at-the-end": [*ONE_BATCH, ("flush", 1), ("raise_watermark", 1, -1)],
        },
    ),
    "dispatch": (
        [("open", 0, 1), ("scan", 0), ("take", 0), ("write", 0), ("commit", 1), ("flush", 1)],
        {
            "every-message-is-visible": [("open", 0, 1), ("scan", 0), ("take", 0), ("write", 0)],
            "every-entry-is-on-disk": [("open", 0, 1), ("scan", 0), ("take", 0), ("write", 0), ("commit", 1)],
        },
    ),
    "ring": (
        [("open", 2), ("cut", 0), ("decode", 0), ("dispatch", 0)],
        {"every-batch-is-dispatched": [("open", 2), ("cut", 0), ("decode", 0)]},
    ),
    "transaction": (
        [("open", 0, 0, 0), ("prepare", 7, 40, 1), ("commit", 7, 40, 90, 1, 0), ("mark", 7)],
        {
            "transaction-is-decided-or-set-aside": [("open", 0, 0, 0), ("prepare", 7, 40, 1)],
            "op-names-what-was-decided": [("open", 0, 0, 0), ("prepare", 7, 40, 1), ("commit", 7, 40, 90, 1, 0)],
        },
    ),
    "checkpoint": (
        [
            ("open", 0, 0),
            ("half", 0),
            ("op", 0, 1),
            ("resolve", 0, 1, 0),
            ("advance", 1),
            ("consume_op", 0),
            ("advance_ops", 1),
        ],
        {
            "every-half-is-done-with": [("open", 0, 0), ("half", 0), ("resolve", 0, 3, 0)],
            "every-op-is-done-with": [("open", 0, 0), ("op", 0, 0), ("consume_op", 0)],
        },
    ),
    "check_service": (
        [
            *(("open", 0), ("prepare",), ("commit",), ("enqueue", 0, 2), ("write",)),
            *(("resolve", 0, 1, 0), ("advance", 1)),
        ],
        {
            "half-is-decided-or-set-aside": [
                *(("open", 0), ("prepare",), ("put_back",), ("resolve", 0, 2, 1)),
                *(("advance", 1),),
            ],
            "op-names-what-was-decided": [("open", 0), ("prepare",), ("commit",)],
            "every-half-is-done-with": [("open", 0), ("prepare",), ("commit",), ("enqueue", 0, 2), ("write",)],
        },
    ),
    "op_batch": (
        [("open", MAX_SIZE, INTERVAL), ("enqueue", 7, 2, 1), ("write", 1, 2, 2, 1, 1), ("name", 7)],
        {"no-half-waits-for-its-op": [("open", MAX_SIZE, INTERVAL), ("enqueue", 7, 2, 1)]},
    ),
    "coordinator": (
        [("open", 2), ("admit", 0), ("begin", 0, 0, 0, 9), ("decide", 0, 3), ("finish", 0, 5)],
        {
            "no-transaction-is-active": [("open", 2), ("admit", 0), ("begin", 0, 0, 0, 9), ("decide", 0, 3)],
            "no-request-to-begin-is-left": [("open", 2), ("admit", 0)],
        },
    ),
    "permits": (
        [("open", 1, 0), ("acquire", 0), ("wait", 1), ("reply", 0), ("acquire", 1), ("reply", 1)],
        {
            "no-permit-is-held": [("open", 1, 0), ("acquire", 0)],
            "nobody-waits": [("open", 1, 0), ("acquire", 0), ("wait", 1), ("reply", 0)],
        },
    ),
    "broker": (
        [*COMMITTED, ("flush",), ("dispatch", 1), ("mark", 2), ("flush",)],
        {
            "transaction-is-decided-or-set-aside": [("open", 0, 20), ("prepare", 0, 0, 1, 1), ("flush",)],
            "op-names-what-was-decided": [*ROLLED_BACK, ("flush",)],
            "consumers-see-what-was-committed": [*COMMITTED, ("mark", 2), ("flush",), ("flush",)],
            "every-record-is-on-disk": [*ROLLED_BACK, ("mark", 1), ("flush",)],
        },
    ),
}
"""Of each spec, a trace that ends at rest; and for each property at rest, one that does not."""
BROKEN = [(spec, rule) for spec, (_, broken) in REST.items() for rule in broken]


MADE = "end 1 → 2, positions[1] 0 → 340, sizes[1] 0 → 340"


def events_of(spec: str, calls: list[Call], *, trace: str = "one") -> list[UnplacedEvent]:
    return [step(action, *args, spec=spec, trace=trace) for action, *args in calls]


def checked(path: Path, events: list[UnplacedEvent]) -> Report:
    file = path / "events.ndjson"
    schema.write_events(file, [event(at) for at, event in enumerate(events)])
    return check(file)


def test_every_spec_that_says_what_holds_at_rest_has_its_traces() -> None:
    by_name = {name: {need.id.partition("/")[2] for need in spec.rules.values()} for name, spec in SPECS.items()}
    assert set(REST) == {name for name, spec in SPECS.items() if spec.at_rest}
    for name, (_, broken) in REST.items():
        assert len(broken) == len(SPECS[name].at_rest)
        assert set(broken) <= by_name[name]


@pytest.mark.parametrize("spec", REST)
def test_a_trace_that_ends_at_rest_conforms(tmp_path: Path, spec: str) -> None:
    found = checked(tmp_path, events_of(spec, [*REST[spec][0], ("end",)]))
    assert found.verdict == "conforms", [finding.story for finding in found.findings]
    assert found.coverage[f"{spec}.end"] == 1
    assert not [line for line in found.not_exercised if line.startswith(f"{spec}.end")]


@pytest.mark.parametrize(("spec", "rule"), BROKEN)
def test_what_is_left_at_the_end_is_reported(tmp_path: Path, spec: str, rule: str) -> None:
    calls = REST[spec][1][rule]
    assert checked(tmp_path, events_of(spec, calls)).verdict == "conforms"  # so far: it may still come
    found = checked(tmp_path, events_of(spec, [*calls, ("end",)]))
    (finding,) = found.findings
    assert (found.verdict, finding.rule, finding.where.offset) == ("departs", f"{spec}/{rule}", 2 + len(calls))
    assert finding.message.startswith(f'one, line {2 + len(calls)}: end breaks the rule "{finding.needs}": ')
    assert f'end breaks the rule "{finding.needs}".' in finding.story
    assert f"Consequence: {finding.otherwise}." in finding.story


SMALL = ("dispatch", "log", "queue", "ring")
"""Specs whose kernels are soon compiled: a rule that is ignored makes another kernel."""


@pytest.mark.parametrize(("spec", "rule"), [one for one in BROKEN if one[0] in SMALL])
def test_what_is_ignored_is_not_reported(tmp_path: Path, spec: str, rule: str) -> None:
    (finding,) = checked(tmp_path, events_of(spec, [*REST[spec][1][rule], ("end",)])).findings
    assert not check(tmp_path / "events.ndjson", ignore=[finding.rule]).findings


def test_the_story_of_a_message_that_was_lost(tmp_path: Path) -> None:
    lost = [opened(), append(0, 0), append(1, 340), index(0, 0), step("end")]
    (finding,) = checked(tmp_path, lost).findings
    assert finding.story == [
        "queue TopicTest/3 departs at events.ndjson, line 6.",
        "",
        f"  1. append(number=1, count=1, position=340, size=340, tag=0)   {MADE}",
        "  2. index(number=0, position=0, size=340, tag=0)               indexed 0 → 1, entry_sizes[0] 0 → 340",
        "  3. end()                                                      not allowed",
        "",
        'end breaks the rule "every message has its entry".',
        "Here: end = 2, indexed = 1.",
        "Consequence: a message is in the log and no consumer ever receives it.",
        "2 of 5 events are not the last to change a value that the rule reads, and are left out.",
        f"Again: gapless explain {tmp_path}/events.ndjson --trace TopicTest/3",
    ]


def test_a_system_may_begin_again_and_come_to_rest_again(tmp_path: Path) -> None:
    again = [opened(), append(0, 0), index(0, 0), step("end"), append(1, 340), index(1, 340), step("end")]
    found = checked(tmp_path, again)
    assert (found.verdict, found.coverage["queue.end"]) == ("conforms", 2)
    assert checked(tmp_path, again[:5]).verdict == "conforms"  # it continues, without a claim to be at rest
    assert checked(tmp_path, [*again[:5], step("end")]).verdict == "departs"


def test_who_does_not_say_that_all_came_to_rest_is_not_asked(tmp_path: Path) -> None:
    one, other = ([*events_of("queue", REST["queue"][0], trace=name)] for name in ("A/0", "B/0"))
    end = step("end", trace="A/0")
    says = "in events.ndjson lack an end event: not checked if anything is lost or left undecided in the end"
    unasked = [line for line in checked(tmp_path, [*one, *other]).not_exercised if "queue.end" in line]
    assert unasked == [f"queue.end: all traces {says}"]
    unasked = [line for line in checked(tmp_path, [*one, end, *other]).not_exercised if "queue.end" in line]
    assert unasked == [f"queue.end: some traces {says}"]


@pytest.mark.parametrize("outcome", ["unknown", "refused"])
def test_a_claim_that_may_not_have_been_made_is_no_violation(tmp_path: Path, outcome: str) -> None:
    """A store that refused to stop is right if something is left; an unknown stop claims nothing."""
    left = [opened(), append(0, 0), step("end", outcome=outcome)]
    assert checked(tmp_path, left).verdict == "conforms"


def test_the_rules_of_rest_are_listed() -> None:
    listed = gapless("rules").stdout
    assert "transaction/transaction-is-decided-or-set-aside" in listed
    assert "the transaction is decided or set aside" in listed
