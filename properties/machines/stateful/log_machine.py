"""Hypothesis drives a commit log and its model: every step is always offered, and both take it, or both refuse.

The rules are the steps of `spec/log.py`. Both states are compared inside each step, so that a failing program consists
of steps alone. A step that the model refuses must leave the implementation as it was, whether it raises an error or
not. In the end, the checker replays what the log recorded (`recorded_conformance.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import numpy as np
from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from gapless.impl.files.checkpoint import NOWHERE
from gapless.impl.recorder.recorder import Recorder
from gapless.impl.records import kernels
from gapless.impl.records.errors import StoreError
from gapless.impl.records.record import encode
from gapless.impl.store.core import Core, Settings
from gapless.properties.machines import as_spec
from gapless.properties.machines.mismatch import Mismatch
from gapless.properties.machines.recorded_conformance import require_conformance
from gapless.properties.simulation.choices import Choices
from gapless.properties.simulation.simulated_disk import SimulatedDisk
from gapless.spec import log
from gapless.spec.language import Position, Refused, replace

FILE_SIZES = st.sampled_from((512, 1024, 4096))
TOO_SMALL = st.sampled_from((0, 1, log.BLANK))  # no file of this size holds a record, as the model sees it
BODIES = st.integers(0, 450)  # bytes: some fit into no file, most do
AWAY = st.sampled_from((0,) * 8 + (1, 8))  # bytes behind the position that is due
TICKS = st.integers(-500, 3000)  # ms: the clock may step back
FLAWS = st.sampled_from(("",) * 9 + ("claimed", "known", "fits", "intact", "sealed"))
RECORD = 92 + 20  # bytes of a record beside its body, with a topic of one letter and its checksum
CHOICES = st.lists(st.integers(0, 11), max_size=8)


class LogMachine(RuleBasedStateMachine):
    """A commit log on a simulated disk, and the model."""

    core: Core | None = None

    @initialize(small=TOO_SMALL, file_size=FILE_SIZES)
    def start(self, small: int, file_size: int) -> None:
        """A new log is opened before any other step."""
        self.model = log.INITIAL
        self.disk, self.recorder = SimulatedDisk(page=512), Recorder()
        self.now = 1_700_000_000_000
        self.open(small)
        self.open(file_size)

    # -- the steps of the model --------------------------------------------------------------------------------------

    @rule(file_size=FILE_SIZES | TOO_SMALL)
    def open(self, file_size: int) -> None:
        """A log is found. An open log is not opened again, and no file is too small for its blank."""
        self.both(lambda s: log.open(s, Position(0), file_size), partial(self._open, file_size))

    @rule(body=BODIES, tick=TICKS, away=AWAY, flaw=FLAWS)
    def append(self, body: int, tick: int, away: int, flaw: str) -> None:
        """A record is written at the log's end; or a record with a flaw lies there when the log is found again."""
        self.now += tick
        size, s = RECORD + body, self.model
        if s.end + size + log.BLANK > s.base + s.file_size and size + log.BLANK <= s.file_size:
            self.roll()
        s, time = self.model, max(self.now, self.model.newest)
        at, claimed = Position(s.end + away), Position(s.end + (flaw == "claimed"))
        known, fits, intact, sealed = (name != flaw for name in ("known", "fits", "intact", "sealed"))
        self.both(
            lambda s: log.append(s, at, size, claimed, known, fits, intact, sealed, time),
            lambda: self._find(flaw, body, time, at) if flaw or away else self._append(body),
        )

    @rule()
    def roll(self) -> None:
        """A blank fills the file, which is flushed then."""
        s = self.model
        size = s.base + s.file_size - s.end

        def rolled(s: log.State) -> log.State:
            s = log.roll(s, s.end, size, marked=True)
            return log.flush(s, s.end)

        self.both(rolled, lambda: self._core().log.roll())  # noqa: PLW0108 - asked for when the step is taken

    @rule()
    def flush(self) -> None:
        """The log is flushed."""
        self.both(lambda s: log.flush(s, s.end), lambda: self._core().flush())

    @rule(back=st.integers(-200, 400))
    def acknowledge(self, back: int) -> None:
        """Producers are told what is safe, counted from the flushed position; sometimes too much, or once more."""
        to = Position(self.model.flushed - back)
        self.both(lambda s: log.acknowledge(s, to), lambda: self._core().acknowledge(to))

    @rule(choices=CHOICES, power=st.booleans())
    def crash(self, choices: list[int], power: bool) -> None:  # noqa: FBT001 - Hypothesis gives all by name.
        """The page cache is lost, or the process alone; the log is found again, and all of it is safe then."""
        if self.core is None:
            return
        given = iter(choices)
        choose = Choices(lambda ways: min(next(given, 0), ways - 1))
        self.disk = self.disk.crash(choose) if power else self.disk.kill(choose)
        self.core = Core.open(self.disk, self.core.settings, self.recorder)
        found = as_spec.log(self.core)
        if not power and found.end != self.model.end:
            raise Mismatch(
                f"the process died, and of the log up to {self.model.end} is left what lies before {found.end}"
            )
        kept = log.crash(self.model, found.end)
        newest = max((record.store_time for record in as_spec.records(self.core)), default=0)
        self.model = log.acknowledge(replace(kept, clock=newest, newest=newest), found.end)
        self.compare()

    @rule()
    def checkpoint(self) -> None:
        """The checkpoint says what is safe."""
        core = self.core
        told = core.checkpoint.log if core is not None else 0
        self.both(lambda s: log.checkpoint(s, told), lambda: self._core().write_checkpoint(self.now))

    @rule(which=st.integers(0, 20), beyond=st.integers(-1, 300))
    def refer(self, which: int, beyond: int) -> None:
        """A record is referred to, or a position behind the log's end."""
        there = [record.position for record in as_spec.records(self.core)] if self.core else []
        position = Position(there[which % len(there)] if there and beyond < 0 else self.model.end + max(beyond, 0))
        self.both(lambda s: log.refer(s, position), lambda: self._core().log.at(position))

    def teardown(self) -> None:
        """The store stops in order, and says that it is at rest. What was recorded conforms."""
        if self.core is not None and sys.exc_info()[0] is None:  # otherwise the machine has failed already
            self.core.close(self.now)
        require_conformance(self.recorder)

    # -- both sides --------------------------------------------------------------------------------------------------

    def both(self, model: Callable[[log.State], log.State], implementation: Callable[[], object]) -> None:
        """Both step to the same state, or both refuse and stay as they were."""
        refused: object = None
        try:
            after = model(self.model)
        except Refused as error:
            after, refused = self.model, error
        try:
            implementation()
        except StoreError as error:
            if refused is None:
                raise Mismatch(f"the model steps, and the implementation says {error}") from error
        event("refused" if refused else "taken")
        self.model = after
        self.compare()

    def compare(self) -> None:
        """The implementation's state is the model's."""
        found = log.INITIAL if self.core is None else as_spec.log(self.core)
        if found != self.model:
            raise Mismatch(f"the log is {found}, expected {self.model}")

    # -- the implementation ------------------------------------------------------------------------------------------

    def _open(self, file_size: int) -> None:
        settings = Settings(file_size=file_size, queue_file_size=200, workers=1)
        self.core = Core.open(self.disk, settings, self.recorder)

    def _core(self) -> Core:
        if self.core is None:
            raise StoreError("no store is open")
        return self.core

    def _append(self, body: int) -> None:
        core = self._core()
        core.append(core.queues.named("x", 0), bytes(body), b"", self.now)

    def _find(self, flaw: str, body: int, time: int, at: int) -> None:
        """A record with a flaw, found at `at` in a file. Raises StoreError, or Mismatch if it is accepted."""
        core = self._core()
        end, base = core.log.end, self.model.base
        data = (
            core.log.view(base)[0].copy() if base in core.log.segments.bases else np.zeros(core.log.file_size, np.uint8)
        )
        record = _flawed(flaw, encode("x", 0, 0, end, bytes(body), store_time=time))
        room = data[at - base : at - base + len(record)]
        room[:] = np.frombuffer(record, np.uint8)[: len(room)]
        stopped, *_ = kernels.scan(data, base, end - base, 0, kernels.CRC_TABLES, NOWHERE, 0)
        if stopped != end - base:
            raise Mismatch(f"a record that must be refused ({flaw or 'elsewhere'}) is taken for one, at {at}")
        raise StoreError("no record begins here")


def _flawed(flaw: str, record: bytes) -> bytes:
    """The record with a flaw of a kind that `log.append` names."""
    match flaw:
        case "claimed":
            return record[:28] + (int.from_bytes(record[28:36], "big") + 1).to_bytes(8, "big") + record[36:]
        case "known":
            return record[:4] + b"\x01" + record[5:]
        case "fits":
            return record[:84] + (int.from_bytes(record[84:88], "big") + 1).to_bytes(4, "big") + record[88:]
        case "intact":
            return record[:8] + bytes([record[8] ^ 1]) + record[9:]
        case "sealed":  # properties may carry a checksum of all before them: here a wrong one
            sealed = b"__CRC32#\x010000000000\x02"
            size = (len(record) + len(sealed)).to_bytes(4, "big")
            return size + record[4:-2] + len(sealed).to_bytes(2, "big") + sealed
    return record
