"""Ten solver seeds: a proof that only one of them finds is luck, and breaks with the next Z3.

`python -m gapless.properties.proof.seeds` proves every obligation with each seed, of all specs or of those that are
named, and prints those of which one takes more than ten times the work of the median, in Z3's own measure; it exits
with 1 if there are any, or one that is not proved.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from gapless.properties.campaign import command, show
from gapless.properties.processes import workers
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
        """True if every seed finds the proof, and none takes far longer than the others."""
        return self.proved and max(self.work) <= TIMES * median(self.work)


def spreads(subject: str) -> list[Spread]:
    """The work of every obligation that is shown by Z3's *no*; what can happen is found, not proved."""
    found = []
    for obligation in ledger.every(subject):
        if obligation.wanted == "unsat":
            terms = obligation.question().terms
            answers = [ask(terms, seed=seed) for seed in SEEDS]
            proved = all(answer.verdict == "unsat" for answer in answers)
            work = tuple(answer.work for answer in answers)
            found.append(Spread(subject, obligation.step, obligation.invariant, proved, work))
    return found


def every(subjects: Sequence[str], jobs: int = 2) -> Iterator[list[Spread]]:
    """Those of each of these specs, by `jobs` processes."""
    with workers(jobs) as pool:
        yield from pool.map(spreads, subjects)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is not steady, as it is found, and how much that is."""
    parser = command("gapless.properties.proof.seeds", main.__doc__)
    parser.add_argument("spec", nargs="*", help="these specs only")
    asked = parser.parse_args(arguments)
    subjects, found = asked.spec or ledger.subjects(), list[Spread]()
    for name, some in zip(subjects, every(subjects, asked.jobs), strict=True):
        found += some
        show(f"{name}: {len(some):,} obligations")
        for spread in some:
            if not spread.steady:
                show(f"{name}: {spread.step}: {spread.invariant}: {spread.work}")
    unsteady = [spread for spread in found if not spread.steady]
    worst = max(max(spread.work) / median(spread.work) for spread in found)
    show(
        f"{len(found):,} obligations, seeds {SEEDS[0]} to {SEEDS[-1]}: {len(unsteady)} unsteady; "
        f"the worst takes {worst:.1f} times its median"
    )
    return 1 if unsteady else 0


if __name__ == "__main__":
    sys.exit(main())
