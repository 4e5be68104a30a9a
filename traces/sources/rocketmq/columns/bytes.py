"""Bytes read in native code: big-endian numbers, checksums, digests, names."""

from __future__ import annotations

import os
import struct
import zlib
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gapless.native import BYTES, INTS, by_library, function, handed, int32, int64, native, uint32, uint64
from gapless.native.swar import ONES, TOPS, eight, few, first, word_of, zeros

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Crcs = npt.NDArray[np.uint32]

REMEMBERED = 4096  # short texts, by what reads them in Python
SHORT = 64  # bytes
LOW = (1 << 64) - 1
_1 = np.uint64(1)
_31_TO = np.array([31**n % 2**32 for n in range(9)], np.uint32)
_31_1, _31_2, _31_4 = np.uint64(31), np.uint64(31**2), np.uint64(31**4)
_EVEN_BYTES, _EVEN_PAIRS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)
_8, _16, _32 = np.uint64(8), np.uint64(16), np.uint64(32)


def _crc_tables() -> Crcs:
    """Builds tables of the zlib CRC for 16 bytes at once, from zlib itself.

    Each has 256 numbers, for the values of a byte: the first for a byte at the end, the next for one with a zero byte
    behind it, and so on.
    """
    nothing = zlib.crc32(bytes(1))  # what zlib does to its register before and behind the bytes, and no more
    alone = np.array([zlib.crc32(bytes([byte])) ^ nothing for byte in range(256)], np.uint32)
    tables = [alone]
    while len(tables) < 16:
        tables.append((tables[-1] >> 8) ^ alone[tables[-1] & 255])
    return np.concatenate(tables)


CRC_TABLES = _crc_tables()


@function(inline=True)
def readable(b: Bytes) -> Bytes:
    """The same bytes, not to be written: Python reads those of a `bytes` object in half the time."""
    return b


@by_library(readable)
def _readable(b: Bytes) -> Any:
    return bytes(b)


@function(inline=True)
def u32(b: Bytes, p: int) -> int:
    """Four bytes, big-endian, unsigned."""
    q = uint64(p)  # as `_le32` says
    return (
        (uint32(b[q]) << uint32(24))
        | (uint32(b[q + _1]) << uint32(16))
        | (uint32(b[q + uint64(2)]) << uint32(8))
        | uint32(b[q + uint64(3)])
    )


@function(inline=True)
def i32(b: Bytes, p: int) -> int:
    """Four bytes, big-endian, signed."""
    return int32(u32(b, p))


@function(inline=True)
def i64(b: Bytes, p: int) -> int:
    """Eight bytes, big-endian, signed."""
    return (i32(b, p) << 32) | u32(b, p + 4)


@function(inline=True)
def u16(b: Bytes, p: int) -> int:
    """Two bytes, big-endian, unsigned."""
    q = uint64(p)
    return (int(b[q]) << 8) | int(b[q + _1])


@by_library(u32)
def _u32(b: Bytes, p: int) -> int:
    return int.from_bytes(b[p : p + 4], "big")


@by_library(i32)
def _i32(b: Bytes, p: int) -> int:
    return int.from_bytes(b[p : p + 4], "big", signed=True)


@by_library(u16)
def _u16(b: Bytes, p: int) -> int:
    return int.from_bytes(b[p : p + 2], "big")


@by_library(i64)  # numbers counted from it may not fit into 64 bits, and then wrap around
def _i64(b: Bytes, p: int) -> Any:
    return np.int64(int.from_bytes(b[p : p + 8], "big", signed=True))


@function(inline=True)
def _le32(b: Bytes, p: int) -> int:
    """Reads four bytes, least significant first. Unsigned offsets compile to one read, not four."""
    q = uint64(p)
    return (
        uint32(b[q])
        | (uint32(b[q + _1]) << uint32(8))
        | (uint32(b[q + uint64(2)]) << uint32(16))
        | (uint32(b[q + uint64(3)]) << uint32(24))
    )


@function(inline=True)
def _past(t: Crcs, word: int, zeros: int) -> int:
    """The CRC's change by a word of four bytes, behind which so many zeros follow.

    Tables lie one behind the other: a processor adds what is constant to an address by itself.
    """
    w, m, at = uint64(word), uint64(255), uint64(256 * zeros)
    return int(
        t[at + uint64(768) + (w & m)]
        ^ t[at + uint64(512) + ((w >> uint64(8)) & m)]
        ^ t[at + uint64(256) + ((w >> uint64(16)) & m)]
        ^ t[at + (w >> uint64(24))]
    )


@function
def crc31(b: Bytes, p: int, n: int, t: Crcs) -> int:
    """The zlib CRC of `n` bytes at `p`, its top bit dropped, as the broker stores it."""
    c = uint32(0xFFFFFFFF)
    e = p + n
    while p + 16 <= e:
        after = _past(t, _le32(b, p + 4), 8) ^ _past(t, _le32(b, p + 8), 4) ^ _past(t, _le32(b, p + 12), 0)
        c = after ^ _past(t, c ^ _le32(b, p), 12)  # last, for what comes before it does not wait for `c`
        p += 16
    while p + 4 <= e:
        c = _past(t, c ^ _le32(b, p), 0)
        p += 4
    while p < e:
        c = int(t[(c ^ int(b[p])) & uint32(255)]) ^ (c >> uint32(8))
        p += 1
    return (c ^ uint32(0xFFFFFFFF)) & uint32(0x7FFFFFFF)


@by_library(crc31)
def _crc31(b: Any, p: int, n: int, _tables: Crcs) -> Any:
    return np.int64(zlib.crc32(b[p : p + max(n, 0)]) & 0x7FFFFFFF)


@function(inline=True)
def _of_letters(word: Any) -> Any:
    """Java's hash of eight letters of one byte, the first least significant. Leading zeros add nothing.

    Two letters are combined, then four, then all of them, each time in both halves of the number.
    """
    twos = (word & _EVEN_BYTES) * _31_1 + ((word >> _8) & _EVEN_BYTES)
    fours = (twos & _EVEN_PAIRS) * _31_2 + ((twos >> _16) & _EVEN_PAIRS)
    return uint32((fours & np.uint64(0xFFFFFFFF)) * _31_4 + (fours >> _32))


@function
def hash_on(b: Bytes, p: int, e: int, before: int) -> tuple[int, bool]:
    """Continues the Java hash code `before` of a text over the UTF-8 bytes `p:e`."""
    h = int32(before)
    while p < e:
        n = min(8, e - p)
        word = word_of(b, p, n) if p >= 0 else TOPS
        if word & TOPS == 0:  # up to eight letters: no pair waits for another
            h = int32(uint32(uint32(h) * _31_TO[n]) + _of_letters(word << uint64(8 * (8 - n))))
            p += n
            continue
        c = int(b[p])
        if c < 0x80:
            h = int32(h * 31 + c)
            p += 1
            continue
        more = 1 if 0xC2 <= c < 0xE0 else 2 if 0xE0 <= c < 0xF0 else 3 if 0xF0 <= c < 0xF5 else 0
        if more == 0 or p + more >= e:
            return 0, False
        point = c & int32(0x3F >> more)
        for k in range(1, more + 1):
            if (b[p + k] & 0xC0) != 0x80:
                return 0, False
            point = int32((point << 6) | (int(b[p + k]) & 0x3F))
        if (more == 2 and (point < 0x800 or 0xD800 <= point < 0xE000)) or (
            more == 3 and not 0x10000 <= point < 0x110000
        ):
            return 0, False
        if more == 3:  # two UTF-16 units
            point = int32(point - 0x10000)
            h = int32(h * 31 + int32(0xD800 + (point >> 10)))
            h = int32(h * 31 + int32(0xDC00 + (point & 0x3FF)))
        else:
            h = int32(h * 31 + point)
        p += more + 1
    return h, True


@by_library(hash_on)
def _hash_on(b: Bytes, p: int, e: int, before: int) -> Any:
    return _hash_of(bytes(b[p:e]), int(before))


@lru_cache(maxsize=REMEMBERED)
def _hash_of(text: bytes, before: int) -> Any:
    try:
        units = text.decode().encode("utf-16-le")
    except UnicodeDecodeError:
        return np.int64(0), False
    h = before & 0xFFFF_FFFF
    for unit in struct.unpack(f"<{len(units) // 2}H", units):
        h = (31 * h + unit) & 0xFFFF_FFFF
    return np.int64(h - (1 << 32) if h >> 31 else h), True


@function
def java_hash(b: Bytes, p: int, e: int) -> tuple[int, bool]:
    """Java's String.hashCode of the UTF-8 bytes `p:e`; the flag is False if they are not UTF-8."""
    return hash_on(b, p, e, 0)


# Numbers of 64 bits, for a sum with any other would be none.
_FIRST, _SECOND, _STEP = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F), np.uint64(0x52DCE729)
_THIRD, _FOURTH, _FIVE = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53), np.uint64(5)
_27, _31, _33, _37 = np.uint64(27), np.uint64(31), np.uint64(33), np.uint64(37)


@function
def digest(b: Bytes, p: int, e: int) -> int:
    """64 bits that stand for the bytes `p:e`, the same everywhere and for ever; 0 for no bytes, and only for them.

    The bytes are words of eight, least significant first, the last one filled up with zeros. `h` begins as their count.
    Each word `w` goes into it: `w = turned(w * 0x87C37B91114253D5, 31) * 0x4CF5AD432745937F`, and then
    `h = turned(h ^ w, 27) * 5 + 0x52DCE729`. At the end, three times, its upper half goes into its lower one,
    `h ^= h >> 33`, with `h *= 0xFF51AFD7ED558CCD` after the first time and `h *= 0xC4CEB9FE1A85EC53` after the second.
    What comes to 0 is 1. All is modulo 2^64, `turned` to the left, and the result is read as a signed number.

    These are the steps of MurmurHash3 for one 64-bit half. Each of them can be undone, so keys of one length that
    differ in one word never have the same digest. It has no secret: who chooses keys can choose two with one digest.
    """
    if p >= e:
        return 0
    h: Any = uint64(e - p)
    while p < e:
        n = min(8, e - p)
        w = (word_of(b, p, n) if 0 <= p else few(b, p, n)) * _FIRST
        h ^= ((w << _31) | (w >> _33)) * _SECOND
        h = ((h << _27) | (h >> _37)) * _FIVE + _STEP
        p += 8
    h = (h ^ (h >> _33)) * _THIRD
    h = (h ^ (h >> _33)) * _FOURTH
    h ^= h >> _33
    return int64(h) if h != 0 else 1


@by_library(digest)
def _digest(b: Bytes, p: int, e: int) -> Any:
    text = bytes(b[p:e])
    return _digest_of(text) if len(text) <= SHORT else _digest_of.__wrapped__(text)


@lru_cache(maxsize=REMEMBERED)  # names of properties, and many values, are in every record
def _digest_of(text: bytes) -> Any:
    h = len(text)
    for w in struct.unpack(f"<{-(-h // 8)}Q", text + bytes(-h % 8)):
        x = w * int(_FIRST) & LOW
        h ^= ((x << 31 | x >> 33) & LOW) * int(_SECOND) & LOW
        h = ((h << 27 | h >> 37) & LOW) * 5 + int(_STEP) & LOW
    h = (h ^ h >> 33) * int(_THIRD) & LOW
    h = (h ^ h >> 33) * int(_FOURTH) & LOW
    h ^= h >> 33
    signed = h - (1 << 64) if h >> 63 else h
    return np.int64(signed or bool(text))


def digests_between(data: Bytes, begins: Ints, ends: Ints) -> Ints:
    """The digest of each text `data[begins[i] : ends[i]]`."""
    found = np.empty(len(begins), np.int64)
    fill_digests(handed(data), handed(begins), handed(ends), found)
    return found


@native(lambda _data, begins, *_: len(begins), kinds=(BYTES, INTS, INTS, INTS))
def fill_digests(data: Bytes, begins: Ints, ends: Ints, found: Ints) -> None:
    """The same, into `found`."""
    for i in range(len(found)):
        found[i] = digest(data, begins[i], ends[i])


def digests(data: Bytes, offsets: Ints) -> Ints:
    """The digest of each text in a column: text `i` is `data[offsets[i] : offsets[i + 1]]`."""
    return digests_between(data, offsets[:-1], offsets[1:])


def key_of(name: str) -> int:
    """The digest of a key, such as that by which a transaction is called."""
    return int(_digest_of.__wrapped__(os.fsencode(name)))  # of a module's constants, too: nothing is compiled for them


@function
def place_of(b: Bytes, p: int, e: int, byte: int) -> int:
    """Returns the place of the first byte of this value in `p:e`; `e` if there is none, `p` if `p:e` is empty.

    Eight bytes are compared together, including some behind `e`.
    """
    if p >= e:
        return p
    sought = uint64(byte) * ONES
    while 0 <= p < e and p + 8 <= len(b):
        marks = zeros(eight(b, p) ^ sought)
        if marks != 0:
            return min(p + int(first(marks)), e)
        p += 8
    while p < e and b[p] != byte:
        p += 1
    return min(p, e)


@by_library(place_of)
def _place_of(b: Any, p: int, e: int, byte: int) -> int:
    place = b.find(byte, p, e) if isinstance(b, bytes) else bytes(b[p:e]).find(byte) + p
    return e if place < p else place


@function(inline=True)
def is_name(b: Bytes, p: int, e: int, name: Bytes) -> bool:
    """True if the bytes `p:e` are `name`."""
    if e - p != len(name):
        return False
    i = 0
    if len(name) >= 8:  # eight at a time; the last group may overlap the one before it
        while i + 8 <= len(name):
            if eight(b, p + i) != eight(name, i):
                return False
            i += 8
        return bool(eight(b, e - 8) == eight(name, len(name) - 8))
    while i < len(name):
        if b[p + i] != name[i]:
            return False
        i += 1
    return True


@by_library(is_name)
def _is_name(b: Bytes, p: int, e: int, name: Bytes) -> bool:
    return e - p == len(name) and bytes(b[p:e]) == name.tobytes()


@function(inline=True)
def copied(b: Bytes, p: int, e: int, into: Bytes, n: int) -> int:
    """Copies the bytes `p:e` to place `n` of `into`, and returns their end there."""
    for i in range(e - p):
        into[n + i] = b[p + i]  # as `_le32` says: many at once, so
    return n + e - p


@by_library(copied)
def _copied(b: Bytes, p: int, e: int, into: Bytes, n: int) -> int:
    into[n : n + e - p] = b[p:e]
    return n + e - p


@function
def number_in(b: Bytes, p: int, e: int) -> int:
    """The decimal number `p:e`, without a sign; -1 where it is none, or has more than 18 digits."""
    if p >= e or e - p > 18:
        return -1
    value = 0
    for i in range(p, e):
        if not 48 <= b[i] <= 57:
            return -1
        value = value * 10 + (b[i] - 48)
    return value
