"""Properties of one state for every number: as many cases as numbers that a property compares with, and no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import immutables
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.spec.language import Map, all_between, implies
from gapless.spec.reading.quantification import EndlessCases, counterexample, for_every_number


@dataclass(frozen=True, slots=True)
class State:
    """A range of numbers, and a Map."""

    low: int = 0
    high: int = 0
    kept: Map[int, int] = Map(0)


def kept(*entries: tuple[int, int]) -> Map[int, int]:
    return Map(0, immutables.Map(entries))


FAR = 30
"""A number beyond all that the states and properties below speak of."""

NUMBERS = ("p", "q", "s.low", "s.high", "-1", "2", "s.kept[p]", "s.kept[q + 1]", "(p - q)", "(2 * p)")
COMPARISONS = st.builds(
    "{} {} {}".format, st.sampled_from(NUMBERS), st.sampled_from(("<", "<=", "==", "!=")), st.sampled_from(NUMBERS)
)
PROPERTIES = st.builds("implies({} and {}, {} or {})".format, *[COMPARISONS] * 4)
STATES = st.builds(
    lambda low, high, kept: State(low, high, Map(0, immutables.Map({k: v for k, v in kept.items() if v}))),
    *[st.integers(-3, 5)] * 2,
    st.dictionaries(st.integers(-4, 8), st.integers(-2, 4), max_size=3),
)


def property_of(text: str) -> Callable[..., Any]:
    made: Callable[..., Any] = eval(f"lambda s, p, q: {text}", {"implies": implies})  # noqa: S307 - of the test itself
    return made


@settings(max_examples=150, deadline=None)
@given(PROPERTIES, STATES)
def test_the_answer_is_that_of_trying_all_numbers(text: str, state: State) -> None:
    holds, near = property_of(text), range(-FAR, FAR + 1)
    try:
        found = counterexample(holds, state, cases=3_000)
    except EndlessCases:  # `2 * p == s.kept[q + 1] + p - q`: no two numbers get the same answers
        return
    tried = next((numbers for numbers in product(near, repeat=2) if not holds(state, *numbers)), None)
    assert (found is None) == (tried is None)
    assert found is None or not holds(state, *found.values())


def test_the_first_number_from_0_on_is_the_example() -> None:
    state = State(0, 9, kept((7, 1), (3, 1)))
    assert counterexample(lambda s, n: s.kept[n] == 0, state) == {"n": 3}
    assert counterexample(lambda s, n: implies(n < 0, s.low <= n), state) == {"n": -1}
    assert not for_every_number(lambda s, n: s.kept[n] == 0, state)


def test_the_number_of_cases_does_not_grow_with_the_numbers() -> None:
    """A million millions of bytes, one entry: some ten calls."""
    calls = []

    def holds(s: State, n: int) -> bool:
        calls.append(n)
        return implies(0 <= n < s.high, s.kept[n] == 0 or n == 10**9)

    assert counterexample(holds, State(0, 10**12, kept((10**9, 1)))) is None
    assert len(calls) < 10


def test_what_is_not_asked_for_has_no_cases() -> None:
    """`implies` looks at both of its sides; the second counts only where the first is true."""
    state = State(0, 5, kept((9, 1)))
    assert counterexample(lambda s, n: implies(0 <= n < s.high, s.kept[n // 2] == 0), state) is None
    assert counterexample(lambda s, n: implies(n < s.high, all_between(0, n, lambda k: s.kept[k] == 0)), state) is None


def test_a_flag_is_true_or_false() -> None:
    def holds(s: State, n: int, lost: bool) -> bool:  # noqa: FBT001 - as in a spec
        return implies(lost, s.kept[n] == 0)

    assert counterexample(holds, State(kept=kept((4, 1)))) == {"n": 4, "lost": 1}


def test_a_property_of_ever_more_cases_says_so() -> None:
    with pytest.raises(EndlessCases, match="say for which it is meant, such as `implies"):
        counterexample(lambda s, n: n % 2 < 2 and s.low == 0, State(), cases=1_000)
