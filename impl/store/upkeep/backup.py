"""Backup: a consistent copy of a store, made while it is written to.

The copy has the log up to one position, the entries of the messages before it, and all else that lies in the store's
folder. It is what a clean stop at that position would have left, but for workers that build no entries: then it is what
a crash would. A file in it has its full length, and takes room for what is in it alone.

Nothing is copied twice: bytes of the log before its end never change, and neither do entries that consumers see. What
may go meanwhile are files that expire, so nothing expires while a copy is made (`Housekeeper.copying`).
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from secrets import token_hex

import numpy as np

from gapless.impl.environment.mapped_file import Bytes
from gapless.impl.environment.operating_system import Disk, File, RealDisk
from gapless.impl.files import folder
from gapless.impl.files.checkpoint import CHECKPOINT
from gapless.impl.files.queues import FOLDER, ConsumeQueue, entries
from gapless.impl.files.segments import asked
from gapless.impl.records.errors import DiskFull, Refused
from gapless.impl.records.record import ENTRY_BYTES
from gapless.impl.store.core import Core

BLOCK = 1 << 20  # bytes that are copied at once
AT_ONCE = 256  # files of queues that are made durable together
UNFINISHED = "unfinished"  # how the names end of what is no copy yet


class StoreCopy:
    """A copy that is being made on another disk.

    `end`: how far its log is to be, a position.

    `go_on`: called for every block; raises where there is no use in going on · `log`: the folder of its log. Everything
    raises DiskFull and StoreError.
    """

    def __init__(self, core: Core, target: Disk, go_on: Callable[[], None], *, log: str = folder.LOG) -> None:
        self._core = core
        self._target = target
        self._go_on = go_on
        self._log = log
        self.end = 0

    def copy_others(self) -> None:
        """Copy the other files as they are now: settings, topics, and cursors of groups."""
        self._copy_folder("", but={"lock", folder.ABORT, CHECKPOINT, folder.LOG, FOLDER})

    def copy_messages(self, end: int, newest: int, now: int) -> None:
        """All messages before `end`, and their entries. `newest`: the last store time before it; all times in ms.

        The log is on disk up to there; files of it or of queues are not deleted meanwhile.
        """
        self.end = end
        built = min(self._core.dispatch.dispatched, end)  # before entries are looked at, so that these are there
        for base in [base for base in self._core.log.segments.bases if base < end]:
            self._copy_start(f"{folder.LOG}/{base:020d}", f"{self._log}/{base:020d}", end - base).sync()
        made: list[File] = []
        queues = [queue for queue in self._core.queues.all if self._copy_queue(queue, end, made)]
        self._sync(made)
        new = [(queue.topic, queue.id) for queue in queues if queue.next > queue.found]
        folder.write_topics(self._target, new, now)
        if built < end:
            folder.mark_running(self._target)  # the next start builds the rest
        self._checkpoint = replace(
            self._core.checkpoint,
            log=newest,
            queues=newest if built == end else 0,
            index=newest if built == end else 0,
            flushed=end,
            built=built,
            sealed=self._core.log.sealed,
        )

    def write_checkpoint(self) -> None:
        """The copy says that it is whole."""
        self._checkpoint.write(self._target)

    def _copy_folder(self, path: str, but: set[str] | frozenset[str] = frozenset()) -> None:
        disk = self._core.disk
        for name, length in asked(partial(disk.names, path), path or ".").items():
            if name not in but:
                inside = f"{path}/{name}" if path else name
                if length > BLOCK:
                    self._copy_start(inside, inside, length).sync()
                else:
                    content = asked(partial(disk.read, inside), inside) or b""
                    asked(partial(self._target.write, inside, content), inside)
        for name in asked(partial(disk.folders, path), path or "."):
            if name not in but:
                self._copy_folder(f"{path}/{name}" if path else name)

    def _copy_queue(self, queue: ConsumeQueue, end: int, made: list[File]) -> bool:
        """The visible entries of messages before `end`; whether there are any. Files wait in `made` to be synced."""
        segments, any_copied = queue.segments, False
        for base in [base for base in segments.bases if base < queue.committed * ENTRY_BYTES]:
            file = self._opened(segments.path(base))
            position = entries(file.data[: queue.committed * ENTRY_BYTES - base])["position"]  # rising
            count = len(position) if position[-1] < end else int(np.searchsorted(position, end))
            if count:
                made.append(self._fill(segments.path(base), file.data, count * ENTRY_BYTES))
                any_copied = True
            file.close()
            if len(made) >= AT_ONCE:
                self._sync(made)
        return any_copied

    def _sync(self, made: list[File]) -> None:
        asked(lambda: self._target.sync(made), FOLDER)
        made.clear()

    def _copy_start(self, path: str, to: str, count: int) -> File:
        """The first `count` bytes of a file are in a new one of its length."""
        file = self._opened(path)
        made = self._fill(to, file.data, count)
        file.close()
        return made

    def _opened(self, path: str) -> File:
        """A file of the store, for itself alone: reading all of it takes no room among those that are in memory."""
        file = asked(partial(self._core.disk.open, path, write=False), path)
        asked(file.require_whole, path)
        return file

    def _fill(self, path: str, data: Bytes, count: int) -> File:
        made: File = asked(lambda: self._target.create(path, len(data), durable=False), path)
        for low in range(0, min(count, len(data)), BLOCK):
            self._go_on()
            block = data[low : min(low + BLOCK, count)]
            if block.any():
                asked(partial(made.reserve, low, low + len(block)), path)
                made.data[low : low + len(block)] = block
        made.rest()
        return made


def into_new_folder(where: Path, source: Disk, copy: Callable[[RealDisk, str], StoreCopy]) -> StoreCopy:
    """The folder is there with a copy in it, durable; or something raises, and it is not there, nor anything else.

    `copy`: called with a disk and the name of the log's folder, for all but the checkpoint. Until everything is copied,
    no program takes the folder for a store; it has another name, which begins with a dot and ends with `.unfinished`,
    and stays if the process is killed. For threads that no signal interrupts. Raises Refused, DiskFull, StoreError.
    """
    where = Path(os.path.abspath(where))  # noqa: PTH100 - a link that stands there already is not followed
    _require_free(where, source)
    unfinished = where.with_name(f".{where.name}.{token_hex(4)}.{UNFINISHED}")
    disk, log = RealDisk(unfinished), f"{folder.LOG}.{UNFINISHED}"
    try:
        asked(disk.lock, str(unfinished))
        copied = copy(disk, log)
        if (unfinished / log).is_dir():
            (unfinished / log).rename(unfinished / folder.LOG)
        copied.write_checkpoint()  # after it the folder's names are synced
        asked(partial(_rename, unfinished, where), str(where))
    except DiskFull as error:
        raise DiskFull(f"{where}: there is no copy, and nothing is left of it: {error}") from error
    finally:
        disk.unlock()
        shutil.rmtree(unfinished, ignore_errors=True)
    return copied


def _require_free(where: Path, source: Disk) -> None:
    if where.exists() or where.is_symlink():
        raise Refused(f"{where}: it is there already; choose a new folder")
    if isinstance(source, RealDisk) and where.resolve().is_relative_to(source.folder.resolve()):
        raise Refused(f"{where}: it lies in the store itself; choose a folder outside")


def _rename(unfinished: Path, where: Path) -> None:
    try:
        unfinished.rename(where)
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
            raise Refused(f"{where}: it is there by now; choose a new folder") from error
        raise
    descriptor = os.open(where.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
