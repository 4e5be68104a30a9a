"""The keys of records, all keys of a record as one text, as compaction uses them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gapless.native import BYTES, INTS, TABLE, function, native
from gapless.traces.sources.rocketmq.store.bytes import Bytes, Ints, digest, i32, is_name, place_of, u32
from gapless.traces.sources.rocketmq.store.files import LogFile, Maps
from gapless.traces.sources.rocketmq.store.names import as_bytes
from gapless.traces.sources.rocketmq.store.records import MAGIC_V2, SMALLEST, RecordParts, measure, parts

KEY, BODY, ROWS = range(3)  # rows of what is found: the digest of the keys, 0 where they are blank; the body's bytes

_KEYS = as_bytes("KEYS")


@function
def _is_blank(b: Bytes, p: int, e: int) -> bool:
    """True if the UTF-8 bytes `p:e` are white space by Java's definition."""
    while p < e:
        c = int(b[p])
        if c < 0x80:
            if not (9 <= c <= 13 or 28 <= c <= 32):
                return False
            p += 1
            continue
        if p + 3 > e:
            return False
        three = (c << 16) | (int(b[p + 1]) << 8) | int(b[p + 2])
        spaces = 0xE28080 <= three <= 0xE2808A and three != 0xE28087
        if not (spaces or three in (0xE19A80, 0xE280A8, 0xE280A9, 0xE2819F, 0xE38080)):
            return False
        p += 3
    return True


@function(inline=True)
def key_of_record(b: Bytes, r: RecordParts) -> int:
    """The digest of a record's keys, 0 where they are blank."""
    low, high = 0, 0
    k = r.low
    while k < r.high:
        w = place_of(b, k, r.high, 2)
        if w - k > 4 and b[k + 4] == 1 and is_name(b, k, k + 4, _KEYS):
            low, high = k + 5, w
        k = w + 1
    return 0 if _is_blank(b, low, high) else int(digest(b, low, high))


def _work(b: Bytes, places: Ints, sizes: Ints, found: Ints) -> int:  # noqa: ARG001 - as `_find` is called
    return len(places)


@native(_work, kinds=(BYTES, INTS, INTS, TABLE))
def _find(b: Bytes, places: Ints, sizes: Ints, found: Ints) -> None:
    """Writes keys and body of each record at `places` of `b` into `found`; incomplete ones are left out."""
    for i in range(len(places)):
        if places[i] + sizes[i] > len(b):
            continue  # the file became shorter
        v2 = u32(b, places[i] + 4) == MAGIC_V2
        if measure(b, places[i], places[i] + sizes[i], v2) != sizes[i]:
            continue
        r = parts(b, places[i], v2)
        found[KEY, i] = key_of_record(b, r)
        found[BODY, i] = i32(b, r.body - 4)


def compaction_keys(files: Sequence[LogFile], positions: Ints, sizes: Ints, maps: Maps) -> Ints:
    """Returns the keys and bodies of records; a body of -1 for an incomplete record."""
    found = np.full((ROWS, len(positions)), -1, np.int64)
    for file in files:
        (some,) = np.nonzero(file.holds(positions, sizes) & (sizes >= SMALLEST))
        if len(some):
            of_some = np.full((ROWS, len(some)), -1, np.int64)
            _find(maps.of(file), positions[some] - file.base, sizes[some], of_some)
            found[:, some] = of_some
    return found
