"""Profiles of Hypothesis: HYPOTHESIS_PROFILE names one of those below."""

import ctypes
import fcntl
import gc
import itertools
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings

from gapless.native import Native

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in background jobs: commands would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

Native.few = -1  # what is tested is what judges large stores; that small ones are judged alike has a test of its own

settings.register_profile("quick", max_examples=20, deadline=None)
# The same cases on every machine, every time.
settings.register_profile("ci", max_examples=24, derandomize=True, deadline=None)
settings.register_profile("night", max_examples=5_000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort tests that must run in one process to the front, so that no worker waits for them."""
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """One worker goes first if nothing is compiled yet: the others would compile the same at the same time."""
    if sys.pycache_prefix is None or sys.dont_write_bytecode or "PYTEST_XDIST_WORKER" not in os.environ:
        return (yield)
    root, kept = Path(__file__).parent, Path(sys.pycache_prefix)
    is_cold = not (kept / root.relative_to("/") / "traces").exists()
    with (kept / "collected-first").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB if is_cold else fcntl.LOCK_SH)
        except BlockingIOError:
            fcntl.flock(file, fcntl.LOCK_SH)
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Between tests alone, and by the thread that runs them: what Z3 made must not be given back by another.

    Python collects cycles in whichever thread comes by. Stores that a test left open have threads, and while one of
    these gives a term back Z3 may be at work.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        if gc.get_count()[0] > COLLECTED:
            gc.collect()
            gc.freeze()  # what is left stays, as a rule; looking at it each time took a sixth of the time of all tests
            if next(TRIMS):
                with suppress(AttributeError):  # another C library keeps less
                    ctypes.CDLL(None).malloc_trim(0)


@pytest.fixture
def interrupts() -> Iterator[None]:
    """For tests that raise KeyboardInterrupt anywhere: what Python itself leaves open then is closed behind them."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


COLLECTED = 200_000  # new objects, after which there is something to collect
TRIMS = itertools.cycle([*[False] * 19, True])
"""After which collections the C library gives back what is free: glibc kept half of a worker's memory, in pieces."""
