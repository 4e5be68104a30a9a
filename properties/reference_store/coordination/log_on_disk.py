"""An independent reader of a coordinator's log, of a few lines: each transaction, from the bytes.

It shares no code with `impl/coordinator/`, whose docstrings say how the bytes lie.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from zlib import crc32

from gapless.spec.coordinator import Status


@dataclass
class LoggedTransaction:
    """One transaction, by the log. `begun`: how often it began there; 0 where only its outcome is left."""

    status: Status
    begun: int = 0
    added: int = 0
    time: int = 0
    life: int = 0


def logged(files: Mapping[str, bytes]) -> dict[int, LoggedTransaction]:
    """Every transaction that the newest file tells of. What follows its last whole group does not count."""
    complete = (name for name in files if name.startswith("log/") and _is_complete(files[name], int(name[4:])))
    newest = max(complete, default=None)
    found: dict[int, LoggedTransaction] = {}
    for step, number, fields in _steps(files[newest], int(newest[4:])) if newest else ():
        match step:
            case b"B":
                time, life = struct.unpack_from(">qQ", fields)
                known = found.setdefault(number, LoggedTransaction(Status.OPEN))
                known.begun, known.time, known.life = known.begun + 1, time, life
            case b"A":
                found[number].added += 1
            case b"D":
                found[number].status = Status(fields[0])
            case b"F":
                found[number].status = Status(found[number].status + 2)
            case b"K":
                found[number] = LoggedTransaction(Status(fields[0]))
    return found


def _is_complete(data: bytes, place: int) -> bool:
    """True if its header has the end of its safe part."""
    slots = [struct.unpack_from(">QI", data.ljust(64, b"\0"), at) for at in (32, 48)]
    return any(checksum and checksum == (crc32(struct.pack(">QQ", to, place)) or 1) for to, checksum in slots)


LENGTHS = {b"B": 48, b"D": 18, b"F": 8, b"N": 8, b"K": 9, b"O": 24}


def _steps(data: bytes, place: int) -> Iterator[tuple[bytes, int, bytes]]:
    at = 64
    while at + 8 <= len(data):
        length, checksum = struct.unpack_from(">II", data, at)
        group = data[at + 8 : at + 8 + length]
        if not length or checksum != crc32(group, crc32(struct.pack(">QQI", place, at, length))):
            return
        low = 0
        while low < length:
            kind = group[low : low + 1]
            (number,) = struct.unpack_from(">Q", group, low + 1)
            size = LENGTHS.get(kind) or 10 + int.from_bytes(group[low + 9 : low + 11], "big")
            yield kind, number, group[low + 9 : low + 1 + size]
            low += 1 + size
        at += 8 + length
