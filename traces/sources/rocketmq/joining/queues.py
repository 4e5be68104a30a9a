"""Joins the pieces of every queue, and holds its end against the end of the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gapless.spec.catalog import SPECS, State, rule
from gapless.spec.queue import BLANK_SLOT
from gapless.traces.judging.building import STEPS
from gapless.traces.options import Options
from gapless.traces.replay.exact import Departure, Event, Outcome, named, replay
from gapless.traces.sources.rocketmq.joining.judged import JoinedQueue, JudgedStore, RefusedPiece
from gapless.traces.sources.rocketmq.segments import splits
from gapless.traces.sources.rocketmq.segments.queue_events import queue_events
from gapless.traces.sources.rocketmq.segments.splits import Split, SplitReader
from gapless.traces.sources.rocketmq.segments.tasks import Segment, Subject, name_of
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.directory import ENTRY, FARTHEST, queue_files, queue_folders
from gapless.traces.sources.rocketmq.store.wanted import wants

QUEUE = STEPS["queue"]
MISSING = rule("queue/no-entry-before-it-is-missing").id
LIGHT = "%LMQ%"  # light queues are in no list of topics
SLOT = np.dtype([("position", ">i8"), ("size", ">i4"), ("tag", ">i8")])
SLACK_MS = 3000  # how far before its checkpoint an unclean start begins to dispatch again


class JoinedQueues:
    """The runs of all queues; `beyond` are entries behind a queue's last message that point beyond the log."""

    def __init__(self, judged: JudgedStore, options: Options) -> None:
        self.judged = judged
        self.store = judged.store
        self.options = options
        self.spec = SPECS["queue"]
        self.rows = {name: row for row, name in enumerate(self.spec.scalars)}
        self.beyond: list[tuple[int, str]] = []

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
        events = [QUEUE.open(number=run.first, start=self.store.start), *self._files(subject)]
        kept = self._slot(subject, run.first - 1)
        if kept is not None and kept[1] != BLANK_SLOT:
            events.append(QUEUE.outlive(number=run.first - 1, position=kept[0]))
        self.judged.joint(self.store.start, "queue", name_of(subject), events)
        outcome = self._replay(self.spec.initial, events)
        self.judged.cover("queue", outcome.covered)
        if outcome.departure:
            run.breach = self.judged.find(name_of(subject), run.began, outcome.departure)

    def _files(self, subject: Subject) -> list[Event]:
        """One event per file of the consume queue; an empty last one is deleted at the broker's next start."""
        full = self.store.queue_file_size
        there = queue_files(self.store.queue_folder(*subject)) if full and "/" not in subject[0] else []
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
        state = self._state(run, end=run.end)
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
            outcome = self._replay(state, self._events(split, segment.start, subject))
            if outcome.departure:
                self._find(subject, run, outcome.departure)
                return
            run.first, run.blank = outcome.state.first, outcome.state.blank
            run.indexed, end = outcome.state.indexed, outcome.state.end
        # Otherwise the piece has no entries at all: its messages wait behind those that wait already.
        run.end = end
        if run.indexed < run.end and run.pending is None:
            run.pending = (split, segment.start)

    def _find(self, subject: Subject, run: JoinedQueue, departure: Departure) -> None:
        run.suspect = None
        position, number = self._position(departure, run), int(departure.state.indexed)
        if departure.rule == MISSING and number not in departure.state.positions.entries and run.pending:
            waiting = self._appended(self._events(*run.pending, subject), number)
            if waiting:  # the entry has been missing since an earlier piece
                position = named("queue", waiting)["position"]
                begin = self._state(run, indexed=number, end=number)
                made = self._replay(begin, [waiting, QUEUE.settle(upto=position + 1)]).departure
                departure = replace(departure, steps=made.steps if made else departure.steps)
        run.breach = self.judged.find(name_of(subject), position, departure)

    def _appended(self, events: Iterable[Event], number: int) -> Event | None:
        return next((e for e in events if e[0] == "append" and named("queue", e)["number"] == number), None)

    def _position(self, departure: Departure, run: JoinedQueue) -> int:
        """The log position that a departure is about: its message's, or else that of the queue's last one."""
        action, args = departure.event[0], named("queue", departure.event)
        if action == "append":
            return args["position"]
        number = args["number"] if action == "index" else departure.state.indexed
        known = departure.state.positions.entries
        return int(known.get(departure.state.indexed, known.get(number, run.last)))

    def _state(self, run: JoinedQueue, **values: Any) -> State:
        known = {"start": self.store.start, "first": run.first, "indexed": run.indexed, "blank": run.blank}
        return replace(self.spec.initial, **(known | values))

    def _replay(self, state: State, events: Iterable[Event], profile: str | None = None) -> Outcome:
        return replay("queue", state, events, profile=profile or self.options.profile, ignored=self.options.ignored)

    def _events(self, split: Split, start: int, subject: Subject) -> list[Event]:
        """One queue's events in the segment that begins at `start`, read again."""
        again = replace(split, low=start - split.file.base, exact=True)
        for scanned in SplitReader(self.store, again).segments():
            return queue_events(self.store, scanned.columns).of_subject(subject)
        return []

    # -- what only the whole log shows -----------------------------------------------------------------------------

    def finish(self) -> None:
        """The log's end is known: judge what has waited for it."""
        for subject, run in sorted(self.judged.queues.items()):
            if run.restarted:
                self._judge_whole(subject, run)
        self._tell()
        for subject, run in sorted(self.judged.queues.items()):
            self._settle(subject, run)
        if not self.store.live:
            self._without_messages()

    def _judge_whole(self, subject: Subject, run: JoinedQueue) -> None:
        """A queue whose numbers start again at 0. Only what came after its last start has entries."""
        if run.breach in self.judged.breaches:
            self.judged.breaches.remove(run.breach)
        run.breach = run.suspect = run.pending = None
        begin = self._state(run, first=run.opened, indexed=run.opened, end=run.opened, blank=0)
        outcome = self._replay(begin, self._since(subject, run.anew_at))
        if outcome.departure and outcome.departure.event[0] == "append":
            # It did not start again, then, and one number is wrong: the first that begins at 0 again.
            outcome = self._replay(begin, self._since(subject, FARTHEST), profile="strict")
        if outcome.departure:
            self._find(subject, run, outcome.departure)
            return
        self.judged.cover("queue", outcome.covered)
        for name, count in outcome.deviations.items():
            self.judged.anomaly(name, count, run.anew_at, name_of(subject))
        state = outcome.state
        run.first, run.indexed, run.end, run.blank = state.first, state.indexed, state.end, state.blank
        if run.indexed < run.end:
            self._wait(subject, run, outcome.state, ())

    def _since(self, subject: Subject, anew: int) -> Iterator[Event]:
        """All events of one queue, read again; of its entries, only those of messages from position `anew` on."""
        counts = False
        for split in splits.splits(self.store):
            for scanned in SplitReader(self.store, split).segments():
                if scanned.start >= self.judged.end:
                    return
                for event in queue_events(self.store, scanned.columns).of_subject(subject):
                    if event[0] == "append":
                        counts = named("queue", event)["position"] >= anew
                        yield event
                    elif counts:
                        yield event

    def _tell(self) -> None:
        """Exact replay of the suspects: one story of every kind, and more while they are few."""
        suspects = [(run.suspect, subject) for subject, run in self.judged.queues.items() if run.suspect is not None]
        for suspect, subject in sorted(suspects, key=lambda one: (one[0].start, one[1])):
            if self.judged.is_told_enough(suspect.refusal.rule or ""):
                continue
            run = self.judged.queues[subject]
            outcome = self._replay(suspect.state, self._events(suspect.split, suspect.start, subject))
            if outcome.departure:
                self._find(subject, run, outcome.departure)
                continue
            run.suspect = None
            self.judged.inconclusive.append(
                f"{name_of(subject)} was not the same when it was read again: something is writing; check a copy"
            )

    def _settle(self, subject: Subject, run: JoinedQueue) -> None:
        """The end of a queue: no message waits for an entry that will not come, and no entry is left over."""
        if run.departs or run.batches or self.store.live or not self.store.has_queues or self._is_deleted(subject, run):
            return
        if run.indexed == run.end:
            settle = QUEUE.settle(upto=self.judged.end)
            outcome = self._replay(self._state(run, end=run.end), [settle])
            self.judged.cover("queue", outcome.covered)
            self.judged.joint(self.judged.end, "queue", name_of(subject), [settle])
            if outcome.departure:
                self._find(subject, run, outcome.departure)
                return
            self._left_over(subject, run)
        elif run.pending:
            split, start = run.pending
            events = self._events(split, start, subject)
            first = next((named("queue", e)["number"] for e in events if e[0] == "append"), run.indexed)
            outcome = self._replay(self._state(run, indexed=min(run.indexed, first), end=first), events)
            if outcome.departure is None:
                self._wait(subject, run, outcome.state, events)

    def _wait(self, subject: Subject, run: JoinedQueue, state: State, events: Iterable[Event]) -> None:
        """Messages without entries: legal where the broker's next start will write them."""
        settle = QUEUE.settle(upto=self._settled_up_to())
        self.judged.joint(self.judged.end, "queue", name_of(subject), [settle])
        outcome = self._replay(state, [settle])
        waiting = int(state.positions[state.indexed])
        if outcome.departure:
            run.breach = self.judged.find(name_of(subject), waiting, self._shortened(outcome.departure, run, events))
            return
        count = f"{run.end - run.indexed:,} messages of {name_of(subject)} wait for their entries"
        if waiting < self._dispatched():
            self.judged.inconclusive.append(
                f"{count}, though later messages of other queues have theirs: legal after a power loss, for each queue "
                "is flushed on its own, and in a copy of a running broker; damage otherwise"
            )
        else:
            self.judged.note(f"{count}; the broker writes them at its next start")

    def _shortened(self, departure: Departure, run: JoinedQueue, events: Iterable[Event]) -> Departure:
        """The same departure, told with the one step that matters: the append of the message without entry."""
        number = int(departure.state.indexed)
        waiting = self._appended(events, number)
        told = (
            waiting and self._replay(self._state(run, indexed=number, end=number), [waiting, departure.event]).departure
        )
        before = max(0, run.messages + run.indexed - run.first - 1)
        return replace(told, left_out=before, number=before + 2) if told else departure

    def _settled_up_to(self) -> int:
        """Up to where every message has its entry: the log's end after a clean stop.

        After any other, what the broker's next start will not dispatch again (docs/rocketmq.md#recovery-unclean;
        brokers from 5.4 on begin at the checkpoint's `indexed`, seen on 5.5.0). Where that is not known, nothing.
        """
        known = self.store.checkpoint
        if self.store.clean:
            return self.judged.end
        settled = self.store.start
        if known is None or known.indexed == 0:
            return settled
        limit = min(known.log, known.queues) - SLACK_MS
        for file in self.store.files:
            header = file_access.header_at(file, 0)
            if not header.known:
                break
            if header.time <= limit:
                settled = file.base
        return min(settled, known.indexed)

    def _dispatched(self) -> int:
        """The position of the last message that is known to have its entry, over all queues."""
        return max((run.last for run in self.judged.queues.values() if run.indexed == run.end), default=0)

    def _is_deleted(self, subject: Subject, run: JoinedQueue) -> bool:
        """The topic was deleted: nothing of it is left, or its other queues were made anew since."""
        topic = subject[0]
        folder = self.store.queue_folder(*subject)
        if "/" in topic or folder.is_dir():
            return False
        if not folder.parent.is_dir():
            light = topic.startswith(LIGHT)
            gone = (
                not self.store.settings if light else self.store.topics is not None and topic not in self.store.topics
            )
            if gone:
                self.judged.note(
                    f"{topic} has messages in the log, no consume queue, and is not in topics.json: deleted"
                )
            return gone
        others = [(s, r) for s, r in self.judged.queues.items() if s[0] == topic and s != subject and r.last > run.last]
        anew = any(r.restarted or (self._slot(s, r.first - 1) or (0, 0, 0))[1] == BLANK_SLOT for s, r in others)
        anew = anew or any((self._slot(s, 0) or (0, 0, 0))[1] == BLANK_SLOT for s, _ in others)
        if anew:
            self.judged.note(
                f"{name_of(subject)} has no consume queue: its topic was deleted, and made anew without it"
            )
        return anew

    def _slot(self, subject: Subject, number: int) -> tuple[int, int, int] | None:
        """Position, size and tag code in slot `number`, or None where it is not written."""
        data = bytearray(ENTRY)
        if number >= 0 and self.store.has_queues:
            file_access.read_entries(self.store, *subject, number, memoryview(data))
        place, size, tag = (int.from_bytes(data[a:b], "big", signed=True) for a, b in ((0, 8), (8, 12), (12, 20)))
        return (place, size, tag) if size > 0 and place >= 0 else None  # docs/rocketmq.md#entry: as the broker reads it

    def _left_over(self, subject: Subject, run: JoinedQueue) -> None:
        """The slot behind the last entry: unused; a repeated entry; one whose message is gone; or old bytes."""
        slot = self._slot(subject, run.end)
        if slot is None or slot[1] == BLANK_SLOT or any(low <= slot[0] < high for low, high in self.judged.damage):
            return
        if slot[0] >= self.judged.end:
            self.beyond.append((slot[0], name_of(subject)))
        elif slot == self._slot(subject, run.end - 1) and self.store.clean:
            position, size, tag = slot
            repeated = QUEUE.index(number=run.end, position=position, size=size, tag=tag)
            self.judged.joint(self.judged.end, "queue", name_of(subject), [repeated])
            outcome = self._replay(self._state(run, end=run.end), [repeated])
            if outcome.departure:
                run.breach = self.judged.find(name_of(subject), run.last, outcome.departure)
        else:
            self.judged.note(f"{name_of(subject)} has old bytes behind its last entry")

    def _without_messages(self) -> None:
        """Queues that have files and no message in the log: only the files can be judged."""
        for subject in queue_folders(Path(self.store.path)):
            if subject not in self.judged.queues and wants(self.options, *subject):
                outcome = self._replay(self.spec.initial, self._files(subject))
                self.judged.cover("queue", outcome.covered)
                self.judged.joint(self.judged.end, "queue", name_of(subject), self._files(subject))
                if outcome.departure:
                    self.judged.find(name_of(subject), self.judged.end, outcome.departure)
                elif self._names_records(subject):
                    self.judged.inconclusive.append(
                        f"{name_of(subject)} has entries that point into the log, and no message in it: "
                        "entries of another queue, or old bytes"
                    )

    def _names_records(self, subject: Subject) -> bool:
        """Whether the first or the last entry of a queue without messages points into the log."""
        there = queue_files(self.store.queue_folder(*subject))
        for file in there[:1] + there[-1:]:
            data = np.zeros(file.length, np.uint8)
            file_access.read_exactly(file, 0, data.data)
            slots = data[: file.length // ENTRY * ENTRY].view(SLOT)
            written = slots["position"][(slots["size"] > 0) & (slots["size"] != BLANK_SLOT)]
            if ((written >= self.store.start) & (written < self.judged.end)).any() and not subject[0].startswith(LIGHT):
                return True
        return False
