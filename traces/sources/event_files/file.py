"""One file of events, judged in stretches or in its own order.

Each stretch is judged by a task that reads it. A trace that lies wholly in one is judged there. The first and the last
trace of a stretch may continue in a neighbour: they are shipped as rows, and judged when the whole trace has come
together. The hashes of the names show if that is all: if another trace occurs in several stretches, these are read
again, and that trace is shipped too. If most traces continue from stretch to stretch, all is judged in the file's order
(`judging/in_order`): by the process that asked, or on a cluster by one task. Only a stretch is in memory as columns,
0.2 kB for an event.
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
from gapless.traces.engines.engine import Engine, InProcess
from gapless.traces.events import reading
from gapless.traces.events.event import Origin
from gapless.traces.events.files import codec_of, is_parquet
from gapless.traces.events.reading import EventStretch, whole
from gapless.traces.events.schema import with_specs
from gapless.traces.files.remote import RemotePath
from gapless.traces.judging.columns import EventPack, Hashes, gathered, repeated
from gapless.traces.judging.findings.teller import EventOrigin, Teller
from gapless.traces.judging.streaming.in_order import InOrder, Wanted
from gapless.traces.judging.tallies import Tally
from gapless.traces.options import Options
from gapless.traces.problems import Unreadable, shown
from gapless.traces.replay.kernels import Ints
from gapless.traces.replay.trace_history import trace_history
from gapless.traces.report.parts import Parts
from gapless.traces.report.wording import plural
from gapless.traces.sources.event_files.shared_names import (
    NamedStretch,
    SharedNames,
    hand_on_all,
    shared_names,
    ship_names,
    together,
)
from gapless.traces.sources.event_files.stretches import (
    FAR,
    NO_HASHES,
    StretchResult,
    StretchTask,
    among,
    hand_on,
    interleaved,
    judge_in_order,
    judge_packed,
    judge_stretch,
    pick,
    read_on,
    rehearse,
)

if TYPE_CHECKING:
    from gapless.traces.report.outputs.verdict_table import TableRows

NAMES = 1 << 24  # hashes of traces that the driver of a cluster takes, of eight bytes each: 128 MiB
NAMES_OF_ONE = 1 << 19  # of one stretch
PARTS = 4  # of the buckets of events: so many buckets have the names
NAMED = 100_000  # events whose traces are suggested where a trace is asked for that is not there
STRETCH = 16 << 20  # bytes of a file that one task reads
ROW, LINE = 2, 128  # bytes of an event, at least, by which it is guessed how many there are
MANY = 8  # stretches from which it pays to ask whether traces go on from one to the next
SHUFFLE = 6  # times the processor time of a task that judges all events in their order: reads, packs, sends, sorts them


class EventFile:
    """One file, and the results of its stretches so far.

    A later result of a stretch replaces its earlier one. `read`: the origin and the bytes of a file that was read as a
    whole, and is not opened again.
    """

    def __init__(
        self,
        name: Path,
        path: Path,
        options: Options,
        table: TableRows | None,
        read: tuple[Origin, int] | None = None,
    ) -> None:
        self.name = name
        self.path = path
        self.origin = read[0] if read else reading.origin(path)
        self.bytes = read[1] if read else None
        self.profile = options.profile or profile_of(path, self.origin)
        self.options = replace(options, profile=self.profile)
        self.table = table
        self.splits = [] if read else reading.stretches(path, options.split or STRETCH)
        self.judged: dict[int, StretchResult] = {}
        self.joined: list[StretchResult] = []
        self.in_order: InOrder | None = None

    def task(self, engine: Engine) -> Callable[[EventStretch], StretchResult]:
        """See `Recording`; a file whose traces are interleaved is judged in its order."""
        work = self._work(engine)
        several = len(self.splits) > 1 and not codec_of(self.path)
        if engine.sends_code and not self._is_alone(engine):
            rehearse(work, self.splits[0], self._bytes // (ROW if is_parquet(self.path) else LINE))
        near = engine.near and several
        here = near and (self._is_alone(engine) or self._is_read_fast())
        if (here or (near and len(self.splits) >= MANY)) and interleaved(work, self.splits):
            self.in_order = self._in_order()
            return InProcess(read_on, replace(work, ahead=engine.processors > 1)) if here else partial(hand_on, work)
        if several and not near and 0 < min(interleaved(work, self.splits), engine.workers) <= SHUFFLE:
            self.splits = [whole(self.splits)]
            return partial(judge_in_order, replace(work, ahead=engine.workers > 1))
        return partial(judge_stretch, work, None)

    @property
    def _bytes(self) -> int:
        return sum(split.bytes for split in self.splits)

    def _is_alone(self, engine: Engine) -> bool:
        return engine.is_alone([split.bytes for split in self.splits])

    def _is_read_fast(self) -> bool:
        """True if it takes longer to send events from a worker to this process than to read them here."""
        return is_parquet(self.path) and not isinstance(self.path, RemotePath)

    def _in_order(self) -> InOrder:
        return InOrder(shown(str(self.name)), self.options, with_specs(self.options.specs))

    def _work(self, engine: Engine) -> StretchTask:
        buckets = min(engine.buckets, len(self.splits))
        idle = engine.processors > 1 and self._is_alone(engine)
        names = FAR if engine.near else min(NAMES // max(1, len(self.splits)), NAMES_OF_ONE)
        return StretchTask(
            self.path, str(self.name), self.options, buckets, engine.handed_on, self.table, ahead=idle, names=names
        )

    def take(self, result: StretchResult) -> None:
        """See `Recording`. Raises KeyboardInterrupt if a task was interrupted."""
        if result.problem:
            raise Unreadable(result.problem)
        if result.stretch is None:
            self.joined.append(result)
        else:
            self.judged[result.stretch] = result
            if self.in_order is not None:
                begins = self._first_rows(len(self.judged) - 1)
                for piece in result.pieces:
                    result.records += self.in_order.take_piece(piece, int(begins[-1]) + result.records)
                parts, result.packed = result.packed, []
                self.in_order.take(parts, np.append(begins, begins[-1] + result.records))
        if result.interrupted:
            raise KeyboardInterrupt

    def finish(self, engine: Engine) -> Parts:
        """See `Recording`: first, traces that several stretches share are put together."""
        if self.in_order is None and len(self.splits) > 1:
            self._put_together(engine)
        if self.in_order is not None:
            self._add_result(self.in_order, self.in_order.finish(partial(self._picked, engine)))
        parts = self.parts()
        if self.options.trace is not None and parts.traces and not parts.violations:
            parts.life = list(self._history(self.options.trace))
        return parts

    def _put_together(self, engine: Engine) -> None:
        """Judge the traces that several stretches share: in the file's order here, or in buckets."""
        work = self._work(engine)
        found = self._found_by(engine, work) if self._is_unnamed() else None
        shared, again = self._scattered(found)
        known = self._loose()
        if not engine.near:
            join = partial(judge_packed, work, self._first_rows())
            all_of_them = found is not None and found.are_too_many
            task = partial(hand_on_all, work) if all_of_them else partial(_judge_again, work, shared)
            for judged in engine.gather(task, again, known, join):
                self.take(judged)
            return
        joined, sizes = self._in_order(), [stretch.bytes for stretch in again]
        loose: dict[int, list[EventPack]] = {}
        for part in known:
            loose.setdefault(part.stretch, []).append(part)
        rows = self._first_rows()
        for judged in engine.each(partial(judge_stretch, work, shared), again, sizes):
            for number in sorted(number for number in loose if number < (judged.stretch or 0)):
                joined.take(loose.pop(number), rows)
            parts, judged.packed = judged.packed, []
            self.take(judged)
            joined.take(parts, rows)
        for number in sorted(loose):
            joined.take(loose.pop(number), rows)
        self.in_order = joined

    def _picked(self, engine: Engine, wanted: Wanted) -> Iterator[EventPack]:
        """Yield the events of some traces, read again."""
        pieces = engine.each(partial(pick, self._work(engine), wanted), self.splits, [s.bytes for s in self.splits])
        for judged in pieces:
            if judged.problem:
                raise Unreadable(judged.problem)
            yield from judged.packed

    def _add_result(self, in_order: InOrder, tallies: dict[str, Tally]) -> None:
        """Add the tallies of a judgement in the file's order as one more result."""
        judged = StretchResult(None, tallies=tallies)
        if self.table is not None:
            judged.listed = self.table.write("in-order", in_order.verdicts)
        self.joined.append(judged)

    def _history(self, trace: str) -> Iterator[str]:
        """Yield the history of the one selected trace, by spec: several specs may have a subject of that name."""
        of = with_specs(self.options.specs)
        batches = reading.read(self.path, of=of)
        found = gathered((batch.filter(pc.equal(batch.column("trace"), pa.scalar(trace))) for batch in batches), of)
        for traces in found:
            if len(found) > 1:
                yield f"As a trace of {traces.spec.name}:"
            yield from trace_history(traces.spec, list(traces.taken(0)), self.options)

    def so_far(self) -> Parts:
        """See `Recording`."""
        if self.in_order is None:
            self._scattered()
        else:
            self._add_result(self.in_order, self.in_order.so_far())
        return self.parts(interrupted=True)

    def parts(self, *, interrupted: bool = False) -> Parts:
        """Return the result of the stretches that were taken. Raises Unreadable."""
        records = sum(judged.records for judged in self.judged.values())
        place = partial(reading.place, self.path)
        own = self.origin.profile or STRICT
        size = self.path.stat().st_size if self.bytes is None else self.bytes
        recorded = EventOrigin(
            self.name, size, records, self.path.name, place, own, None, self.origin.kind, self._names
        )
        parts = Teller(recorded, self.options, self.options.trace).parts(self._tallies(), interrupted=interrupted)
        parts.profile = self.profile
        parts.reasons += self.origin.undecided.splitlines()
        parts.notes += self._notes()
        parts.listed = sum(judged.listed for judged in (*self.judged.values(), *self.joined))
        return parts

    def _names(self) -> list[str]:
        """The names of the traces of the first events."""
        schema = with_specs(self.options.specs)
        columns = pa.schema([schema.columns.field("trace")])
        found: dict[str, None] = {}
        rows = 0
        for batch in reading.selected(self.path, columns, None, schema):
            found |= dict.fromkeys(str(name) for name in pc.unique(batch.column("trace")).to_pylist())
            rows += batch.num_rows
            if rows >= NAMED:
                break
        return list(found)

    def _notes(self) -> list[str]:
        """List the origin of the events, and the profile that applies if none is stated."""
        notes = []
        if self.in_order is not None and self.in_order.without_story:
            notes.append(
                f"departures whose stories were not read again: {plural(self.in_order.without_story, 'trace')} more"
            )
        if self.origin.kind:
            notes.append(f"its events come from: {self.origin.kind}")
        elif not self.origin.profile:
            notes.append(f"it does not say by which profile it is to be judged: judged by {self.profile}")
        return notes

    def _is_unnamed(self) -> bool:
        """True if there are too many traces for all of their names to be here."""
        return any(judged.is_unnamed for judged in self.judged.values())

    def _found_by(self, engine: Engine, work: StretchTask) -> SharedNames:
        """Find the traces that occur in several stretches by the engine's tasks, without their names here."""
        buckets = PARTS * engine.buckets
        stretches = [NamedStretch(split, self.judged[split.number].loose) for split in self.splits]
        ship, join = partial(ship_names, work, buckets), partial(shared_names, NAMES // buckets)
        return together(engine.gather(ship, stretches, [], join))

    def _scattered(self, found: SharedNames | None = None) -> tuple[Hashes, list[EventStretch]]:
        """Return the traces that occur in several stretches, and the stretches to read again for them.

        `found`: those that tasks have found. Where they are unknown, any trace may be half a one.
        """
        if found is None and self._is_unnamed():
            found = SharedNames(are_too_many=True)
        shared = found.hashes if found else repeated([h for j in self.judged.values() for h in (j.whole, j.loose)])
        again = [
            self.splits[number]
            for number, judged in self.judged.items()
            if judged.too_many
            or (found.are_too_many or number in found.stretches if found else among(judged.whole, shared).any())
        ]
        for judged in self.judged.values():
            judged.whole = judged.loose = NO_HASHES
            judged.is_unnamed = False
        for stretch in again:  # results of half a trace do not count
            self.judged[stretch.number] = StretchResult(stretch.number, self.judged[stretch.number].records)
        return shared, again

    def _loose(self) -> list[EventPack]:
        """Return the shipped events of stretches that need not be read again."""
        loose = [part for judged in self.judged.values() for part in judged.packed]
        for judged in self.judged.values():
            judged.packed = []
        return loose

    def _first_rows(self, count: int | None = None) -> Ints:
        """Return the row of the file at which each of the first `count` stretches begins, or every one."""
        records = [self.judged[stretch.number].records for stretch in self.splits[:count]]
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(records, dtype=np.int64)])

    def _tallies(self) -> dict[str, Tally]:
        """Add all tallies by spec, in the order in which the specs appear in the file."""
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


def profile_of(path: Path, origin: Origin) -> str:
    """Return the file's own profile, or strict: it applies unless the user names another.

    Raises Unreadable if the file names an unknown one.
    """
    if origin.profile and origin.profile not in PROFILES:
        where = "its metadata" if is_parquet(path) else "line 1"
        raise Unreadable(
            f"{shown(path)}, {where}: no such profile: {shown(origin.profile)}, expected one of {', '.join(PROFILES)}; "
            "name one with --profile, which wins over what a file says"
        )
    return origin.profile or STRICT


def _judge_again(work: StretchTask, shared: Hashes, stretch: EventStretch) -> tuple[StretchResult, Sequence[EventPack]]:
    """Judge a stretch without the traces that others share, and ship these."""
    judged = judge_stretch(work, shared, stretch)
    parts, judged.packed = judged.packed, []
    return judged, parts
