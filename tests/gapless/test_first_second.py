"""Modules that the check of a small store does not load: each takes longer than the judgement."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

from gapless.entry import NoPandas
from tests.support.rocketmq.recordings import copy_of, recording, recording_as_left, recording_with_client

HEAVY = (
    "llvmlite", "pyarrow", "numpy.ma", "jinja2", "javaproperties", "networkx", "scipy", "z3", "rocksdict", "ssl",
    "pandas", "pyspark", "hypothesis", "prometheus_client", "numpy",
)  # fmt: skip
LOADED = """
import sys
from gapless.entry import main
try:
    main()
finally:
    print("loaded:", *sorted(set(HEAVY) & set(sys.modules)), file=sys.stderr)
"""


def loaded(cache: Path, *words: str | Path, code: int = 0) -> list[str]:
    """The heavy modules that a command has loaded, on a machine where nothing was ever compiled."""
    program = f"HEAVY = {HEAVY!r}\n{LOADED}"
    room = {name: str(cache) for name in ("GAPLESS_CACHE", "XDG_CACHE_HOME")}
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
    assert loaded(tmp_path, "check", recording_as_left(name)) == ["numpy"]
    assert not [*tmp_path.rglob("*.o")]


@pytest.mark.parametrize("filled", [True, False], ids=["zeros on disk", "sparse"])
def test_a_small_store_with_a_large_file_made_in_advance_is_small(
    filled: bool,  # noqa: FBT001 - as pytest gives it
    tmp_path: Path,
) -> None:
    store = copy_of("lmq", tmp_path)
    (store.parent / "broker.conf").unlink()  # which names another length
    log = store / "commitlog" / f"{0:020d}"
    if filled:
        log.write_bytes(log.read_bytes().ljust(16 << 20, b"\0"))
    else:
        os.truncate(log, 1 << 30)
    cache = tmp_path / "cache"
    words = ("check",) if filled else ("watch", "--once")
    assert loaded(cache, *words, store) == ["numpy"]
    assert not [*cache.rglob("*.o")]


HELP = [["--help"], *([name, "--help"] for name in ("check", "explain", "watch", "prove", "explore", "record"))]


@pytest.mark.parametrize("words", HELP, ids=" ".join)
def test_help_loads_nothing_that_it_does_not_use(words: list[str], tmp_path: Path) -> None:
    assert loaded(tmp_path, *words) == []


def test_a_file_of_events_is_judged_with_arrow_and_without_pandas(tmp_path: Path) -> None:
    """Though pyarrow looks for pandas wherever an array is made of anything."""
    events, cache = tmp_path / "events.ndjson", tmp_path / "cache"
    assert loaded(cache, "trace", recording_as_left("lmq"), "--out", events) <= ["numpy", "numpy.ma", "pyarrow", "ssl"]
    assert loaded(cache, "check", events) == ["numpy", "numpy.ma", "pyarrow", "ssl"]


def test_a_store_with_a_client_log_is_judged_without_arrow(tmp_path: Path) -> None:
    assert loaded(tmp_path, "check", recording_with_client("lmq")) == ["numpy"]


def test_pandas_is_hidden_from_pyarrow_where_our_code_calls_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)

    def asks(name: str) -> object:
        return NoPandas().find_spec(name)

    by_us = FunctionType(asks.__code__, {"__name__": "gapless.traces.judging.columns", "NoPandas": NoPandas})
    with pytest.raises(ModuleNotFoundError):
        by_us("pandas")
    assert by_us("numpy") is None
    assert asks("pandas") is None
    monkeypatch.setitem(sys.modules, "pyspark", ModuleType("pyspark"))
    assert by_us("pandas") is None


def test_a_proof_is_made_with_z3_and_without_what_checks_use(tmp_path: Path) -> None:
    assert loaded(tmp_path, "prove", "cursor") == ["numpy", "z3"]


def test_a_small_store_that_departs_is_reported_of_without_a_compiler(tmp_path: Path) -> None:
    """To describe the target of an entry, the log is read again."""
    store = copy_of("normal", tmp_path)
    with (store / "consumequeue/orders/1/00000000000000000000").open("r+b") as queue:
        for number in range(120, 123):
            queue.seek(20 * number + 6)
            queue.write(b"\xff\xff")
    cache = tmp_path / "cache"
    assert "llvmlite" not in loaded(cache, "check", store, code=1)
    assert not [*cache.rglob("*.o")]


def test_what_is_listed_is_what_would_be_loaded(tmp_path: Path) -> None:
    """With a table of verdicts, pyarrow is needed: the list would tell."""
    verdicts = tmp_path / "verdicts"
    assert "pyarrow" in loaded(tmp_path / "cache", "check", recording("lmq"), "--verdicts", verdicts)


def test_rules_are_listed_without_a_compiler(tmp_path: Path) -> None:
    assert loaded(tmp_path, "rules") == ["numpy"]
