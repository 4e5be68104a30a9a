"""A counterexample is shown from the beginning if a run leads there, and as a bare state otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from gapless.properties.proof import counterexamples, induction, ledger, unrolling
from gapless.properties.proof.counterexamples import Result, settled, story
from gapless.spec.catalog import SPECS, Spec
from tests.support.changed_spec import changed
from tests.support.toy_spec import toy

TWO_COUNTS = '''"""Two counters that go together; of the second, nothing says so."""

from dataclasses import dataclass

from gapless.spec.language import replace, require


@dataclass(frozen=True, slots=True)
class State:
    first: int = 0
    second: int = 0


def both(s: State) -> State:
    return replace(s, first=s.first + 1, second=s.second + 1)


def pay(s: State) -> State:
    require(s.first == 2, "two-are-there", because="two are there", otherwise="one is missing")
    return replace(s, second=s.second - 2)


def nothing_is_owed(s: State) -> bool:
    """Otherwise a payment had no money."""
    return 0 <= s.second


INITIAL = State()
ACTIONS = (both, pay)
INVARIANTS = (nothing_is_owed,)
STEP_PROPERTIES = ()
'''


def refuted(spec: Spec, sentence: str) -> Result:
    results = (settled(o) for o in induction.inductive(spec, weak=False) if o.invariant == sentence)
    return next(result for result in results if result.verdict == "refuted")


def test_a_run_from_the_beginning_is_reported() -> None:
    """The batch that a ring has no room for: two are cut, and the one that is a whole ring ahead is decoded."""
    spec = changed(SPECS["ring"], "require(batch < s.next + s.slots,", "require(batch <= s.next + s.slots,")
    result = refuted(spec, "a_slot_holds_the_batch_that_belongs_there")
    run = unrolling.run_to(result.obligation)
    assert run is not None
    state = spec.initial
    for step, args, before, after in run.steps:
        assert before == state
        state = step(before, *args.values())
        assert state == after
    assert run.example.before == state
    lines = story(result, run)
    assert lines[2] == "  From the beginning:"
    assert lines[3].startswith("  1. ")
    assert "Broken: a slot holds the batch that belongs there, for slot = " in "\n".join(lines)


@pytest.mark.parametrize("steps", [3, 2])
def test_a_run_is_as_short_as_can_be(steps: int, tmp_path: Path) -> None:
    """Two steps of each kind, once pay, pay again: three steps lead to the one that breaks it, and two do not."""
    result = refuted(toy(tmp_path, "counts", TWO_COUNTS), "nothing_is_owed")
    run = unrolling.run_to(result.obligation, depth=steps)
    assert (run is not None) == (steps == 3)
    if run:
        assert [step.__name__ for step, *_ in run.steps] == ["both", "both", "pay"]
        assert run.example.after.second == -2


def test_what_no_run_leads_to_is_reported_as_that(tmp_path: Path) -> None:
    """The two go together, and only an invariant could say so: Z3 begins where they do not."""
    once = TWO_COUNTS.replace("second=s.second - 2", "first=s.first - 2, second=s.second - 2")
    spec = toy(tmp_path, "once", once)
    result = refuted(spec, "nothing_is_owed")
    assert unrolling.run_to(result.obligation) is None
    entry = ledger.settle(result.obligation)
    assert entry.result == "refuted"
    assert "an invariant is missing" in entry.why
    assert any("which may not be reachable," in line for line in entry.story)


def test_a_ledger_tells_the_run(tmp_path: Path) -> None:
    obligation = refuted(toy(tmp_path, "counts", TWO_COUNTS), "nothing_is_owed").obligation
    entry = ledger.settle(obligation)
    assert not entry.why
    assert entry.story[2:6] == [
        "  From the beginning:",
        "  1. both()   first 0 → 1, second 0 → 1",
        "  2. both()   first 1 → 2, second 1 → 2",
        "  3. pay()    second 2 → 0",
    ]


def test_a_false_property_is_found_soon() -> None:
    """Z3 searches among all numbers only for what no example in small ones speaks against."""
    spec = changed(SPECS["ring"], "require(batch < s.next + s.slots,", "require(batch <= s.next + s.slots,")
    result = refuted(spec, "a_slot_holds_the_batch_that_belongs_there")
    assert result.work < 2 * counterexamples.SOON
