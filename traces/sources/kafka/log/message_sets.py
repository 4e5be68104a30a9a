"""Messages of magic 0 and 1, which brokers before 0.11 wrote: they are recognised, and not read."""

from __future__ import annotations

import zlib

OLD_HEAD = 17
"""Bytes up to the magic number: offset 8, length 4, checksum 4, magic 1."""
LEAST = 14
"""The least length of such a message: checksum, magic, attributes, and the lengths of key and value."""


def is_message_set(data: bytes) -> bool:
    """True if the bytes begin with a message of magic 0 or 1, whose checksum is right."""
    length = int.from_bytes(data[8:12], "big")
    if len(data) < OLD_HEAD or data[16] > 1 or not LEAST <= length <= len(data) - 12:
        return False
    return zlib.crc32(data[16 : 12 + length]) == int.from_bytes(data[12:16], "big")
