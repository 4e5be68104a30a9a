"""A spec that is written in a test."""

import ast
import types

from gapless.spec.catalog import Spec


def module(name: str, source: str | ast.Module) -> Spec:
    """The spec that this source is."""
    made = types.ModuleType(name)
    exec(compile(source, name, "exec"), made.__dict__)  # noqa: S102
    return Spec(made)
