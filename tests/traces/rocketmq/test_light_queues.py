"""Light queues: each queue that a message names has its entry there, under the number that the message says."""

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from gapless import check
from tests.support.rocketmq.queue_databases import changed, folder_of, key, opened, value_of
from tests.support.rocketmq.recordings import copy_of, recording_as_left

RECORDED = {  # messages of light queues, and those of them that wait for their entries after a kill
    "lmq_lives_5.5.0": (636, 0),
    "lmq_lives_4.9.7": (622, 0),
    "lmq_killed_5.3.3": (625, 0),
    "lmq_lives_rocksdb_5.5.0": (602, 0),
    "lmq_killed_rocksdb_5.3.3": (595, 294),
    "lmq_room_5.2.0": (60, 0),
    "lmq_again_5.5.0": (60, 0),
    "lmq_again_4.9.7": (92, 0),
    "lmq_both_5.5.0": (130, 0),
    "lmq_both_killed_5.5.0": (100, 40),
}
FILES, DATABASE = "lmq_lives_5.5.0", "lmq_lives_rocksdb_5.5.0"
LIGHT, NUMBER = "%LMQ%q3", 40


@pytest.mark.parametrize("name", RECORDED)
def test_light_queues_of_a_broker_conform(name: str) -> None:
    report = check([recording_as_left(f"layouts/{name}")])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    light = [row for row in report.queues if row.topic.startswith("%LMQ%")]
    messages = sum(row.messages for row in light)
    assert (messages, messages - sum(row.indexed - row.first for row in light)) == RECORDED[name]


def entry(store: Path) -> tuple[Path, int]:
    """The file of the entry that is damaged, and where it lies."""
    at = 20 * NUMBER
    path = store / "consumequeue" / LIGHT / "0" / f"{at // 2000 * 2000:020d}"
    return path, at % 2000


def in_files(field: int, more: int) -> Callable[[Path], None]:
    def fault(store: Path) -> None:
        path, at = entry(store)
        data = bytearray(path.read_bytes())
        fields = list(struct.unpack_from(">qiq", data, at))
        fields[field] += more
        struct.pack_into(">qiq", data, at, *fields)
        path.write_bytes(data)

    return fault


def emptied(store: Path) -> None:
    path, at = entry(store)
    data = bytearray(path.read_bytes())
    data[at : at + 20] = bytes(20)
    path.write_bytes(data)


def in_the_database(**more: int) -> Callable[[Path], None]:
    def fault(store: Path) -> None:
        with opened(store) as (database, _):
            database[key(LIGHT, 0, NUMBER)] = changed(value_of(database, key(LIGHT, 0, NUMBER)), **more)

    return fault


FAULTS: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "wrong position": (FILES, in_files(0, 3), "queue/entry-points-at-its-message"),
    "wrong size": (FILES, in_files(1, 1), "queue/entry-has-the-size-of-its-message"),
    "wrong tag": (FILES, in_files(2, 1), "queue/entry-has-the-tag-code-of-its-message"),
    "emptied": (FILES, emptied, "queue/no-entry-before-it-is-missing"),
    "wrong position in the database": (DATABASE, in_the_database(position=3), "queue/entry-points-at-its-message"),
    "wrong size in the database": (DATABASE, in_the_database(size=1), "queue/entry-has-the-size-of-its-message"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_a_light_queue_is_found_where_it_lies(name: str, tmp_path: Path) -> None:
    recorded, fault, rule = FAULTS[name]
    store = copy_of(f"layouts/{recorded}", tmp_path)
    fault(store)
    report = check([store])
    assert report.verdict == "departs"
    (finding,) = report.findings
    assert (finding.rule, finding.trace) == (rule, f"{LIGHT}/0")
    if recorded == FILES:
        path, at = entry(store)
        assert (finding.where.file, finding.where.offset) == (str(path.relative_to(store)), at)
    else:
        assert finding.where.file == f"consumequeue/RocksDB:{LIGHT}/0"
        assert finding.where.offset == NUMBER


TWICE = "lmq_both_5.5.0"  # written to files and to a database, which alone has light queues


@pytest.mark.parametrize("light", ["%LMQ%q1", "%LMQ%q2"])
@pytest.mark.parametrize("settings", ["with settings", "without"])
def test_a_fault_of_a_light_queue_that_only_the_database_has_is_found(
    light: str, settings: str, tmp_path: Path
) -> None:
    store = copy_of(f"layouts/{TWICE}", tmp_path)
    if settings == "without":
        (store.parent / "broker.conf").unlink()
    with opened(store) as (database, _):
        database[key(light, 0, 7)] = changed(value_of(database, key(light, 0, 7)), position=3)
    (finding,) = check([store]).violations
    assert (finding.rule, finding.trace) == ("queue/entry-points-at-its-message", f"{light}/0")
    assert (finding.where.file, finding.where.offset) == (f"{folder_of(store).name}/RocksDB:{light}/0", 7)


def test_what_a_killed_database_lacks_is_no_copy_of_a_running_broker() -> None:
    """Its newest entries were in memory, and those of other queues are in files."""
    report = check([recording_as_left("layouts/lmq_both_killed_5.5.0")])
    assert report.sources[0].moments == "one"


def test_an_entry_that_a_light_queue_lacks_in_the_database_is_found(tmp_path: Path) -> None:
    store = copy_of(f"layouts/{TWICE}", tmp_path)
    with opened(store) as (database, _):
        del database[key("%LMQ%q2", 0, 7)]
    (finding,) = check([store]).violations
    assert (finding.rule, finding.trace) == ("queue/no-entry-before-it-is-missing", "%LMQ%q2/0")


def test_the_room_behind_properties_of_one_queue_is_none(tmp_path: Path) -> None:
    """Zeros at the end of a record are a tear, but where 5.2.0 left room for a property CRC."""
    store = copy_of("layouts/lmq_room_5.2.0", tmp_path)
    log = store / "commitlog" / f"{0:020d}"
    data = log.read_bytes()
    log.write_bytes(data.replace(b"INNER_MULTI_DISPATCH\x01", b"INNER_MULTI_DISPATCK\x01", 1))
    report = check([store])
    assert "log/parts-of-the-record-add-up-to-its-size" in [found.rule for found in report.violations]


def test_a_message_that_says_another_number_in_a_light_queue_is_found(tmp_path: Path) -> None:
    store = copy_of(f"layouts/{FILES}", tmp_path)
    path, at = entry(store)
    position, size, _ = struct.unpack_from(">qiq", path.read_bytes(), at)
    log = store / "commitlog" / f"{0:020d}"
    data = bytearray(log.read_bytes())
    record = bytes(data[position : position + size])
    names = record[record.index(b"INNER_MULTI_DISPATCH\x01") + 21 :].split(b"\x02")[0].split(b",")
    numbers_at = record.index(b"INNER_MULTI_QUEUE_OFFSET\x01") + 25
    numbers = record[numbers_at:].split(b"\x02")[0].split(b",")
    mine = names.index(LIGHT.encode())
    assert numbers[mine] == str(NUMBER).encode()
    place = position + numbers_at + len(b",".join([*numbers[:mine], b""]))
    data[place + 1] ^= 1
    log.write_bytes(data)
    report = check([store])
    assert report.verdict == "departs"
    (finding,) = [f for f in report.findings if f.position == position]
    assert finding.trace == f"{LIGHT}/0"
    assert (finding.where.file, finding.where.offset) == (f"commitlog/{0:020d}", position)


@pytest.mark.parametrize("version", ["5", "4"])
def test_a_dead_letter_that_does_not_fit_leaves_its_light_queues_undecided(version: str, tmp_path: Path) -> None:
    """5.5.0 puts it into none, 5.4.0 and those before into each. Who was sent it again is here a dead letter."""
    store = copy_of("layouts/lmq_again_5.5.0", tmp_path)
    (again,) = (store / "consumequeue").glob("%RETRY%*")
    dead = f"%DLQ%{again.name.removeprefix('%RETRY%')}xx"
    again.rename(again.with_name(dead))
    for file in (store / "commitlog").iterdir():
        data = file.read_bytes()
        for before in (bytes([len(dead)]), b"REAL_TOPIC\x01"):
            data = data.replace(before + again.name.encode(), before + dead.encode())
        file.write_bytes(data)
    if version == "4":
        topics = json.loads((store / "config" / "topics.json").read_text())
        del topics["dataVersion"]["stateVersion"]
        (store / "config" / "topics.json").write_text(json.dumps(topics))
    report = check([store])
    assert report.verdict == ("departs" if version == "4" else "inconclusive"), report.violations
    if version == "5":
        (reason,) = report.sources[0].reasons
        assert "dead letter" in reason
        assert not report.violations
