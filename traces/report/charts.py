"""Counts by outcome, time or number as bars: what each says, and how long it is. A page draws them, a terminal too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from rich.cells import cell_len

BARS = 20  # of one chart: what is beyond shares a bar with its neighbours
LABEL = 22  # cells of a label on a page; its description has all of it, up to:
NAME = 200


@dataclass(frozen=True)
class Bar:
    """A count, its share of all, and its length: 1 for the longest of the chart."""

    name: str
    count: int
    share: str
    length: float
    tone: str = ""

    @property
    def label(self) -> str:
        """The name, as much of it as fits next to the bar."""
        return clipped(self.name, LABEL)

    @property
    def caption(self) -> str:
        """The text at the end of the bar: its count and share."""
        return clipped(f"{self.count:,} · {self.share}", 2 * LABEL)


@dataclass(frozen=True)
class Chart:
    """Bars below one another, and what they count. Its units are pixels, roughly: 13 to a letter's height.

    `tones`: colours by name (`TONES` of the text, classes of the page); where there are any, every other name is grey,
    and a terminal draws the chart too.
    """

    name: str  # of its place on the page
    title: str
    unit: tuple[str, str]  # one, several
    by: str
    counts: Sequence[tuple[str, int]]
    tones: Mapping[str, str] = field(default_factory=dict)

    width = 480
    row = 24
    letter = 8.5

    @cached_property
    def bars(self) -> list[Bar]:
        """The bars that a page has room for."""
        return self.folded(BARS)

    def folded(self, most: int) -> list[Bar]:
        """At most so many bars, the last of them for all that is left; none if there is nothing to count."""
        counts = list(self.counts)
        if len(counts) > most:
            rest = counts[most - 1 :]
            counts[most - 1 :] = [(f"{len(rest):,} other {self.title.lower()}", sum(count for _, count in rest))]
        total, longest = sum(count for _, count in counts), max((count for _, count in counts), default=0)
        if longest <= 0:  # there is no share
            return []
        other = "other" if self.tones else ""
        return [
            Bar(clipped(name, NAME), count, share(count, total), max(count, 0) / longest, self.tones.get(name, other))
            for name, count in counts
        ]

    @property
    def total(self) -> int:
        """The count of all bars together."""
        return sum(bar.count for bar in self.bars)

    @property
    def height(self) -> int:
        """Down to the end of the last bar."""
        return self.row * len(self.bars)

    @property
    def left(self) -> float:
        """The left end of the bars, behind the longest label."""
        return round(max(cell_len(bar.label) for bar in self.bars) * self.letter + 12)

    @property
    def room(self) -> float:
        """The length of the longest bar; the rest is for the text at its end."""
        return max(self.width - self.left - max(len(bar.caption) for bar in self.bars) * self.letter - 8, 24)

    @property
    def description(self) -> str:
        """The chart for those who do not see it."""
        return "; ".join(f"{bar.name}: {bar.count:,} ({bar.share})" for bar in self.bars)


def histogram(counts: Mapping[int, int], bound: Callable[[int], str] | None = None) -> list[tuple[str, int]]:
    """Counts by value, or by a few values side by side. With `bound`, which words one, values are upper bounds."""
    values = sorted(counts)
    together = -(-len(values) // BARS)
    groups = [values[n : n + together] for n in range(0, len(values), together or 1)]
    return [(bound(group[-1]) if bound else _range(group), sum(counts[v] for v in group)) for group in groups]


def _range(values: Sequence[int]) -> str:
    return f"{values[0]:,}" if len(values) == 1 else f"{values[0]:,}–{values[-1]:,}"


# -- words and letters ---------------------------------------------------------------------------------------------


def share(count: int, total: int) -> str:
    """A part of all: `92%`. Something is never 0%, and not all never 100%."""
    percent = 100 * count / total
    if 0 < percent < 0.1:
        return "<0.1%"
    if percent > 99.9 and count < total:
        return ">99.9%"
    return f"{percent:.1f}%" if 0 < percent < 10 or 99 < percent < 100 else f"{percent:.0f}%"


def span(milliseconds: int) -> str:
    """A time as a person says it, in two figures: `250 ms`, `1 s`, `16 s`, `4.4 min`. Values are powers of two."""
    amount, unit = float(milliseconds), "ms"
    for enough, longer in ((1000, "s"), (60, "min"), (60, "h"), (24, "d")):
        if amount < enough:
            break
        amount, unit = amount / enough, longer
    if unit == "ms":
        return f"{milliseconds:,} ms"
    return f"{amount:,.0f} {unit}" if amount >= 9.95 else f"{amount:.1f}".removesuffix(".0") + f" {unit}"


def reached(counts: Mapping[int, int]) -> list[tuple[str, int]]:
    """The upper bounds of half, nine tenths and all, as (share, bound); the same bound only once."""
    total, bounds = sum(counts.values()), sorted(counts)
    found: dict[int, str] = {}
    for percent, word in ((50, "50%"), (90, "90%"), (100, "all")):
        below = 0
        for bound in bounds:
            below += counts[bound]
            if total and below * 100 >= total * percent:
                found[bound] = word
                break
    return [(word, bound) for bound, word in found.items()]


def blocks(length: float, cells: int = 24) -> str:
    """A bar of letters, to an eighth of one; what is there is seen."""
    eighths = round(length * cells * 8)
    whole, rest = divmod(max(eighths, 1) if length > 0 else 0, 8)
    return "█" * whole + " ▏▎▍▌▋▊▉"[rest].strip()


def fitted(text: str, cells: int) -> str:
    """The beginning of a text that is no wider than so many cells; some letters take two."""
    if cell_len(text) <= cells:
        return text
    while cell_len(text) >= cells:
        text = text[:-1]
    return f"{text}…"


def clipped(text: str, longest: int) -> str:
    """The beginning of a text, in so many letters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
