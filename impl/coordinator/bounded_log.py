"""The lines that a coordinator logs for its operator: a line for each connection and decision, if these are asked for.

All lines go to the logger `gapless.coordinator`. Warnings are few, whatever clients do: of each kind, one a minute. No
line has text of a client's choice.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

LOGGER = logging.getLogger("gapless.coordinator")
EVERY = 60.0  # seconds between two warnings of one kind


class BoundedLog:
    """The log of one coordinator."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._next: dict[str, float] = {}  # of each kind of warning: the time from which it is due again
        self._left_out: Counter[str] = Counter()

    def note(self, sentence: str, *values: object) -> None:
        """Log a connection or a decision, where these are asked for."""
        LOGGER.info(sentence, *values)

    def alert(self, kind: str, sentence: str, *values: object, error: BaseException | None = None) -> None:
        """Log a warning, unless there was one of its kind within the last minute. `error`: with its traceback."""
        now = self._now()
        if now < self._next.get(kind, now):
            self._left_out[kind] += 1
            return
        self._next[kind] = now + EVERY
        if left := self._left_out.pop(kind, 0):
            sentence, values = f"{sentence} (and %d times since the last such line)", (*values, left)
        LOGGER.warning(sentence, *values, exc_info=error)
