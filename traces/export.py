"""Export of a recording's events to a file, to query, or to check elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

from gapless.traces.check import as_given
from gapless.traces.engines.engine import Progress
from gapless.traces.events.event import Origin
from gapless.traces.events.files import is_event_file
from gapless.traces.events.writing import coming_from
from gapless.traces.evidence import NO_EVIDENCE, Evidence
from gapless.traces.files.remote import path_of
from gapless.traces.options import EVERYTHING, Options
from gapless.traces.problems import Unreadable, UsageError, shown
from gapless.traces.sources.registry import recognised
from gapless.traces.sources.surroundings import refusal


def export(
    path: str | os.PathLike[str],
    out: Path,
    options: Options = EVERYTHING,
    evidence: Evidence = NO_EVIDENCE,
    *,
    progress: Progress | None = None,
) -> int:
    """Write the same events that a check of `path` judges to `out`, and return how many.

    The file states its kind of source and the profile that judges it; a file of events is converted to the other form
    with its metadata. `options`, `evidence`: as of a check. Raises UsageError for a suffix that is no form, Unreadable,
    NothingThere, OSError.
    """
    if not is_event_file(out):
        raise UsageError(f"{out}: expected a file that ends in .parquet or .ndjson")
    path = path_of(path)
    known = recognised(path)
    if known is None:
        raise Unreadable(f"{shown(path)}: {refusal(path)}")
    source, found = known
    with coming_from(Origin(source.kind, source.profile)):
        try:
            return source.export(path, found, out, options, evidence, progress)
        except Unreadable as problem:
            raise Unreadable(as_given(str(problem), path, found)) from problem
