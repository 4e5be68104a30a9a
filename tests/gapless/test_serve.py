"""`gapless serve`, and `gapless.coordinator` for programs."""

import asyncio
import doctest
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from gapless import coordinator
from gapless.traces.check import check
from tests.support.command_line import ROOT, gapless
from tests.support.night import NIGHT
from tests.support.pages import blocks

SILENT, FILES = (10_000, 256) if NIGHT else (120, 64)  # connections, and descriptors of the coordinator


def test_the_examples_are_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(coordinator, raise_on_error=False)
    assert found.attempted > 5
    assert not found.failed
    for name in coordinator.__all__:
        assert f"`{name}`" in str(coordinator.__doc__)


@contextmanager
def served(
    folder: Path, *options: object, within: Sequence[str] = (), **environment: str
) -> Iterator[tuple[subprocess.Popen[str], str, int]]:
    """A coordinator in a process of its own, and where it listens; killed if it still runs at the end."""
    command = [*within, sys.executable, "-m", "gapless", "serve", "coordinator", str(folder), *map(str, options)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, **environment},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            host, _, port = process.stdout.readline().rpartition(":")
            yield process, host, int(port)
        finally:
            process.kill()


@pytest.mark.slow
def test_what_was_decided_survives_a_kill_and_a_clean_stop_is_recorded(tmp_path: Path) -> None:
    folder, recorded = tmp_path / "data", tmp_path / "steps.ndjson"

    async def first(host: str, port: int) -> list[str]:
        client = await coordinator.connect_client(host, port, timeout=1.5)
        await client.commit(await client.begin())
        await client.begin()
        with pytest.raises(coordinator.TimedOut):
            await client.begin()
        await client.close()
        return [client.token(number) for number in range(2)]

    async def second(host: str, port: int, tokens: list[str]) -> None:
        client = await coordinator.connect_client(host, port)
        for end in (client.commit(0), client.abort(1), client.abort(1, token=tokens[0])):
            with pytest.raises(coordinator.ForeignTransaction):
                await end
        await client.commit(0, token=tokens[0])
        await client.abort(1, token=tokens[1])
        assert await client.begin() == 2
        await client.close()

    with served(folder, "--max", 1) as (process, host, port):
        tokens = asyncio.run(first(host, port))
        process.kill()
    with served(folder, "--max", 1, "--record", recorded, "--verbose") as (process, host, port):
        asyncio.run(second(host, port, tokens))
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
        assert process.returncode == 0
    for line in (
        "connection 0 from 127.0.0.1:",
        "transaction 1 is another client's: its token is",
        "transaction 2: OPEN",
    ):
        assert line in log
    assert not any(token in log for token in tokens)
    assert check(recorded).verdict == "conforms"


def test_what_cannot_be_served_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    done = gapless("serve", "coordinator", tmp_path / "file")
    assert done.exit_code == 2
    assert "file" in done.output
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "strange").write_text("")
    done = gapless("serve", "coordinator", tmp_path)
    assert (done.exit_code, "expected files of a coordinator's log" in done.output) == (2, True)
    (tmp_path / "secret").write_text("0123456789abcdef")
    for options, says in (
        (
            ["--host", "192.0.2.1"],
            "192.0.2.1 can be reached from other machines: give clients a shared secret (--secret",
        ),
        (["--host", "192.0.2.1", "--secret-file", tmp_path / "secret"], "192.0.2.1:0: Cannot assign requested address"),
        (["--host", "no.such.host.invalid"], "no.such.host.invalid:0: "),
    ):
        done = gapless("serve", "coordinator", tmp_path / "new", *options)
        assert (done.exit_code, says in done.output, done.output.count("\n")) == (2, True, 1), done.output
    assert gapless("serve", "coordinator", tmp_path, "--max", "-1").exit_code == 2


def test_at_its_descriptor_limit_a_coordinator_serves_who_knows_its_secret_and_logs_little(tmp_path: Path) -> None:
    """It has descriptors for some thirty of 120 silent connections; at night, for 200 of 10,000."""
    if NIGHT:  # each connection has another end, here
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    word = "0123456789abcdef-of-the-environment"

    async def run(host: str, port: int, connect_silent: Callable[[], object]) -> None:
        first = await coordinator.connect_client(host, port, secret=word.encode())
        for number in range(SILENT):
            connect_silent()
            if number % 10 == 0:
                await first.commit(await first.begin())
        second = await coordinator.connect_client(host, port, secret=word.encode())
        await second.commit(await second.begin())
        assert (first.permits.cuts, second.permits.cuts) == (0, 0)
        with pytest.raises(coordinator.WrongSecret, match="asks for a shared secret"):
            await coordinator.connect_client(host, port)
        await first.close()
        await second.close()

    few = ("bash", "-c", f'ulimit -n {FILES}; exec "$@"', "few")
    data = tmp_path / "data"
    with ExitStack() as silent, served(data, within=few, GAPLESS_COORDINATOR_SECRET=word) as (process, host, port):
        silence = partial(socket.create_connection, (host, port))
        asyncio.run(asyncio.wait_for(run(host, port, lambda: silent.enter_context(silence())), 60))
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=60)
    assert process.returncode == 0
    assert 1 <= log.count("\n") <= 2, log
    assert "as many as there is room for" in log


@pytest.mark.slow
def test_the_page_is_followed(tmp_path: Path) -> None:
    (program,) = (block.content for block in blocks(ROOT / "docs/coordinator.md") if block.info == "python client.py")
    with served(tmp_path / "data", "--max", 3, "--record", tmp_path / "steps.ndjson") as (process, _, port):
        client = [sys.executable, "-c", program.replace("7070", str(port))]
        done = subprocess.run(client, check=True, capture_output=True, text=True, cwd=ROOT, timeout=60)
        assert "was not answered within" in done.stdout
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, process.stderr and process.stderr.read()
    assert check([tmp_path / "steps.ndjson"]).verdict == "conforms"
