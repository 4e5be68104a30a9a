"""Hypothesis drives dispatch and its model: every step is always offered, and both take it, or both refuse.

The rules are the steps of `spec/dispatch.py`, and those around it, which have no counterpart there
(`OUTSIDE_THE_SPEC`, with a reason each). `dispatch_refinement.py` compares the states inside each step, so that a
failing program consists of steps alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from gapless.properties.machines.dispatch_refinement import LIFE_ENDS, DispatchRefinement
from gapless.properties.machines.stateful import failure_count
from gapless.properties.machines.stateful.subject_machine import SubjectMachine
from gapless.properties.subject import ENDLESS, Subject, SubjectBatch, SubjectLayout

QUEUES = st.integers(0, 1)
MESSAGES = st.lists(QUEUES, min_size=1, max_size=4)
BATCHES = st.integers(0, 5)  # counted from the newest that was cut, in any life
NUMBERS = st.integers(-1, 2)  # counted from the one that is due
ENDS = st.sampled_from((None,) * 15 + LIFE_ENDS)  # most lives are long
CHOICES = st.lists(st.integers(0, 11), max_size=6)
LAYOUTS = st.builds(
    SubjectLayout,
    file_size=st.sampled_from((256, 512, 2048)),
    queue_entries=st.integers(1, 4),
    synchronous=st.booleans(),
    batch_records=st.integers(1, 3),
    in_flight=st.integers(1, 4),
    overlap=st.booleans(),
    retries=st.integers(1, 3),
    bitmap=st.sampled_from((1, 2, 64)),
)

OUTSIDE_THE_SPEC = {
    "append": "a step of the log: dispatch meets the messages when it scans",
    "flush_log": "a step of the log: up to there, a synchronous store is scanned, and entries are flushed",
    "scan_number": "scan, of a record that claims a number of its own",
    "take_oldest": "take, of a batch that dispatch chooses",
    "commit_all": "commit, of every queue of a batch",
    "work": "all steps of a worker, so that much is done in a life",
    "fail": "in the model, a worker that failed still has its numbers",
    "read": "what consumers see is not part of the state",
}


class DispatchMachine(SubjectMachine):
    """Dispatch of two queues, on a simulated disk, and the model."""

    @initialize(layout=LAYOUTS, messages=MESSAGES)
    def open(self, layout: SubjectLayout, messages: list[int]) -> None:
        """A store with some messages."""
        self.subject = type(self).make()
        layout = layout if self.has("roll") else replace(layout, file_size=ENDLESS)
        self.pair = DispatchRefinement(self.subject, layout, 2)
        self.batches: list[SubjectBatch] = []
        self.append(messages)
        self.flush_log()

    @rule(messages=MESSAGES)
    def append(self, messages: list[int]) -> None:
        """More messages are appended."""
        for q in messages:
            self.pair.append(q)

    @rule()
    def flush_log(self) -> None:
        """The log is flushed."""
        self.pair.flush_log()

    @rule()
    def scan(self) -> None:
        """The next batch is cut."""
        self.offer("scan", self.pair.scan)

    @rule(q=QUEUES, number=NUMBERS)
    def scan_number(self, q: int, number: int) -> None:
        """The next record claims a number."""
        self.offer("scan_number", lambda: self.pair.scan_number(q, self.pair.models[q].scanned + number))

    @rule(batch=BATCHES)
    def take(self, batch: int) -> None:
        """A worker takes a batch."""
        self.offer_for("take", batch, self.pair.take)

    @rule()
    def take_oldest(self) -> None:
        """A worker takes the batch that waits longest."""
        self.offer("take_oldest", self.pair.take)

    @rule(batch=BATCHES)
    def write(self, batch: int) -> None:
        """A worker has written its entries."""
        self.offer_for("write", batch, partial(write, self.pair))

    @rule(batch=BATCHES)
    def fail(self, batch: int) -> None:
        """A worker could not write its entries."""
        if self.has("failed"):
            self.offer_for("fail", batch, partial(fail, self.pair))

    @rule()
    def work(self) -> None:
        """A worker does all that is due."""
        self.offer("work", partial(work, self.pair))

    @rule(q=QUEUES)
    def commit(self, q: int) -> None:
        """Written entries become visible."""
        self.offer("commit", lambda: self.pair.commit(q))

    @rule(batch=BATCHES)
    def commit_all(self, batch: int) -> None:
        """The same, for every queue of a batch."""
        self.offer_for("commit_all", batch, partial(commit_all, self.pair))

    @rule()
    def flush(self) -> None:
        """Visible entries are flushed."""
        self.offer("flush", self.pair.flush_queues)

    @rule(q=QUEUES)
    def read(self, q: int) -> None:
        """A consumer reads all visible entries."""
        self.pair.read(q, self.pair.committed(q))

    @rule(end=ENDS, choices=CHOICES)
    def crash(self, end: str | None, choices: list[int]) -> None:
        """This life ends, perhaps, and another begins."""
        if end is not None:
            self.pair.end_life(end, lambda ways: choices.pop() % ways if choices else 0)

    def teardown(self) -> None:
        """All that is left is done; then every message is visible."""
        if hasattr(self, "pair") and sys.exc_info()[0] is None:  # otherwise the machine has failed already
            finish(self.pair)
            for what in +self.pair.sometimes:
                event(what)

    def offer(self, name: str, step: Callable[[], object]) -> None:
        """Offer a step; both may refuse it."""
        try:
            step()
        except self.subject.errors.refused:
            event(f"{name} is refused")
        except self.subject.errors.stopped:
            if not self.pair.stopped:
                raise
        else:
            event(f"{name} is taken")
        self.batches += self.pair.cut[-1:] if self.pair.cut[-1:] != self.batches[-1:] else []

    def offer_for(self, name: str, batch: int, step: Callable[[SubjectBatch], object]) -> None:
        """Offer a step for one of the batches that were ever cut."""
        if self.batches:
            self.offer(name, lambda: step(self.batches[-1 - batch % len(self.batches)]))


def first_failure(make: Callable[[], Subject], cases: int) -> tuple[int, str] | None:
    """Run `failure_count.first_failure` for a subject."""
    return failure_count.first_failure(DispatchMachine.of(make), cases)


def write(pair: DispatchRefinement, batch: SubjectBatch) -> None:
    """A worker builds its batch and reports it; a worker that does not have it only reports it: both refuse that."""
    if batch in pair.hands:  # the memory of another life is gone
        pair.build(batch)
    pair.wrote(batch)


def fail(pair: DispatchRefinement, batch: SubjectBatch) -> None:
    """A worker fails and reports it. Both may refuse that."""
    if batch in pair.hands:
        pair.spoil(batch)
    pair.failed(batch)


def commit_all(pair: DispatchRefinement, batch: SubjectBatch) -> None:
    """Written entries of a batch's queues become visible, if the batch was cut in this life."""
    if batch in pair.cut:
        pair.commit_all(batch)


def work(pair: DispatchRefinement) -> SubjectBatch | None:
    """A worker does the batch that it has, or one that waits, or one it scans; None if there is none."""
    if not pair.hands and pair.take() is None and pair.scan() is not None:
        pair.take()
    for batch in pair.hands[:1]:
        write(pair, batch)
        pair.commit_all(batch)
        return batch
    return None


def finish(pair: DispatchRefinement) -> None:
    """All that is left is done, first what workers have; then every message is visible."""
    pair.flush_log()
    working = True
    while working and not pair.stopped:
        for q in range(len(pair.names)):
            pair.commit(q)
        working = work(pair) is not None
    pair.everything_is_visible()
