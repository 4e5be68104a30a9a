"""A question about many numbers at once has the answers of each; and words mean the same in both readings."""

from random import Random
from typing import Any

import numpy as np
import pytest

from gapless.native import SyntaxFunction, by_python, function
from gapless.properties.exploration.compiled import intrinsics, packed_state, search_program, syntax
from gapless.properties.exploration.compiled.bit_parallel import MANY, BitParallel
from gapless.properties.exploration.compiled.lowering import TermEmitter
from gapless.spec.catalog import Spec
from gapless.spec.reading.trees.decision_trees import End
from gapless.spec.reading.trees.terms import Argument, Every, Field, MapTerm, Term, Variable
from tests.support.written_spec import module

ORIGIN, WIDTH = -1, 6  # keys from -1 to 4
NUMBERS = range(-3, 9)  # some lie where no key is
MAPS = {0: (0, 0, 0, 1), 1: (6, 1, 0, 3), 2: (18, 0, 0, 1)}  # bit, shift, least and mask
N, X = Argument("n"), Field("x")
A, B, C = (MapTerm(name, 0) for name in "abc")
QUESTIONS = [
    N < X, N <= X, X < N, X <= N, N == X, N != X,
    A[N] == 1, A[N] != 0, A[N] == 7, B[N] == 2,
    A[N] < C[N], A[N] <= C[N], A[N] == C[N], A[N] != C[N], A[N] > C[N], C[N] >= A[N],
    B[N] < A[N], B[N] + N <= X, X == 2, N // 3 == X, N % 3 == X,
]  # fmt: skip
SPEC = '''
"""Three Maps and a number."""
from dataclasses import dataclass
from gapless.spec.language import Map, Number, replace

@dataclass(frozen=True, slots=True)
class State:
    """A number and Maps."""

    x: int = 0
    a: Map[Number, int] = Map(0)
    b: Map[Number, int] = Map(0)
    c: Map[Number, int] = Map(0)

def put(s: State, n: Number) -> State:
    """One is put."""
    return replace(s, a=s.a.set(n, 1))

INITIAL = State()
ACTIONS = (put,)
INVARIANTS = ()
'''


@pytest.fixture(scope="module")
def spec() -> Spec:
    return module("three_maps", SPEC)


def functions(spec: Spec, default: int) -> list[tuple[Any, Any]]:
    """Two functions for each question: asked of all numbers at once, and of each. `default`: of the Maps."""
    lowering = TermEmitter(spec)
    asked = BitParallel(lowering)
    names: dict[str, Any] = {**search_program.COMMON}
    every = [asked.bits(question, N, NUMBERS) for question in QUESTIONS]
    places = []
    for number, (bit, shift, least, mask) in MAPS.items():
        place: dict[str, Any] = {
            "BIT": bit,
            "SHIFT": shift,
            "LEAST": least,
            "MASK": mask,
            "ORIGIN": ORIGIN,
            "WIDTH": WIDTH,
        }
        place["DEFAULT"] = default
        names[f"at_{number}"] = place["at"] = search_program.bound(packed_state.value_at, f"at_{number}", **place)
        places.append(place)
    for name, (sort, *given) in sorted(asked.functions.items(), key=lambda one: one[1][0] != "equal"):
        made = search_program._equal(name, places, *given) if sort == "equal" else None
        names[name] = made or search_program._compared(name, names, places, *given)
    found = []
    for at, (question, bits) in enumerate(zip(QUESTIONS, every, strict=True)):
        assert bits is not None
        kept = syntax.binary(bits, "&", (1 << len(NUMBERS)) - 1)
        whole = syntax.function(f"whole_{at}", ("row", "s_x"), [syntax.answer(kept)])
        one = syntax.answer(syntax.as_number(lowering.truth(question)))
        each = syntax.function(f"each_{at}", ("row", "s_x", "a_n"), [one])
        found.append((SyntaxFunction(whole.name, whole, names), SyntaxFunction(each.name, each, names)))
    return found


@pytest.mark.parametrize("default", [0, 1])
def test_every_question_has_the_same_answer_at_once(spec: Spec, default: int) -> None:
    chance, pairs = Random(7), functions(spec, default)
    answers = dict.fromkeys(range(len(QUESTIONS)), 0)
    for _ in range(100):
        row, x = np.array([chance.getrandbits(63)], np.uint64), chance.randrange(-6, 12)
        for at, (whole, one) in enumerate(pairs):
            each = sum(one(row, x, number) << n for n, number in enumerate(NUMBERS))
            assert whole(row, x) == each, (QUESTIONS[at], x, int(row[0]))
            answers[at] |= each
    assert [at for at, bits in answers.items() if not bits] == [8]  # no word of one bit holds a 7


def test_python_reads_the_questions_as_native_code_does(spec: Spec) -> None:
    chance = Random(8)
    for whole, one in functions(spec, 0):
        for _ in range(5):
            row, x = np.array([chance.getrandbits(63)], np.uint64), chance.randrange(-6, 12)
            assert by_python(whole)(row, x) == whole(row, x)
            assert by_python(one)(row, x, 3) == one(row, x, 3)


def test_what_may_end_the_search_is_asked_of_each(spec: Spec) -> None:
    variable = Variable("n0")
    body: Any = End(A[variable] == 1)
    every: Term = Every(0, N, variable, body)
    assert BitParallel(TermEmitter(spec)).bits(every, N, NUMBERS) is None


def test_many_numbers_are_asked_one_by_one(spec: Spec) -> None:
    asked = BitParallel(TermEmitter(spec))
    assert asked.bits(N < 3, N, range(MANY + 1)) is None
    assert asked.bits(N < 3, N, range(MANY)) is not None


# -- words ---------------------------------------------------------------------------------------------------------


@function
def rest(a: int, b: int) -> int:
    """A word, called."""
    return intrinsics.rest_of(a, b)


@function
def whole(a: int, b: int) -> int:
    """A word, called."""
    return intrinsics.quotient(a, b)


@function
def alike(line: Any, at: int, word: int) -> int:
    """A word, called."""
    intrinsics.fetch_at(line, at)
    return intrinsics.equal_in(line, at, word)


def test_words_mean_in_native_code_what_they_mean_in_python() -> None:
    chance = Random(3)
    for _ in range(300):
        a, b = chance.randrange(-40, 40), chance.randrange(-7, 8)
        assert rest(a, b) == by_python(rest)(a, b)
        assert whole(a, b) == by_python(whole)(a, b)
        line = np.array([chance.randrange(4) for _ in range(11)], np.uint64)
        wanted = np.uint64(chance.randrange(4))
        assert alike(line, 3, wanted) == by_python(alike)(line, 3, wanted)
