"""The part of a native search that is alike for all specs, as text of the language of `machine_code.py`.

Arrays are as `native_search.py` makes them. A state is so many words; `row` is one that steps are taken from, `new`
what a step makes of it, and `old` the state before. Names in capitals are constants, known once
it is known how states are packed.
"""

from __future__ import annotations

FUNCTION = """

@inline
def {name}({given}):
{body}    return 1
"""

EACH_OF = """    for e_{number} in range(lows[{number}], lows[{number} + 1]):
{body}"""

EACH_BETWEEN = """    for {name} in range({low}, {high}):
{body}"""

JUST_ONE = """    if {low} <= ({key}) < {high}:
        {name} = {key}
{body}"""

QUANTIFIER = """

def {name}(low, high, {given}escape):
    if high - low > {widest}:
        escape[0] = 3
        return 0
    for n in range(low, high):
{body}    return 1


def {until}(low, high, {given}escape):
    if high - low > {widest}:
        escape[0] = 3
        return low
    n = low
    while n < high:
        if not {name}(n, n + 1, {given}escape):
            return n
        n += 1
    return n
"""
"""Whether something holds of all numbers from `low` to `high`; and up to where it does."""

MAP = """

@inline
def map_{number}(row, key):
    place = key - ORIGIN
    inside = 0 <= place < WIDTH
    bit = F{field}_WORD + ((place if inside else 0) << F{field}_SHIFT)
    return (((row[bit >> 6] >> (bit & 63)) & F{field}_MASK) + F{field}_LEAST) if inside else {default}


@inline
def put_{number}(new, key, value, escape):
    place = key - ORIGIN
    if 0 <= place < WIDTH:
        raw = value - F{field}_LEAST
        if raw < 0 or raw > F{field}_MASK:
            too_wide(escape, {field}, value)
        bit = F{field}_WORD + (place << F{field}_SHIFT)
        ones = F{field}_MASK << (bit & 63)
        new[bit >> 6] = (new[bit >> 6] & ~ones) | ((raw << (bit & 63)) & ones)
    elif value != {default}:
        escape[0] = 1
    return 0


def most_{number}(row):
    found = 0
    best = {default}
    for key in range(ORIGIN, ORIGIN + WIDTH):
        value = map_{number}(row, key)
        if value != {default} and (value > best or not found):
            found = 1
            best = value
    return best


def held_{number}(row):
    count = 0
    for key in range(ORIGIN, ORIGIN + WIDTH):
        count += map_{number}(row, key) != {default}
    return count
"""
"""A Map: what lies at a key, how something is put there, the most that it holds, and how much."""

FORGET = """

@inline
def forget_{number}(new, key):
    place = max(key - ORIGIN, 0)
    if place < WIDTH:
        bit = F{field}_WORD + (place << F{field}_SHIFT)
{words}    return 0
"""
"""What lies in a Map from a key on is forgotten, word by word."""

FORGET_WORD = """        begin = max(bit - {low}, 0)
        if begin < 64:
            ones = (~0 << begin) & {ones}
            new[{word}] = (new[{word}] & ~ones) | ({blank} & ones)
"""

TRY = """

@inline
def {name}({called}):
{loads}{guards}    for r in range(RUNS_{code}_FIRST, RUNS_{code}_END):
        first = runs[3 * r]
        last = runs[3 * r + 1]
        low = first - runs[3 * r + 2]
{narrowed}        for e in range(first, last):
{body}    return 0
"""
TRY_ONE = """

@inline
def {name}({called}):
    r = 0
    while r < 1:
        r = 1
        first = CALLS_{code}_FIRST
        last = CALLS_{code}_END
        low = CALLS_{code}_LOW
{loads}{guards}{narrowed}        for e in range(first, last):
{body}    return 0
"""
"""A step with all its arguments, in many runs or in one. `low`: by what the last argument is less than a call."""

STORED = """    value = {value}
    raw = value - F{field}_LEAST
    if raw < 0 or raw > F{field}_MASK:
        too_wide(escape, {field}, value)
    new[F{field}_WORD] += (value - {before}) << F{field}_SHIFT
"""

STORE = """

@apart
def too_wide(escape, field, value):
    escape[0] = 2
    escape[1] = field
    escape[2] = value
    return 0


@apart
def left_alone(escape):
    escape[0] = 3
    return 1
"""

HASH = """

@inline
def hash_of(row):
    h = row[0] * 0x9E3779B97F4A7C15
{more}    return (h ^ (h >> 32)) * 0x94D049BB133111EB


@inline
def same(row, new):
    return {same}


@inline
def opened(row, new):
{copied}    return 0
"""
"""What is done to all words of a state."""

SLOTS = {
    True: """

@inline
def is_at(slots, slot, found, h, states, new):
    return slots[2 * slot + 1] == new[0]


@inline
def put_at(slots, slot, found, new):
    slots[2 * slot] = found
    slots[2 * slot + 1] = new[0]
    return 0
""",
    False: """

@inline
def is_at(slots, slot, found, h, states, new):
    if (found ^ (h << 32)) >> 32 != 0:
        return 0
    return same(ref(states, ((found & 0x7FFFFFFF) - 1) * WORDS), new)


@inline
def put_at(slots, slot, found, new):
    slots[slot] = found
    return 0
""",
}
"""Whether a state is the one that a place of the table tells of. A state of one word lies there itself."""

HASH_WORD = """    h = ((h ^ (h >> 29)) + row[{word}]) * 0xBF58476D1CE4E5B9
"""

MADE = """

@inline
def made_of(new, code, mask, slots):
    h = hash_of(new)
    new[WORDS] = code
    new[WORDS + 1] = h
    soon(slots, SLOT * ((h >> 32) & mask))
    return 1
"""
"""What a step makes is looked up later, all together: what the table holds there is under way by then."""

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
first = cut
last = cut + 1
"""
RANGES = {
    ">=": AT_LEAST,
    ">": AT_LEAST.replace("{at}", "{at} + 1"),
    "<": AT_MOST,
    "<=": AT_MOST.replace("{at}", "{at} + 1"),
    "==": EXACTLY,
}
"""What a comparison of a run's last argument leaves of the run, from `first` to `last`."""

TAKEN = """                try_{code}({called})
"""

LOOP = """

@exported
def fill_slots(states, count, beyond, slots, mask):
    for n in range(count):
        row = ref(states, n * WORDS)
        h = hash_of(row)
        slot = (h >> 32) & mask
        while slots[SLOT * slot] != 0:
            slot = (slot + 1) & mask
        put_at(slots, slot, entry(h, n, beyond[n]), row)
    return 0


@inline
def entry(h, n, is_beyond):
    return (h << 32) | (is_beyond << 31) | (n + 1)


@exported
def escaping(count, explored, beyond, ahead, fill):
    left = 0
    n = count - 1
    while n >= 0:
        fill[n] = 1 if beyond[n] or n >= explored or (ahead[n] > n and fill[max(ahead[n], 0)]) else 0
        left += 1 - fill[n]
        n -= 1
    return left


@exported
def search(
    runs, most, rest, args, numbers, lows, limit, budget, until, joins, keep,
    counts, escape, after, room, fill, ends, block,
    states, states_room, slots, mask, sources, met, beyond, ahead, accepted, starts, targets, targets_room, calls,
    refused,
):
    explored = counts[0]
    begun = explored
    while explored < min(counts[1], until):
        if explored - begun >= budget:
            return 1
        if counts[1] + room > states_room or 4 * (counts[1] + room) > 3 * (mask + 1):
            return 2
        if keep and counts[2] + room > targets_room:
            return 2
        source = explored
        fill[0] = 0
        stop = min(min(counts[1], until), source + block)
        while source < stop and fill[0] + most <= room:
            if not beyond[source]:
                row = ref(states, source * WORDS)
{taken}                if escape[0] != 0:
                    return 2 + escape[0]
            ends[source - explored] = fill[0]
            source += 1
        status = settle(
            explored, source, limit, joins, rest, escape, numbers, lows, counts, args,
            after, ends, states, slots, mask, sources, met, beyond, ahead, accepted, keep, starts,
            targets, calls,
        )
        if status != 0:
            return status
        explored = counts[0]
    return 0


@inline
def settle(
    explored, until, limit, joins, rest, escape, numbers, lows, counts, args,
    after, ends, states, slots, mask, sources, met, beyond, ahead, accepted, keep, starts,
    targets, calls,
):
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
            new = ref(after, j * (WORDS + 2))
            code = new[WORDS]
            wrong = code < 0
            if wrong:
                code = -1 - code
            kind = (code >> 32) & 0xFFFF
            check = code >> 48
            code = code & 0xFFFFFFFF
            h = new[WORDS + 1]
            slot = (h >> 32) & mask
            found = slots[SLOT * slot]
            while found != 0:
                if is_at(slots, slot, found, h, states, new):
                    target = (found & 0x7FFFFFFF) - 1
                    break
                slot = (slot + 1) & mask
                found = slots[SLOT * slot]
            if found == 0:
                target = count
                count += 1
                opened(new, ref(states, target * WORDS))
                sources[target] = source
                met[target] = code
                ahead[target] = -1
                is_beyond = not is_within(new, escape, numbers, lows)
                beyond[target] = is_beyond
                found = entry(h, target, is_beyond)
                put_at(slots, slot, found, new)
                e = code // {ways}
                right = is_right(check, e, args, new, ref(states, source * WORDS), escape, numbers, lows)
                if escape[0] != 0:
                    status = 2 + escape[0]
                    break
                if not right:
                    counts[3] = target
                    status = 6
                    break
            if keep:
                targets[joined] = target
                calls[joined] = code
            joined += 1
            inside += ((found >> 31) & 1) == 0
            accepted[kind] += 1
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
    counts[0] = source
    counts[1] = count
    counts[2] = joined
    counts[4] = inside
    return status
"""
