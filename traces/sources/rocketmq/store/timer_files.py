"""The timer wheel, the timer log and their checkpoint, as they lie in a store (docs/rocketmq.md#timers)."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gapless.traces.sources.rocketmq.store.bytes import Ints
from gapless.traces.sources.rocketmq.store.files import FARTHEST, TWENTY_DIGITS, LogFile, read_exactly
from gapless.traces.sources.rocketmq.store.settings import is_on, number_set

LOG, WHEEL, CHECKPOINT = "timerlog", "timerwheel", "config/timercheck"
SNAPSHOTS = "timerWheelSnapshotFlush"  # the setting with which the wheel is in files of its own
SNAPSHOT = re.compile(rf"{WHEEL}\.(\d{{1,18}})", re.ASCII)
UNIT = np.dtype(
    [
        ("size", ">i4"), ("before", ">i8"), ("magic", ">i4"), ("written", ">i8"), ("delay", ">i4"),
        ("message", ">i8"), ("length", ">i4"), ("topic", ">i4"), ("reserved", ">i8"),
    ]
)  # fmt: skip
TURN = np.dtype([("time", ">i8"), ("first", ">i8"), ("last", ">i8"), ("count", ">i4"), ("magic", ">i4")])
SLOTS = 2 * 7 * 24 * 3600  # of the wheel, whatever its precision
ROLLED, CANCELS = 2, 4  # bits of a unit's magic
MARKS = 15  # all of them
BLANK = (0xBBCCDDEE ^ (1880681586 + 8)) & 0xFFFFFFFF  # magic of what fills the end of a file
PRECISION = 1000  # ms, unless it is set
Units = npt.NDArray[np.void]


@dataclass(frozen=True)
class TimerFiles:
    """What a store has of a timer wheel.

    `read`: ms; the times below it are over · `flushed`: up to there the timer log was on disk before the wheel was
    written · `committed`: exclusive end of the messages that were written into the wheel, by their numbers · `why_not`:
    why the wheel itself cannot be read, or nothing
    """

    files: tuple[LogFile, ...]
    wheel: str
    read: int
    flushed: int
    committed: int
    why_not: str

    @property
    def start(self) -> int:
        """Where the timer log begins."""
        return self.files[0].base

    @property
    def wheel_name(self) -> str:
        """The file of the wheel, relative to the store."""
        return Path(self.wheel).name


def timer_files(store: Path, settings: Mapping[str, str]) -> TimerFiles | None:
    """The timer log of a store and what belongs to it; None where nothing was ever scheduled."""
    folder, checkpoint = store / LOG, store / CHECKPOINT
    if not folder.is_dir():
        return None
    found = [
        LogFile(str(path), int(path.name), path.stat().st_size)
        for path in sorted(folder.iterdir())
        if TWENTY_DIGITS.fullmatch(path.name) and int(path.name) < FARTHEST and path.stat().st_size > 0
    ]
    if not found:
        return None
    wheel, known, why = _wheel(store, settings)
    if not wheel.is_file():
        why = why or "it is not there"
    elif wheel.stat().st_size != SLOTS * TURN.itemsize:
        why = why or f"it is {wheel.stat().st_size:,} bytes long, expected {SLOTS * TURN.itemsize:,}"
    read = flushed = committed = 0
    if checkpoint.is_file() and checkpoint.stat().st_size >= 24:
        with checkpoint.open("rb") as file:
            read, flushed, committed = struct.unpack(">3q", file.read(24))
    else:
        why = why or f"{CHECKPOINT} is not there"
    return TimerFiles(tuple(found), str(wheel), read, flushed if known is None else known, committed, why)


def _wheel(store: Path, settings: Mapping[str, str]) -> tuple[Path, int | None, str]:
    """The file of the wheel; up to which place of the timer log it is known to go, if its name says so; why it is none.

    With snapshots, the file `timerwheel` is not written any more. Source: docs/rocketmq.md#timer-snapshots.
    """
    found = {int(name[1]): path for path in store.glob(f"{WHEEL}.*") if (name := SNAPSHOT.fullmatch(path.name))}
    if is_on(settings, SNAPSHOTS):
        # Of the newest unit, the slot may have been missed, and when the snapshot was taken is not known.
        newest = max(found, default=0)
        return found.get(newest, store / WHEEL), newest - UNIT.itemsize, "" if found else "no snapshot of it was taken"
    return store / WHEEL, None, f"there are snapshots of it, and {SNAPSHOTS} is not set" if found else ""


def units_of_log(timers: TimerFiles) -> tuple[Units, Ints, npt.NDArray[np.bool_]]:
    """All units of the timer log, up to the last that is whole; where each lies, and whether it is whole."""
    parts, places = [], []
    for file in timers.files:
        data = np.zeros(file.length // UNIT.itemsize * UNIT.itemsize, np.uint8)
        read_exactly(file, 0, data.data)
        units = data.view(UNIT)
        (blanks,) = np.nonzero(units["magic"].astype(np.int64) & 0xFFFFFFFF == BLANK)
        kept = int(blanks[0]) if len(blanks) else len(units)
        parts.append(units[:kept])
        places.append(file.base + np.arange(kept, dtype=np.int64) * UNIT.itemsize)
    units, at = np.concatenate(parts), np.concatenate(places)
    whole = (units["size"] == UNIT.itemsize) & (units["magic"] | MARKS == MARKS)
    (there,) = np.nonzero(whole)
    end = int(there[-1]) + 1 if len(there) else 0
    return units[:end], at[:end], whole[:end]


def wheel_of(timers: TimerFiles) -> Units:
    """All slots of the wheel."""
    return np.memmap(timers.wheel, TURN, "r")


def precision_of(settings: Mapping[str, str], units: Units, wheel: Units | None) -> int:
    """Ms that a slot of the wheel stands for: as the wheel itself says, or as it is set."""
    times = (units["written"] + units["delay"]).astype(np.int64)
    for candidate in (1000, 500, 200, 100):
        turns = times // candidate
        if wheel is not None and len(turns) and (wheel["time"][turns % SLOTS] == turns).any():
            return candidate
    return number_set(settings, "timerPrecisionMs") or PRECISION


def place_in_log(timers: TimerFiles, position: int) -> tuple[str, int]:
    """The file of a place in the timer log, and the offset in it."""
    base = max((file.base for file in timers.files if file.base <= position), default=timers.start)
    return f"{LOG}/{base:020d}", position - base


def has_more(store: Path) -> bool:
    """Whether the store has a RocksDB database with something in it, where a broker of 5.5 may keep timers."""
    tables = (path for pattern in ("*.sst", "*.log") for path in (store / "rocksdbstore").glob(pattern))
    return any(path.stat().st_size > 0 for path in tables)
