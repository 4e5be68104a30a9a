"""A look at the workers of a cluster before any work: what they lack would otherwise come to light after minutes.

This module travels to the workers by itself, for they may lack gapless: it imports nothing but Python's own.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from importlib.util import find_spec
from typing import NamedTuple

NEEDED = ("immutables", "llvmlite", "markupsafe", "numpy", "pyarrow", "pydantic", "rich")
"""Packages that tasks import; others come with these."""


class Needs(NamedTuple):
    """Needs of a check's tasks: packages, paths that they read, and folders that they write into."""

    packages: Sequence[str] = ()
    reads: Sequence[str] = ()
    writes: Sequence[str] = ()


def version(_item: object = None) -> str | None:
    """The version of gapless that is installed here; None without one."""
    try:
        return metadata.version("gapless") if find_spec("gapless") else None
    except metadata.PackageNotFoundError:
        return None


def lacks(needs: Needs, _item: object = None) -> list[str]:
    """Sentences, one for each thing that this host lacks; each begins with its name."""
    return [f"{socket.gethostname()}: {one}" for one in _each_lack(needs)]


def _each_lack(needs: Needs) -> Iterator[str]:
    if missing := [name for name in needs.packages if find_spec(name) is None]:
        yield f"{sys.executable} has no {', '.join(missing)}: install gapless there, or send an environment"
    for path in needs.reads:
        if not os.access(path, os.R_OK):
            yield f"{path} cannot be read: every worker must have it by this name"
    for folder in needs.writes:
        if not os.access(folder, os.W_OK | os.X_OK):
            yield f"{os.path.dirname(folder)} is not the folder that it is here: name one that workers share"  # noqa: PTH120 - Python's own alone
