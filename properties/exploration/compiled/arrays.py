"""The kinds of arrays that a native search is given."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.uint8]
States: TypeAlias = Any
"""Words of states, unsigned: an `npt.NDArray[np.uint64]`, whose elements are integers to native code."""
Narrow: TypeAlias = Any
"""Numbers of states and calls: an `npt.NDArray[np.int32]`, whose elements are integers to native code."""
