"""Faults planted in a spec, mechanically, from its syntax tree: plausible mistakes of an author.

A guard is missing, a comparison is off by one or at the wrong boundary, an effect forgets a field. Faults are planted
in steps, deviations and what they call; the properties that judge them stay those of the spec. A spec with a fault is
a `Spec` like any other.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, update_wrapper
from types import FunctionType, ModuleType
from typing import Literal

from gapless.spec.catalog import SENTENCES, Spec, made_of, text_of

Kind = Literal["a missing guard", "a wrong comparison", "a forgotten field"]

WRONG: dict[type[ast.cmpop], tuple[tuple[type[ast.cmpop], int, int], ...]] = {
    # what may stand there instead: the comparison, and what is added to its left and right side
    ast.Lt: ((ast.LtE, 0, 0), (ast.Lt, 1, 0)),
    ast.LtE: ((ast.Lt, 0, 0), (ast.LtE, 0, 1)),
    ast.Gt: ((ast.GtE, 0, 0), (ast.Gt, 0, 1)),
    ast.GtE: ((ast.Gt, 0, 0), (ast.GtE, 1, 0)),
    ast.Eq: ((ast.LtE, 0, 0), (ast.GtE, 0, 0), (ast.Eq, 0, 1), (ast.NotEq, 0, 0)),
    ast.NotEq: ((ast.Lt, 0, 0), (ast.Gt, 0, 0), (ast.Eq, 0, 0)),
}


@dataclass(frozen=True)
class Fault:
    """One fault: the function of the spec that has it, and what stands there in place of what."""

    kind: Kind
    function: str
    line: int
    says: str
    file: int  # 0: the spec itself; 1: its deviations
    span: tuple[int, int]  # bytes of its text
    instead: str

    @property
    def name(self) -> str:
        """The fault in one line that stays the same wherever the function lies."""
        return f"{self.function}: {self.says}"


def faults(spec: Spec) -> tuple[Fault, ...]:
    """Every fault that is planted in a spec, in the order of its text, and then of its deviations'."""
    return tuple(fault for number, module in enumerate(_stating(spec)) for fault in _faults(spec, module, number))


def text_digest(spec: Spec) -> str:
    """Digest of the code of a spec and of those it is made of: verdicts on its faults are stale once it differs.

    Docstrings, comments and the sentences of rules do not count, for they change no verdict.
    """
    return hashlib.sha256(b"\0".join(_code(text_of(module)).encode() for module in spec.files)).hexdigest()[:16]


def _code(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        elif isinstance(node, ast.Call):
            node.keywords = [keyword for keyword in node.keywords if keyword.arg not in SENTENCES]
    return ast.unparse(tree)


def _stating(spec: Spec) -> list[ModuleType]:
    return [spec.module, *([spec.deviating] if spec.deviating else [])]


def _faults(spec: Spec, module: ModuleType, file: int) -> Iterator[Fault]:
    text = text_of(module)
    starts = _starts_of_lines(text)
    functions = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    for name in sorted(set(functions) & set(behind_steps(spec)), key=lambda name: functions[name].lineno):
        seen: Counter[str] = Counter()
        for kind, node, says, instead in _mistakes(functions[name]):
            seen[says] += 1
            again = f" ({seen[says]})" if seen[says] > 1 else ""
            span = (
                starts[node.lineno] + node.col_offset,
                starts[node.end_lineno or node.lineno] + (node.end_col_offset or 0),
            )
            yield Fault(kind, name, node.lineno, says + again, file, span, instead)


def _mistakes(function: ast.FunctionDef) -> Iterator[tuple[Kind, ast.expr, str, str]]:
    """The mistakes in one function: of which kind, in place of which part, in words, and what stands there."""
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Name(id="require"), args=[_, rule]):
                yield "a missing guard", node, f"without {ast.literal_eval(rule)}", "None"
            case ast.Call(func=ast.Name(id="applies" | "assume"), args=[condition]):
                yield "a missing guard", node, f"whether or not {ast.unparse(condition)}", "None"
            case ast.Call(func=ast.Name(id="replace"), keywords=keywords):
                for forgotten in keywords:
                    kept = [k for k in keywords if k is not forgotten]
                    rest = ast.unparse(ast.Call(node.func, node.args, kept))
                    yield "a forgotten field", node, f"forgets {ast.unparse(forgotten)}", rest
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                for other, more_left, more_right in WRONG.get(type(operator), ()):
                    rest = ast.unparse(ast.Compare(_plus(left, more_left), [other()], [_plus(right, more_right)]))
                    yield "a wrong comparison", node, f"{ast.unparse(node)} → {rest}", rest


def _plus(value: ast.expr, more: int) -> ast.expr:
    return ast.BinOp(value, ast.Add(), ast.Constant(more)) if more else value


def planted(spec: Spec, fault: Fault) -> Spec:
    """The spec with a fault in its steps; its states and properties stay as they are."""
    text = text_of(_stating(spec)[fault.file]).encode()
    begin, end = fault.span
    return changed(spec, text[:begin] + fault.instead.encode() + text[end:], fault.file)


def changed(spec: Spec, text: bytes | str, file: int = 0) -> Spec:
    """The spec with the steps of another text in one of its files; deviations call the steps as they are then."""
    made: dict[ModuleType, ModuleType] = {}
    for number, module in enumerate(_stating(spec)):
        tree = ast.parse(text if number == file else text_of(module))
        tree.body = [node for node in tree.body if _is_of_steps(node, behind_steps(spec))]
        made[module] = ModuleType(module.__name__, module.__doc__)
        made[module].__dict__.update(
            {
                name: made.get(value, value) if isinstance(value, ModuleType) else value
                for name, value in vars(module).items()
            }
        )
        exec(compile(tree, f"<{spec.name} with a fault>", "exec"), made[module].__dict__)  # noqa: S102 - a spec, with one mistake
        made[module].__dict__["ENABLED"] = _enabled(spec, module, made)
    return Spec(made[spec.module], made[spec.deviating] if spec.deviating else None, _laws(spec, made))


def _laws(spec: Spec, made: Mapping[ModuleType, ModuleType]) -> ModuleType | None:
    """The laws in a module of their own, for steps with a fault."""
    if spec.laws is None:
        return None
    laws = ModuleType(spec.laws.__name__, spec.laws.__doc__)
    faulty = {module: _with_steps_of(spec, module, changed) for module, changed in made.items()}
    tuples = {name: _enabled(spec, spec.laws, faulty, name) for name in ("ENABLED", "ENABLED_AFTER_DEVIATIONS")}
    laws.__dict__.update(vars(spec.laws), **tuples)
    return laws


def _with_steps_of(spec: Spec, module: ModuleType, changed: ModuleType) -> ModuleType:
    """A module of the spec with the steps of another text: no helper of theirs is another one."""
    mixed = ModuleType(module.__name__, module.__doc__)
    steps = {name for name, value in vars(module).items() if value in [*spec.steps, *spec.at_rest]}
    mixed.__dict__.update(vars(module), **{name: vars(changed)[name] for name in steps})
    return mixed


def _enabled(
    spec: Spec, module: ModuleType, made: Mapping[ModuleType, ModuleType], laws: str = "ENABLED"
) -> tuple[FunctionType, ...]:
    """The laws of a tuple for steps with a fault; everything else that they name stays the spec's own."""
    names, changed = dict(vars(module)), vars(made.get(module, module))
    for name, value in vars(module).items():
        if isinstance(value, ModuleType):
            names[name] = made.get(value, value)
        elif value in [*spec.steps, *spec.at_rest]:
            names[name] = changed[name]
        elif isinstance(value, FunctionType) and value.__module__ == module.__name__ and name not in behind_steps(spec):
            names[name] = update_wrapper(FunctionType(value.__code__, names), value)
    return tuple(names[holds.__name__] for holds in getattr(module, laws, ()))


def _is_of_steps(node: ast.stmt, steps: Collection[str]) -> bool:
    match node:
        case ast.FunctionDef(name=name):
            return name in steps
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name in {"ACTIONS", "DEVIATIONS", "AT_REST"}
    return False


# -- what a step is made of ----------------------------------------------------------------------------------------


@cache
def behind_steps(spec: Spec) -> dict[str, frozenset[str]]:
    """The names of the actions and deviations that call each function of a step."""
    used: dict[str, set[str]] = {}
    for step in spec.steps:
        for function in made_of(step):
            if function.__module__ in (module.__name__ for module in _stating(spec)):
                used.setdefault(function.__name__, set()).add(step.__name__)
    return {name: frozenset(by) for name, by in used.items()}


def _starts_of_lines(text: str) -> list[int]:
    """The begin of each line, in bytes; lines count from 1."""
    starts = [0, 0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    return starts
