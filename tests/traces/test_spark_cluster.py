"""A standalone cluster, whose workers know nothing of gapless: it is sent to them as an archive."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import venv
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from benchmarks import bigtraces
from gapless import check
from gapless.traces.engines.spark import classic as spark
from gapless.traces.engines.spark import probe as spark_probe
from tests.support.command_line import ROOT, gapless_process
from tests.support.event_files import ODD, cut, mixed_traces, table_in, write
from tests.support.event_rows import by_trace, columns, every_kind, judged_as_files
from tests.support.night import NIGHT
from tests.support.packed_environment import packed_environment
from tests.support.rocketmq.recordings import copy_of
from tests.support.standalone_cluster import standalone_cluster

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.slow,
    pytest.mark.skipif(not NIGHT, reason="a cluster takes long to begin"),
]


def test_a_cluster_of_two_workers_says_what_this_machine_says(tmp_path: Path) -> None:
    store, events = copy_of("5.5.0 1", tmp_path, client=True), tmp_path / "events.parquet"
    write(events, mixed_traces([*range(len(ODD))] * 4, mingled=1000))
    cut(events, 45)
    (tmp_path / "cluster").mkdir()
    with standalone_cluster(tmp_path / "cluster") as master:
        with spark.started(master, None, None) as engine:
            answers = list(engine.each(partial(eval, PLACE), [dict[str, Any]() for _ in range(8)], [1] * 8))
        assert len({worker for worker, _ in answers}) == 2, "both have something to do"
        for _, place in answers:
            assert re.search(r"gapless-[0-9a-f]{12}\.zip/gapless/traces/engines/spark/tasks\.py$", place)
        reports = []
        for how in ((), ("--engine", "spark", "--master", master)):
            verdicts = tmp_path / f"verdicts-{len(how)}"
            ran = gapless_process("check", store, events, "--verdicts", verdicts, *how)
            assert ran.returncode == 1, ran.stderr
            reports.append((re.sub(r"[\d.]+ s\b|verdicts: .*|engine.*", "", ran.stdout), table_in(verdicts)))
        assert reports[0][1] == reports[1][1]
        assert len(reports[0][1]) > 4 * len(ODD)
        ran = gapless_process(
            "check", events, "--engine", "spark", "--master", master, "--conf", "spark.driver.maxResultSize=10m"
        )
        assert (ran.returncode, "spark engine" in ran.stdout) == (1, True), ran.stderr
        _a_session_of_the_user_is_sent_gapless(master, events)
        _workers_with_an_empty_cache_compile_nothing(master, tmp_path)
        _a_dataframe_of_the_users_session_is_judged(master, tmp_path)
        _what_bare_workers_lack_is_named(master, events, tmp_path)
        _an_environment_that_is_sent_is_all_that_bare_workers_need(master, events, tmp_path)


def _a_session_of_the_user_is_sent_gapless(master: str, events: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SESSION, master, str(events)],
        capture_output=True, text=True, check=False, cwd=ROOT, env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    verdict, *loaded = done.stdout.split()
    assert verdict == "departs"
    known = {"gapless", "py4j", "pyspark", *spark_probe.NEEDED, *sys.stdlib_module_names, *COME_WITH_THEM}
    assert not {name for name in loaded if not name.startswith(("_", "__editable__"))} - known


def _workers_with_an_empty_cache_compile_nothing(master: str, room: Path) -> None:
    """They are sent what is compiled here; and could compile it themselves, from the archive."""
    many, cold = room / "many.parquet", room / "cold"
    bigtraces.make(many, 150_000)
    with spark.started(master, None, None, {"spark.executorEnv.GAPLESS_CACHE": str(cold)}) as engine:
        assert check([many], engine="spark", split=1 << 20).verdict == "conforms"
        assert [*engine.each(partial(eval, COMPILED), [dict[str, Any]() for _ in range(8)], [1] * 8)] == [0] * 8
        assert [*cold.glob("*.o")]
    for file in cold.iterdir():
        file.unlink()
    with spark.started(master, None, None, {"spark.executorEnv.GAPLESS_CACHE": str(cold)}) as engine:
        engine.sends_code = False
        list(engine.each(partial(eval, COMPILES), [dict[str, Any]()] * 2, [1] * 2))
        assert [*cold.glob("*.o")]


COMPILED = "__import__('gapless.native.objects.object_code', fromlist=['x']).COMPILATIONS.count"
COMPILES = "__import__('gapless.traces.judging.columns', fromlist=['x'])._hash.compiled.code.load()"


def _a_dataframe_of_the_users_session_is_judged(master: str, room: Path) -> None:
    """The query runs on workers that get gapless if they lack it."""
    rows, unreadable = every_kind()
    (room / "frame").mkdir()
    parquet.write_table(columns(rows), room / "frame.parquet")
    expected = judged_as_files(rows, unreadable, room / "frame", "strict")
    done = subprocess.run(
        [sys.executable, "-c", FRAME, master, str(room / "frame.parquet")],
        capture_output=True, text=True, check=False, cwd=ROOT, env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert by_trace(json.loads(done.stdout)) == expected


def _what_bare_workers_lack_is_named(master: str, events: Path, room: Path) -> None:
    venv.create(room / "bare")
    python = str(room / "bare" / "bin" / "python")
    ran = gapless_process("check", events, "--engine", "spark", "--master", master, PYSPARK_PYTHON=python)
    assert (ran.returncode, ran.stdout) == (4, "")
    lacks = "immutables, llvmlite, markupsafe, numpy, pyarrow, pydantic, rich"
    assert ran.stderr.splitlines()[-1] == (
        f"gapless: Spark's workers lack something: {socket.gethostname()}: {python} has no {lacks}: install gapless "
        "there, or send an environment; nothing was judged"
    )


def _an_environment_that_is_sent_is_all_that_bare_workers_need(master: str, events: Path, room: Path) -> None:
    """Both commands of traces/README.md are run."""
    packed = packed_environment(room)
    here = _without_engine(gapless_process("check", events).stdout)
    check = ("check", events, "--engine", "spark")
    sent = ("--master", master, "--conf", f"spark.archives={packed}#env")
    ran = gapless_process(*check, *sent, PYSPARK_PYTHON="./env/bin/python")
    assert (ran.returncode, _without_engine(ran.stdout)) == (1, here), ran.stderr
    submit = [Path(sys.executable).with_name("spark-submit"), "--master", master, "--archives", f"{packed}#env"]
    pythons = {"PYSPARK_PYTHON": "./env/bin/python", "PYSPARK_DRIVER_PYTHON": sys.executable}
    done = subprocess.run(
        [*map(str, (*submit, ROOT / "gapless/__main__.py", *check))], capture_output=True, text=True, check=False,
        cwd=ROOT, env={**os.environ, **pythons, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert here in _without_engine(done.stdout), "the launcher writes standard error there, too"
    ran = gapless_process(*check, "--master", master, PYSPARK_PYTHON="./env/bin/python")
    assert ran.returncode == 4
    assert "there is no Python at ./env/bin/python: name one by PYSPARK_PYTHON, or send an environment" in ran.stderr


def _without_engine(report: str) -> str:
    return re.sub(r" in [\d.]+ s\b.*", "", report)


SESSION = """
import sys
from functools import partial
from pyspark import SparkConf, SparkContext
from gapless import check
context = SparkContext(conf=SparkConf().setMaster(sys.argv[1]).setAppName("a notebook").set("spark.log.level", "ERROR"))
print(check([sys.argv[2]], engine="spark", split=5000).verdict)
loaded = partial(eval, "{name.partition('.')[0] for name in __import__('sys').modules}", {})
print(*context.parallelize([{}], 1).map(loaded).first())
context.stop()
"""
FRAME = """
import json, sys
from pyspark.sql import SparkSession
from gapless.spark import check
from gapless.spec.catalog import SPECS
spark = SparkSession.builder.master(sys.argv[1]).config("spark.log.level", "ERROR").getOrCreate()
args = {name: f"args_{name}" for name in SPECS["queue"].arguments}
print(json.dumps([row.asDict() for row in check(spark.read.parquet(sys.argv[2]), "queue", args=args).collect()]))
spark.stop()
"""
LOADED_IF_THERE = {"cython_runtime", "dateutil", "pandas", "pytz"}  # by pyarrow
COME_WITH_THEM = LOADED_IF_THERE | {"annotated_types", "org", "pydantic_core", "typing_extensions", "typing_inspection"}

# Which worker it is, and where it has gapless from: as text, for workers do not know the modules of the tests.
PLACE = """[
    __import__("time").sleep(0.3) or __import__("os").environ["SPARK_EXECUTOR_DIRS"],
    __import__("gapless.traces.engines.spark.tasks", fromlist=["run"]).__file__,
]"""
