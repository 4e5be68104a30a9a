"""Looks around a path that is no recording, and says what it is and which path was probably meant."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from glob import glob, has_magic
from pathlib import Path

from gapless.traces.files.remote import RemotePath
from gapless.traces.problems import os_problem, pasted, shown
from gapless.traces.sources.foreign import archive, foreign
from gapless.traces.sources.registry import expected, expected_by_others, recognised, sources
from gapless.traces.suggestions import first_of, nearest

ABOVE = 4  # folders up to which a path may be a part of a recording: store/consumequeue/TOPIC/QUEUE/FILE
BELOW = 2  # folders down to which recordings are looked for
MOST = 300  # folders and files that are looked at in one folder
DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015-"  # as text processors write two hyphens
NO_PATHS = (
    (re.compile(r"[A-Za-z]:\\.*", re.DOTALL), "on this machine, folders are separated by / and have no drive"),
    (
        re.compile(r"([\w-]+(\.[\w-]+)*|\[[0-9a-fA-F:]+\]):\d{2,5}"),
        "this is an address, and gapless reads files: name the broker's store directory, or a copy of it",
    ),
)
"""Names that are no paths: of other systems, and a host with its port."""
KINDS = {
    stat.S_IFIFO: "a named pipe: give it to standard input, gapless check - < {}",
    stat.S_IFSOCK: "a socket, from which nothing can be read: write what it sends to a file, and name that",
    stat.S_IFCHR: "a device: give what comes from it to standard input, gapless check - < {}",
    stat.S_IFBLK: "a disk, not a folder on it: mount it, and name the store's folder",
}


def refusal(path: Path) -> str:
    """The reason why a path is no recording, and the path or the command to use instead. Raises OSError."""
    if isinstance(path, RemotePath):
        return path.refused()
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        return _missing(path)
    except NotADirectoryError:
        file = next(folder for folder in path.parents if folder.exists())
        return f"no such file or directory: {shown(file)} is a file, and has nothing in it"
    except OSError as error:
        return _no_link(path) if path.is_symlink() else os_problem(error)
    if stat.S_IFMT(kind) in KINDS:
        return KINDS[stat.S_IFMT(kind)].format(pasted(path))
    return _part_of(path) or (_folder(path) if stat.S_ISDIR(kind) else _file(path))


# -- no such path ----------------------------------------------------------------------------------------------------


def _missing(path: Path) -> str:
    """The reason why nothing is there, and a path of a similar name."""
    if path.is_symlink():
        return _no_link(path)
    name = str(path)
    if has_magic(name):
        return _no_match(path)
    if name.startswith(("~", "$")):
        meant = os.path.expandvars(os.path.expanduser(name))  # noqa: PTH111 - a path object has no variables
        first = name.partition("/")[0]
        return f"no such file or directory: the shell did not expand {first} (do not quote it): {shown(meant)}"
    if name[0] in DASHES:
        return f"no such file or directory: if an option was meant, type it with hyphens: --{name.lstrip(DASHES)}"
    for pattern, why in NO_PATHS:
        if pattern.fullmatch(name):
            return f"no such file or directory: {why}"
    return f"no such file or directory{_in_parentheses(_similar(path))}"


def _no_link(path: Path) -> str:
    return f"a link that leads nowhere: to {shown(path.readlink())}"


def _no_match(pattern: Path) -> str:
    """The reason why no path fits a pattern."""
    if fitting := sorted(glob(str(pattern), recursive=True)):  # noqa: PTH207 - it may begin at the root
        return f"a pattern, expected one file: name it, such as {shown(fitting[0])}"
    plain = Path(*_until_magic(pattern))
    if not plain.is_dir():
        return f"no file fits this pattern: there is no {shown(plain)}{_in_parentheses(_similar(plain))}"
    names = [found.name for found in _inside(plain)]
    return f"no file fits this pattern: {shown(plain)} has {first_of(names, 5) or 'nothing in it'}"


def _until_magic(pattern: Path) -> Iterator[str]:
    for part in pattern.parts:
        if has_magic(part):
            return
        yield part


def _in_parentheses(found: str) -> str:
    return f" ({found})" if found else ""


def _similar(path: Path) -> str:
    """A path of a similar name where the first folder of `path` is missing; else the recordings that are there."""
    absolute = path.absolute()
    missing = next(one for one in (*reversed(absolute.parents), absolute) if not one.exists())
    folder, rest = missing.parent, absolute.relative_to(missing)
    there = {found.name: found for found in _inside(folder)}
    names = nearest(missing.name, sorted(there, key=lambda name: not _is_one(there[name])), 3)
    for name in sorted(names, key=lambda name: not ((there[name] / rest).exists() and _is_one(there[name] / rest))):
        meant = there[name] / rest
        return f"there is {_as_named(meant if meant.exists() else there[name], path)}"
    if missing != absolute:
        return f"there is no {_as_named(missing, path)}"
    known = [found.name for found in there.values() if _is_one(found)]
    return f"recordings in {_as_named(folder, path)}: {first_of(known, 5)}" if known else ""


def _as_named(found: Path, path: Path) -> str:
    """A path as the user would type it: from the working directory, if `path` is named from there."""
    text = str(found)
    if not path.is_absolute():
        with suppress(ValueError):
            text = str(found.absolute().relative_to(Path.cwd()))
    return shown(text)


# -- a path that is something else -----------------------------------------------------------------------------------


def _part_of(path: Path) -> str:
    """Advice to name the recording that `path` is a part of; empty where there is none above it."""
    real = path.resolve()
    for folder in real.parents[:ABOVE]:
        with suppress(OSError):
            known = recognised(folder)
            if known is not None and known[1] == folder:
                part = real.relative_to(folder)
                what = f"the {part}/" if len(part.parts) == 1 and real.is_dir() else "a part"
                above = folder if path.is_absolute() else Path(os.path.relpath(folder))
                return f"this is {what} of a {known[0].presentation.label}: name the folder above, {shown(above)}"
    return ""


def _folder(path: Path) -> str:
    """Advice for a folder that is no recording."""
    return _advice(path) or foreign(path) or _below(path) or _next_to(path) or _archives_in(path) or expected(path)


def _file(path: Path) -> str:
    """Advice for a file that is no recording."""
    return (
        archive(path)
        or foreign(path)
        or ("" if path.stat().st_size else "the file is empty: nothing was recorded in it")
        or _advice(path)
        or _next_to(path)
        or expected(path)
    )


def _advice(path: Path) -> str:
    """The first advice that a source has, with the forms that sources of other packages read."""
    advice = next(filter(None, (source.advice(path) for source in sources())), "")
    return f"{advice}{expected_by_others(path)}" if advice else ""


def _below(path: Path) -> str:
    """The recordings below a folder."""
    found = [shown(one) for one in _recordings(path, BELOW)]
    if len(found) == 1:
        return f"no recording, but there is one in it: gapless check {pasted(found[0])}"
    return f"no recording, but there are {len(found)} in it; name some: {first_of(found, 5)}" if found else ""


def _recordings(folder: Path, depth: int) -> Iterator[Path]:
    for inside in _inside(folder):
        with suppress(OSError):
            if inside.is_dir() and (known := recognised(inside)):
                yield known[1]
            elif inside.is_dir() and any(map(_is_events, _inside(inside))):
                yield inside
            elif depth > 1 and inside.is_dir():
                yield from _recordings(inside, depth - 1)


def _next_to(path: Path) -> str:
    """The recordings in the folder above."""
    above = path.absolute().parent
    found = [known for one in (above, *_inside(above)) if one != path.absolute() and (known := _known(one))]
    names = list(dict.fromkeys(_as_named(one, path) for one in found))
    return f"no recording; next to it there is {first_of(names, 3)}" if names else ""


def _archives_in(path: Path) -> str:
    packed = next((found for found in _inside(path) if found.is_file() and archive(found)), None)
    return f"no recording, but it has {shown(packed.name)} in it: {archive(packed)}" if packed else ""


def _inside(folder: Path) -> list[Path]:
    """The first files and folders in a folder, by name, without those that are hidden."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry, _ in zip(entries, range(MOST), strict=False)]
    except OSError:
        return []
    return [folder / name for name in sorted(names) if not name.startswith(".")]


def _is_events(path: Path) -> bool:
    return path.is_file() and _is_one(path)


def _is_one(path: Path) -> bool:
    return _known(path) is not None


def _known(path: Path) -> Path | None:
    """The recording that a path names, if it is one."""
    try:
        known = recognised(path)
    except OSError:
        return None
    return known[1] if known else None
