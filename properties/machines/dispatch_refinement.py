"""Refinement of dispatch: a subject and its model take every step together, and must stay in the same state.

The subject is a store on a simulated disk; the model is a state of `spec/dispatch.py` for each queue. What the spec
does not describe is compared with what was appended (`ground_truth.py`): which records a batch has, what visible
entries say, how far `dispatched` may be. A difference raises `Mismatch`. The next step is chosen elsewhere: by
schedules (`interleavings/`) and by Hypothesis (`stateful/dispatch_machine.py`).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from functools import partial

from gapless.properties.machines.ground_truth import GroundTruth
from gapless.properties.machines.mismatch import Mismatch, expect
from gapless.properties.machines.spec_refinement import require_same
from gapless.properties.simulation.choices import Choose, plainest
from gapless.properties.simulation.simulated_disk import SimulatedDisk
from gapless.properties.subject import Subject, SubjectBatch, SubjectLayout
from gapless.spec import dispatch as spec
from gapless.spec.catalog import END, SPECS
from gapless.spec.language import Number, Refused

BEGIN_AGAIN = ("restart", "again")
LIFE_ENDS = ("lose", "tear", "kill", *BEGIN_AGAIN)
"""How a life ends: the power fails and takes all that was not flushed, or a part of it; the process dies; dispatch
begins again from the safe entries, or from the log's start."""

PLANNED = RuntimeError("the build failed as planned")

ModelStep = Callable[[spec.State, Number], spec.State]


class DispatchRefinement(GroundTruth):
    """A store's dispatch, and a model for each of its queues.

    `ever_cut`, `cut`: the batches of all lives, and of this one; of these, some are `waiting` for a worker, in the
    `hands` of one, `flying`: not yet visible with all before them · `attempts`: how often a batch failed · `stopped`:
    in this life, a batch failed too often, or the disk failed.
    """

    def __init__(self, subject: Subject, layout: SubjectLayout, queues: int) -> None:
        super().__init__(subject, layout, queues)
        self.retries = layout.retries or 0
        self.ever_cut: list[SubjectBatch] = []
        self.models = [spec.open(spec.INITIAL, Number(0), int(self.layout.overlap))] * queues
        self._begin()

    # -- scan --------------------------------------------------------------------------------------------------------

    def phase(self, batch: SubjectBatch) -> tuple[int, int]:
        """Counts of batches that wait, are with a worker or written; and of failures."""
        return (2 if batch in self.done else int(batch in self.hands)), self.attempts.get(batch, 0)

    @property
    def is_full(self) -> bool:
        """True if no batch may be cut until one is finished."""
        return len(self.flying) >= self.layout.in_flight

    def scan(self) -> SubjectBatch | None:
        """Cut the next batch: the messages that come next, and none that a crash could take from consumers."""
        low, limit, was_full = self.subject.progress().scanned, self.limit, self.is_full
        batch = self.subject.scan()
        full = self.subject.progress().full
        expect(full == was_full, f"scan: full is {full} with {len(self.flying)} batches in flight")
        if batch is None:
            self.tally["nothing was cut, for too much was in flight"] += was_full
            expect(was_full or low >= limit, f"scan: nothing was cut, and the log continues from {low} to {limit}")
            return None
        expect(not was_full, f"scan: a batch was cut, and {len(self.flying)} were in flight")
        expect(batch.low == low, f"scan: a batch begins at {batch.low}, and the one before it ended at {low}")
        expect(batch.high <= limit, f"scan: a batch goes up to {batch.high}, and the log is safe up to {limit}")
        self._expect_rows(batch)
        for q, number, *_ in self.rows(batch):
            self._model("scan", q, spec.scan, number)
        self.cut.append(batch)
        self.ever_cut.append(batch)
        self.waiting.append(batch)
        self.flying.append(batch)
        self.compare()
        return batch

    def scan_number(self, q: int, number: int) -> SubjectBatch | None:
        """The next record claims a number: both give it, or both refuse, and then the record is taken back.

        Numbers below 1 are not tried: a queue that is deleted and created again begins at 0, and is another subject of
        the model. Nor is anything tried where other records are due first.
        """
        s, scanned = self.subject.as_log(), self.subject.progress().scanned
        if number < 1 or self.layout.synchronous or self.is_full or scanned < s.end or not self.has("claim"):
            return None
        due = self.subject.reach(self.names[q]).next
        message = self.claim(q, number)
        if number == due:
            return self.scan()
        if message.position == scanned:  # it is not the first of a new file, behind a blank
            self._expect_damaged(q, number)
        self.take_back(message, due)
        self.compare()
        return None

    def _expect_damaged(self, q: int, number: int) -> None:
        name, due = self.label(q), self.models[q].scanned
        expect(number != due, "the model would give the number")
        try:
            self.subject.scan()
        except self.subject.errors.damaged as damaged:
            message, folder = str(damaged), self.subject.files["log"].rstrip("*")
            expect(name in message and folder in message, f"scan: it does not say where: {message}")
            self.tally["a wrong number was refused"] += 1
        else:
            raise Mismatch(f"scan: {name} gave number {number}, and {due} was due")

    def _expect_rows(self, batch: SubjectBatch) -> None:
        """A batch has those messages of its part of the log that are not in their queue yet, in order."""
        due = [
            (message.queue, message.number, message.position, message.size)
            for message in self.log
            if batch.low <= message.position < batch.high and message.number >= self.models[message.queue].scanned
        ]
        found = self.rows(batch)
        if found != due:
            raise Mismatch(f"scan: the batch {batch.low}:{batch.high} has {found}, and the log {due} there")

    # -- build -------------------------------------------------------------------------------------------------------

    def take(self, batch: SubjectBatch | None = None) -> SubjectBatch | None:
        """A worker takes a batch: a given one, or what dispatch finds. Raises what it refuses with, if both do."""
        may = any(map(self.may_take, self.waiting)) if batch is None else self.may_take(batch)
        try:
            taken = self.subject.take(batch)
        except self.subject.errors.refused as refused:
            expect(
                not may and batch is not None and self._refuses(spec.take, batch),
                f"take: {refused}; the model takes it",
            )
            raise
        expect(may == (taken is not None), f"take: {taken or 'nothing'} was taken; these wait: {self.waiting}")
        if taken is not None:
            expect(self.may_take(taken), f"take: {taken} was taken, and may not be")
            if not self.attempts.get(taken):
                for q, number in self._first_rows(taken):
                    self._model("take", q, spec.take, number)
            self.waiting.remove(taken)
            self.hands.append(taken)
        self.compare()
        return taken

    def may_take(self, batch: SubjectBatch) -> bool:
        """True if a worker may take a batch: again after a failure, or for the first time, if the model accepts it."""
        return batch in self.waiting and (batch in self.attempts or self._refusal(spec.take, batch) is None)

    def _first_rows(self, batch: SubjectBatch) -> Iterable[tuple[int, int]]:
        """The queues and numbers that a worker takes first: all, or one of each queue where workers may not overlap."""
        if self.layout.overlap:
            return ((q, number) for q, number, *_ in self.rows(batch))
        return self._lowest(batch).items()

    def _lowest(self, batch: SubjectBatch) -> dict[int, int]:
        """The lowest number that each queue has in a batch."""
        lowest: dict[int, int] = {}
        for q, number, *_ in self.rows(batch):
            lowest[q] = min(number, lowest.get(q, number))
        return lowest

    def _refusal(self, step: ModelStep, batch: SubjectBatch) -> Refused | None:
        """The reason why the model refuses a step for a batch."""
        for q, number in self._first_rows(batch):
            try:
                step(self.models[q], Number(number))
            except Refused as refused:
                return refused
        return None

    def _refuses(self, step: ModelStep, batch: SubjectBatch) -> bool:
        """True if the model refuses, too.

        It knows nothing of batches without entries, of workers that fail, and of batches from before a crash.
        """
        unknown = not batch.entries or batch in self.attempts or batch not in self.cut
        return unknown or self._refusal(step, batch) is not None

    def build(self, batch: SubjectBatch) -> None:
        """A worker writes the entries. They are invisible yet, so the model takes no step."""
        self.subject.build(batch)
        self.look()

    def spoil(self, batch: SubjectBatch) -> None:
        """A worker that is about to fail leaves rubbish in place of its entries."""
        if self.has("spoil"):
            self.subject.spoil(batch)
            self.look()

    def wrote(self, batch: SubjectBatch) -> None:
        """A worker has written its entries. Raises what it refuses with if no worker has the batch: both do."""
        has = batch in self.hands
        try:
            self.subject.wrote(batch)
        except self.subject.errors.refused as refused:
            expect(not has and self._refuses(spec.write, batch), f"wrote: {refused}; the model writes")
            raise
        expect(has, f"wrote: no worker had {batch}, and it was accepted")
        self.hands.remove(batch)
        self.done.append(batch)
        alone = not self.layout.overlap
        first = self._lowest(batch)
        for q, number, *_ in self.rows(batch):
            if alone and number > first[q]:
                self._model("take", q, spec.take, number)
            self._model("write", q, spec.write, number)
        self._settle()

    def failed(self, batch: SubjectBatch) -> bool:
        """The worker failed: the batch is tried again, or dispatch stops. In the model, a worker still has it."""
        tried = self.attempts.get(batch, 0)
        has, last = batch in self.hands, tried >= self.retries
        again = self.subject.failed(batch, PLANNED)
        expect(has, f"failed: no worker had {batch}, and it was accepted")
        self.hands.remove(batch)
        self.waiting.append(batch)
        self.attempts[batch] = tried + 1
        expect(again != last, f"failed {batch}, try {tried + 1}: it is {'' if again else 'not '}tried again")
        self.stopped = not again
        self.tally["a batch was tried again"] += again
        if self.stopped:
            self._expect_stopped(batch, str(PLANNED))
        self.compare()
        return again

    def _expect_stopped(self, batch: SubjectBatch | None, why: str) -> None:
        """Every step refuses, and says why."""
        self.tally["dispatch stopped"] += 1
        subject = self.subject
        verbs: list[Callable[[], object]] = [subject.scan, subject.take]
        verbs += [partial(subject.commit, name) for name in self.names]
        if batch is not None:
            verbs += [lambda: subject.take(batch), lambda: subject.wrote(batch)]
            verbs += [lambda: subject.failed(batch, PLANNED)] if self.has("failed") else []
        for verb in verbs:
            try:
                verb()
            except subject.errors.stopped as stopped:
                expect(why in str(stopped), f"dispatch has stopped, and does not say why: {stopped}")
            else:
                raise Mismatch("dispatch had stopped, and took another step")

    # -- commit and flush --------------------------------------------------------------------------------------------

    def commit(self, q: int) -> int:
        """Consumers of a queue see all entries before the first gap; returns where that is."""
        to = self.subject.commit(self.names[q])
        self._committed(q, to)
        self._settle()
        return to

    def commit_all(self, batch: SubjectBatch) -> None:
        """The same for every queue of a batch, in one step."""
        self.subject.commit_all(batch)
        for q in sorted({q for q, *_ in self.rows(batch)}):
            self._committed(q, self.committed(q))
        self._settle()

    def _committed(self, q: int, to: int) -> None:
        self._model("commit", q, spec.commit, to)
        if self.layout.synchronous and to:
            end, safe = self.by_queue[q][to - 1].end, self.safe
            expect(end <= safe, f"commit: consumers see a message that ends at {end}, and the log is safe up to {safe}")

    def _settle(self) -> None:
        """`dispatched` moves to the beginning of the first batch that is not in its queues."""
        gaps = (model.committed < max(model.bits.entries, default=0) for model in self.models)
        self.tally["an entry waited behind a gap"] += any(gaps)
        found = self.subject.progress().dispatched
        at = found if not self.flying else self.flying[0].low
        while self.flying and self._is_visible(self.flying[0]):
            at = self.flying.pop(0).high
        expect(found == at, f"commit: dispatched is {found}, and all before {at} is in its queue, and no more")
        self.compare()
        self.look()

    def _is_visible(self, batch: SubjectBatch) -> bool:
        return batch in self.done and all(number < self.models[q].committed for q, number, *_ in self.rows(batch))

    def flush_queues(self, *, refused: bool = False) -> None:
        """Visible entries become durable, as far as their messages are; or the disk fails, and dispatch stops."""
        if self.stopped:
            return  # what is tried then is tried where it stops
        refused = refused and self._has_queue_files()
        safe = self.safe
        due = [max(m.flushed, min(m.committed, self.ends_before(q, safe))) for q, m in enumerate(self.models)]
        wanted = any(upto > model.flushed for upto, model in zip(due, self.models, strict=True))
        if refused:
            self.disk.fail(errno.EIO, verb="sync", path=self.subject.files["queues"])
        try:
            self.subject.flush_queues()
        except self.subject.errors.any:
            expect(refused and wanted and not self.stopped, "flush: the disk did not refuse, and it failed")
            self.stopped = True
        self.disk.heal()
        expect(self.stopped == (refused and wanted), "flush: the disk refused, and no caller hears of it")
        for q, name in enumerate(self.names):
            flushed = self.subject.reach(name).flushed
            self._model("flush", q, spec.flush, flushed)
            whole = flushed == due[q] or (self.stopped and flushed < due[q])
            expect(whole, f"flush: {flushed} entries of {self.label(q)} count as safe, and {due[q]} may")
        self.look_at_the_disk()
        if self.stopped:
            self._expect_stopped(None, os.strerror(errno.EIO))
        self.compare()

    def _has_queue_files(self) -> bool:
        """True if the flush of queues can fail; that it cannot is counted."""
        kind = type(self.subject).__name__
        if "queues" in self.subject.files:
            return True
        self.tally[f"left out: a flush of queues that fails, for {kind} has no files of queues"] += 1
        return False

    # -- another life ------------------------------------------------------------------------------------------------

    def end_life(self, how: str, choose: Choose) -> None:
        """One of `LIFE_ENDS`; `choose` says what survives where the power takes a part."""
        if how in BEGIN_AGAIN and not self.has("restart"):
            return
        self.tally[f"life ended: {how}"] += 1
        match how:
            case "lose":
                self._open_again(self.disk.crash(plainest), self.safe)
            case "tear":
                self._open_again(self.disk.crash(choose), self.safe)
            case "kill":
                self._open_again(self.disk.kill(), self.log[-1].end if self.log else 0)
            case _:
                self._restart(from_start=how == "again")

    def _restart(self, *, from_start: bool) -> None:
        """Dispatch begins again where the safe entries end, or at the log's start; what follows them is rubbish."""
        positions, kept = [self.log[-1].end if self.log else 0], {}
        for q, name in enumerate(self.names):
            count = kept[name] = self.models[q].flushed
            positions += [message.position for message in self.by_queue[q][count : count + 1]]
            self.models[q] = spec.crash(self.models[q], count)
        self.subject.restart(kept, self.subject.as_log().start if from_start else min(positions))
        self._begin()

    def _open_again(self, disk: SimulatedDisk, at_least: int) -> None:
        """Recovery, step by step in the model: all that is in the log becomes visible and safe."""
        self.open_again(disk, at_least=at_least)
        for q, messages in enumerate(self.by_queue):
            kept, count = self.models[q].flushed, len(messages)
            self._model("crash", q, spec.crash, kept)
            for number in range(kept, count):
                for step in (spec.scan, spec.take, spec.write):
                    self._model(step.__name__, q, step, number)
            self._model("commit", q, spec.commit, count)
            self._model("flush", q, spec.flush, count)
        self._begin()

    def _begin(self) -> None:
        """Nothing is in flight."""
        self.cut: list[SubjectBatch] = []
        self.waiting: list[SubjectBatch] = []
        self.hands: list[SubjectBatch] = []
        self.flying: list[SubjectBatch] = []
        self.done: list[SubjectBatch] = []
        self.attempts: dict[SubjectBatch, int] = {}
        self.stopped = False
        self.compare()
        self.look()

    # -- both --------------------------------------------------------------------------------------------------------

    def _model(self, name: str, q: int, step: ModelStep, number: int) -> None:
        try:
            self.models[q] = step(self.models[q], Number(number))
        except Refused as refused:
            raise Mismatch(
                f"{name} {number} of {self.label(q)} was taken; the model needs: {refused.because}; otherwise "
                f"{refused.otherwise}"
            ) from None

    def compare(self) -> None:
        """The state of every queue is the model's."""
        for q, name in enumerate(self.names):
            model = self.models[q]
            require_same(self.subject.as_dispatch(name, model), model, f"{self.label(q)}: ")

    def everything_is_visible(self) -> None:
        """Without a possible step, every message is visible; once all is flushed, all is at rest."""
        if self.stopped:
            return
        self.flush_queues()
        for q, model in enumerate(self.models):
            try:
                SPECS["dispatch"].actions[END](model)
            except Refused as refused:
                raise Mismatch(f"{self.label(q)} is not at rest in the end: {refused}") from refused
        for q in range(len(self.names)):
            due, seen = self.ends_before(q, self.limit), self.committed(q)
            expect(seen == due, f"{self.label(q)}: {seen} of {due} messages are visible in the end")
        expect(self.subject.progress().idle, f"{len(self.flying)} batches are in flight in the end")
