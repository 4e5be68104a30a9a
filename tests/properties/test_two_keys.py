"""Maps of two keys in each reading of a spec: called, proved, searched, swept, in stories, and next to a class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from gapless.properties.exploration.search import explore
from gapless.properties.machines.contract import BrokenContract, elements, state_of
from gapless.properties.proof import counterexamples, induction, unrolling
from gapless.spec.catalog import Spec
from gapless.spec.language import Map
from gapless.spec.reading.quantification import counterexample
from gapless.spec.reading.vocabulary import ForeignWords
from gapless.traces.replay.kernels import kernel
from gapless.traces.replay.notation import changes, changes_text
from gapless.traces.replay.provenance import refused_for
from gapless.traces.specs import load
from gapless.traces.stories.playing import elements_of
from gapless.traces.stories.story import state_with

SHARDS = '''"""A store in shards: keys move between nodes, and each is owned by one."""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Bound, Map, all_between, applies, implies, replace, require

Node = NewType("Node", int)
Key = NewType("Key", int)
NODES = 3


@dataclass(frozen=True, slots=True)
class State:
    """The nodes, and the messages between them."""

    owned: Map[Node, Key, bool] = Map(False)
    table: Map[Node, Key, int] = Map(0)
    sent: Map[Node, Key, int] = Map(-1)  # to a node, the value of a key


def seed(s: State, node: Node, key: Key) -> State:
    """A key that is nowhere gets an owner."""
    applies(0 <= node < NODES)
    applies(all_between(0, NODES, lambda n: not s.owned[Node(n), key] and s.sent[Node(n), key] == -1))
    return replace(s, owned=s.owned.set(node, key, True))


def put(s: State, node: Node, key: Key, value: int) -> State:
    """A node writes a value."""
    require(s.owned[node, key], "node-owns-the-key", because="the node owns the key", otherwise="it has two values")
    applies(0 <= value)
    return replace(s, table=s.table.set(node, key, value))


def hand_over(s: State, node: Node, to: Node, key: Key) -> State:
    """A node sends a key and its value to another."""
    require(s.owned[node, key], "node-owns-the-key", because="the node owns the key", otherwise="it has two values")
    applies(0 <= to < NODES)
    return replace(
        s,
        owned=s.owned.set(node, key, False),
        sent=s.sent.set(to, key, s.table[node, key]),
        table=s.table.set(node, key, 0),
    )


def take_over(s: State, node: Node, key: Key) -> State:
    """The other receives them."""
    applies(s.sent[node, key] != -1)
    return replace(
        s,
        owned=s.owned.set(node, key, True),
        sent=s.sent.set(node, key, -1),
        table=s.table.set(node, key, s.sent[node, key]),
    )


def key_has_one_owner(s: State, a: Node, b: Node, key: Key) -> bool:
    """Otherwise it has two values."""
    return implies(s.owned[a, key] and s.owned[b, key], a == b)


def key_on_its_way_has_no_owner(s: State, a: Node, b: Node, key: Key) -> bool:
    """Otherwise it will have two."""
    return implies(s.sent[a, key] != -1, not s.owned[b, key])


def key_is_on_one_way(s: State, a: Node, b: Node, key: Key) -> bool:
    """Otherwise it will have two owners."""
    return implies(s.sent[a, key] != -1 and s.sent[b, key] != -1, a == b)


def keys_are_at_nodes(s: State, a: Node, key: Key) -> bool:
    """Otherwise a key is nowhere."""
    return implies(s.sent[a, key] != -1 or s.owned[a, key], 0 <= a < NODES)


INITIAL = State()
ACTIONS = (seed, put, hand_over, take_over)
INVARIANTS = (key_has_one_owner, key_on_its_way_has_no_owner, key_is_on_one_way, keys_are_at_nodes)
BOUND = Bound(
    says="three nodes, two keys, two values",
    within=lambda s: True,
    numbers={
        "node": range(3), "to": range(3), "a": range(3), "b": range(3), "key": range(2), "value": range(2),
    },
)
'''
LEAK = ("        owned=s.owned.set(node, key, False),\n        sent", "        sent")


def made(folder: Path, *changes: tuple[str, str]) -> Spec:
    """The spec with some changes."""
    text = SHARDS
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "shards.py"
    path.write_text(text, encoding="utf-8")
    return load(path)


def test_native_code_finds_the_states_that_the_plain_functions_find(tmp_path: Path) -> None:
    """A key is nowhere, or at or on the way to one of three nodes, with one of two values."""
    spec = made(tmp_path)
    assert spec.bound
    plain, native = (explore(spec, spec.bound, how=how) for how in ("plain", "native"))
    assert (plain.native, native.native) == (False, True)
    assert plain.states == native.states == (1 + 2 * 3 * 2) ** 2
    assert list(native.graph.states) == plain.graph.states
    assert (native.accepted, native.refused) == (plain.accepted, plain.refused)


def test_all_is_proved_for_any_number_of_keys(tmp_path: Path) -> None:
    spec = made(tmp_path)
    assert {counterexamples.settled(one).verdict for one in induction.obligations(spec)} == {"proved"}


def test_a_planted_fault_is_refuted_with_a_run_from_the_beginning(tmp_path: Path) -> None:
    spec = made(tmp_path, LEAK)
    asked = [one for one in induction.obligations(spec) if one.step == "hand_over" and one.holds]
    found = {one.obligation.invariant: one for one in map(counterexamples.settled, asked)}
    assert {one.verdict for one in found.values()} == {"proved", "refuted"}
    result = found["key_on_its_way_has_no_owner"]
    lines = counterexamples.story(result, unrolling.run_to(result.obligation))
    assert "  1. seed(node=0, key=0)              owned[0, 0] 0 → 1" in lines
    assert "  2. hand_over(node=0, to=0, key=0)   sent[0, 0] -1 → 0" in lines
    assert spec.bound
    broken = explore(spec, spec.bound).broken
    assert broken
    assert len(broken.path) == 2


def test_a_step_speaks_of_both_keys(tmp_path: Path) -> None:
    spec = made(tmp_path)
    before = spec.actions["seed"](spec.initial, 0, 1)
    after = spec.actions["hand_over"](spec.actions["put"](before, 0, 1, 5), 0, 2, 1)
    assert changes_text(changes(before, after)) == "owned[0, 1] 1 → 0, sent[2, 1] -1 → 5"
    reads = refused_for(spec.actions["put"], after, {"node": 2, "key": 1, "value": 3})
    assert "owned[2, 1]" in {read.label for read in reads}
    found = elements_of(after, spec.initial)
    assert found == {"sent[2, 1]": 5}
    assert state_with(spec.initial, found) == after
    assert not kernel(spec).obstacle


def test_a_class_tells_its_elements_by_pairs(tmp_path: Path) -> None:
    spec = made(tmp_path)

    class Cluster:
        """A cluster that tells its state."""

        unknown: Mapping[str, str] = {"table": "it is elsewhere"}

        def __init__(self, owned: dict[tuple[Any, ...], bool]) -> None:
            self.owned = owned

        def as_spec(self) -> dict[str, Any]:
            return {"owned": {**self.owned, (2, 7): False}, "sent": {(2, 1): 4}}

    after = spec.actions["seed"](spec.initial, 0, 1)
    assert elements(after, {"owned", "sent"}) == {"owned[0, 1]": 1}
    assert state_of(Cluster({(0, 1): True}), spec, after) == {"owned[0, 1]": 1, "sent[2, 1]": 4}
    with pytest.raises(BrokenContract, match="a key of owned is 'b'"):
        state_of(Cluster({(0, "b"): True}), spec, after)


FAR = range(-4, 9)


@dataclass(frozen=True, slots=True)
class OneField:
    """A state of one Map."""

    pairs: Map[int, int, int]


@pytest.mark.parametrize("number", range(20))
def test_a_property_is_swept_over_both_keys(number: int) -> None:
    """The sweep leaves out pairs with the same answers; asked of all around the keys, it is the same."""
    random = Random(number)
    pairs: Map[int, int, int] = Map(random.randrange(2))
    for _ in range(random.randrange(4)):
        pairs = pairs.set(random.randrange(5), random.randrange(5), random.randrange(3))

    state = OneField(pairs)
    low = random.randrange(3)

    def holds(s: Any, a: int, b: int) -> bool:
        return bool(s.pairs[a, b + 1] <= low or s.pairs[b, a] == low or a < b)

    expected = any(not holds(state, a, b) for a in FAR for b in FAR)
    found = counterexample(holds, state)
    assert (found is not None) == expected
    assert found is None or not holds(state, **found)


PUT = "s.table.set(node, key, value)"
REFUSED = [
    ((PUT, "s.table.set(node, value)"), "each argument of `set`: first, second, value"),
    ((PUT, "s.table.forget_from(node)"), "`.forget_from(…)`"),
    (("s.sent[node, key] != -1)", "s.sent[node] != -1)"), "by two keys of a number: write its two keys"),
    (("table: Map[Node, Key, int]", "table: Map[Node, Map[Key, int]]"), "one `Map` of two keys: `Map[int, int, int]`"),
    (("table: Map[Node, Key, int]", "table: Map[Node, Key, Key, int]"), "`Map[int, int]` or `Map[int, bool]`"),
    (("applies(s.sent[node, key] != -1)", "applies((node, key) == (1, 2))"), "a tuple"),
]


@pytest.mark.parametrize(("change", "complaint"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_look_up_is_refused(change: tuple[str, str], complaint: str, tmp_path: Path) -> None:
    with pytest.raises(ForeignWords) as refused:
        made(tmp_path, change)
    assert complaint in str(refused.value)


def test_a_field_without_a_value_is_given_one_of_its_type(tmp_path: Path) -> None:
    """The first field begins with none."""
    with pytest.raises(ForeignWords) as refused:
        made(tmp_path, ("owned: Map[Node, Key, bool] = Map(False)", "owned: Map[Node, Key, bool]"))
    assert "State(owned=Map(False))" in str(refused.value)
