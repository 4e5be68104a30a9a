"""Records a store of one layout from a real broker, with what its clients knew, and checks it.

    python -m tests.interop.record LAYOUT [--version 5.5.0] [--out DIR] [--build build] [--seed 1] [--sends 120]

`python -m tests.interop.record list` says which layouts there are. What is recorded is a folder of OUT: `store/`, as
the broker left it, less its lock; `broker.conf`, without paths of this machine; `client.ndjson`; `manifest.json`.

Exit codes: that of `gapless check` on what was recorded; 2 if nothing could be.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Thread

from rich.console import Console

from tests.interop import jars
from tests.interop.broker import Broker, BrokerFailure, free_port, portable_settings
from tests.interop.layouts import KILL, LAYOUTS, SMALL, STOP, Layout
from tests.interop.network import enter_a_network_of_its_own
from tests.interop.remoting import Client, Refused
from tests.interop.traffic import KINDS, Sender, consume

READY_WITHIN = 60  # seconds: a group of one elects itself, and a start after a kill goes over the log again
OF_A_PROCESS = "lock"  # a file that a broker needs while it runs, and no recording has


def main() -> int:
    """Record one, or list them."""
    parser = argparse.ArgumentParser(prog="python -m tests.interop.record", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("layout", choices=["list", *LAYOUTS])
    parser.add_argument("--version", default="5.5.0", help="of RocketMQ")
    parser.add_argument("--out", type=Path, default=Path("build/recorded"), help="where the recording goes")
    parser.add_argument("--build", type=Path, default=Path("build"), help="where jars are kept")
    parser.add_argument("--jars", type=Path, help="a folder with the jars of a broker, if they are not to be fetched")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sends", type=int, default=120, help="messages of each kind in a life, about")
    chosen = parser.parse_args()
    console = Console(highlight=False, soft_wrap=True, markup=False)
    if chosen.layout == "list":
        console.print("\n".join(f"{name:16} {layout.says}" for name, layout in LAYOUTS.items()))
        return 0
    layout = LAYOUTS[chosen.layout]
    if tuple(map(int, chosen.version.split(".")[:2])) < layout.since:
        parser.error(f"RocketMQ has {layout.says} from {'.'.join(map(str, layout.since))} on")
    for asked in (signal.SIGINT, signal.SIGTERM):
        signal.signal(asked, lambda *_: sys.exit("interrupted"))  # so that the broker is ended on the way out
    try:
        tools = jars.find_tools()
        found = chosen.jars or jars.fetch(tools, chosen.version, chosen.build, tiered=layout.tiered)
        if warning := enter_a_network_of_its_own("tests.interop.record"):
            console.print(warning)
        name = f"{chosen.layout}_{chosen.version}" + (f"_{chosen.seed}" if chosen.seed != 1 else "")
        home = chosen.out / name
        RecordingRun(layout, home, found, tools.java, chosen.version, Random(f"{name}"), chosen.sends).record()
    except (jars.MissingTool, jars.FetchFailure, BrokerFailure, Refused, OSError) as error:
        console.print(f"not recorded: {error}")
        return 2
    console.print(f"{home} is recorded")
    return subprocess.run([sys.executable, "-m", "gapless", "check", str(home)], check=False).returncode


@dataclass
class RecordingRun:
    """One that is being made, in the folder `home`."""

    layout: Layout
    home: Path
    jars: Path
    java: str
    version: str
    choose: Random
    sends: int
    lives: list[dict[str, float | str]] = field(default_factory=list)

    def record(self) -> None:
        """All lives; then what no recording has is removed."""
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        settings = {**SMALL, "autoCreateTopicEnable": "true", **self.layout.settings}
        for number, ending in enumerate(self.layout.lives):
            if 0 < number <= len(self.layout.later):
                settings |= self.layout.later[number - 1]
            self._live(settings, number, ending)
        self._tidy()

    def _live(self, settings: dict[str, str | int], number: int, ending: str) -> None:
        store = str((self.home / "store").absolute())
        given: dict[str, str | int] = {name: str(value).replace("STORE", store) for name, value in settings.items()}
        began = time.monotonic()
        with Broker(self.home, self.jars, self.java, free_port(), given) as broker:
            started = time.monotonic() - began
            with self._client(broker, number) as client:
                sender = self._sender(client, number)
                if ending == KILL:
                    self._send_until_killed(broker, sender)
                else:
                    self._send(sender)
                    time.sleep(self.layout.rest)
                    with suppress(Refused):  # a light queue, or one of inner batches, has no such number
                        consume(sender)
            if ending != KILL:
                time.sleep(1.5)  # until cursors are written
                (broker.stop if ending == STOP else broker.kill)()
        self.lives.append({"ended": ending, "started after s": round(started, 1), "sent": sender.sent})

    def _client(self, broker: Broker, number: int) -> Client:
        """Connect to a broker that takes messages: the leader of a group does only once it is elected."""
        until = time.monotonic() + READY_WITHIN
        while True:
            try:
                client = Client(broker.port, self.layout.address)
                for topic, (queues, attributes) in self.layout.topics.items():
                    client.make_topic(topic, queues, "" if number else attributes)  # some cannot change
            except (OSError, Refused):
                if time.monotonic() > until:
                    raise
                time.sleep(0.5)
            else:
                return client

    def _sender(self, client: Client, number: int) -> Sender:
        queues = [(topic, queue) for topic, (count, _) in self.layout.topics.items() for queue in range(count)]
        return Sender(client, self.home / "client.ndjson", Random(f"{self.choose.random()}:{number}"), queues)

    def _send(self, sender: Sender) -> None:
        for kind in self.layout.sent:
            KINDS[kind](sender, self.sends)

    def _send_until_killed(self, broker: Broker, sender: Sender) -> None:
        """All kinds once, and again until the broker is gone."""
        self._send(sender)

        def kill() -> None:
            time.sleep(0.5 + sender.choose.random())
            broker.kill()

        killer = Thread(target=kill)
        killer.start()
        try:
            while True:
                self._send(sender)
        except (OSError, ValueError):
            pass  # it is gone
        finally:
            killer.join()

    def _tidy(self) -> None:
        (self.home / "broker.conf").write_text(portable_settings(self.home))
        for there in self.home.iterdir():
            if there.name not in ("store", "broker.conf", "client.ndjson"):
                shutil.rmtree(there) if there.is_dir() else there.unlink()
        (self.home / "store" / OF_A_PROCESS).unlink(missing_ok=True)
        manifest = {"rocketmq": self.version, "layout": self.layout.says, "lives": self.lives}
        (self.home / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
