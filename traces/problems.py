"""Errors of inputs, and the display of names from them."""

from __future__ import annotations

import errno
import os
import pwd
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


class Unreadable(Exception):  # noqa: N818 - it names an outcome, as a verdict does.
    """The input cannot be judged: the message names the file, the expectation and the remedy."""


class Gone(Unreadable):
    """A file disappeared after the input was opened: to open it again may succeed."""


class NothingThere(Exception):  # noqa: N818 - it names an outcome, as a verdict does.
    """The input can be read, but contains nothing to judge."""


class EngineFailure(Exception):  # noqa: N818 - it names an outcome, as a verdict does.
    """The engine could not do the work: nothing is known of the inputs. The message says what failed, and where."""


class UsageError(Exception):
    """The question cannot be asked this way: for example, the rule does not exist."""


SIDE_FILES = "client log", "settings"
"""The files next to a recording that a check reads, too."""


def side_file_problem(kind: str, path: object, problem: Unreadable) -> Unreadable:
    """The problem of a side file, which names that file as the one that is unreadable."""
    name = shown(path)
    reason = str(problem).removeprefix(name).removeprefix(str(path)).lstrip(",: ")
    return Unreadable(f"{kind} {name}: unreadable: {reason}")


def os_problem(error: OSError) -> str:
    """The file that an error of the system names, and its reason; for a missing permission, the way to get it."""
    name = f"{shown(error.filename)}: " if error.filename else ""
    reason = str(error.strerror or error)
    if error.errno not in (errno.EACCES, errno.EPERM):
        return f"{name}{reason}"
    owner = _owner(error.filename)
    runs = f"run gapless as {owner}, its owner" if owner else "run gapless as the broker's user"
    return f"{name}{reason} for user {_user(os.geteuid())}: {runs}, or permit this user to read it"


def _owner(path: object) -> str:
    """The name of a file's owner, or its folder's where that is all that can be seen."""
    if not isinstance(path, str | bytes | os.PathLike):
        return ""
    file = Path(os.fsdecode(path))
    for place in (file, file.parent):
        with suppress(OSError):
            return _user(place.stat().st_uid)
    return ""


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


NO_ROOM = errno.ENOSPC, errno.EDQUOT, errno.EFBIG


@contextmanager
def laid_down(what: str) -> Iterator[None]:
    """Write `what` into a temporary file within the block; an OSError of a full disk names its folder."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        folder = shown(tempfile.gettempdir())
        why = f"{os.strerror(error.errno)} in {folder}, where {what} is laid down: name another folder with TMPDIR"
        raise OSError(error.errno, why) from error


def shown(text: object) -> str:
    """Escape control characters, so that no name from a store can drive a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def twice(names: Sequence[str]) -> str | None:
    """Return the first name that occurs twice: readers differ in which of two values they take."""
    return next((name for name in names if names.count(name) > 1), None)


def may_repeat(text: str | bytes, value: Any) -> bool:
    """True if a key may stand twice in the text of a value: there are more colons than keys."""
    return text.count(":" if isinstance(text, str) else b":") != _keys(value)  # type: ignore[arg-type]


def _keys(value: Any) -> int:
    """Count the keys in a value at any depth: the colons of its text outside of strings."""
    if isinstance(value, dict):
        return len(value) + sum(_keys(inner) for inner in value.values() if isinstance(inner, dict | list))
    return sum(map(_keys, value)) if isinstance(value, list) else 0


def pasted(text: object) -> str:
    """Quote `text` for a shell, with control characters escaped."""
    given = str(text)
    if given.isprintable():
        return shlex.quote(given)
    letters = (f"\\{c}" if c in "\\'" else c if c.isprintable() else _in_bytes(c) for c in given)
    return f"$'{''.join(letters)}'"


def _in_bytes(letter: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in letter.encode(errors="surrogateescape"))
