"""Entries that were judged are looked at again while a store is watched: who overwrites one is found out."""

import zlib
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from gapless.traces.sources.rocketmq.layouts.hash_index.follow import IndexFollower
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.file_access import read_entries
from gapless.traces.sources.rocketmq.watching import entries
from gapless.traces.sources.rocketmq.watching.follower import Follower
from gapless.traces.sources.rocketmq.watching.readiness import PATIENCE
from gapless.traces.watch import REPORTED, StoreWatch
from tests.support.rocketmq.played_store import SLOT, PlayedStore
from tests.support.rocketmq.recordings import recording
from tests.support.rocketmq.watched import (
    Clock,
    Heard,
    a_later_entry,
    checked,
    follower_of,
    halfway,
    same,
    until_idle,
    watch,
)

POINTS = "queue/entry-points-at-its-message"


@pytest.mark.parametrize(("before", "later"), [(1, 0.0), (50, 30.0), (1500, 600.0)])
def test_an_entry_that_is_overwritten_is_reported_at_the_next_look(before: int, later: float, tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    played, watched = halfway(tmp_path, heard, clock)
    clock.now += later
    until_idle(watched)
    assert not heard.found
    name, number, entry = a_later_entry(played, before)
    position, size, tag = SLOT.unpack(entry)
    played.entry(name, number, SLOT.pack(position + 1, size, tag))
    until_idle(watched)
    (found,) = heard.found
    assert (found.rule, found.where.file, found.where.offset) == (POINTS, name, number * 20)
    until_idle(watched)
    played.append(played.end)
    played.dispatch(played.end + 1)
    played.stop()
    played.entry(name, number, SLOT.pack(position + 1, size, tag))
    until_idle(watched)
    report, again = watched.end(), checked(tmp_path / "store")
    assert len(heard.found) == 1
    assert report.verdict == again.verdict == "departs"
    assert [(one.rule, one.where, one.trace) for one in report.violations] == [
        (one.rule, one.where, one.trace) for one in again.violations
    ]


def test_the_youngest_entries_are_looked_at_however_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "LOOK", 20 * 500)
    heard, clock = Heard(), Clock()
    played, watched = halfway(tmp_path, heard, clock)
    for number in range(2010, 3000, 10):
        played.append(played.records()[number])
        played.dispatch(played.written)
        clock.now += 1
        until_idle(watched)
    name, number, entry = a_later_entry(played, 40)
    played.entry(name, number, bytes(7) + b"\1" + entry[8:])
    watched.look()
    assert [(found.where.file, found.where.offset) for found in heard.found] == [(name, number * 20)]


def test_recent_entries_that_are_too_many_for_one_look_are_looked_at_in_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "FILES", 1)
    heard, clock = Heard(), Clock()
    played, watched = halfway(tmp_path, heard, clock)
    name, number, entry = a_later_entry(played, 1500)
    played.entry(name, number, bytes(7) + b"\1" + entry[8:])
    watched.look()
    assert [(found.where.file, found.where.offset) for found in heard.found] == [(name, number * 20)]


def read_at_a_look(watched: StoreWatch, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often each queue is read whose entries are checked again."""
    read = Counter[str]()

    def counted(store: StoreDirectory, topic: str, queue: int, *others: Any) -> None:
        read[f"{topic}/{queue}"] += 1
        read_entries(store, topic, queue, *others)

    with monkeypatch.context() as patch:
        patch.setattr(file_access, "read_entries", counted)
        watched.look()
    return read


def test_what_is_recent_of_a_queue_is_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small log files have hundreds of its blocks, and each was read by itself."""
    heard, clock = Heard(), Clock()
    played, watched = halfway(tmp_path, heard, clock)
    for number in range(2100, 2600, 100):
        clock.now += 9
        played.append(played.records()[number])
        played.dispatch(played.written)
        until_idle(watched)
    recent = follower_of(watched).seen.recent
    assert len(recent) > 2 * len({block.subject for block in recent})
    read = read_at_a_look(watched, monkeypatch)
    assert set(read.values()) == {1}
    for before in (3, 400):
        name, number, entry = a_later_entry(played, before)
        played.entry(name, number, SLOT.pack(7, *SLOT.unpack(entry)[1:]))
        watched.look()
        assert (heard.found[-1].where.file, heard.found[-1].where.offset) == (name, number * 20)
    assert len(heard.found) == 2


def test_what_is_as_it_was_a_moment_ago_needs_no_checksum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard, clock = Heard(), Clock()
    played, watched = halfway(tmp_path, heard, clock)
    until_idle(watched)
    summed = list[int]()

    def counted(data: memoryview, start: int = 0) -> int:
        summed.append(len(data))
        return crc32(data, start)

    monkeypatch.setattr(zlib, "crc32", counted)
    watched.look()
    assert not summed
    name, number, entry = a_later_entry(played, 40)
    played.entry(name, number, SLOT.pack(7, *SLOT.unpack(entry)[1:]))
    watched.look()
    assert summed
    assert len(heard.found) == 1


def test_entries_that_stay_away_are_looked_at_though_they_are_as_they_were_a_moment_ago(tmp_path: Path) -> None:
    """Until they can no longer be written: then they are suspect, and no longer checked."""
    heard, clock = Heard(), Clock()
    played, watched = halfway(tmp_path, heard, clock)
    until_idle(watched)
    name, number, _entry = a_later_entry(played, 400)
    played.entry(name, number, bytes(20))
    seen = follower_of(watched).seen
    (subject,) = {
        block.subject for block in seen.recent if name.startswith("consumequeue/{}/{}/".format(*block.subject))
    }
    for _ in range(3):
        until_idle(watched)
    assert any(block.subject == subject for block in seen.recent)
    clock.now += PATIENCE + 1
    until_idle(watched)
    assert not any(block.subject == subject for block in seen.recent)


def test_entries_that_expire_leave_those_behind_them_looked_at(tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    played = PlayedStore(recording("normal"), tmp_path / "store")
    played.append(played.records()[2000])
    played.dispatch(played.written)
    name, number, _entry = a_later_entry(played, 1)
    log, queue = played.folder / "commitlog" / f"{0:020d}", played.folder / name
    gone = sum(of == name and at < log.stat().st_size for at, of, *_ in played.entries[: played.indexed])
    data = queue.read_bytes()
    queue.write_bytes(data[: 20 * gone])
    later = queue.with_name(f"{20 * gone:020d}")
    later.write_bytes(data[20 * gone :])
    watched = watch(tmp_path / "store", heard, clock)
    until_idle(watched)
    log.unlink()
    queue.unlink()
    until_idle(watched)
    assert not heard.found
    with later.open("r+b") as file:
        file.seek(20 * (number - gone))
        file.write(SLOT.pack(7, 100, 0))
    until_idle(watched)
    found = heard.found[0]  # the length of the file is another
    assert (found.rule, found.where.file, found.where.offset) == (
        POINTS,
        str(later.relative_to(played.folder)),
        20 * (number - gone),
    )


def test_what_lies_next_to_it_waits_for_as_long_as_it_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard, clock, began = Heard(), Clock(), list[float]()

    def slow(_self: IndexFollower, *_: object) -> bool:
        began.append(clock.now)
        clock.now += 5
        return len(began) < 9

    monkeypatch.setattr(IndexFollower, "follow", slow)
    monkeypatch.setattr("gapless.traces.watch.FIRST", REPORTED)  # a report waits for nothing
    monkeypatch.setattr(Follower, "is_at_rest", lambda _self: False)  # and neither does that of a store at rest
    _played, watched = halfway(tmp_path, heard, clock)
    for _ in range(20):
        clock.now += 1
        watched.look()
    assert len(began) > 1
    assert all(later - before >= 10 for before, later in pairwise(began))


def test_entries_that_are_zeros_for_a_moment_are_those_of_a_broker_that_starts(tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    played, watched = halfway(tmp_path, heard, clock)
    name, number, entry = a_later_entry(played, 40)
    played.entry(name, number, bytes(20))
    until_idle(watched)
    clock.now += 3
    until_idle(watched)
    played.entry(name, number, entry)
    until_idle(watched)
    played.append(played.end)
    played.dispatch(played.end + 1)
    played.stop()
    until_idle(watched)
    same(watched.end(), checked(tmp_path / "store"))
    assert not heard.found
