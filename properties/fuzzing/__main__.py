"""Tries the prover on specs that nobody wrote, and counts what became of them.

python -m gapless.properties.fuzzing --specs 100000 --jobs 2
"""

from __future__ import annotations

import argparse
import sys
import time

from gapless.properties.fuzzing.second_opinion import FuzzTally, chunk, unseen
from gapless.properties.processes import workers

CHUNK = 250  # specs that one task judges
TASKS = 8  # of one process: what it has read of a spec, it keeps


def main() -> int:
    """Judge so many specs; 1 if the prover and the plain functions disagree on one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--specs", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first chunk: others draw other specs")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    asked = parser.parse_args()
    chunks = range(asked.first, asked.first + -(-asked.specs // CHUNK))
    began, seen = time.monotonic(), FuzzTally()
    with workers(asked.jobs, TASKS) as pool:
        for tally in pool.map(chunk, chunks, [min(CHUNK, asked.specs)] * len(chunks)):
            seen.add(tally)
            if tally.failed:
                print(f"\n{tally.failed}", flush=True)  # noqa: T201 - a command
    minutes = (time.monotonic() - began) / 60
    print(f"{seen.specs:,} specs in {minutes:.1f} minutes")  # noqa: T201
    for what, times in sorted(seen.seen.items()):
        print(f"{times:>12,}  {what}")  # noqa: T201
    for what in unseen(seen):
        print(f"none: {what}")  # noqa: T201
    return 1 if seen.failed or unseen(seen) else 0


if __name__ == "__main__":
    sys.exit(main())
