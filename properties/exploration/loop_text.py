"""The part of a native search that is alike for all specs, as text of the language of `machine_code.py`.

Arrays are as `native_search.py` makes them. A state is so many words; `row` is one that steps are taken from, `new`
what a step makes of it, and `old` the state before. Names in capitals are constants, known once
it is known how states are packed. `whole` is 0 where states beyond the bound are but counted: `fill` holds how much is
in `after`, how many calls led beyond the bound, and how many changed nothing.
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
{loads}{guards}{narrowed}{asked}{each}{body}    return 0
"""
EACH_CALL = """        for e in range(first, last):
"""
EACH_TAKEN = """        while taken != 0:
            e = CALLS_{code}_FIRST + first_of(taken)
            taken &= taken - 1
"""
"""A step with all its arguments, in many runs or in one, from one call to the next, or where all calls are asked before
any is taken, from one that is left to the next. `low`: by what the last argument is less than a call."""

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

ACCEPTED = """    accepted[{kind}] += 1
    good = 1
{judged}    inside = {inside}
    code = e * {ways} + {way} + {check}
    if whole == 0:
{counted}    if not inside:
        code += 0x100000000
    if not good:
        code = -1 - code
    return made_of(new, code, fill, mask, slots)
"""
"""What becomes of the state that a step has made."""

CLAIMED = """        if not good:
            escape[0] = 4
        return 1
"""
COUNTED = """        if not good:
            escape[0] = 4
        if not inside:
            fill[1] += 1
            if not right_{check}(e, args, new, row, escape, numbers, lows):
                escape[0] = 4
            return 1
        if same(row, new):
            fill[2] += 1
            return 1
"""
"""Where states are but counted: one beyond the bound is judged, and not looked up, nor is the same state again."""

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
def fill_slots(states, count, slots, places, mask):
    for n in range(count):
        row = ref(states, n * WORDS)
        h = hash_of(row)
        put_at(slots, places, ~place_of(slots, mask, h, states, row), h, n, row)
    return 0


@exported
def escaping(count, explored, beyond, ahead, fill):
    left = 0
    n = count - 1
    while n >= 0:
        far = ahead[n]
        fill[n] = 1 if beyond[n] or n >= explored or far == OUT else 0
        if n < far < count:
            fill[n] |= fill[far]
        left += 1 - fill[n]
        n -= 1
    return left


@exported
def search(
    runs, most, rest, args, numbers, lows, limit, budget, until, joins, keep, whole,
    counts, escape, after, room, fill, ends, block,
    states, states_room, slots, places, mask, sources, met, beyond, ahead, accepted, starts, targets, targets_room,
    calls, refused,
):
    explored = counts[0]
    begun = explored
    while explored < min(counts[1], until):
        if explored - begun >= budget:
            return 1
        if counts[1] + room > states_room or 4 * (counts[1] + room) > 3 * LINE * (mask + 1):
            return 2
        if keep and counts[2] + room > targets_room:
            return 2
        source = explored
        fill[0] = 0
        stop = min(min(counts[1], until), source + block)
        while source < stop and fill[0] + most <= room:
            row = ref(states, source * WORDS)
            exits = fill[1]
            loops = fill[2]
            if not beyond[source]:
{taken}            if whole == 0:
                ahead[source] = OUT if fill[1] != exits else (source if fill[2] != loops else -1)
            if escape[0] != 0:
                return 2 + escape[0]
            ends[source - explored] = fill[0]
            source += 1
        if whole:
            status = settle(
                explored, source, limit, joins, rest, escape, numbers, lows, counts, args,
                after, ends, states, slots, places, mask, sources, met, beyond, ahead, keep, starts, targets, calls,
            )
        else:
            status = count_new(
                explored, source, limit, escape, numbers, lows, counts, args,
                after, fill, ends, states, slots, places, mask, ahead,
            )
        if status != 0:
            return status
        explored = counts[0]
    return 0


@inline
def count_new(
    explored, until, limit, escape, numbers, lows, counts, args,
    after, fill, ends, states, slots, places, mask, ahead,
):
    count = counts[1]
    j = 0
    begin = 0
    for source in range(explored, until):
        before = count
        end = ends[source - explored]
        while j < end:
            new = ref(after, j * (WORDS + 2))
            h = new[WORDS + 1]
            at = place_of(slots, mask, h, states, new)
            if at < 0:
                code = new[WORDS]
                opened(new, ref(states, count * WORDS))
                put_at(slots, places, ~at, h, count, new)
                e = (code & 0xFFFFFFFF) // {ways}
                if not is_right(code >> 48, e, args, new, ref(states, source * WORDS), escape, numbers, lows):
                    escape[0] = 4
                count += 1
            j += 1
        farthest = ahead[source]
        if farthest != OUT:
            if count > before:
                farthest = count - 1
            else:
                for at_j in range(begin, end):
                    new = ref(after, at_j * (WORDS + 2))
                    at = place_of(slots, mask, new[WORDS + 1], states, new)
                    farthest = max(farthest, number_at(slots, places, at))
            ahead[source] = farthest
        begin = end
    counts[0] = until
    counts[1] = count
    if escape[0] != 0:
        return 2 + escape[0]
    if count + fill[1] > limit:
        return 8
    return 0


@inline
def settle(
    explored, until, limit, joins, rest, escape, numbers, lows, counts, args,
    after, ends, states, slots, places, mask, sources, met, beyond, ahead, keep, starts, targets, calls,
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
            is_beyond = (code >> 32) & 1
            check = code >> 48
            code = code & 0xFFFFFFFF
            h = new[WORDS + 1]
            at = place_of(slots, mask, h, states, new)
            if at >= 0:
                target = number_at(slots, places, at)
            else:
                target = count
                count += 1
                opened(new, ref(states, target * WORDS))
                sources[target] = source
                met[target] = code
                ahead[target] = -1
                beyond[target] = is_beyond
                put_at(slots, places, ~at, h, target, new)
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
            inside += 1 - is_beyond
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
