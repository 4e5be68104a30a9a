"""Finds the records that are the input of a table of halves, in one pass: halves, ops, and finals.

Source: docs/rocketmq-transactions.md#half-table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gapless.native import BYTES, INTS, TABLE, native
from gapless.traces.sources.rocketmq.store.bytes import (
    Bytes,
    Ints,
    digest,
    digests_between,
    i64,
    is_name,
    number_in,
    place_of,
    u32,
)
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.names import REAL_TOPIC, TABLE_HALF_TOPIC, TABLE_OP_TOPIC, as_bytes
from gapless.traces.sources.rocketmq.store.record_pass import LONGEST, found_up_to, work
from gapless.traces.sources.rocketmq.store.records import (
    MAGIC_V2,
    SYS_COMMITTED,
    SYS_TRANSACTION,
    parts,
    whole_size,
)

IS_HALF, IS_OP, IS_FINAL = range(3)
_HALF, _OP, _REAL = map(as_bytes, (TABLE_HALF_TOPIC, TABLE_OP_TOPIC, REAL_TOPIC))
_ID, _NAMED, _IMMUNITY = map(as_bytes, ("__transactionId__", "TRANS_OFFSET", "CHECK_IMMUNITY_TIME_IN_SECONDS"))


class HalfRecords(NamedTuple):
    """Halves, and what decides them, a column for each field.

    `kind`: IS_HALF, IS_OP or IS_FINAL · `position`, `size`: of a half itself; of others, of the half that they name, or
    -1, and 0 · `at`: where the record lies · `owner`: digest of what a row's key has behind the position, or 0 · `due`:
    from when on producers are asked about a half that gives an immunity of its own, in ms, or -1; `born`, in ms
    """

    kind: Ints
    position: Ints
    size: Ints
    at: Ints
    owner: Ints
    due: Ints
    born: Ints


COLUMNS = len(HalfRecords._fields)


@native(work, kinds=(BYTES, INTS, TABLE, BYTES))
def _find(b: Bytes, bounds: Ints, room: Ints, scratch: Bytes) -> None:  # noqa: C901, PLR0912, PLR0915 - of each, all
    """Fills `room` with the records of `b` within `bounds`, whose third number is the position of `b`.

    The first bound becomes the begin of the next call, and the fourth counts the records.
    """
    p, stop, base, count = bounds
    while p + 8 <= stop and count < room.shape[1]:
        size = whole_size(b, p, stop)
        if size <= 0:
            p = len(b) if size < 0 else p
            break
        v2 = u32(b, p + 4) == MAGIC_V2
        r = parts(b, p, v2)
        kind = -1
        if is_name(b, r.topic, r.topic_end, _HALF):
            kind = IS_HALF
        elif is_name(b, r.topic, r.topic_end, _OP):
            kind = IS_OP
        elif (r.flags & SYS_TRANSACTION) == SYS_COMMITTED:
            kind = IS_FINAL
        if kind >= 0:
            real = real_end = key = key_end = 0
            named, immune = -1, -1
            k = r.low
            while k < r.high:
                w = place_of(b, k, r.high, 2)
                m = place_of(b, k, w, 1)
                if is_name(b, k, m, _REAL):
                    real, real_end = m + 1, w
                elif is_name(b, k, m, _ID):
                    key, key_end = m + 1, w
                elif is_name(b, k, m, _NAMED):
                    named = number_in(b, m + 1, w)
                elif is_name(b, k, m, _IMMUNITY):
                    immune = number_in(b, m + 1, w)
                k = w + 1
            owner, born = 0, i64(b, p + 40)
            if real < real_end and key < key_end and real_end - real + key_end - key < LONGEST - 2:
                length = 0
                scratch[length] = 64  # @
                length += 1
                for i in range(real, real_end):
                    scratch[length] = b[i]
                    length += 1
                scratch[length] = 64
                length += 1
                for i in range(key, key_end):
                    scratch[length] = b[i]
                    length += 1
                owner = digest(scratch, 0, length)
            room[0, count], room[3, count], room[4, count] = kind, base + p, owner
            room[1, count], room[2, count] = base + p, size
            if kind != IS_HALF:
                room[1, count] = named if kind == IS_OP else i64(b, r.body - 12)
                room[2, count] = 0
            room[5, count] = born + immune * 1000 if 0 <= immune < 1 << 31 else -1
            room[6, count] = born
            count += 1
        p += size
    bounds[0], bounds[3] = p, count


def half_records(store: StoreDirectory, end: int, begin: int | None = None) -> tuple[HalfRecords, int]:
    """Returns halves and their decisions up to log position `end`, and the end of the readable records.

    `begin`: the position of a record from which on they count; by default all do.
    """
    rows, reached = found_up_to(store, end, _find, COLUMNS, begin)
    return HalfRecords(*rows), reached


class TableOfHalves(NamedTuple):
    """The table of halves, a column for each field; `owner` as in `HalfRecords`. `last`: position of its end, or 0."""

    position: Ints
    owner: Ints
    checks: Ints
    size: Ints
    last: int


KEY_OF_END = b"lastOffsetPy"


def rows_of(pairs: list[tuple[bytes, bytes]]) -> TableOfHalves | None:
    """Returns the rows in a table of keys and values, by position; None for wrong ones."""
    ends = [value for key, value in pairs if key == KEY_OF_END]
    rows = [pair for pair in pairs if pair[0] != KEY_OF_END]
    if any(len(end) != 8 for end in ends) or any(len(key) < 9 or len(value) != 8 for key, value in rows):
        return None
    lengths = np.array([len(key) for key, _ in rows], np.int64)
    data = np.frombuffer(b"".join(key for key, _ in rows), np.uint8)
    stops = np.cumsum(lengths)
    begins = stops - lengths
    heads = np.frombuffer(b"".join(key[:8] for key, _ in rows), ">i8").astype(np.int64)
    last = int.from_bytes(ends[0], "big", signed=True) if ends else 0
    if last < 0 or (heads < 0).any():
        return None
    values = np.frombuffer(b"".join(value for _, value in rows), ">i4").astype(np.int64).reshape(-1, 2)
    owner = digests_between(data, begins + 8, stops)
    order = np.argsort(heads, kind="stable")
    return TableOfHalves(heads[order], owner[order], values[order, 0], values[order, 1], last)
