"""Workers that end with whoever started them: an orphan waits for work for ever, and holds memory and streams."""

import ctypes
import os
import signal
from contextlib import suppress

PARENT_DEATH_SIGNAL = 1  # as sys/prctl.h of Linux numbers what is set


def end_with_parent(parent: int) -> None:
    """In a worker: end it when its parent does. Another system than Linux has no such setting."""
    with suppress(AttributeError, OSError, TypeError):  # no such function, or no way to ask for it
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before
            os._exit(1)
