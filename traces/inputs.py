"""The inputs of a check: the recordings that a user's paths name, each by itself.

A folder of event files names all of them, with those in its partition folders: `date=2026-11-27/hour=03/`, as Hive and
Spark write them. Folders and files whose names begin with `.` or `_` are theirs, and are left out.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from glob import glob, has_magic
from pathlib import Path

from gapless.traces.files.remote import RemotePath
from gapless.traces.problems import os_problem
from gapless.traces.report.values import VerdictName
from gapless.traces.report.wording import plural, some
from gapless.traces.sources.registry import expected, recognised, recognised_file
from gapless.traces.sources.source import Source, Whole, wholes
from gapless.traces.sources.surroundings import refusal


@dataclass(frozen=True)
class Input:
    """A path that a user named: its kind, and the file or folder to open, if a source knows it."""

    path: Path
    found: Path
    source: Source | None
    problem: str = ""
    note: str = ""  # names what lies next to it and is not checked
    bytes: int | None = None  # of a file, where that is known without another look at it


def once(inputs: Sequence[Input]) -> list[Input]:
    """The inputs without folders that were named before by another path, each with a note on the first."""
    found: dict[str, Input] = {}
    for number, one in enumerate(inputs):
        local = one.source is not None and one.bytes is None and not isinstance(one.found, RemotePath)
        place = os.path.realpath(one.found) if local and one.found.is_dir() else str(number)
        if (first := found.get(place)) is None:
            found[place] = one
        else:
            found[place] = replace(first, note=f"named twice, also as {one.path}: judged once")
    return list(found.values())


def joined(inputs: Sequence[Input]) -> list[Input]:
    """The inputs, but for parts of one recording that were named one by one: instead of them the folder above."""
    found = list(inputs)
    for source in {one.source.kind: one.source for one in inputs if one.source is not None}.values():
        paths = [one.found for one in found if one.source is source and not isinstance(one.found, RemotePath)]
        for folder, parts in _wholes(source, paths) if len(paths) > 1 else ():
            first = next(number for number, one in enumerate(found) if one.source is source and one.found in parts)
            found[first] = Input(folder, folder, source)
            found = [one for one in found if one.source is not source or one.found not in parts]
    return found


def _wholes(source: Source, paths: Sequence[Path]) -> list[Whole]:
    try:
        return wholes(source, paths)
    except OSError:  # which the check of that path reports
        return []


def named(path: Path) -> list[Input]:
    """List the inputs of a path: one, every file that fits a pattern, or all recordings in a folder."""
    try:
        return _named(path)
    except OSError as error:
        return [Input(path, path, None, os_problem(error))]


def _named(path: Path) -> list[Input]:
    if has_magic(str(path)) and not path.exists():
        return [one for found in _matching(path) for one in found] or [_recognised(path)]
    one = _recognised(path)
    if one.source is not None and one.found == path and not isinstance(path, RemotePath):
        return [replace(one, bytes=_size(path))]
    return [one] if one.source is not None or one.problem or not path.is_dir() else _in_folder(path) or [one]


def _in_folder(folder: Path) -> list[Input]:
    """List the files of events in a folder and in its partitions; none where no file is one. Raises OSError."""
    tree = listed(folder)
    known = []
    left = []
    for path, size in tree.files:
        one = _file(path, size)
        if one.source is None and not one.problem:
            left.append("/".join(path.parts[len(folder.parts) :]))  # a remote path relative to another is none
        else:
            known.append(one)
    if known and tree.others:
        others = (
            "files of events are read of a folder in which all others are partitions, such as date=2026-11-27, unlike "
            f"{some(tree.others)}: name them, or a pattern"
        )
        return [Input(folder, folder, None, f"{expected(folder)}; {others}")]
    notes = []
    if left:
        names = "their names" if len(left) > 1 else "its name"
        notes.append(f"{plural(len(left), 'file')} of the folder left out, by {names} no events: {some(left)}")
    if tree.links:
        lead = "leads" if len(tree.links) == 1 else "lead"
        where = f"{lead} to a folder that is read already: {some(tree.links)}"
        notes.append(f"{plural(len(tree.links), 'link')} left out, which {where}")
    if known and notes:
        known[0] = replace(known[0], note="; ".join(notes))
    return known


def _matching(pattern: Path) -> Iterator[list[Input]]:
    """Yield the inputs of every path that fits a pattern. Raises OSError."""
    if isinstance(pattern, RemotePath):
        found: Sequence[tuple[Path, int | None]] = pattern.matching()
    else:
        paths = sorted(map(Path, glob(str(pattern), recursive=True)))  # noqa: PTH207 - it may begin at the root
        found = [(path, _size(path)) for path in paths]
    for path, size in found:
        one = _recognised(path) if size is None else _file(path, size)
        partition = one.source is None and size is None and not one.problem and is_partition(path.name)
        yield (_in_folder(path) if partition and path.is_dir() else []) or [one]


def _size(path: str | Path) -> int | None:
    """The bytes of a file; None if it is none, or cannot be looked at."""
    try:
        found = os.stat(path)  # noqa: PTH116 - of many files, and faster
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _file(path: Path, size: int) -> Input:
    try:
        if known := recognised_file(path):
            return Input(path, known[1], known[0], bytes=size if known[1] == path else None)
    except OSError as error:
        return Input(path, path, None, os_problem(error))
    return Input(path, path, None)


def _recognised(path: Path) -> Input:
    try:
        if known := recognised(path):
            return Input(path, known[1], known[0])
    except OSError as error:
        return Input(path, path, None, os_problem(error))
    return Input(path, path, None)


def unknown(path: Path) -> tuple[VerdictName, str]:
    """The verdict on a path that no source knows, and its reason. Raises OSError."""
    if not isinstance(path, RemotePath) and path.is_dir():
        inside = [found.name for found in path.iterdir()]
        if not inside:
            return "inconclusive", "the directory is empty: nothing was checked"
        if any(map(is_partition, inside)) and listed(path) == FolderTree():
            return "inconclusive", "there is no file in it: nothing was checked"
    return "unreadable", refusal(path)


# -- what lies in a folder -----------------------------------------------------------------------------------------


@dataclass
class FolderTree:
    """The contents of a folder and its partitions: files, other things by name, and links that are left out."""

    files: list[tuple[Path, int]] = field(default_factory=list)  # with their bytes
    others: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)

    def add(self, path: Path, name: str, size: int | None) -> None:
        """Add what is no partition; `size`: of a file."""
        if path.name[0] in "._":
            return
        if size is None:
            self.others.append(name)
        else:
            self.files.append((path, size))


def is_partition(name: str) -> bool:
    """True if a folder of this name is a partition, with the value of a column in its name."""
    return name.find("=") > 0 and not name.startswith(".")


def listed(folder: Path) -> FolderTree:
    """List a folder with its partitions, in the order of their names. Raises OSError."""
    tree = FolderTree()
    if isinstance(folder, RemotePath):
        _list_remote(tree, folder)
        return tree
    known: set[tuple[int, int]] = set()
    links = [(folder, "")]
    while links:  # a folder is read by its own name, if it has one here
        more: list[tuple[Path, str]] = []
        for path, name in links:
            _list(tree, path, name, known, more)
        links = more
    if len(known) > 1:
        tree.files.sort(key=lambda found: found[0].parts)
    return tree


def _list(
    tree: FolderTree, folder: Path, name: str, known: set[tuple[int, int]], links: list[tuple[Path, str]]
) -> None:
    """Add a folder, which is called `name`; its links are left for later. `known`: the folders that are there."""
    found = folder.stat()
    if (found.st_dev, found.st_ino) in known:
        tree.links.append(name)
        return
    known.add((found.st_dev, found.st_ino))
    with os.scandir(folder) as entries:
        inside = sorted(entries, key=lambda entry: entry.name)
    for entry in inside:
        path, inner = folder / entry.name, f"{name}/{entry.name}".lstrip("/")
        if not is_partition(entry.name) or not entry.is_dir():
            tree.add(path, inner, _size(path))
        elif entry.is_symlink():
            links.append((path, inner))
        else:
            _list(tree, path, inner, known, links)


def _list_remote(tree: FolderTree, folder: RemotePath) -> None:
    """Add what lies in a remote folder: a store lists all that lies in a partition in few answers."""
    others = set()
    for path, size in _each_remote(folder):
        *folders, _ = names = path.parts[len(folder.parts) :]
        strange = next((at for at, name in enumerate(folders) if not is_partition(name)), None)
        if strange is not None:  # not all stores list it by itself
            others.add(names[: strange + 1])
        elif size is not None:
            tree.add(path, "/".join(names), size)
        elif not is_partition(names[-1]):
            others.add(names)
    for names in sorted(others):
        tree.add(folder.joinpath(*names), "/".join(names), None)


def _each_remote(folder: RemotePath) -> Iterator[tuple[RemotePath, int | None]]:
    """Yield what a remote folder has, with the bytes of files, and all that is in its partitions."""
    for path, size in folder.listed():
        yield path, size
        if is_partition(path.name) and size is None:
            yield from path.listed(recursive=True)
