"""Cursors of consumer groups and of delay levels, and topics, compared with the queues."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rocksdict import Options, Rdict

from gapless import check
from gapless.traces.report.values import Report
from tests.support.rocketmq.recordings import copy_of, recording, recording_as_left
from tests.support.rocketmq.store_builder import StoreBuilder
from tests.support.rocketmq.stores import Record

WHOLE, KILLED = "layouts/ext_first_5.5.0", "layouts/ext_killed_5.5.0"
GROUPS, LEVELS = "consumerOffset.json", "delayOffset.json"
OF_GROUP = "cursor/cursor-of-the-group-stays-within-its-queue"
OF_LEVEL = "cursor/cursor-of-the-level-stays-within-its-queue"
RECORDED = {  # cursors of groups, and of delay levels, as they stand in the files
    "layouts/ext_first_4.9.7": (8, 3),
    "layouts/ext_first_5.3.3": (4, 3),
    "layouts/ext_first_5.5.0": (4, 3),
    "layouts/ext_lives_4.9.7": (8, 3),
    "layouts/ext_lives_5.5.0": (4, 3),
    "layouts/cursors_rocksdb_5.3.3": (4, 3),
    "layouts/cursors_rocksdb_5.5.0": (4, 3),
    "pop_retry": (13, 0),
}


@pytest.mark.parametrize("name", RECORDED)
def test_what_brokers_left_conforms(name: str) -> None:
    report = check([recording_as_left(name)])
    assert (report.verdict, report.hazards) == ("conforms", [])
    assert (report.coverage["cursor.save"], report.coverage["cursor.deliver"]) == RECORDED[name]


def test_the_cursors_are_in_a_database() -> None:
    config = recording("layouts/cursors_rocksdb_5.5.0") / "config"
    assert (config / "consumerOffsets" / "CURRENT").exists()
    assert not (config / GROUPS).exists()


def changed(store: Path, file: str, pattern: str, to: str) -> int:
    """Change the first cursor that follows a name, and say where that name stands."""
    path = store / "config" / file
    text = path.read_text(encoding="utf-8")
    found = re.search(pattern, text)
    assert found
    path.write_text(text[: found.start(1)] + to + text[found.end(1) :], encoding="utf-8")
    return found.start()


def without_master(store: Path) -> None:
    with (store.parent / "broker.conf").open("a") as settings:
        settings.write("brokerRole=SLAVE\n")


def of_group(store: Path, to: str) -> int:
    return changed(store, GROUPS, r'"orders@CG_sql":\{\s*0:(\d+)', to)


def of_level(store: Path, to: str) -> int:
    return changed(store, LEVELS, r'"offsetTable":\{\s*1:(\d+)', to)


FAULTS: dict[str, tuple[Callable[[Path, str], int], str, str, str]] = {
    "a group beyond its queue": (of_group, "1000000", "hazard", OF_GROUP),
    "a group below 0": (of_group, "-1", "hazard", "cursor/cursor-of-the-group-is-a-number"),
    "a level beyond its queue": (of_level, "5000", "violation", OF_LEVEL),
    "a level below 0": (of_level, "-7", "violation", "cursor/cursor-of-the-level-is-a-number"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_at_its_place(fault: str, tmp_path: Path) -> None:
    damage, to, severity, rule = FAULTS[fault]
    store = copy_of(WHOLE, tmp_path)
    offset = damage(store, to)
    report = check([store.parent])
    assert report.verdict == ("departs" if severity == "violation" else "conforms")
    (found,) = (finding for finding in report.findings if finding.severity != "anomaly")
    assert (found.severity, found.rule) == (severity, rule)
    file = GROUPS if severity == "hazard" else LEVELS
    assert (found.where.file, found.where.offset) == (f"config/{file}", offset)
    assert to in found.message


def quiet(store: Path) -> Report:
    report = check([store.parent])
    assert not [finding for finding in report.findings if finding.severity != "anomaly"]
    return report


def test_a_cursor_at_the_very_end_is_within(tmp_path: Path) -> None:
    store = copy_of(WHOLE, tmp_path)
    end = next(queue.end for queue in check([store.parent]).queues if (queue.topic, queue.queue) == ("orders", 0))
    of_group(store, str(end))
    assert quiet(store).verdict == "conforms"


@pytest.mark.parametrize("damage", [of_group, of_level])
def test_a_slave_has_the_cursors_of_its_master(damage: Callable[[Path, str], int], tmp_path: Path) -> None:
    store = copy_of(WHOLE, tmp_path)
    damage(store, "5000")
    without_master(store)
    report = quiet(store)
    assert report.verdict == "conforms"
    assert any("legal on a slave" in note for note in report.sources[0].notes)


def test_a_power_loss_may_have_taken_what_a_level_had_delivered(tmp_path: Path) -> None:
    store = copy_of(KILLED, tmp_path)
    if not (store / "config" / LEVELS).exists():
        (store / "config" / LEVELS).write_text('{"offsetTable":{1:5000}}', encoding="utf-8")
    else:
        of_level(store, "5000")
    assert quiet(store).verdict == "inconclusive"


def test_a_cursor_of_a_topic_without_messages_says_nothing(tmp_path: Path) -> None:
    store = copy_of(WHOLE, tmp_path)
    path = store / "config" / GROUPS
    path.write_text(path.read_text(encoding="utf-8").replace("orders@CG_sql", "gone@CG_sql"), encoding="utf-8")
    assert quiet(store).verdict == "conforms"


def test_queues_that_get_no_messages_are_noted(tmp_path: Path) -> None:
    store = copy_of(WHOLE, tmp_path)
    path = store / "config" / "topics.json"
    text = path.read_text(encoding="utf-8")
    fewer = re.sub(
        r'("orders":\{[^}]*\},[^}]*)"readQueueNums":2([^}]*)"writeQueueNums":2',
        r'\1"readQueueNums":1\2"writeQueueNums":1',
        text,
    )
    assert fewer != text
    path.write_text(fewer.replace('"payments":', '"payment":'), encoding="utf-8")
    notes = " ".join(quiet(store).sources[0].notes)
    assert (
        "1 queue with messages lies behind the last one of its topic: no client is sent there any more (orders/1)"
        in notes
    )
    assert "2 queues with messages lie of a topic that config/ does not know: every pull fails (code 17)" in notes


def unknown_topics(store: Path) -> list[str]:
    """The notes about queues whose topic is not saved."""
    report = check([store])
    assert (report.verdict, report.hazards) == ("conforms", [])
    return [note for note in report.sources[0].notes if "config/ does not know" in note]


@pytest.mark.parametrize("table", ["{}", '{"topicConfigTable":{}}'])
def test_topics_that_a_broker_makes_by_itself_need_not_be_saved(table: str, tmp_path: Path) -> None:
    builder = StoreBuilder()
    own = ("%RETRY%group", "RMQ_SYS_TRACE_TOPIC", "rmq_sys_wheel_timer", "SELF_TEST_TOPIC", "a_REPLY_TOPIC")
    for topic in (*own, "DefaultCluster"):
        builder.append(Record(topic, body=b"x"))
    store = builder.write(tmp_path / "store")
    (store / "config" / "topics.json").write_text(table)
    assert unknown_topics(store) == []
    for topic in ("%DLQ%group", "orders"):
        builder.append(Record(topic, body=b"x"))
    store = builder.write(tmp_path / "more")
    topics = store / "config" / "topics.json"
    topics.write_text(table)
    (note,) = unknown_topics(store)
    assert note.endswith("(%DLQ%group/0, orders/0)")
    topics.unlink()
    (hazard,) = check([store]).hazards
    assert (hazard.spec, hazard.where.file) == ("startup", "config/topics.json"), "they are lost at the next start"


def test_topics_in_a_database_are_known(tmp_path: Path) -> None:
    store = copy_of("layouts/cursors_rocksdb_5.5.0", tmp_path)
    assert unknown_topics(store) == []
    place = str(store / "config" / "topics")
    families = {name: Options(raw_mode=True) for name in Rdict.list_cf(place)}
    table = Rdict(place, Options(raw_mode=True), families)
    for topic in (b"orders", b"%RETRY%CG_sql"):
        del table[topic]
    table.close()
    (note,) = unknown_topics(store)
    assert note.endswith("(orders/0, orders/1)")


def test_without_its_library_a_database_of_cursors_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = copy_of("layouts/transrocks_5.5.0", tmp_path)
    (store / "config" / "consumerOffsets").mkdir(exist_ok=True)
    (store / "config" / "consumerOffsets" / "CURRENT").write_text("MANIFEST-000001\n")
    monkeypatch.setitem(sys.modules, "rocksdict", None)
    (report,) = check([store.parent]).sources
    assert any("they are in consumerOffsets/, a RocksDB database" in note for note in report.notes)
