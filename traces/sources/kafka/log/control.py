"""Control batches: the markers of transactions, and what the log of the metadata says about itself.

A control batch has one record, never compressed, whose key says what it is.
"""

from __future__ import annotations

from typing import Any

from gapless.native import function
from gapless.native.big_endian import signed_16, signed_32
from gapless.traces.sources.kafka.log.varints import NONE, signed_varint

ABORT, COMMIT, LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, VERSION, VOTERS = range(7)
"""The types of control records."""
DATA, MALFORMED, EMPTIED = -1, -2, -3
"""Instead of a type: no control batch, one whose record cannot be read, and one that compaction has emptied."""


@function
def control_record(b: Any, begin: int, end: int, count: int) -> tuple[int, int]:
    """The type of a control batch by its record, and a marker's coordinator epoch; -1 for other types.

    `begin`: the place behind the head · `end`: of the batch · `count`: records by the head.
    """
    if count == 0 and begin == end:
        return EMPTIED, -1
    size, p = signed_varint(b, begin, end)
    if p == NONE or count != 1 or p + size != end or size < 1:
        return MALFORMED, -1
    _time, p = signed_varint(b, p + 1, end)  # behind the attributes
    _delta, p = signed_varint(b, p, end)
    key, p = signed_varint(b, p, end)
    if p == NONE or key < 4 or p + key > end:
        return MALFORMED, -1
    kind = signed_16(b, p + 2)
    value, at = signed_varint(b, p + key, end)
    if at == NONE or value < 0 or at + value > end or not 0 <= kind <= VOTERS:
        return MALFORMED, -1
    if kind > COMMIT:
        return kind, -1
    return (kind, signed_32(b, at + 2)) if value >= 6 else (MALFORMED, -1)
