"""Checks of Kafka's data directories, next to Kafka's own tool on the same files: the rows `kafka` of the table.

A directory is made as a broker leaves it after a clean stop: one partition that one idempotent producer wrote, with its
indexes, snapshots and checkpoints. Kafka's `DumpLogSegments` needs Java, and its jars in the folder that `KAFKA_JARS`
names; it prints and judges nothing.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import rows as answers
from benchmarks.bigstore import Extent
from benchmarks.kafka_logs import BATCH, PATTERNS, TOOL, packed, record
from gapless.traces.sources.kafka.log.batches import LZ4, PLAIN
from gapless.traces.sources.kafka.log.checksums import checksum

if TYPE_CHECKING:
    from gapless.traces.options import Depth

SEGMENT, INTERVAL = 128 << 20, 4096
"""Bytes of a segment, and between two entries of an index."""
BEGAN, PRODUCER = 1_700_000_000_000, 1000
HEAD = struct.Struct(">qiibIhiqqqhii")
LINE = struct.Struct(">qhiqiqiq")
"""A producer in a snapshot: id, epoch, sequence, offset, delta, time, coordinator epoch, open transaction."""
SHAPES = {"one record a batch": (1, PLAIN), "16 KiB a batch": (BATCH, PLAIN), "16 KiB a batch, lz4": (BATCH, LZ4)}

Line = tuple[str, list[str], Extent, bool, bool, bool, str]
"""The fields of a row of the table."""


def rows(stores: Path, records: int) -> Iterator[Line]:
    """The rows: checks by one process and by two, and Kafka's own tool, at both depths."""
    jars = Path(os.environ.get("KAFKA_JARS", "none"))
    is_there = jars.is_dir() and shutil.which("java") is not None
    if not is_there:
        print(
            "DumpLogSegments is not measured: KAFKA_JARS names no folder of jars, or java is missing", file=sys.stderr
        )
    for shape, (each, codec) in SHAPES.items():
        folder = made(stores, records // each * each, each, codec)
        whole = Extent(records // each * each, sum(log.stat().st_size for log in folder.glob("*/*.log")))
        for depth in ("shallow", "deep"):
            name = f"Kafka, {shape}, {depth}"
            first = f"{name}: check, jobs=1"
            yield _row(first, _call("check", str(folder), 1, depth), whole)
            yield _row(f"{name}: check, jobs=2", _call("check", str(folder), 2, depth), whole, first)
            if is_there:
                words = ("dump", str(folder), str(jars), depth, whole.records)
                yield _row(f"{name}: DumpLogSegments", _call(*words), whole, first)


def _row(name: str, command: list[str], whole: Extent, without: str = "") -> Line:
    return name, command, whole, False, False, False, without


def _call(function: str, *arguments: str | int) -> list[str]:
    return [sys.executable, "-c", f"from benchmarks import kafka_directories as of; of.{function}(*{arguments!r})"]


def check(path: str, jobs: int, depth: Depth) -> None:
    """The whole check, timed by itself."""
    import gapless.traces.sources.kafka.check  # noqa: PLC0415, F401 - what a start takes has rows of its own
    from gapless import check as whole_check  # noqa: PLC0415 - as above
    from gapless.entry import work_steadily  # noqa: PLC0415 - as the command does

    work_steadily()
    report = whole_check([path], jobs=jobs, depth=depth)
    answers.answer(report.seconds, report.sources[0].records, report.verdict, report.counts.events)


def dump(path: str, jars: str, depth: Depth, records: int) -> None:
    """Kafka's own tool on all segments, with the start of its JVM."""
    logs = ",".join(str(log) for log in sorted(Path(path).glob("*/*.log")))
    deep = ["--deep-iteration"] if depth == "deep" else []
    command = [shutil.which("java") or "java", "-Xmx1g", "-cp", f"{jars}/*", TOOL, *deep, "--files", logs]
    began = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    answers.answer(time.perf_counter() - began, records)


def made(stores: Path, records: int, each: int, codec: int) -> Path:
    """The directory with so many records, `each` in a batch; made under another name, so that it is whole."""
    folder = stores / f"kafka-{records}-{each}-{codec}"
    if not folder.exists():
        stores.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="making-", dir=stores) as making:
            _Partition(Path(making, "n1"), each, codec).write(records // each)
            Path(making, "n1").rename(folder)
    return folder


class _Newest(NamedTuple):
    """The last batch: its last offset, and its time."""

    last: int
    time: int


class _Partition:
    """A partition that is being written, segment by segment."""

    def __init__(self, folder: Path, each: int, codec: int) -> None:
        self.folder, self.each = folder, each
        self.place = folder / "orders-0"
        self.place.mkdir(parents=True)
        chance = random.Random(46)
        bodies = [packed(b"".join(record(chance, at) for at in range(each)), codec) for _ in range(PATTERNS)]
        self.patterns = [bytearray(HEAD.size) + body for body in bodies]
        self.codec = codec
        self.base = self.written = self.since = 0
        self.index, self.times = bytearray(), bytearray()
        self.dated = -1

    def write(self, count: int) -> None:
        """Write so many batches, and all files next to them."""
        newest, file = _Newest(-1, -1), self._log(0).open("wb")
        for number in range(count):
            batch = self._batch(number)
            if self.written + len(batch) > SEGMENT:
                file.close()
                self._close(newest, is_last=False)
                file = self._log(self.base).open("wb")
            file.write(batch)
            newest = _Newest((number + 1) * self.each - 1, BEGAN + number + self.each - 1)
            self._enter(newest, len(batch))
        file.close()
        self._close(newest, is_last=True)
        self._checkpoints(newest.last + 1)

    def _log(self, base: int) -> Path:
        return self.place / f"{base:020}.log"

    def _batch(self, number: int) -> bytearray:
        batch, time = self.patterns[number % PATTERNS], BEGAN + number
        last, sequence = self.each - 1, number * self.each % (1 << 31)
        HEAD.pack_into(
            batch, 0, number * self.each, len(batch) - 12, 0, 2, 0, self.codec, last, time, time + last, PRODUCER, 0,
            sequence, self.each,
        )  # fmt: skip
        struct.pack_into(">I", batch, 17, checksum(bytes(batch[21:])))
        return batch

    def _enter(self, newest: _Newest, size: int) -> None:
        """Add an entry to both indexes, as often as a broker does."""
        if self.since > INTERVAL:
            self.index += struct.pack(">ii", newest.last - self.base, self.written)
            self._date(newest)
            self.since = 0
        self.since += size
        self.written += size

    def _date(self, newest: _Newest) -> None:
        if newest.time > self.dated:
            self.times += struct.pack(">qi", newest.time, newest.last - self.base)
            self.dated = newest.time

    def _close(self, newest: _Newest, *, is_last: bool) -> None:
        """Write the files of a segment, and the snapshot of the producer behind it."""
        self._date(newest)
        self._log(self.base).with_suffix(".index").write_bytes(self.index)
        self._log(self.base).with_suffix(".timeindex").write_bytes(self.times)
        sequence, end = newest.last % (1 << 31), newest.last + 1
        body = struct.pack(">i", 1) + LINE.pack(
            PRODUCER, 0, sequence, newest.last, self.each - 1, newest.time, -1, -1
        )  # fmt: skip
        (self.place / f"{end:020}.snapshot").write_bytes(struct.pack(">hI", 1, checksum(body)) + body)
        if not is_last:
            self.base, self.written, self.since, self.dated = end, 0, 0, -1
            self.index, self.times = bytearray(), bytearray()

    def _checkpoints(self, end: int) -> None:
        (self.folder / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=x\n")
        (self.folder / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
        (self.place / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
        for name in ("recovery-point", "replication"):
            (self.folder / f"{name}-offset-checkpoint").write_text(f"0\n1\norders 0 {end}\n")
