"""Bytes for native code that Python runs: an access outside of them, or from their end, fails."""

from typing import Any, NoReturn

import numpy as np
import pytest

from gapless.native import Native, policy
from gapless.traces.sources.rocketmq.columns import bytes as of_bytes


class BoundedBytes:
    """Bytes of a file. Machine code reads whatever lies beyond them, or ends the process; this says so."""

    def __init__(self, data: memoryview) -> None:
        self.data = data

    def __len__(self) -> int:
        """Return the number of bytes."""
        return len(self.data)

    def tobytes(self) -> bytes:
        """All of them."""
        return self.data.tobytes()

    def __getitem__(self, at: Any) -> Any:
        """One byte, or several; nothing is read where they end before they begin."""
        if isinstance(at, slice):
            return self.data[self._within(at)]
        if not 0 <= at < len(self.data):
            self._beyond(at)
        return self.data[int(at)]

    def __setitem__(self, at: Any, value: Any) -> None:
        """Likewise, where room is filled."""
        if isinstance(at, slice):
            self.data[self._within(at)] = value
            return
        if not 0 <= at < len(self.data):
            self._beyond(at)
        self.data[int(at)] = value

    def _within(self, at: slice) -> slice:
        begin, end = int(at.start), int(at.stop)
        if begin < end and not 0 <= begin < end <= len(self.data):
            self._beyond(f"{begin}:{end}")
        return slice(max(begin, 0), max(end, 0))

    def _beyond(self, at: Any) -> NoReturn:
        raise IndexError(f"byte {at} of {len(self.data)}")


def bound(patch: pytest.MonkeyPatch) -> None:
    """Let all native code be run by Python, on bytes that say where they end."""
    readable = policy.readable

    def bounded(value: Any) -> Any:
        found = readable(value) if isinstance(value, np.ndarray) else value
        if isinstance(value, tuple) and hasattr(value, "_make"):
            return value._make(map(bounded, value))
        return BoundedBytes(found) if isinstance(found, memoryview) else found

    patch.setattr(Native, "__call__", Native.by_python)
    patch.setattr(policy, "readable", bounded)
    whole: Any = of_bytes.readable
    patch.setattr(whole, "library", whole.python)
