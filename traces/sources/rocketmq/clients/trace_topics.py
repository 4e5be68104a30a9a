"""Trace topics: the answers, requests and deliveries that clients recorded in the store itself.

Their records are found through their consume queues, and read from the log file by file. They are used one-sidedly,
because clients discard traces when they have too many: a promise in them must be kept, and the absence of a trace
accuses no client and no broker (docs/rocketmq-traces.md#one-sided).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gapless.traces.sources.rocketmq.clients import trace_bodies as bodies
from gapless.traces.sources.rocketmq.columns.bytes import CRC_TABLES, Bytes, Ints, key_of
from gapless.traces.sources.rocketmq.columns.lookup import distinct
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import ENTRY, FARTHEST, SLOT
from gapless.traces.sources.rocketmq.store.names import CLOUD_TRACES, TRACE_TOPIC, as_bytes

SETTING = "msgTraceTopicName"  # what the broker's own trace topic is called, if otherwise
ENTRIES = 1 << 18  # that are read at once
COMPRESSED, COMPRESSION = 0x1, 0x700  # bits of a record's flags
LZ4, ZSTD, ZLIB = 0x100, 0x200, 0x300
LARGEST = 16 << 20  # bytes of a body, unpacked: clients write 128,000


@dataclass(frozen=True, eq=False)
class TraceTopicAnswers:
    """The content of a store's trace topics, and how much of it was understood.

    `rows` int64 [ANSWER_ROWS, …]: the columns of `trace_bodies`; `TOPIC` is an index in `topics`.
    """

    names: tuple[str, ...]  # of the trace topics
    rows: Ints
    topics: tuple[str, ...]
    messages: int  # trace messages
    damaged: int  # of these: not where their entry says, or not to be unpacked
    counts: Ints


def trace_topics(store: StoreDirectory) -> tuple[str, ...]:
    """The trace topics that the store has: the broker's, those of clouds, and those that were asked for."""
    return trace_topics_among({topic for topic, _queue in store.queues}, store)


def trace_topics_among(topics: Iterable[str], store: StoreDirectory) -> tuple[str, ...]:
    """Returns the trace topics among these topics, in order."""
    wanted = {TRACE_TOPIC, store.settings.get(SETTING, "").strip(), *store.trace_topics}
    return tuple(sorted(topic for topic in topics if topic in wanted or topic.startswith(CLOUD_TRACES)))


def read(store: StoreDirectory) -> TraceTopicAnswers | None:
    """Reads the trace topics of a store; None if it has none."""
    names = trace_topics(store)
    if not names:
        return None
    reader = TraceReader(store)
    for topic in names:
        for positions in _positions(store, topic):
            reader.read(topic, positions)
    return reader.answers(names)


def _positions(store: StoreDirectory, topic: str) -> Iterator[Ints]:
    """Yields the log positions of a topic's messages from its queues' entries, in order, many at once."""
    for subject, files in store.queues.items():
        if subject[0] != topic:
            continue
        for file in files:
            low, high = file.base // ENTRY, (file.base + file.length) // ENTRY
            for number in range(low, high, ENTRIES):
                slots = np.zeros(min(ENTRIES, high - number), SLOT)
                file_access.read_entries(store, *subject, number, slots.view(np.uint8).data)
                positions: Ints = slots["position"][(slots["size"] > 0) & (slots["size"] < 0x7FFFFFFF)].astype(np.int64)
                inside = (positions >= store.start) & (positions < min(store.limit, FARTHEST))
                if inside.any():
                    yield distinct(positions[inside])


class TraceReader:
    """Reads trace messages, and collects their reports."""

    def __init__(self, store: StoreDirectory) -> None:
        self.store = store
        self.found: list[Ints] = []
        self.topics: dict[int, str] = {}  # by their digest
        self.counts = np.zeros(bodies.COUNTS, np.int64)
        self.messages = 0
        self.damaged = 0

    def read(self, topic: str, positions: Ints) -> None:
        """Read the trace messages at these places."""
        for file in self.store.files:
            low, high = np.searchsorted(positions, [file.base, file.base + file.length])
            if low == high:
                continue
            try:
                data: Bytes = np.memmap(file.path, np.uint8, "r")
            except (OSError, ValueError):  # it has expired since
                continue
            found = np.zeros((bodies.BODY_ROWS, high - low), np.int64)
            bodies.find_bodies(data, positions[low:high] - file.base, file.base, as_bytes(topic), found, CRC_TABLES)
            self._read(data, found, positions[low:high])

    def _read(self, data: Bytes, found: Ints, positions: Ints) -> None:
        whole = found[bodies.BODY_WHOLE] == 1
        packed = whole & (found[bodies.BODY_FLAGS] & COMPRESSED == 1)
        self.messages += len(positions)
        self.damaged += int((~whole).sum())
        plain = np.flatnonzero(whole & ~packed)
        self._read_bodies(data, found[bodies.BODY_LOW, plain], found[bodies.BODY_HIGH, plain], found, positions, plain)
        for text, begins, ends, at in self._unpacked(data, found, np.flatnonzero(packed)):
            self._read_bodies(text, begins, ends, found, positions, at)

    def _unpacked(self, data: Bytes, found: Ints, packed: Ints) -> Iterator[tuple[Bytes, Ints, Ints, Ints]]:
        """Yields decompressed bodies, one behind the other, as many as memory is for; nothing for a broken one.

        A few bytes may become very many.
        """
        texts: list[bytes] = []
        begin, room = 0, LARGEST
        for n, at in enumerate(packed.tolist(), 1):
            low, high, flags = found[[bodies.BODY_LOW, bodies.BODY_HIGH, bodies.BODY_FLAGS], at].tolist()
            text = unpacked(data[low:high].tobytes(), flags)
            self.damaged += text is None
            texts.append(text or b"")
            room -= len(texts[-1])
            if room <= 0 or n == len(packed):
                stops = np.cumsum([len(text) for text in texts], dtype=np.int64)
                joined: Bytes = np.frombuffer(b"".join(texts) or b"\0", np.uint8)
                texts.clear()
                yield joined, np.concatenate([np.zeros(1, np.int64), stops[:-1]]), stops, packed[begin:n]
                begin, room = n, LARGEST

    def _read_bodies(self, text: Bytes, begins: Ints, ends: Ints, found: Ints, positions: Ints, at: Ints) -> None:
        """Reads the bodies of the records `at`, in as many passes as needed."""
        if not len(at):
            return
        hosts, witnesses = np.ascontiguousarray(found[bodies.BODY_HOST :, at]), positions[at]
        fields, done = np.zeros(bodies.MOST_FIELDS + 1, np.int64), np.zeros(2, np.int64)
        widest = int((ends - begins).max(initial=0)) // 16 + 2
        while done[0] < len(begins):
            answers = np.zeros((bodies.ANSWER_ROWS, max(widest, 1 << 16)), np.int64)
            done[1] = 0
            bodies.read_bodies(text, begins, ends, hosts, witnesses, fields, answers, self.counts, done)
            answers = answers[:, : done[1]].copy()
            self._name(text, answers)
            self.found.append(answers)

    def _name(self, text: Bytes, answers: Ints) -> None:
        """Remember what topics are called."""
        answered = np.flatnonzero(answers[bodies.WHAT] == bodies.ANSWERED)
        digests, first = np.unique(answers[bodies.TOPIC, answered], return_index=True)
        for digest, at in zip(digests.tolist(), answered[first].tolist(), strict=True):
            if digest not in self.topics:
                low, high = answers[bodies.TOPIC_LOW, at], answers[bodies.TOPIC_HIGH, at]
                self.topics[digest] = text[low:high].tobytes().decode(errors="backslashreplace")

    def answers(self, names: tuple[str, ...]) -> TraceTopicAnswers:
        """All of it."""
        rows = np.concatenate([np.zeros((bodies.ANSWER_ROWS, 0), np.int64), *self.found], axis=1)
        digests = np.array(sorted(self.topics), np.int64)
        answered = rows[bodies.WHAT] == bodies.ANSWERED
        rows[bodies.TOPIC] = np.where(answered, np.searchsorted(digests, rows[bodies.TOPIC]), -1)
        topics = tuple(self.topics[digest] for digest in digests.tolist())
        return TraceTopicAnswers(names, rows, topics, self.messages, self.damaged, self.counts)


def unpacked(body: bytes, flags: int) -> bytes | None:
    """Decompresses a body; None if that fails. Without bits for the method, the old one is used."""
    how = flags & COMPRESSION
    if how in (0, ZLIB):
        stream = zlib.decompressobj()
        try:
            text = stream.decompress(body, LARGEST)
        except zlib.error:
            return None
        return text if stream.eof else None
    return _unpacked_by_arrow(body, "zstd" if how == ZSTD else "lz4") if how in (LZ4, ZSTD) else None


def _unpacked_by_arrow(body: bytes, how: Literal["lz4", "zstd"]) -> bytes | None:
    import pyarrow as pa  # noqa: PLC0415 - it loads slowly, and few clients compress so

    try:
        with pa.CompressedInputStream(pa.BufferReader(body), how) as opened:
            text: bytes = opened.read(LARGEST + 1)
    except (OSError, pa.ArrowException):
        return None
    return text if len(text) <= LARGEST else None


def key_handed(store: StoreDirectory, position: int, key: int) -> str:
    """The key of a message that consumers were handed, as the trace message at `position` has it; or its place."""
    record = file_access.record_at(store, position)
    text = None if record is None else unpacked(record.body, record.kind) if record.kind & COMPRESSED else record.body
    for context in (text or b"").decode(errors="replace").split("\x02"):
        fields = context.split("\x01")
        at = {"SubBefore": 5, "SubAfter": 2}.get(fields[0], len(fields))
        if at < len(fields) and key_of(fields[at]) == key:
            return fields[at]
    return f"@{position}"
