"""The forms of a report of a data directory: each has its finding, and none a name where names are hidden."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from gapless import check
from gapless.traces.report.redaction import redacted
from tests.support.command_line import ROOT, gapless
from tests.support.event_files import table_in
from tests.support.kafka.batches import walk
from tests.support.kafka.damage import damaged
from tests.support.kafka.recordings import recording

EXAMPLE = ROOT / "examples/kafka"
LOG = "orders-0/00000000000000000000.log"
RULE = "producer/sequence-is-given-once"
FORMS = ("--json", "--report", "--sarif", "--junit")


def forms(path: Path, room: Path, *more: str) -> dict[str, str]:
    """All that a check writes, by option, and its text."""
    files = {option: room / f"out{option}" for option in FORMS}
    words = [word for option, file in files.items() for word in (option, file)]
    done = gapless("check", path, *words, *more)
    return {"": done.output, **{option: file.read_text(encoding="utf-8") for option, file in files.items()}}


def test_every_form_names_the_batch_the_rule_and_the_place(tmp_path: Path) -> None:
    found = forms(EXAMPLE / "damaged", tmp_path)
    finding, anomaly = sorted(json.loads(found["--json"])["findings"], key=lambda one: one["severity"], reverse=True)
    assert anomaly["rule"] == "kafka_transaction/abort-by-operator"
    assert (finding["rule"], finding["where"]) == (RULE, {"file": LOG, "offset": 3133})
    (run,) = json.loads(found["--sarif"])["runs"]
    (result,) = [one for one in run["results"] if one["level"] != "note"]
    (location,) = result["locations"]
    place = location["physicalLocation"]
    assert result["ruleId"] == RULE
    assert place["artifactLocation"]["uri"].endswith(f"examples/kafka/damaged/{LOG}")
    assert place["region"]["byteOffset"] == 3133
    failures = [case for case in ET.fromstring(found["--junit"]).iter("testcase") if case.find("failure") is not None]  # noqa: S314 - our own output
    assert [RULE in ET.tostring(case, encoding="unicode") for case in failures] == [True]


def test_the_first_screen_counts_violations_and_calls_no_record_one(tmp_path: Path) -> None:
    page = forms(EXAMPLE / "damaged", tmp_path)["--report"]
    assert "1 violation<" in page
    assert "1 not allowed" not in page


def test_of_a_sound_directory_no_form_has_a_finding(tmp_path: Path) -> None:
    found = forms(EXAMPLE / "whole", tmp_path)
    assert {one["severity"] for one in json.loads(found["--json"])["findings"]} == {"anomaly"}
    assert {one["level"] for one in json.loads(found["--sarif"])["runs"][0]["results"]} == {"note"}
    assert "<failure" not in found["--junit"]
    assert "<error" not in found["--junit"]


def test_the_verdict_table_and_the_events_have_each_trace(tmp_path: Path) -> None:
    gapless("check", EXAMPLE / "damaged", "--verdicts", tmp_path / "verdicts")
    rows = {(row["spec"], row["trace"]): row for row in table_in(tmp_path / "verdicts")}
    assert len(rows) == 6 + 6 + 3
    broken = [(name, row["rule"], row["position"]) for name, row in rows.items() if row["verdict"] == "departs"]
    assert broken == [(("producer", "orders-0/2"), RULE, 38)]
    assert gapless("trace", EXAMPLE / "damaged", "--out", tmp_path / "events.ndjson").exit_code == 0
    again = gapless("check", tmp_path / "events.ndjson")
    assert again.exit_code == 1
    assert RULE in again.stdout
    assert "1 violation found" in again.stdout


@pytest.mark.parametrize("kind", ["sequence_gap", "checksum_bit", "index_far", "watermark_ahead", "snapshot_damaged"])
def test_no_topic_no_key_and_no_value_is_in_a_redacted_report(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "secretive"
    assert damaged(recording("3.5.2-txn") / "n1", path, kind, 3)
    topics = {folder.name.rpartition("-")[0] for folder in path.glob("[!_]*-[0-9]*")} - {"input", "output"}
    data = b"".join(one.data[61:] for log in path.glob("*-*/*.log") for one in walk(log).batches)
    values = {value.decode() for value in re.findall(rb"[a-h]{12}(?=[a-h]{20})", data)}
    assert len(values) > 100
    assert all(name in data for name in (b"t1", b"t2", b"consumer-app-1")), "transactions, and a client"
    assert {"orders", "bills"} <= topics
    for form, text in forms(path, tmp_path, "--redact", "--redact-key", "k").items():
        for name in (*topics, "secretive", "t1", "t2", "t3", "consumer-app-1"):
            assert not re.search(rf"(?<![\w]){re.escape(name)}(?![\w])", text), (form, name)
        assert not values & set(re.findall(r"(?=([a-h]{12}))", text)), form
        assert kind != "sequence_gap" or "00000000000000000000.log" in text, f"{form}: a place stays"


def test_a_redacted_report_keeps_the_numbers_of_partitions() -> None:
    plain = check(EXAMPLE / "damaged", jobs=1)
    hidden = redacted(plain, "k")
    names = [row.partition.rpartition("-") for row in plain.partitions]
    given = [row.partition.rpartition("-")[0] for row in hidden.partitions]
    topics = {topic: other for (topic, _, _), other in zip(names, given, strict=True)}
    assert not set(topics) & set(topics.values())
    assert [row.partition for row in hidden.partitions] == [f"{topics[topic]}-{number}" for topic, _, number in names]
    (found,) = hidden.violations
    assert (found.trace, found.where.file) == (f"{topics['orders']}-0/2", LOG.replace("orders", topics["orders"]))
    assert "orders" not in "\n".join(found.story)


def test_events_are_written_at_the_depth_that_is_asked_for(tmp_path: Path) -> None:
    """A batch whose records do not end where it does says so in its events if they were read."""
    assert damaged(recording("3.5.2-txn") / "n1", tmp_path / "n1", "record_length", 3)
    for depth, code in (("shallow", 0), ("deep", 1)):
        out = tmp_path / f"{depth}.ndjson"
        assert gapless("trace", tmp_path / "n1", "--out", out, "--depth", depth).exit_code == 0
        assert gapless("check", out, "--profile", "kafka").exit_code == code


@pytest.mark.parametrize(
    ("trace", "code", "answer"),
    [
        ("orders-0/2", 0, "orders-0/2 conforms: 17 events."),
        ("orders-0/99", 3, "no batch of producer orders-0/99 in it"),
        ("orders-0/", 3, "no partition orders-0/ in it"),
        ("orders-9", 3, "no partition orders-9 in it"),
    ],
)
def test_explain_knows_the_producers_of_a_partition(trace: str, code: int, answer: str) -> None:
    done = gapless("explain", EXAMPLE / "whole", "--trace", trace)
    assert (done.exit_code, answer in done.output) == (code, True)
