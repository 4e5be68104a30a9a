"""Tries readers of specs on specs that mean nothing, and counts what became of them.

python -m gapless.properties.fuzzing --specs 100000 --jobs 2

Compiled readings are tried, on traces and on states; with --prover, the prover.
"""

from __future__ import annotations

import sys
from functools import partial

from gapless.properties.campaign import CaseTally, command, run, show, show_counts
from gapless.properties.fuzzing import compiled_differential, differential

CHUNK = 250  # specs that one task judges
TASKS = 8  # of one process: what it has read of a spec, it keeps


def main() -> int:
    """Judge so many specs; 1 if a reader and the plain functions disagree on one."""
    parser = command(__package__, __doc__, specs=(100_000, "random specs; --first counts chunks of 250"))
    parser.add_argument("--prover", action="store_true", help="the prover, by specs that Hypothesis draws")
    asked = parser.parse_args()
    tried = differential if asked.prover else compiled_differential
    size, chunks = min(CHUNK, asked.cases), range(asked.first, asked.first + -(-asked.cases // CHUNK))
    numbers = chunks if asked.prover else [number * CHUNK for number in chunks]
    tally = CaseTally()
    seconds = run(partial(tried.chunk, count=size), numbers, tally, asked, report=_report, lives=TASKS)
    unseen = tried.unseen(tally)
    wrong = tally.counts.pop("disagreements", len(tally.failures))
    show(f"{tally.cases:,} specs in {seconds:,.0f} s, disagreements {wrong:,}")
    show_counts(tally.counts)
    show(*(f"none: {what}" for what in unseen))
    return int(bool(tally.failures) or bool(unseen))


def _report(_chunk: int, tally: CaseTally, _seconds: float) -> None:
    show(*(f"\n{failure}" for failure in tally.failures))


if __name__ == "__main__":
    sys.exit(main())
