"""The files of the timer wheel, the timer log and their checkpoint (docs/rocketmq.md#timers)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.store.files import FARTHEST, TWENTY_DIGITS, LogFile, is_hole, read_exactly
from gapless.traces.sources.rocketmq.store.flush_times import TIMER_TIMES, timer_times
from gapless.traces.sources.rocketmq.store.names import TIMER_LOG, TIMER_WHEEL
from gapless.traces.sources.rocketmq.store.settings import is_on, number_set

SNAPSHOTS = "timerWheelSnapshotFlush"  # the setting with which the wheel is in files of its own
SNAPSHOT = re.compile(rf"{TIMER_WHEEL}\.(\d{{1,18}})", re.ASCII)
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
PRECISIONS = (1000, 500, 200, 100)  # ms, of which a wheel itself says which it has
AT_ONCE = 1 << 15  # units that are read at once
SAMPLED = 64  # of so many units, one says when it is due
Units = npt.NDArray[np.void]
Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class TimerFiles:
    """The files of a store's timer wheel.

    `read`: ms; earlier times are over · `flushed`: the end of the timer log on disk when the wheel was written ·
    `committed`: exclusive end of the messages that were written into the wheel, by their numbers · `why_not`: the
    reason if the wheel itself cannot be read, or an empty text
    """

    files: tuple[LogFile, ...]
    wheel: str
    read: int
    flushed: int
    committed: int
    why_not: str

    @property
    def start(self) -> int:
        """The begin of the timer log."""
        return self.files[0].base

    @property
    def wheel_name(self) -> str:
        """The file of the wheel, relative to the store."""
        return Path(self.wheel).name


def opened_timers(judged: StoreFindings) -> TimerFiles | None:
    """Opens the timer files of a store, once; None if nothing was ever scheduled."""
    store = judged.store
    return judged.open("timer_wheel", lambda: _timer_files(Path(store.path), store.settings))


def _timer_files(store: Path, settings: Mapping[str, str]) -> TimerFiles | None:
    """Returns the timer files of a store; None if nothing was ever scheduled."""
    folder = store / TIMER_LOG
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
    times = timer_times(store)
    if times is None:
        why = why or f"{TIMER_TIMES} is not there"
    read, flushed, committed = times or (0, 0, 0)
    return TimerFiles(tuple(found), str(wheel), read, flushed if known is None else known, committed, why)


def _wheel(store: Path, settings: Mapping[str, str]) -> tuple[Path, int | None, str]:
    """Returns the file of the wheel, its end in the timer log by its name, and the reason if none.

    With snapshots, the file `timerwheel` is not written any more. Source: docs/rocketmq.md#timer-snapshots.
    """
    found = {int(name[1]): path for path in store.glob(f"{TIMER_WHEEL}.*") if (name := SNAPSHOT.fullmatch(path.name))}
    if is_on(settings, SNAPSHOTS):
        # Of the newest unit, the slot may have been missed, and when the snapshot was taken is not known.
        newest = max(found, default=0)
        return (
            found.get(newest, store / TIMER_WHEEL),
            newest - UNIT.itemsize,
            "" if found else "no snapshot of it was taken",
        )
    return store / TIMER_WHEEL, None, f"there are snapshots of it, and {SNAPSHOTS} is not set" if found else ""


class TimerUnits(NamedTuple):
    """Units of the timer log: index, place, fields, and a flag for complete ones."""

    nth: Ints
    place: Ints
    before: Ints
    magic: Ints
    written: Ints
    delay: Ints
    message: Ints
    length: Ints
    whole: Truths


NO_UNITS = TimerUnits._make((*np.zeros((8, 0), np.int64), np.zeros(0, np.bool_)))


class UnitStretch(NamedTuple):
    """Units side by side in a file, `first` being which one of all; `low`, `high`: within these, messages are named."""

    file: LogFile
    at: int
    first: int
    many: int
    low: int
    high: int


class TimerLog:
    """The units of a timer log up to the last that is whole, read stretch by stretch: there may be very many.

    `sample`: when some of them are due, in ms · `last`: where the last one lies, or -1 · `cancels`: whether one of them
    cancels a message.
    """

    def __init__(self, files: TimerFiles) -> None:
        self.stretches: list[UnitStretch] = []
        self.cancels = False
        samples, end, ends_at = [np.zeros(0, np.int64)], 0, 0
        for stretch, units in _stretches(files):
            (there,) = np.nonzero(_are_whole(units))
            if len(there):
                end, ends_at = stretch.first + int(there[-1]) + 1, len(self.stretches) + 1
                self.cancels |= bool((units["magic"] & CANCELS).any())
                some = units[there[::SAMPLED]]
                samples.append(some["written"].astype(np.int64) + some["delay"])
            self.stretches.append(_bounded(stretch, units))
        del self.stretches[ends_at:]
        if self.stretches:
            last = self.stretches[-1]._replace(many=end - self.stretches[-1].first)
            self.stretches[-1] = _bounded(last, _units(last))
        self.count = end
        self.sample: Ints = np.concatenate(samples)
        self.last = int(_places(self.stretches[-1])[-1]) if self.stretches else -1

    def naming(self, low: int, high: int) -> TimerUnits:
        """The units that name a message from log position `low` on, before `high`, in their order."""
        parts = [_named(stretch, low, high) for stretch in self.stretches if stretch.low < high and stretch.high >= low]
        if len(parts) == 1:
            return parts[0]
        return TimerUnits._make(np.concatenate(column) for column in zip(NO_UNITS, *parts, strict=True))

    def precision(self, settings: Mapping[str, str], wheel: Units | None) -> int:
        """Returns the ms of a slot of the wheel: by the wheel itself, or by the settings."""
        found = len(PRECISIONS)
        for stretch in self.stretches if wheel is not None else ():
            units = _units(stretch)
            times = (units["written"] + units["delay"]).astype(np.int64)
            for n, candidate in enumerate(PRECISIONS[:found]):
                turns = times // candidate
                if wheel is not None and (wheel["time"][turns % SLOTS] == turns).any():
                    found = n
                    break
            if found == 0:
                break
        return PRECISIONS[found] if found < len(PRECISIONS) else number_set(settings, "timerPrecisionMs") or PRECISION


def _stretches(timers: TimerFiles) -> Iterator[tuple[UnitStretch, Units]]:
    """Yields consecutive units, some at a time, up to the end of each file."""
    first = 0
    for file in timers.files:
        for at in range(0, file.length // UNIT.itemsize, AT_ONCE):
            stretch = UnitStretch(file, at, first, min(AT_ONCE, file.length // UNIT.itemsize - at), 0, 0)
            units = _units(stretch)
            (blanks,) = np.nonzero(units["magic"].astype(np.int64) & 0xFFFFFFFF == BLANK)
            kept = int(blanks[0]) if len(blanks) else stretch.many
            if kept:
                yield stretch._replace(many=kept), units[:kept]
            first += kept
            if len(blanks):
                break


def _units(stretch: UnitStretch) -> Units:
    low, size = stretch.at * UNIT.itemsize, stretch.many * UNIT.itemsize
    data = np.zeros(size, np.uint8)
    if not is_hole(stretch.file, low, low + size):
        read_exactly(stretch.file, low, data.data)
    units: Units = data.view(UNIT)
    return units


def _are_whole(units: Units) -> Truths:
    whole: Truths = (units["size"] == UNIT.itemsize) & (units["magic"] | MARKS == MARKS)
    return whole


def _bounded(stretch: UnitStretch, units: Units) -> UnitStretch:
    message = units["message"].astype(np.int64)
    return stretch._replace(low=int(message.min()), high=int(message.max()))


def _places(stretch: UnitStretch) -> Ints:
    return stretch.file.base + (stretch.at + np.arange(stretch.many, dtype=np.int64)) * UNIT.itemsize


def _named(stretch: UnitStretch, low: int, high: int) -> TimerUnits:
    """The units of a stretch that name messages within bounds."""
    units, places = _units(stretch), _places(stretch)
    mine: Ints | slice = slice(None)
    if not low <= stretch.low <= stretch.high < high:
        message = units["message"].astype(np.int64)
        if (message[1:] >= message[:-1]).all():  # as a broker writes them: those of others are not copied
            mine = slice(*message.searchsorted((low, high)).tolist())
        else:
            (mine,) = np.nonzero((low <= message) & (message < high))
    units = units[mine]
    fields = (units[name].astype(np.int64) for name in TimerUnits._fields[2:-1])
    nth = stretch.first + np.arange(stretch.many)[mine]
    return TimerUnits._make((nth, places[mine], *fields, _are_whole(units)))


def wheel_of(timers: TimerFiles) -> Units:
    """All slots of the wheel."""
    return np.memmap(timers.wheel, TURN, "r")


def place_in_log(timers: TimerFiles, position: int) -> tuple[str, int]:
    """The file of a place in the timer log, and the offset in it."""
    base = max((file.base for file in timers.files if file.base <= position), default=timers.start)
    return f"{TIMER_LOG}/{base:020d}", position - base


def has_more(store: Path) -> bool:
    """True if the store has a RocksDB database with content, in which a broker of 5.5 may keep timers."""
    tables = (path for pattern in ("*.sst", "*.log") for path in (store / "rocksdbstore").glob(pattern))
    return any(path.stat().st_size > 0 for path in tables)
