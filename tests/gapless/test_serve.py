"""`gapless serve`, and `gapless.coordinator` for programs."""

import asyncio
import doctest
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gapless import coordinator
from gapless.traces.check import check
from tests.support.command_line import ROOT, gapless
from tests.support.pages import blocks


def test_the_examples_are_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(coordinator, raise_on_error=False)
    assert found.attempted > 5
    assert not found.failed
    for name in coordinator.__all__:
        assert f"`{name}`" in str(coordinator.__doc__)


@contextmanager
def served(folder: Path, *options: object) -> Iterator[tuple[subprocess.Popen[str], str, int]]:
    """A coordinator in a process of its own, and where it listens; killed if it still runs at the end."""
    command = [sys.executable, "-m", "gapless", "serve", "coordinator", str(folder), *map(str, options)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            host, _, port = process.stdout.readline().rpartition(":")
            yield process, host, int(port)
        finally:
            process.kill()


@pytest.mark.slow
def test_what_was_decided_survives_a_kill_and_a_clean_stop_is_recorded(tmp_path: Path) -> None:
    folder, recorded = tmp_path / "data", tmp_path / "steps.ndjson"

    async def first(host: str, port: int) -> None:
        client = await coordinator.connect_client(host, port, timeout=1.5)
        await client.commit(await client.begin())
        await client.begin()
        with pytest.raises(coordinator.TimedOut):
            await client.begin()
        await client.close()

    async def second(host: str, port: int) -> None:
        client = await coordinator.connect_client(host, port)
        await client.commit(0)
        await client.abort(1)
        assert await client.begin() == 2
        await client.close()

    with served(folder, "--max", 1) as (process, host, port):
        asyncio.run(first(host, port))
        process.kill()
    with served(folder, "--max", 1, "--record", recorded) as (process, host, port):
        asyncio.run(second(host, port))
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
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
    done = gapless("serve", "coordinator", tmp_path / "new", "--host", "192.0.2.1")
    assert (done.exit_code, "192.0.2.1" in done.output) == (2, True)
    assert gapless("serve", "coordinator", tmp_path, "--max", "-1").exit_code == 2


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
