"""Generated runs meet every rule both ways, conform, and show faults that are planted into a service."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from examples.lease_service import LeaseService, Refused
from examples.naive_runs import perform
from examples.naive_store import Message, NaiveStore, Part, Queue
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

OURS = by_day(["ring", "permits", "dispatch", "op_batch", "visibility", "delivery", "log", "partition"], share=1 / 4)
PROTOCOLS = by_day([file.stem for file in sorted((ROOT / "examples/protocols").glob("*.py"))], share=1 / 12)
LEASE = ROOT / "examples/lease.py"


@pytest.mark.parametrize("name", [*OURS, *(f"examples/protocols/{name}.py" for name in PROTOCOLS), "examples/lease.py"])
def test_runs_meet_the_rules_both_ways_and_conform(name: str, tmp_path: Path) -> None:
    spec = load(ROOT / name if name.endswith(".py") else name)
    suite = generate(spec, bound_for(spec))
    assert suite.covered >= 0.95, suite.missing
    assert met(suite) == suite.wanted - {*suite.missing}
    assert suite.wanted == targets_of(spec)
    write(suite, tmp_path)
    verdict = check(tmp_path / f"{spec.name}.ndjson", specs=[spec] if name.endswith(".py") else []).verdict
    assert verdict == "conforms" or (name.endswith(".py") and verdict == "inconclusive")  # no rule is met from INITIAL


def test_runs_begin_in_the_states_that_initials_make(tmp_path: Path) -> None:
    ran = gapless("generate", "examples/protocols/ewd840.py", "--out", str(tmp_path))
    assert ran.exit_code == 0
    others, *files = ran.stdout.splitlines()[1:]
    assert others == "  stories alone: 4 of the runs, which begin in states of INITIALS; a recording begins at INITIAL"
    stories = [read(Path(file.strip())) for file in files if file.endswith(".story")]
    assert [list(differences(story)) for story in stories] == [[]] * 5
    assert [bool(story.given) for story in stories].count(True) == 4
    assert {event["trace"] for event in map(json.loads, lines_of(tmp_path / "ewd840.ndjson")[1:])} == {"run-1"}


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def met(suite: Suite) -> set[Target]:
    """The targets that the steps themselves show: that a step is taken, and which rule refuses."""
    found = {one for one in suite.wanted if one.rule and one.outcome == "ok"} - {*suite.missing}
    for run in suite.runs:
        state = run.start
        for step in run.steps:
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
        machine.perform((step.call.action, named(spec, step.call.action, step.call.args)) for step in run.steps)


def named(spec: Spec, action: str, args: tuple[int, ...]) -> Mapping[str, int]:
    return dict(zip(spec.parameters[action], args, strict=True))


@pytest.mark.parametrize("wrong", [Forgetful, Generous, Strict, Sticky])
def test_generated_runs_alone_show_planted_faults(wrong: type[LeaseService]) -> None:
    performed(LeaseService)
    with pytest.raises(StepMismatch):
        performed(wrong)


class Gap(NaiveStore):
    """A store that shows consumers all entries up to the last that is written."""

    def commit(self, queue: Queue) -> int:
        """Pass what is not written."""
        queue.committed = max(queue.written, default=queue.committed - 1) + 1
        return super().commit(queue)


class Late(NaiveStore):
    """A store whose last entry waits for the next one."""

    def commit(self, queue: Queue) -> int:
        """Show one fewer."""
        before = queue.committed
        queue.committed = max(before, super().commit(queue) - 1)
        return queue.committed


class Overlap(NaiveStore):
    """A store whose workers overlap, whatever was asked for."""

    def may_take(self, part: Part) -> bool:
        """Ask for the state alone."""
        return part.state == "waiting"


class Twice(NaiveStore):
    """A store that gives a part to a second worker."""

    def may_take(self, part: Part) -> bool:
        """Forget that it is taken."""
        return part.state == "taken" or super().may_take(part)


class Eager(NaiveStore):
    """A store of which entries count as safe that consumers do not see yet."""

    def flush_queues(self) -> None:
        """Flush what was given a number."""
        for queue in self.queues.values():
            queue.flushed = queue.scanned


class Lossy(NaiveStore):
    """A store that passes a message by where two wait for workers."""

    def scan(self) -> Part | None:
        """Forget it."""
        part = super().scan()
        if len(self.parts) > 2:
            self.parts.pop()
        return part


class Restart(NaiveStore):
    """A store that shows one entry fewer after a start."""

    def found(self, message: Message) -> None:
        """Count from 0."""
        super().found(message)
        self.queues[message.topic, message.queue].committed = message.number


@pytest.fixture(scope="module")
def dispatch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of dispatch that come to its rules, and some at random."""
    folder = tmp_path_factory.mktemp("runs")
    spec = load("dispatch")
    write(generate(spec, bound_for(spec), seed=1, walks=20, without=["crash"]), folder)
    return folder / "dispatch.ndjson"


@pytest.mark.parametrize(
    "store", [NaiveStore, *by_day([Gap, Late, Overlap, Twice, Eager, Lossy, Restart], share=1 / 3)]
)
def test_the_naive_store_conforms_and_its_faults_are_found_by_generated_runs(
    store: type[NaiveStore], dispatch: Path, tmp_path: Path
) -> None:
    perform(dispatch, tmp_path / "recorded.ndjson", store)
    report = check(tmp_path / "recorded.ndjson")
    assert report.verdict == ("conforms" if store is NaiveStore else "departs")


def test_steps_that_a_system_lacks_are_left_out(tmp_path: Path) -> None:
    ran = gapless("generate", "dispatch", "--without", "crash", "--walks", "2", "--out", str(tmp_path))
    assert ran.stdout.startswith("dispatch: 6 runs of 62 steps, 35 of them refused, cover 37 of 37 rules\n")
    assert "crash" not in (tmp_path / "dispatch.ndjson").read_text(encoding="utf-8")
    assert "# made by: gapless generate dispatch --seed 0 --without crash --walks 2" in lines_of(
        tmp_path / "dispatch-6.story"
    )
    wrong = gapless("generate", "dispatch", "--without", "fall", "--out", str(tmp_path))
    assert wrong.exit_code == 2
    assert "dispatch has no step 'fall': choose among" in " ".join(wrong.output.split())


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
