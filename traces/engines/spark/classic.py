"""The Spark engine of classic sessions: the tasks of the local engine, on a cluster, with the same answers.

Items travel as data, and a worker reads the bytes that its item names. Only the pieces of `gather` are shuffled.
`connect` does the same for sessions of Spark Connect, which have no RDDs.

A message to the JVM is never interrupted: an interrupt waits for the answer. While a session is started it ends the
JVM.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from gapless.traces.engines.engine import Answer, Item, P, Progress
from gapless.traces.engines.pyspark_versions import loaded
from gapless.traces.engines.spark import probe as spark_probe
from gapless.traces.engines.spark import workers as spark_workers
from gapless.traces.engines.spark.probe import Needs
from gapless.traces.engines.spark.session import active_or_started, cause, causes, end_of_ours, log_of
from gapless.traces.engines.spark.tasks import GAVE_UP, InGroups, Job, WithCode, failure, handed_on, joined, run
from gapless.traces.engines.spark.workers import archived
from gapless.traces.problems import EngineFailure, Unreadable

if TYPE_CHECKING:
    from pyspark import RDD, Broadcast, SparkContext

Found = TypeVar("Found")

GROUP, DESCRIPTION = "spark.jobGroup.id", "spark.job.description"
LARGE = 4 << 20  # bytes of an answer, at most: half of them were seen


@contextmanager
def started(
    master: str | None, partitions: int | None, progress: Progress | None, conf: Mapping[str, str] | None = None
) -> Iterator[Spark]:
    """Run Spark on the active session, or on one of our own until the end. Raises UsageError."""
    with _interrupts() as interrupts, ExitStack() as stack:
        context, ours = active_or_started(master, conf, interrupts.shielded)
        if ours:
            stack.callback(_stop, context, interrupts)
        engine = Spark(context, interrupts, partitions, progress)
        if ours and not engine.is_here:
            engine.send_gapless(archived())
        engine.has_looked = ours and engine.is_here
        try:
            yield engine
        except EngineFailure as failed:
            if not str(failed).startswith(GAVE_UP):
                raise
            raise EngineFailure(f"{failed}; {log_of(context)}") from None


def _stop(context: SparkContext, interrupts: _Interrupts) -> None:
    with interrupts.shielded():
        context.stop()
        end_of_ours()


class Spark(InGroups["Broadcast[Callable[[Any], Any]]"]):
    """Runs the tasks of a check on a cluster."""

    def __init__(
        self, context: SparkContext, interrupts: _Interrupts, partitions: int | None, progress: Progress | None
    ) -> None:
        super().__init__(context.defaultParallelism, partitions, progress)
        self.context = context
        self.interrupts = interrupts
        self.has_looked = True
        self.sends_code = not self.is_here  # where workers share a folder with this process
        most = int(context._jsc.sc().conf().getSizeAsBytes("spark.driver.maxResultSize", "1g"))  # noqa: SLF001 - only the JVM has it
        if most:
            self.together = max(1, min(self.partitions, most // LARGE))

    @property
    def is_here(self) -> bool:
        """True if the workers are processes of this machine."""
        return str(self.context.master).startswith("local")

    def send_gapless(self, file: Path) -> None:
        """See `workers.Workers`."""
        from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - comes with pyspark

        with self.shielded():
            try:
                self.context.addPyFile(str(file))
            except Py4JJavaError as error:
                raise EngineFailure(f"{GAVE_UP}: gapless cannot be sent to workers: {cause(error)}") from None

    def asked(self, what: Callable[[object], Found]) -> list[Found]:
        """See `workers.Workers`."""
        from pyspark.cloudpickle import register_pickle_by_value  # noqa: PLC0415 - few need Spark

        register_pickle_by_value(spark_probe)  # type: ignore[no-untyped-call]
        count = 1 if self.is_here else 2 * self.context.defaultParallelism
        with self.shielded():
            job: Job[Found] = _Job(self.context.parallelize(range(count), count).map(what), 0, spark_workers.LOOK)
        return list(self.finished(job))

    def look(self, reads: Sequence[Path], writes: Sequence[Path]) -> None:
        """See `Engine`."""
        if not self.is_here:
            spark_workers.look(self, spark_workers.needs_on_disks(reads, writes))
            self.has_looked = True
        spark_workers.look_elsewhere(self, reads, writes)

    def shielded(self) -> AbstractContextManager[None]:
        """See `InGroups`."""
        return self.interrupts.shielded()

    def prepare(self) -> None:
        """See `InGroups`: workers of a session that is not ours may lack gapless, or have another version."""
        if not self.has_looked:
            self.has_looked = True
            spark_workers.look(self, Needs(spark_probe.NEEDED))

    def sent(self, task: Callable[[Item], Answer]) -> Broadcast[Callable[[Any], Any]]:
        """See `InGroups`."""
        sent: Any = WithCode(task) if self.sends_code else task
        return self.context.broadcast(sent)

    def started(
        self, sent: Broadcast[Callable[[Any], Any]], items: Sequence[Item], size: int, what: str
    ) -> Job[Answer | Unreadable]:
        """See `InGroups`."""
        return _Job(self._rdd(items).map(partial(_run, sent)), size, what)

    def shuffled(
        self,
        task: Callable[[Item], tuple[Answer, Sequence[P]]],
        items: Sequence[Item],
        known: Sequence[P],
        join: Callable[[Sequence[P]], Answer],
        what: str,
    ) -> Job[Answer | Unreadable]:
        """See `InGroups`."""
        rows: Any = self._rdd([(part.bucket, (True, part)) for part in known])
        rows = rows.union(self._rdd(items).flatMap(partial(handed_on, task)))
        return _Job(rows.partitionBy(self.partitions).mapPartitions(partial(joined, join)), 0, what)

    def _rdd(self, items: Iterable[Item]) -> RDD[Item]:
        """Distribute the items, each in a task of its own as long as there are few."""
        listed = list(items)
        return self.context.parallelize(listed, max(1, min(len(listed), self.partitions)))


class _Job(Generic[Answer]):
    """A group of running tasks."""

    def __init__(self, rdd: RDD[Answer], size: int, what: str) -> None:
        self.rdd = rdd
        self.bytes = size
        with _described(rdd.context, what):
            self.future: Any = rdd._jrdd.collectAsync()  # noqa: SLF001 - only the JVM has it

    def is_done(self) -> bool:
        """True if all tasks have ended, well or not."""
        return bool(self.future.isDone())

    def share_done(self) -> float:
        """Return the share of tasks that have ended; 1 if Spark has forgotten the job."""
        tracker = self.rdd.context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in self.future.jobIds()]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        tasks = sum(stage.numTasks for stage in stages if stage)
        return sum(stage.numCompletedTasks for stage in stages if stage) / tasks if tasks else 0.0

    def answers(self) -> list[Answer]:
        """Return the answers of the tasks, in order. Raises EngineFailure."""
        from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - comes with pyspark

        jvm: Any = self.rdd.context._jvm  # noqa: SLF001 - what `RDD.collect` does, for a job that need not be waited for
        try:
            found = self.future.get()
        except Py4JJavaError as error:
            raise failure(causes(error), partial(_hosts, self.rdd.context)) from None
        rows = jvm.PythonUtils.toSeq(found).iterator()
        return loaded(jvm.PythonRDD.serveIterator(rows, "gapless"), self.rdd._jrdd_deserializer)  # noqa: SLF001 - as above

    def cancel(self) -> None:
        """Cancel the tasks: their answers are no longer needed."""
        self.future.cancel()


@contextmanager
def _described(context: SparkContext, what: str) -> Iterator[None]:
    """Name the jobs of a block on Spark's pages. They are a group of their own unless the user has set one."""
    names = {DESCRIPTION: what, "callSite.short": what}
    if context.getLocalProperty(GROUP) is None:  # else the user's own way to cancel is left as it is
        names |= {GROUP: "gapless", "spark.job.interruptOnCancel": "true"}
    before = {name: context.getLocalProperty(name) for name in names}
    java: Any = context._jsc  # noqa: SLF001 - the same in Python takes no None
    try:
        for name, value in names.items():
            java.setLocalProperty(name, value)
        yield
    finally:
        for name, was in before.items():
            java.setLocalProperty(name, was)


def _hosts(context: SparkContext) -> str:
    """Return the hosts of the executors, where an error names none; empty if Spark does not say."""
    spark: Any = context._jsc.sc()  # noqa: SLF001 - only the JVM has it
    with suppress(Exception):  # the first error is the one to report
        found = [info.host() for info in spark.statusTracker().getExecutorInfos()]
        driver = spark.conf().get("spark.driver.host")
        if len(found) > 1 and driver in found:
            found.remove(driver)  # once: other executors may be on its host
        return " or ".join(sorted({*found}))
    return ""


def _run(sent: Broadcast[Callable[[Item], Answer]], item: Item) -> Answer | Unreadable:
    """Run the task on an item, in a worker."""
    return run(sent.value, item)


# -- interrupts ----------------------------------------------------------------------------------------------------


class _Interrupts:
    """Signals that end a command, deferred while a message to the JVM is under way.

    Otherwise the answer would be taken for that to the next message, and py4j would print a traceback.
    """

    def __init__(self) -> None:
        self.holding = False
        self.waiting = 0  # which signal came meanwhile
        self.before: dict[int, Any] = {}
        self.ends: Callable[[], None] | None = None

    def on_signal(self, number: int, _frame: object) -> None:
        """Note that Ctrl-C was pressed, or that the command is to end."""
        if not self.holding:
            self._heard(number)
        self.waiting = number
        if self.ends:
            self.ends()

    @contextmanager
    def shielded(self, ends: Callable[[], None] | None = None) -> Iterator[None]:
        """Defer interrupts during the block, as `Shield` describes; they are raised at its end."""
        self.holding, self.ends = True, ends
        try:
            yield
        finally:
            self.holding, self.ends = False, None
            if number := self.waiting:
                self.waiting = 0
                self._heard(number)

    def _heard(self, number: int) -> NoReturn:
        if number == signal.SIGTERM:
            self.before[number](number, None)  # which notes that it came
        raise KeyboardInterrupt


@contextmanager
def _interrupts() -> Iterator[_Interrupts]:
    interrupts = _Interrupts()
    before: dict[int, Any] = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    interrupts.before = {number: was for number, was in before.items() if number == signal.SIGINT or callable(was)}
    try:
        for number in interrupts.before:
            signal.signal(number, interrupts.on_signal)
    except ValueError:  # another thread than the main one is never interrupted
        yield interrupts
        return
    try:
        yield interrupts
    finally:
        for number, was in interrupts.before.items():
            if signal.getsignal(number) == interrupts.on_signal:  # and not what ends it at the second one
                signal.signal(number, was)
