"""The message data that a broker of 5.4 or later keeps in RocksDB: halves, timers, and an index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.traces.sources.rocketmq.columns.bytes import Bytes, Ints, digests_between
from gapless.traces.sources.rocketmq.queues.queue_database import why_unreadable

FOLDER = "rocksdbstore"
HALVES, KEYS, TIMERS = "trans", "default", "timer"
"""The column families: of the table of halves, of that of keys, and of that of timers."""


def not_judged(store: Path) -> Iterator[str]:
    """Yields the reason why the database is not judged, if it cannot be read."""
    folder = store / FOLDER
    if (folder / "CURRENT").is_file() and (why := why_unreadable(folder, "halves, timers and the index may be")):
        yield f"{FOLDER}/ is not judged: {why}"


Pairs = list[tuple[bytes, bytes]]
HEAD, TEXT, TAIL, FIELDS = range(4)
_AT = 64  # @, which parts texts


class DatabaseRows(NamedTuple):
    """The rows of a column family, in the order of their keys, and its marks.

    `columns`: HEAD and TAIL, the first and the last eight bytes of a key as numbers; TEXT, the digest of all behind the
    first eight; and from FIELDS on those of the value · `marks`: numbers, by the keys that are no rows · `odd`: the
    first key and value that no broker writes, in hexadecimal digits.
    """

    columns: Ints
    marks: dict[bytes, int]
    odd: str


@dataclass(frozen=True)
class TableCodec:
    """The form of the rows of a column family.

    `shortest`: bytes of a row's key · `fields`: formats of the numbers in a value, a comma behind each · `marks`: keys
    that are no rows, of a number of eight bytes each · `between`: true if a text between two @ lies between the numbers
    of a key.
    """

    shortest: int
    fields: str
    marks: tuple[bytes, ...]
    between: bool = False

    def read(self, stretches: Iterable[Pairs]) -> DatabaseRows:
        """Reads stretches of keys and values."""
        kinds, marks, odd = np.dtype(self.fields), dict[bytes, int](), ""
        columns = [np.zeros((FIELDS + len(kinds.names or ()), 0), np.int64)]
        for pairs in stretches:
            keys, values = [key for key, _ in pairs], [value for _, value in pairs]
            data, ends = np.frombuffer(b"".join(keys), np.uint8), np.cumsum(_lengths(keys))
            begins = ends - _lengths(keys)
            are_rows = self._are_rows(keys, data, begins, ends) & (_lengths(values) == kinds.itemsize)
            for at in np.flatnonzero(~are_rows).tolist():
                key, value = pairs[at]
                if key in self.marks and len(value) == 8:
                    marks[key] = int.from_bytes(value, "big", signed=True)
                else:
                    odd = odd or f"{key.hex()}: {value.hex()}"
            begins, ends = begins[are_rows], ends[are_rows]
            fields = np.frombuffer(b"".join(compress(values, are_rows.tolist())), kinds)
            of_keys = _numbers(data, begins), digests_between(data, begins + 8, ends), _numbers(data, ends - 8)
            columns.append(np.stack([*of_keys, *(fields[name].astype(np.int64) for name in kinds.names or ())]))
        return DatabaseRows(np.concatenate(columns, axis=1), marks, odd)

    def _are_rows(self, keys: list[bytes], data: Bytes, begins: Ints, ends: Ints) -> npt.NDArray[np.bool_]:
        """Returns the mask of keys that a row may have."""
        found: npt.NDArray[np.bool_] = ends - begins >= self.shortest
        for at in np.flatnonzero(np.isin(ends - begins, [len(mark) for mark in self.marks])).tolist():
            found[at] &= keys[at] not in self.marks
        if self.between:
            found[found] = (data[begins[found] + 8] == _AT) & (data[ends[found] - 9] == _AT)
        return found


def _lengths(texts: list[bytes]) -> Ints:
    return np.fromiter(map(len, texts), np.int64, len(texts))


def _numbers(data: Bytes, places: Ints) -> Ints:
    """The numbers of eight bytes at some places."""
    if not len(places):
        return np.zeros(0, np.int64)
    windows = np.lib.stride_tricks.sliding_window_view(data, 8)[places]
    return np.ascontiguousarray(windows).view(">i8").reshape(-1).astype(np.int64)
