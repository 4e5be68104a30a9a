"""The rows that stores add to a report: queues, transactions, clients, trace topics."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from gapless.traces.report.values import ReportRow, VerdictName


class QueueRow(ReportRow):
    """One queue in numbers, for the report's table."""

    part: ClassVar[str] = "queues"

    topic: str
    queue: int
    messages: int
    first: int
    end: int
    indexed: int
    missing: int = Field(default=0, description="numbers whose messages may lie in damage of the log: not judged")
    verdict: VerdictName
    end_is_known: SkipJsonSchema[bool] = Field(
        default=True, exclude=True, description="its entries were judged to the end"
    )


class TransactionsRow(ReportRow):
    """The transactions of one store in numbers: outcomes, durations, and sizes of op batches.

    A *renewal* is a half that the check service put back. Histograms have a count per upper bound or value.
    """

    part: ClassVar[str] = "transactions"

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
    half_end: int | None = Field(description="exclusive end of the half numbers in the log; None if it is not known")
    op_cursor: int | None = None
    op_end: int | None

    @property
    def empty(self) -> bool:
        """True if the store has no transactions."""
        return not (self.transactions or self.halves or self.finals or self.ops or self.parked)


class ClientRow(ReportRow):
    """The requests and answers in a client log, and the part that was compared with the store."""

    part: ClassVar[str] = "clients"

    path: str
    lines: int
    sends: int = Field(description="messages sent, those in batches and halves included")
    acknowledged: int = Field(description="of these, answered with a place in the log")
    unknown: int = Field(description="of these, never answered: either may be true")
    expired: int = Field(default=0, description="acknowledged, and below the log's start now: not judged")
    decisions: int = Field(description="commits and rollbacks that were asked for")
    back_checks: int = Field(description="back-checks that clients received")


class TraceTopicRow(ReportRow):
    """The content of a store's trace topics: how much was understood, and the number of messages.

    Clients discard traces when they have too many: a missing trace proves nothing.
    """

    part: ClassVar[str] = "testimony"

    topics: str = Field(description="the trace topics, with commas")
    messages: int = Field(description="trace messages")
    damaged: int = Field(description="of these, not where their entry says, or not to be unpacked: not used")
    contexts: int = Field(description="their contents, one for each answer, decision, delivery")
    strange: int = Field(description="of these, of a form that gapless does not know: not used")
    promised: int = Field(description="messages that were answered with a place in this log")
    testified: int = Field(default=0, description="of these, found in their places")
    expired: int = Field(default=0, description="of these, below the log's start now: not judged")
    written: int = Field(default=0, description="messages in the log that clients wrote, as far as it is known")
    elsewhere: int = Field(description="messages that another broker took, or this one under another address: not used")
    placeless: int = Field(description="messages that were answered without a place: not used")
    doubtful: int = Field(description="messages that were taken, and not as safe as was asked for: not used")
    untimely: int = Field(description="messages whose place is of an earlier log, as it seems: not used")
    commits: int = Field(description="transactions whose commit was asked for")
    rollbacks: int = Field(description="transactions whose rollback was asked for")
    handed: int = Field(description="deliveries to consumers in trace messages")
    delivered: int = Field(default=0, description="messages that consumers were handed")
    readable: int = Field(default=0, description="of these, in this log where consumers can read them")
    undecided: int = Field(default=0, description="of these, in this log as a half alone")

    @property
    def share(self) -> float:
        """The share of the messages of clients that traces confirm."""
        return self.testified / max(self.written, self.testified, 1)
