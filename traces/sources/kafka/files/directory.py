"""Data directories and the folders of partitions in them: what lies where. No file is opened but small texts.

A folder is listed when its partition is judged, so that memory does not grow with the number of partitions.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from gapless.traces.sources.kafka.files.contents import content
from gapless.traces.sources.kafka.files.names import (
    EPOCHS,
    IGNORED,
    LARGEST_OFFSET,
    LEAVING,
    META,
    METADATA_SNAPSHOT,
    NUMBERED,
    OTHER_FILES,
    STOPPED,
    SWAP,
    TOPIC_ID,
    PartitionName,
    partition_name,
)

SMALL = 64 << 10
"""Bytes that are read of a file of settings."""
DEPTH = 3
"""Levels of folders below a path in which data directories are looked for."""
FOLDERS = 1000
"""Folders that are looked into: a path that is none of ours may have any number below it."""


class SegmentFiles(NamedTuple):
    """The files of one segment; None for those that are not there. `size`: of the log."""

    base: int
    log: Path
    size: int
    offset_index: Path | None
    time_index: Path | None
    aborted_index: Path | None


class PartitionFiles(NamedTuple):
    """The files in a partition's folder.

    `segments`, `snapshots`: by offset · `swaps`: files that a cleaner was about to put in place · `ignored`: files that
    are deleted, or not finished · `lone`: indexes without a segment, and names that are not the broker's.
    """

    segments: tuple[SegmentFiles, ...]
    snapshots: tuple[tuple[int, Path], ...]
    epochs: Path | None
    topic_id: str
    swaps: tuple[Path, ...]
    ignored: tuple[Path, ...]
    lone: tuple[Path, ...]


class PartitionFolder(NamedTuple):
    """The folder of a partition."""

    path: Path
    name: PartitionName

    def files(self) -> PartitionFiles:
        """List the folder. Raises OSError."""
        return _listed(self.path)


class LeavingFolder(NamedTuple):
    """A partition's folder that is deleted, moved, or unknown to the cluster: `suffix` says which."""

    path: Path
    name: PartitionName
    suffix: str


class DataDirectory(NamedTuple):
    """A directory of a broker's logs. `node` is -1, and names are empty, where they are not known.

    `only`: the one partition that was asked for, of all that may lie here.
    """

    path: Path
    node: int
    cluster: str
    directory: str
    is_stopped: bool  # in order: its file is there
    only: PartitionName | None = None

    def partitions(self) -> Iterator[PartitionFolder]:
        """The partitions, by topic and number. Raises OSError."""
        if self.only is not None:
            yield self.partition(self.only)
            return
        yield from map(self.partition, sorted(filter(None, map(partition_name, _folders(self.path)))))

    def partition(self, name: PartitionName) -> PartitionFolder:
        """The folder of a partition that lies here."""
        return PartitionFolder(self.path / str(name), name)

    def leaving(self) -> list[LeavingFolder]:
        """The folders of partitions that are no more, or not yet, part of the directory. Raises OSError."""
        found = ((folder, LEAVING.fullmatch(folder)) for folder in sorted(_folders(self.path)))
        return [
            LeavingFolder(self.path / folder, PartitionName(match["topic"], int(match["number"])), match["suffix"])
            for folder, match in found
            if match is not None
        ]


def data_directories(path: Path) -> list[DataDirectory]:
    """The data directories that a path names: it is one, a partition's folder in one, or a folder above some.

    Empty if there is none. Raises OSError.
    """
    name = partition_name(path.absolute().name)
    if name is not None and _has_log(path):
        return [_opened(path.absolute().parent, only=name)]
    return [_opened(found) for found in sorted(_below(path))]


def clusters_above(paths: Sequence[Path]) -> Iterator[tuple[Path, frozenset[Path]]]:
    """Yield the folders in which all data directories are of one cluster, and among these paths: with those of them.

    No partition of a broker lies there twice, as it does in copies of different times. Raises OSError.
    """
    clusters: dict[str, dict[Path, list[DataDirectory]]] = {}
    for path in paths:
        found = data_directories(path)
        names = {one.cluster for one in found if one.only is None and one.node >= 0}
        if len(names) == 1 and all(one.only is None for one in found) and (cluster := names.pop()):
            clusters.setdefault(cluster, {})[path] = found
    for some in clusters.values():
        every = [one for found in some.values() for one in found]
        folder = _above(list(some)) if len(some) > 1 else None
        if folder is None or {one.path for one in data_directories(folder)} != {one.path for one in every}:
            continue
        places = [(one.node, partition.name) for one in every for partition in one.partitions()]
        if len(set(places)) == len(places):
            yield folder, frozenset(some)


def _above(paths: Sequence[Path]) -> Path | None:
    """The folder above some; None if there is none, or it is one of them."""
    try:
        folder = Path(os.path.commonpath(paths))
    except ValueError:  # one of them is absolute, and another is not
        return None
    return folder if folder not in paths else None


def is_of_a_broker(path: Path, depth: int = 2) -> bool:
    """True for a data directory, the folder of a partition, and a folder of nothing but such. Raises OSError."""
    name = partition_name(path.absolute().name)
    if name is not None and _has_log(path):
        return True
    below = _folders(path)
    if _is_data_directory(path, below):
        return True
    seen = [folder for folder in below if not folder.startswith(".")]
    return depth > 0 and 0 < len(seen) <= FOLDERS and all(is_of_a_broker(path / one, depth - 1) for one in seen)


def _below(path: Path) -> Iterator[Path]:
    """The data directories at a path or below it: as deep, and in as many folders, as they may be expected."""
    level, visited = [path], 0
    for _ in range(DEPTH + 1):
        following = list[Path]()
        for folder in level[: FOLDERS - visited]:
            visited += 1
            try:
                below = _folders(folder)
                is_one = _is_data_directory(folder, below)
            except OSError:
                if folder == path:
                    raise
                continue  # another user's, or gone
            if is_one:
                yield folder
            else:
                following += (folder / name for name in below)
        level = following


def _is_data_directory(path: Path, folders: list[str]) -> bool:
    """True if partitions lie in it. The properties may be missing from a copy, and be all that is there at first."""
    named = [folder for folder in folders if partition_name(folder)]
    return bool(named) and ((path / META).is_file() or any(_has_log(path / folder) for folder in named))


def _has_log(path: Path) -> bool:
    """True if a segment lies in a folder."""
    try:
        with os.scandir(path) as entries:
            return any((name := NUMBERED.fullmatch(entry.name)) and name["kind"] == "log" for entry in entries)
    except NotADirectoryError:
        return False


def _folders(path: Path) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_dir()]
    except NotADirectoryError:
        return []


def _opened(path: Path, only: PartitionName | None = None) -> DataDirectory:
    settings = properties(path / META)
    node = settings.get("node.id", settings.get("broker.id", ""))
    return DataDirectory(
        path,
        int(node) if node.isdecimal() and len(node) < 11 else -1,
        settings.get("cluster.id", ""),
        settings.get("directory.id", ""),
        (path / STOPPED).is_file(),
        only,
    )


def properties(path: Path) -> dict[str, str]:
    """The settings in a file of Java properties, as brokers write them; empty if it is missing."""
    lines = small_text(path).splitlines()
    pairs = (line.partition("=") for line in lines if "=" in line and not line.lstrip().startswith(("#", "!")))
    return {key.strip(): value.strip() for key, _, value in pairs}


def small_text(path: Path) -> str:
    """The first part of a file's text; empty if it is missing. Raises OSError."""
    try:
        return content(path, SMALL).decode(errors="replace")
    except FileNotFoundError:
        return ""


def _listed(path: Path) -> PartitionFiles:
    named: dict[str, dict[int, tuple[Path, int]]] = {}
    swaps, ignored, lone = [], [], []
    with os.scandir(path) as entries:
        for entry in entries:
            file, name = path / entry.name, NUMBERED.fullmatch(entry.name)
            suffix = (name["suffix"] or "") if name else ""
            if suffix == SWAP:
                swaps.append(file)
            elif suffix in IGNORED or (name is None and file.suffix in IGNORED):
                ignored.append(file)
            elif name is None or suffix or int(name["number"]) > LARGEST_OFFSET:
                if entry.name not in OTHER_FILES and not METADATA_SNAPSHOT.fullmatch(entry.name):
                    lone.append(file)
            else:
                named.setdefault(name["kind"], {})[int(name["number"])] = file, entry.stat().st_size
    logs = named.pop("log", {})
    snapshots = named.pop("snapshot", {})
    lone += [file for found in named.values() for base, (file, _) in found.items() if base not in logs]
    return PartitionFiles(
        tuple(
            SegmentFiles(base, *logs[base], *(named.get(kind, {}).get(base, (None,))[0] for kind in _INDEXES))
            for base in sorted(logs)
        ),
        tuple((offset, snapshots[offset][0]) for offset in sorted(snapshots)),
        path / EPOCHS if (path / EPOCHS).is_file() else None,
        _topic_id(path / TOPIC_ID),
        *(tuple(sorted(found)) for found in (swaps, ignored, lone)),
    )


_INDEXES = "index", "timeindex", "txnindex"


def _topic_id(path: Path) -> str:
    """The topic's id; empty where it is not known."""
    lines = small_text(path).splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("topic_id:")), "")
