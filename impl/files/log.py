"""The commit log: records of all queues, laid end to end in files of one size, and known to be safe up to a point.

Steps are those of `spec/log.py`: append, roll, flush. One thread at a time appends; any thread may flush or read.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from threading import Lock

import numpy as np

from gapless.impl.files.checkpoint import NOWHERE
from gapless.impl.files.observer import LogObserver, append_row
from gapless.impl.files.queues import ConsumeQueue
from gapless.impl.files.segments import Segments, asked, zero_from
from gapless.impl.records import kernels
from gapless.impl.records.errors import Damaged, DiskFull, Refused, Stopped, StoreError, tell_what_is_in
from gapless.impl.records.input_checks import plain_bytes
from gapless.impl.records.record import (
    BLANK,
    FIXED,
    HEAD,
    HERE,
    LONGEST_PROPERTIES,
    LONGEST_V1_TOPIC,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    Bytes,
    Ints,
    Messages,
    Record,
    decode,
)

PAGE = 4096  # bytes that a disk writes at once, or multiples of them
LARGE = 4096  # bytes of a body that is dearer to copy, and to read again, than to call native code
AHEAD = 64 << 20  # bytes for which there is room on the disk behind those that are needed
_BLANK = struct.Struct(">iI")
_pack_head = HEAD.pack
_crc32 = zlib.crc32

WRONG = {
    kernels.OTHER_BODY: "the body of the record has not its checksum",
    kernels.OTHER_BYTES: "the record has not the checksum that its properties carry",
}

UnderWay = tuple[int, int, int, Sequence[ConsumeQueue], Sequence[int]]
"""What a call was about: the log's end before, the bytes behind it that it may write, the newest time before, and the
queues that it gives numbers of, with their next ones before."""


class CommitLog:
    """A log in its files.

    `start`: where the oldest file begins · `end`: exclusive end of the records, raised after the bytes are written, so
    that a reader who sees it may read up to it · `flushed`: exclusive end of what survives a crash · `newest`: ms, the
    last record's store time; these never step back, whatever the clock does · `error`: why the log has stopped ·
    `sealing`: whether each new record carries a checksum of itself (docs/rocketmq.md#property-crc) · `sealed`: from
    this position on, every record does; what has none there was changed.

    Whatever raises in the midst of a call, Ctrl-C too: the bytes behind the end become zeros again before anything else
    is written (`settle`), so what lies there is never taken for the log.
    """

    def __init__(
        self, segments: Segments, recorder: LogObserver | None = None, *, host: bytes = HERE, sealing: bool = False
    ) -> None:
        self.segments = segments
        self.recorder = recorder
        self.host = host
        self.file_size = segments.size
        self.start = self.end = self.flushed = segments.bases[0] if segments.bases else 0
        self.newest = 0
        self.error: StoreError | None = None
        self.sealing = sealing
        self.sealed = NOWHERE
        self._seal = kernels.SEAL if sealing else 0  # bytes of each new record
        self._base = self.end
        self._bytes: Bytes = np.zeros(0, np.uint8)  # of the file being written; empty until there is one
        self._mapped = memoryview(b"")
        self._room = 0  # bytes of that file for which there is room on the disk; a blank goes behind every record
        self._under_way: UnderWay | None = None
        self._flushing, self._making = Lock(), Lock()

    # -- append ------------------------------------------------------------------------------------------------------

    def append(
        self,
        queue: ConsumeQueue,
        body: bytes,
        properties: bytes,
        now: int,
        *,
        flag: int = 0,
        kind: int = 0,
        born: int | None = None,
        born_host: bytes | None = None,
        reconsumed: int = 0,
        half: int = 0,
    ) -> tuple[int, int]:
        """One record at the log's end, with the queue's next number, which moves on; returns its position and size.

        `properties`: as they lie in a record · `now`: ms · `kind`: the flags that say how the record is to be
        read (docs/rocketmq.md#flags); hosts are IPv4 · `half`: of a final.
        Raises Refused if a file has no room for it, DiskFull, Stopped; then nothing has changed.
        """
        if self.error or self._under_way is not None:
            self._begin()
        if body.__class__ is not bytes:
            body = plain_bytes(body)
        length, prefix, extra = len(body), queue.prefix, len(properties) + self._seal
        if extra > LONGEST_PROPERTIES:
            self._too_long(len(properties))
        size = FIXED - 1 + length + len(prefix) + extra
        at = self.end - self._base
        if at + size + BLANK > self._room:
            at = self._make_room(size)
        position, number, out = self._base + at, queue.next, self._mapped
        time, crc = now if now > self.newest else self.newest, _crc32(body)  # noqa: FURB136 - a call of max is dearer
        try:  # into bytes of its own: what is beyond the log's end stays zeros, whatever is wrong with an argument
            head = _pack_head(
                size, MAGIC_V1 if len(prefix) <= LONGEST_V1_TOPIC + 1 else MAGIC_V2, crc & 0x7FFFFFFF,
                queue.id, flag, number, position, kind, now if born is None else born, born_host or self.host, time,
                self.host, reconsumed, half, length,
            )  # fmt: skip
        except struct.error as error:
            raise Refused(f"flag={flag!r}, born={born!r}: expected signed integers of 32 and 64 bits") from error
        if length < LARGE:
            text = b"%b%b%b%b%b" % (head, body, prefix, extra.to_bytes(2, "big"), properties)
            if self.sealing:
                text = b"%b__CRC32#\x01%b\x02" % (text, (b"%010d" % (_crc32(text) & 0x7FFFFFFF))[::-1])
        else:
            text = self._tail(head, crc, length, prefix, properties)
        row = append_row(queue.index, position, size) if self.recorder is not None else b""
        self._under_way = (position, size, self.newest, (queue,), (number,))
        if length < LARGE:
            out[at : at + size] = text
        else:
            out[at : at + HEAD.size] = head
            out[at + HEAD.size : at + HEAD.size + length] = body
            out[at + HEAD.size + length : at + size] = text
        queue.next = number + 1
        self.newest = time
        if self.recorder is not None:  # a call would cost more than the row, and Python is interrupted at calls
            self.recorder.tape += row
        self.end = position + size
        self._under_way = None
        return position, size

    def _begin(self) -> None:
        """Something may be appended. Raises Stopped."""
        if self.error:
            raise Stopped(str(self.error)) from self.error
        self.settle()

    def _tail(self, head: bytes, crc: int, length: int, prefix: bytes, properties: bytes) -> bytes:
        """The part of a record behind a body of so many bytes with this CRC."""
        tail = b"%b%b%b" % (prefix, (len(properties) + self._seal).to_bytes(2, "big"), properties)
        if not self.sealing:
            return tail
        crc = _crc32(tail, kernels.joined(_crc32(head), crc, length, kernels.CRC_TABLES))
        return b"%b__CRC32#\x01%b\x02" % (tail, (b"%010d" % (crc & 0x7FFFFFFF))[::-1])

    def append_many(
        self, queues: Sequence[ConsumeQueue], messages: Messages, now: int, heads: Bytes | None = None
    ) -> Ints:
        """Many records, in one native pass for every file they come to lie in.

        `queues`: those that `messages.queues` names · `now`: ms, the time of them all · `heads`: uint8 [n, 88], what
        each record's header has in addition to what the log knows; they were born now, and are ordinary, where there
        are none. Returns int64 [4, n]: each record's position, size, queue as an index in `queues`, and number. Raises
        as `append` does. A batch that spans files goes into the log file by file: what was in it before DiskFull,
        Stopped or an interrupt stays, and the exception tells which messages these are (`StoreError.appended`, and a
        note).
        """
        self._begin()
        count, time = len(messages.queue_index), max(now, self.newest)
        topics = [queue.prefix[1 + (len(queue.prefix) > LONGEST_V1_TOPIC + 1) :] for queue in queues]
        topic_ends = np.zeros(len(topics) + 1, np.int64)
        np.cumsum([len(topic) for topic in topics], out=topic_ends[1:])
        ids = np.array([queue.id for queue in queues], np.int64)
        numbers = np.array([queue.next for queue in queues], np.int64)
        if heads is None:
            head = HEAD.pack(0, 0, 0, 0, 0, 0, 0, 0, now, self.host, 0, self.host, 0, 0, 0)
            heads = np.frombuffer(head, np.uint8).reshape(1, HEAD.size)
        property_ends = messages.property_ends
        if property_ends is None:
            property_ends = np.zeros(count + 1, np.int64)
        self._check_sizes(messages, topics, property_ends)
        if len(self._bytes):
            self.segments.whole(self._base)
        fixed = FIXED + 1 + self._seal
        most = count * (fixed + max(map(len, topics), default=0)) + int(messages.body_ends[-1] + property_ends[-1])
        placed, done = np.empty((4, count), np.int64), 0
        try:
            while done < count:
                before, base, at = done, self._base, self.end - self._base
                if len(self._bytes):
                    self._reserve(at + most)
                self._under_way = (self.end, most, self.newest, queues, numbers.tolist())
                done, at = kernels.encode_many(
                    self._bytes[: self._room], base, at, done, messages.queue_index,
                    np.frombuffer(b"".join(topics), np.uint8), topic_ends, ids, numbers,
                    messages.bodies, messages.body_ends, messages.properties, property_ends,
                    heads, time, kernels.CRC_TABLES, placed, self.sealing,
                )  # fmt: skip
                if done > before:
                    self._commit_many(queues, numbers, placed[:, before:done], time)
                self._under_way = None
                if done < count:
                    self._make_room(0)
        except BaseException as error:
            inside = placed[:, :done][:, placed[0, :done] < self.end]
            tell_what_is_in(error, inside[0], inside[3])
            raise
        return placed

    def _commit_many(self, queues: Sequence[ConsumeQueue], numbers: Ints, placed: Ints, time: int) -> None:
        """Records whose bytes are written are in the log."""
        position, size = placed[:2, -1].tolist()
        for queue, number in zip(queues, numbers.tolist(), strict=True):
            queue.next = number
        self.newest, end = time, position + size
        if self.recorder is not None:
            rows = self.recorder.rows_of_many(np.array([queue.index for queue in queues]), placed)
            self.recorder.tape += rows  # no call from here to the end: Python is interrupted at calls
        self.end = end
        if self.recorder is not None:
            self.recorder.help()

    def _check_sizes(self, messages: Messages, topics: list[bytes], property_ends: Ints) -> None:
        if not len(messages.queue_index):
            return
        properties = int(np.diff(property_ends).max())
        longest = FIXED + 1 + max(map(len, topics)) + int(np.diff(messages.body_ends).max()) + properties + self._seal
        if longest + BLANK > self.file_size:
            self._too_large(longest)
        if properties + self._seal > LONGEST_PROPERTIES:
            self._too_long(properties)

    def _too_long(self, properties: int) -> None:
        raise Refused(
            f"{properties} bytes of properties, expected at most {LONGEST_PROPERTIES - self._seal} with the record's "
            "checksum; put them into the body"
        )

    def _too_large(self, size: int) -> None:
        raise Refused(
            f"a record of {size} bytes, expected at most {self.file_size - BLANK}: files have {self.file_size}"
        )

    def _make_room(self, size: int) -> int:
        """There is a file with room for `size` bytes; returns the byte in it where they begin. Raises as `append`."""
        if size + BLANK > self.file_size:
            self._too_large(size)
        if not len(self._bytes):
            self._write_to(self.end)
        elif not size or self.end - self._base + size + BLANK > self.file_size:
            self.roll(size)
        at = self.end - self._base
        self._reserve(at + size)
        return at

    def _reserve(self, upto: int) -> None:
        """There is room on the disk for the file's bytes before `upto`, and a blank. Raises DiskFull, StoreError."""
        if upto + BLANK > self._room:
            self._room = self._reserved(self._base, upto + BLANK)

    def _reserved(self, base: int, least: int) -> int:
        """The end of the room in the current file: `least` bytes, and more if the disk has it."""
        least = min(least, self.file_size)
        ahead = min(least + AHEAD, self.file_size)
        try:
            self.segments.reserve(base, ahead)
        except DiskFull:
            self.segments.reserve(base, least)
            return least
        return ahead

    def roll(self, size: int = 0) -> None:
        """A blank fills the file, and the next one begins. The full file is flushed before anybody sees that.

        So a crash never takes away more than from the file being written (spec/log.py, crash: full files survive).
        `size`: of the record that the next file has room for. Raises DiskFull or StoreError, and the log ends where it
        did.
        """
        self.settle()
        if not len(self._bytes):
            self._write_to(self.end)
        end, base, following = self.end, self._base, self._base + self.file_size
        self._reserve(end - base)
        self._make(following, size)
        self._under_way = (end, BLANK, self.newest, (), ())
        _BLANK.pack_into(self._mapped, end - self._base, following - end, MAGIC_BLANK)
        with self._flushing:
            self._sync(self.flushed, following)
            row = self.recorder.row_of_roll(end, following - end) if self.recorder is not None else b""
            self._write_to(following)
            if self.recorder is not None:
                self.recorder.tape += row  # no call from here to the end: Python is interrupted at calls
            self.end = following
            self._flushed(following)
            self.segments.file(base).rest()  # all that it has is safe
        self._under_way = None

    def settle(self) -> None:
        """Undo a call that was interrupted: its bytes become zeros again, numbers and times what they were.

        Called by every appending thread, before anything is written, flushed or closed. May itself be interrupted, and
        is then called again. Raises Stopped.
        """
        if self._under_way is None:
            return
        position, most, newest, queues, numbers = self._under_way
        if self.end == position:  # it moves last: where it has, all is in the log
            self._write_to(position // self.file_size * self.file_size)
            at = position - self._base
            zero_from(self._bytes[: at + most], at)
            with self._flushing:
                self._sync(position, position + 1)  # the kernel may have written out what is gone now
            for queue, number in zip(queues, numbers, strict=True):
                queue.next = number
            self.newest = newest
        self._under_way = None

    @property
    def is_filling(self) -> bool:
        """Half of the file being written is full, and the next one is not made yet."""
        return self.end - self._base > self.file_size // 2 and self._base + self.file_size not in self.segments.bases

    def make_ready(self) -> None:
        """The next file is made before it is needed, once half of this one is full. Raises DiskFull, StoreError."""
        if self.is_filling:
            self._make(self._base + self.file_size, 0)

    def _make(self, base: int, size: int) -> None:
        with self._making:
            if base not in self.segments.bases:
                self.segments.create(base)
            self._reserved(base, size + BLANK)

    def _write_to(self, base: int) -> None:
        file = self.segments.file(base, write=True) if base in self.segments.bases else self.segments.create(base)
        mapped = memoryview(file.data)  # type: ignore[arg-type]
        self._room = 0  # nothing is written there before it was checked
        self._base, self._mapped, self._bytes = base, mapped, file.data

    # -- flush -------------------------------------------------------------------------------------------------------

    def flush(self) -> int:
        """All that is in the log when this is called is durable; returns how far that is.

        Raises Stopped where the disk refuses: then it is unknown what is safe, and nothing is appended or promised any
        more. A second try could succeed without having written anything.
        """
        with self._flushing:
            end = self.end
            if self.flushed < end:
                self._sync(self.flushed, end)
                self._flushed(end)
        return self.flushed

    def flush_apart(self, end: int) -> bool:
        """All before `end`, which is in the log, is durable: for a thread that may be interrupted anywhere.

        Others may flush meanwhile, and meet an error that an interrupt keeps it from noting, for its descriptor is its
        own. False where another thread has to flush.
        """
        low, size = self.flushed, self.file_size
        if self.error or self.recorder is not None or low // size != (end - 1) // size:
            return False
        try:
            self.segments.sync_apart(low // size * size)
        except (OSError, StoreError) as error:
            self._failed(low, error)
            return False
        with self._flushing:
            self._flushed(max(end, self.flushed))
        return True

    def _sync(self, low: int, high: int) -> None:
        if self.error:
            raise Stopped(str(self.error)) from self.error
        try:
            for base in range(low // self.file_size * self.file_size, high, self.file_size):
                self.segments.file(base).sync()
        except (OSError, StoreError) as error:
            raise self._failed(low, error) from error

    def _failed(self, low: int, error: Exception) -> StoreError:
        """The log has stopped, for the disk failed while it flushed from `low` on; returns why."""
        self.error = Stopped(
            f"{self.segments.place(low)}: the disk failed while bytes from here on were flushed ({error}); what was "
            "acknowledged is safe: close the store, mend the disk, and open it again"
        )
        return self.error

    def _flushed(self, to: int) -> None:
        if self.recorder is not None:  # before anybody can act on it
            self.recorder.flushed(to)
        self.flushed = to

    # -- read --------------------------------------------------------------------------------------------------------

    def view(self, position: int) -> tuple[Bytes, int]:
        """The bytes of the file that holds a position, and where it begins.

        Raises Refused where the file has expired, for that may happen while others read; StoreError where it was cut
        off.
        """
        base = position // self.file_size * self.file_size
        try:
            return self.segments.whole(base).data, base
        except StoreError as error:
            if position < self.start:
                raise Refused(f"position {position} has expired: the log begins at {self.start} now") from error
            raise

    def last(self, position: int, size: int) -> bytes:
        """The bytes of a record that was appended just now. Who writes to a file need not ask whether it is whole."""
        if position >= self._base:
            return bytes(self._mapped[position - self._base : position - self._base + size])
        data, base = self.view(position)
        return data[position - base : position - base + size].tobytes()

    def at(self, position: int) -> Record:
        """The record that begins at `position`. Raises Refused where none does, Damaged where it is another."""
        if not self.start <= position < self.end:
            raise Refused(f"position {position}: expected one from {self.start} up to {self.end}, where the log lies")
        data, base = self.view(position)
        how = kernels.judge(data, base, position - base, kernels.CRC_TABLES)
        if how in WRONG or (how == kernels.UNSEALED and position >= self.sealed):
            what = WRONG.get(how, "the record has lost the checksum that it was written with")
            raise Damaged(f"{self.segments.place(position)}: {what}; restore the file")
        found = decode(data, position - base) if how != kernels.NO_RECORD else None
        if found is None:
            raise Refused(f"{self.segments.place(position)}: no record begins here")
        return found

    def time_at(self, position: int) -> int:
        """The store time of the record at `position`, which is one, in ms."""
        data, base = self.view(position)
        at = position - base
        return int.from_bytes(data[at + 56 + 12 * bool(data[at + 39] & 0x10) :][:8].tobytes(), "big", signed=True)

    # -- found again -------------------------------------------------------------------------------------------------

    def recover(self, position: int, doubted: int, sealed: int = NOWHERE, safe: int = 0) -> int:
        """Find the end: step from the record at `position` to the first that is not whole; returns how many are.

        `doubted`, `sealed`, `safe`: as in `kernels.scan`. What was safe and without a checksum of itself moves
        `self.sealed` behind it. Nothing is written: `truncate` does that.
        """
        at, count = position, 0
        self.flushed = position
        self.newest, self.sealed = 0, sealed
        while at // self.file_size * self.file_size in self.segments.bases:
            data, base = self.view(at)
            stop, why, passed, newest, bare = kernels.scan(
                data, base, at - base, doubted, kernels.CRC_TABLES, sealed, safe
            )
            if bare > at - base:
                self.sealed = max(self.sealed, base + bare)
            count, at, self.newest = count + passed, base + stop, max(self.newest, newest)
            if why != kernels.AT_BLANK:
                break
            at = base + self.file_size
        self.end = at
        return count

    def truncate(self) -> None:
        """Cut off everything behind the end: later files, and bytes, which become zeros. The rest is durable.

        Otherwise a record that a crash took away could come back, when a new one ends where it began. Every page that
        may not be on disk is written to: after a flush that failed, the kernel takes pages for clean that never got
        there.
        """
        base = self.end // self.file_size * self.file_size
        full = base == self.end > self.start  # the last file is: an empty log keeps its own
        self.segments.clear_unborn()
        self.segments.delete_from(base if full else base + self.file_size)
        for found in range(self.flushed // self.file_size * self.file_size, self.end, self.file_size):
            self._reserved(found, self.end - found)
            data = self.segments.file(found, write=True).data[: self.end - found]
            data[::PAGE] = data[::PAGE].copy()
        self._base = base
        if base in self.segments.bases:
            self._write_to(base)
            file = self.segments.file(base)
            zero_from(self._bytes[: asked(file.used, self.segments.path(base))], self.end - base)
            self._sync(self.flushed, max(self.end, base + 1))
        else:
            self._sync(self.flushed, self.end)
        for found in range(self.flushed // self.file_size * self.file_size, base, self.file_size):
            self.segments.file(found).rest()
        self.flushed = self.end
