"""The file `checkpoint`: up to when a broker knew its files to be on disk, and what a store of ours says besides.

And the one of the timer wheel.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

LENGTH = 4096  # bytes of the file
OWN_BLOCK = 2048  # where our own implementation writes a block of its own, behind all that brokers use
OWN_MARK = b"gapless\x01"
TIMER_TIMES = "config/timercheck"
_OWN = struct.Struct(">8s5q3q")  # a mark, the broker's five numbers, and three positions; a CRC follows
_CRC = struct.Struct(">I")


@dataclass(frozen=True)
class FlushTimes:
    """The times up to which the broker knew its files to be on disk, in ms (docs/rocketmq.md#checkpoint).

    `ours`: our own implementation wrote the file · `sealed`: the positions between which all records carry a checksum
    of themselves, by its word; equal if it says nothing, or if a broker has written since.
    """

    log: int
    queues: int
    index: int  # up to here its full index files are; brokers set no other time
    indexed: int  # up to here the broker knew its queues to be on disk; 0 before version 5.5, and for a minute
    recovered: int  # where the last record began when a broker last started on these files; 0 before any restart
    ours: bool = False
    sealed: tuple[int, int] = (0, 0)


def flush_times(path: Path, notes: list[str]) -> FlushTimes | None:
    """Reads the file, if it is one; a note says why not."""
    if not path.is_file():
        notes.append("there is no checkpoint file: a lost tail of the log looks like an early end")
        return None
    data = path.read_bytes()
    if len(data) != LENGTH:
        notes.append(f"the checkpoint file is {len(data)} bytes long, expected {LENGTH}: it is not used")
        return None
    log, queues, index, _flushed, recovered, indexed = struct.unpack_from(">6q", data)
    ours = data.startswith(OWN_MARK, OWN_BLOCK)
    return FlushTimes(log, queues, index, indexed, recovered, ours, _sealed(data) if ours else (0, 0))


def _sealed(data: bytes) -> tuple[int, int]:
    """The positions between which our own block says that all records carry a checksum."""
    end = OWN_BLOCK + _OWN.size
    if _CRC.unpack_from(data, end)[0] != zlib.crc32(data[OWN_BLOCK:end]) or data[OWN_BLOCK + 8 :][:40] != data[:40]:
        return 0, 0
    *_, flushed, _built, sealed = _OWN.unpack_from(data, OWN_BLOCK)
    return (sealed, flushed) if sealed < flushed else (0, 0)


def timer_times(store: Path) -> tuple[int, int, int] | None:
    """Returns the first three numbers of `config/timercheck`; None if it has fewer.

    They are the time in ms up to which the broker has turned its timer wheel, the end of the timer log on disk, and of
    the messages that were written into the wheel.
    """
    path = store / TIMER_TIMES
    if not path.is_file() or path.stat().st_size < 24:
        return None
    with path.open("rb") as file:
        read, flushed, committed = struct.unpack(">3q", file.read(24))
    return read, flushed, committed
