"""Labelled faults of transactions: rows of the coordinator's table, markers, and batches, each wrong once."""

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gapless.spec.kafka_transaction import TxnStatus
from gapless.traces.sources.kafka.judging.table_piece import joined
from gapless.traces.sources.kafka.judging.transaction_items import DATA, together
from gapless.traces.sources.kafka.transactions.gathering import PartitionCopy

Evidence = Sequence[PartitionCopy]
Fault = Callable[[Evidence, random.Random], "tuple[list[PartitionCopy], set[str]] | None"]
PREPARED = (TxnStatus.PREPARE_COMMIT, TxnStatus.PREPARE_ABORT)
COMPLETE = (TxnStatus.COMPLETE_COMMIT, TxnStatus.COMPLETE_ABORT)


def _owner(copies: Evidence, producer: int) -> str:
    """The trace of the transactional id that has a producer."""
    for piece in (joined(copy.rows) for copy in copies if copy.rows):
        (rows,) = np.nonzero(piece.rows.producer == producer)
        if len(rows):
            return f"__transaction_state/{piece.names[int(piece.rows.id[rows[0]])]}"
    return ""


def _of_rows(wanted: Callable[[Any, int], bool], change: Callable[[Any, int], Any]) -> Fault:
    """A fault in a row of the table that is wanted."""

    def made(copies: Evidence, chance: random.Random) -> "tuple[list[PartitionCopy], set[str]] | None":
        places = [
            (which, row)
            for which, copy in enumerate(copies)
            if copy.rows
            for rows in [joined(copy.rows).rows]
            for row in range(len(rows.id))
            if wanted(rows, row)
        ]
        if not places:
            return None
        which, row = chance.choice(places)
        piece = joined(copies[which].rows)
        key = int(piece.rows.id[row])
        rows = type(piece.rows)(*(column.copy() for column in piece.rows))
        new = dataclasses.replace(copies[which], rows=[piece._replace(rows=change(rows, row))])
        return [new if one is copies[which] else one for one in copies], {f"__transaction_state/{piece.names[key]}"}

    return made


def _of_items(wanted: Callable[[Any, int], bool], change: Callable[[Any, int], Any]) -> Fault:
    """A fault in a run or a marker that is wanted, of a partition that clients write."""

    def made(copies: Evidence, chance: random.Random) -> "tuple[list[PartitionCopy], set[str]] | None":
        places = [
            (which, row)
            for which, copy in enumerate(copies)
            if copy.items and not copy.placed.name.topic.startswith("__") and not copy.placed.terms.compacted
            for items in [together(copy.items)]
            for row in range(len(items.kind))
            if items.first[row] >= copy.start and _owner(copies, int(items.producer[row])) and wanted(items, row)
        ]
        if not places:
            return None
        which, row = chance.choice(places)
        items = together(copies[which].items)
        owner = _owner(copies, int(items.producer[row]))
        items = type(items)(*(column.copy() for column in items))
        new = dataclasses.replace(copies[which], items=[change(items, row)])
        return [new if one is copies[which] else one for one in copies], {owner}

    return made


def _without(columns: Any, row: int) -> Any:
    return columns.of(np.delete(np.arange(len(columns[0])), row))


def _twice(columns: Any, row: int, **values: int) -> Any:
    """The same with a row put in behind one, which has other values."""
    made = columns.of(np.insert(np.arange(len(columns[0])), row + 1, row))
    for name, value in values.items():
        getattr(made, name)[row + 1] = value
    return made


def _with(columns: Any, row: int, **values: int) -> Any:
    for name, value in values.items():
        getattr(columns, name)[row] = value
    return columns


def _is(*statuses: TxnStatus) -> Callable[[Any, int], bool]:
    return lambda rows, row: rows.status[row] in statuses


def _follows(rows: Any, row: int, *statuses: TxnStatus) -> bool:
    """True if the row before, of the same id, has one of these statuses."""
    (own,) = np.nonzero(rows.id[:row] == rows.id[row])
    return len(own) > 0 and rows.status[own[-1]] in statuses


def _is_marker(items: Any, row: int) -> bool:
    """True for a marker that ends data, with another marker of its producer behind it."""
    data = row > 0 and items.kind[row - 1] == DATA and items.producer[row - 1] == items.producer[row]
    later = items.kind[row + 1 :][items.producer[row + 1 :] == items.producer[row]]
    return bool(items.kind[row] != DATA and data and (later != DATA).any())


def _is_last_marker(items: Any, row: int) -> bool:
    is_last = row + 1 == len(items.kind) or items.producer[row + 1] != items.producer[row]
    return bool(items.kind[row] != DATA and is_last)


ONGOING, EMPTY = TxnStatus.ONGOING, TxnStatus.EMPTY
FAULTS: dict[str, Fault] = {
    "decision_missing": _of_rows(_is(*PREPARED), _without),
    "decision_turned": _of_rows(
        lambda rows, row: rows.status[row] in PREPARED and _follows(rows, row, ONGOING),
        lambda rows, row: _with(rows, row, status=5 - rows.status[row]),
    ),
    "decision_epoch_ahead": _of_rows(_is(*PREPARED), lambda rows, row: _with(rows, row, epoch=rows.epoch[row] + 3)),
    "decision_names_none": _of_rows(
        lambda rows, row: rows.status[row] in PREPARED and _follows(rows, row, ONGOING),
        lambda rows, row: _with(rows, row, set=0),
    ),
    "decision_names_another": _of_rows(
        lambda rows, row: rows.status[row] in PREPARED and _follows(rows, row, ONGOING),
        lambda rows, row: _with(rows, row, set=rows.set[row] + 1),
    ),
    "decision_twice": _of_rows(_is(*PREPARED), _twice),
    "decision_behind_its_completion": _of_rows(
        _is(*COMPLETE), lambda rows, row: _twice(rows, row, status=TxnStatus.PREPARE_COMMIT)
    ),
    "completion_missing": _of_rows(
        lambda rows, row: rows.status[row] in COMPLETE and rows.id[row] in rows.id[row + 1 :], _without
    ),
    "completion_epoch_ahead": _of_rows(
        lambda rows, row: rows.status[row] in COMPLETE and _follows(rows, row, *PREPARED),
        lambda rows, row: _with(rows, row, epoch=rows.epoch[row] + 1),
    ),
    "completion_of_another_producer": _of_rows(
        lambda rows, row: rows.status[row] in COMPLETE and _follows(rows, row, *PREPARED),
        lambda rows, row: _with(rows, row, producer=rows.producer[row] + 90_000),
    ),
    "completion_twice": _of_rows(_is(*COMPLETE), _twice),
    "begin_while_open": _of_rows(
        _is(ONGOING), lambda rows, row: _twice(rows, row, status=EMPTY, epoch=rows.epoch[row] + 1)
    ),
    "begin_while_decided": _of_rows(
        _is(*PREPARED), lambda rows, row: _twice(rows, row, status=EMPTY, epoch=rows.epoch[row] + 1)
    ),
    "begin_with_the_same_epoch": _of_rows(_is(*COMPLETE), lambda rows, row: _twice(rows, row, status=EMPTY)),
    "forgotten_while_open": _of_rows(_is(ONGOING), lambda rows, row: _twice(rows, row, status=-1)),
    "forgotten_while_decided": _of_rows(_is(*PREPARED), lambda rows, row: _twice(rows, row, status=-1)),
    "added_to_by_a_fenced_producer": _of_rows(
        lambda rows, row: rows.status[row] == ONGOING and _follows(rows, row, *COMPLETE, EMPTY),
        lambda rows, row: _with(rows, row, epoch=rows.epoch[row] + 2),
    ),
    "marker_missing": _of_items(_is_marker, _without),
    "marker_turned": _of_items(_is_marker, lambda items, row: _with(items, row, kind=1 - items.kind[row])),
    "marker_epoch_ahead": _of_items(_is_marker, lambda items, row: _with(items, row, epoch=items.epoch[row] + 3)),
    "marker_of_the_other_kind_behind": _of_items(
        _is_last_marker,
        lambda items, row: _twice(
            items, row, kind=1 - items.kind[row], first=items.last[row] + 1, last=items.last[row] + 1
        ),
    ),
    "data_behind_the_last_marker": _of_items(
        _is_last_marker,
        lambda items, row: _twice(items, row, kind=DATA, first=items.last[row] + 1, last=items.last[row] + 1),
    ),
    "data_of_a_later_epoch": _of_items(
        lambda items, row: row + 1 < len(items.kind) and items.kind[row] == DATA and _is_marker(items, row + 1),
        lambda items, row: _with(items, row, epoch=items.epoch[row] + 1),
    ),
    "data_behind_its_marker_with_a_spare_one": _of_items(
        _is_last_marker,
        lambda items, row: _twice(
            _twice(items, row, kind=1 - items.kind[row], first=items.last[row] + 2, last=items.last[row] + 2),
            row,
            kind=DATA,
            first=items.last[row] + 1,
            last=items.last[row] + 1,
        ),
    ),
    "decision_of_a_fenced_producer": _of_rows(
        lambda rows, row: rows.status[row] in PREPARED and rows.epoch[row] > 1 and _follows(rows, row, ONGOING),
        lambda rows, row: _with(rows, row, epoch=rows.epoch[row] - 1),
    ),
}
