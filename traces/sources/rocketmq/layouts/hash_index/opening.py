"""Opens the hash index with its store: workers look into it."""

from __future__ import annotations

from collections.abc import Iterator

from gapless.traces.sources.rocketmq.layouts.hash_index.index_files import FOLDER, Index, index_of
from gapless.traces.sources.rocketmq.layouts.layout import OpeningSide


def notes(index: Index, live: bool) -> Iterator[str]:  # noqa: FBT001 - it is called by position
    """Yields a note on each kind of unread file, and one if a running broker writes the index."""
    yield from index.unread
    if live and index.reach is None:
        yield f"{FOLDER}/ is not judged: a broker is running on this store"


OPENING = OpeningSide(index_of, frozenset((FOLDER,)), notes)
