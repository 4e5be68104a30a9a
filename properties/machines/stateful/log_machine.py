"""Hypothesis drives a commit log and its model: every step is always offered, and both take it, or both refuse.

The rules are the steps of `spec/log.py`, except those in `NO_COUNTERPART`. Both states are compared inside each step,
so that a failing program consists of steps alone. A step that the model refuses must leave the subject as it was,
whether it raises an error or not. In the end, the checker replays what the subject recorded, if it records.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from gapless.properties.machines.mismatch import Mismatch
from gapless.properties.machines.spec_refinement import NothingToDo, require_same
from gapless.properties.machines.stateful.subject_machine import SubjectMachine
from gapless.properties.simulation.choices import Choices
from gapless.properties.simulation.simulated_disk import SimulatedDisk
from gapless.properties.subject import ENDLESS, NewMessage, SubjectLayout
from gapless.spec import log
from gapless.spec.language import Position, Refused, replace

NO_COUNTERPART = {"omit": "an implementation does not meet records of other lives with another setting"}

FILE_SIZES = st.sampled_from((512, 1024, 4096))
TOO_SMALL = st.sampled_from((0, 1, log.BLANK))  # no file of this size holds a record, as the model sees it
BODIES = st.integers(0, 450)  # bytes: some fit into no file, most do
AWAY = st.sampled_from((0,) * 8 + (1, 8))  # bytes behind the position that is due
TICKS = st.integers(-500, 3000)  # ms: the clock may step back
FLAWS = st.sampled_from(("",) * 9 + ("claimed", "known", "fits", "intact", "sealed"))
CHOICES = st.lists(st.integers(0, 11), max_size=8)


class LogMachine(SubjectMachine):
    """A commit log on a simulated disk, and the model."""

    @initialize(small=TOO_SMALL, file_size=FILE_SIZES)
    def start(self, small: int, file_size: int) -> None:
        """A new log is opened before any other step."""
        self.begin()
        self.model = log.INITIAL
        self.disk = SimulatedDisk(page=512)
        self.now = 1_700_000_000_000
        self.open(small)
        self.open(file_size)

    # -- the steps of the model --------------------------------------------------------------------------------------

    @rule(file_size=FILE_SIZES | TOO_SMALL)
    def open(self, file_size: int) -> None:
        """A log is found. An open log is not opened again, and no file is too small for its blank."""
        size = file_size if self.has("roll") else ENDLESS
        self.both(lambda s: log.open(s, Position(0), size), partial(self._open, size))

    @rule(body=BODIES, tick=TICKS, away=AWAY, flaw=FLAWS)
    def append(self, body: int, tick: int, away: int, flaw: str) -> None:
        """A record is written at the log's end; or a record with a flaw lies there when the log is found again."""
        if (flaw or away) and not (self.has("flawed") and self.has_flaw(flaw)):
            return
        self.now += tick
        message = NewMessage(("x", 0), bytes(body))
        size, s = self.subject.size(message), self.model
        if s.end + size + log.BLANK > s.base + s.file_size and size + log.BLANK <= s.file_size:
            self.roll()
        s, time = self.model, max(self.now, self.model.newest)
        at, claimed = Position(s.end + away), Position(s.end + (flaw == "claimed"))
        known, fits, intact, sealed = (name != flaw for name in ("known", "fits", "intact", "sealed"))
        self.both(
            lambda s: log.append(s, at, size, claimed, known, fits, intact, sealed, time),
            lambda: self._find(flaw, message, time, at) if flaw or away else self._append(message, size),
        )

    @rule()
    def roll(self) -> None:
        """A blank fills the file, which is flushed then."""
        if not self.has("roll"):
            return
        s = self.model
        size = s.base + s.file_size - s.end

        def rolled(s: log.State) -> log.State:
            s = log.roll(s, s.end, size, marked=True)
            return log.flush(s, s.end)

        self.both(rolled, lambda: self.subject.roll())  # noqa: PLW0108 - asked for when the step is taken

    @rule()
    def flush(self) -> None:
        """The log is flushed."""
        self.both(lambda s: log.flush(s, s.end), lambda: self.subject.flush())  # noqa: PLW0108 - as above

    @rule(back=st.integers(-200, 400))
    def acknowledge(self, back: int) -> None:
        """Acknowledge messages, counted from the flushed position; sometimes too many, or again."""
        to = Position(self.model.flushed - back)
        if self.has("acknowledge"):
            self.both(lambda s: log.acknowledge(s, to), lambda: self.subject.acknowledge(to))

    @rule(choices=CHOICES, power=st.booleans())
    def crash(self, choices: list[int], power: bool) -> None:  # noqa: FBT001 - Hypothesis gives all by name.
        """The page cache is lost, or the process alone; the log is found again, and all of it is safe then."""
        given = iter(choices)
        choose = Choices(lambda ways: next(given, 0) % ways)
        self.subject.die()
        self.disk = self.disk.crash(choose) if power else self.disk.kill(choose)
        self.subject.open(self.disk, self.layout)
        found = self.subject.as_log()
        if not power and found.end != self.model.end:
            raise Mismatch(
                f"the process died, and of the log up to {self.model.end} is left what lies before {found.end}"
            )
        kept = log.crash(self.model, found.end)
        newest = max((record.time for record in self.subject.records()), default=0)
        self.model = log.acknowledge(replace(kept, clock=newest, newest=newest), found.end)
        self.compare()

    @rule()
    def checkpoint(self) -> None:
        """The checkpoint says what is safe."""
        if self.has("checkpoint"):
            checkpoint = self.subject.progress().checkpoint
            self.both(lambda s: log.checkpoint(s, checkpoint), lambda: self._checkpoint(checkpoint))

    @rule(which=st.integers(0, 20), beyond=st.integers(-1, 300))
    def refer(self, which: int, beyond: int) -> None:
        """A record is referred to, or a position behind the log's end."""
        there = [record.position for record in self.subject.records()]
        position = Position(there[which % len(there)] if there and beyond < 0 else self.model.end + max(beyond, 0))
        self.both(lambda s: log.refer(s, position), lambda: self.subject.read(position))

    def teardown(self) -> None:
        """The store stops in order, and says that it is at rest. What was recorded conforms."""
        if hasattr(self, "subject"):
            if self.model != log.INITIAL and sys.exc_info()[0] is None:  # otherwise the machine has failed already
                self.subject.close(self.now)
            self.subject.replay()

    # -- both sides --------------------------------------------------------------------------------------------------

    def both(self, model: Callable[[log.State], log.State], subject: Callable[[], object]) -> None:
        """Both step to the same state, or both refuse and stay as they were."""
        refused: object = None
        try:
            after = model(self.model)
        except Refused as error:
            after, refused = self.model, error
        try:
            subject()
        except (self.subject.errors.any, NothingToDo) as error:
            if refused is None:
                raise Mismatch(f"the model steps, and the implementation says {error}") from error
        event("refused" if refused else "taken")
        self.model = after
        self.compare()

    def compare(self) -> None:
        """The subject's state is the model's."""
        require_same(self.subject.as_log(), self.model, "the log: ")

    # -- the subject -------------------------------------------------------------------------------------------------

    def has_flaw(self, flaw: str) -> bool:
        """True if a record of the subject can have such a flaw."""
        why = self.subject.flawless.get(flaw)
        if why is not None:
            event(f"left out: a record whose flaw is {flaw!r}: {why}")
        return why is None

    def _open(self, file_size: int) -> None:
        layout = SubjectLayout(file_size=file_size, overlap=self.has("overlap"))
        self.subject.open(self.disk, layout)
        self.layout = layout

    def _append(self, message: NewMessage, size: int) -> None:
        placed = self.subject.append(message, self.now)
        if (placed.position, placed.size) != (self.model.end, size):
            raise Mismatch(f"a record is reported to be {placed}, expected {size} bytes at {self.model.end}")

    def _checkpoint(self, checkpoint: int) -> None:
        written = self.subject.checkpoint(self.now)
        if written != checkpoint:
            raise Mismatch(f"the checkpoint says {written} ms, and {checkpoint} ms was safe")

    def _find(self, flaw: str, message: NewMessage, time: int, at: int) -> None:
        """A record with a flaw, found at `at` in a file. Raises NothingToDo, or Mismatch if it is accepted."""
        if self.subject.flawed(flaw, message, at, time) != self.subject.as_log().end:
            raise Mismatch(f"a record that must be refused ({flaw or 'elsewhere'}) is taken for one, at {at}")
        raise NothingToDo("no record begins here")
