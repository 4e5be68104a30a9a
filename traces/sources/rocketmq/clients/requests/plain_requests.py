"""Reads the plain lines of a client log in one pass, by kind, without making objects of text.

`request_lines.py` defines the lines. Here only plain lines are checked; a line that is wrong or unusual is left to
`any_requests.py`, which can report the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np

from gapless.native import BYTES, I64, INTS, INTS8, INTS32, TupleKind, function, record, uint64
from gapless.native.swar import TOPS, Words, are_same, word_of
from gapless.traces.events.lines.line_texts import spread
from gapless.traces.events.lines.plain_bytes import (
    ABSENT,
    AN_N,
    CLOSED_LIST,
    COMMA,
    LINE_ROOM,
    NINE,
    QUOTE,
    THERE,
    ZERO,
    LineRoom,
    next_lines,
    spaces,
)
from gapless.traces.events.lines.plain_lines import PlainLines, ValueKind, is_utf8
from gapless.traces.sources.rocketmq.clients.requests.request_lines import (
    ADMIN,
    BATCH,
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
from gapless.traces.sources.rocketmq.clients.requests.request_rows import Checks, Ends, RowBuffer, Sends
from gapless.traces.sources.rocketmq.columns.bytes import Bytes, Ints, digest, number_in, place_of

KINDS = {
    "op": ValueKind.TEXT,
    "result": ValueKind.TEXT,
    "topic": ValueKind.TEXT,
    "queue": ValueKind.INTEGER,
    "uniq": ValueKind.TEXT,
    "qoff": ValueKind.INTEGER,
    "phys": ValueKind.LISTED,  # a list of a batch
    "len": ValueKind.INTEGER,
    "crc": ValueKind.INTEGER,
    "n": ValueKind.INTEGER,
    "uniqs": ValueKind.LISTED,
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
(
    _OP, _RESULT, _TOPIC, _QUEUE, _UNIQ, _QOFF, _PHYS, _LEN, _CRC, _N, _UNIQS, _HALF, _DECISION, _FROM_CHECK, _TIMES,
    _REQUEST,
) = (PLAIN.number[name] for name in KINDS if name != "ext")  # fmt: skip
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


class TopicNumbers(NamedTuple):
    """Topics by their numbers, as a kernel adds to them.

    `letters`: of all, one behind the other · `bounds`: where each begins · `table`: numbers, -1 where it is empty.
    """

    letters: Bytes
    bounds: Ints
    table: Ints


NO_TOPICS = TopicNumbers(np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros(0, np.int64))


class RequestReader:
    """Reads plain lines into columns that grow. The topics of what was sent are added to `topics`."""

    def __init__(
        self, topics: dict[str, int], sends: RowBuffer[Sends], ends: RowBuffer[Ends], checks: RowBuffer[Checks]
    ) -> None:
        self._topics = topics
        self._growing: tuple[RowBuffer[Any], ...] = sends, ends, checks
        rows = np.arange(len(KINDS))
        self._lines = PLAIN.room(AT_ONCE, len(rows))._replace(rows=rows, used=np.array([len(rows)]))
        self._known, self._in_table = NO_TOPICS, 0

    @staticmethod
    def pays(size: int) -> bool:
        """True if so many bytes are worth compiling the kernel, or it is compiled already."""
        return PlainLines.pays(size, _read_requests)

    def read(self, block: bytes, begin: int, before: int, count: int, times: float) -> tuple[int, int]:
        """Reads up to `count` whole lines from `begin` on; returns the number of those read, and their end.

        It stops at the first line that is unusual or wrong. `before`: how many lines come before them · `times`: how
        many times as many there are in all, or so.
        """
        topics, data = self._topics, np.frombuffer(block, np.uint8)[begin:]
        columns = [rows.columns(count, times) for rows in self._growing]
        fresh = self._make_room(count, len(data))
        filled = np.array([*(rows.count for rows in self._growing), len(topics), -1], np.int64)
        read, size, wide = _read_requests(data, self._lines, self._known, fresh, before, count, *columns, filled)
        if wide and not is_utf8(block[begin : begin + size]):
            self._known, self._in_table = NO_TOPICS, 0  # for the table may have some of them
            return 0, begin
        for rows, there in zip(self._growing, filled.tolist(), strict=False):
            rows.count = there
        for low, high in pairwise(self._known.bounds[len(topics) : filled[3] + 1].tolist()):
            topics[self._known.letters[low:high].tobytes().decode()] = len(topics)
        self._in_table = len(topics)
        return read, begin + size

    def _make_room(self, more: int, letters: int) -> int:
        """Makes room for so many topics and letters; returns the first topic that is not in the table yet."""
        count = len(self._topics) + more
        names = [topic.encode() for topic in islice(self._topics, self._in_table, None)]
        used = int(self._known.bounds[self._in_table])
        needed = used + sum(map(len, names)) + letters
        if count >= len(self._known.bounds) or needed > len(self._known.letters):
            names, used, self._in_table = [topic.encode() for topic in self._topics], 0, 0
            self._known = TopicNumbers(
                np.empty(2 * needed, np.uint8),
                np.zeros(2 * count + 1, np.int64),
                np.full(1 << (4 * count).bit_length(), -1, np.int64),
            )
        ends = used + np.cumsum([len(name) for name in names], dtype=np.int64)
        self._known.bounds[self._in_table + 1 : len(self._topics) + 1] = ends
        self._known.letters[used : used + sum(map(len, names))] = np.frombuffer(b"".join(names), np.uint8)
        return self._in_table


@function(kinds=(
    BYTES, LINE_ROOM, record(TopicNumbers, BYTES, INTS, INTS), I64, I64, I64, TupleKind((INTS, INTS, INTS, INTS32, INTS,
    INTS32, INTS32, INTS32, INTS32, INTS8, INTS8)), TupleKind((INTS, INTS, INTS, INTS, INTS8, INTS8, INTS8)),
    TupleKind((INTS, INTS, INTS, INTS, INTS)), INTS
))  # fmt: skip
def _read_requests(
    data: Bytes, lines: LineRoom, known: TopicNumbers, fresh: int, before: int, count: int, sends: tuple[Ints, ...],
    ends: tuple[Ints, ...], checks: tuple[Ints, ...], filled: Ints,
) -> tuple[int, int, int]:  # fmt: skip
    """Reads lines into columns by kind, up to an unusual one; returns their number, their end, and 1 if not all ASCII.

    `fresh`: the first topic that is in no table yet · `filled`: how many rows there are of each kind, how many topics,
    and the last message's topic, -1 before any. A few lines are read at once: what they say is sorted out while it is
    in a processor's nearest cache. From a few with an unusual one on, it is one by one, up to that one.
    """
    for number in range(fresh, filled[3]):
        known.table[_place_of(known.letters, known.bounds[number], known.bounds[number + 1], known)] = number
    at, high, line, size = 0, uint64(0), 0, AT_ONCE
    while line < count:
        some, sound = min(size, count - line), 0
        lines.there[:] = ABSENT
        after, bits = next_lines(data, at, high, lines, some)
        sent, ended, checked = filled[0], filled[1], filled[2]
        if after >= 0:
            for i in range(some):
                if not _sort_out(data, lines, i, before + line + i + 1, known, sends, ends, checks, filled):
                    break
                sound += 1
        if sound < some:
            filled[0], filled[1], filled[2] = sent, ended, checked
            if some == 1:
                break
            size = 1
        else:
            at, high, line = after, bits, line + some
    return line, at, 1 if high & TOPS else 0


@function(inline=True)
def _sort_out(
    b: Bytes, lines: LineRoom, i: int, line: int, known: TopicNumbers, sends: tuple[Ints, ...], ends: tuple[Ints, ...],
    checks: tuple[Ints, ...], filled: Ints,
) -> bool:  # fmt: skip
    """Reads a line into the columns of its kind; False for an unusual one."""
    op = _code(b, lines, _OP, i, _OPS)
    if op in (SEND, HALF, BATCH):
        return _sent(b, lines, i, op, line, known, sends, filled)
    if op == END:
        ends[_E_LINE][filled[1]] = line
        return _ended(b, lines, i, ends, filled)
    if op == CHECK:
        checks[_C_LINE][filled[2]] = line
        return _checked(b, lines, i, checks, filled)
    return bool(op >= ADMIN and (op > ADMIN or _given(lines, _REQUEST, i) != RESUME))


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
    b: Bytes, lines: LineRoom, i: int, op: int, line: int, known: TopicNumbers, sends: tuple[Ints, ...], filled: Ints
) -> bool:  # fmt: skip
    """Adds a message, or those of a batch, and says whether the line is sound; a batch without room is left out."""
    result, number, queue = _code(b, lines, _RESULT, i, _RESULTS), _given(lines, _QOFF, i), lines.values[_QUEUE, i]
    if not -1 <= number < _LARGE or lines.there[_QUEUE, i] != THERE or not -1 <= queue < _SMALL:
        return False
    if result < 0 or result == NONE or (result == OK and number >= 0 and queue < 0):
        return False
    if lines.there[_TOPIC, i] != THERE or lines.values[_TOPIC, i] == lines.ends[_TOPIC, i]:
        return False
    topic = _number_of(b, lines.values[_TOPIC, i], lines.ends[_TOPIC, i], known, filled)
    to = _Sent(line, topic, queue, int(op == HALF), result)
    if op == BATCH:
        return _batched(b, lines, i, to, number, sends, filled)
    position, crc, length = _place(lines, i), _given(lines, _CRC, i), _given(lines, _LEN, i)
    if min(position, crc, length) < -1 or position >= _LARGE or crc >= _WORD or length >= _SMALL:
        return False
    _put(sends, filled, to, position, number, 1, _key(b, lines, i), crc, length)
    return True


class _Sent(NamedTuple):
    """The columns that all messages of a line have in common."""

    line: int
    topic: int
    queue: int
    half: int
    result: int


@function(inline=True)
def _put(
    sends: tuple[Ints, ...], filled: Ints, to: _Sent, position: int, number: int, count: int, key: int, crc: int,
    length: int,
) -> None:  # fmt: skip
    """Writes a row. A position and a number are only those that an answer gave."""
    s = uint64(filled[0])
    filled[0] += 1
    sends[_S_LINE][s], sends[_S_TOPIC][s], sends[_S_QUEUE][s] = to.line, to.topic, to.queue
    sends[_S_HALF][s], sends[_S_RESULT][s], sends[_S_COUNT][s] = to.half, to.result, count
    sends[_S_POSITION][s] = position if to.result == OK else (-1)
    sends[_S_NUMBER][s] = number if to.result == OK else (-1)
    sends[_S_KEY][s], sends[_S_LENGTH][s] = key, length
    sends[_S_CRC][s] = crc & 0x7FFFFFFF if crc >= 0 else (-1)  # a broker drops the top bit


@function
def _batched(
    b: Bytes, lines: LineRoom, i: int, to: _Sent, number: int, sends: tuple[Ints, ...], filled: Ints
) -> bool:  # fmt: skip
    """Adds the messages of a batch, or one row for all if it does not name them; False for an unusual one."""
    count, named, placed = _given(lines, _N, i), lines.there[_UNIQS, i] == THERE, lines.there[_PHYS, i] == THERE
    p, q = lines.values[_UNIQS, i], lines.values[_PHYS, i]
    if not 1 <= count < _SMALL or (named and lines.ends[_UNIQS, i] == 0) or (placed and lines.ends[_PHYS, i] == 0):
        return False
    rows = count if named or placed else 1
    if filled[0] + rows > len(sends[_S_KEY]):
        return False
    for k in range(rows):
        key, position, behind = 0, -1, COMMA if k < rows - 1 else CLOSED_LIST
        if named:
            key, p = _listed_key(b, spaces(b, p + 1), lines.ends[_UNIQS, i])
            if p < 0 or b[p] != behind:
                return False
        if placed:
            position, q = _listed_place(b, spaces(b, q + 1))
            if position < 0 or b[q] != behind:
                return False
        of_each = 1 if named or placed else count
        _put(sends, filled, to, position, number + k if number >= 0 else (-1), of_each, key, -1, -1)
    return True


@function(inline=True)
def _listed_key(b: Bytes, p: int, stop: int) -> tuple[int, int]:
    """Returns the digest of a listed key, 0 for null, and the place behind it; -1 behind anything else."""
    if b[p] == QUOTE:
        end = place_of(b, p + 1, stop, QUOTE)
        return digest(b, p + 1, end), spaces(b, end + 1)
    return 0, spaces(b, p + 4) if b[p] == AN_N else (-1)


@function(inline=True)
def _listed_place(b: Bytes, p: int) -> tuple[int, int]:
    """Returns the number at `p` of a list, -1 for anything else, and the place behind it."""
    end = p
    while ZERO <= b[end] <= NINE:
        end += 1
    return number_in(b, p, end), spaces(b, end)


@function(inline=True)
def _ended(b: Bytes, lines: LineRoom, i: int, ends: tuple[Ints, ...], filled: Ints) -> bool:
    """Add a decision, and say whether it is sound."""
    e, number, position = uint64(filled[1]), _given(lines, _HALF, i), _place(lines, i)
    filled[1] += 1
    result = _code(b, lines, _RESULT, i, _RESULTS)
    decision = _code(b, lines, _DECISION, i, _DECISIONS)
    ends[_E_KEY][e], ends[_E_NUMBER][e], ends[_E_POSITION][e] = _key(b, lines, i), number, position
    ends[_E_DECISION][e], ends[_E_RESULT][e] = decision, result
    ends[_E_FROM_CHECK][e] = lines.values[_FROM_CHECK, i] if lines.there[_FROM_CHECK, i] == THERE else 0
    sound = result >= 0 and decision >= 0 and (result != NONE or decision == UNDECIDED)
    return bool(sound and _is_version(number, position))


@function(inline=True)
def _checked(b: Bytes, lines: LineRoom, i: int, checks: tuple[Ints, ...], filled: Ints) -> bool:
    """Add a back-check, and say whether it is sound."""
    c, number, position = uint64(filled[2]), _given(lines, _HALF, i), _place(lines, i)
    filled[2] += 1
    counted = lines.there[_TIMES, i] == THERE
    times = number_in(b, lines.values[_TIMES, i], lines.ends[_TIMES, i]) if counted else (-1)
    checks[_C_KEY][c], checks[_C_NUMBER][c], checks[_C_POSITION][c] = _key(b, lines, i), number, position
    checks[_C_TIMES][c] = times
    return bool((times >= 0 or not counted) and _is_version(number, position))


@function(inline=True)
def _is_version(number: int, position: int) -> bool:
    """True if these name a version of a half."""
    return bool(0 <= number < _LARGE and 0 <= position < _LARGE)


@function(inline=True)
def _given(lines: LineRoom, key: int, i: int) -> int:
    """Returns an integer of a line; -1 without it, -2 for any value below 0, which is not allowed."""
    if lines.there[key, i] != THERE:
        return -1
    return lines.values[key, i] if lines.values[key, i] >= 0 else (-2)


@function(inline=True)
def _place(lines: LineRoom, i: int) -> int:
    """Returns the position that a line names; as `_given` does, and -2 for a list."""
    return _given(lines, _PHYS, i) if lines.ends[_PHYS, i] == 0 else (-2)


@function(inline=True)
def _key(b: Bytes, lines: LineRoom, i: int) -> int:
    """Returns the digest of a message's key; 0 without one."""
    if lines.there[_UNIQ, i] != THERE:
        return 0
    return digest(b, lines.values[_UNIQ, i], lines.ends[_UNIQ, i])


@function(inline=True)
def _code(b: Bytes, lines: LineRoom, key: int, i: int, names: Words) -> int:
    """Returns the index of a line's text among these names; -1 for any other."""
    begin, end = lines.values[key, i], lines.ends[key, i]
    if lines.there[key, i] != THERE or end - begin > 8:
        return -1
    word = word_of(b, begin, end - begin)
    for code in range(len(names)):
        if names[code] == word:
            return code
    return -1
