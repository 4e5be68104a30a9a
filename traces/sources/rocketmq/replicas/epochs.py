"""The epoch files of two replicas under a controller: which master wrote which stretch of the log.

Source: docs/rocketmq.md#epochs.
"""

from __future__ import annotations

import re
import zlib
from pathlib import Path

from gapless.traces.problems import Unreadable, shown
from gapless.traces.sources.rocketmq.replicas.side import Side

FILE = "epochFileCheckpoint"
EPOCHS = re.compile(r"(\d{1,10})\n(\d{1,10})\n((?:\d{1,10}-\d{1,19}\n)*)")


def read_epochs(store: Path) -> dict[int, int] | None:
    """Reads the start of each epoch in the log; None without a file. Raises Unreadable."""
    path = store / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path}: cannot be read ({error})") from error
    found = EPOCHS.fullmatch(text)
    if found is None:
        raise Unreadable(f"{path}: expected a count, a CRC, and a line EPOCH-START for each epoch; copy the file again")
    lines = found[3].splitlines()
    crc = zlib.crc32(found[3].encode()) & 0x7FFFFFFF
    if int(found[1]) != len(lines):
        raise Unreadable(f"{path}: says that there are {found[1]} epochs, and has {len(lines)}; copy the file again")
    if int(found[2]) != crc:
        raise Unreadable(f"{path}: the CRC is {found[2]}, expected {crc}; copy the file again")
    return {int(epoch): int(start) for epoch, _, start in (line.partition("-") for line in lines)}


def compare_epochs(one: Side, other: Side) -> tuple[str, str, int | None]:
    """Compares the epoch files: a note, a reason for doubt, and the position from which logs may differ.

    Both texts are empty, and there is no position, if the files agree: all epochs of both are the same, or one has
    later ones that begin behind the other's log. A replica whose epochs fork from its master's drops its log behind
    the fork when it connects next, so that nothing is accused there. Raises Unreadable.
    """
    mine, theirs = (read_epochs(Path(side.store.path)) for side in (one, other))
    if mine is None and theirs is None:
        return "", "", None
    if mine is None or theirs is None:
        return f"only the {(other if mine is None else one).role} has a file {FILE}", "", None
    common = [epoch for epoch in mine.keys() & theirs.keys() if mine[epoch] == theirs[epoch]]
    if not common:
        return "no epoch is in both", f"{FILE}: no epoch of one starts where it does in the other", None
    last = max(common)
    ends = [_end(epochs, last, side.end) for epochs, side in ((mine, one), (theirs, other))]
    at = min(ends)
    later = [max(epochs) > last for epochs in (mine, theirs)]
    behind = [side for side, more in zip((one, other), later, strict=True) if not more]
    if all(later) or any(side.end > at for side in behind if any(later)):
        names = " and ".join(
            f"{side.role} {_next_epoch(epochs, last)}" for side, epochs in ((one, mine), (other, theirs))
        )
        note = f"epochs fork at {at:,}, where epoch {last} ends: {shown(names)}"
        return note, f"{note}; one of both drops what it has from there on when it connects next", at
    return f"epochs agree up to epoch {last}, which starts at {mine[last]:,}", "", None


def _end(epochs: dict[int, int], epoch: int, log_end: int) -> int:
    """Returns the end of an epoch: the begin of the next one, or the log's end."""
    return min([start for later, start in epochs.items() if later > epoch], default=log_end)


def _next_epoch(epochs: dict[int, int], last: int) -> str:
    later = sorted(epoch for epoch in epochs if epoch > last)
    return f"continues with epoch {later[0]} at {epochs[later[0]]:,}" if later else "knows no later one"
