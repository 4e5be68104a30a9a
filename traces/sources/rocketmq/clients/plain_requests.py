"""Plain lines of a client log, sorted out by what they tell of: in one pass, and no text becomes an object.

What a line must say, `request_lines.py` says. Here it is asked of plain lines alone, and whatever is not as it should
be, or is rare, is left to whoever reads any line, and can tell what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from gapless.traces.events.plain_bytes import THERE
from gapless.traces.events.plain_lines import PlainBlock, PlainLines, ValueKind
from gapless.traces.native import native, njit
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
from gapless.traces.sources.rocketmq.clients.request_rows import Checks, Ends, Found, Resumes, Sends
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
    "uniqs": ValueKind.NESTED,  # which is a list, and so never plain
    "half": ValueKind.INTEGER,
    "decision": ValueKind.TEXT,
    "from_check": ValueKind.TRUTH,
    "times": ValueKind.TEXT,
    "request": ValueKind.INTEGER,
    "ext": ValueKind.NESTED,
}
PLAIN = PlainLines(KINDS, strange=True)
NESTED = [name for name, kind in KINDS.items() if kind is ValueKind.NESTED]

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
    """The rows of columns: every one of this kind, in their order."""
    known = [column.name for column in fields(kind)]
    assert sorted(known) == sorted(names)  # noqa: S101 - said when this is imported
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


def _letters(names: Sequence[str]) -> tuple[Bytes, Ints]:
    """Names behind one another, and where each begins and the last ends."""
    return np.frombuffer("".join(names).encode(), np.uint8), np.cumsum([0, *map(len, names)])


_OP_LETTERS, _OP_BOUNDS = _letters(OPS)
_RESULT_LETTERS, _RESULT_BOUNDS = _letters(RESULTS)
_DECISION_LETTERS, _DECISION_BOUNDS = _letters(DECISIONS)


def plain_block(block: bytes, count: int) -> PlainBlock | None:
    """Lines that are plain; None where one of them is not."""
    read = PLAIN.read(block, count)
    if read is None or not read.utf8() or any(read.has(PLAIN.number[name]).any() for name in NESTED):
        return None
    return read


def plain_requests(read: PlainBlock, before: int, topics: dict[str, int]) -> Found | None:
    """These lines as columns; None where one of them is rare, or not sound. `before`: how many come before them.

    The topics of what was sent are added to `topics`.
    """
    texts, topic = read.distinct(_TOPIC)
    met, filled = np.full(len(texts) + 1, -1, np.int64), np.zeros(4, np.int64)
    sends, ends, checks = (np.empty((len(fields(kind)), read.count), np.int64) for kind in (Sends, Ends, Checks))
    if not _sort_out(read.data, read.values, read.ends, read.there, before, topic, met, sends, ends, checks, filled):
        return None
    sent, ended, checked, used = filled.tolist()
    order = np.argsort(np.where(met < 0, len(met), met), kind="stable")[:used].tolist()
    known = np.array([topics.setdefault(texts[number], len(topics)) for number in order], np.int64)
    sends[_S_TOPIC, :sent] = known[sends[_S_TOPIC, :sent]]
    nothing = np.zeros(0, np.int64)
    resumes = Resumes(nothing, nothing, nothing)
    return Sends(*sends[:, :sent]), Ends(*ends[:, :ended]), Checks(*checks[:, :checked]), resumes


@native(lambda _b, values, *_: values.shape[1])
def _sort_out(
    b: Bytes,
    values: Ints,
    stops: Ints,
    there: Bytes,
    before: int,
    topic: Ints,
    met: Ints,
    sends: Ints,
    ends: Ints,
    checks: Ints,
    filled: Ints,
) -> bool:
    """Sort out lines; False where one is not for here.

    `topic`: which text each line has · `met`: the number of each text among those of what was sent, -1 for none yet
    · `filled`: how many rows there are of each kind, and topics.
    """
    for i in range(values.shape[1]):
        op = _code(b, values, stops, there, _OP, i, _OP_LETTERS, _OP_BOUNDS)
        if op in (SEND, HALF):
            sound = _sent(b, values, stops, there, i, op, topic, met, sends, filled)
            sends[_S_LINE, filled[0] - 1] = before + i + 1
        elif op == END:
            sound = _ended(b, values, stops, there, i, ends, filled)
            ends[_E_LINE, filled[1] - 1] = before + i + 1
        elif op == CHECK:
            sound = _checked(b, values, stops, there, i, checks, filled)
            checks[_C_LINE, filled[2] - 1] = before + i + 1
        else:
            sound = op >= ADMIN and (op > ADMIN or _given(values, there, _REQUEST, i) != RESUME)
        if not sound:
            return False
    return True


@njit(inline="always")
def _sent(
    b: Bytes, values: Ints, stops: Ints, there: Bytes, i: int, op: int, topic: Ints, met: Ints, sends: Ints,
    filled: Ints,
) -> bool:  # fmt: skip
    """Add a message, and say whether it is sound."""
    s, which, queue = filled[0], topic[i], values[_QUEUE, i]
    filled[0] += 1
    result = _code(b, values, stops, there, _RESULT, i, _RESULT_LETTERS, _RESULT_BOUNDS)
    number, position = _given(values, there, _QOFF, i), _given(values, there, _PHYS, i)
    crc, length = _given(values, there, _CRC, i), _given(values, there, _LEN, i)
    if min(number, position, crc, length) < -1 or max(number, position) >= _LARGE:
        return False
    if crc >= _WORD or length >= _SMALL or there[_QUEUE, i] != THERE or not -1 <= queue < _SMALL:
        return False
    if result < 0 or result == NONE or (result == OK and number >= 0 and queue < 0):
        return False
    if which < 0 or values[_TOPIC, i] == stops[_TOPIC, i]:
        return False
    if met[which] < 0:
        met[which] = filled[3]
        filled[3] += 1
    sends[_S_POSITION, s] = position if result == OK else np.int64(-1)
    sends[_S_NUMBER, s] = number if result == OK else np.int64(-1)
    sends[_S_KEY, s], sends[_S_LENGTH, s], sends[_S_COUNT, s] = _key(b, values, stops, there, i), length, 1
    sends[_S_CRC, s] = crc & 0x7FFFFFFF if crc >= 0 else np.int64(-1)  # a broker drops the top bit
    sends[_S_TOPIC, s], sends[_S_QUEUE, s] = met[which], queue
    sends[_S_HALF, s], sends[_S_RESULT, s] = op == HALF, result
    return True


@njit(inline="always")
def _ended(b: Bytes, values: Ints, stops: Ints, there: Bytes, i: int, ends: Ints, filled: Ints) -> bool:
    """Add a decision, and say whether it is sound."""
    e, number, position = filled[1], _given(values, there, _HALF, i), _given(values, there, _PHYS, i)
    filled[1] += 1
    result = _code(b, values, stops, there, _RESULT, i, _RESULT_LETTERS, _RESULT_BOUNDS)
    decision = _code(b, values, stops, there, _DECISION, i, _DECISION_LETTERS, _DECISION_BOUNDS)
    ends[_E_KEY, e], ends[_E_NUMBER, e], ends[_E_POSITION, e] = _key(b, values, stops, there, i), number, position
    ends[_E_DECISION, e], ends[_E_RESULT, e] = decision, result
    ends[_E_FROM_CHECK, e] = values[_FROM_CHECK, i] if there[_FROM_CHECK, i] == THERE else np.int64(0)
    said = result >= 0 and decision >= 0 and (result != NONE or decision == UNDECIDED)
    return bool(said and _is_version(number, position))


@njit(inline="always")
def _checked(b: Bytes, values: Ints, stops: Ints, there: Bytes, i: int, checks: Ints, filled: Ints) -> bool:
    """Add a back-check, and say whether it is sound."""
    c, number, position = filled[2], _given(values, there, _HALF, i), _given(values, there, _PHYS, i)
    filled[2] += 1
    counted = there[_TIMES, i] == THERE
    times = number_in(b, values[_TIMES, i], stops[_TIMES, i]) if counted else np.int64(-1)
    checks[_C_KEY, c], checks[_C_NUMBER, c], checks[_C_POSITION, c] = _key(b, values, stops, there, i), number, position
    checks[_C_TIMES, c] = times
    return bool((times >= 0 or not counted) and _is_version(number, position))


@njit(inline="always")
def _is_version(number: int, position: int) -> bool:
    """Whether these name a version of a half."""
    return bool(0 <= number < _LARGE and 0 <= position < _LARGE)


@njit(inline="always")
def _given(values: Ints, there: Bytes, key: int, line: int) -> int:
    """An integer of a line; -1 where it says none. What is below 0 is given as -2: nothing may be."""
    if there[key, line] != THERE:
        return np.int64(-1)
    return values[key, line] if values[key, line] >= 0 else np.int64(-2)


@njit(inline="always")
def _key(b: Bytes, values: Ints, stops: Ints, there: Bytes, line: int) -> int:
    """The digest of a message's key; 0 where a line says none."""
    if there[_UNIQ, line] != THERE:
        return np.int64(0)
    return digest(b, values[_UNIQ, line], stops[_UNIQ, line])


@njit(inline="always")
def _code(
    b: Bytes, values: Ints, stops: Ints, there: Bytes, key: int, line: int, letters: Bytes, bounds: Ints
) -> int:  # fmt: skip
    """The index of a line's text among these names; -1 where it says none of them."""
    if there[key, line] != THERE:
        return np.int64(-1)
    begin, length = values[key, line], stops[key, line] - values[key, line]
    for code in range(len(bounds) - 1):
        low = bounds[code]
        if bounds[code + 1] - low == length:
            same = 0
            while same < length and b[begin + same] == letters[low + same]:
                same += 1
            if same == length:
                return np.int64(code)
    return np.int64(-1)
