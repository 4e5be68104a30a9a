"""Compacted queues, compared with their records, the broker's own log, and the promise of compaction.

The store's log and queues were judged before. A queue's compacted log is read file by file; then the position up to
which it was compacted, as the broker saved it; and then, from the newest on, every message of the broker's own log
that the compacted one lacks.

Source: docs/rocketmq.md#compaction.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.traces.judging.building import STEPS, Events
from gapless.traces.options import Options
from gapless.traces.replay.exact import Departure, named
from gapless.traces.report.wording import plural
from gapless.traces.sources.rocketmq.blame.situation import switch
from gapless.traces.sources.rocketmq.blame.store import OTHER_MOMENTS
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.lookup import among
from gapless.traces.sources.rocketmq.joining.findings import QueueProgress, StoreFindings
from gapless.traces.sources.rocketmq.layouts.compaction import blame as situations
from gapless.traces.sources.rocketmq.layouts.compaction.compacted_files import (
    FOLDER,
    CompactedFile,
    CompactedQueue,
    opened_queues,
)
from gapless.traces.sources.rocketmq.layouts.compaction.next_with_key import NextWithKey
from gapless.traces.sources.rocketmq.layouts.copied_queue import FOLLOWED, CompactedColumns, CopiedQueue, is_judged
from gapless.traces.sources.rocketmq.layouts.copied_records import CopiedEntries
from gapless.traces.sources.rocketmq.layouts.joined_keys import BODY, KEY, ROWS, compaction_keys
from gapless.traces.sources.rocketmq.layouts.layout import JoinSide, LayoutJudge, without
from gapless.traces.sources.rocketmq.layouts.originals import Buffers, header_in
from gapless.traces.sources.rocketmq.log.records import BLANK
from gapless.traces.sources.rocketmq.queues.batch_queues import Units
from gapless.traces.sources.rocketmq.segments.results import name_of
from gapless.traces.sources.rocketmq.startup.startup_hazards import judge_startup
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.settings import is_on, is_slave

COMPACTION = STEPS["compaction"]
SPEC = SPECS["compaction"]
AT_ONCE = 1 << 18  # messages of the log that are asked for at once
A_START_TAKES = 1000  # ms, at least: between two messages that are closer, no broker was started
SWITCH = "enableCompaction"


def compacts(store: StoreDirectory) -> bool:
    """True if the broker compacts topics, which is the default."""
    return is_on(store.settings, SWITCH, otherwise=True)


class CompactionJudge(LayoutJudge):
    """Judges the compacted queues of a store after its log and queues."""

    def settle(self) -> None:
        """Judges every compacted queue."""
        queues, notes = opened_queues(self.judged)
        if not queues and not notes:
            return
        if not self.judged.judges(OTHER_MOMENTS, switch(on=self.store.watched), what=f"{FOLDER}/ is not judged"):
            return
        self._doubt(notes)
        kept = missed = count = 0
        rooms = Buffers()
        for queue in queues:
            if not is_judged(self, queue.queue, "where they are compacted"):
                continue
            one = CompactedQueueJudge(self.judged, self.options, queue, rooms)
            one.judge()
            kept, missed, count = kept + len(one.numbers), missed + one.missed, count + 1
        if count:
            self.judged.note(
                f"compacted topics agree with the log: {plural(kept, 'message')} of {plural(count, 'queue')}; "
                f"{plural(missed, 'other')} with a key gave way to later ones"
            )

    def _doubt(self, notes: list[str]) -> None:
        """Adds notes about unjudged parts, unless settings turn compaction off."""
        for text in notes if compacts(self.store) else ():
            self.judged.blame(situations.UNREAD, why=text)


class CompactedQueueJudge:
    """One compacted queue. `numbers`, `times`: of the messages that are kept · `missed`: messages that are not.

    `keys`: digests of the keys of those that are kept · `sure`: which of these messages are the log's own, byte for
    byte, so that it need not be asked for their keys.
    """

    def __init__(self, judged: StoreFindings, options: Options, compacted: CompactedQueue, rooms: Buffers) -> None:
        self.judged = judged
        self.store = judged.store
        self.compacted = compacted
        self.name = name_of(compacted.queue)
        # Numbers start again when a topic is created again, and the compacted messages of the old topic stay.
        self.copied = CopiedQueue(
            judged, options, "compaction", compacted.queue, "the compacted log", rooms, once=False
        )
        self.own, self.trace = self.copied.own, self.copied.trace
        self.numbers = self.times = self.keys = np.zeros(0, np.int64)
        self.sure = np.zeros(0, np.bool_)
        self.missed = 0

    def judge(self) -> None:
        """Judges the queue up to the first step that departs."""
        if compacts(self.store):
            judge_startup(self.trace, self.compacted.strange)
        if self.compacted.broken_off:
            self.judged.blame(situations.BROKEN_OFF, queue=self.name)
            return
        if self._is_rewritten:
            self.judged.blame(situations.CREATED_AGAIN, queue=self.name)
        pieces = (self._replay(events, details, last=last) for events, details, last in self._files())
        if all(pieces) and self._holds_position():
            self._ask_for_others()

    @property
    def _is_rewritten(self) -> bool:
        run = self.judged.queues.get(self.compacted.queue)
        return run is not None and run.restarted

    @property
    def run(self) -> QueueProgress | None:
        """The queue in the broker's own log, if its numbers name one message each."""
        run = self.own.run
        return None if run is None or self._is_rewritten or run.batches else run

    def _replay(self, events: Events, details: Ints | None = None, *, last: bool = False) -> bool:
        """Replays events; True if all were accepted.

        `details`: what a finding adds about each, or -1 · `last`: they are of the file that was being written
        """
        refused = self.copied.replay(events, details)
        if refused is None:
            return True
        departure, detail = refused
        written = switch(on=last)
        if self.judged.judges(situations.LAST_ENTRIES, written, queue=self.name, because=departure.because):
            self.trace.report(self.store.start, departure, detail)
        return False

    # -- what is kept --------------------------------------------------------------------------------------------------

    def _files(self) -> Iterator[tuple[Events, Ints | None, bool]]:
        """Yields the files with the entries of each, and True for the last one.

        A broker that is killed may have created a file of records without its file of entries.
        """
        files = self.compacted.files
        if files and files[-1].entries is None and not self.judged.accuses(situations.NO_ENTRIES):
            files = files[:-1]
        for file in files:
            last = file == files[-1]
            records, entries = file.records is not None, file.entries is not None
            yield Events.of(SPEC, [COMPACTION.find_files(base=file.base, records=records, entries=entries)]), None, last
            units = file.units() if last else self._without_old_bytes(file, file.units())
            keys, sure = np.zeros(len(units), np.int64), np.zeros(len(units), np.bool_)
            for low in range(0, len(units), FOLLOWED):
                some = slice(low, min(low + FOLLOWED, len(units)))
                same = keys[some]
                events, details = self._followed(file, units, some, same)
                sure[some] = details is None
                yield events, details, last
                if len(events.action) < len(same):
                    break
            self.keys, self.sure = np.append(self.keys, keys), np.append(self.sure, sure)
            self.numbers = np.append(self.numbers, units["number"].astype(np.int64))
            self.times = np.append(self.times, units["time"].astype(np.int64))

    def _without_old_bytes(self, file: CompactedFile, units: Units) -> Units:
        """Returns the entries without those that an earlier compaction left behind the new ones.

        The numbers fall once there, and the old entries are complete if the new records do not reach them.

        Source: docs/rocketmq.md#compaction-broken-off.
        """
        numbers, positions = (units[name].astype(np.int64) for name in ("number", "position"))
        (falls,) = np.nonzero(np.diff(numbers) <= 0)
        if self.judged.accuses(situations.OLD_ENTRIES) or len(falls) != 1 or file.records is None:
            return units
        at = int(falls[0]) + 1
        reached, there = positions[at - 1] + int(units["size"][at - 1]), int(positions[at])
        if not 0 <= there - file.base < file.records.length:
            return units
        header = header_in([file.records], there)
        intact = header[20:36] == units[at].tobytes()[28:36] + units[at].tobytes()[:8]
        if intact != (there >= reached):
            return units
        number, before = int(numbers[at]), int(numbers[at - 1])
        self.judged.blame(situations.OLD_ENTRIES, queue=self.name, number=number, before=before)
        return units[:at]

    def _followed(self, file: CompactedFile, every: Units, some: slice, keys: Ints) -> tuple[Events, Ints | None]:
        """Returns entries of one file, at most up to one that does not follow the one before it.

        With each comes the byte in which its message differs from the log's; None if all of them are the log's own,
        byte for byte: then `keys` has the digests of their keys.
        """
        units, before = every[some], every[max(some.start - 1, 0) : some.start]
        number, position, size, tag, times, counts = (
            units[name].astype(np.int64) for name in ("number", "position", "size", "tag", "time", "count")
        )
        entries = CopiedEntries(number, position, size, tag)
        begin, last = file.base, int(self.numbers[-1]) if len(self.numbers) else -1
        if len(before):
            begin, last = int(before["position"][0]) + int(before["size"][0]), int(before["number"][0])
        end = file.base + (file.records.length if file.records else 0)
        good = entries.in_order(begin, end, last, joined=True)
        kept = slice(min(good + 1, len(units)))
        events = self.copied.room("find_entry", kept.stop)
        events.column("time")[:], events.column("count")[:] = times[kept], counts[kept]
        details = self.copied.find_entries(
            [file.records] if file.records else [], entries.of(kept), good, events, slice(None),
            CompactedColumns(times[kept], keys[kept]), compared=not self._is_rewritten,
        )  # fmt: skip
        return events, details

    # -- how far it was compacted --------------------------------------------------------------------------------------

    def _holds_position(self) -> bool:
        """Judges the saved position of the compaction; the log may have lost its end since."""
        position, run = self.compacted.position, self.run
        if position < 0:
            return True
        kept = bool(among(np.array([position], np.int64), self.numbers)[0])
        given = hollow = True
        if run is not None:
            given = kept or position < run.end
            if not given and not self.judged.judges(situations.POSITION, queue=self.name, position=position):
                return True
            places, sizes = self.own.places(np.array([position], np.int64))
            hollow = (
                position < run.first
                or compaction_keys(self.store.files, places, sizes, self.own.rooms.maps)[BODY, 0] == 0
            )
        return self._replay(Events.of(SPEC, [COMPACTION.find_position(number=position, given=given, hollow=hollow)]))

    # -- what is not kept ----------------------------------------------------------------------------------------------

    def _ask_for_others(self) -> None:
        """Judges every message of the broker's own log that has a key and was not kept, from the newest on."""
        run = self.run
        if not self.compacted.promised or not compacts(self.store) or self._is_rewritten:
            return
        if run is None:
            self.judged.note(
                f"{self.name}: its compacted topic is not judged for completeness: its consume queue does not show it"
            )
            return
        low, high = max(run.first, run.blank), run.indexed
        if not self.judged.accuses(situations.NOT_DISPATCHED):
            high = min(high, int(self.numbers[-1]) + 1 if len(self.numbers) else low)
        later = NextWithKey()
        while low < high:
            begin = max(low, high - AT_ONCE)
            events = self._others(begin, high, later)
            refused = self.trace.replay(events)
            if refused:
                self._report_missing(refused[1])
                return
            self.missed, high = self.missed + len(events.action), begin

    def _others(self, low: int, high: int, later: NextWithKey) -> Events:
        """Yields the messages of the numbers `low:high` that were not kept and could be."""
        numbers = np.arange(low, high)
        places, sizes = self.own.places(numbers)
        some = slice(*self.numbers.searchsorted((low, high)))  # they rise, or one of them departed
        kept, sure = self.numbers[some] - low, self.sure[some]
        is_kept, unknown = np.zeros(len(numbers), np.bool_), np.ones(len(numbers), np.bool_)
        is_kept[kept], unknown[kept[sure]] = True, False
        keys = np.zeros((ROWS, len(numbers)), np.int64)
        keys[KEY, kept[sure]] = self.keys[some][sure]
        keys[:, unknown] = compaction_keys(self.store.files, places[unknown], sizes[unknown], self.own.rooms.maps)
        lengths = [file.records.length for file in self.compacted.files if file.records]
        fits = sizes + BLANK <= max(lengths, default=1 << 62)  # others are put into no file
        (keyed,) = np.nonzero((keys[KEY] != 0) & (keys[BODY] >= 0) & fits)
        numbers, keys, missed = numbers[keyed], keys[:, keyed], ~is_kept[keyed]
        following = later.of(keys[KEY], numbers)
        events = Events.room(SPEC, int(missed.sum()))
        events.action[:] = SPEC.codes["miss"]
        events.column("number")[:] = numbers[missed]
        events.column("hollow")[:] = keys[BODY][missed] == 0
        events.column("later")[:] = following[missed]
        return events

    def _report_missing(self, departure: Departure) -> None:
        """Reports a missing message: lost, or sent while nothing was compacted."""
        number = named("compaction", departure.event)["number"]
        behind = int(self.numbers.searchsorted(number))
        if self.store.first_life:
            surely = behind > 0 or self._compacts_from_the_beginning
        else:
            around = self.times[max(behind - 1, 0) : behind + 1]
            surely = 0 < behind < len(self.numbers) and bool(around[1] - around[0] < A_START_TAKES)
        values = {"number": number, "queue": self.name, "otherwise": self._or_else}
        if self.judged.judges(situations.MISSING, switch(on=surely), **values):
            place, _ = self.own.places(np.array([number], np.int64))
            self.trace.report(int(place[0]), departure)

    @property
    def _or_else(self) -> str:
        """Other reasons for a missing message."""
        if self.compacted.files or not self.store.has_queue_database:
            return "damage otherwise"
        return (
            "otherwise damage, or the broker is of 5.4 or later, and compacts nothing where it keeps queues in "
            "RocksDB: no consumer receives anything of this topic then (docs/rocketmq.md#compaction-rocksdb)"
        )

    @property
    def _compacts_from_the_beginning(self) -> bool:
        """True if every message of a first life had to be compacted.

        The switch changes with a start alone, and a topic has its policy from its creation, or never. A slave receives
        its part from its master. Without any file, a copy may lack them; but with queues in RocksDB, younger brokers
        make none.
        """
        made = bool(self.compacted.files) or self.store.has_queue_database
        return made and bool(self.store.settings) and not is_slave(self.store.settings)


LAYOUT = JoinSide(
    CompactionJudge,
    needs=frozenset((FOLDER,)),
    without_records=True,
    not_exercised=without("compaction.find_entry", "compaction: no message in a compacted topic, or not selected"),
)
