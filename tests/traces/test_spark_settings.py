"""Settings of Spark: those asked of gapless, then of spark-submit, then of spark-defaults.conf, then ours."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from gapless import UsageError, check
from gapless.traces.engines.spark import settings as spark_settings
from tests.support.command_line import ROOT
from tests.support.night import NIGHT

EVENTS = ROOT / "examples/lease.ndjson"
READ_BACK = """
import json, sys
from gapless.traces.engines.spark import classic as spark
with spark.started(None, None, None, json.loads(sys.argv[1])) as engine:
    conf = engine.context._jsc.sc().conf()  # getConf() of Python reloads defaults
    print(json.dumps({pair._1(): pair._2() for pair in conf.getAll()}))
"""
WAYS = ("asked", "spark-submit", "PYSPARK_SUBMIT_ARGS", "spark-defaults.conf")


class PlainConf:
    """A SparkConf without a JVM."""

    def __init__(self, found: dict[str, str]) -> None:
        self.found = found

    def contains(self, key: str) -> bool:
        """See `spark_settings.Conf`."""
        return key in self.found

    def get(self, key: str, default: str | None = None) -> str | None:
        """See `spark_settings.Conf`."""
        return self.found.get(key, default)

    def set(self, key: str, value: str) -> object:
        """See `spark_settings.Conf`."""
        self.found[key] = value
        return self


def read_back(room: Path, given: dict[str, dict[str, str]]) -> dict[str, str]:
    """The settings of a session, as its JVM has them, where some are given in each way."""
    room.mkdir()
    program = room / "program.py"
    program.write_text(READ_BACK)
    defaults = [f"{key} {value}\n" for key, value in given.get("spark-defaults.conf", {}).items()]
    (room / "spark-defaults.conf").write_text("".join(defaults))
    environment = {**os.environ, "SPARK_CONF_DIR": str(room), "PYSPARK_PYTHON": sys.executable}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    arguments = [
        word for key, value in given.get("PYSPARK_SUBMIT_ARGS", {}).items() for word in ("--conf", f"{key}={value}")
    ]
    if arguments:
        environment["PYSPARK_SUBMIT_ARGS"] = shlex.join([*arguments, "pyspark-shell"])
    command = [sys.executable]
    if "spark-submit" in given:
        command = [str(Path(sys.executable).with_name("spark-submit"))]
        command += [word for key, value in given["spark-submit"].items() for word in ("--conf", f"{key}={value}")]
    done = subprocess.run(
        [*command, str(program), json.dumps(given.get("asked", {}))],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


def six(room: Path, name: str) -> dict[str, str]:
    archive = room / f"{name}.jar"
    archive.touch()
    events = room / name
    events.mkdir()
    return {
        "spark.master": "local[1]",
        "spark.app.name": name,
        "spark.executor.memory": "777m",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(events),
        "spark.hadoop.fs.s3a.endpoint": f"http://{name}",
        "spark.files": str(archive),
    }


@pytest.mark.slow
@pytest.mark.skipif(not NIGHT, reason="each starts a JVM; by day, all ways are in one session")
@pytest.mark.parametrize("way", WAYS)
def test_a_setting_reaches_the_jvm(way: str, tmp_path: Path) -> None:
    given = six(tmp_path, way.split(".", maxsplit=1)[0].replace("_", "-"))
    found = read_back(tmp_path / "conf", {way: given})
    assert {key: found[key].removeprefix("file://") for key in given} == given
    assert found["spark.ui.enabled"] == "false"


@pytest.mark.slow
@pytest.mark.skipif(not NIGHT, reason="each starts two JVMs")
@pytest.mark.parametrize("submit", ["PYSPARK_SUBMIT_ARGS", "spark-submit"])
def test_the_nearest_of_several_settings_counts(submit: str, tmp_path: Path) -> None:
    found = read_back(
        tmp_path / "conf",
        {
            "asked": {"spark.master": "local[1]", "spark.hadoop.a": "asked"},
            submit: {
                "spark.hadoop.a": "submitted",
                "spark.hadoop.b": "submitted",
                "spark.ui.showConsoleProgress": "true",
            },
            "spark-defaults.conf": {
                "spark.master": "local[7]",
                "spark.hadoop.a": "default",
                "spark.hadoop.b": "default",
                "spark.hadoop.c": "default",
                "spark.app.name": "theirs",
            },
        },
    )
    assert [found[f"spark.hadoop.{name}"] for name in "abc"] == ["asked", "submitted", "default"]
    assert (found["spark.master"], found["spark.app.name"]) == ("local[1]", "theirs")
    assert (found["spark.ui.showConsoleProgress"], found["spark.log.level"]) == ("true", "ERROR")


def test_ours_stand_where_nothing_else_does() -> None:
    conf = PlainConf({"spark.ui.enabled": "true", "spark.app.name": "pyspark-shell"})
    assert spark_settings.complete(conf) == "local[*]"
    assert (conf.get("spark.ui.enabled"), conf.get("spark.app.name")) == ("true", "gapless")
    assert conf.get("spark.driver.host") == "127.0.0.1"
    assert conf.get("spark.python.daemon.module") == "gapless.spark_daemon"
    theirs = PlainConf({"spark.python.daemon.module": "theirs.daemon"})
    spark_settings.complete(theirs)
    assert theirs.get("spark.python.daemon.module") == "theirs.daemon"
    far = PlainConf({"spark.master": "yarn", "spark.pyspark.python": "./env/bin/python"})
    assert spark_settings.complete(far) == "yarn"
    of_here = {"spark.driver.host", "spark.executorEnv.PYTHONPATH", "spark.python.daemon.module"}
    assert not of_here & far.found.keys(), "workers there start without gapless"
    assert spark_settings.python(far, "yarn") == "./env/bin/python"
    assert spark_settings.python(far, "local[2]") == sys.executable


def test_a_small_session_of_ours_starts_quickly_and_no_other_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert spark_settings.java_options({}) == spark_settings.java_options({"spark.master": "local[2]"}) != ""
    assert spark_settings.java_options({"spark.master": "yarn"}) == ""
    assert spark_settings.java_options({"spark.driver.memory": "30g"}) == ""
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    assert spark_settings.java_options({}) == ""


def test_arguments_stand_behind_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.a=1 --jars 'a b.jar' pyspark-shell")
    assert spark_settings.submit_arguments({"spark.a": "2"}) == (
        "--conf spark.a=1 --jars 'a b.jar' --conf spark.a=2 pyspark-shell"
    )
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS")
    assert spark_settings.submit_arguments({}) == "pyspark-shell"


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"conf": {"executor.memory": "4g"}}, r"conf: executor.memory=4g, expected spark\.KEY=VALUE, such as"),
        (
            {"conf": {"spark.master": "yarn"}, "master": "local[2]"},
            r"conf: spark.master=yarn, and master: local\[2\]; give",
        ),
        (
            {"conf": {"spark.a": "1"}, "engine": "local"},
            "conf: spark.a is a setting of Spark, and the engine is not spark",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(asked: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        check([EVENTS], specs=[ROOT / "examples/lease.py"], **{"engine": "spark", **asked})  # type: ignore[arg-type]


def test_a_setting_without_a_value_or_given_twice_is_refused() -> None:
    for texts, says in ((["spark.a"], "expected spark.KEY=VALUE"), (["spark.a=1", "spark.a=2"], "given twice")):
        with pytest.raises(UsageError, match=says):
            spark_settings.parsed(texts)
