"""The hash index: every key of every record is found, no item and no slot leads elsewhere, and what may be missing."""

import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from gapless import check
from gapless.traces.report.values import Report
from gapless.traces.sources.rocketmq.layouts.hash_index import file_replay, index_files
from tests.support.night import NIGHT
from tests.support.rocketmq.index_files import File, files, java_hash, records
from tests.support.rocketmq.recordings import RECORDINGS, copy_of, recording, recording_as_left

SLOTS, CAPACITY = 40, 300  # of the recordings, but for those with the defaults
DEFAULTS = 5_000_000, 20_000_000
LARGE = {"index_default_4.9.7", "index_default_5.3.3"}  # 420 MB each, unpacked; a third one is read by day
RECORDED = [
    name
    for path in sorted((RECORDINGS / "layouts").glob("index_*.tar.xz"))
    if (name := path.name.removesuffix(".tar.xz")) not in LARGE or NIGHT
]
WHOLE = "layouts/index_first_5.5.0"  # one life, a clean stop: every key is promised
LIVES = "layouts/index_lives_5.5.0"
KILLED = "layouts/index_killed_5.5.0"
OFF_FOR_A_TIME = "index_switched"


def read(store: Path, name: str) -> list[File]:
    return files(store, *(DEFAULTS if "default" in name else (SLOTS, CAPACITY)))


def rules(report: Report) -> list[str]:
    return [finding.rule for finding in report.findings if finding.severity == "violation"]


@pytest.mark.parametrize("name", RECORDED)
def test_what_brokers_left_conforms(name: str) -> None:
    """Each key that a search as the broker's finds is counted, and no other."""
    store = recording(f"layouts/{name}")
    there = read(store, name)
    report = check([recording_as_left(f"layouts/{name}")])
    assert not rules(report), report.model_dump_json(indent=1)
    keys = [(key, record.position) for record in records(store) for key in record.keys]
    found = sum(any(position in file.found(key) for file in there) for key, position in keys)
    assert report.coverage["hash_index.look_up"] == found
    assert report.coverage["hash_index.put"] == sum(max(file.header[5], 1) - 1 for file in there)
    assert report.coverage["hash_index.find_slot"] == sum(sum(head > 0 for head in file.table) for file in there)
    if name.startswith(OFF_FOR_A_TIME):
        assert report.verdict == "inconclusive"
        assert any("messageIndexEnable was off for a time" in reason for reason in report.sources[0].reasons)
    else:
        assert report.verdict == "conforms", report.sources[0].reasons
    if "first" in name or "default" in name:
        assert found == len(keys)


def test_files_of_unknown_layout_are_left_out(tmp_path: Path) -> None:
    """Without its broker.conf, the number of slots in a file is unknown: no key is missed then."""
    store = shutil.copytree(recording(WHOLE), tmp_path / "store")
    report = check([store])
    assert (report.verdict, report.sources[0].reasons) == ("conforms", [])
    (note,) = [note for note in report.sources[0].notes if note.startswith("index/")]
    assert "more of its files were not judged: it is 6,200 bytes long, where the defaults make 420,000,040" in note
    assert not report.coverage["hash_index.put"]


def test_tags_are_items_of_newer_brokers_alone() -> None:
    for version, expected in (("4.9.7", False), ("5.3.3", False), ("5.5.0", True)):
        store = recording(f"layouts/index_first_{version}")
        tags = {java_hash(record.tag): record.position for record in records(store) if record.tag}
        found = [item[0] in tags for file in read(store, "") for item in file.items[1 : file.header[5]]]
        assert any(found) is expected


def test_the_recordings_have_what_they_are_for() -> None:
    """The recordings have rotated files, keys in two files, texts beyond the BMP, orphaned keys, doubles."""
    first = read(recording(WHOLE), "")
    assert len(first) > 3
    assert any(one.header[3] == other.header[2] for one, other in pairwise(first))
    keys = [key for record in records(recording(WHOLE)) for key in record.keys]
    assert any(ord(letter) > 0xFFFF for key in keys for letter in key)
    again = read(recording("layouts/index_kill_clean_4.9.7"), "")
    pairs = [(item[0], item[1]) for file in again for item in file.items[1 : file.header[5]]]
    assert len(pairs) > len(set(pairs))


def test_java_hashes_texts_by_their_units() -> None:
    assert java_hash("polygenelubricants") == 0  # the least number, which has no positive one
    assert java_hash("a\U0001f600") == (97 * 31 + 0xD83D) * 31 + 0xDE00


# -- faults ------------------------------------------------------------------------------------------------------------

AT = 100  # the item that is changed
OF_ITEM = "hash_index/item-has-the-hash-of-a-key-of-its-record"
CHAIN = "hash_index/item-leads-to-the-one-before-it"
ORDER = "hash_index/items-come-in-the-order-of-the-log"
SLOT = "hash_index/slot-leads-to-its-newest-item"
KEY = "hash_index/key-leads-to-its-record"
Fault = Callable[[File], int]
"""Changes a file, and says where in it the damage is to be found; -1 where it is in the log."""


def item(which: int, made: Callable[[File], int]) -> Fault:
    """A field of item `AT` is another: 0 its hash, 1 its position, 2 its seconds, 3 the item before it."""

    def fault(file: File) -> int:
        file.items[AT][which] = made(file)
        return file.item_at(AT)

    return fault


def header(which: int, more: int, offset: int) -> Fault:
    def fault(file: File) -> int:
        file.header[which] += more
        return offset

    return fault


def exchanged(file: File) -> int:
    one = next(n for n in range(AT, CAPACITY) if file.items[n][1] < file.items[n + 1][1])
    file.items[one], file.items[one + 1] = file.items[one + 1], file.items[one]
    return file.item_at(one + 1)


def a_slot(made: Callable[[File, int], int]) -> Fault:
    def fault(file: File) -> int:
        slot = file.items[AT][0] % SLOTS
        file.table[slot] = made(file, file.table[slot])
        return 40 + 4 * slot

    return fault


def left_out(dropped: Callable[[File, list[int]], bool]) -> Fault:
    def fault(file: File) -> int:
        shorter = file.without(lambda item: dropped(file, item))
        file.header, file.table, file.items = shorter.header, shorter.table, shorter.items
        return -1

    return fault


FAULTS: dict[str, tuple[Fault, str]] = {
    "the hash of another key, in the same slot": (item(0, lambda f: f.items[AT][0] + SLOTS), OF_ITEM),
    "the hash of another key": (item(0, lambda f: f.items[AT][0] + 1), OF_ITEM),
    "a hash below 0": (item(0, lambda f: -f.items[AT][0]), OF_ITEM),
    "the middle of its record": (item(1, lambda f: f.items[AT][1] + 8), OF_ITEM),
    "another record": (item(1, lambda f: f.items[AT - 9][1]), OF_ITEM),
    "beyond the log": (item(1, lambda _: 1 << 40), OF_ITEM),
    "below the log": (item(1, lambda _: -1), ORDER),
    "a chain that is cut": (item(3, lambda _: 0), CHAIN),
    "a chain that turns": (item(3, lambda _: AT), CHAIN),
    "a chain of another slot": (item(3, lambda f: f.items[AT][3] - 1), CHAIN),
    "a later time": (item(2, lambda f: f.items[AT][2] + 1), "hash_index/item-has-the-time-of-its-record"),
    "a time below 0": (item(2, lambda _: -1), "hash_index/item-has-the-time-of-its-record"),
    "two that changed places": (exchanged, ORDER),
    "a slot that leads to an older item": (a_slot(lambda f, head: f.items[head][3]), SLOT),
    "a slot that is empty": (a_slot(lambda _f, _head: 0), SLOT),
    "a slot that leads to another's item": (a_slot(lambda _, head: head - 1), SLOT),
    "a slot too many in use": (header(4, 1, 32), "hash_index/header-counts-the-slots-in-use"),
    "an item less": (header(5, -1, 36), "hash_index/header-counts-the-items"),
    "an item more": (header(5, 1, 36), "hash_index/header-counts-the-items"),
    "another first record": (header(2, 8, 16), "hash_index/header-names-the-first-record"),
    "another last record": (header(3, -8, 24), "hash_index/header-names-the-last-record"),
    "another begin": (header(0, 1000, 0), "hash_index/header-has-the-times-of-its-records"),
    "another end": (header(1, -1, 0), "hash_index/header-has-the-times-of-its-records"),
    "a record that is left out": (left_out(lambda f, item: item[1] == f.items[AT][1]), KEY),
    "a key that is left out": (left_out(lambda f, item: item[:2] == f.items[AT][:2]), KEY),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_at_its_place(fault: str, tmp_path: Path) -> None:
    store = copy_of(WHOLE, tmp_path)
    damage, rule = FAULTS[fault]
    file = read(store, "")[1]
    position = file.items[AT][1]
    offset = damage(file)
    file.write()
    report = check([store.parent])
    assert report.verdict == "departs"
    assert rules(report) == [rule]
    where = report.findings[0].where
    if offset < 0:
        assert report.findings[0].position == position
        assert where.file.startswith("commitlog/")
    else:
        assert (where.file, where.offset) == (f"index/{file.path.name}", offset)


def test_a_file_that_is_gone_is_missed_where_nothing_was_lost_lawfully(tmp_path: Path) -> None:
    store = copy_of(WHOLE, tmp_path)
    sorted((store / "index").iterdir())[2].unlink()
    report = check([store.parent])
    assert rules(report) == [KEY]


# -- what must be tolerated --------------------------------------------------------------------------------------------


def tolerated(store: Path) -> Report:
    report = check([store.parent])
    assert not rules(report), report.model_dump_json(indent=1)
    return report


@pytest.mark.parametrize("gone", [0, 1])
def test_a_start_after_a_kill_may_have_deleted_files(gone: int, tmp_path: Path) -> None:
    store = copy_of(LIVES, tmp_path)
    sorted((store / "index").iterdir())[gone].unlink()
    report = tolerated(store)
    assert report.verdict == "conforms", report.sources[0].reasons
    assert any("are not in the hash index" in note for note in report.sources[0].notes)


@pytest.mark.parametrize("name", ["layouts/index_lives_5.5.0", "layouts/index_kill_clean_5.5.0"])
def test_a_record_may_have_lost_the_keys_that_lay_in_such_a_file(name: str, tmp_path: Path) -> None:
    """Its first keys filled a file, and the others began the next one, which is gone."""
    store = copy_of(name, tmp_path)
    there = read(store, name)
    after = next(other for one, other in pairwise(there) if one.header[3] == other.header[2])
    after.path.unlink()
    assert tolerated(store).verdict == "conforms"


@pytest.mark.parametrize("how", ["no folder", "an empty folder"])
def test_a_store_without_an_index_says_nothing_of_it(how: str, tmp_path: Path) -> None:
    store = copy_of(WHOLE, tmp_path)
    shutil.rmtree(store / "index")
    if how == "an empty folder":
        (store / "index").mkdir()
    report = tolerated(store)
    assert report.verdict == "conforms"
    assert any(rule.startswith("hash_index:") for rule in report.not_exercised)


def test_a_step_that_a_kill_broke_off_is_no_departure(tmp_path: Path) -> None:
    """The item is written and its slot leads to it, and the header does not count it yet."""
    store = copy_of(KILLED, tmp_path)
    file = read(store, "")[-1]
    last = file.header[5] - 1
    code, position, seconds, _ = file.items[last]
    file.items[last + 1] = [code, position, seconds, last]
    file.table[code % SLOTS] = last + 1
    file.write()
    assert tolerated(store).verdict == "conforms"


def test_a_page_that_a_power_loss_took_is_no_violation(tmp_path: Path) -> None:
    """The broker deletes the file at its next start."""
    store = copy_of(KILLED, tmp_path)
    file = read(store, "")[-1]
    for number in range(5, 20):
        file.items[number] = [0, 0, 0, 0]
    file.write()
    report = tolerated(store)
    assert report.verdict == "inconclusive"
    assert any("deletes the file at its next start" in reason for reason in report.sources[0].reasons)


def test_an_index_that_is_switched_off_misses_nothing(tmp_path: Path) -> None:
    store = copy_of(WHOLE, tmp_path)
    max((store / "index").iterdir()).unlink()
    with (store.parent / "broker.conf").open("a") as settings:
        settings.write("messageIndexEnable=false\n")
    report = tolerated(store)
    assert report.verdict == "conforms"
    assert any("messageIndexEnable is off" in note for note in report.sources[0].notes)


def test_without_settings_a_layout_that_is_not_the_default_is_not_judged(tmp_path: Path) -> None:
    store = copy_of(WHOLE, tmp_path)
    (store.parent / "broker.conf").unlink()
    report = tolerated(store)
    assert not report.coverage["hash_index.put"]
    assert any("maxHashSlotNum" in note for note in report.sources[0].notes)


def test_one_file_is_judged_alone(tmp_path: Path) -> None:
    store = copy_of(WHOLE, tmp_path)
    file = read(store, "")[1]
    FAULTS["a chain that is cut"][0](file)
    file.write()
    trace = f"index/{file.path.name}"
    report = check([store.parent], trace=trace)
    assert rules(report) == [CHAIN]
    assert report.findings[0].trace == trace
    assert not report.coverage["queue.index"]


@pytest.mark.parametrize("item", [None, 20, 290])
def test_a_file_is_judged_alike_however_much_of_it_at_once(
    item: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store as it was left, and one with an item that leads elsewhere."""
    store = copy_of(WHOLE, tmp_path)
    if item is not None:
        path = sorted((store / "index").iterdir())[1]
        data = bytearray(path.read_bytes())
        data[40 + 4 * SLOTS + 20 * item + 19] ^= 1
        path.write_bytes(data)
    reports = []
    for replayed, slots in ((file_replay.REPLAYED, index_files.SLOTS_AT_ONCE), (7, 3)):
        with monkeypatch.context() as patched:
            patched.setattr(file_replay, "REPLAYED", replayed)
            patched.setattr(index_files, "SLOTS_AT_ONCE", slots)
            reports.append(check([store]).model_dump(exclude={"seconds"}))
    assert reports[0] == reports[1]
    assert ("item-leads-to-the-one-before-it" in str(reports[0]["findings"])) is (item is not None)
