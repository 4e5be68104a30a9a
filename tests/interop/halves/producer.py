"""RocketMQ's own transactional producer, in its own process, and the name server that it needs."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from types import TracebackType
from typing import Self

from tests.interop.broker import LOGBACK, OLD, START_WITHIN, BrokerFailure, free_port

SOURCE = Path(__file__).parent / "Producer.java"
SMALL = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
ANSWER_WITHIN = 30  # seconds


@dataclass(frozen=True)
class ProducerLine:
    """A line of the producer's: a half that was sent and how it decided, or a back-check and what it answered."""

    what: str  # sent, asked
    number: int
    position: int
    key: str
    where: int  # sent: the queue · asked: how often the half was put back
    decision: str
    body: bytes


@dataclass
class JavaProcess:
    """`with` starts it and kills it at the end."""

    home: Path
    jars: Path
    java: str
    process: subprocess.Popen[bytes] | None = None

    def start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Its errors go into `home/name.txt`."""
        home = self.home.absolute()
        command = [self.java, *SMALL, *OLD, f"-Duser.home={home}", f"-Drocketmq.home.dir={home}"]
        command += ["-cp", f"{self.jars.absolute()}/*", *arguments]
        with (home / f"{name}.txt").open("ab") as errors:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=home,
                start_new_session=True,
            )
        return self.process

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@dataclass
class NameServer(JavaProcess):
    """Brokers tell it which topics they have, and clients ask it. `address` is there once it serves."""

    address: str = ""

    def __enter__(self) -> Self:
        port = free_port()
        settings = self.home / "namesrv.conf"
        settings.write_text(f"listenPort={port}\nbindAddress=127.0.0.1\n")
        (self.home / "conf").mkdir(exist_ok=True)
        (self.home / "conf" / "logback_namesrv.xml").write_text(LOGBACK.format(logs=self.home.absolute() / "logs"))
        main = "org.apache.rocketmq.namesrv.NamesrvStartup"
        process = self.start("namesrv", main, "-c", str(settings.absolute()))
        assert process.stdout
        for line in process.stdout:
            if b"boot success" in line:
                self.address = f"127.0.0.1:{port}"
                return self
        self.__exit__(None, None, None)
        raise BrokerFailure("the name server did not start")


@dataclass
class Producer(JavaProcess):
    """A producer of `group` for one topic. It may be started before its broker: it waits for it.

    `asked`: all back-checks so far, in their order · `other`: what else was printed.
    """

    server: str = ""
    group: str = ""
    topic: str = ""
    asked: list[ProducerLine] = field(default_factory=list)
    other: list[str] = field(default_factory=list)
    _sent: Queue[ProducerLine] = field(default_factory=Queue)
    _ready: Queue[None] = field(default_factory=Queue)

    def __enter__(self) -> Self:
        client = f"interop{time.monotonic_ns()}"
        self.start("producer", str(SOURCE), self.server, self.group, self.topic, client)
        Thread(target=self._listen, daemon=True).start()
        return self

    def wait_until_known(self) -> None:
        """Its broker knows it from now on: it can be asked. Raises BrokerFailed."""
        try:
            self._ready.get(timeout=START_WITHIN)
        except Empty:
            words = "; ".join([*self.other[:3], *(self.home / "producer.txt").read_text().splitlines()[-2:]])
            raise BrokerFailure(f"the producer found no broker within {START_WITHIN} s {words}") from None

    def send(self, body: bytes) -> ProducerLine:
        """A half, and the decision that its body names. Raises BrokerFailed."""
        assert self.process
        assert self.process.stdin
        self.process.stdin.write(body + b"\n")
        self.process.stdin.flush()
        try:
            return self._sent.get(timeout=ANSWER_WITHIN)
        except Empty:
            raise BrokerFailure(f"the producer did not send {body.decode()} within {ANSWER_WITHIN} s") from None

    def _listen(self) -> None:
        assert self.process
        assert self.process.stdout
        for line in self.process.stdout:
            what, _, rest = line.decode(errors="replace").strip().partition(" ")
            if what == "ready":
                self._ready.put(None)
            elif what in ("sent", "asked"):
                number, position, key, where, decision, body = rest.split()
                check = ProducerLine(what, int(number), int(position), key, int(where), decision, body.encode())
                if what == "sent":
                    self._sent.put(check)
                else:
                    self.asked.append(check)
            else:
                self.other.append(rest)
