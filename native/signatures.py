"""The functions that say for which kinds they are compiled: what can be done before the first call."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator

from gapless.native.language import Function


def modules_of(*packages: str) -> list[str]:
    """The names of the modules in packages, all of which are imported, that have such functions."""
    names = []
    for package in packages:
        found = importlib.import_module(package)
        names.append(package)
        names += [one.name for one in pkgutil.walk_packages(found.__path__, f"{package}.")]
    return [name for name in names if any(entries_of(name))]


def entries_of(module: str) -> Iterator[Function]:
    """The functions of a module that declare the kinds of their arguments."""
    importlib.import_module(module)
    for value in vars(sys.modules[module]).values():
        entry = getattr(value, "compiled", value)
        if isinstance(entry, Function) and entry.kinds and entry.__module__ == module:
            yield entry
