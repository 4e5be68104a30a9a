"""Names of traces that several stretches share, found on a cluster: the driver has no room for the names of all.

Names are read again, and nothing else of a file that has columns. Their hashes are shuffled by bucket, and each bucket
answers with those that occur in two stretches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gapless.traces.events import reading
from gapless.traces.events.files import is_parquet
from gapless.traces.events.reading import EventStretch
from gapless.traces.judging.columns import EventPack, Hashes, gathered, hashed, hashed_names, packed
from gapless.traces.sources.event_files.stretches import NO_HASHES, StretchResult, StretchTask, among, begun

COLUMNS = pa.schema([pa.field("spec", pa.string()), pa.field("trace", pa.string())])


class NamedStretch(NamedTuple):
    """A stretch, and the hashes of those traces in it that were shipped and not judged: they may go on."""

    stretch: EventStretch
    loose: Hashes


class HashPack(NamedTuple):
    """Hashes of names that occur in one stretch: of traces that were judged there, and of the others."""

    bucket: int
    stretch: int
    whole: bytes
    loose: bytes

    @property
    def size(self) -> int:
        """The size in bytes."""
        return len(self.whole) + len(self.loose)


@dataclass(frozen=True)
class SharedNames:
    """Names that several stretches share.

    `hashes`: of the names, rising · `are_too_many`: they are more than can be sent to every task, and are not here ·
    `stretches`: those in which such a trace was judged as if it were whole.
    """

    hashes: Hashes = field(default_factory=lambda: NO_HASHES)
    are_too_many: bool = False
    stretches: frozenset[int] = frozenset()


def ship_names(work: StretchTask, buckets: int, one: NamedStretch) -> tuple[SharedNames, Sequence[HashPack]]:
    """Ship the hashes of all names in a stretch, by bucket. Raises Unreadable."""
    every = _once(np.sort(np.concatenate([NO_HASHES, *_each_hashed(work, one.stretch)])))
    is_loose = among(every, np.sort(one.loose))
    bounds = np.array([(number << 64) // buckets for number in range(1, buckets)], np.uint64)
    whole, loose = (np.split(some, np.searchsorted(some, bounds)) for some in (every[~is_loose], every[is_loose]))
    return SharedNames(), [
        HashPack(number, one.stretch.number, ours.tobytes(), others.tobytes())
        for number, (ours, others) in enumerate(zip(whole, loose, strict=True))
        if len(ours) or len(others)
    ]


def _each_hashed(work: StretchTask, stretch: EventStretch) -> Iterator[Hashes]:
    if not is_parquet(work.path):
        for events in reading.coded(work.path, stretch, work.events):
            yield from map(hashed, gathered([events], work.events, looked_up=False))
        return
    for batch in reading.selected(work.path, COLUMNS, stretch, work.events):
        spec, trace = batch.columns
        specs = list(map(str, pc.unique(spec).to_pylist()))
        for name in specs:
            of_it = trace if len(specs) == 1 else trace.filter(pc.equal(spec, pa.scalar(name)))
            yield _once(hashed_names(name, of_it))


def _once(hashes: Hashes) -> Hashes:
    """Drop those that follow an equal one."""
    once: Hashes = hashes[np.append(np.ones(len(hashes[:1]), np.bool_), hashes[1:] != hashes[:-1])]
    return once


def shared_names(most: int, packs: Sequence[HashPack]) -> SharedNames:
    """Find the names of one bucket that several stretches share; `most`: how many a bucket may answer with."""
    hashes = np.concatenate([np.frombuffer(some, np.uint64) for pack in packs for some in (pack.whole, pack.loose)])
    counts = np.array([len(some) // 8 for pack in packs for some in (pack.whole, pack.loose)])
    is_whole = np.repeat(np.arange(len(counts)) % 2 == 0, counts)
    stretch = np.repeat(np.repeat([pack.stretch for pack in packs], 2), counts)
    ordered = np.sort(hashes)
    shared = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])  # of one stretch, each is here once
    stretches = frozenset(np.unique(stretch[is_whole & among(hashes, shared)]).tolist())
    return SharedNames(NO_HASHES if len(shared) > most else shared, len(shared) > most, stretches)


def together(answers: Iterable[SharedNames]) -> SharedNames:
    """Return the names of all buckets."""
    every = list(answers)
    hashes = np.sort(np.concatenate([NO_HASHES, *(one.hashes for one in every)]))
    stretches: frozenset[int] = frozenset().union(*(one.stretches for one in every))
    return SharedNames(hashes, any(one.are_too_many for one in every), stretches)


def hand_on_all(work: StretchTask, stretch: EventStretch) -> tuple[StretchResult, Sequence[EventPack]]:
    """Ship all traces of a stretch by bucket: most of them are shared."""
    handed, batches = begun(work, stretch)
    if handed.problem:
        return handed, []
    every = gathered(batches, work.events)
    work.done(handed, work.judge(), f"{stretch.number:06d}")  # instead of verdicts on halves of traces
    return handed, [
        part
        for traces in every
        for part in packed(traces, hashed(traces), np.ones(len(traces.names), np.bool_), stretch.number, work.buckets)
    ]
