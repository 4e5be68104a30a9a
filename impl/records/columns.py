"""Messages that were read, as columns: Python objects are made on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import cast

import numpy as np
import numpy.typing as npt

from gapless.impl.records import read_kernel as k
from gapless.impl.records.object_kernel import objects_of
from gapless.impl.records.record import Bytes, Ints, Record


@dataclass(frozen=True, eq=False)
class MessageColumns:
    """Messages of one queue, in the order of their numbers.

    `numbers`, `positions`, `times`: int64 [n]; times are ms, when each was stored · `bodies`: uint8, one after the
    other; body *i* is `bodies[body_ends[i]:body_ends[i + 1]]`, with `body_ends` int64 [n + 1] · `tag_codes`: int64 [n],
    what the queue's entry says of the tag: its hash, or when a delayed message is due · `tag_texts`, `tag_ends`: tags
    in UTF-8, each followed by 0x02 · `rests`, `rest_ends`: records without their bodies.
    """

    numbers: Ints
    positions: Ints
    times: Ints
    bodies: Bytes
    body_ends: Ints
    tag_codes: Ints
    tag_texts: Bytes
    tag_ends: Ints
    rests: Bytes
    rest_ends: Ints

    @classmethod
    def of(cls, rows: Ints, bodies: Bytes, rests: Bytes, tags: Bytes, count: int) -> MessageColumns:
        """The first `count` of what `read_kernel.gather` has filled."""
        body_ends, rest_ends, tag_ends = (rows[row, : count + 1] for row in (k.BODY_END, k.REST_END, k.TAG_END))
        numbers, positions, times, codes = (rows[row, :count] for row in (k.NUMBER, k.POSITION, k.TIME, k.TAG_CODE))
        texts = bodies[: body_ends[-1]], rests[: rest_ends[-1]], tags[: tag_ends[-1]]
        return cls(numbers, positions, times, texts[0], body_ends, codes, texts[2], tag_ends, texts[1], rest_ends)

    @classmethod
    def joined(cls, parts: Sequence[MessageColumns]) -> MessageColumns:
        """The same messages in one. No part: no message."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.of(np.zeros((k.ROWS, 1), np.int64), *(np.zeros(0, np.uint8),) * 3, 0)
        return cls(*(_joined([getattr(part, each.name) for part in parts], each.name) for each in fields(cls)))

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records())

    def __getitem__(self, index: int) -> Record:
        """One of them, as `records` has it."""
        at = range(len(self))[index]
        low, high = self.rest_ends[at : at + 2].tolist()
        number, position, time = (int(column[at]) for column in (self.numbers, self.positions, self.times))
        return Record(number, position, self.body(at), time, self.rests[low:high].tobytes())

    def where(self, which: npt.NDArray[np.bool_]) -> MessageColumns:
        """The messages that are chosen: bool [n]. Nothing is copied where all are."""
        if which.all():
            return self
        texts = {}
        for text, ends in _TEXTS.items():
            limits = getattr(self, ends)
            lengths = np.diff(limits)
            texts[text] = getattr(self, text)[np.repeat(which, lengths)]
            texts[ends] = np.concatenate([[0], np.cumsum(lengths[which])])
        numbers = {name: getattr(self, name)[which] for name in ("numbers", "positions", "times", "tag_codes")}
        return MessageColumns(**numbers, **texts)

    def body(self, index: int) -> bytes:
        """The body of one message."""
        low, high = self.body_ends[index : index + 2].tolist()
        return self.bodies[low:high].tobytes()

    @cached_property
    def tags(self) -> list[str]:
        """The tag of each message, by which consumers select; empty if it has none."""
        texts, count = self.tag_texts.tobytes(), len(self)
        first = texts[: int(self.tag_ends[min(1, count)])]
        if texts == first * count:  # as is often so: one object for all of them
            return [first[:-1].decode(errors="backslashreplace")] * count
        return texts.decode(errors="backslashreplace").split("\x02")[:-1]

    def records(self) -> list[Record]:
        """Each as an object. It holds its own bytes, and nothing of these columns."""
        tags = self.tags
        made = objects_of(
            id(Record), id(tags), self.numbers, self.positions, self.times, self.bodies, self.body_ends, self.rests,
            self.rest_ends,
        )  # fmt: skip
        if made.__class__ is not list:
            raise MemoryError
        return cast("list[Record]", made)


_TEXTS = {"bodies": "body_ends", "rests": "rest_ends", "tag_texts": "tag_ends"}


def _joined(parts: Sequence[np.ndarray], name: str) -> np.ndarray:
    """A column of all parts."""
    if name not in _TEXTS.values():
        return np.concatenate(parts)
    before = np.cumsum([0, *(int(part[-1]) for part in parts)])
    return np.concatenate([[0], *(part[1:] + shift for part, shift in zip(parts, before, strict=False))])
