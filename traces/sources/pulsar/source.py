"""The source of recordings of Pulsar transaction coordinators and their clients."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gapless.traces.engines.engine import Progress
from gapless.traces.evidence import Evidence
from gapless.traces.options import Options
from gapless.traces.sources.pulsar import KIND, PROFILE, RECORDING
from gapless.traces.sources.pulsar.report import PRESENTATION
from gapless.traces.sources.source import Recording

if TYPE_CHECKING:
    from gapless.traces.report.outputs.verdict_table import TableRows


class Pulsar:
    """Recordings of transaction coordinators, known by their `trace.ndjson`."""

    kind = KIND
    presentation = PRESENTATION
    profile = PROFILE
    evidence: frozenset[str] = frozenset()
    expected_folder = "a recording of a Pulsar coordinator: there is no trace.ndjson"
    expected_file = ""

    def recognise(self, path: Path) -> Path | None:
        """See `Source`: a folder with such a file in it, or the file itself."""
        file = path if path.name == RECORDING else path / RECORDING
        if not file.is_file() or (file.parent / "commitlog").is_dir():
            return None
        with file.open("rb") as content:
            return None if b'"schema"' in content.read(64) else file.parent  # as a file of events begins

    def advice(self, path: Path) -> str:  # noqa: ARG002 - as `Source` says
        """See `Source`: a recording is one folder, and its parts lie in it."""
        return ""

    def prepare(self, found: Path, options: Options) -> None:
        """See `Source`: a recording is short, and its kernels load when they are needed."""

    def open(self, path: Path, found: Path, options: Options, evidence: Evidence, table: TableRows | None) -> Recording:  # noqa: ARG002 - as `Source` says
        """See `Source`."""
        from gapless.traces.sources.pulsar.check import CoordinatorCheck  # noqa: PLC0415 - pyarrow loads slowly

        return CoordinatorCheck(path, found, options)

    def export(
        self, path: Path, found: Path, out: Path, options: Options, evidence: Evidence, progress: Progress | None  # noqa: ARG002 - as `Source` says
    ) -> int:  # fmt: skip
        """See `Source`."""
        from gapless.traces.events import schema  # noqa: PLC0415 - see above
        from gapless.traces.sources.pulsar.recording import recorded  # noqa: PLC0415 - see above

        return schema.write(out, recorded(found, progress).batches)


SOURCE = Pulsar()
