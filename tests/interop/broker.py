"""One broker in a process of its own, on loopback, over one store directory."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.interop.remoting import Client

START_WITHIN = 90  # seconds
STOP_WITHIN = 90  # seconds; a broker flushes, and waits for its own services, which takes it about ten
JVM = ("-Xms256m", "-Xmx512m", "-XX:MaxDirectMemorySize=512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

OLD = [
    f"--add-{how}=java.base/{package}=ALL-UNNAMED"
    for how in ("opens", "exports")
    for package in ("java.nio", "sun.nio.ch", "java.lang", "jdk.internal.ref")
]
"""What brokers before 5.0 need of Java 17."""
LOGBACK = """<configuration>
  <appender name="file" class="ch.qos.logback.core.FileAppender">
    <file>{logs}/broker.log</file><encoder><pattern>%d %p %t - %m%n</pattern></encoder>
  </appender>
  <root level="info"><appender-ref ref="file"/></root>
</configuration>
"""
"""Without `conf/logback_broker.xml` they do not start; later ones do not look at it."""

LOG_FILE = 1 << 20  # bytes of a commit-log file
OF_THIS_MACHINE = ("storePathRootDir", "listenPort")  # settings
QUEUE_FILE = 20_000  # bytes of a consume-queue file: a thousand entries


class BrokerFailure(Exception):  # noqa: N818 - it says what happened
    """The broker did not start, did not stop, or ended by itself; the message says which, and what it logged."""


@dataclass
class Broker:
    """`with Broker(…) as broker:` starts it and kills it at the end, however that comes; `stop` is the orderly way.

    The store is `home/store`. Settings go into `home/broker.conf`, where a check finds them; what the broker logs
    into `home/logs`. `jvm`: options of the Java machine.
    """

    home: Path
    jars: Path
    java: str
    port: int
    settings: dict[str, str | int] = field(default_factory=dict)
    jvm: tuple[str, ...] = JVM
    process: subprocess.Popen[bytes] | None = None

    @property
    def store(self) -> Path:
        """The folder of its files."""
        return self.home / "store"

    def __enter__(self) -> Self:
        home = self.home.absolute()
        settings = "".join(f"{name}={value}\n" for name, value in (self._settings() | self.settings).items())
        (home / "broker.conf").write_text(settings)
        (home / "conf").mkdir(exist_ok=True)
        (home / "conf" / "logback_broker.xml").write_text(LOGBACK.format(logs=home / "logs"))
        command = [self.java, *self.jvm, *OLD, f"-Duser.home={home}", f"-Drocketmq.home.dir={home}"]
        command += ["-cp", f"{self.jars.absolute()}/*", "org.apache.rocketmq.broker.BrokerStartup"]
        command += ["-c", str(home / "broker.conf")]
        with (home / "output.txt").open("wb") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, cwd=home, start_new_session=True
            )
        try:
            self._wait_until_it_serves()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def stop(self) -> None:
        """Ask it to stop, and wait until it has: the store is then as after any orderly stop."""
        assert self.process
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_WITHIN)
        except subprocess.TimeoutExpired:
            raise self._failed(f"did not stop within {STOP_WITHIN} s") from None

    def client(self) -> Client:
        """A new connection. Raises `OSError`."""
        return Client(self.port)

    def complaints(self) -> list[str]:
        """List its warnings, from the oldest log file to the newest line."""
        logs = sorted((self.home / "logs").rglob("*.log"), key=lambda file: file.stat().st_mtime)
        lines = (line for log in logs for line in log.read_text(errors="replace").splitlines())
        return [line for line in lines if re.match(r"\S+ \S+ (WARN|ERROR) ", line)]

    def _settings(self) -> dict[str, str | int]:
        store = self.store.absolute()
        return {
            "brokerClusterName": "interop",
            "brokerName": "interop",
            "brokerId": 0,
            "brokerIP1": "127.0.0.1",
            "brokerIP2": "127.0.0.1",
            "bindAddress": "127.0.0.1",
            "listenPort": self.port,
            "storePathRootDir": str(store),
            "storePathCommitLog": str(store / "commitlog"),
            "mappedFileSizeCommitLog": LOG_FILE,
            "mappedFileSizeConsumeQueue": QUEUE_FILE,
            "maxHashSlotNum": 10_000,
            "maxIndexNum": 40_000,
            "timerWheelEnable": "false",
            "diskMaxUsedSpaceRatio": 99,  # a full disk is not what is tried here
            "diskSpaceWarningLevelRatio": 99,
            "diskSpaceCleanForciblyRatio": 99,
        }

    def _wait_until_it_serves(self) -> None:
        """It listens before it has started, and may yet fail; when it has, it says so."""
        assert self.process
        until = time.monotonic() + START_WITHIN
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise self._failed(f"ended with {self.process.returncode} while it started")
            if b"boot success" in (self.home / "output.txt").read_bytes():
                return
            time.sleep(0.1)
        raise self._failed(f"did not start within {START_WITHIN} s")

    def _failed(self, how: str) -> BrokerFailure:
        output = (self.home / "output.txt").read_text(errors="replace").splitlines()
        thrown = [line for line in output if re.match(r"(Exception in|Caused by|[\w.]+(Exception|Error))\b", line)]
        errors = [line for line in self.complaints() if " ERROR " in line]
        return BrokerFailure("\n".join([f"the broker over {self.store} {how}", *errors[-5:], *thrown[-5:]]))

    def kill(self) -> None:
        """Without a word: the whole session that it leads, so that nothing of it stays behind."""
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def portable_settings(home: Path) -> str:
    """The settings of a broker without paths of this machine, as a check finds them next to a store."""
    store = str((home / "store").absolute())
    lines = (home / "broker.conf").read_text().splitlines()
    return "".join(
        f"{name}={value.replace(store + '/', '')}\n"
        for name, value in (line.split("=", 1) for line in lines)
        if name not in OF_THIS_MACHINE and (name, value) != ("storePathCommitLog", f"{store}/commitlog")
    )


def free_port() -> int:
    """A port P such that P, P − 2 (for producers in haste) and P + 1 (for replicas) can be bound now."""
    while True:
        with socket.socket() as any_port:
            any_port.bind(("127.0.0.1", 0))
            port = int(any_port.getsockname()[1])
        try:
            for near in (port - 2, port, port + 1):
                with socket.socket() as tried:
                    tried.bind(("", near))
        except OSError:
            continue
        return port
