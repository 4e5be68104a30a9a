"""Observers of a store's steps: all that the log and dispatch know of a recorder."""

from __future__ import annotations

import struct
from functools import partial
from typing import Protocol

from gapless.impl.records.record import Ints

APPEND = 9
"""The kind of the row that `append_row` makes, among those of `recorder/rows.py`."""

append_row = partial(struct.Struct("2q8x2q24x").pack, APPEND)
"""A record appended alone, as a row for the observer's tape: from the index of its queue, its position, its size."""


class LogObserver(Protocol):
    """Observes the steps of a log where they take effect.

    `tape`: takes rows, of which the log puts those of its growth there itself, with its end: no call comes between,
    in which an interrupt could tell one without the other.
    """

    tape: bytearray

    def rows_of_many(self, queues: Ints, placed: Ints) -> memoryview:
        """The rows that say: records are in the log; `queues`: the indices of their queues.

        `placed`: int64 [4, n], the position of each, its size, the place of its queue in `queues`, its number.
        """

    def row_of_roll(self, position: int, size: int) -> bytes:
        """The row that says: a blank of so many bytes fills the file."""

    def help(self) -> None:
        """The tape has grown by many rows: where it is too long, they are taken off."""

    def flushed(self, to: int) -> None:
        """The log before `to` is on disk."""


class DispatchObserver(Protocol):
    """Observes the steps of dispatch. `runs`: int64 [n, 3], a queue by its index, and numbers of it from, up to."""

    def scanned(self, runs: Ints) -> None:
        """Records have got their numbers."""

    def taken(self, runs: Ints) -> None:
        """A worker begins to write these. Where it is alone at a queue, it takes each as the last is written."""

    def wrote(self, runs: Ints) -> None:
        """These entries are in their slots, and their bits are set."""

    def committed(self, queue: int, to: int) -> None:
        """Consumers see the entries before `to`."""

    def queue_flushed(self, queue: int, to: int) -> None:
        """The entries before `to` are on disk."""
