"""The cost of messages on disk, one by one, here and with what people would use instead.

A message has 200 bytes. Each run is a process of its own, writes into a folder that goes, on the disk of the large
stores, and answers with a line of JSON. What is timed begins behind the first `BEFORE` of them.

A durable transaction of ours waits for the disk twice, for its half and for its end: work that is done in between
survives a crash with a half to ask about. One of SQLite waits once and promises less; `SQLite, half and final` does
what ours does: a row that says so is committed first, and replaced by the message.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

from benchmarks.implementation import BODY
from benchmarks.rows import answer, lacking
from gapless.impl.store.store import Store
from gapless.store import Settings

Send = Callable[[], object]
"""Sends one message. Each thread has its own."""
Sender = Callable[[], Send]

BEFORE = 20
PAUSE = 0.0005  # seconds between two messages, of those that are waited for until they are visible
MESSAGE = bytes(range(BODY))
_KEY = struct.Struct(">HIQ")  # topic, queue, number


# -- rows ------------------------------------------------------------------------------------------------------------


def durable(how: str, folder: str, count: int) -> None:
    """Messages one by one, each on disk before the next."""
    _timed(DURABLE[how], folder, count, 1)


def lazy(how: str, folder: str, count: int) -> None:
    """Messages one by one, none of which waits for the disk."""
    _timed(LAZY[how], folder, count, 1)


def decided(how: str, folder: str, count: int, threads: int) -> None:
    """Transactions of one message each, of so many threads, each on disk before the next of its thread."""
    _timed(DECIDED[how], folder, count, threads)


def visible(how: str, folder: str, count: int) -> None:
    """The time until consumers see a message, p99: from its append, where that is synchronous from its return."""
    settings = Settings(synchronous=how == "synchronous")
    with tempfile.TemporaryDirectory(dir=folder) as made, Store.open(Path(made, "store"), settings) as store:
        took = []
        for _ in range(BEFORE + count):
            time.sleep(PAUSE)
            began = time.perf_counter()
            number = store.append("orders", 0, MESSAGE, tag="paid").number
            if settings.synchronous:
                began = time.perf_counter()
            store.wait_for("orders", 0, number)
            took.append(time.perf_counter() - began)
        answer(sorted(took[BEFORE:])[count * 99 // 100], count)


def _timed(of: Callable[[Path], Any], folder: str, count: int, threads: int) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as made, of(Path(made)) as sender:
        each, ready = count // threads, Barrier(threads + 1)

        def send_all() -> None:
            send = sender()
            for _ in range(BEFORE):
                send()
            ready.wait()
            for _ in range(each):
                send()
            ready.wait()

        if threads == 1:  # as a program does it that has no threads
            send = sender()
            for _ in range(BEFORE):
                send()
            began = time.perf_counter()
            for _ in range(each):
                send()
        else:
            for _ in range(threads):
                Thread(target=send_all, daemon=True).start()
            ready.wait()
            began = time.perf_counter()
            ready.wait()
        answer(time.perf_counter() - began, each * threads)


# -- ours ------------------------------------------------------------------------------------------------------------


@contextmanager
def _store(folder: Path, *, synchronous: bool) -> Iterator[Sender]:
    with Store.open(folder / "store", Settings(synchronous=synchronous)) as store:
        yield lambda: lambda: store.append("orders", 0, MESSAGE, tag="paid")


@contextmanager
def _transactions(folder: Path, *, wait: bool) -> Iterator[Sender]:
    with (
        Store.open(folder / "store", Settings(synchronous=True)) as store,
        store.transactions("producers") as tx,
    ):
        yield lambda: lambda: tx.begin("orders", 0, MESSAGE, tag="paid", wait=wait).commit()


# -- others ----------------------------------------------------------------------------------------------------------


@contextmanager
def _plain(folder: Path, *, synchronous: bool) -> Iterator[Sender]:
    """A file that grows."""
    file = os.open(folder / "messages", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def send() -> None:
        os.write(file, MESSAGE)
        if synchronous:
            os.fdatasync(file)

    yield lambda: send
    os.close(file)


@contextmanager
def _sqlite(folder: Path, *, synchronous: str, halves: bool = False) -> Iterator[Sender]:
    """A transaction for each, in WAL mode; each thread has a connection."""
    path, open_ = folder / "messages.db", ExitStack()

    def connect() -> sqlite3.Connection:
        made = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
        open_.callback(made.close)
        made.execute("pragma journal_mode = wal")
        made.execute(f"pragma synchronous = {synchronous}")
        return made

    connect().execute("create table messages (number integer primary key, body blob, tag text)")
    connect().execute("create table halves (number integer primary key, body blob, tag text)")

    def sender() -> Send:
        connection = connect()

        def insert(statement: str = "insert into messages (body, tag) values (?, 'paid')") -> int | None:
            return connection.execute(statement, (MESSAGE,)).lastrowid

        def send() -> None:
            connection.execute("begin immediate")
            insert()
            connection.execute("commit")

        def send_twice() -> None:
            connection.execute("begin immediate")
            half = insert("insert into halves (body, tag) values (?, 'paid')")
            connection.execute("commit")
            connection.execute("begin immediate")
            insert()
            connection.execute("delete from halves where number = ?", (half,))
            connection.execute("commit")

        return send_twice if halves else send

    with open_:
        yield sender


@contextmanager
def _lmdb(folder: Path, *, synchronous: bool) -> Iterator[Sender]:
    """A transaction for each."""
    import lmdb  # noqa: PLC0415 - a dependency of development alone

    with lmdb.open(str(folder / "lmdb"), map_size=1 << 32, sync=synchronous) as environment:

        def send(number: list[int] = [0]) -> None:  # noqa: B006 - one thread has it
            number[0] += 1
            with environment.begin(write=True) as writing:
                writing.put(_KEY.pack(1, 0, number[0]), MESSAGE)

        yield lambda: send


@contextmanager
def _rocksdb(folder: Path, *, synchronous: bool) -> Iterator[Sender]:
    """With its log ahead of it, as it is by default."""
    from rocksdict import Options, Rdict, WriteOptions  # noqa: PLC0415 - a dependency of development alone

    database, how = Rdict(str(folder / "rocksdb"), Options(raw_mode=True)), WriteOptions()
    how.sync = synchronous

    def send(number: list[int] = [0]) -> None:  # noqa: B006 - as above
        number[0] += 1
        database.put(_KEY.pack(1, 0, number[0]), MESSAGE, write_opt=how)

    yield lambda: send
    database.close()


DURABLE: dict[str, Callable[[Path], Any]] = {
    "a plain file, fdatasync": lambda folder: _plain(folder, synchronous=True),
    "SQLite FULL": lambda folder: _sqlite(folder, synchronous="full"),
    "LMDB": lambda folder: _lmdb(folder, synchronous=True),
    "RocksDB": lambda folder: _rocksdb(folder, synchronous=True),
    "append": lambda folder: _store(folder, synchronous=True),
}
LAZY: dict[str, Callable[[Path], Any]] = {
    "a plain file": lambda folder: _plain(folder, synchronous=False),
    "RocksDB": lambda folder: _rocksdb(folder, synchronous=False),
    "SQLite OFF": lambda folder: _sqlite(folder, synchronous="off"),
    "LMDB, no sync": lambda folder: _lmdb(folder, synchronous=False),
    "append": lambda folder: _store(folder, synchronous=False),
}
DECIDED: dict[str, Callable[[Path], Any]] = {
    "SQLite FULL": lambda folder: _sqlite(folder, synchronous="full"),
    "SQLite FULL, half and final": lambda folder: _sqlite(folder, synchronous="full", halves=True),
    "begin and commit": lambda folder: _transactions(folder, wait=True),
    "begin(wait=False) and commit": lambda folder: _transactions(folder, wait=False),
}
VISIBLE = ("asynchronous", "synchronous")
MISSING = lacking((*DURABLE, *LAZY))
"""Names of the ways that lack their package here: `pip install lmdb rocksdict` brings them."""
