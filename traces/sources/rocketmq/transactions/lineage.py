"""Rows of transactions become events: every record of one transaction in the order of the log.

A renewal does not say which version it was made of, nor an op whether it tells of a commit or a rollback. What is
chosen here is what speaks for the broker: the newest version whose counter fits, and a rollback only where no final
explains the op. The spec has the last word on all of it.

The kernels know a version by its place among the versions of its transaction, 0, 1, 2, for the numbers of halves lie
far apart; nothing in the spec looks at their order. `transactions.events_of_one` translates.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from gapless.traces.sources.rocketmq.store.scan import Ints
from gapless.traces.sources.rocketmq.transactions.rows import (
    BORN,
    CONTENT,
    COUNT,
    EXTRA,
    FINAL,
    FIRST,
    HALF,
    IMMUNE,
    KEY,
    KIND,
    LIST,
    MARK,
    NAMES,
    NUMBER,
    PARKED,
    PLACE,
    SIZE,
    TARGET,
    TIME,
    TIMES,
)  # fmt: skip

SLOTS = 1 << 16  # for counters and births of one transaction; those that meet in a slot speak for the broker

# Columns of what a client said: KEY of the transaction, the position that it names, what it is (and for a check, the
# number that it names).
CLIENT_KEY, CLIENT_POSITION, CLIENT_WHAT, CLIENT_NUMBER, CLIENT_COLUMNS = range(5)
COMMIT, ROLL_BACK, COMMIT_TOLD, ASKED_BACK = range(4)

# What is found out about a transaction beside its events: its versions; whether the first is an original; how often it
# was put back; whether no version needs a check any more; ms from its first half to its first decision, or -1; the
# highest number that the check service has surely looked at, or -1; finals that name a final.
VERSIONS, WHOLE, PUT_BACK, DONE, TOOK, LOOKED_AT, TWICE, FACTS = range(8)


@njit(inline="always")
def _version(rows: Ints, halves: Ints, count: int, column: int, value: int) -> int:
    """The version whose `column`, which rises from version to version, is `value`; or -1."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if rows[column, halves[middle]] < value:
            low = middle + 1
        else:
            high = middle
    if low < count and rows[column, halves[low]] == value:
        return np.int64(low)
    return np.int64(-1)


def key_marks(rows: Ints) -> None:
    """Give every mark the key of the half that it names, where that is among the rows; else its key stays 0."""
    halves = np.flatnonzero(rows[KIND] == HALF)
    _key_marks(rows, halves[np.argsort(rows[NUMBER, halves], kind="stable")])


@njit(nogil=True, cache=True)
def _key_marks(rows: Ints, halves: Ints) -> None:
    """`halves`: rows by rising number."""
    for i in range(rows.shape[1]):
        if rows[KIND, i] != MARK or rows[KEY, i] != 0:
            continue
        half = _version(rows, halves, len(halves), NUMBER, rows[NAMES, i])
        if rows[TIMES, i] == 0 and half >= 0:
            rows[KEY, i] = rows[KEY, halves[half]]


@njit(inline="always")
def _slot(rows: Ints, row: int, more: int) -> int:
    """The slot of a version's counter, raised by `more`, and birth: a half that was sent again was born again."""
    return (max(rows[TIMES, row], 0) + more + 257 * (rows[BORN, row] & 0xFFFF)) & (SLOTS - 1)


@njit(inline="always")
def _fits(rows: Ints, row: int, parent: int) -> bool:
    """Whether one version can have been put back as another: all is the same, the first immune one included."""
    first = rows[FIRST, parent]
    if first < 0 <= rows[FIRST, row]:
        first = rows[NUMBER, parent]
    return (
        rows[CONTENT, row] == rows[CONTENT, parent]
        and rows[TARGET, row] == rows[TARGET, parent]
        and rows[FIRST, row] == first
    )


@njit(inline="always")
def _copies(rows: Ints, row: int, half: int) -> bool:
    """Whether a final, or what was set aside, is its half again: content, extra properties and target."""
    return (
        rows[CONTENT, row] == rows[CONTENT, half]
        and rows[EXTRA, row] == rows[EXTRA, half]
        and rows[TARGET, row] == rows[TARGET, half]
    )


@njit(nogil=True, cache=True)
def events_of(
    rows: Ints, order: Ints, bounds: Ints, client: Ints, start: int, aged_ms: int,
    codes: Ints, where: Ints,
    starts: Ints, action: npt.NDArray[np.int8], args: Ints, source: Ints, resolved: Ints, facts: Ints,
) -> int:  # fmt: skip
    """The events of many transactions. Returns how many there are, or -1 where `action` has no room for them.

    `order`, `bounds`: rows by transaction · `client`: what clients said, sorted by key · `start`: where the log
    begins · `aged_ms`: how long messages are kept, or -1 · `codes`: of the actions, `where`: rows of `args`, both in
    the order of `transactions.py` · `starts` [transactions + 1], `action`, `args` [arguments, events]: as a kernel
    takes them · `source` [events]: the row that an event comes from, or -1 - n for line n of `client` · `resolved`
    [rows]: whether the check service need not look at a half any more · `facts` [FACTS, transactions]: see there.
    """
    n = 0
    halves = np.empty(len(order) + 1, np.int64)
    decided = np.empty(len(order) + 1, np.int64)
    marked = np.empty(len(order) + 1, np.int64)
    later = np.zeros(SLOTS, np.bool_)
    shelved = np.zeros(SLOTS, np.bool_)
    (
        a_ask_commit, a_ask_roll_back, a_prepare, a_outlive, a_check, a_commit, a_roll_back, a_mark, a_park,
        a_acknowledge, a_ask_back,
    ) = codes  # fmt: skip
    g_number, g_parent, g_position, g_times, g_asked, g_same, g_half, g_twice, g_aged = where
    for t in range(len(bounds) - 1):
        starts[t] = n
        low, high = bounds[t], bounds[t + 1]
        key = rows[KEY, order[low]]
        said = np.searchsorted(client[CLIENT_KEY], key) if client.shape[1] else 0
        end = said
        while end < client.shape[1] and client[CLIENT_KEY, end] == key:
            end += 1
        if n + 2 * (high - low) + (end - said) > len(action):
            return -1

        count = 0
        for i in range(low, high):
            if rows[KIND, order[i]] == HALF:
                halves[count] = order[i]
                decided[count] = marked[count] = 0
                count += 1
        for c in range(said, end):
            what = client[CLIENT_WHAT, c]
            version = _version(rows, halves, count, PLACE, client[CLIENT_POSITION, c])
            if what <= ROLL_BACK and version >= 0:
                action[n] = a_ask_commit if what == COMMIT else a_ask_roll_back
                args[g_number, n] = version
                source[n] = -1 - c
                n += 1

        seen = 0  # versions so far
        puts = 0
        took = np.int64(-1)
        looked_at = np.int64(-1)
        doubles = 0
        for i in range(low, high):
            r = order[i]
            kind = rows[KIND, r]
            if kind == HALF:
                times = rows[TIMES, r]
                args[g_number, n] = seen
                args[g_position, n] = rows[PLACE, r]
                source[n] = r
                parent, latest, fits = np.int64(-1), np.int64(-1), False
                root = start == 0  # whether all that this version can come from is in the log
                for v in range(seen - 1 if times > 0 else -1, -1, -1):
                    if rows[BORN, halves[v]] == rows[BORN, r]:  # a half that was sent again was born again
                        latest = max(latest, v)
                        root = root or rows[TIMES, halves[v]] < 0
                        if not fits and max(rows[TIMES, halves[v]], 0) == times - 1:
                            fits = _fits(rows, r, halves[v])
                            if fits or parent < 0:
                                parent = np.int64(v)
                    if fits:
                        break
                if parent >= 0 and not fits and not root:
                    parent = np.int64(-1)  # of another branch: its own parent has expired
                if times < 0 or (times == 0 and seen == 0):
                    action[n] = a_prepare
                elif times > 0 and parent < 0 and not root:
                    action[n] = a_outlive
                    args[g_times, n] = times
                else:
                    parent = parent if parent >= 0 else latest if latest >= 0 else np.int64(seen - 1)
                    action[n] = a_check
                    args[g_parent, n] = parent
                    args[g_times, n] = times
                    args[g_asked, n] = 1
                    args[g_same, n] = 1
                    puts += times > 0
                    if parent >= 0:
                        p = halves[parent]
                        looked_at = max(looked_at, rows[NUMBER, p])
                        args[g_same, n] = np.int64(_fits(rows, r, p))
                        immune = rows[FIRST, r] >= 0 and rows[TIME, r] - rows[BORN, r] <= rows[IMMUNE, r]
                        args[g_asked, n] = np.int64(not immune)
                seen += 1
                n += 1
            elif kind == FINAL:
                version = _version(rows, halves, count, PLACE, rows[NAMES, r])
                if version < 0 and 0 <= rows[NAMES, r] < start:
                    continue  # its half has expired
                if version < 0 and rows[NAMES, r] == 0:
                    continue  # a copy that a broker made of a final keeps its flags, and names nothing
                twice = False
                if version < 0:
                    for j in range(low, i):
                        copy = rows[KIND, order[j]] in {FINAL, PARKED}
                        twice = twice or (copy and rows[PLACE, order[j]] == rows[NAMES, r])
                action[n] = a_commit
                args[g_number, n] = version
                args[g_half, n] = rows[NAMES, r]
                args[g_position, n] = rows[PLACE, r]
                args[g_same, n] = 1
                args[g_twice, n] = np.int64(twice)
                doubles += twice
                if version >= 0:
                    p = halves[version]
                    args[g_same, n] = np.int64(_copies(rows, r, p))
                    decided[version] += 1
                source[n] = r
                n += 1
                if took < 0 and count > 0:
                    took = max(rows[TIME, r] - rows[TIME, halves[0]], 0)
            elif kind == MARK:
                version = _version(rows, halves, count, NUMBER, rows[NAMES, r])
                if 0 <= version < seen and decided[version] <= marked[version]:
                    action[n] = a_roll_back
                    args[g_number, n] = version
                    source[n] = r
                    decided[version] += 1
                    n += 1
                    if took < 0:
                        took = max(rows[TIME, r] - rows[TIME, halves[0]], 0)
                action[n] = a_mark
                args[g_number, n] = version
                source[n] = r
                n += 1
                if version >= 0:
                    marked[version] += 1
            elif kind == PARKED:
                times = rows[TIMES, r]
                aged = aged_ms >= 0 and rows[TIME, r] - rows[BORN, r] > aged_ms
                version = np.int64(-1)
                latest, root = np.int64(-1), start == 0
                for v in range(seen - 1, -1, -1):
                    own = max(rows[TIMES, halves[v]], 0)
                    if rows[BORN, halves[v]] == rows[BORN, r]:
                        latest = max(latest, v)
                        root = root or rows[TIMES, halves[v]] < 0
                        if own == times or (aged and own == times - 1):
                            version = np.int64(v) if version < 0 else version
                            if rows[CONTENT, halves[v]] == rows[CONTENT, r]:
                                version = np.int64(v)
                                break
                if version < 0 and not root:
                    continue  # what was set aside has expired
                if version < 0:
                    version = np.int64(latest if latest >= 0 else seen - 1)
                action[n] = a_park
                args[g_number, n] = version
                args[g_position, n] = rows[PLACE, r]
                args[g_times, n] = times
                args[g_same, n] = 1
                args[g_aged, n] = np.int64(aged)
                if version >= 0:
                    p = halves[version]
                    looked_at = max(looked_at, rows[NUMBER, p])
                    own = max(rows[TIMES, p], 0)
                    counted = own == times or (aged and own == times - 1)
                    args[g_same, n] = np.int64(_copies(rows, r, p) and counted)
                source[n] = r
                n += 1

        for c in range(said, end):
            what = client[CLIENT_WHAT, c]
            position = client[CLIENT_POSITION, c]
            if what <= ROLL_BACK or position < start:
                continue
            version = _version(rows, halves, count, PLACE, position)
            if what == COMMIT_TOLD:
                a_final = False
                if version < 0:
                    for j in range(low, high):
                        a_final = a_final or (rows[KIND, order[j]] == FINAL and rows[PLACE, order[j]] == position)
                if a_final:
                    continue  # the client ended a final, and was told so
                action[n] = a_acknowledge
                args[g_number, n] = version
            else:
                action[n] = a_ask_back
                args[g_number, n] = _version(rows, halves, count, NUMBER, client[CLIENT_NUMBER, c])
                args[g_half, n] = position
            source[n] = -1 - c
            n += 1

        # What need not be looked at any more: marked, set aside, or followed by a version with the next counter.
        for i in range(low, high):
            if rows[KIND, order[i]] == PARKED:
                shelved[_slot(rows, order[i], 0)] = True
        done = True
        for v in range(count - 1, -1, -1):
            r = halves[v]
            free = (
                marked[v] > 0
                or later[_slot(rows, r, 1)]
                or shelved[_slot(rows, r, 0)]
                or (aged_ms >= 0 and shelved[_slot(rows, r, 1)])
            )
            if not free and rows[FIRST, r] >= 0:
                first = _version(rows, halves, count, NUMBER, rows[FIRST, r])
                free = marked[first] > 0 if first >= 0 else start > 0
            resolved[r] = np.int64(free)
            done = done and free
            if rows[TIMES, r] > 0:
                later[_slot(rows, r, 0)] = True
        for i in range(low, high):
            later[_slot(rows, order[i], 0)] = False
            shelved[_slot(rows, order[i], 0)] = False
        facts[VERSIONS, t] = count
        facts[WHOLE, t] = np.int64(count > 0 and rows[TIMES, halves[0]] <= 0)
        facts[PUT_BACK, t] = puts
        facts[DONE, t] = np.int64(done)
        facts[TOOK, t] = took if facts[WHOLE, t] else -1
        facts[LOOKED_AT, t] = looked_at
        facts[TWICE, t] = doubles
    starts[len(bounds) - 1] = n
    return n


@njit(nogil=True, cache=True)
def half_events(
    rows: Ints, chosen: Ints, resolved: Ints, codes: Ints, where: Ints,
    starts: Ints, action: npt.NDArray[np.int8], args: Ints,
) -> int:  # fmt: skip
    """The events of `checkpoint` as the half cursor passes the halves in `chosen` rows: a trace for each half."""
    a_half, a_resolve, a_advance = codes
    g_number, g_to = where
    n = 0
    for i in range(len(chosen)):
        starts[i] = n
        r = chosen[i]
        action[n] = a_half
        args[g_number, n] = rows[NUMBER, r]
        n += 1
        if resolved[r]:
            action[n] = a_resolve
            args[g_number, n] = rows[NUMBER, r]
            n += 1
        action[n] = a_advance
        args[g_to, n] = rows[NUMBER, r] + 1
        n += 1
    starts[len(chosen)] = n
    return n


@njit(nogil=True, cache=True)
def op_events(
    rows: Ints, ops: Ints, codes: Ints, where: Ints,
    starts: Ints, action: npt.NDArray[np.int8], args: Ints, reach: Ints,
) -> int:  # fmt: skip
    """The events of `op_batch`, a trace for each op of the rows `ops`: every entry, and the op that takes them all.

    A half is known by its place among those that the op names. `reach` [ops]: the end of these halves.
    """
    a_enqueue, a_write = codes
    g_number, g_length, g_known, g_count, g_size, g_last, g_legible, g_listed = where
    n = 0
    for i in range(len(ops)):
        starts[i] = n
        op = ops[i]
        count = max(rows[COUNT, op], 0)
        reach[i] = 0
        last = 0
        place = np.empty(count, np.int64)
        by_number = np.argsort(rows[NAMES, op + 1 : op + 1 + count])
        for k in range(count):
            m = op + 1 + by_number[k]
            same = k > 0 and rows[NAMES, m] == rows[NAMES, op + 1 + by_number[k - 1]]
            place[by_number[k]] = place[by_number[k - 1]] if same else k
        for m in range(op + 1, op + 1 + count):
            action[n] = a_enqueue
            args[g_number, n] = place[m - op - 1]
            args[g_length, n] = rows[SIZE, m]
            args[g_known, n] = 1
            reach[i] = max(reach[i], rows[NAMES, m] + 1)
            last = rows[SIZE, m]
            n += 1
        action[n] = a_write
        args[g_count, n] = count
        args[g_size, n] = rows[SIZE, op]
        args[g_last, n] = last
        args[g_legible, n] = np.int64(rows[COUNT, op] >= 0)
        args[g_listed, n] = rows[LIST, op]
        n += 1
    starts[len(ops)] = n
    return n
