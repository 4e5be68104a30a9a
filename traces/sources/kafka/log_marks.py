"""The picture of a partition's log in a report: its segments, and the offsets that files next to it state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from gapless.traces.problems import shown
from gapless.traces.report.values import Finding, Mark
from gapless.traces.report.wording import plural
from gapless.traces.sources.kafka.files.indexes import offset_index
from gapless.traces.sources.kafka.joining.findings import PartitionSummary

DRAWN = 8
"""Partitions that have a picture: those that depart first, then the longest."""
SEGMENTS = 200
"""Segments of a picture; where there are more, neighbours are one."""


def marks(source: str, partitions: Sequence[PartitionSummary], findings: Sequence[Finding]) -> list[Mark]:
    """Return the places on the pictures of some partitions."""
    ordered = sorted(partitions, key=lambda one: (not one.departs, not one.doubts, -one.records, one.name))
    return [mark for one in ordered[:DRAWN] for mark in _of_partition(source, one, findings)]


def _of_partition(source: str, one: PartitionSummary, findings: Sequence[Finding]) -> Iterator[Mark]:
    log = shown(one.name)
    together = -(-len(one.bases) // SEGMENTS)
    for number in range(0, len(one.bases), together or 1):
        group = one.bases[number : number + together]
        end = one.bases[number + together] if number + together < len(one.bases) else max(one.end, group[0])
        label = f"{group[0]:020d}.log" if len(group) == 1 else f"{plural(len(group), 'segment')} from {group[0]}"
        yield Mark(source=source, log=log, low=group[0], high=end, kind="file", label=label)
    yield Mark(source=source, log=log, low=one.start, high=one.end, kind="log", label=plural(one.records, "record"))
    for name, offset in _points(one).items():
        yield Mark(source=source, log=log, low=offset, high=offset, kind="point", label=name)
    for finding in findings:
        if finding.trace == log or finding.trace.startswith(f"{log}/"):
            label = f"{finding.trace}: {finding.needs}"
            yield Mark(source=source, log=log, low=finding.position, high=finding.position, kind="finding", label=label)


def _points(one: PartitionSummary) -> dict[str, int]:
    """The points of a log, from its start to its end; checkpoints may state what lies outside of it."""
    points = {"start": one.start} | one.points
    if one.stable >= 0:
        points["stable offset"] = one.stable
    if one.last_index is not None:
        with suppress(OSError):  # a file that went since it was judged: the picture is right without it, too
            entries = offset_index(*one.last_index).offset
            points |= {"last index entry": int(entries[-1])} if len(entries) else {}
    return points | {"end": one.end}
