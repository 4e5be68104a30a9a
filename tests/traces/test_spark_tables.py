"""Events and stores as tables of Spark: the rows that the readers give, such columns and rows as are asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import datasource as asks
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from gapless.traces.events import reading
from gapless.traces.events.event import argument
from gapless.traces.problems import Unreadable, UsageError
from gapless.traces.sources.rocketmq.source import SOURCE
from gapless.traces.spark.data_sources import GaplessEvents, format_of
from tests.support.command_line import ROOT, gapless
from tests.support.event_files import ODD, cut, mixed_traces, write
from tests.support.night import NIGHT
from tests.support.rocketmq.recordings import recording

StoreRecords = format_of(SOURCE)


def read(
    source: asks.DataSource, columns: dict[str, pa.DataType] | None = None, *filters: asks.Filter
) -> tuple[list[dict[str, Any]], int, list[asks.Filter]]:
    """The rows that a source gives, in how many parts, and the filters that are left to Spark."""
    schema = source.schema() if columns is None else from_arrow_schema(pa.schema(columns))
    assert isinstance(schema, StructType)
    reader = source.reader(schema)
    left = list(reader.pushFilters(list(filters)))
    parts = reader.partitions()
    batches: list[Any] = [batch for part in parts for batch in reader.read(part)]
    assert all(isinstance(batch, pa.RecordBatch) for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()], len(parts), left


@pytest.fixture(params=[".parquet", ".ndjson", ".ndjson.gz"])
def events(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"events{request.param}"
    write(path, mixed_traces([*range(len(ODD))] * 4, mingled=3))
    if path.suffix == ".parquet":
        cut(path, 20)
    return path


def source_of(path: Path, **options: str) -> asks.DataSource:
    return GaplessEvents({"path": str(path), "split": "1"} | options)


def test_events_are_those_that_are_read_everywhere(events: Path) -> None:
    rows, parts, _ = read(source_of(events))
    assert rows == [row for batch in reading.read(events) for row in batch.to_pylist()]
    assert parts == len(reading.stretches(events, 1))
    assert (parts > 3) == (events.suffix != ".gz")


def test_columns_are_read_as_a_schema_names_them(events: Path) -> None:
    args: Any = pa.struct([("number", pa.int64()), ("position", pa.int64())])
    rows, *_ = read(source_of(events), {"trace": pa.string(), "args": args, "outcome": pa.string()})
    assert rows == [
        {
            "trace": row["trace"],
            "args": {name: row["args"][name] for name in ("number", "position")},
            "outcome": row["outcome"],
        }
        for batch in reading.read(events)
        for row in batch.to_pylist()
    ]
    with pytest.raises(UsageError, match="there is no column colour; there are source, spec, trace, position, action"):
        read(source_of(events), {"colour": pa.string()})


def parts_of(path: Path, split: int) -> int:
    """In how many parts it would be read."""
    source = source_of(path, split=str(split))
    schema = source.schema()
    assert isinstance(schema, StructType)
    return len(source.reader(schema).partitions())


@pytest.mark.skipif(not NIGHT, reason="five seconds, for a figure: what is read is compared elsewhere")
def test_small_files_are_read_by_one_task(tmp_path: Path) -> None:
    """Spark starts a task for each part: of 300 files, each took longer to start than to read."""
    files = [tmp_path / f"{number:03d}.ndjson" for number in range(130)]
    for file in files:
        write(file, mixed_traces([0], mingled=1))
    rows, parts, _ = read(source_of(tmp_path, split=str(1 << 20)))
    assert rows == [row for file in files for batch in reading.read(file) for row in batch.to_pylist()]
    assert parts == 3, "of 64 at most: who opens a file of a far store waits for each"
    one = reading.stretches(files[0], 1 << 20)[0].bytes
    assert parts_of(tmp_path, split=one * 10) == 13
    assert parts_of(tmp_path, split=1) == sum(len(reading.stretches(file, 1)) for file in files)


def test_files_of_partitions_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    files = [tmp_path / f"date=2026-11-{day}/hour=0{hour}/part.ndjson" for day in (27, 28) for hour in (3, 4)]
    for file in files:
        file.parent.mkdir(parents=True)
        write(file, mixed_traces([0], mingled=1))
    (files[0].parent / "_SUCCESS").touch()
    rows, *_ = read(source_of(tmp_path))
    assert rows == [row for file in files for batch in reading.read(file) for row in batch.to_pylist()]
    (tmp_path / "more").mkdir()
    with pytest.raises(UsageError, match="no file of events, and no folder of such"):
        read(source_of(tmp_path))


@pytest.mark.parametrize("name", ["specs", "Split ", "header", "recursiveFileLookup"])
def test_an_option_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    """It was passed over: all events of another spec were called strange."""
    with pytest.raises(UsageError, match=f"gapless-events: there is no option {name}; there are spec, split"):
        source_of(tmp_path, **{name: "1"})
    with pytest.raises(UsageError, match=f"rocketmq-store: there is no option {name}; there are split"):
        StoreRecords({"path": str(tmp_path), name: "1"})


@pytest.mark.parametrize("more", [{"serialization.format": "1"}, {"owner": "root", "team": "orders"}])
def test_options_are_known_in_any_case_and_those_of_spark_pass(tmp_path: Path, more: dict[str, str]) -> None:
    """A table of a catalog hands on its properties, too."""
    path = tmp_path / "events.ndjson"
    write(path, mixed_traces([0], mingled=1))
    given: Any = asks.CaseInsensitiveDict({"Path": str(path), "SPLIT": "1"} | more)
    assert len(read(GaplessEvents(given))[0]) == sum(map(len, reading.read(path)))


NUMBER = pc.field("args", "number")
NOT_ONE: Any = ~(NUMBER == 1) | NUMBER.is_null()
FILTERS: list[tuple[asks.Filter, Any]] = [
    (asks.EqualTo(("trace",), "T/3"), pc.field("trace") == "T/3"),
    (asks.In(("action",), ("open", "index")), pc.field("action").isin(["open", "index"])),
    (asks.GreaterThan(("position",), 10), pc.field("position") > 10),
    (asks.LessThanOrEqual(("position",), 10), pc.field("position") <= 10),
    (asks.Not(asks.EqualTo(("action",), "append")), pc.field("action") != "append"),
    (asks.StringStartsWith(("trace",), "T/1"), pc.starts_with(pc.field("trace"), "T/1")),
    (asks.EqualTo(("args", "number"), 1), NUMBER == 1),
    (asks.Not(asks.In(("args", "number"), (1, 7))), ~NUMBER.isin([1, 7]) & NUMBER.is_valid()),
    (asks.Not(asks.EqualNullSafe(("args", "number"), 1)), NOT_ONE),
    (asks.IsNull(("saw",)), pc.field("saw").is_null()),
    (asks.Not(asks.IsNull(("args", "number"))), NUMBER.is_valid()),
]


@pytest.mark.parametrize(("asked", "meant"), FILTERS)
def test_filters_are_answered_as_arrow_has_them(asked: asks.Filter, meant: Any, tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    write(path, mixed_traces([*range(len(ODD))] * 4, mingled=1))
    cut(path, 20)
    rows, _, left = read(source_of(path), None, asked)
    every = pa.Table.from_batches(list(reading.read(path)))
    assert rows == every.filter(meant).to_pylist()
    assert 0 < len(rows) < every.num_rows
    assert left == []


def test_what_holds_nothing_that_is_asked_for_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    write(path, mixed_traces([0] * 30, mingled=1))
    cut(path, 20)
    every = read(source_of(path))[1]
    rows, parts, _ = read(source_of(path), None, asks.EqualTo(("trace",), "T/7"))
    assert 0 < parts < every / 2
    assert {row["trace"] for row in rows} == {"T/7"}
    assert read(source_of(path), None, asks.GreaterThan(("position",), 10**9))[:2] == ([], 0)


def test_filters_that_are_not_understood_are_left_to_spark(events: Path) -> None:
    strange: list[asks.Filter] = [
        asks.EqualTo(("position",), 1.5),
        asks.EqualTo(("position",), 1 << 70),
        asks.In(("trace",), ("T/1", None)),
        asks.StringContains(("position",), "1"),
        asks.EqualTo(("trace", "length"), 3),
    ]
    rows, _, left = read(source_of(events), None, *strange, asks.IsNotNull(("trace",)))
    assert left == strange
    assert rows


def test_events_that_are_none_and_paths_that_lead_to_none_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    write(path, mixed_traces([0], mingled=1))
    lines = len(path.read_text().splitlines())
    path.write_text(path.read_text() + "{}\n")
    with pytest.raises(Unreadable, match=f"line {lines + 1}: "):
        read(source_of(path))
    for wrong in (tmp_path / "nowhere", recording("lmq")):
        with pytest.raises(UsageError, match="no file of events"):
            read(source_of(wrong))
    with pytest.raises(UsageError, match="not a RocketMQ store"):
        read(StoreRecords({"path": str(tmp_path)}))
    with pytest.raises(UsageError, match="say what to read"):
        read(GaplessEvents({}))
    with pytest.raises(UsageError, match="split: none, expected"):
        read(source_of(path, split="none"))


def test_events_of_a_users_spec_are_read() -> None:
    rows, *_ = read(source_of(ROOT / "examples/lease.ndjson", spec=str(ROOT / "examples/lease.py")))
    assert {row["spec"] for row in rows} == {"lease"}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A store, and its events."""
    out = tmp_path_factory.mktemp("events") / "events.parquet"
    assert gapless("trace", recording("midlife"), "--out", out).exit_code == 0
    return recording("midlife"), out


def store_of(path: Path) -> asks.DataSource:
    return StoreRecords({"path": str(path), "split": "200000"})


def test_records_are_those_of_which_a_check_makes_events(exported: tuple[Path, Path]) -> None:
    store, out = exported
    rows, parts, _ = read(store_of(store))
    assert parts > 3
    every = pa.Table.from_batches(list(reading.read(out)))
    appended = every.filter(pc.field("action") == "append")
    (log,) = appended.filter(pc.field("spec") == "log").combine_chunks().to_batches()
    assert sorted({row["position"] for row in rows}) == argument(log, "position").to_pylist()
    (queue,) = appended.filter(pc.field("spec") == "queue").combine_chunks().to_batches()
    names = ("position", "number", "size", "tag", "count")
    columns = [queue.column("trace").to_pylist(), *(argument(queue, name).to_pylist() for name in names)]
    placed = [row for row in rows if row["topic"] is not None]
    stated = sorted((f"{row['topic']}/{row['queue']}", *(row[name] for name in names)) for row in placed)
    assert stated == sorted(zip(*columns, strict=True))
    assert {row["whole"] for row in rows} == {True}
    assert [row["position"] for row in rows] == sorted(row["position"] for row in rows)


def test_a_range_of_the_log_is_read_alone(exported: tuple[Path, Path]) -> None:
    store, _ = exported
    every, parts, _ = read(store_of(store))
    middle, topic = every[len(every) // 2]["position"], every[-1]["topic"]
    asked = asks.GreaterThanOrEqual(("position",), middle), asks.EqualTo(("topic",), topic)
    rows, fewer, left = read(store_of(store), {"position": pa.int64(), "topic": pa.string()}, *asked)
    assert (fewer < parts, left) == (True, [])
    assert rows == [
        {"position": row["position"], "topic": row["topic"]}
        for row in every
        if row["position"] >= middle and row["topic"] == topic
    ]
