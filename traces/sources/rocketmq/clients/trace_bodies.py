"""Reads trace messages in native code: the answers, requests and deliveries that clients recorded.

A body is a list of contexts, each ended by character 2, its fields separated by character 1. Layout and sources:
docs/rocketmq-traces.md#layout. A context of another form is counted and not used.
"""

# ruff: noqa: C901, PLR0911
# A kernel is one pass over the bytes.

from __future__ import annotations

from gapless.native import BYTES, I64, INTS, TABLE, WORDS32, function, native
from gapless.traces.sources.rocketmq.columns.bytes import (
    Bytes,
    Crcs,
    Ints,
    crc31,
    digest,
    i32,
    i64,
    is_name,
    number_in,
    place_of,
    u32,
)
from gapless.traces.sources.rocketmq.log.records import MAGIC_V1, MAGIC_V2, SMALLEST, SYS_STORE_V6, measure, parts
from gapless.traces.sources.rocketmq.store.names import as_bytes

HOST = 5  # words of 32 bits: the address, of IPv4 only the first, and the port
# Rows of what `find_bodies` finds of each record: where its body lies, its flags, 1 where all is as it should be, then
# the words of the host that stored it.
BODY_LOW, BODY_HIGH, BODY_FLAGS, BODY_WHOLE, BODY_HOST = range(5)
BODY_ROWS = BODY_HOST + HOST
# Rows of what `read_bodies` reads: what it is, the key of the message, then of an answer the position, the topic (its
# digest, and where its name lies), 1 for a half, and for all when it was (ms, by the client's clock), and the position
# of the trace message.
WHAT, KEY, PLACE, TOPIC, TOPIC_LOW, TOPIC_HIGH, IS_HALF, TIME, WITNESS, ANSWER_ROWS = range(10)
ANSWERED, COMMIT_ASKED, ROLL_BACK_ASKED, LEFT_OPEN, HANDED, DONE_WITH = range(6)
# Counters. ELSEWHERE: messages that another broker took · NOWHERE: no position is named · DOUBTFUL: taken, and not as
# safe as was asked for · LATER: the position is behind the trace message that names it.
CONTEXTS, STRANGE, ELSEWHERE, NOWHERE, DOUBTFUL, LATER, COUNTS = range(7)

_PUB, _END = as_bytes("Pub"), as_bytes("EndTransaction")
_BEFORE, _AFTER, _RECALL = as_bytes("SubBefore"), as_bytes("SubAfter"), as_bytes("Recall")
_TRUE, _FALSE, _NULL = as_bytes("true"), as_bytes("false"), as_bytes("null")
_COMMIT, _ROLL_BACK, _OPEN = as_bytes("COMMIT_MESSAGE"), as_bytes("ROLLBACK_MESSAGE"), as_bytes("UNKNOW")
MOST_FIELDS = 16
_HALF = 1  # MessageType.Trans_Msg_Half
_KINDS = 5  # of messages that clients know


@native(lambda _b, places, *_: len(places), kinds=(BYTES, INTS, I64, BYTES, TABLE, WORDS32))
def find_bodies(b: Bytes, places: Ints, base: int, topic: Bytes, found: Ints, tables: Crcs) -> None:
    """Finds the body of each record at `places` of the log file `b`, which begins at `base`.

    `found` [BODY_ROWS, …] gets the results.
    """
    for i in range(len(places)):
        p = places[i]
        found[BODY_WHOLE, i] = 0
        if p < 0 or p + SMALLEST > len(b):
            continue
        size, magic = i32(b, p), u32(b, p + 4)
        v2 = magic == MAGIC_V2
        if not (v2 or magic == MAGIC_V1) or size < SMALLEST or p + size > len(b) or i64(b, p + 28) != base + p:
            continue
        if measure(b, p, p + size, v2) != size:
            continue
        r = parts(b, p, v2)
        low, high = r.body, r.body + i32(b, r.body - 4)
        if not is_name(b, r.topic, r.topic_end, topic) or crc31(b, low, high - low, tables) != u32(b, p + 8):
            continue
        found[BODY_LOW, i], found[BODY_HIGH, i], found[BODY_FLAGS, i] = low, high, r.flags
        found[BODY_WHOLE, i] = 1
        at = r.time + 8
        words = 4 if r.flags & SYS_STORE_V6 else 1
        for k in range(4):
            found[BODY_HOST + k, i] = u32(b, at + 4 * k) if k < words else 0
        found[BODY_HOST + 4, i] = u32(b, at + 4 * words)


@native(lambda _b, begins, *_: 10 * len(begins), kinds=(BYTES, INTS, INTS, TABLE, INTS, INTS, TABLE, INTS, INTS))
def read_bodies(
    b: Bytes, begins: Ints, ends: Ints, hosts: Ints, witnesses: Ints, fields: Ints, out: Ints, counts: Ints, done: Ints
) -> None:
    """Reads the reports in the bodies `b[begins[i] : ends[i]]` into the columns of `out`.

    `hosts` [HOST, bodies]: the broker that stored each · `witnesses`: its log position · `fields`: memory for the
    fields of a context · `done`: bodies read, and columns written; reading stops if there is no room for one more
    body.
    """
    n = done[1]
    for i in range(done[0], len(begins)):
        # No context is shorter than its name, and no message takes less than 16 characters.
        if n + (ends[i] - begins[i]) // 16 + 2 > out.shape[1]:
            return
        p, e = begins[i], ends[i]
        while p < e:
            stop = place_of(b, p, e, 2)
            count = _fields(b, p, stop, fields)
            after = -1  # it is cut off
            if stop < e:
                after = _context(b, fields, count, hosts, i, witnesses[i], out, n, counts)
            counts[CONTEXTS] += 1
            if after < 0:
                counts[STRANGE] += 1
            n = max(n, after)
            p = stop + 1
        done[0], done[1] = i + 1, n


@function
def _fields(b: Bytes, p: int, e: int, fields: Ints) -> int:
    """Writes the begin of each field of a context, and of the next one after the last. Returns their number."""
    count = 0
    fields[0] = p
    while p <= e and count < MOST_FIELDS:
        p = place_of(b, p, e, 1) + 1
        count += 1
        fields[count] = p
    return count if p > e else MOST_FIELDS


@function
def _is(b: Bytes, fields: Ints, field: int, name: Bytes) -> bool:
    return is_name(b, fields[field], fields[field + 1] - 1, name)


@function
def _number(b: Bytes, fields: Ints, field: int) -> int:
    return number_in(b, fields[field], fields[field + 1] - 1)


@function
def _context(
    b: Bytes, fields: Ints, count: int, hosts: Ints, body: int, witness: int, out: Ints, n: int, counts: Ints
) -> int:
    """Reads one context, by its name. Returns the new number of columns, or -1 for an unknown form."""
    what, key, time = -1, 0, 0
    if _is(b, fields, 0, _PUB):
        return _published(b, fields, count, hosts, body, witness, out, n, counts)
    if _is(b, fields, 0, _RECALL):
        return n if count == 7 else (-1)
    if _is(b, fields, 0, _END) and count == 13:
        if _is(b, fields, 11, _COMMIT):
            what = COMMIT_ASKED
        elif _is(b, fields, 11, _ROLL_BACK):
            what = ROLL_BACK_ASKED
        elif _is(b, fields, 11, _OPEN):
            what = LEFT_OPEN
        key, time = 5, 1
    elif _is(b, fields, 0, _BEFORE) and count == 8 and _number(b, fields, 6) >= 0:
        what, key, time = HANDED, 5, 1
    elif _is(b, fields, 0, _AFTER) and 6 <= count <= 9 and (_is(b, fields, 4, _TRUE) or _is(b, fields, 4, _FALSE)):
        what, key, time = DONE_WITH, 2, 7 if count == 9 else 0
    if what < 0 or (time and _number(b, fields, time) < 0):
        return -1
    if fields[key + 1] - 1 <= fields[key]:
        return -1
    out[WHAT, n], out[KEY, n] = what, digest(b, fields[key], fields[key + 1] - 1)
    out[TIME, n] = _number(b, fields, time) if time else 0
    out[WITNESS, n] = witness
    return n + 1


@function
def _published(
    b: Bytes, fields: Ints, count: int, hosts: Ints, body: int, witness: int, out: Ints, n: int, counts: Ints
) -> int:
    """A message that was answered, or several that went in one request. Returns as `_context` does."""
    time, kind = _number(b, fields, 1), -1
    if count < 13 or count > 15:
        return -1
    kind = _number(b, fields, 11)
    if time < 0 or _number(b, fields, 9) < 0 or kind < 0 or kind >= _KINDS or fields[5] - 1 <= fields[4]:
        return -1
    success = 12 if count == 13 else 13
    taken = _is(b, fields, success, _TRUE)
    if not taken and not _is(b, fields, success, _FALSE):
        return -1
    if not taken:
        counts[DOUBTFUL] += 1
        return n
    if count == 13 or _is(b, fields, 12, _NULL) or fields[13] - 1 <= fields[12]:
        counts[NOWHERE] += 1
        return n
    x, xe, y, ye = fields[5], fields[6] - 1, fields[12], fields[13] - 1
    begin = n
    while x < xe and y < ye:
        k, m = place_of(b, x, xe, 44), place_of(b, y, ye, 44)
        place = _place(b, y, m)
        if place < 0 or (k < xe) != (m < ye) or k <= x:
            return -1
        if not _is_host(b, y, m, hosts, body):
            counts[ELSEWHERE] += 1
        elif place >= witness:
            counts[LATER] += 1
        else:
            out[WHAT, n] = ANSWERED
            out[KEY, n] = 0 if is_name(b, x, k, _NULL) else digest(b, x, k)
            out[PLACE, n], out[IS_HALF, n] = place, int(kind == _HALF)
            out[TOPIC, n] = digest(b, fields[4], fields[5] - 1)
            out[TOPIC_LOW, n], out[TOPIC_HIGH, n] = fields[4], fields[5] - 1
            out[TIME, n], out[WITNESS, n] = time, witness
            n += 1
        x, y = k + 1, m + 1
    return n if n > begin or x > xe else (-1)


@function
def _hex(b: Bytes, p: int, e: int) -> int:
    """The hexadecimal number `p:e` of at most 16 digits, below 2^62; -1 where it is none."""
    value = 0
    for k in range(p, e):
        c = int(b[k])
        if 48 <= c <= 57:
            c -= 48
        elif 65 <= c <= 70:
            c -= 55
        elif 97 <= c <= 102:
            c -= 87
        else:
            return -1
        if value >= 1 << 58:
            return -1
        value = value * 16 + c
    return value


@function
def _place(b: Bytes, p: int, e: int) -> int:
    """Returns the position in which the id `p:e` of a stored message ends, or -1 for another id."""
    if e - p != 32 and e - p != 56:
        return -1
    for k in range(p, e - 16, 8):
        if _hex(b, k, k + 8) < 0:
            return -1
    return _hex(b, e - 16, e)


@function
def _is_host(b: Bytes, p: int, e: int, hosts: Ints, body: int) -> bool:
    """True if the id `p:e` of a stored message names the broker that stored the trace message."""
    words = 1 if e - p == 32 else 4
    for k in range(4):
        if hosts[k, body] != (_hex(b, p + 8 * k, p + 8 * k + 8) if k < words else 0):
            return False
    return bool(hosts[4, body] == _hex(b, p + 8 * words, p + 8 * words + 8))
