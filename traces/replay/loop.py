"""The replay loop: traces one after the other, each event by the step of its action, up to the first refusal.

Functions of the native language (`native/README.md`), the same for every spec. What differs is passed by `specialised`:
`STEP`, the steps of a spec (`step_functions.py` makes them of its decision trees), and the numbers below.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gapless.native import function
from gapless.spec.reading.trees.ranges import LIMIT

WORDS = (
    "at", "put", "forget", "clear", "at_pair", "put_pair", "clear_pairs", "is_too_long", "stood_in", "taken_over",
)  # fmt: skip
"""The functions that steps call."""

EXACT = -1  # the reason of a trace that only exact replay can judge
UNKNOWN_ACTION = -2  # an action code that the spec does not have
CLAIMED = -3  # no reason to stop: the event is refused, and the state is the one that the broker claims

SCALARS = 0  # fields of the state that are numbers
SINGLES = 0  # Maps of one key, each a column of the windows, before the columns of those of two
MAPS = 0  # columns that have something in them
COLUMNS = 1  # of the windows: one where there is no Map
DEFAULTS = np.zeros(1, np.int64)  # of the columns
FREE = 1 << 62  # in place of the first key, in a row of a table that has no element: no key is as large
FEW = 1024  # numbers that a quantifier may go through beyond as many as a window has
FOLDED, LOW_BITS = 29, (1 << 30) - 1
FRACTION = (1 << 32) - 1


@function
def STEP(  # noqa: N802 - a constant, of which this is the kind.
    act: Any, e: Any, t: Any, now: Any, args: Any, windows: Any, origin: Any, width: Any, escape: Any, allowed: Any,
    deviated: Any, deviated_at: Any, deviant: Any, rows: Any, claims: Any,
) -> Any:  # fmt: skip
    """Return the number of the reason for which an event is refused; 0 if it is taken, `CLAIMED` if taken over."""
    del act, e, t, now, args, windows, origin, width, escape, allowed, deviated, deviated_at, deviant, rows, claims
    return UNKNOWN_ACTION


# -- Maps ----------------------------------------------------------------------------------------------------------
#
# The windows are rows of a column for each Map, with the keys from `origin` on, in `width` rows. The last row of
# all says whether keys below were looked at.


@function
def look_below(windows: Any) -> None:
    """Note that a key below the window was read."""
    windows[len(windows) - COLUMNS] = 1


@function(inline=True)
def at(windows: Any, place: Any, width: Any, column: Any, default: Any) -> Any:
    """Return the value at a place of a Map."""
    if place < 0:
        look_below(windows)
    return windows[place * COLUMNS + column] if 0 <= place < width else default


@function(inline=True)
def put(windows: Any, place: Any, width: Any, column: Any, default: Any, value: Any, escape: Any) -> None:
    """Write a value at a place of a Map; beyond the window, only its default may be written."""
    if 0 <= place < width:
        windows[place * COLUMNS + column] = value
    elif value != default:
        escape[0] = 1


@function
def forget(windows: Any, place: Any, width: Any, column: Any, default: Any) -> None:
    """Reset a Map to its default from a place on."""
    if place < 0:
        look_below(windows)
    for later in range(max(place, 0), width):
        windows[later * COLUMNS + column] = default


@function
def clear(windows: Any, width: Any, column: Any, default: Any) -> None:
    """Reset a whole Map to its default."""
    for place in range(width):
        windows[place * COLUMNS + column] = default


# -- Maps of two keys
#
# The rows of a window are a table, too: a Map of two keys has three columns, of its values and of both keys. An element
# lies in the first row that is free from the one on that its keys choose. A full table escapes to exact replay.


@function
def chosen(first: Any, second: Any, width: Any) -> Any:
    """Return the row in which to look for two keys first: keys that follow one another choose rows far apart."""
    one = (first ^ (first >> FOLDED)) & LOW_BITS
    other = (second ^ (second >> FOLDED)) & LOW_BITS
    mixed = one * 0x9E3779B1 + other * 0x85EBCA6B
    return ((mixed & FRACTION) * width) >> 32


@function
def row_of(windows: Any, first: Any, second: Any, width: Any, column: Any) -> Any:
    """Return the row of an element, or the free row for it; -1 in a full table."""
    row = chosen(first, second, width)
    for _ in range(width):
        kept = windows[row * COLUMNS + column + 1]
        if kept == FREE or (kept == first and windows[row * COLUMNS + column + 2] == second):
            return row
        row = row + 1 if row + 1 < width else 0
    return -1


@function
def at_pair(windows: Any, first: Any, second: Any, width: Any, column: Any, default: Any) -> Any:
    """Return the value of a Map at two keys."""
    row = row_of(windows, first, second, width, column)
    return windows[row * COLUMNS + column] if row >= 0 else default


@function
def put_pair(
    windows: Any, first: Any, second: Any, width: Any, column: Any, default: Any, value: Any, escape: Any
) -> None:
    """Write a value of a Map at two keys; a full table takes only the default."""
    row = row_of(windows, first, second, width, column)
    if row < 0:
        if value != default:
            escape[0] = 1
    elif value != default or windows[row * COLUMNS + column + 1] != FREE:
        windows[row * COLUMNS + column] = value
        windows[row * COLUMNS + column + 1] = first
        windows[row * COLUMNS + column + 2] = second


@function
def clear_pairs(windows: Any, width: Any, column: Any, default: Any) -> None:
    """Reset a whole Map of two keys to its default."""
    for row in range(width):
        windows[row * COLUMNS + column] = default
        windows[row * COLUMNS + column + 1] = FREE


@function
def is_too_long(low: Any, high: Any, width: Any) -> Any:
    """Return True if a quantifier has too many numbers to go through, or too large ones."""
    return low < high and (low < -LIMIT or high > LIMIT or high - low > width + FEW)


@function
def load(windows: Any, place: Any, cells: Any, low: Any, high: Any, width: Any, escape: Any) -> None:
    """Load the elements of a trace's Maps into the windows; those of tables get rows of their own."""
    for column in range(SINGLES):
        for cell in range(low, high):
            windows[(place + cell - low) * COLUMNS + column] = cells[column, cell]
    if SINGLES < MAPS:
        for column in range(SINGLES, MAPS, 3):
            for cell in range(low, high):
                first, second, value = cells[column + 1, cell], cells[column + 2, cell], cells[column, cell]
                if first != FREE:
                    put_pair(windows, first, second, width, column, DEFAULTS[column], value, escape)


@function
def leave_table(windows: Any, cells: Any, low: Any, high: Any, column: Any) -> None:
    """Store the elements of a table, one after the other."""
    left = low
    for row in range(high - low):
        cells[column, low + row] = DEFAULTS[column]
        cells[column + 1, low + row] = FREE
        cells[column + 2, low + row] = 0
        value = windows[row * COLUMNS + column]
        if value != DEFAULTS[column]:
            cells[column, left] = value
            cells[column + 1, left] = windows[row * COLUMNS + column + 1]
            cells[column + 2, left] = windows[row * COLUMNS + column + 2]
            left += 1


@function
def leave(windows: Any, cells: Any, low: Any, high: Any) -> None:
    """Store the elements of a trace's Maps from the windows."""
    for column in range(SINGLES):
        for cell in range(low, high):
            cells[column, cell] = windows[(cell - low) * COLUMNS + column]
    if SINGLES < MAPS:
        for column in range(SINGLES, MAPS, 3):
            leave_table(windows, cells, low, high, column)


# -- events --------------------------------------------------------------------------------------------------------


@function
def stood_in(
    number: Any, why: Any, instead: Any, e: Any, t: Any, escape: Any, deviated: Any, deviated_at: Any, deviant: Any,
    rows: Any,
) -> Any:  # fmt: skip
    """Try a deviation for an event that is refused for `instead`; count it if it is taken.

    Returns the reason that remains.
    """
    if instead == 0 and escape[0] == 0:
        if deviated[number] == 0 or (len(rows) > 0 and rows[e] < rows[deviated_at[number]]):
            deviated_at[number] = e
        deviated[number] += 1
        deviant[t] |= 1 << number
    return instead if instead <= 0 else why


@function
def taken_over(why: Any, instead: Any, e: Any, escape: Any, claims: Any) -> Any:
    """Note the reason of a refusal, if a takeover leads to the state that the broker claims.

    Returns the reason that remains.
    """
    if instead == 0 and escape[0] == 0:
        claims[e] = why
        return CLAIMED
    return instead if instead < 0 else why


@function
def watch(watched: Any, now: Any, windows: Any, e: Any) -> None:
    """Note the values that an event has changed, of those that are watched: `Kernel.replay` describes the rows."""
    for one in range(watched.shape[1]):
        place = watched[0, one]
        value = windows[place] if place >= 0 else now[-1 - place]
        if value != watched[1, one]:
            watched[1, one] = value
            watched[2, one] = e


@function
def large(now: Any) -> Any:
    """Return True if a number of the state is too large for a step to begin with."""
    for row in range(SCALARS):  # noqa: SIM110 - generators are not in the language
        if not -LIMIT < now[row] < LIMIT:
            return True
    return False


@function
def replay(  # noqa: C901, PLR0912 - the loop
    starts: Any, action: Any, args: Any, state: Any, now: Any, origins: Any, widths: Any, windows: Any, allowed: Any,
    bad_at: Any, bad_why: Any, covered: Any, deviated: Any, deviated_at: Any, deviant: Any, escape: Any, there: Any,
    loaded: Any, cells: Any, cut: Any, left: Any, left_cells: Any, rows: Any, claims: Any, watched: Any,
) -> Any:  # fmt: skip
    """Replay traces: `Kernel.replay` describes the columns."""
    for t in range(len(starts) - 1):
        bad_at[t] = -1
        bad_why[t] = 0
        deviant[t] = 0
        origin = origins[t]
        width = widths[t]
        for row in range(SCALARS):
            now[row] = state[row, t]
        if large(now):
            bad_at[t] = starts[t]
            bad_why[t] = EXACT
            continue
        if len(loaded) > 0:  # otherwise the windows are resident
            for place in range(width):
                for column in range(MAPS):
                    windows[place * COLUMNS + column] = DEFAULTS[column]
            if len(loaded) > 1:
                windows[len(windows) - COLUMNS] = 0
                load(windows, there[t] - origin, cells, loaded[t], loaded[t + 1], width, escape)
        for e in range(starts[t], starts[t + 1]):
            act = action[e]
            why = STEP(
                act, e, t, now, args, windows, origin, width, escape, allowed, deviated, deviated_at, deviant, rows,
                claims,
            )  # fmt: skip
            if escape[0] != 0:
                escape[0] = 0
                why = EXACT
            if why == 0:
                covered[act] += 1
            elif why != CLAIMED:
                bad_at[t] = e
                bad_why[t] = why
                break
            if watched.shape[1] > 0:
                watch(watched, now, windows, e)
        for row in range(SCALARS):
            state[row, t] = now[row]
        if MAPS > 0 and len(left) > 1:
            if len(loaded) > 1 and cut[t] and windows[len(windows) - COLUMNS] != 0:
                bad_at[t] = starts[t]
                bad_why[t] = EXACT
            leave(windows, left_cells, left[t], left[t + 1])
    return 0
