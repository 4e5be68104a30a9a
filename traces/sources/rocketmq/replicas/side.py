"""One of two replicas, and the end of its log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gapless.traces.sources.rocketmq.replicas.values import Role
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import Queue


class Side(NamedTuple):
    """A replica after a check of it alone, which has found the ends of its log and its queues.

    Old bytes behind these ends, left by a truncation, look like records and entries. They are not compared.
    """

    role: Role
    store: StoreDirectory
    end: int  # exclusive end of the log
    ends: Mapping[Queue, int]  # exclusive end of each queue's entries, where it is known; topics as they are shown
    waiting: frozenset[Queue] = frozenset()  # of a store that was not stopped in order: with messages and no entry

    @property
    def start(self) -> int:
        """The log's first position."""
        return self.store.start
