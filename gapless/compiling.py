"""All native code of checks and stores, compiled at once: functions that declare their kinds, and replay loops."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

from gapless.native.signatures import entries_of, modules_of
from gapless.spec.catalog import SPECS, text_of
from gapless.traces.replay.kernels import Loop, kernel
from gapless.traces.sources.registry import sources

PACKAGES = ("gapless.impl", "gapless.traces.events", "gapless.traces.judging")


def load_all() -> int:
    """Compile everything, or load it, in several processes. Returns the number of functions."""
    modules = modules_of(*packages())
    context = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")
    with ProcessPoolExecutor(os.cpu_count(), context) as pool:
        loops = [pool.submit(load_loop, name) for name in sorted(SPECS, key=_size)]
        others = [pool.submit(load_entries, name) for name in modules]
        return sum(job.result() for job in [*loops, *others])


def packages() -> list[str]:
    """The packages that have such functions: those of stores, of traces, and of each source."""
    return [*PACKAGES, *sorted({type(source).__module__.rpartition(".")[0] for source in sources()})]


def load_loop(spec: str) -> int:
    """Compile the replay loop of a spec, or load it. Returns the number of functions: one, or none."""
    loop = kernel(spec).loop
    return loop.load() if isinstance(loop, Loop) else 0


def load_entries(module: str) -> int:
    """Compile the functions of a module, or load them. Returns their number."""
    entries = list(entries_of(module))
    for entry in entries:
        entry.code.load()
    return len(entries)


def _size(spec: str) -> int:
    """The longest specs first: their loops take the longest."""
    return -len(text_of(SPECS[spec].module))
