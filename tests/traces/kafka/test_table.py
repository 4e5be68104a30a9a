"""Data directories as a table of Spark: a row for each batch, the same that the tests' own reader finds."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import datasource as asks
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from gapless.traces.problems import UsageError
from gapless.traces.sources.kafka.source import SOURCE
from gapless.traces.spark.data_sources import format_of
from tests.support.command_line import ROOT
from tests.support.kafka.batches import CODECS, Batch, walk
from tests.support.kafka.recordings import recording

EXAMPLE = ROOT / "examples/kafka"
Table = format_of(SOURCE)


def read(
    path: Path, split: int, columns: dict[str, pa.DataType] | None = None, *filters: asks.Filter
) -> tuple[list[dict[str, Any]], int]:
    """The rows of a path, and in how many parts."""
    table = Table({"path": str(path), "split": str(split)})
    schema = table.schema() if columns is None else from_arrow_schema(pa.schema(columns))
    assert isinstance(schema, StructType)
    reader: Any = table.reader(schema)
    assert list(reader.pushFilters(list(filters))) == []
    parts = reader.partitions()
    return [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()], len(parts)


def expected(log: Path, one: Batch, source: str) -> dict[str, Any]:
    """The row of a batch, by the tests' own reader."""
    topic, _, partition = log.parent.name.rpartition("-")
    produced = one.producer >= 0
    return {
        "source": source, "topic": topic, "partition": int(partition), "segment": int(log.stem),
        "position": one.position, "size": one.size, "first": one.base, "last": one.last, "records": one.record_count,
        "whole": one.is_sound, "codec": CODECS[one.codec], "leader_epoch": one.leader_epoch,
        "greatest_time": one.max_time, "producer": one.producer if produced else None,
        "producer_epoch": one.epoch if produced else None,
        "sequence": one.sequence if produced and one.sequence >= 0 else None,
        "transactional": one.is_transactional, "control": one.is_control,
    }  # fmt: skip


@pytest.mark.parametrize("split", [1, 1 << 30])
@pytest.mark.parametrize("name", ["example", "3.3.2-codecs-txn"])
def test_a_row_is_a_batch(name: str, split: int) -> None:
    path = EXAMPLE / "whole" if name == "example" else recording(name) / "n1"
    rows, parts = read(path, split)
    logs = sorted(path.glob("*-*/*.log"), key=lambda log: (log.parent.name.rpartition("-")[0], log.parent.name, log))
    stated = [expected(log, one, str(path)) for log in logs for one in walk(log).batches]
    marked = [row.pop("marker") for row in rows]
    assert rows == stated
    assert {row["control"] and row["transactional"] for row, marker in zip(rows, marked, strict=True) if marker} == {
        True
    }
    assert set(marked) == {"commit", "abort", None}
    assert (parts > sum(log.stat().st_size > 0 for log in logs)) == (split == 1)


def test_other_partitions_are_not_read_and_columns_are_as_a_schema_names_them() -> None:
    asked = asks.EqualTo(("topic",), "orders"), asks.EqualTo(("partition",), 1)
    columns: dict[str, pa.DataType] = {
        "marker": pa.string(),
        "records": pa.int64(),
        "topic": pa.string(),
        "partition": pa.int64(),
    }
    rows, parts = read(EXAMPLE / "whole", 1 << 30, columns, *asked)
    assert parts == 1
    assert list(rows[0]) == list(columns)
    assert [row["records"] for row in rows] == [5, 1, 4, 1, 4, 1, 1, 3, 1, 4, 1]
    assert [row["marker"] for row in rows if row["marker"]] == ["abort"] * 4 + ["commit"]


def test_several_directories_and_one_partition_have_names_of_their_own() -> None:
    rows, _ = read(EXAMPLE, 1 << 30)
    assert {row["source"] for row in rows} == {str(EXAMPLE / "whole"), str(EXAMPLE / "damaged")}
    rows, _ = read(EXAMPLE / "whole/orders-0", 1 << 30)
    assert {(row["source"], row["topic"]) for row in rows} == {(str(EXAMPLE / "whole/orders-0"), "orders")}


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a Kafka data directory"):
        read(tmp_path, 1)
