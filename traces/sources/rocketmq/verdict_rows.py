"""The rows of the verdict table that one store adds: its log, every queue, every transaction and op, the cursors."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from gapless.traces.events.event import ROWS, utf8
from gapless.traces.problems import shown
from gapless.traces.report.outputs.verdict_table import SCHEMA
from gapless.traces.sources.rocketmq.joining.findings import Breach, QueueProgress, StoreFindings
from gapless.traces.sources.rocketmq.segments.results import name_of
from gapless.traces.sources.rocketmq.store.file_access import names_of_records
from gapless.traces.sources.rocketmq.store.selection import COMMIT_LOG
from gapless.traces.sources.rocketmq.transactions.ops import CURSORS, op_trace

Row = dict[str, Any]


def verdict_rows(judged: StoreFindings, source: str) -> Iterator[pa.RecordBatch]:
    """A row for every trace of the store, as batches of the table's schema."""
    rows = chain(_rows(judged), _transactions(judged))
    while some := list(islice(rows, ROWS)):
        table = [{"source": shown(source), **row, "trace": utf8(row["trace"])} for row in some]
        yield pa.RecordBatch.from_pylist(table, schema=SCHEMA)


def _rows(judged: StoreFindings) -> Iterator[Row]:
    first: dict[tuple[str, str], Breach] = {}
    for found in sorted(judged.breaches, key=lambda found: found.position):
        first.setdefault((found.spec, found.trace), found)
    log = sum(count for name, count in judged.covered.items() if name.startswith("log."))
    yield _row("log", COMMIT_LOG, log) | _reported(first.pop(("log", COMMIT_LOG), None))
    for subject, run in sorted(judged.queues.items()):
        row = _row("queue", name_of(subject), run.messages + max(0, run.indexed - run.first))
        yield (
            row
            | {"verdict": judged.verdict_of(subject)}
            | _unreported(run)
            | _reported(first.pop(("queue", name_of(subject)), None))
        )
    cursors = sum(count for name, count in judged.covered.items() if name.startswith("checkpoint."))
    if cursors or ("checkpoint", CURSORS) in first:
        yield _row("checkpoint", CURSORS, cursors) | _reported(first.pop(("checkpoint", CURSORS), None))
    reported = {found.trace for (spec, _), found in first.items() if spec == "op_batch"}
    for block in judged.listed.ops:
        for number, events, queue in block.T.tolist():
            if op_trace(number, queue) not in reported:
                yield _row("op_batch", op_trace(number, queue), events)
    first = {key: found for key, found in first.items() if key[0] != "transaction"}
    for (spec, trace), found in sorted(first.items()):  # what has no message in the log: nothing of it is counted
        yield _row(spec, trace, 0) | _reported(found)


def _transactions(judged: StoreFindings) -> Iterator[Row]:
    """Every transaction, those that depart first."""
    for name, rule, position, events in judged.listed.refused:
        row = _row("transaction", name, events)
        yield row | ({"verdict": "inconclusive"} if rule is None else _departing(rule, position))
    for block in judged.listed.accepted:
        block = block[:, block[1].argsort(kind="stable")]  # noqa: PLW2901 - the same, in the order of the log
        names = names_of_records(judged.store, block[1])
        for name, events in zip(names, block[2].tolist(), strict=True):
            yield _row("transaction", name, events)


def _row(spec: str, trace: str, events: int) -> Row:
    return {"spec": spec, "trace": trace, "verdict": "conforms", "rule": None, "position": None, "events": events}


def _reported(found: Breach | None) -> Row:
    return {} if found is None else _departing(found.rule, found.position)


def _unreported(run: QueueProgress) -> Row:
    """Returns the row of a queue that is only counted among those that depart, without its position."""
    if run.waits:
        return {"verdict": "inconclusive"}
    rule = run.suspect.refusal.rule if run.suspect else None
    return _departing(rule, None) if rule else {}


def _departing(rule: str, position: int | None) -> Row:
    return {"verdict": "departs", "rule": rule, "position": position}
