"""The parts of a report that come from one recording."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gapless.traces.report.values import Finding, Mark, Moments, ReportRow

if TYPE_CHECKING:  # few checks write a table, and pyarrow loads slowly
    import pyarrow as pa


@dataclass
class Parts:
    """The parts of a report that come from one recording.

    `profile` is the one that it was judged by, where that is for the recording to say. `unreadable` says why it
    cannot be judged at all, `reasons` why not everything was. `findings` come in the order in which they explain one
    another: the source knows it. `rows` are the source's own rows by name, each a model
    of its own; `depth` is the one that was read, empty where there is one only, and `unread` are the ids of rules about
    what it left out; `event_rules` are the rules about events that were checked, apart from the needs of steps;
    `listed` counts the rows that tasks wrote into the verdict table, and `verdicts` are those still to be written.
    """

    bytes: int = 0
    records: int = 0
    profile: str = ""
    owner: str = ""  # the name of the system that wrote it
    clean: bool | None = None
    live: bool = False
    moments: Moments | None = None
    unreadable: str = ""
    reasons: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    events: dict[str, int] = field(default_factory=dict)
    traces: int = 0
    coverage: dict[str, int] = field(default_factory=dict)
    depth: str = ""
    unread: frozenset[str] = frozenset()
    event_rules: set[str] = field(default_factory=set)
    not_exercised: list[str] = field(default_factory=list)
    anomalies: dict[str, int] = field(default_factory=dict)
    rows: dict[str, Sequence[ReportRow]] = field(default_factory=dict)
    queues: int = 0  # all of them; `rows` may tell of fewer
    marks: list[Mark] = field(default_factory=list)
    life: list[str] = field(default_factory=list)
    listed: int = 0
    verdicts: Iterable[pa.RecordBatch] = ()

    @property
    def violations(self) -> int:
        """The number of violations."""
        return sum(finding.count for finding in self.findings if finding.severity == "violation")
