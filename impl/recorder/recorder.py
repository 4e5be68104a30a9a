"""The recorder: every step of a store as an event, cheap enough to be left on.

The parts of a store write rows of eight integers to one tape, one for a step or one for a block of many, at the place
where the step takes effect. Another thread takes them off the tape, reads the bytes that they speak of, and keeps the
rows, in memory or in a file without a name, which is gone if the process is. At the end they become events
(`event_batches.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np

from gapless.impl.files.log import CommitLog
from gapless.impl.files.observer import APPEND
from gapless.impl.files.queues import ENTRY, ConsumeQueue
from gapless.impl.recorder import event_batches
from gapless.impl.recorder import rows as r
from gapless.impl.recorder.rows import WIDTH
from gapless.impl.recorder.sessions import Sessions
from gapless.impl.recorder.spool import Spool
from gapless.impl.records.errors import StoreError
from gapless.impl.records.record import DELAYS, Ints
from gapless.traces.events import writing
from gapless.traces.events.event import Origin

if TYPE_CHECKING:
    import pyarrow as pa

ORIGIN = Origin("gapless-store", "strict")  # what we record is the design, and deviates from it nowhere
EVERY = 0.1  # seconds between two looks at the tape
AT_ONCE = 1 << 14  # rows that are taken off the tape at once
MOST = 1 << 20  # rows on the tape beyond which writers must help
ROW = 8 * WIDTH  # bytes


class RecorderFailure(StoreError):  # noqa: N818 - it names a finding.
    """The recording is not complete, and nothing was written; the store is as it is."""


class StoreRecorder:
    """Observes the parts of a store, and writes their steps as events to `path` when it is closed.

    Without a path, it keeps them: `batches` returns them. `source` is the name that the events carry. One recorder may
    go with a store through several sessions, one after the other.
    """

    def __init__(self, path: Path | None = None, *, source: str = "gapless") -> None:
        self.path = path
        self.source = source
        self.error: Exception | None = None
        self.count = 0
        """Events that were written."""
        self.tape = bytearray()
        """Rows, in the order of the steps: `+=` is one step of the interpreter. Never another object."""
        self._overlap = True
        self._late = False  # the tape is longer than it may be
        self._taking = threading.RLock()
        folder = path.parent if path else None
        self._kept, self._entries = Spool(np.empty((0, WIDTH), np.int64), folder), Spool(np.empty(0, ENTRY), folder)
        self._sessions = Sessions(self._entries.add)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._take_on, name="gapless-recorder", daemon=True)
        if path is not None:
            self._thread.start()

    def __enter__(self) -> Self:
        """The recorder."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write what was recorded, whatever happened: it is true up to here."""
        self.close()

    # -- a session of the store --------------------------------------------------------------------------------------

    def opened(
        self, log: CommitLog, queues: Sequence[ConsumeQueue], *, overlap: bool = True, delays: Sequence[int] = DELAYS
    ) -> None:
        """A store was opened: recovered, every message in its queue, all of it safe. In a later session, after a crash.

        `queues`: by their indices; those that are made later are added to it · `overlap`: workers may share a queue ·
        `delays`: ms of each delay level.
        """
        with self._taking:
            self.take()
            self._overlap = overlap
            self._keep(lambda: self._sessions.begin(log, queues, overlap=overlap, delays=delays))

    def expired(self, start: int, queues: Sequence[ConsumeQueue]) -> None:
        """The log begins at `start` now, the messages of every queue at its `first`; no file is deleted yet."""
        for queue in queues:
            self._row(r.EXPIRE, queue.index, queue.first, start)
        self.take()

    def settled(self, upto: int, queues: Sequence[ConsumeQueue]) -> None:
        """Every message before `upto` has its entry, and no file is closed yet."""
        for queue in queues:
            self._row(r.SETTLE, queue.index, upto)
        self.take()

    def rested(self, queues: Sequence[ConsumeQueue]) -> None:
        """The store has come to rest by a clean stop: all that was promised is done. It may be opened again."""
        self._row(r.REST, 0, 0)
        for queue in queues:
            self._row(r.REST_QUEUE, queue.index, 0)
        self.take()

    # -- steps of the log --------------------------------------------------------------------------------------------

    # An append is the row `append_row` on the tape: its place. What is true of its bytes is read from them. The log
    # itself puts the rows of its growth on the tape.

    def rows_of_many(self, queues: Ints, placed: Ints) -> memoryview:
        """The rows that say: records are in the log; `queues`: the indices of their queues.

        `placed`: int64 [4, n], the position of each, its size, the place of its queue in `queues`, its number.
        """
        position, size, of, _number = placed
        return r.rows_of(APPEND, size, {r.SUBJECT: queues[of], r.B: position, r.C: size}).data

    def row_of_roll(self, position: int, size: int) -> bytes:
        """The row that says: a blank of so many bytes fills the file."""
        return r.row(r.ROLL, 0, position, size, 0, 0, 0, 0)

    def flushed(self, to: int) -> None:
        """The log before `to` is on disk."""
        self._row(r.FLUSH, 0, to)
        self.help()

    def acknowledged(self, to: int) -> None:
        """Producers have got the answer that the log before `to` is safe."""
        self._row(r.ACKNOWLEDGE, 0, to)

    def checkpointed(self, time: int) -> None:
        """The checkpoint says: what was stored up to `time`, in ms, is safe."""
        self._row(r.CHECKPOINT, 0, time)

    # -- steps of dispatch -------------------------------------------------------------------------------------------

    # Runs are int64 [n, 3]: a queue by its index, and numbers of it from, up to.

    def scanned(self, runs: Ints) -> None:
        """Records have got their numbers."""
        self._runs(r.SCAN, runs)

    def taken(self, runs: Ints) -> None:
        """A worker begins to write these entries; not called again when it tries again."""
        self._runs(r.TAKE, runs)

    def wrote(self, runs: Ints) -> None:
        """These entries are in their slots, and their bits are set."""
        self._runs(r.WRITE, runs)

    def committed(self, queue: int, to: int) -> None:
        """Consumers see the entries before `to`. The entries are read later; at once, where there is no path."""
        self._row(r.COMMIT, queue, to)
        if self.path is None:
            self.take()

    def queue_flushed(self, queue: int, to: int) -> None:
        """The entries before `to` are on disk."""
        self._row(r.FLUSH_QUEUE, queue, to)

    # -- the tape ----------------------------------------------------------------------------------------------------

    def _row(self, kind: int, queue: int, a: int, b: int = 0) -> None:
        self.tape += r.row(kind, queue, a, b, 0, 0, 0, 0)  # one step of the interpreter: the tape's order is the order

    def _runs(self, kind: int, runs: Ints) -> None:
        low, high = runs[:, 1], runs[:, 2]
        self._rows(r.rows_of(kind, low, {r.SUBJECT: runs[:, 0], r.A: low, r.B: high, r.C: int(self._overlap)}))

    def _rows(self, rows: Ints) -> None:
        self.tape += rows.data  # as one step, too
        self.help()

    def help(self) -> None:
        """Take rows off the tape if they are written faster than they are taken: the tape has an end."""
        if self._late:
            self.take()

    def _take_on(self) -> None:
        while not self._over.wait(EVERY):
            self._late = len(self.tape) > MOST * ROW
            self.take()
            self._late = False

    def take(self) -> None:
        """Take off the tape all that is on it."""
        with self._taking:
            while rows := min(len(self.tape) // ROW, AT_ONCE):
                taken = np.frombuffer(self.tape[: rows * ROW], np.int64).reshape(rows, WIDTH)
                del self.tape[: rows * ROW]
                self._keep(lambda taken=taken: self._sessions.complete(taken))  # type: ignore[misc]

    def _keep(self, rows: Callable[[], Ints]) -> None:
        if self.error is None:
            try:
                self._kept.add(rows())
            except Exception as error:  # noqa: BLE001 - whatever it is, the store continues, and `close` raises it
                self.error = error

    # -- the end -----------------------------------------------------------------------------------------------------

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All that was recorded so far, as batches of events, trace by trace. Raises RecorderFailure."""
        self.take()
        if self.error is not None:
            raise RecorderFailure(f"the recording broke off: {self.error}; the store is not affected") from self.error
        yield from event_batches.batches(self._kept.all(), self._entries.all(), self._sessions.subjects, self.source)

    def close(self) -> None:
        """Write the events, if there is a path, and forget them. Raises RecorderFailure: then there is no new file."""
        if self.path is None or self._over.is_set():
            return
        self._over.set()
        self._thread.join()
        try:
            self.count = writing.write(self.path, self.batches(), event_batches.WORDS, origin=ORIGIN)
        except OSError as error:
            raise RecorderFailure(f"{self.path}: cannot be written ({error.strerror or error})") from error
        finally:
            self._kept.forget()
            self._entries.forget()
