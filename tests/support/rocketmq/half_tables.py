"""Tables of halves of recorded stores, changed key by key: copies alone, never a recording."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rocksdict import AccessType, Options, Rdict

END = b"lastOffsetPy"


@contextmanager
def opened(store: Path, family: str = "trans") -> Iterator[Rdict]:
    """The table of halves of a store, or another column family, to be changed: what is changed is in its files then."""
    kept = Options(raw_mode=True)
    kept.set_disable_auto_compactions(disable=True)
    families = dict.fromkeys(("default", "timer", "trans"), kept)
    database = Rdict(str(store / "rocksdbstore"), kept, families, AccessType.read_write())
    table = database.get_column_family(family)
    try:
        yield table
        table.flush()
    finally:
        table.close()
        database.close()


def rows(table: Rdict) -> dict[bytes, bytes]:
    """The rows of the table, by their keys, in the order of positions."""
    found: dict[bytes, bytes] = {}
    for key, value in list(table.items()):
        assert isinstance(key, bytes)
        assert isinstance(value, bytes)
        if key != END:
            found[key] = value
    return found


def position_of(key: bytes) -> int:
    """The position of the half that a row is for."""
    return int.from_bytes(key[:8], "big")


def row(checks: int, size: int) -> bytes:
    """The value of a row."""
    return checks.to_bytes(4, "big", signed=True) + size.to_bytes(4, "big")
