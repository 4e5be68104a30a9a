"""Transactions that a coordinator leaves open, or decided, long after it was to end them: reported, and no verdict."""

from functools import cache
from pathlib import Path

import pytest

from gapless.traces.check import check
from gapless.traces.report.values import OverdueRow, Report
from tests.support.command_line import gapless
from tests.support.pulsar_recordings import CLEAN, Line, changed, lines_of, recording

REPORTED = "pulsar_clock_never_ends"
HOUR = 3_600_000_000  # microseconds


@cache
def judged(name: str) -> Report:
    return check(recording(name))


def overdue(path: Path) -> list[tuple[str, str]]:
    """Each overdue trace of a recording, which conforms, and the kind of its task."""
    report = check(path)
    assert report.verdict == "conforms", report.sources[0].reasons
    assert report.anomalies.get("overdue", 0) == len(report.overdue)
    return [(row.trace, row.task) for row in report.overdue]


def later(lines: list[Line]) -> list[Line]:
    """The same, but the coordinator lives for an hour more before its last load is closed."""
    last = max(at for at, line in enumerate(lines) if line["k"] == "epoch" and line["ev"] == "closing")
    return [line | {"t": line["t"] + HOUR * (at >= last)} for at, line in enumerate(lines)]


def without(lines: list[Line], number: int, *statuses: str) -> list[Line]:
    """The same without all that gives a transaction one of these statuses."""
    calls = {
        (line["s"], line["ep"], line["c"])
        for line in lines
        if line["k"] == "call" and line.get("txn") == number and line.get("new") in statuses
    }
    return [
        line
        for line in lines
        if not (line["k"] == "log" and line.get("txn") == number and line.get("new") in statuses)
        and not (line["k"] in ("call", "ret") and (line["s"], line["ep"], line["c"]) in calls)
        and line["k"] not in ("end_call", "end_ret", "op_call", "op_done", "op_blocked")
    ]


def timed_out(name: str) -> int:
    """The last transaction of a recording that the coordinator's clock aborted, and that was aborted then."""
    lines = lines_of(name)
    ended = {line["txn"] for line in lines if line["k"] == "log" and line.get("new") == "ABORTED"}
    return int(
        max(line["txn"] for line in lines if line["k"] == "call" and line.get("timeout") and line["txn"] in ended)
    )


def test_a_transaction_that_no_clock_ends_is_an_anomaly_with_its_amount() -> None:
    report = judged(REPORTED)
    assert (report.verdict, report.sources[0].reasons, report.anomalies["overdue"]) == ("conforms", [], 1)
    (row,) = report.overdue
    assert isinstance(row, OverdueRow)
    assert (row.trace, row.task) == ("tc0/11", "open transaction")
    assert 22_000 <= row.late < 23_000
    (found,) = [finding for finding in report.findings if finding.rule == "deadline/overdue"]
    assert (found.severity, found.here, found.count) == ("anomaly", {"overdue": row.late}, 1)
    assert found.message == "tc0/11: open transaction overdue by 22 s (docs/operator.md#overdue)"
    assert "tc0/11: open transaction overdue by 22 s, since 2026-11-21 07:54:15 UTC" in str(report)


def test_even_the_strict_profile_does_not_accuse_it() -> None:
    report = check(recording(REPORTED), profile="strict", only=["deadline"])
    assert (report.verdict, report.anomalies) == ("conforms", {"overdue": 1})


@pytest.mark.parametrize(
    ("asked", "code"),
    [(["overdue=20s"], 1), (["overdue=1h"], 0), (["overdue=1h", "overdue=1s"], 1), (["anomaly"], 1), (["hazard"], 0)],
)
def test_it_fails_a_check_from_an_amount_on(asked: list[str], code: int) -> None:
    options = [word for one in asked for word in ("--fail-on", one)]
    done = gapless("check", str(recording(REPORTED)), "--only", "deadline", *options)
    assert done.exit_code == code, done.output
    assert ("exit code 1: fails on 1 anomaly" in done.output) == (code == 1)


def test_one_that_is_known_fails_no_check(tmp_path: Path) -> None:
    asked = ("check", str(recording(REPORTED)), "--fail-on", "overdue=20s", "--baseline", str(tmp_path / "known.json"))
    assert gapless(*asked, "--update-baseline").exit_code == 0
    assert gapless(*asked).exit_code == 0


def left_decided(name: str) -> set[str]:
    """By the lines alone, the transactions that are COMMITTING or ABORTING when the recording ends."""
    status = {line["txn"]: line["new"] for line in lines_of(name) if line["k"] == "log" and line["op"] == "UPDATE"}
    return {f"tc0/{number}" for number, last in status.items() if last in ("COMMITTING", "ABORTING")}


@pytest.mark.parametrize("name", CLEAN)
def test_nothing_is_overdue_in_a_sound_recording_but_ends_that_failed(name: str) -> None:
    """In *coord-mixed* four that took part answered with errors: no clock and no client tries these ends again."""
    report = judged(name)
    assert {row.trace for row in report.overdue} == (left_decided(name) if name == "coord-mixed" else set())
    assert len(report.overdue) == report.anomalies.get("overdue", 0) == (4 if name == "coord-mixed" else 0)
    assert {row.task for row in report.overdue} <= {"decided transaction"}


@pytest.mark.parametrize("name", ["broker-timeouts", "coord-timeouts"])
def test_what_is_open_or_aborting_at_an_orderly_close_is_overdue(name: str, tmp_path: Path) -> None:
    number = timed_out(name)
    still_open = changed(tmp_path / "open", name, lambda lines: later(without(lines, number, "ABORTING", "ABORTED")))
    assert overdue(still_open) == [(f"tc0/{number}", "open transaction")]
    aborting = changed(tmp_path / "aborting", name, lambda lines: later(without(lines, number, "ABORTED")))
    assert overdue(aborting) == [(f"tc0/{number}", "decided transaction")]


def test_a_coordinator_that_was_killed_may_have_ended_it(tmp_path: Path) -> None:
    def killed(lines: list[Line]) -> list[Line]:
        return [line for line in lines if line["k"] != "epoch" or line["ev"] not in ("closing", "closed")]

    assert overdue(changed(tmp_path / "killed", REPORTED, killed)) == []


def test_a_coordinator_that_was_not_loaded_was_not_late(tmp_path: Path) -> None:
    """Its time begins with the load: this one closes two seconds later, less than the rounds of its clock."""

    def loaded_late(lines: list[Line]) -> list[Line]:
        (closing,) = [line["t"] for line in lines if line["k"] == "epoch" and line["ev"] == "closing"]
        for line in lines:
            if line["k"] == "epoch" and line["ev"] == "ready":
                line["t"] = closing - 2_000_000
        return lines

    assert overdue(changed(tmp_path / "late", REPORTED, loaded_late)) == []


def test_its_events_say_the_same(tmp_path: Path) -> None:
    events = tmp_path / "events.ndjson"
    assert gapless("trace", str(recording(REPORTED)), "--out", str(events)).exit_code == 0
    again, before = check(events), judged(REPORTED)
    (row,) = again.overdue
    assert row.model_copy(update={"source": before.overdue[0].source}) == before.overdue[0]
    assert again.anomalies == before.anomalies
