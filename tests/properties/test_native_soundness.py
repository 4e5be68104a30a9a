"""Native exploration is the spec: where a number may leave 64 bits, or a shape is unknown, plain functions explore."""

from __future__ import annotations

import pytest

from gapless.properties.exploration.bounds import Bound
from gapless.properties.exploration.compiled.ranges import SAFE, unsafe
from gapless.properties.exploration.native import search as native_search
from gapless.properties.exploration.search import Exploration, explore
from gapless.properties.exploration.summary import remarks, story
from gapless.spec.catalog import Spec
from gapless.spec.reading.trees.decision_trees import End
from gapless.spec.reading.trees.terms import Argument, Constant, Every, Field, MapTerm, Variable
from tests.support.written_spec import module

pytestmark = [pytest.mark.xdist_group("native search")]

TEXT = '''
"""A toy."""
from dataclasses import dataclass
from gapless.spec.language import Map, Number, all_between, replace, require

@dataclass(frozen=True, slots=True)
class State:
    """A number and Maps."""

    n: int = 0
    m: Map[Number, int] = Map(0)
    p: Map[Number, int] = Map(0)
    other: Map[Number, int] = Map(3)
    bad: bool = False

def put(s: State, k: Number, x: int) -> State:
    """A value changes."""
    return replace(s, m=s.m.set(k, x))

def put_p(s: State, k: Number, x: int) -> State:
    """Another one does."""
    return replace(s, p=s.p.set(k, x))

{steps}

def look(s: State, k: Number) -> State:
    """It is seen."""
    require({seen}, "it-is-bad", because="it is bad", otherwise="nothing")
    return replace(s, bad=True)

def fine(s: State, k: Number) -> bool:
    """Otherwise it is seen."""
    return {fine}

INITIAL = State()
ACTIONS = (put, put_p, act, look)
INVARIANTS = (fine,)
'''
ACT = '''
def act(s: State, k: Number, x: int) -> State:
    """It happens."""
    return {made}
'''


def toy(made: str, seen: str = "s.n > 5", fine: str = "not s.bad") -> Spec:
    return module("toy", TEXT.format(steps=ACT.format(made=made), seen=seen, fine=fine))


def bound(**numbers: tuple[int, ...]) -> Bound:
    within = {"k": (0, 1), "x": (0, 1)} | numbers
    return Bound(says="small", within=lambda s: s.n <= 3, numbers=within)


def both(spec: Spec, to: Bound) -> tuple[Exploration, Exploration]:
    """The results of native and plain search, which are the same."""
    native, plain = (explore(spec, to, how=how, limit=5_000) for how in ("native", "plain"))
    assert (native.result, native.states, native.tried) == (plain.result, plain.states, plain.tried)
    assert story(native) == story(plain)
    assert dict(native.accepted) == dict(plain.accepted)
    assert list(native.graph.states) == list(plain.graph.states)
    return native, plain


COPIES = {
    "another field's": "replace(s, p=s.m)",
    "one of two": "replace(s, p=s.m if x == 1 else s.p)",
    "a swap": "replace(s, p=s.m, m=s.p)",
    "one that was changed": "replace(s, p=s.m.set(k, 1))",
    "one that was cleared": "replace(s, p=s.m.cleared())",
    "one that was forgotten": "replace(s, p=s.m.forget_from(k), n=s.m[k])",
    "what it was": "replace(s, m=s.p.set(k, s.m[k]), p=s.m.set(k, s.p[k]))",
}


@pytest.mark.parametrize("made", COPIES.values(), ids=COPIES)
def test_a_map_is_copied_into_another_field(made: str) -> None:
    native, _ = both(toy(made, seen="s.p[k] == 1 and s.m[k] == 0"), bound())
    assert native.native
    assert not remarks(native) or "native" not in remarks(native)[0]


OTHERS = {
    "of another default": "replace(s, other=s.m)",
    "of another default, changed": "replace(s, m=s.other.set(k, 0))",
    "of another default, cleared": "replace(s, m=s.other.cleared())",
    "a constant": "replace(s, m=Map(0))",
    "a constant with another default": "replace(s, m=Map(1))",
}


@pytest.mark.parametrize("made", OTHERS.values(), ids=OTHERS)
def test_other_maps_are_left_to_the_plain_functions(made: str) -> None:
    native, _ = both(toy(made, seen="s.m[k] == 3 or s.other[k] == 0"), bound())
    assert not native.native
    assert any(
        "there is no native code, for a " in line and "is stored into the field" in line for line in remarks(native)
    )


LARGE = 2**33
OVERFLOWS = {
    "a product": ("replace(s, n=x)", "(s.n + k - k) * s.n <= 1000 and s.n > 5", "not s.bad", LARGE),
    "a product with a constant": ("replace(s, n=x)", "s.n * 1000000000000 <= 1000", "not s.bad", LARGE),
    "a constant": ("replace(s, n=x)", "s.n * 0 + 18446744073709551616 == 0", "not s.bad", 1),
    "a square": ("replace(s, n=x)", "s.n * s.n == 0 and s.n != 0", "not s.bad", LARGE),
    "a long sum": ("replace(s, n=x)", f"{' + '.join(['s.n'] * 18)} < 0", "not s.bad", 2**59),
    "a long difference": ("replace(s, n=x)", f"{' - '.join(['k', *['s.n'] * 20])} > 0", "not s.bad", 2**59),
    "a value": ("replace(s, n=x * x)", "s.n == 0", "not s.bad", LARGE),
    "an invariant": ("replace(s, n=x)", "s.n == 1", "s.n * s.n <= 1000", LARGE),
    "a quantifier": ("replace(s, n=x)", "all_between(0, 2, lambda n: (n + s.n) * s.n < 0)", "not s.bad", LARGE),
    "a key": ("replace(s, n=x)", "s.m[s.n * s.n] == 1 and s.n > 5", "not s.bad", LARGE),
}


def overflowing(name: str) -> tuple[Spec, Bound]:
    made, seen, fine, large = OVERFLOWS[name]
    to = Bound(says="large", within=lambda s: s.n >= 0, numbers={"k": (0, 1), "x": (0, 1), "act.x": (0, 1, large)})
    return toy(made, seen, fine), to


@pytest.mark.parametrize("name", OVERFLOWS)
def test_numbers_that_may_leave_64_bits_are_left_to_the_plain_functions(name: str) -> None:
    native, _ = both(*overflowing(name))
    assert not native.native
    assert any("a number that it computes may leave 64 bits" in line for line in remarks(native))


@pytest.mark.parametrize("name", ["a product", "a square", "an invariant", "a key"])
def test_without_that_check_native_code_says_something_else(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_search, "unsafe", lambda *_: None)
    with pytest.raises(AssertionError):
        both(*overflowing(name))


def test_a_bound_that_overflows_is_left_to_the_plain_functions() -> None:
    to = Bound(says="large", within=lambda s: s.n * s.n < 9, numbers={"k": (0,), "x": (0, 2**40)})
    assert not both(toy("replace(s, n=x)"), to)[0].native


@pytest.mark.parametrize(
    ("field", "large"),
    [("n: int = 0", "n: int = 2**61"), ("m: Map[Number, int] = Map(0)", "m: Map[Number, int] = Map(2**70)")],
)
def test_a_large_number_in_the_beginning_is_left_to_the_plain_functions(field: str, large: str) -> None:
    text = TEXT.format(
        steps=ACT.format(made="replace(s, bad=False)"), seen="s.n == 2**61 or s.m[k] == 7", fine="not s.bad"
    )
    native, _ = both(
        module("toy", text.replace(field, large)),
        Bound(says="all", within=lambda s: s.n != 3, numbers={"k": (0, 1), "x": (0, 7)}),
    )
    assert not native.native


def test_a_packing_is_kept_for_where_a_search_begins() -> None:
    """The same steps, from another state: what was enough room for one has none for the other."""
    steps = ACT.format(made="replace(s, bad=False)")
    text = TEXT.format(steps=steps, seen="s.n == 77 and s.m[k] == 1", fine="not s.bad")
    to = Bound(says="all", within=lambda s: s.n != 3, numbers={"k": (0, 1), "x": (0, 1)})
    for begun, result in (("0", "vacuous"), ("77", "breaks")):
        native, _ = both(module("toy", text.replace("n: int = 0", f"n: int = {begun}")), to)
        assert (native.native, native.result) == (True, result)


# -- ranges --------------------------------------------------------------------------------------------------------

X, K, N = Field("x"), Argument("k"), Variable("n0")
KNOWN = {"fields": {"x": (-3, 10), "m": (0, 5)}, "arguments": {"k": (0, SAFE // 20)}, "variables": {}}


def test_a_term_is_safe_as_long_as_all_its_parts_are() -> None:
    m = MapTerm("m", 0)
    for term in (X * K, K - X * 7, m[X * K] + 1, K * 10 // 3, X % 3, -K, Every(0, K, N, End(N * 15 < X))):
        assert unsafe([term], KNOWN, 8) is None, term
    for term in (K * 21, (K * 40) // 40, m[K * K] + 1, -(K * 30), Every(0, K, N, End(N * 25 < X)), Constant(2**70)):
        assert unsafe([term], KNOWN, 8) is not None, term


def test_what_is_bound_is_known_inside_alone() -> None:
    small, large = (Every(0, high, N, End(N * 25 < X)) for high in (X, K))
    assert unsafe([small], KNOWN, 8) is None
    assert unsafe([small, large], KNOWN, 8) is not None
