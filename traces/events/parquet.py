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
from gapless.traces.problems import Unreadable, shown
from gapless.traces.remote import RemotePath, told

ORIGIN = {field.name: f"{NAME}-{field.name}" for field in fields(Origin)}  # the keys of the metadata that say it

DICTIONARIES = ("source", "spec", "trace", "action", "outcome")  # the columns of text that repeat themselves

MOST = 1 << 20  # events of a stretch, or thereabouts: some 200 MB of columns
GROUPED = 4  # times as many events as `ROWS` are in a row group of few traces
LONG = 64  # events of a trace, from which on these are few

Events = TypeVar("Events")


def origin(path: Path, file: BinaryIO) -> Origin:
    """What the metadata says of all events. Raises Unreadable."""
    with _explained(path):
        said = _said(_opened(path, file))
    if strange := [key for key in said if key.startswith(NAME) and key not in (NAME, *ORIGIN.values())]:
        raise Unreadable(
            f"{shown(path)}: its metadata has a key {shown(strange[0])}, expected {NAME}, and perhaps "
            f"{' and '.join(ORIGIN.values())} (traces/README.md)"
        )
    return Origin(**{name: said[key] for name, key in ORIGIN.items() if said.get(key)})


def stretches(path: Path, file: BinaryIO, size: int) -> Iterator[tuple[int, int, int]]:
    """Row groups that follow one another and hold `size` bytes together: the first, the one behind the last, bytes.

    Bytes do not say how many events there are: regular ones take half a byte. What is held grows with these.
    """
    with _explained(path):
        metadata = _opened(path, file).metadata
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        sizes = [(group.total_byte_size, group.num_rows) for group in groups]
    low = held = rows = 0
    for number, (bytes_, count) in enumerate(sizes):
        held, rows = held + bytes_, rows + count
        if held >= size or rows >= MOST:
            yield low, number + 1, held
            low, held, rows = number + 1, 0, 0
    if low < len(sizes) or not sizes:
        yield low, len(sizes), held


def spans(path: Path, file: BinaryIO, low: int, high: int | None, asked: frozenset[str]) -> dict[str, tuple[Any, Any]]:
    """The lowest and the highest value of the columns `asked` for in the row groups `low:high`, where all are said.

    A field of `args` is called such as `args.number`. Raises Unreadable.
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
                name, said = paths[at], group.column(at).statistics
                if said is None or not said.has_min_max:
                    silent |= {name} if said is None or said.num_values else set()
                    continue
                before = found.get(name, (said.min, said.max))
                found[name] = min(before[0], said.min), max(before[1], said.max)
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
    """The rows of the row groups `low:high`, each batch as `sound` has it, and all that the groups promise.

    Texts stay what they are in the file: indices into a dictionary. `columns`: which are read, default: all, but for
    those of `spared` that are nulls throughout these groups: a field that is missing means the same. `ahead`: a thread
    reads the next batch while one is judged.

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
    """The rows of some row groups. `plain`: the same file, its texts read as they are.

    Of texts that lie in a file as lengths or differences (DuckDB writes some so), pyarrow makes no dictionaries. That
    is known where it meets them: from there on all are read as they are. What is torn fails again.
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
    """The same batches; while one is in use, the next one is read."""
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
    """The columns without those integers among `spared` that are null in every row of these groups; None for all.

    Every recorder writes the arguments of all specs, and a stretch has those of one or two: to make eighty columns of
    nulls takes thrice as long as to read what is there.
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
    """Read one row of some columns: a footer that is damaged raises here, and would end the process in `column`."""
    if columns:
        next(source.iter_batches(1, row_groups=[group], columns=columns, use_threads=False), None)


def _integers(schema: pa.Schema) -> frozenset[str]:
    """The fields of structs that are integers, as Parquet calls them."""
    structs = [field for field in schema if pa.types.is_struct(field.type)]
    leaves = [(f"{field.name}.{inner.name}", inner.type) for field in structs for inner in field.type]
    return frozenset(name for name, kind in leaves if pa.types.is_integer(kind))


def _is_null(chunk: parquet.ColumnChunkMetaData, rows: int) -> bool:
    """Whether a file says in every way it has that no row of a group has a value in this column."""
    said = chunk.statistics
    if said is None or said.has_min_max or said.num_values:
        return False
    return said.null_count == chunk.num_values == rows


def _in_dictionaries(path: Path, file: BinaryIO, source: parquet.ParquetFile) -> parquet.ParquetFile:
    """The same file, its columns of text read as dictionaries; what is no text keeps the type that is told of it.

    Elsewhere, all that is needed of some row groups is asked for at once: each answer takes its time.
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
    """What pyarrow says of a file that is none, or is torn, in a sentence of ours."""
    try:
        yield
    except pa.ArrowMemoryError as error:  # that is no fault of the file
        raise Unreadable(f"{shown(path)}: cannot be read (not enough memory: {shown(error)})") from error
    except (pa.ArrowException, OSError, ValueError) as error:  # pyarrow tells of torn pages by an OSError
        if why := told(error, path):
            raise Unreadable(f"{shown(path)}: cannot be read ({why})") from error
        raise Unreadable(
            f"{shown(path)}: {shown(error)}; expected a Parquet file of {NAME} (traces/README.md): copy it again, "
            "record it again, or name it .ndjson if it is that"
        ) from error


def _opened(path: Path, file: BinaryIO) -> parquet.ParquetFile:
    """The file, if it is of our version. Raises Unreadable.

    With hundreds of row groups a footer takes longer to read than some of them: a process reads it once.
    """
    if isinstance(path, RemotePath):  # to ask whether it is still the same takes as long
        source = parquet.ParquetFile(file, page_checksum_verification=True)
    else:
        found = path.stat()
        footer = _footer(path, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        source = parquet.ParquetFile(file, metadata=footer, page_checksum_verification=True)
    check_version(path, _said(source).get(NAME, ""))
    return source


def _said(source: parquet.ParquetFile) -> dict[str, str]:
    """The metadata of a file.

    Who leaves a schema of Arrow's beside it (polars does) need not say there what it says here, and pyarrow tells of
    that schema alone.
    """
    said = (source.schema_arrow.metadata or {}) | (source.metadata.metadata or {})
    return {key.decode(errors="replace"): value.decode(errors="replace") for key, value in said.items()}


@lru_cache(maxsize=4)
def _footer(path: Path, *_same: int) -> parquet.FileMetaData:
    """The footer of a file, as long as that is the same one."""
    return parquet.read_metadata(path)


def check_version(path: Path, version: str) -> None:
    """The file is of the version that is read here. Raises Unreadable."""
    if not version:
        raise Unreadable(
            f"{shown(path)}: its metadata does not say {NAME} = {VERSION}, so its columns may mean anything; "
            "write it with that key (traces/README.md)"
        )
    if version != str(VERSION):
        raise Unreadable(
            f"{shown(path)}: {NAME} of version {shown(version)}, expected {VERSION}; check it with the gapless that "
            "belongs to it, or record it again"
        )


def write(file: BinaryIO, batches: Iterable[pa.RecordBatch], vocabulary: Vocabulary, of: Origin) -> int:
    """Write batches of the vocabulary's schema; returns how many events they hold."""
    count = 0
    said = {ORIGIN[name]: value for name, value in asdict(of).items() if value}
    integers = ("position", *(f"args.{name}" for name in vocabulary.arguments))
    with parquet.ParquetWriter(
        file,
        vocabulary.schema.with_metadata({NAME: str(VERSION)} | said),
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
    """The same events in tables of `GROUPED` times `ROWS`, or of `ROWS` of many traces; the last holds the rest.

    What is of many traces does not wait: a table of it would be written in groups of `ROWS` all the same.
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
    """Whether events may be of few traces once there are `GROUPED` times `ROWS` of them."""
    return LONG * len(waiting.column("trace").slice(0, ROWS).unique()) <= GROUPED * ROWS


def _are_few(traces: pa.ChunkedArray[Any]) -> bool:
    """Whether events are of few traces, which then lie in one row group: what is told of each group takes its time.

    Short traces are judged where they lie, and a group tells their names.
    """
    return LONG * len(traces.unique()) <= len(traces)
