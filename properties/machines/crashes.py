"""The crash machine: a store whose power fails at any moment, found again, and held against what its client knows.

A *case* is a store with several lives. In each it is opened, works for a while, and ends: the power is lost in the
midst of some use of the disk or between two steps, the process dies, or the store is closed. What a loss of power
leaves is chosen, sector by sector; it can come while the store is being recovered. Then it is opened again, and

- all that was acknowledged, flushed or (where the process died) written is there: `spec/log.py` accepts the crash;
- every record is, byte for byte, one that was sent, at the place and with the number that the specs foretell, and once;
- every message has its entry, and every entry is its message: `spec/queue.py` accepts each of them;
- consumers of a synchronous store keep all they saw;

and it goes on. A disk that fails or is full makes steps refuse, and loses nothing of that.

A case is a value: everything in it follows from the answers to *of so many ways, which?*
(`impl/environment/choices.py`), and prints as a seed or as these answers. Source: the issue's crash machine;
reference A, C.3; bug zoo, area 2.

A case can be recorded, through all its lives, and what the store told of itself is replayed by the checker.

`python -m gapless.properties.machines.crashes --points 10000 --jobs 2` tries cases until the power has failed
that often; `--recorded 10` records and replays every tenth of them.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from multiprocessing import get_context
from typing import NamedTuple

from rich.console import Console

from gapless.impl.environment.choices import Choices, Choose
from gapless.impl.environment.simulated import PowerLost
from gapless.impl.recorder.recorder import Recorder
from gapless.properties.machines.crash_recovery import Run
from gapless.properties.machines.recorded_conformance import lawful
from gapless.properties.machines.store_client import Tally


def answers(case: str) -> Choices:
    """The choices that a text stands for: `seed 17`, or the answers one by one. Raises ValueError."""
    if case.startswith("seed "):
        return Choices(random.Random(int(case[5:])).randrange)  # noqa: S311 - the same for the same seed is all that is asked.
    return Choices.parse(case)


class Case:
    """One case, which runs once; `recorded`: what it recorded must be lawful, too."""

    def __init__(self, choose: Choose, tell: Callable[[str], object] | None = None, *, recorded: bool = False) -> None:
        self._recorder = Recorder() if recorded else None
        self._run = Run(choose, tell, self._recorder)
        self.tally = self._run.tally

    def run(self) -> None:
        """All of it. Raises Broken, Unlawful, and whatever the implementation should not have raised."""
        self._run.run()
        if self._recorder is not None:
            self.tally.replayed += lawful(self._recorder)


def story(case: str, *, recorded: bool = False) -> tuple[list[str], BaseException | None]:
    """What happens in a case, line by line, and what is wrong in the end."""
    lines: list[str] = []
    try:
        Case(answers(case), lines.append, recorded=recorded).run()
    except (Exception, PowerLost) as error:  # noqa: BLE001 - whatever it is, it belongs to the story.
        return lines, error
    return lines, None


def shortest(case: str, patience: int = 3000, *, recorded: bool = False) -> str:
    """A case that fails with the same kind of error, and with as few and as plain choices as are soon found."""
    found = _failure(answers(case), recorded=recorded)
    if found is None:
        raise ValueError(f"nothing fails in the case {case!r}")
    kind, best = found
    width = max(1, len(best) // 2)
    while width and patience > 0:
        for at in range(0, len(best), width):
            patience -= 1
            plainer = best[:at] + [0] * len(best[at : at + width]) + best[at + width :]
            for other in (best[:at] + best[at + width :], plainer):
                found = _failure(_within(other), recorded=recorded)
                if found is not None and found[0] == kind and _weight(found[1]) < _weight(best):
                    best, width = found[1], 2 * width
                    break
            else:
                continue
            break
        else:
            width //= 2
            continue
        width = min(width // 2, len(best))
    while best[-1:] == [0]:
        best.pop()  # the plainest is what follows anyway
    return " ".join(map(str, best)) or "0"


def _failure(choices: Choices, *, recorded: bool) -> tuple[type[BaseException], list[int]] | None:
    try:
        Case(choices, recorded=recorded).run()
    except (Exception, PowerLost) as error:  # noqa: BLE001 - that it fails is what is asked.
        return type(error), choices.taken
    return None


def _within(given: Sequence[int]) -> Choices:
    """The given choices; where there are fewer ways, the last of them, and once they are used up, the plainest."""
    each = iter(given)
    return Choices(lambda ways: min(next(each, 0), ways - 1))


def _weight(choices: Sequence[int]) -> tuple[int, int]:
    return len(choices), sum(choices)


# -- many of them ----------------------------------------------------------------------------------------------------


class Failure(NamedTuple):
    """A case that fails, and what is wrong; perhaps only with its recording."""

    case: str
    wrong: str
    recorded: bool = False


def by_chance(seed: int, *, recorded: bool = False) -> tuple[Tally, Failure | None]:
    """One case, made from a seed."""
    case = Case(answers(f"seed {seed}"), recorded=recorded)
    try:
        case.run()
    except (Exception, PowerLost) as error:  # noqa: BLE001 - whatever it is, the case is not as it should be.
        return case.tally, Failure(f"seed {seed}", f"{type(error).__name__}: {error}", recorded)
    return case.tally, None


def first_failure(cases: int) -> tuple[int, str] | None:
    """After how many of the first cases one fails, and what is wrong with it; None where none does."""
    for seed in range(cases):
        _, failure = by_chance(seed)
        if failure is not None:
            return seed + 1, failure.wrong
    return None


CHUNK = 50  # cases that one process tries at a time


def _chunk(first: int, recorded: int) -> tuple[Tally, list[Failure]]:
    tally, failures = Tally(), []
    for seed in range(first, first + CHUNK):
        one, failure = by_chance(seed, recorded=recorded > 0 and seed % recorded == 0)
        tally.add(one)
        failures += [failure] if failure else []
    return tally, failures


def many(points: int, jobs: int, first: int = 0, recorded: int = 0) -> tuple[Tally, list[Failure]]:
    """Cases from a seed on, until there were so many losses of power, or one case failed.

    `recorded`: so many cases have one among them that is recorded; with 0, none is.
    """
    tally, failures = Tally(), []
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        running = [pool.submit(_chunk, first + CHUNK * number, recorded) for number in range(jobs + 1)]
        for number in count(len(running)):
            one, failed = running.pop(0).result()
            tally.add(one)
            failures += failed
            if failures or tally.points >= points:
                break
            running.append(pool.submit(_chunk, first + CHUNK * number, recorded))
        pool.shutdown(cancel_futures=True)
    return tally, failures


def told(case: str, console: Console, *, recorded: bool = False) -> bool:
    """Tell a case, line by line; whether it is as it should be."""
    lines, error = story(case, recorded=recorded)
    for number, line in enumerate(lines, 1):
        console.print(f"{number:3}. {line}", markup=False, highlight=False, soft_wrap=True)
    if error is not None:
        console.print(f"{type(error).__name__}: {error}", markup=False, highlight=False, soft_wrap=True)
        again = f'Again: python -m gapless.properties.machines.crashes --again "{case}"' + " --recorded 1" * recorded
        console.print(again, markup=False, highlight=False)
    return error is None


def main(arguments: Sequence[str] | None = None) -> int:
    """Try cases, or one case again; 1 where something is not as it should be."""
    parser = argparse.ArgumentParser(
        prog="python -m gapless.properties.machines.crashes", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--points", type=int, default=10_000, help="losses of power to try (default: 10000)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--seed", type=int, default=0, help="the first case (default: 0)")
    parser.add_argument("--again", metavar="CASE", help='one case: "seed 17", or its answers, as they were printed')
    parser.add_argument("--recorded", metavar="N", type=int, default=0, help="record and replay every N-th case")
    chosen = parser.parse_args(arguments)
    console = Console()
    if chosen.again is not None:
        return int(not told(chosen.again, console, recorded=chosen.recorded > 0))
    began = time.monotonic()
    tally, failures = many(chosen.points, chosen.jobs, chosen.seed, chosen.recorded)
    seconds = time.monotonic() - began
    console.print(
        f"{tally.points:,} crashes in {tally.cases:,} cases, {tally.points / seconds:,.0f} a second: {tally.records:,} "
        f"records found again and compared; {len(failures)} cases failed",
        highlight=False,
    )
    for name, counts in (
        ("lives ended by", tally.ends),
        ("the power failed in", tally.uses),
        ("steps", tally.steps),
        ("recordings replayed", tally.replayed),
    ):
        console.print(f"{name}: " + ", ".join(f"{what} {n:,}" for what, n in counts.most_common()), highlight=False)
    if failures:
        console.print(f"the first of them, {failures[0].case}, as short as was soon found:", highlight=False)
        case, _, recorded = failures[0]
        told(shortest(case, recorded=recorded), console, recorded=recorded)
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
