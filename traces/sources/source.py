"""The interface between a check and its inputs. A source is a folder behind this protocol, with a line in the registry.

A source recognises a path and opens it as a recording. A recording names its splits and the task that judges one; the
engine runs the task on every split; the recording takes the results in order, joins them, and returns the whole result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from gapless.traces.engines.engine import Engine, Progress
from gapless.traces.evidence import Evidence
from gapless.traces.options import Options
from gapless.traces.report.parts import Parts
from gapless.traces.report.sections import Presentation

if TYPE_CHECKING:  # few checks write a table, and pyarrow loads slowly
    from gapless.traces.report.outputs.verdict_table import TableRows


class Recording(Protocol):
    """An open recording: its splits, the task that judges one, and the result of all."""

    @property
    def splits(self) -> Sequence[Any]:
        """The splits, each read by one task, in order; each is picklable and has `bytes`. May be empty."""

    def task(self, engine: Engine) -> Callable[[Any], Any]:
        """Return the task that judges one split. It is picklable, with all that it needs.

        It may depend on the engine what a split is: the engine asks for the task first.
        """

    def take(self, result: Any) -> None:
        """Join the next split's result. Raises Unreadable."""

    def finish(self, engine: Engine) -> Parts:
        """Return the result of all splits; the engine is there to read again if needed. Raises Unreadable."""

    def so_far(self) -> Parts:
        """Return the result of the splits that were taken before an interrupt."""


class Source(Protocol):
    """A kind of recording."""

    kind: str
    """Its name in reports."""
    presentation: Presentation
    """How reports show it."""
    profile: str
    """The profile that it is judged by unless the user names one. Empty: each recording states its own."""
    evidence: frozenset[str]
    """The fields of `Evidence` that it uses."""
    expected_folder: str
    """A folder's missing part, as in *a RocketMQ store: there is no commitlog/ in it*. Empty: it is a file."""
    expected_file: str
    """The same for a file."""

    def recognise(self, path: Path) -> Path | None:
        """Return the folder or file to open, if the path names a recording of this kind. Raises OSError."""

    def advice(self, path: Path) -> str:
        """Explain a path that no source recognises, and name the right one; empty if that is unknown."""

    def prepare(self, found: Path, options: Options) -> None:
        """Load what a check needs, before the clock starts and workers are forked."""

    def open(self, path: Path, found: Path, options: Options, evidence: Evidence, table: TableRows | None) -> Recording:
        """Open a recognised path; the report calls it `path`, and tasks write verdicts into `table`.

        `options.profile` is empty if each recording states its own: then `Parts.profile` has it. Raises Unreadable,
        NothingThere.
        """

    def export(
        self, path: Path, found: Path, out: Path, options: Options, evidence: Evidence, progress: Progress | None
    ) -> int:
        """Write the same events that a check judges, and return how many.

        Raises UsageError, Unreadable, NothingThere.
        """


class Together(Protocol):
    """Small recordings that are judged together: like `Recording`, for many at a time."""

    @property
    def splits(self) -> Sequence[Any]:
        """See `Recording`: each split has some whole recordings."""

    def task(self, engine: Engine) -> Callable[[Any], Any]:
        """See `Recording`."""

    def take(self, result: Any) -> Iterable[tuple[int, Parts]]:
        """Yield the results of a split's recordings, by their numbers; those left out must be judged one by one."""

    @property
    def listed(self) -> int:
        """The rows that tasks wrote into the verdict table."""


class SmallInput(NamedTuple):
    """A recording that may be judged with others; `number`: among the inputs, `path`: for reports."""

    number: int
    path: Path
    found: Path
    bytes: int


@runtime_checkable
class _TogetherSource(Protocol):
    """A source that has this too."""

    def together(self, some: Sequence[SmallInput], options: Options, table: TableRows | None) -> Together | None:
        """See the function of this name."""


def together(source: object, some: Sequence[SmallInput], options: Options, table: TableRows | None) -> Together | None:
    """Open recordings that are judged together; None if each must be judged by itself."""
    return source.together(some, options, table) if isinstance(source, _TogetherSource) else None


@runtime_checkable
class _DividedSource(Protocol):
    """A source of which one recording may lie in several folders."""

    def whole(self, paths: Sequence[Path]) -> Iterable[Whole]:
        """See `wholes`."""


class Whole(NamedTuple):
    """A folder that is one recording, whose parts were named one by one."""

    folder: Path
    parts: frozenset[Path]


def wholes(source: object, paths: Sequence[Path]) -> list[Whole]:
    """Return the folders of which all parts are among the paths, all of this source. Raises OSError."""
    return list(source.whole(paths)) if isinstance(source, _DividedSource) else []
