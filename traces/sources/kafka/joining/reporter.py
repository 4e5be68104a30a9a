"""Reports the departures of one partition and of its producers, with their places."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from gapless.spec.catalog import State
from gapless.traces.options import Options
from gapless.traces.replay.exact import Departure, Event, Outcome, PastStep, replay
from gapless.traces.replay.notation import breach
from gapless.traces.report.pictures.sequences import SequenceLine
from gapless.traces.sources.kafka.joining.findings import LogFindings, PartitionSummary, PlacedDeparture
from gapless.traces.sources.kafka.joining.places import PlaceFinder
from gapless.traces.sources.kafka.joining.tails import NEXT_TO_THE_LOG, may_be_lost
from gapless.traces.sources.kafka.judging.part_results import PartEvents, PartResult, read_part
from gapless.traces.sources.kafka.judging.parts import PartitionTerms, SegmentPart

BATCHES = frozenset({"append", "mark"})
"""Steps that are batches of the log."""


class Reporter:
    """Finds out exactly how a trace departs, and reports it: a kernel says only where."""

    def __init__(self, terms: PartitionTerms, found: LogFindings, options: Options) -> None:
        self.terms = terms
        self.found = found
        self.options = options
        self.summary = PartitionSummary(terms.name, start=terms.start, producer=terms.producer)
        self.broken_at: int | None = None  # the offset at which the log itself departs first
        self.joints: list[tuple[str, str, int, Event]] | None = None  # those of an export
        self._reading: tuple[PartResult, PartEvents] | None = None

    def read(self, result: PartResult) -> PartEvents:
        """Reads a part again, once for all that departs in it."""
        if self._reading is None or self._reading[0] is not result:
            self._reading = result, read_part(result.part)
        return self._reading[1]

    def exact(
        self, spec: str, state: State, events: Iterable[Event], *, before: int = 0,
        history: deque[PastStep] | None = None,
    ) -> Outcome:  # fmt: skip
        """Replays events by the plain functions; `history` has the last of the events before them."""
        return replay(
            spec, state, events, profile=self.options.profile, ignored=self.options.ignored, before=before,
            history=history,
        )  # fmt: skip

    def departs(
        self, part: SegmentPart, trace: str, departure: Departure, picture: SequenceLine | None = None,
        also: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        """Reports a departure, unless it is a consequence of another one, or may be what a lost power leaves."""
        places = PlaceFinder(part)
        where, offset = places.of(departure)
        if departure.spec != "partition" and self.broken_at is not None and offset >= self.broken_at:
            return  # batches that are missing or damaged are reported of the log
        if departure.spec == "partition" and departure.event[0] not in NEXT_TO_THE_LOG:
            self.broken_at = offset if self.broken_at is None else min(self.broken_at, offset)
        if may_be_lost(self.terms, departure, offset):
            if not self.summary.doubts:  # the first one of a partition says enough
                self.found.doubt(
                    f"{where.file}+{where.offset}: {breach(departure.event[0], departure.because)}: legal if the "
                    "broker was killed or the power was lost, for the next start mends it; damage otherwise"
                )
            self.summary.doubts = True
            return
        self.summary.departs = True
        batch = (*also, *places.batch_at(where.offset)) if departure.event[0] in BATCHES or also else ()
        self.found.report(PlacedDeparture(trace, self.terms.name, offset, where, departure, picture, batch))

    def anomalies(self, result: PartResult, spec: str, found: Mapping[str, tuple[int, str, int]]) -> None:
        """Counts anomalies, by name: how many, and the trace and the offset of the first."""
        for name, (count, trace, offset) in found.items():
            self.found.anomaly(spec, name, count, trace, offset, PlaceFinder(result.part).at_offset(offset))

    def joint(self, spec: str, trace: str, offset: int, event: Event) -> None:
        """Keeps an event that no part has, if events are exported."""
        if self.joints is not None:
            self.joints.append((spec, trace, offset, event))
