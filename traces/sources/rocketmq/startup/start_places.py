"""The place of a hazard of the next start, and the versions that fail there."""

from __future__ import annotations

import json
from typing import NamedTuple


class StartPlace(NamedTuple):
    """The place where a start fails, and the versions that do.

    `file`: relative to the store · `setting`: by its name, if the start fails by one
    """

    file: str
    offset: int
    setting: str
    refused: tuple[str, ...]
    started: tuple[str, ...]

    @property
    def as_text(self) -> str:
        """All of it, in a text that `of` reads."""
        return json.dumps(self)

    @classmethod
    def of(cls, text: str) -> StartPlace:
        """Parses the output of `as_text`."""
        file, offset, setting, refused, started = json.loads(text)
        return cls(file, offset, setting, tuple(refused), tuple(started))
