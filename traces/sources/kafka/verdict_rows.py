"""The rows of the verdict table that data directories add: every partition, and every producer in it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from gapless.traces.events.event import ROWS, utf8
from gapless.traces.problems import shown
from gapless.traces.report.outputs.verdict_table import SCHEMA
from gapless.traces.sources.kafka.joining.findings import LogFindings, PlacedDeparture
from gapless.traces.sources.kafka.transactions.traces import JudgedTraces


def verdict_rows(path: Path, found: LogFindings, ids: JudgedTraces) -> Iterator[pa.RecordBatch]:
    """Yields a row for every trace, as batches of the table's schema."""
    rows = chain(_rows(found), _rows_of_ids(found, ids))
    while some := list(islice(rows, ROWS)):
        table = [{"source": shown(path), **row, "trace": utf8(row["trace"])} for row in some]
        yield pa.RecordBatch.from_pylist(table, schema=SCHEMA)


def _rows(found: LogFindings) -> Iterator[dict[str, Any]]:
    first: dict[tuple[str, str], PlacedDeparture] = {}
    for one in sorted(found.breaches, key=lambda one: one.offset):
        first.setdefault((one.departure.spec, one.trace), one)
    for partition in found.partitions:
        verdict = "departs" if partition.departs else "inconclusive" if partition.doubts else "conforms"
        yield _row("partition", partition.name, partition.batches, verdict, first.get(("partition", partition.name)))
        departed = set(partition.departed)
        for producer, events in partition.listed:
            trace = f"{partition.name}/{producer}"
            verdict = "departs" if producer in departed else "conforms"
            yield _row("producer", trace, events, verdict, first.get(("producer", trace)))


def _rows_of_ids(found: LogFindings, ids: JudgedTraces) -> Iterator[dict[str, Any]]:
    first = {one.trace: one for one in reversed(found.breaches)}
    for spec, trace, events in ids.traces:
        verdict = "departs" if trace in ids.departed else "conforms"
        yield _row(spec, trace, events, verdict, first.get(trace))


def _row(spec: str, trace: str, events: int, verdict: str, breach: PlacedDeparture | None) -> dict[str, Any]:
    rule, position = (breach.departure.rule, breach.offset) if breach else (None, None)
    if spec == "partition" and verdict == "departs" and breach is None:
        verdict = "conforms"  # some of its producers depart, and have rows of their own
    return {
        "spec": spec, "trace": trace, "verdict": verdict, "rule": rule, "position": position, "events": events,
    }  # fmt: skip
