"""Recordings of real Pulsar coordinators: clean ones conform, broken and damaged ones are reported."""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from gapless.traces.check import check
from gapless.traces.events import reading, schema
from gapless.traces.judging.columns import Traces
from gapless.traces.report.values import Finding, Report
from gapless.traces.sources.pulsar import stories
from tests.support.command_line import gapless
from tests.support.night import NIGHT, by_day
from tests.support.pulsar_recordings import (
    BROKEN,
    CLEAN,
    NAMES,
    Line,
    changed,
    copied,
    lines_of,
    manifest,
    recording,
    written,
)


@cache
def judged(name: str, profile: str = "pulsar") -> Report:
    """The report on a recording as it was left, made once; the profile is the one of its broker unless it is named."""
    report = check(recording(name), profile=None if profile == "pulsar" else profile)
    assert report.profile == profile
    return report


def departure(report: Report) -> Finding:
    assert report.verdict == "departs", report.sources
    return report.violations[0]


# -- as they were recorded -----------------------------------------------------------------------------------------


def test_all_ten_recordings_are_here() -> None:
    assert len(NAMES) == 10
    assert set(BROKEN) < set(NAMES)


@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_recording_conforms_with_the_counts_of_its_manifest(name: str) -> None:
    report = judged(name)
    assert (report.verdict, report.profile, report.sources[0].reasons) == ("conforms", "pulsar", [])
    truth = manifest(name)["ground_truth"]
    (coordinators,) = report.coordinators
    counted = (
        coordinators.begun,
        coordinators.ignored,
        coordinators.committed,
        coordinators.aborted,
        coordinators.rejected,
    )
    rejected = truth["log_rejected"] + truth["log_for_absent"]
    assert counted == (*(truth[key] for key in ("new", "ignored_opens", "committed", "aborted")), rejected)
    covered = {step: report.coverage[f"coordinator.{step}"] for step in ("begin", "ignore", "finish", "recover")}
    assert covered["begin"] == truth["new"]
    assert covered["ignore"] == truth["ignored_opens"]
    assert covered["finish"] == truth["committed"] + truth["aborted"]
    assert (
        covered["recover"]
        == coordinators.loads
        == len([line for line in lines_of(name) if line["k"] == "epoch" and line["ev"] == "ready"])
    )
    assert report.sources[0].records == truth["trace_lines"]


@pytest.mark.parametrize("name", ["coord-limit", "broker-limit"])
def test_the_peak_above_the_limit_is_the_one_of_the_manifest(name: str) -> None:
    report = judged(name)
    assert report.coordinators[0].most_active == manifest(name)["ground_truth"]["limit"]["0"]["peak_active"]
    assert report.anomalies["begin_above_the_limit"] > 0


def test_the_strict_profile_departs_at_the_first_transaction_above_the_limit() -> None:
    report = judged("coord-limit", "strict")
    found = departure(report)
    assert found.needs == "a slot is free"
    assert found.here == {"active": 5, "limit": 5}
    active, first = 0, 0
    for number, line in enumerate(lines_of("coord-limit"), 1):
        if line["k"] == "log":
            active += (line["op"] == "NEW") - (line.get("new") in ("COMMITTED", "ABORTED"))
            first = first or (number if active > 5 else 0)
    assert found.where.offset == first
    assert found.story[-1].endswith("--trace tc0 --profile strict")


@pytest.mark.parametrize("profile", ["pulsar", "strict"])
@pytest.mark.parametrize("name", BROKEN)
def test_a_transaction_that_ended_and_comes_back_is_reported(name: str, profile: str) -> None:
    found = departure(judged(name, profile))
    assert found.needs == "a transaction comes back as it was"
    assert len(found.story) <= 25
    story = [step[1] for line in found.story if (step := re.match(r" +\d+\. (.*)", line))]
    number = found.here["number"]
    ends = [at for at, line in enumerate(story) if line.startswith(f"finish(number={number}, to=")]
    restarts = [at for at, line in enumerate(story) if line.startswith("unload()")]
    assert ends
    assert ends[0] < restarts[0] < len(story) - 1
    assert story[-1].startswith(f"load(number={number}, status=OPEN)")
    at = lines_of(name)[found.where.offset - 1]
    assert at["k"] == "table"
    assert {"txn": number, "st": "OPEN"}.items() <= next(row for row in at["rows"] if row["txn"] == number).items()


def test_a_coordinator_is_replayed_once_for_all_its_stories(monkeypatch: pytest.MonkeyPatch) -> None:
    replayed, path = list[int](), stories._path

    def counted(traces: Traces, trace: int, *how: Any) -> Any:
        replayed.append(trace)
        return path(traces, trace, *how)

    monkeypatch.setattr(stories, "_path", counted)
    found = check(recording("coord-recover-nofence"))
    assert (len(found.violations), len(replayed)) == (2, 1)


def came_back_otherwise(name: str) -> list[tuple[int, int]]:
    """By the lines alone, of every load: (line, transaction) where its log had ended, and the table says otherwise."""
    ended: dict[int, str] = {}
    found, ready = [], {line["ep"] for line in lines_of(name) if line["k"] == "epoch" and line["ev"] == "ready"}
    for number, line in enumerate(lines_of(name), 1):
        if line["k"] == "log" and line.get("new") in ("COMMITTED", "ABORTED"):
            ended[line["txn"]] = line["new"]
        elif line["k"] == "table" and line["ep"] in ready:
            ready.discard(line["ep"])  # later tables of an epoch are looks at it, and no loads
            back = [row["txn"] for row in line["rows"] if ended.get(row["txn"], row["st"]) != row["st"]]
            found += [(number, txn) for txn in back]
            for txn in back:
                del ended[txn]  # it is what the coordinator says from then on
    return found


def test_every_transaction_that_came_back_is_found_and_those_of_one_start_are_reported_as_one() -> None:
    """Twelve at the first restart, and four that ended after it at the second; by the reader above, not by ours."""
    back = came_back_otherwise("broker-restart-batch")
    at_first = [txn for line, txn in back if line == back[0][0]]
    assert (len(at_first), len(back)) == (12, 16)
    report = judged("broker-restart-batch")
    assert [(finding.count, finding.traces) for finding in report.findings] == [(12, ["tc0"]), (4, ["tc0"])]
    for finding in report.findings:
        also = next(
            line
            for line in finding.story
            if line.startswith("Other steps break it too, and are assumed for what follows: ")
        )
        numbers = [finding.here["number"], *map(int, re.findall(r"load\(number=(\d+),", also))]
        assert sorted(numbers) == sorted(txn for line, txn in back if line == finding.where.offset)
    (note,) = [line for line in report.not_exercised if line.startswith("coordinator.load: 16 such steps in")]
    assert note.endswith("later steps are not compared with the state before them")


def test_behind_a_takeover_only_departures_in_their_own_right_are_reported() -> None:
    """Two instances at one log: five transactions come back, and one that did not is aborted by both instances."""
    loads, twice = judged("coord-recover-nofence").findings
    back = [txn for _, txn in came_back_otherwise("coord-recover-nofence")]
    assert (loads.rule, loads.count) == ("coordinator/transaction-comes-back-as-it-was", 5)
    assert (twice.rule, twice.count) == ("coordinator/transaction-is-open", 1)
    assert twice.here["number"] not in back
    ends = [
        (line["ep"], line["new"])
        for line in lines_of("coord-recover-nofence")[: twice.where.offset]
        if line["k"] == "log" and line["txn"] == twice.here["number"] and line["op"] == "UPDATE"
    ]
    assert ends == [(0, "ABORTING"), (0, "ABORTED"), (1, "ABORTING")]


@pytest.mark.parametrize("name", BROKEN)
def test_exported_events_of_what_departs_get_the_same_findings(tmp_path: Path, name: str) -> None:
    out = tmp_path / "events.parquet"
    gapless("trace", recording(name), "--out", out)
    direct, again = judged(name), check(out)
    assert [(f.rule, f.count) for f in again.findings] == [(f.rule, f.count) for f in direct.findings]
    assert again.coverage == direct.coverage


def test_the_page_tells_the_real_story() -> None:
    story = departure(judged("broker-restart-batch")).story
    page = (Path(__file__).parents[3] / "docs/found.md").read_text(encoding="utf-8")
    assert "\n".join(story[:-1]) in page


# -- the door ------------------------------------------------------------------------------------------------------


def test_text_json_and_page_tell_what_the_coordinator_did(tmp_path: Path) -> None:
    page, data = tmp_path / "report.html", tmp_path / "report.json"
    result = gapless("check", recording("coord-limit"), "--report", page, "--json", data)
    assert result.exit_code == 0
    sentence = "876 transactions began, at most 20 active at once; 1,033 requests ignored at the limit; 680 committed"
    assert sentence in result.stdout
    drawn = page.read_text(encoding="utf-8")
    assert all(f"<b>{figure}</b>" in drawn for figure in ("876", "1,033", "680"))
    found = json.loads(data.read_text(encoding="utf-8"))
    assert found["sources"][0]["kind"] == "pulsar-recording"
    assert found["coordinators"][0]["ignored"] == 1033


@pytest.mark.parametrize("suffix", ["parquet", "ndjson"])
def test_exported_events_get_the_same_verdict(tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"events.{suffix}"
    assert gapless("trace", recording("broker-timeouts"), "--out", out).exit_code == 0
    direct, again = judged("broker-timeouts"), check(out)
    assert (again.verdict, again.coverage, again.anomalies) == (direct.verdict, direct.coverage, direct.anomalies)
    assert {event.trace for event in reading.read_events(out)} == {"tc0", "cli"}


def test_explain_tells_one_trace() -> None:
    result = gapless("explain", recording("broker-restart-batch"), "--trace", "tc0")
    assert (result.exit_code, "finish(number=112, to=COMMITTED) at line 4633" in result.stdout) == (1, True)
    assert gapless("explain", recording("broker-restart-batch"), "--trace", "cli").stdout.startswith("cli conforms")
    assert "no trace called" in gapless("explain", recording("coord-limit"), "--trace", "missing").stdout


def test_the_verdict_of_every_trace_is_written_down(tmp_path: Path) -> None:
    report = check([recording("broker-restart-batch")], verdicts=tmp_path / "verdicts")
    assert report.verdict == "departs"
    assert list((tmp_path / "verdicts").glob("*.parquet"))


def test_the_file_of_a_recording_names_it_too(tmp_path: Path) -> None:
    assert check(recording("coord-limit") / "trace.ndjson").coverage == judged("coord-limit").coverage
    events = tmp_path / "trace.ndjson"  # a name that events may have, too
    gapless("trace", recording("coord-limit"), "--out", events)
    assert check(events).sources[0].kind == "event-trace"


def test_each_source_is_judged_by_the_profile_of_its_broker(tmp_path: Path) -> None:
    out, foreign = tmp_path / "events.parquet", tmp_path / "foreign.ndjson"
    gapless("trace", recording("coord-limit"), "--out", out)
    schema.write_events(foreign, reading.read_events(out))
    assert check([recording("coord-limit"), out]).profile == "pulsar"
    assert check([recording("coord-limit"), foreign]).profile == "pulsar, strict"


# -- damage --------------------------------------------------------------------------------------------------------


def records(lines: list[Line], **wanted: object) -> list[Line]:
    """The acknowledged records that are like this."""
    return [line for line in lines if line["k"] == "log" and wanted.items() <= line.items()]


def ended_twice(lines: list[Line]) -> list[Line]:
    end = records(lines, new="COMMITTED")[40]
    return [*lines[: (at := lines.index(end) + 1)], end, *lines[at:]]


def committed_and_aborted(lines: list[Line]) -> list[Line]:
    end = records(lines, new="COMMITTED")[40]
    again = end | {"exp": "ABORTING", "new": "ABORTED"}
    answers = [
        {**end, "k": "call", "c": 10**6, "op": "update", "exp": "ABORTING", "new": "ABORTED", "timeout": False},
        {**end, "k": "ret", "c": 10**6, "res": "ok"},
    ]
    at = lines.index(end) + 1
    return [*lines[:at], answers[0], again, answers[1], *lines[at:]]


def number_given_twice(lines: list[Line]) -> None:
    new = records(lines, op="NEW")
    answer = next(line for line in lines if line["k"] == "ret" and line.get("txn") == new[41]["txn"])
    new[41]["txn"] = answer["txn"] = new[40]["txn"]


def outcome_never_written(lines: list[Line]) -> list[Line]:
    end = records(lines, new="COMMITTED")[40]
    return [line for line in lines if line is not end]


def ignored_below_the_limit(lines: list[Line]) -> list[Line]:
    """A request is met with silence although nothing is active, and the limit is 5."""
    ready = next(at for at, line in enumerate(lines) if line.get("ev") == "ready") + 1
    ask = {"t": lines[ready]["t"], "s": "tc", "k": "call", "ep": 0, "c": 10**6, "op": "open", "ttl": 1000}
    return [*lines[:ready], ask, {**ask, "k": "ret", "res": "ignored"}, *lines[ready:]]


def admitted_at_the_limit(lines: list[Line]) -> None:
    """Lower the recorded limit by one."""
    next(line for line in lines if line.get("M") == 1)["M"] = -1


def slot_freed_too_early(lines: list[Line]) -> list[Line]:
    """With limit 1, a second transaction is admitted before the first has ended."""
    begin = next(at for at, line in enumerate(lines) if line.get("M") == 1)

    def first(after: int, **wanted: object) -> int:
        return next(at for at in range(after, len(lines)) if wanted.items() <= lines[at].items())

    end = first(begin, k="log", op="UPDATE", exp="COMMITTING")
    moved = [end, first(end, k="ret"), first(end, k="end_ret")]
    admitted = first(end, k="adm")
    kept = [lines[at] for at in range(admitted + 1) if at not in moved]
    return [*kept, *(lines[at] for at in moved), *lines[admitted + 1 :]]


def forgotten_at_the_restart(lines: list[Line]) -> None:
    next(line for line in lines if line["k"] == "table" and len(line["rows"]) > 3)["rows"].pop()


def returned_as_committing(lines: list[Line]) -> None:
    next(line for line in lines if line["k"] == "table" and len(line["rows"]) > 3)["rows"][0]["st"] = "COMMITTING"


def commit_without_a_record(lines: list[Line]) -> None:
    """Change the answer for an aborted transaction to *committed*."""
    next(line for line in lines if line["k"] == "end_call" and line["act"] == "ABORT")["act"] = "COMMIT"


def rejected_for_no_reason(lines: list[Line]) -> None:
    answer = next(
        line
        for line in lines
        if line["k"] == "ret" and line["res"] == "ok" and "txn" not in line and line["c"] == called(lines)
    )
    answer |= {"res": "err", "err": "InvalidTxnStatusException"}


def called(lines: list[Line]) -> int:
    """The first call that adds a topic."""
    return int(next(line["c"] for line in lines if line.get("op") == "add_part"))


@pytest.mark.parametrize(
    ("damage", "needs"),
    by_day(
        [
            (ended_twice, "the outcome is the one that was decided, and the first"),
            (committed_and_aborted, "the outcome is the one that was decided, and the first"),
            (number_given_twice, "the number is new"),
            (outcome_never_written, "the outcome that is reported is in the log"),
            (ignored_below_the_limit, "the limit is reached"),
            (admitted_at_the_limit, "the limit leaves room"),
            (slot_freed_too_early, "the limit leaves room"),
            (forgotten_at_the_restart, "every active transaction comes back"),
            (returned_as_committing, "a transaction comes back as it was"),
            (commit_without_a_record, "the outcome that is reported is in the log"),
            (rejected_for_no_reason, "only what the spec does not allow is refused"),
        ],
        1 / 4,
    ),
)
def test_one_fault_in_a_clean_recording_is_found(
    tmp_path: Path, damage: Callable[[list[Line]], list[Line] | None], needs: str
) -> None:
    assert check(changed(tmp_path / "whole", "coord-limit", lambda lines: lines)).verdict == "conforms"
    found = departure(check(changed(tmp_path / "damaged", "coord-limit", damage)))
    assert found.needs == needs
    assert len(found.story) <= 25


def test_a_transaction_that_is_timed_out_with_time_left_is_found(tmp_path: Path) -> None:
    def damage(lines: list[Line]) -> None:
        clocked = {line["txn"] for line in lines if line.get("timeout")}
        records(lines, op="NEW", txn=min(clocked))[0]["ttl"] = 10**6

    found = departure(check(changed(tmp_path, "coord-timeouts", damage)))
    assert found.needs == "the transaction has had its time"


def test_a_client_that_is_answered_twice_is_found(tmp_path: Path) -> None:
    def damage(lines: list[Line]) -> list[Line]:
        done = next(
            line
            for line in lines
            if line["k"] == "op_done"
            and line["i"] in {asked["i"] for asked in lines if asked["k"] == "op_call" and asked["op"] == "open"}
        )
        return [*lines, done]

    found = departure(check(changed(tmp_path, "broker-timeouts", damage)))
    assert (found.trace, found.needs) == ("cli", "the request holds a permit")


# -- what cannot be read -------------------------------------------------------------------------------------------


def unreadable(folder: Path) -> str:
    result = gapless("check", folder)
    assert (result.exit_code, result.exception if result.exit_code > 3 else None) == (2, None)
    (source,) = check(folder).sources
    assert source.verdict == "unreadable"
    return " ".join(source.reasons)


def test_a_line_that_is_lost_is_reported(tmp_path: Path) -> None:
    lines = lines_of("coord-limit")
    reason = unreadable(written(tmp_path, lines[:100] + lines[101:], numbered=False))
    assert "line 101: is number 101 of tc, expected 100" in reason


def test_lines_out_of_order_are_reported(tmp_path: Path) -> None:
    lines = lines_of("coord-limit")
    assert "out of order" in unreadable(
        written(tmp_path, [*lines[:9], lines[10], lines[9], *lines[11:]], numbered=False)
    )


def test_a_file_that_is_cut_is_reported(tmp_path: Path) -> None:
    folder = copied(tmp_path, "coord-limit")
    whole = (folder / "trace.ndjson").read_bytes()
    (folder / "trace.ndjson").write_bytes(whole[: len(whole) // 2])
    assert "the last line is cut off" in unreadable(folder)
    lines = whole.splitlines(keepends=True)
    (folder / "trace.ndjson").write_bytes(b"".join(lines[: len(lines) // 2]))
    report = check(folder)
    assert report.verdict == "inconclusive"
    assert "tc does not end in order" in report.sources[0].reasons[0]


@pytest.mark.parametrize(
    ("garbage", "reason"),
    [
        (b"garbage\n", 'line 6: expected {"n"'),
        (b"\xff\xfe\n", "UTF-8"),
        (b'{"n":5,"t":1,"s":"tc","k":"log"\n', "line 6: expected"),
        (b'{"n":5,"t":1,"s":"tc","k":"log","ep":"no"}\n', "line 6: "),
        (b'{"n":5,"t":1,"s":"tc","k":"log",,}\n', "line 6: is not JSON"),
        (b'{"n":5,"t":1,"s":"tc","k":"log","ep":0}\n', "line 6: a line of kind log needs pos"),
        (b'{"n":5,"t":1,"s":"tc","k":"log","ep":99999999999999999999,"pos":"1:1"}\n', "line 6: "),
        (b"\n", 'line 6: expected {"n"'),
        (b'{"n":5,"t":1,"s":"tc","k":"mark","k":"log"}\n', "line 6: the key 'k' stands there twice"),
        (b'{"n":5,"t":1,"s":"tc","k":"mark","\\u006b" : "log"}\n', "line 6: the key 'k' stands there twice"),
        (b'{"n":5,"t":1,"s":"tc","k":"mark","was":{"n":1},"t":2}\n', "line 6: the key 't' stands there twice"),
        (b'{"n":5,"t":1,"s":"tc","k":"log","ep":0,"ep":0,"pos":"1:1"}\n', "line 6: is no line of kind log"),
    ],
)
def test_garbage_is_reported_with_its_line(tmp_path: Path, garbage: bytes, reason: str) -> None:
    folder = copied(tmp_path, "coord-limit")
    lines = (folder / "trace.ndjson").read_bytes().splitlines(keepends=True)
    (folder / "trace.ndjson").write_bytes(b"".join([*lines[:5], garbage, *lines[6:]]))
    assert reason in unreadable(folder)


def test_what_is_named_as_the_head_is_may_be_within_something_else(tmp_path: Path) -> None:
    lines = lines_of("coord-limit")
    lines[5:5] = [{"n": 0, "t": lines[5]["t"], "s": "tc", "k": "mark", "was": {"k": "log", "n": 1}, "says": '"k": 1'}]
    assert check(written(tmp_path, lines)).verdict == "conforms"


def test_a_load_without_its_line_is_reported(tmp_path: Path) -> None:
    lines = lines_of("coord-recover")
    tables = [at for at, line in enumerate(lines) if line["k"] == "table"]
    for at in tables[:3]:
        lines[at] = {**lines[at], "k": "mark"}
    assert "no table before that says what it found" in unreadable(written(tmp_path, lines))


def of_another_epoch(lines: list[Line]) -> None:
    records(lines, op="ADD_PARTITION")[7]["ep"] = 77


def answered_again(lines: list[Line]) -> list[Line]:
    at = next(at for at, line in enumerate(lines) if line["k"] == "ret")
    return [*lines[: at + 1], lines[at], *lines[at + 1 :]]


def answered_unasked(lines: list[Line]) -> None:
    next(line for line in lines if line["k"] == "ret")["c"] = 10**6


def added_without_a_record(lines: list[Line]) -> None:
    lines.remove(records(lines, op="ADD_PARTITION")[7])


def ended_without_a_record(lines: list[Line]) -> list[Line]:
    """Drop the end of a transaction that its coordinator timed out, so that no client was answered."""
    clocked = {line["txn"] for line in lines if line.get("timeout")}
    end = [line for line in records(lines, new="ABORTED") if line["txn"] in clocked][-1]
    return [line for line in lines if line is not end]


def test_an_outcome_without_a_record_is_reported_even_if_no_client_heard_of_it(tmp_path: Path) -> None:
    report = check(changed(tmp_path, "coord-timeouts", ended_without_a_record))
    assert report.verdict == "inconclusive"
    assert "update calls to ABORTED were answered well" in report.sources[0].reasons[0]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (of_another_epoch, "an epoch that was never opened"),
        (answered_again, "the second of its kind for one call"),
        (answered_unasked, "an answer to no call"),
        (added_without_a_record, "more add_part calls were answered well than records"),
    ],
)
def test_lines_that_do_not_fit_together_are_reported(
    tmp_path: Path, damage: Callable[[list[Line]], list[Line] | None], reason: str
) -> None:
    report = check(changed(tmp_path, "coord-limit", damage))
    assert report.verdict != "conforms"
    assert reason in " ".join(report.sources[0].reasons)


@pytest.mark.parametrize("epoch", [1, 3, 6, 9])
def test_what_was_there_before_the_recording_is_taken_for_granted(tmp_path: Path, epoch: int) -> None:
    """The later part of a life: it begins with a table that is not empty. What a lost instance answers is left out."""
    lines = lines_of("coord-recover")
    begin = next(at for at, line in enumerate(lines) if line.get("ev") == "opening" and line["ep"] == epoch)
    later = [line for line in lines[begin:] if line.get("ep", epoch) >= epoch]
    asked = {line["e"] for line in later if line["k"] == "end_call"}
    report = check(written(tmp_path, [line for line in later if line["k"] != "end_ret" or line["e"] in asked]))
    assert (report.verdict, report.sources[0].reasons) == ("conforms", [])
    assert report.coverage["coordinator.recover"] >= 5


def test_nothing_in_it_is_inconclusive(tmp_path: Path) -> None:
    (tmp_path / "trace.ndjson").touch()
    assert gapless("check", tmp_path).exit_code == 3
    report = check(written(tmp_path / "none", [line for line in lines_of("coord-limit") if line["k"] != "epoch"]))
    assert report.verdict == "inconclusive"
    assert "no coordinator is loaded in it" in report.sources[0].reasons[-1]


def test_no_damage_makes_a_traceback(tmp_path: Path) -> None:
    folder = copied(tmp_path, "broker-timeouts")
    whole = (folder / "trace.ndjson").read_bytes()
    chance = Random("bytes")
    for _ in range(25 if NIGHT else 8):
        damaged = bytearray(whole)
        for _ in range(chance.choice((1, 1, 3))):
            damaged[chance.randrange(len(damaged))] = chance.choice(b'0123456789abc{}[]",:\n\x00\xff')
        (folder / "trace.ndjson").write_bytes(damaged)
        assert check(folder).verdict in ("conforms", "departs", "unreadable", "inconclusive")
