"""Saves a finding as a story: its trace is read again, and reduced to as few events as possible."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from gapless.traces.events import reading
from gapless.traces.events.files import is_event_file
from gapless.traces.events.schema import with_specs
from gapless.traces.evidence import NO_EVIDENCE, Evidence
from gapless.traces.export import export
from gapless.traces.judging.columns import gathered
from gapless.traces.options import Options
from gapless.traces.problems import shown
from gapless.traces.replay.possible_states import TraceEvent
from gapless.traces.report.values import Finding
from gapless.traces.specs import GivenSpec
from gapless.traces.stories.playing import text_of
from gapless.traces.stories.shortening import shortest


def saved_story(
    path: Path,
    trace: str,
    finding: Finding,
    options: Options,
    evidence: Evidence = NO_EVIDENCE,
    *,
    folder: Path | None = None,
) -> str:
    """Return the text of a story of a finding in a recording's trace; `folder`: where it is written to.

    Raises NotATale, Unreadable, UsageError, NothingThere, OSError.
    """
    spec = options.every_spec[finding.spec]
    if is_event_file(path) and path.is_file():
        events = _events(path, trace, finding.spec, options)
    else:
        with tempfile.TemporaryDirectory(prefix="gapless-") as scratch:
            copy = Path(scratch) / "events.parquet"
            export(path, copy, evidence=evidence)
            events = _events(copy, trace, finding.spec, options)
    story = shortest(spec, events, options)
    name = _spec_path(spec.given, folder) if isinstance(spec, GivenSpec) else spec.name
    return text_of(story, name, [f"{finding.rule}, from {shown(path)}, {finding.where.file}", *finding.story])


def _spec_path(given: str, folder: Path | None) -> str:
    """Return the path of a spec's file relative to a story's folder."""
    return os.path.relpath(Path(given).resolve(), (folder or Path.cwd()).resolve())


def _events(path: Path, trace: str, spec: str, options: Options) -> list[TraceEvent]:
    """Return the events of one trace, in order."""
    schema = with_specs(options.specs)
    chosen = (pc.field("trace") == trace) & (pc.field("spec") == spec)

    def mine() -> Iterator[pa.RecordBatch]:
        for batch in reading.read(path, of=schema):
            yield from pa.Table.from_batches([batch]).filter(chosen).to_batches()

    return [taken for traces in gathered(mine(), schema) for taken in traces.taken(0)]
