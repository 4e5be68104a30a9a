"""Processes for long commands. They are spawned: Z3 and compiled kernels do not survive a fork."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context


def workers(jobs: int) -> ProcessPoolExecutor:
    """A pool of so many new processes."""
    return ProcessPoolExecutor(jobs, get_context("spawn"))
