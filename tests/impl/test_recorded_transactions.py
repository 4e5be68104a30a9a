"""`gapless record --transactions`: what it leaves conforms, whatever goes wrong, and a loss in it shows."""

import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gapless import Report, check
from gapless.cli import app
from gapless.impl.store.core import Core
from gapless.impl.store.store import Store
from gapless.impl.workloads.producers import SETTINGS
from gapless.impl.workloads.trial import DISK_FAULTS, FAULTS
from gapless.impl.workloads.workload import SHARES, Fate, Workload
from gapless.properties.reference_store.transactional import injected_faults
from gapless.runs.stepwise import Stepwise
from tests.support.night import by_day
from tests.support.rocketmq import stores, transactions
from tests.support.rocketmq.stores import Record

ROOT = Path(__file__).parents[2]


def record(folder: Path, *arguments: str | int) -> Result:
    return CliRunner().invoke(app, ["record", str(folder), "--transactions", *map(str, arguments)])


def strictly(path: Path) -> Report:
    return check([path], profile="strict")


def conforms(folder: Path, form: str = "parquet") -> Report:
    """Check the store with its client log, and its recorded steps; the tests' own judge must find nothing either."""
    steps = strictly(folder / "traces" / f"recorded.{form}")
    assert steps.verdict == "conforms", steps.findings
    report = strictly(folder)
    assert report.verdict == "conforms", report.findings
    settings, *others = report.sources[0].notes
    assert re.fullmatch(r"settings from broker\.conf next to the store \(\d+ read\)", settings)
    assert others == [
        "clients' promises are read from client.ndjson, next to the store",
    ]
    assert transactions.departures(folder / "store") == []
    return report


@pytest.mark.parametrize("faults", by_day([(), *((fault,) for fault in FAULTS), tuple(FAULTS)], 1 / 2), ids="-".join)
@pytest.mark.parametrize("more", [(), ("--batch", 7, "--flush", "sync", "--format", "ndjson")], ids=["", "batches"])
def test_what_is_recorded_conforms_and_everything_is_decided(
    faults: tuple[str, ...], more: tuple[str | int, ...], tmp_path: Path
) -> None:
    given = ("--faults", ",".join(faults)) if faults else ()
    done = record(tmp_path / "trial", "--messages", 600, *given, *more)
    assert done.exit_code == 0, done.output
    assert "transactions: " in done.output
    report = conforms(tmp_path / "trial", "ndjson" if more else "parquet")
    for step in ("prepare", "check", "commit", "mark", "park"):
        assert report.coverage[f"transaction.{step}"] > 0
    store = tmp_path / "trial" / "store"
    cursors, last = transactions.cursors(store), transactions.halves(store)[-1]
    assert cursors.half == last.number + 1  # nothing is open
    assert cursors.op == len(transactions.ops(store))
    finals = Counter(transactions.key_of(final) for final in transactions.finals(store))
    assert {*finals.values()} == {1}


def test_the_client_log_says_what_was_asked_and_answered(tmp_path: Path) -> None:
    assert record(tmp_path / "trial", "--messages", 1000).exit_code == 0
    lines = [json.loads(line) for line in (tmp_path / "trial/client.ndjson").read_text().splitlines()]
    ops = Counter(line["op"] for line in lines)
    assert ops["send"] + ops["half"] == 1000
    ends = Counter((line["decision"], line["from_check"]) for line in lines if line["op"] == "end")
    assert {decision for decision, asked in ends if asked} == {"commit", "rollback", "unknown"}
    assert {decision for decision, asked in ends if not asked} == {"commit", "rollback"}
    assert ops["check"] == sum(count for (_, asked), count in ends.items() if asked)
    never = Counter(line["uniq"] for line in lines if line.get("decision") == "unknown")
    assert {*never.values()} == {SETTINGS.max_checks}


def test_fates_are_drawn_by_their_shares_and_leave_the_messages_as_they_are() -> None:
    with_them = list(Workload(20_000, seed=3, transactions=True).sends())
    assert [send.body for send in with_them] == [send.body for send in Workload(20_000, seed=3).sends()]
    counts = Counter(send.fate for send in with_them)
    assert sum(SHARES.values()) == pytest.approx(1)
    assert {fate: round(counts[fate] / 20_000, 2) for fate in Fate} == pytest.approx(SHARES, abs=0.01)
    assert {send.fate for send in Workload(100).sends()} == {Fate.SEND}


@pytest.mark.parametrize("faults", [(), ("--faults", ",".join(FAULTS))], ids=["threads", "stepwise"])
def test_the_same_seed_gives_the_same_bytes(faults: tuple[str, ...], tmp_path: Path) -> None:
    for name, seed in (("one", 7), ("two", 7), ("three", 8)):
        assert record(tmp_path / name, "--messages", 300, "--seed", seed, *faults).exit_code == 0
    one, two, three = (
        {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        for folder in (tmp_path / name / "store" for name in ("one", "two", "three"))
    )
    assert one == two
    assert one != three


@pytest.mark.parametrize("faults", [(), ("--faults", "slow-worker,crash")], ids=["threads", "stepwise"])
def test_an_interrupted_run_conforms(faults: tuple[str, ...], tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    command = [sys.executable, "-m", "gapless", "record", str(folder), "--transactions", "--messages", "200000"]
    rate = [] if faults else ["--rate", "2000"]
    with subprocess.Popen([*command, *rate, *faults], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as run:
        while not (folder / ".client.ndjson.tmp").exists() or not (folder / ".client.ndjson.tmp").stat().st_size:
            time.sleep(0.01)
            assert run.poll() is None
        run.send_signal(signal.SIGINT)
        output, errors = run.communicate(timeout=60)
    assert run.returncode == 130, output + errors
    report = conforms(folder)
    assert report.coverage["transaction.prepare"] > 0


def test_what_each_fault_leaves_departs_nowhere_and_conforms_once_it_is_recovered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the client log, which is not whole yet. Before a recovery, what lacks its entries is not decided."""
    lose, left = Stepwise._lose, list[Path]()

    def lose_and_save(self: Stepwise, core: Core, end: BaseException) -> None:
        lose(self, core, end)
        left.append(tmp_path / f"left{len(left)}" / "store")
        left[-1].mkdir(parents=True)
        self.disk.save(left[-1])

    monkeypatch.setattr(Stepwise, "_lose", lose_and_save)
    assert record(tmp_path / "trial", "--messages", 600, "--faults", "crash,torn,eio").exit_code == 0
    assert len(left) >= 3
    for store in left:
        before = strictly(store)
        assert before.verdict in {"conforms", "inconclusive"}, before.findings
        Store.open(store).close()
        after = strictly(store)
        assert after.verdict == "conforms", after.findings


# -- a loss that is planted ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "trial"
    assert record(folder, "--messages", 400, "--faults", "crash").exit_code == 0
    return folder


@pytest.fixture
def trial(whole: Path, tmp_path: Path) -> Path:
    """A copy of a run, to be damaged."""
    for file in whole.rglob("*"):
        if file.is_file():
            there = tmp_path / file.relative_to(whole)
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_bytes(file.read_bytes())
    conforms(tmp_path)
    return tmp_path


def overwrite(folder: Path, old: Record, new: Record) -> None:
    """A record is another one of the same size, with its checksums right."""
    raw = stores.encode(new)
    assert len(raw) == old.size
    files = [(int(file.name), file) for file in stores.log_files(folder / "store")]
    base, file = max(each for each in files if each[0] <= old.position)
    with file.open("r+b") as log:
        log.seek(old.position - base)
        log.write(raw)


def rules(report: Report) -> set[str]:
    return {finding.rule for finding in report.findings}


def test_a_final_with_another_body_departs(trial: Path) -> None:
    final = transactions.finals(trial / "store")[5]
    overwrite(trial, final, replace(final, body=bytes(len(final.body))))
    assert strictly(trial).verdict == "departs"


def test_a_commit_that_has_no_final_any_more_departs(trial: Path) -> None:
    """An op names the half, so it counts as rolled back, without a request."""
    final = transactions.finals(trial / "store")[5]
    overwrite(trial, final, replace(final, sys_flag=0, prepared_position=0))
    assert "transaction/producer-asked-to-roll-it-back" in rules(strictly(trial))


def test_a_half_that_its_op_does_not_name_any_more_departs(trial: Path) -> None:
    op = next(
        op for op in transactions.ops(trial / "store") if op.numbers[0] in range(100, 900) and len(op.numbers) > 1
    )
    numbers = [op.numbers[0]] * len(op.numbers)
    assert len({*map(len, map(str, op.numbers))}) == 1
    overwrite(trial, op.record, replace(op.record, body=b"".join(b"%d," % number for number in numbers)))
    assert strictly(trial).verdict == "departs"


@pytest.mark.parametrize(
    "fault",
    [
        "an op does not name the last of its halves",
        "the half cursor passes an open half",
        "an old version stays open next to the new one [#n11]",
        "a half is set aside with checks left",
    ],
)
def test_a_fault_of_the_implementation_departs(fault: str, tmp_path: Path) -> None:
    with injected_faults.FAULTS[fault]():
        record(tmp_path / "trial", "--messages", 600, "--faults", ",".join(sorted(DISK_FAULTS)))
    assert not (tmp_path / "trial/store").exists() or strictly(tmp_path / "trial").verdict == "departs"
