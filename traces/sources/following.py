"""The interface between the loop of a watch and a source that follows recordings as they grow."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from gapless.traces.evidence import Evidence
from gapless.traces.options import Options
from gapless.traces.report.parts import Parts
from gapless.traces.report.values import Finding
from gapless.traces.sources.source import Source

ReportedKeys = set[tuple[str, str, int]]
"""Departures that were reported: rule, trace and position of each."""


class LocationChange(Exception):  # noqa: N818 - nothing is wrong
    """Raised if a recording continues in another place: it must be opened again."""


@dataclass(frozen=True)
class FollowProgress:
    """The progress in a recording, in bytes of its log."""

    records: int
    queues: int
    start: int  # where the log begins
    position: int  # up to which records are judged
    entries: int  # up to which entries of queues are judged, too
    lag: int  # that are written and not judged yet
    settled: int  # where the log ended when all was judged: what lies between is no record yet
    behind_since: float  # when, by the watch's clock, it was last not behind the broker
    rounds: int
    restarts: int  # times that it went back, or began again
    looked_again: int

    @property
    def records_ahead(self) -> int:
        """Estimate the records that are written and not judged yet."""
        return self.lag * self.records // max(self.position - self.start, 1)


class LogGauge(Protocol):
    """Measures the log without opening the recording; other threads ask it."""

    def end(self, known: int) -> int | None:
        """Find the present end of the log, from `known` on; None without a log."""

    def start(self) -> int:
        """Return the position where the log begins; 0 without one."""


class FollowPlace(Protocol):
    """A place to continue from. It can be pickled."""

    @property
    def position(self) -> int:
        """The log position up to which all is judged."""


@dataclass(frozen=True)
class SavedState:
    """A saved place, the profile by which it was judged, and the departures that were reported."""

    store: str
    profile: str
    ignored: frozenset[str]
    checkpoint: Any  # a `FollowPlace` of the source that saved it
    reported: frozenset[tuple[str, str, int]]


class RecordingFollower(Protocol):
    """An open recording, judged round by round."""

    says: deque[str]
    """Sentences that wait to be printed."""
    departed: bool
    """True if something departs that was not reported yet."""
    reported: ReportedKeys
    lost: str
    """The first file that vanished."""

    @property
    def left(self) -> tuple[str, ...]:
        """Names of the parts that wait for the end, or for a check."""

    @property
    def reached(self) -> int:
        """The log position up to which all is judged."""

    def progress(self) -> FollowProgress:
        """Return how far it is."""

    def round(self) -> bool:
        """Judge what is new; True if there is more at once. Raises LocationChange, Unreadable, NothingThere."""

    def is_running(self) -> bool:
        """True if a broker is there that may write."""

    def is_at_rest(self) -> bool:
        """True if no broker runs and nothing was written for some time."""

    def report_early(self) -> Iterator[Finding]:
        """Yield the departures that no later part of the log can explain."""

    def whole(self, *, last: bool = False) -> Any:
        """Return the findings of a check of the whole as it is now, for `report` and `parts`. Raises Unreadable.

        While a broker writes, or may start again, what is not judged yet is left out, unless this is the `last` time.
        """

    def report(self, judged: Any) -> Iterator[Finding]:
        """Yield the departures that were not reported before."""

    def parts(self, judged: Any) -> Parts:
        """Return the same findings for a report."""

    def checkpoint(self) -> FollowPlace:
        """Return a place to continue from."""

    def close(self) -> None:
        """Close all files."""


@runtime_checkable
class FollowingSource(Source, Protocol):
    """A source whose recordings can be judged while they are written."""

    def follow(
        self, path: Path, found: Path, options: Options, evidence: Evidence, checkpoint: Any, clock: Callable[[], float]
    ) -> RecordingFollower:
        """Open a recognised path, and continue from a `checkpoint`. Raises Unreadable, NothingThere."""

    def gauge(self, path: Path, followed: RecordingFollower | None = None) -> LogGauge:
        """Return a gauge of the log of a recording, which may not be there yet; `followed`: it is open."""

    def read_state(self, file: Path, name: str, options: Options, version: str) -> SavedState | None:
        """Read what `write_state` wrote of the recording `name`; None without a file.

        Raises UsageError if it is damaged, or another recording's, or was judged otherwise.
        """

    def write_state(self, file: Path, kept: SavedState, version: str) -> None:
        """Write it: whole, and safely on disk, or as it was before. `version`: of gapless. Raises OSError."""
