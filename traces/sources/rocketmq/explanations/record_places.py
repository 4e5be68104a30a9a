"""Describes what lies at a position of the log: a record, or where there is none."""

from __future__ import annotations

from gapless.traces.problems import shown
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.log import scan
from gapless.traces.sources.rocketmq.segments.splits import Split, record_before, split_at
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory


def whereabouts(judged: StoreFindings, position: int) -> str:
    """Describes the place of a position: below the log, beyond it, in which record, or in none."""
    store = judged.store
    if position < store.start:
        return f"below the log's start {store.start}"
    if position >= judged.end:
        return f"beyond the log's end {judged.end}"
    split = split_at(store, position)
    return _record_at(store, split, position) if split else "where the log has no file"


def _record_at(store: StoreDirectory, split: Split, position: int) -> str:
    found = record_before(store, split, position)
    if found is None:
        return "in a record that begins before it"
    columns, record = found
    start = int(columns.log[scan.POSITION, record])
    if position >= start + columns.log[scan.SIZE, record]:
        return (
            "the header of an entry, or the blank at a file's end"
            if split.file.wrapped
            else "the blank at a file's end"
        )
    rows = columns.rows
    mine = [r for r in range(rows.shape[1]) if rows[scan.PLACE, r] == start]
    whose = ", ".join(
        f"{topic}/{queue} number {int(rows[scan.NUMBER, r])}"
        for r in mine
        for topic, queue in [columns.subject(int(rows[scan.SUBJECT, r]))]
    )
    whose = shown(whose) or "of no queue"
    return f"the record of {whose}" if start == position else f"in the middle of the record at {start} ({whose})"
