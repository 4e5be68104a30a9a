"""The search loop, in the language of native code; a spec's search is this one, specialised by its steps and constants.

A state is `WORDS` words: `row` is one that steps are taken from, `new` one that a step makes, `old` the one before it.
The arrays are those of `native/tables.py`, states as one row of words. `fill` counts the states in `after`, the calls
that led beyond the bound, and those that changed nothing. `whole` is 0 where states beyond the bound are only counted.

A call that was accepted has a code: the number of the call and of the way to take it; from bit 32 on, whether it led
beyond the bound and whether a step property is broken; from bit 48 on, the number of what is asked of the new state.
"""

# The search is one pass over a block of states; parts that a spec's search has others for are given the same.

from __future__ import annotations

from gapless.native import function, int64
from gapless.properties.exploration.compiled.arrays import Flags, Ints, Narrow, States
from gapless.properties.exploration.compiled.table import (
    WORDS,
    copy,
    hash_of,
    keep_made,
    number_at,
    place_of,
    put_at,
    same,
)
from gapless.properties.exploration.packing import OUT

LINE = 8  # see `table.py`
WAYS = 1  # in which a call may be accepted: as it is, and by each deviation
CALL = 0xFFFFFFFF  # the bits of a code that tell the call and the way
BEYOND, BROKEN, CHECK = 32, 33, 48  # the bits of a code behind these


@function(distinct=True)
def try_calls(
    runs: Ints, args: Ints, row: States, after: States, mask: int, slots: States, fill: Ints, accepted: Ints,
    refused: Ints, escape: Ints, numbers: Ints, lows: Ints, whole: int,
) -> int:  # fmt: skip
    """Try all calls in a state. A spec's steps stand here: without any, there is no call."""
    return 0


@function(inline=True, distinct=True)
def is_right(check: int, e: int, args: Ints, row: States, old: States, escape: Ints, numbers: Ints, lows: Ints) -> int:
    """1 if the invariants that a step may have broken are true. A spec's invariants stand here; without any, 1."""
    return 1


@function(distinct=True)
def accept(
    call: int, check: int, good: int, inside: int, claims: int, e: int, args: Ints, row: States, new: States,
    after: States, mask: int, slots: States, fill: Ints, escape: Ints, numbers: Ints, lows: Ints, whole: int,
) -> int:  # fmt: skip
    """Keep the state that a step made, or where states are only counted, count it. 1: the call was accepted."""
    if whole == 0:
        if good == 0:
            escape[0] = 4
        if claims != 0:
            return 1
        if inside == 0:
            fill[1] += 1
            if is_right(check, e, args, new, row, escape, numbers, lows) == 0:
                escape[0] = 4
            return 1
        if same(row, new) != 0:
            fill[2] += 1
            return 1
    code = call + ((1 - inside) << BEYOND) + ((1 - good) << BROKEN) + (check << CHECK)
    return keep_made(new, code, fill, mask, slots)


@function(distinct=True)
def fill_slots(states: States, count: int, slots: States, places: Narrow, mask: int) -> int:
    """Put all states into an empty table."""
    for n in range(count):
        row = states[n * WORDS :]
        h = hash_of(row)
        put_at(slots, places, ~place_of(slots, mask, h, states, row), h, n, row)
    return 0


@function(distinct=True)
def escaping(count: int, explored: int, beyond: Flags, ahead: Narrow, fill: Ints) -> int:
    """Mark the states from which steps lead on to the last ones or beyond the bound; how many are not marked."""
    left = 0
    n = count - 1
    while n >= 0:
        far = ahead[n]
        escapes = 1 if beyond[n] != 0 or n >= explored or far == OUT else 0
        if n < far < count:
            escapes |= fill[far]
        fill[n] = escapes
        left += 1 - escapes
        n -= 1
    return left


@function(distinct=True)
def lone(explored: int, starts: Ints, targets: Narrow, fill: Ints) -> None:
    """Mark by 2 the states that no step leaves."""
    n = 0
    while n < explored:
        at = starts[n]
        while at < starts[n + 1] and targets[at] == n:
            at += 1
        fill[n] = 2 if at == starts[n + 1] else 0
        n += 1


@function(distinct=True)
def leading(explored: int, starts: Ints, targets: Narrow, fill: Ints) -> int:
    """Mark by 1 the states from which a step leads to a marked one; how many were marked."""
    more = 0
    n = explored - 1
    while n >= 0:
        if fill[n] == 0:
            at = starts[n]
            while at < starts[n + 1] and fill[targets[at]] == 0:
                at += 1
            if at < starts[n + 1]:
                fill[n] = 1
                more += 1
        n -= 1
    return more


@function(distinct=True)
def search(
    runs: Ints, most: int, rest: int, args: Ints, numbers: Ints, lows: Ints, limit: int, budget: int, until: int,
    joins: int, keep: int, whole: int, counts: Ints, escape: Ints, after: States, room: int, fill: Ints, ends: Ints,
    block: int, states: States, states_room: int, slots: States, places: Narrow, mask: int, sources: Narrow,
    met: Narrow, beyond: Flags, ahead: Narrow, accepted: Ints, starts: Ints, targets: Narrow, targets_room: int,
    calls: Narrow, refused: Ints,
) -> int:  # fmt: skip
    """Explore states, block by block, until all are, the budget is spent, or something needs Python."""
    explored = counts[0]
    begun = explored
    while explored < min(counts[1], until):
        if explored - begun >= budget:
            return 1
        if counts[1] + room > states_room or 4 * (counts[1] + room) > 3 * LINE * (mask + 1):
            return 2
        if keep != 0 and counts[2] + room > targets_room:
            return 2
        source = explored
        fill[0] = 0
        stop = min(counts[1], until, source + block)
        while source < stop and fill[0] + most <= room:
            row = states[source * WORDS :]
            exits = fill[1]
            loops = fill[2]
            if beyond[source] == 0:
                try_calls(runs, args, row, after, mask, slots, fill, accepted, refused, escape, numbers, lows, whole)
            if whole == 0:
                ahead[source] = OUT if fill[1] != exits else (source if fill[2] != loops else -1)
            if escape[0] != 0:
                return 2 + int(escape[0])
            ends[source - explored] = fill[0]
            source += 1
        if whole != 0:
            status = settle(
                explored, source, limit, joins, rest, escape, numbers, lows, counts, args,
                after, ends, states, slots, places, mask, sources, met, beyond, ahead, keep, starts, targets, calls,
            )  # fmt: skip
        else:
            status = count_new(
                explored, source, limit, escape, numbers, lows, counts, args,
                after, fill, ends, states, slots, places, mask, ahead,
            )  # fmt: skip
        if status != 0:
            return status
        explored = counts[0]
    return 0


@function(inline=True, distinct=True)
def count_new(
    explored: int, until: int, limit: int, escape: Ints, numbers: Ints, lows: Ints, counts: Ints, args: Ints,
    after: States, fill: Ints, ends: Ints, states: States, slots: States, places: Narrow, mask: int, ahead: Narrow,
) -> int:  # fmt: skip
    """Look up what a block of states led to, where only states within the bound are kept."""
    count = counts[1]
    j = 0
    begin = 0
    for source in range(explored, until):
        before = count
        end = ends[source - explored]
        while j < end:
            new = after[j * (WORDS + 2) :]
            h = new[WORDS + 1]
            at = place_of(slots, mask, h, states, new)
            if at < 0:
                code = int64(new[WORDS])
                copy(new, states[count * WORDS :])
                put_at(slots, places, ~at, h, count, new)
                e = (code & CALL) // WAYS
                if is_right(code >> CHECK, e, args, new, states[source * WORDS :], escape, numbers, lows) == 0:
                    escape[0] = 4
                count += 1
            j += 1
        farthest = ahead[source]
        if farthest != OUT:
            if count > before:
                farthest = count - 1
            else:
                for at_j in range(begin, end):
                    new = after[at_j * (WORDS + 2) :]
                    at = place_of(slots, mask, new[WORDS + 1], states, new)
                    farthest = max(farthest, number_at(slots, places, at))
            ahead[source] = farthest
        begin = end
    counts[0] = until
    counts[1] = count
    if escape[0] != 0:
        return 2 + int(escape[0])
    if count + fill[1] > limit:
        return 8
    return 0


@function(inline=True, distinct=True)
def settle(
    explored: int, until: int, limit: int, joins: int, rest: int, escape: Ints, numbers: Ints, lows: Ints,
    counts: Ints, args: Ints, after: States, ends: Ints, states: States, slots: States, places: Narrow, mask: int,
    sources: Narrow, met: Narrow, beyond: Flags, ahead: Narrow, keep: int, starts: Ints, targets: Narrow,
    calls: Narrow,
) -> int:  # fmt: skip
    """Look up what a block of states led to, and keep how each new state was met."""
    count = counts[1]
    joined = counts[2]
    inside = counts[4]
    status = 0
    target = 0
    j = 0
    source = explored
    while source < until and status == 0:
        if count > limit:
            status = 8
            break
        farthest = ahead[source]
        end = ends[source - explored]
        while j < end:
            if joined >= joins:
                status = 9
                break
            new = after[j * (WORDS + 2) :]
            code = int64(new[WORDS])
            is_beyond = (code >> BEYOND) & 1
            call = code & CALL
            h = new[WORDS + 1]
            at = place_of(slots, mask, h, states, new)
            if at >= 0:
                target = number_at(slots, places, at)
            else:
                target = count
                count += 1
                copy(new, states[target * WORDS :])
                sources[target] = source
                met[target] = call
                ahead[target] = -1
                beyond[target] = is_beyond
                put_at(slots, places, ~at, h, target, new)
                old = states[source * WORDS :]
                right = is_right(code >> CHECK, call // WAYS, args, new, old, escape, numbers, lows)
                if escape[0] != 0:
                    status = 2 + escape[0]
                    break
                if right == 0:
                    counts[3] = target
                    status = 6
                    break
            if keep != 0:
                targets[joined] = target
                calls[joined] = call
            joined += 1
            inside += 1 - is_beyond
            if call < rest and target > farthest:
                farthest = target
            j += 1
            if (code >> BROKEN) & 1 != 0:
                counts[3] = target
                status = 7
                break
        ahead[source] = farthest
        if status == 0:
            source += 1
            if keep != 0:
                starts[source] = joined
    counts[0] = source
    counts[1] = count
    counts[2] = joined
    counts[4] = inside
    return status
