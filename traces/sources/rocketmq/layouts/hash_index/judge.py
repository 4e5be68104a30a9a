"""The hash index of a store, compared with the log: items of every file, its slots, its header, and all keys.

Workers report the items of their records, and the keys without an item (`worker.py`). Here the items of
each file are replayed in order, and missing keys are weighed: brokers lose parts of their index lawfully.

* An unclean start deletes every file that ends behind the checkpoint's index time, and indexes only what it dispatches
  again. So an index has gaps between files after a broker was killed.
* Nothing is indexed while `messageIndexEnable` is off.
* A log that is cut off, after a power loss, leaves items that point beyond its end, or at later records.

Source: docs/rocketmq.md#index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from gapless.spec.catalog import SPECS, State
from gapless.traces.options import Options
from gapless.traces.replay.exact import replay
from gapless.traces.report.wording import plural
from gapless.traces.sources.rocketmq.blame.situation import Circumstance, Decision, switch
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.joining.findings import DeferredTrace, StoreFindings
from gapless.traces.sources.rocketmq.layouts.hash_index import blame as situations
from gapless.traces.sources.rocketmq.layouts.hash_index.coverage import IndexCoverage, by_item
from gapless.traces.sources.rocketmq.layouts.hash_index.file_replay import INDEX, FileReplay
from gapless.traces.sources.rocketmq.layouts.hash_index.index_files import (
    AT_ONCE,
    FOLDER,
    Index,
    IndexFile,
    files_in,
    index_in,
)
from gapless.traces.sources.rocketmq.layouts.hash_index.matching import FIRST, KEYS, LAST, OWNED, RECORDS, TIMELY
from gapless.traces.sources.rocketmq.layouts.hash_index.worker import IndexMatches, includes_hash_index
from gapless.traces.sources.rocketmq.layouts.layout import JoinSide, LayoutJudge
from gapless.traces.sources.rocketmq.segments.results import Segment
from gapless.traces.sources.rocketmq.store.files import FARTHEST
from gapless.traces.sources.rocketmq.store.settings import is_on

NAME = "hash_index"
SWITCHES = ("messageIndexEnable", "indexFileWriteEnable")  # settings without which no record is indexed


@dataclass(frozen=True)
class IndexCheckpoint:
    """The judgement of an index up to some position of the log.

    `conform`: full files without a departure, by name, with the accepted steps of each · `replays`: of other files, up
    to their known items.
    """

    found: IndexCoverage
    conform: Mapping[str, Mapping[str, int]]
    replays: Mapping[str, FileReplay]


class HashIndexJudge(LayoutJudge):
    """Judges the hash index of one store."""

    def __init__(self, judged: StoreFindings, options: Options) -> None:
        super().__init__(judged, options)
        self.found = IndexCoverage()
        self.known = IndexCheckpoint(self.found, {}, {})

    def restore(self, known: IndexCheckpoint) -> None:
        """Restores the saved state, without changing it."""
        self.known, self.found = known, known.found.copy()

    def add(self, segment: Segment) -> None:
        """Adds the matches of one segment."""
        found: IndexMatches | None = segment.layouts.get(NAME)
        if found is not None:
            index = index_in(self.store)
            assert index is not None  # noqa: S101 - otherwise no worker looked into it
            self.found.add(found, index.files)

    def settle(self) -> None:
        """Judges every file, and every key, after the log's end is known."""
        index = index_in(self.store)
        if index is None:
            return
        if self.store.live and index.reach is not None:
            self._judge_so_far(index)
        elif includes_hash_index(self.store, self.options):
            for file in index.files:
                if file.name in self.known.conform:
                    self.judged.cover("hash_index", self.known.conform[file.name])
                else:
                    self._judge(file, self._odd_items(file))
            if index.whole:
                self._look_up()

    def _judge_so_far(self, index: Index) -> None:
        """Judges the known part of an index that a broker is writing: that part does not change any more.

        A full file has its slots and its header; the others, items. Missing keys are found at the end.
        """
        reach = index.reach or 0
        self.judged.note(f"index/ is judged up to {reach:,} of the log: what comes behind that is judged at the end")
        self.judged.cover("hash_index", {"look_up": self.found.found})
        for file in index.files:
            if file.name in self.known.conform:
                self.judged.cover("hash_index", self.known.conform[file.name])
            elif file.name in self.known.replays:
                replayed = self.known.replays[file.name].copy()
                odd = self.found.odd_items(file.name)
                lost_none = self.judged.accuses(situations.LOST_TAIL, switch(on=False))
                whole = replay_up_to(reach, replayed, file, odd, lost_too=lost_none)
                if whole and file is not index.files[-1]:
                    replayed.finish(file, clean=False)
                self.judged.cover("hash_index", replayed.counts())
                if replayed.departure:
                    place = max(int(replayed.departure.state.last), self.store.start)
                    self.judged.find(file.name, place, replayed.departure)
        between = {place for low, high, _ in self._spans() for place in (low, high)}
        for position in self.found.partly.tolist():
            # Other keys of a record between two files may have been in one that a start deleted.
            if position not in between and not self._is_of_a_broken_file(position, position):
                self._missing(position, "the record has other keys that have their items")

    # -- items, slots and header of a file ---------------------------------------------------------------------------

    def _odd_items(self, file: IndexFile) -> Ints:
        """Returns the items of one file that match no record, as [item, bits], even beyond the log's end."""
        found = self.found.odd_items(file.name)
        if self.store.limit == FARTHEST and len(file.highs) and file.highs.max() >= self.judged.end:
            found = by_item(np.concatenate([found, *self._beyond(file)], axis=1))
        return found

    def _beyond(self, file: IndexFile) -> Iterator[Ints]:
        for stretch, (low, high) in enumerate(file.stretches()):
            if file.highs[stretch] >= self.judged.end:
                (beyond,) = np.nonzero(file.read(low, high)["position"].astype(np.int64) >= self.judged.end)
                yield np.stack([low + beyond, np.full(len(beyond), TIMELY, np.int64)])

    def _judge(self, file: IndexFile, odd: Ints) -> None:
        """Judges one file."""
        lost = odd[0][odd[1] & OWNED == 0]
        tail = file.items - len(lost)
        at_the_tail = len(lost) > 0 and lost[0] == tail
        beyond = switch(on=at_the_tail and self._point_beyond(file, tail))
        if at_the_tail and not self.judged.judges(situations.LOST_TAIL, beyond, file=file.name, count=len(lost)):
            file, odd = _up_to(file, tail), odd[:, odd[0] < tail]
        known = self.known.replays.get(file.name)
        replayed = known.copy() if known else FileReplay(file.slots, self.options)
        replayed.replay(file, odd, file.items)
        replayed.finish(file, clean=self.store.clean)
        self.judged.cover("hash_index", replayed.counts())
        departure = replayed.departure
        is_of_end = departure is not None and departure.event[0] in ("find_slot", "find_header")
        situation = situations.COPIED_MEANWHILE if is_of_end else situations.NOT_WHOLE
        doubted = departure is not None and not self.judged.accuses(situation, self._unflushed(file))
        if self.judged.exported:
            count = replayed.accepted + (departure is not None and not doubted)
            events = partial(replayed.repeat, file, odd, count, clean=self.store.clean)
            self.judged.later.append(DeferredTrace("hash_index", file.name, events))
        if departure is None:
            return
        if self.judged.judges(situation, self._unflushed(file), file=file.name, because=departure.because):
            self.judged.find(file.name, max(int(departure.state.last), self.store.start), departure)

    def _point_beyond(self, file: IndexFile, tail: int) -> bool:
        """True if all items from one on point beyond the log's end."""
        positions = file.read(tail, file.items)["position"].astype(np.int64)
        return bool((positions >= self.judged.end).all())

    def _is_deleted_next(self, file: IndexFile) -> bool:
        """True if the broker's next start deletes the file, because it stopped in the middle of it."""
        return not self.judged.accuses(situations.NOT_WHOLE, self._unflushed(file))

    def _unflushed(self, file: IndexFile) -> Circumstance:
        """Returns the circumstance of a file that the checkpoint does not know to be on disk."""
        known = self.store.checkpoint
        return switch(on=known is None or file.header[1] > known.index)

    # -- keys --------------------------------------------------------------------------------------------------------

    def _look_up(self) -> None:
        """Judges every key of every record: found, lawfully lost, or missing."""
        self.judged.cover("hash_index", {"look_up": self.found.found})
        lost = np.zeros(2, np.int64)
        for run in self.found.runs.T:
            first, last = int(run[FIRST]), int(run[LAST])
            if self._is_consequence(first, last):
                continue
            decision = self._missing_decision(first, last)
            if decision is Decision.VIOLATION:
                keys = plural(run[KEYS], "key")
                records = plural(run[RECORDS], f"record with {keys} is", f"records with {keys} up to {last} are")
                self._missing(first, f"{records} without an item")
            elif decision is not Decision.DOUBT:
                lost += run[[RECORDS, KEYS]]
        for position in self.found.partly.tolist():
            if not self._is_consequence(position, position) and not self._is_cut_short(position):
                self._missing(position, "the record has other keys that have their items")
        self.judged.blame(situations.LOST if self.enabled else situations.IS_OFF, count=int(lost[0]))

    @property
    def enabled(self) -> bool:
        """True if the broker writes an index, by its settings."""
        return all(is_on(self.store.settings, name, otherwise=True) for name in SWITCHES)

    @property
    def _promised(self) -> Circumstance:
        """The circumstance of an index that was on from the first record on."""
        return switch(on=self.enabled and bool(self.store.settings) and self.store.settings_apply)

    def _spans(self) -> list[tuple[int, int, IndexFile]]:
        """Returns the ranges of the log that the files cover."""
        files = files_in(self.store)
        return [(int(file.lows[0]), int(file.highs[-1]), file) for file in files if len(file.lows)]

    def _is_consequence(self, first: int, last: int) -> bool:
        """True if records belong to a file that departs already, or lie behind the known part of the log."""
        ends = first >= self.judged.end or self.store.limit != FARTHEST
        return ends or self._is_of_a_broken_file(first, last)

    def _is_of_a_broken_file(self, first: int, last: int) -> bool:
        broken = {found.trace for found in self.judged.breaches if found.action in ("put", "find_slot", "find_header")}
        return any(low <= last and first <= high and file.name in broken for low, high, file in self._spans())

    def _missing_decision(self, first: int, last: int) -> Decision:
        """Returns the decision on records of which no key is found, after adding its doubt."""
        spans = self._spans()
        if not self.enabled:
            return Decision.PASS
        inside = any(low < first and last < high for low, high, _ in spans)
        behind = all(high < first for _, high, _ in spans)
        between = situations.BEHIND_ALL_FILES if behind else situations.BETWEEN_FILES
        return self.judged.blame(situations.INSIDE_A_FILE if inside else between, self._promised, first=first)

    def _is_cut_short(self, position: int) -> bool:
        """True if the other keys of a record went into a file that a start deleted, or were not written yet."""
        spans = self._spans()
        edge = any(position in (low, high) for low, high, _ in spans)
        if edge and not self.judged.accuses(situations.AT_AN_EDGE):
            return True
        if self.judged.accuses(situations.NOT_WRITTEN):
            return False
        last = max(high for _, high, _ in spans)
        return position >= last or any(
            low <= position <= high and self._is_deleted_next(file) for low, high, file in spans
        )

    def _missing(self, position: int, detail: str) -> None:
        """Reports a missing key of the record at a position."""
        files = [file for low, _, file in self._spans() if low <= position] or [file for *_, file in self._spans()]
        spec = SPECS["hash_index"]
        slots, items, name = (files[-1].slots, files[-1].items, files[-1].name) if files else (1, 1, f"{FOLDER}/")
        before: State = replace(spec.initial, slots=slots, items=items)
        event = INDEX.look_up(position=position, found=0)
        outcome = replay("hash_index", before, [event], profile=self.options.profile, ignored=self.options.ignored)
        self.judged.joint(self.judged.end, "hash_index", f"{name}/{position}", [INDEX.open(slots=slots), event])
        if outcome.departure:
            self.judged.report(name, position, outcome.departure, detail)


def _up_to(file: IndexFile, tail: int) -> IndexFile:
    """Returns the file with the times of lost records taken from its items from `tail` on."""
    begin, end = file.header[:2]
    return replace(file, began=file.began if tail > 1 else begin, ended=end)


def replay_up_to(reach: int, replayed: FileReplay, file: IndexFile, odd: Ints, *, lost_too: bool = False) -> bool:
    """Replays the items that point below a log position; True if the file has no others. Raises Unreadable.

    `lost_too`: even the last ones that match no key, whose log may have been cut off.
    """
    items = _known_items(file, replayed.items, reach)
    items = items if lost_too else _before_lost(odd, items)
    replayed.replay(file, odd, items)
    return items == file.items


def _before_lost(odd: Ints, items: int) -> int:
    """Returns the exclusive end of the items without the last ones that match no key: their log was cut off."""
    lost = odd[0][(odd[1] & OWNED == 0) & (odd[0] < items)]
    behind = items - 1 - lost[::-1] == np.arange(len(lost))
    return items - int(behind.argmin() if not behind.all() else len(lost))


def _known_items(file: IndexFile, known: int, reach: int) -> int:
    """Returns the exclusive end of the items that point below a log position; some are known already."""
    (stretches,) = np.nonzero(file.lows < reach)
    end = 1
    if len(stretches):
        low = 1 + int(stretches[-1]) * AT_ONCE
        (below,) = np.nonzero(file.read(low, min(low + AT_ONCE, file.items))["position"].astype(np.int64) < reach)
        end = low + int(below[-1]) + 1
    return max(known, end)


def files(judged: StoreFindings) -> list[str]:
    """Returns the names of the files of the index, and of that of tiered storage."""
    return [*judged.tiered_index, *(file.name for file in files_in(judged.store))]


def traces(judged: StoreFindings) -> int:
    """Returns the number of files that were judged."""
    tiered = len(judged.tiered_index)
    plain = len(files_in(judged.store))
    return tiered + (plain if judged.covered.get("hash_index.open", 0) > tiered else 0)


def not_exercised(judged: StoreFindings) -> Iterator[str]:
    """Yields what is not judged of indexes: all if there is none, and of that of tiered storage keys and order."""
    if not judged.covered.get("hash_index.put"):
        yield "hash_index: no item in index/, or not selected"
    elif judged.tiered_index:
        yield "hash_index: of tiered storage, not whether each key is found, and not the order of items: it has none"


LAYOUT = JoinSide(HashIndexJudge, files=files, traces=traces, not_exercised=not_exercised)
