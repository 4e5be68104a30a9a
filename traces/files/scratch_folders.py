"""Temporary folders of a check: each is removed once it is not used any more, and all of them when the check ends."""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_MADE: ContextVar[list[Callable[[], object]] | None] = ContextVar("made", default=None)
"""Ways to remove the folders that this check has made."""


class FolderGuard:
    """Keeps a folder as long as anybody in this process holds it. Workers, who get a copy of all else, do not."""

    def __init__(self, folder: Path) -> None:
        self.remove = weakref.finalize(self, _removed, str(folder), os.getpid())
        if (made := _MADE.get()) is not None:
            made.append(self.remove)

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """Pickled, it is nothing."""
        return type(None), ()


def _removed(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # a worker was forked with all that its parent holds
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def removed_at_the_end() -> Iterator[None]:
    """Remove all folders that are made within: what refers to them may wait for a collection of garbage."""
    made: list[Callable[[], object]] = []
    before = _MADE.set(made)
    try:
        yield
    finally:
        _MADE.reset(before)
        for remove in made:
            remove()
