"""The records that carry a checksum of themselves, and those without one, as they lie in the log.

A broker decides that once in each of its lives, for all records that it writes. So of two records that were stored
within less time than a restart takes, both carry one or neither does. A message that a broker without that setting
writes again, as a final or after its delay, keeps the property of its first record, which is no checksum of the second.

Source: docs/rocketmq.md#property-crc.
"""

from __future__ import annotations

import numpy as np

from gapless.spec.log import RESTART
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.log import scan

BARE, OTHER, CARRIES = -1, 0, 1  # no checksum; one that is not the record's; its own
# Rows of a stretch of records of which all carry a checksum, or none does: which, the positions of its first and last
# record, how many they are, and the times of these two.
KIND, FIRST, LAST, COUNT, BEGAN, ENDED, STRETCH_ROWS = range(7)
MOST = 64  # stretches of one segment that are kept: each but the first begins with a restart, or is damage


def excuse_copied(log: Ints) -> None:
    """Marks checksums that a message brought from its first record: records without one are next to them in time."""
    at = np.flatnonzero(log[scan.CARRIED] == OTHER)
    if len(at) in (0, log.shape[1]):
        return
    plain = np.flatnonzero(log[scan.CARRIED] != OTHER)
    behind = np.searchsorted(plain, at)
    near = [np.zeros(len(at), np.bool_), np.zeros(len(at), np.bool_)]
    for which, sign in ((behind - 1, 1), (behind, -1)):
        there = (which >= 0) & (which < len(plain))
        other = plain[np.clip(which, 0, len(plain) - 1)]
        pause = sign * (log[scan.TIME, at] - log[scan.TIME, other])
        close = there & (pause >= 0) & (pause < RESTART)
        for n, kind in enumerate((BARE, CARRIES)):
            near[n] |= close & (log[scan.CARRIED, other] == kind)
    log[scan.SEALED, at[near[0] & ~near[1]]] = 1


def stretches(log: Ints, wrapped: int, edges: tuple[int, int], *, mixed: bool) -> Ints:
    """The stretches of a segment, [STRETCH_ROWS, …]. Records that are not whole belong to none.

    `wrapped`: bytes before each record · `edges`: positions at which one ends, too · `mixed`: some records carry one.
    """
    if not mixed and edges[0] == edges[1]:
        return _stretch_rows(log, np.zeros(min(log.shape[1], 1), np.int64), wrapped)
    whole = log[[scan.KNOWN, scan.FITS, scan.INTACT]].all(axis=0) & (log[scan.CARRIED] != OTHER)
    log = log[:, whole & (log[scan.CLAIMED] == log[scan.POSITION])]
    begins = np.flatnonzero(np.diff(log[scan.CARRIED], prepend=OTHER))
    begins = np.union1d(begins, np.searchsorted(log[scan.POSITION], edges))
    begins = begins[begins < log.shape[1]]
    rows = _stretch_rows(log, begins, wrapped)
    return rows if rows.shape[1] <= MOST else np.concatenate([rows[:, : MOST - 1], rows[:, -1:]], axis=1)


def _stretch_rows(log: Ints, begins: Ints, wrapped: int) -> Ints:
    ends = np.append(begins[1:], log.shape[1])[: len(begins)] - 1
    rows = np.empty((STRETCH_ROWS, len(begins)), np.int64)
    rows[KIND] = log[scan.CARRIED, begins]
    rows[FIRST], rows[LAST] = log[scan.POSITION, begins] - wrapped, log[scan.POSITION, ends] - wrapped
    rows[COUNT] = ends - begins + 1
    rows[BEGAN], rows[ENDED] = log[scan.TIME, begins], log[scan.TIME, ends]
    return rows
