"""The facts that a recorder needs of a spec: each step, the meaning of its arguments, and its needs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from inspect import getdoc
from types import ModuleType
from typing import Any, get_type_hints

from gapless.spec import language
from gapless.spec.catalog import Spec, needs, text_of
from gapless.spec.language import APPLIES, ASSUMED

UNITS = {
    "size": "bytes of a record",
    "length": "bytes",
    "max_size": "bytes",
    "time": "ms",
}
"""Meanings of numbers whose type has none, and that no field of the state explains."""


@dataclass(frozen=True)
class StepArgument:
    """An argument of a step. `kind`: its type in an event · `meaning`: with its unit; empty if unknown."""

    name: str
    kind: str
    meaning: str


@dataclass(frozen=True)
class StepDescription:
    """A step.

    `types`: those of its arguments that have a sentence of their own · `needs`: rule id and sentence of each; the id is
    empty for assumptions about the environment.
    """

    name: str
    says: str
    arguments: tuple[StepArgument, ...]
    types: Mapping[str, str]
    needs: tuple[tuple[str, str], ...]


def steps_of(spec: Spec) -> Iterator[StepDescription]:
    """Yield every step of a spec, in the order of its text."""
    for name, action in spec.actions.items():
        hints = get_type_hints(action)
        arguments = tuple(_argument(spec, one, hints.get(one)) for one in spec.parameters[name])
        every = tuple(
            dict.fromkeys(
                ("" if need.rule == ASSUMED else f"{spec.name}/{need.rule}", need.because)
                for need in needs(action)
                if need.rule != APPLIES
            )
        )
        says = " ".join((getdoc(action) or "").partition("\n\n")[0].split())
        known = _types(spec.module)
        types = {one.kind: known[one.kind] for one in arguments if one.kind in known}
        yield StepDescription(name, says, arguments, types, every)


def _argument(spec: Spec, name: str, kind: Any) -> StepArgument:
    """Describe an argument by its type, or by the state's field of the same name."""
    fields = _fields(spec.module)
    meaning = fields.get(name) or fields.get(f"{name}s", "")
    if kind is bool:
        return StepArgument(name, "1 or 0", meaning)
    if isinstance(kind, type) and issubclass(kind, IntEnum):
        return StepArgument(name, "a number", ", ".join(f"{one.value} {one.name}" for one in kind))
    if kind is int:
        return StepArgument(name, "a number", meaning or UNITS.get(name, ""))
    return StepArgument(name, kind.__name__, meaning)


@cache
def _fields(module: ModuleType) -> Mapping[str, str]:
    """Return the comment of each field of the state."""
    found: dict[str, str] = {}
    for line in text_of(module).split("\n"):
        if field := re.fullmatch(r"    (\w+): [^=]+= .*?  # (.+)", line):
            found.setdefault(field[1], field[2])
    return found


@cache
def _types(module: ModuleType) -> Mapping[str, str]:
    """Return the sentence below each named type: those of the language, and the spec's own."""
    found: dict[str, str] = {}
    for tree in (ast.parse(text_of(language)), ast.parse(text_of(module))):
        for above, below in zip(tree.body, tree.body[1:], strict=False):
            match above, below:
                case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = " ".join(text.split())
    return found
