"""The client log: what producers asked of the broker, and what they were answered.

A store shows what the broker did; only its clients know what it promised. `traces/README.md` tells the form of the log
as an essay, `request_lines.py` tells it to the machine, and what is read are columns: one row for every message sent,
for every decision on a half, for every back-check received.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError
from pydantic_core import from_json

from gapless.traces.events.coded import text_codes
from gapless.traces.events.plain_lines import PlainLines
from gapless.traces.problems import NothingThere, Unreadable, shown
from gapless.traces.sources.rocketmq.clients.line_columns import SCHEMA, RequestColumns, Requests, Truths, in_columns
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
from gapless.traces.sources.rocketmq.store.bytes import Ints, digests

BLOCK = 4 << 20  # bytes that are read at once
LONGEST = 16 << 20  # bytes: a longer line is no request


@dataclass(frozen=True, eq=False)
class Rows:
    """Columns of equal length: one row for each thing of a kind that the log tells of, in its order."""

    line: Ints  # where it stands, from 1

    def __len__(self) -> int:
        return len(self.line)


@dataclass(frozen=True, eq=False)
class Sends(Rows):
    """What was sent: a row for each message, or one for a whole batch that does not name its messages.

    `position` and `number` are -1 where no answer gave a place. A half is answered with its place in the half topic;
    `topic` and `queue` are those that it is meant for.
    """

    position: Ints
    number: Ints
    count: Ints  # messages in this row
    key: Ints  # digest of the UNIQ_KEY; 0 where the log does not say it
    crc: Ints  # of the body, as the broker keeps it; -1 where the log does not say it
    length: Ints  # bytes of the body; -1 likewise
    topic: Ints  # index in `ClientLog.topics`
    queue: Ints  # -1 where the choice was the broker's, and no answer told it
    half: Ints  # 1 for a half, 0 for a message
    result: Ints  # OK, FAIL, UNKNOWN


@dataclass(frozen=True, eq=False)
class Ends(Rows):
    """What was decided, or left open, about which version of a half."""

    key: Ints
    number: Ints  # in the half topic
    position: Ints
    decision: Ints  # COMMIT, ROLL_BACK, UNDECIDED
    result: Ints  # OK, FAIL, UNKNOWN, NONE
    from_check: Ints  # 1 for the answer to a back-check


@dataclass(frozen=True, eq=False)
class Checks(Rows):
    """Back-checks that came in, and which version of a half each names."""

    key: Ints
    number: Ints
    position: Ints
    times: Ints  # the half's counter; -1 where the log does not say it


@dataclass(frozen=True, eq=False)
class Resumes(Rows):
    """Requests to put a half up for checks again, and the record that each names."""

    position: Ints
    result: Ints


@dataclass(frozen=True, eq=False)
class ClientLog:
    """A client log as columns."""

    sends: Sends
    ends: Ends
    checks: Checks
    resumes: Resumes
    topics: tuple[str, ...]
    complete: bool  # every message has its key: of any record can be told whether somebody sent it
    lines: int


def read(path: Path) -> ClientLog:
    """A client log as columns. Raises Unreadable, and NothingThere for an empty file."""
    topics: dict[str, int] = {}
    found: list[_Found] = []
    lines = 0
    try:
        with path.open("rb") as file:
            plain = PlainLines.pays(path.stat().st_size)
            for block, count in _blocks(path, file):
                at_once = _at_once(block, lines, topics, count, plain=plain)
                found.append(_by_line(path, block, lines, topics) if at_once is None else at_once)
                lines += count
    except OSError as error:
        raise Unreadable(f"{shown(path)}: cannot be read ({error.strerror or error})") from error
    if not lines:
        raise NothingThere(f"{shown(path)}: the client log is empty")
    sends, ends, checks, resumes = zip(*found, strict=True)
    all_sends = _joined(Sends, sends)
    return ClientLog(
        sends=all_sends,
        ends=_joined(Ends, ends),
        checks=_joined(Checks, checks),
        resumes=_joined(Resumes, resumes),
        topics=tuple(topics),
        complete=bool((all_sends.key != 0).all()),
        lines=lines,
    )


_Found = tuple[Sends, Ends, Checks, Resumes]
_Kind = TypeVar("_Kind", bound=Rows)


def _joined(kind: type[_Kind], parts: tuple[_Kind, ...]) -> _Kind:
    """Rows of one kind, one part behind the other."""
    return kind(
        **{column.name: np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(kind)}
    )


def _blocks(path: Path, file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """The file in whole lines, many at once, and how many. Raises Unreadable where a line has no end."""
    lines = 0
    while block := file.read(BLOCK):
        if not block.endswith(b"\n"):
            block += file.readline(LONGEST)
        count = block.count(b"\n")
        if not block.endswith(b"\n"):
            raise _unreadable(path, lines + count, _no_end(block.rpartition(b"\n")[2]))
        lines += count
        yield block, count


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
    return _columns(RequestColumns(pa.RecordBatch.from_pylist(rows, SCHEMA)), topics)


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
    batch = in_columns(block, block.count(b"\n") if count is None else count, before, plain=plain)
    parts = None if batch is None else RequestColumns(batch)
    return _columns(parts, topics) if parts is not None and _sound(parts) else None


def _sound(parts: RequestColumns) -> bool:
    """Whether every row is what the models ask for: what they say of one line, for all of them at once."""
    return bool((parts.op >= 0).all()) and all(
        test(parts.of(*ops))
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
    topic = rows.column("topic")
    result = text_codes(rows.column("result"), RESULTS[:NONE])
    queue, number = _ints(rows, "queue", -2), _ints(rows, "qoff")
    return (
        not topic.null_count
        and "" not in topic.unique().to_pylist()
        and bool((result >= 0).all())
        and bool(((queue >= -1) & (queue < 2**31)).all())
        and _within(rows, "qoff", 2**62)
        and not ((result == OK) & (number >= 0) & (queue < 0)).any()
    )


def _sound_singles(rows: Requests) -> bool:
    return (
        _within(rows, "phys", 2**62)
        and rows.column("places").null_count == len(rows)
        and _within(rows, "crc", 2**32)
        and _within(rows, "len", 2**31)
    )


def _sound_batches(rows: Requests) -> bool:
    count = rows.column("n")
    each = pc.list_flatten(rows.column("places"))
    return (
        _within(rows, "n", 2**31, low=1, required=True)
        and rows.column("phys").null_count == len(rows)
        and all(
            pc.all(pc.equal(pc.list_value_length(rows.column(name)), count)).as_py() is not False
            for name in ("uniqs", "places")
        )
        and each.null_count == 0
        and _between(each, 0, 2**62)
    )


def _sound_ends(rows: Requests) -> bool:
    result, decision = text_codes(rows.column("result"), RESULTS), text_codes(rows.column("decision"), DECISIONS)
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
    return all(_within(rows, name, 2**62, required=True) for name in ("half", "phys")) and rows.column(
        "places"
    ).null_count == len(rows)


def _sound_admins(rows: Requests) -> bool:
    rows = _resuming(rows)
    return bool((text_codes(rows.column("result"), RESULTS[:NONE]) >= 0).all()) and all(
        resumed(message) is not None for message in _message_ids(rows)
    )


def _within(rows: Requests, name: str, high: int, *, low: int = 0, required: bool = False) -> bool:
    """Whether the values of a column lie in `low:high`, and whether they are there at all, if required."""
    column = rows.column(name)
    return not (required and column.null_count) and _between(column, low, high)


def _between(column: pa.Array[Any], low: int, high: int) -> bool:
    values = column.drop_null().to_numpy(zero_copy_only=False)
    return not len(values) or bool(low <= values.min() and values.max() < high)


def _columns(parts: RequestColumns, topics: dict[str, int]) -> _Found:
    """Sound rows, sorted out by what they tell of."""
    sends, ends, checks, admins = (parts.of(*ops) for ops in ((SEND, HALF, BATCH), (END,), (CHECK,), (ADMIN,)))
    return _sends(sends, topics), _ends(ends), _checks(checks), _resumes(admins)


def _sends(rows: Requests, topics: dict[str, int]) -> Sends:
    """A row for each message. In a batch, numbers follow one another from that of the first."""
    op = text_codes(rows.column("op"), OPS)
    batch = op == BATCH
    named, placed = _given(rows, "uniqs") & batch, _given(rows, "places")
    many = np.where(named | placed, _ints(rows, "n", 1), 1)
    row = np.repeat(np.arange(len(rows)), many)
    key = np.where(batch, 0, _keys(rows.column("uniq")))[row]
    key[named[row]] = _keys(_each(rows, "uniqs", named))
    position = _ints(rows, "phys")[row]
    position[placed[row]] = _each(rows, "places", placed).to_numpy(zero_copy_only=False)
    result = text_codes(rows.column("result"), RESULTS).astype(np.int64)
    first, answered = _ints(rows, "qoff"), result == OK
    crc = np.where(batch, -1, _ints(rows, "crc"))
    return Sends(
        line=_ints(rows, "line")[row],
        position=np.where(answered[row], position, -1),
        number=np.where(
            (answered & (first >= 0))[row], (first - np.cumsum(many) + many)[row] + np.arange(len(row)), -1
        ),
        count=np.where(batch & ~named & ~placed, _ints(rows, "n", 1), 1)[row],
        key=key,
        crc=np.where(crc >= 0, crc & 0x7FFFFFFF, -1)[row],  # a broker drops the top bit
        length=np.where(batch, -1, _ints(rows, "len"))[row],
        topic=_indexes(rows.column("topic"), topics)[row],
        queue=_ints(rows, "queue")[row],
        half=(op == HALF).astype(np.int64)[row],
        result=result[row],
    )


def _each(rows: Requests, name: str, having: Truths) -> pa.Array[Any]:
    """The values of all lists that a column of lists has in certain rows."""
    return pc.list_flatten(rows.column(name).filter(pa.array(having)))


def _indexes(column: pa.Array[Any], names: dict[str, int]) -> Ints:
    """The index of every value in `names`, to which new ones are added."""
    new = [str(name) for name in column.unique().to_pylist()]
    for name in new:
        names.setdefault(name, len(names))
    index = np.array([names[name] for name in new], np.int64)
    return index[text_codes(column, new)]


def _ends(rows: Requests) -> Ends:
    return Ends(
        line=_ints(rows, "line"),
        key=_keys(rows.column("uniq")),
        number=_ints(rows, "half"),
        position=_ints(rows, "phys"),
        decision=text_codes(rows.column("decision"), DECISIONS).astype(np.int64),
        result=text_codes(rows.column("result"), RESULTS).astype(np.int64),
        from_check=_filled(rows.column("from_check"), value=False).astype(np.int64),
    )


def _checks(rows: Requests) -> Checks:
    return Checks(
        line=_ints(rows, "line"),
        key=_keys(rows.column("uniq")),
        number=_ints(rows, "half"),
        position=_ints(rows, "phys"),
        times=_filled(rows.column("times").cast(pa.int64()), value=-1),
    )


def _resumes(admins: Requests) -> Resumes:
    rows = _resuming(admins)
    return Resumes(
        line=_ints(rows, "line"),
        position=np.array([resumed(message) for message in _message_ids(rows)], np.int64),
        result=text_codes(rows.column("result"), RESULTS).astype(np.int64),
    )


def _resuming(admins: Requests) -> Requests:
    return admins.filter(_ints(admins, "request") == RESUME)


def _message_ids(rows: Requests) -> list[str | None]:
    """What they name."""
    return list(pc.struct_field(rows.column("ext"), "msgId").to_pylist())


def _given(rows: Requests, name: str) -> Truths:
    return rows.column(name).is_valid().to_numpy(zero_copy_only=False)


def _ints(rows: Requests, name: str, missing: int = -1) -> Ints:
    """A column of integers, `missing` where it says nothing."""
    return _filled(rows.column(name), value=missing)


def _filled(column: pa.Array[Any], *, value: Any) -> npt.NDArray[Any]:
    filled: npt.NDArray[Any] = column.fill_null(value).to_numpy(zero_copy_only=False)
    return filled


def _keys(column: pa.Array[Any]) -> Ints:
    """The digest of every text; 0 where there is none."""
    texts = column.fill_null("")
    _valid, ends, text = texts.buffers()
    if not len(texts) or ends is None or text is None:
        return np.zeros(len(texts), np.int64)
    offsets = np.frombuffer(memoryview(ends), np.int32)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(memoryview(text), np.uint8)
    data.flags.writeable = False  # kernels are compiled once for what may be written, and once more for what may not
    found: Ints = digests(data, offsets.astype(np.int64))
    return found
