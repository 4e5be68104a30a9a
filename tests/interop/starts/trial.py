"""A broker booted on a damaged copy of a base store, and the class of its start."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

from tests.interop.broker import Broker, BrokerFailure, free_port
from tests.interop.remoting import Refused
from tests.interop.starts import damage
from tests.interop.starts.bases import BASES, WITH_WHEEL
from tests.interop.starts.cells import LOSES, REFUSES, REPAIRS, STARTS, Cell, Outcome
from tests.interop.starts.complaints import complaints
from tests.interop.starts.observation import Seen, differences, observe
from tests.interop.starts.remedies import DamagedStore, Remedy
from tests.support.rocketmq.stores import Queue

JVM = (
    "-Xms128m",
    "-Xmx384m",
    "-XX:MaxDirectMemorySize=256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
)
LEAST, MOST, STABLE = 2.5, 8, 4  # seconds for which a broker is looked at: what is overdue is delivered meanwhile
UNASKED = {"config/consumerFilter.json": "CG_sql", "config/transactionMetrics": "payments"}
"""Tables that no client can ask for, and a word that they have."""
GIVEN_UP = b"shutdown abnormally, and keep abort file"
KEYS = [("orders", "k100"), ("orders", "k420"), ("payments", "k5"), ("payments", "a3")]
QUEUES: list[Queue] = [("orders", 0), ("orders", 1), ("payments", 0), ("RMQ_SYS_TRANS_HALF_TOPIC", 0)]
QUEUES += [("RMQ_SYS_TRANS_OP_HALF_TOPIC", 0), *(("SCHEDULE_TOPIC_XXXX", level) for level in range(3))]


class TriedBroker(Broker):
    """One that is not waited for once it has given up: 5.5.0 takes ten seconds more to end."""

    def require_alive(self) -> None:
        """Raise `BrokerFailure` if it has ended."""
        if self.process and self.process.poll() is not None:
            raise BrokerFailure("ended while it served")

    def _wait_until_it_serves(self) -> None:
        served = Event()
        watcher = Thread(target=self._end_it_early, args=(served,))
        watcher.start()
        try:
            super()._wait_until_it_serves()
        finally:
            served.set()
            watcher.join()

    def _end_it_early(self, served: Event) -> None:
        log = self.home / "logs" / "rocketmqlogs" / "store.log"
        while not served.wait(0.2):
            if log.exists() and GIVEN_UP in log.read_bytes():
                self.kill()


@dataclass
class Boots:
    """All boots of one line over copies of one base. `sound`: the observation of the base itself."""

    jars: Path
    java: str
    line: str
    base: str
    store: Path
    work: Path
    jvm: tuple[str, ...] = JVM
    sound: Seen = field(default_factory=dict)

    @property
    def home(self) -> Path:
        """The folder of the broker."""
        return self.work / "home"

    def look_at_the_sound(self) -> None:
        """Boot the base itself: all that is served is compared with it."""
        self._copy()
        with self._broker({}) as broker:
            time.sleep(MOST)
            self.sound = self._look(broker)

    def boot(self, cell: Cell) -> Outcome:
        """Damage a copy, and boot."""
        self._copy()
        damage.damage(self.home / "store", cell)
        before = self._contents(cell)
        return self._classified(cell, damage.settings(cell), lambda: self._contents(cell) != before)

    def boot_after(self, cell: Cell, remedy: Remedy) -> Outcome:
        """Damage a copy, apply the remedy, and boot."""
        self._copy()
        damage.damage(self.home / "store", cell)
        remedy(DamagedStore(self.home / "store", self.store, cell))
        return self._classified(cell, {}, lambda: False)

    def _classified(self, cell: Cell, settings: dict[str, str | int], changed: Callable[[], bool]) -> Outcome:
        broker = self._broker(settings)
        try:
            with broker:
                lost = self._watched(broker)
                broker.require_alive()
                lost += self._forgotten(broker, cell.file)
        except BrokerFailure:
            code = broker.process.returncode if broker.process else 0
            return Outcome(REFUSES, "" if code < 0 else str(code), complaints(self.home))
        if lost:
            return Outcome(LOSES, lost="; ".join(lost))
        return Outcome(REPAIRS if changed() else STARTS)

    def _forgotten(self, broker: Broker, file: str) -> list[str]:
        """The contents of a table that no client can ask for: the broker writes it when it stops."""
        if file not in UNASKED:
            return []
        broker.stop()
        return (
            [] if UNASKED[file].encode() in (self.home / "store" / file).read_bytes() else [f"table: {UNASKED[file]}"]
        )

    def _watched(self, broker: Broker) -> list[str]:
        """The differences, once there are none, or once they do not change any more."""
        started = since = time.monotonic()
        before: list[str] = []
        while True:
            try:
                lost = differences(self.sound, self._look(broker))
            except (OSError, Refused, ValueError) as error:
                lost = [f"serves nothing: {type(error).__name__}"]
            now = time.monotonic()
            since = since if lost == before else now
            before = lost
            enough = now - started > (max(MOST, since - started + STABLE) if lost else LEAST)
            if enough or (broker.process and broker.process.poll() is not None):
                return lost
            time.sleep(0.5)

    def _look(self, broker: Broker) -> Seen:
        queues = [*QUEUES, *([("rmq_sys_wheel_timer", 0)] if self.line >= WITH_WHEEL else [])]
        queues += [(topic, 0) for topic in BASES[self.base].topics if (topic, 0) not in QUEUES]
        return observe(broker.client, queues, KEYS)

    def _broker(self, settings: dict[str, str | int]) -> TriedBroker:
        store = str(self.home / "store")
        changed: dict[str, str | int] = {name: str(value).replace("STORE", store) for name, value in settings.items()}
        given = BASES[self.base].settings_of(self.line) | changed
        return TriedBroker(self.home, self.jars, self.java, free_port(), given, jvm=self.jvm)

    def _copy(self) -> None:
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        copy = ["cp", "-a", "--sparse=always", str(self.store), str(self.home / "store")]
        subprocess.run(copy, check=True)  # a timer wheel is 38 MB of zeros

    def _contents(self, cell: Cell) -> object:
        """The damaged file, the names and lengths below a folder, or whether a planted file is there."""
        if cell.file == damage.SETTINGS:
            return None
        try:
            there = damage.find(self.home / "store", cell.file)
        except (IndexError, OSError):
            return None
        kind, _, name = cell.damage.partition(" ")
        if kind.startswith("stray"):
            return (there / name).exists()
        if there.is_dir():
            return sorted((str(path.relative_to(there)), path.stat().st_size) for path in there.rglob("*"))
        return there.read_bytes() if there.exists() else None
