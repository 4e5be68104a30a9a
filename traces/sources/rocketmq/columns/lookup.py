"""Lookup in sorted integer columns, faster than `np.isin` and `np.unique`."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
import numpy.typing as npt

from gapless.native import INTS, INTS32, TABLE, U64, TupleKind, function, handed, int64, native, uint64
from gapless.traces.sources.rocketmq.columns.bytes import Ints


def distinct(values: Ints) -> Ints:
    """The values, rising, each once. Of a million, `np.unique` makes a hash table, and takes twenty times as long.

    Many are like the one before them: those are left out before they are sorted.
    """
    return _changes(np.sort(_changes(values)))


def _changes(values: Ints) -> Ints:
    """The values without those that are like the one before them."""
    changes = np.ones(len(values), np.bool_)
    changes[1:] = values[1:] != values[:-1]
    return values[changes]


def among(values: Ints, known: Ints) -> npt.NDArray[np.bool_]:
    """Returns the mask of values among the known ones, which rise; `np.isin` reads all of those every time."""
    if not len(known):
        return np.zeros(len(values), np.bool_)
    order = np.argsort(values)  # a search continues from the previous result: half the time on a million
    rising = values[order]
    found = np.empty(len(values), np.bool_)
    found[order] = known[np.minimum(np.searchsorted(known, rising), len(known) - 1)] == rising
    return found


def indices_among(known: Ints, wanted: Ints) -> Ints:
    """Returns the first index of each wanted number among the known ones, which rise; -1 without one."""
    if not len(known):
        return np.full(len(wanted), -1)
    at = np.minimum(known.searchsorted(wanted), len(known) - 1)
    return np.where(known[at] == wanted, at, -1)


def numbered(columns: tuple[Ints, ...]) -> Ints:
    """A number for each row, from 0 on: the same for two rows if all of their columns are alike.

    They are counted as they come, by a table in which each row has one place, or the first free one behind it: to sort
    rows takes three times as long.
    """
    count = len(columns[0])
    found = np.empty(count, np.int64)
    _number(columns, _table(count), secret(), found)
    return found


def _table(count: int) -> Ints:
    """An empty table for so many rows."""
    return np.full(1 << (2 * count + 1).bit_length(), -1, np.int32 if count < 1 << 31 else np.int64)


class KeyGroups:
    """Rows grouped by key: the rows of one key are adjacent, in their own order.

    Groups are in the order of their first rows, so lookups of neighbours touch neighbouring memory. To sort rows by
    their keys, and search, takes three times as long.
    """

    def __init__(self, keys: Ints) -> None:
        self._keys, self._table, self._secret = (handed(keys),), _table(len(keys)), secret()
        self._number = np.empty(len(keys), np.int64)
        _number(self._keys, self._table, self._secret, self._number)
        self._ends = np.cumsum(np.bincount(self._number)) if len(keys) else np.zeros(0, np.int64)

    @property
    def order(self) -> Ints:
        """The rows, by group."""
        order: Ints = np.argsort(self._number, kind="stable")
        return order

    def of(self, keys: Ints) -> Ints:
        """Returns [2, keys]: the range in `order` of the rows of each key; empty for an unknown key."""
        found = np.empty((2, len(keys)), np.int64)
        _find((handed(keys),), self._keys, self._table, self._secret, self._number, self._ends, found)
        return found


def secret() -> np.uint64:
    """A random odd multiplier, so that an attacker cannot force hash collisions."""
    return np.uint64(secrets.randbits(64) | 1)


@native(
    lambda columns, *_: len(columns[0]),
    kinds=[(TupleKind((INTS, INTS, INTS)), INTS32, U64, INTS), (TupleKind((INTS,)), INTS32, U64, INTS)],
)
def _number(columns: tuple[Ints, ...], table: Ints, secret: np.uint64, found: Ints) -> None:
    """Write the number of each row to `found`. `table`: more rows than there are, all of them -1."""
    count = 0
    for i in range(len(found)):
        at = _place_of(columns, i, columns, table, secret)
        if table[at] >= 0:
            found[i] = found[table[at]]
            continue
        table[at], found[i] = i, count
        count += 1


@native(
    lambda sought, *_: len(sought[0]), kinds=(TupleKind((INTS,)), TupleKind((INTS,)), INTS32, U64, INTS, INTS, TABLE)
)
def _find(
    sought: tuple[Ints, ...], columns: tuple[Ints, ...], table: Ints, secret: np.uint64, numbers: Ints, ends: Ints,
    found: Ints,
) -> None:  # fmt: skip
    """Write the begin and the end of the group of each row that is sought: those of `columns` have these numbers."""
    for i in range(len(sought[0])):
        row = table[_place_of(sought, i, columns, table, secret)]
        found[0, i] = ends[numbers[row] - 1] if row >= 0 and numbers[row] > 0 else 0
        found[1, i] = ends[numbers[row]] if row >= 0 else 0


@function(inline=True)
def _place_of(sought: tuple[Ints, ...], i: int, columns: tuple[Ints, ...], table: Ints, secret: np.uint64) -> int:
    """Returns the table slot of row `i` of `sought`, by its values in `columns`, or the free slot for it."""
    mixed: Any = uint64(0)
    for column in sought:
        mixed = (mixed ^ uint64(column[i])) * secret
        mixed ^= mixed >> uint64(32)
    at = int64(mixed >> uint64(1)) & (len(table) - 1)
    while table[at] >= 0 and not _are_alike(sought, i, columns, int(table[at])):
        at = (at + 1) & (len(table) - 1)
    return int(at)


@function(inline=True)
def _are_alike(sought: tuple[Ints, ...], one: int, columns: tuple[Ints, ...], other: int) -> bool:
    """True if two rows are equal."""
    alike = True
    for k in range(len(sought)):
        alike = alike and sought[k][one] == columns[k][other]
    return bool(alike)


@function
def first_from(values: Ints, count: int, value: int) -> int:
    """Returns the index of the first value not below `value` among the first `count`; `count` if none.

    The values rise.
    """
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return int(low)
