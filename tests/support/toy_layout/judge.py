"""Judges files of tokens, by the spec of permits: it has a rule that there is one at least."""

from __future__ import annotations

from pathlib import Path

from gapless.spec.catalog import SPECS
from gapless.traces.judging.building import STEPS
from gapless.traces.options import Options
from gapless.traces.replay.exact import replay
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.layouts.layout import (
    JoinSide,
    LayoutJudge,
    covered,
    without,
)
from gapless.traces.sources.rocketmq.segments.results import Segment

SPEC = SPECS["permits"]
FOLDER = "tokens"


def opened_files(judged: StoreFindings) -> dict[str, int]:
    """Return the tokens in each file, by its name."""
    return judged.open(FOLDER, lambda: tokens_in(Path(judged.store.path, FOLDER)))


def tokens_in(folder: Path) -> dict[str, int]:
    """Read the tokens in each file of a folder."""
    return {file.name: int(file.read_text()) for file in sorted(folder.glob("*"))}


class TokenJudge(LayoutJudge):
    """Judges the files of one store."""

    def __init__(self, judged: StoreFindings, options: Options) -> None:
        super().__init__(judged, options)
        self.records: list[int] = []

    def add(self, segment: Segment) -> None:
        """Remembers where the records of a segment lie."""
        self.records += segment.layouts["toy_layout"]

    def restore(self, known: list[int]) -> None:
        """Restores the records that were followed."""
        self.records = known[:]

    def settle(self) -> None:
        """Judges each file."""
        self.judged.note(f"tokens: {len(self.records)} records, the last one at {self.records[-1]}")
        for name, tokens in opened_files(self.judged).items():
            opened = STEPS[SPEC.name].open(permits=tokens, timeout=0)
            outcome = replay(SPEC.name, SPEC.initial, [opened], profile=self.options.profile)
            self.judged.cover(SPEC.name, outcome.covered)
            if outcome.departure:
                self.judged.report(f"{FOLDER}/{name}", self.records[-1], outcome.departure)


LAYOUT = JoinSide(
    TokenJudge, is_present=covered("permits.open"), not_exercised=without("permits.open", "tokens: no file")
)
