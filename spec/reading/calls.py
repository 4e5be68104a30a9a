"""Calls at the end of a spec file, such as `Claim(…)`: their parts by name, and the steps that they name."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from gapless.spec.reading.complaints import Complaint, unknown
from gapless.spec.reading.declarations import SpecFile

NONE = ast.Constant(None)


def first_of(found: Iterator[Complaint]) -> Iterator[Complaint]:
    """The first of some complaints: the cause of others."""
    first = next(found, None)
    if first is not None:
        yield first


def parts_of(call: ast.expr, names: tuple[str, ...]) -> dict[str, ast.expr]:
    """The parts that a call is given, by name; those by place come first."""
    if not isinstance(call, ast.Call):
        return {}
    by_place = dict(zip(names, call.args, strict=False))
    return by_place | {keyword.arg or "**": keyword.value for keyword in call.keywords}


def text_in(value: ast.expr) -> str:
    """The text that a value is; empty for any other."""
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def members_of(file: SpecFile, name: str, form: str) -> tuple[list[ast.expr], list[Complaint]]:
    """The members of a tuple of a file, and the complaint about what is no tuple. `form`: of one member."""
    value, members = file.values[name], file.tuple_of(name)
    if members is not None:
        return [*members], []
    return [], [Complaint(value.lineno, f"`{name}`, which is no tuple", f"a tuple: `{name} = ({form.strip('`')},)`")]


def strange_part(call: str, given: Iterable[str], known: tuple[str, ...], line: int, form: str) -> Iterator[Complaint]:
    """The complaint about the first part of a call that it does not have."""
    if strange := [name for name in given if name not in known]:
        yield unknown(line, f"`{call}({strange[0]}=…)`", strange[0], known, form, "`{}=…`")


def is_call(value: ast.expr, of: str) -> bool:
    """True for a call of that name."""
    return isinstance(value, ast.Call) and ast.unparse(value.func) == of


def shown(value: ast.expr) -> str:
    """The first line of a value, as code."""
    return f"`{ast.unparse(value).splitlines()[0]}`"


def steps_of(file: SpecFile) -> list[str]:
    """The names of the steps of a file."""
    return [ast.unparse(one) for one in file.tuple_of("ACTIONS") or ()]


def step_in(file: SpecFile, value: ast.expr, part: str, line: int) -> Iterator[Complaint]:
    """The complaint about a name in a part that is no step."""
    name, known = ast.unparse(value), steps_of(file)
    if name not in known:
        others = f"a step, by its name: {', '.join(known)}"
        bare = name.strip("'\"()")
        word = f"`{name}` in `{part}`, which is no step"
        yield Complaint(line, word, f"`{bare}`: its name alone") if bare in known else unknown(
            line, word, bare, known, others
        )
