"""The sessions of a store, each from an opening to a stop or a crash: tapes, completed from the bytes of its files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gapless.impl.files.log import CommitLog
from gapless.impl.files.queues import LIGHT, ConsumeQueue
from gapless.impl.recorder import rows as r
from gapless.impl.recorder.event_batches import Subjects
from gapless.impl.recorder.rows import WIDTH, Entries
from gapless.impl.records.kernels import SCHEDULE_TOPIC
from gapless.impl.records.record import Bytes, Ints

NO_BYTES: Bytes = np.zeros(0, np.uint8)
NO_ROWS: Ints = np.zeros((0, WIDTH), np.int64)


@dataclass
class QueueSession:
    """A queue in one session."""

    subject: int  # its number in the recording
    claimed: int  # the number with which its trace of messages begins
    recorded: int  # exclusive end of the entries that were recorded
    begins: int = 0  # the position in the log from which on its trace has the messages


class Sessions:
    """Turns what is on the tape into rows that need no store any more.

    `keep`: puts entries where they last, and says where that is · `subjects`: the queues of all sessions so far.
    """

    def __init__(self, keep: Callable[[Entries], int]) -> None:
        self.count = 0
        self._keep = keep
        self.subjects = Subjects([], [])
        self._log: CommitLog
        self._queues: Sequence[ConsumeQueue] = ()
        self._overlap = 0
        self._delays: Ints = np.zeros(0, np.int64)
        self._base = 0  # where the records begin that are recorded in this session
        self._met: list[QueueSession] = []  # by the queues' indices, as many as were met in this session
        self._last: dict[str, QueueSession] = {}  # of every queue, as it was in its last session
        self._times: dict[str, int] = {}  # of every queue, in how many sessions it was

    # -- beginnings --------------------------------------------------------------------------------------------------

    def begin(self, log: CommitLog, queues: Sequence[ConsumeQueue], *, overlap: bool, delays: Sequence[int]) -> Ints:
        """Rows that say where a store stands that was just opened: recovered, all entries built, all of it safe.

        A trace claims the beginning of a file, so the records of the file being written are recorded again, with their
        entries (of the one before, where that one is empty). In a later session the traces of the log and of
        the entries go on, after a crash.
        """
        self.count += 1
        before = self._log.end if self.count > 1 else log.end
        self._log, self._queues, self._overlap, self._met = log, queues, int(overlap), []
        self._delays = np.array(delays, np.int64)
        self._base = log.end - (log.end - log.start) % log.file_size
        if self._base == log.end and log.start < log.end:
            self._base -= log.file_size
        subjects, keys = np.arange(len(queues)), self._keys()
        records = self._found()
        self._complete_records(records, subjects, keys)
        own = records[:, r.KIND] & r.OWN != 0
        beginnings = []
        for at, queue in enumerate(queues):
            mine = own & (records[:, r.SUBJECT] == at)
            if not _can_be_recorded(queue, records[mine, r.A]):
                own &= ~mine
                records[mine, r.KIND] &= ~r.OWN
                mine &= own
            beginnings.append(self._begin_queue(queue, records[mine, r.A]))
        records[own, r.SUBJECT] = self._subjects()[records[own, r.SUBJECT]]
        if self.count == 1:
            of_log = [_row(r.OPEN, 0, self._base, log.file_size), records, self._blank(records)]
            of_log.append(_row(r.FLUSH, 0, max(self._base, log.flushed)))
        else:
            records[:, r.KIND] += r.MEET - r.FOUND
            of_log = [self._blank_in_flight(before), _row(r.CRASH, 0, log.end), records]
        entries = [self._index(at, session.claimed, session.recorded) for at, session in enumerate(self._met)]
        return _joined([*beginnings, *of_log, *entries])

    def _found(self) -> Ints:
        """A row for each record from `_base` on: its place."""
        if self._base == self._log.end:
            return NO_ROWS
        data, base = self._log.view(self._base)
        places = r.records(data, base, base, min(self._log.end, base + self._log.file_size))
        records = np.zeros((len(places), WIDTH), np.int64)
        records[:, r.KIND], records[:, r.B], records[:, r.C] = r.FOUND, places[:, 0], places[:, 1]
        return records

    def _blank(self, records: Ints) -> Ints:
        """The row of the blank behind the records, if the file at `_base` is full."""
        end = self._log.end
        if self._base == end or end < self._base + self._log.file_size:
            return NO_ROWS
        behind = int(records[-1, r.B] + records[-1, r.C]) if len(records) else self._base
        blank = _row(r.ROLL, 0, behind, end - behind)
        self._mark(blank[0])
        return blank

    def _blank_in_flight(self, before: int) -> Ints:
        """The row of a blank that the last session wrote at its end, `before`, and did not record.

        A blank is recorded when it is on disk, and may be found where its flush never returned: it is inferred.
        """
        end = self._log.end
        if end <= before or end % self._log.file_size:
            return NO_ROWS
        blank = _row(r.ROLL | r.INFERRED, 0, before, end - before)
        self._mark(blank[0])
        return blank

    def _begin_queue(self, queue: ConsumeQueue, numbers: Ints) -> Ints:
        """A queue that is there at the opening; `numbers`: of its messages that are recorded again.

        Entries that recovery built beyond the visible ones were not recorded: they are inferred.
        """
        before, stands = self._last.get(queue.name), queue.committed
        session = self._meet(queue, int(numbers[0]) if len(numbers) else stands, stands)
        subject = session.subject
        session.begins = self._log.start if session.claimed == 0 else self._base if len(numbers) else self._log.end
        opened = _row(r.OPEN_QUEUE, subject, session.claimed, session.begins)
        if before is None:
            return _joined([opened, _row(r.OPEN_ENTRIES, subject, stands, self._overlap)])
        kept = min(before.recorded, stands)
        rows = [opened, _row(r.CRASH_ENTRIES, subject, kept)]
        if kept < stands:
            rows += [
                _row(kind | r.INFERRED, subject, kept, stands, self._overlap) for kind in (r.SCAN, r.TAKE, r.WRITE)
            ]
            rows += [_row(kind | r.INFERRED, subject, stands, stands) for kind in (r.COMMIT, r.FLUSH_QUEUE)]
        return _joined(rows)

    def _meet(self, queue: ConsumeQueue, claimed: int, recorded: int) -> QueueSession:
        session = self._last[queue.name] = QueueSession(len(self.subjects.entries), claimed, recorded)
        times = self._times[queue.name] = self._times.get(queue.name, 0) + 1
        self.subjects.entries.append(queue.name)
        self.subjects.messages.append(queue.name if times == 1 else f"{queue.name}+{times}")
        self._met.append(session)
        return session

    def _meet_new(self) -> Ints:
        """Queues that were made since: they begin empty, even if a crash took all they had in an earlier session."""
        rows = []
        for queue in self._queues[len(self._met) :]:
            again = queue.name in self._last
            subject = self._meet(queue, 0, 0).subject
            rows.append(_row(r.OPEN_QUEUE, subject, 0, self._log.start))
            rows.append(_row(r.CRASH_ENTRIES, subject, 0) if again else _row(r.OPEN_ENTRIES, subject, 0, self._overlap))
        return _joined(rows)

    # -- what is on the tape -----------------------------------------------------------------------------------------

    def complete(self, rows: Ints) -> Ints:
        """Rows [n, 8] as they were on the tape, completed in place; without expiry that no trace reaches.

        Raises StoreError, OSError.
        """
        met = self._meet_new() if len(self._queues) > len(self._met) else NO_ROWS
        kind, early = rows[:, r.KIND], []
        for at in np.flatnonzero((kind == r.COMMIT) | (kind == r.ROLL) | (kind == r.EXPIRE)).tolist():
            if kind[at] == r.COMMIT:
                self._commit(rows[at])
            elif kind[at] == r.ROLL:
                self._mark(rows[at])
            elif self._is_early(rows[at]):
                early.append(at)
        self._complete_records(rows, self._subjects(), self._keys())
        return _joined([met, np.delete(rows, early, axis=0) if early else rows])

    def _commit(self, row: Ints) -> None:
        """A row of COMMIT gets the entries that it makes visible, as they lie in their queue."""
        session, to = self._met[row[r.SUBJECT]], int(row[r.A])
        row[r.B] = session.recorded
        row[r.C] = self._keep(self._queues[row[r.SUBJECT]].entries(session.recorded, to))
        session.recorded = max(session.recorded, to)

    def _index(self, queue: int, low: int, high: int) -> Ints:
        """The row of entries that were there at the opening; `queue`: its index."""
        return _row(r.INDEX, self._met[queue].subject, high, low, self._keep(self._queues[queue].entries(low, high)))

    def _complete_records(self, rows: Ints, subjects: Ints, keys: Ints) -> None:
        data, base, low = NO_BYTES, 0, 0
        while (low := r.complete(data, base, rows, low, subjects, keys, self._delays)) < len(rows):
            data, base = self._log.view(int(rows[low, r.B]))

    def _mark(self, row: Ints) -> None:
        """A row of ROLL gets from the log whether its blank is there."""
        position, size = row[r.A : r.C].tolist()
        data, base = self._log.view(position)
        row[r.C] = r.marked(data, position - base, size)

    def _is_early(self, row: Ints) -> bool:
        """True if a row of EXPIRE is about records before the trace of its queue."""
        number, start = int(row[r.A]), int(row[r.B])
        session = self._met[row[r.SUBJECT]]
        return number < session.claimed or start < self._base or start < session.begins

    def _keys(self) -> Ints:
        return np.array([r.queue_key(queue.topic, queue.id) for queue in self._queues], np.int64)

    def _subjects(self) -> Ints:
        return np.array([session.subject for session in self._met], np.int64)


def _can_be_recorded(queue: ConsumeQueue, numbers: Ints) -> bool:
    """True if the found messages of a queue can be recorded again, with the entries of the recording.

    Light queues have their messages in other queues' records; delayed messages were due by the delay levels of their
    time; a topic that was created again has numbers twice, and blanks where it has no messages. Their traces begin with
    what is new.
    """
    if queue.topic.startswith(LIGHT) or queue.topic.encode() == SCHEDULE_TOPIC.tobytes():
        return False
    return not len(numbers) or (
        queue.first <= numbers[0]
        and numbers[0] + len(numbers) == queue.committed
        and bool((np.diff(numbers) == 1).all())
    )


def _row(kind: int, *columns: int) -> Ints:
    return np.array([[kind, *columns, *(0,) * (WIDTH - 1 - len(columns))]], np.int64)


def _joined(parts: Sequence[Ints]) -> Ints:
    some = [part for part in parts if len(part)]
    return some[0] if len(some) == 1 else np.concatenate([NO_ROWS, *some])
