"""docs/your-own-store.md is followed: its code is the example, its tests pass, its commands print what it says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.support.command_line import ROOT

PAGE = ROOT / "docs/your-own-store.md"
EXAMPLE = ROOT / "examples/naive_subject.py"


def blocks() -> list[tuple[str, str]]:
    """The fenced blocks of the page: what stands behind the fence, and what is in it."""
    tokens = MarkdownIt().parse(PAGE.read_text(encoding="utf-8"))
    return [(token.info, token.content) for token in tokens if token.type == "fence"]


def test_the_page_shows_what_is_in_the_example() -> None:
    shown = [content for info, content in blocks() if info == "python"]
    assert len(shown) == 3
    for content in shown:
        assert content in EXAMPLE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_can_be_followed(tmp_path: Path) -> None:
    for info, content in blocks():
        kind, _, name = info.partition(" ")
        if kind == "python" and name:
            (tmp_path / name).write_text(content, encoding="utf-8")
    assert "5 passed" in ran("python -m pytest -q -p no:cacheprovider test_naive_store.py", tmp_path)
    commands = [line for info, content in blocks() if info == "text" for line in commands_of(content)]
    assert len(commands) == 2
    for command, expected in commands:
        wanted = "[\\s\\S]*".join(re.escape(part) for part in expected.split("…\n"))
        told = ran(command, tmp_path)
        assert re.fullmatch(wanted, told), told


def commands_of(content: str) -> list[tuple[str, str]]:
    """The commands of a block, and what each of them prints."""
    parts = re.split(r"^\$ (.*)\n", content, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def ran(command: str, folder: Path) -> str:
    """What a command prints in a folder."""
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
