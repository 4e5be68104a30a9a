"""Keeping: what a store lets go, how it is doing, and a copy of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NoReturn

from gapless.impl.environment.real import Clock, Disk
from gapless.impl.store.backup import StoreCopy, into_new_folder
from gapless.impl.store.core import NEVER
from gapless.impl.store.groups import GroupCursors
from gapless.impl.store.housekeeping import Housekeeper
from gapless.impl.store.retention import Retention
from gapless.impl.store.stats import Meter, Stats
from gapless.impl.store.waiting import Waiting


class Keeping(Waiting):
    """The calls of a store that are about all of it."""

    clock: Clock
    _house: Housekeeper
    _retention: Retention
    _meter: Meter
    _cursors: GroupCursors
    _kept: bool
    _error: BaseException | None

    def _wait_until(self, done: Callable[[], bool]) -> None:
        raise NotImplementedError

    def _raise_stopped(self) -> NoReturn:
        raise NotImplementedError

    def _end(self) -> tuple[int, int]:
        raise NotImplementedError

    def expire(self, before: int | None = None) -> int:
        """Whole log files go, and their entries, if all in them was stored before that time, in ms.

        Without a time, what the settings do not reserve goes: what is older than `reserved_hours`, and the oldest files
        of a log of more than `reserved_bytes`. A backup that is being made is waited for. Returns where the log begins
        now. Raises Stopped, StoreError.
        """
        self._require_open()
        errand = self._house.ask(self._retention.expire if before is None else partial(self._expire, before))
        self._wait_until(lambda: errand.is_done or self._kept)
        if not errand.is_done:
            self._raise_stopped()
        if errand.error is not None:
            raise errand.error
        return errand.answer

    def _expire(self, before: int, most: int = NEVER) -> int:
        try:
            return self.core.expire(before, most, self._pool.paused)
        finally:
            self._forget_files()

    def backup(self, where: str | Path) -> int:
        """A copy of the store is in a new folder, and durable; it opens as a store that was closed.

        All that was appended before the call is in it, whoever appends meanwhile; so are cursors of groups and the
        settings. Nothing expires until it is made. Returns how far the log is in the copy, a position. Whatever raises,
        Ctrl-C too: there is no such folder, or it is whole. Raises Refused where there was one before, or where it lies
        in the store; DiskFull, Stopped, StoreError.
        """
        self._require_open()
        with self._house.copying:
            self._require_open()
            made = into_new_folder(Path(where), self.core.disk, self._copy_to)
        self._house.call()  # for those who wait to delete files
        return made.end

    def _copy_to(self, disk: Disk, log: str) -> StoreCopy:
        """A copy whose log is in that folder, and that lacks but the checkpoint."""
        copy = StoreCopy(self.core, disk, self._require_open, log=log)
        self._cursors.write()
        copy.copy_others()  # before the end is known: no cursor is beyond it
        copy.copy_messages(*self._end_of_what_is_visible(), self.clock())
        return copy

    def _end_of_what_is_visible(self) -> tuple[int, int]:
        """Where the log ends, and its newest time; all before it is on disk, and visible once this returns."""
        end, newest = self._end()
        self.wait(end)
        if self.core.settings.workers and not self._pool.wait(lambda: self.core.dispatch.dispatched >= end):
            self._raise_stopped()
        return end, newest

    def stats(self) -> Stats:
        """How the store is doing. It takes about a millisecond for a thousand queues, and no lock.

        Raises Stopped where the store is closed; of one that has stopped otherwise it tells why. Raises StoreError
        where another program has cut off a log file.
        """
        self._require_open()
        error = self._error or self.core.dispatch.error or self._pool.trouble
        trouble = error or next(iter(self._house.trouble.copy().values()), None)
        return self._meter.stats(
            self.clock(), expiry_time=self._retention.looked, expiry_error=self._retention.error, trouble=trouble
        )
