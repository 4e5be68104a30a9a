"""The state of a store's transactions in memory: all of it can be found again in the log."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Protocol

from gapless.impl.files.log import CommitLog
from gapless.impl.files.queues import ConsumeQueues
from gapless.impl.records.record import Ints
from gapless.impl.transactions import names
from gapless.impl.transactions.half_cache import HalfCache
from gapless.impl.transactions.half_table import HalfTable
from gapless.impl.transactions.op_batcher import OpBatcher
from gapless.impl.transactions.settings import TransactionSettings


class CursorKeeper(Protocol):
    """Cursors of groups, in memory and in their file."""

    def get(self, group: str, topic: str, queue: int) -> int | None:
        """The cursor of a group; None if it has none."""

    def put(self, group: str, topic: str, queue: int, number: int) -> None:
        """Set the cursor of a group."""

    def write(self) -> None:
        """All that was put is durable. Raises DiskFull, StoreError."""


class TransactionState:
    """The halves, what waits for an op, the cache and the cursors.

    `half_cursor`, `op_cursor`: exclusive ends of the halves and of the ops that are done with.
    """

    def __init__(
        self, log: CommitLog, queues: ConsumeQueues, cursors: CursorKeeper, settings: TransactionSettings | None = None
    ) -> None:
        self.log = log
        self.settings = settings or TransactionSettings()
        self.halves_queue = queues.named(names.HALF_TOPIC, 0)
        self.ops_queue = queues.named(names.OP_TOPIC, 0)
        self.copies_queue = queues.named(names.PARKED_TOPIC, 0)
        self.queues = queues
        self.cursors = cursors
        self.batcher = OpBatcher(self.settings.op_batch_bytes, self.settings.op_batch_interval)
        self.cache = HalfCache(self.settings.cache_capacity)
        self.table = HalfTable(0)
        self.half_cursor = self.op_cursor = 0
        self.reaches: dict[int, int] = {}  # of each op from the op cursor on: exclusive end of the halves that it names
        self.put_back_count = self.parked_count = 0
        self.key_prefix = secrets.token_hex(8).upper()
        self.keys = 0  # that were given
        self.ahead = 0  # ms that the time of a step is ahead of what has passed: the clock may have been set
        self._needed = 0  # exclusive end of what must be on disk before the cursors are saved
        self._under_way: tuple[int, int, Callable[[Ints], None]] | None = None
