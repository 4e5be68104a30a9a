"""A folder of many small files of events, in partitions by day and hour: a short trace in each, as lines."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks import bigtraces
from benchmarks.bigstore import Extent

DAYS, HOURS = 28, 24


def make(folder: Path, files: int) -> None:
    """Write so many files below `folder`, which takes its name when all are there."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="making-", dir=folder.parent) as making:
        one = Path(making, "one.ndjson")
        bigtraces.make(one, 1)
        text = one.read_text(encoding="utf-8")
        for number in range(files):
            day, hour = number % DAYS, number // DAYS % HOURS
            part = Path(making, "files", f"date=2026-11-{day + 1:02d}", f"hour={hour:02d}")
            part.mkdir(parents=True, exist_ok=True)
            lines = text.replace("orders/00000000", f"orders/{number:08d}")
            (part / f"part-{number:05d}.ndjson").write_text(lines, encoding="utf-8")
        Path(making, "files").rename(folder)


def extent(folder: Path, files: int) -> Extent:
    """The events and bytes of such a folder."""
    return Extent(len(bigtraces.EVENTS) * files, sum(path.stat().st_size for path in folder.rglob("*.ndjson")))
