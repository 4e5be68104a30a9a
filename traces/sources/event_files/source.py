"""The source of event files, from any instrumented broker and from the recorder of the implementation."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from gapless.traces.engines.engine import Progress
from gapless.traces.events.files import is_event_file
from gapless.traces.evidence import Evidence
from gapless.traces.options import Options
from gapless.traces.problems import laid_down
from gapless.traces.report.sections import Presentation
from gapless.traces.report.values import Report
from gapless.traces.report.wording import plural
from gapless.traces.sources.source import Recording, SmallInput, Together

if TYPE_CHECKING:
    from gapless.traces.report.outputs.verdict_table import TableRows


STDIN = Path("-")
FEW = 8  # files, below which each is judged by itself
FORMS = {b"PAR1": ".parquet", b"\x1f\x8b": ".ndjson.gz", b"\x28\xb5\x2f\xfd": ".ndjson.zst"}  # by how a file begins


def spooled(file: BinaryIO) -> Path:
    """Copy a pipe to a file, which can be read several times and exists until this process ends.

    Raises OSError if there is no room for it.
    """
    folder = Path(tempfile.mkdtemp(prefix="gapless-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    begin = file.read(4)
    path = folder / f"stdin{next((form for magic, form in FORMS.items() if begin.startswith(magic)), '.ndjson')}"
    with laid_down("standard input"), path.open("wb") as copy:
        copy.write(begin)
        shutil.copyfileobj(file, copy)
    return path


def conforms(report: Report, trace: str) -> Iterator[str]:
    """Yield the output of `gapless explain` for a trace that conforms: its history."""
    yield f"{trace} conforms: {plural(report.counts.events, 'event')}."
    if report.life:
        yield from ("", *report.life)


class EventFiles:
    """Files of events, known by their suffix."""

    kind = "event-trace"
    presentation = Presentation("event trace", "event", conforms=conforms)
    profile = ""  # each file says its own
    evidence: frozenset[str] = frozenset()
    expected_folder = ""
    expected_file = ""

    def recognise(self, path: Path) -> Path | None:
        """See `Source`; `-` is standard input, whatever form it has."""
        if path == STDIN:
            return spooled(sys.stdin.buffer)
        return path if is_event_file(path) and path.is_file() else None

    def advice(self, path: Path) -> str:
        """See `Source`: a file of events under another name, or in a form that is not read."""
        from gapless.traces.sources.event_files.advice import advice  # noqa: PLC0415 - rare, and it loads pyarrow

        return advice(path) if path.is_file() else ""

    def prepare(self, found: Path, options: Options) -> None:
        """See `Source`: the kernels depend on the specs in the file."""

    def open(self, path: Path, found: Path, options: Options, evidence: Evidence, table: TableRows | None) -> Recording:  # noqa: ARG002 - as `Source` says
        """See `Source`."""
        from gapless.traces.sources.event_files.file import EventFile  # noqa: PLC0415 - pyarrow loads slowly

        return EventFile(path, found, options, table)

    def together(self, some: Sequence[SmallInput], options: Options, table: TableRows | None) -> Together | None:
        """See `together`."""
        if len(some) < FEW:
            return None
        from gapless.traces.sources.event_files import small_files  # noqa: PLC0415 - pyarrow loads slowly

        return small_files.together(some, options, table)

    def export(
        self, path: Path, found: Path, out: Path, options: Options, evidence: Evidence, progress: Progress | None  # noqa: ARG002 - as `Source` says
    ) -> int:  # fmt: skip
        """See `Source`."""
        from gapless.traces.events import reading, schema  # noqa: PLC0415 - see above

        known = schema.with_specs(options.specs)
        return schema.write(out, reading.read(found, of=known), origin=reading.origin(found), of=known)


SOURCE = EventFiles()
