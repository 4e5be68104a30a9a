"""Opens a store directory before any record is read: files, settings, and the state of the broker.

Nothing is judged here except that the directory can be read. Layouts that are not judged are named in
`StoreDirectory.notes`, and so is everything that was used without being asked for (a `broker.conf` next to the store).
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from gapless.traces.problems import NothingThere, Unreadable, shown
from gapless.traces.sources.rocketmq.layouts import message_database
from gapless.traces.sources.rocketmq.layouts.hash_index.index_files import Index, OpensIndex, index_of
from gapless.traces.sources.rocketmq.log.dledger import Dledger, dledger_of, empty_dledger, has_dledger
from gapless.traces.sources.rocketmq.log.dledger_entries import ENTRY_HEADER
from gapless.traces.sources.rocketmq.queues.batch_queues import BatchQueues, batch_queues
from gapless.traces.sources.rocketmq.queues.queue_database import QueueDatabase
from gapless.traces.sources.rocketmq.queues.served_queues import (
    copied_queues,
    is_light,
    opener,
    queues_of,
    served_queues,
    shares_records,
)
from gapless.traces.sources.rocketmq.store.files import (
    ENTRY,
    FARTHEST,
    LogFile,
    Queue,
    QueueFile,
    QueueFiles,
    log_files,
    log_folders,
    queue_file_size,
    queue_files,
    read_exactly,
)
from gapless.traces.sources.rocketmq.store.flush_times import FlushTimes, flush_times
from gapless.traces.sources.rocketmq.store.links import BrokenLink
from gapless.traces.sources.rocketmq.store.names import HALF_TOPIC, INDEX_FOLDER, OP_TOPIC
from gapless.traces.sources.rocketmq.store.settings import (
    DELAY_LEVELS,
    delays,
    is_on,
    is_slave,
    is_there,
    length_set,
    read_json_or_older,
    rewritten,
    store_settings,
)
from gapless.traces.sources.rocketmq.store.snapshot import Snapshot, now
from gapless.traces.sources.rocketmq.store.topics import CURSOR_FILES, has_database, is_modern, saved_topics

CLIENT_LOG = "client.ndjson"
OWN_SETTINGS = "config/gapless.json"  # of our own implementation; no broker has such a file
CHECK_GROUP = "CID_RMQ_SYS_TRANS"  # the consumer group under which the check service writes its cursors down
THROW_AWAY = ("duplicationEnable", "forceVerifyPropCRC")  # docs/rocketmq.md#thrown-away
OTHER_LAYOUTS = {"kvStore": "what pop consumers were handed, in RocksDB (popConsumerKVServiceEnable)"}


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
    index: Index | None = None  # the hash index
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


def open_store(
    path: Path,
    config: Path | None = None,
    *,
    copied: bool = False,
    bare: bool = False,
    opens_index: OpensIndex | None = None,
) -> StoreDirectory:
    """Opens the store in folder `path`. Raises Unreadable, NothingThere.

    `config`: a broker.conf; without it, one next to the store is used, with a note · `copied`: as in `StoreDirectory`
    · `bare`: queues in a database are not copied, and the hash index is not opened unless `opens_index` opens it.
    """
    notes: list[str] = []
    settings = store_settings(path, config, notes)
    dledger = dledger_of(path, settings)
    folders = log_folders(path, settings, notes, before_dledger=dledger is not None)
    folders += [dledger.data] if dledger else []
    if not any(folder.is_dir() for folder in folders):
        raise _without_a_log(path)
    there = log_files(folders, settings, notes, {dledger.data: ENTRY_HEADER} if dledger else {})
    live = is_locked(path / "lock")
    files = _behind_gaps(there) if copied and not live else there
    if files[0].base:
        notes.append(f"the log begins at {files[0].base:,}: everything below counts as expired")
    strays: list[str] = []
    found = served_queues(path, settings, notes, strays, copies=not bare)
    database, broken, unread = found.database, found.broken, found.unread
    queues = found.queues
    batches = None if unread else batch_queues(path, length_set(settings, "mapperFileSizeBatchConsumeQueue"))
    clean = not (os.path.lexists(path / "abort") or live or copied)
    if clean and dledger and not dledger.settled:
        clean = False
        notes.append(f"the DLedger log's last entries were not known to be committed ({dledger.committed})")
    plain_size = 0 if database else queue_file_size(found.files, length_set(settings, "mappedFileSizeConsumeQueue"))
    queues = {**queues, **batches.queues} if batches else queues
    lights = found.twin if found.lights else None
    moment = now(queues, opener(str(path), database, batches, lights), files) if live else None
    if moment:
        notes.append(f"a broker is running on this store: its state is judged as of {moment}")
    if moment and batches:
        notes.append("batchconsumequeue/ is not judged: a broker is running on this store")
    elif (path / "abort").exists() and not live and not copied:
        notes.append("the broker did not stop in order (there is an abort file)")
    notes.extend(_other_layouts(path))
    topics = saved_topics(path / "config", notes)
    modern = is_modern(topics) or has_database(path / "config")
    opens_index = opens_index or (None if bare else index_of)
    is_gone = any(link.part == INDEX_FOLDER for link in broken)
    index = opens_index(path, settings, files) if opens_index and not is_gone else None
    notes.extend(index.unread if index else ())
    unwatched = bool(live and index and index.reach is None)
    notes.extend(["index/ is not judged: a broker is running on this store"] * unwatched)
    return StoreDirectory(
        path=str(path),
        files=files,
        file_size=files[0].length,
        clean=clean,
        live=live,
        copied=copied and not live,
        left_out=len(there) - len(files),
        checkpoint=flush_times(path / "checkpoint", notes),
        settings=settings,
        delays=delays(settings.get("messageDelayLevel", DELAY_LEVELS)) if config else (),
        queues=queues,
        queue_file_size=plain_size,
        no_queues=found.why_none,
        batches=batches,
        extension={} if unread else queue_files(path / "consumequeue_ext"),
        modern=modern,
        before_5=bool(topics) and not modern,
        index=index,
        database=database,
        twin=found.twin,
        lights=found.lights,
        shares=shares_records(queues, settings),
        cursors=_cursors(path, settings, notes),
        dledger=dledger,
        notes=tuple(notes),
        moment=moment,
        broken=broken,
        strays=tuple(strays),
        limit=moment.end if moment else FARTHEST,
    )


def _behind_gaps(files: tuple[LogFile, ...]) -> tuple[LogFile, ...]:
    """The files behind the last one that is missing.

    Files may be copied in any order, and the oldest ones of all expire meanwhile: then some of them are in the copy.
    """
    for at in range(len(files) - 1, 0, -1):
        if files[at].base != files[at - 1].base + files[at - 1].length:
            return files[at:]
    return files


def _without_a_log(path: Path) -> Unreadable | NothingThere:
    """Returns the error for a store without a folder of a log."""
    if not path.is_dir():
        return NothingThere(f"{path}: no such directory")
    if empty := empty_dledger(path):
        return Unreadable(
            f"{path}: the DLedger log in {empty}/ has no file in {empty}/data/, where its entries lie; copy that "
            "folder too, or restore it: without it nothing of this store can be judged"
        )
    if not (path / "consumequeue").exists():
        return NothingThere(f"{path}: no log file in it, and no queue: nothing was ever appended")
    return Unreadable(
        f"{path}: there is no commitlog/ in it; if the log lies elsewhere, a broker.conf with storePathCommitLog says "
        "where (--config)"
    )


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


def _cursors(path: Path, settings: Mapping[str, str], notes: list[str]) -> Cursors | None:
    """The check service's two cursors. With light queues they stand in a file of their own.

    An older version of the file was written while the broker ran: its two cursors need not agree, and one is taken.

    Source: docs/rocketmq.md#config.
    """
    found = []
    for name in CURSOR_FILES:
        file = path / "config" / name
        if is_there(file):
            content, older = read_json_or_older(file, notes)
            table = content.get("offsetTable")
            op = None if older else _cursor(file, table, OP_TOPIC)
            found.append(Cursors(f"config/{name}{'.bak' * older}", _cursor(file, table, HALF_TOPIC), op))
    if not found and (path / "consumequeue" / HALF_TOPIC).is_dir():
        notes.append("there is no consumerOffset.json: the cursors of the check service are unknown")
    if len(found) == 2:  # light queues were switched on or off: one of the files is old
        light = is_on(settings, "enableLmq")
        return found[light] if settings else min(found, key=lambda c: -1 if c.half is None else c.half)
    return found[0] if found else None


def _cursor(file: Path, table: object, topic: str) -> int | None:
    """The cursor over queue 0 of a topic, or None where it has not moved. Raises Unreadable."""
    if not isinstance(table, dict):
        raise Unreadable(f"{file}: expected an object called offsetTable; copy the file again, or check without it")
    cursors = table.get(f"{topic}@{CHECK_GROUP}", {})
    cursor = cursors.get("0") if isinstance(cursors, dict) else cursors
    if cursor is not None and (not isinstance(cursor, int) or isinstance(cursor, bool) or not 0 <= cursor < FARTHEST):
        raise Unreadable(
            f"{file}: the cursor over {topic} is {shown(json.dumps(cursor))}, expected a number from 0 on and below "
            "2^62; copy the file again, or check a copy of the store without it"
        )
    return cursor


def _other_layouts(path: Path) -> Iterator[str]:
    """Names the layouts in the store that gapless does not judge."""
    for name, what in OTHER_LAYOUTS.items():
        folder = path / name
        if folder.is_dir() and any(e.is_file() and e.stat().st_size > 0 for e in folder.rglob("*")):
            yield f"{name}/ is not judged: {what}"
    yield from message_database.not_judged(path)
