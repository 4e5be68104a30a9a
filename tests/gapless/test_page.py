"""docs/your-own-spec.md is followed word for word: files are written, commands run, what they print compared."""

import ast
import shlex
from pathlib import Path

import pytest

from tests.support.command_line import ROOT, gapless
from tests.support.pages import blocks, is_as_shown

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs/your-own-spec.md"


def test_the_page_is_followed_word_for_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    commands = 0
    for block in blocks(PAGE):
        kind, _, name = block.info.partition(" ")
        if kind == "python":
            file = tmp_path / name
            file.write_text(put(file.read_text() if file.exists() else "", block.content), encoding="utf-8")
        elif kind == "json":
            with (tmp_path / name).open("a", encoding="utf-8") as file_of_events:
                file_of_events.write(block.content)
        else:
            for command, shown in block.commands():
                commands += 1
                output = ran(command)
                assert is_as_shown(shown or "", output), f"{command}\n{output}"
    assert commands > 6
    assert parts_of((tmp_path / "lease.py").read_text()) == parts_of(
        (ROOT / "examples/lease.py").read_text(encoding="utf-8")
    )
    assert (tmp_path / "lease.ndjson").read_text() == (ROOT / "examples/lease.ndjson").read_text(encoding="utf-8")


def ran(command: str) -> str:
    """Return the output of a command of the page; `; echo $?` at its end adds its exit code."""
    words, _, echo = command.removeprefix("gapless ").partition("; ")
    done = gapless(*shlex.split(words))
    assert echo or done.exit_code == 0, done.output
    return done.output + (f"{done.exit_code}\n" if echo else "")


def put(text: str, block: str) -> str:
    """A file with what a block defines: in place of what has the same name there, or behind it all."""
    if not text:
        return block
    for node in ast.parse(block).body:
        new = "\n".join(block.splitlines()[node.lineno - 1 : node.end_lineno])
        old = next((one for one in ast.parse(text).body if name_of(one) == name_of(node)), None)
        lines = text.splitlines()
        if old is not None:
            text = "\n".join([*lines[: old.lineno - 1], new, *lines[old.end_lineno :]]) + "\n"
        else:
            first = next(one for one in ast.parse(text).body if name_of(one) == "INITIAL").lineno - 1
            at = first if isinstance(node, ast.FunctionDef) else len(lines)
            text = "\n".join([*lines[:at], new, "", "", *lines[at:]]) + "\n"
    return text


def name_of(node: ast.stmt) -> str:
    """Return the name that a top-level statement defines or imports."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case ast.ImportFrom(module=module):
            return f"from {module}"
    return ""


def parts_of(text: str) -> dict[str, str]:
    """Return the definitions of a file by name, without the sentences above them."""
    return {name_of(node): ast.dump(node) for node in ast.parse(text).body if name_of(node)}
