"""docs/your-own-store.md is followed: its code is the example, its tests pass, its commands print what it says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import ROOT
from tests.support.pages import blocks

PAGE = ROOT / "docs/your-own-store.md"
EXAMPLE = ROOT / "examples/naive_subject.py"

FEW = """
from hypothesis import settings
settings.register_profile("few", max_examples=25, derandomize=True)
settings.load_profile("few")
"""


def test_the_page_shows_what_is_in_the_example() -> None:
    shown = [one.content for one in blocks(PAGE) if one.info == "python"]
    assert len(shown) == 3
    for content in shown:
        assert content in EXAMPLE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_can_be_followed(tmp_path: Path) -> None:
    for block in blocks(PAGE):
        kind, _, name = block.info.partition(" ")
        if kind == "python" and name:
            (tmp_path / name).write_text(block.content, encoding="utf-8")
    (tmp_path / "conftest.py").write_text(FEW, encoding="utf-8")
    assert "5 passed" in ran("python -m pytest -q -p no:cacheprovider test_naive_store.py", tmp_path)
    commands = [command for one in blocks(PAGE) if one.info == "text" for command in one.commands()]
    assert len(commands) == 2
    for command, expected in commands:
        wanted = "[\\s\\S]*".join(re.escape(part) for part in (expected or "").split("…\n"))
        result = ran(command, tmp_path)
        assert re.fullmatch(wanted, result), result


def ran(command: str, folder: Path) -> str:
    """Return the output of a command in a folder."""
    words = shlex.split(command)
    assert words[0] == "python"
    path = os.pathsep.join([str(ROOT), str(folder)])
    done = subprocess.run(
        [sys.executable, *words[1:]],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / ".hypothesis")},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout
