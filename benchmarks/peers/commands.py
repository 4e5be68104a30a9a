"""Whole commands, in turn: two-phase commit with seven managers, explored by Stateright and by `gapless explore`.

`python -m benchmarks.peers` shows them. Both start, search and end on one thread. Stateright's model is ours
(`stateright/src/bin/two_phase_commit.rs`), with the same states and properties; ours reads the spec, finds its
native code in the cache, and counts deadlocks and terminal sets besides.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich import box
from rich.table import Table

from benchmarks import protocols

MANAGERS = "7"


def measured(built: Path, runs: int) -> Table:
    """The seconds of both commands: from the start to the end of the process, and of the search alone."""
    with tempfile.TemporaryDirectory() as folder:
        protocols.suite()["two_phase_commit"].spec(Path(folder), MANAGERS)
        spec = str(Path(folder) / "two_phase_commit.py")
        ours = [sys.executable, "-m", "gapless", "explore", spec, "--json", "-"]
        for _ in range(2):  # compiles
            subprocess.run(ours, capture_output=True, check=True)
        found = [list(_run([str(built / "release" / "two_phase_commit"), "1", MANAGERS], ours)) for _ in range(runs)]
    table = Table(box=box.SIMPLE_HEAD, title=f"two-phase commit, {MANAGERS} managers, one thread: seconds, the median")
    for name in ("", "states", "whole command", "search alone"):
        table.add_column(name, justify="right" if name else "left")
    for at, name in enumerate(("Stateright", "gapless")):
        states, wholes, searches = zip(*(run[at] for run in found), strict=True)
        table.add_row(name, f"{states[0]:,}", f"{statistics.median(wholes):.2f}", f"{statistics.median(searches):.2f}")
    return table


def _run(stateright: Sequence[str], ours: Sequence[str]) -> Iterator[tuple[int, float, float]]:
    """The states, the seconds of the whole command, and those of the search alone, of each."""
    for command in (stateright, ours):
        began = time.perf_counter()
        output = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        whole = time.perf_counter() - began
        one = output["explored"][0] if "explored" in output else output
        yield one["states"], whole, one["seconds"]
