"""The costs of queries of events on Spark, by the way in which they are read: `python -m benchmarks.tables`.

Seconds are those of all processors, of this process, its JVM and its workers together; the least of some runs in one
session, as other programs take none of them.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from benchmarks import bigtraces
from gapless.spark import register
from gapless.traces.engines.spark import classic as spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TRACES = 500_000
RUNS = 3
QUERIES: dict[str, Callable[[DataFrame], object]] = {
    "count()": lambda events: events.count(),
    "where trace = …, count()": lambda events: events.where("trace = 'orders/00400000'").count(),
    "where action = …, count()": lambda events: events.where("action = 'append'").count(),
}
SCHEMA = "trace STRING, action STRING"


def main() -> None:
    """Measure all queries, and print a row of seconds for each."""
    path = Path(tempfile.gettempdir(), "gapless-benchmarks", f"traces-{TRACES}.parquet")
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        bigtraces.make(path, TRACES)
    with spark.started("local[2]", None, None):
        session = SparkSession.builder.getOrCreate()
        register(session)
        events = session.read.format("gapless-events")
        ways = {
            "parquet": session.read.parquet(str(path)),
            SCHEMA: events.schema(SCHEMA).load(str(path)),
            "all columns": session.read.format("gapless-events").load(str(path)),
        }
        sys.stdout.write(f"{'':28}{''.join(f'{name:>32}' for name in ways)}\n")
        for name, query in QUERIES.items():
            seconds = (f"{min(_taken(query, table) for _ in range(RUNS)):32.1f}" for table in ways.values())
            sys.stdout.write(f"{name:28}{''.join(seconds)}\n")


def _taken(query: Callable[[DataFrame], object], table: DataFrame) -> float:
    """Processor seconds of one run."""
    before = _seconds()
    query(table)
    return _seconds() - before


def _seconds() -> float:
    """Processor seconds of this process and all below it, those that have ended included."""
    parents, ticks = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        parents[int(folder.name)], ticks[int(folder.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    family, more = set[int](), {os.getpid()}
    while more:
        family |= more
        more = {child for child, parent in parents.items() if parent in family} - family
    return sum(ticks[member] for member in family) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
