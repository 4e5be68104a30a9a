"""Processes for long commands. They are spawned: Z3 and compiled kernels do not survive a fork."""

import os
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import active_children, get_context
from types import TracebackType
from typing import Any

from gapless.traces.processes.parent_watch import begin_work, signals_blocked


class _Pool(ProcessPoolExecutor):
    """A pool that begins no work after an error, and finishes none after an interrupt."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        with signals_blocked(spawns=True):  # the first one starts the processes
            return super().submit(fn, *args, **named)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> bool | None:
        if kind is not None:
            self.shutdown(wait=False, cancel_futures=True)
        if kind is not None and not issubclass(kind, Exception):
            for child in active_children():
                child.kill()
        return super().__exit__(kind, error, where)


def workers(jobs: int, tasks: int | None = None) -> ProcessPoolExecutor:
    """A pool of so many new processes. `tasks`: after so many a process is replaced, and all that it remembers goes."""
    return _Pool(jobs, get_context("spawn"), begin_work, (os.getpid(),), max_tasks_per_child=tasks)
