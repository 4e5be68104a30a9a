"""A recorded store with a hash index, written once more as its broker may have written it: items behind entries."""

import shutil
import struct
from pathlib import Path

from tests.support.rocketmq.index_files import HEADER, ITEM, File, files
from tests.support.rocketmq.played_store import PlayedStore


class PlayedIndex(PlayedStore):
    """As `PlayedStore`: the index is written apart, by `put`. Its settings lie beside the store."""

    def __init__(self, source: Path, folder: Path, slots: int = 40, capacity: int = 300) -> None:
        super().__init__(source, folder)
        self.files = files(source, slots, capacity)
        self.put_items = 0  # of all files
        self.items = [(file, number) for file in self.files for number in range(1, file.header[5])]
        if (source.parent / "broker.conf").is_file():
            shutil.copy(source.parent / "broker.conf", folder.parent)

    def put(self, upto: int) -> None:
        """Write the items of records that begin before a position."""
        while self.put_items < len(self.items):
            file, number = self.items[self.put_items]
            if file.items[number][1] >= upto:
                break
            self.put_one()

    def put_one(self) -> None:
        """Write one more item: it, then its slot, then the header."""
        file, number = self.items[self.put_items]
        code, *_ = file.items[number]
        self._index(file, file.item_at(number), ITEM.pack(*file.items[number]))
        self._index(file, HEADER.size + 4 * (code % file.slots), struct.pack(">i", number))
        position, used = file.items[number][1], len({item[0] % file.slots for item in file.items[1 : number + 1]})
        last = number == file.header[5] - 1
        end = file.header[1] if last else file.header[0]
        self._index(file, 0, HEADER.pack(file.header[0], end, file.header[2], position, used, number + 1))
        self.put_items += 1

    def _index(self, file: File, at: int, data: bytes) -> None:
        self._put(self.folder / "index" / file.path.name, file.item_at(file.capacity), at, data)
