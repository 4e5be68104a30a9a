"""Settings of a classic Spark session, by Spark's own precedence.

First what gapless was asked for, then the options of `spark-submit` and of PYSPARK_SUBMIT_ARGS, then
`spark-defaults.conf`, and ours where none of them says anything.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from gapless.traces.problems import UsageError, shown, twice

HERE = "local[*]"
SHELL = "pyspark-shell"  # stands last among the arguments for a JVM that Python starts
OURS = {
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
}
DAEMON = "spark.python.daemon.module"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java for a small session: its second compiler takes longer than it saves, and so do other collectors."""


class Conf(Protocol):
    """A SparkConf."""

    def contains(self, key: str) -> bool:
        """True if there is such a setting."""

    def get(self, key: str, default: str | None = None) -> str | None:
        """A setting, or the default."""

    def set(self, key: str, value: str) -> object:
        """Change a setting."""


def parsed(texts: Iterable[str]) -> dict[str, str]:
    """Settings of the form KEY=VALUE. Raises UsageError."""
    pairs = [text.partition("=") for text in texts]
    for text, (key, sign, _) in zip(texts, pairs, strict=True):
        if not sign or not re.fullmatch(r"spark\.\S+", key):
            raise UsageError(f"conf: {shown(text)}, expected spark.KEY=VALUE, such as spark.executor.memory=4g")
    if again := twice([key for key, _, _ in pairs]):
        raise UsageError(f"conf: {again} is given twice")
    return {key: value for key, _, value in pairs}


def asked(master: str | None, conf: Mapping[str, str] | None) -> dict[str, str]:
    """The settings that gapless was asked for, the master among them. Raises UsageError."""
    found = parsed([f"{key}={value}" for key, value in (conf or {}).items()])
    if master is not None and found.setdefault("spark.master", master) != master:
        raise UsageError(f"conf: spark.master={shown(found['spark.master'])}, and master: {shown(master)}; give one")
    return found


def submit_arguments(wanted: Mapping[str, str]) -> str:
    """PYSPARK_SUBMIT_ARGS for a JVM with these settings: behind those that are there, for the last one counts."""
    words = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", SHELL))
    at = len(words) - (words[-1:] == [SHELL])
    more = [word for key, value in wanted.items() for word in ("--conf", f"{key}={value}")]
    return shlex.join([*words[:at], *more, *words[at:]])


def java_options(wanted: Mapping[str, str]) -> str:
    """Options of Java for a session on this machine of which the user has set nothing else."""
    is_ours = wanted.keys() <= {"spark.master"} and not {"PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_HOME"} & {
        *os.environ
    }
    return QUICK if is_ours and wanted.get("spark.master", HERE).startswith("local") else ""


def complete(conf: Conf) -> str:
    """Add our settings where there are no others; returns the master."""
    master = conf.get("spark.master") or HERE
    ours = {"spark.master": master, **OURS}
    if conf.get("spark.app.name", SHELL) in {SHELL, Path(sys.argv[0]).name}:  # names that spark-submit gives by itself
        conf.set("spark.app.name", "gapless")
    if re.match(r"local|spark://(localhost|127\.)", master) and "SPARK_LOCAL_IP" not in os.environ:
        ours |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    for key, value in ours.items():
        if not conf.contains(key):
            conf.set(key, value)
    if master.startswith("local"):
        paths = [path or str(Path.cwd()) for path in sys.path]
        theirs = conf.get("spark.executorEnv.PYTHONPATH")
        conf.set("spark.executorEnv.PYTHONPATH", os.pathsep.join([*paths, *([theirs] if theirs else [])]))
        if not conf.contains(DAEMON):
            conf.set(DAEMON, "gapless.spark_daemon")
    return master


def python(conf: Conf, master: str) -> str:
    """The Python of the workers: this one, unless the user sets another for other machines."""
    if master.startswith("local"):
        return sys.executable
    return conf.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON", sys.executable)
