"""Generated runs meet every rule both ways, conform, and show faults that are planted into a service."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from examples.lease_service import LeaseService, Refused
from gapless import check
from gapless.properties.exploration.adaptive_bounds import bound_for
from gapless.properties.exploration.generated_files import write
from gapless.properties.exploration.generation import Suite, Target, generate, targets_of
from gapless.properties.machines.lockstep import StepMismatch
from gapless.properties.machines.stateful.spec_machine import SpecMachine, machine_for
from gapless.spec.catalog import Spec
from gapless.traces.specs import load
from gapless.traces.stories.playing import differences
from gapless.traces.stories.story import read
from tests.support.command_line import ROOT, gapless
from tests.support.night import by_day

OURS = by_day(["ring", "permits", "dispatch", "op_batch", "visibility", "delivery"], share=1 / 3)
PROTOCOLS = by_day(
    ["two_phase_commit", "transaction_commit", "lock", "vouchers", "ring_buffer", "smokers"], share=1 / 3
)
LEASE = ROOT / "examples/lease.py"


@pytest.mark.parametrize("name", [*OURS, *(f"examples/protocols/{name}.py" for name in PROTOCOLS), "examples/lease.py"])
def test_runs_meet_the_rules_both_ways_and_conform(name: str, tmp_path: Path) -> None:
    spec = load(ROOT / name if name.endswith(".py") else name)
    suite = generate(spec, bound_for(spec))
    assert suite.covered >= 0.95, suite.missing
    assert met(suite) == suite.wanted - {*suite.missing}
    assert suite.wanted == targets_of(spec)
    write(suite, tmp_path)
    report = check(tmp_path / f"{spec.name}.ndjson", specs=[spec] if name.endswith(".py") else [])
    assert report.verdict == "conforms"


def met(suite: Suite) -> set[Target]:
    """The targets that the steps themselves show: that a step is taken, and which rule refuses."""
    found = {one for one in suite.wanted if one.rule and one.outcome == "ok"} - {*suite.missing}
    for run in suite.runs:
        state = suite.spec.initial
        for step in run:
            try:
                state = suite.spec.actions[step.call.action](state, *step.call.args)
            except Exception as refusal:  # noqa: BLE001 - Refused, as any reader raises it
                found.add(Target(step.call.action, getattr(refusal, "rule", ""), "refused"))
            else:
                found.add(Target(step.call.action, "", "ok"))
            assert state == step.after
    return found & suite.wanted


def test_the_same_seed_makes_the_same_files(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        assert gapless("generate", str(LEASE), "--out", str(tmp_path / folder)).exit_code == 0
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == ["lease-1.story", "lease-2.story", "lease.ndjson", "lease_runs.py"]
    assert [(tmp_path / "a" / name).read_bytes() for name in files] == [
        (tmp_path / "b" / name).read_bytes() for name in files
    ]


def test_stories_are_as_they_say_and_the_program_performs(tmp_path: Path) -> None:
    gapless("generate", str(LEASE), "--out", str(tmp_path))
    stories = [read(path) for path in sorted(tmp_path.glob("*.story"))]
    assert [list(differences(story)) for story in stories] == [[], []]
    perform = runpy.run_path(str(tmp_path / "lease_runs.py"))["perform"]
    perform(LeaseService)
    with pytest.raises(StepMismatch):
        perform(Forgetful)


class Forgetful(LeaseService):
    """A storage that forgets to compare tokens."""

    def write(self, worker: int, token: int) -> None:
        """Take any token."""
        self.written = 0
        super().write(worker, token)


class Generous(LeaseService):
    """A service that gives a lease that is taken."""

    def grant(self, worker: int, token: int) -> None:
        """Take it away from its worker."""
        self.holder = None
        super().grant(worker, token)


class Strict(LeaseService):
    """A service that gives no worker a second lease."""

    def grant(self, worker: int, token: int) -> None:
        """Refuse a second one."""
        if token > 1:
            raise Refused("there was a lease")
        super().grant(worker, token)


class Sticky(LeaseService):
    """A service whose leases do not end."""

    def expire(self) -> None:
        """Nothing happens."""


def performed(make: Callable[[], Any]) -> None:
    spec = load(LEASE)
    machine = machine_for(spec, make)
    assert issubclass(machine, SpecMachine)
    for run in generate(spec, bound_for(spec)).runs:
        machine.perform((step.call.action, named(spec, step.call.action, step.call.args)) for step in run)


def named(spec: Spec, action: str, args: tuple[int, ...]) -> Mapping[str, int]:
    return dict(zip(spec.parameters[action], args, strict=True))


@pytest.mark.parametrize("wrong", [Forgetful, Generous, Strict, Sticky])
def test_generated_runs_alone_show_planted_faults(wrong: type[LeaseService]) -> None:
    performed(LeaseService)
    with pytest.raises(StepMismatch):
        performed(wrong)


def test_what_is_not_met_is_listed(tmp_path: Path) -> None:
    text = LEASE.read_text(encoding="utf-8").replace("s.last <= 3", "s.last < 0")
    (tmp_path / "lease.py").write_text(text, encoding="utf-8")
    ran = gapless("generate", str(tmp_path / "lease.py"), "--out", str(tmp_path / "out"))
    assert ran.exit_code == 3
    assert "  not met within the bound: grant\n" in ran.stdout
    assert "not met within the bound: write: token-was-given-to-the-worker refuses" in ran.stdout


def test_only_steps_may_be_wanted(tmp_path: Path) -> None:
    ran = gapless("generate", str(LEASE), "--cover", "steps", "--out", str(tmp_path))
    assert (ran.exit_code, ran.stdout.splitlines()[0]) == (
        0,
        "lease: 3 runs of 4 steps, 0 of them refused, cover 4 of 4 steps",
    )
    assert gapless("generate", str(LEASE), "--cover", "all", "--out", str(tmp_path)).exit_code == 2
