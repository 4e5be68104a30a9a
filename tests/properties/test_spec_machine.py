"""`machine_for`: a user's implementation next to a spec: a departure is a story, an empty run fails."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, reproduce_failure, settings

from examples.lease_service import LeaseService, Refused
from gapless import machine_for
from gapless.properties.machines.mismatch import Mismatch
from gapless.properties.machines.stateful.log_machine import LogMachine
from gapless.properties.machines.stateful.spec_machine import Unhealthy
from gapless.properties.reference_store.store_subject import ReferenceStore
from gapless.spec.catalog import SPECS
from gapless.traces.specs import NoSpec, load
from tests.support.command_line import ROOT
from tests.support.lease_service import LEASE, changed, few, run
from tests.support.night import by_day


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


def test_a_step_that_must_be_refused_is_reported_as_a_story() -> None:
    with pytest.raises(Mismatch) as found:
        run(changed(write=stale))
    lines = str(found.value).splitlines()
    assert lines[0].startswith(
        'write breaks the rule "the token is no older than that of the last write": Faulty departs from '
    )
    assert lines[2].startswith("  1. grant(worker=")
    assert "not allowed, and Faulty takes it" in str(found.value)
    assert lines[-2:] == [
        'write breaks the rule "the token is no older than that of the last write".',
        "Consequence: a worker whose lease is long over overwrites what its successor wrote.",
    ]
    assert [line.split("(")[0].strip() for line in lines[2:-3]] == [
        "1. grant", "2. expire", "3. grant", "4. write", "5. write",
    ]  # fmt: skip


def test_a_state_that_is_another_is_reported() -> None:
    with pytest.raises(
        Mismatch, match=r"Not the same state behind the last step:\ntokens\[-?\d+\]: the spec has 1, Faulty has 0\."
    ):
        run(changed(grant=forgetful))


def test_a_step_that_is_refused_for_no_reason_is_reported() -> None:
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

    class NoWrites(LeaseService):
        """Its spec's writes are never possible, for no lease is given."""

        absent = {"grant": "out of order"}  # noqa: RUF012 - a constant

    with pytest.raises(Unhealthy, match="none was write: run more examples, or name what is rare"):
        run(NoWrites)
    run(NoWrites, rare=["write"])


def test_what_a_class_lacks_is_reported() -> None:
    class Half:
        """One step of three."""

        def grant(self, worker: int, token: int) -> None: ...

    with pytest.raises(TypeError, match="Half has no expire, write, as_spec, refused: define them, or say in `absent`"):
        machine_for(LEASE, Half)
    with pytest.raises(TypeError, match="lease has no step wait"):
        machine_for(LEASE, LeaseService, rare=["wait"])
    with pytest.raises(ValueError, match="no such profile"):
        machine_for(LEASE, LeaseService, profile="stern")


STATE = {"taken": 0, "last": 0, "tokens": {}, "seen": 0}


@pytest.mark.parametrize(
    ("state", "complaint"),
    [
        (
            {"taken": 0, "lst": 0, "tokens": {}, "seen": 0},
            "missing: last; not a field of State: lst (did you mean last?)",
        ),
        ({"taken": 0, "last": 0, "tokens": {}}, "missing: seen (or name it in `unknown`, and why)"),
        (None, "returns None: expected a dict of taken, last, tokens, seen"),
        ({**STATE, "last": None}, "last is None: expected a whole number"),
        ({**STATE, "tokens": [7]}, "tokens is [7]: expected a dict of the keys whose value is not 0"),
        ({**STATE, "tokens": {1: "seven"}}, "tokens[1] is 'seven': expected a whole number"),
        ({**STATE, "tokens": {"a": 7}}, "a key of tokens is 'a': expected a whole number"),
    ],
)
def test_a_state_that_is_none_is_refused_in_one_sentence(state: Any, complaint: str) -> None:
    with pytest.raises(TypeError) as found:
        run(changed(as_spec=lambda _self: state))
    assert str(found.value).startswith(f"Faulty.as_spec{':' if state else ''} {complaint}")
    assert not frames_of_hypothesis(found.value), "it is not where the mistake is"


def frames_of_hypothesis(error: BaseException) -> list[str]:
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__) if "/hypothesis/" in frame.filename]


def test_a_method_with_other_arguments_is_refused_before_the_run() -> None:
    with pytest.raises(TypeError, match=r"Faulty.write takes \(worker, tok\): expected \(worker, token\)"):
        machine_for(LEASE, changed(write=lambda self, worker, tok: None))  # noqa: ARG005 - as a user writes it
    with pytest.raises(TypeError, match=r"Faulty\.refused is 'LeaseError': expected the exceptions"):
        run(changed(refused="LeaseError"))
    run(changed(refused=Refused))

    class Connected(LeaseService):
        """A class that needs an address."""

        def __init__(self, _address: str) -> None:
            super().__init__()

    with pytest.raises(TypeError, match=r"is made by calling Connected\(\)"):
        run(Connected)  # type: ignore[arg-type] # a mistake


def test_a_file_is_looked_for_next_to_the_caller_and_then_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a user's test module in tests/ does, with pytest run from the folder above."""
    tests = tmp_path / "tests"
    tests.mkdir()
    caller = tests / "test_lease.py"
    caller.write_text("from gapless import machine_for\ndef machine(name, of): return machine_for(name, of)\n", "utf-8")
    names: dict[str, Any] = {"__name__": "test_lease"}
    exec(compile(caller.read_text("utf-8"), str(caller), "exec"), names)  # noqa: S102 - the test's own
    monkeypatch.chdir(tmp_path)
    expected = (
        f"spec.py: no such file in {tests} (the folder of test_lease.py) nor in {tmp_path} (the working directory)"
    )
    with pytest.raises(NoSpec, match=re.escape(expected)):
        names["machine"]("spec.py", LeaseService)
    (tmp_path / "spec.py").write_text(Path(LEASE).read_text("utf-8"), "utf-8")
    assert names["machine"]("spec.py", LeaseService).spec.called == "spec.py"
    (tests / "spec.py").write_text(Path(LEASE).read_text("utf-8"), "utf-8")
    assert names["machine"]("spec.py", LeaseService).spec.called == "tests/spec.py"
    with pytest.raises(NoSpec, match=r"^/nowhere/spec\.py: no such file$"):
        names["machine"]("/nowhere/spec.py", LeaseService)


def test_a_file_is_looked_for_above_the_caller_up_to_the_root_of_its_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with pytest run from tests/, and the spec in specs/."""
    tests, specs = tmp_path / "shop/tests", tmp_path / "shop/specs"
    tests.mkdir(parents=True)
    specs.mkdir()
    (specs / "jobs.py").write_text(Path(LEASE).read_text("utf-8"), "utf-8")
    (tmp_path / "outside.py").write_text(Path(LEASE).read_text("utf-8"), "utf-8")
    monkeypatch.chdir(tests)
    with pytest.raises(NoSpec, match=r"specs/jobs\.py: no such file in "):
        load("specs/jobs.py", tests / "test_jobs.py")
    (tmp_path / "shop/pyproject.toml").touch()
    assert load("specs/jobs.py", tests / "test_jobs.py").called == "../specs/jobs.py"
    expected = f"outside.py: no such file in {tmp_path / 'shop'} nor in {tests} (the working directory)"
    with pytest.raises(NoSpec, match=re.escape(expected)):
        load("outside.py", tests / "test_jobs.py")


def test_a_user_chooses_how_long_it_runs_and_nothing_else_changes() -> None:
    """`settings(…)` alone has a deadline, and shrinks: neither is of use here."""
    usual = settings.get_current_profile_name()
    settings.load_profile("default")
    try:
        case = machine_for(LEASE, changed(write=stale)).TestCase
    finally:
        settings.load_profile(usual)
    assert (case.settings.max_examples, case.settings.stateful_step_count) == (30, 100)
    case.settings = settings(max_examples=40, derandomize=True, database=None)
    test = case("runTest")
    with pytest.raises(Mismatch):
        test.debug()
    assert (test.settings.max_examples, test.settings.deadline) == (40, None)
    assert Phase.shrink not in test.settings.phases


def test_the_story_is_of_the_first_number_where_that_will_do() -> None:
    """A third worker's mistake is told of worker 0, if it is the same."""
    with pytest.raises(Mismatch) as found:
        run(changed(grant=forgetful_of_all))
    assert "worker=0" in str(found.value)
    assert str(found.value).count("grant(") == 1


def forgetful_of_all(self: LeaseService, worker: int, token: int) -> None:
    LeaseService.grant(self, worker, token)
    self.given.clear()


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
    assert note.startswith("\nAgain: run this test again")
    decorated = note.splitlines()[-1]
    assert decorated.endswith("(machine_for(…)).TestCase")
    version, blob = ast.literal_eval(decorated.removeprefix("reproduce_failure").split("(machine_for")[0])
    case = reproduce_failure(version, blob)(machine_for(LEASE, changed(write=stale))).TestCase
    case.settings = settings(case.settings, database=None, derandomize=False)
    with pytest.raises(Mismatch) as again:
        case("runTest").debug()
    assert str(again.value) == str(found.value)
    assert "once more" not in again.value.__notes__[0], "nothing is kept without a database"


def test_observers_are_reported_spec_steps_and_coverage(tmp_path: Path) -> None:
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
    output = [one for one in map(json.loads, file.read_text("utf-8").splitlines()) if one["type"] == "test_case"]
    assert len(output) in {30, 31}  # one may be longer than Hypothesis keeps
    assert {(one["features"]["spec"], one["features"]["implementation"]) for one in output} == {
        ("lease", "LeaseService")
    }
    whole = [one for one in output if one["features"]["steps reached"] == "3 of 3"]
    assert whole
    assert {"lease.grant taken", "lease.expire taken", "lease.write taken"} <= whole[0]["features"].keys()
    assert any(str(line).startswith("grant(worker=") for line in whole[0]["metadata"]["notes"])
