"""What one source adds to a report, and how a source is told from another by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gapless.traces.report.values import Client, Coordinator, Finding, Mark, QueueRow, Source, Transactions

Progress = Callable[[int, int], None]
"""Told, after every split, how many bytes are done and how many there are."""


@dataclass
class Parts:
    """What one source adds to the report."""

    source: Source
    findings: list[Finding] = field(default_factory=list)
    events: dict[str, int] = field(default_factory=dict)
    traces: int = 0
    coverage: dict[str, int] = field(default_factory=dict)
    not_exercised: list[str] = field(default_factory=list)
    anomalies: dict[str, int] = field(default_factory=dict)
    queues: list[QueueRow] = field(default_factory=list)
    transactions: list[Transactions] = field(default_factory=list)
    clients: list[Client] = field(default_factory=list)
    coordinators: list[Coordinator] = field(default_factory=list)
    queue_count: int = 0  # of a store, those without a row included
    marks: list[Mark] = field(default_factory=list)
    life: list[str] = field(default_factory=list)
    total: int = 0
    listed: int = 0  # verdicts that were written into the table
    interrupted: bool = False  # by Ctrl-C, while this source was read


RECORDING = "trace.ndjson"  # the file by which a recording of a Pulsar coordinator is known


def recording_folder(path: Path) -> Path | None:
    """The folder of a recording: `path` itself, or where it names the file in it; None where it is something else."""
    if path.name == RECORDING and path.is_file():
        with path.open("rb") as file:
            return None if b'"schema"' in file.read(64) else path.parent  # as a file of events begins
    return path if (path / RECORDING).is_file() and not (path / "commitlog").is_dir() else None
