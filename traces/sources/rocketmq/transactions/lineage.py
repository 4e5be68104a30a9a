"""Rows of transactions become events: every record of one transaction in the order of the log.

A renewal does not say which version it was made of, nor an op whether it tells of a commit or a rollback. What is
chosen here is what speaks for the broker: the newest version whose counter fits, and a rollback only where no final
explains the op. The spec has the last word on all of it.

The kernels know a version by its place among the versions of its transaction, 0, 1, 2, for the numbers of halves lie
far apart; nothing in the spec looks at their order. `transactions.events_of_one` translates.
"""

# ruff: noqa: C901, FBT001, PLR0912
# A kernel is one pass over the bytes; kernels are called by position.

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.native import BOOL, I64, INTS, INTS8, TABLE, function, native, record
from gapless.spec.checkpoint import How
from gapless.traces.sources.rocketmq.clients.decision_index import (
    ACKNOWLEDGED,
    CLIENT_NUMBER,
    CLIENT_POSITION,
    CLIENT_WHAT,
    COMMIT,
    ROLL_BACK,
)
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.transactions.transaction_rows import (
    BORN,
    BY_PLACE,
    CONTENT,
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
    TARGET,
    TIME,
    TIMES,
)  # fmt: skip

NOT_RESOLVED = 0
BY_OP, BY_VERSION, BY_COPY, BY_OP_OF_EARLIER = (int(how) for how in (How.OP, How.VERSION, How.COPY, How.EARLIER))
COUNTED, WITH_CONTENT, COPIED = 1, 2, 3  # likenesses of what was parked to a half, the greatest last
SLOTS = 1 << 16  # for counters and births of one transaction; those that meet in a slot speak for the broker

# Facts about a transaction in addition to its events: its versions; is the first an original; how often it
# was put back; whether no version needs a check any more; ms from its first half to its first decision, or -1; the
# highest number that the check service has surely looked at, or -1; finals that name a final.
VERSIONS, WHOLE, PUT_BACK, DONE, TOOK, LOOKED_AT, TWICE, FACTS = range(8)


@function(inline=True)
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
        return low
    return -1


def key_marks(rows: Ints) -> None:
    """Give every mark the key of the half that it names, where that is among the rows; else its key stays 0."""
    halves = np.flatnonzero(rows[KIND] == HALF)
    _key_marks(rows, halves[np.argsort(rows[NUMBER, halves], kind="stable")])


@native(lambda rows, _halves: rows.shape[1], kinds=(TABLE, INTS))
def _key_marks(rows: Ints, halves: Ints) -> None:
    """`halves`: rows by rising number."""
    for i in range(rows.shape[1]):
        if rows[KIND, i] != MARK or rows[KEY, i] != 0:
            continue
        half = _version(rows, halves, len(halves), NUMBER, rows[NAMES, i])
        if rows[TIMES, i] == 0 and half >= 0:
            rows[KEY, i] = rows[KEY, halves[half]]


@function(inline=True)
def _slot(rows: Ints, row: int, more: int) -> int:
    """Returns the slot of a version's counter, raised by `more`, and birth: a half sent twice has two births."""
    return (max(int(rows[TIMES, row]), 0) + more + 257 * int(rows[BORN, row] & 0xFFFF)) & (SLOTS - 1)


@function(inline=True)
def _fits(rows: Ints, row: int, parent: int) -> bool:
    """True if one version can be another one put back: all is the same, the first immune one included."""
    first = rows[FIRST, parent]
    if first < 0 <= rows[FIRST, row]:
        first = rows[NUMBER, parent]
    return bool(
        rows[CONTENT, row] == rows[CONTENT, parent]
        and rows[TARGET, row] == rows[TARGET, parent]
        and rows[FIRST, row] == first
    )


@function(inline=True)
def _copies(rows: Ints, row: int, half: int) -> bool:
    """True if a final or a parked record copies its half: content, extra properties and target."""
    return bool(
        rows[CONTENT, row] == rows[CONTENT, half]
        and rows[EXTRA, row] == rows[EXTRA, half]
        and rows[TARGET, row] == rows[TARGET, half]
    )


class TransactionCodes(NamedTuple):
    """Codes of the actions of `transaction`."""

    ask_to_commit: int
    ask_to_roll_back: int
    prepare: int
    outlive: int
    check: int
    commit: int
    roll_back: int
    mark: int
    park: int
    acknowledge: int
    ask_back: int


class TransactionArguments(NamedTuple):
    """Rows of their arguments."""

    number: int
    parent: int
    position: int
    times: int
    asked: int
    same: int
    half: int
    twice: int
    aged: int
    marked: int


class LineageWork(NamedTuple):
    """Transactions, and what is made of them.

    `order`, `bounds`: rows by transaction · `client`: events of clients, `DecisionIndex.rows` · `lines` [2,
    transactions]: the range of those about each transaction · `start`: where the log begins
    · `aged_ms`: how long messages are kept · `aged_perhaps`: it may have been shorter · `starts` [transactions +
    1], `action`, `args` [arguments, events]: events as a kernel takes them · `source` [events]: the row that an event
    comes from, or -1 - n for line n of `client` · `resolved` [2, rows]: how a half is resolved (`spec.checkpoint.How`),
    or 0 where the check service must look at it still, and the number of the record that resolves it · `facts` [FACTS,
    transactions]: see there · `halves`, `decided`, `marked`, `named`: of the versions of one transaction, their rows,
    how often each was decided and marked, and the op that names it · `later`, `shelved` [SLOTS]: see `_resolve`.
    """

    rows: Ints
    order: Ints
    bounds: Ints
    client: Ints
    lines: Ints
    start: int
    aged_ms: int
    aged_perhaps: bool
    starts: Ints
    action: npt.NDArray[np.int8]
    args: Ints
    source: Ints
    resolved: Ints
    facts: Ints
    halves: Ints
    decided: Ints
    marked: Ints
    named: Ints
    later: Ints
    shelved: Ints
    codes: TransactionCodes
    into: TransactionArguments


@native(lambda work: len(work.order), kinds=(
    record(LineageWork, TABLE, INTS, INTS, TABLE, TABLE, I64, I64, BOOL, INTS, INTS8, TABLE, INTS, TABLE, TABLE,
    INTS, INTS, INTS, INTS, INTS, INTS, record(TransactionCodes), record(TransactionArguments)),
))  # fmt: skip
def events_of(w: LineageWork) -> None:
    """The events of many transactions."""
    n = 0
    rows, order, bounds, facts = w.rows, w.order, w.bounds, w.facts
    starts, halves, decided, marked = w.starts, w.halves, w.decided, w.marked
    for t in range(len(bounds) - 1):
        starts[t] = n
        low, high = bounds[t], bounds[t + 1]
        facts[TOOK, t] = facts[LOOKED_AT, t] = -1
        count = 0
        for i in range(low, high):
            if rows[KIND, order[i]] == HALF:
                halves[count] = order[i]
                decided[count] = marked[count] = 0
                count += 1
        begin, end = w.lines[0, t], w.lines[1, t]
        n = _requests(w, begin, end, count, n)
        seen = 0  # versions so far
        for i in range(low, high):
            r = order[i]
            kind = rows[KIND, r]
            if kind == HALF:
                _half(w, t, r, seen, n)
                seen += 1
                n += 1
            elif kind == FINAL:
                n = _final(w, t, low, i, count, n)
            elif kind == MARK:
                n = _mark(w, t, r, seen, count, n)
            elif kind == PARKED:
                n = _park(w, t, r, seen, n)
        n = _answers(w, low, high, begin, end, count, n)
        facts[VERSIONS, t] = count
        facts[WHOLE, t] = int(count > 0 and rows[TIMES, halves[0]] <= 0)
        facts[DONE, t] = int(_resolve(w, low, high, count, w.later, w.shelved, w.named))
        if not facts[WHOLE, t]:
            facts[TOOK, t] = -1
    starts[len(bounds) - 1] = n


@function(inline=True)
def _requests(w: LineageWork, begin: int, end: int, count: int, n: int) -> int:
    """Writes the requests of producers."""
    for c in range(begin, end):
        what = w.client[CLIENT_WHAT, c]
        version = _version(w.rows, w.halves, count, PLACE, w.client[CLIENT_POSITION, c])
        if what <= ROLL_BACK and version >= 0:
            w.action[n] = w.codes.ask_to_commit if what == COMMIT else w.codes.ask_to_roll_back
            w.args[w.into.number, n] = version
            w.source[n] = -1 - c
            n += 1
    return n


@function(inline=True)
def _parent(w: LineageWork, r: int, seen: int) -> tuple[int, int, bool]:
    """Returns the version from which another was made, and the newest one of that birth.

    The newest version with the right counter is chosen; one that fits comes before all others. The flag is True if all
    versions are present.
    """
    rows, halves = w.rows, w.halves
    times = rows[TIMES, r]
    parent, latest, fits = -1, -1, False
    root = w.start == 0  # whether all that this version can come from is in the log
    for v in range(seen - 1 if times > 0 else -1, -1, -1):
        if rows[BORN, halves[v]] == rows[BORN, r]:  # a half that was sent again was born again
            latest = max(latest, v)
            root = root or rows[TIMES, halves[v]] < 0
            if not fits and max(rows[TIMES, halves[v]], 0) == times - 1:
                fits = _fits(rows, r, halves[v])
                if fits or parent < 0:
                    parent = v
        if fits:
            break
    if parent >= 0 and not fits and not root:
        parent = -1  # of another branch: its own parent has expired
    return parent, latest, root


@function(inline=True)
def _half(w: LineageWork, t: int, r: int, seen: int, n: int) -> None:
    """A half was sent, or put back."""
    rows, args = w.rows, w.args
    times = rows[TIMES, r]
    args[w.into.number, n] = seen
    args[w.into.position, n] = rows[PLACE, r]
    w.source[n] = r
    if times < 0 or (times == 0 and seen == 0):
        w.action[n] = w.codes.prepare
        args[w.into.marked, n] = rows[LIST, r]
        return
    parent, latest, root = _parent(w, r, seen)
    args[w.into.times, n] = times
    if times > 0 and parent < 0 and not root:
        w.action[n] = w.codes.outlive
        return
    parent = parent if parent >= 0 else latest if latest >= 0 else (seen - 1)
    w.action[n] = w.codes.check
    args[w.into.parent, n] = parent
    args[w.into.asked, n] = 1
    args[w.into.same, n] = 1
    w.facts[PUT_BACK, t] += times > 0
    if parent >= 0:
        p = w.halves[parent]
        w.facts[LOOKED_AT, t] = max(w.facts[LOOKED_AT, t], rows[NUMBER, p])
        args[w.into.same, n] = int(_fits(rows, r, p))
        immune = rows[FIRST, r] >= 0 and rows[TIME, r] - rows[BORN, r] <= rows[IMMUNE, r]
        args[w.into.asked, n] = int(not immune)


@function(inline=True)
def _took(w: LineageWork, t: int, r: int) -> None:
    """A first decision in row `r`."""
    if w.facts[TOOK, t] < 0:
        w.facts[TOOK, t] = max(w.rows[TIME, r] - w.rows[TIME, w.halves[0]], 0)


@function(inline=True)
def _final(w: LineageWork, t: int, low: int, i: int, count: int, n: int) -> int:
    """A final: the half that it names became a message."""
    rows, args, r = w.rows, w.args, w.order[i]
    half = rows[NAMES, r]
    version = _version(rows, w.halves, count, PLACE, half)
    if version < 0 and 0 <= half < w.start:
        return n  # its half has expired
    if version < 0 and half == 0:
        return n  # a copy that a broker made of a final keeps its flags, and names nothing
    twice = False
    if version < 0:
        for j in range(low, i):
            kind = rows[KIND, w.order[j]]
            copy = kind == FINAL or kind == PARKED  # noqa: PLR1714 - a set would be made, and counted
            twice = twice or (copy and rows[PLACE, w.order[j]] == half)
    w.action[n] = w.codes.commit
    args[w.into.number, n] = version
    args[w.into.half, n] = half
    args[w.into.position, n] = rows[PLACE, r]
    args[w.into.same, n] = 1
    args[w.into.twice, n] = int(twice)
    w.facts[TWICE, t] += twice
    if version >= 0:
        args[w.into.same, n] = int(_copies(rows, r, w.halves[version]))
        w.decided[version] += 1
    w.source[n] = r
    if count > 0:
        _took(w, t, r)
    return n + 1


@function(inline=True)
def _mark(w: LineageWork, t: int, r: int, seen: int, count: int, n: int) -> int:
    """An op names a half. Where no final explains that, the half was rolled back."""
    version = _version(w.rows, w.halves, count, NUMBER, w.rows[NAMES, r])
    if 0 <= version < seen and w.decided[version] <= w.marked[version]:
        w.action[n] = w.codes.roll_back
        w.args[w.into.number, n] = version
        w.source[n] = r
        w.decided[version] += 1
        n += 1
        _took(w, t, r)
    w.action[n] = w.codes.mark
    w.args[w.into.number, n] = version
    w.source[n] = r
    if version >= 0:
        w.marked[version] += 1
    return n + 1


@function(inline=True)
def _park(w: LineageWork, t: int, r: int, seen: int, n: int) -> int:
    """Writes a parking: of the newest version with the right counter among those that it is most like."""
    rows, halves, args = w.rows, w.halves, w.args
    times = rows[TIMES, r]
    aged = rows[TIME, r] - rows[BORN, r] > w.aged_ms
    version, latest, root, likest = -1, -1, w.start == 0, 0
    for v in range(seen - 1, -1, -1):
        if rows[BORN, halves[v]] == rows[BORN, r]:
            latest = max(latest, v)
            root = root or rows[TIMES, halves[v]] < 0
            if _counts_as(rows, halves[v], times, aged) and _likeness(rows, r, halves[v]) > likest:
                version, likest = v, _likeness(rows, r, halves[v])
    if w.aged_perhaps and not aged and likest < COPIED:
        likest = max(likest, COUNTED)
        for v in range(seen - 1, -1, -1):
            if _counts_as(rows, halves[v], times, aged=True) and _likeness(rows, r, halves[v]) > likest:
                version, likest = v, _likeness(rows, r, halves[v])
                aged = True  # given up for its age, then: its counter was raised before
    if version < 0 and not root:
        return n  # what was set aside has expired
    if version < 0:
        version = latest if latest >= 0 else seen - 1
    w.action[n] = w.codes.park
    args[w.into.number, n] = version
    args[w.into.position, n] = rows[PLACE, r]
    args[w.into.times, n] = times
    args[w.into.same, n] = 1
    args[w.into.aged, n] = int(aged)
    if version >= 0:
        p = halves[version]
        w.facts[LOOKED_AT, t] = max(w.facts[LOOKED_AT, t], rows[NUMBER, p])
        args[w.into.same, n] = int(_copies(rows, r, p) and _counts_as(rows, p, times, aged))
    w.source[n] = r
    return n + 1


@function(inline=True)
def _likeness(rows: Ints, row: int, half: int) -> int:
    """Measures how far a parked record is like a half with the right counter: a copy, its content, or no more."""
    if _copies(rows, row, half):
        return COPIED
    return WITH_CONTENT if rows[CONTENT, row] == rows[CONTENT, half] else COUNTED


@function(inline=True)
def _counts_as(rows: Ints, half: int, times: int, aged: bool) -> bool:
    """True if a half has the counter with which it was parked; one that was parked for its age, one less."""
    own = max(rows[TIMES, half], 0)
    return own == times or (aged and own == times - 1)


@function(inline=True)
def _answers(
    w: LineageWork, low: int, high: int, begin: int, end: int, count: int, n: int
) -> int:  # fmt: skip
    """Writes the answers to producers, and the back-checks they received."""
    rows, client = w.rows, w.client
    for c in range(begin, end):
        what = client[CLIENT_WHAT, c]
        position = client[CLIENT_POSITION, c]
        if what <= ROLL_BACK or position < w.start:
            continue
        version = _version(rows, w.halves, count, PLACE, position)
        if what != ACKNOWLEDGED and version >= 0 and rows[NUMBER, w.halves[version]] >= BY_PLACE:
            continue  # a table counts its checks, and nothing is put back
        if what == ACKNOWLEDGED:
            a_final = False
            if version < 0:
                for j in range(low, high):
                    r = w.order[j]
                    a_final = a_final or (rows[KIND, r] == FINAL and rows[PLACE, r] == position)
            if a_final:
                continue  # the client ended a final, and was informed
            w.action[n] = w.codes.acknowledge
            w.args[w.into.number, n] = version
        else:
            w.action[n] = w.codes.ask_back
            w.args[w.into.number, n] = _version(rows, w.halves, count, NUMBER, client[CLIENT_NUMBER, c])
            w.args[w.into.half, n] = position
        w.source[n] = -1 - c
        n += 1
    return n


@function(inline=True)
def _resolve(w: LineageWork, low: int, high: int, count: int, later: Ints, shelved: Ints, named: Ints) -> bool:
    """Finds resolved halves: marked, parked, or followed by a version with the next counter.

    True if all are. `later`, `shelved`: the number of a version, or of a copy, by its slot, all -1 before and after.
    `named`: room for the op that names each version.
    """
    rows, order, halves, resolved = w.rows, w.order, w.halves, w.resolved
    named[:count] = -1
    for i in range(low, high):
        r = order[i]
        if rows[KIND, r] == PARKED:
            shelved[_slot(rows, r, 0)] = rows[NUMBER, r]
        elif rows[KIND, r] == MARK:
            version = _version(rows, halves, count, NUMBER, rows[NAMES, r])
            if version >= 0:
                named[version] = rows[NUMBER, r]
    done = True
    for v in range(count - 1, -1, -1):
        r = halves[v]
        how, by = NOT_RESOLVED, -1
        if named[v] >= 0:
            how, by = BY_OP, named[v]
        elif later[_slot(rows, r, 1)] >= 0:
            how, by = BY_VERSION, later[_slot(rows, r, 1)]
        elif shelved[_slot(rows, r, 0)] >= 0:
            how, by = BY_COPY, shelved[_slot(rows, r, 0)]
        elif shelved[_slot(rows, r, 1)] >= 0:
            how, by = BY_COPY, shelved[_slot(rows, r, 1)]
        elif rows[FIRST, r] >= 0:
            first = _version(rows, halves, count, NUMBER, rows[FIRST, r])
            if first >= 0 and named[first] >= 0:
                how, by = BY_OP_OF_EARLIER, named[first]
            elif first < 0 and w.start > 0:
                how = BY_OP_OF_EARLIER
        resolved[0, r], resolved[1, r] = how, by
        done = done and how != NOT_RESOLVED
        if rows[TIMES, r] > 0:
            later[_slot(rows, r, 0)] = rows[NUMBER, r]
    for i in range(low, high):
        later[_slot(rows, order[i], 0)] = -1
        shelved[_slot(rows, order[i], 0)] = -1
    return done


ENTRIES = (_key_marks, events_of)
"""All that is compiled of it."""
