"""A client log is read as it was written, and a file that is none is reported in one sentence."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import gapless
from gapless.traces.problems import NothingThere, Unreadable
from gapless.traces.sources.rocketmq.clients.requests import any_requests, client_log, request_lines, request_rows
from gapless.traces.sources.rocketmq.clients.requests.client_log import ClientLog
from gapless.traces.sources.rocketmq.clients.requests.plain_requests import RequestReader
from gapless.traces.sources.rocketmq.clients.requests.request_lines import (
    COMMIT,
    FAIL,
    NONE,
    OK,
    ROLL_BACK,
    UNDECIDED,
    UNKNOWN,
)
from gapless.traces.sources.rocketmq.clients.requests.request_rows import Checks, Ends, Resumes, Rows, Sends
from gapless.traces.sources.rocketmq.columns import bytes as native
from gapless.traces.sources.rocketmq.store.directory import neighbouring_client_log
from tests.support.night import NIGHT
from tests.support.rocketmq.recordings import COUNTS, recording_with_client
from tests.support.rocketmq.stores import PREPARED, ROLLED_BACK, SCHEDULE_TOPIC, digest, read_log
from tests.support.rocketmq.transactions import HALF

ESSAY = Path(__file__).parents[3] / "traces" / "README.md"
RESULTS = {"ok": OK, "fail": FAIL, "unknown": UNKNOWN, "none": NONE}
DECISIONS = {"commit": COMMIT, "rollback": ROLL_BACK, "unknown": UNDECIDED}

Row = dict[str, int]
Columns = dict[str, list[Row]]


# -- a second opinion: the lines in plain Python -------------------------------------------------------------------


def plainly(text: str) -> tuple[Columns, list[str], bool]:
    """Return the contents of a sound log: rows by kind, topics in order, and True if all have keys."""
    columns: Columns = {"sends": [], "ends": [], "checks": [], "resumes": []}
    topics: list[str] = []
    for number, line in enumerate(text.split("\n")[:-1], 1):
        given = {name: value for name, value in json.loads(line).items() if value is not None}
        match given["op"]:
            case "send" | "half" | "batch":
                if given["topic"] not in topics:
                    topics.append(given["topic"])
                columns["sends"] += [row | {"line": number} for row in sent(given, topics.index(given["topic"]))]
            case "end" | "check" as op:
                columns[f"{op}s"].append(version(given) | {"line": number})
            case "admin" if given["request"] == 323:
                position = int(given["ext"]["msgId"][-16:], 16)
                columns["resumes"].append({"line": number, "position": position, "result": RESULTS[given["result"]]})
    return columns, topics, all(row["key"] for row in columns["sends"])


def sent(given: dict[str, Any], topic: int) -> Iterator[Row]:
    """A row for each message of a request."""
    batch, acknowledged = given["op"] == "batch", given["result"] == "ok"
    keys, places = given.get("uniqs") if batch else None, given.get("phys") if batch else None
    rows = given["n"] if keys or places else 1
    for at in range(rows):
        key = (keys or [None] * rows)[at] if batch else given.get("uniq")
        place = (places or [-1] * rows)[at] if batch else given.get("phys", -1)
        yield {
            "position": place if acknowledged else -1,
            "number": given["qoff"] + at if acknowledged and "qoff" in given else -1,
            "count": given["n"] if batch and rows == 1 and not (keys or places) else 1,
            "key": digest((key or "").encode()),
            "crc": -1 if batch or "crc" not in given else given["crc"] % 2**31,
            "length": -1 if batch else given.get("len", -1),
            "topic": topic,
            "queue": given["queue"],
            "half": int(given["op"] == "half"),
            "result": RESULTS[given["result"]],
        }


def version(given: dict[str, Any]) -> Row:
    """A version of a half, and what was decided or asked about it."""
    row = {"key": digest(given.get("uniq", "").encode()), "number": given["half"], "position": given["phys"]}
    if given["op"] == "check":
        return row | {"times": int(given.get("times", -1))}
    return row | {
        "decision": DECISIONS[given["decision"]],
        "result": RESULTS[given["result"]],
        "from_check": int(given.get("from_check", False)),
    }


def as_rows(columns: Rows) -> list[Row]:
    values = {column.name: getattr(columns, column.name) for column in fields(columns)}
    assert {len(column) for column in values.values()} == {len(columns)}
    assert {column.dtype.kind for column in values.values()} == {"i"}
    return [{name: int(column[at]) for name, column in values.items()} for at in range(len(columns))]


def assert_is(log: ClientLog, text: str) -> None:
    columns, topics, complete = plainly(text)
    assert log.lines == text.count("\n")
    assert list(log.topics) == topics
    assert log.complete == complete
    for kind, rows in columns.items():
        assert as_rows(getattr(log, kind)) == rows, kind


KINDS = ("sends", "ends", "checks", "resumes")


def contents(text: bytes, before: int, *, plain: bool) -> tuple[Any, ...] | str:
    """The rows of lines, natively where they are `plain` or one by one, and their topics; or what is wrong."""
    reader = client_log._LogReader(Path("x"), plain=plain)
    try:
        reader.read(text, before, text.count(b"\n"), 1)
    except Unreadable as wrong:
        return str(wrong)
    log = reader.log(0)
    return [as_rows(getattr(log, kind)) for kind in KINDS], log.topics


# -- what real clients wrote ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COUNTS)
def test_a_recording_is_read_as_it_was_written(name: str) -> None:
    folder = recording_with_client(name)
    path = neighbouring_client_log(folder / "store")
    assert path == folder / "client.ndjson"
    log = client_log.read(path)
    assert_is(log, path.read_text())
    assert log.complete
    assert len(log.sends) > 100
    assert len(log.ends) > 20
    assert len(log.checks) > 10
    assert list(log.resumes.position) == ([280130, 280611, 281398] if name == "odd_clients" else [])


@pytest.mark.parametrize("name", COUNTS)
def test_what_was_acknowledged_lies_where_the_columns_say(name: str) -> None:
    """In the store, as the plain reader reads it: key, number, checksum, length and place of every message."""
    folder = recording_with_client(name)
    records = {record.position: record for record in read_log(folder / "store")}
    log = client_log.read(folder / "client.ndjson")
    start, found = min(records), 0
    for row in as_rows(log.sends):
        if row["position"] < start:
            assert row["position"] >= 0 or row["result"] != OK
            continue
        found += 1
        record = records[row["position"]]
        assert row["key"] == digest(record.property_map["UNIQ_KEY"].encode())
        assert row["number"] == record.number
        assert row["crc"] in {-1, zlib.crc32(record.body) & 0x7FFFFFFF}
        assert row["length"] in {-1, len(record.body)}
        meant = (log.topics[row["topic"]], row["queue"])
        real = (record.property_map.get("REAL_TOPIC"), int(record.property_map.get("REAL_QID", -1)))
        # A delayed half has lost its topic there: docs/rocketmq-transactions.md#delayed-half.
        if record.topic == SCHEDULE_TOPIC:
            assert meant == real or (row["half"] and real[0] == HALF)
        else:
            assert meant == (real if row["half"] else (record.topic, record.queue))
            assert (record.topic == HALF) == bool(row["half"])
            assert record.transaction not in {PREPARED, ROLLED_BACK} or record.number == 0
    assert found > 100


@pytest.mark.parametrize("name", COUNTS)
def test_every_back_check_names_a_version_of_its_half(name: str) -> None:
    folder = recording_with_client(name)
    halves = {
        record.position: (record.number, digest(record.property_map["UNIQ_KEY"].encode()), record.property_map)
        for record in read_log(folder / "store")
        if record.topic == HALF
    }
    for row in as_rows(client_log.read(folder / "client.ndjson").checks):
        if row["position"] >= min(halves):
            number, key, found = halves[row["position"]]
            assert (row["number"], row["key"]) == (number, key)
            assert row["times"] == int(found["TRANSACTION_CHECK_TIMES"])


# -- there and back ------------------------------------------------------------------------------------------------


PLACES = st.integers(0, 2**62 - 1)
KEYS = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
QUEUES = st.sampled_from((0, 1, 7, 2**31 - 1))
ANSWERS = st.sampled_from(("ok", "fail", "unknown"))
TOPICS = st.sampled_from(("orders", "payments", "订单-😀", 'a"b\\c\u2028', "%RETRY%group"))
EXTRAS = st.dictionaries(
    st.sampled_from(("t0", "client", "key", "code", "remark", "tag", "née", "")),
    st.none()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.lists(st.dictionaries(KEYS, st.booleans()), max_size=2),
    max_size=3,
)
VERSIONS = {"uniq": KEYS, "half": PLACES, "phys": PLACES}
PLACED = {"topic": TOPICS, "queue": QUEUES, "result": ANSWERS, "qoff": st.none() | PLACES}


def line_of(
    op: str, known: dict[str, st.SearchStrategy[Any]], **optional: st.SearchStrategy[Any]
) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({"op": st.just(op), **known}, optional=optional)


@st.composite
def batches(draw: st.DrawFn) -> dict[str, Any]:
    count = draw(st.integers(1, 5))
    each = {
        "uniqs": st.lists(KEYS, min_size=count, max_size=count),
        "phys": st.lists(PLACES, min_size=count, max_size=count),
    }
    given: dict[str, Any] = draw(line_of("batch", PLACED | {"n": st.just(count)}, **each))
    return given


MESSAGE_IDS = PLACES.map(lambda position: f"7F0000010000559700{position:016X}")
LINES = st.one_of(
    *(
        line_of(op, PLACED, uniq=KEYS, phys=PLACES, len=st.integers(0, 2**31 - 1), crc=st.integers(0, 2**32 - 1))
        for op in ("send", "half")
    ),
    batches(),
    line_of(
        "end",
        VERSIONS | {"decision": st.sampled_from(("commit", "rollback")), "result": ANSWERS},
        from_check=st.booleans(),
    ),
    line_of("end", VERSIONS | {"decision": st.just("unknown"), "result": st.sampled_from(("none", "unknown"))}),
    line_of("check", VERSIONS, times=st.none() | st.integers(0, 15).map(str), topic=TOPICS, queue=QUEUES),
    line_of(
        "admin", {"request": st.just(323), "result": ANSWERS, "ext": st.fixed_dictionaries({"msgId": MESSAGE_IDS})}
    ),
    line_of("admin", {"request": st.just(200), "ext": EXTRAS}),
    *(line_of(op, {}) for op in ("note", "pull", "topic")),
)


@st.composite
def logs(draw: st.DrawFn) -> str:
    """A sound log, as different recorders may write it: names in any order, spaces, escapes, fields of their own."""
    lines = []
    for line in draw(st.lists(LINES, min_size=1, max_size=12)):
        whole = list({**draw(EXTRAS), **line}.items())
        style: dict[str, Any] = {
            "separators": draw(st.sampled_from(((",", ":"), (", ", ": ")))),
            "ensure_ascii": draw(st.booleans()),
        }
        lines.append(json.dumps(dict(draw(st.permutations(whole))), **style) + "\n")
    return "".join(lines)


@given(text=logs(), block=st.sampled_from((1, 200, 1000, 1 << 22)))
def test_columns_say_what_the_lines_say(tmp_path_factory: pytest.TempPathFactory, text: str, block: int) -> None:
    path = tmp_path_factory.mktemp("log") / "client.ndjson"
    path.write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client_log, "BLOCK", block)
        patch.setattr(request_rows, "SPARE", 0)  # so that what was read has to move
        assert_is(client_log.read(path), text)


@given(text=logs())
def test_line_by_line_it_is_the_same(text: str) -> None:
    assert contents(text.encode(), 0, plain=True) == contents(text.encode(), 0, plain=False)


@given(data=st.data(), text=logs())
def test_damaged_lines_are_what_they_are_one_by_one(data: st.DataObject, text: str) -> None:
    """Plain lines are checked natively, others by pydantic; both have one result, or one complaint."""
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        new = data.draw(
            st.sampled_from(["", "0", "1", "-", ".", "e", "n", '"', "\\", *"{}[],:", "\n", " ", "\r", "\0", "é"])
        )
        text = text[:at] + new + text[at + 1 :]
    damaged = (text.removesuffix("\n") + "\n").encode()
    assert contents(damaged, 3, plain=True) == contents(damaged, 3, plain=False)


ODD = ("{}", "[]", "null", "1", '"a"', '{"msgId":"x"}', "true")
NAMED = ("uniqs", "ext", "phys", "qoff", "from_check", "times", "uniq", "clock")
OPS = ("send", "batch", "end", "admin", "note")


@pytest.mark.parametrize(
    ("op", "name", "odd"),
    [(OPS[(m + n) % len(OPS)], name, odd) for m, name in enumerate(NAMED) for n, odd in enumerate(ODD)],
)
def test_odd_values_are_what_they_are_one_by_one(op: str, name: str, odd: str) -> None:
    """Every value under every name, every name and every value with every operation."""
    line = {"op": op, "topic": "T", "queue": 0, "result": "ok", "half": 1, "phys": 5, "decision": "commit", "n": 1}
    del line["phys" if op == "batch" else "n"]
    text = f"{json.dumps(line | {name: 'odd'})}\n{json.dumps(line)}\n".replace('"odd"', odd).encode()
    assert contents(text, 0, plain=True) == contents(text, 0, plain=False)


def test_plain_lines_are_not_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    line = {"op": "send", "topic": "T", "queue": 0, "uniq": "é", "result": "ok", "qoff": 3, "at": 17, "by": "me"}
    text = f"{json.dumps(line, ensure_ascii=False)}\n".encode() * 3
    one_by_one = contents(text, 5, plain=False)
    monkeypatch.setattr(client_log, "read_requests", None)
    assert contents(text, 5, plain=True) == one_by_one


def test_an_unusual_line_is_the_only_one_that_is_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [a_send(qoff=at) for at in range(400)]
    lines[200] = a_resume()
    text = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    read: list[int] = []
    one_by_one = any_requests.read_requests

    def counted(path: Path, some: list[bytes], before: int, topics: dict[str, int]) -> Any:
        read.extend(range(before, before + len(some)))
        return one_by_one(path, some, before, topics)

    monkeypatch.setattr(client_log, "read_requests", counted)
    contents(text, 0, plain=True)
    assert read == [200]


@pytest.mark.parametrize("block", [150, 5_000, 1 << 20])
def test_topics_have_one_number_for_every_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """Plain blocks and rare ones take turns, and their topics are those of the others, or new."""
    monkeypatch.setattr(client_log, "BLOCK", block)
    monkeypatch.setattr(RequestReader, "pays", lambda _size: True)
    draw = random.Random(block)
    lines = [a_send(topic=f"topic-{draw.randrange(at + 1)}é"[: draw.randint(7, 12)], qoff=at) for at in range(2_000)]
    rare = {at: a_batch(topic=lines[at]["topic"]) for at in draw.sample(range(2_000), 20)}
    text = "".join(f"{json.dumps(rare.get(at, line), ensure_ascii=False)}\n" for at, line in enumerate(lines))
    path = tmp_path / "client.ndjson"
    path.write_text(text)
    assert_is(client_log.read(path), text)


def test_memory_is_bounded_by_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_log, "BLOCK", 500)
    path = tmp_path / "client.ndjson"
    path.write_text("".join(f"{json.dumps(a_send(qoff=at))}\n" for at in range(200)))
    line = len(json.dumps(a_send(qoff=199))) + 1
    with path.open("rb") as file:
        blocks = list(client_log._blocks(path, file))
    assert max(len(block) for block, _ in blocks) < 500 + line
    assert b"".join(block for block, _ in blocks) == path.read_bytes()
    assert client_log.read(path).sends.number.tolist() == list(range(200))


# -- what one line means -------------------------------------------------------------------------------------------


def a_send(**changed: Any) -> dict[str, Any]:
    given = {
        "op": "send",
        "topic": "orders",
        "queue": 2,
        "uniq": "A1",
        "len": 9,
        "crc": 7,
        "result": "ok",
        "qoff": 5,
        "phys": 40,
    }
    return given | changed


def a_batch(**changed: Any) -> dict[str, Any]:
    given = {
        "op": "batch",
        "topic": "orders",
        "queue": 2,
        "n": 2,
        "uniqs": ["A", "B"],
        "result": "ok",
        "qoff": 5,
        "phys": [40, 90],
    }
    return given | changed


def an_end(**changed: Any) -> dict[str, Any]:
    return {"op": "end", "uniq": "A1", "half": 3, "phys": 40, "decision": "commit", "result": "ok"} | changed


def a_check(**changed: Any) -> dict[str, Any]:
    return {"op": "check", "uniq": "A1", "half": 3, "phys": 40, "times": "1"} | changed


def a_resume(**changed: Any) -> dict[str, Any]:
    return {
        "op": "admin",
        "request": 323,
        "result": "ok",
        "ext": {"msgId": "7F0000010000559700000000000A0B0C"},
    } | changed


def written(folder: Path, *lines: dict[str, Any]) -> Path:
    path = folder / "client.ndjson"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def test_a_place_is_only_what_an_answer_gave(tmp_path: Path) -> None:
    lines = [a_send(), a_send(result="fail"), a_send(result="unknown"), a_send(phys=None), a_send(qoff=None)]
    sends = client_log.read(written(tmp_path, *lines)).sends
    assert sends.position.tolist() == [40, -1, -1, -1, 40]
    assert sends.number.tolist() == [5, -1, -1, 5, -1]
    assert sends.result.tolist() == [OK, FAIL, UNKNOWN, OK, OK]


def test_a_batch_is_its_messages_or_one_row_for_all_of_them(tmp_path: Path) -> None:
    nameless = a_batch(n=90, uniqs=None, phys=None)
    log = client_log.read(
        written(tmp_path, a_send(), a_batch(), nameless, a_batch(result="unknown", phys=None, qoff=None))
    )
    sends = log.sends
    assert sends.line.tolist() == [1, 2, 2, 3, 4, 4]
    assert sends.count.tolist() == [1, 1, 1, 90, 1, 1]
    assert sends.number.tolist() == [5, 5, 6, 5, -1, -1]
    assert sends.position.tolist() == [40, 40, 90, -1, -1, -1]
    assert sends.key.tolist() == [digest(b"A1"), digest(b"A"), digest(b"B"), 0, digest(b"A"), digest(b"B")]
    assert not log.complete


LISTS = (
    "[]", "[40]", "[40,90]", "[ 40 , 90 ]", "[40,90,91]", "[40 90]", "[40,,90]", "[40,90,]", '[40,"90"]', "[40,null]",
    "[-1,90]", "[040,90]", "[4.5,90]", "[true,90]", "[[40],90]", "{}", "40", "null", '"40"', "[40,999999999999999999]",
    '["A","B"]', '[ "A" , null ]', '["A","B","C"]', '["A"]', '["A" "B"]', '["A","B\\u0041"]', '["","é"]', "[null,null]",
    '["A",5]', '["A","B"', '["A","B"}',
)  # fmt: skip


@pytest.mark.parametrize("name", ["uniqs", "phys"])
def test_lists_are_what_they_are_one_by_one(name: str) -> None:
    for text in LISTS:
        line = json.dumps(a_batch(**{name: "odd"}), ensure_ascii=False).replace('"odd"', text)
        lines = f"{GOOD}{line}\n{GOOD}".encode()
        assert contents(lines, 0, plain=True) == contents(lines, 0, plain=False), text


@pytest.mark.parametrize("line", [a_send(uniq=None), a_send(uniq=""), a_batch(uniqs=None), a_batch(uniqs=["A", None])])
def test_without_a_key_its_sender_is_unknown(tmp_path: Path, line: dict[str, Any]) -> None:
    assert not client_log.read(written(tmp_path, a_send(), line)).complete
    assert client_log.read(written(tmp_path, a_send(), a_batch(), an_end(uniq=None), a_check(uniq=None))).complete


def test_the_crc_is_the_brokers_and_may_be_wider_in_the_log(tmp_path: Path) -> None:
    sends = client_log.read(written(tmp_path, a_send(crc=0xFFFFFFFF), a_send(crc=None, len=None))).sends
    assert sends.crc.tolist() == [0x7FFFFFFF, -1]
    assert sends.length.tolist() == [9, -1]


def test_ends_checks_and_resumes(tmp_path: Path) -> None:
    lines = [
        an_end(decision="rollback", result="unknown", from_check=True),
        {"op": "note", "text": "half time", "n": "none", "phys": [{}], "result": 5},
        an_end(decision="unknown", result="none"),
        a_check(times=None),
        a_check(times="15"),
        {"op": "admin", "request": 25, "ext": [], "result": 5},
        a_resume(result="fail"),
    ]
    log = client_log.read(written(tmp_path, *lines))
    assert_is(log, written(tmp_path, *lines).read_text())
    assert log.lines == 7
    assert log.ends.decision.tolist() == [ROLL_BACK, UNDECIDED]
    assert log.ends.result.tolist() == [UNKNOWN, NONE]
    assert log.ends.from_check.tolist() == [1, 0]
    assert log.checks.times.tolist() == [-1, 15]
    assert as_rows(log.resumes) == [{"line": 7, "position": 0xA0B0C, "result": FAIL}]


@pytest.mark.parametrize(
    "line",
    [
        a_batch(uniq="C", len=3, crc=4, half=5),
        a_batch(uniqs=None, phys=None, uniq="C", len=3, crc=4),
        a_send(n=3, uniqs=["A", "B", "C"], half=5, decision="commit"),
        a_send(n=0, times="never", op="half", decision="perhaps", from_check=True),
        an_end(n=0, uniqs=["A"], topic="", queue=-5, qoff=-1, times="never", crc=-1),
        a_check(n=0, uniqs=["A"], topic="", queue=-5, qoff=-1, decision="perhaps", result="done"),
        {"op": "note"} | a_batch(op="note", uniq="C", half=-1, phys=[-1], result="done"),
    ],
)
def test_what_belongs_to_another_op_is_not_read(tmp_path: Path, line: dict[str, Any]) -> None:
    path = written(tmp_path, a_send(), line)
    assert_is(client_log.read(path), path.read_text())


def test_a_missing_key_has_the_digest_of_no_bytes() -> None:
    assert any_requests._digests(["A", None, "", "é"]).tolist() == [digest(b"A"), 0, 0, digest("é".encode())]


@pytest.mark.parametrize(
    ("line", "change", "name"),
    [
        (a_send(), ('"qoff": 5', '"qoff": 5, "qoff": 6'), "qoff"),
        (a_send(), ('"qoff": 5', '"qoff": null, "qoff": 5'), "qoff"),
        (a_send(), ('"qoff": 5', '"qoff": 5, "\\u0071off": 6'), "qoff"),
        (a_batch(), ('"queue"', '"op": "send", "queue"'), "op"),
        (a_resume(), ('"ext": {', '"ext": {"msgId": "00", '), "msgId"),
    ],
)
def test_of_two_values_with_one_name_none_is_taken(
    tmp_path: Path, line: Any, change: tuple[str, str], name: str
) -> None:
    twice = json.dumps(line).replace(*change)
    assert twice != json.dumps(line)
    path = tmp_path / "client.ndjson"
    path.write_text(f"{GOOD}{twice}\n")
    assert refused(path).startswith(f"{path}, line 2: the key '{name}' stands there twice")


@pytest.mark.parametrize("extra", ["", '"from_check": NaN, '])  # which is in another op's field, and no library's
def test_keys_that_are_not_read_may_occur_twice(tmp_path: Path, extra: str) -> None:
    path = tmp_path / "client.ndjson"
    path.write_text(
        json.dumps(a_send()).replace("{", f'{{{extra}"t": 1, "t": 2, "was": {{"op": 1, "op": 2}}, ', 1) + "\n"
    )
    assert client_log.read(path).sends.number.tolist() == [5]


def test_lines_may_end_as_on_windows(tmp_path: Path) -> None:
    path = written(tmp_path, a_send(), an_end())
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert_is(client_log.read(path), path.read_text())


def test_a_log_is_found_next_to_its_store_and_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "client.ndjson").touch()
    assert neighbouring_client_log(store) is None
    path = written(tmp_path, a_send())
    assert neighbouring_client_log(store) == path
    monkeypatch.chdir(store)
    assert neighbouring_client_log(Path()) == Path("../client.ndjson")
    monkeypatch.chdir(tmp_path)
    assert neighbouring_client_log(Path("store")) == Path("client.ndjson"), "a report names it as its store was named"
    path.unlink()
    path.mkdir()
    assert neighbouring_client_log(store) is None


# -- what is no client log -----------------------------------------------------------------------------------------


def without(line: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key != name}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (a_send(op="sent"), "op is 'sent', expected send, half, batch, end, check, admin, topic, pull or note"),
        (a_send(op=5), "op is 5, expected send, half"),
        (a_send(op=["send"]), 'op is ["send"], expected send, half'),
        (a_send(op=None), "op is null, expected send, half"),
        (a_send(op="\x1b[31m"), "op is '\\x1b[31m', expected"),
        (without(a_send(), "op"), "op is missing, expected send, half"),
        ([a_send()], "expected one request as an object"),
        (a_send(result="done"), "result is 'done', expected ok, fail or unknown"),
        (a_send(result="none"), "result is 'none', expected ok, fail or unknown"),
        (without(a_send(), "result"), "missing: result"),
        (without(a_send(), "topic"), "missing: topic"),
        (a_send(topic=""), "topic: it is empty, expected a name"),
        (a_send(topic=5), "topic is 5, expected a text"),
        (without(a_send(), "queue"), "missing: queue"),
        (a_send(queue="2"), "queue is '2', expected a whole number"),
        (a_send(queue=-2), "queue is -2, expected at least -1"),
        (a_send(queue=2**31), "queue is 2147483648, expected less than 2147483648"),
        (a_send(queue=-1), "queue is -1, expected the one that the answer named"),
        (a_send(uniq=5), "uniq is 5, expected a text"),
        (a_send(phys=-1), "phys is -1, expected at least 0"),
        (a_send(phys=2**62), "phys is 4611686018427387904, expected less than 4611686018427387904"),
        (a_send(phys=2**70), "phys is 1180591620717411303424, expected less than 4611686018427387904"),
        (a_send(phys=40.0), "phys is 40.0, expected a whole number"),
        (a_send(phys="40"), "phys is '40', expected a whole number"),
        (a_send(phys=True), "phys is true, expected a whole number"),
        (a_send(phys=[40]), "phys is [40], expected a whole number"),
        (a_send(qoff=-1), "qoff is -1, expected at least 0"),
        (a_send(len=-1), "len is -1, expected at least 0"),
        (a_send(len=2**31), "len is 2147483648, expected less than 2147483648"),
        (a_send(crc=-1), "crc is -1, expected at least 0"),
        (a_send(crc=2**32), "crc is 4294967296, expected less than 4294967296"),
        (without(a_batch(), "n"), "missing: n"),
        (a_batch(n=0, uniqs=[], phys=[]), "n is 0, expected at least 1"),
        (a_batch(n=2**31, uniqs=None, phys=None), "n is 2147483648, expected less than 2147483648"),
        (a_batch(n=3, phys=None), "uniqs has length 2, expected 3, one for each message"),
        (a_batch(phys=[40]), "phys has length 1, expected 2, one for each message"),
        (a_batch(phys=40), "phys is 40, expected a list"),
        (a_batch(phys=[40, None]), "phys.1 is null, expected a whole number"),
        (a_batch(phys=[40, -1]), "phys.1 is -1, expected at least 0"),
        (a_batch(uniqs=["A", 5]), "uniqs.1 is 5, expected a text"),
        (a_batch(qoff=-1), "qoff is -1, expected at least 0"),
        (without(an_end(), "half"), "missing: half"),
        (an_end(half=-1), "half is -1, expected at least 0"),
        (without(an_end(), "phys"), "missing: phys"),
        (an_end(phys=-1), "phys is -1, expected at least 0"),
        (an_end(phys=[40]), "phys is [40], expected a whole number"),
        (an_end(decision="roll_back"), "decision is 'roll_back', expected commit, rollback or unknown"),
        (without(an_end(), "decision"), "missing: decision"),
        (an_end(result="done"), "result is 'done', expected ok, fail, unknown or none"),
        (without(an_end(), "result"), "missing: result"),
        (an_end(result="none"), "result is none, expected ok, fail or unknown for a commit, oneway ones unknown"),
        (an_end(from_check="true"), "from_check is 'true', expected true or false"),
        (without(a_check(), "half"), "missing: half"),
        (without(a_check(), "phys"), "missing: phys"),
        (a_check(phys=-1), "phys is -1, expected at least 0"),
        (a_check(times=1), "times is 1, expected a text"),
        (a_check(times="-1"), "times is '-1', expected a text of the form ^[0-9]{1,18}$"),
        (a_check(times="1\n"), "times is '1\\n', expected a text of the form ^[0-9]{1,18}$"),
        (a_check(times="9" * 19), "times is '9999999999999999999', expected a text of the form ^[0-9]{1,18}$"),
        (a_resume(request="323"), "request is '323', expected a whole number"),
        (a_resume(result=None), "result is 'None', expected ok, fail or unknown"),
        (a_resume(result="none"), "result is 'none', expected ok, fail or unknown"),
        (a_resume(ext=None), "ext.msgId of request 323 is expected to end in a position"),
        (a_resume(ext={"msgId": "0B0C"}), "ext.msgId of request 323 is expected to end in a position"),
        (a_resume(ext={"msgId": "G" * 32}), "ext.msgId of request 323 is expected to end in a position"),
        (a_resume(ext={"msgId": "F" * 32}), "ext.msgId of request 323 is expected to end in a position"),
    ],
)
def test_what_is_no_line_of_a_client_log_is_reported(tmp_path: Path, line: Any, words: str) -> None:
    problem = refused(written(tmp_path, a_send(), a_batch(), line, a_send()))
    assert problem.startswith(f"{tmp_path}/client.ndjson, line 3: {words}"), problem
    problem = refused(written(tmp_path, a_send(), line, a_send()))  # among lines that are read without any object
    assert problem.startswith(f"{tmp_path}/client.ndjson, line 2: {words}"), problem


def refused(path: Path) -> str:
    """Return the error of a file that is no client log; printable, with the remedy."""
    with pytest.raises(Unreadable) as raised:
        client_log.read(path)
    text = str(raised.value)
    assert text.isprintable()
    assert text.endswith("(gapless schema client describes a line; without the log, the store can be judged alone)")
    return text


GOOD = f"{json.dumps(a_send())}\n"


@pytest.mark.parametrize("block", [1, 1 << 22])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"\0" * 4096, "line 1: the last line is cut off"),
        (b"\0" * 4096 + b"\n", "line 1: not JSON"),
        (GOOD.encode() + random.Random(1).randbytes(3000) + b"\n", "line 2: not JSON"),
        (GOOD.encode() * 2 + GOOD.encode()[:50], "line 3: the last line is cut off, expected a newline at its end"),
        (GOOD.encode() * 2 + GOOD.encode()[:-1], "line 3: the last line is cut off, expected a newline at its end"),
        (GOOD.encode() * 2 + GOOD.encode()[:50] + b"\n", "line 3: not JSON (EOF while parsing"),
        (GOOD.encode() + b"\n" + GOOD.encode(), "line 2: not JSON"),
        (GOOD.encode()[:-1] + b" " + GOOD.encode(), "line 1: not JSON"),
        (GOOD.encode()[:-1] + b" " + GOOD.encode() + b"\n", "line 1: not JSON"),
        (GOOD.encode().replace(b", ", b",\n"), "line 1: not JSON"),
        (GOOD.encode() + b"\xef\xbb\xbf" + GOOD.encode(), "line 2: not JSON"),
        (GOOD.encode() + GOOD.encode().replace(b"orders", b"ord\xffers"), "line 2: not JSON"),
        (GOOD.encode() + GOOD.encode().replace(b"A1", b"\\ud800"), "line 2: not JSON"),
        (GOOD.encode() + GOOD.encode().replace(b"A1", b"A\0"), "line 2: not JSON"),
        (GOOD.encode() + GOOD.encode().replace(b"40", b"9" * 5000), "line 2: "),
        (GOOD.encode() + GOOD.encode().replace(b"40", b"NaN"), "line 2: phys is NaN, expected a whole number"),
        (GOOD.encode() + b"[" * 100_000 + b"\n", "line 2: not JSON"),
        (GOOD.encode() + b"5\n", "line 2: expected one request as an object"),
        (b'{"schema":"gapless-events","version":1}\n', "line 1: op is missing"),
    ],
)
def test_damaged_files_are_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes, words: str, block: int
) -> None:
    monkeypatch.setattr(client_log, "BLOCK", block)
    path = tmp_path / "client.ndjson"
    path.write_bytes(text)
    assert refused(path).startswith(f"{path}, {words}")


def test_a_line_that_never_ends_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_log, "BLOCK", 100)
    monkeypatch.setattr(client_log, "LONGEST", 1000)
    path = tmp_path / "client.ndjson"
    path.write_text(GOOD * 3 + "x" * 5000)
    assert "line 4: longer than 1,000 bytes, expected one request" in refused(path)


def test_an_empty_log_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "client.ndjson").touch()
    with pytest.raises(NothingThere, match="the client log is empty"):
        client_log.read(tmp_path / "client.ndjson")


def test_what_cannot_be_opened_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="No such file"):
        client_log.read(tmp_path / "none.ndjson")
    with pytest.raises(Unreadable, match="Is a directory"):
        client_log.read(tmp_path)


# -- the digest ----------------------------------------------------------------------------------------------------


@given(key=st.binary(max_size=70), before=st.binary(max_size=9), after=st.binary(max_size=9))
@example(key=bytes(8), before=b"", after=b"")
@example(key=b"\xff" * 17, before=b"", after=b"\xff")
def test_a_digest_is_what_its_description_says(key: bytes, before: bytes, after: bytes) -> None:
    """Wherever the key lies, and whatever lies around it."""
    data = np.frombuffer(before + key + after + b"\0", np.uint8)
    assert native.digest(data, len(before), len(before) + len(key)) == digest(key)


def test_a_digest_is_the_same_for_ever() -> None:
    """Digests may be compared that were made on different machines."""
    keys = [b"", b"A", b"13E1A4D90A9E2B7595346FE8D5840893"]
    expected = [0, 3_806_753_856_144_928_880, 5_929_782_208_235_139_967]
    assert digests(keys) == expected


def test_only_no_bytes_have_the_digest_of_no_key() -> None:
    """The steps can be undone: from 0 back to the eight bytes that would come to it."""
    modulus = 1 << 64
    mixed = -0x52DCE729 * pow(5, -1, modulus) % modulus
    word = turned_back(mixed, 27) ^ 8
    word = turned_back(word * pow(0x4CF5AD432745937F, -1, modulus) % modulus, 31)
    key = (word * pow(0x87C37B91114253D5, -1, modulus) % modulus).to_bytes(8, "little")
    assert digests([key, b"", bytes(8), bytes(9)])[:2] == [1, 0]
    assert 0 not in digests([bytes(count) for count in range(1, 40)])


def turned_back(word: int, by: int) -> int:
    return (word >> by | word << 64 - by) % (1 << 64)


def digests(keys: list[bytes]) -> list[int]:
    """The digests of a column of keys."""
    data = np.frombuffer(b"".join(keys) + b"\0", np.uint8)
    found: list[int] = native.digests(data, np.cumsum([0, *map(len, keys)])).tolist()
    return found


def test_similar_keys_have_as_many_digests() -> None:
    """Counters, as clients make them; and every 32-bit half of the digests is as good as chance."""
    count = 1_000_000 if NIGHT else 300_000
    pairs = count**2 / 2**33  # that chance gives: 116, or 10, and the root of it more or less
    keys = b"".join(b"7F000001000055970000%012X" % number for number in range(count))
    found = native.digests(np.frombuffer(keys, np.uint8), np.arange(count + 1) * 32)
    assert len(np.unique(found)) == count
    for half in (found & 0xFFFFFFFF, found >> 32):
        assert abs(count - len(np.unique(half)) - pairs) < 7 * pairs**0.5


# -- the essay -----------------------------------------------------------------------------------------------------


def section() -> str:
    return ESSAY.read_text(encoding="utf-8").partition("## What clients were promised\n")[2].partition("\n## ")[0]


def test_the_example_of_the_essay_is_a_client_log(tmp_path: Path) -> None:
    (example_log,) = re.findall(r"```json\n(.*?)```", section(), re.DOTALL)
    path = tmp_path / "client.ndjson"
    path.write_text(example_log, encoding="utf-8")
    log = client_log.read(path)
    assert_is(log, example_log)
    assert (len(log.sends), len(log.checks), len(log.ends), log.complete) == (5, 1, 1, True)


def test_the_essay_tells_of_every_field() -> None:
    table = [row.split("|") for row in section().splitlines() if row.startswith("| `")]
    documented = {name for row in table for name in re.findall(r"`(\w+)`", row[1])}
    models = (
        request_lines.SendRequest,
        request_lines.BatchRequest,
        request_lines.EndRequest,
        request_lines.CheckRequest,
        request_lines.AdminRequest,
        request_lines.OtherRequest,
    )
    assert documented == {field.alias or name for model in models for name, field in model.model_fields.items()}
    assert set(re.findall(r"`(\w+)`", table[0][3])) == set(request_lines.OPS)


@pytest.mark.parametrize("op", ["send", "half"])
def test_a_message_that_no_line_tells_of_was_not_sent(op: str, tmp_path: Path) -> None:
    """Two messages of a half: it, and its final, which has its key, and no answer that names its place."""
    folder = recording_with_client("immunity")
    lines = [json.loads(line) for line in (folder / "client.ndjson").read_bytes().splitlines()]
    committed = {line.get("uniq") for line in lines if line["op"] == "end" and line["decision"] == "commit"}
    sent = [line for line in lines if line["op"] == op and line["result"] == "ok"]
    missing = next(line for line in sent if op == "send" or line["uniq"] in committed)
    rest = written(tmp_path, *(line for line in lines if line is not missing))
    report = gapless.check([folder / "store"], client=rest, profile="rocketmq")
    (found,) = report.violations
    assert (found.rule, found.count) == ("queue/client-sent-the-message", 1 if op == "send" else 2)


def test_plain_lines_are_read_without_pyarrow(tmp_path: Path) -> None:
    """It takes a twentieth of a second to load, and memory."""
    path = written(tmp_path, *(a_send() for _ in range(200)))
    text = f"""
import sys
from pathlib import Path
from gapless.traces.sources.rocketmq.clients.requests import client_log
from gapless.traces.sources.rocketmq.clients.requests.plain_requests import RequestReader
RequestReader.pays = lambda size: True
print(len(client_log.read(Path({str(path)!r})).sends), "pyarrow" in sys.modules)
"""
    out = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.split()
    assert out == ["200", "False"]


def test_columns_are_what_other_rooms_are_reported() -> None:
    names = {kind: {column.name for column in fields(kind)} - {"line"} for kind in (Sends, Ends, Checks, Resumes)}
    assert names == {
        Sends: {"position", "number", "count", "key", "crc", "length", "topic", "queue", "half", "result"},
        Ends: {"key", "number", "position", "decision", "result", "from_check"},
        Checks: {"key", "number", "position", "times"},
        Resumes: {"position", "result"},
    }
