"""The files of the index of tiered storage, and the layout of each. Nothing is judged here.

A file that is being written is a header, a table of slots, and items in linked lists; a full file was written again,
with the items of a slot adjacent, the newest first, and the slots in their order. Here both are read like the hash
index of the broker's own log: items by numbers from 1 on, each with the one before it in its slot. In a full file the
last item has number 1, so that the one before it in its slot lies behind it.

Source: docs/rocketmq-tiered.md#index; IndexStoreFile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.layouts.hash_index.index_files import AT_ONCE, ITEM, Heads, Items, sizes_set
from gapless.traces.sources.rocketmq.layouts.tiered.files import INDEX_TOPIC, TieredFile, opened_storage
from gapless.traces.sources.rocketmq.store.files import FARTHEST, LogFile, read_exactly

FOLDER = "tiered_index_file"
SETTINGS = ("tieredStoreIndexFileMaxHashSlotNum", "tieredStoreIndexFileMaxIndexNum")
HEADER = np.dtype([("magic", ">u4"), ("begin", ">i8"), ("end", ">i8"), ("used", ">i4"), ("items", ">i4")])
SLOT = np.dtype([("first", ">i4"), ("bytes", ">i4")])
FIELDS = [("hash", ">i4"), ("topic", ">i4"), ("queue", ">i4"), ("position", ">i8"), ("size", ">i4"), ("seconds", ">i4")]
WRITTEN, SEALED = np.dtype([*FIELDS, ("previous", ">i4")]), np.dtype(FIELDS)  # items
MAGIC = (0xBCC50289, 0xBCC50285)  # begin files: of one that is written, and of one that is full
COUNTED = 1 << 20  # items that are counted at once: each time all slots are gone over


@dataclass(frozen=True)
class TieredIndexFile:
    """One file of the index of tiered storage.

    `name`: as a trace · `file`: as reports call it · `sealed`: whether it is full · `items`: exclusive end of its
    items · `header`: begin and end in ms, two zeros, slots in use, exclusive end of the items, as it says · `began`:
    the time in ms from which those of its items count, by which the file is known.
    """

    name: str
    file: str
    path: Path
    sealed: bool
    slots: int
    items: int
    header: tuple[int, int, int, int, int, int]
    began: int

    @property
    def ended(self) -> int:
        """The expected time of the last record in the header: any, because brokers set another."""
        return self.header[1]

    def slot_at(self, slot: int) -> int:
        """The offset of a slot in the file."""
        return HEADER.itemsize + slot * SLOT.itemsize

    def item_at(self, item: int) -> int:
        """The offset of an item in the file."""
        if self.sealed:
            return self.slot_at(self.slots) + (self.items - 1 - item) * SEALED.itemsize
        return self.slot_at(self.slots) + item * WRITTEN.itemsize

    @cached_property
    def opened(self) -> LogFile:
        """All its bytes."""
        return LogFile(str(self.path), 0, self.path.stat().st_size)

    def fields(self, low: int, high: int) -> Items:
        """Reads all fields of the items from number `low` to `high`. Raises Unreadable."""
        kind = SEALED if self.sealed else WRITTEN
        data = np.zeros(max(high - low, 0) * kind.itemsize, np.uint8)
        if len(data):
            read_exactly(self.opened, self.item_at(high - 1 if self.sealed else low), data.data)
        items = data.view(kind)
        return items[::-1] if self.sealed else items

    def read(self, low: int, high: int) -> Items:
        """The items from number `low` to `high`, as `IndexFile` has them: but they lie in no log's order, but at 0."""
        before = 1 if self.sealed and low > 1 else 0
        items = self.fields(low - before, high)
        read = np.zeros(len(items), ITEM)
        read["hash"] = items["hash"]
        if self.sealed:
            slots = items["hash"].astype(np.int64) % self.slots
            same = np.concatenate([[False], slots[1:] == slots[:-1]])
            read["previous"] = np.where(same, np.arange(low - before, high) - 1, 0)
        else:
            read["previous"] = items["previous"]
        return read[before:]

    def stretches(self, count: int = AT_ONCE) -> Iterator[tuple[int, int]]:
        """The items in stretches of so many: from which number to which."""
        for low in range(1, self.items, count):
            yield low, min(low + count, self.items)

    def heads(self) -> Iterator[tuple[int, Heads]]:
        """Implements `IndexFile.heads`, in one piece. Raises Unreadable."""
        yield 0, self._heads().astype(np.int32)

    def _heads(self) -> Ints:
        """Returns the heads of slots; -1 if a slot of a full file has other items than those of its hashes."""
        data = np.zeros(self.slots * SLOT.itemsize, np.uint8)
        read_exactly(self.opened, HEADER.itemsize, data.data)
        first, size = (data.view(SLOT)[name].astype(np.int64) for name in ("first", "bytes"))
        if not self.sealed:
            return np.maximum(first, 0)  # as the broker reads it
        counts = np.zeros(self.slots, np.int64)
        for low, high in self.stretches(COUNTED):
            counts += np.bincount(self.fields(low, high)["hash"].astype(np.int64) % self.slots, minlength=self.slots)
        behind = first - self.slot_at(self.slots)
        right = (size == counts * SEALED.itemsize) & (behind >= 0) & (behind % SEALED.itemsize == 0)
        named = np.where(right, self.items - 1 - behind // SEALED.itemsize, -1)
        return np.where((size <= 0) & (counts == 0), 0, named)


class UnreadFile(NamedTuple):
    """A file that cannot be read, and why; `lost`: whether it may be damaged."""

    why: str
    lost: bool


def opened_index(judged: StoreFindings) -> tuple[list[TieredIndexFile], list[UnreadFile]]:
    """Opens the files that can be read, once, and returns them with the others. Raises Unreadable."""
    storage, _ = opened_storage(judged)
    store = judged.store
    segments = storage.index if storage else ()
    return judged.open("tiered_index", lambda: _index_files(Path(store.path), store.settings, segments))


def _index_files(
    store: Path, settings: Mapping[str, str], segments: tuple[TieredFile, ...]
) -> tuple[list[TieredIndexFile], list[UnreadFile]]:
    """The files that can be read, in the order of their making, and the others. Raises Unreadable."""
    folder = store / FOLDER
    written = [
        _written(path, settings)
        for path in (sorted(folder.iterdir()) if folder.is_dir() else ())
        if path.is_file() and path.name.isdecimal() and len(path.name) < len(str(FARTHEST))
    ]
    both = [*(_sealed(segment, settings, oldest=not at) for at, segment in enumerate(segments)), *written]
    return [one for one in both if isinstance(one, TieredIndexFile)], [
        one for one in both if isinstance(one, UnreadFile)
    ]


def _sealed(segment: TieredFile, settings: Mapping[str, str], *, oldest: bool) -> TieredIndexFile | UnreadFile:
    if segment.length < 0:  # each file that expires goes before its metadata
        return UnreadFile(f"{segment.name} is not there", lost=not oldest)
    if segment.length != segment.committed or segment.length < HEADER.itemsize + SLOT.itemsize:
        why = f"{segment.name} is {segment.length:,} bytes long, and {segment.committed:,} are committed"
        return UnreadFile(why, lost=segment.length < segment.committed)
    begin, end, used, count, magic = _header(segment.opened)
    slots = _slots_of_sealed(segment.opened, settings, count)
    if magic not in MAGIC or not slots:
        return UnreadFile(f"what {segment.name} begins with is not what a broker writes", lost=True)
    items = 1 + (segment.length - HEADER.itemsize - slots * SLOT.itemsize) // SEALED.itemsize
    began = segment.oldest if segment.oldest < FARTHEST else begin
    return TieredIndexFile(
        f"{INDEX_TOPIC}/{segment.base}", segment.name, segment.path, sealed=True, slots=slots, items=items,
        header=(begin, end, 0, 0, used, count + 1), began=began,
    )  # fmt: skip


def _slots_of_sealed(file: LogFile, settings: Mapping[str, str], count: int) -> int:
    """Returns the number of slots, by its length, or by the place of its first items; 0 if unknown."""
    data = np.zeros(SLOT.itemsize, np.uint8)
    read_exactly(file, HEADER.itemsize, data.data)
    first = (int(data.view(SLOT)["first"][0]) - HEADER.itemsize) // SLOT.itemsize
    named = [sizes_set(settings, SETTINGS)[0], first]
    by_length = (file.length - HEADER.itemsize - count * SEALED.itemsize) // SLOT.itemsize
    for slots in (*(one for one in named if one == by_length), *named):
        rest = file.length - HEADER.itemsize - slots * SLOT.itemsize
        if slots > 0 and rest >= 0 and rest % SEALED.itemsize == 0:
            return slots
    return 0


def _written(path: Path, settings: Mapping[str, str]) -> TieredIndexFile | UnreadFile:
    name, file = f"{FOLDER}/{path.name}", LogFile(str(path), 0, path.stat().st_size)
    slots, most = sizes_set(settings, SETTINGS)
    expected = HEADER.itemsize + slots * SLOT.itemsize + most * WRITTEN.itemsize
    if file.length != expected:
        why = (
            f"{name} is {file.length:,} bytes long, where {SETTINGS[0]} and {SETTINGS[1]}, or their defaults, make "
            f"{expected:,} (--config)"
        )
        return UnreadFile(why, lost=False)
    begin, end, used, count, magic = _header(file)
    if magic not in MAGIC:
        return UnreadFile(f"what {name} begins with is not what a broker writes", lost=True)
    header = (begin, end, 0, 0, used, count + 1)
    begun = TieredIndexFile(name, name, path, sealed=False, slots=slots, items=1, header=header, began=int(path.name))
    newest = max(int(heads.max(initial=0)) for _, heads in begun.heads())
    full = newest >= most or newest == count + 1  # the latter is the last step of a broker that was killed, or damage
    return replace(begun, items=1 + (min(max(count, 0), most - 1) if full else newest))


def _header(file: LogFile) -> tuple[int, int, int, int, int]:
    data = np.zeros(HEADER.itemsize, np.uint8)
    read_exactly(file, 0, data.data)
    magic, begin, end, used, count = data.view(HEADER)[0].tolist()
    return begin, end, used, count, magic
