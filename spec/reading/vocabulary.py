"""The vocabulary: what a spec file may say so that every reader understands it, and the word to use instead of others.

A spec's functions are run on values that are not numbers (`forking.py`). What does not pass through `bool`, arithmetic
or `Map` is invisible there: `is` and `isinstance` would fail in silence, a `try` would catch a refusal, a default or a
list at the top of a file would be a state that no reader knows. So whoever reads a spec looks at its text first, and
refuses what is outside of the language. A function that is in no tuple is refused too: whoever wrote it believes that
it is checked.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import groupby
from typing import TypeGuard

from gapless.spec import language
from gapless.spec.reading.declarations import (
    BOOL,
    MORE_TUPLES,
    NUMBERS_OF_THE_LANGUAGE,
    OF_THE_LANGUAGE,
    STATES_TAKEN,
    UNKNOWN,
    WORD,
    SpecFile,
    is_state,
    loaded,
    names_given,
)
from gapless.spec.reading.kinds import MAP_WORDS, WORDS, Complaint, misplaced
from gapless.spec.reading.rule_ids import rule_ids

IMPORTED = {
    OF_THE_LANGUAGE: frozenset(language.__all__),
    "dataclasses": frozenset({"dataclass"}),
    "enum": frozenset({"IntEnum"}),
    "typing": frozenset({"NewType"}),
}
"""What a spec file may import, beside the specs that it is made of."""

SPOKEN = (
    *(ast.Return, ast.Assign, ast.AnnAssign, ast.Expr, ast.If),
    *(ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.IfExp),
    *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod),
    *(ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
    *(ast.Call, ast.keyword, ast.Lambda, ast.arguments, ast.arg),
    *(ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Load, ast.Store),
)
"""What a spec's function may be made of. Every reader understands these; of the rest, some fail silently."""

A_QUANTIFIER = "`all_between(low, high, lambda n: …)`, or in an invariant a parameter, which is universal"
A_GUARD = '`require(condition, "an-id", because="…", otherwise="…")`, or `applies(condition)`'
A_NEW_NAME = "a new name: `after = before + 1`"
A_FIELD = "a field of the state, a number or a `Map`"
A_WHOLE = "a whole number, of a smaller unit if need be"
A_COMPARISON = "comparisons joined by `or`, or a `Map` of what is in it"
A_BOOLEAN = "`and`, `or`, `not`, `+`, `-`, `*`, `//`, `%`"
A_FUNCTION = "a plain function of the state, beside this one"
A_NUMBER = "`int`, `bool`, an `IntEnum`, or a `NewType` of `int`"
A_STATE = "`@dataclass(frozen=True, slots=True)` or `IntEnum`"
A_SMALLER = "a number below 2⁶³, of a larger unit if need be: kernels compute in 64 bits"
A_CONSTANT = "a number, `State(…)`, or a tuple of functions"

INSTEAD: dict[type[ast.AST], str] = {
    **dict.fromkeys((ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), A_QUANTIFIER),
    **dict.fromkeys((ast.Is, ast.IsNot), "`==` and `!=`: no reader can overload `is`"),
    **dict.fromkeys((ast.In, ast.NotIn), A_COMPARISON),
    **dict.fromkeys((ast.JoinedStr, ast.FormattedValue), "a plain sentence: the values stand beside it in the report"),
    **dict.fromkeys((ast.Try, ast.TryStar, ast.Raise, ast.Assert), A_GUARD),
    **dict.fromkeys((ast.Global, ast.Nonlocal, ast.List, ast.Tuple, ast.Set, ast.Dict), A_FIELD),
    **dict.fromkeys((ast.AugAssign, ast.NamedExpr, ast.Delete, ast.Del), A_NEW_NAME),
    **dict.fromkeys((ast.Div, ast.Pow, ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift), A_BOOLEAN),
    **dict.fromkeys((ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef, ast.With), A_FUNCTION),
    ast.Match: "`if` and `==`",
    ast.Slice: "`all_between` over the part",
    ast.Starred: "each argument by itself",
}
CALLED = {ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.Div: "/", ast.Pow: "**"}
"""What is better known by how it is written."""

INSTEAD_OF_CALLING = {
    **dict.fromkeys(("all", "any", "sum", "range", "sorted", "map", "filter", "enumerate", "zip"), A_QUANTIFIER),
    **dict.fromkeys(("max", "min"), "`greatest`, or a comparison"),
    **dict.fromkeys(("isinstance", "type", "hasattr", "getattr"), "a field of the state that tells them apart"),
    **dict.fromkeys(("int", "bool", "str", "repr", "format", "float"), "the value as it is"),
    "len": "a field that counts, such as an exclusive `end`",
    "State": "`replace(s, …)`: what is not mentioned stays",
}
GUARDS = ("require", "applies", "assume")
LARGEST = 2**60  # what a kernel computes with lies below it


class ForeignWords(ValueError):  # noqa: N818 - its name is what it finds.
    """A spec file says what some reader does not understand; `complaints` are in the order of its lines."""

    def __init__(self, path: str, complaints: Sequence[Complaint]) -> None:
        self.path = path
        self.complaints = tuple(complaints)
        super().__init__("\n".join(f"{path}:{complaint.line}: {complaint}" for complaint in complaints))

    def __reduce__(self) -> tuple[type[ForeignWords], tuple[str, tuple[Complaint, ...]]]:
        """So that a worker's complaint arrives whole."""
        return type(self), (self.path, self.complaints)


def understood(file: SpecFile) -> None:
    """Raise ForeignWords unless every reader understands all that a spec file says."""
    if found := foreign_words(file):
        raise ForeignWords(file.path, found)


def foreign_words(file: SpecFile) -> list[Complaint]:
    """What a spec file says that is not in the spec language, and the word to use instead, by line."""
    found = [*_imports(file), *_top(file), *_named_twice(file), *_tuples(file), *_loops(file), *_forgotten(file)]
    found += [*_of_properties(file), *rule_ids(file), *_beyond_64_bits(file)]
    for function in file.tree.body:
        if isinstance(function, ast.FunctionDef):
            found += _signature(file, function)
            found += _function(file, function)
            found += misplaced(file, function)
        elif isinstance(function, ast.ClassDef):
            found += _class(file, function)
    return sorted(dict.fromkeys(found), key=lambda complaint: complaint.line)


# -- at the top ----------------------------------------------------------------------------------------------------


def _imports(file: SpecFile) -> Iterator[Complaint]:
    instead = f"a word of `{OF_THE_LANGUAGE}`, and put what else is needed into this file"
    for node in ast.walk(file.tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield Complaint(node.lineno, f"`import {alias.name}`", instead)
            case ast.ImportFrom(module=module, level=level, names=names):
                whence = "." * level + (module or "")
                for alias in names:
                    ours = f"{whence}.{alias.name}".rpartition(".")[2] in file.made_of and whence == "gapless.spec"
                    theirs = whence.rpartition(".")[2] in file.made_of and whence.startswith("gapless.spec.")
                    if alias.asname or not (ours or theirs or alias.name in IMPORTED.get(whence, ())):
                        under = f" as {alias.asname}" if alias.asname else ""
                        yield Complaint(node.lineno, f"`from {whence} import {alias.name}{under}`", instead)


def _top(file: SpecFile) -> Iterator[Complaint]:
    for node in file.tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            names = list(names_given(node))
            if _is_bound(node):
                continue  # it is read by calling it on numbers alone
            if node.value is None or len(names) != 1:
                yield Complaint(node.lineno, f"`{_first_line(node)}` at the top of a spec", "one name, and its value")
            elif foreign := _no_constant(file, node.value):
                instead = A_FUNCTION if isinstance(foreign, ast.Lambda) else A_CONSTANT
                yield Complaint(foreign.lineno, f"`{_first_line(foreign)}` at the top of a spec", instead)
        elif not (is_docstring(node) or isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef)):
            yield Complaint(node.lineno, f"`{_first_line(node)}` at the top of a spec", A_FUNCTION)


def _is_bound(node: ast.stmt) -> bool:
    """True if a statement says how far a spec is explored."""
    match node:
        case ast.Assign(value=ast.Call(func=called)) | ast.AnnAssign(value=ast.Call(func=called)):
            return "BOUND" in names_given(node) and ast.unparse(called) == "Bound"
    return False


def _beyond_64_bits(file: SpecFile) -> Iterator[Complaint]:
    """Numbers that no reading in 64 bits has: constants, and what is computed of them alone."""
    pending: list[ast.AST] = [node for node in file.tree.body if not _is_bound(node)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Constant):
            number = file.number(node)
            if number is not None:
                if not -WORD <= number < WORD:
                    yield Complaint(node.lineno, f"`{_first_line(node)}`, which has more than 64 bits", A_SMALLER)
                continue
        pending += ast.iter_child_nodes(node)


def _no_constant(file: SpecFile, value: ast.expr) -> ast.expr | None:  # noqa: PLR0911 - a kind of value a case
    """The part of a value at the top that is no constant; None where all of it is one."""
    match value:
        case ast.Constant(value=bool() | int() | str()) | ast.Name():
            return None
        case ast.Attribute(value=ast.Name(id=name), attr=attr):
            return None if attr[0] != "_" and (name in file.made_of or name in file.home(name).enums) else value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _no_constant(file, operand)
        case ast.BinOp(left=left, op=op, right=right):
            if not isinstance(op, ast.Pow) and not isinstance(op, SPOKEN):
                return value
            return _no_constant(file, left) or _no_constant(file, right)
        case ast.Tuple(elts=parts):
            return next((one for part in parts if (one := _no_constant(file, part)) is not None), None)
        case ast.Call(func=ast.Name(id="NewType"), args=[ast.Constant(value=str()), ast.Name(id="int")], keywords=[]):
            return None
        case ast.Call(func=ast.Name(id="frozenset"), args=[ast.Set(elts=parts)], keywords=[]):
            return next((one for part in parts if (one := _no_constant(file, part)) is not None), None)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if _makes_a_constant(file, name):
            parts = [*args, *(keyword.value for keyword in keywords)]
            return next((one for part in parts if (one := _no_constant(file, part)) is not None), None)
    return value


def _makes_a_constant(file: SpecFile, name: str) -> bool:
    return name in ("State", "Map", "Number", "Position", "Deviation", "Takeover") or name in file.home(name).new_types


def _class(file: SpecFile, node: ast.ClassDef) -> Iterator[Complaint]:
    """A class of a spec is a frozen dataclass, its state, or an IntEnum; it only holds fields."""
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    a_state = not node.bases and node.name == "State" and decorators == ["dataclass(frozen=True, slots=True)"]
    if not a_state and (node.name not in file.enums or len(node.bases) > 1 or node.keywords or decorators):
        yield Complaint(node.lineno, f"`class {node.name}`", f"`State`, with {A_STATE}")
    for member in node.body:
        if is_docstring(member):
            continue
        match member:
            case ast.AnnAssign(target=ast.Name(), annotation=kind, value=value) if node.name not in file.enums:
                if file.kind_of_annotation(kind) == UNKNOWN or is_state(file.kind_of_annotation(kind)):
                    yield Complaint(member.lineno, f"`{_first_line(member)}`", f"{A_NUMBER}, or a `Map` of such")
                elif value is not None and _no_constant(file, value) is not None:
                    yield Complaint(member.lineno, f"`{_first_line(member)}`", "a number, or `Map(…)` of one")
                elif value is not None and file.kind_of_annotation(kind) == BOOL and not _is_truth(value):
                    yield Complaint(member.lineno, f"`{_first_line(member)}`", "`True` or `False`")
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if node.name in file.enums and name[0] != "_":
                if not isinstance(value, ast.Constant | ast.UnaryOp) or _no_constant(file, value) is not None:
                    yield Complaint(member.lineno, f"`{_first_line(member)}`", "a number")
            case _:
                named = ast.unparse(member.targets[0]) if isinstance(member, ast.Assign) else ""
                instead = f"`{named}: int = …`" if named and named[0] != "_" else A_FUNCTION
                yield Complaint(member.lineno, f"`{_first_line(member)}` in `class {node.name}`", instead)


def _is_truth(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, bool)


def _named_twice(file: SpecFile) -> Iterator[Complaint]:
    """Names that stand for two things, or hide a word of the language: one of the two is never read."""
    named: list[tuple[str, int]] = []
    for node in file.tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                named.append((name, node.lineno))
            case ast.Assign() | ast.AnnAssign():
                named += [(name, node.lineno) for name in names_given(node)]
            case ast.ImportFrom(names=names):
                named += [(alias.asname or alias.name, node.lineno) for alias in names]
                continue
        name, line = named[-1] if named and named[-1][1] == node.lineno else ("", 0)
        if name in language.__all__:
            yield Complaint(line, f"`{name}` as a name", "another name: this is a word of the language")
    for name, several in groupby(sorted(named), key=lambda one: one[0]):
        _, *again = several
        for _, line in again:
            yield Complaint(line, f"`{name}` a second time", "another name: the first is hidden by it")


# -- tuples and calls ----------------------------------------------------------------------------------------------


def _tuples(file: SpecFile) -> Iterator[Complaint]:
    """What is in the tuples that end a spec: functions by their names, each of the kind that its tuple is of."""
    for name, states in STATES_TAKEN.items():
        if name not in file.values:
            continue
        members = file.tuple_of(name)
        if members is None:
            value = file.values[name]
            yield Complaint(value.lineno, f"`{name} = {ast.unparse(value)}`", f"a tuple: `{name} = (…,)`")
            continue
        for member, count in Counter(map(ast.unparse, members)).items():
            line = next(one.lineno for one in members if ast.unparse(one) == member)
            if count > 1:
                yield Complaint(line, f"`{member}` twice in `{name}`", "it once")
            if member not in file.functions:
                yield Complaint(line, f"`{member}` in `{name}`", "a function of this file, by its name")
            elif not _fits(file, file.functions[member], name, states):
                given = "its state, then its arguments, and returns the next state"
                if name != "ACTIONS":
                    given = f"{'the states before and after' if states == 2 else 'a state'}, and returns a `bool`"
                yield Complaint(line, f"`{member}` in `{name}`", f"a function that takes {given}")


def _fits(file: SpecFile, function: ast.FunctionDef, name: str, states: int) -> bool:
    """Whether a function takes as many states as those of its tuple do, and returns what they return."""
    kinds = [file.kind_of_annotation(one.annotation) for one in function.args.args]
    returned = file.kind_of_annotation(function.returns)
    right = is_state(returned) and returned == kinds[0] if name == "ACTIONS" and kinds else returned == BOOL
    return right and sum(map(is_state, kinds)) == states and all(map(is_state, kinds[:states]))


def _loops(file: SpecFile) -> Iterator[Complaint]:
    """Functions that call themselves, or one another in a circle."""
    calls = {name: set(loaded(node)) & set(file.functions) for name, node in file.functions.items()}
    try:
        TopologicalSorter(calls).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        line = file.functions[circle[0]].lineno
        yield Complaint(line, f"`{'` → `'.join(reversed(circle))}`, which calls itself", A_QUANTIFIER)


def _forgotten(file: SpecFile) -> Iterator[Complaint]:
    """Functions that no tuple names and no other function calls: nobody reads them. Nor rules that no step needs."""
    reached = _reached(file, (*STATES_TAKEN, *MORE_TUPLES, "BOUND"))
    of_steps = _reached(file, ("ACTIONS", *MORE_TUPLES))
    for name, function in file.functions.items():
        if name not in reached:
            where = _its_tuple(file, function)
            instead = f"it in `{where}`" if where else "it in another function, or leave it out"
            yield Complaint(function.lineno, f"`{name}`, which is in no tuple and which nothing calls", instead)
        elif name not in of_steps and not _GUARDS.isdisjoint(loaded(function)):
            yield Complaint(function.lineno, f"`{name}`, which states rules and which no step is", "it in `ACTIONS`")


def _of_properties(file: SpecFile) -> Iterator[Complaint]:
    """Words for properties and refinements in what a step is made of; what must hold at rest is the step `end`."""
    for name in sorted(_reached(file, ("ACTIONS", "DEVIATIONS", "TAKEOVERS", "AT_REST"), ())):
        for word in sorted(_NOT_FOR_STEPS & set(loaded(file.functions[name]))):
            where = f"`{word}` in `{name}`, which a step is made of"
            yield Complaint(file.functions[name].lineno, where, "what is needed, of the state itself")


_GUARDS = frozenset(GUARDS)
_NOT_FOR_STEPS = {"accepts", "filled", "seen_as"}


def _reached(file: SpecFile, tuples: Sequence[str], called: Collection[str] | None = None) -> set[str]:
    """The functions that are in these tuples, or called by them, or by other files."""
    waiting = [*(file.called if called is None else called)]
    for names in tuples:
        waiting += loaded(file.values.get(names, NONE))
    reached: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in file.functions and name not in reached:
            reached.add(name)
            waiting += loaded(file.functions[name])
    return reached


NONE = ast.Constant(None)


def _its_tuple(file: SpecFile, function: ast.FunctionDef) -> str:
    """The tuple that a forgotten function belongs to, by what it takes and returns."""
    return next((name for name, states in STATES_TAKEN.items() if _fits(file, function, name, states)), "")


# -- functions -----------------------------------------------------------------------------------------------------


def _signature(file: SpecFile, function: ast.FunctionDef) -> Iterator[Complaint]:
    """A function takes states and numbers, by their places, each with its annotation; it returns one of these."""
    line = function.lineno
    for node in ast.walk(function):
        if isinstance(node, ast.arguments):
            yield from _arguments(function, node)
    for one in function.args.args:
        if one.annotation is None:
            yield Complaint(one.lineno, f"`{one.arg}` without an annotation", f"`State`, {A_NUMBER}")
        elif file.kind_of_annotation(one.annotation) == UNKNOWN:
            yield Complaint(one.lineno, f"`{one.arg}: {ast.unparse(one.annotation)}`", f"`State`, {A_NUMBER}")
    if function.returns is None:
        yield Complaint(line, f"`{function.name}` without what it returns", "`-> State`, `-> bool` or a number's type")
    elif file.kind_of_annotation(function.returns) == UNKNOWN:
        yield Complaint(line, f"`-> {ast.unparse(function.returns)}`", f"`State`, {A_NUMBER}")


def _arguments(function: ast.FunctionDef, node: ast.arguments) -> Iterator[Complaint]:
    for default in (*node.defaults, *filter(None, node.kw_defaults)):
        yield Complaint(default.lineno, f"`{ast.unparse(default)}` as a default", "each argument in each call")
    for star in filter(None, (node.vararg, node.kwarg)):
        yield Complaint(star.lineno, f"`*{star.arg}`", "each argument by its name")
    if node.kwonlyargs or node.posonlyargs:
        yield Complaint(function.lineno, f"`*` or `/` in `{function.name}`", "each argument by its name alone")


def _function(file: SpecFile, function: ast.FunctionDef) -> Iterator[Complaint]:
    """The parts of a function that some reader cannot read, or reads wrongly."""
    for decorator in function.decorator_list:
        yield Complaint(decorator.lineno, f"`@{ast.unparse(decorator)}`", A_FUNCTION)
    sentences = _sentences(function)
    for line, node in _parts(function):
        if isinstance(node, ast.Call):
            complaint = _foreign_call(file, node)
        elif isinstance(node, ast.Constant | ast.Expr):
            complaint = _foreign_value(node, sentences)
        else:
            complaint = _foreign_node(node)
        if complaint:
            yield Complaint(line, *complaint)


SAYS = {
    "require": '`require(condition, "an-id", because="…", otherwise="…")`: one id and two sentences, as texts',
    "applies": "`applies(condition)`",
    "assume": '`assume(condition, because="…")`: one sentence, as a text',
}
SENTENCES = {"require": ["because", "otherwise"], "applies": [], "assume": ["because"]}


def _says_otherwise(call: ast.Call, guard: str) -> bool:
    """Whether a guard is not laid out as its readers, who take id and sentences from the text, expect it."""
    texts = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
    return (
        len(call.args) != (2 if guard == "require" else 1)
        or sorted(str(keyword.arg) for keyword in call.keywords) != SENTENCES[guard]
        or not all(isinstance(text, ast.Constant) and isinstance(text.value, str) for text in texts)
    )


def _foreign_call(file: SpecFile, call: ast.Call) -> tuple[str, str] | None:  # noqa: PLR0911 - a kind of call a case
    match call.func:
        case ast.Name(id=guard) if guard in GUARDS:
            return (f"`{ast.unparse(call)}`", SAYS[guard]) if _says_otherwise(call, guard) else None
        case ast.Attribute(value=ast.Name(id=spec), attr=name) if spec in file.made_of:
            if name in file.made_of[spec].functions and name[0] != "_":
                return None
        case ast.Name(id=name) if name in WORDS:
            return None
        case ast.Name(id=name) if name in file.home(name).functions or _is_a_number_type(file, name):
            return None
        case ast.Name(id=name):
            otherwise = f"a word of `{OF_THE_LANGUAGE}`, or another function of this file"
            return f"`{name}(…)`", INSTEAD_OF_CALLING.get(name, otherwise)
        case ast.Attribute(attr=name) if name in MAP_WORDS:
            return None
    return f"`{ast.unparse(call.func)}(…)`", f"a method of `Map` ({', '.join(sorted(MAP_WORDS))})"


def _is_a_number_type(file: SpecFile, name: str) -> bool:
    return name in file.home(name).new_types or file.imports.get(name) in NUMBERS_OF_THE_LANGUAGE


def _foreign_value(node: ast.Constant | ast.Expr, sentences: frozenset[ast.AST]) -> tuple[str, str] | None:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Name(id=guard))) if guard in GUARDS:
            return None
        case ast.Expr() if node.value not in sentences:
            return f"`{_first_line(node)}`, which changes nothing", "`return replace(s, …)` with its value"
        case ast.Constant(value=str()) if node not in sentences:
            return f"`{ast.unparse(node)}`", "an `IntEnum`; strings are for the id, `because` and `otherwise`"
        case ast.Constant(value=int() as value) if abs(value) >= LARGEST:
            return f"`{value}`", "a number below 2⁶⁰: kernels compute in 64 bits"
        case ast.Constant(value=value) if not isinstance(value, int | str):
            return f"`{ast.unparse(node)}`", A_WHOLE if isinstance(value, float) else A_FIELD
    return None


def _foreign_node(node: ast.AST) -> tuple[str, str] | None:  # noqa: PLR0911 - a kind of node a case
    match node:
        case ast.Attribute(ctx=ast.Store()):
            return f"`{ast.unparse(node)} = …`", f"`return replace(s, {node.attr}=…)`"
        case ast.Subscript(ctx=ast.Store()):
            return f"`{ast.unparse(node)} = …`", f"`{ast.unparse(node.value)}.set(key, value)`"
        case ast.Attribute(attr=name) if name.startswith("_"):
            return f"`{ast.unparse(node)}`", A_FIELD
        case ast.keyword(arg=None):
            return "`**`", "each argument by its name"
        case ast.Assign(targets=targets) if len(targets) > 1:
            return f"`{_first_line(node)}`", A_NEW_NAME
        case _ if not isinstance(node, SPOKEN):
            instead = INSTEAD.get(type(node), f"it in the words of `{OF_THE_LANGUAGE}`")
            called = CALLED.get(type(node), type(node).__name__)
            return f"`{called}`, which a reader cannot see or follow", instead
    return None


def _parts(function: ast.FunctionDef) -> Iterator[tuple[int, ast.AST]]:
    """Every node of body and defaults with its line; what is foreign is not opened, nor are annotations."""
    defaults = [node for node in (*function.args.defaults, *function.args.kw_defaults) if node is not None]
    pending: list[tuple[int, ast.AST]] = [(function.lineno, node) for node in (*defaults, *function.body)]
    while pending:
        outer_line, node = pending.pop(0)
        line = getattr(node, "lineno", outer_line)
        yield line, node
        if isinstance(node, SPOKEN):
            annotation = getattr(node, "annotation", None)
            pending += [(line, child) for child in ast.iter_child_nodes(node) if child is not annotation]


def _sentences(function: ast.FunctionDef) -> frozenset[ast.AST]:
    """The docstring, and what guards say."""
    said: list[ast.AST] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in GUARDS:
            said += [*node.args[1:], *(keyword.value for keyword in node.keywords)]
    return frozenset(said) | {node.value for node in function.body[:1] if is_docstring(node)}


def is_docstring(node: ast.AST) -> TypeGuard[ast.Expr]:
    """Whether a statement is a text that stands for itself."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _first_line(node: ast.AST) -> str:
    return ast.unparse(node).splitlines()[0]
