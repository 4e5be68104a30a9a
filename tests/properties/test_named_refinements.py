"""Refinements that a spec file names: proved, refuted with a run, and refused where the other spec lacks a part."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from benchmarks.protocols import replaced
from gapless.properties.proof import counterexamples, ledger, refinement
from gapless.spec.catalog import Spec
from gapless.traces.specs import load
from tests.support.command_line import ROOT, gapless

PROTOCOLS = ROOT / "examples" / "protocols"
HEAD = """from dataclasses import dataclass

from gapless.spec.language import Map, Refines, applies, replace


@dataclass(frozen=True, slots=True)
class State:
"""
BELOW = f"""{HEAD}    sent: int = 0
    taken: int = 0
    colour: int = 0


def send(s: State) -> State:
    return replace(s, sent=s.sent + 1)


def take(s: State) -> State:
    applies(s.taken < s.sent)
    return replace(s, taken=s.taken + 1)


def paint(s: State, colour: int) -> State:
    return replace(s, colour=colour)


def counts_are_in_order(s: State) -> bool:
    return 0 <= s.taken <= s.sent


def waiting(s: State) -> int:
    return s.sent - s.taken


def is_waiting(s: State, number: int) -> bool:
    return s.taken <= number < s.sent


def end(s: State) -> int:
    return s.sent


def first(s: State) -> int:
    return s.taken


INITIAL = State()
ACTIONS = (send, take, paint)
INVARIANTS = (counts_are_in_order,)
REFINES = (
    Refines(
        "above.py",
        steps={{send: "put", take: ("put", "get")}},
        sees={{"size": waiting, "there": is_waiting}},
        args={{"put.number": end, "get.number": first}},
    ),
)
"""
ABOVE = f"""{HEAD}    size: int = 0
    there: Map[int, bool] = Map(False)


def put(s: State, number: int) -> State:
    applies(not s.there[number])
    return replace(s, size=s.size + 1, there=s.there.set(number, True))


def get(s: State, number: int) -> State:
    applies(s.there[number])
    return replace(s, size=s.size - 1, there=s.there.set(number, False))


def anything(s: State) -> bool:
    return True


INITIAL = State()
ACTIONS = (put, get)
INVARIANTS = (anything,)
"""


def written(folder: Path, *changes: tuple[str, str], above: tuple[str, str] = ("", "")) -> Spec:
    """The spec that refines another, both with parts replaced."""
    text = BELOW
    for old, new in changes:
        text = replaced(text, old, new)
    (folder / "below.py").write_text(text, encoding="utf-8")
    (folder / "above.py").write_text(replaced(ABOVE, *above) if above[0] else ABOVE, encoding="utf-8")
    return load(folder / "below.py")


def refuted(spec: Spec) -> dict[str, list[str]]:
    """The steps that are no step of the other spec, and the story of each."""
    results = {one.step: counterexamples.settled(one) for one in refinement.obligations(spec)}
    assert {one.verdict for one in results.values()} <= {"proved", "refuted"}
    return {step: counterexamples.story(one) for step, one in results.items() if one.verdict == "refuted"}


def test_two_phase_commit_refines_transaction_commit_for_any_number_of_managers() -> None:
    assert refuted(load(PROTOCOLS / "two_phase_commit.py")) == {}


def test_who_prepares_after_it_gave_up_breaks_no_property_but_the_refinement(tmp_path: Path) -> None:
    for name in ("two_phase_commit", "transaction_commit"):
        text = (PROTOCOLS / f"{name}.py").read_text(encoding="utf-8")
        if name == "two_phase_commit":
            sound = 's.stage[manager] == Stage.WORKING,\n        "manager-works-when-it-prepares"'
            text = replaced(text, sound, sound.replace("== Stage.WORKING", "!= Stage.COMMITTED"))
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    spec = load(tmp_path / "two_phase_commit.py")
    (wrong,) = (one for one in refinement.obligations(spec) if one.step == "prepare")
    entry = ledger.settle(wrong)
    assert entry.reached
    assert (
        "\n".join(entry.story)
        == """two_phase_commit: prepare is no step of transaction_commit, and no stutter.

  From the beginning:
  1. give_up(manager=0)   stage[0] WORKING → ABORTED
  2. prepare(manager=0)   stage[0] ABORTED → PREPARED, promised[0] 0 → 1

prepare is seen as stage[0] ABORTED → PREPARED, which transaction_commit does not do; its prepare needs: the \
manager is working."""
    )


def test_fields_and_arguments_are_given_by_functions(tmp_path: Path) -> None:
    assert refuted(written(tmp_path)) == {}


WRONG = {
    "a step that changes more": (("sent=s.sent + 1)", "sent=s.sent + 2)"), "send"),
    "a step that is not listed": (('take: ("put", "get")', 'paint: "put"'), "take"),
    "another argument": (
        ('"put.number": end, "get.number": first', '"put.number": first, "get.number": end'),
        "take",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_step_that_is_none_of_the_other_spec_is_refuted(wrong: str, tmp_path: Path) -> None:
    change, step = WRONG[wrong]
    assert step in refuted(written(tmp_path, change))


def test_a_step_that_differs_from_each_at_another_key_is_refuted(tmp_path: Path) -> None:
    """One unknown key for all would overlook it: each of two steps is right at the key where the other is wrong."""
    spec = written(
        tmp_path,
        ("    colour: int = 0\n", "    m: Map[int, int] = Map(0)\n"),
        ("def paint(s: State, colour: int) -> State:\n    return replace(s, colour=colour)",
         "def paint(s: State) -> State:\n    return replace(s, m=s.m.set(0, 1).set(1, 1))"),
        ('take: ("put", "get")}', 'take: "get", paint: ("left", "right")}'),
        above=("ACTIONS = (put, get)", "ACTIONS = (put, get, left, right)"),
    )  # fmt: skip
    above = (tmp_path / "above.py").read_text(encoding="utf-8")
    above = replaced(above, "    size: int = 0\n", "    size: int = 0\n    m: Map[int, int] = Map(0)\n")
    sides = "".join(
        f"def {name}(s: State) -> State:\n    return replace(s, m=s.m.set({key}, 1))\n\n\n"
        for name, key in (("left", 0), ("right", 1))
    )
    (tmp_path / "above.py").write_text(replaced(above, "INITIAL", f"{sides}INITIAL"), encoding="utf-8")
    assert "paint" in refuted(spec)


LACKING = tomllib.loads(Path(__file__).with_name("refinement_mistakes.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("lack", LACKING)
def test_a_part_that_is_missing_is_named_with_the_line(lack: str, tmp_path: Path) -> None:
    old, new, complaint = LACKING[lack]
    for name, text in (("below", BELOW), ("above", ABOVE)):
        (tmp_path / f"{name}.py").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(complaint)) as refused:
        [*refinement.of(load(tmp_path / "below.py"))]
    assert lack == "no file" or re.search(r"below\.py:\d+: ", str(refused.value))


def test_the_command_refuses_it_in_one_sentence(tmp_path: Path) -> None:
    written(tmp_path, ('"put", take', '"puts", take'))
    ran = gapless("prove", str(tmp_path / "below.py"))
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)


def test_rules_list_claims_and_refinements() -> None:
    listed = gapless("rules", "--spec", str(PROTOCOLS / "two_phase_commit.py")).stdout
    assert "refinement: each step is a step of transaction_commit.py, or changes nothing there" in listed
    listed = gapless("rules", "--spec", str(PROTOCOLS / "peterson.py")).stdout
    assert "claim, with a rank: who wants to enter does" in listed
