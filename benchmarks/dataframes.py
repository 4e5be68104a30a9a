"""A DataFrame of events in random order: brought together and sorted by Spark alone, or judged as well."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks.rows import answer

LENGTH = 100  # events of a trace: a message and its entry in turn, after the first
SIZE = 340  # bytes of a message
ROWS = 250_000  # in a row group
THREADS = 2
COLUMNS: dict[str, Any] = {"trace": "queue_name", "position": "seq", "args": {"number": "num", "position": "offset"}}


def make(path: Path, events: int) -> None:
    """Write a table of so many events, as a user might have it."""
    traces = events // LENGTH
    order = np.random.default_rng(1).permutation(traces * LENGTH)
    trace, step = np.divmod(order, LENGTH)
    number, is_first, is_append = (step - 1) // 2, step == 0, step % 2 == 1

    def column(values: Any, missing: Any) -> pa.Array[Any]:
        return pa.array(np.broadcast_to(values, len(order)), pa.int64(), mask=missing)

    actions = np.where(is_first, 0, np.where(is_append, 1, 2))
    names = pa.array([f"orders/{each}" for each in range(traces)])
    table = pa.table(
        {
            "queue_name": names.take(pa.array(trace, pa.int64())),
            "seq": pa.array(step, pa.int64()),
            "action": pa.array(["open", "append", "index"]).take(pa.array(actions, pa.int64())),
            "num": column(np.where(is_first, 0, number), None),
            "start": column(0, ~is_first),
            "count": column(1, ~is_append),
            "offset": column(SIZE * number, is_first),
            "size": column(SIZE, is_first),
            "tag": column(0, is_first),
        }
    )
    unfinished = path.with_name(f".{path.name}.tmp")
    parquet.write_table(table, unfinished, row_group_size=ROWS)
    unfinished.rename(path)


@contextmanager
def _frame(path: str) -> Iterator[Any]:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - few rows need Spark

    from gapless.traces.engines.spark import classic as spark  # noqa: PLC0415 - it finds a Java

    with spark.started(f"local[{THREADS}]", None, None) as engine:
        yield SparkSession(engine.context).read.parquet(path)


def _second_time(run: Callable[[], Any]) -> tuple[float, Any]:
    """Run twice, and return the seconds and the result of the second time: a session that people work in is warm."""
    run()
    began = time.perf_counter()
    found = run()
    return time.perf_counter() - began, found


def sort(path: str) -> None:
    """Bring each trace together and sort it: what has to be done before anybody can judge."""
    with _frame(path) as frame:
        rows = frame.repartition("queue_name").sortWithinPartitions("queue_name", "seq")
        seconds, _ = _second_time(lambda: rows.write.format("noop").mode("overwrite").save())
        answer(seconds, frame.count())


def judge(path: str) -> None:
    """Judge the traces."""
    from gapless.spark import check  # noqa: PLC0415 - few rows need Spark

    def judged(frame: Any) -> Any:  # a new query each time: Spark keeps what an old one shuffled
        return check(frame, "queue", **COLUMNS).groupBy("verdict").agg({"events": "sum"}).collect()

    with _frame(path) as frame:
        seconds, ((verdict, events),) = _second_time(lambda: judged(frame))
        answer(seconds, events, verdict, events)
