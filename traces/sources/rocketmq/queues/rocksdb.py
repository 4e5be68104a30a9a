"""Copies consume queues out of RocksDB into a file that is read like plain consume queues.

A broker with `storeType=defaultRocksDB`, or one that writes queues twice, keeps its entries as keys of a database,
with a table of the ends of each queue (docs/rocketmq.md#rocksdb-queues). The first 20 bytes of a value are those of a
plain entry, so slots are copied out, and the modules above this one know no database.

The store is only read. The library writes a file into the folder of any database that it opens, so it opens one in a
folder of its own: links to the tables, which never change, and copies of the small files that name the valid tables.
It takes no lock. A running broker removes tables that it has merged; if one is gone, the links are made a second time.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedWriter
from itertools import islice, takewhile
from pathlib import Path
from typing import TypeVar, cast

import numpy as np
from rocksdict import AccessType, Options, Rdict, RdictIter, ReadOptions

from gapless.traces.files.scratch_folders import FolderGuard
from gapless.traces.problems import Unreadable, shown
from gapless.traces.processes.trial import trial
from gapless.traces.sources.rocketmq.queues.queue_database import QueueDatabase, QueueEnd
from gapless.traces.sources.rocketmq.store.files import ENTRY, FARTHEST, Queue, QueueFile, QueueFiles

OFFSETS = "offset"  # the column family of the table
VALUE = 28  # bytes of an entry: those of a plain one, and the store time of its message
NUMBER = 8  # bytes of a number, the end of an entry's key
OTHER_BYTES = 4 + 1 + 1 + 4 + 1  # bytes of an entry's key besides its topic and its number
CHECKPOINT = "CHECKPOINT_TOPIC"  # no topic: up to where the log has been dispatched
CHECKPOINT_KEY = len(CHECKPOINT).to_bytes(4, "big") + b"\1" + CHECKPOINT.encode() + b"\1max\1" + bytes(4)
WINDOW = 1 << 16  # entries that are read at once
MANIFEST = re.compile(r"MANIFEST-\d{1,20}")
AGAIN = "copy the folder again"
REMOVE = f"{AGAIN}, or remove it to check without entries"  # what can be done where a database holds queues
TRIES = 5  # a broker that merges its tables all the time is not waited for
T = TypeVar("T")

RECOVERED = 16  # times the bytes of its logs that a database takes to open
INDEXED = 8  # a part of its tables, at most, is their index
_refused: dict[tuple[str, int, int, int], str] = {}  # lists of tables that must not be opened here, and why: few fail
OPENING = """
from rocksdict import AccessType, Options, Rdict
options = {name: Options(raw_mode=True) for name in Rdict.list_cf(sys.argv[1])}
Rdict(sys.argv[1], Options(raw_mode=True), options, AccessType.read_only(error_if_log_file_exist=False)).close()
"""  # as `_opened`: what a damaged list of tables, or log, can make the library do


def copied(folder: Path) -> QueueDatabase:
    """The queues in `folder`, copied out. Raises Unreadable."""
    room = Path(tempfile.mkdtemp(prefix="gapless-queues-"))
    kept = FolderGuard(room)
    return _tried(folder, room, lambda linked: _copied(folder, linked, room / "entries", kept))


def _tried(folder: Path, room: Path, done: Callable[[Path], T]) -> T:
    """Calls `done` with links to a database in `room`; a second time if a broker removed tables. Raises Unreadable."""
    for left in reversed(range(TRIES)):
        linked = room / "database"
        try:
            _link(folder, linked)
            return done(linked)
        except OSError as error:
            raise _not_copied(folder, room, error, REMOVE) from error
        except Exception as error:
            if type(error) is not Exception:  # the library has no class of its own for what it cannot read
                raise
            gone = any(not table.exists() for table in linked.glob("*.sst"))
            if not gone or not left:
                raise _unreadable(folder, linked, error, REMOVE) from error
        shutil.rmtree(linked)
    raise AssertionError(folder)


def named(folder: Path) -> QueueDatabase:
    """Returns the database in `folder` without entries, with its dispatch position. Raises Unreadable."""
    live = LiveDatabase(folder)
    live.close()
    return QueueDatabase(folder.name, copy="", queues={}, last={}, first={}, dispatched=live.dispatched)


class LiveDatabase:
    """The queues in a database that a broker is writing, as far as they are on disk; read where they are asked for.

    `dispatched`: as of `QueueDatabase`, as of the last time that it was opened.
    """

    def __init__(self, folder: Path) -> None:
        """Raises Unreadable."""
        self.folder = folder
        self.database: Rdict | None = None
        self.seen: tuple[int, ...] = ()
        self.dispatched = 0
        self.renew()

    def renew(self) -> bool:
        """Opens it again if its broker wrote to it; True if it did. Raises Unreadable."""
        seen = self._signs()
        if seen == self.seen and self.database is not None:
            return False
        room = Path(tempfile.mkdtemp(prefix="gapless-queues-"))
        kept = FolderGuard(room)
        database = _tried(self.folder, room, _opened)
        table = database.get_column_family(OFFSETS) if OFFSETS in Rdict.list_cf(str(room / "database")) else None
        found = table.get(CHECKPOINT_KEY) if table is not None else None
        self.close()
        self.database, self.kept, self.seen = database, kept, seen
        self.dispatched = int.from_bytes(found[:8], "big", signed=True) if isinstance(found, bytes) else 0
        return True

    def _signs(self) -> tuple[int, ...]:
        """Returns numbers that change with each flush and each merge."""
        try:
            status = (self.folder / (self.folder / "CURRENT").read_text(errors="replace").strip()).stat()
        except (OSError, ValueError):
            return ()
        return status.st_ino, status.st_size, status.st_mtime_ns

    def read(self, queue: Queue, number: int, into: memoryview) -> None:
        """Fills `into` with the slots of a queue from `number` on; missing ones are left unchanged."""
        assert self.database is not None  # noqa: S101 - `renew` opened it
        topic = os.fsencode(queue[0])
        sized = len(topic).to_bytes(4, "big") + b"\1" + topic
        prefix = sized + b"\1" + queue[1].to_bytes(4, "big", signed=True) + b"\1"
        low, high = number, number + len(into) // ENTRY
        at = self.database.iter()
        at.seek(_key(prefix, max(low, 0)))
        if not at.valid() or at.key() >= _key(prefix, high):
            at.status()
            return
        for begin, slots in _EntriesByKey(self.database, self.folder).stretches(at, at.key(), prefix, high):
            place = (begin - number) * ENTRY
            into[place : place + len(slots)] = slots

    def close(self) -> None:
        """Closes it."""
        if self.database is not None:
            self.database.close()
            self.database = None
            self.kept.remove()


def _unreadable(folder: Path, linked: Path, error: Exception, remedy: str) -> Unreadable:
    reason = shown(str(error).replace(str(linked), folder.name))
    return Unreadable(f"{folder}: the database cannot be read ({reason}); {remedy}")


def _not_copied(folder: Path, room: Path, error: OSError, remedy: str) -> Unreadable:
    """Returns the error for an unreadable file of the database, or a full disk at the copy's folder."""
    at = error.filename if isinstance(error.filename, str) else ""
    if at and Path(at).is_relative_to(folder):
        how = "give read permission, or " if isinstance(error, PermissionError) else ""
        return Unreadable(f"{at}: cannot be read ({error.strerror}); {how}{remedy}")
    return Unreadable(f"{folder}: cannot be copied to {room} ({error.strerror}); TMPDIR says where")


def pairs(folder: Path, linked: Path) -> list[tuple[bytes, bytes]]:
    """Keys and values of a small database that holds no queues, read from links in `linked`. Raises Unreadable."""
    with _tables(folder, linked) as tables:
        return list(_items(tables["default"], b""))


def stretches(folder: Path, linked: Path, family: str, count: int = WINDOW) -> Iterator[list[tuple[bytes, bytes]]]:
    """Yields keys and values of one column family in blocks, read as by `pairs`. Raises Unreadable."""
    with _tables(folder, linked) as tables:
        if family in tables:
            yield from _in_stretches(tables[family], count)


@contextmanager
def _tables(folder: Path, linked: Path) -> Iterator[dict[str, Rdict]]:
    """The column families of a database, read from links in `linked`, made unless they are there. Raises Unreadable."""
    try:
        if not linked.is_dir():
            _link(folder, linked)
        there = Rdict.list_cf(str(linked))
        database = _opened(linked)
        try:
            yield {name: database if name == "default" else database.get_column_family(name) for name in there}
        finally:
            database.close()
    except OSError as error:
        raise _not_copied(folder, linked, error, AGAIN) from error
    except Exception as error:
        if type(error) is not Exception:
            raise
        raise _unreadable(folder, linked, error, AGAIN) from error


def _in_stretches(table: Rdict, count: int) -> Iterator[list[tuple[bytes, bytes]]]:
    """Yields a table in blocks. If the library's own `items` ends early, ours raises the reason."""
    end = table.iter()
    end.seek_to_last()
    last = end.key() if end.valid() else None
    end.status()
    items, found = cast("Iterator[tuple[bytes, bytes]]", table.items()), None
    while some := list(islice(items, count)):
        found = some[-1][0]
        yield some
    if found != last:
        yield [item for item in _items(table, found or b"") if item[0] != found]


def value_now(folder: Path, queue: Queue, number: int) -> bytes:
    """The slot of an entry as the database has it now; no bytes where it has none. Raises Unreadable."""
    now = copied(folder)
    for file in now.queues.get(queue, ()):
        if file.base <= number * ENTRY < file.base + file.length:
            with Path(now.copy).open("rb") as slots:
                return os.pread(slots.fileno(), ENTRY, file.at + number * ENTRY - file.base)
    return b""


def _link(folder: Path, linked: Path) -> None:
    """Links the tables, and copies the files that list the valid ones, as of one moment. Raises Unreadable.

    Some damaged lists make the library loop for ever: it opens the database in another process first.
    """
    linked.mkdir()
    current = (folder / "CURRENT").read_bytes()
    (linked / "CURRENT").write_bytes(current)
    manifest = current.decode(errors="replace").strip()
    if not MANIFEST.fullmatch(manifest) or not (folder / manifest).is_file():
        raise Unreadable(f"{folder}/CURRENT: names {shown(manifest[:80])!r}, which is not there; {AGAIN}")
    shutil.copyfile(folder / manifest, linked / manifest)
    listed = (folder / manifest).stat()
    size = listed.st_size
    tables = 0
    for path in folder.iterdir():
        if path.suffix == ".log":
            shutil.copyfile(path, linked / path.name)
            size += (linked / path.name).stat().st_size
        elif path.suffix in (".sst", ".blob"):
            (linked / path.name).symlink_to(path.absolute())
            tables += path.stat().st_size
    known = (str(folder / manifest), listed.st_ino, listed.st_size, listed.st_mtime_ns)
    why = _refused.get(known) or trial(OPENING, str(linked), size=size, memory=RECOVERED * size + tables // INDEXED)
    if why:
        _refused[known] = why
        raise Unreadable(f"{folder / manifest}: the database cannot be opened ({why}); {AGAIN}")


def _opened(linked: Path) -> Rdict:
    """A database, to read only."""
    options = {name: Options(raw_mode=True) for name in Rdict.list_cf(str(linked))}
    return Rdict(str(linked), Options(raw_mode=True), options, AccessType.read_only(error_if_log_file_exist=False))


def _copied(folder: Path, linked: Path, into: Path, kept: FolderGuard) -> QueueDatabase:
    database = _opened(linked)
    try:
        with into.open("wb") as out:
            queues = _EntryCopier(database, out, folder).queues()
        with_table = OFFSETS in Rdict.list_cf(str(linked))
        ends = _ends(database.get_column_family(OFFSETS), folder) if with_table else {}
    finally:
        database.close()
    dispatched = ends.pop((CHECKPOINT, 0, "max"), QueueEnd(0, 0)).position
    return QueueDatabase(
        folder=folder.name,
        copy=str(into),
        queues=queues,
        last={(topic, queue): end for (topic, queue, which), end in ends.items() if which == "max"},
        first={(topic, queue): end for (topic, queue, which), end in ends.items() if which == "min"},
        dispatched=dispatched,
        kept=kept,
    )


def _ends(table: Rdict, folder: Path) -> dict[tuple[str, int, str], QueueEnd]:
    """The table of ends, and among them up to where the log has been dispatched, which is of no queue."""
    ends = {}
    for key, value in _items(table, b""):
        size = int.from_bytes(key[:4], "big")
        which = key[6 + size : 9 + size]
        if len(key) != size + 14 or which not in (b"max", b"min") or len(value) not in (8, 16):
            raise Unreadable(f"{folder}: the table of offsets holds {key.hex()}: {value.hex()}, which no broker writes")
        place = os.fsdecode(key[5 : 5 + size]), int.from_bytes(key[-4:], "big", signed=True), which.decode()
        ends[place] = QueueEnd(*(int.from_bytes(value[at : at + 8], "big", signed=True) for at in (0, len(value) - 8)))
    return ends


class _EntriesByKey:
    """Reads entries in the order of their keys.

    A window of numbers is read by values alone, which takes a fifth of the time that keys and values take: if there are
    as many as the numbers up to the window's last key, each is where it belongs. Otherwise keys are read too.
    """

    def __init__(self, database: Rdict, folder: Path) -> None:
        self.database = database
        self.folder = folder

    def stretches(self, at: RdictIter, key: bytes, prefix: bytes, stop: int) -> Iterator[tuple[int, bytes]]:
        """Yields consecutive slots of a queue, from an existing key to below number `stop`.

        With the first number of each stretch. `at` is moved to the last of them. Raises Unreadable.
        """
        number, end = self._number(key), _key(prefix, stop)
        below = ReadOptions()  # kept until all is read: the library frees the bound with it
        below.set_iterate_upper_bound(end)
        values = list(self.database.values(from_key=key, read_opt=below))
        at.seek_for_prev(_key(prefix, stop - 1))
        whole = at.key() == _key(prefix, number + len(values) - 1)
        for begin, some in [(number, values)] if whole else self._between_gaps(key, end):
            yield begin, self._slots(begin, some, prefix)

    def _slots(self, number: int, values: list[bytes], prefix: bytes) -> bytes:
        """Returns entries as slots of a plain queue. Raises Unreadable for a length that no broker writes."""
        data = b"".join(values)
        for at, value in enumerate(values) if len(data) != VALUE * len(values) else ():
            if len(value) != VALUE:
                raise Unreadable(
                    f"{self.folder}: entry {number + at} of {_shown(prefix)} has {len(value)} bytes, expected {VALUE}; "
                    f"{REMOVE}"
                )
        return np.frombuffer(data, np.uint8).reshape(-1, VALUE)[:, :ENTRY].tobytes()

    def _between_gaps(self, key: bytes, end: bytes) -> Iterator[tuple[int, list[bytes]]]:
        """Yields consecutive entries from one key on, with the first number of each stretch."""
        items = list(takewhile(lambda item: item[0] < end, _items(self.database, key)))
        numbers = np.array([self._number(one) for one, _ in items], np.int64)
        starts = np.flatnonzero(np.diff(numbers, prepend=-2) != 1).tolist()
        for low, high in zip(starts, [*starts[1:], len(items)], strict=True):
            yield int(numbers[low]), [value for _, value in items[low:high]]

    def _number(self, key: bytes) -> int:
        number = int.from_bytes(key[-NUMBER:], "big", signed=True)
        if not 0 <= number < FARTHEST // ENTRY:
            raise Unreadable(f"{self.folder}: it holds {key.hex()}, the key of no entry")
        return number


class _EntryCopier(_EntriesByKey):
    """Copies the entries of a database, queue by queue, numbers rising."""

    def __init__(self, database: Rdict, out: BufferedWriter, folder: Path) -> None:
        super().__init__(database, folder)
        self.out = out
        self.written = 0

    def queues(self) -> QueueFiles:
        """Copies all queues, and returns the place of each."""
        found: dict[Queue, list[QueueFile]] = {}
        at = self.database.iter()
        at.seek_to_first()
        while at.valid():
            key = at.key()
            prefix, number = key[:-NUMBER], self._number(key)
            files = found.setdefault(self._queue(prefix, key), [])
            for begin, slots in self.stretches(at, key, prefix, number + WINDOW):
                self._put(files, begin, slots)
            at.seek(_key(prefix, number + WINDOW))
        at.status()
        return {queue: tuple(files) for queue, files in found.items()}

    def _put(self, files: list[QueueFile], number: int, slots: bytes) -> None:
        self.out.write(slots)
        length = len(slots)
        if files and files[-1].base + files[-1].length == number * ENTRY:
            begun = files.pop()
            files.append(QueueFile(begun.base, begun.length + length, begun.at))
        else:
            files.append(QueueFile(number * ENTRY, length, self.written))
        self.written += length

    def _queue(self, prefix: bytes, key: bytes) -> Queue:
        size = int.from_bytes(prefix[:4], "big")
        if len(prefix) != size + OTHER_BYTES:
            raise Unreadable(f"{self.folder}: it holds {key.hex()}, the key of no entry")
        return os.fsdecode(prefix[5 : 5 + size]), int.from_bytes(prefix[-5:-1], "big", signed=True)


def _items(database: Rdict, key: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yields keys and values from one on. The library's own `items` ends silently in a damaged table."""
    at = database.iter()
    at.seek(key)
    while at.valid():
        yield at.key(), at.value()
        at.next()
    at.status()


def _key(prefix: bytes, number: int) -> bytes:
    return prefix + number.to_bytes(NUMBER, "big")


def _shown(prefix: bytes) -> str:
    return shown(f"{os.fsdecode(prefix[5:-6])}/{int.from_bytes(prefix[-5:-1], 'big')}")
