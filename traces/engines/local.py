"""The local engine: tasks run in this process, or in a pool of processes."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapless.traces.engines.engine import Answer, InProcess, Item, P, Progress
from gapless.traces.files import remote
from gapless.traces.problems import Unreadable, UsageError, shown
from gapless.traces.processes.parent_watch import begin_work, signals_blocked
from gapless.traces.processes.worker_processes import WorkerContext

ONE_PROCESS = 48 << 20  # bytes: below this, starting a pool takes longer than it saves
AHEAD = 4  # answers per process that may wait to be taken: bounds memory


@contextmanager
def started(
    master: str | None, jobs: int | None, progress: Progress | None, conf: Mapping[str, str] | None = None
) -> Iterator[Local]:
    """Start the engine of this machine. Raises UsageError if a cluster is asked for."""
    if master is not None:
        raise UsageError(f"master: {shown(master)} is a Spark cluster, and the engine is not spark")
    if conf:
        raise UsageError(f"conf: {shown(min(conf))} is a setting of Spark, and the engine is not spark")
    yield Local(jobs, progress)


@dataclass(frozen=True)
class Local:
    """Runs tasks in this process, or in a pool of `jobs` processes; without a number, chosen by input size."""

    jobs: int | None = None
    progress: Progress | None = None
    name: str = "local"
    buckets: int = 64
    handed_on: int = 1 << 62  # nothing travels far here
    near: bool = True
    sends_code: bool = False  # they share a folder

    @property
    def processors(self) -> int:
        """See `Engine`."""
        return self.jobs or os.cpu_count() or 1

    @property
    def workers(self) -> int:
        """See `Engine`."""
        return self.processors

    def look(self, reads: Sequence[Path], writes: Sequence[Path]) -> None:
        """See `Engine`: they are processes like this one."""

    def announce(self, what: str) -> None:
        """See `Engine`: it has no pages."""

    def is_alone(self, sizes: Sequence[int]) -> bool:
        """See `Engine`."""
        return self._processes(len(sizes)) < 2 or (self.jobs is None and sum(sizes) < ONE_PROCESS)

    def _processes(self, tasks: int) -> int:
        return min(self.processors, tasks)

    def located(self, path: Path) -> Path:
        """See `Engine`."""
        return path

    def each(self, task: Callable[[Item], Answer], items: Sequence[Item], sizes: Sequence[int]) -> Iterator[Answer]:
        """See `Engine`."""
        done, total = 0, sum(sizes)
        here = isinstance(task, InProcess) or self.is_alone(sizes)
        answers = map(task, items) if here else _by_pool(task, items, self._processes(len(items)))
        for answer, size in zip(answers, sizes, strict=True):
            done += size
            if self.progress:
                self.progress(done, total)
            yield answer

    def gather(
        self,
        task: Callable[[Item], tuple[Answer, Sequence[P]]],
        items: Sequence[Item],
        known: Sequence[P],
        join: Callable[[Sequence[P]], Answer],
    ) -> Iterator[Answer]:
        """See `Engine`."""
        buckets: dict[int, list[P]] = {}
        for part in known:
            buckets.setdefault(part.bucket, []).append(part)
        for item in items:
            answer, parts = task(item)
            for part in parts:
                buckets.setdefault(part.bucket, []).append(part)
            yield answer
        while buckets:
            yield join(buckets.pop(min(buckets)))


def _by_pool(task: Callable[[Item], Answer], items: Sequence[Item], processes: int) -> Iterator[Answer]:
    context = _context()
    pool = ProcessPoolExecutor(processes, context, _Worker.begin, (task, os.getpid()))
    waiting: deque[Future[Answer]] = deque()
    try:
        for item in items:
            with signals_blocked(spawns=context.get_start_method() == "spawn"):  # the first one starts them
                waiting.append(pool.submit(_Worker.run, item))
            if len(waiting) >= AHEAD * processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise Unreadable("a worker process ended unexpectedly (out of memory?); try --jobs 1") from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class _Worker:
    """A process of the pool. It gets the task, which may contain a whole client log, once at its beginning."""

    task: Callable[[Any], Any]

    @classmethod
    def begin(cls, task: Callable[[Any], Any], parent: int) -> None:
        """Receive the task."""
        begin_work(parent)
        cls.task = task

    @classmethod
    def run(cls, item: Any) -> Any:
        """Run the task on one item."""
        return cls.task(item)


def _context() -> multiprocessing.context.BaseContext:
    """Return the start method: forked workers share the kernels, but a process with threads spawns."""
    alone = len(sys._current_frames()) == 1 and not remote.spoken_to()  # noqa: SLF001 - documented: Python's threads
    return multiprocessing.get_context("fork") if alone and hasattr(os, "fork") else WorkerContext()
