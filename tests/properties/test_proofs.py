"""The model keeps what it says, from any state, and the prover can tell when it does not."""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.properties.faults.false_friends import FALSE_FRIENDS, FalseFriend
from gapless.properties.proof import (
    counterexamples,
    cut_equivalence,
    induction,
    ledger,
    liveness,
    refinement,
    symbolic,
    translation,
)
from gapless.properties.proof.claims import broker, checkpoint, dispatch
from gapless.properties.proof.counterexamples import settled, story
from gapless.properties.proof.induction import Obligation, Question
from gapless.properties.proof.symbolic import Quantification, Unknown, UnknownMap, number
from gapless.spec import language
from gapless.spec.catalog import SPECS, Spec, text_of
from gapless.spec.language import Map, Refused, all_between, greatest
from tests.support.changed_spec import changed
from tests.support.command_line import gapless_process
from tests.support.night import NIGHT, by_day
from tests.support.walks import walks

WORK = 1_000_000  # Z3's own measure of work: about 0.4 s. No obligation of ours may cost more, but for one kind:
COVER = 4_000_000  # that all ways through a kernel are there is one question for a whole step
EVERY_SPEC = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)


DEAR = {"checkpoint", "op_batch"}  # seconds each


@pytest.mark.parametrize("subject", [subject for subject in by_day(ledger.subjects()) if NIGHT or subject not in DEAR])
def test_every_obligation_is_proved_at_a_bounded_cost(subject: str) -> None:
    found = [ledger.settle(obligation, work=COVER) for obligation in ledger.every(subject)]
    assert found
    for entry in found:
        assert entry.result == "proved", "\n".join([f"{entry.spec}: {entry.step}: {entry.invariant}", *entry.story])
        assert entry.work <= (COVER if entry.invariant == translation.COVERED.replace(" ", "_") else WORK)


@EVERY_SPEC
def test_every_step_has_its_obligations(spec: Spec) -> None:
    """Nothing is left out: each step can happen and keeps each invariant, by design and with deviations."""
    asked = {(o.step, o.invariant, o.weak) for o in induction.obligations(spec)}
    steps = {False: list(spec.actions), True: [*spec.actions, *(d.step.__name__ for d in spec.deviations)]}
    for weak in (False, True) if spec.deviations else (False,):
        wanted = [f.__name__ for f in (*spec.invariants(weak=weak), *spec.step_properties(weak=weak))]
        for step in steps[weak]:
            assert {(step, sentence, weak) for sentence in (*wanted, induction.CAN_HAPPEN)} <= asked
        initial = [f.__name__ for f in spec.invariants(weak=weak)]
        assert {(induction.INITIAL, sentence, weak) for sentence in initial} <= asked


@pytest.mark.parametrize("spec", [spec for spec in SPECS.values() if spec.takeovers], ids=lambda spec: spec.name)
def test_a_takeover_keeps_what_is_left_of_the_invariants(spec: Spec) -> None:
    """So what is refused behind it is no echo of what was taken over."""
    for takeover in spec.takeovers:
        assert takeover.rule in {need.id.partition("/")[2] for need in spec.rules.values()}
        asked = [o for o in induction.inductive(spec, weak=True, only=[takeover.step]) if o.states == 1]
        assert len(asked) == len(spec.invariants(weak=True)) + 1  # and it can happen
        assert {counterexamples.settled(obligation).verdict for obligation in asked} == {"proved"}


# -- false properties are refuted, and reported -----------------------------------------------------------------------


def refuted(spec: Spec) -> list[counterexamples.Result]:
    """Return the properties of a spec that fail."""
    results = [settled(obligation, work=WORK) for obligation in induction.inductive(spec, weak=False)]
    return [result for result in results if result.verdict != "proved"]


def test_a_counterexample_is_the_smallest_and_is_reported_as_a_story() -> None:
    """Without the need that bytes are on disk, a producer gets a false acknowledgement."""
    spec = changed(SPECS["log"], "require(to <= s.flushed,", "require(to <= s.end,")
    found = {result.obligation.invariant: result for result in refuted(spec)}
    assert list(found) == ["positions_are_ordered"]
    result = found["positions_are_ordered"]
    assert result.verdict == "refuted"
    assert story(result) == [
        'log: acknowledge breaks the property "positions are ordered".',
        "",
        "  In a state with base = 1, end = 1, which may not be reachable,",
        "  1. acknowledge(to=1)   acknowledged 0 → 1",
        "",
        "Broken: positions are ordered.",
        "Here: acknowledged = 1, flushed = 0.",
        "Consequence: bytes are reported safe that a crash can take away.",
    ]


FAULTS = {
    "an entry may be left out": (
        ("queue", "number == s.indexed, 'no-entry", "number >= s.indexed, 'no-entry"),
        ("index", "an_entry_is_its_message"),
    ),
    "the first entry need not be written": (
        ("dispatch", "all_between(s.committed, to, lambda", "all_between(s.committed + 1, to, lambda"),
        ("commit", "the_commit_position_never_passes_a_gap"),
    ),
    "the last half need not be resolved": (
        ("checkpoint", "all_between(s.half_cursor, to, lambda", "all_between(s.half_cursor, to - 1, lambda"),
        ("advance", "what_the_half_cursor_passes_is_resolved"),
    ),
    "entries leave the batcher without an op": (
        ("op_batch", "return replace(s, clock=time)", "return replace(s, clock=time, entered=s.written, size=0)"),
        ("tick", "entries_leave_only_by_an_op_or_a_crash"),
    ),
    "an op drops the last half that it took": (
        ("op_batch", "s.entries.set(Number(s.entered), number)", "s.entries.set(Number(s.written), number)"),
        ("enqueue", "entries_leave_only_by_an_op_or_a_crash"),
    ),
    "entries go on to join a batch that is full": (
        ("op_batch", "s.restarted != 0 or s.size < s.max_size", "s.restarted != 0 or s.size < 2 * s.max_size"),
        ("enqueue", "a_batch_is_bounded"),
    ),
    "a checkpoint is ahead of what is flushed": (
        ("checkpoint", "s.op_cursor <= s.op_flushed", "s.op_cursor <= s.op_end"),
        ("save", "no_saved_cursor_is_ahead_of_what_is_flushed"),
    ),
    "a cursor is saved before the version that resolves a half is on disk": (
        ("checkpoint", "return by < s.half_flushed", "return by < s.half_end"),
        ("save", "a_crash_leaves_what_resolves_a_half_that_is_passed_for_good"),
    ),
    "a final is not counted": (
        ("transaction", "finals=s.finals + 1, commits=", "commits="),
        ("commit", "consumers_see_what_is_committed"),
    ),
    "one check too many": (
        ("transaction", "== 0 or times <= s.max_checks,", "== 0 or times <= s.max_checks + 1,"),
        ("check", "a_producer_is_asked_step_by_step"),
    ),
    "a half is handed out before it is committed": (
        ("delivery", "s.records == 0 or 0 < s.seen, 'half", "0 <= s.seen, 'half"),
        ("hand", "what_was_handed_out_could_be_read"),
    ),
    "what consumers can read is no record": (
        ("delivery", "records=s.records + 1, seen", "records=s.records, seen"),
        ("append", "what_can_be_read_is_in_the_log"),
    ),
    "one unit more is delivered than there are": (
        ("timer", "s.delivered < s.units, 'unit", "s.delivered <= s.units, 'unit"),
        ("deliver", "what_is_delivered_was_scheduled"),
    ),
    "the oldest unit of a time is forgotten": (
        ("timer", "first=position if s.units == 0 else s.first", "first=s.first"),
        ("schedule", "a_chain_has_two_ends"),
    ),
    "a unit lies where the newest of its time does": (
        ("timer", "require(s.last < position and", "require(s.last <= position and"),
        ("schedule", "the_chain_goes_on_forward"),
    ),
    "what cancels a message counts twice": (
        ("timer", "-1 if cancels", "-2 if cancels"),
        ("schedule", "no_more_is_counted_than_there_is"),
    ),
}


@pytest.mark.parametrize("fault", by_day(list(FAULTS)))
def test_a_fault_in_a_step_is_refuted_there(fault: str) -> None:
    (name, old, new), (step, invariant) = FAULTS[fault]
    spec = changed(SPECS[name], old.replace("'", '"'), new.replace("'", '"'))
    assert (step, invariant) in {(r.obligation.step, r.obligation.invariant) for r in refuted(spec)}


# Faults that no invariant, step property or claim notices, nor does any step become impossible; and what alone does.
NOTICED_BY_ONE = {
    "the table may name an entry that is not the last": (
        ("queue", "require(number + 1 == s.indexed,", "require(number + 1 <= s.indexed,"),
        "the_table_names_the_last_entry_and_no_other",
    ),
    "a queue that is found forgets who may be at it": (
        ("dispatch", "replace(s, lives=1, overlap=overlap, start", "replace(s, lives=1, start"),
        "two_workers_are_at_a_queue_only_where_they_may",
    ),
    "a commit that finds nothing new is refused": (
        ("dispatch", "require(s.committed <= to,", "require(s.committed < to,"),
        "what_stands_before_the_first_gap_may_become_visible",
    ),
    "what was flushed may not be flushed again": (
        ("dispatch", "require(s.flushed <= to,", "require(s.flushed < to,"),
        "all_that_is_visible_may_be_flushed",
    ),
    "a ring of one slot is refused": (
        ("ring", "require(0 < slots,", "require(1 < slots,"),
        "a_batch_goes_through_a_ring_of_any_size",
    ),
    "a ring is made behind its batches": (
        ("ring", "require(s.slots == 0 and s.cut == 0,", "require(s.slots == 0,"),
        "a_ring_has_room_and_is_made_before_its_batches",
    ),
    "a producer is told before its half is put in": (
        ("half_cache", "require(s.puts[number] == 1 or s.capacity == 0,", "require(s.puts[number] <= 1,"),
        "no_producer_is_told_before_its_half_is_put_in",
    ),
    "a cache forgets how large it is": (
        ("half_cache", "replace(ends, lives=1, capacity=capacity, size=0)", "replace(ends, lives=1, size=0)"),
        "a_cache_is_found_as_large_as_it_is",
    ),
    "a cache forgets what has expired": (
        ("half_cache", "replace(s, start=start, flushed=number,", "replace(s, flushed=number,"),
        "it is a step of lookup, or a stutter",
    ),
    "an index file forgets how many slots are in use": (
        ("hash_index", "used=s.used + 1 if s.heads[slot] == 0 else s.used,", "used=s.used + 1,"),
        "a_slot_counts_from_its_first_item_on",
    ),
    "a message is handed out only where there are two records of it": (
        ("delivery", "require(0 < s.records,", "require(1 < s.records,"),
        "what_can_be_read_can_be_handed_out",
    ),
    "a slot that a start has mended is refused": (
        ("timer", "require(implies(counted, first == s.first),", "require(first == s.first,"),
        "a_slot_is_taken_if_it_names_its_chain",
    ),
    "a ring is at rest with a batch in it": (
        ("ring", "return s.next == s.cut", "return s.next <= s.cut"),
        "it is a step of queue, or a stutter",
    ),
}


@pytest.mark.parametrize("fault", by_day([*NOTICED_BY_ONE]))
def test_a_fault_that_one_property_alone_notices(fault: str) -> None:
    (name, old, new), alone = NOTICED_BY_ONE[fault]
    spec = changed(SPECS[name], old, new)
    every = (*induction.obligations(spec), *liveness.obligations(spec), *refinement.obligations(spec))
    assert {o.invariant for o in every if settled(o, work=WORK).verdict != "proved"} == {alone}


def test_a_step_that_cannot_happen_is_noticed() -> None:
    spec = changed(SPECS["log"], "require(s.flushed <= to,", "require(s.end < to,")
    found = {(r.obligation.step, r.obligation.invariant, r.verdict) for r in refuted(spec)}
    assert found == {("flush", induction.CAN_HAPPEN, "refuted")}


def test_what_z3_cannot_say_within_its_budget_is_unknown_and_fails() -> None:
    (obligation,) = [
        o
        for o in induction.obligations(SPECS["dispatch"])
        if (o.step, o.invariant) == ("commit", "the_commit_position_never_passes_a_gap")
    ]
    assert ledger.settle(obligation, work=1).result == "unknown"
    assert ledger.settle(obligation).result == "proved"


def test_an_example_that_the_plain_functions_do_not_confirm_is_none() -> None:
    """Z3 assumes that numbers are never negative, which no other reading does."""
    spec = SPECS["log"]

    def ask(theory: induction.Theory) -> Question:
        return Question((z3.Not(number(theory.before.end) == 0),), theory.before)

    def never(_s: Any) -> bool:
        return True  # the plain reading: it holds, whatever Z3 says

    result = settled(Obligation(spec, "never", "INITIAL", ask, holds=never), work=WORK)
    assert result.verdict == "unknown"
    assert result.example is None


# -- liveness and pieces -------------------------------------------------------------------------------------------


def failing(obligations: Any) -> set[str]:
    return {o.step for o in obligations if settled(o, work=WORK).verdict != "proved"}


def test_a_rank_that_is_not_lowered_is_noticed() -> None:
    """The naive rank, numbers given and not visible: writing an entry does not lower it."""
    naive = replace(dispatch.COMMIT_POSITION, rank=lambda s, _number, _gap: s.scanned - s.committed)
    assert "write lowers the rank" in failing(liveness.shown(SPECS["dispatch"], naive))


def test_a_disturbance_that_is_not_listed_is_noticed() -> None:
    calm = replace(dispatch.COMMIT_POSITION, disturbances={})
    assert "crash does not raise the rank" in failing(liveness.shown(SPECS["dispatch"], calm))


def test_a_helpful_step_that_is_refused_is_noticed() -> None:
    late = tuple(
        replace(h, args=lambda _s, _half, gap: {"to": gap + 1}) if h.step == "advance" else h
        for h in checkpoint.HALF_CURSOR.helpful
    )
    wrong = replace(checkpoint.HALF_CURSOR, helpful=late)
    assert "advance is enabled" in failing(liveness.shown(SPECS["checkpoint"], wrong))


def test_a_piece_that_forgets_is_noticed() -> None:
    """Without the time of its last record, a piece of a log mistakes a clock that stepped back."""
    (cut,) = (cut for cut in cut_equivalence.CUTS if cut.spec == "log")
    forgetful = replace(cut, claim=lambda empty, whole: replace(cut.claim(empty, whole), clock=0))
    assert "its claim knows enough" in failing(cut_equivalence.of_cut(SPECS["log"], forgetful))
    blind = replace(cut, knows=lambda whole, piece, _n: whole.end == piece.end)
    assert "append gets one answer" in failing(cut_equivalence.of_cut(SPECS["log"], blind))


# -- agreement: Z3's reading, and the plain one --------------------------------------------------------------------


@pytest.mark.parametrize("spec", by_day(list(SPECS.values())), ids=lambda spec: spec.name)
def test_z3_reads_a_step_as_it_is_called(spec: Spec) -> None:
    """On states of random walks: one way through the step is taken, and it ends where the plain function does."""
    for offer in walks(spec, "nobody", 25 if NIGHT else 12):
        state = spec.initial
        for event in offer.path:
            state = spec.actions[event[0]](state, *event[1])
        agree(spec.actions[offer.event[0]], state, offer.event[1])


def agree(step: Callable[..., Any], state: Any, args: tuple[int, ...]) -> None:
    terms = [Unknown(number(value)) for value in args]
    with symbolic.read(Quantification()):
        found = symbolic.ways(step, symbolic.symbolic(state), terms)
    taken = [way for way in found if induction.ask(way.facts).verdict == "sat"]
    assert len(taken) == 1
    outcome = called(step, state, args)
    assert isinstance(outcome, Refused) is not taken[0].accepted
    if isinstance(outcome, Refused):
        assert taken[0].outcome.rule == outcome.rule
        return
    same = symbolic.same_state(taken[0].outcome, symbolic.symbolic(outcome))
    assert induction.ask((*taken[0].facts, z3.Not(same))).verdict == "unsat"


def called(step: Callable[..., Any], state: Any, args: tuple[int, ...]) -> Any:
    try:
        return step(state, *args)
    except Refused as refusal:
        return refusal


@given(a=st.integers(-30, 30), b=st.integers(-30, 30), by=st.integers(1, 7))
@settings(max_examples=40)
def test_sums_and_quotients_are_pythons(a: int, b: int, by: int) -> None:
    def every(x: Any, y: Any) -> tuple[Any, ...]:
        return x + y, y - x, x * y, x // by, x % by, -x, 7 - x, 2 * y

    terms = every(*(Unknown(z3.IntVal(value)) for value in (a, b)))
    for term, plain in zip(terms, every(a, b), strict=True):
        assert induction.ask((number(term) != plain,)).verdict == "unsat"


def test_what_z3_would_read_otherwise_is_refused() -> None:
    """Python rounds quotients by negative numbers differently; and no formula of theirs distinguishes two Maps."""
    some: Any = Unknown(z3.Int("some"))
    odd: list[Callable[[], Any]] = [
        lambda: some // -3, lambda: some % 0, lambda: 7 // some, lambda: 7 % some, lambda: some // some,
    ]  # fmt: skip
    for quotient in odd:
        with pytest.raises(TypeError, match="divide by a positive constant"):
            quotient()
    state = symbolic.unknown_state(SPECS["queue"].initial)
    with pytest.raises(TypeError, match="compare Maps key by key"):
        assert state.positions != state.sizes
    with pytest.raises(TypeError, match="is a Map of"):
        symbolic.unknown_state(NestedState())


@dataclass(frozen=True, slots=True)
class NestedState:
    """A state that no reader understands."""

    maps: Map[int, Map[int, int]] = Map(Map(0))


def test_an_example_must_satisfy_the_invariants_for_every_number() -> None:
    """Far from the window, an invariant forbids what the example does."""

    def far(s: Any, number: int) -> bool:
        return language.implies(number == 1000, s.end < 50)

    module = types.ModuleType("gapless.spec.log")
    module.__dict__.update(vars(SPECS["log"].module))
    module.__dict__["INVARIANTS"] = (*module.__dict__["INVARIANTS"], far)
    spec = Spec(module)
    (obligation,) = (
        o
        for o in induction.inductive(spec, weak=False, only=[spec.actions["flush"]])
        if o.invariant == induction.CAN_HAPPEN
    )

    def ask(theory: induction.Theory) -> Question:
        question = obligation.ask(theory)
        return replace(question, terms=(*question.terms, number(theory.before.end) == 60))

    assert settled(obligation, work=WORK).verdict == "proved"
    assert settled(replace(obligation, ask=ask), work=WORK).verdict != "proved"


def test_two_obligations_of_one_name_are_no_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = [*cut_equivalence.laws(), *cut_equivalence.laws()]
    monkeypatch.setattr(ledger, "every", lambda _subject: iter(twice))
    with pytest.raises(ValueError, match="give each a name of its own"):
        ledger.prove(["joining"])


@pytest.mark.parametrize("text", ["[]", "null", "{", '{"design: x: y": {}}', ""])
def test_a_cache_that_is_damaged_is_not_believed(text: str) -> None:
    path = ledger._remembered("joining")
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert ledger.recall("joining") == {}
    assert ledger.prove(["joining"]).exit_code == 0
    path.write_text(path.read_text().replace('"proved"', '"refuted"'))
    assert ledger.recall("joining") == {}


def test_what_is_lost_is_not_done() -> None:
    """A final that a crash takes is not pending any more, and was never seen."""
    calm = replace(broker.WHAT_IS_COMMITTED_IS_SEEN, disturbances={})
    assert "crash loses nothing" in failing(liveness.shown(SPECS["broker"], calm))


ENTRIES = st.dictionaries(st.integers(-3, 6), st.integers(-2, 3), max_size=5)


@settings(max_examples=40)
@given(entries=ENTRIES, low=st.integers(-4, 7), high=st.integers(-4, 7), value=st.integers(-2, 3))
def test_the_words_of_the_language_have_one_meaning(entries: dict[int, int], low: int, high: int, value: int) -> None:
    plain: Map[int, int] = Map(0)
    for key, entry in entries.items():
        plain = plain.set(key, entry)
    term: Any = UnknownMap(0, z3.K(z3.IntSort(), z3.IntVal(0)))
    for key, entry in entries.items():
        term = term.set(key, entry)
    every = all_between(low, high, lambda n: plain[n] <= value)
    for reading in (Quantification(), Quantification(range(-5, 9))):
        with symbolic.read(reading):
            asked = all_between(low, high, lambda n: term[n] <= value)
        assert induction.ask((symbolic.truth(asked) != every,)).verdict == "unsat"
    larger = symbolic.term(greatest, Unknown(z3.IntVal(low)), Unknown(z3.IntVal(high)))
    assert induction.ask((larger != greatest(low, high),)).verdict == "unsat"
    for of_plain, of_term in (
        (plain.set(low, value), term.set(low, value)),
        (plain.cleared(), term.cleared()),
        (plain.forget_from(low), term.forget_from(low)),
    ):
        for key in range(-5, 9):
            assert induction.ask((number(of_term[key]) != of_plain[key],)).verdict == "unsat"


@pytest.mark.parametrize("claimed", [0, 1])
def test_steps_in_turn_lead_where_they_are_stated_to(claimed: int) -> None:
    """Called, they are taken; read by Z3, any one of them leads to where the next one begins: or both refuse."""
    spec = SPECS["dispatch"]

    def scanned(_s: Any) -> Any:
        return language.in_turn(
            0, 3, lambda n: language.seen_as(spec.initial, scanned=n, start=claimed * n), spec.actions["scan"]
        )

    with symbolic.read(Quantification()):
        taken = [way for way in symbolic.ways(scanned, symbolic.symbolic(spec.initial), ()) if way.accepted]
        accepted = [way for way in taken if induction.ask(way.facts).verdict == "sat"]
    outcome = called(scanned, spec.initial, ())
    assert isinstance(outcome, Refused) == (not accepted) == bool(claimed)
    if not claimed:
        assert outcome == replace(spec.initial, scanned=3)
        same = symbolic.same_state(accepted[0].outcome, symbolic.symbolic(outcome))
        assert induction.ask((z3.Not(same),)).verdict == "unsat"


def test_the_language_has_six_words_that_readers_read_their_own_way() -> None:
    own = {"all_between", "count_between", "forget_from", "accepts", "filled", "in_turn"}
    assert own <= {*language.__all__, *vars(Map)}
    assert {name for name in vars(Quantification) if name in language.__all__} == {
        "all_between", "count_between", "accepts", "filled", "in_turn",
    }  # fmt: skip
    assert {name for name in vars(UnknownMap) if name[0] != "_" and callable(getattr(UnknownMap, name))} == {
        "set", "cleared", "forget_from",
    }  # fmt: skip


# -- false friends -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("friend", FALSE_FRIENDS, ids=lambda friend: friend.looks_true.__name__)
@pytest.mark.xfail(strict=True, raises=AssertionError, reason="it looks true, and is not")
def test_what_looks_true_is_true(friend: FalseFriend) -> None:
    for event, _, _, holds in friend.along():
        assert holds, event


@pytest.mark.parametrize("friend", FALSE_FRIENDS, ids=lambda friend: friend.looks_true.__name__)
def test_a_false_friend_breaks_at_the_end_of_its_story(friend: FalseFriend) -> None:
    *before, last = [holds for _, _, _, holds in friend.along()]
    assert all(before)
    assert not last
    assert len(friend.story()) == len(friend.events) + 4


def test_there_are_false_friends_enough() -> None:
    assert len({friend.looks_true for friend in FALSE_FRIENDS}) == len(FALSE_FRIENDS) >= 12


# -- the ledger and the command ------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_proofs_are_remembered_until_a_definition_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    first = ledger.prove(["ring"])
    assert first.exit_code == 0
    entries: list[ledger.LedgerEntry] = []
    again = ledger.prove(["ring"], on_progress=entries.append)
    assert again.obligations == first.obligations == entries
    monkeypatch.setattr(ledger, "digest", lambda _subject: "another")
    assert ledger.recall("ring") == {}


def test_a_changed_definition_has_another_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    before = ledger.digest("queue")
    ledger.digest.cache_clear()
    text = text_of
    monkeypatch.setattr(ledger, "text_of", lambda m: text(m) + "#" if m is SPECS["queue"].module else text(m))
    try:
        assert ledger.digest("queue") != before
        assert ledger.digest("joining") == ledger.digest("joining")
    finally:
        ledger.digest.cache_clear()


def test_a_budget_is_kept_and_what_is_left_is_stated() -> None:
    found = ledger.prove(["transaction"], ledger.ProofOptions(budget=0.0, fresh=True))
    assert {entry.result for entry in found.obligations} == {"budget"}
    assert found.exit_code == 3


def test_what_cannot_be_read_is_unknown_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """An invariant that raises is no proof, and no reason to fall silent about the others."""

    def raises(_theory: induction.Theory) -> Question:
        raise TypeError("no such thing")

    entry, _ = ledger._asked(Obligation(SPECS["log"], "odd", "append", raises), ledger.ProofOptions())
    assert (entry.result, entry.why) == ("unknown", "it cannot be read: TypeError: no such thing")
    monkeypatch.setattr(ledger, "_in_processes", lambda *_args: True)  # every process ended without a result
    found = ledger.prove(["joining"], ledger.ProofOptions(fresh=True))
    assert {entry.result for entry in found.obligations} == {"unknown"}
    assert found.exit_code == 3


def test_the_exit_code_is_that_of_the_worst() -> None:
    def ledger_of(*results: ledger.Outcome, reached: bool = True) -> int:
        entries = [
            ledger.LedgerEntry(
                spec="x", invariant="y", step="z", under="design", result=r, ms=0, work=0, reached=reached
            )
            for r in results
        ]
        return ledger.Ledger(z3="", digests={}, obligations=entries, seconds=0).exit_code

    assert ledger_of("proved") == 0
    assert ledger_of("proved", "unknown") == 3
    assert ledger_of("budget", "proved") == 3
    assert ledger_of("unknown", "refuted") == 1
    assert ledger_of("proved", "refuted", reached=False) == 3
    assert ledger_of() == 3


def test_the_command_proves_and_writes_json(tmp_path: Path) -> None:
    out = tmp_path / "ledger.json"
    done = gapless_process("prove", "ring", "joining", "--json", str(out))
    assert done.returncode == 0, done.stderr
    entries = json.loads(out.read_text())["obligations"]
    assert {"spec", "invariant", "step", "result", "ms"} <= set(entries[0])
    assert {entry["result"] for entry in entries} == {"proved"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("proved")]
    assert len(lines) == len(entries)
    assert f"{len(entries)} of {len(entries)} obligations proved by Z3 {z3.get_version_string()}" in done.stdout


def test_the_command_says_what_it_does_not_know() -> None:
    unknown = gapless_process("prove", "joining", "--work", "1", "--fresh")
    assert unknown.returncode == 3
    assert "unknown" in unknown.stdout
    unknown = gapless_process("prove", "op_bacth")
    assert unknown.returncode == 2
    assert (
        "there is no spec 'op_bacth' (did you mean op_batch?): choose among aborted_index, broker, check_service"
        in unknown.stderr
    )
