"""The sessions of readers in a client log: each from a position to a position of one partition, with nothing between.

Source: docs/kafka-clients.md#sessions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gapless.traces.judging.building import Ints
from gapless.traces.sources.kafka.log.tables import Flags, different

NONE = -1


class ReaderSessions(NamedTuple):
    """Sessions, a column each. `begin`, `stop`: positions, or -1 · `line`: of the answer that has `stop`, or -1.

    `number`: the session's in the log, or -1 where a line is one.
    """

    consumer: Ints
    partition: Ints
    number: Ints
    begin: Ints
    stop: Ints
    line: Ints


def reader_sessions(
    is_op: Mapping[str, Flags], consumer: Ints, place: Ints, numbers: Mapping[str, Ints], lines: Ints
) -> tuple[ReaderSessions, Ints]:
    """Return all sessions, and the number of each answer's; -1 for none. `lines`: of the answers.

    Lines that are no `read` are of a session if they have its number.
    """
    count = len(consumer)
    streamed = (is_op["received"] | is_op["position"]) & (numbers["session"] >= 0)
    (rows,) = np.nonzero(streamed | is_op["read"])
    whole = is_op["read"][rows]
    found, of = different(
        consumer[rows], np.where(whole, NONE, numbers["session"][rows]), place[rows], np.where(whole, rows, NONE)
    )
    session = np.full(count, NONE)
    session[rows] = of
    begin, stop, line = (np.full(found.shape[1], NONE) for _ in range(3))
    reads = rows[whole]
    begin[session[reads]], stop[session[reads]] = numbers["from"][reads], numbers["position"][reads]
    line[session[reads]] = lines[reads]
    (stated,) = np.nonzero(is_op["position"] & streamed)
    of_all, first = np.unique(of, return_index=True)
    opens = np.full(found.shape[1], NONE)
    opens[of_all] = rows[first]
    first_lines = stated[opens[session[stated]] == stated]
    begin[session[first_lines]] = numbers["offset"][first_lines]
    later = stated[opens[session[stated]] != stated]
    stop[session[later]], line[session[later]] = numbers["offset"][later], lines[later]
    return ReaderSessions(found[0], found[2], found[1], begin, stop, line), session
