"""Native code that copies halves: as finals, as newer versions of themselves, or to be set aside; and that makes them.

What is copied is taken apart into the columns that `CommitLog.append_many` takes: heads, bodies and properties. All but
what the copy is about stays as it was (docs/rocketmq-transactions.md#final, #put-back, #park).
"""

from __future__ import annotations

from gapless.impl.records.kernels import SEAL_NAME, digits, parts_of, property_end, starts_with
from gapless.impl.records.record import BORN_V6, STORE_V6, Bytes, Ints
from gapless.impl.transactions import names
from gapless.impl.transactions.scan_kernel import (
    REAL_QUEUE,
    REAL_TOPIC,
    TIMES_NAME,
    as_bytes,
    digest,
    mixed,
)
from gapless.native import BYTE_TABLE, BYTES, I64, INTS, INTS32, TABLE, function, int64
from gapless.native.intrinsics import address_of, copy_bytes, i32_at, put_i32, put_i64

HEAD_SIZE = 88  # bytes of a head with IPv4 hosts
MOST_MORE = 48  # bytes by which a copy's properties may be longer than the half's
KEY_DIGITS = 16  # of the number in a key
AS_FINAL, AS_VERSION, AS_COPY = range(3)

# Rows of where a copy is to go, for a final: a digest of topic and queue, where the topic's name lies, and the queue.
DIGEST, TOPIC_AT, TOPIC_SIZE, QUEUE, TARGET_ROWS = range(5)

_SIX = BORN_V6 | STORE_V6


@function(kinds=(BYTES, INTS, I64, I64, I64, BYTES, BYTE_TABLE, INTS, BYTES, INTS, BYTES, INTS, TABLE))
def copy_halves(
    b: Bytes, at: Ints, low: int, high: int, how: int, host: Bytes, heads: Bytes, positions: Ints,
    bodies: Bytes, body_ends: Ints, properties: Bytes, property_ends: Ints, targets: Ints,
) -> None:  # fmt: skip
    """Take apart the records that begin at bytes `at[low:high]`, into columns `low:high`.

    `how`: what becomes of them · `host`: 8 bytes, in the place of addresses that are IPv6 · `heads`: uint8 [n, 88],
    filled in but for what the log writes itself · `positions`: of each half in the log, which its final names ·
    `bodies`, `body_ends`, `properties`, `property_ends`: as in `Messages`, with room for all · `targets`: int64
    [TARGET_ROWS, n], filled in for finals.
    """
    a, to = address_of(b), address_of(heads)
    for i in range(low, high):
        p = at[i]
        size, flags = i32_at(a + p), i32_at(a + p + 36)
        body, _, topic_end = parts_of(b, p, size)
        head = to + i * HEAD_SIZE
        copy_bytes(head, a + p, HEAD_SIZE)
        if flags & _SIX:  # heads have a fixed length
            flags &= ~_SIX
            copy_bytes(head + 48, address_of(host), 8)
            copy_bytes(head + 64, address_of(host), 8)
            copy_bytes(head + 72, a + body - 16, 4)
        put_i32(head + 36, flags | names.COMMITTED if how == AS_FINAL else flags)
        put_i64(head + 76, positions[i] if how == AS_FINAL else 0)
        length = i32_at(a + body - 4)
        copy_bytes(address_of(bodies) + body_ends[i], a + body, length)
        body_ends[i + 1] = body_ends[i] + length
        q = _copy_properties(b, topic_end + 2, p + size, how, properties, property_ends[i], targets, i)
        property_ends[i + 1] = q


@function
def _copy_properties(b: Bytes, p: int, e: int, how: int, properties: Bytes, q: int, targets: Ints, i: int) -> int:
    """Copy those at `p:e` to `properties` from byte `q` on; returns where they end there."""
    times = 0
    queue = 0
    while p < e:
        stop = property_end(b, p, e)
        kept = not starts_with(b, p, stop, SEAL_NAME)
        if how == AS_VERSION and starts_with(b, p, stop, TIMES_NAME):
            times, kept = max(digits(b, p + len(TIMES_NAME), stop), 0), False
        elif how == AS_FINAL and starts_with(b, p, stop, REAL_TOPIC):
            targets[TOPIC_AT, i], targets[TOPIC_SIZE, i] = p + len(REAL_TOPIC), stop - p - len(REAL_TOPIC)
            kept = False
        elif how == AS_FINAL and starts_with(b, p, stop, REAL_QUEUE):
            queue, kept = digits(b, p + len(REAL_QUEUE), stop), False
        if kept and stop > p:
            for k in range(p, stop):
                properties[q] = b[k]
                q += 1
            properties[q] = 2
            q += 1
        p = stop + 1
    if how == AS_VERSION:
        q = _put_text(properties, q, TIMES_NAME)
        q = _put_number(properties, q, times + 1)
        properties[q] = 2
        q += 1
    elif how == AS_FINAL:
        low = targets[TOPIC_AT, i]
        targets[QUEUE, i] = queue
        targets[DIGEST, i] = int64(mixed(digest(b, low, low + targets[TOPIC_SIZE, i]), queue))
    return q


@function
def _put_text(to: Bytes, q: int, text: Bytes) -> int:
    for k in range(len(text)):
        to[q + k] = text[k]
    return q + len(text)


@function
def _put_number(to: Bytes, q: int, number: int) -> int:
    """A number in decimal; returns where it ends."""
    digits_of, rest = 1, number
    while rest > 9:
        rest //= 10
        digits_of += 1
    for k in range(q + digits_of - 1, q - 1, -1):
        to[k] = 48 + number % 10
        number //= 10
    return q + digits_of


_KEY, _ID = as_bytes(f"{names.KEY}\x01"), as_bytes(f"{names.TRANSACTION_ID}\x01")
HALF_MORE = len(_KEY) + len(_ID) + 2 * 33  # bytes of the two keys


@function(kinds=(BYTES, INTS, INTS32, BYTES, BYTES, I64, BYTES, INTS, BYTES, INTS))
def half_properties(
    given: Bytes, given_ends: Ints, queues: Ints, before: Bytes, prefix: Bytes, first_key: int,
    behind: Bytes, behind_ends: Ints, out: Bytes, ends: Ints,
) -> None:  # fmt: skip
    """The properties of many new halves.

    Each has what its sender gave, then `before`, its key (`prefix`, 16 bytes, and a number in 16 digits), and what
    stands in `behind` for its queue: where it is to go. `queues`: that of each, as a place in `behind_ends`.
    """
    q = 0
    for i in range(len(queues)):
        for k in range(given_ends[i], given_ends[i + 1]):
            out[q] = given[k]
            q += 1
        q = _put_text(out, q, before)
        for of in range(2):
            q = _put_text(out, q, _KEY if of == 0 else _ID)
            q = _put_text(out, q, prefix)
            number = first_key + i
            for k in range(KEY_DIGITS):
                digit = (number >> (4 * (KEY_DIGITS - 1 - k))) & 15
                out[q + k] = 48 + digit if digit < 10 else 55 + digit
            out[q + KEY_DIGITS] = 2
            q += KEY_DIGITS + 1
        for k in range(behind_ends[queues[i]], behind_ends[queues[i] + 1]):
            out[q] = behind[k]
            q += 1
        ends[i + 1] = q
