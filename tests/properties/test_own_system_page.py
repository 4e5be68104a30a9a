"""docs/own-system.md is followed: its class is the example, its test passes, its fault is told as the page says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from markdown_it import MarkdownIt

from tests.support.command_line import ROOT

PAGE = ROOT / "docs/own-system.md"
EXAMPLE = ROOT / "examples/lease_service.py"

FEW = """
from hypothesis import settings
settings.register_profile("few", max_examples=25, derandomize=True)
settings.load_profile("few")
"""


def test_the_page_can_be_followed(tmp_path: Path) -> None:
    blocks = [
        (token.info, token.content) for token in MarkdownIt().parse(PAGE.read_text("utf-8")) if token.type == "fence"
    ]
    shown = [content for info, content in blocks if info == "python"]
    assert len(shown) == 2
    for content in shown:
        assert content in EXAMPLE.read_text(encoding="utf-8")
    (tmp_path / "lease.py").write_bytes((ROOT / "examples/lease.py").read_bytes())
    for info, content in blocks:
        if info.startswith("python "):
            (tmp_path / info.split()[1]).write_text(content, encoding="utf-8")
    (tmp_path / "conftest.py").write_text(FEW, encoding="utf-8")
    (told,) = (content for info, content in blocks if info == "text")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_lease.py", "test_faulty.py"],
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
    assert "1 failed, 1 passed" in ran
    command, *lines = told.splitlines()
    assert command == "$ pytest test_faulty.py"
    found = " ".join(line.removeprefix("E") for line in ran.splitlines())
    found = " ".join(found.split())
    at = 0
    for part in (" ".join(line.split()) for line in "\n".join(lines).replace("…", "\n").splitlines()):
        at = found.find(part, at)
        assert at >= 0, f"{part!r} is not told behind what comes before it:\n{ran}"
