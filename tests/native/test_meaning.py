"""Native code says what Python says: of one function in full, and of programs at random."""

from __future__ import annotations

import threading
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest

from gapless.native import fuzzer, native
from gapless.native.bounds_checks import compiled
from gapless.native.fuzzer import BoundedArray
from gapless.native.kinds import kind_of
from gapless.native.language import Function, function
from gapless.native.program_generator import program
from tests.support.night import NIGHT

STEP = 3
PROGRAMS = 5_000 if NIGHT else 75


class Pair(NamedTuple):
    """Values that are handed over together."""

    one: Any
    other: int


@function
def twice(value: int) -> int:
    """A function that is called."""
    return 2 * value + STEP


@native(lambda values, *_: len(values))
def everything(values: Any, rows: Any, pair: Pair, more: bool, large: np.uint64) -> Any:  # noqa: FBT001 - native code
    """All kinds of arguments, an array that is written to, and an answer of several numbers."""
    total = 0
    for i in range(len(values)):
        rows[1, i] = twice(values[i]) + pair.one[i] * pair.other
        total += rows[0, i]
    return total, more, large >> np.uint64(60)


def given() -> tuple[Any, ...]:
    """Arguments of every kind."""
    return np.arange(5), np.ones((2, 9), np.int64)[:, ::2], Pair(np.full(5, 10, np.int8), -2), True, np.uint64(2**63)


def test_all_kinds_of_arguments() -> None:
    plain, ours = given(), given()
    expected = everything.by_python(*plain)
    assert everything.compiled(*ours) == tuple(expected) == (5, True, 8)
    assert ours[1].tolist() == plain[1].tolist()
    assert ours[1][1].tolist() == [-17, -15, -13, -11, -9]


def test_what_is_read_only_is_read_and_not_written() -> None:
    values, rows, *rest = given()
    values.flags.writeable = False
    assert everything.compiled(values, rows, *rest)[0] == 5
    rows.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        everything.compiled(values, rows, *rest)


def is_more(one: int, other: int) -> Any:
    return one > other


def nothing(values: Any) -> None:
    values[0] = 7


def divided(one: int, other: int) -> Any:
    return one // other, one % other


def test_truth_is_truth_and_nothing_is_nothing() -> None:
    of = Function(is_more)  # type: ignore[arg-type]
    assert (of(2, 1), of(1, 2)) == (True, False)
    assert type(of(2, 1)) is bool
    values = np.zeros(2, np.int64)
    assert Function(nothing)(values) is None  # type: ignore[arg-type]
    assert values.tolist() == [7, 0]


@pytest.mark.parametrize("one", [0, 1, 7, -7, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("other", [1, -1, 2, -2, 7, -7, 2**63 - 1, -(2**63)])
def test_quotients_are_rounded_down(one: int, other: int) -> None:
    whole, rest = Function(divided)(one, other)  # type: ignore[arg-type]
    assert (whole - one // other) % 2**64 == 0
    assert rest == one % other


def test_errors_are_pythons() -> None:
    with pytest.raises(ZeroDivisionError):
        Function(divided)(7, 0)  # type: ignore[arg-type]
    entry = compiled(Function(nothing), (kind_of(np.zeros(1, np.int64)),), is_checked=True, level=1)  # type: ignore[arg-type]
    with pytest.raises(IndexError):
        entry(np.zeros(0, np.int64))


def in_order(values: Any, at: int) -> Any:
    chained = 0 < values[0] < values[at]
    both = values[0] > 0 and values[at] > 0
    either = values[0] < 1 or values[at] > 0
    chosen = values[at] if values[0] > 0 else 7
    return chained, both, either, chosen


def test_nothing_is_computed_that_python_does_not_compute() -> None:
    """An element out of bounds is not looked at, where what stands before it decides."""
    values = np.zeros(2, np.int64)
    entry = compiled(Function(in_order), (kind_of(values), kind_of(1)), is_checked=True, level=1)  # type: ignore[arg-type]
    assert entry(values, 9) == (False, False, True, 7)
    values[0] = 1
    assert entry(values, 0) == (False, True, True, 1)
    with pytest.raises(IndexError):
        entry(values, 9)


def jumps(most: int) -> Any:
    total = 0
    for at in range(most):
        if at % 3 == 1:
            continue
        if at == 8:
            break
        total += at
    return total


def test_loops_go_on_and_end_where_pythons_do() -> None:
    assert [Function(jumps)(most) for most in (1, 3, 8, 20)] == [jumps(most) for most in (1, 3, 8, 20)]  # type: ignore[arg-type]


def of_tuples(flag: Any, array: Any) -> Any:
    one: Any
    if flag:  # noqa: SIM108 - a statement is what is tried
        one = (True, array)
    else:
        one = (3, array[1:3])
    return one[0], one[1][0]


def answers_of_kinds(flag: Any) -> Any:
    if flag > 1:
        return True, 2
    return 7, False


def test_members_of_tuples_have_the_wider_kind() -> None:
    strided = np.arange(8)[::2]
    assert [Function(of_tuples)(flag, strided) for flag in (True, False)] == [(1, 0), (3, 2)]  # type: ignore[arg-type]
    assert [Function(answers_of_kinds)(flag) for flag in (1, 2)] == [(7, 0), (1, 2)]  # type: ignore[arg-type]


def test_threads_run_at_once() -> None:
    """The interpreter lock is let go while native code runs."""
    counted = Function(counts)  # type: ignore[arg-type]
    box = np.zeros(2, np.int64)
    counted(np.ones(2, np.int64), 5)
    other = threading.Thread(target=counted, args=(box, 1 << 40))
    other.start()
    box[0] = 1
    other.join(30)
    assert not other.is_alive(), "the thread saw what this one has stored"


def counts(box: Any, most: int) -> Any:
    """Count until another thread says so: `box` is written to, so that it is read each time."""
    at = 0
    while at < most and box[0] == 0:
        at += 1
        box[1] = at
        step(box)
    return at


@function(apart=True)
def step(box: Any) -> None:
    """A call that may change what it is given."""
    box[1] += 1


# -- programs at random ----------------------------------------------------------------------------------------------


def test_programs_at_random_mean_the_same_in_each_reading() -> None:
    tally = fuzzer.run(PROGRAMS, jobs=1, first=0)
    assert tally.found == []
    assert tally.compared > 0.9 * PROGRAMS


def test_programs_at_random_come_to_errors_now_and_then() -> None:
    """They leave arrays, and they write into them."""
    ends, written = set(), 0
    with np.errstate(all="ignore"):
        for seed in range(60):
            made = program(Random(seed), is_risky=True)
            found = fuzzer.outcome(fuzzer.by_bounded_python(made), made)
            ends.add(found.answer if isinstance(found.answer, str) else "answer")
            written += found.arrays != fuzzer.plain(made.arguments())
    assert ends == {"answer", "IndexError"}
    assert written > 10


def test_an_array_that_says_where_it_ends() -> None:
    array = BoundedArray(np.arange(6).reshape(2, 3))
    assert (array[1, 2], array[1][0], len(array[0:9])) == (5, 3, 2)
    for at in (-1, 2, (0, 3), (0, -1), slice(-1, None)):
        with pytest.raises(IndexError):
            array[at]
