"""docs/own-system.md is followed: its broker in Go is built and run, its class is compared with its spec.

Files are as the page shows them; the output of a command contains what the page shows, in the same order.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gapless import check
from tests.support.command_line import ROOT, gapless
from tests.support.night import NIGHT
from tests.support.pages import blocks

PAGE = ROOT / "docs/own-system.md"
BROKER = ROOT / "examples/go_broker"
GO = shutil.which("go", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/go/bin"]))

FEW = """
from hypothesis import settings
settings.register_profile("few", max_examples=25, derandomize=True)
settings.load_profile("few")
"""


def missing(expected: str, output: str) -> str | None:
    """Return the first expected part that is missing in the rest of the output; `…` leaves out."""
    found, at = " ".join(output.split()), 0
    for part in (" ".join(line.split()) for line in expected.replace("…", "\n").splitlines()):
        place = found.find(part, at)
        if place < 0:
            return part
        at = place + len(part)
    return None


# -- the broker ----------------------------------------------------------------------------------------------------


def test_what_the_page_shows_of_the_broker_is_in_it() -> None:
    shown = [(one.info.removeprefix("go "), one.content) for one in blocks(PAGE) if one.info.startswith("go ")]
    assert len(shown) == 4
    for name, content in shown:
        assert content in (BROKER / name).read_text("utf-8")
    code = [line for line in dict(shown)["recorder.go"].splitlines() if line and not line.lstrip().startswith("//")]
    assert len(code) < 55, "a recorder is a matter of some forty lines"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the broker is built."""
    if GO is None:
        pytest.skip("no Go on this machine: the broker is neither built nor run")
    folder = tmp_path_factory.mktemp("go") / "broker"
    shutil.copytree(BROKER, folder)
    return folder


def run(command: str, folder: Path) -> str:
    """Return the output of a command; `; echo $?` at its end adds its exit code. Raises if another one fails."""
    words, _, echo = command.partition("; ")
    program, *arguments = shlex.split(words)
    if program == "gapless":
        done = gapless(*arguments)
        assert echo or done.exit_code == 0, done.output
        return done.output + (f"{done.exit_code}\n" if echo else "")
    assert program in {"go", "./broker"}
    known = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}  # no network, no settings of ours
    known["GOGC"] = "off"  # its compiler is quicker by a quarter, and needs some hundred MB
    ran = subprocess.run(
        [str(GO) if program == "go" else str(folder / "broker"), *arguments],
        cwd=folder, env=known, capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    return ran.stdout


@pytest.mark.slow
@pytest.mark.skipif(not NIGHT, reason="ten seconds of Go's compiler; what the page shows is compared by day")
def test_the_broker_is_built_and_its_faults_are_found(broker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(broker)
    commands = 0
    for block in (one for one in blocks(PAGE) if one.info == "console"):
        for command, expected in block.commands():
            output = run(command, broker)
            assert missing(expected or "", output) is None, f"{command}\n{missing(expected or '', output)!r}\n{output}"
            commands += 1
    assert commands == 8
    for _ in range(3):
        run("./broker -out again.ndjson -patience 1us", broker)
        assert '"outcome":"unknown"' in Path("again.ndjson").read_text("utf-8")
        assert check("again.ndjson").verdict == "conforms"


@pytest.mark.slow
@pytest.mark.skipif(not NIGHT, reason="seconds of Go's compiler")
def test_the_broker_performs_generated_runs_which_find_its_faults(
    broker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(broker)
    run("go build -o broker .", broker)
    assert gapless("generate", "dispatch", "--without", "crash", "--walks", "100", "--out", "runs").exit_code == 0
    for fault in ("", "gap", "drop", "twin", "late", "eager"):
        run(
            f"./broker -perform runs/dispatch.ndjson -out performed.ndjson{f' -fault {fault}' if fault else ''}", broker
        )
        assert check("performed.ndjson").verdict == ("departs" if fault else "conforms"), fault


# -- the class -----------------------------------------------------------------------------------------------------


def test_the_class_is_compared_with_its_spec(tmp_path: Path) -> None:
    files = [(one.info.split()[1], one.content) for one in blocks(PAGE) if one.info.startswith("python ")]
    assert [name for name, _ in files] == ["lease_service.py", "test_lease.py", "test_adapter.py", "test_faulty.py"]
    assert files[0][1] == (ROOT / "examples/lease_service.py").read_text("utf-8")
    for name, content in files:
        (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "lease.py").write_bytes((ROOT / "examples/lease.py").read_bytes())
    (tmp_path / "conftest.py").write_text(FEW, encoding="utf-8")
    (outputs,) = (one.content for one in blocks(PAGE) if one.info == "text")
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "--hypothesis-show-statistics",
            "test_lease.py",
            "test_adapter.py",
            "test_faulty.py",
        ],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(tmp_path / ".hypothesis"),
        },
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    assert "1 failed, 2 passed" in ran
    assert "lease.grant taken" in ran, "it is known to be a test of Hypothesis"
    command, _, expected = outputs.partition("\n")
    assert command == "$ pytest test_faulty.py"
    output = "\n".join(line.removeprefix("E") for line in ran.splitlines())
    assert missing(expected, output) is None, (
        f"{missing(expected, output)!r} is not printed after the parts before it:\n{ran}"
    )


def test_what_is_not_printed_is_missing() -> None:
    assert missing("one …\n… three", "one two\nthree") is None
    assert missing("three\n…\none", "one two three") == "one"
