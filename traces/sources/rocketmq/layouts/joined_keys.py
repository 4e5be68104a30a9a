"""The keys of records, all keys of a record as one text, as compaction uses them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gapless.native import BYTES, INTS, TABLE, function, native
from gapless.traces.sources.rocketmq.columns.bytes import Bytes, Ints, digest, i32, u32
from gapless.traces.sources.rocketmq.columns.property_spans import names_of, spans_of
from gapless.traces.sources.rocketmq.log.records import MAGIC_V2, SMALLEST, find_sizes, parts
from gapless.traces.sources.rocketmq.store.files import LogFile, Maps

KEY, BODY, ROWS = range(3)  # rows of what is found: the digest of the keys, 0 where they are blank; the body's bytes

_NAMES = names_of("KEYS")


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


def keys_and_bodies(b: Bytes, places: Ints) -> Ints:
    """Returns the keys and bodies of the whole records at `places` of `b`."""
    found = np.empty((ROWS, len(places)), np.int64)
    _find(b, places, spans_of(b, places, _NAMES), found)
    return found


@native(lambda _b, places, *_: len(places), kinds=(BYTES, INTS, TABLE, TABLE))
def _find(b: Bytes, places: Ints, spans: Ints, found: Ints) -> None:
    """Writes them into `found`."""
    for i in range(len(places)):
        low, high = spans[i, 0], spans[i, 1]
        found[KEY, i] = 0 if _is_blank(b, low, high) else digest(b, low, high)
        found[BODY, i] = i32(b, parts(b, places[i], u32(b, places[i] + 4) == MAGIC_V2).body - 4)


def compaction_keys(files: Sequence[LogFile], positions: Ints, sizes: Ints, maps: Maps) -> Ints:
    """Returns the keys and bodies of records; a body of -1 for an incomplete record."""
    found = np.full((ROWS, len(positions)), -1, np.int64)
    for file in files:
        (some,) = np.nonzero(file.holds(positions, sizes) & (sizes >= SMALLEST))
        if len(some):
            data, places = maps.of(file), positions[some] - file.base
            whole = np.empty_like(places)
            find_sizes(data, places, whole)
            same = whole == sizes[some]
            found[:, some[same]] = keys_and_bodies(data, places[same])
    return found
