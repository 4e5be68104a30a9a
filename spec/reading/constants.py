"""The constants of a spec file: numbers, states and tuples at its top, below 64 bits."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from gapless.spec.reading.complaints import (
    A_CONSTANT,
    A_COUNTER,
    A_FUNCTION,
    A_SMALLER,
    INSTEAD_OF_A_METHOD,
    INSTEAD_OF_CALLING,
    Complaint,
    unknown,
)
from gapless.spec.reading.declarations import BOOL, OF_STEPS, WORD, SpecFile, is_map, names_given

COMPUTED = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
"""The operations on numbers that every reader understands."""


def foreign_constant(file: SpecFile, name: str, foreign: ast.expr) -> Iterator[Complaint]:
    """The complaint about a value at the top that is no constant, unless `_tuples` makes it."""
    word = f"`{first_line(foreign)}` at the top of a spec"
    match foreign:
        case _ if name in file.states_taken:
            return  # `_tuples` looks at its members
        case ast.Lambda():
            yield Complaint(foreign.lineno, word, A_FUNCTION)
        case ast.Name(id="int" | "bool" as kind):
            yield Complaint(foreign.lineno, f"`{name} = {kind}`", f'`{name} = NewType("{name}", int)`')
        case ast.Name(id=strange):
            yield unknown(foreign.lineno, word, strange, (*file.values, *file.functions), A_CONSTANT)
        case ast.Call(func=ast.Name(id="NewType"), args=[ast.Constant(value=str()), kind]):
            yield Complaint(
                foreign.lineno, word, f'`{name} = NewType("{name}", int)`: {ast.unparse(kind)} is no number'
            )
        case _:
            yield Complaint(foreign.lineno, word, A_CONSTANT)


A_BOUND = '`Bound(says="…", within=lambda s: …, numbers={"argument": range(3)})`'


def initial(file: SpecFile, value: ast.expr) -> Iterator[Complaint]:
    """The fields that the initial state is given and does not have; or else those that it has and is not given."""
    for keyword in value.keywords if isinstance(value, ast.Call) else ():
        fields = file.fields(f"{file.name}.State")
        if keyword.arg is not None and fields and keyword.arg not in fields:
            others = f"a field of the state: {', '.join(fields)}"
            yield unknown(value.lineno, f"`State({keyword.arg}=…)`", keyword.arg, fields, others, "`{}=…`")
            return
    if isinstance(value, ast.Call) and "State" in file.classes:
        yield from _not_given(file, value)


def _not_given(file: SpecFile, value: ast.Call) -> Iterator[Complaint]:
    """The fields without a value to begin with, neither in the class nor in the initial state."""
    members = [node for node in file.classes["State"].body if isinstance(node, ast.AnnAssign)]
    given = {keyword.arg for keyword in value.keywords}
    for member in members[len(value.args) :]:
        name = ast.unparse(member.target)
        if member.value is not None or None in given:
            return  # of a field without a value behind one that has a value, `classes` complains
        if name not in given:
            word = f"`{first_line(member)}`, for which INITIAL has no value"
            begin = beginning(file, member.annotation)
            instead = f"`{first_line(member)} = {begin}`, or give it in INITIAL: `State({name}={begin})`"
            yield Complaint(member.lineno, word, instead)


def beginning(file: SpecFile, annotation: ast.expr) -> str:
    """A value for a field of this type to begin with."""
    kind = file.kind_of_annotation(annotation)
    match annotation:
        case ast.Subscript(slice=ast.Tuple(elts=[*_, inner])) if is_map(kind):
            return f"Map({beginning(file, inner)})"
        case ast.Name(id=name) if name in file.enums and file.members(name):
            return f"{name}.{file.members(name)[0]}"
    return "False" if kind == BOOL else "0"


def bound(file: SpecFile) -> Iterator[Complaint]:
    """The faults of `BOUND`: a part that it lacks, a part that it never has, an argument that no step has."""
    value = file.values["BOUND"]
    given = {keyword.arg: keyword.value for keyword in value.keywords} if isinstance(value, ast.Call) else {}
    wanted = ("says", "within", "numbers")
    if strange := [name for name in given if name and name not in (*wanted, "worth")]:
        yield unknown(value.lineno, f"`Bound({strange[0]}=…)`", strange[0], wanted, A_BOUND, "`{}=…`")
    elif missing := [name for name in wanted if name not in given]:
        yield Complaint(value.lineno, f"`Bound(…)` without `{missing[0]}=`", A_BOUND)
    else:
        if isinstance(numbers := given["numbers"], ast.Dict):
            yield from _arguments_of_bound(file, numbers)
        if isinstance(within := given["within"], ast.Lambda) and len(within.args.args) == 1:
            yield from _maps_as_a_whole(file, within)


def _maps_as_a_whole(file: SpecFile, within: ast.Lambda) -> Iterator[Complaint]:
    """Maps that the limit of a bound counts or goes through, which have no size; and fields that no state has."""
    fields, state = file.fields(f"{file.name}.State"), within.args.args[0].arg
    for outer in ast.walk(within):
        for node in ast.iter_child_nodes(outer):
            match node:
                case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == state and attr not in fields:
                    others = f"a field of the state: {', '.join(fields)}"
                    yield unknown(node.lineno, f"`{ast.unparse(node)}`", attr, fields, others, f"`{state}.{{}}`")
                case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == state and is_map(fields[attr]):
                    yield from _of_a_map(file, outer, node)


def _of_a_map(file: SpecFile, outer: ast.AST, node: ast.Attribute) -> Iterator[Complaint]:
    """The complaint about the part of a text that a Map stands in."""
    word, shown = first_line(outer), ast.unparse(node)
    match outer:
        case ast.Subscript(value=value) if value is node:
            return
        case ast.Attribute(attr=attr):
            if attr in INSTEAD_OF_A_METHOD:
                yield Complaint(node.lineno, f"`{word}`", INSTEAD_OF_A_METHOD[attr].format(shown))
        case ast.Call(func=ast.Name(id=called)):
            if called in INSTEAD_OF_CALLING:
                yield Complaint(node.lineno, f"`{word}`", INSTEAD_OF_CALLING[called])
        case _:
            instead = f"one of its values, such as `{shown}[0]`, or {A_COUNTER}"
            yield Complaint(node.lineno, f"`{shown}` as a whole", instead)


def _arguments_of_bound(file: SpecFile, numbers: ast.Dict) -> Iterator[Complaint]:
    """Keys of a bound's numbers that are no argument of a step or property; or else arguments without numbers."""
    members = [ast.unparse(one) for name in OF_STEPS for one in file.tuple_of(name) or ()]
    steps = [file.functions[name] for name in members if name in file.functions]
    arguments = [(step.name, one.arg) for step in steps for one in step.args.args[1:]]
    known = [*dict.fromkeys(name for _, name in arguments), *(f"{step}.{name}" for step, name in arguments)]
    spoken_of = {*known, *_universal_parameters(file)}
    keys = {str(key.value): key for key in numbers.keys if isinstance(key, ast.Constant)}
    if strange := [key for key in keys if key not in spoken_of]:
        others = f"an argument of a step: {', '.join(known)}"
        word = f"`{strange[0]}` in the numbers of `BOUND`"
        yield unknown(keys[strange[0]].lineno, word, strange[0], known, others)
    elif len(keys) == len(numbers.keys):
        for step, name in arguments:
            if not {name, f"{step}.{name}"} & keys.keys():
                word = f"`{name}` of the step `{step}`, for which `BOUND` has no numbers"
                yield Complaint(numbers.lineno, word, f'`"{name}": range(3)` into them')
                return


def _universal_parameters(file: SpecFile) -> Iterator[str]:
    """The parameters of invariants and step properties, for each number of which they are true."""
    for name in ("INVARIANTS", "STEP_PROPERTIES"):
        for member in map(ast.unparse, file.tuple_of(name) or ()):
            if member in file.functions:
                yield from (one.arg for one in file.functions[member].args.args[file.states_taken[name] :])
    for node in ast.walk(file.values.get("CLAIMS", ast.Constant(None))):
        if isinstance(node, ast.Name) and node.id in file.functions:
            yield from (one.arg for one in file.functions[node.id].args.args[1:])


def is_bound(node: ast.stmt) -> bool:
    """True if a statement says how far a spec is explored."""
    match node:
        case ast.Assign(value=ast.Call(func=called)) | ast.AnnAssign(value=ast.Call(func=called)):
            return "BOUND" in names_given(node) and ast.unparse(called) == "Bound"
    return False


def beyond_64_bits(file: SpecFile) -> Iterator[Complaint]:
    """Numbers that no reading in 64 bits has: constants, and what is computed of them alone."""
    pending: list[ast.AST] = [node for node in file.tree.body if not is_bound(node)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Constant):
            number = file.number(node)
            if number is not None:
                if not -WORD <= number < WORD:
                    yield Complaint(node.lineno, f"`{first_line(node)}`, which has more than 64 bits", A_SMALLER)
                continue
        pending += ast.iter_child_nodes(node)


def no_constant(file: SpecFile, value: ast.expr) -> ast.expr | None:  # noqa: C901, PLR0911 - a kind of value a case
    """The part of a value at the top that is no constant; None where all of it is one."""
    match value:
        case ast.Constant(value=bool() | int() | str()):
            return None
        case ast.Name(id=name):
            return value if file.kind_of_name(name) is None else None
        case ast.Attribute(value=ast.Name(id=name), attr=attr):
            return None if attr[0] != "_" and (name in file.made_of or name in file.home(name).enums) else value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return no_constant(file, operand)
        case ast.BinOp(left=left, op=op, right=right):
            if not isinstance(op, (ast.Pow, *COMPUTED)):
                return value
            return no_constant(file, left) or no_constant(file, right)
        case ast.Tuple(elts=parts):
            return next((one for part in parts if (one := no_constant(file, part)) is not None), None)
        case ast.Call(func=ast.Name(id="NewType"), args=[ast.Constant(value=str()), ast.Name(id="int")], keywords=[]):
            return None
        case ast.Call(func=ast.Name(id="frozenset"), args=[ast.Set(elts=parts)], keywords=[]):
            return next((one for part in parts if (one := no_constant(file, part)) is not None), None)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if _makes_a_constant(file, name):
            parts = [*args, *(keyword.value for keyword in keywords)]
            return next((one for part in parts if (one := no_constant(file, part)) is not None), None)
    return value


def _makes_a_constant(file: SpecFile, name: str) -> bool:
    return name in ("State", "Map", "Number", "Position", "Deviation", "Takeover") or name in file.home(name).new_types


def is_docstring(node: ast.AST) -> TypeGuard[ast.Expr]:
    """True if a statement is a text that stands for itself."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def first_line(node: ast.AST) -> str:
    """The first line of a part of a text."""
    return ast.unparse(node).splitlines()[0]
