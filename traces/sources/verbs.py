"""The verbs that a source may have besides `open` and `export`: a command asks the registry who has one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from gapless.traces.evidence import Evidence
from gapless.traces.report.values import Report
from gapless.traces.sources.source import Source
from gapless.traces.sources.tables import SparkTable

JsonSchema = dict[str, Any]


@runtime_checkable
class SchemaSource(Protocol):
    """A source that reads files of a form of its own, which a user may write."""

    def schemas(self) -> Mapping[str, Callable[[], JsonSchema]]:
        """Return builders of JSON Schemas, by the names that `gapless schema` takes."""


# -- compare -------------------------------------------------------------------------------------------------------


class ReplicaComparison(Protocol):
    """The result of comparing replicas."""

    @property
    def exit_code(self) -> int:
        """0 they agree, 1 they do not, 2 unreadable, 3 inconclusive; 130 interrupted."""

    def as_json(self) -> str:
        """Write it as `--json` has it."""

    def lines(self) -> Iterator[str]:
        """Yield it as text, line by line; the verdict is the last one."""

    def unread(self) -> Sequence[tuple[str, str]]:
        """Return the replicas that keep all others from being compared, each with a reason."""


class Replicas(Protocol):
    """Replicas of one recording, the master first: each is taken after the check of it alone, then all are compared."""

    def take(self, path: Path, report: Report) -> None:
        """Take the next replica with its report; what is wrong with it is a part of the result."""

    def compared(self) -> ReplicaComparison:
        """Compare each slave with its master; after an interrupted check nothing is compared any more."""


@runtime_checkable
class ComparingSource(Source, Protocol):
    """A source whose recordings have replicas."""

    def replicas(self, evidence: Evidence) -> Replicas:
        """Return an empty set of replicas; `evidence` is of all of them."""


# -- table ---------------------------------------------------------------------------------------------------------


@runtime_checkable
class TableSource(Source, Protocol):
    """A source whose recordings are a table that Spark reads."""

    table_format: str
    """Its name for Spark, as in `spark.read.format("rocketmq-store")`."""

    def table(self, paths: Sequence[Path], split: int) -> SparkTable:
        """Open the table of some recordings; one task reads `split` bytes.

        Raises UsageError if one of them is of another kind, Unreadable, NothingThere.
        """
