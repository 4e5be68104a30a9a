"""Joins the pieces of every queue. What only the whole log shows of a queue is in `queue_ends.py`."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from itertools import compress
from typing import Any

from gapless.spec.catalog import SPECS, State, rule
from gapless.spec.queue import BLANK_SLOT
from gapless.traces.judging.building import STEPS
from gapless.traces.judging.bulk_accept import accepted
from gapless.traces.options import Options
from gapless.traces.replay.exact import Departure, Event, Outcome, named, replay
from gapless.traces.sources.rocketmq.blame.queues import DEAD_LETTER, MISSING_BEFORE_FILES, MISSING_BEFORE_OTHERS
from gapless.traces.sources.rocketmq.joining.findings import QueueProgress, RefusedPiece, StoreFindings
from gapless.traces.sources.rocketmq.queues.served_queues import is_light
from gapless.traces.sources.rocketmq.segments.queue_events import QueueEvents, queue_events
from gapless.traces.sources.rocketmq.segments.results import Piece, Segment, Slot, Subject, name_of
from gapless.traces.sources.rocketmq.segments.splits import Split, SplitReader
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import ENTRY, QueueFile, born_with
from gapless.traces.sources.rocketmq.store.names import DEAD
from gapless.traces.sources.rocketmq.store.settings import number_set, rewritten

QUEUE = STEPS["queue"]
MISSING = rule("queue/no-entry-before-it-is-missing").id
SLACK_MS = 3000  # how far before its checkpoint an unclean start begins to dispatch again


class QueueJudge:
    """The runs of all queues, joined."""

    def __init__(self, judged: StoreFindings, options: Options) -> None:
        self.judged = judged
        self.store = judged.store
        self.options = options
        self.spec = SPECS["queue"]
        self.waiting: dict[str, int] = {}  # queues where an entry is missing that the next start writes: its number
        self.expired: dict[str, int] = {}  # queues whose copy may have begun after their first files expired: the same
        self.resized: dict[str, int] = {}  # queues whose only file is of a length that a broker may have had set
        self.found = cache(self._found)
        self.read = lru_cache(maxsize=1)(self._read)  # many queues may wait for their entries in the same segment

    def forget_reads(self) -> None:
        """Forgets slots that were read: the store has grown since."""
        self.read.cache_clear()
        self.found.cache_clear()
        self.__dict__.pop("_redispatched", None)

    # -- joining ---------------------------------------------------------------------------------------------------

    def add(self, split: Split, segment: Segment) -> None:
        """Join one segment's pieces. Segments come in log order."""
        queues, damages = self.judged.queues, len(self.judged.damage)
        pieces = list(segment.pieces.each())
        new = []
        for row in pieces:
            if row[0] not in queues:
                piece = Piece(*row)
                claim = piece.number
                queues[piece.subject] = QueueProgress(claim, claim, claim, claim, piece.began, damage_seen=damages)
                new.append(piece)
        self._open(new)
        here = split, segment.start
        for row in pieces:
            subject, number, first, indexed, end, began, last, messages, batches, _, behind, stop, refusal = row
            run = queues[subject]
            if number == 0 and run.messages:
                run.restarted, run.recreated_at = True, began
            run.messages += messages
            run.batches += batches
            run.last, run.behind, run.stop = last, behind, stop
            if run.restarted or run.ended:
                continue
            if number == run.end == run.indexed and refusal is None and first <= number:
                run.indexed, run.end, run.damage_seen = indexed, end, damages  # as `_join` does, of nearly all
                if indexed < end and run.pending is None:
                    run.pending = here
                continue
            if damages > run.damage_seen and number > run.end:
                run.skipped += number - run.end
                run.indexed = run.end = number  # what is missing lies in the damage
            run.damage_seen = damages
            self._join(split, segment.start, run, Piece(*row))

    def _open(self, new: list[Piece]) -> None:
        """The steps before the first message: each queue is found, its files, the entries that outlive theirs."""
        opened = QUEUE.each("open", number=[piece.number for piece in new], start=[self.store.start] * len(new))
        traces = [[event, *self.files(piece.subject)] for event, piece in zip(opened, new, strict=True)]
        for piece, events in zip(new, traces, strict=True):
            kept = written(piece.before)
            if kept is not None and kept[1] != BLANK_SLOT:
                events.append(QUEUE.outlive(number=piece.number - 1, position=kept[0]))
            if self.judged.exported:
                self.judged.joint(self.store.start, "queue", name_of(piece.subject), events)
        for at in self.refused(traces):
            subject, outcome = new[at].subject, self.replayed(self.spec.initial, traces[at])
            self.judged.cover("queue", outcome.covered)
            if outcome.departure:
                breach = self.judged.find(name_of(subject), new[at].began, outcome.departure)
                self.judged.queues[subject].breach = breach

    def find_files(self) -> None:
        """The files of queues that were opened while the store was watched, and are those that count only now."""
        subjects = sorted(self.judged.queues)
        traces = [self.files(subject) for subject in subjects]
        for at in self.refused(traces):
            outcome = self.replayed(self.spec.initial, traces[at])
            self.judged.cover("queue", outcome.covered)
            if outcome.departure:
                run = self.judged.queues[subjects[at]]
                run.breach = self.judged.find(name_of(subjects[at]), run.began, outcome.departure)

    def refused(self, traces: Sequence[Sequence[Event]], **begin: Sequence[int] | int) -> list[int]:
        """Returns the traces that a kernel refuses; accepted events of the others are counted."""
        accepts = accepted("queue", traces, self.options, **begin)
        self.judged.cover("queue", Counter(event[0] for trace in compress(traces, accepts) for event in trace))
        return [at for at, accept in enumerate(accepts) if not accept]

    def files(self, subject: Subject) -> list[Event]:
        """One event per file of the consume queue; an empty last one is deleted at the broker's next start."""
        if self.store.watched or self.store.database_of(subject):
            return []
        others, unit, there = self.store.queue_file_size, ENTRY, self.store.queues.get(subject, ())
        if self.store.batches and subject in self.store.batched:
            others, unit, there = self.store.batches.file_size, 1, self.store.batched[subject]
        full = born_with(there, others)
        if len(there) == 1 and there[0].length not in (full, 0) and rewritten(self.store.settings):
            if there[0].length != self._length_set(subject):
                self.resized[name_of(subject)] = there[0].length
            full = 0
        return [self.found(file, full, unit) for file in there if file.length or file is not there[-1]]

    def _length_set(self, subject: Subject) -> int:
        """The length that settings give a file of the queue that is born now."""
        if subject in self.store.batched:
            return number_set(self.store.settings, "mapperFileSizeBatchConsumeQueue")
        return -(-number_set(self.store.settings, "mappedFileSizeConsumeQueue") // ENTRY) * ENTRY

    def _found(self, file: QueueFile, full: int, unit: int) -> Event:
        """A file is found, which is born with whole entries at least."""
        return QUEUE.find_file(base=file.base, length=file.length, full=full or -(-file.length // unit) * unit)

    def _join(self, split: Split, start: int, run: QueueProgress, piece: Piece) -> None:
        """Compares the piece's claim with the queue's state; after a difference or refusal, judges it exactly."""
        claim, refusal, end = piece.number, piece.refusal, piece.end
        if refusal and refusal.rule and claim == run.end == run.indexed:
            run.suspect = RefusedPiece(split, start, self.state(run, end=run.end), refusal)
            run.indexed, run.end = piece.indexed, end
            return
        blank = piece.first > claim
        if claim == run.end == run.indexed and refusal is None and (not blank or run.indexed == run.first):
            run.indexed = piece.indexed
            if blank:
                run.first = run.blank = piece.first
        elif claim != run.end or refusal or piece.indexed > claim or blank:
            outcome = self.replayed(self.state(run, end=run.end), self.events(split, start, piece.subject))
            if outcome.departure:
                self.find(piece.subject, run, outcome.departure)
                return
            run.first, run.blank = outcome.state.first, outcome.state.blank
            run.indexed, end = outcome.state.indexed, outcome.state.end
        # Otherwise the piece has no entries at all: its messages wait behind those that wait already.
        run.end = end
        if run.indexed < run.end and run.pending is None:
            run.pending = (split, start)

    def find(self, subject: Subject, run: QueueProgress, departure: Departure) -> None:
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
        written_again = departure.rule == MISSING and position >= self.redispatched_of(subject)
        if written_again and not self.judged.accuses(MISSING_BEFORE_OTHERS):
            run.waits = True
            self.waiting[name_of(subject)] = number
        elif (
            departure.rule == MISSING
            and not self.judged.accuses(MISSING_BEFORE_FILES)
            and self._lies_before_its_files(subject, number)
        ):
            run.waits = True
            self.expired[name_of(subject)] = number
        elif (letter := self._dead_letter(subject, run, departure)) is not None:
            run.waits = True
            self.judged.blame(DEAD_LETTER, queue=name_of(subject), position=letter)
        else:
            run.breach = self.judged.find(name_of(subject), position, departure)

    def _lies_before_its_files(self, subject: Subject, number: int) -> bool:
        if self.store.database_of(subject) or subject in self.store.batched:
            return False
        files = self.store.queues.get(subject, ())
        return bool(files) and number < files[0].base // ENTRY

    def _dead_letter(self, subject: Subject, run: QueueProgress, departure: Departure) -> int | None:
        """Returns the position of a message in a light queue that some versions keep out of all queues.

        Its number is an old one, and 0 looks as if the queue were created again. Source:
        docs/rocketmq.md#multi-dispatch.
        """
        appended = departure.event[0] == "append"
        if not is_light(subject) or self.store.before_5 or not (appended or run.restarted):
            return None
        position = int(named("queue", departure.event)["position"]) if appended else run.recreated_at
        record = file_access.record_at(self.store, position)
        return position if record is not None and record.topic.startswith(DEAD) else None

    def appended(self, events: Iterable[Event], number: int) -> Event | None:
        """The append of message `number`."""
        return next((e for e in events if e[0] == "append" and named("queue", e)["number"] == number), None)

    def _position(self, departure: Departure, run: QueueProgress) -> int:
        """The log position that a departure is about: its message's, or else that of the queue's last one."""
        action, args = departure.event[0], named("queue", departure.event)
        if action == "append":
            return args["position"]
        state = departure.state
        for number in (state.indexed, args["number"] if action.startswith("index") else state.indexed):
            if number in state.sizes.entries:  # of positions, 0 is no entry
                return int(state.positions[number])
        return run.last

    def redispatched_of(self, subject: Subject) -> int:
        """Returns the position from which the next start dispatches a queue again, after an unclean stop.

        A database has that position itself, after a stop of either kind: its content was written together.

        Source: docs/rocketmq.md#rocksdb-queues.
        """
        database = self.store.database_of(subject)
        return database.dispatched if database else self._redispatched

    @cached_property
    def _redispatched(self) -> int:
        """The same, of queues in files.

        Brokers from 5.5 on begin at the checkpoint's `indexed`, seen on 5.5.0. Where it is not known, the log's start.

        Source: docs/rocketmq.md#recovery-unclean.
        """
        known, settled = self.store.checkpoint, self.store.start
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

    def state(self, run: QueueProgress, **values: Any) -> State:
        """The state that the queue has reached, but for `values`."""
        known = {"start": self.store.start, "first": run.first, "indexed": run.indexed, "blank": run.blank}
        return replace(self.spec.initial, **(known | values))

    def replayed(self, state: State, events: Iterable[Event], profile: str | None = None) -> Outcome:
        """Replays the events exactly from `state` on."""
        return replay("queue", state, events, profile=profile or self.options.profile, ignored=self.options.ignored)

    def events(self, split: Split, start: int, subject: Subject) -> list[Event]:
        """One queue's events in the segment that begins at `start`, read again."""
        read = self.read(split, start)
        return read.of_subject(subject) if read else []

    def _read(self, split: Split, start: int) -> QueueEvents | None:
        """The events of all queues in the segment that begins at `start`, read again."""
        again = replace(split, low=start - split.file.base, exact=True)
        scanned = next(SplitReader(self.store, again).segments(), None)
        return queue_events(self.store, scanned.columns) if scanned else None

    def behind(self, subject: Subject, run: QueueProgress) -> Slot | None:
        """Returns the content of the slot behind the queue's last entry."""
        return written(run.behind) if run.stop == run.end else self.slot(subject, run.end)

    def slot(self, subject: Subject, number: int) -> Slot | None:
        """Returns the content of slot `number`."""
        return written(file_access.read_slot(self.store, *subject, number))


def first_number(store: StoreDirectory, queue: Subject, run: QueueProgress) -> int:
    """Returns the number of a queue's first message, after files of the log may have expired.

    If entries are missing, it may be a later one.
    """
    if run.began >= store.start:
        return run.opened
    numbers = range(run.opened, run.end)
    return first_from(numbers, store.start, lambda number: file_access.read_slot(store, *queue, number)[0])


def first_from(numbers: range, position: int, place: Callable[[int], int]) -> int:
    """The first of some numbers whose message lies at a log position or behind it; behind the last one if none does.

    `place`: where the message of a number lies, as its entry says
    """
    return numbers.start + bisect_left(numbers, position, key=place)


def written(slot: Slot) -> Slot | None:
    """The slot, or None where it is not written."""
    position, size, _tag = slot
    return slot if size > 0 and position >= 0 else None  # docs/rocketmq.md#entry: as the broker reads it
