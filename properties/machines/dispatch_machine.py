"""Hypothesis drives dispatch and its model: every step is offered always, and both take it, or both refuse.

The rules are the verbs of `spec/dispatch.py`, and those of the world around it, which have no counterpart there
(`OF_THE_WORLD`, with a reason each). Steps are compared inside `beside.py`, so that a failing program is steps alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

from hypothesis import HealthCheck, Phase, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from gapless.impl.dispatch.batches import DispatchBatch
from gapless.impl.records.errors import Refused, Stopped
from gapless.impl.store.core import Settings
from gapless.properties.machines.dispatch_refinement import LIFE_ENDS, Beside
from gapless.properties.machines.ground_truth import ENTRY

QUEUES = st.integers(0, 1)
MESSAGES = st.lists(QUEUES, min_size=1, max_size=4)
BATCHES = st.integers(0, 5)  # counted from the newest that was cut, in whichever life
NUMBERS = st.integers(-1, 2)  # counted from the one that is due
ENDS = st.sampled_from((None,) * 15 + LIFE_ENDS)  # most lives are long
CHOICES = st.lists(st.integers(0, 11), max_size=6)
SETTINGS = st.builds(
    Settings,
    file_size=st.sampled_from((256, 512, 2048)),
    queue_file_size=st.integers(1, 4).map(lambda entries: entries * ENTRY.size),
    synchronous=st.booleans(),
    workers=st.just(1),
    batch_records=st.integers(1, 3),
    in_flight=st.integers(1, 4),
    overlap=st.booleans(),
)

OF_THE_WORLD = {
    "append": "a step of the log: dispatch meets the messages when it scans",
    "flush_log": "a step of the log: a synchronous store is scanned, and entries are flushed, up to there",
    "scan_number": "scan, of a record that claims a number of its own",
    "take_oldest": "take, of what dispatch chooses",
    "commit_all": "commit, of every queue of a batch",
    "work": "all that a worker does, so that much is done in a life",
    "fail": "for the model, a worker that failed has its numbers still",
    "read": "what consumers see is not part of the state",
}


class DispatchMachine(RuleBasedStateMachine):
    """Dispatch of two queues, on a simulated disk, and the model."""

    @initialize(settings=SETTINGS, retries=st.integers(1, 3), room=st.sampled_from((1, 2, 64)), messages=MESSAGES)
    def open(self, settings: Settings, retries: int, room: int, messages: list[int]) -> None:
        """A store in which there is something to do."""
        self.both = Beside(settings, 2, retries=retries, room=room)
        self.batches: list[DispatchBatch] = []
        self.append(messages)
        self.flush_log()

    @rule(messages=MESSAGES)
    def append(self, messages: list[int]) -> None:
        """Some more messages."""
        for of in messages:
            self.both.append(of)

    @rule()
    def flush_log(self) -> None:
        """The log is on disk."""
        self.both.flush_log()

    @rule()
    def scan(self) -> None:
        """The next batch is cut."""
        self.offer("scan", self.both.scan)

    @rule(of=QUEUES, number=NUMBERS)
    def scan_number(self, of: int, number: int) -> None:
        """The next record claims a number."""
        self.offer("scan_number", lambda: self.both.scan_number(of, self.both.models[of].scanned + number))

    @rule(batch=BATCHES)
    def take(self, batch: int) -> None:
        """A worker takes a batch."""
        self.offer_for("take", batch, self.both.take)

    @rule()
    def take_oldest(self) -> None:
        """A worker takes what waits longest."""
        self.offer("take_oldest", self.both.take)

    @rule(batch=BATCHES)
    def write(self, batch: int) -> None:
        """A worker has written its entries."""
        self.offer_for("write", batch, partial(write, self.both))

    @rule(batch=BATCHES)
    def fail(self, batch: int) -> None:
        """A worker could not write its entries."""
        self.offer_for("fail", batch, partial(fail, self.both))

    @rule()
    def work(self) -> None:
        """A worker does what is due."""
        self.offer("work", partial(work, self.both))

    @rule(of=QUEUES)
    def commit(self, of: int) -> None:
        """Consumers see what is written."""
        self.offer("commit", lambda: self.both.commit(of))

    @rule(batch=BATCHES)
    def commit_all(self, batch: int) -> None:
        """The same, for every queue of a batch."""
        self.offer_for("commit_all", batch, partial(commit_all, self.both))

    @rule()
    def flush(self) -> None:
        """Visible entries are on disk."""
        self.offer("flush", self.both.flush_queues)

    @rule(of=QUEUES)
    def read(self, of: int) -> None:
        """A consumer reads all that it may."""
        self.both.read(of, self.both.queues[of].committed)

    @rule(end=ENDS, choices=CHOICES)
    def crash(self, end: str | None, choices: list[int]) -> None:
        """Another life, if this one ends."""
        if end is not None:
            self.both.end_life(end, lambda ways: choices.pop() % ways if choices else 0)

    def teardown(self) -> None:
        """What is left to do is done, and nothing is forgotten."""
        if hasattr(self, "both") and sys.exc_info()[0] is None:  # otherwise the machine has failed already
            finish(self.both)
            for what in +self.both.sometimes:
                event(what)

    def offer(self, name: str, step: Callable[[], object]) -> None:
        """A step is offered; that both refuse it is well."""
        try:
            step()
        except Refused:
            event(f"{name} is refused")
        except Stopped:
            if not self.both.stopped:
                raise
        else:
            event(f"{name} is taken")
        self.batches += self.both.cut[-1:] if self.both.cut[-1:] != self.batches[-1:] else []

    def offer_for(self, name: str, batch: int, step: Callable[[DispatchBatch], object]) -> None:
        """The same, for one of the batches that were ever cut."""
        if self.batches:
            self.offer(name, lambda: step(self.batches[-1 - batch % len(self.batches)]))


def first_failure(cases: int) -> tuple[int, str] | None:
    """After how many programs, always the same ones, something came out wrong, and what."""
    begun = 0

    class Counted(DispatchMachine):
        def __init__(self) -> None:
            super().__init__()
            nonlocal begun
            begun += 1

    as_they_come = settings(
        max_examples=cases,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    try:
        run_state_machine_as_test(Counted, settings=as_they_come)
    except Exception as error:  # noqa: BLE001 - whatever a program raises is what was looked for
        return begun, f"{type(error).__name__}: {error}"
    return None


def write(both: Beside, batch: DispatchBatch) -> None:
    """A worker builds its batch and says so; one without it only says so. Raises Refused."""
    if batch in both.hands:  # the memory of another life is gone
        both.build(batch)
    both.wrote(batch)


def fail(both: Beside, batch: DispatchBatch) -> None:
    """A worker fails, and says so. Raises Refused."""
    if batch in both.hands:
        both.spoil(batch)
    both.failed(batch)


def commit_all(both: Beside, batch: DispatchBatch) -> None:
    """What is written of the queues of a batch becomes visible, if the batch is of this life."""
    if batch in both.cut:
        both.commit_all(batch)


def work(both: Beside) -> DispatchBatch | None:
    """What a worker of a store does: what is in hand, what waits, or what is scanned; None where there is nothing."""
    if not both.hands and both.take() is None and both.scan() is not None:
        both.take()
    for batch in both.hands[:1]:
        write(both, batch)
        both.commit_all(batch)
        return batch
    return None


def finish(both: Beside) -> None:
    """All that is left is done, first what workers have in hand; then nothing is forgotten."""
    both.flush_log()
    working = True
    while working and not both.stopped:
        for of in range(len(both.queues)):
            both.commit(of)
        working = work(both) is not None
    both.everything_is_visible()
