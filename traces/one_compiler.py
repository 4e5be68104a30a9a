"""One process compiles what several need, and the others wait for what it keeps.

Checks that begin together with an empty cache would make the same object code each, and hinder one another. Nobody
depends on the wait: a lock goes with the process that holds it, and whoever has waited for long, or finds that nothing
can be locked there, compiles as if alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PATIENCE = 120.0  # seconds: many times what the longest takes
ASKED_EVERY = 0.02  # seconds


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """A block in which no other process makes the file at `path`, as far as that can be had."""
    lock = path.with_suffix(".lock")
    try:
        held = os.open(lock, os.O_CREAT | os.O_RDWR, 0o666)
    except OSError:  # a folder that cannot be written to: nobody keeps anything there
        yield
        return
    try:
        _lock(held)
        yield
    finally:
        with suppress(OSError):  # who waits with this file still open finds what was kept, and who comes later, too
            lock.unlink()
        os.close(held)


def _lock(held: int) -> None:
    """Wait until the lock is ours, and no longer than our patience lasts."""
    try:
        import fcntl  # noqa: PLC0415 - where files are locked otherwise, each compiles
    except ImportError:
        return
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(ASKED_EVERY)
        except OSError:  # a file system without locks
            return
        else:
            return
