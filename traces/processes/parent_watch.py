"""Workers that end with their parent: an orphan would wait forever, and keep memory and streams.

The parent handles interrupts: Ctrl-C reaches a worker too, for example while it imports modules, and would print a
traceback.
"""

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PARENT_DEATH_SIGNAL = 1  # as sys/prctl.h of Linux numbers what is set

ENDING = {signal.SIGINT, signal.SIGTERM}


@contextmanager
def signals_blocked(*, spawns: bool) -> Iterator[None]:
    """Block signals that end a command, here and in workers started here until they `begin_work`.

    Python drops exceptions raised while a process forks. With `spawns`, multiprocessing starts a resource tracker with
    the first worker, which unblocks signals: so it is started before.
    """
    if spawns:
        from multiprocessing import resource_tracker  # noqa: PLC0415 - loads slowly

        resource_tracker.ensure_running()
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin_work(parent: int) -> None:
    """Prepare a worker, first of all: ignore interrupts, and end with the parent."""
    _end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def _end_with_parent(parent: int) -> None:
    """End the worker when its parent ends. Only Linux has this setting."""
    with suppress(AttributeError, OSError, TypeError):  # no such function, or no way to ask for it
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before
            os._exit(1)
