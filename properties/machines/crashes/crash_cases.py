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

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import NamedTuple

from gapless.properties.machines.crashes.crash_recovery import CrashRun
from gapless.properties.machines.crashes.store_client import CrashTally
from gapless.properties.processes import workers
from gapless.properties.simulation.choices import Choices, Choose
from gapless.properties.simulation.simulated_disk import PowerLost
from gapless.properties.subject import Subject

MakeSubject = Callable[[], Subject]
"""The class of a subject: a store for every case."""


def answers(case: str) -> Choices:
    """The choices that a text stands for: `seed 17`, or the answers one by one. Raises ValueError."""
    if case.startswith("seed "):
        return Choices(random.Random(int(case[5:])).randrange)  # noqa: S311 - the same for the same seed is all that is asked.
    return Choices.parse(case)


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
    try:
        CrashCase(make, answers(case), lines.append, recorded=recorded).run()
    except (Exception, PowerLost) as error:  # noqa: BLE001 - whatever it is, it belongs to the story.
        return lines, error
    return lines, None


def shortest(make: MakeSubject, case: str, patience: int = 3000, *, recorded: bool = False) -> str:
    """A case with the same kind of error, and as few and plain choices as `patience` runs find."""
    found = _failure(make, answers(case), recorded=recorded)
    if found is None:
        raise ValueError(f"nothing fails in the case {case!r}")
    kind, best = found
    width = len(best) // 2 or 1
    while width and patience > 0:
        for other in _plainer(best, width):
            patience -= 1
            found = _failure(make, _within(other), recorded=recorded)
            if found is not None and found[0] == kind and _weight(found[1]) < _weight(best):
                best, width = found[1], min(width, len(found[1]))
                break
        else:
            width //= 2
    while best[-1:] == [0]:
        best.pop()  # after the last given choice, the plainest is taken anyway
    return " ".join(map(str, best)) or "0"


def _plainer(choices: Sequence[int], width: int) -> Iterator[Sequence[int]]:
    """The choices with so many of them left out, or taken as plainly as can be."""
    for at in range(0, len(choices), width):
        before, behind = choices[:at], choices[at + width :]
        yield [*before, *behind]
        yield [*before, *[0] * (len(choices) - len(before) - len(behind)), *behind]


def _failure(make: MakeSubject, choices: Choices, *, recorded: bool) -> tuple[type[BaseException], list[int]] | None:
    try:
        CrashCase(make, choices, recorded=recorded).run()
    except (Exception, PowerLost) as error:  # noqa: BLE001 - that it fails is what is asked.
        return type(error), choices.taken
    return None


def _within(given: Sequence[int]) -> Choices:
    """The given choices; the last way where there are fewer, and the plainest once they are used up."""
    each = iter(given)
    return Choices(lambda ways: min(next(each, 0), ways - 1))


def _weight(choices: Sequence[int]) -> tuple[int, int]:
    return len(choices), sum(choices)


# -- many of them ----------------------------------------------------------------------------------------------------


class Failure(NamedTuple):
    """A case that fails, and what is wrong; `recorded`: it was recorded."""

    case: str
    wrong: str
    recorded: bool = False


def by_chance(make: MakeSubject, seed: int, *, recorded: bool = False) -> tuple[CrashTally, Failure | None]:
    """One case, made from a seed."""
    case = CrashCase(make, answers(f"seed {seed}"), recorded=recorded)
    try:
        case.run()
    except (Exception, PowerLost) as error:  # noqa: BLE001 - whatever it is, the case is not as it should be.
        return case.tally, Failure(f"seed {seed}", f"{type(error).__name__}: {error}", recorded)
    return case.tally, None


def first_failure(make: MakeSubject, cases: int) -> tuple[int, str] | None:
    """The number of cases until one fails, and its failure; None if none fails."""
    for seed in range(cases):
        _, failure = by_chance(make, seed)
        if failure is not None:
            return seed + 1, failure.wrong
    return None


CHUNK = 50  # cases that one process tries at a time


def _chunk(make: MakeSubject, first: int, recorded: int) -> tuple[CrashTally, list[Failure]]:
    tally, failures = CrashTally(), []
    for seed in range(first, first + CHUNK):
        one, failure = by_chance(make, seed, recorded=recorded > 0 and seed % recorded == 0)
        tally.add(one)
        failures += [failure] if failure else []
    return tally, failures


def many(
    make: MakeSubject, points: int, jobs: int, first: int = 0, recorded: int = 0
) -> tuple[CrashTally, list[Failure]]:
    """Cases from a seed on, until the power has failed so often, or one case failed.

    `recorded`: every so many cases one is recorded; with 0, none is.
    """
    tally, failures = CrashTally(), []
    with workers(jobs) as pool:
        running = [pool.submit(_chunk, make, first + CHUNK * number, recorded) for number in range(jobs + 1)]
        for number in count(len(running)):
            one, failed = running.pop(0).result()
            tally.add(one)
            failures += failed
            if failures or tally.points >= points:
                break
            running.append(pool.submit(_chunk, make, first + CHUNK * number, recorded))
        pool.shutdown(cancel_futures=True)
    return tally, failures
