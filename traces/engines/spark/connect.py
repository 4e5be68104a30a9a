"""The Spark engine of Spark Connect: the work of `classic` with DataFrames instead of RDDs.

A worker gets the numbers of items and answers with rows of (number, answer), pickled. Each group of tasks is one
operation with its own tag, which a thread waits for: the client of Spark Connect has no other way to run two at a time.
That thread does nothing else, and ends with its operation.

The task goes to the server as a file, once, and every worker reads it there; it stays until the session ends.
"""

from __future__ import annotations

import logging
import pickle
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Generic
from uuid import uuid4

from gapless.traces.engines.engine import Answer, Item, P, Progress
from gapless.traces.engines.pyspark_versions import INSTALL, channel, collected, limit_retries, refuse_older
from gapless.traces.engines.spark import probe as spark_probe
from gapless.traces.engines.spark import settings as spark_settings
from gapless.traces.engines.spark import workers as spark_workers
from gapless.traces.engines.spark.tasks import (
    TASKS,
    InGroups,
    Job,
    WithCode,
    failure,
    first_error,
    handed_on,
    joined,
    run,
)
from gapless.traces.problems import EngineFailure, Unreadable, UsageError, shown
from gapless.traces.processes.timeouts import answer_within

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Table
    from pyspark.sql.connect.session import SparkSession
    from pyspark.sql.dataframe import DataFrame

ANSWERS = 12.0  # seconds for a server to take a session on
ENDS = 5.0  # seconds for an operation or a session to end that is no longer wanted
MOST_CORES = 1024  # that are counted

ROWS = "number long, answer binary"
PIECES = "bucket long, is_piece boolean, row binary"


def active() -> SparkSession | None:
    """Return the user's own session of Spark Connect, if there is one."""
    module = sys.modules.get("pyspark.sql.connect.session")
    return module.SparkSession.getActiveSession() if module else None


@contextmanager
def started(
    master: str | None, partitions: int | None, progress: Progress | None, conf: Mapping[str, str] | None = None
) -> Iterator[SparkConnect]:
    """Run Spark on the active session, or on one of our own until the end. Raises UsageError."""
    with ExitStack() as stack:
        stack.enter_context(_quiet())
        session = active()
        if session is None or (master is not None and master.startswith("sc://")):
            session = _connected(str(master), spark_settings.asked(None, conf))
            stack.callback(_leave, session)
        elif conf:
            raise UsageError(f"conf: a session of Spark Connect is active; stop it, or leave {min(conf)} out")
        elif master is not None:
            raise UsageError(
                f"master: a session of Spark Connect on {session.client.host} is active; stop it, or leave "
                f"{shown(master)} out"
            )
        yield SparkConnect(session, partitions, progress)


def _connected(master: str, conf: Mapping[str, str]) -> SparkSession:
    """Start a session of our own. Raises UsageError."""
    try:
        import grpc  # noqa: PLC0415 - few need Spark
        from pyspark import __version__  # noqa: PLC0415

        refuse_older(__version__)
        from pyspark.errors import PySparkException  # noqa: PLC0415
        from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415
    except ImportError:
        raise UsageError(f"the engine spark needs pyspark and what Spark Connect needs: {INSTALL}") from None
    session: SparkSession | None = None
    until = time.monotonic() + ANSWERS
    try:
        with channel(master) as opened:
            grpc.channel_ready_future(opened).result(ANSWERS)
        session = SparkSession.builder.remote(master).config(map=dict(conf)).create()
        limit_retries(session)
        answer_within(partial(getattr, session, "version"), until - time.monotonic())
    except (grpc.FutureTimeoutError, TimeoutError):
        _leave(session)
        raise UsageError(f"what answers at {shown(master)} is not Spark Connect, or takes no session on") from None
    except (PySparkException, grpc.RpcError) as error:
        _leave(session)
        raise UsageError(f"Spark Connect cannot be used at {shown(master)}: {first_error([str(error)])}") from None
    except BaseException:
        _leave(session)
        raise
    return session


def _leave(session: SparkSession | None) -> None:
    """Stop a session of our own, without waiting for a server that does not answer."""
    if session is not None:
        with suppress(TimeoutError):
            answer_within(session.stop, ENDS)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Spark's client, which logs errors as JSON; we raise and report them once."""
    logger = logging.getLogger("SQLQueryContextLogger")
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before


class SparkConnect(InGroups[str]):
    """Runs the tasks of a check on a server of Spark Connect. Data is sent as named files of the session."""

    def __init__(self, session: SparkSession, partitions: int | None, progress: Progress | None) -> None:
        self.session = session
        super().__init__(0 if partitions else self._cores(), partitions, progress)
        self.has_looked = False

    def _cores(self) -> int:
        """Ask how many tasks the cluster runs at a time, as Spark would divide a table. Raises EngineFailure."""
        from pyspark.errors import PySparkException  # noqa: PLC0415 - few need Spark

        try:
            found = collected(self.session.range(0, MOST_CORES).selectExpr("spark_partition_id() AS part"))
        except PySparkException as error:
            raise EngineFailure(f"Spark Connect runs nothing: {first_error([str(error)])}") from None
        return len(set(found.column("part").to_pylist()))

    def asked(self, what: Callable[[object], Answer]) -> list[Answer]:
        """See `workers.Workers`: rows are pickled, for workers may lack Arrow."""
        from pyspark.cloudpickle import register_pickle_by_value  # noqa: PLC0415 - few need Spark
        from pyspark.sql.connect.functions import col, udf  # noqa: PLC0415
        from pyspark.sql.types import BinaryType  # noqa: PLC0415

        register_pickle_by_value(spark_probe)  # type: ignore[no-untyped-call]
        pickled: Any = udf(partial(spark_probe.pickled, what), BinaryType(), useArrow=False)
        count = 2 * max(1, self.partitions // TASKS)
        rows = self._numbers(count).select(col("id").alias("number"), pickled("id").alias("answer"))
        job: Job[Answer | Unreadable] = _Operation(self.session, rows, 0, spark_workers.LOOK)
        return list(self.finished(job))

    def send_gapless(self, file: Path) -> None:
        """See `workers.Workers`."""
        from pyspark.errors import PySparkException  # noqa: PLC0415 - few need Spark

        try:
            self.session.addArtifacts(str(file), pyfile=True)
        except PySparkException as error:
            raise EngineFailure(
                f"Spark gave up: gapless cannot be sent to workers: {first_error([str(error)])}"
            ) from None

    def look(self, reads: Sequence[Path], writes: Sequence[Path]) -> None:
        """See `Engine`: a server on this machine may have workers elsewhere."""
        self.has_looked = True
        spark_workers.look(self, spark_workers.needs_on_disks(reads, writes))
        spark_workers.look_elsewhere(self, reads, writes)

    def prepare(self) -> None:
        """See `InGroups`."""
        if not self.has_looked:
            self.look([], [])

    def shielded(self) -> AbstractContextManager[None]:
        """See `InGroups`: gRPC takes no harm from an interrupt."""
        return nullcontext()

    def sent(self, task: Callable[[Item], Answer]) -> str:
        """See `InGroups`."""
        from pyspark.errors import PySparkException  # noqa: PLC0415 - few need Spark

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"gapless-{uuid4()}.task")
            path.write_bytes(_pickled(WithCode(task)))
            try:
                self.session.addArtifacts(str(path), file=True)
            except PySparkException as error:
                raise failure([str(error)]) from None
        return path.name

    def started(self, sent: str, items: Sequence[Item], size: int, what: str) -> Job[Answer | Unreadable]:
        """See `InGroups`."""
        rows = self._numbers(len(items)).mapInArrow(_Runs(sent, _each_pickled(items)), ROWS)
        return _Operation(self.session, rows, size, what)

    def shuffled(
        self,
        task: Callable[[Item], tuple[Answer, Sequence[P]]],
        items: Sequence[Item],
        known: Sequence[P],
        join: Callable[[Sequence[P]], Answer],
        what: str,
    ) -> Job[Answer | Unreadable]:
        """See `InGroups`."""
        rows = self._numbers(len(items)).mapInArrow(_HandsOn(self.sent(task), _each_pickled(items)), PIECES)
        if known:
            pieces = [(part.bucket, True, _pickled(part)) for part in known]
            rows = rows.union(self.session.createDataFrame(pieces, PIECES))
        met = rows.repartition(self.partitions, "bucket")
        return _Operation(self.session, met.mapInArrow(_Joins(self.sent(join)), ROWS), 0, what)

    def _numbers(self, count: int) -> DataFrame:
        """Return the numbers below `count`, each in a task of its own as long as there are few."""
        return self.session.range(0, count, 1, max(1, min(count, self.partitions)))


class _Operation(Generic[Answer]):
    """A running operation, which ends with its thread."""

    def __init__(self, session: SparkSession, rows: DataFrame, size: int, what: str) -> None:
        self.bytes = size
        self.session = session
        self.rows = rows
        self.tag = f"{what.replace(',', ';')} ({uuid4()})"  # on Spark's pages, too; it may have no comma
        self.found: Table | None = None
        self.problem: Exception | None = None
        self.waits = Thread(target=self._collect, name=self.tag, daemon=True)
        self.waits.start()

    def _collect(self) -> None:
        try:
            self.session.addTag(self.tag)  # of this thread
            self.found = collected(self.rows)
        except Exception as error:  # noqa: BLE001 - raised by `answers`
            self.problem = error

    def is_done(self) -> bool:
        """See `Job`."""
        return not self.waits.is_alive()

    def share_done(self) -> float:
        """See `Job`: all or nothing."""
        return float(self.is_done())

    def answers(self) -> list[Answer]:
        """See `Job`."""
        if self.found is None:
            raise failure([str(self.problem)], partial(_hosts, self.session))
        return [_unpickled(answer) for answer in self.found.sort_by("number").column("answer").to_pylist()]

    def cancel(self) -> None:
        """See `Job`; does not wait for a server that does not answer."""
        with suppress(Exception):  # the first error is the one to report
            answer_within(partial(self.session.interruptTag, self.tag), ENDS)
        self.waits.join(ENDS)


def _hosts(session: SparkSession) -> str:
    """Return the names of the hosts with workers, where these cannot be asked; empty if no one says."""
    with suppress(Exception):  # a server may forbid it
        names = session.range(0, MOST_CORES).selectExpr("reflect('java.net.InetAddress', 'getLocalHost') AS host")
        found = {str(host).partition("/")[0] for host in collected(names).column("host").to_pylist()}
        return " or ".join(sorted(found))
    return ""


# -- what a worker does --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Runs:
    """Runs the task on the items of the given numbers."""

    task: str
    items: Sequence[bytes]

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        """Rows of `ROWS`."""
        task = _received(self.task)
        for number in _each_number(batches):
            yield _answer(number, run(task, _unpickled(self.items[number])))


@dataclass(frozen=True)
class _HandsOn:
    """Runs a task that ships pieces."""

    task: str
    items: Sequence[bytes]

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        """Rows of `PIECES`."""
        from pyarrow import RecordBatch  # noqa: PLC0415 - as everywhere in this room

        task = _received(self.task)
        for number in _each_number(batches):
            for bucket, (is_piece, row) in handed_on(task, _unpickled(self.items[number])):
                yield RecordBatch.from_pydict({"bucket": [bucket], "is_piece": [is_piece], "row": [_pickled(row)]})


@dataclass(frozen=True)
class _Joins:
    """Joins the pieces of each bucket, when it has all of them."""

    join: str

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        """Rows of `ROWS`."""
        rows = (
            (bucket, (is_piece, _unpickled(row)))
            for batch in batches
            for bucket, is_piece, row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        )
        for answer in joined(_received(self.join), rows):
            yield _answer(0, answer)


def _each_number(batches: Iterator[RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_numpy().tolist()


def _answer(number: int, answer: Any) -> RecordBatch:
    from pyarrow import RecordBatch  # noqa: PLC0415 - as everywhere in this room

    return RecordBatch.from_pydict({"number": [number], "answer": [_pickled(answer)]})


def _received(name: str) -> Any:
    """Load the task that was sent under that name."""
    from pyspark import SparkFiles  # noqa: PLC0415 - few need Spark

    return _unpickled(Path(SparkFiles.get(name)).read_bytes())


def _pickled(value: Any) -> bytes:
    from pyspark import cloudpickle  # noqa: PLC0415 - few need Spark

    pickled: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    return pickled


def _each_pickled(items: Sequence[Any]) -> list[bytes]:
    return [_pickled(item) for item in items]


def _unpickled(value: Any) -> Any:
    return pickle.loads(value)  # noqa: S301 - what we sent ourselves, to a cluster that runs our code anyway
