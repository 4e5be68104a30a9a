"""Halves that consumers can read: rows of their transactions become events of `visibility`, and are judged.

Few stores have any such record, so only transactions with one are looked at. A transaction whose first half has expired
may have been committed before the log begins: it is not judged.

Source: docs/rocketmq-transactions.md#visible-halves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.traces.judging import building
from gapless.traces.judging.building import Events
from gapless.traces.replay.exact import Event
from gapless.traces.replay.kernels import kernel
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.lookup import among, distinct
from gapless.traces.sources.rocketmq.transactions.parameters import Terms, VisibleRows
from gapless.traces.sources.rocketmq.transactions.transaction_rows import (
    COPY,
    FINAL,
    HALF,
    KEY,
    KIND,
    LIST,
    MARK,
    OP,
    PARKED,
    PLACE,
    SHOWN,
    TIMES,
)

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class VisibleTotals:
    """The judgement of visible transactions: as in `Totals` and `Judgement`."""

    covered: dict[str, int] = field(default_factory=dict)
    anomalies: dict[str, tuple[int, int, int, str]] = field(default_factory=dict)
    refused: dict[int, VisibleRows] = field(default_factory=dict)


class VisibleEvents(NamedTuple):
    """The events of visible transactions, with their rows in the order of the log.

    `bounds`, `starts`: the begin of each in its rows and in its events, and the end of all · `source`: the row of each
    event.
    """

    rows: Ints
    rolled_back: Flags
    bounds: Ints
    starts: Ints
    columns: Events
    source: Ints

    def each(self) -> Iterator[tuple[VisibleRows, list[Event], list[int]]]:
        """Yields the rows of each transaction, its events, and their positions in the log."""
        places = self.rows[PLACE, self.source].tolist()
        for one in range(len(self.bounds) - 1):
            mine = slice(*self.bounds[one : one + 2])
            low, high = self.starts[one : one + 2].tolist()
            events = [self.columns.at(at) for at in range(low, high)]
            yield (self.rows[:, mine], self.rolled_back[mine]), events, places[low:high]


def visible_keys(rows: Ints) -> Ints:
    """The keys of transactions of which consumers can read a record that is no final."""
    return distinct(rows[KEY, rows[SHOWN] > 0])


def judge_visible(rows: Ints, rolled_back: Flags, keys: Ints, given: Terms) -> VisibleTotals:
    """Judges the transactions with these keys. `rolled_back`: the marks that tell of a rollback."""
    events = visible_events(rows, rolled_back, keys)
    count = len(events.bounds) - 1
    if not count:
        return VisibleTotals()
    of = kernel("visibility", given.ignored)
    replayed = of.replay(
        events.starts, events.columns.action, events.columns.args, building.states(of.spec, count),
        rows=events.rows[PLACE, events.source], profile=given.profile,
    )  # fmt: skip
    anomalies = {}
    for number, deviation in enumerate(of.spec.deviations):
        if shown := int(replayed.deviated[number]):
            at = int(events.source[replayed.deviated_at[number]])
            first = int(events.rows[PLACE, events.bounds[events.bounds.searchsorted(at, side="right") - 1]])
            position = int(events.rows[PLACE, at])
            anomalies[deviation.step.__name__] = shown, position, position, f"@{first}"
    refused = {}
    for one in np.flatnonzero(replayed.bad_at >= 0).tolist():
        mine = slice(*events.bounds[one : one + 2])
        refused[int(events.rows[KEY, mine.start])] = events.rows[:, mine], events.rolled_back[mine]
    covered = {name: int(n) for name, n in zip(of.spec.actions, replayed.covered, strict=True) if n}
    return VisibleTotals(covered, anomalies, refused)


def visible_events(rows: Ints, rolled_back: Flags, keys: Ints) -> VisibleEvents:
    """Builds the events of the transactions with these keys, as far as their first half is there."""
    (members,) = np.nonzero(among(rows[KEY], keys) & (rows[KIND] != OP))
    members = members[np.argsort(rows[KEY, members], kind="stable")]
    mine = rows[:, members]
    is_half = (mine[KIND] == HALF) | ((mine[KIND] == COPY) & (mine[LIST] != 0))
    groups = np.searchsorted(keys, mine[KEY])
    first = np.full(len(keys), len(members), np.int64)
    np.minimum.at(first, groups[is_half], np.flatnonzero(is_half))
    whole = np.zeros(len(keys), np.bool_)
    there = first < len(members)
    whole[there] = mine[TIMES, first[there]] <= 0
    kept = whole[groups]
    return _events(np.ascontiguousarray(mine[:, kept]), rolled_back[members[kept]], is_half[kept])


def _events(rows: Ints, rolled_back: Flags, is_half: Flags) -> VisibleEvents:
    """Builds the events of rows that are in the order of their transactions."""
    count = rows.shape[1]
    at = np.arange(count)
    begins = np.ones(count, np.bool_)
    begins[1:] = rows[KEY, 1:] != rows[KEY, :-1]
    undone = rolled_back & (rows[KIND] == MARK)
    before = np.maximum.accumulate(np.where(rows[SHOWN] > 0, at, -1)) if count else at
    seen = before >= np.maximum.accumulate(np.where(begins, at, 0)) if count else begins
    shows = np.where(rows[SHOWN] > 0, at, np.where(undone & seen, before, -1))
    spec = kernel("visibility").spec
    codes, takes = spec.codes, is_half | (rows[KIND] == FINAL) | undone
    step = np.where(is_half, codes["prepare"], np.where(undone, codes["roll_back"], codes["commit"]))
    widths = takes.astype(np.int64) + (shows >= 0)
    ends = np.cumsum(widths)
    columns = Events.room(spec, int(ends[-1]) if count else 0)
    columns.action[(ends - widths)[takes]] = step[takes]
    columns.column("position")[(ends - widths)[is_half]] = rows[PLACE, is_half]
    last, shown = (ends - 1)[shows >= 0], shows[shows >= 0]
    columns.action[last] = codes["show"]
    columns.column("number")[last] = rows[SHOWN, shown] - 1
    columns.column("position")[last] = rows[PLACE, shown]
    bounds = np.append(np.flatnonzero(begins), count)
    starts = np.concatenate([np.zeros(1, np.int64), ends])[bounds]
    return VisibleEvents(rows, rolled_back, bounds, starts, columns, np.repeat(at, widths))


def fate(of: VisibleRows) -> str:
    """Describes what became of a transaction."""
    rows, rolled_back = of
    for what, mine in (
        ("committed by the final", rows[KIND] == FINAL),
        ("rolled back by the op", rolled_back),
        ("set aside", rows[KIND] == PARKED),
    ):
        if mine.any():
            return f"the transaction was {what} at {int(rows[PLACE, np.flatnonzero(mine)[0]])}"
    return "the transaction is undecided at the log's end"
