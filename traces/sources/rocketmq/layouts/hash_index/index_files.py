"""The files of the hash index: their layout, and the ranges of the log to which their items point.

A file is a header, a table of slots, and items; nothing in it says how many slots there are (docs/rocketmq.md#index).
Settings do, or a length that is that of the defaults. Nothing is judged here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import starmap
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gapless.traces.sources.rocketmq.columns.bytes import Bytes, Ints
from gapless.traces.sources.rocketmq.log import records
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import LogFile, read_exactly
from gapless.traces.sources.rocketmq.store.names import INDEX_FOLDER
from gapless.traces.sources.rocketmq.store.settings import number_set

FOLDER = INDEX_FOLDER
HEADER = np.dtype(
    [("begin", ">i8"), ("end", ">i8"), ("first", ">i8"), ("last", ">i8"), ("used", ">i4"), ("items", ">i4")]
)
ITEM = np.dtype([("hash", ">i4"), ("position", ">i8"), ("seconds", ">i4"), ("previous", ">i4")])
ITEM_BYTES, ITEM_POSITION = ITEM.itemsize, ITEM["hash"].itemsize  # of an item; the position lies behind the hash
SLOT_WIDTH = 4  # bytes of a slot: the number of its newest item
DEFAULT_SLOTS, DEFAULT_ITEMS = 5_000_000, 20_000_000
AT_ONCE = 1 << 14  # items that are read at once; those of a segment are looked for in so many
SLOTS_AT_ONCE = 1 << 17
SETTINGS = ("maxHashSlotNum", "maxIndexNum")
NAME = re.compile(r"\d{17}")  # yyyyMMddHHmmssSSS

Items = npt.NDArray[np.void]
Heads = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class IndexFile:
    """One file of the hash index.

    `items`: exclusive end of its items · `lows`, `highs`: least and greatest position in each stretch of `AT_ONCE`
    items · `began`, `ended`: store times in ms of the records of the first and the last item, as the log has them, or
    as the header has them where the log does not.
    """

    path: str
    slots: int
    items: int
    header: tuple[int, int, int, int, int, int]  # begin and end in ms, first and last position, slots in use, items
    lows: Ints
    highs: Ints
    began: int
    ended: int
    room: int  # the exclusive end of its items where it is full

    @cached_property
    def name(self) -> str:
        """Its name as a trace: relative to the store."""
        return f"{FOLDER}/{Path(self.path).name}"

    @cached_property
    def opened(self) -> LogFile:
        """All its bytes: it has its full length from the beginning on."""
        return LogFile(self.path, 0, self.item_at(self.room))

    def slot_at(self, slot: int) -> int:
        """The offset of a slot in the file."""
        return HEADER.itemsize + slot * SLOT_WIDTH

    def item_at(self, item: int) -> int:
        """The offset of an item in the file."""
        return self.slot_at(self.slots) + item * ITEM_BYTES

    def heads(self) -> Iterator[tuple[int, Heads]]:
        """Yields the items that slots point to, in stretches with the number of the first slot. Raises Unreadable."""
        for low in range(0, self.slots, SLOTS_AT_ONCE):
            data = np.empty(min(SLOTS_AT_ONCE, self.slots - low) * SLOT_WIDTH, np.uint8)
            read_exactly(self.opened, self.slot_at(low), data.data)
            yield low, data.view(">i4").astype(np.int32)

    def read(self, low: int, high: int) -> Items:
        """The items from number `low` to `high`. Raises Unreadable."""
        return self.read_bytes(low, high).view(ITEM)

    def read_bytes(self, low: int, high: int, room: Bytes | None = None) -> Bytes:
        """Reads the same as bytes. `room`: memory for them, if there is some already."""
        data = np.empty((high - low) * ITEM_BYTES, np.uint8) if room is None else room
        read_exactly(self.opened, self.item_at(low), data.data)
        return data

    def stretches(self, count: int = AT_ONCE) -> Iterator[tuple[int, int]]:
        """The items in stretches of so many: from which number to which."""
        for low in range(1, self.items, count):
            yield low, min(low + count, self.items)


@dataclass(frozen=True, eq=False)
class Index:
    """The hash index of a store. `unread`: files that are unreadable, with the reason.

    `whole`: its set of files is known, so that a key in none of them is missing · `reach`: the log position up to
    which it is known while a broker writes it; None if it is not followed.
    """

    files: tuple[IndexFile, ...]
    unread: tuple[str, ...]
    whole: bool
    reach: int | None = None

    @cached_property
    def spans(self) -> Ints:
        """All stretches of all files, as [file, first item, least position, greatest position]."""
        spans = [
            np.stack([np.full(count, at), 1 + AT_ONCE * np.arange(count), file.lows, file.highs])
            for at, file in enumerate(self.files)
            if (count := len(file.lows))
        ]
        return np.concatenate([np.zeros((4, 0), np.int64), *spans], axis=1)


Opener = Callable[[Path, int, int, Sequence[LogFile]], IndexFile]
"""Opens a file of an index: its length in bytes, how many slots it has, and the files of the log."""


def index_in(store: StoreDirectory) -> Index | None:
    """Returns the hash index that was opened with a store."""
    return store.opened.get("hash_index")


def files_in(store: StoreDirectory) -> tuple[IndexFile, ...]:
    """Returns the files of the hash index that was opened with a store; none without one."""
    index = index_in(store)
    return index.files if index else ()


def index_of(
    store: Path, settings: Mapping[str, str], log: Sequence[LogFile], opens: Opener | None = None
) -> Index | None:
    """Returns the hash index of a store; None without a file. Raises Unreadable."""
    opens = opens or opened
    folder = store / FOLDER
    if not folder.is_dir():
        return None
    files, unread, whole = [], dict[str, list[str]](), True
    for path in sorted(folder.iterdir()):
        if not (NAME.fullmatch(path.name) and path.is_file()):
            unread.setdefault("left out, for it is no file of the hash index", []).append(path.name)
            continue
        length = path.stat().st_size
        slots = _slots(length, settings)
        if slots:
            files.append(opens(path, length, slots, log))
        else:
            unread.setdefault(f"not judged: {_why(length, settings)}", []).append(path.name)
            whole = False  # a setting tells nothing about a file that it does not fit: it may have been changed since
    return Index(tuple(files), tuple(starmap(_unread_note, unread.items())), whole) if files or unread else None


def _unread_note(why: str, names: Sequence[str]) -> str:
    """Returns the reason why files are not read, once for all files that have it."""
    more = f" and {len(names) - 1:,} more of its files were" if len(names) > 1 else " was"
    return f"{FOLDER}/{names[0]}{more} {why}"


def sizes_set(settings: Mapping[str, str], names: tuple[str, str] = SETTINGS) -> tuple[int, int]:
    """The numbers of slots and items of a file, from the settings of these names; a broker takes 0 for unset."""
    slots, items = (number_set(settings, name) for name in names)
    return slots or DEFAULT_SLOTS, items or DEFAULT_ITEMS


def _are_set(settings: Mapping[str, str]) -> bool:
    return any(name in settings for name in SETTINGS)


def _length(slots: int, items: int) -> int:
    return HEADER.itemsize + slots * SLOT_WIDTH + items * ITEM_BYTES


def _slots(length: int, settings: Mapping[str, str]) -> int:
    """The number of slots of a file; 0 if unknown."""
    for slots, items in (sizes_set(settings), (DEFAULT_SLOTS, DEFAULT_ITEMS)):
        if length == _length(slots, items):
            return slots
    return 0


def _why(length: int, settings: Mapping[str, str]) -> str:
    expected = _length(*sizes_set(settings))
    if _are_set(settings):
        return f"it is {length:,} bytes long, and {' and '.join(SETTINGS)} make it {expected:,}"
    return (
        f"it is {length:,} bytes long, where the defaults make {expected:,}; a broker.conf with "
        f"{' and '.join(SETTINGS)} would tell how it is laid out (--config)"
    )


def opened(path: Path, length: int, slots: int, log: Sequence[LogFile]) -> IndexFile:
    """Opens a complete file of an index. Raises Unreadable."""
    begun = begun_file(path, length, slots)
    return grown(begun, log, _count(begun))


def begun_file(path: Path, length: int, slots: int) -> IndexFile:
    """A file of an index of which no item was read yet. Raises Unreadable."""
    none = np.zeros(0, np.int64)
    room = (length - _length(slots, 0)) // ITEM_BYTES
    return IndexFile(str(path), slots, 1, _header(LogFile(str(path), 0, length)), none, none, 0, 0, room)


def written(file: IndexFile, log: Sequence[LogFile]) -> IndexFile:
    """Opens a file that a broker is writing, with the items that its header counts now. Raises Unreadable.

    The header counts an item when all of it is written, and its slot points to it.
    """
    file = replace(file, header=_header(file.opened))
    return grown(file, log, min(max(file.header[5], 1), file.room))


def counted(file: IndexFile, log: Sequence[LogFile]) -> IndexFile:
    """Opens the last file of a stopped broker, with all of its items. Raises Unreadable."""
    file = replace(file, header=_header(file.opened))
    return grown(file, log, _count(file))


def grown(file: IndexFile, log: Sequence[LogFile], items: int) -> IndexFile:
    """The file with items up to an exclusive end, of which those that it has are not read again. Raises Unreadable."""
    lows, highs, known = file.lows.tolist(), file.highs.tolist(), file.items
    if items < known:
        lows, highs, known = [], [], 1
    while known < items:
        stretch = (known - 1) // AT_ONCE
        end = min(1 + (stretch + 1) * AT_ONCE, items)
        positions = file.read(known, end)["position"].astype(np.int64)
        least, greatest = int(positions.min()), int(positions.max())
        if stretch < len(lows):
            lows[stretch], highs[stretch] = min(lows[stretch], least), max(highs[stretch], greatest)
        else:
            lows.append(least)
            highs.append(greatest)
        known = end
    times = [_time_at(log, int(file.read(item, item + 1)["position"][0])) for item in (1, items - 1) if items > 1]
    began, ended = times or (0, 0)
    return replace(
        file, items=items, lows=np.array(lows, np.int64), highs=np.array(highs, np.int64),
        began=began or file.header[0], ended=ended or file.header[1],
    )  # fmt: skip


def _header(file: LogFile) -> tuple[int, int, int, int, int, int]:
    data = np.zeros(HEADER.itemsize, np.uint8)
    read_exactly(file, 0, data.data)
    begin, end, first, last, used, count = data.view(HEADER)[0].tolist()
    return begin, end, first, last, used, count


def _count(file: IndexFile) -> int:
    """Returns the exclusive end of the items: the header's, unless slots and last item contradict it.

    A slot that names an item that the header does not count is the last step of a broker that was killed, or damage.
    """
    *_, last, _used, count = file.header
    room, newest = file.room, 1 + max(int(heads.max(initial=0)) for _, heads in file.heads())
    count = max(count, 1)  # as the broker reads it
    if count == newest or newest > room:
        return min(count, room)
    if count <= room and (count == 1 or file.read(count - 1, count)["position"][0] == last):
        return count
    return newest if newest > 1 and file.read(newest - 1, newest)["position"][0] == last else min(count, room)


def _time_at(log: Sequence[LogFile], position: int) -> int:
    """The store time in ms of the record at a log position; 0 if no record confirms its position."""
    for file in log:
        if file.base <= position < file.base + file.length - records.HEADER:
            data = bytearray(records.HEADER)
            read_exactly(file, position - file.base, memoryview(data))
            header = records.header(bytes(data))
            return header.time if header.known and header.claimed == position else 0
    return 0
