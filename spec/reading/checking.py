"""Checks a spec against the vocabulary before it is read: ours, and any that is given as modules."""

from __future__ import annotations

import ast
from functools import cache
from types import ModuleType

from gapless.spec import __name__ as room
from gapless.spec.catalog import SPECS, Spec, has_text, text_of
from gapless.spec.reading.declarations import SpecFile
from gapless.spec.reading.vocabulary import understood


@cache
def checked(spec: Spec) -> Spec:
    """The same spec, of which every reader understands every word. Raises ForeignWords."""
    for file in _files(spec):
        understood(file)
    return spec


def _files(spec: Spec) -> list[SpecFile]:
    """The files that state a spec; there are none of one that a program made."""
    return [_spec_file(module) for module in (spec.module, spec.deviating, spec.laws) if module and has_text(module)]


@cache
def _spec_file(module: ModuleType) -> SpecFile:
    made_of = {
        name: _spec_file(value)
        for name, value in vars(module).items()
        if isinstance(value, ModuleType) and value.__name__.startswith(f"{room}.")
    }
    path, name = module.__file__ or "", module.__name__.removeprefix(f"{room}.")
    return SpecFile(path, name, _tree(text_of(module)), made_of, _called(name.rpartition(".")[2]))


@cache
def _called(name: str) -> frozenset[str]:
    """The functions of one of our specs that others call, or give up."""
    others = {module for spec in SPECS.values() for module in spec.files}
    return frozenset(
        node.attr
        for module in others
        if name in vars(module)
        for node in ast.walk(_tree(text_of(module)))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
    )


@cache
def _tree(text: str) -> ast.Module:
    return ast.parse(text)
