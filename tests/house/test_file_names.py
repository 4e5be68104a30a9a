"""Prose that names a Python file names one that is there, and no text has what a merge left open."""

import re
from collections.abc import Set as AbstractSet

import pytest

from tests.house import debts
from tests.house.project import ROOT, listed, project_files

OPEN = re.compile(r"^(<{7}|>{7})( |$)", re.MULTILINE)
NAMED = re.compile(r"`([\w./-]+\.py)`")


def not_there(text: str, names: AbstractSet[str]) -> list[tuple[int, str]]:
    """Return the files that a text names in backticks, and that are in no room.

    By their name or the end of their path.
    """
    return [
        (number, name)
        for number, line in enumerate(text.splitlines(), start=1)
        for name in NAMED.findall(line)
        if name not in names and not re.search("[A-Z]{2}", name)  # as in `spec/NAME.py`
    ]


def test_files_that_prose_names_are_there() -> None:
    paths = [path.relative_to(ROOT) for path in project_files()]
    if not paths:
        pytest.skip("no git, or not in a repository")
    names = {"/".join(path.parts[at:]) for path in paths for at in range(len(path.parts))}
    names |= {f"gapless/{path}" for path in paths}  # by the links
    found = {
        (str(path), name, line)
        for path in paths
        if path.suffix in {".py", ".md"} and path.parent.as_posix() != "tests/house"
        for line, name in not_there((ROOT / path).read_text(encoding="utf-8"), names)
    }
    new = [
        f"{path}:{line}: `{name}` is not there" for path, name, line in sorted(found) if (path, name) not in debts.DEAD
    ]
    assert not new, listed(new)
    paid = debts.DEAD - {(path, name) for path, name, _ in found}
    assert not paid, f"strike out of `debts.DEAD`: {sorted(paid)}"


def test_a_file_that_is_not_there_is_caught() -> None:
    names = {"log.py", "spec/log.py"}
    assert not_there("`log.py` and\n`spec/logs.py`, `NAME.py`, `spec/log.py`", names) == [(2, "spec/logs.py")]


def test_no_merge_is_left_open() -> None:
    texts = [path for path in project_files() if path.suffix in {".py", ".md", ".toml", ".txt", ""}]
    found = [str(path.relative_to(ROOT)) for path in texts if OPEN.search(path.read_text(encoding="utf-8"))]
    assert not found, listed(found)
    assert OPEN.search("one\n" + "<" * 7 + " HEAD\ntwo\n")
