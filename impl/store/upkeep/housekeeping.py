"""The background thread: flushes of queues, the checkpoint, the next file, and errands for callers.

The thread that flushes the log has no part in it, so that none of this delays who waits for the disk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock
from time import monotonic

from gapless.impl.environment.operating_system import Clock
from gapless.impl.records.errors import DiskFull
from gapless.impl.store.core import Core
from gapless.impl.store.groups import GroupCursors
from gapless.impl.store.upkeep.retention import Retention
from gapless.impl.store.upkeep.stats import Meter

CHECKPOINT_INTERVAL = 1000  # ms
PATIENCE = 0.05  # seconds
LONG = 1 << 31  # ms, longer than any pause


class Errand:
    """Work of a store's thread for a caller, who may be interrupted meanwhile."""

    def __init__(self, what: Callable[[], int]) -> None:
        self._what = what
        self._begun, self._lock = Lock(), Lock()
        self._lock.acquire()
        self._is_over = False
        self.answer = 0
        self.error: BaseException | None = None
        self.is_done = False

    def do(self) -> None:
        """Do it, unless it was called off: there is an answer or an error then."""
        if not self.call_off():
            return
        try:
            self.answer = self._what()
        except BaseException as error:  # noqa: BLE001 - it is raised where the answer is awaited
            self.error = error
        self.is_done = True
        self.end()

    def call_off(self) -> bool:
        """Call it off before it begins; False if it has begun."""
        return self._begun.acquire(blocking=False)

    def end(self) -> None:
        """Abandon it: its caller learns so."""
        self._is_over = True
        self._lock.release()

    def wait(self) -> None:
        """Return when it is done or abandoned.

        It looks up now and then: a signal that comes just before a thread falls asleep does not wake it.
        """
        while not self._is_over:
            self._lock.acquire(timeout=PATIENCE)


class Housekeeper:
    """The thread's work, in turn: `keep_house`.

    `copying`: locked while a backup is made; meanwhile no file is deleted, and errands, which delete files, wait.

    `trouble`: what a full disk kept it from, the last time that was tried; by what that is.

    `is_over`: asked whether the store closes, or has stopped.
    """

    def __init__(
        self,
        core: Core,
        cursors: GroupCursors,
        retention: Retention,
        meter: Meter,
        clock: Clock,
        *,
        is_over: Callable[[], bool],
    ) -> None:
        self._core = core
        self._cursors = cursors
        self._retention = retention
        self._meter = meter
        self._clock = clock
        self._is_over = is_over
        self._called: SimpleQueue[None] = SimpleQueue()  # there is an errand, a file is filling, or the store closes
        self._errands: deque[Errand] = deque()
        self.copying = Lock()
        self.trouble: dict[str, DiskFull] = {}

    def call(self) -> None:
        """It looks at once."""
        self._called.put(None)

    def ask(self, what: Callable[[], int]) -> Errand:
        """An errand, to be done soon."""
        errand = Errand(what)
        self._errands.append(errand)
        self.call()
        return errand

    def end_errands(self) -> None:
        """Abandon all errands that are left."""
        while self._errands:
            self._errands.popleft().end()

    def keep_house(self) -> None:
        """Run until the store closes. Raises the error that ends it."""
        settings, queues, written = self._core.settings, monotonic(), monotonic()
        pause = min(settings.flush_interval, settings.queue_flush_interval, settings.expire_interval or LONG) / 1000
        while True:
            with suppress(Empty):
                self._called.get(timeout=pause)
            if self._is_over():
                return
            now = monotonic()
            self._delete_files()
            if 1000 * (now - queues) >= settings.queue_flush_interval:
                self._core.flush_queues()
                queues = now
            if 1000 * (now - written) >= CHECKPOINT_INTERVAL:
                self._try("checkpoint", self._write_down)
                self._meter.sample()
                written = now
            self._make_ready()

    def _delete_files(self) -> None:
        """Delete expired files, unless a backup is being made; run errands."""
        if self.copying.acquire(blocking=False):
            try:
                while self._errands:
                    self._errands.popleft().do()
                self._retention.look()
            finally:
                self.copying.release()

    def _write_down(self) -> None:
        self._core.write_checkpoint(self._clock())
        self._cursors.write()

    def _make_ready(self) -> None:
        """Create the next log file before it is needed. A full disk is reported to the thread that needs it."""
        if self._core.settings.pre_allocate:
            self._try("next file", self._core.log.make_ready)

    def _try(self, name: str, what: Callable[[], None]) -> None:
        """This is done, or the next time, if the disk has room then."""
        try:
            what()
            self.trouble.pop(name, None)
        except DiskFull as error:
            self.trouble[name] = error
