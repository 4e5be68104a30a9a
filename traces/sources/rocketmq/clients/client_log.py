"""The client log: what producers asked of the broker, and what they were answered.

A store shows what the broker did; only its clients know what it promised. `traces/README.md` tells the form of the log
as an essay, `request_lines.py` tells it to the machine, and what is read are columns: one row for every message sent,
for every decision on a half, for every back-check received.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError
from pydantic_core import from_json

from gapless.traces.events.plain_lines import PlainLines
from gapless.traces.problems import NothingThere, Unreadable, shown
from gapless.traces.sources.rocketmq.clients.line_columns import (
    SCHEMA,
    ArrowRequests,
    RequestColumns,
    Requests,
    Truths,
    in_columns,
    keys_of,
    plain_block,
)
from gapless.traces.sources.rocketmq.clients.plain_requests import plain_requests
from gapless.traces.sources.rocketmq.clients.request_lines import (
    ADMIN,
    BATCH,
    CHECK,
    DECISIONS,
    END,
    HALF,
    LINE,
    NONE,
    OK,
    OPS,
    RESULTS,
    RESUME,
    SEND,
    UNDECIDED,
    resumed,
    row_of,
    what_is_wrong,
)
from gapless.traces.sources.rocketmq.clients.request_rows import Checks, Ends, Resumes, Rows, Sends
from gapless.traces.sources.rocketmq.store.bytes import Ints

BLOCK = 1 << 20  # bytes that are read at once: what is found in them stays in a processor's cache
NEWLINE = ord("\n")
LONGEST = 16 << 20  # bytes: a longer line is no request
SPARE, MORE = 1 << 10, 17 / 16  # rows of which there is room, whatever was read first, and times what is expected


@dataclass(frozen=True, eq=False)
class ClientLog:
    """A client log as columns. `witnessed`: those of `sends` as they lie, with a row of -1 behind the last.

    There is room behind the columns of `witnessed`.
    """

    sends: Sends
    witnessed: Ints
    ends: Ends
    checks: Checks
    resumes: Resumes
    topics: tuple[str, ...]
    complete: bool  # every message has its key: of any record can be told whether somebody sent it
    lines: int


def read(path: Path) -> ClientLog:
    """A client log as columns. Raises Unreadable, and NothingThere for an empty file."""
    topics: dict[str, int] = {}
    sends, ends, checks, resumes = every = _Growing(Sends, more=1), _Growing(Ends), _Growing(Checks), _Growing(Resumes)
    lines = done = 0
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            plain = PlainLines.pays(size)
            for block, count in _blocks(path, file):
                at_once = _at_once(block, lines, topics, count, plain=plain)
                done += len(block)
                for growing, found in zip(every, at_once or _by_line(path, block, lines, topics), strict=True):
                    growing.add(found, size / done)
                lines += count
    except OSError as error:
        raise Unreadable(f"{shown(path)}: cannot be read ({error.strerror or error})") from error
    if not lines:
        raise NothingThere(f"{shown(path)}: the client log is empty")
    witnessed = sends.rows
    all_sends = Sends(*witnessed[:-1])
    witnessed[-1] = -1
    return ClientLog(
        sends=all_sends,
        witnessed=witnessed,
        ends=Ends(*ends.rows),
        checks=Checks(*checks.rows),
        resumes=Resumes(*resumes.rows),
        topics=tuple(topics),
        complete=bool((all_sends.key != 0).all()),
        lines=lines,
    )


_Found = tuple[Sends, Ends, Checks, Resumes]


class _Growing:
    """Rows of one kind, one part behind the other. A part is let go once it is there: a processor's cache holds it.

    There is room behind them, and they lie in it: what nobody writes to takes no memory. `more`: columns behind those
    of the kind, for the caller to fill.
    """

    def __init__(self, kind: type[Rows], more: int = 0) -> None:
        self._names = [column.name for column in fields(kind)]
        self._room = np.empty((len(self._names) + more, 1), np.int64)
        self._count = 0

    def add(self, part: Rows, times: float) -> None:
        """Add a part; `times`: how many times as much there will be in the end as there is with it, or so."""
        low, high = self._count, self._count + len(part)
        if high >= self._room.shape[1]:
            room = np.empty((len(self._room), int(high * max(times, 1.5) * MORE) + SPARE), np.int64)
            room[:, :low] = self._room[:, :low]
            self._room = room
        for row, name in enumerate(self._names):
            self._room[row, low:high] = getattr(part, name)
        self._count = high

    @property
    def rows(self) -> Ints:
        """All of them."""
        return self._room[:, : self._count]


def _blocks(path: Path, file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """The file in whole lines, many at once, and how many. Raises Unreadable where a line has no end."""
    lines = 0
    while block := _block(file):
        count = int(np.count_nonzero(np.frombuffer(block, np.uint8) == NEWLINE))
        if not block.endswith(b"\n"):
            raise _unreadable(path, lines + count, _no_end(block.rpartition(b"\n")[2]))
        lines += count
        yield block, count


def _block(file: BinaryIO) -> bytes:
    """What comes next, up to the end of a line. Where that is is looked up first: what was read is not copied then."""
    if not file.seekable():
        block = file.read(BLOCK)
        return block if block.endswith(b"\n") else block + file.readline(LONGEST)
    begin = file.tell()
    file.seek(begin + BLOCK - 1)
    rest = file.readline(LONGEST)
    file.seek(begin)
    return file.read(BLOCK - 1 + len(rest))


def _no_end(line: bytes) -> str:
    if len(line) >= LONGEST:
        return f"longer than {LONGEST:,} bytes, expected one request"
    return "the last line is cut off, expected a newline at its end: remove it, or copy the log again"


# -- line by line, to say what is wrong ----------------------------------------------------------------------------


def _by_line(path: Path, block: bytes, before: int, topics: dict[str, int]) -> _Found:
    """The lines one by one, up to the first that is none of a client log. Raises Unreadable."""
    rows = []
    for at, line in enumerate(block.split(b"\n")[:-1], before):
        try:
            given = from_json(line, cache_strings="keys")
        except ValueError as error:
            why = str(error).replace("line 1 column", "column")
            raise _unreadable(path, at, f"not JSON ({why}), expected one request as an object") from error
        try:
            rows.append(row_of(LINE.validate_python(given), at + 1))
        except ValidationError as error:
            raise _unreadable(path, at, what_is_wrong(error, given)) from error
    return _columns(RequestColumns(ArrowRequests(pa.RecordBatch.from_pylist(rows, SCHEMA))), topics)


def _unreadable(path: Path, before: int, what: str) -> Unreadable:
    return Unreadable(
        f"{shown(path)}, line {before + 1}: {shown(what)} (traces/README.md says what a client log holds; "
        "without the log, the store can be judged alone)"
    )


# -- many lines at once --------------------------------------------------------------------------------------------


def _at_once(
    block: bytes, before: int, topics: dict[str, int], count: int | None = None, *, plain: bool = True
) -> _Found | None:
    """The lines as columns, or None where anything is unusual: `_by_line` finds out what."""
    read = plain_block(block, block.count(b"\n") if count is None else count) if plain else None
    found = None if read is None else plain_requests(read, before, topics)
    if found is not None:
        return found
    lines = in_columns(block, before, read)
    parts = None if lines is None else RequestColumns(lines)
    return _columns(parts, topics) if parts is not None and _sound(parts) else None


def _sound(parts: RequestColumns) -> bool:
    """Whether every row is what the models ask for: what they say of one line, for all of them at once."""
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
    """Whether each row names a version of a half."""
    placed = all(_within(rows, name, 2**62, required=True) for name in ("half", "phys"))
    return placed and not rows.given("places").any()


def _sound_admins(rows: Requests) -> bool:
    rows = _resuming(rows)
    return bool((rows.codes("result", RESULTS[:NONE]) >= 0).all()) and all(
        resumed(message) is not None for message in _message_ids(rows)
    )


def _within(rows: Requests, name: str, high: int, *, low: int = 0, required: bool = False) -> bool:
    """Whether the values of a column lie in `low:high`, and whether they are there at all, if required."""
    if required and not rows.given(name).all():
        return False
    values = rows.ints(name, low)
    return not len(values) or bool(low <= values.min() and values.max() < high)


def _columns(parts: RequestColumns, topics: dict[str, int]) -> _Found:
    """Sound rows, sorted out by what they tell of."""
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
    """What they name."""
    return list(pc.struct_field(rows.column("ext"), "msgId").to_pylist())
