"""SyntaxFunction texts: of the functions in a file, and of modules."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType


def names_in(code: CodeType) -> Iterator[str]:
    """The global names and attributes that code speaks of, that of functions within it included."""
    yield from code.co_names
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from names_in(one)


@cache
def functions_in(file: str) -> dict[tuple[str, int], ast.FunctionDef]:
    """The functions in a file, by name and first line, decorators included."""
    found = {}
    for node in ast.walk(ast.parse(_text_in(file) or "".join(linecache.getlines(file)))):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            found[node.name, first] = node
    return found


def module_text(name: str) -> list[tuple[str, str]]:
    """The text of a module that is not a library's."""
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    return [(name, _text_in(file))] if file and name.partition(".")[0] not in {"numpy", "builtins"} else []


@cache
def _text_in(file: str) -> str:
    """The text of a file, which may be in an archive that modules are imported from; empty where there is none."""
    try:
        return Path(file).read_text("utf-8")
    except (OSError, ValueError):
        pass
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == file:
            with suppress(AttributeError, OSError, ValueError):  # a loader that has no files
                content: bytes = module.__spec__.loader.get_data(file)  # type: ignore[union-attr]
                return content.decode("utf-8")
    return ""
