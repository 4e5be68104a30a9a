"""The hash index of a store is watched, too: as far as it is written, and with the verdict of a check at the end."""

import struct
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from gapless.traces.sources.rocketmq.layouts.hash_index import index_files
from gapless.traces.sources.rocketmq.layouts.hash_index.follow import IndexFollower
from gapless.traces.sources.rocketmq.layouts.hash_index.index_files import IndexFile
from gapless.traces.sources.rocketmq.segments import log_reader
from gapless.traces.sources.rocketmq.segments.results import Subject
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import LogFile
from gapless.traces.watch import StoreWatch
from tests.support.night import by_day
from tests.support.rocketmq.played_index import PlayedIndex
from tests.support.rocketmq.recordings import RECORDINGS, recording
from tests.support.rocketmq.watched import (
    Clock,
    Heard,
    checked,
    follower_of,
    layout_of,
    same,
    until_idle,
    watch,
    watch_all_of,
)

RECORDED = [
    name
    for path in sorted((RECORDINGS / "layouts").glob("index_*.tar.xz"))
    if "default" not in (name := path.name.removesuffix(".tar.xz"))
]
REPORTED = 0.1, 1.0, 4.0, 100.0  # seconds between two looks: after the last, a report is made
WHOLE = "layouts/index_first_5.5.0"
OF_ITEM = "hash_index/item-has-the-hash-of-a-key-of-its-record"
KEY = "hash_index/key-leads-to-its-record"
SLOT = "hash_index/slot-leads-to-its-newest-item"
CHAIN = "hash_index/item-leads-to-the-one-before-it"
ORDER = "hash_index/items-come-in-the-order-of-the-log"


@pytest.mark.parametrize("name", by_day(RECORDED, 1 / 8))
def test_the_report_is_that_of_a_check_wherever_the_index_is_cut(name: str, tmp_path: Path) -> None:
    chance, clock, heard = Random(name), Clock(), Heard()
    played = PlayedIndex(recording(f"layouts/{name}"), tmp_path / "store")

    def behind(written: int) -> None:
        played.dispatch(written - chance.choice((0, 300, 20_000)))
        played.put(written - chance.choice((0, 200, 1000, 30_000)))
        for _ in range(chance.choice((0, 0, 1, 3))):
            if played.put_items < len(played.items):
                played.put_one()

    watched = watch_all_of(played, heard, clock, chance, behind, passes=REPORTED)
    played.stop()
    until_idle(watched)
    same(watched.end(), checked(tmp_path / "store"))
    assert not heard.found


# -- reported while it is written ----------------------------------------------------------------------------------


def halfway(tmp_path: Path, heard: Heard, clock: Clock, **options: Any) -> tuple[PlayedIndex, StoreWatch]:
    """A store whose index is written up to some item of its third file, and watched."""
    played = PlayedIndex(recording(WHOLE), tmp_path / "store")
    file, _number = played.items[700]
    assert file is played.files[2]
    position = file.items[played.items[700][1]][1]
    played.append(position)
    played.dispatch(position)
    played.put(position)
    watched = watch(tmp_path / "store", heard, clock, **options)
    until_idle(watched)
    return played, watched


def on(played: PlayedIndex, items: int) -> None:
    """Write so many items more, and the records and entries before them."""
    file, number = played.items[played.put_items + items]
    position = file.items[number][1]
    played.append(position)
    played.dispatch(position)
    played.put(position)


def test_files_that_are_full_are_judged_once_and_items_as_they_come(tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    played, watched = halfway(tmp_path, heard, clock)
    clock.now += 100
    on(played, 20)
    watched.look()
    report = heard.reports[-1]
    assert report.verdict == "conforms"
    assert report.coverage["hash_index.find_header"] == 2
    (note,) = [note for note in report.sources[0].notes if note.startswith("index/ is judged up to")]
    followed = layout_of(watched, "hash_index")
    assert note.startswith(f"index/ is judged up to {followed.reached.at:,} of the log")
    last, number = played.items[played.put_items - 1]
    assert followed.reached.at == last.items[number][1]  # the last record may get more keys
    assert report.coverage["hash_index.put"] == sum(
        item[1] < followed.reached.at for file in played.files for item in file.items[1 : file.header[5]]
    )
    assert not heard.found


def test_a_place_tells_how_far_the_index_was_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard, clock = Heard(), Clock()
    played, watched = halfway(tmp_path, heard, clock, state=tmp_path / "state")
    left = layout_of(watched, "hash_index").reached.at
    watched.keep()
    match, begun = IndexFollower._match, list[int]()

    def counted(self: IndexFollower, *given: Any) -> Any:
        begun.append(given[2].point.at)
        return match(self, *given)

    monkeypatch.setattr(IndexFollower, "_match", counted)
    watched = watch(tmp_path / "store", heard, clock, state=tmp_path / "state")
    on(played, 20)
    until_idle(watched)
    assert begun == [left]


def test_a_file_that_is_full_is_opened_once_however_many_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written, opened = index_files.written, list[str]()

    def counted(file: IndexFile, log: Sequence[LogFile]) -> IndexFile:
        opened.append(file.name)
        return written(file, log)

    monkeypatch.setattr(index_files, "written", counted)
    monkeypatch.setattr(log_reader, "AT_ONCE", 10_000)
    played, _watched = halfway(tmp_path, Heard(), Clock())
    last = {f"index/{file.path.name}" for file in played.files[2:]}
    assert max(Counter(name for name in opened if name not in last).values()) == 1


def test_the_keys_of_many_files_are_loaded_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follow, calls = IndexFollower.follow, list[bool]()

    def counted(self: IndexFollower, store: StoreDirectory, reached: int, queues: Collection[Subject]) -> bool:
        calls.append(follow(self, store, reached, queues))
        return calls[-1]

    monkeypatch.setattr(IndexFollower, "follow", counted)
    played = PlayedIndex(recording(WHOLE), tmp_path / "store")
    played.append(played.end)
    played.dispatch(played.end)
    played.put(played.end)
    watched = watch(tmp_path / "store", Heard(), Clock())
    assert len(played.files) > 3
    until_idle(watched)
    assert calls.count(True) <= len(follower_of(watched).store.files)


def item(which: int, more: int) -> Callable[[list[int]], None]:
    def change(item: list[int]) -> None:
        item[which] += more

    return change


@pytest.mark.parametrize(
    ("change", "rule"),
    [(item(0, 40), OF_ITEM), (item(1, 8), OF_ITEM), (item(3, -1), CHAIN), (item(1, -(1 << 40)), ORDER)],
)
def test_a_wrong_item_is_reported_soon(change: Callable[[list[int]], None], rule: str, tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    played, watched = halfway(tmp_path, heard, clock)
    at = next(
        n for n in range(played.put_items + 5, len(played.items)) if played.items[n][0].items[played.items[n][1]][3]
    )
    file, number = played.items[at]
    before = file.items[number][:]
    change(file.items[number])
    while played.put_items <= at + 8:
        played.put_one()
    file.items[number] = before
    on(played, 1)
    clock.now += 3
    until_idle(watched)
    (found,) = heard.found
    assert found.rule == rule
    assert (found.where.file, found.where.offset) == (f"index/{file.path.name}", file.item_at(number))
    assert heard.reports[-1].verdict == "departs"


def test_a_key_that_has_no_item_is_reported_once_a_later_record_has_its_own(tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    played, watched = halfway(tmp_path, heard, clock)
    file = played.files[2]
    left_out = next(
        n for n in range(played.items[played.put_items][1] + 4, file.header[5])
        if file.items[n][1] == file.items[n + 2][1] > file.items[n - 1][1]
    )  # fmt: skip
    position, code = file.items[left_out][1], file.items[left_out][0]
    shorter = file.without(lambda item: item[:2] == [code, position])
    file.header, file.items = shorter.header, shorter.items
    played.items = [(one, n) for one in played.files for n in range(1, one.header[5])]
    on(played, left_out - played.items[played.put_items][1] + 20)
    clock.now += 3
    until_idle(watched)
    (found,) = heard.found
    assert (found.rule, found.position) == (KEY, position)


def test_a_slot_of_a_full_file_that_leads_elsewhere_is_reported(tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    played, watched = halfway(tmp_path, heard, clock)
    file = played.files[2]
    while played.items[played.put_items][0] is file:
        played.put_one()
    slot = file.items[20][0] % file.slots
    with (tmp_path / "store/index" / file.path.name).open("r+b") as out:
        out.seek(40 + 4 * slot)
        out.write(struct.pack(">i", file.table[slot] - 1))
    on(played, 20)
    clock.now += 3
    until_idle(watched)
    (found,) = heard.found
    assert (found.rule, found.where.offset) == (SLOT, 40 + 4 * slot)


def test_an_index_that_is_behind_is_no_violation(tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    played, watched = halfway(tmp_path, heard, clock)
    played.append(played.end)
    played.dispatch(played.end)
    while played.put_items < len(played.items):
        played.put_one()
        if played.put_items % 37 == 0:
            clock.now += 3
            until_idle(watched)
    assert not heard.found
    played.stop()
    until_idle(watched)
    same(watched.end(), checked(tmp_path / "store"))


@pytest.mark.parametrize("kept", [0, 2])
def test_files_that_a_start_after_a_kill_deletes_take_their_keys_along(kept: int, tmp_path: Path) -> None:
    """Records that are dispatched again are indexed in other files, from some record on; those between are not."""
    heard, clock = Heard(), Clock()
    played, watched = halfway(tmp_path, heard, clock)
    names = [file.path.name for file in played.files[: played.files.index(played.items[played.put_items][0]) + 1]]
    for name in names[kept:]:
        (tmp_path / "store/index" / name).unlink()
    file = played.files[2]
    file.path = file.path.with_name(f"{int(file.path.name) + 1:017d}")
    first = file.items[30][1]
    rewritten = file.without(lambda item: item[1] < first)
    file.header, file.table, file.items = rewritten.header, rewritten.table, rewritten.items
    until_idle(watched)
    played.items = [(one, n) for one in played.files[2:] for n in range(1, one.header[5])]
    played.put_items = 0
    on(played, 150)
    clock.now += 3
    until_idle(watched)
    assert not heard.found
    clock.now += 100
    report = watched.end()
    assert any("are not in the hash index" in note for note in report.sources[0].notes)
    same(report, checked(tmp_path / "store"))
