"""A spec file speaks the spec language: of what is outside it, readers would fail on some in silence."""

import ast
from collections.abc import Iterator
from inspect import isfunction
from typing import TypeGuard

import pytest

from gapless.spec import language
from tests.house.project import Module, imported, listed_at, within
from tests.house.spec_files import made_of, spec_files

# --- Imports ------------------------------------------------------------------------------------------------

A_SPEC_FILE_IMPORTS = ("gapless.spec.language", "dataclasses", "enum", "typing")


def foreign_imports(tree: ast.Module, made_of: tuple[str, ...] = ()) -> list[str]:
    """What a spec file imports beyond the spec language and the specs that it is made of."""
    return [
        f"{line}: a spec file may not import `{name}`: use or add a word of `gapless.spec.language`"
        for line, name in imported(tree)
        if not any(within(name, there) for there in (*A_SPEC_FILE_IMPORTS, *made_of))
    ]


def test_spec_files_import_the_spec_language_only() -> None:
    assert spec_files()
    for module in spec_files():
        complaints = foreign_imports(module.tree, made_of(module))
        assert not complaints, listed_at(module.path, complaints)


@pytest.mark.parametrize("name", ["math", "gapless.spec.forking", "gapless.spec.log", "collections.abc"])
def test_a_spec_file_that_imports_more_is_caught(name: str) -> None:
    assert "word of `gapless.spec.language`" in "\n".join(foreign_imports(ast.parse(f"import {name}")))


# --- Words --------------------------------------------------------------------------------------------------

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
A_COMPARISON = "comparisons joined by `or`, or a `Map` of what is in it"
A_BOOLEAN = "`and`, `or`, `not`, `+`, `-`, `*`, `//`, `%`"
A_FUNCTION = "a plain function of the state, beside this one"

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
}
INSTEAD_OF_CALLING = {
    **dict.fromkeys(("all", "any", "sum", "range", "sorted", "map", "filter", "enumerate", "zip"), A_QUANTIFIER),
    **dict.fromkeys(("max", "min"), "`greatest`, or a comparison"),
    **dict.fromkeys(("isinstance", "type", "hasattr", "getattr"), "a field of the state that tells them apart"),
    **dict.fromkeys(("int", "bool", "str", "repr", "format"), "the value as it is"),
    "len": "a field that counts, such as an exclusive `end`",
    "State": "`replace(s, …)`: what is not mentioned stays",
}
GUARDS = ("require", "applies", "assume")
WORDS = frozenset(name for name in language.__all__ if not isinstance(getattr(language, name), type))
MAP_WORDS = frozenset(name for name, value in vars(language.Map).items() if isfunction(value) and name[0] != "_")


def foreign_words(module: ast.Module, made_of: tuple[str, ...] = ()) -> list[str]:
    """What a spec file says that is not in the spec language, and the word to use instead.

    It may call the steps of the specs that it is made of: `log.flush(…)`.
    """
    specs = frozenset(name.rpartition(".")[2] for name in made_of)
    functions = {node.name for node in module.body if isinstance(node, ast.FunctionDef)}
    complaints: list[tuple[int, str]] = []
    for node in module.body:
        if isinstance(node, ast.FunctionDef):
            may_call = (WORDS | functions | new_types(module)) - {node.name}  # itself would be a loop
            complaints += foreign_words_of_function(node, may_call, specs)
        elif isinstance(node, ast.ClassDef):
            complaints += foreign_words_of_class(node)
        elif not (is_docstring(node) or isinstance(node, ast.Import | ast.ImportFrom) or is_a_value(node)):
            complaints.append((node.lineno, f"`{first_line(node)}` at the top of a spec: say {A_FUNCTION}"))
    return [f"{line}: {complaint}" for line, complaint in sorted(complaints)]


def is_a_value(node: ast.stmt) -> bool:
    """Whether a name is given to a value, and not to a function in disguise."""
    hidden = any(isinstance(part, ast.Lambda) for part in ast.walk(node))
    return isinstance(node, ast.Assign | ast.AnnAssign) and not hidden


def foreign_words_of_class(node: ast.ClassDef) -> Iterator[tuple[int, str]]:
    """A class of a spec is a frozen dataclass or an IntEnum, and only holds fields."""
    decorators = "".join(map(ast.unparse, node.decorator_list))
    if "IntEnum" not in map(ast.unparse, node.bases) and "frozen=True" not in decorators:
        yield node.lineno, f"`class {node.name}`: say `@dataclass(frozen=True, slots=True)` or `IntEnum`"
    for member in node.body:
        if not isinstance(member, ast.Assign | ast.AnnAssign | ast.Expr):
            yield member.lineno, f"`{first_line(member)}` in `class {node.name}`: say {A_FUNCTION}"


def foreign_words_of_function(
    function: ast.FunctionDef, may_call: frozenset[str], specs: frozenset[str]
) -> Iterator[tuple[int, str]]:
    """The parts of a function that some reader cannot read, or reads wrongly."""
    for decorator in function.decorator_list:
        yield decorator.lineno, f"`@{ast.unparse(decorator)}`: say {A_FUNCTION}"
    sentences = sentences_of(function)
    for line, node in parts(function):
        if isinstance(node, ast.Call):
            complaint = foreign_call(node, may_call, specs)
        elif isinstance(node, ast.Constant | ast.Expr):
            complaint = foreign_value(node, sentences)
        else:
            complaint = foreign_node(node)
        if complaint:
            yield line, complaint


def foreign_call(call: ast.Call, may_call: frozenset[str], specs: frozenset[str]) -> str | None:
    match call.func:
        case ast.Attribute(value=ast.Name(id=spec), attr=name) if spec in specs and name[0] != "_" and name.islower():
            return None
        case ast.Name(id=name) if name in may_call:
            return None
        case ast.Name(id=name):
            otherwise = "a word of `gapless.spec.language`, or another function of this file"
            return f"`{name}(…)`: say {INSTEAD_OF_CALLING.get(name, otherwise)}"
        case ast.Attribute(attr=name) if name in MAP_WORDS:
            return None
    return f"`{ast.unparse(call.func)}(…)`: say a method of `Map` ({', '.join(sorted(MAP_WORDS))})"


def foreign_value(node: ast.Constant | ast.Expr, sentences: frozenset[ast.AST]) -> str | None:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Name(id=guard))) if guard in GUARDS:
            return None
        case ast.Expr() if node.value not in sentences:
            return f"`{first_line(node)}` changes nothing: say `return replace(s, …)` with its value"
        case ast.Constant(value=str()) if node not in sentences:
            return f"`{ast.unparse(node)}`: say an `IntEnum`; strings are for the id, `because` and `otherwise`"
        case ast.Constant(value=value) if not isinstance(value, int | str):
            return f"`{ast.unparse(node)}`: say {A_FIELD}"
    return None


def foreign_node(node: ast.AST) -> str | None:
    match node:
        case ast.Attribute(ctx=ast.Store()):
            return f"`{ast.unparse(node)} = …`: say `return replace(s, {node.attr}=…)`"
        case ast.Subscript(ctx=ast.Store()):
            return f"`{ast.unparse(node)} = …`: say `{ast.unparse(node.value)}.set(key, value)`"
        case ast.Attribute(attr=name) if name.startswith("_"):
            return f"`{ast.unparse(node)}`: say {A_FIELD}"
        case ast.keyword(arg=None):
            return "`**`: say each argument by its name"
        case _ if not isinstance(node, SPOKEN):
            instead = INSTEAD.get(type(node), "it in the words of `gapless.spec.language`")
            return f"{type(node).__name__}, which a reader cannot see or follow: say {instead}"
    return None


def parts(function: ast.FunctionDef) -> Iterator[tuple[int, ast.AST]]:
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


def sentences_of(function: ast.FunctionDef) -> frozenset[ast.AST]:
    """The docstring, and what guards say."""
    said: list[ast.AST] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in GUARDS:
            said += [*node.args[1:], *(keyword.value for keyword in node.keywords)]
    return frozenset(said) | {node.value for node in function.body[:1] if is_docstring(node)}


def is_docstring(node: ast.AST) -> TypeGuard[ast.Expr]:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def new_types(module: ast.Module) -> frozenset[str]:
    """Names given by `Offset = NewType("Offset", int)`: calling one changes nothing."""
    return frozenset(
        target.id
        for node in module.body
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("NewType(")
        for target in node.targets
        if isinstance(target, ast.Name)
    )


def first_line(node: ast.AST) -> str:
    return ast.unparse(node).splitlines()[0]


A_SPEC = """
from dataclasses import dataclass
from enum import IntEnum
from typing import NewType

from gapless.spec.language import Map, Position, all_between, applies, assume, implies, replace, require

Slot = NewType("Slot", int)
BLANK = 8  # bytes


class Phase(IntEnum):
    NEW = 0
    DONE = 1


@dataclass(frozen=True, slots=True)
class State:
    phase: Phase = Phase.NEW
    end: Position = Position(0)
    sizes: Map[Slot, int] = Map(0)


def append(s: State, position: Position, size: int) -> State:
    '''A record is written.'''
    applies(0 < size)
    assume(size < 1024 * 1024, because="the disk has room")
    require(size <= -(-BLANK) and not s.phase == Phase.DONE, "it-fits", because="it fits", otherwise="it is cut")
    require(all_between(0, size, lambda n: s.sizes[n] % 2 == 0), "all-even", because="all are even", otherwise="")
    after: Position = Position(position + size)
    if size == BLANK:
        return replace(s, phase=Phase.DONE)
    return replace(s, end=after, sizes=s.sizes.set(Slot(position // 2), size if is_new(s) else 0))


def is_new(s: State) -> bool:
    return implies(s.end > 0, s.sizes.cleared()[0] + s.sizes.forget_from(Slot(1))[1] == 0)


ACTIONS = (append,)
"""


@pytest.mark.parametrize("spec", spec_files(), ids=lambda spec: spec.path.name)
def test_a_spec_speaks_the_spec_language(spec: Module) -> None:
    complaints = foreign_words(spec.tree, made_of(spec))
    assert not complaints, listed_at(spec.path, complaints)


def test_the_spec_language_is_left_alone() -> None:
    assert foreign_words(ast.parse(A_SPEC)) == []


@pytest.mark.parametrize(
    ("body", "instead"),
    [
        ("for n in s.sizes: require(n > 0)", "all_between"),
        ("while s.end: pass", "all_between"),
        ("return [n for n in s.sizes]", "all_between"),
        ("return {n: 0 for n in s.sizes}", "all_between"),
        ("return all(n > 0 for n in s.sizes)", "all_between"),
        ("return append(s, n)", "another function"),  # each snippet is the body of `append`
        ("return s.phase is n", "`==`"),
        ("return s.phase is not n", "`==`"),
        ("return n in (1, 2)", "comparisons joined by `or`"),
        ("return isinstance(n, int)", "tells them apart"),
        ("return len(s.sizes)", "exclusive `end`"),
        ("return max(n, 2)", "`greatest`"),
        ("return int(n)", "the value as it is"),
        ("return hash(n)", "a word of `gapless.spec.language`"),
        ("return s.sizes.items()", "a method of `Map` (cleared, "),
        ("return s.sizes.entries.get(n)", "a method of `Map` (cleared, "),
        ("return Map(0)", "a word of `gapless.spec.language`"),
        ("return s.__class__", "a number or a `Map`"),
        ("return s.sizes[1:n]", "`all_between` over the part"),
        ('require(n > 0, "positive", because=f"{n} is positive")', "a plain sentence"),
        ('applies("n")', "an `IntEnum`"),
        ('return s.phase == "done"', "an `IntEnum`"),
        ("return s.phase == None", "a number or a `Map`"),
        ("return n * 0.5", "a number or a `Map`"),
        ("return n / 2", "`//`"),
        ("return n & 1", "`//`"),
        ("return (s, n)", "a number or a `Map`"),
        ("assert n > 0", "require("),
        ("raise ValueError", "require("),
        ("try:\n        return s\n    finally:\n        n", "require("),
        ("global END", "a field of the state"),
        ("n += 1", "a new name"),
        ("return (m := n)", "a new name"),
        ("del n", "a new name"),
        ("s.end = n", "`return replace(s, end=…)`"),
        ("s.sizes[n] = 1", "`s.sizes.set(key, value)`"),
        ("s.sizes.set(n, 1)", "`return replace(s, …)` with its value"),
        ("return State(end=n)", "what is not mentioned stays"),
        ("return replace(s, **n)", "each argument by its name"),
        ("match n:\n        case 1: return s", "`if` and `==`"),
        ("def inner(): return s", "a plain function"),
        ("import math", "in the words of"),
        ("yield s", "in the words of"),
        ("return lambda m=len(s): m", "exclusive `end`"),
    ],
)
def test_a_foreign_word_is_caught(body: str, instead: str) -> None:
    source = f"def append(s: State, n: int) -> State:\n    {body}\n"
    complaints = foreign_words(ast.parse(source))
    assert instead in "\n".join(complaints)
    assert complaints[0].startswith("2: ")


def test_only_a_composed_spec_calls_the_steps_of_others() -> None:
    source = "from gapless.spec import log\ndef flush(s: State, to: int) -> State:\n    return log.flush(s, to)\n"
    tree = ast.parse(source)
    assert foreign_imports(tree, ("gapless.spec.log",)) == foreign_words(tree, ("gapless.spec.log",)) == []
    assert foreign_imports(tree, ("gapless.spec.queue",))
    assert foreign_words(tree, ("gapless.spec.queue",))
    assert foreign_words(ast.parse(source.replace("log.flush(", "log.State(")), ("gapless.spec.log",))
    assert foreign_words(ast.parse(source.replace("log.flush(", "log._flush(")), ("gapless.spec.log",))


@pytest.mark.parametrize(
    ("source", "instead"),
    [
        ("for n in range(3): pass", "a plain function"),
        ("if True:\n    END = 1", "a plain function"),
        ("print(1)", "a plain function"),
        ("odd = lambda s: s.end is 3", "a plain function"),
        ("@cache\ndef append(s): return s", "a plain function"),
        ("class State:\n    end: int = 0", "frozen=True"),
        ("@dataclass\nclass State:\n    end: int = 0", "frozen=True"),
        ("@dataclass(frozen=True)\nclass State:\n    def size(self): return 0", "a plain function"),
        ("def append(s, n=len('')): return s", "exclusive `end`"),
    ],
)
def test_a_foreign_construction_is_caught(source: str, instead: str) -> None:
    assert instead in "\n".join(foreign_words(ast.parse(source)))
