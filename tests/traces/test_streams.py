"""A stream of events has the verdicts of one check, for any cut, and after any interruption."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from gapless import UsageError, check
from gapless.traces.engines.local import Local
from gapless.traces.engines.spark import classic as spark
from gapless.traces.events import schema
from gapless.traces.events.event import Origin
from gapless.traces.events.schema import Event
from gapless.traces.options import Options
from gapless.traces.problems import Unreadable
from gapless.traces.spark import stream
from gapless.traces.spark.stream import DONE, KEPT, TraceStates, judge_batch, verdicts
from tests.support.event_files import (
    LOG,
    ODD,
    UnplacedEvent,
    append,
    in_log,
    index,
    mixed_traces,
    opened,
    record,
    table_in,
)
from tests.support.night import NIGHT

Rows = list[dict[str, Any]]


def every_kind() -> list[Event]:
    """Traces of every kind, three at a time, with one of the log among them."""
    events: list[UnplacedEvent] = mixed_traces([*range(len(ODD))] * 3, mingled=3)
    for at, one in enumerate(LOG):
        events.insert(5 * at, one)
    named: dict[str, Any] = {"trace": "behind a departure"}  # where everything else would be allowed
    events += [opened(**named), append(0, 0, **named), index(0, 9, **named), index(0, 0, **named)]
    return [one(at) for at, one in enumerate(events)]


def at_once(events: Sequence[Event], room: Path, **how: Any) -> Rows:
    """Return the verdict rows of one check."""
    path = room / "whole.parquet"
    schema.write_events(path, events)
    check([path], verdicts=room / "verdicts", **how)
    return without_source(table_in(room / "verdicts"))


def without_source(rows: Rows) -> Rows:
    found = [{name: value for name, value in row.items() if name != "source"} for row in rows]
    return sorted(found, key=lambda row: (row["spec"], row["trace"]))


def files_of(events: Sequence[Event], room: Path, cuts: Sequence[int]) -> list[Path]:
    """The events in several files, one behind the other, each written a second later."""
    room.mkdir(exist_ok=True)
    paths = []
    for number, (low, high) in enumerate(zip([0, *cuts], [*cuts, len(events)], strict=True)):
        path = room / f"{number:04d}{('.ndjson', '.parquet', '.ndjson.gz')[number % 3]}"
        schema.write_events(path, events[low:high])
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
        paths.append(path)
    return paths


def judge(kept: TraceStates, batches: Sequence[Sequence[Path]], first: int = 0, **options: Any) -> list[Rows]:
    """Judge the batches, and return the rows of each."""
    asked = Options(**{"profile": ""} | options)
    return [judge_batch(Local(1), kept, first + n, paths, asked).to_pylist() for n, paths in enumerate(batches)]


DAYS = [(4, "strict"), (25, "rocketmq")]
NIGHTS = [(1, "strict"), (1, "rocketmq"), (4, "rocketmq"), (25, "strict")]


@pytest.mark.parametrize(("files", "profile"), DAYS + NIGHTS * NIGHT)
def test_online_is_offline(files: int, profile: str, tmp_path: Path) -> None:
    events = every_kind()
    expected = at_once(events, tmp_path, profile=profile)
    assert {row["verdict"] for row in expected} == {"conforms", "departs", "inconclusive"}
    random = Random(files)
    cuts = sorted(random.sample(range(1, len(events)), files - 1))
    paths = files_of(events, tmp_path / "in", cuts)
    ends = sorted(random.sample(range(1, files), files // 3))
    batches = [paths[low:high] for low, high in zip([0, *ends], [*ends, files], strict=True)]
    kept = TraceStates(tmp_path / KEPT, "in")
    changed = judge(kept, batches, profile=profile, split=1)
    assert without_source(verdicts(tmp_path).to_pylist()) == expected
    last = {(row["spec"], row["trace"]): row for rows in changed for row in rows}
    assert without_source(list(last.values())) == expected, "the last row of a trace has its verdict"


def test_a_batch_that_is_run_again_says_the_same(tmp_path: Path) -> None:
    """After a crash, some results were saved already, or all of them."""
    events = every_kind()
    paths = files_of(events, tmp_path / "in", [40, 80])
    kept = TraceStates(tmp_path / KEPT, "in")
    first, second = judge(kept, [paths[:1], paths[1:2]])
    assert judge(kept, [paths[1:2]], 1) == [second]
    before = verdicts(tmp_path)
    with pytest.raises(RuntimeError, match="a crash"):
        judge_batch(CrashingEngine(1), kept, 2, paths[2:], Options(profile=""))
    assert len(list(kept.folder.glob("*-000000000002.kept"))) == CrashingEngine.bucket
    assert verdicts(tmp_path) == before, "a batch counts when it is whole"
    judge(kept, [paths[2:]], 2)
    assert without_source(verdicts(tmp_path).to_pylist()) == at_once(events, tmp_path, profile="strict")
    assert first != second


class CrashingEngine(Local):
    """An engine that ends in the middle of a batch."""

    bucket = 5

    def gather(self, *what: Any) -> Iterator[Any]:
        """Some buckets, and no more."""
        joined = 0
        for answer in super().gather(*what):
            joined += bool(answer)
            yield answer
            if joined == self.bucket:
                raise RuntimeError("a crash")


def test_what_is_kept_does_not_grow_with_the_events(tmp_path: Path) -> None:
    kept = TraceStates(tmp_path / KEPT, "in")
    sizes = []
    for batch in range(6):
        first = [in_log("open", 0, 1 << 40)] if not batch else []
        first += [record(100 * n) for n in range(100 * batch, 100 * batch + 100)]
        events = [one(1000 * batch + at) for at, one in enumerate(first)]
        path = tmp_path / f"{batch}.ndjson"
        schema.write_events(path, events)
        (rows,) = judge(kept, [[path]], batch)
        assert [(row["verdict"], row["events"]) for row in rows] == [("conforms", 101 + 100 * batch)]
        sizes.append(sum(file.stat().st_size for file in kept.folder.iterdir()))
        assert len(list(kept.folder.glob("*.kept"))) <= 2
    assert max(sizes[2:]) < 1.1 * min(sizes[2:])


def test_events_out_of_order_are_unreadable_across_files_too(tmp_path: Path) -> None:
    schema.write_events(tmp_path / "0.ndjson", [opened()(0), append(0, 0)(5)])
    schema.write_events(tmp_path / "1.ndjson", [index(0, 0)(4)])
    kept = TraceStates(tmp_path / KEPT, "in")
    judge(kept, [[tmp_path / "0.ndjson"]])
    with pytest.raises(Unreadable, match="position 4 of TopicTest/3 is lower than the one before: expected"):
        judge(kept, [[tmp_path / "1.ndjson"]], 1)
    assert verdicts(tmp_path).column("events").to_pylist() == [2]


def test_what_another_version_kept_is_named(tmp_path: Path) -> None:
    schema.write_events(tmp_path / "0.ndjson", [opened()(0)])
    kept = TraceStates(tmp_path / KEPT, "in")
    judge(kept, [[tmp_path / "0.ndjson"]])
    done = kept.folder / DONE
    done.write_text(done.read_text().replace('"form": 2', '"form": 1'))
    with pytest.raises(UsageError, match="kept by another version of gapless"):
        verdicts(tmp_path)
    with pytest.raises(UsageError, match="start the stream with a new checkpoint"):
        judge(kept, [[tmp_path / "0.ndjson"]], 1)


def test_one_profile_judges_a_stream(tmp_path: Path) -> None:
    for number, profile in enumerate(["rocketmq", "strict"]):
        origin = Origin(profile=profile)
        schema.write_events(tmp_path / f"{number}.ndjson", [opened(trace=f"T/{number}")(0)], origin=origin)
    kept = TraceStates(tmp_path / KEPT, "in")
    judge(kept, [[tmp_path / "0.ndjson"]])
    with pytest.raises(Unreadable, match="is to be judged by strict, and earlier files by rocketmq"):
        judge(kept, [[tmp_path / "1.ndjson"]], 1)
    judge(kept, [[tmp_path / "1.ndjson"]], 1, profile="rocketmq")
    assert verdicts(tmp_path).num_rows == 2


def test_before_the_first_batch_there_is_no_verdict(tmp_path: Path) -> None:
    assert verdicts(tmp_path).num_rows == 0


# -- by Spark ------------------------------------------------------------------------------------------------------


@pytest.mark.xdist_group("spark")
@pytest.mark.skipif(not NIGHT, reason="Spark takes long to begin; the tests above judge the same batches without it")
def test_spark_streams_files_and_continues_from_its_checkpoint(tmp_path: Path) -> None:
    from pyspark.errors import StreamingQueryException  # noqa: PLC0415 - few tests need Spark
    from pyspark.sql import SparkSession  # noqa: PLC0415

    events = every_kind()
    expected = at_once(events, tmp_path, profile="strict")
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    progress: list[tuple[int, int]] = []

    def tells(batch: int, rows: pa.Table) -> None:
        progress.append((batch, rows.num_rows))
        if len(progress) == 2:
            raise RuntimeError("a crash behind the second batch")

    with spark.started("local[2]", 4, None) as engine:
        session = SparkSession(engine.context)

        def run() -> None:
            query = stream.judged(session, source, checkpoint, files=2, tells=tells).trigger(availableNow=True).start()
            query.awaitTermination()

        files_of(events[:60], source, [10, 20, 30, 45])
        (source / "notes.txt").write_text("no file of events")
        (source / "other").mkdir()
        (source / "other" / "part.ndjson").write_text("{}\n")
        with pytest.raises(StreamingQueryException, match="a crash behind the second batch"):
            run()
        run()
        for number, path in enumerate(files_of(events[60:], tmp_path / "more", [20]), 10):
            os.utime(path, (1_800_000_000 + number, 1_800_000_000 + number))
            partition = source / "date=2026-11-28" / f"hour={number}"
            partition.mkdir(parents=True)
            path.rename(partition / f"{number}{''.join(path.suffixes)}")
            (partition / "_temporary").mkdir()
            (partition / "_temporary" / "part.ndjson").write_text("{}\n")
        run()
        assert without_source(verdicts(checkpoint).to_pylist()) == expected
        assert [batch for batch, _ in progress] == [0, 1, 1, 2, 3, 4]
        assert progress[1] == progress[2], "the repeated batch had the same results"
        run()
        assert len(progress) == 6
        (source / "99.ndjson").write_text("{}\n")
        with pytest.raises(StreamingQueryException, match=r"99\.ndjson"):
            run()
        with pytest.raises(UsageError, match="no such profile"):
            stream.judged(session, source, checkpoint, profile="no-such")
