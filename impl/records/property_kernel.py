"""The properties of many messages, from dictionaries to the bytes of records, without a Python call for each.

msgpack walks the dictionaries, in C, and gives each text with its length
(https://github.com/msgpack/msgpack/blob/master/spec.md). A kernel writes them as records have them, and says
so where one cannot be written, or is not plain ASCII.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgpack
import numpy as np
import numpy.typing as npt
from numba import njit

from gapless.impl.environment.native_code import NativeCode

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]

_pack = msgpack.Packer().pack


def packed_properties(
    given: Sequence[Mapping[str, str]], reserved: tuple[str, ...], longest: int
) -> tuple[bytes, Ints] | None:
    """The properties of each, one after the other, and int64 [n], how many bytes those of each are.

    None where some are no dictionaries of plain ASCII texts, have a reserved name, or are longer than `longest` bytes:
    whoever looks at each can say which.
    """
    PROPERTY_CODE.load()
    return _packed(given, reserved, longest)


def _packed(given: Sequence[Mapping[str, str]], reserved: tuple[str, ...], longest: int) -> tuple[bytes, Ints] | None:
    try:
        packed = np.frombuffer(_pack(given), np.uint8)
    except (TypeError, ValueError, OverflowError):
        return None
    out, lengths = np.empty(len(packed), np.uint8), np.empty(len(given), np.int64)
    end = _unpack(packed, out, lengths, *_joined(reserved), longest)
    return None if end < 0 else (out[:end].tobytes(), lengths)


@lru_cache
def _joined(names: tuple[str, ...]) -> tuple[Bytes, Ints]:
    """Names one after the other, and where they end."""
    return np.frombuffer("".join(names).encode(), np.uint8), np.cumsum([0, *map(len, names)])


@njit(nogil=True, cache=True)
def _unpack(b: Bytes, out: Bytes, lengths: Ints, names: Bytes, name_ends: Ints, longest: int) -> int:
    """Write the properties of all; returns where they end, or -1 where some are not as they should be."""
    p, end = _counted(b, 0, 0x90, 0xDC)[1], 0
    for i in range(len(lengths)):
        begin = end
        count, p = _counted(b, p, 0x80, 0xDE)
        if count < 0:
            return -1
        for part in range(2 * count):
            length, p = _length(b, p)
            if length <= 0:
                return -1
            for k in range(p, p + length):
                if not 2 < b[k] < 128:
                    return -1
                out[end + k - p] = b[k]
            if part % 2 == 0 and _is_among(b, p, length, names, name_ends):
                return -1
            p += length
            end += length
            out[end] = 1 + part % 2
            end += 1
        if end - begin > longest:
            return -1
        lengths[i] = end - begin
    return end


@njit
def _counted(b: Bytes, p: int, small: int, wide: int) -> tuple[int, int]:
    """How many parts the array or map at `p` has, and where the first is; -1 where there is none.

    `small`: its mark where it has less than 16 · `wide`: where their count takes two bytes; one more, where four.
    """
    if b[p] & 0xF0 == small:
        return int(b[p]) & 15, p + 1
    if b[p] == wide:
        return _big(b, p + 1, 2), p + 3
    return (_big(b, p + 1, 4), p + 5) if b[p] == wide + 1 else (-1, p)


@njit
def _length(b: Bytes, p: int) -> tuple[int, int]:
    """How many bytes the text at `p` has, and where they are; -1 where there is none."""
    mark = b[p]
    if mark & 0xE0 == 0xA0:
        return int(mark) & 31, p + 1
    if not 0xD9 <= mark <= 0xDB:
        return -1, p
    width = 1 << (mark - 0xD9)
    return _big(b, p + 1, width), p + 1 + width


@njit
def _big(b: Bytes, p: int, width: int) -> int:
    value = 0
    for k in range(p, p + width):
        value = value << 8 | int(b[k])
    return value


@njit
def _is_among(b: Bytes, p: int, length: int, names: Bytes, name_ends: Ints) -> bool:
    for at in range(len(name_ends) - 1):
        if name_ends[at + 1] - name_ends[at] == length:
            same = True
            for k in range(length):
                same = same and b[p + k] == names[name_ends[at] + k]
            if same:
                return True
    return False


PROPERTY_CODE = NativeCode(lambda: _packed([{"TAGS": "paid"}], ("__CRC32#",), 100))
