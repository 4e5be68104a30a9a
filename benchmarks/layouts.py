"""Large stores in other layouts: with a hash index, as a DLedger log, in tiered storage, full of timers, compacted.

    python -m benchmarks.layouts index|dledger|tiered|timers|compacted DIR --records 1000000

The first three have the records of `bigstore`. Where those lie, and to what their keys are hashed, the checker's own
reader says: a store made here shows how fast a check is, and not that it is right.
"""

from __future__ import annotations

import argparse
import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import bigstore
from benchmarks.bigstore import Ints, Shape
from gapless.native import by_python
from gapless.traces.sources.rocketmq.columns.bytes import java_hash
from gapless.traces.sources.rocketmq.layouts.compaction import compacted_files
from gapless.traces.sources.rocketmq.layouts.dledger_index.units import INDEX_FILE, UNIT
from gapless.traces.sources.rocketmq.layouts.hash_index.index_files import (
    DEFAULT_ITEMS,
    DEFAULT_SLOTS,
    ITEM,
    SLOT_WIDTH,
)
from gapless.traces.sources.rocketmq.layouts.hash_index.index_files import HEADER as INDEX_HEADER
from gapless.traces.sources.rocketmq.layouts.hash_index.record_keys import HASH, RECORD
from gapless.traces.sources.rocketmq.layouts.hash_index.worker import INDEX_KEYS
from gapless.traces.sources.rocketmq.layouts.tiered.files import ENTRIES, LOG, METADATA, TABLES, digest
from gapless.traces.sources.rocketmq.layouts.timer_wheel.files import SLOTS as WHEEL_SLOTS
from gapless.traces.sources.rocketmq.layouts.timer_wheel.files import TURN
from gapless.traces.sources.rocketmq.layouts.timer_wheel.files import UNIT as UNIT_OF_TIMER
from gapless.traces.sources.rocketmq.log import scan
from gapless.traces.sources.rocketmq.log.dledger_entries import DLEDGER_MAGIC, ENTRY_HEADER, HEADER
from gapless.traces.sources.rocketmq.queues.batch_queues import UNIT as UNIT_OF_COMPACTED
from gapless.traces.sources.rocketmq.segments.splits import Columns, SplitReader, splits
from gapless.traces.sources.rocketmq.store.names import TIMER_TOPIC
from gapless.traces.sources.rocketmq.store.opening import open_store

FIRST_FILE = f"{0:020d}"


def make_with_index(folder: Path, shape: Shape) -> None:
    """Make a store with a hash index of one file, in the default layout; records have a key and perhaps a tag."""
    bigstore.make(folder, shape)
    found = []
    for columns in _columns(folder):
        mine = columns.found[INDEX_KEYS.name]
        found.append(np.stack([mine[HASH], *columns.log[[scan.POSITION, scan.TIME]][:, mine[RECORD]]]))
    hashes, positions, times = np.concatenate(found, axis=1)
    count = len(hashes)
    if count >= DEFAULT_ITEMS:
        message = f"{count} keys have no room in one file"
        raise ValueError(message)
    slots, numbers = hashes % DEFAULT_SLOTS, np.arange(1, count + 1)
    order = np.argsort(slots, kind="stable")
    behind = slots[order][1:] == slots[order][:-1]
    previous = np.zeros(count, np.int64)
    previous[order[1:][behind]] = numbers[order[:-1][behind]]
    items = np.zeros(count + 1, ITEM)
    for name, column in (("hash", hashes), ("position", positions), ("previous", previous)):
        items[name][1:] = column
    items["seconds"][1:] = (times - times[0]) // 1000
    items["seconds"][1] = 0
    heads = np.zeros(DEFAULT_SLOTS, ">i4")
    heads[slots] = numbers  # the last of each
    header = np.zeros(1, INDEX_HEADER)
    header[0] = times[0], times[-1], positions[0], positions[-1], np.count_nonzero(heads), count + 1
    (folder / "index").mkdir()
    path = folder / "index" / "20260101000000000"
    path.write_bytes(header.tobytes() + heads.tobytes() + items.tobytes())
    os.truncate(path, INDEX_HEADER.itemsize + SLOT_WIDTH * DEFAULT_SLOTS + ITEM.itemsize * DEFAULT_ITEMS)


def make_dledger(folder: Path, shape: Shape) -> None:
    """A store whose log is a DLedger log of one file, with a unit of its index for every entry."""
    plain = folder.with_name(f"{folder.name}-plain")
    bigstore.make(plain, shape)
    positions, sizes = np.concatenate([columns.log[[scan.POSITION, scan.SIZE]] for columns in _columns(plain)], axis=1)
    count, entries = len(positions), positions + ENTRY_HEADER * np.arange(len(positions))
    (log,) = (plain / "commitlog").iterdir()
    if int(entries[-1]) + int(sizes[-1]) + 2 * ENTRY_HEADER > shape.file_size:
        message = f"a file of {shape.file_size} bytes is too small for {count} entries"
        raise ValueError(message)
    ledger = folder / "dledger-n0"
    for name in ("data", "index"):
        (ledger / name).mkdir(parents=True)
    data = memoryview(log.read_bytes())
    with (ledger / "data" / FIRST_FILE).open("wb") as out:
        for number, (at, size, entry) in enumerate(
            zip(positions.tolist(), sizes.tolist(), entries.tolist(), strict=True)
        ):
            out.write(HEADER.pack(DLEDGER_MAGIC, size + ENTRY_HEADER, number, 1, entry, 0, 0, 0, size))
            out.write(data[at : at + 28])
            out.write(struct.pack(">q", entry + ENTRY_HEADER))
            out.write(data[at + 36 : at + size])
    os.truncate(ledger / "data" / FIRST_FILE, shape.file_size)
    units = np.zeros(count, UNIT)
    columns = (DLEDGER_MAGIC, entries, sizes + ENTRY_HEADER, np.arange(count), 1)
    for name, column in zip(UNIT.names or (), columns, strict=True):
        units[name] = column
    (ledger / "index" / FIRST_FILE).write_bytes(units.tobytes())
    os.truncate(ledger / "index" / FIRST_FILE, INDEX_FILE)
    (ledger / "checkpoint").write_text(f"endIndex={count - 1}\ncommittedIndex={count - 1}\n")
    _lead_to(plain, positions, entries + ENTRY_HEADER)
    for name in ("consumequeue", "config", "checkpoint", "lock"):
        (plain / name).rename(folder / name)
    log.unlink()
    log.parent.rmdir()
    plain.rmdir()


def make_tiered(folder: Path, shape: Shape) -> None:
    """A store all of whose messages are in tiered storage, too: a segment for each queue, and one of its entries."""
    bigstore.make(folder, shape)
    (log,) = (folder / "commitlog").iterdir()
    data = memoryview(log.read_bytes())
    root = folder / "tieredstore" / f"{digest('lab')}_lab"
    tables: dict[str, dict[str, Any]] = {table: {} for table in TABLES.values()}
    name = f"{digest('0')}{FIRST_FILE}"
    for queue in sorted((folder / "consumequeue").glob("*/*")):
        entries = np.concatenate([np.fromfile(path, bigstore.ENTRY) for path in sorted(queue.iterdir())])
        entries = entries[entries["size"] > 0]
        places, sizes = entries["position"].tolist(), entries["size"].tolist()
        entries["position"] = np.cumsum(sizes) - sizes
        where = f"lab-a/{queue.parent.name}/{queue.name}"
        for kind in TABLES:
            (root / where / kind).mkdir(parents=True)
        with (root / where / LOG / name).open("wb") as out:
            for place, size, tiered in zip(places, sizes, entries["position"].tolist(), strict=True):
                out.write(data[place : place + 28])
                out.write(struct.pack(">q", tiered))
                out.write(data[place + 36 : place + size])
        entries.astype(bigstore.ENTRY).tofile(root / where / ENTRIES / name)
        for kind, length in ((LOG, sum(sizes)), (ENTRIES, entries.nbytes)):
            tables[TABLES[kind]][where] = {"0": {"path": where, "baseOffset": 0, "size": length, "endTimestamp": FAR}}
    (folder / METADATA).write_text(json.dumps(tables))


FAR = 4_000_000_000_000  # ms: nothing has expired


def _lead_to(store: Path, positions: Ints, others: Ints) -> None:
    """Let the entries of queues name other positions."""
    for path in store.glob("consumequeue/*/*/*"):
        entries = np.fromfile(path, bigstore.ENTRY)
        used = entries["size"] > 0
        entries["position"][used] = others[np.searchsorted(positions, entries["position"][used].astype(np.int64))]
        entries.tofile(path)


def _columns(store: Path) -> Iterator[Columns]:
    """The records of a store: each is overwritten by the next."""
    opened = open_store(store)
    for split in splits(opened):
        for scanned in SplitReader(opened, split, sought=(INDEX_KEYS,)).segments():
            yield scanned.columns


# -- timers --------------------------------------------------------------------------------------------------------

BEGAN = 1_760_000_000_000  # ms, a whole second; when the first message was stored
EACH_SECOND = 5000  # messages
WAIT = 20  # seconds, until a message is delivered
TARGET = ("orders", 4)  # the topic of all messages, and its queues


def make_timers(folder: Path, shape: Shape) -> None:
    """Make a store in which every second record waits in the timer wheel, and the others came out of it."""
    waiting = [_Queue(TIMER_TOPIC, 0)]
    out = [_Queue(TARGET[0], queue) for queue in range(TARGET[1])]
    units: list[tuple[int, ...]] = []
    turns: dict[int, list[int]] = {}
    (folder / "commitlog").mkdir(parents=True)
    count, delivered, at = shape.records // 2, 0, 0
    with (folder / "commitlog" / FIRST_FILE).open("wb") as log:

        def put(queue: _Queue, number: int, second: int, *more: str) -> tuple[int, int]:
            nonlocal at
            due = BEGAN + 1000 * (number // EACH_SECOND + WAIT)
            words = (*more, f"UNIQ_KEY\x01{number:032X}", f"TIMER_OUT_MS\x01{due}")
            data = queue.append(at, BEGAN + 1000 * second, words)
            log.write(data)
            at += len(data)
            return at - len(data), len(data)

        seconds = -(-count // EACH_SECOND)
        for second in range(seconds + WAIT + 1):
            for number in range(second * EACH_SECOND, min((second + 1) * EACH_SECOND, count)):
                place, size = put(
                    waiting[0], number, second, f"REAL_TOPIC\x01{TARGET[0]}", f"REAL_QID\x01{number % TARGET[1]}"
                )
                turn, unit = BEGAN // 1000 + second + WAIT, UNIT_OF_TIMER.itemsize * len(units)
                first, last, so_far = turns.get(turn, [unit, -1, 0])
                units.append((UNIT_OF_TIMER.itemsize, last, 1, BEGAN + 1000 * second, 1000 * WAIT, place, size))
                turns[turn] = [first, unit, so_far + 1]
            for number in range(delivered, min(max(0, second - WAIT) * EACH_SECOND, count)):
                put(out[number % TARGET[1]], number, second)
                delivered = number + 1
    _fill(folder, shape)
    _write_wheel(folder, units, turns, count)
    _close(folder, [*waiting, *out], BEGAN + 1000 * (seconds + WAIT))


def _write_wheel(folder: Path, units: list[tuple[int, ...]], turns: dict[int, list[int]], count: int) -> None:
    """The timer log in one file, the wheel, and how far the broker had read: all times are over."""
    log = np.zeros(len(units), UNIT_OF_TIMER)
    for name, column in zip(
        ("size", "before", "magic", "written", "delay", "message", "length"), zip(*units, strict=True), strict=True
    ):
        log[name] = column
    topic = np.frombuffer(TARGET[0].encode(), np.uint8)
    log["topic"] = by_python(java_hash)(topic, 0, len(topic))[0]
    (folder / "timerlog").mkdir()
    log.tofile(folder / "timerlog" / FIRST_FILE)
    wheel = np.zeros(WHEEL_SLOTS, TURN)
    for turn, (first, last, many) in turns.items():
        wheel[turn % WHEEL_SLOTS] = turn, first, last, many, 0
    wheel.tofile(folder / "timerwheel")
    (folder / "config").mkdir()
    read = 1000 * (max(turns) + 1)
    (folder / "config" / "timercheck").write_bytes(struct.pack(">3q", read, log.nbytes, count).ljust(4096, b"\0"))


# -- compacted topics --------------------------------------------------------------------------------------------------

KEYS = 100_000  # of a queue; a message of each comes after those of all others


def make_compacted(folder: Path, shape: Shape) -> None:
    """A store whose only topic is compacted: its broker has kept all messages of each key, for it made no round yet."""
    queues = [_Queue(TARGET[0], queue) for queue in range(TARGET[1])]
    kept: list[list[tuple[int, bytes]]] = [[] for _ in queues]
    (folder / "commitlog").mkdir(parents=True)
    at = 0
    with (folder / "commitlog" / FIRST_FILE).open("wb") as log:
        for number in range(shape.records):
            turn, stored = number % len(queues), BEGAN + number // bigstore.RECORDS_PER_MS
            words = f"KEYS\x01{number // len(queues) % KEYS:08}", f"UNIQ_KEY\x01{number:032X}"
            data = queues[turn].append(at, stored, words, b"a value")
            kept[turn].append((stored, data))
            log.write(data)
            at += len(data)
    _fill(folder, shape)
    longest = max(sum(len(data) for _, data in some) for some in kept)
    for queue, some in zip(queues, kept, strict=True):
        _write_compacted(folder, queue, some, longest + 4096)
    (folder / "config").mkdir()
    _close(folder, queues, BEGAN + (shape.records - 1) // bigstore.RECORDS_PER_MS, {"cleanup.policy": "COMPACTION"})


def _write_compacted(folder: Path, queue: _Queue, kept: list[tuple[int, bytes]], length: int) -> None:
    """The compacted log of a queue in one file, and its entries in another."""
    records, entries = (
        folder / kind / queue.topic.decode() / str(queue.queue)
        for kind in (compacted_files.RECORDS, compacted_files.ENTRIES)
    )
    units = np.zeros(len(kept), UNIT_OF_COMPACTED)
    units["size"] = [len(data) for _, data in kept]
    units["position"] = np.cumsum(units["size"]) - units["size"]
    units["time"], units["number"], units["count"] = [stored for stored, _ in kept], np.arange(len(kept)), 1
    for path in (records, entries):
        path.mkdir(parents=True)
    with (records / FIRST_FILE).open("wb") as out:
        for place, (_, data) in zip(units["position"].tolist(), kept, strict=True):
            out.write(data[:28] + struct.pack(">q", place) + data[36:])
    units.tofile(entries / FIRST_FILE)
    os.truncate(records / FIRST_FILE, length)
    os.truncate(entries / FIRST_FILE, (units.nbytes // 46_000 + 2) * 46_000)


# -- messages of our own -----------------------------------------------------------------------------------------------


def _fill(folder: Path, shape: Shape) -> None:
    """Give the log file its full length. Raises ValueError where it is longer than that already."""
    log = folder / "commitlog" / FIRST_FILE
    if log.stat().st_size > shape.file_size:
        message = f"a file of {shape.file_size} bytes is too small"
        raise ValueError(message)
    os.truncate(log, shape.file_size)


def _close(folder: Path, queues: Sequence[_Queue], stored: int, attributes: Mapping[str, str] | None = None) -> None:
    """Write the files of an orderly stop: queues, topics, and the time of the last record, in ms."""
    for queue in queues:
        queue.write(folder)
    (folder / "checkpoint").write_bytes(struct.pack(">qq", stored, stored).ljust(4096, b"\0"))
    (folder / "lock").write_bytes(b"lock")
    topics = {
        topic: {"topicName": topic, "writeQueueNums": 4, "readQueueNums": 4, "attributes": attributes or {}}
        for topic in {queue.topic.decode() for queue in queues}
    }
    (folder / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": topics}))


class _Queue:
    """A queue of one topic, and the entries of its messages."""

    def __init__(self, topic: str, queue: int) -> None:
        self.topic, self.queue, self.entries = topic.encode(), queue, bytearray()

    def append(self, at: int, stored: int, words: tuple[str, ...], body: bytes = b"") -> bytes:
        """A message whose record lies at a log position; its entry is remembered."""
        text = "\x02".join((*words, "")).encode()
        size = 91 + len(body) + len(self.topic) + len(text)
        number = len(self.entries) // 20
        self.entries += struct.pack(">qiq", at, size, 0)
        head = struct.pack(
            ">iIIiiqqiq", size, 0xDAA320A7, zlib.crc32(body) & 0x7FFFFFFF, self.queue, 0, number, at, 0, stored
        )
        host = b"\x7f\0\0\1" + struct.pack(">i", 10911)
        rest = struct.pack(">q", stored) + host + struct.pack(">iqi", 0, 0, len(body)) + body
        return head + host + rest + bytes([len(self.topic)]) + self.topic + struct.pack(">H", len(text)) + text

    def write(self, folder: Path) -> None:
        """Write the queue's files."""
        path = folder / "consumequeue" / self.topic.decode() / str(self.queue)
        path.mkdir(parents=True)
        for base in range(0, len(self.entries) + 1, bigstore.QUEUE_FILE):
            file = path / f"{base:020d}"
            file.write_bytes(self.entries[base : base + bigstore.QUEUE_FILE])
            os.truncate(file, bigstore.QUEUE_FILE)


LAYOUTS = {
    "index": make_with_index,
    "dledger": make_dledger,
    "tiered": make_tiered,
    "timers": make_timers,
    "compacted": make_compacted,
}


def main() -> None:
    """Make a store."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.layouts", description=__doc__)
    parser.add_argument("layout", choices=LAYOUTS)
    parser.add_argument("store", type=Path, metavar="DIR")
    parser.add_argument("--records", type=int, default=1_000_000)
    chosen = parser.parse_args()
    LAYOUTS[chosen.layout](chosen.store, Shape(chosen.records))


if __name__ == "__main__":
    main()
