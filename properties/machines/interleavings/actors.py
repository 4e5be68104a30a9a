"""The actors that work on a small store, one step at a time, and the plan of their faults."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields, replace
from typing import Any, get_type_hints

from gapless.properties.machines.dispatch_refinement import BEGIN_AGAIN, DispatchRefinement
from gapless.properties.machines.mismatch import expect
from gapless.properties.simulation.schedules import Actor
from gapless.properties.subject import ENDLESS, Subject, SubjectBatch, SubjectLayout


@dataclass(frozen=True, slots=True)
class Plan:
    """The parameters of a run, as a value that can be printed and parsed.

    `queues`: the queue of each message · `batch`: records of a batch, at most · `flying`: batches in flight, at most ·
    `overlap`: two workers may be at one queue · `synchronous`: consumers see only what is on disk · `file`: bytes of a
    log file; a record has some 110 · `entries`: of a queue file · `room`: of a bitmap at first · `fails`: which of all
    builds fail, counted from 0 · `retries`: how often a batch is tried again · `refused`: which flushes of queues fail
    · `reads`: how often each queue is read · `crashes`: how lives end, one after the other · `after`: how many steps
    come before the first may end · `seed`: decides what survives a crash.
    """

    queues: tuple[int, ...] = (0, 0, 0)
    batch: int = 1
    flying: int = 8
    workers: int = 2
    overlap: int = 1
    synchronous: int = 0
    file: int = 512
    entries: int = 3
    room: int = 1
    fails: tuple[int, ...] = ()
    retries: int = 3
    refused: tuple[int, ...] = ()
    reads: int = 1
    crashes: tuple[str, ...] = ()
    after: int = 0
    seed: int = 0

    def __str__(self) -> str:
        """The queues, and all that differs from the defaults."""
        values = ((f.name, getattr(self, f.name), f.default) for f in fields(self))
        shown = [(name, value) for name, value, usual in values if value != usual or name == "queues"]
        return " ".join(f"{name}={','.join(map(str, v)) if isinstance(v, tuple) else v}" for name, v in shown)

    @classmethod
    def parse(cls, text: str) -> Plan:
        """The plan of such a text. Raises ValueError."""
        kinds = get_type_hints(cls)
        given: dict[str, Any] = {}
        for word in text.split():
            name, _, value = word.partition("=")
            if name not in kinds or not value:
                raise ValueError(f"{word!r}: expected {', '.join(kinds)}, each with `=` and a value")
            kind = {tuple[int, ...]: _numbers, tuple[str, ...]: _words}.get(kinds[name], int)
            given[name] = kind(value)
        return cls(**given)

    def layout(self) -> SubjectLayout:
        """That of the store."""
        return SubjectLayout(
            file_size=self.file,
            queue_entries=self.entries,
            synchronous=bool(self.synchronous),
            batch_records=self.batch,
            in_flight=self.flying,
            overlap=bool(self.overlap),
            retries=self.retries,
            bitmap=self.room,
        )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


class Simulation:
    """A plan while it runs: the store with its model, and the actors."""

    def __init__(self, make: Callable[[], Subject], plan: Plan) -> None:
        subject, layout = make(), plan.layout()
        layout = layout if "roll" not in subject.absent else replace(layout, file_size=ENDLESS)
        self.pair = DispatchRefinement(subject, layout, 1 + max(plan.queues))
        self.plan = self._possible(plan)
        self.steps = 0
        self.builds = 0
        self.crashes = 0
        self._appended = self._syncs = 0
        self._chance = random.Random(plan.seed)  # noqa: S311 - the same for the same seed is all that is asked of it.
        self.workers = [Worker(self) for _ in range(plan.workers)]
        self.readers = [QueueReader(self.pair, q, plan.reads) for q in range(len(self.pair.names))]
        self._unsettled: set[int] = set()  # queues that were written to since their last commit
        self._tried: dict[str, Hashable] = {}  # the situation in which an actor found nothing to do
        self.actors = self._actors()

    def _possible(self, plan: Plan) -> Plan:
        """The plan without what the subject has no verb for; that is counted."""
        fails = plan.fails if not plan.fails or self.pair.has("failed") else ()
        ends = tuple(how for how in plan.crashes if how not in BEGIN_AGAIN or self.pair.has("restart"))
        return replace(plan, fails=fails, crashes=ends)

    def _actors(self) -> list[Actor]:
        return [
            Actor("append", lambda: self._appended < len(self.plan.queues), self._append),
            Actor("flush", self._may_flush, self.pair.flush_log),
            Actor("scan", self._may_scan, self._scan),
            *(Actor(f"w{n}", worker.enabled, worker.step) for n, worker in enumerate(self.workers, 1)),
            *(Actor(f"commit.{q}", *self._committer(q)) for q in range(len(self.pair.names))),
            Actor("sync", self._may_sync, self._sync),
            *(Actor(f"read.{q}", reader.enabled, reader.step) for q, reader in enumerate(self.readers)),
            Actor("crash", self._may_crash, self._crash),
        ]

    # -- the log and the scanner -------------------------------------------------------------------------------------

    def _append(self) -> None:
        self.pair.append(self.plan.queues[self._appended])
        self._appended += 1

    def _may_flush(self) -> bool:
        s = self.pair.subject.as_log()
        return s.flushed < s.end

    def _may_scan(self) -> bool:
        pair = self.pair
        return (
            not pair.stopped and pair.subject.progress().scanned < pair.limit and self._is_new("scan", len(pair.flying))
        )

    def _scan(self) -> None:
        if self.pair.scan() is None:
            self._tried["scan"] = len(self.pair.flying)

    def _is_new(self, actor: str, things: Hashable) -> bool:
        return self._tried.get(actor) != things

    # -- commit and flush --------------------------------------------------------------------------------------------

    def wrote(self, batch: SubjectBatch) -> None:
        """A worker has written its entries: there may be something to commit."""
        self.pair.wrote(batch)
        self._unsettled.update(q for q, *_ in self.pair.rows(batch))

    def _committer(self, q: int) -> tuple[Callable[[], bool], Callable[[], None]]:
        def commit() -> None:
            self._unsettled.discard(q)
            self.pair.commit(q)

        return lambda: q in self._unsettled and not self.pair.stopped, commit

    def _synced(self) -> Hashable:
        return self.pair.safe, *[model.committed for model in self.pair.models]

    def _may_sync(self) -> bool:
        wanted = any(model.flushed < model.committed for model in self.pair.models)
        return wanted and not self.pair.stopped and self._is_new("sync", self._synced())

    def _sync(self) -> None:
        self._tried["sync"] = self._synced()
        self.pair.flush_queues(refused=self._syncs in self.plan.refused)
        self._syncs += 1

    # -- another life ------------------------------------------------------------------------------------------------

    def _may_crash(self) -> bool:
        self.steps += 1  # asked once before every step
        return self.crashes < len(self.plan.crashes) and self.steps > self.plan.after

    def _crash(self) -> None:
        self.pair.end_life(self.plan.crashes[self.crashes], self._chance.randrange)
        self.crashes += 1
        self._unsettled.clear()
        self._tried.clear()
        for worker in self.workers:
            worker.begin()
        for reader in self.readers:
            reader.begin()

    # -- for the scheduler -------------------------------------------------------------------------------------------

    def state(self) -> Hashable:
        """All that the future depends on."""
        pair, s, progress = self.pair, self.pair.subject.as_log(), self.pair.subject.progress()
        return (
            tuple(pair.models),
            (s.end, s.flushed, progress.scanned, progress.dispatched, pair.stopped),
            tuple((batch.low, *pair.phase(batch)) for batch in pair.flying),
            tuple(sorted(worker.state() for worker in self.workers)),  # workers are interchangeable
            tuple((reader.left, reader.upto) for reader in self.readers),
            frozenset(self._unsettled),
            frozenset(self._tried.items()),
            (self.builds if self.plan.fails else 0, self._syncs if self.plan.refused else 0, self.crashes),
        )

    def finished(self) -> None:
        """No actor has anything left to do: then every message is visible."""
        self.pair.everything_is_visible()


class Worker:
    """Takes a batch, builds it, reports it, and commits what it can; or fails. Each is a step of its own."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._pair = simulation.pair
        self.begin()

    def begin(self) -> None:
        """A new life: nothing is in hand."""
        self.batch: SubjectBatch | None = None
        self._next: Callable[[SubjectBatch], None] = self._build

    def state(self) -> tuple[int, str]:
        """The next step."""
        return (self.batch.low, self._next.__name__) if self.batch else (-1, "")

    def enabled(self) -> bool:
        """True if it has a batch in hand, or may take one."""
        if self._pair.stopped:
            return False
        return self.batch is not None or any(map(self._pair.may_take, self._pair.waiting))

    def step(self) -> None:
        """The next thing to do."""
        if self.batch is None:
            self.batch = self._pair.take()
            self._next = self._build
            expect(self.batch is not None, "take: nothing was found, and a batch may be taken")
        else:
            self._next(self.batch)

    def _build(self, batch: SubjectBatch) -> None:
        fails = self._simulation.builds in self._simulation.plan.fails
        self._simulation.builds += 1
        if fails:
            self._pair.spoil(batch)
            self._next = self._fail
        else:
            self._pair.build(batch)
            self._next = self._report

    def _fail(self, batch: SubjectBatch) -> None:
        self._pair.failed(batch)
        self.batch = None

    def _report(self, batch: SubjectBatch) -> None:
        self._simulation.wrote(batch)
        self._next = self._commit

    def _commit(self, batch: SubjectBatch) -> None:
        self._pair.commit_all(batch)
        self.batch = None


class QueueReader:
    """A consumer of a queue: it gets the commit position, and later reads up to there."""

    def __init__(self, pair: DispatchRefinement, q: int, times: int) -> None:
        self._pair = pair
        self._q = q
        self.left = times
        self.begin()

    def begin(self) -> None:
        """A new life: it asks again."""
        self.upto = 0

    def enabled(self) -> bool:
        """True if there is something to read, and it has not read often enough."""
        return self.left > 0 and self._pair.committed(self._q) > 0

    def step(self) -> None:
        """It asks how far it may read, or reads."""
        if not self.upto:
            self.upto = self._pair.committed(self._q)
        else:
            self._pair.read(self._q, self.upto)
            self.left, self.upto = self.left - 1, 0
