"""The checkpoint of a watch, its counters and its announcements."""

from __future__ import annotations

from dataclasses import dataclass, field

from gapless.traces.report.values import Finding
from gapless.traces.sources.rocketmq.joining.checkpoint import Checkpoint
from gapless.traces.sources.rocketmq.watching.halves import HalvesProgress
from gapless.traces.sources.rocketmq.watching.index import IndexProgress
from gapless.traces.sources.rocketmq.watching.listing import FileListing
from gapless.traces.sources.rocketmq.watching.tail import Anchor
from gapless.traces.sources.rocketmq.watching.traces import TraceProgress


@dataclass(frozen=True)
class WatchCheckpoint:
    """The state of a watch: the judgement's checkpoint, and the last record, to recognise the log.

    `entries`: entries are part of the judgement · `index`, `traces`, `halves`: the progress in the hash index, in
    trace topics, and in the input of a table of halves · `listing`: the files by then.
    """

    known: Checkpoint
    anchor: Anchor | None
    entries: bool = True
    index: IndexProgress | None = None
    traces: TraceProgress | None = None
    halves: HalvesProgress | None = None
    listing: FileListing = field(default_factory=FileListing)


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


ReportedKeys = set[tuple[str, str, int]]
"""Departures that were reported: rule, trace and position of each."""


@dataclass
class Announcement:
    """Something to say at once: a sentence, or a departure with its story."""

    text: str
    finding: Finding | None = None


class LayoutChange(Exception):  # noqa: N818 - nothing is wrong
    """Raised if the log or the queues moved to another location: the store must be opened again."""
