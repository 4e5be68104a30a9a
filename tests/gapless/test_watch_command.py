"""`gapless watch`, as it is called: its exit codes, what it writes, how it is stopped."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from socket import socket
from urllib.request import urlopen

import pytest

from gapless import metrics
from gapless.traces.watch import Listeners, StoreWatch
from tests.support.command_line import ROOT, gapless
from tests.support.rocketmq.recordings import recording

BUSY = 10.0  # seconds that a machine may be late; what never ends takes minutes


def test_once_goes_up_to_the_present_and_on_from_there(tmp_path: Path) -> None:
    state, store = tmp_path / "state", tmp_path / "store"
    shutil.copytree(recording("normal"), store)
    first = gapless("watch", store, "--once", "--state", state, "--report", tmp_path / "out")
    assert (first.exit_code, first.stdout.splitlines()[-1].partition(":")[0]) == (0, "conforms")
    report = json.loads((tmp_path / "out/report.json").read_text())
    assert report["sources"][0]["records"] == 4897
    assert (tmp_path / "out/report.html").exists()
    again = gapless("watch", store, "--once", "--state", state)
    assert "where it was left" in again.stderr
    assert again.exit_code == 0
    with (store / "consumequeue/orders/1/00000000000000000000").open("r+b") as file:
        file.seek(20)
        file.write(bytes(7) + b"\1")
    departs = gapless("watch", store, "--once", "--profile", "strict")
    assert departs.exit_code == 1
    assert departs.stdout.endswith("(strict profile)\n")
    assert "(queue/entry-points-at-its-message)" in departs.stdout
    headline = next(line for line in departs.stdout.splitlines() if line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC orders/1: entry 1 points at byte 1; .*", headline)


def test_nonsense_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("x")
    for given, says in (
        (["--metrics", "localhost"], "expected PORT or HOST:PORT"),
        (["--state", tmp_path / "state"], "is no state of gapless watch"),
        (["--only", "no/such"], "no such rule"),
        (["--every", "inf"], "--every inf: expected "),
    ):
        refused = gapless("watch", tmp_path, "--once", *given)
        assert (refused.exit_code, says in refused.stderr) == (2, True)
    (tmp_path / "file").write_text("x")
    for paths, says in (
        ([tmp_path / "file"], f"{tmp_path}/file: a text file: events are read from files named"),
        ([tmp_path, "--metrics", "a..b:9464"], "it is no name of a host"),
        ([tmp_path, "--report", tmp_path / "file/report"], f"{tmp_path}/file is a file, expected a folder"),
        ([tmp_path, "--state", tmp_path / "no/state"], f"folder {tmp_path}/no does not exist"),
    ):
        refused = gapless("watch", "--once", *paths)
        assert (refused.exit_code, says in refused.stderr) == (2, True)
    with socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused = gapless("watch", tmp_path, "--once", "--metrics", f"127.0.0.1:{taken.getsockname()[1]}")
        assert (refused.exit_code, "Address already in use" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("given", "host"),
    [
        ("9464", "127.0.0.1"),
        (":9464", "127.0.0.1"),
        ("192.0.2.1:9464", "192.0.2.1"),
        ("[2001:db8::1]:9464", "2001:db8::1"),
    ],
)
def test_metrics_leave_the_machine_only_where_a_host_is_named(
    given: str, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listening: list[tuple[str, int]] = []

    def serve(_status: object, _store: str, at: str, port: int) -> int:
        listening.append((at, port))
        return port

    monkeypatch.setattr(metrics, "serve_metrics", serve)
    refused = gapless("watch", tmp_path, "--once", "--metrics", given)
    assert (refused.exit_code, listening) == (2, [(host, 9464)])


def test_a_path_without_a_store_is_refused_once_and_otherwise_waited_for_in_one_line(tmp_path: Path) -> None:
    shutil.copytree(recording("normal"), tmp_path / "above/broker/store")
    hint = f"no recording, but there is one in it: gapless watch {tmp_path}/above/broker/store"
    refused = gapless("watch", tmp_path / "above", "--once")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == f"gapless: {tmp_path}/above: {hint}\n"
    typo = gapless("watch", tmp_path / "none", "--once")
    assert (typo.exit_code, typo.stdout, typo.stderr.count("\n")) == (2, "", 1)
    heard: list[str] = []
    waits = StoreWatch(tmp_path / "above", Listeners(heard.append, lambda _: None))
    waits.look()
    (source,) = waits.end().sources
    assert heard == [f"{tmp_path}/above: waiting for a RocketMQ store there: {hint}"]
    assert source.reasons == ["no store came while it was watched"]


def test_a_report_that_cannot_be_written_does_not_end_the_watch(tmp_path: Path) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    shutil.copytree(recording("normal"), store)
    (out / "report.json").mkdir(parents=True)  # a folder stands in its way
    done = gapless("watch", store, "--once", "--report", out)
    assert (done.exit_code, done.stdout.splitlines()[-1].partition(":")[0]) == (2, "conforms")
    assert "report.json: cannot be written (Is a directory); tried again" in done.stderr
    assert done.stderr.splitlines()[-1].endswith("report.json: cannot be written (Is a directory)")
    assert sorted(path.name for path in out.iterdir()) == ["report.html", "report.json"]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_with_the_last_report_written(number: signal.Signals, code: int, tmp_path: Path) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    shutil.copytree(recording("normal"), store)
    command = [sys.executable, "-m", "gapless", "watch", str(store), "--report", str(out), "--metrics", "127.0.0.1:0"]
    with subprocess.Popen(
        [*command, "--grace", "120", "--state", str(tmp_path / "state")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=ROOT, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:  # fmt: skip
        assert process.stderr is not None
        port = process.stderr.readline().split()[-1].removeprefix("http://127.0.0.1:").removesuffix("/metrics")
        for _ in range(600):
            with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                if f'gapless_records{{store="{store}"}} 4897.0' in answer.read().decode():
                    break
            time.sleep(0.1)
        process.send_signal(number)
        output, _ = process.communicate(timeout=120)
    assert process.returncode == code
    assert output.splitlines()[-1].startswith("conforms: No violation found. 4,897 records")
    assert sorted(path.name for path in out.iterdir()) == ["report.html", "report.json"]
    assert json.loads((out / "report.json").read_text())["verdict"] == "conforms"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "state", "store"]


@pytest.mark.parametrize("behind", [0.0, 0.3])
def test_a_signal_ends_it_within_a_second_of_its_start_too(behind: float, tmp_path: Path) -> None:
    """While it reads for the first time, on a machine where nothing was ever compiled."""
    store = tmp_path / "store"
    shutil.copytree(recording("normal"), store)
    command = [sys.executable, "-m", "gapless", "watch", str(store), "--report", str(tmp_path / "out")]
    with subprocess.Popen(
        [*command, "--state", str(tmp_path / "state")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=ROOT, env={**os.environ, "PYTHONUNBUFFERED": "1", "XDG_CACHE_HOME": str(tmp_path / "cache")},
    ) as process:  # fmt: skip
        assert process.stderr is not None
        assert "watched from 0 on" in process.stderr.readline()
        time.sleep(behind)
        sent = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, written = process.communicate(timeout=60)
        took = time.monotonic() - sent
    assert process.returncode == 143, written
    assert took < 1.0 + BUSY
    left = {path.name for path in tmp_path.iterdir()} - {"cache", "out"}
    assert left in ({"store"}, {"store", "state"})


LOST = """
import os, signal, sys
from gapless import entry
from gapless.traces.watch import StoreWatch
def run(self, waits, once):
    os.kill(os.getpid(), signal.SIGTERM)
    waits(60)
    raise KeyboardInterrupt
StoreWatch.run = run
sys.argv = ["gapless", "watch", sys.argv[1]]
entry.main()
"""


def test_a_deadline_that_became_an_interrupt_ends_it_by_its_signal(tmp_path: Path) -> None:
    """Python drops an exception of a handler while it deletes an object; it is raised later as an interrupt."""
    store = tmp_path / "store"
    shutil.copytree(recording("normal"), store)
    done = subprocess.run([sys.executable, "-c", LOST, str(store)], capture_output=True, check=False, cwd=ROOT)
    assert (done.returncode, b"Traceback" in done.stderr) == (143, False)
