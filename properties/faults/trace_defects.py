"""Documented defects planted in traces: what a broker with the defect writes down, and what the check says of it.

Each is a trace that conforms, and the same with the step that shows the defect in place of its last one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from gapless.spec.catalog import SPECS
from gapless.traces.check import check
from gapless.traces.events import schema
from gapless.traces.events.schema import Event

Step = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class TraceDefect:
    """One defect.

    `what`: the broker did · `steps`: as they should be · `shows`: the step in place of the last · `rule`: it breaks.
    """

    code: str
    spec: str
    what: str
    steps: tuple[Step, ...]
    shows: Step
    rule: str

    def lawful(self) -> TraceDefect:
        """The trace as it should be."""
        return replace(self, shows=self.steps[-1])

    def events(self) -> list[Event]:
        """The trace with the defect."""
        parameters = SPECS[self.spec].parameters
        return [
            Event(
                source="planted", spec=self.spec, trace="planted/0", position=at, action=action,
                args=dict(zip(parameters[action], values, strict=True)),
            )
            for at, (action, values) in enumerate((*self.steps[:-1], self.shows))
        ]  # fmt: skip

    def judged(self) -> tuple[str, str, int]:
        """The verdict of a check, the rule that it names, and the lines of its story."""
        with TemporaryDirectory() as room:
            path = Path(room) / "events.ndjson"
            schema.write_events(path, self.events())
            report = check([path], profile="strict")
        found = report.violations[0] if report.violations else None
        return report.verdict, found.rule if found else "", len(found.story) if found else 0


DEFECTS = (
    TraceDefect(
        "T22",
        "transaction",
        "a check is counted whose producer's channel was busy",
        (("open", (0, 3, 0)), ("prepare", (17, 100, 1)), ("check", (18, 17, 500, 1, 1, 1))),
        ("check", (18, 17, 500, 1, 0, 1)),
        "transaction/producer-is-asked",
    ),
    TraceDefect(
        "C15",
        "queue",
        "a retry message is built into its light queue again",
        (
            *(("open", (0, 0)), ("append", (0, 1, 0, 340, 7)), ("index", (0, 0, 340, 7))),
            *(("append", (1, 1, 900, 340, 7)), ("index", (1, 900, 340, 7))),
        ),
        ("index", (1, 0, 340, 7)),
        "queue/entry-points-at-its-message",
    ),
)
"""All of them."""
