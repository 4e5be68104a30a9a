"""The spool: a recording before it becomes events."""

from __future__ import annotations

import io
import mmap
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


class Spool:
    """Values of one type, one behind the other: in memory, or in a file of `folder`.

    The file has no name: it is gone when the process is, however that ends. `none`: an empty array of the type.
    """

    def __init__(self, none: npt.NDArray[Any], folder: Path | None) -> None:
        self.count = 0
        self._none = none
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0) if folder else io.BytesIO()  # noqa: SIM115 - `forget`

    def add(self, values: npt.NDArray[Any]) -> int:
        """Keep these too; returns how many are before them. Raises OSError."""
        done, content = 0, np.ascontiguousarray(values, self._none.dtype).view(np.uint8).reshape(-1)
        while done < len(content):
            done += self._file.write(content[done:].data)
        self.count += len(values)
        return self.count - len(values)

    def all(self) -> npt.NDArray[Any]:
        """All of them, to be read; those of a large file come from the disk when they are looked at. Raises OSError."""
        if not self.count:
            return self._none
        file = self._file
        content: Any = (
            file.getvalue() if isinstance(file, io.BytesIO) else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        )
        return np.frombuffer(content, self._none.dtype).reshape(-1, *self._none.shape[1:])

    def forget(self) -> None:
        """The file goes, and its room on the disk with the last view of it."""
        self._file.close()
