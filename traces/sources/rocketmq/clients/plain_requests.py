"""Reads the plain lines of a client log in one pass, by kind, without making objects of text.

`request_lines.py` defines the lines. Here only plain lines are checked; a line that is wrong or unusual is left to the
slow reader of any line, which can report the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gapless.native import BYTES, I64, INTS, INTS8, INTS32, TupleKind, function, record, uint64
from gapless.native.swar import TOPS, Words, are_same, word_of
from gapless.traces.events.plain_bytes import ABSENT, LINE_ROOM, NOT_PLAIN, THERE, LineRoom, next_lines, spread
from gapless.traces.events.plain_lines import PlainBlock, PlainLines, ValueKind, is_utf8
from gapless.traces.sources.rocketmq.clients.request_lines import (
    ADMIN,
    CHECK,
    DECISIONS,
    END,
    HALF,
    NONE,
    OK,
    OPS,
    RESULTS,
    RESUME,
    SEND,
    UNDECIDED,
)
from gapless.traces.sources.rocketmq.clients.request_rows import Checks, Ends, RowBuffer, Sends
from gapless.traces.sources.rocketmq.store.bytes import Bytes, Ints, digest, number_in

KINDS = {
    "op": ValueKind.TEXT,
    "result": ValueKind.TEXT,
    "topic": ValueKind.TEXT,
    "queue": ValueKind.INTEGER,
    "uniq": ValueKind.TEXT,
    "qoff": ValueKind.INTEGER,
    "phys": ValueKind.INTEGER,
    "len": ValueKind.INTEGER,
    "crc": ValueKind.INTEGER,
    "n": ValueKind.INTEGER,
    "uniqs": ValueKind.OTHER,  # a list
    "half": ValueKind.INTEGER,
    "decision": ValueKind.TEXT,
    "from_check": ValueKind.TRUTH,
    "times": ValueKind.TEXT,
    "request": ValueKind.INTEGER,
    "ext": ValueKind.OTHER,  # an object
}
PLAIN = PlainLines(KINDS, strange=True)
AT_ONCE = 64  # lines: what they say takes 20 KB

# What a line may say.
_OP, _RESULT, _TOPIC, _QUEUE, _UNIQ, _QOFF, _PHYS, _LEN, _CRC, _HALF, _DECISION, _FROM_CHECK, _TIMES, _REQUEST = (
    PLAIN.number[name]
    for name in (
        "op", "result", "topic", "queue", "uniq", "qoff", "phys", "len", "crc", "half", "decision", "from_check",
        "times", "request",
    )
)  # fmt: skip
_LARGE, _SMALL, _WORD = 2**62, 2**31, 2**32


def _rows(kind: type[Sends | Ends | Checks], *names: str) -> Sequence[int]:
    """Returns the rows of columns of one kind, in order."""
    known = [column.name for column in fields(kind)]
    assert sorted(known) == sorted(names)  # noqa: S101 - an assertion about the source, checked at import
    return [known.index(name) for name in names]


(
    _S_LINE, _S_POSITION, _S_NUMBER, _S_COUNT, _S_KEY, _S_CRC, _S_LENGTH, _S_TOPIC, _S_QUEUE, _S_HALF, _S_RESULT,
) = _rows(
    Sends, "line", "position", "number", "count", "key", "crc", "length", "topic", "queue", "half", "result"
)  # fmt: skip
_E_LINE, _E_KEY, _E_NUMBER, _E_POSITION, _E_DECISION, _E_RESULT, _E_FROM_CHECK = _rows(
    Ends, "line", "key", "number", "position", "decision", "result", "from_check"
)
_C_LINE, _C_KEY, _C_NUMBER, _C_POSITION, _C_TIMES = _rows(Checks, "line", "key", "number", "position", "times")


def _words(names: Sequence[str]) -> Words:
    """Names of eight letters at most, each as one word."""
    assert max(map(len, names)) <= 8  # noqa: S101 - an assertion about the source, checked at import
    return np.array([int.from_bytes(name.encode(), "little") for name in names], np.uint64)


_OPS, _RESULTS, _DECISIONS = _words(OPS), _words(RESULTS), _words(DECISIONS)


def plain_block(block: bytes, count: int) -> PlainBlock | None:
    """Returns plain lines in the form for `any_requests`; None if one is not plain."""
    read = PLAIN.read(block, count)
    return read if read is not None and read.utf8() else None


class TopicNumbers(NamedTuple):
    """Topics by their numbers, as a kernel adds to them.

    `letters`: of all, one behind the other · `bounds`: where each begins · `table`: numbers, -1 where it is empty.
    """

    letters: Bytes
    bounds: Ints
    table: Ints


class RequestReader:
    """Reads plain lines into columns that grow. The topics of what was sent are added to `topics`."""

    def __init__(
        self, topics: dict[str, int], sends: RowBuffer[Sends], ends: RowBuffer[Ends], checks: RowBuffer[Checks]
    ) -> None:
        self._topics = topics
        self._growing: tuple[RowBuffer[Any], ...] = sends, ends, checks
        rows = np.arange(len(KINDS))
        self._lines = PLAIN.room(AT_ONCE, len(rows))._replace(rows=rows, used=np.array([len(rows)]))
        self._known, self._in_table = (
            TopicNumbers(np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros(0, np.int64)),
            0,
        )

    @staticmethod
    def pays(size: int) -> bool:
        """True if so many bytes are worth four seconds of compiling, or the kernel is compiled already."""
        return PlainLines.pays(size, _read_requests)

    def read(self, block: bytes, before: int, count: int, times: float) -> bool:
        """Reads so many whole lines; False if one is unusual or wrong: nothing is read then.

        `before`: how many come before them · `times`: how many times as many there are in all, or so.
        """
        topics, data = self._topics, np.frombuffer(block, np.uint8)
        filled = np.array([*(rows.count for rows in self._growing), len(topics), -1], np.int64)
        columns = [rows.columns(count, times) for rows in self._growing]
        fresh = self._make_room(count, len(block))
        read = _read_requests(data, self._lines, self._known, fresh, before, count, *columns, filled)
        self._in_table = -1  # it may have some of a block that is not read
        if read < 0 or (read and not is_utf8(block)):
            return False
        for rows, there in zip(self._growing, filled.tolist(), strict=False):
            rows.count = there
        for begin, end in pairwise(self._known.bounds[len(topics) : filled[3] + 1].tolist()):
            topics[self._known.letters[begin:end].tobytes().decode()] = len(topics)
        self._in_table = len(topics)
        return True

    def _make_room(self, more: int, letters: int) -> int:
        """Makes room for so many topics and letters; returns the number of topics that are in no table yet."""
        known, topics = self._known, self._topics
        used, count = int(known.bounds[max(self._in_table, 0)]), len(topics) + more
        if self._in_table == len(topics) and used + letters <= len(known.letters) and count < len(known.bounds):
            return 0
        names = [topic.encode() for topic in topics]
        bounds = np.zeros(2 * count + 1, np.int64)
        bounds[1 : len(names) + 1] = np.cumsum([len(name) for name in names])
        room = np.empty(2 * (bounds[len(names)] + letters), np.uint8)
        room[: bounds[len(names)]] = np.frombuffer(b"".join(names), np.uint8)
        self._known = TopicNumbers(room, bounds, np.full(1 << (4 * count).bit_length(), -1, np.int64))
        return len(names)


@function(kinds=(
    BYTES, LINE_ROOM, record(TopicNumbers, BYTES, INTS, INTS), I64, I64, I64, TupleKind((INTS, INTS, INTS, INTS32, INTS,
    INTS32, INTS32, INTS32, INTS32, INTS8, INTS8)), TupleKind((INTS, INTS, INTS, INTS, INTS8, INTS8, INTS8)),
    TupleKind((INTS, INTS, INTS, INTS, INTS)), INTS
))  # fmt: skip
def _read_requests(
    data: Bytes, lines: LineRoom, known: TopicNumbers, fresh: int, before: int, count: int, sends: tuple[Ints, ...],
    ends: tuple[Ints, ...], checks: tuple[Ints, ...], filled: Ints,
) -> int:  # fmt: skip
    """Reads lines into columns by kind; -1 for an unusual line, else 1 if a byte is outside of ASCII.

    `fresh`: so many topics are in no table yet · `filled`: how many rows there are of each kind, how many topics, and
    the last message's topic, -1 before any. A few lines are read at once: what they say is sorted out while it is in a
    processor's nearest cache.
    """
    for number in range(fresh):
        known.table[_place_of(known.letters, known.bounds[number], known.bounds[number + 1], known)] = number
    at, high, line = 0, uint64(0), 0
    values, stops, there = lines.values, lines.ends, lines.there
    while line < count:
        some = min(there.shape[1], count - line)
        there[:] = ABSENT
        at, high = next_lines(data, at, high, lines, some)
        if at < 0:
            return NOT_PLAIN
        for i in range(some):
            if not _sort_out(data, values, stops, there, i, before + line + i + 1, known, sends, ends, checks, filled):
                return NOT_PLAIN
        line += some
    return 1 if high & TOPS else 0


@function(inline=True)
def _sort_out(
    b: Bytes, values: Ints, stops: Ints, there: Bytes, i: int, line: int, known: TopicNumbers, sends: tuple[Ints, ...],
    ends: tuple[Ints, ...], checks: tuple[Ints, ...], filled: Ints,
) -> bool:  # fmt: skip
    """Reads a line into the columns of its kind; False for an unusual one."""
    op = _code(b, values, stops, there, _OP, i, _OPS)
    if op in (SEND, HALF):
        sends[_S_LINE][filled[0]] = line
        return _sent(b, values, stops, there, i, op, known, sends, filled)
    if op == END:
        ends[_E_LINE][filled[1]] = line
        return _ended(b, values, stops, there, i, ends, filled)
    if op == CHECK:
        checks[_C_LINE][filled[2]] = line
        return _checked(b, values, stops, there, i, checks, filled)
    return bool(op >= ADMIN and (op > ADMIN or _given(values, there, _REQUEST, i) != RESUME))


@function(inline=True)
def _number_of(b: Bytes, low: int, high: int, known: TopicNumbers, filled: Ints) -> int:
    """Returns the number of a topic; an unknown topic gets a new one."""
    letters, bounds, table = known
    last = int(filled[4])
    if last >= 0 and _is_topic(b, low, high, known, last):
        return last
    place, number = _place_of(b, low, high, known), int(filled[3])
    known_as = int(table[place])
    filled[4] = known_as if known_as >= 0 else number
    if known_as >= 0:
        return known_as
    table[place], filled[3] = number, number + 1
    begin = bounds[number]
    for at in range(high - low):
        letters[begin + at] = b[low + at]
    bounds[number + 1] = begin + high - low
    return number


@function
def _place_of(b: Bytes, low: int, high: int, known: TopicNumbers) -> int:
    """Returns the table slot of a topic, or the free slot for it."""
    table = known.table
    last = len(table) - 1
    place = spread(b, low, high) & last
    while table[place] >= 0 and not _is_topic(b, low, high, known, table[place]):
        place = (place + 1) & last
    return place


@function
def _is_topic(b: Bytes, low: int, high: int, known: TopicNumbers, number: int) -> bool:
    """True if a text is the topic of this number."""
    begin, length = known.bounds[number], high - low
    return bool(known.bounds[number + 1] - begin == length and are_same(b, low, known.letters, begin, length))


@function(inline=True)
def _sent(
    b: Bytes, values: Ints, stops: Ints, there: Bytes, i: int, op: int, known: TopicNumbers, sends: tuple[Ints, ...],
    filled: Ints,
) -> bool:  # fmt: skip
    """Add a message, and say whether it is sound."""
    s, queue = uint64(filled[0]), values[_QUEUE, i]
    filled[0] += 1
    result = _code(b, values, stops, there, _RESULT, i, _RESULTS)
    number, position = _given(values, there, _QOFF, i), _given(values, there, _PHYS, i)
    crc, length = _given(values, there, _CRC, i), _given(values, there, _LEN, i)
    if min(number, position, crc, length) < -1 or max(number, position) >= _LARGE:
        return False
    if crc >= _WORD or length >= _SMALL or there[_QUEUE, i] != THERE or not -1 <= queue < _SMALL:
        return False
    if result < 0 or result == NONE or (result == OK and number >= 0 and queue < 0):
        return False
    if there[_TOPIC, i] != THERE or values[_TOPIC, i] == stops[_TOPIC, i]:
        return False
    topic = _number_of(b, values[_TOPIC, i], stops[_TOPIC, i], known, filled)
    sends[_S_POSITION][s] = position if result == OK else (-1)
    sends[_S_NUMBER][s] = number if result == OK else (-1)
    sends[_S_KEY][s], sends[_S_LENGTH][s], sends[_S_COUNT][s] = _key(b, values, stops, there, i), length, 1
    sends[_S_CRC][s] = crc & 0x7FFFFFFF if crc >= 0 else (-1)  # a broker drops the top bit
    sends[_S_TOPIC][s], sends[_S_QUEUE][s] = topic, queue
    sends[_S_HALF][s], sends[_S_RESULT][s] = op == HALF, result
    return True


@function(inline=True)
def _ended(b: Bytes, values: Ints, stops: Ints, there: Bytes, i: int, ends: tuple[Ints, ...], filled: Ints) -> bool:
    """Add a decision, and say whether it is sound."""
    e, number, position = uint64(filled[1]), _given(values, there, _HALF, i), _given(values, there, _PHYS, i)
    filled[1] += 1
    result = _code(b, values, stops, there, _RESULT, i, _RESULTS)
    decision = _code(b, values, stops, there, _DECISION, i, _DECISIONS)
    ends[_E_KEY][e], ends[_E_NUMBER][e], ends[_E_POSITION][e] = _key(b, values, stops, there, i), number, position
    ends[_E_DECISION][e], ends[_E_RESULT][e] = decision, result
    ends[_E_FROM_CHECK][e] = values[_FROM_CHECK, i] if there[_FROM_CHECK, i] == THERE else 0
    sound = result >= 0 and decision >= 0 and (result != NONE or decision == UNDECIDED)
    return bool(sound and _is_version(number, position))


@function(inline=True)
def _checked(b: Bytes, values: Ints, stops: Ints, there: Bytes, i: int, checks: tuple[Ints, ...], filled: Ints) -> bool:
    """Add a back-check, and say whether it is sound."""
    c, number, position = uint64(filled[2]), _given(values, there, _HALF, i), _given(values, there, _PHYS, i)
    filled[2] += 1
    counted = there[_TIMES, i] == THERE
    times = number_in(b, values[_TIMES, i], stops[_TIMES, i]) if counted else (-1)
    checks[_C_KEY][c], checks[_C_NUMBER][c], checks[_C_POSITION][c] = _key(b, values, stops, there, i), number, position
    checks[_C_TIMES][c] = times
    return bool((times >= 0 or not counted) and _is_version(number, position))


@function(inline=True)
def _is_version(number: int, position: int) -> bool:
    """True if these name a version of a half."""
    return bool(0 <= number < _LARGE and 0 <= position < _LARGE)


@function(inline=True)
def _given(values: Ints, there: Bytes, key: int, line: int) -> int:
    """Returns an integer of a line; -1 without it, -2 for any value below 0, which is not allowed."""
    if there[key, line] != THERE:
        return -1
    return values[key, line] if values[key, line] >= 0 else (-2)


@function(inline=True)
def _key(b: Bytes, values: Ints, stops: Ints, there: Bytes, line: int) -> int:
    """Returns the digest of a message's key; 0 without one."""
    if there[_UNIQ, line] != THERE:
        return 0
    return digest(b, values[_UNIQ, line], stops[_UNIQ, line])


@function(inline=True)
def _code(b: Bytes, values: Ints, stops: Ints, there: Bytes, key: int, line: int, names: Words) -> int:
    """Returns the index of a line's text among these names; -1 for any other."""
    begin, end = values[key, line], stops[key, line]
    if there[key, line] != THERE or end - begin > 8:
        return -1
    word = word_of(b, begin, end - begin)
    for code in range(len(names)):
        if names[code] == word:
            return code
    return -1
