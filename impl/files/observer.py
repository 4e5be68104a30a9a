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
    """Observes the steps of a log where they take effect. `tape`: takes `append_row`, which costs less than a call."""

    tape: bytearray

    def appended_many(self, queues: Ints, placed: Ints) -> None:
        """Records are in the log; `queues`: the indices of their queues.

        `placed`: int64 [4, n], the position of each, its size, the place of its queue in `queues`, its number.
        """

    def rolled(self, position: int, size: int) -> None:
        """A blank fills the file."""

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
