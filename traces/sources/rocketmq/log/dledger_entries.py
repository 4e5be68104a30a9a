"""An entry of a DLedger log: the header before each record (docs/rocketmq.md#dledger)."""

from __future__ import annotations

import struct
from typing import NamedTuple

from gapless.native import function
from gapless.traces.sources.rocketmq.columns.bytes import Bytes, i32, i64, u32

ENTRY_HEADER = 48  # bytes before the record: magic, size, index, term, position, channel, two checksums, body's size
HEADER = struct.Struct(">iiqqqiiii")
DLEDGER_MAGIC = 1
DLEDGER_BLANK = 0xFFFFFFFF  # the magic of what fills the end of a file; its size follows


class EntryHeader(NamedTuple):
    """The header of one entry, for a reader."""

    magic: int
    size: int  # bytes, its own counted
    number: int  # its index
    term: int
    position: int  # that it names as its own
    channel: int
    chain: int  # a checksum, which brokers leave at 0
    checksum: int  # likewise
    body: int  # bytes of the record


def entry_header(data: bytes) -> EntryHeader:
    """Parses the header in the first bytes of `data`; missing bytes count as zeros."""
    return EntryHeader(*HEADER.unpack(data[:ENTRY_HEADER].ljust(ENTRY_HEADER, b"\0")))


@function(inline=True)
def is_wrapping(b: Bytes, at: int, place: int, size: int) -> bool:
    """True if the header at `at` is that of an entry at log position `place` with `size` bytes of record.

    The broker makes the same checks before it accepts an entry, and also checks index and term.

    Source: docs/rocketmq.md#dledger; DLedgerMmapFileStore.recover.
    """
    return bool(
        u32(b, at) == DLEDGER_MAGIC
        and i32(b, at + 4) == size + ENTRY_HEADER
        and i64(b, at + 24) == place
        and i32(b, at + 44) == size
    )
