"""A store that is only read: without a lock, without changing anything, and also while another process writes.

What can be read is what the queues' entries say that point at whole records. A process that writes may be at an entry
just now; one that does not agree with its record is not there yet, and what follows it is not either. So a view of a
store that is not synchronous also sees what a crash of the machine could take away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from types import TracebackType
from typing import Self, TypeVar

import numpy as np

from gapless.impl.dispatch.queue_table import read_only
from gapless.impl.environment.operating_system import Disk, RealDisk
from gapless.impl.files import folder
from gapless.impl.files.log import CommitLog
from gapless.impl.files.queues import FOLDER, ConsumeQueue, ConsumeQueues
from gapless.impl.files.segments import Segments, asked
from gapless.impl.records import read_kernel
from gapless.impl.records.errors import Damaged, NotAStore, Refused, Stopped, StoreError, WrongFileSize
from gapless.impl.records.record import ENTRY_BYTES, Bytes
from gapless.impl.store.preparation import VIEWING, prepare
from gapless.impl.store.read_calls import ReadCalls

T = TypeVar("T")

DOUBTED = 1 << 18  # entries that may be under way at once, and more: before those, files are whole
TRIES = 5  # to list files while another process makes and deletes some
SOONEST, LATEST = 0.001, 0.05  # seconds between two looks, while one waits


class StoreView(ReadCalls):
    """A store that is open for reading. Any thread may call anything; so may a forked child. Use it with `with`.

    It sees new messages, queues and files by itself. Files that have expired are kept open until `refresh` or `follow`
    looks again.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._closing = False
        self._newest: dict[int, bytes] = {}  # the last entry that was visible, of each queue
        self._in_use: dict[int, int] = {}  # of each queue, the position in it up to which it may be looked at
        self._looking = Lock()
        sizes = folder.file_sizes(disk, None, None)
        log = CommitLog(Segments(disk, folder.LOG, sizes[0]))
        self._begin_reading(log, ConsumeQueues(disk, sizes[1]))
        self._look_at_the_log()

    @classmethod
    def open(cls, where: str | Path | Disk) -> Self:
        """A view of the store in a folder, or on a disk. Raises NotAStore, WrongFileSize, Damaged, StoreError."""
        disk = RealDisk(where) if isinstance(where, str | Path) else where
        folder.require_a_store(disk)
        if not asked(partial(disk.names, folder.LOG), folder.LOG):
            raise NotAStore(f"{folder.LOG}: no file in it; wait until something is written")
        found = _retried(lambda: cls(disk))
        prepare(VIEWING)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is read any more, and files are let go."""
        self._closing = True
        self._forget_files()
        self._log.segments.close()
        self._all_queues.close()

    def _require_open(self) -> None:
        if self._closing:
            raise Stopped("the view is closed; open another one")

    # -- what is there by now ----------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Looks at the folder again: what has expired is let go. Raises as `open` does."""
        self._require_open()
        with self._looking:
            self._forget_files()
            self._look_at_the_log()
            for queue in self._all_queues.all:
                _retried(queue.segments.look_again)
                self._see(queue, lambda queue: queue.forget_below(self._log.start))

    def _look_at_the_log(self) -> None:
        segments = self._log.segments
        _retried(segments.look_again)
        if segments.bases:
            self._log.start, self._log.end = segments.bases[0], segments.bases[-1] + segments.size

    def range(self, topic: str, queue: int) -> tuple[int, int]:
        """The lowest number that is kept, and the exclusive end of those that can be read now.

        Raises StoreError where files cannot be read.
        """
        with self._looking:
            found = self._all_queues.known(topic, queue)
            if not self._closing:
                found = self._meet(topic, queue) if found is None else found
                if found is not None:
                    self._see(found, self._see_once)
            return (found.first, found.committed) if found else (0, 0)

    def _meet(self, topic: str, queue: int) -> ConsumeQueue | None:
        """A queue, once it has files."""
        with suppress(OSError):  # no path within a store's folder
            if any(self._disk.names(f"{FOLDER}/{topic}/{queue}").values()):
                if not self._all_queues.all:  # the first one of all says how long their files are
                    self._all_queues.file_size = folder.file_sizes(self._disk, None, None)[1]
                found = _retried(lambda: self._all_queues.named(topic, queue))
                self._see(found, self._recount)
                return found
        return None

    def _recount(self, queue: ConsumeQueue) -> None:
        """Load the queues. Files that have been full for long are trusted; the others are looked at."""
        numbers = [base // ENTRY_BYTES for base in queue.segments.bases] or [0]
        queue.first = numbers[0]
        queue.committed = next(number for number in numbers if number >= min(numbers[-1], numbers[-1] - DOUBTED))
        self._newest.pop(queue.index, None)
        self._in_use.pop(queue.index, None)
        self._advance(queue)

    def _see(self, queue: ConsumeQueue, look: Callable[[ConsumeQueue], None]) -> None:
        """Look at a queue's files. Its writer may let the first ones expire meanwhile, one after the other.

        A file that was listed and is gone is looked for again, as long as others are listed than before.
        """
        tries = TRIES
        while True:
            bases = queue.segments.bases
            try:
                return look(queue)
            except StoreError as error:
                if not isinstance(error.__cause__, FileNotFoundError) or not tries:
                    raise
            _retried(queue.segments.look_again)
            tries -= queue.segments.bases == bases
            look = self._recount

    def _see_once(self, queue: ConsumeQueue) -> None:
        newest = self._newest.get(queue.index)
        if newest is None or _entry_at(queue, queue.committed - 1) == newest:
            self._advance(queue)
        else:  # its writer has lost it in a crash
            _retried(queue.segments.look_again)
            self._recount(queue)

    def _advance(self, queue: ConsumeQueue) -> None:
        """Extend the queue as far as there are entries."""
        before = queue.committed
        while more := self._more(queue):
            queue.committed += more
        if queue.committed > before:
            self._newest[queue.index] = _entry_at(queue, queue.committed - 1)
        if queue.committed > before or queue.first < before:
            queue.forget_below(self._log.start)

    def _more(self, queue: ConsumeQueue) -> int:
        """The number of entries behind the visible ones whose records lie in one log file."""
        low, segments = queue.committed, queue.segments
        base = low // queue.per_file * segments.size
        if base not in segments.bases:
            _retried(segments.look_again)
            if base not in segments.bases:
                return 0
        if (low + 1) * ENTRY_BYTES > self._in_use.get(queue.index, 0):
            self._in_use[queue.index] = base + queue.in_use(low)
        slots = queue.slots_in_use(low, self._in_use[queue.index] - base)
        if not len(slots):
            return 0
        position = int.from_bytes(slots[0, :8].tobytes(), "big", signed=True)
        if not slots[0, 8:12].any():
            return 0
        data, log_base = self._log_file(position)
        return int(
            read_kernel.visible(
                read_only(data), log_base, self._log.start, read_only(slots), low, queue.id,
                np.frombuffer(queue.prefix, np.uint8), queue.is_light,
            )
        )  # fmt: skip

    def _log_file(self, position: int) -> tuple[Bytes, int]:
        """The log file that holds a position; no bytes where none does."""
        base = position // self._log.file_size * self._log.file_size
        if base not in self._log.segments.bases and position >= self._log.start:
            self._look_at_the_log()
        if base in self._log.segments.bases:
            with suppress(StoreError):  # it was deleted meanwhile
                return self._log.view(position)
            self._look_at_the_log()
        return np.zeros(0, np.uint8), base

    def _raise_expired(self, queue: ConsumeQueue, number: int, start: int, error: StoreError) -> None:
        self.refresh()
        super()._raise_expired(queue, number, start, error)
        if number >= self.range(queue.topic, queue.id)[1]:
            raise Refused(
                f"{queue.name}: number {number} is gone: who wrote it has lost it in a crash; ask for `range`"
            ) from error

    # -- waiting -----------------------------------------------------------------------------------------------------

    def wait_for(self, topic: str, queue: int, number: int, timeout: float = 10.0) -> bool:
        """Returns when `number` can be read: True; or False after `timeout` seconds."""
        return self.wait_for_any({(topic, queue): number}, timeout)

    def _wait_for_any(self, queues: Mapping[tuple[str, int], int], timeout: float | None) -> bool:
        """Wait for growth by another process, which gives no signal: look up to 20 times a second, ever less often."""
        deadline, pause = None if timeout is None else monotonic() + timeout, SOONEST
        while not self._closing:
            if self._any_visible(queues):
                return True
            if deadline is not None and monotonic() >= deadline:
                return False
            sleep(pause if deadline is None else min(pause, max(0, deadline - monotonic())))
            pause = min(2 * pause, LATEST)
        return False


def _entry_at(queue: ConsumeQueue, number: int) -> bytes:
    """The bytes of an entry."""
    return queue.slots(number, number + 1).tobytes()


def _retried(look: Callable[[], T]) -> T:
    """List a folder. Its writer may be making or deleting files meanwhile: then list it again."""
    for _ in range(TRIES):
        with suppress(NotAStore, WrongFileSize, Damaged):
            return look()
        sleep(SOONEST)
    return look()
