"""Hash indexes of recorded stores, read, looked up and written as a broker does, without our code."""

import struct
from array import array
from collections.abc import Callable, Iterator, MutableSequence
from dataclasses import dataclass, field
from pathlib import Path

HEADER = struct.Struct(">qqqqii")  # begin and end in ms, first and last position, slots in use, end of items
ITEM = struct.Struct(">iqii")  # hash, position, seconds, previous item
MAGIC_V2 = 0xDAA320AB


def java_hash(text: str) -> int:
    """Java's hash of a text, made positive as the index does."""
    units = struct.iter_unpack(">H", text.encode("utf-16-be"))
    code = 0
    for (unit,) in units:
        code = (code * 31 + unit) & 0xFFFFFFFF
    code = code - (1 << 32) if code >= 1 << 31 else code
    return 0 if code == -(1 << 31) else abs(code)


@dataclass
class Record:
    """The fields of a log record that the index uses."""

    position: int
    time: int
    keys: list[str]  # as they are hashed
    tag: str | None


def records(store: Path) -> Iterator[Record]:
    """The records of the log that are to be indexed."""
    for file in sorted((store / "commitlog").iterdir()):
        data, at, base = file.read_bytes(), 0, int(file.name)
        while at + 8 <= len(data):
            size, magic = struct.unpack_from(">iI", data, at)
            if (
                size <= 0
                or magic not in (0xDAA320A7, MAGIC_V2)
                or struct.unpack_from(">q", data, at + 28)[0] != base + at
            ):
                break
            flags = struct.unpack_from(">i", data, at + 36)[0]
            place = at + 48 + (20 if flags & 0x10 else 8)
            (time,) = struct.unpack_from(">q", data, place)
            place += 8 + (20 if flags & 0x20 else 8) + 12
            place += 4 + struct.unpack_from(">i", data, place)[0]
            width = 2 if magic == MAGIC_V2 else 1
            end = place + width + int.from_bytes(data[place : place + width], "big")
            topic = data[place + width : end].decode()
            text = data[end + 2 : end + 2 + int.from_bytes(data[end : end + 2], "big")].decode()
            named = dict(pair.split("\x01", 1) for pair in text.split("\x02") if "\x01" in pair)
            words = [word for word in [named.get("UNIQ_KEY", ""), *named.get("KEYS", "").split(" ")] if word]
            tag = f"{topic}#T#{named['TAGS']}" if named.get("TAGS") else None
            if flags & 0xC != 0xC:
                yield Record(base + at, time, [f"{topic}#{word}" for word in words], tag)
            at += size


@dataclass
class File:
    """One file of an index: what stands in it."""

    path: Path
    slots: int
    capacity: int
    header: list[int] = field(default_factory=list)
    table: MutableSequence[int] = field(default_factory=list)
    items: list[list[int]] = field(default_factory=list)  # by number; item 0 is unused

    def item_at(self, item: int) -> int:
        """Return an item's offset in the file."""
        return HEADER.size + 4 * self.slots + ITEM.size * item

    def found(self, key: str) -> list[int]:
        """The positions that a search for a key finds, the newest first."""
        code = java_hash(key)
        item, found = self.table[code % self.slots], []
        while item > 0:
            there, position, _, before = self.items[item]
            found += [position] if there == code else []
            assert before < item
            item = before
        return found

    def write(self) -> None:
        """Write the file as it is now."""
        with self.path.open("r+b") as out:
            out.write(HEADER.pack(*self.header))
            out.write(struct.pack(f">{self.slots}i", *self.table))
            for item in self.items[: self.capacity]:
                out.write(ITEM.pack(*item))

    def without(self, dropped: Callable[[list[int]], bool]) -> "File":
        """The same file, had the broker not indexed some of the items."""
        kept = [item for item in self.items[1 : self.header[5]] if not dropped(item)]
        table, used, items = array("i", bytes(4 * self.slots)), 0, [[0, 0, 0, 0]]
        for code, position, seconds, _ in kept:
            slot = code % self.slots
            used += table[slot] == 0
            items.append([code, position, seconds, table[slot]])
            table[slot] = len(items) - 1
        header = [*self.header[:2], kept[0][1], kept[-1][1], used, len(items)]
        items += [[0, 0, 0, 0]] * (self.capacity - len(items))
        return File(self.path, self.slots, self.capacity, header, table, items)


def files(store: Path, slots: int, capacity: int) -> list[File]:
    """The files of an index, in their order."""
    return [_read(path, slots, capacity) for path in sorted((store / "index").iterdir())]


def _read(path: Path, slots: int, capacity: int) -> File:
    with path.open("rb") as file:
        header = list(HEADER.unpack(file.read(HEADER.size)))
        table = array("i", file.read(4 * slots))
        table.byteswap()
        count = min(max(header[5], 1) + 1, capacity)
        data = file.read(ITEM.size * (capacity if capacity < 10_000 else count))
    items = [list(ITEM.unpack_from(data, at)) for at in range(0, len(data), ITEM.size)]
    return File(path, slots, capacity, header, table, items)
