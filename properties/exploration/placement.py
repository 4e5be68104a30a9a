"""The layout of a picture: columns by distance from the start, each state near those that lead to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

BETWEEN_STATES = 14.0  # px, in a column
BETWEEN_COLUMNS = 230.0  # px: room for a call
SWEEPS = 6  # over all columns, so that few arrows cross


@dataclass
class PlacedNode:
    """A state in the picture: its size and column are given, its place is found."""

    column: int
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0  # of its middle
    behind: list[PlacedNode] = field(default_factory=list)  # of the column before
    ahead: list[PlacedNode] = field(default_factory=list)  # of the column after

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


def lay_out(nodes: Mapping[int, PlacedNode], arrows: Iterable[tuple[int, int]], left: float, top: float) -> None:
    """Give every node its x and y; `left` and `top` are the upper left corner."""
    for source, target in arrows:
        if nodes[target].column == nodes[source].column + 1:
            nodes[target].behind.append(nodes[source])
            nodes[source].ahead.append(nodes[target])
    columns: list[list[PlacedNode]] = [[] for _ in range(1 + max(node.column for node in nodes.values()))]
    for node in nodes.values():
        columns[node.column].append(node)
    _untangle(columns)
    x = left
    for column in columns:
        _stack(column)
        width = max((node.width for node in column), default=0.0)
        for node in column:
            node.x, node.width = x, width  # one width for all, or arrows of one would cross another
        x += width + BETWEEN_COLUMNS
    shift = top - min(node.top for node in nodes.values())
    for node in nodes.values():
        node.y += shift


def _untangle(columns: Sequence[list[PlacedNode]]) -> None:
    """Order every column by the mean rank of its neighbours, back and forth, so that few arrows cross."""
    ranks = {id(node): rank for column in columns for rank, node in enumerate(column)}

    def middle(node: PlacedNode, near: Sequence[PlacedNode]) -> float:
        return fmean(ranks[id(other)] for other in near) if near else ranks[id(node)]

    for sweep in range(SWEEPS):
        forth = sweep % 2 == 0
        for column in columns[1:] if forth else columns[-2::-1]:
            middles = {id(node): middle(node, node.behind if forth else node.ahead) for node in column}
            column.sort(key=lambda node, middles=middles: middles[id(node)])  # type: ignore[misc]
            ranks |= {id(node): rank for rank, node in enumerate(column)}


def _stack(column: Sequence[PlacedNode]) -> None:
    """Put nodes one below the other, each as near as possible to the mean height of those that lead to it."""
    wanted = [fmean(other.y for other in node.behind) if node.behind else 0.0 for node in column]
    free = float("-inf")
    for node, y in zip(column, wanted, strict=True):
        node.y = max(y, free + node.height / 2)
        free = node.bottom + BETWEEN_STATES
    if column:
        shift = fmean(node.y - y for node, y in zip(column, wanted, strict=True))
        for node in column:
            node.y -= shift


def curve(source: PlacedNode, target: PlacedNode) -> str:
    """The path of an arrow: forwards from right edge to left edge, or back around the right side."""
    if source.right < target.x:
        # It climbs near its source and arrives level: otherwise it would cross out its call, which stands there.
        gap = target.x - source.right
        return _path((source.right, source.y), 0.2 * gap, -0.9 * gap, (target.x - 5, target.y))
    out = max(source.right, target.right) + around(source, target)
    start, end = (source.right, source.y + 5), (target.right + 5, target.y - 5)
    return _path(start, out - start[0], out - end[0], end)


def around(source: PlacedNode, target: PlacedNode) -> float:
    """The horizontal swing of an arrow that goes back."""
    return 34 + abs(source.y - target.y) * 0.06


def _path(start: tuple[float, float], leaving: float, arriving: float, end: tuple[float, float]) -> str:
    (x, y), (u, v) = start, end
    return f"M{x:.1f} {y:.1f}C{x + leaving:.1f} {y:.1f} {u + arriving:.1f} {v:.1f} {u:.1f} {v:.1f}"
