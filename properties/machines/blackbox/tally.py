"""The tally of a run, and the counts that are enough to believe it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gapless.properties.campaign import CaseTally

LEAST = {
    "kills": 5,
    "interrupts": 5,
    "interrupted calls": 40,
    "forks": 40,
    "limits": 40,
    "closes": 60,
    "intruders": 150,
    "kills while it opened": 100,
    "kills while it closed": 100,
    "small disks": 250,
    "halves": 1,
    "commits": 3,
    "rollbacks": 4,
    "checked halves": 4,
    "followed messages": 1,
    "watched messages": 1,
}
"""Of so many kills and interrupts one must be of that kind. A run with too few to expect one need not have it."""

OFFERED = {
    "transactions": ("halves", "commits", "rollbacks", "checked halves"),
    "follow": ("followed messages",),
    "view": ("watched messages",),
}
"""Kinds that come about where a subject offers that."""

SURE = 8
"""So many of a kind must be expected before their absence means anything."""


@dataclass(frozen=True, slots=True)
class FailedCase:
    """A store that did not do what it promised: the case's seed, what was done, what is wrong, where its folder is."""

    seed: int
    lines: list[str]
    wrong: str
    kept: Path


@dataclass
class BlackBoxTally(CaseTally):
    """Counts of events, and failures. `skipped`: what this machine does not let us try."""

    skipped: set[str] = field(default_factory=set)

    @property
    def done(self) -> int:
        """Count kills and interrupts."""
        return self.disturbed

    @property
    def disturbed(self) -> int:
        """Kills and interrupts."""
        return self.counts["kills"] + self.counts["interrupts"]

    def too_few(self) -> Iterator[str]:
        """Kinds of which there were too few: what was not tried was not passed."""
        for kind, share in LEAST.items():
            expected = self.disturbed // share
            is_possible = not any(skipped.startswith(kind) for skipped in self.skipped)
            if is_possible and expected >= SURE and self.counts[kind] < expected // 2:
                yield f"{kind}: {self.counts[kind]:,}, expected at least {expected // 2:,}"
        acknowledged = self.counts["acknowledged messages"]
        if acknowledged < self.disturbed:
            yield f"acknowledged messages: {acknowledged:,}, expected at least {self.disturbed:,}"

    def __str__(self) -> str:
        return ", ".join(f"{self.counts[kind]:,} {kind}" for kind in SHOWN if self.counts[kind])


SHOWN = (
    *("kills", "interrupts", "interrupted calls", "kills while it opened", "kills while it closed", "forks", "limits"),
    *("halves", "commits", "rollbacks", "checked halves", "stores with transactions"),
    *("followed messages", "watched messages"),
    *("intruders", "small disks", "closes", "stores", "openings", "acknowledged messages", "messages found", "checks"),
)
