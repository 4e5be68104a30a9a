"""Compacted topics: of every key the newest message is kept, as it was sent, and the entries name where it lies."""

import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from gapless import check
from gapless.traces.report.values import Report
from gapless.traces.sources.rocketmq.layouts.compaction import judge as compaction
from gapless.traces.sources.rocketmq.layouts.copied_queue import FOLLOWED
from tests.support.command_line import gapless
from tests.support.night import by_day
from tests.support.rocketmq.recordings import RECORDINGS, copy_of, recording, recording_as_left

LEFT, RECREATED = "compacted_left_5.5.0", "compacted_anew_5.5.0"
RECORDED = [path.name.removesuffix(".tar.xz") for path in sorted((RECORDINGS / "layouts").glob("compacted_*.tar.xz"))]
CONFORMING = [name for name in RECORDED if name not in (LEFT, RECREATED)]
FIRST, LIVES, KILLED = (f"layouts/compacted_{name}_5.5.0" for name in ("first", "lives", "killed"))
UNIT = struct.Struct(">qiqqqhii")  # position, size, tag, store time, number, how many, compacted, reserved
QUEUE = "kv/0"
POSITIONS = "compaction/position-checkpoint"


# -- a reader of its own -----------------------------------------------------------------------------------------------


class Unit(NamedTuple):
    """An entry, and where it lies."""

    file: Path
    at: int
    position: int
    size: int
    tag: int
    time: int
    number: int

    @property
    def base(self) -> int:
        """The offset at which its file begins."""
        return int(self.file.name)

    @property
    def record(self) -> tuple[Path, int]:
        """The file of the message that it names, and the offset in it."""
        store, queue = self.file.parents[4], self.file.parent
        path = store / "compaction/compactionLog" / queue.parent.name / queue.name / self.file.name
        return path, self.position - self.base


def units(store: Path, queue: str = QUEUE) -> list[Unit]:
    found = []
    for path in sorted(one for one in (store / "compaction/compactionCq" / queue).iterdir() if one.name.isdecimal()):
        data = path.read_bytes()
        for at in range(0, len(data), UNIT.size):
            position, size, tag, time, number, count, *_ = UNIT.unpack_from(data, at)
            if position >= 0 and size > 0 and count > 0:
                found.append(Unit(path, at, position, size, tag, time, number))
    return found


class Message(NamedTuple):
    """A record of the broker's own log."""

    number: int
    key: str
    body: int
    data: bytes


def read_message(data: bytes) -> tuple[str, Message]:
    """The queue of a record with IPv4 hosts, and what it says."""
    (size,) = struct.unpack_from(">i", data, 84)
    at = 88 + size
    topic = data[at + 1 : at + 1 + data[at]].decode()
    properties = dict(part.split("\x01") for part in data[at + 3 + data[at] :].decode().split("\x02") if part)
    queue, number = struct.unpack_from(">i", data, 12)[0], struct.unpack_from(">q", data, 20)[0]
    return f"{topic}/{queue}", Message(number, properties.get("KEYS", ""), size, data)


def messages(store: Path, queue: str = QUEUE) -> list[Message]:
    """All messages of a queue in the broker's own log."""
    found = []
    for path in sorted((store / "commitlog").iterdir()):
        data, at = path.read_bytes(), 0
        while at + 8 < len(data) and struct.unpack_from(">I", data, at + 4)[0] == 0xDAA320A7:
            (size,) = struct.unpack_from(">i", data, at)
            subject, message = read_message(data[at : at + size])
            if subject == queue:
                found.append(message)
            at += size
    return found


def queues(store: Path) -> list[str]:
    return sorted(f"{path.parent.name}/{path.name}" for path in (store / "compaction/compactionCq").glob("*/*"))


def rules(report: Report) -> list[str]:
    return [finding.rule for finding in report.findings if finding.severity == "violation"]


def notes(report: Report) -> str:
    return "\n".join(report.sources[0].notes)


# -- what brokers left -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONFORMING)
def test_what_brokers_kept_conforms(name: str) -> None:
    store = recording(f"layouts/{name}")
    report = check([recording_as_left(f"layouts/{name}")])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    kept = {queue: {one.number for one in units(store, queue)} for queue in queues(store)}
    assert report.coverage["compaction.find_entry"] == sum(map(len, kept.values())) > 50
    others = [
        message
        for queue, numbers in kept.items()
        for message in messages(store, queue)
        if message.key and message.number not in numbers and message.data[:4] < (23_000).to_bytes(4, "big")
        if "killed" not in name or message.number < max(numbers)
    ]
    assert report.coverage["compaction.miss"] == len(others) > 200
    assert report.coverage["compaction.find_position"] == len(queues(store))


def test_what_is_kept_is_what_the_log_has_but_for_its_place() -> None:
    """Read without our code; and of every key with a value, the newest message is there."""
    store = recording(FIRST)
    for queue in queues(store):
        own = {message.number: message for message in messages(store, queue)}
        kept = units(store, queue)
        for unit in kept:
            path, at = unit.record
            data = path.read_bytes()[at : at + unit.size]
            message = own[unit.number].data
            assert (data[:28], data[36:]) == (message[:28], message[36:])
            assert struct.unpack_from(">q", data, 28) == (unit.position,)
        newest = {message.key: message for message in own.values() if message.key}
        (last,) = {unit.base for unit in kept[-1:]}
        first = min(unit.number for unit in kept if unit.base == last)
        wanted = {m.number for m in newest.values() if m.body or m.number >= first}
        assert wanted - {unit.number for unit in kept} <= {m.number for m in own.values() if len(m.data) > 23_000}


# -- faults ------------------------------------------------------------------------------------------------------------

Place = tuple[Path | str, int]
Fault = Callable[[Path], Place]
"""Damages a store, and says where that is to be found."""
AT = 5  # the entry of the first file that is about to be damaged


def written(path: Path, at: int, data: bytes) -> None:
    old = path.read_bytes()
    path.write_bytes(old[:at] + data + old[at + len(data) :])


def of_message(offset: int, *, at: int | None = None) -> Fault:
    """A byte of the message is another; `at`: the byte of it at which that is found."""

    def fault(store: Path) -> Place:
        path, place = units(store)[AT].record
        written(path, place + offset, bytes([path.read_bytes()[place + offset] ^ 4]))
        return path, place + (offset if at is None else at)

    return fault


def of_entry(field: int, more: int) -> Fault:
    """A field of the entry is another."""

    def fault(store: Path) -> Place:
        unit = units(store)[AT]
        values = list(UNIT.unpack_from(unit.file.read_bytes(), unit.at))
        values[field] += more
        written(unit.file, unit.at, UNIT.pack(*values))
        return unit.file, unit.at

    return fault


def rebuilt(store: Path, keep: list[tuple[int, bytes]]) -> Path:
    """Rewrite the first file with these numbers and records, as a broker does."""
    first = units(store)[0]
    log, _ = first.record
    data, entries, room = b"", b"", (log.stat().st_size, first.file.stat().st_size)
    tags = {unit.number: unit.tag for unit in units(store)}
    for number, record in keep:
        entries += UNIT.pack(
            len(data), len(record), tags.get(number, 0), *struct.unpack_from(">q", record, 56), number, 1, -1, 0
        )
        data += record[:28] + struct.pack(">q", len(data)) + record[36:]
    log.write_bytes(data.ljust(room[0], b"\0"))
    first.file.write_bytes(entries.ljust(room[1], b"\0"))
    return first.file


def of_first_file(store: Path) -> list[tuple[int, bytes]]:
    found = []
    for unit in units(store):
        path, at = unit.record
        if unit.base == 0:
            found.append((unit.number, path.read_bytes()[at : at + unit.size]))
    return found


def newest_is_lost(store: Path) -> Place:
    """A whole compaction that has left one message out."""
    kept = of_first_file(store)
    return rebuilt(store, kept[:AT] + kept[AT + 1 :]), AT * UNIT.size


def older_one_is_kept(store: Path) -> Place:
    """A whole compaction that has kept an older message of a key in place of the newest."""
    kept, every = of_first_file(store), messages(store)
    old, at = next(
        (message, at)
        for at, (number, data) in enumerate(kept[AT:], AT)
        for message in every
        if message.key == read_message(data)[1].key and kept[at - 1][0] < message.number < number and message.body
        if b"TAGS" not in message.data
    )
    return rebuilt(store, [*kept[:at], (old.number, old.data), *kept[at + 1 :]]), (at + 1) * UNIT.size


def last_file_is_cut(store: Path) -> Place:
    """Messages that were not compacted have no entry."""
    every = units(store, "kv/1")
    last = [unit for unit in every if unit.base == every[-1].base]
    assert len(last) > 3
    cut = last[2]
    shift = cut.size
    data = cut.file.read_bytes()
    kept = b""
    for unit in last[3:]:
        values = list(UNIT.unpack_from(data, unit.at))
        values[0] -= shift
        kept += UNIT.pack(*values)
    written(cut.file, cut.at, kept + bytes(UNIT.size))
    path, at = cut.record
    log = path.read_bytes()
    moved = bytearray(log[:at] + log[at + shift :] + bytes(shift))
    for unit in last[3:]:
        struct.pack_into(">q", moved, unit.position - unit.base - shift + 28, unit.position - shift)
    path.write_bytes(moved)
    return cut.file, cut.at


def swapped(store: Path) -> Place:
    one, other = units(store)[AT], units(store)[AT + 1]
    data = one.file.read_bytes()
    written(one.file, one.at, data[other.at : other.at + UNIT.size] + data[one.at : one.at + UNIT.size])
    return one.file, one.at


def repeated(store: Path) -> Place:
    """A message lies there twice."""
    kept = of_first_file(store)
    return rebuilt(store, [*kept[: AT + 1], kept[AT], *kept[AT + 1 :]]), (AT + 1) * UNIT.size


def of_another_topic(store: Path) -> Place:
    kept = of_first_file(store)
    number, data = kept[AT]
    rebuilt(store, [*kept[:AT], (number, data.replace(b"\x02kv", b"\x02kw")), *kept[AT + 1 :]])
    return units(store)[AT].record


def without_its_message(store: Path) -> Place:
    unit = units(store)[AT]
    path, at = unit.record
    written(path, at, bytes(unit.size))
    return unit.file, unit.at


def compacted_further(more: int) -> Fault:
    """Change the position up to which the queue was compacted."""

    def fault(store: Path) -> Place:
        content = json.loads((store / POSITIONS).read_text())
        last = units(store)[-1]
        first = next(unit.number for unit in units(store) if unit.base == last.base)
        content["queueOffsetMap"]["kv_0"] = first if more == 0 else last.number + more
        (store / POSITIONS).write_text(json.dumps(content))
        return POSITIONS, 0

    return fault


def gone(kind: str) -> Fault:
    def fault(store: Path) -> Place:
        path = store / "compaction" / kind / QUEUE / f"{0:020d}"
        path.unlink()
        return path, 0

    return fault


FAULTS: dict[str, tuple[Fault, str]] = {
    "the newest message of a key is missing": (newest_is_lost, "newest-message-of-its-key-is-kept"),
    "an older one in its place": (older_one_is_kept, "newest-message-of-its-key-is-kept"),
    "a message that was not compacted is missing": (last_file_is_cut, "message-that-was-not-compacted-is-kept"),
    "a byte of a body": (of_message(90), "compacted-message-is-the-brokers-own"),
    "its birth": (of_message(41), "compacted-message-is-the-brokers-own"),
    "its magic number": (of_message(4, at=0), "compacted-message-is-whole"),
    "its queue": (of_message(15, at=0), "compacted-message-is-of-its-queue"),
    "a message of another topic": (of_another_topic, "compacted-message-is-of-its-queue"),
    "its number": (of_message(27, at=0), "compacted-message-has-the-number-of-its-entry"),
    "its place": (of_message(35, at=0), "compacted-message-names-its-place"),
    "no message": (without_its_message, "compacted-entry-names-a-message"),
    "an entry that points elsewhere": (of_entry(0, 7), "compacted-message-follows-the-one-before-it"),
    "another size": (of_entry(1, 1), "compacted-entry-has-the-size-of-its-message"),
    "another tag": (of_entry(2, 1), "compacted-entry-has-the-tag-code-of-its-message"),
    "another time": (of_entry(3, 1), "compacted-entry-has-the-time-of-its-message"),
    "an entry of two messages": (of_entry(5, 1), "compacted-entry-has-the-size-of-its-message"),
    "another number": (of_entry(4, -200), "compacted-numbers-rise"),
    "a message twice": (repeated, "compacted-numbers-rise"),
    "two entries that changed places": (swapped, "compacted-message-follows-the-one-before-it"),
    "compacted up to the last file": (compacted_further(0), "compacted-up-to-the-last-file-at-most"),
    "compacted beyond the end": (compacted_further(50), "compacted-up-to-a-message-of-the-queue"),
    "a file of records that is gone": (gone("compactionLog"), "compacted-records-and-entries-go-together"),
    "a file of entries that is gone": (gone("compactionCq"), "compacted-records-and-entries-go-together"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_at_its_place(fault: str, tmp_path: Path) -> None:
    store = copy_of(FIRST, tmp_path)
    damage, rule = FAULTS[fault]
    file, offset = damage(store)
    report = check([store.parent])
    assert report.verdict == "departs", report.model_dump_json(indent=1)
    found = next(finding for finding in report.findings if finding.rule == f"compaction/{rule}")
    name = file if isinstance(file, str) else str(file.relative_to(store))
    assert (found.where.file, found.where.offset) == (name, offset)
    assert found.trace == (QUEUE if isinstance(file, str) else "/".join(file.parts[-3:-1]))
    assert len(rules(report)) == 1


@pytest.mark.parametrize("fault", [None, *by_day(sorted(FAULTS))])
def test_entries_that_are_followed_a_few_at_a_time_come_to_the_same(
    fault: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = copy_of(FIRST, tmp_path)
    if fault:
        FAULTS[fault][0](store)
    reports = []
    for at_once in (FOLLOWED, 1, 7):
        monkeypatch.setattr(compaction, "FOLLOWED", at_once)
        reports.append(check([store.parent]).model_dump(exclude={"seconds"}))
    assert reports[0]["coverage"]["compaction.find_entry"] > 0
    assert reports[1] == reports[0]
    assert reports[2] == reports[0]


def test_faults_are_found_where_brokers_started_again_too(tmp_path: Path) -> None:
    for fault in (of_message(90), of_entry(0, 7), of_entry(4, -200), swapped):
        store = copy_of(LIVES, tmp_path / str(len(list(tmp_path.iterdir()))))
        file, offset = fault(store)
        (found,) = check([store.parent]).violations
        assert isinstance(file, Path)
        assert (found.where.file, found.where.offset) == (str(file.relative_to(store)), offset)


def test_a_departure_is_explained_and_in_json(tmp_path: Path) -> None:
    store = copy_of(FIRST, tmp_path)
    newest_is_lost(store)
    result = gapless("explain", str(store.parent), "--trace", QUEUE)
    assert "the compacted queue kv/0 departs at compaction/compactionCq/kv/0/" in result.stdout
    found = json.loads(gapless("check", str(store.parent), "--json", "-").stdout)
    assert [finding["spec"] for finding in found["findings"]] == ["compaction"]
    assert "the newest of its key, is missing in the compacted topic" in found["findings"][0]["message"]


# -- what must be tolerated --------------------------------------------------------------------------------------------


def test_what_a_compaction_that_was_broken_off_left_behind_the_next_ones_entries_is_no_departure() -> None:
    report = check([recording_as_left(f"layouts/{LEFT}")])
    assert report.verdict == "inconclusive"
    (reason,) = report.sources[0].reasons
    assert "kv/0: compacted entries from 140 on, behind 300, are left of a compaction that was broken off" in reason


def test_what_is_kept_of_a_topic_that_was_recreated_is_no_violation() -> None:
    """Its numbers begin again at 0, and the broker drops its messages up to those of the topic before."""
    store = recording(f"layouts/{RECREATED}")
    numbers = [message.number for message in messages(store)]
    assert numbers.count(10) == 2
    assert units(store)[-1].number > numbers[-1]
    report = check([recording_as_left(f"layouts/{RECREATED}")])
    assert report.verdict == "inconclusive", report.model_dump_json(indent=1)
    assert [reason[:34] for reason in report.sources[0].reasons] == [
        f"{queue} was deleted and created again" for queue in ("kv/0", "kv/1")
    ]


@pytest.mark.parametrize("kept", ["compactionLog", "compactionCq"])
def test_a_compaction_that_was_broken_off_before_it_replaced_files_changes_nothing(kept: str, tmp_path: Path) -> None:
    """Its files lie in a folder of their own: those of records first, then those of entries."""
    store = copy_of(KILLED, tmp_path)
    for kind in {"compactionLog", kept}:
        folder = store / "compaction" / kind / QUEUE
        (folder / "compacting").mkdir()
        shutil.copy(folder / f"{0:020d}", folder / "compacting")
    assert check([store.parent]).verdict == "conforms"


def test_a_compaction_that_was_broken_off_while_it_replaced_files_is_not_judged(tmp_path: Path) -> None:
    of_records, of_entries = (Path("compaction") / kind / QUEUE for kind in ("compactionLog", "compactionCq"))
    for stage in range(3):
        store = copy_of(KILLED, tmp_path / str(stage))
        (store / of_entries / "compacting").mkdir()
        moved = store / of_entries / "compacting" / f"{0:020d}"
        if stage == 0:  # records that are to go have another name
            (store / of_records / f"{0:020d}").rename(store / of_records / f"{0:020d}.delete")
            shutil.copy(store / of_entries / f"{0:020d}", moved)
        elif stage == 1:  # the new records are there, and entries are still those of the old ones
            (store / of_entries / f"{0:020d}").rename(moved)
            shutil.copy(units(store)[-1].file, store / of_entries / f"{0:020d}")
        else:
            shutil.copy(store / of_entries / f"{0:020d}", moved)
            (store / of_entries / f"{0:020d}").rename(store / of_entries / f"{0:020d}.delete")
        report = check([store.parent])
        assert report.verdict == "inconclusive", report.model_dump_json(indent=1)
        assert any(
            "kv/0: its compaction was broken off while it replaced files" in r for r in report.sources[0].reasons
        )


def feared(report: Report) -> list[tuple[str, str, str, int]]:
    """The hazards: rule, sentence, and place."""
    return [(found.rule, found.message, found.where.file, found.where.offset) for found in report.hazards]


def test_a_broker_that_was_killed_when_it_had_replaced_all_files_does_not_start_again() -> None:
    """It takes the names of those that it was to remove for numbers; and what lies there is whole."""
    report = check([recording_as_left("layouts/compacted_killed_replacing_5.3.3")])
    file = "compaction/compactionLog/kv2/0/00000000000000023000.delete"
    sentence = f"kv2/0: {file} is not called by a number"
    assert report.verdict == "conforms"
    assert feared(report) == [("compaction/compacted-files-are-called-by-numbers", sentence, file, 0)]
    assert "the compacted queue kv2/0 will depart at the broker's next start" in report.hazards[0].story[0]
    assert [found.count for found in report.hazards] == [2]


def longer(file: Path) -> None:
    with file.open("ab") as handle:
        handle.write(bytes(46))


def shorter(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 46)


@pytest.mark.parametrize("change", [longer, shorter])
@pytest.mark.parametrize("kind", ["compactionLog", "compactionCq"])
def test_a_file_of_another_length_stands_in_the_way_of_the_next_start(
    kind: str, change: Callable[[Path], None], tmp_path: Path
) -> None:
    """Others of its kind tell how long it was: all are born with one length."""
    store = copy_of(FIRST, tmp_path)
    name = f"compaction/{kind}/kv/1/{0:020d}"
    before = (store / name).stat().st_size
    change(store / name)
    length = (store / name).stat().st_size
    (found,) = feared(check([store.parent]))
    expected = f"kv/1: {name} is {length:,} bytes long, and others of its kind {before:,}"
    assert found == ("compaction/compacted-files-have-one-length", expected, name, length)


@pytest.mark.parametrize("kind", ["compactionLog", "compactionCq"])
def test_a_file_that_is_not_the_brokers_stands_in_the_way_of_the_next_start(kind: str, tmp_path: Path) -> None:
    store = copy_of(FIRST, tmp_path)
    name = f"compaction/{kind}/kv2/0/README"
    (store / name).write_text("who put this here?")
    (found,) = feared(check([store.parent]))
    assert found[0] == "compaction/compacted-files-are-called-by-numbers"
    assert found[2:] == (name, 0)
    both = [f"compaction/compacted-files-{what}" for what in ("are-called-by-numbers", "have-one-length")]
    assert [len(feared(check([store.parent], ignore=both[:n]))) for n in (1, 2)] == [1, 0]


def test_what_a_start_passes_over_is_not_in_its_way(tmp_path: Path) -> None:
    """A folder; an empty file that comes last, which it deletes; and all of it where compaction is off."""
    store = copy_of(FIRST, tmp_path)
    folder = store / "compaction/compactionLog/kv/0"
    (folder / f"{1 << 40:020d}").touch()
    assert not feared(check([store.parent]))
    (folder / "kept").mkdir()  # then the empty file is not the last one, and stays
    assert [found[0] for found in feared(check([store.parent]))] == ["compaction/compacted-files-have-one-length"]
    (folder / f"{1 << 40:020d}").unlink()
    assert not feared(check([store.parent]))
    (folder / "README").write_text("who put this here?")
    assert feared(check([store.parent]))
    settings = store.parent / "broker.conf"
    settings.write_text(settings.read_text().replace("enableCompaction=true", "") + "enableCompaction=false\n")
    assert not feared(check([store.parent]))


def test_a_position_that_was_not_written_yet_is_no_violation(tmp_path: Path) -> None:
    """A broker was killed behind a compaction: it has the number of the one before, of a message that is not kept."""
    kept = {unit.number for unit in units(recording(KILLED))}
    for number in (-1, next(number for number in range(max(kept)) if number not in kept)):
        store = copy_of(KILLED, tmp_path / str(number + 1))
        content = json.loads((store / POSITIONS).read_text())
        content["queueOffsetMap"]["kv_0"] = number
        (store / POSITIONS).write_text(json.dumps(content))
        assert check([store.parent]).verdict == "conforms"


def test_a_folder_that_is_gone_with_all_that_was_kept_is_undecided(tmp_path: Path) -> None:
    store = copy_of("layouts/compacted_first_5.5.0", tmp_path)
    shutil.rmtree(store / "compaction")
    report = check([store])
    assert report.verdict == "inconclusive"
    (reason,) = report.sources[0].reasons
    assert reason == "compaction/ is not there, where kv and others are compacted: that is not judged"


def test_entries_that_came_last_may_be_missing_where_the_broker_was_killed(tmp_path: Path) -> None:
    store = copy_of(KILLED, tmp_path)
    for unit in units(store)[-2:]:
        written(unit.file, unit.at, bytes(UNIT.size))
    assert check([store.parent]).verdict == "conforms"


def emptied(store: Path) -> None:
    """No entry of the queue is left, in files as long as they were."""
    for unit in units(store):
        written(unit.file, unit.at, bytes(UNIT.size))


def without_the_first(store: Path) -> None:
    rebuilt(store, of_first_file(store)[1:])


@pytest.mark.parametrize("damage", [emptied, without_the_first])
def test_nothing_is_excused_in_a_first_life_whose_files_are_there(
    damage: Callable[[Path], None], tmp_path: Path
) -> None:
    """The switch changes with a start alone, and a topic has its policy from when it is made, or never."""
    store = copy_of(FIRST, tmp_path)
    damage(store)
    (found,) = check([store.parent]).violations
    assert found.trace == QUEUE
    assert "is missing in the compacted topic" in found.message


@pytest.mark.parametrize("doubtful", ["brokerRole=SLAVE", None])
def test_a_slave_or_a_broker_with_unknown_settings_may_have_begun_later(doubtful: str | None, tmp_path: Path) -> None:
    """A slave asks its master for missing data; and without settings it may be a slave."""
    store = copy_of(FIRST, tmp_path)
    without_the_first(store)
    settings = store.parent / "broker.conf"
    if doubtful:
        settings.write_text(f"{settings.read_text()}{doubtful}\n")
    else:
        settings.unlink()
    report = check([store.parent])
    assert report.verdict == "inconclusive", report.model_dump_json(indent=1)
    assert "set later; damage otherwise" in report.sources[0].reasons[0]


def test_an_exported_story_says_that_the_queue_is_compacted(tmp_path: Path) -> None:
    """Its name is that of the plain queue, too."""
    store = copy_of(FIRST, tmp_path)
    without_the_first(store)
    out = tmp_path / "events.ndjson"
    gapless("trace", str(store.parent), "--out", str(out))
    (found,) = check([out]).violations
    assert found.story[0].startswith("the compacted queue kv/0 departs at events.ndjson, line ")


def test_a_queue_of_which_no_file_is_left_is_undecided(tmp_path: Path) -> None:
    """Its topic may have been deleted, and recreated as a compacted one."""
    store = copy_of(FIRST, tmp_path)
    for kind in ("compactionLog", "compactionCq"):
        shutil.rmtree(store / "compaction" / kind / QUEUE)
    assert check([store.parent]).verdict == "inconclusive"


def test_what_was_sent_while_compaction_was_off_is_no_violation(tmp_path: Path) -> None:
    store = copy_of(LIVES, tmp_path)
    kept = of_first_file(store)
    rebuilt(store, kept[:AT] + kept[AT + 1 :])
    report = check([store.parent])
    assert not rules(report)
    assert report.verdict == "inconclusive"
    assert "legal if enableCompaction was off" in report.sources[0].reasons[0]
    assert "compactionMappedFileSize or compactionCqMappedFileSize another than now" in report.sources[0].reasons[0]


def test_positions_and_topics_that_are_unreadable_are_named(tmp_path: Path) -> None:
    for at, (file, content) in enumerate(
        (
            *(
                (POSITIONS, text)
                for text in ("", "{", "[]", '{"queueOffsetMap": 5}', '{"queueOffsetMap": {"kv_0": "a"}}')
            ),
            ("config/topics.json", "{"),
        )
    ):
        store = copy_of(FIRST, tmp_path / str(at))
        (store / file).write_text(content)
        (store / f"{file}.bak").unlink(missing_ok=True)
        report = check([store.parent])
        assert report.verdict == "inconclusive", content
        assert any("not judged" in reason for reason in report.sources[0].reasons)


def test_where_the_log_has_lost_its_end_since_the_position_is_left_alone(tmp_path: Path) -> None:
    store = copy_of(LIVES, tmp_path)
    compacted_further(50)(store)
    report = check([store.parent])
    assert not rules(report)
    assert "legal if the log lost its end with the power" in report.sources[0].reasons[0]


def test_a_copy_of_a_running_broker_is_not_judged_there() -> None:
    report = check([recording_as_left(FIRST)], copied=True)
    assert "compaction/ is not judged: its files are of different moments" in notes(report)


def test_other_topics_and_queues_can_be_asked_for_alone() -> None:
    report = check([recording_as_left(FIRST)], trace="kv2/0")
    assert report.coverage["compaction.find_entry"] == len(units(recording(FIRST), "kv2/0"))


@pytest.mark.parametrize("seed", by_day(range(40), 1 / 10))
def test_damage_at_random_is_a_verdict_and_no_traceback(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    store = copy_of(random.choice([FIRST, LIVES, KILLED]), tmp_path)
    there = [path for path in (store / "compaction").rglob("*") if path.is_file()]
    for path in random.sample([*there, store / POSITIONS], 3):
        data = bytearray(path.read_bytes())
        low = random.randrange(min(len(data), 4000) + 1)
        high = min(len(data), low + random.choice((1, 20, 300)))
        data[low:high] = random.choice((b"", bytes(high - low), random.randbytes(high - low), random.randbytes(7)))
        path.write_bytes(data)
    report = check([store.parent])
    assert report.verdict in {"conforms", "departs", "inconclusive"}
    assert all(rule.startswith("compaction/") for rule in rules(report))
