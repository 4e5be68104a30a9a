"""Looks up the decisions and back-checks of a client log by the keys of transactions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Self

import numpy as np

from gapless.traces.sources.rocketmq.clients.requests import request_lines
from gapless.traces.sources.rocketmq.clients.requests.request_rows import Checks, Ends
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.lookup import KeyGroups

# Rows of `DecisionIndex.rows`: the position that is named, the kind of event, and of a back-check, the number named.
CLIENT_POSITION, CLIENT_WHAT, CLIENT_NUMBER = range(3)
COMMIT, ROLL_BACK, ACKNOWLEDGED, ASKED_BACK = range(4)


@dataclass(frozen=True, eq=False)
class DecisionIndex:
    """Decisions that clients requested, those acknowledged, and back-checks: `rows`, by key.

    The rows of one transaction are adjacent; `by_key` has their ranges.
    """

    rows: Ints
    by_key: KeyGroups

    @classmethod
    def of_log(cls, ends: Ends, checks: Checks) -> Self:
        """Builds the index from these columns of a client log."""
        commits, acknowledged = ends.decision == request_lines.COMMIT, ends.result == request_lines.OK
        rolled_back = ends.decision == request_lines.ROLL_BACK
        asked = {COMMIT: commits, ROLL_BACK: rolled_back, ACKNOWLEDGED: commits & acknowledged}
        some = [np.flatnonzero(those) for those in asked.values()]

        def every(column: str) -> Ints:
            of_ends = getattr(ends, column)
            return np.concatenate([*(of_ends[those] for those in some), getattr(checks, column)])

        by_key = KeyGroups(every("key"))
        order = by_key.order
        rows = np.empty((3, len(order)), np.int64)
        rows[CLIENT_WHAT] = np.repeat([*asked, ASKED_BACK], [*map(len, some), len(checks)])[order]
        rows[CLIENT_POSITION], rows[CLIENT_NUMBER] = every("position")[order], every("number")[order]
        return cls(rows, by_key)

    @property
    def reach(self) -> int:
        """The last position that is named; -1 where none is."""
        return int(self.rows[CLIENT_POSITION].max(initial=-1))


@cache
def no_decisions() -> DecisionIndex:
    """Returns an empty index."""
    return DecisionIndex.of_log(Ends.empty(), Checks.empty())
