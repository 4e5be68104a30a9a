"""The numbers of a queue around a finding, as a row of cells with the positions above. Units are pixels, roughly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from gapless.traces.report.model import Model

WIDTH = 480


class Bitmap(Model):
    """The written numbers of a queue around its finding.

    A letter of `cells` is a number from `first` on: `w` written, `t` taken by a worker, `g` given and not taken, `.`
    not given.
    """

    kind: Literal["bitmap"] = "bitmap"
    first: int
    cells: str
    marks: dict[str, int] = Field(
        description="the queue's positions, by name: each is an exclusive end; `commit to`: that of the departing step"
    )
    gap: int | None = Field(default=None, description="the first number that is not written, if one behind it is")
    asked: int | None = Field(default=None, description="the number that the step that departs names")


@dataclass(frozen=True)
class Cell:
    """A number of a queue."""

    x: float
    kind: str
    says: str


@dataclass(frozen=True)
class Flag:
    """A position above or below the cells: the place it points at, and the place of its words."""

    x: float
    y: int
    label: str
    anchor: str
    departs: bool = False


WORDS = {
    "w": ("written", "written"),
    "t": ("taken", "taken by a worker, and not written"),
    "g": ("given", "given, and not taken"),
    ".": ("later", "not given yet"),
}


@dataclass(frozen=True)
class BitmapShapes:
    """A bitmap as shapes: cells in a row, positions above, the gap and what was asked for below."""

    picture: Bitmap
    name: str

    left = 10
    tall = 22

    @property
    def width(self) -> float:
        """The width of a cell."""
        return min((WIDTH - 2 * self.left) / len(self.picture.cells), 24)

    @property
    def top(self) -> int:
        """The upper edge of the cells."""
        return 16 * len(self.flags) + 8

    @property
    def height(self) -> int:
        """Down to the words below the cells."""
        return self.top + self.tall + 50

    def _at(self, number: int) -> float:
        """The left edge of a number's cell; what lies outside the picture stands at its edge."""
        inside = min(max(number - self.picture.first, 0), len(self.picture.cells))
        return round(self.left + inside * self.width, 1)

    @property
    def cells(self) -> list[Cell]:
        """Every number; the gap is a kind of its own."""
        found = []
        for at, letter in enumerate(self.picture.cells):
            number = self.picture.first + at
            kind, says = WORDS.get(letter, WORDS["."])
            gap = number == self.picture.gap
            found.append(Cell(self._at(number), "gap" if gap else kind, f"{number:,}: {'the gap: ' * gap}{says}"))
        return found

    @property
    def flags(self) -> list[Flag]:
        """The positions: each points at the edge that it has come to."""
        marks = sorted(self.picture.marks.items(), key=lambda mark: mark[1])
        found = []
        for row, (name, at) in enumerate(marks):
            x = self._at(at)
            anchor = "start" if x < WIDTH / 2 else "end"
            found.append(Flag(x, 12 + 16 * row, f"{name} {at:,}", anchor, name.endswith(" to")))
        return found

    @property
    def below(self) -> list[Flag]:
        """The gap, and the number that the step names which departs."""
        named = (("gap", self.picture.gap), ("asked", self.picture.asked))
        found = []
        for row, (name, number) in enumerate((name, number) for name, number in named if number is not None):
            x = round(self._at(number) + self.width / 2, 1)
            label = f"{name} at {number:,}" if name == "gap" else f"the step that departs names {number:,}"
            anchor = "start" if x < WIDTH / 2 and row else "end" if x > WIDTH / 4 else "start"
            found.append(Flag(x, self.top + self.tall + 18 + 16 * row, label, anchor, departs=True))
        return found

    @property
    def kinds(self) -> list[tuple[str, str]]:
        """The kinds that a legend has to explain."""
        met = {cell.kind for cell in self.cells}
        words = [*WORDS.values(), ("gap", "the gap")]
        return [(kind, says) for kind, says in words if kind in met]

    @property
    def description(self) -> str:
        """The picture in words."""
        where = ", ".join(f"{name} up to {at:,}" for name, at in self.picture.marks.items())
        gap = f"; the gap is at {self.picture.gap:,}" if self.picture.gap is not None else ""
        return f"numbers from {self.picture.first:,} on; {where}{gap}"
