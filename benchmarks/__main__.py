"""One table: how fast the checker is, what memory it takes, how soon it starts.

    python -m benchmarks [--records 2000000] [--ten] [--traces 10000000] [--files 50000] [--dir DIR]
                         [--only durable reading …]
    python -m benchmarks --page [--greatest]    # how checks scale, as docs/performance.md

Every run is a process of its own. All rows are run once uncounted, so that files are in the page cache and
kernels compiled, and then three times in turn, so that a busy moment does not fall on one row alone. The table
shows the median, and the most anonymous memory that a process and its descendants ever had together.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks import bigstore, bigtraces, dataframes, dispatched, durable, layouts, reading, small_files, user_specs
from benchmarks.bigstore import Extent, Shape, extent
from benchmarks.implementation import BATCH, BODY
from benchmarks.kafka_directories import rows as kafka_rows
from benchmarks.protocols import finite_rows
from gapless.properties.exploration.bounds import bound_of
from gapless.properties.exploration.search import How, explore
from gapless.spec.catalog import SPECS

RUNS = 3
MORE_RUNS = 7  # of rows that are compared with one another closely
SAMPLED_EVERY = 0.01  # seconds
SMALL = 1000  # records of the store for the cold start
QUEUES = 15_000  # of the store with very many queues
FOR_EACH = 10  # records in each of them, or thereabouts: they are chosen at random
SHORT = 300 * 20  # bytes of its queues' files: of the usual ones, reading what was written would take minutes
READ = 10  # so many times fewer messages are read, in calls of a thousand and one by one
CLIENTS = 8  # threads that send one transaction after another
RECORDED = 4  # so many times fewer messages where every step is recorded
SLOW = 0.1  # M records/s, below which records/s are shown
BUSY = 0.5  # processes that wanted a core in the minute before
EXPLORED: tuple[tuple[str, How], ...] = (
    ("queue", "plain"), ("queue", "native"), ("transaction", "plain"), ("transaction", "native"), ("log", "native"),
    ("dispatch", "native"),
)  # fmt: skip
RECORD = 91 + BODY + 8 + 10  # bytes: the fixed part, the body, a topic of eight letters at most, a tag
SCAN = "scan only"  # the row that the others are compared with


@dataclass(frozen=True)
class Row:
    """A command to measure, and the store that it must find whole."""

    name: str
    command: list[str]
    store: Extent
    cold: bool = False  # timed from outside, with all that a start takes
    waits: bool = False  # its seconds are those of one message
    scans: bool = True  # it reads the log, so that its rate can be compared with the scan's
    without: str = ""  # the row to compare its rate with: the same without transactions, with one worker
    runs: int = RUNS


@dataclass(frozen=True)
class Measurement:
    """The seconds of a run, and its peak of anonymous memory."""

    seconds: float
    anonymous: int  # bytes
    events: int = 0  # that were judged, of all specs; 0 if unknown


@dataclass(frozen=True)
class Invalid:
    """A run did something else than its row says, so its time means nothing."""

    because: str


def main() -> None:
    """Make the stores that are not there yet, measure every row, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="How fast is the checker?")
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--ten", action="store_true", help="also check ten times the records")
    parser.add_argument("--traces", type=int, default=0, help="also check a Parquet file of so many short traces")
    parser.add_argument("--files", type=int, default=0, help="also check a folder of so many small files of events")
    parser.add_argument("--dir", type=Path, help="where stores are kept, and looked for the next time")
    parser.add_argument("--page", action="store_true", help="measure how checks scale instead, for docs/performance.md")
    parser.add_argument("--greatest", action="store_true", help="with --page: also 10⁸ events and 10⁷ traces")
    parser.add_argument("--only", nargs="+", metavar="PART", help="the rows of some parts, of those that are measured")
    chosen = parser.parse_args()
    stores = chosen.dir or Path(tempfile.gettempdir(), "gapless-benchmarks")
    if chosen.page:
        from benchmarks import performance  # noqa: PLC0415 - it measures by what is here

        performance.write(stores, greatest=chosen.greatest)
        return
    progress = Console(stderr=True)
    load = os.getloadavg()[0]
    parts: dict[str, Callable[[], Iterator[Row]]] = {
        "checks": lambda: _rows(stores, chosen.records, ten=chosen.ten),
        "layouts": lambda: _layout_rows(stores, chosen.records // 2),
        "implementation": lambda: _implementation_rows(stores, chosen.records),
        "transactions": lambda: _decided_rows(stores, chosen.records),
        "durable": lambda: _durable_rows(stores, chosen.records),
        "reading": lambda: _reading_rows(stores, chosen.records // READ),
        "events": lambda: _dispatched_rows(stores, chosen.records),
        "traces": lambda: _trace_rows(stores, chosen.traces),
        "files": lambda: _file_rows(stores, chosen.files),
        "dataframes": lambda: _dataframe_rows(stores, chosen.records),
        "explored": _explored_rows,
        "finite": lambda: (Row(*row) for row in finite_rows(stores)),
        "user specs": lambda: (Row(*row) for row in user_specs.rows(chosen.records)),
        "kafka": lambda: (Row(*row) for row in kafka_rows(stores, chosen.records)),
    }
    if unknown := set(chosen.only or ()) - set(parts):
        parser.error(f"{', '.join(sorted(unknown))}: expected some of {', '.join(parts)}")
    rows = [row for name in chosen.only or parts for row in parts[name]()]
    turns = [row for turn in range(1 + MORE_RUNS) for row in rows if turn <= row.runs]
    runs: dict[str, list[Measurement | Invalid]] = {}
    for row in track(turns, "measuring", console=progress, disable=not progress.is_terminal):
        runs.setdefault(row.name, []).append(_run(row))
    outcomes = [(row, _middle(runs[row.name][1:])) for row in rows]
    _print(outcomes, load)
    sys.exit(any(isinstance(outcome, Invalid) for _, outcome in outcomes))


def _rows(stores: Path, records: int, *, ten: bool) -> Iterator[Row]:
    """The rows in order; their stores are made on the way."""

    def row(name: str, function: str, store: Path, *arguments: int) -> Row:
        return Row(name, _call(function, store, *arguments), extent(store))

    store = _made(stores, Shape(records))
    whole = extent(store)
    yield row(SCAN, "scan", store)
    yield row("zlib.crc32 over the same bytes", "checksum", store, whole.bytes, whole.records)
    for jobs in (1, 2):
        yield row(f"check, jobs={jobs}", "check", store, jobs)
    yield from _transaction_rows(stores, records)
    if ten:
        large = _made(stores, Shape(10 * records))
        yield row("check, jobs=1, 10 × the records", "check", large, 1)
        yield row("check, jobs=2, 10 × the records", "check", large, 2)
    yield from _queue_rows(stores)
    small = _made(stores, Shape(SMALL))
    command = [sys.executable, "-m", "gapless", "check", str(small)]
    yield Row(f"cold start, {SMALL:,} records", command, extent(small), cold=True)
    few = _made_traces(stores, SMALL)
    command = [sys.executable, "-m", "gapless", "check", str(few)]
    yield Row(f"cold start, {SMALL:,} traces", command, Extent(len(bigtraces.EVENTS) * SMALL, 0), cold=True)


def _queue_rows(stores: Path) -> Iterator[Row]:
    """Checks of the same few records in the usual queues and in very many: what each queue costs."""
    few = Shape(QUEUES * FOR_EACH, queue_file_size=SHORT)
    many = replace(few, topics=tuple(f"topic-{topic:04}" for topic in range(QUEUES // few.queues)))
    usual = ""
    for shape in (few, many):
        store = _made(stores, shape)
        name = f"check, jobs=1, {few.records:,} records in {len(shape.topics) * shape.queues:,} queues"
        yield Row(name, _call("check", store, 1), extent(store), without=usual, runs=MORE_RUNS)
        usual = name


def _layout_rows(stores: Path, records: int) -> Iterator[Row]:
    """Yield checks of stores in other layouts, each next to a plain one of as many records."""
    plain, store = f"check, jobs=1, {records:,} records in the usual layout", _made(stores, Shape(records))
    yield Row(plain, _call("check", store, 1), extent(store))
    for layout, make in layouts.LAYOUTS.items():
        store = _made_by(make, stores / f"{layout}-{records}", Shape(records))
        name = f"check, jobs=1, {records:,} records, {layout}"
        yield Row(name, _call("check", store, 1), extent(store), without=plain)


def _transaction_rows(stores: Path, records: int) -> Iterator[Row]:
    """Yield checks of stores with a transaction among every ten records, with and without client logs."""
    shape = Shape(records, transactions=records // 10)
    folder = _made(stores, shape)
    whole = extent(folder / "store")
    for what, clients in (("", ()), (" and a client log", (folder / bigstore.CLIENT_LOG,))):
        for jobs in (1, 2):
            name = f"check, jobs={jobs}, {shape.transactions:,} transactions{what}"
            yield Row(name, _call("check", folder, jobs, *clients), whole, without=f"check, jobs={jobs}")


def _implementation_rows(stores: Path, records: int) -> Iterator[Row]:
    """Yield the speed of writing, building and recovery of the implementation; its files are deleted afterwards."""
    store = _made(stores, Shape(records))
    whole = extent(store)

    def row(name: str, function: str, extent: Extent, *arguments: Path | int, **more: Any) -> Row:
        command = _call(function, *arguments, of="implementation")
        return Row(f"impl: {name}", command, extent, scans=False, **more)

    for how, function in (("one at a time", "append"), (f"in batches of {BATCH:,}", "append_batch")):
        name = f"append, {BODY} bytes, {how}"
        written = Extent(records, records * RECORD)
        yield row(name, function, written, stores, records)
        some = records // RECORDED // BATCH * BATCH  # for the recording is judged, which takes longer
        written = Extent(some, some * RECORD)
        yield row(f"{name}, recorded", f"{function}_recorded", written, stores, some, without=f"impl: {name}")
    columns = f"append, {BODY} bytes, in batches of {BATCH:,}"
    some = records // BATCH * BATCH
    written = Extent(some, some * RECORD)
    yield row(f"{columns}, as lists", "append_list", written, stores, some, without=f"impl: {columns}")
    one = "build queues while appending, 1 worker"
    yield row(one, "build_beside", written, stores, some, 1, runs=MORE_RUNS)
    two = "build queues while appending, 2 workers"
    yield row(two, "build_beside", written, stores, some, 2, runs=MORE_RUNS, without=f"impl: {one}")
    one = "build queues, 1 worker"
    yield row(one, "build", whole, store, stores, 1, runs=MORE_RUNS)
    for workers in (2, 8):
        name = f"build queues, {workers} workers"
        yield row(name, "build", whole, store, stores, workers, runs=MORE_RUNS, without=f"impl: {one}")
    yield row("recovery scan", "recover", whole, store)


def _decided_rows(stores: Path, records: int) -> Iterator[Row]:
    """Yield transactions of our own store, and two plain messages for each: the disk's share of the work."""

    def row(name: str, function: str, count: int, *arguments: int, **more: Any) -> Row:
        command = _call(function, stores, count, *arguments, of="transactions")
        return Row(f"transactions: {name}", command, Extent(count, 0), scans=False, **more)

    some = max(1, records // 10 // BATCH) * BATCH
    yield row(f"begun and committed in batches of {BATCH:,}", "batched", some)
    plain = f"two plain messages each, synchronous, {CLIENTS} threads"
    few = max(CLIENTS, records // 1000 // CLIENTS * CLIENTS)
    yield row(plain, "two_appends", few, CLIENTS)
    name = f"begun and committed one by one, synchronous, {CLIENTS} threads"
    yield row(name, "one_by_one", few, CLIENTS, without=f"transactions: {plain}")
    yield row("undecided halves that a round of checks puts back", "check_round", some)


def _durable_rows(stores: Path, records: int) -> Iterator[Row]:
    """Yield messages and transactions of ours, one by one, and of what people would use instead."""
    stores.mkdir(parents=True, exist_ok=True)

    def row(what: str, function: str, way: str, count: int, first: str, *threads: int, **more: bool) -> Row:
        command = _call(function, way, stores, count, *threads, of="durable")
        without = f"{what}: {first}" if way != first else ""
        return Row(f"{what}: {way}", command, Extent(count, 0), scans=False, without=without, runs=MORE_RUNS, **more)

    few, many = max(CLIENTS, records // 2000 // CLIENTS * CLIENTS), max(CLIENTS, records // 20)
    for what, function, ways, count in (
        ("durable append", "durable", durable.DURABLE, few), ("lazy append", "lazy", durable.LAZY, many),
    ):  # fmt: skip
        first, *_ = ways
        yield from (row(what, function, way, count, first) for way in ways if way not in durable.MISSING)
    for threads in (1, CLIENTS):
        name = f"durable transaction, threads={threads}"
        for way in durable.DECIDED:
            yield row(name, "decided", way, few, "SQLite FULL", threads)
    for way in durable.VISIBLE:
        yield row("append to visible, p99", "visible", way, few, "", waits=True)


def _reading_rows(stores: Path, records: int) -> Iterator[Row]:
    """Yield reads of a queue, ours and those of alternatives: a thousand rows a call, or one by number."""
    records = max(reading.A_CALL, records // reading.A_CALL * reading.A_CALL)
    stores.mkdir(parents=True, exist_ok=True)
    for what, function, ways, measure in (
        (f"{reading.A_CALL:,} a call", "queue", reading.MANY, "SQLite, fetchall"),
        ("one by number", "one", reading.ONE, "LMDB"),
    ):
        for way in ways:
            if way not in reading.MISSING:
                command = _call(function, way, stores, records, of="reading")
                without = f"reading {what}: {measure}" if way != measure else ""
                yield Row(
                    f"reading {what}: {way}", command, Extent(records, 0), scans=False, without=without, runs=MORE_RUNS
                )


def _call(function: str, *arguments: Path | int | str, of: str = "rows") -> list[str]:
    """The command for a function of `rows`, or of another module here."""
    given = tuple(str(argument) if isinstance(argument, Path) else argument for argument in arguments)
    return [sys.executable, "-c", f"from benchmarks import {of}; {of}.{function}(*{given!r})"]


def _trace_rows(stores: Path, traces: int) -> Iterator[Row]:
    """Checks of one file with millions of short traces, here and on Spark: cold, as whole commands, and warm."""
    if traces:
        path = _made_traces(stores, traces)
        whole = Extent(len(bigtraces.EVENTS) * traces, path.stat().st_size)
        command, spark = [sys.executable, "-m", "gapless", "check", str(path)], ["--engine", "spark"]
        for name, how in (("local", ["--jobs", "2"]), ("Spark local[2]", [*spark, "--master", "local[2]"])):
            yield Row(f"{traces:,} traces, {name}, cold", [*command, *how], whole, cold=True, scans=False)
        yield Row(f"{traces:,} traces, Spark local[2], warm", _call("check_again", path), whole, scans=False)


def _dataframe_rows(stores: Path, events: int) -> Iterator[Row]:
    """Yield a DataFrame that Spark sorts by trace and position, and the same one judged."""
    events = events // dataframes.LENGTH * dataframes.LENGTH
    path = stores / f"dataframe-{events}.parquet"
    if not path.exists():
        stores.mkdir(parents=True, exist_ok=True)
        dataframes.make(path, events)
    whole = Extent(events, path.stat().st_size)
    alone = f"DataFrame of {events:,} events, repartition and sort alone"
    yield Row(alone, _call("sort", path, of="dataframes"), whole, scans=False)
    judged = f"DataFrame of {events:,} events, gapless.spark.check"
    yield Row(judged, _call("judge", path, of="dataframes"), whole, scans=False, without=alone)


def _file_rows(stores: Path, files: int) -> Iterator[Row]:
    """Checks of a folder of many small files, here and on Spark: after the start of either."""
    if files:
        folder = stores / f"small-files-{files}"
        if not folder.exists():
            small_files.make(folder, files)
        whole = small_files.extent(folder, files)
        for name, *engine in (
            ("jobs=1", "local", None, 1), ("jobs=2", "local", None, 2), ("Spark local[2]", "spark", "local[2]"),
        ):  # fmt: skip
            command = [sys.executable, "-c", _checking(folder, *engine)]
            yield Row(f"{files:,} files of {len(bigtraces.EVENTS)} events, {name}", command, whole, scans=False)


def _dispatched_rows(stores: Path, events: int) -> Iterator[Row]:
    """Yield checks of recorded events of dispatch, as NDJSON and as Parquet, and those of alternatives."""
    for suffix in dispatched.SUFFIXES:
        path = stores / f"dispatched-{events}{suffix}"
        if not path.exists():
            stores.mkdir(parents=True, exist_ok=True)
            dispatched.make(path, events)
        whole = Extent(dispatched.count(events), path.stat().st_size)
        name = f"events, {suffix[1:]}"
        peers = [
            (peer, function.__name__, more) for peer, _, function, more, form in dispatched.THERE if form == suffix
        ]
        first = f"{name}: {peers[0][0]}" if peers else ""
        for peer, function, more in peers:
            without = first if f"{name}: {peer}" != first else ""
            command = _call(function, path, *more, of="dispatched")
            yield Row(f"{name}: {peer}", command, whole, scans=False, without=without)
        for jobs in (1, 2):
            command = [sys.executable, "-c", _checking(path, "local", None, jobs)]
            yield Row(f"{name}: check, jobs={jobs}", command, whole, scans=False, without=first)


def _checking(path: Path, *how: str | int | None) -> str:
    """A program that checks a file or a folder of events."""
    return f"from benchmarks import rows; rows.check_traces(*{(str(path), *how)!r})"


def _explored_rows() -> Iterator[Row]:
    """Explorations: steps tried stand where records do; one that is not timed counts them, and compiles."""
    for spec, how in EXPLORED:
        found = explore(SPECS[spec], bound_of(SPECS[spec], wide=how == "native"), how=how)
        command = [sys.executable, "-c", f"from benchmarks import rows; rows.explore({spec!r}, {how!r})"]
        yield Row(f"explore {spec}, {how}, steps tried", command, Extent(found.tried, 0), scans=False)


def _made_traces(stores: Path, traces: int) -> Path:
    """The file of so many traces; written under another name, so that it is whole or not there."""
    path = stores / f"traces-{traces}.parquet"
    if not path.exists():
        stores.mkdir(parents=True, exist_ok=True)
        bigtraces.make(path, traces)
    return path


def _made(stores: Path, shape: Shape) -> Path:
    """The store of this shape, or with transactions the folder that has it and its client log.

    Made under another name, so that it is whole or not there.
    """
    make = bigstore.make_with_clients if shape.transactions else bigstore.make
    name = f"transactions-{shape.records}" if shape.transactions else f"store-{shape.records}"
    if shape.queue_file_size == SHORT:
        name += f"-in-{len(shape.topics) * shape.queues}-queues"
    return _made_by(make, stores / name, shape)


def _made_by(make: Callable[[Path, Shape], object], store: Path, shape: Shape) -> Path:
    """Make the files of this shape, unless they exist."""
    if not store.exists():
        store.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="making-", dir=store.parent) as making:
            make(Path(making, "store"), shape)
            Path(making, "store").rename(store)
    return store


def _run(row: Row) -> Measurement | Invalid:
    began = time.perf_counter()
    process = subprocess.Popen(row.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with _watched(process.pid) as samples:
        output, errors = process.communicate()
    seconds = time.perf_counter() - began
    if process.returncode:
        lines = (errors or output).strip().splitlines() or ["no output"]
        return Invalid(f"exit code {process.returncode}: {lines[-1]}")
    if row.cold:
        return Measurement(seconds, max(samples))
    answer = json.loads(output)
    if (answer["verdict"], answer["records"]) != ("conforms", row.store.records):
        return Invalid(f"{answer['verdict']}, {answer['records']:,} of {row.store.records:,} records")
    return Measurement(answer["seconds"], max(samples), answer["events"])


def _middle(runs: list[Measurement | Invalid]) -> Measurement | Invalid:
    """The median time and the greatest memory; one invalid run makes all invalid."""
    measured = [run for run in runs if isinstance(run, Measurement)]
    invalid = [run for run in runs if isinstance(run, Invalid)]
    if invalid:
        return invalid[0]
    seconds = statistics.median(run.seconds for run in measured)
    return Measurement(seconds, max(run.anonymous for run in measured), measured[0].events)


@contextmanager
def _watched(process: int) -> Iterator[list[int]]:
    """Samples of the anonymous memory of a process and its descendants, while the block lasts."""
    samples, over = [0], threading.Event()

    def sample() -> None:
        while not over.wait(SAMPLED_EVERY):
            samples.append(sum(_anonymous(member) for member in _family(process)))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()


def _family(process: int) -> Iterator[int]:
    yield process
    with suppress(OSError):  # it may end while it is looked at
        for children in Path(f"/proc/{process}/task").glob("*/children"):
            for child in _read(children).split():
                yield from _family(int(child))


def _anonymous(process: int) -> int:
    """Bytes of anonymous memory; what processes share counts once for each of them."""
    lines = (line.split() for line in _read(Path(f"/proc/{process}/status")).splitlines())
    return sum(1024 * int(words[1]) for words in lines if words[0] in {"RssAnon:", "RssShmem:"})


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # the process has ended meanwhile
        return ""


def _print(outcomes: list[tuple[Row, Measurement | Invalid]], load: float) -> None:
    """The table, with rules on a terminal and plain in a pipe; then what to know before believing it."""
    console = Console()
    console.width = max(console.width, 120)
    table = Table(box=box.SIMPLE if console.is_terminal else None)
    for heading in ("", "seconds", "M records/s", "M events/s", "MB/s", "to scan only", "to without", "anonymous MiB"):
        table.add_column(heading, justify="right" if heading else "left")
    rates: dict[str, float] = {}
    for row, outcome in outcomes:
        if isinstance(outcome, Invalid):
            table.add_row(row.name, "invalid")
            continue
        if row.waits:
            table.add_row(row.name, f"{outcome.seconds:.4f}")
            continue
        rates[row.name] = rate = row.store.records / outcome.seconds / 1e6
        speed = (
            f"{rate:.2f}" if rate >= SLOW else f"{1e6 * rate:,.0f}/s",
            f"{outcome.events / outcome.seconds / 1e6:.2f}" if outcome.events else "",
            f"{row.store.bytes / outcome.seconds / 1e6:,.0f}" if row.store.bytes else "",
            f"{rate / rates[SCAN]:.2f}" if SCAN in rates and row.scans else "",
            f"{rate / rates[row.without]:.2f}" if row.without in rates else "",
        )
        memory = f"{outcome.anonymous / 2**20:,.0f}"
        table.add_row(row.name, f"{outcome.seconds:.2f}", *(("",) * len(speed) if row.cold else speed), memory)
    console.print(table)
    for row, outcome in outcomes:
        if isinstance(outcome, Invalid):
            console.print(f"{row.name} is invalid: {outcome.because}", markup=False, highlight=False)
    if load > BUSY:
        console.print(f"The machine was busy before we began (load {load:.1f}): measure again.", highlight=False)


if __name__ == "__main__":
    main()
