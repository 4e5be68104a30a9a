"""The traces over several partitions that a check judges: transactional ids, offsets of groups, answers to clients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gapless.traces.judging import building
from gapless.traces.judging.building import Events, Ints
from gapless.traces.options import Options
from gapless.traces.replay.exact import Departure, life, replay
from gapless.traces.replay.kernels import ReplayResult, kernel
from gapless.traces.sources.kafka.files.names import PartitionName
from gapless.traces.sources.kafka.joining.findings import LogFindings
from gapless.traces.sources.kafka.joining.states import some
from gapless.traces.sources.kafka.judging.parts import SegmentPart
from gapless.traces.sources.kafka.judging.producer_pieces import counts
from gapless.traces.sources.kafka.transactions.offset_events import OffsetEvents

STEPS = 60
"""Steps that a life shows; more are counted."""


class TraceBlock(NamedTuple):
    """The events of some traces, for an export. `position`: the offset in a log that each lies next to."""

    names: Sequence[str]
    starts: Ints
    events: Events
    position: Ints


class JudgedTrace(NamedTuple):
    """A trace that was judged, and the number of its events."""

    spec: str
    name: str
    events: int


class JudgedGroups(NamedTuple):
    """The offsets of groups in one partition of `__consumer_offsets`. `start`: below it records may be gone."""

    partition: PartitionName
    parts: Sequence[SegmentPart]
    start: int
    names: Sequence[str]
    made: OffsetEvents


@dataclass
class JudgedTraces:
    """The traces over several partitions that were judged. `life`: of the one that was asked for.

    `groups`: kept only if answers about them are to be compared.
    """

    traces: list[JudgedTrace] = field(default_factory=list)
    departed: set[str] = field(default_factory=set)
    life: list[str] = field(default_factory=list)
    blocks: list[TraceBlock] = field(default_factory=list)
    groups: list[JudgedGroups] | None = None

    def add(self, names: Sequence[str], starts: Ints, events: Events, options: Options) -> None:
        """Adds traces of one spec, with the life of the one that was asked for."""
        counted = np.diff(starts).tolist()
        self.traces += [JudgedTrace(events.spec.name, *one) for one in zip(names, counted, strict=True)]
        if options.trace in names:
            self.life = _life_of(events, starts, names.index(options.trace), options)

    @property
    def names(self) -> list[str]:
        """The names of all traces."""
        return [one.name for one in self.traces]


def _life_of(events: Events, starts: Ints, trace: int, options: Options) -> list[str]:
    """Return a line for each of the first steps of a trace."""
    low, high = starts[trace : trace + 2].tolist()
    shown = some(events, low, min(high, low + STEPS))
    found = life(events.spec, shown, profile=options.profile, ignored=options.ignored)
    return [*found, f"     and {high - low - STEPS:,} more steps"] if high - low > STEPS else found


class DepartingTrace(NamedTuple):
    """A trace that departs. `event`: the number among all events of the one that does."""

    number: int
    event: int
    departure: Departure


def departing(
    events: Events, starts: Ints, found: LogFindings, options: Options, dense: tuple[Events, Ints] | None = None
) -> Iterator[DepartingTrace]:
    """Replay all traces, and yield those that depart.

    `dense`: the same events with the keys of Maps counted from 0, and how many each trace has; else they have one.
    """
    count = len(starts) - 1
    if count:
        counted, widths = dense or (events, np.ones(count, np.int64))
        yield from departures(replayed(counted, starts, widths, found, options), events, starts, options)


def replayed(events: Events, starts: Ints, widths: Ints, found: LogFindings, options: Options) -> ReplayResult:
    """Replay all traces from their beginning by the kernel, and count what they cover.

    `widths`: how many keys the Maps of each trace have, which are counted from 0.
    """
    spec, count = events.spec, len(widths)
    result = kernel(spec, options.ignored).replay(
        starts, events.action, events.args, building.states(spec, count), origins=np.zeros(count, np.int64),
        widths=widths, profile=options.profile,
    )  # fmt: skip
    found.cover(spec.name, counts(spec, result.covered))
    return result


def departures(result: ReplayResult, events: Events, starts: Ints, options: Options) -> Iterator[DepartingTrace]:
    """Yield what departs by the plain functions, of the traces that the kernel refused.

    `events`: with the keys of Maps as they are.
    """
    spec = events.spec
    for trace in np.flatnonzero(result.bad_at >= 0).tolist():
        low, high = starts[trace : trace + 2].tolist()
        shown = some(events, low, high)
        departure = replay(spec, spec.initial, shown, profile=options.profile, ignored=options.ignored).departure
        if departure is not None:
            yield DepartingTrace(trace, low + departure.number - 1, departure)
