"""What can be wrong with an input, and how names from it are shown."""

from __future__ import annotations

import errno
import os
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


class Unreadable(Exception):  # noqa: N818 - it names an outcome, as a verdict does.
    """The input cannot be judged: the message names the file, what was expected and what to do."""


class Gone(Unreadable):
    """A file was there when the input was opened, and is not any more: who opens it again may be luckier."""


class NothingThere(Exception):  # noqa: N818 - it names an outcome, as a verdict does.
    """The input can be read, and holds nothing to judge."""


class UsageError(Exception):
    """The question cannot be asked this way: a rule that does not exist, for one."""


NO_ROOM = errno.ENOSPC, errno.EDQUOT, errno.EFBIG


@contextmanager
def laid_down(what: str) -> Iterator[None]:
    """Within, `what` is written into a temporary file: where there is no room for it, the OSError names the folder."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        folder = shown(tempfile.gettempdir())
        why = f"{os.strerror(error.errno)} in {folder}, where {what} is laid down: name another folder with TMPDIR"
        raise OSError(error.errno, why) from error


def shown(text: object) -> str:
    """`text` with control characters escaped, so that no name from a store can drive a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def twice(names: Sequence[str]) -> str | None:
    """The first of these names that is there again: of two values some readers take the first, some the last."""
    return next((name for name in names if names.count(name) > 1), None)


def pasted(text: object) -> str:
    """`text` as a shell takes it, with control characters escaped all the same: bytes are, in quotes that unescape."""
    given = str(text)
    if given.isprintable():
        return shlex.quote(given)
    letters = (f"\\{c}" if c in "\\'" else c if c.isprintable() else _in_bytes(c) for c in given)
    return f"$'{''.join(letters)}'"


def _in_bytes(letter: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in letter.encode(errors="surrogateescape"))
