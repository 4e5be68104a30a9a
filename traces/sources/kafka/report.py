"""Report sections of Kafka's data directories: partitions, their logs and producers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from pydantic import Field

from gapless.traces.report.glossary import Gloss
from gapless.traces.report.sections import Presentation, RowsByPart, Section, SectionRow, Tile, broken_traces, tile
from gapless.traces.report.values import Report, ReportRow, VerdictName
from gapless.traces.report.wording import plural


class PartitionRow(ReportRow):
    """One partition in numbers."""

    part: ClassVar[str] = "partitions"

    partition: str
    segments: int
    start: int = Field(description="the first offset of its first segment")
    end: int = Field(description="the offset that comes next")
    stable: int | None = Field(default=None, description="the stable offset: everything below it is decided")
    batches: int
    records: int
    producers: int = Field(description="that are idempotent, and known")
    verdict: VerdictName


def sections(parts: RowsByPart) -> list[Section]:
    """Returns the sections that data directories add to a report."""
    rows = [_row(row) for row in parts["partitions"]]
    count = sum(row.records for row in parts["partitions"])
    return [
        Section(
            "partitions", "Partitions", "partition", rows,
            headings="partition, segments, start, end, batches, records, producers", total=(count, "record"),
            detail=len(rows) > 20,
        )
    ]  # fmt: skip


def _row(row: PartitionRow) -> SectionRow:
    line = (
        f"offsets {row.start:,} to {row.end:,} in {plural(row.segments, 'segment')}; "
        f"{plural(row.batches, 'batch', 'batches')}, {plural(row.records, 'record')}, "
        f"{plural(row.producers, 'producer')}"
    )
    cells = (row.segments, row.start, row.end, row.batches, row.records, row.producers)
    return SectionRow(row.source, row.partition, line, cells, row.verdict)


def tiles(report: Report) -> Iterator[Tile]:
    """Partitions, records and producers, on the first screen."""
    rows: Sequence[Any] = report.parts.get("partitions", ())
    producers, state = broken_traces(finding for finding in report.violations if finding.spec == "producer")
    records = sum(row.records for row in rows)
    yield tile(len(rows), ("partition", "partitions"), sum(row.verdict == "departs" for row in rows))
    found = report.findings_total
    yield tile(records, ("record", "records"), found, "violation" if found == 1 else "violations", "no violation")
    yield tile(sum(row.producers for row in rows), ("producer", "producers"), producers, state, "none breaks a rule")


def conforms(report: Report, trace: str) -> Iterator[str]:
    """The sentence of `gapless explain` on a trace that departs nowhere."""
    events = report.counts.by_spec.get("producer" if report.life else "partition", 0)
    yield from (f"{trace} conforms: {events:,} events.", *(("", *report.life) if report.life else ()))


TERMS = (
    Gloss("batch", "records that a producer sent together: one checksum, one epoch, one after the other", ("batches",)),
    Gloss("epoch", "of a leader: how often another took over; of a producer: how often it was replaced", ("epochs",)),
    Gloss("high watermark", "every replica in sync has what lies below it: consumers may read it"),
    Gloss("marker", "a record that commits or aborts the open transaction of a producer", ("markers",)),
    Gloss("partition", "a log of records, one behind the other; a topic has some", ("partitions",)),
    Gloss("segment", "a file of a partition's log, named by its first offset", ("segments",)),
    Gloss("sequence", "a producer's number for a record, which shows a second sending", ("sequences",)),
    Gloss("snapshot", "what a broker knows of producers at an offset, so that it need not read on", ("snapshots",)),
    Gloss("stable offset", "everything below it is decided: readers of committed transactions stop there"),
)

PRESENTATION = Presentation(
    "Kafka data directory", "record", ("partitions",), sections, conforms, by_trace=False, terms=TERMS,
    numbered=("partitions", "partition"), subjects={"partition": "partition", "producer": "producer"}, tiles=tiles,
)  # fmt: skip
