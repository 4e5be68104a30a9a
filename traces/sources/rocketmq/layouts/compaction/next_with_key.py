"""Finds for each message the next one with the same key, from the newest on, without sorting."""

from __future__ import annotations

import numpy as np

from gapless.native import I64, INTS, TABLE, U64, int64, native, uint64
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.lookup import secret

KEY, NUMBER = range(2)  # columns of the table: a key, and its oldest message so far, or NONE where a row is free
NONE = -1
FIRST_ROWS = 1 << 12  # a power of two, as any number of rows is


class NextWithKey:
    """The oldest message of every key so far, by the digest of the key: 32 to 64 bytes for each."""

    def __init__(self) -> None:
        self.table = _room(FIRST_ROWS)
        self.filled = 0
        self.secret = secret()

    def of(self, keys: Ints, numbers: Ints) -> Ints:
        """Returns the number of the next message with the same key, or -1, for messages older than all before.

        The numbers rise.
        """
        following = np.empty(len(keys), np.int64)
        end = len(keys)
        while end:
            end, self.filled = _follow(self.table, self.filled, self.secret, keys, numbers, following, end)
            if end:
                self._grow()
        return following

    def _grow(self) -> None:
        known, self.table = self.table[self.table[:, NUMBER] != NONE], _room(2 * len(self.table))
        keys, numbers = (np.ascontiguousarray(column) for column in known.T)
        _follow(self.table, 0, self.secret, keys, numbers, np.empty_like(keys), len(keys))


def _room(rows: int) -> Ints:
    return np.full((rows, 2), NONE, np.int64)


@native(lambda table, filled, secret, keys, *_: len(keys), kinds=(TABLE, I64, U64, INTS.strided, INTS, INTS, I64))  # noqa: ARG005 - as it is called
def _follow(
    table: Ints, filled: int, secret: np.uint64, keys: Ints, numbers: Ints, following: Ints, end: int
) -> tuple[int, int]:
    """Links messages from `end` down to the first; returns the last one linked and the number of filled rows.

    The last is 0 unless half of the rows are filled: then the table must grow. `secret`: an odd number that an
    attacker does not know, so that chosen keys cannot all collide.
    """
    low = len(table) - 1
    i, count = end, filled
    while i > 0 and 2 * count < len(table):
        key = keys[i - 1]
        at = int64((uint64(key) * secret) >> uint64(32)) & low
        while table[at, NUMBER] != NONE and table[at, KEY] != key:
            at = (at + 1) & low
        following[i - 1] = table[at, NUMBER]
        count += int(table[at, NUMBER] == NONE)
        table[at, KEY], table[at, NUMBER] = key, numbers[i - 1]
        i -= 1
    return int(i), int(count)
