"""A step, tried with all its arguments, in the language of native code: specialised by what the step needs and does.

Calls are numbered, and so are runs of calls, in which the last argument grows by one each time: `runs` says from which
call to which a run goes, and what the last argument of the first is. `low`: by what a last argument is less than the
number of its call. What is asked once of all calls is `is_refused`; `narrowed` says what is left of a run by the needs
that come first; `asked` has a bit for each call that may be taken; `take` is the step itself.
"""

# Parts that a spec's search has others for are given the same, each by position.

from __future__ import annotations

from gapless.native import function
from gapless.native.intrinsics import lowest_bit
from gapless.properties.exploration.compiled.arrays import Ints, States
from gapless.properties.exploration.compiled.packed_state import below

RUNS_FIRST, RUNS_END = 0, 0
CALLS_FIRST, CALLS_END, CALLS_LOW = 0, 0, 0


@function(inline=True, distinct=True)
def is_refused(row: States, refused: Ints, escape: Ints) -> int:
    """1 if all calls are refused. Here, no need is asked once of all."""
    return 0


@function(inline=True, distinct=True)
def narrowed(first: int, last: int, low: int, args: Ints, row: States, refused: Ints, escape: Ints) -> tuple[int, int]:
    """The calls of a run that are left, from one to another. Here, all."""
    return first, last


@function(inline=True, distinct=True)
def asked(first: int, every: int, args: Ints, row: States, refused: Ints, escape: Ints) -> int:
    """The bits of the calls that are not refused, of those in `every`. Here, all."""
    return every


@function(inline=True, distinct=True)
def take(
    e: int, low: int, args: Ints, row: States, after: States, mask: int, slots: States, fill: Ints, accepted: Ints,
    refused: Ints, escape: Ints, numbers: Ints, lows: Ints, whole: int,
) -> int:  # fmt: skip
    """Take the step with the arguments of a call. Here, it is refused."""
    return 0


@function(inline=True, distinct=True)
def try_runs(
    runs: Ints, args: Ints, row: States, after: States, mask: int, slots: States, fill: Ints, accepted: Ints,
    refused: Ints, escape: Ints, numbers: Ints, lows: Ints, whole: int,
) -> int:  # fmt: skip
    """Try a step whose calls are many runs, or none."""
    if is_refused(row, refused, escape) != 0:
        return 0
    for r in range(RUNS_FIRST, RUNS_END):
        low = runs[3 * r] - runs[3 * r + 2]
        first, last = narrowed(runs[3 * r], runs[3 * r + 1], low, args, row, refused, escape)
        for e in range(first, last):
            take(e, low, args, row, after, mask, slots, fill, accepted, refused, escape, numbers, lows, whole)
    return 0


@function(inline=True, distinct=True)
def try_one_run(
    runs: Ints, args: Ints, row: States, after: States, mask: int, slots: States, fill: Ints, accepted: Ints,
    refused: Ints, escape: Ints, numbers: Ints, lows: Ints, whole: int,
) -> int:  # fmt: skip
    """Try a step whose calls are one run."""
    if is_refused(row, refused, escape) != 0:
        return 0
    first, last = narrowed(CALLS_FIRST, CALLS_END, CALLS_LOW, args, row, refused, escape)
    for e in range(first, last):
        take(e, CALLS_LOW, args, row, after, mask, slots, fill, accepted, refused, escape, numbers, lows, whole)
    return 0


@function(inline=True, distinct=True)
def try_at_once(
    runs: Ints, args: Ints, row: States, after: States, mask: int, slots: States, fill: Ints, accepted: Ints,
    refused: Ints, escape: Ints, numbers: Ints, lows: Ints, whole: int,
) -> int:  # fmt: skip
    """Try a step whose calls are one run, and are all asked before any is taken."""
    if is_refused(row, refused, escape) != 0:
        return 0
    first, last = narrowed(CALLS_FIRST, CALLS_END, CALLS_LOW, args, row, refused, escape)
    if first >= last:
        return 0
    taken = asked(first, below(last - first) << (first - CALLS_FIRST), args, row, refused, escape)
    while taken != 0:
        e = CALLS_FIRST + lowest_bit(taken)
        taken &= taken - 1
        take(e, CALLS_LOW, args, row, after, mask, slots, fill, accepted, refused, escape, numbers, lows, whole)
    return 0


@function(inline=True)
def between(at: int, first: int, last: int) -> int:
    """The number, or the nearest between two."""
    return min(max(at, first), last)
