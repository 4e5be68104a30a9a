"""TransactionColumns of a part of a segment, and what its index of aborted transactions has of them.

Source: docs/kafka.md#aborted-index.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gapless.traces.judging.building import Ints
from gapless.traces.sources.kafka.files.indexes import AbortedColumns, aborted_index
from gapless.traces.sources.kafka.files.snapshots import ProducerSnapshot
from gapless.traces.sources.kafka.judging.parts import NONE, SegmentPart
from gapless.traces.sources.kafka.log.batches import Batches, Scan, Stop
from gapless.traces.sources.kafka.log.tables import Flags

ABORT, COMMIT = 0, 1


class TransactionColumns(NamedTuple):
    """TransactionColumns, a column each, by producer and then by offset.

    `first`: the offset of the first record, -1 if it lies before the part, or there is none · `last`: that of the
    marker, -1 if it lies behind the part · `aborted`: the marker aborts it.
    """

    producer: Ints
    first: Ints
    last: Ints
    aborted: Flags


class AbortedPiece(NamedTuple):
    """The aborts of a part, and the entries of its index. `entries`: None if they are not judged.

    `begin`: transactions that were open where the log begins; None if that is not known · `closes`: the index of the
    segment has all of its entries in this part, or those before it.
    """

    transactions: TransactionColumns
    entries: AbortedColumns | None
    begin: TransactionColumns | None
    closes: bool


def aborted_piece(part: SegmentPart, found: Scan, snapshots: list[ProducerSnapshot]) -> AbortedPiece:
    """Read the transactions of a part. Raises OSError."""
    return AbortedPiece(
        transactions_of(found.batches),
        _entries(part, found),
        _begin(part, snapshots) if part.is_first else None,
        part.closes and found.stop in (Stop.END, Stop.ZEROS),
    )


def transactions_of(heads: Batches) -> TransactionColumns:
    """Return the transactions of some batches: each ends with a marker, and begins with what is behind the last."""
    ends = (heads.marker == ABORT) | (heads.marker == COMMIT)
    of = (heads.producer >= 0) & heads.is_sound & (ends | (heads.is_transactional & ~heads.is_control))
    (rows,) = np.nonzero(of)
    rows = rows[np.argsort(heads.producer[rows], kind="stable")]
    producer, is_end = heads.producer[rows], ends[rows]
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = (producer[1:] != producer[:-1]) | is_end[:-1]
    (low,) = np.nonzero(begins)
    high = np.append(low, len(rows))[1:] - 1
    base, marked = heads.base[rows], is_end[high]
    return TransactionColumns(
        producer[low],
        np.where(is_end[low], NONE, base[low]),
        np.where(marked, base[high], NONE),
        marked & (heads.marker[rows][high] == ABORT),
    )


def _begin(part: SegmentPart, snapshots: list[ProducerSnapshot]) -> TransactionColumns | None:
    """Return the transactions that are open where the log begins; None if no snapshot says which."""
    none = np.zeros(0, np.int64)
    if part.terms.start == 0:
        return TransactionColumns(none, none, none, none.astype(np.bool_))
    for one in snapshots:
        if one.offset == part.terms.start:
            (still,) = np.nonzero(one.first_open >= 0)
            still = still[np.argsort(one.producer[still], kind="stable")]
            last, aborted = np.full(len(still), NONE), np.zeros(len(still), np.bool_)
            return TransactionColumns(one.producer[still], one.first_open[still], last, aborted)
    return None


def _entries(part: SegmentPart, found: Scan) -> AbortedColumns | None:
    """Return the entries about markers of a part; None if a copier caught the segment without its indexes."""
    segment = part.segment
    if segment.time_index is None and not part.terms.is_whole:
        return None
    kept = aborted_index(segment.aborted_index) if segment.aborted_index else NO_ENTRIES
    end = int(found.batches.last[-1]) + 1 if len(found.batches) else part.offset
    is_closed = part.closes and found.stop in (Stop.END, Stop.ZEROS) and (part.terms.is_whole or not part.is_last)
    mine = (part.opens | (kept.last >= part.offset)) & (is_closed | (kept.last < end))
    return AbortedColumns(
        kept.blanks, kept.rest, kept.version[mine], kept.producer[mine], kept.first[mine], kept.last[mine],
        kept.stable[mine],
    )  # fmt: skip


_NONE = np.zeros(0, np.int64)
NO_ENTRIES = AbortedColumns(0, 0, _NONE, _NONE, _NONE, _NONE, _NONE)
