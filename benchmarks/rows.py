"""The runs behind the rows of the table. Each is a process of its own, and answers with one line of JSON."""

from __future__ import annotations

import json
import mmap
import time
import zlib
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gapless.properties.exploration.search import How
    from gapless.traces.engines import EngineName


def checksum(path: str, size: int, records: int) -> None:
    """The first `size` bytes of the log through zlib's CRC-32: for scale."""
    began = time.perf_counter()
    for file in sorted(Path(path, "commitlog").iterdir()):
        with file.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as log:
            zlib.crc32(memoryview(log)[: max(0, size - int(file.name))])
    answer(time.perf_counter() - began, records)


def scan(path: str) -> None:
    """The checker's own scan: records found, checksums computed, columns filled, nothing judged."""
    from gapless.traces.options import Options  # noqa: PLC0415 - as below
    from gapless.traces.sources.rocketmq.segments import splits, tasks  # noqa: PLC0415 - not for the rows without
    from gapless.traces.sources.rocketmq.store import file_access, opening  # noqa: PLC0415 - not for the rows without

    tasks.prepare(Options())
    began = time.perf_counter()
    store, space = opening.open_store(Path(path)), file_access.Space()
    readers = (splits.SplitReader(store, split, space, steps=True) for split in splits.splits(store))
    records = sum(scanned.columns.count for reader in readers for scanned in reader.segments())
    answer(time.perf_counter() - began, records)


def check(path: str, jobs: int, clients: str | None = None) -> None:
    """The whole check, timed by itself: from the start of the scan, or of reading the client log, to the verdict."""
    import gapless.traces.sources.rocketmq.check  # noqa: PLC0415, F401 - what a start takes has rows of its own
    from gapless import check as whole_check  # noqa: PLC0415 - not for the rows that do without
    from gapless.entry import work_steadily  # noqa: PLC0415 - as the command does

    work_steadily()
    report = whole_check([path], jobs=jobs, client=clients)
    answer(report.seconds, report.sources[0].records, report.verdict, report.counts.events)


def check_traces(
    path: str, engine: EngineName, master: str | None, jobs: int | None = None, split: int | None = None
) -> None:
    """The check of a file or folder of events, timed by itself: after the start of the engine, as its peers are."""
    import gapless.traces.sources.event_files.file  # noqa: PLC0415, F401 - as above
    from gapless import check as whole_check  # noqa: PLC0415 - not for the rows that do without
    from gapless.entry import work_steadily  # noqa: PLC0415 - as the command does

    work_steadily()
    report = whole_check([path], engine=engine, master=master, jobs=jobs, split=split)
    answer(report.seconds, sum(source.records for source in report.sources), report.verdict)


def check_again(path: str) -> None:
    """The second check of a file of events in one session of Spark, timed by itself."""
    from gapless import check as whole_check  # noqa: PLC0415 - not for the rows that do without
    from gapless.entry import work_steadily  # noqa: PLC0415 - as the command does
    from gapless.traces.engines.spark import classic as spark  # noqa: PLC0415 - few need it

    work_steadily()
    with spark.started("local[2]", None, None):
        whole_check([path], engine="spark")
        report = whole_check([path], engine="spark")
    answer(report.seconds, sum(source.records for source in report.sources), report.verdict)


def explore(spec: str, how: How) -> None:
    """Every state of a spec within its bound, by native code within the wide one; a step that was tried is a record."""
    from gapless.properties.exploration import bounds, search  # noqa: PLC0415 - not for the rows that do without
    from gapless.spec.catalog import SPECS  # noqa: PLC0415

    bound = bounds.bound_of(SPECS[spec], wide=how == "native")
    found = search.explore(SPECS[spec], bound, how=how)
    answer(found.seconds, found.tried, "conforms" if found.result == "holds" else found.result)


def answer(seconds: float, records: int, verdict: str = "conforms", events: int = 0) -> None:
    """Print the result of a run. `events`: how many were judged, of all specs, if known."""
    print(json.dumps({"seconds": seconds, "records": records, "verdict": verdict, "events": events}))


def lacking(ways: Iterable[str]) -> set[str]:
    """Return the ways whose product has no package here."""
    packages = {"LMDB": "lmdb", "RocksDB": "rocksdict"}
    missing = [product for product, package in packages.items() if find_spec(package) is None]
    return {way for way in ways if any(product in way for product in missing)}
