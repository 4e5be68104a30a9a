"""The search by native code finds what the search by plain functions finds: the same states, in the same order."""

import dataclasses
import os
import subprocess
import sys
from collections.abc import Sequence

import pytest

from gapless.native.objects import object_code
from gapless.properties.exploration import search, summary
from gapless.properties.exploration.bounds import Bound, bound_of, count_entries, has_wide, most, untouched
from gapless.properties.exploration.compiled.conditions import JUDGED, Conditions
from gapless.properties.exploration.compiled.syntax import answer, function
from gapless.properties.exploration.native import search as native_search
from gapless.properties.exploration.search import Exploration, explore
from gapless.properties.faults import spec_mutants
from gapless.properties.faults.operators import faults, planted
from gapless.spec.catalog import SPECS, Spec
from tests.support.command_line import gapless
from tests.support.night import NIGHT
from tests.support.written_spec import module

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("native search")]  # each spec is compiled once

REACHED = {
    "log": (167_671, 1_320_576_796),
    "queue": (470_189, 329_132_300),
    "dispatch": (2_396_311, 191_704_880),
    "ring": (137_121, 9_324_228),
    "transaction": (611_840, 393_413_120),
    "checkpoint": (361_743, 43_770_903),
    "op_batch": (542_388, 180_072_816),
    "half_cache": (700_413, 70_741_713),
    "hash_index": (16_902, 73_219_464),
    "lookup": (256_100, 25_353_900),
    "permits": (1_576_823, 59_919_274),
}
"""Of each bound that is wide: its states, and the steps that are tried there."""


def assert_alike(native: Exploration, plain: Exploration) -> None:
    """All that is found is the same."""
    assert (native.native, plain.native) == (True, False)
    one, other = native.graph, plain.graph
    assert list(one.states) == list(other.states)
    assert list(one.met) == list(other.met)
    assert list(one.calls) == list(other.calls)
    assert (one.targets, one.starts, one.beyond) == (other.targets, other.starts, other.beyond)
    assert dict(native.accepted) == dict(plain.accepted)
    assert {rule: count for rule, count in native.refused.items() if count} == dict(plain.refused)
    assert summary.story(native) == summary.story(plain)
    assert (native.result, native.complete) == (plain.result, plain.complete)
    assert (one.deadlocks, one.terminal) == (other.deadlocks, other.terminal)


def both(spec: Spec, bound: Bound, *, profile: str | None = None, limit: int = 1_000_000) -> Exploration:
    """Run both searches: the first native one keeps all states, the next only those within the bound."""
    plain = explore(spec, bound, profile=profile, limit=limit, how="plain")
    first, again = (explore(spec, bound, profile=profile, limit=limit, how="native") for _ in range(2))
    assert_alike(first, plain)
    assert_alike(again, plain)
    return again


@pytest.mark.parametrize("name", SPECS if NIGHT else ["lookup", "cursor"])
def test_both_searches_find_the_same(name: str) -> None:
    both(SPECS[name], bound_of(SPECS[name]))
    for profile in {profile for d in SPECS[name].deviations for profile in d.profiles}:
        both(SPECS[name], bound_of(SPECS[name], profile), profile=profile)


@pytest.mark.skipif(not NIGHT, reason="two minutes; of one fault it is looked at below")
@pytest.mark.parametrize(("name", "number"), spec_mutants.sample(60) if NIGHT else [])
def test_both_searches_tell_of_planted_faults_alike(name: str, number: int) -> None:
    """A guard is missing, a comparison wrong, a field forgotten: the same is broken, after the same steps."""
    spec = SPECS[name]
    both(planted(spec, faults(spec)[number]), bound_of(spec), limit=20_000)


def test_both_searches_break_the_same_by_the_same_steps() -> None:
    spec = SPECS["cursor"]
    fault = next(one for one in faults(spec) if one.name == "save: without cursor-of-the-group-stays-within-its-queue")
    assert both(planted(spec, fault), bound_of(spec)).result == "breaks"


@pytest.mark.parametrize("name", REACHED if NIGHT else ["hash_index"])
def test_native_code_reaches_as_far_as_is_stated(name: str) -> None:
    found = explore(SPECS[name], bound_of(SPECS[name], wide=True), how="native")
    assert (found.native, found.result) == (True, "holds")
    assert (found.states, found.tried) == REACHED[name]


def test_every_wide_bound_is_pinned() -> None:
    assert {name for name, spec in SPECS.items() if has_wide(spec)} == set(REACHED)


# -- a spec that has everything ------------------------------------------------------------------------------------

FLIGHT = '''
"""Seats are sold, and sold twice."""
from dataclasses import dataclass

from gapless.spec.language import Deviation, Map, Number, all_between, implies, replace, require


@dataclass(frozen=True, slots=True)
class State:
    """Who sits where."""

    sold: int = 0
    last: int = 0
    seats: Map[Number, int] = Map(-1)
    paid: Map[Number, int] = Map(0)


def sell(s: State, seat: Number, price: int) -> State:
    """A seat is sold."""
    require(s.seats[seat] < 0, "seat-is-free", because="the seat is free", otherwise="two sit on it")
    require(price > 0, "seat-costs-something", because="the seat costs something", otherwise="the seat earns nothing")
    return replace(s, sold=s.sold + 1, last=seat, seats=s.seats.set(seat, s.sold), paid=s.paid.set(seat, price))


def cancel(s: State, seat: Number) -> State:
    """It is free again."""
    require(0 <= s.seats[seat], "seat-is-sold", because="the seat is sold", otherwise="nothing to cancel")
    return replace(s, sold=s.sold - 1, seats=s.seats.set(seat, -1), paid=s.paid.set(seat, 0))


def clear(s: State, low: Number) -> State:
    """All from `low` on are free again, if all of them are sold."""
    taken = all_between(low, 3, lambda n: 0 <= s.seats[n])
    require(taken, "all-are-sold", because="all are sold", otherwise="a guest stays")
    require(low == 0, "all-leave", because="all leave", otherwise="a guest stays")
    return replace(s, sold=0, seats=s.seats.forget_from(low), paid=s.paid.cleared())


def sell_twice(s: State, seat: Number, price: int) -> State:
    """A seat is sold again."""
    require(0 <= s.seats[seat], "seat-is-sold", because="the seat is sold", otherwise="nothing to sell again")
    require(price > 0, "seat-costs-something", because="the seat costs something", otherwise="the seat earns nothing")
    return replace(s, last=seat, paid=s.paid.set(seat, price))


def no_row_pays_too_much(s: State, seat: Number) -> bool:
    """Otherwise they complain."""
    return s.paid[seat] < 99_999


def who_sits_paid(s: State, seat: Number) -> bool:
    """Otherwise the seat earns nothing."""
    return implies(0 <= s.seats[seat], 0 < s.paid[seat])


def it_fills_one_by_one(before: State, after: State) -> bool:
    """Otherwise it is not counted."""
    return after.sold <= before.sold + 1 and implies(before.sold == 1, after.last != 13)


INITIAL = State()
ACTIONS = (sell, cancel, clear)
DEVIATIONS = (Deviation(sell_twice, instead_of=sell, profiles=("cheap",), seen="an airline"),)
INVARIANTS = (no_row_pays_too_much, who_sits_paid)
STEP_PROPERTIES = (it_fills_one_by_one,)
'''
SEATS = Bound(
    says="three seats",
    within=lambda s: s.sold <= 3 and most(s.paid) <= 900 and (count_entries(s.seats) <= 3 or untouched(s)),
    numbers={"seat": range(4), "low": (0, 1), "price": (-1, 0, 70_000, 9)},
)


@pytest.fixture(scope="module")
def flight() -> Spec:
    return module("flight", FLIGHT)


def seats(**numbers: Sequence[int]) -> Bound:
    return dataclasses.replace(SEATS, numbers={**SEATS.numbers, **numbers})


def test_maps_deviations_quantifiers_and_values_that_need_more_room(flight: Spec) -> None:
    found = both(flight, SEATS)
    assert found.result == "holds"
    assert found.graph.beyond
    cheap = both(flight, SEATS, profile="cheap")
    assert (cheap.result, cheap.accepted["sell_twice"] > 0) == ("holds", True)


def test_one_key_and_a_run_of_prices(flight: Spec) -> None:
    """A step's calls that form one run are evaluated at once, also for the numbers that stay the same."""
    for profile in (None, "cheap"):
        assert both(flight, seats(seat=(2,), price=range(-1, 4)), profile=profile).states == 5


@pytest.mark.skipif(not NIGHT, reason="five seconds of compiling, for more states than a key has room for")
def test_keys_that_need_more_room(flight: Spec) -> None:
    assert both(flight, seats(seat=(0, 1, 100, -7))).states > 10


def test_more_states_than_are_wanted(flight: Spec) -> None:
    assert both(flight, SEATS, limit=5).result == "unfinished"


def test_keys_that_lie_too_far_are_left_to_the_plain_search(flight: Spec) -> None:
    found = explore(flight, seats(seat=(0, 1, 2, 5_000)), how="native")
    assert (found.native, found.result) == (False, "holds")


def test_what_is_broken_is_reported_alike(flight: Spec) -> None:
    invariant = both(flight, seats(price=(9, 100_000)))
    assert summary.story(invariant)[0] == "flight breaks no_row_pays_too_much after 1 step."
    step = both(flight, seats(seat=(0, 1, 13)))
    assert summary.story(step)[0] == "flight breaks it_fills_one_by_one after 2 steps."


def test_an_invariant_is_asked_where_a_step_wrote(flight: Spec) -> None:
    """A step that writes one number has its invariants evaluated for that number alone."""
    third = dataclasses.replace(seats(price=(9, 100_000)), worth={"sell": lambda a: a.price == 9 or a.seat == 2})
    assert summary.story(both(flight, third))[2].startswith("  1. sell(seat=2, price=100000)")


WHEEL = '''
"""A wheel of some spokes."""
from dataclasses import dataclass

from gapless.spec.language import all_between, replace, require


@dataclass(frozen=True, slots=True)
class State:
    """Which spoke is up."""

    spokes: int = 0
    up: int = 0


def build(s: State, spokes: int) -> State:
    """It gets its spokes."""
    require(s.spokes == 0, "wheel-is-new", because="the wheel is new", otherwise="it breaks")
    return replace(s, spokes=spokes)


def turn(s: State, by: int) -> State:
    """It turns."""
    require(0 < s.spokes, "wheel-has-spokes", because="the wheel has spokes", otherwise="it breaks")
    rounds = (s.up + by) // s.spokes
    require(rounds <= 1, "wheel-turns-once", because="the wheel turns once", otherwise="it breaks")
    return replace(s, up=(s.up + by) % s.spokes)


def each_stands_apart(s: State, spoke: int) -> bool:
    """Otherwise it rattles."""
    return s.spokes == 0 or 360 // s.spokes * spoke >= 0


INITIAL = State()
ACTIONS = (build, turn)
INVARIANTS = (each_stands_apart,)
STEP_PROPERTIES = ()
'''
TURNS = Bound(
    says="three spokes",
    within=lambda s: s.up <= 9,
    numbers={"spokes": (0, 1, 3), "by": (-1, 0, 1, 2, 5), "spoke": (0, 1)},
)
NEED = '    require(0 < s.spokes, "wheel-has-spokes", because="the wheel has spokes", otherwise="it breaks")\n'


def test_what_divides_by_a_field_is_searched_natively() -> None:
    found = both(module("wheel", WHEEL), TURNS)
    assert (found.result, found.states) == ("holds", 5)


@pytest.mark.parametrize(
    "text",
    [
        WHEEL.replace(NEED, ""),
        WHEEL.replace(NEED, "").replace("rounds <= 1", "0 <= 1"),  # a division that is not read counts, too
        WHEEL.replace("s.spokes == 0 or 360 // s.spokes * spoke >= 0", "360 // (s.up - 2) < 999"),
        WHEEL.replace("360 // s.spokes * spoke >= 0", "all_between(0, 2, lambda n: n // s.up < 9)"),
    ],
    ids=["step", "unused", "invariant", "quantifier"],
)
def test_both_searches_raise_where_something_divides_by_0(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_search, "SAMPLED", 0)  # walks by plain functions would raise, too
    spec = module("wheel", text)
    for how in ("native", "plain"):
        with pytest.raises(ZeroDivisionError):
            explore(spec, TURNS, how=how)


# -- when it is taken ----------------------------------------------------------------------------------------------


def test_a_bound_that_can_only_be_called_is_left_to_the_plain_search(flight: Spec) -> None:
    bound = dataclasses.replace(SEATS, within=lambda s: len(s.seats.entries) < 3)
    assert not explore(flight, bound, how="native").native


def test_native_code_that_is_wrong_is_no_violation(flight: Spec, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plain functions judge what it finds."""
    monkeypatch.setattr(Conditions, "is_right", lambda _: function("is_right", ("check", *JUDGED), [answer(0)]))
    found = explore(flight, SEATS, how="native")
    assert (found.native, found.result) == (False, "holds")
    assert "native code calls broken what the plain functions do not" in found.not_native


def test_what_plain_functions_began_is_not_counted_twice(flight: Spec, monkeypatch: pytest.MonkeyPatch) -> None:
    explore(flight, SEATS, how="native")  # compiles
    monkeypatch.setattr(search, "SHORT", 20)
    assert_alike(explore(flight, SEATS), explore(flight, SEATS, how="plain"))


def test_what_was_compiled_is_not_compiled_again(flight: Spec, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):  # with room for more, and as the first search has packed its states
        explore(flight, SEATS, how="native")
    monkeypatch.setattr(object_code, "assembled", None)
    assert explore(flight, SEATS, how="native").native
    with pytest.raises(TypeError):
        explore(flight, seats(seat=(0, 1)), how="native")


def test_a_short_search_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_code, "assembled", None)
    assert not explore(SPECS["ring"], bound_of(SPECS["ring"])).native


def test_the_command_knows_both() -> None:
    plain, native = (gapless("explore", "hash_index", *how, "--json", "-") for how in (["--plain"], ["--wide"]))
    assert '"native": false' in plain.output
    assert '"native": true' in native.output
    assert '"states": 16902' in native.output
    refused = gapless("explore", "broker", "--wide")
    assert refused.exit_code == 2
    assert "broker has no bound that is wide: leave --wide out" in refused.output


WRITTEN = """
import sys
from contextlib import suppress
from gapless.native.language import digest_of, text_of
from gapless.properties.exploration.native import search as native_search
from gapless.properties.exploration import bounds, search
from gapless.spec.catalog import SPECS

def run(self, *_):
    print(self.spec.name, digest_of(text_of(self.functions(self._least)["search"])))
    raise native_search.NotCompilable("that was all")

native_search.NativeSearch.run = run
for name in sys.argv[1:]:
    spec = SPECS[name]
    with suppress(native_search.NotCompilable):
        search.explore(spec, bounds.bound_of(spec), how="native", limit=10)
"""


def test_what_is_compiled_is_the_same_in_every_process() -> None:
    """Sets have another order in each process: the cache of one was compiled again in the next."""
    specs = SPECS if NIGHT else ("permits",)  # it has Maps, a quantifier and several steps
    one, other = (
        subprocess.run(
            [sys.executable, "-c", WRITTEN, *specs], env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in "13"
    )  # fmt: skip
    assert one == other
    assert len(one.splitlines()) == len(specs)
