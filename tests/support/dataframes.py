"""DataFrames of events, judged by Spark and as files: any session will do."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from pyarrow import parquet

from gapless import UsageError
from gapless.spark import check
from gapless.spec.catalog import SPECS
from tests.support.command_line import ROOT
from tests.support.event_rows import Row, by_trace, columns, every_kind, judged_as_files

ARGS = {name: f"args_{name}" for name in SPECS["queue"].arguments}
SCHEMA = "queue_name STRING, seq BIGINT, action STRING, num INT, start BIGINT, note STRING, at TIMESTAMP"
MISTAKES: Sequence[tuple[str, dict[str, Any]]] = (
    ("spec: there is no queu, expected aborted_index, .*did you mean queue", {"spec": "queu"}),
    ("no such profile: stric, expected .*did you mean strict", {"profile": "stric"}),
    ("no such rule: queue/no-such", {"only": ["queue/no-such"]}),
    (
        "trace: there is no column queue_nam; there are queue_name, seq, .*did you mean queue_name",
        {"trace": "queue_nam"},
    ),
    ("position: column at is timestamp, expected an integer", {"position": "at"}),
    ("position: column note is string, expected an integer", {"position": "note"}),
    ("trace: column seq is bigint, expected text", {"trace": "seq"}),
    ("args: queue has no argument numbe, expected number, .*did you mean number", {"args": {"numbe": "num"}}),
    (r"args\.number: there is no column nun; .*did you mean num", {"args": {"number": "nun"}}),
    (r"args\.number: column note is string, expected an integer", {"args": {"number": "note"}}),
    ("args: column num is int, expected a struct of integers", {"args": "num"}),
    ("args: there is no column numbers; there are", {"args": "numbers"}),
    ("outcome: column num is int, expected text", {"outcome": "num"}),
    ("saw: column num is int, expected JSON text, as to_json makes it", {"saw": "num"}),
)
"""Questions about a DataFrame of `SCHEMA`, each with the sentence that refuses it."""


def agrees_with_files(session: Any, made: tuple[list[Row], set[str]], profile: str) -> None:
    """Judge rows in a DataFrame and in a file: their verdicts must be the same."""
    rows, unreadable = made
    with TemporaryDirectory() as room:
        expected = judged_as_files(rows, unreadable, Path(room), profile)
    frame = session.createDataFrame(columns(rows))
    found = check(frame, "queue", args=ARGS, profile=profile, source="a table").collect()
    assert by_trace([row.asDict() for row in found]) == expected
    assert {(row.source, row.spec) for row in found} == {("a table", "queue")}
    for row in found:
        assert (row.story is None) == (row.verdict == "conforms")


def refuses_mistakes(session: Any) -> None:
    """Ask for what cannot be: a sentence names it, and nothing is run."""
    frame = session.createDataFrame([], SCHEMA)
    for sentence, how in MISTAKES:
        given = {"spec": "queue", "trace": "queue_name", "position": "seq"} | how
        with pytest.raises(UsageError, match=f"^{sentence}"):
            check(frame, given.pop("spec"), **given)


def fails_without_trace(session: Any) -> None:
    """Judge rows of which one has no trace: it may belong to any, so there is no verdict."""
    frame = session.createDataFrame([("T/1", 0, "open", 0, 0), (None, 1, "open", 0, 0)], SCHEMA.partition(", note")[0])
    asked = check(frame, "queue", trace="queue_name", position="seq", args={"number": "num"})
    with pytest.raises(Exception, match="a row has no trace, so no trace is known to be whole"):
        asked.limit(1).collect()


def streams_as_files(session: Any, room: Path) -> None:
    """Judge files of rows as a stream, started again on the way: in the end, verdicts are those of one file."""
    rows, unreadable = every_kind()
    (room / "whole").mkdir()
    expected = judged_as_files(rows, unreadable, room / "whole", "strict")
    order = sorted(rows, key=lambda row: -1 if row["position"] is None else row["position"])
    last: dict[str, Row] = {}

    def run(profile: str = "strict") -> None:
        frame = session.readStream.schema(schema).option("maxFilesPerTrigger", 2).parquet(str(room / "in"))
        found = check(frame, "queue", args=ARGS, profile=profile).writeStream.outputMode("update")
        found = found.foreachBatch(lambda batch, _: last.update({row.trace: row.asDict() for row in batch.collect()}))
        found.option("checkpointLocation", str(room / "checkpoint")).trigger(
            availableNow=True
        ).start().awaitTermination()

    session.conf.set("spark.sql.shuffle.partitions", "2")
    (room / "in").mkdir()
    schema = session.createDataFrame(columns(rows)).schema
    for number in range(5):
        part = room / f"{number}.parquet"
        parquet.write_table(columns(order[10 * number : 10 * number + 10]), part)
        os.utime(part, (1_700_000_000 + number, 1_700_000_000 + number))
        part.rename(room / "in" / part.name)
        if number == 2:
            run()
    run()
    assert by_trace(list(last.values())) == expected
    parquet.write_table(columns(order[:3]), room / "in" / "late.parquet")
    with pytest.raises(Exception, match="the checkpoint was made with another spec, profile or version of gapless"):
        run("rocketmq")
    run()
    late = {row["trace"] for row in order[:3]}
    assert {last[trace]["verdict"] for trace in late} == {"unreadable"}, "what they would have changed is not known"


def example_of_the_page(session: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Run the example of docs/data.md: it prints what the page shows."""
    text = (ROOT / "docs/data.md").read_text(encoding="utf-8")
    block, shown = re.search(r"```python on_spark\.py\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL).groups()  # type: ignore[union-attr]
    exec(block, {"spark": session})  # noqa: S102 - a page of ours
    assert capsys.readouterr().out.strip() == shown.strip()
