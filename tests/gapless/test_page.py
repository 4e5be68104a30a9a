"""docs/your-own-spec.md is followed word for word: files are written, commands run, what they print compared."""

import ast
import re
import shlex
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.support.command_line import ROOT, gapless

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs/your-own-spec.md"
LEFT_OUT = "…"
VARIES = (
    (r"[\d,.]+ ?(ms|s)\b", r"N \1"),  # how long it took
    (r"\b[0-9a-f]{16}\b", "DIGEST"),
    (r"Z3 [\d.]+", "Z3"),
    (r"\b\d+\.\d\b", "N"),  # seconds, in a table
    (r" +", " "),  # the width of columns
    (r" $", ""),
)


def blocks() -> list[tuple[str, str]]:
    """The fenced blocks of the page: what stands behind the fence, and what is in it."""
    tokens = MarkdownIt().parse(PAGE.read_text(encoding="utf-8"))
    return [(token.info, token.content) for token in tokens if token.type == "fence"]


def test_the_page_is_followed_word_for_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    commands = 0
    for info, content in blocks():
        kind, _, name = info.partition(" ")
        if kind == "python":
            file = tmp_path / name
            file.write_text(put(file.read_text() if file.exists() else "", content), encoding="utf-8")
        elif kind == "json":
            with (tmp_path / name).open("a", encoding="utf-8") as file_of_events:
                file_of_events.write(content)
        else:
            commands += 1
            command, _, expected = content.partition("\n")
            assert re.fullmatch(wanted(expected), plain(ran(command))), f"{command}\n{ran(command)}"
    assert commands > 6
    assert said((tmp_path / "lease.py").read_text()) == said((ROOT / "examples/lease.py").read_text(encoding="utf-8"))
    assert (tmp_path / "lease.ndjson").read_text() == (ROOT / "examples/lease.ndjson").read_text(encoding="utf-8")


def ran(command: str) -> str:
    """What a command of the page prints; `; echo $?` behind it adds its exit code."""
    words, _, echo = command.removeprefix("$ gapless ").partition("; ")
    done = gapless(*shlex.split(words))
    assert echo or done.exit_code == 0, done.output
    told = re.sub(r"(?m)^gapless: \w+: [\d,]+ of [\d,]+ .*\n", "", done.output)  # how far it is, on a slow machine
    return told + (f"{done.exit_code}\n" if echo else "")


def plain(text: str) -> str:
    """The text without what varies from run to run."""
    for varying, same in VARIES:
        text = re.sub(varying, same, text, flags=re.MULTILINE)
    return text


def wanted(text: str) -> str:
    """A pattern of what is printed; some lines may be left out."""
    lines = [".*\n" if line == LEFT_OUT else re.escape(line) + "\n" for line in plain(text).splitlines()]
    return "(?s)" + "".join(lines)


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
    """What a statement at the top defines or imports."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case ast.ImportFrom(module=module):
            return f"from {module}"
    return ""


def said(text: str) -> dict[str, str]:
    """What a file says, by name, but for the sentences above it."""
    return {name_of(node): ast.dump(node) for node in ast.parse(text).body if name_of(node)}


def test_a_page_that_shows_something_else_is_caught() -> None:
    printed = "proved   1.7 ms  lease: grant: can_happen\nproved   2 ms  lease: write\n3 of 3 in 1.2 s.\n"
    assert re.fullmatch(wanted("…\n3 of 3 in 99 s.\n"), plain(printed))
    assert not re.fullmatch(wanted("…\n4 of 4 in 1.2 s.\n"), plain(printed))
    assert not re.fullmatch(wanted("3 of 3 in 1.2 s.\n"), plain(printed))
