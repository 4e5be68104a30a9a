"""The seam between a check and what it reads. A source is a folder behind this protocol, and a line in the registry.

A source recognises a path and opens it as a recording. A recording names its splits and the task that judges one; the
engine runs the task on every split; the recording takes the results in order, joins them, and says what they come to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from gapless.spec.catalog import Spec
from gapless.traces.engines.engine import Engine, Progress
from gapless.traces.options import Options
from gapless.traces.report.parts import Parts
from gapless.traces.report.sections import Presentation

if TYPE_CHECKING:  # few checks write a table, and pyarrow loads slowly
    from gapless.traces.report.verdict_table import TableRows


@dataclass(frozen=True)
class SideInputs:
    """What a user names beside a recording: evidence, and specs that its events may belong to."""

    config: Path | None = None  # the broker's settings
    client: Path | None = None  # what clients were answered
    copied: bool = False  # the recording was copied file by file while it was written
    specs: tuple[Spec, ...] = ()  # that the user brings; an export needs them, and a check has them in its options


class Recording(Protocol):
    """Something recorded, opened: what to read, how to judge a piece of it, and what the pieces come to."""

    @property
    def splits(self) -> Sequence[Any]:
        """What is read by one task each, in order; each is picklable and has `bytes`. May be empty."""

    def task(self, engine: Engine) -> Callable[[Any], Any]:
        """What judges one split. It is picklable, and holds all that it needs."""

    def take(self, result: Any) -> None:
        """Join the next split's result. Raises Unreadable."""

    def finish(self, engine: Engine) -> Parts:
        """Say what all results come to; the engine is there for whatever must be read again. Raises Unreadable."""

    def so_far(self) -> Parts:
        """Say what the results come to that were taken before an interrupt."""


class Source(Protocol):
    """A kind of recording."""

    kind: str
    """Its name in reports."""
    presentation: Presentation
    """How reports show it."""
    profile: str
    """Whose deviations count as anomalies, unless the user names a profile. Empty: each recording says itself."""
    side: frozenset[str]
    """Which fields of `SideInputs` it uses."""
    expected_folder: str
    """What a folder lacks that is none of it: *a RocketMQ store: there is no commitlog/ in it*. Empty: it is a file."""
    expected_file: str
    """The same for a file."""

    def recognise(self, path: Path) -> Path | None:
        """The folder or file to open, if the path names a recording of this kind. Raises OSError."""

    def prepare(self, found: Path, options: Options) -> None:
        """Load what a check of what `recognise` found needs, before the clock starts and workers are forked."""

    def open(self, path: Path, found: Path, options: Options, side: SideInputs, table: TableRows | None) -> Recording:
        """Open what `recognise` found; the report calls it `path`, and tasks write verdicts into `table`.

        `options.profile` is empty where each recording says itself by which it is judged: then `Parts.profile` tells.
        Raises Unreadable, NothingThere.
        """

    def export(self, path: Path, found: Path, out: Path, side: SideInputs, progress: Progress | None) -> int:
        """Write the very events that a check judges, and say how many. Raises UsageError, Unreadable, NothingThere."""
