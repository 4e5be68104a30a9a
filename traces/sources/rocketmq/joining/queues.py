"""Joins the pieces of every queue. What only the whole log shows of a queue is in `queue_ends.py`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from gapless.spec.catalog import SPECS, State, rule
from gapless.spec.queue import BLANK_SLOT
from gapless.traces.judging.building import STEPS
from gapless.traces.options import Options
from gapless.traces.replay.exact import Departure, Event, Outcome, named, replay
from gapless.traces.sources.rocketmq.joining.judged import JoinedQueue, JudgedStore, RefusedPiece
from gapless.traces.sources.rocketmq.segments.queue_events import queue_events
from gapless.traces.sources.rocketmq.segments.splits import Split, SplitReader
from gapless.traces.sources.rocketmq.segments.tasks import Segment, Subject, name_of
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.files import ENTRY
from gapless.traces.sources.rocketmq.store.wanted import wants

QUEUE = STEPS["queue"]
MISSING = rule("queue/no-entry-before-it-is-missing").id


class JoinedQueues:
    """The runs of all queues, joined."""

    def __init__(self, judged: JudgedStore, options: Options) -> None:
        self.judged = judged
        self.store = judged.store
        self.options = options
        self.spec = SPECS["queue"]
        self.rows = {name: row for row, name in enumerate(self.spec.scalars)}

    # -- joining ---------------------------------------------------------------------------------------------------

    def take(self, split: Split, segment: Segment) -> None:
        """Join one segment's pieces. Segments come in log order."""
        found = segment.pieces
        damages = len(self.judged.damage)
        for n, subject in enumerate(found.subjects):
            if not wants(self.options, *subject):
                continue
            claim = int(found.claims[self.rows["end"], n])
            run = self.judged.queues.get(subject)
            if run is None:
                run = JoinedQueue(claim, claim, claim, opened=claim, began=int(found.first[n]), damage_seen=damages)
                self.judged.queues[subject] = run
                self._open(subject, run)
            elif claim == 0:
                run.restarted, run.anew_at = True, int(found.first[n])
            run.messages += int(found.messages[n])
            run.batches += int(found.batches[n])
            run.last = int(found.last[n])
            if not run.departs and not run.restarted:
                if damages > run.damage_seen and claim > run.end:
                    run.indexed = run.end = claim  # what is missing lies in the damage
                run.damage_seen = damages
                self._join(split, segment, subject, run, n)

    def _open(self, subject: Subject, run: JoinedQueue) -> None:
        """The steps before the first message: the queue is found, its files, the entries that outlive theirs."""
        events = [QUEUE.open(number=run.first, start=self.store.start), *self.files(subject)]
        kept = self.slot(subject, run.first - 1)
        if kept is not None and kept[1] != BLANK_SLOT:
            events.append(QUEUE.outlive(number=run.first - 1, position=kept[0]))
        self.judged.joint(self.store.start, "queue", name_of(subject), events)
        outcome = self.replayed(self.spec.initial, events)
        self.judged.cover("queue", outcome.covered)
        if outcome.departure:
            run.breach = self.judged.find(name_of(subject), run.began, outcome.departure)

    def files(self, subject: Subject) -> list[Event]:
        """One event per file of the consume queue; an empty last one is deleted at the broker's next start."""
        full = self.store.queue_file_size
        there = self.store.queues.get(subject, ()) if full else ()
        return [
            QUEUE.find_file(base=file.base, length=file.length, full=full)
            for file in there
            if file.length or file is not there[-1]
        ]

    def _join(self, split: Split, segment: Segment, subject: Subject, run: JoinedQueue, n: int) -> None:
        """Hold the piece's claim against the queue's state; where they differ, or it was refused, look closer."""
        found = segment.pieces
        claim, end = int(found.claims[self.rows["end"], n]), int(found.ends[self.rows["end"], n])
        indexed, first = int(found.ends[self.rows["indexed"], n]), int(found.ends[self.rows["first"], n])
        refusal = found.refusals.get(n)
        state = self.state(run, end=run.end)
        if refusal and refusal.rule and claim == run.end == run.indexed:
            run.suspect = RefusedPiece(split, segment.start, state, refusal)
            run.indexed, run.end = indexed, end
            return
        blank = first > claim
        if claim == run.end == run.indexed and refusal is None and (not blank or run.indexed == run.first):
            run.indexed = indexed
            if blank:
                run.first = run.blank = first
        elif claim != run.end or refusal or found.indexed[n] or blank:
            outcome = self.replayed(state, self.events(split, segment.start, subject))
            if outcome.departure:
                self.find(subject, run, outcome.departure)
                return
            run.first, run.blank = outcome.state.first, outcome.state.blank
            run.indexed, end = outcome.state.indexed, outcome.state.end
        # Otherwise the piece has no entries at all: its messages wait behind those that wait already.
        run.end = end
        if run.indexed < run.end and run.pending is None:
            run.pending = (split, segment.start)

    def find(self, subject: Subject, run: JoinedQueue, departure: Departure) -> None:
        """The queue departs."""
        run.suspect = None
        position, number = self._position(departure, run), int(departure.state.indexed)
        if departure.rule == MISSING and number not in departure.state.positions.entries and run.pending:
            waiting = self.appended(self.events(*run.pending, subject), number)
            if waiting:  # the entry has been missing since an earlier piece
                position = named("queue", waiting)["position"]
                begin = self.state(run, indexed=number, end=number)
                made = self.replayed(begin, [waiting, QUEUE.settle(upto=position + 1)]).departure
                departure = replace(departure, steps=made.steps if made else departure.steps)
        run.breach = self.judged.find(name_of(subject), position, departure)

    def appended(self, events: Iterable[Event], number: int) -> Event | None:
        """The append of message `number`."""
        return next((e for e in events if e[0] == "append" and named("queue", e)["number"] == number), None)

    def _position(self, departure: Departure, run: JoinedQueue) -> int:
        """The log position that a departure is about: its message's, or else that of the queue's last one."""
        action, args = departure.event[0], named("queue", departure.event)
        if action == "append":
            return args["position"]
        number = args["number"] if action == "index" else departure.state.indexed
        known = departure.state.positions.entries
        return int(known.get(departure.state.indexed, known.get(number, run.last)))

    def state(self, run: JoinedQueue, **values: Any) -> State:
        """The state that the queue has reached, but for `values`."""
        known = {"start": self.store.start, "first": run.first, "indexed": run.indexed, "blank": run.blank}
        return replace(self.spec.initial, **(known | values))

    def replayed(self, state: State, events: Iterable[Event], profile: str | None = None) -> Outcome:
        """What the events come to, taken from `state` on."""
        return replay("queue", state, events, profile=profile or self.options.profile, ignored=self.options.ignored)

    def events(self, split: Split, start: int, subject: Subject) -> list[Event]:
        """One queue's events in the segment that begins at `start`, read again."""
        again = replace(split, low=start - split.file.base, exact=True)
        for scanned in SplitReader(self.store, again).segments():
            return queue_events(self.store, scanned.columns).of_subject(subject)
        return []

    def slot(self, subject: Subject, number: int) -> tuple[int, int, int] | None:
        """Position, size and tag code in slot `number`, or None where it is not written."""
        if number < 0:
            return None
        data = bytearray(ENTRY)
        file_access.read_entries(self.store, *subject, number, memoryview(data))
        place, size, tag = (int.from_bytes(data[a:b], "big", signed=True) for a, b in ((0, 8), (8, 12), (12, 20)))
        return (place, size, tag) if size > 0 and place >= 0 else None  # docs/rocketmq.md#entry: as the broker reads it
