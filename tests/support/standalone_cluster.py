"""A standalone cluster of Spark on loopback: a master and two workers, each a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from gapless.traces.engines.spark import session as spark_session
from tests.support.servers import free_port

STARTS = 120  # seconds, on a machine with much else to do
WORKERS = 2
CLASS = "org.apache.spark.deploy"


@contextmanager
def standalone_cluster(room: Path) -> Iterator[str]:
    """Start a cluster, and yield its master. Workers have a core each, and no path to gapless."""
    ports = [free_port() for _ in range(2)]
    master = f"spark://127.0.0.1:{ports[0]}"
    with ExitStack() as stack:
        home = stack.enter_context(spark_session._java())
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "SPARK_DAEMON_MEMORY": "256m"}
        environment |= {"JAVA_HOME": home} if home else {}
        at = ("--host", "127.0.0.1", "--webui-port")
        commands: list[tuple[str, ...]] = [(f"{CLASS}.master.Master", "--port", str(ports[0]), *at, str(ports[1]))]
        commands += [(f"{CLASS}.worker.Worker", "--cores", "1", "--memory", "1g", *at, "0", master)] * WORKERS
        logs = [room / f"{number}.log" for number in range(len(commands))]
        for number, command in enumerate(commands):
            words = stack.enter_context(logs[number].open("wb"))
            work = ("--work-dir", str(room / f"work-{number}")) if number else ()
            process = subprocess.Popen(
                [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), *command[:1], *work, *command[1:]],
                stdout=words, stderr=words, env=environment, cwd=room, start_new_session=True,
            )  # fmt: skip
            stack.callback(_end, process)
            if not number:
                _wait(logs[0], "I have been elected leader", 1)
        _wait(logs[0], "Registering worker", WORKERS)
        yield master


def _end(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _wait(log: Path, words: str, times: int) -> None:
    """Until the log says it so often. Raises TimeoutError."""
    until = time.monotonic() + STARTS
    while (output := log.read_text(errors="replace")).count(words) < times:
        if time.monotonic() > until:
            raise TimeoutError(f"Spark does not start: {output[-2000:]}")
        time.sleep(0.1)
