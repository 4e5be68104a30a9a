"""The process from which Spark forks workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from gapless.spark_daemon import ARCHIVE, NEEDED, prefer_folder

FORKS = """
import json, sys, types
sys.modules["pyspark.daemon"] = stands_in = types.ModuleType("pyspark.daemon")
stands_in.manager = lambda: print(json.dumps([[*sys.modules], sys.modules["pyspark"].__file__]))
from gapless.spark_daemon import main
main()
"""


def test_all_is_imported_before_the_first_fork_and_pyspark_from_its_folder() -> None:
    archive = Path(pyspark.__file__).parent / "python" / "lib" / ARCHIVE
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(archive), *filter(None, sys.path)])}
    ran = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=True, env=environment)
    loaded, place = json.loads(ran.stdout)
    assert {*NEEDED, "pyarrow", "numpy", "gapless.traces.judging.judge"} <= {*loaded}
    assert "pandas" not in loaded
    assert Path(place).resolve() == Path(pyspark.__file__).resolve()


def test_an_archive_of_another_spark_is_not_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be of another version, which the JVM speaks."""
    paths = [str(tmp_path / ARCHIVE), *sys.path]
    monkeypatch.setattr(sys, "path", paths)
    prefer_folder()
    assert sys.path == paths
