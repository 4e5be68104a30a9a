"""A commit log with consume queues, for programs: `Core` with threads around it, a clock, and waiting.

with Store.open("data") as store:
    store.append("orders", 0, b"paid", tag="new")
    for record in store.read("orders", 0, 0):
        print(record.number, record.body)
"""

from __future__ import annotations

import asyncio
import os
from _thread import start_new_thread
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self
from weakref import WeakSet

from gapless.impl.dispatch.pool import Pool
from gapless.impl.environment.operating_system import Clock, Disk, RealDisk, wall_clock
from gapless.impl.files.log import PAGE
from gapless.impl.files.queues import ConsumeQueue
from gapless.impl.records.errors import Refused, Stopped, StoreError
from gapless.impl.records.record import Ints, Listed, Messages, properties_bytes
from gapless.impl.store.append_result import AppendResult
from gapless.impl.store.core import Core, Settings
from gapless.impl.store.group_commit import THE_LAST, GroupCommit
from gapless.impl.store.groups import Group, GroupCursors
from gapless.impl.store.preparation import CALLING, prepare
from gapless.impl.store.transaction_calls import TransactionCalls
from gapless.impl.store.upkeep.housekeeping import Housekeeper
from gapless.impl.store.upkeep.retention import Retention
from gapless.impl.store.upkeep.stats import Meter
from gapless.impl.store.view import StoreView
from gapless.impl.transactions.names import OWN_TOPICS, require_not_own

if TYPE_CHECKING:
    from gapless.impl.recorder.recorder import StoreRecorder

RESTORES = "allow_system=True restores what was there"
THOROUGH = 10_000  # ms after which the log is flushed however little there is


@lru_cache(1 << 12)
def _with_tag(tag: str) -> bytes:
    """The properties of a message that has but a tag."""
    return properties_bytes({"TAGS": tag}) if tag else b""


class Store(TransactionCalls):
    """A store that is open. Any thread may call anything. Use it with `with`, or call `close`.

    Ctrl-C may come in the midst of every call. A message that was being appended is there whole or not at all; what was
    being waited for continues; and the store does, too. So what cannot be undone is done by the store's own thread.

    It belongs to the process that opened it: in a forked child every call raises Stopped, but for `close` and
    `abandon`, which do nothing there.
    """

    def __init__(self, core: Core, clock: Clock) -> None:
        self.core = core
        self.clock = clock
        self._appending = Lock()
        self._queues: dict[tuple[str, int], ConsumeQueue] = {}
        self._commit = GroupCommit(self._flush_once, self._flush_apart)
        self._acknowledging = Lock()
        self._nudged = 0  # ms, the last time that dispatch heard of the log's growth
        self._closing = self._abandoning = False
        self._kept = False  # no thread does errands any more
        self._closed = False  # no file is used any more
        self._is_forked = False  # this is a copy, in a child process
        self._error: BaseException | None = None
        self._left: BaseException | None = None  # what kept `close` from being a clean stop
        self._pool = Pool(core.dispatch, workers=core.settings.workers, limit=lambda: core.limit)
        self._finishing = Lock()
        self._begin_reading(core.log, core.queues)
        self._cursors = GroupCursors(core.disk, core.queues.all)
        self._retention = Retention(core.kept, clock, core.log, self._expire)
        self._meter = Meter(core)
        self._house = Housekeeper(core, self._cursors, self._retention, self._meter, clock, is_over=self._is_over)

    @classmethod
    def open(
        cls,
        where: str | Path | Disk,
        settings: Settings | None = None,
        *,
        clock: Clock = wall_clock,
        recorder: StoreRecorder | None = None,
    ) -> Self:
        """The store in a folder, which is made if it is new.

        `where`: a folder, or a disk · `clock`: ms since 1970; it may be set · `recorder`: writes every step down.
        Raises NotAStore, InUse, WrongFileSize, Damaged, DiskFull, StoreError, and Refused where the settings contradict
        those that are kept with the store. The first time on a machine, native code is compiled, which takes a second
        or two; no other call does so.
        """
        disk = RealDisk(where) if isinstance(where, str | Path) else where
        store = None
        try:
            store = cls(Core.open(disk, settings, recorder), clock)
            prepare(CALLING)
            _STORES.add(store)
            store._pool.start()
            start_new_thread(store._work, ())
        except StoreError:
            raise
        except BaseException:  # by an interrupt, the store may have been opened, without a reference to it
            if store is not None:
                store._closing = store._abandoning = True
                store._finish()
            disk.unlock()
            raise
        return store

    @classmethod
    async def open_async(cls, where: str | Path | Disk, settings: Settings | None = None, **more: Any) -> Self:
        """Open a store in a thread: `open`. Neither recovery nor compilation keeps the event loop waiting."""
        opening = asyncio.ensure_future(asyncio.to_thread(partial(cls.open, where, settings, **more)))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_let_go)
            raise

    @staticmethod
    def open_read_only(where: str | Path | Disk) -> StoreView:
        """Open the store in a folder for reading alone; another process may write. Raises as `StoreView.open`."""
        return StoreView.open(where)

    def _forked(self) -> None:
        """This is a child of the process that has the store open. It has no threads, and the store is not its own."""
        self._appending, self._is_forked = Lock(), True  # another thread may have had it
        self._error, self._closing = Stopped("the store is open in the parent process"), True
        self._commit.ended = self._kept = self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- append ------------------------------------------------------------------------------------------------------

    def append(
        self,
        topic: str,
        queue: int,
        body: bytes,
        *,
        tag: str = "",
        properties: Mapping[str, str] | None = None,
        flag: int = 0,
        born: int | None = None,
        wait: bool = True,
        allow_system: bool = False,
    ) -> AppendResult:
        """A message at the end of its queue. In a synchronous store it is on disk when this returns.

        `tag`: what consumers choose by · `properties`: any others · `flag`: any 32 bits of the sender's · `born`: ms,
        when it was sent; by default now · `wait`: without it, this returns at once, and
        `wait` returns when the message is on disk · `allow_system`: for restores, to a topic that the store itself
        writes to. Raises Refused if no record can contain it, DiskFull, Stopped. After Stopped it is unknown whether a
        message that was waiting to be flushed is there.
        """
        extra = properties_bytes({"TAGS": tag, **properties} if tag else properties) if properties else _with_tag(tag)
        core = self.core
        with self._appending:
            found = self._queues.get((topic, queue)) or self._meet(topic, queue, allow_system=allow_system)
            if self._closing or self._error or core.dispatch.error:
                self._raise_stopped()
            now = self.clock()
            position, size = core.log.append(found, body, extra, now, flag=flag, born=born)
            number = found.next - 1
        if wait and core.settings.synchronous:
            self.wait(position + size)
        elif now != self._nudged:  # once in a millisecond: dispatch takes all that is there by then
            self._nudged = now
            self._pool.nudge()
        return AppendResult(position, number, size)

    def append_batch(self, messages: Messages | Listed, *, allow_system: bool = False) -> tuple[Ints, Ints]:
        """Many messages at once, in columns or as a list: positions and numbers, int64 [n] each. Raises as `append`.

        A batch may span files of the log, and goes in file by file: where an error ends it, `StoreError.appended` says
        which messages are in the log, and so does a note of the exception, whatever that is.
        """
        placed = self._put_many(messages, allow_system=allow_system)
        if self.core.settings.synchronous and placed.shape[1]:
            self.wait(int(placed[0, -1] + placed[1, -1]))
        return placed[0], placed[3]

    def _put_many(self, messages: Messages | Listed, *, allow_system: bool) -> Ints:
        """They are in the log: `CommitLog.append_many`."""
        if not isinstance(messages, Messages):
            messages = Messages.of_list(messages)
        for topic, _ in () if allow_system else messages.queues:
            require_not_own(topic, RESTORES)
        with self._appending:
            if self._closing or self._error or self.core.dispatch.error:
                self._raise_stopped()
            placed = self.core.append_many(messages, self.clock())
        if not self.core.settings.synchronous:
            self._pool.nudge()
        return placed

    def _meet(self, topic: str, queue: int, *, allow_system: bool) -> ConsumeQueue:
        """A queue that is not at hand; those of the store itself never are, so that each append asks."""
        if not allow_system:
            require_not_own(topic, RESTORES)
        found = self.core.queues.named(topic, queue)
        if topic not in OWN_TOPICS:
            self._queues[found.topic, found.id] = found
        return found

    # -- flush -------------------------------------------------------------------------------------------------------

    def wait(self, position: int) -> None:
        """Returns when all before `position` is on disk, together with whatever else waits.

        Raises Refused where nothing was appended there yet, Stopped.
        """
        log = self.core.log
        self._require_own()
        if position > log.end:
            raise Refused(f"position {position} is beyond the log's end, {log.end}")
        self._commit.wait(lambda: log.flushed >= position or self._commit.ended, position)
        if log.flushed < position:
            self._raise_stopped()
        with self._acknowledging:
            self.core.acknowledge(position)

    def flush(self) -> int:
        """All that was appended is on disk; returns how far the log is. Raises Stopped."""
        end = self.core.log.end
        self.wait(end)
        return end

    def _raise_stopped(self) -> NoReturn:
        if error := self._error or self.core.dispatch.error:
            raise Stopped(str(error)) from error
        raise Stopped("the store is closed; open it again")

    def _work(self) -> None:
        """The thread that flushes, and closes in the end. What takes longer is another's work."""
        start_new_thread(self._keep_house, ())
        try:
            self._keep_flushing()
            if not self._abandoning:
                self._commit.flush()
        except BaseException as error:  # noqa: BLE001 - a thread that ends in silence would leave everybody waiting
            self._error = error
        self._commit.end()
        while not (self._closing and self._kept):
            self._house.call()
            self._commit.sleep()
        self._finish()
        self._commit.answer_all()

    def _keep_flushing(self) -> None:
        """Flush at once if a caller waits, else as the settings say."""
        flushed = monotonic()
        while not self._closing:
            asked, now = self._commit.sleep(self.core.settings.flush_interval / 1000), monotonic()
            if self._abandoning:
                break
            if asked or self._is_due(1000 * (now - flushed)):
                self._commit.flush()
                flushed = now

    def _keep_house(self) -> None:
        """The thread that does errands, flushes queues, writes the checkpoint and makes the next file ready."""
        try:
            self._house.keep_house()
        except BaseException as error:  # noqa: BLE001 - a thread that ends in silence would leave everybody waiting
            self._error = error
        self._kept = True
        self._house.end_errands()
        self._commit.call()

    def _finish(self) -> None:
        """All is let go, after a clean stop if that is wanted and can be had."""
        with self._finishing:
            if self._closed:
                return
            with suppress(Exception):  # `Core.close` raises what stopped dispatch
                self._pool.stop()
            try:
                try:
                    try:
                        if not self._abandoning:
                            self._end_transactions()
                    finally:
                        self._cursors.close(write=not self._abandoning)
                finally:
                    self.core.abandon() if self._abandoning else self.core.close(self.clock())
            except BaseException as error:  # noqa: BLE001 - the caller of `close` gets it
                self._left = error
            self._forget_files()
            self._closed = True

    def _is_over(self) -> bool:
        return self._closing or self._error is not None

    def _is_due(self, since: float) -> bool:
        """True if the log is to be flushed without a waiting caller, so many ms after the last time."""
        waiting, settings = self.core.log.end - self.core.log.flushed, self.core.settings
        enough = waiting >= settings.flush_pages * PAGE
        return waiting > 0 and since >= (settings.flush_interval if enough or settings.synchronous else THOROUGH)

    def _end(self) -> tuple[int, int]:
        """The log's end, and the time that goes with it."""
        with self._appending:
            self.core.log.settle()
            return self.core.log.end, self.core.log.newest

    def _flush_once(self) -> int:
        """All that is appended before it begins is on disk after it; returns how far. One thread at a time does it."""
        log = self.core.log
        end, newest = self._end()
        before, began = log.flushed, monotonic()
        self.core.flush_up_to(end, newest)
        self._was_flushed(before, began)
        return log.flushed

    def _flush_apart(self) -> None:
        """The same by the main thread, while no thread leads: wherever Ctrl-C ends it, no other one waits for it."""
        end, newest = self._end()
        before, began = self.core.log.flushed, monotonic()
        if self.core.flush_apart(end, newest):
            self._was_flushed(before, began)

    def _was_flushed(self, before: int, began: float) -> None:
        log = self.core.log
        if log.flushed > before:
            self._meter.flushed(1000 * (monotonic() - began))
        self._pool.nudge()
        if log.is_filling:
            self._house.call()

    # -- read --------------------------------------------------------------------------------------------------------

    def range(self, topic: str, queue: int) -> tuple[int, int]:
        """The lowest number that is kept, and the exclusive end of those that can be read: the commit position.

        After `close`, what they were. Raises Stopped in a forked child.
        """
        self._require_own()
        return super().range(topic, queue)

    def _require_open(self) -> None:
        if self._closing:
            self._raise_stopped()

    def _require_own(self) -> None:
        if self._is_forked:
            self._raise_stopped()

    # -- the rest ----------------------------------------------------------------------------------------------------

    def wait_for(self, topic: str, queue: int, number: int, timeout: float = 10.0) -> bool:
        """Returns when consumers see `number`: True; or False after `timeout` seconds. Raises what stopped dispatch."""
        self._require_open()
        return self._pool.wait(lambda: number < self.range(topic, queue)[1], timeout)

    def _wait_for_any(self, queues: Mapping[tuple[str, int], int], timeout: float | None) -> bool:
        return self._pool.wait(lambda: self._any_visible(queues), timeout)

    def group(self, name: str) -> Group:
        """A consumer group, whose cursors survive a crash. Raises Refused, Damaged, StoreError."""
        self._require_open()
        return Group(name, self, self._cursors)

    def close(self) -> None:
        """A clean stop: every message has its entry, all is on disk. Raises Stopped where the disk does not let it.

        Where Ctrl-C comes meanwhile, the store continues to close; a second call waits for that.
        """
        self._halt(abandon=False)
        error, self._left = self._left, None
        if error is not None:
            raise error

    def abandon(self) -> None:
        """Let go as when the process dies: the next start finds what had been written."""
        self._halt(abandon=True)

    def _halt(self, *, abandon: bool) -> None:
        """Returns when all is let go."""
        with self._appending:
            if not self._closing:
                self._closing, self._abandoning = True, abandon
        self._commit.wait(lambda: self._closed, THE_LAST)


def _let_go(opening: asyncio.Future[Any]) -> None:
    """Close a store that is open by now, though the one who opened it was cancelled."""
    if not opening.cancelled() and opening.exception() is None:
        start_new_thread(opening.result().close, ())


_STORES: WeakSet[Store] = WeakSet()
"""Those that are open in this process."""


def _forked() -> None:
    for store in _STORES:
        store._forked()  # noqa: SLF001 - no other caller


os.register_at_fork(after_in_child=_forked)
