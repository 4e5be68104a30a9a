"""What a check says: one verdict, the numbers behind it, and findings with their stories.

These models are the `--json` output; `schema` is raised when a key changes its meaning or goes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

VerdictName = Literal["conforms", "inconclusive", "unreadable", "departs"]
Severity = Literal["violation", "anomaly"]

WORST: tuple[VerdictName, ...] = ("conforms", "inconclusive", "unreadable", "departs")  # the later wins
EXIT_CODES: dict[VerdictName, int] = {"conforms": 0, "departs": 1, "unreadable": 2, "inconclusive": 3}


def worst(verdicts: Iterable[VerdictName]) -> VerdictName:
    """The worst of several verdicts; nothing at all is inconclusive."""
    return max(verdicts, key=WORST.index, default="inconclusive")


class Model(BaseModel):
    """Frozen, and strict about its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Where(Model):
    """A place: `file` relative to the source, `offset` in bytes from the file's start (of a trace file: its row)."""

    file: str
    offset: int


class Finding(Model):
    """One exemplar of a cluster (same rule, same way of breaking it), and how many there are of it."""

    rule: str
    severity: Severity
    spec: str
    trace: str
    source: str
    position: int = Field(description="log position of the event, in bytes")
    where: Where
    message: str = Field(description="what is wrong, in one sentence")
    needs: str = Field(description="the need that is not met")
    otherwise: str = Field(description="what goes wrong in a broker that breaks it")
    here: dict[str, int] = Field(description="the values that the need looks at")
    story: list[str] = Field(description="the shortest story, a line each; empty for most anomalies")
    count: int = 1
    traces: list[str] = Field(default=[], description="the first few traces of the cluster")


class Source(Model):
    """One input, and what was read of it."""

    path: str
    kind: str = Field(description="of source; `unknown` where it could not be opened")
    bytes: int = 0
    records: int = 0
    clean: bool | None = None
    live: bool = Field(default=False, description="a broker was running on it")
    verdict: VerdictName
    reasons: list[str] = Field(default=[], description="why it is unreadable or inconclusive")
    notes: list[str] = Field(default=[], description="what was used, left out or seen that changes no verdict")


class Counts(Model):
    """How much was judged."""

    events: int = 0
    traces: int = 0
    queues: int = Field(default=0, description="of stores; the rows below may be fewer")
    by_spec: dict[str, int] = {}


class QueueRow(Model):
    """One queue in numbers, for the report's table."""

    source: str
    topic: str
    queue: int
    messages: int
    first: int
    end: int
    indexed: int
    verdict: VerdictName


class Transactions(Model):
    """The transactions of one store in numbers: what became of them, how long it took, how ops were batched.

    A *renewal* is a half that the check service put back. Histograms have a count per upper bound or value.
    """

    source: str
    transactions: int = Field(description="how many there are: a half with all its versions is one")
    halves: int = Field(description="half records, renewals included")
    renewals: int = Field(description="of these, put back with a raised counter")
    finals: int
    ops: int = Field(description="op records")
    marks: int = Field(description="half numbers named in them")
    parked: int
    outcomes: dict[str, int] = Field(description="transactions by what became of them: committed, rolled back, …")
    decided_within: dict[int, int] = Field(
        description="committed and rolled-back transactions by ms from the first half to the final or op: at most this"
    )
    back_checks: dict[int, int] = Field(description="transactions by how often their half was put back")
    batches: dict[int, int] = Field(description="op records by the half numbers named in one: at most this many")
    half_cursor: int | None = Field(default=None, description="None where the store has none")
    half_end: int = Field(description="exclusive end of the half numbers in the log")
    op_cursor: int | None = None
    op_end: int


class Client(Model):
    """What a client log says was asked and answered, and how much of it could be held against the store."""

    source: str
    path: str
    lines: int
    sends: int = Field(description="messages sent, those in batches and halves included")
    acknowledged: int = Field(description="of these, answered with a place in the log")
    unknown: int = Field(description="of these, never answered: either may be true")
    expired: int = Field(default=0, description="acknowledged, and below the log's start now: not judged")
    decisions: int = Field(description="commits and rollbacks that were asked for")
    back_checks: int = Field(description="back-checks that clients received")


class Coordinator(Model):
    """One recorded transaction coordinator in numbers, as its log and its answers have them."""

    source: str
    trace: str
    loads: int = Field(description="how often it was loaded")
    begun: int = Field(description="transactions that began")
    ignored: int = Field(description="requests to begin that nobody answered, at the limit")
    committed: int
    aborted: int
    timed_out: int = Field(description="of these, aborted by the coordinator's own clock")
    rejected: int = Field(description="records that were written, and answered with an error")
    most_active: int = Field(description="at once")


class Mark(Model):
    """A place on the picture of the log: a stretch `low:high` in bytes, and what it is."""

    source: str
    low: int
    high: int
    kind: Literal["file", "log", "finding", "damage", "unread"]
    label: str


class Report(Model):
    """The whole answer."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    verdict: VerdictName
    profile: str
    engine: str
    sources: list[Source]
    counts: Counts
    coverage: dict[str, int] = Field(description="accepted events by spec and action")
    not_exercised: list[str] = Field(
        default=[], description="rules without evidence, and which evidence would exercise them"
    )
    anomalies: dict[str, int] = Field(default={}, description="what the profile gave away, by deviation")
    findings: list[Finding]
    findings_total: int
    queues: list[QueueRow] = []
    transactions: list[Transactions] = []
    clients: list[Client] = []
    coordinators: list[Coordinator] = []
    marks: list[Mark] = []
    life: list[str] = Field(default=[], description="of the one transaction that was asked for, a line for each step")
    seconds: float

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    @property
    def exit_code(self) -> int:
        """0 conforms, 1 departs, 2 unreadable, 3 inconclusive."""
        return EXIT_CODES[self.verdict]

    @property
    def violations(self) -> list[Finding]:
        """The findings that make the verdict."""
        return [finding for finding in self.findings if finding.severity == "violation"]
