"""What both Spark engines share: tasks run in groups, some groups at a time, and the answers come back in order.

So memory does not grow with the input. A group is a job of Spark; how one is started is the engines' own business.
"""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from gapless.traces.engines.engine import Answer, Item, P, Progress
from gapless.traces.problems import Unreadable, shown

TASKS = 4  # for every core, that are started together
AHEAD = 2  # such groups of tasks under way at a time: one that ends, and one so that no core waits for its last task
ASKED_EVERY = 0.02  # seconds
FEW = 1 << 22  # bytes that are judged, or pieces of them joined, in less time than it takes to start tasks for that

Sent = TypeVar("Sent")  # a task, as the workers get it
Given_co = TypeVar("Given_co", covariant=True)


class Job(Protocol[Given_co]):
    """Tasks under way."""

    @property
    def bytes(self) -> int:
        """How many bytes the tasks read."""

    def is_done(self) -> bool:
        """Whether all tasks have ended, well or not."""

    def share_done(self) -> float:
        """How many of the tasks have ended, as a share."""

    def answers(self) -> Sequence[Given_co]:
        """What the tasks answer_within, in their order. Raises Unreadable."""

    def cancel(self) -> None:
        """Nobody waits for it any more."""


class InGroups(ABC, Generic[Sent]):
    """Runs the tasks of a check on a cluster."""

    name = "spark"
    handed_on = 1 << 12  # more than that are read again, once it is known which are needed
    near = False
    processors = 1

    def __init__(self, cores: int, partitions: int | None, progress: Progress | None) -> None:
        self.partitions = partitions or TASKS * cores
        self.buckets = max(64, self.partitions)
        self.progress = progress

    @abstractmethod
    def held(self) -> AbstractContextManager[None]:
        """A block in which Spark is spoken to, and that an interrupt must not break off where this matters."""

    @abstractmethod
    def sent(self, task: Callable[[Item], Answer]) -> Sent:
        """The task, sent once to each worker."""

    @abstractmethod
    def started(self, sent: Sent, items: Sequence[Item], size: int) -> Job[Answer | Unreadable]:
        """Start the task on items that are `size` bytes long together."""

    @abstractmethod
    def shuffled(
        self,
        task: Callable[[Item], tuple[Answer, Sequence[P]]],
        items: Sequence[Item],
        known: Sequence[P],
        join: Callable[[Sequence[P]], Answer],
    ) -> Job[Answer | Unreadable]:
        """Start what `gather` does."""

    def is_alone(self, sizes: Sequence[int]) -> bool:
        """As `Engine` says: a small file, of which there may be thousands, is judged before a job would have begun."""
        return len(sizes) == 1 and sizes[0] <= FEW

    def located(self, path: Path) -> Path:
        """As `Engine` says: a worker has another working directory."""
        return path.absolute()

    def each(self, task: Callable[[Item], Answer], items: Sequence[Item], sizes: Sequence[int]) -> Iterator[Answer]:
        """As `Engine` says."""
        told = Forward(self.progress, sum(sizes)) if self.progress else None
        if self.is_alone(sizes):
            answer = task(items[0])
            if told:
                told.tell(sizes[0])
            yield answer
            return
        with self.held():
            sent = self.sent(task)
        waiting: deque[Job[Answer | Unreadable]] = deque()
        todo = iter(zip(items, sizes, strict=True))
        while some := list(islice(todo, self.partitions)):
            with self.held():
                waiting.append(self.started(sent, [item for item, _ in some], sum(size for _, size in some)))
            if len(waiting) >= AHEAD:
                yield from self._answers(waiting, told, leave=AHEAD - 1)
        yield from self._answers(waiting, told)

    def gather(
        self,
        task: Callable[[Item], tuple[Answer, Sequence[P]]],
        items: Sequence[Item],
        known: Sequence[P],
        join: Callable[[Sequence[P]], Answer],
    ) -> Iterator[Answer]:
        """As `Engine` says: pieces are shuffled by bucket; a few that are at hand are joined here."""
        if not items and sum(part.size for part in known) <= FEW:
            yield from joined(join, ((part.bucket, (True, part)) for part in known))
            return
        with self.held():
            job = self.shuffled(task, items, known, join)
        yield from self._answers(deque([job]), None)

    def _answers(
        self, waiting: deque[Job[Answer | Unreadable]], told: Forward | None, leave: int = 0
    ) -> Iterator[Answer]:
        """What the jobs that wait have to say, the oldest first, until only some are left. Raises Unreadable."""
        try:
            while len(waiting) > leave:
                while not self._is_done(waiting, told):
                    time.sleep(ASKED_EVERY)
                with self.held():
                    answers = waiting[0].answers()
                if told:
                    told.finished += waiting[0].bytes
                waiting.popleft()
                yield from (_readable(answer) for answer in answers)
        except BaseException:
            with self.held(), suppress(Exception):  # what went wrong already is what is told
                for job in waiting:
                    job.cancel()
            raise

    def _is_done(self, waiting: deque[Job[Answer | Unreadable]], told: Forward | None) -> bool:
        with self.held():
            done = waiting[0].is_done()
            if told:
                told.tell(sum(job.bytes * job.share_done() for job in waiting))
        return done


class Forward:
    """Progress that never steps back: Spark knows of tasks that have ended before anybody has their answers."""

    def __init__(self, progress: Progress, total: int) -> None:
        self.progress = progress
        self.total = total
        self.done = self.finished = 0

    def tell(self, more: float) -> None:
        """So many bytes more are done than were finished."""
        self.done = max(self.done, min(self.finished + int(more), self.total))
        self.progress(self.done, self.total)


def _readable(answer: Answer | Unreadable) -> Answer:
    """The answer. Raises Unreadable where it says that its item cannot be read."""
    if isinstance(answer, Unreadable):
        raise answer
    return answer


def told_by(words: Iterable[str]) -> str:
    """The last line of what a worker said, or the first of what Spark said."""
    lines = [line.strip() for text in words for line in text.splitlines() if line.strip()]
    said = [match[1] for line in lines if (match := re.match(r'details = "(.+)"', line))]  # of gRPC
    said += [line for line in lines if re.match(r"\w+(Error|Exception|Interrupt)\b", line)]
    said += [line.partition("SparkException: ")[2].partition(". ")[0] for line in lines if "SparkException: " in line]
    return shown((said or lines or ["why, it does not say"])[0])


# -- what a worker does --------------------------------------------------------------------------------------------


def run(task: Callable[[Item], Answer], item: Item) -> Answer | Unreadable:
    """The task, run on one item; that it cannot be read is an answer, for Spark would try it again."""
    try:
        return task(item)
    except Unreadable as problem:
        return problem


def handed_on(
    task: Callable[[Item], tuple[Answer, Sequence[P]]], item: Item
) -> Iterator[tuple[int, tuple[bool, P | Answer | Unreadable]]]:
    """What is said of an item, and the pieces that it hands on, each by its bucket; True marks a piece."""
    found = run(task, item)
    if isinstance(found, Unreadable):
        yield 0, (False, found)
        return
    answer, parts = found
    yield 0, (False, answer)
    yield from ((part.bucket, (True, part)) for part in parts)


def joined(join: Callable[[Sequence[P]], Answer], rows: Iterable[tuple[int, tuple[bool, Any]]]) -> Iterator[Answer]:
    """What was said already, and what there is to say of every bucket."""
    buckets: dict[int, list[P]] = {}
    for bucket, (is_piece, row) in rows:
        if is_piece:
            buckets.setdefault(bucket, []).append(row)
        else:
            yield row
    while buckets:
        yield join(buckets.pop(min(buckets)))
