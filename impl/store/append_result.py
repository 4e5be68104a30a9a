"""The result of appending a message."""

from __future__ import annotations

from typing import NamedTuple


class AppendResult(NamedTuple):
    """The place of a message: its position in the log, its number in the queue, its record's bytes."""

    position: int
    number: int
    size: int
