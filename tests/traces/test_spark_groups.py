"""The common behaviour of both Spark engines, without a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import pytest

from gapless.traces.engines import spark_tasks
from gapless.traces.engines.spark_tasks import InGroups, Job


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

    def shielded(self) -> AbstractContextManager[None]:
        """Do nothing."""
        return nullcontext()

    def sent(self, task: Callable[[Any], Any]) -> Any:
        """It is here already."""
        return task

    def started(self, sent: Any, items: Sequence[Any], size: int) -> Job[Any]:  # noqa: ARG002 - it only says what came
        """Say so."""
        return Done([("started", item) for item in items])

    def shuffled(self, task: Any, items: Sequence[Any], known: Sequence[Any], join: Any) -> Job[Any]:  # noqa: ARG002 - it only says what came
        """Say so."""
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


class LateCounts(Cluster):
    """A cluster whose counts of tasks arrive after the answers."""

    def started(self, sent: Any, items: Sequence[Any], size: int) -> Job[Any]:  # noqa: ARG002 - the task is not run
        """Answer before any task is counted."""
        return LateJob(list(items), size)


def test_progress_ends_at_the_total_when_spark_counts_late() -> None:
    """Spark counts ended tasks by a bus of its own: a check of 2 MiB was over at 1.9."""
    progress: list[tuple[int, int]] = []
    cluster = LateCounts(1, 2, lambda *now: progress.append(now))
    assert list(cluster.each(lambda item: item, range(6), [SMALL] * 6)) == list(range(6))
    assert progress == sorted(progress)
    assert progress[-1] == (6 * SMALL, 6 * SMALL)
