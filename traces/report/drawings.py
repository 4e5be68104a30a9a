"""Swimlanes, bitmaps and curves as shapes: the template only draws them. Units are pixels, roughly, as of `Chart`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from gapless.traces.report.charts import clipped
from gapless.traces.report.values import Bitmap, LaneStep, Swimlane

WIDTH = 480
LETTER = 5.8  # of the small letters of these pictures
RIGHT = WIDTH - 10
TICK = 26  # closer marks share one


@dataclass(frozen=True)
class Stop:
    """A step on a swimlane: the middle of its circle, the number in it, and words beside it where there is room."""

    x: float
    y: float
    number: int
    step: LaneStep
    word: str


@dataclass(frozen=True)
class SwimlaneDrawing:
    """A swimlane as shapes. Steps stand in their order, evenly; the place of each on its axis is written below."""

    picture: Swimlane
    name: str

    row = 30
    top = 6

    @property
    def height(self) -> int:
        """Down to the words below the axis."""
        return self.bottom + 32

    @property
    def bottom(self) -> int:
        """Where the lanes end."""
        return self.top + self.row * len(self.picture.lanes)

    @property
    def left(self) -> float:
        """Where the first step stands: behind the names of the lanes."""
        return max(len(lane) for lane in self.picture.lanes) * (LETTER + 0.6) + 26

    @property
    def lanes(self) -> list[tuple[str, int]]:
        """The name of every lane, and the height of its line."""
        return [(lane, self._y(lane)) for lane in self.picture.lanes]

    def _y(self, lane: str) -> int:
        return self.top + self.picture.lanes.index(lane) * self.row + self.row // 2

    @property
    def gap(self) -> float:
        """From one step to the next."""
        return (RIGHT - 16 - self.left) / max(len(self.picture.steps) - 1, 1)

    @cached_property
    def stops(self) -> list[Stop]:
        """Every step."""
        steps = self.picture.steps
        return [
            Stop(round(self.left + n * self.gap, 1), self._y(step.lane), n + 1, step, self._word(n))
            for n, step in enumerate(steps)
        ]

    def _word(self, number: int) -> str:
        """The name of a step, where it covers no other step of its lane."""
        steps = self.picture.steps
        word = steps[number].call.partition("(")[0]
        later = [n for n in range(number + 1, len(steps)) if steps[n].lane == steps[number].lane]
        room = (later[0] - number) * self.gap - 24 if later else RIGHT - 10 - self.left - number * self.gap
        return word if len(word) * LETTER <= room else ""

    @property
    def path(self) -> str:
        """From step to step, but for the last way."""
        return "M" + "L".join(f"{stop.x} {stop.y}" for stop in self.stops[:-1])

    @property
    def last(self) -> str:
        """The way to the step that departs."""
        return "M" + "L".join(f"{stop.x} {stop.y}" for stop in self.stops[-2:])

    @property
    def places(self) -> list[tuple[float, str]]:
        """Places below the axis, as many as stand beside one another; that of the last step always."""
        told: list[tuple[float, str]] = []
        free = float(WIDTH)
        for stop in reversed(self.stops):
            text = f"{stop.step.at:,}"
            half = len(text) * LETTER / 2 + 3
            x = min(stop.x, WIDTH - half)
            if x + half <= free:
                told.append((round(x, 1), text))
                free = x - half
        return told[::-1]

    @property
    def description(self) -> str:
        """The picture for those who do not see it."""
        return "; ".join(
            f"{stop.number}. {stop.step.lane} at {stop.step.at:,}: {stop.step.call}"
            + (f" {stop.step.becomes}" if stop.step.departs else "")
            for stop in self.stops
        )


@dataclass(frozen=True)
class Cell:
    """A number of a queue."""

    x: float
    kind: str
    says: str


@dataclass(frozen=True)
class Flag:
    """A position above or below the cells: where it points, and where its words stand."""

    x: float
    y: int
    label: str
    anchor: str
    departs: bool = False


WORDS = {
    "w": ("written", "written"),
    "t": ("taken", "taken by a worker, and not written"),
    "g": ("given", "given, and taken by nobody"),
    ".": ("later", "not given yet"),
}


@dataclass(frozen=True)
class BitmapDrawing:
    """A bitmap as shapes: cells in a row, positions above, the gap and what was asked for below."""

    picture: Bitmap
    name: str

    left = 10
    tall = 22

    @property
    def width(self) -> float:
        """Of a cell."""
        return min((WIDTH - 2 * self.left) / len(self.picture.cells), 24)

    @property
    def top(self) -> int:
        """Where the cells begin."""
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
        told = []
        for row, (name, at) in enumerate(marks):
            x = self._at(at)
            anchor = "start" if x < WIDTH / 2 else "end"
            told.append(Flag(x, 12 + 16 * row, f"{name} {at:,}", anchor, name.endswith(" to")))
        return told

    @property
    def below(self) -> list[Flag]:
        """The gap, and the number that the step names which departs."""
        named = (("gap", self.picture.gap), ("asked", self.picture.asked))
        told = []
        for row, (name, number) in enumerate((name, number) for name, number in named if number is not None):
            x = round(self._at(number) + self.width / 2, 1)
            said = f"{name} at {number:,}" if name == "gap" else f"the step that departs names {number:,}"
            anchor = "start" if x < WIDTH / 2 and row else "end" if x > WIDTH / 4 else "start"
            told.append(Flag(x, self.top + self.tall + 18 + 16 * row, said, anchor, departs=True))
        return told

    @property
    def kinds(self) -> list[tuple[str, str]]:
        """What the legend has to explain."""
        met = {cell.kind for cell in self.cells}
        words = [*WORDS.values(), ("gap", "the gap")]
        return [(kind, says) for kind, says in words if kind in met]

    @property
    def description(self) -> str:
        """The picture for those who do not see it."""
        where = ", ".join(f"{name} up to {at:,}" for name, at in self.picture.marks.items())
        gap = f"; the gap is at {self.picture.gap:,}" if self.picture.gap is not None else ""
        return f"numbers from {self.picture.first:,} on; {where}{gap}"


def drawing(picture: Swimlane | Bitmap | None, name: str) -> SwimlaneDrawing | BitmapDrawing | None:
    """The shapes of a picture. `name`: of its place on the page."""
    if isinstance(picture, Swimlane) and picture.lanes and len(picture.steps) > 1:
        return SwimlaneDrawing(picture, name)
    return BitmapDrawing(picture, name) if isinstance(picture, Bitmap) and picture.cells else None


@dataclass(frozen=True)
class Curve:
    """How many there were over time, beside a limit: areas, a stepped line, and marks.

    `points`: place on the axis, how many, and how many of them are `odd` · `limits`: place, limit from there on ·
    `marks`: place, and what happened there.
    """

    name: str
    title: str
    axis: str
    counted: str
    odd: str  # what the odd ones are; empty where there are none
    points: Sequence[tuple[int, int, int]]
    limits: Sequence[tuple[int, int]]
    marks: Sequence[tuple[int, str]] = ()

    left = 34
    top = 30
    bottom = 150
    height = 182

    @property
    def most(self) -> int:
        """The upper end of the vertical axis."""
        return max([1, *(point[1] for point in self.points), *(limit for _, limit in self.limits)])

    @property
    def span(self) -> tuple[int, int]:
        """The ends of the axis."""
        first = min([self.points[0][0], *(at for at, _ in self.limits), *(at for at, _ in self.marks)])
        return first, max(self.points[-1][0], first + 1)

    def _x(self, at: int) -> float:
        low, high = self.span
        return round(self.left + (min(max(at, low), high) - low) / (high - low) * (RIGHT - self.left), 1)

    def _y(self, count: int) -> float:
        return round(self.bottom - max(count, 0) / self.most * (self.bottom - self.top), 1)

    def _area(self, heights: Sequence[tuple[int, int]]) -> str:
        steps = "".join(f"H{self._x(at)}V{self._y(count)}" for at, count in heights)
        return f"M{self._x(heights[0][0])} {self.bottom}{steps}H{RIGHT}V{self.bottom}z"

    @property
    def whole(self) -> str:
        """All of them, as an area."""
        return self._area([(at, count) for at, count, _ in self.points])

    @property
    def odd_area(self) -> str:
        """The odd ones, on the ground."""
        return self._area([(at, odd) for at, _, odd in self.points]) if any(p[2] for p in self.points) else ""

    @property
    def limit(self) -> str:
        """The limit as a stepped line; a limit of 0 is none, and is not drawn."""
        ends = [at for at, _ in (*self.limits[1:], (self.span[1], 0))]
        return "".join(
            f"M{self._x(at)} {self._y(limit)}H{self._x(end)}"
            for (at, limit), end in zip(self.limits, ends, strict=False)
            if limit > 0
        )

    @property
    def heights(self) -> list[tuple[float, int]]:
        """What stands beside the vertical axis: the most, and the limits that do not stand too close to another."""
        told: list[tuple[float, int]] = []
        for count in sorted({self.most, 0, *(limit for _, limit in self.limits)}, reverse=True):
            if count == 0 or not told or self._y(count) - told[-1][0] > 12:
                told.append((self._y(count), count))
        return told

    @property
    def ticks(self) -> list[tuple[float, str, str]]:
        """Where something happened: place, number, and words for it; neighbours share a number, such as 2–3."""
        told: list[tuple[float, int, int, list[str]]] = []
        for number, (at, what) in enumerate(self.marks, 1):
            x = self._x(at)
            if told and x - told[-1][0] < TICK:
                before = told.pop()
                told.append((before[0], before[1], number, [*before[3], what]))
            else:
                told.append((x, number, number, [what]))
        return [
            (x, f"{low}" if low == high else f"{low}–{high}", clipped("; ".join(words), 300))
            for x, low, high, words in told
        ]

    @property
    def description(self) -> str:
        """The curve for those who do not see it."""
        top = max(self.points, key=lambda point: point[1])
        limits = ", ".join(
            f"{limit:,} from {at:,} on" if limit else f"none from {at:,} on" for at, limit in self.limits
        )
        said = f"at most {top[1]:,} {self.counted}, at {self.axis} {top[0]:,}; the limit is {limits or 'not known'}"
        return "; ".join([said, *(f"{self.axis} {at:,}: {what}" for at, what in self.marks)])
