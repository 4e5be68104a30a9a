"""A queue with copies of messages: its entries are events of a spec, each with its message and the original.

Tiered and compacted queues are such copies. Each reads entries of its own format, and has its own steps for files; what
is asked of an entry and its message is the same.

Source: docs/rocketmq-tiered.md#upload, docs/rocketmq.md#compaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.spec.catalog import SPECS
from gapless.traces.judging.building import Events
from gapless.traces.options import Options
from gapless.traces.replay.exact import Departure
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.joining.incremental_replay import IncrementalReplay
from gapless.traces.sources.rocketmq.layouts.copied_records import CopiedEntries, messages_at, messages_between
from gapless.traces.sources.rocketmq.layouts.joined_keys import KEY, compaction_keys
from gapless.traces.sources.rocketmq.layouts.layout import LayoutJudge
from gapless.traces.sources.rocketmq.layouts.originals import Buffers, Originals
from gapless.traces.sources.rocketmq.queues.extension_units import EXTENDED
from gapless.traces.sources.rocketmq.segments.results import name_of
from gapless.traces.sources.rocketmq.store.files import LogFile, Queue
from gapless.traces.sources.rocketmq.store.selection import includes_queue

FOLLOWED = 1 << 14  # entries that are followed at once: their columns stay near the processor
FLAGS = "lies", "whole", "owned", "same", "intact"


class CompactedColumns(NamedTuple):
    """Further columns of compacted entries: their times, and the digests of the keys of their messages."""

    time: Ints
    keys: Ints


class CopiedQueue:
    """One queue of copies, judged as one trace of a spec with the step `find_entry`.

    `elsewhere`: the name of the other log · `once`: every number was given to one message alone
    """

    def __init__(
        self, judged: StoreFindings, options: Options, spec: str, queue: Queue, elsewhere: str, rooms: Buffers, *,
        once: bool,
    ) -> None:  # fmt: skip
        self.store = judged.store
        self.spec = SPECS[spec]
        self.queue = queue
        self.trace = IncrementalReplay(judged, options, spec, name_of(queue))
        self.own = Originals(judged, options, queue, elsewhere, rooms, once=once)

    def replay(self, events: Events, details: Ints | None = None) -> tuple[Departure, str] | None:
        """Replays further events; returns the departure of the first refused one, with its detail.

        `details`: for each, the byte in which its message differs from the log's, or -1
        """
        refused = self.trace.replay(events)
        if refused is None:
            return None
        bad, departure = refused
        return departure, str(details[bad]) if details is not None and details[bad] >= 0 else ""

    def room(self, action: str, count: int) -> Events:
        """Returns memory for so many events of one step, which overwrite the last ones."""
        args: Ints = self.own.rooms.space.array(f"{self.spec.name} events", (len(self.spec.arguments), count), np.int64)
        return Events(self.spec, np.full(count, self.spec.codes[action], np.int8), args)

    def find_entries(
        self, files: Sequence[LogFile], entries: CopiedEntries, good: int, events: Events, at: slice,
        more: CompactedColumns | None = None, *, compared: bool = True,
    ) -> Ints | None:  # fmt: skip
        """Writes the arguments of `find_entry` for entries into the events `at`.

        Returns the byte in which the message of each differs from the original, or -1; None if all of them are the
        log's own, byte for byte. `good`: so many entries are in order, and another one at most is not · `compared`:
        their originals may be asked for, though not all of them are the same · `more`: columns of compacted entries;
        where all messages are the log's own, its keys are written.
        """
        same = self.own.repeated(files, entries, more.keys if more else None) if good == len(entries.number) else None
        columns: dict[str, npt.NDArray[Any] | int] = {"size": entries.size, "tag": entries.tag}
        if same is None:
            details, found = self._compare(files, entries, good, more, compared=compared)
            columns |= found
        else:
            details = None
            columns |= dict.fromkeys(FLAGS, 1) | {f"its_{name}": column for name, column in entries._asdict().items()}
            columns |= {"its_time": same, "keyed": more.keys != 0} if more else {}
        columns |= {"number": entries.number, "position": entries.position}
        for name, values in columns.items():
            events.column(name)[at] = values
        return details

    def _compare(
        self, files: Sequence[LogFile], entries: CopiedEntries, good: int, more: CompactedColumns | None, *,
        compared: bool,
    ) -> tuple[Ints, Mapping[str, npt.NDArray[Any]]]:  # fmt: skip
        """Reads each message, and its original; returns what differs, and the arguments that tell of the message."""
        begin, end = (int(entries.position[0]), int((entries.position + entries.size)[good - 1])) if good else (0, 0)
        found = messages_between(self.store, files, self.queue, begin, end, self.own.rooms.space)
        lies, message = messages_at(found, entries.position)
        whole = lies & (message["whole"] != 0) & (message["size"] == entries.size)
        known = (message["sure"] != 0) & (not self.store.extended or entries.tag > EXTENDED)
        if more is not None:  # numbers are missing between compacted messages: another one has another original
            whole &= (message["number"] == entries.number) & (np.arange(len(whole)) < good)
        (sound,) = np.nonzero(whole)
        number, position, size, _ = (column[sound] for column in entries)
        details = np.full(len(lies), -1, np.int64)
        if compared:
            details[sound] = self.own.differ(files, number, position, size)
        # Without a complete message, no other rule is checked: one rule is broken, not eight.
        columns: dict[str, npt.NDArray[Any]] = {
            "lies": lies, "same": details < 0,
            "whole": message["whole"] | ~lies, "owned": message["owned"] | ~lies,
            "its_number": np.where(lies, message["number"], entries.number),
            "its_position": np.where(lies, message["claimed"], entries.position),
            "its_size": np.where(lies, message["size"], entries.size),
            "its_tag": np.where(known, message["tag"], entries.tag),
            "intact": message["intact"] | ~lies | (message["whole"] == 0),
        }  # fmt: skip
        if more is not None:
            keyed = np.ones(len(lies), np.bool_)
            keyed[sound] = compaction_keys(files, position, size, self.own.rooms.maps)[KEY] != 0
            columns |= {"its_time": np.where(lies, message["time"], more.time), "keyed": keyed}
        return details, columns


def is_judged(judge: LayoutJudge, queue: Queue, where: str) -> bool:
    """True if a queue was selected, and has no inner batches: a note says that those are not judged."""
    selected, batched = includes_queue(judge.options, *queue), queue in judge.store.batched
    if selected and batched:
        judge.judged.note(f"queues of inner batches are not judged {where}")
    return selected and not batched
