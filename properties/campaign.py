"""Campaigns: many cases in several processes, each the same for the same seed; or one of them again.

Each process judges a part of the cases and returns a tally; tallies add. A case that asks `choose` whatever may happen
either way is a seed, or the list of the answers, and is made as short as is soon found.
"""

from __future__ import annotations

import random
import sys
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import count, islice
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gapless.properties.processes import workers
from gapless.properties.simulation.choices import Choices
from gapless.properties.simulation.simulated_disk import PowerLost

# -- cases -----------------------------------------------------------------------------------------------------------


class Failure(NamedTuple):
    """A case that fails, by the text that runs it again, and the error."""

    case: str
    wrong: str


@dataclass
class CaseTally:
    """The tally of many cases: how often what happened, and the cases that failed. Tallies add."""

    cases: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Any] = field(default_factory=list)

    @property
    def done(self) -> int:
        """The number that is counted against the one asked for."""
        return self.cases

    def add(self, other: Self) -> None:
        """Add another tally, field by field."""
        for f in fields(self):
            mine, theirs = getattr(self, f.name), getattr(other, f.name)
            setattr(self, f.name, mine | theirs if isinstance(mine, set) else mine + theirs)


class Case(Protocol):
    """A case, which runs once, and what happened in it."""

    @property
    def tally(self) -> Counter[str]:
        """The events so far."""

    def run(self) -> object:
        """Run all of it. Raises what is wrong."""


def error_of(run: Callable[[], object]) -> BaseException | None:
    """The error of a case, whatever it is."""
    try:
        run()
    except (Exception, PowerLost) as error:  # noqa: BLE001 - whatever a case raises is what was looked for
        return error
    return None


def described(error: BaseException) -> str:
    """The text of an error."""
    return f"{type(error).__name__}: {error}"


def with_story(error: BaseException) -> str:
    """The text of an error, and its story."""
    return "\n".join([described(error), *getattr(error, "__notes__", ())])


def first_failure(run: Callable[[int], object], cases: int) -> tuple[int, str] | None:
    """The number of cases until one fails, by their seeds from 0 on, and its error; None if none fails."""
    for seed in range(cases):
        error = error_of(partial(run, seed))
        if error is not None:
            return seed + 1, described(error)
    return None


# -- a case again, and a shorter one ---------------------------------------------------------------------------------


def answers(text: str) -> Choices:
    """The choices that a text stands for: `seed 17`, or the answers one by one. Raises ValueError."""
    if text.startswith("seed "):
        return Choices(random.Random(int(text[5:])).randrange)  # noqa: S311 - the same for the same seed is all that is asked.
    return Choices.parse(text)


def shortest(run: Callable[[Choices], object], case: str, patience: int = 3000) -> str:
    """A case with the same kind of error, and as few and plain choices as `patience` runs find."""
    found = _failing(run, answers(case))
    if found is None:
        raise ValueError(f"nothing fails in the case {case!r}")
    kind, best = found
    width = len(best) // 2 or 1
    while width and patience > 0:
        for other in _plainer(best, width):
            patience -= 1
            found = _failing(run, _within(other))
            if found is not None and found[0] == kind and _weight(found[1]) < _weight(best):
                best, width = found[1], min(width, len(found[1]))
                break
        else:
            width //= 2
    while best[-1:] == [0]:
        best.pop()  # after the last given choice, the plainest is taken anyway
    return " ".join(map(str, best if len(best) > 1 else [*best, 0, 0][:2]))  # one number alone may be taken for a seed


def _plainer(choices: Sequence[int], width: int) -> Iterator[Sequence[int]]:
    """The choices with so many of them left out, or taken as plainly as can be."""
    for at in range(0, len(choices), width):
        before, behind = choices[:at], choices[at + width :]
        yield [*before, *behind]
        yield [*before, *[0] * (len(choices) - len(before) - len(behind)), *behind]


def _failing(run: Callable[[Choices], object], choices: Choices) -> tuple[type[BaseException], list[int]] | None:
    error = error_of(partial(run, choices))
    return None if error is None else (type(error), choices.taken)


def _within(given: Sequence[int]) -> Choices:
    """The given choices; the last way where there are fewer, and the plainest once they are used up."""
    each = iter(given)
    return Choices(lambda ways: min(next(each, 0), ways - 1))


def _weight(choices: Sequence[int]) -> tuple[int, int]:
    return len(choices), sum(choices)


# -- many cases ------------------------------------------------------------------------------------------------------

T = TypeVar("T", bound=CaseTally)
P = TypeVar("P")
AHEAD = 8  # parts for each process that are submitted before they are due, where their number is known


def command(package: str | None, about: str | None, again: str = "", **cases: tuple[int, str]) -> ArgumentParser:
    """The options of a campaign. `cases`: the option for their number, its default, and what is counted."""
    parser = ArgumentParser(f"python -m {package}", description=about, formatter_class=RawDescriptionHelpFormatter)
    for name, (number, what) in cases.items():
        parser.add_argument(
            f"--{name}", dest="cases", metavar="N", type=int, default=number, help=f"{what} (default: {number})"
        )
        parser.add_argument(
            "--first", "--seed", type=int, default=0, metavar="SEED", help="the first case (default: 0)"
        )
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    if again:
        parser.add_argument("--again", metavar="CASE", help=again)
    return parser


def run(
    judge: Callable[[P], T],
    parts: Iterable[P],
    tally: T,
    asked: Namespace,
    *,
    until: int | None = None,
    report: Callable[[P, T, float], object] = lambda _part, _tally, _seconds: None,
    lives: int | None = None,
) -> float:
    """Add the tallies of all parts to `tally`, in their order. Returns the seconds that it took.

    `until`: it ends when so much is done, or a case has failed · `report` gets each of the tallies, and the time so far
    · `lives`: after so many parts a process is replaced.
    """
    window = asked.jobs if until is not None else AHEAD * asked.jobs
    began, waiting, running = time.monotonic(), iter(parts), deque[tuple[P, Future[T]]]()
    with _bar(getattr(asked, "cases", None)) as show_bar, workers(asked.jobs, lives) as pool:
        while True:
            for part in islice(waiting, window - len(running)):
                running.append((part, pool.submit(judge, part)))
            if not running:
                return time.monotonic() - began
            part, future = running.popleft()
            found = future.result()
            tally.add(found)
            report(part, found, time.monotonic() - began)
            show_bar(tally)
            if until is not None and (tally.failures or tally.done >= until):  # what has begun is counted, too
                waiting, running = iter(()), deque(each for each in running if not each[1].cancel())


def in_parts(asked: Namespace, size: int) -> Iterator[range]:
    """The seeds of all cases, in parts of `size`."""
    end = asked.first + asked.cases
    return (range(low, min(low + size, end)) for low in range(asked.first, end, size))


def without_end(asked: Namespace, size: int) -> Iterator[range]:
    """Seeds without end, in parts of `size`."""
    return (range(low, low + size) for low in count(asked.first, size))


def show(*lines: str) -> None:
    """Print lines as soon as they are there."""
    for line in lines:
        print(line, flush=True)  # noqa: T201 - a command


def show_counts(counts: Counter[str]) -> None:
    """Print a line for each count."""
    show(*(f"{times:>12,}  {what}" for what, times in sorted(counts.items())))


@contextmanager
def _bar(goal: int | None) -> Iterator[Callable[[CaseTally], object]]:
    """A progress bar on a terminal, nothing elsewhere."""
    if goal is None or not sys.stderr.isatty():
        yield lambda _tally: None
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        task = bar.add_task("", total=goal)
        yield lambda tally: bar.update(task, completed=tally.done, description=f"{len(tally.failures)} failed")


# -- cases that are made of choices ----------------------------------------------------------------------------------

ANSWERS = "one case: its seed, or its answers, as they were printed"


def judged(seeds: Iterable[int], make: Callable[[Choices], Case]) -> CaseTally:
    """The tally of the cases of these seeds."""
    tally = CaseTally()
    for seed in seeds:
        one = make(answers(f"seed {seed}"))
        error = error_of(one.run)
        tally.add(CaseTally(1, one.tally, [] if error is None else [Failure(str(seed), with_story(error))]))
    return tally


def replay(make: Callable[[Choices], Case], case: str) -> int:
    """Run a case again, by its answers, or by its seed if it is one number; 1 if it fails."""
    one = make(answers(f"seed {case}" if case.isdecimal() else case))
    error = error_of(one.run)
    show("nothing is wrong" if error is None else with_story(error))
    show_counts(one.tally)
    return int(error is not None)


def show_failures(tally: CaseTally, make: Callable[[Choices], Case], again: str) -> None:
    """Print each failure, the command that runs it again, and one for a shorter case."""
    for seed, wrong in tally.failures:
        shorter = shortest(lambda choices: make(choices).run(), f"seed {seed}", patience=300)
        show(f"seed {seed}: {wrong}", f"Again: {again} --again {seed}", f'Shorter: {again} --again "{shorter}"')
