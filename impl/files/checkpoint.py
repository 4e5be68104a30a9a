"""The file `checkpoint`: what was on disk, in a broker's words and, far behind these, in our own.

A broker writes five times and positions at the file's beginning, and leaves the other bytes as they are
(docs/rocketmq.md#checkpoint). Times cannot say which of two records of one millisecond is safe, and where the clock
stepped back, all records have the time of before. So positions of the log are kept as well, in a block that repeats
what a broker would write: where the two differ, a broker was here since, and the block is not believed.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from gapless.impl.environment.operating_system import Disk
from gapless.impl.files.segments import asked

CHECKPOINT = "checkpoint"
LENGTH = 4096  # bytes of the file
NOWHERE = 1 << 62  # a position behind every record

_TIMES = struct.Struct(">5q")
_BLOCK_AT = 2048  # in the file; a broker of 5.5.0 uses the first 48 bytes
_MAGIC = b"gapless\x01"
_BLOCK = struct.Struct(">8s5q3q")  # and a checksum of it behind it
_CHECKSUM = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """Times in ms: every record stored up to `log` is on disk, and so is the entry of every one up to `queues`.

    Positions, each an exclusive end, and 0 if unknown: `flushed`, of the log that is on
    disk; `built`, of the log whose entries are, too. From `sealed` on, the log is all of our own making: every record
    carries a checksum of itself, and what follows the blank that ends a file is zeros.
    """

    log: int = 0
    queues: int = 0
    index: int = 0
    follower: int = 0  # of a broker with followers; kept as it was found
    confirmed: int = 0  # where the last record began when a broker last started; kept as it was found
    flushed: int = 0
    built: int = 0
    sealed: int = NOWHERE

    @classmethod
    def read(cls, disk: Disk) -> CheckpointFile:
        """The content of the file; zeros if it is missing or cut off."""
        content = asked(lambda: disk.read(CHECKPOINT), CHECKPOINT) or b""
        if len(content) < _TIMES.size:
            return cls()
        times = _TIMES.unpack_from(content)
        return cls(*times, *_positions(content, times))

    def write(self, disk: Disk) -> None:
        """The file says this now, at once or not at all."""
        times = self.log, self.queues, self.index, self.follower, self.confirmed
        block = _BLOCK.pack(_MAGIC, *times, self.flushed, self.built, self.sealed)
        content = _TIMES.pack(*times).ljust(_BLOCK_AT, b"\0") + block + _CHECKSUM.pack(zlib.crc32(block))
        asked(lambda: disk.write(CHECKPOINT, content.ljust(LENGTH, b"\0")), CHECKPOINT)


def _positions(content: bytes, times: tuple[int, ...]) -> tuple[int, ...]:
    """The content of our own block; empty if it is missing, damaged, or older than the broker's."""
    block = content[_BLOCK_AT : _BLOCK_AT + _BLOCK.size]
    if content[_BLOCK_AT + _BLOCK.size :][: _CHECKSUM.size] != _CHECKSUM.pack(zlib.crc32(block)):
        return ()
    magic, *numbers = _BLOCK.unpack(block)
    return tuple(numbers[5:]) if magic == _MAGIC and tuple(numbers[:5]) == times else ()
