"""Exploration: no state is lost, what is broken is found by the shortest way, and what it prints and draws is right."""

import ast
import dataclasses
import json
import re
import xml.etree.ElementTree as ET
from collections import Counter, deque
from collections.abc import Callable
from html.parser import HTMLParser
from inspect import getsource
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.properties.exploration import json_report, state_diagram, summary
from gapless.properties.exploration.bounds import Bound, NoBound, arguments, bound_of
from gapless.properties.exploration.graph import Call
from gapless.properties.exploration.search import Exploration, explore
from gapless.spec import language
from gapless.spec.catalog import SPECS, Spec
from gapless.spec.language import APPLIES, ASSUMED, Map, Refused
from gapless.traces.replay.kernels import kernel
from tests.support.command_line import gapless
from tests.support.needs import NEVER_UNMET
from tests.support.night import NIGHT
from tests.support.written_spec import module

pytestmark = pytest.mark.xdist_group("exploration")  # one worker, so that every spec is explored once

# Of each spec: its states and transitions within the bound, the states beyond it, and the steps that were tried.
PINNED = {
    "log": (133, 2_073, 54, 47_880),
    "queue": (937, 24_579, 2_370, 337_320),
    "dispatch": (4_471, 26_928, 3_142, 223_550),
    "ring": (742, 2_115, 230, 24_486),
    "transaction": (2_064, 11_168, 6_464, 297_216),
    "checkpoint": (10_209, 94_867, 19_631, 867_765),
    "check_service": (2_964, 20_283, 5_964, 177_840),
    "op_batch": (1_452, 9_518, 1_426, 107_448),
    "half_cache": (6_716, 39_611, 16_071, 564_144),
    "cursor": (6, 42, 3, 102),
    "deadline": (900, 2_754, 1_172, 34_200),
    "extension": (6, 18, 4, 588),
    "half_table": (25, 147, 8, 2_250),
    "index_table": (26, 109, 7, 754),
    "hash_index": (84, 619, 54, 24_780),
    "lookup": (1_590, 10_959, 3_158, 85_860),
    "delivery": (28, 76, 23, 140),
    "visibility": (63, 156, 87, 252),
    "coordinator": (10_321, 47_834, 1_782, 526_371),
    "permits": (5_647, 36_693, 12_098, 152_469),
    "dledger_index": (22, 58, 9, 5_962),
    "compaction": (137, 2_181, 76, 25_619),
    "startup": (3, 119, 1, 390),
    "partition": (618, 12_051, 2_155, 180_456),
    "group_offsets": (106, 693, 302, 6_996),
    "kafka_transaction": (1_063, 3_896, 1_169, 121_182),
    "aborted_index": (101, 242, 150, 17_574),
    "partition_client": (49, 343, 10, 3_430),
    "producer": (179, 1_763, 694, 38_485),
    "tiered": (160, 1_226, 272, 50_560),
    "stage": (116, 256, 97, 1_740),
    "timer": (58, 988, 82, 78_822),
    "timer_table": (28, 212, 28, 532),
    "broker": (3_579, 13_417, 4_793, 744_432),
}
PINNED_WITH_DEVIATIONS = {
    "log": (199, 3_187, 81, 123_215),
    "queue": (3_385, 116_905, 7_040, 1_686_173),
    "transaction": (5_507, 75_910, 26_330, 2_240_253),
    "checkpoint": (22_238, 217_187, 43_146, 2_177_850),
    "half_table": (25, 179, 8, 4_048),
    "visibility": (81, 216, 108, 369),
    "op_batch": (4_818, 31_710, 10_562, 1_183_962),
    "coordinator": (8_620, 39_420, 1_580, 464_818),
    "deadline": (1_265, 5_102, 1_795, 48_740),
    "permits": (2_715, 16_638, 6_165, 67_304),
    "stage": (116, 268, 99, 2_288),
    "timer": (58, 1_148, 82, 151_204),
    "timer_table": (28, 226, 28, 572),
    "partition": (618, 15_005, 2_155, 209_589),
    "kafka_transaction": (1_849, 11_511, 2_118, 371_763),
    "producer": (185, 1_790, 731, 52_767),
}
SOME = [name for name, counted in PINNED.items() if NIGHT or counted[-1] < 150_000]
DEVIATING = [name for name, counted in PINNED_WITH_DEVIATIONS.items() if NIGHT or counted[-1] < 250_000]


def counts(found: Exploration) -> tuple[int, int, int, int]:
    return found.states, found.transitions, len(found.graph.beyond), found.tried


@pytest.fixture(scope="module")
def explored() -> dict[str, Exploration]:
    """The specs, each explored once; by day those that take seconds."""
    return {name: explore(SPECS[name], bound_of(SPECS[name])) for name in SOME}


@pytest.fixture(scope="module")
def with_deviations() -> dict[str, Exploration]:
    """The specs that a broker deviates from, with its deviations."""
    return {
        name: explore(SPECS[name], bound_of(SPECS[name], profile_of(name)), profile=profile_of(name))
        for name in DEVIATING
    }


def profile_of(name: str) -> str:
    """Return a broker of most of the deviations of a spec; the strict profile has only those of the machine."""
    profiles = {profile for d in SPECS[name].deviations for profile in d.profiles} - {"strict"}
    return max(sorted(profiles), key=lambda profile: len(SPECS[name].allowed(profile)))


# --- Nothing is lost ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOME)
def test_all_hold_and_every_step_can_happen(name: str, explored: dict[str, Exploration]) -> None:
    found = explored[name]
    assert found.result == "holds", summary.story(found) or found.never
    assert set(found.accepted) == set(SPECS[name].actions)
    assert min(found.accepted.values()) > 0
    assert counts(found) == PINNED[name]
    assert not found.graph.deadlocks
    assert not found.graph.terminal  # time passes, brokers restart, numbers are given: a bound can always be passed


@pytest.mark.parametrize("name", DEVIATING)
def test_with_deviations_the_weak_invariants_are_left(name: str, with_deviations: dict[str, Exploration]) -> None:
    found = with_deviations[name]
    assert found.result == "holds", summary.story(found) or found.never
    assert {d.step.__name__ for d in SPECS[name].deviations} == set(found.accepted) - set(SPECS[name].actions)
    assert min(found.accepted.values()) > 0
    assert counts(found) == PINNED_WITH_DEVIATIONS[name]


MET_WITHIN_THE_BOUND = {
    ("queue", "settle", "entry-follows-the-blank-slots"),  # only a deviation leaves it unmet
    ("broker", "check", "check-is-left"),
    ("transaction", "check", "version-has-a-number-of-its-own"),  # each number that is tried is of one version
}


@pytest.mark.parametrize("name", SOME)
def test_every_need_is_refused_somewhere(name: str, explored: dict[str, Exploration]) -> None:
    needs = {
        (name, reason.step, reason.rule.partition("/")[2])
        for reason in kernel(name).reasons
        if reason.step == reason.action
    }
    assert needs
    assert needs - NEVER_UNMET - MET_WITHIN_THE_BOUND == {(name, *refused) for refused in explored[name].refused}


# A deviation is tried only where its action refuses, and makes true what it deviates from: these needs are met then.
# The many deviations of the transaction are tried with too few numbers for that.
MET = {
    "checkpoint": {
        ("crash_behind_a_saved_cursor", "no-saved-cursor-is-beyond-what-the-crash-left"),
        ("save_ahead_of_the_flush", APPLIES),
        ("consume_an_op_that_is_still_needed", "half-cursor-has-passed-all-that-the-op-names"),
    },
    "log": {("append_after_the_clock_stepped_back", "clock-does-not-step-back")},
    "queue": {("append_to_a_queue_made_anew", "numbers-of-a-queue-follow-one-another")},
    "op_batch": {
        ("stop_with_entries_waiting", APPLIES),
        ("wait_for_another_interval", "no-entry-waits-longer-than-the-interval"),
        ("wait_for_another_interval", ASSUMED),
    },
    "coordinator": set(),
    "permits": set(),
}


@pytest.mark.parametrize("name", [name for name in MET if name in DEVIATING])
def test_every_need_of_a_deviation_too(name: str, with_deviations: dict[str, Exploration]) -> None:
    takeovers = {takeover.step.__name__ for takeover in SPECS[name].takeovers}  # only a trace takes them
    reasons = (reason for reason in kernel(name).reasons if reason.step not in takeovers)
    needs = {(reason.step, reason.rule.partition("/")[2]) for reason in reasons}
    assert needs - MET[name] == set(with_deviations[name].refused)


def written(state: Any) -> str:
    """A state as text."""
    content = {}
    for f in dataclasses.fields(state):
        value = getattr(state, f.name)
        content[f.name] = sorted(value.entries.items()) if isinstance(value, Map) else int(value)
    return json.dumps(content)


def counted_naively(spec: Spec, bound: Bound) -> tuple[tuple[int, int, int, int], Counter[str], "nx.DiGraph[str]"]:
    """The same search in other words: states are text, all of them in one graph."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    steps = [(action, args) for action in spec.actions.values() for args in arguments(bound, spec, action.__name__)]
    waiting = deque([spec.module.INITIAL])
    seen, beyond = {written(spec.module.INITIAL)}, set()
    transitions, tried, accepted = 0, 0, Counter[str]()
    while waiting:
        state = waiting.popleft()
        name = written(state)
        if not bound.within(state):
            beyond.add(name)
            continue
        for action, args in steps:
            tried += 1
            try:
                after = action(state, *args)
            except Refused:
                continue
            accepted[action.__name__] += 1
            there = written(after)
            graph.add_edge(name, there)
            if there not in seen:
                seen.add(there)
                waiting.append(after)
            transitions += bound.within(after)
    return (len(seen) - len(beyond), transitions, len(beyond), tried), accepted, graph


@pytest.mark.parametrize("name", [name for name in SPECS if NIGHT or PINNED[name][-1] < 30_000])
def test_no_state_is_lost(name: str, explored: dict[str, Exploration]) -> None:
    found = explored[name]
    naive, accepted, graph = counted_naively(SPECS[name], bound_of(SPECS[name]))
    assert counts(found) == naive
    assert found.accepted == accepted
    assert {written(state) for state in found.graph.states} == set(graph)
    joined = ((n, target) for n in range(len(found.graph.states)) for _, target in found.graph.leaving(n))
    assert len(set(joined)) == graph.number_of_edges()
    depths = nx.single_source_shortest_path_length(graph, written(SPECS[name].initial))
    assert [depths[written(state)] for state in found.graph.states] == found.graph.depths


@given(data=st.data())
def test_the_language_replaces_as_dataclasses_do(data: st.DataObject) -> None:
    state = data.draw(st.sampled_from([spec.initial for spec in SPECS.values()]))
    fields = [f.name for f in dataclasses.fields(state)]
    changed = data.draw(st.dictionaries(st.sampled_from(fields), st.integers()))
    assert language.replace(state, **changed) == dataclasses.replace(state, **changed)
    assert all(getattr(language.replace(state), name) is getattr(state, name) for name in fields)


def test_the_counts_of_every_spec_are_pinned() -> None:
    assert set(SPECS) == set(PINNED)
    assert {name for name, spec in SPECS.items() if spec.deviations} == set(PINNED_WITH_DEVIATIONS)


# --- The bounds reach what the specs are about --------------------------------------------------------------


def reached(found: Exploration, *calls: tuple[Any, ...]) -> Any:
    """The state after some steps, each of which was explored."""
    state = 0
    for action, *args in calls:
        leaving = [there for call, there in found.graph.leaving(state) if (call.action, *call.args) == (action, *args)]
        assert leaving, f"{action} {args} was not accepted where {found.graph.states[state]}"
        (state,) = leaving
    return found.graph.states[state]


@pytest.mark.skipif(not NIGHT, reason="dispatch is explored by night")
@pytest.mark.parametrize("overlap", [0, 1])
def test_the_example_of_the_proposal_is_explored(overlap: int, explored: dict[str, Exploration]) -> None:
    """Messages 1, 2 and 5 are written: the commit position is 2, inclusive; then 3 and 4 are, and it is 5."""
    given = [("open", 1, overlap), *(("scan", number) for number in range(1, 6))]
    first, second = ([(step, n) for n in numbers for step in ("take", "write")] for numbers in ((1, 2, 5), (4, 3)))
    assert reached(explored["dispatch"], *given, *first, ("commit", 3)).committed == 3
    assert reached(explored["dispatch"], *given, *first, ("commit", 3), *second, ("commit", 6)).committed == 6


def some(found: Exploration, holds: Callable[[Any], bool]) -> bool:
    """Return True if a state within the bound is like that."""
    return any(holds(state) for n, state in enumerate(found.graph.states) if n not in found.graph.beyond)


SOMETIMES: dict[str, list[Callable[[Any], bool]]] = {
    "dispatch": [
        lambda s: s.overlap and s.taken[1] > s.written[1] and s.taken[2] > s.written[2],  # two workers are at the queue
        lambda s: s.lives == 2 and s.start < s.flushed < s.committed < s.scanned,  # it continues after a crash
    ],
    "ring": [
        lambda s: s.slots == 3 and s.next == 6,  # the pointer has gone twice round
        lambda s: (
            s.slots == 3 and s.slot == 2 and s.ring[0] == 3 and s.ring[2] == -1
        ),  # a batch waits for the one before
        lambda s: s.services == 2 and s.next == s.cut == 6,
    ],
    "half_cache": [
        lambda s: s.capacity == 0 and s.answers == 1,
        lambda s: s.capacity == s.size == 2 and s.left[1] == 1 and s.puts[3] == 1,  # the eldest made room
        lambda s: s.capacity == 2 and s.front < s.places[3] and s.left[2] == s.answer == 1,  # a gap in the line
        lambda s: s.lives == 2 and s.size == 2,
        lambda s: s.lives == 2 and s.copies[1] == 2,  # half 1 is another message after a crash, in the cache too
    ],
    "coordinator": [
        lambda s: s.limit == 0 and s.active == 2,
        lambda s: s.limit == 1 and s.active == s.loaded == 2,  # a recovery above the limit
        lambda s: s.limit == 1 and s.ignored == s.active == s.admitted == 1,
        lambda s: s.limit == -1 and s.ignored == 1,
        lambda s: s.begun[1] == 1 and s.begun[0] == 0,  # a number was burned
        lambda s: s.reported[0] == 4 and s.log[1] == 4,
    ],
    "permits": [
        lambda s: s.in_use == s.permits == 2 and s.waiting == 1 and s.cuts == 1,  # silence, and a lost connection
        lambda s: (
            s.returned[0] == s.returned[1] == 1 and s.since[2] == 2 and s.answers[0] == 0
        ),  # given up; the next goes
        lambda s: s.waiting == 3,
    ],
    "group_offsets": [
        lambda s: s.waiting == 1 and s.offset == 0 < s.end,  # a later one waits
        lambda s: s.by == 1 and s.offset == 1,  # an offset of a transaction counts
        lambda s: s.offset == -1 and s.aborted[0] == 1,
    ],
    "kafka_transaction": [
        lambda s: s.marked[0] == s.marked[1] == 1 and s.phase == 3,  # aborted, and not complete
        lambda s: s.marked[0] == 1 and s.marked[1] == 0 == s.ended[0] - 1,
        lambda s: s.phase == 1 and s.first[0] == 1 and s.epoch == 1,
        lambda s: s.phase == 4 and s.began[0] == 0,
    ],
    "partition": [
        lambda s: s.compacted and s.first < 0 < s.end,  # offsets are missing
        lambda s: s.stable < s.high == s.end,  # readers of committed transactions wait
        lambda s: s.segment == s.cleaned == 1,
        lambda s: s.timed == s.newest == 0 and s.index_reached > 0,
    ],
    "partition_client": [
        lambda s: s.reads and s.first < s.position < s.end,  # a part of what was read was received
        lambda s: s.reads and s.position == s.end == 4,  # all of it
        lambda s: not s.reads and 0 < s.first < s.end,  # offsets are missing before it
    ],
    "aborted_index": [
        lambda s: s.hidden < s.end and s.stable < s.first,  # another transaction is open
        lambda s: s.hidden == s.end == 3 and s.producer == 1,
    ],
    "producer": [
        lambda s: s.checked and s.sequence == 0 and s.numbered == 1 << 31,  # sequences begin at 0 again
        lambda s: s.transaction == 0 and s.saved == 1,  # a snapshot of an open transaction
        lambda s: s.epoch == 1 and s.sequence == -1,  # behind the marker of a new epoch
    ],
    "broker": [
        lambda s: s.visible == 1 and s.lives == 2,  # consumers see it again after a restart
        lambda s: s.parked >= 0 and s.checks == s.max_checks == 1,
        lambda s: s.lives == 2 and s.checks == 0 and s.commits_asked[1] == 1,  # it fell back to its first version
    ],
}


@pytest.mark.parametrize("name", [name for name in SOMETIMES if name in SOME])
def test_what_a_spec_is_about_is_reached(name: str, explored: dict[str, Exploration]) -> None:
    assert [some(explored[name], holds) for holds in SOMETIMES[name]] == [True] * len(SOMETIMES[name])


@pytest.mark.skipif(not NIGHT, reason="these two are explored with deviations by night")
def test_deviations_are_reached_too(with_deviations: dict[str, Exploration]) -> None:
    assert some(with_deviations["coordinator"], lambda s: s.limit == 1 and s.active == 2 > s.loaded)  # a crowd of two
    assert some(with_deviations["coordinator"], lambda s: s.left[0] == 1)  # timed out at birth
    assert some(with_deviations["permits"], lambda s: s.stuck == 1 and s.in_use == 1)


# --- What is broken is found --------------------------------------------------------------------------------


def without(name: str, rule: str) -> Spec:
    """A spec that has lost a guard."""
    tree = ast.parse(getsource(SPECS[name].module))
    for function in tree.body:
        if isinstance(function, ast.FunctionDef):
            kept = [line for line in function.body if not (is_guard(line) and rule in ast.unparse(line))]
            function.body = kept
    assert ast.unparse(tree) != ast.unparse(ast.parse(getsource(SPECS[name].module)))
    return module(SPECS[name].module.__name__, tree)


def is_guard(line: ast.stmt) -> bool:
    match line:
        case ast.Expr(value=ast.Call(func=ast.Name(id="require"))):
            return True
    return False


def test_a_guard_that_is_gone_is_missed_by_the_shortest_way() -> None:
    found = explore(without("queue", "entry-points-at-its-message"), bound_of(SPECS["queue"]))
    assert found.result == "breaks"
    assert summary.story(found) == [
        "queue breaks an_entry_is_its_message after 2 steps.",
        "",
        "  1. append(number=0, count=1, position=10, size=1, tag=0)   end 0 → 1, positions[0] 0 → 10, sizes[0] 0 → 1",
        "  2. index(number=0, position=0, size=1, tag=0)              indexed 0 → 1, entry_sizes[0] 0 → 1",
        "",
        'The state breaks the property "an entry is its message", for number = 0.',
        "Here: entry_positions[0] = 0, positions[0] = 10.",
        "Consequence: a consumer receives something else than the message it asked for.",
        "Again: gapless explore queue",
    ]


@pytest.mark.parametrize(
    ("name", "rule", "sentence", "steps"),
    [
        ("log", "bytes-are-on-disk", "positions_are_ordered", 1),
        ("log", "what-was-flushed-survives", "positions_are_ordered", 5),
        ("log", "log-is-not-open-yet", "nothing_acknowledged_is_lost", 2),
        ("queue", "no-entry-before-it-is-missing", "an_entry_is_its_message", 3),
        ("transaction", "decision-came-before-the-op", "an_op_follows_a_decision", 2),
        ("checkpoint", "half-cursor-passes-no-undecided-half", "every_half_that_was_passed_is_resolved", 3),
        ("op_batch", "no-op-names-the-half-yet", "a_half_is_named_once", 2),
        ("dispatch", "no-other-worker-is-at-the-queue", "one_worker_is_at_the_queue_unless_they_may_overlap", 5),
        ("ring", "ring-has-room-for-the-batch", "a_slot_holds_the_batch_that_belongs_there", 4),
        ("half_cache", "eldest-leaves", "a_cached_half_stands_in_the_line", 6),
        ("half_cache", "half-in-the-cache-is-found", "a_half_that_is_cached_is_found", 4),
        ("half_cache", "half-in-the-cache-is-the-one-that-was-written", "a_copy_is_its_half", 3),
        ("coordinator", "slot-is-free", "the_active_stay_within_the_limit", 5),
        ("coordinator", "every-active-transaction-comes-back", "no_active_transaction_is_forgotten", 5),
        ("permits", "permit-is-free", "no_more_requests_are_out_than_permits", 1),
        ("permits", "nobody-waits-while-a-permit-is-free", "nobody_waits_for_a_free_permit", 3),
        ("broker", "final-is-on-disk", "what_consumers_saw_survives_every_crash", 8),
    ],
)
def test_what_is_broken_is_found(name: str, rule: str, sentence: str, steps: int) -> None:
    found = explore(without(name, rule), bound_of(SPECS[name]))
    assert found.result == "breaks"
    assert found.broken
    assert (found.broken.sentence, len(found.broken.path)) == (sentence, steps)
    states = [found.graph.states[number] for number in found.broken.way]
    for call, (before, after) in zip(found.broken.path, pairwise(states), strict=True):
        assert found.spec.actions[call.action](before, *call.args) == after


def test_what_is_broken_from_the_beginning_takes_no_step() -> None:
    found = explore(module("toy", TOY.replace("{more}", "").replace("State()", "State(at=90)")), TOY_BOUND)
    assert summary.story(found)[0] == "toy breaks it_stays_near after 0 steps."
    assert state_diagram.svg(found)


TOY = '''
from dataclasses import dataclass
from gapless.spec.language import Deviation, replace, require


@dataclass(frozen=True, slots=True)
class State:
    """Where a walker is."""
    at: int = 0


def walk(s, to):
    """One step."""
    require(s.at != 3, "it-is-not-stuck", because="it is not stuck", otherwise="it fails")
    require(to == s.at + 1 or s.at + to == 11, "it-goes-one-step", because="it goes one step", otherwise="it fails")
    return replace(s, at=to)


def leap(s, to):
    """Far."""
    require(s.at == 0, "it-begins", because="it begins", otherwise="it fails")
    require(to == 5, "it-knows-where", because="it knows where", otherwise="it fails")
    return replace(s, at=to)


def fly(s, to):
    """It never happens."""
    require(s.at > 90, "it-is-very-far", because="it is very far", otherwise="it fails")
    return s


def it_stays_near(s):
    """Otherwise it is lost."""
    return s.at < 90


INITIAL = State()
ACTIONS = (walk, leap{more})
DEVIATIONS = ()
INVARIANTS = (it_stays_near,)
STEP_PROPERTIES = ()
'''
TOY_BOUND = Bound(says="a walk <far> & wide", within=lambda _: True, numbers={"to": range(7)})


def toy(more: str = "") -> Spec:
    return module("toy", TOY.replace("{more}", more))


def test_where_a_spec_comes_to_rest_is_found() -> None:
    """From 0 to 1, 2 and stuck in 3; or to 5, and for ever between 5 and 6."""
    found = explore(toy(), TOY_BOUND)
    assert found.result == "holds"
    assert [state.at for state in found.graph.states] == [0, 1, 5, 2, 6, 3]
    assert found.graph.deadlocks == [5]
    assert found.graph.terminal == [[2, 4], [5]]
    assert summary.remarks(found) == [
        "toy: 1 state ends a run; no AT_REST says in which states it may.",
        "  at = 3 · after walk(to=1), walk(to=2), walk(to=3)",
        "toy: a run that comes to these 2 states never leaves them; one of them:",
        "  at = 5 · after leap(to=5)",
    ]


RESTING = '''

def it_has_arrived(s):
    """Otherwise it is never met."""
    return s.at in ({where},)


AT_REST = (it_has_arrived,)
'''


def test_where_a_spec_comes_to_rest_it_is_as_it_says() -> None:
    """One of the states that it alternates between forever is enough: there it may stop."""
    arrived = module("toy", TOY.replace("{more}", "") + RESTING.replace("{where}", "3, 6"))
    found = explore(arrived, TOY_BOUND)
    assert (found.result, found.accepted["end"], found.graph.deadlocks) == ("holds", 2, [5])
    assert summary.remarks(found)[0] == "toy: 1 state ends a run; AT_REST holds in it."
    assert not [line for line in summary.remarks(found) if "at = 3" in line], "it is no news"
    stuck = module("toy", TOY.replace("{more}", "") + RESTING.replace("{where}", "5, 6"))
    found = explore(stuck, TOY_BOUND)
    assert found.result == "breaks"
    story = summary.story(found)
    assert story[0] == "toy breaks it_has_arrived after 3 steps."
    assert story[-4:] == [
        'The state breaks the property "it has arrived".',
        "Here: at = 3.", "Consequence: it is never met.", "Again: gapless explore toy",
    ]  # fmt: skip


def test_every_spec_comes_to_rest_somewhere_and_not_everywhere(explored: dict[str, Exploration]) -> None:
    """That each property at rest is refused somewhere is among the needs above."""
    for name, found in explored.items():
        rests = found.accepted.get("end", 0)
        assert bool(SPECS[name].at_rest) == (0 < rests < found.states), name
    assert {name for name, spec in SPECS.items() if not spec.at_rest} == {
        "compaction",
        "dledger_index",
        "aborted_index",
        "partition_client",
        "cursor",
        "deadline",
        "delivery",
        "extension",
        "half_cache",
        "group_offsets",
        "half_table",
        "hash_index",
        "index_table",
        "lookup",
        "producer",
        "stage",
        "startup",
        "tiered",
        "timer",
        "timer_table",
        "visibility",
    }


def test_json_tells_of_traps_too() -> None:
    (as_json,) = json_report.report([explore(toy(), TOY_BOUND)]).explored
    assert [(trap.state, trap.path) for trap in as_json.deadlocks] == [
        ({"at": 3}, [f"walk(to={n})" for n in (1, 2, 3)])
    ]
    assert [trap.size for trap in as_json.terminal] == [2, 1]


def test_what_the_bound_cuts_off_is_no_trap() -> None:
    found = explore(toy(), dataclasses.replace(TOY_BOUND, within=lambda s: s.at not in {3, 6}))
    assert (found.graph.deadlocks, found.graph.terminal) == ([], [])
    assert len(found.graph.beyond) == 2


def test_a_step_that_never_happens_is_no_pass() -> None:
    found = explore(toy(", fly"), TOY_BOUND)
    assert (found.result, found.never, summary.exit_code([found])) == ("vacuous", ("fly",), 3)
    assert summary.outcome(found) == "never: fly"


def test_what_is_not_explored_is_no_pass() -> None:
    found = explore(SPECS["log"], bound_of(SPECS["log"]), limit=20)
    assert (found.result, summary.exit_code([found])) == ("unfinished", 3)
    assert found.graph.explored < 21 <= len(found.graph.states)
    assert "were met and not explored" in summary.remarks(found)[0]


def test_a_bound_that_forgets_an_argument_says_so() -> None:
    with pytest.raises(NoBound, match="toy does not say which numbers to of the step walk is tried with"):
        explore(toy(), dataclasses.replace(TOY_BOUND, numbers={}))
    with pytest.raises(NoBound, match=re.escape("toy has no bound: write `BOUND = Bound(…)` into properties/ex")):
        bound_of(toy())


# --- What is drawn ------------------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: ET.Element) -> str:
    return "\n".join(text.strip() for text in svg.itertext() if text.strip())


def test_a_small_graph_is_drawn_whole() -> None:
    found = explore(toy(), TOY_BOUND)
    drawn = ET.fromstring(state_diagram.svg(found))  # noqa: S314 - our own
    states = [g for g in drawn.iter(f"{SVG}g") if (g.get("class") or "").split()[0] == "state"]
    assert [(g.get("class") or "").split()[1:] for g in states] == [["start"], [], ["trap"], [], ["trap"], ["trap"]]
    assert len([g for g in drawn.iter(f"{SVG}g") if g.find(f"{SVG}path") is not None]) == 6
    assert "walk(to=3)" in texts(drawn)
    assert "a walk <far> & wide" in texts(drawn)
    assert "Too large" not in texts(drawn)


def test_a_large_graph_says_what_is_left_out(explored: dict[str, Exploration]) -> None:
    drawn = ET.fromstring(state_diagram.svg(explored["log"]))  # noqa: S314
    boxes = [box for box in drawn.iter(f"{SVG}rect") if box.get("rx")]
    assert 1 < len(boxes) <= state_diagram.DRAWN
    assert len(boxes) == explored["log"].states == 133
    assert "All 133 states; the 54 beyond the bound are not drawn." in texts(drawn)
    places = [tuple(float(box.get(side) or 0) for side in ("x", "y", "width", "height")) for box in boxes]
    for (x, y, width, height), (u, v, *_) in product(places, repeat=2):
        assert (x, y) == (u, v) or x + width <= u or u < x or y + height <= v or v < y, "two states overlap"


def _is(name: str, call: Call) -> bool:
    return (call.deviation or call.action) == name


def test_of_a_large_graph_the_shortest_way_to_each_step_is_drawn(explored: dict[str, Exploration]) -> None:
    for found in explored.values():
        graph = found.graph
        if len(graph.states) <= state_diagram.DRAWN or len(graph.states) > 10_000:
            continue
        drawn = {box.number for box in state_diagram.picture(found).boxes}
        depth = dict[str, int]()
        for source in range(graph.explored):
            for call, target in graph.leaving(source):
                if source != target:
                    name = call.deviation or call.action
                    depth[name] = min(depth.get(name, 1 << 30), graph.depths[source])
        left_out = state_diagram.picture(found).left_out
        assert left_out.startswith("Too large to draw: of" if found.states > state_diagram.DRAWN else "All ")
        for name, nearest in depth.items():
            at = [n for n in drawn if any(_is(name, c) and t in drawn and t != n for c, t in graph.leaving(n))]
            assert name in left_out or min(graph.depths[n] for n in at) == nearest, (found.spec.name, name)
        assert all(origin is None or origin[0] in drawn for origin in (graph.met[n] for n in drawn)), "no way has a gap"


def test_the_way_to_what_is_broken_is_drawn() -> None:
    found = explore(without("log", "what was flushed survives"), bound_of(SPECS["log"]))
    drawn = ET.fromstring(state_diagram.svg(found))  # noqa: S314
    kinds = Counter((g.get("class") or "") for g in drawn.iter(f"{SVG}g"))
    assert found.broken
    assert kinds["arrow broken"] == 2 * len(found.broken.path)  # an arrow and its call each
    assert kinds["state broken"] == 1


class BalanceParser(HTMLParser):
    """Holds that tags close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: D102 - HTMLParser's
        if tag not in {"meta", "input"}:
            self.open.append(tag)
        assert not {name for name, _ in attrs} & {"src", "href"}

    def handle_endtag(self, tag: str) -> None:  # noqa: D102
        assert self.open.pop() == tag


def test_a_page_needs_no_other_file(tmp_path: Path) -> None:
    page = tmp_path / "graphs.html"
    assert gapless("explore", "log", "op_batch", "--graph", page).exit_code == 0
    text = page.read_text(encoding="utf-8")
    parser = BalanceParser()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert text.count("<svg ") == 2


# --- The command --------------------------------------------------------------------------------------------


def test_the_command_prints_a_table() -> None:
    ran = gapless("explore", "log", "op_batch")
    assert ran.exit_code == 0
    assert ran.stdout.split()[:3] == ["spec", "bound", "states"]
    assert "all hold" in ran.stdout
    assert "\x1b" not in ran.stdout + ran.stderr


def test_the_command_says_the_same_as_json(explored: dict[str, Exploration]) -> None:
    first, second = (json.loads(gapless("explore", "log", "--json", "-").stdout) for _ in range(2))
    for shown in (first, second):
        del shown["explored"][0]["seconds"]
    assert first == second
    (shown,) = first["explored"]
    assert first["schema"] == 1
    assert (shown["spec"], shown["states"], shown["result"], shown["story"]) == ("log", 133, "holds", [])
    assert shown["accepted"] == explored["log"].accepted


def test_the_command_tells_the_story(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {**SPECS, "queue": without("queue", "entry-points-at-its-message")}
    monkeypatch.setattr("gapless.traces.specs.SPECS", broken)
    ran = gapless("explore", "log", "queue")
    assert ran.exit_code == 1
    assert "queue breaks an_entry_is_its_message after 2 steps." in ran.stdout
    assert "all hold" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("nonsense",), 2, "gapless: there is no spec 'nonsense': choose among aborted_index, broker, check_service"),
        (("log", "--graph", "log.png"), 2, "a graph is an .svg or an .html file"),
        (("log", "queue", "--graph", "both.svg"), 2, "name one, or write an .html page"),
        (("log", "--profile", "no-such"), 2, "--profile"),
        (("log", "--states", "20"), 3, "were met and not explored"),
        (("log", "--profile", "rocketmq"), 0, "all hold"),
        (("--help",), 0, "Exit codes"),
    ],
)
def test_the_command_says_what_is_wrong(arguments: tuple[str, ...], code: int, says: str) -> None:
    ran = gapless("explore", *arguments)
    assert ran.exit_code == code, ran.output
    assert says in " ".join(ran.output.split())
