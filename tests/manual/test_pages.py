"""The tutorial and the pages that say how are followed: every command is run, and prints what is shown.

What a page does not let be run it says itself, with the reason; `tests/support/pages.py` says how. Three pages have
tests of their own, which do more.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gapless.demo.demonstration import Demonstration
from manual.navigation import CONTENTS
from tests.support.command_line import ROOT, gapless
from tests.support.event_files import append, index, opened, write
from tests.support.pages import Block, blocks, blocks_of, is_as_shown
from tests.support.rocketmq.recordings import recording_as_left

FOLLOWED = [
    f"{page}.md"
    for caption, pages in CONTENTS.items()
    if caption == "Tutorial" or caption.startswith("For ")
    for page in pages
]
ELSEWHERE = {
    "docs/your-own-spec.md": "tests/gapless/test_page.py",
    "docs/own-system.md": "tests/properties/test_own_system_page.py",
    "docs/your-own-store.md": "tests/properties/test_own_store_page.py",
}
"""Pages that tests of their own follow."""

HERE = [page for page in ["README.md", *FOLLOWED] if page not in ELSEWHERE]
SHOWN = 40  # lines of an output, in a failure
OUTCOMES = {0, 1}  # of a check of which nothing is shown: that it departs is no mistake
ECHO = "; echo $?"
JUDGES = ("gapless ", "pytest ")
ON_CI = ("CI", "BUILD_NUMBER", "GITHUB_ACTIONS")
"""With these, pytest prints whole messages in its summary; the pages show what people see who type the commands."""


def a_store(folder: Path) -> None:
    """The store of the operator's page, and one with an entry that points 13 bytes too far."""
    Demonstration(folder / "unpacked", print).prepare()
    (folder / "unpacked/whole/orders/store").rename(folder / "store")
    (folder / "conf").mkdir()  # not next to the store, where it would be found
    (folder / "unpacked/whole/orders/broker.conf").rename(folder / "conf/broker.conf")
    (folder / "unpacked/damaged/orders").rename(folder / "damaged")


def a_pair(folder: Path) -> None:
    """The same, a running broker's copy, a master with its slave, its slave damaged, one with traces; and Kafka's."""
    a_store(folder)
    shutil.copytree(ROOT / "examples/kafka", folder / "examples/kafka")
    shutil.copytree(recording_as_left("lab/copies") / "queues_older", folder / "copied")
    shutil.copytree(recording_as_left("traced/clean_5.5.0"), folder / "traced")
    (folder / "traced/client.ndjson").unlink()
    for role in ("master", "slave"):
        shutil.copytree(recording_as_left("lab/pair_slave_killed") / role, folder / role)
    shutil.copytree(folder / "slave", folder / "flipped")
    with (folder / "flipped/store/commitlog/00000000000000000000").open("r+b") as log:
        log.seek(25_119)
        byte = log.read(1)[0]
        log.seek(25_119)
        log.write(bytes([byte ^ 1]))


def a_recording(folder: Path) -> None:
    """A trace that departs."""
    (folder / "traces").mkdir()
    events = [opened(trace="orders/1"), append(0, 0, trace="orders/1"), index(0, 7, trace="orders/1")]
    write(folder / "traces/a.ndjson", events)
    (folder / "known.json").write_text('{"schema": 1, "findings": []}')


PREPARED: dict[str, Callable[[Path], None]] = {
    "README.md": a_recording,
    "docs/ci.md": a_recording,
    "docs/operator.md": a_pair,
    "docs/data.md": a_store,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in; `gapless`, `python` and `pytest` are those of this run."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, module in (("gapless", "-m gapless"), ("pytest", "-m pytest -p no:cacheprovider"), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        (programs / name).chmod(0o755)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    for name in ON_CI:
        monkeypatch.delenv(name, raising=False)
    return here


def ran(command: str) -> tuple[int, str]:
    """Run a command: its exit code and output; its errors only if it failed."""
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        words = []
    if words[:1] == ["gapless"] and not {"|", "<", ">"} & {*command} and ";" not in command:
        done = gapless(*words[1:])
        return done.exit_code, done.stdout if done.exit_code in OUTCOMES else done.output
    shell = subprocess.run(["/bin/bash", "-c", command], capture_output=True, text=True, check=False)
    return shell.returncode, shell.stdout if shell.returncode in OUTCOMES else shell.stdout + shell.stderr


def followed(command: str, shown: str | None) -> str | None:
    """Compare a command's output with the page; nothing if they agree."""
    words = command.removesuffix(ECHO)
    code, output = ran(words)
    if shown is None:
        return (
            None
            if code in (OUTCOMES if command.startswith(JUDGES) else {0})
            else f"{command}\nexit code {code}\n{_begin(output)}"
        )
    if code and words == command:
        return f"{command}\nexit code {code}, which is not shown\n{_begin(output)}"
    if words != command:
        output += f"{code}\n"
    return None if is_as_shown(shown, output) else f"{command}\n{_begin(output)}"


def _begin(output: str) -> str:
    """Cut an output to the length of a failure message."""
    lines = output.splitlines(keepends=True)
    return "".join(lines if len(lines) <= SHOWN else [*lines[:SHOWN], "…\n"])


@pytest.mark.slow
@pytest.mark.parametrize("page", HERE)
def test_a_page_is_followed(page: str, folder: Path) -> None:
    if page in PREPARED:
        PREPARED[page](folder)
    for block in blocks(ROOT / page):
        name = block.info.partition(" ")[2]
        if name and not block.commands():
            (folder / name).write_text(block.content, encoding="utf-8")
        if block.not_run is None:
            for command, shown in block.commands():
                wrong = followed(command, shown)
                assert wrong is None, f"{page}: {wrong}"


LEFT_OUT = [
    pytest.param(block.not_run, id=f"{page}: {command}")
    for page in ["README.md", *FOLLOWED]
    for block in blocks(ROOT / page)
    if block.not_run
    for command, _ in block.commands()
]


@pytest.mark.parametrize("reason", LEFT_OUT)
def test_what_is_not_run_says_why(reason: str) -> None:
    pytest.skip(f"not run: {reason}")


@pytest.mark.parametrize("page", FOLLOWED)
def test_commands_stand_in_blocks_that_are_run(page: str) -> None:
    for block in blocks(ROOT / page):
        assert block.info not in {"", "bash", "shell", "console session"}, "say sh, console or text: these are run"
        assert block.commands() or block.info not in {"sh", "console"}, f"{block.content}: begin commands with `$ `"


@pytest.mark.parametrize(("page", "test"), ELSEWHERE.items())
def test_pages_with_tests_of_their_own_have_them(page: str, test: str) -> None:
    assert page in FOLLOWED
    assert page in (ROOT / test).read_text(encoding="utf-8")


def test_a_command_that_prints_something_else_is_caught() -> None:
    assert followed("echo one; echo $?", "one\n0\n") is None
    assert followed("echo two", "one\n") == "echo two\ntwo\n"
    assert followed("false", "") == "false\nexit code 1, which is not shown\n"
    assert followed("exit 2", None) == "exit 2\nexit code 2\n"
    assert is_as_shown("a …\n…\nin 9 s\n", "a b\nc\nd\nin 1.2 s\n")
    assert not is_as_shown("a …\nin 9 s\n", "a b\nc\nin 1.2 s\n")


def test_what_a_page_does_not_let_be_run_stands_before_the_block() -> None:
    page = "<!-- not run: no network -->\n```sh\npip install x\n```\n\n```console\n$ a\nb\n$ c\n```\n"
    assert list(blocks_of(page)) == [Block("sh", "pip install x\n", "no network"), Block("console", "$ a\nb\n$ c\n")]
    assert [block.commands() for block in blocks_of(page)] == [[("pip install x", None)], [("a", "b\n"), ("c", "")]]
