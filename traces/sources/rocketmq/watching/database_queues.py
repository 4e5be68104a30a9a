"""Queues in RocksDB, followed: a broker keeps the newest entries in memory, and writes them to disk now and then.

One follower, in front, judges the log and its transactions and waits for no entry. Another one comes behind it as far
as entries are on disk: what it has judged is the place to go on from.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from gapless.traces.options import Options
from gapless.traces.report.values import Finding
from gapless.traces.sources.following import ReportedKeys
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.queues.queue_database import database_in
from gapless.traces.sources.rocketmq.queues.rocksdb import LiveDatabase
from gapless.traces.sources.rocketmq.segments import tasks
from gapless.traces.sources.rocketmq.segments.results import SplitResult, Subject
from gapless.traces.sources.rocketmq.segments.splits import Split
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.watching.follower import Follower
from gapless.traces.sources.rocketmq.watching.log_only import LogOnlyFollower
from gapless.traces.sources.rocketmq.watching.readiness import Entries
from gapless.traces.sources.rocketmq.watching.watch_checkpoint import WatchCheckpoint

RENEWED = 2.0  # seconds between two looks at whether a database has more on disk


class EntriesOnDisk:
    """Entries in a database, as far as its broker has written them to disk."""

    def __init__(self, database: LiveDatabase, options: Options, clock: Callable[[], float]) -> None:
        self.database, self.options, self.clock = database, options, clock
        self.looked_at = clock()

    def reach(self) -> int:
        """Implements `Entries`: entries are written together with the position up to which all are present."""
        now = self.clock()
        if now - self.looked_at > RENEWED:
            self.looked_at = now
            self.database.renew()
        return self.database.dispatched

    def look_again(self, queue: Subject) -> bool:  # noqa: ARG002 - as `Entries` says
        """Implements `Entries`: entries on disk do not change."""
        return False

    def forget(self) -> None:
        """Implements `Entries`."""

    def judged(self, store: StoreDirectory, split: Split) -> SplitResult | None:
        """Implements `Entries`: `reach` is the position up to which they go (docs/rocketmq.md#rocksdb-queues)."""
        return tasks.judge(store, split, self.options)


class DatabaseFollower(Follower):
    """Follows queues in a database, as far as they are on disk, and the log in front of them."""

    def __init__(
        self,
        path: Path,
        folder: Path,
        options: Options,
        config: Path | None = None,
        checkpoint: WatchCheckpoint | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Takes the arguments of `Follower`. Raises Unreadable, NothingThere."""
        found = database_in(folder)
        assert found is not None  # noqa: S101 - checked when this follower was chosen
        self.database = LiveDatabase(found)
        super().__init__(path, folder, options, config, checkpoint, clock)
        self.ahead = LogOnlyFollower(
            path, folder, options, config, self.savepoints[-1] if self.savepoints else None, clock
        )
        self.ahead.follows_others = False

    def _opened(self) -> StoreDirectory:
        return replace(super()._opened(), queues={}, reader=self.database)

    def _entries(self) -> Entries:
        return EntriesOnDisk(self.database, self.options, self.clock)

    @property
    def front(self) -> Follower:
        """Overrides `Follower`."""
        return self.ahead

    @property
    def left(self) -> tuple[str, ...]:
        """Overrides `Follower`."""
        return (*super().left, "entries that the broker has in memory, and not on disk yet")

    @property
    def reported(self) -> ReportedKeys:
        """Overrides `Follower`."""
        return self._reported

    @reported.setter
    def reported(self, reported: ReportedKeys) -> None:
        self._reported = reported
        if hasattr(self, "ahead"):
            self.ahead.reported = reported

    def round(self) -> bool:
        """Overrides `Follower`."""
        more = self.ahead.round()
        self.departed |= self.ahead.departed
        behind = super().round()
        if not self.says:  # otherwise both say the same
            self.says.extend(self.ahead.says)
        self.ahead.says.clear()
        return more or behind

    def report_early(self) -> Iterator[Finding]:
        """Overrides `Follower`."""
        yield from self.ahead.report_early()
        yield from super().report_early()

    def report(self, judged: StoreFindings) -> Iterator[Finding]:
        """Overrides `Follower`."""
        self.ahead.departed = False
        yield from super().report(judged)

    def checkpoint(self) -> WatchCheckpoint:
        """Overrides `Follower`: the position of the queues; the log in front of them is read again from there."""
        self.ahead.checkpoint()
        return super().checkpoint()

    def close(self) -> None:
        """Overrides `Follower`."""
        self.database.close()

    def _so_far(self, store: StoreDirectory) -> StoreDirectory:
        note = (
            f"entries are judged up to {self.reached:,} of the log, as far as the broker has written them to disk "
            f"({self.database.folder.name}/ is a RocksDB database); the log and its transactions up to "
            f"{self.ahead.reached:,}"
        )
        store = super()._so_far(store)
        return replace(
            store, queues={}, reader=self.database, watched=True, limit=self.ahead.reached, notes=(*store.notes, note)
        )
