"""Where the states of a picture lie: columns by distance from the start, each state near those that lead to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

BESIDE = 14.0  # px between states of a column
BETWEEN = 230.0  # px between columns: room for a call
SWEEPS = 6  # over all columns, to put those that belong together at one height


@dataclass
class Place:
    """What is to be laid out: its size and column are known, the rest is found."""

    column: int
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0  # of its middle
    behind: list[Place] = field(default_factory=list)  # of the column before
    ahead: list[Place] = field(default_factory=list)  # of the column after

    @property
    def top(self) -> float:
        """The upper edge."""
        return self.y - self.height / 2

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.y + self.height / 2

    @property
    def right(self) -> float:
        """The right edge."""
        return self.x + self.width


def lay_out(places: Mapping[int, Place], arrows: Iterable[tuple[int, int]], left: float, top: float) -> None:
    """Give every place its x and y, from `left` and `top` on."""
    for source, target in arrows:
        if places[target].column == places[source].column + 1:
            places[target].behind.append(places[source])
            places[source].ahead.append(places[target])
    columns: list[list[Place]] = [[] for _ in range(1 + max(place.column for place in places.values()))]
    for place in places.values():
        columns[place.column].append(place)
    _untangle(columns)
    x = left
    for column in columns:
        _stack(column)
        width = max((place.width for place in column), default=0.0)
        for place in column:
            place.x, place.width = x, width  # all of one width, or arrows of one would cross another
        x += width + BETWEEN
    shift = top - min(place.top for place in places.values())
    for place in places.values():
        place.y += shift


def _untangle(columns: Sequence[list[Place]]) -> None:
    """Order every column so that arrows cross seldom: each by the middle of its neighbours, forth and back."""
    ranks = {id(place): rank for column in columns for rank, place in enumerate(column)}

    def middle(place: Place, near: Sequence[Place]) -> float:
        return fmean(ranks[id(other)] for other in near) if near else ranks[id(place)]

    for sweep in range(SWEEPS):
        forth = sweep % 2 == 0
        for column in columns[1:] if forth else columns[-2::-1]:
            middles = {id(place): middle(place, place.behind if forth else place.ahead) for place in column}
            column.sort(key=lambda place, middles=middles: middles[id(place)])  # type: ignore[misc]
            ranks |= {id(place): rank for rank, place in enumerate(column)}


def _stack(column: Sequence[Place]) -> None:
    """One below the other, each as near as can be to the middle of those that lead to it."""
    wanted = [fmean(other.y for other in place.behind) if place.behind else 0.0 for place in column]
    free = float("-inf")
    for place, y in zip(column, wanted, strict=True):
        place.y = max(y, free + place.height / 2)
        free = place.bottom + BESIDE
    if column:
        shift = fmean(place.y - y for place, y in zip(column, wanted, strict=True))
        for place in column:
            place.y -= shift


def curve(source: Place, target: Place) -> str:
    """The path of an arrow: onwards from right edge to left edge, or back around the right side."""
    if source.right < target.x:
        # It climbs near its source, and arrives level: its call stands there, and would be crossed out.
        gap = target.x - source.right
        return _path((source.right, source.y), 0.2 * gap, -0.9 * gap, (target.x - 5, target.y))
    out = max(source.right, target.right) + around(source, target)
    start, end = (source.right, source.y + 5), (target.right + 5, target.y - 5)
    return _path(start, out - start[0], out - end[0], end)


def around(source: Place, target: Place) -> float:
    """How far an arrow that goes back swings out."""
    return 34 + abs(source.y - target.y) * 0.06


def _path(start: tuple[float, float], leaving: float, arriving: float, end: tuple[float, float]) -> str:
    (x, y), (u, v) = start, end
    return f"M{x:.1f} {y:.1f}C{x + leaving:.1f} {y:.1f} {u + arriving:.1f} {v:.1f} {u:.1f} {v:.1f}"
