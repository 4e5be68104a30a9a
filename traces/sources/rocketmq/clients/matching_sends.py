"""Merges the records of a segment with the sends of a client log: both rise by log position."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.native import I64, INTS, INTS8, INTS32, TABLE, TupleKind, function, handed, native, record
from gapless.traces.sources.rocketmq.clients.requests.request_rows import AnsweredSends
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.log import scan

# Rows of what is known of each topic and queue: the topic by its index among those that clients name, and without its
# namespace; the queue; whether it delays, whether it is that of halves, whether clients must have sent what is in it.
OF_TOPIC, OF_TAIL, OF_QUEUE, DELAYS, OF_HALVES, KNOWN, SUBJECT_FACTS = range(7)


class SendColumns(NamedTuple):
    """Columns of `request_rows.AnsweredSends` for native code. A missing value is -1, a missing key 0."""

    line: Ints
    position: Ints
    key: Ints
    crc: Ints
    length: Ints
    topic: Ints
    queue: Ints
    half: Ints


def sent(answers: AnsweredSends) -> SendColumns:
    """Returns the columns of answers that kernels read."""
    return SendColumns(*(handed(getattr(answers, name)) for name in SendColumns._fields))


class Matches(NamedTuple):
    """The results of matching, each with room for all; `counts` has their numbers.

    `whose`: records that must have a sender, and `sent`: the answer there names this record · `placed`: answers that
    name a record, `there` its queue row, `same`: it is their message · `lost`: answers without a record.
    """

    whose: Ints
    sent: Ints
    placed: Ints
    there: Ints
    same: Ints
    lost: Ints
    counts: Ints  # of `whose`, `placed`, `lost`


@native(lambda places, *_: len(places), kinds=(INTS, TABLE.strided, INTS))
def find_rows(places: Ints, rows: Ints, row: Ints) -> None:
    """The first queue row of each record at `places`, or -1 where it is in no queue, into `row`."""
    k = 0
    for r in range(len(places)):
        while k < rows.shape[1] and rows[scan.PLACE, k] < places[r]:
            k += 1
        row[r] = k if k < rows.shape[1] and rows[scan.PLACE, k] == places[r] else -1


@native(lambda places, *_: len(places), kinds=(
    INTS, INTS, INTS, TABLE.strided, TABLE,
    record(SendColumns, INTS, INTS, INTS, INTS32, INTS32, INTS32, INTS32, INTS8),
    I64, I64, INTS, record(Matches, INTS, INTS, INTS, INTS, INTS, INTS, INTS)
))  # fmt: skip
def match_sends(
    places: Ints, row: Ints, subjects: Ints, keys: Ints, facts: Ints, sends: SendColumns, low: int, high: int,
    tails: Ints, found: Matches,
) -> None:  # fmt: skip
    """Go through records at `places`, and the answers that name places among theirs: `low:high` of `sends`.

    `row`: of the records, as `find_rows` gives it · `subjects`: of queue rows · `keys`: of the records, as
    `records.find_keys` gives them · `facts`: of subjects · `tails`: of the topics that clients name, as `OF_TAIL`.
    """
    s, whose, placed, lost = low, 0, 0, 0
    for r in range(len(places)):
        place = places[r]
        queued = row[r] >= 0
        subject = subjects[row[r]] if queued else 0
        while s < high and sends.position[s] < place:
            found.lost[lost] = s
            lost += 1
            s += 1
        known = False
        while s < high and sends.position[s] == place:
            key = sends.key[s]
            of_key = keys[0, r] == key or keys[3, r] == key
            known = known or (of_key and key != 0 and sends.line[s] > 0)
            if queued:  # flags that a client set itself keep a message out of all queues
                same = (of_key or key == 0) and _is_as_sent(sends, s, keys, r)
                found.placed[placed], found.there[placed] = s, row[r]
                found.same[placed] = same and _is_where_it_was_sent(sends, s, facts, subject, tails)
                placed += 1
            s += 1
        if queued and facts[KNOWN, subject]:
            found.whose[whose], found.sent[whose] = r, known
            whose += 1
    while s < high:
        found.lost[lost] = s
        lost += 1
        s += 1
    found.counts[0], found.counts[1], found.counts[2] = whose, placed, lost


@function(inline=True)
def _is_as_sent(sends: SendColumns, s: int, keys: Ints, r: int) -> bool:
    """True if a record has the body that was sent, as far as the client log has its checksum."""
    crc, length = sends.crc[s], sends.length[s]
    return bool((crc < 0 or keys[1, r] == crc) and (length < 0 or keys[2, r] == length))


@function(inline=True)
def _is_where_it_was_sent(sends: SendColumns, s: int, facts: Ints, subject: int, tails: Ints) -> bool:
    """True if a message is in the queue that it was sent to; while it is delayed, it is in no user's queue."""
    if facts[DELAYS, subject]:
        return True
    if sends.half[s] == 1:
        return bool(facts[OF_HALVES, subject])
    topic, queue = sends.topic[s], sends.queue[s]
    named = facts[OF_TOPIC, subject] == topic or (sends.line[s] == 0 and facts[OF_TAIL, subject] == tails[topic])
    return bool(named and (queue < 0 or facts[OF_QUEUE, subject] == queue))


class ReportEvents(NamedTuple):
    """Buffers for events of `queue`: one trace for each message, or for each report about one.

    `codes`: of the actions for a message, for the claim that a client sent it, and for an answer · `into`: the
    arguments of each action · `columns`: the columns of a queue row that give the first action's · `of`: the last
    report in each trace, as an index into the claims followed by the answers.
    """

    codes: Ints
    columns: Ints
    into: tuple[Ints, Ints, Ints]
    action: npt.NDArray[np.int8]
    args: Ints
    starts: Ints
    of: Ints


@native(lambda _rows, whose, there, *_: len(whose) + len(there), kinds=(
    TABLE.strided, INTS, TupleKind((INTS, INTS)), INTS, TupleKind((INTS, INTS, INTS)), I64, record(ReportEvents, INTS,
    INTS, TupleKind((INTS, INTS, INTS)), INTS8, TABLE, INTS, INTS)
))  # fmt: skip
def write_events(
    rows: Ints, whose: Ints, accounts: tuple[Ints, ...], there: Ints, answers: tuple[Ints, ...], apart: int,
    w: ReportEvents,
) -> int:  # fmt: skip
    """Writes the reports about queue rows as events, and returns the number of traces.

    `whose`, `there`: the rows that `accounts` and `answers` are about, rising. The reports about one row are one
    trace, which ends with a refusal, or, unless `apart` is 0, a trace each.
    """
    i, j, n, t, last = 0, 0, 0, 0, -1
    while i < len(whose) or j < len(there):
        answered = i == len(whose) or (j < len(there) and there[j] < whose[i])
        k = there[j] if answered else whose[i]
        if apart or k != last:
            w.starts[t] = n
            t += 1
            w.action[n] = w.codes[0]
            for column in range(len(w.columns)):
                w.args[w.into[0][column], n] = rows[w.columns[column], k]
            n += 1
        last = k
        if answered:
            w.action[n], w.of[t - 1] = w.codes[2], len(whose) + j
            for column in range(3):
                w.args[w.into[2][column], n] = answers[column][j]
            j += 1
        else:
            w.action[n], w.of[t - 1] = w.codes[1], i
            for column in range(2):
                w.args[w.into[1][column], n] = accounts[column][i]
            i += 1
        n += 1
    w.starts[t] = n
    return int(t)
