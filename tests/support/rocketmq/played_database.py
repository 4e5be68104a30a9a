"""A recorded store with queues in RocksDB, replayed as its broker wrote it: entries reach the disk late."""

import shutil
import tempfile
from pathlib import Path

from rocksdict import AccessType, Options, Rdict

from tests.support.rocketmq.played_store import PlayedStore
from tests.support.rocketmq.queue_databases import end_key, entries, key

FAMILIES = ("default", "offset")


class PlayedDatabase(PlayedStore):
    """A `PlayedStore` whose dispatched entries are in memory alone, until they are flushed."""

    def __init__(self, source: Path, folder: Path) -> None:
        super().__init__(source, folder)
        self.flushed = 0
        shutil.rmtree(folder / "consumequeue")

    def _entries(self) -> list[tuple[int, str, int, bytes]]:
        with tempfile.TemporaryDirectory() as room:
            copy = Path(room) / "store"
            shutil.copytree(self.source / "consumequeue", copy / "consumequeue")
            return [
                (position, f"{topic}/{queue}", number, _value(position, size, tag, time))
                for (topic, queue), found in entries(copy).items()
                for number, position, size, tag, time in found
            ]

    def dispatch(self, upto: int) -> None:
        """The entries of messages that begin before a position are in memory."""
        while self.indexed < len(self.entries) and self.entries[self.indexed][0] < upto:
            self.indexed += 1

    def flush(self, changed: dict[int, bytes] | None = None) -> None:
        """Flush the memory to disk; `changed` are other values, by place in `entries`."""
        options = Options(raw_mode=True)
        options.create_missing_column_families(True)  # noqa: FBT003 - it takes no name
        folder = self.folder / "consumequeue"
        database = Rdict(str(folder), options, dict.fromkeys(FAMILIES, Options(raw_mode=True)), AccessType.read_write())
        table = database.get_column_family("offset")
        for at in range(self.flushed, self.indexed):
            position, name, number, value = self.entries[at]
            topic, _, queue = name.rpartition("/")
            database.put(key(topic, int(queue), number), (changed or {}).get(at, value))
            place = position.to_bytes(8, "big")
            table.put(end_key(topic, int(queue), "max"), place + number.to_bytes(8, "big"))
            dispatched = position + int.from_bytes(value[8:12], "big")
            table.put(end_key("CHECKPOINT_TOPIC", 0, "max"), dispatched.to_bytes(8, "big"))
        self.flushed = self.indexed
        database.flush()
        table.flush()
        table.close()
        database.close()

    def stop(self) -> None:
        """See `PlayedStore`."""
        shutil.rmtree(self.folder / "consumequeue", ignore_errors=True)
        super().stop()

    @property
    def end(self) -> int:
        """See `PlayedStore`."""
        position, _name, _number, value = self.entries[-1]
        return position + int.from_bytes(value[8:12], "big")


def _value(position: int, size: int, tag: int, time: int) -> bytes:
    widths = ((position, 8), (size, 4), (tag, 8), (time, 8))
    return b"".join(number.to_bytes(width, "big", signed=True) for number, width in widths)
