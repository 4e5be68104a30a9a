"""The picture of a log as shapes, which the page draws: files, records, damage, points, findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from types import SimpleNamespace
from typing import NamedTuple

from gapless.traces.report.charts import clipped
from gapless.traces.report.values import Finding, Mark, Report
from gapless.traces.report.wording import allowed, plural, size

# Where things stand on a picture, in its own units: pins (by their middle) above the row of files, words below.
FRAME = SimpleNamespace(width=1000, height=136, left=8, right=992, pin=14, top=44, bottom=88)
BOXES = 40  # files beyond that share a box
BOX_GAP = 8  # closer boxes become one, and so on: a picture has a few hundred shapes at most
STRETCH_GAP = 3
LINE = 16  # height of a line of words below the files
LETTER = 7.4  # of a file's name
PIN_GAP = 16


@dataclass(frozen=True)
class LogShape:
    """A log file, or several that follow one another; or bytes that are damaged or not read."""

    x: float
    width: float
    kind: str
    title: str
    label: str = ""
    files: int = 0


@dataclass(frozen=True)
class Pin:
    """A finding, or several side by side, from `low` to `high`."""

    x: float
    low: int
    high: int
    width: float
    label: str
    href: str
    title: str
    severity: str


@dataclass(frozen=True)
class PointLabel:
    """Named points of a log at one place: where their line is, and where their words stand."""

    x: float
    line: int
    anchor: str
    label: str

    @property
    def y(self) -> int:
        """The foot of its words."""
        return int(FRAME.bottom) + 28 + self.line * LINE


class PinTarget(NamedTuple):
    """A finding with its number on the page and the link to it."""

    x: float
    number: str
    href: str
    finding: Finding


@dataclass(frozen=True)
class LogMap:
    """One log as shapes: the template only draws them."""

    source: str
    name: str  # of the log, if its source has several: positions are offsets then
    low: int
    high: int
    more: int  # bytes of the files that are not drawn, for nothing is in them
    boxes: list[LogShape]
    records: float  # where the records end
    end: int
    stretches: list[LogShape]
    stems: list[int]
    pins: list[Pin]
    points: list[PointLabel]
    kinds: set[str]  # what the legend has to explain

    @property
    def height(self) -> int:
        """The height of the picture, with a line for each point that needs one."""
        lines = max((point.line for point in self.points), default=0)
        return max(int(FRAME.height), int(FRAME.bottom) + 36 + lines * LINE)

    @property
    def unit(self) -> str:
        """The unit of its positions."""
        return "offset" if self.name else "byte"

    @property
    def together(self) -> int:
        """The most files that share a box."""
        return max(box.files for box in self.boxes)


def drawable(report: Report) -> list[tuple[str, str]]:
    """The logs of which there is a picture, by source and name; those with findings first."""
    extents = [
        (mark.source, mark.log) for mark in report.marks if mark.kind in ("file", "log") and mark.high > mark.low
    ]
    order = {source.path: number for number, source in enumerate(report.sources)}
    logs = sorted((log for log in dict.fromkeys(extents) if log[0] in order), key=lambda log: order[log[0]])
    return sorted(logs, key=lambda log: not any(_is_of(finding, *log) for finding in report.findings))


def _is_of(finding: Finding, source: str, name: str) -> bool:
    """True if a finding is about a log: its trace is the log, or lies in it."""
    return finding.source == source and (not name or finding.trace == name or finding.trace.startswith(f"{name}/"))


def log_maps(report: Report, most: int, linked: set[str]) -> list[LogMap]:
    """The pictures of at most so many logs. `linked`: the findings that have a place on the page."""
    marks: dict[tuple[str, str], list[Mark]] = {}
    for mark in report.marks:
        marks.setdefault((mark.source, mark.log), []).append(mark)
    found = [("finding", "", n, finding) for n, finding in enumerate(report.violations, 1)]
    found += [("anomaly", "a", n, first) for n, (_, _, first) in enumerate(allowed(report), 1) if first]
    named = [(f"{what}-{n}", f"{letter}{n}", finding) for what, letter, n, finding in found]
    pinned = [PinTarget(0, n, f"#{name}" if name in linked else "#findings", finding) for name, n, finding in named]
    return [
        _log_map(log, marks[log], [one for one in pinned if _is_of(one.finding, *log)])
        for log in drawable(report)[:most]
    ]


def _log_map(log: tuple[str, str], marks: list[Mark], found: list[PinTarget]) -> LogMap:
    logs = [m for m in marks if m.kind == "log"]
    files = [m for m in marks if m.kind == "file" and m.high > m.low] or [m for m in logs if m.high > m.low]
    low, high = min(m.low for m in files), max(m.high for m in files)
    end = max((m.high for m in logs), default=low)
    others = [m for m in marks if m.kind in ("damage", "unread")]
    reached = [end, *(m.high for m in others), *(one.finding.position for one in found)]
    drawn = _drawn(low, high, max(end, *(min(position, high) for position in reached)))

    def at(position: int) -> float:
        share = (min(max(position, low), drawn) - low) / (drawn - low)
        x: float = FRAME.left + share * (FRAME.right - FRAME.left)
        return round(x, 1)

    together = -(-len(files) // BOXES)
    pinned = sorted((one._replace(x=at(one.finding.position)) for one in found), key=lambda one: one.x)
    return LogMap(
        source=log[0],
        name=log[1],
        low=low,
        high=drawn,
        more=high - drawn,
        boxes=[
            _box(group, at, log[1]) for group in _grouped([m for m in files if m.low < drawn], at, BOX_GAP, together)
        ],
        records=at(end),
        end=end,
        stretches=[
            _stretch(kind, group, at)
            for kind in ("unread", "damage")
            for group in _grouped([m for m in others if m.kind == kind], at, STRETCH_GAP)
        ],
        stems=sorted({round(one.x) for one in pinned}),
        pins=_pins(pinned),
        points=_points([m for m in marks if m.kind == "point"], at),
        kinds={m.kind for m in others} | {one.finding.severity for one in found},
    )


def _drawn(low: int, high: int, reached: int) -> int:
    """The end of the picture: a file of a gibibyte with a few records in it would show nothing."""
    used = reached - low
    return low + used * 5 // 4 if 0 < used * 8 < (high - low) * 5 and used >= 4 else high


def _grouped(marks: list[Mark], at: Callable[[int], float], gap: float, most: int = 1 << 30) -> list[list[Mark]]:
    """Marks that would stand too close to one another, put together."""
    groups: list[list[Mark]] = []
    for mark in sorted(marks, key=lambda m: m.low):
        if groups and len(groups[-1]) < most and at(mark.low) - at(groups[-1][-1].high) <= gap:
            groups[-1].append(mark)
        else:
            groups.append([mark])
    return groups


def _box(files: list[Mark], at: Callable[[int], float], name: str) -> LogShape:
    x, end = at(files[0].low), at(files[-1].high)
    first, last = (clipped(file.label.rpartition("/")[2], 30) for file in (files[0], files[-1]))
    label = first if len(files) == 1 else plural(len(files), "file")
    title = first if len(files) == 1 else f"{label}: {first} to {last}"
    width = round(end - x, 1)
    extent = sum(file.high - file.low for file in files)
    shown = plural(extent, "offset") if name else size(extent)
    return LogShape(
        x, width, "file", f"{title} ({shown})", label if len(label) * LETTER + 8 <= width else "", len(files)
    )


def _stretch(kind: str, marks: list[Mark], at: Callable[[int], float]) -> LogShape:
    low, high = marks[0].low, max(m.high for m in marks)
    what = clipped(marks[0].label, 80) if len(marks) == 1 else f"{len(marks):,} stretches"
    x, end = at(low), at(high)
    return LogShape(x, max(round(end - x, 1), 3), kind, f"{what}: {low:,} to {high:,} ({size(high - low)})")


def _points(marks: list[Mark], at: Callable[[int], float]) -> list[PointLabel]:
    """The points of a log in their order: those at one place together, each label in the first line that has room."""
    places: dict[int, list[str]] = {}
    for mark in sorted(marks, key=lambda mark: mark.low):
        places.setdefault(mark.low, []).append(mark.label)
    found, filled = [], list[float]()  # the right end of each line
    for position, names in places.items():
        x, label = at(position), f"{', '.join(names)}: {position:,}"
        wide = len(label) * LETTER
        anchor = "start" if x + wide <= FRAME.right else "end"
        left = x if anchor == "start" else x - wide
        line = next((n for n, end in enumerate(filled) if end + LETTER <= left), len(filled))
        filled[line : line + 1] = [left + wide]
        found.append(PointLabel(x, line, anchor, label))
    return found


def _pins(found: list[PinTarget]) -> list[Pin]:
    """A pin for each finding; where they would cover one another, one for several."""
    pins: list[tuple[list[PinTarget], Pin]] = []
    for _, near in groupby(found, key=lambda one: one.x // PIN_GAP):
        group = list(near)
        pin = _pin(group)
        while pins and pin.x - pin.width / 2 < pins[-1][1].x + pins[-1][1].width / 2 + 2:
            group = pins.pop()[0] + group
            pin = _pin(group)
        pins.append((group, pin))
    return [pin for _, pin in pins]


def _pin(group: list[PinTarget]) -> Pin:
    label = _pin_label([one.number for one in group])
    width = 14 + 7.5 * len(label)
    low, high = round(group[0].x), round(group[-1].x)
    x = min(max((low + high) / 2, FRAME.left + width / 2), FRAME.right - width / 2)
    lines = [f"{one.number}. {clipped(one.finding.message, 160)}" for one in group[:5]]
    lines += [f"and {len(group) - 5:,} more"] if len(group) > 5 else []
    href = next((one.href for one in group if one.href != "#findings"), "#findings")
    severity = "violation" if any(one.finding.severity == "violation" for one in group) else "anomaly"
    return Pin(x, low, high, width, label, href, "\n".join(lines), severity)


def _pin_label(names: list[str]) -> str:
    """The numbers of findings on one pin: `3`, `3–7`, `3 +2`, `3–7, a1`."""
    parts = []
    for letter in ("", "a"):
        numbers = sorted(int(name.removeprefix("a")) for name in names if name.startswith("a") == bool(letter))
        if numbers:
            more = "" if len(numbers) == 1 else f" +{len(numbers) - 1}"
            if len(numbers) > 1 and numbers[-1] - numbers[0] == len(numbers) - 1:
                more = f"–{numbers[-1]}"
            parts.append(f"{letter}{numbers[0]}{more}")
    return ", ".join(parts)
