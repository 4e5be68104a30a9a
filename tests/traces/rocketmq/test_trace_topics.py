"""Messages in trace topics are evidence: promised messages must be there, and no others."""

import random
import zlib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless import Report, check
from gapless.traces.sources.rocketmq.clients import trace_bodies, trace_topics
from gapless.traces.sources.rocketmq.clients.requests import client_log
from gapless.traces.sources.rocketmq.clients.requests.request_lines import OK
from gapless.traces.sources.rocketmq.columns.bytes import Bytes
from gapless.traces.sources.rocketmq.report_rows import TraceTopicRow
from gapless.traces.sources.rocketmq.store.opening import open_store
from tests.support.rocketmq.recordings import RECORDINGS, copy_of, recording_as_left
from tests.support.rocketmq.stores import Record, encode, host, properties, read_log
from tests.support.rocketmq.traced import (
    DELAYED,
    HALF,
    TRACES,
    TracedBuilder,
    answers,
    end,
    handed,
    nothing,
    offset_id,
    pub,
    rewrite,
    write_at,
)

LOST = "queue/message-that-was-acknowledged-is-in-the-log-where-the-answer-said"
OTHER = "queue/message-that-was-acknowledged-is-what-its-producer-sent"
RECORDED = {  # trace messages, and messages that they say were answered, as another reader counts them
    "clean_4.9.7": (29, 420),
    "clean_5.5.0": (214, 420),
    "killed_4.9.7": (35, 356),
    "killed_5.3.3": (197, 381),
    "killed_5.5.0": (187, 360),
    "renamed_5.5.0": (160, 333),
    "unclean_5.3.3": (217, 420),
}


def topic_of(name: str) -> str:
    return "audit_traces" if name.startswith("renamed") else TRACES


def topic_row(report: Report) -> TraceTopicRow:
    (row,) = report.testimony
    assert isinstance(row, TraceTopicRow)
    return row


def test_every_recording_is_judged_here() -> None:
    assert {path.name.removesuffix(".tar.xz") for path in (RECORDINGS / "traced").iterdir()} == RECORDED.keys()


@pytest.mark.parametrize("name", RECORDED)
def test_recordings_conform_by_their_traces_alone(name: str, tmp_path: Path) -> None:
    messages, answered = RECORDED[name]
    report = check([copy_of(f"traced/{name}", tmp_path).parent])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    row = topic_row(report)
    assert (row.topics, row.messages, row.promised) == (topic_of(name), messages, answered)
    assert row.testified == answered == report.coverage["queue.acknowledge"]
    assert row.damaged == row.strange == row.elsewhere == row.untimely == 0
    assert row.share > 0.9
    assert row.commits > 15
    assert row.rollbacks > 5
    assert row.handed > 200 or name == "clean_4.9.7"


@pytest.mark.parametrize("name", RECORDED)
def test_traces_tell_nine_in_ten_of_what_clients_were_answered(name: str) -> None:
    """Compared with the clients' own logs; nothing is reported twice."""
    folder = recording_as_left(f"traced/{name}")
    sends = client_log.read(folder / "client.ndjson").sends
    known = set(sends.position[(sends.result == OK) & (sends.position >= 0)].tolist())
    traced = {answer.position for answer in answers(folder / "store", topic_of(name))}
    assert traced <= known
    assert len(traced) == RECORDED[name][1]
    assert len(traced) >= (0.9 if "killed" in name or "renamed" in name else 1) * len(known)
    report = check([folder])
    assert report.verdict == "conforms"
    assert report.coverage["queue.acknowledge"] == len(known)
    assert topic_row(report).testified == len(traced)


# -- faults ------------------------------------------------------------------------------------------------------------


def traced_pairs(store: Path, name: str) -> list[tuple[Record, Record]]:
    """Messages that traces tell of, and the records behind them."""
    records, places = read_log(store), {answer.position for answer in answers(store, topic_of(name))}
    return [(a, b) for a, b in pairwise(records) if a.position in places and b.position == a.end]


@pytest.mark.parametrize("name", ["clean_4.9.7", "clean_5.5.0", "killed_5.3.3"])
def test_another_message_in_its_place_is_found(name: str, tmp_path: Path) -> None:
    store = copy_of(f"traced/{name}", tmp_path)
    chosen = [
        one for one, _ in random.Random(3).sample(traced_pairs(store, name), 30) if one.topic in ("orders", "payments")
    ]
    for record in chosen:
        rewrite(store, record, properties=record.properties.replace(b"7F0000", b"8F0000"))
    report = check([store.parent])
    (finding,) = [finding for finding in report.findings if finding.severity == "violation"]
    assert (finding.rule, finding.count) == (OTHER, len(chosen))
    first = min(record.position for record in chosen)
    assert (finding.where.file, finding.where.offset) == (f"commitlog/{0:020}", first)
    assert topic_row(report).testified == RECORDED[name][1] - len(chosen)


@pytest.mark.parametrize("which", range(4))
def test_a_message_that_is_gone_is_found(which: int, tmp_path: Path) -> None:
    """The record before it has grown over it."""
    name = "clean_5.5.0"
    store = copy_of(f"traced/{name}", tmp_path)
    places = {answer.position for answer in answers(store)}
    records = read_log(store)
    pairs = [(a, b) for a, b in pairwise(records) if b.position in places and a.end == b.position]
    before, gone = random.Random(which).choice(pairs)
    write_at(store, before.position, encode(replace(before, body=before.body + b"-" * gone.size)))
    report = check([store.parent])
    (finding,) = [finding for finding in report.findings if finding.rule == LOST]
    assert (finding.count, finding.where.offset) == (1, gone.position)
    assert "the trace message at" in finding.message


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("client", [False, True])
def test_traces_that_are_not_there_are_no_violation(seed: int, *, client: bool, tmp_path: Path) -> None:
    store = copy_of("traced/clean_5.5.0", tmp_path, client=client)
    records = [record for record in read_log(store) if record.topic == TRACES]
    for record in random.Random(seed).sample(records, len(records) // 10):
        rewrite(store, record, body=nothing(len(record.body)), sys_flag=0)
    report = check([store.parent])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    assert 300 < topic_row(report).promised < 420
    assert topic_row(report).strange == topic_row(report).damaged == 0


@pytest.mark.parametrize("seed", range(6))
def test_damaged_traces_are_not_understood_and_are_no_violation(seed: int, tmp_path: Path) -> None:
    store = copy_of("traced/clean_4.9.7", tmp_path)
    choose = random.Random(seed)
    for record in [record for record in read_log(store) if record.topic == TRACES]:
        body = bytearray(zlib.decompress(record.body) if record.sys_flag & 1 else record.body)
        for _ in range(choose.choice((1, 3, 40))):
            at = choose.randrange(len(body))
            body[at] = choose.choice((0, 1, 2, 255, choose.randrange(256)))
        if not record.sys_flag & 1:
            rewrite(store, record, body=bytes(body))
        else:  # what cannot be unpacked
            rewrite(store, record, body=choose.randbytes(len(record.body)))
    report = check([store.parent])
    lies = {finding.rule for finding in report.findings if finding.severity == "violation"}
    assert lies <= {LOST, OTHER}  # a digit of a position or of a key may have become another one
    assert topic_row(report).strange + topic_row(report).damaged > 5


def test_trace_messages_that_are_not_where_their_entries_say_are_counted(tmp_path: Path) -> None:
    traced = TracedBuilder()
    for _ in range(3):
        traced.trace(traced.acknowledged(traced.send()))
    store = traced.builder.write(tmp_path / "store")
    (record, *_) = [record for record in read_log(store) if record.topic == TRACES]
    data = bytearray(encode(record))
    data[100] ^= 1  # the body's checksum is wrong
    write_at(store, record.position, bytes(data))
    row = topic_row(check([store]))
    assert (row.messages, row.damaged, row.promised) == (3, 1, 2)


# -- what must not be taken for a promise ------------------------------------------------------------------------------


def check_of(traced: TracedBuilder, folder: Path) -> Report:
    return check([traced.builder.write(folder / "store")])


def test_a_promise_that_was_kept_and_one_that_was_not(tmp_path: Path) -> None:
    traced = TracedBuilder()
    kept, lost = traced.send(), traced.send()
    place = offset_id(lost.store_host, lost.position + 3)
    traced.trace(traced.acknowledged(kept), pub("orders", lost.property_map["UNIQ_KEY"], place))
    report = check_of(traced, tmp_path)
    (finding,) = report.findings
    assert (finding.rule, finding.where.offset, finding.count) == (LOST, lost.position + 3, 1)
    assert topic_row(report).testified == 1
    assert finding.trace == "orders/?"
    assert finding.story[-1] == f"Again: gapless explain {tmp_path / 'store'} --trace 'orders/?'"
    (again,) = check([tmp_path / "store"], trace="orders/?").findings
    assert again.where == finding.where


OWN = host("127.0.0.1", 10911)
HERE = offset_id(OWN, 1)
TRAPS = {
    "of another broker": ("elsewhere", pub("orders", "K", offset_id(host("127.0.0.2", 10911), 1))),
    "of another port": ("elsewhere", pub("orders", "K", offset_id(host("127.0.0.1", 10912), 1))),
    "of a host with a long address": ("elsewhere", pub("orders", "K", offset_id(host("::1", 10911), 1))),
    "not as safe as was asked for": ("doubtful", pub("orders", "K", HERE, success=False)),
    "behind the trace itself": ("untimely", pub("orders", "K", offset_id(OWN, 100_000))),
    "of an earlier log": ("untimely", pub("orders", "K", HERE, time=1_600_000_000_000)),
    "without a place": ("placeless", pub("orders", "K", "null")),
    "with an empty place": ("placeless", pub("orders", "K", "")),
    "of an old client": ("placeless", pub("orders", "K", None)),
    "with a place that is none": ("strange", pub("orders", "K", "AC11000100002A9F00000000000A")),
    "with fewer places than keys": ("strange", pub("orders", "K,L", HERE)),
    "of an unknown kind": ("strange", pub("orders", "K", HERE, kind=9)),
    "with a field too many": ("strange", pub("orders", "K", HERE, more=("host", "and"))),
    "with a separator in its keys": ("strange", pub("orders", "K", HERE, keys="a\x01b\x01c")),
    "that is cut off": ("strange", pub("orders", "K", HERE)[:-1]),
    "of an unknown name": ("strange", "Poll\x011\x02"),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_what_is_no_promise_of_this_log_is_not_used(trap: str, tmp_path: Path) -> None:
    counted, context = TRAPS[trap]
    traced = TracedBuilder()
    first = traced.send()
    assert (first.store_host, first.position) == (OWN, 0)
    traced.trace(traced.acknowledged(first), context)
    report = check_of(traced, tmp_path)
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    row = topic_row(report)
    assert (row.promised, row.testified, getattr(row, counted)) == (1, 1, 1)


def test_what_has_expired_is_no_violation(tmp_path: Path) -> None:
    traced = TracedBuilder()
    old = [traced.send() for _ in range(120)]
    while traced.builder.end < traced.builder.log_file_size + 1000:
        traced.send()
    young = traced.send()
    for record in [*old, young]:
        traced.trace(traced.acknowledged(record))
    traced.builder.expired = 1
    report = check_of(traced, tmp_path)
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    expired = sum(record.position < traced.builder.log_file_size for record in old)
    assert expired > 50
    assert (topic_row(report).expired, topic_row(report).testified) == (expired, len(old) + 1 - expired)


def test_batches_namespaces_delayed_messages_and_clients_of_old(tmp_path: Path) -> None:
    traced = TracedBuilder()
    batch = [traced.send() for _ in range(3)]
    spaced = traced.send("MQ_INST_7%orders")
    retried = traced.send("%RETRY%MQ_INST_7%group")
    delayed = traced.builder.append(
        Record("SCHEDULE_TOPIC_XXXX", b"d", properties({"UNIQ_KEY": "D", "DELAY": "3", "REAL_TOPIC": "orders"}), 2)
    )
    keys = ",".join(record.property_map["UNIQ_KEY"] for record in batch)
    places = ",".join(offset_id(record.store_host, record.position) for record in batch)
    traced.trace(
        pub("orders", keys, places),
        pub("orders", spaced.property_map["UNIQ_KEY"], offset_id(spaced.store_host, spaced.position)),
        pub("%RETRY%group", retried.property_map["UNIQ_KEY"], offset_id(retried.store_host, retried.position)),
        pub("orders", "D", offset_id(delayed.store_host, delayed.position), kind=DELAYED),
        pub("orders", "null", offset_id(delayed.store_host, delayed.position), kind=DELAYED, more=("1.2.3.4",)),
    )
    row = topic_row(report := check_of(traced, tmp_path))
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    assert row.promised == row.testified == 7


def test_hosts_with_long_addresses(tmp_path: Path) -> None:
    traced = TracedBuilder()
    here = host("fe80::1:2:3", 10911)
    sent = traced.builder.append(
        Record("orders", b"six", properties({"UNIQ_KEY": "K"}), sys_flag=0x20, store_host=here)
    )
    body = pub("orders", "K", offset_id(here, sent.position)) + pub("orders", "K", offset_id(host("::9", 10911), 5))
    traced.builder.append(Record(TRACES, body.encode(), sys_flag=0x20, store_host=here))
    row = topic_row(check_of(traced, tmp_path))
    assert (row.promised, row.testified, row.elsewhere) == (1, 1, 1)


def streamed(text: bytes, how: Literal["lz4", "zstd"]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, how) as out:
        out.write(text)
    return bytes(sink.getvalue().to_pybytes())


def packed_by(kind: str) -> tuple[int, bytes]:
    text = b"Recall\x011\x01R\x01G\x01T\x01k\x01true\x02" * 400
    if kind == "lz4":
        return 0x101, streamed(text, "lz4")
    if kind == "zstd":
        return 0x201, streamed(text, "zstd")
    return {"zlib": 0x301, "old": 0x1}[kind], zlib.compress(text)


@pytest.mark.parametrize("kind", ["zlib", "old", "lz4", "zstd"])
def test_bodies_that_were_compressed(kind: str, tmp_path: Path) -> None:
    flags, body = packed_by(kind)
    traced = TracedBuilder()
    traced.send()
    traced.trace(body=body, flags=flags)
    traced.trace(body=bytes(9) + body[9:], flags=flags)
    traced.trace(body=body, flags=0x701)
    traced.trace(end("A"), end("A", "ROLLBACK_MESSAGE"), end("B", "UNKNOW"), handed("A"))
    row = topic_row(check_of(traced, tmp_path))
    assert (row.contexts, row.damaged, row.commits, row.rollbacks, row.handed) == (404, 2, 1, 1, 1)


def test_bodies_are_unpacked_as_many_at_a_time_as_memory_is_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few bytes become very many: all bodies of a log file in memory would be a thousand times its length."""
    flags, body = packed_by("zstd")
    traced = TracedBuilder()
    traced.send()
    for _ in range(5):
        traced.trace(body=body, flags=flags)
    texts: list[int] = []
    read = trace_bodies.read_bodies

    def noted(text: Bytes, *more: Any) -> None:
        texts.append(len(text))
        read(text, *more)

    most = 12_000  # each of them has 8,800
    monkeypatch.setattr(trace_topics, "LARGEST", most)
    monkeypatch.setattr(trace_bodies, "read_bodies", noted)
    row = topic_row(check_of(traced, tmp_path))
    assert (row.contexts, row.damaged) == (2000, 0)
    assert [length for length in texts if length < 2 * most] == [17_600, 17_600, 8_800]


def test_a_half_lies_in_the_half_topic(tmp_path: Path) -> None:
    traced = TracedBuilder()
    first = traced.send()
    traced.trace(traced.acknowledged(first, kind=HALF))
    (finding,) = check_of(traced, tmp_path).findings
    assert finding.rule == OTHER


def test_a_topic_of_another_name_is_found_where_settings_or_options_name_it(tmp_path: Path) -> None:
    traced = TracedBuilder()
    traced.trace(traced.acknowledged(traced.send()), topic="mine")
    store = traced.builder.write(tmp_path / "store")
    assert not check([store]).testimony
    assert trace_topics.trace_topics(replace(open_store(store), trace_topics=("mine",))) == ("mine",)
    assert topic_row(check([store], trace_topics=["mine"])).testified == 1
    (tmp_path / "broker.conf").write_text("msgTraceTopicName=mine\n")
    assert topic_row(check([store])).testified == 1


TEXTS = ("créé", "订单-😀", "a b", "\u2028", "x\x00y", "null", "{" + "k" * 300 + "}", "a,b;c|d")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("named", [TRACES, "审计_traces"])
def test_what_is_stated_in_any_script_is_read(named: str, tmp_path: Path, *, packed: bool) -> None:
    """Tags and keys are whatever users write; a message that is gone is missed among them, and is the only one."""
    traced = TracedBuilder()
    messages = [traced.acknowledged(traced.send(), tags=text, keys=text) for text in TEXTS]
    lost = pub("orders", "F" * 32, offset_id(OWN, 3), tags=TEXTS[1], keys=TEXTS[1])
    cut = pub("orders", "A" * 32, offset_id(OWN, 0), keys="a\x02b")  # which is what ends a context
    body = "".join([*messages, lost, cut]).encode()
    traced.trace(body=zlib.compress(body) if packed else body, flags=0x301 if packed else 0, topic=named)
    report = check([traced.builder.write(tmp_path / "store")], trace_topics=[named])
    (finding,) = report.findings
    assert (finding.rule, finding.where.offset, finding.count) == (LOST, 3, 1)
    (row,) = report.testimony
    assert isinstance(row, TraceTopicRow)
    assert (row.promised, row.testified, row.strange) == (len(TEXTS) + 1, len(TEXTS), 2)


# -- bodies of any kind ------------------------------------------------------------------------------------------------

FIELDS = st.sampled_from(["Pub", "SubAfter", "", "null", "7", "true", "orders", "A,B", offset_id(OWN, 7), "é"])
CONTEXTS = st.one_of(
    st.lists(FIELDS, max_size=18).map(lambda fields: "\x01".join(fields) + "\x02"),
    st.builds(pub, FIELDS, FIELDS, FIELDS, kind=st.integers(0, 5), success=st.booleans()),
    st.just(end("A")),
    st.just(handed("B")),
)


def np_of(values: object) -> "np.ndarray[tuple[int, ...], np.dtype[np.int64]]":
    return np.array(values, np.int64)


def as_uint8(text: bytes) -> "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]":
    return np.frombuffer(text or b"\0", np.uint8)


@given(st.lists(st.binary(max_size=60) | CONTEXTS.map(str.encode), max_size=12))
def test_any_body_is_read_by_python_and_natively_alike(bodies: list[bytes]) -> None:
    results = []
    text = b"".join(bodies)
    ends = np_of([len(b"".join(bodies[: at + 1])) for at in range(len(bodies))])
    begins = np_of([0, *ends[:-1].tolist()][: len(bodies)])
    hosts = np_of([[0x7F000001], [0], [0], [0], [10911]]).repeat(len(bodies), axis=1)
    for read in (trace_bodies.read_bodies.by_python, trace_bodies.read_bodies.compiled):
        rows, counts, done = (np_of([0] * n) for n in (trace_bodies.ANSWER_ROWS * 300, trace_bodies.COUNTS, 2))
        rows = rows.reshape(trace_bodies.ANSWER_ROWS, 300)
        fields = np_of([0] * (trace_bodies.MOST_FIELDS + 1))
        read(as_uint8(text), begins, ends, hosts, np_of([1 << 40] * len(bodies)), fields, rows, counts, done)
        assert done[0] == len(bodies)
        results.append((rows[:, : done[1]].tolist(), counts.tolist()))
    assert results[0] == results[1]


# -- deliveries --------------------------------------------------------------------------------------------------------

ABSENT = "delivery/message-that-was-handed-out-is-in-the-log"
UNDECIDED = "delivery/half-that-was-handed-out-was-committed"


@pytest.mark.parametrize("name", [name for name in RECORDED if name != "clean_4.9.7"])
def test_consumers_were_handed_what_is_in_the_log(name: str, tmp_path: Path) -> None:
    report = check([copy_of(f"traced/{name}", tmp_path).parent], only_broker=True)
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    row = topic_row(report)
    assert 150 < row.delivered == row.readable == report.coverage["delivery.hand"]
    assert row.undecided == 0


def transaction(traced: TracedBuilder, *, final: bool) -> tuple[Record, str]:
    """A half, and its final if it is committed."""
    key = f"{traced.sent + 1000:032X}"
    named = {"UNIQ_KEY": key, "TRAN_MSG": "true", "PGROUP": "g", "REAL_TOPIC": "orders", "REAL_QID": "0"}
    half = traced.builder.append(Record("RMQ_SYS_TRANS_HALF_TOPIC", b"half", properties(named)))
    if final:
        traced.builder.append(Record("orders", b"half", half.properties, sys_flag=8, prepared_position=half.position))
    return half, key


@pytest.mark.parametrize("final", [False, True])
def test_an_uncommitted_half_is_not_delivered(tmp_path: Path, *, final: bool) -> None:
    traced = TracedBuilder()
    traced.send()
    half, key = transaction(traced, final=final)
    traced.trace(handed(key))
    store = traced.builder.write(tmp_path / "store")
    alone, among_others = check([store], only_broker=True), check([store])
    assert topic_row(alone).undecided == topic_row(among_others).undecided == (not final)
    if final:
        assert {alone.verdict, among_others.verdict} == {"conforms"}
        return
    assert among_others.verdict == "inconclusive"
    assert not among_others.findings
    assert "--only-broker" in " ".join(among_others.sources[0].reasons)
    (finding,) = alone.findings
    assert (finding.rule, finding.trace, finding.where.offset) == (UNDECIDED, key, half.position)
    again = check([store], only_broker=True, trace=key)
    assert [found.rule for found in again.findings] == [UNDECIDED]


def test_what_is_not_in_the_log_was_handed_out_by_another_broker_if_there_is_one(tmp_path: Path) -> None:
    traced = TracedBuilder()
    here = traced.send()
    trace = traced.trace(handed(here.property_map["UNIQ_KEY"]), handed("ELSEWHERE"), handed("ELSEWHERE", "A1"))
    store = traced.builder.write(tmp_path / "store")
    among_others = check([store])
    assert among_others.verdict == "conforms"
    assert (topic_row(among_others).handed, topic_row(among_others).delivered, topic_row(among_others).readable) == (
        3,
        2,
        1,
    )
    (finding,) = check([store], only_broker=True).findings
    assert (finding.rule, finding.trace, finding.where.offset) == (ABSENT, "ELSEWHERE", trace.position)


def test_deliveries_from_a_log_whose_beginning_has_expired_are_no_violation(tmp_path: Path) -> None:
    traced = TracedBuilder()
    old = traced.send()
    while traced.builder.end < traced.builder.log_file_size + 1000:
        traced.send()
    traced.trace(handed(old.property_map["UNIQ_KEY"]))
    traced.builder.expired = 1
    report = check([traced.builder.write(tmp_path / "store")], only_broker=True)
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    assert (topic_row(report).delivered, topic_row(report).readable) == (1, 0)
