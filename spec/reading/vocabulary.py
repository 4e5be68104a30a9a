"""The vocabulary of a spec file: the words that every reader understands, and the word to use instead of any other.

A spec's functions are run on values that are not numbers (`forking.py`). A part that does not pass through `bool`,
arithmetic or `Map` is invisible there: `is` and `isinstance` would fail in silence, a `try` would catch a refusal, a
default or a list at the top of a file would be a state that no reader knows. So each reader of a spec looks at its text
first, and refuses the parts outside of the language. A function that is in no tuple is refused too: its author believes
that it is checked.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from itertools import groupby

from gapless.spec import language
from gapless.spec.reading.claims import claims
from gapless.spec.reading.classes import classes
from gapless.spec.reading.complaints import (
    A_FUNCTION,
    A_QUANTIFIER,
    DID_YOU_MEAN,
    GIVE,
    INSTEAD_OF_IMPORTING,
    LEAVE,
    Complaint,
    unknown,
)
from gapless.spec.reading.constants import (
    beyond_64_bits,
    bound,
    first_line,
    foreign_constant,
    initial,
    is_bound,
    is_docstring,
    no_constant,
)
from gapless.spec.reading.declarations import (
    BOOL,
    MORE_TUPLES,
    OF_CALLS,
    OF_STEPS,
    OF_THE_LANGUAGE,
    STATES_TAKEN,
    SpecFile,
    is_map,
    is_state,
    loaded,
    names_given,
)
from gapless.spec.reading.functions import foreign_parts, signature
from gapless.spec.reading.kinds import GUARDS, WORDS, misplaced
from gapless.spec.reading.refinements import refinements
from gapless.spec.reading.rule_ids import rule_ids

IMPORTED = {
    OF_THE_LANGUAGE: frozenset(language.__all__),
    "dataclasses": frozenset({"dataclass"}),
    "enum": frozenset({"IntEnum"}),
    "typing": frozenset({"NewType"}),
}
"""The names that a spec file may import, besides the specs that it is made of."""


class ForeignWords(ValueError):  # noqa: N818 - its name is what it finds.
    """A spec file has parts that some reader does not understand; `complaints` are in the order of its lines."""

    def __init__(self, path: str, complaints: Sequence[Complaint]) -> None:
        self.path = path
        self.complaints = tuple(complaints)
        super().__init__("\n".join(f"{path}:{complaint.line}: {complaint}" for complaint in complaints))

    def __reduce__(self) -> tuple[type[ForeignWords], tuple[str, tuple[Complaint, ...]]]:
        """Take the complaints along, so that a worker's exception arrives whole."""
        return type(self), (self.path, self.complaints)


def understood(file: SpecFile) -> None:
    """Raise ForeignWords unless every reader understands all of a spec file."""
    if found := foreign_words(file):
        raise ForeignWords(file.path, found)


def foreign_words(file: SpecFile) -> list[Complaint]:
    """The parts of a spec file that are not in the spec language, by line: causes, without their consequences."""
    found = [*_named_twice(file), *misspelt_entries(file)]
    if not found:
        found = [*_imports(file)] or [*not_imported(file)]
        found += [*_tuples(file)] or [*_forgotten(file)]
        found += [*_top(file), *_loops(file), *rule_ids(file), *_of_properties(file)]
        found += _of_parts(file, [*beyond_64_bits(file)])
    return sorted(dict.fromkeys(found), key=lambda complaint: complaint.line)


def _of_parts(file: SpecFile, found: list[Complaint]) -> list[Complaint]:
    """The complaints about functions and classes, besides those `found` before; the first of each line is the cause."""
    for part in file.tree.body:
        if isinstance(part, ast.FunctionDef):
            found += signature(file, part)
            found += _other_lines(found, foreign_parts(file, part))
            found += _other_lines(found, misplaced(file, part))
        elif isinstance(part, ast.ClassDef):
            found += classes(file, part)
    return found


def _other_lines(found: Collection[Complaint], more: Iterable[Complaint]) -> list[Complaint]:
    lines = {complaint.line for complaint in found}
    return [complaint for complaint in more if complaint.line not in lines]


# -- at the top ----------------------------------------------------------------------------------------------------


def _imports(file: SpecFile) -> Iterator[Complaint]:
    for node in ast.walk(file.tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield Complaint(node.lineno, f"`import {alias.name}`", _instead_of_importing(alias.name))
            case ast.ImportFrom(module=module, level=level, names=names):
                source = "." * level + (module or "")
                for alias in names:
                    if not _may_be_imported(file, source, alias):
                        yield _foreign_import(file, node.lineno, source, alias)


def _may_be_imported(file: SpecFile, source: str, alias: ast.alias) -> bool:
    ours = f"{source}.{alias.name}".rpartition(".")[2] in file.made_of and source == "gapless.spec"
    theirs = source.rpartition(".")[2] in file.made_of and source.startswith("gapless.spec.")
    return not alias.asname and (ours or theirs or alias.name in IMPORTED.get(source, ()))


def _imported(file: SpecFile) -> set[tuple[str, str]]:
    """The modules and names of all imports at the top."""
    froms = (node for node in file.tree.body if isinstance(node, ast.ImportFrom))
    return {(node.module or "", alias.name) for node in froms for alias in node.names}


def _foreign_import(file: SpecFile, line: int, source: str, alias: ast.alias) -> Complaint:
    word = f"`from {source} import {alias.name}{f' as {alias.asname}' if alias.asname else ''}`"
    if alias.name in IMPORTED.get(source, ()):
        return Complaint(line, word, f"`from {source} import {alias.name}`, under its own name")
    if source == "__future__":
        return Complaint(line, word, "it out: annotations are read as they are", LEAVE)
    if alias.name in language.__all__ and (OF_THE_LANGUAGE, alias.name) in _imported(file):
        return Complaint(line, word, f"it out: `{OF_THE_LANGUAGE}` has `{alias.name}`", LEAVE)
    if alias.name in language.__all__:
        return Complaint(line, word, f"`from {OF_THE_LANGUAGE} import {alias.name}`")
    if source == OF_THE_LANGUAGE and alias.name != "*":
        return unknown(line, word, alias.name, language.__all__, f"a word of the language: {', '.join(WORDS)}")
    return Complaint(line, word, _instead_of_importing(source))


def _instead_of_importing(module: str) -> str:
    otherwise = f"a word of `{OF_THE_LANGUAGE}`, and put what else is needed into this file"
    return INSTEAD_OF_IMPORTING.get(module, INSTEAD_OF_IMPORTING.get(module.partition(".")[0], otherwise))


def _top(file: SpecFile) -> Iterator[Complaint]:
    for node in file.tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            yield from _assigned(file, node)
        elif isinstance(node, ast.AsyncFunctionDef):
            yield Complaint(node.lineno, f"`async def {node.name}`", f"`def {node.name}(…)`: a step is one call")
        elif isinstance(node, ast.Return):
            yield Complaint(node.lineno, f"`{first_line(node)}` at the top of a spec", "it indented, in its function")
        elif not (is_docstring(node) or isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef)):
            word = f"`{first_line(node)}` at the top of a spec"
            yield Complaint(node.lineno, word, f"it out, or write {A_FUNCTION}: a spec is read, not run", LEAVE)


def _assigned(file: SpecFile, node: ast.Assign | ast.AnnAssign) -> Iterator[Complaint]:
    """The faults of a value at the top."""
    names = list(names_given(node))
    if is_bound(node):
        yield from bound(file)  # its functions are called on numbers alone
    elif node.value is None or len(names) != 1:
        yield Complaint(node.lineno, f"`{first_line(node)}` at the top of a spec", "one name, and its value")
    elif names == ["CLAIMS"]:
        yield from claims(file)
    elif names == ["REFINES"]:
        yield from refinements(file)
    elif foreign := no_constant(file, node.value):
        yield from foreign_constant(file, names[0], foreign)
    elif names == ["INITIAL"]:
        yield from initial(file, node.value)


def _named_twice(file: SpecFile) -> Iterator[Complaint]:
    """Names that stand for two things, or hide a word of the language: one of the two is never read."""
    named: list[tuple[str, int]] = []
    for node in file.tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                named.append((name, node.lineno))
            case ast.Assign() | ast.AnnAssign():
                named += [(name, node.lineno) for name in names_given(node)]
            case ast.ImportFrom(module=module, level=level, names=names):
                source = "." * level + (module or "")  # of others, `_imports` complains
                named += [(one.name, node.lineno) for one in names if _may_be_imported(file, source, one)]
                continue
        name, line = named[-1] if named and named[-1][1] == node.lineno else ("", 0)
        if name in language.__all__:
            yield Complaint(line, f"`{name}` as a name", "another name: this is a word of the language")
    for name, several in groupby(sorted(named), key=lambda one: one[0]):
        (_, first), *again = several
        for _, line in again:
            word = f"`{name}` a second time, behind that of line {first}"
            yield Complaint(line, word, "it another name: the first is hidden by it", GIVE)


def misspelt_entries(file: SpecFile) -> Iterator[Complaint]:
    """The entries that end a spec, under names that are nearly right: no reader would look at them."""
    yield from _misnamed_state(file)
    missing = [name for name in ENTRIES if name not in file.values]
    for name, value in file.values.items():
        near = get_close_matches(name.upper(), missing, n=1)
        if near and name not in ENTRIES and _may_be_entry(file, value):
            yield Complaint(value.lineno, f"`{name}`", f"`{near[0]}`?", DID_YOU_MEAN)


def _may_be_entry(file: SpecFile, value: ast.expr) -> bool:
    match value:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return any(ast.unparse(part).partition("(")[0] in {*file.functions, "Claim", "Refines"} for part in parts)
        case ast.Call(func=ast.Name(id=name)):
            return name in ("State", "Bound")
    return False


def _misnamed_state(file: SpecFile) -> Iterator[Complaint]:
    """The class that may be meant as the state."""
    others = [node for name, node in file.classes.items() if name not in file.enums]
    if "State" not in file.classes and len(others) == 1:
        word = f"class {others[0].name}"
        yield Complaint(others[0].lineno, word, "`class State`: a spec has one state, of this name")


ENTRIES = ("INITIAL", *STATES_TAKEN, *MORE_TUPLES, *OF_CALLS, "BOUND")


def not_imported(file: SpecFile) -> Iterator[Complaint]:
    """The words that a file uses and does not import."""
    known = {*file.imports, *file.values, *file.functions, *file.classes, *file.made_of}
    known |= {node.arg for node in ast.walk(file.tree) if isinstance(node, ast.arg)}
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Name) and node.id not in known:
            home = next((module for module, names in IMPORTED.items() if node.id in names), None)
            if home is not None:
                known.add(node.id)
                word = f"`{node.id}`, which is not imported"
                yield Complaint(node.lineno, word, f"`from {home} import {node.id}` at the top")


# -- tuples and calls ----------------------------------------------------------------------------------------------


def _tuples(file: SpecFile) -> Iterator[Complaint]:
    """The members of the tuples that end a spec: functions by their names, each of the kind that its tuple is of."""
    for name, states in file.states_taken.items():
        if name not in file.values:
            continue
        members = file.tuple_of(name)
        if members is None:
            value = file.values[name]
            given = value.values if isinstance(value, ast.Dict) else [value]  # of a dict, names of functions are values
            inside = ", ".join(map(ast.unparse, given)).strip("[]{}()")
            yield Complaint(value.lineno, f"`{name} = {ast.unparse(value)}`", f"a tuple: `{name} = ({inside},)`")
            continue
        for member, count in Counter(map(ast.unparse, members)).items():
            line = next(one.lineno for one in members if ast.unparse(one) == member)
            if count > 1:
                yield Complaint(line, f"`{member}` twice in `{name}`", "it once")
            if member not in file.functions:
                yield from _no_member(file, name, member, line)
            elif _is_annotated(file, file.functions[member]) and not _fits(file, file.functions[member], name, states):
                other = _its_tuple(file, file.functions[member])
                there = {*map(ast.unparse, file.tuple_of(other) or ())}
                instead = f"it into `{other}`, or " if other and member not in there else ""
                instead += _head(file.functions[member], name, states)
                yield Complaint(line, f"`{member}` in `{name}`", instead)
            else:
                yield from _of_member(file, name, file.functions[member])
        if not members and name == "ACTIONS":
            yield Complaint(file.values[name].lineno, f"`{name} = ()`", "the steps into it, by their names")


def _of_member(file: SpecFile, name: str, function: ast.FunctionDef) -> Iterator[Complaint]:
    """The faults of a function of the right kind: its Maps that are no state's, and what only steps have."""
    if name != "INITIALS":
        for one in function.args.args:
            if is_map(file.kind_of_annotation(one.annotation)):
                word = f"`{one.arg}: {ast.unparse(one.annotation or NONE)}`"
                yield Complaint(one.lineno, word, "`int`: one number; only functions of `INITIALS` are given a `Map`")
        return
    if function.name in map(ast.unparse, file.tuple_of("ACTIONS") or ()):
        instead = "a function of its own: what makes an initial state is no step"
        yield Complaint(function.lineno, f"`{function.name}` in `ACTIONS` and in `INITIALS`", instead)
    for word in sorted({"require", "assume"} & set(loaded(function))):
        instead = "`applies(condition)`: it selects states, and no trace can break it"
        yield Complaint(function.lineno, f"`{word}` in `{function.name}`, which makes initial states", instead)


def _no_member(file: SpecFile, name: str, member: str, line: int) -> Iterator[Complaint]:
    """The complaint about a member that is no function of the file, by its name."""
    bare, word = member.rstrip("()").strip("'"), f"`{member}` in `{name}`"
    if bare in file.functions:
        yield Complaint(line, word, f"`{bare}`: its name alone")
    elif not any(isinstance(node, ast.AsyncFunctionDef) and node.name == member for node in file.tree.body):
        yield unknown(line, word, member, file.functions, "a function of this file, by its name")


def _head(function: ast.FunctionDef, name: str, states: int) -> str:
    """The signature that a function has in its tuple."""
    if name in OF_STEPS:
        return (
            f"`def {function.name}(s: State, …) -> State`: it takes the state, then arguments, and gives the next state"
        )
    given = "before: State, after: State" if states == 2 else "s: State"
    many = "two states, before and after a step" if "," in given else "one state"
    return f"`def {function.name}({given}, …) -> bool`: it takes {many}, then numbers, and gives a truth value"


def _is_annotated(file: SpecFile, function: ast.FunctionDef) -> bool:
    """True if its signature has no fault of its own."""
    return not list(signature(file, function))


def _fits(file: SpecFile, function: ast.FunctionDef, name: str, states: int) -> bool:
    """True if a function takes as many states as those of its tuple do, and returns what they return."""
    kinds = [file.kind_of_annotation(one.annotation) for one in function.args.args]
    returned = file.kind_of_annotation(function.returns)
    right = is_state(returned) and returned == kinds[0] if name in OF_STEPS and kinds else returned == BOOL
    return right and sum(map(is_state, kinds)) == states and all(map(is_state, kinds[:states]))


def _loops(file: SpecFile) -> Iterator[Complaint]:
    """Functions that call themselves, or one another in a circle."""
    calls = {name: set(loaded(node)) & set(file.functions) for name, node in file.functions.items()}
    try:
        TopologicalSorter(calls).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        line = file.functions[circle[0]].lineno
        word = f"`{'` → `'.join(reversed(circle))}`, which calls itself"
        yield Complaint(line, word, f"{A_QUANTIFIER}; or one step for each round")


def _forgotten(file: SpecFile) -> Iterator[Complaint]:
    """Functions that no tuple names and no function calls, which no reader reads; and rules that no step needs."""
    reached = _reached(file, (*file.states_taken, *MORE_TUPLES, *OF_CALLS, "BOUND"))
    of_steps = _reached(file, (*OF_STEPS, *MORE_TUPLES))
    for name, function in file.functions.items():
        if name not in reached:
            where = _its_tuple(file, function)
            instead = f"it into `{where}`" if where else "it into another function, or leave it out"
            yield Complaint(function.lineno, f"`{name}`, which is in no tuple and which nothing calls", instead)
        elif name not in of_steps and not _GUARDS.isdisjoint(loaded(function)):
            yield Complaint(function.lineno, f"`{name}`, which states rules and which no step is", "it into `ACTIONS`")


def _of_properties(file: SpecFile) -> Iterator[Complaint]:
    """Words for properties and refinements in the functions of a step; the properties at rest are the step `end`."""
    for name in sorted(_reached(file, (*OF_STEPS, "DEVIATIONS", "TAKEOVERS", "AT_REST"), ())):
        for word in sorted(_NOT_FOR_STEPS & set(loaded(file.functions[name]))):
            where = f"`{word}` in `{name}`, which a step is made of"
            yield Complaint(file.functions[name].lineno, where, "`require(…)` of the state itself")


_GUARDS = frozenset(GUARDS)
_NOT_FOR_STEPS = {"accepts", "every_map", "filled", "seen_as"}


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
