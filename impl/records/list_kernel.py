"""Columns from messages one by one, which are Python tuples, without a Python call for each.

Unusual input falls back to the slow path, which reports errors: the kernel goes through tuples of
exactly `str`, `int`, `bytes` and `dict`, and gives up at anything else.
"""

# ruff: noqa: SIM110
# The language has no generators.

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.native import BYTES, I64, INTS, INTS32, TABLE, function
from gapless.native import intrinsics as o
from gapless.native.intrinsics import address_of, bytes_at, copy_bytes

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]

ROOM = 64  # bytes for the texts of each message, at first
FORESEEN = 1 << 24  # bytes, up to which there is room for all texts once some are longer than that
SPREAD = 0x9E3779B97F4A7C1  # any large odd number: queues of one topic lie far from one another in a table
NUMBER, TEXT, LENGTH, FIRST = range(4)  # what is known of a queue
ODD = -1
"""Something is not as it should be."""


class ListColumns(NamedTuple):
    """The columns of `Messages`. `firsts`: int64 [q], the first message of each queue."""

    firsts: Ints
    queue_index: npt.NDArray[np.int32]
    bodies: Bytes
    body_ends: Ints
    properties: Bytes
    property_ends: Ints


def columns_of(rows: tuple[object, ...], reserved: tuple[str, ...], longest: int) -> ListColumns | None:
    """The columns of (topic, queue id, body, properties) one by one.

    None where some are of other types, or have properties that no record can contain: one with a reserved name, an
    empty text or one with a separator in it, or more than `longest` bytes. A check of each finds which.
    """
    count, done, queues = len(rows), 0, 0
    words = np.empty(4, np.int64)
    known, table = np.empty((4, count), np.int64), np.full(1 << (2 * count).bit_length(), -1, np.int32)
    index, ends = np.empty(count, np.int32), np.zeros((2, count + 1), np.int64)
    bodies, properties = np.empty(count * ROOM, np.uint8), np.empty(count * ROOM + longest, np.uint8)
    while done < count:
        done, queues, more = gather(
            id(rows),
            done,
            queues,
            o.KINDS,
            *_joined(reserved),
            longest,
            known,
            table,
            index,
            ends,
            bodies,
            properties,
            words,
        )
        if queues == ODD:
            return None
        if done < count:
            bodies = _with_room(bodies, int(ends[0, done]), more, count / (done + 1))
            properties = _with_room(properties, int(ends[1, done]), longest, count / (done + 1))
    texts = bodies[: ends[0, count]], properties[: ends[1, count]]
    for column in (index, ends, *texts):
        column.flags.writeable = False
    return ListColumns(known[FIRST, :queues], index, texts[0], ends[0], texts[1], ends[1])


def _with_room(texts: Bytes, end: int, more: int, share: float) -> Bytes:
    """The texts up to `end`, room for `more` bytes, and for what is to come: `share` times as much, within reason."""
    if end + more <= len(texts):
        return texts
    larger = np.empty(max(2 * (end + more), min(FORESEEN, int((end + more) * share))), np.uint8)
    larger[:end] = texts[:end]
    return larger


@lru_cache
def _joined(names: tuple[str, ...]) -> tuple[Bytes, Ints]:
    """Names one after the other, and where they end."""
    return np.frombuffer("".join(names).encode(), np.uint8), np.cumsum([0, *map(len, names)])


@function(
    keeps_lock=True, kinds=(I64, I64, I64, INTS, BYTES, INTS, I64, TABLE, INTS32, INTS32, TABLE, BYTES, BYTES, INTS)
)
def gather(
    rows: int, low: int, queues: int, kinds: Ints, names: Bytes, name_ends: Ints, longest: int, known: Ints,
    table: npt.NDArray[np.int32], index: npt.NDArray[np.int32], ends: Ints, bodies: Bytes, properties: Bytes,
    words: Ints,
) -> tuple[int, int, int]:  # fmt: skip
    """Fill the columns from message `low` on, up to one for which there is no room.

    `rows`: the address of a tuple · `queues`: how many were met · `known`, `table`: as in `_queue_of` · `index`: as in
    `Messages` · `ends`: where bodies and properties end · `bodies`, `properties`: room for some. Returns the next
    message, how many queues were met, or `ODD`, and how many bytes the body of the next message has. The interpreter
    lock is held all the time, so that nothing changes.
    """
    for i in range(low, len(index)):
        row = o.tuple_item(rows, i)
        if not _is_message(row, kinds):
            return i, ODD, 0
        body, begin, extra = o.tuple_item(row, 2), ends[0, i], ends[1, i]
        size = o.bytes_size(body)
        if begin + size > len(bodies) or extra + longest > len(properties):
            return i, queues, size
        queue = _queue_of(o.tuple_item(row, 0), o.tuple_item(row, 1), known, table, queues, words)
        end = _put_properties(o.tuple_item(row, 3), kinds, properties, extra, longest, names, name_ends, words)
        if min(queue, end) == ODD:
            o.clear_error()
            return i, ODD, 0
        if queue == queues:
            known[FIRST, queue] = i
            queues += 1
        copy_bytes(address_of(bodies) + begin, o.bytes_text(body), size)
        index[i], ends[0, i + 1], ends[1, i + 1] = queue, begin + size, end
    return len(index), queues, 0


@function
def _is_message(row: int, kinds: Ints) -> bool:
    """True if it is a tuple of a text, an integer, bytes and a dictionary."""
    if o.kind_of_object(row) != kinds[o.TUPLE] or o.tuple_size(row) != 4:
        return False
    for part in range(4):
        if o.kind_of_object(o.tuple_item(row, part)) != kinds[o.TEXT + part]:
            return False
    return True


@function
def _queue_of(topic: int, queue: int, known: Ints, table: npt.NDArray[np.int32], count: int, words: Ints) -> int:
    """The index of a message's queue, which is `count` for one that is met for the first time; or `ODD`.

    `known`: of every queue that was met, its number, where its topic lies in UTF-8, and how long that is · `table`:
    their indices, each at the place that its hash says or the next free one, and -1.
    """
    number, text = o.integer(queue), o.text_utf8(topic, address_of(words))
    length = words[0]
    if number < 0 or text == 0:
        return ODD
    at = (o.hash_of(topic) ^ (number * SPREAD)) & (len(table) - 1)
    while table[at] >= 0:
        met = int(table[at])
        if known[NUMBER, met] == number and known[LENGTH, met] == length and _are_same(known[TEXT, met], text, length):
            return met
        at = (at + 1) & (len(table) - 1)
    table[at] = count
    known[NUMBER, count], known[TEXT, count], known[LENGTH, count] = number, text, length
    return count


@function
def _are_same(one: int, other: int, length: int) -> bool:
    """True if so many bytes at two places are the same."""
    if one == other:
        return True
    a, b = bytes_at(one, length), bytes_at(other, length)
    for k in range(length):
        if a[k] != b[k]:
            return False
    return True


@function
def _put_properties(
    given: int, kinds: Ints, out: Bytes, end: int, longest: int, names: Bytes, name_ends: Ints, words: Ints
) -> int:
    """Properties as they lie in a record, written behind `end`, where there is room; returns the new end, or `ODD`."""
    address, limit = address_of(words), end + longest
    words[1] = 0  # where in the dictionary this is
    while o.dictionary_next(given, address + 8, address + 16, address + 24):
        for part in range(2):
            item = words[2 + part]
            text = o.text_utf8(item, address) if o.kind_of_object(item) == kinds[o.TEXT] else 0
            length = words[0]
            if text == 0 or length == 0 or end + length + 1 > limit:
                return ODD
            copy_bytes(address_of(out) + end, text, length)
            if _has_separators(out, end, length) or (part == 0 and _is_among(out, end, length, names, name_ends)):
                return ODD
            end += length
            out[end] = 1 + part
            end += 1
    return end


@function
def _has_separators(b: Bytes, p: int, length: int) -> bool:
    """True if a NUL is in a text, or one of the two bytes that end a name and a value."""
    for k in range(p, p + length):
        if b[k] <= 2:
            return True
    return False


@function
def _is_among(b: Bytes, p: int, length: int, names: Bytes, name_ends: Ints) -> bool:
    for at in range(len(name_ends) - 1):
        if name_ends[at + 1] - name_ends[at] == length:
            same = True
            for k in range(length):
                same = same and b[p + k] == names[name_ends[at] + k]
            if same:
                return True
    return False
