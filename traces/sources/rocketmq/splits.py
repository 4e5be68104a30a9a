"""One split of a commit log, read and judged where its bytes are: what a worker does.

A split is a range of one log file. Its records become `log` events, its queue rows `queue` events, each message
followed by its entry, which the worker looks up itself: the consume queue is random-access, so nothing is shuffled.
A piece is replayed from the state that its first event claims, and reports that claim, its end and its first refusal;
`judge.py` joins the pieces.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gapless.traces.options import Options
from gapless.traces.problems import Unreadable, shown
from gapless.traces.replay.exact import Event
from gapless.traces.replay.kernels import EXACT, Kernel, Replayed, kernel
from gapless.traces.sources.rocketmq.clients.evidence import Evidence, Kept, Messages, judge_messages
from gapless.traces.sources.rocketmq.store import scan
from gapless.traces.sources.rocketmq.store.layout import ENTRY, HALF_TOPIC, OP_TOPIC, LogFile, Store, queue_files
from gapless.traces.sources.rocketmq.store.scan import Bytes, Ints
from gapless.traces.sources.rocketmq.transactions import rows
from gapless.traces.sources.rocketmq.transactions.judge import Judgement, judge_steps, load_transaction_kernels

SPLIT = 16 << 20  # bytes of a split: large enough to amortize its queues' files, small enough to bound memory
SLACK = 1 << 16  # bytes read beyond a split, for the record that begins in it and ends behind it
LARGEST = 256 << 20  # bytes: a record that claims more is not believed
MOST_DAMAGE = 64  # damaged places in one split that are told one by one; what follows is one damaged stretch

HALVES = (HALF_TOPIC, 0)  # the queue of halves, and that of ops
OPS = (OP_TOPIC, 0)

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Split:
    """Records that begin in the bytes `low:high` of a log file; `exact`: one is known to begin at `low`."""

    file: LogFile
    low: int
    high: int
    exact: bool


@dataclass(frozen=True)
class Refusal:
    """Where a piece was refused: the event, and why (the sentence), or None where only exact replay can tell."""

    event: Event
    because: str | None


@dataclass(frozen=True)
class Pieces:
    """The pieces of many traces in one segment, a column each.

    `subjects`: (topic, queue) · `claims`, `ends`: int64 [scalars, pieces] · `first`, `last`: log positions of the
    first and last message · `messages`, `indexed`: how many rows, and how many of their entries were accepted ·
    `batches`: how many rows are inner batches ·
    `refusals`: by index of the piece.
    """

    subjects: list[tuple[str, int]]
    claims: Ints
    ends: Ints
    first: Ints
    last: Ints
    messages: Ints
    indexed: Ints
    batches: Ints
    refusals: dict[int, Refusal]


@dataclass(frozen=True)
class Segment:
    """Records that tile the log from `start` to `end`, with what `log` and `queue` said of them.

    `refused`: the log events that were refused, after each of which the log was taken up again. `first_event` opens
    the segment for the join. `last`: position of the last record. `opened`, `clock`, `newest`: store times in ms, of
    the first, the last and the latest record. `stepped_back`: position of the last one that is older than the one
    before it, or -1.
    """

    start: int
    end: int
    records: int
    first_event: Event
    last: int
    opened: int
    clock: int
    newest: int
    stepped_back: int
    refused: list[Refusal]
    pieces: Pieces
    transactions: list[Judgement]
    kept: Kept | None  # what clients were promised of it; None where nobody says
    covered: dict[str, dict[str, int]]
    anomalies: dict[str, tuple[int, int, str]]  # deviation: count, position of the first, its trace


@dataclass(frozen=True)
class Result:
    """What a worker found in a split, in log order. `stop`: why the last segment ends; `at`: where."""

    split: Split
    segments: list[Segment]
    stop: int
    at: int
    counters: Ints
    bytes: int


def splits(store: Store, size: int | None = None) -> Iterator[Split]:
    """The store's log in splits, in log order."""
    size = size or SPLIT
    for file in store.files:
        for low in range(0, file.length, size):
            high = min(low + size, file.length, store.limit - file.base)
            if high <= low:
                return
            if not _is_hole(file, low, high):
                yield Split(file, low, high, exact=low == 0)


def _is_hole(file: LogFile, low: int, high: int) -> bool:
    """Whether the file system knows that nothing was ever written to `low:high` of a file created at full length."""
    with Path(file.path).open("rb") as handle:
        try:
            return os.lseek(handle.fileno(), low, os.SEEK_DATA) >= high
        except OSError as error:
            return error.errno == errno.ENXIO  # no data up to the end; where a file system cannot say, reading tells


class Space:
    """Memory that is used again from split to split: fresh pages would cost more than the scan that fills them."""

    def __init__(self) -> None:
        self.flat: dict[str, Bytes] = {}

    def array(self, name: str, shape: tuple[int, ...], kind: type[np.generic]) -> npt.NDArray[Any]:
        """An array of this shape, its content whatever was there; by the same name, it is the same memory."""
        size = math.prod(shape) * np.dtype(kind).itemsize
        if name not in self.flat or len(self.flat[name]) < size:
            self.flat[name] = np.empty(size, np.uint8)
        return self.flat[name][:size].view(kind).reshape(shape)


_space: ContextVar[Space | None] = ContextVar("space", default=None)
"""The space of this thread's `judge`; nobody else may use it, for what it gives is overwritten by the next split."""


class Window:
    """The bytes of a log file that a scan is at, read again where a record reaches beyond them."""

    def __init__(self, file: LogFile, space: Space | None = None) -> None:
        self.file = file
        self.space = space or Space()
        self.low = 0

    def read(self, low: int, high: int) -> None:
        """Hold the file's bytes from `low` to `high`, or to its end. Raises Unreadable where it shrank."""
        size = min(high, self.file.length) - low
        self.data: Bytes = self.space.array("bytes", (size,), np.uint8)
        self.low = low
        read_exactly(self.file, low, self.data.data)
        self.have = size


def record_at(store: Store, position: int) -> scan.Plain | None:
    """The record at a log position, field by field; None where there is none."""
    for file in store.files:
        if file.base <= position < file.base + file.length:
            at = position - file.base
            size = header_at(file, at).size
            if not scan.SMALLEST <= size <= min(LARGEST, file.length - at):
                return None
            window = Window(file)
            window.read(at, at + size)
            return scan.plain(window.data.tobytes())
    return None


def name_of_record(store: Store, position: int) -> str:
    """The key that a client gave the message at `position`, by which a transaction is called; or its place."""
    record = record_at(store, position)
    return (record.properties.get("UNIQ_KEY") if record else None) or f"@{position}"


def names_of_records(store: Store, positions: Ints) -> Iterator[str]:
    """The keys of many records, file by file in the order of the log."""
    for file in store.files:
        mine = positions[(file.base <= positions) & (positions < file.base + file.length)] - file.base
        if len(mine):
            data = np.memmap(file.path, np.uint8, "r")
            spans = np.zeros((2, len(mine)), np.int64)
            rows.find_names(data, mine, spans)
            for place, (low, high) in zip(mine.tolist(), spans.T.tolist(), strict=True):
                yield os.fsdecode(data[low:high].tobytes()) if low < high else f"@{file.base + place}"


def read_exactly(file: LogFile, low: int, into: memoryview) -> None:
    """Fill `into` with the file's bytes from `low` on. Raises Unreadable where it has become shorter, or is gone."""
    try:
        handle = os.open(file.path, os.O_RDONLY)
    except OSError as error:
        raise Unreadable(f"{shown(file.path)}: cannot be opened ({error.strerror})") from error
    try:
        done = 0
        while done < len(into):
            got = os.preadv(handle, [into[done:]], low + done)
            if got == 0:
                raise Unreadable(
                    f"{shown(file.path)}: ends at {low + done}, but was {file.length} bytes long when the check began; "
                    "something is changing it: stop the writer, or check a copy"
                )
            done += got
    except OSError as error:
        raise Unreadable(f"{shown(file.path)}: cannot be read at {low} ({error.strerror})") from error
    finally:
        os.close(handle)


def header_at(file: LogFile, at: int) -> scan.Header:
    """The header of the record at offset `at` of a log file."""
    window = Window(file)
    window.read(at, at + scan.HEADER)
    return scan.header(window.data.tobytes())


class Columns:
    """What a scan writes: `log` events, queue rows, subjects. Grown and entered again where it is too small."""

    def __init__(self, records: int, space: Space | None = None) -> None:
        self.space = space or Space()
        self.log: Ints = self.space.array("log", (scan.LOG_ROWS, records), np.int64)
        self.rows: Ints = self.space.array("rows", (scan.QUEUE_ROWS, records), np.int64)
        self.steps: Ints = self.space.array("steps", (rows.COLUMNS, records // 2 + 64), np.int64)
        self.filled = np.zeros(2, np.int64)
        self.stepped = 0  # rows in `steps`
        self.keys: Ints | None = None  # of the records: only clients ask for them
        self.counters = np.zeros(scan.COUNTERS, np.int64)
        self.subjects = np.empty((scan.SUBJECT_ROWS, 1024), np.int64)
        self.table = np.full(4096, -1, np.int64)
        self.names = np.empty(1 << 16, np.uint8)
        self.used = np.zeros(2, np.int64)

    def grow(self) -> None:
        """Twice the room in every column. Amortized, and rare."""
        self.log = np.concatenate([self.log, np.empty_like(self.log)], axis=1)
        self.rows = np.concatenate([self.rows, np.empty_like(self.rows)], axis=1)
        if self.keys is not None:
            self.keys = np.concatenate([self.keys, np.empty_like(self.keys)], axis=1)
        self.subjects = np.concatenate([self.subjects, np.empty_like(self.subjects)], axis=1)
        self.names = np.concatenate([self.names, np.empty_like(self.names)])
        self.table = np.full(2 * len(self.table), -1, np.int64)
        mask = len(self.table) - 1
        for subject in range(self.used[0]):
            slot = int(self.subjects[scan.S_HASH, subject]) & mask
            while self.table[slot] >= 0:
                slot = (slot + 1) & mask
            self.table[slot] = subject

    def find_steps(self, data: Bytes, base: int, begin: int) -> None:
        """Add the steps of transactions among the records from number `begin` on, whose bytes are in `data`."""
        if self.keys is not None:
            end = int(self.filled[0])
            rows.find_keys(data, base, self.log, begin, end, scan.POSITION, self.keys)
        while True:
            found = rows.find_rows(
                data, base, self.log, begin, int(self.filled[0]), scan.POSITION, self.steps, self.stepped
            )
            if found >= 0:
                self.stepped = found
                return
            self.steps = np.concatenate([self.steps, np.empty_like(self.steps)], axis=1)

    def subject(self, row: int) -> tuple[str, int]:
        """Topic and queue of one subject; bytes that are not UTF-8 are kept as the file system would keep them."""
        at, length = self.subjects[scan.S_AT, row], self.subjects[scan.S_LENGTH, row]
        return os.fsdecode(self.names[at : at + length].tobytes()), int(self.subjects[scan.S_QUEUE, row])


class Reader:
    """Scans one split into segments."""

    def __init__(self, store: Store, split: Split, space: Space | None = None, *, keys: bool = False) -> None:
        self.store = store
        self.split = split
        self.space = space
        self.keys = keys  # whether the keys of all records are wanted
        self.file = split.file
        self.window = Window(split.file, space)
        self.delays = np.array(store.delays, np.int64)
        self.multi = not store.settings or store.setting("enableMultiDispatch")
        self.lmq = not store.settings or store.setting("enableLmq")
        self.seals = not store.settings or store.setting("enabledAppendPropCRC")

    def columns(self) -> Columns:
        """Room for the records that are likely: they are rarely shorter than 160 bytes."""
        columns = Columns((self.split.high - self.split.low) // 160 + 64, self.space)
        if self.keys:
            columns.keys = columns.space.array("keys", (3, columns.log.shape[1]), np.int64)
        return columns

    def runs(self) -> Iterator[tuple[Columns, int, int, int, int]]:
        """The split's segments as columns: (columns, start, end, why it ended, bytes of the blank)."""
        split = self.split
        self.window.read(split.low, split.high + SLACK)
        at = split.low if split.exact else self.find(split.low)
        damaged = 0
        while at >= 0 and at < split.high:
            columns, start = self.columns(), at
            stop, at, size = self.advance(columns, at)
            while stop == scan.INVALID and damaged < MOST_DAMAGE and (guess := self.diagnose(at)) is not None:
                damaged += 1
                stop, at, size = self.advance(columns, at, guess)
            yield columns, start, at, stop, size
            damaged += 1
            at = self.find(at + 1) if stop == scan.INVALID and damaged < MOST_DAMAGE else -1

    def advance(
        self, columns: Columns, at: int, guess: tuple[int, int, int, bool] | None = None
    ) -> tuple[int, int, int]:
        """Scan from file offset `at` on, whatever it takes in memory. Returns why it ended, where, and a size."""
        window, low = self.window, self.window.low
        forced = (at, *guess) if guess else (-1, 0, 0, 0, False)
        while True:
            low, before = window.low, int(columns.filled[0])
            why, p, need = scan.scan(
                window.data, self.file.base + low, at - low, self.split.high - low, self.file.length - low, window.have,
                forced[0] - low if guess else -1, forced[1], forced[2], forced[3], forced[4],
                columns.log, columns.rows, columns.filled,
                columns.subjects, columns.table, columns.names, columns.used,
                columns.counters, self.delays, scan.CRC_TABLES, self.seals, self.multi, self.lmq,
            )  # fmt: skip
            columns.find_steps(window.data, self.file.base + low, before)
            at = low + p
            if why == scan.SHORT and need <= LARGEST:
                window.read(at, at + max(need, SLACK) + SLACK)
            elif why == scan.FULL:
                columns.grow()
            else:
                return (scan.INVALID if why == scan.SHORT else why), at, need

    def find(self, at: int) -> int:
        """The next file offset in the split where a record begins, or -1."""
        if not self.window.low <= at < self.window.low + self.window.have:
            self.window.read(at, self.split.high + SLACK)
        window = self.window
        low = window.low
        p = -1
        if window.data[: window.have & ~7].view(np.uint64).any() or window.data[window.have & ~7 : window.have].any():
            p = scan.find_start(
                window.data, self.file.base + low, at - low, self.split.high - low, self.file.length - low, window.have
            )
        if p < 0 and low + window.have < self.split.high:
            self.window.read(low + window.have - scan.BLANK, self.split.high + SLACK)
            return self.find(self.window.low)
        return low + p if p >= 0 else -1

    def diagnose(self, at: int) -> tuple[int, int, int, bool] | None:
        """A record whose magic number or size alone is wrong: (size, known, fits, V2). None where it cannot be told."""
        header = header_at(self.file, at)
        if not header.known and header.claimed != self.file.base + at:
            return None
        self.window.read(at, at + min(max(header.body, 0), LARGEST) + 2 * SLACK)
        data, have = self.window.data, self.window.have
        for v2 in (header.magic == scan.MAGIC_V2,) if header.known else (False, True):
            parts = int(scan.measure(data, 0, have, v2))
            if parts == header.size >= scan.SMALLEST:
                return parts, int(header.known), 1, v2
            if parts >= scan.SMALLEST and self.begins(at + parts):
                return parts, int(header.known), 0, v2
        return None

    def begins(self, at: int) -> bool:
        """Whether a record or the file's blank begins at file offset `at`."""
        if at + scan.BLANK > self.file.length:
            return False
        probe = Window(self.file)
        probe.read(at, at + SLACK)
        found = scan.find_start(probe.data, self.file.base + at, 0, 1, self.file.length - at, probe.have)
        return bool(found == 0)


def load_kernels(options: Options) -> None:
    """Compile all that a worker runs, or load it from numba's cache, by running it on nothing.

    Before the first split, and before workers are forked: so it is done once, and is not part of what is measured.
    """
    empty, none, no = np.zeros(1, np.int64), np.zeros(scan.BLANK, np.uint8), False
    columns = Columns(1)
    action, args = np.zeros(0, np.int8), np.zeros((0, 0), np.int64)
    for name in ("log", "queue"):
        of = kernel(name, options.ignored)
        of.replay(empty, action, args, np.zeros((len(of.spec.scalars), 0), np.int64), profile=options.profile)
    scan.scan(
        none, 0, 0, 0, 0, 0, -1, 0, 0, 0, no,
        columns.log, columns.rows, columns.filled, columns.subjects, columns.table, columns.names, columns.used,
        columns.counters, empty, scan.CRC_TABLES, no, no, no,
    )  # fmt: skip
    scan.find_start(none, 0, 0, 0, 0, 0)
    scan.measure(none, 0, 0, no)
    order, starts = scan.group(columns.rows, 0, 0)
    starts, _owners = scan.pieces_of(columns.rows, order, starts)
    origins, widths, _batches = scan.spans(columns.rows, order, starts)
    scan.pair(columns.rows, order, starts, origins, widths, none, widths, action, args, 0, 0, empty, no)


def load_more_kernels(store: Store, options: Options) -> None:
    """The same for transactions: they have many kernels, and most stores have no transaction."""
    if options.wants_transactions and store.queue_folder(*HALVES).is_dir():
        load_transaction_kernels(options)


def judge(store: Store, split: Split, options: Options, evidence: Evidence | None = None) -> Result:
    """Read one split, replay its pieces, and hold them against what clients say. Raises Unreadable."""
    space = _space.get()
    if space is None:
        space = Space()
        _space.set(space)
    reader = Reader(store, split, space, keys=evidence is not None)
    segments: list[Segment] = []
    counters = np.zeros(scan.COUNTERS, np.int64)
    stop, at = scan.INVALID, split.low
    for columns, start, end, why, size in reader.runs():
        blank = _rolled(split, end, why, size)
        if columns.filled[0] or blank:
            segments.append(_segment(store, split, columns, start, end, blank, options, evidence))
        counters += columns.counters
        stop, at = why, end
    return Result(split, segments, stop, split.file.base + at, counters, split.high - split.low)


def _rolled(split: Split, end: int, why: int, size: int) -> Event | None:
    if why != scan.ROLLED:
        return None
    return "roll", (split.file.base + end, size, 1)


def _segment(
    store: Store, split: Split, columns: Columns, start: int, end: int, blank: Event | None, options: Options,
    evidence: Evidence | None,
) -> Segment:  # fmt: skip
    log_kernel = kernel("log", options.ignored)
    action, args = log_events(log_kernel, columns, blank)
    base = split.file.base
    first = event_at(log_kernel, action, args, 0)
    refused, covered, deviated = _replay_log(log_kernel, store, base, action, args, options.profile)
    anomalies = {
        name: (count, int(args[log_kernel.spec.arguments.index("position"), at]), "commitlog")
        for name, (count, at) in deviated.items()
    }
    pieces, queue_covered, queue_anomalies = queue_pieces(store, columns, options)
    records = int(columns.filled[0])
    kept = _kept(columns, (base + start, base + end), options, evidence, live=store.live)
    times = columns.log[scan.TIME, :records]
    if blank is not None:
        end = split.file.length  # the next file's first byte is where the log goes on
    return Segment(
        start=base + start,
        end=base + end,
        records=records,
        first_event=first,
        last=int(columns.log[scan.POSITION, records - 1]) if records else -1,
        opened=int(times[0]) if records else 0,
        clock=int(times[-1]) if records else 0,
        newest=int(times.max(initial=0)),
        stepped_back=_stepped_back(columns),
        refused=refused,
        pieces=pieces,
        kept=kept,
        transactions=judge_steps(columns.steps[:, : columns.stepped], store, options, evidence),
        covered={"log": covered, "queue": queue_covered},
        anomalies=anomalies | queue_anomalies,
    )


def _kept(
    columns: Columns, span: tuple[int, int], options: Options, evidence: Evidence | None, *, live: bool
) -> Kept | None:
    if evidence is None or columns.keys is None:
        return None
    records, rows = int(columns.filled[0]), int(columns.filled[1])
    subjects = [columns.subject(row) for row in range(int(columns.used[0]))]
    messages = Messages(columns.log[:, :records], columns.keys[:, :records], columns.rows[:, :rows], subjects)
    return judge_messages(evidence, messages, span, options, live=live)


def _stepped_back(columns: Columns) -> int:
    log = columns.log[:, : columns.filled[0]]
    older = np.flatnonzero(log[scan.TIME, 1:] < log[scan.TIME, :-1])
    return int(log[scan.POSITION, older[-1] + 1]) if len(older) else -1


def log_events(log: Kernel, columns: Columns, blank: Event | None) -> tuple[npt.NDArray[np.int8], Ints]:
    """The `log` events of a segment: its records, and the blank behind them if it was reached."""
    records = int(columns.filled[0])
    events = records + (blank is not None)
    action = np.full(events, log.spec.codes["append"], np.int8)
    args: Ints = columns.space.array("log events", (len(log.spec.arguments), events), np.int64)
    for row, name in enumerate(log.spec.parameters["append"]):
        args[log.spec.arguments.index(name), :records] = columns.log[row, :records]
    if blank is not None:
        put_event(log, blank, action, args, records)
    return action, args


def put_event(of: Kernel, event: Event, action: npt.NDArray[np.int8], args: Ints, at: int) -> None:
    """Write one event into columns."""
    name, values = event
    action[at] = of.spec.codes[name]
    for argument, value in zip(of.spec.parameters[name], values, strict=True):
        args[of.spec.arguments.index(argument), at] = value


def event_at(of: Kernel, action: npt.NDArray[np.int8], args: Ints, at: int) -> Event:
    """One event out of columns."""
    name = list(of.spec.actions)[action[at]]
    return name, tuple(int(args[of.spec.arguments.index(a), at]) for a in of.spec.parameters[name])


def claim_log(of: Kernel, store: Store, base: int, event: Event) -> dict[str, int]:
    """The state that a piece of the log claims by beginning with `event` in the file at `base`."""
    args = dict(zip(of.spec.parameters[event[0]], event[1], strict=True))
    position, time = args["position"], args.get("time", 0)
    return {
        "file_size": store.file_size, "start": store.start, "base": base, "end": position,
        "flushed": store.start, "acknowledged": store.start, "clock": time, "newest": time,
    }  # fmt: skip


def _replay_log(
    of: Kernel, store: Store, base: int, action: npt.NDArray[np.int8], args: Ints, profile: str
) -> tuple[list[Refusal], dict[str, int], dict[str, tuple[int, int]]]:
    """Replay a segment's log events, taking the log up again behind each refused one."""
    refused: list[Refusal] = []
    covered = np.zeros(len(of.spec.actions), np.int64)
    deviated: dict[str, tuple[int, int]] = {}
    begin = 0
    while begin < len(action):
        claim = claim_log(of, store, base, event_at(of, action, args, begin))
        found = of.replay(
            np.array([0, len(action) - begin], np.int64),
            action[begin:],
            args[:, begin:],
            np.array([[claim[name]] for name in of.spec.scalars], np.int64),
            profile=profile,
        )
        covered += found.covered
        for number, deviation in enumerate(of.spec.deviations):
            if found.deviated[number]:
                count, first = deviated.get(deviation.step.__name__, (0, begin + int(found.deviated_at[number])))
                deviated[deviation.step.__name__] = (count + int(found.deviated[number]), first)
        if found.bad_at[0] < 0:
            break
        begin += int(found.bad_at[0])
        refused.append(Refusal(event_at(of, action, args, begin), _because(of, int(found.bad_why[0]))))
        begin += 1
        if len(refused) >= MOST_DAMAGE:
            break
    return refused, {n: int(c) for n, c in zip(of.spec.actions, covered, strict=True) if c}, deviated


def _because(of: Kernel, why: int) -> str | None:
    return None if why == EXACT else of.reasons[why - 1].because


@dataclass(frozen=True)
class QueueEvents:
    """The `queue` events of many pieces: `starts` bounds each one's, `origins` and `widths` its numbers.

    `subjects` says whose each piece is: a subject whose numbers start again at 0 has several.
    """

    subjects: list[tuple[str, int]]
    order: Ints
    rows: Ints
    row_starts: Ints
    starts: Ints
    action: npt.NDArray[np.int8]
    args: Ints
    origins: Ints
    widths: Ints
    batches: Ints


def queue_events(of: Kernel, store: Store, columns: Columns) -> QueueEvents:
    """Every message's `append` with the `index` of its entry, by piece."""
    order, bounds = scan.group(columns.rows, int(columns.filled[1]), int(columns.used[0]))
    row_starts, owners = scan.pieces_of(columns.rows, order, bounds)
    origins, widths, batches = scan.spans(columns.rows, order, row_starts)
    count = len(owners)
    subjects = [columns.subject(owner) for owner in owners]
    at = np.zeros(count, np.int64)
    np.cumsum(widths[:-1] * ENTRY, out=at[1:])
    entries: Bytes = columns.space.array("entries", (int(widths.sum()) * ENTRY,), np.uint8)
    entries.fill(0)
    view = entries.data
    if store.has_queues:
        for s, (name, queue) in enumerate(subjects):
            low = int(at[s])
            read_entries(store, name, queue, int(origins[s]), view[low : low + int(widths[s]) * ENTRY])
    spec = of.spec
    action = columns.space.array("actions", (2 * len(order),), np.int8)
    args: Ints = columns.space.array("queue events", (len(spec.arguments), 2 * len(order)), np.int64)
    where = np.array([spec.arguments.index(a) for a in ("number", "count", "position", "size", "tag")], np.int64)
    starts = scan.pair(
        columns.rows, order, row_starts, origins, widths, entries, at,
        action, args, spec.codes["append"], spec.codes["index"], where, store.extended,
    )  # fmt: skip
    return QueueEvents(subjects, order, columns.rows, row_starts, starts, action, args, origins, widths, batches)


def queue_pieces(
    store: Store, columns: Columns, options: Options
) -> tuple[Pieces, dict[str, int], dict[str, tuple[int, int, str]]]:
    """Replay a segment's queue events, every subject from the number that its first message claims."""
    of = kernel("queue", options.ignored)
    events = queue_events(of, store, columns)
    claims = claim_queues(of, store, events.origins)
    found = of.replay(
        events.starts, events.action, events.args, claims,
        origins=events.origins, widths=events.widths, profile=options.profile,
    )  # fmt: skip
    place = of.spec.arguments.index("position")
    pieces = Pieces(
        subjects=events.subjects,
        claims=claims,
        ends=found.state,
        first=events.args[place, events.starts[:-1]],
        last=events.rows[scan.PLACE, events.order[events.row_starts[1:] - 1]],
        messages=np.diff(events.row_starts),
        indexed=found.state[of.spec.scalars.index("indexed")] - events.origins,
        batches=events.batches,
        refusals={
            int(n): Refusal(
                event_at(of, events.action, events.args, int(found.bad_at[n])), _because(of, int(found.bad_why[n]))
            )
            for n in np.flatnonzero(found.bad_at >= 0)
        },
    )
    covered = {n: int(c) for n, c in zip(of.spec.actions, found.covered, strict=True) if c}
    return pieces, covered, _queue_anomalies(of, events, found)


def _queue_anomalies(of: Kernel, events: QueueEvents, found: Replayed) -> dict[str, tuple[int, int, str]]:
    anomalies = {}
    for number, deviation in enumerate(of.spec.deviations):
        if found.deviated[number]:
            at = int(found.deviated_at[number])
            topic, queue = events.subjects[int(np.searchsorted(events.starts, at, side="right")) - 1]
            position = int(events.args[of.spec.arguments.index("position"), at])
            anomalies[deviation.step.__name__] = (int(found.deviated[number]), position, f"{topic}/{queue}")
    return anomalies


def claim_queues(of: Kernel, store: Store, numbers: Ints) -> Ints:
    """The states that pieces claim by beginning with `numbers`: nothing before them is missing."""
    claims = np.empty((len(of.spec.scalars), len(numbers)), np.int64)
    for row, name in enumerate(of.spec.scalars):
        claims[row] = store.start if name == "start" else 0 if name == "blank" else numbers
    return claims


@lru_cache(maxsize=4096)
def _files_of(folder: Path) -> tuple[LogFile, ...]:
    return tuple(queue_files(folder))


def forget_listings() -> None:
    """Look at the folders again: a check begins."""
    _files_of.cache_clear()


def read_entries(store: Store, topic: str, queue: int, number: int, into: memoryview) -> None:
    """Fill `into` with the slots from `number` on, 20 bytes each; what no file holds is left as it is.

    A store that a broker is still writing is read afresh each time, any other as it was when the check began.
    """
    if number < 0 or "/" in topic or topic in ("", ".", "..") or "\0" in topic:
        return
    folder = store.queue_folder(topic, queue)
    files = queue_files(folder) if store.live else _files_of(folder)
    low, high = number * ENTRY, number * ENTRY + len(into)
    for file in files:
        begin, end = max(low, file.base), min(high, file.base + file.length // ENTRY * ENTRY)
        if begin < end:
            read_exactly(file, begin - file.base, into[begin - low : end - low])


def replayable(of: Kernel, events: QueueEvents, subject: tuple[str, int]) -> list[Event]:
    """One subject's events, as the exact replay takes them."""
    return [
        event_at(of, events.action, events.args, e)
        for s, owner in enumerate(events.subjects)
        if owner == subject
        for e in range(int(events.starts[s]), int(events.starts[s + 1]))
    ]


def segment_columns(store: Store, split: Split) -> Iterator[tuple[int, int, Columns, Event | None]]:
    """The segments of a split once more, as columns: (start, end, columns, blank). For stories and for `trace`."""
    reader = Reader(store, split)
    for columns, start, end, why, size in reader.runs():
        yield split.file.base + start, split.file.base + end, columns, _rolled(split, end, why, size)
