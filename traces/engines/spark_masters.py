"""Starts the Spark engine for a master, after a check that the master can be reached.

`spark` is for classic sessions, `spark_connect` for those of Spark Connect. Spark itself would wait for minutes for an
unreachable master.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from gapless.traces.engines import spark, spark_connect
from gapless.traces.engines.engine import Engine, Progress
from gapless.traces.problems import UsageError, shown
from gapless.traces.timeouts import answer_within

WAITS = 5.0  # seconds for the name lookup and answer of a machine, before it counts as unreachable
PORTS = {"spark": 7077, "sc": 15002}  # where none is named


@contextmanager
def started(master: str | None, partitions: int | None, progress: Progress | None) -> Iterator[Engine]:
    """Start the engine for that master; without one, for the active session. Raises UsageError."""
    remote, classic = spark_connect.active() is not None, _classic_is_active()
    if master is None and not remote and not classic:
        master = os.environ.get("SPARK_REMOTE")  # what pyspark itself would take
    asked = master is not None and master.startswith("sc://")
    if master is not None and (asked or not (remote or classic)):
        reach(master)
    starts: Any = spark_connect.started if asked or (remote and not (master and classic)) else spark.started
    with starts(master, partitions, progress) as engine:
        yield engine


def _classic_is_active() -> bool:
    module = sys.modules.get("pyspark")
    context = getattr(module, "SparkContext", None)  # the package without a JVM has none
    return context is not None and context._active_spark_context is not None  # noqa: SLF001 - as `spark_session` asks


def reach(master: str) -> None:
    """Check that a master on the network can be reached, or one of several. Raises UsageError."""
    match = re.match(r"(spark|sc)://([^/;]+)", master)
    if not match:
        return
    places = [_place(place, PORTS[match[1]]) for place in match[2].split(",")]
    try:
        why = answer_within(partial(_silence, places), WAITS)  # to look a name up may take long, too
    except TimeoutError:
        why = "timed out"
    if why:
        raise UsageError(f"no server answers at {shown(master)}: {shown(why)}")


def _silence(places: Sequence[tuple[str, int]]) -> str:
    """Return why the last of the places cannot be reached; empty if one of them can."""
    why = ""
    for place in places:
        try:
            with socket.create_connection(place, timeout=WAITS):
                return ""
        except OSError as error:
            why = error.strerror or str(error)
        except (UnicodeError, OverflowError) as error:  # no name of a machine, no number of a port
            why = str(error)
    return why


def _place(text: str, port: int) -> tuple[str, int]:
    """Parse a machine and its port: `host:port`, `[address]:port`, or without the port."""
    match = re.fullmatch(r"\[?(.+?)\]?(?::(\d+))?", text)
    return (match[1], int(match[2] or port)) if match else (text, port)
