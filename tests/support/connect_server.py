"""A server of Spark Connect on loopback, in a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from gapless.traces.engines import spark_session
from tests.support.command_line import ROOT

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
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
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
        server = subprocess.Popen(command, stdout=words, stderr=words, env=environment, start_new_session=True)
        try:
            _wait(server, port, log)
            yield f"sc://127.0.0.1:{port}"
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Until somebody answers at the port. Raises TimeoutError."""
    until = time.monotonic() + STARTS
    while time.monotonic() < until and server.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"Spark Connect does not start: {log.read_text(errors='replace')[-2000:]}")
