"""Workers that end with whoever started them: an orphan waits for work for ever, and holds memory and streams.

Interrupts are the business of whoever started them: Ctrl-C reaches a worker too, while it loads its modules, say, and
would tell of that in a traceback.
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
    """Whatever ends a command waits meanwhile, and in workers that are started here until they `begin_work`.

    What is raised while a process forks, Python passes over. Where it `spawns`, it starts a process of its own for the
    first of them, behind which signals wait no longer: so that one is started before.
    """
    if spawns:
        from multiprocessing import resource_tracker  # noqa: PLC0415 - nobody else needs it

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
    """In a worker, first of all: leave interrupts to its parent, and end with it."""
    _end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def _end_with_parent(parent: int) -> None:
    """In a worker: end it when its parent does. Another system than Linux has no such setting."""
    with suppress(AttributeError, OSError, TypeError):  # no such function, or no way to ask for it
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before
            os._exit(1)
