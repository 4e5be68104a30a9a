"""The places of departures: a file of the partition, and the byte in it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import numpy as np

from gapless.spec import catalog
from gapless.traces.replay.exact import Departure, named
from gapless.traces.report.values import Where
from gapless.traces.sources.kafka.files import names
from gapless.traces.sources.kafka.files.indexes import (
    ABORTED_ENTRY,
    OFFSET_ENTRY,
    TIME_ENTRY,
    aborted_index,
    offset_index,
    time_index,
)
from gapless.traces.sources.kafka.files.snapshots import ENTRY, HEAD, producer_snapshot
from gapless.traces.sources.kafka.joining.batch_wording import batch_in_words
from gapless.traces.sources.kafka.judging.parts import SegmentPart
from gapless.traces.sources.kafka.log.batches import Batches, chunks

SAVED = catalog.rule("partition/snapshot-is-at-the-end").id
KEPT_ONCE = catalog.rule("partition/cleaner-leaves-a-key-once").id
CHECKPOINTS = {
    "flush": names.RECOVERY,
    "raise_watermark": names.WATERMARK,
    "delete": names.LOG_START,
    "clean": names.CLEANER,
}
"""The files that state an offset of each partition, by the step that they are evidence of."""


class PlaceFinder:
    """Finds places in one part of a segment."""

    def __init__(self, part: SegmentPart) -> None:
        self.part = part

    def of(self, departure: Departure) -> tuple[Where, int]:
        """Return the place of a departure, and the offset that it is about. Raises OSError."""
        match departure.spec:
            case "partition":
                return self._of_log(departure)
            case "aborted_index":
                return self._of_aborted(departure)
            case _:
                return self._of_producer(departure)

    def _of_aborted(self, departure: Departure) -> tuple[Where, int]:
        """Return the place of an entry; where one is missing, the place that it would have."""
        args, path = named(departure.spec, departure.event), self.part.segment.aborted_index
        is_entry = departure.event[0] == "enter"
        offset = args["last"] if is_entry else int(departure.state.end) - 1
        at = 0
        if path is not None:
            entries = aborted_index(path)
            behind = entries.last >= offset
            if is_entry:
                behind = (entries.last == offset) & (entries.first == args["first"])
                behind &= (entries.producer == args["producer"]) & (entries.stable == args["stable"])
            (found,) = np.nonzero(behind)
            is_second = is_entry and departure.state.hidden == departure.state.end
            number = int(found[-1 if is_second else 0]) if len(found) else len(entries.last)
            at = number * ABORTED_ENTRY.itemsize
        file = self.part.segment.log.with_suffix(".txnindex").name
        return Where(file=f"{self.part.terms.folder}/{file}", offset=at), offset

    def _of_log(self, departure: Departure) -> tuple[Where, int]:  # noqa: PLR0911 - one for every kind of place
        args, end = named(departure.spec, departure.event), int(departure.state.end)
        match departure.event[0]:
            case "append":
                return self._file(self.part.segment.log, args["position"]), args["first"]
            case "index":
                return self._file(self.part.segment.offset_index, self._entry(args["offset"])), args["offset"]
            case "index_time":
                return self._file(self.part.segment.time_index, self._time_entry(args)), args["offset"]
            case "seal":
                return self._file(self.part.segment.time_index, self._time_end()), end
            case "save":
                path = next((path for offset, path in self.part.snapshots if offset == args["at"]), None)
                return self._file(path, 0), args["at"]
            case "lead":
                return self._file(self.part.terms.epochs, 0), args["since"]
            case "clean" if departure.rule == KEPT_ONCE:
                return self.at_offset(args["again"]), args["again"]
            case action if action in CHECKPOINTS:
                return Where(file=f"{self._root}{CHECKPOINTS[action]}", offset=0), args["to"]
            case catalog.END:
                return Where(file=self._unfinished(departure), offset=0), end
            case _:
                return self._file(self.part.segment.log, int(departure.state.reached)), end

    def _unfinished(self, departure: Departure) -> str:
        """The file whose content, or absence, is wrong at rest."""
        if departure.rule == SAVED:
            return f"{self.part.terms.folder}/{int(departure.state.end):020d}.snapshot"
        return f"{self._root}{names.WATERMARK if departure.state.high != departure.state.end else names.RECOVERY}"

    def _of_producer(self, departure: Departure) -> tuple[Where, int]:
        args = named(departure.spec, departure.event)
        match departure.event[0]:
            case "append":
                return self.at_offset(args["first"]), args["first"]
            case "mark":
                return self.at_offset(args["offset"]), args["offset"]
            case "snapshot":
                return self._line(args), args["at"]
            case _:
                return self.at_offset(int(departure.state.offset)), int(departure.state.offset)

    def at_offset(self, offset: int) -> Where:
        """Return the place of the batch that has an offset; the part's begin if none has it."""
        (found,) = np.nonzero((self._heads.base <= offset) & (offset <= self._heads.last))
        return self._file(self.part.segment.log, int(self._heads.position[found[0]]) if len(found) else self.part.begin)

    @cached_property
    def _heads(self) -> Batches:
        found = chunks(self.part.segment.log, self.part.begin, self.part.end)
        return Batches(np.concatenate([chunk.batches.table.copy() for chunk in found], axis=1))

    def batch_at(self, position: int) -> tuple[str, ...]:
        """Return sentences on the batch at a byte of the log; none if no batch begins there. Raises OSError."""
        (found,) = np.nonzero(self._heads.position == position)
        if not len(found):
            return ()
        end = position + int(self._heads.size[found[0]])
        chunk = next(chunk for chunk in chunks(self.part.segment.log, position, end) if len(chunk.batches))
        return batch_in_words(chunk, deep=self.part.terms.deep)

    def _entry(self, offset: int) -> int:
        assert self.part.segment.offset_index is not None  # noqa: S101 - for the type checker: an entry of it departs
        (found,) = np.nonzero(offset_index(self.part.segment.offset_index, self.part.segment.base).offset == offset)
        return int(found[-1]) * OFFSET_ENTRY.itemsize if len(found) else 0

    def _time_end(self) -> int:
        if self.part.segment.time_index is None:
            return 0
        return len(time_index(self.part.segment.time_index, self.part.segment.base).offset) * TIME_ENTRY.itemsize

    def _time_entry(self, args: dict[str, int]) -> int:
        assert self.part.segment.time_index is not None  # noqa: S101 - as above
        entries = time_index(self.part.segment.time_index, self.part.segment.base)
        (found,) = np.nonzero((entries.offset == args["offset"]) & (entries.time == args["time"]))
        return int(found[-1]) * TIME_ENTRY.itemsize if len(found) else 0

    def _line(self, args: dict[str, int]) -> Where:
        """Return the place of a producer's line in a snapshot."""
        path = next((path for offset, path in self.part.snapshots if offset == args["at"]), None)
        if path is None:
            return self.at_offset(args["at"])
        lines = producer_snapshot(path, args["at"])
        mine = (lines.epoch == args["epoch"]) & (lines.last == args["offset"]) & (lines.sequence == args["sequence"])
        (found,) = np.nonzero(mine & (lines.time == args["time"]))
        return self._file(path, HEAD + int(found[0]) * ENTRY.itemsize if len(found) else 0)

    def _file(self, path: Path | None, at: int) -> Where:
        file = path or self.part.segment.log
        return Where(file=f"{self.part.terms.folder}/{file.name}", offset=at)

    @property
    def _root(self) -> str:
        folder, slash, _ = self.part.terms.folder.rpartition("/")
        return f"{folder}{slash}"
