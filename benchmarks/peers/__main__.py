"""One table: how much processor time Stateright and ours take for the states of the spec dispatch, in one run, in turn.

    python -m benchmarks.peers [--runs 5]

Stateright runs on one thread, as ours does. Its model is written by hand (`stateright/src/main.rs`) and offers only
the steps that can happen; ours reads `spec/dispatch.py` and tries every step with every argument. Both must find the
same number of states, and hold all invariants of each: Stateright's model asks all of them, ours those that look at
what the step wrote. Ours does more: it judges states beyond the bound, too, holds the step properties of every accepted
call, counts every refusal by its rule, tells states apart by all of their bits and not by a hash, and looks for states
that are never left. Ours is measured from the spec to the verdict, its code compiled before. Needs cargo, which fetches
Stateright.
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
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from gapless.properties.exploration.bounds import bound_of
from gapless.properties.exploration.search import explore
from gapless.spec.catalog import SPECS

MODEL = Path(__file__).parent / "stateright"
BUILT = Path(__file__).parents[2] / "build" / "peers"


def main() -> None:
    """Build, run both in turn, show."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    cargo = shutil.which("cargo")
    if cargo is None:
        sys.exit("cargo is not at hand, expected it for Stateright; install Rust, then run `make peers` again")
    subprocess.run(
        [cargo, "build", "--quiet", "--release", "--locked", "--target-dir", str(BUILT)], cwd=MODEL, check=True
    )
    spec, bound = SPECS["dispatch"], bound_of(SPECS["dispatch"], wide=True)
    explore(spec, bound, how="native")  # compiles; once more for the packing that this has found
    ours = explore(spec, bound, how="native")
    seconds: dict[str, list[float]] = {"Stateright": [], "gapless": []}
    for _ in range(runs):
        began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        said = subprocess.run([str(BUILT / "release" / "dispatch"), "1"], capture_output=True, text=True, check=True)
        found = json.loads(said.stdout)
        if found["states"] != ours.states:
            sys.exit(f"Stateright found {found['states']:,} states, ours {ours.states:,}: expected the same model")
        seconds["Stateright"].append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began)
        began = time.process_time()
        explore(spec, bound, how="native")
        seconds["gapless"].append(time.process_time() - began)
    show(seconds, ours.states, ours.tried)


def show(seconds: dict[str, list[float]], states: int, tried: int) -> None:
    """The medians, how far they spread, and how many times sooner than Stateright each is."""
    table = Table(
        box=box.SIMPLE_HEAD,
        title=f"dispatch, wide: {states:,} states, {tried:,} steps tried, one thread, processor time",
    )
    for name in ("", "seconds", "least", "most", "states/s", "× Stateright"):
        table.add_column(name, justify="right" if name else "left")
    peer = statistics.median(seconds["Stateright"])
    for name, all_of_them in seconds.items():
        middle = statistics.median(all_of_them)
        row = f"{middle:.2f}", f"{min(all_of_them):.2f}", f"{max(all_of_them):.2f}"
        table.add_row(name, *row, f"{states / middle:,.0f}", f"{peer / middle:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
