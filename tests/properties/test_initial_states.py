"""Several initial states of a spec: explored, proved, refuted, and refused where their file is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gapless.properties.exploration.adaptive_bounds import explored
from gapless.properties.exploration.bounds import NoBound, arguments
from gapless.properties.exploration.search import Exploration, explore
from gapless.properties.exploration.summary import story
from gapless.properties.proof import counterexamples, induction, unrolling
from gapless.spec.catalog import Spec
from gapless.spec.language import every_map
from gapless.spec.reading.vocabulary import ForeignWords
from gapless.traces.specs import load
from tests.support.night import NIGHT

COFFEE = '''"""A can of coffee beans (Gries): two are taken, and one is put back."""

from dataclasses import dataclass

from gapless.spec.language import Bound, Map, applies, every_map, replace


@dataclass(frozen=True, slots=True)
class State:
    """The beans in the can."""

    white: int = 0
    black: int = 0


def fill(s: State, white: int, black: int) -> State:
    """The can has any beans to begin with."""
    applies(0 <= white and 0 <= black and 1 <= white + black)
    return replace(s, white=white, black=black)


def take_white(s: State) -> State:
    """Two white beans are taken, and a black one is put back."""
    applies(2 <= s.white)
    return replace(s, white=s.white - 2, black=s.black + 1)


def take_black(s: State) -> State:
    """Two black beans are taken, and one is put back."""
    applies(2 <= s.black)
    return replace(s, black=s.black - 1)


def take_both(s: State) -> State:
    """A bean of each is taken, and the white one is put back."""
    applies(1 <= s.black and 1 <= s.white)
    return replace(s, black=s.black - 1)


def beans_are_counted(s: State) -> bool:
    """Otherwise there are fewer beans than none."""
    return 0 <= s.white and 0 <= s.black


def white_beans_stay_odd_or_even(before: State, after: State) -> bool:
    """Otherwise the last bean is not known from the first."""
    return before.white % 2 == after.white % 2


INITIAL = State()
INITIALS = (fill,)
ACTIONS = (take_white, take_black, take_both)
INVARIANTS = (beans_are_counted,)
STEP_PROPERTIES = (white_beans_stay_odd_or_even,)
BOUND = Bound(
    says="at most 40 beans",
    within=lambda s: True,
    numbers={"white": range(41), "black": lambda white: range(41 - white)},
)
'''

RING = '''"""A token in a ring (EWD 840), as far as it needs any states to begin with."""

from dataclasses import dataclass

from gapless.spec.language import Bound, Map, all_between, applies, every_map, replace

NODES = 4


@dataclass(frozen=True, slots=True)
class State:
    """The nodes of the ring."""

    active: Map[int, bool] = Map(False)
    black: Map[int, bool] = Map(False)
    token: int = 0
    is_black: bool = True


def begin(s: State, active: Map[int, bool], black: Map[int, bool]) -> State:
    """Any nodes are active, and any are black."""
    return replace(s, active=active, black=black)


def start(s: State) -> State:
    """Node 0 asks whether all have terminated."""
    applies(s.token == 0 and (s.is_black or s.black[0]))
    return replace(s, token=NODES - 1, is_black=False, black=s.black.set(0, False))


def hand_on(s: State) -> State:
    """A node hands the token on when it is passive; a black one makes it black."""
    applies(0 < s.token and not s.active[s.token])
    return replace(
        s, token=s.token - 1, is_black=s.is_black or s.black[s.token], black=s.black.set(s.token, False)
    )


def send(s: State, node: int, to: int) -> State:
    """A message makes its receiver active, and its sender black if it went the wrong way."""
    applies(0 <= node < NODES and 0 <= to < NODES and node != to and s.active[node])
    return replace(s, active=s.active.set(to, True), black=s.black.set(node, s.black[node] or node < to))


def stop(s: State, node: int) -> State:
    """A node is done."""
    applies(0 <= node < NODES and s.active[node])
    return replace(s, active=s.active.set(node, False))


def token_is_in_the_ring(s: State) -> bool:
    """Otherwise it is lost."""
    return 0 <= s.token < NODES


def white_token_has_seen_passive_nodes(s: State) -> bool:
    """Otherwise termination is announced too soon."""
    return (
        s.is_black
        or all_between(s.token + 1, NODES, lambda n: not s.active[n])
        or not all_between(0, s.token + 1, lambda n: not s.black[n])
    )


INITIAL = State()
INITIALS = (begin,)
ACTIONS = (start, hand_on, send, stop)
INVARIANTS = (token_is_in_the_ring, white_token_has_seen_passive_nodes)
FLAGS = (False, True)
BOUND = Bound(
    says="four nodes",
    within=lambda s: True,
    numbers={
        "active": every_map(range(NODES), FLAGS, False),
        "black": every_map(range(NODES), FLAGS, False),
        "node": range(NODES),
        "to": lambda node: [other for other in range(NODES) if other != node],
    },
)
'''


NAMES = "coffee", "ring"


def made(text: str, folder: Path, *changes: tuple[str, str]) -> Spec:
    """The spec of a text with some changes."""
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "begun.py"
    path.write_text(text, encoding="utf-8")
    return load(path)


def both_ways(spec: Spec) -> list[Exploration]:
    """The exploration by plain functions, and by native code."""
    assert spec.bound is not None
    found = [explore(spec, spec.bound, how=how) for how in ("plain", "native")]
    assert [one.native for one in found] == [False, True]
    return found


BEGUN = {"coffee": (COFFEE, 860, 860), **({"ring": (RING, 1046, 256)} if NIGHT else {})}


@pytest.mark.parametrize(("text", "states", "starts"), BEGUN.values(), ids=BEGUN)
def test_every_initial_state_is_explored_once(text: str, states: int, starts: int, tmp_path: Path) -> None:
    """The beans: all pairs of at most 40, without none. By day, the claims of EWD 840 go both ways on such a ring."""
    plain, native = both_ways(made(text, tmp_path))
    assert (plain.states, len([one for one in plain.graph.met if one is None])) == (states, starts)
    assert (native.states, native.transitions, native.accepted) == (plain.states, plain.transitions, plain.accepted)
    assert native.refused == plain.refused
    assert list(native.graph.states) == plain.graph.states
    assert not plain.broken


@pytest.mark.parametrize("text", [COFFEE, RING], ids=NAMES)
def test_all_is_proved_of_any_initial_state(text: str, tmp_path: Path) -> None:
    spec = made(text, tmp_path)
    verdicts = {counterexamples.settled(one).verdict for one in induction.obligations(spec)}
    assert verdicts == {"proved"}


WRONG: list[tuple[str, tuple[str, str], str, str]] = [
    (COFFEE, ("applies(0 <= white and", "applies(-2 <= white and"), "fill", "beans_are_counted"),
    (
        RING,
        ("    return replace(s, active=active,", "    return replace(s, is_black=False, active=active,"),
        "begin",
        "",
    ),
    (RING, ("    is_black: bool = True", "    is_black: bool = False"), "begin", "white_token_has_seen_passive_nodes"),
]


@pytest.mark.parametrize(("text", "change", "start", "broken"), WRONG, ids=range(len(WRONG)))
def test_an_initial_state_that_breaks_a_property_is_refuted(
    text: str, change: tuple[str, str], start: str, broken: str, tmp_path: Path
) -> None:
    spec = made(text, tmp_path, change)
    results = [counterexamples.settled(one) for one in induction.obligations(spec) if one.step == start]
    (wrong,) = (one for one in results if one.verdict != "proved")
    assert wrong.verdict == "refuted"
    assert broken in wrong.obligation.invariant
    lines = counterexamples.story(wrong)
    assert any(line.startswith(f"  1. {start}(") for line in lines)
    assert not any("may not be reachable" in line for line in lines)


def test_exploration_shows_the_initial_state_from_which_a_property_breaks(tmp_path: Path) -> None:
    change = "applies(2 <= s.black)", "applies(s.black != 1)"
    spec = made(COFFEE, tmp_path, change)
    for found in both_ways(spec):
        lines = story(found)
        assert "  In the initial state with white = 1:" in lines
        assert any(line.startswith("  1. take_black()") for line in lines)


def test_a_proof_shows_a_run_from_an_initial_state(tmp_path: Path) -> None:
    spec = made(COFFEE, tmp_path, ("applies(2 <= s.black)", "applies(s.black != 1)"))
    (wrong,) = (one for one in induction.obligations(spec) if counterexamples.settled(one).verdict == "refuted")
    run = unrolling.run_to(wrong)
    assert run is not None
    ((start, args, before, after),) = run.steps
    assert (start.__name__, dict(args)) == ("fill", {"white": 1, "black": 0})
    assert (before, after) == (spec.initial, run.example.before)


REFUSED = [
    (("INITIALS = (fill,)", "INITIALS = (take_white,)"), "`take_white` in `ACTIONS` and in `INITIALS`"),
    (("INITIALS = (fill,)", "INITIALS = (beans_are_counted,)"), "`beans_are_counted` in `INITIALS`"),
    (
        ("    applies(0 <= white and 0 <= black and 1 <= white + black)", '    assume(0 <= white, because="yes")'),
        "`assume` in `fill`, which makes initial states",
    ),
    (("def take_both(s: State)", "def take_both(s: State, m: Map[int, int])"), "`m: Map[int, int]`: write `int`"),
    (("applies(1 <= s.black and", "applies(every_map(1, 2, 3) and"), "`every_map` in `take_both`"),
]


@pytest.mark.parametrize(("change", "complaint"), REFUSED, ids=range(len(REFUSED)))
def test_what_makes_no_initial_state_is_refused(change: tuple[str, str], complaint: str, tmp_path: Path) -> None:
    with pytest.raises(ForeignWords) as refused:
        made(COFFEE, tmp_path, change, ("import Bound,", "import assume, Bound,"))
    assert complaint in str(refused.value)


NO_BOUND: list[tuple[str, tuple[str, str], str]] = [
    (COFFEE, ("range(41)", "range(-9, -2)"), "no function of INITIALS applies within the bound of "),
    (COFFEE, ("lambda white:", "lambda while_:"), "depend on while_, which is no earlier argument of fill"),
    (RING, ("NODES), FLAGS, False)", "NODES), FLAGS, 7)"), "every_map(keys, values, False)"),
    (COFFEE, ("range(41 - white)", "range(41_000_000 - white)"), "combinations of arguments"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "change", "complaint"), NO_BOUND, ids=range(len(NO_BOUND)))
def test_a_bound_without_an_initial_state_is_refused(
    text: str, change: tuple[str, str], complaint: str, tmp_path: Path
) -> None:
    spec = made(text, tmp_path, change)
    assert spec.bound is not None
    with pytest.raises(NoBound) as refused:
        explore(spec, spec.bound)
    assert complaint in str(refused.value)


def test_a_bound_is_found_where_initial_states_are_made_of_numbers(tmp_path: Path) -> None:
    head, _, _ = COFFEE.partition("BOUND = ")
    assert explored(made(head, tmp_path)).result == "holds"
    head, _, _ = RING.partition("BOUND = ")
    with pytest.raises(NoBound, match="write which ones"):
        explored(made(head, tmp_path))


def test_arguments_may_depend_on_those_before(tmp_path: Path) -> None:
    spec: Any = made(COFFEE, tmp_path)
    pairs = [(white, black) for white in range(41) for black in range(41 - white)]
    assert arguments(spec.bound, spec, "fill") == pairs


def test_every_map_lists_each_once() -> None:
    found = every_map(range(3), (0, 5), 5)
    assert len({tuple(one[key] for key in range(3)) for one in found}) == len(found) == 8
    assert {one[3] for one in found} == {5}


FAR = '''"""A counter that begins far from INITIAL, and a Map that has its default in no state in which it begins."""

from dataclasses import dataclass

from gapless.spec.language import Bound, Map, applies, every_map, replace


@dataclass(frozen=True, slots=True)
class State:
    """The counter and the Map."""

    count: int = 0
    rest: int = 3
    sizes: Map[int, int] = Map(0)
    more: Map[int, int] = Map(-7)


def begin(s: State, sizes: Map[int, int]) -> State:
    """It begins with any sizes."""
    return replace(s, count=1000000, rest=1000000, sizes=sizes, more=s.more.set(0, 9))


def grow(s: State) -> State:
    """One more."""
    applies(s.count < 1000004)
    return replace(s, count=s.count + 1)


def empty(s: State) -> State:
    """All is empty again."""
    applies(s.count == LAST)
    return replace(s, sizes=s.sizes.cleared())


def count_grows(s: State) -> bool:
    """Otherwise it shrinks."""
    return 0 <= s.count


LAST = 1000003
INITIAL = State()
INITIALS = (begin,)
ACTIONS = (grow, empty)
INVARIANTS = (count_grows,)
BOUND = Bound(says="two sizes", within=lambda s: True, numbers={"sizes": every_map(range(1), (5, 6), 0)})
'''


def test_a_search_packs_states_that_are_all_far_from_the_initial_one(tmp_path: Path) -> None:
    """The second search knows which states there are, and makes room for no others."""
    spec = made(FAR, tmp_path)
    assert spec.bound
    plain, *native = (explore(spec, spec.bound, how=how) for how in ("plain", "native", "native"))
    assert [one.states for one in native] == [plain.states] * 2
    assert all(set(one.graph.states) == set(plain.graph.states) for one in native)
