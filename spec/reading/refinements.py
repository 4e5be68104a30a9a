"""The refinements of a spec file: which steps of another spec its own are, as `Refines(…)` in the tuple `REFINES`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gapless.spec.reading.calls import (
    NONE,
    first_of,
    is_call,
    members_of,
    parts_of,
    shown,
    step_in,
    strange_part,
    text_in,
)
from gapless.spec.reading.complaints import Complaint, unknown
from gapless.spec.reading.declarations import SpecFile, is_map, is_state

A_REFINEMENT = '`Refines("other.py", steps={step: "its step", …})`'
PARTS = ("spec", "steps", "sees", "args")


def refinements(file: SpecFile) -> Iterator[Complaint]:
    """The faults of `REFINES`; of each refinement, the first. What the other spec lacks, is noticed when it is read."""
    members, complaints = members_of(file, "REFINES", A_REFINEMENT)
    yield from complaints
    for member in members:
        yield from first_of(_of_refinement(file, member))


def _of_refinement(file: SpecFile, member: ast.expr) -> Iterator[Complaint]:
    """The faults of one refinement."""
    parts, line = parts_of(member, PARTS), member.lineno
    if not is_call(member, "Refines"):
        yield Complaint(line, f"{shown(member)} in `REFINES`", A_REFINEMENT)
        return
    yield from strange_part("Refines", parts, PARTS, line, A_REFINEMENT)
    if not text_in(parts.get("spec", NONE)).strip():
        yield Complaint(line, "`Refines(…)` without a file", f"the file of the other spec, as a text: {A_REFINEMENT}")
    yield from _steps(file, parts.get("steps", NONE), line)
    for name in ("sees", "args"):
        if name in parts:
            yield from _functions(file, name, parts[name])


def _steps(file: SpecFile, value: ast.expr, line: int) -> Iterator[Complaint]:
    """The faults of the mapping of steps to those of the other spec."""
    if not isinstance(value, ast.Dict):
        yield Complaint(line, "`Refines(…)` without `steps={…}`", A_REFINEMENT)
        return
    for key, names in zip(value.keys, value.values, strict=True):
        yield from step_in(file, key or NONE, "steps", value.lineno)
        several = names.elts if isinstance(names, ast.Tuple) else [names]
        if not several or not all(map(text_in, several)):
            instead = 'the other spec\'s step, or several, as texts: `"commit"`, or `("commit", "abort")`'
            yield Complaint(names.lineno, f"{shown(names)} in `steps`", instead)


def _functions(file: SpecFile, part: str, value: ast.expr) -> Iterator[Complaint]:
    """The faults of a mapping of fields or arguments to functions."""
    what = "field" if part == "sees" else "step.argument"
    form = f'`{part}={{"{what}": function}}`'
    if not isinstance(value, ast.Dict) or not all(key is not None and text_in(key) for key in value.keys):
        yield Complaint(value.lineno, f"`{part}={ast.unparse(value)}` in a refinement", form)
        return
    for one in value.values:
        function = file.functions.get(ast.unparse(one))
        if function is None:
            others = f"a function of this file, by its name: {form}"
            word = f"{shown(one)} in `{part}`"
            yield unknown(one.lineno, word, ast.unparse(one), file.functions, others)
            continue
        kinds = [file.kind_of_annotation(each.annotation) for each in function.args.args]
        returned = file.kind_of_annotation(function.returns)
        if [*map(is_state, kinds)] != [True, *[False] * (len(kinds) - 1)] or is_state(returned) or is_map(returned):
            head = f"`def {function.name}(s: State, …) -> int`: of the state, and of numbers behind it"
            yield Complaint(one.lineno, f"`{function.name}` in `{part}`", head)
