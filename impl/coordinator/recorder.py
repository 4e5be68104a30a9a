"""Every step of a coordinator and of its clients as events, for `gapless check`.

Requests and transactions are numbered as the spec has them. Steps in a log that were not observed (a group
that was on its way when the power failed, or all of it where a recording begins in the middle of a life) is recorded as
inferred.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from gapless.impl.coordinator.observer import Found
from gapless.impl.coordinator.steps import ENDING, Key, Status
from gapless.impl.recorder.spool import Spool
from gapless.traces.events import event, writing
from gapless.traces.events.event import OUTCOMES, ROWS, Ints, Origin, Vocabulary

ORIGIN = Origin("gapless-coordinator", "strict")  # what we record is the design, and deviates from it nowhere
WORDS = Vocabulary(
    {
        "coordinator": {
            "open": ["limit"],
            "unload": [],
            "load": ["number", "status"],
            "recover": ["limit"],
            "admit": ["request"],
            "ignore": ["request"],
            "burn": ["request"],
            "begin": ["number", "request", "time", "life"],
            "hand": ["number", "request"],
            "add": ["number"],
            "decide": ["number", "to"],
            "time_out": ["number", "time"],
            "finish": ["number", "to"],
            "acknowledge": ["number", "status"],
            "end": [],
        },
        "permits": {
            "open": ["permits", "timeout"],
            "tick": ["time"],
            "wait": ["number"],
            "acquire": ["number"],
            "reply": ["number"],
            "time_out": ["number"],
            "late_reply": ["number"],
            "disconnect": [],
            "rest": ["within"],
            "end": [],
        },
    }
)
_SPECS = list(WORDS.specs)
_ACTIONS = {spec: list(actions) for spec, actions in WORDS.specs.items()}
_WIDTH = 8  # numbers of a row: spec, trace, action, outcome, up to four arguments
_KEPT_AT_ONCE = 4096  # rows
_INFERRED = OUTCOMES.index("inferred")


class StepTape:
    """The tape of the steps of a coordinator and its clients, in the order in which they took effect.

    `folder`: where they are kept until they become events, in a file without a name; in memory where there is none.
    """

    def __init__(self, folder: Path | None = None, *, source: str = "gapless") -> None:
        self.source = source
        self.traces: dict[str, list[str]] = {spec: [] for spec in _SPECS}
        self._rows: list[tuple[int, ...]] = []
        self._kept = Spool(np.empty((0, _WIDTH), np.int64), folder)

    def coordinator(self, name: str = "coordinator") -> CoordinatorRecorder:
        """The observer of one coordinator, through all its lives."""
        return CoordinatorRecorder(self, self._trace("coordinator", name))

    def client(self, name: str) -> PermitRecorder:
        """The observer of one client."""
        return PermitRecorder(self, self._trace("permits", name))

    def _trace(self, spec: str, name: str) -> int:
        self.traces[spec].append(name)
        return len(self.traces[spec]) - 1

    def put(self, spec: str, trace: int, action: str, *args: int, inferred: bool = False) -> None:
        """A step was taken."""
        whole = (*args, *(0,) * (4 - len(args)))
        row = (_SPECS.index(spec), trace, _ACTIONS[spec].index(action), _INFERRED if inferred else 0, *whole)
        self._rows.append(row)
        if len(self._rows) >= _KEPT_AT_ONCE:
            self._keep()

    def _keep(self) -> None:
        self._kept.add(np.array(self._rows, np.int64).reshape(-1, _WIDTH))
        self._rows.clear()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All steps so far as batches of events, trace by trace. Raises OSError."""
        self._keep()
        rows = self._kept.all()
        for at, spec in enumerate(_SPECS):
            where = np.flatnonzero(rows[:, 0] == at)
            where = where[np.argsort(rows[where, 1], kind="stable")]
            for low in range(0, len(where), ROWS):
                yield self._batch(spec, rows[where[low : low + ROWS]], where[low : low + ROWS])

    def _batch(
        self,
        spec: str,
        rows: Ints,
        where: Ints,
    ) -> pa.RecordBatch:
        own = WORDS.arguments_of(spec)
        args = np.zeros((len(own), len(rows)), np.int64)
        for action, names in enumerate(WORDS.specs[spec].values()):
            mine = rows[:, 2] == action
            for column, name in enumerate(names, 4):
                args[own.index(name), mine] = rows[mine, column]
        return event.from_columns(
            WORDS,
            spec,
            source=self.source,
            traces=self.traces[spec],
            trace=rows[:, 1],
            position=where.astype(np.int64),
            action=rows[:, 2].astype(np.int8),
            args=args,
            outcome=rows[:, 3].astype(np.int8),
        )

    def write(self, path: Path) -> int:
        """Write the events to a file, and forget them; returns how many. Raises OSError: then there is no new file."""
        try:
            return writing.write(path, self.batches(), WORDS, origin=ORIGIN)
        finally:
            self._kept.forget()


class CoordinatorRecorder:
    """Observes one coordinator (`observer.py`); what it knows of it outlives its crashes."""

    def __init__(self, tape: StepTape, trace: int) -> None:
        self._tape = tape
        self._trace = trace
        self._opened = False
        self._running = False
        self._known: dict[int, Found] = {}  # the recorded state of each transaction
        self._owners: dict[int, int] = {}  # of each transaction, the request that it began for
        self._handed: set[int] = set()
        self._requests: dict[Key, int] = {}  # the number of each request of which nothing has come yet
        self._next = 0  # the number of the next request

    def _put(self, action: str, *args: int, inferred: bool = False) -> None:
        self._tape.put("coordinator", self._trace, action, *args, inferred=inferred)

    def recovered(self, limit: int, found: Sequence[Found]) -> None:
        """The log was read to its end, and the coordinator runs."""
        if not self._opened:
            self._opened = self._running = True
            self._put("open", 0 if found else limit)
            if not found:
                return
        for each in found:
            self._infer(each)
        if self._running:
            self._put("unload")
        self._requests.clear()
        self._running = True
        for each in found:
            if each.status not in ENDING.values():
                self._put("load", each.number, each.status)
        self._put("recover", limit)

    def _infer(self, found: Found) -> None:
        """Record what the log has of a transaction beyond the recorded steps."""
        known = self._known.get(found.number)
        if known is None:
            request = self._requests.pop(found.key, None) if found.key else None
            if request is None:
                request = self._new()
                self._put("admit", request, inferred=True)
            self._put("begin", found.number, request, found.time, found.life, inferred=True)
            self._owners[found.number] = request
            known = found._replace(status=Status.OPEN, added=0)
        for _ in range(found.added - known.added):
            self._put("add", found.number, inferred=True)
        if known.status == Status.OPEN and found.status != Status.OPEN:
            ends = {end: decision for decision, end in ENDING.items()}
            self._put("decide", found.number, ends.get(found.status, found.status), inferred=True)
        if known.status not in ENDING.values() and found.status in ENDING.values():
            self._put("finish", found.number, found.status, inferred=True)
        self._known[found.number] = found

    def _new(self) -> int:
        self._next += 1
        return self._next - 1

    def admitted(self, key: Key) -> None:
        """A request to begin passed the limit."""
        self._requests[key] = self._new()
        self._put("admit", self._requests[key])

    def ignored(self, _key: Key) -> None:
        """A request to begin is met with silence."""
        self._put("ignore", self._new())

    def burnt(self, key: Key) -> None:
        """An admitted request could not be written."""
        self._put("burn", self._requests.pop(key))

    def begun(self, number: int, key: Key, time: int, life: int) -> None:
        """The transaction is in the log."""
        self._owners[number] = self._requests.pop(key)
        self._known[number] = Found(number, Status.OPEN, key, time, life, 0)
        self._put("begin", number, self._owners[number], time, life)

    def handed(self, number: int, _key: Key) -> None:
        """Its client is given it; recorded once, for a client that asks again gets the same."""
        if number not in self._handed:
            self._handed.add(number)
            self._put("hand", number, self._owners[number])

    def added(self, number: int) -> None:
        """A participant joins."""
        self._known[number] = self._known[number]._replace(added=self._known[number].added + 1)
        self._put("add", number)

    def decided(self, number: int, to: Status, time: int | None) -> None:
        """Its end begins."""
        self._known[number] = self._known[number]._replace(status=to)
        if time is None:
            self._put("decide", number, to)
        else:
            self._put("time_out", number, time)

    def finished(self, number: int, to: Status) -> None:
        """It ended."""
        self._known[number] = self._known[number]._replace(status=to)
        self._put("finish", number, to)

    def acknowledged(self, number: int, status: Status) -> None:
        """The outcome is reported to a client."""
        self._put("acknowledge", number, status)

    def closed(self, *, at_rest: bool) -> None:
        """The coordinator was closed in order."""
        if at_rest:
            self._put("end")
        self._put("unload")
        self._running = False


class PermitRecorder:
    """Observes the permits of one client (`observer.py`)."""

    def __init__(self, tape: StepTape, trace: int) -> None:
        self._tape = tape
        self._trace = trace
        self._clock = 0

    def _put(self, action: str, *args: int) -> None:
        self._tape.put("permits", self._trace, action, *args)

    def _tick(self, now: int) -> None:
        if now != self._clock:
            self._clock = now
            self._put("tick", now)

    def opened(self, permits: int, timeout: int) -> None:
        """The client is new."""
        self._put("open", permits, timeout)

    def waits(self, number: int) -> None:
        """A caller finds no permit."""
        self._put("wait", number)

    def acquired(self, number: int, now: int) -> None:
        """A request takes a permit."""
        self._tick(now)
        self._put("acquire", number)

    def replied(self, number: int) -> None:
        """It is answered."""
        self._put("reply", number)

    def timed_out(self, number: int, now: int) -> None:
        """It is given up."""
        self._tick(now)
        self._put("time_out", number)

    def replied_late(self, number: int) -> None:
        """An answer comes to a request that was given up."""
        self._put("late_reply", number)

    def disconnected(self) -> None:
        """The connection is lost."""
        self._put("disconnect")

    def rested(self, *, in_use: int, waiting: int) -> None:
        """The client has come to rest."""
        self._put("rest", 0)
        if not in_use and not waiting:
            self._put("end")
