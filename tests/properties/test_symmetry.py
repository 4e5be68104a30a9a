"""States are folded by interchangeable numbers, and unfolded they are as many as without."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from benchmarks.protocols import replaced, suite
from gapless.properties.exploration.search import Exploration, explore
from gapless.properties.exploration.symmetry import NotSymmetric, SymmetryGroup, folding
from gapless.spec.catalog import Spec
from gapless.spec.language import replace
from gapless.traces.specs import load
from tests.support.command_line import gapless

SUITE = suite()
FOLDABLE = {
    "two_phase_commit": 80,
    "transaction_commit": 13,
    "lock": 7,
    "barrier": 7,
    "detection_at_once": 9,
    "vouchers": 20,
    "allocator": 86,
}

ELECTION = '''"""Members vote for one of them."""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Bound, Map, applies, implies, replace, require

Member = NewType("Member", int)


@dataclass(frozen=True, slots=True)
class State:
    """The votes, and the leader."""

    vote: Map[int, Member] = Map(Member(-1))
    tired: Map[Member, bool] = Map(False)
    leader: Member = Member(-1)


def lead(s: State, member: Member) -> State:
    """A member leads."""
    require(s.leader == NONE, "none-leads", because="none leads", otherwise="two lead")
    return replace(s, leader=member)


def cast(s: State, place: int, member: Member) -> State:
    """A vote is cast."""
    applies(s.leader != NONE and not s.tired[member])
    return replace(s, vote=s.vote.set(place, member), tired=s.tired.set(member, True))


def the_tired_have_voted(s: State, member: Member) -> bool:
    """Otherwise a vote is lost."""
    return implies(s.tired[member], s.leader != NONE)


NONE = Member(-1)
INITIAL = State()
ACTIONS = (lead, cast)
INVARIANTS = (the_tired_have_voted,)
BOUND = Bound(says="all states", within=lambda s: True, numbers={"member": range(3), "place": range(2)})
'''


FRIENDS = '''"""Members know one another, and each follows one; a leader is known to most."""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Bound, Map, applies, count_between, every_map, implies, replace, require, some_between

Member = NewType("Member", int)
MEMBERS = 3


@dataclass(frozen=True, slots=True)
class State:
    """Relations: of each node those that it knows, and the one that it follows."""

    knows: Map[Member, Member, bool] = Map(False)
    follows: Map[Member, Member] = Map(Member(-1))
    wrote: Map[int, Member, bool] = Map(False)
    heard: Map[Member, int, int] = Map(0)
    awake: Map[Member, bool] = Map(False)
    leader: Member = Member(-1)


def begin(s: State, awake: Map[Member, bool], leader: Member) -> State:
    """Some are awake, and one leads."""
    return replace(s, awake=awake, leader=leader)


def meet(s: State, member: Member, other: Member) -> State:
    """One learns of another."""
    applies(s.awake[member])
    require(member != other, "one-knows-another", because="it is another", otherwise="it knows itself")
    return replace(s, knows=s.knows.set(member, other, True))


def follow(s: State, member: Member, other: Member) -> State:
    """One follows another whom it knows."""
    applies(s.knows[member, other])
    return replace(s, follows=s.follows.set(member, other), heard=s.heard.set(member, 0, s.heard[other, 0] % 2 + 1))


def write(s: State, member: Member) -> State:
    """The leader writes, if most know it."""
    applies(member == s.leader and 1 < count_between(0, MEMBERS, lambda n: s.knows[Member(n), member]))
    return replace(s, wrote=s.wrote.set(0, member, True))


def writer_is_known(s: State, member: Member) -> bool:
    """Otherwise it writes for itself."""
    return implies(s.wrote[0, member], some_between(0, MEMBERS, lambda n: s.knows[Member(n), member]))


INITIAL = State()
INITIALS = (begin,)
ACTIONS = (meet, follow, write)
INVARIANTS = (writer_is_known,)
BOUND = Bound(
    says="few members",
    within=lambda s: True,
    numbers={
        "member": range(3), "other": range(3), "leader": range(3), "awake": every_map(range(3), (False, True), False),
    },
)
'''


@pytest.mark.parametrize("name", FOLDABLE)
def test_as_many_states_are_found_unfolded(name: str, tmp_path: Path) -> None:
    spec = SUITE[name].spec(tmp_path)
    found, every = explored(spec), explored(spec, symmetry=False)
    assert (found.states, found.unfolded, found.result) == (FOLDABLE[name], every.states, every.result)
    assert every.unfolded == every.states


def test_relations_and_initial_states_are_folded(election: Callable[..., Spec]) -> None:
    """Maps whose keys are both of the type, or a key and the value; either key alone; and many states to begin with."""
    spec = election(FRIENDS.replace("heard[other, 0] % 2 + 1", "heard[other, 0] // 2 + 1"))
    found = explored(spec)
    assert found.folding is not None
    assert dict(found.folding.related) == {"knows": (True, True, False), "follows": (True, True)}
    assert dict(found.folding.paired) == {"wrote": 1, "heard": 0}
    every = explored(spec, symmetry=False)
    assert (found.unfolded, found.result) == (every.states, every.result)
    assert found.states < every.states / 4


def test_first_states_that_tell_them_apart_are_refused(election: Callable[..., Spec]) -> None:
    spec = election(FRIENDS.replace('"leader": range(3)', '"leader": range(2)'))
    with pytest.raises(NotSymmetric, match="INITIALS tell them apart"):
        explored(spec)


def test_states_have_one_key_if_a_permutation_leads_from_one_to_the_other(election: Callable[..., Spec]) -> None:
    """By all permutations, of states at random."""
    spec, random = election(FRIENDS), Random(0)
    group = folding(spec, spec.bound)  # type: ignore[arg-type]
    for _ in range(150):
        one, other = (some_state(spec, random) for _ in range(2))
        orbits = [orbit(group, state) for state in (one, other)]
        assert (group.key(one) == group.key(other)) == (orbits[0] == orbits[1])
        assert [group.size(state) for state in (one, other)] == [len(some) for some in orbits]
        assert all(group.key(state) == group.key(one) for state in orbits[0])


YES = True


def some_state(spec: Spec, random: Random) -> Any:
    """A state with a few entries, many of which are alike."""
    few = (0, 1, 2, -1)
    state = spec.initial
    for _ in range(random.randrange(5)):
        a, b, c = (random.choice(few) for _ in range(3))
        changes: dict[str, Any] = random.choice([
            {"knows": state.knows.set(a, b, YES)}, {"follows": state.follows.set(a, b)},
            {"wrote": state.wrote.set(a, b, YES)}, {"heard": state.heard.set(a, b, c)},
            {"awake": state.awake.set(a, YES)}, {"leader": a},
        ])  # fmt: skip
        state = replace(state, **changes)
    return state


def orbit(group: SymmetryGroup, state: Any) -> set[Any]:
    """All states to which permutations lead."""
    found, pending = {state}, [state]
    while pending:
        one = pending.pop()
        for a, b in pairwise(group.members):
            other = group.exchanged(one, a, b)
            if other not in found:
                found.add(other)
                pending.append(other)
    return found


def test_numbers_in_fields_and_as_values_are_folded(election: Callable[..., Spec]) -> None:
    text = ELECTION.replace("s.leader == NONE", "not s.open").replace("s.leader != NONE", "s.open")
    text = text.replace("leader: Member = Member(-1)", "leader: Member = Member(-1)\n    open: bool = False")
    text = text.replace("NONE = Member(-1)\n", "").replace("leader=member)", "leader=member, open=True)")
    spec = election(text)
    found = explored(spec)
    assert found.folding is not None
    assert (found.folding.scalars, found.folding.keyed, found.folding.valued) == (("leader",), ("tired",), ("vote",))
    assert found.states < found.unfolded == explored(spec, symmetry=False).states


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("s.leader == NONE", "s.leader < 0"), "`s.leader < 0`"),
        (("s.leader == NONE", "s.leader == 1"), "`s.leader == 1`"),
        (("not s.tired[member])", "not s.tired[Member(1)])"), "`Member(1)`"),
        (("set(place, member)", "set(place, Member(place))"), "`Member(place)`"),
        (("tired.set(member, True)", "tired.set(member, member > 0)"), "`member > 0`"),
        (("leader: Member = Member(-1)", "leader: Member = Member(0)"), "leader tells them apart in the beginning"),
        (("range(3)", "(0, 1)"), ""),
        (("tired=s.tired.set(member, True)", "tired=s.tired.forget_from(1)"), "`s.tired.forget_from(1)`"),
        (('"place": range(2)}', '"place": range(2)}, worth={"lead": lambda a: a.member > 0}'), "worth trying"),
        (("s.vote.set(place, member)", "s.vote.set(member, member)"), "`member`"),
    ],
)
def test_what_tells_numbers_apart_is_named(change: tuple[str, str], reason: str, election: Callable[..., Spec]) -> None:
    text = ELECTION.replace("s.leader == NONE", "not s.open").replace("s.leader != NONE", "s.open")
    text = text.replace("leader: Member = Member(-1)", "leader: Member = Member(-1)\n    open: bool = False")
    text = text.replace("NONE = Member(-1)\n", "")
    old, new = change[0].replace("s.leader == NONE", "not s.open"), change[1]
    spec = election(replaced(text, old, new))
    if not reason:
        assert folding(spec, spec.bound).members == (0, 1)  # type: ignore[arg-type]
        return
    with pytest.raises(NotSymmetric, match="Member: ") as refused:
        explored(spec)
    assert reason in str(refused.value)


def test_a_path_in_a_report_is_a_run(tmp_path: Path) -> None:
    spec = SUITE["lock"].spec(tmp_path, wrong=True)
    found = explored(spec)
    assert found.broken is not None
    state = spec.initial
    for call, number in zip(found.broken.path, found.broken.way[1:], strict=True):
        state = spec.actions[call.action](state, *call.args)
        assert state == found.graph.states[number]
    assert not found.broken.holds(state, *found.broken.witness.values())


def test_the_command_says_what_was_folded_or_why_not(tmp_path: Path) -> None:
    SUITE["lock"].spec(tmp_path)
    ran = gapless("explore", str(tmp_path / "lock.py"), "--symmetry")
    assert ran.exit_code == 0, ran.output
    assert "in the numbers of Process are explored once: 7 stand for 12." in " ".join(ran.stdout.split())
    ran = gapless("explore", "queue", "--symmetry")
    assert ran.exit_code == 2
    assert "--symmetry: queue: " in ran.output


def explored(spec: Spec, *, symmetry: bool = True) -> Exploration:
    assert spec.bound is not None
    return explore(spec, spec.bound, symmetry=symmetry)


@pytest.fixture
def election(tmp_path: Path) -> Callable[[str], Spec]:
    def made(text: str) -> Spec:
        (tmp_path / "election.py").write_text(text, encoding="utf-8")
        return load(tmp_path / "election.py")

    return made
