"""Statistics of a store, as values. Appending has no part in it: appends are counted by positions."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from time import monotonic

import numpy as np

from gapless.impl.records.record import ENTRY_BYTES
from gapless.impl.store.core import Core

FLUSHES = 1024  # whose times are kept
WINDOW = 10  # samples, one a second, between the oldest of which and now rates are taken


@dataclass(frozen=True, slots=True)
class Stats:
    """Statistics at one moment, taken without a lock: each value is right, some are a little newer.

    Positions are those of the log, in bytes; each is an exclusive end. Times are in ms, rates per second. "Since the
    store was opened" means by this process.
    """

    time: int  # when this was asked for, by the store's clock
    log_start: int  # where the oldest file begins that is kept
    log_end: int  # what was appended
    flushed: int  # what is on disk
    acknowledged: int  # reported durable to callers that waited
    dispatched: int  # what consumers see, with all before it

    log_bytes: int  # of the disk, that log files take as far as is known: they are sparse, and a little is reserved
    queue_bytes: int  # the same of queue files
    queues: int
    mapped_files: int  # of the log and of queues, in memory

    messages: int  # appended since the store was opened
    appended_bytes: int  # of the log since then, with the blanks that end files
    messages_per_second: float  # lately: within some ten seconds
    bytes_per_second: float

    dispatch_lag: int  # bytes that were appended and that consumers do not see yet
    dispatch_lag_ms: int  # since the first of these messages was stored, by the store's clock

    flushes: int  # group commits since the store was opened; what ends a full file is not among them
    last_flush_ms: float  # how long they took, the last 1024 at most; 0 where there was none
    median_flush_ms: float
    p99_flush_ms: float

    expired_bytes: int  # of the log, since the store was opened
    expiry_time: int | None  # when it was last looked what has expired; None: never since the store was opened
    expiry_error: str | None  # what went wrong then; it is tried again
    expiry_unproven_ms: int  # what the clock was ahead then of the time by which files go: it was set, or has to show

    trouble: str | None  # why the store has stopped; or what a full disk keeps it from, which is tried again


@dataclass(frozen=True, slots=True)
class _Sample:
    """A sample: seconds, a position, and the messages appended by then."""

    seconds: float
    end: int
    messages: int


class Meter:
    """The history that `Stats` need. One thread calls `sample`, one calls `flushed`, any calls the rest."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._begin = core.log.start
        self._first = self._now()
        self._samples = deque([self._first], WINDOW + 1)
        self._flush_times = np.zeros(FLUSHES)
        self._flushes = 0

    def _now(self) -> _Sample:
        messages = sum(queue.next for queue in self._core.queues.all if not queue.is_light)
        return _Sample(monotonic(), self._core.log.end, messages)

    def sample(self) -> None:
        """To be called about once a second."""
        self._samples.append(self._now())

    def flushed(self, ms: float) -> None:
        """A group commit has taken so long."""
        self._flush_times[self._flushes % FLUSHES] = ms
        self._flushes += 1

    def stats(
        self,
        now: int,
        *,
        expiry_time: int | None,
        unproven: int,
        expiry_error: Exception | None,
        trouble: BaseException | None,
    ) -> Stats:
        """All of it, where the last four are known by now. Raises StoreError where a log file was cut off."""
        core, log, queues = self._core, self._core.log, self._core.queues
        dispatched = core.dispatch.dispatched  # before the log's end, so that it is not beyond it
        waiting_since, sample, before = core.waiting_since(), self._now(), self._samples[0]
        seconds = max(sample.seconds - before.seconds, 1e-3)
        times = self._flush_times[: min(self._flushes, FLUSHES)].copy()
        median, high = np.quantile(times, [0.5, 0.99]).tolist() if len(times) else (0.0, 0.0)
        return Stats(
            time=now,
            log_start=log.start,
            log_end=sample.end,
            flushed=log.flushed,
            acknowledged=core.acknowledged,
            dispatched=dispatched,
            log_bytes=log.segments.taken(sample.end),
            queue_bytes=sum(queue.segments.taken(queue.committed * ENTRY_BYTES) for queue in queues.all),
            queues=len(queues.all),
            mapped_files=log.segments.count_mapped() + queues.count_mapped(),
            messages=sample.messages - self._first.messages,
            appended_bytes=sample.end - self._first.end,
            messages_per_second=(sample.messages - before.messages) / seconds,
            bytes_per_second=(sample.end - before.end) / seconds,
            dispatch_lag=sample.end - dispatched,
            dispatch_lag_ms=0 if waiting_since is None else max(0, now - waiting_since),
            flushes=self._flushes,
            last_flush_ms=float(self._flush_times[(self._flushes - 1) % FLUSHES]),
            median_flush_ms=median,
            p99_flush_ms=high,
            expired_bytes=log.start - self._begin,
            expiry_time=expiry_time,
            expiry_error=None if expiry_error is None else str(expiry_error),
            expiry_unproven_ms=unproven,
            trouble=None if trouble is None else str(trouble),
        )
