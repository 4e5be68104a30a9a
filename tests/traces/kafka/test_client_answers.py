"""Answers to clients, compared with the logs: wrong ones are found, and no right one accuses."""

import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from gapless import check
from gapless.traces.problems import Unreadable
from gapless.traces.report.values import Report
from gapless.traces.sources.kafka.clients.client_log import client_log
from tests.support.kafka.recordings import NAMES, defect, recording
from tests.support.night import NIGHT

ANSWER = "kafka_transaction/answer-to-a-producer-is-what-was-decided"
RECEIVED = "kafka_transaction/record-that-is-received-is-committed"
BY_DAY = ("4.3.0-compact-zstd",)
"""More are tried with the answers that `test_client_views.py` adds to theirs."""
PAGE = Path(__file__).parents[3] / "docs/kafka-clients.md"
OTHER = {"commit": "abort", "abort": "commit"}
Line = dict[str, Any]


def lines(folder: Path) -> list[Line]:
    return [json.loads(line) for line in (folder / "client.ndjson").read_text("utf-8").splitlines()]


def report_of(folder: Path, answers: list[Line], room: Path) -> Report:
    """The report on a recording whose clients have these answers."""
    file = room / "answers.ndjson"
    file.write_text("".join(json.dumps(line) + "\n" for line in answers), "utf-8")
    return check(folder / "n1", client=file, jobs=1)


@pytest.mark.parametrize("name", NAMES if NIGHT else BY_DAY)
def test_no_right_answer_accuses(name: str) -> None:
    folder = recording(name)
    answered = 0
    for directory in sorted(path.parent for path in folder.rglob("meta.properties")) if NIGHT else [folder / "n1"]:
        report = check(directory, client=folder / "client.ndjson", jobs=1)
        assert not report.violations
        answered += report.coverage["kafka_transaction.acknowledge"]
    assert answered or NIGHT


def test_an_abort_of_what_was_committed_is_found(tmp_path: Path) -> None:
    folder = defect("3.5.2-stale", tmp_path)
    found = next(one for one in report_of(folder, lines(folder), tmp_path).violations if one.rule == ANSWER)
    assert (found.trace, found.position, found.where.offset) == ("orders-0", 4, 442)
    answer = "The answer is in line 16 of answers.ndjson: transaction 2 of t has the answer that its abort succeeded."
    assert answer in [line.strip() for line in found.story]
    assert len(found.story) <= 25


def test_aborted_records_that_a_lost_index_hands_out_are_found(tmp_path: Path) -> None:
    folder = defect("4.4.0-lostindex", tmp_path)
    rules = {one.rule: one for one in report_of(folder, lines(folder), tmp_path).violations}
    assert (rules[RECEIVED].trace, rules[RECEIVED].position) == ("orders-0", 0)
    assert not {rule for rule in rules if rule.startswith("partition_client/")}  # no second rule is broken by them


def test_each_wrong_end_is_found(tmp_path: Path) -> None:
    """Every transaction is answered otherwise: each partition that it wrote to contradicts."""
    folder = recording("3.5.2-txn")
    right = lines(folder)
    wrong = [line | {"op": OTHER.get(line["op"], line["op"])} for line in right]
    judged = report_of(folder, right, tmp_path).coverage["kafka_transaction.acknowledge"]
    (found,) = report_of(folder, wrong, tmp_path).violations
    assert (found.rule, found.count) == (ANSWER, judged)


def of_aborted(answers: list[Line]) -> Iterator[Line]:
    """The records of transactions that were aborted."""
    aborted = {(line["p"], line["txn"]) for line in answers if line["op"] == "abort" and line["res"] == "ok"}
    return (line for line in answers if line["op"] == "send" and (line["p"], line["txn"]) in aborted)


def test_each_aborted_record_that_is_received_is_found(tmp_path: Path) -> None:
    folder = recording("3.5.2-txn")
    aborted = list(of_aborted(lines(folder)))
    at = [{key: line[key] for key in ("topic", "partition", "offset")} for line in aborted]
    received = [{"op": "received", "c": "c", "isolation": "read_committed", **one} for one in at]
    (found,) = report_of(folder, received, tmp_path).violations
    transactions = Counter((line["p"], line["txn"], line["topic"], line["partition"]) for line in aborted)
    assert (found.rule, found.count) == (RECEIVED, len(transactions))
    uncommitted = [one | {"isolation": "read_uncommitted"} for one in received]
    assert report_of(folder, uncommitted, tmp_path).verdict == "conforms"


def test_a_record_that_is_received_undecided_is_found(tmp_path: Path) -> None:
    folder = defect("3.5.2-late", tmp_path)  # what hangs begins at offset 5
    received = {"op": "read", "isolation": "committed", "topic": "orders", "partition": 0, "offsets": [5, 6]}
    found = next(one for one in report_of(folder, [received], tmp_path).violations if one.rule == RECEIVED)
    assert (found.position, found.count) == (5, 1)
    send = {"op": "send", "p": "p", "txn": 0, "topic": "orders", "partition": 0, "offset": 0, "res": "ok"}
    before, behind = ({one.rule for one in report_of(folder, answers, tmp_path).violations} for answers in (
        [received, send], [send, received],
    ))  # fmt: skip
    assert before - behind == {RECEIVED}  # behind the last send, the directory may have been copied before


def test_two_records_at_one_offset_are_a_doubt(tmp_path: Path) -> None:
    folder = recording("3.5.2-txn")
    right = lines(folder)
    sent = next(line for line in right if line["op"] == "send" and line["topic"] == "orders")
    report = report_of(folder, [*right, sent | {"txn": 99}], tmp_path)
    assert report.verdict == "inconclusive"
    assert any("acknowledge two records at offset" in reason for reason in report.sources[0].reasons)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty, expected lines such as"),
        ('{"op":', "expected a JSON object in each line"),
        ('{"op":"send","offset":"7"}', 'line 1: offset is "7", expected a whole number'),
        ("[1]", "expected a JSON object in each line"),
    ],
)
def test_what_is_no_client_log_is_named(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(text, "utf-8")
    with pytest.raises(Unreadable, match=reason):
        client_log(tmp_path / "log")


def confluent() -> Mock:
    """A client with the methods of `confluent-kafka`, which has one record."""
    message = Mock(
        **{
            "topic.return_value": "orders",
            "partition.return_value": 2,
            "offset.return_value": 7,
            "leader_epoch.return_value": 3,
        }
    )
    message.error.return_value = None
    place = SimpleNamespace(topic="input", partition=1, offset=9, error=None)
    client = Mock(**{"poll.return_value": message, "commit.return_value": [place]})
    client.produce.side_effect = lambda _topic, on_delivery: on_delivery(None, message)
    return client


def test_the_recorder_of_the_page_writes_what_is_read(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    made: dict[str, Any] = {}
    exec(code, made)  # noqa: S102 - our own page
    file = io.StringIO()
    client = made["Recorded"](confluent(), "p", file, isolation="read_committed", group="g")
    client.begin_transaction()
    client.produce("orders")
    client.commit_transaction()
    client.assign([])
    client.poll()
    client.commit()
    (tmp_path / "log").write_text(file.getvalue(), "utf-8")
    log = client_log(tmp_path / "log")
    assert sorted(str(one) for one in log.partitions if one.topic) == ["input-1", "orders-2"]
    assert log.written.offset.tolist() == log.received.offset.tolist() == [7]
    assert (log.received.epoch.tolist(), log.received.session.tolist(), log.sessions.number.tolist()) == ([3], [0], [0])
    assert (log.groups.names, log.groups.offset.tolist()) == (["g/input-1"], [9])
    assert log.ends[log.written.client].tolist() == [1]
