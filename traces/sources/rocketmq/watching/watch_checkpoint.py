"""How far a store was followed, and what is said and counted meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

from gapless.traces.report.values import Finding
from gapless.traces.sources.rocketmq.joining.checkpoint import Checkpoint
from gapless.traces.sources.rocketmq.watching.halves import HalvesProgress
from gapless.traces.sources.rocketmq.watching.index import IndexProgress
from gapless.traces.sources.rocketmq.watching.tail import Anchor
from gapless.traces.sources.rocketmq.watching.traces import TraceProgress


@dataclass(frozen=True)
class WatchCheckpoint:
    """How far a store was followed: what is known, and the last record, by which the log is known again.

    `entries`: whether entries are among what is known · `index`, `traces`, `halves`: how far the hash
    index was followed, trace topics, and what a table of halves is told of.
    """

    known: Checkpoint
    anchor: Anchor | None
    entries: bool = True
    index: IndexProgress | None = None
    traces: TraceProgress | None = None
    halves: HalvesProgress | None = None


@dataclass
class Numbers:
    """What there is to count while a store is followed. Bytes are those of the log."""

    rounds: int = 0
    restarts: int = 0
    gone_back: int = 0
    looked_again: int = 0
    lag: int = 0
    behind_since: float = 0.0  # when, by the follower's clock, it was last not behind the broker
    settled: int = -1  # where the log ended then: what lies between is no record yet


ReportedKeys = set[tuple[str, str, int]]
"""Departures that were told: rule, trace and position of each."""


@dataclass
class Announcement:
    """Something to say at once: a sentence, or a departure with its story."""

    text: str
    finding: Finding | None = None


class LayoutChange(Exception):  # noqa: N818 - nothing is wrong
    """The log or the queues of a store lie elsewhere than when it was opened: it is to be opened anew."""
