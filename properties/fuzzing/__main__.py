"""Tries readers of specs on specs that mean nothing, and counts what became of them.

python -m gapless.properties.fuzzing --specs 100000 --jobs 2

Compiled readings are tried, on traces and on states; with --prover, the prover.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from gapless.properties.fuzzing import compiled_differential, differential
from gapless.properties.fuzzing.differential import FuzzTally
from gapless.properties.processes import workers

CHUNK = 250  # specs that one task judges
TASKS = 8  # of one process: what it has read of a spec, it keeps


def main() -> int:
    """Judge so many specs; 1 if a reader and the plain functions disagree on one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--specs", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first chunk: others draw other specs")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--prover", action="store_true", help="the prover, by specs that Hypothesis draws")
    asked = parser.parse_args()
    size = min(CHUNK, asked.specs)
    chunks = range(asked.first, asked.first + -(-asked.specs // CHUNK))
    numbers = chunks if asked.prover else [number * CHUNK for number in chunks]
    chunk: Callable[[int, int], FuzzTally] = differential.chunk if asked.prover else compiled_differential.chunk
    began, seen = time.monotonic(), FuzzTally()
    with workers(asked.jobs, TASKS) as pool:
        for tally in pool.map(chunk, numbers, [size] * len(chunks)):
            seen.add(tally)
            if tally.failed:
                print(f"\n{tally.failed}", flush=True)  # noqa: T201 - a command
    seconds = time.monotonic() - began
    unseen = (differential if asked.prover else compiled_differential).unseen(seen)
    wrong = seen.seen.pop("disagreements", int(bool(seen.failed)))
    print(f"{seen.specs:,} specs in {seconds:,.0f} s, disagreements {wrong:,}")  # noqa: T201
    for what, times in sorted(seen.seen.items()):
        print(f"{times:>12,}  {what}")  # noqa: T201
    for what in unseen:
        print(f"none: {what}")  # noqa: T201
    return 1 if seen.failed or unseen else 0


if __name__ == "__main__":
    sys.exit(main())
