"""The second opinion on transactions, compared with real brokers' stores, and with generated lives."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings

from gapless import check
from tests.support.rocketmq.recordings import COUNTS, recording
from tests.support.rocketmq.store_builder import StoreBuilder
from tests.support.rocketmq.stores import read_log
from tests.support.rocketmq.transaction_broker import VERSIONS, TransactionBroker, Version, brokers, lived
from tests.support.rocketmq.transactions import (
    COUNTER,
    HALF,
    IMMUNITY,
    ORIGIN,
    Cursors,
    client_log,
    counter_of,
    counts,
    cursor_file,
    cursors,
    departures,
    finals,
    halves,
    key_of,
    ops,
    parked,
    read_fastjson,
    settings_of,
)

CURSORS = {"unclean": Cursors(1131, 14), "midlife": Cursors(755, 29)}  # the others stand at their queues' ends


# What real brokers wrote


@pytest.mark.parametrize("name", COUNTS)
def test_a_recording_has_its_transactions(name: str) -> None:
    store = recording(name)
    assert counts(store) == COUNTS[name]
    assert len(halves(store)) == COUNTS[name].halves
    assert len(parked(store)) == COUNTS[name].parked


@pytest.mark.parametrize("name", COUNTS)
def test_a_recording_has_its_cursors(name: str) -> None:
    store = recording(name)
    ends = Cursors(halves(store)[-1].number + 1, ops(store)[-1].record.number + 1)
    assert cursors(store) == CURSORS.get(name, ends)


def test_with_multi_dispatch_queues_the_cursors_have_a_file_of_another_name() -> None:
    files = {name: cursor_file(recording(name)) for name in ("lmq", "normal")}
    assert {name: file.name for name, file in files.items() if file} == {
        "lmq": "lmqConsumerOffset.json",
        "normal": "consumerOffset.json",
    }


@pytest.mark.parametrize("name", COUNTS)
def test_nothing_in_a_recording_departs(name: str) -> None:
    assert departures(recording(name)) == []


def test_brokers_of_each_version_write_finals_and_ops_in_their_own_way() -> None:
    aimed = {name: {"REAL_QID" in final.property_map for final in finals(recording(name))} for name in COUNTS}
    assert {name for name, found in aimed.items() if found == {True}} == {"v4", "normal_533"}
    assert {name for name, found in aimed.items() if found == {False}} == {*COUNTS} - {"v4", "normal_533"}
    assert all(op.record.body.endswith(b",") for op in ops(recording("normal_533")))
    assert not any(op.record.body.endswith(b",") for op in ops(recording("v4")))


# What the format says


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{0:5}", {"0": 5}),
        ('{"a":{0:5,\n\t\t1 : 6}}', {"a": {"0": 5, "1": 6}}),
        ('{"7:8":{"0":5}}', {"7:8": {"0": 5}}),
        (r'{"a\"0:1":"{0:5}"}', {'a"0:1': "{0:5}"}),
        ('{"offsetTable":{}}', {"offsetTable": {}}),
    ],
)
def test_integer_keys_may_stand_without_quotes(text: str, found: object) -> None:
    assert read_fastjson(text) == found


# What the broker of these tests does


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(life=brokers())
def test_a_lawful_life_breaks_no_rule(life: tuple[TransactionBroker, bool]) -> None:
    broker, clean = life
    with TemporaryDirectory() as room:
        assert departures(broker.write(Path(room), clean=clean)) == []


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(life=brokers())
def test_what_was_lived_is_read(life: tuple[TransactionBroker, bool]) -> None:
    broker, clean = life
    with TemporaryDirectory() as room:
        store = broker.write(Path(room), clean=clean)
        kept = {record.position for record in read_log(store)}
        assert halves(store) == [half for half in broker.halves if half.position in kept]
        assert finals(store) == [final for final in broker.finals if final.position in kept]
        assert ops(store) == [op for op in broker.ops if op.record.position in kept]
        assert parked(store) == [record for record in broker.parked if record.position in kept]
        assert cursors(store) == broker.saved
        assert client_log(store) == broker.lines
        assert settings_of(store)["transactionCheckMax"] == str(broker.check_max)


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(life=brokers())
def test_no_lawful_life_is_accused(life: tuple[TransactionBroker, bool]) -> None:
    """By the checker itself; a life in which nothing happened leaves it nothing to judge."""
    broker, clean = life
    with TemporaryDirectory() as room:
        report = check([broker.write(Path(room), clean=clean)])
    assert report.verdict in {"conforms", "inconclusive"}, report.model_dump_json(indent=1)[:4000]
    assert not report.violations


def test_lives_have_all_that_is_odd(tmp_path: Path) -> None:
    """Otherwise the tests above say less than they seem to."""
    store = lived(1).write(tmp_path)
    versions = halves(store)
    marked = [number for op in ops(store) for number in op.numbers]
    positions = [final.prepared_position for final in finals(store)]
    firsts = [key_of(half) for half in versions if counter_of(half) is None]
    decided = {line["decision"] for line in client_log(store) if line["op"] == "end"}
    assert len(set(marked)) < len(marked), "decided twice"
    assert len(set(positions)) < len(positions), "committed twice"
    assert len(set(firsts)) < len(firsts), "sent again"
    assert {counter_of(half) for half in versions} == {None, 0, 1, 2, 3}, "resumed, and put back to the limit"
    assert any(ORIGIN in half.property_map for half in versions), "put back while immune"
    assert {half.number for half in versions[-6:]}.isdisjoint(marked), "open to the end"
    assert decided == {"commit", "rollback", "unknown"}
    assert {line.get("result") for line in client_log(store)} == {"ok", "unknown", "none", "fail", None}


def test_a_transaction_goes_its_usual_way(tmp_path: Path) -> None:
    broker = TransactionBroker()
    half = broker.prepare("orders", 2, b"an order")
    final = broker.commit(half)
    broker.flush_ops()
    broker.wait(2000)
    broker.check()
    store = broker.write(tmp_path)
    assert final is not None
    assert (final.topic, final.queue, final.body, final.prepared_position) == ("orders", 2, b"an order", half.position)
    assert [op.numbers for op in ops(store)] == [(0,)]
    assert cursors(store) == (1, 1)
    assert [line["op"] for line in client_log(store)] == ["half", "end"]


def test_an_undecided_half_is_put_back_and_parked() -> None:
    broker = TransactionBroker(check_max=3)
    half = broker.prepare(flag=5, reconsume_times=1)
    for _ in range(5):
        broker.wait(2000)
        broker.check()
    (rest,) = broker.parked
    assert [counter_of(version) for version in broker.halves] == [None, 1, 2, 3]
    assert [version.flag for version in broker.halves] == [5, 0, 0, 0]
    assert rest.property_map == broker.halves[-1].property_map
    assert half.property_map == {name: rest.property_map[name] for name in rest.property_map if name != COUNTER}
    assert broker.half_cursor == 4
    assert not broker.ops


def test_a_young_half_holds_up_those_behind_it() -> None:
    broker = TransactionBroker(timeout=1000)
    first, second = broker.prepare(), broker.prepare()
    broker.roll_back(second)
    broker.flush_ops()
    assert broker.check() == []
    assert (broker.half_cursor, broker.op_cursor) == (None, None)
    broker.wait(2000)
    (again,) = broker.check()
    assert (key_of(again), broker.half_cursor, broker.op_cursor) == (key_of(first), 2, 1)


def test_a_late_commit_of_an_immune_half_is_overlooked() -> None:
    """Its op names a version that the cursor has passed, and the last one is parked despite the commit."""
    broker = TransactionBroker(version="4.9.7", check_max=2, timeout=1000)
    half = broker.prepare(immunity=3)
    broker.check()  # still too fresh to be looked at
    broker.wait(500)
    broker.check()
    assert broker.halves[1].property_map[ORIGIN] == "0"
    assert broker.halves[1].property_map[IMMUNITY] == "3"
    broker.commit(half)
    for _ in range(4):
        broker.wait(2000)
        broker.check()
    assert len(broker.finals) == len(broker.parked) == 1


def test_a_young_broker_refuses_a_client_whose_half_is_immune_no_longer() -> None:
    broker = TransactionBroker()
    half = broker.prepare(immunity=1)
    broker.wait(5000)
    assert broker.commit(half) is None
    assert broker.commit(half, from_check=True) is not None
    assert [line["result"] for line in broker.lines] == ["ok", "fail", "ok"]


def test_a_crash_loses_decisions_without_an_op_and_sets_the_cursors_back() -> None:
    broker = TransactionBroker()
    half = broker.prepare()
    broker.commit(half)
    broker.flush_ops()
    broker.wait(2000)
    broker.check()
    broker.commit(broker.prepare())
    broker.crash()
    assert (broker.half_cursor, broker.op_cursor, broker.waiting) == (None, None, [])
    broker.wait(2000)
    assert [key_of(again) for again in broker.check()] == [key_of(broker.halves[1])]


def test_ops_are_full_at_their_limit_and_no_sooner() -> None:
    broker = TransactionBroker(op_size=6)
    for _ in range(12):
        broker.commit(broker.prepare())
    broker.flush_ops()
    assert [op.record.body for op in broker.ops] == [b"0,1,2,", b"3,4,5,", b"6,7,8,", b"9,10,11,"]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_writes_as_in_its_recordings(version: Version, tmp_path: Path) -> None:
    name = {"5.5.0": "normal", "5.3.3": "normal_533", "4.9.7": "v4"}[version]
    store, real = lived(2, version=version, odd=False).write(tmp_path), recording(name)
    for written, recorded in ((finals(store), finals(real)), (halves(store), halves(real))):
        without_tags = {frozenset(record.property_map) - {"TAGS"} for record in recorded}
        assert {frozenset(record.property_map) for record in written} <= without_tags
    assert written[0].properties[-1:] == recorded[0].properties[-1:]
    assert {op.record.property_map["TAGS"] for op in ops(store)} == {"d"}
    assert {op.record.body[-1:] == b"," for op in ops(store)} == {op.record.body[-1:] == b"," for op in ops(real)}


def test_only_what_the_cursors_have_passed_expires(tmp_path: Path) -> None:
    broker = TransactionBroker(builder=StoreBuilder(log_file_size=2048))
    for _ in range(20):
        broker.roll_back(broker.prepare())
    broker.flush_ops()
    broker.wait(2000)
    broker.check()
    broker.save()
    left = [broker.prepare() for _ in range(10)]
    broker.expire(100)
    store = broker.write(tmp_path, clean=False)
    assert broker.builder.expired > 0
    assert halves(store)[-10:] == left
    assert departures(store) == []


def test_the_cursors_are_written_as_fastjson_writes_them(tmp_path: Path) -> None:
    store = lived(3).write(tmp_path)
    text = (store / "config/consumerOffset.json").read_text()
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)
    assert cursors(store).half == read_fastjson(text)["offsetTable"][f"{HALF}@CID_RMQ_SYS_TRANS"]["0"]
