"""Checks files of one kind like a broker's start: all in a folder, named by numbers, of one length.

Source: docs/rocketmq.md#compaction-start, docs/rocketmq.md#dledger-index-start.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from gapless.traces.report.values import Where
from gapless.traces.sources.rocketmq.store.files import TWENTY_DIGITS


class UnexpectedFile(NamedTuple):
    """A file that stops a start. `expected`: the length of the others, or its own if that is right."""

    name: str  # from the store on
    length: int
    expected: int
    numbered: bool

    @property
    def place(self) -> Where:
        """The file, or its end if its length is wrong."""
        return Where(file=self.name, offset=self.length if self.numbered else 0)

    @property
    def sentence(self) -> str:
        """The error, as a sentence without its end."""
        if not self.numbered:
            return f"{self.name} is not called by a number"
        return f"{self.name} is {self.length:,} bytes long, and others of its kind {self.expected:,}"

    @property
    def as_text(self) -> str:
        """All of it, in a text that `of` reads."""
        return json.dumps(self)

    @classmethod
    def of(cls, text: str) -> UnexpectedFile:
        """Parses the output of `as_text`."""
        return cls(*json.loads(text))


def unexpected_files(
    store: Path, folders: Iterable[Path], *, length: int = 0, maps_everything: bool = False
) -> Mapping[Path, list[UnexpectedFile]]:
    """Returns the files in each folder that stop a start. All must have `length`, or the most common length.

    `maps_everything`: the broker takes folders and empty files like any file. Otherwise it skips folders, and deletes
    an empty file that comes last.
    """
    there = {folder: sorted(folder.iterdir()) for folder in folders if folder.is_dir()}
    found: dict[Path, list[tuple[Path, int]]] = {}
    for folder, paths in there.items():
        taken = [(path, path.stat().st_size) for path in paths if maps_everything or not path.is_dir()]
        if taken and not maps_everything and taken[-1] == (paths[-1], 0):
            taken.pop()
        found[folder] = taken
    lengths = Counter(
        size for taken in found.values() for path, size in taken if TWENTY_DIGITS.fullmatch(path.name) and size
    )
    expected = length or max(lengths, key=lambda size: (lengths[size], size), default=0)
    return {
        folder: [
            UnexpectedFile(str(path.relative_to(store)), size, expected or size, numbered)
            for path, size in taken
            for numbered in [TWENTY_DIGITS.fullmatch(path.name) is not None]
            if not numbered or size != (expected or size)
        ]
        for folder, taken in found.items()
    }
