"""The kind of property that would catch a planted fault, and the requirement that the fault is in."""

from __future__ import annotations

import ast
from functools import cache

from gapless.properties.faults.operators import Fault, behind_steps
from gapless.spec.catalog import END, Spec, text_of

EFFECT = "its effect"
"""The part of a step that is no requirement: the state that it returns."""


def part_of(spec: Spec, fault: Fault) -> str:
    """The id of the requirement that a fault is in, or `EFFECT`."""
    if fault.says.startswith("without "):
        return fault.says.removeprefix("without ").partition(" (")[0]
    module = spec.deviating if fault.file and spec.deviating else spec.module
    for name, low, high, rule in _requirements(text_of(module)):
        if name == fault.function and low <= fault.line <= high:
            return rule
    return EFFECT


@cache
def _requirements(text: str) -> list[tuple[str, int, int, str]]:
    """Every requirement of a text: its function, its lines and its id."""
    return [
        (function.name, node.lineno, node.end_lineno or node.lineno, ast.literal_eval(rule))
        for function in ast.parse(text).body
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        for rule in _ids(node)
    ]


def _ids(call: ast.Call) -> list[ast.expr]:
    named = isinstance(call.func, ast.Name) and call.func.id == "require" and len(call.args) > 1
    return [call.args[1]] if named else []


def remedy(spec: Spec, fault: Fault) -> str:
    """The kind of property that would catch a fault, in a few words."""
    steps = behind_steps(spec)[fault.function]
    if steps == {END}:
        return "AT_REST: another property of what is left"
    step = fault.function if fault.function in steps else min(steps)
    if fault.kind == "a forgotten field":
        field = fault.says.removeprefix("forgets ").partition("=")[0]
        return f"a step property: what {step} makes of `{field}`"
    if part_of(spec, fault) == EFFECT:
        return f"a step property: what {step} makes of the state in this case"
    if fault.kind == "a missing guard":
        return f"ENABLED: not accepts({step}, …) where it must be refused; or an invariant that it breaks"
    return f"ENABLED: accepts({step}, …) at this boundary, and not accepts(…) one beyond it"
