"""Queues that a broker writes twice, to files and to a database, compared with each other.

The files' entries were compared with their messages. The database's entries are compared with them, number by number;
one that differs is reported as the step that it is, an entry of a message. If the database lacks some, the broker may
have been set to write files alone for a time: that accuses no broker.

Source: docs/rocketmq.md#written-twice.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from gapless.traces.judging.building import STEPS
from gapless.traces.report.wording import plural
from gapless.traces.sources.rocketmq.blame.queues import TWIN_LACKS
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.joining.findings import QueueProgress, StoreFindings
from gapless.traces.sources.rocketmq.log.records import SMALLEST, SYS_BORN_V6
from gapless.traces.sources.rocketmq.queues.extension_units import EXTENDED, units_of
from gapless.traces.sources.rocketmq.queues.joined_queues import QueueJudge
from gapless.traces.sources.rocketmq.queues.queue_database import QueueDatabase
from gapless.traces.sources.rocketmq.segments.queue_events import are_delays
from gapless.traces.sources.rocketmq.segments.results import Subject, name_of
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.files import ENTRY, SLOT, LogFile, Maps, QueueFile, read_exactly
from gapless.traces.sources.rocketmq.store.names import SCHEDULE_TOPIC

QUEUE = STEPS["queue"]
Slots: TypeAlias = "npt.NDArray[np.void]"
AT_ONCE = 1 << 16  # entries that are compared
NAMED = 5  # queues that one reason names
LAST_OF_FLAGS, TIME, LONGER = 39, 56, 12  # bytes of a record: its flags, when it was stored, an address of IPv6


class TwinQueues:
    """The queues of a database that a broker writes in addition to files."""

    def __init__(self, judged: StoreFindings, joined: QueueJudge, database: QueueDatabase) -> None:
        self.judged = judged
        self.joined = joined
        self.database = database
        self.maps = Maps()
        self.missing: list[str] = []
        self.compared = 0

    def judge(self) -> None:
        """Compares every queue that is still judged with the database."""
        for subject, run in sorted(self.judged.queues.items()):
            read_there = self.judged.store.database_of(subject)
            if not run.ended and not run.batches and not read_there and self.judged.store.queues.get(subject):
                self._judge_queue(subject, run)
        name = self.database.folder
        self.judged.note(
            f"the same in {name}/, a RocksDB database, as in the files: {plural(self.compared, 'entry', 'entries')}"
        )
        some = ", ".join(self.missing[:NAMED]) + ", …" * (len(self.missing) > NAMED)
        self.judged.blame(TWIN_LACKS, count=len(self.missing), folder=name, names=some)

    def _judge_queue(self, subject: Subject, run: QueueProgress) -> None:
        """One queue: its entries that were judged, as far as the database has them."""
        first, behind = max(run.first, run.blank), -1
        for file in self.database.queues.get(subject, ()):
            low, high = max(file.base // ENTRY, first), min((file.base + file.length) // ENTRY, run.indexed)
            if low >= high:
                continue
            if 0 <= behind < low:
                self.missing.append(f"{name_of(subject)} from {behind:,} on")
            behind = high
            for begin in range(low, high, AT_ONCE):
                if not self._same(subject, run, file, begin, min(begin + AT_ONCE, high)):
                    return

    def _same(self, subject: Subject, run: QueueProgress, file: QueueFile, low: int, high: int) -> bool:
        """True if the entries from number `low` to `high` are the same in both; the first difference departs."""
        ours, theirs = np.zeros((2, (high - low) * ENTRY), np.uint8)
        file_access.read_entries(self.judged.store, *subject, low, ours.data)
        opened = LogFile(self.database.copy, file.base, file.length, file.at)
        read_exactly(opened, low * ENTRY - file.base, theirs.data)
        self._put_tag_codes(subject, low, ours.view(SLOT), theirs.view(SLOT))
        if subject[0] == SCHEDULE_TOPIC:
            self._allow_other_delays(ours.view(SLOT), theirs.view(SLOT))
        (other,) = np.nonzero((ours.reshape(-1, ENTRY) != theirs.reshape(-1, ENTRY)).any(axis=1))
        self.compared += int(other[0]) if len(other) else high - low
        if not len(other):
            return True
        number = low + int(other[0])
        (message,), (entry,) = (data.view(SLOT)[other[:1]].tolist() for data in (ours, theirs))
        events = [
            QUEUE.append(number=number, count=1, position=message[0], size=message[1], tag=message[2]),
            QUEUE.index(number=number, position=entry[0], size=entry[1], tag=entry[2]),
        ]
        outcome = self.joined.replayed(self.joined.state(run, indexed=number, end=number), events)
        if outcome.departure:
            run.breach = self.judged.find(name_of(subject), message[0], outcome.departure, database=self.database)
        return False

    def _put_tag_codes(self, subject: Subject, low: int, ours: Slots, theirs: Slots) -> None:
        """Replaces the addresses of entries by the tag codes of their units: a database has no extension.

        Without a unit, which is reported elsewhere, the tag code in the database is used.
        """
        (named,) = np.nonzero(ours["tag"] <= EXTENDED)
        if len(named):
            units, codes = units_of(
                self.judged.store, [subject], np.zeros(len(named), np.int64), numbers=low + named,
                positions=ours["position"][named].astype(np.int64), tags=ours["tag"][named].astype(np.int64),
                times=np.zeros(len(named), np.int64),
            )  # fmt: skip
            ours["tag"][named] = np.where(units.events.column("whole") == 1, codes, theirs["tag"][named])

    def _allow_other_delays(self, ours: Slots, theirs: Slots) -> None:
        """Put the files' times of delivery in place of those by other delays, which are as right as they.

        What a kill takes from the database is written again by the delays of the next start.
        Source: spec/decisions/0002-tag-codes-of-delayed-messages.md.
        """
        same = (ours["position"] == theirs["position"]) & (ours["size"] == theirs["size"])
        (other,) = np.nonzero(same & (ours["tag"] != theirs["tag"]))
        if len(other):
            stored = self._stored(ours["position"][other].astype(np.int64))
            lawful = other[(stored >= 0) & are_delays(theirs["tag"][other].astype(np.int64) - stored)]
            theirs["tag"][lawful] = ours["tag"][lawful]

    def _stored(self, positions: Ints) -> Ints:
        """Returns the store times in ms of the messages at these positions; -1 without a message."""
        times, sizes = np.full(len(positions), -1, np.int64), np.full(len(positions), SMALLEST)
        for file in self.judged.store.files:
            (here,) = np.nonzero(file.holds(positions, sizes))
            if len(here):
                data, at = self.maps.of(file), positions[here] - file.base
                at += np.where(data[at + LAST_OF_FLAGS] & SYS_BORN_V6, TIME + LONGER, TIME)
                times[here] = data[at[:, None] + np.arange(8)].view(">i8")[:, 0]
        return times
