"""Programs at random: Python, checked native code and native code give one answer, or one error.

    python -m gapless.native.fuzzer --programs 20000 --jobs 2

A program is a few functions, made as syntax trees. Python's numbers have any size, so a program keeps each number that
it compares, divides or shifts to the right within 64 bits. One program in four may read and write out of bounds: that
one is run by Python, on arrays that say so, and by checked code alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from random import Random
from typing import Any, NamedTuple

import numpy as np

from gapless.native.bounds_checks import compiled
from gapless.native.kinds import kind_of
from gapless.native.language import LanguageError
from gapless.native.policy import readable
from gapless.native.program_generator import TABLE, DrawnProgram, Triple, program

RISKY = 0.25  # of all programs
DEEPLY = 10  # one program in so many is optimized to LLVM's level 3
SHOWN = 5  # disagreements
PIECE = 100  # programs that a process is handed
REFUSED = ("has more than 64 bits", "it divides by 0", "an index counts from the beginning")
"""The reasons for which a program at random may be refused: of numbers that are known while it is compiled."""


class ProgramOutcome(NamedTuple):
    """The outcome of a reading: its answer or its error, and the content of the arrays then."""

    answer: Any
    arrays: Any


class ProgramDisagreement(NamedTuple):
    """A program of which two readings disagree."""

    seed: int
    reading: str
    text: str


class BoundedArray:
    """An array for Python, as native code has it: numbers of 64 bits, and indices from 0 on, within bounds."""

    def __init__(self, array: Any) -> None:
        self.array, self.shape, self.size = array, array.shape, array.size

    def __len__(self) -> int:
        """The first dimension."""
        return len(self.array)

    def __getitem__(self, at: Any) -> Any:
        """An element, or a part."""
        found = self.array[self._within(at)]
        if isinstance(found, np.ndarray):
            return BoundedArray(found)
        return found if isinstance(found, np.uint64) else found.item()

    def __setitem__(self, at: Any, value: Any) -> None:
        """Store the lower bits of a number."""
        kind = self.array.dtype
        stored = bool(value) if kind == np.bool_ else int(value) & ((1 << 8 * kind.itemsize) - 1)
        self.array[self._within(at)] = np.array(stored, np.uint64).astype(kind)

    def _within(self, at: Any) -> Any:
        every = at if isinstance(at, tuple) else (at,)
        for one, length in zip(every, self.shape, strict=False):
            if isinstance(one, slice):
                if any(end is not None and end < 0 for end in (one.start, one.stop)):
                    raise IndexError(one)
            elif not 0 <= one < length:
                raise IndexError(one)
        return tuple(one if isinstance(one, slice) else int(one) for one in every)


def disagreements(seed: int) -> list[ProgramDisagreement]:
    """The readings of a program that disagree with Python's. Raises LanguageError where the program is refused."""
    choose = Random(seed)
    made = program(choose, is_risky=choose.random() < RISKY)
    level = 3 if choose.random() * DEEPLY < 1 else 1
    with np.errstate(all="ignore"):
        readings = {"checked": compiled_reading(made, level=1, is_checked=True)}
        if not made.is_risky:
            readings["native"] = compiled_reading(made, level=level, is_checked=False)
            readings["Python"] = by_readable_python(made)
        expected = outcome(by_bounded_python(made), made)
        return [
            ProgramDisagreement(seed, f"{name}: {found} instead of {expected}", made.text)
            for name, reading in readings.items()
            if (found := outcome(reading, made)) != expected
        ]


def compiled_reading(made: DrawnProgram, *, level: int, is_checked: bool) -> Callable[..., Any]:
    """The native reading of a program."""
    return compiled(made.function, tuple(map(kind_of, made.arguments())), is_checked=is_checked, level=level)


def by_bounded_python(made: DrawnProgram) -> Callable[..., Any]:
    """Python's reading, on arrays that are as native code has them."""
    of = made.function.specialised({"TABLE": BoundedArray(TABLE)})
    return lambda *args: of.by_python(*map(bounded, args))


def by_readable_python(made: DrawnProgram) -> Callable[..., Any]:
    """Python's reading, on what `policy` hands over."""
    return lambda *args: made.function.by_python(*map(readable, args))


def bounded(value: Any) -> Any:
    """An argument whose arrays say where they end."""
    if isinstance(value, np.ndarray):
        return BoundedArray(value)
    if isinstance(value, tuple):
        members = tuple(map(bounded, value))
        return type(value)(*members) if isinstance(value, Triple) else members
    return value


def outcome(reading: Callable[..., Any], made: DrawnProgram) -> ProgramOutcome:
    """The answer of a reading, or the class of its error; and all arrays."""
    arguments = made.arguments()
    try:
        answer: Any = plain(reading(*arguments))
    except (IndexError, ZeroDivisionError) as error:
        answer = type(error).__name__
    return ProgramOutcome(answer, plain(arguments))


def plain(value: Any) -> Any:
    """Numbers and lists of Python's."""
    if isinstance(value, (tuple, list)):
        return [plain(one) for one in value]
    return value.tolist() if isinstance(value, np.ndarray) else int(value)


class ProgramTally(NamedTuple):
    """Programs that were compared, those that the language refused, and the disagreements."""

    compared: int
    refused: int
    found: list[ProgramDisagreement]


def of_seeds(seeds: Sequence[int]) -> ProgramTally:
    """The disagreements of some programs."""
    refused, found = 0, []
    for seed in seeds:
        try:
            found += disagreements(seed)
        except LanguageError as error:
            if not any(reason in str(error) for reason in REFUSED):
                raise
            refused += 1
    return ProgramTally(len(seeds) - refused, refused, found)


def run(programs: int, jobs: int, first: int) -> ProgramTally:
    """Compare programs, so many at once."""
    seeds = range(first, first + programs)
    pieces = [seeds[at : at + PIECE] for at in range(0, programs, PIECE)]
    if jobs == 1:
        tallies = list(map(of_seeds, pieces))
    else:
        with ProcessPoolExecutor(jobs) as pool:
            tallies = list(pool.map(of_seeds, pieces))
    found = [one for tally in tallies for one in tally.found]
    return ProgramTally(sum(one.compared for one in tallies), sum(one.refused for one in tallies), found)


def main() -> None:
    """Read the command line."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--programs", type=int, default=1000)
    asked.add_argument("--jobs", type=int, default=1)
    asked.add_argument("--first", type=int, default=0, help="the number of the first program")
    given = asked.parse_args()
    tally = run(given.programs, given.jobs, given.first)
    for one in tally.found[:SHOWN]:
        sys.stdout.write(f"{one.text}\n\nprogram {one.seed}, {one.reading}\n\n")
    sys.stdout.write(
        f"{tally.compared} programs compared, {len(tally.found)} disagreements; {tally.refused} programs refused\n"
    )
    sys.exit(bool(tally.found))


if __name__ == "__main__":
    main()
