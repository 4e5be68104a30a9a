"""Input of a program, checked before anything is written: impossible records are refused, whole.

A record is found again by what it says of itself. One that contradicts itself would be taken for a torn one after a
crash, and everything behind it with it.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from gapless.impl.records.errors import Refused
from gapless.impl.records.kernels import starts_with
from gapless.impl.records.record import LONGEST_PROPERTIES, RESERVED, Bytes, Ints, Messages
from gapless.native import BYTES, INTS, function

_RESERVED = np.frombuffer(b"".join(name.encode() + b"\x01" for name in RESERVED), np.uint8)
_RESERVED_ENDS = np.cumsum([0, *(len(name) + 1 for name in RESERVED)])


def queue_number(queue: object) -> int:
    """A queue's number as a plain integer: it names a folder too. Raises Refused."""
    try:
        number = int(operator.index(queue))  # type: ignore[arg-type]  # what is no integer raises
    except TypeError:
        number = -1
    if not 0 <= number < 1 << 31:
        raise Refused(f"queue {queue!r}: expected an integer from 0 to {(1 << 31) - 1}")
    return number


def sound(messages: Messages) -> Messages:
    """The same messages in columns as kernels take them. Raises Refused where they are none, and says which."""
    pairs = [(topic, queue_number(queue)) for topic, queue in messages.queues]
    if len(set(pairs)) < len(pairs):
        raise Refused(f"`queues` names {_twice(pairs)} twice; name every queue once")
    index: npt.NDArray[np.int32] = _column(messages.queue_index, np.int32, "queue_index")
    if len(index) and not 0 <= index.min() <= index.max() < len(pairs):
        raise Refused(f"`queue_index` has {index.min()} to {index.max()}, expected indices of the {len(pairs)} queues")
    bodies, body_ends = _texts(messages.bodies, messages.body_ends, len(index), "bodies", "body_ends")
    if messages.property_ends is None:
        return Messages(pairs, index, bodies, body_ends, np.zeros(0, np.uint8), np.zeros(len(index) + 1, np.int64))
    properties, property_ends = _texts(
        messages.properties, messages.property_ends, len(index), "properties", "property_ends"
    )
    _require_properties(properties, property_ends)
    return Messages(pairs, index, bodies, body_ends, properties, property_ends)


def _twice(pairs: list[tuple[str, int]]) -> str:
    topic, queue = next(pair for number, pair in enumerate(pairs) if pair in pairs[:number])
    return f"{topic}/{queue}"


def _column(given: object, kind: type[np.integer[Any]], name: str) -> npt.NDArray[Any]:
    """A column of integers. Raises Refused."""
    column = np.asarray(given)
    if column.ndim != 1 or (len(column) and column.dtype.kind not in "iu"):
        raise Refused(f"`{name}`: expected a column of integers, found {column.dtype} of shape {column.shape}")
    if len(column) and not np.iinfo(kind).min <= column.min() <= column.max() <= np.iinfo(kind).max:
        raise Refused(f"`{name}`: {column.min()} to {column.max()} is beyond {np.dtype(kind)}")
    return np.ascontiguousarray(column, kind)


def _texts(data: object, given: object, count: int, several: str, ends_name: str) -> tuple[Bytes, Ints]:
    """Texts one after the other, and where each begins and ends. Raises Refused."""
    text: Bytes = _column(data, np.uint8, several)
    ends: Ints = _column(given, np.int64, ends_name)
    if len(ends) != count + 1 or ends[0] < 0 or (np.diff(ends) < 0).any() or ends[-1] > len(text):
        raise Refused(
            f"`{ends_name}`: expected {count + 1} positions that never fall, from 0 on and up to the {len(text)} bytes "
            f"of `{several}`"
        )
    return text, ends


def _require_properties(properties: Bytes, ends: Ints) -> None:
    lengths = np.diff(ends)
    if len(lengths) and lengths.max() > LONGEST_PROPERTIES:
        raise Refused(
            f"message {int(lengths.argmax())}: {lengths.max()} bytes of properties, expected at most "
            f"{LONGEST_PROPERTIES}; put them into the body"
        )
    bad = first_unsound(properties, ends, _RESERVED, _RESERVED_ENDS)
    if bad >= 0:
        text = properties[ends[bad] : ends[bad + 1]].tobytes()
        raise Refused(
            f"message {bad}: properties {text[:80]!r}, expected `name 0x01 value 0x02` again and again, without NUL, "
            f"and none of {', '.join(RESERVED)}: use `properties_bytes`"
        )


@function(kinds=(BYTES, INTS, BYTES, INTS))
def first_unsound(data: Bytes, ends: Ints, reserved: Bytes, reserved_ends: Ints) -> int:
    """The first text that is no list of properties, or has a reserved name in it; -1 where all are sound."""
    for i in range(len(ends) - 1):
        p, e = ends[i], ends[i + 1]
        if p < e and data[e - 1] != 2:
            return i
        begins = p
        named = False
        for at in range(p, e):
            c = data[at]
            if c == 0 or (c == 1 and (named or at == begins)) or (c == 2 and (not named or data[at - 1] == 1)):
                return i
            if c == 1:
                named = True
                for k in range(len(reserved_ends) - 1):
                    name = reserved[reserved_ends[k] : reserved_ends[k + 1]]
                    if starts_with(data, begins, at + 1, name):  # its end is the separator
                        return i
            elif c == 2:
                begins, named = at + 1, False
    return -1


def plain_bytes(body: object) -> bytes:
    """The bytes of a buffer. Raises Refused where it is none."""
    try:
        return bytes(memoryview(body))  # type: ignore[arg-type]  # what has no buffer raises
    except TypeError as error:
        raise Refused(f"body {body!r:.80}: expected bytes") from error
