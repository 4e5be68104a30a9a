"""Entries whose tag code is an address: reads and judges the units that they name.

With `enableConsumeQueueExt` an entry holds, in place of its tag code, where a unit lies that holds the code, the store
time of the message and a bitmap for filters (docs/rocketmq.md#extended). A unit's code takes the place of the address,
and is judged as any other; the unit itself is judged by `spec/extension.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gapless.spec.catalog import SPECS
from gapless.traces.judging.building import Events
from gapless.traces.replay.exact import Event
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import LogFile, Queue, QueueFile, read_exactly

FOLDER = "consumequeue_ext"
EXTENDED = -2147483649  # tag codes from here down are addresses
LOWEST = -(2**63)  # the address of the first unit
UNIT = np.dtype([("size", ">i2"), ("tag", ">i8"), ("time", ">i8"), ("bitmap", ">i2")])
AT_ONCE = 1 << 22  # bytes that are read at once


@dataclass(frozen=True, eq=False)
class Units:
    """The units of a segment's entries, queue by queue.

    `queues`: whose the events are · `starts`: where the events of each queue begin · `events`: of `extension` ·
    `positions`: log positions of the messages · `offsets`: where in the extension each unit lies.
    """

    queues: list[Queue]
    starts: Ints
    events: Events
    positions: Ints
    offsets: Ints


@dataclass(frozen=True)
class RefusedUnit:
    """A refused unit: its queue, the event, the log position of the message, and the offset of the unit."""

    queue: Queue
    event: Event
    position: int
    offset: int


def units_of(
    store: StoreDirectory,
    queues: Sequence[Queue],
    owners: Ints,
    *,
    numbers: Ints,
    positions: Ints,
    tags: Ints,
    times: Ints,
) -> tuple[Units, Ints]:
    """Reads the units at these addresses, and the tag codes in them; 0 without a unit.

    `owners`: of each entry its queue, by index, rising · `times`: when its message was stored, in ms. Raises
    Unreadable.
    """
    offsets = tags ^ LOWEST
    found = np.zeros(len(tags), UNIT)
    room, whole = np.zeros(len(tags), np.int64), np.zeros(len(tags), np.bool_)
    bounds = np.flatnonzero(np.diff(owners, prepend=-1, append=len(queues)))
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        queue = queues[owners[low]]
        for file in store.extension.get(queue, ()):
            first, last = file.base, file.base + file.length - UNIT.itemsize
            (inside,) = np.nonzero((offsets[low:high] >= first) & (offsets[low:high] <= last))
            for some in _batches(offsets[low:high], inside):
                found[low + some] = _read(store, queue, file, offsets[low + some])
            room[low + inside] = file.base + file.length - offsets[low + inside] - found["size"][low + inside]
            whole[low + inside] = found["size"][low + inside] > 0
    spec = SPECS["extension"]
    events = Events.room(spec, len(tags))
    events.action[:] = spec.codes["find_unit"]
    for name, values in (
        ("number", numbers), ("size", found["size"]), ("bitmap", found["bitmap"]), ("room", room), ("whole", whole),
        ("timely", found["time"].astype(np.int64) == times),
    ):  # fmt: skip
        events.column(name)[:] = values
    codes: Ints = np.where(whole, found["tag"].astype(np.int64), 0)
    return Units([queues[owner] for owner in owners[bounds[:-1]].tolist()], bounds, events, positions, offsets), codes


def _batches(offsets: Ints, inside: Ints) -> Iterator[Ints]:
    """Yields batches of units that are close enough to be read at once."""
    inside = inside[np.argsort(offsets[inside], kind="stable")]
    while len(inside):
        near = offsets[inside] < offsets[inside[0]] + AT_ONCE
        yield inside[near]
        inside = inside[~near]


def _read(store: StoreDirectory, queue: Queue, file: QueueFile, offsets: Ints) -> npt.NDArray[np.void]:
    """Reads the fixed parts of the units at these offsets."""
    low = int(offsets.min())
    data = np.zeros(int(offsets.max()) + UNIT.itemsize - low, np.uint8)
    read_exactly(unit_file(store, queue, file), low - file.base, data.data)
    found: npt.NDArray[np.void] = data[(offsets - low)[:, None] + np.arange(UNIT.itemsize)].view(UNIT)[..., 0]
    return found


def unit_file(store: StoreDirectory, queue: Queue, file: QueueFile) -> LogFile:
    """Returns a file of an extension for reading."""
    return LogFile(f"{store.path}/{FOLDER}/{queue[0]}/{queue[1]}/{file.base:020d}", file.base, file.length)


def unit_place(store: StoreDirectory, queue: Queue, at: int) -> tuple[str, int]:
    """Returns the file of a unit, relative to the store, and the offset in it."""
    base = max((file.base for file in store.extension.get(queue, ()) if file.base <= at), default=0)
    return f"{FOLDER}/{queue[0]}/{queue[1]}/{base:020d}", at - base
