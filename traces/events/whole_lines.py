"""A file of lines in blocks of whole lines, none of them too long, wherever the blocks end."""

from __future__ import annotations

from typing import BinaryIO


def next_block(file: BinaryIO, size: int, longest: int) -> bytes:
    """What comes next: so many bytes, and on to the end of their last line, or for `longest` bytes to look for that."""
    block = file.read(size)
    return block + file.readline(longest) if block and not block.endswith(b"\n") else block


def cut(block: bytes, longest: int) -> tuple[bytes, int]:
    """The lines of a block that are sound, and how many bytes are left: of a line without an end, or of a long one."""
    end = sound(block, longest)
    return block[:end], len(block) - end


def sound(block: bytes, longest: int) -> int:
    """How many bytes there are before a line that has no end, or one of more than `longest` bytes with its newline.

    A block begins where a line begins. Where it goes on to the end of its last line, or for `longest` bytes to look for
    that end, the answer for a line is the same in every block.
    """
    low = 0
    while len(block) - low > longest and (newline := block.rfind(b"\n", low, low + longest)) >= 0:
        low = newline + 1
    return low if len(block) - low > longest else block.rfind(b"\n") + 1
