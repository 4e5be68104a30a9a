"""The rows of a comparison as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gapless.traces.report.values import Finding
from gapless.traces.report.wording import plural, size, some
from gapless.traces.sources.rocketmq.replicas.values import (
    EntryCopy,
    EntryDifference,
    LogFork,
    LogGap,
    PairRow,
    RecordCopy,
    ReplicaRow,
)

AGREES = {"conforms": "agrees"}
MANY = 20  # queues that are listed one by one


def of_replica(row: ReplicaRow) -> Iterator[str]:
    """Describe one replica, as the check of it alone has it."""
    reach = f"log {row.start:,} to {row.end:,}, " if row.end else ""
    left = {True: "clean, ", False: "unclean, ", None: ""}[None if row.live else row.clean]
    yield f"{row.role} {row.path}: {reach}{'running, ' if row.live else left}alone: {row.verdict}"
    yield from (f"  {reason}" for reason in row.reasons)
    for finding in row.findings:
        yield from _finding(finding)


CAUSES = ("Its numbers start at 0 again", "A cause that fits", "Cause ")


def _finding(finding: Finding) -> Iterator[str]:
    kind = "hazard: " if finding.severity == "hazard" else ""
    yield f"  {kind}{finding.message}"
    yield f"    {finding.where.file}+{finding.where.offset} ({finding.rule})"
    causes = [line for line in finding.story if line.startswith(CAUSES)]
    again = [line for line in finding.story if line.startswith("Again: ")]
    yield from (f"    {line}" for line in causes + again)


def of_pair(pair: PairRow, master: str) -> Iterator[str]:
    """Describe what a slave has in common with its master, and where it differs."""
    yield f"{pair.slave} compared with {master}: {AGREES.get(pair.verdict, pair.verdict)}"
    if pair.high > pair.low:
        yield f"  logs: {_alike(pair)}"
        yield f"  queues: {plural(pair.queues, 'queue')} and {plural(pair.entries, 'entry', 'entries')} compared"
    if pair.epochs:
        yield f"  {pair.epochs}"
    if pair.fork:
        yield from _fork(pair.fork, pair.high)
    for apart in pair.apart[:MANY]:
        yield from _apart(apart)
    if len(pair.apart) > MANY:
        yield f"  … and {plural(len(pair.apart) - MANY, 'queue')} more"
    yield from (f"  not decided: {reason}" for reason in pair.reasons)
    yield from (f"  note: {note}" for note in pair.notes)


def _alike(pair: PairRow) -> str:
    """The stretches in which the logs agree, and the files that are missing in between."""
    end = pair.fork.position if pair.fork else pair.high
    gaps = [gap for gap in pair.gaps if gap.low < end]
    edges = [pair.low, *(edge for gap in gaps for edge in (gap.low, min(gap.high, end))), end]
    parts = [(low, high) for low, high in zip(edges[::2], edges[1::2], strict=True) if low < high]
    if not parts:
        return "nothing was compared" + _lacking(gaps)
    spans = " and ".join(f"from {low:,} to {high:,}" for low, high in parts)
    return f"alike {spans} ({size(sum(high - low for low, high in parts))}){_lacking(gaps)}"


def _lacking(gaps: Sequence[LogGap]) -> str:
    """The missing files, by the side that lacks them."""
    missing = [(" and ".join(gap.roles), gap.file) for gap in gaps]
    return "".join(
        f"; {roles} {'have' if ' and ' in roles else 'has'} no file {some(files)}"
        for roles in dict(missing)
        if (files := [file for who, file in missing if who == roles])
    )


def _fork(fork: LogFork, high: int) -> Iterator[str]:
    yield f"  the logs part at {fork.position:,}: the first byte that differs is {fork.byte:,}"
    for there in fork.there:
        yield f"    {there.role:6} {there.file}+{there.offset}: {_record(there)}"
    yield f"    differs: {', '.join(fork.differs) or 'nothing that is a field of a record'}"
    again = f"alike again from {fork.again:,} to {high:,}" if fork.again else "up to the end of the part that both have"
    yield f"    {plural(fork.bytes_apart, 'byte')} of {fork.last + 1 - fork.position:,} not the same; {again}"
    yield "    expected: the same bytes at the same position of both, as far as both logs reach"


def _record(there: RecordCopy) -> str:
    if there.topic is None:
        return there.what
    key = f", key {there.key}" if there.key else ""
    broken = "" if there.intact else "; its body has not the checksum that its header names"
    return f"{there.topic}/{there.queue} number {there.number}{key}{broken}"


def _apart(apart: EntryDifference) -> Iterator[str]:
    more = f", and {apart.count - 1:,} behind it" if apart.count > 1 else ""
    yield f"  queue {apart.queue} differs in entry {apart.number}{more}"
    for entry in apart.entries:
        yield f"    {entry.role:6} {entry.file}+{entry.offset}: {_entry(entry)}"
    yield f"    {apart.why}"


def _entry(entry: EntryCopy) -> str:
    wrong = "" if entry.right else ", which is not its message"
    return f"position {entry.position:,}, size {entry.size}, tag code {entry.tag}{wrong}"
