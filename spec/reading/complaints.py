"""Complaints about a spec file: what is wrong, in Python's words, and what to write instead.

A complaint is one sentence with its line. All that a spec may not have is named here, with its remedy, so that every
command refuses it in the same words.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from difflib import get_close_matches
from typing import NamedTuple

DID_YOU_MEAN, LEAVE, GIVE = "did you mean", "leave", "give"


class Complaint(NamedTuple):
    """A part of a spec file that some reader does not understand: its line, the part, and the remedy."""

    line: int
    word: str
    instead: str
    verb: str = "write"

    def __str__(self) -> str:
        return f"{self.word}: {self.verb} {self.instead}"


def unknown(line: int, word: str, name: str, names: Iterable[str], others: str, shown: str = "`{}`") -> Complaint:
    """The complaint about a name that stands for nothing: the nearest of `names`, or else the `others`."""
    near = get_close_matches(name, sorted(set(names) - {name}), n=1)
    if near:
        return Complaint(line, word, f"{shown.format(near[0])}? Expected {others}", DID_YOU_MEAN)
    return Complaint(line, word, others)


A_QUANTIFIER = "`all_between(low, high, lambda n: …)`, or in an invariant a parameter, which is universal"
AN_EXISTS = "`some_between(low, high, lambda n: …)`"
A_GUARD = '`require(condition, "an-id", because="…", otherwise="…")`, or `applies(condition)`'
A_NEW_NAME = "a new name: `after = before + 1`"
A_FIELD = "a field of the state, a number or a `Map`"
A_WHOLE = "a whole number, of a smaller unit if need be"
A_COMPARISON = "comparisons joined by `or`, or a `Map` to flags of what is in it"
OPERATORS = "`and`, `or`, `not`, `+`, `-`, `*`, `//`, `%`"
A_FUNCTION = "a plain function at the top of the file"
A_NUMBER = "`int`, `bool`, an `IntEnum`, or a `NewType` of `int`"
A_STATE = "`@dataclass(frozen=True, slots=True)`"
A_SMALLER = "a number below 2⁶³, of a larger unit if need be: kernels compute in 64 bits"
A_CONSTANT = "a number, `State(…)`, or a tuple of functions"
AN_ARGUMENT = "an argument of the step: what chooses it lies outside of the spec"
A_TICK = "an argument of the step, or a field that counts ticks and a step that moves it"
NO_NONE = "-1 for none, or a flag next to it: `has_one: bool = False`"
NOTHING_DONE = "a spec reads, prints and waits for nothing"
A_COUNTER = "a field that counts, and that each step keeps right"

A_TRUTH_WORD = "`and`, `or`, `not`"
BITS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.Invert)
OF_TRUTHS: dict[type[ast.AST], str] = {ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "!="}
"""The word between truth values for each operation on bits."""

INSTEAD: dict[type[ast.AST], str] = {
    **dict.fromkeys((ast.For, ast.AsyncFor, ast.While), f"{A_QUANTIFIER}; or one step for each round"),
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), A_QUANTIFIER),
    **dict.fromkeys((ast.Is, ast.IsNot), "`==` and `!=`: no reader can overload `is`"),
    **dict.fromkeys((ast.In, ast.NotIn), A_COMPARISON),
    **dict.fromkeys((ast.JoinedStr, ast.FormattedValue), "a plain sentence: reports show the values next to it"),
    **dict.fromkeys((ast.Try, ast.TryStar, ast.Raise, ast.Assert), A_GUARD),
    **dict.fromkeys((ast.Global, ast.Nonlocal, ast.List, ast.Tuple, ast.Set, ast.Dict), A_FIELD),
    **dict.fromkeys((ast.AugAssign, ast.NamedExpr, ast.Delete, ast.Del), A_NEW_NAME),
    **dict.fromkeys(BITS, f"{A_TRUTH_WORD} between truth values, or a flag for each bit, or a `Map` to flags"),
    **dict.fromkeys((ast.MatMult, ast.UAdd), OPERATORS),
    ast.LShift: "`*` by a power of two", ast.RShift: "`//` by a power of two",
    ast.Div: "`//`, which rounds down", ast.Pow: "`*`, or a constant at the top of the file",
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef), A_FUNCTION),
    **dict.fromkeys((ast.Yield, ast.YieldFrom, ast.Await), "`return replace(s, …)`: a step is one function call"),
    **dict.fromkeys((ast.With, ast.AsyncWith), f"what the step does to the state: {NOTHING_DONE}"),
    **dict.fromkeys((ast.Pass, ast.Break, ast.Continue), "`return s` where nothing changes"),
    **dict.fromkeys((ast.Import, ast.ImportFrom), "it at the top of the file, in the words of the language"),
    ast.ClassDef: "the fields of `State` at the top of the file",
    ast.Match: "`if` and `==`",
    ast.Slice: "`all_between` over the part",
    ast.Starred: "each argument by itself",
}
"""The remedy for each part of Python that is no part of the language."""

PYTHON: dict[type[ast.AST], str] = {
    ast.For: "`for`",
    ast.AsyncFor: "`async for`",
    ast.While: "`while`",
    ast.ListComp: "a list comprehension",
    ast.SetComp: "a set comprehension",
    ast.DictComp: "a dict comprehension",
    ast.GeneratorExp: "a generator expression",
    ast.JoinedStr: "an f-string",
    ast.FormattedValue: "an f-string",
    ast.Is: "`is`",
    ast.IsNot: "`is not`",
    ast.In: "`in`",
    ast.NotIn: "`not in`",
    ast.Try: "`try`",
    ast.TryStar: "`try`",
    ast.Raise: "`raise`",
    ast.Assert: "`assert`",
    ast.Global: "`global`",
    ast.Nonlocal: "`nonlocal`",
    ast.List: "a list",
    ast.Tuple: "a tuple",
    ast.Set: "a set",
    ast.Dict: "a dict",
    ast.AugAssign: "an assignment such as `+=`",
    ast.NamedExpr: "`:=`",
    ast.Delete: "`del`",
    ast.Del: "`del`",
    ast.Div: "`/`",
    ast.Pow: "`**`",
    ast.MatMult: "`@`",
    ast.BitAnd: "`&`",
    ast.BitOr: "`|`",
    ast.BitXor: "`^`",
    ast.LShift: "`<<`",
    ast.RShift: "`>>`",
    ast.Invert: "`~`",
    ast.UAdd: "`+` as a sign",
    ast.FunctionDef: "a function in a function",
    ast.AsyncFunctionDef: "`async def`",
    ast.ClassDef: "a class in a function",
    ast.With: "`with`",
    ast.AsyncWith: "`async with`",
    ast.Match: "`match`",
    ast.Slice: "a slice",
    ast.Starred: "`*`",
    ast.Pass: "`pass`",
    ast.Break: "`break`",
    ast.Continue: "`continue`",
    ast.Import: "`import`",
    ast.ImportFrom: "`import`",
    ast.Yield: "`yield`",
    ast.YieldFrom: "`yield from`",
    ast.Await: "`await`",
}
"""The parts of Python that are no part of the language, in the words of those who write Python."""


def in_python(node: ast.AST) -> str:
    """The name that Python's users have for a part of a text."""
    return PYTHON.get(type(node)) or f"`{ast.unparse(node).partition(chr(10))[0]}`"


_READS = f"what the step does to the state: {NOTHING_DONE}"
INSTEAD_OF_CALLING = {
    **dict.fromkeys(("all", "range", "sorted", "map", "filter", "enumerate", "zip", "reversed", "next"), A_QUANTIFIER),
    **dict.fromkeys(("max", "min"), "`greatest`, or a comparison"),
    **dict.fromkeys(("isinstance", "type", "hasattr", "getattr", "id", "hash"), "a field that tells them apart"),
    **dict.fromkeys(("int", "bool", "str", "repr", "format", "float", "round"), "the value as it is: a whole number"),
    **dict.fromkeys(("set", "frozenset", "list", "dict", "tuple"), A_FIELD),
    **dict.fromkeys(("print", "open", "input", "exec", "eval", "sleep", "log"), _READS),
    **dict.fromkeys(("divmod", "pow"), OPERATORS),
    **dict.fromkeys(("randint", "random", "choice"), AN_ARGUMENT),
    **dict.fromkeys(("time", "now", "monotonic"), A_TICK),
    "any": AN_EXISTS,
    "sum": f"{A_COUNTER}: a sum over a `Map` is not in the language",
    "len": "a field that counts, such as an exclusive `end`",
    "abs": "`n if 0 <= n else -n`",
    "setattr": "`replace(s, …)`",
    "State": "`replace(s, …)`: what is not mentioned stays",
}
"""The remedy for each function of Python's that people call."""

INSTEAD_OF_A_METHOD = {
    "get": "`{}[key]`: every key has a value",
    **dict.fromkeys(("add", "append", "update", "insert", "setdefault", "put", "extend"), "`{}.set(key, value)`"),
    **dict.fromkeys(("pop", "remove", "discard", "delete"), "`{}.set(key, value)` with the default as the value"),
    "clear": "`{}.cleared()`",
    **dict.fromkeys(("items", "keys", "values"), A_QUANTIFIER),
    "copy": "`{}` itself: it never changes",
    **dict.fromkeys(("replace", "_replace"), "`replace({}, …)`"),
}
"""The remedy for each method of Python's collections; `{}` is the `Map`."""

INSTEAD_OF_IMPORTING = {
    **dict.fromkeys(("random", "secrets", "uuid"), AN_ARGUMENT),
    **dict.fromkeys(("time", "datetime", "calendar", "zoneinfo"), A_TICK),
    "dataclasses": "`from dataclasses import dataclass`, and `replace` from `gapless.spec.language`",
    "enum": "`from enum import IntEnum`",
    "typing": "`from typing import NewType`",
    "gapless.spec.language": "each word by its name: `from gapless.spec.language import Map, replace, require`",
}
"""The remedy for each module that people import, where it is another than a word of the language."""

_INSTEAD_OF_A_TYPE = {
    **dict.fromkeys(("None", "Optional", "NoneType"), f"`int`, with {NO_NONE}"),
    **dict.fromkeys(
        ("set", "frozenset", "Set", "AbstractSet", "MutableSet", "FrozenSet", "Counter"),
        "`Map[int, bool] = Map(False)`: True at each number that is in it, and a counter next to it for its size",
    ),
    **dict.fromkeys(
        ("list", "tuple", "deque", "List", "Tuple", "Deque", "Sequence", "Iterable", "array"),
        "`Map[int, int] = Map(0)` by place, and a counter next to it for its end",
    ),
    **dict.fromkeys(
        ("dict", "Dict", "Mapping", "MutableMapping", "defaultdict", "OrderedDict"),
        "`Map[int, int] = Map(0)`: every key has a value, the default where none was set",
    ),
    **dict.fromkeys(
        ("str", "bytes", "bytearray", "Literal", "UUID", "Path"),
        "an `IntEnum` for one of few names, or a number that stands for the text",
    ),
    **dict.fromkeys(("float", "Decimal", "Fraction", "complex"), "`int`, in a smaller unit: cents, milliseconds"),
    **dict.fromkeys(
        ("datetime", "date", "timedelta", "time"), "`int`, a number of ticks, with a step that moves the clock"
    ),
    "Map": "`Map[int, int]` or `Map[int, bool]`: its keys are numbers, its values numbers or flags",
}


_MANY = {name for name, idiom in _INSTEAD_OF_A_TYPE.items() if idiom.startswith("`Map") and name != "Map"}


def no_argument(line: int, annotation: ast.expr, word: str, names: Iterable[str], otherwise: str) -> Complaint:
    """The complaint about the annotation of an argument, which has no room for a `Map`."""
    if not _MANY.isdisjoint(_names_in(annotation)):
        return Complaint(line, word, "`int`: one number, and one step for each number")
    return no_type(line, annotation, word, names, otherwise)


def _names_in(annotation: ast.expr) -> list[str]:
    used = (node for node in ast.walk(annotation) if isinstance(node, ast.Name | ast.Attribute | ast.Constant))
    return [ast.unparse(node).rpartition(".")[2] for node in used]


def no_type(line: int, annotation: ast.expr, word: str, names: Iterable[str], otherwise: str) -> Complaint:
    """The complaint about an annotation that no spec can have: the idiom for it, or the nearest type of the file."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return Complaint(line, word, f"`{annotation.value}` without quotes")
    shown = _names_in(annotation)
    if isinstance(annotation, ast.Subscript) and shown[:1] == ["Map"] and shown.count("Map") > 1:
        return Complaint(line, word, "one `Map` of two keys: `Map[int, int, int]`, read as `s.m[first, second]`")
    first = min(shown, key=lambda name: (name != "None", name != "Map"), default="")
    for name in (first, *shown):
        if name in _INSTEAD_OF_A_TYPE:
            return Complaint(line, word, _INSTEAD_OF_A_TYPE[name])
    return unknown(line, word, ast.unparse(annotation), (*names, "int", "bool", "State"), otherwise)
