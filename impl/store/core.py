"""A store without threads and without a clock: log, queues, dispatch and recovery, one step a call.

The caller chooses the order: `store.py` with threads, `properties/` with a schedule, a test by hand.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any

from gapless.impl.dispatch.batches import DispatchBatch
from gapless.impl.dispatch.dispatch import Dispatch
from gapless.impl.dispatch.pool import rebuild
from gapless.impl.environment.operating_system import Disk
from gapless.impl.files import folder
from gapless.impl.files.checkpoint import NOWHERE, CheckpointFile
from gapless.impl.files.log import CommitLog
from gapless.impl.files.queues import FOLDER, ConsumeQueue, ConsumeQueues
from gapless.impl.files.segments import Segments, asked
from gapless.impl.files.store_settings import NAMES, KeptSettings, agreed, read_kept, write_kept
from gapless.impl.records.errors import Damaged, InUse, Refused, Stopped, StoreError
from gapless.impl.records.input_checks import sound
from gapless.impl.records.record import MAGIC_BLANK, MAGIC_V1, MAGIC_V2, Ints, Messages

if TYPE_CHECKING:
    from gapless.impl.recorder.recorder import StoreRecorder

NEVER = 1 << 62  # ms, or bytes: later than any time, and more than any log has
SLACK = 3000  # ms: a broker's own distance from the times in its checkpoint
PORTION = 32  # queues that are looked at, or lose files, while dispatch pauses

Paused = Callable[[], AbstractContextManager[None]]
"""Makes what keeps dispatch from taking a step while it is entered."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The layout and the settings of a store.

    What is None is as it is kept with the store, and for a new store as a broker has it by default.
    """

    file_size: int | None = None  # bytes of every log file; 1 GiB for a new store
    queue_file_size: int | None = None  # bytes of every queue file; 6,000,000 for a new store
    synchronous: bool | None = None  # whether a message counts as taken only once it is on disk
    flush_interval: int = 500  # ms between two flushes of the log, where it is not synchronous
    flush_pages: int = 4  # of 4096 bytes: less than that waits for a thorough flush, every 10 s
    queue_flush_interval: int = 1000  # ms between two flushes of the queues
    workers: int = 2  # threads that build entries; with none, only opening and closing the store builds them
    batch_bytes: int = 4 << 20  # of the log, for one worker at a time
    batch_records: int = 1 << 14
    in_flight: int = 8  # batches; more wait until these are done
    overlap: bool = True  # whether two workers may be at one queue
    pre_allocate: bool = True  # whether the next log file is made before it is needed
    delays: tuple[int, ...] | None = None  # ms of each delay level, from level 1 on
    reserved_hours: int | None = None  # what was stored before that expires; 72 for a new store
    reserved_bytes: int | None = None  # of the log: its oldest files expire where it has more; 0, any, for a new store
    expire_interval: int | None = None  # ms after which the store lets go what has expired; 0, never, for a new store
    checksums: bool | None = None  # whether each record carries a checksum of itself; True for a new store
    change: bool = False  # True: these settings are kept from now on, though the store was made with others
    verify: bool = False  # whether the whole log is stepped through, and all its checksums computed, to open it
    salvage: bool = False  # whether a log that lost what was safe is opened nevertheless, cut off there
    rebuild: bool = False  # True: all queues are built again from the log, as far as it reaches back

    def __post_init__(self) -> None:
        least = dict.fromkeys(
            ("flush_interval", "queue_flush_interval", "batch_bytes", "batch_records", "in_flight"), 1
        )
        sizes = ("file_size", "queue_file_size")
        counts = ("workers", "flush_pages", "reserved_hours", "reserved_bytes", "expire_interval")
        for name, low in {**least, **dict.fromkeys(sizes, 1), **dict.fromkeys(counts, 0)}.items():
            given = getattr(self, name)
            if given is not None and (not isinstance(given, int) or given < low):
                raise Refused(f"settings: {name}={given!r}, expected a whole number from {low} on")
        if self.delays is not None and not len(self.delays):
            raise Refused("settings: delays is empty, expected the ms of at least one delay level")


class Core:
    """A store that is open for writing. Created by `open`."""

    def __init__(self, disk: Disk, settings: Settings, recorder: StoreRecorder | None) -> None:
        self.disk = disk
        self.settings = settings  # once it is open, none is None that is kept with the store
        self.kept: KeptSettings
        self.recorder = recorder
        self.log: CommitLog
        self.queues: ConsumeQueues
        self.dispatch: Dispatch
        self.checkpoint = CheckpointFile()
        self.acknowledged = 0  # exclusive end of what was acknowledged to producers
        self.recovered = 0  # records that were stepped through when the store was opened
        self._marks: deque[tuple[int, int]] = deque()  # ends of the log that were flushed, and the newest times there
        self._listed: set[int] = set()  # queues with new messages that `config/topics.json` names
        self._flushing_queues, self._checking, self._writing = Lock(), Lock(), Lock()
        self._light = False  # whether records may be in several queues
        self._open = False

    @classmethod
    def open(cls, disk: Disk, settings: Settings | None = None, recorder: StoreRecorder | None = None) -> Core:
        """A store, new or found: after a crash, what was flushed is there, and every message has its entry.

        Raises NotAStore, InUse, WrongFileSize, Refused, Damaged, DiskFull, StoreError; nothing is open then.
        """
        folder.require_a_store(disk)
        core = cls(disk, settings or Settings(), recorder)
        try:
            folder.lock(disk)
            core._find()
        except InUse:
            raise
        except BaseException:
            disk.unlock()
            raise
        core._open = True
        return core

    # -- found again -------------------------------------------------------------------------------------------------

    def _find(self) -> None:
        clean, self.checkpoint = folder.is_clean(self.disk), CheckpointFile.read(self.disk)
        self._light = folder.has_light_queues(self.disk)
        self._agree()
        segments = Segments.load(self.disk, folder.LOG, self.kept.file_size)
        self.log = CommitLog(segments, sealing=self.kept.checksums)
        self.queues = ConsumeQueues(self.disk, self.kept.queue_file_size)
        self.queues.load()
        doubted = NEVER if clean else self.checkpoint.log
        begin = self._last_file() if clean else self._last_safe_file()
        rebuild = self.settings.rebuild or self._queues_are_unsound()
        if rebuild:
            begin = self.log.start
        self._recover(begin, doubted)
        if self.log.end < begin:  # found by stepping through what comes before, and to be cut off there
            begin = self.log.start
        sound = clean and not rebuild
        trusted = self.log.end if sound else begin
        self._recover_queues(trusted)
        self._require_no_loss(clean=clean)
        folder.mark_running(self.disk)
        try:
            write_kept(self.disk, self.kept)
            self.log.truncate()
            if rebuild:
                self.queues.clear()
            self._build_queues(begin, trusted)
            self._cut_queues(certain=sound)
        except StoreError:
            if sound:  # the log is as it was, and what was built is what is built the next time
                with suppress(StoreError):
                    folder.mark_stopped(self.disk)
            raise
        self.acknowledged = self.log.end
        self.checkpoint = replace(self.checkpoint, log=0, queues=0, index=0, built=0)  # of what was lost, none is safe
        self._flushed(self.log.end, self.log.newest)
        self.flush_queues()
        self._begin_recording()
        self.write_checkpoint(self.log.newest)

    def _agree(self) -> None:
        """The settings are complete. Raises Refused where one is another than the store was made with."""
        stated, kept = {name: getattr(self.settings, name) for name in NAMES}, read_kept(self.disk)
        usual = kept.get("file_size", folder.LOG_FILE), kept.get("queue_file_size", folder.QUEUE_FILE)
        sizes = folder.file_sizes(self.disk, stated["file_size"], stated["queue_file_size"], usual=usual)
        stated["file_size"], stated["queue_file_size"] = sizes
        carried = self.checkpoint.sealed != NOWHERE or not asked(lambda: self.disk.names(folder.LOG), folder.LOG)
        known = {} if self.settings.change else {n: v for n, v in kept.items() if not n.endswith("file_size")}
        self.kept = agreed(known, stated, {"checksums": carried, **kept})
        self.settings = replace(self.settings, **asdict(self.kept))

    def _recover(self, begin: int, doubted: int) -> None:
        """Find the log's end, from the record at `begin` on, and the position from which all is our own."""
        known = self.checkpoint
        strict = (NOWHERE, 0) if self.settings.salvage else (known.sealed, known.flushed)
        self.recovered = self.log.recover(self.log.start if self.settings.verify else begin, doubted, *strict)
        self.log.flushed = min(begin, self.log.end)
        ours = min(max(self.log.sealed, known.sealed), self.log.end)
        self.log.sealed = ours if self.log.sealing else NOWHERE

    def _recover_queues(self, trusted: int) -> None:
        """Find the ends of the queues, of entries before `trusted`, whose messages the log has."""
        for queue in self.queues.all:
            queue.recover(self.log.start, trusted, self._stands)

    def _queues_are_unsound(self) -> bool:
        """True if queues are missing, or one begins late though the log has its first messages."""
        first = [queue.segments.bases[0] for queue in self.queues.all if queue.segments.bases]
        return not first or (self.log.start == 0 and any(first))

    def _last_file(self) -> int:
        """After a clean stop all is in its place: only the last file is stepped through, to find the end."""
        return next(
            (base for base in reversed(self.log.segments.bases) if self._begins_with_a_record(base)), self.log.start
        )

    def _last_safe_file(self) -> int:
        """The newest file before which every record and its entry was on disk, as the checkpoint says.

        Its own first record was, too: of a log that is scanned from there on, a time is always known.
        """
        safe = min(self.checkpoint.log, self.checkpoint.queues) - SLACK
        for base in reversed(self.log.segments.bases):
            if not self._begins_with_a_record(base):
                continue
            if base < self.checkpoint.built or self.log.time_at(base) <= safe:
                return base
        return self.log.start

    def _begins_with_a_record(self, base: int) -> bool:
        if not asked(self.log.segments.file(base).used, self.log.segments.path(base)):
            return False  # zeros; where they have no room on the disk yet, tmpfs needs some for their readers
        return self._is_a_record(base)

    def _is_a_record(self, position: int) -> bool:
        data, base = self.log.view(position)
        at = position - base
        names = int.from_bytes(data[at + 28 : at + 36].tobytes(), "big") == position
        return names and int.from_bytes(data[at + 4 : at + 8].tobytes(), "big") in (MAGIC_V1, MAGIC_V2)

    def _require_no_loss(self, *, clean: bool) -> None:
        """Check that no safe record lies behind the log's end. Raises Damaged; nothing was changed."""
        if self.settings.salvage:
            return
        end = self.log.end
        place = self.log.segments.place(end)
        advice = "restore the file, or open the store with salvage=True, which drops all that follows"
        if self.checkpoint.log > self.log.newest:
            raise Damaged(
                f"{place}: no whole record begins here, and the checkpoint says that records stored up to "
                f"{self.checkpoint.log} ms were on disk, while the last one left is of {self.log.newest} ms: either "
                f"the log has lost its end, or the file `checkpoint` is damaged; {advice}"
            )
        if end < self.checkpoint.flushed:
            raise Damaged(
                f"{place}: no whole record begins here, and the checkpoint says that the log was on disk up to "
                f"{self.checkpoint.flushed}: it is damaged here, or has lost its end; {advice}"
            )
        if clean or not self.log.segments.bases:
            later = [base for base in self.log.segments.bases if end <= base and self._begins_with_a_record(base)]
            named = max((queue.reach for queue in self.queues.all), default=0)
            if later or end < named:
                raise Damaged(f"{place}: no whole record begins here, but the log went on behind it; {advice}")

    def _build_queues(self, begin: int, trusted: int) -> None:
        """Every message from `begin` on has its entry; if one before it has none, all are built from the log's start.

        Entries of messages before `trusted` were recovered.
        """
        try:
            self._dispatch_from(begin)
        except Damaged:
            if begin == self.log.start == trusted:
                raise
            self._recover_queues(self.log.start)
            self._dispatch_from(self.log.start, verify=True)
        for queue in self.queues.all:
            if queue.committed != queue.recovered:
                queue.forget_below(self.log.start)
            queue.next = queue.found = queue.scanned
        if asked(lambda: self.disk.read(folder.TOPICS), folder.TOPICS) is None:  # no broker knows of any: all are new
            for queue in self.queues.all:
                queue.found = 0

    def _cut_queues(self, *, certain: bool) -> None:
        """No queue has anything behind its entries, and all of that is durable; `certain`: it was, as it was found.

        What a process that was killed has written may be on the disk or not, and so may the zeros of one that was
        killed while it opened the store.
        """
        followed = [queue.truncate() for queue in self.queues.all]
        if any(followed) or not certain:
            asked(self.disk.sync_all, FOLDER)

    def _dispatch_from(self, begin: int, *, verify: bool = False) -> None:
        self.dispatch = self.new_dispatch(begin, verify=verify)
        rebuild(self.dispatch, self.log.end, workers=self.settings.workers)

    def new_dispatch(self, position: int, **how: Any) -> Dispatch:
        """A dispatch that begins at `position`: as the settings have it, and `how` else."""
        chosen = self.settings
        return Dispatch(
            self.log,
            self.queues,
            position=position,
            batch_bytes=chosen.batch_bytes,
            batch_records=chosen.batch_records,
            in_flight=chosen.in_flight,
            overlap=chosen.overlap,
            lmq=self._light,
            delays=self.kept.delays,
            **how,
        )

    def _stands(self, number: int, position: int, size: int) -> bool:
        """True if the log has, at `position`, a record of `size` bytes that carries `number`."""
        if not self.log.start <= position < self.log.end or not self._is_a_record(position):
            return False
        data, base = self.log.view(position)
        at = position - base
        carried = int.from_bytes(data[at + 20 : at + 28].tobytes(), "big")
        return int.from_bytes(data[at : at + 4].tobytes(), "big") == size and (self._light or carried == number)

    def _begin_recording(self) -> None:
        if self.recorder is not None:
            self.recorder.opened(self.log, self.queues.all, overlap=self.settings.overlap, delays=self.kept.delays)
            self.log.recorder = self.recorder
            self.dispatch.recorder = self.recorder

    # -- steps -------------------------------------------------------------------------------------------------------

    def append(self, queue: ConsumeQueue, body: bytes, properties: bytes, now: int) -> tuple[int, int]:
        """One message; returns its position and size. Raises Refused, DiskFull, Stopped."""
        self._require_open()
        return self.log.append(queue, body, properties, now)

    def append_many(self, messages: Messages, now: int) -> Ints:
        """Many messages: `CommitLog.append_many`."""
        self._require_open()
        messages = sound(messages)
        return self.log.append_many([self.queues.named(*pair) for pair in messages.queues], messages, now)

    def flush(self) -> int:
        """Flush all of the log; returns its end. No thread appends meanwhile. Raises Stopped."""
        self._require_open()
        self.log.settle()
        return self.flush_up_to(self.log.end, self.log.newest)

    def flush_up_to(self, end: int, newest: int) -> int:
        """Flush the log while other threads append: `newest` is the last store time before `end`."""
        self._require_open()
        flushed = self.log.flush()
        self._flushed(end, newest)
        return flushed

    def flush_apart(self, end: int, newest: int) -> bool:
        """Flush by a thread that may be interrupted anywhere; False where another one has to."""
        is_done = self._open and self.log.flush_apart(end)
        if is_done:
            self._flushed(end, newest)
        return is_done

    def _flushed(self, end: int, newest: int) -> None:
        """The log is on disk up to `end`, where the newest record is of `newest` ms."""
        if newest > self.checkpoint.log:
            self._know_safe(log=newest)
        self._marks.append((end, newest))

    def _know_safe(self, **known: int) -> None:
        """The checkpoint moves on. The log and the queues may be flushed by two threads at once."""
        with self._checking:
            later = {name: max(value, getattr(self.checkpoint, name)) for name, value in known.items()}
            self.checkpoint = replace(self.checkpoint, **later)

    def acknowledge(self, to: int) -> None:
        """Producers get the answer that all before `to` is safe. Raises Refused where it is not."""
        if to > self.log.flushed:
            raise Refused(f"position {to} is not on disk yet: only what lies before {self.log.flushed} is")
        if to > self.acknowledged:
            self.acknowledged = to
            if self.recorder is not None:
                self.recorder.acknowledged(to)

    @property
    def limit(self) -> int:
        """The limit of dispatch: consumers of a synchronous store see nothing that a crash can take away."""
        return self.log.flushed if self.kept.synchronous else self.log.end

    def waiting_since(self) -> int | None:
        """The store time, in ms, of the first message that consumers do not see yet; None where they see all."""
        at = self.dispatch.dispatched
        if at < self.log.end:
            data, base = self.log.view(at)
            if int.from_bytes(data[at - base + 4 : at - base + 8].tobytes(), "big") == MAGIC_BLANK:
                at = base + self.log.file_size
        return self.log.time_at(at) if at < self.log.end else None

    def scan(self) -> DispatchBatch | None:
        """The next batch is cut from the log: `Dispatch.scan`."""
        return self.dispatch.scan(self.limit)

    def flush_queues(self) -> None:
        """Entries become durable, queue by queue, as far as their messages are. Raises Stopped."""
        with self._flushing_queues:
            self._flush_queues(self.log.flushed, self.dispatch.dispatched)

    def _flush_queues(self, safe: int, dispatched: int) -> None:
        self.dispatch.flush_all([queue for queue in self.queues.all if queue.flushed < queue.committed], safe)
        while self._marks and self._marks[0][0] <= min(safe, dispatched):
            end, newest = self._marks.popleft()
            self._know_safe(queues=newest, index=newest, built=end)

    def write_checkpoint(self, now: int) -> None:
        """The file says what is safe by now, and new queues are written down for brokers. `now`: ms."""
        with self._writing:
            self._write_new_topics(now)
            checkpoint = replace(self.checkpoint, flushed=self.log.flushed, sealed=self.log.sealed)
            checkpoint.write(self.disk)
            if self.recorder is not None:
                self.recorder.checkpointed(checkpoint.log)

    def _write_new_topics(self, now: int) -> None:
        new = [queue for queue in self.queues.all if queue.next > queue.found and queue.index not in self._listed]
        if new:
            folder.write_topics(self.disk, [(queue.topic, queue.id) for queue in new], now)
            self._listed |= {queue.index for queue in new}

    def expire(self, before: int, most: int = NEVER, paused: Paused = nullcontext, young: int = NEVER) -> int:
        """Whole log files go, and their entries, if all in them was stored before that time, in ms.

        `young`: position behind which all is younger, whatever its store times say.
        So do the oldest ones as long as the log has more than `most` bytes. What is not in its queue yet, or not on
        disk, stays, and so does a file with a record that is: a log that begins with one that a crash could take would
        be found without any, and its times would be lost. `paused`: while it is entered, no step of dispatch is taken;
        it is entered for some queues at a time. Returns where the log begins now. Raises Stopped, StoreError.
        """
        self._require_open()
        start = self._beginning(before, most, young)
        if start > self.log.start:
            self.flush_queues()  # when its messages are gone, its next number is known from a queue's last entry alone
            self.log.start = start
            for some in _portions(self.queues.all):
                with paused():
                    for queue in some:
                        queue.forget_below(start)
                    if self.recorder is not None:
                        self.recorder.expired(start, some)
        for base in [base for base in self.log.segments.bases if base < self.log.start]:  # some may be left from before
            self.log.segments.delete(base)
        for some in _portions([queue for queue in self.queues.all if queue.has_expired_files]):
            with paused():
                for queue in some:
                    queue.delete_expired()
        return self.log.start

    def _beginning(self, before: int, most: int, young: int) -> int:
        """The position at which the log is to begin, for `expire`."""
        done, start = min(self.dispatch.dispatched, self.log.flushed), self.log.start
        for base in [base for base in self.log.segments.bases if base > start]:
            few = self.log.end - start <= most
            if base >= done or (few and (base > young or self.log.time_at(base) >= before)):
                break
            start = base
        return start

    def close(self, now: int) -> None:
        """A clean stop: all is in its queue and on disk, and the next start need not look for it.

        `now`: ms. Raises StoreError where that cannot be had: then it was a crash.
        """
        if not self._open:
            return
        try:
            self.flush()
            rebuild(self.dispatch, self.log.end, workers=1)
            self.flush_queues()
            if self.dispatch.dispatched != self.log.end or any(queue.flushed < queue.next for queue in self.queues.all):
                raise Stopped(f"messages from {self.log.segments.place(self.dispatch.dispatched)} on have no entry yet")
            self.write_checkpoint(now)
            if self.recorder is not None:
                self.recorder.settled(self.log.end, self.queues.all)
            self.log.segments.delete_from(self.log.end)
            folder.mark_stopped(self.disk)
            if self.recorder is not None:
                self.recorder.rested(self.queues.all)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """The store is let go as it is, as when the process dies."""
        if self._open:
            self._open = False
            if self.recorder is not None:
                self.recorder.take()  # it reads what lies in the files
            self.log.segments.close()
            self.queues.close()
            self.disk.unlock()

    def _require_open(self) -> None:
        if not self._open:
            raise Stopped("the store is closed; open it again")


def _portions(queues: Sequence[ConsumeQueue]) -> Iterator[Sequence[ConsumeQueue]]:
    """All of these, some at a time."""
    return (queues[low : low + PORTION] for low in range(0, len(queues), PORTION))
