"""Labelled faults in recordings of Kafka: `python -m tests.support.kafka.damage RECORDING… --seed N --into FOLDER`.

Each kind is tried on each data directory of a recording, on a copy whose files are links: a fault puts a new file in
the place of one. `labels.ndjson` has a line for each: what was done, where, and which rules may show it. The tests' own
reader judges the damaged directory too: what it does not see either is marked, and needs a reason.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tarfile
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

from tests.support.kafka import files
from tests.support.kafka.faults import checkpoints, decisions, ends, heads, indexes, markers, segments, snapshots
from tests.support.kafka.faults.case import Case, Label
from tests.support.kafka.invariants import judged

FAULTS: dict[str, Callable[[Case], Label | None]] = {
    make.__name__: make
    for room in (segments, heads, markers, indexes, snapshots, checkpoints, decisions, ends)
    for make in room.FAULTS
}


def damaged(source: Path, target: Path, kind: str, seed: int) -> Label | None:
    """A copy of a data directory with one fault; None (and no copy) where the kind does not apply."""
    shutil.copytree(source, target, copy_function=os.link)
    case = Case(target, zlib.crc32(f"{kind} {seed}".encode()))
    label = FAULTS[kind](case)
    if label is None:
        shutil.rmtree(target)
    return label


def seen(before: Path, after: Path, partition: str) -> tuple[str, ...]:
    """Invariants of a partition that are broken after and not before, by the tests' own reader."""
    known = judged(before, only=partition).broken
    try:
        broken = judged(after, only=partition).broken
    except Exception as problem:  # noqa: BLE001 - what it cannot read, it sees
        return (f"cannot be read: {type(problem).__name__}",)
    return tuple(
        name
        for name, places in broken.items()
        if len(places) > len(known.get(name, [])) or set(places) - set(known.get(name, []))
    )


def unpacked(recording: Path, room: Path) -> Path:
    """A recording's folder; unpacked first if it is an archive."""
    if recording.is_dir():
        return recording
    with tarfile.open(recording) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(room)  # noqa: S202 - our own archives
    return room / recording.name.removesuffix(".tar.xz")


def campaign(recording: Path, into: Path, seed: int, kinds: list[str]) -> Iterator[Label]:
    """Every kind on every data directory of a recording."""
    for directory in files.directories(recording):
        name = "-".join([recording.name, *directory.relative_to(recording).parts])
        for kind in kinds:
            target = into / f"{name}.{kind}" / directory.name
            target.parent.mkdir(parents=True)
            label = damaged(directory, target, kind, seed)
            if label is None:
                target.parent.rmdir()
                continue
            yield replace(
                label, directory=str(target.relative_to(into)), shown=seen(directory, target, label.partition)
            )


def main() -> None:
    """Write damaged directories, and a table of labels."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recordings", nargs="+", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--kinds", nargs="*", default=list(FAULTS))
    options = parser.parse_args()
    options.into.mkdir(parents=True, exist_ok=True)
    room = Path(tempfile.mkdtemp(prefix="sound-", dir=options.into))
    counts: Counter[str] = Counter()
    silent: Counter[str] = Counter()
    with (options.into / "labels.ndjson").open("a", encoding="utf-8") as table:
        for recording in options.recordings:
            for label in campaign(unpacked(recording, room), options.into, options.seed, options.kinds):
                table.write(json.dumps(asdict(label)) + "\n")
                counts[label.kind] += 1
                silent[label.kind] += not label.shown and not label.equivalent
    for kind in options.kinds:
        unseen = f", {silent[kind]} of them unseen by the tests' reader" if silent[kind] else ""
        sys.stdout.write(f"{counts[kind]:5d} {kind}{unseen}\n")
    shutil.rmtree(room)


if __name__ == "__main__":
    main()
