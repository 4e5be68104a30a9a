"""Native code is loaded by a thread of its own, before anybody relies on it.

Signals are met by the main thread alone. Ctrl-C while numba loads or compiles a kernel leaves what can never be mended
in this process: a lock that is taken, or types that are half known (both found by the black-box machine). So whoever
opens something has all of its kernels used first, elsewhere and once.
"""

from __future__ import annotations

import logging
import os
from _thread import get_ident, start_new_thread
from collections.abc import Callable
from functools import cache
from threading import Lock
from time import monotonic, sleep

LOG = logging.getLogger("gapless")
QUIET = 3.0  # seconds: what was compiled before is loaded in less
_LOADING = Lock()
"""Held by a thread that loads. Nobody forks meanwhile: the child would have half of the code, and no loader."""
_loader = 0
"""That thread."""


@cache
def _tell() -> None:
    LOG.info("compiling native code, once")


os.register_at_fork(before=_LOADING.acquire, after_in_parent=_LOADING.release, after_in_child=_LOADING.release)


class NativeCode:
    """The native code of one part of the package. `use`: calls all of it, with values of every type that it meets.

    It may make use of other parts, which then are loaded too.
    """

    def __init__(self, use: Callable[[], object]) -> None:
        self._use = use
        self.is_loaded = False
        self._is_begun = False

    def load(self) -> None:
        """Returns once all of it is in memory; at once to the thread that is loading it. Tells what takes its time."""
        if self.is_loaded:
            return
        if get_ident() == _loader:
            self._use_once()
            return
        began = monotonic()
        start_new_thread(self._load, ())
        while not self.is_loaded:
            sleep(0.002)
            if monotonic() - began > QUIET:
                _tell()

    def _load(self) -> None:
        global _loader  # noqa: PLW0603 - there is one lock, and one thread that has it
        with _LOADING:
            _loader = get_ident()
            try:
                self._use_once()
            finally:
                _loader = 0

    def _use_once(self) -> None:
        if not self._is_begun:
            self._is_begun = True
            try:
                self._use()
            finally:
                self.is_loaded = True
