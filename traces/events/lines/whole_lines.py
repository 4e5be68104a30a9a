"""Reading of files in blocks of whole lines, with a limit on the length of a line."""

from __future__ import annotations

from typing import BinaryIO


def next_block(file: BinaryIO, size: int, longest: int) -> bytes:
    """Read the next block: so many bytes, extended to the end of the last line, at most `longest` bytes more."""
    block = file.read(size)
    return block + file.readline(longest) if block and not block.endswith(b"\n") else block


def cut(block: bytes, longest: int) -> tuple[bytes, int]:
    """Return the sound lines of a block, and how many bytes are left: an unfinished or a too long line."""
    end = sound(block, longest)
    return block[:end], len(block) - end


def sound(block: bytes, longest: int) -> int:
    """Count the bytes before an unfinished line, or one of more than `longest` bytes.

    A newline counts as part of its line. A block begins where a line begins and is extended to the end of its last
    line, or by `longest` bytes: so the answer for a line is the same in every block.
    """
    low = 0
    while len(block) - low > longest and (newline := block.rfind(b"\n", low, low + longest)) >= 0:
        low = newline + 1
    return low if len(block) - low > longest else block.rfind(b"\n") + 1
