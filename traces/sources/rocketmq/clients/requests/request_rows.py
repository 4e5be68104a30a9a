"""Columns of a client log: messages sent, decisions about halves, back-checks, and requests to resume."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt

from gapless.traces.sources.rocketmq.columns.bytes import Ints

SPARE, MORE = 1 << 10, 17 / 16  # spare rows, and the factor for the expected number

Widths = Mapping[str, type["np.integer[Any]"]]
Chosen = Ints | npt.NDArray[np.bool_] | slice


@dataclass(frozen=True, eq=False)
class Rows:
    """Columns of equal length: one row for each event of a kind in the log, in its order."""

    narrow: ClassVar[Widths] = {}  # columns of which no value needs eight bytes

    line: Ints  # where it stands, from 1

    def __len__(self) -> int:
        return len(self.line)

    @classmethod
    def empty(cls) -> Self:
        """No rows."""
        return cls(*(np.zeros(0, cls.width_of(column.name)) for column in fields(cls)))

    @classmethod
    def width_of(cls, column: str) -> type[np.integer]:
        """Returns the type in which a column keeps its values."""
        return cls.narrow.get(column, np.int64)

    def some(self, chosen: Chosen) -> Self:
        """Some of them: by index, by whether they are, or a slice, which has no room of its own."""
        return type(self)(*(getattr(self, column.name)[chosen] for column in fields(self)))

    def with_others(self, others: Self) -> Self:
        """These, and others behind them."""
        both = ((getattr(self, column.name), getattr(others, column.name)) for column in fields(self))
        return type(self)(*(np.concatenate(columns) for columns in both))


@dataclass(frozen=True, eq=False)
class Sends(Rows):
    """Sent messages: a row for each, or one for a whole batch that does not name its messages.

    `position` and `number` are -1 if no answer gave a place. A half is answered with its place in the half topic;
    `topic` and `queue` are those of its final message.
    """

    narrow: ClassVar[Widths] = {
        **dict.fromkeys(("count", "crc", "length", "topic", "queue"), np.int32),
        **dict.fromkeys(("half", "result"), np.int8),
    }

    position: Ints
    number: Ints
    count: Ints  # messages in this row
    key: Ints  # digest of the UNIQ_KEY; 0 where the log does not say it
    crc: Ints  # of the body, as the broker keeps it; -1 where the log does not say it
    length: Ints  # bytes of the body; -1 likewise
    topic: Ints  # index in `ClientLog.topics`
    queue: Ints  # -1 if the broker chose the queue, and no answer named it
    half: Ints  # 1 for a half, 0 for a message
    result: Ints  # OK, FAIL, UNKNOWN


@dataclass(frozen=True, eq=False)
class AnsweredSends(Sends):
    """Messages with an answered position, sorted by it. `line` is 0 if only traces have it."""

    witness: Ints  # the position of the trace message that tells; -1 where none does


@dataclass(frozen=True, eq=False)
class Ends(Rows):
    """Decisions about a version of a half, or requests that left it open."""

    narrow: ClassVar[Widths] = dict.fromkeys(("decision", "result", "from_check"), np.int8)

    key: Ints
    number: Ints  # in the half topic
    position: Ints
    decision: Ints  # COMMIT, ROLL_BACK, UNDECIDED
    result: Ints  # OK, FAIL, UNKNOWN, NONE
    from_check: Ints  # 1 for the answer to a back-check


@dataclass(frozen=True, eq=False)
class Checks(Rows):
    """Back-checks that came in, and which version of a half each names."""

    key: Ints
    number: Ints
    position: Ints
    times: Ints  # the half's counter; -1 where the log does not say it


@dataclass(frozen=True, eq=False)
class Resumes(Rows):
    """Requests to put a half up for checks again, and the record that each names."""

    position: Ints
    result: Ints


Found = tuple[Sends, Ends, Checks, Resumes]
"""What lines of a client log tell of."""


AnyRows = TypeVar("AnyRows", bound=Rows)


class RowBuffer(Generic[AnyRows]):
    """A growing buffer for rows of one kind. Unused room takes no memory."""

    def __init__(self, kind: type[AnyRows]) -> None:
        self._room = kind.empty()
        self.count = 0  # the number of rows; a writer that appends adds its own

    def columns(self, more: int, times: float) -> tuple[Ints, ...]:
        """The columns, with room for so many more rows behind `count`.

        `times`: how many times as many rows there will be in the end as there are, or so.
        """
        if self.count + more > len(self._room):
            room = int(self.count * max(times, 1.5) * MORE) + more + SPARE
            self._room = type(self._room)(*(_moved(column, self.count, room) for column in self._columns))
        return self._columns

    @property
    def _columns(self) -> tuple[Ints, ...]:
        return tuple(vars(self._room).values())

    def add(self, part: AnyRows, times: float) -> None:
        """Add rows that were read elsewhere. `times`: as above."""
        columns = self.columns(len(part), times)
        for column, values in zip(columns, vars(part).values(), strict=True):
            column[self.count : self.count + len(part)] = values
        self.count += len(part)

    @property
    def rows(self) -> AnyRows:
        """All of them."""
        return self._room.some(slice(self.count))


def _moved(column: Ints, count: int, more: int) -> Ints:
    """The first values of a column, with room for more."""
    room = np.empty(more, column.dtype)
    room[:count] = column[:count]
    return room
