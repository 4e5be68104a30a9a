"""Two tables: how much processor time Stateright and ours take for the states of two specs, in one run, in turn.

    python -m benchmarks.peers [--runs 5]

Stateright runs on one thread, as ours does. Its models are written by hand (`stateright/src/bin/`) and offer only
arguments that can be accepted, or nearly so; ours reads `spec/` and tries every step with every argument. Both must
find the same number of states and the same number of steps between them, and hold all invariants of each: Stateright's
models ask all of them, ours those that look at what the step wrote. Stateright keeps how each state was met; ours
searches once more where something is broken. Ours does more: it judges states beyond the bound, too, holds the step
properties of every accepted call, counts every refusal by its rule, tells states apart by all of their bits and not by
a hash, and looks for states that are never left. Ours is measured from the spec to the verdict, its code compiled
before. The second table is about whole commands (`commands.py`). Needs cargo, which fetches Stateright.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.peers import commands
from gapless.entry import work_steadily
from gapless.properties.exploration.bounds import Bound, bound_of, untouched
from gapless.properties.exploration.search import Exploration, explore
from gapless.spec.catalog import END, SPECS

MODELS = Path(__file__).parent / "stateright"
BUILT = Path(__file__).parents[2] / "build" / "peers"


@dataclass
class PeerComparison:
    """One spec within one bound, by both; `given`: further arguments of Stateright's model."""

    spec: str
    says: str
    bound: Bound
    given: Sequence[str] = ()
    stateright: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)
    found: Exploration | None = None

    def run(self) -> None:
        """Both once, in turn; their seconds are kept."""
        began = _children()
        command = [str(BUILT / "release" / self.spec), "1", *self.given]
        states = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        self.stateright.append(_children() - began)
        self.found = None  # its memory is another's
        began = time.process_time()
        found = self.found = explore(SPECS[self.spec], self.bound, how="native")
        self.ours.append(time.process_time() - began)
        steps = (
            found.transitions - found.accepted.get(END, 0) + 1
        )  # Stateright claims no rest, and counts the beginning
        expected = {"states": found.states, "generated": steps, "broken": 0}
        if found.result != "holds" or {name: states[name] for name in expected} != expected:
            sys.exit(f"{self.spec}: Stateright says {states}, ours {found.result}, {expected}: expected the same model")


def _children() -> float:
    """The processor time of commands that have ended, in seconds; of ours the system's share is counted, too."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compared() -> list[PeerComparison]:
    """List the comparisons: a small and a large bound of one spec, and another spec."""
    wide = {name: bound_of(SPECS[name], wide=True) for name in ("dispatch", "permits")}
    fewer = replace(
        wide["dispatch"],
        within=lambda s: s.scanned <= 9 and s.lives <= 3 and (s.start == 1 or untouched(s)),
        numbers={**wide["dispatch"].numbers, "number": range(10), "to": range(11), "kept": range(11)},
    )
    return [
        PeerComparison("dispatch", "dispatch, 8 messages", fewer, ["8"]),
        PeerComparison("dispatch", "dispatch, wide: 10 messages", wide["dispatch"], ["10"]),
        PeerComparison("permits", "permits, wide", wide["permits"]),
    ]


def main() -> None:
    """Build, run both in turn, show."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    cargo = shutil.which("cargo")
    if cargo is None:
        sys.exit("cargo is not at hand, expected it for Stateright; install Rust, then run `make peers` again")
    subprocess.run(
        [cargo, "build", "--quiet", "--release", "--locked", "--target-dir", str(BUILT)], cwd=MODELS, check=True
    )
    work_steadily()
    every = compared()
    for one in every:
        for _ in range(2):  # compiles; again for the packing that this has found
            explore(SPECS[one.spec], one.bound, how="native")
    for _ in range(runs):
        for one in every:
            one.run()
    show(every)
    Console(width=120).print(commands.measured(BUILT, runs))


def show(every: Sequence[PeerComparison]) -> None:
    """The medians, how far they spread, and how many times sooner than Stateright ours is; and of all together."""
    table = Table(
        box=box.SIMPLE_HEAD, title="one thread, processor time in seconds: the median, the least and the most"
    )
    for name in ("", "states", "steps tried", "Stateright", "gapless", "× Stateright"):
        table.add_column(name, justify="right" if name else "left")
    both = 0.0, 0.0
    for one in every:
        assert one.found is not None  # noqa: S101 - for mypy
        cells = [
            f"{statistics.median(all_of_them):.2f} ({min(all_of_them):.2f}–{max(all_of_them):.2f})"
            for all_of_them in (one.stateright, one.ours)
        ]
        medians = statistics.median(one.stateright), statistics.median(one.ours)
        both = both[0] + medians[0], both[1] + medians[1]
        times = medians[0] / medians[1]
        table.add_row(one.says, f"{one.found.states:,}", f"{one.found.tried:,}", *cells, f"{times:.1f}")
    table.add_row("together", "", "", *(f"{seconds:.2f}" for seconds in both), f"{both[0] / both[1]:.1f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
