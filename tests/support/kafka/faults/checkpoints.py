"""Faults in checkpoints, and in which files and folders there are."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from tests.support.kafka.batches import walk
from tests.support.kafka.faults.case import Case, Label, label, write
from tests.support.kafka.files import Folder


def _line(
    case: Case,
    file: str,
    change: Callable[[int, int], int | None],
    kind: str,
    *rules: str,
    folders: list[Folder] | None = None,
    only_stopped: bool = False,
    tail: bool = False,
) -> Label | None:
    path = case.directory / file
    if only_stopped and not case.is_stopped:
        return None
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else ["0", "0"]
    for folder in case.shuffled(case.plain if folders is None else folders):
        if not folder.logs:
            continue
        end = max([int(folder.logs[-1].stem)] + [w.batches[-1].last + 1 for w in map(walk, folder.logs) if w.batches])
        start = int(folder.logs[0].stem)
        new = change(start, end)
        if new is None:
            continue
        mine = f"{folder.topic} {folder.number} "
        kept = [line for line in lines[2:] if not line.startswith(mine)]
        rows = [*kept, f"{mine}{new}"]
        write(path, "\n".join(["0", str(len(rows)), *rows, ""]).encode())
        return label(
            case, kind, path, *rules, offset=new, what=f"{mine}{new}, end {end}", tail=tail, partition=folder.name
        )
    return None


def watermark_ahead(case: Case) -> Label | None:
    """Raise the high watermark beyond the end, after a stop in order."""
    return _line(
        case,
        "replication-offset-checkpoint",
        lambda _start, end: end + 5,
        "watermark_ahead",
        "partition.raise_watermark",
        only_stopped=True,
    )


def watermark_behind(case: Case) -> Label | None:
    """Lower the high watermark, after a stop in order."""
    found = _line(
        case,
        "replication-offset-checkpoint",
        lambda start, end: end - 1 if end - 1 > start else None,
        "watermark_behind",
        "partition.raise_watermark",
        "partition.end",
        only_stopped=True,
    )
    why = "" if case.nodes == 1 else "a follower may stop with a watermark behind its end (N18)"
    return replace(found, equivalent=why) if found else None


def recovery_ahead(case: Case) -> Label | None:
    """Raise the recovery point beyond the end."""
    return _line(
        case,
        "recovery-point-offset-checkpoint",
        lambda _start, end: end + 9,
        "recovery_ahead",
        "partition.flush",
        tail=not case.is_stopped,
    )


def start_beyond(case: Case) -> Label | None:
    """Raise the log's start beyond the end."""
    return _line(
        case,
        "log-start-offset-checkpoint",
        lambda _start, end: end + 3,
        "start_beyond",
        "partition.delete",
        "partition.open",
        tail=not case.is_stopped,
    )


def cleaner_beyond(case: Case) -> Label | None:
    """Raise the cleaner's point beyond the end."""
    compacted = [folder for folder in case.folders if folder.topic in case.compacted]
    return _line(
        case,
        "cleaner-offset-checkpoint",
        lambda _start, end: end + 2,
        "cleaner_beyond",
        "partition.clean",
        folders=compacted,
        tail=not case.is_stopped,
    )


def _epochs(case: Case, least: int) -> Iterator[tuple[Folder, Path, list[str]]]:
    for folder in case.shuffled(case.plain):
        path = folder.path / "leader-epoch-checkpoint"
        rows = path.read_text(encoding="utf-8").splitlines()[2:] if path.exists() else []
        if len(rows) >= least:
            yield folder, path, rows


def _table(path: Path, rows: list[str]) -> None:
    write(path, "\n".join(["0", str(len(rows)), *rows, ""]).encode())


def epochs_swapped(case: Case) -> Label | None:
    """Swap two entries of an epoch checkpoint."""
    for _folder, path, rows in _epochs(case, 2):
        k = case.random.randrange(len(rows) - 1)
        _table(path, [*rows[:k], rows[k + 1], rows[k], *rows[k + 2 :]])
        return label(case, "epochs_swapped", path, "partition.lead", "files", what="; ".join(rows), tail=False)
    return None


def epochs_missing(case: Case) -> Label | None:
    """Take the entry of an epoch that has batches out of an epoch checkpoint."""
    for folder, path, rows in _epochs(case, 1):
        first = int(rows[0].split()[1])  # batches before it are below the log's start, and need none
        used = {b.leader_epoch for p in folder.logs for b in walk(p).batches if b.base >= first}
        mine = [row for row in rows if int(row.split()[0]) in used]
        if mine:
            gone = case.random.choice(mine)
            _table(path, [row for row in rows if row != gone])
            return label(
                case,
                "epochs_missing",
                path,
                "partition.lead",
                "partition.append",
                what=f"{gone} of {'; '.join(rows)}",
                also=("log",),
                tail=not case.is_stopped,
            )
    return None


def epochs_late(case: Case) -> Label | None:
    """Raise the start of an epoch behind its first batch."""
    for folder, path, rows in _epochs(case, 1):
        batches = [b for p in folder.logs for b in walk(p).batches]
        for row in case.shuffled(rows):
            epoch, start = map(int, row.split())
            first = [b for b in batches if b.leader_epoch == epoch and b.base >= start]
            if first and not any(int(other.split()[1]) == first[0].last + 1 for other in rows):
                _table(path, [f"{epoch} {first[0].last + 1}" if other == row else other for other in rows])
                return label(
                    case,
                    "epochs_late",
                    path,
                    "partition.lead",
                    "partition.append",
                    offset=first[0].last + 1,
                    what=f"{row} of {'; '.join(rows)}",
                    also=("log",),
                    tail=not case.is_stopped,
                    equivalent=""
                    if case.is_stopped or row != rows[0]
                    else "the first entry moves with the log's start",
                )
    return None


def segment_missing(case: Case) -> Label | None:
    """Remove a segment from between others, with all its files."""
    for folder in case.shuffled(case.plain):
        logs = [path for path in folder.logs if walk(path).batches]
        if len(logs) >= 3:
            gone = case.random.choice(logs[1:-1])
            for path in folder.path.glob(f"{gone.stem}.*"):
                path.unlink()
            return label(
                case,
                "segment_missing",
                gone,
                "partition.roll",
                "partition.append",
                "files",
                offset=int(gone.stem),
                also=("log", "index", "timeindex"),
                tail=not case.is_stopped and int(gone.stem) >= case.flushed.get((folder.topic, folder.number), 0),
            )
    return None


def segment_renamed(case: Case) -> Label | None:
    """Name a segment behind its first batch."""
    for folder in case.shuffled(case.plain):
        logs = [path for path in folder.logs if walk(path).batches]
        if len(logs) >= 2:
            path = case.random.choice(logs[1:])
            new = f"{int(path.stem) + 2:020d}"
            for file in sorted(folder.path.glob(f"{path.stem}.*")):
                if file.suffix != ".snapshot":
                    file.rename(file.with_stem(new))
            return label(
                case,
                "segment_renamed",
                path.with_stem(new),
                "partition.roll",
                "partition.append",
                "files",
                offset=int(new),
                also=("log", "snapshot", "index"),
                tail=False,
            )
    return None


def two_folders(case: Case) -> Label | None:
    """Put a second folder of a partition into a second data directory."""
    for folder in case.shuffled(case.plain):
        second = case.directory.parent / f"{case.directory.name}-second"
        if second.exists() or not (case.directory / "meta.properties").exists():
            return None
        second.mkdir()
        for path in case.directory.iterdir():
            if path.is_file():
                shutil.copyfile(path, second / path.name)
        shutil.copytree(folder.path, second / folder.name)
        return label(
            case,
            "two_folders",
            folder.path,
            "files",
            what=f"{folder.name} lies in two directories",
            tail=False,
            partition=folder.name,
            equivalent="the tests' reader judges one directory at a time: a reader of both must tell",
        )
    return None


FAULTS = (
    watermark_ahead,
    watermark_behind,
    recovery_ahead,
    start_beyond,
    cleaner_beyond,
    epochs_swapped,
    epochs_missing,
    epochs_late,
    segment_missing,
    segment_renamed,
    two_folders,
)
