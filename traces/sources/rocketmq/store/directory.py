"""A store directory as it was opened: files, settings, and the state of the broker."""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from gapless.traces.problems import Unreadable
from gapless.traces.sources.rocketmq.log.dledger import Dledger, has_dledger
from gapless.traces.sources.rocketmq.queues.batch_queues import BatchQueues
from gapless.traces.sources.rocketmq.queues.queue_database import QueueDatabase
from gapless.traces.sources.rocketmq.queues.served_queues import (
    copied_queues,
    is_light,
    opener,
    queues_of,
)
from gapless.traces.sources.rocketmq.store.files import (
    ENTRY,
    FARTHEST,
    LogFile,
    Queue,
    QueueFile,
    QueueFiles,
    read_exactly,
)
from gapless.traces.sources.rocketmq.store.flush_times import FlushTimes
from gapless.traces.sources.rocketmq.store.links import BrokenLink
from gapless.traces.sources.rocketmq.store.settings import (
    is_on,
    is_slave,
    rewritten,
)
from gapless.traces.sources.rocketmq.store.snapshot import Snapshot, now

CHECK_GROUP = "CID_RMQ_SYS_TRANS"  # the consumer group under which the check service writes its cursors down
CLIENT_LOG = "client.ndjson"
OWN_SETTINGS = "config/gapless.json"  # of our own implementation; no broker has such a file
THROW_AWAY = ("duplicationEnable", "forceVerifyPropCRC")  # docs/rocketmq.md#thrown-away


@dataclass(frozen=True)
class Cursors:
    """The cursors of the check service, as the broker saved them last (docs/rocketmq.md#config)."""

    file: str  # relative to the store
    half: int | None  # None: it has not moved yet
    op: int | None


class SlotReader(Protocol):
    """Reads entries that lie in no file."""

    def read(self, queue: Queue, number: int, into: memoryview) -> None:
        """Fills `into` with the slots of a queue from `number` on; missing ones are left unchanged."""


@dataclass(frozen=True)
class StoreDirectory:
    """A RocketMQ store directory."""

    path: str
    files: tuple[LogFile, ...]
    file_size: int  # bytes of every log file
    clean: bool  # the broker stopped in order: no `abort` file
    live: bool  # a broker has locked the store and continues to write
    copied: bool  # its files were copied one by one while a broker wrote them, as the user says
    checkpoint: FlushTimes | None
    settings: Mapping[str, str]
    delays: tuple[int, ...]  # ms per delay level; empty where no settings say so
    queues: QueueFiles  # as found when the store was opened; empty where no queue can be read
    queue_file_size: int  # bytes of every consume-queue file; 0 where no two files agree
    no_queues: str  # why no queue can be read; empty where they can
    batches: BatchQueues | None  # queues whose entries lie in batchconsumequeue/
    extension: QueueFiles  # files of consumequeue_ext: tag codes of entries may be addresses in them
    modern: bool  # a broker of version 5 wrote the configuration
    before_5: bool = False  # an older one did
    opened: Mapping[str, Any] = field(default_factory=dict)  # files that layouts opened with the store, by layout
    database: QueueDatabase | None = None  # where the queues come from, if not from files
    twin: QueueDatabase | None = None  # the second copy of the queues, next to the files
    lights: bool = False  # light queues are in `twin` alone
    shares: bool = True  # queues with names of light ones share records with others
    cursors: Cursors | None = None  # None if no file has them
    dledger: Dledger | None = None  # the DLedger log that is the log, or continues it
    left_out: int = 0  # files of a copied log before its last gap: they are not looked at
    notes: tuple[str, ...] = field(default=())
    moment: Snapshot | None = None  # of a live store: what was there when it was opened counts
    limit: int = FARTHEST  # log position from which on nothing is read
    watched: bool = False  # its judgement continues: files and cursors are judged at its end
    broken: tuple[BrokenLink, ...] = ()  # links in it that lead nowhere
    strays: tuple[str, ...] = ()  # paths in folders of queues that are not called by numbers
    reader: SlotReader | None = None  # reads entries where no file has them: those of a database that is followed
    trace_topics: tuple[str, ...] = ()  # topics that clients trace to besides the default ones, as the user says
    only_broker: bool = False  # its clients have no other, as the user says

    @property
    def start(self) -> int:
        """The log's first position: what lay below has expired."""
        return self.files[0].base

    @property
    def bytes(self) -> int:
        """Bytes of the commit log's files."""
        return sum(file.length for file in self.files)

    @property
    def of_moments(self) -> bool:
        """True if the files are known to be of different moments, so one shows nothing about another's end."""
        return self.live or self.copied

    @property
    def first_life(self) -> bool:
        """True if no broker ever started on these files again, so none of them was ever truncated."""
        known = self.checkpoint if self.modern and self.dledger is None else None
        return known is not None and known.recovered == 0 and not any(map(self.setting, THROW_AWAY))

    @property
    def settings_apply(self) -> bool:
        """True if the settings applied to all the records, so that a limit among them may accuse.

        A setting that is changed while the broker runs shows in a `broker.conf` that the broker wrote itself.
        """
        return self.first_life and not rewritten(self.settings)

    @property
    def forgets(self) -> bool:
        """True if the end of a broker may have lost acknowledged records from its own memory.

        Source: docs/rocketmq.md#pool.
        """
        # A name with a blank behind it is one for some brokers alone, so it is none here: that can only excuse.
        slave = self.settings.get("brokerRole") == "SLAVE"
        if self.before_5:
            without = slave or self.settings.get("flushDiskType") == "SYNC_FLUSH"
        else:
            without = (slave and not self.setting("enableControllerMode")) or self._unmapped
        pooled = self.setting("transientStorePoolEnable") and not without
        return pooled and not (self.clean and self.first_life)

    @property
    def _unmapped(self) -> bool:
        """True if the broker writes files without a map; brokers that ignore the setting write no such position."""
        return self.setting("writeWithoutMmap") and self.checkpoint is not None and self.checkpoint.indexed > 0

    @property
    def ours(self) -> bool:
        """True if our own implementation wrote it, or part of it: it may begin a new life within a moment."""
        return bool(self.checkpoint and self.checkpoint.ours) or Path(self.path, OWN_SETTINGS).is_file()

    @property
    def sealed(self) -> tuple[int, int]:
        """The positions between which all records carry a checksum of themselves, by the store's own word."""
        return self.checkpoint.sealed if self.checkpoint else (0, 0)

    @property
    def replicated(self) -> bool:
        """True if several brokers, each with settings and a clock of its own, may have written its records."""
        controlled = self.setting("enableControllerMode") or Path(self.path, "epochFileCheckpoint").exists()
        return controlled or is_slave(self.settings)

    def setting(self, name: str) -> bool:
        """The value of a boolean setting, False by default."""
        return is_on(self.settings, name)

    def queue_file(self, subject: Queue, file: QueueFile) -> LogFile:
        """One file of a queue, as it can be read."""
        return opener(self.path, self.database, self.batches, self._of_lights)(subject, file)

    def database_of(self, queue: Queue) -> QueueDatabase | None:
        """The database that a queue is read from, unless it is read from files."""
        return self.database or (self._of_lights if is_light(queue) else None)

    @property
    def has_queue_database(self) -> bool:
        """True if queues are in RocksDB, alone or in addition to files."""
        return self.database is not None or self.twin is not None

    @property
    def _of_lights(self) -> QueueDatabase | None:
        return self.twin if self.lights else None

    @property
    def extended(self) -> bool:
        """True if tag codes of entries may be addresses."""
        return bool(self.extension)

    @property
    def batched(self) -> QueueFiles:
        """The queues with entries in batchconsumequeue/, and their files there."""
        return self.batches.files if self.batches else {}

    def has_folder(self, queue: Queue) -> bool:
        """True if there is a folder for the queue's files."""
        return Path(self.path, "consumequeue", queue[0], str(queue[1])).is_dir()

    def log_file_at(self, position: int) -> tuple[str, int]:
        """Returns the log file of `position`, relative to the store, and the offset in it, even if it is gone."""
        base = position - (position - self.start) % self.file_size
        path = next((file.path for file in self.files if file.base == base), None)
        folder = Path(path or self.files[0].path).parent
        name = str(folder.relative_to(self.path)) if folder.is_relative_to(self.path) else str(folder)
        return f"{name}/{base:020d}", position - base


def store_folder(path: Path) -> Path | None:
    """Returns the store in `path`: the folder itself, or its `store/`; None if neither is one.

    Its log may be elsewhere; then its queues and its configuration identify it. So do a lock and a checkpoint before
    the first append.
    """
    for folder in (path, path / "store"):
        if (
            (folder / "commitlog").is_dir()
            or has_dledger(folder)
            or all((folder / name).is_dir() for name in ("consumequeue", "config"))
        ):
            return folder
        if all((folder / name).is_file() for name in ("lock", "checkpoint")):
            return folder
    return None


def neighbouring_client_log(folder: Path) -> Path | None:
    """Finds the client log next to the store in `folder`, by a path relative to here."""
    neighbour = folder.absolute().parent / CLIENT_LOG
    if not neighbour.is_file():
        return None
    return neighbour if folder.is_absolute() else Path(os.path.relpath(neighbour))


def renewed(store: StoreDirectory) -> StoreDirectory:
    """Opens a live store again, up to the same end of its log, so half-written parts are complete.

    Raises Unreadable.
    """
    if store.database:
        database = copied_queues(Path(store.path, store.database.folder))
        store = replace(
            store, database=database, queues={**database.queues, **(store.batches.queues if store.batches else {})}
        )
    elif store.twin:
        twin = copied_queues(Path(store.path, store.twin.folder))
        store = replace(store, twin=twin, queues=queues_of(store.queues, None, twin if store.lights else None))
    return replace(store, moment=replace(now(store.queues, store.queue_file, store.files[:1]), end=store.limit))


def is_unchanged(store: StoreDirectory, queue: Queue) -> bool:
    """True if a queue of a live store still has the entries of the store's snapshot."""
    moment, files = store.moment, store.queues.get(queue, ())
    if moment is None or queue not in moment.last:
        return False
    if store.database:
        from gapless.traces.sources.rocketmq.queues.rocksdb import value_now  # noqa: PLC0415 - it takes a library that may be missing

        folder = Path(store.path, store.database.folder)
        return value_now(folder, queue, moment.entries[queue] - 1) == moment.last[queue]
    last = bytearray(len(moment.last[queue]))
    with suppress(Unreadable):  # it is gone, or shorter
        at = (moment.entries[queue] - 1) * ENTRY - files[-1].base
        read_exactly(store.queue_file(queue, files[-1]), at, memoryview(last))
    return last == moment.last[queue]


def is_locked(path: Path) -> bool:
    """True if another process has locked the first byte. Takes no lock."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
            kind: int = struct.unpack("hhqqi4x", fcntl.fcntl(file, fcntl.F_GETLK, asked))[0]
            return kind != fcntl.F_UNLCK
    except OSError:
        return False
