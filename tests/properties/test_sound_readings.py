"""The prover cannot be fooled: no way through a step is lost, and random specs are read as they are called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import z3

from gapless.properties.campaign import CaseTally
from gapless.properties.faults.planted.fault_injection import replacing
from gapless.properties.fuzzing.differential import chunk, unseen
from gapless.properties.proof import counterexamples, induction, liveness, symbolic, translation
from gapless.properties.proof.induction import COVERED
from gapless.properties.proof.symbolic import Unknown, UnknownMap, number
from gapless.properties.proof.terms import boolean_terms
from gapless.spec import forking
from gapless.spec.catalog import SPECS, Spec
from tests.support.night import NIGHT
from tests.support.toy_spec import toy

# -- scripts -------------------------------------------------------------------------------------------------------


def three_questions() -> tuple[bool, ...]:
    return tuple(forking.decide(n) for n in range(3))


def test_an_answer_that_is_settled_later_loses_no_way() -> None:
    """A solver that knows of question 0 only once it was asked of it: what was chosen then stays chosen."""
    asked: list[object] = []

    def learned(_path: forking.Path, question: object) -> bool | None:
        asked.append(question)
        return True if question == 0 and asked.count(0) > 1 else None

    ways = [outcome for _, outcome in forking.runs(three_questions, known=learned)]
    assert len(ways) == len(set(ways)) == 8


def test_what_follows_from_other_answers_is_no_fork() -> None:
    def known(path: forking.Path, question: object) -> bool | None:
        return path.answers[0] if question == 2 else None

    ways = {outcome for _, outcome in forking.runs(three_questions, known=known)}
    assert ways == {(a, b, a) for a in (True, False) for b in (True, False)}
    tree = forking.decision_tree(three_questions, known=known)
    assert sorted(str(leaf.outcome) for leaf in forking.leaves(tree)) == sorted(map(str, ways))


def test_a_function_that_asks_otherwise_is_refused() -> None:
    questions = iter(range(100))

    def fickle() -> bool:
        return forking.decide(next(questions)) and forking.decide(next(questions))

    with pytest.raises(forking.AskedOtherwise):
        list(forking.runs(fickle))


def test_a_function_that_asks_less_than_before_is_refused() -> None:
    turns = iter((2, 2, 0))

    def shy() -> None:
        for n in range(next(turns)):
            forking.decide(n)

    with pytest.raises(forking.AskedOtherwise, match="asked nothing"):
        list(forking.runs(shy))


# -- terms ---------------------------------------------------------------------------------------------------------


def test_what_is_written_again_is_the_same_value() -> None:
    """Then a repeated step makes no new term."""
    a: Any = Unknown(z3.Int("a"))
    b, array = Unknown(z3.Int("b")), UnknownMap(0, z3.Array("m", z3.IntSort(), z3.IntSort()))
    assert a + b is a + b
    assert (a < 3) is (a < 3)
    assert array.set(a, 1)[b] is array.set(a, 1)[b]
    assert array.forget_from(a) is array.forget_from(a)
    assert array.cleared() is array.cleared()


def test_what_looks_alike_to_python_is_not_taken_for_one_another() -> None:
    """A cache keyed by an object's address must keep the object alive: another may get the same address."""
    a: Any = Unknown(z3.Int("a"))
    array = UnknownMap(0, z3.Array("m", z3.IntSort(), z3.IntSort()))
    for n in range(1000):
        other = Unknown(z3.Int(f"b{n}"))
        assert (a < other).term.eq(z3.Int("a") < z3.Int(f"b{n}"))
        assert array.set(other, n)[other].term.eq(z3.Select(z3.Store(array.term, other.term, n), other.term))
    assert (a == True).term.eq(z3.Int("a") == 1)  # noqa: E712 - Python holds True and 1 for one, as events do
    assert (a - 1).term.eq(z3.Int("a") - 1)
    assert (1 - a).term.eq(1 - z3.Int("a"))
    assert array.set(a, 1)[a].term.eq(z3.Select(z3.Store(array.term, a.term, 1), a.term))
    assert array.set(1, a)[1].term.eq(z3.Select(z3.Store(array.term, 1, a.term), 1))


def test_terms_are_as_z3_makes_them_and_refuse_what_is_no_boolean() -> None:
    some = z3.Bools("p q r")
    assert boolean_terms.all_of(*some).eq(z3.And(some))
    assert boolean_terms.any_of(*some).eq(z3.Or(some))
    assert boolean_terms.negated(some[0]).eq(z3.Not(some[0]))
    assert boolean_terms.either(*some).eq(z3.If(*some))
    for made in (boolean_terms.all_of, boolean_terms.any_of, boolean_terms.negated):
        with pytest.raises(z3.Z3Exception):
            made(z3.Int("a"))


def test_a_path_is_pruned_by_its_own_facts_alone() -> None:
    """The solver's facts of the path before are taken back if this one answers otherwise."""
    a: Any = Unknown(z3.Int("a"))

    def where() -> tuple[bool, ...]:
        return tuple(bool(a < n) for n in (5, 3, 7, 4))

    found = {outcome for _, outcome in symbolic.walked(where)}
    assert found == {tuple(n < bound for bound in (5, 3, 7, 4)) for n in range(9)}


# -- ways ----------------------------------------------------------------------------------------------------------

SCEPTIC = '''"""A quantifier whose truth is learned late, and seven case distinctions after it."""

from dataclasses import dataclass

from gapless.spec.language import Map, Number, all_between, replace, require


@dataclass(frozen=True, slots=True)
class State:
    end: Number = Number(0)
    count: int = 0
    bits: Map[Number, int] = Map(0)


def put(s: State, number: Number) -> State:
    return replace(s, bits=s.bits.set(number, 1))


def move(s: State, to: Number, a: int, b: int) -> State:
    require(all_between(s.end, to, lambda n: s.bits[n] == 1), "all-set", because="all are set", otherwise="a gap")
    one = (1 if a < 1 else 0) + (1 if a < 2 else 0) + (1 if b < 1 else 0) + (1 if b < a else 0)
    more = (1 if s.bits[Number(0)] == 1 else 0) + (1 if to < a else 0) + (1 if s.bits[to] == 1 else 0)
    if all_between(s.end, to, lambda n: s.bits[n] != 0):
        return replace(s, end=to, count=s.count + (-1 if one == 3 and more == 1 else 1))
    return replace(s, end=to, count=-7)


def the_count_is_not_negative(s: State) -> bool:
    """Otherwise it is not a count."""
    return 0 <= s.count


INITIAL = State()
ACTIONS = (put, move)
INVARIANTS = (the_count_is_not_negative,)
STEP_PROPERTIES = ()
'''


@pytest.fixture
def sceptic(tmp_path: Path) -> Spec:
    return toy(tmp_path, "sceptic", SCEPTIC)


def verdicts(spec: Spec) -> dict[tuple[str, str], str]:
    return {(o.step, o.invariant): counterexamples.settled(o).verdict for o in induction.obligations(spec)}


def test_the_sceptics_spec_is_refuted(sceptic: Spec) -> None:
    found = verdicts(sceptic)
    assert found.pop(("move", "the_count_is_not_negative")) == "refuted"
    assert set(found.values()) == {"proved"}


def test_the_sceptics_spec_is_refuted_by_a_solver_that_learns_late(sceptic: Spec) -> None:
    """Whatever the pruner says of a question when it is first asked, and says otherwise the second time."""
    asked: list[Any] = []
    settles = symbolic.Pruner.__call__

    def late(self: symbolic.Pruner, path: forking.Path, question: Any) -> bool | None:
        first = all(question.key != other.key for other in asked)
        asked.append(question)
        return None if first else settles(self, path, question)

    with replacing(symbolic.Pruner, "__call__", late):
        found = verdicts(sceptic)
    assert found["move", "the_count_is_not_negative"] == "refuted"
    assert found["move", COVERED] == "proved"


@pytest.mark.parametrize(
    "wrong", [lambda ways: ways[:-1] or ways, lambda ways: [*ways, ways[0]]], ids=["lost", "twice"]
)
def test_a_way_that_is_lost_or_walked_twice_is_noticed(wrong: Callable[[Any], Any]) -> None:
    """A step, a kernel, and a helpful step."""
    spec, walked = SPECS["dispatch"], symbolic.walked

    def faulty(*args: Any, **more: Any) -> Any:
        return wrong(walked(*args, **more))

    induction.theory.cache_clear()
    with replacing(symbolic, "walked", faulty):
        of_steps = list(induction.covering(spec))
        of_kernels = [o for o in translation.obligations(spec) if o.invariant == translation.COVERED]
        of_claims = [o for o in liveness.obligations(spec) if o.step.endswith("is read whole")]
        for obligations in (of_steps, of_kernels, of_claims):
            results = [counterexamples.settled(obligation) for obligation in obligations]
            noticed = [result for result in results if result.verdict == "refuted"]
            assert len(noticed) > len(results) // 2
            assert all("no way through it, or two" in result.why for result in noticed)
    induction.theory.cache_clear()


def test_asking_again_asks_the_same() -> None:
    """Bound numbers are called after their place, and no term depends on what was made before it."""
    state = symbolic.unknown_state(SPECS["dispatch"].initial)

    def asked() -> Any:
        with symbolic.read(symbolic.Quantification()):
            of = SPECS["dispatch"].actions["crash"]
            return [fact for facts, _ in symbolic.walked(of, state, Unknown(z3.Int("kept"))) for fact in facts]

    first = asked()
    assert any(z3.is_quantifier(fact) for fact in first)
    others = [z3.Int(f"something else {n}") + n for n in range(50)]
    assert all(a.eq(b) for a, b in zip(first, asked(), strict=True)), others


# -- random specs --------------------------------------------------------------------------------------------------


COUNT = 250 if NIGHT else 12  # specs


@pytest.mark.slow
@pytest.mark.parametrize("first", range(4) if NIGHT else [0])
def test_the_prover_agrees_with_the_plain_functions_on_random_specs(first: int) -> None:
    """Twelve here by day; 100,000 in a night: `python -m gapless.properties.fuzzing --prover`."""
    found = chunk(first, COUNT)
    assert not found.failures, found.failures
    assert found.cases >= 0.8 * COUNT
    assert not unseen(found)


def within_too_much(low: Any, n: Unknown, high: Any, holds: Callable[[Any], Any]) -> Any:
    return z3.Implies(z3.And(number(low) < n.term, n.term < number(high)), symbolic.formula(holds, n))


def rounded(a: Any, b: int) -> Unknown:
    return Unknown(z3.If(number(a) >= 0, number(a) / b, -((-number(a)) / b)))


PLANTED: list[tuple[Any, str, Any]] = [
    (symbolic, "_within", within_too_much),
    (UnknownMap, "cleared", lambda self: UnknownMap(self.default, z3.K(z3.IntSort(), z3.IntVal(1)))),
    (induction.Theory, "not_initially", lambda _, __: induction.Question((z3.BoolVal(False),))),  # noqa: FBT003
    (symbolic, "same_state", lambda *_: z3.BoolVal(False)),  # noqa: FBT003
    (Unknown, "__le__", lambda a, b: Unknown(number(a) < number(b))),
    (Unknown, "__floordiv__", rounded),
]
"""The last two take more specs than a day has time for."""


@pytest.mark.slow
@pytest.mark.parametrize(("owner", "name", "wrong"), PLANTED if NIGHT else PLANTED[:-2])
def test_the_fuzzer_finds_a_fault_that_is_planted_in_the_reading(owner: Any, name: str, wrong: Any) -> None:
    with replacing(owner, name, wrong):
        found = chunk(7, 400, shrink=False) if NIGHT else chunk(3, 100, shrink=False)
    assert found.failures


def test_a_fuzzer_that_sees_nothing_is_blind() -> None:
    assert "specs proved" in unseen(CaseTally())
