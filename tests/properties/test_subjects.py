"""A store that shares nothing with ours is tested by the same machines, and so are its faults."""

from __future__ import annotations

import pickle
import zlib
from argparse import ArgumentTypeError
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from examples import naive_store
from examples.naive_store import NaiveStore, Part, Queue
from examples.naive_subject import NaiveSubject
from gapless.properties.faults.planted.fault_injection import Faults
from gapless.properties.machines.crashes import __main__ as crashes
from gapless.properties.machines.crashes import crash_cases
from gapless.properties.machines.interleavings import schedule_cases
from gapless.properties.machines.interleavings.actors import Plan
from gapless.properties.machines.mismatch import Mismatch
from gapless.properties.machines.stateful import failure_count
from gapless.properties.machines.stateful.dispatch_machine import DispatchMachine
from gapless.properties.machines.stateful.log_machine import LogMachine
from gapless.properties.machines.stateful.queue_machine import QueueMachine
from gapless.properties.machines.stateful.subject_machine import SubjectMachine
from gapless.properties.machines.subject_option import OURS, subject_by_name
from gapless.properties.reference_store.store_subject import ReferenceStore
from gapless.properties.simulation.simulated_disk import SimulatedDisk
from gapless.properties.subject import ENDLESS, OPTIONAL, Subject, SubjectLayout, require_all_verbs
from gapless.spec import log
from tests.support.night import NIGHT, by_day

MACHINES = (LogMachine, QueueMachine, DispatchMachine)
NAMED = "examples.naive_subject:NaiveSubject"

FAULTS = Faults()

FirstFailure = Callable[[Callable[[], Subject], int], tuple[int, str] | None]


# All machines, and nothing is found

TestLog = LogMachine.of(NaiveSubject).TestCase
TestQueue = QueueMachine.of(NaiveSubject).TestCase
TestDispatch = DispatchMachine.of(NaiveSubject).TestCase
TestDispatch.settings = settings(suppress_health_check=[HealthCheck.too_slow])


def test_crashes_lose_nothing_of_a_naive_store() -> None:
    assert crash_cases.first_failure(NaiveSubject, 4 * settings().max_examples) is None


def test_a_naive_store_is_its_model_in_any_order() -> None:
    assert schedule_cases.first_failure(NaiveSubject, 5 * settings().max_examples) is None


def test_a_naive_store_is_its_model_in_every_order() -> None:
    """It goes through the states that ours goes through: only the plan determines them, not the task that steps."""
    for plan in schedule_cases.SMALLEST[: 4 if NIGHT else 1]:
        assert schedule_cases.in_every_way(NaiveSubject, plan).states > 50


class LeastSubject(NaiveSubject):
    """A naive store of one file, with none of the verbs that it may do without."""

    absent = dict.fromkeys(OPTIONAL, "it does as little as it can")

    def open(self, disk: SimulatedDisk, layout: SubjectLayout) -> None:
        """The file is as long as any run needs it."""
        assert (layout.file_size, layout.overlap) == (ENDLESS, False)
        super().open(disk, replace(layout, file_size=1 << 20))

    def as_log(self) -> log.State:
        """Its end lies in its first file."""
        s = super().as_log()
        return replace(s, file_size=ENDLESS) if s.file_size else s


def test_a_subject_may_have_no_optional_verb() -> None:
    for machine in MACHINES:
        _run(machine, LeastSubject, examples=15 if NIGHT else 5)
    assert crash_cases.first_failure(LeastSubject, 20) is None
    assert schedule_cases.first_failure(LeastSubject, 50) is None


@pytest.mark.parametrize(
    ("name", "first_failure"),
    [
        ("flushed before the disk has answered", crash_cases.first_failure),
        ("an entry comes before its record", schedule_cases.first_failure),
    ],
)
def test_with_no_optional_verb_faults_are_found(name: str, first_failure: FirstFailure) -> None:
    with planted(name):
        assert first_failure(LeastSubject, 600) is not None


# Omissions are reported


def test_what_a_subject_lacks_is_named_and_accounted_for() -> None:
    class Silent(NaiveSubject):
        absent = {name: why for name, why in NaiveSubject.absent.items() if name not in {"find", "claim"}}  # noqa: RUF012

    class Strange(NaiveSubject):
        absent = {**NaiveSubject.absent, "rolls": "a slip of the pen"}  # noqa: RUF012

    for machine in MACHINES:
        with pytest.raises(TypeError, match="Silent has no claim, find: define it, or say in `absent` why"):
            machine.of(Silent)
    with pytest.raises(TypeError, match="Silent has no claim, find"):
        crash_cases.by_chance(Silent, 0)
    with pytest.raises(TypeError, match=r"Strange.absent names rolls"):
        schedule_cases.by_chance(Strange, 0)
    require_all_verbs(ReferenceStore)
    assert not ReferenceStore.absent
    assert not list(subject_by_name(OURS).left_out())


def test_what_is_left_out_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert crashes.main(["--subject", NAMED, "--points", "20", "--jobs", "1"]) == 0
    output = capsys.readouterr().out
    assert "left out: checkpoint: the whole log is read at every start\n" in output
    assert "left out: records with the flaw 'known': records have no magic number\n" in output
    tally, failure = crash_cases.by_chance(NaiveSubject, 0)
    assert failure is None
    assert tally.absent["append_many: messages are appended one by one"] > 0
    seen = schedule_cases.some(NaiveSubject, range(40)).counts
    assert seen["left out: restart, for NaiveSubject has none: dispatch begins again with the store"] > 0
    assert seen["left out: a flush of queues that fails, for NaiveSubject has no files of queues"] > 0


@pytest.mark.parametrize("name", ["examples.naive_subject", "examples.naive_subject:NaiveStores", "nowhere:Subject"])
def test_a_subject_that_is_not_there_is_reported(name: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"expected a subject as package\.module:Class"):
        subject_by_name(name)


def test_other_processes_import_a_subject_by_the_name_that_was_given() -> None:
    """A module may take a class over and change it: by its own name, the class would be as it was, and pass."""
    assert NAMED.encode() in pickle.dumps(subject_by_name(NAMED))


# Planted faults


@FAULTS.plant("the commit position passes a gap", NaiveStore, "commit")
def _pass_a_gap(store: NaiveStore, queue: Queue) -> int:
    """Consumers read an entry that is not there."""
    store.must_run(store.gave_up)
    queue.committed = max(queue.written, default=queue.committed - 1) + 1
    store.settle()
    return queue.committed


@FAULTS.plant("flushed before the disk has answered", NaiveStore, "flush")
def _promise(store: NaiveStore) -> int:
    """Bytes that are not on disk count as safe."""
    store.flushed = store.end
    return store.end


@FAULTS.plant("an error of the disk is swallowed", NaiveStore, "sync")
def _swallow(store: NaiveStore) -> None:
    """Bytes that were never written count as safe."""
    try:
        if store.file is not None:
            store.file.sync()
    except OSError:
        pass


_scan = NaiveStore.scan


@FAULTS.plant("an entry comes before its record", NaiveStore, "scan")
def _scan_all(store: NaiveStore) -> Part | None:
    """A crash takes what consumers of a synchronous store saw."""
    synchronous, store.synchronous = store.synchronous, False
    try:
        return _scan(store)
    finally:
        store.synchronous = synchronous


_recover = NaiveStore.recover


@FAULTS.plant("what follows a half-written record is kept", NaiveStore, "recover")
def _keep_what_follows(store: NaiveStore) -> None:
    """It is taken for part of the log once something is written before it."""
    before = {name: store.disk.open(f"log/{name}", write=True).data.copy() for name in store.disk.names("log")}
    _recover(store)
    for name, data in before.items():
        if len(data) == store.file_size:
            store.disk.open(f"log/{name}", write=True).data[:] = data


_decode = naive_store.decode


@FAULTS.plant("a half-written record is kept", naive_store, "decode")
def _believe(data: bytes, position: int) -> naive_store.Message | None:
    """Deliver bytes to consumers that were never sent."""
    size = int.from_bytes(data[:4], "big")
    right = zlib.crc32(data[naive_store.COVERED : size]).to_bytes(4, "big")
    return _decode(data[:4] + right + data[naive_store.COVERED :], position)


@FAULTS.plant("two workers at a queue for one", NaiveStore, "may_take")
def _meet(_store: NaiveStore, part: Part) -> bool:
    """They write into one queue at the same time."""
    return part.state == "waiting"


_forget = NaiveStore.forget


@FAULTS.plant("a queue forgets where it began", NaiveStore, "forget")
def _forget_numbers(store: NaiveStore, start: int) -> None:
    """A number is given twice."""
    _forget(store, start)
    store.disk.write("begin", b'{"start": %d, "first": []}' % start)


@FAULTS.plant("what failed too often is dropped", NaiveStore, "failed")
def _drop(_store: NaiveStore, part: Part, _why: Exception) -> bool:
    """The queue stands still, unnoticed."""
    part.attempts += 1
    part.state = "waiting" if part.attempts <= 3 else "dropped"
    return part.state == "waiting"


def _first_failure_of_dispatch(make: Callable[[], Subject], cases: int) -> tuple[int, str] | None:
    return failure_count.first_failure(DispatchMachine.of(make), cases)


FOUND_BY: dict[str, tuple[FirstFailure, str]] = {
    "the commit position passes a gap": (
        schedule_cases.first_failure,
        "the model needs: every entry before the commit position is written",
    ),
    "flushed before the disk has answered": (crash_cases.first_failure, "a flush failed, and another one says"),
    "an error of the disk is swallowed": (
        crash_cases.first_failure,
        'crash breaks the rule "what was flushed survives',
    ),
    "an entry comes before its record": (schedule_cases.first_failure, "and the log is safe up to"),
    "what follows a half-written record is kept": (crash_cases.first_failure, "nothing is invented"),
    "a half-written record is kept": (crash_cases.first_failure, ""),
    "two workers at a queue for one": (_first_failure_of_dispatch, "was taken; these wait"),
    "a queue forgets where it began": (crash_cases.first_failure, "is found with numbers from"),
    "what failed too often is dropped": (schedule_cases.first_failure, "tried again"),
}
"""The machine that finds a fault, and what it says."""


@pytest.mark.parametrize("fault", by_day(list(FAULTS), 1 / 3), ids=lambda fault: fault.name)
def test_a_fault_of_a_naive_store_is_found(fault: Any) -> None:
    first_failure, seeds = FOUND_BY[fault.name]
    with fault.planted():
        found = first_failure(NaiveSubject, 4000)
    assert found is not None
    assert seeds in found[1], found


def planted(name: str) -> Any:
    return next(fault for fault in FAULTS if fault.name == name).planted()


def test_a_gap_that_is_passed_is_reported_in_a_few_lines() -> None:
    case = "queues=0,0: append*2 scan*2 w1 w2 w2*2 commit.0"
    with planted("the commit position passes a gap"):
        lines, right = schedule_cases.story(NaiveSubject, case)
        assert schedule_cases.some(NaiveSubject, range(50)).failures
        with pytest.raises(Mismatch, match="every entry before the commit position is written") as found:
            schedule_cases.in_every_way(NaiveSubject, Plan(queues=(0, 0), reads=0))
    assert not right
    assert lines[-1].startswith("Mismatch: commit 2 of T/0 was taken; the model needs: every entry before the commit")
    assert schedule_cases.story(NaiveSubject, case)[1]
    assert len(schedule_cases.schedule_of(found.value).split()) < 10


def test_a_crash_case_is_reported_in_a_few_lines() -> None:
    with planted("flushed before the disk has answered"):
        seed, _ = crash_cases.first_failure(NaiveSubject, 600) or (0, "")
        case = crash_cases.shortest(NaiveSubject, f"seed {seed - 1}", patience=600)
        lines, error = crash_cases.story(NaiveSubject, case)
    assert str(error)
    assert len(lines) < 15


def test_hypothesis_finds_a_flush_that_does_nothing() -> None:
    with planted("flushed before the disk has answered"), pytest.raises(Exception, match="what was flushed survives"):
        _run(LogMachine, NaiveSubject, examples=2000)


def test_a_queue_that_says_something_else_is_noticed() -> None:
    """The machines look at what a subject says of itself; here it says that its entries are shorter."""

    class LyingSubject(NaiveSubject):
        def entries(self, queue: tuple[str, int], low: int, high: int) -> list[tuple[int, int, int]]:
            """One byte less."""
            return [(position, size - 1, tag) for position, size, tag in super().entries(queue, low, high)]

    with pytest.raises(Mismatch, match="the entry has the size of its message") as found:
        _run(QueueMachine, LyingSubject, examples=30, shrink=True)
    program = [line for line in "\n".join(found.value.__notes__).splitlines() if line.startswith("state.")]
    steps = [line.partition("(")[0].removeprefix("state.") for line in program]
    assert steps == ["start", "append", "index", "teardown"]
    assert crash_cases.first_failure(LyingSubject, 20) is not None
    assert schedule_cases.first_failure(LyingSubject, 20) is not None


def _run(machine: type[SubjectMachine], make: Callable[[], Subject], *, examples: int, shrink: bool = False) -> None:
    phases = [Phase.generate, *([Phase.shrink] if shrink else [])]
    few = settings(
        max_examples=examples,
        phases=phases,
        derandomize=True,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine.of(make), settings=few)
