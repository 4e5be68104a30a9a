"""The coordinator's own log: groups of bytes, each there whole or not at all, in one file at a time.

A file begins with a header: a magic number, the file's place in the sequence of files, and twice the position up to
which it is *safe* (flushed; the greater of those that are intact counts). Behind it lie groups: u32 length, u32
checksum, content, all big-endian. The checksum also covers the file's place and the group's position, so that no old
bytes are taken for a group. Behind the last group are zeros.

A file is complete once its first position is safe. The next file begins with all that is still needed, and the one
before it is deleted when it is complete. So whichever complete file is the newest tells everything.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from zlib import crc32

import numpy as np

from gapless.impl.environment.mapped_file import Bytes
from gapless.impl.environment.operating_system import Disk, File
from gapless.impl.files.segments import zero_from
from gapless.impl.records.errors import Damaged, DiskFull, NotAStore, StoreError

FOLDER = "log"
MAGIC = b"gaplessC"
VERSION = 2  # 1: transactions had no owners
_HEAD = struct.Struct(">8sIQ")  # magic, version, the file's place
_SAFE = struct.Struct(">QI")  # the safe position, checksum
_GROUP = struct.Struct(">II")  # length, checksum
_SLOTS = (32, 48)  # where the safe position stands
START = 64  # where the first group begins
LENGTH = 4 << 20  # bytes of a file, unless what is needed wants more


class CoordinatorLog:
    """The log of one coordinator on a disk; it does not know what the groups mean.

    `found`: the groups that were there when it was opened, until they are taken. `end`: where the next group goes.
    `safe`: up to where it is on disk. `file_name`: of the file that is written.
    """

    def __init__(self, disk: Disk, length: int = LENGTH) -> None:
        """Opens it, and cuts off a group that was never acknowledged and is not whole.

        Raises Damaged: what was safe is not what it was; NotAStore; DiskFull, StoreError, OSError.
        """
        self._disk = disk
        self._length = length
        self.found: list[bytes] = []
        self.place, self.end, self.safe = 0, START, START
        self._file: File | None = None
        self._turn = 0
        self._open()

    @property
    def file_name(self) -> str:
        """Path of the file that is written, relative to the folder."""
        return _name(self.place)

    @property
    def room(self) -> int:
        """Bytes of content that still fit into this file as one group."""
        return len(self._data) - self.end - _GROUP.size

    def append(self, content: bytes) -> None:
        """The group is behind the others, and not on disk yet. Raises DiskFull: it does not fit; `roll` first."""
        if not content or len(content) > self.room:
            raise DiskFull(f"{self.file_name}: {len(content)} bytes do not fit at {self.end}: begin another file")
        self.end = _put(self._data, self.end, content, self.place)

    def sync(self) -> None:
        """Make everything appended durable. Raises OSError: then its content is unknown; append nothing more."""
        to = self.end
        self._must().sync()
        self._mark_safe(to)

    def roll(self, needed: Sequence[bytes]) -> None:
        """Another file begins, with these groups, which are on disk when it returns; all before them is forgotten.

        The next group may be as long as these together. Raises OSError: then the file before is as it was.
        """
        before, place = self._file, self.place + 1
        wanted = sum(len(content) + _GROUP.size for content in needed)
        file = self._make(place, max(self._length, START + 2 * wanted), needed)
        self._file, self.place = file, place
        self.end = self.safe = START + wanted
        if before is not None:
            before.close()
            self._disk.delete(_name(place - 1))

    def close(self) -> None:
        """The log is not used any more. What was not synced may be lost."""
        if self._file is not None:
            self._file.close()
            self._file = None

    # -- within ------------------------------------------------------------------------------------------------------

    @property
    def _data(self) -> Bytes:
        return self._must().data

    def _must(self) -> File:
        if self._file is None:
            raise StoreError(f"{self.file_name}: the log is closed; open the coordinator again")
        return self._file

    def _open(self) -> None:
        places = sorted((_place(name) for name in self._disk.names(FOLDER)), reverse=True)
        for at, place in enumerate(places):
            file = self._disk.open(_name(place), write=True)
            safe = _read_header(file, place)
            if safe is None and at < len(places) - 1:
                file.close()  # it was being made when the power failed, and the one before is still needed
                continue
            if safe is None:
                begun = place == 1 and not file.data[START:].any()
                file.close()
                if not begun:
                    raise Damaged(f"{_name(place)}, offset 0: no whole header, and no file before it; restore a copy")
                continue
            self._take(file, place, safe)
            break
        for place in places:
            if place != self.place:
                self._disk.delete(_name(place))
        if self._file is None:
            self._file, self.place = self._make(1, self._length, ()), 1

    def _take(self, file: File, place: int, safe: int) -> None:
        """Read every group of the file, and clear what lies behind the last."""
        file.require_whole()
        data, at = file.data, START
        while (content := _get(data, at, place)) is not None:
            self.found.append(content)
            at += _GROUP.size + len(content)
        if at < safe:
            raise Damaged(
                f"{_name(place)}, offset {at}: expected a whole group, for all before offset {safe} was on disk; "
                "restore a copy of the file, nothing was changed"
            )
        file.reserve(0, len(data))
        zero_from(data, at)
        self._file, self.place, self.end = file, place, at
        self.sync()

    def _make(self, place: int, length: int, groups: Sequence[bytes]) -> File:
        """A new file with these groups, on disk. Raises OSError: then there is none."""
        file = self._disk.create(_name(place), length)
        try:
            file.reserve(0, length)
            file.data[: _HEAD.size] = np.frombuffer(_HEAD.pack(MAGIC, VERSION, place), np.uint8)
            end = START
            for content in groups:
                end = _put(file.data, end, content, place)
            file.sync()
            _put_safe(file, 0, end, place)  # only now: it says that all before it is there
            file.sync()
        except OSError:
            file.close()
            self._disk.delete(_name(place))
            raise
        return file

    def _mark_safe(self, to: int) -> None:
        """The header says so; a loss of power may take that back, and then says a little less."""
        self.safe = to
        self._turn += 1
        _put_safe(self._must(), self._turn % 2, to, self.place)


def _name(place: int) -> str:
    return f"{FOLDER}/{place:020d}"


def _place(name: str) -> int:
    if not name.isdecimal() or len(name) != 20:
        raise NotAStore(f"{FOLDER}/{name}: expected files of a coordinator's log, named by 20 digits, and no other")
    return int(name)


def _read_header(file: File, place: int) -> int | None:
    """Up to where the file is safe; None if it is not complete. Raises NotAStore."""
    head = file.data[:START].tobytes().ljust(START, b"\0")
    magic, version, own = _HEAD.unpack_from(head)
    if magic not in {MAGIC, bytes(8)}:
        raise NotAStore(f"{_name(place)}, offset 0: expected {MAGIC!r}, found {magic!r}: no file of a coordinator")
    if magic == MAGIC and version != VERSION:
        raise NotAStore(f"{_name(place)}: version {version}, expected {VERSION}: it was written by another release")
    found = [_SAFE.unpack_from(head, slot) for slot in _SLOTS]
    safe: list[int] = [to for to, checksum in found if checksum and checksum == _check_safe(to, place)]
    if not safe or magic != MAGIC:
        return None
    if own != place:
        raise NotAStore(f"{_name(place)}: its header says it is file {own}; give it its own name again")
    return max(safe)


def _put_safe(file: File, slot: int, to: int, place: int) -> None:
    at = _SLOTS[slot]
    file.data[at : at + _SAFE.size] = np.frombuffer(_SAFE.pack(to, _check_safe(to, place)), np.uint8)


def _check_safe(to: int, place: int) -> int:
    return crc32(struct.pack(">QQ", to, place)) or 1


def _put(data: Bytes, at: int, content: bytes, place: int) -> int:
    """The end of the group at `at`."""
    group = _GROUP.pack(len(content), _check_group(content, at, place)) + content
    data[at : at + len(group)] = np.frombuffer(group, np.uint8)
    return at + len(group)


def _get(data: Bytes, at: int, place: int) -> bytes | None:
    """The group at `at`; None if there is none that is whole."""
    if at + _GROUP.size > len(data):
        return None
    length, checksum = _GROUP.unpack_from(data[at : at + _GROUP.size].tobytes())
    low = at + _GROUP.size
    if not 0 < length <= len(data) - low:
        return None
    content: bytes = data[low : low + length].tobytes()
    return content if checksum == _check_group(content, at, place) else None


def _check_group(content: bytes, at: int, place: int) -> int:
    return crc32(content, crc32(struct.pack(">QQI", place, at, len(content))))
