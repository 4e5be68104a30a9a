"""Checks that log-based message brokers keep their promises. `check` is the way in.

The names below are imported when they are first used: a command line that only prints its help need not load the
compiler that checks are made with.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gapless.traces.check import UsageError, check
    from gapless.traces.verdicts import Finding, Report

__all__ = ["Finding", "Report", "UsageError", "check"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'gapless' has no attribute {name!r}")
    room = "check" if name in ("UsageError", "check") else "verdicts"
    return getattr(import_module(f"gapless.traces.{room}"), name)
