"""Hypothesis drives dispatch and its model: every step is always offered, and both take it, or both refuse.

The rules are the steps of `spec/dispatch.py`, and those around it, which have no counterpart there
(`OUTSIDE_THE_SPEC`, with a reason each). `dispatch_refinement.py` compares the states inside each step, so that a
failing program consists of steps alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import initialize

from gapless.properties.machines.dispatch_refinement import LIFE_ENDS, DispatchRefinement
from gapless.properties.machines.stateful.refinement_machine import CHOICES, RefinementMachine, chosen, offered
from gapless.properties.machines.stateful.subject_machine import SubjectMachine
from gapless.properties.subject import ENDLESS, SubjectBatch, SubjectLayout

QUEUES = st.integers(0, 1)
MESSAGES = st.lists(QUEUES, min_size=1, max_size=4)
BATCHES = st.integers(0, 5)  # counted from the newest that was cut, in any life
NUMBERS = st.integers(-1, 2)  # counted from the one that is due
ENDS = st.sampled_from((None,) * 15 + LIFE_ENDS)  # most lives are long
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


def write(pair: DispatchRefinement, batch: SubjectBatch) -> None:
    """A worker builds its batch and reports it; a worker that does not have it only reports it: both refuse that."""
    if batch in pair.hands:  # the memory of another life is gone
        pair.build(batch)
    pair.wrote(batch)


def fail(pair: DispatchRefinement, batch: SubjectBatch) -> None:
    """A worker fails and reports it, where a subject knows of that. Both may refuse it."""
    if not pair.has("failed"):
        return
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


def _append(pair: DispatchRefinement, messages: list[int]) -> None:
    for q in messages:
        pair.append(q)


def _of_any_life(step: Callable[[DispatchRefinement, SubjectBatch], object]) -> Callable[..., None]:
    """The step for one of the batches that were ever cut, if there is one."""

    def offer(pair: DispatchRefinement, batch: int) -> None:
        if pair.ever_cut:
            step(pair, pair.ever_cut[-1 - batch % len(pair.ever_cut)])

    return offer


def _end_life(pair: DispatchRefinement, end: str | None, choices: list[int]) -> None:
    """This life ends, perhaps, and another begins."""
    if end is not None:
        pair.end_life(end, chosen(choices))


class DispatchMachine(RefinementMachine, SubjectMachine):
    """Dispatch of two queues, on a simulated disk, and the model."""

    @initialize(layout=LAYOUTS, messages=MESSAGES)
    def open(self, layout: SubjectLayout, messages: list[int]) -> None:
        """A store with some messages."""
        self.subject = type(self).make()
        layout = layout if self.has("roll") else replace(layout, file_size=ENDLESS)
        self.pair = DispatchRefinement(self.subject, layout, 2)
        _append(self.pair, messages)
        self.pair.flush_log()

    append = offered(_append, messages=MESSAGES)
    flush_log = offered(DispatchRefinement.flush_log)
    scan = offered(DispatchRefinement.scan)
    scan_number = offered(
        lambda pair, q, number: pair.scan_number(q, pair.models[q].scanned + number), q=QUEUES, number=NUMBERS
    )
    take = offered(_of_any_life(DispatchRefinement.take), batch=BATCHES)
    take_oldest = offered(DispatchRefinement.take)
    write = offered(_of_any_life(write), batch=BATCHES)
    fail = offered(_of_any_life(fail), batch=BATCHES)
    work = offered(work)
    commit = offered(DispatchRefinement.commit, q=QUEUES)
    commit_all = offered(_of_any_life(commit_all), batch=BATCHES)
    flush = offered(DispatchRefinement.flush_queues)
    read = offered(lambda pair, q: pair.read(q, pair.committed(q)), q=QUEUES)
    crash = offered(_end_life, end=ENDS, choices=CHOICES)

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

    def come_to_rest(self) -> None:
        """All that is left is done; then every message is visible."""
        finish(self.pair)
