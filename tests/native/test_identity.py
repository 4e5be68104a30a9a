"""Two functions that mean different things never share object code: its name changes with all that it is made of."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from gapless.native import Function, SyntaxFunction, function, specialised, texts
from gapless.native.language import Cast, text_of
from gapless.native.objects import object_code
from gapless.native.objects.object_code import ObjectCode

STEP, TABLE = 3, np.arange(4)


class Pair(NamedTuple):
    """An array and a number."""

    array: Any
    number: int


@function
def inner(value: int) -> int:
    """A function that is called."""
    return value * STEP


@function
def outer(value: int) -> int:
    """A function that calls, and reads a constant array."""
    return inner(value) + int(TABLE[value])


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept."""
    monkeypatch.setattr(object_code, "cache_folder", lambda: tmp_path)


def returned(value: ast.expr, names: dict[str, Any] | None = None, name: str = "made") -> SyntaxFunction:
    """A function that returns this of its argument `x`."""
    parameters = ast.arguments([], [ast.arg("x")], None, [], [], None, [])
    node = ast.FunctionDef(name, parameters, [ast.Return(value)], [], None, None)
    node.__dict__["type_params"] = []
    return SyntaxFunction(name, ast.fix_missing_locations(node), names or {})


def read(text: str) -> ast.expr:
    """An expression."""
    return ast.parse(text, mode="eval").body


def test_functions_of_one_name_have_their_own_code(tmp_path: Path) -> None:
    for text, expected in (("x + 1", 6), ("x + 2", 7), ("x * 2", 10)):
        assert returned(read(text))(5) == expected
    assert len(list(tmp_path.glob("*.o"))) == 3
    assert returned(read("x + 1"))(5) == 6
    assert len(list(tmp_path.glob("*.o"))) == 3, "and the same one has the same code"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2), (1, True), (1, np.uint64(1)), ((1, 2), (2, 1)), (np.arange(3), np.array([0, 1, 3])),
        (np.arange(3), np.arange(3, dtype=np.uint64)), (Pair(np.arange(2000), 1), Pair(np.arange(2000) % 1500, 1)),
        ((np.zeros(2000),), (np.ones(2000),)), (min, max), (np.int32, np.int64),
        (Cast(32, signed=True), Cast(32, signed=False)), (inner, outer),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_another_value_of_a_name_is_another_text(one: Any, other: Any) -> None:
    assert text_of(returned(read("NAME"), {"NAME": one})) != text_of(returned(read("NAME"), {"NAME": other}))
    assert text_of(returned(read("NAME"), {"NAME": one})) == text_of(returned(read("NAME"), {"NAME": one}))


def test_each_of_several_functions_of_one_name_counts() -> None:
    """Two that are called, of one name and one tree, with other constants: neither hides the other."""

    def of(first: int, second: int) -> SyntaxFunction:
        called = {at: returned(read("x + STEP"), {"STEP": step}) for at, step in (("f", first), ("g", second))}
        return returned(read("f(x) * 100 + g(x)"), called, "made")

    texts = {text_of(of(*steps)) for steps in ((1, 2), (2, 1), (1, 1), (2, 2))}
    assert len(texts) == 4
    assert [of(*steps)(0) for steps in ((1, 2), (2, 1), (1, 1), (2, 2))] == [102, 201, 101, 202]


def test_each_specialised_function_counts() -> None:
    def of(first: int, second: int) -> SyntaxFunction:
        return returned(
            read("f(x) * 100 + g(x)"), {"f": specialised(inner, STEP=first), "g": specialised(inner, STEP=second)}
        )

    assert [of(*steps)(1) for steps in ((4, 2), (5, 2), (2, 4))] == [402, 502, 204]


def test_a_function_that_is_specialised_again_and_again_has_the_last_constants() -> None:
    """The address of constants that are gone may be that of others."""
    once = specialised(outer, TABLE=np.zeros(4, np.int64))
    assert [specialised(once, STEP=step).by_python(1) for step in range(200)] == list(range(200))


def local(step: int) -> Function:
    """One of two functions of one name, in one module."""
    if step == 1:

        def made(value: int) -> int:
            return value + 1
    else:

        def made(value: int) -> int:
            return value + 2

    return Function(made)  # type: ignore[arg-type]


def test_functions_of_one_name_in_one_module_have_their_own_code() -> None:
    assert (local(1)(0), local(2)(0)) == (1, 2)


def test_defaults_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def defaulted(value: int, by: int = 2) -> int:
        return value * by

    of = Function(defaulted)  # type: ignore[arg-type]
    before = text_of(of)
    monkeypatch.setattr(defaulted, "__defaults__", (3,))
    assert text_of(of) != before


def name_of(of: Any) -> str:
    """The digest under which object code is kept."""
    return ObjectCode(of)._digest


def test_all_that_it_is_made_of_changes_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [name_of(outer)]

    def changed(where: Any, what: str, value: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(where, what, value)
            names.append(name_of(outer))

    monkeypatch.setitem(globals(), "STEP", 4)
    names.append(name_of(outer))
    monkeypatch.setitem(globals(), "TABLE", np.arange(5))
    names.append(name_of(outer))
    changed(texts, "_text_in", lambda _: "another text of its module")
    changed(inner, "inline", not inner.inline)  # type: ignore[attr-defined]
    changed(object_code, "_own_text", lambda: "another compiler")
    changed(object_code, "of_this_machine", lambda: ("0.45", "generic", ""))
    monkeypatch.setenv(object_code.CHECKED, "1")
    names.append(name_of(outer))
    assert len(set(names)) == len(names)


def test_a_changed_function_that_is_called_changes_it() -> None:
    one = returned(read("f(x)"), {"f": returned(read("x + 1"))})
    other = returned(read("f(x)"), {"f": returned(read("x + 2"))})
    assert name_of(one) != name_of(other)
    assert (one(1), other(1)) == (2, 3)


def test_each_kind_of_argument_has_its_own_code(tmp_path: Path) -> None:
    first = returned(read("x[1]"))
    for kind in (np.int8, np.uint8, np.int64, np.uint64):
        assert first(np.array([0, 100], kind)) == 100
    assert first(np.array([0, 1, 100])[::2]) == 100
    assert len(list(tmp_path.glob("*.o"))) == 5


def test_a_function_that_calls_one_of_its_own_name() -> None:
    assert returned(read("made(x) + made(x)"), {"made": returned(read("x * 3"))})(2) == 12
