"""All kinds of sources: a line each. An installed package adds one through the entry point group `gapless.sources`."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from gapless.traces.report.sections import PRESENTATIONS
from gapless.traces.sources.source import Source

GROUP = "gapless.sources"
OURS = (  # in the order in which they are asked whether a path is theirs
    EntryPoint("rocketmq", "gapless.traces.sources.rocketmq.source:SOURCE", GROUP),
    EntryPoint("pulsar", "gapless.traces.sources.pulsar.source:SOURCE", GROUP),
    EntryPoint("events", "gapless.traces.sources.event_files.source:SOURCE", GROUP),
)


@cache
def sources() -> tuple[Source, ...]:
    """Every source; those of other packages first, so that a file of theirs is not taken for one of ours."""
    theirs = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    found: tuple[Source, ...] = tuple(entry.load() for entry in (*theirs, *OURS))
    PRESENTATIONS.update({source.kind: source.presentation for source in found})
    return found


def expected(path: Path) -> str:
    """What to say of a file or a folder that no source knows."""
    kinds = [source.expected_folder if path.is_dir() else source.expected_file for source in sources()]
    return "not " + "; nor ".join(kind for kind in kinds if kind)


def recognised(path: Path) -> tuple[Source, Path] | None:
    """The source that knows the path, and what it opens; None where nobody does. Raises OSError."""
    for source in sources():
        if (found := source.recognise(path)) is not None:
            return source, found
    return None
