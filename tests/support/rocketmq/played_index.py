"""A recorded store with a hash index, replayed as its broker may have written it: items after entries."""

import shutil
import struct
from pathlib import Path

from tests.support.rocketmq.index_files import HEADER, ITEM, File, files
from tests.support.rocketmq.played_store import PlayedStore


class PlayedIndex(PlayedStore):
    """A `PlayedStore` whose index is written separately, by `put`. Its settings lie next to the store."""

    def __init__(self, source: Path, folder: Path, slots: int = 40, capacity: int = 300) -> None:
        super().__init__(source, folder)
        self.files = files(source, slots, capacity)
        self.put_items = 0  # of all files
        self.items = [(file, number) for file in self.files for number in range(1, file.header[5])]
        if (source.parent / "broker.conf").is_file():
            shutil.copy(source.parent / "broker.conf", folder.parent)

    def put(self, upto: int) -> None:
        """Write the items of records that begin before a position."""
        end = self.put_items
        while end < len(self.items) and self.items[end][0].items[self.items[end][1]][1] < upto:
            end += 1
        self._put_up_to(end)

    def put_one(self) -> None:
        """Write one more item."""
        self._put_up_to(self.put_items + 1)

    def _put_up_to(self, end: int) -> None:
        """Write items, then their slots, then the header, file by file."""
        while self.put_items < end:
            file, first = self.items[self.put_items]
            last = min(first + end - self.put_items, file.header[5]) - 1
            self._index(file, file.item_at(first), b"".join(ITEM.pack(*one) for one in file.items[first : last + 1]))
            heads = [0] * file.slots
            for number in range(1, last + 1):
                heads[file.items[number][0] % file.slots] = number
            self._index(file, HEADER.size, struct.pack(f">{file.slots}i", *heads))
            ended = file.header[1] if last == file.header[5] - 1 else file.header[0]
            used = sum(head > 0 for head in heads)
            header = file.header[0], ended, file.header[2], file.items[last][1], used, last + 1
            self._index(file, 0, HEADER.pack(*header))
            self.put_items += last + 1 - first

    def _index(self, file: File, at: int, data: bytes) -> None:
        self._put(self.folder / "index" / file.path.name, file.item_at(file.capacity), (at, data))
