"""The bitmap of each queue: which of its numbers are written and not yet visible.

All bitmaps lie in one array, a ring for each queue with a byte for a number, so that one native call serves all queues
of a batch. A ring holds the numbers between the commit position and the scanner, and is grown before the scanner gives
more. Source: docs/proposals.md#parallel-dispatch-write, #parallel-dispatch-example.
"""

from __future__ import annotations

from gapless.impl.dispatch.scan_kernel import BITS, COMMITTED, HIGH, LOW, ROOM, RUN_QUEUE, SCANNED
from gapless.impl.records.record import Bytes, Ints
from gapless.native import BYTES, I64, INTS, TABLE, function


@function(kinds=(BYTES, TABLE, TABLE))
def set_bits(bits: Bytes, queues: Ints, runs: Ints) -> None:
    """The entries of these runs are written."""
    for r in range(len(runs)):
        queue = queues[runs[r, RUN_QUEUE]]
        for number in range(runs[r, LOW], runs[r, HIGH]):
            bits[queue[BITS] + (number & (queue[ROOM] - 1))] = 1


@function(kinds=(BYTES, TABLE, INTS, INTS))
def gapless_ends(bits: Bytes, queues: Ints, which: Ints, ends: Ints) -> None:
    """Fill `ends` with the largest number of each of these queues before which all are written."""
    for i in range(len(which)):
        queue = queues[which[i]]
        end = queue[COMMITTED]
        while end < queue[SCANNED] and bits[queue[BITS] + (end & (queue[ROOM] - 1))]:
            end += 1
        ends[i] = end


@function(kinds=(BYTES, TABLE, INTS, INTS))
def move_on(bits: Bytes, queues: Ints, which: Ints, ends: Ints) -> None:
    """The commit positions of these queues move to `ends`; the room of what lies before is free."""
    for i in range(len(which)):
        queue = queues[which[i]]
        for number in range(queue[COMMITTED], ends[i]):
            bits[queue[BITS] + (number & (queue[ROOM] - 1))] = 0
        queue[COMMITTED] = ends[i]


@function(kinds=(BYTES, INTS, I64, I64))
def widen(bits: Bytes, queue: Ints, at: int, room: int) -> None:
    """The ring of a queue lies at `at` now, with `room` for more; what it says stays."""
    for number in range(queue[COMMITTED], queue[SCANNED]):
        bits[at + (number & (room - 1))] = bits[queue[BITS] + (number & (queue[ROOM] - 1))]
    queue[BITS], queue[ROOM] = at, room
