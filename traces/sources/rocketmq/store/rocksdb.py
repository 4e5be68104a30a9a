"""Copies consume queues out of RocksDB, once, into a file that is read like those of plain consume queues.

A broker with `storeType=defaultRocksDB`, or one that writes queues twice, keeps its entries as keys of a database, and
beside them a table of where each queue begins and ends (docs/rocketmq.md#rocksdb-queues). The first 20 bytes of a value
are those of a plain entry, so what is copied out are slots, and everything behind this module knows no database.

The store is only read. The library, which writes a file wherever it opens a database, opens one in a folder of its own:
links to the tables, which never change, and copies of the small files that say which of them count. It takes no lock. A
running broker removes tables that it has merged; where one is gone, the database is looked at once more.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from io import BufferedWriter
from itertools import islice, takewhile
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rocksdict import AccessType, Options, Rdict, ReadOptions

from gapless.traces.problems import Unreadable, shown
from gapless.traces.sources.rocketmq.store.files import ENTRY, FARTHEST, Queue, QueueFile, QueueFiles
from gapless.traces.sources.rocketmq.store.queue_database import FolderKept, QueueDatabase, QueueEnd

OFFSETS = "offset"  # the column family of the table
VALUE = 28  # bytes of an entry: those of a plain one, and the store time of its message
NUMBER = 8  # bytes of a number, the end of an entry's key
BESIDE_TOPIC = 4 + 1 + 1 + 4 + 1  # bytes of an entry's key besides its topic and its number
CHECKPOINT = "CHECKPOINT_TOPIC"  # no topic: up to where the log has been dispatched
WINDOW = 1 << 16  # entries that are read at once
AGAIN = "copy the folder again"
REMOVE = f"{AGAIN}, or remove it to check without entries"  # what can be done where a database holds queues
TRIES = 5  # a broker that merges its tables all the time is not waited for


def copied(folder: Path) -> QueueDatabase:
    """The queues in `folder`, copied out. Raises Unreadable."""
    room = Path(tempfile.mkdtemp(prefix="gapless-queues-"))
    kept = FolderKept(room)
    for left in reversed(range(TRIES)):
        linked = room / "database"
        try:
            _link(folder, linked)
            return _copied(folder, linked, room / "entries", kept)
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


def _unreadable(folder: Path, linked: Path, error: Exception, remedy: str) -> Unreadable:
    said = shown(str(error).replace(str(linked), folder.name))
    return Unreadable(f"{folder}: the database cannot be read ({said}); {remedy}")


def _not_copied(folder: Path, room: Path, error: OSError, remedy: str) -> Unreadable:
    """A file of the database cannot be read, or nothing can be written where copies go."""
    at = error.filename if isinstance(error.filename, str) else ""
    if at and Path(at).is_relative_to(folder):
        how = "give read permission, or " if isinstance(error, PermissionError) else ""
        return Unreadable(f"{at}: cannot be read ({error.strerror}); {how}{remedy}")
    return Unreadable(f"{folder}: cannot be copied to {room} ({error.strerror}); TMPDIR says where")


def pairs(folder: Path, linked: Path) -> list[tuple[bytes, bytes]]:
    """Keys and values of a small database that holds no queues, read from links in `linked`. Raises Unreadable."""
    return families(folder, linked, ("default",))["default"]


def families(
    folder: Path, linked: Path, wanted: tuple[str, ...], most: int | None = None
) -> dict[str, list[tuple[bytes, bytes]]]:
    """Keys and values of the wanted column families, those that are there, as `pairs`. Raises Unreadable.

    `most`: how many of each are enough.
    """
    try:
        _link(folder, linked)
        there = Rdict.list_cf(str(linked))
        options = {name: Options(raw_mode=True) for name in there}
        database = Rdict(
            str(linked), Options(raw_mode=True), options, AccessType.read_only(error_if_log_file_exist=False)
        )
        try:
            return {
                name: list(
                    islice(_items(database if name == "default" else database.get_column_family(name), b""), most)
                )
                for name in wanted
                if name in there
            }
        finally:
            database.close()
    except OSError as error:
        raise _not_copied(folder, linked, error, AGAIN) from error
    except Exception as error:
        if type(error) is not Exception:
            raise
        raise _unreadable(folder, linked, error, AGAIN) from error


def value_now(folder: Path, queue: Queue, number: int) -> bytes:
    """The slot of an entry as the database has it now; no bytes where it has none. Raises Unreadable."""
    now = copied(folder)
    for file in now.queues.get(queue, ()):
        if file.base <= number * ENTRY < file.base + file.length:
            with Path(now.copy).open("rb") as slots:
                return os.pread(slots.fileno(), ENTRY, file.at + number * ENTRY - file.base)
    return b""


def _link(folder: Path, linked: Path) -> None:
    """Links to the tables, and copies of what tells which of them count, as of one moment."""
    linked.mkdir()
    current = (folder / "CURRENT").read_bytes()
    (linked / "CURRENT").write_bytes(current)
    manifest = current.decode(errors="replace").strip()
    if "/" in manifest or not (folder / manifest).is_file():
        raise Unreadable(f"{folder}/CURRENT: names {shown(manifest)!r}, which is not there; {AGAIN}")
    shutil.copyfile(folder / manifest, linked / manifest)
    for path in folder.iterdir():
        if path.suffix == ".log":
            shutil.copyfile(path, linked / path.name)
        elif path.suffix in (".sst", ".blob"):
            (linked / path.name).symlink_to(path.absolute())


def _copied(folder: Path, linked: Path, into: Path, kept: FolderKept) -> QueueDatabase:
    families = Rdict.list_cf(str(linked))
    options = {name: Options(raw_mode=True) for name in families}
    database = Rdict(str(linked), Options(raw_mode=True), options, AccessType.read_only(error_if_log_file_exist=False))
    try:
        with into.open("wb") as out:
            queues = _Copying(database, out, folder).queues()
        ends = _ends(database.get_column_family(OFFSETS), folder) if OFFSETS in families else {}
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


class _Copying:
    """Copies the entries of a database in the order of its keys: queue by queue, numbers rising.

    A window of numbers is read by values alone, which takes a fifth of the time that keys and values take: if there are
    as many as the numbers up to the window's last key, each is where it belongs. Otherwise keys are read too.
    """

    def __init__(self, database: Rdict, out: BufferedWriter, folder: Path) -> None:
        self.database = database
        self.out = out
        self.folder = folder
        self.written = 0

    def queues(self) -> QueueFiles:
        """Copy all, and say what lies where."""
        found: dict[Queue, list[QueueFile]] = {}
        at = self.database.iter()
        at.seek_to_first()
        while at.valid():
            key = at.key()
            prefix, number = key[:-NUMBER], self._number(key)
            files = found.setdefault(self._queue(prefix, key), [])
            end = _key(prefix, number + WINDOW)
            below = ReadOptions()  # held until all is read: the library forgets the bound with it
            below.set_iterate_upper_bound(end)
            values = list(self.database.values(from_key=key, read_opt=below))
            at.seek_for_prev(_key(prefix, number + WINDOW - 1))
            if at.key() == _key(prefix, number + len(values) - 1):
                self._put(files, number, values, prefix)
            else:
                for begin, some in self._between_gaps(key, end):
                    self._put(files, begin, some, prefix)
            at.seek(end)
        at.status()
        return {queue: tuple(files) for queue, files in found.items()}

    def _between_gaps(self, key: bytes, end: bytes) -> Iterator[tuple[int, list[bytes]]]:
        """The entries from one key on that follow one another, with the first number of each stretch."""
        items = list(takewhile(lambda item: item[0] < end, _items(self.database, key)))
        numbers = np.array([self._number(one) for one, _ in items], np.int64)
        starts = np.flatnonzero(np.diff(numbers, prepend=-2) != 1).tolist()
        for low, high in zip(starts, [*starts[1:], len(items)], strict=True):
            yield int(numbers[low]), [value for _, value in items[low:high]]

    def _put(self, files: list[QueueFile], number: int, values: list[bytes], prefix: bytes) -> None:
        data = b"".join(values)
        for at, value in enumerate(values) if len(data) != VALUE * len(values) else ():
            if len(value) != VALUE:
                raise Unreadable(
                    f"{self.folder}: entry {number + at} of {_shown(prefix)} has {len(value)} bytes, expected {VALUE}; "
                    f"{REMOVE}"
                )
        slots: npt.NDArray[np.uint8] = np.frombuffer(data, np.uint8).reshape(-1, VALUE)[:, :ENTRY]
        self.out.write(slots.tobytes())
        length = len(values) * ENTRY
        if files and files[-1].base + files[-1].length == number * ENTRY:
            begun = files.pop()
            files.append(QueueFile(begun.base, begun.length + length, begun.at))
        else:
            files.append(QueueFile(number * ENTRY, length, self.written))
        self.written += length

    def _number(self, key: bytes) -> int:
        number = int.from_bytes(key[-NUMBER:], "big", signed=True)
        if not 0 <= number < FARTHEST // ENTRY:
            raise Unreadable(f"{self.folder}: it holds {key.hex()}, the key of no entry")
        return number

    def _queue(self, prefix: bytes, key: bytes) -> Queue:
        size = int.from_bytes(prefix[:4], "big")
        if len(prefix) != size + BESIDE_TOPIC:
            raise Unreadable(f"{self.folder}: it holds {key.hex()}, the key of no entry")
        return os.fsdecode(prefix[5 : 5 + size]), int.from_bytes(prefix[-5:-1], "big", signed=True)


def _items(database: Rdict, key: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values from one on. The library's own `items` ends without a word where a table is damaged."""
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
