"""One of two replicas, and how far its log goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gapless.traces.sources.rocketmq.replicas.values import Role
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import Queue


class Side(NamedTuple):
    """A replica that was checked alone, so that it is known where its log and its queues end.

    Old bytes behind these ends, left by a truncation, look like records and entries. They are none, and are compared
    with nothing.
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
