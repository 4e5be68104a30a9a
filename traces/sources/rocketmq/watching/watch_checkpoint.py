"""The checkpoint of a watch, and its counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gapless.traces.sources.following import FollowProgress
from gapless.traces.sources.rocketmq.joining.checkpoint import Checkpoint
from gapless.traces.sources.rocketmq.watching.listing import FileListing
from gapless.traces.sources.rocketmq.watching.tail import Anchor


@dataclass(frozen=True)
class WatchCheckpoint:
    """The state of a watch: the judgement's checkpoint, and the last record, to recognise the log.

    `entries`: entries are part of the judgement · `others`: snapshots of the followers of layouts and trace topics, by
    name · `listing`: the files by then.
    """

    known: Checkpoint
    anchor: Anchor | None
    entries: bool = True
    others: Mapping[str, Any] = field(default_factory=dict)
    listing: FileListing = field(default_factory=FileListing)

    @property
    def position(self) -> int:
        """Implements `FollowPlace`."""
        return self.known.reached


@dataclass
class Numbers:
    """Counters of a watch. Bytes are those of the log."""

    rounds: int = 0
    restarts: int = 0
    gone_back: int = 0
    looked_again: int = 0
    lag: int = 0
    behind_since: float = 0.0  # when, by the follower's clock, it was last not behind the broker
    settled: int = -1  # where the log ended then: what lies between is no record yet

    def progress(self, records: int, queues: int, start: int, position: int, entries: int) -> FollowProgress:
        """Return these counters with the place that is reached."""
        return FollowProgress(
            records=records,
            queues=queues,
            start=start,
            position=position,
            entries=entries,
            lag=self.lag,
            settled=self.settled,
            behind_since=self.behind_since,
            rounds=self.rounds,
            restarts=self.gone_back + self.restarts,
            looked_again=self.looked_again,
        )
