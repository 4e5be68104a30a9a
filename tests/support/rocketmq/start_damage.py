"""Faults at which a broker's next start fails, each with its label, its place and the versions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ALL, OF_5, OF_4 = ("4.9.7", "5.3.3", "5.5.0"), ("5.3.3", "5.5.0"), ("4.9.7",)
NEEDED = ("topics.json",)  # queues of the store that is damaged show that they were there
NUL = b"\0" * 100
WHEEL = 38_707_200  # bytes of the timer wheel


@dataclass(frozen=True)
class StartFault:
    """One fault: how it is planted in a store, and what must be reported of it.

    `rule`: without its spec; empty if the versions start · `refused`: the versions that fail
    """

    label: str
    plant: Callable[[Path], None]
    rule: str
    file: str
    offset: int
    refused: tuple[str, ...]


def _put(name: str, data: bytes) -> Callable[[Path], None]:
    def plant(store: Path) -> None:
        file = store / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)

    return plant


def _folder(name: str) -> Callable[[Path], None]:
    return lambda store: (store / name).mkdir()


def _config(name: str, file: bytes | None, backup: bytes | None) -> Callable[[Path], None]:
    def plant(store: Path) -> None:
        for path, data in ((store / "config" / name, file), (store / "config" / f"{name}.bak", backup)):
            path.unlink(missing_ok=True)
            if data is not None:
                path.write_bytes(data)

    return plant


def faults(queue: str, log_file: int, queue_file: int) -> list[StartFault]:
    """Returns every fault. `queue`: a folder of a queue · `log_file`, `queue_file`: bytes of files of either kind."""
    length, number = "mapped-file-has-its-full-length", "mapped-file-is-called-by-a-number"
    unread, lost = "config-file-or-its-backup-can-be-read", "config-file-without-content-has-a-backup"
    found = [
        StartFault("a note in the log", _put("commitlog/notes.txt", b"x" * 9), length, "commitlog/notes.txt", 0, ALL),
        StartFault(
            "a note as long as a file of the log",
            _put("commitlog/notes.txt", bytes(log_file)), number, "commitlog/notes.txt", 0, ALL,
        ),
        StartFault("a folder in the log", _folder("commitlog/old"), length, "commitlog/old", 0, OF_4),
        StartFault("an NFS rest", _put(f"{queue}/.nfs000000001", NUL), length, f"{queue}/.nfs000000001", 0, ALL),
        StartFault(
            "a copy as long as a file of the queue",
            _put(f"{queue}/copy", bytes(queue_file)), number, f"{queue}/copy", 0, ALL,
        ),
        StartFault("a folder in a queue", _folder(f"{queue}/old"), length, f"{queue}/old", 0, OF_4),
        StartFault(
            "an empty last file of a queue",
            _put(f"{queue}/{10**9:020d}", b""), length, f"{queue}/{10**9:020d}", 0, OF_4,
        ),
        StartFault(
            "an empty last file of the log", _put(f"commitlog/{10**15:020d}", b""), length,
            f"commitlog/{10**15:020d}", 0, OF_4,
        ),
        StartFault("a note between queues", _put(f"{Path(queue).parent}/notes.txt", NUL), "", "", 0, ()),
        StartFault("a note between topics", _put("consumequeue/notes.txt", NUL), "", "", 0, ()),
        StartFault("a short wheel", _put("timerwheel", NUL), "timer-wheel-has-all-its-slots", "timerwheel", 100, OF_5),
        StartFault(
            "a long wheel", _put("timerwheel", bytes(WHEEL + 1)), "timer-wheel-has-all-its-slots", "timerwheel", WHEEL,
            OF_5,
        ),
        StartFault("an empty wheel", _put("timerwheel", b""), "", "", 0, ()),
    ]  # fmt: skip
    for name, versions in {
        "topics.json": ALL, "subscriptionGroup.json": ALL, "consumerFilter.json": ALL, "delayOffset.json": ALL,
        "topicQueueMapping.json": OF_5, "consumerOrderInfo.json": OF_5, "timermetrics": OF_5,
    }.items():  # fmt: skip
        file = f"config/{name}"
        found += [
            StartFault(f"{name}: both NULs", _config(name, NUL, NUL), unread, file, 0, versions),
            StartFault(f"{name}: empty, its backup broken", _config(name, b"", b"{"), unread, file, 0, versions),
            StartFault(
                f"{name}: gone, its backup broken", _config(name, None, b"{"), unread, f"{file}.bak", 0, versions
            ),
            StartFault(f"{name}: NULs, no backup", _config(name, NUL, None), lost, file, 0, versions),
            StartFault(f"{name}: cut off, its backup empty", _config(name, b'{"a":{', b""), lost, file, 0, versions),
            StartFault(f"{name}: empty, no backup", _config(name, b"", None), lost, file, 0, versions),
            StartFault(
                f"{name}: gone",
                _config(name, None, None),
                *((lost, file, 0, versions) if name in NEEDED else ("", "", 0, ())),
            ),
            StartFault(f"{name}: NULs, its backup whole", _config(name, NUL, b"{}"), "", "", 0, ()),
            StartFault(f"{name}: whole, its backup NULs", _config(name, b"{}", NUL), "", "", 0, ()),
        ]
    return found
