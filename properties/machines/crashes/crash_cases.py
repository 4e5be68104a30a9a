"""Cases of the crash machine: a store whose power fails at any moment, and that is found again.

A *case* is a store that is opened several times. It is used for a while, until the power is lost (during some use of
the disk, or between two steps), the process dies, or the store is closed. What a loss of power leaves is chosen,
sector by sector; the power may also fail during recovery. Then the store is opened again, and

- all that was acknowledged, flushed or (where the process died) written is there: `spec/log.py` accepts the crash;
- every record is, byte for byte, one that was sent, once, at the position and with the number that the specs predict;
- every message has its entry, and every entry is its message: `spec/queue.py` accepts each of them;
- consumers of a synchronous store keep all they saw.

A disk that fails or is full makes steps refuse, and loses nothing of that.

A case is a value: it follows from the answers to *of so many ways, which?* (`properties/simulation/choices.py`), and is
printed as a seed or as these answers. A case can be recorded through all its lives; the recording must conform.
"""

from __future__ import annotations

from collections.abc import Callable

from gapless.properties import campaign
from gapless.properties.campaign import Failure, answers, described, error_of
from gapless.properties.machines.crashes.crash_recovery import CrashRun
from gapless.properties.machines.crashes.store_client import CrashTally
from gapless.properties.simulation.choices import Choose
from gapless.properties.subject import Subject

MakeSubject = Callable[[], Subject]
"""The class of a subject: a store for every case."""


class CrashCase:
    """One case, which runs once; `recorded`: it is recorded, and the recording must conform."""

    def __init__(
        self, make: MakeSubject, choose: Choose, tell: Callable[[str], object] | None = None, *, recorded: bool = False
    ) -> None:
        self._subject, self._recorded = make(), recorded
        if recorded:
            self._subject.record()
        self._run = CrashRun(self._subject, choose, tell)
        self.tally = self._run.tally

    def run(self) -> None:
        """Run all of it. Raises Mismatch, Nonconformance, and whatever the subject should not have raised."""
        self._run.run()
        if self._recorded:
            self.tally.replayed += self._subject.replay()


def story(make: MakeSubject, case: str, *, recorded: bool = False) -> tuple[list[str], BaseException | None]:
    """The story of a case, line by line, and the error in which it ends."""
    lines: list[str] = []
    one = CrashCase(make, answers(case), lines.append, recorded=recorded)
    return lines, error_of(one.run)


def shortest(make: MakeSubject, case: str, patience: int = 3000, *, recorded: bool = False) -> str:
    """A case with the same kind of error, and as few and plain choices as `patience` runs find."""
    return campaign.shortest(lambda choices: CrashCase(make, choices, recorded=recorded).run(), case, patience)


# -- many of them ----------------------------------------------------------------------------------------------------


def by_chance(make: MakeSubject, seed: int, *, recorded: bool = False) -> tuple[CrashTally, Failure | None]:
    """One case, made from a seed."""
    case = CrashCase(make, answers(f"seed {seed}"), recorded=recorded)
    error = error_of(case.run)
    return case.tally, None if error is None else Failure(f"seed {seed}", described(error))


def first_failure(make: MakeSubject, cases: int) -> tuple[int, str] | None:
    """The number of cases until one fails, and its failure; None if none fails."""
    return campaign.first_failure(lambda seed: CrashCase(make, answers(f"seed {seed}")).run(), cases)


def some(make: MakeSubject, seeds: range, recorded: int = 0) -> CrashTally:
    """The tally of the cases of these seeds, of which every `recorded`-th is recorded; with 0, none is."""
    tally = CrashTally()
    for seed in seeds:
        one, failure = by_chance(make, seed, recorded=recorded > 0 and seed % recorded == 0)
        tally.add(one)
        tally.failures += [] if failure is None else [failure]
    return tally
