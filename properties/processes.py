"""Processes for long commands. They are spawned: Z3 and compiled kernels do not survive a fork."""

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from gapless.traces.orphans import end_with_parent


def workers(jobs: int, tasks: int | None = None) -> ProcessPoolExecutor:
    """A pool of so many new processes. `tasks`: after so many a process is replaced, and all that it remembers goes."""
    return ProcessPoolExecutor(jobs, get_context("spawn"), end_with_parent, (os.getpid(),), max_tasks_per_child=tasks)
