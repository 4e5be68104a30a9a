"""What the check of a small store does not load: each of these takes longer than to judge the store."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.rocketmq.recordings import copy_of, recording, recording_as_left

HEAVY = ("numba", "llvmlite", "pyarrow", "numpy.ma", "jinja2", "javaproperties", "networkx", "z3", "rocksdict", "ssl")
LOADED = """
import sys
from gapless.cli import app
try:
    app(sys.argv[1:])
finally:
    print("loaded:", *sorted(set(HEAVY) & set(sys.modules)), file=sys.stderr)
"""


def loaded(cache: Path, *words: str | Path, code: int = 0) -> list[str]:
    """The heavy modules that a command has loaded, on a machine where nothing was ever compiled."""
    program = f"HEAVY = {HEAVY!r}\n{LOADED}"
    room = {name: str(cache) for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, words)],
        env=os.environ | room,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stderr.splitlines()[-1].split()[1:]


@pytest.mark.parametrize("name", ["normal", "lmq"])
def test_a_small_store_is_judged_without_a_compiler(name: str, tmp_path: Path) -> None:
    assert loaded(tmp_path, "check", recording_as_left(name)) == []
    assert not [*tmp_path.rglob("*.nbi"), *tmp_path.rglob("*.o")]


def test_a_small_store_that_departs_is_told_of_without_a_compiler(tmp_path: Path) -> None:
    """To say what lies where an entry points, the log is read once more."""
    store = copy_of("normal", tmp_path)
    with (store / "consumequeue/orders/1/00000000000000000000").open("r+b") as queue:
        for number in range(120, 123):
            queue.seek(20 * number + 6)
            queue.write(b"\xff\xff")
    cache = tmp_path / "cache"
    assert "numba" not in loaded(cache, "check", store, code=1)
    assert not [*cache.rglob("*.nbi"), *cache.rglob("*.o")]


def test_what_is_listed_is_what_would_be_loaded(tmp_path: Path) -> None:
    """With a table of verdicts, pyarrow is needed: the list would tell."""
    verdicts = tmp_path / "verdicts"
    assert "pyarrow" in loaded(tmp_path / "cache", "check", recording("lmq"), "--verdicts", verdicts)


def test_rules_are_listed_without_a_compiler(tmp_path: Path) -> None:
    assert loaded(tmp_path, "rules") == []
