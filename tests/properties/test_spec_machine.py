"""`machine_for`: anybody's implementation beside a spec: what departs is a story, a run that shows nothing fails."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import reproduce_failure, settings

from examples.lease_service import LeaseService, Refused
from gapless import machine_for
from gapless.properties.machines.mismatch import Mismatch
from gapless.properties.machines.stateful.log_machine import LogMachine
from gapless.properties.machines.stateful.spec_machine import Unhealthy
from gapless.properties.reference_store.store_subject import ReferenceStore
from gapless.spec.catalog import SPECS
from tests.support.command_line import ROOT
from tests.support.night import by_day

LEASE = str(ROOT / "examples/lease.py")


def few(case: Any, examples: int = 30) -> Any:
    """The same test, as short as a test of a test should be."""
    case.settings = settings(case.settings, max_examples=examples, derandomize=True, database=None)
    return case


def run(subject: Callable[[], Any], spec: str = LEASE, **options: Any) -> None:
    """One run of the machine, as unittest has it. Raises what it finds."""
    case: type[unittest.TestCase] = machine_for(spec, subject, **options).TestCase
    few(case)("runTest").debug()


def changed(**methods: Callable[..., Any]) -> type[LeaseService]:
    return type("Faulty", (LeaseService,), methods)


def test_a_sound_implementation_conforms() -> None:
    run(LeaseService)


def stale(self: LeaseService, worker: int, token: int) -> None:
    if token <= 0 or self.given.get(worker, 0) != token:
        raise Refused
    self.written = token


def forgetful(self: LeaseService, worker: int, token: int) -> None:
    LeaseService.grant(self, worker, token)
    self.given.pop(worker - 1, None)


def strict(self: LeaseService, worker: int, token: int) -> None:
    if token == 2:
        raise Refused("two is no token")
    LeaseService.grant(self, worker, token)


def test_a_step_that_must_be_refused_is_told_as_a_story() -> None:
    with pytest.raises(Mismatch) as found:
        run(changed(write=stale))
    lines = str(found.value).splitlines()
    assert lines[0].startswith("Faulty departs from ")
    assert lines[2].startswith("  1. grant(worker=")
    assert "not allowed, and Faulty takes it" in str(found.value)
    assert lines[-2:] == [
        'write breaks the rule "the token is no older than that of the last write".',
        "Consequence: a worker whose lease is long over overwrites what its successor wrote.",
    ]
    assert [line.split("(")[0].strip() for line in lines[2:-3]] == [
        "1. grant", "2. expire", "3. grant", "4. write", "5. write",
    ]  # fmt: skip


def test_a_state_that_is_another_is_told() -> None:
    with pytest.raises(
        Mismatch, match=r"Not the same state behind the last step:\ntokens\[-?\d+\]: the spec has \d+, Faulty 0\."
    ):
        run(changed(grant=forgetful))


def test_a_step_that_is_refused_for_no_reason_is_told() -> None:
    with pytest.raises(Mismatch, match="the spec takes it, and Faulty refuses: two is no token"):
        run(changed(grant=strict))


def test_an_error_that_is_no_refusal_has_its_story() -> None:
    def breaks(_self: LeaseService) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as found:
        run(changed(expire=breaks))
    assert "expire()   Faulty raises ZeroDivisionError, which is no refusal" in "\n".join(found.value.__notes__)


def test_a_run_that_shows_little_fails() -> None:
    with pytest.raises(Unhealthy, match="fewer than 99%: this run shows little"):
        run(LeaseService, share=0.99)

    class NeverWritten(LeaseService):
        """Its spec's writes are never possible, for no lease is given."""

        absent = {"grant": "out of order"}  # noqa: RUF012 - a constant

    with pytest.raises(Unhealthy, match="none was write: run more examples, or name what is rare"):
        run(NeverWritten)
    run(NeverWritten, rare=["write"])


def test_what_a_class_lacks_is_told() -> None:
    class Half:
        """One step of three."""

        def grant(self, worker: int, token: int) -> None: ...

    with pytest.raises(TypeError, match="Half has no expire, write, as_spec, refused: define it, or say in `absent`"):
        machine_for(LEASE, Half)
    with pytest.raises(TypeError, match="lease has no step wait"):
        machine_for(LEASE, LeaseService, rare=["wait"])
    with pytest.raises(ValueError, match="no such profile"):
        machine_for(LEASE, LeaseService, profile="stern")
    with pytest.raises(TypeError, match="seen is one too many, or missing"):
        run(changed(as_spec=lambda _self: {"held": 0, "last": 0, "tokens": {}}))


def test_a_whole_store_gets_the_machine_that_crashes_it() -> None:
    assert issubclass(machine_for("log", ReferenceStore), LogMachine)
    with pytest.raises(ValueError, match="ring is none of these"):
        machine_for("ring", ReferenceStore)


@pytest.mark.parametrize("spec", by_day(["queue", "ring", "permits", "coordinator", "checkpoint"], 2 / 5))
def test_the_model_itself_conforms_and_the_steps_are_met(spec: str) -> None:
    """The arguments that are offered lead somewhere: a tenth of the steps is taken."""
    of = SPECS[spec]

    class Model:
        """The spec, as an implementation of itself."""

        refused = (ArithmeticError,)

        def __init__(self) -> None:
            self.state = of.initial

        def as_spec(self) -> Any:
            """Its state."""
            return self.state

    def does(name: str) -> Callable[..., None]:
        def do(self: Model, **args: int) -> None:
            try:
                self.state, _ = of.step(self.state, name, args, "strict")
            except Exception as error:
                raise ArithmeticError from error

        return do

    for name in of.actions:
        setattr(Model, name, does(name))
    machine = machine_for(spec, Model, rare=[action.__name__ for action in of.module.ACTIONS])
    few(machine.TestCase, 10)("runTest").debug()


def test_a_failure_says_how_to_see_it_again() -> None:
    """By what it says, the same is found at once: `reproduce_failure` runs the one case."""
    with pytest.raises(Mismatch) as found:
        run(changed(write=stale))
    (note,) = found.value.__notes__
    assert note.startswith("\nAgain: run this test once more")
    decorated = note.splitlines()[-1]
    assert decorated.endswith("(machine_for(…)).TestCase")
    version, blob = ast.literal_eval(decorated.removeprefix("reproduce_failure").split("(machine_for")[0])
    case = reproduce_failure(version, blob)(machine_for(LEASE, changed(write=stale))).TestCase
    case.settings = settings(case.settings, database=None, derandomize=False)
    with pytest.raises(Mismatch) as again:
        case("runTest").debug()
    assert str(again.value) == str(found.value)
    assert "once more" not in again.value.__notes__[0], "nothing is kept without a database"


def test_observers_are_told_spec_steps_and_coverage(tmp_path: Path) -> None:
    """Hypothesis' records, one for each case, as `HYPOTHESIS_EXPERIMENTAL_OBSERVABILITY=1` writes them."""
    code = (
        "from hypothesis import settings; from gapless import machine_for; "
        "from examples.lease_service import LeaseService; "
        f"case = machine_for({LEASE!r}, LeaseService).TestCase; "
        "case.settings = settings(case.settings, max_examples=30, derandomize=True); case('runTest').debug()"
    )
    environment = {
        "HYPOTHESIS_EXPERIMENTAL_OBSERVABILITY_NOCOVER": "1",  # as OBSERVABILITY, and faster
        "HYPOTHESIS_STORAGE_DIRECTORY": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
    }
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, env={**os.environ, **environment}, check=True
    )
    (file,) = (tmp_path / "observed").glob("*_testcases.jsonl")
    told = [one for one in map(json.loads, file.read_text("utf-8").splitlines()) if one["type"] == "test_case"]
    assert len(told) == 30
    assert {(one["features"]["spec"], one["features"]["implementation"]) for one in told} == {("lease", "LeaseService")}
    whole = [one for one in told if one["features"]["steps reached"] == "3 of 3"]
    assert whole
    assert {"lease.grant taken", "lease.expire taken", "lease.write taken"} <= whole[0]["features"].keys()
    assert any(str(line).startswith("grant(worker=") for line in whole[0]["metadata"]["notes"])
