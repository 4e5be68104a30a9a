"""Outlines of syntax trees: texts by which generated functions are known."""

from __future__ import annotations

import ast
from functools import cached_property


class Outline:
    """A syntax tree as a text that no other tree has, and the names that it reads: both by one walk."""

    def __init__(self, node: ast.AST) -> None:
        self._node = node

    @cached_property
    def text(self) -> str:
        """The text; `ast.dump` takes three times as long."""
        return self._walked[0]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names that are read, each once, in order."""
        return self._walked[1]

    @cached_property
    def _walked(self) -> tuple[str, tuple[str, ...]]:
        words: list[str] = []
        names: dict[str, None] = {}
        _outlined(self._node, words, names)
        return " ".join(words), tuple(names)


def _outlined(node: ast.AST, words: list[str], names: dict[str, None]) -> None:
    kind = type(node)
    if kind is ast.Name:
        is_read = isinstance(node.ctx, ast.Load)  # type: ignore[attr-defined]
        words.append(f"{'r' if is_read else 'w'}:{node.id}")  # type: ignore[attr-defined]
        if is_read:
            names[node.id] = None  # type: ignore[attr-defined]
        return
    words.append(f"{kind.__name__}(")
    for name in kind._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.expr_context):  # it follows from the place
            continue
        if isinstance(value, list):
            words.append(f"[{len(value)}")
            for one in value:
                if isinstance(one, ast.AST):
                    _outlined(one, words, names)
                else:
                    words.append(repr(one))
        elif isinstance(value, ast.AST):
            _outlined(value, words, names)
        else:
            words.append(repr(value))


def outline_of(node: ast.AST) -> Outline:
    """The outline of a tree, which is kept with it: a tree never changes once it is made."""
    found: Outline | None = getattr(node, "outline", None)
    if found is None:
        found = Outline(node)
        setattr(node, "outline", found)  # noqa: B010 - no field of its class
    return found
