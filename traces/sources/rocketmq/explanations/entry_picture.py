"""The entries of a queue around a broken one, as a picture: read from its files, with the records that they name."""

from __future__ import annotations

from collections.abc import Iterator

from gapless.spec.catalog import rule
from gapless.spec.queue import BLANK_SLOT
from gapless.traces.problems import shown
from gapless.traces.report.pictures.entries import LogRecord, QueueEntries, QueueEntry
from gapless.traces.sources.rocketmq.joining.findings import Breach, StoreFindings
from gapless.traces.sources.rocketmq.log import scan
from gapless.traces.sources.rocketmq.segments.results import Slot
from gapless.traces.sources.rocketmq.segments.splits import record_before, split_at
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.selection import queue_named

AROUND = 2  # entries on either side of the broken one
OLD = 3  # slots behind the last entry, of those that the next start takes for entries
MISSING = {rule("queue/no-entry-before-it-is-missing").id, rule("queue/every-message-has-its-entry").id}
SIZE = rule("queue/entry-has-the-size-of-its-message").id
TAG = rule("queue/entry-has-the-tag-code-of-its-message").id
PLACE = rule("queue/entry-points-at-its-message").id


def entries_around(judged: StoreFindings, found: Breach, old: int = 0) -> QueueEntries | None:
    """The picture of a broken entry; None where another thing is broken, or entries stand for many messages.

    `old`: how many slots from the broken one on are old bytes that the next start takes for entries.
    """
    number = _broken(found)
    if number is None or number < 0 or queue_named(found.trace) in judged.store.batched:
        return None
    return _EntryReader(judged, found, number, min(old, OLD)).picture()


def _broken(found: Breach) -> int | None:
    """The number of the broken entry, if it is one."""
    if found.spec != "queue":
        return None
    if found.rule in MISSING:
        return int(found.departure.state.indexed)
    if found.action == "settle":
        return int(found.departure.state.blank) - 1
    return found.arguments["number"] if found.action == "index" else None


class _EntryReader:
    """Reads what one picture shows."""

    def __init__(self, judged: StoreFindings, found: Breach, number: int, old: int) -> None:
        self.judged, self.store, self.found = judged, judged.store, found
        self.number, self.old = number, old
        self.queue = queue_named(found.trace)
        self.state = found.departure.state

    def picture(self) -> QueueEntries:
        """Entries, and the records that they name."""
        entries = [self._entry(number) for number in self._numbers()]
        records = {record.position: record for record in self._records(entries)}
        queue = shown(self.found.trace)
        title = f"The entries of {queue} around number {self.number:,}"
        if self.old:
            title = f"Old bytes behind the entries of {queue}: the next start takes them for entries"
        return QueueEntries(
            title=title,
            entries=entries,
            records=[records[position] for position in sorted(records)],
            end=self.judged.end,
        )

    def _numbers(self) -> Iterator[int]:
        """The numbers of the broken entry and its neighbours; behind the queue's end, of written slots alone."""
        run = self.judged.queues.get(self.queue)
        end = max(run.end if run else 0, int(self.state.end))
        last = self.number + max(self.old - 1, AROUND)
        for number in range(max(0, self.number - AROUND, int(self.state.first)), last + 1):
            near = number < end or self._is_broken(number)
            if near or (not self.old and any(self._slot(number))):
                yield number

    def _is_broken(self, number: int) -> bool:
        return self.number <= number < self.number + max(self.old, 1)

    def _slot(self, number: int) -> Slot:
        topic, queue = self.queue
        return file_access.read_slot(self.store, topic, queue, number)

    def _entry(self, number: int) -> QueueEntry:
        position, size, _tag = slot = self._slot(number)
        if self._is_broken(number):
            return self._of_broken(number, slot)
        if size == BLANK_SLOT:
            return QueueEntry(number=number, kind="empty", notes=["a blank slot"])
        if not any(slot):
            return QueueEntry(number=number, kind="empty", notes=["an empty slot"])
        sound = number < self.number or self._is_message(position, number)
        return QueueEntry(number=number, kind="sound" if sound else "later", at=position, notes=[f"byte {position:,}"])

    def _is_message(self, position: int, number: int) -> bool:
        """True if the message of this number begins there."""
        record = file_access.record_at(self.store, position)
        return record is not None and (record.topic, record.queue, record.number) == (*self.queue, number)

    def _of_broken(self, number: int, slot: Slot) -> QueueEntry:
        """The broken entry: its kind, and what is wrong with it in two lines."""
        position, size, tag = slot
        if self.found.rule in MISSING:
            what = "a blank slot" if size == BLANK_SLOT else "" if any(slot) else "an empty slot"
            return QueueEntry(number=number, kind="missing", notes=["missing", *([what] if what else [])])
        if self.old:
            return QueueEntry(number=number, kind="old", at=position, notes=["old bytes", f"byte {position:,}"])
        if self.found.action == "settle":
            return QueueEntry(number=number, kind="wrong", notes=["a blank slot", "no entry follows"])
        if self.found.rule == SIZE:
            notes = [f"size {size:,}", f"its message: {self.state.sizes[number]:,}"]
        elif self.found.rule == TAG:
            notes = [f"tag {tag}", f"message: {self.state.tags[number]}"]
        elif not any(slot):
            return QueueEntry(number=number, kind="wrong", notes=["all zeros"])
        else:
            notes = [f"byte {position:,}", self._why(number, slot)]
        return QueueEntry(number=number, kind="wrong", at=position, notes=notes)

    def _why(self, number: int, slot: Slot) -> str:
        if number > 0 and slot == self._slot(number - 1):
            return f"repeats entry {number - 1:,}"
        return "wrong position" if self.found.rule == PLACE else "no such message"

    # -- the log -------------------------------------------------------------------------------------------------------

    def _records(self, entries: list[QueueEntry]) -> Iterator[LogRecord]:
        """The records that entries name, and the message of the broken one."""
        known = self.number in self.state.sizes.entries  # of positions, 0 is no entry
        mine = int(self.state.positions[self.number]) if known else None
        if mine is not None:
            size = int(self.state.sizes[self.number])
            as_judged = LogRecord(position=mine, size=size, label=f"message {self.number:,}", wanted=self.number)
            yield self._record(mine, self.number) or as_judged
        for at in {entry.at for entry in entries if entry.at is not None} - {mine}:
            start = at if (record := self._record(at)) else _around(self.store, at)
            record = record or (self._record(start) if start is not None and start != mine else None)
            if record:
                yield record

    def _record(self, position: int, wanted: int | None = None) -> LogRecord | None:
        """The record that begins at a position of the log, if one does."""
        if not self.store.start <= position < self.judged.end:
            return None
        record, header = file_access.record_at(self.store, position), file_access.header_of(self.store, position)
        if record is None or not header.known:
            return None
        own = (record.topic, record.queue) == self.queue or wanted is not None
        number = record.number if wanted is None else wanted
        queue = "" if own else shown(f"{record.topic}/{record.queue}")
        return LogRecord(position=position, size=header.size, label=f"message {number:,}", queue=queue, wanted=wanted)


def _around(store: StoreDirectory, position: int) -> int | None:
    """The place of the record that has a byte of the log, if it does not begin there."""
    split = split_at(store, position)
    found = record_before(store, split, position) if split else None
    return int(found[0].log[scan.POSITION, found[1]]) if found else None
