"""An entry of a DLedger log: the header before each record (docs/rocketmq.md#dledger)."""

from __future__ import annotations

from gapless.traces.native import njit
from gapless.traces.sources.rocketmq.store.bytes import Bytes, i32, i64, u32

ENTRY_HEADER = 48  # bytes before the record: magic, size, index, term, position, channel, two checksums, body's size
DLEDGER_MAGIC = 1
DLEDGER_BLANK = 0xFFFFFFFF  # the magic of what fills the end of a file; its size follows


@njit(inline="always")
def is_wrapping(b: Bytes, at: int, place: int, size: int) -> bool:
    """Whether the header at `at` is that of an entry which lies at log position `place`, with a record of `size` bytes.

    That is what the broker asks before it takes an entry for one, but for its index and term.

    Source: docs/rocketmq.md#dledger; DLedgerMmapFileStore.recover.
    """
    return bool(
        u32(b, at) == DLEDGER_MAGIC
        and i32(b, at + 4) == size + ENTRY_HEADER
        and i64(b, at + 24) == place
        and i32(b, at + 44) == size
    )
