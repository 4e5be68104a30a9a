"""Compares the entries of a DLedger log's segment with their units, by the worker that has read them.

Mostly all of them are right, and the log is not read a second time. If one is wrong, nothing is reported here: the
join reads the entries again from there on, because the meaning of a unit at the end depends on the log's end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.spec.catalog import SPECS
from gapless.traces.judging.building import Events, states
from gapless.traces.options import Options
from gapless.traces.replay.kernels import kernel
from gapless.traces.sources.rocketmq.layouts.dledger_index.units import EntryColumns, index_files, units_of
from gapless.traces.sources.rocketmq.layouts.layout import SegmentView, WorkerSide
from gapless.traces.sources.rocketmq.log import scan
from gapless.traces.sources.rocketmq.log.dledger_entries import DLEDGER_MAGIC
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory

SPEC = SPECS["dledger_index"]


class EntryUnits(NamedTuple):
    """The range of entries that have all their units; equal ends without any."""

    first: int
    end: int


def includes_dledger_index(store: StoreDirectory, options: Options) -> bool:
    """True if the index of a DLedger log was selected: it belongs to no topic."""
    if store.dledger is None or options.topic is not None:
        return False
    return options.trace in (None, store.dledger.index_name)


def includes_entry_units(store: StoreDirectory, options: Options) -> bool:
    """True if workers must look for units: not in an index of another moment than the log."""
    there = store.dledger is not None and store.dledger.index.is_dir() and not store.broken
    return there and not store.of_moments and includes_dledger_index(store, options)


def unit_events(entries: EntryColumns, units: npt.NDArray[np.void]) -> Events:
    """Returns the events of entries with their units."""
    events = Events.room(SPEC, len(entries.number))
    events.action[:] = SPEC.codes["find_unit"]
    for name, values in (
        ("number", entries.number), ("position", entries.position), ("size", entries.size), ("term", entries.term),
        ("known", units["magic"] == DLEDGER_MAGIC), ("its_number", units["number"]),
        ("its_position", units["position"]), ("its_size", units["size"]), ("its_term", units["term"]),
    ):  # fmt: skip
        events.column(name)[:] = values
    return events


def units_found(view: SegmentView, options: Options) -> EntryUnits | None:
    """Returns the entries of a segment if each has its unit; None otherwise, or unasked. Raises Unreadable."""
    store, columns, wrapped = view.store, view.columns, view.wrapped
    if not includes_entry_units(store, options):
        return None
    if not columns.count or not wrapped:
        return EntryUnits(0, 0)
    numbers, terms = columns.log[scan.INDEX], columns.log[scan.TERM]
    first, end = int(numbers[0]), int(numbers[-1]) + 1
    if store.dledger is None or first < 0 or end - first != columns.count:
        return None
    entries = EntryColumns(columns.log[scan.POSITION] - wrapped, columns.log[scan.SIZE] + wrapped, numbers, terms)
    events = unit_events(entries, units_of(index_files(store.dledger), first, end))
    replayed = kernel(SPEC.name, options.ignored).replay(
        np.array([0, columns.count], np.int64), events.action, events.args,
        states(SPEC, 1, begun=1, first=first, end=first), profile=options.profile,
    )  # fmt: skip
    return None if replayed.bad_at[0] >= 0 else EntryUnits(first, end)


def prepare(store: StoreDirectory, options: Options) -> None:
    """Compiles the replay of units, if there are some."""
    if includes_entry_units(store, options):
        kernel(SPEC.name, options.ignored).prepare()


WORKER = WorkerSide(prepare=prepare, examine=units_found)
