"""Time and memory of a check of a data directory with many transactions.

    python -m benchmarks.kafka_transactions [--transactions 10000000] [--dir DIR]

Each transaction writes one batch to one of four partitions, is decided, marked, and complete: three rows in one of
eight partitions of the coordinator's table, of a thousand transactional ids. The directory is made once.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import struct
import tempfile
import time
from pathlib import Path

import numpy as np

from gapless import check
from gapless.native import native
from gapless.traces.sources.kafka.log.checksums import crc32c
from gapless.traces.sources.kafka.log.tables import Bytes, Ints

IDS, PARTITIONS, TABLES, BLOCK = 1000, 4, 8, 1 << 18
SEGMENT = 64 << 20
"""Bytes of a segment: brokers roll those of the table at 100 MiB, and others have indexes, by which they are cut."""
TRANSACTIONAL, CONTROL = 16, 32


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transactions", type=int, default=10_000_000)
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir(), "gapless-benchmarks"))
    options = parser.parse_args()
    room = directory(options.dir / "kafka-transactions" / str(options.transactions), options.transactions)
    begin = time.perf_counter()
    report = check(room, jobs=2)
    spent = time.perf_counter() - begin
    memory = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    complete = report.coverage.get("kafka_transaction.complete", 0)
    print(f"{complete:,} transactions, {report.verdict}, in {spent:.1f} s, {memory >> 10:,} MiB in the largest process")


def directory(room: Path, count: int) -> Path:
    """A data directory with so many transactions."""
    if (room / "made").exists():
        return room
    shutil.rmtree(room, ignore_errors=True)
    room.mkdir(parents=True)
    (room / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=bench\n", encoding="utf-8")
    numbers = np.arange(count)
    for partition in range(PARTITIONS):
        mine = numbers[numbers // IDS % PARTITIONS == partition]
        _partition(room / f"orders-{partition}", mine)
    for table in range(TABLES):
        _table(room / f"__transaction_state-{table}", numbers[numbers % IDS % TABLES == table])
    (room / "made").touch()
    return room


def _batch(attributes: int, body: bytes, sequence: int) -> bytes:
    covered = struct.pack(">hiqqqhii", attributes, 0, 0, 0, 0, 0, sequence, 1) + body
    return struct.pack(">qiibI", 0, len(covered) + 9, 0, 2, 0) + covered


def _record(key: bytes, value: bytes) -> bytes:
    inner = b"\0\0\0" + _varint(len(key)) + key + _varint(len(value)) + value + b"\0"
    return _varint(len(inner)) + inner


def _varint(number: int) -> bytes:
    bits, found = number << 1, b""
    while bits >= 128:
        found, bits = found + bytes([bits & 127 | 128]), bits >> 7
    return found + bytes([bits])


def _partition(folder: Path, numbers: Ints) -> None:
    """Each transaction is a batch of data and a marker."""
    data = _batch(TRANSACTIONAL, _record(b"", b"v" * 40), 0)
    marker = _batch(TRANSACTIONAL | CONTROL, _record(b"\0\0\0\1", struct.pack(">hi", 0, 0)), -1)
    pair = np.frombuffer(data + marker, np.uint8)
    ids, times = numbers % IDS, numbers
    sequences = np.empty(len(numbers), np.int64)
    order = np.argsort(ids, kind="stable")
    begins = np.flatnonzero(np.diff(ids[order], prepend=-1))
    ranks = np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order))))
    sequences[order] = ranks
    columns = [
        (0, np.arange(len(numbers)) * 2, 8), (43, ids, 8), (27, times * 4, 8), (35, times * 4, 8), (53, sequences, 4),
        (len(data), np.arange(len(numbers)) * 2 + 1, 8), (len(data) + 43, ids, 8), (len(data) + 27, times * 4 + 2, 8),
        (len(data) + 35, times * 4 + 2, 8),
    ]  # fmt: skip
    _write(folder, pair, [0, len(data)], columns, 2)


def _table(folder: Path, numbers: Ints) -> None:
    """Each transaction has three rows: ongoing, decided, complete."""
    rows, at = b"", 0
    places, columns = list[int](), list[tuple[int, Ints, int]]()
    key = struct.pack(">hh4s", 0, 4, b"0000")
    for state in (1, 2, 4):
        named = struct.pack(">ih6sii", 1, 6, b"orders", 1, 0) if state != 4 else struct.pack(">i", -1)
        value = struct.pack(">hqhib", 0, 0, 0, 60_000, state) + named + struct.pack(">qq", 0, 0)
        batch = _batch(0, _record(key, value), -1)
        batch = batch[:43] + struct.pack(">qh", -1, -1) + batch[53:]
        key_at = batch.index(key) + 4
        value_at = batch.index(value)
        moment = {1: 0, 2: 1, 4: 3}[state]
        columns += [
            (at, np.arange(len(numbers)) * 3 + len(places), 8), (at + 27, numbers * 4 + moment, 8),
            (at + 35, numbers * 4 + moment, 8), (at + value_at + 2, numbers % IDS, 8),
            (at + key_at, _digits(numbers % IDS), 4),
        ]  # fmt: skip
        if state != 4:
            columns.append((at + value_at + 17 + 4 + 2 + 6 + 4, numbers // IDS % PARTITIONS, 4))
        places.append(at)
        rows, at = rows + batch, at + len(batch)
    _write(folder, np.frombuffer(rows, np.uint8), places, columns, 3)


def _digits(numbers: Ints) -> Ints:
    """Four decimal digits, as a number of four bytes."""
    digits = [48 + numbers // 10**power % 10 for power in (3, 2, 1, 0)]
    found: Ints = np.sum([digit << 8 * (3 - place) for place, digit in enumerate(digits)], axis=0)
    return found


def _write(folder: Path, template: Bytes, places: list[int], columns: list[tuple[int, Ints, int]], each: int) -> None:
    """Write the template once for each row, with numbers in its bytes, in segments."""
    folder.mkdir()
    count = len(columns[0][1])
    rows = max(1, SEGMENT // len(template))
    for begin in range(0, count, rows):
        with (folder / f"{begin * each:020}.log").open("wb") as file:
            for low in range(begin, min(begin + rows, count), BLOCK):
                high = min(low + BLOCK, begin + rows, count)
                block = np.tile(template, (high - low, 1))
                for at, column, width in columns:
                    big = column[low:high].astype(f">i{width}").view(np.uint8).reshape(-1, width)
                    block[:, at : at + width] = big
                ends = [*places[1:], len(template)]
                flat = block.reshape(-1)
                _seal(flat, len(template), np.array(places), np.array(ends))
                file.write(flat.tobytes())


@native(lambda data, *_: len(data) >> 6)
def _seal(data: Bytes, width: int, places: Ints, ends: Ints) -> None:
    """Write the checksum of each batch."""
    row = 0
    while row < len(data):
        for i in range(len(places)):
            found = crc32c(data, row + places[i] + 21, row + ends[i])
            for byte in range(4):
                data[row + places[i] + 17 + byte] = (found >> (8 * (3 - byte))) & 255
        row += width


if __name__ == "__main__":
    main()
