"""The rows of a comparison: the replicas, and for each slave the first difference from its master."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gapless.traces.report.model import Model
from gapless.traces.report.values import Finding, VerdictName

Role = Literal["master", "slave"]


class RecordCopy(Model):
    """The content of one replica at the position where its log differs from the other's."""

    role: Role
    file: str = Field(description="relative to the store")
    offset: int = Field(description="of the record, in bytes from the file's start")
    what: str = Field(description="a record, a blank, or neither")
    topic: str | None = None
    queue: int | None = None
    number: int | None = None
    key: str | None = None
    intact: bool | None = Field(default=None, description="whether the body has the checksum that its header names")


class LogFork(Model):
    """The first place where two logs differ before both of their ends."""

    position: int = Field(description="log position of the record that differs")
    byte: int = Field(description="log position of the first byte that differs")
    differs: list[str] = Field(description="the fields that differ")
    there: list[RecordCopy] = Field(description="what the master has there, and what the slave has")
    bytes_apart: int = Field(description="how many bytes differ from here to the end of what was compared")
    last: int = Field(description="log position of the last byte that differs")
    again: int | None = Field(description="from here on they are alike again: damage, and no fork for good")


class EntryCopy(Model):
    """One entry of a consume queue in one replica."""

    role: Role
    file: str = Field(description="relative to the store")
    offset: int
    position: int
    size: int
    tag: int
    right: bool = Field(description="whether it points at the message of its number")


class EntryDifference(Model):
    """The first entry in which a queue differs between two replicas, and how many more do."""

    queue: str
    number: int
    entries: list[EntryCopy]
    why: str
    count: int


class ReplicaRow(Model):
    """One replica, by a check of it alone."""

    role: Role
    path: str
    start: int = 0
    end: int = Field(default=0, description="exclusive end of its log, as the check found it")
    clean: bool | None = None
    live: bool = False
    verdict: VerdictName = Field(description="of the check of it alone")
    reasons: list[str] = Field(default=[], description="why it is unreadable or inconclusive")
    findings: list[Finding] = Field(default=[], description="violations and hazards of it alone")


class LogGap(Model):
    """A stretch of both logs that was not compared, because one side or both lack its file."""

    low: int = Field(description="log position where it begins")
    high: int = Field(description="exclusive end")
    roles: list[Role] = Field(description="the sides without a file of it")
    file: str = Field(description="the name of the missing file")


class PairRow(Model):
    """A slave compared with its master."""

    slave: str
    verdict: VerdictName
    low: int = Field(default=0, description="log position from which on bytes were compared")
    high: int = Field(default=0, description="exclusive end of what was compared")
    gaps: list[LogGap] = Field(default=[], description="stretches in between that were not compared")
    fork: LogFork | None = None
    queues: int = Field(default=0, description="queues that both have")
    entries: int = Field(default=0, description="entries that were compared")
    apart: list[EntryDifference] = Field(default=[], description="queues that differ")
    epochs: str = Field(default="", description="what the epoch files of both say, if there are any")
    reasons: list[str] = Field(default=[], description="why something could not be decided")
    notes: list[str] = Field(default=[], description="what is lawful, and good to know")
