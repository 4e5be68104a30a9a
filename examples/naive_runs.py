"""Generated runs of `dispatch`, performed on the naive store, which is recorded.

    gapless generate dispatch --without crash --walks 100 --out runs
    python -m examples.naive_runs runs/dispatch.ndjson recorded.ndjson
    gapless check recorded.ndjson

What the store is asked for comes from the file; what is recorded is what the store did, with the numbers that it chose.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from examples.naive_store import NaiveStore, Part, Queue, Refused
from gapless import Recorder
from gapless.properties.simulation.simulated_disk import SimulatedDisk

NAME = ("orders", 0)
BODY, TAG, NOW = b"a message", "", 0
LARGE = 1 << 20  # bytes of a file: the log needs one


class QueueRun:
    """One run: a queue of a store of its own, whose workers do one step at a time."""

    def __init__(self, trace: str, make: Callable[..., NaiveStore], recorder: Recorder) -> None:
        self.trace, self.make, self.recorder = trace, make, recorder
        self.store: NaiveStore
        self.is_open = self.has_failed = False

    @property
    def queue(self) -> Queue:
        """The queue."""
        return self.store.queue(*NAME)

    def perform(self, action: str, args: dict[str, Any]) -> None:
        """Perform a step, and record what comes of it."""
        try:
            done = self.performed(action, args)
        except Refused:
            self.recorder.step(self.trace, action, outcome="refused", **args)
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, this store can do no more
            print(f"{self.trace}: {action} failed: {error!r}", file=sys.stderr)
            self.recorder.step(self.trace, action, outcome="unknown", **args)
            self.has_failed = True
            return
        saw = {"scanned": self.queue.scanned, "committed": self.queue.committed, "flushed": self.queue.flushed}
        self.recorder.step(self.trace, action, saw=saw, **{**args, **done})

    def performed(self, action: str, args: dict[str, Any]) -> dict[str, Any]:
        """The arguments that the store chose itself, once it has taken a step. Raises Refused."""
        if self.is_open == (action == "open"):
            raise Refused("a queue is opened once, before all else")
        done: dict[str, Any] | None = getattr(self, action)(**args)
        return done or {}

    def open(self, number: int, overlap: int) -> None:
        """A store starts, and finds a queue with so many entries."""
        if number < 0:
            raise Refused("no queue has fewer entries than none")
        disk = SimulatedDisk()
        before = self.started(disk, NaiveStore, 0)
        for _ in range(number):
            before.append(*NAME, BODY, TAG, {}, NOW)
        before.close()
        self.store, self.is_open = self.started(disk, self.make, overlap), True

    @staticmethod
    def started(disk: SimulatedDisk, make: Callable[..., NaiveStore], overlap: int) -> NaiveStore:
        """A store on a disk; each worker builds one message at a time."""
        return make(disk, LARGE, synchronous=False, together=1, flying=16, overlap=bool(overlap), retries=0)

    def scan(self, number: int) -> None:
        """A message is appended, and met in the log; the store gives the number."""
        if number != self.queue.scanned:
            raise Refused("it is not the next number")
        self.store.append(*NAME, BODY, TAG, {}, NOW)
        self.store.scan()

    def take(self, number: int) -> None:
        """A worker takes the part with a message."""
        self.store.take(self.part(number))

    def write(self, number: int) -> None:
        """The worker writes the entry, and says so."""
        part = self.part(number)
        self.store.build(part)
        self.store.wrote(part)

    def part(self, number: int) -> Part:
        """The part of the log with a message."""
        for part in self.store.parts:
            if part.messages[0].number == number:
                return part
        raise Refused("there is no such part")

    def commit(self, to: int) -> None:
        """Consumers see more; the store chooses how far."""
        if to != self.store.commit(replace(self.queue)):
            raise Refused("it is not how far the store would show")
        self.store.commit(self.queue)

    def flush(self, to: int) -> dict[str, int]:  # noqa: ARG002 - the store chooses it
        """All is put on disk, as far as the store chooses."""
        self.store.flush()
        self.store.flush_queues()
        return {"to": self.queue.flushed}

    def end(self) -> None:
        """It is at rest, if workers have nothing to do."""
        if self.store.parts or self.queue.flushed < self.queue.committed:
            raise Refused("there is work left")


def perform(runs: Path, out: Path, make: Callable[..., NaiveStore] = NaiveStore) -> None:
    """Perform each run of a file on a new store, and record what it does."""
    performing: dict[str, QueueRun] = {}
    with runs.open(encoding="utf-8") as lines, Recorder(out, spec="dispatch") as recorder:
        next(lines)  # it says what the file is
        for line in lines:
            step: dict[str, Any] = json.loads(line)
            trace = step["trace"]
            if trace not in performing:
                performing[trace] = QueueRun(trace, make, recorder)
            if not performing[trace].has_failed:
                performing[trace].perform(step["action"], step["args"])


if __name__ == "__main__":
    perform(Path(sys.argv[1]), Path(sys.argv[2]))
