"""What a program is told of a message that it appended."""

from __future__ import annotations

from typing import NamedTuple


class AppendResult(NamedTuple):
    """Where a message is: its position in the log, its number in the queue, its record's bytes."""

    position: int
    number: int
    size: int
