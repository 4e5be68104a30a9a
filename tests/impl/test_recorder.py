"""The recorder: a store's steps are recorded as they were, replay as legal, and show a fault in the store."""

import errno
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet
from typer.testing import CliRunner, Result

from gapless import Report, check
from gapless.cli import app
from gapless.impl.dispatch.batches import DispatchBatch
from gapless.impl.dispatch.dispatch import Dispatch
from gapless.impl.dispatch.scan_kernel import COMMITTED, SCANNED
from gapless.impl.files import log
from gapless.impl.files.log import CommitLog
from gapless.impl.files.queues import ConsumeQueue
from gapless.impl.recorder import event_batches, recorder, spool
from gapless.impl.recorder.recorder import RecorderFailure, StoreRecorder
from gapless.impl.records.record import Ints
from gapless.impl.store.core import Core, Settings
from gapless.impl.store.store import Store
from gapless.impl.workloads.trial import FAULTS, Trial
from gapless.impl.workloads.workload import ClientLogWriter, Workload
from gapless.properties.simulation.simulated_disk import PowerLost, SimulatedDisk
from gapless.runs.stepwise import Stepwise
from gapless.spec.catalog import SPECS
from gapless.traces.events import reading, schema
from tests.support.rocketmq.recordings import LAB, recording

SMALL = Settings(file_size=8192, queue_file_size=400, batch_records=8, pre_allocate=False)
ALL = frozenset(FAULTS)


@pytest.fixture
def trial(tmp_path: Path) -> Callable[..., Path]:
    """Runs a workload step by step; leaves `store`, `client.ndjson` and `recorded.parquet` in the folder it returns."""

    def run(
        messages: int = 400,
        *,
        faults: frozenset[str] = ALL,
        seed: int = 1,
        together: int = 1,
        settings: Settings = SMALL,
        disk: SimulatedDisk | None = None,
        name: str = "trial",
    ) -> Path:
        folder = tmp_path / name
        (folder / "store").mkdir(parents=True)
        workload = Workload(messages, longest=300, seed=seed)
        with StoreRecorder(folder / "recorded.parquet") as taken, ClientLogWriter(folder / "client.ndjson") as client:
            run = Stepwise(Trial(workload, settings, together, faults, taken, client))
            run.disk = disk or run.disk
            run.run()
        run.disk.save(folder / "store")
        return folder

    return run


def strictly(path: Path) -> Report:
    """Check a store, or a recording, which names its own profile."""
    found = check([path], profile=None if path.is_file() else "strict")
    assert found.profile == "strict"
    return found


def rules(report: Report) -> set[str]:
    return {finding.rule for finding in report.findings}


def step_counts(path: Path) -> Counter[tuple[str, str]]:
    """Count each step of each spec."""
    return Counter((event.spec, event.action) for event in reading.read_events(path))


# -- in what words ---------------------------------------------------------------------------------------------------


def test_a_recording_has_the_steps_of_the_specs_and_their_arguments() -> None:
    for spec, actions in event_batches.WORDS.specs.items():
        for action, arguments in actions.items():
            assert tuple(arguments) == SPECS[spec].parameters[action], f"{spec}.{action}"


def test_a_recording_has_the_columns_of_all_events_but_for_arguments_it_never_needs(trial: Callable[..., Path]) -> None:
    found, whole = parquet.read_schema(trial(40) / "recorded.parquet"), schema.SCHEMA
    assert found.metadata == (whole.metadata or {}) | {
        b"gapless-events-kind": b"gapless-store",
        b"gapless-events-profile": b"strict",
    }
    assert [field for field in found if field.name != "args"] == [field for field in whole if field.name != "args"]
    assert set(found.field("args").type) < set(whole.field("args").type)


RECORD = """
import sys
from pathlib import Path

from gapless.runs import recording
from gapless.impl.workloads.workload import Workload

faults = frozenset({"crash"} if sys.argv[2] == "parquet" else ())
recording.run(Path(sys.argv[1]), recording.RunOptions(Workload(40), 1, False, 2, True, faults, sys.argv[2]))
print(*(name for name in sys.modules if name.startswith("gapless.spec")))
"""


@pytest.mark.parametrize("form", ["parquet", "ndjson"])
def test_nothing_that_judges_is_loaded_while_a_store_is_recorded(tmp_path: Path, form: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RECORD, str(tmp_path / "trial"), form], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == []
    assert strictly(tmp_path / "trial" / "traces" / f"recorded.{form}").verdict == "conforms"


# -- recorded steps ---------------------------------------------------------------------------------------------------


def story(taken: StoreRecorder) -> list[str]:
    """Every event in a line, as reports have it, trace by trace."""
    return [
        f"{event.trace} {event.spec}.{event.action}({', '.join(f'{k}={v}' for k, v in event.args.items())})"
        + ("" if event.outcome == "ok" else f" {event.outcome}")
        for batch in taken.batches()
        for event in schema.to_events(batch)
    ]


def test_every_step_is_reported_where_it_took_effect() -> None:
    taken = StoreRecorder()
    core = Core.open(SimulatedDisk(), replace(SMALL, file_size=400), taken)
    orders = core.queues.named("orders", 3)
    for _ in range(2):
        core.append(orders, b"paid", b"TAGS\x01new\x02", 7)
    core.scan()
    batch = core.dispatch.take()
    assert batch is not None
    core.dispatch.build(batch)
    core.dispatch.wrote(batch)
    core.dispatch.commit(orders)
    core.acknowledge(core.flush())
    core.append(orders, bytes(200), b"", 8)  # in another file
    core.close(9)
    assert story(taken) == [
        "commitlog log.open(position=0, file_size=400)",
        "commitlog log.flush(to=0)",
        "commitlog log.checkpoint(time=0)",
        "commitlog log.append(position=0, size=130, claimed=0, known=1, fits=1, intact=1, sealed=1, time=7)",
        "commitlog log.append(position=130, size=130, claimed=130, known=1, fits=1, intact=1, sealed=1, time=7)",
        "commitlog log.flush(to=260)",
        "commitlog log.acknowledge(to=260)",
        "commitlog log.roll(position=260, size=140, marked=1)",
        "commitlog log.flush(to=400)",
        "commitlog log.append(position=400, size=317, claimed=400, known=1, fits=1, intact=1, sealed=1, time=8)",
        "commitlog log.flush(to=717)",
        "commitlog log.checkpoint(time=8)",
        "commitlog log.end()",
        "orders/3 queue.open(number=0, start=0)",
        "orders/3 queue.append(number=0, count=1, position=0, size=130, tag=108960)",
        "orders/3 queue.append(number=1, count=1, position=130, size=130, tag=108960)",
        "orders/3 queue.index(number=0, position=0, size=130, tag=108960)",
        "orders/3 queue.index(number=1, position=130, size=130, tag=108960)",
        "orders/3 queue.append(number=2, count=1, position=400, size=317, tag=0)",
        "orders/3 queue.index(number=2, position=400, size=317, tag=0)",
        "orders/3 queue.settle(upto=717)",
        "orders/3 queue.end()",
        "orders/3 dispatch.open(number=0, overlap=1)",
        "orders/3 dispatch.scan(number=0)",
        "orders/3 dispatch.scan(number=1)",
        "orders/3 dispatch.take(number=0)",
        "orders/3 dispatch.take(number=1)",
        "orders/3 dispatch.write(number=0)",
        "orders/3 dispatch.write(number=1)",
        "orders/3 dispatch.commit(to=2)",
        "orders/3 dispatch.scan(number=2)",
        "orders/3 dispatch.take(number=2)",
        "orders/3 dispatch.write(number=2)",
        "orders/3 dispatch.commit(to=3)",
        "orders/3 dispatch.flush(to=3)",
        "orders/3 dispatch.end()",
    ]


def test_a_worker_that_is_alone_takes_a_number_when_it_has_written_the_one_before() -> None:
    taken = StoreRecorder()
    core = Core.open(SimulatedDisk(), replace(SMALL, overlap=False), taken)
    for number in range(3):
        core.append(core.queues.named("orders", 0), b"%d" % number, b"", 7)
    core.close(8)
    steps = [line.split(".")[-1] for line in story(taken) if " dispatch." in line]
    assert steps[1:] == [
        *(f"scan(number={n})" for n in range(3)),
        *(f"{step}(number={n})" for n in range(3) for step in ("take", "write")),
        "commit(to=3)",
        "flush(to=3)",
        "end()",
    ]


def test_a_later_life_continues_where_the_crash_left_off() -> None:
    taken, disk = StoreRecorder(), SimulatedDisk()
    core = Core.open(disk, SMALL, taken)
    queue = core.queues.named("orders", 0)
    core.append(queue, b"safe", b"", 7)
    core.flush()
    core.append(queue, b"lost", b"", 7)
    core.abandon()
    core = Core.open(disk.crash(), SMALL, taken)
    core.append(core.queues.named("orders", 0), b"later", b"", 8)
    core.close(9)
    lines = story(taken)
    assert "commitlog log.crash(kept=121)" in lines
    assert [line for line in lines if line.startswith("orders/0+2 ")] == [
        "orders/0+2 queue.open(number=0, start=0)",
        "orders/0+2 queue.append(number=0, count=1, position=0, size=121, tag=0)",
        "orders/0+2 queue.index(number=0, position=0, size=121, tag=0)",
        "orders/0+2 queue.append(number=1, count=1, position=121, size=122, tag=0)",
        "orders/0+2 queue.index(number=1, position=121, size=122, tag=0)",
        "orders/0+2 queue.settle(upto=243)",
        "orders/0+2 queue.end()",
    ]
    built = [line.removeprefix("orders/0 dispatch.") for line in lines if line.startswith("orders/0 dispatch.")]
    assert built[:7] == [
        "open(number=0, overlap=1)",
        "crash(kept=0)",
        *(f"{step}(number=0) inferred" for step in ("scan", "take", "write")),
        "commit(to=1) inferred",
        "flush(to=1) inferred",
    ]


def test_a_blank_that_was_in_flight_is_inferred() -> None:
    """Found by the crash machine: the blank is recorded when it is on disk, and here the process died before."""
    taken, disk = StoreRecorder(), SimulatedDisk()
    core = Core.open(disk, replace(SMALL, file_size=400), taken)
    core.append(core.queues.named("orders", 0), bytes(200), b"", 7)
    disk.lose_power_at(disk.operations + 2)  # the next file is made, and this one flushed
    with pytest.raises(PowerLost):
        core.append(core.queues.named("orders", 0), bytes(200), b"", 8)
    core = Core.open(disk.kill(), replace(SMALL, file_size=400), taken)
    assert [line for line in story(taken) if "roll" in line or "crash(kept=400)" in line] == [
        "commitlog log.roll(position=317, size=83, marked=1) inferred",
        "commitlog log.crash(kept=400)",
    ]


# -- what it is worth: lawful runs conform, and unlawful ones do not -------------------------------------------------


@pytest.mark.parametrize("together", [1, 9])
@pytest.mark.parametrize("overlap", [{"overlap": True}, {"overlap": False}], ids=str)
@pytest.mark.parametrize("synchronous", [{"synchronous": True}, {"synchronous": False}], ids=str)
def test_a_run_with_every_fault_conforms(
    trial: Callable[..., Path], together: int, overlap: dict[str, Any], synchronous: dict[str, Any]
) -> None:
    folder = trial(together=together, settings=replace(SMALL, **overlap, **synchronous))
    for path in (folder / "store", folder / "recorded.parquet"):
        report = strictly(path)
        assert report.verdict == "conforms", [finding.story for finding in report.findings]
    steps = set(step_counts(folder / "recorded.parquet"))
    never = {("log", "refer"), ("log", "omit"), *(("queue", step) for step in QUEUE_STEPS_OF_STORES)}
    if not synchronous["synchronous"]:
        never.add(("log", "acknowledge"))  # perhaps it was not requested
    for spec in ("log", "queue", "dispatch"):
        assert {(spec, action) for action in SPECS[spec].actions} - steps <= never


QUEUE_STEPS_OF_STORES = (
    *("index_batch", "find_file", "outlive", "expire", "rebuild", "truncate"),
    *("tell_last", "tell_first", "account", "acknowledge"),
)


def test_expiry_is_reported_before_files_go(tmp_path: Path) -> None:
    with (
        StoreRecorder(tmp_path / "recorded.parquet") as taken,
        Store.open(tmp_path / "store", SMALL, recorder=taken) as store,
    ):
        for number in range(300):
            store.append("orders", number % 2, bytes(100))
        store.flush()
        assert store.wait_for("orders", 1, 149)
        assert store.expire(1 << 50) > 0
        store.append("orders", 0, b"after")
    report = strictly(tmp_path / "recorded.parquet")
    assert report.verdict == "conforms", [finding.story for finding in report.findings]
    assert step_counts(tmp_path / "recorded.parquet")["queue", "expire"] == 2


def test_another_recorder_begins_with_the_file_that_is_being_written(tmp_path: Path) -> None:
    for life in range(4):
        path = tmp_path / f"life-{life}.parquet"
        with StoreRecorder(path) as taken, Store.open(tmp_path / "store", SMALL, recorder=taken) as store:
            for number in range(50):
                store.append("orders", number % 2, bytes(life * 17 + number), tag="new")
        report = strictly(path)
        assert report.verdict == "conforms", [finding.story for finding in report.findings]
        assert step_counts(path)["log", "append"] >= 50
    assert step_counts(tmp_path / "life-3.parquet")["log", "append"] < 200


# -- faults that are planted in the implementation -------------------------------------------------------------------


def _append_some(taken: StoreRecorder, disk: SimulatedDisk) -> Core:
    core = Core.open(disk, replace(SMALL, salvage=True), taken)
    for number in range(100):
        core.append(core.queues.named("orders", number % 2), b"%d" % number, b"TAGS\x01new\x02", number)
    core.flush()
    return core


def _bytes_behind(offset: int) -> Callable[[pytest.MonkeyPatch], None]:
    """The encoder writes another byte there, in one of the records."""

    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        append = CommitLog.append

        def appended(self: CommitLog, *arguments: Any, **more: Any) -> tuple[int, int]:
            position, size = append(self, *arguments, **more)
            if arguments[0].next == 20:
                self._mapped[position - self._base + offset] ^= 1
            return position, size

        monkeypatch.setattr(CommitLog, "append", appended)

    return plant


def _no_blank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MAGIC_BLANK", 0)


def _number_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    append = CommitLog.append

    def appended(self: CommitLog, queue: ConsumeQueue, *arguments: Any, **more: Any) -> tuple[int, int]:
        queue.next -= queue.next == 20
        return append(self, queue, *arguments, **more)

    monkeypatch.setattr(CommitLog, "append", appended)


def _acknowledged_early(monkeypatch: pytest.MonkeyPatch) -> None:
    flush = CommitLog.flush

    def flushed(self: CommitLog) -> int:
        assert isinstance(self.recorder, StoreRecorder)
        self.recorder.acknowledged(self.end)
        return flush(self)

    monkeypatch.setattr(CommitLog, "flush", flushed)


@pytest.mark.parametrize(
    ("plant", "rule"),
    [
        (_bytes_behind(3), "log/parts-of-the-record-add-up-to-its-size"),
        (_bytes_behind(7), "log/record-carries-a-known-magic-number"),
        (_bytes_behind(11), "log/body-has-its-checksum"),
        (_bytes_behind(15), "queue/numbers-of-a-queue-follow-one-another"),  # the id of another queue
        (_bytes_behind(27), "queue/numbers-of-a-queue-follow-one-another"),
        (_bytes_behind(35), "log/record-names-its-own-position"),
        (_bytes_behind(88), "log/body-has-its-checksum"),
        (_no_blank, "log/file-that-is-full-ends-in-a-blank"),
        (_number_twice, "queue/numbers-of-a-queue-follow-one-another"),
        (_acknowledged_early, "log/bytes-are-on-disk"),
    ],
)
def test_a_fault_of_the_log_departs(
    plant: Callable[[pytest.MonkeyPatch], None], rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with StoreRecorder(tmp_path / "recorded.parquet") as taken:
        _append_some(taken, SimulatedDisk()).abandon()
    assert rule in rules(strictly(tmp_path / "recorded.parquet"))


def test_the_same_without_a_fault_conforms(tmp_path: Path) -> None:
    with StoreRecorder(tmp_path / "recorded.parquet") as taken:
        _append_some(taken, SimulatedDisk()).abandon()
    assert strictly(tmp_path / "recorded.parquet").verdict == "conforms"


def test_a_flush_that_was_none_departs_after_a_crash(tmp_path: Path) -> None:
    disk = SimulatedDisk(lying=True)
    with StoreRecorder(tmp_path / "recorded.parquet") as taken:
        _append_some(taken, disk).abandon()
        Core.open(disk.crash(), replace(SMALL, salvage=True), taken).abandon()
    assert "log/what-was-flushed-survives" in rules(strictly(tmp_path / "recorded.parquet"))


def _wrong_tag(self: Dispatch, batch: DispatchBatch) -> None:
    build(self, batch)
    queue, low, _high = batch.runs[0].tolist()
    self._queues.all[queue].slots(low, low + 1)[0, 19] ^= 1


def _one_entry_short(self: Dispatch, batch: DispatchBatch) -> None:
    build(self, batch)
    queue, _low, high = batch.runs[0].tolist()
    self._queues.all[queue].slots(high - 1, high)[:] = 0


def _passes_a_gap(self: Dispatch, of: Ints) -> Ints:
    ends: Ints = np.minimum(gapless_ends(self, of) + 1, self._table.columns[of, SCANNED])
    return ends


def _takes_one_at_a_time(self: Dispatch, of: Ints) -> Ints:
    ends: Ints = np.minimum(gapless_ends(self, of), self._table.columns[of, COMMITTED] + 1)
    return ends


build, gapless_ends = Dispatch.build, Dispatch._gapless_ends


@pytest.mark.parametrize(
    ("verb", "fault", "rule"),
    [
        ("build", _wrong_tag, "queue/entry-has-the-tag-code-of-its-message"),
        ("build", _one_entry_short, "queue/entry-points-at-its-message"),
        ("_gapless_ends", _passes_a_gap, "dispatch/every-entry-before-the-commit-position-is-written"),
        ("_gapless_ends", _takes_one_at_a_time, "dispatch/commit-position-takes-all-it-can"),
    ],
)
def test_a_fault_of_dispatch_departs(
    verb: str, fault: object, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dispatch, verb, fault)
    with StoreRecorder(tmp_path / "recorded.parquet") as taken:
        core = _append_some(taken, SimulatedDisk())
        batches = [core.dispatch.scan(core.limit) for _ in range(6)]
        for batch in [core.dispatch.take(batch) for batch in reversed(batches)]:
            assert batch is not None
            core.dispatch.build(batch)
            core.dispatch.wrote(batch)
            core.dispatch.commit_all(batch)
        core.abandon()
    assert rule in rules(strictly(tmp_path / "recorded.parquet"))


# -- the tape --------------------------------------------------------------------------------------------------------


def test_no_file_has_a_name_before_the_recording_is_whole(tmp_path: Path) -> None:
    with StoreRecorder(tmp_path / "recorded.parquet") as taken:
        _append_some(taken, SimulatedDisk()).abandon()
        assert list(tmp_path.iterdir()) == []
    assert list(tmp_path.iterdir()) == [tmp_path / "recorded.parquet"]


def test_who_writes_too_fast_takes_off_the_tape_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MOST", -1)  # always too long
    monkeypatch.setattr(recorder, "EVERY", 0.001)
    with StoreRecorder(tmp_path / "recorded.parquet") as taken:
        _append_some(taken, SimulatedDisk()).abandon()
    assert strictly(tmp_path / "recorded.parquet").verdict == "conforms"


def test_a_disk_without_room_breaks_the_recording_off_and_not_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_self: spool.Spool, _things: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(spool.Spool, "add", full)
    taken = StoreRecorder(tmp_path / "recorded.parquet")
    core = _append_some(taken, SimulatedDisk())
    core.close(0)
    assert core.dispatch.dispatched == core.log.end > 0
    with pytest.raises(RecorderFailure, match="No space left"):
        taken.close()
    assert list(tmp_path.iterdir()) == []


def test_a_recording_is_read_through_many_threads(tmp_path: Path) -> None:
    """Two appending threads next to two workers and the flusher: the tape has the order of the steps."""
    with (
        StoreRecorder(tmp_path / "recorded.parquet") as taken,
        Store.open(tmp_path / "store", replace(SMALL, synchronous=True), recorder=taken) as store,
        ThreadPoolExecutor(2) as senders,
    ):
        for sent in [senders.submit(store.append, "orders", number % 3, b"%d" % number) for number in range(300)]:
            sent.result()
    report = strictly(tmp_path / "recorded.parquet")
    assert report.verdict == "conforms", [finding.story for finding in report.findings]
    assert step_counts(tmp_path / "recorded.parquet")["log", "acknowledge"] > 0


# -- gapless record --------------------------------------------------------------------------------------------------


def record(*arguments: str | int | Path) -> Result:
    return CliRunner().invoke(app, ["record", *map(str, arguments)])


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("faults", [(), ("--faults", "slow-worker,failing-worker"), ("--faults", ",".join(FAULTS))])
def test_what_is_recorded_is_checked_with_the_commands_that_it_names(faults: tuple[str, ...], tmp_path: Path) -> None:
    done = record(tmp_path / "trial", "--messages", 500, "--batch", 3, "--format", "ndjson", *faults)
    assert done.exit_code == 0, done.output
    commands = [line.split()[1:] for line in done.output.splitlines() if line.startswith("  gapless ")]
    assert len(commands) == 2
    for command in commands:
        checked = CliRunner().invoke(app, command)
        assert checked.exit_code == 0, checked.output
    assert "500 messages sent" in done.output
    assert sorted(path.name for path in (tmp_path / "trial").iterdir()) == ["client.ndjson", "store", "traces"]
    report = check([tmp_path / "trial"], profile="strict")
    assert report.verdict == "conforms"
    assert report.sources[0].notes == ["clients' promises are read from client.ndjson, next to the store"]


@pytest.mark.parametrize("faults", [(), ("--faults", ",".join(FAULTS))])
def test_the_same_seed_gives_the_same_bytes(faults: tuple[str, ...], tmp_path: Path) -> None:
    for name, seed in (("one", 7), ("two", 7), ("three", 8)):
        assert record(tmp_path / name, "--messages", 300, "--seed", seed, *faults).exit_code == 0
    one, two, three = (content(tmp_path / name / "store") for name in ("one", "two", "three"))
    assert one == two
    assert one != three


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--sizes", "9..3"], "expected the shorter first"),
        (["--sizes", "many"], "expected bytes, as in 100..2000"),
        (["--faults", "rain"], "there is no fault 'rain': choose among crash"),
        (["--faults", "crash", "--messages", "9000000"], "the disk is simulated in memory"),
    ],
)
def test_what_cannot_be_run_is_stated_and_nothing_is_made(arguments: list[str], complaint: str, tmp_path: Path) -> None:
    done = record(tmp_path / "trial", *arguments)
    assert done.exit_code == 2
    assert complaint in done.output
    assert not (tmp_path / "trial").exists()


def test_a_directory_that_is_not_empty_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    done = record(tmp_path)
    assert done.exit_code == 2
    assert "expected an empty directory" in done.output
    assert content(tmp_path) == {"mine": b"precious"}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_what_was_sent_before_an_interruption_is_there(number: int, code: int, tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    command = [sys.executable, "-m", "gapless", "record", str(folder), "--messages", "1000000", "--rate", "2000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not (folder / "store/commitlog").is_dir():
            time.sleep(0.01)
            assert process.poll() is None
        time.sleep(0.2)
        process.send_signal(number)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == code, output + errors
    assert "interrupted: " in output
    for path in (folder / "store", folder / "traces/recorded.parquet"):
        assert strictly(path).verdict == "conforms"


@pytest.mark.parametrize("name", ["odd_clients", "lmq", "midlife", *LAB])
def test_a_brokers_store_that_we_went_on_with_is_reported_as_it_is(tmp_path: Path, name: str) -> None:
    shutil.copytree(recording(name), tmp_path / "store")
    with StoreRecorder(tmp_path / "recorded.parquet") as taken:
        with Store.open(tmp_path / "store", recorder=taken) as store:
            for number in range(40):
                topic = "orders" if number % 2 else "SCHEDULE_TOPIC_XXXX"
                store.append(topic, 0, b"x", properties={"DELAY": "3"}, allow_system=True)
        with Store.open(tmp_path / "store", recorder=taken) as store:
            store.append("orders", 1, b"y")
            store.expire(store.clock() + 1)
    report = check([tmp_path / "recorded.parquet"])
    assert report.verdict == "conforms", report.findings
    assert report.coverage["queue.index"] >= 41


def test_a_clean_stop_says_that_all_came_to_rest_and_a_crash_does_not(tmp_path: Path) -> None:
    with StoreRecorder(tmp_path / "recorded.parquet") as taken:
        with Store.open(tmp_path / "store", SMALL, recorder=taken) as store:
            store.append("orders", 0, b"one")
        store = Store.open(tmp_path / "store", SMALL, recorder=taken)
        store.append("orders", 0, b"two")
        store.abandon()
    report = strictly(tmp_path / "recorded.parquet")
    assert (report.verdict, report.coverage["log.end"], report.coverage["dispatch.end"]) == ("conforms", 1, 1)
    assert report.coverage["queue.end"] == 1  # of its first life: the second has a trace of its own, and is not asked
    assert [line for line in report.not_exercised if line.startswith("queue.end: some traces")]


def test_a_stop_that_leaves_work_undone_is_reported(tmp_path: Path) -> None:
    """A store that reports an orderly stop without its last entries has lost their messages."""
    with StoreRecorder(tmp_path / "recorded.parquet") as taken:
        core = Core.open(SimulatedDisk(), SMALL, taken)
        core.append(core.queues.named("orders", 0), b"paid", b"", 7)
        core.flush()
        taken.rested(core.queues.all)
    assert "queue/every-message-has-its-entry" in rules(strictly(tmp_path / "recorded.parquet"))
