"""Joins the parts of a partition's log: the end of each with what the next one claims."""

from __future__ import annotations

from collections.abc import Sequence

from gapless.spec.catalog import SPECS
from gapless.traces.judging import building
from gapless.traces.judging.building import Ints
from gapless.traces.replay.exact import Event
from gapless.traces.sources.kafka.joining.reporter import Reporter, column_of, some, state_of
from gapless.traces.sources.kafka.joining.tails import NEXT_TO_THE_LOG
from gapless.traces.sources.kafka.judging.part_results import PartResult, replay_rows
from gapless.traces.sources.kafka.judging.producer_pieces import counts

PARTITION = SPECS["partition"]
FIELDS = ("start", "end", "epoch", "since", "segment", "reached", "newest", "timed")
JOINED = [PARTITION.scalars.index(name) for name in FIELDS]
"""The rows of the fields in which the parts of a log must agree."""
ENTRIES = 16
"""Departures of entries in indexes of one part, behind which the log is judged further."""


class LogJudge:
    """Judges the log of one partition, part by part. `state`: int64 [scalars]; None where it is not known."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.state: Ints | None = None

    def add(self, result: PartResult) -> None:
        """Adds the result of the next part."""
        piece, reporter = result.partition, self.reporter
        reporter.found.cover("partition", {"open": int(result.part.is_first)})
        agrees = self.state is None or (self.state[JOINED] == piece.begin[JOINED]).all()
        if agrees and piece.refused < 0:
            self.state = piece.end
            reporter.found.cover("partition", piece.covered)
            name = reporter.terms.name
            named = {what: (count, name, offset) for what, (count, offset) in piece.deviated.items()}
            reporter.anomalies(result, "partition", named)
        else:
            self.state = self._again(result, None if agrees else self.state)

    def _again(self, result: PartResult, begin: Ints | None) -> Ints | None:
        """Judges a part again, from the state that was really reached, or from what it claims if that agrees.

        Behind an entry of an index that departs, the log itself is judged further. Returns the state at the end; None
        if the log departs.
        """
        reporter, events = self.reporter, self.reporter.read(result).partition
        low = 1 if begin is not None or result.partition.refused else 0
        state = (result.partition.begin if begin is None else begin)[:, None] if low else building.states(PARTITION, 1)
        for _ in range(ENTRIES):
            replayed = replay_rows(events, low, len(events.action), state, reporter.options)
            bad = int(replayed.bad_at[0])
            reporter.found.cover("partition", counts(PARTITION, replayed.covered))
            if bad < 0:
                return replayed.state[:, 0]
            outcome = reporter.exact("partition", state_of("partition", state[:, 0]), some(events, low, bad + 1))
            departure = outcome.departure
            if departure is not None:
                reporter.departs(result, reporter.terms.name, departure)
                if departure.event[0] not in NEXT_TO_THE_LOG:
                    return None
            state = column_of("partition", departure.state if departure else outcome.state)
            low = bad + 1
        return None

    def finish(self, last: PartResult, events: Sequence[Event]) -> None:
        """Judges what checkpoints say of the log, behind its last part."""
        if self.state is None:
            return
        reporter, name = self.reporter, self.reporter.terms.name
        for event in events:
            reporter.joint("partition", name, last.end, event)
        outcome = reporter.exact("partition", state_of("partition", self.state), events)
        reporter.found.cover("partition", outcome.covered)
        reporter.summary.end, reporter.summary.stable = int(outcome.state.end), int(outcome.state.stable)
        if outcome.departure:
            reporter.departs(last, name, outcome.departure)
