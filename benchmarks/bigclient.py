"""The client log of a large store, written a batch of lines at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]

# Kinds of lines, and their columns, as in `bigstore`.
MESSAGE, HALF, PUT_BACK, FINAL, _PARKED, _OP, ROLLBACK = range(7)
TELLS, OF, QUEUE, LENGTH, CRC, NUMBER, POSITION, TIMES = range(8)
OPS = {MESSAGE: "send", HALF: "half"}
HEXADECIMAL = np.frombuffer(b"0123456789ABCDEF", np.uint8)


class Writer:
    """Writes lines for rows: a send, a half, a back-check, a decision each. All were answered, and well."""

    def __init__(self, file: BinaryIO, paths: Iterable[str], key_prefix: str) -> None:
        self.file = file
        self.paths = [path.split("/") for path in paths]
        self.prefix = np.frombuffer(key_prefix.encode(), np.uint8)

    def write(self, rows: Ints) -> None:
        """One line for each row, in their order."""
        sent = (rows[:, TELLS] == MESSAGE) | (rows[:, TELLS] == HALF)
        lines = pa.concat_arrays([self._sends(rows[sent]), self._rest(rows[~sent])])
        order = np.empty(len(rows), np.int64)
        order[np.concatenate([np.flatnonzero(sent), np.flatnonzero(~sent)])] = np.arange(len(rows))
        self.file.write("".join(lines.take(pa.array(order)).to_pylist()).encode())

    def _sends(self, rows: Ints) -> Any:
        heads = [
            f'{{"op":"{OPS[what]}","topic":"{topic}","queue":{queue},"uniq":"'
            for what in OPS
            for topic, queue in self.paths
        ]
        which = rows[:, TELLS] // HALF * len(self.paths) + rows[:, QUEUE]
        return _joined(
            pa.array(heads).take(pa.array(which)), self._keys(rows[:, OF]),
            '","len":', rows[:, LENGTH], ',"crc":', rows[:, CRC],
            ',"result":"ok","qoff":', rows[:, NUMBER], ',"phys":', rows[:, POSITION], "}\n",
        )  # fmt: skip

    def _rest(self, rows: Ints) -> Any:
        """Back-checks and decisions: of a version of a half, by its number and position."""
        asked = rows[:, TELLS] == PUT_BACK
        heads = np.where(asked, '{"op":"check","uniq":"', '{"op":"end","uniq":"')
        decision = np.where(rows[:, TELLS] == FINAL, "commit", "rollback")
        from_check = np.where(rows[:, TIMES] > 0, "true", "false")
        ends = _joined(',"decision":"', decision, '","from_check":', from_check, ',"result":"ok"}\n')
        checks = _joined(',"times":"', rows[:, TIMES], '"}\n')
        return _joined(
            heads, self._keys(rows[:, OF]), '","half":', rows[:, NUMBER], ',"phys":', rows[:, POSITION],
            pc.if_else(pa.array(asked), checks, ends),
        )  # fmt: skip

    def _keys(self, births: Ints) -> Any:
        """The keys of messages: sixteen digits behind the prefix."""
        digits = HEXADECIMAL[births[:, None] >> 4 * np.arange(15, -1, -1) & 15]
        letters = np.concatenate([np.broadcast_to(self.prefix, (len(births), len(self.prefix))), digits], axis=1)
        offsets = np.arange(len(births) + 1, dtype=np.int32) * letters.shape[1]
        return pa.StringArray.from_buffers(len(births), pa.py_buffer(offsets), pa.py_buffer(letters.tobytes()))


def _joined(*parts: Any) -> Any:
    """Texts and columns side by side, row by row."""
    return pc.binary_join_element_wise(*(_text(part) for part in parts), "")


def _text(part: Any) -> Any:
    return pc.cast(pa.array(part), pa.string()) if isinstance(part, np.ndarray) else part
