"""What the rows about the implementation measure. Each run is a process of its own, and answers with a line of JSON.

Stores that are written are temporary, and lie where the large ones are kept: on the same disk.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import numpy as np

from benchmarks.rows import answer
from gapless import check
from gapless.impl.dispatch.dispatch import Dispatch
from gapless.impl.dispatch.pool import rebuild
from gapless.impl.environment.operating_system import RealDisk
from gapless.impl.files import folder as store_folder
from gapless.impl.files.log import CommitLog
from gapless.impl.files.queues import ConsumeQueues
from gapless.impl.files.segments import Segments
from gapless.impl.recorder.recorder import StoreRecorder
from gapless.impl.records import kernels
from gapless.impl.records.record import Messages, properties_bytes
from gapless.impl.store.core import Settings
from gapless.impl.store.store import Store

BODY = 200  # bytes of a message that is appended
QUEUES = [(topic, queue) for topic in ("orders", "payments", "audit-log", "shipments") for queue in range(4)]
BATCH = 10_000  # messages
EVER = 1 << 62  # ms


def append(folder: str, count: int, *, recorded: bool = False) -> None:
    """Messages one at a time, flushed by the way: from the first call to the return of the last."""
    body = bytes(range(BODY))

    def send(store: Store) -> None:
        for number in range(count):
            store.append("orders", number & 15, body, tag="paid")

    _append(folder, send, count * (BODY + 110), recorded=recorded)


def append_batch(folder: str, count: int, *, recorded: bool = False) -> None:
    """Messages ten thousand at a time, as columns, otherwise the same."""
    messages = columns()

    def send(store: Store) -> None:
        for _ in range(count // BATCH):
            store.append_batch(messages)

    _append(folder, send, count * (BODY + 110), recorded=recorded)


def append_list(folder: str, count: int) -> None:
    """Messages ten thousand at a time, as a plain list, otherwise the same."""
    bodies = columns().bodies.tobytes()
    messages = [
        (*QUEUES[number % len(QUEUES)], bodies[number * BODY : (number + 1) * BODY], {"TAGS": "paid"})
        for number in range(BATCH)
    ]

    def send(store: Store) -> None:
        for _ in range(count // BATCH):
            store.append_batch(messages)

    _append(folder, send, count * (BODY + 110), recorded=False)


def columns() -> Messages:
    """A batch."""
    extra = properties_bytes({"TAGS": "paid"})
    return Messages(
        QUEUES,
        np.arange(BATCH, dtype=np.int32) % len(QUEUES),
        np.random.default_rng(1).integers(0, 256, BATCH * BODY, np.uint8),
        np.arange(BATCH + 1) * BODY,
        np.frombuffer(extra * BATCH, np.uint8),
        np.arange(BATCH + 1) * len(extra),
    )


def append_recorded(folder: str, count: int) -> None:
    """`append` with a recorder; the verdict is that of the recording, judged afterwards."""
    append(folder, count, recorded=True)


def append_batch_recorded(folder: str, count: int) -> None:
    """`append_batch` with a recorder; the verdict is that of the recording, judged afterwards."""
    append_batch(folder, count, recorded=True)


def _append(folder: str, send: Callable[[Store], None], size: int, *, recorded: bool) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as made:
        path = Path(made, "recorded.parquet")
        _warm(Path(made, "warm"), StoreRecorder(Path(made, "warm.parquet")) if recorded else None)
        recorder = StoreRecorder(path) if recorded else None
        _touch(size)
        with Store.open(Path(made, "store"), recorder=recorder) as store:
            began = time.perf_counter()
            send(store)
            seconds = time.perf_counter() - began
            records = sum(queue.next for queue in store.core.queues.all)
        if recorder is None:
            answer(seconds, records)
            return
        recorder.close()
        answer(seconds, records, check([path], profile="strict").verdict)


def _touch(size: int) -> None:
    """So much memory has been used once.

    What a virtual machine has never used comes from its host page by page, and the page cache has to wait for it.
    """
    np.ones(size, np.uint8)


def _warm(folder: Path, recorder: StoreRecorder | None) -> None:
    """Have all that will run compiled, or loaded from the cache of object code."""
    with Store.open(folder, recorder=recorder) as warm:
        warm.append("orders", 0, b"")
        warm.append_batch(Messages.of_list([("orders", 0, b"", {})]))
        warm.wait_for("orders", 0, 1)
    if recorder is not None:
        recorder.close()


def build(path: str, folder: str, workers: int) -> None:
    """Rebuild all queues of a log, in files of their own, checksums verified: until the last entry is visible.

    The verdict is that of a comparison with the store's own queues, byte by byte.
    """
    with tempfile.TemporaryDirectory(dir=folder) as made:
        log, queues = _log(path), ConsumeQueues(RealDisk(made), store_folder.file_sizes(RealDisk(path), None, None)[1])
        dispatch = Dispatch(log, queues, position=log.start, verify=True)
        began = time.perf_counter()
        rebuild(dispatch, log.end, workers=workers)
        seconds = time.perf_counter() - began
        files = [file for file in Path(path, "consumequeue").rglob("*") if file.is_file()]
        same = all((Path(made) / file.relative_to(path)).read_bytes() == file.read_bytes() for file in files)
        answer(seconds, sum(queue.committed for queue in queues.all), "conforms" if same else "departs")


def build_beside(folder: str, count: int, workers: int) -> None:
    """All queues of a log, while another thread appends to it as fast as it can."""
    messages, is_built = columns(), Event()
    with tempfile.TemporaryDirectory(dir=folder) as made, Store.open(Path(made, "store"), Settings(workers=0)) as store:
        _touch(3 * count * (BODY + 110))
        for _ in range(count // BATCH):
            store.append_batch(messages)

        def go_on() -> None:
            while not is_built.is_set():
                store.append_batch(messages)

        log, queues = store.core.log, ConsumeQueues(RealDisk(Path(made, "queues")), store.core.kept.queue_file_size)
        dispatch, end, writer = Dispatch(log, queues, position=log.start), log.end, Thread(target=go_on)
        writer.start()
        began = time.perf_counter()
        rebuild(dispatch, end, workers=workers)
        seconds = time.perf_counter() - began
        is_built.set()
        writer.join()
        answer(seconds, sum(queue.committed for queue in queues.all))


def recover(path: str) -> None:
    """The scan that finds the end of a log after a crash, every checksum computed."""
    log = _log(path, recover=False)
    began = time.perf_counter()
    records = log.recover(log.start, EVER)
    answer(time.perf_counter() - began, records)


def _log(path: str, *, recover: bool = True) -> CommitLog:
    disk = RealDisk(path)
    log = CommitLog(Segments.load(disk, store_folder.LOG, store_folder.file_sizes(disk, None, None)[0]))
    kernels.scan(
        np.zeros(8, np.uint8), 0, 0, EVER, kernels.CRC_TABLES, EVER, 0
    )  # compiled, or loaded, before the clock starts
    if recover:
        log.recover(log.start, EVER)
    return log
