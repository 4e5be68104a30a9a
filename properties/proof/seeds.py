"""Ten solver seeds: a proof that only one of them finds is luck, and breaks with the next Z3.

`python -m gapless.properties.proof.seeds` proves every obligation with each seed, and prints those of which one takes
more than ten times the work of the median, in Z3's own measure; it exits with 1 if there are any,
or one that is not proved.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from statistics import median

from gapless.properties.proof import ledger
from gapless.properties.proof.induction import ask

SEEDS = range(10)
TIMES = 10  # the median's work, which no seed may exceed


@dataclass(frozen=True)
class Spread:
    """The work that one obligation takes, by seed."""

    spec: str
    step: str
    invariant: str
    proved: bool
    work: tuple[int, ...]

    @property
    def steady(self) -> bool:
        """Whether every seed finds the proof, and none takes far longer than the others."""
        return self.proved and max(self.work) <= TIMES * median(self.work)


def spreads(subject: str) -> list[Spread]:
    """The work of every obligation that is shown by Z3's *no*; what can happen is found, not proved."""
    found = []
    for obligation in ledger.every(subject):
        if obligation.wanted == "unsat":
            terms = obligation.question().terms
            answers = [ask(terms, seed=seed) for seed in SEEDS]
            proved = all(answer.said == "unsat" for answer in answers)
            work = tuple(answer.work for answer in answers)
            found.append(Spread(subject, obligation.step, obligation.invariant, proved, work))
    return found


def every(jobs: int = 2) -> Iterator[Spread]:
    """All of them, by `jobs` processes."""
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for found in pool.map(spreads, ledger.subjects()):
            yield from found


def main() -> int:
    """Print what is not steady, and how much that is."""
    found = list(every())
    unsteady = [spread for spread in found if not spread.steady]
    for spread in unsteady:
        print(f"{spread.spec}: {spread.step}: {spread.invariant}: {spread.work}")  # noqa: T201 - a command
    worst = max(max(spread.work) / median(spread.work) for spread in found)
    print(  # noqa: T201
        f"{len(found):,} obligations, seeds {SEEDS[0]} to {SEEDS[-1]}: {len(unsteady)} unsteady; "
        f"the worst takes {worst:.1f} times its median"
    )
    return 1 if unsteady else 0


if __name__ == "__main__":
    sys.exit(main())
