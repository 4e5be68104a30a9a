"""A curve over time as shapes: the template only draws them. Units are pixels, roughly, as of `Chart`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gapless.traces.report.charts import clipped

WIDTH = 480
RIGHT = WIDTH - 10
TICK = 26  # closer marks share one


@dataclass(frozen=True)
class Curve:
    """Counts over time, with a limit: areas, a stepped line, and marks.

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
        """The labels of the vertical axis: the most, and the limits that do not stand too close to another."""
        found: list[tuple[float, int]] = []
        for count in sorted({self.most, 0, *(limit for _, limit in self.limits)}, reverse=True):
            if count == 0 or not found or self._y(count) - found[-1][0] > 12:
                found.append((self._y(count), count))
        return found

    @property
    def ticks(self) -> list[tuple[float, str, str]]:
        """The marks: place, number, and words for it; neighbours share a number, such as 2–3."""
        found: list[tuple[float, int, int, list[str]]] = []
        for number, (at, what) in enumerate(self.marks, 1):
            x = self._x(at)
            if found and x - found[-1][0] < TICK:
                before = found.pop()
                found.append((before[0], before[1], number, [*before[3], what]))
            else:
                found.append((x, number, number, [what]))
        return [
            (x, f"{low}" if low == high else f"{low}–{high}", clipped("; ".join(words), 300))
            for x, low, high, words in found
        ]

    @property
    def description(self) -> str:
        """The curve in words."""
        top = max(self.points, key=lambda point: point[1])
        limits = ", ".join(
            f"{limit:,} from {at:,} on" if limit else f"none from {at:,} on" for at, limit in self.limits
        )
        text = f"at most {top[1]:,} {self.counted}, at {self.axis} {top[0]:,}; the limit is {limits or 'not known'}"
        return "; ".join([text, *(f"{self.axis} {at:,}: {what}" for at, what in self.marks)])
