"""Judges the index of aborted transactions of one partition: what the log aborted, against its entries.

A worker sees the transactions of a part; one that began before it has its first offset from the parts before.
"""

from __future__ import annotations

import numpy as np

from gapless.spec import catalog
from gapless.spec.catalog import SPECS
from gapless.traces.judging import building
from gapless.traces.judging.building import STEPS, Events, Ints
from gapless.traces.replay.exact import Event
from gapless.traces.sources.kafka.files.indexes import AbortedColumns
from gapless.traces.sources.kafka.joining.reporter import Reporter
from gapless.traces.sources.kafka.joining.states import column_of, some, state_of
from gapless.traces.sources.kafka.judging.aborted_piece import TransactionColumns
from gapless.traces.sources.kafka.judging.event_order import EventOrder
from gapless.traces.sources.kafka.judging.part_results import PartResult, replay_rows
from gapless.traces.sources.kafka.judging.parts import NONE
from gapless.traces.sources.kafka.judging.producer_pieces import counts
from gapless.traces.sources.kafka.log.tables import Flags

ABORTED, STEP = SPECS["aborted_index"], STEPS["aborted_index"]
FOREIGN = catalog.rule("aborted_index/entry-is-of-an-abort-that-has-none-yet").id
STILL_OPEN = np.iinfo(np.int64).max
AT_ABORT, AT_ENTRY, KINDS = range(3)
DEPARTURES = 64
"""Departures in one part, behind which the index is judged no further."""


class AbortJudge:
    """Judges the index of aborted transactions of one partition, part by part.

    `open`: the transactions that are open, by producer; None if that is not known · `state`: int64 [scalars, 1]; None
    before the first abort or entry.
    """

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.open: TransactionColumns | None = None
        self.state: Ints | None = None
        self.aborts = 0
        self.is_over = False

    def add(self, result: PartResult) -> None:
        """Adds the result of the next part."""
        piece, terms = result.aborted, self.reporter.terms
        if result.part.is_first:
            self.open = piece.begin
        if self.open is None or self.is_over:
            return
        whole, self.open = joined(self.open, piece.transactions)
        if piece.entries is None:
            return
        aborts = _aborts(whole, piece.entries, terms.judged_from, terms.log_start)
        entries = piece.entries.last >= terms.judged_from
        self.aborts += len(aborts[0])
        if self.state is None and not len(aborts[0]) and not entries.any():
            return
        self._judge(result, _events(aborts, piece.entries, entries, closes=piece.closes))

    def _judge(self, result: PartResult, events: Events) -> None:
        reporter = self.reporter
        if self.state is None:
            opened = STEP.open(at=reporter.terms.start)
            reporter.joint("aborted_index", reporter.terms.name, reporter.terms.start, opened)
            begin = replay_rows(Events.of(ABORTED, [opened]), 0, 1, building.states(ABORTED, 1), reporter.options)
            reporter.found.cover("aborted_index", {"open": 1})
            self.state = begin.state
        if reporter.joints is not None:
            for number in range(len(events.action)):
                event = events.at(number)
                reporter.joint("aborted_index", reporter.terms.name, _offset(event, result.end), event)
        self._replay(result, events)

    def _replay(self, result: PartResult, events: Events) -> None:
        """Replays events by the kernel, and continues behind each that is refused."""
        reporter, low = self.reporter, 0
        assert self.state is not None  # noqa: S101 - for the type checker: it was opened
        for _ in range(DEPARTURES):
            replayed = replay_rows(events, low, len(events.action), self.state, reporter.options)
            bad = int(replayed.bad_at[0])
            reporter.found.cover("aborted_index", counts(ABORTED, replayed.covered))
            if bad < 0:
                self.state = replayed.state
                return
            outcome = reporter.exact(
                "aborted_index", state_of("aborted_index", self.state[:, 0]), some(events, low, bad + 1)
            )
            if outcome.departure is None:
                break
            reporter.departs(result.part, reporter.terms.name, outcome.departure)
            self.state = column_of("aborted_index", outcome.departure.state)
            if outcome.departure.rule != FOREIGN:
                self._pass_over()
            low = bad if outcome.departure.event[0] == "abort" else bad + 1
        self.is_over = True

    def _pass_over(self) -> None:
        """Takes the abort as one that has its entry: that it lacks it, or what is wrong with it, is reported."""
        assert self.state is not None  # noqa: S101 - as above
        rows = {name: self.state[number] for number, name in enumerate(ABORTED.scalars)}
        rows["hidden"][:] = rows["end"]
        rows["entered"][:] = rows["aborted"]


def joined(before: TransactionColumns, of_part: TransactionColumns) -> tuple[TransactionColumns, TransactionColumns]:
    """Return the transactions up to the end of a part, and those of them that are open there.

    `before`: those that are open where the part begins.
    """
    first = of_part.first.copy()
    leads = np.ones(len(first), np.bool_)  # the first of its producer in this part
    leads[1:] = of_part.producer[1:] != of_part.producer[:-1]
    at = before.producer.searchsorted(of_part.producer)
    at = np.minimum(at, max(len(before.producer) - 1, 0))
    continues = (
        leads & (before.producer[at] == of_part.producer) if len(before.producer) else np.zeros(len(first), np.bool_)
    )
    first[continues] = before.first[at[continues]]
    silent = ~np.isin(before.producer, of_part.producer)
    whole = TransactionColumns(
        np.concatenate([before.producer[silent], of_part.producer]), np.concatenate([before.first[silent], first]),
        np.concatenate([before.last[silent], of_part.last]), np.concatenate([before.aborted[silent], of_part.aborted]),
    )  # fmt: skip
    (still,) = np.nonzero((whole.last == NONE) & (whole.first != NONE))
    still = still[np.argsort(whole.producer[still], kind="stable")]
    return whole, TransactionColumns(whole.producer[still], whole.first[still], whole.last[still], whole.aborted[still])


def _aborts(whole: TransactionColumns, entries: AbortedColumns, judged_from: int, log_start: int) -> tuple[Ints, ...]:
    """Return the aborts that ended records, in the order of their markers: producer, first, last, stable offset."""
    below = np.isin(whole.last, entries.last[entries.first < judged_from])  # their records may have been cleaned
    (rows,) = np.nonzero(whole.aborted & ((whole.first != NONE) | below) & (whole.last >= judged_from))
    rows = rows[np.argsort(whole.last[rows], kind="stable")]
    last = whole.last[rows]
    (real,) = np.nonzero(whole.first != NONE)
    order = real[np.argsort(whole.first[real], kind="stable")]
    begins = np.append(whole.first[order], STILL_OPEN)
    ends = np.where(whole.last[order] == NONE, STILL_OPEN, whole.last[order])
    earliest = np.maximum.accumulate(ends).searchsorted(last, side="right")
    stable = np.minimum(begins[earliest], last + 1)
    first = whole.first[rows]
    # Where the records of an open transaction were deleted, a broker may count from the log's start; below the
    # cleaner's point markers may be gone, and transactions seem to be open that are not; or their first records are.
    at = np.minimum(entries.last.searchsorted(last), max(len(entries.last) - 1, 0))
    if len(entries.last):
        named = entries.last[at] == last
        deleted = named & (stable < log_start) & (entries.stable[at] <= log_start)
        unsure = named & (np.minimum(stable, entries.stable[at]) < judged_from)
        stable = np.where(deleted | unsure, entries.stable[at], stable)
        first = np.where(named & (np.minimum(first, entries.first[at]) < judged_from), entries.first[at], first)
        stable, first = np.clip(stable, 0, last + 1), np.clip(first, 0, last - 1)
    return whole.producer[rows], first, last, stable


def _events(aborts: tuple[Ints, ...], entries: AbortedColumns, mine: Flags, *, closes: bool) -> Events:
    """Make the events of a part. Entries keep the order of their file."""
    order = EventOrder(ABORTED)
    producer, first, last, stable = aborts
    order.add("abort", last * KINDS + AT_ABORT, producer=producer, first=first, last=last, stable=stable)
    behind = np.maximum.accumulate(entries.last[mine])
    order.add(
        "enter", behind * KINDS + AT_ENTRY, producer=entries.producer[mine], first=entries.first[mine],
        last=entries.last[mine], stable=entries.stable[mine],
    )  # fmt: skip
    if closes:
        order.add("close", np.array([STILL_OPEN]))
    return order.events()[0]


def _offset(event: Event, end: int) -> int:
    """Return the offset that an event is about."""
    return event[1][2] if event[0] in ("abort", "enter") else end
