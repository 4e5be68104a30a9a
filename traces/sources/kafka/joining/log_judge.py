"""Joins the parts of a partition's log: the end of each with what the next one claims."""

from __future__ import annotations

from collections.abc import Sequence

from gapless.spec.catalog import SPECS
from gapless.traces.judging import building
from gapless.traces.judging.building import Ints
from gapless.traces.replay.exact import Departure, Event
from gapless.traces.sources.kafka.joining.history import PartHistory
from gapless.traces.sources.kafka.joining.places import KEPT_ONCE
from gapless.traces.sources.kafka.joining.reporter import Reporter
from gapless.traces.sources.kafka.joining.states import state_of
from gapless.traces.sources.kafka.joining.tails import NEXT_TO_THE_LOG
from gapless.traces.sources.kafka.judging.key_judge import RepeatedKey
from gapless.traces.sources.kafka.judging.part_results import PartResult
from gapless.traces.sources.kafka.judging.parts import NONE
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
        self.repeated: RepeatedKey | None = None  # where the cleaner was
        self.history: PartHistory | None = None  # of the part that was added last, if it was judged again

    def add(self, result: PartResult) -> None:
        """Adds the result of the next part."""
        piece, reporter, self.history = result.partition, self.reporter, None
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
        reporter = self.reporter
        self.history = self._history(result, begin)
        for _ in range(ENTRIES):
            replayed = self.history.replayed()
            reporter.found.cover("partition", counts(PARTITION, replayed.covered))
            if replayed.bad_at[0] < 0 or self.history.is_over:
                return replayed.state[:, 0]
            departure = self.history.departure(replayed)
            if departure is not None:
                reporter.departs(result.part, reporter.terms.name, departure)
                if departure.event[0] not in NEXT_TO_THE_LOG:
                    return None
        return None

    def _history(self, result: PartResult, begin: Ints | None) -> PartHistory:
        """The steps of a part from a state on; from what it claims if there is none."""
        events, piece = self.reporter.read(result).partition, result.partition
        low = 1 if begin is not None or piece.refused else 0
        state = (piece.begin if begin is None else begin)[:, None] if low else building.states(PARTITION, 1)
        return PartHistory(events, low, len(events.action), state, self.reporter.options)

    def finish(self, last: PartResult, events: Sequence[Event]) -> None:
        """Judges what checkpoints say of the log, behind its last part."""
        if self.state is None:
            return
        reporter, name = self.reporter, self.reporter.terms.name
        for event in events:
            reporter.joint("partition", name, last.end, event)
        outcome = reporter.exact("partition", state_of("partition", self.state), events)
        reporter.found.cover("partition", outcome.covered)
        reporter.summary.end = int(outcome.state.end)
        if reporter.terms.producer == NONE:  # else not all open transactions are known
            reporter.summary.stable = int(outcome.state.stable)
        if outcome.departure:
            history = self.history or self._history(last, None)
            history.to_the_end()
            state, before = state_of("partition", self.state), history.taken
            again = reporter.exact("partition", state, events, before=before, history=history.steps).departure
            self._departs(last, again or outcome.departure)

    def _departs(self, last: PartResult, departure: Departure) -> None:
        """Reports what checkpoints make depart; a key that is there twice, where its first record lies."""
        key = self.repeated if departure.rule == KEPT_ONCE else None
        if key is None:
            self.reporter.departs(last.part, self.reporter.terms.name, departure)
        else:
            also = f"The record at offset {key.later:,}, below the cleaner's point, has the same key."
            self.reporter.departs(key.part, self.reporter.terms.name, departure, also=(also,))
