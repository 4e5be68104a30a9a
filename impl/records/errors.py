"""Errors of a store, each with a name of its own: callers choose by type, people read the sentence."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


class StoreError(Exception):
    """Something about the store that its owner must know: which file, where, what was expected, what to do.

    `appended`: where a batch was cut off, the positions and the numbers of its messages that are in the log
    nevertheless: its first ones. None for an error of anything else.
    """

    appended: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None = None


class NotAStore(StoreError):  # noqa: N818 - it names a finding.
    """The folder holds something else, or a layout that this implementation does not open."""


class WrongFileSize(StoreError):  # noqa: N818 - as above.
    """A file has another length than the settings say."""


class Damaged(StoreError):  # noqa: N818 - as above.
    """Bytes that were safe are not what they were."""


class InUse(StoreError):  # noqa: N818 - as above.
    """Another writer, a broker perhaps, holds the store."""


class DiskFull(StoreError):  # noqa: N818 - as above.
    """There is no room for another file. What was written before is intact, and can be read."""


class Stopped(StoreError):  # noqa: N818 - as above.
    """The store takes no more steps: it was closed, or its disk failed and it can promise nothing any more."""


class Refused(StoreError):  # noqa: N818 - as above.
    """The step is not possible, and nothing has changed: a message too large, a number out of range."""


def tell_what_is_in(error: BaseException, positions: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> None:
    """Report to the sender of a batch which part of it is in the log."""
    if isinstance(error, StoreError):
        error.appended = positions, numbers
    error.add_note(f"the first {len(positions)} messages of the batch are in the log, and no others")
