"""A large RocketMQ store, as a broker leaves it after a clean stop.

    python -m benchmarks.bigstore DIR --records 1000000 --verify

One numba kernel writes records straight into the mapped commit-log file, and their queue entries into a small
buffer that is emptied a batch at a time, so memory does not grow with the store. The same seed gives the same
bytes.

`--verify` reads a store back with a plain, slow parser that shares no code with the writer; it reads a real
broker's recording just as well.
"""

from __future__ import annotations

import argparse
import json
import mmap
import random
import struct
import time
import zlib
from array import array
from dataclasses import dataclass
from pathlib import Path

import numba
import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Tails = tuple[Bytes, Ints, Ints]  # padded bytes, their lengths, tag codes
World = tuple[tuple[int, int, int], Bytes, Bytes, Tails, Ints]  # settings, head, words, tails, CRC tables
Out = tuple[Ints, Ints, Bytes]  # next number of each queue; then per record its queue and its entry
Entries = npt.NDArray[np.void]
Int = int | np.int64

QUEUE_FILE = 6_000_000
BATCH = 200_000  # records between two writes to the queues
TAGS = ("TagA", "TagB", "TagC", "paid", "a-rather-long-tag-name-for-hashing", "")  # the last: no tag
STARTED = 1_760_000_000_000  # ms; when the first record was stored
RECORDS_PER_MS = 40
KEY_PREFIX = "7F0000010A2B18B4"  # the sender's address, process and class loader; sixteen digits follow


@dataclass(frozen=True)
class Shape:
    """What the store is to look like."""

    records: int
    file_size: int = 2**30
    topics: tuple[str, ...] = ("orders", "payments", "audit-log", "shipments")
    queues: int = 4  # of each topic
    body: int = 135  # mean bytes; a record then has 350, as on the broker whose own recovery was timed
    seed: int = 1

    @property
    def paths(self) -> list[str]:
        """Every queue, in the order in which the kernel counts them."""
        return [f"{topic}/{queue}" for topic in self.topics for queue in range(self.queues)]


def make(store: Path, shape: Shape) -> None:
    """Write the store into an empty or new directory."""
    if store.exists() and any(store.iterdir()):
        message = f"{store} is not empty"
        raise FileExistsError(message)
    (store / "commitlog").mkdir(parents=True)
    _write_log_and_queues(store, shape)
    stored = _stored_at(shape.records - 1) if shape.records else 0
    (store / "checkpoint").write_bytes(struct.pack(">qq", stored, stored).ljust(4096, b"\0"))
    (store / "lock").write_bytes(b"lock")
    (store / "config").mkdir()
    (store / "config" / "topics.json").write_text(_topics_json(shape))


def _write_log_and_queues(store: Path, shape: Shape) -> None:
    world = _world(shape)
    numbers = np.zeros(len(shape.paths), np.int64)
    queue_of, entries = np.empty(BATCH, np.int64), np.empty((BATCH, 20), np.uint8)
    done = base = 0
    while done < shape.records:
        log = np.memmap(_whole_file(store / "commitlog", base, shape.file_size), np.uint8, "r+")
        end, full = 0, False
        while done < shape.records and not full:
            wanted, before = min(BATCH, shape.records - done), numbers.copy()
            count, end = _append(log, base, end, done, wanted, world, (numbers, queue_of, entries))
            for queue, path in enumerate(shape.paths):
                block = entries[:count][queue_of[:count] == queue]
                _append_entries(store / "consumequeue" / path, int(before[queue]), block.tobytes())
            done, full = done + count, count < wanted
        if end == 0:
            message = f"a file of {shape.file_size} bytes is too small for a record"
            raise ValueError(message)
        if full:
            log[end : end + 8] = list(struct.pack(">II", shape.file_size - end, 0xCBD43194))
        base += shape.file_size


def _append_entries(queue: Path, number: int, entries: bytes) -> None:
    """Entries begin at `number`, and may fill several files."""
    while entries:
        within = number * 20 % QUEUE_FILE
        block, entries = entries[: QUEUE_FILE - within], entries[QUEUE_FILE - within :]
        with _whole_file(queue, number * 20 - within, QUEUE_FILE).open("r+b") as file:
            file.seek(within)
            file.write(block)
        number += len(block) // 20


def _whole_file(folder: Path, base: int, size: int) -> Path:
    """The file that begins at `base`, made at full length (sparse zeros) if it is not there yet."""
    path = folder / f"{base:020}"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.truncate(size)
    return path


def _world(shape: Shape) -> World:
    """All that the kernel draws records from."""
    client, broker = b"\x7f\0\0\1" + struct.pack(">I", 51628), b"\x7f\0\0\1" + struct.pack(">I", 10911)
    head = struct.pack(">4xI32x8x8s8x8s16x", 0xDAA320A7, client, broker)
    settings = (shape.seed, shape.queues, shape.body)
    return settings, np.frombuffer(head, np.uint8), _words(shape.seed), _tails(shape.topics), _crc_tables()


def _tails(topics: tuple[str, ...]) -> Tails:
    """What follows a body, for each topic and tag.

    The properties come in the order in which a real broker's Java map gave them.
    """
    tails = []
    for topic in topics:
        for tag in TAGS:
            pairs = {"MSG_REGION": "DefaultRegion", "UNIQ_KEY": KEY_PREFIX + 16 * "0", "CLUSTER": "lab"}
            pairs |= {"TAGS": tag} if tag else {}
            pairs |= {"WAIT": "true", "TRACE_ON": "true"}
            properties = "".join(f"{name}\x01{value}\x02" for name, value in pairs.items()).encode()
            name = topic.encode()
            tails.append(bytes([len(name)]) + name + struct.pack(">H", len(properties)) + properties)
    longest = max(map(len, tails))
    padded = np.frombuffer(b"".join(tail.ljust(longest, b"\0") for tail in tails), np.uint8)
    lengths = np.array([len(tail) for tail in tails])
    return padded.reshape(-1, longest), lengths, np.array([_tag_code(tag) for tag in TAGS] * len(topics))


KEY_HOLE = len(f"MSG_REGION=DefaultRegion;UNIQ_KEY={KEY_PREFIX}")  # bytes of properties before the digits


def _tag_code(tag: str) -> int:
    """Java's `String.hashCode`."""
    code = 0
    for letter in tag:
        code = (31 * code + ord(letter)) & 0xFFFFFFFF
    return code - 2**32 if code >= 2**31 else code


def _words(seed: int) -> Bytes:
    """A quarter of a megabyte of text to cut bodies from."""
    chance = random.Random(seed)
    words = ("alpha", "delta", "gamma", "omega", "sigma", "zeta")
    text = " ".join(f"{chance.choice(words)}-{chance.getrandbits(48):012x}" for _ in range(14_000))
    return np.frombuffer(text.encode(), np.uint8)


def _crc_tables() -> Ints:
    """Row *k*: the CRC of a byte that *k* zero bytes follow."""
    tables = np.zeros((8, 256), np.int64)
    tables[0] = range(256)
    for _ in range(8):
        tables[0] = (tables[0] >> 1) ^ (0xEDB88320 * (tables[0] & 1))
    for row in range(1, 8):
        tables[row] = (tables[row - 1] >> 8) ^ tables[0, tables[row - 1] & 255]
    return tables


def _topics_json(shape: Shape) -> str:
    table = {
        topic: {
            "attributes": {},
            "order": False,
            "perm": 6,
            "readQueueNums": shape.queues,
            "topicFilterType": "SINGLE_TAG",
            "topicName": topic,
            "topicSysFlag": 0,
            "writeQueueNums": shape.queues,
        }
        for topic in shape.topics
    }
    version = {"counter": len(table), "stateVersion": 0, "timestamp": STARTED}
    return json.dumps({"dataVersion": version, "topicConfigTable": table}, indent="\t", separators=(",", ":"))


def _stored_at(number: int) -> int:
    return STARTED + number // RECORDS_PER_MS


# The kernel. Its integers are signed but for the random bits: to numba, signed with unsigned makes a float.


@numba.njit(cache=True)
def _append(log: Bytes, base: int, end: int, done: int, wanted: int, world: World, out: Out) -> tuple[int, int]:
    """Append `wanted` records at `end`, or as many as fit: how many, and where the last one ends."""
    (seed, queues, mean), head, pool, (tails, tail_lengths, tag_codes), tables = world
    next_numbers, queue_of, entries = out
    tags = len(tails) * queues // len(next_numbers)
    for count in range(wanted):
        record = done + count
        bits = _random_bits(seed, record)
        queue = (bits & 0xFFFF) % len(next_numbers)
        tail = queue // queues * tags + (bits >> 16 & 0xFF) % tags
        body = mean // 2 + (bits >> 24 & 0xFFFF) % (mean + 1)
        cut = (bits >> 40) % (len(pool) - body)
        size = 88 + body + tail_lengths[tail]
        if end + size + 8 > len(log):
            return count, end

        after = end + 88 + body
        log[end : end + 88] = head
        log[end + 88 : after] = pool[cut : cut + body]
        log[after : end + size] = tails[tail, : tail_lengths[tail]]
        _put_hexadecimal(log, after + 1 + tails[tail, 0] + 2 + KEY_HOLE, record)
        stored = STARTED + record // RECORDS_PER_MS
        _put(log, end, 4, size)
        _put(log, end + 8, 4, _crc(log, end + 88, after, tables) & 0x7FFFFFFF)
        _put(log, end + 12, 4, queue % queues)
        _put(log, end + 20, 8, next_numbers[queue])
        _put(log, end + 28, 8, base + end)
        _put(log, end + 40, 8, stored - (cut & 15))
        _put(log, end + 56, 8, stored)
        _put(log, end + 84, 4, body)

        _put(entries[count], 0, 8, base + end)
        _put(entries[count], 8, 4, size)
        _put(entries[count], 12, 8, tag_codes[tail])
        queue_of[count] = queue
        next_numbers[queue] += 1
        end += size
    return wanted, end


@numba.njit(cache=True)
def _random_bits(seed: int, record: int) -> np.int64:
    """63 bits of splitmix64: record *n* is the same however the records are batched."""
    bits = np.uint64(seed) + np.uint64(record) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((bits ^ (bits >> np.uint64(31))) >> np.uint64(1))


@numba.njit(cache=True)
def _put(target: Bytes, at: Int, width: int, value: Int) -> None:
    for byte in range(width):
        target[at + byte] = value >> 8 * (width - 1 - byte) & 0xFF


@numba.njit(cache=True)
def _put_hexadecimal(target: Bytes, at: Int, value: int) -> None:
    for digit in range(16):
        nibble = value >> 4 * (15 - digit) & 15
        target[at + digit] = nibble + (48 if nibble < 10 else 55)


@numba.njit(cache=True)
def _crc(data: Bytes, start: Int, end: Int, tables: Ints) -> np.int64:
    """CRC-32, eight bytes at a time; nothing of zlib's, so that zlib can judge it."""
    crc, at = np.int64(0xFFFFFFFF), start
    while at + 8 <= end:
        for byte in range(4):
            crc ^= np.int64(data[at + byte]) << 8 * byte
        folded = np.int64(0)
        for byte in range(4):
            folded ^= tables[7 - byte, crc >> 8 * byte & 255] ^ tables[3 - byte, data[at + 4 + byte]]
        crc = folded
        at += 8
    while at < end:
        crc = tables[0, (crc ^ data[at]) & 255] ^ crc >> 8
        at += 1
    return crc ^ 0xFFFFFFFF


# The reader. It knows the format from the reference, and shares nothing with the writer above.


@dataclass(frozen=True)
class Extent:
    """How large a store is, by its queues."""

    records: int
    bytes: int  # of the log, up to the end of the last record


def extent(store: Path) -> Extent:
    """Found without reading the log."""
    queues = [_entries(path) for path in store.glob("consumequeue/*/*")]
    lasts = [queue[-1].tolist() for queue in queues if len(queue)]
    return Extent(sum(map(len, queues)), max((position + size for position, size, _ in lasts), default=0))


@dataclass(frozen=True)
class Verified:
    """What was found in a store in which all is well."""

    records: int
    read_in_full: int
    files: int
    bytes: int  # of records


def verify(store: Path, every: int = 97) -> Verified:
    """Follow every record from head to head, read one in `every` in full, and hold the queues against them.

    Raises `AssertionError` where the store is not what a clean stop leaves.
    """
    queues = {f"{path.parent.name}/{path.name}": _entries(path) for path in store.glob("consumequeue/*/*")}
    paths = sorted((store / "commitlog").iterdir())
    starts, clock, room, used, read = array("q"), 0, 0, 0, 0
    for path in paths:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as log:
            base, first = int(path.name), len(starts)
            _need(base == int(paths[0].name) + len(log) * paths.index(path), "files follow each other", path)
            end, clock = _follow(log, base, starts, clock)
            (size,) = struct.unpack_from(">I", log)
            _need(end > 0 and size + 8 > room, "its first record had no room in the file before", path)
            for start in starts[first::every]:
                _read_in_full(log, start, base, queues)
                read += 1
            room, used = len(log) - end, used + end
            blank = b"" if path == paths[-1] else struct.pack(">II", room, 0xCBD43194)
            _need(log[end : end + len(blank)] == blank, "a blank takes the rest of the file", path, end)
            for at in range(end + len(blank), len(log), 2**20):
                _need(not log[at : at + 2**20].strip(b"\0"), "only zeros follow", path, at)
    _every_record_has_its_entry(starts, queues)
    stamps = struct.unpack_from(">qq", (store / "checkpoint").read_bytes())
    _need(max(stamps) <= clock, "the checkpoint is not ahead of the log", *stamps, clock)
    _need((store / "checkpoint").stat().st_size == 4096, "a checkpoint takes a page")
    topics = json.loads((store / "config" / "topics.json").read_text())["topicConfigTable"]
    for name in queues:
        topic, queue = name.split("/")
        _need(int(queue) < topics[topic]["writeQueueNums"], "the topic has such a queue", name)
    _need(not (store / "abort").exists(), "the stop was clean")
    return Verified(len(starts), read, len(paths), used)


def _follow(log: mmap.mmap, base: int, starts: array[int], clock: int) -> tuple[int, int]:
    """Where the records of a file end, and the store timestamp of the last; `starts` gets all of them."""
    at = 0
    while at + 88 <= len(log):
        size, magic, stored = struct.unpack_from(">II48xq", log, at)
        if magic != 0xDAA320A7:
            break
        _need(at + size + 8 <= len(log), "there is room for a blank behind a record", base, at)
        _need(stored >= clock, "store timestamps do not step back", base, at)
        starts.append(base + at)
        at, clock = at + size, stored
    return at, clock


def _read_in_full(log: mmap.mmap, start: int, base: int, queues: dict[str, Entries]) -> None:
    """Sizes, checksum, position and properties agree, and the record's entry names it."""
    size, _, crc, queue, _, number, position = struct.unpack_from(">IIIIIqq", log, start - base)
    record = log[start - base : start - base + size]
    (length,) = struct.unpack_from(">I", record, 84)
    body, rest = record[88 : 88 + length], record[88 + length :]
    topic, rest = rest[1 : 1 + rest[0]].decode(), rest[1 + rest[0] :]
    (length,) = struct.unpack_from(">H", rest)
    fields = rest[2:].decode().removesuffix("\x02").split("\x02")
    properties = dict(field.split("\x01") for field in fields)
    _need(length == len(rest) - 2, "the lengths add up", start)
    _need(crc == zlib.crc32(body) & 0x7FFFFFFF, "the checksum is the body's", start)
    _need(position == start, "the record knows its position", start, position)
    code = 0
    for letter in properties.get("TAGS", ""):
        code = (31 * code + ord(letter) + 2**31) % 2**32 - 2**31
    entry = queues[f"{topic}/{queue}"][number].tolist()
    _need(entry == (start, size, code), "the entry names its record", start, entry)


def _entries(queue: Path) -> Entries:
    """The entries of a queue that begins at number 0; behind the last there are only zeros."""
    paths = sorted(queue.iterdir())
    sizes = {path.stat().st_size for path in paths}
    _need(len(sizes) == 1, "files of a queue are equally long", queue)
    bases = [int(path.name) for path in paths]
    _need(bases == [k * min(sizes) for k in range(len(paths))], "no file of a queue is missing", queue)
    data = b"".join(path.read_bytes() for path in paths)
    entries = np.frombuffer(data, np.dtype([("position", ">i8"), ("size", ">i4"), ("code", ">i8")]))
    count = int((entries["size"] > 0).sum())
    _need(not data[count * 20 :].strip(b"\0"), "the entries come first, zeros after them", queue)
    _need(len(data) - count * 20 < min(sizes), "the last file has an entry", queue)
    return entries[:count]


def _every_record_has_its_entry(starts: array[int], queues: dict[str, Entries]) -> None:
    for name, entries in queues.items():
        _need(bool((np.diff(entries["position"]) > 0).all()), "entries are in log order", name)
    indexed = np.sort(np.concatenate([entries["position"] for entries in queues.values()]))
    _need(np.array_equal(indexed, np.frombuffer(starts, np.int64)), "every record has one entry")


def _need(condition: bool, sentence: str, *here: object) -> None:  # noqa: FBT001 - as in `assert`
    if not condition:
        raise AssertionError(sentence, *here)


def main() -> None:
    """Make a store, or read one back, or both."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bigstore", description=__doc__)
    parser.add_argument("store", type=Path, metavar="DIR")
    parser.add_argument("--records", type=int, default=0, help="make a store of so many records in DIR")
    parser.add_argument("--file-size", type=int, default=Shape.file_size, help="bytes of a commit-log file")
    parser.add_argument("--topics", type=lambda names: tuple(names.split(",")), default=Shape.topics)
    parser.add_argument("--queues", type=int, default=Shape.queues, help="queues of each topic")
    parser.add_argument("--body", type=int, default=Shape.body, help="mean bytes of a body")
    parser.add_argument("--seed", type=int, default=Shape.seed)
    parser.add_argument("--verify", nargs="?", type=int, const=97, metavar="EVERY", help="read it back")
    chosen = vars(parser.parse_args())
    store, every = chosen.pop("store"), chosen.pop("verify")
    if chosen["records"]:
        began = time.perf_counter()
        make(store, Shape(**chosen))
        print(f"{store}: {chosen['records']:,} records made in {time.perf_counter() - began:.1f} s")
    if every:
        began = time.perf_counter()
        print(f"{verify(store, every)}, verified in {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
