"""Ways in which a record loses the checksum of itself: its size, its body and all other records stay as they were."""

from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.rocketmq.stores import Record, fields, log_files, read_log

Change = Callable[[bytes], bytes]
"""A change of a record's bytes, which returns as many."""


def renamed(raw: bytes) -> bytes:
    """Another name, and a letter of a key."""
    return raw[:-22] + b"~\x02X_CRC32#" + raw[-12:]


def renamed_out_of_sight(raw: bytes) -> bytes:
    """No byte of the name is as it was."""
    return raw[:-20] + b"abcdefgh" + raw[-12:]


def one_bit(raw: bytes) -> bytes:
    """One bit of the name."""
    return raw[:-20] + b"^_CRC32#" + raw[-12:]


def one_bit_and_a_key(raw: bytes) -> bytes:
    """One bit of the name, and a letter of a key, so that the number is none of the record's."""
    return one_bit(raw[:-22] + b"~\x02" + raw[-20:])


def another_separator(raw: bytes) -> bytes:
    """The byte between name and value."""
    return raw[:-12] + b"=" + raw[-11:]


def moved(raw: bytes) -> bytes:
    """The property stands before all others."""
    record, _ = fields(raw, 0)
    begin = len(raw) - len(record.properties)
    return raw[:begin] + raw[-20:] + raw[begin:-20]


def of_another_length(raw: bytes) -> bytes:
    """A digit of the number belongs to the name."""
    return raw[:-20] + b"__CRC32#0\x01" + raw[-10:]


def no_number(raw: bytes) -> bytes:
    """A letter is among the digits."""
    return raw[:-5] + b"x" + raw[-4:]


def no_end(raw: bytes) -> bytes:
    """The last separator is another byte."""
    return raw[:-1] + b"3"


def taken_away(raw: bytes) -> bytes:
    """Remove it: the properties end in another one."""
    return raw[:-20] + b"COLOR\x01of the night.\x02"


CHANGES: tuple[Change, ...] = (
    renamed, renamed_out_of_sight, one_bit, one_bit_and_a_key, another_separator, moved, of_another_length, no_number,
    no_end, taken_away,
)  # fmt: skip


def changed(store: Path, which: int, change: Change, records: Sequence[Record] = ()) -> tuple[str, int]:
    """Change the record of this number in the log, and return its file and the offset there.

    `records`: of the log before anything was changed, for a reader may stop at what was.
    """
    record = (records or read_log(store))[which]
    file = max(file for file in log_files(store) if int(file.name) <= record.position)
    at, data = record.position - int(file.name), bytearray(file.read_bytes())
    raw = bytes(data[at : at + record.size])
    assert raw[-20:-11] == b"__CRC32#\x01"
    data[at : at + record.size] = change(raw)
    assert bytes(data[at : at + record.size]) != raw
    assert len(data) == file.stat().st_size
    file.write_bytes(data)
    return str(file.relative_to(store)), at
