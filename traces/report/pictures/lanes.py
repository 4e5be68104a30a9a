"""A transaction around a finding: one lane for each partition, steps in their order to the right."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pydantic import Field

from gapless.traces.report.model import Model

StepKind = Literal["added", "data", "commit", "abort", "row"]
FateKind = Literal["sound", "departs", "later"]
WIDTH, RIGHT, TOP, HEIGHT = 640, 626, 34, 30
LETTER = 7.1
LONGEST = 24  # letters of the name of a lane
MEANS = {
    "data": "records",
    "commit": "a commit marker",
    "abort": "an abort marker",
    "added": "a partition is added",
    "row": "another row of the table",
    "decision": "the decision",
}
"""The tones of the picture, but for the finding, and what they stand for."""


class LaneItem(Model):
    """A step in a lane. `lane`: its number, -1 for the coordinator · `at`: its place among all steps."""

    kind: StepKind
    fate: FateKind = "sound"
    lane: int
    at: int
    says: str = Field(description="the step in words")


class TransactionLanes(Model):
    """The last steps before a finding, the one that departs, and some behind it."""

    kind: Literal["lanes"] = "lanes"
    lanes: list[str] = Field(description="partitions, in their order")
    items: list[LaneItem]
    left_out: int = Field(default=0, description="earlier steps")
    lanes_left_out: int = Field(default=0, description="partitions without a lane")


@dataclass(frozen=True)
class ItemShape:
    """A step: the tone of its colour, its path, and words for it."""

    tone: str
    path: str
    says: str


@dataclass(frozen=True)
class TransactionLanesShapes:
    """The steps in a grid of lanes and columns; units are pixels, roughly."""

    picture: TransactionLanes
    name: str

    width = WIDTH
    top = TOP
    right = RIGHT

    @property
    def bottom(self) -> int:
        """The lower end of the last lane."""
        return TOP + HEIGHT * (len(self.picture.lanes) + 1)

    @property
    def height(self) -> int:
        """The height of the picture."""
        return self.bottom + 26

    @cached_property
    def labels(self) -> list[tuple[str, int]]:
        """The name of each lane, and the height of its line of text."""
        return [
            (_short(name), int(self.y(lane)) + 4) for lane, name in enumerate(["coordinator", *self.picture.lanes], -1)
        ]

    @cached_property
    def left(self) -> float:
        """The left end of the lanes, behind the longest name."""
        return round(max(len(name) for name, _ in self.labels) * LETTER + 12, 1)

    @cached_property
    def _column(self) -> float:
        places = [item.at for item in self.picture.items]
        return (RIGHT - self.left) / (max(places) - min(places) + 1)

    def x(self, at: int) -> float:
        """The middle of a column."""
        first = min(item.at for item in self.picture.items)
        return round(self.left + (at - first + 0.5) * self._column, 1)

    def y(self, lane: int) -> float:
        """The middle of a lane; -1 is the coordinator's."""
        return TOP + HEIGHT * (lane + 1.5)

    @property
    def decisions(self) -> list[tuple[float, str, str]]:
        """The place of each decision, its word, and words for the whole step."""
        return [
            (self.x(item.at), item.kind, item.says)
            for item in self.picture.items
            if item.lane < 0 and item.kind in ("commit", "abort")
        ]

    @property
    def shapes(self) -> list[ItemShape]:
        """The steps in lanes; the one that departs is drawn last, above the others."""
        ordered = sorted(self.picture.items, key=lambda item: item.fate == "departs")
        return [ItemShape(self._tone(item), self._path(item), self._words(item)) for item in ordered]

    def _tone(self, item: LaneItem) -> str:
        return item.fate if item.fate != "sound" else item.kind

    def _words(self, item: LaneItem) -> str:
        before = {"sound": "", "departs": "not allowed: ", "later": "not judged: "}[item.fate]
        return f"{before}{item.says}"

    def _path(self, item: LaneItem) -> str:
        x, y, half = self.x(item.at), self.y(item.lane), round(min(self._column * 0.38, 14), 1)
        match item.kind:
            case "data":
                return f"M{x - half:.1f} {y}H{x + half:.1f}"
            case "commit":
                return f"M{x - 4:.1f} {y}L{x - 1:.1f} {y + 4}L{x + 5:.1f} {y - 5}"
            case "abort":
                return f"M{x - 4:.1f} {y - 4}L{x + 4:.1f} {y + 4}M{x + 4:.1f} {y - 4}L{x - 4:.1f} {y + 4}"
            case _:
                return f"M{x} {y - 5}V{y + 5}"

    @property
    def legend(self) -> list[tuple[str, str, str]]:
        """The tones of the picture with the paths that show them, and what they stand for."""
        paths = {
            "data": "M3 7H19", "commit": "M6 7L9 11L15 2", "abort": "M7 3L15 11M15 3L7 11", "added": "M11 2V12",
            "row": "M11 2V12", "decision": "M11 1V13",
        }  # fmt: skip
        tones = {self._tone(item) for item in self.picture.items if item.lane >= 0 or item.kind == "row"}
        found = [(tone, paths[tone], MEANS[tone]) for tone in MEANS if tone in tones]
        if self.decisions:
            found.append(("decision", paths["decision"], MEANS["decision"]))
        refused = next(item for item in self.picture.items if item.fate == "departs")
        found.append(("departs", paths[refused.kind], self._words(refused)))
        if any(item.fate == "later" for item in self.picture.items):
            found.append(("later", "M3 7H19", "later steps, not judged"))
        return found

    @property
    def note(self) -> str:
        """The steps and partitions that are not shown."""
        return "".join(
            f"; {count:,} {noun}{'s' if count > 1 else ''} left out"
            for count, noun in ((self.picture.left_out, "earlier step"), (self.picture.lanes_left_out, "partition"))
            if count
        )

    @property
    def description(self) -> str:
        """The picture in words."""
        return "; ".join(self._words(item) for item in sorted(self.picture.items, key=lambda item: item.at))


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
