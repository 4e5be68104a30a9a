"""The index of a DLedger log, compared with the log's entries: each must have its unit.

The log was judged before, and so were indexes and terms of its entries. Units behind those of the last entry are
ignored: a truncation leaves them.

Source: docs/rocketmq.md#dledger-index.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.traces.judging.building import STEPS, Events
from gapless.traces.options import Options
from gapless.traces.sources.rocketmq.blame.situation import Decision, switch
from gapless.traces.sources.rocketmq.blame.store import OTHER_MOMENT
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.joining.incremental_replay import IncrementalReplay
from gapless.traces.sources.rocketmq.layouts.dledger_index.blame import NO_FILE, NO_UNITS
from gapless.traces.sources.rocketmq.layouts.dledger_index.units import (
    INDEX_FILE,
    entries_between,
    index_files,
    units_of,
)
from gapless.traces.sources.rocketmq.layouts.dledger_index.worker import (
    EntryUnits,
    includes_dledger_index,
    unit_events,
)
from gapless.traces.sources.rocketmq.layouts.layout import JoinSide, LayoutJudge, covered, without
from gapless.traces.sources.rocketmq.segments.results import Segment
from gapless.traces.sources.rocketmq.startup.startup_files import unexpected_files
from gapless.traces.sources.rocketmq.startup.startup_hazards import judge_startup

NAME = "dledger_index"
INDEX = STEPS["dledger_index"]
SPEC = SPECS["dledger_index"]
WRITTEN_AGAIN = 3  # files of entries, the last ones, that a start holds against the index


class DledgerIndexJudge(LayoutJudge):
    """Judges the index of a DLedger log after the log."""

    def __init__(self, judged: StoreFindings, options: Options) -> None:
        super().__init__(judged, options)
        self.reached = self.store.start  # up to there workers found all units, one segment after the other
        self.first, self.end = -1, -1  # of the entries that have them: the first index, and behind the last

    def add(self, segment: Segment) -> None:
        """Remembers if a segment's worker found all units; after a miss, units are read again at the end."""
        found: EntryUnits | None = segment.layouts.get(NAME)
        if found is None or segment.start != self.reached:
            return
        if found.first < found.end:
            if self.first >= 0 and found.first != self.end:
                return
            self.first, self.end = found.first if self.first < 0 else self.first, found.end
        self.reached = segment.end

    def settle(self) -> None:
        """Judges the index, if there is a DLedger log."""
        dledger = self.store.dledger
        if dledger is None or not includes_dledger_index(self.store, self.options):
            return
        what = f"{dledger.index_name}/ is not judged"
        if not self.judged.judges(OTHER_MOMENT, switch(on=False), what=what, it="it is"):
            return
        if why_not := self._why_not(dledger.index_name):
            self.judged.note(f"{dledger.index_name}/ is not judged: {why_not}")
            return
        files = index_files(dledger)
        if not files:
            self.judged.blame(NO_FILE, name=dledger.index_name)
            return
        trace, waiting = IncrementalReplay(self.judged, self.options, "dledger_index", dledger.index_name), None
        begin = self._begin(trace)
        for entries in entries_between(self.store, begin, self.judged.end):
            events = unit_events(entries, units_of(files, int(entries.number[0]), int(entries.number[-1]) + 1))
            if not trace.reached.begun:
                events = _behind(Events.of(SPEC, [INDEX.open(first=int(entries.number[0]))]), events)
            events = _behind(waiting, events) if waiting else events
            accuses = self.judged.accuses(NO_UNITS, switch(on=False))
            kept = len(events.action) - (0 if accuses else _wrong_at_the_end(events))
            if refused := trace.replay(_part(events, 0, kept)):
                trace.report(self.store.start, refused[1])
                break
            waiting = _part(events, kept, len(events.action)) if kept < len(events.action) else None
        else:
            self._ends_with(trace, waiting, dledger.index_name)
        there = unexpected_files(Path(self.store.path), [dledger.index], length=INDEX_FILE, maps_everything=True)
        judge_startup(trace, there[dledger.index])

    def _begin(self, trace: IncrementalReplay) -> int:
        """Counts the units that workers found, and returns the log position from which entries are read again."""
        if self.first < 0 or self.judged.exported:  # each event is wanted, then
            return self.store.start
        trace.replay(Events.of(SPEC, [INDEX.open(first=self.first)]))
        trace.skip_to({"find_unit": self.end - self.first}, end=self.end)
        return self.reached

    def _ends_with(self, trace: IncrementalReplay, waiting: Events | None, name: str) -> None:
        """Judges the last entries, which have no units."""
        if waiting:
            first, position = int(waiting.column("number")[0]), int(waiting.column("position")[0])
            files = sum(file.base + file.length > position for file in self.store.files)
            far = switch(on=files > WRITTEN_AGAIN)
            values = {"name": name, "count": len(waiting.action), "first": first, "files": WRITTEN_AGAIN}
            if self.judged.blame(NO_UNITS, far, **values) is Decision.PASS:
                trace.replay(Events.of(SPEC, [INDEX.miss_units(number=first, killed=True)]))
                self.judged.unwritten.append(NO_UNITS.sentence(self.judged.cell(NO_UNITS, far), values))

    def _why_not(self, name: str) -> str:
        """The reason if it cannot be compared with the log, or an empty text."""
        if any(link.path.startswith(f"{name}/") for link in self.store.broken):
            return "a link in it leads nowhere"
        if self.judged.damage or any(found.spec == "log" for found in self.judged.breaches):
            return "the log that it is of departs"
        return "" if (Path(self.store.path) / name).is_dir() else "it is not there"


def _wrong_at_the_end(events: Events) -> int:
    """The number of units at the end that are not those of their entries."""
    right = events.column("known") != 0
    for name in ("number", "position", "size", "term"):
        right &= events.column(f"its_{name}") == events.column(name)
    right |= events.action != SPEC.codes["find_unit"]
    return len(right) if not right.any() else int(right[::-1].argmax())


def _part(events: Events, low: int, high: int) -> Events:
    return Events(SPEC, events.action[low:high], np.ascontiguousarray(events.args[:, low:high]))


def _behind(one: Events, other: Events) -> Events:
    return Events(SPEC, np.append(one.action, other.action), np.concatenate([one.args, other.args], axis=1))


LAYOUT = JoinSide(
    DledgerIndexJudge,
    is_present=covered("dledger_index.open"),
    not_exercised=without("dledger_index.find_unit", "dledger_index: no DLedger log, or not selected"),
)
