"""Claims of what happens in the end: decided on graphs, refuted by lassos, and proved by rank."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.protocols import replaced
from gapless.properties.exploration.graph import Call, StateGraph
from gapless.properties.exploration.json_report import report
from gapless.properties.exploration.liveness.eventually import WaitingStates, fields_read, judged
from gapless.properties.exploration.liveness.lasso import CallArrays
from gapless.properties.exploration.search import Exploration, explore
from gapless.properties.exploration.summary import remarks
from gapless.properties.proof import counterexamples, liveness
from gapless.spec.catalog import SPECS, Spec
from gapless.traces.specs import load
from tests.support.command_line import ROOT, gapless

STATES = 5
PROTOCOLS = ROOT / "examples" / "protocols"
STEPS = "abc"
numbers = st.integers(0, STATES - 1)
Edge = tuple[int, str, int]


def graph_of(edges: dict[tuple[int, str], int], beyond: set[int]) -> StateGraph:
    """A graph that begins in state 0; each state has at most one call of each step."""
    graph = StateGraph(states=[SPECS["log"].initial] * STATES, beyond=beyond)
    graph.met = [None, *[(0, Call("a", ()))] * (STATES - 1)]
    for source in range(STATES):
        for step in STEPS:
            if (source, step) in edges and source not in beyond:
                graph.targets.append(edges[source, step])
                graph.calls.append(Call(step, ()))
        graph.starts.append(len(graph.targets))
    return graph


def reached(edges: list[Edge], begin: set[int]) -> set[int]:
    """The states that some edges lead to."""
    while more := {target for source, _, target in edges if source in begin} - begin:
        begin = begin | more
    return begin


def can_stay(edges: list[Edge], allowed: list[Edge], begin: set[int], fair: str, known: set[int]) -> bool:
    """True if a run stays among some states for ever: every set of them is tried."""
    for mask in range(1, 1 << STATES):
        part = {n for n in range(STATES) if mask >> n & 1}
        within = [edge for edge in allowed if edge[0] in part and edge[2] in part]
        strong = all(reached(within, {n}) >= part for n in part)
        kept = all(
            any(step == one for _, one, _ in within) or any(all((n, step) != edge[:2] for edge in edges) for n in part)
            for step in fair
        )
        moves = fair or within or all(all(edge[0] != n for edge in edges) for n in part)
        if part <= begin & known and strong and kept and moves:
            return True
    return False


@given(
    st.dictionaries(st.tuples(numbers, st.sampled_from(STEPS)), numbers, max_size=10),
    st.sets(numbers, max_size=3),
    st.sets(numbers, max_size=1),
    st.sampled_from(["", "a", "ab", "abc"]),
)
def test_a_run_that_stays_undone_is_found_where_there_is_one(
    calls: dict[tuple[int, str], int], done: set[int], beyond: set[int], fair: str
) -> None:
    graph = graph_of(calls, beyond)
    joined = CallArrays(graph)
    edges = [(source, step, target) for (source, step), target in calls.items() if source not in beyond]
    begin = reached(edges, {0}) - done
    undone = np.array([n not in done for n in range(STATES)])
    waiting = undone & np.array([n in begin for n in range(STATES)])
    allowed = [edge for edge in edges if edge[0] not in done and edge[2] not in done]
    known = set(range(STATES)) - beyond
    lasso = WaitingStates(joined, waiting, undone, frozenset()).lasso(frozenset(fair))
    assert (lasso is not None) == can_stay(edges, allowed, reached(allowed, begin), fair, known)
    if lasso:
        assert lasso.stem[0] == 0
        assert not lasso.loop or lasso.stem[-1] == lasso.loop[0] == lasso.loop[-1]
        for states, taken in ((lasso.stem, lasso.stem_calls), (lasso.loop, lasso.loop_calls)):
            steps = [(a, call.action, b) for (a, b), call in zip(pairwise(states), taken, strict=True)]
            assert {*steps} <= {*edges}
        forever = {*lasso.loop, *lasso.stem[-1:]}
        assert not forever & done
        for step in fair:
            possible = all((n, step) in calls and n not in beyond for n in forever)
            assert not possible or step in {call.action for call in lasso.loop_calls}


def with_bug(folder: Path, name: str, *bugs: tuple[str, str]) -> Spec:
    """A protocol with parts of its file replaced."""
    text = (PROTOCOLS / f"{name}.py").read_text(encoding="utf-8")
    for sound, wrong in bugs:
        text = replaced(text, sound, wrong)
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    return load(path)


def explored(spec: Spec, how: Any = "plain") -> Exploration:
    assert spec.bound is not None
    return explore(spec, spec.bound, how=how)


def test_both_searches_decide_alike_and_claims_are_true() -> None:
    found = [explored(load(PROTOCOLS / "ewd840.py"), how) for how in ("plain", "native")]
    assert [one.result for one in found] == ["holds", "holds"]
    assert found[1].native
    assert found[0].claims == found[1].claims
    plain, native = ((one.states, one.transitions, one.accepted, one.refused) for one in found)
    assert plain == native
    assert found[0].graph.states == list(found[1].graph.states)
    assert remarks(found[0]) == remarks(found[1])


def test_what_the_assumptions_exclude_is_shown() -> None:
    (who_wants,) = report([explored(load(PROTOCOLS / "peterson.py"))]).explored[0].claims
    assert (who_wants.result, who_wants.needs_assumptions) == ("holds", True)
    assert remarks(explored(load(PROTOCOLS / "ewd840.py")))[-1] == (
        "ewd840: in the end, the work ends, and that is detected, if start_round, pass_on and rest are taken in "
        "the end, and send comes to an end. Otherwise not: send(sender=2, receiver=0), rest(node=0) for ever."
    )


NEVER_WHITE = ("black=s.black.set(Node(0), False)", "black=s.black")
REFUTED = {
    "a token that goes round for ever": (
        *("ewd840", NEVER_WHITE),
        """ewd840 breaks the claim "termination is detected".

  In the initial state with nodes = 3, black[0] = 1:
  1. start_round()     token 0 → 2, token_is_black 1 → 0
  For ever, steps 2 to 4 again and again:
  2. pass_on(node=2)   token 2 → 1
  3. pass_on(node=1)   token 1 → 0
  4. start_round()     token 0 → 2

Fair: each call of start_round or pass_on that the bound tries is taken on the way round, or is not possible somewhere.
Here: token = 2.
Consequence: all have done their work, and no one reads the results.
Again: gapless explore ewd840.py""",
    ),
    "a process that waits while the other one rests": (
        *("peterson", ("not s.flag[Process(1 - process)] or s.turn == process,", "s.turn == process,")),
        """peterson breaks the claim "who wants to enter does", for process = 0.

  1. want(process=0)         place[0] RESTING → WANTING
  2. raise_flag(process=0)   place[0] WANTING → YIELDING, flag[0] 0 → 1
  3. give_way(process=0)     place[0] YIELDING → WAITING, turn 0 → 1
  For ever, nothing happens any more.

No call of raise_flag, give_way, enter, finish or lower_flag is possible there, of those that the bound tries.
Here: place[0] = WAITING.
Consequence: a process waits for ever while the other one comes and goes.
Again: gapless explore peterson.py""",
    ),
}


@pytest.mark.parametrize("bug", REFUTED)
def test_a_planted_bug_is_refuted_by_a_short_lasso(bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, change, story = REFUTED[bug]
    monkeypatch.chdir(tmp_path)
    with_bug(Path(), name, change)
    found = gapless("explore", f"{name}.py", "--plain")
    assert (found.exit_code, story in found.stdout) == (1, True), found.stdout


def test_what_the_bound_cuts_off_is_undecided(tmp_path: Path) -> None:
    spec = with_bug(tmp_path, "peterson", ("within=lambda s: True", "within=lambda s: s.place[Process(0)] < 2"))
    found = explored(spec)
    assert (found.result, found.claims[0].verdict) == ("undecided", "undecided")
    assert gapless("explore", str(tmp_path / "peterson.py"), "--plain").exit_code == 3


def test_symmetry_decides_no_claim() -> None:
    found = explored(load(PROTOCOLS / "peterson.py"))
    (claim,) = judged(found.spec, found.bound, found.graph, folded=True)
    assert (claim.verdict, "explore without --symmetry" in claim.why) == ("undecided", True)


def test_disturbances_come_to_an_end_and_fairness_is_for_each_call() -> None:
    claims = {claim.sentence: claim for claim in load(PROTOCOLS / "ewd840.py").module.CLAIMS}
    assert [*claims["the work ends, and that is detected"].assumes][-1] == "send comes to an end: the work is finite"


def test_fields_that_a_claim_may_read_are_found() -> None:
    spec = load(PROTOCOLS / "ewd840.py")
    assert fields_read(spec, spec.module.detected) == ("token", "token_is_black", "active", "black")
    assert fields_read(spec, spec.module.all_are_passive) == ("nodes", "active")


# -- by rank -------------------------------------------------------------------------------------------------------


def unproved(spec: Spec, words: str = "") -> list[list[str]]:
    """The stories of what is refuted of a spec's claims, or of its obligations of these words."""
    asked = (one for one in liveness.obligations(spec) if words in ("", one.step))
    results = [counterexamples.settled(one) for one in asked]
    assert {one.verdict for one in results} <= {"proved", "refuted"}
    return [counterexamples.story(one) for one in results if one.verdict == "refuted"]


@pytest.mark.parametrize("name", ["peterson", "ewd840"])
def test_a_claim_is_proved_for_any_size(name: str) -> None:
    assert unproved(load(PROTOCOLS / f"{name}.py")) == []


WRONG_RANKS = {
    "pass_on lowers the rank": (("    return s.token + (", "    return s.nodes + s.nodes + ("), "The rank was "),
    "some step helps": (
        ("        return s.token\n    passed", "        return s.token - 2\n    passed"),
        "The rank is -",
    ),
    "some step helps, always": (
        ("    return s.token != 0", "    return s.token > 1"),
        "No helpful step is the one to take",
    ),
    "pass_on is enabled": (
        ("return s.token\n\n\nINITIAL", "return Node(s.token + 1)\n\n\nINITIAL"),
        "is the one to take, and is refused",
    ),
}


@pytest.mark.parametrize("words", WRONG_RANKS)
def test_a_wrong_rank_is_refuted_with_the_reason(words: str, tmp_path: Path) -> None:
    change, why = WRONG_RANKS[words]
    (shown,) = unproved(with_bug(tmp_path, "ewd840", change), words.partition(",")[0])
    assert (
        shown[0]
        == f'ewd840: the claim "termination is detected" is not proved: it is false that {words.partition(",")[0]}.'
    )
    assert why in shown[-1]


HOPPING = """from dataclasses import dataclass

from gapless.spec.language import Bound, Claim, Helpful, applies, replace


@dataclass(frozen=True, slots=True)
class State:
    at: int = 0
    over: bool = False


def hop(s: State) -> State:
    return replace(s, at=1 - s.at)


def finish(s: State, place: int) -> State:
    applies(place == s.at)
    return replace(s, over=True)


def place_is_one_of_two(s: State) -> bool:
    return 0 <= s.at <= 1


def is_over(s: State) -> bool:
    return s.over


def one_step(s: State) -> int:
    return 1


def always(s: State) -> bool:
    return True


def where(s: State) -> int:
    return s.at


INITIAL = State()
ACTIONS = (hop, finish)
INVARIANTS = (place_is_one_of_two,)
CLAIMS = (
    Claim(
        "it is over in the end",
        otherwise="it hops for ever",
        done=is_over,
        fair={finish: "who may finish does"},
        rank=one_step,
        helpful=(Helpful(finish, when=always, args={"place": where}),),
    ),
)
BOUND = Bound(says="all states", within=lambda s: True, numbers={"place": range(2)})
"""


def test_a_call_that_is_possible_only_now_and_then_is_fair_for_neither(tmp_path: Path) -> None:
    """Some call of the step is always possible, but no single one: weak fairness of calls does not force it."""
    (tmp_path / "hopping.py").write_text(HOPPING, encoding="utf-8")
    spec = load(tmp_path / "hopping.py")
    (found,) = explored(spec).claims
    assert found.lasso
    assert [call.action for call in found.lasso.loop_calls] == ["hop", "hop"]
    ((title, *_, why),) = unproved(spec)
    assert "it is false that hop leaves finish to be taken" in title
    assert why == "finish(place=0) was to take, and now finish(place=1); the rank is 1 still."
