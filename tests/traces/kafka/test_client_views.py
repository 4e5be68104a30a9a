"""The answers to clients about a partition: what is lost, comes twice or never comes is found."""

import json
from pathlib import Path
from typing import Any

import pytest

from gapless import check
from gapless.traces.problems import Unreadable
from gapless.traces.report.values import Finding, Report
from gapless.traces.sources.kafka.clients.client_log import client_log
from tests.support.kafka.recordings import recording

ACKNOWLEDGED = "partition_client/record-that-was-acknowledged-is-in-the-log"
RECEIVED = "partition_client/record-that-is-received-is-in-the-log"
ONCE = "partition_client/reader-receives-a-record-once"
EVERY = "partition_client/reader-receives-every-committed-record"
END, MARKER = 147, 12
"""Of orders-0 in 3.5.2-txn: the log's end, and the offset of its first marker, which aborts all below but 0 to 2."""
ORDERS = {"topic": "orders", "partition": 0}
COMMITTED = {"isolation": "read_committed", **ORDERS}
Line = dict[str, Any]


@pytest.fixture(scope="module")
def answers() -> list[Line]:
    """The answers of 3.5.2-txn."""
    text = (recording("3.5.2-txn") / "client.ndjson").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def seen(answers: list[Line]) -> list[int]:
    """The offsets of orders-0 that a reader of committed transactions received."""
    (read,) = (
        one for one in answers if one["op"] == "read" and one["isolation"] == "committed" and not one["partition"]
    )
    found: list[int] = read["offsets"]
    return found


def report_of(directory: Path, lines: list[Line], room: Path) -> Report:
    file = room / "answers.ndjson"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return check(directory, client=file, jobs=1)


def sent(offset: int, **more: Any) -> Line:
    return {"op": "send", "p": "p", "txn": 0, "res": "ok", "offset": offset, **ORDERS, **more}


def received(session: int, offset: int, **more: Any) -> Line:
    return {"op": "received", "c": "c", "session": session, "offset": offset, **COMMITTED, **more}


def position(session: int, offset: int) -> Line:
    return {"op": "position", "c": "c", "session": session, "offset": offset, **COMMITTED}


def by_rule(report: Report) -> dict[str, Finding]:
    return {one.rule: one for one in report.violations}


def test_each_wrong_answer_is_found_at_its_line(answers: list[Line], seen: list[int], tmp_path: Path) -> None:
    behind = next(offset for offset in seen if offset > MARKER)
    lines = [
        sent(END), *answers, sent(MARKER),
        received(1, 0), received(1, 1), received(1, 1),  # twice
        received(2, 0), received(2, 2),  # one is missing
        received(3, 0), received(3, MARKER),  # a marker
        received(4, 0), position(4, 2),  # one is missing at the end
        position(5, 0), received(5, 1),  # one is missing at the beginning
        received(6, 0), received(6, behind),  # several are missing, over a whole run
    ]  # fmt: skip
    found, first = by_rule(report_of(recording("3.5.2-txn") / "n1", lines, tmp_path)), len(answers) + 2
    assert {rule: one.count for rule, one in found.items()} == {ACKNOWLEDGED: 2, ONCE: 1, EVERY: 4, RECEIVED: 1}
    assert (found[ACKNOWLEDGED].position, found[ONCE].position, found[EVERY].position) == (MARKER, 1, 0)
    assert {one.where.file for one in found.values()} == {"orders-0/00000000000000000000.log"}
    texts = {rule: "\n".join(one.story) for rule, one in found.items()}
    assert f"line {first:,} of answers.ndjson: p has the answer that a record lies at offset 12." in texts[ACKNOWLEDGED]
    assert "At offset 12 lies a marker." in texts[ACKNOWLEDGED]
    assert (
        f"Lines {first + 2:,} and {first + 3:,} of answers.ndjson: session 1 of c received offset 1 twice"
        in texts[ONCE]
    )
    assert f"Line {first + 11:,} of answers.ndjson: session 5 of c received offset 1, and never 0" in texts[EVERY]
    assert all(len(one.story) <= 25 for one in found.values())


def test_lawful_answers_accuse_no_broker(answers: list[Line], seen: list[int], tmp_path: Path) -> None:
    """Offsets come again in another session, or without one; an answer without an offset says nothing."""
    lines = [
        *answers, sent(-1, acks="0"), sent(END + 9, res="TimeoutException"),
        *(received(1, offset) for offset in seen[:40]), position(1, seen[40]),
        *(received(2, offset) for offset in seen[20:]), position(2, END),
        received(-1, 2), received(-1, 0), received(-1, 0),
        position(3, 0), position(3, 0), position(4, END + 5), received(4, 0), received(4, 1),
        position(5, seen[2]), received(5, seen[9]), received(5, seen[10]),  # from a position that may be refused
    ]  # fmt: skip
    report = report_of(recording("3.5.2-txn") / "n1", lines, tmp_path)
    assert report.verdict == "conforms"
    assert report.coverage["partition_client.receive"] > 10
    assert report.coverage["partition_client.stop"] > 2


def test_losses_that_are_permitted_are_doubts(tmp_path: Path) -> None:
    """A broker that was killed may lose its log's end; nothing of the first epoch is written twice.

    Later a record may come again where the log was cut off, but not if both times it has the log's epoch.
    """
    folder, first_marker = recording("4.4.0-kill"), 17
    right = [json.loads(line) for line in (folder / "client.ndjson").read_text("utf-8").splitlines()]
    lost = report_of(folder / "crashed", right, tmp_path)
    assert lost.verdict == "inconclusive"
    assert any("has no record: its broker did not stop in order" in reason for reason in lost.sources[0].reasons)
    again = [received(session, 156, partition=1, epoch=epoch) for session, epoch in ((2, 2), (3, 1)) for _ in range(2)]
    later = [*right, sent(1 << 20), sent(first_marker), received(1, 0), received(1, 1), received(1, 0), *again]
    report = report_of(folder / "n1", later, tmp_path)
    found, reasons = by_rule(report), report.sources[0].reasons
    assert {rule: (one.position, one.count) for rule, one in found.items()} == {
        ONCE: (0, 2), ACKNOWLEDGED: (first_marker, 1)
    }  # fmt: skip
    for what in ("offset 1,048,576, where the log has no record", "session 3 of c received offset 156 twice"):
        assert any(what in one and "a leader was elected that lacked records" in one for one in reasons)


def test_a_log_that_ends_behind_its_directory_accuses_no_broker(answers: list[Line], tmp_path: Path) -> None:
    """A stopped directory was copied, and its broker started again: no later send is in it."""
    later = [*answers, sent(END), sent(END + 1), received(1, END), *answers[-1:]]
    report = report_of(recording("3.5.2-txn") / "n1", later, tmp_path)
    assert report.verdict == "inconclusive"
    assert any("before the client log ends?" in reason for reason in report.sources[0].reasons)


def test_a_log_of_another_cluster_accuses_no_broker(tmp_path: Path) -> None:
    report = report_of(recording("3.5.2-txn") / "n1", [sent(END + number) for number in range(20)], tmp_path)
    assert report.verdict == "inconclusive"
    assert any("is it of another cluster?" in reason for reason in report.sources[0].reasons)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"op":"init"}', "no line is an answer: expected op send, commit"),
        ('{"op":"send","res":"ok","topic":"t","offset":7}', "line 1: send without partition, expected res, topic, "),
        ('{"op":"commit","p":"p","txn":1,"res":"ok"}\n{"op":"abort","p":"p","res":"ok"}', "line 2: abort without txn"),
        (
            '{"op":"commit","p":"p","txn":1,"res":"ok"}\n{"op":"read","offsets":7}',
            "line 2: offsets is 7, expected a list",
        ),
        ('{"op":"commit","p":"p","txn":1,"res":"ok"}\n\n\r\n{"op":"abort","p":"p"}', "line 4: abort without "),
        ('{"op":"position","c":"c","topic":"t","partition":0,"offset":7}', "line 1: position without session"),
        ("op;topic\nsend;t", "line 1: expected a JSON object in each line, .* this is no JSON: op;topic"),
        ('{"op":"send","txn":1.5}', "line 1: txn is 1.5, expected a whole number"),
        ('{"op":"send","topic":true}', "line 1: topic is true, expected a text"),
    ],
)
def test_a_line_that_is_no_answer_is_named(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(text, "utf-8")
    with pytest.raises(Unreadable, match=reason):
        client_log(tmp_path / "log")
