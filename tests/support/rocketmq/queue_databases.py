"""Queue databases of recorded stores, read and changed key by key: copies alone, never a recording."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rocksdict import AccessType, Options, Rdict

FOLDERS = ("consumequeue_rocksdb", "consumequeue")


def folder_of(store: Path) -> Path:
    """Return the folder of the database."""
    return next(store / name for name in FOLDERS if (store / name / "CURRENT").exists())


@contextmanager
def opened(store: Path) -> Iterator[tuple[Rdict, Rdict]]:
    """The entries and the table of offsets of a store, to be changed; what is changed is in its tables at the end."""
    kept = Options(raw_mode=True)
    kept.set_disable_auto_compactions(disable=True)
    database = Rdict(str(folder_of(store)), kept, dict.fromkeys(("default", "offset"), kept), AccessType.read_write())
    table = database.get_column_family("offset")
    try:
        yield database, table
        database.flush()
        table.flush()
    finally:
        table.close()
        database.close()


def value_of(database: Rdict, name: bytes) -> bytes:
    """The value of a key that is there."""
    value = database[name]
    assert isinstance(value, bytes)
    return value


def key(topic: str, queue: int, number: int) -> bytes:
    """The key of an entry."""
    name = topic.encode()
    return b"".join(
        (
            len(name).to_bytes(4, "big"), b"\x01", name, b"\x01",
            queue.to_bytes(4, "big"), b"\x01", number.to_bytes(8, "big"),
        )
    )  # fmt: skip


def end_key(topic: str, queue: int, which: str) -> bytes:
    """The key of a queue's end in the table: `which` is max or min."""
    name = topic.encode()
    return b"".join(
        (len(name).to_bytes(4, "big"), b"\x01", name, b"\x01", which.encode(), b"\x01", queue.to_bytes(4, "big"))
    )


def changed(value: bytes, *, position: int = 0, size: int = 0, tag: int = 0, time: int = 0) -> bytes:
    """The value of an entry with something added to its fields."""
    widths = (8, position), (4, size), (8, tag), (8, time)
    parts, at = [], 0
    for width, more in widths:
        parts.append((int.from_bytes(value[at : at + width], "big", signed=True) + more).to_bytes(width, "big"))
        at += width
    return b"".join(parts)


def entries(store: Path) -> dict[tuple[str, int], list[tuple[int, int, int, int, int]]]:
    """Number, position, size, tag code and store time of every entry, by queue."""
    found: dict[tuple[str, int], list[tuple[int, int, int, int, int]]] = {}
    with opened(store) as (database, _):
        for name, value in list(database.items()):
            assert isinstance(name, bytes)
            assert isinstance(value, bytes)
            length = int.from_bytes(name[:4], "big")
            topic, queue = name[5 : 5 + length].decode(), int.from_bytes(name[-13:-9], "big")
            fields = (value[:8], value[8:12], value[12:20], value[20:])
            numbers = (int.from_bytes(field, "big", signed=True) for field in fields)
            position, size, tag, time = numbers
            found.setdefault((topic, queue), []).append((int.from_bytes(name[-8:], "big"), position, size, tag, time))
    return found
