"""The Spark engine: the same tasks as the local engine's, on a cluster, with the same answers.

Items travel as data, and a worker reads the bytes that its item names. The answers come back in order, some tasks at a
time, so that memory does not grow with the input. Only the pieces of `gather` are shuffled.

No other module knows Spark, but for `spark_session`, which starts it. A message to the JVM is never broken off: an
interrupt waits for the answer.
"""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from gapless.traces.engines.engine import Answer, Item, P, Progress
from gapless.traces.engines.spark_session import active_or_started, cause
from gapless.traces.problems import Unreadable

if TYPE_CHECKING:
    from pyspark import RDD, Broadcast, SparkContext

TASKS = 4  # for every core, that are started together
AHEAD = 2  # such groups of tasks under way at a time: one that ends, and one so that no core waits for its last task
ASKED_EVERY = 0.02  # seconds


@contextmanager
def started(master: str | None, partitions: int | None, progress: Progress | None) -> Iterator[Spark]:
    """Spark, on the session that is active, or on one of our own until the end. Raises UsageError."""
    with _interrupts() as interrupts, ExitStack() as stack:
        with interrupts.held():
            context, ours = active_or_started(master)
            if ours:
                stack.callback(_stop, context, interrupts)
        yield Spark(context, interrupts, partitions, progress)


def _stop(context: SparkContext, interrupts: _Interrupts) -> None:
    with interrupts.held():
        context.stop()


class Spark:
    """Runs the tasks of a check on a cluster."""

    name = "spark"
    handed_on = 1 << 12  # more than that are read again, once it is known which are needed

    def __init__(
        self, context: SparkContext, interrupts: _Interrupts, partitions: int | None, progress: Progress | None
    ) -> None:
        self.context = context
        self.interrupts = interrupts
        self.partitions = partitions or TASKS * context.defaultParallelism
        self.buckets = max(64, self.partitions)
        self.progress = progress

    def located(self, path: Path) -> Path:
        """The path as workers know it: those of this machine begin where this process did."""
        return path if str(self.context.master).startswith("local") else path.absolute()

    def each(self, task: Callable[[Item], Answer], items: Sequence[Item], sizes: Sequence[int]) -> Iterator[Answer]:
        """As `Engine` says: the task is broadcast, and every item is a task of Spark's."""
        told = _Forward(self.progress, sum(sizes)) if self.progress else None
        with self.interrupts.held():
            sent = self.context.broadcast(task)
        waiting: deque[_Job[Answer | Unreadable]] = deque()
        todo = iter(zip(items, sizes, strict=True))
        while some := list(islice(todo, self.partitions)):
            with self.interrupts.held():
                rows = self._rdd([item for item, _ in some]).map(partial(_run, sent))
                waiting.append(_Job(rows, sum(size for _, size in some)))
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
        """As `Engine` says: pieces are shuffled by bucket."""
        if not items and not known:
            return
        with self.interrupts.held():
            rows: Any = self._rdd([(part.bucket, (True, part)) for part in known])
            rows = rows.union(self._rdd(items).flatMap(partial(_handed_on, task)))
            job: _Job[Answer | Unreadable] = _Job(
                rows.partitionBy(self.partitions).mapPartitions(partial(_joined, join)), 0
            )
        yield from self._answers(deque([job]), None)

    def _answers(
        self, waiting: deque[_Job[Answer | Unreadable]], told: _Forward | None, leave: int = 0
    ) -> Iterator[Answer]:
        """What the jobs that wait have to say, the oldest first, until only some are left. Raises Unreadable."""
        try:
            while len(waiting) > leave:
                while not self._is_done(waiting, told):
                    time.sleep(ASKED_EVERY)
                with self.interrupts.held():
                    answers = waiting[0].answers()
                if told:
                    told.finished += waiting[0].bytes
                waiting.popleft()
                yield from (_readable(answer) for answer in answers)
        except BaseException:
            with self.interrupts.held(), suppress(Exception):  # what went wrong already is what is told
                for job in waiting:
                    job.cancel()
            raise

    def _is_done(self, waiting: deque[_Job[Any]], told: _Forward | None) -> bool:
        with self.interrupts.held():
            done = waiting[0].is_done()
            if told:
                told.tell(sum(job.bytes * job.share_done() for job in waiting))
        return done

    def _rdd(self, items: Iterable[Item]) -> RDD[Item]:
        """The items, each in a task of its own as long as there are few."""
        listed = list(items)
        return self.context.parallelize(listed, max(1, min(len(listed), self.partitions)))


class _Job(Generic[Answer]):
    """Tasks under way."""

    def __init__(self, rdd: RDD[Answer], size: int) -> None:
        self.rdd = rdd
        self.bytes = size
        self.future: Any = rdd._jrdd.collectAsync()  # noqa: SLF001 - only the JVM has it

    def is_done(self) -> bool:
        """Whether all tasks have ended, well or not."""
        return bool(self.future.isDone())

    def share_done(self) -> float:
        """How many of the tasks have ended, as a share; all of them, where Spark has forgotten the job."""
        tracker = self.rdd.context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in self.future.jobIds()]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        tasks = sum(stage.numTasks for stage in stages if stage)
        return sum(stage.numCompletedTasks for stage in stages if stage) / tasks if tasks else 0.0

    def answers(self) -> list[Answer]:
        """What the tasks answered, in their order. Raises Unreadable."""
        from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - comes with pyspark
        from pyspark.util import _load_from_socket  # noqa: PLC0415 - few need Spark

        jvm: Any = self.rdd.context._jvm  # noqa: SLF001 - what `RDD.collect` does, for a job that need not be waited for
        try:
            found = self.future.get()
        except Py4JJavaError as error:
            raise Unreadable(f"Spark gave up: {cause(error)}") from None
        rows = jvm.scala.jdk.javaapi.CollectionConverters.asScala(found.iterator())
        socket = jvm.PythonRDD.serveIterator(rows, "gapless")
        with _load_from_socket(socket, self.rdd._jrdd_deserializer) as answers:  # noqa: SLF001
            return list(answers)

    def cancel(self) -> None:
        """Nobody waits for it any more."""
        self.future.cancel()


class _Forward:
    """Progress that never steps back: Spark knows of tasks that have ended before anybody has their answers."""

    def __init__(self, progress: Progress, total: int) -> None:
        self.progress = progress
        self.total = total
        self.done = self.finished = 0

    def tell(self, more: float) -> None:
        """So many bytes more are done than were finished."""
        self.done = max(self.done, min(self.finished + int(more), self.total))
        self.progress(self.done, self.total)


# -- what a worker does --------------------------------------------------------------------------------------------


def _run(sent: Broadcast[Callable[[Item], Answer]], item: Item) -> Answer | Unreadable:
    """The task, run on one item; that it cannot be read is an answer, for Spark would try it again."""
    try:
        return sent.value(item)
    except Unreadable as problem:
        return problem


def _readable(answer: Answer | Unreadable) -> Answer:
    """The answer. Raises Unreadable where it says that its item cannot be read."""
    if isinstance(answer, Unreadable):
        raise answer
    return answer


def _handed_on(
    task: Callable[[Item], tuple[Answer, Sequence[P]]], item: Item
) -> Iterator[tuple[int, tuple[bool, P | Answer]]]:
    """What is said of an item, and the pieces that it hands on, each by its bucket; True marks a piece."""
    answer, parts = task(item)
    yield 0, (False, answer)
    yield from ((part.bucket, (True, part)) for part in parts)


def _joined(join: Callable[[Sequence[P]], Answer], rows: Iterable[tuple[int, tuple[bool, Any]]]) -> Iterator[Answer]:
    """What was said already, and what there is to say of every bucket."""
    buckets: dict[int, list[P]] = {}
    for bucket, (is_piece, row) in rows:
        if is_piece:
            buckets.setdefault(bucket, []).append(row)
        else:
            yield row
    while buckets:
        yield join(buckets.pop(min(buckets)))


# -- interrupts ----------------------------------------------------------------------------------------------------


class _Interrupts:
    """Ctrl-C, kept waiting while a message to the JVM is under way: its answer would be taken for that to the next."""

    def __init__(self) -> None:
        self.holding = False
        self.waiting = False

    def told(self, *_: object) -> None:
        """Ctrl-C was pressed."""
        if self.holding:
            self.waiting = True
        else:
            raise KeyboardInterrupt

    @contextmanager
    def held(self) -> Iterator[None]:
        """A block that is not interrupted; whoever tried is heard at its end."""
        self.holding = True
        try:
            yield
        finally:
            self.holding = False
            if self.waiting:
                self.waiting = False
                raise KeyboardInterrupt


@contextmanager
def _interrupts() -> Iterator[_Interrupts]:
    interrupts = _Interrupts()
    before = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, interrupts.told)
    except ValueError:  # another thread than the main one is never interrupted
        yield interrupts
        return
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)
