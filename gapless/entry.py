"""The `gapless` command from its first line on: an interrupt while it loads ends it as one later does."""

import gc
import os
import signal
import sys
from typing import NoReturn

INTERRUPTED = 130  # as of a process that SIGINT ended
SELDOM = 100_000, 50, 100  # objects made, and rounds of a generation, until the next collection of cycles


def main() -> None:
    """Load the command line, and run it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # a shell lets its background jobs ignore it
        signal.signal(signal.SIGINT, _end)
    collect_seldom()
    from gapless.cli import main as run

    signal.signal(signal.SIGINT, before)
    try:
        run()
    except KeyboardInterrupt:  # before a command has begun, or behind it
        sys.exit(INTERRUPTED)


def collect_seldom() -> None:
    """Look for cycles of garbage less often: a check makes few, and of many queues this took a fifth of its time."""
    gc.set_threshold(*SELDOM)


def _end(*_: object) -> NoReturn:
    """Nothing was begun, and nothing is to be written."""
    os._exit(INTERRUPTED)
