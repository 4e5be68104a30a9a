"""The states of the producers of one partition, up to some offset, in columns."""

from __future__ import annotations

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.traces.judging.building import Ints
from gapless.traces.options import Options
from gapless.traces.sources.kafka.judging.parts import PartitionTerms
from gapless.traces.sources.kafka.judging.producer_pieces import CLAIMED, opened, unknown
from gapless.traces.sources.kafka.log.tables import Flags

SCALARS = {name: row for row, name in enumerate(SPECS["producer"].scalars)}
ROWS = [SCALARS[name] for name in CLAIMED]
"""The rows of the fields in which pieces must agree."""


class ProducerTable:
    """The states of producers, by id. `ids`: in order · `states`: int64 [scalars, producers]."""

    def __init__(self, terms: PartitionTerms, options: Options) -> None:
        self.new = opened(terms, unknown(np.array([terms.start])), options, 1)
        self.ids: Ints = np.zeros(0, np.int64)
        self.states: Ints = np.zeros((len(SCALARS), 0), np.int64)
        self.events: Ints = np.zeros(0, np.int64)  # of each, how many were judged
        self.ended: Ints = np.zeros(0, np.int64)  # producers that depart: nothing more is judged of them

    def find(self, ids: Ints) -> tuple[Ints, Flags]:
        """Return the places of producers, and a mask of those that are there."""
        at: Ints = np.minimum(self.ids.searchsorted(ids), max(len(self.ids) - 1, 0)).astype(np.int64)
        there: Flags = self.ids[at] == ids if len(self.ids) else np.zeros(len(ids), np.bool_)
        return at, there

    def begin(self, ids: Ints) -> Ints:
        """Return the states of producers; that of a new one for those that are not there."""
        at, there = self.find(ids)
        states = np.repeat(self.new, len(ids), axis=1)
        states[:, there] = self.states[:, at[there]]
        return states

    def put(self, ids: Ints, states: Ints) -> None:
        """Set the states of producers."""
        self._add(ids)
        self.states[:, self.ids.searchsorted(ids)] = states

    def count(self, ids: Ints, events: Ints) -> None:
        """Count events of producers."""
        self._add(ids)
        self.events[self.ids.searchsorted(ids)] += events

    def _add(self, ids: Ints) -> None:
        """Add producers that are not there yet."""
        _, there = self.find(ids)
        if not there.all():
            every = np.concatenate([self.ids, ids[~there]])
            order = np.argsort(every, kind="stable")
            new = int((~there).sum())
            self.ids = every[order]
            self.states = np.concatenate([self.states, np.repeat(self.new, new, axis=1)], axis=1)[:, order]
            self.events = np.concatenate([self.events, np.zeros(new, np.int64)])[order]

    def end(self, ids: Ints) -> None:
        """Judge nothing more of producers."""
        self.ended = np.union1d(self.ended, ids)

    def known(self) -> Ints:
        """Return the producers that the broker knows, and that are judged."""
        ids = self.ids[self.states[SCALARS["known"]] != 0]
        judged: Ints = ids[~np.isin(ids, self.ended)]
        return judged

    def undecided(self, begin: int = 0) -> int:
        """The first offset of the earliest transaction that is open, of those from `begin` on; -1 if none is.

        Producers that depart are left out: whether theirs were decided later was not judged.
        """
        transactions = self._transactions(~np.isin(self.ids, self.ended))
        open_ones = transactions[transactions >= begin]
        return int(open_ones.min()) if len(open_ones) else -1

    def lost_transaction(self) -> bool:
        """True if a producer departs with an open transaction, so that it is not known what is decided."""
        return bool((self._transactions(np.isin(self.ids, self.ended)) >= 0).any())

    def _transactions(self, producers: Flags) -> Ints:
        """The first offsets of open transactions of some producers; -1 where none is open."""
        found: Ints = self.states[SCALARS["transaction"]][producers]
        return found
