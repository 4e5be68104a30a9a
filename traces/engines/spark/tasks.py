"""The scheduling that both Spark engines share: tasks run in groups, and answers come back in order.

Some groups run at a time, so memory does not grow with the input. A group is a job of Spark; the engines start it in
their own ways.
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

from gapless.native.objects import shipment
from gapless.traces.engines.engine import Answer, Item, P, Progress
from gapless.traces.problems import EngineFailure, Unreadable, shown

TASKS = 4  # for every core, that are started together
AHEAD = 2  # such groups of tasks under way at a time: one that ends, and one so that no core waits for its last task
SOONEST, LATEST = 0.02, 0.2  # seconds until Spark is asked again if a job is done: a tenth of those that have passed
REPORTED_EVERY = 1.0  # seconds: progress takes some messages to the JVM
FEW = 1 << 22  # bytes that are judged, or pieces of them joined, in less time than it takes to start tasks for that
LACK = "Spark's workers lack something"
GAVE_UP = "Spark gave up"

Sent = TypeVar("Sent")  # a task, as the workers get it
Given_co = TypeVar("Given_co", covariant=True)


class Job(Protocol[Given_co]):
    """A group of running tasks."""

    @property
    def bytes(self) -> int:
        """The number of bytes that the tasks read."""

    def is_done(self) -> bool:
        """Return True if all tasks have ended, well or not."""

    def share_done(self) -> float:
        """Return the share of tasks that have ended."""

    def answers(self) -> Sequence[Given_co]:
        """Return the answers of the tasks, in order. Raises EngineFailure."""

    def cancel(self) -> None:
        """Cancel the tasks: their answers are no longer needed."""


class InGroups(ABC, Generic[Sent]):
    """Runs the tasks of a check on a cluster."""

    name = "spark"
    handed_on = 1 << 12  # more than that are read again, once it is known which are needed
    near = False
    sends_code = True
    processors = 1

    def __init__(self, cores: int, partitions: int | None, progress: Progress | None) -> None:
        self.partitions = partitions or TASKS * cores
        self.workers = cores or max(1, self.partitions // TASKS)
        self.buckets = max(64, self.partitions)
        self.progress = progress
        self.together = self.partitions  # tasks of one job, whose answers come together
        self.work = "gapless"

    @abstractmethod
    def shielded(self) -> AbstractContextManager[None]:
        """Defer interrupts while a message to Spark is under way, if that matters."""

    def prepare(self) -> None:
        """Make the workers ready for a first job. Raises EngineFailure."""

    @abstractmethod
    def sent(self, task: Callable[[Item], Answer]) -> Sent:
        """Send the task once to each worker."""

    @abstractmethod
    def started(self, sent: Sent, items: Sequence[Item], size: int, what: str) -> Job[Answer | Unreadable]:
        """Start the task on items of `size` bytes together; `what`: the job's description on Spark's pages."""

    @abstractmethod
    def shuffled(
        self,
        task: Callable[[Item], tuple[Answer, Sequence[P]]],
        items: Sequence[Item],
        known: Sequence[P],
        join: Callable[[Sequence[P]], Answer],
        what: str,
    ) -> Job[Answer | Unreadable]:
        """Start the tasks of `gather`; `what` as above."""

    def look(self, reads: Sequence[Path], writes: Sequence[Path]) -> None:
        """See `Engine`: by default, the first task that needs something finds out."""

    def finished(self, job: Job[Answer | Unreadable]) -> Iterator[Answer]:
        """Yield the answers of a job when it has ended. Raises as `each`."""
        return self._answers(deque([job]), None)

    def announce(self, what: str) -> None:
        """See `Engine`."""
        self.work = f"gapless {what}"

    def is_alone(self, sizes: Sequence[int]) -> bool:
        """See `Engine`: a small file, of which there may be thousands, takes less time than to start a job."""
        return len(sizes) == 1 and sizes[0] <= FEW

    def located(self, path: Path) -> Path:
        """See `Engine`: a worker has another working directory."""
        return path.absolute()

    def each(self, task: Callable[[Item], Answer], items: Sequence[Item], sizes: Sequence[int]) -> Iterator[Answer]:
        """See `Engine`."""
        forward = Forward(self.progress, sum(sizes)) if self.progress else None
        if self.is_alone(sizes):
            answer = task(items[0])
            if forward:
                forward.report(sizes[0])
            yield answer
            return
        self.prepare()
        with self.shielded():
            sent = self.sent(task)
        waiting: deque[Job[Answer | Unreadable]] = deque()
        todo = iter(zip(items, sizes, strict=True))
        ahead = max(AHEAD, -(-AHEAD * self.partitions // self.together))
        first = 0
        while some := list(islice(todo, self.together)):
            what = f"{self.work}: {stretches(first + 1, first + len(some), len(items))}"
            first += len(some)
            with self.shielded():
                waiting.append(self.started(sent, [item for item, _ in some], sum(size for _, size in some), what))
            if len(waiting) >= ahead:
                yield from self._answers(waiting, forward, leave=ahead - 1)
        yield from self._answers(waiting, forward)

    def gather(
        self,
        task: Callable[[Item], tuple[Answer, Sequence[P]]],
        items: Sequence[Item],
        known: Sequence[P],
        join: Callable[[Sequence[P]], Answer],
    ) -> Iterator[Answer]:
        """See `Engine`: pieces are shuffled by bucket; a few known ones are joined here."""
        if not items and sum(part.size for part in known) <= FEW:
            yield from joined(join, ((part.bucket, (True, part)) for part in known))
            return
        self.prepare()
        with self.shielded():
            job = self.shuffled(task, items, known, join, f"{self.work}: traces of several stretches")
        yield from self.finished(job)

    def _answers(
        self, waiting: deque[Job[Answer | Unreadable]], forward: Forward | None, leave: int = 0
    ) -> Iterator[Answer]:
        """Yield the answers of the waiting jobs, the oldest first, until only some are left. Raises Unreadable."""
        try:
            while len(waiting) > leave:
                pause = SOONEST
                while not self._is_done(waiting, forward):
                    time.sleep(pause)
                    pause = min(1.1 * pause, LATEST)
                with self.shielded():
                    answers = waiting[0].answers()
                if forward:
                    forward.finished += waiting[0].bytes
                    forward.report(0)  # Spark counts its tasks late: a job may be done with some of them uncounted
                waiting.popleft()
                yield from (_readable(answer) for answer in answers)
        except BaseException:
            with self.shielded(), suppress(Exception):  # the first error is the one to report
                for job in waiting:
                    job.cancel()
            raise

    def _is_done(self, waiting: deque[Job[Answer | Unreadable]], forward: Forward | None) -> bool:
        with self.shielded():
            done = waiting[0].is_done()
            if forward and forward.is_due():
                forward.report(sum(job.bytes * job.share_done() for job in waiting))
        return done


class Forward:
    """Progress that never decreases: Spark counts tasks as ended before their answers arrive."""

    def __init__(self, progress: Progress, total: int) -> None:
        self.progress = progress
        self.total = total
        self.done = self.finished = 0
        self.reported = -REPORTED_EVERY

    def is_due(self) -> bool:
        """True once a second."""
        return time.monotonic() - self.reported >= REPORTED_EVERY

    def report(self, more: float) -> None:
        """Report so many bytes more than the finished ones."""
        self.reported = time.monotonic()
        self.done = max(self.done, min(self.finished + int(more), self.total))
        self.progress(self.done, self.total)


def stretches(first: int, last: int, total: int) -> str:
    """Say which ones of all, such as `stretches 9 to 16 of 39`."""
    return f"stretch {first} of {total}" if first == last else f"stretches {first} to {last} of {total}"


def _readable(answer: Answer | Unreadable) -> Answer:
    """Return the answer. Raises Unreadable if it is an error of its item."""
    if isinstance(answer, Unreadable):
        raise answer
    return answer


def failure(words: Sequence[str], hosts: Callable[[], str] = str) -> EngineFailure:
    """Make the failure of a job out of Spark's words; names the host whose Python is missing or of another version.

    `hosts`: called for the names of all hosts where Spark's words name none.
    """
    text = "\n".join(words)
    match = re.search(r"different version:? \(?(\d+[., ]+\d+)\)? than that in driver:? (\d+\.\d+)", text)
    if match:
        theirs = ".".join(re.findall(r"\d+", match[1]))
        lack = f"its Python is {theirs}, and {match[2]} is needed, as here: name one by PYSPARK_PYTHON"
    elif match := re.search(r'Cannot run program "([^"]+)".*\berror[=:] ?2\b', text):
        lack = f"there is no Python at {match[1]}: name one by PYSPARK_PYTHON, or send an environment"
    else:
        return EngineFailure(f"{GAVE_UP}: {first_error(words)}")
    named = re.search(r"\(TID \d+\) \(([^\s)]+)", text)
    return EngineFailure(f"{LACK}: {shown(named[1] if named else hosts() or 'a worker')}: {shown(lack)}")


def first_error(words: Iterable[str]) -> str:
    """Return the last line of a worker's error, or the first of the innermost of Spark's."""
    texts = [[line.strip() for line in text.splitlines() if line.strip()] for text in words]
    lines = [line for text in texts for line in text]
    errors = [match[1] for line in lines if (match := re.match(r'details = "(.+)"', line))]  # of gRPC
    errors += [line for line in lines if re.match(r"\w+(Error|Exception|Interrupt)\b", line)]
    errors += [line.partition("SparkException: ")[2].partition(". ")[0] for line in lines if "SparkException: " in line]
    innermost = next((text[0] for text in reversed(texts) if text), "without a reason")
    return shown(errors[0] if errors else innermost)


class WithCode(Generic[Item, Answer]):
    """A task on its way to the workers, with the native code of this process: there it arrives as the task alone."""

    def __init__(self, task: Callable[[Item], Answer]) -> None:
        self.task = task

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (shipment.packed(), self.task)


# -- what a worker does --------------------------------------------------------------------------------------------


def _arrived(code: shipment.Shipment | None, task: Callable[[Item], Answer]) -> Callable[[Item], Answer]:
    """Keep the code of a task, and return the task."""
    if code is not None:
        shipment.unpack(code)
    return task


def run(task: Callable[[Item], Answer], item: Item) -> Answer | Unreadable:
    """Run the task on one item; Unreadable is returned, because Spark would retry after an exception."""
    try:
        return task(item)
    except Unreadable as problem:
        return problem


def handed_on(
    task: Callable[[Item], tuple[Answer, Sequence[P]]], item: Item
) -> Iterator[tuple[int, tuple[bool, P | Answer | Unreadable]]]:
    """Yield the answer for an item, and its pieces by bucket; True marks a piece."""
    found = run(task, item)
    if isinstance(found, Unreadable):
        yield 0, (False, found)
        return
    answer, parts = found
    yield 0, (False, answer)
    yield from ((part.bucket, (True, part)) for part in parts)


def joined(join: Callable[[Sequence[P]], Answer], rows: Iterable[tuple[int, tuple[bool, Any]]]) -> Iterator[Answer]:
    """Yield the answers that exist already, and that of every bucket."""
    buckets: dict[int, list[P]] = {}
    for bucket, (is_piece, row) in rows:
        if is_piece:
            buckets.setdefault(bucket, []).append(row)
        else:
            yield row
    while buckets:
        yield join(buckets.pop(min(buckets)))
