"""How many bytes of a block are whole lines, none of them too long, wherever a file was cut into blocks."""

from __future__ import annotations


def sound(block: bytes, longest: int) -> int:
    """How many bytes there are before a line that has no end, or one of more than `longest` bytes with its newline.

    A block begins where a line begins. Where it goes on to the end of its last line, or for `longest` bytes to look for
    that end, the answer for a line is the same in every block.
    """
    low = 0
    while len(block) - low > longest and (newline := block.rfind(b"\n", low, low + longest)) >= 0:
        low = newline + 1
    return low if len(block) - low > longest else block.rfind(b"\n") + 1
