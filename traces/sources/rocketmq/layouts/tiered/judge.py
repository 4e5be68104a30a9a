"""Queues in tiered storage, compared with their metadata, their messages, and the broker's own log.

The store's log and queues were judged before. Content beyond the end in the metadata was not committed by the
uploader, and is not judged.

Source: docs/rocketmq-tiered.md.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gapless.spec.catalog import SPECS
from gapless.traces.judging.building import STEPS, Events
from gapless.traces.options import Options
from gapless.traces.report.wording import plural
from gapless.traces.sources.rocketmq.blame.situation import switch
from gapless.traces.sources.rocketmq.blame.store import OTHER_MOMENTS
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.layouts.copied_queue import FOLLOWED, CopiedQueue, is_judged
from gapless.traces.sources.rocketmq.layouts.copied_records import CopiedEntries
from gapless.traces.sources.rocketmq.layouts.layout import JoinSide, LayoutJudge, without
from gapless.traces.sources.rocketmq.layouts.originals import Buffers
from gapless.traces.sources.rocketmq.layouts.tiered import blame as situations
from gapless.traces.sources.rocketmq.layouts.tiered.files import TieredFile, TieredQueue, TieredStorage, opened_storage
from gapless.traces.sources.rocketmq.layouts.tiered.index import TieredIndexJudge
from gapless.traces.sources.rocketmq.segments.results import name_of
from gapless.traces.sources.rocketmq.store.files import ENTRY, SLOT, read_exactly
from gapless.traces.sources.rocketmq.store.settings import number_set

TIERED = STEPS["tiered"]
SPEC = SPECS["tiered"]
RESERVED, RESERVED_HOURS = "tieredStoreFileReservedTime", 72  # a setting, and its default


class TieredJudge(LayoutJudge):
    """Judges the tiered storage of a store after its log and queues."""

    def settle(self) -> None:
        """Judges every queue that has files there."""
        found, notes = opened_storage(self.judged)
        if found is None:
            return
        for text in notes:
            self.judged.note(text)
        what = "tiered storage is not judged"
        if not self.judged.judges(OTHER_MOMENTS, switch(on=self.store.watched), what=what):
            return
        if found.why_not:
            self.judged.blame(situations.UNREAD, switch(on=found.lost), what=what, why=found.why_not)
        else:
            self._judge(found)

    def _judge(self, found: TieredStorage) -> None:
        """Judges every queue, and notes the files that the metadata leaves out."""
        if found.unlisted:
            self.judged.blame(situations.UNLISTED, count=len(found.unlisted), first=found.unlisted[0])
        followed = compared = queues = 0
        rooms = Buffers()
        for queue in found.queues:
            if not is_judged(self, queue.queue, "in tiered storage"):
                continue
            judge = TieredQueueJudge(self.judged, self.options, queue, rooms)
            judge.judge()
            followed, compared, queues = followed + judge.followed, compared + judge.copied.own.compared, queues + 1
        if queues:
            self.judged.note(
                f"{plural(followed, 'message')} found by entries in tiered storage, of {plural(queues, 'queue')}; "
                f"{compared:,} of these the broker's own log has too"
            )
        TieredIndexJudge(self.judged, self.options, found).judge()


class TieredQueueJudge:
    """Judges one queue in tiered storage. `followed`: the number of messages found."""

    def __init__(self, judged: StoreFindings, options: Options, tiered: TieredQueue, rooms: Buffers) -> None:
        self.judged = judged
        self.store = judged.store
        self.tiered = tiered
        self.name = name_of(tiered.queue)
        self.log = self._without_expired(tiered.log)
        self.entries = self._without_expired(tiered.entries)
        self.files = [file.opened for file in self.log]
        self.copied = CopiedQueue(
            judged, options, "tiered", tiered.queue, "tiered storage", rooms, once=self.store.first_life
        )
        self.followed = 0

    def _without_expired(self, files: tuple[TieredFile, ...]) -> tuple[TieredFile, ...]:
        """Returns the files without the oldest missing one, if a kill during a deletion explains it.

        They are deleted one by one, each before its metadata; and a start creates the file again, without a byte. So a
        broker that is killed leaves one such file, whose messages have all expired: more have another cause.
        """
        gone = 0
        while gone < len(files) and (
            (files[gone].length < 0 and not self.judged.accuses(situations.FILE_GONE))
            or (files[gone].length == 0 < files[gone].committed and not self.judged.accuses(situations.FILE_EMPTY))
        ):
            gone += 1
        if not gone:
            return files
        situation = situations.SOME_GONE if gone > 1 else situations.OLDEST_GONE
        self.judged.blame(
            situations.ALL_GONE if gone == len(files) else situation,
            switch(on=self._is_due(files[0])), queue=self.name, count=gone, file=files[0].name,
        )  # fmt: skip
        return files[gone:]

    def _is_due(self, file: TieredFile) -> bool:
        """True if a file's messages were old enough to be deleted when the log was last known to be written."""
        kept = number_set(self.store.settings, RESERVED, RESERVED_HOURS) * 3_600_000
        known = self.store.checkpoint
        return known is not None and file.youngest < known.log - kept

    def judge(self) -> None:
        """Judges the queue up to the first step that departs."""
        if not self.entries:
            return
        first = self.entries[0].base // ENTRY
        start = self.log[0].base if self.log else 0
        steps = [
            TIERED.open(start=start, number=first),
            *(TIERED.find_log_file(base=f.base, committed=f.committed, length=max(f.length, 0)) for f in self.log),
            *(
                TIERED.find_queue_file(
                    number=f.base // ENTRY, committed=_entries(f, f.committed), length=_entries(f, max(f.length, 0))
                )
                for f in self.entries
            ),
        ]
        if not self._replay(Events.of(SPEC, steps)) or not self.log:
            return
        low, end = first, self.entries[-1].end // ENTRY
        while low < end:
            events, details = self._followed(low, min(low + FOLLOWED, end), start)
            if not self._replay(events, details):
                return
            low += len(events.action)

    def _replay(self, events: Events, details: Ints | None = None) -> bool:
        """Replays further events; True if all were accepted. `details`: as `CopiedQueue.replay` takes them."""
        refused = self.copied.replay(events, details)
        if refused:
            self.copied.trace.report(self.store.start, *refused)
        return refused is None

    # -- entries and their messages ----------------------------------------------------------------------------------

    def _followed(self, low: int, high: int, start: int) -> tuple[Events, Ints]:
        """Returns entries from number `low` on, at most to `high`, up to the first one out of order."""
        slots = self._slots(low, high)
        columns = (slots[name].astype(np.int64) for name in ("position", "size", "tag"))
        entries = CopiedEntries(np.arange(low, high), *columns)
        good = entries.in_order(0, self.files[-1].base + self.files[-1].length, low - 1, joined=False)
        kept = min(good + 1, len(slots))
        young = slice(
            int(entries.position[:good].searchsorted(start)),
            kept if good == kept or entries.position[good] >= start else good,
        )
        events = self.copied.room("outlive", kept)
        events.action[young] = SPEC.codes["find_entry"]
        if young != slice(0, kept):
            events.column("number")[:], events.column("position")[:] = entries.number[:kept], entries.position[:kept]
        found = self.copied.find_entries(self.files, entries.of(young), max(good - young.start, 0), events, young)
        self.followed += int(events.column("lies")[young].sum())
        details = np.full(kept, -1, np.int64)
        if found is not None:
            details[young] = found
        return events, details

    def _slots(self, low: int, high: int) -> npt.NDArray[np.void]:
        """Reads the entries from number `low` to `high` as the broker does: by their place among all bytes."""
        data = np.zeros((high - low) * ENTRY, np.uint8)
        for file in self.entries:
            begin, end = max(low * ENTRY, file.base), min(high * ENTRY, file.base + max(file.length, 0))
            if begin < end:
                into = data[begin - low * ENTRY : end - low * ENTRY]
                read_exactly(file.opened, begin - file.base, into.data)
        return data.view(SLOT)


def _entries(file: TieredFile, length: int) -> int:
    """Returns the number of entries that end in the first bytes of a file."""
    return (file.base + length) // ENTRY - file.base // ENTRY


LAYOUT = JoinSide(
    TieredJudge,
    without_records=True,
    not_exercised=without("tiered.find_entry", "tiered: no message in tiered storage, or not selected"),
)
