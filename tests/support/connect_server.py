"""A server of Spark Connect on loopback, in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from gapless.traces.engines.spark import session as spark_session
from tests.support.command_line import ROOT
from tests.support.servers import free_port, is_answering

STARTS = 120  # seconds, on a machine with much else to do
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"  # a short life is not worth compiling much for
SETTINGS = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.codegen.wholeStage": "false",
    "spark.ui.enabled": "false",
}


@contextmanager
def connect_server(log: Path) -> Iterator[str]:
    """Its master, until the end. Workers run this Python, and find what lies here."""
    port = free_port()
    settings = SETTINGS | {"spark.connect.grpc.binding.port": str(port)}
    command = [
        *(str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[2]"),
        *("--driver-java-options", QUICK, "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *(word for name, value in settings.items() for word in ("--conf", f"{name}={value}")),
        "spark-internal",
    ]
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *(path for path in sys.path if path)]),
    }
    with spark_session._java() as home, log.open("wb") as words:
        if home:
            environment["JAVA_HOME"] = home
        server = subprocess.Popen(
            command, stdout=words, stderr=words, env=environment, cwd=log.parent, start_new_session=True
        )
        try:
            if not is_answering(server, port, STARTS, every=0.1):
                raise TimeoutError(f"Spark Connect does not start: {log.read_text(errors='replace')[-2000:]}")
            yield f"sc://127.0.0.1:{port}"
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
