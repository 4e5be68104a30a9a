"""The follower of a store, by the location of its queues, and the gauge of its log."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from gapless.traces.options import Options
from gapless.traces.sources.following import RecordingFollower
from gapless.traces.sources.rocketmq.store.opening import open_store
from gapless.traces.sources.rocketmq.watching.follower import Follower
from gapless.traces.sources.rocketmq.watching.log_only import UnreadQueuesFollower, why_unread
from gapless.traces.sources.rocketmq.watching.tail import StoreLogGauge, log_folders
from gapless.traces.sources.rocketmq.watching.watch_checkpoint import WatchCheckpoint


def make_follower(
    path: Path,
    folder: Path,
    options: Options,
    config: Path | None = None,
    checkpoint: WatchCheckpoint | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Follower:
    """Returns the follower of the store in `folder`. Raises Unreadable, NothingThere.

    The arguments are those of `Follower`.
    """
    if why_unread(folder):
        return UnreadQueuesFollower(path, folder, options, config, checkpoint, clock)
    if open_store(folder, config, bare=True).database is None:
        return Follower(path, folder, options, config, checkpoint, clock)
    from gapless.traces.sources.rocketmq.watching.database_queues import (  # noqa: PLC0415 - it takes a library
        DatabaseFollower,
    )

    return DatabaseFollower(path, folder, options, config, checkpoint, clock)


def gauge_of(path: Path, followed: RecordingFollower | None) -> StoreLogGauge:
    """Returns the gauge of the log of a store; an open one names the folders of its log."""
    return StoreLogGauge(path, log_folders(followed.front.store) if isinstance(followed, Follower) else ())
