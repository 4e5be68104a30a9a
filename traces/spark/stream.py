"""A stream of event files, judged as they arrive: after every batch, the verdicts of one check over all of them.

Spark finds new files, and remembers in its checkpoint the ones it has seen. The states of traces are kept next to it,
in files by bucket and batch: a batch that is repeated after a crash begins where it began the first time.
"""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa

from gapless.traces.check import options_of
from gapless.traces.engines.engine import Engine
from gapless.traces.engines.spark import classic
from gapless.traces.events import reading
from gapless.traces.events.files import is_event_file
from gapless.traces.events.reading import EventStretch
from gapless.traces.events.schema import with_specs
from gapless.traces.files.remote import RemotePath, path_of
from gapless.traces.inputs import is_partition
from gapless.traces.judging.columns import EventPack, gathered, hashed, packed, unpacked
from gapless.traces.judging.streaming.resumable_traces import ResumableTraces
from gapless.traces.options import Options
from gapless.traces.problems import Unreadable, UsageError, shown
from gapless.traces.report.outputs.verdict_table import SCHEMA
from gapless.traces.sources.event_files.file import profile_of
from gapless.traces.spark.tables import STRETCH

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

BUCKETS = 64  # in which traces are kept; it must stay, or what was kept is not found
FILES = "path STRING, modificationTime TIMESTAMP, length LONG, content BINARY"
AGE = "36500d"  # by which a file may be older than the newest: Spark would pass over one of last week in silence
KEPT = "gapless"  # the folder in the checkpoint
DONE = "done.json"
FORM = 2  # of what is kept; raised when it changes

Tells = Callable[[int, pa.Table], None]
"""Called after each batch with its number, and the verdict rows of all traces that it has events of."""


def judged(
    spark: SparkSession,
    folder: str | os.PathLike[str],
    checkpoint: str | os.PathLike[str],
    *,
    profile: str | None = None,
    only: Sequence[str] = (),
    ignore: Sequence[str] = (),
    specs: Sequence[str | os.PathLike[str]] = (),
    files: int | None = None,
    tells: Tells | None = None,
) -> DataStreamWriter:
    """Judge the event files in a folder as a stream; `.start()` starts it.

    Files in partitions, such as `date=2026-11-27/`, are read, too.
    Events of a trace may continue in later files. Files are ordered by the time when they were written, then by name;
    each must get its name when it is complete. `checkpoint`: a folder, where the stream continues when it is started
    again · `profile`, `only`, `ignore`, `specs`: as `check` has them · `files`: so many at a time · `tells`: called
    with the findings once for each batch, and again with the same rows if a batch is repeated after a crash. A file
    that cannot be read ends the stream. Raises UsageError.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise UsageError("a stream of event files needs a classic session of Spark: batches are judged on its cluster")
    if isinstance(path_of(checkpoint), RemotePath):
        raise UsageError(
            f"{shown(checkpoint)}: what is known of traces is kept on a disk; name a folder that all share"
        )
    options = options_of(profile=profile, only=only, ignore=ignore, specs=specs)
    kept = TraceStates(Path(checkpoint).absolute() / KEPT, str(folder))

    def batch_of(found: DataFrame, number: int) -> None:
        new = [_path(row.path) for row in found.orderBy("modificationTime", "path").collect()]
        with classic.started(None, None, None) as engine:
            changed = judge_batch(engine, kept, number, [path for path in new if _is_read(path, source)], options)
        if tells:
            tells(number, changed)

    source = None if has_magic(str(folder)) else path_of(folder).absolute()
    stream = spark.readStream.format("binaryFile").schema(FILES).option("maxFileAge", AGE)
    stream = stream.option("recursiveFileLookup", source is not None)  # or files without partitions fail next to others
    stream = stream if files is None else stream.option("maxFilesPerTrigger", files)
    names = stream.load(os.fspath(folder)).select("path", "modificationTime")  # so that no content is read
    return names.writeStream.foreachBatch(batch_of).option("checkpointLocation", os.fspath(checkpoint))


def verdicts(checkpoint: str | os.PathLike[str]) -> pa.Table:
    """Return the verdict of every trace after the last completed batch: the verdict table of all files so far."""
    folder = Path(checkpoint).absolute() / KEPT
    done = _done(folder)
    kept = TraceStates(folder, done.source)
    found = [kept.before(bucket, done.batch + 1) for bucket in range(BUCKETS)]
    return pa.Table.from_batches([batch for going in found for batch in going.rows()], SCHEMA)


def _is_read(path: Path, source: Path | None) -> bool:
    """True for a file of events in the folder of a stream, or in its partitions."""
    below = path.parts[len(source.parts) : -1] if source is not None and path.is_relative_to(source) else ()
    return is_event_file(path) and all(map(is_partition, below))


def _path(name: str) -> Path:
    """Return the path of a file as Spark names it."""
    found = urlparse(name)
    return (
        path_of(f"{found.scheme}://{found.netloc}{unquote(found.path)}") if found.netloc else Path(unquote(found.path))
    )


# -- what is kept --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LastBatch:
    """The last completed batch, the profile of the stream, and its folder as a user named it."""

    batch: int = -1
    profile: str = ""
    source: str = ""
    form: int = FORM


def _done(folder: Path) -> LastBatch:
    """Return the last batch. Raises UsageError if another version of gapless has written it."""
    file = folder / DONE
    if not file.exists():
        return LastBatch()
    found = {"form": 1} | json.loads(file.read_text(encoding="utf-8"))
    if found["form"] != FORM:
        raise UsageError(
            f"{shown(file)}: kept by another version of gapless (form {shown(found['form'])}, expected {FORM}): start "
            "the stream with a new checkpoint, it judges all files again"
        )
    return LastBatch(**found)


@dataclass(frozen=True)
class TraceStates:
    """The states of all traces, in a folder: for each bucket a file of the last batch, and one of that before."""

    folder: Path
    source: str  # as the verdict table names it

    def before(self, bucket: int, batch: int) -> ResumableTraces:
        """Load the states before a batch."""
        earlier = [number for number in self._numbers(bucket) if number < batch]
        return _load(self._file(bucket, max(earlier))) if earlier else ResumableTraces(self.source)

    def write(self, bucket: int, batch: int, going: ResumableTraces) -> None:
        """Save the states after a batch, and keep those before it: it may be repeated."""
        earlier = sorted(number for number in self._numbers(bucket) if number < batch)
        file = self._file(bucket, batch)
        _write(file, pickle.dumps(going))
        for number in earlier[:-1]:
            self._file(bucket, number).unlink(missing_ok=True)

    def profile(self, paths: Sequence[Path], options: Options) -> str:
        """Return the one profile for all files of the stream. Raises Unreadable."""
        known = _done(self.folder).profile
        for path in paths:
            own = options.profile or profile_of(path, reading.origin(path))
            if known and own != known:
                raise Unreadable(
                    f"{shown(path)}: is to be judged by {own}, and earlier files by {known}: one profile judges a "
                    "stream; name it, for it wins over what files say"
                )
            known = own
        return known

    def finish(self, batch: int, profile: str) -> None:
        """Mark a batch as completed."""
        _write(self.folder / DONE, json.dumps(asdict(LastBatch(batch, profile, self.source))).encode())

    def _file(self, bucket: int, batch: int) -> Path:
        return self.folder / f"{bucket:06d}-{batch:012d}.kept"

    def _numbers(self, bucket: int) -> list[int]:
        return [int(file.stem.partition("-")[2]) for file in self.folder.glob(f"{bucket:06d}-*.kept")]


def _write(file: Path, content: bytes) -> None:
    """Write a file atomically and durably: Spark forgets a completed batch."""
    unfinished = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    with unfinished.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    unfinished.replace(file)


def _load(file: Path) -> ResumableTraces:
    going: ResumableTraces = pickle.loads(file.read_bytes())  # noqa: S301 - what we wrote, in a folder of the user's
    return going


# -- one batch -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NewStretch:
    """A stretch of a new file; `number` is its place among all that are new."""

    path: Path
    number: int
    stretch: EventStretch


@dataclass(frozen=True)
class BatchTask:
    """The data that every task of a batch needs."""

    kept: TraceStates
    batch: int
    options: Options


def judge_batch(engine: Engine, kept: TraceStates, batch: int, paths: Sequence[Path], options: Options) -> pa.Table:
    """Judge new files after all earlier ones, and return the changed rows of the verdict table.

    Raises Unreadable.
    """
    kept.folder.mkdir(parents=True, exist_ok=True)
    profile = kept.profile(paths, options)
    given = [(path, stretch) for path in paths for stretch in reading.stretches(path, options.split or STRETCH)]
    new = [NewStretch(path, number, stretch) for number, (path, stretch) in enumerate(given)]
    work = BatchTask(kept, batch, Options(profile=profile, ignored=options.ignored, specs=options.specs))
    answers = list(engine.gather(partial(_packed, work), new, [], partial(_judged, work)))
    kept.finish(batch, profile)
    return pa.Table.from_batches([batch for answer in answers for batch in answer], SCHEMA)


def _packed(work: BatchTask, new: NewStretch) -> tuple[list[pa.RecordBatch], Sequence[EventPack]]:
    """Pack the events of a stretch by bucket, for the tasks with their traces. Raises Unreadable."""
    of = with_specs(work.options.specs)
    return [], list(_each_packed(gathered(reading.coded(new.path, new.stretch, of), of), new.number))


def _each_packed(every: Sequence[Any], number: int) -> Iterator[EventPack]:
    for traces in every:
        chosen = np.ones(len(traces.names), np.bool_)
        yield from packed(traces, hashed(traces), chosen, number, BUCKETS)


def _judged(work: BatchTask, parts: Sequence[EventPack]) -> list[pa.RecordBatch]:
    """Judge more events of one bucket's traces, and save their states. Raises Unreadable."""
    bucket = parts[0].bucket
    going = work.kept.before(bucket, work.batch)
    nowhere = np.zeros(1 + max(part.stretch for part in parts), np.int64)  # rows are not reported
    changed = going.take(unpacked(parts, nowhere, with_specs(work.options.specs)), work.options)
    work.kept.write(bucket, work.batch, going)
    return changed
