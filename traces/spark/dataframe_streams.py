"""A streaming DataFrame of events in, one of verdicts out: what is known of each trace lies in Spark's checkpoint.

Traces are kept in buckets, each one state of Spark: to start a function for every trace, as `applyInPandas` does, takes
longer than to judge it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gapless.traces.judging.streaming.sorted_traces import RESULT, TraceQuestion
from gapless.traces.judging.streaming.streamed_traces import StreamedTraces, digest_of
from gapless.traces.problems import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState

BUCKETS = 256  # in which traces are kept; it must stay, or what was kept is not found
INTEGERS_FROM = 4  # the version of Spark
BUCKET, PRESENT = "bucket", "present"
STATE = "asked STRING, kept BINARY"
ORDER: Any = [("trace", "ascending"), ("position", "ascending")]
OTHERWISE = (
    "the checkpoint was made with another spec, profile or version of gapless: start the stream with a new one, which "
    "judges all rows again"
)

Frame = Any
"""A DataFrame of pandas, which has no types."""
Judging = Callable[[Any, Iterator[Frame], "GroupState"], Iterator[Frame]]


def streamed(rows: DataFrame, question: TraceQuestion, result: str) -> DataFrame:
    """Judge streaming rows of events; a row of the result for each trace that has some in a batch.

    Raises UsageError where Spark cannot.
    """
    _require_arrow(str(rows.sparkSession.version))
    texts = {name for name, kind in rows.dtypes if kind == "string"}
    numbers = [name for name in rows.columns if name not in texts]
    present = " + ".join(f"IF(`{name}` IS NULL, 0L, {1 << at}L)" for at, name in enumerate(numbers))
    columns = [
        f"pmod(xxhash64(trace), {BUCKETS}) AS {BUCKET}",
        f"{present} AS {PRESENT}",  # pandas would make floating point numbers of integers with nulls
        *(f"`{name}`" if name in texts else f"coalesce(`{name}`, 0L) AS `{name}`" for name in rows.columns),
    ]
    groups = rows.selectExpr(*columns).groupBy(BUCKET)
    judge = _judging(question, numbers, [name for name in rows.columns if name in texts])
    return groups.applyInPandasWithState(judge, result, STATE, "update", "NoTimeout")


def _require_arrow(version: str) -> None:
    """Raise UsageError if this Spark cannot have states with this Arrow: Spark 3.5 slices by floating point numbers."""
    given: Any = 0.0
    try:
        pa.nulls(1).slice(given, 1)
    except TypeError:
        if int(version.partition(".")[0]) < INTEGERS_FROM:
            raise UsageError(
                f"a streaming DataFrame needs pyarrow 23 or earlier on Spark {version}, and here is {pa.__version__}: "
                "pip install 'pyarrow<24', or judge files as a stream (gapless.spark.judged)"
            ) from None


def _judging(question: TraceQuestion, numbers: list[str], texts: list[str]) -> Judging:
    """The function of a worker, which judges the new rows of one bucket."""

    def judge(_key: Any, frames: Iterator[Frame], state: GroupState) -> Iterator[Frame]:
        asked, kept = digest_of(question), StreamedTraces(question)
        if state.exists:
            before, content = state.get
            if before != asked:
                raise UsageError(OTHERWISE)
            kept = pickle.loads(content)  # noqa: S301 - what we wrote, in the user's checkpoint
        found = kept.take(_sorted(frames, numbers, texts))
        state.update((asked, pickle.dumps(kept)))
        yield pa.Table.from_batches(found, RESULT).to_pandas(integer_object_nulls=True)

    return judge


def _sorted(frames: Iterator[Frame], numbers: list[str], texts: list[str]) -> pa.RecordBatch:
    """Combine the rows of a batch, sorted by trace and position."""
    columns: dict[str, list[Any]] = {name: [] for name in (*numbers, *texts, PRESENT)}
    for frame in frames:
        for name, parts in columns.items():
            parts.append(frame[name].to_numpy())
    whole = {name: np.concatenate(parts) for name, parts in columns.items()}
    made: dict[str, pa.Array[Any]] = {
        name: pa.array(whole[name].astype(np.int64), mask=(whole[PRESENT] >> at & 1) == 0)
        for at, name in enumerate(numbers)
    }
    made |= {name: pa.array(whole[name], pa.string(), from_pandas=True) for name in texts}
    (rows,) = pa.table(made).sort_by(ORDER).combine_chunks().to_batches()
    return rows
