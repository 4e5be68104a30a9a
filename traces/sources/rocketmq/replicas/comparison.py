"""The result of comparing replicas: one verdict, and for each slave the first difference from its master.

The models are the `--json` output of `gapless compare`; `schema` is raised when a key changes its meaning or goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import ConfigDict, Field

from gapless.traces.report.model import Model
from gapless.traces.report.values import EXIT_CODES, INTERRUPTED, VerdictName
from gapless.traces.report.wording import duration, plural
from gapless.traces.sources.rocketmq.replicas import text
from gapless.traces.sources.rocketmq.replicas.values import PairRow, ReplicaRow

CLOSING = {
    "conforms": "agree",
    "departs": "departs",
    "unreadable": "unreadable",
    "inconclusive": "inconclusive",
}


class Comparison(Model):
    """The whole answer of `gapless compare`."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    verdict: VerdictName
    replicas: list[ReplicaRow] = Field(description="the master first")
    pairs: list[PairRow]
    seconds: float
    interrupted: bool = False

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    @property
    def exit_code(self) -> int:
        """0 they agree, 1 they do not, 2 unreadable, 3 inconclusive; 130 interrupted."""
        return INTERRUPTED if self.interrupted else EXIT_CODES[self.verdict]

    def as_json(self) -> str:
        """The comparison as `--json` writes it."""
        return self.model_dump_json(by_alias=True, indent=1) + "\n"

    def lines(self) -> Iterator[str]:
        """Implements `ReplicaComparison`."""
        for row in self.replicas:
            yield from text.of_replica(row)
        for pair in self.pairs:
            yield ""
            yield from text.of_pair(pair, self.replicas[0].path)
        yield ""
        if self.interrupted:
            yield f"interrupted after {duration(self.seconds)}"
        else:
            what = f"{plural(len(self.replicas), 'replica')} in {duration(self.seconds)}"
            yield f"{CLOSING[self.verdict]}: {what}"

    def unread(self) -> list[tuple[str, str]]:
        """Implements `ReplicaComparison`: only if no pair could be decided."""
        if self.verdict != "unreadable" or any(pair.verdict != "inconclusive" for pair in self.pairs):
            return []
        return [(row.path, reason) for row in self.replicas if row.verdict == "unreadable" for reason in row.reasons]
