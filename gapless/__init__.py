"""Checks that log-based message brokers keep their promises. `check` is the way in; `Store` is a log to embed.

The names below are imported when they are first used: a command line that only prints its help need not load the
compiler that checks are made with.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from gapless.impl.records.errors import StoreError
    from gapless.impl.store.core import Settings
    from gapless.impl.store.store import Store
    from gapless.properties.machines.contract import BrokenContract
    from gapless.properties.machines.lockstep import StepMismatch
    from gapless.properties.machines.stateful.spec_machine import Unhealthy, machine_for
    from gapless.testing.conformance import DoesNotConform, assert_conforms
    from gapless.traces.check import check
    from gapless.traces.events.recorder import Recorder
    from gapless.traces.problems import EngineFailure, UsageError
    from gapless.traces.report.values import Finding, Report

__all__ = [
    "BrokenContract",
    "DoesNotConform",
    "EngineFailure",
    "Finding",
    "Recorder",
    "Report",
    "Settings",
    "StepMismatch",
    "Store",
    "StoreError",
    "Unhealthy",
    "UsageError",
    "assert_conforms",
    "check",
    "machine_for",
]

_HOMES = {
    **dict.fromkeys(("Report", "check"), "traces.check"),  # which knows the rows that a report can have
    **dict.fromkeys(("DoesNotConform", "assert_conforms"), "testing.conformance"),
    "Recorder": "traces.events.recorder",
    **dict.fromkeys(("EngineFailure", "UsageError"), "traces.problems"),
    "BrokenContract": "properties.machines.contract",
    "StepMismatch": "properties.machines.lockstep",
    **dict.fromkeys(("Unhealthy", "machine_for"), "properties.machines.stateful.spec_machine"),
    "Finding": "traces.report.values",
    "Settings": "impl.store.core",
    "Store": "impl.store.store",
    "StoreError": "impl.records.errors",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib import metadata

        try:
            return metadata.version("gapless")
        except metadata.PackageNotFoundError:  # a source tree that is on the path and not installed
            return "unknown"
    if name not in __all__:
        raise AttributeError(f"module 'gapless' has no attribute {name!r}")
    return getattr(import_module(f"gapless.{_HOMES[name]}"), name)
