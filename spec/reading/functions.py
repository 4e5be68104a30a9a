"""The functions of a spec file: their signatures, and the parts of their bodies that some reader cannot read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from difflib import get_close_matches

from gapless.spec.reading.complaints import (
    A_FIELD,
    A_FUNCTION,
    A_NEW_NAME,
    A_NUMBER,
    A_WHOLE,
    INSTEAD,
    INSTEAD_OF_A_METHOD,
    INSTEAD_OF_CALLING,
    INSTEAD_OF_IMPORTING,
    LEAVE,
    NO_NONE,
    OF_TRUTHS,
    OPERATORS,
    Complaint,
    in_python,
    no_argument,
    unknown,
)
from gapless.spec.reading.constants import COMPUTED, first_line, is_docstring
from gapless.spec.reading.declarations import NUMBERS_OF_THE_LANGUAGE, OF_THE_LANGUAGE, UNKNOWN, SpecFile
from gapless.spec.reading.kinds import GUARDS, MAP_WORDS, WORDS

SPOKEN = (
    *(ast.Return, ast.Assign, ast.AnnAssign, ast.Expr, ast.If),
    *(ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.IfExp),
    *(ast.BinOp, *COMPUTED),
    *(ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
    *(ast.Call, ast.keyword, ast.Lambda, ast.arguments, ast.arg),
    *(ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Load, ast.Store),
)
"""The parts of a spec's function. Every reader understands these; of the rest, some fail silently."""


LARGEST = 2**60  # what a kernel computes with lies below it


def signature(file: SpecFile, function: ast.FunctionDef) -> Iterator[Complaint]:
    """A function takes states and numbers, by their places, each with its annotation; it returns one of these."""
    line = function.lineno
    for node in ast.walk(function):
        if isinstance(node, ast.arguments):
            yield from _arguments(function, node)
    for one in function.args.args:
        if one.annotation is None:
            instead = f"`{one.arg}: State`" if one.arg in ("s", "state", "before", "after") else f"`{one.arg}: int`"
            instead += ": a type is `State`,"
            yield Complaint(one.lineno, f"`{one.arg}` without an annotation", f"{instead} {A_NUMBER}")
        elif file.kind_of_annotation(one.annotation) == UNKNOWN:
            word = f"`{one.arg}: {ast.unparse(one.annotation)}`"
            yield no_argument(one.lineno, one.annotation, word, file.new_types | file.enums, f"`State`, {A_NUMBER}")
    if function.returns is None:
        word = f"`def {function.name}(…)` without what it returns"
        yield Complaint(line, word, "`-> State`, `-> bool` or a number's type")
    elif file.kind_of_annotation(function.returns) == UNKNOWN:
        instead = f"`-> State` for a step, `-> bool` for a property; of others {A_NUMBER}"
        yield Complaint(line, f"`-> {ast.unparse(function.returns)}`", instead)


def _arguments(function: ast.FunctionDef, node: ast.arguments) -> Iterator[Complaint]:
    for default in (*node.defaults, *filter(None, node.kw_defaults)):
        yield Complaint(default.lineno, f"`{ast.unparse(default)}` as a default", "each argument in each call")
    for star, one in (("*", node.vararg), ("**", node.kwarg)):
        if one is not None:
            yield Complaint(one.lineno, f"`{star}{one.arg}`", "each argument by its name")
    if node.kwonlyargs or node.posonlyargs:
        yield Complaint(function.lineno, f"`*` or `/` in `{function.name}`", "each argument by its name alone")


def foreign_parts(file: SpecFile, function: ast.FunctionDef) -> Iterator[Complaint]:
    """The parts of a function that some reader cannot read, or reads wrongly."""
    for decorator in function.decorator_list:
        yield Complaint(decorator.lineno, f"`@{ast.unparse(decorator)}`", "it out: a step is a plain function", LEAVE)
    sentences = _sentences(function)
    pending: list[tuple[int, ast.AST]] = [(function.lineno, node) for node in (*function.args.defaults, *function.body)]
    while pending:
        outer_line, node = pending.pop(0)
        line = getattr(node, "lineno", outer_line)
        if found := _foreign(file, line, node, sentences):
            yield found  # the parts of a foreign part are not looked at
            continue
        annotation = getattr(node, "annotation", None)
        pending += [(line, child) for child in _parts(node) if child is not annotation]


def _parts(node: ast.AST) -> list[ast.AST]:
    """The parts of a node; two keys of a Map are parts of the look-up."""
    match node:
        case ast.Subscript(value=value, slice=ast.Tuple(elts=[first, second])):
            return [value, first, second]
    return list(ast.iter_child_nodes(node))


def _foreign(file: SpecFile, line: int, node: ast.AST, sentences: frozenset[ast.AST]) -> Complaint | None:
    """The complaint about a node itself; None where every reader understands it."""
    match node:
        case ast.Call() | ast.Expr(value=ast.Call(func=ast.Name(id=_))) if found := _foreign_call(file, line, node):
            return found
        case ast.Constant() | ast.Expr():
            return _foreign_value(line, node, sentences)
        case ast.Compare(left=left, ops=ops, comparators=others):
            if found := _bits_in_a_chain(line, node):
                return found
            foreign = (at for at, op in enumerate(ops) if not isinstance(op, SPOKEN))
            return next((_foreign_comparison(line, (left, *others)[at], ops[at], others[at]) for at in foreign), None)
        case ast.BinOp(op=op) | ast.UnaryOp(op=op) if not isinstance(op, SPOKEN):
            return Complaint(line, in_python(op), _between_truths(node) or INSTEAD.get(type(op), OPERATORS))
    return _foreign_node(line, node)


def _between_truths(node: ast.BinOp | ast.UnaryOp) -> str:
    """The words for an operation on bits whose operands are truth values; empty if they may be numbers."""
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OF_TRUTHS and (_asks(left) or _asks(right)):
            one, other = (_grouped(part, op) for part in (left, right))
            return f"`{one} {OF_TRUTHS[type(op)]} {other}`"
        case ast.UnaryOp(op=ast.Invert(), operand=operand) if _asks(operand):
            return f"`not ({ast.unparse(operand)})`"
    return ""


def _grouped(node: ast.expr, op: ast.operator) -> str:
    """The text of an operand, in parentheses where the word for `op` would be read otherwise."""
    bare = isinstance(node, ast.Compare) and not isinstance(op, ast.BitXor)
    return f"({ast.unparse(node)})" if _asks(node) and not bare else ast.unparse(node)


def _asks(node: ast.expr) -> bool:
    """True for what can be nothing but a truth value."""
    return isinstance(node.op if isinstance(node, ast.UnaryOp) else node, ast.Compare | ast.BoolOp | ast.Not)


def _bits_in_a_chain(line: int, node: ast.Compare) -> Complaint | None:
    """The complaint about `a == b & c >= 0`, in which Python joins `b & c` first; None where there is no such chain."""
    values = [node.left, *node.comparators]
    for at, value in enumerate(values[1:-1], 1):
        if isinstance(value, ast.BinOp) and type(value.op) in OF_TRUTHS:
            before = ast.Compare(node.left, node.ops[:at], [*node.comparators[: at - 1], value.left])
            behind = ast.Compare(value.right, node.ops[at:], node.comparators[at:])
            one, other = (_grouped(part, value.op) for part in (before, behind))
            return Complaint(line, in_python(value.op), f"`{one} {OF_TRUTHS[type(value.op)]} {other}`")
    return None


SAYS = {
    "require": '`require(condition, "an-id", because="…", otherwise="…")`: one id and two sentences, as texts',
    "applies": "`applies(condition)`",
    "assume": '`assume(condition, because="…")`: one sentence, as a text',
}
SENTENCES = {"require": ["because", "otherwise"], "applies": [], "assume": ["because"]}


def _fault_of_guard(call: ast.Call, guard: str) -> str:
    """The first fault in the layout of a guard, whose id and sentences readers take from the text; empty: none."""
    given, wanted = [str(keyword.arg) for keyword in call.keywords], SENTENCES[guard]
    for name in given:
        if name not in wanted:
            near = get_close_matches(name, wanted, n=1)
            return f"with `{name}=`" + (f" (did you mean `{near[0]}=`?)" if near else "")
    if missing := [name for name in wanted if name not in given]:
        return f"without `{missing[0]}=`"
    positions = 2 if guard == "require" else 1
    if len(call.args) != positions:
        return "without its id" if len(call.args) == 1 else f"with {len(call.args)} arguments before its sentences"
    texts = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
    foreign = [text for text in texts if not (isinstance(text, ast.Constant) and isinstance(text.value, str))]
    if foreign:
        return f"with `{ast.unparse(foreign[0])}` for a text"
    empty = (keyword.arg for keyword in call.keywords if not str(ast.literal_eval(keyword.value)).strip())
    return next((f"with an empty `{name}=`" for name in empty), "")


def _foreign_call(  # noqa: PLR0911 - a kind of call a case
    file: SpecFile, line: int, node: ast.Call | ast.Expr
) -> Complaint | None:
    call = node.value if isinstance(node, ast.Expr) else node
    if not isinstance(call, ast.Call):
        return None
    match call.func:
        case ast.Name(id=guard) if guard in GUARDS:
            fault = _fault_of_guard(call, guard)
            return Complaint(line, f"`{guard}(…)` {fault}", SAYS[guard]) if fault else None
        case ast.Name(id=name):
            if name in WORDS or name in file.home(name).functions or _is_a_number_type(file, name):
                return None
            others = f"a word of `{OF_THE_LANGUAGE}`, or another function of this file"
            if name in INSTEAD_OF_CALLING:
                return Complaint(line, f"`{name}(…)`", INSTEAD_OF_CALLING[name])
            return unknown(line, f"`{name}(…)`", name, (*WORDS, *file.functions), others)
        case ast.Attribute(value=of, attr=name):
            spec = of.id if isinstance(of, ast.Name) else ""
            if spec in file.made_of and name in file.made_of[spec].functions and name[0] != "_":
                return None
            if name in MAP_WORDS and spec not in file.made_of:
                return None
            return _foreign_method(line, call.func, ast.unparse(of), name)
    return Complaint(line, f"`{ast.unparse(call.func)}(…)`", A_FUNCTION)


def _foreign_method(line: int, called: ast.expr, of: str, name: str) -> Complaint:
    """The complaint about a call of a method that no `Map` has."""
    word = f"`{ast.unparse(called)}(…)`"
    if of in INSTEAD_OF_IMPORTING or name in INSTEAD_OF_CALLING:
        return Complaint(line, word, INSTEAD_OF_IMPORTING.get(of) or INSTEAD_OF_CALLING[name])
    if name in INSTEAD_OF_A_METHOD:
        name = "put" if "replace" in name and not of.isidentifier() else name  # of a Map, not of a state
        return Complaint(line, word, INSTEAD_OF_A_METHOD[name].format(of))
    return unknown(line, word, name, MAP_WORDS, f"a method of `Map` ({', '.join(sorted(MAP_WORDS))})")


def _foreign_comparison(line: int, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Complaint:
    """The complaint about `is` and `in`, with the comparison to write."""
    one, other, no = ast.unparse(left), ast.unparse(right), isinstance(op, ast.IsNot | ast.NotIn)
    word = f"`{one} {in_python(op).strip('`')} {other}`"
    match right:
        case ast.Constant(value=None):
            return Complaint(line, word, NO_NONE)
        case ast.Constant(value=bool() as value) if isinstance(op, ast.Is | ast.IsNot):
            return Complaint(line, word, f"`{one}`" if value != no else f"`not {one}`")
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) if parts:
            each = (" and " if no else " or ").join(f"{one} {'!=' if no else '=='} {ast.unparse(p)}" for p in parts)
            return Complaint(line, word, f"`{each}`: comparisons joined by `{'and' if no else 'or'}`")
        case ast.Call(func=ast.Name(id="range"), args=[*begin, end]) if len(begin) <= 1:
            low = ast.unparse(begin[0]) if begin else "0"
            between = f"{low} <= {one} < {ast.unparse(end)}"
            return Complaint(line, word, f"`not {between}`" if no else f"`{between}`")
    if isinstance(op, ast.Is | ast.IsNot):
        return Complaint(line, word, f"`{one} {'!=' if no else '=='} {other}`: no reader can overload `is`")
    return Complaint(line, word, INSTEAD[type(op)])


def _is_a_number_type(file: SpecFile, name: str) -> bool:
    return name in file.home(name).new_types or file.imports.get(name) in NUMBERS_OF_THE_LANGUAGE


def _foreign_value(  # noqa: PLR0911 - a kind of value a case
    line: int, node: ast.Constant | ast.Expr, sentences: frozenset[ast.AST]
) -> Complaint | None:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Name(id=guard))) if guard in GUARDS:
            return None
        case ast.Expr(value=value) if isinstance(value, ast.Yield | ast.YieldFrom | ast.Await):
            return _foreign_node(line, value)
        case ast.Expr() if node.value not in sentences:
            word = f"`{first_line(node)}`, which changes nothing"
            return Complaint(line, word, "`return replace(s, …)` with its value")
        case ast.Constant(value=str()) if node not in sentences:
            instead = "an `IntEnum`; strings are for the id, `because` and `otherwise`"
            return Complaint(line, f"`{ast.unparse(node)}`", instead)
        case ast.Constant(value=int() as value) if abs(value) >= LARGEST:
            return Complaint(line, f"`{value}`", "a number below 2⁶⁰: kernels compute in 64 bits")
        case ast.Constant(value=None):
            return Complaint(line, "`None`", f"a number or a `Map`; {NO_NONE}")
        case ast.Constant(value=value) if not isinstance(value, int | str):
            return Complaint(line, f"`{ast.unparse(node)}`", A_WHOLE if isinstance(value, float) else A_FIELD)
    return None


def _foreign_node(line: int, node: ast.AST) -> Complaint | None:  # noqa: C901, PLR0911 - a kind of node a case
    match node:
        case ast.Attribute(ctx=ast.Store()):
            return Complaint(line, f"`{ast.unparse(node)} = …`", f"`return replace(s, {node.attr}=…)`")
        case ast.Subscript(ctx=ast.Store()):
            return Complaint(line, f"`{ast.unparse(node)} = …`", f"`{ast.unparse(node.value)}.set(key, value)`")
        case ast.AugAssign(target=target, op=op, value=value):
            after = ast.unparse(ast.BinOp(target, op, value))
            kept = f"`return replace(s, {target.attr}={after})`" if isinstance(target, ast.Attribute) else ""
            return Complaint(line, f"`{first_line(node)}`", kept or f"a new name: `after = {after}`")
        case ast.NamedExpr(target=target, value=value):
            word = f"`{ast.unparse(node)}`"
            return Complaint(
                line, word, f"a new name, in a line before: `{ast.unparse(target)} = {ast.unparse(value)}`"
            )
        case ast.Attribute(attr=name) if name.startswith("_"):
            return Complaint(line, f"`{ast.unparse(node)}`", A_FIELD)
        case ast.keyword(arg=None):
            return Complaint(line, "`**`", "each argument by its name")
        case ast.Assign(targets=targets) if len(targets) > 1:
            return Complaint(line, f"`{first_line(node)}`", A_NEW_NAME)
        case ast.Assign(targets=[ast.Tuple() | ast.List()]):
            return Complaint(line, f"`{first_line(node)}`", "one name, and its value, in each line")
        case ast.Return(value=None | ast.Constant(value=None)):
            return Complaint(line, f"`{first_line(node)}`", "`return s` or `return replace(s, …)`, on every way")
        case ast.Return(value=ast.Tuple()):
            return Complaint(
                line, f"`{first_line(node)}`", "one value to return: of a state its fields, a number or a `Map`"
            )
        case _ if not isinstance(node, SPOKEN):
            return Complaint(line, in_python(node), INSTEAD.get(type(node), f"it in the words of `{OF_THE_LANGUAGE}`"))
    return None


def _sentences(function: ast.FunctionDef) -> frozenset[ast.AST]:
    """The docstring, and the sentences of guards."""
    texts: list[ast.AST] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in GUARDS:
            texts += [*node.args[1:], *(keyword.value for keyword in node.keywords)]
    return frozenset(texts) | {node.value for node in function.body[:1] if is_docstring(node)}
