"""The seam between a check and who runs its tasks. An engine knows no source; all that a task needs travels in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

Progress = Callable[[int, int], None]
"""Told how many bytes are done, and how many there are."""


class Part(Protocol):
    """A piece of what several tasks know together."""

    @property
    def bucket(self) -> int:
        """Pieces that must meet have the same bucket."""

    @property
    def size(self) -> int:
        """How much there is of it."""


P = TypeVar("P", bound=Part)


class InProcess(partial[Answer]):
    """A task whose answers do not travel: an engine that is `near` runs it in this process."""


class Engine(Protocol):
    """Runs tasks: in processes of this machine, or on a cluster."""

    @property
    def name(self) -> str:
        """The engine's name in reports and on the command line."""

    @property
    def progress(self) -> Progress | None:
        """Who wants to know how far the check is."""

    @property
    def buckets(self) -> int:
        """Into how many buckets tasks divide their pieces."""

    @property
    def handed_on(self) -> int:
        """How many events a task may hand on before it is known whether they are needed elsewhere."""

    @property
    def near(self) -> bool:
        """Whether answers come from this machine: then tasks may hand on all that they read."""

    @property
    def processors(self) -> int:
        """How many a task may keep busy that runs in this process, where tasks do."""

    def is_alone(self, sizes: Sequence[int]) -> bool:
        """Whether tasks that read so many bytes each run in this process, one after the other."""

    def located(self, path: Path) -> Path:
        """The path by which the workers know an input."""

    def each(self, task: Callable[[Item], Answer], items: Sequence[Item], sizes: Sequence[int]) -> Iterator[Answer]:
        """Run the task on every item, and give the answers in order; `sizes` are the items' bytes, for progress.

        The task must be picklable, and travels once to each worker. Raises what the task raises: `Unreadable` only.
        """

    def gather(
        self,
        task: Callable[[Item], tuple[Answer, Sequence[P]]],
        items: Sequence[Item],
        known: Sequence[P],
        join: Callable[[Sequence[P]], Answer],
    ) -> Iterator[Answer]:
        """Run a task that hands on pieces, then join those of each bucket; the answers come in any order.

        `known` are pieces that are at hand already.
        """
