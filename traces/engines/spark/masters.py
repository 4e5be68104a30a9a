"""Starts the Spark engine for a master, after a check that the master can be reached.

`classic` is for classic sessions, `connect` for those of Spark Connect. Spark itself would wait for minutes for an
unreachable master.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gapless.traces.engines.engine import Engine, Progress
from gapless.traces.engines.reachability import reach
from gapless.traces.engines.spark import classic as spark
from gapless.traces.engines.spark import connect as spark_connect


@contextmanager
def started(
    master: str | None, partitions: int | None, progress: Progress | None, conf: Mapping[str, str] | None = None
) -> Iterator[Engine]:
    """Start the engine for that master; without one, for the active session. Raises UsageError.

    `conf`: settings of Spark.
    """
    remote, classic = spark_connect.active() is not None, _classic_is_active()
    if master is None and not remote and not classic:
        master = os.environ.get("SPARK_REMOTE")  # what pyspark itself would take
    asked = master is not None and master.startswith("sc://")
    if master is not None and (asked or not (remote or classic)):
        reach(master)
    starts: Any = spark_connect.started if asked or (remote and not (master and classic)) else spark.started
    with starts(master, partitions, progress, conf) as engine:
        yield engine


def _classic_is_active() -> bool:
    module = sys.modules.get("pyspark")
    context = getattr(module, "SparkContext", None)  # the package without a JVM has none
    return context is not None and context._active_spark_context is not None  # noqa: SLF001 - as `session` asks
