"""Spark Connect and this machine say the same of everything; an interrupt ends a check, and no session of the user."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql.connect.session import SparkSession

import gapless
from gapless import EngineFailure, UsageError, check
from gapless.spark import register
from gapless.spec.catalog import SPECS, text_of
from gapless.traces.engines import EngineName
from gapless.traces.engines.spark import connect as spark_connect
from gapless.traces.engines.spark import probe as spark_probe
from gapless.traces.engines.spark import workers as spark_workers
from gapless.traces.engines.spark.archive import archive
from gapless.traces.engines.spark.connect import SparkConnect
from gapless.traces.events import reading, schema
from gapless.traces.problems import Unreadable
from gapless.traces.sources.event_files import file
from tests.support import dataframes, worker_lacks
from tests.support.connect_server import connect_server
from tests.support.event_files import ODD, append, cut, index, mixed_traces, opened, table_in, write
from tests.support.event_rows import every_kind, traces
from tests.support.night import NIGHT
from tests.support.rocketmq.recordings import copy_of, recording

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.slow]

SMALL = 20_000  # bytes: a store of the tests has some splits, and a file of events a few


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("connect") / "server.log") as running:
        yield running


@pytest.fixture(scope="module")
def session(master: str) -> Iterator[SparkSession]:
    """A session of the user's own, which no check stops."""
    running = SparkSession.builder.remote(master).create()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def engine(session: SparkSession) -> Iterator[SparkConnect]:
    with spark_connect.started(None, 4, None) as running:
        assert running.session is session
        yield running


def agree(
    paths: Sequence[Path], room: Path, split: int = SMALL, **how: Any
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Check with both engines, which must agree except in time, and return the table of every trace."""
    results = []
    engines: tuple[EngineName, ...] = ("local", "spark")
    for engine in engines:
        folder = room / "verdicts"
        report = check(paths, engine=engine, verdicts=folder, split=split, **how)
        assert report.engine == engine
        results.append((report.model_dump(exclude={"engine", "seconds"}), table_in(folder)))
        shutil.rmtree(folder)
    assert results[0] == results[1]
    return results[0]


@pytest.mark.usefixtures("engine")
def test_both_engines_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Event files, an unreadable one, and at night a store with promises; in one check."""
    monkeypatch.setattr(file, "SHUFFLE", 0)
    store = copy_of("5.5.0 1", tmp_path, client=True)
    odd, damaged = tmp_path / "odd.parquet", tmp_path / "damaged.ndjson"
    write(odd, mixed_traces([*range(len(ODD))] * 2, mingled=1000))
    cut(odd, 45)
    good = mixed_traces([0] * 4, mingled=2)
    schema.write_events(damaged, [*(make_event(at) for at, make_event in enumerate(good)), good[0](0)])
    stores = [store] if NIGHT else []  # whose kernels take half a minute to compile for what Spark hands over
    report, table = agree([*stores, odd, damaged], tmp_path, 40_000 if NIGHT else 200_000, jobs=4)
    verdicts = [source["verdict"] for source in report["sources"]]
    assert verdicts == [*(["conforms"] * len(stores)), "departs", "unreadable"]
    assert "position 0 of T/0 is lower" in report["sources"][-1]["reasons"][0]
    assert {row["verdict"] for row in table} >= {"conforms", "departs"}
    if stores:
        assert report["clients"]
        assert {"log", "queue", "transaction", "checkpoint", "op_batch"} <= {row["spec"] for row in table}
        assert "inconclusive" in {row["verdict"] for row in table}


@pytest.mark.usefixtures("engine")
@pytest.mark.skipif(not NIGHT, reason="the test above has some of each")
@pytest.mark.parametrize("store", ["lab/ghosts", "lab/made_anew", "midlife", "unclean"])
def test_both_engines_say_the_same_of_recordings(store: str, tmp_path: Path) -> None:
    report, table = agree([recording(store)], tmp_path, 250_000)
    assert report["verdict"] == ("departs" if store == "lab/ghosts" else "conforms")
    assert len(table) == report["counts"]["traces"]


@pytest.mark.usefixtures("engine")
@pytest.mark.skipif(not NIGHT, reason="the first test shuffles, too")
def test_a_trace_longer_than_all_stretches_is_shuffled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events that are too many to be shipped at once are read again if they are known to be shared."""
    monkeypatch.setattr(SparkConnect, "handed_on", 3)
    monkeypatch.setattr(file, "SHUFFLE", 0)
    path = tmp_path / "events.parquet"
    write(path, [opened(), *(step for n in range(60) for step in (append(n, 340 * n), index(n, 340 * n)))])
    cut(path, 30)
    report, table = agree([path], tmp_path, 1, jobs=2)
    assert (report["verdict"], report["counts"]["events"], len(table)) == ("conforms", 121, 1)


def test_an_interrupt_ends_a_check_and_not_the_session(session: SparkSession, engine: SparkConnect) -> None:
    progress: list[tuple[int, int]] = []

    def interrupting(done: int, total: int) -> None:
        progress.append((done, total))
        if 0 < done < total:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        report = check([recording("midlife")], engine="spark", jobs=1, split=200_000, progress=interrupting)
    finally:
        signal.signal(signal.SIGINT, before)
    assert progress == sorted(progress)
    assert (report.verdict, report.exit_code) == ("inconclusive", 130)
    assert re.match(r"interrupted after [\d,]+ of [\d,]+ bytes", report.sources[0].reasons[0])
    assert session.range(3).count() == 3
    assert list(engine.each(_divide, [1, 2, 3], [1, 1, 1])) == [60, 30, 20]
    assert session.interruptAll() == [], "nothing is left under way"


def test_answers_come_in_order_and_what_cannot_be_read_is_one(engine: SparkConnect) -> None:
    assert list(engine.each(_divide, [1, 2, 3, 4, 5] * 3, [1] * 15)) == [60, 30, 20, 15, 12] * 3
    found = engine.each(_divide, [1, 2, 7], [1, 1, 1])
    assert [next(found), next(found)] == [60, 30]
    with pytest.raises(Unreadable, match=r"^no seventh$"):
        next(found)
    with pytest.raises(EngineFailure, match="Spark gave up: ZeroDivisionError: "):
        list(engine.each(_divide, [1, 0], [1, 1]))


@pytest.mark.skipif(not NIGHT, reason="by day, an error in a worker stands for it")
def test_a_worker_that_dies_makes_no_verdict(engine: SparkConnect) -> None:
    with pytest.raises(EngineFailure, match=r"Spark gave up: .*(exited unexpectedly|crashed)"):
        list(engine.each(_die, [1, 2], [1, 1]))


@pytest.mark.skipif(not NIGHT, reason="by day, test_spark_tables reads them without Spark")
def test_tables_are_read(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    write(path, mixed_traces([0] * 20, mingled=1))
    cut(path, 20)
    register(session)  # type: ignore[arg-type]  # the stubs know classic sessions
    events = session.read.format("gapless-events").schema("trace STRING, position BIGINT").option("split", "1")
    found = events.load(str(path)).where("trace = 'T/7' AND position + 0 >= 0").toArrow()
    assert found.to_pylist() == [
        {"trace": row["trace"], "position": row["position"]}
        for batch in reading.read(path)
        for row in batch.to_pylist()
        if row["trace"] == "T/7"
    ]
    with pytest.raises(PySparkException, match="there is no column colour; there are source, spec, trace"):
        session.read.format("gapless-events").schema("colour STRING").load(str(path)).toArrow()


def test_a_dataframe_has_the_verdicts_of_a_file(session: SparkSession) -> None:
    dataframes.agrees_with_files(session, every_kind(), "strict")


@pytest.mark.skipif(not NIGHT, reason="the test above has some of each")
@settings(max_examples=50)
@given(made=traces(), profile=st.sampled_from(["strict", "rocketmq"]))
def test_dataframes_have_the_verdicts_of_files(
    session: SparkSession, made: tuple[list[dict[str, Any]], set[str]], profile: str
) -> None:
    dataframes.agrees_with_files(session, made, profile)


def test_a_dataframe_without_what_is_asked_for_is_refused(session: SparkSession) -> None:
    dataframes.refuses_mistakes(session)
    if NIGHT:
        dataframes.fails_without_trace(session)


def test_a_master_next_to_a_session_is_refused(session: SparkSession) -> None:
    with pytest.raises(UsageError, match=r"a session of Spark Connect on 127.0.0.1 is active; stop it, or leave local"):
        check([recording("lmq")], engine="spark", master="local[2]")
    assert SparkSession.getActiveSession() is session


def test_what_workers_lack_is_known_before_any_work(
    engine: SparkConnect, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(spark_probe, "NEEDED", ("pyarrow", "no_such_package"))
    worker_lacks.are_named(engine, tmp_path, tmp_path)


def test_workers_of_another_python_are_named(engine: SparkConnect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.sql.connect.udf.sys", SimpleNamespace(version_info=(3, 6)))
    here = "{}.{}".format(*sys.version_info)
    lack = f"Spark's workers lack something: {socket.gethostname()}: its Python is {here}, and 3.6 is needed, as here"
    with pytest.raises(EngineFailure, match=re.escape(lack)):
        engine.look([], [])


@pytest.mark.skipif(not NIGHT, reason="workers of a session of its own start slowly")
def test_the_package_is_sent_to_workers_with_another_version(
    master: str, session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_workers, "_is_ours", lambda state: str(state["gapless"]).endswith(".zip"))
    with spark_connect.started(master, 1, None) as engine:
        assert engine.session is not session
        (place,) = engine.each(_place, [0], [5 << 20])
        assert re.search(r"gapless-[0-9a-f]{12}\.zip/gapless/traces/engines/spark/tasks\.py$", place)
    assert session.range(3).count() == 3


def test_the_archive_holds_the_package_and_is_the_same_each_time(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    first, again = archive(tmp_path), archive(tmp_path / "again")
    assert (first.name, first.read_bytes()) == (again.name, again.read_bytes())
    names = set(ZipFile(first).namelist())
    package = Path(gapless.__file__).parent
    assert {"gapless/__init__.py", "gapless/spec/language.py", "gapless/traces/engines/spark/archive.py"} <= names
    assert all((package.parent / name).is_file() for name in names)


def test_specs_are_read_out_of_an_archive(tmp_path: Path) -> None:
    """Kernels are made of their text."""
    script = """if True:
        import sys
        sys.path.insert(0, sys.argv[1])
        from gapless.spec import catalog
        assert catalog.__file__.startswith(sys.argv[1])
        print(len(catalog.text_of(catalog.SPECS["queue"].module)))
    """
    command = [sys.executable, "-c", script, str(archive(tmp_path))]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert int(ran.stdout) == len(text_of(SPECS["queue"].module))


# -- what workers do -----------------------------------------------------------------------------------------------


def _divide(by: int) -> int:
    if by == 7:
        raise Unreadable("no seventh")
    return 60 // by


def _die(_: int) -> int:
    os._exit(3)


def _place(_: int) -> str:
    return str(sys.modules["gapless.traces.engines.spark.tasks"].__file__)
