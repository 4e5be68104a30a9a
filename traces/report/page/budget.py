"""Limits that keep a page below 1 MB: rows and bytes of each part, and bytes that all parts share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Limit = tuple[int, int]
"""Rows, and bytes as HTML."""

PAGE = 850_000  # bytes of all parts; style, headings and sources take the rest
TEXT = 1000  # characters of one line or name
STORIES: Limit = (200, 300_000)
FINDINGS: Limit = (150, 100_000)
SOURCES: Limit = (200, 60_000)
LINES: Limit = (200, 30_000)  # of every short list
LOGS: Limit = (8, 80_000)
DRAWN: Limit = (4, 60_000)  # rows of one section with their charts
ROWS: Limit = (100, 30_000)  # of one section, without
DETAILS: Limit = (800, 230_000)
PASSAGES: Limit = (200, 60_000)  # further ones are named, in some 90 bytes each


class Budget:
    """The bytes of a page that are left."""

    def __init__(self, left: int = PAGE) -> None:
        self.left = left

    def fitting(self, draw: Callable[..., str], items: Sequence[tuple[Any, ...]], limit: Limit) -> list[str]:
        """Draw as many of the first items as there is room for."""
        kept: list[str] = []
        rows, room = limit[0], min(limit[1], self.left)
        for item in items[:rows]:
            drawn = draw(*item)
            room -= (cost := len(drawn.encode()))
            if room < 0:
                break
            self.left -= cost
            kept.append(drawn)
        return kept
