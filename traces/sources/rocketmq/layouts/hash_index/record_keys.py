"""The keys of records, as the hash index has them: hashes of `topic#key` (docs/rocketmq.md#index)."""

# ruff: noqa: C901, FBT001
# A kernel is one pass over the bytes; kernels are called by position.

from __future__ import annotations

from gapless.native import BYTES, I64, INTS, TABLE, function, int32, native
from gapless.traces.sources.rocketmq.columns.bytes import Bytes, Ints, hash_on, is_name, place_of, u32
from gapless.traces.sources.rocketmq.columns.property_walk import ends_in, next_end
from gapless.traces.sources.rocketmq.log.records import MAGIC_V2, SYS_TRANSACTION, RecordParts, parts
from gapless.traces.sources.rocketmq.store.names import UNIQ_KEY, as_bytes

# Rows of keys: which record of the segment has it, what it is hashed to, and how sure that is.
RECORD, HASH, KIND, KEY_ROWS = range(4)
# MUST: it is to be found · MAY: versions from 5.4 on index it (a tag) · UNSURE: what it is hashed to is not known.
MUST, MAY, UNSURE = range(3)

_UNIQUE, _KEYS, _TAGS = as_bytes(UNIQ_KEY), as_bytes("KEYS"), as_bytes("TAGS")
_SPACE, _MARK, _T = 32, 35, 84  # bytes: what parts keys, `#`, and the `T` that stands before a tag
_MOST = 2**31


@native(lambda _b, places, *_: len(places), kinds=(BYTES, INTS, I64, TABLE, I64))
def find_index_keys(b: Bytes, places: Ints, first: int, keys: Ints, filled: int) -> int:
    """Appends the keys of the records at `places` of `b`, and returns the number of keys.

    `first`: the number of the first of these records. The result is negative if `keys` is too small: then the rest is
    undefined.
    """
    n = filled
    for i in range(len(places)):
        p = places[i]
        r = parts(b, p, u32(b, p + 4) == MAGIC_V2)
        if r.flags & SYS_TRANSACTION == SYS_TRANSACTION:
            continue  # rolled back: brokers do not index it
        n = _of_record(b, r, first + i, keys, n)
        if n < 0:
            return -1
    return n


@function(inline=True)
def _of_record(b: Bytes, r: RecordParts, record: int, keys: Ints, n: int) -> int:
    """Append the keys of one record."""
    unique, unique_end, words, words_end, tags, tags_end = (
        0, 0, 0, 0, 0, 0,
    )  # fmt: skip
    k = at = r.low
    ends = ends_in(b, at, r.high)
    while k < r.high:
        w, at, ends = next_end(b, k, at, ends, r.high)
        if w - k >= 6 and (b[k] == 85 or b[k] == 75 or b[k] == 84):  # U, K or T
            if b[k + 4] == 1:
                if is_name(b, k, k + 4, _KEYS):
                    words, words_end = k + 5, w
                elif is_name(b, k, k + 4, _TAGS):
                    tags, tags_end = k + 5, w
            elif w - k > 9 and b[k + 8] == 1 and is_name(b, k, k + 8, _UNIQUE):
                unique, unique_end = k + 9, w
        k = w + 1
    topic, exact = hash_on(b, r.topic, r.topic_end, 0)
    topic = _hash_with(topic, _MARK)
    if unique < unique_end:
        n = _put(b, unique, unique_end, topic, exact, MUST, record, keys, n)
    k = words
    while k < words_end and n >= 0:
        w = place_of(b, k, words_end, _SPACE)
        if k < w:
            n = _put(b, k, w, topic, exact, MUST, record, keys, n)
        k = w + 1
    if tags < tags_end and n >= 0:
        n = _put(b, tags, tags_end, _hash_with(_hash_with(topic, _T), _MARK), exact, MAY, record, keys, n)
    return n


@function(inline=True)
def _hash_with(h: int, unit: int) -> int:
    """Java's hash of a text with one more unit behind it."""
    return int32(int32(h) * 31 + int32(unit))


@function(inline=True)
def _put(
    b: Bytes, p: int, e: int, before: int, exact: bool, kind: int, record: int, keys: Ints, n: int
) -> int:  # fmt: skip
    """Appends one key; -1 without room."""
    if n >= keys.shape[1]:
        return -1
    h, known = hash_on(b, p, e, before)
    whole = place_of(b, p, e, 1) == e  # otherwise it runs into the next property
    h = -h if h < 0 else h
    keys[RECORD, n] = record
    keys[HASH, n] = 0 if h >= _MOST else h  # the least number has no positive one: Java takes 0
    keys[KIND, n] = kind if exact and known and whole else UNSURE
    return n + 1
