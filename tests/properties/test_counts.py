"""Counts over a range: laws that are true of all small sets, quorums that are proved, and each reading the same."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import z3

from gapless.properties.exploration.search import explore
from gapless.properties.faults.planted.fault_injection import replacing
from gapless.properties.proof import counterexamples, induction
from gapless.properties.proof.terms import counts
from gapless.properties.proof.terms.counts import PAIRS, CountedRange, CountedSet, Logic
from gapless.spec.catalog import Spec
from gapless.spec.language import count_between
from gapless.spec.reading.quantification import counterexample
from gapless.traces.replay.kernels import kernel
from gapless.traces.replay.provenance import refused_for
from gapless.traces.specs import load

PLAIN = Logic(
    lambda *parts: all(parts), lambda *parts: any(parts), operator.not_, lambda asked, yes, no: yes if asked else no
)
DOMAIN = range(-1, 4)
SETS = [frozenset(n for n, inside in zip(DOMAIN, flags, strict=True) if inside) for flags in product((0, 1), repeat=5)]
RANGES = [(low, high) for low in DOMAIN for high in (*DOMAIN, 4)]


def of(members: frozenset[int], low: int, high: int) -> CountedSet:
    """A set with its true count."""
    return CountedSet(members.__contains__, count_between(low, high, members.__contains__))


def fails(law: Callable[..., Any], shown: int) -> bool:
    """True if a law is false of some two sets, whatever numbers are to show it."""
    for low, high in RANGES:
        within = CountedRange(low, high)
        for one, other in product([of(members, low, high) for members in SETS], repeat=2):
            if not any(law(PLAIN, within, one, other, *some) for some in product(DOMAIN, repeat=shown)):
                return True
    return False


@pytest.mark.parametrize(("law", "shown"), PAIRS, ids=[law.__name__ for law, _ in PAIRS])
def test_a_law_of_two_sets_is_true_of_all_small_ones(law: Callable[..., Any], shown: int) -> None:
    assert not fails(law, shown)


def test_a_law_of_one_set_is_true_of_all_small_ones() -> None:
    for (low, high), members in product(RANGES, SETS):
        one = of(members, low, high)
        assert counts.lies_between(PLAIN, CountedRange(low, high), one)
        assert counts.count_the_next(PLAIN, low, high, one, of(members, low, high + 1).count)


def too_few(_logic: Logic, within: CountedRange, one: CountedSet, other: CountedSet, shared: int) -> bool:
    fits = within.high < within.low or one.count + other.count < within.size
    return bool(fits or (within.low <= shared < within.high and one.has(shared) and other.has(shared)))


def changes_by_one(
    _logic: Logic, _within: CountedRange, one: CountedSet, other: CountedSet, _first: int, _second: int
) -> bool:
    return bool(abs(one.count - other.count) <= 1)


@pytest.mark.parametrize(("wrong", "shown"), [(too_few, 1), (changes_by_one, 2)])
def test_a_wrong_law_is_found_out(wrong: Callable[..., Any], shown: int) -> None:
    assert fails(wrong, shown)


def test_the_laws_contradict_nothing() -> None:
    """A set of three may have two members, and never four."""
    some = z3.Lambda([z3.Int("n")], z3.And(z3.Int("n") >= 0, z3.Int("n") < z3.Int("end")))
    low, high = z3.IntVal(0), z3.Int("high")
    more = counts.counted(some, low, high) > high
    assert induction.ask((high >= 0, more)).verdict == "unsat"
    assert (
        induction.ask((high == 3, z3.Int("end") == 2, counts.counted(some, low, high) == 2), work=10**6).verdict
        != "unsat"
    )


VOTES = '''"""An election: nodes vote once in a term, and most votes make a leader."""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Bound, Map, applies, count_between, implies, replace, require

Node = NewType("Node", int)
Term = NewType("Term", int)


@dataclass(frozen=True, slots=True)
class State:
    """The votes of each term, and its leaders."""

    nodes: int = 3
    votes: Map[Term, Node, Node] = Map(Node(-1))
    leads: Map[Term, Node, bool] = Map(False)


def begin(s: State, nodes: int) -> State:
    """There are any number of nodes."""
    applies(1 <= nodes)
    return replace(s, nodes=nodes)


def vote(s: State, term: Term, voter: Node, candidate: Node) -> State:
    """A node votes for a candidate."""
    applies(0 <= voter < s.nodes and 0 <= candidate)
    require(
        s.votes[term, voter] == -1,
        "node-votes-once",
        because="the node has not voted in the term",
        otherwise="two candidates have its vote",
    )
    return replace(s, votes=s.votes.set(term, voter, candidate))


def lead(s: State, term: Term, candidate: Node) -> State:
    """A candidate leads."""
    applies(0 <= candidate)
    require(
        s.nodes < 2 * votes_of(s, term, candidate),
        "most-nodes-voted-for-the-leader",
        because="most nodes voted for the leader",
        otherwise="there may be two",
    )
    return replace(s, leads=s.leads.set(term, candidate, True))


def votes_of(s: State, term: Term, candidate: Node) -> int:
    """The votes for a candidate."""
    return count_between(0, s.nodes, lambda n: s.votes[term, Node(n)] == candidate)


def leader_has_most_votes(s: State, term: Term, candidate: Node) -> bool:
    """Otherwise others may have them."""
    return implies(s.leads[term, candidate], 0 <= candidate and s.nodes < 2 * votes_of(s, term, candidate))


def term_has_one_leader(s: State, term: Term, a: Node, b: Node) -> bool:
    """Otherwise two decide."""
    return implies(s.leads[term, a] and s.leads[term, b], a == b)


def there_are_nodes(s: State) -> bool:
    """Otherwise most of them are none."""
    return 1 <= s.nodes


INITIAL = State()
INITIALS = (begin,)
ACTIONS = (vote, lead)
INVARIANTS = (there_are_nodes, leader_has_most_votes, term_has_one_leader)
BOUND = Bound(
    says="three nodes, one term",
    within=lambda s: True,
    numbers={
        "nodes": (3,), "term": (0,), "voter": range(3), "candidate": range(3), "a": range(3), "b": range(3),
    },
)
'''


def made(folder: Path, *changes: tuple[str, str]) -> Spec:
    """The spec with some changes."""
    text = VOTES
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "votes.py"
    path.write_text(text, encoding="utf-8")
    return load(path)


def test_one_leader_is_proved_for_any_number_of_nodes(tmp_path: Path) -> None:
    spec = made(tmp_path)
    assert {counterexamples.settled(one).verdict for one in induction.obligations(spec)} == {"proved"}


FEWER = ("s.nodes < 2 * votes_of", "s.nodes <= 2 * votes_of")


def test_half_of_the_votes_are_refuted(tmp_path: Path) -> None:
    spec = made(tmp_path, FEWER)
    (wrong,) = (
        one
        for one in induction.obligations(spec)
        if (one.step, one.states) == ("lead", 1) and "one_leader" in one.invariant
    )
    found = counterexamples.settled(wrong)
    assert found.verdict == "refuted"
    assert found.example
    assert found.example.before.nodes == 2


def test_native_code_counts_as_the_plain_functions_do(tmp_path: Path) -> None:
    spec = made(tmp_path)
    assert spec.bound
    plain, native = (explore(spec, spec.bound, how=how) for how in ("plain", "native"))
    assert (plain.native, native.native) == (False, True)
    assert list(native.graph.states) == plain.graph.states
    assert (native.accepted, native.refused) == (plain.accepted, plain.refused)


def test_a_refusal_names_the_votes_that_were_counted(tmp_path: Path) -> None:
    spec = made(tmp_path)
    state = spec.actions["vote"](spec.initial, 4, 1, 2)
    reads = {read.label: read.value for read in refused_for(spec.actions["lead"], state, {"term": 4, "candidate": 2})}
    assert reads["votes[4, 1]"] == 2
    assert reads["nodes"] == 3
    assert "votes[4, 0]" not in reads
    assert not kernel(spec).obstacle


def test_a_count_is_swept(tmp_path: Path) -> None:
    spec = made(tmp_path)
    state = spec.actions["vote"](spec.actions["vote"](spec.initial, 4, 1, 2), 4, 0, 2)

    def few(s: Any, term: int, candidate: int) -> bool:
        return count_between(0, s.nodes, lambda n: bool(s.votes[term, n] == candidate)) < 2 or candidate == -1

    assert counterexample(few, state) == {"term": 4, "candidate": 2}
    assert counterexample(few, spec.initial) is None


def test_terms_are_looked_through_once(tmp_path: Path) -> None:
    """Behind a proof that counts, questions of the same terms cost no more time."""
    spec = made(tmp_path)
    asked = [one.question().terms for one in induction.obligations(spec)]
    counted = [counts.are_counted(terms) for terms in asked]
    assert any(counted)
    assert not counts.are_counted([z3.Int("a") < z3.Int("b")])
    with replacing(z3, "is_quantifier", None):
        assert [counts.are_counted(terms) for terms in asked] == counted
