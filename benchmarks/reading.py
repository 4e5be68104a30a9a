"""What the rows about reading measure: a queue of a store, and the same rows in what people would use instead.

A row has body, tag, number, position and time. Whoever reads many gets a thousand a call, in order; whoever reads one
by its number goes to and fro. Everything lies in the page cache. Each run is a process of its own, and answers with a
line of JSON.
"""

from __future__ import annotations

import gc
import os
import sqlite3
import struct
import tempfile
import time
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.implementation import BODY
from benchmarks.rows import answer, lacking
from gapless.impl.records.record import Messages, Record, properties_bytes
from gapless.impl.store.store import Store

A_CALL = 1000
TAG = "paid"
BEGIN = 1_700_000_000_000  # ms

Row = tuple[bytes, str, int, int, int]
Many = Callable[[int], Sized]
"""From a number on, the next thousand rows, or columns of them."""
One = Callable[[int], Any]

_PACKED = struct.Struct(">qqH")  # position, time, bytes of the tag; then the tag and the body
_FIXED = struct.Struct(f">{BODY}s4sqqq")
_KEY = struct.Struct(">HIQ")  # topic, queue, number


def queue(how: str, folder: str, count: int) -> None:
    """A queue from its begin to its end, a thousand rows a call."""
    with tempfile.TemporaryDirectory(dir=folder) as made, MANY[how](Path(made), count) as read:
        read(0)
        gc.collect()  # or the first full collection, of all that was imported, would fall on the run that makes objects
        began, found = time.perf_counter(), 0
        for number in range(0, count, A_CALL):
            found += len(read(number))
        answer(time.perf_counter() - began, found)


def one(how: str, folder: str, count: int) -> None:
    """Read as many single rows, in an order that jumps."""
    numbers = np.random.default_rng(1).permutation(count).tolist()
    with tempfile.TemporaryDirectory(dir=folder) as made, ONE[how](Path(made), count) as read:
        read(0)
        gc.collect()
        began = time.perf_counter()
        found = sum(read(number) is not None for number in numbers)
        answer(time.perf_counter() - began, found)


def _rows(count: int) -> Iterator[Row]:
    body = bytes(range(BODY))
    for number in range(count):
        yield body, TAG, number, 310 * number, BEGIN + number // 40


@contextmanager
def _store(folder: Path, count: int) -> Iterator[Store]:
    extra, body = properties_bytes({"TAGS": TAG}), bytes(range(BODY))
    with Store.open(folder / "store") as store:
        for low in range(0, count, 10_000):
            some = min(10_000, count - low)
            store.append_batch(
                Messages(
                    [("orders", 0)],
                    np.zeros(some, np.int32),
                    np.frombuffer(body * some, np.uint8),
                    np.arange(some + 1) * BODY,
                    np.frombuffer(extra * some, np.uint8),
                    np.arange(some + 1) * len(extra),
                )
            )
        store.wait_for("orders", 0, count - 1, timeout=60)
        store.flush()
        yield store


@contextmanager
def _records(folder: Path, count: int) -> Iterator[Many]:
    with _store(folder, count) as store:
        yield lambda number: store.read("orders", 0, number, A_CALL)


@contextmanager
def _objects(_folder: Path, _count: int) -> Iterator[Many]:
    """The limit that Python sets: records are made of fields that are there, and nothing is read."""
    fields = zip(*(row for row in _rows(A_CALL)), strict=True)
    bodies, tags, numbers, positions, times = (list(field) for field in fields)
    rests = [bytes(100)] * A_CALL
    make = partial(tuple.__new__, Record)
    yield lambda _number: list(map(make, zip(numbers, positions, bodies, times, rests, tags, strict=True)))


@contextmanager
def _columns(folder: Path, count: int) -> Iterator[Many]:
    with _store(folder, count) as store:
        yield lambda number: store.read_batch("orders", 0, number, A_CALL)


@contextmanager
def _get(folder: Path, count: int) -> Iterator[One]:
    with _store(folder, count) as store:
        yield lambda number: store.get("orders", 0, number)


@contextmanager
def _fetchall(folder: Path, count: int) -> Iterator[Many]:
    with _sqlite(folder, count) as connection:
        wanted = f"{_SELECT} and number >= ? and number < ? order by number"
        yield lambda number: connection.execute(wanted, ("orders", 0, number, number + A_CALL)).fetchall()


@contextmanager
def _fetchone(folder: Path, count: int) -> Iterator[One]:
    with _sqlite(folder, count) as connection:
        yield lambda number: connection.execute(f"{_SELECT} and number = ?", ("orders", 0, number)).fetchone()


_SELECT = "select body, tag, number, position, time from messages where topic = ? and queue = ?"


@contextmanager
def _sqlite(folder: Path, count: int) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(folder / "messages.db")
    connection.execute("pragma journal_mode = wal")
    connection.execute(
        "create table messages (topic text, queue integer, number integer, body blob, tag text, position integer, "
        "time integer, primary key (topic, queue, number)) without rowid"
    )
    with connection:
        connection.executemany("insert into messages values ('orders', 0, ?3, ?1, ?2, ?4, ?5)", _rows(count))
    yield connection
    connection.close()


@contextmanager
def _lmdb_rows(folder: Path, count: int) -> Iterator[Any]:
    """An environment that has all rows, packed."""
    import lmdb  # noqa: PLC0415 - a dependency of development alone

    with lmdb.open(str(folder / "lmdb"), map_size=1 << 32) as environment:
        with environment.begin(write=True) as writing:
            for row in _rows(count):
                writing.put(_KEY.pack(1, 0, row[2]), _packed(row))
        yield environment


@contextmanager
def _lmdb_values(folder: Path, count: int) -> Iterator[Callable[[int], list[bytes]]]:
    """The packed rows, as values, by a cursor: a transaction for a thousand."""
    with _lmdb_rows(folder, count) as environment:

        def get(number: int) -> list[bytes]:
            with environment.begin() as reading, reading.cursor() as cursor:
                cursor.set_range(_KEY.pack(1, 0, number))
                return list(islice(cursor.iternext(keys=False), A_CALL))

        yield get


@contextmanager
def _lmdb_many(folder: Path, count: int) -> Iterator[Many]:
    """The same, each taken apart."""
    with _lmdb_values(folder, count) as get:
        yield lambda number: [_unpacked(value, at) for at, value in enumerate(get(number), number)]


@contextmanager
def _lmdb_value(folder: Path, count: int) -> Iterator[One]:
    """The packed row, as a value: a transaction for each."""
    with _lmdb_rows(folder, count) as environment:

        def get(number: int) -> bytes | None:
            with environment.begin() as reading:
                found: bytes | None = reading.get(_KEY.pack(1, 0, number))
            return found

        yield get


@contextmanager
def _lmdb(folder: Path, count: int) -> Iterator[One]:
    """The same, taken apart."""
    with _lmdb_value(folder, count) as get:
        yield lambda number: _unpacked(get(number), number)


@contextmanager
def _rocksdb(folder: Path, count: int) -> Iterator[One]:
    """The packed row, taken apart."""
    from rocksdict import Options, Rdict, WriteBatch  # noqa: PLC0415 - a dependency of development alone

    database = Rdict(str(folder / "rocksdb"), Options(raw_mode=True))
    batch = WriteBatch(raw_mode=True)
    for row in _rows(count):
        batch.put(_KEY.pack(1, 0, row[2]), _packed(row))
    database.write(batch)
    database.flush()
    yield lambda number: _unpacked(database.get(_KEY.pack(1, 0, number)), number)
    database.close()


def _packed(row: Row) -> bytes:
    body, tag, _, position, time_ = row
    return _PACKED.pack(position, time_, len(tag)) + tag.encode() + body


def _unpacked(value: bytes | None, number: int) -> Row | None:
    if value is None:
        return None
    position, time_, length = _PACKED.unpack_from(value)
    end = _PACKED.size + length
    return value[end:], value[_PACKED.size : end].decode(), number, position, time_


@contextmanager
def _plain_many(folder: Path, count: int) -> Iterator[Many]:
    """Rows of a fixed length, one behind the other."""
    with _plain(folder, count) as file:
        size = _FIXED.size
        yield lambda number: list(_FIXED.iter_unpack(os.pread(file, A_CALL * size, number * size)))


@contextmanager
def _plain_one(folder: Path, count: int) -> Iterator[One]:
    with _plain(folder, count) as file:
        yield lambda number: _FIXED.unpack(os.pread(file, _FIXED.size, number * _FIXED.size))


@contextmanager
def _plain(folder: Path, count: int) -> Iterator[int]:
    path = folder / "rows"
    with path.open("wb") as written:
        written.writelines(_FIXED.pack(row[0], row[1].encode(), *row[2:]) for row in _rows(count))
    file = os.open(path, os.O_RDONLY)
    yield file
    os.close(file)


MANY = {
    "SQLite, fetchall": _fetchall,
    "a plain file": _plain_many,
    "LMDB, the packed rows": _lmdb_values,
    "LMDB": _lmdb_many,
    "objects alone": _objects,
    "read": _records,
    "read_batch": _columns,
}
ONE = {
    "LMDB, the packed row": _lmdb_value,
    "LMDB": _lmdb,
    "RocksDB": _rocksdb,
    "SQLite": _fetchone,
    "a plain file": _plain_one,
    "get": _get,
}
MISSING = lacking((*MANY, *ONE))
"""Names of the ways that lack their package here: `pip install lmdb rocksdict` brings them."""
