"""Events as Parquet, with their version in its metadata and a checksum for each page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import pyarrow as pa
from pyarrow import parquet

from gapless.traces.events.encoded_batch import is_text
from gapless.traces.events.event import NAME, ROWS, VERSION, NoEvent, Origin, Vocabulary
from gapless.traces.files.remote import RemotePath, store_error
from gapless.traces.problems import Unreadable, shown

ORIGIN = {field.name: f"{NAME}-{field.name}" for field in fields(Origin)}  # the keys of the metadata that say it

DICTIONARIES = ("source", "spec", "trace", "action", "outcome")  # the columns of text that repeat themselves

MOST = 1 << 20  # events of a stretch, or thereabouts: some 200 MB of columns
LARGEST = 1 << 27  # bytes of a row group, decompressed, if it has few rows: pages are decompressed as a whole
OF_A_ROW = 1 << 12  # bytes of one row in a larger group, at most
GROUPED = 4  # times as many events as `ROWS` are in a row group of few traces
LONG = 64  # events of a trace, from which on these are few

Events = TypeVar("Events")


def origin(path: Path, file: BinaryIO) -> Origin:
    """Read the origin of all events from the metadata. Raises Unreadable."""
    with _explained(path):
        metadata = _metadata(_opened(path, file))
    if strange := [key for key in metadata if key.startswith(NAME) and key not in (NAME, *ORIGIN.values())]:
        raise Unreadable(
            f"{shown(path)}: its metadata has a key {shown(strange[0])}, expected {NAME}, and perhaps "
            f"{' and '.join(ORIGIN.values())}: write it with these alone"
        )
    return Origin(**{name: metadata[key] for name, key in ORIGIN.items() if metadata.get(key)})


def stretches(path: Path, file: BinaryIO, size: int) -> Iterator[tuple[int, int, int]]:
    """Group consecutive row groups into stretches of `size` bytes.

    Yields the first group, the one after the last, and the bytes of each. Bytes do not determine the number of events:
    regular ones take half a byte. Memory grows with the number of events.
    """
    with _explained(path):
        metadata = _opened(path, file).metadata
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        sizes = [(group.total_byte_size, group.num_rows) for group in groups]
    low = total = rows = 0
    for number, (bytes_, count) in enumerate(sizes):
        total, rows = total + bytes_, rows + count
        if total >= size or rows >= MOST:
            yield low, number + 1, total
            low, total, rows = number + 1, 0, 0
    if low < len(sizes) or not sizes:
        yield low, len(sizes), total


def spans(path: Path, file: BinaryIO, low: int, high: int | None, asked: frozenset[str]) -> dict[str, tuple[Any, Any]]:
    """Return the minimum and maximum of the columns `asked` for in the row groups `low:high`.

    Columns without complete statistics are left out. A field of `args` is named as in `args.number`. Raises Unreadable.
    """
    with _explained(path):
        source = _opened(path, file)
        paths = [source.schema.column(number).path for number in range(len(source.schema))]
        chosen = [number for number, name in enumerate(paths) if name in asked]
        found: dict[str, tuple[Any, Any]] = {}
        silent: set[str] = set()
        for number in range(source.num_row_groups)[low:high]:
            _look_at(source, number, [paths[at] for at in chosen])
            group = source.metadata.row_group(number)
            for at in chosen:
                name, known = paths[at], group.column(at).statistics
                if known is None or not known.has_min_max:
                    silent |= {name} if known is None or known.num_values else set()
                    continue
                before = found.get(name, (known.min, known.max))
                found[name] = min(before[0], known.min), max(before[1], known.max)
    return {name: span for name, span in found.items() if name not in silent}


def read(
    path: Path,
    file: BinaryIO,
    low: int,
    high: int | None,
    sound: Callable[[pa.RecordBatch], Events],
    columns: list[str] | None = None,
    spared: frozenset[str] = frozenset(),
    *,
    ahead: bool = False,
) -> Iterator[Events]:
    """Read the row groups `low:high`, and check that they are complete; `sound` converts each batch.

    Texts stay dictionary-encoded as in the file. `columns`: which are read, default: all, except those of `spared` that
    are null throughout these groups: a missing field means the same. `ahead`: a thread reads the next batch while one
    is judged.

    Raises Unreadable; NoEvent with the number of the row in the file.
    """
    with _explained(path):
        source = _in_dictionaries(path, file, _opened(path, file))
        rows = [source.metadata.row_group(number).num_rows for number in range(source.num_row_groups)]
        if sum(rows) != source.metadata.num_rows:
            raise ValueError(f"it should have {source.metadata.num_rows} rows, and its row groups have {sum(rows)}")
        before, behind = sum(rows[:low]), sum(rows[:high])
        groups = list(range(len(rows)))[low:high]
        if columns is None and spared:
            columns = _not_all_null(source, groups, spared)
        batches = _batches(source, lambda: _opened(path, file), groups, columns)
        for batch in _ahead(batches) if ahead else batches:
            try:
                yield sound(batch)
            except NoEvent as wrong:
                raise NoEvent(before + wrong.row, wrong.what) from wrong
            before += batch.num_rows
        if before != behind:
            raise ValueError(f"it should have {behind} rows up to here, and {before} could be read")


def _batches(
    source: parquet.ParquetFile, plain: Callable[[], parquet.ParquetFile], groups: list[int], columns: list[str] | None
) -> Iterator[pa.RecordBatch]:
    """Read the rows of some row groups. `plain`: the same file without dictionary encoding.

    pyarrow cannot make dictionaries of texts in delta encodings (DuckDB writes some). It fails at the first of them:
    from there on all texts are read plain. A damaged file fails again.
    """
    done = 0
    try:
        for batch in source.iter_batches(ROWS, row_groups=groups, columns=columns, use_threads=False):
            yield batch
            done += batch.num_rows
    except OSError:
        rest = plain().iter_batches(ROWS, row_groups=groups, columns=columns, use_threads=False)
    else:
        return
    for batch in rest:
        known = min(done, batch.num_rows)
        done -= known
        if known < batch.num_rows:
            yield batch.slice(known)


def _ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same batches; a thread reads the next one while one is in use."""
    with ThreadPoolExecutor(1) as reader:
        try:
            waiting = reader.submit(next, batches, None)
        except RuntimeError:  # no thread may be started
            yield from batches
            return
        while (batch := waiting.result()) is not None:
            waiting = reader.submit(next, batches, None)
            yield batch


def _not_all_null(source: parquet.ParquetFile, groups: Sequence[int], spared: frozenset[str]) -> list[str] | None:
    """Select the columns without the integers of `spared` that are null throughout these groups; None for all.

    Recorders write the arguments of all specs, but a stretch uses those of one or two: to make eighty columns of nulls
    takes three times as long as to read the others.
    """
    paths = [source.schema.column(number).path for number in range(len(source.schema))]
    if len(set(paths)) < len(paths) or not groups:
        return None
    may_be = spared & _integers(source.schema_arrow)
    idle = {number for number, path in enumerate(paths) if path in may_be}
    for at in groups:
        _look_at(source, at, [paths[number] for number in idle])
        group = source.metadata.row_group(at)
        idle -= {number for number in idle if not _is_null(group.column(number), group.num_rows)}
    return [path for number, path in enumerate(paths) if number not in idle] if idle else None


def _look_at(source: parquet.ParquetFile, group: int, columns: list[str]) -> None:
    """Read one row of some columns: a damaged footer raises here, and would crash the process in `column`."""
    if columns:
        next(source.iter_batches(1, row_groups=[group], columns=columns, use_threads=False), None)


def _integers(schema: pa.Schema) -> frozenset[str]:
    """Return the integer fields of structs, by their Parquet names."""
    structs = [field for field in schema if pa.types.is_struct(field.type)]
    leaves = [(f"{field.name}.{inner.name}", inner.type) for field in structs for inner in field.type]
    return frozenset(name for name, kind in leaves if pa.types.is_integer(kind))


def _is_null(chunk: parquet.ColumnChunkMetaData, rows: int) -> bool:
    """True if all statistics agree that the column is null in every row of the group."""
    known = chunk.statistics
    if known is None or known.has_min_max or known.num_values:
        return False
    return known.null_count == chunk.num_values == rows


def _in_dictionaries(path: Path, file: BinaryIO, source: parquet.ParquetFile) -> parquet.ParquetFile:
    """Open the same file with its text columns read as dictionaries; others keep their types.

    For a remote file, all ranges of some row groups are requested together: each answer takes time.
    """
    texts = [field.name for field in source.schema_arrow if field.name in DICTIONARIES and is_text(field.type)]
    return parquet.ParquetFile(
        file,
        metadata=source.metadata,
        read_dictionary=texts,
        pre_buffer=isinstance(path, RemotePath),
        page_checksum_verification=True,
    )


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Translate errors of pyarrow about damaged or foreign files into our own messages."""
    try:
        yield
    except pa.ArrowMemoryError as error:  # that is no fault of the file
        raise Unreadable(f"{shown(path)}: cannot be read (not enough memory: {shown(error)})") from error
    except (pa.ArrowException, OSError, ValueError) as error:  # pyarrow raises OSError for damaged pages
        if why := store_error(error, path):
            raise Unreadable(f"{shown(path)}: cannot be read ({why})") from error
        raise Unreadable(
            f"{shown(path)}: {shown(error)}; expected a Parquet file of {NAME}: copy it again, "
            "record it again, or name it .ndjson if it is that"
        ) from error


def _opened(path: Path, file: BinaryIO) -> parquet.ParquetFile:
    """Open the file if it is of our version. Raises Unreadable.

    With hundreds of row groups a footer takes longer to read than some of them: a process reads it once.
    """
    if isinstance(path, RemotePath):  # to ask whether it is still the same takes as long
        source = parquet.ParquetFile(file, page_checksum_verification=True)
        _require_bounds(source.metadata)
    else:
        found = path.stat()
        footer = _footer(path, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        source = parquet.ParquetFile(file, metadata=footer, page_checksum_verification=True)
    check_version(path, _metadata(source).get(NAME, ""))
    return source


def _metadata(source: parquet.ParquetFile) -> dict[str, str]:
    """Read the metadata of a file.

    A writer may add Arrow's schema (polars does) without our keys in it, and pyarrow then shows only that schema's
    metadata.
    """
    known = (source.schema_arrow.metadata or {}) | (source.metadata.metadata or {})
    return {key.decode(errors="replace"): value.decode(errors="replace") for key, value in known.items()}


@lru_cache(maxsize=4)
def _footer(path: Path, *_same: int) -> parquet.FileMetaData:
    """Read the footer of a file once, as long as the file is unchanged."""
    return _require_bounds(parquet.read_metadata(path))


def _require_bounds(footer: parquet.FileMetaData) -> parquet.FileMetaData:
    """Check that no row group takes much memory for few rows: kilobytes become gigabytes. Raises ValueError."""
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        if group.total_byte_size > max(LARGEST, OF_A_ROW * group.num_rows):
            raise ValueError(
                f"row group {number} has {group.total_byte_size >> 20:,} MiB for its rows ({group.num_rows:,}), and "
                f"{LARGEST >> 20} MiB or {OF_A_ROW:,} bytes a row are enough for events"
            )
    return footer


def check_version(path: Path, version: str) -> None:
    """Check that the file is of the version that is read here. Raises Unreadable."""
    if not version:
        raise Unreadable(
            f"{shown(path)}: its metadata does not say {NAME} = {VERSION}, so its columns may mean anything; "
            "write it with that key, and as columns the keys of an event (gapless schema events)"
        )
    if version != str(VERSION):
        raise Unreadable(
            f"{shown(path)}: {NAME} of version {shown(version)}, expected {VERSION}; check it with the gapless that "
            "belongs to it, or record it again"
        )


def write(file: BinaryIO, batches: Iterable[pa.RecordBatch], vocabulary: Vocabulary, of: Origin) -> int:
    """Write batches of the vocabulary's schema, and return the number of events."""
    count = 0
    metadata = {ORIGIN[name]: value for name, value in asdict(of).items() if value}
    integers = ("position", *(f"args.{name}" for name in vocabulary.arguments))
    with parquet.ParquetWriter(
        file,
        vocabulary.schema.with_metadata({NAME: str(VERSION)} | metadata),
        compression="zstd",
        use_dictionary=list(DICTIONARIES),  # type: ignore[arg-type]  # the stubs know only all columns, or none
        column_encoding=dict.fromkeys(integers, "DELTA_BINARY_PACKED"),
        write_page_checksum=True,
    ) as writer:
        for table in _tables(batches, vocabulary.schema.empty_table()):
            writer.write_table(table, GROUPED * ROWS if _are_few(table.column("trace")) else ROWS)
            count += table.num_rows
    return count


def _tables(batches: Iterable[pa.RecordBatch], waiting: pa.Table) -> Iterator[pa.Table]:
    """Group events into tables of `GROUPED` times `ROWS`, or of `ROWS` if they are of many traces.

    Events of many traces do not wait: their table would be written in groups of `ROWS` anyway. The last table has the
    rest.
    """
    full = 0  # how many events the next table has; 0 while too few of them wait to say so
    for batch in batches:
        waiting = pa.concat_tables([waiting, pa.Table.from_batches([batch])])
        while waiting.num_rows >= (full or ROWS):
            full = full or (GROUPED * ROWS if _may_be_few(waiting) else ROWS)
            if waiting.num_rows >= full:
                yield waiting.slice(0, full)
                waiting, full = waiting.slice(full), 0
    if waiting.num_rows:
        yield waiting


def _may_be_few(waiting: pa.Table) -> bool:
    """True if the events may be of few traces once there are `GROUPED` times `ROWS` of them."""
    return LONG * len(waiting.column("trace").slice(0, ROWS).unique()) <= GROUPED * ROWS


def _are_few(traces: pa.ChunkedArray[Any]) -> bool:
    """True if events are of few traces, so that they belong in one row group.

    Each group has a cost to describe. Short traces are judged where they are, and a group lists their names.
    """
    return LONG * len(traces.unique()) <= len(traces)
