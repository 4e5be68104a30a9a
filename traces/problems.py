"""What can be wrong with an input, and how names from it are shown."""

from __future__ import annotations


class Unreadable(Exception):  # noqa: N818 - it names an outcome, as a verdict does.
    """The input cannot be judged: the message names the file, what was expected and what to do."""


class Gone(Unreadable):
    """A file was there when the input was opened, and is not any more: who opens it again may be luckier."""


class NothingThere(Exception):  # noqa: N818 - it names an outcome, as a verdict does.
    """The input can be read, and holds nothing to judge."""


class UsageError(Exception):
    """The question cannot be asked this way: a rule that does not exist, for one."""


def shown(text: object) -> str:
    """`text` with control characters escaped, so that no name from a store can drive a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))
