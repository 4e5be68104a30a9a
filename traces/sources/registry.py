"""The registry of sources, one line each.

An installed package adds one through the entry point group `gapless.sources`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TypeVar

from gapless.traces.events.files import is_event_file
from gapless.traces.files.remote import RemotePath
from gapless.traces.report.sections import PRESENTATIONS
from gapless.traces.sources.following import FollowingSource
from gapless.traces.sources.source import Source
from gapless.traces.sources.verbs import ComparingSource, JsonSchema, SchemaSource, TableSource

GROUP = "gapless.sources"
EVENTS = "event-trace"  # the kind of files of events
OURS = (  # in the order in which they are asked whether a path is theirs
    EntryPoint("rocketmq", "gapless.traces.sources.rocketmq.source:SOURCE", GROUP),
    EntryPoint("pulsar", "gapless.traces.sources.pulsar.source:SOURCE", GROUP),
    EntryPoint("kafka", "gapless.traces.sources.kafka.source:SOURCE", GROUP),
    EntryPoint("events", "gapless.traces.sources.event_files.source:SOURCE", GROUP),
)

AnySource = TypeVar("AnySource", bound=Source)


def sources() -> tuple[Source, ...]:
    """Return every source; those of other packages first, so that their files are not taken for ours.

    A source that cannot be loaded is left out, and `expected` says so.
    """
    return _loaded()[0]


@cache
def _loaded() -> tuple[tuple[Source, ...], tuple[str, ...]]:
    """Load the sources; also return the errors of those of other packages that cannot be loaded."""
    found: list[Source] = []
    broken = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            found.append(entry.load())
        except Exception as error:  # noqa: BLE001 - an error in another package must not end our check
            broken.append(
                f"the source {entry.name} cannot be loaded from {entry.value} ({type(error).__name__}: {error})"
            )
    found += (entry.load() for entry in OURS)
    PRESENTATIONS.update({source.kind: source.presentation for source in found})
    return tuple(found), tuple(broken)


def expected(path: Path) -> str:
    """Describe the expected files and folders, for a path that no source knows."""
    kinds = [source.expected_folder if path.is_dir() else source.expected_file for source in sources()]
    return "; ".join(["not " + "; nor ".join(kind for kind in kinds if kind), *_loaded()[1]])


def expected_by_others(path: Path) -> str:
    """The same of sources of other packages alone; empty without any, else it continues a sentence."""
    ours = {entry.load().kind for entry in OURS}
    others = [source for source in sources() if source.kind not in ours]
    kinds = [source.expected_folder if path.is_dir() else source.expected_file for source in others]
    return "".join([*(f"; nor {kind}" for kind in kinds if kind), *(f"; {broken}" for broken in _loaded()[1])])


def recognised(path: Path) -> tuple[Source, Path] | None:
    """Return the source that knows the path, and the path to open; None if there is none. Raises OSError.

    Sources other than files of events read local disks, and are not asked about remote paths.
    """
    for source in sources():
        if isinstance(path, RemotePath) and source.kind != EVENTS:
            continue
        if (found := source.recognise(path)) is not None:
            return source, found
    return None


def recognised_file(path: Path) -> tuple[Source, Path] | None:
    """Return the same of a path that is known to be a file, without another look at it. Raises OSError."""
    for source in sources():
        if source.kind == EVENTS:
            return (source, path) if is_event_file(path) else None
        if not isinstance(path, RemotePath) and (found := source.recognise(path)) is not None:
            return source, found
    return None


# -- verbs ---------------------------------------------------------------------------------------------------------


def schemas() -> dict[str, Callable[[], JsonSchema]]:
    """Return the JSON Schemas of the forms that only one source reads, by name."""
    described = [source for source in sources() if isinstance(source, SchemaSource)]
    return {name: made for source in described for name, made in source.schemas().items()}


def comparing(paths: Sequence[Path]) -> ComparingSource:
    """Return the source that compares replicas at these paths; if none knows them, ours, which says what it expects."""
    return _knowing([source for source in sources() if isinstance(source, ComparingSource)], paths)


def following(path: Path) -> FollowingSource:
    """Return the source that follows what is written at a path; if nothing is there yet, ours."""
    return _knowing([source for source in sources() if isinstance(source, FollowingSource)], [path])


def _knowing(able: Sequence[AnySource], paths: Sequence[Path]) -> AnySource:
    """Return the first source that knows one of the paths; the last one if none does."""
    return next((source for source in able if any(knows(source, path) for path in paths)), able[-1])


def knows(source: Source, path: Path) -> bool:
    """True if a path can be opened, as far as that can be seen now."""
    with suppress(OSError):
        return source.recognise(path) is not None
    return False


def tabled() -> tuple[TableSource, ...]:
    """Return the sources whose recordings are tables."""
    return tuple(source for source in sources() if isinstance(source, TableSource))
