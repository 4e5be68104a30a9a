"""The cells that are tried, those of public reports first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from tests.interop.layouts import COMPACTED
from tests.interop.starts.bases import BASES, ENDINGS, KILLED, STOPPED, WITH_WHEEL
from tests.interop.starts.cells import ABSENT, AS_IT_IS, BROKEN, SOUND, Cell
from tests.interop.starts.damage import SETTINGS

TABLES = (
    "config/topics.json",
    "config/subscriptionGroup.json",
    "config/delayOffset.json",
    "config/consumerOffset.json",
    "config/consumerFilter.json",
)
NEWER_TABLES = (
    "config/timermetrics",
    "config/consumerOrderInfo.json",
    "config/topicQueueMapping.json",
    "config/transactionMetrics",
    "config/messageRequestMode.json",
)
"""Tables of 5.0 and later; a store need not have the third and the last."""
STATES = (
    ("missing", ABSENT), ("foreign", BROKEN), ("empty", BROKEN), ("missing", BROKEN), ("nul", SOUND),
    ("truncated", ABSENT), ("empty", ABSENT), ("nul", ABSENT), ("empty", SOUND), ("truncated", BROKEN),
    ("foreign", ABSENT), ("missing", SOUND), ("foreign", SOUND), ("nul", BROKEN), ("truncated", SOUND),
)  # fmt: skip
"""Damage to a table, and the state of its backup."""
OFTEN_ABSENT = ("config/topicQueueMapping.json", "config/messageRequestMode.json")
SIZES = (
    "mappedFileSizeCommitLog=131072", "mappedFileSizeCommitLog=32768", "mappedFileSizeConsumeQueue=4000",
    "mappedFileSizeConsumeQueue=1000",
)  # fmt: skip
KINDS_OF_FILES = {
    "LAST": ("missing", "empty", "nul", "truncated", "extended", "foreign"),
    "FIRST": ("missing", "empty", "truncated", "nul"),
    "MIDDLE": ("missing", "empty", "truncated"),
}
LOG, QUEUE = "commitlog", "consumequeue/orders/0"


def cells(line: str) -> Iterator[Cell]:
    """All cells of a line, the most urgent first."""
    found = dict.fromkeys(_reported(line))
    for ending in ENDINGS:
        for parts in PARTS:
            of_ending = ([cell for cell in part(line) if cell.ending == ending] for part in parts)
            found |= dict.fromkeys(cell for cells in zip_longest(*of_ending) for cell in cells if cell)
    yield from found


def _both(line: str, file: str, *damages: str, backup: str = AS_IT_IS, base: str = "files") -> Iterator[Cell]:
    for kind in damages:
        for ending in ENDINGS:
            yield Cell(line, base, ending, file, kind, backup)


def _reported(line: str) -> Iterator[Cell]:
    """The cells that issue and reports name."""
    yield from _both(line, LOG, "stray notes.txt", "stray-folder old")
    yield from _both(line, QUEUE, "stray notes.txt", "stray .nfs000000001", "stray-folder old")
    for file in TABLES[:3]:
        yield from _both(line, file, "nul", backup=BROKEN)
    if line >= WITH_WHEEL:
        yield from _both(line, "config/timermetrics", "nul", backup=BROKEN)
        yield from _both(line, "timerwheel", "truncated")
    for size in SIZES:
        yield from _both(line, SETTINGS, size)
    yield from _both(line, QUEUE, "zeros-ahead")
    yield from _both(line, "consumequeue/orders/1", "zeros-ahead")


def _log(line: str) -> Iterator[Cell]:
    yield from _both(
        line,
        LOG,
        "stray .nfs000000001",
        "stray-empty notes.txt",
        "zeros-ahead",
        "empty-ahead",
        "stray-empty .nfs000000001",
        "stray-empty zzz",
    )
    for which in ("LAST", "FIRST", "MIDDLE"):
        yield from _both(line, f"{LOG}/{which}", *KINDS_OF_FILES[which])
    yield from _both(line, LOG, "missing", "empty")
    yield from _both(line, f"{LOG}/LAST", "folder")


def _queues(line: str) -> Iterator[Cell]:
    yield from _both(
        line, QUEUE, "empty-ahead", "stray-empty notes.txt", "missing", "empty", "stray-empty .nfs000000001"
    )
    for which in ("LAST", "FIRST", "MIDDLE"):
        yield from _both(line, f"{QUEUE}/{which}", *KINDS_OF_FILES[which])
    yield from _both(line, "consumequeue/orders", "stray notes.txt", "stray-folder old", "missing", "stray-folder 7")
    yield from _both(line, "consumequeue", "stray notes.txt", "stray-folder unknown", "missing")


def _tables(line: str) -> Iterator[Cell]:
    for kind, backup in STATES:
        for file in TABLES:
            yield Cell(line, "files", STOPPED, file, kind, backup)


def _newer_tables(line: str) -> Iterator[Cell]:
    for kind, backup in STATES if line >= WITH_WHEEL else ():
        for file in NEWER_TABLES:
            if not (file in OFTEN_ABSENT and (kind == "truncated" or backup == SOUND)):
                yield Cell(line, "files", STOPPED, file, kind, backup)


def _tables_after_a_kill(line: str) -> Iterator[Cell]:
    for file in [*TABLES, *(NEWER_TABLES if line >= WITH_WHEEL else ())]:
        yield Cell(line, "files", KILLED, file, "missing", ABSENT)
        yield Cell(line, "files", KILLED, file, "foreign", BROKEN)


def _wheel(line: str) -> Iterator[Cell]:
    if line < WITH_WHEEL:
        return
    yield from _both(line, "timerwheel", "missing", "empty", "nul", "extended", "foreign")
    yield from _both(
        line,
        "timerlog",
        "stray notes.txt",
        "stray .nfs000000001",
        "stray-folder old",
        "missing",
        "empty",
        "zeros-ahead",
        "empty-ahead",
    )
    for which in ("LAST", "FIRST"):
        yield from _both(line, f"timerlog/{which}", "missing", "empty", "nul", "truncated", "extended", "foreign")
    yield from _both(line, "config/timercheck", "missing", "empty", "nul", "truncated", "extended", "foreign")


def _small(line: str) -> Iterator[Cell]:
    for file in ("checkpoint",):
        yield from _both(line, file, "missing", "empty", "nul", "truncated", "foreign", "extended", "folder")
    yield from _both(line, "lock", "missing", "empty", "foreign", "folder")
    yield from _both(line, "abort", "missing", "empty", "foreign", "folder")
    yield from _both(line, "index", "stray notes.txt", "stray-folder old", "missing", "stray-empty notes.txt")
    for which in ("LAST", "FIRST"):
        yield from _both(line, f"index/{which}", "missing", "empty", "nul", "truncated", "extended", "foreign")
    yield from _both(line, ".", "stray notes.txt", "stray-folder old")
    yield from _both(line, "config", "stray notes.txt", "missing")


def _settings(line: str) -> Iterator[Cell]:
    changed = [
        "maxHashSlotNum=200",
        "maxHashSlotNum=50",
        "maxIndexNum=800",
        "messageDelayLevel=1s",
        "messageDelayLevel=2s 20s 3h",
        "messageDelayLevel=1x",
        "messageDelayLevel=",
        "storePathRootDir=STORE/elsewhere",
        "storePathCommitLog=STORE/elsewhere",
        "enableConsumeQueueExt=true",
        "messageIndexEnable=false",
        "enableDLegerCommitLog=true",
        "autoCreateTopicEnable=false",
        "fileReservedTime=0",
    ]
    if line >= WITH_WHEEL:
        changed += [
            "mappedFileSizeTimerLog=832",
            "mappedFileSizeTimerLog=208",
            "timerPrecisionMs=100",
            "timerPrecisionMs=500",
            "timerWheelEnable=false",
            "timerRollWindowSlot=30",
            "storeType=defaultRocksDB",
            "enableCompaction=false",
            "enableMultiDispatch=true",
            "enableLmq=true",
            "timerStopEnqueue=true",
            "rocksdbCQDoubleWriteEnable=true",
            "transRocksDBEnable=true",
            "timerRocksDBEnable=true",
        ]
    for setting in changed:
        yield from _both(line, SETTINGS, setting)


def _databases(line: str) -> Iterator[Cell]:
    if line == "5.5.0":
        for file in ("rocksdbstore/CURRENT", "rocksdbstore/MANIFEST-*"):
            yield from _both(line, file, "missing", "empty", "nul", "truncated", "foreign")
        yield from _both(line, "rocksdbstore", "stray notes.txt", "stray-folder old", "missing")
    if line in BASES["rocksdb"].lines:
        for file in ("consumequeue/CURRENT", "consumequeue/MANIFEST-*"):
            yield from _both(line, file, "missing", "empty", "nul", "truncated", "foreign", base="rocksdb")
        yield from _both(line, "consumequeue/*.sst", "missing", "truncated", "nul", base="rocksdb")
        yield from _both(line, "consumequeue/OPTIONS-*", "missing", "foreign", base="rocksdb")
        yield from _both(line, "consumequeue", "stray notes.txt", "stray-folder old", "missing", base="rocksdb")
        yield from _both(line, SETTINGS, "storeType=default", base="rocksdb")
        yield from _both(line, "commitlog", "stray notes.txt", base="rocksdb")
        yield from _both(line, "config/topics.json", "nul", backup=BROKEN, base="rocksdb")


def _compacted(line: str) -> Iterator[Cell]:
    if line not in BASES["compacted"].lines:
        return
    yield from _both(line, "compaction/position-checkpoint", "missing", "empty", "nul", "foreign", base="compacted")
    for folder in ("compaction/compactionLog/kv/0", "compaction/compactionCq/kv/0"):
        yield from _both(
            line, folder, "stray notes.txt", "stray-folder old", "zeros-ahead", "missing", base="compacted"
        )
        yield from _both(
            line, f"{folder}/LAST", "missing", "empty", "nul", "truncated", "extended", "foreign", base="compacted"
        )
    sizes = (
        f"{name}={2 * int(COMPACTED[name])}" for name in ("compactionMappedFileSize", "compactionCqMappedFileSize")
    )
    yield from _both(line, SETTINGS, *sizes, "enableCompaction=false", base="compacted")


PARTS = (
    (_log, _queues, _tables, _wheel, _small, _settings),
    (_databases, _compacted, _newer_tables, _tables_after_a_kill),
)
"""Kinds of cells, of which each is tried in turn; the second row when the first is done."""
