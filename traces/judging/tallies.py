"""Results of judging recorded traces, as data that travels and adds up.

A task judges the traces that lie wholly in its stretch of a file. It counts in rows of that stretch; added together,
tallies count in rows of the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from gapless.traces.replay.exact import Departure
from gapless.traces.report.pictures.bitmap import Bitmap

Key = TypeVar("Key")

TRACES = 5  # traces named in a cluster of findings
LARGEST = 100  # traces whose amounts of a deviation are kept


class First(NamedTuple):
    """The place where something was seen first."""

    row: int
    position: int
    trace: str


Seen = tuple[int, First]
"""A count, and its first place."""


class Amount(NamedTuple):
    """The amount of a deviation in one trace: how much, where, and the numbers of the state."""

    amount: int
    at: First
    values: Mapping[str, int]


RuleStep = tuple[str, str]
"""A rule, and the action of the event that breaks it: two steps may have a rule of the same name."""


@dataclass(frozen=True)
class Suspect:
    """A trace that departs, and where; the departure is None as long as only a kernel has refused it."""

    at: First
    departure: Departure | None = None
    also: tuple[str, ...] = ()
    moment: int = 0  # departures of a trace between which no other step was taken are of one moment
    bitmap: Bitmap | None = None  # drawn where the state was at hand: it is too large to travel
    broken: int = 0  # departures of its trace before this one

    def moved(self, rows: int) -> Suspect:
        """Return the same suspect, so many rows further on."""
        return replace(self, at=_moved(self.at, rows))


@dataclass(frozen=True)
class Cluster:
    """Traces that break one rule by one step: how many, and the first of them, of which the very first is explained."""

    count: int
    first: tuple[Suspect, ...]

    def __add__(self, other: Cluster) -> Cluster:
        first = sorted((*self.first, *other.first), key=lambda suspect: suspect.at)
        return Cluster(self.count + other.count, tuple(first[:TRACES]))

    def moved(self, rows: int) -> Cluster:
        """Return the same cluster, so many rows further on."""
        return replace(self, first=tuple(suspect.moved(rows) for suspect in self.first))


@dataclass
class Tally:
    """Traces of one spec in numbers.

    `begins`: the first row with an event of the spec · `asked`: traces that a user asked for · `traces`: those of them
    that were judged · `events`: how many were looked at · `covered`: accepted ones by action · `inferred`: those that
    were not observed, by action · `taken_over`: those that were refused, and are what the broker claims from then on ·
    `recorded`: all events by action · `doubtful`: those not surely taken, by action and outcome · `anomalies`: by
    deviation · `amounts`: the largest, by deviation and trace, where it has some · `clusters`: by the rule that is
    broken and the step, and the moment of its trace · `checked`: rules about events that were checked · `unopened`:
    traces that do not begin as they must · `rested`: traces that claim to have come to rest · `given_up`: traces with
    too many possible states · `unpromised`: traces in which an assumption is broken · `overruled`: events that a kernel
    refused, and the plain functions did not, which decide · `falls`: the first event that stands behind a later one.
    """

    begins: int
    asked: int = 0
    traces: int = 0
    events: int = 0
    covered: dict[str, int] = field(default_factory=dict)
    inferred: dict[str, int] = field(default_factory=dict)
    taken_over: dict[str, int] = field(default_factory=dict)
    recorded: dict[str, int] = field(default_factory=dict)
    doubtful: dict[tuple[str, str], int] = field(default_factory=dict)
    anomalies: dict[str, Seen] = field(default_factory=dict)
    amounts: dict[str, dict[str, Amount]] = field(default_factory=dict)
    clusters: dict[tuple[RuleStep, int], Cluster] = field(default_factory=dict)
    checked: set[str] = field(default_factory=set)
    rested: int = 0
    unopened: Seen | None = None
    given_up: Seen | None = None
    unpromised: Seen | None = None
    overruled: Seen | None = None
    falls: First | None = None

    def add(self, other: Tally, rows: int) -> None:
        """Add the tally of other traces, `rows` further on."""
        self.begins = min(self.begins, other.begins + rows)
        self.asked += other.asked
        self.traces += other.traces
        self.checked |= other.checked
        self.rested += other.rested
        self.events += other.events
        self.cover(other.covered)
        _add(self.inferred, other.inferred)
        _add(self.taken_over, other.taken_over)
        _add(self.recorded, other.recorded)
        _add(self.doubtful, other.doubtful)
        for name, seen in other.anomalies.items():
            self.deviate(name, seen[0], _moved(seen[1], rows))
        for name, found in other.amounts.items():
            self.measure(name, [one._replace(at=_moved(one.at, rows)) for one in found.values()])
        for signature, cluster in other.clusters.items():
            self.gather(signature, cluster.moved(rows))
        if other.unopened:
            self.unopened = added(self.unopened, other.unopened[0], _moved(other.unopened[1], rows))
        if other.given_up:
            self.given_up = added(self.given_up, other.given_up[0], _moved(other.given_up[1], rows))
        if other.unpromised:
            self.unpromised = added(self.unpromised, other.unpromised[0], _moved(other.unpromised[1], rows))
        if other.overruled:
            self.overruled = added(self.overruled, other.overruled[0], _moved(other.overruled[1], rows))
        if other.falls:
            falls = _moved(other.falls, rows)
            self.falls = min(self.falls, falls) if self.falls else falls

    def gather(self, signature: tuple[RuleStep, int], cluster: Cluster) -> None:
        """Add traces, or departures of one, that form one cluster."""
        before = self.clusters.get(signature)
        self.clusters[signature] = before + cluster if before else cluster

    def cover(self, counts: Mapping[str, int]) -> None:
        """Count accepted events by action; negative counts are subtracted."""
        for action, count in counts.items():
            if total := self.covered.pop(action, 0) + count:
                self.covered[action] = total

    def deviate(self, name: str, count: int, first: First) -> None:
        """Count a deviation; a negative count is subtracted."""
        self.anomalies[name] = added(self.anomalies.get(name), count, first)

    def measure(self, name: str, amounts: Iterable[Amount], sign: int = 1) -> None:
        """Keep the largest amounts of a deviation, of each trace one; a negative sign drops those of these traces."""
        known = self.amounts.setdefault(name, {})
        for one in amounts:
            if sign < 0:
                known.pop(one.at.trace, None)
            elif one.at.trace not in known or known[one.at.trace].amount < one.amount:
                known[one.at.trace] = one
        if len(known) > LARGEST:
            self.amounts[name] = {one.at.trace: one for one in largest(known.values())}


def _add(counts: dict[Key, int], more: Mapping[Key, int]) -> None:
    """Add counts to counts."""
    for key, count in more.items():
        counts[key] = counts.get(key, 0) + count


def largest(amounts: Iterable[Amount]) -> list[Amount]:
    """Return the largest amounts, the first of equal ones before the others."""
    return sorted(amounts, key=lambda one: (-one.amount, one.at))[:LARGEST]


def added(before: Seen | None, count: int, first: First) -> Seen:
    """Return the sum, and the earlier first place."""
    return (before[0] + count, min(before[1], first)) if before else (count, first)


def _moved(first: First, rows: int) -> First:
    return first._replace(row=first.row + rows)
