"""The result of a check: one verdict, its numbers, and findings with their stories.

These models are the `--json` output; `schema` is raised when a key changes its meaning or goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pkgutil import resolve_name
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, Field, SerializeAsAny, model_serializer, model_validator
from pydantic.json_schema import SkipJsonSchema

from gapless.traces.report.model import Model
from gapless.traces.report.pictures.kinds import Picture

VerdictName = Literal["conforms", "inconclusive", "unreadable", "departs"]
Severity = Literal["violation", "anomaly", "hazard"]
"""A hazard is sound now, and the broker's next start breaks it. Only violations make a verdict."""

Moments = Literal["stopped", "running", "one", "queues younger", "queues older", "several"]
"""Of which moments the files of a store look to be: its broker stopped in order, or runs; or of one, or not of one."""

WORST: tuple[VerdictName, ...] = ("conforms", "inconclusive", "unreadable", "departs")  # the later wins
EXIT_CODES: dict[VerdictName, int] = {"conforms": 0, "departs": 1, "unreadable": 2, "inconclusive": 3}
INTERRUPTED = 130  # as of a process that SIGINT ended


def worst(verdicts: Iterable[VerdictName]) -> VerdictName:
    """The worst of several verdicts; nothing at all is inconclusive."""
    return max(verdicts, key=WORST.index, default="inconclusive")


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
    summary: str = Field(default="", description="the same for a headline, where the message has more")
    needs: str = Field(description="the need that is not met")
    otherwise: str = Field(description="what goes wrong in a broker that breaks it")
    here: dict[str, int] = Field(description="the values that the need looks at")
    story: list[str] = Field(description="the shortest story, a line each; empty for most anomalies")
    count: int = 1
    traces: list[str] = Field(default=[], description="the first few traces of the cluster")
    keys: list[str] = Field(default=[], description="keys of the message that it is about, if its sentence names it")
    picture: Picture | None = Field(default=None, description="the picture that a page shows with the story")


class SourceRow(Model):
    """One input, and what was read of it."""

    path: str
    kind: str = Field(description="of source; `unknown` where it could not be opened")
    owner: str = Field(default="", description="the name of the system that wrote it, if its settings say so")
    bytes: int = 0
    records: int = 0
    clean: bool | None = None
    live: bool = Field(default=False, description="a broker was running on it")
    newest: int | None = Field(default=None, description="time of its newest file, in seconds since 1970")
    moments: Moments | None = Field(default=None, description="of which moments the files of a store look to be")
    verdict: VerdictName
    reasons: list[str] = Field(default=[], description="why it is unreadable or inconclusive")
    notes: list[str] = Field(default=[], description="what was used, left out or seen that changes no verdict")


class Counts(Model):
    """Counts of what was judged against a rule, not only read."""

    events: int = 0
    rules: int = Field(default=0, description="rules that events were judged against")
    traces: int = 0
    queues: int = Field(default=0, description="of stores; the rows below may be fewer")
    by_spec: dict[str, int] = Field(default={})


class ReportRow(Model):
    """A row that one source adds to a report: of a queue, say. Each source has models of its own for its rows.

    `part` is the key of the report under which such rows stand.
    """

    part: ClassVar[str]

    source: str


class OverdueRow(ReportRow):
    """A task that waits, though the broker has lived through all the rounds in which it is done."""

    part: ClassVar[str] = "overdue"

    trace: str
    task: str = Field(description="what waits, such as half, op, timer, delayed message, open transaction")
    due: int = Field(description="when its time came, in ms since 1970, by the broker's clock")
    late: int = Field(description="ms that the broker has lived since then, as far as that is known")


class Mark(Model):
    """A place on the picture of a log: a stretch `low:high` in bytes, and what it is."""

    source: str
    log: str = Field(default="", description="the log, of a source that has several; `low:high` are offsets in it then")
    low: int
    high: int
    kind: Literal["file", "log", "finding", "damage", "unread", "point"]
    label: str


class Report(Model):
    """The whole answer."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    verdict: VerdictName
    profile: str
    engine: str
    sources: list[SourceRow]
    counts: Counts
    coverage: dict[str, int] = Field(description="accepted events by spec and action")
    not_exercised: list[str] = Field(
        default=[], description="rules without evidence, and which evidence would exercise them"
    )
    anomalies: dict[str, int] = Field(default={}, description="deviations that the profile allowed, by name")
    findings: list[Finding]
    findings_total: int
    parts: dict[str, list[SerializeAsAny[ReportRow]]] = Field(
        default={}, description="rows of the sources, such as `queues`: in JSON keys of their own, and as attributes"
    )
    marks: list[Mark] = Field(default=[])
    life: list[str] = Field(default=[], description="of the one trace that was asked for, a line for each step")
    seconds: float
    compiling: SkipJsonSchema[float] = Field(
        default=0.0, exclude=True, description="seconds of `seconds`, for text alone"
    )
    interrupted: bool = Field(default=False, description="by Ctrl-C: this is what was judged so far")

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _gathered(cls, given: Any) -> Any:
        """The rows of the sources, which have keys of their own, as one mapping of their models."""
        if not isinstance(given, dict):
            return given
        models = {row.part: row for row in ReportRow.__subclasses__()}
        found = {name: given[name] for name in given if name in models} | given.get("parts", {})
        parts = {name: [models[name].model_validate(row) for row in rows] for name, rows in found.items()}
        return {key: value for key, value in given.items() if key not in models} | {"parts": parts}

    @model_serializer(mode="wrap")
    def _spread(self, dump: Callable[[Report], dict[str, Any]]) -> dict[str, Any]:
        """The opposite: a key for each kind of row."""
        spread: dict[str, Any] = {}
        for key, value in dump(self).items():
            spread |= value if key == "parts" else {key: value}
        return spread

    def __getattr__(self, name: str) -> list[Any]:
        """The rows of one kind: `report.queues`."""
        parts: dict[str, list[Any]] = self.__dict__.get("parts", {})
        if name in parts:
            return parts[name]
        raise AttributeError(f"a report has no {name!r}")

    def __str__(self) -> str:
        """The report as text, as a pipe gets it."""
        text: str = resolve_name("gapless.traces.report.outputs.text:as_text")(self)
        return text

    @property
    def exit_code(self) -> int:
        """0 conforms, 1 departs, 2 unreadable, 3 inconclusive; 130 interrupted, whatever was found until then."""
        return INTERRUPTED if self.interrupted else EXIT_CODES[self.verdict]

    def as_json(self) -> str:
        """The report as `--json` writes it."""
        return self.model_dump_json(by_alias=True, indent=1) + "\n"

    @property
    def violations(self) -> list[Finding]:
        """The findings that make the verdict."""
        return [finding for finding in self.findings if finding.severity == "violation"]

    @property
    def hazards(self) -> list[Finding]:
        """The findings that are sound now and that the broker's next start will break."""
        return [finding for finding in self.findings if finding.severity == "hazard"]
