"""The index of tiered storage: no item leads elsewhere, no slot skips one; and cases without a violation."""

import os
import re
import struct
from collections.abc import Callable, Iterator
from hashlib import md5
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from gapless import Report, check
from gapless.traces.sources.rocketmq.layouts.hash_index.matching import OWNED, TIMELY
from gapless.traces.sources.rocketmq.layouts.tiered.index_files import SEALED
from gapless.traces.sources.rocketmq.layouts.tiered.indexed_messages import _may_be_of_no_word, odd_items
from gapless.traces.sources.rocketmq.store.files import LogFile
from tests.support.command_line import gapless
from tests.support.night import by_day
from tests.support.rocketmq.index_files import java_hash
from tests.support.rocketmq.recordings import RECORDINGS, copy_of, recording, recording_as_left

RECORDED = [path.name.removesuffix(".tar.xz") for path in sorted((RECORDINGS / "layouts").glob("tieredindex_*.tar.xz"))]
KILLED, LIVES = "layouts/tieredindex_killed_5.3.3", "layouts/tieredindex_lives_5.5.0"
SLOTS, METADATA = 40, "config/tieredStoreMetadata.json"
FULL, WRITTEN = "rmq_sys_INDEX/0", "tiered_index_file/1795572369621"  # both files of KILLED, as traces
HASH, LINK, SLOT, TIME = (
    f"hash_index/{rule}"
    for rule in (
        "item-has-the-hash-of-a-key-of-its-record",
        "item-leads-to-the-one-before-it",
        "slot-leads-to-its-newest-item",
        "item-has-the-time-of-its-record",
    )
)
COUNT, USED = "hash_index/header-counts-the-items", "hash_index/header-counts-the-slots-in-use"


# -- a reader of its own -----------------------------------------------------------------------------------------------


class Item(NamedTuple):
    """An item, and the file and the offset at which it lies."""

    path: Path
    offset: int
    hash: int
    topic: int
    queue: int
    position: int
    size: int
    seconds: int


def sealed(store: Path) -> list[Path]:
    found = store.glob("tieredstore/*/*/rmq_sys_INDEX/0/INDEX/*")
    return sorted(found, key=lambda path: int(path.name[8:]))


def written(store: Path) -> list[Path]:
    return sorted(path for path in store.glob("tiered_index_file/*") if path.is_file())


def items(path: Path) -> Iterator[Item]:
    """Every item that a slot leads to, as a search of the broker's walks from one to another."""
    data = path.read_bytes()
    table = 28 + SLOTS * 8
    for slot in range(SLOTS):
        first, size = struct.unpack_from(">ii", data, 28 + 8 * slot)
        if "INDEX" in path.parts:
            for at in range(first, first + size, 28):
                yield Item(path, at, *struct.unpack_from(">iiiqii", data, at))
        while first > 0 and "INDEX" not in path.parts:
            at = table + 32 * first
            *fields, first = struct.unpack_from(">iiiqiii", data, at)
            yield Item(path, at, *fields)


def keys(store: Path, item: Item) -> set[int]:
    """The hashes of the keys of the message that an item leads to."""
    topics = dict(re.findall(r'"topicId":(\d+),\s*"topic":"(\w+)"', (store / METADATA).read_text()))
    topic = topics[str(item.topic)]
    (folder,) = store.glob(f"tieredstore/*/*/{topic}/{item.queue}/COMMIT_LOG")
    bases = {int(path.name[8:]): path for path in folder.iterdir()}
    base = max(base for base in bases if base <= item.position)
    message = bases[base].read_bytes()[item.position - base :][: item.size]
    assert struct.unpack_from(">i", message)[0] == item.size
    assert struct.unpack_from(">q", message, 28)[0] == item.position
    parts = dict(part.split(b"\1") for part in message.split(b"\2") if part.count(b"\1") == 1)
    words = [parts.get(b"KEYS", b"").decode(), *(v.decode() for k, v in parts.items() if k.endswith(b"UNIQ_KEY"))]
    return {java_hash(f"{topic}#{word}") for text in words for word in text.split(" ") if word}


def rules(report: Report) -> list[str]:
    return [found.rule for found in report.violations]


def judged(store: Path) -> Report:
    return check([store], engine="local", jobs=1)


# -- what brokers left -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", by_day(RECORDED, 1 / 3))
def test_items_that_brokers_left_lead_to_messages_with_their_keys(name: str) -> None:
    """By a reader that walks as the broker does: each item has the hash of a key of its message."""
    store = recording(f"layouts/{name}")
    found = [item for path in (*sealed(store), *written(store)) for item in items(path)]
    assert len(found) > 200
    for item in found:
        words = keys(store, item)
        assert item.hash in words
    report = check([recording_as_left(f"layouts/{name}")], engine="local", jobs=1)
    assert (report.verdict, rules(report)) == ("conforms", [])
    files = len(sealed(store)) + len(written(store))
    expected = f"{len(found):,} items in {files} files of the index of tiered storage, each of which"
    assert f"{expected} leads to a message with its key" in report.sources[0].notes
    assert report.coverage["hash_index.open"] == files + 1  # the broker's own has one


def test_a_file_of_unknown_layout_is_named(tmp_path: Path) -> None:
    """One that is full tells it itself; of one that is written, settings tell it."""
    store = copy_of(KILLED, tmp_path)
    (store.parent / "broker.conf").unlink()
    report = judged(store)
    assert report.verdict == "conforms"
    notes = [note for note in report.sources[0].notes if "index of tiered storage" in note]
    assert "198 items in 1 file" in notes[1]
    assert f"{WRITTEN} is 6,748 bytes long, where tieredStoreIndexFileMaxHashSlotNum" in notes[0]


@pytest.mark.parametrize("name", ["shorter", "gone", "another beginning", "another beginning of one that is written"])
def test_a_file_that_cannot_be_read_is_not_passed_over(name: str, tmp_path: Path) -> None:
    store = copy_of(LIVES if name == "gone" else KILLED, tmp_path)
    path = (written if "written" in name else sealed)(store)[-1]
    if name == "gone":
        path.unlink()
    else:
        put(path, 0, b"another") if "another" in name else os.truncate(path, 5000)
    report = judged(store)
    assert (report.verdict, rules(report)) == ("inconclusive", [])
    (reason,) = report.sources[0].reasons
    assert reason.startswith("a file of the index of tiered storage is not judged: ")
    assert str(path.relative_to(store)) in reason


def test_the_oldest_full_file_may_have_expired(tmp_path: Path) -> None:
    """A broker that is killed then leaves metadata of it."""
    store = copy_of(LIVES, tmp_path)
    sealed(store)[0].unlink()
    assert judged(store).verdict == "conforms"


# -- labelled faults ---------------------------------------------------------------------------------------------------


def put(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as out:
        out.seek(offset)
        out.write(data)


def field(at: int, width: int, add: int = 1) -> Callable[[Path, Item], int]:
    """A fault: a number of an item is another."""

    def fault(_store: Path, item: Item) -> int:
        data = item.path.read_bytes()[item.offset + at :][:width]
        put(
            item.path,
            item.offset + at,
            (int.from_bytes(data, "big", signed=True) + add).to_bytes(width, "big", signed=True),
        )
        return item.offset

    return fault


def swapped(_store: Path, item: Item) -> int:
    """Two items of different slots, each where the other was."""
    other = next(one for one in items(item.path) if one.hash % SLOTS != item.hash % SLOTS and one.offset > item.offset)
    data = item.path.read_bytes()
    put(item.path, item.offset, data[other.offset : other.offset + 28])
    put(item.path, other.offset, data[item.offset : item.offset + 28])
    return -1  # either


def in_slot(add: tuple[int, int]) -> Callable[[Path, Item], int]:
    def fault(_store: Path, item: Item) -> int:
        offset = 28 + 8 * (item.hash % SLOTS)
        fields = struct.unpack_from(">ii", item.path.read_bytes(), offset)
        put(item.path, offset, struct.pack(">ii", fields[0] + add[0], fields[1] + add[1]))
        return offset

    return fault


def in_header(offset: int) -> Callable[[Path, Item], int]:
    def fault(_store: Path, item: Item) -> int:
        (number,) = struct.unpack_from(">i", item.path.read_bytes(), offset)
        put(item.path, offset, struct.pack(">i", number - 1))
        return offset

    return fault


FAULTS: dict[str, tuple[Callable[[Path, Item], int], str]] = {
    "another hash": (field(0, 4, add=SLOTS), HASH),  # of the same slot
    "a hash of another slot": (field(0, 4), HASH),
    "another queue": (field(8, 4, add=-1), HASH),
    "another place": (field(12, 8), HASH),
    "a place beyond all": (field(12, 8, add=1 << 40), HASH),
    "another size": (field(20, 4), HASH),
    "a size below 0": (field(20, 4, add=-100_000), HASH),
    "another time": (field(24, 4), TIME),
    "two items swapped": (swapped, LINK),
    "a slot that begins later": (in_slot((28, 0)), SLOT),
    "a slot that ends early": (in_slot((0, -28)), SLOT),
    "an emptied slot": (in_slot((0, -100_000)), SLOT),
    "another count": (in_header(24), COUNT),
    "fewer slots in use": (in_header(20), USED),
}


def an_item(path: Path) -> Item:
    """Return an item from the middle of a slot with several, of the second queue of its topic."""
    found = list(items(path))
    slots = [one.hash % SLOTS for one in found]
    return next(one for at, one in enumerate(found) if one.queue == 1 and slots[at - 1] == slots[at] == slots[at + 1])


@pytest.mark.parametrize("name", by_day([*FAULTS], 1 / 2))
def test_a_fault_of_a_full_file_is_found_where_it_lies(name: str, tmp_path: Path) -> None:
    fault, rule = FAULTS[name]
    store = copy_of(KILLED, tmp_path)
    (path,) = sealed(store)
    offset = fault(store, an_item(path))
    report = judged(store)
    (found,) = report.violations
    assert (report.verdict, found.rule, found.trace) == ("departs", rule, FULL)
    assert found.where.file == str(path.relative_to(store))
    assert found.where.offset == offset or offset < 0
    assert 0 < len(found.story) <= 12


@pytest.mark.parametrize("name", by_day([name for name, (_, rule) in FAULTS.items() if rule in (HASH, TIME)], 1 / 8))
def test_what_a_power_loss_may_have_done_is_not_decided(name: str, tmp_path: Path) -> None:
    """An unfinished file is never flushed; and a later life seals what is left of it."""
    fault, _rule = FAULTS[name]
    for recorded in (KILLED, LIVES):
        store = copy_of(recorded, tmp_path / recorded)
        (path, *_) = written(store) or sealed(store)
        fault(store, an_item(path))
        report = judged(store)
        assert (report.verdict, rules(report)) == ("inconclusive", [])
        assert (
            f"{path.relative_to(store)}, of the index of tiered storage, is not whole" in report.sources[0].reasons[0]
        )


def link(_store: Path, item: Item) -> int:
    (before,) = struct.unpack_from(">i", item.path.read_bytes(), item.offset + 28)
    put(item.path, item.offset + 28, struct.pack(">i", before + 1))
    return item.offset


def head(_store: Path, item: Item) -> int:
    offset = 28 + 8 * (item.hash % SLOTS)
    put(item.path, offset, struct.pack(">i", 1 + struct.unpack_from(">i", item.path.read_bytes(), offset)[0] % 30))
    return offset


@pytest.mark.parametrize(
    ("fault", "rule"), [(field(0, 4, add=SLOTS), HASH), (link, LINK), (head, SLOT), (in_header(20), USED)]
)
def test_a_fault_of_a_file_that_is_written_is_found_after_a_clean_stop(
    fault: Callable[[Path, Item], int], rule: str, tmp_path: Path
) -> None:
    """By a version that would not seal it then."""
    store = copy_of(KILLED, tmp_path)
    (store / "abort").unlink()
    assert judged(store).verdict == "conforms"
    (path,) = written(store)
    offset = fault(store, an_item(path))
    (found,) = judged(store).violations
    assert (found.rule, found.trace) == (rule, WRITTEN)
    assert (found.where.file, found.where.offset) == (WRITTEN, offset)


def test_a_fault_is_explained_and_a_file_judged_by_its_name(tmp_path: Path) -> None:
    store = copy_of(KILLED, tmp_path)
    (path,) = sealed(store)
    item = an_item(path)
    field(12, 8)(store, item)
    output, topic = gapless("check", str(store.parent)).output, "orders" if item.topic == 0 else "payments"
    leads = f"points at {item.size} bytes at {item.position + 1:,} of the tiered log of {topic}/1"
    assert f"{leads}, has the hash of no key of a record there" in output
    assert f"the hash index {FULL} departs at" in gapless("explain", str(store.parent), "--trace", FULL).output
    report = check([store], trace=WRITTEN)
    assert (report.verdict, report.counts.traces) == ("conforms", 2)


@pytest.mark.parametrize(("queue", "shift", "right"), [(1, 0, True), (0, 0, False), (1, 7, False)])
def test_a_message_of_another_queue_or_place_is_not_that_of_an_item(
    queue: int, shift: int, *, right: bool, tmp_path: Path
) -> None:
    """It may lie whole in the body of another one."""
    store = recording(KILLED)
    (path,), (full,) = store.glob("tieredstore/*/*/orders/1/COMMIT_LOG/*"), sealed(store)
    log = tmp_path / "log"
    log.write_bytes(bytes(shift) + path.read_bytes())
    file = LogFile(str(log), 0, log.stat().st_size)
    data, places = full.read_bytes(), [one.offset for one in items(full) if (one.topic, one.queue) == (0, 1)]
    some = np.concatenate([np.frombuffer(data, SEALED, 1, place) for place in places])
    some["position"] += shift
    (began,) = struct.unpack_from(">q", data, 4)
    assert (odd_items(("orders", queue), [file], some, began) == (OWNED | TIMELY if right else 0)).all()


@pytest.mark.parametrize(
    ("topic", "of_it", "of_another"),
    [("orders", True, False), ("größe\U0001f600", True, False), (os.fsdecode(b"a\xff"), True, True)],
)
def test_an_empty_word_has_the_hash_of_its_topic_unless_that_is_unknown(
    topic: str, *, of_it: bool, of_another: bool
) -> None:
    hashes = np.array([java_hash(f"{topic}#".encode(errors="replace").decode()), 1])
    assert _may_be_of_no_word(topic, hashes).tolist() == [of_it, of_another]


# -- what is tolerated -------------------------------------------------------------------------------------------------


def test_items_of_a_topic_that_is_gone_are_no_violation(tmp_path: Path) -> None:
    store = copy_of(KILLED, tmp_path)
    metadata = (store / METADATA).read_text()
    (store / METADATA).write_text(re.sub(r'"topicId":1\b', '"topicId":7', metadata))
    report = judged(store)
    assert report.verdict == "conforms"
    gone = sum(item.topic == 1 for path in (*sealed(store), *written(store)) for item in items(path))
    assert gone
    note = f"not judged of the index of tiered storage: {gone} items; their topic or queue is gone"
    assert note in report.sources[0].notes


def test_items_of_messages_that_expired_are_no_violation(tmp_path: Path) -> None:
    """The oldest file of a tiered log is gone, and with it the beginning of its queue."""
    store = copy_of(KILLED, tmp_path)
    cut(store, "COMMIT_LOG", 3)
    cut(store, "CONSUME_QUEUE", 3)
    report = judged(store)
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    assert any(
        note.startswith("not judged of the index") and note.endswith("their messages have expired")
        for note in report.sources[0].notes
    )


def test_items_of_a_queue_that_was_restarted_are_not_decided(tmp_path: Path) -> None:
    """It then begins behind its first message, for that has expired in the broker's own log."""
    store = copy_of(KILLED, tmp_path)
    (path,) = sealed(store)
    item = next(one for one in items(path) if (one.topic, one.queue) == (0, 1))
    cut(store, "CONSUME_QUEUE", 1)
    assert judged(store).verdict == "conforms"
    field(12, 8)(store, item)
    report = judged(store)
    assert (report.verdict, rules(report)) == ("inconclusive", [])
    assert (
        "no message of orders/1 with their key is where 1 item of the index of tiered storage would lead"
        in report.sources[0].reasons[0]
    )


def cut(store: Path, kind: str, messages: int, queue: str = "lab-a/orders/1") -> None:
    """The first messages of a queue are in none of its files, which begins behind them."""
    ((folder,),) = (list(store.glob(f"tieredstore/*/{queue}/{kind}")),)
    (path,) = folder.iterdir()
    data = path.read_bytes()
    at = 20 * messages
    if kind == "COMMIT_LOG":
        (entries,) = folder.parent.glob("CONSUME_QUEUE/*")
        at = struct.unpack_from(">q", entries.read_bytes(), at)[0]
    path.unlink()
    (folder / f"{md5(str(at).encode(), usedforsecurity=False).hexdigest()[:8]}{at:020d}").write_bytes(data[at:])
    table = "commitLogFileSegmentTable" if kind == "COMMIT_LOG" else "consumeQueueFileSegmentTable"
    before, named, rest = (store / METADATA).read_text().partition(f'"{table}"')
    mine = rf'("{queue}":\{{\s*)0(:\{{[^}}]*"baseOffset":)0([^}}]*"size":){len(data)}\b'
    rest, count = re.subn(mine, rf"\g<1>{at}\g<2>{at}\g<3>{len(data) - at}", rest, count=1)
    assert count == 1
    (store / METADATA).write_text(before + named + rest)
