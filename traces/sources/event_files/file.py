"""One file of events, held against the specs.

A file is judged in stretches, each by a task that reads it. A trace that lies wholly in one is judged there. What may
go on in a neighbour, the first and the last trace of a stretch, is handed on as rows, and judged where all of it meets.
Whether that is all is seen from the hashes of the names: where another trace occurs in several stretches, these are
read once more, and that trace is put together too. Only a stretch is held as columns, 0.2 kB for an event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gapless.spec.catalog import PROFILES, STRICT
from gapless.traces.engines.engine import Engine
from gapless.traces.events import reading
from gapless.traces.events.event import Origin
from gapless.traces.events.files import is_parquet
from gapless.traces.events.reading import EventStretch
from gapless.traces.events.schema import with_specs
from gapless.traces.judging.columns import Hashes, Packed, gathered
from gapless.traces.judging.tallies import Tally
from gapless.traces.judging.teller import Recorded, Teller
from gapless.traces.options import Options
from gapless.traces.problems import Unreadable, shown
from gapless.traces.replay.kernels import Ints
from gapless.traces.replay.lives import life
from gapless.traces.report.parts import Parts
from gapless.traces.sources.event_files.stretches import (
    NO_HASHES,
    StretchResult,
    StretchTask,
    among,
    judge_packed,
    judge_stretch,
)

if TYPE_CHECKING:
    from gapless.traces.report.verdict_table import TableRows

STRETCH = 16 << 20  # bytes of a file that one task reads


class EventFile:
    """One file, and what the tasks said so far of each stretch.

    What is said of a stretch again counts in place of what was said before.
    """

    def __init__(self, name: Path, path: Path, options: Options, table: TableRows | None) -> None:
        self.name = name
        self.path = path
        self.origin = reading.origin(path)
        self.profile = options.profile or profile_of(path, self.origin)
        self.options = replace(options, profile=self.profile)
        self.table = table
        self.splits = reading.stretches(path, options.split or STRETCH)
        self.judged: dict[int, StretchResult] = {}
        self.joined: list[StretchResult] = []

    def task(self, engine: Engine) -> Callable[[EventStretch], StretchResult]:
        """As `Recording` says."""
        return partial(judge_stretch, self._work(engine), None)

    def _work(self, engine: Engine) -> StretchTask:
        buckets = min(engine.buckets, len(self.splits))
        return StretchTask(self.path, str(self.name), self.options, buckets, engine.handed_on, self.table)

    def take(self, result: StretchResult) -> None:
        """As `Recording` says. Raises KeyboardInterrupt where a task was interrupted."""
        if result.problem:
            raise Unreadable(result.problem)
        if result.stretch is None:
            self.joined.append(result)
        else:
            self.judged[result.stretch] = result
        if result.interrupted:
            raise KeyboardInterrupt

    def finish(self, engine: Engine) -> Parts:
        """As `Recording` says: first, traces that several stretches hold are put together."""
        shared, again = self._scattered()
        work, known = self._work(engine), self._loose()
        join = partial(judge_packed, work, self._first_rows())
        for judged in engine.gather(partial(_judge_again, work, shared), again, known, join):
            self.take(judged)
        parts = self._parts(interrupted=False)
        if self.options.trace is not None and parts.traces and not parts.violations:
            parts.life = list(self._life(self.options.trace))
        return parts

    def _life(self, trace: str) -> Iterator[str]:
        """What happened to the one trace that was asked for, by spec: others may have a subject of that name."""
        of = with_specs(self.options.specs)
        batches = reading.read(self.path, of=of)
        found = gathered((batch.filter(pc.equal(batch.column("trace"), pa.scalar(trace))) for batch in batches), of)
        for traces in found:
            if len(found) > 1:
                yield f"As a trace of {traces.spec.name}:"
            yield from life(traces.spec, list(traces.taken(0)), self.options)

    def so_far(self) -> Parts:
        """As `Recording` says."""
        self._scattered()
        return self._parts(interrupted=True)

    def _parts(self, *, interrupted: bool) -> Parts:
        records = sum(judged.records for judged in self.judged.values())
        place = partial(reading.place, self.path)
        own = self.origin.profile or STRICT
        recorded = Recorded(self.name, self.path.stat().st_size, records, self.path.name, place, own)
        parts = Teller(recorded, self.options, self.options.trace).parts(self._tallies(), interrupted=interrupted)
        parts.profile = self.profile
        parts.notes += self._notes()
        parts.listed = sum(judged.listed for judged in (*self.judged.values(), *self.joined))
        return parts

    def _notes(self) -> list[str]:
        """Whose events they are, and by which profile they are judged where nobody says."""
        if self.origin.kind:
            return [f"its events come from: {self.origin.kind}"]
        if self.origin.profile:
            return []
        return [f"it does not say by which profile it is to be judged: judged by {self.profile}"]

    def _scattered(self) -> tuple[Hashes, list[EventStretch]]:
        """The traces that occur in several stretches, and the stretches that must be read again for them."""
        every = np.sort(np.concatenate([NO_HASHES, *(h for j in self.judged.values() for h in (j.whole, j.loose))]))
        shared = np.unique(every[1:][every[1:] == every[:-1]])
        again = [
            self.splits[number]
            for number, judged in self.judged.items()
            if judged.too_many or among(judged.whole, shared).any()
        ]
        for judged in self.judged.values():
            judged.whole = judged.loose = NO_HASHES
        for stretch in again:  # what was said of half a trace counts for nothing
            self.judged[stretch.number] = StretchResult(stretch.number, self.judged[stretch.number].records)
        return shared, again

    def _loose(self) -> list[Packed]:
        """The events that were handed on by stretches that need not be read again."""
        loose = [part for judged in self.judged.values() for part in judged.packed]
        for judged in self.judged.values():
            judged.packed = []
        return loose

    def _first_rows(self) -> Ints:
        """The row of the file at which every stretch begins."""
        records = [self.judged[stretch.number].records for stretch in self.splits]
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(records, dtype=np.int64)])

    def _tallies(self) -> dict[str, Tally]:
        """All that was said, by spec, in the order in which the specs appear in the file."""
        total: dict[str, Tally] = {}
        rows = 0
        for _, judged in sorted(self.judged.items()):
            for name, tally in judged.tallies.items():
                total.setdefault(name, Tally(tally.begins + rows)).add(tally, rows)
            rows += judged.records
        for judged in self.joined:
            for name, tally in judged.tallies.items():
                total.setdefault(name, Tally(tally.begins)).add(tally, 0)
        return dict(sorted(total.items(), key=lambda item: item[1].begins))


def profile_of(path: Path, said: Origin) -> str:
    """The profile that a file is judged by unless the user names one: what it says; strict where it does not.

    Raises Unreadable where it names one that nobody knows.
    """
    if said.profile and said.profile not in PROFILES:
        where = "its metadata" if is_parquet(path) else "line 1"
        raise Unreadable(
            f"{shown(path)}, {where}: no such profile: {shown(said.profile)}, expected one of {', '.join(PROFILES)}; "
            "name one with --profile, which wins over what a file says"
        )
    return said.profile or STRICT


def _judge_again(work: StretchTask, shared: Hashes, stretch: EventStretch) -> tuple[StretchResult, Sequence[Packed]]:
    """A stretch judged without the traces that others share, and these to be handed on."""
    judged = judge_stretch(work, shared, stretch)
    parts, judged.packed = judged.packed, []
    return judged, parts
