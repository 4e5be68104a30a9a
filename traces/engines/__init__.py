"""Engines that run the tasks of a check: processes of this machine, or a Spark cluster. One line each."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Literal, get_args

from gapless.traces.engines.engine import Engine, Progress
from gapless.traces.problems import UsageError, shown

EngineName = Literal["auto", "local", "spark"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
MODULES = {"auto": "local", "local": "local", "spark": "spark.masters"}  # each with a function `started`


def engine(
    name: EngineName,
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> AbstractContextManager[Engine]:
    """Start the engine of that name, until the end of the block. `master`, `conf`: a Spark cluster, and its settings.

    Raises UsageError if it does not exist, or cannot be started.
    """
    if name not in MODULES:
        raise UsageError(f"no such engine: {shown(name)} ({', '.join(ENGINES)})")
    module = import_module(f"{__name__}.{MODULES[name]}")  # late: few need Spark, and not all have it
    started: AbstractContextManager[Engine] = module.started(master, jobs, progress, conf)
    return started
