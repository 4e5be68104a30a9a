"""Walks at random: the same for a seed, with coverage, and a shortened run; and steps by hand."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.protocols import suite
from gapless.properties.exploration.graph import Call
from gapless.properties.exploration.stepping import step_by_hand
from gapless.properties.exploration.walk_report import exit_code
from gapless.properties.exploration.walks import Walker, Walks, walks
from gapless.spec.catalog import Spec
from tests.support.command_line import gapless

SUITE = suite()


def test_the_same_seed_walks_the_same_way(tmp_path: Path) -> None:
    spec = SUITE["two_phase_commit"].spec(tmp_path)
    one, again, other = walked(spec), walked(spec), walked(spec, seed=1)
    assert (one.coverage, one.met, one.steps) == (again.coverage, again.met, again.steps)
    assert one.coverage != other.coverage
    assert one.met <= 288
    assert one.coverage.never_taken(spec) == []
    assert one.coverage.never_refused(spec) == []
    assert exit_code([one]) == 0


def test_what_is_never_taken_is_named_and_no_pass(tmp_path: Path) -> None:
    spec = SUITE["two_phase_commit"].spec(tmp_path)
    short = walks(spec, spec.bound, count=3, length=2)  # type: ignore[arg-type]
    assert "commit" in short.coverage.never_taken(spec)
    assert exit_code([short]) == 3


@pytest.mark.parametrize("name", ["peterson", "lock", "ring_buffer", "vouchers"])
def test_a_run_that_breaks_a_property_is_shortened(name: str, tmp_path: Path) -> None:
    protocol = SUITE[name]
    spec = protocol.spec(tmp_path, wrong=True)
    found = walked(spec)
    assert found.broken is not None
    path, states = found.broken.broken.path, found.broken.states
    assert protocol.planted.steps <= len(path) <= protocol.planted.steps + 4
    for call, (before, after) in zip(path, pairwise(states), strict=True):
        assert spec.actions[call.action](before, *call.args) == after
    broken = found.broken.broken
    assert not broken.holds(*states[-broken.states :], *broken.witness.values())
    assert exit_code([found]) == 1


def test_calls_that_do_not_matter_are_left_out(tmp_path: Path) -> None:
    spec = SUITE["lock"].spec(tmp_path, wrong=True)
    assert spec.bound is not None
    one, other = (0,), (1,)
    calls = [Call("want", other), Call("want", one), Call("enter", one)]
    run = Walker(spec, spec.bound).shortened(spec.initial, calls, spec.invariants()[1])
    assert run.broken.path == (Call("want", one), Call("enter", one))


def test_the_command_walks(tmp_path: Path) -> None:
    SUITE["peterson"].spec(tmp_path, wrong=True)
    path = str(tmp_path / "peterson.py")
    ran = gapless("explore", path, "--walks", "20", "--seed", "0", "--json", str(tmp_path / "found.json"))
    assert ran.exit_code == 1, ran.output
    assert "peterson: 20 walks, " in ran.stdout
    assert f"Again: gapless explore {path} --walks 20 --seed 0" in ran.stdout
    found = json.loads((tmp_path / "found.json").read_text())["walks"][0]
    assert found["story"]
    assert found["path"]
    assert gapless("explore", path, "--walks", "2", "--symmetry").exit_code == 2
    assert gapless("explore", path, "--walks", "2", "--plain").exit_code == 2
    assert gapless("explore", path, "--walks", "2", "--profile", "rocketmq").exit_code == 2


def test_steps_by_hand_go_back_and_say_what_is_refused(tmp_path: Path) -> None:
    spec = SUITE["lock"].spec(tmp_path)
    words, shown = iter(["1", "1", "r", "b", "?", "2", "99", "q"]), list[str]()
    session = step_by_hand(spec, spec.bound, lambda: next(words), shown.append)  # type: ignore[arg-type]
    assert [call.action for call in session.calls] == ["want", "enter"]
    assert "   1. want(process=0)   place[0] RESTING → WAITING" in shown
    assert "after 2: place[0] = WAITING, place[1] = WAITING" in shown
    assert any("finish(process=" in line and "the step applies here" in line for line in shown)


def test_steps_by_hand_end_with_the_input_and_show_what_is_broken(tmp_path: Path) -> None:
    spec = SUITE["lock"].spec(tmp_path, wrong=True)
    words, shown = iter(["1", "2"]), list[str]()

    def ask() -> str:
        for word in words:
            return word
        raise EOFError

    session = step_by_hand(spec, spec.bound, ask, shown.append)  # type: ignore[arg-type]
    assert len(session.calls) == 2
    assert "BROKEN: who_is_inside_has_the_lock" in shown
    session.back()
    session.back()
    session.back()
    assert session.states == [spec.initial]


def walked(spec: Spec, seed: int = 0) -> Walks:
    assert spec.bound is not None
    return walks(spec, spec.bound, count=40, seed=seed)
