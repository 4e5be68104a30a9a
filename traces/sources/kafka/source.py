"""Data directories of Kafka brokers as a source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gapless.traces.engines.engine import Progress
from gapless.traces.evidence import Evidence
from gapless.traces.options import Options
from gapless.traces.sources.kafka import KIND, PROFILE
from gapless.traces.sources.kafka.report import PRESENTATION
from gapless.traces.sources.source import Recording, Whole

if TYPE_CHECKING:
    from gapless.traces.report.outputs.verdict_table import TableRows
    from gapless.traces.sources.tables import SparkTable


class Kafka:
    """Data directories, known by `meta.properties` and the folders of partitions in them."""

    kind = KIND
    presentation = PRESENTATION
    profile = PROFILE
    evidence = frozenset({"client"})
    expected_folder = (
        "a Kafka data directory: there is no folder of a partition with a .log file in it, such as orders-0/"
    )
    table_format = KIND
    expected_file = ""

    def recognise(self, path: Path) -> Path | None:
        """Implements `Source`: a data directory, the folder of one partition, or a folder above some directories."""
        if not path.is_dir():
            return None
        from gapless.traces.sources.kafka.files.directory import is_of_a_broker  # noqa: PLC0415 - a check of something else need not load it

        return path if is_of_a_broker(path) else None

    def whole(self, paths: Sequence[Path]) -> Iterator[Whole]:
        """Yield the folders above directories of one cluster, of which all are among the paths. Raises OSError."""
        from gapless.traces.sources.kafka.files.directory import clusters_above  # noqa: PLC0415 - see above

        return (Whole(folder, parts) for folder, parts in clusters_above(paths) if self.recognise(folder))

    def advice(self, path: Path) -> str:  # noqa: ARG002 - as `Source` says
        """Implements `Source`."""
        return ""

    def prepare(self, found: Path, options: Options) -> None:
        """Implements `Source`."""

    def open(self, path: Path, found: Path, options: Options, evidence: Evidence, table: TableRows | None) -> Recording:
        """Implements `Source`."""
        from gapless.traces.sources.kafka.check import LogCheck  # noqa: PLC0415 - see above

        return LogCheck(path, found, options, evidence, listed=table is not None)

    def export(
        self, path: Path, found: Path, out: Path, options: Options, evidence: Evidence, progress: Progress | None
    ) -> int:
        """Implements `Source`."""
        from gapless.traces.sources.kafka.export import export  # noqa: PLC0415 - see above

        return export(path, found, out, options, evidence, progress)

    def table(self, paths: Sequence[Path], split: int) -> SparkTable:
        """Implements `TableSource`: a row for each batch of every log."""
        from gapless.traces.sources.kafka.table import log_table  # noqa: PLC0415 - see above

        return log_table(paths, split, self.expected_folder)


SOURCE = Kafka()
