"""The rows of the verdict table that one store adds: its log, and every queue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from gapless.traces.problems import shown
from gapless.traces.rocketmq.found import COMMIT_LOG, Found, Judged, Run, name_of
from gapless.traces.schema import ROWS, utf8
from gapless.traces.specs import rule_id
from gapless.traces.tables import SCHEMA

Row = dict[str, Any]


def verdict_rows(judged: Judged, source: str) -> Iterator[pa.RecordBatch]:
    """A row for every trace of the store, as batches of the table's schema."""
    rows = list(_rows(judged))
    for low in range(0, len(rows), ROWS):
        some = [{"source": shown(source), **row, "trace": utf8(row["trace"])} for row in rows[low : low + ROWS]]
        yield pa.RecordBatch.from_pylist(some, schema=SCHEMA)


def _rows(judged: Judged) -> Iterator[Row]:
    first: dict[tuple[str, str], Found] = {}
    for found in sorted(judged.found, key=lambda found: found.position):
        first.setdefault((found.spec, found.trace), found)
    log = sum(count for name, count in judged.covered.items() if name.startswith("log."))
    yield _row("log", COMMIT_LOG, log) | _told(first.pop(("log", COMMIT_LOG), None))
    for subject, run in sorted(judged.queues.items()):
        row = _row("queue", name_of(subject), run.messages + max(0, run.indexed - run.first))
        yield row | _untold(run) | _told(first.pop(("queue", name_of(subject)), None))
    for (spec, trace), found in sorted(first.items()):  # what has no message in the log: nothing of it is counted
        yield _row(spec, trace, 0) | _told(found)


def _row(spec: str, trace: str, events: int) -> Row:
    return {"spec": spec, "trace": trace, "verdict": "conforms", "rule": None, "position": None, "events": events}


def _told(found: Found | None) -> Row:
    return {} if found is None else _departing(found.spec, found.because, found.position)


def _untold(run: Run) -> Row:
    """A queue that is only counted among those that depart: where exactly it does, nobody looked."""
    because = run.suspect.refusal.because if run.suspect else None
    return _departing("queue", because, None) if because else {}


def _departing(spec: str, because: str, position: int | None) -> Row:
    return {"verdict": "departs", "rule": rule_id(spec, because), "position": position}
