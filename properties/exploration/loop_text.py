"""The part of a native search that is alike for all specs, as source: what packs states, and the loop over them."""

from __future__ import annotations

FUNCTION = """

@njit(forceinline=True)
def {name}({given}now, windows, origin, width, escape, numbers, lows):
{body}    return True
"""

EACH = """    for e in range(lows[{number}], lows[{number} + 1]):
{body}"""

KEPT = """

@njit
def {name}({given}j, after, layout, now, windows, origin, width, escape, numbers, lows):
{shown}{body}    return True
"""

STAND_IN = """

@njit
def {name}({called}):
    return {tried}
"""

TRY = """

@njit(forceinline=True)
def {name}(one, end, runs, {called}):
{loads}{guards}    for r in range(one, end):
        first, last = runs[r, 0], runs[r, 1]
{narrowed}        for e in range(first, last):
{body}"""

WORDS = '''

@njit
def most(windows, width, column, default):
    found, best = False, default
    for place in range(width):
        value = windows[place, column]
        if value != default and (value > best or not found):
            found, best = True, value
    return best


@njit
def held(windows, width, column, default):
    count = 0
    for place in range(width):
        count += windows[place, column] != default
    return count


# `layout` has a row for each number: (word, shift, least, mask); and behind them one for each Map: (bit, shift, least,
# mask), where the first value lies at that bit, and each takes 1 << shift of them.


@njit(forceinline=True)
def opened(row, after, codes, fill, code):
    """Room for what a step makes of the state `row`: that state, to begin with."""
    j = fill[0]
    fill[0] = j + 1
    codes[j] = code
    after[j, 0] = row[0]
    for k in range(1, len(row)):
        after[j, k] = row[k]
    return j


@njit(forceinline=True)
def store(after, j, layout, field, before, value, escape):
    raw = value - layout[field, 2]
    if raw < 0 or raw > layout[field, 3]:
        escape[0], escape[1], escape[2] = 2, field, value
    else:
        after[j, layout[field, 0]] += np.uint64(value - before) << np.uint64(layout[field, 1])


@njit(forceinline=True)
def put_in(after, j, layout, field, place, width, default, value, escape):
    if 0 <= place < width:
        raw = value - layout[field, 2]
        if raw < 0 or raw > layout[field, 3]:
            escape[0], escape[1], escape[2] = 2, field, value
        bit = layout[field, 0] + (place << layout[field, 1])
        shift = np.uint64(bit & 63)
        others = ~(np.uint64(layout[field, 3]) << shift)
        after[j, bit >> 6] = (after[j, bit >> 6] & others) | (np.uint64(raw) << shift)
    elif value != default:
        escape[0] = 1


@njit
def forget_in(after, j, layout, field, place, width, blank):
    bit = layout[field, 0] + (max(place, 0) << layout[field, 1])
    end = layout[field, 0] + (width << layout[field, 1])
    while bit < end:
        word = bit >> 6
        until = min(end, (word + 1) << 6)
        ones = (~np.uint64(0) >> np.uint64(64 - (until - bit))) << np.uint64(bit & 63)
        after[j, word] = (after[j, word] & ~ones) | (blank[word] & ones)
        bit = until


@njit(forceinline=True)
def shown(rows, n, layout, field, windows, column, width):
    """A Map of a row, as a window."""
    bit, step = layout[field, 0], 1 << layout[field, 1]
    least, mask, shift = layout[field, 2], np.uint64(layout[field, 3]), np.uint64(step)
    word = rows[n, bit >> 6] >> np.uint64(bit & 63)
    for place in range(width):
        if bit & 63 == 0:
            word = rows[n, bit >> 6]
        windows[place, column] = np.int64(word & mask) + least
        word >>= shift
        bit += step


@njit(forceinline=True)
def same(one, n, other, m):
    if one[n, 0] != other[m, 0]:
        return False
    for k in range(1, one.shape[1]):
        if one[n, k] != other[m, k]:
            return False
    return True


@njit(forceinline=True)
def hash_of(rows, n):
    h = rows[n, 0] * np.uint64(0x9E3779B97F4A7C15)
    for k in range(1, rows.shape[1]):
        h = ((h ^ (h >> np.uint64(29))) + rows[n, k]) * np.uint64(0xBF58476D1CE4E5B9)
    return (h ^ (h >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)


@njit(cache=True)
def fill_slots(states, count, beyond, slots):
    """The table of the first so many states."""
    mask = np.uint64(len(slots) - 1)
    for n in range(count):
        h = hash_of(states, n)
        slot = h >> np.uint64(32) & mask
        while slots[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = entry(h, n, beyond[n])


@njit(forceinline=True)
def entry(h, n, is_beyond):
    """32 bits of the hash, one that says whether the state is beyond the bound, and the state's number from 1."""
    return (h << np.uint64(32)) | (np.uint64(is_beyond) << np.uint64(31)) | np.uint64(n + 1)
'''

AT_LEAST = """cut = min(max({at}, first), last)
{counter} += cut - first
first = cut
if first >= last:
    continue
"""
AT_MOST = """cut = min(max({at}, first), last)
{counter} += last - cut
last = cut
if first >= last:
    continue
"""
EXACTLY = """cut = {at}
if not first <= cut < last:
    {counter} += last - first
    continue
{counter} += last - first - 1
first, last = cut, cut + 1
"""
RANGES = {
    ">=": AT_LEAST,
    ">": AT_LEAST.replace("{at}", "{at} + 1"),
    "<": AT_MOST,
    "<=": AT_MOST.replace("{at}", "{at} + 1"),
    "==": EXACTLY,
}
"""What a comparison of a run's last argument leaves of the run, from `first` to `last`."""

TAKEN = """                try_{code}(starts_of[{code}], starts_of[{code} + 1], runs, {called})
"""

LOOP = """

@njit(forceinline=True)
def unpack(rows, n, layout, now, windows, width):
    for k in range({scalars}):
        there = rows[n, layout[k, 0]] >> np.uint64(layout[k, 1])
        now[k] = np.int64(there & np.uint64(layout[k, 3])) + layout[k, 2]
    for m in range({maps}):
        shown(rows, n, layout, {scalars} + m, windows, m, width)


@njit(forceinline=True)
def settle(
    block, until, limit, joins, rest, origin, width, layout, now, windows, escape, numbers, lows, counts,
    after, codes, hashes, ends, states, slots, met_source, met_call, beyond, ahead, accepted, keep, starts,
    targets, calls,
):
    met, joined, inside, status, target = counts[1], counts[2], counts[4], 0, 0
    mask = np.uint64(len(slots) - 1)
    j, source = 0, block
    while source < until and status == 0:
        if met > limit:
            status = 8
            break
        farthest = ahead[source]
        while j < ends[source - block]:
            if joined >= joins:
                status = 9
                break
            code = codes[j]
            wrong = code < 0
            if wrong:
                code = -1 - code
            h = hashes[j]
            slot = (h >> np.uint64(32)) & mask
            found = slots[slot]
            while found != 0:
                target = np.int64(found & np.uint64(0x7FFFFFFF)) - 1
                if (found ^ (h << np.uint64(32))) >> np.uint64(32) == 0 and same(states, target, after, j):
                    break
                slot = (slot + np.uint64(1)) & mask
                found = slots[slot]
            if found == 0:
                target = met
                met += 1
                for k in range(states.shape[1]):
                    states[target, k] = after[j, k]
                met_source[target] = source
                met_call[target] = code
                ahead[target] = -1
                unpack(states, target, layout, now, windows, width)
                beyond[target] = not is_within(now, windows, origin, width, escape, numbers, lows)
                right = is_right(now, windows, origin, width, escape, numbers, lows)
                found = entry(h, target, beyond[target])
                slots[slot] = found
                if escape[0] != 0:
                    status = 3
                    break
                if not right:
                    counts[3] = target
                    status = 6
                    break
            if keep:
                targets[joined] = target
                calls[joined] = code
            joined += 1
            inside += (found >> np.uint64(31)) & np.uint64(1) == 0
            accepted[code] += 1
            if code < rest and target > farthest:
                farthest = target
            j += 1
            if wrong:
                counts[3] = target
                status = 7
                break
        ahead[source] = farthest
        if status == 0:
            source += 1
            if keep:
                starts[source] = joined
    counts[0], counts[1], counts[2], counts[4] = source, met, joined, inside
    return status


@njit(nogil=True, cache=True)
def search(
    starts_of, runs, most, rest, args, numbers, lows, limit, budget, until, joins, origin, width, layout, blank,
    now, windows, escape, counts, row, after, codes, hashes, fill, ends,
    states, slots, met_source, met_call, beyond, ahead, accepted, keep, starts, targets, calls, refused,
):
    begin = counts[0]
    while counts[0] < min(counts[1], until):
        if counts[0] - begin >= budget:
            return 1
        if counts[1] + len(after) > len(states) or 4 * (counts[1] + len(after)) > 3 * len(slots):
            return 2
        if keep and counts[2] + len(after) > len(targets):
            return 2
        block = counts[0]
        source = block
        fill[0] = 0
        while source < min(counts[1], until) and source - block < len(ends) and fill[0] + most <= len(after):
            if not beyond[source]:
                unpack(states, source, layout, now, windows, width)
                for k in range(len(row)):
                    row[k] = states[source, k]
{taken}                if escape[0] != 0:
                    return 2 + escape[0]
            ends[source - block] = fill[0]
            source += 1
        mask = np.uint64(len(slots) - 1)
        looked_at = np.uint64(0)  # so that what the table holds there is under way before it is wanted
        for j in range(fill[0]):
            h = hash_of(after, j)
            hashes[j] = h
            looked_at ^= slots[(h >> np.uint64(32)) & mask]
        fill[1] = np.int64(looked_at & np.uint64(1))
        status = settle(
            block, source, limit, joins, rest, origin, width, layout, now, windows, escape, numbers, lows, counts,
            after, codes, hashes, ends, states, slots, met_source, met_call, beyond, ahead, accepted, keep, starts,
            targets, calls,
        )
        if status != 0:
            return status
    return 0

"""
