"""The findings about the partitions of one input, as data: departures, counts, and what was not judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from gapless.traces.replay.exact import Departure
from gapless.traces.report.pictures.lanes import TransactionLanes
from gapless.traces.report.pictures.sequences import SequenceLine
from gapless.traces.report.values import Where
from gapless.traces.sources.kafka.judging.lost_snapshots import LostSnapshots
from gapless.traces.sources.remarks import Remarks

STORIES = 40
"""Departures from one rule that are reported; more are counted with them."""
NAMED = 2000
"""Partitions that a report has rows of."""


class PlacedDeparture(NamedTuple):
    """A departure of one trace.

    `partition`: that it is of · `offset`: in it · `where`: file and byte · `batch`: sentences on the batch that
    departs, if it is one · `client`: the client log with the answer, if it is one.
    """

    trace: str
    partition: str
    offset: int
    where: Where
    departure: Departure
    picture: SequenceLine | TransactionLanes | None = None
    batch: tuple[str, ...] = ()
    client: str = ""


class WaitingTransaction(NamedTuple):
    """A transaction that keeps readers waiting, for `age` ms so far. `rule`: that it will break if it stays so."""

    trace: str
    rule: str
    offset: int
    where: Where
    age: int


@dataclass
class PartitionSummary:
    """The numbers of one partition."""

    name: str
    segments: int = 0
    start: int = 0
    end: int = 0
    stable: int = -1
    batches: int = 0
    records: int = 0
    producers: int = 0
    bases: list[int] = field(default_factory=list)  # the first offset of each segment, by its name
    last_index: tuple[Path, int] | None = None  # the offset index of the last segment that has one, and its base
    points: dict[str, int] = field(default_factory=dict)  # offsets that files next to the log state, by name
    producer: int = -1  # the only one that was judged, or -1
    departs: bool = False
    doubts: bool = False
    departed: Sequence[int] = ()  # producers
    listed: Sequence[tuple[int, int]] = ()  # each producer with the number of its events, if rows of them are wanted


@dataclass
class LogFindings(Remarks):
    """All findings about one input."""

    breaches: list[PlacedDeparture] = field(default_factory=list)
    hazards: list[WaitingTransaction | LostSnapshots] = field(default_factory=list)
    unreported: Counter[str] = field(default_factory=Counter)  # departures that are only counted, by rule
    stories: Counter[str] = field(default_factory=Counter)  # departures by rule, reported or not
    inconclusive: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    not_exercised: list[str] = field(default_factory=list)
    covered: Counter[str] = field(default_factory=Counter)  # accepted events by spec and action
    anomalies: dict[tuple[str, str], tuple[int, str, int, Where]] = field(default_factory=dict)
    partitions: list[PartitionSummary] = field(default_factory=list)
    batches: int = 0
    records: int = 0
    producers: int = 0
    damaged_producers: int = 0

    def report(self, found: PlacedDeparture) -> None:
        """Adds a departure, or only counts it after enough of its rule."""
        rule = found.departure.rule
        self.stories[rule] += 1
        if self.stories[rule] > STORIES:
            self.unreported[rule] += 1
        else:
            self.breaches.append(found)

    def keep_only(self, trace: str) -> None:
        """Forgets the departures of all other traces."""
        self.breaches = [one for one in self.breaches if one.trace == trace]
        self.hazards = [one for one in self.hazards if one.trace == trace]
        self.unreported.clear()

    def cover(self, spec: str, accepted: Mapping[str, int]) -> None:
        """Counts accepted events, by action."""
        for action, count in accepted.items():
            self.covered[f"{spec}.{action}"] += count

    def anomaly(self, spec: str, name: str, count: int, trace: str, offset: int, where: Where) -> None:
        """Counts anomalies; the first one that was found is their exemplar."""
        before = self.anomalies.get((spec, name), (0, trace, offset, where))
        self.anomalies[spec, name] = (before[0] + count, *before[1:])

    def add(self, one: PartitionSummary) -> None:
        """Adds the numbers of a partition that was judged to its end."""
        self.batches += one.batches
        self.records += one.records
        self.producers += one.producers
        self.partitions.append(one)
