"""Faults in the snapshots of producers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from tests.support.kafka import files
from tests.support.kafka.batches import crc32c, walk
from tests.support.kafka.faults.case import Case, Label, label, write
from tests.support.kafka.files import ENTRY, Folder

SNAPSHOT = "producer.snapshot"


def snapshots(case: Case, *, entries: int = 1) -> Iterator[tuple[Folder, Path, bytes]]:
    """Snapshots that lie where the log can be replayed to, in a random order."""
    for folder in case.shuffled(case.plain):
        if not folder.logs:
            continue
        first, bases = int(folder.logs[0].stem), {int(p.stem) for p in folder.logs}
        walks = [walk(path) for path in folder.logs]
        end = max([first] + [w.batches[-1].last + 1 for w in walks if w.batches])
        for path in case.shuffled(files.numbered(folder.path, ".snapshot")):
            data = path.read_bytes()
            if (
                first < int(path.stem)
                and (int(path.stem) in bases or int(path.stem) == end)
                and len(data) >= 10 + 46 * entries
            ):
                yield folder, path, data


def sealed_snapshot(data: bytes) -> bytes:
    """A snapshot with the right checksum."""
    return data[:2] + crc32c(data[6:]).to_bytes(4, "big") + data[6:]


def _entry(case: Case, kind: str, change: Callable[[list[int]], None], *rules: str) -> Label | None:
    for _folder, path, data in snapshots(case):
        number = case.random.randrange((len(data) - 10) // 46)
        at = 10 + 46 * number
        values = list(ENTRY.unpack_from(data, at))
        before = list(values)
        change(values)
        if values == before:
            continue
        write(path, sealed_snapshot(data[:at] + ENTRY.pack(*values) + data[at + 46 :]))
        return label(
            case,
            kind,
            path,
            SNAPSHOT,
            *rules,
            position=at,
            offset=int(path.stem),
            what=f"{before} to {values}",
            tail=False,
        )
    return None


def snapshot_ahead(case: Case) -> Label | None:
    """Let a snapshot know more than the log: KAFKA-6683."""

    def change(v: list[int]) -> None:
        if v[2] >= 0:
            v[2], v[3] = v[2] + 5, v[3] + 5

    return _entry(case, "snapshot_ahead", change)


def snapshot_sequence(case: Case) -> Label | None:
    """Let a snapshot have an earlier sequence."""

    def change(v: list[int]) -> None:
        if v[2] > 0:
            v[2] -= 1

    return _entry(case, "snapshot_sequence", change)


def snapshot_epoch(case: Case) -> Label | None:
    """Let a snapshot have another epoch."""

    def change(v: list[int]) -> None:
        v[1] += 1

    return _entry(case, "snapshot_epoch", change)


def snapshot_open(case: Case) -> Label | None:
    """Let a snapshot have a transaction open that is not, or none where one is."""

    def change(v: list[int]) -> None:
        v[7] = -1 if v[7] >= 0 else max(v[3], 0)

    return _entry(case, "snapshot_open", change)


def snapshot_time(case: Case) -> Label | None:
    """Let a snapshot have another time."""

    def change(v: list[int]) -> None:
        v[5] += 17

    return _entry(case, "snapshot_time", change)


def snapshot_stale(case: Case) -> Label | None:
    """Put an earlier snapshot in the place of a later one."""
    for folder, path, data in snapshots(case, entries=0):
        earlier = [
            p
            for p in files.numbered(folder.path, ".snapshot")
            if int(p.stem) < int(path.stem) and p.read_bytes()[10:] != data[10:]
        ]
        earlier = [p for p in earlier if len(p.read_bytes()) > 10]
        if earlier:
            old = case.random.choice(earlier).read_bytes()
            gone = entries_of(old) < entries_of(data)
            write(path, old)
            return label(
                case,
                "snapshot_stale",
                path,
                SNAPSHOT,
                "producer.expire",
                "producer.open",
                offset=int(path.stem),
                tail=False,
                equivalent="an idle producer is forgotten, and how soon is a setting" if gone else "",
            )
    return None


def entries_of(data: bytes) -> set[bytes]:
    """The producers of a snapshot."""
    return {data[at : at + 46] for at in range(10, len(data), 46)}


def snapshot_damaged(case: Case) -> Label | None:
    """Turn a bit of a snapshot."""
    for _folder, path, data in snapshots(case, entries=0):
        at = case.random.randrange(len(data))
        write(path, data[:at] + bytes([data[at] ^ 1 << case.random.randrange(8)]) + data[at + 1 :])
        return label(case, "snapshot_damaged", path, SNAPSHOT, "files", position=at, offset=int(path.stem), tail=False)
    return None


def snapshot_cut(case: Case) -> Label | None:
    """Cut a snapshot."""
    for _folder, path, data in snapshots(case):
        write(path, data[: len(data) - case.random.randrange(1, 46)])
        return label(case, "snapshot_cut", path, SNAPSHOT, "files", offset=int(path.stem), tail=False)
    return None


def snapshot_missing(case: Case) -> Label | None:
    """Remove a snapshot: that of the end after a stop in order, or of a rolled segment (the broker makes it again)."""
    for folder, path, _ in snapshots(case, entries=0):
        at_end = int(path.stem) not in {int(log.stem) for log in folder.logs}
        if not case.is_stopped and not at_end and path.stem == folder.logs[-1].stem:
            continue
        path.unlink()
        why = "" if at_end else "the loader makes a rolled segment's snapshot again when it needs it: at most a note"
        return label(
            *(case, "snapshot_missing", path, "files", SNAPSHOT),
            offset=int(path.stem),
            equivalent=why,
            tail=not case.is_stopped,
        )
    return None


def snapshot_beyond(case: Case) -> Label | None:
    """Put a snapshot's copy behind the log's end."""
    for folder, _path, data in snapshots(case):
        walks = [walk(p) for p in folder.logs]
        end = max(w.batches[-1].last + 1 for w in walks if w.batches)
        target = folder.path / f"{end + 40:020d}.snapshot"
        write(target, data)
        return label(case, "snapshot_beyond", target, SNAPSHOT, "files", offset=end + 40)
    return None


FAULTS = (
    snapshot_ahead,
    snapshot_sequence,
    snapshot_epoch,
    snapshot_open,
    snapshot_time,
    snapshot_stale,
    snapshot_damaged,
    snapshot_cut,
    snapshot_missing,
    snapshot_beyond,
)
