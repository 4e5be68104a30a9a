"""Reads the lines of a client log that are not plain into columns by kind; some may be no requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gapless.traces.events.plain_lines import PlainBlock
from gapless.traces.sources.rocketmq.clients.line_columns import (
    SCHEMA,
    ArrowRequests,
    RequestColumns,
    Requests,
    Truths,
    in_columns,
    keys_of,
)
from gapless.traces.sources.rocketmq.clients.request_lines import (
    ADMIN,
    BATCH,
    CHECK,
    DECISIONS,
    END,
    HALF,
    NONE,
    OK,
    OPS,
    RESULTS,
    RESUME,
    SEND,
    UNDECIDED,
    resumed,
)
from gapless.traces.sources.rocketmq.clients.request_rows import Checks, Ends, Found, Resumes, Sends
from gapless.traces.sources.rocketmq.store.bytes import Ints


def at_once(block: bytes, before: int, read: PlainBlock | None, topics: dict[str, int]) -> Found | None:
    """Reads the lines as columns, or returns None if anything is unusual."""
    lines = in_columns(block, before, read)
    parts = None if lines is None else RequestColumns(lines)
    return _columns(parts, topics) if parts is not None and _sound(parts) else None


def sorted_out(rows: Sequence[Mapping[str, Any]], topics: dict[str, int]) -> Found:
    """Returns lines that were read one by one as columns."""
    return _columns(RequestColumns(ArrowRequests(pa.RecordBatch.from_pylist(list(rows), SCHEMA))), topics)


def _sound(parts: RequestColumns) -> bool:
    """True if every row satisfies the models: what they require of one line, checked for all lines at once."""
    return bool((parts.op >= 0).all()) and all(
        not len(parts.of(*ops)) or test(parts.of(*ops))
        for test, ops in (
            (_sound_sends, (SEND, HALF, BATCH)),
            (_sound_singles, (SEND, HALF)),
            (_sound_batches, (BATCH,)),
            (_sound_ends, (END,)),
            (_sound_checks, (CHECK,)),
            (_sound_admins, (ADMIN,)),
        )
    )


def _sound_sends(rows: Requests) -> bool:
    topics, topic = rows.distinct("topic")
    result = rows.codes("result", RESULTS[:NONE])
    queue, number = rows.ints("queue", -2), rows.ints("qoff")
    return (
        "" not in topics
        and bool((topic >= 0).all())
        and bool((result >= 0).all())
        and bool(((queue >= -1) & (queue < 2**31)).all())
        and _within(rows, "qoff", 2**62)
        and not ((result == OK) & (number >= 0) & (queue < 0)).any()
    )


def _sound_singles(rows: Requests) -> bool:
    return (
        _within(rows, "phys", 2**62)
        and not rows.given("places").any()
        and _within(rows, "crc", 2**32)
        and _within(rows, "len", 2**31)
    )


def _sound_batches(rows: Requests) -> bool:
    count = rows.column("n")
    each = pc.list_flatten(rows.column("places"))
    return (
        _within(rows, "n", 2**31, low=1, required=True)
        and not rows.given("phys").any()
        and all(
            pc.all(pc.equal(pc.list_value_length(rows.column(name)), count)).as_py() is not False
            for name in ("uniqs", "places")
        )
        and each.null_count == 0
        and (not len(each) or 0 <= pc.min(each).as_py() <= pc.max(each).as_py() < 2**62)
    )


def _sound_ends(rows: Requests) -> bool:
    result, decision = rows.codes("result", RESULTS), rows.codes("decision", DECISIONS)
    return (
        _sound_versions(rows)
        and bool(((result >= 0) & (decision >= 0)).all())
        and not ((result == NONE) & (decision != UNDECIDED)).any()
    )


def _sound_checks(rows: Requests) -> bool:
    times = pc.match_substring_regex(rows.column("times"), "^[0-9]{1,18}$")
    return _sound_versions(rows) and pc.all(times).as_py() is not False


def _sound_versions(rows: Requests) -> bool:
    """True if each row names a version of a half."""
    placed = all(_within(rows, name, 2**62, required=True) for name in ("half", "phys"))
    return placed and not rows.given("places").any()


def _sound_admins(rows: Requests) -> bool:
    rows = _resuming(rows)
    return bool((rows.codes("result", RESULTS[:NONE]) >= 0).all()) and all(
        resumed(message) is not None for message in _message_ids(rows)
    )


def _within(rows: Requests, name: str, high: int, *, low: int = 0, required: bool = False) -> bool:
    """True if the values of a column lie in `low:high`, and are present if `required`."""
    if required and not rows.given(name).all():
        return False
    values = rows.ints(name, low)
    return not len(values) or bool(low <= values.min() and values.max() < high)


def _columns(parts: RequestColumns, topics: dict[str, int]) -> Found:
    """Sorts sound rows into columns by kind."""
    sends, ends, checks, admins = (parts.of(*ops) for ops in ((SEND, HALF, BATCH), (END,), (CHECK,), (ADMIN,)))
    return _sends(sends, topics), _ends(ends), _checks(checks), _resumes(admins)


def _sends(rows: Requests, topics: dict[str, int]) -> Sends:
    """A row for each message. In a batch, numbers follow one another from that of the first."""
    op = rows.codes("op", OPS)
    batch = op == BATCH
    named, placed = rows.given("uniqs") & batch, rows.given("places")
    many = np.where(named | placed, rows.ints("n", 1), 1)
    row: Ints | slice = slice(None)
    later: Ints | int = 0  # which message of its batch one is
    if (named | placed).any():
        row = np.repeat(np.arange(len(rows)), many)
        later = np.arange(len(row)) - (np.cumsum(many) - many)[row]
    key = np.where(batch, 0, rows.keys("uniq"))[row]
    position = rows.ints("phys")[row]
    if named.any():
        key[named[row]] = keys_of(_each(rows, "uniqs", named))
    if placed.any():
        position[placed[row]] = _each(rows, "places", placed).to_numpy(zero_copy_only=False)
    result = rows.codes("result", RESULTS)
    first, answered = rows.ints("qoff"), result == OK
    crc = np.where(batch, -1, rows.ints("crc"))
    return Sends(
        line=rows.ints("line")[row],
        position=np.where(answered[row], position, -1),
        number=np.where((answered & (first >= 0))[row], first[row] + later, -1),
        count=np.where(batch & ~named & ~placed, rows.ints("n", 1), 1)[row],
        key=key,
        crc=np.where(crc >= 0, crc & 0x7FFFFFFF, -1)[row],  # a broker drops the top bit
        length=np.where(batch, -1, rows.ints("len"))[row],
        topic=_indexes(rows, "topic", topics)[row],
        queue=rows.ints("queue")[row],
        half=(op == HALF).astype(np.int64)[row],
        result=result[row],
    )


def _each(rows: Requests, name: str, having: Truths) -> pa.Array[Any]:
    """The values of all lists that a column of lists has in certain rows."""
    return pc.list_flatten(rows.column(name).filter(pa.array(having)))


def _indexes(rows: Requests, name: str, names: dict[str, int]) -> Ints:
    """The index of every text of a column in `names`, to which new ones are added."""
    texts, index = rows.distinct(name)
    for text in texts:
        names.setdefault(text, len(names))
    return np.array([*(names[text] for text in texts), -1], np.int64)[index]


def _ends(rows: Requests) -> Ends:
    return Ends(
        line=rows.ints("line"),
        key=rows.keys("uniq"),
        number=rows.ints("half"),
        position=rows.ints("phys"),
        decision=rows.codes("decision", DECISIONS),
        result=rows.codes("result", RESULTS),
        from_check=rows.ints("from_check", 0),
    )


def _checks(rows: Requests) -> Checks:
    return Checks(
        line=rows.ints("line"),
        key=rows.keys("uniq"),
        number=rows.ints("half"),
        position=rows.ints("phys"),
        times=rows.column("times").cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False),
    )


def _resumes(admins: Requests) -> Resumes:
    rows = _resuming(admins)
    return Resumes(
        line=rows.ints("line"),
        position=np.array([resumed(message) for message in _message_ids(rows)], np.int64),
        result=rows.codes("result", RESULTS),
    )


def _resuming(admins: Requests) -> Requests:
    return admins.some(admins.ints("request") == RESUME)


def _message_ids(rows: Requests) -> list[str | None]:
    """The message ids that the rows name."""
    return list(pc.struct_field(rows.column("ext"), "msgId").to_pylist())
