"""The common behaviour of both Spark engines, without a cluster."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gapless.traces.engines.pyspark_versions import refuse_older
from gapless.traces.engines.spark import probe as spark_probe
from gapless.traces.engines.spark import tasks as spark_tasks
from gapless.traces.engines.spark import workers as spark_workers
from gapless.traces.engines.spark.probe import Needs
from gapless.traces.engines.spark.tasks import InGroups, Job, failure
from gapless.traces.problems import EngineFailure, UsageError


@dataclass(frozen=True)
class Piece:
    """A piece of so many bytes."""

    bucket: int
    size: int


class Done:
    """A job that has ended."""

    bytes = 0

    def __init__(self, answers: Sequence[Any]) -> None:
        self.all = answers

    def is_done(self) -> bool:
        """It is."""
        return True

    def share_done(self) -> float:
        """All."""
        return 1.0

    def answers(self) -> Sequence[Any]:
        """Whatever it was given."""
        return self.all

    def cancel(self) -> None:
        """Too late."""


class LateJob(Done):
    """A job of `bytes` that has ended, and whose tasks Spark has not counted yet."""

    def __init__(self, answers: Sequence[Any], size: int) -> None:
        super().__init__(answers)
        self.bytes = size

    def share_done(self) -> float:
        """None."""
        return 0.0


class Cluster(InGroups[Any]):
    """A cluster that says what it was asked to shuffle."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.described: list[str] = []

    def shielded(self) -> AbstractContextManager[None]:
        """Do nothing."""
        return nullcontext()

    def sent(self, task: Callable[[Any], Any]) -> Any:
        """It is here already."""
        return task

    def started(self, sent: Any, items: Sequence[Any], size: int, what: str) -> Job[Any]:  # noqa: ARG002 - it only says what came
        """Say so."""
        self.described.append(what)
        return Done([("started", item) for item in items])

    def shuffled(self, task: Any, items: Sequence[Any], known: Sequence[Any], join: Any, what: str) -> Job[Any]:  # noqa: ARG002 - it only says what came
        """Say so."""
        self.described.append(what)
        return Done([("shuffled", tuple(items), tuple(known))])


SMALL, LARGE = 10, spark_tasks.FEW


@pytest.mark.parametrize(
    ("items", "sizes", "shuffles"),
    [([], [SMALL] * 3, False), ([], [], False), ([], [LARGE, 1], True), ([1], [SMALL], True), ([1], [], True)],
)
def test_few_pieces_that_are_at_hand_are_joined_without_a_shuffle(
    items: list[int], sizes: list[int], *, shuffles: bool
) -> None:
    known = [Piece(number % 2, size) for number, size in enumerate(sizes)]
    found = list(Cluster(2, None, None).gather(lambda item: (item, []), items, known, list))
    if shuffles:
        assert found == [("shuffled", tuple(items), tuple(known))]
    else:
        assert found == [list(parts) for parts in (known[0::2], known[1::2]) if parts]


@pytest.mark.parametrize(
    ("sizes", "starts"), [([LARGE], False), ([LARGE + 1], True), ([SMALL, SMALL], True), ([], False)]
)
def test_a_small_file_is_judged_without_a_job_of_its_own(sizes: list[int], *, starts: bool) -> None:
    """Each took as long as starting one does, one after the other: 300 files of a folder, minutes."""
    progress: list[tuple[int, int]] = []
    cluster = Cluster(2, None, lambda *now: progress.append(now))
    found = list(cluster.each(lambda item: ("here", item), range(len(sizes)), sizes))
    assert found == [("started" if starts else "here", item) for item in range(len(sizes))]
    if sizes == [LARGE]:
        assert progress == [(LARGE, LARGE)]


def test_jobs_are_described_by_their_input_and_their_stretches() -> None:
    cluster = Cluster(1, 4, None)
    cluster.announce("check big.parquet")
    list(cluster.each(abs, range(9), [SMALL] * 9))
    list(cluster.gather(lambda item: (item, []), [1], [], list))
    assert cluster.described == [
        "gapless check big.parquet: stretches 1 to 4 of 9",
        "gapless check big.parquet: stretches 5 to 8 of 9",
        "gapless check big.parquet: stretch 9 of 9",
        "gapless check big.parquet: traces of several stretches",
    ]


class LateCounts(Cluster):
    """A cluster whose counts of tasks arrive after the answers."""

    def started(self, sent: Any, items: Sequence[Any], size: int, what: str) -> Job[Any]:  # noqa: ARG002 - the task is not run
        """Answer before any task is counted."""
        return LateJob(list(items), size)


def test_progress_ends_at_the_total_when_spark_counts_late() -> None:
    """Spark counts ended tasks by a bus of its own: a check of 2 MiB was over at 1.9."""
    progress: list[tuple[int, int]] = []
    cluster = LateCounts(1, 2, lambda *now: progress.append(now))
    assert list(cluster.each(lambda item: item, range(6), [SMALL] * 6)) == list(range(6))
    assert progress == sorted(progress)
    assert progress[-1] == (6 * SMALL, 6 * SMALL)


# -- the look at the workers -------------------------------------------------------------------------------------------


class Hosts:
    """Two workers, which answer as this machine does but for what is set."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.set = answers
        self.sent: list[Path] = []

    def asked(self, what: Callable[[object], dict[str, Any]]) -> list[dict[str, Any]]:
        """The answers of both."""
        return [what(None) | some for some in self.set[:2]]

    def send_gapless(self, file: Path) -> None:
        """Note it; from now on the other two answers are given."""
        self.sent.append(file)
        self.set = self.set[2:]


OLD = {"gapless": "0.0.9", "host": "far", "python": "/bin/python", "place": "/lib/gapless/__init__.py"}


def test_workers_that_have_this_version_are_sent_nothing() -> None:
    workers = Hosts({}, {})
    spark_workers.look(workers, Needs(spark_probe.NEEDED))
    assert workers.sent == []


@pytest.mark.parametrize("theirs", [{"gapless": None}, OLD])
def test_workers_that_lack_this_version_are_sent_it_once(theirs: dict[str, Any]) -> None:
    ours = {"gapless": spark_workers.archived().name}
    workers = Hosts({}, theirs, ours, ours)
    spark_workers.look(workers, Needs())
    spark_workers.look(workers, Needs())
    assert workers.sent == [spark_workers.archived()]


def test_a_worker_whose_own_gapless_goes_before_the_one_that_is_sent_is_named() -> None:
    version = spark_probe.version()
    says = f"far: /bin/python has gapless 0.0.9 (/lib/gapless/__init__.py), which goes before the {version} that was"
    with pytest.raises(EngineFailure, match=re.escape(f"Spark's workers lack something: {says} sent: install")):
        spark_workers.look(Hosts(OLD, {}, OLD, {}), Needs())


def test_each_lack_of_a_host_is_named_once(tmp_path: Path) -> None:
    needs = Needs(["pyarrow", "no_such"], [str(tmp_path / "in")], [str(tmp_path / "out" / "unfinished")])
    with pytest.raises(EngineFailure) as found:
        spark_workers.look(Hosts({}, {}), needs)
    host = socket.gethostname()
    assert str(found.value).removeprefix("Spark's workers lack something: ").split("; ") == [
        f"{host}: {sys.executable} has no no_such: install gapless there, or send an environment",
        f"{host}: {tmp_path}/in cannot be read: every worker must have it by this name",
        f"{host}: {tmp_path}/out is not the folder that it is here: name one that workers share",
    ]


LOST = "Lost task 0.3 in stage 0.0 (TID 3) (10.0.0.7 executor 1): "
ANOTHER = "its Python is 3.12, and 3.11 is needed, as here: name one by PYSPARK_PYTHON"
MISSING = "there is no Python at ./env/bin/python: name one by PYSPARK_PYTHON, or send an environment"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (f"{LOST}Python in worker has different version: 3.12 than that in driver: 3.11,", f"10.0.0.7: {ANOTHER}"),
        (f"{LOST}Python in worker has different version (3, 12) than that in driver 3.11,", f"10.0.0.7: {ANOTHER}"),
        ("Python in worker has different version: 3.12 than that in driver: 3.11, PySpark", f"a or b: {ANOTHER}"),
        (f'{LOST}Cannot run program "./env/bin/python" (in directory "/x"): error=2, No', f"10.0.0.7: {MISSING}"),
        ('Cannot run program "./env/bin/python": Exec failed, error: 2 (No such', f"a or b: {MISSING}"),
    ],
)
def test_a_host_without_the_right_python_is_named(words: str, says: str) -> None:
    assert str(failure(["Job aborted", words], lambda: "a or b")) == f"Spark's workers lack something: {says}"


def test_an_older_pyspark_is_refused() -> None:
    refuse_older("3.5.0")
    refuse_older("4.10.1.dev0")
    with pytest.raises(UsageError, match=r"needs pyspark 3\.5 or later, and this is 3\.4\.9: pip install"):
        refuse_older("3.4.9")
