"""Logs that have lost their snapshots of producers: a hazard of the broker's next start.

Source: docs/kafka.md#snapshots.
"""

from __future__ import annotations

from typing import NamedTuple

from gapless.spec import catalog
from gapless.traces.report.values import Where
from gapless.traces.sources.kafka.files.directory import PartitionFiles
from gapless.traces.sources.kafka.judging.parts import PartitionTerms

RULE = catalog.rule("partition/snapshot-is-at-the-end").id


class LostSnapshots(NamedTuple):
    """A log without a snapshot behind its start, `bytes` long. `is_forgotten`: its producers are; it is not read."""

    trace: str
    rule: str
    offset: int
    where: Where
    bytes: int
    is_forgotten: bool


def lost_snapshots(terms: PartitionTerms, files: PartitionFiles, *, is_stopped: bool) -> LostSnapshots | None:
    """Return the loss of all snapshots of a log; None if one is left, or none need ever have been there.

    One is written when a segment begins, so that a log of several segments has one.
    """
    last = files.segments[-1]
    if any(offset > terms.log_start for offset, _ in files.snapshots) or last.base <= terms.log_start:
        return None
    where = Where(file=f"{terms.folder}/{last.log.name}", offset=0)
    size = sum(segment.size for segment in files.segments)
    is_forgotten = is_stopped and not files.snapshots
    return LostSnapshots(terms.name, RULE, last.base, where, size, is_forgotten)
