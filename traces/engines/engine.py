"""The interface between a check and the engine that runs its tasks.

An engine knows no source; all that a task needs travels in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

Progress = Callable[[int, int], None]
"""Called with the number of bytes that are done, and of all."""


class Part(Protocol):
    """A piece of the data that several tasks have in common."""

    @property
    def bucket(self) -> int:
        """The bucket; pieces that must meet have the same one."""

    @property
    def size(self) -> int:
        """The size in bytes."""


P = TypeVar("P", bound=Part)


class InProcess(partial[Answer]):
    """A task whose answers do not travel: an engine that is `near` runs it in this process."""


class Engine(Protocol):
    """Runs tasks in processes of this machine, or on a cluster."""

    @property
    def name(self) -> str:
        """The engine's name in reports and on the command line."""

    @property
    def progress(self) -> Progress | None:
        """The callback that reports progress."""

    @property
    def buckets(self) -> int:
        """The number of buckets that tasks divide their pieces into."""

    @property
    def handed_on(self) -> int:
        """The maximum of events that a task may ship speculatively, before they are known to be needed."""

    @property
    def near(self) -> bool:
        """True if answers come from this machine: then tasks may ship all that they read."""

    @property
    def sends_code(self) -> bool:
        """True if workers are sent the native code of this process: what they need is compiled here, for all."""

    @property
    def workers(self) -> int:
        """The number of tasks that run at the same time."""

    @property
    def processors(self) -> int:
        """The number of processors for a task that runs in this process instead of several tasks."""

    def look(self, reads: Sequence[Path], writes: Sequence[Path]) -> None:
        """Look if the workers have what tasks need: packages, inputs, folders to write into. Raises EngineFailure."""

    def announce(self, what: str) -> None:
        """Name the work that comes next, for the pages of a cluster."""

    def is_alone(self, sizes: Sequence[int]) -> bool:
        """True if tasks of these sizes in bytes run in this process, one after the other."""

    def located(self, path: Path) -> Path:
        """Return the path by which the workers know an input."""

    def each(self, task: Callable[[Item], Answer], items: Sequence[Item], sizes: Sequence[int]) -> Iterator[Answer]:
        """Run the task on every item, and yield the answers in order; `sizes` are the items' bytes, for progress.

        The task must be picklable, and travels once to each worker. Raises what the task raises, `Unreadable` only, and
        EngineFailure where the work cannot be done.
        """

    def gather(
        self,
        task: Callable[[Item], tuple[Answer, Sequence[P]]],
        items: Sequence[Item],
        known: Sequence[P],
        join: Callable[[Sequence[P]], Answer],
    ) -> Iterator[Answer]:
        """Run a task that ships pieces, then join those of each bucket; the answers come in any order.

        `known` are pieces that exist already.
        """
