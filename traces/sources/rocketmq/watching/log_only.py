"""Follows the log without its queues, if entries cannot be read while they are written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gapless.traces.sources.rocketmq.joining.checkpoint import Checkpoint
from gapless.traces.sources.rocketmq.queues.batch_queues import has_batch_queues
from gapless.traces.sources.rocketmq.queues.queue_database import database_in, why_unreadable
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.watching.follower import Follower
from gapless.traces.sources.rocketmq.watching.readiness import Entries, NoEntries


class LogOnlyFollower(Follower):
    """Follows the log and its transactions, and waits for no entry."""

    judges_entries = False

    @property
    def indexed(self) -> int:
        """Overrides `Follower`: no entries are judged."""
        return self.store.start

    def _opened(self) -> StoreDirectory:
        return self._alone(super()._opened())

    def _entries(self) -> Entries:
        return NoEntries(self.options)

    def _so_far(self, store: StoreDirectory) -> StoreDirectory:
        return self._alone(super()._so_far(store))

    def _known_of(self, store: StoreDirectory) -> Checkpoint | None:
        """Overrides `Follower`: no entries are known, so their judgement begins at the log's start."""
        return super()._known_of(store) if store.no_queues else None

    def _alone(self, store: StoreDirectory) -> StoreDirectory:
        why = f"{why_unread(self.folder) or 'they are judged behind the log'}; the watch judges them at its end"
        return replace(store, queues={}, batches=None, database=None, extension={}, no_queues=f"entries: {why}")


class UnreadQueuesFollower(LogOnlyFollower):
    """Follows a store whose entries only a check of the whole can judge."""

    @property
    def left(self) -> tuple[str, ...]:
        """Overrides `Follower`."""
        return (*super().left, f"entries of queues ({why_unread(self.folder)})")


def why_unread(folder: Path) -> str:
    """The reason if entries cannot be read while they are written, or an empty text."""
    if (folder / "consumequeue_ext").is_dir():
        return "their tag codes may be addresses of units in consumequeue_ext/, which are read as they are once"
    if has_batch_queues(folder):
        return "those in batchconsumequeue/ are read as they are once"
    found = database_in(folder)
    return why_unreadable(found) if found else ""
