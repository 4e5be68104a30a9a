"""Each construct that the language does not have is refused, with the place and a remedy."""

# mypy: ignore-errors
# It says what the language refuses: most of that is refused by mypy, too.

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from gapless.native import Function, LanguageError, function, uint64
from gapless.native.kinds import kind_of
from gapless.native.objects.object_code import llvm_text

CONSTANT = np.arange(4)
HUGE = 1 << 64
ONE = uint64(1)


class Pair(NamedTuple):
    """Two numbers."""

    one: int
    other: int


@function
def twice(a: int, b: int = 2) -> int:
    """Called by others."""
    return a * b


def floats(a: int, b: Any) -> Any:
    return a * 0.5


def real_division(a: int, b: Any) -> Any:
    return a / 2


def power(a: int, b: Any) -> Any:
    return a**2


def text(a: int, b: Any) -> Any:
    x = "name"
    return x


def a_list(a: int, b: Any) -> Any:
    return [a][0]


def comprehension(a: int, b: Any) -> Any:
    return sum(x for x in range(a))


def allocation(a: int, b: Any) -> Any:
    return np.zeros(3)


def raising(a: int, b: Any) -> Any:
    raise ValueError


def asserting(a: int, b: Any) -> Any:
    assert a
    return 1


def with_block(a: int, b: Any) -> Any:
    with b:
        return 1


def closure(a: int, b: Any) -> Any:
    return (lambda: a)()


def two_kinds(a: int, b: Any) -> Any:
    x = a
    x = b
    return x[0]


def mixed_signs(a: int, b: Any) -> Any:
    return a + uint64(a)


def one_way(a: int, b: Any) -> Any:
    if a:
        x = 1
    return x


def later(a: int, b: Any) -> Any:
    for _ in range(3):
        if a > 1:
            a = ONE_MORE + HUGE_LATER
        HUGE_LATER = a
    return a


HUGE_LATER, ONE_MORE = 1, 2


def skipped_in_a_condition(a: int, b: Any) -> Any:
    if a > 1 and (x := a + 1) > 3:
        a = 1
    return x


def skipped_in_a_choice(a: int, b: Any) -> Any:
    y = 1 if a else (x := 2)
    return x + y


def skipped_by_continue(a: int, b: Any) -> Any:
    for one in (a, 2):
        if one > 1:
            continue
        x = one
    return x


def unknown(a: int, b: Any) -> Any:
    return missing  # noqa: F821 - that is the case


def huge(a: int, b: Any) -> Any:
    return a + HUGE


def overflowing(a: int, b: Any) -> Any:
    return (1 << 62) * 4


def by_zero(a: int, b: Any) -> Any:
    return a // 0


def far_shift(a: int, b: Any) -> Any:
    return a << 64


def negative_index(a: int, b: Any) -> Any:
    return b[-1]


def negative_slice(a: int, b: Any) -> Any:
    return len(b[:-1])


def stepped_slice(a: int, b: Any) -> Any:
    return len(b[::2])


def three_indices(a: int, b: Any) -> Any:
    return b[0, 1, 2]


def write_to_constant(a: int, b: Any) -> Any:
    CONSTANT[0] = 1
    return a


def step_unknown(a: int, b: Any) -> Any:
    x = 0
    for _ in range(0, 9, a):
        x += 1
    return x


def loop_else(a: int, b: Any) -> Any:
    while a:
        a -= 1
    else:
        a = 7
    return a


def number_loop(a: int, b: Any) -> Any:
    for x in a:
        return x
    return 0


def truth_of_numbers(a: int, b: Any) -> Any:
    x = a and 3
    return x


def identity(a: int, b: Any) -> Any:
    return a is b


def keyword_of_min(a: int, b: Any) -> Any:
    return min(a, 2, key=twice)


def unknown_keyword(a: int, b: Any) -> Any:
    return twice(a, c=3)


def too_many(a: int, b: Any) -> Any:
    return twice(a, 2, 3)


def too_few(a: int, b: Any) -> Any:
    return twice()


def all_keywords(a: int, b: Any) -> Any:
    return twice(a, **b)


def no_number(a: int, b: Any) -> Any:
    return len()


def member_missing(a: int, b: Any) -> Any:
    return Pair(a, 2).third


def made_of_less(a: int, b: Any) -> Any:
    return Pair(a).one


def member_of_tuple(a: int, b: Any) -> Any:
    return (a, 2)[2]


def members_of_kinds(a: int, b: Any) -> Any:
    return (a, b)[a]


def plain_function(a: int, b: Any) -> Any:
    return floats(a, b)


def array_sum(a: int, b: Any) -> Any:
    return b + 1


def starred(*a: Any) -> Any:
    return a


def inverted(a: int, b: Any) -> Any:
    return ~(a > 1)


CASES = {
    floats: "whole numbers only", real_division: r"\+ - \* // %", power: r"\+ - \* // %", text: "no value of the language",
    a_list: "no such expression", comprehension: "no such expression|only functions", allocation: "only functions of the language",
    raising: "no such statement", asserting: "no such statement", with_block: "no such statement", closure: "no such expression",
    two_kinds: "x is i64 elsewhere, and a 1-dimensional array of i64 here: a variable has one kind",
    mixed_signs: "cast one of them", one_way: "assign one on every way", later: "assigned later on",
    skipped_in_a_condition: "assign one on every way", skipped_in_a_choice: "assign one on every way",
    skipped_by_continue: "assign one on every way", unknown: "there is no such name", huge: "more than 64 bits",
    overflowing: "more than 64 bits", by_zero: "divides by 0", far_shift: "0 to 63 bits", negative_index: "counts from the beginning",
    negative_slice: "counts from the beginning", stepped_slice: "a slice has no step", three_indices: "has 1 dimensions",
    write_to_constant: "constant array", step_unknown: "step is a constant", loop_else: "no else",
    number_loop: "goes through a range, an array or a tuple", truth_of_numbers: "write a comparison", identity: "== and !=",
    keyword_of_min: "by position", unknown_keyword: "takes 2 arguments: a, b", too_many: "takes 2 arguments: a, b",
    too_few: "a is not given", all_keywords: "asked for|takes 2 arguments", no_number: "takes one argument",
    member_missing: "named tuples have members", made_of_less: "has the members one, other", member_of_tuple: "has 2 members",
    members_of_kinds: "known by constants", plain_function: "only functions of the language", array_sum: "a number is asked for",
    starred: "by position alone", inverted: "write `not`",
}  # fmt: skip


@pytest.mark.parametrize("python", CASES, ids=lambda python: python.__name__)
def test_it_is_refused_with_place_and_remedy(python: Callable[..., Any]) -> None:
    kinds = () if python is starred else (kind_of(1), kind_of(np.arange(3)))
    with pytest.raises(LanguageError, match=CASES[python]) as refused:
        llvm_text(Function(python), kinds)
    place = re.match(r"(.*test_refusals\.py):(\d+): (\w+): ", str(refused.value))
    assert place, refused.value
    code = python.__code__
    assert code.co_firstlineno <= int(place[2]) <= max(line for *_, line in code.co_lines() if line)


@function
def endless(a: int) -> int:
    """It calls itself."""
    return endless(a - 1) if a else 0


def test_recursion_is_refused() -> None:
    with pytest.raises(LanguageError, match="no recursion"):
        llvm_text(endless, (kind_of(1),))


def test_a_name_of_the_function_around_it_is_refused() -> None:
    around = 3

    def inner(a: int) -> int:
        return a + around

    with pytest.raises(LanguageError, match=r"test_refusals\.py:\d+: inner: it sees around of the function around it"):
        llvm_text(Function(inner), (kind_of(1),))


@pytest.mark.parametrize("value", ["text", 1.5, np.zeros(2), np.zeros((1, 1, 1), np.int64), np.zeros(2, ">i4"), None])
def test_an_argument_of_another_kind_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        twice(value)
