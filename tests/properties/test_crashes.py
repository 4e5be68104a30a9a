"""The crash machine: it finds nothing in the implementation, and each of the faults that are planted there."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from gapless.impl.recorder.recorder import StoreRecorder
from gapless.impl.store.core import Core, Settings
from gapless.properties.campaign import answers
from gapless.properties.faults import implementation
from gapless.properties.faults.planted import dispatch_faults
from gapless.properties.faults.planted.storage_faults import FAULTS
from gapless.properties.machines.crashes import crash_cases
from gapless.properties.machines.crashes.crash_cases import by_chance, shortest, story
from gapless.properties.machines.crashes.crash_recovery import CrashRun
from gapless.properties.machines.crashes.store_client import CrashTally
from gapless.properties.reference_store.recorded_conformance import CONFORMS, Nonconformance, require_conformance
from gapless.properties.reference_store.store_subject import ReferenceStore
from gapless.properties.simulation.choices import Choices
from gapless.properties.simulation.simulated_disk import PowerLost, SimulatedDisk
from gapless.traces.check import check
from tests.support.night import NIGHT, by_day

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("crashes")]  # one worker, so that the tally is made once

CASES = {"quick": 30, "ci": 100, "night": 3000}[os.environ.get("HYPOTHESIS_PROFILE", "ci")]
LATE = "what was found is not flushed"
"""A fault that only some hundred cases show: there is time at night, and its row in the table is of every case."""

RECORDED = 4  # so many cases have one among them that is recorded, and replayed


DEPARTS = {
    "flushed before the disk has answered": 'end breaks the rule "every record is on disk',
    "a full file is left behind unflushed": 'flush breaks the rule "the bytes are written',
    "a disk that lies": 'crash breaks the rule "what was flushed survives',
    "no blank ends a file": 'roll breaks the rule "a file that is full ends in a blank',
    "dispatch starts at the log's end": 'crash breaks the rule "what was flushed survives',
    "a commit takes one entry": 'commit breaks the rule "the commit position takes all it can',
    "the last entry of a batch is not written": 'index breaks the rule "the entry has the size of its message',
    "entries go into the file before theirs": 'index breaks the rule "the entry points at its message',
}
"""Faults that a recording tells of, and the need of the model that is not met."""


@pytest.fixture(scope="module")
def tally() -> CrashTally:
    found = CrashTally()
    for seed in range(CASES):
        one, failure = by_chance(ReferenceStore, seed, recorded=seed % RECORDED == 0)
        assert failure is None, f'{failure}; python -m gapless.properties.machines.crashes --again "seed {seed}"'
        found.add(one)
    return found


def test_no_crash_loses_what_was_promised_or_finds_what_was_not_sent(tally: CrashTally) -> None:
    assert tally.points > 2 * CASES


@pytest.mark.skipif(CASES < 100, reason="too few cases to meet everything")
def test_crashes_come_in_the_midst_of_every_use_of_the_disk(tally: CrashTally) -> None:
    assert {use.split()[0] for use in tally.uses} == {"sync", "create", "delete", "write"}
    assert set(tally.ends) == {"power", "process", "close"}
    assert tally.steps.keys() >= {
        step.__name__ for step in (CrashRun.append_many, CrashRun.expire, CrashRun.write_back, CrashRun.fail)
    }
    assert tally.refused.keys() >= {"open", "append", "flush", "acknowledge", "checkpoint", "dispatch"}


def test_a_case_is_a_value() -> None:
    first: list[str] = []
    again: list[str] = []
    choices = answers("seed 3")
    CrashRun(ReferenceStore(), choices, first.append).run()
    CrashRun(ReferenceStore(), Choices.parse(str(choices)), again.append).run()
    assert first == again == story(ReferenceStore, "seed 3")[0]


@pytest.mark.parametrize("seed", by_day(range(0, 40, 5), 1 / 2))
def test_what_is_left_of_a_store_conforms(seed: int) -> None:
    """The checker reads the files by itself and shares no code with the implementation."""
    run = CrashRun(ReferenceStore(), answers(f"seed {seed}"))
    run.run()
    with tempfile.TemporaryDirectory() as folder:
        run.disk.save(Path(folder))
        report = check(folder, profile="strict", engine="local", jobs=1)
    assert (report.verdict, report.findings) == ("conforms", [])


def test_what_cases_record_conforms(tally: CrashTally) -> None:
    replayed = len(range(0, CASES, RECORDED))
    assert tally.replayed[CONFORMS] == replayed
    assert tally.replayed["events"] > 100 * replayed


@pytest.mark.parametrize("seed", by_day(range(0, 40, 5), 1 / 2))
def test_a_case_is_the_same_when_it_is_recorded(seed: int) -> None:
    assert story(ReferenceStore, f"seed {seed}", recorded=True) == story(ReferenceStore, f"seed {seed}")


@pytest.mark.parametrize(("name", "needs"), by_day([*DEPARTS.items()], 1 / 2))
def test_a_planted_fault_shows_in_a_recording(name: str, needs: str) -> None:
    fault = next(fault for fault in (*FAULTS, *dispatch_faults.FAULTS) if fault.name == name)
    with fault.planted(), pytest.raises(Nonconformance, match=needs):
        _replay(range(40))


def _replay(seeds: range) -> None:
    """Every case, up to what its client finds wrong. Raises Unlawful."""
    for seed in seeds:
        recorder = StoreRecorder()
        with suppress(Exception, PowerLost):
            CrashRun(ReferenceStore(recorder), answers(f"seed {seed}")).run()
        require_conformance(recorder)


@pytest.mark.parametrize("fault", [name for name in by_day([fault.name for fault in FAULTS]) if NIGHT or name != LATE])
def test_every_planted_fault_is_found(fault: str) -> None:
    found = implementation.search("crashes", fault)
    assert found.after > 0, "no case shows it"


def test_a_failing_case_is_reported_as_shortly_as_can_be() -> None:
    fault = next(fault for fault in FAULTS if fault.name == "flushed before the disk has answered")
    with fault.planted():
        found = crash_cases.first_failure(ReferenceStore, implementation.CASES)
        assert found is not None
        case = shortest(ReferenceStore, f"seed {found[0] - 1}", patience=300 if NIGHT else 100)
        lines, error = story(ReferenceStore, case)
        assert error is not None
        assert len(lines) < len(story(ReferenceStore, f"seed {found[0] - 1}")[0])
    assert story(ReferenceStore, case)[1] is None


def test_the_file_after_a_full_one_is_made_in_its_place() -> None:
    """Found by the crash machine: recovery ended where a file ends, and a file that had expired was made again."""
    disk, settings = SimulatedDisk(), Settings(file_size=2048, queue_file_size=200, workers=1)
    core = Core.open(disk, settings)
    queue = core.queues.named("orders", 0)
    for now in range(0, 60_000, 10_000):
        core.append(queue, bytes(900), b"", now)
    core = Core.open(disk.crash(), settings)  # nothing in the last file was flushed
    assert (core.log.end, core.log.end % 2048) == (4096, 0)
    assert core.expire(30_000) == 2048
    core.log.make_ready()
    assert core.log.segments.bases == [2048]
