"""Tasks on stretches of an event file: judge the traces that lie wholly in one, and ship the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gapless.native import expecting
from gapless.traces.events import reading
from gapless.traces.events.encoded_batch import EncodedBatch
from gapless.traces.events.files import codec_of, is_parquet
from gapless.traces.events.reading import EventStretch
from gapless.traces.events.schema import EventSchema, with_specs
from gapless.traces.judging.columns import (
    EventPack,
    Hashes,
    Traces,
    are_short,
    gathered,
    hashed,
    packed,
    packed_whole,
    repeated,
    unpacked,
)
from gapless.traces.judging.judge import Judge
from gapless.traces.judging.streaming.in_order import InOrder, Wanted
from gapless.traces.judging.tallies import Tally
from gapless.traces.options import Options
from gapless.traces.problems import Unreadable, shown
from gapless.traces.replay.kernels import Ints

if TYPE_CHECKING:
    from gapless.traces.report.outputs.verdict_table import TableRows


FAR = 1 << 32  # events: where fewer may be handed on, they travel far, and are packed tightly
FEW = 64  # events that show which native code is needed
PIECE = 500_000  # events that are judged at once where a file is judged in its order
NO_HASHES: Hashes = np.zeros(0, np.uint64)
NO_NAMES = pa.nulls(0, pa.string())


@dataclass
class StretchResult:
    """The result of one task. `stretch` is None if it judged traces that several stretches share.

    `records`: events in the stretch · `tallies`: by spec · `whole`: of the traces judged here · `loose`: of those that
    may continue elsewhere · `packed`: their events, unless they are `too_many` to be shipped at once · `is_unnamed`:
    too many traces were judged for `whole` to have them · `problem`: why the stretch cannot be read · `listed`:
    verdicts that were written · `pieces`: instead of all that, its events, read on demand: the process that reads them
    judges them in the order of the file.
    """

    stretch: int | None
    records: int = 0
    tallies: dict[str, Tally] = field(default_factory=dict)
    whole: Hashes = field(default_factory=lambda: NO_HASHES)
    loose: Hashes = field(default_factory=lambda: NO_HASHES)
    packed: list[EventPack] = field(default_factory=list)
    too_many: bool = False
    is_unnamed: bool = False
    problem: str = ""
    interrupted: bool = False
    listed: int = 0
    pieces: Iterator[list[Traces]] = field(default_factory=lambda: iter(()))


@dataclass(frozen=True)
class StretchTask:
    """The data that every task of one file needs.

    `buckets`: how many there are, in which shared traces come together · `handed_on`: how many events may travel
    speculatively · `table`: where verdicts are written, if they are wanted · `ahead`: a processor is idle, and may read
    ahead · `names`: of how many traces a result may have the hashes.
    """

    path: Path
    name: str  # of the file, as the user gave it
    options: Options
    buckets: int
    handed_on: int
    table: TableRows | None
    ahead: bool
    names: int

    @property
    def events(self) -> EventSchema:
        """The events that may be in it: of our specs, and of those that the user brings."""
        return with_specs(self.options.specs)

    def judge(self) -> Judge:
        """Make a judge of its traces."""
        return Judge(shown(self.name), self.options)

    def done(self, judged: StretchResult, judge: Judge, part: str) -> StretchResult:
        """Build the result of a judge, and write its verdicts if they are wanted."""
        judged.tallies = judge.tallies
        if self.table is not None:
            judged.listed = self.table.write(part, judge.verdicts)
        return judged


def judge_stretch(work: StretchTask, shared: Hashes | None, stretch: EventStretch) -> StretchResult:
    """Judge the traces that lie wholly in a stretch, and ship the others: those that are `shared`.

    As long as the shared ones are unknown (None), the first and the last are shipped, and those that span over half of
    the stretch: they continue in a neighbour more often than not.
    """
    if codec_of(work.path):  # it cannot be split
        return judge_in_order(work, stretch)
    judged, batches = begun(work, stretch)
    if judged.problem:
        return judged
    judge = work.judge()
    try:
        for traces in _judge_batches(work, batches, shared, stretch, judged, judge):
            judge.take(traces, ~_loose(work, traces, shared, stretch, judged))
    except KeyboardInterrupt:
        judged.interrupted = True
    if len(judged.whole) + len(judged.loose) > work.names:
        judged.is_unnamed, judged.whole = True, NO_HASHES
        judged.loose = NO_HASHES if judged.too_many else judged.loose  # those that are shipped are few
    return work.done(judged, judge, f"{stretch.number:06d}")


def begun(work: StretchTask, stretch: EventStretch) -> tuple[StretchResult, list[EncodedBatch]]:
    """Read a stretch: its events, or the reason why it cannot be read."""
    try:
        batches = list(reading.coded(work.path, stretch, work.events, ahead=work.ahead))
    except Unreadable as problem:
        return StretchResult(stretch.number, problem=str(problem)), []
    return StretchResult(stretch.number, sum(map(len, batches))), batches


def _judge_batches(
    work: StretchTask,
    batches: list[EncodedBatch],
    shared: Hashes | None,
    stretch: EventStretch,
    judged: StretchResult,
    judge: Judge,
) -> list[Traces]:
    """Judge the traces that lie wholly in one batch, if they are short; return all others.

    Only traces that span batches are concatenated: to concatenate millions, and to check if each was met before, takes
    longer than to judge them. The batches are released.
    """
    if (stretch.first and stretch.last) or not are_short(batches):
        every = gathered(batches, work.events)
        batches.clear()
        return every
    parts: list[Traces] = []
    row = 0
    while batches:
        batch = batches.pop(0)
        parts += gathered([batch], work.events, row, looked_up=False)
        row += len(batch)
    hashes = [hashed(traces) for traces in parts]
    elsewhere = repeated(hashes)  # too, in another batch or in another stretch
    if shared is not None:
        elsewhere = np.sort(np.concatenate([elsewhere, shared]))
    whole: list[Hashes] = []
    others: list[EventPack] = []
    for number, (traces, of_each) in enumerate(zip(parts, hashes, strict=True)):
        apart = among(of_each, elsewhere) | _may_go_on(traces, stretch, judged.records)
        judge.take(traces, ~apart)
        others += packed_whole(traces, apart, number)
        whole.append(of_each[~apart])
    if shared is None:
        judged.whole = np.concatenate([NO_HASHES, *whole])
    return unpacked(others, np.zeros(len(parts), np.int64), work.events)


def judge_in_order(work: StretchTask, stretch: EventStretch) -> StretchResult:
    """Judge a whole file, piece by piece as it is read: one that is compressed, or whose traces are interleaved."""
    judged, in_order = StretchResult(stretch.number), InOrder(shown(work.name), work.options, work.events)

    def again(wanted: Wanted) -> Iterator[EventPack]:
        for number, every in enumerate(_pieces(work, stretch)):
            for traces in every:
                yield from packed_whole(traces, _named(traces, wanted), number)

    try:
        judged.records = in_order.take_all(_pieces(work, stretch))
        judged.tallies = in_order.finish(again)
    except Unreadable as problem:
        judged.problem = str(problem)
        return judged
    except KeyboardInterrupt:
        judged.interrupted = True
        judged.tallies = in_order.so_far()
    if work.table is not None:
        judged.listed = work.table.write(f"{stretch.number:06d}", in_order.verdicts)
    return judged


def _pieces(work: StretchTask, stretch: EventStretch) -> Iterator[list[Traces]]:
    """Yield the events of a stretch, not too many at a time. Raises Unreadable."""
    some: list[EncodedBatch] = []
    for events in reading.coded(work.path, stretch, work.events, ahead=work.ahead):
        some.append(events)
        if sum(map(len, some)) >= PIECE:
            yield gathered(some, work.events)
            some = []
    yield gathered(some, work.events)


def _loose(
    work: StretchTask, traces: Traces, shared: Hashes | None, stretch: EventStretch, judged: StretchResult
) -> npt.NDArray[np.bool_]:
    """Mark the traces that are not judged here, and pack their events into `judged`."""
    loose = np.zeros(len(traces.names), np.bool_)
    if stretch.first and stretch.last:
        return loose
    hashes = hashed(traces)
    if shared is not None:
        loose = among(hashes, shared)
    else:
        loose = _may_go_on(traces, stretch, judged.records)
        judged.whole = np.concatenate([judged.whole, hashes[~loose]])
        judged.loose = np.concatenate([judged.loose, hashes[loose]])
        if int(np.diff(traces.starts)[loose].sum()) > work.handed_on:
            judged.too_many = True
            return loose
    if loose.any():
        if work.handed_on < FAR:
            judged.packed += packed(traces, hashes, loose, stretch.number, work.buckets)
        else:
            judged.packed += packed_whole(traces, None if loose.all() else loose, stretch.number)
    return loose


def _may_go_on(traces: Traces, stretch: EventStretch, records: int) -> npt.NDArray[np.bool_]:
    """Mark traces that probably continue in a neighbour of a stretch: at its ends, or over half of it."""
    found: npt.NDArray[np.bool_] = 2 * (traces.row[traces.ends()] - traces.row[traces.begins()]) >= records
    found[traces.of[0]] |= traces.row[0] == 0 and not stretch.first
    found[traces.of[-1]] |= traces.row[-1] == records - 1 and not stretch.last
    return found


def judge_packed(work: StretchTask, first_rows: Ints, parts: Sequence[EventPack]) -> StretchResult:
    """Judge the traces of one bucket, put together from several stretches."""
    judged = StretchResult(None)
    judge = work.judge()
    try:
        for traces in unpacked(parts, first_rows, work.events):
            judge.take(traces, np.ones(len(traces.names), np.bool_))
    except KeyboardInterrupt:
        judged.interrupted = True
    return work.done(judged, judge, f"joined-{parts[0].bucket:06d}")


def hand_on(work: StretchTask, stretch: EventStretch) -> StretchResult:
    """Ship all events of a stretch: the traces of this file are interleaved."""
    return _handed_on(work, stretch, lambda traces: None)  # noqa: ARG005 - all are


def read_on(work: StretchTask, stretch: EventStretch) -> StretchResult:
    """Return all events of a stretch, for the process that judges them in the order of the file."""
    return StretchResult(stretch.number, pieces=_pieces(work, stretch))


def pick(work: StretchTask, wanted: Wanted, stretch: EventStretch) -> StretchResult:
    """Ship the events of some traces."""
    return _handed_on(work, stretch, lambda traces: _named(traces, wanted))


def _named(traces: Traces, wanted: Wanted) -> npt.NDArray[np.bool_]:
    names = wanted.get(traces.spec.name, NO_NAMES)
    found: npt.NDArray[np.bool_] = pc.is_in(traces.names, names).to_numpy(zero_copy_only=False)
    return found


def _handed_on(
    work: StretchTask, stretch: EventStretch, chosen: Callable[[Traces], npt.NDArray[np.bool_] | None]
) -> StretchResult:
    judged, batches = begun(work, stretch)
    if judged.problem:
        return judged
    for traces in gathered(batches, work.events):
        judged.packed += packed_whole(traces, chosen(traces), stretch.number)
    return judged


def rehearse(work: StretchTask, stretch: EventStretch, events: int) -> None:
    """Judge the beginning of one trace of each spec as if it had so many events: native code for all is compiled here.

    If it cannot be read, its task reports it.
    """
    judge = replace(work, options=replace(work.options, trace=None)).judge()
    with expecting(events), suppress(Unreadable):
        for traces in gathered(islice(reading.coded(work.path, stretch, work.events), 1), work.events):
            some = traces.only(0, 0, min(FEW, int(traces.starts[1])))
            hashed(some)
            judge.take(some, np.ones(1, np.bool_))


def interleaved(work: StretchTask, stretches: Sequence[EventStretch]) -> float:
    """Return the number of tasks that could share a file whose traces continue from stretch to stretch; 0 if few do.

    A trace is judged by one task: it is the number of all events to that of the longest such trace. Few have less than
    half of the events. It is estimated from the beginnings of the first two stretches. If these cannot be read, their
    tasks report it.
    """
    first = stretches[:2]
    if is_parquet(work.path):
        first = [replace(one, high=one.low + 1) for one in first]
    try:
        every = [gathered(islice(reading.coded(work.path, one, work.events), 1), work.events) for one in first]
    except Unreadable:
        return 0
    here, there = (np.concatenate([NO_HASHES, *map(hashed, some)]) for some in every)
    lengths = np.concatenate([np.zeros(0, np.int64), *(np.diff(traces.starts) for traces in every[0])])
    shared = lengths[among(here, np.sort(there))]
    events = int(lengths.sum())
    return events / int(shared.max()) if 2 * int(shared.sum()) > events else 0


def among(hashes: Hashes, chosen: Hashes) -> npt.NDArray[np.bool_]:
    """Mark the hashes that are in `chosen`, which is sorted."""
    if not len(chosen):
        return np.zeros(len(hashes), np.bool_)
    at = np.minimum(np.searchsorted(chosen, hashes), len(chosen) - 1)
    among: npt.NDArray[np.bool_] = chosen[at] == hashes
    return among
