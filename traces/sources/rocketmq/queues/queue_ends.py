"""The judgement of queues that needs the whole log: their last messages, their files, and later slots."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import compress, dropwhile

import numpy as np

from gapless.spec.catalog import State
from gapless.spec.language import Number
from gapless.spec.queue import BLANK_SLOT
from gapless.traces.judging.building import STEPS
from gapless.traces.judging.bulk_accept import accepted
from gapless.traces.options import Options
from gapless.traces.replay.exact import Departure, Event, named
from gapless.traces.sources.rocketmq.blame import queues as situations
from gapless.traces.sources.rocketmq.blame.situation import Decision
from gapless.traces.sources.rocketmq.joining.findings import Breach, Hazard, QueueProgress, StoreFindings
from gapless.traces.sources.rocketmq.queues.absent_queues import AbsentQueues
from gapless.traces.sources.rocketmq.queues.batch_order import BatchOrder
from gapless.traces.sources.rocketmq.queues.empty_files import empty_end
from gapless.traces.sources.rocketmq.queues.joined_queues import MISSING, QueueJudge
from gapless.traces.sources.rocketmq.queues.queue_tables import EndsTableJudge
from gapless.traces.sources.rocketmq.queues.queue_twins import TwinQueues
from gapless.traces.sources.rocketmq.queues.served_queues import is_light
from gapless.traces.sources.rocketmq.segments import splits
from gapless.traces.sources.rocketmq.segments.queue_events import queue_events
from gapless.traces.sources.rocketmq.segments.results import Subject, name_of
from gapless.traces.sources.rocketmq.segments.splits import SplitReader
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.files import ENTRY, FARTHEST, SLOT, can_be_a_folder, read_exactly
from gapless.traces.sources.rocketmq.store.links import is_behind
from gapless.traces.sources.rocketmq.store.names import HALF_TOPICS, OP_TOPIC, SCHEDULE_TOPIC, TABLE_OP_TOPIC
from gapless.traces.sources.rocketmq.store.selection import includes_queue
from gapless.traces.sources.rocketmq.store.settings import is_slave

QUEUE = STEPS["queue"]
NEVER_DELETED = frozenset({*HALF_TOPICS, OP_TOPIC, TABLE_OP_TOPIC, SCHEDULE_TOPIC})  # no operator can delete them
SLOTS = 512  # that are read at once, of those behind a queue's end
NAMED = 5  # queues that one note names


class QueueEnds:
    """Judges the ends of all queues; `beyond`: entries behind a last message that point beyond the log."""

    def __init__(self, judged: StoreFindings, options: Options, queues: QueueJudge) -> None:
        self.judged = judged
        self.store = judged.store
        self.options = options
        self.joined = queues
        self.settle = [QUEUE.settle(upto=judged.end)]
        self.beyond: list[tuple[int, str]] = []
        self.reached = -1  # the last message that has an entry, of queues in which others wait
        self.waits: list[int] = []  # log position of the first message without an entry, of queues that end before it
        self.early: list[str] = []  # queues of a copy whose checkpoint is younger
        self.absent = AbsentQueues(judged)
        self.topics: dict[str, list[Subject]] = {}

    def finish(self) -> None:
        """Judges the rest of every queue after the log's end is known."""
        queues = sorted(self.judged.queues.items())
        for subject, run in queues:
            if run.restarted:
                self._judge_whole(subject, run)
        self.report_suspects()
        settled = self._settled(queues)
        for subject, run in queues:
            self._settle(subject, run, settled=subject in settled)
        if self.store.batched and not self.store.live:
            BatchOrder(self.judged, self.joined).judge()
        if self.store.twin:
            TwinQueues(self.judged, self.joined, self.store.twin).judge()
        if written := self.store.database or self.store.twin:
            table = EndsTableJudge(self.judged, self.joined, written)
            table.judge()
            self.beyond += table.beyond
        if not self.store.live:
            self._without_messages()
        self._report_several()

    def _report_several(self) -> None:
        """Notes causes that many queues have in common once."""
        joined = self.joined
        for situation, names in (
            (situations.PASSED_BY, self.early),
            (situations.MISSING_BEFORE_OTHERS, [f"{name} from {first:,} on" for name, first in joined.waiting.items()]),
            (situations.MISSING_BEFORE_FILES, [f"{name} from {first:,} on" for name, first in joined.expired.items()]),
            (situations.LENGTH_CHANGED, [f"{name} of {length:,} bytes" for name, length in joined.resized.items()]),
        ):
            self.judged.blame(situation, count=len(names), names=_some(names))
        self.absent.report()

    def _judge_whole(self, subject: Subject, run: QueueProgress) -> None:
        """Judges a queue whose numbers start again at 0: only messages since its last start have entries."""
        if run.breach in self.judged.breaches:
            self.judged.breaches.remove(run.breach)
        run.breach = run.suspect = run.pending = None
        run.waits = False
        self.joined.waiting.pop(name_of(subject), None)
        opened = self._opened(subject, run)
        begin = self.joined.state(run, first=opened, indexed=opened, end=opened, blank=0)
        outcome = self.joined.replayed(begin, self._since(subject, run.recreated_at))
        if outcome.departure and self._is_of_a_life_before(subject, run, outcome.departure):
            every = self._since(subject, run.recreated_at)
            events = dropwhile(lambda event: named("queue", event)["position"] < run.recreated_at, every)
            outcome = self.joined.replayed(self.joined.state(run, first=0, indexed=0, end=0, blank=0), events)
        elif outcome.departure and (
            outcome.departure.event[0] == "append" or self._keeps_entries(subject, run, outcome.departure)
        ):
            # It did not start again, then, and one number is wrong: the first that begins at 0 again.
            run.restarted = False
            outcome = self.joined.replayed(begin, self._since(subject, FARTHEST), profile="strict")
        if outcome.departure:
            self.joined.find(subject, run, outcome.departure)
            return
        self.judged.cover("queue", outcome.covered)
        for name, count in outcome.deviations.items():
            self.judged.anomaly(name, count, run.recreated_at, name_of(subject))
        state = outcome.state
        run.first, run.indexed, run.end, run.blank = state.first, state.indexed, state.end, state.blank
        if run.indexed < run.end and self._has_entries(subject, run):
            self._wait(subject, run, outcome.state, ())

    def _opened(self, subject: Subject, run: QueueProgress) -> int:
        """Returns the number of the queue's first message in the log, whose first files may have expired."""
        if run.began >= self.store.start:
            return run.opened
        first = next((e for e in self._since(subject, FARTHEST) if e[0] == "append"), None)
        return named("queue", first)["number"] if first else run.opened

    def _keeps_entries(self, subject: Subject, run: QueueProgress, departure: Departure) -> bool:
        """True if it departs at an entry of before its numbers started at 0 again: a deletion takes such entries.

        A slave keeps them if its master's topic is deleted. Source: docs/rocketmq.md#deleted-topics, #replicas.
        """
        args = named("queue", departure.event)
        if departure.event[0] != "index" or args["position"] >= run.recreated_at or is_slave(self.store.settings):
            return False
        record = file_access.record_at(self.store, args["position"])
        return record is not None and (record.topic, record.queue, record.number) == (*subject, args["number"])

    def _is_of_a_life_before(self, subject: Subject, run: QueueProgress, departure: Departure) -> bool:
        """True if it departs before its topic was last created again: those entries are not read any more."""
        args = named("queue", departure.event)
        if departure.event[0] != "append" or args["position"] >= run.recreated_at:
            return False
        self.judged.blame(
            situations.NUMBER_BEFORE_DELETION, queue=name_of(subject), position=args["position"], number=args["number"],
            expected=int(departure.state.end), recreated=run.recreated_at,
        )  # fmt: skip
        return True

    def _since(self, subject: Subject, begin: int) -> Iterator[Event]:
        """Yields all events of one queue, read again; entries only of messages from position `begin` on."""
        counts = False
        for split in splits.splits(self.store):
            for scanned in SplitReader(self.store, split).segments():
                if scanned.start >= self.judged.end:
                    return
                mine = queue_events(self.store, scanned.columns, lambda *queue: queue == subject)
                for event in mine.of_subject(subject):
                    if event[0] == "append":
                        counts = named("queue", event)["position"] >= begin
                        yield event
                    elif counts:
                        yield event

    def report_suspects(self, only: Collection[Subject] | None = None) -> None:
        """Replays the suspects exactly, or some: one story of every kind, and more while they are few."""
        queues = self.judged.queues if only is None else {subject: self.judged.queues[subject] for subject in only}
        suspects = [(run.suspect, subject) for subject, run in queues.items() if run.suspect is not None]
        for suspect, subject in sorted(suspects, key=lambda one: (one[0].start, one[1])):
            may_wait = suspect.refusal.rule == MISSING and not self.judged.accuses(situations.MISSING_BEFORE_OTHERS)
            if not may_wait and self.judged.is_over_limit(suspect.refusal.rule or ""):
                continue
            run = self.judged.queues[subject]
            outcome = self.joined.replayed(suspect.state, self.joined.events(suspect.split, suspect.start, subject))
            if outcome.departure:
                self.joined.find(subject, run, outcome.departure)
                continue
            run.suspect = None
            self.judged.blame(situations.READ_OTHERWISE, queue=name_of(subject))

    # -- messages without entries ------------------------------------------------------------------------------------

    def _has_entries(self, subject: Subject, run: QueueProgress) -> bool:
        """True if the queue's messages must have readable entries."""
        unread = run.batches or self.store.live or self.store.no_queues or is_behind(self.store.broken, *subject)
        return not unread and not self._is_deleted(subject, run)

    def _settled(self, queues: list[tuple[Subject, QueueProgress]]) -> frozenset[Subject]:
        """The queues whose messages all have their entries, and which a kernel lets settle."""
        ends = [(subject, run) for subject, run in queues if run.indexed == run.end and not run.ended]
        names = ("first", "indexed", "end", "blank")
        begin = {name: [getattr(run, name) for _, run in ends] for name in names}
        accepts = accepted("queue", [self.settle] * len(ends), self.options, start=self.store.start, **begin)
        return frozenset(subject for subject, _ in compress(ends, accepts))

    def _settle(self, subject: Subject, run: QueueProgress, *, settled: bool) -> None:
        """The end of a queue: no message waits for an entry that will not come, and no entry is left over.

        `settled`: a kernel has found so; of the entries that are left over, it was not asked.
        """
        if run.ended or not self._has_entries(subject, run):
            return
        if run.indexed == run.end:
            if self.judged.exported:
                self.judged.joint(self.judged.end, "queue", name_of(subject), self.settle)
            if settled:
                self.judged.cover("queue", {"settle": 1})
            else:
                outcome = self.joined.replayed(self.joined.state(run, end=run.end), self.settle)
                self.judged.cover("queue", outcome.covered)
                if outcome.departure:
                    self.joined.find(subject, run, outcome.departure)
                    return
            self._left_over(subject, run)
        elif run.pending:
            split, start = run.pending
            events = self.joined.events(split, start, subject)
            first = next((named("queue", e)["number"] for e in events if e[0] == "append"), run.indexed)
            indexed = (named("queue", e)["position"] for e in events if e[0] == "index")
            self.reached = max(self.reached, max((at for at in indexed if at < self.judged.end), default=-1))
            outcome = self.joined.replayed(self.joined.state(run, indexed=min(run.indexed, first), end=first), events)
            if outcome.departure is None:
                self._wait(subject, run, outcome.state, events)

    def _wait(self, subject: Subject, run: QueueProgress, state: State, events: Iterable[Event]) -> None:
        """Messages without entries: legal where the broker's next start will write them."""
        settle = QUEUE.settle(upto=self._settled_up_to(subject))
        self.judged.joint(self.judged.end, "queue", name_of(subject), [settle])
        outcome = self.joined.replayed(state, [settle])
        waiting = int(state.positions[state.indexed])
        if outcome.departure and self.judged.accuses(situations.PASSED_BY):
            departure = self._shortened(outcome.departure, run, events)
            unless = self.judged.caveat(situations.PASSED_BY)
            run.breach = self.judged.find(name_of(subject), waiting, departure, unless)
        elif outcome.departure:
            self.early.append(name_of(subject))
        else:
            self._wait_for_a_start(subject, run, waiting)

    def _wait_for_a_start(self, subject: Subject, run: QueueProgress, waiting: int) -> None:
        """Messages without entries from position `waiting` on, which a start writes."""
        if self.store.database_of(subject):
            situation = situations.WAITS_FOR_DATABASE
        else:
            self.waits.append(waiting)
            behind = any(run.last > waiting and run.indexed == run.end for run in self.judged.queues.values())
            situation = situations.WAITS_BEFORE_OTHERS if behind else situations.WAITS
        values = {"count": run.end - run.indexed, "queue": name_of(subject)}
        if self.judged.blame(situation, **values) is Decision.PASS:
            self.judged.unwritten.append(situation.sentence(self.judged.cell(situation), values))

    def _shortened(self, departure: Departure, run: QueueProgress, events: Iterable[Event]) -> Departure:
        """Shortens a departure to the one step that matters: the append of the message without entry."""
        number = int(departure.state.indexed)
        waiting = self.joined.appended(events, number)
        begin = self.joined.state(run, indexed=number, end=number)
        shorter = waiting and self.joined.replayed(begin, [waiting, departure.event]).departure
        before = max(0, run.messages + run.indexed - run.first - 1)
        return replace(shorter, left_out=before, number=before + 2) if shorter else departure

    def _settled_up_to(self, subject: Subject) -> int:
        """Up to where every message has its entry: what the broker's next start will not dispatch again."""
        by_files = self.store.clean and not self.store.database_of(subject)
        return self.judged.end if by_files else min(self.judged.end, self.joined.redispatched_of(subject))

    @property
    def earlier(self) -> int:
        """The number of queues that end before one of their messages, though another has a later entry."""
        queues = self.judged.queues.values()
        reached = max((run.last for run in queues if run.first < run.indexed == run.end), default=-1)
        reached = max(reached, self.reached)
        return sum(position < reached for position in self.waits)

    def _is_deleted(self, subject: Subject, run: QueueProgress) -> bool:
        """True if the queue has no file, because its topic was deleted, and nothing was sent to it since.

        A deletion takes the files of all queues of a topic. So nothing was deleted after the last message of this one
        if another queue of the topic has an older entry. And a broker that did not stop in order may have had no time
        to create the file of a new queue.

        Source: docs/rocketmq.md#deleted-topics.
        """
        if self.store.queues.get(subject) or not can_be_a_folder(subject[0]):
            return False
        if run.began >= self._settled_up_to(subject) or self._has_older(subject, run.last):
            return False
        if subject[0] in NEVER_DELETED:
            self.judged.blame(situations.FILES_GONE, queue=name_of(subject))
        else:
            self.absent.add(subject)
        return True

    def _has_older(self, subject: Subject, position: int) -> bool:
        """True if another queue of the same topic has an entry for a message before `position`."""
        for other in self._queues_of(subject[0]):
            run = self.judged.queues[other]
            if other != subject and self.store.queues.get(other) and run.began < position:
                slot = self.joined.slot(other, max(run.first, run.blank))
                if slot is not None and slot[1] != BLANK_SLOT and slot[0] < position:
                    return True
        return False

    def _queues_of(self, topic: str) -> list[Subject]:
        """The queues of a topic that have messages in the log."""
        if not self.topics:
            for subject in self.judged.queues:
                self.topics.setdefault(subject[0], []).append(subject)
        return self.topics[topic]

    # -- what lies behind the entries, and queues without messages ----------------------------------------------------

    def _left_over(self, subject: Subject, run: QueueProgress) -> None:
        """Judges the slot behind the last entry: unused, repeated, without its message, or old bytes.

        The next start may take a slot for an entry: that step is reported as a hazard. A start takes no slot out of a
        database, whose table has the queue's end; of a batch queue, it was never seen.
        """
        if self.store.database_of(subject) or subject in self.store.batched:
            return
        slot = self.joined.behind(subject, run)
        if slot is None:
            self._fear_empty_files(subject, run)
            return
        if any(low <= slot[0] < high for low, high in self.judged.damage):
            return
        if slot[0] >= self.judged.end:
            self.beyond.append((slot[0], name_of(subject)))
            return
        position, size, tag = slot
        entry = QUEUE.index(number=run.end, position=position, size=size, tag=tag)
        outcome = self.joined.replayed(self.joined.state(run, end=run.end), [entry])
        repeats = slot == self.joined.slot(subject, run.end - 1)
        if self.judged.accuses(situations.REPEATED_BEHIND if repeats else situations.LEFT_OVER):
            self.judged.joint(self.judged.end, "queue", name_of(subject), [entry])
            if outcome.departure:
                run.breach = self.judged.find(name_of(subject), run.last, outcome.departure)
        elif outcome.departure:
            breach = Breach(name_of(subject), run.last, outcome.departure)
            self.judged.hazards.append(Hazard(breach, self._taken_next(subject, run.end)))

    def _fear_empty_files(self, subject: Subject, run: QueueProgress | None) -> None:
        """Reports the slots of empty files that the next start takes for entries. `run`: None without messages."""
        empty = empty_end(self.store, subject, run.end if run else None)
        if empty is None or (self.store.before_5 and self._newest_waits):
            return  # an older broker does not look at it then
        number = Number(empty.first)
        position, size, tag = file_access.read_slot(self.store, *subject, number)
        state = replace(self.joined.spec.initial, first=run.first if run else number, indexed=number, end=number)
        outcome = self.joined.replayed(state, [QUEUE.index(number=number, position=position, size=size, tag=tag)])
        if outcome.departure:
            breach = Breach(name_of(subject), run.last if run else self.store.start, outcome.departure)
            self.judged.hazards.append(Hazard(breach, empty.slots, empty.files))

    @cached_property
    def _newest_waits(self) -> bool:
        return self.judged.newest_waits

    def _taken_next(self, subject: Subject, number: int) -> int:
        """Returns the number of slots from `number` on that the next start takes for entries."""
        taken = 0
        while True:
            data = np.zeros(SLOTS * ENTRY, np.uint8)
            file_access.read_entries(self.store, *subject, number + taken, data.data)
            slots = data.view(SLOT)
            inside = (slots["position"] >= 0) & (slots["position"] < self.judged.end) & (slots["size"] > 0)
            run = int(inside.argmin()) if not inside.all() else SLOTS
            taken += run
            if run < SLOTS:
                return taken

    def _without_messages(self) -> None:
        """Queues that have files and no message in the log: only the files can be judged."""
        empty = sorted(
            subject
            for subject in self.store.queues.keys() - self.judged.queues
            if includes_queue(self.options, *subject)
        )
        files = [self.joined.files(subject) for subject in empty]
        refused = frozenset(self.joined.refused(files))
        for at, (subject, found) in enumerate(zip(empty, files, strict=True)):
            self.judged.joint(self.judged.end, "queue", name_of(subject), found)
            if at in refused:
                outcome = self.joined.replayed(self.joined.spec.initial, found)
                self.judged.cover("queue", outcome.covered)
                if outcome.departure:
                    self.judged.find(name_of(subject), self.judged.end, outcome.departure)
                    continue
            if not self.store.database_of(subject) and subject not in self.store.batched:
                self._fear_empty_files(subject, None)
            if self._names_records(subject):
                self.judged.blame(situations.NO_MESSAGES, queue=name_of(subject))

    def _names_records(self, subject: Subject) -> bool:
        """True if the first or the last entry of a queue without messages points into the log."""
        there = self.store.queues[subject]
        for file in there[:1] + there[-1:]:
            data = np.zeros(file.length, np.uint8)
            read_exactly(self.store.queue_file(subject, file), 0, data.data)
            slots = data[: file.length // ENTRY * ENTRY].view(SLOT)
            written = slots["position"][(slots["size"] > 0) & (slots["size"] != BLANK_SLOT)]
            if ((written >= self.store.start) & (written < self.judged.end)).any() and not is_light(subject):
                return True
        return False


def _some(names: Sequence[str]) -> str:
    """The first of several names, in a note."""
    return ", ".join(names[:NAMED]) + ", …" * (len(names) > NAMED)
