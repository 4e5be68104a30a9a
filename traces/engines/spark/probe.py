"""A look at the workers of a cluster before any work: what they lack would otherwise come to light after minutes.

This module travels to the workers by itself, for they may lack gapless: it imports nothing but Python's own.
"""

from __future__ import annotations

import os
import pickle
import re
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from importlib.util import find_spec
from typing import Any, NamedTuple

NEEDED = ("immutables", "llvmlite", "markupsafe", "numpy", "pyarrow", "pydantic", "rich")
"""Packages that tasks import; others come with these."""


class Needs(NamedTuple):
    """Needs of a check's tasks: packages, paths that they read, and folders that they write into."""

    packages: Sequence[str] = ()
    reads: Sequence[str] = ()
    writes: Sequence[str] = ()


def version() -> str | None:
    """The version of gapless that Python finds here, or the name of its archive; None without one."""
    if match := re.search(r"gapless-[0-9a-f]{12}\.zip", place()):
        return match[0]
    try:
        return metadata.version("gapless") if find_spec("gapless") else None
    except metadata.PackageNotFoundError:  # a source tree that is on the path and not installed
        return "unknown"


def place() -> str:
    """The file of gapless that Python has loaded, or would load; empty without one."""
    found = find_spec("gapless")
    return str(found.origin) if found else ""


def state(needs: Needs, _item: object = None) -> dict[str, Any]:
    """Look at this host: its gapless, as `version` names it, its Python, and a sentence for each lack."""
    host = socket.gethostname()
    lacks = [f"{host}: {one}" for one in _each_lack(needs)]
    return {"gapless": version(), "place": place(), "host": host, "python": sys.executable, "lacks": lacks}


def pickled(what: Callable[[object], object], item: object) -> bytes:
    """The answer as bytes."""
    return pickle.dumps(what(item))


def _each_lack(needs: Needs) -> Iterator[str]:
    if missing := [name for name in needs.packages if find_spec(name) is None]:
        yield f"{sys.executable} has no {', '.join(missing)}: install gapless there, or send an environment"
    for path in needs.reads:
        if not os.access(path, os.R_OK):
            yield f"{path} cannot be read: every worker must have it by this name"
    for folder in needs.writes:
        if not os.access(folder, os.W_OK | os.X_OK):
            yield f"{os.path.dirname(folder)} is not the folder that it is here: name one that workers share"  # noqa: PTH120 - Python's own alone
