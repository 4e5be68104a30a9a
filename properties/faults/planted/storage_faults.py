"""Faults in how a store keeps what it was given: appending, flushing, recovery, expiry, stopping.

Each function below stands in for one of `impl/`; its docstring says what it breaks.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from gapless.impl.dispatch.dispatch import Dispatch
from gapless.impl.dispatch.pool import Pool
from gapless.impl.environment.operating_system import Disk
from gapless.impl.files import folder
from gapless.impl.files import log as log_module
from gapless.impl.files import queues as queues_module
from gapless.impl.files.log import CommitLog
from gapless.impl.files.queues import ConsumeQueue
from gapless.impl.files.segments import Segments
from gapless.impl.records import kernels
from gapless.impl.records.errors import Refused, StoreError
from gapless.impl.records.record import FIXED, MAGIC_BLANK, MAGIC_V1, MAGIC_V2
from gapless.impl.store.core import NEVER, Core
from gapless.impl.store.groups import Group
from gapless.properties.faults.planted.fault_injection import Faults, InjectedFault, replacing
from gapless.properties.simulation.simulated_files import Content

FAULTS, WHOLE_STORE = Faults(), Faults()
"""Those that machines find that crash a store, and those of a store with its threads."""

fault, store_fault = FAULTS.plant, WHOLE_STORE.plant

_append, _sync, _recover, _truncate = CommitLog.append, CommitLog._sync, CommitLog.recover, CommitLog.truncate
_dispatch_from, _build_queues, _last_file = Core._dispatch_from, Core._build_queues, Core._last_file
_write_checkpoint, _expire, _recover_queue = Core.write_checkpoint, Core.expire, ConsumeQueue.recover


# -- flushing --------------------------------------------------------------------------------------------------------


@fault("an error of the disk is swallowed", CommitLog, "_sync", "C25")
def _swallow(log: CommitLog, low: int, high: int) -> None:
    """Bytes that were never written count as safe."""
    with suppress(StoreError):
        _sync(log, low, high)
    log.error = None


@fault("a flush is tried again after an error", CommitLog, "_sync")
def _forgive(log: CommitLog, low: int, high: int) -> None:
    """Bytes that the kernel forgot after a failed sync count as safe."""
    try:
        _sync(log, low, high)
    finally:
        log.error = None


@fault("flushed before the disk has answered", CommitLog, "flush", "C25")
def _promise_first(log: CommitLog) -> int:
    """Bytes that are not on disk count as safe."""
    low, log.flushed = log.flushed, log.end
    if low < log.end:
        _sync(log, low, log.end)
    return log.flushed


@fault("a full file is left behind unflushed", CommitLog, "roll")
def _roll_unflushed(log: CommitLog, size: int = 0) -> None:
    """Records of full files are lost, and later ones with them."""
    at, following = log.end - log._base, log._base + log.file_size
    log._make(following, size)
    log_module._BLANK.pack_into(log._mapped, at, log.file_size - at, MAGIC_BLANK)
    log._write_to(following)
    log.end = following
    log._flushed(following)


@fault("acknowledged when written", Core, "acknowledge", "C36")
def _acknowledge_at_once(core: Core, to: int) -> None:
    """A crash takes what was promised."""
    core.acknowledged = max(core.acknowledged, to)


@fault("entries count as flushed when they are seen", Dispatch, "flush")
def _flush_no_entry(dispatch: Dispatch, queue: ConsumeQueue, safe: int) -> int:
    """After a clean stop, messages are without an entry."""
    queue.flushed = dispatch.flushable(queue, safe)
    return queue.flushed


@fault("a disk that lies", Content, "sync")
def _all_clean(content: Content, _page: int) -> None:
    """Nothing that counts as safe is."""
    content.believed = content.durable


# -- appending -------------------------------------------------------------------------------------------------------


class _NoBlank:
    """Recovery ends there, and later files are dropped."""

    def pack_into(self, *_blank: object) -> None:
        """Nothing marks the end of the file."""


fault("no blank ends a file", log_module, "_BLANK")(_NoBlank())
NO_ROOM = partial(replacing, log_module, "BLANK", 0)
FAULTS.append(InjectedFault("no room for the blank", "A record reaches to the end of its file.", None, NO_ROOM))


@fault("store times step back", CommitLog, "append")
def _by_the_clock(log: CommitLog, queue: ConsumeQueue, body: bytes, extra: bytes, now: int, **more: Any) -> Any:
    """A search by time misses messages."""
    log.newest = now
    return _append(log, queue, body, extra, now, **more)


@fault("a failed append takes a number", CommitLog, "append", "C06")
def _number_lost(log: CommitLog, queue: ConsumeQueue, *message: Any, **more: Any) -> tuple[int, int]:
    """A number of the queue is never written."""
    try:
        return _append(log, queue, *message, **more)
    except StoreError as error:
        queue.next += not isinstance(error, Refused)
        raise


# -- recovery of the log ---------------------------------------------------------------------------------------------


@fault("recovery trusts the size", kernels, "scan", "C02")
def _by_size_only(
    b: Any, _base: int, at: int, _doubted: int, _tables: object, _sealed: int, _safe: int
) -> tuple[int, int, int, int, int]:
    """Torn records are taken for whole ones."""
    count, newest = 0, 0
    while at + 8 <= len(b):
        size, magic = (int.from_bytes(b[at + low : at + low + 4].tobytes(), "big") for low in (0, 4))
        if magic == MAGIC_BLANK and size == len(b) - at:
            return at, kernels.AT_BLANK, count, newest, at
        if size < FIXED or at + size > len(b) or magic not in {MAGIC_V1, MAGIC_V2}:
            return at, kernels.AT_OTHER, count, newest, at
        newest = max(newest, int.from_bytes(b[at + 56 : at + 64].tobytes(), "big"))
        count, at = count + 1, at + size
    return at, kernels.AT_END, count, newest, at


@fault("recovery trusts names and properties", CommitLog, "recover", "C02")
def _trust(log: CommitLog, position: int, _doubted: int, *_sealed_and_safe: int) -> int:
    """Records are taken for whole ones whose topic or properties are torn."""
    return _recover(log, position, NEVER)


@fault("the checkpoint's own moment is trusted", CommitLog, "recover")
def _trust_the_last_moment(log: CommitLog, position: int, doubted: int, *_sealed_and_safe: int) -> int:
    """Records of one millisecond are trusted that were not on disk."""
    return _recover(log, position, doubted + 1)


@fault("what was found is not flushed", CommitLog, "truncate", "C10")
def _truncate_unflushed(log: CommitLog) -> None:
    """Safe bytes are lost by the next crash."""
    flushed, log.flushed = log.flushed, log.segments.next_base()
    _truncate(log)
    log.flushed = max(flushed, log.end)


def _leave_it(*_anything: object) -> None:
    """Records that a crash took away come back."""


fault("the log's tail is left as it was", log_module, "zero_from", "C21")(_leave_it)
fault("the queues' tails are left as they were", queues_module, "zero_from", "C21")(_leave_it)
fault("later files stay", Segments, "delete_from", "C21")(_leave_it)


@fault("later files are deleted, the first one first", Segments, "delete_from", "C27")
def _delete_rising(segments: Segments, base: int) -> None:
    """A hole between files."""
    for later in [found for found in segments.bases if base <= found]:
        segments.delete(later)


# -- recovery of the queues ------------------------------------------------------------------------------------------


@fault("dispatch starts at the log's end", Core, "_dispatch_from", "C03")
def _dispatch_from_the_end(core: Core, _begin: int, **how: bool) -> None:
    """Messages without an entry."""
    _dispatch_from(core, core.log.end, **how)


@fault("dispatch starts behind the first message", Core, "_dispatch_from", "C39")
def _dispatch_from_behind(core: Core, begin: int, **how: bool) -> None:
    """A message without an entry, whose number is given again."""
    with suppress(StoreError):
        if begin < core.log.end:
            begin += core.log.at(begin).size
    _dispatch_from(core, begin, **how)


@fault("recovery begins at the newest file", Core, "_last_safe_file", "C20")
def _the_newest_file(core: Core) -> int:
    """Messages of older files without an entry."""
    return _last_file(core)


@fault("what a crash leaves counts as a clean stop", folder, "is_clean", "C17")
def _never_crashed(_disk: Disk) -> bool:
    """Messages without an entry: those whose entries were not on disk."""
    return True


@fault("recovery cuts off every entry", Core, "_build_queues", "C18")
def _cut_to_nothing(core: Core, begin: int, trusted: int) -> None:
    """Queues are empty, and what comes next is number 0."""
    for queue in core.queues.all:
        _recover_queue(queue, core.log.end, 0, lambda *_: False)
    _build_queues(core, core.log.end if trusted else begin, trusted)


@fault("numbers are those of the entries found", Core, "_build_queues")
def _numbers_from_entries(core: Core, begin: int, trusted: int) -> None:
    """A number is given twice: entries that were built again are not counted."""
    found = {queue.name: queue.next for queue in core.queues.all}
    _build_queues(core, begin, trusted)
    for queue in core.queues.all:
        queue.next = found.get(queue.name, queue.next)


# -- what consumers see, the checkpoint, stopping --------------------------------------------------------------------


@fault("consumers see what is not flushed", Core, "limit", "C09")
def _no_limit(core: Core) -> int:
    """A crash takes what consumers of a synchronous store saw."""
    return core.log.end


@fault("the checkpoint is ahead of the flush", Core, "write_checkpoint")
def _checkpoint_ahead(core: Core, now: int) -> None:
    """Recovery believes what is not there."""
    core._flushed(core.log.end, core.log.newest)
    _write_checkpoint(core, now)


@fault("the queues' time is the log's", Core, "_flushed")
def _queues_too_early(core: Core, _end: int, newest: int) -> None:
    """Entries are missing that recovery does not look for."""
    core.checkpoint = replace(core.checkpoint, log=max(core.checkpoint.log, newest), queues=newest)


@fault("a clean stop does not wait for dispatch", Core, "close", "C01")
def _stop_in_a_hurry(core: Core, now: int) -> None:
    """Messages without an entry."""
    if core._open:
        try:
            core.flush()
            core.flush_queues()
            core.write_checkpoint(now)
            folder.mark_stopped(core.disk)
        finally:
            core.abandon()


# -- expiry ----------------------------------------------------------------------------------------------------------


@fault("files expire before their entries are flushed", Core, "expire")
def _expire_unflushed(core: Core, before: int) -> int:
    """A queue forgets its numbers."""
    with replacing(Core, "flush_queues", _leave_it):
        return _expire(core, before)


@fault("the youngest expired file is deleted first", Core, "expire", "C27")
def _expire_falling(core: Core, before: int) -> int:
    """A hole between files."""
    delete, asked = Segments.delete, []
    with replacing(Segments, "delete", lambda *what: asked.append(what)):
        start = _expire(core, before)
    for what in reversed(asked):
        delete(*what)
    return start


@fault("files expire before they are dispatched", Core, "expire", "C32")
def _expire_what_is_not_built(core: Core, before: int) -> int:
    """Messages go that no consumer saw."""
    dispatched, core.dispatch.dispatched = core.dispatch.dispatched, core.log.end
    try:
        return _expire(core, before)
    finally:
        core.dispatch.dispatched = dispatched


fault("the first number stays behind", ConsumeQueue, "forget_below", "C23")(_leave_it)


# -- a store with its threads ------------------------------------------------------------------------------------------


@store_fault("a read beyond the end begins again", Group, "_within", "C24")
def _to_the_beginning(group: Group, topic: str, queue: int, number: int) -> int:
    """All that was consumed is consumed again."""
    low, high = group._store.range(topic, queue)
    return number if low <= number <= high else low


@store_fault("stopping stops itself", Pool, "stop", "C31")
def _stops_itself(pool: Pool) -> None:
    """A stop never ends."""
    pool.stop()
