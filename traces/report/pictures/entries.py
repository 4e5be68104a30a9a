"""The entries of a queue around a finding as boxes, with arrows to their records in the log."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pydantic import Field

from gapless.traces.report.charts import fitted
from gapless.traces.report.model import Model

EntryKind = Literal["sound", "wrong", "missing", "old", "empty", "later"]
BOX, GAP = 128, 14  # units of width; 13 are a letter's height
LEFT = 8
LETTER = 7.1
TOP, TALL = 34, 62  # of the entries
LOG = 196  # upper edge of the records
LINES = 17


class QueueEntry(Model):
    """An entry of a queue, or the place of one that is missing.

    `at`: the byte of the log that it points at · `notes`: lines below its number.
    """

    number: int
    kind: EntryKind
    at: int | None = None
    notes: list[str] = Field(default=[])


class LogRecord(Model):
    """A record of the log that an entry points at, or should point at."""

    position: int
    size: int
    label: str
    queue: str = Field(default="", description="the queue of its message, if it is another one")
    wanted: int | None = Field(default=None, description="the number of the broken entry, if this is its message")


class QueueEntries(Model):
    """The entries around a broken one, and the records of the log that they name."""

    kind: Literal["entries"] = "entries"
    title: str
    entries: list[QueueEntry]
    records: list[LogRecord]
    end: int = Field(description="exclusive end of the log")


@dataclass(frozen=True)
class Box:
    """A box with its lines of text."""

    x: float
    y: float
    width: int
    kind: str
    lines: tuple[str, ...]

    @property
    def middle(self) -> float:
        """The middle of the box, from left to right."""
        return self.x + self.width / 2


@dataclass(frozen=True)
class EntryArrow:
    """An arrow from an entry down to the log; `says` is its meaning in words."""

    x: float
    to: float
    kind: str
    says: str

    @property
    def path(self) -> str:
        """A curve between both."""
        top, bottom = TOP + TALL, LOG - 7
        bend = (bottom - top) / 2
        return f"M{self.x} {top}C{self.x} {top + bend:g} {self.to} {bottom - bend:g} {self.to} {bottom}"

    @property
    def head(self) -> str:
        """Its point."""
        return f"M{self.to - 5} {LOG - 10}L{self.to} {LOG - 1}L{self.to + 5} {LOG - 10}z"


@dataclass(frozen=True)
class QueueEntriesShapes:
    """Entries above, records below in the order of the log, arrows between them."""

    picture: QueueEntries
    name: str

    tall = TALL
    log = LOG
    line = LINES

    @property
    def width(self) -> float:
        """The width of the picture, in units of its own."""
        return 2 * LEFT + max(len(self.picture.entries), len(self._lower)) * (self.box + GAP) - GAP

    @property
    def height(self) -> float:
        """The height down to the end of the records."""
        return LOG + TALL + 8

    def _row(self, count: int, shift: float = 0) -> list[float]:
        """The left edges of so many boxes. Entries begin at the left: a narrow screen shows the broken one."""
        return [round(LEFT + shift + n * (self.box + GAP), 1) for n in range(count)]

    @cached_property
    def entries(self) -> list[Box]:
        """A box for each entry."""
        return [
            self._box(x, TOP, entry.kind, [f"entry {entry.number:,}", *entry.notes[:2]])
            for x, entry in zip(self._row(len(self.picture.entries)), self.picture.entries, strict=True)
        ]

    def _box(self, x: float, y: float, kind: str, lines: list[str]) -> Box:
        cells = int((self.box - 8) / LETTER)
        return Box(x, y, self.box, kind, tuple(fitted(line, cells) for line in lines))

    @cached_property
    def box(self) -> int:
        """The width of a box: the longest position fits into it."""
        numbers = [entry.at or entry.number for entry in self.picture.entries]
        longest = max([*numbers, *(record.position for record in self.picture.records)], default=0)
        return max(BOX, round(len(f"byte {longest:,}") * LETTER + 16))

    @cached_property
    def _lower(self) -> list[LogRecord | int]:
        """The records, and bytes that an entry points at where no record is known."""
        inside = [self._inside(entry.at) for entry in self.picture.entries if entry.at is not None]
        bare = {entry.at for entry, record in zip(self._pointing, inside, strict=True) if record is None}
        known: list[LogRecord | int] = [*self.picture.records, *(at for at in bare if at is not None)]
        return sorted(known, key=lambda one: one if isinstance(one, int) else one.position)

    @property
    def _pointing(self) -> list[QueueEntry]:
        return [entry for entry in self.picture.entries if entry.at is not None]

    def _inside(self, at: int | None) -> LogRecord | None:
        """The record that has this byte."""
        found = (r for r in self.picture.records if at is not None and r.position <= at < r.position + max(r.size, 1))
        return next(found, None)

    @property
    def _shift(self) -> float:
        """The room on either side of the records where entries are more."""
        return max(len(self.picture.entries) - len(self._lower), 0) * (self.box + GAP) / 2

    @cached_property
    def records(self) -> list[Box]:
        """A box for each record, and for each byte that is none."""
        found = []
        for x, one in zip(self._row(len(self._lower), self._shift), self._lower, strict=True):
            if isinstance(one, int):
                beyond = one >= self.picture.end
                label = "behind the log" if beyond else "no record here"
                found.append(self._box(x, LOG, "nothing", [label, f"byte {one:,}"]))
            else:
                kind = "wanted" if one.wanted is not None else "record"
                place, size = f"byte {one.position:,}", f"{one.size:,} bytes"
                lines = [one.queue, one.label, place] if one.queue else [one.label, place, size]
                found.append(self._box(x, LOG, kind, lines))
        return found

    @property
    def arrows(self) -> list[EntryArrow]:
        """An arrow for each entry that points anywhere, and a broken line to the message of a broken one."""
        found = []
        for box, entry in zip(self.entries, self.picture.entries, strict=True):
            if entry.at is not None:
                says = f"entry {entry.number:,} → {entry.at:,}"
                found.append(EntryArrow(box.middle, self._x_of(entry.at), self._kind_of_arrow(entry), says))
        return sorted([*self._wanted, *found], key=lambda arrow: arrow.kind == "departs")

    def _kind_of_arrow(self, entry: QueueEntry) -> str:
        """Red where an entry points elsewhere than at its message; grey where nothing is known of it."""
        right = any(r.wanted == entry.number and r.position == entry.at for r in self.picture.records)
        if entry.kind in ("wrong", "old") and not right:
            return "departs"
        return "plain" if entry.kind == "later" else "sound"

    @property
    def _wanted(self) -> list[EntryArrow]:
        boxes = {entry.number: box for box, entry in zip(self.entries, self.picture.entries, strict=True)}
        at = {entry.number: entry.at for entry in self.picture.entries}
        return [
            EntryArrow(boxes[r.wanted].middle, self._x_of(r.position), "wanted", f"its message is at {r.position:,}")
            for r in self.picture.records
            if r.wanted in boxes and at[r.wanted] != r.position
        ]

    def _x_of(self, at: int) -> float:
        """The place of a byte: the middle of a record if it begins there, else the same share of the record."""
        for box, one in zip(self.records, self._lower, strict=True):
            if one == at or (isinstance(one, LogRecord) and one.position == at):
                return box.middle
            if isinstance(one, LogRecord) and one.position < at < one.position + one.size:
                share = (at - one.position) / one.size
                return round(box.x + box.width * min(max(share, 0.14), 0.94), 1)
        return LEFT

    @property
    def kinds(self) -> list[tuple[str, str]]:
        """The arrows that a legend has to explain."""
        words = {
            "sound": "an entry and its message", "departs": "points elsewhere", "wanted": "its message lies here",
            "plain": "a later entry, not judged",
        }  # fmt: skip
        met = {arrow.kind for arrow in self.arrows}
        return [(kind, text) for kind, text in words.items() if kind in met]

    @property
    def description(self) -> str:
        """The picture in words."""
        entries = [
            f"entry {entry.number:,}" + (f" → byte {entry.at:,}" if entry.at is not None else "")
            + (f" ({', '.join([*([entry.kind] if entry.kind != 'sound' else []), *entry.notes])})")
            for entry in self.picture.entries
        ]  # fmt: skip
        records = [
            f"{record.label} at byte {record.position:,}, {record.size:,} bytes" for record in self.picture.records
        ]
        return f"{'; '.join(entries)}. Records: {'; '.join(records)}."
