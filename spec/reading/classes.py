"""The classes of a spec file: its state, a frozen dataclass of numbers, flags and Maps, and enums of numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gapless.spec.reading.complaints import A_FUNCTION, A_NUMBER, A_STATE, LEAVE, Complaint, no_type
from gapless.spec.reading.constants import first_line, is_docstring, no_constant
from gapless.spec.reading.declarations import BOOL, UNKNOWN, SpecFile, is_state

FROZEN = {"frozen=True", "slots=True"}


def classes(file: SpecFile, node: ast.ClassDef) -> Iterator[Complaint]:
    """The faults of a class: of what kind it is, and its members."""
    if node.name in file.enums:
        yield from _an_enum(file, node)
    else:
        yield from _a_state(file, node)


# -- the state -----------------------------------------------------------------------------------------------------


def _a_state(file: SpecFile, node: ast.ClassDef) -> Iterator[Complaint]:
    if node.name != "State":
        instead = "its fields into `State`, or `IntEnum` as its base: a spec has one state"
        yield Complaint(node.lineno, f"class {node.name}", instead)
        return
    if not _is_frozen(node):
        yield Complaint(node.lineno, "class State", f"{A_STATE} above it")
    if node.bases or node.keywords:
        bases = ", ".join(map(ast.unparse, node.bases))
        yield Complaint(
            node.lineno, f"class State({bases})", "`class State`, without a base: its fields are all that it has"
        )
    seen: dict[str, bool] = {}
    for member in node.body:
        if is_docstring(member):
            continue
        if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
            name = member.target.id
            if name in seen:
                yield Complaint(
                    member.lineno, f"field `{name}` a second time", "another name: the first is hidden by it"
                )
            if member.value is None and any(seen.values()):
                word = f"`{first_line(member)}`, without a value behind fields that have one"
                yield Complaint(member.lineno, word, f"`{first_line(member)} = 0`")
            seen[name] = member.value is not None
            yield from _field(file, member, name)
        else:
            yield _no_field(member)


def _is_frozen(node: ast.ClassDef) -> bool:
    """True if a class is a frozen dataclass with slots, and nothing else."""
    match node.decorator_list:
        case [ast.Call(func=ast.Name(id="dataclass"), args=[], keywords=keywords)]:
            return {ast.unparse(keyword) for keyword in keywords} == FROZEN
    return False


def _field(file: SpecFile, member: ast.AnnAssign, name: str) -> Iterator[Complaint]:
    """The fault of a field: its name, its type, or the value that it begins with."""
    word, kind = f"`{first_line(member)}`", file.kind_of_annotation(member.annotation)
    if name[0] == "_":
        yield Complaint(
            member.lineno, word, f"`{name.strip('_') or 'number'}` as its name: readers skip names with `_`"
        )
    elif kind == UNKNOWN or is_state(kind):
        otherwise = f"{A_NUMBER}, or a `Map` of such"
        yield no_type(member.lineno, member.annotation, word, file.new_types | file.enums, otherwise)
    elif member.value is None:
        return
    elif isinstance(member.value, ast.Constant) and member.value.value is None:
        yield no_type(member.lineno, member.value, word, (), A_NUMBER)
    elif isinstance(member.value, ast.Call) and ast.unparse(member.value) == "Map()":
        yield Complaint(member.lineno, word, "`Map(0)`, with the value of each key that was not set")
    elif no_constant(file, member.value) is not None:
        yield Complaint(member.lineno, word, "a number to begin with, or `Map(…)` of one")
    elif kind == BOOL and not _is_truth(member.value):
        yield Complaint(member.lineno, word, "`True` or `False`")


def _is_truth(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, bool)


def _no_field(member: ast.stmt) -> Complaint:
    """The complaint about a member of the state that is no field."""
    word = f"`{first_line(member)}` in class State"
    named = ast.unparse(member.targets[0]) if isinstance(member, ast.Assign) else ""
    if named and named[0] != "_":
        return Complaint(member.lineno, word, f"`{named}: int = …`")
    if isinstance(member, ast.FunctionDef):
        return Complaint(member.lineno, word, f"{A_FUNCTION}: `def {member.name}(s: State) -> …`")
    if isinstance(member, ast.Pass):
        return Complaint(member.lineno, word, "a field: a state without one never changes")
    return Complaint(member.lineno, word, A_FUNCTION)


# -- enums ---------------------------------------------------------------------------------------------------------


def _an_enum(file: SpecFile, node: ast.ClassDef) -> Iterator[Complaint]:
    if [ast.unparse(base) for base in node.bases] != ["IntEnum"] or node.keywords:
        bases = ", ".join(map(ast.unparse, node.bases))
        yield Complaint(
            node.lineno, f"class {node.name}({bases})", f"`class {node.name}(IntEnum)`: its members are numbers"
        )
    if node.decorator_list:
        yield Complaint(
            node.lineno, f"`@{ast.unparse(node.decorator_list[0])}` above class {node.name}", "it out", LEAVE
        )
    for member in node.body:
        match member:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name[0] != "_":
                if not isinstance(value, ast.Constant | ast.UnaryOp) or no_constant(file, value) is not None:
                    yield Complaint(member.lineno, f"`{first_line(member)}`", f"a number: `{name} = 0`")
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                word = f"`{first_line(member)}` in class {node.name}"
                yield Complaint(member.lineno, word, f"`{ast.unparse(target)} = {ast.unparse(value)}`")
            case _ if not is_docstring(member):
                yield Complaint(member.lineno, f"`{first_line(member)}` in class {node.name}", A_FUNCTION)
