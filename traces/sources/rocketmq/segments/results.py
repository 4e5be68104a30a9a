"""Results of judged segments and splits, as workers hand them to `joining/`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.spec.catalog import SPECS
from gapless.traces.replay.exact import Event
from gapless.traces.sources.rocketmq.clients.deliveries import DeliveryResult
from gapless.traces.sources.rocketmq.clients.evidence import PromiseResult
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.packed_columns import PackedColumns
from gapless.traces.sources.rocketmq.segments.lifetime import Lifetime
from gapless.traces.sources.rocketmq.segments.splits import Split
from gapless.traces.sources.rocketmq.store.selection import name_of_queue
from gapless.traces.sources.rocketmq.transactions.parameters import Judgement

Subject = tuple[str, int]
"""Topic and queue id."""


def name_of(subject: Subject) -> str:
    """The trace of a queue."""
    return name_of_queue(*subject)


@dataclass(frozen=True)
class Refusal:
    """A refusal of a piece: the event, and its broken rule, or None if only exact replay can find it."""

    event: Event
    rule: str | None


Slot = tuple[int, int, int]
"""Position, size and tag code, as they stand in a slot of a consume queue."""


class Piece(NamedTuple):
    """The part of one queue in one segment. Its replay began at `number`, which its first message claims.

    `first`, `indexed`, `end`: its state's, at the replay's end or refusal · `began`, `last`: log positions of the
    first and last message · `messages`: their number, `batches` that of inner batches among them · `before`, `behind`:
    the slots next to its own, the latter with number `stop`.
    """

    subject: Subject
    number: int
    first: int
    indexed: int
    end: int
    began: int
    last: int
    messages: int
    batches: int
    before: Slot
    behind: Slot
    stop: int
    refusal: Refusal | None


PieceRow = tuple[Subject, int, int, int, int, int, int, int, int, Slot, Slot, int, Refusal | None]
"""The fields of a `Piece`."""


@dataclass(frozen=True)
class Pieces:
    """The pieces of all queues in one segment: a column for each number of a `Piece`.

    `ends`: int64 [scalars, pieces] · `edges`: slots [pieces, 2] · `refusals`: by index of the piece.
    """

    subjects: list[Subject]
    numbers: Ints
    ends: Ints
    began: Ints
    last: Ints
    messages: Ints
    batches: Ints
    edges: npt.NDArray[np.void]
    stops: Ints
    refusals: dict[int, Refusal]

    @property
    def indexed(self) -> int:
        """The number of accepted entries."""
        return int((self._reached("indexed") - self.numbers).sum())

    @property
    def indexed_ends(self) -> Ints:
        """The end of the entries of each piece that were accepted."""
        return self._reached("indexed")

    @property
    def waiting(self) -> Ints:
        """Returns the mask of pieces whose last messages still lack their entries."""
        behind = self._reached("indexed") < self._reached("end")
        return np.flatnonzero(behind & (self.batches == 0))

    def each(self) -> Iterator[PieceRow]:
        """The fields of one piece after the other: there may be very many."""
        columns = (
            self.numbers, *(self._reached(name) for name in ("first", "indexed", "end")),
            self.began, self.last, self.messages, self.batches, *self.edges.T, self.stops,
        )  # fmt: skip
        refusals = (self.refusals.get(piece) for piece in range(len(self.subjects)))
        return zip(self.subjects, *(column.tolist() for column in columns), refusals, strict=True)

    def _reached(self, name: str) -> Ints:
        reached: Ints = self.ends[SPECS["queue"].scalars.index(name)]
        return reached


@dataclass(frozen=True)
class Segment:
    """Records that tile the log from `start` to `end`, with the results for `log` and `queue`.

    `refused`: the refused log events; after each, the log was replayed from there on. `refused_more`: others that are
    only counted, by rule. `unjudged`: the position from which on they are not even counted, or -1. `first_event` opens
    the segment for the join. `last`: position of the last record. `opened`, `clock`, `newest`: store times in ms, of
    the first, the last and the latest record. `stepped_back`: position of the last record that is older than the one
    before it, or -1. `lived`: the time in which its records were stored.
    """

    start: int
    end: int
    records: int
    lived: Lifetime
    first_event: Event
    last: int
    opened: int
    clock: int
    newest: int
    stepped_back: int
    refused: list[Refusal]
    refused_more: dict[str, int]
    unjudged: int
    pieces: Pieces
    stretches: Ints  # of records that carry a checksum of themselves, and of others, as `checksums.py` has them
    transactions: list[Judgement]
    promised: PromiseResult | None  # the promises to clients in it; None without evidence
    delivered: DeliveryResult | None  # what it has of messages that consumers were handed; likewise
    found: dict[str, PackedColumns]  # what few stores have, by the names in `SOUGHT`, as far as it is judged
    layouts: dict[str, Any]  # what layouts found, by their names: see `layouts/layout.py`
    covered: dict[str, dict[str, int]]
    anomalies: dict[str, tuple[int, int, str]]  # deviation: count, position of the first, its trace


@dataclass(frozen=True)
class SplitResult:
    """The result of a split, in log order. `stop`: the reason of the last segment's end; `at`: its position.

    `unread`: the position from which on nothing was read, for there was so much damage before; or -1.
    """

    split: Split
    segments: list[Segment]
    stop: int
    at: int
    counters: Ints
    bytes: int
    unread: int = -1
