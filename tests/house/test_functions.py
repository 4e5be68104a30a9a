"""A function of the product fits on a screen: it is read without scrolling."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from tests.house import debts
from tests.house.project import Module, listed, product
from tests.house.samples import module

LINES = 60
"""The lines of a function, from `def` to its end: signature, docstring, comments and empty lines included."""


def long(of: Iterable[Module]) -> dict[str, int]:
    """The functions that are too long, as `impl/log.py:append`, each with its lines; methods and inner ones, too."""
    return {
        f"{found.path}:{node.name}": lines
        for found in of
        for node in ast.walk(found.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > LINES
    }


def test_every_function_fits_on_a_screen() -> None:
    found = long(product())
    new = {name: lines for name, lines in found.items() if lines > debts.LONG_FUNCTIONS.get(name, 0)}
    assert not new, listed([f"{name}: {lines} lines, over {LINES}: name its parts" for name, lines in new.items()])
    assert found == debts.LONG_FUNCTIONS, "lower `debts.LONG_FUNCTIONS`, or strike out what is short enough by now"


def test_a_long_function_is_caught() -> None:
    body = "    pass\n" * (LINES - 1)
    assert long([module("impl/a.py", f"@cache\ndef f():\n{body}")]) == {}
    assert long([module("impl/a.py", f"async def f():\n{body}    pass\n")]) == {"impl/a.py:f": LINES + 1}
    assert long([module("impl/a.py", f"def f():\n    '''Two.\n{body}'''")]) == {"impl/a.py:f": LINES + 2}
    inner = body.replace("    ", "        ")
    assert long([module("impl/a.py", f"class A:\n    def f():\n{inner}        pass\n")]) == {"impl/a.py:f": LINES + 1}
