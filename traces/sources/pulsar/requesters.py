"""The match of requests to begin with transactions, as far as a recording shows it.

A call that was answered with a transaction asked for it. Admitted calls without an answer are matched with the
remaining transactions in order, as the coordinator takes them.
"""

from __future__ import annotations

from collections import deque

import numpy as np
import numpy.typing as npt

from gapless.traces.sources.pulsar.joined import FAILED, GIVEN, NEVER, NEW, Calls, Records
from gapless.traces.sources.pulsar.lines import Ints

NO_CALL = -1


def silent_calls(calls: Calls) -> npt.NDArray[np.bool_]:
    """Mark requests to begin without any line that says if they were admitted."""
    return np.asarray(calls.opens & (calls.admitted == NEVER) & (calls.answer == NEVER))


class RequestNumbers:
    """The numbers of requests: of calls in order, then of those without a line.

    `of_call`: of each call · `of_record`: of the request that led to each record NEW · `call` and `record`: the pairs
    that belong together · `admitted`: of each record, if a line says that its request was admitted. Numbers begin with
    the lowest of a transaction, so that both are small together.
    """

    def __init__(self, calls: Calls, records: Records, unlimited: npt.NDArray[np.bool_]) -> None:
        new = np.flatnonzero(records.kind == NEW)
        self.first = int(records.txn[new].min(initial=NEVER)) if len(new) else 0
        self.of_call = self.first + np.cumsum(calls.opens) - 1
        self.count = int(calls.opens.sum())
        given = np.flatnonzero(calls.opens & (calls.outcome == GIVEN))
        call, record = _in_turn(calls.txn[given], records.txn[new])
        owner = np.full(len(records.kind), NO_CALL)
        owner[new[record]] = given[call]
        for candidates in (
            calls.opens & (calls.admitted < NEVER) & (calls.outcome != GIVEN) & (calls.outcome != FAILED),
            silent_calls(calls),
        ):
            open_records = new[(owner[new] == NO_CALL) & ~unlimited[new]]
            asked, led_to = _first_come(calls, np.flatnonzero(candidates), records, open_records)
            owner[led_to] = asked
        self.record = new[owner[new] != NO_CALL]
        self.call = owner[self.record]
        self.admitted = np.zeros(len(owner), np.bool_)
        self.admitted[self.record] = calls.admitted[self.call] < NEVER
        self.of_record = np.zeros(len(owner), np.int64)
        self.of_record[self.record] = self.of_call[self.call]
        unknown = new[owner[new] == NO_CALL]
        self.of_record[unknown] = self._further(len(unknown))

    def earlier(self, count: int) -> Ints:
        """Return numbers for so many requests from before the recording."""
        return self._further(count)

    def _further(self, count: int) -> Ints:
        begin = self.first + self.count
        self.count += count
        return np.arange(begin, begin + count, dtype=np.int64)


def _in_turn(ours: Ints, theirs: Ints) -> tuple[Ints, Ints]:
    """Join rows by key; equal keys are matched in order."""
    left, right = _ranked(ours), _ranked(theirs)
    rows = {key: row for row, key in enumerate(left)}
    found = [(rows[key], row) for row, key in enumerate(right) if key in rows]
    pairs = np.array(found, np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _ranked(keys: Ints) -> list[tuple[int, int]]:
    """Pair each key with the number of its earlier occurrences."""
    seen: dict[int, int] = {}
    found = []
    for key in keys.tolist():
        found.append((key, seen.get(key, 0)))
        seen[key] = seen.get(key, 0) + 1
    return found


def _first_come(calls: Calls, asked: Ints, records: Records, new: Ints) -> tuple[Ints, Ints]:
    """For each record in order, return the first earlier call of its epoch that is not taken yet."""
    waiting: dict[int, deque[int]] = {}
    for call in sorted(asked.tolist(), key=lambda call: int(calls.line[call])):
        waiting.setdefault(int(calls.epoch[call]), deque()).append(call)
    pairs = []
    for record in new[np.argsort(records.line[new], kind="stable")].tolist():
        mine = waiting.get(int(records.epoch[record]))
        if mine and calls.line[mine[0]] < records.line[record]:
            pairs.append((mine.popleft(), record))
    found = np.array(pairs, np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]
