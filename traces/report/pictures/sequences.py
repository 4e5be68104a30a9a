"""The sequences of a producer around a finding: a line for each batch, sequence upwards and offset to the right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pydantic import Field

from gapless.traces.report.model import Model

BatchKind = Literal["sound", "departs", "later"]
WIDTH, HEIGHT = 640, 220
TOP, BOTTOM, RIGHT = 14, 180, WIDTH - 14
LETTER = 7.1
EPOCHS = 5  # that a legend names


class SequencedBatch(Model):
    """A batch: its offsets and sequences, from the first to the last. Of a snapshot, both are one number."""

    kind: BatchKind = "sound"
    epoch: int
    first: int
    last: int
    sequence: int
    last_sequence: int


class SequenceLine(Model):
    """The last batches of a producer before a finding, the one that departs, and some behind it."""

    kind: Literal["sequences"] = "sequences"
    action: str = Field(description="the step that departs: `append` of a batch, or `snapshot`")
    batches: list[SequencedBatch]
    markers: list[int] = Field(default=[], description="offsets of the markers among them")
    expected: int | None = Field(default=None, description="the sequence that would have been next, in that epoch")
    left_out: int = Field(default=0, description="batches of the producer before the first one here")


@dataclass(frozen=True)
class BatchShape:
    """A batch as a line from its first record to its last."""

    x: float
    y: float
    to_x: float
    to_y: float
    tone: str
    says: str


@dataclass(frozen=True)
class SequenceLineShapes:
    """The batches as lines between two axes; units are pixels, roughly."""

    picture: SequenceLine
    name: str

    width = WIDTH
    height = HEIGHT
    top = TOP
    bottom = BOTTOM
    right = RIGHT

    @cached_property
    def offsets(self) -> tuple[int, int]:
        """The ends of the axis of offsets."""
        batches = self.picture.batches
        at = [*self.picture.markers, *(b.first for b in batches), *(b.last for b in batches)]
        return min(at), max(*at, min(at) + 1)

    @cached_property
    def sequences(self) -> tuple[int, int]:
        """The ends of the axis of sequences."""
        batches = self.picture.batches
        at = [*(b.sequence for b in batches), *(b.last_sequence for b in batches)]
        at += [self.picture.expected] if self.picture.expected is not None else []
        return min(at), max(*at, min(at) + 1)

    @property
    def left(self) -> float:
        """The left end of the lines, behind the longest label of the axis."""
        return round(max(len(f"{end:,}") for end in self.sequences) * LETTER + 16, 1)

    def x(self, offset: int) -> float:
        """The place of an offset."""
        low, high = self.offsets
        return round(self.left + 6 + (offset - low) / (high - low) * (RIGHT - self.left - 12), 1)

    def y(self, sequence: int) -> float:
        """The place of a sequence."""
        low, high = self.sequences
        return round(BOTTOM - 8 - (sequence - low) / (high - low) * (BOTTOM - TOP - 16), 1)

    @cached_property
    def refused(self) -> SequencedBatch:
        """The batch, or the line of a snapshot, that departs."""
        return next(batch for batch in self.picture.batches if batch.kind == "departs")

    @property
    def lines(self) -> list[BatchShape]:
        """A line for each batch; the one that departs is drawn last, above the others."""
        ordered = sorted(self.picture.batches, key=lambda batch: batch.kind == "departs")
        return [
            BatchShape(
                self.x(b.first), self.y(b.sequence), self.x(b.last) + (b.first == b.last), self.y(b.last_sequence),
                self._tone(b), self._words(b),
            )
            for b in ordered
        ]  # fmt: skip

    @cached_property
    def _epochs(self) -> list[int]:
        """The epochs of what was taken, in their order."""
        return list(dict.fromkeys(batch.epoch for batch in self.picture.batches if batch.kind == "sound"))

    def _tone(self, batch: SequencedBatch) -> str:
        return ("even", "odd")[self._epochs.index(batch.epoch) % 2] if batch.kind == "sound" else batch.kind

    def _words(self, batch: SequencedBatch) -> str:
        if batch.kind == "departs" and self.picture.action == "snapshot":
            return f"the snapshot: epoch {batch.epoch}, sequence {batch.sequence:,} at offset {batch.first:,}"
        sequences = _between("sequence", batch.sequence, batch.last_sequence)
        text = f"epoch {batch.epoch}, {sequences}, {_between('offset', batch.first, batch.last)}"
        return {"sound": text, "departs": f"not allowed: {text}", "later": f"not judged: {text}"}[batch.kind]

    @property
    def markers(self) -> list[tuple[float, str]]:
        """The place of each marker, and words for it."""
        return [(self.x(offset), f"a marker at offset {offset:,}") for offset in self.picture.markers]

    @property
    def expected(self) -> float | None:
        """The height of the sequence that would have been next."""
        return None if self.picture.expected is None else self.y(self.picture.expected)

    @property
    def legend(self) -> list[tuple[str, str]]:
        """The tones of the picture, and what they stand for."""
        found = [(tone, _epochs(self._epochs[n::2])) for n, tone in enumerate(("even", "odd")) if self._epochs[n:]]
        found.append(("departs", self._words(self.refused)))
        if self.picture.expected is not None:
            found.append(("expected", f"sequence {self.picture.expected:,}: the next one"))
        if any(batch.kind == "later" for batch in self.picture.batches):
            found.append(("later", "later batches, not judged"))
        return [*found, ("marker", "a marker")] if self.picture.markers else found

    @property
    def note(self) -> str:
        """The batches that have no line."""
        shown = sum(batch.kind == "sound" for batch in self.picture.batches)
        more = f"; {self.picture.left_out:,} earlier ones left out" if self.picture.left_out else ""
        return f"{shown:,} {'batch' if shown == 1 else 'batches'} before it{more}"

    @property
    def description(self) -> str:
        """The picture in words."""
        return "; ".join(self._words(batch) for batch in self.picture.batches)


def _between(noun: str, first: int, last: int) -> str:
    return f"{noun} {first:,}" if first == last else f"{noun}s {first:,} to {last:,}"


def _epochs(epochs: Iterable[int]) -> str:
    """The batches of some epochs, in a legend."""
    known = [str(epoch) for epoch in epochs]
    more = ["…"] if len(known) > EPOCHS else []
    return f"batches of epoch{'s' * (len(known) > 1)} {', '.join([*known[:EPOCHS], *more])}"
