"""The picture of a log as shapes, which the page only draws: files, records, damage, and a pin for each finding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby

from gapless.traces.report.charts import clipped
from gapless.traces.report.values import Finding, Mark, Report
from gapless.traces.report.wording import allowed, plural, size


@dataclass(frozen=True)
class Frame:
    """Where things stand on a picture, in its own units: pins above the row of files, words below."""

    width: int = 1000
    height: int = 136
    left: int = 8
    right: int = 992
    pin: int = 14  # middle of the pins
    top: int = 44
    bottom: int = 88


FRAME = Frame()
BOXES = 40  # files beyond that share a box
BOX_GAP = 8  # closer boxes become one, and so on: a picture has a few hundred shapes at most
STRETCH_GAP = 3
PIN_GAP = 16


@dataclass(frozen=True)
class FileBox:
    """A log file, or several that follow one another."""

    x: float
    width: float
    files: int
    label: str
    title: str


@dataclass(frozen=True)
class OddBytes:
    """Bytes that are not like the others: damaged, or not read."""

    x: float
    width: float
    kind: str
    title: str


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
class LogMap:
    """One log as shapes: the template only draws them."""

    source: str
    low: int
    high: int
    more: int  # bytes of the files that are not drawn, for nothing is in them
    boxes: list[FileBox]
    records: float  # where the records end
    end: int
    stretches: list[OddBytes]
    stems: list[int]
    pins: list[Pin]
    kinds: set[str]  # what the legend has to explain

    @property
    def together(self) -> int:
        """How many files share a box, at most."""
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
    found = [(f"finding-{n}", str(n), f) for n, f in enumerate(report.violations, 1)]
    found += [(f"anomaly-{n}", f"a{n}", f) for n, (_, _, f) in enumerate(allowed(report), 1) if f]
    maps = []
    for source in drawable(report)[:most]:
        mine = [(f"#{a}" if a in linked else "#findings", n, f) for a, n, f in found if f.source == source]
        maps.append(_log_map(source, marks[source], mine))
    return maps


def _log_map(source: str, marks: list[Mark], found: list[tuple[str, str, Finding]]) -> LogMap:
    files = sorted((m for m in marks if m.kind == "file" and m.high > m.low), key=lambda m: m.low)
    logs = [m for m in marks if m.kind == "log"]
    files = files or [m for m in logs if m.high > m.low]
    low, high = min(m.low for m in files), max(m.high for m in files)
    end = max((m.high for m in logs), default=low)
    others = [m for m in marks if m.kind in ("damage", "unread")]
    reached = [end, *(min(m.high, high) for m in others), *(min(f.position, high) for _, _, f in found)]
    drawn = _drawn(low, high, max(reached))

    def at(position: int) -> float:
        share = (min(max(position, low), drawn) - low) / (drawn - low)
        return round(FRAME.left + share * (FRAME.right - FRAME.left), 1)

    stems = [at(f.position) for _, _, f in found]
    return LogMap(
        source=source,
        low=low,
        high=drawn,
        more=high - drawn,
        boxes=_boxes([m for m in files if m.low < drawn], at),
        records=at(end),
        end=end,
        stretches=[s for kind in ("unread", "damage") for s in _stretches(kind, others, at)],
        stems=sorted(set(map(round, stems))),
        pins=_pins(sorted(zip(stems, found, strict=True), key=lambda pin: pin[0])),
        kinds={m.kind for m in others} | {f.severity for _, _, f in found},
    )


def _drawn(low: int, high: int, reached: int) -> int:
    """Where the picture ends: a file of a gibibyte with a few records in it would show nothing."""
    used = reached - low
    return low + used * 5 // 4 if 0 < used * 8 < (high - low) * 5 and used >= 4 else high


def _boxes(files: list[Mark], at: Callable[[int], float]) -> list[FileBox]:
    together = -(-len(files) // BOXES)
    groups: list[list[Mark]] = []
    for file in files:
        apart = groups and at(file.low) - at(groups[-1][-1].high) > BOX_GAP
        if not groups or apart or len(groups[-1]) >= together:
            groups.append([])
        groups[-1].append(file)
    return [_box(group, at) for group in groups]


def _box(files: list[Mark], at: Callable[[int], float]) -> FileBox:
    x, end = at(files[0].low), at(files[-1].high)
    names = [clipped(file.label.rpartition("/")[2], 30) for file in (files[0], files[-1])]
    count = plural(len(files), "file")
    title = names[0] if len(files) == 1 else f"{count}: {names[0]} to {names[1]}"
    label = names[0] if len(files) == 1 else count
    width = round(end - x, 1)
    fits = len(label) * 6.1 + 8 <= width
    held = sum(file.high - file.low for file in files)
    return FileBox(x, width, len(files), label if fits else "", f"{title} ({size(held)})")


def _stretches(kind: str, marks: list[Mark], at: Callable[[int], float]) -> list[OddBytes]:
    groups: list[list[Mark]] = []
    for mark in sorted((m for m in marks if m.kind == kind), key=lambda m: m.low):
        if groups and at(mark.low) - at(groups[-1][-1].high) <= STRETCH_GAP:
            groups[-1].append(mark)
        else:
            groups.append([mark])
    return [_stretch(kind, group, at) for group in groups]


def _stretch(kind: str, marks: list[Mark], at: Callable[[int], float]) -> OddBytes:
    low, high = marks[0].low, max(m.high for m in marks)
    what = clipped(marks[0].label, 80) if len(marks) == 1 else f"{len(marks):,} stretches"
    x, end = at(low), at(high)
    return OddBytes(x, max(round(end - x, 1), 3), kind, f"{what}: {low:,} to {high:,} ({size(high - low)})")


def _pins(found: list[tuple[float, tuple[str, str, Finding]]]) -> list[Pin]:
    """A pin for each finding; where they would cover one another, one for several."""
    groups = [list(group) for _, group in groupby(found, key=lambda pin: pin[0] // PIN_GAP)]
    pins = [_pin(group) for group in groups]
    n = 0
    while n < len(pins) - 1:
        if _touch(pins[n], pins[n + 1]):
            groups[n : n + 2] = [groups[n] + groups[n + 1]]
            pins[n : n + 2] = [_pin(groups[n])]
            n = max(n - 1, 0)  # it has grown, and may touch the one before it
        else:
            n += 1
    return pins


def _touch(one: Pin, other: Pin) -> bool:
    return other.x - other.width / 2 < one.x + one.width / 2 + 2


def _pin(group: list[tuple[float, tuple[str, str, Finding]]]) -> Pin:
    label = _pin_label([number for _, (_, number, _) in group])
    width = 14 + 7.5 * len(label)
    low, high = round(group[0][0]), round(group[-1][0])
    x = min(max((low + high) / 2, FRAME.left + width / 2), FRAME.right - width / 2)
    lines = [f"{number}. {clipped(f.message, 160)}" for _, (_, number, f) in group[:5]]
    lines += [f"and {len(group) - 5:,} more"] if len(group) > 5 else []
    href = next((href for _, (href, _, _) in group if href != "#findings"), "#findings")
    severity = "violation" if any(f.severity == "violation" for _, (_, _, f) in group) else "anomaly"
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
