"""Recorded events of dispatch, checked here and by what people would write instead, on the same files.

`python` is an afternoon's work: a dictionary of queues, lines by orjson. `DuckDB` is one query with window functions,
and so are `polars` and `Spark SQL`. All ask less than the spec does: that numbers are given in order, that a worker
writes what it took, once, and that the commit position neither passes a gap nor goes back. `reading` judges nothing: it
is the limit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.rows import answer
from gapless.spec.catalog import SPECS
from gapless.traces.events import schema

SUFFIXES = (".ndjson", ".parquet")
QUEUES = 16
GROUP = 64  # messages of a commit, and of a flush
STEPS = 3 * GROUP + 2  # of a group: scan, take and write each message, commit, flush
AT_ONCE = 40  # groups of a row group, in each queue
COLUMNS = ["trace", "position", "action", "args"]


def make(path: Path, events: int) -> int:
    """Write about so many events, in the form that the name asks for. Returns how many."""
    return schema.write(path, _batches(_groups(events)))


def count(events: int) -> int:
    """Return how many events `make` writes for so many."""
    return QUEUES * (1 + _groups(events) * STEPS)


def _groups(events: int) -> int:
    return max(1, events // (QUEUES * STEPS))


def _batches(groups: int) -> Iterator[pa.RecordBatch]:
    """The opening of every queue, then group after group of all queues."""
    traces = [f"orders/{queue}" for queue in range(QUEUES)]
    spec = SPECS["dispatch"]

    def batch(trace: np.ndarray, position: np.ndarray, action: np.ndarray, args: np.ndarray) -> pa.RecordBatch:
        return schema.from_columns(
            "dispatch", source="benchmark", traces=traces, trace=trace, position=position, action=action, args=args
        )

    def arguments(count: int, values: dict[str, np.ndarray]) -> np.ndarray:
        args = np.zeros((len(spec.arguments), count), np.int64)
        for name, value in values.items():
            args[spec.arguments.index(name)] = value
        return args

    code = spec.codes
    every = np.arange(QUEUES)
    yield batch(every, np.zeros(QUEUES, np.int64), np.full(QUEUES, code["open"], np.int8), arguments(QUEUES, {}))
    steps = [code[name] for _ in range(GROUP) for name in ("scan", "take", "write")] + [code["commit"], code["flush"]]
    number = np.append(np.repeat(np.arange(GROUP), 3), [0, 0])
    to = np.append(np.zeros(3 * GROUP, np.int64), [GROUP, GROUP])
    for low in range(0, groups, AT_ONCE):  # the queues take turns, a group each
        group = np.repeat(np.arange(low, min(low + AT_ONCE, groups)), QUEUES)
        begins = np.repeat(group, STEPS) * GROUP
        turns = len(group)
        ends = np.tile(to, turns)
        values = {
            "number": np.where(ends == 0, np.tile(number, turns) + begins, 0),
            "to": np.where(ends > 0, ends + begins, 0),
        }
        yield batch(
            np.repeat(np.tile(every, turns // QUEUES), STEPS),
            (1 + np.repeat(group, STEPS) * STEPS) + np.tile(np.arange(STEPS), turns),
            np.tile(np.array(steps, np.int8), turns),
            arguments(turns * STEPS, values),
        )


# -- what people would use instead ---------------------------------------------------------------------------------


def python(path: str) -> None:
    """Line by line."""
    import orjson  # noqa: PLC0415 - a peer, which may be missing

    began, events, wrong = time.perf_counter(), -1, 0  # the first line is the header
    scanned: dict[str, int] = {}
    taken: dict[str, set[int]] = {}
    written: dict[str, set[int]] = {}
    committed: dict[str, int] = {}
    with Path(path).open("rb") as lines:
        for line in lines:
            events += 1
            event = orjson.loads(line)
            action = event.get("action")
            if action is None:
                continue
            queue, args = event["trace"], event.get("args", {})
            if action == "scan":
                wrong += args["number"] != scanned[queue]
                scanned[queue] += 1
            elif action == "take":
                wrong += not committed[queue] <= args["number"] < scanned[queue]
                taken[queue].add(args["number"])
            elif action == "write":
                wrong += args["number"] not in taken[queue]
                taken[queue].discard(args["number"])
                written[queue].add(args["number"])
            elif action == "commit":
                at = committed[queue]
                while at in written[queue]:
                    written[queue].discard(at)
                    at += 1
                wrong += at != args["to"] or at <= committed[queue]
                committed[queue] = at
            elif action == "flush":
                wrong += args["to"] > committed[queue]
            elif action == "open":
                scanned[queue] = committed[queue] = args["number"]
                taken[queue], written[queue] = set(), set()
    answer(time.perf_counter() - began, events, "departs" if wrong else "conforms")


QUERY = """
with facts as (select {columns} from {events} where spec = 'dispatch'),
seen as (
    select *,
        lag(number) over (partition by trace, action order by position) as before,
        lag(until) over (partition by trace, action order by position) as until_before,
        sum((action = 'write')::int) over so_far as written,
        max(case when action = 'commit' then until end) over so_far as committed,
        lag(action) over (partition by trace, number order by position) as done
    from facts
    window so_far as (partition by trace order by position rows unbounded preceding)
)
select count(*), count(*) filter (where
    action = 'scan' and number <> coalesce(before + 1, 0)
    or action = 'take' and done not in ('scan', 'open')
    or action = 'write' and done <> 'take'
    or action = 'commit' and (until > written or until <= coalesce(until_before, 0))
    or action = 'flush' and until > committed
) from seen
"""
READ = {
    ".ndjson": (
        "read_json({path}, format='newline_delimited', maximum_object_size=1048576, columns={{source: 'VARCHAR', "
        "spec: 'VARCHAR', trace: 'VARCHAR', position: 'BIGINT', action: 'VARCHAR', args: 'STRUCT(number BIGINT, \"to\" "
        "BIGINT)'}})"
    ),
    ".parquet": "read_parquet({path})",
}
QUIET = "set enable_progress_bar = false"  # on a busy machine it would print one
NEEDED = "trace, position, action, args.number as number, args['to'] as until"


def duckdb(path: str, threads: int) -> None:
    """One query."""
    import duckdb as db  # noqa: PLC0415 - a peer, which may be missing

    connection = db.connect(config={"threads": threads})
    connection.execute(QUIET)
    events = READ[Path(path).suffix].format(path=repr(path))
    began = time.perf_counter()
    (found,) = connection.sql(QUERY.format(columns=NEEDED, events=events)).fetchall()
    seconds = time.perf_counter() - began
    answer(seconds, found[0], "departs" if found[1] else "conforms")


def polars(path: str) -> None:
    """The same query in expressions, on one thread."""
    os.environ["POLARS_MAX_THREADS"] = "1"  # which it looks at once
    import polars as pl  # noqa: PLC0415 - a peer, which may be missing

    began = time.perf_counter()
    args = pl.Struct({"number": pl.Int64, "to": pl.Int64})
    kinds: Any = {"spec": pl.String, "trace": pl.String, "action": pl.String, "args": args}
    events = pl.scan_parquet(path) if path.endswith(".parquet") else pl.scan_ndjson(path, schema=kinds)
    number, until = pl.col("args").struct.field("number"), pl.col("args").struct.field("to")
    facts = events.filter(pl.col("spec") == "dispatch").select("trace", "action", number=number, until=until)
    action, number, until = pl.col("action"), pl.col("number"), pl.col("until")
    before = number.shift().over("trace", "action")
    until_before = until.shift().over("trace", "action")
    written = (action == "write").cast(pl.Int64).cum_sum().over("trace")
    committed = pl.when(action == "commit").then(until).cum_max().forward_fill().over("trace")
    done = action.shift().over("trace", "number")
    wrong = (
        ((action == "scan") & (number != (before + 1).fill_null(0)))
        | ((action == "take") & ~done.is_in(["scan", "open"]))
        | ((action == "write") & (done != "take"))
        | ((action == "commit") & ((until > written) | (until <= until_before.fill_null(0))))
        | ((action == "flush") & (until > committed))
    )
    found = facts.select(pl.len().alias("events"), wrong.sum().alias("wrong")).collect()
    answer(time.perf_counter() - began, found["events"][0], "departs" if found["wrong"][0] else "conforms")


def spark_sql(path: str, threads: int) -> None:
    """The query of DuckDB, word for word, after the start of a session."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - a peer, which may be missing

    from gapless.traces.engines.spark import classic as spark  # noqa: PLC0415 - it finds a Java

    with spark.started(f"local[{threads}]", None, None) as engine:
        session = SparkSession(engine.context)
        session.range(1).count()
        began = time.perf_counter()
        form = "parquet" if path.endswith(".parquet") else "json"
        ((events, wrong),) = session.sql(QUERY.format(columns=NEEDED, events=f"{form}.`{path}`")).collect()
        answer(time.perf_counter() - began, events, "departs" if wrong else "conforms")


def reading(path: str) -> None:
    """A library reads the same columns, on one core."""
    if path.endswith(".parquet"):
        from pyarrow import parquet  # noqa: PLC0415 - not for the others

        began = time.perf_counter()
        events = sum(
            batch.num_rows for batch in parquet.ParquetFile(path).iter_batches(columns=COLUMNS, use_threads=False)
        )
        answer(time.perf_counter() - began, events)
        return
    import duckdb as db  # noqa: PLC0415 - as above

    connection = db.connect(config={"threads": 1})
    connection.execute(QUIET)
    lines = READ[".ndjson"].format(path=repr(path))
    began = time.perf_counter()
    (found,) = connection.sql(
        f"select count(*) filter (spec = 'dispatch'), max(trace), max(position), max(action), max(args.number), "  # noqa: S608
        f"max(args['to']) from {lines}"
    ).fetchall()
    seconds = time.perf_counter() - began
    answer(seconds, found[0])


class Peer(NamedTuple):
    """A peer: its package, its function, and the arguments after the path of a file of its form."""

    name: str
    package: str
    judge: Callable[..., None]
    arguments: tuple[int, ...]
    suffix: str


PEERS = (
    Peer("an afternoon's Python", "orjson", python, (), ".ndjson"),
    Peer("DuckDB, one thread", "duckdb", duckdb, (1,), ".ndjson"),
    Peer("DuckDB, one thread", "duckdb", duckdb, (1,), ".parquet"),
    Peer("DuckDB, two threads", "duckdb", duckdb, (2,), ".parquet"),
    Peer("polars, one thread", "polars", polars, (), ".ndjson"),
    Peer("polars, one thread", "polars", polars, (), ".parquet"),
    Peer("Spark SQL, local[2]", "pyspark", spark_sql, (2,), ".parquet"),
    Peer("reading alone, DuckDB", "duckdb", reading, (), ".ndjson"),
    Peer("reading alone, pyarrow", "pyarrow", reading, (), ".parquet"),
)
THERE = tuple(peer for peer in PEERS if find_spec(peer.package) is not None)
"""Those whose packages are here: `pip install duckdb orjson`."""
