"""Small files of events, judged many at a time: to open one takes longer than to judge what is in it.

The lines of many files are read as one block, and their traces are replayed as one batch (`judging/many_files`); as
always, a trace is of one file. A file in which a step departs, deviates or is in doubt is judged by itself, from the
same block. A file that cannot be read is left to a check of its own, which says why.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from gapless.spec.catalog import PROFILES, STRICT
from gapless.traces.engines.engine import Engine
from gapless.traces.events.encoded_batch import EncodedBatch
from gapless.traces.events.event import NoEvent, Origin
from gapless.traces.events.files import Codec, codec_of, is_parquet
from gapless.traces.events.lines import ndjson
from gapless.traces.events.lines.plain_lines import PlainLines, lines_in
from gapless.traces.events.schema import EventSchema, with_specs
from gapless.traces.files.remote import RemotePath
from gapless.traces.judging.columns import gathered
from gapless.traces.judging.judge import Judge
from gapless.traces.judging.many_files import ManyFiles
from gapless.traces.judging.tallies import Tally
from gapless.traces.options import Options
from gapless.traces.problems import Unreadable, shown
from gapless.traces.report.parts import Parts
from gapless.traces.sources.event_files.file import EventFile
from gapless.traces.sources.event_files.stretches import StretchResult
from gapless.traces.sources.source import SmallInput

if TYPE_CHECKING:
    from gapless.traces.report.outputs.verdict_table import TableRows

SMALL = 256 << 10  # bytes of a file that is judged with others
LONGEST = ndjson.LONGEST  # bytes of its lines, if it is compressed: so none of them is too long
FILES = 512  # of a task, at most
AT_A_TIME = 16  # files of a store elsewhere that are read at a time
TOGETHER = 4 << 20  # bytes of a task, and of lines that are read at once


@dataclass(frozen=True)
class FileGroup:
    """The files of one task."""

    number: int
    files: tuple[SmallInput, ...]

    @property
    def bytes(self) -> int:
        """The bytes to read."""
        return sum(file.bytes for file in self.files)


@dataclass
class GroupResult:
    """The results of a task: of each file that could be judged, by its number; verdicts that were written."""

    parts: list[tuple[int, Parts]] = field(default_factory=list)
    listed: int = 0
    interrupted: bool = False


def together(some: Iterable[SmallInput], options: Options, table: TableRows | None) -> SmallFiles | None:
    """Open the files that are small; None if one trace is asked for, which needs its history."""
    most = min(SMALL, options.split or SMALL)
    files = [] if options.trace is not None else [one for one in some if one.bytes <= most]
    files = [one for one in files if not is_parquet(one.found)]
    return SmallFiles(files, options, table) if files else None


class SmallFiles:
    """Some small files; `table`: where tasks write verdicts, if they are wanted."""

    def __init__(self, files: Iterable[SmallInput], options: Options, table: TableRows | None) -> None:
        self.options = options
        self.table = table
        self.splits = list(_groups(files))
        self.listed = 0

    def task(self, engine: Engine) -> Callable[[FileGroup], GroupResult]:  # noqa: ARG002 - as `Together` says
        """See `Together`."""
        return GroupTask(self.options, self.table, PlainLines.pays(sum(group.bytes for group in self.splits)))

    def take(self, result: GroupResult) -> Iterator[tuple[int, Parts]]:
        """See `Together`. Raises KeyboardInterrupt if the task was interrupted."""
        self.listed += result.listed
        yield from result.parts
        if result.interrupted:
            raise KeyboardInterrupt


def _groups(files: Iterable[SmallInput]) -> Iterator[FileGroup]:
    """Group files in their order."""
    some: list[SmallInput] = []
    room, number = TOGETHER, 0
    for file in files:
        if some and (file.bytes > room or len(some) == FILES):
            yield FileGroup(number, tuple(some))
            some, room, number = [], TOGETHER, number + 1
        some.append(file)
        room -= file.bytes
    if some:
        yield FileGroup(number, tuple(some))


# -- one task ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GroupTask:
    """Judges a group of files. `plain`: their lines are read by native code."""

    options: Options
    table: TableRows | None
    plain: bool

    def __call__(self, group: FileGroup) -> GroupResult:
        """Judge the files that can be read."""
        result = GroupResult()
        verdicts: list[pa.RecordBatch] = []
        try:
            for origin, some in _read(group.files):
                judge = _judge_of(origin, self)
                for number, parts in judge.parts_of(some) if judge else ():
                    result.parts.append((number, parts))
                    verdicts += parts.verdicts
                    parts.verdicts = ()
        except KeyboardInterrupt:
            result.interrupted = True
        if self.table is not None:
            result.listed = self.table.write(f"{group.number:06d}", verdicts)
        return result


class FileLines(NamedTuple):
    """The lines of one file without its header."""

    file: SmallInput
    text: bytes
    bytes: int  # of the file


def _read(files: Sequence[SmallInput]) -> Iterator[tuple[Origin, list[FileLines]]]:
    """Yield the lines of files of one origin, not too many at a time; without the files that cannot be read."""
    origins: dict[bytes, Origin | None] = {}
    waiting: dict[bytes, list[FileLines]] = {}
    room = TOGETHER
    for file, raw in _contents(files):
        content, size = _lines_in(raw, codec_of(file.found)), len(raw)
        header, newline, text = content.partition(b"\n")
        if header not in origins:
            origins[header] = _origin(file.found, header + newline)
        if origins[header] is None or not newline or (text and not text.endswith(b"\n")):
            continue
        waiting.setdefault(header, []).append(FileLines(file, text, size))
        room -= len(text)
        if room < 0:
            yield from _waiting(origins, waiting)
            room = TOGETHER
    yield from _waiting(origins, waiting)


def _waiting(
    origins: dict[bytes, Origin | None], waiting: dict[bytes, list[FileLines]]
) -> Iterator[tuple[Origin, list[FileLines]]]:
    for header in list(waiting):
        origin, some = origins[header], waiting.pop(header)
        if origin is not None:
            yield origin, some


def _contents(files: Sequence[SmallInput]) -> Iterator[tuple[SmallInput, bytes]]:
    """Yield the bytes of every file; of a store elsewhere some files at a time, for it answers late."""
    if not any(isinstance(file.found, RemotePath) for file in files):
        yield from ((file, _content(file)) for file in files)
        return
    with ThreadPoolExecutor(AT_A_TIME) as readers:
        yield from zip(files, readers.map(_content, files), strict=True)


def _content(file: SmallInput) -> bytes:
    """Read a file; nothing if it cannot be read, or is not small any more."""
    try:
        with file.found.open("rb", buffering=0) as opened:
            found: bytes = opened.read(SMALL + 1) or b""
    except OSError:
        return b""
    return b"" if len(found) > SMALL else found


def _lines_in(content: bytes, codec: Codec | None) -> bytes:
    """Decompress a file; nothing if that cannot be done, or gives too much."""
    if codec is None:
        return content
    found = bytearray()
    try:
        with pa.CompressedInputStream(pa.BufferReader(content), codec) as stream:
            while len(found) <= LONGEST and (part := stream.read(LONGEST)):
                found += part
    except (OSError, pa.ArrowException):
        return b""
    return b"" if len(found) > LONGEST else bytes(found)


def _origin(path: Path, header: bytes) -> Origin | None:
    try:
        return ndjson.origin(path, io.BytesIO(header))
    except Unreadable:
        return None


def _judge_of(origin: Origin, work: GroupTask) -> _GroupJudge | None:
    """Make a judge of files of this origin; None if their profile is none."""
    profile = work.options.profile or origin.profile or STRICT
    return _GroupJudge(origin, replace(work.options, profile=profile), work.plain) if profile in PROFILES else None


class _GroupJudge:
    """Judges files of one origin."""

    def __init__(self, origin: Origin, options: Options, plain: bool) -> None:  # noqa: FBT001 - as the task has it
        self.origin = origin
        self.options = options
        self.of: EventSchema = with_specs(options.specs)
        self.coded = self.of.coded_lines if plain else self.of.coded_one_by_one

    def parts_of(self, some: Sequence[FileLines]) -> Iterator[tuple[int, Parts]]:
        """Yield the parts of every file that can be judged, by its number."""
        for files, events in self._events([lines for lines in some if lines.text]):
            ends = np.cumsum([lines_in(lines.text) for lines in files])
            begins = np.concatenate([np.zeros(1, np.int64), ends])
            counted = ManyFiles(self.of, self.options, events, begins)
            for at, (lines, tallies) in enumerate(zip(files, counted.tallies(), strict=True)):
                low, high = int(begins[at]), int(begins[at + 1])
                if tallies is None:
                    yield from self._alone(lines, events.part(low, high))
                else:
                    rows = counted.verdicts(at, shown(str(lines.file.path))) if self.options.listed else []
                    yield from self._parts(lines, high - low, tallies, rows)
        for lines in some:
            if not lines.text:
                yield from self._parts(lines, 0, {}, [])

    def _events(self, some: Sequence[FileLines]) -> Iterator[tuple[Sequence[FileLines], EncodedBatch]]:
        """Yield the events of files, without files in which a line is none: the others are read in two halves."""
        if not some:
            return
        block = b"".join(lines.text for lines in some)
        try:
            events = self.coded(block, lines_in(block))
        except NoEvent:
            half = len(some) // 2
            if half:
                yield from self._events(some[:half])
                yield from self._events(some[half:])
            return
        yield some, events

    def _alone(self, lines: FileLines, events: EncodedBatch) -> Iterator[tuple[int, Parts]]:
        """Judge a file by itself."""
        judge = Judge(shown(str(lines.file.path)), self.options)
        for traces in gathered([events], self.of):
            judge.take(traces, np.ones(len(traces.names), np.bool_))
        yield from self._parts(lines, len(events), judge.tallies, judge.verdicts)

    def _parts(
        self, lines: FileLines, records: int, tallies: dict[str, Tally], verdicts: list[pa.RecordBatch]
    ) -> Iterator[tuple[int, Parts]]:
        """Yield the parts of a file; nothing if it cannot be judged: a check of its own says why."""
        file = EventFile(lines.file.path, lines.file.found, self.options, None, (self.origin, lines.bytes))
        file.take(StretchResult(0, records, tallies))
        try:
            parts = file.parts()
        except Unreadable:
            return
        parts.verdicts = verdicts
        yield lines.file.number, parts
