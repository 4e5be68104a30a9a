"""The picture of a log as shapes, which the page only draws: files, records, damage, and a pin for each finding."""

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
    low: int
    high: int
    more: int  # bytes of the files that are not drawn, for nothing is in them
    boxes: list[LogShape]
    records: float  # where the records end
    end: int
    stretches: list[LogShape]
    stems: list[int]
    pins: list[Pin]
    kinds: set[str]  # what the legend has to explain

    @property
    def together(self) -> int:
        """The most files that share a box."""
        return max(box.files for box in self.boxes)


def drawable(report: Report) -> list[str]:
    """The sources of which there is a picture; those with findings first."""
    extents = {mark.source for mark in report.marks if mark.kind in ("file", "log") and mark.high > mark.low}
    wanted = {finding.source for finding in report.findings}
    paths = dict.fromkeys(source.path for source in report.sources if source.path in extents)
    return sorted(paths, key=lambda path: path not in wanted)


def log_maps(report: Report, most: int, linked: set[str]) -> list[LogMap]:
    """The pictures of at most so many logs. `linked`: the findings that have a place on the page."""
    marks: dict[str, list[Mark]] = {}
    for mark in report.marks:
        marks.setdefault(mark.source, []).append(mark)
    found = [("finding", "", n, finding) for n, finding in enumerate(report.violations, 1)]
    found += [("anomaly", "a", n, first) for n, (_, _, first) in enumerate(allowed(report), 1) if first]
    named = [(f"{what}-{n}", f"{letter}{n}", finding) for what, letter, n, finding in found]
    pinned = [PinTarget(0, n, f"#{name}" if name in linked else "#findings", finding) for name, n, finding in named]
    return [
        _log_map(source, marks[source], [one for one in pinned if one.finding.source == source])
        for source in drawable(report)[:most]
    ]


def _log_map(source: str, marks: list[Mark], found: list[PinTarget]) -> LogMap:
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
        source=source,
        low=low,
        high=drawn,
        more=high - drawn,
        boxes=[_box(group, at) for group in _grouped([m for m in files if m.low < drawn], at, BOX_GAP, together)],
        records=at(end),
        end=end,
        stretches=[
            _stretch(kind, group, at)
            for kind in ("unread", "damage")
            for group in _grouped([m for m in others if m.kind == kind], at, STRETCH_GAP)
        ],
        stems=sorted({round(one.x) for one in pinned}),
        pins=_pins(pinned),
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


def _box(files: list[Mark], at: Callable[[int], float]) -> LogShape:
    x, end = at(files[0].low), at(files[-1].high)
    first, last = (clipped(file.label.rpartition("/")[2], 30) for file in (files[0], files[-1]))
    label = first if len(files) == 1 else plural(len(files), "file")
    title = first if len(files) == 1 else f"{label}: {first} to {last}"
    width = round(end - x, 1)
    bytes_of_all = size(sum(file.high - file.low for file in files))
    return LogShape(
        x, width, "file", f"{title} ({bytes_of_all})", label if len(label) * LETTER + 8 <= width else "", len(files)
    )


def _stretch(kind: str, marks: list[Mark], at: Callable[[int], float]) -> LogShape:
    low, high = marks[0].low, max(m.high for m in marks)
    what = clipped(marks[0].label, 80) if len(marks) == 1 else f"{len(marks):,} stretches"
    x, end = at(low), at(high)
    return LogShape(x, max(round(end - x, 1), 3), kind, f"{what}: {low:,} to {high:,} ({size(high - low)})")


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
