"""Keeping: what a store lets go, how it is doing, and a copy of it."""

from __future__ import annotations

from _thread import start_new_thread
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

from gapless.impl.environment.operating_system import Clock, Disk
from gapless.impl.records.errors import Stopped
from gapless.impl.store.async_calls import AsyncCalls
from gapless.impl.store.core import NEVER
from gapless.impl.store.groups import GroupCursors
from gapless.impl.store.upkeep.backup import StoreCopy, into_new_folder
from gapless.impl.store.upkeep.housekeeping import Errand, Housekeeper
from gapless.impl.store.upkeep.retention import Retention
from gapless.impl.store.upkeep.stats import Meter, Stats

PATIENCE = 0.05  # seconds between two looks whether there is use in waiting for another backup


class Maintenance(AsyncCalls):
    """The calls of a store that are about all of it."""

    clock: Clock
    _house: Housekeeper
    _retention: Retention
    _meter: Meter
    _cursors: GroupCursors
    _kept: bool
    _error: BaseException | None

    def _raise_stopped(self) -> NoReturn:
        raise NotImplementedError

    def _end(self) -> tuple[int, int]:
        raise NotImplementedError

    def expire(self, before: int | None = None) -> int:
        """Whole log files go, and their entries, if all in them was stored before that time, in ms.

        Without a time, what the settings do not reserve goes: what is older than `reserved_hours`, and the oldest files
        of a log of more than `reserved_bytes`. Hours are counted by a time that has proved itself; who names a time is
        believed. A backup that is being made is waited for. Returns where the log begins now. Raises Stopped,
        StoreError.
        """
        self._require_open()
        errand = self._house.ask(self._retention.expire if before is None else partial(self._expire, before))
        if self._kept:
            self._house.end_errands()
        errand.wait()
        if not errand.is_done:
            self._raise_stopped()
        if errand.error is not None:
            raise errand.error
        return errand.answer

    def _expire(self, before: int, most: int = NEVER, young: int = NEVER) -> int:
        try:
            return self.core.expire(before, most, self._pool.paused, young)
        finally:
            self._forget_files()

    def backup(self, where: str | Path) -> int:
        """A copy of the store is in a new folder, and durable; it opens as a store that was closed.

        All that was appended before the call is in it, even if other threads append meanwhile; so are cursors of groups
        and the settings. Nothing expires until it is made. Returns how far the log is in the copy, a position. Whatever
        raises, Ctrl-C too: there is no such folder, or it is whole. Raises Refused where there was one before, or where
        it lies in the store; DiskFull, Stopped, StoreError.
        """
        self._require_open()
        given_up: list[bool] = []
        errand = Errand(partial(self._backup, Path(where), given_up))
        try:
            start_new_thread(errand.do, ())
            errand.wait()
        except BaseException:
            given_up.append(True)
            if not errand.call_off():
                errand.wait()
            raise
        if errand.error is not None:
            raise errand.error
        return errand.answer

    def _backup(self, where: Path, given_up: Sequence[bool]) -> int:
        """The backup, in a thread of its own, so that no interrupt keeps it from tidying up."""

        def go_on() -> None:
            self._require_open()
            if given_up:
                raise Stopped(f"{where}: the backup was interrupted")

        while not self._house.copying.acquire(timeout=PATIENCE):
            go_on()
        try:
            return into_new_folder(where, self.core.disk, partial(self._copy_to, go_on)).end
        finally:
            self._house.copying.release()
            self._house.call()  # for those who wait to delete files

    def _copy_to(self, go_on: Callable[[], None], disk: Disk, log: str) -> StoreCopy:
        """A copy whose log is in that folder, and that lacks but the checkpoint."""
        go_on()
        copy = StoreCopy(self.core, disk, go_on, log=log)
        self._cursors.write()
        copy.copy_others()  # before the end is known: no cursor is beyond it
        copy.copy_messages(*self._end_of_what_is_visible(), self.clock())
        return copy

    def _end_of_what_is_visible(self) -> tuple[int, int]:
        """The log's end and its newest time; all before it is on disk, and visible once this returns."""
        end, newest = self._end()
        self.wait(end)
        if self.core.settings.workers and not self._pool.wait(lambda: self.core.dispatch.dispatched >= end):
            self._raise_stopped()
        return end, newest

    def stats(self) -> Stats:
        """Statistics of the store. They take about a millisecond for a thousand queues, and no lock.

        Raises Stopped where the store is closed; of one that has stopped otherwise it tells why. Raises StoreError
        where another program has cut off a log file.
        """
        self._require_open()
        error = self._error or self.core.dispatch.error or self._pool.trouble
        trouble = error or next(iter(self._house.trouble.copy().values()), None)
        return self._meter.stats(
            self.clock(),
            expiry_time=self._retention.looked,
            unproven=self._retention.unproven,
            expiry_error=self._retention.error,
            trouble=trouble,
        )
