"""A standalone cluster, whose workers know nothing of gapless: it is sent to them as an archive."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gapless.traces.engines import spark
from tests.support.command_line import gapless_process
from tests.support.event_files import ODD, cut, mixed_traces, table_in, write
from tests.support.night import NIGHT
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
            assert re.search(r"gapless-[0-9a-f]{12}\.zip/gapless/traces/engines/spark_tasks\.py$", place)
        reports = []
        for how in ((), ("--engine", "spark", "--master", master)):
            verdicts = tmp_path / f"verdicts-{len(how)}"
            ran = gapless_process("check", store, events, "--verdicts", verdicts, *how)
            assert ran.returncode == 1, ran.stderr
            reports.append((re.sub(r"[\d.]+ s\b|verdicts: .*|engine.*", "", ran.stdout), table_in(verdicts)))
        assert reports[0][1] == reports[1][1]
        assert len(reports[0][1]) > 4 * len(ODD)


# Which worker it is, and where it has gapless from: as text, for workers do not know the modules of the tests.
PLACE = """[
    __import__("time").sleep(0.3) or __import__("os").environ["SPARK_EXECUTOR_DIRS"],
    __import__("gapless.traces.engines.spark_tasks", fromlist=["run"]).__file__,
]"""
