"""A recorded store, replayed as its broker may have written it: the log first, then the entries."""

import os
import shutil
import struct
from pathlib import Path

ENTRY = 20
SLOT = struct.Struct(">qiq")
FOLDERS = {"consumequeue": ENTRY, "batchconsumequeue": 46}  # bytes of an entry


class PlayedStore:
    """Plays `source` into `folder`, which is made. Files are made at full length, as a broker makes them."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.source, self.folder = source, folder
        files = sorted([*source.glob("commitlog/*"), *source.glob("dledger-*/data/*")], key=lambda file: file.name)
        self.logs = [(int(file.name), str(file.relative_to(source)), file.read_bytes()) for file in files]
        self.written = self.start = self.logs[0][0]
        self.entries = sorted(self._entries())
        self.indexed = 0
        (folder / self.logs[-1][1]).parent.mkdir(parents=True)
        (folder / "consumequeue").mkdir()
        for name in ("config", "consumequeue_ext"):
            if (source / name).is_dir():
                shutil.copytree(source / name, folder / name)
        (folder / "abort").write_text("1")

    def _entries(self) -> list[tuple[int, str, int, bytes]]:
        found = []
        for folder, width in FOLDERS.items():
            for file in sorted((self.source / folder).glob("*/*/*")):
                data = file.read_bytes()
                for at in range(0, len(data) - width + 1, width):
                    position, size, _tag = SLOT.unpack_from(data, at)
                    if size > 0:
                        found.append((position, str(file.relative_to(self.source)), at, data[at : at + width]))
        return found

    @property
    def end(self) -> int:
        """Behind the last message that has an entry."""
        position, _file, _at, entry = self.entries[-1]
        return position + int(SLOT.unpack_from(entry)[1])

    def records(self) -> list[int]:
        """Return the beginnings of messages with entries."""
        return sorted({position for position, *_ in self.entries if position >= self.start})

    def append(self, upto: int) -> None:
        """Write the log up to a position, which may lie in a record."""
        for base, name, data in self.logs:
            low, high = max(self.written, base), min(upto, base + len(data))
            if low < high:
                self._put(self.folder / name, len(data), (low - base, data[low - base : high - base]))
        self.written = max(self.written, upto)

    def dispatch(self, upto: int) -> None:
        """Write the entries of messages that begin before a position."""
        files: dict[str, list[tuple[int, bytes]]] = {}
        while self.indexed < len(self.entries) and self.entries[self.indexed][0] < upto:
            _position, name, at, entry = self.entries[self.indexed]
            files.setdefault(name, []).append((at, entry))
            self.indexed += 1
        for name, entries in files.items():  # each is opened once
            self._put(self.folder / name, (self.source / name).stat().st_size, *entries)

    def cut_off(self, at: int) -> None:
        """Cut like a broker's start after a crash: the log ends at a position, without entries for what lay behind."""
        for base, name, data in self.logs:
            file = self.folder / name
            low = max(at - base, 0)
            if file.exists() and low < len(data):
                self._put(file, len(data), (low, bytes(len(data) - low)))
        self.written = at
        while self.indexed and self.entries[self.indexed - 1][0] >= at:
            self.indexed -= 1
            _position, name, place, entry = self.entries[self.indexed]
            self._put(self.folder / name, (self.source / name).stat().st_size, (place, bytes(len(entry))))

    def stop(self) -> None:
        """All that is left, and what the broker writes when it stops."""
        for file in self.source.rglob("*"):
            there = self.folder / file.relative_to(self.source)
            if file.is_file():
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, there)
        if not (self.source / "abort").exists():
            (self.folder / "abort").unlink()

    def entry(self, name: str, number: int, value: bytes) -> None:
        """Overwrite an entry."""
        self._put(self.folder / name, (self.source / name).stat().st_size, (number * ENTRY, value))

    def _put(self, file: Path, length: int, *written: tuple[int, bytes]) -> None:
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
            os.truncate(file, length)
        with file.open("r+b") as out:
            for at, data in written:
                out.seek(at)
                out.write(data)
